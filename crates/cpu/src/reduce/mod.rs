//! Reductions: tiles of a program's results folded, and the partial results put together pairwise.
//!
//! NOTE [order of a sum]: the reduced elements are walked in the order in which the inputs lie in memory. Where
//! the fastest dimension is reduced ([`inner`]), tiles of [`TILE`] elements are folded; where it is kept
//! ([`outer`]), groups of [`GROUP`] elements, in all columns at once. Tiles and groups are put together as a
//! binary tree over their numbers. Threads share out kept elements and whole subtrees. So the result is a
//! function of sizes, reduced dimensions and strides.

mod cascade;
mod fold;
mod inner;
mod outer;
mod rows;
mod shape;

use crate::exec::kernels;
use crate::exec::plan::Plan;
use crate::exec::run::{Call, Scratch};
use crate::exec::step::Class;
use crate::exec::{prepared, prepared_for_results, prepared_for_truths};
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::{Combine, Operand, Reduce, lacking};
use fold::{Columns, Folder};
use rows::Rows;
use shape::Split;
use smallvec::{SmallVec, smallvec};

/// Elements to a tile.
const TILE: usize = 1024;
/// Rows to a group.
const GROUP: usize = 16;
/// Elements that are worth another thread, a power of two times [`TILE`].
const CHUNK: usize = 64 * TILE;

/// Runs a reduction; see `Backend::reduce`.
///
/// # Safety
/// NOTE [kernel contract] of the engine.
pub unsafe fn reduce(call: &Reduce) -> Result<()> {
    let truth = matches!(call.combine, Combine::Any | Combine::All);
    let plan = if truth { prepared_for_truths(call.program)? } else { prepared_for_results(call.program)? };
    let finish = prepared(call.finish)?;
    let element = call.program.output_dtypes()[0];
    let Some(accumulators) = Accumulators::of(call.combine, element) else {
        return Err(lacking(&format!("{:?}", call.combine).to_lowercase(), element, DeviceKind::Cpu));
    };
    let kept: usize = call.sizes.iter().zip(call.reduced).filter(|(_, reduced)| !**reduced).map(|(n, _)| n).product();
    if kept == 0 {
        return Ok(());
    }
    let rows = Rows::of(call, direct(plan, call), &accumulators);
    let in_place = call.finish.is_identity() && call.outputs[0].dtype == accumulators.dtypes[0] && shape::is_dense(call, &call.outputs[0]);
    if let (Some(rows), true) = (rows, in_place) {
        // SAFETY: the caller's.
        unsafe { rows.fold(call, &accumulators, &[call.outputs[0].ptr]) };
        return Ok(());
    }
    let split = Split::new(call);
    let out_of_memory = |e: crate::alloc::OutOfMemory| flambeau_base::Error::runtime(e.to_string());
    let mut places: SmallVec<[*mut u8; 2]> = SmallVec::new();
    let mut memory: SmallVec<[Scratch; 2]> = SmallVec::new();
    if in_place {
        places.push(call.outputs[0].ptr);
    } else {
        for dtype in &accumulators.dtypes {
            let scratch = Scratch::new(kept.saturating_mul(dtype.size())).map_err(out_of_memory)?;
            places.push(scratch.ptr());
            memory.push(scratch);
        }
    }
    // SAFETY: the caller's; the accumulators hold `kept` elements each.
    unsafe {
        match rows {
            Some(rows) => rows.fold(call, &accumulators, &places),
            None => Job { plan, call, split: &split, accumulators: &accumulators, places: &places, kept }.run()?,
        }
    }
    if in_place {
        return Ok(());
    }
    let strides = split.contiguous_kept_strides();
    let inputs: SmallVec<[Operand; 2]> =
        places.iter().zip(&accumulators.dtypes).map(|(&ptr, &dtype)| Operand { ptr, dtype, strides: &strides }).collect();
    let outputs: SmallVec<[Operand; 2]> =
        call.outputs.iter().zip(&split.output_strides).map(|(o, strides)| Operand { strides, ..*o }).collect();
    // SAFETY: as above.
    unsafe { Call::new(finish, call.finish_params, &split.kept_sizes, &outputs, &inputs).run() }
}

/// A reduction under way.
struct Job<'a> {
    plan: &'a Plan,
    call: &'a Reduce<'a>,
    split: &'a Split,
    accumulators: &'a Accumulators,
    /// Where each accumulator's elements are, one after the other.
    places: &'a [*mut u8],
    kept: usize,
}

// SAFETY: the pointers are those of a kernel call; threads write different accumulators.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Fills the accumulators.
    ///
    /// # Safety
    /// NOTE [kernel contract] of the engine; the places have `kept` elements each.
    unsafe fn run(&self) -> Result<()> {
        let reduced = self.split.reduced_space(self.call);
        // SAFETY: the caller's.
        unsafe {
            if reduced.numel == 0 {
                let mut identity = self.accumulators.folder.identity;
                let columns = identity.columns();
                (0..self.kept).for_each(|i| self.accumulators.put(self.places, i, 1, &columns, 1));
                Ok(())
            } else if self.split.keeps_fastest() {
                outer::Outer::new(self, reduced).run()
            } else {
                inner::Inner::new(self, reduced).run()
            }
        }
    }

    /// Number of inputs.
    fn inputs(&self) -> usize {
        self.call.inputs.len()
    }
}

/// The input whose elements are folded as they lie in memory, if the program does nothing to them.
fn direct(plan: &Plan, call: &Reduce) -> Option<usize> {
    let source = plan.results[0] as usize;
    (plan.code.is_empty() && source < call.inputs.len()).then_some(source)
}

/// What a combination keeps, and how.
struct Accumulators {
    dtypes: SmallVec<[DType; 2]>,
    /// The class in which elements are folded.
    class: Class,
    folder: Folder,
    combine: Combine,
}

impl Accumulators {
    /// None where that has no meaning for the dtype.
    fn of(combine: Combine, element: DType) -> Option<Accumulators> {
        let truth = matches!(combine, Combine::Any | Combine::All);
        let class = if truth { Class::Bool } else { Class::of(element) };
        let dtypes = match combine {
            Combine::ArgMax | Combine::ArgMin => smallvec![element, DType::I64],
            Combine::Moments => smallvec![element, element],
            Combine::Any | Combine::All => smallvec![DType::Bool],
            _ => smallvec![element],
        };
        Some(Accumulators { dtypes, class, folder: fold::folder(combine, class)?, combine })
    }

    /// Bytes of what is kept beside a value in [`Columns`].
    fn second_size(&self) -> usize {
        match self.combine {
            Combine::ArgMax | Combine::ArgMin => 8,
            Combine::Moments => self.class.size(),
            _ => 0,
        }
    }

    /// Whether places are asked for.
    fn has_places(&self) -> bool {
        matches!(self.combine, Combine::ArgMax | Combine::ArgMin)
    }

    /// Writes the finished results of `n` columns as elements `at`, `at + step`, ... of the accumulators.
    ///
    /// # Safety
    /// The places have those elements.
    unsafe fn put(&self, places: &[*mut u8], at: usize, step: isize, columns: &Columns, n: usize) {
        let sizes = [self.class.size(), self.second_size()];
        let class_of_second = if self.has_places() { DType::I64 } else { self.dtypes[self.dtypes.len() - 1] };
        for (j, &place) in places.iter().enumerate() {
            let dtype = if j == 0 { self.dtypes[0] } else { class_of_second };
            let from = if j == 0 { columns.value } else { columns.second };
            let store = kernels::store(dtype);
            let to = |i: isize| place.wrapping_offset((at as isize + i * step) * dtype.size() as isize);
            // SAFETY: the caller's; what is stored is held as the dtype's class holds it.
            unsafe {
                if step == 1 || n == 1 {
                    store(to(0), [from.cast_const(); 3], n);
                } else {
                    (0..n).for_each(|i| store(to(i as isize), [from.wrapping_add(i * sizes[j]).cast_const(); 3], 1));
                }
            }
        }
    }
}
