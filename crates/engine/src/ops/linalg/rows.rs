//! The rows of factorisations and systems: `torch.linalg`, and the older names in `torch`.

use super::factor::{ldl_factor, not_positive, permutation};
use super::solve::{inverse, ldl_solve, singular, solve_any};
use super::spectral::{FULL, THIN, VALUES, eig_checked, eigh_checked, svd_checked};
use super::{
    batch, check_dtype, check_info, cholesky, geqrf, householder_product, laid, lu_factor, lu_solve, matrices, qr, solve_triangular,
    square, stacked,
};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result};
use smallvec::smallvec;

fn pair(a: Tensor, b: Tensor) -> Result<Out> {
    Ok(Out::Tuple(smallvec![a, b]))
}

fn triple(a: Tensor, b: Tensor, c: Tensor) -> Result<Out> {
    Ok(Out::Tuple(smallvec![a, b, c]))
}

fn cholesky_of(x: &Tensor, upper: bool) -> Result<(Tensor, Tensor)> {
    // The lower triangle is read, or the upper one.
    let (l, info) = cholesky(x, upper)?;
    Ok((if upper { laid(&l.adjoint()?)? } else { l }, info))
}

fn cholesky_row(a: &Args) -> Result<Out> {
    let (l, info) = cholesky_of(a.tensor(0)?, a.bool(1)?)?;
    check_info("linalg.cholesky", &info, not_positive)?;
    Ok(l.into())
}

fn cholesky_ex(a: &Args) -> Result<Out> {
    let (l, info) = cholesky_of(a.tensor(0)?, a.bool(1)?)?;
    if a.bool(2)? {
        check_info("linalg.cholesky_ex", &info, not_positive)?;
    }
    pair(l, info)
}

/// `A^-1 B` by Cholesky factors of `A`.
fn by_cholesky(b: &Tensor, l: &Tensor, upper: bool) -> Result<Tensor> {
    if l.is_followed() {
        // The values of one triangle, with the gradient of the product of whole factors.
        let one = if upper { l.alias().triu(0)? } else { l.alias().tril(0)? };
        let whole = l.add(&one.sub(&l.alias())?)?;
        let a = if upper { whole.adjoint()?.matmul(&whole)? } else { whole.matmul(&whole.adjoint()?)? };
        return Ok(super::solve(&a, b)?.0);
    }
    let l = if upper { l.adjoint()? } else { l.clone() };
    solve_triangular(&l.adjoint()?, &solve_triangular(&l, b, false, true, false)?, true, true, false)
}

fn cholesky_solve(a: &Args) -> Result<Out> {
    let (b, l) = (a.tensor(0)?, a.tensor(1)?);
    square("cholesky_solve", l)?;
    matrices("cholesky_solve", b)?;
    Ok(by_cholesky(b, l, a.bool(2)?)?.into())
}

fn cholesky_inverse(a: &Args) -> Result<Out> {
    let l = a.tensor(0)?;
    check_dtype("cholesky_inverse", l)?;
    let n = square("cholesky_inverse", l)?;
    Ok(by_cholesky(&super::eye(n, l)?, l, a.bool(1)?)?.into())
}

fn factored(a: &Args) -> Result<(Tensor, Tensor, Tensor)> {
    if !a.bool(1)? {
        return Err(Error::runtime(format!("{}: LU without pivoting is not implemented on the CPU", a.name)));
    }
    lu_factor(a.tensor(0)?)
}

fn lu_error(code: i64) -> String {
    format!(
        "U[{code},{code}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )
}

/// `P`, `L` and `U` from the packed factors.
fn unpack(lu: &Tensor, pivots: &Tensor, data: bool, with_pivots: bool) -> Result<Out> {
    let (m, n) = matrices("lu_unpack", lu)?;
    let k = m.min(n);
    if with_pivots && pivots.dtype() != DType::I32 {
        return Err(Error::runtime(format!(
            "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got {}",
            pivots.dtype()
        )));
    }
    let empty = || Tensor::empty(&[0], lu.dtype(), lu.device());
    let p = if with_pivots {
        let order = permutation(pivots, m)?;
        let zeros = Tensor::zeros(&stacked(batch(lu), &[m, m]), lu.dtype(), lu.device())?;
        zeros.scatter(-2, &order.unsqueeze(-2)?, 1)?
    } else {
        empty()?
    };
    let (l, u) = if data {
        let l = lu.narrow(-1, 0, k as i64)?.tril(-1)?;
        (l.add(&Tensor::eye(m, k, lu.dtype(), lu.device())?)?, lu.narrow(-2, 0, k as i64)?.triu(0)?)
    } else {
        (empty()?, empty()?)
    };
    triple(p, l, u)
}

fn lu(a: &Args) -> Result<Out> {
    let (lu, pivots, _) = factored(a)?;
    unpack(&lu, &pivots, true, true)
}

fn solve_row(a: &Args) -> Result<Out> {
    let (x, info) = solve_any(a.tensor(0)?, a.tensor(1)?, a.bool(2)?)?;
    check_info("linalg.solve", &info, singular)?;
    Ok(x.into())
}

fn solve_ex(a: &Args) -> Result<Out> {
    let (x, info) = solve_any(a.tensor(0)?, a.tensor(1)?, a.bool(2)?)?;
    if a.bool(3)? {
        check_info("linalg.solve_ex", &info, singular)?;
    }
    pair(x, info)
}

fn inv_ex(a: &Args) -> Result<Out> {
    let (x, info) = inverse(a.tensor(0)?)?;
    if a.bool(1)? {
        check_info("linalg.inv_ex", &info, singular)?;
    }
    pair(x, info)
}

/// `linalg.inv`; named by the row that asks.
fn inv(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.inv()?.into())
}

fn triangular(a: &Args) -> Result<Out> {
    Ok(solve_triangular(a.tensor(0)?, a.tensor(1)?, a.bool(2)?, a.bool(3)?, a.bool(4)?)?.into())
}

/// The older form: `A` second, transposed if asked, and handed back.
fn old_triangular(a: &Args) -> Result<Out> {
    let (b, m) = (a.tensor(0)?, a.tensor(1)?);
    matrices("triangular_solve", b)?;
    square("triangular_solve", m)?;
    let (upper, transpose, unit) = (a.bool(2)?, a.bool(3)?, a.bool(4)?);
    let x = if transpose {
        solve_triangular(&m.transpose(-2, -1)?, b, !upper, true, unit)?
    } else {
        solve_triangular(m, b, upper, true, unit)?
    };
    let lead = flambeau_base::broadcast("triangular_solve", batch(m), batch(b))?;
    let n = m.shape()[m.ndim() - 1];
    let whole = m.expand_to(&stacked(&lead, &[n, n]))?;
    pair(x, laid(&if whole.transpose(-2, -1)?.is_contiguous() { whole.copy()? } else { whole })?)
}

fn is_upper(op: &str, uplo: &str) -> Result<bool> {
    match uplo {
        "U" | "u" => Ok(true),
        "L" | "l" => Ok(false),
        other => Err(Error::runtime(format!("{op}: Expected UPLO argument to be 'L' or 'U', but got {other}"))),
    }
}

fn eigh_row(a: &Args) -> Result<Out> {
    let (l, v) = eigh_checked(a.tensor(0)?, is_upper("linalg.eigh", &a.str(1)?)?, true)?;
    pair(l, v)
}

fn eigvalsh(a: &Args) -> Result<Out> {
    Ok(eigh_checked(a.tensor(0)?, is_upper("linalg.eigvalsh", &a.str(1)?)?, false)?.0.into())
}

fn svd_row(a: &Args) -> Result<Out> {
    let (u, s, v) = svd_checked(a.tensor(0)?, if a.bool(1)? { FULL } else { THIN })?;
    triple(u, s, v)
}

/// The older form: `V` instead of `V^H`, and zeros for vectors that are not computed.
fn old_svd(a: &Args) -> Result<Out> {
    let (x, some, vectors) = (a.tensor(0)?, a.bool(1)?, a.bool(2)?);
    if vectors {
        let (u, s, v) = svd_checked(x, if some { THIN } else { FULL })?;
        return triple(u, s, v.adjoint()?);
    }
    let (m, n) = matrices("svd", x)?;
    let s = svd_checked(x, VALUES)?.1;
    let zeros = |n: usize| Tensor::zeros(&stacked(batch(x), &[n, n]), x.dtype(), x.device());
    triple(zeros(m)?, s, zeros(n)?)
}

fn qr_row(a: &Args) -> Result<Out> {
    let (q, r) = qr(a.tensor(0)?, &a.str(1)?)?;
    pair(q, r)
}

fn geqrf_row(a: &Args) -> Result<Out> {
    let (x, tau) = geqrf(a.tensor(0)?)?;
    pair(x, tau)
}

/// `Q C`, `Q^H C`, `C Q` or `C Q^H` for the whole square `Q`.
fn ormqr(a: &Args) -> Result<Out> {
    let (x, tau, c, left, transpose) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?, a.bool(4)?);
    let op = "ormqr";
    let ((m, k), (rows, columns)) = (matrices(op, x)?, matrices(op, c)?);
    let side = if left { rows } else { columns };
    if side != m || tau.shape().last().is_none_or(|&t| t > k.min(m)) {
        return Err(Error::runtime(format!(
            "{op}: other.shape[{}] must be equal to input.shape[-2], and tau fit, got {:?}, {:?} and {:?}",
            if left { -2 } else { -1 },
            c.shape(),
            x.shape(),
            tau.shape()
        )));
    }
    if tau.ndim() + 1 != x.ndim() || tau.dtype() != x.dtype() || c.dtype() != x.dtype() || batch(c) != batch(x) {
        return Err(Error::runtime(format!(
            "{op}: Expected input, tau and other of one dtype and one batch shape, got {:?}, {:?} and {:?}",
            x.shape(),
            tau.shape(),
            c.shape()
        )));
    }
    let whole = if k >= m {
        x.narrow(-1, 0, m as i64)?
    } else {
        crate::ops::join::cat(&[x, &Tensor::zeros(&stacked(batch(x), &[m, m - k]), x.dtype(), x.device())?], -1)?
    };
    let q = householder_product(&whole, tau)?;
    let q = if transpose { q.adjoint()? } else { q };
    Ok(laid(&if left { q.matmul(c)? } else { c.matmul(&q)? })?.into())
}

fn householder(a: &Args) -> Result<Out> {
    Ok(householder_product(a.tensor(0)?, a.tensor(1)?)?.into())
}

fn ldl(a: &Args) -> Result<Out> {
    let (ld, pivots, info) = ldl_factor(a.tensor(0)?, a.bool(1)?)?;
    check_info("linalg.ldl_factor", &info, singular)?;
    pair(ld, pivots)
}

fn ldl_ex(a: &Args) -> Result<Out> {
    let (ld, pivots, info) = ldl_factor(a.tensor(0)?, a.bool(1)?)?;
    if a.bool(2)? {
        check_info("linalg.ldl_factor_ex", &info, singular)?;
    }
    triple(ld, pivots, info)
}

const PRIVATE: u8 = place::PRIVATE;

pub(super) static OPS: &[Op] = &[
    function("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", cholesky_row)
        .autocast_full()
        .places(PRIVATE)
        .doc("Cholesky factor of positive-definite matrices: `L` with `A = L L^H`, or `U` with `A = U^H U`. A RuntimeError where one is not positive-definite.")
        .samples(&["T(1,1; 1..2)", "T(2,1,1; 1..2), upper=True"]),
    function("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", cholesky_ex)
        .autocast_full()
        .places(PRIVATE)
        .doc("`linalg.cholesky` that says in `info` which leading minor is not positive-definite, or 0.")
        .samples(&["T(1,1; 1..2)"]),
    function("cholesky(Tensor self, bool upper=False) -> Tensor", cholesky_row).autocast_full().doc("`linalg.cholesky`.").samples(&["T(1,1; 1..2)"]),
    function("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", cholesky_solve)
        .autocast_full()
        .doc("`X` with `A X = self`, from the Cholesky factor `input2` of `A`.")
        .samples(&["T(1,2), T(1,1; 1..2)", "T(1,2), T(1,1; 1..2), True"]),
    function("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cholesky_inverse)
        .autocast_full()
        .doc("The inverse of `A`, from its Cholesky factor.")
        .samples(&["T(1,1; 1..2)"]),
    function("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", |a| {
        let (lu, pivots, info) = factored(a)?;
        check_info("linalg.lu_factor", &info, lu_error)?;
        pair(lu, pivots)
    })
    .places(PRIVATE)
    .doc("LU factors in one matrix, and the rows that were exchanged (int32, from 1 on).")
    .samples(&["T(3,3)", "T(2,4,3)", "T(2,3)"]),
    function("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)", |a| {
        let (lu, pivots, info) = factored(a)?;
        if a.bool(2)? {
            check_info("linalg.lu_factor_ex", &info, lu_error)?;
        }
        triple(lu, pivots, info)
    })
    .places(PRIVATE)
    .doc("`linalg.lu_factor` that says in `info` which pivot is zero, or 0.")
    .samples(&["T(3,3)"]),
    function("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)", |a| {
        let (lu, pivots, info) = factored(a)?;
        if a.bool(2)? {
            check_info("lu", &info, lu_error)?;
        }
        triple(lu, pivots, info)
    })
    .places(place::TORCH)
    .without_out()
    .doc("`linalg.lu_factor_ex`.")
    .samples(&["T(3,3)"]),
    function("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", lu)
        .places(PRIVATE)
        .doc("`A = P L U`: a permutation, a unit lower and an upper triangular matrix.")
        .samples(&["T(3,3)", "T(4,3)"]),
    function("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)", |a| {
        unpack(a.tensor(0)?, a.tensor(1)?, a.bool(2)?, a.bool(3)?)
    })
    .places(place::TORCH)
    .doc("`P`, `L` and `U` from the packed factors and pivots; what is not asked for is empty.")
    .samples(&["T(3,3), I(3; 1..2), unpack_pivots=False", "T(4,3), I(3; 1..2), unpack_pivots=False"]),
    function("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor", |a| {
        Ok(lu_solve(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?, a.bool(4)?)?.into())
    })
    .places(PRIVATE)
    .doc("`X` with `A X = B` (`A^H X = B` if `adjoint`, `X A = B` unless `left`), from the LU factors of `A`.")
    .samples(&["T(1,1; 1..2), I(1; 1..2), T(1,2)"]),
    function("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", |a| {
        Ok(lu_solve(a.tensor(1)?, a.tensor(2)?, a.tensor(0)?, true, false)?.into())
    })
    .autocast_full()
    .doc("`X` with `A X = self`, from the LU factors of `A`.")
    .samples(&["T(1,1), T(1,1; 1..2), I(1; 1..2)"]),
    function("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", solve_row)
        .autocast_full()
        .places(PRIVATE)
        .doc("`X` with `A X = B` (`X A = B` unless `left`); `B` may hold vectors. A RuntimeError where a matrix is singular.")
        .samples(&["T(3,3), T(3,2)", "T(2,3,3), T(3,1)", "T(3,3), T(3)", "T(3,3), T(2,3), left=False"]),
    function("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)", solve_ex)
        .autocast_full()
        .places(PRIVATE)
        .doc("`linalg.solve` that says in `info` which pivot is zero, or 0.")
        .samples(&["T(3,3), T(3,2)"]),
    function("linalg_inv(Tensor A) -> Tensor", inv)
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverses of square matrices. A RuntimeError where one is singular.")
        .samples(&["T(3,3)", "T(2,2,2)"]),
    function("inverse(Tensor self) -> Tensor", inv).doc("`linalg.inv`.").samples(&["T(3,3)"]),
    function("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", inv_ex)
        .autocast_full()
        .places(PRIVATE)
        .doc("`linalg.inv` that says in `info` which pivot is zero, or 0.")
        .samples(&["T(3,3)"]),
    function("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor", triangular)
        .places(PRIVATE)
        .doc("`X` with `A X = B` (`X A = B` unless `left`) for triangular `A`, of which one triangle is read.")
        .samples(&["T(3,3; 1..2), T(3,2), upper=True", "T(3,3; 1..2), T(2,3), upper=False, left=False, unitriangular=True"]),
    function("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)", old_triangular)
        .autocast_full()
        .doc("`X` with `A X = self` for triangular `A`, and a copy of `A`.")
        .samples(&["T(3,2), T(3,3; 1..2)", "T(3,2), T(3,3; 1..2), False, True"]),
    function("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", qr_row)
        .autocast_full()
        .places(PRIVATE)
        .doc("`A = Q R`: orthonormal columns and an upper triangular matrix; `complete` gives a square `Q`, `r` none.")
        .samples(&["T(4,3)", "T(2,3)", "T(2,3,3)"]),
    function("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", |a| {
        let (q, r) = qr(a.tensor(0)?, if a.bool(1)? { "reduced" } else { "complete" })?;
        pair(q, r)
    })
    .doc("`linalg.qr`; with `some=False` a square `Q`.")
    .samples(&["T(4,3)"]),
    function("geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf_row)
        .autocast_full()
        .doc("QR as LAPACK leaves it: `R`, the Householder vectors below its diagonal, and their factors.")
        .samples(&["T(4,3)", "T(2,3,3)"]),
    function("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", householder)
        .autocast_full()
        .places(PRIVATE)
        .doc("The first columns of the product of Householder matrices, from their vectors and factors.")
        .samples(&["T(4,3), T(3)", "T(3,3), T(2)"]),
    function("orgqr(Tensor self, Tensor input2) -> Tensor", householder).doc("`linalg.householder_product`.").samples(&["T(4,3), T(3)"]),
    function("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", ormqr)
        .autocast_full()
        .doc("The product of a matrix with the square matrix that Householder vectors stand for.")
        .samples(&["T(4,3), T(3), T(4,2)", "T(4,3), T(3), T(2,4), False, True"]),
    function("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", ldl)
        .places(PRIVATE)
        .doc("`A = L D L^T` (`L D L^H` if `hermitian`) of symmetric matrices, packed as LAPACK does, with its pivots.")
        .samples(&["T(1,1; 1..2)"]),
    function("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)", ldl_ex)
        .places(PRIVATE)
        .doc("`linalg.ldl_factor` that says in `info` which pivot is zero, or 0.")
        .samples(&["T(1,1; 1..2)"]),
    function("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", |a| {
        Ok(ldl_solve(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?)?.into())
    })
    .places(PRIVATE)
    .doc("`X` with `A X = B`, from what `linalg.ldl_factor` gives for `A`.")
    .samples(&["T(1,1; 1..2), I(1; 1..2), T(1,2)", "T(2,2,2; 1..2), I(2,2; 1..2), T(2,3), hermitian=True"]),
    function("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", eigh_row)
        .autocast_full()
        .places(PRIVATE)
        .doc("Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read.")
        .samples(&["T(1,1; 1..2)"]),
    function("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", eigvalsh)
        .autocast_full()
        .places(PRIVATE)
        .doc("Eigenvalues, ascending, of Hermitian matrices, of which one triangle is read.")
        .samples(&["T(1,1; 1..2)"]),
    function("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", |a| {
        let (l, v) = eig_checked(a.tensor(0)?, true)?;
        pair(l, v)
    })
    .autocast_full()
    .places(PRIVATE)
    .doc("Eigenvalues and right eigenvectors, of length 1, of square matrices; complex.")
    .samples(&["T(1,1; 1..2)"]),
    function("linalg_eigvals(Tensor self) -> Tensor", |a| Ok(eig_checked(a.tensor(0)?, false)?.0.into()))
        .autocast_full()
        .places(PRIVATE)
        .doc("Eigenvalues of square matrices; complex.")
        .samples(&["T(1,1; 1..2)"]),
    function("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", svd_row)
        .autocast_full()
        .places(PRIVATE)
        .doc("`A = U diag(S) Vh`: orthonormal columns and rows, and singular values in descending order.")
        .samples(&["T(3,2), False", "T(2,2,3), False"]),
    function("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", |a| Ok(a.tensor(0)?.svdvals()?.into()))
        .autocast_full()
        .places(PRIVATE)
        .doc("Singular values in descending order.")
        .samples(&["T(4,3)", "T(2,3,3)"]),
    function("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", old_svd)
        .autocast_full()
        .doc("`self = U diag(S) V^H`; `linalg.svd` gives `V^H` itself.")
        .samples(&["T(3,2)"]),
];
