//! Forward mode: tangents of results from those of inputs.
//!
//! A derivative is written once, as the gradient of the inputs for one of the results (`vjp`), which is linear in the
//! latter. Its own derivative, transposed once more, takes tangents of inputs to those of results; that serves every
//! operation whose derivative can be differentiated. Views, casts and what is pointwise have shorter ways.
//! Source: Townsend, "A new trick for calculating Jacobian vector products", 2017.

use super::{differentiate, level};
use crate::Tensor;
use crate::autograd::backward::fit;
use crate::autograd::mode;
use crate::autograd::node::{Cx, Edge, Grads, Kind, Node, OutputInfo};
use crate::autograd::saved::{Saved, SavedTensors};
use crate::autograd::{BackwardOptions, grad};
use crate::ops::Primitive;
use crate::tensor::flag;
use flambeau_base::{Error, Result};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

/// Tangents by position; `None` stands for zeros.
pub type Tangents = SmallVec<[Option<Tensor>; 2]>;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
    static DUAL: Cell<u32> = const { Cell::new(0) };
    /// Nodes that have saved tensors with tangents of the level.
    static SAVING: RefCell<Vec<Weak<Node>>> = const { RefCell::new(Vec::new()) };
}

/// Enters a level of tangents of tensors that belong to no transform. Gives its number, which [`exit_dual_level`] takes.
///
/// `RuntimeError` inside another one.
pub fn enter_dual_level() -> Result<u32> {
    if DUAL.get() != 0 {
        return Err(Error::runtime("Nested forward mode AD is not supported at the moment: leave the level that was entered first."));
    }
    DUAL.set(level::fresh());
    Ok(DUAL.get())
}

/// Leaves a level: its tangents are gone.
pub fn exit_dual_level(level: u32) -> Result<()> {
    if DUAL.get() != level || level == 0 {
        return Err(Error::runtime("exit_dual_level: trying to exit a forward AD level that was not the last one that was entered"));
    }
    DUAL.set(0);
    for node in SAVING.take() {
        let kept = node.upgrade().map(|n| saved_outputs(&n)).unwrap_or_default();
        kept.iter().try_for_each(|(_, t)| t.set_tangent(None))?;
    }
    Ok(())
}

/// The outputs that a node has saved: the derivative reads them, and differs along their tangents.
fn saved_outputs(node: &Node) -> Vec<(u32, Tensor)> {
    let output = |s: &Saved| if let Saved::Output(t, _, i) = s { Some((*i, t.clone())) } else { None };
    node.saved().tensors.iter().filter_map(output).collect()
}

/// Leaves the tangents of results also with what their nodes have saved of them, until the level ends: a tangent may have the
/// node in its own history.
pub(super) fn leave_with_saved(outputs: &[Tensor]) -> Result<()> {
    for out in outputs {
        let (Some(edge), Some(tangent)) = (out.grad_fn_as_it_is(), out.tangent()) else { continue };
        let mut found = false;
        for (_, t) in saved_outputs(&edge.node).iter().filter(|(i, _)| *i == edge.output) {
            t.set_tangent(Some(tangent.clone()))?;
            found = true;
        }
        if found {
            SAVING.with_borrow_mut(|s| s.push(Arc::downgrade(&edge.node)));
        }
    }
    Ok(())
}

/// The level of tangents that this thread is in; 0 for none.
pub fn dual_level() -> u32 {
    DUAL.get()
}

/// Whether operations hand on tangents in this thread.
pub fn is_forward_enabled() -> bool {
    ENABLED.get()
}

/// Switches tangents in this thread; gives what it was.
pub fn set_forward_enabled(on: bool) -> bool {
    ENABLED.replace(on)
}

/// No tangents are handed on while the guard lives.
pub(crate) fn tangents_off() -> impl Drop {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ENABLED.set(self.0);
        }
    }
    Restore(ENABLED.replace(false))
}

/// The tangents of `outputs`, which are what `op` gave for `inputs`.
pub(crate) fn tangents_of(op: &dyn Primitive, inputs: &[&Tensor], outputs: &[Tensor], tangents: &Tangents) -> Result<Tangents> {
    if let Some(made) = op.jvp(inputs, tangents)? {
        return Ok(made);
    }
    let mut made: Tangents = transposed(op, inputs, outputs, tangents)?;
    for (i, t) in made.iter_mut().enumerate() {
        if t.is_none() && outputs[i].dtype().is_differentiable() && op.differentiable(i) {
            *t = Some(outputs[i].zeros_like()?);
        }
    }
    Ok(made)
}

/// The derivative of the derivative, which is linear: what leads from tangents of inputs to tangents of outputs.
fn transposed(op: &dyn Primitive, inputs: &[&Tensor], outputs: &[Tensor], tangents: &Tangents) -> Result<Tangents> {
    let none: Tangents = outputs.iter().map(|_| None).collect();
    let level = level::fresh();
    let _inside = level::enter(std::rc::Rc::new(differentiate::Differentiate::new(level)));
    let _mode = mode::enable_grad();
    // Anywhere would do, for what is linear; at zero, what is written by cases may not be.
    let mut seeds: Vec<(usize, Tensor)> = Vec::new();
    let mut grads: Grads = outputs.iter().map(|_| None).collect();
    for (i, out) in outputs.iter().enumerate().filter(|(i, o)| o.numel() > 0 && o.dtype().is_differentiable() && op.differentiable(*i)) {
        let seed = out.ones_like()?.wrap(level).requiring_grad()?;
        grads[i] = Some(seed.clone());
        seeds.push((i, seed));
    }
    if seeds.is_empty() {
        return Ok(none);
    }
    let edges: SmallVec<[Option<Edge>; 2]> =
        inputs.iter().zip(tangents).map(|(x, t)| t.as_ref().map(|_| Edge { node: Node::accumulator(x), output: 0 })).collect();
    let reads = op.reads();
    let mut kept: SmallVec<[Saved; 3]> =
        inputs.iter().enumerate().map(|(i, t)| if reads.input(i, &edges) { Saved::input(t) } else { Saved::None }).collect();
    // As inputs: an output's history is that of the level below, not a node of this one.
    kept.extend(outputs.iter().enumerate().map(|(i, t)| if reads.output(i) { Saved::input(t) } else { Saved::None }));
    let infos = outputs.iter().map(OutputInfo::of).collect();
    let node = Node::new(Kind::Primitive(op.boxed()), edges, infos, SavedTensors { tensors: kept, released: false });
    let made = {
        let saved = node.saved_for_use()?;
        op.vjp(&Cx::of(&node, &saved), &mut grads)?
    };
    let (mut roots, mut weights) = (Vec::new(), Vec::new());
    for (i, (g, t)) in made.into_iter().zip(tangents).enumerate() {
        let (Some(g), Some(t), Some(edge)) = (g, t, &node.next_edges()[i]) else { continue };
        let g = fit(&node, i, edge, g)?;
        if g.requires_grad() && g.is_at_level(level) {
            roots.push(g);
            weights.push(Some(t.clone()));
        }
    }
    if roots.is_empty() {
        return Ok(none);
    }
    let seeds_only: Vec<&Tensor> = seeds.iter().map(|(_, s)| s).collect();
    let found = grad(&roots.iter().collect::<Vec<_>>(), &seeds_only, &weights, BackwardOptions::default())?;
    let mut result = none;
    for ((i, _), t) in seeds.iter().zip(found) {
        result[*i] = t.map(|t| t.at_level(level).cloned().unwrap_or(t));
    }
    Ok(result)
}

impl Tensor {
    /// The tangent that forward mode has left here.
    pub fn tangent(&self) -> Option<Tensor> {
        if !self.has(flag::TANGENT) {
            return None;
        }
        let now = self.forward_level();
        self.autograd().as_ref().and_then(|m| m.tangent.clone()).filter(|(level, _)| *level == now).map(|(_, t)| t)
    }

    /// The level to which a tangent left here belongs.
    fn forward_level(&self) -> u32 {
        if self.has(flag::WRAPPED) { u32::MAX } else { DUAL.get() }
    }

    /// Puts a tangent there, or takes it away. `RuntimeError` for one of another shape or dtype.
    pub fn set_tangent(&self, tangent: Option<Tensor>) -> Result<()> {
        if let Some(t) = &tangent {
            if t.shape() != self.shape() {
                return Err(Error::runtime(format!(
                    "make_dual: Expected tangent to have the same shape as the primal, {:?}, got {:?}",
                    self.shape(),
                    t.shape()
                )));
            }
            if !self.dtype().is_differentiable() || t.dtype() != self.dtype() {
                return Err(Error::runtime(format!(
                    "make_dual: Expected primal and tangent of one floating point or complex dtype, got {} and {}",
                    self.dtype(),
                    t.dtype()
                )));
            }
        }
        let on = tangent.is_some();
        let tangent = tangent.map(|t| (self.forward_level(), t));
        let old = self.with_autograd(|m| std::mem::replace(&mut m.tangent, tangent));
        self.set_flag(flag::TANGENT, on);
        drop(old);
        Ok(())
    }

    /// The same tensor, of the same history, without a tangent.
    pub fn primal(&self) -> Tensor {
        if !self.has(flag::TANGENT) {
            return self.clone();
        }
        let plain = self.alias();
        if let Some(edge) = self.gradient_edge() {
            plain.set_history(Some(edge));
        }
        plain
    }
}
