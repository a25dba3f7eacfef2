//! Norms of matrices, and condition numbers.

use super::{check_dtype, check_info, matrices, square};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use flambeau_base::{DType, Error, Result, show, wrap_dim};
use smallvec::SmallVec;

type Sizes = SmallVec<[i64; 6]>;

/// Which norm of a matrix.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Frobenius,
    Nuclear,
    Number(f64),
}

impl Order {
    fn named(op: &str, name: &str) -> Result<Order> {
        match name {
            "fro" => Ok(Order::Frobenius),
            "nuc" => Ok(Order::Nuclear),
            other => Err(Error::runtime(format!("{op}: Order {other} not supported; 'fro', 'nuc', 1, -1, 2, -2, inf and -inf are"))),
        }
    }

    fn of(a: &Args, i: usize) -> Result<Order> {
        match &a.values[i] {
            Value::Str(s) => Order::named(a.name, s),
            _ => Ok(Order::Number(a.scalar(i)?.to_f64())),
        }
    }
}

fn floating(op: &str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    if !x.dtype().is_float() && !x.dtype().is_complex() {
        return Err(Error::not_implemented(format!("{op}: Expected a floating point or complex tensor as input. Got {}", x.dtype())));
    }
    match dtype {
        Some(d) if !d.is_float() && !d.is_complex() => {
            Err(Error::runtime(format!("{op}: dtype should be floating point or complex. Got {d}")))
        }
        Some(d) if x.dtype().promote(d)? != d => Err(Error::runtime(format!(
            "{op}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({d})",
            x.dtype()
        ))),
        Some(d) => x.to_dtype(d),
        None => Ok(x.clone()),
    }
}

fn matrix_norm(op: &str, x: &Tensor, order: Order, dims: &[i64], keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let x = floating(op, x, dtype)?;
    matrices(op, &x)?;
    let [first, second] = dims[..] else {
        return Err(Error::runtime(format!("{op}: dim must be a 2-tuple. Got {dims:?}")));
    };
    let (a, b) = (wrap_dim(op, first, x.ndim())?, wrap_dim(op, second, x.ndim())?);
    if a == b {
        return Err(Error::runtime(format!("{op}: dims must be different. Got ({first}, {second})")));
    }
    let (mut row, mut column) = (a as i64, b as i64);
    match order {
        Order::Frobenius => x.vector_norm(2.0, Some(&[row, column]), keepdim, None),
        Order::Nuclear => with_values(op, &x, row, column, keepdim, |s| s.sum_dims(Some(&[-1]), false, None)),
        Order::Number(p) if p.abs() == 2.0 => {
            let empty = x.shape()[a].min(x.shape()[b]) == 0;
            // The largest of no singular values is 0.
            with_values(op, &x, row, column, keepdim, |s| {
                if empty && p > 0.0 {
                    s.sum_dims(Some(&[-1]), false, None)
                } else if p > 0.0 {
                    s.amax(Some(&[-1]), false)
                } else {
                    s.amin(Some(&[-1]), false)
                }
            })
        }
        Order::Number(p) if p.abs() == 1.0 || p.is_infinite() => {
            if p.is_infinite() {
                std::mem::swap(&mut row, &mut column);
            }
            let sums = x.vector_norm(1.0, Some(&[row]), true, None)?;
            if p > 0.0 && sums.shape()[column as usize] == 0 {
                let sums = sums.sum_dims(Some(&[column]), true, None)?;
                return if keepdim { Ok(sums) } else { sums.squeeze(Some(&[row, column])) };
            }
            let out = if p > 0.0 { sums.amax(Some(&[column]), true)? } else { sums.amin(Some(&[column]), true)? };
            if keepdim { Ok(out) } else { out.squeeze(Some(&[row, column])) }
        }
        Order::Number(p) => Err(Error::runtime(format!("{op}: Order {p} not supported"))),
    }
}

/// What singular values give, with the dimensions of the matrices dropped, or kept as 1.
fn with_values(op: &str, x: &Tensor, row: i64, column: i64, keepdim: bool, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    check_dtype(op, x)?;
    let out = f(&x.movedim(&[row, column], &[-2, -1])?.svdvals()?)?;
    if !keepdim {
        return Ok(out);
    }
    out.unsqueeze(-1)?.unsqueeze(-1)?.movedim(&[-2, -1], &[row, column])
}

/// `linalg.norm`: of vectors or matrices, as `ord` and `dim` say.
fn norm(a: &Args) -> Result<Out> {
    let op = "linalg.norm";
    let (x, dims, keepdim, dtype) = (a.tensor(0)?, a.opt_ints(2)?, a.bool(3)?, a.opt_dtype(4)?);
    if let Some(d) = &dims
        && !matches!(d.len(), 1 | 2)
    {
        return Err(Error::runtime(format!("{op}: If dim is specified, it must be of length 1 or 2. Got {d:?}")));
    }
    if matches!(a.values[1], Value::None) {
        let x = floating(op, x, dtype)?;
        return Ok(x.vector_norm(2.0, dims.as_deref(), keepdim, None)?.into());
    }
    let order = Order::of(a, 1)?;
    if dims.is_none() && !matches!(x.ndim(), 1 | 2) {
        return Err(Error::runtime(format!("{op}: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D", x.ndim())));
    }
    let matrix = dims.as_ref().map_or(x.ndim() == 2, |d| d.len() == 2);
    if matrix || !matches!(order, Order::Number(_)) {
        let all: Sizes = (0..x.ndim() as i64).collect();
        return Ok(matrix_norm(op, x, order, dims.as_deref().unwrap_or(&all), keepdim, dtype)?.into());
    }
    let Order::Number(p) = order else { return Err(Error::runtime(format!("{op}: unknown order"))) };
    Ok(floating(op, x, dtype)?.vector_norm(p, dims.as_deref(), keepdim, None)?.into())
}

fn matrix(a: &Args) -> Result<Out> {
    Ok(matrix_norm("linalg.matrix_norm", a.tensor(0)?, Order::of(a, 1)?, &a.ints(2)?, a.bool(3)?, a.opt_dtype(4)?)?.into())
}

/// Condition numbers: the norm times that of the inverse.
fn cond(a: &Args) -> Result<Out> {
    let op = "linalg.cond";
    let x = a.tensor(0)?;
    check_dtype(op, x)?;
    matrices(op, x)?;
    let order = if matches!(a.values[1], Value::None) { Order::Number(2.0) } else { Order::of(a, 1)? };
    if let Order::Number(p) = order
        && p.abs() == 2.0
    {
        let s = x.svdvals()?;
        if s.numel() == 0 {
            return Ok(Tensor::zeros(&s.shape()[..s.ndim() - 1], s.dtype(), s.device())?.into());
        }
        let (largest, smallest) = (s.select(-1, 0)?, s.select(-1, -1)?);
        return Ok(if p > 0.0 { largest.div(&smallest)? } else { smallest.div(&largest)? }.into());
    }
    square(op, x)?;
    if x.numel() == 0 {
        return Ok(matrix_norm(op, x, Order::Frobenius, &[-2, -1], false, None)?.into());
    }
    let (inverse, info) = super::solve::inverse(x)?;
    let here = matrix_norm(op, x, order, &[-2, -1], false, None)?;
    if check_info(op, &info, |_| String::new()).is_err() {
        let there = inverse.masked_fill(&info.ne(0)?.unsqueeze(-1)?.unsqueeze(-1)?, 1)?;
        let product = here.mul(&matrix_norm(op, &there, order, &[-2, -1], false, None)?)?;
        return Ok(product.masked_fill(&info.ne(0)?, f64::INFINITY)?.into());
    }
    Ok(here.mul(&matrix_norm(op, &inverse, order, &[-2, -1], false, None)?)?.into())
}

/// The sum of singular values.
fn nuclear(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    if x.ndim() != 2 {
        return Err(Error::runtime(format!("nuclear_norm: Expected a tensor with 2 dimensions, but got shape {}", show(x.shape()))));
    }
    Ok(matrix_norm("nuclear_norm", x, Order::Nuclear, &[-2, -1], a.bool(1)?, None)?.into())
}

const PRIVATE: u8 = place::PRIVATE;

pub(super) static OPS: &[Op] = &[
    function("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", norm)
        .places(PRIVATE)
        .doc("Norms of vectors (one dimension) or matrices (two): see `linalg.vector_norm` and `linalg.matrix_norm`; without `ord` the 2-norm of all elements.")
        .samples(&["T(2,3)", "T(3), 3", "T(2,3), 1", "T(2,3,4; 0.5..3), inf, [0, 2], True"]),
    function("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", norm)
        .places(PRIVATE)
        .doc("Norms of matrices: `fro` or `nuc`.")
        .samples(&["T(2,3), 'fro'", "T(2,3), 'nuc'"]),
    function("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", matrix)
        .places(PRIVATE)
        .doc("Norms of matrices: 1 and -1 of column sums, inf and -inf of row sums, 2 and -2 of singular values.")
        .samples(&["T(2,3), 1", "T(2,3), 2", "T(3,2,2), -2, [0, 2], True"]),
    function("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", matrix)
        .places(PRIVATE)
        .doc("Norms of matrices: `fro`, the root of the sum of squares, or `nuc`, the sum of singular values.")
        .samples(&["T(2,3)", "T(2,3), 'nuc'"]),
    function("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", cond)
        .autocast_full()
        .places(PRIVATE)
        .doc("Condition numbers: the norm of order `p` (2 unless given) times that of the inverse; infinite where a matrix is singular.")
        .samples(&["T(3,3)", "T(3,3), 1"]),
    function("linalg_cond.p_str(Tensor self, str p) -> Tensor", cond).autocast_full().places(PRIVATE).doc("Condition numbers by the norm `fro` or `nuc`.").samples(&["T(3,3), 'fro'"]),
    function("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", nuclear)
        .places(place::TORCH)
        .doc("The sum of singular values.")
        .samples(&["T(2,3)"]),
];
