//! How many threads a parallel loop may use.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The most threads that a loop uses, the caller included.
pub const MAX_THREADS: usize = 256;

/// The number in force; 0 until it is first asked for.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How many threads a parallel loop may use, the caller included.
///
/// Unless [`set_num_threads`] was called, this is `FLAMBEAU_NUM_THREADS` or else `OMP_NUM_THREADS` of the
/// environment, or else the number of processors that the affinity mask and the quota of the control group
/// leave to the process.
#[inline]
pub fn num_threads() -> usize {
    match THREADS.load(Relaxed) {
        0 => first_use(),
        threads => threads,
    }
}

/// Sets how many threads a parallel loop may use, the caller included: between 1 and [`MAX_THREADS`], to which
/// other numbers are moved. Threads that exist already and are too many sleep on.
///
/// ```
/// use flambeau_cpu::pool;
/// pool::set_num_threads(1);
/// assert_eq!(pool::num_threads(), 1);
/// ```
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.clamp(1, MAX_THREADS), Relaxed);
}

#[cold]
fn first_use() -> usize {
    let variable = |name| std::env::var(name).ok();
    let threads = default_threads(variable("FLAMBEAU_NUM_THREADS"), variable("OMP_NUM_THREADS"));
    // A number that was set meanwhile stays.
    match THREADS.compare_exchange(0, threads, Relaxed, Relaxed) {
        Ok(_) => threads,
        Err(set) => set,
    }
}

fn default_threads(own: Option<String>, openmp: Option<String>) -> usize {
    // OpenMP takes a list, one number for each level of nesting.
    let parse = |text: &String| text.split(',').next()?.trim().parse::<usize>().ok().filter(|&count| count > 0);
    let wanted = own.as_ref().and_then(parse).or_else(|| openmp.as_ref().and_then(parse));
    let present = || std::thread::available_parallelism().map_or(1, |count| count.get());
    wanted.unwrap_or_else(present).clamp(1, MAX_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_goes_first() {
        let text = |text: &str| Some(text.to_string());
        let present = std::thread::available_parallelism().unwrap().get().min(MAX_THREADS);
        assert_eq!(default_threads(text("3"), text("5")), 3);
        assert_eq!(default_threads(None, text(" 5,2")), 5);
        assert_eq!(default_threads(text("many"), text("5")), 5);
        assert_eq!(default_threads(text("0"), None), present);
        assert_eq!(default_threads(text("100000"), None), MAX_THREADS);
    }
}
