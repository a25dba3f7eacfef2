//! Elements and whole tensors repeated.

use crate::Tensor;
use crate::ops::create::sizes;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, show, wrap_dim};
use smallvec::SmallVec;

impl Tensor {
    /// The tensor repeated so often along each dimension; more counts than dimensions make new leading ones.
    pub fn repeat(&self, counts: &[i64]) -> Result<Tensor> {
        let Some(lead) = counts.len().checked_sub(self.ndim()) else {
            return Err(Error::runtime(format!(
                "repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: {counts:?} for shape {}",
                show(self.shape())
            )));
        };
        let counts = sizes("repeat", counts)?;
        // Each dimension as (count, size): the first expanded, then both as one.
        let (mut ones, mut pairs, mut all) =
            (SmallVec::<[usize; 12]>::new(), SmallVec::<[usize; 12]>::new(), SmallVec::<[usize; 6]>::new());
        for (d, &count) in counts.iter().enumerate() {
            let size = if d < lead { 1 } else { self.shape()[d - lead] };
            ones.extend([1, size]);
            pairs.extend([count, size]);
            all.push(
                count
                    .checked_mul(size)
                    .ok_or_else(|| Error::runtime(format!("repeat: {counts:?} times shape {} is too large", show(self.shape()))))?,
            );
        }
        flambeau_base::numel(&all)?;
        if all.contains(&0) && self.numel() != 0 {
            return self.reshape_to(&ones)?.expand_to(&pairs)?.reshape_to(&all);
        }
        let repeated = self.reshape_to(&ones)?.expand_to(&pairs)?;
        repeated.copy_in(flambeau_base::MemoryFormat::Contiguous)?.reshape_to(&all)
    }

    /// [`Tensor::repeat`] where fewer counts than dimensions stand for the last ones.
    pub fn tile(&self, counts: &[i64]) -> Result<Tensor> {
        let mut all: SmallVec<[i64; 6]> = SmallVec::from_elem(1, self.ndim().saturating_sub(counts.len()));
        all.extend_from_slice(counts);
        self.repeat(&all)
    }

    /// Each element (of a dimension, or of all in row-major order) repeated `count` times.
    pub fn repeat_each(&self, count: i64, dim: Option<i64>) -> Result<Tensor> {
        if count < 0 {
            return Err(Error::runtime(format!("repeat_interleave: Repeats must be non-negative, got {count}")));
        }
        let Some(dim) = dim else {
            return self.reshape(&[-1])?.repeat_each(count, Some(0));
        };
        let x = if self.ndim() == 0 { self.reshape_to(&[1])? } else { self.clone() };
        let d = wrap_dim("repeat_interleave", dim, x.ndim())?;
        let mut wide: SmallVec<[usize; 6]> = SmallVec::from_slice(x.shape());
        wide.insert(d + 1, count as usize);
        let repeated = x.unsqueeze(d as i64 + 1)?.expand_to(&wide)?.copy_in(flambeau_base::MemoryFormat::Contiguous)?;
        let mut all: SmallVec<[usize; 6]> = SmallVec::from_slice(x.shape());
        all[d] *= count as usize;
        repeated.reshape_to(&all)
    }
}

/// Which place is repeated where: the places `0..n` each as often as `counts` says.
fn repeated_places(counts: &Tensor, n: Option<usize>, output_size: Option<i64>) -> Result<Tensor> {
    if !matches!(counts.dtype(), DType::I64 | DType::I32) {
        return Err(Error::not_implemented(format!(
            "repeat_interleave: repeats has to be Long or Int tensor, not implemented for {}",
            counts.dtype()
        )));
    }
    if counts.ndim() > 1 {
        return Err(Error::runtime(format!(
            "repeat_interleave: repeats must be 0-dim or 1-dim tensor, got shape {}",
            show(counts.shape())
        )));
    }
    let mut counts = counts.to_dtype(DType::I64)?.to_vec::<i64>()?;
    if let (Some(n), [one]) = (n, &counts[..]) {
        counts = vec![*one; n];
    }
    if let Some(n) = n
        && counts.len() != n
    {
        return Err(Error::runtime(format!(
            "repeat_interleave: repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size(0) = {n}",
            counts.len()
        )));
    }
    if let Some(c) = counts.iter().find(|&&c| c < 0) {
        return Err(Error::runtime(format!("repeat_interleave: repeats can not be negative, got {c}")));
    }
    let total: i64 = counts.iter().sum();
    if output_size.is_some_and(|s| s != total) {
        return Err(Error::runtime(format!(
            "repeat_interleave: allocated size does not match required size: output_size {output_size:?} for {total} elements"
        )));
    }
    let places: Vec<i64> = counts.iter().enumerate().flat_map(|(i, &c)| std::iter::repeat_n(i as i64, c as usize)).collect();
    Tensor::from_slice(&places, &[places.len()])
}

fn interleaved(a: &Args) -> Result<Out> {
    let (x, dim) = (a.tensor(0)?, a.opt_int(2)?);
    let x = if dim.is_none() {
        x.reshape(&[-1])?
    } else if x.ndim() == 0 {
        x.reshape_to(&[1])?
    } else {
        x.clone()
    };
    let d = wrap_dim("repeat_interleave", dim.unwrap_or(0), x.ndim())?;
    let places = repeated_places(a.tensor(1)?, Some(x.shape()[d]), a.opt_int(3)?)?;
    Ok(x.index_select(d as i64, &places)?.into())
}

fn interleaved_evenly(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.repeat_each(a.int(1)?, a.opt_int(2)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("repeat(Tensor self, SymInt[] repeats) -> Tensor", |a| Ok(a.tensor(0)?.repeat(&a.ints(1)?)?.into()))
        .places(place::METHOD)
        .without_out()
        .doc("The tensor repeated along each dimension, in memory of its own; more counts than dimensions make new leading ones.")
        .samples(&["T(2,3), [2, 1]", "T(3), [2, 2]"]),
    function("tile(Tensor self, SymInt[] dims) -> Tensor", |a| Ok(a.tensor(0)?.tile(&a.ints(1)?)?.into()))
        .without_out()
        .doc("`repeat`, where fewer counts than dimensions stand for the last ones.")
        .samples(&["T(2,3), [2]", "T(3), [2, 2]"]),
    function(
        "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        interleaved_evenly,
    )
    .without_out()
    .doc("Each element repeated, along `dim` or of all elements in row-major order.")
    .samples(&["T(2,3), 2", "T(2,3), 2, 1"]),
    function(
        "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        interleaved,
    )
    .without_out()
    .doc("Each element repeated as often as `repeats` says for it, along `dim` or of all elements in row-major order.")
    .samples(&["T(2,3), I(3; 0..3), 1", "T(2,2), I(4; 0..3)"]),
    function("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", |a| {
        let counts = a.tensor(0)?;
        Ok(repeated_places(counts, None, a.opt_int(1)?)?.to_dtype(counts.dtype())?.into())
    })
    .without_out()
    .doc("The numbers 0, 1, ... each as often as `repeats` says.")
    .samples(&["I(3; 0..3)"]),
];
