//! The same bytes as elements of another dtype: parts of complex numbers, and anything else.

use super::{View, view};
use crate::Tensor;
use crate::autograd::OutputInfo;
use crate::ops::table::{Op, place, view_row};
use flambeau_base::{DType, Dims, Error, Layout, Result, Strides};

/// Complex numbers as pairs of real ones: a new last dimension of size 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsReal;

impl AsReal {
    /// The layout of the pairs.
    pub(super) fn pairs(input: &Tensor) -> Result<Layout> {
        let l = input.layout();
        let mut sizes = Dims::from_slice(l.sizes());
        let mut strides: Strides = l.strides().iter().map(|s| s.saturating_mul(2)).collect();
        sizes.push(2);
        strides.push(1);
        Layout::strided("view_as_real", &sizes, &strides, l.offset() * 2)
    }
}

impl View for AsReal {
    const NAME: &'static str = "view_as_real";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        if input.is_conj() {
            return Err(Error::runtime(
                "view_as_real: view_as_real doesn't work on unresolved conjugated tensors. Call resolve_conj() first; its result does not share memory with this tensor.",
            ));
        }
        AsReal::pairs(input)
    }

    fn dtype(&self, input: &Tensor) -> DType {
        input.dtype().to_real()
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        // The pairs must lie side by side, which a gradient need not.
        let pairs =
            if as_complex_layout(grad.layout()).is_ok() { grad.clone() } else { grad.copy_in(flambeau_base::MemoryFormat::Contiguous)? };
        view(AsComplex, &pairs)
    }
}

/// Pairs of real numbers, the last dimension, as complex ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsComplex;

fn as_complex_layout(l: &Layout) -> Result<Layout> {
    let wrong = |why: &str| Error::runtime(format!("view_as_complex: {why} (sizes {:?}, strides {:?})", l.sizes(), l.strides()));
    let Some((&2, sizes)) = l.sizes().split_last() else {
        return Err(wrong("Tensor must have a last dimension of size 2"));
    };
    let Some((&1, strides)) = l.strides().split_last() else {
        return Err(wrong("Tensor must have a last dimension with stride 1"));
    };
    if !l.offset().is_multiple_of(2) || strides.iter().any(|s| s % 2 != 0) {
        return Err(wrong("Tensor must have a stride divisible by 2 for all but last dimension, and an even offset"));
    }
    let strides: Strides = strides.iter().map(|s| s / 2).collect();
    Layout::strided("view_as_complex", sizes, &strides, l.offset() / 2)
}

impl View for AsComplex {
    const NAME: &'static str = "view_as_complex";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        as_complex_layout(input.layout())
    }

    fn dtype(&self, input: &Tensor) -> DType {
        input.dtype().to_complex()
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        view(AsReal, grad)
    }
}

/// The same bytes as elements of another dtype. Gradients do not pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Retyped(pub DType);

impl View for Retyped {
    const NAME: &'static str = "view";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let l = input.layout();
        let (from, to) = (input.dtype().size(), self.0.size());
        if input.lazy() != 0 {
            return Err(Error::runtime(format!(
                "view: torch.Tensor.view is not supported for {} view tensors when converting to a different dtype.",
                if input.is_conj() { "conjugate" } else { "negative" }
            )));
        }
        if from == to {
            return Ok(l.clone());
        }
        let wrong = |why: String| {
            Error::runtime(format!(
                "view: {why} to view {} as {} (different element sizes), sizes {:?}, strides {:?}",
                input.dtype(),
                self.0,
                l.sizes(),
                l.strides()
            ))
        };
        let Some(last) = l.ndim().checked_sub(1) else {
            return Err(wrong("self.dim() cannot be 0".into()));
        };
        if l.strides()[last] != 1 && l.sizes()[last] != 1 {
            return Err(wrong("self.stride(-1) must be 1".into()));
        }
        let (mut sizes, mut strides) = (Dims::from_slice(l.sizes()), Strides::from_slice(l.strides()));
        if from > to {
            let k = from / to;
            sizes[last] = sizes[last].checked_mul(k).ok_or_else(|| wrong("the last dimension would be too long".into()))?;
            strides.iter_mut().for_each(|s| *s = s.saturating_mul(k as isize));
            strides[last] = 1;
            return Layout::strided(Self::NAME, &sizes, &strides, l.offset() * k);
        }
        let k = to / from;
        if sizes[last] % k != 0 || !l.offset().is_multiple_of(k) || strides[..last].iter().any(|s| s % k as isize != 0) {
            return Err(wrong(format!("self.size(-1), the storage offset and all strides but the last must be divisible by {k}")));
        }
        sizes[last] /= k;
        strides.iter_mut().for_each(|s| *s /= k as isize);
        strides[last] = 1;
        Layout::strided(Self::NAME, &sizes, &strides, l.offset() / k)
    }

    fn dtype(&self, _: &Tensor) -> DType {
        self.0
    }

    fn transpose(&self, _: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        Err(Error::not_implemented("derivative for view as another dtype is not implemented: use .to() to convert values"))
    }
}

impl Tensor {
    /// The same bytes as elements of another dtype; this tensor if it has that dtype.
    pub fn view_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { view(super::Alias, self) } else { view(Retyped(dtype), self) }
    }

    /// Complex numbers as pairs of real ones. `RuntimeError` for real numbers.
    pub fn view_as_real(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Err(Error::type_error(format!(
                "view_as_real: view_as_real is only supported for complex tensors, got {}",
                self.dtype()
            )));
        }
        view(AsReal, self)
    }

    /// Pairs of real numbers as complex ones. `RuntimeError` unless the last dimension has size 2 and stride 1.
    pub fn view_as_complex(&self) -> Result<Tensor> {
        if !matches!(self.dtype(), DType::F32 | DType::F64) {
            return Err(Error::runtime(format!(
                "view_as_complex: view_as_complex is only supported for floating point tensors of 32 or 64 bits, but got a tensor of {}",
                self.dtype()
            )));
        }
        view(AsComplex, self)
    }
}

pub(super) static OPS: &[Op] = &[
    view_row("view_as_real(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.view_as_real()?.into()))
        .places(place::TORCH)
        .doc("Complex numbers as pairs of real ones: a view with a new last dimension of size 2.")
        .samples(&["C(2,3)"]),
    view_row("view_as_complex(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.view_as_complex()?.into()))
        .places(place::TORCH)
        .doc("Pairs of real numbers, the last dimension, as complex ones: a view.")
        .by_layout()
        .samples(&["T(3,2)"]),
];
