//! Negative log-likelihood, and what losses over classes share.

use super::cross_entropy::Reduction;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, show};
use smallvec::SmallVec;

/// Scores as rows of classes, and their targets.
pub(super) struct Rows {
    /// `[rows, classes]`.
    pub input: Tensor,
    /// `[rows]`, `int64`.
    pub target: Tensor,
}

impl Rows {
    /// Brings scores `[classes]`, `[batch, classes]` or `[batch, classes, ...]` and the targets of the shape without classes into rows.
    pub fn of(op: &str, input: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<Rows> {
        check(op, input, target, weight)?;
        let target = target.to_dtype(DType::I64)?.reshape(&[-1]);
        let [batch, classes, behind] = sizes(input);
        let target = if batch * behind == 0 { Tensor::empty(&[0], DType::I64, input.device())? } else { target? };
        let input = match input.ndim() {
            0..=2 => input.reshape(&[batch as i64, classes as i64])?,
            _ => input
                .reshape(&[batch as i64, classes as i64, behind as i64])?
                .transpose(1, 2)?
                .reshape(&[(batch * behind) as i64, classes as i64])?,
        };
        Ok(Rows { input, target })
    }
}

/// Sizes of batch, classes and what is behind them.
fn sizes(input: &Tensor) -> [usize; 3] {
    match input.shape() {
        [] => [1, 1, 1],
        [classes] => [1, *classes, 1],
        [batch, classes, rest @ ..] => [*batch, *classes, rest.iter().product()],
    }
}

fn check(op: &str, input: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    if input.ndim() == 0 {
        return Err(Error::value(format!("{op}: Expected 1 or more dimensions (got 0)")));
    }
    if input.ndim() > 1 && target.ndim() > 0 && input.shape()[0] != target.shape()[0] {
        return Err(Error::value(format!(
            "{op}: Expected input batch_size ({}) to match target batch_size ({}).",
            input.shape()[0],
            target.shape()[0]
        )));
    }
    let mut wanted: SmallVec<[usize; 6]> = SmallVec::from_slice(input.shape());
    wanted.remove(if input.ndim() == 1 { 0 } else { 1 });
    // A single target of one dimension stands for a scalar.
    let single = input.ndim() == 1 && target.shape() == [1];
    if target.shape() != &wanted[..] && !single {
        let why = if input.ndim() <= 2 { " (0D or 1D target tensor expected, multi-target not supported)" } else { "" };
        return Err(Error::runtime(format!(
            "{op}: Expected target size {}, got {}{why} for input of shape {}",
            show(&wanted),
            show(target.shape()),
            show(input.shape())
        )));
    }
    if !matches!(target.dtype(), DType::I64 | DType::U8) {
        return Err(Error::runtime(format!("{op}: expected target dtype to be Long or Byte (int64 or uint8), but got {}", target.dtype())));
    }
    let classes = sizes(input)[1];
    if let Some(w) = weight
        && (w.ndim() != 1 || w.numel() != classes)
    {
        return Err(Error::runtime(format!(
            "{op}: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {}",
            show(w.shape())
        )));
    }
    if let Some(w) = weight
        && w.dtype() != input.dtype()
    {
        return Err(Error::runtime(format!("{op}: expected scalar type {} for the weight but found {}", input.dtype(), w.dtype())));
    }
    Ok(())
}

/// `IndexError` for a class that is not there.
fn check_classes(op: &str, rows: &Rows, ignore: i64) -> Result<()> {
    if rows.target.device().is_meta() {
        return Ok(());
    }
    let classes = rows.input.shape()[1] as i64;
    match rows.target.to_vec::<i64>()?.iter().position(|&t| t != ignore && (t < 0 || t >= classes)) {
        None => Ok(()),
        Some(at) => Err(Error::index(format!(
            "{op}: Target {} is out of bounds for {classes} classes (target {at})",
            rows.target.to_vec::<i64>()?[at]
        ))),
    }
}

/// For each row the element of its class; for an ignored class any element.
fn pick(input: &Tensor, target: &Tensor, ignore: i64) -> Result<Tensor> {
    let there = target.masked_fill(&target.eq(ignore)?, 0)?;
    input.gather(1, &there.unsqueeze(1)?)?.reshape(&[-1])
}

/// The weight of each row: that of its class; zero where it is ignored.
pub(super) fn row_weights(input: &Tensor, target: &Tensor, weight: Option<&Tensor>, ignore: i64) -> Result<Tensor> {
    let each = match weight {
        Some(w) => w.index_select(0, &target.masked_fill(&target.eq(ignore)?, 0)?)?,
        None => Tensor::full(target.shape(), 1.0, input.dtype(), input.device())?,
    };
    each.masked_fill(&target.eq(ignore)?, 0)
}

/// Minus the weighted log-probability of each row's class, reduced.
pub(super) fn reduced_nll(rows: &Rows, weight: Option<&Tensor>, reduction: Reduction, ignore: i64) -> Result<Tensor> {
    let weights = row_weights(&rows.input, &rows.target, weight, ignore)?;
    let losses = pick(&rows.input, &rows.target, ignore)?.neg()?.mul(&weights)?;
    let losses = losses.masked_fill(&rows.target.eq(ignore)?, 0)?;
    match reduction {
        Reduction::None => Ok(losses),
        Reduction::Sum => losses.sum(),
        Reduction::Mean => losses.sum()?.div(&weights.sum()?),
    }
}

impl Tensor {
    /// Minus the log-probability, taken from this tensor (`[classes]`, `[batch, classes]` or `[batch, classes, ...]`), of each target class.
    ///
    /// `ValueError`, `RuntimeError` where shapes or dtypes do not fit; `IndexError` for a class that is not there.
    pub fn nll_loss(&self, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction, ignore_index: i64) -> Result<Tensor> {
        super::check_float("nll_loss", self.dtype())?;
        let rows = Rows::of("nll_loss", self, target, weight)?;
        check_classes("nll_loss", &rows, ignore_index)?;
        let loss = reduced_nll(&rows, weight, reduction, ignore_index)?;
        if reduction == Reduction::None { loss.reshape_to(target.shape()) } else { Ok(loss) }
    }
}

fn nll_loss(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.nll_loss(a.tensor(1)?, a.opt_tensor(2)?, Reduction::of("nll_loss", a.int(3)?)?, a.int(4)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor", nll_loss)
        .autocast_full()
        .doc("Minus the log-probability of each target class, not reduced (0), as the mean over the targets' weights (1) or summed (2). `self` holds log-probabilities `[classes]`, `[batch, classes]` or `[batch, classes, ...]`; targets of `ignore_index` count for nothing.")
        .places(place::NN)
        .samples(&["T(4,3), I(4; 0..3)", "T(4,3), I(4; 0..3), T(3; 0.5..2), 2", "T(3), I(; 0..3)"])
        .without_out(),
    function("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor", nll_loss)
        .autocast_full()
        .doc("`nll_loss` for any number of dimensions behind the classes.")
        .places(place::NN)
        .samples(&["T(2,3,4), I(2,4; 0..3)", "T(2,3,4,2), I(2,4,2; 0..3), None, 0", "T(4,3), I(4; 0..3), T(3; 0.5..2), 1, 1"])
        .without_out(),
];
