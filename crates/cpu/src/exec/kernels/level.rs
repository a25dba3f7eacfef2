//! The instruction sets for which steps are compiled. Every step is written once and compiled for each of them.

use super::convert::{Round, Widen, Write};
#[cfg(target_arch = "x86_64")]
use super::half_x86;
use super::loops::{self, Binary, Ternary, Unary};
use super::narrow::Half;
use crate::exec::step::Args;

/// The loops as compiled for one instruction set.
pub trait Level {
    /// `float16` to `float32`.
    type WidenHalf: Unary;
    /// `float32` to `float16`.
    type WriteHalf: Unary;
    /// `float32` to the nearest that a `float16` holds.
    type RoundHalf: Unary;

    /// See [`loops::unary`].
    ///
    /// # Safety
    /// As there, and the processor has the instructions.
    unsafe fn unary<F: Unary>(out: *mut u8, args: Args, n: usize);
    /// See [`loops::binary`].
    ///
    /// # Safety
    /// As there, and the processor has the instructions.
    unsafe fn binary<F: Binary>(out: *mut u8, args: Args, n: usize);
    /// See [`loops::ternary`].
    ///
    /// # Safety
    /// As there, and the processor has the instructions.
    unsafe fn ternary<F: Ternary>(out: *mut u8, args: Args, n: usize);
    /// See [`loops::select`].
    ///
    /// # Safety
    /// As there, and the processor has the instructions.
    unsafe fn select<T: Copy>(out: *mut u8, args: Args, n: usize);
}

macro_rules! level {
    ($(#[$doc:meta])* $name:ident, $widen:ty, $write:ty, $round:ty $(, $feature:literal)?) => {
        $(#[$doc])*
        pub struct $name;

        impl Level for $name {
            type WidenHalf = $widen;
            type WriteHalf = $write;
            type RoundHalf = $round;

            $(#[target_feature(enable = $feature)])?
            unsafe fn unary<F: Unary>(out: *mut u8, args: Args, n: usize) {
                // SAFETY: the caller's.
                unsafe { loops::unary::<F>(out, args, n) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn binary<F: Binary>(out: *mut u8, args: Args, n: usize) {
                // SAFETY: the caller's.
                unsafe { loops::binary::<F>(out, args, n) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn ternary<F: Ternary>(out: *mut u8, args: Args, n: usize) {
                // SAFETY: the caller's.
                unsafe { loops::ternary::<F>(out, args, n) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn select<T: Copy>(out: *mut u8, args: Args, n: usize) {
                // SAFETY: the caller's.
                unsafe { loops::select::<T>(out, args, n) }
            }
        }
    };
}

level! {
    /// What the target has by itself (on 64-bit ARM that is NEON).
    Portable, Widen<Half>, Write<Half>, Round<Half>
}

#[cfg(target_arch = "x86_64")]
level! {
    /// See [`crate::isa::Isa::Avx2`].
    Avx2, half_x86::Widen8, half_x86::Write8, half_x86::Round8, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
}

#[cfg(target_arch = "x86_64")]
level! {
    /// See [`crate::isa::Isa::Avx512`].
    Avx512, half_x86::Widen16, half_x86::Write16, half_x86::Round16, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
}
