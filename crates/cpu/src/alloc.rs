//! The caching allocator of CPU memory.
//!
//! A freed block is kept by its size class and given out again, so that a large result does not fault in its
//! pages anew and a small one costs a few nanoseconds. Small blocks (up to [`SMALL`] bytes) wait in the thread
//! that freed them, without a lock; they spill in batches to one shared cache, which holds the larger blocks
//! and is bounded (see [`set_cache_limit`]): what was unused for longest goes back to the system first.
//!
//! Blocks may be freed on another thread than the one that allocated them. A forked child goes on with the
//! caches of the thread that forked.

mod classes;
mod shared;
mod system;

use std::cell::UnsafeCell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use classes::{CLASSES, SMALL_CLASSES, class_of, class_size};
pub use system::available_memory;

/// Every block begins at a multiple of this many bytes: one cache line, one vector of AVX-512.
pub const ALIGNMENT: usize = 64;

/// The largest size in bytes that is cached by thread.
pub const SMALL: usize = 64 << 10;

/// From this size on, blocks are mapped from the system directly, aligned to it, as huge pages where there are.
pub const LARGE: usize = 2 << 20;

/// A request for memory that the machine cannot give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The size asked for, in bytes.
    pub requested: usize,
    /// The bytes that are given out by this allocator at the time.
    pub allocated: usize,
    /// The bytes that the system could still give, where it says so.
    pub available: Option<usize>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot allocate {} bytes ({}) of CPU memory: ", self.requested, Human(self.requested))?;
        if let Some(available) = self.available {
            write!(f, "{} are available, ", Human(available))?;
        }
        write!(f, "{} are in use by tensors", Human(self.allocated))
    }
}

impl std::error::Error for OutOfMemory {}

struct Human(usize);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match UNITS.iter().find(|(_, shift)| self.0 >> shift != 0) {
            Some((unit, shift)) => {
                write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

/// What the allocator has given out and kept; see [`stats`].
///
/// Sizes are in bytes and count whole size classes, up to an eighth more than was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Given out now.
    pub allocated: usize,
    /// Held from the system now: given out or cached.
    pub reserved: usize,
    /// The most that was given out at once, since the start or [`reset_peak`].
    pub peak_allocated: usize,
    /// How many blocks were given out. Other threads report theirs in steps, so this may lag by 64 a thread.
    pub allocations: u64,
    /// How many of them came from a cache, with the same lag.
    pub cache_hits: u64,
}

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static MISSES: AtomicU64 = AtomicU64::new(0);

/// Allocates `nbytes` bytes, aligned to [`ALIGNMENT`], with unspecified content.
///
/// No bytes need no memory: the answer is then an aligned address that must not be read.
///
/// # Errors
///
/// [`OutOfMemory`] where the address space, or the memory and swap that are free (within the limits of the
/// control group), cannot hold the block even after the caches were emptied. The system would promise such
/// memory and end the process when it is written.
///
/// ```
/// use flambeau_cpu::alloc;
/// let p = alloc::allocate(1000)?;
/// assert_eq!(p.as_ptr() as usize % alloc::ALIGNMENT, 0);
/// // SAFETY: allocated above with the same size, not used afterwards.
/// unsafe { alloc::deallocate(p, 1000) };
/// assert!(alloc::allocate(usize::MAX).is_err());
/// # Ok::<(), alloc::OutOfMemory>(())
/// ```
#[inline]
pub fn allocate(nbytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
    allocate_inner(nbytes).map(|block| block.ptr)
}

/// As [`allocate`], with every byte zero.
///
/// # Errors
///
/// As [`allocate`].
pub fn allocate_zeroed(nbytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
    let Block { ptr, zeroed } = allocate_inner(nbytes)?;
    if !zeroed && nbytes > 0 {
        let base = ptr.as_ptr() as usize;
        crate::pool::parallel_for(nbytes, 1 << 20, &|range| {
            // SAFETY: the ranges are disjoint parts of the block of `nbytes` bytes, which nobody else has yet.
            unsafe { std::ptr::write_bytes((base + range.start) as *mut u8, 0, range.len()) }
        });
    }
    Ok(ptr)
}

/// Gives a block back.
///
/// # Safety
///
/// `ptr` was given by [`allocate`] or [`allocate_zeroed`] for the same `nbytes`, was not given back since, and
/// is not used from now on.
#[inline]
pub unsafe fn deallocate(ptr: NonNull<u8>, nbytes: usize) {
    if nbytes == 0 {
        return;
    }
    let class = class_of(nbytes);
    ALLOCATED.fetch_sub(class_size(class), Relaxed);
    if class < SMALL_CLASSES {
        // SAFETY: the caller gives up the block, which has the size of its class.
        let kept = LOCAL.try_with(|local| unsafe { (*local.0.get()).put(class, ptr) });
        if kept.is_ok() {
            return;
        }
    }
    shared::put(class, &[ptr]);
}

/// Returns to the system all blocks that are cached and not in use, those of the calling thread included.
/// Other threads keep their small ones (at most 128 KiB or four blocks a size class).
pub fn empty_cache() {
    // SAFETY: the cell belongs to this thread, and `drain` calls nothing that would come back to it.
    let _ = LOCAL.try_with(|local| unsafe { (*local.0.get()).drain() });
    shared::release_all();
}

/// What is given out and kept at the moment.
pub fn stats() -> Stats {
    // SAFETY: the cell belongs to this thread, and `publish` calls nothing that would come back to it.
    let _ = LOCAL.try_with(|local| unsafe { (*local.0.get()).publish() });
    let allocations = ALLOCATIONS.load(Relaxed);
    Stats {
        allocated: ALLOCATED.load(Relaxed),
        reserved: system::reserved(),
        peak_allocated: PEAK.load(Relaxed),
        allocations,
        cache_hits: allocations.saturating_sub(MISSES.load(Relaxed)),
    }
}

/// Makes [`Stats::peak_allocated`] start again at what is given out now.
pub fn reset_peak() {
    PEAK.store(ALLOCATED.load(Relaxed), Relaxed);
}

/// Sets how many bytes the shared cache may hold, and shrinks it to that. At the start it is a quarter of the
/// memory that was available; one size class may take half of the limit. Zero keeps nothing shared.
pub fn set_cache_limit(nbytes: usize) {
    shared::set_limit(nbytes);
}

struct Block {
    ptr: NonNull<u8>,
    /// Whether all bytes are known to be zero.
    zeroed: bool,
}

#[inline]
fn allocate_inner(nbytes: usize) -> Result<Block, OutOfMemory> {
    if nbytes == 0 {
        return Ok(Block { ptr: NonNull::without_provenance(ALIGN), zeroed: true });
    }
    if nbytes <= SMALL {
        let class = class_of(nbytes);
        // SAFETY: the cell belongs to this thread, and `take` calls nothing that would come back to it.
        if let Ok(Some(ptr)) = LOCAL.try_with(|local| unsafe { (*local.0.get()).take(class) }) {
            account(class);
            return Ok(Block { ptr, zeroed: false });
        }
    }
    allocate_slow(nbytes)
}

const ALIGN: std::num::NonZeroUsize = std::num::NonZeroUsize::new(ALIGNMENT).unwrap();

#[inline]
fn account(class: usize) {
    let size = class_size(class);
    let now = ALLOCATED.fetch_add(size, Relaxed).wrapping_add(size);
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
}

#[cold]
#[inline(never)]
fn allocate_slow(nbytes: usize) -> Result<Block, OutOfMemory> {
    let fail = |available| OutOfMemory { requested: nbytes, allocated: ALLOCATED.load(Relaxed), available };
    if nbytes > isize::MAX as usize / 2 || class_of(nbytes) >= CLASSES {
        return Err(fail(available_memory()));
    }
    let class = class_of(nbytes);
    // Small allocations are counted by their thread, in `take` and `refill`.
    // SAFETY: the cell belongs to this thread, and `refill` calls nothing that would come back to it.
    let refilled = LOCAL.try_with(|local| unsafe { (class < SMALL_CLASSES).then(|| (*local.0.get()).refill(class)) });
    let cached = refilled.ok().flatten().unwrap_or_else(|| {
        ALLOCATIONS.fetch_add(1, Relaxed);
        shared::take(class)
    });
    if let Some(ptr) = cached {
        account(class);
        return Ok(Block { ptr, zeroed: false });
    }
    let size = class_size(class);
    let ptr = system::map(size).or_else(|_| {
        empty_cache();
        system::map(size)
    });
    match ptr {
        Ok(ptr) => {
            MISSES.fetch_add(1, Relaxed);
            account(class);
            Ok(Block { ptr, zeroed: size >= LARGE && cfg!(target_os = "linux") })
        }
        Err(available) => Err(fail(available)),
    }
}

/// The blocks that one thread keeps for itself: for each small class a list linked through the blocks.
struct Local {
    heads: [Option<NonNull<u8>>; SMALL_CLASSES],
    counts: [u16; SMALL_CLASSES],
    /// Allocations not yet added to [`ALLOCATIONS`].
    unpublished: u32,
}

struct LocalCell(UnsafeCell<Local>);

thread_local! {
    static LOCAL: LocalCell = const {
        LocalCell(UnsafeCell::new(Local {
            heads: [None; SMALL_CLASSES],
            counts: [0; SMALL_CLASSES],
            unpublished: 0,
        }))
    };
}

impl Drop for LocalCell {
    fn drop(&mut self) {
        self.0.get_mut().drain();
    }
}

/// How many blocks of a class a thread keeps: 128 KiB, but at least 4 and at most 128 blocks.
#[inline]
fn local_bound(class: usize) -> usize {
    ((128 << 10) / class_size(class)).clamp(4, 128)
}

impl Local {
    #[inline]
    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let head = self.heads[class]?;
        // SAFETY: a block in the list is free, at least a pointer long and aligned, and holds what `put` wrote.
        self.heads[class] = unsafe { head.cast::<Option<NonNull<u8>>>().read() };
        self.counts[class] -= 1;
        self.count();
        Some(head)
    }

    #[inline]
    fn count(&mut self) {
        self.unpublished += 1;
        if self.unpublished == 64 {
            self.publish();
        }
    }

    fn publish(&mut self) {
        ALLOCATIONS.fetch_add(u64::from(self.unpublished), Relaxed);
        self.unpublished = 0;
    }

    /// Keeps a block.
    ///
    /// # Safety
    ///
    /// `ptr` is a free block of this class that nobody else holds.
    #[inline]
    unsafe fn put(&mut self, class: usize, ptr: NonNull<u8>) {
        // SAFETY: the block is ours, at least a pointer long and aligned.
        unsafe { ptr.cast::<Option<NonNull<u8>>>().write(self.heads[class]) };
        self.heads[class] = Some(ptr);
        self.counts[class] += 1;
        if usize::from(self.counts[class]) > local_bound(class) {
            self.spill(class, local_bound(class) / 2);
        }
    }

    /// Moves blocks of the class to the shared cache until `keep` are left.
    #[cold]
    fn spill(&mut self, class: usize, keep: usize) {
        let mut batch = [NonNull::dangling(); 64];
        while usize::from(self.counts[class]) > keep {
            let mut filled = 0;
            while filled < batch.len() && usize::from(self.counts[class]) > keep {
                let Some(head) = self.heads[class] else { break };
                // SAFETY: as in `take`.
                self.heads[class] = unsafe { head.cast::<Option<NonNull<u8>>>().read() };
                self.counts[class] -= 1;
                batch[filled] = head;
                filled += 1;
            }
            shared::put(class, &batch[..filled]);
        }
    }

    /// Gives out a block of the class from the shared cache and takes over some more of them.
    fn refill(&mut self, class: usize) -> Option<NonNull<u8>> {
        self.count();
        let mut batch = [NonNull::dangling(); 64];
        let wanted = (local_bound(class) / 2).clamp(1, batch.len());
        let got = shared::take_many(class, &mut batch[..wanted]);
        for &ptr in &batch[1..got.max(1)] {
            // SAFETY: the shared cache handed the block over; there are fewer than the bound of them.
            unsafe { self.put(class, ptr) };
        }
        (got > 0).then(|| batch[0])
    }

    fn drain(&mut self) {
        self.publish();
        for class in 0..SMALL_CLASSES {
            self.spill(class, 0);
        }
    }
}
