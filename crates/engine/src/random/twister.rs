//! The Mersenne twister MT19937, a block of 624 words at a time.

/// Words of state, and words made by one twist.
pub(super) const N: usize = 624;
/// Distance of the word that is mixed in.
const M: usize = 397;
const MATRIX: u32 = 0x9908_b0df;
const UPPER: u32 = 0x8000_0000;

/// MT19937 (Matsumoto and Nishimura, "Mersenne twister", 1998) with the initialisation of 2002.
///
/// `left` and `next` are PyTorch's: `left - 1` words of the present block are still to be given, from `next` on.
#[derive(Clone)]
pub(super) struct Twister {
    pub seed: u64,
    pub left: u32,
    pub next: u32,
    pub state: [u32; N],
}

impl Twister {
    /// Seeds from the low 32 bits of `seed`; the whole of it is remembered as the initial seed.
    pub fn new(seed: u64) -> Self {
        let mut state = [0; N];
        state[0] = seed as u32;
        for j in 1..N {
            let last: u32 = state[j - 1];
            state[j] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(j as u32);
        }
        Self { seed, left: 1, next: 0, state }
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self) -> u32 {
        if self.left <= 1 {
            self.refill();
        } else {
            self.left -= 1;
        }
        let word = temper(self.state[self.next as usize]);
        self.next += 1;
        word
    }

    /// The next two words, the first one in the high half.
    #[inline]
    pub fn word64(&mut self) -> u64 {
        let high = self.word();
        u64::from(high) << 32 | u64::from(self.word())
    }

    /// The next `out.len()` words.
    pub fn fill(&mut self, out: &mut [u32]) {
        let mut rest = out;
        while !rest.is_empty() {
            if self.left <= 1 {
                self.refill();
                self.left += 1;
            }
            let count = rest.len().min(self.left as usize - 1);
            let (now, later) = rest.split_at_mut(count);
            let from = self.next as usize;
            temper_into(&self.state[from..from + count], now);
            self.left -= count as u32;
            self.next += count as u32;
            rest = later;
        }
    }

    /// Makes the next block; the caller takes its first word.
    fn refill(&mut self) {
        twist(&mut self.state);
        self.left = N as u32;
        self.next = 0;
    }
}

#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

wide! {
    fn temper_into, temper_portable(state: &[u32], out: &mut [u32]) {
        for (o, &s) in out.iter_mut().zip(state) {
            *o = temper(s);
        }
    }
}

/// The recurrence on two neighbours, without the word that is mixed in.
#[inline(always)]
fn blend(here: u32, following: u32) -> u32 {
    let joined = (here & UPPER) | (following & !UPPER);
    (joined >> 1) ^ (MATRIX & (following & 1).wrapping_neg())
}

wide! {
    // In runs of 227 words: the nearest word that the twist both writes and reads again lies that far back.
    fn twist, twist_portable(state: &mut [u32; N]) {
        const RUN: usize = N - M;
        let (mut old, mut mixed) = ([0; RUN + 1], [0; RUN]);
        for start in (0..N).step_by(RUN) {
            let count = RUN.min(N - start);
            let source = (start + M) % N;
            old[..count].copy_from_slice(&state[start..start + count]);
            old[count] = state[(start + count) % N];
            mixed[..count].copy_from_slice(&state[source..source + count]);
            for (j, word) in state[start..start + count].iter_mut().enumerate() {
                *word = mixed[j] ^ blend(old[j], old[j + 1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 1,000th word from the seed 5489 is the one that the authors' program prints.
    #[test]
    fn agrees_with_the_reference_program() {
        let mut twister = Twister::new(5489);
        let mut words = [0; 1000];
        twister.fill(&mut words);
        assert_eq!(words[0], 3_499_211_612);
        assert_eq!(words[999], 1_341_017_984);
    }

    #[test]
    fn one_by_one_equals_in_blocks() {
        let (mut single, mut block) = (Twister::new(7), Twister::new(7));
        for count in [0, 1, 623, 1, 624, 625, 3, 2000, 1248] {
            let mut words = vec![0; count];
            block.fill(&mut words);
            assert!(words.iter().all(|&word| word == single.word()));
            assert_eq!((block.left, block.next), (single.left, single.next));
        }
        assert_eq!(block.state, single.state);
    }
}
