//! Loops over values and the elements that they meet.

use flambeau_engine::backend::Indexing;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A dimension of the values, with every operand's step along it.
pub(super) struct Dim {
    pub size: usize,
    pub tensor: isize,
    values: isize,
    indices: SmallVec<[isize; 2]>,
}

impl Dim {
    fn picks(&self) -> bool {
        self.indices.iter().any(|&s| s != 0)
    }
}

/// An index tensor.
#[derive(Clone, Copy)]
struct Index {
    ptr: *const i64,
    size: usize,
    step: isize,
    wraps: bool,
}

impl Index {
    /// Where the place lies from the first one, or nothing where there is no such place.
    #[inline(always)]
    fn resolve(self, i: i64) -> Option<isize> {
        let i = if i < 0 && self.wraps { i + self.size as i64 } else { i };
        ((i as u64) < self.size as u64).then(|| i as isize * self.step)
    }
}

/// A call made ready.
pub(super) struct Sweep<'a> {
    /// Dimensions from the outermost, neighbours put together where all operands allow it.
    pub dims: SmallVec<[Dim; 4]>,
    tensor: *mut u8,
    values: *mut u8,
    indices: SmallVec<[Index; 2]>,
    bad: &'a AtomicBool,
}

// SAFETY: the pointers are the caller's for the time of the call, and parts of it touch different elements.
unsafe impl Sync for Sweep<'_> {}

/// What one thread does: a range of one dimension, or the places in one range of the tensor.
pub(super) struct Part {
    sizes: SmallVec<[usize; 4]>,
    tensor: isize,
    values: isize,
    indices: SmallVec<[isize; 2]>,
    places: Option<Range<usize>>,
}

impl Part {
    /// Everything.
    pub fn whole(s: &Sweep) -> Part {
        let sizes = s.dims.iter().map(|d| d.size).collect();
        Part { sizes, tensor: 0, values: 0, indices: SmallVec::from_elem(0, s.indices.len()), places: None }
    }

    /// A range of dimension `i`.
    pub fn of_dim(s: &Sweep, i: usize, range: Range<usize>) -> Part {
        let mut part = Part::whole(s);
        let (dim, start) = (&s.dims[i], range.start as isize);
        part.sizes[i] = range.len();
        part.tensor = dim.tensor * start;
        part.values = dim.values * start;
        part.indices = dim.indices.iter().map(|&x| x * start).collect();
        part
    }

    /// Values whose indices name places in a range, counted by the steps of the indices alone.
    pub fn of_range(s: &Sweep, places: Range<usize>) -> Part {
        Part { places: Some(places), ..Part::whole(s) }
    }
}

impl<'a> Sweep<'a> {
    pub fn new(call: &Indexing, bad: &'a AtomicBool) -> Sweep<'a> {
        let mut dims: SmallVec<[Dim; 4]> = SmallVec::new();
        for (d, &size) in call.sizes.iter().enumerate().filter(|(_, n)| **n != 1) {
            let next = Dim {
                size,
                tensor: call.tensor.strides[d],
                values: call.values.strides[d],
                indices: call.indices.iter().map(|i| i.memory.strides[d]).collect(),
            };
            let n = size as isize;
            match dims.last_mut() {
                Some(o)
                    if o.tensor == next.tensor * n
                        && o.values == next.values * n
                        && o.indices.iter().zip(&next.indices).all(|(a, b)| *a == b * n) =>
                {
                    *o = Dim { size: o.size * size, ..next };
                }
                _ => dims.push(next),
            }
        }
        let indices =
            call.indices.iter().map(|i| Index { ptr: i.memory.ptr.cast(), size: i.size, step: i.step, wraps: call.wraps }).collect();
        Sweep { dims, tensor: call.tensor.ptr, values: call.values.ptr, indices, bad }
    }

    /// How far the indices reach, in elements of the tensor.
    pub fn span(&self) -> usize {
        self.indices.iter().map(|i| (i.size - 1) * i.step.unsigned_abs()).sum::<usize>() + 1
    }

    /// Calls `meet(element, value)` for each value of a part, in row-major order. `copies` says that it copies, and
    /// whether to the element.
    ///
    /// # Safety
    /// The call's pointers are valid for all that its sizes, strides and indices in range reach, and `T` is their type.
    pub unsafe fn run<T: Copy>(&self, part: &Part, meet: impl Fn(*mut T, *mut T) + Copy, copies: Option<bool>) {
        let (tensor, values) = (self.tensor.cast::<T>(), self.values.cast::<T>());
        let outer = self.dims.len().saturating_sub(1);
        let rows: usize = part.sizes[..outer].iter().product();
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer);
        let (mut t, mut v, mut i) = (part.tensor, part.values, part.indices.clone());
        for _ in 0..rows {
            // SAFETY: offsets follow sizes and strides; see the caller's duty.
            unsafe { self.row(part, tensor.wrapping_offset(t), values.wrapping_offset(v), &i, meet, copies) };
            for d in (0..outer).rev() {
                let dim = &self.dims[d];
                at[d] += 1;
                let steps = if at[d] < part.sizes[d] { 1 } else { 1 - part.sizes[d] as isize };
                t += dim.tensor * steps;
                v += dim.values * steps;
                for (i, s) in i.iter_mut().zip(&dim.indices) {
                    *i += s * steps;
                }
                if steps == 1 {
                    break;
                }
                at[d] = 0;
            }
        }
    }

    /// The innermost dimension.
    unsafe fn row<T: Copy>(
        &self,
        part: &Part,
        tensor: *mut T,
        values: *mut T,
        i: &[isize],
        meet: impl Fn(*mut T, *mut T) + Copy,
        copies: Option<bool>,
    ) {
        // SAFETY: the caller's.
        unsafe {
            match (self.dims.last(), part.sizes.last()) {
                (Some(dim), Some(&n)) if dim.picks() => self.picked(part, dim, n, tensor, values, i, meet),
                (Some(dim), Some(&n)) => {
                    let Some(place) = self.place(part, i, |_| 0, 0) else { return };
                    kept(n, tensor.wrapping_offset(place), dim.tensor, values, dim.values, meet, copies);
                }
                _ => {
                    let Some(place) = self.place(part, i, |_| 0, 0) else { return };
                    meet(tensor.wrapping_offset(place), values);
                }
            }
        }
    }

    /// Where indices `j` steps on in the innermost dimension point; nothing where that is another thread's or nowhere.
    #[inline(always)]
    unsafe fn place(&self, part: &Part, i: &[isize], step: impl Fn(usize) -> isize, j: isize) -> Option<isize> {
        let mut place = 0;
        for (k, index) in self.indices.iter().enumerate() {
            // SAFETY: the caller's.
            let i = unsafe { *index.ptr.offset(i[k] + j * step(k)) };
            match index.resolve(i) {
                Some(p) => place += p,
                None => {
                    self.bad.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
        match &part.places {
            Some(range) if !range.contains(&(place as usize)) => None,
            _ => Some(place),
        }
    }

    #[inline(always)]
    unsafe fn picked<T: Copy>(
        &self,
        part: &Part,
        dim: &Dim,
        n: usize,
        tensor: *mut T,
        values: *mut T,
        i: &[isize],
        meet: impl Fn(*mut T, *mut T) + Copy,
    ) {
        if let [index] = &self.indices[..] {
            let places = part.places.clone().unwrap_or(0..usize::MAX);
            // SAFETY: the caller's.
            return unsafe { picked_by_one(*index, i[0], dim, n, tensor, values, meet, places, self.bad) };
        }
        for j in 0..n as isize {
            // SAFETY: the caller's: a place that is there lies in the tensor.
            unsafe {
                if let Some(place) = self.place(part, i, |k| dim.indices[k], j) {
                    meet(tensor.wrapping_offset(place + j * dim.tensor), values.wrapping_offset(j * dim.values));
                }
            }
        }
    }
}

/// The common case: one index tensor.
#[inline(always)]
unsafe fn picked_by_one<T: Copy>(
    index: Index,
    first: isize,
    dim: &Dim,
    n: usize,
    tensor: *mut T,
    values: *mut T,
    meet: impl Fn(*mut T, *mut T),
    places: Range<usize>,
    bad: &AtomicBool,
) {
    let at = index.ptr.wrapping_offset(first);
    let (ti, vi, ii) = (dim.tensor, dim.values, dim.indices[0]);
    let (low, length) = (places.start, places.len());
    let mut wrong = false;
    for j in 0..n as isize {
        // SAFETY: the caller's: inside the index tensor and the values, and a place that is there lies in the tensor.
        unsafe {
            match index.resolve(*at.offset(j * ii)) {
                Some(place) if (place as usize).wrapping_sub(low) < length => meet(tensor.offset(place + j * ti), values.offset(j * vi)),
                Some(_) => {}
                None => wrong = true,
            }
        }
    }
    if wrong {
        bad.store(true, Ordering::Relaxed);
    }
}

/// A dimension that indices do not vary along.
unsafe fn kept<T: Copy>(
    n: usize,
    tensor: *mut T,
    ts: isize,
    values: *mut T,
    vs: isize,
    meet: impl Fn(*mut T, *mut T),
    copies: Option<bool>,
) {
    // SAFETY: the caller's; values and tensor do not overlap, the engine sees to that.
    unsafe {
        match copies {
            Some(true) if ts == 1 && vs == 1 => return std::ptr::copy_nonoverlapping(values, tensor, n),
            Some(false) if ts == 1 && vs == 1 => return std::ptr::copy_nonoverlapping(tensor, values, n),
            _ => {}
        }
        if ts == 1 && vs == 1 {
            for j in 0..n {
                meet(tensor.add(j), values.add(j));
            }
        } else {
            for j in 0..n as isize {
                meet(tensor.offset(j * ts), values.offset(j * vs));
            }
        }
    }
}
