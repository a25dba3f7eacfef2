//! Uniform draws.

use flambeau_base::{Error, Result};
use half::{bf16, f16};

use super::element::Real;
use super::generator::Stream;
use super::twister::N;

impl Stream {
    /// Fills `out` with numbers uniform on [from, to).
    ///
    /// One word a number, of which 24 bits count; two and 53 in `f64`. A number that rounding brings up to `to`
    /// becomes `from`. With `from == to` all are `from` (the words are taken all the same).
    ///
    /// # Errors
    /// When a bound or their distance is not a finite value of the type, or `from > to`.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0f64; 4];
    /// Generator::with_seed(1).lock().uniform(&mut x, -1.0, 1.0)?;
    /// assert!(x.iter().all(|v| (-1.0..1.0).contains(v)));
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn uniform<T: Real>(&mut self, out: &mut [T], from: f64, to: f64) -> Result<()> {
        for (name, value) in [("from", from), ("to", to)] {
            if !(-T::MAX..=T::MAX).contains(&value) {
                return Err(Error::runtime(format!("uniform_: {name}={value} is out of bounds for {}", T::NAME)));
            }
        }
        if from > to {
            return Err(Error::runtime(format!("uniform_: needs from <= to, but found from={from} > to={to}")));
        }
        if to - from > T::MAX {
            return Err(Error::runtime(format!("uniform_: to - from must be a finite {}, but found from={from} and to={to}", T::NAME)));
        }
        T::fill_uniform(self, out, from, to);
        Ok(())
    }
}

/// Draws words and hands them, with the slice they are for, to `map`.
pub(super) fn with_words<T>(stream: &mut Stream, out: &mut [T], mut map: impl FnMut(&[u32], &mut [T])) {
    let mut words = [0; N];
    for part in out.chunks_mut(N) {
        let words = &mut words[..part.len()];
        stream.twister.fill(words);
        map(words, part);
    }
}

/// Draws pairs of words and hands them, with the slice they are for, to `map`.
pub(super) fn with_pairs<T>(stream: &mut Stream, out: &mut [T], mut map: impl FnMut(&[u32], &mut [T])) {
    let mut words = [0; N];
    for part in out.chunks_mut(N / 2) {
        let words = &mut words[..2 * part.len()];
        stream.twister.fill(words);
        map(words, part);
    }
}

/// The fraction of [0, 1) that a word stands for.
#[inline(always)]
pub(super) fn fraction_f32(word: u32) -> f32 {
    const SCALE: f32 = 1.0 / (1 << 24) as f32;
    (word & 0xff_ffff) as i32 as f32 * SCALE
}

/// The fraction of [0, 1) that two words stand for.
#[inline(always)]
pub(super) fn fraction_f64(high: u32, low: u32) -> f64 {
    const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
    let high = f64::from((high & 0x1f_ffff) as i32);
    let low = f64::from((low ^ (1 << 31)) as i32) + 2_147_483_648.0;
    (high * 4_294_967_296.0 + low) * SCALE
}

wide! {
    fn scale_f32, scale_f32_portable(words: &[u32], out: &mut [f32], from: f32, to: f32) {
        let span = to - from;
        for (o, &word) in out.iter_mut().zip(words) {
            let value = fraction_f32(word).mul_add(span, from);
            *o = if value == to { from } else { value };
        }
    }
}

wide! {
    fn scale_f64, scale_f64_portable(words: &[u32], out: &mut [f64], from: f64, to: f64) {
        let span = to - from;
        for (o, pair) in out.iter_mut().zip(words.chunks_exact(2)) {
            let value = fraction_f64(pair[0], pair[1]).mul_add(span, from);
            *o = if value == to { from } else { value };
        }
    }
}

/// Half precision: drawn in `f32`, rounded, and compared with the rounded bound.
fn scale_half<T: Real>(words: &[u32], out: &mut [T], from: f64, to: f64) {
    let (low, span) = (from as f32, to as f32 - from as f32);
    let (first, last) = (T::from_f64(from), T::from_f64(to));
    for (o, &word) in out.iter_mut().zip(words) {
        let value = T::from_f64(f64::from(fraction_f32(word).mul_add(span, low)));
        *o = if value == last { first } else { value };
    }
}

impl Real for f32 {
    const LEAST: f64 = f32::MIN_POSITIVE as f64;

    fn fill_uniform(stream: &mut Stream, out: &mut [Self], from: f64, to: f64) {
        with_words(stream, out, |words, part| scale_f32(words, part, from as f32, to as f32));
    }
    fn fill_normal(stream: &mut Stream, out: &mut [Self], mean: f64, std: f64) {
        super::normal::fill_f32(stream, out, mean as f32, std as f32);
    }
}

impl Real for f64 {
    const LEAST: f64 = f64::MIN_POSITIVE;

    fn fill_uniform(stream: &mut Stream, out: &mut [Self], from: f64, to: f64) {
        with_pairs(stream, out, |words, part| scale_f64(words, part, from, to));
    }
    fn fill_normal(stream: &mut Stream, out: &mut [Self], mean: f64, std: f64) {
        super::normal::fill_f64(stream, out, mean, std);
    }
}

macro_rules! half_precision {
    ($($ty:ty, $least:expr;)*) => {$(
        impl Real for $ty {
            const LEAST: f64 = $least;

            fn fill_uniform(stream: &mut Stream, out: &mut [Self], from: f64, to: f64) {
                with_words(stream, out, |words, part| scale_half(words, part, from, to));
            }
            fn fill_normal(stream: &mut Stream, out: &mut [Self], mean: f64, std: f64) {
                super::normal::fill_half(stream, out, mean as f32, std as f32);
            }
        }
    )*};
}

half_precision! {
    f16, 1.0 / 16384.0;
    bf16, f32::MIN_POSITIVE as f64;
}
