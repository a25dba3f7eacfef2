//! Few elements that lie in memory as they are reduced: nothing to be set up.

use super::fold::Columns;
use super::{Accumulators, CHUNK, TILE};
use crate::exec::step::is_native;
use flambeau_engine::backend::Reduce;

/// Short rows, one behind the other, each reduced to one result.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    number: usize,
    length: usize,
}

impl Rows {
    /// The rows of a call on one input whose elements are folded as they are, if that is what it asks for.
    pub(super) fn of(call: &Reduce, direct: Option<usize>, accumulators: &Accumulators) -> Option<Rows> {
        let (Some(0), [input]) = (direct, call.inputs) else { return None };
        let mut rows = Rows { number: 1, length: 1 };
        let mut step = 1;
        for ((&n, &stride), &reduced) in call.sizes.iter().zip(input.strides).zip(call.reduced).rev() {
            if n == 1 {
                continue;
            }
            if stride != step || n == 0 || reduced && rows.number > 1 {
                return None;
            }
            step *= n as isize;
            *(if reduced { &mut rows.length } else { &mut rows.number }) *= n;
        }
        let few = rows.length <= TILE && rows.number * rows.length <= CHUNK / 2;
        (few && is_native(accumulators.dtypes[0])).then_some(rows)
    }

    /// Folds them into the accumulators, to the bits that [`super::inner`] gives.
    ///
    /// # Safety
    /// NOTE [kernel contract] of the engine; each place has room for as many results as there are rows.
    pub(super) unsafe fn fold(self, call: &Reduce, accumulators: &Accumulators, places: &[*mut u8]) {
        let second = places.get(1).copied().unwrap_or(std::ptr::null_mut());
        let columns = Columns { value: places[0], second, count: self.length };
        let step = self.length * accumulators.class.size();
        // SAFETY: the caller's; only what keeps a second accumulator writes one.
        unsafe { (accumulators.folder.each)(call.inputs[0].ptr, step as isize, self.number, self.length, &columns) };
    }
}
