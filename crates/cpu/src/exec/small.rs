//! Calls on few elements that lie one after the other: no dimensions, no tiles, no memory of their own.

use super::gather::by_size;
use super::plan::Plan;
use super::run::{constant_bytes, execute};
use super::step::Class;
use flambeau_base::Scalar;
use flambeau_engine::backend::Operand;
use std::mem::MaybeUninit;

/// Bytes of registers on the stack.
const STACK: usize = 8 << 10;
/// Operands and registers of a call.
const SLOTS: usize = 16;
/// The most elements, so that nothing is taken from the other threads.
const MOST: usize = 4 << 10;

#[repr(align(64))]
struct Registers([MaybeUninit<u8>; STACK]);

/// Runs a plan if it and its operands are simple enough; tells what failed, or nothing where it was not run.
///
/// # Safety
/// NOTE [kernel contract] of the engine.
pub unsafe fn run(plan: &Plan, params: &[Scalar], sizes: &[usize], outputs: &[Operand], inputs: &[Operand]) -> Option<u8> {
    let n: usize = sizes.iter().product();
    let operands = inputs.len() + outputs.len();
    if n > MOST || operands + plan.registers > SLOTS {
        return None;
    }
    let mut slots = [std::ptr::null_mut::<u8>(); SLOTS];
    let mut spread: u32 = 0;
    for (i, operand) in inputs.iter().chain(outputs).enumerate() {
        if !is_contiguous(sizes, operand.strides) {
            if i >= inputs.len() || operand.strides.iter().any(|&s| s != 0) {
                return None;
            }
            spread |= 1 << i;
        }
        slots[i] = operand.ptr;
    }
    let held = plan.registers + spread.count_ones() as usize;
    let width = inputs.iter().map(|o| o.dtype.size()).max().unwrap_or(1).max(plan.width);
    let stride = (n * width).next_multiple_of(64);
    if held * stride > STACK {
        return None;
    }
    let mut registers = Registers([const { MaybeUninit::uninit() }; STACK]);
    let mut next = registers.0.as_mut_ptr().cast::<u8>();
    for slot in &mut slots[operands..operands + plan.registers] {
        *slot = next;
        next = next.wrapping_add(stride);
    }
    // SAFETY: each register holds `n` elements of its class; the operands are as the caller promises.
    unsafe {
        for (slot, constant) in slots[operands..].iter().zip(&plan.constants) {
            let bytes = constant_bytes(constant.dtype(), constant.value(params));
            fill(*slot, bytes.as_ptr().cast(), Class::of(constant.dtype()).size(), n);
        }
        while spread != 0 {
            let i = spread.trailing_zeros() as usize;
            fill(next, slots[i], inputs[i].dtype.size(), n);
            slots[i] = next;
            next = next.wrapping_add(stride);
            spread &= spread - 1;
        }
        Some(execute(&plan.code, &slots, n))
    }
}

#[inline]
fn is_contiguous(sizes: &[usize], strides: &[isize]) -> bool {
    let mut step = 1;
    for (&n, &s) in sizes.iter().zip(strides).rev() {
        if s != step && n != 1 {
            return false;
        }
        step *= n as isize;
    }
    true
}

/// Writes an element `n` times.
///
/// # Safety
/// `from` is an element of `size` bytes, and `to` has room for `n`.
pub unsafe fn fill(to: *mut u8, from: *const u8, size: usize, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        by_size!(size, T => {
            let x = from.cast::<T>().read_unaligned();
            std::slice::from_raw_parts_mut(to.cast::<T>(), n).fill(x);
        });
    }
}
