//! The dimensions of a reduction, those that are kept apart from those that are reduced.

use crate::exec::iterate::Space;
use flambeau_base::{Dims, Strides};
use flambeau_engine::backend::{Operand, Reduce};
use smallvec::SmallVec;

/// A reduction's dimensions. Strides are in elements.
pub struct Split {
    /// Sizes of the kept dimensions.
    pub kept_sizes: Dims,
    /// Strides of the inputs in them.
    pub kept_strides: SmallVec<[Strides; 2]>,
    /// Strides of the outputs in them.
    pub output_strides: SmallVec<[Strides; 2]>,
    /// Sizes of the reduced dimensions.
    pub reduced_sizes: Dims,
    /// Strides of the inputs in them, and last the steps of an element's number in row-major order.
    pub reduced_strides: SmallVec<[Strides; 3]>,
}

impl Split {
    /// Takes the dimensions apart.
    pub fn new(call: &Reduce) -> Split {
        let of = |values: &[isize], reduced: bool| -> Strides { pick(call.reduced, reduced).map(|d| values[d]).collect() };
        let reduced_sizes: Dims = pick(call.reduced, true).map(|d| call.sizes[d]).collect();
        let mut reduced_strides: SmallVec<[Strides; 3]> = call.inputs.iter().map(|i| of(i.strides, true)).collect();
        reduced_strides.push(contiguous(&reduced_sizes));
        Split {
            kept_sizes: pick(call.reduced, false).map(|d| call.sizes[d]).collect(),
            kept_strides: call.inputs.iter().map(|i| of(i.strides, false)).collect(),
            output_strides: call.outputs.iter().map(|o| of(o.strides, false)).collect(),
            reduced_sizes,
            reduced_strides,
        }
    }

    /// Whether the dimension in which the inputs' elements are nearest to each other is kept.
    pub fn keeps_fastest(&self) -> bool {
        let least =
            |sizes: &[usize], strides: &[isize]| sizes.iter().zip(strides).filter(|(n, s)| **n > 1 && **s != 0).map(|(_, s)| s.abs()).min();
        for (kept, reduced) in self.kept_strides.iter().zip(&self.reduced_strides) {
            match (least(&self.kept_sizes, kept), least(&self.reduced_sizes, reduced)) {
                (Some(k), Some(r)) => return k < r,
                (Some(_), None) => return true,
                (None, Some(_)) => return false,
                (None, None) => {}
            }
        }
        false
    }

    /// The kept dimensions in row-major order, with the inputs as operands; offsets are in bytes.
    pub fn kept_space(&self, call: &Reduce) -> Space {
        let mut sizes = self.kept_sizes.clone();
        let bytes =
            |(strides, input): (&Strides, &Operand)| -> Strides { strides.iter().map(|s| s * input.dtype.size() as isize).collect() };
        let mut strides: SmallVec<[Strides; 4]> = self.kept_strides.iter().zip(call.inputs).map(bytes).collect();
        if sizes.is_empty() {
            sizes.push(1);
            strides.iter_mut().for_each(|s| s.push(0));
        }
        Space { numel: sizes.iter().product(), sizes, strides }
    }

    /// The kept dimensions as the inputs lie in memory; the last operand is the number of the accumulator, a byte each.
    pub fn kept_space_in_memory_order(&self, call: &Reduce) -> Space {
        let dense = self.contiguous_kept_strides();
        let inputs = self.kept_strides.iter().zip(call.inputs).map(|(s, i)| (&s[..], i.dtype.size()));
        let operands: SmallVec<[(&[isize], usize); 3]> = inputs.chain([(&dense[..], 1)]).collect();
        Space::new(&self.kept_sizes, &operands)
    }

    /// The reduced dimensions as the inputs lie in memory; the last operand is the number of the element, a byte each.
    pub fn reduced_space(&self, call: &Reduce) -> Space {
        let sizes = call.inputs.iter().map(|i| i.dtype.size()).chain([1]);
        let operands: SmallVec<[(&[isize], usize); 3]> = self.reduced_strides.iter().map(|s| &s[..]).zip(sizes).collect();
        Space::new(&self.reduced_sizes, &operands)
    }

    /// Strides of accumulators that lie one after the other.
    pub fn contiguous_kept_strides(&self) -> Strides {
        contiguous(&self.kept_sizes)
    }
}

/// Whether an output has its elements one after the other.
pub fn is_dense(call: &Reduce, output: &Operand) -> bool {
    let mut step = 1;
    pick(call.reduced, false).map(|d| (call.sizes[d], output.strides[d])).rev().all(|(n, stride)| {
        let fits = n == 1 || stride == step;
        step *= n as isize;
        fits
    })
}

fn pick(reduced: &[bool], which: bool) -> impl DoubleEndedIterator<Item = usize> + '_ {
    (0..reduced.len()).filter(move |&d| reduced[d] == which)
}

fn contiguous(sizes: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, sizes.len());
    let mut step = 1;
    for (s, &n) in strides.iter_mut().zip(sizes).rev() {
        *s = step;
        step *= n as isize;
    }
    strides
}
