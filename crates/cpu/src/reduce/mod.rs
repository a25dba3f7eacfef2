//! Reductions: tiles of a program's results folded, and the partial results put together pairwise.
//!
//! NOTE [order of a sum]: the reduced elements are walked in the order in which the inputs lie in memory, in
//! tiles of [`TILE`]; tiles are put together as a binary tree over their numbers. Threads share out kept
//! elements and, where there are few of these, whole subtrees of [`CHUNK`] elements. So the result is a function
//! of sizes, reduced dimensions and strides.

mod fold;
mod inner;
mod shape;

use crate::exec::kernels;
use crate::exec::run::{Call, Scratch};
use crate::exec::step::Class;
use crate::exec::{prepared, prepared_for_results};
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::{Combine, Operand, Reduce, lacking};
use fold::{Folder, Partial};
use shape::Split;
use smallvec::{SmallVec, smallvec};

/// Elements to a tile.
const TILE: usize = 1024;
/// Elements that a thread takes at least, a power of two times [`TILE`].
const CHUNK: usize = 64 * TILE;

/// Runs a reduction; see `Backend::reduce`.
///
/// # Safety
/// NOTE [kernel contract] of the engine.
pub unsafe fn reduce(call: &Reduce) -> Result<()> {
    let plan = prepared_for_results(call.program)?;
    let finish = prepared(call.finish)?;
    let element = call.program.output_dtypes()[0];
    let accumulators = Accumulators::of(call.combine, element);
    let Some(folder) = accumulators.folder else {
        return Err(lacking(&format!("{:?}", call.combine).to_lowercase(), element, DeviceKind::Cpu));
    };
    let split = Split::new(call);
    let kept: usize = split.kept_sizes.iter().product();
    if kept == 0 {
        return Ok(());
    }
    let out_of_memory = |e: crate::alloc::OutOfMemory| flambeau_base::Error::runtime(e.to_string());
    let mut places: SmallVec<[*mut u8; 2]> = SmallVec::new();
    let mut memory: SmallVec<[Scratch; 2]> = SmallVec::new();
    let in_place = call.finish.is_identity() && split.output_is_contiguous(0) && call.outputs[0].dtype == accumulators.dtypes[0];
    if in_place {
        places.push(call.outputs[0].ptr);
    } else {
        for dtype in &accumulators.dtypes {
            let scratch = Scratch::new(kept.saturating_mul(dtype.size())).map_err(out_of_memory)?;
            places.push(scratch.ptr());
            memory.push(scratch);
        }
    }
    let job = inner::Job { plan, call, split: &split, folder, accumulators: &accumulators, places: &places, kept };
    // SAFETY: the caller's; the accumulators hold `kept` elements each.
    unsafe { job.run()? };
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

/// What a combination keeps, and how.
struct Accumulators {
    dtypes: SmallVec<[DType; 2]>,
    /// The class in which elements are folded.
    class: Class,
    folder: Option<Folder>,
    combine: Combine,
}

impl Accumulators {
    fn of(combine: Combine, element: DType) -> Accumulators {
        let truth = matches!(combine, Combine::Any | Combine::All);
        let class = if truth { Class::Bool } else { Class::of(element) };
        let dtypes = match combine {
            Combine::ArgMax | Combine::ArgMin => smallvec![element, DType::I64],
            Combine::Moments => smallvec![element, element],
            Combine::Any | Combine::All => smallvec![DType::Bool],
            _ => smallvec![element],
        };
        Accumulators { dtypes, class, folder: fold::folder(combine, class), combine }
    }

    /// Writes a finished partial result as element `i` of the accumulators.
    ///
    /// # Safety
    /// The places have that element.
    unsafe fn put(&self, places: &[*mut u8], i: usize, partial: &Partial) {
        let at = |j: usize| places[j].wrapping_add(i * self.dtypes[j].size());
        let bytes = partial.value.as_ptr().cast::<u8>();
        // SAFETY: the caller's; the value is a register's element of the dtype's class.
        unsafe {
            kernels::store(self.dtypes[0])(at(0), [bytes; 3], 1);
            if places.len() < 2 {
                return;
            }
            match (self.combine, self.class) {
                (Combine::Moments, Class::F32) => kernels::store(self.dtypes[1])(at(1), [(&raw const partial.spread).cast(); 3], 1),
                (Combine::Moments, _) => at(1).cast::<f64>().write(fold::spread_f64(partial)),
                _ => at(1).cast::<i64>().write(partial.place),
            }
        }
    }
}
