//! Vectors of AVX2 with fused multiply-add, and of AVX-512.
#![allow(clippy::needless_range_loop)] // See `kernel.rs`.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{Packed, Vector};

/// Eight numbers of single precision in a 256-bit register.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx2F32(__m256);

/// Four numbers of double precision in a 256-bit register.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx2F64(__m256d);

/// Sixteen numbers of single precision in a 512-bit register.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx512F32(__m512);

/// Eight numbers of double precision in a 512-bit register.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx512F64(__m512d);

/// Masks of AVX2 are vectors whose lanes are all ones or zero: a window into this table.
static LANES_ON: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A mask of 32-bit lanes, the first `count` on.
///
/// # Safety
///
/// The processor has AVX2, and `count <= 8`.
#[inline(always)]
unsafe fn mask256(count: usize) -> __m256i {
    // SAFETY: the eight numbers begin at most at 8 of 16.
    unsafe { _mm256_loadu_si256(LANES_ON.as_ptr().add(8 - count).cast()) }
}

/// A mask of 32-bit lanes, those from `first` up to `last` on.
///
/// # Safety
///
/// The processor has AVX2, and `first <= last <= 8`.
#[inline(always)]
unsafe fn between256(first: usize, last: usize) -> __m256i {
    // SAFETY: by the caller's promise.
    unsafe { _mm256_andnot_si256(mask256(first), mask256(last)) }
}

/// # Safety
///
/// `first <= last <= 16`.
#[inline(always)]
unsafe fn between16(first: usize, last: usize) -> __mmask16 {
    mask16(last) & !mask16(first)
}

/// # Safety
///
/// `first <= last <= 8`.
#[inline(always)]
unsafe fn between8(first: usize, last: usize) -> __mmask8 {
    mask8(last) & !mask8(first)
}

/// Steps of the lanes of a gather.
///
/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
unsafe fn steps256(step: isize) -> __m256i {
    // SAFETY: by the caller's promise.
    unsafe { _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(step as i32)) }
}

#[inline(always)]
fn mask16(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

#[inline(always)]
fn mask8(count: usize) -> __mmask8 {
    ((1u32 << count) - 1) as __mmask8
}

macro_rules! impl_vector {
    ($vector:ident, $element:ty, $lanes:expr, $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $mul:ident,
     load_partial($from:ident, $n:ident) $load_partial:expr,
     store_partial($to:ident, $register:ident, $count:ident) $store_partial:expr,
     sum($summed:ident) $sum:expr,
     mask: $mask:ty, between($first:ident, $last:ident) $between:expr,
     merge($old:ident, $source:ident, $chosen:ident) $merge:expr,
     gather($far:ident, $step:ident) $gather:expr,
     transpose: $transpose:ident) => {
        // SAFETY (of all the blocks below): by the promises of the caller, see `Vector`.
        impl Vector for $vector {
            type Element = $element;
            type Mask = $mask;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                unsafe { $vector($splat(value)) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                unsafe { $vector($load(from)) }
            }
            #[inline(always)]
            unsafe fn load_partial($from: *const $element, $n: usize) -> Self {
                unsafe { $vector($load_partial) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn store_partial(self, $to: *mut $element, $count: usize) {
                let $register = self.0;
                unsafe { $store_partial }
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, to: Self) -> Self {
                unsafe { $vector($fma(self.0, by.0, to.0)) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                unsafe { $vector($add(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                unsafe { $vector($mul(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn sum(self) -> $element {
                let $summed = self.0;
                unsafe { $sum }
            }
            #[inline(always)]
            unsafe fn mask($first: usize, $last: usize) -> $mask {
                unsafe { $between }
            }
            #[inline(always)]
            unsafe fn merge(self, $source: *const $element, $chosen: $mask) -> Self {
                let $old = self.0;
                unsafe { $vector($merge) }
            }
            #[inline(always)]
            unsafe fn merge_strided(self, $far: *const $element, $step: isize, $chosen: $mask) -> Self {
                let $old = self.0;
                // A gather's indices have 32 bits; further apart than that, numbers of one tensor seldom lie.
                debug_assert!($step.unsigned_abs() < 1 << 26);
                unsafe { $vector($gather) }
            }
            #[inline(always)]
            unsafe fn transpose(rows: &mut [Self; 16]) {
                unsafe { $transpose(rows) }
            }
        }
    };
}

impl_vector!(
    Avx2F32, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_mul_ps,
    load_partial(from, n) _mm256_maskload_ps(from, mask256(n)),
    store_partial(to, register, n) _mm256_maskstore_ps(to, mask256(n), register),
    sum(register) {
        let quarter = _mm_add_ps(_mm256_castps256_ps128(register), _mm256_extractf128_ps::<1>(register));
        let pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
        _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
    },
    mask: __m256i, between(first, last) between256(first, last),
    merge(old, from, mask) _mm256_blendv_ps(old, _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask)),
    gather(from, step) _mm256_mask_i32gather_ps::<4>(old, from, steps256(step), _mm256_castsi256_ps(mask)),
    transpose: transpose_8x8
);

impl_vector!(
    Avx2F64, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_mul_pd,
    load_partial(from, n) _mm256_maskload_pd(from, mask256(2 * n)),
    store_partial(to, register, n) _mm256_maskstore_pd(to, mask256(2 * n), register),
    sum(register) {
        let pair = _mm_add_pd(_mm256_castpd256_pd128(register), _mm256_extractf128_pd::<1>(register));
        _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)))
    },
    mask: __m256i, between(first, last) between256(2 * first, 2 * last),
    merge(old, from, mask) _mm256_blendv_pd(old, _mm256_maskload_pd(from, mask), _mm256_castsi256_pd(mask)),
    gather(from, step) _mm256_mask_i32gather_pd::<8>(old, from, _mm256_castsi256_si128(steps256(step)), _mm256_castsi256_pd(mask)),
    transpose: transpose_4x4
);

impl_vector!(
    Avx512F32, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_mul_ps,
    load_partial(from, n) _mm512_maskz_loadu_ps(mask16(n), from),
    store_partial(to, register, n) _mm512_mask_storeu_ps(to, mask16(n), register),
    sum(register) {
        let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(register)));
        Avx2F32(_mm256_add_ps(_mm512_castps512_ps256(register), high)).sum()
    },
    mask: __mmask16, between(first, last) between16(first, last),
    merge(old, from, mask) _mm512_mask_loadu_ps(old, mask, from),
    gather(from, step) {
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let steps = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(step as i32));
        _mm512_mask_i32gather_ps::<4>(old, mask, steps, from)
    },
    transpose: transpose_16x16
);

impl_vector!(
    Avx512F64, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_mul_pd,
    load_partial(from, n) _mm512_maskz_loadu_pd(mask8(n), from),
    store_partial(to, register, n) _mm512_mask_storeu_pd(to, mask8(n), register),
    sum(register) {
        Avx2F64(_mm256_add_pd(_mm512_castpd512_pd256(register), _mm512_extractf64x4_pd::<1>(register))).sum()
    },
    mask: __mmask8, between(first, last) between8(first, last),
    merge(old, from, mask) _mm512_mask_loadu_pd(old, mask, from),
    gather(from, step) _mm512_mask_i32gather_pd::<8>(old, mask, steps256(step), from),
    transpose: transpose_8x8_f64
);

// The transpositions work in steps: each interleaves pairs of rows at twice the width of the step before, so
// that in the end register j holds lane j of every row. All are unsafe for want of the instruction set only.

#[inline(always)]
unsafe fn transpose_16x16(rows: &mut [Avx512F32; 16]) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let mut x = [rows[0].0; 16];
        for i in 0..16 {
            x[i] = rows[i].0;
        }
        for pair in 0..8 {
            let i = 2 * pair;
            (x[i], x[i + 1]) = (_mm512_unpacklo_ps(x[i], x[i + 1]), _mm512_unpackhi_ps(x[i], x[i + 1]));
        }
        for four in 0..4 {
            let i = 4 * four;
            let mut pd = [_mm512_castps_pd(x[i]); 4];
            for j in 1..4 {
                pd[j] = _mm512_castps_pd(x[i + j]);
            }
            x[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(pd[0], pd[2]));
            x[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(pd[0], pd[2]));
            x[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(pd[1], pd[3]));
            x[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(pd[1], pd[3]));
        }
        for j in 0..4 {
            let (a, b, c, d) = (x[j], x[4 + j], x[8 + j], x[12 + j]);
            let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
            let (cd_even, cd_odd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xdd>(c, d));
            rows[j].0 = _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even);
            rows[4 + j].0 = _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd);
            rows[8 + j].0 = _mm512_shuffle_f32x4::<0xdd>(ab_even, cd_even);
            rows[12 + j].0 = _mm512_shuffle_f32x4::<0xdd>(ab_odd, cd_odd);
        }
    }
}

#[inline(always)]
unsafe fn transpose_8x8_f64(rows: &mut [Avx512F64; 16]) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let mut x = [rows[0].0; 8];
        for i in 0..8 {
            x[i] = rows[i].0;
        }
        for pair in 0..4 {
            let i = 2 * pair;
            (x[i], x[i + 1]) = (_mm512_unpacklo_pd(x[i], x[i + 1]), _mm512_unpackhi_pd(x[i], x[i + 1]));
        }
        for j in 0..2 {
            let (a, b, c, d) = (x[j], x[2 + j], x[4 + j], x[6 + j]);
            let (ab_even, ab_odd) = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
            let (cd_even, cd_odd) = (_mm512_shuffle_f64x2::<0x88>(c, d), _mm512_shuffle_f64x2::<0xdd>(c, d));
            rows[j].0 = _mm512_shuffle_f64x2::<0x88>(ab_even, cd_even);
            rows[2 + j].0 = _mm512_shuffle_f64x2::<0x88>(ab_odd, cd_odd);
            rows[4 + j].0 = _mm512_shuffle_f64x2::<0xdd>(ab_even, cd_even);
            rows[6 + j].0 = _mm512_shuffle_f64x2::<0xdd>(ab_odd, cd_odd);
        }
    }
}

#[inline(always)]
unsafe fn transpose_8x8(rows: &mut [Avx2F32; 16]) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let mut x = [rows[0].0; 8];
        for i in 0..8 {
            x[i] = rows[i].0;
        }
        for pair in 0..4 {
            let i = 2 * pair;
            (x[i], x[i + 1]) = (_mm256_unpacklo_ps(x[i], x[i + 1]), _mm256_unpackhi_ps(x[i], x[i + 1]));
        }
        for four in 0..2 {
            let i = 4 * four;
            let mut pd = [_mm256_castps_pd(x[i]); 4];
            for j in 1..4 {
                pd[j] = _mm256_castps_pd(x[i + j]);
            }
            x[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(pd[0], pd[2]));
            x[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(pd[0], pd[2]));
            x[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(pd[1], pd[3]));
            x[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(pd[1], pd[3]));
        }
        for j in 0..4 {
            rows[j].0 = _mm256_permute2f128_ps::<0x20>(x[j], x[4 + j]);
            rows[4 + j].0 = _mm256_permute2f128_ps::<0x31>(x[j], x[4 + j]);
        }
    }
}

#[inline(always)]
unsafe fn transpose_4x4(rows: &mut [Avx2F64; 16]) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let mut x = [rows[0].0; 4];
        for i in 0..4 {
            x[i] = rows[i].0;
        }
        for pair in 0..2 {
            let i = 2 * pair;
            (x[i], x[i + 1]) = (_mm256_unpacklo_pd(x[i], x[i + 1]), _mm256_unpackhi_pd(x[i], x[i + 1]));
        }
        for j in 0..2 {
            rows[j].0 = _mm256_permute2f128_pd::<0x20>(x[j], x[2 + j]);
            rows[2 + j].0 = _mm256_permute2f128_pd::<0x31>(x[j], x[2 + j]);
        }
    }
}

/// Half precision through vectors of as many 16-bit lanes: `$widen` and `$narrow` convert whole registers.
macro_rules! impl_packed_half {
    ($half:ty, $vector:ident, $bits:ty, $lanes:expr, $widen:expr, $narrow:expr, $load_masked:expr, $store_masked:expr) => {
        // SAFETY (of all the blocks below): by the promises of the caller, see `Packed`.
        impl Packed<$vector> for $half {
            #[inline(always)]
            unsafe fn load(from: *const Self) -> $vector {
                unsafe { $vector($widen(from.cast::<$bits>().read_unaligned())) }
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const Self, count: usize) -> $vector {
                unsafe { $vector($widen($load_masked(from.cast(), count))) }
            }
            #[inline(always)]
            unsafe fn store_partial(vector: $vector, to: *mut Self, count: usize) {
                unsafe { $store_masked(to.cast(), count, $narrow(vector.0)) }
            }
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32_const()
            }
        }
    };
}

impl_packed_half!(bf16, Avx512F32, __m256i, 16, widen_bf16_16, narrow_bf16_16, load_masked_16, store_masked_16);
impl_packed_half!(f16, Avx512F32, __m256i, 16, widen_f16_16, narrow_f16_16, load_masked_16, store_masked_16);
impl_packed_half!(bf16, Avx2F32, __m128i, 8, widen_bf16_8, narrow_bf16_8, load_masked_8, store_masked_8);
impl_packed_half!(f16, Avx2F32, __m128i, 8, widen_f16_8, narrow_f16_8, load_masked_8, store_masked_8);

#[inline(always)]
unsafe fn load_masked_16(from: *const i16, count: usize) -> __m256i {
    // SAFETY: the caller has AVX-512 and `count` numbers there.
    unsafe { _mm256_maskz_loadu_epi16(mask16(count), from) }
}

#[inline(always)]
unsafe fn store_masked_16(to: *mut i16, count: usize, half: __m256i) {
    // SAFETY: the caller has AVX-512 and room for `count` numbers there.
    unsafe { _mm256_mask_storeu_epi16(to, mask16(count), half) }
}

#[inline(always)]
unsafe fn load_masked_8(from: *const i16, count: usize) -> __m128i {
    let mut lanes = [0i16; 8];
    // SAFETY: the caller has `count` (<= 8) numbers there; the array is a vector's size.
    unsafe {
        std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
        _mm_loadu_si128(lanes.as_ptr().cast())
    }
}

#[inline(always)]
unsafe fn store_masked_8(to: *mut i16, count: usize, half: __m128i) {
    let mut lanes = [0i16; 8];
    // SAFETY: the caller has room for `count` (<= 8) numbers there; the array is a vector's size.
    unsafe {
        if count == 8 {
            return _mm_storeu_si128(to.cast(), half);
        }
        _mm_storeu_si128(lanes.as_mut_ptr().cast(), half);
        std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
    }
}

#[inline(always)]
unsafe fn widen_bf16_16(half: __m256i) -> __m512 {
    // SAFETY: the caller has AVX-512.
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half))) }
}

#[inline(always)]
unsafe fn widen_bf16_8(half: __m128i) -> __m256 {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(half))) }
}

#[inline(always)]
unsafe fn widen_f16_16(half: __m256i) -> __m512 {
    // SAFETY: the caller has AVX-512.
    unsafe { _mm512_cvtph_ps(half) }
}

#[inline(always)]
unsafe fn widen_f16_8(half: __m128i) -> __m256 {
    // SAFETY: the caller has AVX2 and F16C.
    unsafe { _mm256_cvtph_ps(half) }
}

#[inline(always)]
unsafe fn narrow_f16_16(single: __m512) -> __m256i {
    // SAFETY: the caller has AVX-512.
    unsafe { _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(single) }
}

#[inline(always)]
unsafe fn narrow_f16_8(single: __m256) -> __m128i {
    // SAFETY: the caller has AVX2 and F16C.
    unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(single) }
}

// Rounding to bfloat16 adds half a unit of the last place that stays, less one where that place is even, and cuts
// the rest off; a NaN is only made quiet.

#[inline(always)]
unsafe fn narrow_bf16_16(single: __m512) -> __m256i {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let bits = _mm512_castps_si512(single);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x40_0000));
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(single, single);
        _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(_mm512_mask_mov_epi32(rounded, nan, quiet)))
    }
}

#[inline(always)]
unsafe fn narrow_bf16_8(single: __m256) -> __m128i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let bits = _mm256_castps_si256(single);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x40_0000));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(single, single));
        let high = _mm256_srli_epi32::<16>(_mm256_blendv_epi8(rounded, quiet, nan));
        _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256::<1>(high))
    }
}
