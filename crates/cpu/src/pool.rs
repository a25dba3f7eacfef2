//! The thread pool: [`parallel_for`].
//!
//! One pool serves the process. The caller of a parallel loop works itself, helped by workers that are started
//! at the first loop that needs them, look for work without sleeping for a moment after each loop, and then
//! park. A loop takes the workers that come in time and never waits for one that still sleeps.
//!
//! A forked child has none of the workers and starts its own when it needs them. No loop may be under way in
//! the forking thread itself. At the end of the process nobody waits for workers.

mod job;
mod settings;
mod worker;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

pub use settings::{MAX_THREADS, num_threads, set_num_threads};
use worker::Pool;

thread_local! {
    /// Whether this thread is executing a part of a loop.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f` on ranges that together cover `0..n` exactly once, on several threads where that pays.
///
/// Each range begins at a multiple of `grain` and has at least `grain` elements, but for the last: `grain` says
/// how much work is worth handing over (some microseconds, about 32 Ki simple operations). All of `0..n` is one
/// call on the calling thread where `n <= grain`, where one thread is set, inside of another parallel loop, and
/// while another thread occupies the pool. `f` is not called where `n` is 0; a `grain` of 0 counts as 1.
///
/// How `0..n` is split depends on the number of threads and on chance. **That no result depends on the split is
/// the caller's duty**: what one index does must not depend on which others are in its range.
///
/// # Panics
///
/// Where `f` panics; the other ranges may or may not have been done. The pool stays usable.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// flambeau_cpu::pool::parallel_for(1000, 10, &|range| {
///     sum.fetch_add(range.sum(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
pub fn parallel_for(n: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let grain = grain.max(1);
    if n <= grain {
        if n > 0 {
            f(0..n);
        }
        return;
    }
    let threads = num_threads();
    if threads == 1 || INSIDE.get() {
        return f(0..n);
    }
    pool().run(n, grain, threads, f);
}

/// Whether the calling thread is executing a part of a parallel loop, so that a loop started here would run on
/// this thread alone.
pub fn in_parallel() -> bool {
    INSIDE.get()
}

/// Marks the thread as being inside of a loop until dropped.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        INSIDE.set(true);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

fn pool() -> &'static Pool {
    let pool = POOL.load(Ordering::Acquire);
    // SAFETY: a pool that was published is never freed.
    if let Some(pool) = unsafe { pool.as_ref() } { pool } else { make_pool() }
}

#[cold]
fn make_pool() -> &'static Pool {
    static FORK: Once = Once::new();
    FORK.call_once(register_fork_handler);
    let new = Box::into_raw(Box::new(Pool::new()));
    match POOL.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: published just now, and never freed.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: `new` was not published.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: `other` was, and is never freed.
            unsafe { &*other }
        }
    }
}

#[cfg(unix)]
fn register_fork_handler() {
    extern "C" fn child() {
        // The threads of the old pool, and perhaps the owner of its lock, are not there: leave it behind.
        POOL.store(std::ptr::null_mut(), Ordering::Release);
    }
    // SAFETY: the handler is a plain function that lives as long as the library, and only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

#[cfg(not(unix))]
fn register_fork_handler() {}
