//! Rounding to integers, square roots, reciprocals.

/// Square root, correctly rounded.
#[inline(always)]
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// 1 / sqrt(x).
#[inline(always)]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// 1 / x.
#[inline(always)]
pub fn reciprocal(x: f64) -> f64 {
    1.0 / x
}

/// The integer next to `x` towards zero.
#[inline(always)]
pub fn trunc(x: f64) -> f64 {
    x.trunc()
}

/// The greatest integer not above `x`.
#[inline(always)]
pub fn floor(x: f64) -> f64 {
    x.floor()
}

/// The least integer not below `x`.
#[inline(always)]
pub fn ceil(x: f64) -> f64 {
    x.ceil()
}

/// The nearest integer, of two equally near ones the even.
#[inline(always)]
pub fn round(x: f64) -> f64 {
    x.round_ties_even()
}

/// sqrt(x² + y²) without overflow on the way; infinite if one is, even beside NaN.
#[inline(always)]
pub fn hypot(x: f64, y: f64) -> f64 {
    /// 2^600 and its inverse.
    const UP: f64 = f64::from_bits((1023 + 600) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
    let (a, b) = (x.abs(), y.abs());
    let m = if a > b { a } else { b };
    let scale = if m > 1e150 {
        DOWN
    } else if m < 1e-150 {
        UP
    } else {
        1.0
    };
    let back = if m > 1e150 {
        UP
    } else if m < 1e-150 {
        DOWN
    } else {
        1.0
    };
    let (a, b) = (a * scale, b * scale);
    let length = a.mul_add(a, b * b).sqrt() * back;
    if (x.abs() == f64::INFINITY) | (y.abs() == f64::INFINITY) { f64::INFINITY } else { length }
}
