//! Sums, means and maxima of rows of a table, bag by bag.

use super::embedding::embedding;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, show};
use smallvec::smallvec;

/// What a bag's rows become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bag {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest number of each column.
    Max,
}

/// The options of [`embedding_bag`].
#[derive(Clone, Copy, Debug)]
pub struct BagOptions<'a> {
    /// What a bag's rows become.
    pub mode: Bag,
    /// Whether a row's gradient is divided by how often it was looked up.
    pub by_frequency: bool,
    /// Factors of the rows, for sums.
    pub weights: Option<&'a Tensor>,
    /// Whether the offsets end with the number of indices.
    pub ends: bool,
    /// A row that counts nowhere.
    pub padding: Option<usize>,
}

/// What [`embedding_bag`] gives.
pub struct Bagged {
    /// A row for each bag.
    pub out: Tensor,
    /// The bag of each index.
    pub bags: Tensor,
    /// How many rows a bag has, but for padding.
    pub sizes: Tensor,
    /// For maxima the row that each number came from, else empty.
    pub largest: Tensor,
}

/// Where bags begin, from the offsets.
fn begins(offsets: &Tensor, count: usize, ends: bool) -> Result<Vec<i64>> {
    let mut begins: Vec<i64> = offsets.to_dtype(DType::I64)?.to_vec()?;
    let wrong = |what: String| Err(Error::runtime(format!("embedding_bag: {what}")));
    if ends {
        match begins.pop() {
            Some(end) if end == count as i64 => {}
            Some(end) => {
                return wrong(format!("include_last_offset: the last offset must be the number of indices, {count}, but is {end}"));
            }
            None => return wrong("include_last_offset: number of offset should be at least 1".into()),
        }
    }
    if begins.first().is_some_and(|&b| b != 0) {
        return wrong(format!(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {}",
            begins[0]
        ));
    }
    if begins.windows(2).any(|w| w[0] > w[1]) || begins.last().is_some_and(|&b| b > count as i64) {
        return wrong(format!(
            "offsets must not decrease, and offsets[-1] can not be greater than input's length {count}, but got {begins:?}"
        ));
    }
    Ok(begins)
}

/// Sums, means or maxima of the rows of `weight` that `index` (a vector) names, for each of the bags that begin at `offsets`.
///
/// `RuntimeError` for offsets that do not fit, `IndexError` for rows that are not there.
pub fn embedding_bag(weight: &Tensor, index: &Tensor, offsets: &Tensor, options: &BagOptions) -> Result<Bagged> {
    if weight.ndim() != 2 || index.ndim() != 1 || offsets.ndim() != 1 {
        return Err(Error::runtime(format!(
            "embedding_bag: expected a matrix and vectors of indices and offsets, got shapes {}, {} and {}",
            show(weight.shape()),
            show(index.shape()),
            show(offsets.shape())
        )));
    }
    let index = super::rows::indices("embedding_bag", index, true)?;
    if let Some(w) = options.weights {
        if options.mode != Bag::Sum {
            return Err(Error::runtime("embedding_bag: per_sample_weights was not None: it is only supported for mode='sum'"));
        }
        if w.shape() != index.shape() || w.dtype() != weight.dtype() {
            return Err(Error::runtime(format!(
                "embedding_bag: expected per_sample_weights ({} {}) to have the same shape as the indices ({}) and the dtype of weight ({})",
                w.dtype(),
                show(w.shape()),
                show(index.shape()),
                weight.dtype()
            )));
        }
    }
    let begins = begins(offsets, index.numel(), options.ends)?;
    let count = begins.len();
    let mut bag = Vec::with_capacity(index.numel());
    for (b, &begin) in begins.iter().enumerate() {
        let end = begins.get(b + 1).copied().unwrap_or(index.numel() as i64);
        bag.extend(std::iter::repeat_n(b as i64, (end - begin) as usize));
    }
    let bags = Tensor::from_slice(&bag, &[bag.len()])?;
    let kept = Kept::of(&index, &bags, options)?;
    let ones = Tensor::ones(&[kept.index.numel()], DType::I64, weight.device())?;
    let sizes = Tensor::zeros(&[count], DType::I64, weight.device())?.index_add(0, &kept.bags, &ones)?;
    let rows = embedding(weight, &kept.index, None, options.by_frequency)?;
    let (out, largest) = kept.reduced(&rows, &sizes, options.mode)?;
    Ok(Bagged { out, bags, sizes, largest })
}

/// What counts: all but padding.
struct Kept {
    index: Tensor,
    bags: Tensor,
    weights: Option<Tensor>,
}

impl Kept {
    fn of(index: &Tensor, bags: &Tensor, options: &BagOptions) -> Result<Kept> {
        let weights = options.weights;
        let Some(padding) = options.padding else {
            return Ok(Kept { index: index.clone(), bags: bags.clone(), weights: weights.cloned() });
        };
        let at = index.ne(padding as i64)?.nonzero()?.reshape(&[-1])?;
        let of = |t: &Tensor| t.index_select(0, &at);
        Ok(Kept { index: of(index)?, bags: of(bags)?, weights: weights.map(of).transpose()? })
    }

    fn reduced(&self, rows: &Tensor, sizes: &Tensor, mode: Bag) -> Result<(Tensor, Tensor)> {
        let shape = [sizes.numel(), rows.shape()[1]];
        let zeros = Tensor::zeros(&shape, rows.dtype(), rows.device())?;
        let nothing = Tensor::zeros(&[0], DType::I64, rows.device())?;
        if mode == Bag::Max {
            let bags = self.bags.unsqueeze(1)?.expand_as(rows)?;
            let out = zeros.scatter_reduce(0, &bags, rows, "amax", false)?;
            // The first row of a bag that has the largest number.
            let from = self.index.unsqueeze(1)?.expand_as(rows)?;
            let order = Tensor::arange(0, self.index.numel() as i64, 1, Some(DType::I64), rows.device())?;
            let is = rows.alias().eq(&out.alias().index_select(0, &self.bags)?)?;
            let late = self.index.numel() as i64;
            let order = Tensor::where_(&is, &order.unsqueeze(1)?.expand_as(rows)?, late)?;
            let first = Tensor::full(&shape, late, DType::I64, rows.device())?.scatter_reduce(0, &bags, &order, "amin", true)?;
            let found = if late == 0 {
                Tensor::zeros(&shape, DType::I64, rows.device())?
            } else {
                Tensor::where_(&first.ge(late)?, 0, &from.gather(0, &first.clamp(0, late - 1)?)?)?
            };
            return Ok((out, found));
        }
        let rows = match &self.weights {
            Some(w) => rows.mul(&w.unsqueeze(1)?)?,
            None => rows.clone(),
        };
        let sums = zeros.index_add(0, &self.bags, &rows)?;
        if mode == Bag::Sum {
            return Ok((sums, nothing));
        }
        let by = sizes.clamp(1, i64::MAX)?.to_dtype(rows.dtype())?;
        Ok((sums.div(&by.unsqueeze(1)?)?, nothing))
    }
}

fn bagged(a: &Args) -> Result<Out> {
    let (weight, index, offsets) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let mode = match a.int(4)? {
        0 => Bag::Sum,
        1 => Bag::Mean,
        2 => Bag::Max,
        other => return Err(Error::value(format!("embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {other}"))),
    };
    if mode == Bag::Max && a.bool(3)? {
        return Err(Error::runtime("embedding_bag: max mode does not support scaling the gradient by the frequency"));
    }
    let rows = weight.shape().first().copied().unwrap_or(0) as i64;
    let padding = match a.opt_int(8)? {
        None | Some(-1) => None,
        Some(p) if (-rows..rows).contains(&p) => Some(p.rem_euclid(rows.max(1)) as usize),
        Some(p) => {
            return Err(Error::runtime(format!("embedding_bag: padding_idx must be within the number of embeddings, {rows}, but got {p}")));
        }
    };
    let options = BagOptions { mode, by_frequency: a.bool(3)?, weights: a.opt_tensor(6)?, ends: a.bool(7)?, padding };
    let found = embedding_bag(weight, index, offsets, &options)?;
    Ok(Out::Tuple(smallvec![found.out, found.bags, found.sizes, found.largest]))
}

pub(super) static OPS: &[Op] = &[
    function("embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)", bagged)
        .places(place::TORCH)
        .without_out()
        .doc("Sums (`mode` 0), means (1) or maxima (2) of the rows of `weight` that `indices` name, for each of the bags that begin at `offsets`; then the bag of each index, the number of rows of each bag, and for maxima the row that each number came from. Rows are multiplied by `per_sample_weights` before they are summed; the row `padding_idx` counts nowhere.")
        .samples(&["T(5,3), I(6; 0..5), I(1; 0..1), False, 1", "T(5,3), I(4; 0..5), I(1; 0..1), False, 0, False, T(4)", "T(5,3), I(6; 0..5), I(1; 0..1), False, 2"]),
];
