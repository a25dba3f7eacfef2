//! Loops compiled twice: for the baseline, and for AVX2 with fused multiply-add.

/// Defines two functions of one body: `portable`, compiled for the baseline, and `name`, which runs a copy of it that
/// is compiled for AVX2 and FMA where the processor has them.
///
/// Both give the same bits: what must be fused is written `mul_add`, and nothing else is ever fused.
macro_rules! wide {
    ($(#[$meta:meta])* fn $name:ident, $portable:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        #[inline(always)]
        fn $portable($($arg: $ty),*) $body

        $(#[$meta])*
        pub(super) fn $name($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) {
                $portable($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: this processor has both features that `avx2` is compiled for.
                return unsafe { avx2($($arg),*) };
            }
            $portable($($arg),*)
        }
    };
}
