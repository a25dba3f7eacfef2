//! Draws of integers, and permutations.

use flambeau_base::{Error, Result};

use super::element::Element;
use super::generator::Stream;
use super::twister::N;
use super::uniform::{with_pairs, with_words};

/// From this range on, an integer takes two words: with one, the remainder would be noticeably skewed.
const WIDE_RANGE: u64 = 1 << 28;

/// From this length on, a permutation takes two words a number, since the remainder of one would be skewed.
const WIDE_PERMUTATION: u64 = u32::MAX as u64 / 20;

impl Stream {
    /// Fills `out` with the type's natural range: 0 to its greatest value for integers, `false` and `true`, 0 to
    /// 2^d for fractions with d bits of significand.
    ///
    /// One word a number, two for `i64` and `f64` (and for `u64`, which PyTorch does not have here).
    pub fn random<T: Element>(&mut self, out: &mut [T]) {
        if T::WIDE {
            self.fill_from_pairs(out, T::NATURAL_RANGE, 0);
        } else {
            self.fill_from_words(out, T::NATURAL_RANGE, 0);
        }
    }

    /// Fills `out` with integers of [from, to), or of [from, greatest] without `to`: `from` plus the remainder of
    /// the drawn word by the range.
    ///
    /// One word a number while the range is below 2^28, two from there on, whatever the type. With `from` the least
    /// `i64` and no `to`, the whole of two words is taken as it is.
    ///
    /// In a type of fractions `from` moves up and `to` down to the nearest values that keep the result in range
    /// after rounding.
    ///
    /// # Errors
    /// When `from >= to` or a bound does not fit into the type.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0i64; 5];
    /// Generator::with_seed(0).lock().random_range(&mut x, 0, Some(10))?;
    /// assert_eq!(x, [4, 9, 3, 0, 3]);
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn random_range<T: Element>(&mut self, out: &mut [T], from: i64, to: Option<i64>) -> Result<()> {
        let Some((from, last)) = inclusive_range::<T>(from, to)? else {
            self.fill_from_pairs(out, 0, 0);
            return Ok(());
        };
        let range = (last as u64).wrapping_sub(from as u64).wrapping_add(1);
        if range == 0 || range >= WIDE_RANGE {
            self.fill_from_pairs(out, range, from);
        } else {
            self.fill_from_words(out, range, from);
        }
        Ok(())
    }

    /// Fills `out` with 0, 1, ... in random order, by Fisher and Yates' shuffle.
    ///
    /// It runs from the front and takes one word less than there are numbers. From 214,748,364 numbers on it is the
    /// inside-out form, with two words for each number.
    ///
    /// # Errors
    /// When the type cannot hold all of the numbers apart.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0i64; 5];
    /// Generator::with_seed(0).lock().permutation(&mut x)?;
    /// assert_eq!(x, [4, 0, 1, 3, 2]);
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn permutation<T: Element>(&mut self, out: &mut [T]) -> Result<()> {
        let n = out.len();
        if T::NATURAL_RANGE != 0 && n as u64 > T::NATURAL_RANGE {
            return Err(Error::runtime(format!("randperm: {} cannot hold the numbers below n={n} apart", T::NAME)));
        }
        for (i, value) in out.iter_mut().enumerate() {
            *value = T::from_i64(i as i64);
        }
        if n as u64 >= WIDE_PERMUTATION {
            for i in 0..n {
                let z = self.word64() % (i + 1) as u64;
                out.swap(i, z as usize);
            }
            return Ok(());
        }
        let (mut words, mut i) = ([0; N], 0);
        while i + 1 < n {
            let words = &mut words[..N.min(n - 1 - i)];
            self.twister.fill(words);
            for &word in &*words {
                out.swap(i, i + (word % (n - i) as u32) as usize);
                i += 1;
            }
        }
        Ok(())
    }

    /// One word a number: its remainder by `size` (at most 2^32), plus `base`.
    fn fill_from_words<T: Element>(&mut self, out: &mut [T], size: u64, base: i64) {
        let size = u32::try_from(size).ok();
        with_words(self, out, |words, part| {
            for (o, &word) in part.iter_mut().zip(words) {
                let value = size.map_or(word, |size| word % size);
                *o = T::from_i64(i64::from(value).wrapping_add(base));
            }
        });
    }

    /// Two words a number: their remainder by `size` (0 stands for 2^64), plus `base`.
    fn fill_from_pairs<T: Element>(&mut self, out: &mut [T], size: u64, base: i64) {
        with_pairs(self, out, |words, part| {
            for (o, pair) in part.iter_mut().zip(words.chunks_exact(2)) {
                let word = u64::from(pair[0]) << 32 | u64::from(pair[1]);
                let value = if size == 0 { word } else { word % size };
                *o = T::from_i64((value as i64).wrapping_add(base));
            }
        });
    }
}

/// The first and last integer to draw; `None` for all 2^64 of them.
fn inclusive_range<T: Element>(from: i64, to: Option<i64>) -> Result<Option<(i64, i64)>> {
    let (first, last) = match to {
        Some(to) => {
            if from >= to {
                return Err(Error::runtime(format!("random_: needs 'from' to be less than 'to', but got from={from} >= to={to}")));
            }
            let (from, to) = if T::DIGITS == 0 { (from, to) } else { (round_up::<T>(from), round_down::<T>(to)) };
            (from, to - 1)
        }
        None if from == i64::MIN => {
            return if T::WHOLE { Ok(None) } else { Err(Error::runtime(format!("random_: {} cannot hold all 64-bit integers", T::NAME))) };
        }
        None => match T::BOUNDS {
            Some((_, max)) => (from, max),
            None => (round_up::<T>(from), 1 << T::DIGITS),
        },
    };
    if first > last {
        return Err(Error::runtime(format!("random_: no value of {} lies between from={first} and {last}, the last allowed", T::NAME)));
    }
    for (name, value) in [("from", first), ("to - 1", last)] {
        let inside = match T::BOUNDS {
            Some((min, max)) => (min..=max).contains(&value),
            None => (value as f64).abs() <= T::MAX,
        };
        if !inside {
            return Err(Error::runtime(format!("random_: {name}={value} is out of bounds for {}", T::NAME)));
        }
    }
    Ok(Some((first, last)))
}

/// The least bound not below `from` from which no integer rounds below `from`.
fn round_up<T: Element>(from: i64) -> i64 {
    let rounded = rounded::<T>(from.saturating_add(1));
    if rounded < from { rounded.saturating_add(spacing::<T>(from.saturating_add(1))) } else { from }
}

/// The greatest bound not above `to` below which no integer rounds to `to` or more.
fn round_down<T: Element>(to: i64) -> i64 {
    let rounded = rounded::<T>(to.saturating_sub(1));
    if rounded >= to { rounded.saturating_sub(spacing::<T>(to.saturating_sub(1))) } else { to }
}

/// The value of the type nearest to an integer. Where that is 2^63 or more it is the least integer, so that the bound
/// of the caller stays as it is: x86-64 converts so, and PyTorch relies on it.
fn rounded<T: Element>(value: i64) -> i64 {
    let nearest = T::from_i64(value).to_f64();
    if nearest < 63f64.exp2() { nearest as i64 } else { i64::MIN }
}

/// The distance of neighbouring values of the type about an integer of more bits than its significand.
fn spacing<T: Element>(value: i64) -> i64 {
    let exponent = value.unsigned_abs().max(1).ilog2();
    1 << (exponent + 1).saturating_sub(T::DIGITS)
}
