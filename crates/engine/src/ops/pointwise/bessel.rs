//! Bessel functions and Airy's.

use super::{Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, place, pointwise};
use flambeau_base::{DType, Result};
use flambeau_ir::Special;

static I0: Spec = Spec::new("i0", Rule::Float, |k, x| k.special(Special::I0, x))
    .refuses(DType::is_complex)
    .vjp(Reads::INPUT, |cx, g| one(g.mul(&call(&I1, &[(&cx.tensor(0)?).into()])?)));

static I0E: Spec = Spec::new("special_i0e", Rule::Float, |k, x| k.special(Special::I0e, x)).refuses(DType::is_complex).vjp(
    Reads::both(0b1, 1),
    |cx, g| {
        let x = cx.tensor(0)?;
        one(g.mul(&call(&I1E, &[(&x).into()])?.sub(&x.sign()?.mul(&cx.output()?)?)?))
    },
);

/// `y / x`, and its limit 1/2 at 0.
fn over(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    y.div(x)?.masked_fill(&x.eq(0.0)?, 0.5)
}

static I1: Spec =
    Spec::new("special_i1", Rule::Float, |k, x| k.special(Special::I1, x)).refuses(DType::is_complex).vjp(Reads::both(0b1, 1), |cx, g| {
        let x = cx.tensor(0)?;
        one(g.mul(&call(&I0, &[(&x).into()])?.sub(&over(&cx.output()?, &x)?)?))
    });

static I1E: Spec = Spec::new("special_i1e", Rule::Float, |k, x| k.special(Special::I1e, x)).refuses(DType::is_complex).vjp(
    Reads::both(0b1, 1),
    |cx, g| {
        let (x, y) = (cx.tensor(0)?, cx.output()?);
        one(g.mul(&call(&I0E, &[(&x).into()])?.sub(&y.mul(&x.sign()?)?)?.sub(&over(&y, &x)?)?))
    },
);

static K0: Spec = Spec::new("special_modified_bessel_k0", Rule::Float, |k, x| k.special(Special::K0, x)).refuses(DType::is_complex);
static K0E: Spec =
    Spec::new("special_scaled_modified_bessel_k0", Rule::Float, |k, x| k.special(Special::K0e, x)).refuses(DType::is_complex);
static K1: Spec = Spec::new("special_modified_bessel_k1", Rule::Float, |k, x| k.special(Special::K1, x)).refuses(DType::is_complex);
static K1E: Spec =
    Spec::new("special_scaled_modified_bessel_k1", Rule::Float, |k, x| k.special(Special::K1e, x)).refuses(DType::is_complex);
static MODIFIED_I0: Spec =
    Spec::new("special_modified_bessel_i0", Rule::Float, |k, x| k.special(Special::I0, x)).refuses(DType::is_complex);
static MODIFIED_I1: Spec =
    Spec::new("special_modified_bessel_i1", Rule::Float, |k, x| k.special(Special::I1, x)).refuses(DType::is_complex);
static J0: Spec = Spec::new("special_bessel_j0", Rule::Float, |k, x| k.special(Special::J0, x)).refuses(DType::is_complex);
static J1: Spec = Spec::new("special_bessel_j1", Rule::Float, |k, x| k.special(Special::J1, x)).refuses(DType::is_complex);
static Y0: Spec = Spec::new("special_bessel_y0", Rule::Float, |k, x| k.special(Special::Y0, x)).refuses(DType::is_complex);
static Y1: Spec = Spec::new("special_bessel_y1", Rule::Float, |k, x| k.special(Special::Y1, x)).refuses(DType::is_complex);
static SPHERICAL_J0: Spec =
    Spec::new("special_spherical_bessel_j0", Rule::Float, |k, x| k.special(Special::SphericalJ0, x)).refuses(DType::is_complex);
static AIRY_AI: Spec = Spec::new("special_airy_ai", Rule::Float, |k, x| k.special(Special::Airy, x)).refuses(DType::is_complex);

/// A row under `torch.special`, of one argument.
const fn row(schema: &'static str, spec: &'static Spec, doc: &'static str) -> Op {
    pointwise(schema, spec).doc(doc).places(place::SPECIAL).samples(&["T(2,3; 0.25..12)"]).without_inplace()
}

pub(super) static OPS: &[Op] = &[
    pointwise("i0(Tensor self) -> Tensor", &I0)
        .doc("Modified Bessel function of the first kind of order 0.")
        .places(place::TORCH | place::METHOD | place::SPECIAL)
        .samples(&["T(2,3)"]),
    row("i0e(Tensor self) -> Tensor", &I0E, "`exp(-abs(self)) * i0(self)`."),
    row("i1(Tensor self) -> Tensor", &I1, "Modified Bessel function of the first kind of order 1.").samples(&["T(2,3)"]),
    row("i1e(Tensor self) -> Tensor", &I1E, "`exp(-abs(self)) * i1(self)`."),
    row("modified_bessel_i0(Tensor self) -> Tensor", &MODIFIED_I0, "Modified Bessel function of the first kind of order 0."),
    row("modified_bessel_i1(Tensor self) -> Tensor", &MODIFIED_I1, "Modified Bessel function of the first kind of order 1."),
    row("modified_bessel_k0(Tensor self) -> Tensor", &K0, "Modified Bessel function of the second kind of order 0."),
    row("modified_bessel_k1(Tensor self) -> Tensor", &K1, "Modified Bessel function of the second kind of order 1."),
    row("scaled_modified_bessel_k0(Tensor x) -> Tensor", &K0E, "`exp(x) * modified_bessel_k0(x)`."),
    row("scaled_modified_bessel_k1(Tensor x) -> Tensor", &K1E, "`exp(x) * modified_bessel_k1(x)`."),
    row("bessel_j0(Tensor self) -> Tensor", &J0, "Bessel function of the first kind of order 0."),
    row("bessel_j1(Tensor self) -> Tensor", &J1, "Bessel function of the first kind of order 1."),
    row("bessel_y0(Tensor self) -> Tensor", &Y0, "Bessel function of the second kind of order 0: minus infinity at 0, NaN below."),
    row("bessel_y1(Tensor self) -> Tensor", &Y1, "Bessel function of the second kind of order 1: minus infinity at 0, NaN below."),
    row(
        "spherical_bessel_j0(Tensor x) -> Tensor",
        &SPHERICAL_J0,
        "`sin(x) / x`: the spherical Bessel function of the first kind of order 0.",
    ),
    row("airy_ai(Tensor x) -> Tensor", &AIRY_AI, "Airy function of the first kind."),
];
