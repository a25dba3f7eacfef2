//! Where values belong in sorted rows.

use super::key::{Key, with_key};
use crate::pool::parallel_for;
use flambeau_base::{DType, Result};
use flambeau_engine::backend::Search;

struct Shared<'a>(&'a Search<'a>);

// SAFETY: each thread writes places of its own.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    fn call(&self) -> &'a Search<'a> {
        self.0
    }
}

/// Carries out the call.
///
/// # Safety
/// See NOTE [kernel contract] in `backend`.
pub(crate) unsafe fn search(call: &Search) -> Result<()> {
    let shared = Shared(call);
    let shared = &shared;
    with_key!(call.values.dtype, T => {
        parallel_for(call.count, 2048, &|range| {
            for i in range {
                // SAFETY: the caller's.
                unsafe { one::<T>(shared.call(), i) };
            }
        });
        Ok(())
    })
}

unsafe fn one<T: Key>(call: &Search, i: usize) {
    let row = if call.shared { 0 } else { i / call.per_row * call.length };
    let rows = call.rows.ptr.cast::<T>().wrapping_add(row);
    let order = call.order.map(|o| o.ptr.cast::<i64>().wrapping_add(row));
    // SAFETY: the caller's; an order out of range is taken as its nearest place.
    let key = |at: usize| unsafe {
        let at = match order {
            Some(order) => (*order.add(at)).clamp(0, call.length as i64 - 1) as usize,
            None => at,
        };
        (*rows.add(at)).item(false, 0)
    };
    // SAFETY: the caller's.
    let value = unsafe { (*call.values.ptr.cast::<T>().add(i)).item(false, 0) };
    let (mut low, mut high) = (0, call.length);
    while low < high {
        let middle = low + (high - low) / 2;
        let at = key(middle);
        let before = if call.right { at <= value } else { at < value };
        if before { low = middle + 1 } else { high = middle }
    }
    // SAFETY: the caller's.
    unsafe {
        match call.out.dtype {
            DType::I32 => *call.out.ptr.cast::<i32>().add(i) = low as i32,
            _ => *call.out.ptr.cast::<i64>().add(i) = low as i64,
        }
    }
}
