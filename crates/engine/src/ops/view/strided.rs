//! Views by strides: any layout over a storage, and sliding windows.

use super::window::embed;
use super::{View, view};
use crate::Tensor;
use crate::autograd::OutputInfo;
use crate::ops::table::{Op, view_row};
use crate::tensor::for_each_offset;
use flambeau_base::{Dims, Error, Layout, Result, Strides, show, wrap_dim};

/// Any sizes, strides and offset inside the storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsStrided {
    /// Sizes.
    pub sizes: Dims,
    /// Strides in elements.
    pub strides: Strides,
    /// Index in the storage of the first element.
    pub offset: usize,
    /// The layout of the tensor that it was made of, to find the same elements in another such tensor.
    pub origin: Layout,
}

impl AsStrided {
    /// The view that is of one layout, of a tensor of another.
    pub(crate) fn onto(layout: &Layout, origin: &Layout) -> AsStrided {
        let (sizes, strides) = (Dims::from_slice(layout.sizes()), Strides::from_slice(layout.strides()));
        AsStrided { sizes, strides, offset: layout.offset(), origin: origin.clone() }
    }

    /// The index in the storage of `input` of the first element.
    fn offset_in(&self, input: &Layout) -> Result<usize> {
        let same = input.sizes() == self.origin.sizes() && input.strides() == self.origin.strides();
        if !same && input.numel() > 0 {
            return Err(Error::runtime(format!(
                "as_strided: the view was made of a tensor of strides {:?} and cannot be made again of one of strides {:?}",
                self.origin.strides(),
                input.strides()
            )));
        }
        (self.offset + input.offset())
            .checked_sub(self.origin.offset())
            .ok_or_else(|| Error::runtime("as_strided: the view begins before the tensor that it is made of"))
    }
}

impl View for AsStrided {
    const NAME: &'static str = "as_strided";
    const BY_STRIDES: bool = true;

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let layout = Layout::strided("as_strided", &self.sizes, &self.strides, self.offset_in(input.layout())?)?;
        Tensor::check_bounds("as_strided", input.storage(), &layout, input.dtype())?;
        Ok(layout)
    }

    /// Gradients are added where elements lie, and read where the input's elements lie; an element of
    /// memory that several elements of the input share gives each of them an equal part.
    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        let out = Layout::strided("as_strided", &self.sizes, &self.strides, self.offset)?;
        let origin = &self.origin;
        if origin.numel() == 0 || out.numel() == 0 {
            return Tensor::zeros(&input.sizes, grad.dtype(), grad.device());
        }
        let start = out.offset().min(origin.offset());
        let size = out.end().max(origin.end()) - start;
        let (out, origin) = (shifted(&out, start), shifted(origin, start));
        let memory = if out.has_overlap() {
            let zeros = Tensor::zeros(&[size], grad.dtype(), grad.device())?;
            zeros.index_add(0, &positions(&out)?, &grad.reshape(&[-1])?)?
        } else {
            embed(over_memory(&out, size)?, grad, &[size])?
        };
        let memory = if origin.has_overlap() {
            let counts = Tensor::zeros(&[size], grad.dtype(), grad.device())?;
            let ones = Tensor::full(&[origin.numel()], 1.0, grad.dtype(), grad.device())?;
            memory.div(&counts.index_add(0, &positions(&origin)?, &ones)?)?
        } else {
            memory
        };
        view(over_memory(&origin, size)?, &memory)
    }
}

fn shifted(l: &Layout, by: usize) -> Layout {
    l.clone().with_offset(l.offset() - by)
}

/// A layout as a view of so many elements of memory.
fn over_memory(l: &Layout, size: usize) -> Result<AsStrided> {
    Ok(AsStrided {
        sizes: Dims::from_slice(l.sizes()),
        strides: Strides::from_slice(l.strides()),
        offset: l.offset(),
        origin: Layout::contiguous(&[size])?,
    })
}

/// Where each element lies, in row-major order.
fn positions(l: &Layout) -> Result<Tensor> {
    let mut at = Vec::with_capacity(l.numel());
    for_each_offset(l, |o| at.push(l.offset() as i64 + o as i64));
    Tensor::from_slice(&at, &[at.len()])
}

/// Windows of a dimension that slide along it, as a new last dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unfold {
    /// The dimension.
    pub dim: usize,
    /// Length of a window.
    pub size: usize,
    /// From one window to the next.
    pub step: usize,
}

impl View for Unfold {
    const NAME: &'static str = "unfold";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let l = input.layout();
        let (mut sizes, mut strides) = (Dims::from_slice(l.sizes()), Strides::from_slice(l.strides()));
        if l.ndim() == 0 {
            sizes.push(self.size);
            strides.push(1);
            return Layout::strided("unfold", &sizes, &strides, l.offset());
        }
        sizes.push(self.size);
        strides.push(l.strides()[self.dim]);
        sizes[self.dim] = (l.sizes()[self.dim] - self.size) / self.step + 1;
        strides[self.dim] = strides[self.dim].saturating_mul(self.step as isize);
        Layout::strided("unfold", &sizes, &strides, l.offset())
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        if self.step >= self.size {
            return embed(self.clone(), grad, &input.sizes);
        }
        // Windows overlap: each element of a window is added where it came from.
        let dim = self.dim as i64;
        let zeros = Tensor::zeros(&input.sizes, grad.dtype(), grad.device())?;
        let count = grad.shape()[self.dim];
        let at: Vec<i64> = (0..count).flat_map(|w| (0..self.size).map(move |i| (w * self.step + i) as i64)).collect();
        let flat = grad.movedim(&[-1], &[dim + 1])?.flatten(dim, dim + 1)?;
        zeros.index_add(dim, &Tensor::from_slice(&at, &[at.len()])?, &flat)
    }
}

impl Tensor {
    /// A view of the storage with any sizes and strides, from `offset` (that of this tensor, where there is none) on.
    ///
    /// `RuntimeError` where it would leave the storage or a stride is negative.
    pub fn as_strided(&self, sizes: &[usize], strides: &[isize], offset: Option<usize>) -> Result<Tensor> {
        let offset = offset.unwrap_or(self.layout().offset());
        // Lengths and signs are looked at before anything is made of them.
        Layout::strided("as_strided", sizes, strides, offset)?;
        view(
            AsStrided { sizes: Dims::from_slice(sizes), strides: Strides::from_slice(strides), offset, origin: self.layout().clone() },
            self,
        )
    }

    /// A view of the windows of `size` elements of a dimension, `step` apart, as a new last dimension.
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<Tensor> {
        let d = wrap_dim("unfold", dim, self.ndim())?;
        let have = if self.ndim() == 0 { 1 } else { self.shape()[d] };
        if size < 0 || size as usize > have {
            return Err(Error::runtime(format!(
                "unfold: maximum size for tensor at dimension {d} is {have} but size is {size} (shape {})",
                show(self.shape())
            )));
        }
        if step <= 0 {
            return Err(Error::runtime(format!("unfold: step is {step} but must be > 0")));
        }
        view(Unfold { dim: d, size: size as usize, step: step as usize }, self)
    }
}

/// Sizes and strides of a call, as they are held. `RuntimeError` for negative ones.
pub(super) fn geometry(op: &str, sizes: &[i64], strides: &[i64], offset: Option<i64>) -> Result<(Dims, Strides, Option<usize>)> {
    let positive = |n: i64| usize::try_from(n).map_err(|_| Error::runtime(format!("{op}: sizes must not be negative, got {sizes:?}")));
    let offset =
        offset.map(|o| usize::try_from(o).map_err(|_| Error::runtime(format!("{op}: Tensor: invalid storage offset {o}")))).transpose()?;
    Ok((sizes.iter().map(|&n| positive(n)).collect::<Result<_>>()?, strides.iter().map(|&s| s as isize).collect(), offset))
}

pub(super) static OPS: &[Op] = &[
    view_row("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", |a| {
        let (sizes, strides, offset) = geometry("as_strided", &a.ints(1)?, &a.ints(2)?, a.opt_int(3)?)?;
        Ok(a.tensor(0)?.as_strided(&sizes, &strides, offset)?.into())
    })
    .doc("A view of the storage of `self` with any sizes and strides, from element `storage_offset` of the storage on. A RuntimeError where it would leave the storage.")
    .by_layout().samples(&["T(3,4), [2, 2], [4, 1]", "T(3,4), [2, 2], [1, 2], 1", "T(5), [3, 3], [1, 1]"]),
    view_row("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", |a| Ok(a.tensor(0)?.unfold(a.int(1)?, a.int(2)?, a.int(3)?)?.into()))
        .places(crate::ops::table::place::METHOD)
        .doc("A view of the windows of `size` elements of a dimension, `step` apart, as a new last dimension.")
        .samples(&["T(7), 0, 3, 2", "T(2,6), 1, 2, 2", "T(2,5), 1, 3, 1"]),
];
