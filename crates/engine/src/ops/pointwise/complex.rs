//! Complex numbers: their parts, conjugates, magnitudes and angles.

use super::{Operand, Rule, Spec, call, flat, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, choose, function, out_rule, place, pointwise, view_row};
use flambeau_base::{Complex64, DType, Error, Result, Scalar};
use flambeau_ir::{Body, Val};
use smallvec::smallvec;
use std::f64::consts::PI;

/// Magnitude: of the dtype of their parts for complex numbers, of its own for others.
pub(super) fn magnitude(k: &mut Body, x: Val) -> Val {
    match k.dtype(x) {
        DType::Bool => x,
        d if d.is_complex() => {
            let (re, im) = (k.real_part(x), k.imag_part(x));
            k.hypot(re, im)
        }
        _ => k.abs(x),
    }
}

pub(crate) static CONJ_PHYSICAL: Spec = Spec::new("conj_physical", Rule::Common, |k, x| {
    if !k.dtype(x[0]).is_complex() {
        return x[0];
    }
    let (re, im) = (k.real_part(x[0]), k.imag_part(x[0]));
    let im = k.neg(im);
    k.compose(re, im)
})
.by_parts()
.vjp(Reads::NONE, |_, g| one(g.conj()));

/// `x / |x|`, 0 at 0.
static SGN: Spec = Spec::new("sgn", Rule::Common, |k, x| match k.dtype(x[0]) {
    DType::Bool => x[0],
    d if d.is_complex() => {
        let (re, im) = (k.real_part(x[0]), k.imag_part(x[0]));
        let size = k.hypot(re, im);
        let (re, im) = (k.div(re, size), k.div(im, size));
        let (point, zero, origin) = (k.compose(re, im), k.like(size, 0.0), k.like(x[0], 0));
        let none = k.eq(size, zero);
        k.select(none, origin, point)
    }
    _ => k.sign(x[0]),
})
.by_parts()
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    if !x.dtype().is_complex() {
        return flat(g);
    }
    // Across the direction of x, over its magnitude.
    let (size, unit) = (x.abs()?, x.sgn()?);
    let along = unit.mul(&unit.conj()?.mul(g)?.real()?)?;
    one(g.sub(&along)?.div(&size)?.masked_fill(&size.eq(0)?, 0))
});

/// Angle in the complex plane: 0 or π for real numbers.
static ANGLE: Spec = Spec::new("angle", Rule::RealFloat, |k, x| {
    if k.dtype(x[0]).is_complex() {
        let (re, im) = (k.real_part(x[0]), k.imag_part(x[0]));
        return k.atan2(im, re);
    }
    let (zero, half_turn) = (k.like(x[0], 0.0), k.like(x[0], PI));
    let (bad, left) = (k.is_nan(x[0]), k.lt(x[0], zero));
    let angle = k.select(left, half_turn, zero);
    k.select(bad, x[0], angle)
})
.by_parts()
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    if !x.dtype().is_complex() {
        return flat(g);
    }
    // i x / |x|².
    let square = x.abs()?.square()?;
    let slope = x.mul(Scalar::Complex(Complex64::new(0.0, 1.0)))?.div(&square)?;
    one(g.mul(&slope.masked_fill(&square.eq(0)?, 0)?))
});

static COMPLEX: Spec = Spec::new("complex", Rule::Complex, |k, x| k.compose(x[0], x[1]))
    .by_parts()
    .vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || g.real())?, cx.when(1, || g.imag())?]));

static POLAR: Spec = Spec::new("polar", Rule::Complex, |k, x| {
    let (c, s) = (k.cos(x[1]), k.sin(x[1]));
    let (re, im) = (k.mul(x[0], c), k.mul(x[0], s));
    k.compose(re, im)
})
.by_parts()
.vjp(Reads::both(0b11, 1), |cx, g| {
    let g = g.conj()?;
    let around = || g.mul(&cx.output()?.mul(Scalar::Complex(Complex64::new(0.0, 1.0)))?)?.real();
    let away = || {
        let angle = cx.tensor(1)?;
        g.mul(&call(&COMPLEX, &[(&angle.cos()?).into(), (&angle.sin()?).into()])?)?.real()
    };
    Ok(smallvec![cx.when(0, away)?, cx.when(1, around)?])
});

/// The complex numbers of two parts.
pub(super) fn compose(re: &Tensor, im: &Tensor) -> Result<Tensor> {
    call(&COMPLEX, &[re.into(), im.into()])
}

/// Two real parts of one dtype.
fn parts<'a>(a: &'a Args, spec: &'static Spec) -> Result<(&'static Spec, smallvec::SmallVec<[Operand<'a>; 3]>)> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if !matches!(x.dtype(), DType::F32 | DType::F64) || !matches!(y.dtype(), DType::F32 | DType::F64) {
        return Err(Error::not_implemented(format!(
            "{}: Expected both inputs to be Half, Float or Double tensors but got {} and {}",
            a.name,
            x.dtype(),
            y.dtype()
        )));
    }
    if x.dtype() != y.dtype() {
        return Err(Error::runtime(format!(
            "{}: Expected object of scalar type {} but got scalar type {} for second argument",
            a.name,
            x.dtype(),
            y.dtype()
        )));
    }
    Ok((spec, smallvec![x.into(), y.into()]))
}

fn conj_physical(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    Ok(if x.dtype().is_complex() { call(&CONJ_PHYSICAL, &[x.into()])? } else { x.clone() }.into())
}

fn isreal(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    if x.dtype().is_complex() { Ok(x.imag()?.eq(0)?.into()) } else { Ok(Tensor::full(x.shape(), true, DType::Bool, x.device())?.into()) }
}

pub(super) static OPS: &[Op] = &[
    view_row("conj_physical(Tensor(a) self) -> Tensor(a)", conj_physical)
        .doc("Complex conjugates, in memory of their own; real numbers are their own.")
        .samples(&["C(2,3)", "T(2,3)"])
        .with_inplace()
        .with_out(),
    pointwise("sgn(Tensor self) -> Tensor", &SGN)
        .doc("`self / abs(self)`, and 0 at 0; of real numbers the sign.")
        .samples(&["T(2,3)", "C(2,3)"]),
    pointwise("angle(Tensor self) -> Tensor", &ANGLE)
        .doc("Angle in the complex plane, in radians; of real numbers 0 or pi.")
        .samples(&["T(2,3)", "C(2,3)"])
        .without_inplace(),
    choose("complex(Tensor real, Tensor imag) -> Tensor", |a| parts(a, &COMPLEX))
        .out_rule(out_rule::EXACT)
        .doc("Complex numbers from their real and imaginary parts, `float32` or `float64`.")
        .places(place::TORCH)
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3)"])
        .without_inplace(),
    choose("polar(Tensor abs, Tensor angle) -> Tensor", |a| parts(a, &POLAR))
        .autocast_full()
        .doc("Complex numbers from their magnitudes and angles, `float32` or `float64`.")
        .places(place::TORCH)
        .samples(&["T(2,3; 0.5..2), T(2,3)", "T(2,3; 0.5..2), T(3)"])
        .without_inplace(),
    function("isreal(Tensor self) -> Tensor", isreal)
        .doc("Whether the imaginary part is zero, element by element; bool.")
        .samples(&["T(2,3)", "C(2,3)"])
        .without_out(),
];

impl Tensor {
    /// `x / |x|`, and 0 at 0; of real numbers the sign.
    pub fn sgn(&self) -> Result<Tensor> {
        call(&SGN, &[self.into()])
    }

    /// Angle in the complex plane.
    pub fn angle(&self) -> Result<Tensor> {
        call(&ANGLE, &[self.into()])
    }
}
