//! Elementary functions of complex numbers of two `f64`, one number at a time. Numbers of two `f32` are computed here
//! and rounded.
//!
//! Branch cuts and signed zeros after W. Kahan, *Branch cuts for complex elementary functions* (1987); values at
//! infinity after annex G of ISO C.

use super::special::{asinh, atan2, cos, cosh, exp, expm1, hypot, log, log1p, pow as real_pow, sin, sinh};
use num_complex::Complex64 as C;
use std::f64::consts::{FRAC_PI_2, LN_2, LN_10};

fn c(re: f64, im: f64) -> C {
    C::new(re, im)
}

/// i z.
fn turned(z: C) -> C {
    c(-z.im, z.re)
}

/// -i z.
fn turned_back(z: C) -> C {
    c(z.im, -z.re)
}

/// The product of a factor, which may be infinite, and the point at an angle; an infinite factor keeps signs alone.
fn at_angle(factor: f64, [x, y]: [f64; 2]) -> C {
    let part = |p: f64| if p == 0.0 { p } else { factor * p };
    c(part(x), part(y))
}

/// e^z.
pub fn exponential(z: C) -> C {
    if z.im == 0.0 {
        return c(exp(z.re), z.im);
    }
    if z.re == f64::NEG_INFINITY {
        return if z.im.is_finite() { c(0.0 * cos(z.im), 0.0 * sin(z.im)) } else { c(0.0, 0.0) };
    }
    if z.re == f64::INFINITY && !z.im.is_finite() {
        return c(f64::INFINITY, f64::NAN);
    }
    // In two factors, the first of which may not overflow.
    let half = exp(0.5 * z.re);
    let point = [cos(z.im), sin(z.im)];
    if !(1e-100..=1e100).contains(&half) { at_angle(half, [point[0] * half, point[1] * half]) } else { at_angle(exp(z.re), point) }
}

/// 2^z.
pub fn exp2(z: C) -> C {
    exponential(c(z.re * LN_2, z.im * LN_2))
}

/// e^z - 1.
pub fn exp_minus_1(z: C) -> C {
    let half = sin(0.5 * z.im);
    let re = expm1(z.re) * cos(z.im) - 2.0 * half * half;
    c(re, if z.im == 0.0 { z.im } else { exp(z.re) * sin(z.im) })
}

/// log |z|, accurate also near the unit circle.
fn log_abs(z: C) -> f64 {
    let (a, b) = (z.re.abs(), z.im.abs());
    let (a, b) = if a < b { (b, a) } else { (a, b) };
    if a == f64::INFINITY {
        return a;
    }
    if a > 1e300 {
        return log(hypot(0.5 * a, 0.5 * b)) + LN_2;
    }
    if a > 0.5 && a < 2.0 { 0.5 * log1p((a - 1.0) * (a + 1.0) + b * b) } else { log(hypot(a, b)) }
}

/// Principal logarithm.
pub fn ln(z: C) -> C {
    c(log_abs(z), atan2(z.im, z.re))
}

/// Base-2 logarithm.
pub fn log2(z: C) -> C {
    ln(z) / LN_2
}

/// Base-10 logarithm.
pub fn log10(z: C) -> C {
    ln(z) / LN_10
}

/// log(1 + z).
pub fn ln_1p(z: C) -> C {
    if z.re.abs() > 0.5 || z.im.abs() > 0.5 {
        return ln(c(1.0 + z.re, z.im));
    }
    c(0.5 * log1p(z.re * (2.0 + z.re) + z.im * z.im), atan2(z.im, 1.0 + z.re))
}

/// Principal square root.
pub fn sqrt(z: C) -> C {
    if z.re == 0.0 && z.im == 0.0 {
        return c(0.0, z.im);
    }
    if z.im.abs() == f64::INFINITY {
        return c(f64::INFINITY, z.im);
    }
    if z.re == f64::INFINITY {
        return c(z.re, if z.im.is_nan() { z.im } else { 0f64.copysign(z.im) });
    }
    if z.re == f64::NEG_INFINITY {
        return if z.im.is_nan() { c(f64::NAN, f64::INFINITY) } else { c(0.0, f64::INFINITY.copysign(z.im)) };
    }
    // Scaled by an even power of 2, so that nothing overflows or is lost.
    let largest = z.re.abs().max(z.im.abs());
    let (up, down) = match largest {
        a if a > 1e300 => (f64::powi(2.0, -4), 4.0),
        a if a < 1e-290 => (f64::powi(2.0, 108), f64::powi(2.0, -54)),
        _ => (1.0, 1.0),
    };
    let (x, y) = (z.re * up, z.im * up);
    let t = (0.5 * (x.abs() + hypot(x, y))).sqrt();
    let other = y.abs() / (2.0 * t);
    let (re, im) = if x >= 0.0 { (t, other) } else { (other, t) };
    c(re * down, (im * down).copysign(y))
}

/// 1 / sqrt(z).
pub fn rsqrt(z: C) -> C {
    reciprocal(sqrt(z))
}

/// z / w. A zero divisor gives infinite and undefined parts.
pub fn divide(z: C, w: C) -> C {
    if w.re == 0.0 && w.im == 0.0 {
        return c(z.re / w.re.abs(), z.im / w.im.abs());
    }
    // After R. L. Smith (1962).
    if w.re.abs() >= w.im.abs() {
        let ratio = w.im / w.re;
        let scale = 1.0 / (w.re + w.im * ratio);
        c((z.re + z.im * ratio) * scale, (z.im - z.re * ratio) * scale)
    } else {
        let ratio = w.re / w.im;
        let scale = 1.0 / (w.re * ratio + w.im);
        c((z.re * ratio + z.im) * scale, (z.im * ratio - z.re) * scale)
    }
}

/// 1 / z.
pub fn reciprocal(z: C) -> C {
    divide(c(1.0, 0.0), z)
}

/// Hyperbolic sine.
pub fn sinh_of(z: C) -> C {
    hyperbolic(z, sinh, cosh)
}

/// Hyperbolic cosine.
pub fn cosh_of(z: C) -> C {
    hyperbolic(z, cosh, sinh)
}

/// `f(x) cos(y) + i g(x) sin(y)`, for the hyperbolic sine and cosine in this order or the other.
fn hyperbolic(z: C, f: fn(f64) -> f64, g: fn(f64) -> f64) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(f(x), if g(x) < 0.0 { -y } else { y });
    }
    let point = [cos(y), sin(y)];
    if x.abs() > 709.0 && x.is_finite() {
        // Both are e^|x| / 2, with signs.
        let half = exp(0.5 * x.abs());
        let sign = |h: fn(f64) -> f64| if h(x) < 0.0 { -0.5 } else { 0.5 };
        return c(half * (half * point[0] * sign(f)), half * (half * point[1] * sign(g)));
    }
    let part = |a: f64, b: f64| if a == 0.0 && !b.is_finite() { a } else { a * b };
    c(part(f(x), point[0]), part(g(x), point[1]))
}

/// Hyperbolic tangent.
pub fn tanh_of(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x.abs() > 22.0 {
        let im = if y.is_finite() { 4.0 * sin(y) * cos(y) * exp(-2.0 * x.abs()) } else { 0f64.copysign(y) };
        return c(1f64.copysign(x), im);
    }
    let t = sin(y) / cos(y);
    let t = if y == 0.0 { y } else { t };
    let (beta, s) = (1.0 + t * t, sinh(x));
    let rho = (1.0 + s * s).sqrt();
    let denominator = 1.0 + beta * s * s;
    if t.abs() == f64::INFINITY { c(rho / s, 1.0 / t) } else { c(beta * rho * s / denominator, t / denominator) }
}

/// Sine.
pub fn sin_of(z: C) -> C {
    turned_back(sinh_of(turned(z)))
}

/// Cosine.
pub fn cos_of(z: C) -> C {
    cosh_of(turned(z))
}

/// Tangent.
pub fn tan_of(z: C) -> C {
    turned_back(tanh_of(turned(z)))
}

/// sqrt(1 - z) and sqrt(1 + z).
fn roots(z: C) -> (C, C) {
    (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)))
}

/// Inverse sine.
pub fn asin(z: C) -> C {
    let (minus, plus) = roots(z);
    c(atan2(z.re, (minus * plus).re), asinh(minus.re * plus.im - minus.im * plus.re))
}

/// Inverse cosine.
pub fn acos(z: C) -> C {
    let (minus, plus) = roots(z);
    c(2.0 * atan2(minus.re, plus.re), asinh(plus.re * minus.im - plus.im * minus.re))
}

/// Inverse hyperbolic cosine.
pub fn acosh(z: C) -> C {
    let (minus, plus) = (sqrt(c(z.re - 1.0, z.im)), sqrt(c(z.re + 1.0, z.im)));
    c(asinh(minus.re * plus.re + minus.im * plus.im), 2.0 * atan2(minus.im, plus.re))
}

/// Inverse hyperbolic sine.
pub fn asinh_of(z: C) -> C {
    turned_back(asin(turned(z)))
}

/// Inverse hyperbolic tangent.
pub fn atanh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    let size = hypot(x, y);
    if size > 1e150 {
        let re = if size == f64::INFINITY { 0.0 } else { x / size / size };
        return c(re.abs().copysign(x), FRAC_PI_2.copysign(y));
    }
    let a = x.abs();
    let (near, far) = (1.0 - a, 1.0 + a);
    let re = 0.25 * log1p(4.0 * a / (near * near + y * y));
    c(re.copysign(x), 0.5 * atan2(2.0 * y, near * far - y * y))
}

/// Inverse tangent.
pub fn atan(z: C) -> C {
    turned_back(atanh(turned(z)))
}

/// 1 / (1 + e^-z).
pub fn sigmoid(z: C) -> C {
    let e = exponential(-z);
    reciprocal(c(1.0 + e.re, e.im))
}

/// z sigmoid(z).
pub fn silu(z: C) -> C {
    z * sigmoid(z)
}

/// z^w.
pub fn pow(z: C, w: C) -> C {
    if w.re == 0.0 && w.im == 0.0 {
        return c(1.0, 0.0);
    }
    if z.re == 0.0 && z.im == 0.0 {
        return if w.re > 0.0 { c(0.0, 0.0) } else { c(f64::NAN, f64::NAN) };
    }
    if w.im == 0.0 && w.re == w.re.trunc() && w.re.abs() <= 64.0 {
        return whole_power(z, w.re);
    }
    let (size, angle) = (log_abs(z), atan2(z.im, z.re));
    let modulus = if w.im == 0.0 { real_pow(hypot(z.re, z.im), w.re) } else { exp(w.re * size - w.im * angle) };
    let turn = w.im * size + w.re * angle;
    c(modulus * cos(turn), modulus * sin(turn))
}

fn whole_power(z: C, n: f64) -> C {
    let (mut base, mut rest, mut out) = (z, n.abs() as u32, c(1.0, 0.0));
    while rest != 0 {
        if rest & 1 != 0 {
            out *= base;
        }
        rest >>= 1;
        if rest != 0 {
            base = base * base;
        }
    }
    if n < 0.0 { reciprocal(out) } else { out }
}
