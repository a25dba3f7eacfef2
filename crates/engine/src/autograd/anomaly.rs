//! Anomaly mode: nodes know where in the program they were recorded, and gradients are searched for NaN.

use super::node::{Grads, Node};
use crate::Tensor;
use flambeau_base::{Error, Result};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const ON: u8 = 1;
const CHECK_NAN: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(CHECK_NAN);

/// The front end's part: it knows where in the user's program things happen.
pub trait Watch: Send + Sync {
    /// Where the program is now, for a message.
    fn place(&self) -> String;
    /// A node was recorded now, while the derivative of `during` ran.
    fn recorded(&self, node: &Arc<Node>, during: Option<&Arc<Node>>);
    /// The derivative of a node failed: time to say where it was recorded.
    fn failed(&self, node: &Arc<Node>);
}

static WATCH: OnceLock<&'static dyn Watch> = OnceLock::new();

/// Names the front end's part, once for the process. Whether it is this one now.
pub fn set_watch(watch: &'static dyn Watch) -> bool {
    WATCH.set(watch).is_ok()
}

/// Switches anomaly mode, for all threads: backward then names the operation whose derivative fails and where it was
/// recorded, and (`check_nan`) fails where a gradient is NaN.
pub fn set_anomaly(on: bool, check_nan: bool) {
    MODE.store((u8::from(on) * ON) | (u8::from(check_nan) * CHECK_NAN), Ordering::Relaxed);
    if !on {
        changes().clear();
    }
}

/// Whether anomaly mode is on.
#[inline]
pub fn is_anomaly() -> bool {
    MODE.load(Ordering::Relaxed) & ON != 0
}

/// Whether anomaly mode searches for NaN.
pub fn is_anomaly_check_nan() -> bool {
    MODE.load(Ordering::Relaxed) & CHECK_NAN != 0
}

thread_local! {
    static DURING: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

/// Names the node whose derivative runs, until it is dropped.
pub(crate) struct During(Option<Arc<Node>>);

impl During {
    pub fn enter(node: &Arc<Node>) -> During {
        During(DURING.replace(Some(node.clone())))
    }
}

impl Drop for During {
    fn drop(&mut self) {
        let old = DURING.replace(self.0.take());
        drop(old);
    }
}

#[cold]
pub(crate) fn recorded(node: &Arc<Node>) {
    let during = DURING.with_borrow(|d| d.clone());
    if let Some(watch) = WATCH.get() {
        watch.recorded(node, during.as_ref());
    }
}

#[cold]
pub(crate) fn failed(node: &Arc<Node>) {
    if let Some(watch) = WATCH.get() {
        watch.failed(node);
    }
}

/// `RuntimeError` where a gradient that a node made is NaN.
#[cold]
pub(crate) fn check_nan(node: &Arc<Node>, made: &Grads) -> Result<()> {
    if !is_anomaly_check_nan() {
        return Ok(());
    }
    let _guard = super::no_grad();
    for (i, grad) in made.iter().enumerate() {
        let Some(grad) = grad else { continue };
        if grad.dtype().is_differentiable() && !grad.device().is_meta() && grad.isnan()?.any()?.item()?.to_bool() {
            return Err(Error::runtime(format!("Function '{}' returned nan values in its {i}th output.", node.name())));
        }
    }
    Ok(())
}

/// A write in place that anomaly mode has seen.
struct Change {
    /// The address of the version counter.
    counter: usize,
    /// The version that the write made.
    version: u32,
    op: String,
    place: String,
}

/// How many writes are remembered.
const REMEMBERED: usize = 4096;

fn changes() -> MutexGuard<'static, VecDeque<Change>> {
    static CHANGES: Mutex<VecDeque<Change>> = Mutex::new(VecDeque::new());
    CHANGES.lock().unwrap_or_else(|e| e.into_inner())
}

fn counter(t: &Tensor) -> usize {
    std::ptr::from_ref(t.version_counter()) as usize
}

/// Remembers where a tensor is about to be written to.
#[cold]
pub(crate) fn changing(op: &str, t: &Tensor) {
    let place = WATCH.get().map_or(String::new(), |w| w.place());
    let change = Change { counter: counter(t), version: t.version().wrapping_add(1), op: op.into(), place };
    let mut changes = changes();
    if changes.len() == REMEMBERED {
        changes.pop_front();
    }
    changes.push_back(change);
}

/// What changed a tensor after it had `version`, in words; nothing where that was not seen.
pub(crate) fn changed_by(t: &Tensor, version: u32) -> Option<String> {
    let (counter, version) = (counter(t), version.wrapping_add(1));
    let changes = changes();
    let found = changes.iter().rev().find(|c| c.counter == counter && c.version == version)?;
    let name = found.op.trim_end_matches('_');
    Some(if found.place.is_empty() {
        format!("It was changed by {name}_.")
    } else {
        format!("It was changed by {name}_ at:\n{}", found.place.trim_end())
    })
}
