//! What reverse and forward mode do with an operation that was carried out, at every level. See NOTE [levels] in `level`.

use super::forward::{Tangents, is_forward_enabled, tangents_of};
use super::{Interpreter, bind, bind_inplace, carry_below};
use crate::Tensor;
use crate::autograd::node::{Edge, Kind, Node, OutputInfo};
use crate::autograd::saved::{Saved, SavedTensors};
use crate::autograd::saved_hooks;
use crate::autograd::{inplace, mode};
use crate::ops::{Outputs, Primitive};
use crate::tensor::{Overlap, flag, overlap};
use flambeau_base::{Error, Result};
use smallvec::SmallVec;

/// A level of `grad`, `vjp` or `jvp`.
pub struct Differentiate {
    level: u32,
    /// Whether gradients were recorded where the level was entered: so they are below it.
    records_below: bool,
}

impl Differentiate {
    /// A level with this number, entered here.
    pub(crate) fn new(level: u32) -> Differentiate {
        Differentiate { level, records_below: mode::is_grad_enabled() }
    }

    fn values<'a>(&self, inputs: &[&'a Tensor]) -> SmallVec<[&'a Tensor; 3]> {
        inputs.iter().map(|t| t.at_level(self.level).unwrap_or(t)).collect()
    }
}

impl Interpreter for Differentiate {
    fn level(&self) -> u32 {
        self.level
    }

    fn records_below(&self) -> Option<bool> {
        Some(self.records_below)
    }

    fn bind(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
        if !inputs.iter().any(|t| t.is_at_level(self.level)) {
            let made = carry_below(|| bind(op, inputs))?;
            if !op.is_view() {
                made.iter().for_each(|t| t.set_born(self.level));
            }
            return Ok(made);
        }
        let values = self.values(inputs);
        let made = carry_below(|| bind(op, &values))?;
        let outputs: Outputs = made.iter().map(|t| if t.dtype().is_differentiable() { t.wrap(self.level) } else { t.clone() }).collect();
        mark_views(op, inputs, &outputs);
        if mode::is_grad_enabled() && inputs.iter().any(|t| t.is_at_level(self.level) && t.requires_grad()) {
            record(op, inputs, &outputs, self.level)?;
        }
        if inputs.iter().any(|t| t.is_at_level(self.level) && t.has(flag::TANGENT)) {
            let tangents = tangents_at(inputs, self.level);
            let found = carry_below(|| tangents_of(op, &values, &made, &tangents))?;
            leave_tangents(op, &outputs, found, &tangents)?;
        }
        Ok(outputs)
    }

    fn bind_inplace(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<()> {
        let target = inputs[0];
        if !inputs.iter().any(|t| t.is_at_level(self.level)) {
            return carry_below(|| bind_inplace(op, inputs));
        }
        if !target.is_at_level(self.level) {
            if target.base().as_ref().unwrap_or(target).born() != self.level {
                return Err(captured(op.name()));
            }
            target.promote(self.level);
        }
        let values = self.values(inputs);
        in_place(op, inputs, self.level, &mut |old: Option<&Tangents>| {
            carry_below(|| -> Result<Option<Tensor>> {
                // The tangent reads what the write overwrites.
                let tangent = old.map(|t| tangent_in_place(op, &values, t)).transpose()?;
                bind_inplace(op, &values)?;
                Ok(tangent)
            })
        })
    }
}

#[cold]
fn captured(op: &str) -> Error {
    Error::runtime(format!(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation ({op}_) that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
    ))
}

#[cold]
fn inference(op: &str) -> Error {
    Error::runtime(format!(
        "{op}: Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
    ))
}

/// Makes the results of a view known as views.
pub(super) fn mark_views(op: &dyn Primitive, inputs: &[&Tensor], outputs: &Outputs) {
    if !op.is_view() {
        return;
    }
    for (i, out) in outputs.iter().enumerate() {
        out.mark_view(inputs[0], op, i);
        if outputs.len() > 1 {
            out.set_flag(flag::FROZEN_VIEW, true);
        }
    }
}

/// Makes the node of an operation and hands it to the outputs that can have a gradient.
pub(super) fn record(op: &dyn Primitive, inputs: &[&Tensor], outputs: &Outputs, level: u32) -> Result<()> {
    if !outputs.iter().enumerate().any(|(i, o)| has_gradient(op, i, o)) {
        return Ok(());
    }
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| edge_of(t, level)).collect();
    let infos = outputs.iter().map(OutputInfo::of).collect();
    let reads = op.reads();
    if inputs.iter().enumerate().any(|(i, t)| t.has(flag::INFERENCE) && reads.input(i, &edges)) {
        return Err(inference(op.name()));
    }
    let mut tensors: SmallVec<[Saved; 3]> =
        inputs.iter().enumerate().map(|(i, t)| if reads.input(i, &edges) { Saved::input(t) } else { Saved::None }).collect();
    tensors.extend(outputs.iter().enumerate().map(|(i, t)| if reads.output(i) { Saved::output(t, i) } else { Saved::None }));
    if saved_hooks::active() {
        saved_hooks::pack_all(&mut tensors, level)?;
    }
    let node = Node::new(Kind::Primitive(op.boxed()), edges, infos, SavedTensors { tensors, released: false });
    for (i, out) in outputs.iter().enumerate().filter(|(i, o)| has_gradient(op, *i, o)) {
        out.set_history(Some(Edge { node: node.clone(), output: i as u32 }));
    }
    Ok(())
}

fn has_gradient(op: &dyn Primitive, i: usize, out: &Tensor) -> bool {
    out.dtype().is_differentiable() && op.differentiable(i)
}

/// Where the gradient of an input goes; nowhere for a tensor of a lower level, which is a constant here.
fn edge_of(t: &Tensor, level: u32) -> Option<Edge> {
    if t.dtype().is_differentiable() && (level == 0 || t.is_at_level(level)) { t.gradient_edge() } else { None }
}

/// The tangents that inputs have at a level.
pub(crate) fn tangents_at(inputs: &[&Tensor], level: u32) -> Tangents {
    inputs.iter().map(|t| if level == 0 || t.is_at_level(level) { t.tangent() } else { None }).collect()
}

/// Leaves tangents with results. They own their memory, except that a view's tangent is the view of one.
pub(super) fn leave_tangents(op: &dyn Primitive, outputs: &Outputs, found: Tangents, given: &Tangents) -> Result<()> {
    if !is_forward_enabled() {
        return Ok(());
    }
    for (out, tangent) in outputs.iter().zip(found) {
        let Some(t) = tangent else { continue };
        let shared = !op.is_view() && given.iter().flatten().any(|g| g.shares_storage(&t));
        let t = if shared { t.copy()? } else { t };
        let t = if t.dtype() == out.dtype() { t } else { t.to_dtype(out.dtype())? };
        out.set_tangent(Some(t))?;
    }
    Ok(())
}

/// The tangent of the target after a write in place, before it happens.
pub(super) fn tangent_in_place(op: &dyn Primitive, values: &[&Tensor], tangents: &Tangents) -> Result<Tensor> {
    // What was there is kept: the derivative may read it, and the write changes it.
    let target = values[0].copy()?;
    let mut apart: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(values);
    apart[0] = &target;
    let made = bind(op, &apart)?;
    let found = tangents_of(op, &apart, &made, tangents)?;
    match found.into_iter().next().flatten() {
        Some(t) => t.copy(),
        None => values[0].zeros_like(),
    }
}

/// What both modes do around a write in place. `write` carries it out below and gives the target's new tangent where it is
/// handed the inputs' tangents.
pub(super) fn in_place(
    op: &dyn Primitive,
    inputs: &[&Tensor],
    level: u32,
    write: &mut dyn FnMut(Option<&Tangents>) -> Result<Option<Tensor>>,
) -> Result<()> {
    let target = inputs[0];
    let here = |t: &&Tensor| level == 0 || t.is_at_level(level);
    let needs_grad = mode::is_grad_enabled() && inputs.iter().filter(|t| here(t)).any(|t| t.requires_grad());
    inplace::check(op.name(), target, needs_grad)?;
    target.check_writable(op.name())?;
    let spec = op.infer(inputs)?.swap_remove(0);
    super::check_target(op.name(), target, &spec)?;
    let history = if needs_grad { Some(history_before(op, inputs, level)?) } else { None };
    let forward = is_forward_enabled() && inputs.iter().filter(|t| here(t)).any(|t| t.has(flag::TANGENT));
    let tangents = forward.then(|| tangents_at(inputs, level));
    let tangent = write(tangents.as_ref())?;
    if level == 0 {
        target.bump_version();
    }
    if let Some(tangent) = tangent {
        change_tangent(target, tangent)?;
    }
    let Some((originals, edges, base_edge)) = history else { return Ok(()) };
    let reads = op.reads();
    let mut tensors: SmallVec<[Saved; 3]> = SmallVec::new();
    for (i, t) in inputs.iter().enumerate() {
        tensors.push(match (&originals[i], reads.input(i, &edges)) {
            (_, false) => Saved::None,
            (Some(original), true) => Saved::input(original),
            (None, true) => Saved::input(t),
        });
    }
    tensors.push(if reads.output(0) { Saved::output(target, 0) } else { Saved::None });
    if saved_hooks::active() {
        saved_hooks::pack_all(&mut tensors, level)?;
    }
    let saved = SavedTensors { tensors, released: false };
    let node = Node::new(Kind::Primitive(op.boxed()), edges, smallvec::smallvec![OutputInfo::of(target)], saved);
    inplace::rebase(target, node, base_edge)
}

/// Puts a new tangent where the target's is, so that the tangents of views of the same memory change as well.
fn change_tangent(target: &Tensor, tangent: Tensor) -> Result<()> {
    let tangent = if tangent.dtype() == target.dtype() { tangent } else { tangent.to_dtype(target.dtype())? };
    if target.tangent().is_none()
        && let Some(base) = target.base()
    {
        if base.tangent().is_none() {
            base.set_tangent(Some(base.primal().zeros_like()?))?;
        }
        let steps = target.autograd().as_ref().and_then(|m| m.view.as_ref()).map(|v| v.steps.clone());
        if let (Some(steps), Some(whole)) = (steps, base.tangent()) {
            target.set_tangent(Some(steps.replay(&whole)?))?;
        }
    }
    match target.tangent() {
        Some(old) => old.copy_(&tangent).map(|_| ()),
        None => target.set_tangent(Some(tangent)),
    }
}

type HistoryBefore = (SmallVec<[Option<Tensor>; 2]>, SmallVec<[Option<Edge>; 2]>, Option<Edge>);

/// What must be taken down before the target changes: the values of inputs in the target's memory where the derivative
/// reads them (the target itself, `y` in `y[1:].mul_(y[:-1])`), and the edges.
fn history_before(op: &dyn Primitive, inputs: &[&Tensor], level: u32) -> Result<HistoryBefore> {
    let target = inputs[0];
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| edge_of(t, level)).collect();
    let base_edge = target.base().and_then(|b| b.gradient_edge());
    let reads = op.reads();
    let _guard = mode::no_grad();
    let mut originals = SmallVec::new();
    for (i, t) in inputs.iter().enumerate() {
        let overwritten = reads.input(i, &edges) && (i == 0 || overlap(t, target) != Overlap::None);
        originals.push(if overwritten {
            let copy = t.copy()?;
            // The saved value keeps the history that the input had, for derivatives of derivatives.
            copy.set_history(edges[i].clone());
            Some(copy)
        } else {
            None
        });
    }
    Ok((originals, edges, base_edge))
}
