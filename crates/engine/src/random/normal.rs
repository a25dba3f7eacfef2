//! Normal draws, small and large.

use std::f64::consts::TAU;

use flambeau_base::{Error, Result};

use super::box_muller::{BLOCK, transform_f32, transform_f64};
use super::element::Real;
use super::generator::Stream;

impl Stream {
    /// Fills `out` with normal numbers of mean `mean` and standard deviation `std`: what PyTorch does to a
    /// contiguous tensor.
    ///
    /// Under 16 numbers this is [`Stream::normal_small`]. From 16 on, Box and Muller's transform (1958) runs over
    /// blocks of 16: one word a number, two in `f64`, half precision in `f32`. When 16 does not divide the length,
    /// the last 16 numbers are drawn again, from 16 fresh fractions; `f32` and `f64` have by then also taken words
    /// for the incomplete block, half precision has not. A pending second value is left alone.
    ///
    /// # Errors
    /// When `std` is negative or not a number.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0f32; 16];
    /// Generator::with_seed(0).lock().normal(&mut x, 0.0, 1.0)?;
    /// assert_eq!(x[0], -1.1258398);
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn normal<T: Real>(&mut self, out: &mut [T], mean: f64, std: f64) -> Result<()> {
        if out.len() < BLOCK {
            return self.normal_small(out, mean, std);
        }
        check_std(std)?;
        T::fill_normal(self, out, mean, std);
        Ok(())
    }

    /// The small form of the normal draw, at any length: what PyTorch does to fewer than 16 numbers, and to a tensor
    /// that is not contiguous.
    ///
    /// Four words make two numbers in `f64`. The second waits in the generator, across calls and types, for the
    /// next number of a small draw.
    ///
    /// # Errors
    /// When `std` is negative or not a number.
    pub fn normal_small<T: Real>(&mut self, out: &mut [T], mean: f64, std: f64) -> Result<()> {
        check_std(std)?;
        for value in out {
            *value = T::from_f64(self.one_normal(mean, std));
        }
        Ok(())
    }

    /// One number of the small form.
    pub(super) fn one_normal(&mut self, mean: f64, std: f64) -> f64 {
        let standard = self.next_normal.take().unwrap_or_else(|| {
            let (angle, depth) = (self.unit_f64(), self.unit_f64());
            let radius = (-2.0 * (-depth).ln_1p()).sqrt();
            let (sin, cos) = (TAU * angle).sin_cos();
            self.next_normal = Some(radius * sin);
            radius * cos
        });
        standard.mul_add(std, mean)
    }
}

fn check_std(std: f64) -> Result<()> {
    if std >= 0.0 { Ok(()) } else { Err(Error::runtime(format!("normal_: needs std >= 0, but found std={std}"))) }
}

/// The large form in `f32`.
pub(super) fn fill_f32(stream: &mut Stream, out: &mut [f32], mean: f32, std: f32) {
    // A part stays in the first-level cache between the two passes over it.
    for part in out.chunks_mut(64 * BLOCK) {
        f32::fill_uniform(stream, part, 0.0, 1.0);
        transform_f32(part, mean, std);
    }
    if let Some(tail) = tail(out) {
        f32::fill_uniform(stream, tail, 0.0, 1.0);
        transform_f32(tail, mean, std);
    }
}

/// The large form in `f64`.
pub(super) fn fill_f64(stream: &mut Stream, out: &mut [f64], mean: f64, std: f64) {
    f64::fill_uniform(stream, out, 0.0, 1.0);
    transform_f64(out, mean, std);
    if let Some(tail) = tail(out) {
        f64::fill_uniform(stream, tail, 0.0, 1.0);
        transform_f64(tail, mean, std);
    }
}

/// The large form in half precision: no words for an incomplete block.
pub(super) fn fill_half<T: Real>(stream: &mut Stream, out: &mut [T], mean: f32, std: f32) {
    let mut draw = |part: &mut [T]| {
        let mut buffer = [0.0; 32 * BLOCK];
        let buffer = &mut buffer[..part.len()];
        f32::fill_uniform(stream, buffer, 0.0, 1.0);
        transform_f32(buffer, mean, std);
        for (o, &value) in part.iter_mut().zip(&*buffer) {
            *o = T::from_f64(f64::from(value));
        }
    };
    let whole = out.len() / BLOCK * BLOCK;
    out[..whole].chunks_mut(32 * BLOCK).for_each(&mut draw);
    if let Some(tail) = tail(out) {
        draw(tail);
    }
}

/// The last 16 numbers, where they are to be drawn again.
fn tail<T>(out: &mut [T]) -> Option<&mut [T]> {
    let start = out.len() - BLOCK;
    (!out.len().is_multiple_of(BLOCK)).then(|| &mut out[start..])
}
