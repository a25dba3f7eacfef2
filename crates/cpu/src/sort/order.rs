//! Keys with their places, brought into order.

/// Rows of more elements are sorted digit by digit.
const RADIX_FROM: usize = 1024;
/// Bits of a digit: a histogram of 2048 counts stays in the first-level cache.
const DIGIT: u32 = 11;
const BUCKETS: usize = 1 << DIGIT;

/// A key with a place: ordered by key, equal keys by place.
pub(super) trait Item: Copy + Ord + Default + Send {
    /// Digits of a key, from the lowest.
    const DIGITS: u32;
    fn digit(self, i: u32) -> usize;
    fn place(self) -> u32;

    /// Sorts items that come in the order of their places. `spare` is scratch.
    fn sort(items: &mut Vec<Self>, spare: &mut Vec<Self>) {
        // A selection is not in the order of places any more, and digits alone would not bring it back.
        let ordered = items.windows(2).all(|w| w[0].place() < w[1].place());
        if items.len() < RADIX_FROM || !ordered {
            items.sort_unstable();
        } else {
            radix(items, spare);
        }
    }
}

impl Item for u64 {
    const DIGITS: u32 = 3;

    #[inline(always)]
    fn digit(self, i: u32) -> usize {
        (self >> (32 + i * DIGIT)) as usize % BUCKETS
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self as u32
    }
}

/// A key of 64 bits with its place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Long {
    pub key: u64,
    pub place: u32,
}

impl Item for Long {
    const DIGITS: u32 = 6;

    #[inline(always)]
    fn digit(self, i: u32) -> usize {
        (self.key >> (i * DIGIT)) as usize % BUCKETS
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self.place
    }
}

/// Sorts by the lowest digit first, each pass keeping the order of the one before. Digits that all items share are left out.
fn radix<I: Item>(items: &mut Vec<I>, spare: &mut Vec<I>) {
    let n = items.len();
    let mut counts = vec![[0u32; BUCKETS]; I::DIGITS as usize];
    for &item in items.iter() {
        for (i, counts) in counts.iter_mut().enumerate() {
            counts[item.digit(i as u32)] += 1;
        }
    }
    spare.clear();
    spare.resize(n, I::default());
    for (i, counts) in counts.iter_mut().enumerate() {
        if counts[items[0].digit(i as u32)] as usize == n {
            continue;
        }
        let mut sum = 0;
        for c in counts.iter_mut() {
            sum += std::mem::replace(c, sum);
        }
        for &item in items.iter() {
            let slot = &mut counts[item.digit(i as u32)];
            spare[*slot as usize] = item;
            *slot += 1;
        }
        std::mem::swap(items, spare);
    }
}

/// The `count` smallest items in order, `count` being small: a bound is kept above which nothing is looked at.
pub(super) fn smallest<I: Item>(all: impl Iterator<Item = I>, count: usize, best: &mut Vec<I>) {
    if count == 0 {
        return;
    }
    let room = count * 2 + 64;
    let mut bound: Option<I> = None;
    for item in all {
        if bound.is_some_and(|b| item >= b) {
            continue;
        }
        best.push(item);
        if best.len() == room {
            best.select_nth_unstable(count - 1);
            best.truncate(count);
            bound = Some(best[count - 1]);
        }
    }
    best.sort_unstable();
    best.truncate(count);
}
