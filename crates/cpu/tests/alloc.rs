//! The caching allocator, seen from outside.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use flambeau_cpu::alloc::{self, ALIGNMENT, LARGE, SMALL, Stats};

/// The numbers are those of the process: one test at a time, which leaves nothing in the caches of its thread.
struct Alone {
    _turn: MutexGuard<'static, ()>,
}

fn alone() -> Alone {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    alloc::empty_cache();
    alloc::set_cache_limit(1 << 30);
    Alone { _turn: turn }
}

impl Drop for Alone {
    fn drop(&mut self) {
        alloc::empty_cache();
    }
}

fn allocate(nbytes: usize) -> NonNull<u8> {
    alloc::allocate(nbytes).unwrap()
}

fn free(ptr: NonNull<u8>, nbytes: usize) {
    // SAFETY: each test gives back what it allocated, once.
    unsafe { alloc::deallocate(ptr, nbytes) }
}

fn fill(ptr: NonNull<u8>, nbytes: usize, value: u8) {
    // SAFETY: a block of that size.
    unsafe { ptr.as_ptr().write_bytes(value, nbytes) }
}

fn bytes<'a>(ptr: NonNull<u8>, nbytes: usize) -> &'a [u8] {
    // SAFETY: a block of that size that was written before.
    unsafe { std::slice::from_raw_parts(ptr.as_ptr(), nbytes) }
}

#[test]
fn blocks_are_aligned_writable_and_apart() {
    let _alone = alone();
    let sizes = [1, 63, 64, 65, 1000, 1024, 1025, 4096, SMALL, SMALL + 1, 1 << 20, LARGE - 1, LARGE, LARGE + 1, 9 << 20];
    let blocks: Vec<_> = sizes.iter().flat_map(|&size| (0..3).map(move |_| (allocate(size), size))).collect();
    for (index, &(ptr, size)) in blocks.iter().enumerate() {
        assert_eq!(ptr.as_ptr() as usize % if size < LARGE { ALIGNMENT } else { LARGE }, 0);
        fill(ptr, size, index as u8);
    }
    for (index, &(ptr, size)) in blocks.iter().enumerate() {
        assert!(bytes(ptr, size).iter().all(|&byte| byte == index as u8), "{size}");
        free(ptr, size);
    }
    assert_eq!(alloc::stats().allocated, 0);
}

#[test]
fn freed_blocks_come_back() {
    let _alone = alone();
    for size in [64, 5000, SMALL, 300_000, 64 << 20] {
        let first = allocate(size);
        free(first, size);
        let before = alloc::stats();
        let second = allocate(size);
        let after = alloc::stats();
        assert_eq!(first, second, "{size}");
        assert_eq!((after.allocations, after.cache_hits), (before.allocations + 1, before.cache_hits + 1));
        assert_eq!(after.reserved, before.reserved);
        free(second, size);
    }
}

#[test]
fn zeroed_blocks_are_zero_when_they_were_used_before() {
    let _alone = alone();
    for size in [1, 64, 100_000, 3 << 20, 5_000_001] {
        let used = allocate(size);
        fill(used, size, 0xff);
        free(used, size);
        for _ in 0..2 {
            let ptr = alloc::allocate_zeroed(size).unwrap();
            assert!(bytes(ptr, size).iter().all(|&byte| byte == 0), "{size}");
            fill(ptr, size, 1);
            free(ptr, size);
        }
    }
}

#[test]
fn no_bytes_are_no_block() {
    let _alone = alone();
    let before = alloc::stats();
    let ptr = allocate(0);
    assert_eq!(ptr.as_ptr() as usize % ALIGNMENT, 0);
    free(ptr, 0);
    free(alloc::allocate_zeroed(0).unwrap(), 0);
    assert_eq!(alloc::stats(), before);
}

#[test]
fn impossible_sizes_are_errors_that_leave_the_allocator_usable() {
    let _alone = alone();
    for size in [usize::MAX, isize::MAX as usize, 1 << 50, 1 << 46, 1 << 42] {
        let error = alloc::allocate(size).unwrap_err();
        assert_eq!(error.requested, size);
        assert!(error.to_string().contains(&format!("{size} bytes")), "{error}");
        assert_eq!(alloc::allocate_zeroed(size).unwrap_err().requested, size);
    }
    // Each half of what is available could be had; both and a bit more could not be written.
    let available = alloc::available_memory().unwrap();
    let half = available / 2;
    let mut held = Vec::new();
    let refused = (0..4).any(|_| alloc::allocate(half).map(|ptr| held.push(ptr)).is_err());
    assert!(refused && !held.is_empty());
    held.into_iter().for_each(|ptr| free(ptr, half));
    alloc::empty_cache();
    let ptr = allocate(100);
    free(ptr, 100);
}

#[test]
fn statistics_count_bytes() {
    let _alone = alone();
    let start = alloc::stats();
    alloc::reset_peak();
    assert_eq!((start.allocated, start.reserved), (0, 0));
    let (a, b) = (allocate(4 << 20), allocate(100));
    let both = alloc::stats();
    assert_eq!((both.allocated, both.reserved), ((4 << 20) + 128, (4 << 20) + 128));
    free(a, 4 << 20);
    free(b, 100);
    let Stats { allocated, reserved, peak_allocated, .. } = alloc::stats();
    assert_eq!((allocated, reserved, peak_allocated), (0, both.reserved, both.allocated));
    alloc::empty_cache();
    assert_eq!(alloc::stats().reserved, 0);
    alloc::reset_peak();
    assert_eq!(alloc::stats().peak_allocated, 0);
}

#[test]
fn the_cache_stays_within_its_limit() {
    let _alone = alone();
    alloc::set_cache_limit(64 << 20);
    let blocks: Vec<_> = (0..20).map(|_| allocate(8 << 20)).collect();
    blocks.into_iter().for_each(|ptr| free(ptr, 8 << 20));
    assert_eq!(alloc::stats().reserved, 32 << 20, "one class takes half");
    let sizes: Vec<usize> = (0..8).map(|step| (16 + 2 * step) << 20).collect();
    let blocks: Vec<_> = sizes.iter().map(|&size| (allocate(size), size)).collect();
    blocks.into_iter().for_each(|(ptr, size)| free(ptr, size));
    let reserved = alloc::stats().reserved;
    assert!((30 << 20..=64 << 20).contains(&reserved), "{reserved}");
    // The last block fits, so it is what stays.
    let hits = alloc::stats().cache_hits;
    free(allocate(30 << 20), 30 << 20);
    assert_eq!(alloc::stats().cache_hits, hits + 1);
    alloc::set_cache_limit(0);
    assert_eq!(alloc::stats().reserved, 0);
}

#[test]
fn blocks_may_be_freed_by_other_threads_and_outlive_theirs() {
    let _alone = alone();
    let sizes = [8, 64, 640, 6400, 64000, 640_000];
    let addresses: Vec<(usize, usize)> = std::thread::spawn(move || {
        (0..2000)
            .map(|index| {
                let size = sizes[index % sizes.len()];
                let ptr = allocate(size);
                fill(ptr, size, index as u8);
                (ptr.as_ptr() as usize, size)
            })
            .collect()
    })
    .join()
    .unwrap();
    let halves: Vec<_> = addresses.chunks(1000).map(<[_]>::to_vec).collect();
    let threads = halves.into_iter().enumerate().map(|(half, blocks)| {
        std::thread::spawn(move || {
            for (index, (address, size)) in blocks.into_iter().enumerate() {
                let ptr = NonNull::new(address as *mut u8).unwrap();
                let expected = (half * 1000 + index) as u8;
                assert!(bytes(ptr, size).iter().all(|&byte| byte == expected));
                free(ptr, size);
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    // A scope would not wait until the threads have given back their caches.
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let after = alloc::stats();
    assert_eq!(after.allocated, 0);
    // Those threads are gone: what they kept came to the shared cache and is used here.
    let blocks: Vec<_> = (0..300).map(|_| allocate(64)).collect();
    assert_eq!(alloc::stats().reserved, after.reserved);
    blocks.into_iter().for_each(|ptr| free(ptr, 64));
    alloc::empty_cache();
    assert_eq!(alloc::stats().reserved, 0);
}

#[cfg(unix)]
#[test]
fn a_forked_child_allocates() {
    let _alone = alone();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A neighbour that holds the shared lock as often as it can.
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                free(allocate(100_000), 100_000);
            }
        });
        for _ in 0..50 {
            // SAFETY: the child only allocates and ends without running any handler.
            let child = unsafe { libc::fork() };
            if child == 0 {
                for size in [64, 100_000, 4 << 20] {
                    let ptr = allocate(size);
                    fill(ptr, size, 1);
                    free(ptr, size);
                }
                alloc::empty_cache();
                // SAFETY: ends the child.
                unsafe { libc::_exit(7) }
            }
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: waits for the child made above.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
