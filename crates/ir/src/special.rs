//! The special functions of the kernel language: floats only, computed one element at a time.

/// A special function. What each computes, and where its argument ends, stands with the operation of its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Special {
    /// Logarithm of the gamma function's magnitude.
    Lgamma,
    /// Derivative of [`Special::Lgamma`].
    Digamma,
    /// Modified Bessel function of the first kind, order 0.
    I0,
    /// [`Special::I0`] times `exp(-|x|)`.
    I0e,
    /// Modified Bessel function of the first kind, order 1.
    I1,
    /// [`Special::I1`] times `exp(-|x|)`.
    I1e,
    /// Modified Bessel function of the second kind, order 0.
    K0,
    /// [`Special::K0`] times `exp(x)`.
    K0e,
    /// Modified Bessel function of the second kind, order 1.
    K1,
    /// [`Special::K1`] times `exp(x)`.
    K1e,
    /// Bessel function of the first kind, order 0.
    J0,
    /// Bessel function of the first kind, order 1.
    J1,
    /// Bessel function of the second kind, order 0.
    Y0,
    /// Bessel function of the second kind, order 1.
    Y1,
    /// Spherical Bessel function of the first kind, order 0.
    SphericalJ0,
    /// Airy function.
    Airy,
    /// `exp(x^2) * erfc(x)`.
    Erfcx,
    /// Logarithm of the normal distribution function.
    LogNdtr,
    /// Quantile of the normal distribution.
    Ndtri,
    /// The number over the power of 2 that brings it into [0.5, 1) in magnitude.
    Mantissa,
    /// The exponent of that power.
    Exponent,
    /// Regularised lower incomplete gamma function of `(a, x)`.
    Igamma,
    /// Regularised upper incomplete gamma function of `(a, x)`.
    Igammac,
    /// Hurwitz zeta function of `(s, q)`.
    Zeta,
    /// The derivative of order `n` of [`Special::Digamma`], of `(x, n)`.
    Polygamma,
    /// The next number after the first argument towards the second.
    Nextafter,
    /// [`Special::Nextafter`] among the `bfloat16`.
    NextafterBrain,
    /// [`Special::Nextafter`] among the `float16`.
    NextafterHalf,
    /// Chebyshev polynomial of the first kind, of `(x, n)`.
    ChebyshevT,
    /// Chebyshev polynomial of the second kind, of `(x, n)`.
    ChebyshevU,
    /// Chebyshev polynomial of the third kind, of `(x, n)`.
    ChebyshevV,
    /// Chebyshev polynomial of the fourth kind, of `(x, n)`.
    ChebyshevW,
    /// [`Special::ChebyshevT`] of `2 x - 1`.
    ShiftedT,
    /// [`Special::ChebyshevU`] of `2 x - 1`.
    ShiftedU,
    /// [`Special::ChebyshevV`] of `2 x - 1`.
    ShiftedV,
    /// [`Special::ChebyshevW`] of `2 x - 1`.
    ShiftedW,
    /// Physicist's Hermite polynomial, of `(x, n)`.
    HermiteH,
    /// Probabilist's Hermite polynomial, of `(x, n)`.
    HermiteHe,
    /// Laguerre polynomial, of `(x, n)`.
    Laguerre,
    /// Legendre polynomial, of `(x, n)`.
    Legendre,
}

impl Special {
    /// How many arguments it takes.
    pub const fn arity(self) -> usize {
        if (self as u8) < Special::Igamma as u8 { 1 } else { 2 }
    }
}
