//! Elementary functions in plain Rust, written so that LLVM turns a loop over an array into SIMD code.
//!
//! The rules of a function here:
//!
//! - No branches: both sides are computed, `if` expressions choose. No tables, no calls, no intrinsics.
//! - `#[inline(always)]`: it takes the instruction set of the loop that calls it, a loop over an array of fixed size.
//! - A multiply-add is written `fma` where one rounding is meant, and never arises otherwise: each instruction set gives
//!   the same bits. Without the instruction (baseline x86-64) it is done in software, which is right and slow.
//! - Few arguments may need other work: huge angles, quotients beyond the mantissa. The function answers for the rest,
//!   and [`map_rare`] or [`zip_rare`] mends those afterwards with a `_rare` function.
//! - NaN gives NaN, zero keeps its sign in odd functions, subnormal numbers count like others.
//!
//! Accuracy: `f32` within 2 units in the last place, the special functions (erfc, gelu, derivatives of gelu and silu)
//! within 3.25; `f64` within 2.5, erfinv 3.5. `docs/numerics.md` has the table and how it was measured.
//!
//! ```
//! use flambeau_cpu::math;
//!
//! assert_eq!(math::f32::exp2(3.0), 8.0);
//! assert_eq!(math::f64::pow(-2.0, 3.0), -8.0);
//! // 1 + erf would cancel to 0 here.
//! assert_eq!(math::f64::gelu(-10.0), -7.619853024160526e-23);
//! ```

pub mod complex;
pub mod f32;
pub mod f64;
pub mod special;

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
