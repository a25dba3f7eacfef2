//! Draws by inversion: exponential, Cauchy, geometric; and the log-normal.

use std::f64::consts::PI;

use flambeau_base::{Error, Result};

use super::element::{Element, Real};
use super::generator::Stream;

impl Stream {
    /// Fills `out` with exponential numbers of rate `lambda`: `-ln(1 - u) / lambda`. Two words a number.
    ///
    /// # Errors
    /// When `lambda` is not above 0.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0f32; 4];
    /// Generator::with_seed(0).lock().exponential(&mut x, 1.5)?;
    /// assert!(x.iter().all(|&v| v >= 0.0));
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn exponential<T: Real>(&mut self, out: &mut [T], lambda: f64) -> Result<()> {
        positive("exponential_", "lambda", lambda)?;
        let scale = -1.0 / lambda;
        self.invert(out, |u| scale * (-u).ln_1p());
        Ok(())
    }

    /// Fills `out` with Cauchy numbers about `median`, of half width `sigma`. Two words a number.
    ///
    /// # Errors
    /// When `sigma` is not above 0.
    pub fn cauchy<T: Real>(&mut self, out: &mut [T], median: f64, sigma: f64) -> Result<()> {
        positive("cauchy_", "sigma", sigma)?;
        self.invert(out, |u| sigma.mul_add((PI * (u - 0.5)).tan(), median));
        Ok(())
    }

    /// Fills `out` with the number of trials, of success probability `p`, up to the first success. Two words a
    /// number.
    ///
    /// # Errors
    /// When `p` does not lie inside (0, 1).
    pub fn geometric<T: Element>(&mut self, out: &mut [T], p: f64) -> Result<()> {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::runtime(format!("geometric_: p must be in (0, 1), but got p={p}")));
        }
        let failure = (-p).ln_1p();
        self.invert(out, |u| (u.ln() / failure).ceil());
        Ok(())
    }

    /// Fills `out` with exponentials of normal numbers of mean `mean` and deviation `std`, which are drawn as
    /// [`Stream::normal_small`] draws them: four words for two numbers, the second one kept for the next draw.
    ///
    /// # Errors
    /// When `std` is not above 0.
    pub fn log_normal<T: Real>(&mut self, out: &mut [T], mean: f64, std: f64) -> Result<()> {
        positive("log_normal_", "std", std)?;
        for value in out {
            *value = T::from_f64(self.one_normal(mean, std).exp());
        }
        Ok(())
    }

    /// Fills `out` with the slopes of a randomised leaky ReLU: 1 where `input` is above 0, else uniform between the
    /// bounds, which are rounded to the type first. Two words a slope that is drawn. For `bf16` PyTorch draws the
    /// slopes in `f32`, and rounds the product.
    ///
    /// # Errors
    /// When the lengths differ or `lower > upper`.
    pub fn rrelu_slopes<T: Real>(&mut self, out: &mut [T], input: &[T], lower: f64, upper: f64) -> Result<()> {
        if out.len() != input.len() {
            return Err(Error::runtime(format!("rrelu: {} slopes for {} numbers", out.len(), input.len())));
        }
        if lower.is_nan() || upper.is_nan() || lower > upper {
            return Err(Error::runtime(format!("rrelu: needs lower <= upper, but got {lower} and {upper}")));
        }
        let (from, to) = (T::from_f64(lower).to_f64(), T::from_f64(upper).to_f64());
        for (o, x) in out.iter_mut().zip(input) {
            let slope = if x.to_f64() <= 0.0 { self.unit_f64() * (to - from) + from } else { 1.0 };
            *o = T::from_f64(slope);
        }
        Ok(())
    }

    /// Fills `out` with `quantile` of uniform numbers.
    fn invert<T: Element>(&mut self, out: &mut [T], quantile: impl Fn(f64) -> f64) {
        for value in out {
            *value = T::from_f64(quantile(self.unit_f64()));
        }
    }
}

fn positive(operation: &str, name: &str, value: f64) -> Result<()> {
    if value > 0.0 { Ok(()) } else { Err(Error::runtime(format!("{operation}: needs {name} > 0, but found {name}={value}"))) }
}
