//! `bind`, the one seam: every operation passes here, and interpreters see it first.
//!
//! A call goes through three levels. Interpreters on this thread's stack (the levels of `vmap`,
//! `grad` and `jvp`) may handle it, and call `bind` again for what they make of it. What reaches the bottom is
//! recorded for reverse differentiation where an input requires a gradient. Last it is executed: by
//! the backend, or by a capture that stands in for it.

pub mod autocast;
pub mod capture;
pub(crate) mod differentiate;
pub mod forward;
pub mod functional;
pub(crate) mod level;
pub mod vectorize;

use crate::Tensor;
use crate::autograd::inplace;
use crate::autograd::mode;
use crate::ops::{OutSpec, Outputs, Primitive};
use crate::tensor::{Overlap, flag, overlap};
use flambeau_base::{Error, Layout, Result, show};
use forward::is_forward_enabled;
pub use level::{Restore as Below, below, depth, top};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use vectorize::Randomness;

/// Sees operations before they run. A level of the thread's stack, see NOTE [levels] in `level`.
pub trait Interpreter {
    /// Its number, which no other has.
    fn level(&self) -> u32;

    /// Carries out an operation: on what is below its tensors, by [`bind`] with [`level::below`] in force.
    fn bind(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs>;

    /// Carries out an operation and leaves its first result where the first input is.
    fn bind_inplace(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<()>;

    /// Of a level that differentiates: whether gradients are recorded below it.
    fn records_below(&self) -> Option<bool> {
        None
    }

    /// Of `vmap`: its number, how many examples there are, and what random draws do.
    fn randomness(&self) -> Option<(u32, usize, Randomness)> {
        None
    }
}

/// Carries something out with the topmost transform left out, with the mode that holds below it.
pub fn carry_below<R>(f: impl FnOnce() -> R) -> R {
    let records = level::top().and_then(|top| top.records_below());
    let _below = level::below();
    let _mode = records.map(mode::recording);
    f()
}

/// Stands in for the backend: sees operations after recording, with plain tensors.
pub trait Executor {
    /// Carries out an operation.
    fn execute(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs>;
}

thread_local! {
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
    if level::depth() > 0 {
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
    let Some(top) = level::top() else { return bind_below(op, inputs) };
    if inputs.iter().any(|t| t.is_left_behind()) {
        let values = left_behind(op.name(), inputs)?;
        return top.bind(op, &values.iter().collect::<SmallVec<[&Tensor; 3]>>());
    }
    top.bind(op, inputs)
}

/// Below all levels: runs the operation, and records it.
fn bind_below(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
    let flags = inputs.iter().fold(0, |flags, t| flags | t.flags());
    if flags & (flag::WRAPPED | flag::TANGENT) != 0 {
        return bind_special(op, inputs, flags);
    }
    let outputs = execute(op, inputs)?;
    differentiate::mark_views(op, inputs, &outputs);
    if mode::is_grad_enabled() && inputs.iter().any(|t| t.requires_grad()) {
        differentiate::record(op, inputs, &outputs, 0)?;
    }
    Ok(outputs)
}

/// [`bind_below`] with tensors that have a tangent, or that a transform left behind.
#[cold]
fn bind_special(op: &dyn Primitive, inputs: &[&Tensor], flags: u16) -> Result<Outputs> {
    if flags & flag::WRAPPED != 0 {
        let values = left_behind(op.name(), inputs)?;
        return bind_below(op, &values.iter().collect::<SmallVec<[&Tensor; 3]>>());
    }
    let outputs = execute(op, inputs)?;
    differentiate::mark_views(op, inputs, &outputs);
    if mode::is_grad_enabled() && inputs.iter().any(|t| t.requires_grad()) {
        differentiate::record(op, inputs, &outputs, 0)?;
    }
    if is_forward_enabled() {
        let tangents = differentiate::tangents_at(inputs, 0);
        let plain: SmallVec<[Tensor; 3]> = inputs.iter().map(|t| t.primal()).collect();
        let found = forward::tangents_of(op, &plain.iter().collect::<SmallVec<[&Tensor; 3]>>(), &outputs, &tangents)?;
        differentiate::leave_tangents(op, &outputs, found, &tangents)?;
        forward::leave_with_saved(&outputs)?;
    }
    Ok(outputs)
}

/// The tensors that those of transforms that have ended stood for.
fn left_behind(op: &str, inputs: &[&Tensor]) -> Result<SmallVec<[Tensor; 3]>> {
    inputs.iter().map(|t| t.alive(op)).collect()
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

/// Carries out a primitive on `inputs` and puts its first result where `inputs[0]` is.
///
/// `RuntimeError` where the result has another shape, or a dtype that does not convert; where
/// elements of the target share addresses; where autograd could not follow.
pub fn bind_inplace(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<()> {
    if inputs.iter().any(|t| t.is_left_behind()) {
        let values = left_behind(op.name(), inputs)?;
        return bind_inplace(op, &values.iter().collect::<SmallVec<[&Tensor; 3]>>());
    }
    if let Some(top) = level::top() {
        return top.bind_inplace(op, inputs);
    }
    differentiate::in_place(op, inputs, 0, &mut |tangents| {
        let tangent = match tangents {
            None => None,
            Some(tangents) => {
                let plain: SmallVec<[Tensor; 3]> = inputs.iter().map(|t| t.primal()).collect();
                Some(differentiate::tangent_in_place(op, &plain.iter().collect::<SmallVec<[&Tensor; 3]>>(), tangents)?)
            }
        };
        write(op, inputs)?;
        Ok(tangent)
    })
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
fn write(op: &dyn Primitive, inputs: &[&Tensor]) -> Result<()> {
    let target = inputs[0];
    if target.device().is_meta() {
        return Ok(());
    }
    let apart = |t: &&Tensor, same: bool| match overlap(t, target) {
        Overlap::None => true,
        Overlap::Same => same,
        Overlap::Partial => false,
    };
    let spec = op.infer(inputs)?.swap_remove(0);
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
            && level::depth() == 0
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
