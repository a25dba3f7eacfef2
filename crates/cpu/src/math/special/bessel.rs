//! Bessel functions of orders 0 and 1, and Airy's.

use super::tables::*;
use super::{Series, cos, exp, log, sin};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

/// The amplitude sqrt(2 / (π x)), and cos χ, sin χ, P, Q of Hankel's form with χ = x - order π/2 - π/4 (DLMF 10.17).
fn hankel<const N: usize, const M: usize>(x: f64, order: u8, p: &Series<N>, q: &Series<M>) -> (f64, [f64; 2], [f64; 2]) {
    let t = 8.0 / x;
    let (s, c) = (sin(x), cos(x));
    let (plus, minus) = ((c + s) * FRAC_1_SQRT_2, (s - c) * FRAC_1_SQRT_2);
    let turned = if order == 0 { [plus, minus] } else { [minus, -plus] };
    ((FRAC_2_PI / x).sqrt(), turned, [p.at(t * t), q.at(t * t) * t])
}

fn first_kind<const N: usize, const M: usize>(x: f64, order: u8, p: &Series<N>, q: &Series<M>) -> f64 {
    let (amplitude, [c, s], [p, q]) = hankel(x, order, p, q);
    if x == f64::INFINITY { 0.0 } else { amplitude * (p * c - q * s) }
}

fn second_kind<const N: usize, const M: usize>(x: f64, order: u8, p: &Series<N>, q: &Series<M>) -> f64 {
    let (amplitude, [c, s], [p, q]) = hankel(x, order, p, q);
    if x == f64::INFINITY { 0.0 } else { amplitude * (p * s + q * c) }
}

/// Bessel function of the first kind, order 0.
pub fn j0(x: f64) -> f64 {
    let x = x.abs();
    if x <= 8.0 { J0_NEAR.at(x * x) } else { first_kind(x, 0, &P0, &Q0) }
}

/// Bessel function of the first kind, order 1.
pub fn j1(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 {
        return x * J1_NEAR.at(x * x);
    }
    let y = first_kind(a, 1, &P1, &Q1);
    if x < 0.0 { -y } else { y }
}

/// Bessel function of the second kind, order 0; minus infinity at 0, NaN below.
pub fn y0(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x <= 8.0 { Y0_NEAR.at(x * x) + FRAC_2_PI * log(x) * j0(x) } else { second_kind(x, 0, &P0, &Q0) }
}

/// Bessel function of the second kind, order 1; minus infinity at 0, NaN below.
pub fn y1(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x <= 8.0 { x * Y1_NEAR.at(x * x) + FRAC_2_PI * (log(x) * j1(x) - 1.0 / x) } else { second_kind(x, 1, &P1, &Q1) }
}

/// e^-|x| I0(x).
pub fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x <= 8.0 { I0_NEAR.at(x) } else { I0_FAR.at(8.0 / x) / x.sqrt() }
}

/// e^-|x| I1(x).
pub fn i1e(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 { x * I1_NEAR.at(a) } else { (I1_FAR.at(8.0 / a) / a.sqrt()).copysign(x) }
}

/// e^|x| times a factor that it may overflow before.
fn grown(x: f64, factor: f64) -> f64 {
    let half = exp(0.5 * x.abs());
    half * factor * half
}

/// Modified Bessel function of the first kind, order 0.
pub fn i0(x: f64) -> f64 {
    if x.abs() == f64::INFINITY { f64::INFINITY } else { grown(x, i0e(x)) }
}

/// Modified Bessel function of the first kind, order 1.
pub fn i1(x: f64) -> f64 {
    if x.abs() == f64::INFINITY { x } else { grown(x, i1e(x)) }
}

/// Modified Bessel function of the second kind: infinity at 0, NaN below; `scaled` by e^x or not.
fn third<const N: usize>(x: f64, scaled: bool, near: fn(f64) -> f64, far: &Series<N>) -> f64 {
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x <= 2.0 {
        return if scaled { near(x) * exp(x) } else { near(x) };
    }
    let y = far.at(2.0 / x) / x.sqrt();
    if scaled { y } else { exp(-x) * y }
}

fn k0_near(x: f64) -> f64 {
    K0_NEAR.at(x * x) - log(0.5 * x) * i0(x)
}

fn k1_near(x: f64) -> f64 {
    K1_NEAR.at(x * x) / x + log(0.5 * x) * i1(x)
}

/// Modified Bessel function of the second kind, order 0.
pub fn k0(x: f64) -> f64 {
    third(x, false, k0_near, &K0_FAR)
}

/// e^x K0(x).
pub fn k0e(x: f64) -> f64 {
    third(x, true, k0_near, &K0_FAR)
}

/// Modified Bessel function of the second kind, order 1.
pub fn k1(x: f64) -> f64 {
    third(x, false, k1_near, &K1_FAR)
}

/// e^x K1(x).
pub fn k1e(x: f64) -> f64 {
    third(x, true, k1_near, &K1_FAR)
}

/// sin(x) / x.
pub fn spherical_j0(x: f64) -> f64 {
    if x.abs() == f64::INFINITY {
        return 0.0;
    }
    if x.abs() >= 0.5 {
        return sin(x) / x;
    }
    let t = x * x;
    // The series of the sine.
    [210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0].iter().fold(1.0, |sum, d| 1.0 - t / d * sum)
}

/// Airy function (DLMF 9.7).
pub fn airy(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    let root = size.sqrt();
    let cube = size * root;
    let zeta = cube / 1.5;
    if x > 110.0 || zeta == f64::INFINITY {
        return 0.0;
    }
    // What rounding took from zeta, which is large where it is a phase or an exponent.
    let lost = || (size.mul_add(root, -cube) + size * root.mul_add(-root, size) / (2.0 * root) + zeta.mul_add(-1.5, cube)) / 1.5;
    if x > 2.0 {
        return exp(-zeta) * (1.0 - lost()) * AIRY_FAR.at(1.0 / zeta) / (2.0 * PI.sqrt() * root.sqrt());
    }
    if x >= 0.0 {
        return AIRY_NEAR.at(x);
    }
    if x >= -4.0 {
        return AIRY_WAVE.at(x);
    }
    let t = 16.0 / (3.0 * zeta);
    let (s, c, lost) = (sin(zeta), cos(zeta), lost());
    let (s, c) = (s + lost * c, c - lost * s);
    // cos and sin of zeta - π/4.
    let (c, s) = ((c + s) * FRAC_1_SQRT_2, (s - c) * FRAC_1_SQRT_2);
    (c * AIRY_P.at(t * t) + s * AIRY_Q.at(t * t) / zeta) / (PI.sqrt() * root.sqrt())
}
