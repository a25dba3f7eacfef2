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

/// [`poly`] for long polynomials: after Estrin's scheme in steps of four, so that fewer operations wait for one another;
/// the last step is Horner's, whose rounding is smaller.
macro_rules! poly_wide {
    ($x:expr; $c:expr, $($rest:expr),+ $(,)?) => {{
        let x = $x;
        let x2 = x * x;
        let x4 = x2 * x2;
        fma(estrin!(x, x2, x4; $($rest),+), x, $c)
    }};
}
use poly_wide;

/// The polynomial of `x` from its first, second and fourth power.
macro_rules! estrin {
    ($x:ident, $x2:ident, $x4:ident; $a:expr) => { $a };
    ($x:ident, $x2:ident, $x4:ident; $a:expr, $b:expr) => { fma($b, $x, $a) };
    ($x:ident, $x2:ident, $x4:ident; $a:expr, $b:expr, $c:expr) => { fma($c, $x2, fma($b, $x, $a)) };
    ($x:ident, $x2:ident, $x4:ident; $a:expr, $b:expr, $c:expr, $d:expr $(, $rest:expr)*) => {
        estrin!(@ $x, $x2, $x4, fma(fma($d, $x, $c), $x2, fma($b, $x, $a)); $($rest),*)
    };
    (@ $x:ident, $x2:ident, $x4:ident, $low:expr;) => { $low };
    (@ $x:ident, $x2:ident, $x4:ident, $low:expr; $($rest:expr),+) => {
        fma(estrin!($x, $x2, $x4; $($rest),+), $x4, $low)
    };
}
use estrin;

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
