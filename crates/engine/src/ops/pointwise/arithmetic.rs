//! Sums, differences, products and their kin.

use super::{Operand, Rule, Spec, call, call_inplace, flat, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, choose, pointwise, view_row};
use flambeau_base::{DType, Error, Result, Scalar};
use smallvec::{SmallVec, smallvec};

pub(crate) static ADD: Spec = Spec::new("add", Rule::Common, |k, x| k.add(x[0], x[1]))
    .vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || Ok(g.clone()))?]));

static ADD_SCALED: Spec = Spec::new("add", Rule::Common, |k, x| {
    let (a, b, alpha) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]));
    k.fma(b, alpha, a)
})
.params(1)
.vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || g.mul(&cx.operand(2)?))?, None]));

pub(crate) static SUB: Spec = Spec::new("sub", Rule::Common, |k, x| k.sub(x[0], x[1]))
    .refuses(|d| d == DType::Bool)
    .vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || g.neg())?]));

static SUB_SCALED: Spec = Spec::new("sub", Rule::Common, |k, x| {
    let (a, b, alpha) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]));
    let less = k.neg(alpha);
    k.fma(b, less, a)
})
.params(1)
.refuses(|d| d == DType::Bool)
.vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || g.mul(&cx.operand(2)?)?.neg())?, None]));

pub(crate) static MUL: Spec = Spec::new("mul", Rule::Common, |k, x| k.mul(x[0], x[1]))
    .vjp(Reads::OTHERS, |cx, g| Ok(smallvec![cx.when(0, || g.mul(&cx.operand(1)?))?, cx.when(1, || g.mul(&cx.operand(0)?))?]));

pub(crate) static NEG: Spec =
    Spec::new("neg", Rule::Common, |k, x| k.neg(x[0])).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |_, g| one(g.neg()));

static ABS: Spec = Spec::new("abs", Rule::Real, |k, x| super::complex::magnitude(k, x[0]))
    .by_parts()
    .vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.sgn()?)));

static SIGN: Spec =
    Spec::new("sign", Rule::Common, |k, x| if k.dtype(x[0]) == DType::Bool { x[0] } else { k.sign(x[0]) }).vjp(Reads::NONE, |_, g| flat(g));

static SQUARE: Spec =
    Spec::new("square", Rule::Common, |k, x| k.mul(x[0], x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.mul(2.0)?)));

/// `a + value * b * c`.
static ADDCMUL: Spec = Spec::new("addcmul", Rule::Common, |k, x| {
    let w: SmallVec<[_; 4]> = x.iter().map(|&v| k.widen(v)).collect();
    let scaled = k.mul(w[3], w[1]);
    k.fma(scaled, w[2], w[0])
})
.params(1)
.vjp(Reads::inputs(0b110), |cx, g| {
    let scaled = |i| g.mul(&cx.operand(3)?)?.mul(&cx.operand(i)?);
    Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || scaled(2))?, cx.when(2, || scaled(1))?, None])
});

/// `a + value * b / c`.
static ADDCDIV: Spec = Spec::new("addcdiv", Rule::Common, |k, x| {
    let w: SmallVec<[_; 4]> = x.iter().map(|&v| k.widen(v)).collect();
    let scaled = k.mul(w[3], w[1]);
    let quotient = k.div(scaled, w[2]);
    k.add(w[0], quotient)
})
.params(1)
.refuses(DType::is_integral)
.vjp(Reads::inputs(0b110), |cx, g| {
    let over = || g.mul(&cx.operand(3)?)?.div(&cx.operand(2)?);
    let third = || over()?.mul(&cx.operand(1)?)?.div(&cx.operand(2)?)?.neg();
    Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, over)?, cx.when(2, third)?, None])
});

/// `a + weight * (b - a)`, from the nearer end, so that weight 1 gives `b` itself.
static LERP: Spec = Spec::new("lerp", Rule::Common, |k, x| {
    let (a, b, w) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]));
    let one = k.like(w, 1.0);
    let (span, rest) = (k.sub(b, a), k.sub(w, one));
    let (low, high, size) = (k.fma(span, w, a), k.fma(span, rest, b), super::complex::magnitude(k, w));
    let half = k.like(size, 0.5);
    let near = k.lt(size, half);
    k.select(near, low, high)
})
.refuses(DType::is_integral)
.vjp(Reads::inputs(0b111), |cx, g| {
    Ok(smallvec![
        cx.when(0, || g.sub(&g.mul(&cx.operand(2)?)?))?,
        cx.when(1, || g.mul(&cx.operand(2)?))?,
        cx.when(2, || g.mul(&cx.tensor(1)?.sub(&cx.operand(0)?)?))?
    ])
});

type Chosen<'a> = Result<(&'static Spec, SmallVec<[Operand<'a>; 3]>)>;

/// `add` and `sub` with their factor: left out where it is 1.
fn scaled<'a>(a: &'a Args, plain: &'static Spec, scaled: &'static Spec) -> Chosen<'a> {
    let alpha = a.scalar(2)?;
    let (x, y) = (a.operand(0)?, a.operand(1)?);
    if matches!(alpha, Scalar::Int(1)) || alpha == Scalar::Float(1.0) {
        return Ok((plain, smallvec![x, y]));
    }
    let integral = |o: Operand| match o {
        Operand::Tensor(t) => t.dtype().is_integral(),
        Operand::Scalar(s) => s.is_integral(),
    };
    let complex = |o: Operand| match o {
        Operand::Tensor(t) => t.dtype().is_complex(),
        Operand::Scalar(s) => s.dtype().is_complex(),
    };
    if alpha.dtype().is_complex() && !complex(x) && !complex(y) {
        return Err(Error::runtime(format!("{}: For non-complex input tensors, argument alpha must not be a complex number.", plain.name)));
    }
    if !alpha.is_integral() && integral(x) && integral(y) {
        return Err(Error::runtime(format!(
            "{}: For integral input tensors, argument alpha must not be a floating point number.",
            plain.name
        )));
    }
    Ok((scaled, smallvec![x, y, Operand::Scalar(alpha)]))
}

fn swapped(a: &Args) -> Chosen<'_> {
    let alpha = a.scalar(2)?;
    let spec = if alpha == Scalar::Int(1) { &SUB } else { &SUB_SCALED };
    let mut operands: SmallVec<[Operand; 3]> = smallvec![a.operand(1)?, a.operand(0)?];
    if alpha != Scalar::Int(1) {
        operands.push(Operand::Scalar(alpha));
    }
    Ok((spec, operands))
}

pub(super) static OPS: &[Op] = &[
    choose("add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", |a| scaled(a, &ADD, &ADD_SCALED))
        .numbers(0xff)
        .doc("`self + alpha * other`, element by element, with broadcasting and type promotion.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3)", "T(2,1), T(3), alpha=2", "T(2,3), 2"])
        .reference(|x| x[0] + x.get(2).unwrap_or(&1.0) * x[1]),
    choose("sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", |a| scaled(a, &SUB, &SUB_SCALED))
        .numbers(0xff)
        .doc("`self - alpha * other`, element by element. bool is refused: use `^` or `logical_xor`.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3), alpha=2", "T(2,3), 2"])
        .reference(|x| x[0] - x.get(2).unwrap_or(&1.0) * x[1]),
    choose("subtract(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", |a| scaled(a, &SUB, &SUB_SCALED))
        .numbers(0xff)
        .doc("Alias of `sub`.")
        .samples(&["T(2,3), T(3)"]),
    choose("rsub(Tensor self, Tensor other, Scalar alpha=1) -> Tensor", swapped)
        .numbers(0b10)
        .doc("`other - alpha * self`, element by element.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), 2"])
        .without_inplace()
        .without_out(),
    pointwise("mul(Tensor self, Tensor other) -> Tensor", &MUL)
        .numbers(0xff)
        .doc("Product of `self` and `other`, element by element.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(2,1)", "T(2,3), 2"])
        .reference(|x| x[0] * x[1]),
    pointwise("multiply(Tensor self, Tensor other) -> Tensor", &MUL).numbers(0xff).doc("Alias of `mul`.").samples(&["T(2,3), T(3)"]),
    pointwise("neg(Tensor self) -> Tensor", &NEG)
        .doc("`-self`, element by element. bool is refused: use `~`.")
        .samples(&["T(2,3)"])
        .reference(|x| -x[0]),
    pointwise("negative(Tensor self) -> Tensor", &NEG).doc("Alias of `neg`.").samples(&["T(2,3)"]),
    view_row("positive(Tensor(a) self) -> Tensor(a)", |a| {
        let x = a.tensor(0)?;
        if x.dtype() == DType::Bool {
            return Err(Error::runtime("positive: The `+` operator, on a bool tensor is not supported."));
        }
        Ok(x.clone().into())
    })
    .doc("`self`.")
    .samples(&["T(2,3)"]),
    pointwise("abs(Tensor self) -> Tensor", &ABS).doc("Magnitude, element by element.").samples(&["T(2,3)"]).reference(|x| x[0].abs()),
    pointwise("absolute(Tensor self) -> Tensor", &ABS).doc("Alias of `abs`.").samples(&["T(2,3)"]),
    pointwise("sign(Tensor self) -> Tensor", &SIGN).doc("-1, 0 or 1 by the sign, element by element; 0 for NaN.").samples(&["T(2,3)"]),
    choose("square(Tensor self) -> Tensor", |a| {
        let x = a.operand(0)?;
        // The square of a bool is an integer.
        let bool = matches!(x, Operand::Tensor(t) if t.dtype() == DType::Bool);
        Ok(if bool { (&MUL, smallvec![x, 1.into()]) } else { (&SQUARE, smallvec![x]) })
    })
    .doc("`self * self`, element by element.")
    .samples(&["T(2,3)"])
    .reference(|x| x[0] * x[0]),
    pointwise("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", &ADDCMUL)
        .doc("`self + value * tensor1 * tensor2`, element by element.")
        .samples(&["T(2,3), T(2,3), T(3)", "T(2,3), T(2,3), T(2,3), value=2"])
        .reference(|x| x[0] + x[3] * x[1] * x[2]),
    pointwise("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", &ADDCDIV)
        .doc("`self + value * tensor1 / tensor2`, element by element. Integers are refused.")
        .samples(&["T(2,3), T(2,3), T(2,3; 0.5..2)", "T(2,3), T(2,3), T(2,3; 0.5..2), value=2"])
        .reference(|x| x[0] + x[3] * x[1] / x[2]),
    pointwise("lerp(Tensor self, Tensor end, Tensor weight) -> Tensor", &LERP)
        .doc("`self + weight * (end - self)`, element by element.")
        .samples(&["T(2,3), T(2,3), T(2,3)", "T(2,3), T(2,3), 0.25"])
        .reference(|x| x[0] + x[2] * (x[1] - x[0])),
];

impl Tensor {
    /// Sum, element by element, with broadcasting.
    pub fn add<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&ADD, &[self.into(), other.into()])
    }

    /// Adds in place.
    pub fn add_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        call_inplace(&ADD, &[self.into(), other.into()])?;
        Ok(self)
    }

    /// Difference, element by element, with broadcasting.
    pub fn sub<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&SUB, &[self.into(), other.into()])
    }

    /// Subtracts in place.
    pub fn sub_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        call_inplace(&SUB, &[self.into(), other.into()])?;
        Ok(self)
    }

    /// Product, element by element, with broadcasting.
    pub fn mul<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&MUL, &[self.into(), other.into()])
    }

    /// Multiplies in place.
    pub fn mul_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        call_inplace(&MUL, &[self.into(), other.into()])?;
        Ok(self)
    }

    /// The negative, element by element.
    pub fn neg(&self) -> Result<Tensor> {
        call(&NEG, &[self.into()])
    }

    /// Magnitude, element by element.
    pub fn abs(&self) -> Result<Tensor> {
        call(&ABS, &[self.into()])
    }

    /// -1, 0 or 1 by the sign, element by element.
    pub fn sign(&self) -> Result<Tensor> {
        call(&SIGN, &[self.into()])
    }

    /// Square, element by element.
    pub fn square(&self) -> Result<Tensor> {
        call(&SQUARE, &[self.into()])
    }
}
