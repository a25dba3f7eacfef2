//! The object that a front end (Python) shows for a tensor.
//!
//! NOTE [front-end objects]: a front end's object owns one handle on the tensor, and the tensor
//! remembers the object in its slot, so that the same tensor is always the same object. While the
//! object's handle is the only one, the front end alone decides how long both live, and its cycle
//! collector sees the tensor as part of the object. As soon as the core owns the tensor too (a saved
//! tensor, a gradient, a view's base), the core asks the front end to hold the object strongly
//! (`hold`), so that attributes and subclass live as long as the tensor; when the object's handle is
//! the last again, it lets go (`release`). Both happen under the front end's lock (the GIL): the
//! state is compared with the count there, so the order in which threads arrive does not matter. The
//! step from two owners to one is itself made under that lock, so that nobody frees the tensor
//! between the step and the comparison.

use super::{Impl, Tensor, flag};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// What the engine asks of a front end that shows tensors as objects of its own.
pub trait FrontEnd: Send + Sync {
    /// Runs `f` under the front end's lock; does not run it, and says so, where the front end has ended.
    fn locked(&self, f: &mut dyn FnMut()) -> bool;
    /// Holds the object strongly. Called under the lock.
    fn hold(&self, object: NonNull<()>);
    /// Lets go of it again; may destroy it. Called under the lock.
    fn release(&self, object: NonNull<()>);
}

static FRONT_END: OnceLock<&'static dyn FrontEnd> = OnceLock::new();

/// Names the front end, once for the process. Whether it is this one now.
pub fn set_front_end(front: &'static dyn FrontEnd) -> bool {
    FRONT_END.set(front).is_ok()
}

/// Brings the front end's hold in line with the number of owners. Under the lock.
fn settle(front: &dyn FrontEnd, inner: &Impl) {
    let Some(object) = NonNull::new(inner.slot.load(Ordering::Acquire)) else { return };
    let shared = inner.refs.load(Ordering::Acquire) > 1;
    let held = inner.flags.load(Ordering::Relaxed) & flag::HELD != 0;
    if shared && !held {
        inner.flags.fetch_or(flag::HELD, Ordering::Relaxed);
        front.hold(object);
    } else if !shared && held {
        inner.flags.fetch_and(!flag::HELD, Ordering::Relaxed);
        // May free the tensor: nothing of it is touched afterwards.
        front.release(object);
    }
}

/// After a clone that made the second handle on a tensor that is shown.
#[cold]
pub(super) fn second_owner(tensor: &Tensor) {
    if let Some(front) = FRONT_END.get() {
        front.locked(&mut || settle(*front, tensor.inner()));
    }
}

/// Drops a handle on a tensor that is shown. The object's own handle is dropped by [`Tensor::forget_object`].
pub(super) fn drop_shown(tensor: &Tensor) {
    let inner = tensor.inner();
    let mut refs = inner.refs.load(Ordering::Acquire);
    while refs > 2 {
        match inner.refs.compare_exchange_weak(refs, refs - 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => refs = now,
        }
    }
    if let Some(front) = FRONT_END.get() {
        // Where the front end has ended, the tensor stays: its object is never destroyed either.
        front.locked(&mut || {
            inner.refs.fetch_sub(1, Ordering::AcqRel);
            settle(*front, inner);
        });
    }
}

impl Tensor {
    /// The front end's object, where there is one.
    #[inline]
    pub fn object(&self) -> Option<NonNull<()>> {
        NonNull::new(self.inner().slot.load(Ordering::Acquire))
    }

    /// Remembers the front end's object, which from now on owns the handle `self`. Under the front end's lock.
    ///
    /// # Safety
    /// The tensor has no object yet; the object lives until it calls [`Tensor::forget_object`].
    pub unsafe fn set_object(&self, object: NonNull<()>) {
        self.inner().slot.store(object.as_ptr(), Ordering::Release);
        if self.handles() > 1
            && let Some(front) = FRONT_END.get()
        {
            settle(*front, self.inner());
        }
    }

    /// Called by the object as it is destroyed: its handle is an ordinary one from here on. Under the front end's lock.
    pub fn forget_object(&self) {
        self.inner().flags.fetch_and(!flag::HELD, Ordering::Relaxed);
        self.inner().slot.store(std::ptr::null_mut(), Ordering::Release);
    }

    /// Whether this handle is the only one, so that what the tensor owns belongs to its object alone.
    pub fn is_unique(&self) -> bool {
        self.handles() == 1
    }
}
