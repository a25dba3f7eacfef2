//! Singular values and eigenvalues.

use super::{
    Into_, Options, Spec, as_column, as_row, batch, by_columns, check_dtype, check_info, factorize, in_columns, matrices, plain, run,
    settle, square, stacked, target, total,
};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::transforms::Factor;
use crate::ops::Reads;
use crate::ops::fft::{complex_of, real_of};
use flambeau_base::{DType, Error, Result};
use smallvec::smallvec;

/// What is computed: values alone, thin factors, or whole bases.
pub(super) const VALUES: usize = 0;
pub(super) const THIN: usize = 1;
pub(super) const FULL: usize = 2;

static SVD: Spec = Spec {
    name: "linalg.svd",
    infer: |inputs, [what, _]| {
        let a = inputs[0];
        check_dtype("linalg.svd", a)?;
        let (m, n) = matrices("linalg.svd", a)?;
        let k = m.min(n);
        let s = plain(&stacked(batch(a), &[k]), real_of(a.dtype()))?;
        let info = plain(batch(a), DType::I32)?;
        Ok(match what {
            VALUES => smallvec![plain(&[0], a.dtype())?, s, plain(&[0], a.dtype())?, info],
            _ => {
                let (u, v) = if what == FULL { (m, n) } else { (k, k) };
                smallvec![by_columns(&stacked(batch(a), &[m, u]), a.dtype())?, s, by_columns(&stacked(batch(a), &[v, n]), a.dtype())?, info]
            }
        })
    },
    compute: |inputs, outputs, [what, _]| {
        let a = in_columns(inputs[0])?;
        let (s, info) = (target(&outputs[1], false)?, target(&outputs[3], false)?);
        info.zero_()?;
        if what == VALUES {
            factorize(Factor::Svd, &a, [0, 0], Into_ { values: Some(&s), info: Some(&info), ..Into_::default() })?;
            return settle(&[(&s, &outputs[1]), (&info, &outputs[3])]);
        }
        let (u, v) = (target(&outputs[0], true)?, target(&outputs[2], true)?);
        let widths = [u.shape()[u.ndim() - 1], v.shape()[v.ndim() - 2]];
        if a.numel() == 0 {
            for t in [&u, &v] {
                let (rows, columns) = matrices("linalg.svd", t)?;
                crate::ops::copy_into(t, &Tensor::eye(rows, columns, t.dtype(), t.device())?.expand_to(t.shape())?)?;
            }
        }
        factorize(
            Factor::Svd,
            &a,
            widths,
            Into_ { values: Some(&s), left: Some(&u), right: Some(&v), info: Some(&info), ..Into_::default() },
        )?;
        settle(&[(&u, &outputs[0]), (&s, &outputs[1]), (&v, &outputs[2]), (&info, &outputs[3])])
    },
    vjp: svd_vjp,
    reads: Reads::both(1, 0b111),
    differentiable: 0b111,
};

/// `x_j - x_i`, with ones on the diagonal.
fn differences(x: &Tensor) -> Result<Tensor> {
    let n = x.shape()[x.ndim() - 1];
    as_row(x)?.sub(&as_column(x)?)?.add(&super::eye(n, x)?)
}

fn skew(x: &Tensor) -> Result<Tensor> {
    x.sub(&x.adjoint()?)
}

/// See Seeger et al., "Auto-differentiating linear algebra" (2017).
fn svd_vjp(cx: &Cx, grads: &mut Grads, [what, _]: Options) -> Result<Grads> {
    let (of_u, of_s, of_v) = (grads[0].take(), grads[1].take(), grads[2].take());
    if what == VALUES {
        // The vectors are found once more.
        let Some(g) = of_s else { return Ok(smallvec![None]) };
        let (u, _, vh, _) = svd(&cx.input(0)?, THIN)?;
        return Ok(smallvec![Some(u.matmul(&as_column(&g.to_dtype(u.dtype())?)?.mul(&vh)?)?)]);
    }
    let (u, s, vh) = (cx.output(0)?, cx.output(1)?, cx.output(2)?);
    let (m, n) = (u.shape()[u.ndim() - 2], vh.shape()[vh.ndim() - 1]);
    let k = m.min(n) as i64;
    let (u, vh) = (u.narrow(-1, 0, k)?, vh.narrow(-2, 0, k)?);
    let of_u = of_u.map(|g| g.narrow(-1, 0, k)).transpose()?;
    let of_v = of_v.map(|g| g.narrow(-2, 0, k)).transpose()?;
    if of_u.is_none() && of_v.is_none() {
        let Some(g) = of_s else { return Ok(smallvec![None]) };
        return Ok(smallvec![Some(u.matmul(&as_column(&g.to_dtype(u.dtype())?)?.mul(&vh)?)?)]);
    }
    let e = as_row(&s)?.sub(&as_column(&s)?)?.mul(&as_row(&s)?.add(&as_column(&s)?)?)?.add(&super::eye(k as usize, &s)?)?;
    let left = of_u.as_ref().map(|g| skew(&u.adjoint()?.matmul(g)?)).transpose()?;
    let right = of_v.as_ref().map(|g| skew(&vh.matmul(&g.adjoint()?)?)).transpose()?;
    let mut inner = total([
        left.as_ref().map(|x| x.div(&e)?.mul(&as_row(&s)?)).transpose()?,
        right.as_ref().map(|x| x.div(&e)?.mul(&as_column(&s)?)).transpose()?,
    ])?;
    if let (Some(x), true) = (&inner, u.dtype().is_complex()) {
        // Phases: the imaginary diagonal belongs to the left vectors.
        let mut clean = x.sub(&x.diagonal(0, -2, -1)?.diag_embed(0, -2, -1)?)?;
        if let Some(l) = &left {
            clean = clean.add(&l.diagonal(0, -2, -1)?.div(&s.mul(2)?)?.diag_embed(0, -2, -1)?)?;
        }
        inner = Some(clean);
    }
    if let Some(g) = of_s {
        inner = total([inner, Some(g.to_dtype(u.dtype())?.diag_embed(0, -2, -1)?)])?;
    }
    let Some(inner) = inner else { return Ok(smallvec![None]) };
    let mut a = u.matmul(&inner)?;
    if let (Some(g), true) = (&of_u, m as i64 > k) {
        let rest = g.div(&as_row(&s)?)?;
        a = a.add(&rest.sub(&u.matmul(&u.adjoint()?.matmul(&rest)?)?)?)?;
    }
    let mut a = a.matmul(&vh)?;
    if let (Some(g), true) = (&of_v, n as i64 > k) {
        let rest = g.div(&as_column(&s)?)?;
        a = a.add(&u.matmul(&rest.sub(&rest.matmul(&vh.adjoint()?)?.matmul(&vh)?)?)?)?;
    }
    Ok(smallvec![Some(a)])
}

/// `U`, singular values in descending order, `V^H`, and what went wrong; vectors as `what` says (without them they are empty).
pub fn svd(a: &Tensor, what: usize) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let mut out = run(&SVD, &[a], [what, 0])?;
    match (out.pop(), out.pop(), out.pop(), out.pop()) {
        (Some(info), Some(v), Some(s), Some(u)) => Ok((u, s, v, info)),
        _ => Err(Error::runtime("linalg.svd: gave no result")),
    }
}

/// [`svd`] that must have converged.
pub(super) fn svd_checked(a: &Tensor, what: usize) -> Result<(Tensor, Tensor, Tensor)> {
    let (u, s, v, info) = svd(a, what)?;
    check_info("linalg.svd", &info, |_| {
        "The algorithm failed to converge because the input matrix is ill-conditioned, has too many repeated singular values, or holds NaN."
            .into()
    })?;
    Ok((u, s, v))
}

/// Options: whether vectors are computed, and whether the upper triangle is read.
static EIGH: Spec = Spec {
    name: "linalg.eigh",
    infer: |inputs, [vectors, _]| {
        let a = inputs[0];
        check_dtype("linalg.eigh", a)?;
        let n = square("linalg.eigh", a)?;
        let v = if vectors == 1 { by_columns(a.shape(), a.dtype())? } else { plain(&[0], a.dtype())? };
        Ok(smallvec![plain(&stacked(batch(a), &[n]), real_of(a.dtype()))?, v, plain(batch(a), DType::I32)?])
    },
    compute: |inputs, outputs, [vectors, upper]| {
        let (l, info) = (target(&outputs[0], false)?, target(&outputs[2], false)?);
        info.zero_()?;
        let v = if vectors == 1 {
            target(&outputs[1], true)?
        } else {
            Tensor::empty_layout(super::columns(inputs[0].shape())?, inputs[0].dtype(), inputs[0].device())?
        };
        let lower = if upper == 1 { inputs[0].adjoint()? } else { inputs[0].clone() };
        crate::ops::copy_into(&v, &lower)?;
        super::make_diagonal_real(&v)?;
        let n = v.shape()[v.ndim() - 1];
        factorize(
            Factor::Eigh,
            &v,
            [if vectors == 1 { n } else { 0 }, 0],
            Into_ { values: Some(&l), info: Some(&info), ..Into_::default() },
        )?;
        settle(&[(&l, &outputs[0]), (&info, &outputs[2])])?;
        if vectors == 1 { settle(&[(&v, &outputs[1])]) } else { Ok(()) }
    },
    vjp: |cx, grads, [vectors, upper]| {
        let (of_l, of_v) = (grads[0].take(), grads[1].take());
        let v = if vectors == 1 { cx.output(1)? } else { eigh(&cx.input(0)?, upper == 1, true)?.1 };
        let of_l = of_l.map(|g| g.to_dtype(v.dtype())).transpose()?;
        let Some(of_v) = of_v else {
            let Some(g) = of_l else { return Ok(smallvec![None]) };
            return Ok(smallvec![Some(v.mul(&as_row(&g)?)?.matmul(&v.adjoint()?)?)]);
        };
        // Of a Hermitian matrix only the Hermitian part of the gradient counts.
        let hermitian = |x: Tensor| x.add(&x.adjoint()?)?.mul(0.5);
        let e = differences(&cx.output(0)?)?;
        let x = v.adjoint()?.matmul(&of_v)?.div(&e)?;
        let mut inner = x.sub(&x.diagonal(0, -2, -1)?.diag_embed(0, -2, -1)?)?;
        if let Some(g) = of_l {
            inner = inner.add(&g.diag_embed(0, -2, -1)?)?;
        }
        Ok(smallvec![Some(hermitian(v.matmul(&inner)?.matmul(&v.adjoint()?)?)?)])
    },
    reads: Reads::both(1, 0b11),
    differentiable: 0b11,
};

/// Eigenvalues, ascending, of Hermitian matrices (of which one triangle is read), eigenvectors where wanted, and what went wrong.
pub fn eigh(a: &Tensor, upper: bool, vectors: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let mut out = run(&EIGH, &[a], [vectors as usize, upper as usize])?;
    match (out.pop(), out.pop(), out.pop()) {
        (Some(info), Some(v), Some(l)) => Ok((l, v, info)),
        _ => Err(Error::runtime("linalg.eigh: gave no result")),
    }
}

/// [`eigh`] that must have converged.
pub(super) fn eigh_checked(a: &Tensor, upper: bool, vectors: bool) -> Result<(Tensor, Tensor)> {
    let (l, v, info) = eigh(a, upper, vectors)?;
    check_info("linalg.eigh", &info, |_| {
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues.".into()
    })?;
    Ok((l, v))
}

/// Options: whether vectors are computed.
static EIG: Spec = Spec {
    name: "linalg.eig",
    infer: |inputs, [vectors, _]| {
        let a = inputs[0];
        check_dtype("linalg.eig", a)?;
        let n = square("linalg.eig", a)?;
        let dtype = complex_of(a.dtype());
        let v = if vectors == 1 { by_columns(a.shape(), dtype)? } else { plain(&[0], dtype)? };
        Ok(smallvec![plain(&stacked(batch(a), &[n]), dtype)?, v, plain(batch(a), DType::I32)?])
    },
    compute: |inputs, outputs, [vectors, _]| {
        let a = in_columns(inputs[0])?;
        let (l, info) = (target(&outputs[0], false)?, target(&outputs[2], false)?);
        info.zero_()?;
        let parts = if a.dtype().is_complex() { a.contiguous()?.view_as_real()? } else { a.clone() };
        if !parts.isfinite()?.all()?.item()?.to_bool() {
            return Err(Error::runtime("linalg.eig: torch.linalg.eig: input tensor should not contain infs or NaNs."));
        }
        let v = target(&outputs[1], vectors == 1)?;
        let n = a.shape()[a.ndim() - 1];
        let left = (vectors == 1).then_some(&v);
        factorize(
            Factor::Eig,
            &a,
            [if vectors == 1 { n } else { 0 }, 0],
            Into_ { values: Some(&l), left, info: Some(&info), ..Into_::default() },
        )?;
        settle(&[(&l, &outputs[0]), (&v, &outputs[1]), (&info, &outputs[2])])
    },
    vjp: |cx, grads, [vectors, _]| {
        let (of_l, of_v) = (grads[0].take(), grads[1].take());
        let a = cx.input(0)?;
        let (l, v) = if vectors == 1 { (cx.output(0)?, cx.output(1)?) } else { eig_checked(&a, true)? };
        let vh = v.adjoint()?;
        let mut inner = None;
        if let Some(g) = of_v {
            let x = vh.matmul(&g)?;
            let diagonal = x.diagonal(0, -2, -1)?.real()?.to_dtype(x.dtype())?;
            let x = x.sub(&vh.matmul(&v.mul(&as_row(&diagonal)?)?)?)?;
            let x = x.div(&differences(&l.conj()?)?)?;
            inner = Some(x.sub(&x.diagonal(0, -2, -1)?.diag_embed(0, -2, -1)?)?);
        }
        if let Some(g) = of_l {
            inner = total([inner, Some(g.diag_embed(0, -2, -1)?)])?;
        }
        let Some(inner) = inner else { return Ok(smallvec![None]) };
        let whole = super::solve(&vh, &inner.matmul(&vh)?)?.0;
        Ok(smallvec![Some(if a.dtype().is_complex() { whole } else { whole.real()? })])
    },
    reads: Reads::both(1, 0b11),
    differentiable: 0b11,
};

/// Eigenvalues and right eigenvectors (where wanted) of square matrices, complex, and what went wrong.
pub fn eig(a: &Tensor, vectors: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let mut out = run(&EIG, &[a], [vectors as usize, 0])?;
    match (out.pop(), out.pop(), out.pop()) {
        (Some(info), Some(v), Some(l)) => Ok((l, v, info)),
        _ => Err(Error::runtime("linalg.eig: gave no result")),
    }
}

/// [`eig`] that must have converged.
pub(super) fn eig_checked(a: &Tensor, vectors: bool) -> Result<(Tensor, Tensor)> {
    let (l, v, info) = eig(a, vectors)?;
    check_info("linalg.eig", &info, |_| {
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues.".into()
    })?;
    Ok((l, v))
}

impl Tensor {
    /// `U`, singular values in descending order, and `V^H`, with `A = U diag(S) V^H`; thin, or with whole bases.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example() -> Result<()> {
    /// let a = Tensor::from_slice(&[3.0f64, 0.0, 0.0, 4.0], &[2, 2])?;
    /// assert_eq!(a.svd(false)?.1.to_vec::<f64>()?, [4.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn svd(&self, full: bool) -> Result<(Tensor, Tensor, Tensor)> {
        svd_checked(self, if full { FULL } else { THIN })
    }

    /// Singular values in descending order.
    pub fn svdvals(&self) -> Result<Tensor> {
        Ok(svd_checked(self, VALUES)?.1)
    }

    /// Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which the lower triangle is read.
    pub fn eigh(&self) -> Result<(Tensor, Tensor)> {
        eigh_checked(self, false, true)
    }

    /// Eigenvalues and right eigenvectors of square matrices; complex.
    pub fn eig(&self) -> Result<(Tensor, Tensor)> {
        eig_checked(self, true)
    }
}
