//! Remainders and floor division.
//!
//! The vector functions answer where the quotient fits the mantissa; [`division_is_rare`] tells the rest, see
//! [`zip_rare`](crate::math::zip_rare).

use super::fma;

/// Whether the quotient is too large for [`fmod`], [`remainder`] and [`floor_divide`], so that [`fmod_rare`],
/// [`remainder_rare`] and [`floor_divide_rare`] are needed.
#[inline(always)]
pub fn division_is_rare(x: f64, y: f64) -> bool {
    let (a, b) = (x.abs(), y.abs());
    (a / b >= 9_007_199_254_740_992.0) & (b > 0.0) & (a < f64::INFINITY)
}

/// x - trunc(x / y) y, exactly; the sign is that of `x`. NaN for infinite `x` or `y` = 0.
#[inline(always)]
pub fn fmod(x: f64, y: f64) -> f64 {
    divide(x, y).1.copysign(x)
}

/// trunc(|x| / |y|) and the remainder, both exact and not negative.
#[inline(always)]
fn divide(x: f64, y: f64) -> (f64, f64) {
    let (a, b) = (x.abs(), y.abs());
    let q = (a / b).trunc();
    let r = fma(-q, b, a);
    // The rounded quotient may be the next integer, never the one before.
    let over = r < 0.0;
    let q = if over { q - 1.0 } else { q };
    let r = if over { r + b } else { r };
    let r = if (b == f64::INFINITY) & (a < f64::INFINITY) { a } else { r };
    (q, r)
}

/// x - floor(x / y) y: the sign is that of `y`, as in Python.
#[inline(always)]
pub fn remainder(x: f64, y: f64) -> f64 {
    floor_remainder(fmod(x, y), y)
}

/// floor(x / y), exact, and consistent with [`remainder`]; x / 0 is an infinity or NaN.
#[inline(always)]
pub fn floor_divide(x: f64, y: f64) -> f64 {
    let (q, r) = divide(x, y);
    let opposite = (x < 0.0) != (y < 0.0);
    // Below zero the floor is one further, unless the division comes out even.
    let q = if opposite & (r != 0.0) { q + 1.0 } else { q };
    let q = if opposite { -q } else { q };
    let q = if r.is_nan() { r } else { q };
    let sign = x / y;
    let q = if q == 0.0 { q.copysign(sign) } else { q };
    if y == 0.0 { sign } else { q }
}

/// [`fmod`] for any quotient, one at a time.
#[cold]
pub fn fmod_rare(x: f64, y: f64) -> f64 {
    x % y
}

/// [`remainder`] for any quotient, one at a time.
#[cold]
pub fn remainder_rare(x: f64, y: f64) -> f64 {
    floor_remainder(x % y, y)
}

/// [`floor_divide`] for any quotient, one at a time.
#[cold]
pub fn floor_divide_rare(x: f64, y: f64) -> f64 {
    // So large a quotient is an integer as it is.
    x / y
}

/// From the remainder of truncated division to that of floor division.
#[inline(always)]
fn floor_remainder(m: f64, y: f64) -> f64 {
    let r = if (m < 0.0) != (y < 0.0) { m + y } else { m };
    // Zero takes the divisor's sign too.
    if m == 0.0 { m.copysign(y) } else { r }
}
