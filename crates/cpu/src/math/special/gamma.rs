//! The gamma function's logarithm, its derivatives, and Hurwitz's zeta function.

use super::tables::*;
use super::{cos, exp, log, log1p, pow, sin};
use std::f64::consts::PI;

/// 1 - Euler's constant.
const ONE_LESS_GAMMA: f64 = 0.422_784_335_098_467_14;
/// log(2π) / 2.
const HALF_LOG_2PI: f64 = 0.918_938_533_204_672_8;

/// sin(π x), exact where it is zero.
pub(super) fn sin_pi(x: f64) -> f64 {
    // From the nearest even number, of which the sine does not change.
    let r = x - 2.0 * (0.5 * x).round_ties_even();
    let sign = if r < 0.0 { -1.0 } else { 1.0 };
    let a = r.abs();
    let a = if a > 0.5 { 1.0 - a } else { a };
    sign * sin(PI * a)
}

/// log Γ(2 + z) for |z| <= 1/2.
fn around_two(z: f64) -> f64 {
    let sum = LGAMMA_SERIES.iter().rev().fold(0.0, |sum, c| sum * z + c);
    z * (ONE_LESS_GAMMA + z * sum)
}

/// log Γ(1 + z) for |z| <= 1/2.
pub(super) fn lgamma1p(z: f64) -> f64 {
    around_two(z) - log1p(z)
}

/// What Stirling's formula leaves out of log Γ(x): x >= 10.
pub(super) fn stirling_rest(x: f64) -> f64 {
    let t = 1.0 / (x * x);
    STIRLING.iter().rev().fold(0.0, |sum, c| sum * t + c) / x
}

/// log |Γ(x)|; infinity at 0, the negative integers and both ends.
pub fn lgamma(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() == f64::INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::INFINITY;
    }
    if x < 0.5 {
        return if x > -0.5 { lgamma1p(x) - log(x.abs()) } else { log(PI / sin_pi(x).abs()) - lgamma(1.0 - x) };
    }
    if x >= 10.0 {
        return (x - 0.5) * log(x) - x + (HALF_LOG_2PI + stirling_rest(x));
    }
    if x < 1.5 {
        return lgamma1p(x - 1.0);
    }
    let (mut x, mut product) = (x, 1.0);
    while x > 2.5 {
        x -= 1.0;
        product *= x;
    }
    if product == 1.0 { around_two(x - 2.0) } else { log(product) + around_two(x - 2.0) }
}

/// Derivative of log Γ: NaN at the negative integers, infinite at 0 with the sign that zero does not have.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // The cotangent has period 1.
        let r = x - x.round_ties_even();
        return digamma(1.0 - x) - PI * cos(PI * r) / sin(PI * r);
    }
    let (mut x, mut low) = (x, 0.0);
    while x < 10.0 {
        low -= 1.0 / x;
        x += 1.0;
    }
    if x == f64::INFINITY {
        return x;
    }
    let t = 1.0 / (x * x);
    let rest = DIGAMMA_SERIES.iter().rev().fold(0.0, |sum, c| sum * t + c) * t;
    low + (log(x) - 0.5 / x - rest)
}

/// Hurwitz's zeta function, the sum of (q + k)^-s: infinite at s = 1, NaN below; infinite where q + k is zero.
///
/// By Euler and Maclaurin's formula (DLMF 25.11.28) after the first terms.
pub fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s < 1.0 || s.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if s != s.floor() {
            return f64::NAN;
        }
    }
    let (mut a, mut sum) = (q, 0.0);
    let mut terms = 0;
    while terms < 9 || a <= 9.0 {
        let term = pow(a, -s);
        sum += term;
        a += 1.0;
        terms += 1;
        if term.abs() < f64::EPSILON * 0.125 * f64::abs(sum) && a > 0.0 {
            return sum;
        }
        if terms > 20_000_000 {
            break;
        }
    }
    let b = pow(a, -s);
    sum += b * a / (s - 1.0) + 0.5 * b;
    let (mut factor, mut power) = (s, b / a);
    for (k, c) in EULER_MACLAURIN.iter().enumerate() {
        let term = c * factor * power;
        sum += term;
        if term.abs() < f64::EPSILON * 0.125 * sum.abs() {
            break;
        }
        let k = 2.0 * k as f64;
        factor *= (s + k + 1.0) * (s + k + 2.0);
        power /= a * a;
    }
    sum
}

/// [`polygamma`] for single precision. The reflection of the first is taken in it, as PyTorch does: at a pole it gives the large
/// number, not infinity, that single precision's pi makes of it.
pub fn polygamma_single(x: f64, n: f64) -> f64 {
    if n != 1.0 || x >= 0.5 {
        return polygamma(x, n);
    }
    let pi = std::f32::consts::PI;
    let s = (pi * x as f32).sin();
    f64::from(pi * pi / (s * s)) - zeta(2.0, 1.0 - x)
}

/// Derivative of order `n` of the digamma function.
pub fn polygamma(x: f64, n: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n == 1.0 && x < 0.5 {
        let s = sin_pi(x);
        return (PI / s) * (PI / s) - zeta(2.0, 1.0 - x);
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    let factorial = if n <= 170.0 { (1..=n as u64).fold(1.0, |p, k| p * k as f64) } else { exp(lgamma(n + 1.0)) };
    sign * factorial * zeta(n + 1.0, x)
}
