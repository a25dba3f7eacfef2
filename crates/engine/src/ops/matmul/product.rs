//! The product of two stacks of matrices.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{Matmul, Operand as Memory, backend};
use crate::ops::Outputs;
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, Result, broadcast, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `[..., m, k] @ [..., k, n] -> [..., m, n]`, with the stacks' dimensions broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product;

impl Primitive for Product {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (a, b) = (inputs[0], inputs[1]);
        let ((m, k), (k2, n)) = (last_two("matmul", a)?, last_two("matmul", b)?);
        check_dtypes("matmul", a, b)?;
        if k != k2 {
            return Err(Error::runtime(format!(
                "matmul: mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n}): the first's last dimension ({k}) must equal the second's last but one ({k2}){}",
                if a.ndim().max(b.ndim()) > 2 { format!("; shapes {} and {}", show(a.shape()), show(b.shape())) } else { String::new() }
            )));
        }
        let mut sizes = broadcast("matmul", &a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2])?;
        sizes.extend([m, n]);
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&sizes)?, dtype: a.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        multiply(inputs[0], inputs[1], None, &outputs[0])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None, None]) };
        let a = if cx.needs(0) { Some(g.matmul(&cx.input(1)?.adjoint()?)?) } else { None };
        let b = if cx.needs(1) { Some(cx.input(0)?.adjoint()?.matmul(&g)?) } else { None };
        Ok(smallvec![a, b])
    }

    fn reads(&self) -> Reads {
        Reads::OTHERS
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let ndim = batch.examples.iter().map(|t| t.ndim()).max().unwrap_or(0);
        let (a, b) = (batch.aligned(0, ndim)?, batch.aligned(1, ndim)?);
        crate::transform::bind(self, &[&a, &b]).map(Some)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The sizes of a matrix, or of the matrices in a stack.
pub(super) fn last_two(op: &str, t: &Tensor) -> Result<(usize, usize)> {
    match t.shape() {
        [.., m, n] => Ok((*m, *n)),
        shape => Err(Error::runtime(format!("{op}: a matrix is needed, got a tensor of shape {}", show(shape)))),
    }
}

/// Refuses mixed dtypes, and bool.
pub(super) fn check_dtypes(op: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{op}: expected m1 and m2 to have the same dtype, but got: {} != {}. Convert one of them with .to()",
            a.dtype(),
            b.dtype()
        )));
    }
    if a.dtype() == DType::Bool {
        return Err(Error::not_implemented(format!("{op}: not implemented for bool; convert to an integer or float dtype")));
    }
    Ok(())
}

/// Multiplies into `out` (with `bias` added to each row), stack by stack.
pub(super) fn multiply(a: &Tensor, b: &Tensor, bias: Option<&Tensor>, out: &Tensor) -> Result<()> {
    let (m, k) = last_two("matmul", a)?;
    let n = *out.shape().last().unwrap_or(&1);
    if out.numel() == 0 {
        return Ok(());
    }
    if let (&[a0, a1], &[b0, b1], &[o0, o1]) = (a.strides(), b.strides(), out.strides()) {
        return multiply_stack([a, b, out], bias, [1, m, n, k], &[[0, a0, a1], [0, b0, b1], [0, o0, o1]], [0; 3]);
    }
    let batch = &out.shape()[..out.ndim() - 2];
    let stack = |t: &Tensor, rows: usize, columns: usize| -> Layout {
        let mut sizes = Dims::from_slice(batch);
        sizes.extend([rows, columns]);
        t.layout().broadcast_to(&sizes)
    };
    let layouts = [stack(a, m, k), stack(b, k, n), out.layout().clone()];
    let merged = merged_from(batch, &layouts);
    let inner: usize = batch[merged..].iter().product();
    let step = |l: &Layout| if merged == batch.len() { 0 } else { innermost(&batch[merged..], &l.strides()[merged..batch.len()]) };
    let strides: [[isize; 3]; 3] = std::array::from_fn(|i| {
        let s = layouts[i].strides();
        [step(&layouts[i]), s[s.len() - 2], s[s.len() - 1]]
    });
    let outer = Layout::contiguous(&batch[..merged])?;
    let run = |offsets: [isize; 3]| multiply_stack([a, b, out], bias, [inner, m, n, k], &strides, offsets);
    if merged == 0 {
        return run([0; 3]);
    }
    let mut index: SmallVec<[usize; 6]> = smallvec![0; merged];
    for _ in 0..outer.numel() {
        let at = |l: &Layout| index.iter().zip(l.strides()).map(|(&i, &s)| i as isize * s).sum();
        run([at(&layouts[0]), at(&layouts[1]), at(&layouts[2])])?;
        for d in (0..merged).rev() {
            index[d] += 1;
            if index[d] < batch[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Ok(())
}

/// One stack of products: operands and result, sizes (products, rows, columns, length of the sums), the operands' strides in
/// these, and how many elements behind their first ones they begin.
fn multiply_stack(
    [a, b, out]: [&Tensor; 3],
    bias: Option<&Tensor>,
    [batch, m, n, k]: [usize; 4],
    strides: &[[isize; 3]; 3],
    offsets: [isize; 3],
) -> Result<()> {
    let dtype = a.dtype();
    let pointers = [a.data_ptr()?, b.data_ptr()?, out.data_ptr_mut()?];
    let operand = |i: usize| Memory { ptr: pointers[i].wrapping_offset(offsets[i] * dtype.size() as isize), dtype, strides: &strides[i] };
    let bias_strides = [0, 0, bias.map_or(0, |t| t.strides()[0])];
    let bias = match bias {
        Some(t) => Some(Memory { ptr: t.data_ptr()?, dtype: t.dtype(), strides: &bias_strides }),
        None => None,
    };
    let call = Matmul { batch, m, n, k, a: operand(0), b: operand(1), out: operand(2), bias, accumulate: false };
    // SAFETY: layouts stay inside their storages; `out` is fresh or checked by `bind`.
    unsafe { backend(out.device())?.matmul(&call) }
}

/// The first of the last dimensions of a stack that all operands walk with one stride each.
fn merged_from(batch: &[usize], layouts: &[Layout]) -> usize {
    let mut from = batch.len();
    while from > 0 && (from == batch.len() || layouts.iter().all(|l| walks_as_one(&batch[from - 1..], &l.strides()[from - 1..batch.len()])))
    {
        from -= 1;
    }
    from
}

/// Whether dimensions can be walked with the stride of the innermost one.
fn walks_as_one(sizes: &[usize], strides: &[isize]) -> bool {
    let mut step = None;
    for (&n, &s) in sizes.iter().zip(strides).rev() {
        if n == 1 {
            continue;
        }
        match step {
            Some(expected) if expected != s => return false,
            _ => step = Some(s * n as isize),
        }
    }
    true
}

/// The stride of the innermost dimension that is longer than 1.
fn innermost(sizes: &[usize], strides: &[isize]) -> isize {
    sizes.iter().zip(strides).rev().find(|(n, _)| **n != 1).map_or(0, |(_, s)| *s)
}
