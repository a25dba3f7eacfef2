//! Whether a tensor may be written in place, and whether memory overlaps.

use super::Tensor;
use flambeau_base::{Error, Result, show};

/// How the memory of two tensors lies to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overlap {
    /// Not at all.
    None,
    /// The very same elements at the same places.
    Same,
    /// In part, or in another order (or it was too costly to tell).
    Partial,
}

/// Compares by address ranges: views with gaps that interleave count as overlapping.
pub(crate) fn overlap(a: &Tensor, b: &Tensor) -> Overlap {
    if a.device().is_meta() || b.device().is_meta() || a.numel() == 0 || b.numel() == 0 {
        return Overlap::None;
    }
    let range = |t: &Tensor| {
        let base = t.storage().ptr() as usize;
        let size = t.dtype().size();
        (base + t.layout().offset() * size, base + t.layout().end() * size)
    };
    let ((a0, a1), (b0, b1)) = (range(a), range(b));
    if a1 <= b0 || b1 <= a0 {
        return Overlap::None;
    }
    let same = a0 == b0 && a.dtype() == b.dtype() && a.shape() == b.shape() && a.strides() == b.strides();
    if same { Overlap::Same } else { Overlap::Partial }
}

impl Tensor {
    /// Refuses tensors whose elements share addresses (an expanded tensor): a write there has no order.
    pub(crate) fn check_writable(&self, op: &str) -> Result<()> {
        if self.layout().has_overlap() {
            return Err(Error::runtime(format!(
                "{op}: unsupported operation: more than one element of the written-to tensor refers to a single memory location (shape {}, strides {:?}). Please clone() the tensor before performing the operation.",
                show(self.shape()),
                self.strides()
            )));
        }
        Ok(())
    }
}
