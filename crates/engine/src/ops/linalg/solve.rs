//! Triangular and general systems.

use super::factor::{lu_factor, no_derivative, permutation, rows_of};
use super::{
    Into_, Options, Spec, batch, by_columns, check_dtype, check_info, factorize, in_columns, laid, matrices, plain, run, settle, square,
    stacked, target,
};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::transforms::{Factor, TriangularSolve};
use crate::ops::Reads;
use flambeau_base::{DType, Error, Result, broadcast, show};
use smallvec::smallvec;

/// Options: whether the upper triangle is read, and whether the diagonal counts as ones.
static TRIANGULAR: Spec = Spec {
    name: "linalg.solve_triangular",
    infer: |inputs, _| {
        let (a, b) = (inputs[0], inputs[1]);
        let n = square("linalg.solve_triangular", a)?;
        let (_, k) = matrices("linalg.solve_triangular", b)?;
        let lead = broadcast("linalg.solve_triangular", batch(a), batch(b))?;
        Ok(smallvec![by_columns(&stacked(&lead, &[n, k]), b.dtype())?])
    },
    compute: |inputs, outputs, [upper, unit]| {
        let x = target(&outputs[0], true)?;
        crate::ops::copy_into(&x, &inputs[1].expand_to(x.shape())?)?;
        solve_in_place(inputs[0], &x, upper == 1, unit == 1)?;
        settle(&[(&x, &outputs[0])])
    },
    vjp: |cx, grads, [upper, unit]| {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None, None]) };
        let a = cx.input(0)?;
        let of_b = solve_triangular(&a.adjoint()?, &g, upper == 0, true, unit == 1)?;
        let of_a = if cx.needs(0) {
            let whole = of_b.matmul(&cx.output(0)?.adjoint()?)?.neg()?;
            let off = unit as i64;
            Some(if upper == 1 { whole.triu(off)? } else { whole.tril(-off)? })
        } else {
            None
        };
        Ok(smallvec![of_a, Some(of_b)])
    },
    reads: Reads::both(1, 1),
    differentiable: 1,
};

/// Solves into `x`, which holds the right sides and lies column by column.
fn solve_in_place(a: &Tensor, x: &Tensor, upper: bool, unit: bool) -> Result<()> {
    if x.numel() == 0 {
        return Ok(());
    }
    let (n, k) = matrices("linalg.solve_triangular", x)?;
    let count: usize = batch(x).iter().product();
    let single = batch(a).iter().product::<usize>() == 1;
    let dense = |t: &Tensor| t.is_contiguous() || t.transpose(-2, -1).is_ok_and(|t| t.is_contiguous());
    let a =
        if single || (batch(a) == batch(x) && dense(a)) { a.clone() } else { a.expand_to(&stacked(batch(x), &[n, n]))?.contiguous()? };
    let s = a.strides();
    let call = TriangularSolve {
        dtype: x.dtype(),
        batch: count,
        n,
        columns: k,
        upper,
        unit,
        a: a.data_ptr()?,
        a_strides: [if single { 0 } else { (n * n) as isize }, s[s.len() - 2], s[s.len() - 1]],
        b: x.data_ptr_mut()?,
        b_strides: [(n * k) as isize, 1, n as isize],
    };
    // SAFETY: strides are those of the tensors' layouts; `x` is fresh or checked by `bind`.
    unsafe { backend(x.device())?.solve_triangular(&call) }
}

/// `X` with `A X = B` (`X A = B` unless `left`) for triangular `A`; stacks are broadcast.
pub fn solve_triangular(a: &Tensor, b: &Tensor, upper: bool, left: bool, unit: bool) -> Result<Tensor> {
    let op = "linalg.solve_triangular";
    check_dtype(op, a)?;
    let n = square(op, a)?;
    let (m, k) = matrices(op, b)?;
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{op}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype(),
            b.dtype()
        )));
    }
    check_equation(op, a, b, n == if left { m } else { k }, left)?;
    if left {
        return Ok(run(&TRIANGULAR, &[a, b], [upper as usize, unit as usize])?.remove(0));
    }
    let x = run(&TRIANGULAR, &[&a.transpose(-2, -1)?, &b.transpose(-2, -1)?], [!upper as usize, unit as usize])?.remove(0);
    laid(&x.transpose(-2, -1)?)
}

/// `X` with `A X = B`, from the factors of `A`; with `adjoint`, `A^H X = B`. `X A = B` unless `left`.
pub fn lu_solve(lu: &Tensor, pivots: &Tensor, b: &Tensor, left: bool, adjoint: bool) -> Result<Tensor> {
    let op = "linalg.lu_solve";
    check_dtype(op, lu)?;
    let n = square(op, lu)?;
    if !matches!(pivots.dtype(), DType::I32 | DType::I64) {
        return Err(Error::runtime(format!("{op}: pivots should be a Tensor of scalar type torch.int32, got {}", pivots.dtype())));
    }
    if lu.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{op}: Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead",
            lu.dtype(),
            b.dtype()
        )));
    }
    let (m, k) = matrices(op, b)?;
    if n != if left { m } else { k } {
        return Err(Error::runtime(format!(
            "{op}: Incompatible shapes of A and B for the equation AX = B ({} and {})",
            show(lu.shape()),
            show(b.shape())
        )));
    }
    if pivots.shape() != &*stacked(batch(lu), &[n]) {
        return Err(Error::runtime(format!(
            "{op}: Number of pivots per batch should be same as the dimension of the matrix: {} for {}",
            show(pivots.shape()),
            show(lu.shape())
        )));
    }
    if !left {
        // X A = B is A^H X^H = B^H.
        return lu_solve(lu, pivots, &b.adjoint()?, true, !adjoint)?.adjoint()?.resolved()?.contiguous();
    }
    let order = permutation(pivots, n)?;
    if adjoint {
        let h = lu.adjoint()?;
        let y = solve_triangular(&h, &solve_triangular(&h, b, false, true, false)?, true, true, true)?;
        return laid(&rows_of(&y, &order.sort(-1, false)?.1)?);
    }
    let y = solve_triangular(lu, &rows_of(b, &order)?, false, true, true)?;
    solve_triangular(lu, &y, true, true, false)
}

/// Inputs the factors, pivots and right sides, of one stack each; option whether they are Hermitian.
static LDL_SOLVE: Spec = Spec {
    name: "linalg.ldl_solve",
    infer: |inputs, _| Ok(smallvec![by_columns(inputs[2].shape(), inputs[2].dtype())?]),
    compute: |inputs, outputs, options| {
        let x = target(&outputs[0], true)?;
        crate::ops::copy_into(&x, inputs[2])?;
        let pivots = inputs[1].to_dtype(DType::I32)?.contiguous()?;
        let k = x.shape()[x.ndim() - 1];
        let into = Into_ { right: Some(&x), pivots: Some(&pivots), ..Into_::default() };
        factorize(Factor::LdlSolve, &in_columns(inputs[0])?, [options[0], k], into)?;
        settle(&[(&x, &outputs[0])])
    },
    vjp: no_derivative,
    reads: Reads::NONE,
    differentiable: 0,
};

/// `X` with `A X = B`, from the factors and pivots of `linalg.ldl_factor`; stacks are broadcast.
pub(super) fn ldl_solve(ld: &Tensor, pivots: &Tensor, b: &Tensor, hermitian: bool) -> Result<Tensor> {
    let op = "linalg.ldl_solve";
    check_dtype(op, ld)?;
    let n = square(op, ld)?;
    let (m, k) = matrices(op, b)?;
    let wrong = |why: String| Err(Error::runtime(format!("{op}: {why}")));
    if !pivots.dtype().is_integral() || pivots.dtype() == DType::Bool {
        return wrong(format!("Expected pivots to be integers. Got {}", pivots.dtype()));
    }
    if ld.dtype() != b.dtype() {
        return wrong(format!("Expected LD and B to have the same dtype, but found LD of type {} and B of type {}", ld.dtype(), b.dtype()));
    }
    if pivots.shape() != &ld.shape()[..ld.ndim() - 1] {
        return wrong(format!(
            "Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} for {}",
            show(pivots.shape()),
            show(ld.shape())
        ));
    }
    check_equation(op, ld, b, m == n, true)?;
    let lead = broadcast(op, batch(ld), batch(b))?;
    for (i, p) in pivots.to_scalars()?.into_iter().enumerate() {
        let size = p.to_i64().unsigned_abs() as usize;
        if size == 0 || size > n {
            return wrong(format!("pivots must be between 1 and {n} or their negative, got {p} (element {i})"));
        }
    }
    check_blocks(op, pivots, n)?;
    let (ld, b) = (ld.expand_to(&stacked(&lead, &[n, n]))?, b.expand_to(&stacked(&lead, &[n, k]))?);
    let pivots = pivots.expand_to(&stacked(&lead, &[n]))?;
    let hermitian = hermitian && ld.dtype().is_complex();
    Ok(run(&LDL_SOLVE, &[&ld, &pivots, &b], [hermitian as usize, 0])?.remove(0))
}

/// Refuses negative pivots that do not come in pairs.
fn check_blocks(op: &str, pivots: &Tensor, n: usize) -> Result<()> {
    for row in pivots.to_scalars()?.chunks(n.max(1)) {
        let mut k = 0;
        while k < n {
            if row[k].to_i64() < 0 && (k + 1 == n || row[k + 1].to_i64() >= 0) {
                return Err(Error::runtime(format!("{op}: negative pivots stand for blocks of two rows, but row {} is alone", k + 1)));
            }
            k += if row[k].to_i64() < 0 { 2 } else { 1 };
        }
    }
    Ok(())
}

/// Inputs `A` and `B`, outputs `X`, the factors of `A`, pivots and info.
static SOLVE: Spec = Spec {
    name: "linalg.solve",
    infer: |inputs, _| {
        let (a, b) = (inputs[0], inputs[1]);
        let n = square("linalg.solve", a)?;
        let (_, k) = matrices("linalg.solve", b)?;
        let lead = broadcast("linalg.solve", batch(a), batch(b))?;
        Ok(smallvec![
            by_columns(&stacked(&lead, &[n, k]), b.dtype())?,
            by_columns(a.shape(), a.dtype())?,
            plain(&stacked(batch(a), &[n]), DType::I32)?,
            plain(batch(a), DType::I32)?
        ])
    },
    compute: |inputs, outputs, _| {
        let (lu, pivots, info) = lu_factor(&inputs[0].alias())?;
        let x = lu_solve(&lu, &pivots, &inputs[1].alias(), true, false)?;
        settle(&[(&x, &outputs[0]), (&lu, &outputs[1]), (&pivots, &outputs[2]), (&info, &outputs[3])])
    },
    vjp: solve_vjp,
    reads: Reads::both(1, 0b111),
    differentiable: 1,
};

fn solve_vjp(cx: &Cx, grads: &mut Grads, _: Options) -> Result<Grads> {
    let Some(g) = grads[0].take() else { return Ok(smallvec![None, None]) };
    // Where this is differentiated again, the factors would lack their history.
    let of_b = if crate::autograd::is_grad_enabled() {
        solve(&cx.input(0)?.adjoint()?, &g)?.0
    } else {
        lu_solve(&cx.output(1)?, &cx.output(2)?, &g, true, true)?
    };
    let of_a = if cx.needs(0) { Some(of_b.matmul(&cx.output(0)?.adjoint()?)?.neg()?) } else { None };
    Ok(smallvec![of_a, Some(of_b)])
}

/// `X` with `A X = B` for matrices `B`, and for each system which pivot was zero, or 0.
pub fn solve(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut out = run(&SOLVE, &[a, b], [0, 0])?;
    match (out.pop(), out.into_iter().next()) {
        (Some(info), Some(x)) => Ok((x, info)),
        _ => Err(Error::runtime("linalg.solve: gave no result")),
    }
}

/// Whether `b` is a vector, or a stack of them, beside the matrices `a`.
pub(super) fn is_vector(a: &Tensor, b: &Tensor) -> bool {
    b.ndim() == 1 || (a.ndim() == b.ndim() + 1 && b.shape() == &a.shape()[..a.ndim() - 1])
}

/// `linalg.solve_ex`: vectors and both sides.
pub(super) fn solve_any(a: &Tensor, b: &Tensor, left: bool) -> Result<(Tensor, Tensor)> {
    let op = "linalg.solve";
    check_dtype(op, a)?;
    let n = square(op, a)?;
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{op}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype(),
            b.dtype()
        )));
    }
    let vector = is_vector(a, b);
    if vector && !left {
        return Err(Error::runtime(format!(
            "{op}: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )));
    }
    let b2 = if vector { b.unsqueeze(-1)? } else { b.clone() };
    let (m, k) = matrices(op, &b2)?;
    check_equation(op, a, b, n == if left { m } else { k }, left)?;
    if left {
        let (x, info) = solve(a, &b2)?;
        let x = if vector { x.squeeze(Some(&[-1]))? } else { x };
        return Ok((if vector && x.ndim() > 1 { laid(&x)? } else { x }, info));
    }
    let (x, info) = solve(&a.transpose(-2, -1)?, &b2.transpose(-2, -1)?)?;
    Ok((x.transpose(-2, -1)?.contiguous()?, info))
}

/// What a zero pivot means.
pub(super) fn singular(code: i64) -> String {
    format!("The solver failed because the input matrix is singular (diagonal element {code} is zero).")
}

impl Tensor {
    /// `X` with `A X = B` for this matrix `A` (or a stack); `B` may be a vector. `RuntimeError` where a matrix is singular.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example() -> Result<()> {
    /// let a = Tensor::from_slice(&[2.0f64, 0.0, 0.0, 4.0], &[2, 2])?;
    /// let b = Tensor::from_slice(&[2.0f64, 2.0], &[2])?;
    /// assert_eq!(a.solve(&b)?.to_vec::<f64>()?, [1.0, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn solve(&self, b: &Tensor) -> Result<Tensor> {
        let (x, info) = solve_any(self, b, true)?;
        check_info("linalg.solve", &info, singular)?;
        Ok(x)
    }

    /// The inverse of square matrices. `RuntimeError` where one is singular.
    pub fn inv(&self) -> Result<Tensor> {
        let (x, info) = inverse(self)?;
        check_info("linalg.inv", &info, |i| {
            format!("The diagonal element {i} is zero, the inversion could not be completed because the input matrix is singular.")
        })?;
        Ok(x)
    }
}

/// Inverses, and which pivot was zero.
pub(super) fn inverse(a: &Tensor) -> Result<(Tensor, Tensor)> {
    check_dtype("linalg.inv", a)?;
    let n = square("linalg.inv", a)?;
    solve(a, &super::eye(n, a)?)
}

/// Refuses operands whose sizes do not make an equation.
fn check_equation(op: &str, a: &Tensor, b: &Tensor, fits: bool, left: bool) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{op}: Incompatible shapes of A and B for the equation {} ({} and {})",
        if left { "AX = B" } else { "XA = B" },
        show(a.shape()),
        show(b.shape())
    )))
}
