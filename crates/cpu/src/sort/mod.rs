//! Sorting, selecting and searching.
//!
//! Elements become unsigned keys whose order is theirs (see [`key`]), and travel with their place in the row: equal
//! keys keep their order, so every sort is stable and a selection does not depend on how much is selected.

mod key;
mod order;
mod search;

pub(crate) use search::search;

use crate::pool::parallel_for;
use flambeau_base::{DType, Error, Result};
use flambeau_engine::backend::Sort;
use key::{Key, with_key};
use order::Item;

/// So many elements are worth handing to another thread.
const GRAIN: usize = 4 * 1024;

/// The call's pointers, shared by threads that write different rows.
struct Shared<'a>(&'a Sort<'a>);

// SAFETY: rows are read and written by one thread each.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    fn call(&self) -> &'a Sort<'a> {
        self.0
    }
}

/// Carries out the call.
///
/// # Safety
/// See NOTE [kernel contract] in `backend`.
pub(crate) unsafe fn sort(call: &Sort) -> Result<()> {
    if call.length > u32::MAX as usize {
        return Err(Error::runtime(format!("sort: a row of {} elements is longer than 4294967295", call.length)));
    }
    let shared = Shared(call);
    let shared = &shared;
    with_key!(call.input.dtype, T => {
        let grain = (GRAIN / call.length.max(1)).max(1);
        parallel_for(call.rows, grain, &|range| {
            let (mut items, mut spare) = (Vec::new(), Vec::new());
            for row in range {
                // SAFETY: the caller's.
                unsafe { sort_row::<T>(shared.call(), row, &mut items, &mut spare) };
            }
        });
        Ok(())
    })
}

unsafe fn sort_row<T: Key>(call: &Sort, row: usize, items: &mut Vec<T::Item>, spare: &mut Vec<T::Item>) {
    let row = row as isize;
    let input = call.input.ptr.cast::<T>().wrapping_offset(row * call.input.strides[0]);
    let step = call.input.strides[1];
    // SAFETY: the caller's.
    let element = |i: usize| unsafe { *input.offset(i as isize * step) };
    let item = |i: usize| T::item(element(i), call.descending, i as u32);
    items.clear();
    if call.count * 8 <= call.length && call.count <= 1024 {
        order::smallest((0..call.length).map(item), call.count, items);
    } else {
        items.extend((0..call.length).map(item));
        if call.count < call.length / 2 {
            items.select_nth_unstable(call.count);
            items.truncate(call.count);
        }
        T::Item::sort(items, spare);
    }
    let values = call.values.ptr.cast::<T>().wrapping_offset(row * call.values.strides[0]);
    let places = call.places.ptr.cast::<i64>().wrapping_offset(row * call.places.strides[0]);
    for (j, item) in items.iter().take(call.count).enumerate() {
        let place = item.place() as usize;
        // SAFETY: the caller's: there is room for `count` elements, and `place` came from the row.
        unsafe {
            *values.offset(j as isize * call.values.strides[1]) = element(place);
            *places.offset(j as isize * call.places.strides[1]) = place as i64;
        }
    }
}

/// Dtypes that have no order.
#[cold]
fn no_order(dtype: DType) -> Error {
    Error::type_error(format!("sort: Sort does not support complex dtypes on CPU: {dtype} has no order"))
}
