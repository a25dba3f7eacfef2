//! Bernoulli draws and the mask of dropout.

use flambeau_base::{Error, Result};

use super::element::{Element, Real};
use super::generator::Stream;
use super::uniform::{fraction_f32, fraction_f64, with_pairs, with_words};

impl Stream {
    /// Fills `out` with ones of probability `p`, and zeros.
    ///
    /// Two words a number, whatever the type and whatever `p`.
    ///
    /// # Errors
    /// When `p` does not lie in [0, 1].
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [false; 8];
    /// Generator::with_seed(0).lock().bernoulli(&mut x, 1.0)?;
    /// assert_eq!(x, [true; 8]);
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn bernoulli<T: Element>(&mut self, out: &mut [T], p: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::runtime(format!("bernoulli_: p must be in [0, 1], but got p={p}")));
        }
        self.coins(out, p, T::from_i64(1));
        Ok(())
    }

    /// Fills `out` with ones of the probabilities `p`, and zeros.
    ///
    /// One word a number, two where the probabilities are `f64`; the type of `out` plays no part. This is
    /// `bernoulli(p)`, and `bernoulli_` with a tensor.
    ///
    /// # Errors
    /// When the lengths differ, or a probability does not lie in [0, 1].
    pub fn bernoulli_each<T: Element, P: Real>(&mut self, out: &mut [T], p: &[P]) -> Result<()> {
        if out.len() != p.len() {
            return Err(Error::runtime(format!("bernoulli: {} probabilities for {} numbers; give one for each", p.len(), out.len())));
        }
        if let Some(bad) = p.iter().map(|p| p.to_f64()).find(|p| !(0.0..=1.0).contains(p)) {
            return Err(Error::runtime(format!("bernoulli: probabilities must be in [0, 1], but got p={bad}")));
        }
        let mut rest = p.iter();
        if P::WIDE {
            with_pairs(self, out, |words, part| {
                for ((o, pair), p) in part.iter_mut().zip(words.chunks_exact(2)).zip(&mut rest) {
                    *o = T::from_i64(i64::from(fraction_f64(pair[0], pair[1]) < p.to_f64()));
                }
            });
        } else {
            with_words(self, out, |words, part| {
                for ((o, &word), p) in part.iter_mut().zip(words).zip(&mut rest) {
                    *o = T::from_i64(i64::from(f64::from(fraction_f32(word)) < p.to_f64()));
                }
            });
        }
        Ok(())
    }

    /// Fills `out` with what dropout of probability `p` multiplies by: 0, or 1 / (1 - p) rounded to the type.
    ///
    /// Two words a number, drawn as `bernoulli(1 - p)`. With `p = 1` all are 0 and with `p = 0` all are 1, and
    /// PyTorch then draws nothing; neither does this.
    ///
    /// # Errors
    /// When `p` does not lie in [0, 1].
    pub fn dropout_mask<T: Real>(&mut self, out: &mut [T], p: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::runtime(format!("dropout: p must be in [0, 1], but got p={p}")));
        }
        if p == 0.0 || p == 1.0 {
            out.fill(T::from_f64(1.0 - p));
        } else {
            let keep = 1.0 - p;
            self.coins(out, keep, T::from_f64(1.0 / keep));
        }
        Ok(())
    }

    /// `heads` with probability `p`, else 0.
    fn coins<T: Element>(&mut self, out: &mut [T], p: f64, heads: T) {
        // A fraction k / 2^53 lies below p just where the integer k lies below p * 2^53, rounded up.
        let threshold = (p * 53f64.exp2()).ceil() as u64;
        let tails = T::default();
        with_pairs(self, out, |words, part| {
            for (o, pair) in part.iter_mut().zip(words.chunks_exact(2)) {
                let k = u64::from(pair[0] & 0x1f_ffff) << 32 | u64::from(pair[1]);
                *o = if k < threshold { heads } else { tails };
            }
        });
    }
}
