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
