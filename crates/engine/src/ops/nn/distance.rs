//! Distances between vectors.

use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, broadcast, show};

/// From so many rows on, Euclidean distances are found by a product of matrices.
const ROWS_FOR_PRODUCT: usize = 25;

fn check_distance(op: &str, x: &Tensor, p: f64) -> Result<()> {
    if p.is_nan() || p < 0.0 {
        return Err(Error::runtime(format!("{op} only supports non-negative p values, got {p}")));
    }
    if !x.dtype().is_float() {
        return Err(Error::runtime(format!("{op} only supports floating-point dtypes, got: {}", x.dtype())));
    }
    if x.dtype().is_reduced_float() {
        return Err(Error::not_implemented(format!("\"{op}\" not implemented for {}; convert to float32 with .to()", x.dtype())));
    }
    Ok(())
}

impl Tensor {
    /// The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`.
    ///
    /// `RuntimeError` for integers.
    pub fn cosine_similarity(&self, other: &Tensor, dim: i64, eps: f64) -> Result<Tensor> {
        let common = self.dtype().promote(other.dtype())?;
        if !common.is_float() {
            return Err(Error::runtime(format!(
                "cosine_similarity: expected common dtype to be floating point, yet common dtype is {common}"
            )));
        }
        let shape = broadcast("cosine_similarity", self.shape(), other.shape())?;
        let unit = |t: &Tensor| -> Result<Tensor> {
            let t = t.to_dtype(common)?.expand_to(&shape)?;
            let norm = t.vector_norm(2.0, Some(&[dim]), true, None)?;
            // The bound is not differentiated: a short vector's norm keeps its derivative.
            let short = norm.alias().lt(eps)?;
            let bounded = Tensor::where_(&short, &norm.sub(&norm.alias())?.add(eps)?, &norm)?;
            t.div(&bounded)
        };
        unit(self)?.mul(&unit(other)?)?.sum_dims(Some(&[dim]), false, None)
    }

    /// The norm of order `p` of `self - other + eps` over the last dimension.
    pub fn pairwise_distance(&self, other: &Tensor, p: f64, eps: f64, keepdim: bool) -> Result<Tensor> {
        self.sub(other)?.add(eps)?.vector_norm(p, Some(&[-1]), keepdim, None)
    }

    /// The distances, by the norm of order `p`, of each row `[..., n, m]` to each of `other` `[..., k, m]`: `[..., n, k]`.
    ///
    /// Euclidean distances of many rows (`mode` 0: more than 25; 1: always; 2: never) come from a product of matrices.
    /// `RuntimeError` where shapes or dtypes do not fit or `p` is negative.
    pub fn cdist(&self, other: &Tensor, p: f64, mode: i64) -> Result<Tensor> {
        let op = "cdist";
        for (t, name) in [(self, "X1"), (other, "X2")] {
            if t.ndim() < 2 {
                return Err(Error::runtime(format!("{op} only supports at least 2D tensors, {name} got: {}D", t.ndim())));
            }
            check_distance(op, t, p)?;
        }
        let last = |t: &Tensor, i: usize| t.shape()[t.ndim() - i];
        if last(self, 1) != last(other, 1) {
            return Err(Error::runtime(format!(
                "{op}: X1 and X2 must have the same number of columns. X1: {} X2: {}",
                last(self, 1),
                last(other, 1)
            )));
        }
        if self.dtype() != other.dtype() {
            return Err(Error::runtime(format!("{op}: expected scalar type {} for X2 but found {}", self.dtype(), other.dtype())));
        }
        let (n, k) = (last(self, 2), last(other, 2));
        if last(self, 1) == 0 || n == 0 || k == 0 {
            // Sums of nothing, with a history.
            return self.unsqueeze(-2)?.sub(&other.unsqueeze(-3)?)?.sum_dims(Some(&[-1]), false, None);
        }
        if p == 2.0 && (mode == 1 || mode == 0 && (n > ROWS_FOR_PRODUCT || k > ROWS_FOR_PRODUCT)) {
            return euclidean(self, other);
        }
        length(&self.unsqueeze(-2)?.sub(&other.unsqueeze(-3)?)?, p)
    }

    /// The distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...
    ///
    /// `RuntimeError` unless this is a matrix of floats and `p` is not negative.
    pub fn pdist(&self, p: f64) -> Result<Tensor> {
        let op = "pdist";
        let [n, m] = match *self.shape() {
            [n, m] => [n, m],
            _ => {
                return Err(Error::runtime(format!(
                    "{op} only supports 2D tensors, got: {}D of shape {}",
                    self.ndim(),
                    show(self.shape())
                )));
            }
        };
        check_distance(op, self, p)?;
        let pairs = n * n.saturating_sub(1) / 2;
        let index = |of: fn(i64, i64) -> i64| -> Result<Tensor> {
            let all: Vec<i64> = (0..n as i64).flat_map(|i| (i + 1..n as i64).map(move |j| of(i, j))).collect();
            if self.device().is_meta() { Tensor::empty(&[pairs], DType::I64, self.device()) } else { Tensor::from_slice(&all, &[pairs]) }
        };
        let (first, second) = (self.index_select(0, &index(|i, _| i)?)?, self.index_select(0, &index(|_, j| j)?)?);
        let apart = first.sub(&second)?;
        if pairs == 0 || m == 0 {
            return apart.sum_dims(Some(&[-1]), false, None);
        }
        length(&apart, p)
    }
}

/// The norms of differences. Of infinite order each of several largest parts takes the whole gradient, as PyTorch's distances have it.
fn length(apart: &Tensor, p: f64) -> Result<Tensor> {
    if p != f64::INFINITY || !apart.requires_grad() || !crate::autograd::is_grad_enabled() {
        return apart.vector_norm(p, Some(&[-1]), false, None);
    }
    let parts = apart.abs()?;
    let most = parts.alias().amax(Some(&[-1]), true)?;
    let largest = parts.alias().eq(&most)?;
    let still = largest.logical_not()?.logical_or(&parts.alias().isinf()?)?;
    let slopes = parts.sub(&parts.alias())?.masked_fill(&still, 0)?.sum_dims(Some(&[-1]), false, None)?;
    most.squeeze(Some(&[-1]))?.add(&slopes)
}

/// `sqrt(|a|² - 2 a·b + |b|²)`, with the derivative 0 where it is 0.
fn euclidean(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let square = |t: &Tensor| t.square()?.sum_dims(Some(&[-1]), true, None);
    let products = a.mul(-2.0)?.matmul(&b.transpose(-2, -1)?)?;
    let squares = products.add(&square(a)?)?.add(&square(b)?.transpose(-2, -1)?)?;
    let none = squares.alias().le(0)?;
    squares.masked_fill(&none, 1.0)?.sqrt()?.masked_fill(&none, 0.0)
}

fn cdist(a: &Args) -> Result<Out> {
    let mode = match a.opt_str(3)?.as_deref() {
        None | Some("use_mm_for_euclid_dist_if_necessary") => 0,
        Some("use_mm_for_euclid_dist") => 1,
        Some("donot_use_mm_for_euclid_dist") => 2,
        Some(other) => return Err(Error::value(format!("cdist: {other} is not a valid value for compute_mode"))),
    };
    Ok(a.tensor(0)?.cdist(a.tensor(1)?, a.float(2)?, mode)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", |a| {
        Ok(a.tensor(0)?.cosine_similarity(a.tensor(1)?, a.int(2)?, a.float(3)?)?.into())
    })
    .doc("The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`.")
    .places(place::TORCH)
    .samples(&["T(2,3), T(2,3)", "T(2,3,4), T(1,3,4), -1", "T(3; 0.5..2), T(2,3; 0.5..2), 0"])
    .without_out(),
    function("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.pairwise_distance(a.tensor(1)?, a.float(2)?, a.float(3)?, a.bool(4)?)?.into())
    })
    .doc("The norm of order `p` of `x1 - x2 + eps` over the last dimension.")
    .places(place::TORCH)
    .samples(&["T(2,3), T(2,3)", "T(2,3), T(3), 3, 1e-6, True"])
    .without_out(),
    function("cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor", cdist)
        .autocast_full()
        .doc("The distances, by the norm of order `p`, of each row of `x1` `[..., n, m]` to each of `x2` `[..., k, m]`: `[..., n, k]`. Euclidean distances of more than 25 rows come from a product of matrices, unless `compute_mode` is 'donot_use_mm_for_euclid_dist'.")
        .places(place::TORCH)
        .samples(&["T(3,4), T(2,4)", "T(2,3,4), T(5,4), 1", "T(27,3), T(4,3)", "T(3,4), T(2,4), 3", "T(3,4), T(2,4; -1..2.5), inf"])
        .without_out(),
    function("pdist(Tensor self, float p=2) -> Tensor", |a| Ok(a.tensor(0)?.pdist(a.float(1)?)?.into()))
        .doc("The distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...")
        .places(place::TORCH)
        .samples(&["T(4,3)", "T(4,3), 1", "T(3,4), 3.5"])
        .without_out(),
];
