//! Orthogonal polynomials of degree `n`, by their recurrences (DLMF 18.9); 0 for negative degrees.
//!
//! High degrees of Chebyshev's inside (-1, 1) are trigonometric functions.

use super::{acos, cos, sin};

/// Degrees from which on Chebyshev polynomials are computed by their angle.
const BY_ANGLE: f64 = 8.0;

/// p0 = 1, p1 = `first`, and on by `next(k, p_k, p_(k-1))`, which gives p_(k+1).
fn recur(n: f64, first: f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = n.trunc();
    if n < 0.0 {
        return 0.0;
    }
    if n == 0.0 {
        return 1.0;
    }
    let (mut before, mut p, mut k) = (1.0, first, 1.0);
    while k < n && p.is_finite() {
        (before, p) = (p, next(k, p, before));
        k += 1.0;
    }
    p
}

fn chebyshev(x: f64, n: f64, first: f64) -> f64 {
    recur(n, first, |_, p, before| 2.0 * x * p - before)
}

fn by_angle(x: f64, n: f64) -> bool {
    n > BY_ANGLE && x.abs() < 1.0
}

/// The value at 1 or -1 of high degrees, of which the recurrence would take long.
fn at_end(x: f64, n: f64, at_one: f64, at_minus_one: f64) -> Option<f64> {
    if x.abs() != 1.0 || n < 0.0 {
        return None;
    }
    let even = n.trunc() % 2.0 == 0.0;
    Some(if x > 0.0 {
        at_one
    } else if even {
        at_minus_one
    } else {
        -at_minus_one
    })
}

/// First kind.
pub fn chebyshev_t(x: f64, n: f64) -> f64 {
    if let Some(end) = at_end(x, n, 1.0, 1.0) {
        return end;
    }
    if by_angle(x, n) { cos(n.trunc() * acos(x)) } else { chebyshev(x, n, x) }
}

/// Second kind.
pub fn chebyshev_u(x: f64, n: f64) -> f64 {
    let m = n.trunc() + 1.0;
    if let Some(end) = at_end(x, n, m, m) {
        return end;
    }
    if by_angle(x, n) {
        let a = acos(x);
        return sin(m * a) / sin(a);
    }
    chebyshev(x, n, 2.0 * x)
}

/// Third kind.
pub fn chebyshev_v(x: f64, n: f64) -> f64 {
    let m = n.trunc();
    if let Some(end) = at_end(x, n, 1.0, 2.0 * m + 1.0) {
        return end;
    }
    if by_angle(x, n) {
        let a = acos(x);
        return cos((m + 0.5) * a) / cos(0.5 * a);
    }
    chebyshev(x, n, 2.0 * x - 1.0)
}

/// Fourth kind.
pub fn chebyshev_w(x: f64, n: f64) -> f64 {
    let m = n.trunc();
    if let Some(end) = at_end(x, n, 2.0 * m + 1.0, 1.0) {
        return end;
    }
    if by_angle(x, n) {
        let a = acos(x);
        return sin((m + 0.5) * a) / sin(0.5 * a);
    }
    chebyshev(x, n, 2.0 * x + 1.0)
}

/// First kind, of 2 x - 1.
pub fn shifted_t(x: f64, n: f64) -> f64 {
    chebyshev_t(2.0 * x - 1.0, n)
}

/// Second kind, of 2 x - 1.
pub fn shifted_u(x: f64, n: f64) -> f64 {
    chebyshev_u(2.0 * x - 1.0, n)
}

/// Third kind, of 2 x - 1.
pub fn shifted_v(x: f64, n: f64) -> f64 {
    chebyshev_v(2.0 * x - 1.0, n)
}

/// Fourth kind, of 2 x - 1.
pub fn shifted_w(x: f64, n: f64) -> f64 {
    chebyshev_w(2.0 * x - 1.0, n)
}

/// Physicist's Hermite polynomial.
pub fn hermite_h(x: f64, n: f64) -> f64 {
    recur(n, 2.0 * x, |k, p, before| 2.0 * (x * p - k * before))
}

/// Probabilist's Hermite polynomial.
pub fn hermite_he(x: f64, n: f64) -> f64 {
    recur(n, x, |k, p, before| x * p - k * before)
}

/// Laguerre polynomial.
pub fn laguerre(x: f64, n: f64) -> f64 {
    recur(n, 1.0 - x, |k, p, before| ((2.0 * k + 1.0 - x) * p - k * before) / (k + 1.0))
}

/// Legendre polynomial.
pub fn legendre(x: f64, n: f64) -> f64 {
    if let Some(end) = at_end(x, n, 1.0, 1.0) {
        return end;
    }
    recur(n, x, |k, p, before| ((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0))
}
