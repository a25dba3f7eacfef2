//! The normal distribution and the scaled complementary error function.

use super::tables::*;
use super::{erfc, exp, log, log1p};
use std::f64::consts::FRAC_1_SQRT_2;

/// e^(x²) erfc(x).
pub fn erfcx(x: f64) -> f64 {
    let z = 3.0 / (x.abs() + 3.0);
    let y = z * ERFCX.at(z);
    if x >= 0.0 {
        return y;
    }
    if x < -27.0 {
        return f64::INFINITY;
    }
    // The square with its rounding error.
    let square = x * x;
    let lost = x.mul_add(x, -square);
    2.0 * exp(square) * (1.0 + lost) - y
}

/// Logarithm of the normal distribution function.
pub fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 { log(0.5 * erfcx(-t)) - t * t } else { log1p(-0.5 * erfc(t)) }
}

/// The normal quantile of `p`: infinite at 0 and 1, NaN outside.
pub fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * QUANTILE_MIDDLE.at(q * q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail == 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-log(tail)).sqrt();
    let x = if r <= 5.0 { QUANTILE_TAIL.at(r) } else { r * QUANTILE_END.at(1.0 / r) };
    x.copysign(q)
}
