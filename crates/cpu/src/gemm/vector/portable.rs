//! Vectors as arrays, for processors without a set of their own here; the compiler finds the instructions.
#![allow(clippy::needless_range_loop)] // See `kernel.rs`.

use half::{bf16, f16};

use super::{Packed, Vector, round_bf16, round_f16};

/// Four numbers of single precision.
#[derive(Clone, Copy)]
pub(in super::super) struct Portable32([f32; 4]);

/// Two numbers of double precision.
#[derive(Clone, Copy)]
pub(in super::super) struct Portable64([f64; 2]);

macro_rules! impl_vector {
    ($vector:ident, $element:ty, $lanes:expr) => {
        impl Vector for $vector {
            type Element = $element;
            type Mask = (usize, usize);
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                $vector([value; $lanes])
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: by the caller's promise; arrays are aligned as their elements.
                unsafe { $vector(from.cast::<[$element; $lanes]>().read()) }
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const $element, count: usize) -> Self {
                let mut lanes = [0.0; $lanes];
                for lane in 0..count {
                    // SAFETY: by the caller's promise.
                    lanes[lane] = unsafe { *from.add(lane) };
                }
                $vector(lanes)
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: by the caller's promise; arrays are aligned as their elements.
                unsafe { to.cast::<[$element; $lanes]>().write(self.0) }
            }
            #[inline(always)]
            unsafe fn store_partial(self, to: *mut $element, count: usize) {
                for lane in 0..count {
                    // SAFETY: by the caller's promise.
                    unsafe { *to.add(lane) = self.0[lane] }
                }
            }
            #[inline(always)]
            unsafe fn mul_add(mut self, by: Self, to: Self) -> Self {
                for lane in 0..$lanes {
                    // Where there is no such instruction, the function would be a slow call.
                    self.0[lane] = if cfg!(target_arch = "aarch64") {
                        self.0[lane].mul_add(by.0[lane], to.0[lane])
                    } else {
                        self.0[lane] * by.0[lane] + to.0[lane]
                    };
                }
                self
            }
            #[inline(always)]
            unsafe fn add(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    self.0[lane] += other.0[lane];
                }
                self
            }
            #[inline(always)]
            unsafe fn mul(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    self.0[lane] *= other.0[lane];
                }
                self
            }
            #[inline(always)]
            unsafe fn sum(self) -> $element {
                let mut sums = [0.0; 2];
                for lane in 0..$lanes {
                    sums[2 * lane / $lanes] += self.0[lane];
                }
                sums[0] + sums[1]
            }
            #[inline(always)]
            unsafe fn mask(first: usize, last: usize) -> (usize, usize) {
                (first, last)
            }
            #[inline(always)]
            unsafe fn merge(self, from: *const $element, mask: (usize, usize)) -> Self {
                // SAFETY: by the caller's promise.
                unsafe { self.merge_strided(from, 1, mask) }
            }
            #[inline(always)]
            unsafe fn merge_strided(mut self, from: *const $element, step: isize, (first, last): (usize, usize)) -> Self {
                for lane in first..last {
                    // SAFETY: by the caller's promise.
                    self.0[lane] = unsafe { *from.wrapping_offset(lane as isize * step) };
                }
                self
            }
            #[inline(always)]
            unsafe fn transpose(rows: &mut [Self; 16]) {
                for row in 0..$lanes {
                    for column in row + 1..$lanes {
                        let upper = rows[row].0[column];
                        rows[row].0[column] = rows[column].0[row];
                        rows[column].0[row] = upper;
                    }
                }
            }
        }
    };
}

impl_vector!(Portable32, f32, 4);
impl_vector!(Portable64, f64, 2);

macro_rules! impl_packed_half {
    ($half:ty, $round:path) => {
        impl Packed<Portable32> for $half {
            #[inline(always)]
            unsafe fn load(from: *const Self) -> Portable32 {
                // SAFETY: by the caller's promise.
                unsafe { Self::load_partial(from, Portable32::LANES) }
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const Self, count: usize) -> Portable32 {
                let mut lanes = [0.0; Portable32::LANES];
                for lane in 0..count {
                    // SAFETY: by the caller's promise.
                    lanes[lane] = unsafe { *from.add(lane) }.to_f32_const();
                }
                Portable32(lanes)
            }
            #[inline(always)]
            unsafe fn store_partial(vector: Portable32, to: *mut Self, count: usize) {
                for lane in 0..count {
                    // SAFETY: by the caller's promise.
                    unsafe { *to.add(lane) = $round(vector.0[lane]) }
                }
            }
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32_const()
            }
        }
    };
}

impl_packed_half!(bf16, round_bf16);
impl_packed_half!(f16, round_f16);
