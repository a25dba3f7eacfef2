//! Vectors as arrays, for processors without a set of their own here; the compiler finds the instructions.

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
                // SAFETY: by the caller's promise.
                $vector(std::array::from_fn(|lane| if lane < count { unsafe { *from.add(lane) } } else { 0.0 }))
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
            unsafe fn mul_add(self, by: Self, to: Self) -> Self {
                // Where there is no such instruction, the function would be a slow call.
                let fused = cfg!(target_arch = "aarch64");
                $vector(std::array::from_fn(|lane| {
                    let (x, y, z) = (self.0[lane], by.0[lane], to.0[lane]);
                    if fused { x.mul_add(y, z) } else { x * y + z }
                }))
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                $vector(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                $vector(std::array::from_fn(|lane| self.0[lane] * other.0[lane]))
            }
            #[inline(always)]
            unsafe fn sum(self) -> $element {
                let (low, high) = self.0.split_at($lanes / 2);
                low.iter().sum::<$element>() + high.iter().sum::<$element>()
            }
            #[inline(always)]
            unsafe fn transpose(rows: &mut [Self; 16]) {
                let columns: [Self; $lanes] = std::array::from_fn(|column| $vector(std::array::from_fn(|row| rows[row].0[column])));
                rows[..$lanes].copy_from_slice(&columns);
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
                Portable32(std::array::from_fn(|lane| unsafe { *from.add(lane) }.to_f32_const()))
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const Self, count: usize) -> Portable32 {
                let lane = |lane| {
                    // SAFETY: by the caller's promise.
                    if lane < count { unsafe { *from.add(lane) }.to_f32_const() } else { 0.0 }
                };
                Portable32(std::array::from_fn(lane))
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
