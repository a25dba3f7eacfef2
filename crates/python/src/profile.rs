//! Times of operations, while a profiler listens.

use crate::error::*;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread::ThreadId;
use std::time::Instant;

/// What ran, from when to when (in nanoseconds since the process first asked), in which thread.
struct Event {
    name: String,
    start: u64,
    end: u64,
    thread: ThreadId,
}

static ON: AtomicBool = AtomicBool::new(false);
static EVENTS: Mutex<Vec<Event>> = Mutex::new(Vec::new());
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn now() -> u64 {
    ORIGIN.elapsed().as_nanos() as u64
}

fn note(name: String, start: u64, end: u64) {
    let event = Event { name, start, end, thread: std::thread::current().id() };
    if let Ok(mut events) = EVENTS.lock() {
        events.push(event);
    }
}

/// Whether a profiler listens.
#[inline]
pub fn listens() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Runs an operation and notes its time.
#[cold]
pub fn timed<R>(name: &str, f: impl FnOnce() -> Ret<R>) -> Ret<R> {
    let start = now();
    let result = f();
    note(name.to_owned(), start, now());
    result
}

/// Begins to listen, or ends it; gives whether it listened.
#[pyfunction]
fn _profiler_listen(on: bool) -> bool {
    LazyLock::force(&ORIGIN);
    ON.swap(on, Ordering::Relaxed)
}

/// Nanoseconds on the profiler's clock.
#[pyfunction]
fn _profiler_now() -> u64 {
    now()
}

/// Notes what a program names itself.
#[pyfunction]
fn _profiler_note(name: String, start: u64) {
    if listens() {
        note(name, start, now());
    }
}

/// Takes what was noted: name, start and end in nanoseconds, thread.
#[pyfunction]
fn _profiler_take() -> Vec<(String, u64, u64, String)> {
    let events = EVENTS.lock().map(|mut events| std::mem::take(&mut *events)).unwrap_or_default();
    events.into_iter().map(|e| (e.name, e.start, e.end, format!("{:?}", e.thread))).collect()
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_profiler_listen, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_now, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_note, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_take, m)?)
}
