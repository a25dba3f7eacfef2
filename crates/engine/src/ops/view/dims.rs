//! Dimensions moved about.

use super::{Permute, Transpose, view};
use crate::Tensor;
use flambeau_base::{Error, Result, broadcast_all, show, wrap_dim};
use smallvec::SmallVec;

/// Refuses more than two dimensions for `t`.
pub(super) fn check_t(op: &str, t: &Tensor) -> Result<()> {
    if t.ndim() > 2 {
        return Err(Error::runtime(format!(
            "{op}: t() expects a tensor with <= 2 dimensions, but self is {}D (shape {})",
            t.ndim(),
            show(t.shape())
        )));
    }
    Ok(())
}

/// Dimensions counted from the start, each there once.
pub(super) fn distinct(op: &str, dims: &[i64], ndim: usize) -> Result<SmallVec<[usize; 6]>> {
    let mut out = SmallVec::new();
    for &d in dims {
        let w = wrap_dim(op, d, ndim)?;
        if out.contains(&w) {
            return Err(Error::runtime(format!("{op}: dim {w} appears multiple times in the list of dims {dims:?}")));
        }
        out.push(w);
    }
    Ok(out)
}

impl Tensor {
    /// Dimensions `from` put where `to` says; the others keep their order.
    pub fn movedim(&self, from: &[i64], to: &[i64]) -> Result<Tensor> {
        if from.len() != to.len() {
            return Err(Error::runtime(format!(
                "movedim: Invalid source or destination dims: source ({from:?} dims) should contain the same number of dims as destination ({to:?} dims)"
            )));
        }
        let (from, to) = (distinct("movedim", from, self.ndim())?, distinct("movedim", to, self.ndim())?);
        if self.ndim() == 0 {
            return super::view(super::Alias, self);
        }
        let mut order: SmallVec<[Option<usize>; 6]> = SmallVec::from_elem(None, self.ndim());
        for (&f, &t) in from.iter().zip(&to) {
            order[t] = Some(f);
        }
        let mut rest = (0..self.ndim()).filter(|d| !from.contains(d));
        let order = order.into_iter().map(|o| o.or_else(|| rest.next()).unwrap_or(0)).collect();
        view(Permute(order), self)
    }

    /// The last two dimensions exchanged. `RuntimeError` for less than two.
    #[allow(non_snake_case, reason = "PyTorch's name")]
    pub fn mT(&self) -> Result<Tensor> {
        let n = self.ndim();
        if n == 0 {
            return Ok(self.clone());
        }
        if n < 2 {
            return Err(Error::runtime(format!("mT: tensor.mT is only supported on matrices or batches of matrices. Got {n}-D tensor.")));
        }
        view(Transpose(n - 2, n - 1), self)
    }

    /// All dimensions in reverse order.
    #[allow(non_snake_case, reason = "PyTorch's name")]
    pub fn T(&self) -> Result<Tensor> {
        view(Permute((0..self.ndim()).rev().collect()), self)
    }

    /// The last two dimensions exchanged, and conjugated where the dtype is complex.
    pub fn adjoint(&self) -> Result<Tensor> {
        let n = self.ndim();
        if n < 2 {
            return Err(Error::runtime(format!(
                "adjoint: tensor.adjoint() is only supported on matrices or batches of matrices. Got {n}-D tensor."
            )));
        }
        let t = self.mT()?;
        t.conj()
    }

    /// A vector, matrix or three-dimensional tensor at least, by new dimensions of size 1.
    pub fn at_least(&self, ndim: usize) -> Result<Tensor> {
        match (ndim, self.ndim()) {
            (n, have) if have >= n => Ok(self.clone()),
            (_, 0) => self.reshape_to(&[1, 1, 1][..ndim]),
            (2, _) => self.unsqueeze(0),
            (_, 1) => self.unsqueeze(0)?.unsqueeze(-1),
            _ => self.unsqueeze(-1),
        }
    }
}

/// The tensors expanded to the shape that all of them broadcast to.
pub fn broadcast_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    let shape = broadcast_all("broadcast_tensors", tensors.iter().map(|t| t.shape()))?;
    tensors.iter().map(|t| t.expand_to(&shape)).collect()
}
