//! Steps of optimizers on lists of tensors, all of a list at once. What a step does stands in [`rules`].

mod rule;
pub mod rules;

use crate::Tensor;
use crate::autograd::{inplace, no_grad};
use crate::backend::{Foreach, backend};
use crate::ops::copy_into;
use flambeau_base::{Error, Layout, Result, Scalar, show};
pub use rule::Rule;
use smallvec::SmallVec;

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

/// One parameter of a step, with all that belongs to it.
struct Update<'a> {
    param: &'a Tensor,
    grad: &'a Tensor,
    /// What is kept, in the rule's order.
    state: &'a [&'a Tensor],
    switches: u32,
    numbers: Vec<f64>,
}

/// One step of a rule for all parameters, in place, without recording.
///
/// `state` holds a list for each name that [`Rule::kept`] gives under these switches, with a tensor for each parameter; `numbers`
/// the rule's numbers, a row for each parameter. Complex parameters are given as pairs of real numbers.
///
/// `ValueError` where the lists differ in length, `RuntimeError` where shapes, dtypes or devices do.
pub fn step(
    rule: &'static Rule,
    switches: u32,
    params: &[&Tensor],
    grads: &[&Tensor],
    state: &[Vec<&Tensor>],
    numbers: &[Vec<f64>],
) -> Result<()> {
    let n = params.len();
    check_lengths(rule.name, n, &[("gradients", grads.len()), ("rows of numbers", numbers.len())])?;
    let names: Vec<&str> = rule.kept(switches).collect();
    if state.len() != names.len() {
        return Err(Error::value(format!("{}: there are {} lists of state, it keeps {names:?}", rule.name, state.len())));
    }
    for (name, list) in names.iter().zip(state) {
        check_lengths(rule.name, n, &[(name, list.len())])?;
    }
    if let Some(row) = numbers.iter().find(|row| row.len() != rule.numbers.len()) {
        return Err(Error::value(format!("{}: there are {} numbers in a row, it takes {:?}", rule.name, row.len(), rule.numbers)));
    }
    let state: Vec<Vec<&Tensor>> = (0..n).map(|i| state.iter().map(|list| list[i]).collect()).collect();
    let updates = (0..n).map(|i| Update { param: params[i], grad: grads[i], state: &state[i], switches, numbers: numbers[i].clone() });
    run(rule, &updates.collect::<Vec<_>>())
}

fn run(rule: &'static Rule, updates: &[Update]) -> Result<()> {
    let op = rule.name;
    let Some(first) = updates.first() else { return Ok(()) };
    let _guard = no_grad();
    for (i, u) in updates.iter().enumerate() {
        check_same(op, i, u.param, &[("gradient", u.grad)])?;
        for (name, kept) in rule.kept(u.switches).zip(u.state) {
            check_same(op, i, u.param, &[(name, kept)])?;
        }
    }
    let (mut slots, mut held, mut calls) = (Vec::new(), Vec::new(), Vec::with_capacity(updates.len()));
    for u in updates {
        let layout = walked(u.param)?;
        let grad = gradient(u.grad, &layout)?;
        let mut outputs = SmallVec::new();
        for target in [u.param].into_iter().chain(u.state.iter().copied()) {
            let slot = Slot::of(op, target, &layout)?;
            outputs.push(slot.dense.data_ptr_mut()?);
            slots.push(slot);
        }
        let mut inputs: SmallVec<[*const u8; 6]> = outputs.iter().map(|p: &*mut u8| p.cast_const()).collect();
        inputs.insert(1, grad.data_ptr()?);
        calls.push(Foreach {
            program: rule.program(u.switches, u.param.dtype(), &u.numbers)?,
            numbers: u.numbers.iter().map(|&x| Scalar::Float(x)).collect(),
            n: u.param.numel(),
            outputs,
            inputs,
        });
        held.push(grad);
    }
    // SAFETY: each tensor is dense in the layout of its parameter; targets were checked to be writable and apart.
    unsafe { backend(first.param.device())?.foreach(&calls)? };
    drop(held);
    slots.into_iter().try_for_each(Slot::finish)
}

/// Counts up how many steps were made of each parameter, in 0-dimensional tensors, and gives the numbers.
pub fn count_up(steps: &[&Tensor]) -> Result<Vec<f64>> {
    let _guard = no_grad();
    steps.iter().map(|step| step.add_(1.0)?.item().map(|t| t.to_f64())).collect()
}

/// One step of Adam (or AdamW) for all parameters, in place, without recording.
///
/// `means`, `squares` (and with `amsgrad` `largest`) are the running means kept for each parameter; `steps` hold a number each, how
/// many steps were made, and are counted up. Source: Kingma and Ba, 2014; Loshchilov and Hutter, 2017; Reddi and others, 2018.
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
    let o = options;
    check_lengths(rules::ADAM.name, params.len(), &[("steps", steps.len())])?;
    let on = [("maximize", o.maximize), ("decay", o.weight_decay != 0.0), ("decoupled", o.decoupled), ("amsgrad", o.amsgrad)];
    let switches = rules::ADAM.switches(on.iter().filter(|s| s.1).map(|s| s.0))?;
    let mut state = vec![means.to_vec(), squares.to_vec()];
    if o.amsgrad {
        state.push(largest.to_vec());
    }
    let numbers = |t: f64| {
        let (correction, step) = ((1.0 - o.beta2.powf(t)).powf(0.5), -(o.lr / (1.0 - o.beta1.powf(t))));
        vec![o.weight_decay, 1.0 - o.lr * o.weight_decay, 1.0 - o.beta1, o.beta2, 1.0 - o.beta2, correction, o.eps, step]
    };
    let rows: Vec<Vec<f64>> = count_up(steps)?.into_iter().map(numbers).collect();
    step(&rules::ADAM, switches, params, grads, &state, &rows)
}

/// One step of gradient descent for all parameters, in place, without recording.
///
/// With momentum, `buffers` holds a buffer for each parameter, or `None` before its first step, which makes it.
/// Source: Sutskever and others, 2013.
///
/// `ValueError` where the lists differ in length, `RuntimeError` where shapes, dtypes or devices do.
pub fn sgd_step(params: &[&Tensor], grads: &[&Tensor], buffers: &mut [Option<Tensor>], options: &Sgd) -> Result<()> {
    let (rule, o) = (&rules::SGD, options);
    check_lengths(rule.name, params.len(), &[("gradients", grads.len()), ("buffers", buffers.len())])?;
    let on = [("maximize", o.maximize), ("decay", o.weight_decay != 0.0), ("momentum", o.momentum != 0.0), ("nesterov", o.nesterov)];
    let switches = rule.switches(on.iter().filter(|s| s.1).map(|s| s.0))?;
    let fresh = rule.switches(["fresh"])?;
    let mut starts = Vec::with_capacity(params.len());
    for (param, buffer) in params.iter().zip(buffers.iter_mut()) {
        starts.push(if o.momentum != 0.0 && buffer.is_none() { switches | fresh } else { switches });
        if o.momentum != 0.0 && buffer.is_none() {
            *buffer = Some(Tensor::empty_layout(walked(param)?, param.dtype(), param.device())?);
        }
    }
    let kept: Vec<Vec<&Tensor>> = buffers.iter().map(|b| b.iter().filter(|_| o.momentum != 0.0).collect()).collect();
    let numbers = vec![o.weight_decay, o.momentum, 1.0 - o.dampening, -o.lr];
    let update = |i: usize| Update { param: params[i], grad: grads[i], state: &kept[i], switches: starts[i], numbers: numbers.clone() };
    run(rule, &(0..params.len()).map(update).collect::<Vec<_>>())
}

/// The norm of all elements of these tensors together, as the norm of their norms, without overflow on the way.
pub fn total_norm(tensors: &[&Tensor], order: f64) -> Result<Tensor> {
    let Some(first) = tensors.first() else { return Tensor::full(&[], 0.0, flambeau_base::default_dtype(), flambeau_base::Device::CPU) };
    let norms = tensors.iter().map(|t| t.vector_norm(order, None, false, None)?.item()).collect::<Result<Vec<_>>>()?;
    let values: Vec<f64> = norms.iter().map(|s| s.to_f64()).collect();
    Tensor::from_slice(&values, &[values.len()])?.vector_norm(order, None, false, None)?.to_dtype(first.dtype())
}
