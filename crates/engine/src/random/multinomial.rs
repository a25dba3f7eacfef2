//! Draws from a table of weights.

use flambeau_base::{Error, Result};

use super::element::Real;
use super::generator::Stream;
use super::select::first_k;

/// Categories that PyTorch allows.
const MOST_CATEGORIES: usize = 1 << 24;

impl Stream {
    /// Fills each row of `out` (`samples` long) with category numbers, drawn in proportion to the same row of
    /// `weights` (`categories` long), which need not sum to one.
    ///
    /// With replacement and two samples or more: two words a sample, looked up by bisection in the row's running
    /// sums, which are taken from left to right in the type of the weights (`f32` for half precision).
    ///
    /// Without replacement, and for a single sample: an exponential number for each weight, two words each, and the categories of the greatest quotients
    /// weight / exponential, from the greatest down (Efraimidis and Spirakis, 2006). Weights of 0 come last.
    ///
    /// # Errors
    /// When the sizes do not fit, a weight is negative or not finite, a row has no weight above 0, no sample is
    /// asked for, or more than there are categories without replacement.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0; 6];
    /// Generator::with_seed(0).lock().multinomial(&[0.0f32, 3.0, 1.0], 3, &mut x, 6, true)?;
    /// assert!(x.iter().all(|&c| c == 1 || c == 2));
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn multinomial<T: Real>(
        &mut self,
        weights: &[T],
        categories: usize,
        out: &mut [i64],
        samples: usize,
        replacement: bool,
    ) -> Result<()> {
        if samples == 0 {
            return Err(Error::runtime("multinomial: cannot draw num_samples=0 samples; ask for one or more"));
        }
        if !replacement && samples > categories {
            return Err(Error::runtime(format!(
                "multinomial: cannot draw num_samples={samples} of {categories} categories without replacement"
            )));
        }
        if categories > MOST_CATEGORIES {
            return Err(Error::runtime(format!("multinomial: {categories} categories are more than {MOST_CATEGORIES} (2^24)")));
        }
        let rows = out.len() / samples;
        if rows * samples != out.len() || rows * categories != weights.len() || (categories == 0 && rows > 0) {
            return Err(Error::runtime(format!(
                "multinomial: {} weights of {categories} categories do not fit {} results of {samples} samples",
                weights.len(),
                out.len()
            )));
        }
        if rows == 0 {
            return Ok(());
        }
        for row in weights.chunks_exact(categories) {
            check_row(row)?;
        }
        for (row, out) in weights.chunks_exact(categories).zip(out.chunks_exact_mut(samples)) {
            if replacement && samples > 1 { self.by_bisection(row, out) } else { self.by_race(row, out) }
        }
        Ok(())
    }

    fn by_bisection<T: Real>(&mut self, weights: &[T], out: &mut [i64]) {
        // Rounding a sum or quotient of f32 from f64 to f32 gives what f32 arithmetic would.
        let round = |x: f64| if T::DIGITS == f64::MANTISSA_DIGITS { x } else { f64::from(x as f32) };
        let mut sum = 0.0;
        let mut sums: Vec<f64> = Vec::with_capacity(weights.len());
        for weight in weights {
            sum = round(sum + weight.to_f64());
            sums.push(sum);
        }
        for value in &mut sums {
            *value = round(*value / sum);
        }
        if let Some(last) = sums.last_mut() {
            *last = 1.0;
        }
        for o in out {
            let u = self.unit_f64();
            *o = sums.partition_point(|&s| s < u) as i64;
        }
    }

    fn by_race<T: Real>(&mut self, weights: &[T], out: &mut [i64]) {
        let round = |x: f64| if T::DIGITS == f64::MANTISSA_DIGITS { x } else { f64::from(x as f32) };
        let mut race: Vec<(f64, i64)> = Vec::with_capacity(weights.len());
        for (i, weight) in weights.iter().enumerate() {
            let time = T::from_f64(-(-self.unit_f64()).ln_1p());
            let speed = T::from_f64(round(weight.to_f64() / time.to_f64()));
            race.push((speed.to_f64(), i as i64));
        }
        // A quotient of 0 by 0 is no number, and first. Of one sample PyTorch asks for the greatest, which is the
        // first of equals; of more, for a selection, which has an order of its own.
        let before = |a: &(f64, i64), b: &(f64, i64)| (a.0.is_nan() && !b.0.is_nan()) || a.0 > b.0;
        if out.len() == 1 {
            let first = race.iter().copied().reduce(|best, next| if before(&next, &best) { next } else { best });
            race.truncate(0);
            race.extend(first);
        } else {
            first_k(&mut race, out.len(), &before);
        }
        for (o, (_, category)) in out.iter_mut().zip(race) {
            *o = category;
        }
    }
}

fn check_row<T: Real>(row: &[T]) -> Result<()> {
    let mut any = false;
    for weight in row {
        let weight = weight.to_f64();
        if !(0.0..f64::INFINITY).contains(&weight) {
            return Err(Error::runtime(format!("multinomial: weights must be finite and not negative, but one is {weight}")));
        }
        any |= weight > 0.0;
    }
    if any { Ok(()) } else { Err(Error::runtime("multinomial: a row of weights has none above 0")) }
}
