//! Where a tensor is not zero, and elements chosen by masks.

use super::{Address, Pick, Place};
use crate::Tensor;
use crate::backend::{IndexMode, Operand as Memory, backend};
use crate::ops::table::{Args, Op, Out, function, out_rule, place};
use crate::ops::{OutSpec, Outputs, Primitive};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, broadcast};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// The places where a tensor is not zero, in row-major order, as `int64`: a row of indices for each, or its number in
/// row-major order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NonZero {
    /// Numbers in row-major order instead of rows of indices.
    pub linear: bool,
}

impl Primitive for NonZero {
    fn name(&self) -> &'static str {
        "nonzero"
    }

    fn infer(&self, _: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Err(Error::not_implemented("nonzero: the shape of the result depends on values, which the meta device does not have"))
    }

    fn compute(&self, _: &[&Tensor], _: &[Tensor]) -> Result<()> {
        Err(Error::runtime("nonzero: the result is allocated as it is computed"))
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let t = inputs[0];
        if t.device().is_meta() {
            return self.infer(inputs).map(|_| Outputs::new());
        }
        let mut out = None;
        let mut make = |n: usize| -> Result<*mut i64> {
            let sizes: &[usize] = if self.linear { &[n] } else { &[t.ndim(), n] };
            let fresh = Tensor::empty(sizes, DType::I64, t.device())?;
            let ptr = fresh.data_ptr_mut()?.cast();
            // Places in one dimension lie side by side, as PyTorch has it.
            out = Some(if self.linear { fresh } else { fresh.alias_with(fresh.layout().transpose(0, 1), DType::I64) });
            Ok(ptr)
        };
        let memory = Memory { ptr: t.data_ptr()?, dtype: t.dtype(), strides: t.strides() };
        // SAFETY: the layout stays inside the storage; the memory is fresh and holds so many indices.
        unsafe { backend(t.device())?.nonzero(t.shape(), memory, self.linear, &mut make)? };
        Ok(out.into_iter().collect())
    }

    fn differentiable(&self, _: usize) -> bool {
        false
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Carries out [`NonZero`].
pub(super) fn nonzero(t: &Tensor, linear: bool) -> Result<Tensor> {
    bind1(&NonZero { linear }, &[t])
}

/// The places of a mask as a tuple of index tensors, one for each dimension; a scalar counts as a vector.
fn as_tuple(t: &Tensor) -> Result<Out> {
    let places = nonzero(&if t.ndim() == 0 { t.reshape_to(&[1])? } else { t.clone() }, false)?;
    Ok(Out::List(places.unbind(1)?))
}

impl Tensor {
    /// The places where this tensor is not zero, in row-major order: a row of indices (`int64`) for each.
    pub fn nonzero(&self) -> Result<Tensor> {
        nonzero(self, false)
    }

    /// The elements where a mask (bool, broadcast with this tensor) holds, in row-major order, as a vector.
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        check_mask("masked_select", mask)?;
        let shape = broadcast("masked_select", self.shape(), mask.shape())?;
        let places = nonzero(&mask.expand_to(&shape)?, true)?;
        let flat = self.expand_to(&shape)?.reshape(&[-1])?;
        bind1(&Pick { name: "masked_select", address: Address::Dims(smallvec![0]), distinct: true, wraps: true }, &[&flat, &places])
    }

    /// This tensor with the elements of `source`, in order, where a mask (bool, broadcast) holds.
    ///
    /// `RuntimeError` where the dtypes differ or `source` has fewer elements than the mask holds places.
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        check_mask("masked_scatter", mask)?;
        super::rows::check_dtype("masked_scatter", self, source)?;
        let shape = broadcast("masked_scatter", self.shape(), mask.shape())?;
        let places = nonzero(&mask.expand_to(&shape)?, true)?;
        let count = places.numel();
        if source.numel() < count {
            return Err(Error::runtime(format!(
                "masked_scatter: Number of elements of source < number of ones in mask: {} elements for {count} places",
                source.numel()
            )));
        }
        let values = source.reshape(&[-1])?.narrow(0, 0, count as i64)?;
        let flat = self.expand_to(&shape)?.reshape(&[-1])?;
        let put = Place { name: "masked_scatter", address: Address::Dims(smallvec![0]), mode: IndexMode::Put, wraps: true };
        bind1(&put, &[&flat, &values, &places])?.reshape_to(&shape)
    }
}

fn check_mask(op: &str, mask: &Tensor) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    Err(Error::runtime(format!("{op}: expected BoolTensor for mask, got {}", mask.dtype())))
}

/// `nonzero` with a number of rows that is known beforehand.
fn nonzero_static(a: &Args) -> Result<Out> {
    let found = a.tensor(0)?.nonzero()?;
    let size = a.int(1)?;
    if size < 0 {
        return Err(Error::runtime(format!("nonzero_static: nonzero_static: 'size' must be an non-negative integer, got {size}")));
    }
    let (n, ndim) = (found.shape()[0] as i64, found.shape()[1]);
    if n >= size {
        return Ok(found.narrow(0, 0, size)?.contiguous()?.into());
    }
    let rest = Tensor::full(&[(size - n) as usize, ndim], a.int(2)?, DType::I64, found.device())?;
    Ok(crate::ops::join::cat(&[&found, &rest], 0)?.into())
}

fn places(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.nonzero()?.into())
}

pub(super) static OPS: &[Op] = &[
    function("nonzero(Tensor self) -> Tensor", places)
        .doc("The places where `self` is not zero, in row-major order: a matrix (int64) with a row of indices for each.")
        .samples(&["B(2,3)", "I(2,3; 0..2)"]),
    function("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", nonzero_static)
        .doc("The first `size` rows of `nonzero`; where there are fewer, the rest is `fill_value`.")
        .samples(&["B(2,3), size=4", "I(2,3; 0..2), size=2, fill_value=7"]),
    function(
        "nonzero.as_tuple(Tensor self, *, bool as_tuple) -> Tensor[]",
        |a| if a.bool(1)? { as_tuple(a.tensor(0)?) } else { places(a) },
    )
    .doc("With `as_tuple`, an index tensor for each dimension, which together index `self`.")
    .samples(&["B(2,3), as_tuple=True"]),
    function("argwhere(Tensor self) -> Tensor", places).without_out().doc("`nonzero`.").samples(&["B(2,3)"]),
    function("where.as_tuple(Tensor condition) -> Tensor[]", |a| as_tuple(a.tensor(0)?))
        .places(place::TORCH)
        .without_out()
        .doc("The places where `condition` holds: an index tensor for each dimension.")
        .samples(&["B(2,3)"]),
    function("masked_select(Tensor self, Tensor mask) -> Tensor", |a| Ok(a.tensor(0)?.masked_select(a.tensor(1)?)?.into()))
        .out_rule(out_rule::APART)
        .doc("The elements where `mask` (bool, broadcast) holds, in row-major order, as a vector.")
        .samples(&["T(2,3), B(2,3)", "T(2,3), B(3)", "T(3), B(2,1)"]),
    function("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", |a| {
        Ok(a.tensor(0)?.masked_scatter(a.tensor(1)?, a.tensor(2)?)?.into())
    })
    .with_inplace()
    .without_out()
    .doc("`self` with the elements of `source`, in order, where `mask` (bool, broadcast) holds. A RuntimeError where there are too few.")
    .samples(&["T(2,3), B(2,3), T(6)", "T(2,3), B(3), T(7)"]),
];
