//! Rows named by one index tensor, and elements by their number: `index_select`, `index_add`, `take`, `put` and their kin.

use super::{Address, Pick, Place};
use crate::Tensor;
use crate::backend::IndexMode;
use crate::ops::Primitive;
use crate::ops::pointwise::{MASKED_FILL, Pointwise};
use crate::ops::table::{Args, Op, Out, function, out_rule, place, primitive};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, Scalar, broadcast, show, wrap_dim};
use smallvec::{SmallVec, smallvec};

type Bound = Result<(Box<dyn Primitive>, SmallVec<[Tensor; 4]>)>;

/// An index tensor as `int64`. `RuntimeError` for other dtypes; `int32` only where `narrow`.
pub(super) fn indices(op: &str, index: &Tensor, narrow: bool) -> Result<Tensor> {
    match index.dtype() {
        DType::I64 => Ok(index.clone()),
        DType::I32 if narrow => index.to_dtype(DType::I64),
        other => {
            let want = if narrow { "int32/int64" } else { "int64 (a long tensor)" };
            Err(Error::runtime(format!("{op}: Expected dtype {want} for index, but got {other}")))
        }
    }
}

fn vector(op: &str, index: Tensor) -> Result<Tensor> {
    match index.ndim() {
        1 => Ok(index),
        0 => index.reshape_to(&[1]),
        _ => Err(Error::index(format!("{op}: Index is supposed to be a vector, got shape {}", show(index.shape())))),
    }
}

/// Values in the dtype of the tensor that they go to.
pub(super) fn check_dtype(op: &str, x: &Tensor, source: &Tensor) -> Result<()> {
    if x.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "{op}: self and source expected to have the same dtype (Expected self.dtype to be equal to src.dtype), but got (self) {} and (source) {}",
            x.dtype(),
            source.dtype()
        )));
    }
    Ok(())
}

/// Puts rows of `source` where `index` says along a dimension.
pub(super) fn place_rows(op: &'static str, mode: IndexMode, x: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Bound {
    let d = wrap_dim(op, dim, x.ndim())?;
    let index = vector(op, indices(op, index, mode == IndexMode::Add)?)?;
    check_dtype(op, x, source)?;
    let count = if source.ndim() == 0 { 1 } else { source.shape().get(d).copied().unwrap_or(1) };
    if index.numel() != count {
        let message =
            format!("{op}: {op}_(): Number of indices ({}) should be equal to source.size(dim): ({count}), for dim: {d}", index.numel());
        return Err(if mode == IndexMode::Add { Error::runtime(message) } else { Error::index(message) });
    }
    let fits = x.ndim() == source.ndim() && (0..x.ndim()).all(|i| i == d || x.shape()[i] == source.shape()[i]);
    if !fits {
        return Err(Error::runtime(format!(
            "{op}: source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} source.shape = {} (dimension {d})",
            show(x.shape()),
            show(source.shape())
        )));
    }
    if x.ndim() == 0 {
        // One element: its index is along a dimension that is not there.
        let along = Place { name: op, address: Address::Along(0), mode, wraps: false };
        return Ok((Box::new(along), smallvec![x.clone(), source.clone(), index.reshape_to(&[])?]));
    }
    let rows = Place { name: op, address: Address::Dims(smallvec![d]), mode, wraps: false };
    Ok((Box::new(rows), smallvec![x.clone(), source.clone(), index]))
}

pub(super) fn carry_out(bound: Bound) -> Result<Tensor> {
    let (op, inputs) = bound?;
    bind1(&*op, &inputs.iter().collect::<SmallVec<[&Tensor; 4]>>())
}

impl Tensor {
    /// The parts at these indices (a vector) of a dimension. `IndexError` for indices that are not there, or negative.
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let d = wrap_dim("index_select", dim, self.ndim())?;
        let index = vector("index_select", indices("index_select", index, true)?)?;
        let pick = Pick { name: "index_select", address: Address::Dims(smallvec![d]), distinct: false, wraps: false };
        if self.ndim() == 0 {
            if index.numel() != 1 {
                return Err(Error::runtime(format!("index_select: Index to scalar can have only 1 value, got {} value(s)", index.numel())));
            }
            return bind1(&pick, &[&self.reshape_to(&[1])?, &index])?.reshape_to(&[]);
        }
        bind1(&pick, &[self, &index])
    }

    /// This tensor with the rows of `source` added where `index` (a vector) says along a dimension, one after the other.
    ///
    /// Half precision is accumulated in single. `RuntimeError` for sizes that do not fit, other dtypes, indices that are not there.
    pub fn index_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        carry_out(place_rows("index_add", IndexMode::Add, self, dim, index, source))
    }

    /// This tensor with the rows of `source` put where `index` (a vector) says along a dimension.
    pub fn index_copy(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        carry_out(place_rows("index_copy", IndexMode::Put, self, dim, index, source))
    }

    /// This tensor with values put, or added, where index tensors say; dimensions without one are taken whole.
    pub fn index_put(&self, items: &[Option<Tensor>], values: &Tensor, accumulate: bool) -> Result<Tensor> {
        carry_out(put_items(self, items, values, accumulate))
    }

    /// The elements with these numbers in row-major order, in the shape of `index`.
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        let index = indices("take", index, false)?;
        if self.numel() == 0 && index.numel() != 0 {
            return Err(Error::index("take: tried to take from an empty tensor"));
        }
        let pick = Pick { name: "take", address: Address::Dims(smallvec![0]), distinct: false, wraps: true };
        bind1(&pick, &[&self.reshape(&[-1])?, &index])
    }
}

/// `index_put`, whose items are index tensors, masks or nothing.
fn put_items(x: &Tensor, items: &[Option<Tensor>], values: &Tensor, accumulate: bool) -> Bound {
    if x.dtype() != values.dtype() {
        return Err(Error::runtime(format!(
            "index_put: Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            x.dtype(),
            values.dtype()
        )));
    }
    let (dims, found) = super::items::places_of(x, items)?;
    let mode = if accumulate { IndexMode::Add } else { IndexMode::Put };
    let mut inputs: SmallVec<[Tensor; 4]> = smallvec![x.clone(), values.clone()];
    inputs.extend(found);
    Ok((Box::new(Place { name: "index_put", address: Address::Dims(dims), mode, wraps: true }), inputs))
}

/// `index_add`, with its factor.
fn add_rows(a: &Args) -> Bound {
    let (x, source, alpha) = (a.tensor(0)?, a.tensor(3)?, a.scalar(4)?);
    let alpha = if x.dtype().is_integral() { Scalar::Int(alpha.to_i64()) } else { alpha };
    let plain = alpha == Scalar::Int(1) || alpha == Scalar::Float(1.0);
    let scaled = if plain { source.clone() } else { source.mul(alpha)?.to_dtype(source.dtype())? };
    place_rows("index_add", IndexMode::Add, x, a.int(1)?, a.tensor(2)?, &scaled)
}

fn fill_rows(a: &Args) -> Bound {
    let (x, index) = (a.tensor(0)?, a.tensor(2)?);
    let d = wrap_dim("index_fill", a.int(1)?, x.ndim())?;
    if index.dtype() != DType::I64 {
        return Err(Error::index(format!("index_fill: index_fill_(): Expected dtype int64 for index, got {}", index.dtype())));
    }
    let value = match a.operand(3)? {
        crate::ops::Operand::Scalar(s) => Tensor::full(&[], s.checked_for("index_fill", x.dtype())?, x.dtype(), x.device())?,
        crate::ops::Operand::Tensor(t) if t.ndim() == 0 => t.to_dtype(x.dtype())?,
        crate::ops::Operand::Tensor(t) => {
            return Err(Error::runtime(format!(
                "index_fill: index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                t.ndim()
            )));
        }
    };
    let index = vector("index_fill", index.clone())?;
    if value.is_followed() && x.ndim() > 0 {
        // An index that stands there twice fills once: the value's gradient is that of a mask.
        let rows = Tensor::zeros(&[x.shape()[d]], DType::Bool, x.device())?;
        let on = Tensor::ones(&[], DType::Bool, x.device())?;
        let put = Place { name: "index_fill", address: Address::Dims(smallvec![0]), mode: IndexMode::Put, wraps: true };
        let mut sizes = flambeau_base::Dims::from_elem(1, x.ndim());
        sizes[d] = x.shape()[d];
        let mask = bind1(&put, &[&rows, &on, &index])?.reshape_to(&sizes)?;
        let operands = [crate::ops::Operand::Tensor(x), (&mask).into(), (&value).into()];
        return Ok((Box::new(Pointwise::new(&MASKED_FILL, &operands)), smallvec![x.clone(), mask, value]));
    }
    let (address, index) = if x.ndim() == 0 { (Address::Along(0), index.reshape_to(&[])?) } else { (Address::Dims(smallvec![d]), index) };
    Ok((Box::new(Place { name: "index_fill", address, mode: IndexMode::Put, wraps: true }), smallvec![x.clone(), value, index]))
}

/// `put`: elements by their number in row-major order.
fn put(a: &Args) -> Result<Out> {
    let (x, index, source) = (a.tensor(0)?, indices("put", a.tensor(1)?, false)?, a.tensor(2)?);
    check_dtype("put", x, source)?;
    if index.numel() != source.numel() {
        return Err(Error::index(format!(
            "put: put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, index.numel() = {}",
            source.numel(),
            index.numel()
        )));
    }
    if x.numel() == 0 && index.numel() != 0 {
        return Err(Error::index("put: put_(): Tried to put elements into an empty tensor"));
    }
    let mode = if a.bool(3)? { IndexMode::Add } else { IndexMode::Put };
    let flat = Place { name: "put", address: Address::Dims(smallvec![0]), mode, wraps: true };
    let placed = bind1(&flat, &[&x.reshape(&[-1])?, &source.reshape(&[-1])?, &index.reshape(&[-1])?])?;
    Ok(placed.reshape_to(x.shape())?.into())
}

/// `take_along_dim`: `gather` with broadcasting of the other dimensions.
fn take_along(a: &Args) -> Result<Out> {
    let (x, index) = (a.tensor(0)?, a.tensor(1)?);
    if index.dtype() != DType::I64 {
        return Err(Error::runtime(format!(
            "take_along_dim: torch.take_along_dim(): dtype of indices should be Long but got {}",
            index.dtype()
        )));
    }
    let Some(dim) = a.opt_int(2)? else {
        return Ok(x.reshape(&[-1])?.gather(0, &from_the_end(&index.reshape(&[-1])?, x.numel())?)?.into());
    };
    if x.ndim() != index.ndim() {
        return Err(Error::runtime(format!(
            "take_along_dim: torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices",
            x.ndim(),
            index.ndim()
        )));
    }
    let d = wrap_dim("take_along_dim", dim, x.ndim())?;
    let (mut of_x, mut of_index): (SmallVec<[usize; 6]>, SmallVec<[usize; 6]>) =
        (SmallVec::from_slice(x.shape()), SmallVec::from_slice(index.shape()));
    if let (Some(i), Some(n)) = (of_x.get_mut(d), index.shape().get(d)) {
        *i = *n;
    }
    let common = broadcast("take_along_dim", &of_x, &of_index)?;
    of_x = common.clone();
    of_index = common;
    if let (Some(i), Some(n)) = (of_x.get_mut(d), x.shape().get(d)) {
        *i = *n;
    }
    if let (Some(i), Some(n)) = (of_index.get_mut(d), index.shape().get(d)) {
        *i = *n;
    }
    let index = from_the_end(index, x.shape().get(d).copied().unwrap_or(1))?;
    Ok(x.expand_to(&of_x)?.gather(dim, &index.expand_to(&of_index)?)?.into())
}

/// Indices below zero as counted from the end.
fn from_the_end(index: &Tensor, size: usize) -> Result<Tensor> {
    Tensor::where_(&index.lt(0)?, &index.add(size as i64)?, index)
}

pub(super) static OPS: &[Op] = &[
    function("index_select(Tensor self, int dim, Tensor index) -> Tensor", |a| Ok(a.tensor(0)?.index_select(a.int(1)?, a.tensor(2)?)?.into()))
        .out_rule(out_rule::APART)
        .doc("The parts of `self` at the indices (a vector) of dimension `dim`. An IndexError for indices that are not there; negative ones are not.")
        .samples(&["T(4,3), 0, I(5; 0..4)", "T(2,4), 1, I(3; 0..4)"]),
    primitive("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", add_rows)
        .doc("`self` with `alpha` times the rows of `source` added where `index` says along `dim`, in order; half precision is accumulated in single. A RuntimeError for sizes and dtypes that do not fit.")
        .samples(&["T(4,3), 0, I(5; 0..4), T(5,3)", "T(2,4), 1, I(3; 0..4), T(2,3), alpha=2"]),
    primitive("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", |a| {
        place_rows("index_copy", IndexMode::Put, a.tensor(0)?, a.int(1)?, a.tensor(2)?, a.tensor(3)?)
    })
    .autocast_widest()
    .doc("`self` with the rows of `source` put where `index` says along `dim`; of several for one place the last stays.")
    .samples(&["T(4,3), 0, I(1; 0..4), T(1,3)", "T(2,4), 1, I(1; 0..4), T(2,1)"]),
    primitive("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", fill_rows)
        .without_out()
        .doc("`self` with `value` put at the indices of dimension `dim`.")
        .samples(&["T(4,3), 0, I(2; 0..4), T()"]),
    primitive("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", fill_rows)
        .without_out()
        .doc("`self` with `value` put at the indices of dimension `dim`.")
        .samples(&["T(4,3), 0, I(2; 0..4), 1.5", "T(2,4), 1, I(2; 0..4), 0"]),
    primitive("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", |a| {
        put_items(a.tensor(0)?, a.opt_tensors(1)?, a.tensor(2)?, a.bool(3)?)
    })
    .without_out()
    .doc("`self` with `values` put where the index tensors (or masks) say; with `accumulate` they are added, in order. A RuntimeError where dtypes differ.")
    .samples(&["T(4,3), [I(5; 0..4)], T(5,3), True", "T(4,3), [I(1; 0..4), I(1; 0..3)], T(1)"]),
    function("take(Tensor self, Tensor index) -> Tensor", |a| Ok(a.tensor(0)?.take(a.tensor(1)?)?.into()))
        .out_rule(out_rule::APART)
        .doc("The elements of `self` with these numbers in row-major order, in the shape of `index`; negative ones count from the end.")
        .samples(&["T(2,3), I(4; 0..6)", "T(5), I(2,2; -5..5)"]),
    function("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put)
        .places(place::TORCH | place::METHOD)
        .with_inplace()
        .without_out()
        .doc("`self` with the elements of `source` put (or added) at these numbers in row-major order.")
        .samples(&["T(2,3), I(1; 0..6), T(1)", "T(2,3), I(4; 0..6), T(4), True"]),
    function("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along)
        .doc("`gather` along `dim` with the other dimensions broadcast; without `dim`, by numbers in row-major order.")
        .samples(&["T(3,4), I(3,2; 0..4), 1", "T(3,4), I(1,4; 0..3), 0", "T(3,4), I(5; 0..12)"]),
];
