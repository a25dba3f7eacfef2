//! What is put together where indices meet, by rows and segments; membership and histograms.

use super::rows::{carry_out, check_dtype, indices, place_rows};
use crate::Tensor;
use crate::backend::IndexMode;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use flambeau_base::{DType, Error, Promotion, Result, Scalar, show, wrap_dim};
use smallvec::{SmallVec, smallvec};

type Sizes = SmallVec<[i64; 6]>;

impl Tensor {
    /// This tensor with the rows of `source` put together (`prod`, `mean`, `amax` or `amin`) where `index`, a vector, says
    /// along a dimension, with its own values or without.
    pub fn index_reduce(&self, dim: i64, index: &Tensor, source: &Tensor, reduce: &str, include_self: bool) -> Result<Tensor> {
        use super::reduce::Start;
        let op = "index_reduce";
        let d = wrap_dim(op, dim, self.ndim())?;
        let (mode, start) = match reduce {
            "prod" => (IndexMode::Mul, Start::One),
            "mean" => (IndexMode::Add, Start::Zero),
            "amax" => (IndexMode::Max, Start::Lowest),
            "amin" => (IndexMode::Min, Start::Highest),
            other => return Err(Error::runtime(format!("{op}(): Expected reduce to be one of prod, mean, amax or amin but got {other}."))),
        };
        let index = indices(op, index, true)?;
        check_dtype(op, self, source)?;
        if source.numel() == 0 {
            return self.copy();
        }
        let put = |x: &Tensor, source: &Tensor, mode| carry_out(place_rows(op, mode, x, d as i64, &index, source));
        let begin = if include_self {
            self.clone()
        } else {
            // The rows that are named begin anew; gradients of what was there end here.
            let named = put(
                &Tensor::zeros(self.shape(), DType::F32, self.device())?,
                &source.alias().ones_like()?.to_dtype(DType::F32)?,
                IndexMode::Add,
            )?;
            self.masked_fill(&named.gt(0)?, start.of(self.dtype()))?
        };
        let found = put(&begin, source, mode)?;
        if reduce != "mean" {
            return Ok(found);
        }
        let first = if include_self { 1 } else { 0 };
        let count = Tensor::full(self.shape(), first, self.dtype(), self.device())?;
        let count = put(&count, &Tensor::full(source.shape(), 1, self.dtype(), self.device())?, IndexMode::Add)?;
        let count = count.masked_fill(&count.eq(0)?, 1)?;
        if self.dtype().is_integral() { found.floor_divide(&count) } else { found.div(&count) }
    }

    /// Where an element is one of `test`.
    pub fn isin(&self, test: &Tensor, invert: bool) -> Result<Tensor> {
        if self.dtype().is_complex() || test.dtype().is_complex() {
            return Err(Error::runtime("isin: Unsupported input type encountered for isin(): complex numbers have no order"));
        }
        let narrow = |d: DType| if d == DType::Bool { DType::U8 } else { d };
        let mut promotion = Promotion::default();
        promotion.tensor(self.dtype(), self.ndim())?;
        promotion.tensor(test.dtype(), test.ndim())?;
        let dtype = narrow(promotion.result()?);
        let (x, test) = (self.alias().to_dtype(dtype)?.contiguous()?, test.alias().reshape(&[-1])?.to_dtype(dtype)?);
        if test.numel() == 0 {
            return Tensor::full(self.shape(), Scalar::Bool(invert), DType::Bool, self.device());
        }
        let sorted = test.sort(0, false)?.0;
        let places = super::searchsorted(&sorted, &x, false, false, None)?.clamp(0, test.numel() as i64 - 1)?;
        let found = sorted.take(&places)?;
        if invert { found.ne(&x) } else { found.eq(&x) }
    }
}

fn isin(a: &Args) -> Result<Out> {
    // A number lies where the tensor does, in the dtype that the two promote to.
    let other = a.values.iter().find_map(|v| if let Value::Tensor(t) = v { Some(t) } else { None });
    let tensor = |i: usize| match (&a.values[i], other) {
        (Value::Tensor(t), _) => Ok(t.clone()),
        (_, None) => Tensor::number(a.scalar(i)?),
        (_, Some(t)) => {
            let (s, mut promotion) = (a.scalar(i)?, Promotion::default());
            promotion.tensor(t.dtype(), t.ndim())?;
            promotion.scalar(s);
            Tensor::full(&[], s, promotion.result()?, t.device())
        }
    };
    Ok(tensor(0)?.isin(&tensor(1)?, a.bool(3)?)?.into())
}

/// Index tensors brought into range, for the unsafe forms whose mask leaves out what was not.
fn clamped(x: &Tensor, items: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    items
        .iter()
        .enumerate()
        .map(|(d, i)| match i {
            None => Ok(None),
            Some(i) => Ok(Some(i.to_dtype(DType::I64)?.clamp(0, (x.shape().get(d).copied().unwrap_or(1) as i64 - 1).max(0))?)),
        })
        .collect()
}

fn masked_index(a: &Args) -> Result<Out> {
    let (x, mask, fill) = (a.tensor(0)?, a.tensor(1)?, a.scalar(3)?);
    let items = clamped(x, a.opt_tensors(2)?)?;
    let items: Vec<super::IndexItem> = items
        .into_iter()
        .map(|i| i.map_or(super::IndexItem::Slice { start: None, stop: None, step: None }, super::IndexItem::Tensor))
        .collect();
    if x.numel() == 0 {
        return Ok(Tensor::full(mask.shape(), fill, x.dtype(), x.device())?.into());
    }
    Ok(x.index_items(&items)?.masked_fill(&mask.logical_not()?, fill)?.into())
}

fn masked_put(a: &Args) -> Result<Out> {
    let (x, mask, values) = (a.tensor(0)?, a.tensor(1)?, a.tensor(3)?);
    if x.numel() == 0 {
        return Ok(x.copy()?.into());
    }
    let items = clamped(x, a.opt_tensors(2)?)?;
    Ok(x.index_put(&items, &values.masked_fill(&mask.logical_not()?, 0)?, true)?.into())
}

/// `segment_reduce`: stretches of a dimension, one after the other, each put together.
fn segments(a: &Args) -> Result<Out> {
    let op = "segment_reduce";
    let (x, reduce, axis) = (a.tensor(0)?, a.str(1)?, a.int(5)?);
    let axis = wrap_dim(op, axis, x.ndim())?;
    let ends = match (a.opt_tensor(2)?, a.opt_tensor(4)?) {
        (Some(lengths), _) => {
            if lengths.ndim() != axis + 1 {
                return Err(Error::runtime(format!(
                    "{op}(): Expected lengths to have {} dimensions, got shape {}",
                    axis + 1,
                    show(lengths.shape())
                )));
            }
            if !a.bool(6)? {
                let whole = lengths.sum_dims(Some(&[-1]), false, None)?;
                if lengths.numel() > 0
                    && (lengths.min()?.item()?.to_i64() < 0 || whole.ne(x.shape()[axis] as i64)?.any()?.item()?.to_bool())
                {
                    return Err(Error::runtime(format!(
                        "{op}(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
                    )));
                }
            }
            lengths.to_dtype(DType::I64)?.cumsum(-1, None)?
        }
        (None, Some(offsets)) => offsets.to_dtype(DType::I64)?.slice(-1, Some(1), None, 1)?,
        _ => return Err(Error::runtime(format!("{op}(): Either lengths or offsets must be defined"))),
    };
    let (n, count) = (x.shape()[axis], ends.shape()[axis]);
    let mut lead: Sizes = x.shape()[..axis].iter().map(|&n| n as i64).collect();
    let at = Tensor::ones(&[n], DType::I64, x.device())?.cumsum(0, None)?.sub(1)?;
    lead.push(n as i64);
    let at = at.expand(&lead)?.contiguous()?;
    // What lies behind the last segment goes into one more, which is left out in the end.
    let segment = super::searchsorted(&ends.contiguous()?, &at, true, false, None)?;
    let mut like: Sizes = lead.clone();
    like.extend(x.shape()[axis + 1..].iter().map(|_| 1));
    let index = segment.reshape(&like)?.expand_to(x.shape())?;
    let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(x.shape());
    sizes[axis] = count + 1;
    let within = |t: Tensor| t.narrow(axis as i64, 0, count as i64);
    let initial = a.opt_scalar(7)?;
    let (how, start) = match reduce.as_str() {
        "sum" => ("sum", 0.0),
        "mean" => ("sum", 0.0),
        "max" => ("amax", f64::NEG_INFINITY),
        "min" => ("amin", f64::INFINITY),
        "prod" => ("prod", 1.0),
        other => return Err(Error::runtime(format!("{op}(): reduce must be one of sum, mean, max, min or prod, got {other}"))),
    };
    let begin = Tensor::full(&sizes, initial.unwrap_or(Scalar::Float(start)), x.dtype(), x.device())?;
    let found = if n == 0 { begin } else { begin.scatter_reduce(axis as i64, &index, x, how, true)? };
    if reduce != "mean" {
        return Ok(within(found)?.into());
    }
    let ones = Tensor::full(x.shape(), 1, x.dtype(), x.device())?;
    let counts = Tensor::zeros(&sizes, x.dtype(), x.device())?;
    let counts = if n == 0 { counts } else { counts.scatter_add(axis as i64, &index, &ones)? };
    let empty = counts.eq(0)?;
    let mean = found.div(&counts.masked_fill(&empty, 1)?)?;
    Ok(within(if initial.is_none() { mean.masked_fill(&empty, f64::NAN)? } else { mean })?.into())
}

/// Counts (or weights) in bins; places that are not in a bin are -1.
fn counted(places: &Tensor, bins: usize, weights: Option<&Tensor>, dtype: DType) -> Result<Tensor> {
    let there = places.ge(0)?;
    let places = places.masked_select(&there)?;
    match weights {
        Some(w) => {
            let w = w.alias().reshape(&[-1])?.masked_select(&there)?;
            super::bincount(&places, Some(&w), bins)?.to_dtype(dtype)
        }
        None => super::bincount(&places, None, bins)?.to_dtype(dtype),
    }
}

fn check_histogram(op: &str, x: &Tensor, bins: i64) -> Result<()> {
    if x.device().is_meta() {
        return Err(Error::not_implemented(format!("{op}: tensors on the meta device have no values to count")));
    }
    if bins <= 0 {
        return Err(Error::runtime(format!("{op}: bins must be > 0, but got {bins}")));
    }
    if !x.dtype().is_float() || x.dtype().is_complex() {
        return Err(Error::not_implemented(format!("{op}: not implemented for {}", x.dtype())));
    }
    Ok(())
}

/// The outer edges: those given, or the extremes of the values where both are the same.
fn outer(op: &str, x: &Tensor, low: f64, high: f64, widen: f64) -> Result<(f64, f64)> {
    let (mut low, mut high) = (low, high);
    if low == high && x.numel() == 0 && widen < 1.0 {
        return Ok((0.0, 1.0));
    }
    if low == high && x.numel() > 0 {
        (low, high) = (x.min()?.item()?.to_f64(), x.max()?.item()?.to_f64());
    }
    if low == high {
        (low, high) = (low - widen, high + widen);
    }
    if !low.is_finite() || !high.is_finite() {
        return Err(Error::runtime(format!("{op}: range of [{low}, {high}] is not finite")));
    }
    if low > high {
        return Err(Error::runtime(format!("{op}: max must be larger than min (min must be less than max), got [{low}, {high}]")));
    }
    Ok((low, high))
}

fn histc(a: &Args) -> Result<Out> {
    let (x, bins) = (a.tensor(0)?.alias().reshape(&[-1])?, a.int(1)?);
    check_histogram("histc", &x, bins)?;
    let (low, high) = outer("histc", &x, a.scalar(2)?.to_f64(), a.scalar(3)?.to_f64(), 1.0)?;
    // In double, what single rounds down in the next bin would be: computed in the tensor's own dtype.
    let wide = if x.dtype() == DType::F64 { x.clone() } else { x.to_dtype(DType::F32)? };
    let scaled = wide.sub(low)?.mul(bins)?.div(high - low)?;
    let inside = wide.ge(low)?.logical_and(&wide.le(high)?)?;
    let places = scaled.masked_fill(&inside.logical_not()?, 0)?.to_dtype(DType::I64)?.clamp(0, bins - 1)?;
    let places = Tensor::where_(&inside, &places, -1)?;
    Ok(counted(&places, bins as usize, None, x.dtype())?.into())
}

/// Places of values between edges; the last edge belongs to the last bin.
fn between(x: &Tensor, edges: &Tensor) -> Result<Tensor> {
    let bins = edges.numel() as i64 - 1;
    let places = super::searchsorted(&edges.contiguous()?, &x.contiguous()?, true, false, None)?.sub(1)?;
    // Only the outermost edges decide about what is outside, also where edges are not in order.
    let inside = x.ge(&edges.select(0, 0)?)?.logical_and(&x.le(&edges.select(0, bins)?)?)?;
    let places = places.clamp(-1, bins - 1)?;
    Tensor::where_(&inside, &places, -1)
}

/// `count + 1` edges that are evenly apart, from both ends as `linspace` has them.
fn even_edges(low: f64, high: f64, bins: i64, dtype: DType) -> Result<Tensor> {
    let n = bins + 1;
    if dtype == DType::F64 {
        let step = (high - low) / bins as f64;
        let values: Vec<f64> = (0..n).map(|i| if i < n / 2 { low + step * i as f64 } else { high - step * (n - i - 1) as f64 }).collect();
        return Tensor::from_slice(&values, &[n as usize]);
    }
    let (low, high) = (low as f32, high as f32);
    let step = (high - low) / bins as f32;
    let values: Vec<f32> = (0..n).map(|i| if i < n / 2 { low + step * i as f32 } else { high - step * (n - i - 1) as f32 }).collect();
    Tensor::from_slice(&values, &[n as usize])?.to_dtype(dtype)
}

/// A histogram over the columns of a matrix, by the edges of each.
fn histogram_of(x: &Tensor, edges: &[Tensor], weight: Option<&Tensor>, density: bool) -> Result<Tensor> {
    let shape: Sizes = edges.iter().map(|e| e.numel() as i64 - 1).collect();
    let mut flat: Option<Tensor> = None;
    for (i, e) in edges.iter().enumerate() {
        let places = between(&x.select(1, i as i64)?, e)?;
        flat = Some(match flat {
            None => places,
            Some(before) => {
                let both = before.mul(shape[i])?.add(&places)?;
                Tensor::where_(&before.lt(0)?.logical_or(&places.lt(0)?)?, -1, &both)?
            }
        });
    }
    let bins: i64 = shape.iter().product();
    let Some(flat) = flat else { return Err(Error::runtime("histogramdd: at least one dimension of bins is needed")) };
    let mut counts = counted(&flat, bins as usize, weight, x.dtype())?.reshape(&shape)?;
    if density {
        counts = counts.div(&counts.sum()?)?;
        for (i, e) in edges.iter().enumerate() {
            let mut along: Sizes = smallvec![1; edges.len()];
            along[i] = -1;
            counts = counts.div(&e.diff(1, 0)?.reshape(&along)?)?;
        }
    }
    Ok(counts)
}

fn check_weight(op: &str, x: &Tensor, weight: Option<&Tensor>, last: usize) -> Result<()> {
    let Some(w) = weight else { return Ok(()) };
    if w.dtype() != x.dtype() || w.shape() != &x.shape()[..x.ndim() - last] {
        return Err(Error::runtime(format!(
            "{op}: if weight tensor is provided it should have the same shape and dtype as the input tensor{}, got {} {} for {} {}",
            if last > 0 { " excluding its innermost dimension" } else { "" },
            w.dtype(),
            show(w.shape()),
            x.dtype(),
            show(x.shape())
        )));
    }
    Ok(())
}

fn histogram(a: &Args) -> Result<Out> {
    let (x, by_edges) = (a.tensor(0)?.alias(), matches!(a.values[1], Value::Tensor(_)));
    let (weight, density) = if by_edges { (a.opt_tensor(2)?, a.bool(3)?) } else { (a.opt_tensor(3)?, a.bool(4)?) };
    if x.device().is_meta() {
        return Err(Error::not_implemented("histogram: tensors on the meta device have no values to count"));
    }
    let flat = x.reshape(&[-1, 1])?;
    check_weight("histogram", &x, weight, 0)?;
    let edges = match &a.values[1] {
        Value::Tensor(e) => {
            if e.ndim() != 1 || e.dtype() != x.dtype() || e.numel() == 0 {
                return Err(Error::runtime(format!(
                    "histogram: bins tensor should have one dimension, and input and bins should have the same dtype, got {} {} for {}",
                    e.dtype(),
                    show(e.shape()),
                    x.dtype()
                )));
            }
            e.alias().copy()?
        }
        _ => {
            let bins = a.int(1)?;
            check_histogram("histogram", &x, bins)?;
            let range = a.opt_floats(2)?.unwrap_or(vec![0.0, 0.0]);
            let [low, high] = range[..] else {
                return Err(Error::runtime(format!("histogram: range should have 2 elements, but got {}", range.len())));
            };
            let (low, high) = if a.opt_floats(2)?.is_some() && low > high { (f64::INFINITY, high) } else { (low, high) };
            let (low, high) = outer("histogram", &x, low, high, 0.5)?;
            even_edges(low, high, bins, x.dtype())?
        }
    };
    let counts = histogram_of(&flat, std::slice::from_ref(&edges), weight, density)?;
    Ok(Out::Tuple(smallvec![counts, edges]))
}

/// Edges for each column: numbers of bins, or what was given.
fn histogramdd(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?.alias();
    if x.device().is_meta() {
        return Err(Error::not_implemented("histogramdd: tensors on the meta device have no values to count"));
    }
    if x.ndim() < 2 {
        return Err(Error::runtime(format!(
            "histogramdd: input tensor should have at least 2 dimensions, but got shape {}",
            show(x.shape())
        )));
    }
    let n = x.shape()[x.ndim() - 1];
    check_weight("histogramdd", &x, a.opt_tensor(3)?, 1)?;
    let flat = x.reshape(&[-1, n as i64])?;
    let edges: Vec<Tensor> = match &a.values[1] {
        Value::Tensors(_) => a.tensors(1)?.into_iter().map(|t| t.alias()).collect(),
        _ => {
            let given = a.ints(1)?;
            let bins: Sizes = if given.len() == 1 { smallvec![given[0]; n] } else { given };
            let range = a.opt_floats(2)?;
            if bins.len() == n && range.as_ref().is_some_and(|r| r.len() != 2 * n) {
                return Err(Error::runtime(format!("histogramdd: for a {n}-dimensional histogram, range should have {} elements", 2 * n)));
            }
            let one = |(i, &b): (usize, &i64)| {
                check_histogram("histogramdd", &x, b)?;
                let column = if i < n { flat.select(1, i as i64)? } else { flat.clone() };
                let (low, high) = range.as_ref().map_or((0.0, 0.0), |r| (r[2 * i], r[2 * i + 1]));
                let (low, high) = outer("histogramdd", &column, low, high, 0.5)?;
                even_edges(low, high, b, x.dtype())
            };
            bins.iter().enumerate().map(one).collect::<Result<_>>()?
        }
    };
    if edges.len() != n {
        return Err(Error::runtime(format!(
            "histogramdd: expected {n} sequences of bin edges for a {n}-dimensional histogram but got {}",
            edges.len()
        )));
    }
    let counts = histogram_of(&flat, &edges, a.opt_tensor(3)?, a.bool(4)?)?;
    let mut all = vec![counts];
    all.extend(edges);
    Ok(Out::List(all))
}

/// `renorm`: slices along a dimension made no longer than `maxnorm`.
fn renorm(a: &Args) -> Result<Out> {
    let (x, p, dim, most) = (a.tensor(0)?, a.scalar(1)?.to_f64(), a.int(2)?, a.scalar(3)?.to_f64());
    let d = wrap_dim("renorm", dim, x.ndim())?;
    if x.ndim() < 2 {
        return Err(Error::runtime(format!("renorm: input needs at least 2 dimensions, got {} dimensions", x.ndim())));
    }
    if p <= 0.0 || most < 0.0 {
        return Err(Error::runtime(format!(
            "renorm: non-positive-norm not supported, and maxnorm must be >= 0, got p={p} and maxnorm={most}"
        )));
    }
    let others: Sizes = (0..x.ndim() as i64).filter(|&i| i != d as i64).collect();
    let wide = match x.dtype() {
        DType::F16 | DType::BF16 => Some(DType::F32),
        _ => None,
    };
    let norm = x.vector_norm(p, Some(&others), true, wide)?;
    let factor = Tensor::where_(&norm.alias().gt(most)?, &norm.add(1e-7)?.reciprocal()?.mul(most)?, 1)?;
    Ok(x.mul(&factor.to_dtype(if x.dtype().is_complex() { factor.dtype() } else { x.dtype() })?)?.into())
}

/// `hash_tensor`: bits of the elements, as double or int64, put together by exclusive or.
fn hash(a: &Args) -> Result<Out> {
    let (x, keepdim) = (a.tensor(0)?.alias(), a.bool(2)?);
    if x.dtype().is_complex() {
        return Err(Error::not_implemented(format!("hash_tensor: not implemented for {}", x.dtype())));
    }
    let dims = a.ints(1)?;
    let mut mask = vec![dims.is_empty(); x.ndim()];
    for &d in &dims {
        if x.ndim() > 0 {
            mask[wrap_dim("hash_tensor", d, x.ndim())?] = true;
        }
    }
    if a.int(3)? != 0 {
        return Err(Error::runtime(format!("hash_tensor: Unknown hash_tensor mode: {}; 0 (exclusive or) is there", a.int(3)?)));
    }
    let order: Sizes = (0..x.ndim()).filter(|&d| !mask[d]).chain((0..x.ndim()).filter(|&d| mask[d])).map(|d| d as i64).collect();
    let kept: SmallVec<[usize; 6]> =
        (0..x.ndim()).filter(|&d| !mask[d] || keepdim).map(|d| if mask[d] { 1 } else { x.shape()[d] }).collect();
    let rows: usize = (0..x.ndim()).filter(|&d| !mask[d]).map(|d| x.shape()[d]).product();
    let x = x.permute(&order)?;
    let bits: Vec<u64> = if x.dtype().is_integral() {
        x.to_scalars()?
            .into_iter()
            .map(|s| match s {
                Scalar::UInt(n) => n,
                s => s.to_i64() as u64,
            })
            .collect()
    } else {
        x.to_scalars()?.into_iter().map(|s| s.to_f64().to_bits()).collect()
    };
    let n = bits.len().checked_div(rows).unwrap_or(0);
    let found: Vec<u64> = (0..rows).map(|r| bits[r * n..(r + 1) * n].iter().fold(0, |h, b| h ^ b)).collect();
    Ok(Tensor::from_slice(&found, &kept)?.into())
}

const TORCH: u8 = place::TORCH;

pub(super) static OPS: &[Op] = &[
    function("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor", |a| {
        Ok(a.tensor(0)?.index_reduce(a.int(1)?, a.tensor(2)?, a.tensor(3)?, &a.str(4)?, a.bool(5)?)?.into())
    })
    .with_inplace()
    .doc("`self` with the rows of `source` put together (`prod`, `mean`, `amax`, `amin`) where `index` says along `dim`, together with what is there if `include_self`.")
    .samples(&[
        "T(4,3; 0.5..2), 0, I(5; 0..4), T(5,3; 0.5..2), 'prod'",
        "T(4,3), 0, I(5; 0..4), T(5,3), 'mean', include_self=False",
        "T(2,4), 1, I(3; 0..4), T(2,3), 'amax'",
    ]),
    function("isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor", isin)
        .places(TORCH)
        .doc("Where an element is one of `test_elements` (none of them, if `invert`); one of the two may be a number.")
        .numbers(0b11)
        .samples(&["I(2,3; 0..4), I(3; 0..4)", "I(4; 0..4), 2, invert=True", "2, I(4; 0..4)"]),
    function("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor", masked_index)
        .places(TORCH)
        .without_out()
        .doc("`self` indexed, with `fill` where `mask` does not hold; indices there may be out of range.")
        .samples(&["T(4), B(3), [I(3; 0..4)], 1.5"]),
    function("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor", masked_put)
        .places(TORCH)
        .without_out()
        .doc("`self` with values added where indices say, those left out where `mask` does not hold.")
        .samples(&["T(4), B(3), [I(3; 0..4)], T(3)"]),
    function(
        "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
        segments,
    )
    .places(TORCH)
    .doc("Stretches of dimension `axis`, of these lengths or between these offsets, each put together: sum, mean, max, min or prod.")
    .samples(&["T(5,2), 'sum', offsets=I(3; 0..1)"]),
    function("histc(Tensor self, SymInt bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc)
        .doc("How many elements are in each of `bins` even bins from `min` to `max`, the extremes of `self` if both are equal.")
        .samples(&["T(9), 4, -1, 1", "T(2,3), 3"]),
    function("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)", histogram)
        .doc("Counts (or sums of weights) between edges.")
        .samples(&["T(9; 0..1), T(1; 0..1)"]),
    function(
        "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        histogram,
    )
    .doc("Counts (or sums of weights) in even bins over `range`, and the edges of these; `density` makes their integral 1.")
    .samples(&["T(9), 3", "T(2,3), 4, range=[-1.0, 1.0], density=True"]),
    function("_histogramdd.edges(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]", histogramdd)
        .places(place::PRIVATE)
        .without_out()
        .doc("`histogramdd` by edges: the counts, then the edges.")
        .samples(&["T(5,1), [T(1; 0..1)]"]),
    function("_histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]", histogramdd)
        .places(place::PRIVATE)
        .without_out()
        .doc("`histogramdd` by numbers of bins: the counts, then the edges.")
        .samples(&["T(5,2), [2, 3]"]),
    function("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm)
        .with_inplace()
        .doc("Slices of `self` at each index of `dim` whose `p`-norm is larger than `maxnorm` made as short as that.")
        .samples(&["T(3,4), 2, 0, 1.0", "T(2,3,2), 1, 1, 0.5"]),
    function("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", hash)
        .doc("Bits of the elements (as float64 or int64), over dimensions, put together by exclusive or; uint64.")
        .samples(&["T(2,3)", "I(2,3; 0..5), 1, keepdim=True"]),
];
