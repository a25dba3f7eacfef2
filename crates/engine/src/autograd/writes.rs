//! Who wants to know before a tensor is written to in place.

use crate::Tensor;
use flambeau_base::Result;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Called before a tensor is written to in place.
pub trait WriteHook: Send + Sync {
    /// The tensor still has its old values.
    fn before(&self, t: &Tensor) -> Result<()>;
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static HOOKS: RefCell<Vec<Arc<dyn WriteHook>>> = const { RefCell::new(Vec::new()) };
}

/// From now on the hook is called for each write of this thread.
pub fn push_write_hook(hook: Arc<dyn WriteHook>) {
    HOOKS.with_borrow_mut(|h| h.push(hook));
    ACTIVE.set(true);
}

/// Takes back the hook that was pushed last.
pub fn pop_write_hook() {
    let old = HOOKS.with_borrow_mut(|h| {
        let old = h.pop();
        ACTIVE.set(!h.is_empty());
        old
    });
    drop(old);
}

/// Whether somebody wants to know.
#[inline]
pub(crate) fn watched() -> bool {
    ACTIVE.get() || super::anomaly::is_anomaly()
}

#[cold]
pub(crate) fn announce(op: &str, t: &Tensor) -> Result<()> {
    if super::anomaly::is_anomaly() {
        super::anomaly::changing(op, t);
    }
    let hooks = HOOKS.with_borrow(|h| h.clone());
    hooks.iter().try_for_each(|h| h.before(t))
}
