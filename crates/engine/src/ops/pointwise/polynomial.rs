//! Orthogonal polynomials of degree `n`: 0 for negative degrees.

use super::{Rule, Spec};
use crate::ops::table::{Op, place, pointwise};
use flambeau_base::DType;
use flambeau_ir::Special;

static CHEBYSHEVT: Spec =
    Spec::new("special_chebyshev_polynomial_t", Rule::Float, |k, x| k.special(Special::ChebyshevT, x)).refuses(DType::is_complex);
static CHEBYSHEVU: Spec =
    Spec::new("special_chebyshev_polynomial_u", Rule::Float, |k, x| k.special(Special::ChebyshevU, x)).refuses(DType::is_complex);
static CHEBYSHEVV: Spec =
    Spec::new("special_chebyshev_polynomial_v", Rule::Float, |k, x| k.special(Special::ChebyshevV, x)).refuses(DType::is_complex);
static CHEBYSHEVW: Spec =
    Spec::new("special_chebyshev_polynomial_w", Rule::Float, |k, x| k.special(Special::ChebyshevW, x)).refuses(DType::is_complex);
static SHIFTEDT: Spec =
    Spec::new("special_shifted_chebyshev_polynomial_t", Rule::Float, |k, x| k.special(Special::ShiftedT, x)).refuses(DType::is_complex);
static SHIFTEDU: Spec =
    Spec::new("special_shifted_chebyshev_polynomial_u", Rule::Float, |k, x| k.special(Special::ShiftedU, x)).refuses(DType::is_complex);
static SHIFTEDV: Spec =
    Spec::new("special_shifted_chebyshev_polynomial_v", Rule::Float, |k, x| k.special(Special::ShiftedV, x)).refuses(DType::is_complex);
static SHIFTEDW: Spec =
    Spec::new("special_shifted_chebyshev_polynomial_w", Rule::Float, |k, x| k.special(Special::ShiftedW, x)).refuses(DType::is_complex);
static HERMITEH: Spec =
    Spec::new("special_hermite_polynomial_h", Rule::Float, |k, x| k.special(Special::HermiteH, x)).refuses(DType::is_complex);
static HERMITEHE: Spec =
    Spec::new("special_hermite_polynomial_he", Rule::Float, |k, x| k.special(Special::HermiteHe, x)).refuses(DType::is_complex);
static LAGUERRE: Spec =
    Spec::new("special_laguerre_polynomial_l", Rule::Float, |k, x| k.special(Special::Laguerre, x)).refuses(DType::is_complex);
static LEGENDRE: Spec =
    Spec::new("special_legendre_polynomial_p", Rule::Float, |k, x| k.special(Special::Legendre, x)).refuses(DType::is_complex);

/// A row under `torch.special`, of argument and degree.
const fn row(schema: &'static str, spec: &'static Spec, doc: &'static str) -> Op {
    pointwise(schema, spec).doc(doc).places(place::SPECIAL).samples(&["T(2,3), I(3; -1..12)", "T(2,3), 3"]).without_inplace()
}

pub(super) static OPS: &[Op] = &[
    row("chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", &CHEBYSHEVT, "Chebyshev polynomial of the first kind of degree `n`."),
    row("chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", &CHEBYSHEVU, "Chebyshev polynomial of the second kind of degree `n`."),
    row("chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", &CHEBYSHEVV, "Chebyshev polynomial of the third kind of degree `n`."),
    row("chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", &CHEBYSHEVW, "Chebyshev polynomial of the fourth kind of degree `n`."),
    row(
        "shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        &SHIFTEDT,
        "Chebyshev polynomial of the first kind of `2 * x - 1` of degree `n`.",
    ),
    row(
        "shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        &SHIFTEDU,
        "Chebyshev polynomial of the second kind of `2 * x - 1` of degree `n`.",
    ),
    row(
        "shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        &SHIFTEDV,
        "Chebyshev polynomial of the third kind of `2 * x - 1` of degree `n`.",
    ),
    row(
        "shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        &SHIFTEDW,
        "Chebyshev polynomial of the fourth kind of `2 * x - 1` of degree `n`.",
    ),
    row("hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", &HERMITEH, "Physicist's Hermite polynomial of degree `n`."),
    row("hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", &HERMITEHE, "Probabilist's Hermite polynomial of degree `n`."),
    row("laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", &LAGUERRE, "Laguerre polynomial of degree `n`."),
    row("legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", &LEGENDRE, "Legendre polynomial of degree `n`."),
];
