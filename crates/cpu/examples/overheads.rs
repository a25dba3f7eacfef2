//! What the allocator and the thread pool cost: `cargo run --profile fast -p flambeau-cpu --example overheads`.

use std::hint::black_box;
use std::time::Instant;

use flambeau_cpu::{alloc, pool};

fn nanoseconds(name: &str, rounds: u32, mut f: impl FnMut()) {
    (0..rounds / 10).for_each(|_| f());
    let best = (0..5).map(|_| {
        let start = Instant::now();
        (0..rounds).for_each(|_| f());
        start.elapsed().as_nanos() as f64 / f64::from(rounds)
    });
    println!("{name:45} {:10.1} ns", best.fold(f64::INFINITY, f64::min));
}

fn pair(nbytes: usize) {
    let ptr = alloc::allocate(black_box(nbytes)).expect("memory");
    // SAFETY: allocated above.
    unsafe { alloc::deallocate(black_box(ptr), nbytes) };
}

fn main() {
    for size in [64, 4096, 64 << 10, 256 << 10, 64 << 20] {
        nanoseconds(&format!("allocate and free {size} bytes"), 100_000, || pair(size));
    }
    nanoseconds("200 blocks of 64 bytes, then free them", 2000, || {
        let blocks: [_; 200] = std::array::from_fn(|_| alloc::allocate(64).expect("memory"));
        // SAFETY: allocated above.
        blocks.into_iter().for_each(|ptr| unsafe { alloc::deallocate(ptr, 64) });
    });
    nanoseconds("fill a fresh 64 MiB block", 5, || {
        let ptr = alloc::allocate(64 << 20).expect("memory");
        // SAFETY: a block of that size, given back after use.
        unsafe {
            ptr.as_ptr().write_bytes(1, 64 << 20);
            alloc::deallocate(ptr, 64 << 20);
        }
        alloc::empty_cache();
    });
    nanoseconds("fill a cached 64 MiB block", 5, || {
        let ptr = alloc::allocate(64 << 20).expect("memory");
        // SAFETY: a block of that size, given back after use.
        unsafe {
            ptr.as_ptr().write_bytes(1, 64 << 20);
            alloc::deallocate(ptr, 64 << 20);
        }
    });
    println!("{} threads", pool::num_threads());
    nanoseconds("empty loop, workers awake", 100_000, || pool::parallel_for(2, 1, &|_| _ = black_box(0)));
    nanoseconds("loop on the caller", 100_000, || pool::parallel_for(2, 2, &|_| _ = black_box(0)));
    nanoseconds("empty loop after 1 ms of sleep, less the sleep", 200, || {
        std::thread::sleep(std::time::Duration::from_millis(1));
        pool::parallel_for(2, 1, &|_| _ = black_box(0));
    });
    println!("{:?}", alloc::stats());
}
