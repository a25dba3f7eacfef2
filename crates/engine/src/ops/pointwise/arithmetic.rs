//! The four operations and their kin.

use super::{Operand, Rule, Spec, call, call_inplace};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, pointwise};
use flambeau_base::{DType, Result};
use smallvec::smallvec;

/// `a + alpha * b`.
pub static ADD: Spec = Spec::new("add", Rule::Common, |k, x| k.add(x[0], x[1])).vjp(Reads::NONE, |cx, g| {
    Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || Ok(g.clone()))?])
});

/// `a - b`; bool is refused.
pub static SUB: Spec = Spec::new("sub", Rule::Common, |k, x| k.sub(x[0], x[1])).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |cx, g| {
    Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, || g.neg())?])
});

/// `a * b`.
pub static MUL: Spec = Spec::new("mul", Rule::Common, |k, x| k.mul(x[0], x[1])).vjp(Reads::OTHERS, |cx, g| {
    Ok(smallvec![cx.when(0, || g.mul(&cx.operand(1)?))?, cx.when(1, || g.mul(&cx.operand(0)?))?])
});

/// `-a`; bool is refused.
pub static NEG: Spec = Spec::new("neg", Rule::Common, |k, x| k.neg(x[0])).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |_, g| Ok(smallvec![Some(g.neg()?)]));

pub(super) static OPS: &[Op] = &[
    pointwise("mul(Tensor self, Tensor other) -> Tensor", &MUL).doc("Product of `self` and `other`, element by element.").reference(|x| x[0] * x[1]),
    pointwise("neg(Tensor self) -> Tensor", &NEG).doc("`-self`, element by element.").reference(|x| -x[0]),
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
}
