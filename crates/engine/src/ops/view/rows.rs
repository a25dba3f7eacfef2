//! Rows of the views that exchange, insert, drop and repeat dimensions, and of those of a part.

use super::dims::broadcast_tensors;
use super::{Alias, Detach, view};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, place, view_row};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, show};

fn transposed(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.transpose(a.int(1)?, a.int(2)?)?.into())
}

fn moved(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.movedim(&a.ints(1)?, &a.ints(2)?)?.into())
}

fn moved_one(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.movedim(&[a.int(1)?], &[a.int(2)?])?.into())
}

fn alias(a: &Args) -> Result<Out> {
    Ok(view(Alias, a.tensor(0)?)?.into())
}

fn at_least(a: &Args, n: usize) -> Result<Out> {
    Ok(a.tensor(0)?.at_least(n)?.into())
}

fn all_at_least(a: &Args, n: usize) -> Result<Out> {
    Ok(Out::List(a.tensors(0)?.into_iter().map(|t| t.at_least(n)).collect::<Result<_>>()?))
}

/// `H`: a matrix transposed and conjugated.
fn hermitian(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    if t.ndim() != 2 && t.ndim() != 0 {
        return Err(Error::runtime(format!("H: tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.", t.ndim())));
    }
    Ok(if t.ndim() == 0 { t.conj()? } else { t.adjoint()? }.into())
}

fn expanded(t: &Tensor, sizes: &[i64]) -> Result<Out> {
    Ok(t.expand(sizes)?.into())
}

fn diagonal(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.diagonal(a.int(1)?, a.int(2)?, a.int(3)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    view_row("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transposed)
        .doc("A view with dimensions `dim0` and `dim1` exchanged.")
        .samples(&["T(2,3,4), 0, 2", "T(2,3), -1, 0", "T(), 0, -1"]),
    view_row("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", transposed)
        .doc("Alias of `transpose`.")
        .samples(&["T(2,3), 0, 1"]),
    view_row("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transposed)
        .doc("Alias of `transpose`.")
        .samples(&["T(2,3), 0, 1"]),
    view_row("t(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.t()?.into()))
        .doc("A matrix transposed; vectors and scalars as they are. More than two dimensions are refused.")
        .samples(&["T(2,3)", "T(3)", "T()"]),
    view_row("permute(Tensor(a) self, int[] dims) -> Tensor(a)", |a| Ok(a.tensor(0)?.permute(&a.ints(1)?)?.into()))
        .doc("A view with the dimensions in the order of `dims`, which names each once.")
        .samples(&["T(2,3,4), [2, 0, 1]", "T(2,3), [-1, 0]"]),
    view_row("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", moved)
        .doc("A view with the dimensions `source` moved to the places `destination`; the others keep their order.")
        .samples(&["T(2,3,4), [0, 1], [2, 0]"]),
    view_row("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", moved_one)
        .doc("A view with one dimension moved.")
        .samples(&["T(2,3,4), 0, -1"]),
    view_row("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", moved)
        .doc("Alias of `movedim`.")
        .samples(&["T(2,3,4), [0, 1], [2, 0]"]),
    view_row("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", moved_one)
        .doc("Alias of `movedim`.")
        .samples(&["T(2,3,4), 0, -1"]),
    view_row("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", |a| Ok(a.tensor(0)?.unsqueeze(a.int(1)?)?.into()))
        .doc("A view with a dimension of size 1 put in before `dim`.")
        .samples(&["T(2,3), 0", "T(2,3), -1", "T(), 0"]),
    view_row("squeeze(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.squeeze(None)?.into()))
        .doc("A view without dimensions of size 1.")
        .samples(&["T(1,3,1)", "T(2,3)"]),
    view_row("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", |a| Ok(a.tensor(0)?.squeeze(Some(&[a.int(1)?]))?.into()))
        .doc("A view without dimension `dim`, if its size is 1.")
        .samples(&["T(1,3,1), 0", "T(1,3), 1"]),
    view_row("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", |a| Ok(a.tensor(0)?.squeeze(Some(&a.ints(1)?))?.into()))
        .doc("A view without those of the dimensions `dim` whose size is 1.")
        .samples(&["T(1,3,1), [0, 2]", "T(1,3), [0, 1]"]),
    view_row("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", |a| expanded(a.tensor(0)?, &a.ints(1)?))
        .places(place::METHOD)
        .doc("A view in which dimensions of size 1, and new leading ones, are repeated without copying; -1 keeps a size.")
        .samples(&["T(3,1), [3, 4]", "T(3), [2, -1]"]),
    view_row("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", |a| Ok(a.tensor(0)?.expand_to(a.tensor(1)?.shape())?.into()))
        .places(place::METHOD)
        .doc("`self.expand(other.size())`.")
        .samples(&["T(3,1), T(3,4)"]),
    view_row("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", |a| expanded(a.tensor(0)?, &a.ints(1)?))
        .doc("`self.expand(size)`.")
        .samples(&["T(3,1), [3, 4]"]),
    view_row("broadcast_tensors(Tensor[] tensors) -> Tensor[]", |a| Ok(Out::List(broadcast_tensors(&a.tensors(0)?)?)))
        .places(place::TORCH)
        .doc("The tensors expanded to the shape that all of them broadcast to.")
        .samples(&["[T(3,1), T(4)]"]),
    view_row("atleast_1d(Tensor self) -> Tensor", |a| at_least(a, 1))
        .places(place::TORCH)
        .doc("A scalar as a vector; others as they are.")
        .samples(&["T()", "T(2)"]),
    view_row("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", |a| all_at_least(a, 1))
        .places(place::TORCH)
        .doc("`atleast_1d` of each tensor.")
        .samples(&["[T(), T(2)]"]),
    view_row("atleast_2d(Tensor self) -> Tensor", |a| at_least(a, 2))
        .places(place::TORCH)
        .doc("A scalar or vector as a matrix of one row; others as they are.")
        .samples(&["T()", "T(2)"]),
    view_row("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", |a| all_at_least(a, 2))
        .places(place::TORCH)
        .doc("`atleast_2d` of each tensor.")
        .samples(&["[T(), T(2)]"]),
    view_row("atleast_3d(Tensor self) -> Tensor", |a| at_least(a, 3))
        .places(place::TORCH)
        .doc("With at least three dimensions: a vector of n as (1, n, 1), a matrix of m, n as (m, n, 1).")
        .samples(&["T()", "T(2)", "T(2,3)"]),
    view_row("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", |a| all_at_least(a, 3))
        .places(place::TORCH)
        .doc("`atleast_3d` of each tensor.")
        .samples(&["[T(), T(2,3)]"]),
    view_row("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", |a| Ok(a.tensor(0)?.select(a.int(1)?, a.int(2)?)?.into()))
        .doc("A view at one index of dimension `dim`, which is dropped. An IndexError where the index is not there.")
        .samples(&["T(2,3), 0, 1", "T(2,3), 1, -1"]),
    view_row("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", |a| {
        Ok(a.tensor(0)?.slice(a.int(1)?, a.opt_int(2)?, a.opt_int(3)?, a.int(4)?)?.into())
    })
    .places(place::PRIVATE)
    .doc("A view of every `step`-th element of dimension `dim` from `start` up to but without `end`, as Python slices.")
    .samples(&["T(4,3), 0, 1, 3", "T(4,3), 1, None, None, 2"]),
    view_row("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", |a| {
        Ok(a.tensor(0)?.narrow(a.int(1)?, a.int(2)?, a.int(3)?)?.into())
    })
    .doc("A view of `length` elements of dimension `dim` from `start` on.")
    .samples(&["T(4,3), 0, 1, 2", "T(4,3), 1, -2, 2"]),
    view_row("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", |a| {
        let start = a.tensor(2)?;
        if start.ndim() != 0 || !start.dtype().is_integral() || start.dtype() == DType::Bool {
            return Err(Error::runtime(format!(
                "narrow: start must be an 0-dim integral Tensor, got shape {} of {}",
                show(start.shape()),
                start.dtype()
            )));
        }
        Ok(a.tensor(0)?.narrow(a.int(1)?, start.item()?.to_i64(), a.int(3)?)?.into())
    })
    .doc("`narrow` from where a tensor of one integer says.")
    .samples(&["T(4,3), 0, I(), 1"]),
    view_row("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", diagonal)
        .doc("A view of the diagonal of the matrices in dimensions `dim1` and `dim2`, as the last dimension.")
        .samples(&["T(3,3)", "T(2,3,4), 1, 1, 2", "T(3,4), -1"]),
    view_row("detach(Tensor(a) self) -> Tensor(a)", |a| Ok(bind1(&Detach, &[a.tensor(0)?])?.into()))
        .doc("The same memory without history: gradients do not flow through it. Writes to either are noticed by both.")
        .samples(&["T(2,3)"]),
    view_row("alias(Tensor(a) self) -> Tensor(a)", alias)
        .places(place::PRIVATE)
        .doc("The same look under another handle.")
        .samples(&["T(2,3)"]),
    view_row("numpy_T(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.T()?.into()))
        .places(place::PRIVATE)
        .doc("All dimensions in reverse order: the property `T`.")
        .samples(&["T(2,3)"]),
    view_row("matrix_H(Tensor(a) self) -> Tensor(a)", hermitian)
        .places(place::PRIVATE)
        .doc("A matrix transposed and conjugated: the property `H`.")
        .samples(&["T(2,3)"]),
    view_row("mT(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.mT()?.into()))
        .places(place::PRIVATE)
        .doc("The last two dimensions exchanged: the property `mT`.")
        .samples(&["T(2,3,4)"]),
    view_row("mH(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.adjoint()?.into()))
        .places(place::PRIVATE)
        .doc("The last two dimensions exchanged, and conjugated: the property `mH`.")
        .samples(&["T(2,3,4)"]),
    view_row("adjoint(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.adjoint()?.into()))
        .doc("The last two dimensions exchanged, and conjugated where the dtype is complex.")
        .samples(&["T(2,3,4)"]),
];
