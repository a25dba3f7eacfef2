//! `float16` by the processor's own conversions: the bits of [`super::narrow`], but for signalling NaNs, which become quiet.

use super::loops::{BLOCK, Unary};
use std::arch::x86_64::*;

macro_rules! conversions {
    ($widen:ident $write:ident $round:ident, $lanes:literal, $load_half:ident $store_half:ident $half:ty, $load:ident $store:ident, $up:ident $down:ident $nearest:expr) => {
        /// `float16` to `float32`.
        pub struct $widen;
        /// `float32` to `float16`.
        pub struct $write;
        /// `float32` to the nearest that a `float16` holds.
        pub struct $round;

        impl Unary for $widen {
            type A = u16;
            type R = f32;
            #[inline(always)]
            fn block(a: &[u16; BLOCK], out: &mut [f32; BLOCK]) {
                for i in (0..BLOCK).step_by($lanes) {
                    // SAFETY: the lanes from `i` on are inside the blocks; used at levels that have the instructions.
                    unsafe { $store(out.as_mut_ptr().add(i), $up($load_half(a.as_ptr().add(i).cast::<$half>()))) }
                }
            }
        }

        impl Unary for $write {
            type A = f32;
            type R = u16;
            #[inline(always)]
            fn block(a: &[f32; BLOCK], out: &mut [u16; BLOCK]) {
                for i in (0..BLOCK).step_by($lanes) {
                    // SAFETY: as above.
                    unsafe { $store_half(out.as_mut_ptr().add(i).cast::<$half>(), $down::<{ $nearest }>($load(a.as_ptr().add(i)))) }
                }
            }
        }

        impl Unary for $round {
            type A = f32;
            type R = f32;
            #[inline(always)]
            fn block(a: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
                for i in (0..BLOCK).step_by($lanes) {
                    // SAFETY: as above.
                    unsafe { $store(out.as_mut_ptr().add(i), $up($down::<{ $nearest }>($load(a.as_ptr().add(i))))) }
                }
            }
        }
    };
}

conversions! { Widen8 Write8 Round8, 8, _mm_loadu_si128 _mm_storeu_si128 __m128i, _mm256_loadu_ps _mm256_storeu_ps, _mm256_cvtph_ps _mm256_cvtps_ph _MM_FROUND_TO_NEAREST_INT }
conversions! { Widen16 Write16 Round16, 16, _mm256_loadu_si256 _mm256_storeu_si256 __m256i, _mm512_loadu_ps _mm512_storeu_ps, _mm512_cvtph_ps _mm512_cvtps_ph _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::kernels::narrow::{Half, Narrow};
    use crate::isa::Isa;

    /// Blocks through a widening, a writing and a rounding, compared with the plain conversions.
    fn agree<W: Unary<A = u16, R = f32>, N: Unary<A = f32, R = u16>, R: Unary<A = f32, R = f32>>() {
        for first in (0..=u16::MAX).step_by(BLOCK) {
            let bits: [u16; BLOCK] = std::array::from_fn(|i| first + i as u16);
            let mut wide = [0.0; BLOCK];
            W::block(&bits, &mut wide);
            // Numbers beside halves, some of them ties.
            let near = wide.map(|x| f32::from_bits(x.to_bits().wrapping_add(first as u32 & 1).wrapping_add(0x1000)));
            let (mut narrow, mut round) = ([0u16; BLOCK], [0.0; BLOCK]);
            N::block(&near, &mut narrow);
            R::block(&near, &mut round);
            for i in 0..BLOCK {
                let want = Half::widen(bits[i]);
                assert!(wide[i].to_bits() == want.to_bits() || wide[i].is_nan() && want.is_nan(), "{:#x}", bits[i]);
                assert_eq!(narrow[i], Half::narrow(near[i]), "{:e}", near[i]);
                assert!(round[i].to_bits() == Half::widen(narrow[i]).to_bits() || round[i].is_nan());
            }
        }
    }

    #[test]
    fn the_processor_agrees() {
        if Isa::Avx2.is_supported() {
            agree::<Widen8, Write8, Round8>();
        }
        if Isa::Avx512.is_supported() {
            agree::<Widen16, Write16, Round16>();
        }
    }
}
