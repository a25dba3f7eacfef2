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
