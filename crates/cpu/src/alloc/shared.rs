//! The cache that all threads share, bounded in bytes; what was unused for longest leaves first.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, Once};

use super::classes::{CLASSES, class_size};
use super::system;

struct Cached {
    ptr: NonNull<u8>,
    /// The value of [`Shared::clock`] when it came in.
    since: u64,
}

struct Shared {
    /// Free blocks by class, the oldest in front.
    lists: [VecDeque<Cached>; CLASSES],
    bytes: usize,
    clock: u64,
    /// How many bytes may stay; none yet before the first use.
    limit: Option<usize>,
}

// SAFETY: the blocks belong to the cache alone, so it may be used from any thread.
unsafe impl Send for Shared {}

static SHARED: Mutex<Shared> = Mutex::new(Shared { lists: [const { VecDeque::new() }; CLASSES], bytes: 0, clock: 0, limit: None });

fn lock() -> MutexGuard<'static, Shared> {
    static FORK: Once = Once::new();
    FORK.call_once(register_fork_handlers);
    // Nothing panics with the lock held that would leave the lists broken.
    SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Keeps free blocks of a class, or returns to the system what is over the limits.
pub(super) fn put(class: usize, blocks: &[NonNull<u8>]) {
    let mut evicted = Vec::new();
    {
        let mut shared = lock();
        for &ptr in blocks {
            shared.clock += 1;
            let since = shared.clock;
            shared.lists[class].push_back(Cached { ptr, since });
            shared.bytes += class_size(class);
        }
        shared.shrink(class, &mut evicted);
    }
    release(evicted);
}

/// A free block of the class.
pub(super) fn take(class: usize) -> Option<NonNull<u8>> {
    let mut block = [NonNull::dangling()];
    (take_many(class, &mut block) == 1).then(|| block[0])
}

/// Fills the front of `into` with free blocks of the class, the last used first, and says how many there were.
pub(super) fn take_many(class: usize, into: &mut [NonNull<u8>]) -> usize {
    let mut shared = lock();
    let count = into.len().min(shared.lists[class].len());
    for slot in &mut into[..count] {
        if let Some(cached) = shared.lists[class].pop_back() {
            *slot = cached.ptr;
        }
    }
    shared.bytes -= count * class_size(class);
    count
}

pub(super) fn set_limit(nbytes: usize) {
    let mut evicted = Vec::new();
    {
        let mut shared = lock();
        shared.limit = Some(nbytes);
        for class in 0..CLASSES {
            shared.shrink(class, &mut evicted);
        }
    }
    release(evicted);
}

pub(super) fn release_all() {
    let mut evicted = Vec::new();
    {
        let mut shared = lock();
        for (class, list) in shared.lists.iter_mut().enumerate() {
            evicted.extend(std::mem::take(list).into_iter().map(|cached| (class, cached.ptr)));
        }
        shared.bytes = 0;
    }
    release(evicted);
}

fn release(blocks: Vec<(usize, NonNull<u8>)>) {
    for (class, ptr) in blocks {
        // SAFETY: the block came from `system::map` with the size of its class and has left the cache.
        unsafe { system::unmap(ptr, class_size(class)) };
    }
}

impl Shared {
    /// Moves blocks to `evicted`: those of `class` over its half of the limit, then the oldest of all classes.
    fn shrink(&mut self, class: usize, evicted: &mut Vec<(usize, NonNull<u8>)>) {
        let limit = *self.limit.get_or_insert_with(default_limit);
        while self.lists[class].len() > 1 && self.lists[class].len() * class_size(class) > limit / 2 {
            self.evict(class, evicted);
        }
        while self.bytes > limit {
            let ages = self.lists.iter().enumerate().filter_map(|(class, list)| Some((list.front()?.since, class)));
            match ages.min() {
                Some((_, oldest)) => self.evict(oldest, evicted),
                None => break,
            }
        }
    }

    fn evict(&mut self, class: usize, evicted: &mut Vec<(usize, NonNull<u8>)>) {
        if let Some(cached) = self.lists[class].pop_front() {
            self.bytes -= class_size(class);
            evicted.push((class, cached.ptr));
        }
    }
}

fn default_limit() -> usize {
    system::available_memory().map_or(1 << 30, |bytes| bytes / 4)
}

/// The lock while a fork is under way: taken before it, given back in the parent and in the child, so that the
/// child never finds it held by a thread that it does not have.
struct HeldForFork(UnsafeCell<Option<MutexGuard<'static, Shared>>>);

// SAFETY: only the fork handlers touch it, and between the first and the last of them the lock itself is held.
unsafe impl Sync for HeldForFork {}

static HELD: HeldForFork = HeldForFork(UnsafeCell::new(None));

#[cfg(unix)]
fn register_fork_handlers() {
    extern "C" fn before() {
        let guard = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: the lock is held, so no other thread is between its handlers.
        unsafe { *HELD.0.get() = Some(guard) };
    }
    extern "C" fn after() {
        // SAFETY: this thread put the guard there in `before`; take it out before the lock opens.
        let guard = unsafe { (*HELD.0.get()).take() };
        drop(guard);
    }
    // SAFETY: the handlers are plain functions that live as long as the library. Without memory for them a fork
    // is merely less safe.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

#[cfg(not(unix))]
fn register_fork_handlers() {
    let _ = &HELD;
}
