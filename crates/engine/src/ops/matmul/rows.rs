//! `matmul` and the products of fixed rank.

use super::product::{Product, check_dtypes};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, Scalar, show};
use smallvec::SmallVec;

impl Tensor {
    /// Matrix product with the rules of NumPy's `matmul`: vectors are taken as rows or columns, stacks are broadcast.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        match (self.ndim(), other.ndim()) {
            (0, _) | (_, 0) => Err(Error::runtime(format!(
                "matmul: both arguments to matmul need to be at least 1D, but they are {}D and {}D",
                self.ndim(),
                other.ndim()
            ))),
            (1, 1) => self.dot(other),
            (1, _) => self.unsqueeze_at(0)?.matmul(other)?.squeeze_at(other.ndim() - 2),
            (_, 1) => self.matmul(&other.unsqueeze_at(1)?)?.squeeze_at(self.ndim() - 1),
            (3.., 2) if self.is_contiguous() => self.rows_times(other),
            _ => bind1(&Product, &[self, other]),
        }
    }

    /// All matrices of the stack at once: they share the right operand.
    fn rows_times(&self, other: &Tensor) -> Result<Tensor> {
        let k = self.shape()[self.ndim() - 1] as i64;
        if self.numel() == 0 {
            return bind1(&Product, &[self, other]);
        }
        let flat = bind1(&Product, &[&self.reshape(&[-1, k])?, other])?;
        let mut sizes: SmallVec<[i64; 6]> = self.shape()[..self.ndim() - 1].iter().map(|&n| n as i64).collect();
        sizes.push(other.shape()[1] as i64);
        flat.view(&sizes)
    }

    /// The inner product of two vectors.
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        if self.ndim() != 1 || other.ndim() != 1 || self.shape() != other.shape() {
            return Err(Error::runtime(format!(
                "dot: 1D tensors expected of one size (inconsistent tensor size), but got {}D and {}D tensors of shapes {} and {}",
                self.ndim(),
                other.ndim(),
                show(self.shape()),
                show(other.shape())
            )));
        }
        check_dtypes("dot", self, other)?;
        bind1(&Product, &[&self.unsqueeze_at(0)?, &other.unsqueeze_at(1)?])?.reshape(&[])
    }

    /// The product of two matrices.
    pub fn mm(&self, other: &Tensor) -> Result<Tensor> {
        rank("mm", self, 2)?;
        rank("mm", other, 2)?;
        bind1(&Product, &[self, other])
    }

    /// The products of two stacks of matrices.
    pub fn bmm(&self, other: &Tensor) -> Result<Tensor> {
        rank("bmm", self, 3)?;
        rank("bmm", other, 3)?;
        if self.shape()[0] != other.shape()[0] || self.shape()[2] != other.shape()[1] {
            return Err(Error::runtime(format!(
                "bmm: Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
                self.shape()[0],
                self.shape()[2],
                other.shape()[0],
                other.shape()[1]
            )));
        }
        bind1(&Product, &[self, other])
    }

    /// The product of each pair of elements of two vectors.
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        rank("outer", self, 1)?;
        rank("outer", other, 1)?;
        self.unsqueeze_at(1)?.mul(&other.unsqueeze_at(0)?)
    }

    fn unsqueeze_at(&self, d: usize) -> Result<Tensor> {
        let mut sizes: SmallVec<[i64; 6]> = self.shape().iter().map(|&n| n as i64).collect();
        sizes.insert(d, 1);
        self.reshape(&sizes)
    }

    fn squeeze_at(&self, d: usize) -> Result<Tensor> {
        let mut sizes: SmallVec<[i64; 6]> = self.shape().iter().map(|&n| n as i64).collect();
        sizes.remove(d);
        self.reshape(&sizes)
    }
}

fn rank(op: &str, t: &Tensor, want: usize) -> Result<()> {
    if t.ndim() == want {
        return Ok(());
    }
    Err(Error::runtime(format!("{op}: a tensor of {want} dimensions is needed ({want}D tensor expected), got shape {}", show(t.shape()))))
}

/// `beta * input + alpha * product`; where `beta` is 0 the input's values do not matter. Short floats are rounded once, at the end.
pub(super) fn weighted(a: &Args, product: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Out> {
    let (input, x, y, numbers) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, [a.scalar(3)?, a.scalar(4)?]);
    let dtype = x.dtype();
    // Integers are weighted by whole numbers, as PyTorch's kernels do.
    let numbers = if dtype.is_integral() { numbers.map(|s| Scalar::Int(s.to_i64())) } else { numbers };
    if dtype.is_reduced_float() && input.dtype() == dtype && y.dtype() == dtype {
        let wide = |t: &Tensor| t.to_dtype(DType::F32);
        let sum = weighted_sum(a.name, &wide(input)?, product(&wide(x)?, &wide(y)?)?, numbers)?;
        return Ok(sum.to_dtype(dtype)?.into());
    }
    Ok(weighted_sum(a.name, input, product(x, y)?, numbers)?.into())
}

fn weighted_sum(op: &str, input: &Tensor, product: Tensor, [beta, alpha]: [Scalar; 2]) -> Result<Tensor> {
    let scaled = if alpha.is(1.0) { product } else { product.mul(alpha)? };
    if beta.is(0.0) {
        return Ok(scaled);
    }
    let sum = if beta.is(1.0) { scaled.add(input)? } else { scaled.add(&input.mul(beta)?)? };
    if sum.shape() != scaled.shape() {
        return Err(Error::runtime(format!(
            "{op}: input of shape {} does not broadcast to the product's shape {}",
            show(input.shape()),
            show(scaled.shape())
        )));
    }
    Ok(sum)
}

fn matmul(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.matmul(a.tensor(1)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("matmul(Tensor self, Tensor other) -> Tensor", matmul)
        .autocast_lower()
        .doc("Matrix product. Two vectors give their inner product; a vector beside a matrix is taken as a row or column; stacks of matrices are broadcast.")
        .samples(&["T(2,3), T(3,4)", "T(3), T(3)", "T(3), T(3,2)", "T(2,3), T(3)", "T(4,2,3), T(3,5)", "T(4,1,2,3), T(5,3,2)"]),
    function("mm(Tensor self, Tensor mat2) -> Tensor", |a| Ok(a.tensor(0)?.mm(a.tensor(1)?)?.into()))
        .autocast_lower()
        .doc("Product of two matrices.")
        .samples(&["T(2,3), T(3,4)"]),
    function("bmm(Tensor self, Tensor mat2) -> Tensor", |a| Ok(a.tensor(0)?.bmm(a.tensor(1)?)?.into()))
        .autocast_lower()
        .doc("Products of two stacks of matrices of one length.")
        .samples(&["T(4,2,3), T(4,3,5)"]),
    function("mv(Tensor self, Tensor vec) -> Tensor", |a| {
        rank("mv", a.tensor(0)?, 2)?;
        rank("mv", a.tensor(1)?, 1)?;
        matmul(a)
    })
    .doc("Product of a matrix and a vector.")
    .samples(&["T(2,3), T(3)"]),
    function("dot(Tensor self, Tensor tensor) -> Tensor", |a| Ok(a.tensor(0)?.dot(a.tensor(1)?)?.into()))
        .doc("Inner product of two vectors of one length.")
        .samples(&["T(3), T(3)"]),
    function("outer(Tensor self, Tensor vec2) -> Tensor", |a| Ok(a.tensor(0)?.outer(a.tensor(1)?)?.into()))
        .doc("The product of each pair of elements of two vectors.")
        .samples(&["T(3), T(4)"]),
    function("ger(Tensor self, Tensor vec2) -> Tensor", |a| Ok(a.tensor(0)?.outer(a.tensor(1)?)?.into()))
        .doc("Alias of `outer`.")
        .samples(&["T(3), T(4)"]),
    function("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |a| {
        weighted(a, |x, y| x.mm(y))
    })
    .autocast_lower()
    .doc("`beta * self + alpha * (mat1 @ mat2)`; `self` is broadcast.")
    .samples(&["T(2,4), T(2,3), T(3,4)", "T(4), T(2,3), T(3,4), beta=0.5, alpha=2"])
    .with_inplace(),
    function("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |a| {
        weighted(a, |x, y| x.bmm(y))
    })
    .autocast_lower()
    .doc("`beta * self + alpha * (batch1 @ batch2)` for stacks of matrices.")
    .samples(&["T(4,2,5), T(4,2,3), T(4,3,5)", "T(1,5), T(4,2,3), T(4,3,5), beta=0.5, alpha=2"])
    .with_inplace(),
    function("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |a| {
        weighted(a, |x, y| x.matmul(y))
    })
    .doc("`beta * self + alpha * (mat @ vec)`.")
    .samples(&["T(2), T(2,3), T(3)"])
    .places(place::TORCH | place::METHOD)
    .with_inplace(),
];
