//! Losses with a margin, and those of counts.

use super::cross_entropy::Reduction;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, show};
use smallvec::SmallVec;

/// Rows of scores and of targets, from one sample or a batch.
struct Samples {
    scores: Tensor,
    targets: Tensor,
}

fn sample_rows(op: &str, x: &Tensor) -> Result<[i64; 2]> {
    super::check_float(op, x.dtype())?;
    let [batch, classes] = match *x.shape() {
        [] => [1, 1],
        [classes] => [1, classes],
        [batch, classes] => [batch, classes],
        _ => [0, 0],
    };
    if x.ndim() > 2 || classes == 0 {
        return Err(Error::runtime(format!(
            "{op}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
            show(x.shape())
        )));
    }
    Ok([batch as i64, classes as i64])
}

fn check_target(op: &str, target: &Tensor, lowest: i64, classes: i64) -> Result<()> {
    if target.dtype() != DType::I64 {
        return Err(Error::runtime(format!("{op}: expected scalar type Long (int64) for the target but found {}", target.dtype())));
    }
    if target.device().is_meta() {
        return Ok(());
    }
    match target.to_vec::<i64>()?.into_iter().find(|&t| t < lowest || t >= classes) {
        Some(t) => Err(Error::runtime(format!(
            "{op}: target out of range: {t} is none of {classes} classes (argument #2 'target' is out of range)"
        ))),
        None => Ok(()),
    }
}

impl Tensor {
    /// The score where the target is 1, `max(0, margin - score)` where it is -1 (and their sum where it is neither).
    pub fn hinge_embedding_loss(&self, target: &Tensor, margin: f64, reduction: Reduction) -> Result<Tensor> {
        // The margin is rounded to the dtype first, as in PyTorch.
        let margin = if self.dtype().is_float() {
            Tensor::full(&[], margin, self.dtype(), self.device())?.sub(self)?
        } else {
            self.neg()?.add(margin)?
        };
        let apart = margin.clamp_below()?.masked_fill(&target.eq(1)?, 0)?;
        let near = Tensor::where_(&target.ne(-1)?, self, &self.zeros_like()?)?;
        reduction.apply(apart.add(&near)?)
    }

    /// `max(0, -target * (self - other) + margin)`.
    pub fn margin_ranking_loss(&self, other: &Tensor, target: &Tensor, margin: f64, reduction: Reduction) -> Result<Tensor> {
        reduction.apply(target.neg()?.mul(&self.sub(other)?)?.add(margin)?.clamp_below()?)
    }

    /// `log(1 + exp(-target * self))`.
    pub fn soft_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        reduction.apply(self.mul(target)?.logsigmoid()?.neg()?)
    }

    /// `1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1; `cos` is that of the angle between vectors.
    ///
    /// `RuntimeError` unless the target is a number and inputs are vectors, or the target is a vector and they are matrices.
    pub fn cosine_embedding_loss(&self, other: &Tensor, target: &Tensor, margin: f64, reduction: Reduction) -> Result<Tensor> {
        let op = "cosine_embedding_loss";
        if target.ndim() > 1 {
            return Err(Error::runtime(format!(
                "{op}: 0D or 1D target tensor expected, multi-target not supported; got {}",
                show(target.shape())
            )));
        }
        let dims = target.ndim() + 1;
        if self.ndim() != dims || other.ndim() != dims {
            return Err(Error::runtime(format!(
                "{op}: {}D target tensor expects {dims}D input tensors, but found inputs with sizes {} and {}.",
                target.ndim(),
                show(self.shape()),
                show(other.shape())
            )));
        }
        let dim: &[i64] = &[target.ndim() as i64];
        let along = |t: Tensor| t.sum_dims(Some(dim), false, None);
        // As PyTorch has it, so that vectors of zeros are at right angles.
        let size = |t: &Tensor| along(t.square()?)?.add(1e-12);
        let cosine = along(self.mul(other)?)?.div(&size(self)?.mul(&size(other)?)?.sqrt()?)?;
        let zeros = cosine.zeros_like()?;
        let near = Tensor::where_(&target.eq(1)?, &cosine.neg()?.add(1.0)?, &zeros)?;
        let apart = Tensor::where_(&target.eq(-1)?, &cosine.sub(margin)?.clamp_below()?, &zeros)?;
        reduction.apply(near.add(&apart)?)
    }

    /// `sum over i != y of max(0, margin - x[y] + x[i])^p / classes` for each row, times the weight of class y.
    ///
    /// `RuntimeError` where `p` is neither 1 nor 2, shapes do not fit or a class is not there.
    pub fn multi_margin_loss(&self, target: &Tensor, p: f64, margin: f64, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
        let op = "multi_margin_loss";
        if p != 1.0 && p != 2.0 {
            return Err(Error::runtime(format!("{op}: only p == 1 and p == 2 supported, got {p}")));
        }
        let [batch, classes] = sample_rows(op, self)?;
        if target.ndim() > 1 || target.numel() as i64 != batch {
            return Err(Error::runtime(format!(
                "{op}: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [{batch}], but got {}. Input has shape {}.",
                show(target.shape()),
                show(self.shape())
            )));
        }
        if let Some(w) = weight
            && (w.ndim() > 1 || w.numel() as i64 != classes)
        {
            return Err(Error::runtime(format!("{op}: inconsistent weight size, expected {classes} but got {}", show(w.shape()))));
        }
        check_target(op, target, 0, classes)?;
        let (x, y) = (self.reshape(&[batch, classes])?, target.reshape(&[batch, 1])?);
        let mut over = x.sub(&x.gather(1, &y)?)?.add(margin)?.relu()?;
        if p == 2.0 {
            over = over.square()?;
        }
        if let Some(w) = weight {
            over = over.mul(&w.index_select(0, &y.reshape(&[-1])?)?.unsqueeze(1)?)?;
        }
        let losses = over.scatter(1, &y, 0.0)?.sum_dims(Some(&[1]), false, None)?.div(classes as f64)?;
        if reduction == Reduction::None { losses.reshape_to(target.shape()) } else { reduction.apply(losses) }
    }

    /// `sum over targets y and others i of max(0, 1 - x[y] + x[i]) / classes` for each row, whose targets stand before the first -1,
    /// and which classes were targets.
    ///
    /// `RuntimeError` where shapes do not fit or a class is not there.
    pub fn multilabel_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<(Tensor, Tensor)> {
        let op = "multilabel_margin_loss";
        let [batch, classes] = sample_rows(op, self)?;
        if target.shape() != self.shape() {
            return Err(Error::runtime(format!(
                "{op}: inconsistent target size: {} for input of size: {}",
                show(target.shape()),
                show(self.shape())
            )));
        }
        check_target(op, target, -1, classes)?;
        let s = Samples { scores: self.reshape(&[batch, classes])?, targets: target.reshape(&[batch, classes])? };
        let there = s.targets.eq(-1)?.to_dtype(DType::I64)?.cumsum(1, None)?.eq(0)?;
        let labels = s.targets.masked_fill(&there.logical_not()?, 0)?;
        let ones = there.to_dtype(self.dtype())?;
        let hit = ones.zeros_like()?.scatter_add(1, &labels, &ones)?.gt(0)?;
        let over = s.scores.unsqueeze(1)?.sub(&s.scores.gather(1, &labels)?.unsqueeze(2)?)?.add(1.0)?.relu()?;
        let counts = there.unsqueeze(2)?.logical_and(&hit.logical_not()?.unsqueeze(1)?)?;
        let losses = over.mul(&counts.to_dtype(self.dtype())?)?.sum_dims(Some(&[1, 2]), false, None)?.div(classes as f64)?;
        let hit = hit.to_dtype(self.dtype())?.reshape_to(self.shape())?;
        let losses = match (reduction, self.ndim()) {
            (Reduction::None, 0 | 1) => losses.reshape(&[])?,
            (Reduction::None, _) => losses,
            _ => reduction.apply(losses)?,
        };
        Ok((losses, hit))
    }

    /// `exp(self) - target * self` where `self` holds logarithms of rates, else `self - target * log(self + eps)`; with `full`
    /// Stirling's term for targets above 1.
    pub fn poisson_nll_loss(&self, target: &Tensor, log_input: bool, full: bool, eps: f64, reduction: Reduction) -> Result<Tensor> {
        let mut loss = match log_input {
            true => self.exp()?.sub(&target.mul(self)?)?,
            false => self.sub(&target.mul(&self.add(eps)?.log()?)?)?,
        };
        if full {
            let half = target.mul(2.0 * std::f64::consts::PI)?.log()?.mul(0.5)?;
            let stirling = target.mul(&target.log()?)?.sub(target)?.add(&half)?;
            loss = loss.add(&stirling.masked_fill(&target.alias().le(1)?, 0)?)?;
        }
        reduction.apply(loss)
    }

    /// `max(0, margin + |anchor - positive| - |anchor - negative|)` with the norm of order `p`; with `swap` the smaller of the
    /// distances to the negative counts.
    ///
    /// `RuntimeError` where numbers of dimensions differ.
    pub fn triplet_margin_loss(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        options: &TripletMargin,
        reduction: Reduction,
    ) -> Result<Tensor> {
        if self.ndim() != positive.ndim() || self.ndim() != negative.ndim() {
            return Err(Error::runtime(format!(
                "triplet_margin_loss: The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor {}D, positive {}D, and negative {}D inputs",
                self.ndim(),
                positive.ndim(),
                negative.ndim()
            )));
        }
        let TripletMargin { margin, p, eps, swap } = *options;
        let near = self.pairwise_distance(positive, p, eps, false)?;
        let mut apart = self.pairwise_distance(negative, p, eps, false)?;
        if swap {
            apart = apart.minimum(&positive.pairwise_distance(negative, p, eps, false)?)?;
        }
        reduction.apply(near.add(margin)?.sub(&apart)?.clamp_below()?)
    }

    /// `max(0, x)` with the derivative 1 at 0, as clamping has it.
    fn clamp_below(&self) -> Result<Tensor> {
        Tensor::where_(&self.alias().lt(0)?, 0.0, self)
    }
}

/// What [`Tensor::triplet_margin_loss`] takes besides tensors.
#[derive(Clone, Copy, Debug)]
pub struct TripletMargin {
    /// By how much the negative shall be further away.
    pub margin: f64,
    /// The order of the norm.
    pub p: f64,
    /// Added to differences.
    pub eps: f64,
    /// Whether the positive may stand in for the anchor.
    pub swap: bool,
}

fn reduction(a: &Args, i: usize) -> Result<Reduction> {
    Reduction::of(a.name, a.int(i)?)
}

fn triplet(a: &Args) -> Result<Out> {
    let options = TripletMargin { margin: a.float(3)?, p: a.float(4)?, eps: a.float(5)?, swap: a.bool(6)? };
    Ok(a.tensor(0)?.triplet_margin_loss(a.tensor(1)?, a.tensor(2)?, &options, reduction(a, 7)?)?.into())
}

fn multi_margin(a: &Args) -> Result<Out> {
    let (p, margin) = (a.scalar(2)?.to_f64(), a.scalar(3)?.to_f64());
    Ok(a.tensor(0)?.multi_margin_loss(a.tensor(1)?, p, margin, a.opt_tensor(4)?, reduction(a, 5)?)?.into())
}

fn multilabel_margin_forward(a: &Args) -> Result<Out> {
    let (loss, hit) = a.tensor(0)?.multilabel_margin_loss(a.tensor(1)?, reduction(a, 2)?)?;
    Ok(Out::Tuple(SmallVec::from_iter([loss, hit])))
}

const fn loss(schema: &'static str, places: u8, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(places).without_out()
}

pub(super) static OPS: &[Op] = &[
    loss("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor", place::TORCH, |a| {
        Ok(a.tensor(0)?.hinge_embedding_loss(a.tensor(1)?, a.float(2)?, reduction(a, 3)?)?.into())
    })
    .autocast_full()
    .doc("The score where the target is 1, `max(0, margin - score)` where it is -1.")
    .samples(&["T(2,3), I(2,3; 1..2)", "T(2,3), I(2,3; -1..0), 0.5, 0"]),
    loss("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor", place::TORCH, |a| {
        Ok(a.tensor(0)?.margin_ranking_loss(a.tensor(1)?, a.tensor(2)?, a.float(3)?, reduction(a, 4)?)?.into())
    })
    .autocast_full()
    .doc("`max(0, -target * (input1 - input2) + margin)`.")
    .samples(&["T(3), T(3), T(3)", "T(2,3), T(2,3), I(2,3; 1..2), 0.5, 0"]),
    loss("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", place::NN, |a| {
        Ok(a.tensor(0)?.soft_margin_loss(a.tensor(1)?, reduction(a, 2)?)?.into())
    })
    .autocast_full()
    .doc("`log(1 + exp(-target * self))`, computed stably.")
    .samples(&["T(2,3), T(2,3)", "T(2,3), I(2,3; 1..2), 0"]),
    loss("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor", place::TORCH, |a| {
        Ok(a.tensor(0)?.cosine_embedding_loss(a.tensor(1)?, a.tensor(2)?, a.float(3)?, reduction(a, 4)?)?.into())
    })
    .autocast_full()
    .doc("`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1, of the angle between two vectors.")
    .samples(&["T(3,4), T(3,4), I(3; 1..2)", "T(4), T(4), I(; -1..0), 0.1", "T(3,4), T(3,4), I(3; -1..0), -0.5, 0"]),
    loss("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor", place::NN, multi_margin)
        .autocast_full()
        .doc("`sum over i != y of max(0, margin - x[y] + x[i])^p / classes` for each row x with class y, times the weight of y.")
        .samples(&["T(4,3), I(4; 0..3)", "T(4,3), I(4; 0..3), 2, 0.5, T(3; 0.5..2), 0", "T(3), I(; 0..3)"]),
    loss("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", place::NN, |a| {
        Ok(a.tensor(0)?.multilabel_margin_loss(a.tensor(1)?, reduction(a, 2)?)?.0.into())
    })
    .autocast_full()
    .doc("`sum over targets y and other classes i of max(0, 1 - x[y] + x[i]) / classes` for each row, whose targets stand before the first -1.")
    .samples(&["T(4,3), I(4,3; -1..3)", "T(4,3), I(4,3; 0..3), 0", "T(3), I(3; 0..2), 2"]),
    loss("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)", place::NN, multilabel_margin_forward)
        .doc("`multilabel_margin_loss`, and which classes were targets.")
        .samples(&["T(4,3), I(4,3; -1..3), 1"]),
    loss("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor", place::TORCH, |a| {
        Ok(a.tensor(0)?.poisson_nll_loss(a.tensor(1)?, a.bool(2)?, a.bool(3)?, a.float(4)?, reduction(a, 5)?)?.into())
    })
    .autocast_full()
    .doc("Negative log-likelihood of counts under rates, or logarithms of rates; with `full` Stirling's term for targets above 1.")
    .samples(&["T(2,3), T(2,3; 0..4), True, False, 1e-8, 1", "T(2,3; 0.5..2), T(2,3; 1.5..4), False, True, 1e-8, 0"]),
    loss(
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
        place::TORCH,
        triplet,
    )
    .autocast_full()
    .doc("`max(0, margin + |anchor - positive| - |anchor - negative|)` with the norm of order `p`; with `swap` the smaller of the distances to the negative counts.")
    .samples(&["T(3,4), T(3,4), T(3,4)", "T(3,4), T(3,4), T(3,4), 2.0, 3, 1e-6, True, 0", "T(4), T(4), T(4)"]),
];
