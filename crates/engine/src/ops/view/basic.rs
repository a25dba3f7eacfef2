//! Views that exchange, insert, drop and repeat dimensions.

use super::{View, view};
use crate::Tensor;
use crate::autograd::OutputInfo;
use crate::ops::{OutSpec, Outputs, Primitive};
use crate::transform::vectorize::Batch;
use flambeau_base::{Dims, Layout, Result, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

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

/// A matrix transposed; less than two dimensions stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct T;

impl View for T {
    const NAME: &'static str = "t";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let layout = input.layout();
        Ok(if layout.ndim() < 2 { layout.clone() } else { layout.transpose(0, 1) })
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        view(T, grad)
    }
}

/// Dimensions in another order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permute(pub SmallVec<[usize; 6]>);

impl View for Permute {
    const NAME: &'static str = "permute";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().permute(&self.0))
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        let mut back = SmallVec::from_elem(0, self.0.len());
        for (to, &from) in self.0.iter().enumerate() {
            back[from] = to;
        }
        view(Permute(back), grad)
    }
}

/// The same elements in the same order under other sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The sizes.
    pub sizes: Dims,
    /// Whether the input is a copy that nobody else sees: named as PyTorch names that.
    pub of_copy: bool,
}

impl View for Reshape {
    const NAME: &'static str = "view";

    fn name(&self) -> &'static str {
        if self.of_copy { "unsafe_view" } else { Self::NAME }
    }

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        input.layout().view(&self.sizes).ok_or_else(|| super::regroup::not_viewable(input, &self.sizes))
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        grad.reshape_to(&input.sizes)
    }
}

/// A dimension of size 1 put in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unsqueeze(pub usize);

impl View for Unsqueeze {
    const NAME: &'static str = "unsqueeze";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().unsqueeze(self.0))
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        grad.reshape_to(&input.sizes)
    }
}

/// Dimensions of size 1 taken out, where there are such among those that the bits name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Squeeze(pub u64);

impl View for Squeeze {
    const NAME: &'static str = "squeeze";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().squeeze(|d| self.0 >> d & 1 != 0))
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

/// The same look under another handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias;

impl View for Alias {
    const NAME: &'static str = "alias";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().clone())
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

/// The same memory without history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Detach;

impl Primitive for Detach {
    fn name(&self) -> &'static str {
        "detach"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![OutSpec { layout: inputs[0].layout().clone(), dtype: inputs[0].dtype() }])
    }

    fn compute(&self, _: &[&Tensor], _: &[Tensor]) -> Result<()> {
        Err(super::computes_nothing("detach"))
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        Ok(smallvec![inputs[0].alias()])
    }

    fn differentiable(&self, _: usize) -> bool {
        false
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(self)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(Detach)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// Exchanges two dimensions; negative ones count from the end.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let (a, b) = (wrap_dim("transpose", a, self.ndim())?, wrap_dim("transpose", b, self.ndim())?);
        view(Transpose(a, b), self)
    }

    /// The dimensions in another order: dimension `i` of the result is dimension `dims[i]` of this tensor.
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        view(Permute(self.layout().check_permutation("permute", dims)?), self)
    }

    /// A dimension of size 1 put in before dimension `dim`; negative ones count from the end of the result.
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        view(Unsqueeze(wrap_dim("unsqueeze", dim, self.ndim() + 1)?), self)
    }

    /// Dimensions of size 1 taken out: all of them, or those of `dims` that are.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> Result<Tensor> {
        let mask = crate::ops::reduce::dims_mask("squeeze", dims, self.ndim(), false)?;
        view(Squeeze(mask), self)
    }

    /// Repeats dimensions of size 1 (and new leading ones) without copying; -1 keeps a size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        view(Expand(SmallVec::from_slice(sizes)), self)
    }

    /// [`Tensor::expand`] to a shape.
    pub fn expand_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        view(Expand(shape.iter().map(|&n| n as i64).collect()), self)
    }

    /// A matrix transposed; vectors and scalars stay as they are. `RuntimeError` for more than two dimensions.
    pub fn t(&self) -> Result<Tensor> {
        super::dims::check_t("t", self)?;
        view(T, self)
    }
}
