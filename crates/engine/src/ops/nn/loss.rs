//! Losses that compare element by element.

use super::cross_entropy::Reduction;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{Error, Result, show};

impl Tensor {
    /// The squared difference.
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        reduction.apply(self.sub(target)?.square()?)
    }

    /// The absolute difference.
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        reduction.apply(self.sub(target)?.abs()?)
    }

    /// Half the squared difference over `beta` within `beta`, the absolute difference less half `beta` outside.
    ///
    /// `RuntimeError` where `beta` is negative.
    pub fn smooth_l1_loss(&self, target: &Tensor, reduction: Reduction, beta: f64) -> Result<Tensor> {
        if beta < 0.0 {
            return Err(Error::runtime(format!("smooth_l1_loss: does not support negative values for beta, got {beta}")));
        }
        if beta == 0.0 {
            return self.l1_loss(target, reduction);
        }
        let size = self.sub(target)?.abs()?;
        let inside = size.square()?.mul(0.5 / beta)?;
        reduction.apply(Tensor::where_(&size.lt(beta)?, &inside, &size.sub(0.5 * beta)?)?)
    }

    /// Half the squared difference within `delta`, linear with slope `delta` outside.
    ///
    /// `RuntimeError` where `delta` is not positive.
    pub fn huber_loss(&self, target: &Tensor, reduction: Reduction, delta: f64) -> Result<Tensor> {
        if delta.is_nan() || delta <= 0.0 {
            return Err(Error::runtime(format!("huber_loss: does not support non-positive values for delta, got {delta}")));
        }
        let size = self.sub(target)?.abs()?;
        let inside = size.square()?.mul(0.5)?;
        let outside = size.sub(0.5 * delta)?.mul(delta)?;
        reduction.apply(Tensor::where_(&size.le(delta)?, &inside, &outside)?)
    }

    /// Cross entropy between probabilities and targets in [0, 1]; logarithms are bounded below by -100.
    ///
    /// `RuntimeError` where a probability is outside [0, 1].
    pub fn binary_cross_entropy(&self, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
        let op = "binary_cross_entropy";
        super::check_float(op, self.dtype())?;
        if target.dtype() != self.dtype() {
            return Err(Error::runtime(format!("{op}: Found dtype {} for the target but expected {}", target.dtype(), self.dtype())));
        }
        if !self.device().is_meta() {
            let inside = self.alias().ge(0)?.logical_and(&self.alias().le(1)?)?;
            if !inside.all()?.item()?.to_bool() {
                return Err(Error::runtime(format!("{op}: all elements of input should be between 0 and 1")));
            }
        }
        let bounded = |t: Tensor| -> Result<Tensor> {
            // e^-100: what lies below it is kept from the logarithm, whose slope there is not finite.
            let low = t.alias().lt(3.720_075_976_020_836e-44)?;
            Tensor::where_(&low, &bounded_log(&t)?, &Tensor::where_(&low, 1.0, &t)?.log()?)
        };
        let yes = target.mul(&bounded(self.clone())?)?;
        let no = target.neg()?.add(1.0)?.mul(&bounded(self.neg()?.add(1.0)?)?)?;
        weighted(yes.add(&no)?.neg()?, weight, reduction)
    }

    /// Cross entropy between sigmoids of scores and targets in [0, 1]; `pos_weight` scales the positive part.
    pub fn binary_cross_entropy_with_logits(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        if self.shape() != target.shape() {
            return Err(Error::runtime(format!(
                "binary_cross_entropy_with_logits: Target size {} must be the same as input size {}",
                show(target.shape()),
                show(self.shape())
            )));
        }
        let likelihood = self.logsigmoid()?;
        let missing = target.neg()?.add(1.0)?.mul(self)?;
        let loss = match pos_weight {
            None => missing.sub(&likelihood)?,
            Some(w) => {
                let factor = w.sub(1.0)?.mul(target)?.add(1.0)?;
                missing.sub(&factor.mul(&likelihood)?)?
            }
        };
        weighted(loss, weight, reduction)
    }

    /// `target * (log(target) - self)`, or `exp(target) * (target - self)` where the target holds logarithms.
    pub fn kl_div(&self, target: &Tensor, reduction: Reduction, log_target: bool) -> Result<Tensor> {
        let loss = if log_target {
            target.exp()?.mul(&target.sub(self)?)?
        } else {
            // 0 log 0 is 0.
            let product = target.mul(&target.log()?)?;
            product.masked_fill(&target.alias().eq(0)?, 0)?.sub(&target.mul(self)?)?
        };
        reduction.apply(loss)
    }
}

/// -100 with the derivative `1 / max(t, 1e-12)`.
fn bounded_log(t: &Tensor) -> Result<Tensor> {
    let slope = Tensor::full(&[], 1e12, t.dtype(), t.device())?;
    t.sub(&t.alias())?.mul(&slope)?.sub(100.0)
}

fn weighted(loss: Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
    reduction.apply(match weight {
        Some(w) => loss.mul(w)?,
        None => loss,
    })
}

fn reduction(a: &Args, i: usize) -> Result<Reduction> {
    Reduction::of(a.name, a.int(i)?)
}

/// Rows of losses; all have function form only.
const fn loss(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::NN).without_out()
}

pub(super) static OPS: &[Op] = &[
    loss("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", |a| {
        Ok(a.tensor(0)?.mse_loss(a.tensor(1)?, reduction(a, 2)?)?.into())
    })
    .autocast_full()
    .doc("The squared difference: not reduced (0), its mean (1) or its sum (2).")
    .samples(&["T(2,3), T(2,3)", "T(2,3), T(2,3), 0", "T(2,3), T(2,3), 2"]),
    loss("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", |a| {
        Ok(a.tensor(0)?.l1_loss(a.tensor(1)?, reduction(a, 2)?)?.into())
    })
    .autocast_full()
    .doc("The absolute difference: not reduced (0), its mean (1) or its sum (2).")
    .samples(&["T(2,3), T(2,3)", "T(2,3), T(2,3), 0"]),
    loss("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor", |a| {
        Ok(a.tensor(0)?.smooth_l1_loss(a.tensor(1)?, reduction(a, 2)?, a.float(3)?)?.into())
    })
    .autocast_full()
    .doc("Half the squared difference over `beta` within `beta`, the absolute difference less half `beta` outside.")
    .samples(&["T(2,3), T(2,3)", "T(2,3), T(2,3), 0, 0.5"]),
    loss("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor", |a| {
        Ok(a.tensor(0)?.huber_loss(a.tensor(1)?, reduction(a, 2)?, a.float(3)?)?.into())
    })
    .autocast_full()
    .doc("Half the squared difference within `delta`, linear with slope `delta` outside.")
    .samples(&["T(2,3), T(2,3)", "T(2,3), T(2,3), 2, 0.5"]),
    loss("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", |a| {
        Ok(a.tensor(0)?.binary_cross_entropy(a.tensor(1)?, a.opt_tensor(2)?, reduction(a, 3)?)?.into())
    })
    .autocast_full()
    .doc("Cross entropy between probabilities and targets in [0, 1]; logarithms are bounded below by -100.")
    .samples(&["T(2,3; 0.1..0.9), T(2,3; 0..1)", "T(2,3; 0.1..0.9), T(2,3; 0..1), T(2,3), 0"]),
    loss(
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
        |a| {
            let (target, weight, positive) = (a.tensor(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?);
            Ok(a.tensor(0)?.binary_cross_entropy_with_logits(target, weight, positive, reduction(a, 4)?)?.into())
        },
    )
    .autocast_full()
    .doc("Cross entropy between sigmoids of scores and targets in [0, 1], computed stably; `pos_weight` scales the positive part.")
    .places(place::TORCH | place::NN)
    .samples(&["T(2,3), T(2,3; 0..1)", "T(2,3), T(2,3; 0..1), T(3), T(3; 0.5..2), 0"]),
    loss("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.kl_div(a.tensor(1)?, reduction(a, 2)?, a.bool(3)?)?.into())
    })
    .autocast_full()
    .doc("`target * (log(target) - self)`, where `self` holds logarithms of probabilities; with `log_target` the target does too.")
    .places(place::TORCH | place::NN)
    .samples(&["T(2,3), T(2,3; 0.1..0.9)", "T(2,3), T(2,3), 0, log_target=True"]),
];
