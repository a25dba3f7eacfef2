//! What there is but once: elements and parts, each with how often it was there.

use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, view_row};
use flambeau_base::{DType, Error, Result, Scalar, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;

/// Distinct elements or parts.
pub struct Unique {
    /// Each of them once.
    pub values: Tensor,
    /// Which of them each element (part) is, `int64`.
    pub inverse: Tensor,
    /// How often each was there, `int64`.
    pub counts: Tensor,
}

/// Groups of neighbours in a sequence of `n`: where groups begin, from whether an element differs from the one before.
fn starts(n: usize, differs: impl Fn(usize) -> bool) -> Vec<i64> {
    (0..n).filter(|&i| i == 0 || differs(i)).map(|i| i as i64).collect()
}

/// Which group each of a sequence belongs to, and how large the groups are.
fn groups(starts: &[i64], n: usize) -> (Vec<i64>, Vec<i64>) {
    let ends = starts.iter().skip(1).copied().chain([n as i64]);
    let counts: Vec<i64> = starts.iter().zip(ends).map(|(s, e)| e - s).collect();
    let members = counts.iter().enumerate().flat_map(|(g, &c)| std::iter::repeat_n(g as i64, c as usize)).collect();
    (members, counts)
}

fn vector(values: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len()])
}

/// Whether each element of a vector but the first differs from the one before; NaN differs from NaN.
fn changes(sequence: &Tensor) -> Result<Vec<bool>> {
    let n = sequence.numel() as i64;
    if n < 2 {
        return Ok(Vec::new());
    }
    sequence.narrow(0, 1, n - 1)?.ne(&sequence.narrow(0, 0, n - 1)?)?.to_vec::<bool>()
}

fn check_order(x: &Tensor) -> Result<()> {
    if x.dtype().is_complex() {
        return Err(Error::not_implemented(format!("unique: \"unique\" not implemented for {}, which has no order", x.dtype())));
    }
    Ok(())
}

/// The distinct elements in ascending order. Each NaN counts for itself.
pub fn unique(x: &Tensor) -> Result<Unique> {
    check_order(x)?;
    let _guard = crate::autograd::no_grad();
    let n = x.numel();
    let (sorted, places) = x.reshape(&[-1])?.sort(0, false)?;
    let changes = changes(&sorted)?;
    let starts = starts(n, |i| changes[i - 1]);
    let (members, counts) = groups(&starts, n);
    let inverse = Tensor::empty(&[n], DType::I64, x.device())?.scatter(0, &places, &vector(&members)?)?;
    Ok(Unique { values: sorted.index_select(0, &vector(&starts)?)?, inverse: inverse.reshape_to(x.shape())?, counts: vector(&counts)? })
}

/// Elements, or parts along a dimension, that differ from the one before.
pub fn unique_consecutive(x: &Tensor, dim: Option<i64>) -> Result<Unique> {
    check_order(x)?;
    let _guard = crate::autograd::no_grad();
    let Some(dim) = dim else {
        let flat = x.reshape(&[-1])?;
        let changes = changes(&flat)?;
        let starts = starts(flat.numel(), |i| changes[i - 1]);
        let (members, counts) = groups(&starts, flat.numel());
        let values = flat.index_select(0, &vector(&starts)?)?;
        return Ok(Unique { values, inverse: vector(&members)?.reshape_to(x.shape())?, counts: vector(&counts)? });
    };
    let (d, parts) = parts(x, dim)?;
    let starts = starts(parts.len(), |i| differ(&parts[i], &parts[i - 1]));
    let (members, counts) = groups(&starts, parts.len());
    Ok(Unique { values: select_parts(x, d, &starts)?, inverse: vector(&members)?, counts: vector(&counts)? })
}

/// The distinct parts along a dimension, in lexicographic order.
fn unique_parts(x: &Tensor, dim: i64) -> Result<Unique> {
    check_order(x)?;
    let _guard = crate::autograd::no_grad();
    let (d, parts) = parts(x, dim)?;
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| compare(&parts[a], &parts[b]));
    let starts = starts(parts.len(), |i| differ(&parts[order[i]], &parts[order[i - 1]]));
    let (members, counts) = groups(&starts, parts.len());
    let mut inverse = vec![0; parts.len()];
    for (at, &member) in order.iter().zip(&members) {
        inverse[*at] = member;
    }
    let firsts: Vec<i64> = starts.iter().map(|&s| order[s as usize] as i64).collect();
    Ok(Unique { values: select_parts(x, d, &firsts)?, inverse: vector(&inverse)?, counts: vector(&counts)? })
}

/// Parts along a dimension, that dimension slowest in memory, as PyTorch leaves it.
fn select_parts(x: &Tensor, dim: i64, at: &[i64]) -> Result<Tensor> {
    x.movedim(&[dim], &[0])?.index_select(0, &vector(at)?)?.movedim(&[0], &[dim])
}

/// The parts along a dimension as sequences of numbers.
fn parts(x: &Tensor, dim: i64) -> Result<(i64, Vec<Vec<Scalar>>)> {
    if x.ndim() == 0 {
        return Err(Error::index(format!("unique: Dimension specified as {dim} but tensor has no dimensions")));
    }
    let d = wrap_dim("unique", dim, x.ndim())?;
    if x.numel() == 0 && (x.shape()[d] != 0 || x.shape().iter().filter(|&&n| n == 0).count() != 1) {
        return Err(Error::runtime(format!(
            "unique: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied (shape {})",
            show(x.shape())
        )));
    }
    let parts = (0..x.shape()[d]).map(|i| x.select(d as i64, i as i64)?.to_scalars()).collect::<Result<_>>()?;
    Ok((d as i64, parts))
}

/// Lexicographic order; NaN is the largest.
fn compare(a: &[Scalar], b: &[Scalar]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        let order = match (x, y) {
            (Scalar::Int(x), Scalar::Int(y)) => x.cmp(y),
            (Scalar::UInt(x), Scalar::UInt(y)) => x.cmp(y),
            (Scalar::Int(_), Scalar::UInt(_)) => Ordering::Less,
            (Scalar::UInt(_), Scalar::Int(_)) => Ordering::Greater,
            _ => {
                let (x, y) = (x.to_f64(), y.to_f64());
                x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Whether parts differ; NaN differs from NaN.
fn differ(a: &[Scalar], b: &[Scalar]) -> bool {
    compare(a, b) != Ordering::Equal || a.iter().any(|v| v.to_f64().is_nan())
}

/// What is asked for, as PyTorch's function gives it: a tensor, or a tuple.
fn asked(found: Unique, inverse: bool, counts: bool) -> Out {
    let mut out: SmallVec<[Tensor; 3]> = smallvec![found.values];
    out.extend(inverse.then_some(found.inverse));
    out.extend(counts.then_some(found.counts));
    if out.len() == 1 { Out::Tensor(out.swap_remove(0)) } else { Out::Tuple(out) }
}

fn of_dim(x: &Tensor, dim: Option<i64>) -> Result<Unique> {
    match dim {
        None => unique(x),
        Some(dim) => unique_parts(x, dim),
    }
}

fn all(found: Unique) -> Out {
    Out::Tuple(smallvec![found.values, found.inverse, found.counts])
}

fn flattened(a: &Args) -> Result<Out> {
    Ok(all(unique(a.tensor(0)?)?))
}

pub(super) static OPS: &[Op] = &[
    view_row("unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor", |a| {
        Ok(asked(of_dim(a.tensor(0)?, a.opt_int(4)?)?, a.bool(2)?, a.bool(3)?))
    })
    .doc("The distinct elements, or parts along `dim`, in ascending order; if asked for, which of them each element is, and how often each was there.")
    .samples(&["I(6; 0..4)", "I(4,2; 0..2), True, True, True, 0"]),
    view_row("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor", |a| {
        Ok(asked(unique_consecutive(a.tensor(0)?, a.opt_int(3)?)?, a.bool(1)?, a.bool(2)?))
    })
    .doc("The elements, or parts along `dim`, that differ from the one before; if asked for, which of them each element is, and how often each was there.")
    .samples(&["I(6; 0..2)", "I(4,2; 0..2), True, True, 0"]),
    function("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)", flattened)
        .places(crate::ops::table::place::PRIVATE)
        .without_out()
        .doc("The distinct elements, which of them each element is, and how often each was there.")
        .samples(&["I(6; 0..4)"]),
];
