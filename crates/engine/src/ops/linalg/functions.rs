//! Functions of matrices: determinants, powers, exponentials, pseudoinverses, least squares.

use super::solve::is_vector;
use super::spectral::{THIN, eigh_checked, svd_checked};
use super::{
    Options, Spec, as_column, as_row, attached, batch, check_dtype, laid, lu_factor, matrices, plain, run, settle, solve, square, stacked,
    svd,
};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::Reads;
use crate::ops::fft::real_of;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use flambeau_base::{DType, Error, Result, show};
use smallvec::{SmallVec, smallvec};

type Sizes = SmallVec<[i64; 6]>;

/// Whether an odd number of rows was exchanged: -1 or 1, in a dtype.
fn parity(pivots: &Tensor, dtype: DType) -> Result<Tensor> {
    let n = pivots.shape()[pivots.ndim() - 1] as i64;
    let own = Tensor::from_slice(&(1..=n).collect::<Vec<_>>(), &[n as usize])?;
    let odd = pivots.to_dtype(DType::I64)?.ne(&own)?.sum_dims(Some(&[-1]), false, None)?.remainder(2)?;
    odd.mul(-2)?.add(1)?.to_dtype(dtype)
}

static DET: Spec = Spec {
    name: "linalg.det",
    infer: |inputs, _| {
        let a = inputs[0];
        check_dtype("linalg.det", a)?;
        square("linalg.det", a)?;
        Ok(smallvec![plain(batch(a), a.dtype())?])
    },
    compute: |inputs, outputs, _| {
        let (lu, pivots, _) = lu_factor(&inputs[0].alias())?;
        let d = lu.diagonal(0, -2, -1)?.prod_dims(Some(&[-1]), false, None)?;
        settle(&[(&d.mul(&parity(&pivots, lu.dtype())?)?, &outputs[0])])
    },
    vjp: |cx, grads, _| {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        let (a, d) = (cx.input(0)?, cx.output(0)?);
        let one = |t: &Tensor| as_column(t)?.unsqueeze(-1);
        let singular = d.alias().eq(0)?.any()?.item()?.to_bool();
        let n = a.shape()[a.ndim() - 1];
        if !singular || crate::autograd::is_grad_enabled() {
            let factor = one(&g.mul(&d.conj()?)?)?;
            return Ok(smallvec![Some(solve(&a.adjoint()?, &super::eye(n, &a)?.mul(&factor)?)?.0)]);
        }
        // The adjugate: products of all singular values but one.
        let (u, s, vh, _) = svd(&a, THIN)?;
        let others = Tensor::where_(&super::eye(n, &s)?.ne(0)?, 1, &as_row(&s)?)?.prod_dims(Some(&[-1]), false, None)?;
        let phase = u.det()?.mul(&vh.det()?)?.conj()?;
        Ok(smallvec![Some(u.mul(&as_row(&others.to_dtype(u.dtype())?)?)?.matmul(&vh)?.mul(&one(&g.mul(&phase)?)?)?)])
    },
    reads: Reads::both(1, 1),
    differentiable: 1,
};

static SLOGDET: Spec = Spec {
    name: "linalg.slogdet",
    infer: |inputs, _| {
        let a = inputs[0];
        check_dtype("linalg.slogdet", a)?;
        square("linalg.slogdet", a)?;
        Ok(smallvec![plain(batch(a), a.dtype())?, plain(batch(a), real_of(a.dtype()))?])
    },
    compute: |inputs, outputs, _| {
        let (lu, pivots, _) = lu_factor(&inputs[0].alias())?;
        let d = lu.diagonal(0, -2, -1)?;
        let size = d.abs()?;
        let signs = if d.dtype().is_complex() { Tensor::where_(&size.eq(0)?, &d, &d.div(&size)?)? } else { d.sign()? };
        let sign = signs.prod_dims(Some(&[-1]), false, None)?.mul(&parity(&pivots, lu.dtype())?)?;
        settle(&[(&sign, &outputs[0]), (&size.log()?.sum_dims(Some(&[-1]), false, None)?, &outputs[1])])
    },
    vjp: |cx, grads, _| {
        let (of_sign, of_log) = (grads[0].take(), grads[1].take());
        let a = cx.input(0)?;
        let complex = a.dtype().is_complex();
        let mut g = of_log.map(|g| g.to_dtype(a.dtype())).transpose()?;
        if let (Some(s), true) = (of_sign, complex) {
            // The sign turns with the imaginary part of the trace.
            let turn = s.conj()?.mul(&cx.output(0)?)?;
            let imaginary = turn.conj()?.sub(&turn)?.mul(0.5)?;
            g = super::total([g, Some(imaginary)])?;
        }
        let Some(g) = g else { return Ok(smallvec![Some(a.zeros_like()?)]) };
        let n = a.shape()[a.ndim() - 1];
        let right = super::eye(n, &a)?.mul(&as_column(&g)?.unsqueeze(-1)?)?;
        Ok(smallvec![Some(solve(&a.adjoint()?, &right)?.0)])
    },
    reads: Reads::both(1, 1),
    differentiable: 0b11,
};

/// Pseudoinverses: forward by singular values (eigenvalues where Hermitian), for a tolerance given as the second input.
static PINV: Spec = Spec {
    name: "linalg.pinv",
    infer: |inputs, _| {
        let a = inputs[0];
        let (m, n) = matrices("linalg.pinv", a)?;
        Ok(smallvec![plain(&stacked(batch(a), &[n, m]), a.dtype())?])
    },
    compute: |inputs, outputs, [hermitian, _]| {
        let (a, tolerance) = (inputs[0].alias(), inputs[1].alias());
        let keep = |s: &Tensor| -> Result<Tensor> {
            let large = s.abs()?.gt(&as_column(&tolerance)?)?;
            Tensor::where_(&large, &s.reciprocal()?, 0)?.to_dtype(a.dtype())
        };
        let p = if hermitian == 1 {
            let (l, v) = eigh_checked(&a, false, true)?;
            v.mul(&as_row(&keep(&l)?)?)?.matmul(&v.adjoint()?)?
        } else {
            let (u, s, vh) = svd_checked(&a, THIN)?;
            vh.adjoint()?.mul(&as_row(&keep(&s)?)?)?.matmul(&u.adjoint()?)?
        };
        settle(&[(&p, &outputs[0])])
    },
    vjp: pinv_vjp,
    reads: Reads::both(1, 1),
    differentiable: 1,
};

/// Golub and Pereyra (1973): of constant rank.
fn pinv_vjp(cx: &Cx, grads: &mut Grads, _: Options) -> Result<Grads> {
    let Some(g) = grads[0].take() else { return Ok(smallvec![None, None]) };
    let (a, p) = (cx.input(0)?, cx.output(0)?);
    let (m, n) = matrices("linalg.pinv", &a)?;
    let (ph, gh) = (p.adjoint()?, g.adjoint()?);
    let out = if m <= n {
        let k = gh.matmul(&p)?;
        let kp = k.matmul(&ph)?;
        let first = kp.sub(&p.matmul(&k)?.adjoint()?)?.sub(&a.matmul(&p)?.matmul(&kp)?)?;
        first.add(&ph.matmul(&p)?.matmul(&gh.sub(&k.matmul(&a)?)?)?)?
    } else {
        let k = p.matmul(&gh)?;
        let pk = ph.matmul(&k)?;
        let first = pk.sub(&k.matmul(&p)?.adjoint()?)?.add(&gh.sub(&a.matmul(&k)?)?.matmul(&p)?.matmul(&ph)?)?;
        first.sub(&pk.matmul(&p)?.matmul(&a)?)?
    };
    Ok(smallvec![Some(out), None])
}

/// The machine's precision of a dtype.
fn eps(dtype: DType) -> f64 {
    if real_of(dtype) == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 }
}

/// A tolerance: a number, a tensor, or none.
fn tolerance(a: &Args, i: usize, like: &Tensor) -> Result<Option<Tensor>> {
    match &a.values[i] {
        Value::None => Ok(None),
        Value::Tensor(t) => {
            if t.dtype().is_complex() {
                return Err(Error::runtime(format!("{}: tolerances must be real, got {}", a.name, t.dtype())));
            }
            Ok(Some(t.to_dtype(real_of(like.dtype()))?))
        }
        Value::Float(x) => Ok(Some(Tensor::full(&[], *x, real_of(like.dtype()), like.device())?)),
        _ => Ok(Some(Tensor::full(&[], a.scalar(i)?, real_of(like.dtype()), like.device())?)),
    }
}

/// `max(atol, rtol * largest)`, with the usual `rtol` where neither is given.
fn threshold(x: &Tensor, atol: Option<Tensor>, rtol: Option<Tensor>, largest: &Tensor) -> Result<Tensor> {
    let (m, n) = matrices("linalg", x)?;
    let usual = eps(x.dtype()) * m.max(n) as f64;
    let dtype = real_of(x.dtype());
    let rtol = match (rtol, &atol) {
        (Some(r), _) => r,
        (None, Some(t)) => Tensor::where_(&t.gt(0)?, 0, &Tensor::full(t.shape(), usual, dtype, x.device())?)?,
        (None, None) => Tensor::full(&[], usual, dtype, x.device())?,
    };
    let relative = largest.mul(&rtol)?;
    match atol {
        Some(a) => relative.maximum(&a),
        None => Ok(relative),
    }
}

/// Sizes of the singular values (absolute eigenvalues), and the largest.
fn magnitudes(x: &Tensor, hermitian: bool) -> Result<(Tensor, Tensor)> {
    let s = if hermitian { eigh_checked(x, false, false)?.0.abs()? } else { x.svdvals()? };
    let largest = if s.shape()[s.ndim() - 1] == 0 {
        Tensor::zeros(&s.shape()[..s.ndim() - 1], s.dtype(), s.device())?
    } else {
        s.amax(Some(&[-1]), false)?
    };
    Ok((s, largest))
}

fn pinv(x: &Tensor, atol: Option<Tensor>, rtol: Option<Tensor>, hermitian: bool) -> Result<Tensor> {
    check_dtype("linalg.pinv", x)?;
    matrices("linalg.pinv", x)?;
    if hermitian {
        square("linalg.pinv", x)?;
    }
    if x.numel() == 0 {
        // Nothing of the right shape, with derivatives of all orders.
        let nothing = x.adjoint()?;
        return nothing.mul(&nothing);
    }
    let (_, largest) = magnitudes(&x.alias(), hermitian)?;
    let t = threshold(x, atol, rtol, &largest)?;
    Ok(run(&PINV, &[x, &t], [hermitian as usize, 0])?.remove(0))
}

fn pinv_row(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    Ok(pinv(x, tolerance(a, 1, x)?, tolerance(a, 2, x)?, a.bool(3)?)?.into())
}

fn pinv_rcond(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    Ok(pinv(x, None, tolerance(a, 1, x)?, a.bool(2)?)?.into())
}

fn rank(a: &Args, atol: Option<Tensor>, rtol: Option<Tensor>, hermitian: bool) -> Result<Out> {
    let x = a.tensor(0)?.alias();
    check_dtype("linalg.matrix_rank", &x)?;
    matrices("linalg.matrix_rank", &x)?;
    if x.numel() == 0 {
        return Ok(Tensor::zeros(batch(&x), DType::I64, x.device())?.into());
    }
    let (s, largest) = magnitudes(&x, hermitian)?;
    let t = threshold(&x, atol, rtol, &largest)?;
    Ok(s.gt(&as_column(&t)?)?.sum_dims(Some(&[-1]), false, None)?.into())
}

impl Tensor {
    /// Determinants of square matrices.
    pub fn det(&self) -> Result<Tensor> {
        Ok(run(&DET, &[self], [0, 0])?.remove(0))
    }

    /// Sign and logarithm of the magnitude of determinants.
    pub fn slogdet(&self) -> Result<(Tensor, Tensor)> {
        let mut out = run(&SLOGDET, &[self], [0, 0])?;
        let log = out.remove(1);
        Ok((out.remove(0), log))
    }

    /// Moore-Penrose pseudoinverses; singular values up to `max(m, n) * eps` times the largest count as zero.
    pub fn pinv(&self) -> Result<Tensor> {
        pinv(self, None, None, false)
    }

    /// Square matrices to an integer power; negative ones invert.
    pub fn matrix_power(&self, n: i64) -> Result<Tensor> {
        let size = square("linalg.matrix_power", self)?;
        if n == 0 {
            return attached(super::eye(size, self)?.expand_to(self.shape())?.copy()?, self);
        }
        let base = if n < 0 { self.inv()? } else { self.clone() };
        let (mut power, mut rest, mut out) = (base, n.unsigned_abs(), None::<Tensor>);
        loop {
            if rest & 1 == 1 {
                out = Some(match out {
                    None => power.clone(),
                    Some(o) => o.matmul(&power)?,
                });
            }
            rest >>= 1;
            if rest == 0 {
                break;
            }
            power = power.matmul(&power)?;
        }
        match out {
            Some(o) if n == 1 => o.copy(),
            Some(o) => Ok(o),
            None => self.copy(),
        }
    }

    /// Exponentials of square matrices, by a Padé approximation after scaling (Higham, 2005).
    pub fn matrix_exp(&self) -> Result<Tensor> {
        let op = "linalg.matrix_exp";
        if self.dtype().is_reduced_float() {
            return self.to_dtype(DType::F32)?.matrix_exp()?.to_dtype(self.dtype());
        }
        check_dtype(op, self)?;
        let n = square(op, self)?;
        if self.numel() == 0 {
            return self.copy();
        }
        let norm = self.alias().abs()?.sum_dims(Some(&[-2]), false, None)?.max()?.item()?.to_f64();
        let squarings = if norm.is_finite() { (norm / 5.37).log2().ceil().clamp(0.0, 1000.0) as i32 } else { 0 };
        let a = if squarings > 0 { self.mul(0.5f64.powi(squarings))? } else { self.clone() };
        const B: [f64; 14] = [
            64764752532480000.0,
            32382376266240000.0,
            7771770303897600.0,
            1187353796428800.0,
            129060195264000.0,
            10559470521600.0,
            670442572800.0,
            33522128640.0,
            1323241920.0,
            40840800.0,
            960960.0,
            16380.0,
            182.0,
            1.0,
        ];
        // Divided by the last so that single precision holds them.
        let b = |i: usize| B[i] / B[0];
        let one = super::eye(n, self)?;
        let a2 = a.matmul(&a)?;
        let a4 = a2.matmul(&a2)?;
        let a6 = a4.matmul(&a2)?;
        let sum = |x: [f64; 3]| -> Result<Tensor> { a6.mul(x[0])?.add(&a4.mul(x[1])?)?.add(&a2.mul(x[2])?) };
        let odd = a6.matmul(&sum([b(13), b(11), b(9)])?)?.add(&sum([b(7), b(5), b(3)])?)?.add(&one.mul(b(1))?)?;
        let u = a.matmul(&odd)?;
        let v = a6.matmul(&sum([b(12), b(10), b(8)])?)?.add(&sum([b(6), b(4), b(2)])?)?.add(&one.mul(b(0))?)?;
        let mut x = solve(&v.sub(&u)?, &v.add(&u)?)?.0;
        for _ in 0..squarings {
            x = x.matmul(&x)?;
        }
        Ok(x)
    }
}

fn logdet(a: &Args) -> Result<Out> {
    let (sign, log) = a.tensor(0)?.slogdet()?;
    if sign.dtype().is_complex() {
        return Ok(sign.log()?.add(&log)?.into());
    }
    Ok(Tensor::where_(&sign.alias().eq(-1.0)?, f64::NAN, &log)?.into())
}

fn slogdet(a: &Args) -> Result<Out> {
    let (sign, log) = a.tensor(0)?.slogdet()?;
    Ok(Out::Tuple(smallvec![sign, log]))
}

/// Solutions of least squares by pseudoinverses, with what the drivers tell.
/// The same values as the first rows of taller matrices, column by column: where LAPACK leaves solutions.
fn in_taller(x: &Tensor, m: usize) -> Result<Tensor> {
    let (n, k) = matrices("linalg.lstsq", x)?;
    let rest = Tensor::zeros(&stacked(batch(x), &[m - n, k]), x.dtype(), x.device())?;
    laid(&crate::ops::join::cat(&[x, &rest], -2)?)?.narrow(-2, 0, n as i64)
}

fn lstsq(a: &Args) -> Result<Out> {
    let op = "linalg.lstsq";
    let (x, b, driver) = (a.tensor(0)?, a.tensor(1)?, a.opt_str(3)?);
    check_dtype(op, x)?;
    let (m, n) = matrices(op, x)?;
    let driver = driver.as_deref().unwrap_or("gelsy");
    if !["gels", "gelsy", "gelsd", "gelss"].contains(&driver) {
        return Err(Error::runtime(format!("{op}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}")));
    }
    if x.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{op}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}",
            x.dtype(),
            b.dtype()
        )));
    }
    let vector = is_vector(x, b);
    let right = if vector { b.unsqueeze(-1)? } else { b.clone() };
    if matrices(op, &right)?.0 != m {
        return Err(Error::runtime(format!(
            "{op}: input.size(-2) should match other.size({}), got shapes {} and {}",
            if vector { -1 } else { -2 },
            show(x.shape()),
            show(b.shape())
        )));
    }
    let rcond = tolerance(a, 2, x)?;
    let limit = match rcond {
        Some(r) => r,
        None => Tensor::full(&[], eps(x.dtype()) * m.max(n) as f64, real_of(x.dtype()), x.device())?,
    };
    let p = pinv(x, None, Some(limit.clone()), false)?;
    let solution = p.matmul(&right)?;
    let solution = if m > n { in_taller(&solution, m)? } else { solution };
    let (s, ranks) = if x.numel() == 0 {
        let s = Tensor::zeros(&stacked(batch(x), &[m.min(n)]), real_of(x.dtype()), x.device())?;
        (s, Tensor::zeros(batch(x), DType::I64, x.device())?)
    } else {
        let (s, largest) = magnitudes(&x.alias(), false)?;
        let ranks = s.gt(&as_column(&largest.mul(&limit)?)?)?.sum_dims(Some(&[-1]), false, None)?;
        (s, ranks)
    };
    let full = ranks.numel() == 0 || ranks.eq(m.min(n) as i64)?.all()?.item()?.to_bool();
    let residuals = if m > n && full && driver != "gelsy" {
        let rest = x.matmul(&solution)?.sub(&right)?;
        rest.abs()?.square()?.sum_dims(Some(&[-2]), false, None)?
    } else {
        attached(attached(Tensor::empty(&[0], real_of(x.dtype()), x.device())?, x)?, b)?
    };
    let none = |dtype| Tensor::empty(&[0], dtype, x.device());
    let ranks = if driver == "gels" { none(DType::I64)? } else { ranks };
    let s = if matches!(driver, "gelsd" | "gelss") { s } else { none(real_of(x.dtype()))? };
    let solution = match vector {
        true => solution.squeeze(Some(&[-1]))?,
        false if m > n => solution,
        false => laid(&solution)?,
    };
    Ok(Out::Tuple(smallvec![solution, residuals, ranks, s]))
}

fn tensorinv(a: &Args) -> Result<Out> {
    let (x, ind) = (a.tensor(0)?, a.int(1)?);
    if ind <= 0 {
        return Err(Error::runtime(format!("linalg.tensorinv: Expected a strictly positive integer for 'ind', got {ind}")));
    }
    let at = (ind as usize).min(x.ndim());
    let (rows, columns) = x.shape().split_at(at);
    let (m, n): (usize, usize) = (rows.iter().product(), columns.iter().product());
    if m != n {
        return Err(Error::runtime(format!(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} != {m}"
        )));
    }
    let inverse = x.reshape(&[n as i64, m as i64])?.inv()?;
    let sizes: Sizes = columns.iter().chain(rows).map(|&n| n as i64).collect();
    Ok(inverse.reshape(&sizes)?.into())
}

fn tensorsolve(a: &Args) -> Result<Out> {
    let (x, b) = (a.tensor(0)?, a.tensor(1)?);
    let x = match a.opt_ints(2)? {
        Some(dims) => {
            let to: Sizes = (-(dims.len() as i64)..0).collect();
            x.movedim(&dims, &to)?
        }
        None => x.clone(),
    };
    let tail: Sizes = x.shape()[b.ndim().min(x.ndim())..].iter().map(|&n| n as i64).collect();
    let n: i64 = tail.iter().product();
    let m = b.numel() as i64;
    if n != m {
        return Err(Error::runtime(format!(
            "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {n} != {m}"
        )));
    }
    Ok(x.reshape(&[m, n])?.solve(&b.reshape(&[m])?)?.reshape(&tail)?.into())
}

/// `U` and `H` with `A = U H`, from singular values.
fn polar(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    let (m, n) = matrices("linalg.polar", x)?;
    if m < n {
        return Err(Error::runtime(format!("linalg.polar: expected at least as many rows as columns, got {m} by {n} matrices")));
    }
    let (u, s, vh) = svd_checked(x, THIN)?;
    let h = vh.adjoint()?.mul(&as_row(&s)?)?.matmul(&vh)?;
    Ok(Out::Tuple(smallvec![u.matmul(&vh)?, h.add(&h.adjoint()?)?.mul(0.5)?]))
}

fn sqrth(a: &Args) -> Result<Out> {
    let (l, v) = eigh_checked(a.tensor(0)?, false, true)?;
    Ok(v.mul(&as_row(&l.sqrt()?)?)?.matmul(&v.adjoint()?)?.into())
}

fn power(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.matrix_power(a.int(1)?)?.into())
}

fn det(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.det()?.into())
}

fn exponential(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.matrix_exp()?.into())
}

fn rank_row(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    rank(a, tolerance(a, 1, x)?, tolerance(a, 2, x)?, a.bool(3)?)
}

fn rank_tol(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    let zero = Tensor::zeros(&[], real_of(x.dtype()), x.device())?;
    rank(a, tolerance(a, 1, x)?, Some(zero), a.bool(2)?)
}

const PRIVATE: u8 = place::PRIVATE;

pub(super) static OPS: &[Op] = &[
    function("linalg_det(Tensor A) -> Tensor", det).places(PRIVATE).doc("Determinants of square matrices.").samples(&["T(3,3)", "T(2,2,2)"]),
    function("det(Tensor self) -> Tensor", det).without_out().doc("`linalg.det`.").samples(&["T(3,3)"]),
    function("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", slogdet)
        .places(PRIVATE)
        .doc("Signs of determinants and logarithms of their magnitudes.")
        .samples(&["T(3,3)"]),
    function("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", slogdet).doc("`linalg.slogdet`.").samples(&["T(3,3)"]),
    function("logdet(Tensor self) -> Tensor", logdet).without_out().doc("Logarithms of determinants; NaN of negative ones.").samples(&["T(3,3; -1..2)", "T(2,2,2; 0.5..2)"]),
    function("linalg_matrix_power(Tensor self, int n) -> Tensor", power)
        .places(PRIVATE)
        .doc("Square matrices to an integer power; negative ones invert.")
        .samples(&["T(3,3), 3", "T(3,3), -2", "T(3,3), 0"]),
    function("matrix_power(Tensor self, int n) -> Tensor", power).doc("`linalg.matrix_power`.").samples(&["T(3,3), 2"]),
    function("linalg_matrix_exp(Tensor self) -> Tensor", exponential)
        .places(PRIVATE)
        .without_out()
        .doc("Exponentials of square matrices.")
        .samples(&["T(3,3)", "T(2,2,2; 5..9)"]),
    function("matrix_exp(Tensor self) -> Tensor", exponential).without_out().doc("`linalg.matrix_exp`.").samples(&["T(3,3)"]),
    function("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", pinv_row)
        .places(PRIVATE)
        .doc("Moore-Penrose pseudoinverses; singular values up to `max(atol, rtol * largest)` count as zero.")
        .samples(&["T(4,3)", "T(2,3), rtol=T(; 0..1e-5)"]),
    function("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", pinv_row)
        .places(PRIVATE)
        .doc("As the other form.")
        .samples(&["T(4,3), atol=1e-8"]),
    function("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", pinv_rcond).places(PRIVATE).doc("As the other form, with `rtol` named `rcond`.").samples(&["T(4,3), 1e-8"]),
    function("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", pinv_rcond)
        .places(PRIVATE)
        .doc("As the other form, with `rtol` named `rcond`.")
        .samples(&["T(4,3), T(; 0..1e-5)"]),
    function("pinverse(Tensor self, float rcond=1e-15) -> Tensor", |a| {
        let x = a.tensor(0)?;
        Ok(pinv(x, None, tolerance(a, 1, x)?, false)?.into())
    })
    .without_out()
    .autocast_full()
    .doc("`linalg.pinv`.")
    .samples(&["T(4,3)"]),
    function("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", rank_row)
    .autocast_full()
    .places(PRIVATE)
    .doc("How many singular values are larger than `max(atol, rtol * largest)`.")
    .samples(&["T(4,3)"]),
    function("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", rank_row)
    .autocast_full()
    .places(PRIVATE)
    .doc("As the other form.")
    .samples(&["T(4,3), atol=1e-8"]),
    function("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", rank_tol)
    .autocast_full()
    .places(PRIVATE)
    .doc("How many singular values are larger than `tol`.")
    .samples(&["T(4,3), 1e-8"]),
    function("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor", rank_tol)
    .autocast_full()
    .places(PRIVATE)
    .doc("How many singular values are larger than `tol`.")
    .samples(&["T(4,3), T(; 0..1e-5)"]),
    function("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)", lstsq)
        .autocast_full()
        .places(PRIVATE)
        .doc("`X` that makes `A X - B` smallest, the squares of what is left, the rank and the singular values, as far as the driver tells them.")
        .samples(&["T(4,3), T(4,2)", "T(4,3), T(4), driver='gelsd'"]),
    function("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", tensorinv)
        .autocast_full()
        .places(PRIVATE)
        .doc("The inverse of `tensordot` with `self` over its first `ind` dimensions.")
        .samples(&["T(3,1,3)", "T(1,2,2)", "T(3,3), 1"]),
    function("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", tensorsolve)
        .autocast_full()
        .places(PRIVATE)
        .doc("`X` with `tensordot(self, X, X.dim()) = other`; dimensions `dims` of `self` are moved to the end first.")
        .samples(&["T(3,1,3), T(3,1)", "T(3,1,3; -1..2), T(1,3), [0]"]),
    function("linalg_polar(Tensor A) -> (Tensor U, Tensor H)", polar)
        .places(PRIVATE)
        .doc("`A = U H`: orthonormal columns and a positive-semidefinite matrix.")
        .samples(&["T(3,2)"]),
    function("linalg_matrix_sqrth(Tensor self) -> Tensor", sqrth)
        .autocast_full()
        .places(PRIVATE)
        .without_out()
        .doc("The positive-definite square root of positive-definite matrices, of which the lower triangle is read.")
        .samples(&["T(1,1; 1..2)"]),
];
