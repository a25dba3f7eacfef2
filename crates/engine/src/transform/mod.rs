//! `bind`, the one seam: every operation passes here, and interpreters see it first.
//!
//! A call goes through three levels. Interpreters on this thread's stack (autocast, vmap, forward
//! mode) may handle it, and call `bind` again for what they make of it. What reaches the bottom is
//! recorded for reverse differentiation where an input requires a gradient. Last it is executed: by
//! the backend, or by a capture that stands in for it.

pub mod capture;

use crate::Tensor;
use crate::autograd::inplace;
use crate::autograd::mode;
use crate::autograd::node::{Edge, Kind, Node, OutputInfo};
use crate::autograd::saved::{Saved, SavedTensors};
use crate::ops::{OutSpec, Outputs, Primitive};
use crate::tensor::{Overlap, overlap};
use flambeau_base::{Error, Layout, Result, show};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Sees operations before they run.
pub trait Interpreter {
    /// Carries out an operation. Operations bound meanwhile go to the interpreters below this one.
    fn bind(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs>;
}

/// Stands in for the backend: sees operations after recording, with plain tensors.
pub trait Executor {
    /// Carries out an operation.
    fn execute(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs>;
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static STACK: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
    static EXECUTORS: Cell<usize> = const { Cell::new(0) };
    static EXECUTOR: RefCell<Vec<Rc<dyn Executor>>> = const { RefCell::new(Vec::new()) };
}

/// Restores a counter when it is dropped, also on the way out of an error or a panic.
struct Restore(&'static std::thread::LocalKey<Cell<usize>>, usize);

impl Drop for Restore {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `f` with an interpreter on top of this thread's stack.
pub fn with_interpreter<R>(interpreter: Rc<dyn Interpreter>, f: impl FnOnce() -> R) -> R {
    struct Pop(Vec<Rc<dyn Interpreter>>);
    impl Drop for Pop {
        fn drop(&mut self) {
            STACK.with(|s| *s.borrow_mut() = std::mem::take(&mut self.0));
        }
    }
    // Interpreters above the present depth belong to handlers that are running: the new one goes right on top of that depth.
    let depth = DEPTH.get();
    let kept = STACK.with(|s| {
        let mut s = s.borrow_mut();
        let kept = s.clone();
        s.truncate(depth);
        s.push(interpreter);
        kept
    });
    let _pop = Pop(kept);
    let _restore = Restore(&DEPTH, depth);
    DEPTH.set(depth + 1);
    f()
}

/// Runs `f` with a stand-in for the backend.
pub fn with_executor<R>(executor: Rc<dyn Executor>, f: impl FnOnce() -> R) -> R {
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            EXECUTOR.with(|s| s.borrow_mut().pop());
        }
    }
    EXECUTOR.with(|s| s.borrow_mut().push(executor));
    let _pop = Pop;
    let _restore = Restore(&EXECUTORS, EXECUTORS.get());
    EXECUTORS.set(EXECUTORS.get() + 1);
    f()
}

/// Carries out a primitive on tensors.
#[inline]
pub fn bind(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    if DEPTH.get() > 0 {
        return interpret(op, inputs);
    }
    bind_below(op, inputs)
}

/// [`bind`] for a primitive of one output.
#[inline]
pub fn bind1(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Tensor> {
    let mut outputs = bind(op, inputs)?;
    outputs.pop().ok_or_else(|| Error::runtime(format!("{}: gave no result", op.name())))
}

#[cold]
fn interpret(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    let depth = DEPTH.get();
    let top = STACK.with(|s| s.borrow()[depth - 1].clone());
    let _restore = Restore(&DEPTH, depth);
    DEPTH.set(depth - 1);
    top.bind(op, inputs)
}

fn bind_below(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    let outputs = execute(op, inputs)?;
    let recording = mode::is_grad_enabled() && inputs.iter().any(|t| t.requires_grad());
    if op.is_view() {
        for (i, out) in outputs.iter().enumerate() {
            out.mark_view(inputs[0], op, i);
            if outputs.len() > 1 {
                out.set_flag(crate::tensor::flag::FROZEN_VIEW, true);
            }
        }
    }
    if recording {
        record(op, inputs, &outputs)?;
    }
    Ok(outputs)
}

/// Runs an operation without looking at gradients.
#[inline]
pub(crate) fn execute(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    if inputs.iter().any(|t| t.lazy() != 0) && !op.takes_lazy() {
        return execute_resolved(op, inputs);
    }
    if EXECUTORS.get() > 0 {
        return execute_elsewhere(op, inputs);
    }
    op.run(inputs)
}

/// Conjugated and negated views are copied first, see NOTE [lazy values] in `tensor`.
#[cold]
fn execute_resolved(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    let mut resolved: SmallVec<[Tensor; 3]> = SmallVec::new();
    for t in inputs {
        resolved.push(if t.lazy() == 0 { (*t).clone() } else { execute(&crate::ops::RESOLVE, &[t])?.swap_remove(0) });
    }
    execute(op, &resolved.iter().collect::<SmallVec<[&Tensor; 3]>>())
}

#[cold]
fn execute_elsewhere(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    let level = EXECUTORS.get();
    let top = EXECUTOR.with(|s| s.borrow()[level - 1].clone());
    let _restore = Restore(&EXECUTORS, level);
    EXECUTORS.set(level - 1);
    top.execute(op, inputs)
}

/// Makes the node of an operation and hands it to the outputs that can have a gradient.
fn record(op: &dyn Primitive, inputs: &[&Tensor], outputs: &Outputs) -> Result<()> {
    if !outputs.iter().enumerate().any(|(i, o)| has_gradient(op, i, o)) {
        return Ok(());
    }
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| edge_of(t)).collect();
    let infos = outputs.iter().map(OutputInfo::of).collect();
    let reads = op.reads();
    let mut tensors: SmallVec<[Saved; 3]> =
        inputs.iter().enumerate().map(|(i, t)| if reads.input(i, &edges) { Saved::input(t) } else { Saved::None }).collect();
    tensors.extend(outputs.iter().enumerate().map(|(i, t)| if reads.output(i) { Saved::output(t, i) } else { Saved::None }));
    let node = Node::new(Kind::Primitive(op.boxed()), edges, infos, SavedTensors { tensors, released: false });
    for (i, out) in outputs.iter().enumerate().filter(|(i, o)| has_gradient(op, *i, o)) {
        out.set_history(Some(Edge { node: node.clone(), output: i as u32 }));
    }
    Ok(())
}

fn has_gradient(op: &dyn Primitive, i: usize, out: &Tensor) -> bool {
    out.dtype().is_differentiable() && op.differentiable(i)
}

fn edge_of(t: &Tensor) -> Option<Edge> {
    if t.dtype().is_differentiable() { t.gradient_edge() } else { None }
}

/// Carries out a primitive on `inputs` and puts its first result where `inputs[0]` is.
///
/// `RuntimeError` where the result has another shape, or a dtype that does not convert; where
/// elements of the target share addresses; where autograd could not follow.
pub fn bind_inplace(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<()> {
    let target = inputs[0];
    let needs_grad = mode::is_grad_enabled() && inputs.iter().any(|t| t.requires_grad());
    inplace::check(op.name(), target, needs_grad)?;
    target.check_writable(op.name())?;
    let mut specs = op.infer(inputs)?;
    let spec = specs.swap_remove(0);
    check_target(op.name(), target, &spec)?;
    if DEPTH.get() > 0 {
        // An interpreter sees the operation, then the copy.
        let result = bind1(op, inputs)?;
        return bind_copy(target, &result);
    }
    let history = if needs_grad { Some(history_before(op, inputs)?) } else { None };
    write(op, inputs, target, &spec)?;
    target.bump_version();
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
    let node = Node::new(
        Kind::Primitive(op.boxed()),
        edges,
        smallvec::smallvec![OutputInfo::of(target)],
        SavedTensors { tensors, released: false },
    );
    inplace::rebase(target, node, base_edge)
}

fn bind_copy(target: &Tensor, source: &Tensor) -> Result<()> {
    let depth = DEPTH.get();
    let _restore = Restore(&DEPTH, depth);
    DEPTH.set(0);
    target.copy_(source)?;
    Ok(())
}

type HistoryBefore = (SmallVec<[Option<Tensor>; 2]>, SmallVec<[Option<Edge>; 2]>, Option<Edge>);

/// What must be taken down before the target changes: the values of inputs in the target's memory where the derivative
/// reads them (the target itself, `y` in `y[1:].mul_(y[:-1])`), and the edges.
fn history_before(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<HistoryBefore> {
    let target = inputs[0];
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| edge_of(t)).collect();
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

fn check_target(op: &str, target: &Tensor, spec: &OutSpec) -> Result<()> {
    if target.shape() != spec.layout.sizes() {
        return Err(Error::runtime(format!(
            "{op}: output with shape {} doesn't match the broadcast shape {}",
            show(target.shape()),
            show(spec.layout.sizes())
        )));
    }
    if !spec.dtype.can_cast(target.dtype()) {
        return Err(Error::runtime(format!(
            "{op}: result type {} can't be cast to the desired output type {}",
            spec.dtype,
            target.dtype()
        )));
    }
    Ok(())
}

/// Computes into `target`, directly where no input would be overwritten while it is still to be read.
fn write(op: &dyn Primitive, inputs: &[&Tensor], target: &Tensor, spec: &OutSpec) -> Result<()> {
    if target.device().is_meta() {
        return Ok(());
    }
    let apart = |t: &&Tensor, same: bool| match overlap(t, target) {
        Overlap::None => true,
        Overlap::Same => same,
        Overlap::Partial => false,
    };
    let plain = target.lazy() == 0 && inputs.iter().all(|t| t.lazy() == 0);
    let safe = plain
        && target.dtype() == spec.dtype
        && EXECUTORS.get() == 0
        && ((op.elementwise() && inputs.iter().all(|t| apart(t, true))) || (op.updates() && inputs[1..].iter().all(|t| apart(t, false))));
    if safe {
        return op.compute(inputs, std::slice::from_ref(target));
    }
    let result = execute(op, inputs)?;
    crate::ops::copy_into(target, &result[0])
}

/// Carries out a primitive and puts its results into tensors at hand, which take their shape (`out=`).
///
/// `RuntimeError` where gradients would have to flow, where a dtype does not convert.
///
/// # Safety
/// No other thread uses `outs` during the call: see NOTE [metadata] in `tensor`.
pub unsafe fn bind_out(op: &dyn Primitive, inputs: &[&Tensor], outs: &[&Tensor]) -> Result<()> {
    let results = {
        check_out(op.name(), inputs, outs)?;
        let specs = op.infer(inputs)?;
        if let (true, [out]) = (op.elementwise(), outs)
            && specs[0].dtype == out.dtype()
            && specs[0].layout.sizes() == out.shape()
            && EXECUTORS.get() == 0
            && DEPTH.get() == 0
            && out.lazy() == 0
            && inputs.iter().all(|t| t.lazy() == 0)
            && !out.layout().has_overlap()
            && inputs.iter().all(|t| overlap(t, out) != Overlap::Partial)
        {
            inplace::check(op.name(), out, false)?;
            if !out.device().is_meta() {
                op.compute(inputs, std::slice::from_ref(*out))?;
            }
            out.bump_version();
            return Ok(());
        }
        let _guard = mode::no_grad();
        bind(op, inputs)?
    };
    for (out, result) in outs.iter().zip(&results) {
        // SAFETY: the caller's.
        unsafe { put_out(op.name(), out, result)? };
    }
    Ok(())
}

/// Refuses `out=` together with gradients.
pub(crate) fn check_out(op: &str, inputs: &[&Tensor], outs: &[&Tensor]) -> Result<()> {
    if mode::is_grad_enabled() && (inputs.iter().any(|t| t.requires_grad()) || outs.iter().any(|t| t.requires_grad())) {
        return Err(Error::runtime(format!(
            "{op}: functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )));
    }
    Ok(())
}

/// Puts a result into a tensor at hand, which takes its shape.
///
/// # Safety
/// No other thread uses `out` during the call: see NOTE [metadata] in `tensor`.
pub(crate) unsafe fn put_out(op: &str, out: &Tensor, result: &Tensor) -> Result<()> {
    if !result.dtype().can_cast(out.dtype()) {
        return Err(Error::runtime(format!(
            "{op}: result type {} can't be cast to the desired output type {}",
            result.dtype(),
            out.dtype()
        )));
    }
    if !out.device().same(result.device()) {
        return Err(Error::runtime(format!("{op}: Expected out tensor to be on {}, but it is on {}", result.device(), out.device())));
    }
    if out.shape() != result.shape() {
        let fresh = Layout::contiguous(result.shape())?;
        // SAFETY: the caller's.
        unsafe { out.resize(fresh)? };
    }
    out.check_writable(op)?;
    inplace::check(op, out, false)?;
    if !out.device().is_meta() {
        crate::ops::copy_into(out, result)?;
    }
    out.bump_version();
    Ok(())
}
