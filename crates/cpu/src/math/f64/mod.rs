//! Elementary functions of `f64`; see [the rules and the accuracy table](super).

mod divide;
mod erf;
mod exp;
mod gelu;
mod hyperbolic;
mod inverse_trig;
mod log;
mod pow;
mod round;
mod trig;

pub use divide::*;
pub use erf::*;
pub use exp::*;
pub use gelu::*;
pub use hyperbolic::*;
pub use inverse_trig::*;
pub use log::*;
pub use pow::pow;
pub use round::*;
pub use trig::*;

/// `a * b + c` with one rounding.
#[inline(always)]
pub(in crate::math) fn fma(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// `x` held between `lo` and `hi`; NaN stays NaN.
#[inline(always)]
fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x > hi { hi } else { x };
    if x < lo { lo } else { x }
}

/// The sign of `s` on a value that is known not to have the opposite one, but for zero and NaN.
#[inline(always)]
fn with_sign(value: f64, s: f64) -> f64 {
    f64::from_bits(value.to_bits() | (s.to_bits() & SIGN))
}

const SIGN: u64 = 1 << 63;

/// 1.5 · 2^52: added to a number below 2^51 it rounds it to an integer, left in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
