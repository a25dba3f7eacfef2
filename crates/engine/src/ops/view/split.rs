//! A tensor cut into several along a dimension.

use super::{Step, Viewed, Window, computes_nothing};

use crate::Tensor;
use crate::autograd::{Cx, Grads, OutputInfo, ViewStep};
use crate::ops::table::{Args, Op, Out, view_row};
use crate::ops::{OutSpec, Outputs, Primitive, join};
use crate::transform::bind;
use crate::transform::forward::Tangents;
use crate::transform::vectorize::Batch;
use flambeau_base::{Error, Result, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::Arc;

/// Cut into pieces of these lengths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// The dimension that is cut.
    pub dim: usize,
    /// Lengths of the pieces, which fill the dimension.
    pub lengths: Vec<usize>,
    /// Named as PyTorch names the form with lengths.
    pub with_sizes: bool,
}

/// One piece for each index, without the dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unbind(pub usize);

/// Views that are several outputs of one operation, so that their gradients come back as one tensor.
trait Pieces: Primitive + Clone {
    fn window(&self, i: usize) -> Window;

    fn outputs(&self, input: &Tensor) -> Result<Outputs>;

    fn pieces(&self, input: &Tensor, n: usize) -> Result<Outputs> {
        let one = |i| Ok(input.alias_with(super::View::layout(&self.window(i), input)?, input.dtype()));
        (0..n).map(one).collect()
    }
}

/// Each gradient, or zeros where there is none.
fn filled(grads: &mut Grads, cx: &Cx) -> Result<Vec<Tensor>> {
    let one = |(i, g): (usize, &mut Option<Tensor>)| match g.take() {
        Some(g) => Ok(g),
        None => {
            let info: &OutputInfo = cx.output_info(i);
            Tensor::zeros(&info.sizes, info.dtype, info.device)
        }
    };
    grads.iter_mut().enumerate().map(one).collect()
}

impl Pieces for Split {
    fn window(&self, i: usize) -> Window {
        let start = self.lengths[..i].iter().sum();
        Window(smallvec![Step::Slice { dim: self.dim, start, length: self.lengths[i], step: 1 }])
    }

    fn outputs(&self, input: &Tensor) -> Result<Outputs> {
        let mut out = Outputs::new();
        let mut start = 0;
        for &length in &self.lengths {
            out.push(input.alias_with(input.layout().slice(self.dim, start, length, 1), input.dtype()));
            start += length;
        }
        Ok(out)
    }
}

impl Pieces for Unbind {
    fn window(&self, i: usize) -> Window {
        Window(smallvec![Step::Select { dim: self.0, index: i }])
    }

    fn outputs(&self, input: &Tensor) -> Result<Outputs> {
        self.pieces(input, input.shape()[self.0])
    }
}

macro_rules! pieces {
    ($t:ty, $name:expr, $vjp:expr, $batched:expr) => {
        impl Primitive for $t {
            fn name(&self) -> &'static str {
                $name(self)
            }

            fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
                let outputs = self.outputs(inputs[0])?;
                Ok(outputs.iter().map(|t| OutSpec { layout: t.layout().clone(), dtype: t.dtype() }).collect())
            }

            fn compute(&self, _: &[&Tensor], _: &[Tensor]) -> Result<()> {
                Err(computes_nothing(self.name()))
            }

            fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
                self.outputs(inputs[0])
            }

            fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
                let grads = filled(grads, cx)?;
                let grads: Vec<&Tensor> = grads.iter().collect();
                let back: fn(&$t, &[&Tensor]) -> Result<Tensor> = $vjp;
                Ok(smallvec![Some(back(self, &grads)?)])
            }

            fn jvp(&self, _: &[&Tensor], tangents: &Tangents) -> Result<Option<Tangents>> {
                let Some(t) = &tangents[0] else { return Ok(None) };
                Ok(Some(bind(self, &[t])?.into_iter().map(Some).collect()))
            }

            fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
                let shifted: fn(&$t) -> $t = $batched;
                batch.on_inputs(&shifted(self))
            }

            fn is_view(&self) -> bool {
                true
            }

            fn view_step(&self, i: usize, before: Option<Arc<ViewStep>>) -> Option<Arc<ViewStep>> {
                Some(Arc::new(ViewStep { before, op: Viewed(self.window(i)) }))
            }

            fn boxed(&self) -> Box<dyn Primitive> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    };
}
pieces!(Split, |s: &Split| if s.with_sizes { "split_with_sizes" } else { "split" }, |s, g| join::cat(g, s.dim as i64), |s| Split {
    dim: s.dim + 1,
    ..s.clone()
});
pieces!(Unbind, |_: &Unbind| "unbind", |u, g| join::stack(g, u.0 as i64), |u| Unbind(u.0 + 1));

fn cut(t: &Tensor, dim: usize, lengths: Vec<usize>, with_sizes: bool) -> Result<Vec<Tensor>> {
    Ok(bind(&Split { dim, lengths, with_sizes }, &[t])?.into_vec())
}

fn dim_of(op: &str, t: &Tensor, dim: i64) -> Result<usize> {
    if t.ndim() == 0 {
        return Err(Error::runtime(format!("{op}: {op} expects at least a 1-dimensional tensor")));
    }
    wrap_dim(op, dim, t.ndim())
}

impl Tensor {
    /// Pieces of `size` along a dimension; the last may be shorter.
    pub fn split(&self, size: i64, dim: i64) -> Result<Vec<Tensor>> {
        let d = dim_of("split", self, dim)?;
        let n = self.shape()[d];
        if size < 0 {
            return Err(Error::runtime(format!("split: split expects split_size be non-negative, but got split_size={size}")));
        }
        if size == 0 && n != 0 {
            return Err(Error::runtime(format!("split: split_size can only be 0 if dimension size is 0, but got dimension size of {n}")));
        }
        let size = size as usize;
        let mut lengths = Vec::new();
        let mut left = n;
        while left > 0 {
            lengths.push(size.min(left));
            left -= size.min(left);
        }
        if lengths.is_empty() {
            lengths.push(0);
        }
        cut(self, d, lengths, false)
    }

    /// Pieces of these lengths along a dimension, which they fill.
    pub fn split_with_sizes(&self, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let d = dim_of("split_with_sizes", self, dim)?;
        let n = self.shape()[d];
        if let Some(s) = sizes.iter().find(|&&s| s < 0) {
            return Err(Error::runtime(format!(
                "split_with_sizes: split_with_sizes expects split_sizes have only non-negative entries, but got {s} in split_sizes={sizes:?}"
            )));
        }
        if sizes.iter().try_fold(0i64, |sum, &s| sum.checked_add(s)) != Some(n as i64) {
            return Err(Error::runtime(format!(
                "split_with_sizes: split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}, shape {}), but got split_sizes={sizes:?}",
                show(self.shape())
            )));
        }
        cut(self, d, sizes.iter().map(|&s| s as usize).collect(), true)
    }

    /// At most `chunks` pieces of equal length along a dimension; the last may be shorter.
    pub fn chunk(&self, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        let d = dim_of("chunk", self, dim)?;
        if chunks <= 0 {
            return Err(Error::runtime(format!("chunk: chunk expects `chunks` to be greater than 0, got: {chunks}")));
        }
        let n = self.shape()[d] as i64;
        let size = n / chunks + (n % chunks != 0) as i64;
        if size == 0 {
            return cut(self, d, vec![0; chunks as usize], true);
        }
        self.split(size, dim)
    }

    /// `n` pieces along a dimension, the first ones longer by one where it does not divide.
    pub fn tensor_split(&self, n: i64, dim: i64) -> Result<Vec<Tensor>> {
        let d = dim_of("tensor_split", self, dim)?;
        if n <= 0 {
            return Err(Error::runtime(format!("tensor_split: number of sections must be larger than 0, got {n}")));
        }
        let size = self.shape()[d] as i64;
        let (each, longer) = (size / n, size % n);
        let mut start = 0;
        (0..n)
            .map(|i| {
                let end = start + each + (i < longer) as i64;
                let piece = self.slice(dim, Some(start), Some(end), 1);
                start = end;
                piece
            })
            .collect()
    }

    /// The pieces between these indices of a dimension.
    pub fn tensor_split_at(&self, indices: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        dim_of("tensor_split", self, dim)?;
        let mut start = 0;
        let mut pieces = Vec::new();
        for &end in indices {
            pieces.push(self.slice(dim, Some(start), Some(end), 1)?);
            start = end;
        }
        pieces.push(self.slice(dim, Some(start), None, 1)?);
        Ok(pieces)
    }

    /// The parts at each index of a dimension.
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        if self.ndim() == 0 {
            return Err(Error::index(format!("unbind: Dimension specified as {dim} but tensor has no dimensions")));
        }
        let d = wrap_dim("unbind", dim, self.ndim())?;
        if self.shape()[d] == 0 {
            return Ok(Vec::new());
        }
        Ok(bind(&Unbind(d), &[self])?.into_vec())
    }
}

fn list(pieces: Result<Vec<Tensor>>) -> Result<Out> {
    Ok(Out::List(pieces?))
}

/// `hsplit`, `vsplit`, `dsplit`: `tensor_split` along the dimension that they are named after.
fn split_along(a: &Args, op: &str, least: usize, dim: i64) -> Result<Out> {
    let t = a.tensor(0)?;
    if t.ndim() < least {
        return Err(Error::runtime(format!(
            "{op}: torch.{op} requires a tensor with at least {least} dimension, but got a tensor with {} dimensions!",
            t.ndim()
        )));
    }
    match a.opt_int(1) {
        Ok(Some(n)) => {
            let size = t.shape()[dim as usize] as i64;
            if n == 0 || size % n != 0 {
                return Err(Error::runtime(format!(
                    "{op}: torch.{op} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible by the split_size {n}!"
                )));
            }
            list(t.tensor_split(n, dim))
        }
        _ => list(t.tensor_split_at(&a.ints(1)?, dim)),
    }
}

fn horizontally(a: &Args) -> Result<Out> {
    let dim = (a.tensor(0)?.ndim() > 1) as i64;
    split_along(a, "hsplit", 1, dim)
}

fn split_at_tensor(a: &Args) -> Result<Out> {
    let (t, at) = (a.tensor(0)?, a.tensor(1)?);
    let at64 = at.to_dtype(flambeau_base::DType::I64)?.to_vec::<i64>()?;
    match at.ndim() {
        0 => list(t.tensor_split(at64[0], a.int(2)?)),
        1 => list(t.tensor_split_at(&at64, a.int(2)?)),
        n => Err(Error::runtime(format!(
            "tensor_split: expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with {n} dims"
        ))),
    }
}

pub(super) static OPS: &[Op] = &[
    view_row("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", |a| {
        list(a.tensor(0)?.split(a.int(1)?, a.int(2)?))
    })
    .doc("Views of `split_size` along dimension `dim`; the last may be shorter.")
    .samples(&["T(5,2), 2", "T(2,4), 2, dim=1"]),
    view_row("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", |a| {
        list(a.tensor(0)?.split_with_sizes(&a.ints(1)?, a.int(2)?))
    })
    .doc("Views of these lengths along dimension `dim`, which they fill.")
    .samples(&["T(5,2), [2, 3]", "T(2,4), [1, 3], dim=1"]),
    view_row("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", |a| {
        list(a.tensor(0)?.split_with_sizes(&a.ints(1)?, a.int(2)?))
    })
    .doc("Views of these lengths along dimension `dim`, which they fill.")
    .samples(&["T(5,2), [2, 3]"]),
    view_row("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", |a| list(a.tensor(0)?.chunk(a.int(1)?, a.int(2)?)))
        .doc("At most `chunks` views of equal length along dimension `dim`; the last may be shorter.")
        .samples(&["T(5,2), 2", "T(2,6), 3, dim=-1"]),
    view_row("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", |a| {
        list(a.tensor(0)?.split(a.int(1)?, a.int(2)?))
    })
    .doc("`split`.")
    .samples(&["T(5,2), 2"]),
    view_row("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", |a| {
        list(a.tensor(0)?.split_with_sizes(&a.ints(1)?, a.int(2)?))
    })
    .doc("`split_with_sizes`.")
    .samples(&["T(5,2), [2, 3]"]),
    view_row("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", |a| list(a.tensor(0)?.chunk(a.int(1)?, a.int(2)?)))
        .doc("`chunk`.")
        .samples(&["T(5,2), 2"]),
    view_row("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", |a| {
        list(a.tensor(0)?.tensor_split(a.int(1)?, a.int(2)?))
    })
    .doc("`sections` views along dimension `dim`, the first ones longer by one where it does not divide.")
    .samples(&["T(5,2), 2", "T(2,7), 3, dim=1"]),
    view_row("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", |a| {
        list(a.tensor(0)?.tensor_split_at(&a.ints(1)?, a.int(2)?))
    })
    .doc("The views between these indices of dimension `dim`.")
    .samples(&["T(5,2), [1, 3]"]),
    view_row(
        "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
        split_at_tensor,
    )
    .doc("As the other forms, with the number or the indices in a tensor.")
    .samples(&["T(5,2), I(2; 1..4)"]),
    view_row("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", horizontally)
        .doc("Equal views along dimension 1 (0 for a vector).")
        .samples(&["T(2,4), 2"]),
    view_row("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", horizontally)
        .doc("Views between indices of dimension 1 (0 for a vector).")
        .samples(&["T(2,4), [1, 3]"]),
    view_row("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |a| split_along(a, "vsplit", 2, 0))
        .doc("Equal views along dimension 0.")
        .samples(&["T(4,2), 2"]),
    view_row("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |a| split_along(a, "vsplit", 2, 0))
        .doc("Views between indices of dimension 0.")
        .samples(&["T(4,2), [1, 3]"]),
    view_row("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", |a| split_along(a, "dsplit", 3, 2))
        .doc("Equal views along dimension 2.")
        .samples(&["T(1,2,4), 2"]),
    view_row("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", |a| split_along(a, "dsplit", 3, 2))
        .doc("Views between indices of dimension 2.")
        .samples(&["T(1,2,4), [1, 3]"]),
    view_row("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", |a| list(a.tensor(0)?.unbind(a.int(1)?)))
        .doc("The views at each index of dimension `dim`, which they lack.")
        .samples(&["T(3,2)", "T(3,2), 1"]),
];
