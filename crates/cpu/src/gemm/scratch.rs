//! Memory for packed operands, kept by each thread from product to product.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use crate::alloc;

/// A block of bytes that goes back to the allocator with its thread.
struct Scratch {
    block: Option<(NonNull<u8>, usize)>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some((ptr, bytes)) = self.block.take() {
            // SAFETY: allocated by `ensure` with this size.
            unsafe { alloc::deallocate(ptr, bytes) }
        }
    }
}

/// More than this is not kept after use.
const KEPT: usize = 8 << 20;

thread_local! {
    static SCRATCH: Cell<Scratch> = const { Cell::new(Scratch { block: None }) };
}

impl Scratch {
    fn ensure(&mut self, bytes: usize) -> *mut u8 {
        if let Some((ptr, held)) = self.block
            && held >= bytes
        {
            return ptr.as_ptr();
        }
        *self = Scratch { block: None };
        match alloc::allocate(bytes) {
            Ok(ptr) => {
                self.block = Some((ptr, bytes));
                ptr.as_ptr()
            }
            // A few megabytes at most: as when any other small thing can't be allocated.
            Err(_) => handle_alloc_error(Layout::new::<u8>()),
        }
    }
}

/// Calls `f` with `bytes` bytes of scratch memory, aligned to 64.
pub(super) fn with<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    if bytes == 0 {
        return f(std::ptr::without_provenance_mut(alloc::ALIGNMENT));
    }
    // Taken out while in use: a nested call would find nothing and allocate.
    let mut scratch = SCRATCH.try_with(|cell| cell.replace(Scratch { block: None })).unwrap_or(Scratch { block: None });
    let result = f(scratch.ensure(bytes));
    if bytes <= KEPT {
        let _ = SCRATCH.try_with(|cell| cell.set(scratch));
    }
    result
}
