//! Programs over lists of dense tensors, as one loop over blocks of their elements.

use super::{pointwise, prepared};
use crate::nn::real::Shared;
use crate::pool::parallel_for;
use flambeau_base::{Error, Result};
use flambeau_engine::backend::{Foreach, Operand};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::OnceLock;

/// Elements of a block of work.
const BLOCK: usize = 32 * 1024;

/// See `Backend::foreach`.
///
/// # Safety
/// The kernel contract.
pub unsafe fn foreach(calls: &[Foreach]) -> Result<()> {
    for call in calls {
        prepared(&call.program)?;
    }
    let failed: OnceLock<Error> = OnceLock::new();
    let shared = Shared(calls);
    let blocks: Vec<(usize, Range<usize>)> = calls
        .iter()
        .enumerate()
        .flat_map(|(i, call)| (0..call.n).step_by(BLOCK).map(move |at| (i, at..(at + BLOCK).min(call.n))))
        .collect();
    let elements: usize = blocks.iter().map(|(_, range)| range.len()).sum();
    // Small tensors make small blocks: so many blocks are worth handing over as hold a full block's elements.
    let grain = (blocks.len() * BLOCK).div_ceil(elements.max(1)).max(1);
    parallel_for(blocks.len(), grain, &|range| {
        for (i, elements) in &blocks[range] {
            let call = &{ &shared }.0[*i];
            // SAFETY: blocks are apart; the rest is the caller's.
            if let Err(error) = unsafe { run(call, elements.clone()) } {
                let _ = failed.set(error);
            }
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Runs a program on a range of its elements.
unsafe fn run(call: &Foreach, range: Range<usize>) -> Result<()> {
    let program = &call.program;
    let inputs: SmallVec<[Operand; 6]> = program
        .inputs
        .iter()
        .zip(&call.inputs)
        .map(|(&dtype, ptr)| Operand { ptr: ptr.cast_mut().wrapping_add(range.start * dtype.size()), dtype, strides: &[1] })
        .collect();
    let outputs: SmallVec<[Operand; 4]> = program
        .output_dtypes()
        .into_iter()
        .zip(&call.outputs)
        .map(|(dtype, ptr)| Operand { ptr: ptr.wrapping_add(range.start * dtype.size()), dtype, strides: &[1] })
        .collect();
    // SAFETY: the caller's: the range is inside the operands.
    unsafe { pointwise(program, &call.numbers, &[range.len()], &outputs, &inputs) }
}
