//! Elements named along one dimension: `gather`, `scatter` and what is put together where they meet.

use super::rows::{check_dtype, indices};
use super::{Address, Pick, Place};
use crate::Tensor;
use crate::backend::IndexMode;
use crate::ops::table::{Args, Op, Out, function, out_rule, primitive};
use crate::ops::{Operand, Primitive};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, show, wrap_dim};
use smallvec::{SmallVec, smallvec};

type Bound = Result<(Box<dyn Primitive>, SmallVec<[Tensor; 4]>)>;

/// How values meet, by the names of `scatter` and `scatter_reduce`.
fn mode_of(reduce: Option<&str>) -> Result<IndexMode> {
    match reduce {
        None => Ok(IndexMode::Put),
        Some("add") => Ok(IndexMode::Add),
        Some("multiply") => Ok(IndexMode::Mul),
        Some(other) => Err(Error::runtime(format!("scatter: reduce argument must be either add or multiply, got {other}."))),
    }
}

/// Puts values where `index` says along a dimension; the part of the values that the index covers counts.
fn place_along(op: &'static str, mode: IndexMode, x: &Tensor, dim: i64, index: &Tensor, source: Operand) -> Bound {
    let d = wrap_dim(op, dim, x.ndim())?;
    let index = indices(op, index, true)?;
    let values = match source {
        Operand::Scalar(s) => Tensor::full(&[], s.checked_for(op, x.dtype())?, x.dtype(), x.device())?,
        Operand::Tensor(source) => {
            check_dtype(op, x, source)?;
            covered(op, x, d, &index, source)?
        }
    };
    if index.numel() == 0 {
        // Nothing is put, whatever the shapes.
        let none = Place { name: op, address: Address::Dims(smallvec![0]), mode, wraps: false };
        let flat = if x.ndim() == 0 { Address::Along(0) } else { none.address.clone() };
        return match flat {
            Address::Along(_) => Err(Error::runtime(format!("{op}: an empty index names nothing in a 0-dim tensor"))),
            address => {
                let zero = Tensor::zeros(&[], x.dtype(), x.device())?;
                Ok((Box::new(Place { address, ..none }), smallvec![x.clone(), zero, index.reshape_to(&[0])?]))
            }
        };
    }
    Ok((Box::new(Place { name: op, address: Address::Along(d), mode, wraps: false }), smallvec![x.clone(), values, index]))
}

/// The part of `source` that an index covers.
fn covered(op: &str, x: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    if index.numel() == 0 {
        return Ok(source.clone());
    }
    let same_rank = index.ndim().max(1) == source.ndim().max(1) && index.ndim().max(1) == x.ndim().max(1);
    if !same_rank {
        return Err(Error::runtime(format!(
            "{op}: Index tensor must have the same number of dimensions as self tensor and src tensor: index {}, self {}, src {}",
            show(index.shape()),
            show(x.shape()),
            show(source.shape())
        )));
    }
    let mut part =
        if source.ndim() == index.ndim() { source.clone() } else { source.reshape_to(if index.ndim() == 0 { &[] } else { &[1] })? };
    for d in 0..index.ndim() {
        let n = index.shape()[d];
        if n > part.shape()[d] || (d != dim && x.shape().get(d).is_some_and(|&m| n > m)) {
            return Err(Error::runtime(format!(
                "{op}: Expected index {} to be no larger than self {} apart from dimension {dim} and to be no larger size than src {}",
                show(index.shape()),
                show(x.shape()),
                show(source.shape())
            )));
        }
        if n < part.shape()[d] {
            part = part.narrow(d as i64, 0, n as i64)?;
        }
    }
    Ok(part)
}

pub(super) fn carry_out(bound: Bound) -> Result<Tensor> {
    let (op, inputs) = bound?;
    bind1(&*op, &inputs.iter().collect::<SmallVec<[&Tensor; 4]>>())
}

impl Tensor {
    /// `out[i][j][k] = self[index[i][j][k]][j][k]` for dimension 0, and so on for the others.
    ///
    /// `RuntimeError` for an index tensor of another rank or larger elsewhere, and for indices that are not there.
    pub fn gather(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let d = wrap_dim("gather", dim, self.ndim())?;
        if index.numel() == 0 && (index.ndim() != self.ndim() || index.dtype() == DType::U8) {
            return self.reshape(&[-1])?.narrow(0, 0, 0)?.copy()?.reshape_to(index.shape());
        }
        let index = indices("gather", index, true)?;
        bind1(&Pick { name: "gather", address: Address::Along(d), distinct: false, wraps: false }, &[self, &index])
    }

    /// This tensor with `out[index[i][j]][j] = source[i][j]` for dimension 0, and so on; of several for one place the last stays.
    pub fn scatter<'a>(&self, dim: i64, index: &Tensor, source: impl Into<Operand<'a>>) -> Result<Tensor> {
        carry_out(place_along("scatter", IndexMode::Put, self, dim, index, source.into()))
    }

    /// [`Tensor::scatter`] that adds, one after the other; half precision is accumulated in single.
    pub fn scatter_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        carry_out(place_along("scatter_add", IndexMode::Add, self, dim, index, source.into()))
    }

    /// [`Tensor::scatter`] that puts values together: `sum`, `prod`, `mean`, `amax` or `amin`, with this tensor's own values or without.
    pub fn scatter_reduce(&self, dim: i64, index: &Tensor, source: &Tensor, reduce: &str, include_self: bool) -> Result<Tensor> {
        let along = |x: &Tensor, mode| carry_out(place_along("scatter_reduce", mode, x, dim, index, source.into()));
        let start = |value: super::reduce::Start| -> Result<Tensor> {
            if include_self { Ok(self.clone()) } else { self.scatter(dim, index, value.of(self.dtype())) }
        };
        use super::reduce::Start;
        match reduce {
            "sum" => along(&start(Start::Zero)?, IndexMode::Add),
            "prod" => along(&start(Start::One)?, IndexMode::Mul),
            "amax" => along(&start(Start::Lowest)?, IndexMode::Max),
            "amin" => along(&start(Start::Highest)?, IndexMode::Min),
            "mean" => {
                let sum = along(&start(Start::Zero)?, IndexMode::Add)?;
                super::reduce::mean(self, dim, index, source, include_self, &sum)
            }
            other => {
                Err(Error::runtime(format!("scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got {other}")))
            }
        }
    }
}

fn scattered(a: &Args) -> Bound {
    let reduce = if a.values.len() > 4 { a.opt_str(4)? } else { None };
    place_along("scatter", mode_of(reduce.as_deref())?, a.tensor(0)?, a.int(1)?, a.tensor(2)?, a.operand(3)?)
}

fn reduced(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.scatter_reduce(a.int(1)?, a.tensor(2)?, a.tensor(3)?, &a.str(4)?, a.bool(5)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.gather(a.int(1)?, a.tensor(2)?)?.into())
    })
    .out_rule(out_rule::APART | out_rule::EXACT)
        .doc("The elements that `index` names along `dim`: `out[i][j] = self[index[i][j]][j]` for dimension 0. A RuntimeError for indices that are not there.")
    .samples(&["T(3,4), 0, I(2,4; 0..3)", "T(3,4), 1, I(3,2; 0..4)", "T(), 0, I(; 0..1)"]),
    primitive("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scattered)
        .doc("`self` with the elements of `src` where `index` says along `dim`: `out[index[i][j]][j] = src[i][j]` for dimension 0. Of several for one place the last stays.")
        .samples(&["T(3,4), 0, I(1,4; 0..3), T(1,4)", "T(3,4), 1, I(3,1; 0..4), T(3,2)"]),
    primitive("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", scattered)
        .doc("`self` with `value` where `index` says along `dim`.")
        .samples(&["T(3,4), 0, I(2,4; 0..3), 1.5", "T(3,4), 1, I(3,2; 0..4), 2"]),
    primitive("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", scattered)
        .doc("`self` with the elements of `src` added (`add`) or multiplied (`multiply`) where `index` says along `dim`.")
        .samples(&["T(3,4), 0, I(2,4; 0..3), T(2,4), reduce='add'", "T(3,4), 0, I(2,4; 0..3), T(2,4; 0.5..2), reduce='multiply'"]),
    primitive("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", scattered)
        .doc("`self` with `value` added (`add`) or multiplied (`multiply`) where `index` says along `dim`.")
        .samples(&["T(3,4), 0, I(2,4; 0..3), 2, reduce='multiply'"]),
    primitive("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", |a| {
        place_along("scatter_add", IndexMode::Add, a.tensor(0)?, a.int(1)?, a.tensor(2)?, a.operand(3)?)
    })
    .doc("`self` with the elements of `src` added where `index` says along `dim`, in order; half precision is accumulated in single.")
    .samples(&["T(3,4), 0, I(5,4; 0..3), T(5,4)", "T(3,4), 1, I(3,2; 0..4), T(3,3)"]),
    function("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", reduced)
        .with_inplace()
        .doc("`self` with the elements of `src` put together (`sum`, `prod`, `mean`, `amax`, `amin`) where `index` says along `dim`, together with what `self` has there if `include_self`. Gradients of equal largest (smallest) are shared.")
        .samples(&[
            "T(3,4), 0, I(5,4; 0..3), T(5,4), 'sum'",
            "T(3,4), 0, I(5,4; 0..3), T(5,4), 'mean', include_self=False",
            "T(3,4), 0, I(5,4; 0..3), T(5,4; 0.5..2), 'prod'",
            "T(3,4), 1, I(3,5; 0..4), T(3,5), 'amax'",
            "T(3,4), 1, I(3,5; 0..4), T(3,5), 'amin', include_self=False",
        ]),
];
