//! Covariances, quantiles, modes, integrals by trapezoids.

use crate::Tensor;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use flambeau_base::{DType, Error, Result, Scalar, show, wrap_dim};
use smallvec::{SmallVec, smallvec};

type Sizes = SmallVec<[i64; 6]>;

fn sizes_of(t: &Tensor) -> Sizes {
    t.shape().iter().map(|&n| n as i64).collect()
}

fn check_weights(name: &str, w: &Tensor, count: usize, integral: bool) -> Result<()> {
    let wrong = |why: String| Err(Error::runtime(format!("cov: {name} {why}")));
    if w.ndim() > 1 {
        return wrong(format!("must have one or fewer dimensions, got shape {}", show(w.shape())));
    }
    if w.dtype().is_integral() != integral || w.dtype() == DType::Bool {
        return wrong(format!("must be of {} dtype, got {}", if integral { "integral" } else { "floating point" }, w.dtype()));
    }
    if w.numel() != count {
        return wrong(format!("must have the same numel: there are {} weights for {count} observations", w.numel()));
    }
    if count > 0 && w.alias().min()?.item()?.to_f64() < 0.0 {
        return wrong("cannot be negative".into());
    }
    Ok(())
}

impl Tensor {
    /// The covariance matrix of variables, the rows, from observations, the columns; a vector is one variable.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example() -> Result<()> {
    /// let x = Tensor::from_slice(&[0.0f64, 1.0, 2.0, 2.0, 1.0, 0.0], &[2, 3])?;
    /// assert_eq!(x.cov(1, None, None)?.to_vec::<f64>()?, [1.0, -1.0, -1.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cov(&self, correction: i64, fweights: Option<&Tensor>, aweights: Option<&Tensor>) -> Result<Tensor> {
        if self.ndim() > 2 {
            return Err(Error::runtime(format!(
                "cov: expected input to have two or fewer dimensions but got shape {}",
                show(self.shape())
            )));
        }
        if self.dtype() == DType::Bool {
            return Err(Error::runtime("cov: bool dtype is not supported for input"));
        }
        let x = if self.ndim() < 2 { self.reshape(&[1, -1])? } else { self.clone() };
        let n = x.shape()[1];
        for (name, w, integral) in [("fweights", fweights, true), ("aweights", aweights, false)] {
            if let Some(w) = w {
                check_weights(name, w, n, integral)?;
            }
        }
        let weights = match (fweights, aweights) {
            (Some(f), Some(a)) => Some(f.mul(a)?),
            (one, other) => one.or(other).cloned(),
        };
        let (weighted, total) = match &weights {
            Some(w) => (x.mul(w)?, w.sum()?),
            None => (x.clone(), Tensor::full(&[], n as i64, DType::I64, x.device())?),
        };
        let mean = weighted.sum_dims(Some(&[1]), true, None)?.div(&total)?;
        let factor = match (&weights, aweights) {
            (Some(w), Some(a)) if correction != 0 => total.sub(&w.mul(a)?.sum()?.mul(correction)?.div(&total)?)?,
            _ => total.sub(correction)?,
        };
        // Not below zero, as with too few observations.
        let factor = factor.maximum(0)?;
        let centred = x.sub(&mean)?;
        let right = match &weights {
            Some(w) => centred.mul(w)?,
            None => centred.clone(),
        };
        let product = centred.mm(&right.to_dtype(centred.dtype())?.adjoint()?)?;
        let out = product.div(&factor)?;
        out.squeeze(None)
    }

    /// Correlation coefficients of variables, the rows, from observations, the columns.
    pub fn corrcoef(&self) -> Result<Tensor> {
        if self.ndim() > 2 {
            return Err(Error::runtime(format!(
                "corrcoef: expected input to have two or fewer dimensions but got shape {}",
                show(self.shape())
            )));
        }
        let c = self.cov(1, None, None)?;
        if c.ndim() == 0 {
            return c.div(&c);
        }
        let d = c.diagonal(0, 0, 1)?;
        let deviation = d.real()?.sqrt()?;
        let c = c.div(&deviation.unsqueeze(1)?)?.div(&deviation)?;
        if c.dtype().is_complex() {
            return c.view_as_real()?.clamp(-1.0, 1.0)?.contiguous()?.view_as_complex();
        }
        c.clamp(-1.0, 1.0)
    }
}

fn weights(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.cov(a.int(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?)?.into())
}

/// How a quantile between two elements is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

impl Between {
    fn named(op: &str, name: &str) -> Result<Between> {
        Ok(match name {
            "linear" => Between::Linear,
            "lower" => Between::Lower,
            "higher" => Between::Higher,
            "midpoint" => Between::Midpoint,
            "nearest" => Between::Nearest,
            other => {
                return Err(Error::runtime(format!(
                    "{op}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {other}"
                )));
            }
        })
    }
}

fn check_quantile(op: &str, x: &Tensor, q: &Tensor) -> Result<()> {
    if x.numel() == 0 {
        return Err(Error::runtime(format!("{op}() input tensor must be non-empty")));
    }
    if q.ndim() > 1 {
        return Err(Error::runtime(format!("{op}() q must be a scalar or 1D tensor, got shape {}", show(q.shape()))));
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(Error::runtime(format!("{op}() input tensor must be either float or double dtype, got {}", x.dtype())));
    }
    if q.dtype() != x.dtype() {
        return Err(Error::runtime(format!("{op}() q tensor must be same dtype as the input tensor, got {} and {}", q.dtype(), x.dtype())));
    }
    if !q.device().is_meta() && q.to_scalars()?.iter().any(|s| !(0.0..=1.0).contains(&s.to_f64())) {
        return Err(Error::runtime(format!("{op}() q values must be in the range [0, 1]")));
    }
    Ok(())
}

/// Quantiles of rows: `q` as a vector, the result with a last dimension for it.
fn quantile_rows(rows: &Tensor, q: &Tensor, between: Between, skip_nan: bool) -> Result<Tensor> {
    let n = rows.shape()[rows.ndim() - 1];
    let sorted = rows.sort(-1, false)?.0;
    let bad = rows.alias().isnan()?;
    let ranks = if skip_nan {
        let there = bad.logical_not()?.sum_dims(Some(&[-1]), true, None)?;
        q.mul(&there.sub(1)?)?.maximum(0)?
    } else {
        let any = bad.any_dims(Some(&[-1]), true)?;
        Tensor::where_(&any, n as i64 - 1, &q.mul(n as i64 - 1)?)?
    };
    let ranks = ranks.to_dtype(rows.dtype())?;
    let floor = |t: &Tensor| t.to_dtype(DType::I64);
    let ceil = |t: &Tensor| -> Result<Tensor> { t.neg()?.floor_divide(1)?.neg()?.to_dtype(DType::I64) };
    let at = |places: &Tensor| sorted.gather(-1, places);
    match between {
        Between::Lower => at(&floor(&ranks)?),
        Between::Higher => at(&ceil(&ranks)?),
        Between::Nearest => {
            // Half to even.
            let below = floor(&ranks)?;
            let rest = ranks.sub(&below)?;
            let up = rest.gt(0.5)?.logical_or(&rest.eq(0.5)?.logical_and(&below.remainder(2)?.eq(1)?)?)?;
            at(&below.add(&up.to_dtype(DType::I64)?)?)
        }
        Between::Linear | Between::Midpoint => {
            let below = floor(&ranks)?;
            let weights = match between {
                Between::Midpoint => Tensor::full(&[], 0.5, rows.dtype(), rows.device())?.expand_to(ranks.shape())?,
                _ => ranks.sub(&below)?,
            };
            let (low, high) = (at(&below)?, at(&ceil(&ranks)?)?);
            let gap = high.sub(&low)?;
            let near_high = weights.ge(0.5)?;
            Tensor::where_(&near_high, &high.sub(&gap.mul(&weights.neg()?.add(1)?)?)?, &low.add(&gap.mul(&weights)?)?)
        }
    }
}

fn quantile_of(op: &str, x: &Tensor, q: &Tensor, dim: Option<i64>, keepdim: bool, name: &str, skip_nan: bool) -> Result<Tensor> {
    let between = Between::named(op, name)?;
    let d = dim.map(|d| wrap_dim(op, d, x.ndim())).transpose()?;
    check_quantile(op, x, q)?;
    let rows = match (d, x.ndim()) {
        (None, _) => x.reshape(&[-1])?,
        (Some(_), 0) => x.unsqueeze(0)?,
        (Some(d), _) => x.movedim(&[d as i64], &[-1])?,
    };
    let found = quantile_rows(&rows, &q.reshape(&[-1])?.expand_against(&rows)?, between, skip_nan)?;
    let mut sizes: Sizes = match (d, keepdim) {
        (None, true) => smallvec![1; x.ndim()],
        (None, false) => Sizes::new(),
        (Some(d), keep) => {
            let mut s = sizes_of(x);
            if keep && !s.is_empty() {
                s[d] = 1;
            } else if !s.is_empty() {
                s.remove(d);
            }
            s
        }
    };
    sizes.push(q.numel() as i64);
    let found = found.reshape(&sizes)?;
    if q.ndim() == 1 { found.movedim(&[-1], &[0]) } else { found.squeeze(Some(&[-1])) }
}

impl Tensor {
    /// A vector repeated beside each row.
    fn expand_against(&self, rows: &Tensor) -> Result<Tensor> {
        let mut sizes = sizes_of(rows);
        if let Some(last) = sizes.last_mut() {
            *last = self.numel() as i64;
        }
        self.expand(&sizes)
    }

    /// The quantiles `q` (a number or a vector, of this dtype) along a dimension, or of all elements.
    ///
    /// `interpolation` is `linear`, `lower`, `higher`, `midpoint` or `nearest`. A row with NaN gives NaN.
    pub fn quantile(&self, q: &Tensor, dim: Option<i64>, keepdim: bool, interpolation: &str) -> Result<Tensor> {
        quantile_of("quantile", self, q, dim, keepdim, interpolation, false)
    }

    /// [`Tensor::quantile`] of the elements that are not NaN.
    pub fn nanquantile(&self, q: &Tensor, dim: Option<i64>, keepdim: bool, interpolation: &str) -> Result<Tensor> {
        quantile_of("nanquantile", self, q, dim, keepdim, interpolation, true)
    }

    /// The most frequent value along a dimension (the smallest of several) and a place of it.
    pub fn mode(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let d = wrap_dim("mode", dim, self.ndim())?;
        if self.dtype().is_complex() {
            return Err(Error::not_implemented(format!("mode: not implemented for {}", self.dtype())));
        }
        if self.ndim() == 0 {
            return Ok((self.copy()?, Tensor::zeros(&[], DType::I64, self.device())?));
        }
        super::check_not_empty("mode", self, 1 << d, true)?;
        let dim = d as i64;
        let (sorted, places) = self.alias().sort(dim, false)?;
        let n = self.shape()[d] as i64;
        let at = Tensor::ones(self.shape(), DType::I64, self.device())?.cumsum(dim, None)?.sub(1)?;
        let first = sorted.narrow(dim, 0, 1)?.ne(&sorted.narrow(dim, 0, 1)?)?.logical_not()?;
        let changes = sorted.narrow(dim, 1, n - 1)?.ne(&sorted.narrow(dim, 0, n - 1)?)?;
        let starts = crate::ops::join::cat(&[&first, &changes], dim)?;
        let run = at.sub(&Tensor::where_(&starts, &at, 0)?.cummax(dim)?.0)?;
        let best = run.argmax(Some(dim), true)?;
        let place = places.gather(dim, &best)?;
        let value = self.gather(dim, &place)?;
        if keepdim { Ok((value, place)) } else { Ok((value.squeeze(Some(&[dim]))?, place.squeeze(Some(&[dim]))?)) }
    }
}

fn quantile(a: &Args, skip_nan: bool) -> Result<Out> {
    let x = a.tensor(0)?;
    let q = match &a.values[1] {
        Value::Tensor(q) => q.clone(),
        _ => {
            let q = a.scalar(1).map(Scalar::to_f64).or_else(|_| a.float(1))?;
            if !(0.0..=1.0).contains(&q) {
                return Err(Error::runtime(format!("{}() q must be in the range [0, 1] but got {q}", a.name)));
            }
            Tensor::full(&[], q, x.dtype(), x.device())?
        }
    };
    Ok(quantile_of(a.name, x, &q, a.opt_int(2)?, a.bool(3)?, &a.str(4)?, skip_nan)?.into())
}

fn mode(a: &Args) -> Result<Out> {
    let (values, places) = a.tensor(0)?.mode(a.int(1)?, a.bool(2)?)?;
    Ok(Out::Tuple(smallvec![values, places]))
}

/// Areas of the trapezoids between neighbours, twice.
fn trapezoids(op: &str, y: &Tensor, x: Option<&Tensor>, dx: Scalar, dim: i64) -> Result<(Tensor, i64)> {
    let d = wrap_dim(op, dim, y.ndim())? as i64;
    if y.ndim() == 0 {
        return Err(Error::index(format!("{op}: Dimension specified as {dim} but tensor has no dimensions")));
    }
    if y.dtype() == DType::Bool || x.is_some_and(|x| x.dtype() == DType::Bool) {
        return Err(Error::runtime(format!("{op}: received a bool input for `x` or `y`, but bool is not supported")));
    }
    let n = y.shape()[d as usize] as i64;
    let both =
        |t: &Tensor, d: i64, n: i64| -> Result<(Tensor, Tensor)> { Ok((t.narrow(d, 1, (n - 1).max(0))?, t.narrow(d, 0, (n - 1).max(0))?)) };
    if n == 0 {
        return Ok((y.clone(), d));
    }
    let (right, left) = both(y, d, n)?;
    let sum = right.add(&left)?;
    let Some(x) = x else { return Ok((sum.mul(dx)?, d)) };
    let x = if x.ndim() == 1 {
        if x.numel() as i64 != n {
            return Err(Error::runtime(format!("{op}: There must be one `x` value for each sample point: {} for {n}", x.numel())));
        }
        let mut sizes: Sizes = smallvec![1; y.ndim()];
        sizes[d as usize] = n;
        x.reshape(&sizes)?
    } else if x.ndim() < y.ndim() {
        let mut sizes: Sizes = smallvec![1; y.ndim() - x.ndim()];
        sizes.extend(sizes_of(x));
        x.reshape(&sizes)?
    } else {
        x.clone()
    };
    let d_x = d + (x.ndim() - y.ndim()) as i64;
    let m = x.shape()[d_x as usize] as i64;
    let (r, l) = both(&x, d_x, m)?;
    Ok((sum.mul(&r.sub(&l)?)?, d - y.ndim() as i64))
}

fn trapezoid(a: &Args, x: Option<&Tensor>, dx: Scalar, at: usize, cumulative: bool) -> Result<Out> {
    let (areas, d) = trapezoids(a.name, a.tensor(0)?, x, dx, a.int(at)?)?;
    let float = areas.dtype().is_float();
    let whole = if cumulative { areas.cumsum(d, None)? } else { areas.sum_dims(Some(&[d]), false, float.then_some(areas.dtype()))? };
    Ok(whole.div(2)?.into())
}

const TORCH: u8 = place::TORCH;

pub(super) static OPS: &[Op] = &[
    function("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", weights)
        .without_out()
        .autocast_lower()
        .doc("Covariance matrix of variables, the rows, from observations, the columns, which may have weights: how often each was seen, and how much it counts.")
        .samples(&["T(3,5)", "T(5)", "T(2,5), correction=0", "T(2,4), fweights=I(4; 1..4)", "T(2,4), aweights=T(4; 0.5..2)"]),
    function("corrcoef(Tensor self) -> Tensor", |a| Ok(a.tensor(0)?.corrcoef()?.into()))
        .without_out()
        .autocast_lower()
        .doc("Correlation coefficients of variables, the rows, from observations, the columns.")
        .samples(&["T(3,5)", "T(5)"]),
    function("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor", |a| quantile(a, false))
        .autocast_full()
        .doc("The quantile `q`, a number, as the other form.")
        .samples(&["T(2,5), 0.3", "T(2,5), 0.5, 1, True"]),
    function("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor", |a| quantile(a, false))
        .autocast_full()
        .doc("The quantiles `q` (a number or a vector) along `dim`, or of all elements; NaN where there is one. `interpolation` is linear, lower, higher, midpoint or nearest.")
        .samples(&["T(2,5), T(2; 0..1)", "T(2,5), T(; 0..1), 1, True", "T(5), T(2; 0..1), interpolation='midpoint'", "T(2,5), T(2; 0..1), 1, interpolation='nearest'"]),
    function("nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor", |a| quantile(a, true))
        .autocast_full()
        .doc("The quantile `q`, a number, as the other form.")
        .samples(&["T(2,5), 0.3", "T(2,5), 0.5, 1, True"]),
    function("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor", |a| quantile(a, true))
        .autocast_full()
        .doc("`quantile` of the elements that are not NaN.")
        .samples(&["T(2,5), T(2; 0..1)", "T(2,5), T(; 0..1), 1, True"]),
    function("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", mode)
        .doc("The most frequent value along `dim`, of several the smallest, and a place of it.")
        .samples(&["T(2,5)", "T(3,4), 0, True"]),
    function("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", |a| trapezoid(a, Some(a.tensor(1)?), Scalar::Int(1), 2, false))
        .places(TORCH)
        .without_out()
        .doc("The integral of values `y` at places `x` along `dim`, by trapezoids.")
        .samples(&["T(2,4), T(4)", "T(4,2), T(4,2), dim=0"]),
    function("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", |a| trapezoid(a, None, a.scalar(1)?, 2, false))
        .places(TORCH)
        .without_out()
        .doc("The integral of values `y` that are `dx` apart along `dim`, by trapezoids.")
        .samples(&["T(2,4)", "T(4,2), dx=0.5, dim=0"]),
    function("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", |a| trapezoid(a, Some(a.tensor(1)?), Scalar::Int(1), 2, false))
        .places(TORCH)
        .without_out()
        .doc("Alias of `trapezoid`.")
        .samples(&["T(2,4), T(4)"]),
    function("trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", |a| trapezoid(a, None, Scalar::Float(a.float(1)?), 2, false))
        .places(TORCH)
        .without_out()
        .doc("Alias of `trapezoid`.")
        .samples(&["T(2,4)"]),
    function("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", |a| trapezoid(a, Some(a.tensor(1)?), Scalar::Int(1), 2, true))
        .places(TORCH)
        .without_out()
        .doc("The integrals of `trapezoid` from the first place to each of the others.")
        .samples(&["T(2,4), T(4)"]),
    function("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", |a| trapezoid(a, None, a.scalar(1)?, 2, true))
        .places(TORCH)
        .without_out()
        .doc("The integrals of `trapezoid` from the first place to each of the others.")
        .samples(&["T(2,4)"]),
];
