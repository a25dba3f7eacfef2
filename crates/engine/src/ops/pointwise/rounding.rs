//! To whole numbers.

use super::{Rule, Spec, call, flat};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, choose, pointwise};
use flambeau_base::{DType, Result};
use flambeau_ir::{Body, ScalarOp, Val};
use smallvec::smallvec;

/// Integers are whole already.
fn whole(k: &mut Body, x: Val, op: ScalarOp) -> Val {
    let dtype = k.dtype(x);
    if dtype.is_integral() { x } else { k.step(op, dtype, [x; 3]) }
}

static FLOOR: Spec =
    Spec::new("floor", Rule::Common, |k, x| whole(k, x[0], ScalarOp::Floor)).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |_, g| flat(g));
static CEIL: Spec =
    Spec::new("ceil", Rule::Common, |k, x| whole(k, x[0], ScalarOp::Ceil)).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |_, g| flat(g));
static TRUNC: Spec =
    Spec::new("trunc", Rule::Common, |k, x| whole(k, x[0], ScalarOp::Trunc)).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |_, g| flat(g));
static ROUND: Spec =
    Spec::new("round", Rule::Common, |k, x| whole(k, x[0], ScalarOp::Round)).refuses(|d| d == DType::Bool).vjp(Reads::NONE, |_, g| flat(g));

/// `round(x * 10^d) / 10^d`; the second operand is `10^|d|`.
static ROUND_UP: Spec = Spec::new("round", Rule::Common, |k, x| {
    let (a, scale) = (k.widen(x[0]), k.widen(x[1]));
    let large = k.mul(a, scale);
    let whole = k.round(large);
    k.div(whole, scale)
})
.params(1)
.vjp(Reads::NONE, |_, g| Ok(smallvec![super::flat(g)?.remove(0), None]));

static ROUND_DOWN: Spec = Spec::new("round", Rule::Common, |k, x| {
    let (a, scale) = (k.widen(x[0]), k.widen(x[1]));
    let small = k.div(a, scale);
    let whole = k.round(small);
    k.mul(whole, scale)
})
.params(1)
.vjp(Reads::NONE, |_, g| Ok(smallvec![super::flat(g)?.remove(0), None]));

fn to_decimals(a: &Args) -> Result<(&'static Spec, smallvec::SmallVec<[super::Operand<'_>; 3]>)> {
    let (x, decimals) = (a.operand(0)?, a.int(1)?);
    let scale = super::Operand::from(10f64.powi(decimals.unsigned_abs().min(400) as i32));
    Ok(match decimals {
        0 => (&ROUND, smallvec![x]),
        d if d > 0 => (&ROUND_UP, smallvec![x, scale]),
        _ => (&ROUND_DOWN, smallvec![x, scale]),
    })
}

static FRAC: Spec = Spec::new("frac", Rule::Common, |k, x| {
    let whole = k.trunc(x[0]);
    k.sub(x[0], whole)
})
.refuses(DType::is_integral)
.vjp(Reads::NONE, |_, g| super::one(Ok(g.clone())));

pub(super) static OPS: &[Op] = &[
    pointwise("floor(Tensor self) -> Tensor", &FLOOR)
        .doc("Largest whole number not above, element by element.")
        .samples(&["T(2,3)"])
        .reference(|x| x[0].floor()),
    pointwise("ceil(Tensor self) -> Tensor", &CEIL)
        .doc("Smallest whole number not below, element by element.")
        .samples(&["T(2,3)"])
        .reference(|x| x[0].ceil()),
    pointwise("trunc(Tensor self) -> Tensor", &TRUNC)
        .doc("The whole part, element by element.")
        .samples(&["T(2,3)"])
        .reference(|x| x[0].trunc()),
    pointwise("fix(Tensor self) -> Tensor", &TRUNC).doc("Alias of `trunc`.").samples(&["T(2,3)"]),
    choose("round(Tensor self, *, int decimals=0) -> Tensor", to_decimals)
        .doc("The nearest whole number (or multiple of `10**-decimals`), ties to even.")
        .samples(&["T(2,3)"]),
    pointwise("frac(Tensor self) -> Tensor", &FRAC)
        .doc("The part behind the point: `self - trunc(self)`.")
        .samples(&["T(2,3)"])
        .reference(|x| x[0].fract()),
];

impl Tensor {
    /// Largest whole number not above, element by element.
    pub fn floor(&self) -> Result<Tensor> {
        call(&FLOOR, &[self.into()])
    }

    /// The nearest whole number, ties to even.
    pub fn round(&self) -> Result<Tensor> {
        call(&ROUND, &[self.into()])
    }
}
