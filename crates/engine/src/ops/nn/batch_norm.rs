//! Batch, instance and group norm, and local response norm.

use super::norm_channels::{ChannelNorm, sizes};
use crate::Tensor;
use crate::autograd::no_grad;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::transform::bind;
use flambeau_base::{DType, Error, Result, show};
use smallvec::{SmallVec, smallvec};

/// Running mean and variance.
type Running<'a> = (Option<&'a Tensor>, Option<&'a Tensor>);

/// What a normalisation by channels gives: the result, and mean and inverse standard deviation in the parameters' dtype.
pub(super) struct Normalised {
    pub out: Tensor,
    pub mean: Tensor,
    pub rstd: Tensor,
    variance: Option<Tensor>,
}

/// The dtype of the parameters: that of the input, or the accumulator's where the input is of reduced precision.
pub(super) fn parameter_dtype(op: &str, x: &Tensor, parameters: &[Option<&Tensor>]) -> Result<DType> {
    super::check_float(op, x.dtype())?;
    let dtype = parameters.iter().flatten().next().map_or(x.dtype(), |t| t.dtype());
    let fits = dtype == x.dtype() || dtype == x.dtype().accumulator();
    if let Some(odd) = parameters.iter().flatten().find(|t| !fits || t.dtype() != dtype) {
        return Err(Error::runtime(format!(
            "{op}: mixed dtype (CPU): expect parameter to have scalar type of {}, as the input has, but found {}; convert one with .to()",
            x.dtype(),
            odd.dtype()
        )));
    }
    Ok(dtype)
}

fn normalise(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    given: Option<[Tensor; 2]>,
    groups: usize,
    eps: f64,
) -> Result<Normalised> {
    let wide = x.dtype().accumulator();
    let norm = ChannelNorm { groups, eps, weight: weight.is_some(), bias: bias.is_some(), given: given.is_some() };
    let mut inputs: SmallVec<[Tensor; 5]> = smallvec![x.clone()];
    for t in [weight, bias].into_iter().flatten() {
        inputs.push(t.to_dtype(wide)?);
    }
    if let Some([mean, rstd]) = &given {
        inputs.extend([mean.clone(), rstd.clone()]);
    }
    let mut found = bind(&norm, &inputs.iter().collect::<SmallVec<[&Tensor; 5]>>())?;
    if let Some([mean, rstd]) = given {
        return Ok(Normalised { out: found.swap_remove(0), mean, rstd, variance: None });
    }
    let (variance, rstd, mean) = (found.pop(), found.pop(), found.pop());
    let lacks = || Error::runtime("batch_norm: lacks its statistics");
    Ok(Normalised { mean: mean.ok_or_else(lacks)?, rstd: rstd.ok_or_else(lacks)?, out: found.pop().ok_or_else(lacks)?, variance })
}

fn check(op: &str, x: &Tensor, named: &[(&str, Option<&Tensor>)]) -> Result<()> {
    if x.ndim() < 2 {
        return Err(Error::runtime(format!(
            "{op}: expected an input of at least 2 dimensions, [batch, channels, ...], but got shape {}",
            show(x.shape())
        )));
    }
    let channels = x.shape()[1];
    for (name, t) in named {
        if let Some(t) = t
            && t.numel() != channels
        {
            return Err(Error::runtime(format!(
                "{op}: {name} should contain {channels} elements not {}, one for each channel of an input of shape {}",
                t.numel(),
                show(x.shape())
            )));
        }
    }
    Ok(())
}

/// Moves running statistics towards those of a batch: `running * (1 - momentum) + new * momentum`.
fn update(running: Running, mean: &Tensor, variance: &Tensor, count: f64, momentum: f64) -> Result<()> {
    let _guard = no_grad();
    // The variance of the population, as the batch lets it be guessed.
    let unbiased = variance.mul(count / (count - 1.0))?;
    for (running, new) in [(running.0, mean), (running.1, &unbiased)] {
        if let Some(running) = running {
            let kept = running.to_dtype(new.dtype())?.mul(1.0 - momentum)?;
            running.copy_(&kept.add(&new.settled().mul(momentum)?.reshape_to(running.shape())?)?)?;
        }
    }
    Ok(())
}

/// Batch norm with its statistics; in evaluation those are the running ones.
pub(super) fn batch_norm_parts(
    op: &str,
    x: &Tensor,
    [weight, bias]: [Option<&Tensor>; 2],
    running: Running,
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<Normalised> {
    if x.ndim() < 2 && x.numel() == 0 {
        let none = Tensor::empty(&[0], x.dtype(), x.device())?;
        return Ok(Normalised { out: x.copy()?, mean: none.clone(), rstd: none, variance: None });
    }
    check(op, x, &[("running_mean", running.0), ("running_var", running.1), ("weight", weight), ("bias", bias)])?;
    let dtype = parameter_dtype(op, x, &[weight, bias, running.0, running.1])?;
    let wide = x.dtype().accumulator();
    if training {
        let made = normalise(x, weight, bias, None, 0, eps)?;
        let [batch, channels, behind] = sizes(x);
        if let Some(variance) = &made.variance
            && channels > 0
            && batch * behind > 0
        {
            update(running, &made.mean, variance, (batch * behind) as f64, momentum)?;
        }
        return Ok(Normalised { mean: made.mean.to_dtype(dtype)?, rstd: made.rstd.to_dtype(dtype)?, ..made });
    }
    let need = |t: Option<&Tensor>, name: &str| {
        let t = t.ok_or_else(|| Error::runtime(format!("{op}: {name} must be defined in evaluation mode")))?;
        t.detach()?.to_dtype(wide)?.reshape(&[-1])
    };
    let mean = need(running.0, "running_mean")?;
    let rstd = need(running.1, "running_var")?.add(eps)?.rsqrt()?;
    let made = normalise(x, weight, bias, Some([mean, rstd]), 0, eps)?;
    let none = Tensor::empty(&[0], dtype, x.device())?;
    Ok(Normalised { mean: none.clone(), rstd: none, ..made })
}

/// Group norm with mean and inverse standard deviation of each group.
fn group_norm_parts(x: &Tensor, groups: i64, [weight, bias]: [Option<&Tensor>; 2], eps: f64) -> Result<Normalised> {
    let op = "group_norm";
    let channels = match x.shape() {
        [_, channels, ..] => *channels as i64,
        shape => {
            return Err(Error::runtime(format!("{op}: Expected at least 2 dimensions for input tensor but received {}", shape.len())));
        }
    };
    if groups <= 0 || channels % groups != 0 {
        return Err(Error::runtime(format!(
            "{op}: Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={groups}",
            show(x.shape())
        )));
    }
    for (n, what) in [(channels, "number of channels"), (sizes(x)[2] as i64, "HxW")] {
        if n == 0 {
            return Err(Error::runtime(format!(
                "{op}: Expected {what} to be greater than 0, got 0 in an input of shape {}",
                show(x.shape())
            )));
        }
    }
    for (name, t) in [("weight", weight), ("bias", bias)] {
        if let Some(t) = t
            && (t.ndim() != 1 || t.numel() as i64 != channels)
        {
            return Err(Error::runtime(format!(
                "{op}: Expected {name} to be a vector of size equal to the number of channels in input ({channels}), but got {name} of shape {}",
                show(t.shape())
            )));
        }
    }
    let dtype = parameter_dtype(op, x, &[weight, bias])?;
    let made = normalise(x, weight, bias, None, groups as usize, eps)?;
    Ok(Normalised { mean: made.mean.to_dtype(dtype)?, rstd: made.rstd.to_dtype(dtype)?, ..made })
}

impl Tensor {
    /// `(x - mean) / sqrt(variance + eps) * weight + bias` for each channel (dimension 1).
    ///
    /// In training the statistics are those of the batch, and `running_mean` and `running_var`, where they are given, are moved
    /// towards them by `momentum`; else they are the running ones. `RuntimeError` where shapes or dtypes do not fit.
    #[allow(clippy::too_many_arguments)] // PyTorch's.
    pub fn batch_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        Ok(batch_norm_parts("batch_norm", self, [weight, bias], (running_mean, running_var), training, momentum, eps)?.out)
    }

    /// Batch norm of each member of the batch by itself; running statistics are moved towards the mean over the members.
    ///
    /// `RuntimeError` where shapes or dtypes do not fit.
    #[allow(clippy::too_many_arguments)] // PyTorch's.
    pub fn instance_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        use_input_stats: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        let op = "instance_norm";
        if !use_input_stats && (running_mean.is_none() || running_var.is_none()) {
            return Err(Error::runtime(format!("{op}: Expected running_mean and running_var to be defined when use_input_stats is false")));
        }
        check(op, self, &[("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)])?;
        let [batch, channels, _] = sizes(self).map(|n| n as i64);
        let each = |t: Option<&Tensor>| t.map(|t| t.repeat(&[batch])).transpose();
        let (weight, bias) = (each(weight)?, each(bias)?);
        let (mean, var) = (each(running_mean)?, each(running_var)?);
        let mut shape: SmallVec<[i64; 6]> = self.shape().iter().map(|&n| n as i64).collect();
        shape[..2].copy_from_slice(&[1, batch * channels]);
        let rows = self.contiguous()?.reshape(&shape)?;
        let y = rows.batch_norm(weight.as_ref(), bias.as_ref(), mean.as_ref(), var.as_ref(), use_input_stats, momentum, eps)?;
        let _guard = no_grad();
        for (running, found) in [(running_mean, mean), (running_var, var)] {
            if let (Some(running), Some(found), true) = (running, found, use_input_stats) {
                running.copy_(&found.settled().reshape(&[batch, channels])?.mean_dims(Some(&[0]), false, None)?)?;
            }
        }
        drop(_guard);
        y.reshape_to(self.shape())
    }

    /// Layer norm over groups of channels (dimension 1) and what is behind them, with a weight and bias for each channel.
    ///
    /// `RuntimeError` where the channels do not divide into the groups.
    pub fn group_norm(&self, groups: i64, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        Ok(group_norm_parts(self, groups, [weight, bias], eps)?.out)
    }

    /// `x / (k + alpha * mean(x²))^beta`, the mean over `size` neighbouring channels (dimension 1); those past the ends are zeros.
    ///
    /// `ValueError` for fewer than 3 dimensions.
    pub fn local_response_norm(&self, size: i64, alpha: f64, beta: f64, k: f64) -> Result<Tensor> {
        let op = "local_response_norm";
        if self.ndim() < 3 {
            return Err(Error::value(format!("{op}: Expected 3D or higher dimensionality input (got {} dimensions)", self.ndim())));
        }
        if size <= 0 {
            return Err(Error::runtime(format!("{op}: size must be positive, got {size}")));
        }
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let padding = |n: i64| {
            let mut shape = self.shape().to_vec();
            shape[1] = n as usize;
            Tensor::zeros(&shape, self.dtype(), self.device())
        };
        let (before, behind) = (padding(size / 2)?, padding((size - 1) / 2)?);
        let padded = crate::ops::join::cat(&[&before, &self.square()?, &behind], 1)?;
        let windows = padded.unfold(1, size, 1)?;
        let mean = match self.dtype().is_integral() {
            true => windows.sum_dims(Some(&[-1]), false, None)?.floor_divide(size)?,
            false => windows.mean_dims(Some(&[-1]), false, None)?,
        };
        self.div(&mean.mul(alpha)?.add(k)?.pow(beta)?)
    }
}

fn batch_norm(a: &Args) -> Result<Out> {
    let [weight, bias, mean, var] = [a.opt_tensor(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.opt_tensor(4)?];
    Ok(a.tensor(0)?.batch_norm(weight, bias, mean, var, a.bool(5)?, a.float(6)?, a.float(7)?)?.into())
}

fn instance_norm(a: &Args) -> Result<Out> {
    let [weight, bias, mean, var] = [a.opt_tensor(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.opt_tensor(4)?];
    Ok(a.tensor(0)?.instance_norm(weight, bias, mean, var, a.bool(5)?, a.float(6)?, a.float(7)?)?.into())
}

/// The parts of the arguments `(input, weight, bias, running_mean, running_var, ...)`.
fn parts(a: &Args, training: bool, momentum: f64, eps: f64) -> Result<Normalised> {
    let running = (a.opt_tensor(3)?, a.opt_tensor(4)?);
    batch_norm_parts(a.name, a.tensor(0)?, [a.opt_tensor(1)?, a.opt_tensor(2)?], running, training, momentum, eps)
}

fn three(n: Normalised) -> Out {
    Out::Tuple(smallvec![n.out, n.mean, n.rstd])
}

fn native_batch_norm(a: &Args) -> Result<Out> {
    Ok(three(parts(a, a.bool(5)?, a.float(6)?, a.float(7)?)?))
}

fn without_running(a: &Args) -> Result<Out> {
    let weights = [a.opt_tensor(1)?, a.opt_tensor(2)?];
    Ok(three(batch_norm_parts(a.name, a.tensor(0)?, weights, (None, None), a.bool(3)?, a.float(4)?, a.float(5)?)?))
}

/// With a fourth result, which is for other devices.
fn four(n: Normalised) -> Result<Out> {
    let reserve = Tensor::empty(&[0], DType::U8, n.out.device())?;
    Ok(Out::Tuple(smallvec![n.out, n.mean, n.rstd, reserve]))
}

fn with_update(a: &Args) -> Result<Out> {
    four(parts(a, true, a.float(5)?, a.float(6)?)?)
}

fn no_update(a: &Args) -> Result<Out> {
    four(parts(a, false, a.float(5)?, a.float(6)?)?)
}

fn group_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.group_norm(a.int(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.float(4)?)?.into())
}

fn native_group_norm(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    let shape = [a.int(3)?, a.int(4)?, a.int(5)?];
    if shape.iter().product::<i64>() != x.numel() as i64 {
        return Err(Error::runtime(format!(
            "native_group_norm: expected N * C * HxW = {shape:?} to be the elements of an input of shape {}",
            show(x.shape())
        )));
    }
    let fits = x.ndim() >= 2 && sizes(x).map(|n| n as i64) == shape;
    let rows = if fits { x.clone() } else { x.reshape(&shape)? };
    let n = group_norm_parts(&rows, a.int(6)?, [a.opt_tensor(1)?, a.opt_tensor(2)?], a.float(7)?)?;
    Ok(three(Normalised { out: n.out.reshape_to(x.shape())?, ..n }))
}

fn local_response_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.local_response_norm(a.int(1)?, a.float(2)?, a.float(3)?, a.float(4)?)?.into())
}

const fn norm(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::TORCH)
}

pub(super) static OPS: &[Op] = &[
    norm(
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        batch_norm,
    )
    .doc("`(x - mean) / sqrt(variance + eps) * weight + bias` for each channel (dimension 1). In training the statistics are those of the batch, and running ones are moved towards them by `momentum`; else they are the running ones.")
    .samples(&[
        "T(4,3), None, None, None, None, True, 0.1, 1e-5, False",
        "T(3,2,4), T(2), T(2), None, None, True, 0.1, 1e-5, False",
        "T(2,3,2,40), T(3), None, None, None, True, 0.1, 0.01, False",
        "T(40,33), T(33), T(33), None, None, True, 0.1, 1e-5, False",
    ])
    .without_out(),
    norm(
        "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        instance_norm,
    )
    .doc("Batch norm of each member of the batch by itself; running statistics are moved towards the mean over the members.")
    .samples(&["T(2,3,4), None, None, None, None, True, 0.1, 1e-5, False", "T(2,3,4,2), T(3), T(3), None, None, True, 0.1, 1e-5, False"])
    .without_out(),
    norm(
        "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native_batch_norm,
    )
    .doc("`batch_norm` with mean and inverse standard deviation of the batch; in evaluation these are empty.")
    .samples(&["T(4,3), T(3), T(3), None, None, True, 0.1, 1e-5"]),
    norm(
        "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native_batch_norm,
    )
    .doc("`native_batch_norm` with running statistics."),
    norm(
        "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        without_running,
    )
    .doc("`native_batch_norm` without running statistics.")
    .samples(&["T(4,3), T(3), T(3), True, 0.1, 1e-5"]),
    norm(
        "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        with_update,
    )
    .doc("`native_batch_norm` in training, with an empty tensor that other devices use."),
    norm(
        "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        no_update,
    )
    .doc("`native_batch_norm` in evaluation, with an empty tensor that other devices use; running statistics are needed.")
    .samples(&["T(0), None, None, None, None, 0.1, 1e-5"]),
    norm(
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm,
    )
    .doc("Layer norm over groups of channels (dimension 1) and what is behind them, with a weight and a bias for each channel.")
    .samples(&["T(2,4,3), 2", "T(2,6,3,2), 3, T(6), T(6)", "T(3,4), 2, T(4)", "T(2,4,5,9), 2, T(4), T(4), 0.01"])
    .without_out(),
    norm(
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
        native_group_norm,
    )
    .doc("`group_norm` with mean and inverse standard deviation of each group.")
    .samples(&["T(2,4,3), T(4), T(4), 2, 4, 3, 2, 1e-5"]),
    function("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor", local_response_norm)
        .doc("`x / (k + alpha * mean(x²))^beta`, the mean over `size` neighbouring channels (dimension 1); those past the ends are zeros.")
        .places(place::NN)
        .samples(&["T(2,4,3), 3", "T(2,5,2,2), 2, 0.5, 0.5, 2.0"])
        .without_out(),
];
