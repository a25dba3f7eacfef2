//! Vectors of the accumulation type, one implementation an instruction set.
//!
//! All is inlined into functions that are compiled for the set (see `kernels.rs`): none of it may run elsewhere.

use half::{bf16, f16};

mod portable;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

pub(super) use portable::{Portable32, Portable64};

/// As many numbers as one register holds.
///
/// # Safety
///
/// Of all methods: the processor has the instruction set of the type. Of those with pointers: they point to as
/// many numbers as are loaded or stored, `LANES` or `count`; `count <= LANES`.
pub(super) trait Vector: Copy {
    type Element: Copy + Default;
    /// A choice of lanes.
    type Mask: Copy;
    const LANES: usize;

    unsafe fn splat(value: Self::Element) -> Self;
    unsafe fn load(from: *const Self::Element) -> Self;
    /// The first `count` numbers, then zeros.
    unsafe fn load_partial(from: *const Self::Element, count: usize) -> Self;
    unsafe fn store(self, to: *mut Self::Element);
    unsafe fn store_partial(self, to: *mut Self::Element, count: usize);
    /// `self * by + to`, rounded once where the set can.
    unsafe fn mul_add(self, by: Self, to: Self) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The sum of all lanes, in an order that is always the same.
    unsafe fn sum(self) -> Self::Element;
    /// The lanes from `first` up to `last`.
    unsafe fn mask(first: usize, last: usize) -> Self::Mask;
    /// The vector with the lanes of a mask replaced: lane `i` by the number at `from + i`. Others are not looked at.
    unsafe fn merge(self, from: *const Self::Element, mask: Self::Mask) -> Self;
    /// [`Vector::merge`] of numbers that are `step` apart.
    unsafe fn merge_strided(self, from: *const Self::Element, step: isize, mask: Self::Mask) -> Self;
    /// Makes rows of a `LANES` by `LANES` block its columns; further rows are left alone.
    unsafe fn transpose(rows: &mut [Self; 16]);
}

/// Numbers in memory that become vectors of `V` when loaded and are rounded when stored.
///
/// # Safety
///
/// As for [`Vector`].
pub(super) trait Packed<V: Vector>: Copy {
    unsafe fn load(from: *const Self) -> V;
    unsafe fn load_partial(from: *const Self, count: usize) -> V;
    unsafe fn store_partial(vector: V, to: *mut Self, count: usize);
    fn widen(self) -> V::Element;
}

/// The identity, for vectors of the element type itself.
macro_rules! impl_packed_same {
    ($($vector:ty),*) => {$(
        impl Packed<$vector> for <$vector as Vector>::Element {
            #[inline(always)]
            unsafe fn load(from: *const Self) -> $vector {
                // SAFETY: by the caller's promise.
                unsafe { <$vector>::load(from) }
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const Self, count: usize) -> $vector {
                // SAFETY: by the caller's promise.
                unsafe { <$vector>::load_partial(from, count) }
            }
            #[inline(always)]
            unsafe fn store_partial(vector: $vector, to: *mut Self, count: usize) {
                // SAFETY: by the caller's promise.
                unsafe { vector.store_partial(to, count) }
            }
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
        }
    )*};
}

impl_packed_same!(Portable32, Portable64);
#[cfg(target_arch = "x86_64")]
impl_packed_same!(x86::Avx2F32, x86::Avx2F64, x86::Avx512F32, x86::Avx512F64);

/// `value` rounded to the nearest bfloat16, ties to even, without a branch.
#[inline(always)]
pub(super) fn round_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    bf16::from_bits(if value.is_nan() { (bits >> 16) as u16 | 0x40 } else { rounded as u16 })
}

/// `value` as the nearest float16, ties to even.
#[inline(always)]
pub(super) fn round_f16(value: f32) -> f16 {
    f16::from_f32_const(value)
}
