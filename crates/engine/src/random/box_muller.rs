//! The Box-Muller transform of blocks of 16 uniform numbers, in `f32` to PyTorch's bits.
//!
//! Of a block, the first eight make the radii and the last eight the angles; the cosines replace the former and the
//! sines the latter. Logarithm and sine are those of the Cephes library (Moshier, 1989: `logf`, `sinf`), reduced
//! argument and polynomial, evaluated by Horner's rule with each step fused. PyTorch's kernel for AVX2 computes so, also
//! on machines with AVX-512. Which steps are fused was found by comparing bits: 320 million numbers are equal.

use std::f32::consts::{FRAC_1_SQRT_2, TAU};

/// Numbers of a block, and of each half of it.
pub(super) const BLOCK: usize = 16;
const HALF: usize = 8;

/// Horner's rule with fused steps, from the highest power down.
#[inline(always)]
fn horner<const K: usize>(x: f32, coefficients: [f32; K]) -> f32 {
    let mut y = coefficients[0];
    for c in &coefficients[1..] {
        y = y.mul_add(x, *c);
    }
    y
}

/// The natural logarithm of a normal positive number: Cephes `logf`.
#[inline(always)]
fn log(x: f32) -> f32 {
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LN_2_HIGH: f32 = 0.693_359_4;
    let bits = x.to_bits();
    let mantissa = f32::from_bits((bits & 0x807f_ffff) | 0x3f00_0000);
    let exponent = ((bits >> 23) as i32 - 126) as f32;
    let below = mantissa < FRAC_1_SQRT_2;
    let e = exponent - if below { 1.0 } else { 0.0 };
    let x = (mantissa - 1.0) + if below { mantissa } else { 0.0 };
    let z = x * x;
    let tail = horner(
        x,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_84e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_4e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    ) * x;
    let y = tail.mul_add(z, e * LN_2_LOW);
    let y = z.mul_add(-0.5, y);
    e.mul_add(LN_2_HIGH, x + y)
}

/// Sine and cosine of an angle of [0, 2π]: Cephes `sinf` and `cosf`.
#[inline(always)]
fn sin_cos(x: f32) -> (f32, f32) {
    const PI_4: [f32; 3] = [-0.785_156_25, -2.418_756_5e-4, -3.774_895e-8];
    const FOUR_OVER_PI: f32 = 1.273_239_5;
    // The octant, rounded up to an even one.
    let octant = ((x * FOUR_OVER_PI) as i32 + 1) & !1;
    let y = octant as f32;
    let x = y.mul_add(PI_4[2], y.mul_add(PI_4[1], y.mul_add(PI_4[0], x)));
    let z = x * x;
    let even = horner(z, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]) * z;
    let even = even.mul_add(z, -(z * 0.5)) + 1.0;
    let odd = horner(z, [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1]) * z;
    let odd = odd.mul_add(x, x);
    let swap = octant & 2 != 0;
    let (sin, cos) = if swap { (even, odd) } else { (odd, even) };
    let sin_sign = ((octant & 4) as u32) << 29;
    let cos_sign = ((!(octant - 2) & 4) as u32) << 29;
    (f32::from_bits(sin.to_bits() ^ sin_sign), f32::from_bits(cos.to_bits() ^ cos_sign))
}

wide! {
    /// Turns blocks of 16 numbers uniform on [0, 1) into normal ones; what is left over stays as it is.
    fn transform_f32, transform_f32_portable(data: &mut [f32], mean: f32, std: f32) {
        for block in data.chunks_exact_mut(BLOCK) {
            let (first, second) = block.split_at_mut(HALF);
            for j in 0..HALF {
                let radius = (-2.0 * log(1.0 - first[j])).sqrt();
                let (sin, cos) = sin_cos(TAU * second[j]);
                first[j] = (radius * cos).mul_add(std, mean);
                second[j] = (radius * sin).mul_add(std, mean);
            }
        }
    }
}

/// [`transform_f32`] in `f64`, with the functions of the system's mathematical library.
pub(super) fn transform_f64(data: &mut [f64], mean: f64, std: f64) {
    for block in data.chunks_exact_mut(BLOCK) {
        let (first, second) = block.split_at_mut(HALF);
        for (a, b) in first.iter_mut().zip(second) {
            let radius = (-2.0 * (1.0 - *a).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * *b).sin_cos();
            *a = (radius * cos).mul_add(std, mean);
            *b = (radius * sin).mul_add(std, mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fractions(count: usize) -> Vec<f32> {
        let mut data = vec![0.0; count];
        crate::random::Generator::with_seed(3).lock().uniform(&mut data, 0.0, 1.0).unwrap();
        data
    }

    #[test]
    fn baseline_and_avx2_give_the_same_bits() {
        let mut a = fractions(1 << 14);
        // The ends of the interval, and the octants of the angle.
        a[..8].copy_from_slice(&[0.0, 0.125, 0.25, 0.5, 0.75, 1.0 - 1.0 / 16_777_216.0, 0.875, 0.375]);
        a.copy_within(..8, 8);
        let mut b = a.clone();
        transform_f32(&mut a, 0.5, 1.5);
        transform_f32_portable(&mut b, 0.5, 1.5);
        assert!(a.iter().zip(&b).all(|(x, y)| x.to_bits() == y.to_bits()));
        assert!(a.iter().all(|x| x.is_finite()));
    }

    #[test]
    fn single_precision_follows_double() {
        let mut a = fractions(1 << 14);
        let mut b: Vec<f64> = a.iter().map(|&x| f64::from(x)).collect();
        transform_f32(&mut a, 0.0, 1.0);
        transform_f64(&mut b, 0.0, 1.0);
        for (x, y) in a.iter().zip(&b) {
            assert!((f64::from(*x) - y).abs() < 2e-6, "{x} {y}");
        }
    }
}
