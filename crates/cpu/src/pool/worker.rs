//! The workers, and how a loop reaches them.
//!
//! NOTE [ Entering a job ]: `Pool::state` is one word: the number of the job, whether it is open, how many
//! threads may work on it, and how many workers do. A worker enters an open job by counting itself in with a
//! compare-and-swap; the caller closes the job when no chunk is left to claim, and returns once the count is
//! zero. So whoever entered may read the job and call its function, and who comes too late does not touch it.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Inside;
use super::job::{Job, Padded};
use super::settings::MAX_THREADS;

/// How long a worker looks for the next job before it parks: longer than the pause between two operations of
/// a program that keeps the pool busy, short beside a time slice of the scheduler.
const SPIN: Duration = Duration::from_micros(50);

/// How long the caller spins for the last workers before it sleeps as well.
const WAIT_SPIN: Duration = Duration::from_micros(100);

// The parts of the state, see NOTE [ Entering a job ].
const RUNNING: u64 = 0xfff;
const THREADS_SHIFT: u32 = 12;
const THREADS: u64 = 0xfff << THREADS_SHIFT;
const OPEN: u64 = 1 << 24;
/// The caller sleeps until the last worker leaves.
const WAITING: u64 = 1 << 25;
const NUMBER_SHIFT: u32 = 26;

pub(super) struct Pool {
    state: AtomicU64,
    /// Written by the owner of `submit` while the job is closed and no worker is in it.
    job: UnsafeCell<Job>,
    next: Box<[Padded]>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Held during a loop; its value is the number of workers that were started.
    submit: Mutex<usize>,
    sleepers: AtomicUsize,
    /// Guards going to sleep, of workers (`work_came`) and of the caller (`all_left`).
    sleep: Mutex<()>,
    work_came: Condvar,
    all_left: Condvar,
}

// SAFETY: `job` is guarded as NOTE [ Entering a job ] describes, and the function in it is `Sync`.
unsafe impl Sync for Pool {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Panics of the loop's function are caught before they reach a lock.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(Job::none()),
            next: (0..MAX_THREADS).map(|_| Padded(AtomicUsize::new(0))).collect(),
            panic: Mutex::new(None),
            submit: Mutex::new(0),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            work_came: Condvar::new(),
            all_left: Condvar::new(),
        }
    }

    /// Runs a loop where `n > grain > 0` and `threads > 1`.
    pub(super) fn run(&'static self, n: usize, grain: usize, threads: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        let Ok(mut workers) = self.submit.try_lock() else {
            // Another thread has the pool: share the machine by staying on this one.
            let _inside = Inside::enter();
            return f(0..n);
        };
        let job = Job::new(n, grain, threads, f);
        while *workers + 1 < job.threads && self.spawn(*workers + 1) {
            *workers += 1;
        }
        job.prepare(&self.next);
        // SAFETY: `submit` is held, and the last loop ended with the job closed and nobody in it.
        unsafe { *self.job.get() = job };
        self.open(job.threads);
        self.wake(job.threads - 1, *workers);
        self.do_part(&job, 0);
        self.close_and_wait();
        drop(workers);
        if let Some(panic) = lock(&self.panic).take() {
            resume_unwind(panic);
        }
    }

    fn open(&self, threads: usize) {
        let number = (self.state.load(Relaxed) >> NUMBER_SHIFT).wrapping_add(1) << NUMBER_SHIFT;
        // Sequentially consistent with `sleepers`: either the sleeper sees the job or `wake` sees the sleeper.
        self.state.store(number | OPEN | ((threads as u64) << THREADS_SHIFT), SeqCst);
    }

    fn wake(&self, wanted: usize, workers: usize) {
        if self.sleepers.load(SeqCst) == 0 {
            return;
        }
        drop(lock(&self.sleep));
        // One wake-up might reach a worker that is not allowed in.
        if wanted == 1 && workers == 1 { self.work_came.notify_one() } else { self.work_came.notify_all() }
    }

    fn do_part(&self, job: &Job, thread: usize) {
        let _inside = Inside::enter();
        // SAFETY: the caller has not returned, since this is it or it waits for this worker to leave.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { job.work(thread, &self.next) }));
        if let Err(panic) = result {
            job.cancel(&self.next);
            lock(&self.panic).get_or_insert(panic);
        }
    }

    fn close_and_wait(&self) {
        if self.state.fetch_and(!OPEN, Acquire) & RUNNING == 0 {
            return;
        }
        let mut spin = Spin::new(WAIT_SPIN);
        while self.state.load(Acquire) & RUNNING != 0 {
            if !spin.go_on() {
                return self.sleep_until_all_left();
            }
        }
    }

    #[cold]
    fn sleep_until_all_left(&self) {
        let mut guard = lock(&self.sleep);
        self.state.fetch_or(WAITING, Relaxed);
        while self.state.load(Acquire) & RUNNING != 0 {
            guard = self.all_left.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Starts the worker of this index (the caller of a loop is thread 0), or says that the system refused.
    #[cold]
    fn spawn(&'static self, thread: usize) -> bool {
        let _masked = signals::Masked::all();
        let last = self.state.load(Relaxed) >> NUMBER_SHIFT;
        std::thread::Builder::new().name(format!("flambeau-{thread}")).spawn(move || self.serve(thread, last)).is_ok()
    }

    /// The life of a worker; `last` is the number of the last job that it need not look at.
    fn serve(&self, thread: usize, mut last: u64) {
        loop {
            let state = self.await_job(thread, last);
            last = state >> NUMBER_SHIFT;
            if !self.enter(state) {
                continue;
            }
            // SAFETY: entered, so the caller keeps the job as it is.
            let job = unsafe { *self.job.get() };
            self.do_part(&job, thread);
            let left = self.state.fetch_sub(1, Release);
            if left & RUNNING == 1 && left & WAITING != 0 {
                drop(lock(&self.sleep));
                self.all_left.notify_one();
            }
        }
    }

    /// Counts this worker in, unless the job of `state` was closed meanwhile.
    fn enter(&self, mut state: u64) -> bool {
        let number = state >> NUMBER_SHIFT;
        while state & OPEN != 0 && state >> NUMBER_SHIFT == number {
            match self.state.compare_exchange_weak(state, state + 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Waits for an open job after `last` that has room for this thread; spins, then sleeps.
    fn await_job(&self, thread: usize, last: u64) -> u64 {
        let fits = |state: u64| {
            let threads = ((state & THREADS) >> THREADS_SHIFT) as usize;
            state & OPEN != 0 && state >> NUMBER_SHIFT != last && thread < threads
        };
        let mut spin = Spin::new(SPIN);
        while spin.go_on() {
            let state = self.state.load(Relaxed);
            if fits(state) {
                return state;
            }
        }
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, SeqCst);
        let state = loop {
            let state = self.state.load(SeqCst);
            if fits(state) {
                break state;
            }
            guard = self.work_came.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner());
        };
        self.sleepers.fetch_sub(1, SeqCst);
        state
    }
}

/// A limit on busy waiting.
struct Spin {
    limit: Duration,
    start: Option<Instant>,
    turns: u32,
}

impl Spin {
    fn new(limit: Duration) -> Spin {
        Spin { limit, start: None, turns: 0 }
    }

    /// Pauses for an instant; false when the time is over.
    #[inline]
    fn go_on(&mut self) -> bool {
        std::hint::spin_loop();
        self.turns += 1;
        if !self.turns.is_multiple_of(32) {
            return true;
        }
        self.start.get_or_insert_with(Instant::now).elapsed() < self.limit
    }
}

#[cfg(unix)]
mod signals {
    //! Workers take no signals: handlers run on the threads of the program.

    pub(super) struct Masked(libc::sigset_t);

    impl Masked {
        pub(super) fn all() -> Masked {
            // SAFETY: plain data, filled by the calls; the old mask is put back on drop.
            unsafe {
                let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
                libc::sigfillset(&mut all);
                libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
                Masked(old)
            }
        }
    }

    impl Drop for Masked {
        fn drop(&mut self) {
            // SAFETY: a mask that this thread had before.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }
}

#[cfg(not(unix))]
mod signals {
    pub(super) struct Masked;

    impl Masked {
        pub(super) fn all() -> Masked {
            Masked
        }
    }
}
