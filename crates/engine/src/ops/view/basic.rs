//! Views that exchange, insert, drop, cut, repeat and regroup dimensions.

use super::{View, view};
use crate::Tensor;
use crate::autograd::OutputInfo;
use flambeau_base::{Dims, Error, Layout, Result, Strides, numel, show, wrap_dim};
use smallvec::SmallVec;

/// Two dimensions exchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose(pub usize, pub usize);

impl View for Transpose {
    const NAME: &'static str = "transpose";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().transpose(self.0, self.1))
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        view(self.clone(), grad)
    }
}

/// The same elements in the same order under other sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape(pub Dims);

impl View for Reshape {
    const NAME: &'static str = "view";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        input.layout().view(&self.0).ok_or_else(|| {
            Error::runtime(format!(
                "view: view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces): shape {}, strides {:?}, asked for {}. Use .reshape(...) instead.",
                show(input.shape()),
                input.strides(),
                show(&self.0)
            ))
        })
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        grad.reshape_to(&input.sizes)
    }
}

/// Dimensions of size 1 repeated without copying.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expand(pub SmallVec<[i64; 6]>);

impl View for Expand {
    const NAME: &'static str = "expand";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        input.layout().expand("expand", &self.0)
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        grad.sum_to(&input.sizes)
    }
}

/// Any sizes, strides and offset inside the storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsStrided {
    /// Sizes.
    pub sizes: Dims,
    /// Strides in elements.
    pub strides: Strides,
    /// Index in the storage of the first element; that of the input where there is none.
    pub offset: Option<usize>,
}

impl View for AsStrided {
    const NAME: &'static str = "as_strided";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let layout = Layout::strided("as_strided", &self.sizes, &self.strides, self.offset.unwrap_or(input.layout().offset()))?;
        Tensor::check_bounds("as_strided", input.storage(), &layout, input.dtype())?;
        Ok(layout)
    }

    fn transpose(&self, _: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        Err(Error::not_implemented("derivative for as_strided is not implemented"))
    }
}

impl Tensor {
    /// Exchanges two dimensions; negative ones count from the end.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let (a, b) = (wrap_dim("transpose", a, self.ndim())?, wrap_dim("transpose", b, self.ndim())?);
        view(Transpose(a, b), self)
    }

    /// The same elements under other sizes, one of which may be -1. `RuntimeError` where that needs a copy.
    pub fn view(&self, sizes: &[i64]) -> Result<Tensor> {
        view(Reshape(infer_size("view", sizes, self.numel())?), self)
    }

    /// The same elements under other sizes: a view where the strides allow it, else a copy.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        self.reshape_to(&infer_size("reshape", sizes, self.numel())?)
    }

    pub(crate) fn reshape_to(&self, sizes: &[usize]) -> Result<Tensor> {
        if self.layout().view(sizes).is_some() {
            return view(Reshape(Dims::from_slice(sizes)), self);
        }
        view(Reshape(Dims::from_slice(sizes)), &self.copy_in(flambeau_base::MemoryFormat::Contiguous)?)
    }

    /// Repeats dimensions of size 1 (and new leading ones) without copying; -1 keeps a size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        view(Expand(SmallVec::from_slice(sizes)), self)
    }
}

/// Sizes with one -1 filled in.
pub fn infer_size(op: &str, sizes: &[i64], n: usize) -> Result<Dims> {
    let wrong = || Error::runtime(format!("{op}: shape '{sizes:?}' is invalid for input of size {n}"));
    let mut out = Dims::new();
    let mut free = None;
    for (i, &s) in sizes.iter().enumerate() {
        match s {
            -1 if free.is_some() => return Err(Error::runtime(format!("{op}: only one dimension can be inferred, got {sizes:?}"))),
            -1 => free = Some(i),
            s if s < 0 => return Err(Error::runtime(format!("{op}: invalid shape dimension {s} in {sizes:?}"))),
            _ => {}
        }
        out.push(if s < 0 { 1 } else { s as usize });
    }
    let known = numel(&out)?;
    match free {
        Some(_) if known == 0 => Err(Error::runtime(format!(
            "{op}: cannot reshape tensor of {n} elements into shape {sizes:?} because the unspecified dimension size -1 can be any value and is ambiguous"
        ))),
        Some(i) if n % known == 0 => {
            out[i] = n / known;
            Ok(out)
        }
        None if known == n => Ok(out),
        _ => Err(wrong()),
    }
}
