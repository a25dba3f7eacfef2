//! The loops of all steps: blocks of [`BLOCK`] elements in local arrays, which LLVM turns into vectors.
//!
//! The last, partial block is padded with its own first element and runs through the same code, so that every
//! element gets the same bits wherever it stands.

use super::super::step::Args;

/// Elements to a block: two vectors of 16 `f32`.
pub const BLOCK: usize = 32;

/// Keeps LLVM from vectorising over blocks, with gathers, where it has unrolled the loop over a block's elements.
#[inline(always)]
fn one_block_at_a_time() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags))
    }
}

/// A function of one argument, on a block.
pub trait Unary {
    /// The argument's type.
    type A: Copy;
    /// The result's type.
    type R: Copy;
    /// Computes a block.
    fn block(a: &[Self::A; BLOCK], out: &mut [Self::R; BLOCK]);
}

/// A function of two arguments of one type, on a block.
pub trait Binary {
    /// The arguments' type.
    type A: Copy;
    /// The result's type.
    type R: Copy;
    /// Computes a block.
    fn block(a: &[Self::A; BLOCK], b: &[Self::A; BLOCK], out: &mut [Self::R; BLOCK]);
}

/// A function of three arguments of one type, on a block.
pub trait Ternary {
    /// The type of arguments and result.
    type A: Copy;
    /// Computes a block.
    fn block(a: &[Self::A; BLOCK], b: &[Self::A; BLOCK], c: &[Self::A; BLOCK], out: &mut [Self::A; BLOCK]);
}

/// Copies fewer than [`BLOCK`] elements: pieces of fixed lengths, which need no call.
#[inline(always)]
unsafe fn copy_few<T: Copy>(to: *mut T, from: *const T, n: usize) {
    let mut at = 0;
    macro_rules! piece {
        ($($length:literal)*) => {$(
            if n & $length != 0 {
                // SAFETY: the pieces of the binary digits of `n` are together its `n` elements, which the caller promises.
                unsafe { to.add(at).cast::<[T; $length]>().write_unaligned(from.add(at).cast::<[T; $length]>().read_unaligned()) };
                at += $length;
            }
        )*};
    }
    piece!(16 8 4 2 1);
    debug_assert_eq!(at, n);
}

/// The elements from `at` on, as a block; those past `n` repeat the first.
#[inline(always)]
unsafe fn partial<T: Copy>(from: *const T, at: usize, n: usize) -> [T; BLOCK] {
    // SAFETY: `at < n < at + BLOCK`, and `n` elements are readable, as the callers promise.
    unsafe {
        let mut block = [*from.add(at); BLOCK];
        copy_few(block.as_mut_ptr(), from.add(at), n - at);
        block
    }
}

/// Writes the first `n - at` elements of a block.
#[inline(always)]
unsafe fn put_partial<T: Copy>(to: *mut T, at: usize, n: usize, block: &[T; BLOCK]) {
    // SAFETY: `at < n < at + BLOCK`, and `n` elements are writable, as the callers promise.
    unsafe { copy_few(to.add(at), block.as_ptr(), n - at) }
}

/// Runs a unary function over `n` elements.
///
/// # Safety
/// The argument is readable and `out` writable for `n` elements; they are the same or apart.
#[inline(always)]
pub unsafe fn unary<F: Unary>(out: *mut u8, args: Args, n: usize) {
    let (out, a) = (out.cast::<F::R>(), args[0].cast::<F::A>());
    let mut at = 0;
    // SAFETY: all of `at..at + BLOCK` or `at..n` is inside the operands; a block is read before it is written.
    unsafe {
        while at + BLOCK <= n {
            one_block_at_a_time();
            // Fresh in each round, so that it lives in registers.
            let mut block = [std::mem::zeroed::<F::R>(); BLOCK];
            F::block(&a.add(at).cast::<[F::A; BLOCK]>().read_unaligned(), &mut block);
            out.add(at).cast::<[F::R; BLOCK]>().write_unaligned(block);
            at += BLOCK;
        }
        if at < n {
            let mut block = [std::mem::zeroed::<F::R>(); BLOCK];
            F::block(&partial(a, at, n), &mut block);
            put_partial(out, at, n, &block);
        }
    }
}

/// Runs a binary function over `n` elements.
///
/// # Safety
/// As for [`unary`], for both arguments.
#[inline(always)]
pub unsafe fn binary<F: Binary>(out: *mut u8, args: Args, n: usize) {
    let (out, a, b) = (out.cast::<F::R>(), args[0].cast::<F::A>(), args[1].cast::<F::A>());
    let mut at = 0;
    // SAFETY: as in `unary`.
    unsafe {
        while at + BLOCK <= n {
            one_block_at_a_time();
            // Fresh in each round, so that it lives in registers.
            let mut block = [std::mem::zeroed::<F::R>(); BLOCK];
            let x = a.add(at).cast::<[F::A; BLOCK]>().read_unaligned();
            let y = b.add(at).cast::<[F::A; BLOCK]>().read_unaligned();
            F::block(&x, &y, &mut block);
            out.add(at).cast::<[F::R; BLOCK]>().write_unaligned(block);
            at += BLOCK;
        }
        if at < n {
            let mut block = [std::mem::zeroed::<F::R>(); BLOCK];
            F::block(&partial(a, at, n), &partial(b, at, n), &mut block);
            put_partial(out, at, n, &block);
        }
    }
}

/// Runs a ternary function over `n` elements.
///
/// # Safety
/// As for [`unary`], for all arguments.
#[inline(always)]
pub unsafe fn ternary<F: Ternary>(out: *mut u8, args: Args, n: usize) {
    let (out, [a, b, c]) = (out.cast::<F::A>(), args.map(|a| a.cast::<F::A>()));
    let mut at = 0;
    // SAFETY: as in `unary`.
    unsafe {
        while at + BLOCK <= n {
            one_block_at_a_time();
            let mut block = [std::mem::zeroed::<F::A>(); BLOCK];
            let x = a.add(at).cast::<[F::A; BLOCK]>().read_unaligned();
            let y = b.add(at).cast::<[F::A; BLOCK]>().read_unaligned();
            let z = c.add(at).cast::<[F::A; BLOCK]>().read_unaligned();
            F::block(&x, &y, &z, &mut block);
            out.add(at).cast::<[F::A; BLOCK]>().write_unaligned(block);
            at += BLOCK;
        }
        if at < n {
            let mut block = [std::mem::zeroed::<F::A>(); BLOCK];
            F::block(&partial(a, at, n), &partial(b, at, n), &partial(c, at, n), &mut block);
            put_partial(out, at, n, &block);
        }
    }
}

/// `out = condition ? a : b` over `n` elements.
///
/// # Safety
/// As for [`unary`], for all arguments; the condition's bytes are 0 or 1.
#[inline(always)]
pub unsafe fn select<T: Copy>(out: *mut u8, args: Args, n: usize) {
    let (out, c, a, b) = (out.cast::<T>(), args[0], args[1].cast::<T>(), args[2].cast::<T>());
    let mut at = 0;
    // SAFETY: as in `unary`.
    unsafe {
        while at + BLOCK <= n {
            one_block_at_a_time();
            let c = c.add(at).cast::<[u8; BLOCK]>().read_unaligned();
            let x = a.add(at).cast::<[T; BLOCK]>().read_unaligned();
            let mut y = b.add(at).cast::<[T; BLOCK]>().read_unaligned();
            for i in 0..BLOCK {
                y[i] = if c[i] != 0 { x[i] } else { y[i] };
            }
            out.add(at).cast::<[T; BLOCK]>().write_unaligned(y);
            at += BLOCK;
        }
        for i in at..n {
            *out.add(i) = if *c.add(i) != 0 { *a.add(i) } else { *b.add(i) };
        }
    }
}
