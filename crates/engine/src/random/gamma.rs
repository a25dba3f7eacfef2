//! Gamma and Dirichlet draws.

use flambeau_base::{Error, Result};

use super::element::Real;
use super::generator::Stream;

impl Stream {
    /// Fills `out` with gamma numbers of the shapes `shapes` and scale 1, none below the type's least normal number.
    ///
    /// Marsaglia and Tsang's method (2000): for a shape below 1 two words for the boost of the shape by 1; then a
    /// number of [`Stream::normal_small`] and two words a trial. A shape of 0 takes none.
    ///
    /// # Errors
    /// When the lengths differ, or a shape is negative or not a number.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0f64; 2];
    /// Generator::with_seed(0).lock().gamma(&mut x, &[0.5, 9.0])?;
    /// assert!(x.iter().all(|&v| v > 0.0));
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn gamma<T: Real>(&mut self, out: &mut [T], shapes: &[T]) -> Result<()> {
        check("_standard_gamma", out, shapes)?;
        for (o, shape) in out.iter_mut().zip(shapes) {
            let value = self.one_gamma(shape.to_f64(), |x| T::from_f64(x).to_f64());
            *o = T::from_f64(value.max(T::LEAST));
        }
        Ok(())
    }

    /// Fills rows of `out`, `width` numbers each, with points of the simplex: Dirichlet draws of the shapes
    /// `shapes`. Each is a gamma number in `f64` over the sum of its row, kept inside (0, 1).
    ///
    /// # Errors
    /// When the lengths differ, a shape is negative or not a number, or `width` does not divide the length.
    pub fn dirichlet<T: Real>(&mut self, out: &mut [T], shapes: &[T], width: usize) -> Result<()> {
        check("_sample_dirichlet", out, shapes)?;
        if out.is_empty() {
            return Ok(());
        }
        if width == 0 || !out.len().is_multiple_of(width) {
            return Err(Error::runtime(format!("_sample_dirichlet: {} numbers do not make rows of {width}", out.len())));
        }
        let mut gammas = Vec::with_capacity(out.len());
        for shape in shapes {
            gammas.push(self.one_gamma(shape.to_f64(), |x| x).max(f64::MIN_POSITIVE));
        }
        let top = 1.0 - (-f64::from(T::DIGITS)).exp2();
        for (out, gammas) in out.chunks_exact_mut(width).zip(gammas.chunks_exact(width)) {
            let sum: f64 = gammas.iter().sum();
            for (o, gamma) in out.iter_mut().zip(gammas) {
                *o = T::from_f64((gamma / sum).clamp(T::LEAST, top));
            }
        }
        Ok(())
    }

    /// One gamma number, before rounding; `round` rounds to the type that the shape is held in.
    fn one_gamma(&mut self, shape: f64, round: impl Fn(f64) -> f64) -> f64 {
        // The reference holds these two in single precision.
        const THIRD: f64 = (1.0f32 / 3.0f32) as f64;
        const SQUEEZE: f64 = 0.0331f32 as f64;
        if shape == 0.0 {
            return 0.0;
        }
        let (mut boost, mut shape) = (1.0, shape);
        if shape < 1.0 {
            boost = (1.0 - self.unit_f64()).powf(round(1.0 / shape));
            shape = round(shape + 1.0);
        }
        let d = round(shape - THIRD);
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let (mut x, mut y) = (0.0, 0.0);
            while y <= 0.0 {
                x = self.one_normal(0.0, 1.0);
                y = 1.0 + c * x;
            }
            let v = y * y * y;
            let u = 1.0 - self.unit_f64();
            let xx = x * x;
            if u < 1.0 - SQUEEZE * xx * xx || u.ln() < 0.5 * xx + d * (1.0 - v + v.ln()) {
                return boost * d * v;
            }
        }
    }
}

fn check<T: Real>(operation: &str, out: &[T], shapes: &[T]) -> Result<()> {
    if out.len() != shapes.len() {
        return Err(Error::runtime(format!("{operation}: {} shapes for {} numbers", shapes.len(), out.len())));
    }
    match shapes.iter().map(|s| s.to_f64()).find(|s| s.is_nan() || *s < 0.0) {
        Some(bad) => Err(Error::runtime(format!("{operation}: shapes must not be negative, but one is {bad}"))),
        None => Ok(()),
    }
}
