//! Grids of coordinates, and matrices along a diagonal.

use super::cat;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place, view_row};
use flambeau_base::{Error, Result};
use smallvec::SmallVec;

/// The coordinates of a grid: one tensor for each of the vectors, all of the grid's shape.
///
/// With `xy` the first two dimensions are exchanged.
pub fn meshgrid(tensors: &[&Tensor], indexing: &str) -> Result<Vec<Tensor>> {
    let swap = match indexing {
        "xy" => tensors.len() >= 2,
        "ij" => false,
        other => {
            return Err(Error::runtime(format!(
                "meshgrid: torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}"
            )));
        }
    };
    let (Some(first), n) = (tensors.first(), tensors.len()) else {
        return Err(Error::runtime("meshgrid: meshgrid expects a non-empty TensorList"));
    };
    for t in tensors {
        if t.ndim() > 1 {
            return Err(Error::runtime(format!(
                "meshgrid: torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {:?}",
                t.shape()
            )));
        }
        if t.dtype() != first.dtype() {
            return Err(Error::runtime(format!(
                "meshgrid: torch.meshgrid expects all tensors to have the same dtype, got {} and {}",
                first.dtype(),
                t.dtype()
            )));
        }
    }
    // Dimension of the grid along which vector `i` runs.
    let place = |i: usize| if swap && i < 2 { 1 - i } else { i };
    let mut shape: SmallVec<[usize; 6]> = SmallVec::from_elem(1, n);
    for (i, t) in tensors.iter().enumerate() {
        shape[place(i)] = t.numel();
    }
    let one = |(i, t): (usize, &&Tensor)| {
        let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_elem(1, n);
        sizes[place(i)] = t.numel();
        t.reshape_to(&sizes)?.expand_to(&shape)
    };
    tensors.iter().enumerate().map(one).collect()
}

/// Matrices along the diagonal of a larger one; zeros elsewhere. Vectors count as rows.
pub fn block_diag(tensors: &[&Tensor]) -> Result<Tensor> {
    let blocks: Vec<Tensor> = tensors
        .iter()
        .map(|t| match t.ndim() {
            0..=2 => t.at_least(2),
            n => Err(Error::runtime(format!(
                "block_diag: torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has {n} dimensions"
            ))),
        })
        .collect::<Result<_>>()?;
    if blocks.is_empty() {
        return Tensor::zeros(&[1, 0], flambeau_base::default_dtype(), flambeau_base::Device::CPU);
    }
    let width: usize = blocks.iter().map(|b| b.shape()[1]).sum();
    let mut left = 0;
    let mut rows = Vec::new();
    for b in &blocks {
        let [h, w] = [b.shape()[0], b.shape()[1]];
        let zeros = |n: usize| Tensor::zeros(&[h, n], b.dtype(), b.device());
        rows.push(cat(&[&zeros(left)?, b, &zeros(width - left - w)?], 1)?);
        left += w;
    }
    cat(&rows.iter().collect::<Vec<_>>(), 0)
}

fn grid(a: &Args, indexing: &str) -> Result<Out> {
    Ok(Out::List(meshgrid(&a.tensors(0)?, indexing)?))
}

/// `_chunk_cat`: chunks of several tensors side by side, as sharded parameters are sent.
fn chunk_cat(a: &Args) -> Result<Out> {
    let (tensors, dim, chunks) = (a.tensors(0)?, a.int(1)?, a.int(2)?);
    let Some(first) = tensors.first() else {
        return Err(Error::runtime("_chunk_cat: _chunk_cat expects a non-empty input tensor list"));
    };
    if chunks < 1 {
        return Err(Error::runtime(format!("_chunk_cat: _chunk_cat expects positive num_chunks, got {chunks}")));
    }
    let d = flambeau_base::wrap_dim("_chunk_cat", dim, first.ndim())?;
    let dim = d as i64;
    let mut parts = Vec::new();
    for t in &tensors {
        if t.dtype() != first.dtype() || t.numel() == 0 {
            return Err(Error::runtime("_chunk_cat: _chunk_cat expects non-empty tensors of one dtype"));
        }
        if d >= t.ndim() || t.shape()[..d] != first.shape()[..d] {
            return Err(Error::runtime(format!(
                "_chunk_cat: _chunk_cat expects dim < ndim for all input tensors and same sizes of 0,...,dim-1 dimensions, got shape {:?} for dim {dim}",
                t.shape()
            )));
        }
        let n = t.shape()[d] as i64;
        let whole = (n + chunks - 1) / chunks * chunks;
        let mut rest: SmallVec<[usize; 6]> = SmallVec::from_slice(t.shape());
        rest[d] = (whole - n) as usize;
        let filled = cat(&[t, &Tensor::zeros(&rest, t.dtype(), t.device())?], dim)?;
        let mut sizes: SmallVec<[i64; 6]> = t.shape()[..d].iter().map(|&n| n as i64).collect();
        let inner: i64 = t.shape()[d + 1..].iter().map(|&n| n as i64).product();
        sizes.extend([chunks, whole / chunks * inner]);
        parts.push(filled.reshape(&sizes)?);
    }
    Ok(cat(&parts.iter().collect::<Vec<_>>(), dim + 1)?.into())
}

/// Every choice of one element from each vector, as rows.
fn cartesian(a: &Args) -> Result<Out> {
    let vectors = a.tensors(0)?;
    if let Some(t) = vectors.iter().find(|t| t.ndim() != 1) {
        return Err(Error::runtime(format!("cartesian_prod: Expect a 1D vector, but got shape {:?}", t.shape())));
    }
    if let [one] = vectors[..] {
        return Ok(one.clone().into());
    }
    let columns: Vec<Tensor> = meshgrid(&vectors, "ij")?.iter().map(|t| t.reshape(&[-1])).collect::<Result<_>>()?;
    Ok(super::stack(&columns.iter().collect::<Vec<_>>(), 1)?.into())
}

pub(super) static OPS: &[Op] = &[
    view_row("meshgrid(Tensor[] tensors) -> Tensor[]", |a| grid(a, "ij"))
        .places(place::TORCH)
        .doc("The coordinates of the grid that the vectors span: one tensor for each, all of the grid's shape.")
        .samples(&["[T(2), T(3)]"]),
    view_row("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", |a| grid(a, &a.str(1)?))
        .places(place::TORCH)
        .doc("As the other form; with `indexing='xy'` the first two dimensions are exchanged.")
        .samples(&["[T(2), T(3)], indexing='xy'"]),
    function("block_diag(Tensor[] tensors) -> Tensor", |a| Ok(block_diag(&a.tensors(0)?)?.into()))
        .places(place::TORCH)
        .without_out()
        .doc("Matrices along the diagonal of a larger one, zeros elsewhere. Vectors count as rows.")
        .samples(&["[T(2,3), T(1,1)]", "[T(2), T(2,2)]"]),
    function("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunk_cat)
        .places(place::TORCH)
        .doc("Each tensor with dimension `dim` filled up by zeros and parted into `num_chunks`, flattened from there on, one after the other.")
        .samples(&["[T(4,3), T(3)], 0, 2"]),
    function("cartesian_prod(Tensor[] tensors) -> Tensor", cartesian)
        .places(place::TORCH)
        .without_out()
        .doc("Every choice of one element from each vector, as rows.")
        .samples(&["[T(2), T(3)]"]),
];
