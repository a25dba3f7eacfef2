//! What this thread does with gradients.

use std::cell::Cell;

thread_local! {
    static GRAD: Cell<bool> = const { Cell::new(true) };
    static INFERENCE: Cell<bool> = const { Cell::new(false) };
}

/// Whether operations are recorded for differentiation in this thread.
#[inline]
pub fn is_grad_enabled() -> bool {
    GRAD.get()
}

/// Switches recording in this thread; gives what it was.
pub fn set_grad_enabled(on: bool) -> bool {
    GRAD.replace(on)
}

/// Whether new tensors are inference tensors in this thread.
#[inline]
pub fn is_inference() -> bool {
    INFERENCE.get()
}

/// Switches inference mode in this thread; gives what it was. Recording is a switch of its own.
pub fn set_inference(on: bool) -> bool {
    INFERENCE.replace(on)
}

/// Puts gradient modes back to what they were when it is dropped.
///
/// ```
/// use flambeau_engine::autograd::{is_grad_enabled, no_grad};
/// {
///     let _guard = no_grad();
///     assert!(!is_grad_enabled());
/// }
/// assert!(is_grad_enabled());
/// ```
#[must_use = "the mode lasts as long as the guard"]
pub struct ModeGuard {
    grad: bool,
    inference: bool,
    // Modes belong to a thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl ModeGuard {
    fn enter(grad: bool, inference: bool) -> ModeGuard {
        ModeGuard { grad: GRAD.replace(grad), inference: INFERENCE.replace(inference), _here: std::marker::PhantomData }
    }
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        GRAD.set(self.grad);
        INFERENCE.set(self.inference);
    }
}

/// Recording, or none, while the guard lives.
pub(crate) fn recording(on: bool) -> ModeGuard {
    ModeGuard::enter(on, INFERENCE.get())
}

/// No recording while the guard lives.
pub fn no_grad() -> ModeGuard {
    ModeGuard::enter(false, INFERENCE.get())
}

/// Recording while the guard lives.
pub fn enable_grad() -> ModeGuard {
    ModeGuard::enter(true, INFERENCE.get())
}

/// No recording, and tensors that can never take part in it, while the guard lives.
pub fn inference_mode() -> ModeGuard {
    ModeGuard::enter(false, true)
}
