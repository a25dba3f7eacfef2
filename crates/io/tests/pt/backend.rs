//! Memory for tensors; files need no kernels.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use flambeau_base::{DType, DeviceKind, Error, ErrorKind, Result, Scalar};
use flambeau_engine::backend::{Backend, Matmul, Operand, Reduce, Registered, lacking};
use flambeau_engine::ir::Program;

struct Memory;

fn layout(nbytes: usize) -> Result<Layout> {
    Layout::from_size_align(nbytes.max(1), 64).map_err(|e| Error::new(ErrorKind::OutOfMemory, e.to_string()))
}

impl Backend for Memory {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn allocate(&self, nbytes: usize, zeroed: bool) -> Result<NonNull<u8>> {
        let layout = layout(nbytes)?;
        // SAFETY: the size is not zero.
        let ptr = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        NonNull::new(ptr).ok_or_else(|| Error::new(ErrorKind::OutOfMemory, format!("{nbytes} bytes are not there")))
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, nbytes: usize) {
        if let Ok(layout) = layout(nbytes) {
            // SAFETY: the caller's promise: it was allocated with this layout.
            unsafe { dealloc(ptr.as_ptr(), layout) }
        }
    }

    unsafe fn pointwise(&self, _: &Program, _: &[Scalar], _: &[usize], _: &[Operand], _: &[Operand]) -> Result<()> {
        Err(lacking("pointwise", DType::F32, DeviceKind::Cpu))
    }

    unsafe fn reduce(&self, _: &Reduce) -> Result<()> {
        Err(lacking("reduce", DType::F32, DeviceKind::Cpu))
    }

    unsafe fn matmul(&self, _: &Matmul) -> Result<()> {
        Err(lacking("matmul", DType::F32, DeviceKind::Cpu))
    }
}

inventory::submit! { Registered(&Memory) }
