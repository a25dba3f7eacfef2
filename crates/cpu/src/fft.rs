//! Fourier transforms, by the crates `rustfft` and `realfft`.

use crate::nn::real::Shared;
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::transforms::{Fft, FftKind};
use num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::{FftDirection, FftNum, FftPlanner};
use std::sync::{Arc, Mutex, OnceLock};

/// Lines of neighbouring columns that are transformed together.
const COLUMNS: usize = 16;

/// The plans of an element type, kept for the process.
pub trait Planned: FftNum {
    /// Plans of complex transforms.
    fn complex(n: usize, forward: bool) -> Arc<dyn rustfft::Fft<Self>>;
    /// Plans of transforms from real numbers and to them.
    fn real() -> &'static Mutex<RealFftPlanner<Self>>;
    /// The nearest value.
    fn of(x: f64) -> Self;
}

macro_rules! planned {
    ($($t:ty),*) => {$(
        impl Planned for $t {
            fn complex(n: usize, forward: bool) -> Arc<dyn rustfft::Fft<$t>> {
                static PLANNER: OnceLock<Mutex<FftPlanner<$t>>> = OnceLock::new();
                let planner = PLANNER.get_or_init(|| Mutex::new(FftPlanner::new()));
                let direction = if forward { FftDirection::Forward } else { FftDirection::Inverse };
                planner.lock().unwrap_or_else(|e| e.into_inner()).plan_fft(n, direction)
            }
            fn real() -> &'static Mutex<RealFftPlanner<$t>> {
                static PLANNER: OnceLock<Mutex<RealFftPlanner<$t>>> = OnceLock::new();
                PLANNER.get_or_init(|| Mutex::new(RealFftPlanner::new()))
            }
            fn of(x: f64) -> $t {
                x as $t
            }
        }
    )*};
}
planned!(f32, f64);

/// See [`Fft`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn fft(call: &Fft) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::C64 => run::<f32>(call),
            DType::C128 => run::<f64>(call),
            other => return Err(lacking("fft", other, DeviceKind::Cpu)),
        }
    }
    Ok(())
}

unsafe fn run<T: Planned>(call: &Fft) {
    // SAFETY: the caller's.
    unsafe {
        match call.kind {
            FftKind::Complex => complex::<T>(call),
            FftKind::FromReal => from_real::<T>(call),
            FftKind::ToReal => to_real::<T>(call),
        }
    }
}

/// Blocks of lines: ranges of columns of each outer index.
fn each_block(call: &Fft, f: &(dyn Fn(usize, usize, usize) + Sync)) {
    let inner = call.inner;
    let width = COLUMNS.min(inner);
    let blocks = inner.div_ceil(width.max(1));
    let grain = (16 * 1024 / (call.n * width).max(1)).max(1);
    parallel_for(call.outer * blocks, grain, &|range| {
        for block in range {
            let first = block % blocks * width;
            f(block / blocks, first, width.min(inner - first));
        }
    });
}

/// Element `i` of line `column` at outer index `o`, for lines of `n` elements.
#[inline]
fn at(o: usize, n: usize, inner: usize, i: usize, column: usize) -> usize {
    (o * n + i) * inner + column
}

unsafe fn complex<T: Planned>(call: &Fft) {
    let plan = T::complex(call.n, call.forward);
    let (n, inner, scale) = (call.n, call.inner, T::of(call.scale));
    let shared = Shared(*call);
    each_block(call, &|o, first, width| {
        let call = &{ &shared }.0;
        let (input, out) = (call.input.cast::<Complex<T>>(), call.out.cast::<Complex<T>>());
        let mut lines = vec![Complex::new(T::zero(), T::zero()); n * width];
        // SAFETY: indices lie inside the operands, and no two blocks share any.
        unsafe {
            for i in 0..n {
                for c in 0..width {
                    *lines.get_unchecked_mut(c * n + i) = *input.add(at(o, n, inner, i, first + c));
                }
            }
            let mut scratch = vec![Complex::new(T::zero(), T::zero()); plan.get_inplace_scratch_len()];
            plan.process_with_scratch(&mut lines, &mut scratch);
            for i in 0..n {
                for c in 0..width {
                    let z = *lines.get_unchecked(c * n + i);
                    *out.add(at(o, n, inner, i, first + c)) = Complex::new(z.re * scale, z.im * scale);
                }
            }
        }
    });
}

unsafe fn from_real<T: Planned>(call: &Fft) {
    let plan: Arc<dyn RealToComplex<T>> = T::real().lock().unwrap_or_else(|e| e.into_inner()).plan_fft_forward(call.n);
    let (n, inner, scale, half) = (call.n, call.inner, T::of(call.scale), call.n / 2 + 1);
    let shared = Shared(*call);
    each_block(call, &|o, first, width| {
        let call = &{ &shared }.0;
        let (input, out) = (call.input.cast::<T>(), call.out.cast::<Complex<T>>());
        let mut line = plan.make_input_vec();
        let mut spectrum = plan.make_output_vec();
        let mut scratch = plan.make_scratch_vec();
        for c in first..first + width {
            // SAFETY: indices lie inside the operands, and no two lines share any.
            unsafe {
                for (i, x) in line.iter_mut().enumerate() {
                    *x = *input.add(at(o, n, inner, i, c));
                }
                // Lengths are the plan's own.
                let done = plan.process_with_scratch(&mut line, &mut spectrum, &mut scratch);
                debug_assert!(done.is_ok());
                for (i, z) in spectrum.iter().enumerate() {
                    *out.add(at(o, half, inner, i, c)) = Complex::new(z.re * scale, z.im * scale);
                }
            }
        }
    });
}

unsafe fn to_real<T: Planned>(call: &Fft) {
    let plan = T::real().lock().unwrap_or_else(|e| e.into_inner()).plan_fft_inverse(call.n);
    let (n, inner, scale, half) = (call.n, call.inner, T::of(call.scale), call.n / 2 + 1);
    let shared = Shared(*call);
    each_block(call, &|o, first, width| {
        let call = &{ &shared }.0;
        let (input, out) = (call.input.cast::<Complex<T>>(), call.out.cast::<T>());
        let mut spectrum = plan.make_input_vec();
        let mut line = plan.make_output_vec();
        let mut scratch = plan.make_scratch_vec();
        for c in first..first + width {
            // SAFETY: indices lie inside the operands, and no two lines share any.
            unsafe {
                for (i, z) in spectrum.iter_mut().enumerate() {
                    *z = *input.add(at(o, half, inner, i, c));
                }
                // A real signal's are real there.
                spectrum[0].im = T::zero();
                if n % 2 == 0 {
                    spectrum[half - 1].im = T::zero();
                }
                let done = plan.process_with_scratch(&mut spectrum, &mut line, &mut scratch);
                debug_assert!(done.is_ok());
                for (i, x) in line.iter().enumerate() {
                    *out.add(at(o, n, inner, i, c)) = *x * scale;
                }
            }
        }
    });
}
