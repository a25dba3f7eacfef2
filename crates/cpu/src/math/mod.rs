//! Elementary functions in plain Rust, written so that LLVM turns a loop over an array into SIMD code.
//!
//! A draft of the rules: no branches (both sides are computed, `if` expressions select), no tables, no calls; every function
//! is `#[inline(always)]`, so it takes the instruction set of the loop that calls it; multiply-adds are written as
//! `mul_add`, so each instruction set gives the same bits. Where a few arguments need other work (huge angles, quotients
//! beyond the mantissa) the function answers for the others and [`map_rare`] or [`zip_rare`] mends those afterwards.

pub mod f32;
pub mod f64;

/// The polynomial with the given coefficients, lowest first, by Horner's rule; each step is the caller's `fma`.
macro_rules! poly {
    ($x:expr; $c:expr $(,)?) => { $c };
    ($x:expr; $c:expr, $($rest:expr),+ $(,)?) => { fma(poly!($x; $($rest),+), $x, $c) };
}
use poly;

/// `out[i] = fast(x[i])` in one vectorised loop; then, if there are any, the rare arguments again by `slow`.
#[inline(always)]
pub fn map_rare<T: Copy, const N: usize>(
    x: &[T; N],
    out: &mut [T; N],
    fast: impl Fn(T) -> T,
    is_rare: impl Fn(T) -> bool,
    slow: impl Fn(T) -> T,
) {
    let mut any = false;
    for i in 0..N {
        out[i] = fast(x[i]);
        any |= is_rare(x[i]);
    }
    if any {
        for i in 0..N {
            if is_rare(x[i]) {
                out[i] = slow(x[i]);
            }
        }
    }
}

/// [`map_rare`] for functions of two arguments.
#[inline(always)]
pub fn zip_rare<T: Copy, const N: usize>(
    x: &[T; N],
    y: &[T; N],
    out: &mut [T; N],
    fast: impl Fn(T, T) -> T,
    is_rare: impl Fn(T, T) -> bool,
    slow: impl Fn(T, T) -> T,
) {
    let mut any = false;
    for i in 0..N {
        out[i] = fast(x[i], y[i]);
        any |= is_rare(x[i], y[i]);
    }
    if any {
        for i in 0..N {
            if is_rare(x[i], y[i]) {
                out[i] = slow(x[i], y[i]);
            }
        }
    }
}
