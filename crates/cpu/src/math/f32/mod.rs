//! Elementary functions of `f32`; see [the rules and the accuracy table](super).

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
fn fma(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// `x` held between `lo` and `hi`; NaN stays NaN.
#[inline(always)]
fn clamp(x: f32, lo: f32, hi: f32) -> f32 {
    let x = if x > hi { hi } else { x };
    if x < lo { lo } else { x }
}

/// The sign of `s` on a value that is known not to have the opposite one, but for zero and NaN.
#[inline(always)]
fn with_sign(value: f32, s: f32) -> f32 {
    f32::from_bits(value.to_bits() | (s.to_bits() & SIGN))
}

const SIGN: u32 = 0x8000_0000;

/// 1.5 · 2^23: added to a number below 2^22 it rounds it to an integer, left in the low bits.
const ROUND: f32 = 12_582_912.0;
