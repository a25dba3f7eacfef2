//! Activation functions of networks.

use super::shrink::between;
use super::{Rule, Spec, call, call_inplace, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, choose, place, pointwise};
use flambeau_base::{DType, Error, Result};
use flambeau_ir::{Body, Val};
use smallvec::smallvec;

const ALL: u8 = place::TORCH | place::METHOD | place::NN;

/// 0 below zero, in the value's dtype.
fn rectify(k: &mut Body, x: Val) -> Val {
    let zero = k.like(x, 0);
    k.maximum(zero, x)
}

pub(crate) static RELU: Spec = Spec::new("relu", Rule::Common, |k, x| rectify(k, x[0]))
    .refuses(|d| d == DType::Bool)
    .vjp(Reads::OUTPUT, |cx, g| one(call(&RELU_BACKWARD, &[g.into(), (&cx.output()?).into()])));

static RELU_BACKWARD: Spec = Spec::new("relu_backward", Rule::Common, |k, x| {
    let zero = k.like(x[1], 0);
    let on = k.gt(x[1], zero);
    k.select(on, x[0], zero)
})
.vjp(Reads::inputs(0b10), |cx, gg| Ok(smallvec![cx.when(0, || call(&RELU_BACKWARD, &[gg.into(), (&cx.operand(1)?).into()]))?, None]));

static RELU6: Spec = Spec::new("relu6", Rule::Common, |k, x| {
    let (zero, six) = (k.like(x[0], 0), k.like(x[0], 6));
    let raised = k.maximum(zero, x[0]);
    k.minimum(six, raised)
})
.refuses(|d| d == DType::Bool)
.vjp(Reads::INPUT, |cx, g| one(between(g, &cx.tensor(0)?, 0.0.into(), 6.0.into())));

static HARDTANH: Spec = Spec::new("hardtanh", Rule::Common, |k, x| {
    let raised = k.maximum(x[1], x[0]);
    k.minimum(x[2], raised)
})
.params(2)
.refuses(|d| d == DType::Bool)
.vjp(Reads::INPUT, |cx, g| {
    Ok(smallvec![Some(between(g, &cx.tensor(0)?, (&cx.operand(1)?).into(), (&cx.operand(2)?).into())?), None, None])
});

static LEAKY_RELU: Spec = Spec::new("leaky_relu", Rule::Common, |k, x| {
    let (a, slope) = (k.widen(x[0]), k.widen(x[1]));
    let zero = k.like(a, 0.0);
    let (on, low) = (k.gt(a, zero), k.mul(a, slope));
    k.select(on, a, low)
})
.params(1)
.refuses(DType::is_integral)
.vjp(Reads::INPUT, |cx, g| Ok(smallvec![Some(super::shrink::step(g, &cx.tensor(0)?, (&cx.operand(1)?).into())?), None]));

/// Parameters: alpha, scale, input scale.
static ELU: Spec = Spec::new("elu", Rule::Common, |k, x| {
    let (a, alpha, scale, inner) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]), k.widen(x[3]));
    let zero = k.like(a, 0.0);
    let high = k.mul(a, scale);
    let (scaled, coefficient) = (k.mul(a, inner), k.mul(alpha, scale));
    let grown = k.expm1(scaled);
    let (low, on) = (k.mul(grown, coefficient), k.gt(a, zero));
    k.select(on, high, low)
})
.params(3)
.refuses(DType::is_integral)
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    let (alpha, scale, inner) = (number(&cx.operand(1)?), number(&cx.operand(2)?), number(&cx.operand(3)?));
    let low = x.mul(inner)?.exp()?.mul(alpha * scale * inner)?;
    Ok(smallvec![Some(g.mul(&Tensor::where_(&x.gt(0)?, scale, &low)?)?), None, None, None])
});

/// Alpha and scale of SELU.
const SELU: (f64, f64) = (1.6732632423543772, 1.0507009873554805);

fn number(a: &super::Arg) -> f64 {
    super::scalar_of(a).to_f64()
}

pub(crate) static SIGMOID: Spec = Spec::new("sigmoid", Rule::Float, |k, x| k.sigmoid(x[0]))
    .vjp(Reads::OUTPUT, |cx, g| one(call(&SIGMOID_BACKWARD, &[g.into(), (&cx.output()?).into()])));

/// `g * (1 - y) * y`, rounded once.
static SIGMOID_BACKWARD: Spec = Spec::new("sigmoid_backward", Rule::Common, |k, x| {
    let (g, y) = (k.widen(x[0]), k.widen(x[1]));
    let one = k.like(y, 1.0);
    let rest = k.sub(one, y);
    let slope = k.mul(rest, y);
    k.mul(g, slope)
})
.vjp(Reads::inputs(0b11), |cx, gg| {
    let second = || gg.mul(&cx.operand(0)?)?.mul(&cx.tensor(1)?.mul(-2.0)?.add(1.0)?);
    Ok(smallvec![cx.when(0, || call(&SIGMOID_BACKWARD, &[gg.into(), (&cx.operand(1)?).into()]))?, cx.when(1, second)?])
});

static LOGSIGMOID: Spec = Spec::new("log_sigmoid", Rule::Float, |k, x| k.log_sigmoid(x[0]))
    .refuses(DType::is_integral)
    .vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.neg()?.sigmoid()?)));

static SILU: Spec = Spec::new("silu", Rule::Common, |k, x| k.silu(x[0])).refuses(DType::is_integral).vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    if x.dtype().is_complex() {
        let s = x.sigmoid()?;
        return one(g.mul(&s.mul(&x.mul(&s.neg()?.add(1.0)?)?.add(1.0)?)?));
    }
    one(call(&SILU_BACKWARD, &[g.into(), (&x).into()]))
});

static SILU_BACKWARD: Spec = Spec::new("silu_backward", Rule::Common, |k, x| {
    let (g, a) = (k.widen(x[0]), k.widen(x[1]));
    let slope = k.silu_grad(a);
    k.mul(g, slope)
})
.vjp(Reads::inputs(0b11), |cx, gg| {
    let second = || {
        // (x s)'' = s' (2 + x (1 - 2 s)) with s the logistic function.
        let x = cx.tensor(1)?;
        let s = x.sigmoid()?;
        let slope = s.mul(&s.neg()?.add(1.0)?)?;
        gg.mul(&cx.operand(0)?)?.mul(&slope.mul(&x.mul(&s.mul(-2.0)?.add(1.0)?)?.add(2.0)?)?)
    };
    Ok(smallvec![cx.when(0, || call(&SILU_BACKWARD, &[gg.into(), (&cx.operand(1)?).into()]))?, cx.when(1, second)?])
});

/// Parameters: beta, threshold.
static SOFTPLUS: Spec = Spec::new("softplus", Rule::Common, |k, x| {
    let (a, beta, threshold) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]));
    let scaled = k.mul(a, beta);
    let grown = k.exp(scaled);
    let soft = k.log1p(grown);
    let (soft, straight) = (k.div(soft, beta), k.gt(scaled, threshold));
    k.select(straight, a, soft)
})
.params(2)
.refuses(DType::is_integral)
.vjp(Reads::INPUT, |cx, g| {
    let (beta, threshold) = (number(&cx.operand(1)?), number(&cx.operand(2)?));
    let scaled = cx.tensor(0)?.mul(beta)?;
    Ok(smallvec![Some(Tensor::where_(&scaled.gt(threshold)?, g, &g.mul(&scaled.sigmoid()?)?)?), None, None])
});

static MISH: Spec = Spec::new("mish", Rule::Common, |k, x| {
    let a = k.widen(x[0]);
    let grown = k.exp(a);
    let soft = k.log1p(grown);
    let bent = k.tanh(soft);
    k.mul(a, bent)
})
.refuses(DType::is_integral)
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    let (s, t) = (x.sigmoid()?, x.exp()?.log1p()?.tanh()?);
    one(g.mul(&t.add(&x.mul(&s)?.mul(&t.mul(&t)?.neg()?.add(1.0)?)?)?))
});

static HARDSIGMOID: Spec = Spec::new("hardsigmoid", Rule::Common, |k, x| {
    let a = k.widen(x[0]);
    hard_gate(k, a)
})
.refuses(DType::is_integral)
.vjp(Reads::INPUT, |cx, g| one(between(&g.mul(1.0 / 6.0)?, &cx.tensor(0)?, (-3.0).into(), 3.0.into())));

/// `min(max(x + 3, 0), 6) / 6`.
fn hard_gate(k: &mut Body, a: Val) -> Val {
    let (zero, three, six) = (k.like(a, 0.0), k.like(a, 3.0), k.like(a, 6.0));
    let moved = k.add(a, three);
    let raised = k.maximum(moved, zero);
    let cut = k.minimum(raised, six);
    k.div(cut, six)
}

static HARDSWISH: Spec = Spec::new("hardswish", Rule::Common, |k, x| {
    let a = k.widen(x[0]);
    let gate = hard_gate(k, a);
    k.mul(a, gate)
})
.refuses(DType::is_integral)
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    let middle = g.mul(&x.mul(1.0 / 3.0)?.add(0.5)?)?;
    one(Tensor::where_(&x.le(-3.0)?, 0, &Tensor::where_(&x.lt(3.0)?, &middle, g)?))
});

pub(super) static OPS: &[Op] = &[
    pointwise("relu(Tensor self) -> Tensor", &RELU)
        .doc("`max(self, 0)`, element by element; the gradient at 0 is 0.")
        .places(ALL)
        .samples(&["T(2,3)"])
        .reference(|x| x[0].max(0.0))
        .without_out(),
    pointwise("relu6(Tensor self) -> Tensor", &RELU6)
        .doc("`min(max(self, 0), 6)`, element by element.")
        .places(place::NN)
        .samples(&["T(2,3)"])
        .reference(|x| x[0].clamp(0.0, 6.0))
        .without_out(),
    choose("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", |a| {
        let (low, high) = super::select::ends_of_its_dtype(a)?;
        Ok((&HARDTANH, smallvec![a.operand(0)?, low, high]))
    })
    .doc("Values brought into the range from `min_val` to `max_val`.")
    .places(place::NN)
    .samples(&["T(2,3)", "T(2,3), -0.5, 0.5"]),
    pointwise("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", &LEAKY_RELU)
        .doc("`self` above zero, `negative_slope * self` below.")
        .places(place::NN)
        .samples(&["T(2,3)", "T(2,3), 0.2"]),
    pointwise("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", &ELU)
        .doc("`scale * self` above zero, `scale * alpha * (exp(input_scale * self) - 1)` below (Clevert et al., 2015).")
        .places(place::NN)
        .samples(&["T(2,3)", "T(2,3), 0.5"]),
    choose("selu(Tensor self) -> Tensor", |a| Ok((&ELU, smallvec![a.operand(0)?, SELU.0.into(), SELU.1.into(), 1.0.into()])))
        .doc("`scale * elu(self, alpha)` with the two constants of self-normalising networks (Klambauer et al., 2017).")
        .places(place::TORCH)
        .samples(&["T(2,3)"])
        .without_out(),
    choose("celu(Tensor self, Scalar alpha=1.0) -> Tensor", |a| {
        let alpha = a.scalar(1)?.to_f64();
        if alpha == 0.0 {
            return Err(Error::runtime("ZeroDivisionError: celu: alpha cannot be 0"));
        }
        Ok((&ELU, smallvec![a.operand(0)?, alpha.into(), 1.0.into(), (1.0 / alpha).into()]))
    })
    .doc("`self` above zero, `alpha * (exp(self / alpha) - 1)` below (Barron, 2017).")
    .places(place::TORCH)
    .samples(&["T(2,3)", "T(2,3), 0.5"])
    .without_out(),
    pointwise("sigmoid(Tensor self) -> Tensor", &SIGMOID)
        .doc("The logistic function `1 / (1 + exp(-self))`.")
        .places(ALL | place::SPECIAL)
        .samples(&["T(2,3)"])
        .reference(|x| 1.0 / (1.0 + (-x[0]).exp())),
    pointwise("expit(Tensor self) -> Tensor", &SIGMOID)
        .doc("Alias of `sigmoid`.")
        .places(place::SPECIAL)
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("logsigmoid(Tensor self) -> Tensor", &LOGSIGMOID)
        .doc("`log(sigmoid(self))`, stable for large values.")
        .places(place::NN)
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("silu(Tensor self) -> Tensor", &SILU)
        .doc("`self * sigmoid(self)` (Elfwing et al., 2017).")
        .places(place::NN)
        .samples(&["T(2,3)"])
        .reference(|x| x[0] / (1.0 + (-x[0]).exp()))
        .without_out(),
    pointwise("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", &SOFTPLUS)
        .doc("`log(1 + exp(beta * self)) / beta`; `self` where `beta * self` is above the threshold.")
        .places(place::NN)
        .samples(&["T(2,3)", "T(2,3), 2, 1"])
        .without_inplace(),
    pointwise("mish(Tensor self) -> Tensor", &MISH)
        .doc("`self * tanh(softplus(self))` (Misra, 2019).")
        .places(place::NN)
        .samples(&["T(2,3)"])
        .without_out(),
    pointwise("hardsigmoid(Tensor self) -> Tensor", &HARDSIGMOID)
        .doc("`min(max(self + 3, 0), 6) / 6`.")
        .places(place::NN)
        .samples(&["T(2,3)"]),
    pointwise("hardswish(Tensor self) -> Tensor", &HARDSWISH)
        .doc("`self * hardsigmoid(self)` (Howard et al., 2019).")
        .places(place::NN)
        .samples(&["T(2,3)"])
        .without_out(),
];

impl Tensor {
    /// `max(x, 0)`, element by element.
    pub fn relu(&self) -> Result<Tensor> {
        call(&RELU, &[self.into()])
    }

    /// `max(x, 0)` in place.
    pub fn relu_(&self) -> Result<&Tensor> {
        call_inplace(&RELU, &[self.into()])?;
        Ok(self)
    }

    /// The logistic function.
    pub fn sigmoid(&self) -> Result<Tensor> {
        call(&SIGMOID, &[self.into()])
    }

    /// `x * sigmoid(x)`, element by element.
    pub fn silu(&self) -> Result<Tensor> {
        call(&SILU, &[self.into()])
    }

    /// `x` above zero, `slope * x` below.
    pub fn leaky_relu(&self, slope: f64) -> Result<Tensor> {
        call(&LEAKY_RELU, &[self.into(), slope.into()])
    }

    /// `log(sigmoid(x))`, element by element, computed stably.
    pub fn logsigmoid(&self) -> Result<Tensor> {
        call(&LOGSIGMOID, &[self.into()])
    }
}
