//! Special functions of `f64`, one number at a time. For `f32` they are computed here and rounded.
//!
//! Where a function is smooth on an interval, a Chebyshev series stands for it (`tables.rs`, fitted by
//! `crates/cpu/tests/data/fit_special.py`); the rest are recurrences, asymptotic series and continued fractions, from
//! the *NIST Digital Library of Mathematical Functions* (DLMF) where nothing else is said.

mod bessel;
mod gamma;
mod igamma;
mod neighbour;
mod normal;
mod polynomial;
mod tables;

pub use bessel::*;
pub use gamma::*;
pub use igamma::*;
pub use neighbour::*;
pub use normal::*;
pub use polynomial::*;

use super::f64 as m;

/// A Chebyshev series on an interval.
pub struct Series<const N: usize> {
    low: f64,
    high: f64,
    c: [f64; N],
}

impl<const N: usize> Series<N> {
    /// Its sum, by Clenshaw's recurrence.
    fn at(&self, x: f64) -> f64 {
        let t = (2.0 * x - self.low - self.high) / (self.high - self.low);
        let (mut a, mut b) = (0.0, 0.0);
        for &c in self.c[1..].iter().rev() {
            (a, b) = (2.0 * t * a - b + c, a);
        }
        t * a - b + self.c[0]
    }
}

macro_rules! called {
    ($($(#[$doc:meta])* $name:ident: $f:path;)*) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub fn $name(x: f64) -> f64 {
            $f(x)
        }
    )*};
}

// The elementary functions as calls, so that their code stands here once.
called! {
    /// e^x.
    exp: m::exp;
    /// e^x - 1.
    expm1: m::expm1;
    /// Natural logarithm.
    log: m::log;
    /// log(1 + x).
    log1p: m::log1p;
    /// Complementary error function.
    erfc: m::erfc;
    /// Hyperbolic sine.
    sinh: m::sinh;
    /// Hyperbolic cosine.
    cosh: m::cosh;
    /// Hyperbolic tangent.
    tanh: m::tanh;
    /// Inverse cosine.
    acos: m::acos;
    /// Inverse hyperbolic sine.
    asinh: m::asinh;
}

/// Sine of any angle.
#[inline(never)]
pub fn sin(x: f64) -> f64 {
    if m::trig_is_rare(x) { m::sin_rare(x) } else { m::sin(x) }
}

/// Cosine of any angle.
#[inline(never)]
pub fn cos(x: f64) -> f64 {
    if m::trig_is_rare(x) { m::cos_rare(x) } else { m::cos(x) }
}

/// Power.
#[inline(never)]
pub fn pow(x: f64, y: f64) -> f64 {
    m::pow(x, y)
}

/// The angle of the point (x, y).
#[inline(never)]
pub fn atan2(y: f64, x: f64) -> f64 {
    m::atan2(y, x)
}

/// sqrt(x² + y²).
#[inline(never)]
pub fn hypot(x: f64, y: f64) -> f64 {
    m::hypot(x, y)
}
