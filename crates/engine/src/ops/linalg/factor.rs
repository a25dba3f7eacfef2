//! Cholesky, LU and QR factorisations.

use super::{
    Into_, Options, Spec, batch, by_columns, check_dtype, check_info, factorize, in_columns, matrices, plain, run, settle,
    solve_triangular, square, stacked, target,
};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::transforms::Factor;
use crate::ops::{OutSpec, Reads};
use flambeau_base::{DType, Error, Result};
use smallvec::{SmallVec, smallvec};

static CHOLESKY: Spec = Spec {
    name: "linalg.cholesky",
    infer: |inputs, _| {
        let a = inputs[0];
        check_dtype("linalg.cholesky", a)?;
        square("linalg.cholesky", a)?;
        Ok(smallvec![by_columns(a.shape(), a.dtype())?, plain(batch(a), DType::I32)?])
    },
    compute: |inputs, outputs, [upper, _]| {
        let (l, info) = (target(&outputs[0], true)?, target(&outputs[1], false)?);
        crate::ops::copy_into(&l, &if upper == 1 { inputs[0].adjoint()? } else { inputs[0].clone() })?;
        super::make_diagonal_real(&l)?;
        info.zero_()?;
        factorize(Factor::Cholesky, &l, [0, 0], Into_ { info: Some(&info), ..Into_::default() })?;
        settle(&[(&l, &outputs[0]), (&info, &outputs[1])])
    },
    vjp: |cx, grads, _| {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        let l = cx.output(0)?;
        let lh = l.adjoint()?;
        // The lower triangle, and its mirror image.
        let lower = lh.matmul(&g)?.tril(0)?;
        let phi = lower.add(&lower.tril(-1)?.adjoint()?)?.mul(0.5)?;
        let inner = solve_triangular(&lh, &phi, true, true, false)?;
        let a = solve_triangular(&l, &inner, false, false, false)?;
        Ok(smallvec![Some(a)])
    },
    reads: Reads::OUTPUT,
    differentiable: 1,
};

/// The Cholesky factors `L` (lower) of positive-definite matrices, and for each which leading minor was not positive, or 0.
///
/// The lower triangle is read, or with `upper` the upper one, of which the lower one counts as the mirror image.
pub fn cholesky(a: &Tensor, upper: bool) -> Result<(Tensor, Tensor)> {
    two(run(&CHOLESKY, &[a], [upper as usize, 0])?)
}

fn two(mut outputs: crate::ops::Outputs) -> Result<(Tensor, Tensor)> {
    match (outputs.pop(), outputs.pop()) {
        (Some(b), Some(a)) => Ok((a, b)),
        _ => Err(Error::runtime("linalg: a factorisation gave no result")),
    }
}

static LU: Spec = Spec {
    name: "linalg.lu_factor",
    infer: |inputs, _| {
        let a = inputs[0];
        check_dtype("linalg.lu_factor", a)?;
        let (m, n) = matrices("linalg.lu_factor", a)?;
        Ok(smallvec![by_columns(a.shape(), a.dtype())?, plain(&stacked(batch(a), &[m.min(n)]), DType::I32)?, plain(batch(a), DType::I32)?])
    },
    compute: |inputs, outputs, _| {
        let (lu, pivots, info) = (target(&outputs[0], true)?, target(&outputs[1], false)?, target(&outputs[2], false)?);
        crate::ops::copy_into(&lu, inputs[0])?;
        info.zero_()?;
        factorize(Factor::Lu, &lu, [0, 0], Into_ { pivots: Some(&pivots), info: Some(&info), ..Into_::default() })?;
        settle(&[(&lu, &outputs[0]), (&pivots, &outputs[1]), (&info, &outputs[2])])
    },
    vjp: lu_vjp,
    reads: Reads::both(0, 0b11),
    differentiable: 1,
};

/// With `A = P L U` and `Y = L^-1 P^T dA U^-1`: the lower part of `Y` moves `L`, the upper one `U`.
fn lu_vjp(cx: &Cx, grads: &mut Grads, _: Options) -> Result<Grads> {
    let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
    let (lu, pivots) = (cx.output(0)?, cx.output(1)?);
    let (m, n) = matrices("linalg.lu_factor", &lu)?;
    let k = m.min(n) as i64;
    let head = |t: &Tensor, dim: i64| t.narrow(dim, 0, k);
    let tail = |t: &Tensor, dim: i64, n: usize| t.narrow(dim, k, n as i64 - k);
    let (lower, upper) = (head(&lu, -1)?.tril(-1)?, head(&lu, -2)?.triu(0)?);
    let (of_lower, of_upper) = (head(&g, -1)?.tril(-1)?, head(&g, -2)?.triu(0)?);
    let (l1, u1) = (head(&lower, -2)?, head(&upper, -1)?);
    let l1 = l1.add(&super::eye(k as usize, &l1)?)?;
    // U1^-H from the right, L1^-H from the left.
    let right = |x: &Tensor| solve_triangular(&u1.adjoint()?, x, false, false, false);
    let left = |x: &Tensor| solve_triangular(&l1.adjoint()?, x, true, true, true);
    let mut low = l1.adjoint()?.matmul(&head(&of_lower, -2)?)?;
    let mut up = head(&of_upper, -1)?.matmul(&u1.adjoint()?)?;
    if n > m {
        low = low.sub(&tail(&of_upper, -1, n)?.matmul(&tail(&upper, -1, n)?.adjoint()?)?)?;
    }
    if m > n {
        up = up.sub(&tail(&lower, -2, m)?.adjoint()?.matmul(&tail(&of_lower, -2, m)?)?)?;
    }
    let first = right(&low.tril(-1)?.add(&up.triu(0)?)?)?;
    let whole = if n > m {
        left(&crate::ops::join::cat(&[&first, &tail(&of_upper, -1, n)?], -1)?)?
    } else if m > n {
        crate::ops::join::cat(&[&left(&first)?, &right(&tail(&of_lower, -2, m)?)?], -2)?
    } else {
        left(&first)?
    };
    let order = permutation(&pivots, m)?;
    Ok(smallvec![Some(rows_of(&whole, &order.sort(-1, false)?.1)?)])
}

/// LU factors packed in one matrix, LAPACK's pivots (`int32`, from 1 on), and which pivot was zero, or 0.
pub fn lu_factor(a: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let mut out = run(&LU, &[a], [0, 0])?;
    match (out.pop(), out.pop(), out.pop()) {
        (Some(info), Some(pivots), Some(lu)) => Ok((lu, pivots, info)),
        _ => Err(Error::runtime("linalg.lu_factor: gave no result")),
    }
}

/// Which row of the matrix (`int64`) each row of `L U` is, from LAPACK's pivots.
pub(super) fn permutation(pivots: &Tensor, m: usize) -> Result<Tensor> {
    let k = pivots.shape().last().copied().unwrap_or(0);
    let all = pivots.to_dtype(DType::I64)?.to_vec::<i64>()?;
    let sizes = stacked(&pivots.shape()[..pivots.ndim() - 1], &[m]);
    let mut rows = Vec::with_capacity(sizes.iter().product());
    let count: usize = sizes[..sizes.len() - 1].iter().product();
    for b in 0..count {
        let start = rows.len();
        rows.extend(0..m as i64);
        for i in 0..k {
            let p = all[b * k + i] - 1;
            if p < 0 || p as usize >= m {
                return Err(Error::runtime(format!(
                    "lu_unpack: pivots must be between 1 and {m} (LU_pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive), got {}",
                    p + 1
                )));
            }
            rows.swap(start + i, start + p as usize);
        }
    }
    Tensor::from_slice(&rows, &sizes)
}

/// Rows of matrices in another order; stacks are broadcast.
pub(super) fn rows_of(x: &Tensor, order: &Tensor) -> Result<Tensor> {
    if order.ndim() == 1 {
        return x.index_select(-2, order);
    }
    let lead = flambeau_base::broadcast("linalg", batch(x), &order.shape()[..order.ndim() - 1])?;
    let (m, n) = matrices("linalg", x)?;
    let sizes = stacked(&lead, &[m, n]);
    x.expand_to(&sizes)?.gather(-2, &order.unsqueeze(-1)?.expand_to(&sizes)?)
}

static QR: Spec = Spec {
    name: "linalg.qr",
    infer: |inputs, options| {
        let a = inputs[0];
        check_dtype("linalg.qr", a)?;
        let (m, n) = matrices("linalg.qr", a)?;
        let (q, r) = match options[0] {
            COMPLETE => (stacked(batch(a), &[m, m]), stacked(batch(a), &[m, n])),
            R_ONLY => (smallvec![0], stacked(batch(a), &[m.min(n), n])),
            _ => (stacked(batch(a), &[m, m.min(n)]), stacked(batch(a), &[m.min(n), n])),
        };
        let of_q = if q.len() < 2 { plain(&q, a.dtype())? } else { by_columns(&q, a.dtype())? };
        Ok(smallvec![of_q, by_columns(&r, a.dtype())?])
    },
    compute: |inputs, outputs, options| {
        let a = in_columns(inputs[0])?;
        let (m, n) = matrices("linalg.qr", &a)?;
        let tau = Tensor::zeros(&stacked(batch(&a), &[m.min(n)]), a.dtype(), a.device())?;
        factorize(Factor::Qr, &a, [0, 0], Into_ { values: Some(&tau), ..Into_::default() })?;
        let r = outputs[1].shape()[outputs[1].ndim() - 2] as i64;
        crate::ops::copy_into(&outputs[1], &a.narrow(-2, 0, r)?.triu(0)?)?;
        if options[0] == R_ONLY {
            return Ok(());
        }
        let q = target(&outputs[0], true)?;
        let width = q.shape()[q.ndim() - 1];
        let have = width.min(n) as i64;
        crate::ops::copy_into(&q.narrow(-1, 0, have)?, &a.narrow(-1, 0, have)?)?;
        if n == 0 {
            crate::ops::copy_into(&q, &super::eye(m, &a)?.narrow(-1, 0, width as i64)?.expand_to(q.shape())?)?;
        }
        factorize(Factor::Householder, &q, [m.min(n), 0], Into_ { values: Some(&tau), ..Into_::default() })?;
        settle(&[(&q, &outputs[0])])
    },
    vjp: qr_vjp,
    reads: Reads::both(1, 0b11),
    differentiable: 0b11,
};

/// Modes of QR.
pub(super) const REDUCED: usize = 0;
pub(super) const COMPLETE: usize = 1;
pub(super) const R_ONLY: usize = 2;

fn qr_vjp(cx: &Cx, grads: &mut Grads, options: Options) -> Result<Grads> {
    let (q, r) = (cx.output(0)?, cx.output(1)?);
    if options[0] == R_ONLY {
        return Err(Error::runtime(
            "linalg.qr: The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to require gradients.",
        ));
    }
    let (m, n) = (q.shape()[q.ndim() - 2], r.shape()[r.ndim() - 1]);
    if options[0] == COMPLETE && m > n {
        return Err(Error::runtime("linalg.qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols."));
    }
    let (mut of_q, mut of_r) = (grads[0].take(), grads[1].take());
    let mut rest = None;
    let mut r1 = r.clone();
    if n > m {
        let (k, more) = (m as i64, (n - m) as i64);
        if let Some(g) = of_r.take() {
            let second = g.narrow(-1, k, more)?;
            rest = Some(q.matmul(&second)?);
            of_q = super::total([of_q, Some(cx.input(0)?.narrow(-1, k, more)?.matmul(&second.adjoint()?)?)])?;
            of_r = Some(g.narrow(-1, 0, k)?);
        }
        r1 = r.narrow(-1, 0, k)?;
    }
    let mut middle = of_r.map(|g| g.matmul(&r1.adjoint()?)).transpose()?;
    if let Some(g) = &of_q {
        middle = super::total([middle, Some(q.adjoint()?.matmul(g)?.neg()?)])?;
    }
    let Some(middle) = middle else { return Ok(smallvec![None]) };
    let upper = middle.triu(0)?;
    let strict = middle.triu(1)?;
    // The diagonal is real.
    let both = upper.add(&strict)?;
    let sym = both.add(&both.adjoint()?)?.mul(0.5)?;
    let inner = super::total([Some(q.matmul(&sym)?), of_q])?;
    let Some(inner) = inner else { return Ok(smallvec![None]) };
    let first = solve_triangular(&r1.adjoint()?, &inner, false, false, false)?;
    let whole = match rest {
        Some(rest) => crate::ops::join::cat(&[&first, &rest], -1)?,
        None if n > m => {
            let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(first.shape());
            sizes[first.ndim() - 1] = n - m;
            crate::ops::join::cat(&[&first, &Tensor::zeros(&sizes, first.dtype(), first.device())?], -1)?
        }
        None => first,
    };
    Ok(smallvec![Some(whole)])
}

/// `Q` and `R` in a mode: `reduced`, `complete` or `r`, for which `Q` is empty.
pub fn qr(a: &Tensor, mode: &str) -> Result<(Tensor, Tensor)> {
    let mode = match mode {
        "reduced" => REDUCED,
        "complete" => COMPLETE,
        "r" => R_ONLY,
        other => {
            return Err(Error::runtime(format!(
                "linalg.qr received unrecognized mode '{other}' but expected one of 'reduced' (default), 'r', or 'complete'"
            )));
        }
    };
    two(run(&QR, &[a], [mode, 0])?)
}

/// For what PyTorch does not differentiate either.
pub(super) fn no_derivative(_: &Cx, _: &mut Grads, _: Options) -> Result<Grads> {
    Err(Error::not_implemented("linalg: the derivative of this factorization is not implemented: use linalg.qr, linalg.solve"))
}

static GEQRF: Spec = Spec {
    name: "geqrf",
    infer: |inputs, _| {
        let a = inputs[0];
        check_dtype("geqrf", a)?;
        let (m, n) = matrices("geqrf", a)?;
        Ok(smallvec![by_columns(a.shape(), a.dtype())?, plain(&stacked(batch(a), &[m.min(n)]), a.dtype())?])
    },
    compute: |inputs, outputs, _| {
        let (a, tau) = (target(&outputs[0], true)?, target(&outputs[1], false)?);
        crate::ops::copy_into(&a, inputs[0])?;
        factorize(Factor::Qr, &a, [0, 0], Into_ { values: Some(&tau), ..Into_::default() })?;
        settle(&[(&a, &outputs[0]), (&tau, &outputs[1])])
    },
    vjp: no_derivative,
    reads: Reads::NONE,
    differentiable: 0,
};

/// `R` above and Householder vectors below the diagonal, and their factors, as LAPACK's `geqrf` has them.
pub fn geqrf(a: &Tensor) -> Result<(Tensor, Tensor)> {
    two(run(&GEQRF, &[a], [0, 0])?)
}

static HOUSEHOLDER: Spec = Spec {
    name: "linalg.householder_product",
    infer: |inputs, _| Ok(smallvec![by_columns(inputs[0].shape(), inputs[0].dtype())?]),
    compute: |inputs, outputs, _| {
        let (q, tau) = (target(&outputs[0], true)?, inputs[1].contiguous()?);
        crate::ops::copy_into(&q, inputs[0])?;
        let k = tau.shape()[tau.ndim() - 1];
        factorize(Factor::Householder, &q, [k, 0], Into_ { values: Some(&tau), ..Into_::default() })?;
        settle(&[(&q, &outputs[0])])
    },
    vjp: no_derivative,
    reads: Reads::NONE,
    differentiable: 0,
};

/// The first columns of the product of the Householder matrices `1 - tau v v^H` whose vectors lie below the diagonal of `a`.
pub fn householder_product(a: &Tensor, tau: &Tensor) -> Result<Tensor> {
    let op = "linalg.householder_product";
    check_dtype(op, a)?;
    let (m, n) = matrices(op, a)?;
    if m < n {
        return Err(Error::runtime(format!("{op}: input.shape[-2] must be greater than or equal to input.shape[-1], got {m} and {n}")));
    }
    let k = tau.shape().last().copied().unwrap_or(0);
    if tau.ndim() + 1 != a.ndim() || tau.shape()[..tau.ndim().saturating_sub(1)] != *batch(a) {
        return Err(Error::runtime(format!(
            "{op}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {:?} for {:?}",
            tau.shape(),
            a.shape()
        )));
    }
    if k > n {
        return Err(Error::runtime(format!("{op}: input.shape[-1] must be greater than or equal to tau.shape[-1], got {n} and {k}")));
    }
    if tau.dtype() != a.dtype() {
        return Err(Error::runtime(format!("{op}: tau dtype {} does not match input dtype {}", tau.dtype(), a.dtype())));
    }
    if a.is_followed() || tau.is_followed() {
        return step_by_step(a, tau, m, n, k);
    }
    Ok(run(&HOUSEHOLDER, &[a, tau], [0, 0])?.remove(0))
}

/// [`householder_product`] in tensor operations, which can be differentiated.
fn step_by_step(a: &Tensor, tau: &Tensor, m: usize, n: usize, k: usize) -> Result<Tensor> {
    let v = a.tril(-1)?.add(&Tensor::eye(m, n, a.dtype(), a.device())?)?;
    let mut q = super::attached(super::attached(Tensor::eye(m, n, a.dtype(), a.device())?.expand_to(a.shape())?, a)?, tau)?;
    for i in (0..k as i64).rev() {
        let column = v.narrow(-1, i, 1)?;
        let scaled = column.mul(&tau.narrow(-1, i, 1)?.unsqueeze(-1)?)?;
        q = q.sub(&scaled.matmul(&column.adjoint()?.matmul(&q)?)?)?;
    }
    super::laid(&q)
}

static LDL: Spec = Spec {
    name: "linalg.ldl_factor",
    infer: |inputs, _| -> Result<SmallVec<[OutSpec; 1]>> {
        let a = inputs[0];
        check_dtype("linalg.ldl_factor", a)?;
        let n = square("linalg.ldl_factor", a)?;
        Ok(smallvec![by_columns(a.shape(), a.dtype())?, plain(&stacked(batch(a), &[n]), DType::I32)?, plain(batch(a), DType::I32)?])
    },
    compute: |inputs, outputs, options| {
        let (ld, pivots, info) = (target(&outputs[0], true)?, target(&outputs[1], false)?, target(&outputs[2], false)?);
        crate::ops::copy_into(&ld, &inputs[0].tril(0)?)?;
        info.zero_()?;
        factorize(Factor::Ldl, &ld, [options[0], 0], Into_ { pivots: Some(&pivots), info: Some(&info), ..Into_::default() })?;
        settle(&[(&ld, &outputs[0]), (&pivots, &outputs[1]), (&info, &outputs[2])])
    },
    vjp: no_derivative,
    reads: Reads::NONE,
    differentiable: 0,
};

/// `L` and block-diagonal `D` in one matrix, pivots and info, as LAPACK's `sytrf` or `hetrf` has them.
pub(super) fn ldl_factor(a: &Tensor, hermitian: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let mut out = run(&LDL, &[a], [(hermitian && a.dtype().is_complex()) as usize, 0])?;
    match (out.pop(), out.pop(), out.pop()) {
        (Some(info), Some(pivots), Some(ld)) => Ok((ld, pivots, info)),
        _ => Err(Error::runtime("linalg.ldl_factor: gave no result")),
    }
}

impl Tensor {
    /// The Cholesky factor `L` (lower) of positive-definite matrices, with `A = L L^H`. `RuntimeError` where one is not.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example() -> Result<()> {
    /// let a = Tensor::from_slice(&[4.0f64, 2.0, 2.0, 5.0], &[2, 2])?;
    /// assert_eq!(a.cholesky()?.to_vec::<f64>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cholesky(&self) -> Result<Tensor> {
        let (l, info) = cholesky(self, false)?;
        check_info("linalg.cholesky", &info, not_positive)?;
        Ok(l)
    }

    /// `Q` and `R` with `A = Q R`, `Q` of orthonormal columns and `R` upper triangular.
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        qr(self, "reduced")
    }
}

/// What a failed Cholesky factorisation means.
pub(super) fn not_positive(code: i64) -> String {
    format!(
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order {code} is not positive-definite)."
    )
}
