//! Choosing between values.

use super::{Operand, Rule, Spec, call, call_inplace};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Value, choose, place, pointwise};
use flambeau_base::{DType, Error, Result, Scalar};
use smallvec::{SmallVec, smallvec};

pub(super) static WHERE: Spec = Spec::new("where", Rule::Select, |k, x| k.select(x[0], x[1], x[2])).vjp(Reads::INPUT, |cx, g| {
    Ok(smallvec![
        None,
        cx.when(1, || call(&WHERE, &[(&cx.operand(0)?).into(), g.into(), 0.into()]))?,
        cx.when(2, || call(&WHERE, &[(&cx.operand(0)?).into(), 0.into(), g.into()]))?
    ])
});

/// `self` where the mask does not hold, else the value, in the dtype of `self`.
pub(crate) static MASKED_FILL: Spec = Spec::new("masked_fill", Rule::First, |k, x| {
    let mask = k.convert(x[1], DType::Bool);
    k.select(mask, x[2], x[0])
})
.vjp(Reads::inputs(0b10), |cx, g| {
    Ok(smallvec![
        cx.when(0, || g.masked_fill(&cx.tensor(1)?, 0))?,
        None,
        cx.when(2, || call(&WHERE, &[(&cx.operand(1)?).into(), g.into(), 0.into()])?.sum())?
    ])
});

/// Gradients of ties are shared in halves.
fn larger(cx: &super::OpCx, g: &Tensor, wins: fn(&Tensor, Operand) -> Result<Tensor>) -> Result<crate::autograd::Grads> {
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    let (a, b) = match (&a, &b) {
        (super::Arg::Tensor(a), b) => (a.clone(), b.clone()),
        (_, super::Arg::Tensor(b)) => (Tensor::number(crate::ops::pointwise::scalar_of(&a))?, super::Arg::Tensor(b.clone())),
        _ => return Err(Error::runtime("maximum: no tensor among the operands")),
    };
    let half = g.mul(0.5)?;
    let tie = a.eq(&b)?;
    let first =
        || call(&WHERE, &[(&tie).into(), (&half).into(), (&call(&WHERE, &[(&wins(&a, (&b).into())?).into(), g.into(), 0.into()])?).into()]);
    let second =
        || call(&WHERE, &[(&tie).into(), (&half).into(), (&call(&WHERE, &[(&wins(&a, (&b).into())?).into(), 0.into(), g.into()])?).into()]);
    Ok(smallvec![cx.when(0, first)?, cx.when(1, second)?])
}

static MAXIMUM: Spec =
    Spec::new("maximum", Rule::Common, |k, x| if k.dtype(x[0]) == DType::Bool { k.or(x[0], x[1]) } else { k.maximum(x[0], x[1]) })
        .vjp(Reads::inputs(0b11), |cx, g| larger(cx, g, |a, b| a.gt(b)));
static MINIMUM: Spec =
    Spec::new("minimum", Rule::Common, |k, x| if k.dtype(x[0]) == DType::Bool { k.and(x[0], x[1]) } else { k.minimum(x[0], x[1]) })
        .vjp(Reads::inputs(0b11), |cx, g| larger(cx, g, |a, b| a.lt(b)));
static FMAX: Spec =
    Spec::new("fmax", Rule::Common, |k, x| if k.dtype(x[0]).is_float() { k.fmax(x[0], x[1]) } else { k.maximum(x[0], x[1]) })
        .refuses(|d| d == DType::Bool)
        .vjp(Reads::inputs(0b11), |cx, g| larger(cx, g, |a, b| a.gt(b)));
static FMIN: Spec =
    Spec::new("fmin", Rule::Common, |k, x| if k.dtype(x[0]).is_float() { k.fmin(x[0], x[1]) } else { k.minimum(x[0], x[1]) })
        .refuses(|d| d == DType::Bool)
        .vjp(Reads::inputs(0b11), |cx, g| larger(cx, g, |a, b| a.lt(b)));

/// `min(max(x, low), high)`; gradients pass strictly inside and nowhere else (the convention of 2026).
static CLAMP: Spec = Spec::new("clamp", Rule::Common, |k, x| {
    let raised = k.maximum(x[0], x[1]);
    k.minimum(raised, x[2])
})
.refuses(|d| d == DType::Bool)
.vjp(Reads::inputs(0b111), |cx, g| {
    let (x, low, high) = (cx.tensor(0)?, cx.operand(1)?, cx.operand(2)?);
    let inside = || x.gt(&low)?.logical_and(&x.lt(&high)?);
    let below = || x.lt(&low)?.logical_and(&cx_le(&low, &high)?);
    let above = || x.gt(&high)?.logical_or(&cx_le(&low, &high)?.logical_not()?);
    let keep = |m: Tensor| call(&WHERE, &[(&m).into(), g.into(), 0.into()]);
    Ok(smallvec![cx.when(0, || keep(inside()?))?, cx.when(1, || keep(below()?))?, cx.when(2, || keep(above()?))?])
});

fn cx_le(low: &super::Arg, high: &super::Arg) -> Result<Tensor> {
    match (low, high) {
        (super::Arg::Tensor(l), h) => l.le(h),
        (l, super::Arg::Tensor(h)) => h.ge(l),
        (l, h) => Tensor::number(super::scalar_of(l))?.le(h),
    }
}

static CLAMP_MIN: Spec =
    Spec::new("clamp_min", Rule::Common, |k, x| k.maximum(x[0], x[1])).refuses(|d| d == DType::Bool).vjp(Reads::inputs(0b11), |cx, g| {
        let (x, low) = (cx.tensor(0)?, cx.operand(1)?);
        let keep = |m: Tensor| call(&WHERE, &[(&m).into(), g.into(), 0.into()]);
        Ok(smallvec![cx.when(0, || keep(x.gt(&low)?))?, cx.when(1, || keep(x.lt(&low)?))?])
    });

static CLAMP_MAX: Spec =
    Spec::new("clamp_max", Rule::Common, |k, x| k.minimum(x[0], x[1])).refuses(|d| d == DType::Bool).vjp(Reads::inputs(0b11), |cx, g| {
        let (x, high) = (cx.tensor(0)?, cx.operand(1)?);
        let keep = |m: Tensor| call(&WHERE, &[(&m).into(), g.into(), 0.into()]);
        Ok(smallvec![cx.when(0, || keep(x.lt(&high)?))?, cx.when(1, || keep(x.gt(&high)?))?])
    });

static NAN_TO_NUM: Spec = Spec::new("nan_to_num", Rule::Common, |k, x| {
    if k.dtype(x[0]).is_integral() {
        return x[0];
    }
    let (zero, bad, inf) = (k.like(x[0], 0.0), k.is_nan(x[0]), k.is_inf(x[0]));
    let up = k.gt(x[0], zero);
    let end = k.select(up, x[2], x[3]);
    let finite = k.select(inf, end, x[0]);
    k.select(bad, x[1], finite)
})
.params(3)
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    Ok(smallvec![Some(call(&WHERE, &[(&x.isfinite()?).into(), g.into(), 0.into()])?), None, None, None])
});

static HEAVISIDE: Spec = Spec::new("heaviside", Rule::Common, |k, x| {
    let (zero, one) = (k.like(x[0], 0), k.like(x[0], 1));
    let (at, above) = (k.eq(x[0], zero), k.gt(x[0], zero));
    let step = k.select(above, one, zero);
    k.select(at, x[1], step)
});

type Chosen<'a> = Result<(&'static Spec, SmallVec<[Operand<'a>; 3]>)>;

/// The lower end of a clamp: an integer below all that the tensor's dtype holds stands for the least of these.
fn low_end(a: &Args, i: usize) -> Result<Operand<'_>> {
    end_within(a, a.operand(i)?, |n, low, _| n < low)
}

/// The upper end of a clamp: an integer above all that the tensor's dtype holds stands for the greatest of these.
fn high_end(a: &Args, i: usize) -> Result<Operand<'_>> {
    end_within(a, a.operand(i)?, |n, _, high| n > high)
}

/// The ends of `hardtanh`, which take the tensor's dtype.
pub(super) fn ends_of_its_dtype(a: &Args) -> Result<(Operand<'_>, Operand<'_>)> {
    let integral = a.tensor(0)?.dtype().is_integral();
    let end = |i: usize| Ok::<_, Error>(if integral { Operand::Scalar(Scalar::Int(a.scalar(i)?.to_i64())) } else { a.operand(i)? });
    Ok((end_within(a, end(1)?, |n, low, _| n < low)?, end_within(a, end(2)?, |n, _, high| n > high)?))
}

/// An end of a clamp, brought into the range of the tensor's dtype where it is `loose`; an error where nothing would fit.
fn end_within<'a>(a: &Args, end: Operand<'a>, loose: fn(i128, i128, i128) -> bool) -> Result<Operand<'a>> {
    let Operand::Scalar(Scalar::Int(n)) = end else { return Ok(end) };
    let dtype = a.tensor(0)?.dtype();
    let Some((low, high)) = dtype.integer_range() else { return Ok(end) };
    let n = n as i128;
    if (low..=high).contains(&n) {
        return Ok(end);
    }
    if !loose(n, low, high) {
        return Err(Error::runtime(format!("clamp: the end {n} is outside the representable range of {dtype}, [{low}, {high}]")));
    }
    Ok(Operand::Scalar(Scalar::Int(n.clamp(low, high) as i64)))
}

fn clamp(a: &Args) -> Chosen<'_> {
    let given = |i: usize| !matches!(a.values[i], Value::None);
    Ok(match (given(1), given(2)) {
        (true, true) => (&CLAMP, smallvec![a.operand(0)?, low_end(a, 1)?, high_end(a, 2)?]),
        (true, false) => (&CLAMP_MIN, smallvec![a.operand(0)?, low_end(a, 1)?]),
        (false, true) => (&CLAMP_MAX, smallvec![a.operand(0)?, high_end(a, 2)?]),
        _ => return Err(Error::runtime("clamp: At least one of 'min' or 'max' must not be None")),
    })
}

fn chosen(a: &Args) -> Chosen<'_> {
    if let Operand::Tensor(c) = a.operand(0)?
        && !matches!(c.dtype(), DType::Bool | DType::U8)
    {
        return Err(Error::runtime(format!("where: expected condition to be a boolean tensor, but got a tensor with dtype {}", c.dtype())));
    }
    Ok((&WHERE, smallvec![a.operand(0)?, a.operand(1)?, a.operand(2)?]))
}

fn filled(a: &Args) -> Chosen<'_> {
    let mask = a.tensor(1)?;
    if mask.dtype() != DType::Bool {
        return Err(Error::runtime(format!(
            "masked_fill: masked_fill only supports boolean masks, but got mask with dtype {}",
            mask.dtype()
        )));
    }
    match a.operand(2)? {
        Operand::Scalar(s) => {
            s.checked_for("masked_fill", a.tensor(0)?.dtype())?;
        }
        Operand::Tensor(v) if v.ndim() > 0 => {
            return Err(Error::runtime(format!(
                "masked_fill: masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                v.ndim()
            )));
        }
        Operand::Tensor(_) => {}
    }
    Ok((&MASKED_FILL, smallvec![a.operand(0)?, a.operand(1)?, a.operand(2)?]))
}

fn numbers(a: &Args) -> Chosen<'_> {
    let x = a.tensor(0)?;
    let (low, high) = match x.dtype() {
        DType::F16 => (-65504.0, 65504.0),
        DType::BF16 => (-3.3895313892515355e38, 3.3895313892515355e38),
        DType::F64 => (f64::MIN, f64::MAX),
        _ => (f32::MIN as f64, f32::MAX as f64),
    };
    let nan = a.opt_float(1)?.unwrap_or(0.0);
    let (up, down) = (a.opt_float(2)?.unwrap_or(high), a.opt_float(3)?.unwrap_or(low));
    Ok((&NAN_TO_NUM, smallvec![x.into(), nan.into(), up.into(), down.into()]))
}

pub(super) static OPS: &[Op] = &[
    choose("where(Tensor condition, Tensor self, Tensor other) -> Tensor", chosen)
        .doc("`self` where `condition` (bool) holds, else `other`, with broadcasting and type promotion.")
        .samples(&["B(2,3), T(2,3), T(3)", "B(2,3), T(2,3), 0", "B(3), 1.5, T(2,3)"])
        .without_inplace(),
    choose("masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor", filled)
        .doc("`self` with `value` (a number or a 0-dimensional tensor) where `mask` (bool) holds.")
        .samples(&["T(2,3), B(2,3), 1.5", "T(2,3), B(3), T()"])
        .without_out(),
    pointwise("maximum(Tensor self, Tensor other) -> Tensor", &MAXIMUM)
        .doc("The larger of each pair; NaN if one is NaN.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3)"])
        .reference(|x| x[0].max(x[1]))
        .without_inplace(),
    pointwise("minimum(Tensor self, Tensor other) -> Tensor", &MINIMUM)
        .doc("The smaller of each pair; NaN if one is NaN.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3)"])
        .reference(|x| x[0].min(x[1]))
        .without_inplace(),
    pointwise("fmax(Tensor self, Tensor other) -> Tensor", &FMAX)
        .doc("The larger of each pair; a NaN gives way to a number.")
        .samples(&["T(2,3), T(3)"])
        .without_inplace(),
    pointwise("fmin(Tensor self, Tensor other) -> Tensor", &FMIN)
        .doc("The smaller of each pair; a NaN gives way to a number.")
        .samples(&["T(2,3), T(3)"])
        .without_inplace(),
    choose("clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp)
        .doc("Values brought into the range from `min` to `max`, numbers or tensors; one of them may be left out.")
        .samples(&["T(2,3), -0.5, 0.5", "T(2,3), 0.25", "T(2,3), max=0.25", "T(2,3), T(2,3; -1..0), T(3; 0..1)"]),
    choose("clip(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp)
        .doc("Alias of `clamp`.")
        .samples(&["T(2,3), -0.5, 0.5"]),
    choose("clamp_min(Tensor self, Tensor min) -> Tensor", |a| Ok((&CLAMP_MIN, smallvec![a.operand(0)?, low_end(a, 1)?])))
        .doc("Values raised to at least `min`.")
        .samples(&["T(2,3), 0.25", "T(2,3), T(3)"]),
    choose("clamp_max(Tensor self, Tensor max) -> Tensor", |a| Ok((&CLAMP_MAX, smallvec![a.operand(0)?, high_end(a, 1)?])))
        .doc("Values lowered to at most `max`.")
        .samples(&["T(2,3), 0.25", "T(2,3), T(3)"]),
    choose("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", numbers)
        .doc("NaN and infinities replaced by numbers: 0 and the dtype's largest and smallest unless given.")
        .samples(&["T(2,3)", "T(2,3), 1.0, 2.0, 3.0"]),
    pointwise("heaviside(Tensor self, Tensor values) -> Tensor", &HEAVISIDE)
        .doc("0 below zero, 1 above, `values` at zero.")
        .samples(&["T(2,3), T(3)"])
        .places(place::TORCH | place::METHOD),
];

impl Tensor {
    /// `a` where `condition` (bool) holds, else `b`.
    pub fn where_<'a>(condition: &Tensor, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&WHERE, &[condition.into(), a.into(), b.into()])
    }

    /// This tensor with a number where `mask` (bool) holds.
    pub fn masked_fill<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&MASKED_FILL, &[self.into(), mask.into(), value.into()])
    }

    /// Puts a number where `mask` (bool) holds.
    pub fn masked_fill_<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<&Tensor> {
        call_inplace(&MASKED_FILL, &[self.into(), mask.into(), value.into()])?;
        Ok(self)
    }

    /// The larger of each pair; NaN if one is NaN.
    pub fn maximum<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&MAXIMUM, &[self.into(), other.into()])
    }

    /// The smaller of each pair; NaN if one is NaN.
    pub fn minimum<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&MINIMUM, &[self.into(), other.into()])
    }

    /// Values brought into a range.
    pub fn clamp<'a>(&self, low: impl Into<Operand<'a>>, high: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&CLAMP, &[self.into(), low.into(), high.into()])
    }

    /// This tensor repeated to the shape of another.
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        let sizes: SmallVec<[i64; 6]> = other.shape().iter().map(|&n| n as i64).collect();
        self.expand(&sizes)
    }
}
