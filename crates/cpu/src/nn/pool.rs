//! Largest elements of windows, and the way back for gradients.
//!
//! Where the last dimension is the innermost, the windows of neighbouring results are looked at side by side; with
//! channels innermost, those of neighbouring channels. Rows of the result are shared among the threads.

use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Error, Result, bf16, f16};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::spatial::{MaxPool, MaxPoolBackward};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A number of an element of the input, as wide as what is compared.
trait Place: Copy + std::ops::Add<Output = Self> {
    fn of(at: usize) -> Self;
    fn get(self) -> i64;
}

impl Place for u32 {
    #[inline(always)]
    fn of(at: usize) -> u32 {
        at as u32
    }
    #[inline(always)]
    fn get(self) -> i64 {
        self as i64
    }
}

impl Place for u64 {
    #[inline(always)]
    fn of(at: usize) -> u64 {
        at as u64
    }
    #[inline(always)]
    fn get(self) -> i64 {
        self as i64
    }
}

/// An element that is compared.
trait Element: Copy + Send + Sync + 'static {
    type Wide: Copy + PartialOrd;
    type Place: Place;
    const LOWEST: Self::Wide;
    fn widen(self) -> Self::Wide;
    fn narrow(x: Self::Wide) -> Self;
}

macro_rules! element {
    ($t:ty, $wide:ty, $place:ty, $lowest:expr) => {
        impl Element for $t {
            type Wide = $wide;
            type Place = $place;
            const LOWEST: $wide = $lowest;
            #[inline(always)]
            fn widen(self) -> $wide {
                Real::widen(self)
            }
            #[inline(always)]
            fn narrow(x: $wide) -> $t {
                <$t as Real>::narrow(x)
            }
        }
    };
}
element!(f32, f32, u32, f32::NEG_INFINITY);
element!(f64, f64, u64, f64::NEG_INFINITY);
element!(f16, f32, u32, f32::NEG_INFINITY);
element!(bf16, f32, u32, f32::NEG_INFINITY);

impl Element for i64 {
    type Wide = i64;
    type Place = u64;
    const LOWEST: i64 = i64::MIN;
    #[inline(always)]
    fn widen(self) -> i64 {
        self
    }
    #[inline(always)]
    fn narrow(x: i64) -> i64 {
        x
    }
}

/// See [`MaxPool`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &MaxPool) -> Result<()> {
    if call.sizes.iter().product::<usize>() > u32::MAX as usize {
        return Err(Error::not_implemented("max_pool: more than 4294967295 elements in the pooled dimensions"));
    }
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::F32 => rows::<f32>(call),
            DType::F64 => rows::<f64>(call),
            DType::F16 => rows::<f16>(call),
            DType::BF16 => rows::<bf16>(call),
            DType::I64 => rows::<i64>(call),
            other => return Err(lacking("max_pool", other, DeviceKind::Cpu)),
        }
    }
    Ok(())
}

unsafe fn rows<T: Element>(call: &MaxPool) {
    let [d, h, w] = call.results;
    let widest = |axis: usize| call.windows[axis].iter().map(|w| w.1 as usize).max().unwrap_or(1);
    let work = w * call.inner * widest(0) * widest(1) * widest(2);
    let shared = Shared(*call);
    parallel_for(call.outer * d * h, grain(work, 2), &|range| {
        let call = { &shared }.0;
        // SAFETY: each range has rows of its own; the rest is the caller's.
        unsafe {
            match call.places.is_null() {
                true => run(&Part::<T, false> { call, range, dtype: std::marker::PhantomData }),
                false => run(&Part::<T, true> { call, range, dtype: std::marker::PhantomData }),
            }
        }
    });
}

/// Rows of the result, with their places where `PLACES`.
struct Part<'a, T, const PLACES: bool> {
    call: MaxPool<'a>,
    range: Range<usize>,
    dtype: std::marker::PhantomData<T>,
}

/// A row of the input, and the number of its first element in the spatial dimensions.
type Row<T> = (*const T, usize);

impl<T: Element, const PLACES: bool> Kernel for Part<'_, T, PLACES> {
    #[inline(always)]
    unsafe fn run(&self) {
        let call = &self.call;
        let [d, h, w] = call.results;
        let mut rows: Vec<Row<T>> = Vec::new();
        for row in self.range.clone() {
            let (outer, i, j) = (row / h / d, row / h % d, row % h);
            let own = |axis: usize| if call.apart { outer * call.results[axis] } else { 0 };
            let (planes, lines) = (call.windows[0][own(0) + i], call.windows[1][own(1) + j]);
            rows.clear();
            for a in 0..planes.1 as usize {
                for b in 0..lines.1 as usize {
                    let plane = planes.0 as usize + a * call.dilation[0];
                    let at = (plane * call.sizes[1] + lines.0 as usize + b * call.dilation[1]) * call.sizes[2];
                    let before = outer * call.sizes.iter().product::<usize>();
                    // SAFETY: windows lie inside the input.
                    rows.push((unsafe { call.input.cast::<T>().add((before + at) * call.inner) }, at));
                }
            }
            // SAFETY: the row lies inside the result.
            unsafe { self.row(&rows, &call.windows[2][own(2)..own(2) + w], row * w) }
        }
    }
}

impl<T: Element, const PLACES: bool> Part<'_, T, PLACES> {
    /// One row of the result, which begins at element `first`.
    #[inline(always)]
    unsafe fn row(&self, rows: &[Row<T>], windows: &[(u32, u32)], first: usize) {
        // SAFETY: the caller's.
        unsafe {
            if self.call.inner > 1 {
                for (i, &window) in windows.iter().enumerate() {
                    self.channels(rows, window, first + i);
                }
                return;
            }
            let (from, to, step) = self.call.whole;
            for i in (0..from.min(windows.len())).chain(to..windows.len()) {
                self.results::<1>(rows, windows[i], 1, first + i);
            }
            let mut at = from;
            while at + 16 <= to {
                self.results::<16>(rows, windows[at], step, first + at);
                at += 16;
            }
            while at + 4 <= to {
                self.results::<4>(rows, windows[at], step, first + at);
                at += 4;
            }
            while at < to {
                self.results::<1>(rows, windows[at], step, first + at);
                at += 1;
            }
        }
    }

    /// `N` results whose windows are `step` apart, the first of them `window`.
    #[inline(always)]
    unsafe fn results<const N: usize>(&self, rows: &[Row<T>], window: (u32, u32), step: usize, out: usize) {
        let mut best = Best::<T, N>::new();
        let mut apart = [T::Place::of(0); N];
        for (i, a) in apart.iter_mut().enumerate() {
            *a = T::Place::of(i * step);
        }
        let (start, dilation) = (window.0 as usize, self.call.dilation[2]);
        best.start(rows, start, &apart);
        for &(row, number) in rows {
            for k in 0..window.1 as usize {
                let at = start + k * dilation;
                // SAFETY: windows lie inside the row.
                let x = unsafe { self.load::<N>(row.add(at), step) };
                best.meet::<PLACES>(&x, number + at, &apart);
            }
        }
        // SAFETY: the caller's.
        unsafe { self.put(&best, out) }
    }

    /// A result of each channel.
    #[inline(always)]
    unsafe fn channels(&self, rows: &[Row<T>], window: (u32, u32), out: usize) {
        let inner = self.call.inner;
        let mut at = 0;
        // SAFETY: the caller's.
        unsafe {
            while at + 16 <= inner {
                self.some::<16>(rows, window, at, out * inner + at);
                at += 16;
            }
            while at + 4 <= inner {
                self.some::<4>(rows, window, at, out * inner + at);
                at += 4;
            }
            while at < inner {
                self.some::<1>(rows, window, at, out * inner + at);
                at += 1;
            }
        }
    }

    /// A result for each of `N` channels.
    #[inline(always)]
    unsafe fn some<const N: usize>(&self, rows: &[Row<T>], window: (u32, u32), channel: usize, out: usize) {
        let mut best = Best::<T, N>::new();
        let same = [T::Place::of(0); N];
        let start = window.0 as usize;
        best.start(rows, start, &same);
        for &(row, number) in rows {
            for k in 0..window.1 as usize {
                let at = start + k * self.call.dilation[2];
                // SAFETY: windows lie inside the row.
                let x = unsafe { self.load::<N>(row.add(at * self.call.inner + channel), 1) };
                best.meet::<PLACES>(&x, number + at, &same);
            }
        }
        // SAFETY: the caller's.
        unsafe { self.put(&best, out) }
    }

    /// `N` elements `step` apart.
    #[inline(always)]
    unsafe fn load<const N: usize>(&self, from: *const T, step: usize) -> [T::Wide; N] {
        let mut x = [T::LOWEST; N];
        // SAFETY: the caller's.
        unsafe {
            if step == 1 {
                let raw = from.cast::<[T; N]>().read_unaligned();
                for i in 0..N {
                    x[i] = raw[i].widen();
                }
            } else if step == 2 {
                // Up to the last one, so that nothing behind the input is touched.
                for (i, x) in x.iter_mut().enumerate() {
                    *x = (*from.add(2 * i)).widen();
                }
            } else {
                for (i, x) in x.iter_mut().enumerate() {
                    *x = (*from.add(step * i)).widen();
                }
            }
        }
        x
    }

    #[inline(always)]
    unsafe fn put<const N: usize>(&self, best: &Best<T, N>, out: usize) {
        let mut raw = [T::narrow(T::LOWEST); N];
        for i in 0..N {
            raw[i] = T::narrow(best.value[i]);
        }
        // SAFETY: the caller's.
        unsafe {
            self.call.out.cast::<T>().add(out).cast::<[T; N]>().write_unaligned(raw);
            if PLACES {
                let mut places = [0i64; N];
                for i in 0..N {
                    places[i] = best.place[i].get();
                }
                self.call.places.add(out).cast::<[i64; N]>().write_unaligned(places);
            }
        }
    }
}

/// The largest so far, and where they were.
struct Best<T: Element, const N: usize> {
    value: [T::Wide; N],
    place: [T::Place; N],
}

impl<T: Element, const N: usize> Best<T, N> {
    #[inline(always)]
    fn new() -> Self {
        Best { value: [T::LOWEST; N], place: [T::Place::of(0); N] }
    }

    /// The place of what is nowhere larger than the lowest number: that of the windows' first elements.
    #[inline(always)]
    fn start(&mut self, rows: &[Row<T>], start: usize, apart: &[T::Place; N]) {
        let first = T::Place::of(rows.first().map_or(0, |r| r.1) + start);
        for i in 0..N {
            self.place[i] = first + apart[i];
        }
    }

    #[inline(always)]
    #[allow(clippy::eq_op)] // NaN differs from itself.
    fn meet<const PLACES: bool>(&mut self, x: &[T::Wide; N], at: usize, apart: &[T::Place; N]) {
        let at = T::Place::of(at);
        for i in 0..N {
            let takes = (x[i] > self.value[i]) | (x[i] != x[i]);
            self.value[i] = if takes { x[i] } else { self.value[i] };
            if PLACES {
                self.place[i] = if takes { at + apart[i] } else { self.place[i] };
            }
        }
    }
}

/// See [`MaxPoolBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &MaxPoolBackward) -> Result<()> {
    let outside = AtomicBool::new(false);
    with_real!("max_pool_backward", call.dtype, R => {
        let shared = Shared(*call);
        parallel_for(call.outer, grain((call.input + call.results) * call.inner, 2), &|range| {
            let call = &{ &shared }.0;
            let mut sums = vec![<R as Real>::Sum::ZERO; if R::WIDE { 0 } else { call.input * call.inner }];
            for outer in range {
                // SAFETY: each range has outer elements of its own; the rest is the caller's.
                if unsafe { !scatter::<R>(call, outer, &mut sums) } {
                    outside.store(true, Ordering::Relaxed);
                }
            }
        });
        Ok::<(), Error>(())
    })?;
    if outside.into_inner() {
        return Err(Error::runtime(format!(
            "max_pool_backward: an index is out of range: the pooled dimensions have {} elements",
            call.input
        )));
    }
    Ok(())
}

/// The gradients of one outer element; whether all places were there.
unsafe fn scatter<R: Real>(call: &MaxPoolBackward, outer: usize, sums: &mut [R::Sum]) -> bool {
    let (n, results) = (call.input * call.inner, call.results * call.inner);
    let mut inside = true;
    // SAFETY: the caller's; places are checked.
    unsafe {
        let out = call.out.cast::<R>().add(outer * n);
        let to = if R::WIDE { out.cast::<R::Sum>() } else { sums.as_mut_ptr() };
        std::slice::from_raw_parts_mut(to, n).fill(R::Sum::ZERO);
        let (grad, places) = (call.grad.cast::<R>().add(outer * results), call.places.add(outer * results));
        let mut at = 0;
        for _ in 0..call.results {
            for channel in 0..call.inner {
                let place = *places.add(at) as u64;
                if place < call.input as u64 {
                    *to.add(place as usize * call.inner + channel) += (*grad.add(at)).widen();
                } else {
                    inside = false;
                }
                at += 1;
            }
        }
        if !R::WIDE {
            for (i, &sum) in sums.iter().enumerate() {
                *out.add(i) = R::narrow(sum);
            }
        }
    }
    inside
}
