//! The Box-Muller transform of blocks of 16 uniform numbers, in `f32` to PyTorch's bits.
//!
//! Of a block, the first eight make the radii and the last eight the angles; the cosines replace the former and the
//! sines the latter. Logarithm and sine are those of the Cephes library (Moshier, 1989: `logf`, `sinf`), reduced
//! argument and polynomial, evaluated by Horner's rule with each step fused. PyTorch's AVX2 kernel computes so; the
//! order of roundings below was fixed by comparing all bits on 2^24 logarithms and as many angles.

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
    const LN_2_HIGH: f32 = 0.693_359_375;
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
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_4e-1,
            -2.499_999_4e-1,
            3.333_333_1e-1,
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
    fn transform_f32(data: &mut [f32], mean: f32, std: f32) {
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
