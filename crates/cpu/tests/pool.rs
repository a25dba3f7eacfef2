//! The thread pool, seen from outside.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use flambeau_cpu::pool::{self, parallel_for};

/// The number of threads is that of the process: one test at a time.
fn with_threads(threads: usize) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    pool::set_num_threads(threads);
    guard
}

fn assert_covers_once(n: usize, grain: usize) {
    let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
    parallel_for(n, grain, &|range| {
        assert!(!range.is_empty() && range.start.is_multiple_of(grain.max(1)));
        assert!(range.len() >= grain || range.end == n);
        counts[range].iter().for_each(|count| _ = count.fetch_add(1, Relaxed));
    });
    assert!(counts.iter().all(|count| count.load(Relaxed) == 1), "{n} by {grain}");
}

#[test]
fn every_index_is_visited_once() {
    for threads in [1, 2, 3, 8, 4] {
        let _turn = with_threads(threads);
        for n in [0, 1, 2, 3, 7, 8, 9, 100, 1000, 12345] {
            for grain in [0, 1, 2, 7, 64, 1000, usize::MAX] {
                assert_covers_once(n, grain);
            }
        }
        (0..2000).for_each(|_| assert_covers_once(17, 1));
    }
}

#[test]
fn several_threads_take_part() {
    let _turn = with_threads(3);
    // Nobody goes on before three threads have met, which takes three.
    let (arrived, begin) = (AtomicUsize::new(0), Instant::now());
    parallel_for(3, 1, &|_| {
        arrived.fetch_add(1, Relaxed);
        while arrived.load(Relaxed) < 3 {
            assert!(begin.elapsed() < Duration::from_secs(30), "waited alone");
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    assert_eq!(arrived.into_inner(), 3);
}

#[test]
fn small_and_nested_loops_stay_on_their_thread() {
    let _turn = with_threads(4);
    let here = std::thread::current().id();
    parallel_for(100, 100, &|range| {
        assert_eq!((range, std::thread::current().id()), (0..100, here));
    });
    assert!(!pool::in_parallel());
    parallel_for(64, 1, &|_| {
        assert!(pool::in_parallel());
        let outer = std::thread::current().id();
        parallel_for(1000, 1, &|range| assert_eq!((range, std::thread::current().id()), (0..1000, outer)));
    });
    assert!(!pool::in_parallel());
}

#[test]
fn callers_on_several_threads_do_not_wait_for_each_other() {
    let _turn = with_threads(2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| assert_covers_once(100, 3)));
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    let _turn = with_threads(4);
    for at in [0, 50, 99] {
        let result = std::panic::catch_unwind(|| {
            parallel_for(100, 1, &|range| {
                std::thread::sleep(Duration::from_micros(100));
                assert!(!range.contains(&at), "bad index {at}");
            })
        });
        let message = *result.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("bad index {at}"));
        assert!(!pool::in_parallel());
        assert_covers_once(1000, 1);
    }
}

#[test]
fn workers_wake_up_from_their_sleep() {
    let _turn = with_threads(2);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(2));
        assert_covers_once(1000, 1);
    }
}

#[test]
fn the_caller_does_not_wait_for_workers_that_come_too_late() {
    let _turn = with_threads(2);
    assert_covers_once(100, 1);
    let time = |_| {
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        parallel_for(2, 1, &|_| {});
        start.elapsed()
    };
    let best = (0..50).map(time).min().unwrap();
    assert!(best < Duration::from_millis(1), "{best:?}");
}

#[cfg(unix)]
#[test]
fn a_forked_child_has_a_pool_of_its_own() {
    let _turn = with_threads(3);
    assert_covers_once(1000, 1);
    for _ in 0..20 {
        // SAFETY: the child runs loops and ends without running any handler.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let done = std::panic::catch_unwind(|| (0..10).for_each(|_| assert_covers_once(1000, 1)));
            // SAFETY: ends the child.
            unsafe { libc::_exit(if done.is_ok() { 7 } else { 1 }) }
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status}");
        assert_covers_once(100, 1);
    }
}
