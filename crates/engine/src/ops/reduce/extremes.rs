//! Largest and smallest elements, and where they are.

use super::{ReduceCx, ReduceSpec, Reduction, check_not_empty, dims_mask};
use crate::Tensor;
use crate::autograd::Grads;
use crate::backend::Combine;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, function, out_rule};
use crate::transform::{bind, bind1};
use flambeau_base::{DType, Error, Result};
use flambeau_ir::{Body, Val};
use smallvec::{SmallVec, smallvec};

/// bool is compared as a number.
fn as_number(k: &mut Body, x: Val) -> Val {
    if k.dtype(x) == DType::Bool { k.convert(x, DType::U8) } else { x }
}

/// The gradient is shared evenly among the elements that are the extreme one.
fn shared(cx: &ReduceCx, grads: &mut Grads) -> Result<Option<Tensor>> {
    let Some(g) = grads[0].take() else { return Ok(None) };
    let (x, most) = (cx.cx.input(0)?, cx.spread(&cx.cx.output(0)?.alias())?);
    shared_among(&cx.spread(&g)?, &x, &most, &cx.op.dims_list(x.ndim())).map(Some)
}

/// `g` shared evenly among the elements of `x` that equal `most`.
fn shared_among(g: &Tensor, x: &Tensor, most: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let plain = x.alias();
    let chosen = Tensor::where_(&most.isnan()?, &plain.isnan()?, &plain.eq(most)?)?;
    let count = chosen.sum_dims(Some(dims), true, None)?;
    Tensor::where_(&chosen, &g.div(&count)?.to_dtype(x.dtype())?, 0)
}

/// The gradient goes to the place that was found.
fn placed(cx: &ReduceCx, grads: &mut Grads) -> Result<Option<Tensor>> {
    let (Some(g), Some(info)) = (grads[0].take(), cx.cx.input_info(0)) else { return Ok(None) };
    let place = cx.spread(&cx.cx.output(1)?)?;
    let dim = cx.op.dims.trailing_zeros() as i64;
    let zeros = Tensor::zeros(&info.sizes, g.dtype(), info.device)?;
    if info.sizes.is_empty() {
        return Ok(Some(g));
    }
    zeros.scatter(dim, &place, &cx.spread(&g)?).map(Some)
}

macro_rules! extreme {
    ($($id:ident $name:literal $combine:ident;)*) => {$(
        static $id: ReduceSpec = ReduceSpec {
            name: $name,
            combine: Combine::$combine,
            map: as_number,
            finish: |_, acc| smallvec![acc[0]],
            results: |d| smallvec![d],
            reads: Reads::both(1, 1),
            vjp: Some(shared),
        };
    )*};
}
extreme! { AMAX "amax" Max; AMIN "amin" Min; MAX "max" Max; MIN "min" Min; }

macro_rules! placed {
    ($($id:ident $name:literal $combine:ident;)*) => {$(
        static $id: ReduceSpec = ReduceSpec {
            name: $name,
            combine: Combine::$combine,
            map: as_number,
            finish: |_, acc| smallvec![acc[0], acc[1]],
            results: |d| smallvec![d, DType::I64],
            reads: Reads::both(0, 0b10),
            vjp: Some(placed),
        };
    )*};
}
placed! { MAX_DIM "max" ArgMax; MIN_DIM "min" ArgMin; }

macro_rules! place_of {
    ($($id:ident $name:literal $combine:ident;)*) => {$(
        static $id: ReduceSpec = ReduceSpec {
            name: $name,
            combine: Combine::$combine,
            map: as_number,
            finish: |_, acc| smallvec![acc[1]],
            results: |_| smallvec![DType::I64],
            reads: Reads::NONE,
            vjp: None,
        };
    )*};
}
place_of! { ARGMAX "argmax" ArgMax; ARGMIN "argmin" ArgMin; }

fn reduction(spec: &'static ReduceSpec, x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Reduction> {
    let mask = dims_mask(spec.name, dims, x.ndim(), true)?;
    check_not_empty(spec.name, x, mask, dims.is_some_and(|d| !d.is_empty()))?;
    Ok(Reduction { spec, dims: mask, keepdim, dtype: None, params: SmallVec::new() })
}

fn values(spec: &'static ReduceSpec, x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    bind1(&reduction(spec, x, dims, keepdim)?, &[x])
}

fn place(spec: &'static ReduceSpec, x: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
    if x.dtype() == DType::Bool {
        return Err(Error::not_implemented(format!("{}(): does not support bool input; convert to an integer dtype", spec.name)));
    }
    if dim.is_none() && x.numel() == 0 {
        return Err(Error::index(format!("{}(): Expected reduction dim to be specified for input.numel() == 0.", spec.name)));
    }
    bind1(&reduction(spec, x, dim.as_ref().map(std::slice::from_ref), keepdim)?, &[x])
}

impl Tensor {
    /// The largest element over dimensions (all where none are given); NaN if there is one. Gradients of ties are shared evenly.
    ///
    /// An error where there are no elements to choose from.
    pub fn amax(&self, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        values(&AMAX, self, dims, keepdim)
    }

    /// The smallest element over dimensions (all where none are given); NaN if there is one. Gradients of ties are shared evenly.
    ///
    /// An error where there are no elements to choose from.
    pub fn amin(&self, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        values(&AMIN, self, dims, keepdim)
    }

    /// The largest element; NaN if there is one.
    pub fn max(&self) -> Result<Tensor> {
        values(&MAX, self, None, false)
    }

    /// The smallest element; NaN if there is one.
    pub fn min(&self) -> Result<Tensor> {
        values(&MIN, self, None, false)
    }

    /// The largest elements along a dimension and the first places of them. The gradient goes to that place.
    pub fn max_dim(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        with_place(&MAX_DIM, self, dim, keepdim)
    }

    /// The smallest elements along a dimension and the first places of them. The gradient goes to that place.
    pub fn min_dim(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        with_place(&MIN_DIM, self, dim, keepdim)
    }

    /// The first place of the largest element, in row-major order of all elements or along a dimension.
    pub fn argmax(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        place(&ARGMAX, self, dim, keepdim)
    }

    /// The first place of the smallest element, in row-major order of all elements or along a dimension.
    pub fn argmin(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        place(&ARGMIN, self, dim, keepdim)
    }
}

fn with_place(spec: &'static ReduceSpec, x: &Tensor, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let mut found = bind(&reduction(spec, x, Some(&[dim]), keepdim)?, &[x])?;
    let place = found.remove(1);
    Ok((found.remove(0), place))
}

fn pair(found: (Tensor, Tensor)) -> Result<Out> {
    Ok(Out::Tuple(smallvec![found.0, found.1]))
}

fn aminmax(a: &Args) -> Result<Out> {
    let (x, dim, keepdim) = (a.tensor(0)?, a.opt_int(1)?, a.bool(2)?);
    if dim.is_none() && x.numel() == 0 {
        return Err(Error::runtime("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."));
    }
    let dims = dim.as_ref().map(std::slice::from_ref);
    pair((x.amin(dims, keepdim)?, x.amax(dims, keepdim)?))
}

pub(super) static OPS: &[Op] = &[
    function("max(Tensor self) -> Tensor", |a| Ok(a.tensor(0)?.max()?.into()))
        .doc("The largest element; NaN if there is one. Gradients of ties are shared evenly.")
        .samples(&["T(2,3)", "B(4)"]),
    // Before the next one: a tensor of one integer is a tensor, not a dimension.
    function("max.other(Tensor self, Tensor other) -> Tensor", |a| Ok(a.tensor(0)?.maximum(a.tensor(1)?)?.into()))
        .doc("`maximum`.")
        .samples(&["T(2,3), T(3)"]),
    function("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        pair(a.tensor(0)?.max_dim(a.int(1)?, a.bool(2)?)?)
    })
    .doc("The largest elements along `dim` and the first places of them; NaN counts as largest. The gradient goes to that place.")
    .samples(&["T(2,3), 1", "T(2,3), 0, True"]),
    function("min(Tensor self) -> Tensor", |a| Ok(a.tensor(0)?.min()?.into()))
        .doc("The smallest element; NaN if there is one. Gradients of ties are shared evenly.")
        .samples(&["T(2,3)", "B(4)"]),
    function("min.other(Tensor self, Tensor other) -> Tensor", |a| Ok(a.tensor(0)?.minimum(a.tensor(1)?)?.into()))
        .doc("`minimum`.")
        .samples(&["T(2,3), T(3)"]),
    function("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        pair(a.tensor(0)?.min_dim(a.int(1)?, a.bool(2)?)?)
    })
    .doc("The smallest elements along `dim` and the first places of them; NaN counts as smallest. The gradient goes to that place.")
    .samples(&["T(2,3), 1", "T(2,3), 0, True"]),
    function("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.argmax(a.opt_int(1)?, a.bool(2)?)?.into())
    })
    .doc("The first place of the largest element, in row-major order of all elements or along `dim`; int64.")
    .samples(&["T(2,3)", "T(2,3), 1, True"]),
    function("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.argmin(a.opt_int(1)?, a.bool(2)?)?.into())
    })
    .doc("The first place of the smallest element, in row-major order of all elements or along `dim`; int64.")
    .samples(&["T(2,3)", "T(2,3), 1, True"]),
    function("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.amax(Some(&a.ints(1)?), a.bool(2)?)?.into())
    })
    .out_rule(out_rule::EXACT)
    .doc("The largest element over dimensions (all unless given); NaN if there is one. Gradients of ties are shared evenly.")
    .samples(&["T(2,3)", "T(2,3), 1", "T(2,3,4), [0, 2], True"]),
    function("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.amin(Some(&a.ints(1)?), a.bool(2)?)?.into())
    })
    .out_rule(out_rule::EXACT)
    .doc("The smallest element over dimensions (all unless given); NaN if there is one. Gradients of ties are shared evenly.")
    .samples(&["T(2,3)", "T(2,3), 1", "T(2,3,4), [0, 2], True"]),
    function("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", aminmax)
        .out_rule(out_rule::APART | out_rule::EXACT)
        .doc("Smallest and largest element, of all or along `dim`.")
        .samples(&["T(2,3)", "T(2,3), dim=1, keepdim=True"]),
];
