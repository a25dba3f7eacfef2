//! The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

use super::{Operand, Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, choose, place};
use flambeau_base::{DType, Error, Result};
use smallvec::{SmallVec, smallvec};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

pub(crate) static GELU: Spec = Spec::new("gelu", Rule::Common, |k, x| k.gelu(x[0]))
    .refuses(DType::is_integral)
    .vjp(Reads::INPUT, |cx, g| one(call(&GELU_BACKWARD, &[g.into(), (&cx.operand(0)?).into()])));

/// `g * gelu'(x)`, rounded once.
static GELU_BACKWARD: Spec = Spec::new("gelu_backward", Rule::Common, |k, x| {
    let (g, a) = (k.widen(x[0]), k.widen(x[1]));
    let slope = k.gelu_grad(a);
    k.mul(g, slope)
})
.vjp(Reads::inputs(0b11), |cx, gg| {
    let second = || {
        // gelu'' = φ(x) (2 - x²) with φ the density of the normal distribution.
        let x = cx.tensor(1)?;
        let square = x.mul(&x)?;
        let density = square.mul(-0.5)?.exp()?.mul(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2)?;
        gg.mul(&cx.operand(0)?)?.mul(&density.mul(&square.neg()?.add(2.0)?)?)
    };
    Ok(smallvec![cx.when(0, || call(&GELU_BACKWARD, &[gg.into(), (&cx.operand(1)?).into()]))?, cx.when(1, second)?])
});

static GELU_TANH: Spec = Spec::new("gelu", Rule::Common, |k, x| k.gelu_tanh(x[0]))
    .refuses(DType::is_integral)
    .vjp(Reads::INPUT, |cx, g| one(call(&GELU_TANH_BACKWARD, &[g.into(), (&cx.operand(0)?).into()])));

static GELU_TANH_BACKWARD: Spec = Spec::new("gelu_backward", Rule::Common, |k, x| {
    let (g, a) = (k.widen(x[0]), k.widen(x[1]));
    let slope = k.gelu_tanh_grad(a);
    k.mul(g, slope)
})
.vjp(Reads::inputs(0b11), |cx, gg| {
    Ok(smallvec![
        cx.when(0, || call(&GELU_TANH_BACKWARD, &[gg.into(), (&cx.operand(1)?).into()]))?,
        cx.when(1, || gg.mul(&cx.operand(0)?)?.mul(&tanh_second(&cx.tensor(1)?)?))?
    ])
});

/// Second derivative of `x/2 (1 + tanh u)` with `u = c (x + a x³)`: `(1 - t²) (u' + x/2 u'' - x t u'²)`.
fn tanh_second(x: &Tensor) -> Result<Tensor> {
    let (c, a) = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2, 0.044715);
    let square = x.mul(x)?;
    let t = square.mul(a)?.add(1.0)?.mul(x)?.mul(c)?.tanh()?;
    let first = square.mul(3.0 * a * c)?.add(c)?;
    let bend = x.mul(6.0 * a * c)?.mul(x)?.mul(0.5)?;
    let turn = x.mul(&t)?.mul(&first)?.mul(&first)?;
    t.mul(&t)?.neg()?.add(1.0)?.mul(&first.add(&bend)?.sub(&turn)?)
}

fn approximation(a: &Args) -> Result<(&'static Spec, SmallVec<[Operand<'_>; 3]>)> {
    let spec = match a.str(1)?.as_str() {
        "none" => &GELU,
        "tanh" => &GELU_TANH,
        other => return Err(Error::runtime(format!("gelu: approximate argument must be either none or tanh, got '{other}'"))),
    };
    Ok((spec, smallvec![a.operand(0)?]))
}

pub(super) static OPS: &[Op] = &[choose("gelu(Tensor self, *, str approximate='none') -> Tensor", approximation)
    .doc("`self * Φ(self)` with the normal distribution's Φ, by the error function or (`approximate='tanh'`) by a tanh.")
    .places(place::NN)
    .samples(&["T(2,3)", "T(2,3), approximate='tanh'"])];

impl Tensor {
    /// `x * Φ(x)` with the normal distribution's Φ.
    pub fn gelu(&self) -> Result<Tensor> {
        call(&GELU, &[self.into()])
    }

    /// The tanh approximation of [`Tensor::gelu`].
    pub fn gelu_tanh(&self) -> Result<Tensor> {
        call(&GELU_TANH, &[self.into()])
    }
}
