//! Products made of matrix products: inner and Kronecker products, chains, cross products, contractions.

use super::rows::weighted;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, broadcast, show, wrap_dim};
use smallvec::SmallVec;

type Sizes = SmallVec<[i64; 6]>;

impl Tensor {
    /// The inner product of two vectors of which the first is conjugated.
    pub fn vdot(&self, other: &Tensor) -> Result<Tensor> {
        self.conj()?.dot(other)
    }

    /// Sums of products over the last dimension of both (`torch.inner`); a number beside a tensor multiplies it.
    pub fn inner_product(&self, other: &Tensor) -> Result<Tensor> {
        if self.ndim() == 0 || other.ndim() == 0 {
            return self.mul(other);
        }
        let (n, m) = (self.shape()[self.ndim() - 1], other.shape()[other.ndim() - 1]);
        if n != m {
            return Err(Error::runtime(format!(
                "inner: inner() the last dimension must match on both input tensors but got shapes {} and {}",
                show(self.shape()),
                show(other.shape())
            )));
        }
        self.tensordot(other, &[-1], &[-1])
    }

    /// The Kronecker product: each element of this tensor replaced by itself times `other`.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example() -> Result<()> {
    /// let (a, b) = (Tensor::from_slice(&[1.0f32, 2.0], &[2])?, Tensor::from_slice(&[1.0f32, 10.0], &[2])?);
    /// assert_eq!(a.kron(&b)?.to_vec::<f32>()?, [1.0, 10.0, 2.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        let n = self.ndim().max(other.ndim());
        let (mut a, mut b, mut out) = (Sizes::new(), Sizes::new(), Sizes::new());
        for d in 0..n {
            let size = |t: &Tensor| (d + t.ndim()).checked_sub(n).map_or(1, |i| t.shape()[i] as i64);
            let (x, y) = (size(self), size(other));
            a.extend([x, 1]);
            b.extend([1, y]);
            out.push(x * y);
        }
        self.reshape(&a)?.mul(&other.reshape(&b)?)?.reshape(&out)
    }

    /// The sum of products over pairs of dimensions, which both tensors lose; the others follow, this tensor's first.
    pub fn tensordot(&self, other: &Tensor, dims: &[i64], others: &[i64]) -> Result<Tensor> {
        let op = "tensordot";
        if dims.len() != others.len() {
            return Err(Error::runtime(format!("{op}: both dimension lists should have same length, got {dims:?} and {others:?}")));
        }
        let wrap = |t: &Tensor, dims: &[i64]| -> Result<SmallVec<[usize; 6]>> {
            let found: SmallVec<[usize; 6]> = dims.iter().map(|&d| wrap_dim(op, d, t.ndim())).collect::<Result<_>>()?;
            match found.iter().enumerate().find(|(i, d)| found[..*i].contains(d)) {
                Some((_, d)) => Err(Error::runtime(format!("{op}: dim {d} appears multiple times in the list of dims {dims:?}"))),
                None => Ok(found),
            }
        };
        let (da, db) = (wrap(self, dims)?, wrap(other, others)?);
        let (mut a, mut b) = (self.clone(), other.clone());
        for (&i, &j) in da.iter().zip(&db) {
            match (a.shape()[i], b.shape()[j]) {
                (1, _) => b = b.sum_dims(Some(&[j as i64]), true, Some(b.dtype()))?,
                (_, 1) => a = a.sum_dims(Some(&[i as i64]), true, Some(a.dtype()))?,
                (m, n) if m != n => {
                    return Err(Error::runtime(format!(
                        "{op}: contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in dim {j}"
                    )));
                }
                _ => {}
            }
        }
        let free = |t: &Tensor, taken: &[usize]| -> SmallVec<[usize; 6]> { (0..t.ndim()).filter(|d| !taken.contains(d)).collect() };
        let (fa, fb) = (free(&a, &da), free(&b, &db));
        let sizes = |t: &Tensor, dims: &[usize]| -> Sizes { dims.iter().map(|&d| t.shape()[d] as i64).collect() };
        let count = |s: &Sizes| s.iter().product::<i64>();
        let (of_a, of_b, k) = (sizes(&a, &fa), sizes(&b, &fb), count(&sizes(&a, &da)));
        let order = |x: &[usize], y: &[usize]| -> Sizes { x.iter().chain(y).map(|&d| d as i64).collect() };
        let left = a.permute(&order(&fa, &da))?.reshape(&[count(&of_a), k])?;
        let right = b.permute(&order(&db, &fb))?.reshape(&[k, count(&of_b)])?;
        let out: Sizes = of_a.into_iter().chain(of_b).collect();
        left.mm(&right)?.reshape(&out)
    }

    /// Vectors along `dim`, of length 3, that stand at right angles to those of both tensors; other dimensions are broadcast.
    pub fn cross(&self, other: &Tensor, dim: i64) -> Result<Tensor> {
        let op = "linalg.cross";
        if self.ndim() != other.ndim() {
            return Err(Error::runtime(format!(
                "{op}: inputs must have the same number of dimensions, got shapes {} and {}",
                show(self.shape()),
                show(other.shape())
            )));
        }
        let d = wrap_dim(op, dim, self.ndim())?;
        if self.shape().get(d) != Some(&3) || other.shape().get(d) != Some(&3) {
            return Err(Error::runtime(format!(
                "{op}: inputs dimension {dim} must have length 3. Got shapes {} and {}",
                show(self.shape()),
                show(other.shape())
            )));
        }
        let common = broadcast(op, self.shape(), other.shape())?;
        let (a, b, d) = (self.expand_to(&common)?, other.expand_to(&common)?, [d as i64]);
        a.roll(&[-1], &d)?.mul(&b.roll(&[-2], &d)?)?.sub(&a.roll(&[-2], &d)?.mul(&b.roll(&[-1], &d)?)?)
    }
}

/// The product of a chain of matrices in the order that takes the fewest multiplications (Cormen et al., chapter 15.2).
pub fn multi_dot(tensors: &[&Tensor]) -> Result<Tensor> {
    let op = "linalg.multi_dot";
    let n = tensors.len();
    if n < 2 {
        return Err(Error::runtime(format!("{op}: expected at least 2 tensors but got {n}")));
    }
    let edge = |i: usize, at_front: bool| -> Result<Tensor> {
        match tensors[i].ndim() {
            1 => tensors[i].unsqueeze(if at_front { 0 } else { -1 }),
            2 => Ok(tensors[i].clone()),
            _ => Err(Error::runtime(format!(
                "{op}: the first and last tensors must be 1D or 2D, but tensor {i} has shape {}",
                show(tensors[i].shape())
            ))),
        }
    };
    let mut chain = vec![edge(0, true)?];
    for (i, t) in tensors.iter().enumerate().take(n - 1).skip(1) {
        if t.ndim() != 2 {
            return Err(Error::runtime(format!("{op}: tensor {i} must be 2D but got {}D", t.ndim())));
        }
        chain.push((*t).clone());
    }
    chain.push(edge(n - 1, false)?);
    if let Some(i) = (1..n).find(|&i| chain[i - 1].shape()[1] != chain[i].shape()[0]) {
        return Err(Error::runtime(format!(
            "{op}: tensors {} and {i} with shapes {} and {} cannot be multiplied",
            i - 1,
            show(chain[i - 1].shape()),
            show(chain[i].shape())
        )));
    }
    if let Some(t) = chain.iter().find(|t| t.dtype() != chain[0].dtype()) {
        return Err(Error::runtime(format!(
            "{op}: all tensors must have be the same dtype but tensor 0 is {} and another {}",
            chain[0].dtype(),
            t.dtype()
        )));
    }
    let split = splits(&chain);
    let mut sizes = Sizes::new();
    if tensors[0].ndim() == 2 {
        sizes.push(chain[0].shape()[0] as i64);
    }
    if tensors[n - 1].ndim() == 2 {
        sizes.push(chain[n - 1].shape()[1] as i64);
    }
    product_of(&chain, &split, 0, n - 1)?.reshape(&sizes)
}

/// Where to part each stretch of the chain.
fn splits(chain: &[Tensor]) -> Vec<Vec<usize>> {
    let n = chain.len();
    let rows = |i: usize| if i < n { chain[i].shape()[0] as f64 } else { chain[n - 1].shape()[1] as f64 };
    let (mut cost, mut split) = (vec![vec![0.0f64; n]; n], vec![vec![0; n]; n]);
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            cost[i][j] = f64::INFINITY;
            for k in i..j {
                let c = cost[i][k] + cost[k + 1][j] + rows(i) * rows(k + 1) * rows(j + 1);
                if c < cost[i][j] {
                    (cost[i][j], split[i][j]) = (c, k);
                }
            }
        }
    }
    split
}

/// The product of a stretch, in the order found. The chain is walked with a stack of its own.
fn product_of(chain: &[Tensor], split: &[Vec<usize>], first: usize, last: usize) -> Result<Tensor> {
    enum Step {
        Stretch(usize, usize),
        Multiply,
    }
    let (mut todo, mut done) = (vec![Step::Stretch(first, last)], Vec::<Tensor>::new());
    while let Some(step) = todo.pop() {
        match step {
            Step::Stretch(i, j) if i == j => done.push(chain[i].clone()),
            Step::Stretch(i, j) => {
                let k = split[i][j];
                todo.extend([Step::Multiply, Step::Stretch(k + 1, j), Step::Stretch(i, k)]);
            }
            Step::Multiply => {
                if let (Some(b), Some(a)) = (done.pop(), done.pop()) {
                    done.push(a.mm(&b)?);
                }
            }
        }
    }
    done.pop().ok_or_else(|| Error::runtime("linalg.multi_dot: no product"))
}

/// `addr`; bool counts as 0 and 1.
fn addr(a: &Args) -> Result<Out> {
    let (x, u, v) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    for (name, t) in [("vec1", u), ("vec2", v)] {
        if t.ndim() != 1 {
            return Err(Error::runtime(format!("addr: Expected 1-D argument {name}, but got {}-D", t.ndim())));
        }
    }
    let shape = [u.numel(), v.numel()];
    if !crate::ops::expandable(x.shape(), &shape) {
        return Err(Error::runtime(format!(
            "addr: The expanded size of the tensor must match the existing size: input of shape {} does not broadcast to {}",
            show(x.shape()),
            show(&shape)
        )));
    }
    let outer = |u: &Tensor, v: &Tensor| u.unsqueeze(1)?.mul(v);
    if x.dtype() == DType::Bool && u.dtype() == DType::Bool && v.dtype() == DType::Bool {
        let (beta, alpha) = (a.scalar(3)?.to_bool(), a.scalar(4)?.to_bool());
        let none = Tensor::zeros(&[], DType::Bool, x.device())?;
        let part = |t: &Tensor, on: bool| t.logical_and(&if on { none.logical_not()? } else { none.clone() });
        return Ok(part(x, beta)?.logical_or(&part(&outer(u, v)?, alpha)?)?.into());
    }
    weighted(a, outer)
}

fn addbmm(a: &Args) -> Result<Out> {
    let (x, y) = (a.tensor(1)?, a.tensor(2)?);
    for (name, t) in [("batch1", x), ("batch2", y)] {
        if t.ndim() != 3 {
            return Err(Error::runtime(format!("addbmm: {name} must be a 3D tensor, got shape {}", show(t.shape()))));
        }
    }
    if x.shape()[0] != y.shape()[0] || x.shape()[2] != y.shape()[1] {
        return Err(Error::runtime(format!(
            "addbmm: batch1 and batch2 must have same number of batches and fitting matrices (Incompatible matrix sizes for bmm), got {} and {}",
            show(x.shape()),
            show(y.shape())
        )));
    }
    let (n, p) = (x.shape()[1] as i64, y.shape()[2] as i64);
    let k = (x.shape()[0] * x.shape()[2]) as i64;
    weighted(a, |x, y| x.transpose(0, 1)?.reshape(&[n, k])?.mm(&y.reshape(&[k, p])?))
}

fn cross(a: &Args) -> Result<Out> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let dim = match a.opt_int(2)? {
        Some(d) => d,
        None => (0..x.ndim())
            .find(|&d| x.shape()[d] == 3)
            .map(|d| d as i64)
            .ok_or_else(|| Error::runtime(format!("cross: no dimension of size 3 in input of shape {}", show(x.shape()))))?,
    };
    Ok(x.cross(y, dim)?.into())
}

fn vecdot(a: &Args) -> Result<Out> {
    let (x, y, dim) = (a.tensor(0)?, a.tensor(1)?, a.int(2)?);
    if x.dtype().is_integral() {
        return Err(Error::not_implemented(format!(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
            x.dtype()
        )));
    }
    let shape = broadcast("linalg.vecdot", x.shape(), y.shape())?;
    wrap_dim("linalg.vecdot", dim, shape.len())?;
    let dtype = x.dtype();
    Ok(x.conj()?.expand_to(&shape)?.mul(&y.expand_to(&shape)?)?.sum_dims(Some(&[dim]), false, Some(dtype))?.into())
}

fn vander(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    let x = if x.dtype() == DType::Bool || x.dtype().is_integral() { x.to_dtype(DType::I64)? } else { x.clone() };
    let x = if x.ndim() == 0 { x.unsqueeze(0)? } else { x };
    let n = a.opt_int(1)?.unwrap_or_else(|| x.shape().last().copied().unwrap_or(1) as i64);
    if n <= 1 {
        return Err(Error::runtime(format!("linalg.vander: N must be greater than 1, got {n}")));
    }
    let mut sizes: Sizes = x.shape().iter().map(|&n| n as i64).collect();
    sizes.push(n - 1);
    let powers = x.unsqueeze(-1)?.expand(&sizes)?.cumprod(-1, None)?;
    let ones = powers.narrow(-1, 0, 1)?.alias().ones_like()?;
    Ok(crate::ops::join::cat(&[&ones, &powers], -1)?.into())
}

fn trace(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    if x.ndim() != 2 {
        return Err(Error::runtime(format!("trace: expected a matrix, but got tensor with dim {}", x.ndim())));
    }
    Ok(x.diagonal(0, 0, 1)?.sum()?.into())
}

fn multi(a: &Args) -> Result<Out> {
    Ok(multi_dot(&a.tensors(0)?)?.into())
}

const TORCH: u8 = place::TORCH;

pub(super) static OPS: &[Op] = &[
    function("vdot(Tensor self, Tensor other) -> Tensor", |a| Ok(a.tensor(0)?.vdot(a.tensor(1)?)?.into()))
        .doc("Inner product of two vectors, the first conjugated.")
        .samples(&["T(3), T(3)"]),
    function("inner(Tensor self, Tensor other) -> Tensor", |a| Ok(a.tensor(0)?.inner_product(a.tensor(1)?)?.into()))
        .doc("Sums of products over the last dimension of both; a number multiplies the other.")
        .samples(&["T(3), T(3)", "T(2,3), T(4,3)", "T(), T(3)"]),
    function("kron(Tensor self, Tensor other) -> Tensor", |a| Ok(a.tensor(0)?.kron(a.tensor(1)?)?.into()))
        .doc("Kronecker product: each element of `self` replaced by itself times `other`.")
        .samples(&["T(2,2), T(2,3)", "T(3), T(2,2)"]),
    function("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", |a| {
        Ok(a.tensor(0)?.tensordot(a.tensor(1)?, &a.ints(2)?, &a.ints(3)?)?.into())
    })
    .autocast_lower()
    .places(TORCH)
    .doc("Sum of products over pairs of dimensions; the others follow, those of `self` first.")
    .samples(&["T(2,3,4), T(4,3,5), [1, 2], [1, 0]", "T(2), T(3), [], []"]),
    function("trace(Tensor self) -> Tensor", trace)
        .without_out()
        .autocast_full()
        .doc("Sum of a matrix's diagonal.")
        .samples(&["T(3,3)", "T(2,4)"]),
    function("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addr)
        .doc("`beta * self + alpha * outer(vec1, vec2)`; `self` is broadcast.")
        .samples(&["T(2,3), T(2), T(3)", "T(3), T(2), T(3), beta=0.5, alpha=2"])
        .with_inplace(),
    function("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addbmm)
        .autocast_lower()
        .doc("`beta * self + alpha * (sum of the products of two stacks of matrices)`; `self` is broadcast.")
        .samples(&["T(2,5), T(4,2,3), T(4,3,5)", "T(5), T(4,2,3), T(4,3,5), beta=0.5, alpha=2"])
        .with_inplace(),
    function("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross)
        .doc("Cross products of the vectors along `dim`, of length 3 (the first such dimension unless given).")
        .samples(&["T(2,3), T(2,3)", "T(3,2), T(3,1), 0"]),
    function("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", |a| {
        Ok(a.tensor(0)?.cross(a.tensor(1)?, a.int(2)?)?.into())
    })
    .places(place::PRIVATE)
    .doc("Cross products of the vectors along `dim`, of length 3.")
    .samples(&["T(2,3), T(2,3)", "T(3,2), T(3,1), dim=0"]),
    function("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", vecdot)
        .autocast_lower()
        .places(place::PRIVATE)
        .doc("Inner products of vectors along `dim`, those of `x` conjugated.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3,2,1), dim=0"]),
    function("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", vander)
        .places(place::PRIVATE)
        .without_out()
        .doc("Vandermonde matrices: the powers 0 to `N - 1` of each element, along a new last dimension.")
        .samples(&["T(3)", "T(2,3), N=4"]),
    function("linalg_multi_dot(Tensor[] tensors) -> Tensor", multi)
        .autocast_lower()
        .places(place::PRIVATE)
        .doc("Product of a chain of matrices in the cheapest order; the first and the last may be vectors.")
        .samples(&["[T(2,3), T(3,4), T(4,2)]", "[T(3), T(3,4), T(4)]"]),
    super::super::table::view_row("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", |a| {
        Ok(a.tensor(0)?.diagonal(a.int(1)?, a.int(2)?, a.int(3)?)?.into())
    })
    .places(place::PRIVATE)
    .doc("A view of the diagonals of matrices.")
    .samples(&["T(3,3)", "T(2,3,4), offset=1"]),
];
