//! Cross entropy between scores and classes or probabilities.

use super::nll::{Rows, reduced_nll, row_weights};
use super::{check_float, into_packed, packed, second_vjp};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::{bind, bind1};
use flambeau_base::{Error, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// How the losses of a batch are put together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reduction {
    /// They are not.
    None,
    /// Their mean; over classes, weighted.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    /// By PyTorch's number: 0 none, 1 mean, 2 sum. `ValueError` for others.
    pub fn of(op: &str, number: i64) -> Result<Reduction> {
        match number {
            0 => Ok(Reduction::None),
            1 => Ok(Reduction::Mean),
            2 => Ok(Reduction::Sum),
            _ => {
                Err(Error::value(format!("{op}: {number} is not a valid value for reduction: it is one of 0 (none), 1 (mean) and 2 (sum)")))
            }
        }
    }

    /// Applies it.
    pub fn apply(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(losses),
            Reduction::Mean => losses.mean(),
            Reduction::Sum => losses.sum(),
        }
    }
}

/// Cross entropy of rows of scores: inputs are scores `[rows, classes]`, classes `[rows]` and, where there is one, a weight `[classes]`.
/// Further outputs are the logarithm of the sum of exponentials of each row, and the sum of the targets' weights.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy {
    reduction: Reduction,
    ignore_index: i64,
    smoothing: f64,
}

impl CrossEntropy {
    /// The composite form.
    pub fn decompose(&self, scores: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
        let rows = Rows { input: scores.log_softmax(1, None)?, target: target.clone() };
        let plain = reduced_nll(&rows, weight, self.reduction, self.ignore_index)?;
        if self.smoothing == 0.0 {
            return Ok(plain);
        }
        let weighted = weight.map_or(Ok(rows.input.clone()), |w| rows.input.mul(w))?;
        let spread = weighted.sum_dims(Some(&[1]), false, None)?.neg()?.masked_fill(&target.eq(self.ignore_index)?, 0)?;
        let spread = match self.reduction {
            Reduction::None => spread,
            Reduction::Sum => spread.sum()?,
            Reduction::Mean => spread.sum()?.div(&row_weights(scores, target, weight, self.ignore_index)?.sum()?)?,
        };
        plain.mul(1.0 - self.smoothing)?.add(&spread.mul(self.smoothing / scores.shape()[1] as f64)?)
    }

    fn call(&self, scores: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<layers::CrossEntropy> {
        Ok(layers::CrossEntropy {
            dtype: scores.dtype(),
            sizes: [scores.shape()[0], scores.shape()[1]],
            input: scores.data_ptr()?,
            target: target.data_ptr()?.cast(),
            weight: weight.map_or(Ok(std::ptr::null_mut()), |w| w.data_ptr())?,
            ignore_index: self.ignore_index,
            smoothing: self.smoothing,
        })
    }
}

impl Primitive for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        check_float("cross_entropy", x.dtype())?;
        let rows = &x.shape()[..1];
        let wide = x.dtype().accumulator();
        Ok(smallvec![
            OutSpec { layout: Layout::contiguous(if self.reduction == Reduction::None { rows } else { &[] })?, dtype: x.dtype() },
            OutSpec { layout: Layout::contiguous(rows)?, dtype: wide },
            OutSpec { layout: Layout::contiguous(&[])?, dtype: wide },
        ])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let dense = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        into_packed(&outputs[0], |loss| {
            let out = layers::CrossEntropyOut {
                reduction: self.reduction as i64,
                loss: loss.data_ptr_mut()?,
                lse: outputs[1].data_ptr_mut()?,
                total: outputs[2].data_ptr_mut()?,
            };
            let call = self.call(&dense[0], &dense[1], dense.get(2))?;
            // SAFETY: all are contiguous, of the shapes and dtypes that `infer` and the callers checked.
            unsafe { backend(loss.device())?.cross_entropy(&call, &out) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mut out: Grads = smallvec![None; cx.inputs()];
        if let Some(g) = grads[0].take()
            && cx.needs(0)
        {
            let mut inputs: SmallVec<[Tensor; 6]> = smallvec![g];
            for i in 0..cx.inputs() {
                inputs.push(cx.input(i)?);
            }
            inputs.extend([cx.output(1)?.alias(), cx.output(2)?.alias()]);
            let inputs: SmallVec<[&Tensor; 6]> = inputs.iter().collect();
            out[0] = Some(bind1(&CrossEntropyBackward(*self), &inputs)?);
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        Reads::both(0b111, 0b110)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The derivative of [`CrossEntropy`]: inputs are the gradient, the forward inputs and its two further outputs.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyBackward(CrossEntropy);

impl Primitive for CrossEntropyBackward {
    fn name(&self) -> &'static str {
        "cross_entropy_backward"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![super::like(inputs[1])?])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let dense = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 6]>>>()?;
        let weight = if dense.len() == 6 { Some(&dense[3]) } else { None };
        let [.., lse, total] = &dense[..] else { return Ok(()) };
        into_packed(&outputs[0], |out| {
            let grad = layers::CrossEntropyGrad {
                reduction: self.0.reduction as i64,
                grad: dense[0].data_ptr()?,
                lse: lse.data_ptr()?,
                total: total.data_ptr()?,
                out: out.data_ptr_mut()?,
            };
            let call = self.0.call(&dense[1], &dense[2], weight)?;
            // SAFETY: all are contiguous, as the forward pass made or checked them.
            unsafe { backend(out.device())?.cross_entropy_backward(&call, &grad) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let target = cx.input(2)?;
        let weight = if cx.inputs() == 6 { Some(cx.input(3)?) } else { None };
        let f = |all: &[Tensor]| Ok(vec![self.0.decompose(&all[0], &target, weight.as_ref())?]);
        second_vjp(&f, cx, grads, 1, &[true])
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b1111)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// Cross entropy between scores `[classes]`, `[batch, classes]` or `[batch, classes, ...]` and targets: classes in the shape
    /// without classes, or probabilities in the shape of the scores.
    ///
    /// Targets equal to `ignore_index` count for nothing; `label_smoothing` spreads that much of each target over all classes;
    /// the mean is over the weights of the targets. `ValueError`, `RuntimeError` where shapes or dtypes do not fit; `IndexError`
    /// for a class that is not there.
    pub fn cross_entropy(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
        ignore_index: i64,
        label_smoothing: f64,
    ) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&label_smoothing) {
            return Err(Error::runtime(format!("cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")));
        }
        if self.shape() == target.shape() {
            return of_probabilities(self, target, weight, reduction, ignore_index, label_smoothing);
        }
        check_float("cross_entropy", self.dtype())?;
        let rows = Rows::of("cross_entropy", self, target, weight)?;
        let op = CrossEntropy { reduction, ignore_index, smoothing: label_smoothing };
        let loss = if weight.is_some_and(|w| w.is_followed()) {
            // The kernel has no gradient for the weights; its parts have.
            op.decompose(&rows.input, &rows.target, weight)?
        } else {
            let mut inputs: SmallVec<[&Tensor; 3]> = smallvec![&rows.input, &rows.target];
            inputs.extend(weight);
            bind(&op, &inputs)?.swap_remove(0)
        };
        if reduction == Reduction::None { loss.reshape_to(target.shape()) } else { Ok(loss) }
    }
}

fn of_probabilities(
    scores: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
    ignore_index: i64,
    smoothing: f64,
) -> Result<Tensor> {
    if !target.dtype().is_float() {
        return Err(Error::runtime(format!(
            "cross_entropy: Expected floating point type for target with class probabilities (target and input have one shape), got {}",
            target.dtype()
        )));
    }
    if ignore_index >= 0 {
        return Err(Error::runtime("cross_entropy: ignore_index is not supported for floating point target"));
    }
    let dim = if scores.ndim() == 1 { 0 } else { 1 };
    let classes = scores.shape().get(dim).copied().unwrap_or(1);
    if let Some(w) = weight
        && (w.ndim() != 1 || w.numel() != classes)
    {
        return Err(Error::runtime(format!(
            "cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {}",
            flambeau_base::show(w.shape())
        )));
    }
    let target = if smoothing > 0.0 { target.mul(1.0 - smoothing)?.add(smoothing / classes as f64)? } else { target.clone() };
    let mut terms = scores.log_softmax(dim as i64, None)?.mul(&target)?;
    if let Some(w) = weight {
        let mut each: SmallVec<[i64; 6]> = smallvec![1; scores.ndim()];
        each[dim] = classes as i64;
        terms = terms.mul(&w.reshape(&each)?)?;
    }
    match reduction {
        Reduction::None => terms.sum_dims(Some(&[dim as i64]), false, None)?.neg(),
        Reduction::Sum => terms.sum()?.neg(),
        Reduction::Mean => terms.sum()?.neg()?.div(scores.numel() as f64 / classes as f64),
    }
}

fn cross_entropy(a: &Args) -> Result<Out> {
    let reduction = Reduction::of("cross_entropy", a.int(3)?)?;
    Ok(a.tensor(0)?.cross_entropy(a.tensor(1)?, a.opt_tensor(2)?, reduction, a.int(4)?, a.float(5)?)?.into())
}

pub(super) static OPS: &[Op] = &[function(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    cross_entropy,
)
.autocast_full()
.doc("Cross entropy between scores `[classes]`, `[batch, classes]` or `[batch, classes, ...]` and targets: classes (`int64`) in the shape without classes, or probabilities in the shape of the scores. Not reduced (0), the mean over the targets' weights (1) or the sum (2); targets of `ignore_index` count for nothing.")
.places(place::NN)
.samples(&[
    "T(4,5), I(4; 0..5)",
    "T(4,5), I(4; 0..5), T(5; 0.5..2), 2, 1",
    "T(4,5), I(4; 0..5), None, 0",
    "T(4,5), I(4; 0..5), T(5; 0.5..2), 1, -100, 0.2",
    "T(2,3,4), I(2,4; 0..3)",
    "T(5), I(; 0..5)",
    "T(4,5), T(4,5; 0..1)",
    "T(4,5), T(4,5; 0..1), T(5; 0.5..2), 0, -100, 0.1",
])
.without_out()];
