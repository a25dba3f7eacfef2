//! The transforms that this thread is inside of, and the tensors that stand for others there.
//!
//! NOTE [levels]: each transform (`grad`, `jvp`, `vmap`) that is being carried out is a *level*, an interpreter on the
//! thread's stack with a number of its own. A tensor of a level is a tensor like any other (shape, dtype, strides, memory
//! of the one that it stands for) that also knows the level and the tensor below ([`Wrapped`]). The interpreter of that
//! level, and it alone, takes it apart: it carries the operation out on the tensors below, by `bind` for the levels
//! further down, and wraps what comes back. What a level keeps for derivatives (history, tangent) is kept by its own
//! tensor, where any tensor keeps it, so that the machinery of reverse mode serves every level.
//!
//! A tensor of `vmap` has a batch dimension more below, in front; its own layout is that of the first example. So the code
//! of an operation sees the shapes of one example. Reading its memory is refused (`data_ptr`): it would see one example of many.

use super::Interpreter;
use crate::Tensor;
use crate::tensor::{Meta, flag};
use flambeau_base::{Dims, Error, Layout, Result, Strides};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a tensor stands for inside a transform.
pub(crate) struct Wrapped {
    /// The transform's number.
    pub level: u32,
    /// The tensor below.
    pub value: Tensor,
    /// Whether that has a batch dimension in front.
    pub batched: bool,
}

/// A number for a new level.
pub(crate) fn fresh() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Where on the stack of interpreters this thread is.
#[derive(Clone, Copy, Default)]
struct Here {
    /// How many of the interpreters see an operation that is bound now.
    depth: usize,
    /// The number of the topmost of these; 0 where there is none.
    level: u32,
}

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here { depth: 0, level: 0 }) };
    static STACK: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
    static READ_BATCH: Cell<bool> = const { Cell::new(false) };
}

/// The level inside which this thread is; 0 outside of all.
#[inline]
pub(crate) fn current() -> u32 {
    HERE.get().level
}

/// How many interpreters see an operation that is bound now.
#[inline]
pub fn depth() -> usize {
    HERE.get().depth
}

/// The topmost interpreter.
pub fn top() -> Option<Rc<dyn Interpreter>> {
    let depth = depth();
    if depth == 0 { None } else { STACK.with(|s| s.borrow().get(depth - 1).cloned()) }
}

/// Restores where this thread is when it is dropped, also on the way out of an error or a panic.
#[must_use = "the place on the stack is restored when the guard is dropped"]
pub struct Restore(Here);

impl Drop for Restore {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

/// Operations bound while the guard lives are seen by the interpreters below the topmost one alone.
pub fn below() -> Restore {
    let here = HERE.get();
    let depth = here.depth.saturating_sub(1);
    let level = if depth == 0 { 0 } else { STACK.with(|s| s.borrow()[depth - 1].level()) };
    HERE.set(Here { depth, level });
    Restore(here)
}

/// Operations bound while the guard lives are seen by the interpreters below a level alone.
pub(crate) fn beneath(level: u32) -> Restore {
    let here = HERE.get();
    let depth = STACK.with(|s| s.borrow()[..here.depth].iter().position(|i| i.level() == level)).unwrap_or(here.depth);
    let level = if depth == 0 { 0 } else { STACK.with(|s| s.borrow()[depth - 1].level()) };
    HERE.set(Here { depth, level });
    Restore(here)
}

/// The interpreters that see an operation, the topmost first.
pub(crate) fn seen() -> Vec<Rc<dyn Interpreter>> {
    STACK.with(|s| s.borrow()[..depth()].iter().rev().cloned().collect())
}

/// An interpreter on top of the stack for as long as this lives. Dropped in the order opposite to that in which they were entered.
#[must_use = "the interpreter leaves when the guard is dropped"]
pub struct Entered {
    restore: Option<Restore>,
    /// Interpreters that were above this thread's place: they belong to handlers that are running.
    above: Vec<Rc<dyn Interpreter>>,
}

/// Puts an interpreter on top of this thread's stack.
pub fn enter(interpreter: Rc<dyn Interpreter>) -> Entered {
    let here = HERE.get();
    let level = interpreter.level();
    let above = STACK.with(|s| {
        let mut s = s.borrow_mut();
        let above = s.split_off(here.depth);
        s.push(interpreter);
        above
    });
    HERE.set(Here { depth: here.depth + 1, level });
    Entered { restore: Some(Restore(here)), above }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let restore = self.restore.take();
        let depth = restore.as_ref().map_or(0, |r| r.0.depth);
        let left = STACK.with(|s| {
            let mut s = s.borrow_mut();
            let at = depth.min(s.len());
            let left = s.split_off(at);
            s.append(&mut self.above);
            left
        });
        drop(restore);
        drop(left);
    }
}

impl Tensor {
    /// The tensor below, where this one belongs to a level.
    pub(crate) fn at_level(&self, level: u32) -> Option<&Tensor> {
        self.meta().wrapped.as_ref().filter(|w| w.level == level).map(|w| &w.value)
    }

    /// Whether it belongs to a level.
    pub(crate) fn is_at_level(&self, level: u32) -> bool {
        self.at_level(level).is_some()
    }

    /// Whether it belongs to a transform that has ended, or that is not being looked at: levels inside others have higher numbers.
    pub(crate) fn is_left_behind(&self) -> bool {
        self.has(flag::WRAPPED) && self.meta().wrapped.as_ref().is_some_and(|w| w.level > current())
    }

    /// What it stands for at the levels that have not ended. `RuntimeError` for an example of a batch that left `vmap`.
    pub(crate) fn alive(&self, op: &str) -> Result<Tensor> {
        let mut t = self.clone();
        while let Some(w) = t.meta().wrapped.clone().filter(|w| w.level > current()) {
            if w.batched {
                return Err(Error::runtime(format!(
                    "{op}: a Tensor that stands for a batch has left the function that was passed to vmap, and cannot be used outside of it"
                )));
            }
            t = w.value.clone();
        }
        Ok(t)
    }

    /// Whether something that an operation makes of it will be differentiated, here or on a level below.
    pub(crate) fn is_followed(&self) -> bool {
        let flags = self.flags();
        (crate::autograd::is_grad_enabled() && self.requires_grad())
            || flags & flag::TANGENT != 0
            || (flags & flag::WRAPPED != 0 && self.meta().wrapped.as_ref().is_some_and(|w| w.value.is_followed()))
    }

    /// Its values without history or tangent on any level: what a running statistic takes of them.
    pub(crate) fn settled(&self) -> Tensor {
        let mut t = self.clone();
        while let Some(w) = t.meta().wrapped.clone().filter(|w| !w.batched) {
            t = w.value.clone();
        }
        t.alias()
    }

    /// Whether it stands for a batch.
    pub fn is_batched(&self) -> bool {
        self.meta().wrapped.as_ref().is_some_and(|w| w.batched || w.value.is_batched())
    }

    /// The level that it belongs to (0 for none) and the tensor below.
    pub fn wrapped(&self) -> Option<(u32, Tensor, bool)> {
        self.meta().wrapped.as_ref().map(|w| (w.level, w.value.clone(), w.batched))
    }

    /// A tensor of a level that stands for this one.
    pub(crate) fn wrap(&self, level: u32) -> Tensor {
        let meta = self.meta();
        let wrapped = Some(Arc::new(Wrapped { level, value: self.clone(), batched: false }));
        let t = Tensor::from_meta(Meta {
            storage: meta.storage.clone(),
            layout: meta.layout.clone(),
            dtype: meta.dtype,
            lazy: meta.lazy,
            version: meta.version.clone(),
            wrapped,
        });
        t.set_flag(flag::NUMBER, self.has(flag::NUMBER));
        t
    }

    /// A tensor of a level that stands for this one, whose first dimension is the batch.
    pub(crate) fn wrap_batch(&self, level: u32) -> Tensor {
        let meta = self.meta();
        let layout = self.layout().example();
        let wrapped = Some(Arc::new(Wrapped { level, value: self.clone(), batched: true }));
        let (storage, version) = (meta.storage.clone(), meta.version.clone());
        Tensor::from_meta(Meta { storage, layout, dtype: meta.dtype, lazy: meta.lazy, version, wrapped })
    }

    /// Makes this tensor, which was just made, stand for the examples of a batch of which it has the shape.
    pub(crate) fn promote_to_batch(&self, level: u32, whole: Tensor) {
        let (storage, layout) = (whole.storage().clone(), whole.layout().example());
        let wrapped = Some(Arc::new(Wrapped { level, value: whole, batched: true }));
        // SAFETY: nobody else has it yet, and no borrow of its metadata is alive.
        unsafe {
            self.set_meta(|m| {
                (m.storage, m.layout, m.wrapped) = (storage, layout, wrapped);
            });
        }
        self.set_flag(flag::WRAPPED, true);
    }

    /// Makes this tensor, which was made inside a level, one of the level: it stands for what it was until now. So does the
    /// base of a view.
    pub(crate) fn promote(&self, level: u32) {
        if self.is_at_level(level) {
            return;
        }
        let view = if self.has(flag::VIEW) {
            self.autograd().as_ref().and_then(|m| m.view.as_ref()).map(|v| (v.base.clone(), v.steps.clone(), v.seen))
        } else {
            None
        };
        let meta = self.meta();
        let below = Tensor::from_meta(Meta {
            storage: meta.storage.clone(),
            layout: meta.layout.clone(),
            dtype: meta.dtype,
            lazy: meta.lazy,
            version: meta.version.clone(),
            wrapped: meta.wrapped.clone(),
        });
        let moved = self.flags() & (flag::REQUIRES_GRAD | flag::GRAD_FN | flag::VIEW | flag::INFERENCE | flag::FROZEN_VIEW | flag::TANGENT);
        below.set_flag(moved, true);
        *below.autograd() = self.autograd().take();
        self.set_flag(moved, false);
        let wrapped = Some(Arc::new(Wrapped { level, value: below, batched: false }));
        // SAFETY: the tensor was made inside a transform of this thread, and no borrow of its metadata is alive.
        unsafe { self.set_meta(|m| m.wrapped = wrapped) };
        self.set_flag(flag::WRAPPED, true);
        if let Some((base, steps, seen)) = view {
            base.promote(level);
            self.with_autograd(|m| m.view = Some(crate::autograd::meta::View { base, steps, seen }));
            self.set_flag(flag::VIEW, true);
        }
    }
}

/// Layouts with a batch dimension in front.
pub(crate) trait Batches {
    /// The layout of the first example.
    fn example(&self) -> Layout;
    /// The layout of a batch of so many examples that lie as this layout does, so many elements apart.
    fn in_batch(&self, size: usize, apart: isize) -> Result<Layout>;
}

impl Batches for Layout {
    fn example(&self) -> Layout {
        self.select(0, 0)
    }

    fn in_batch(&self, size: usize, apart: isize) -> Result<Layout> {
        let mut sizes = Dims::from_slice(&[size]);
        let mut strides = Strides::from_slice(&[apart]);
        sizes.extend_from_slice(self.sizes());
        strides.extend_from_slice(self.strides());
        Layout::strided("vmap", &sizes, &strides, self.offset())
    }
}

/// Notes that a batch would have been read as one example. The error's text is PyTorch's users'.
#[cold]
pub(crate) fn refuse_read() -> Error {
    READ_BATCH.set(true);
    Error::runtime(
        "vmap: It looks like you're calling .item() (or an operation that reads values) on a Tensor inside vmap. We don't support that: it stands for a batch of examples.",
    )
}

/// Whether a batch was about to be read since this was last asked.
pub(crate) fn took_refused_read() -> bool {
    READ_BATCH.replace(false)
}
