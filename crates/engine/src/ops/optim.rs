//! Steps of optimizers on lists of tensors, each one kernel for all of them.

use crate::Tensor;
use crate::autograd::{inplace, no_grad};
use crate::backend::{backend, layers};
use crate::ops::copy_into;
use flambeau_base::{Error, Layout, Result, show};

/// The numbers of a step of [`adam_step`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the running mean of the gradient.
    pub beta1: f64,
    /// Decay of the running mean of its square.
    pub beta2: f64,
    /// Added to the gradient as that much of the parameter or, decoupled, taken off the parameter times `lr`.
    pub weight_decay: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Whether the largest running mean of squares is used.
    pub amsgrad: bool,
    /// Whether the objective is made larger.
    pub maximize: bool,
    /// Whether weight decay acts on the parameter itself (AdamW).
    pub decoupled: bool,
}

impl Default for Adam {
    fn default() -> Adam {
        Adam { lr: 1e-3, beta1: 0.9, beta2: 0.999, weight_decay: 0.0, eps: 1e-8, amsgrad: false, maximize: false, decoupled: false }
    }
}

/// The numbers of a step of [`sgd_step`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// How much of the last step is kept.
    pub momentum: f64,
    /// How much of the gradient is left out of the momentum.
    pub dampening: f64,
    /// How much of the parameter is added to the gradient.
    pub weight_decay: f64,
    /// Nesterov's variant.
    pub nesterov: bool,
    /// Whether the objective is made larger.
    pub maximize: bool,
}

/// A tensor that a kernel changes as dense memory laid out like the parameter: itself, or a copy that is put back.
struct Slot<'a> {
    target: &'a Tensor,
    dense: Tensor,
}

impl<'a> Slot<'a> {
    fn of(op: &str, target: &'a Tensor, layout: &Layout) -> Result<Slot<'a>> {
        inplace::check(op, target, false)?;
        target.check_writable(op)?;
        let fits = target.strides() == layout.strides();
        let dense = if fits { target.alias() } else { laid_out(target, layout)? };
        Ok(Slot { target, dense })
    }

    fn finish(self) -> Result<()> {
        if !self.dense.shares_storage(self.target) {
            copy_into(self.target, &self.dense)?;
        }
        self.target.bump_version();
        Ok(())
    }
}

fn laid_out(t: &Tensor, layout: &Layout) -> Result<Tensor> {
    let dense = Tensor::empty_layout(layout.clone(), t.dtype(), t.device())?;
    copy_into(&dense, t)?;
    Ok(dense)
}

/// The layout in which a parameter's memory is walked: its own where it has no gaps.
fn walked(param: &Tensor) -> Result<Layout> {
    let layout = param.layout();
    if layout.is_non_overlapping_and_dense() { Ok(layout.clone().with_offset(0)) } else { Layout::contiguous(param.shape()) }
}

fn check_same(op: &str, i: usize, param: &Tensor, others: &[(&str, &Tensor)]) -> Result<()> {
    crate::ops::nn::check_float(op, param.dtype())?;
    for (name, t) in others {
        if t.shape() != param.shape() || t.dtype() != param.dtype() || !t.device().same(param.device()) {
            return Err(Error::runtime(format!(
                "{op}: {name} {i} is {} of shape {} on {}, its parameter is {} of shape {} on {}: they must be alike",
                t.dtype(),
                show(t.shape()),
                t.device(),
                param.dtype(),
                show(param.shape()),
                param.device()
            )));
        }
    }
    Ok(())
}

fn check_lengths(op: &str, params: usize, lists: &[(&str, usize)]) -> Result<()> {
    for (name, len) in lists {
        if *len != params {
            return Err(Error::value(format!("{op}: there are {params} parameters and {len} {name}: there must be as many")));
        }
    }
    Ok(())
}

/// The gradient in a layout.
fn gradient(grad: &Tensor, layout: &Layout) -> Result<Tensor> {
    if grad.strides() == layout.strides() { Ok(grad.alias()) } else { laid_out(grad, layout) }
}

/// One step of Adam (or AdamW) for all parameters, in place, without recording.
///
/// `means`, `squares` (and with `amsgrad` `largest`) are the running means kept for each parameter; `steps` hold a number each, how
/// many steps were made, and are counted up. Roundings follow PyTorch's own steps,
/// which fuse some multiplications and additions that the same step in tensor operations rounds apart. Source: Kingma and
/// Ba, 2014; Loshchilov and Hutter, 2017; Reddi and others, 2018.
///
/// `ValueError` where the lists differ in length, `RuntimeError` where shapes, dtypes or devices do.
pub fn adam_step(
    params: &[&Tensor],
    grads: &[&Tensor],
    means: &[&Tensor],
    squares: &[&Tensor],
    largest: &[&Tensor],
    steps: &[&Tensor],
    options: &Adam,
) -> Result<()> {
    let op = "adam_step";
    let n = params.len();
    let most = if options.amsgrad { largest.len() } else { n };
    check_lengths(
        op,
        n,
        &[("gradients", grads.len()), ("means", means.len()), ("squares", squares.len()), ("maxima", most), ("steps", steps.len())],
    )?;
    let _guard = no_grad();
    for i in 0..n {
        check_same(op, i, params[i], &[("gradient", grads[i]), ("mean", means[i]), ("square", squares[i])])?;
        if options.amsgrad {
            check_same(op, i, params[i], &[("maximum", largest[i])])?;
        }
    }
    let (mut slots, mut held, mut tensors) = (Vec::with_capacity(4 * n), Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        steps[i].add_(1.0)?;
        let t = steps[i].item()?.to_f64();
        let layout = walked(params[i])?;
        let mut open = |target| -> Result<*mut u8> {
            let slot = Slot::of(op, target, &layout)?;
            let ptr = slot.dense.data_ptr_mut()?;
            slots.push(slot);
            Ok(ptr)
        };
        let grad = gradient(grads[i], &layout)?;
        tensors.push(layers::AdamTensor {
            dtype: params[i].dtype(),
            n: params[i].numel(),
            param: open(params[i])?,
            grad: grad.data_ptr()?,
            mean: open(means[i])?,
            square: open(squares[i])?,
            largest: if options.amsgrad { open(largest[i])? } else { std::ptr::null_mut() },
            step_size: options.lr / (1.0 - options.beta1.powf(t)),
            correction: (1.0 - options.beta2.powf(t)).powf(0.5),
        });
        held.push(grad);
    }
    let Some(first) = params.first() else { return Ok(()) };
    let call = layers::AdamStep {
        tensors: &tensors,
        lr: options.lr,
        beta1: options.beta1,
        beta2: options.beta2,
        eps: options.eps,
        weight_decay: options.weight_decay,
        decoupled: options.decoupled,
        maximize: options.maximize,
    };
    // SAFETY: each tensor is dense in the layout of its parameter; targets were checked to be writable and apart.
    unsafe { backend(first.device())?.adam(&call)? };
    drop(held);
    slots.into_iter().try_for_each(Slot::finish)
}

/// One step of gradient descent for all parameters, in place, without recording.
///
/// With momentum, `buffers` holds a buffer for each parameter, or `None` before its first step, which makes it. Roundings follow
/// PyTorch's own step. Source: Sutskever and others, 2013.
///
/// `ValueError` where the lists differ in length, `RuntimeError` where shapes, dtypes or devices do.
pub fn sgd_step(params: &[&Tensor], grads: &[&Tensor], buffers: &mut [Option<Tensor>], options: &Sgd) -> Result<()> {
    let op = "sgd_step";
    check_lengths(op, params.len(), &[("gradients", grads.len()), ("buffers", buffers.len())])?;
    let _guard = no_grad();
    let with_buffers = options.momentum != 0.0;
    let fresh: Vec<bool> = buffers.iter().map(|b| b.is_none()).collect();
    for (i, param) in params.iter().enumerate() {
        check_same(op, i, param, &[("gradient", grads[i])])?;
        if with_buffers {
            match &buffers[i] {
                Some(buffer) => check_same(op, i, param, &[("buffer", buffer)])?,
                None => buffers[i] = Some(Tensor::empty_layout(walked(param)?, param.dtype(), param.device())?),
            }
        }
    }
    let (mut slots, mut held, mut tensors) = (Vec::new(), Vec::new(), Vec::new());
    for (i, param) in params.iter().enumerate() {
        let layout = walked(param)?;
        let mut open = |target| -> Result<*mut u8> {
            let slot = Slot::of(op, target, &layout)?;
            let ptr = slot.dense.data_ptr_mut()?;
            slots.push(slot);
            Ok(ptr)
        };
        let grad = gradient(grads[i], &layout)?;
        tensors.push(layers::SgdTensor {
            dtype: param.dtype(),
            n: param.numel(),
            param: open(param)?,
            grad: grad.data_ptr()?,
            buffer: match &buffers[i] {
                Some(buffer) if with_buffers => open(buffer)?,
                _ => std::ptr::null_mut(),
            },
            fresh: fresh[i],
        });
        held.push(grad);
    }
    let Some(first) = params.first() else { return Ok(()) };
    let call = layers::SgdStep {
        tensors: &tensors,
        lr: options.lr,
        momentum: options.momentum,
        dampening: options.dampening,
        weight_decay: options.weight_decay,
        nesterov: options.nesterov,
        maximize: options.maximize,
    };
    // SAFETY: each tensor is dense in the layout of its parameter; targets were checked to be writable and apart.
    unsafe { backend(first.device())?.sgd(&call)? };
    drop(held);
    slots.into_iter().try_for_each(Slot::finish)
}

/// The norm of all elements of these tensors together, as the norm of their norms, without overflow on the way.
pub fn total_norm(tensors: &[&Tensor], order: f64) -> Result<Tensor> {
    let Some(first) = tensors.first() else { return Tensor::full(&[], 0.0, flambeau_base::default_dtype(), flambeau_base::Device::CPU) };
    let norms = tensors.iter().map(|t| t.vector_norm(order, None, false, None)?.item()).collect::<Result<Vec<_>>>()?;
    let values: Vec<f64> = norms.iter().map(|s| s.to_f64()).collect();
    Tensor::from_slice(&values, &[values.len()])?.vector_norm(order, None, false, None)?.to_dtype(first.dtype())
}
