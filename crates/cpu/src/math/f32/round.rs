//! Rounding to integers, square roots, reciprocals.

/// Square root, correctly rounded.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// 1 / sqrt(x).
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// 1 / x.
#[inline(always)]
pub fn reciprocal(x: f32) -> f32 {
    1.0 / x
}

/// The integer next to `x` towards zero.
#[inline(always)]
pub fn trunc(x: f32) -> f32 {
    x.trunc()
}

/// The greatest integer not above `x`.
#[inline(always)]
pub fn floor(x: f32) -> f32 {
    x.floor()
}

/// The least integer not below `x`.
#[inline(always)]
pub fn ceil(x: f32) -> f32 {
    x.ceil()
}

/// The nearest integer, of two equally near ones the even.
#[inline(always)]
pub fn round(x: f32) -> f32 {
    x.round_ties_even()
}

/// sqrt(x² + y²) without overflow on the way; infinite if one is, even beside NaN.
#[inline(always)]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (a, b) = (x as f64, y as f64);
    let length = a.mul_add(a, b * b).sqrt() as f32;
    if (x.abs() == f32::INFINITY) | (y.abs() == f32::INFINITY) { f32::INFINITY } else { length }
}
