//! The functions of `torch.fft`.

use super::{Fft, FftKind, complex_of};
use crate::Tensor;
use crate::ops::create::Options;
use crate::ops::join::cat;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, default_dtype, show, wrap_dim};
use smallvec::{SmallVec, smallvec};

type List = SmallVec<[usize; 4]>;

/// How results are scaled, by PyTorch's name. `RuntimeError` for another.
fn scale(op: &str, norm: Option<&str>, n: usize, forward: bool) -> Result<f64> {
    match (norm.unwrap_or("backward"), forward) {
        ("backward", true) | ("forward", false) => Ok(1.0),
        ("backward", false) | ("forward", true) => Ok(1.0 / n as f64),
        ("ortho", _) => Ok(1.0 / (n as f64).sqrt()),
        (other, _) => Err(Error::runtime(format!("{op}: Invalid normalization mode: \"{other}\"; backward, forward and ortho are there"))),
    }
}

/// A float or complex tensor to transform. `RuntimeError` for low precision.
fn floating(op: &str, x: &Tensor, complex: bool) -> Result<Tensor> {
    let dtype = match x.dtype() {
        DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
            return Err(Error::not_implemented(format!("{op}: Unsupported dtype {}: convert to float32", x.dtype())));
        }
        d if d.is_integral() => default_dtype(),
        d => d,
    };
    x.to_dtype(if complex { complex_of(dtype) } else { dtype })
}

/// Dimension `d` filled up with zeros, or cut, to `n`.
fn resized(x: &Tensor, d: usize, n: usize) -> Result<Tensor> {
    let have = x.shape()[d];
    if n <= have {
        return if n == have { Ok(x.clone()) } else { x.narrow(d as i64, 0, n as i64) };
    }
    let mut rest: SmallVec<[usize; 6]> = SmallVec::from_slice(x.shape());
    rest[d] = n - have;
    cat(&[x, &Tensor::zeros(&rest, x.dtype(), x.device())?], d as i64)
}

/// Which dimensions, and how long; lengths as they are asked for, `None` where the input's counts.
fn arguments(op: &str, x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<(List, SmallVec<[Option<usize>; 4]>)> {
    let dims: List = match (dim, s) {
        (Some(dim), _) => dim.iter().map(|&d| wrap_dim(op, d, x.ndim())).collect::<Result<_>>()?,
        (None, Some(s)) => {
            if s.len() > x.ndim() {
                return Err(Error::runtime(format!(
                    "{op}: Got shape with {} values but input tensor only has {} dimensions.",
                    s.len(),
                    x.ndim()
                )));
            }
            (x.ndim() - s.len()..x.ndim()).collect()
        }
        (None, None) => (0..x.ndim()).collect(),
    };
    if let Some((_, d)) = dims.iter().enumerate().find(|(i, d)| dims[..*i].contains(d)) {
        return Err(Error::runtime(format!("{op}: FFT dims must be unique, got {d} twice in {dim:?}")));
    }
    if x.ndim() == 0 && !dims.is_empty() {
        return Err(Error::index(format!("{op}: Dimension specified as {} but tensor has no dimensions", dim.map_or(-1, |d| d[0]))));
    }
    let Some(s) = s else { return Ok((dims.clone(), smallvec![None; dims.len()])) };
    if s.len() != dims.len() {
        return Err(Error::runtime(format!(
            "{op}: When given, dim and shape arguments must have the same length, got {} and {}",
            dims.len(),
            s.len()
        )));
    }
    let lengths = s
        .iter()
        .map(|&n| match n {
            -1 => Ok(None),
            n if n < 1 => Err(Error::runtime(format!("{op}: Invalid number of data points ({n}) specified"))),
            n => Ok(Some(n as usize)),
        })
        .collect::<Result<_>>()?;
    Ok((dims, lengths))
}

/// A length for each dimension, at least 1.
fn lengths(op: &str, x: &Tensor, dims: &[usize], asked: &[Option<usize>]) -> Result<List> {
    dims.iter()
        .zip(asked)
        .map(|(&d, n)| match n.unwrap_or(x.shape()[d]) {
            0 => {
                Err(Error::runtime(format!("{op}: Invalid number of data points (0) specified: shape {}, dimension {d}", show(x.shape()))))
            }
            n => Ok(n),
        })
        .collect()
}

fn product(n: &[usize]) -> usize {
    n.iter().product()
}

fn fit(x: &Tensor, dims: &[usize], n: &[usize]) -> Result<Tensor> {
    dims.iter().zip(n).try_fold(x.clone(), |x, (&d, &n)| resized(&x, d, n))
}

/// Complex to complex along dimensions.
fn complex(op: &str, x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>, norm: Option<&str>, forward: bool) -> Result<Tensor> {
    let (dims, asked) = arguments(op, x, s, dim)?;
    let x = floating(op, x, true)?;
    let n = lengths(op, &x, &dims, &asked)?;
    let scale = scale(op, norm, product(&n), forward)?;
    if dims.is_empty() {
        return Ok(x);
    }
    bind1(&Fft { kind: FftKind::Complex, dims: dims.clone(), forward, scale, n: 0, keep: false }, &[&fit(&x, &dims, &n)?])
}

/// `x` so that in memory `others`, by their steps, and then `last` come behind all other dimensions.
fn in_turn(x: &Tensor, others: &[usize], last: usize) -> Result<Tensor> {
    let slow = |d: &usize| std::cmp::Reverse(x.strides()[*d]);
    let mut order: SmallVec<[usize; 6]> = (0..x.ndim()).filter(|d| *d != last && !others.contains(d)).collect();
    order.sort_by_key(slow);
    let start = order.len();
    order.extend_from_slice(others);
    order[start..].sort_by_key(slow);
    order.push(last);
    x.copy_in_order(&order)
}

/// Real to half a spectrum: along the last of the dimensions, then complex along the others; conjugated for `ihfft`.
fn from_real(op: &str, x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>, norm: Option<&str>, hermitian: bool) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return Err(Error::type_error(format!("{op} expects a real input tensor, but got {}", x.dtype())));
    }
    let (dims, asked) = arguments(op, x, s, dim)?;
    let x = floating(op, x, false)?;
    let n = lengths(op, &x, &dims, &asked)?;
    let Some((&last, others)) = dims.split_last() else {
        return Err(Error::runtime(format!("{op} must transform at least one axis")));
    };
    let scale = scale(op, norm, product(&n), !hermitian)?;
    let x = fit(&x, &dims, &n)?;
    let x = if hermitian || others.is_empty() { x } else { in_turn(&x, others, last)? };
    let half = Fft { kind: FftKind::FromReal, dims: smallvec![last], forward: true, scale, n: n[n.len() - 1], keep: false };
    let y = bind1(&half, &[&x])?;
    let y = if hermitian { y.conj()? } else { y };
    if others.is_empty() {
        return Ok(y);
    }
    bind1(&Fft { kind: FftKind::Complex, dims: List::from_slice(others), forward: !hermitian, scale: 1.0, n: 0, keep: !hermitian }, &[&y])
}

/// Half a spectrum to real numbers: complex along all dimensions but the last, then that one; conjugated first for `hfft`.
fn to_real(op: &str, x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>, norm: Option<&str>, hermitian: bool) -> Result<Tensor> {
    let (dims, mut asked) = arguments(op, x, s, dim)?;
    let x = floating(op, x, true)?;
    let Some((&last, others)) = dims.split_last() else {
        return Err(Error::runtime(format!("{op} must transform at least one axis")));
    };
    let at = dims.len() - 1;
    let n_last = match asked[at] {
        Some(n) => n as i64,
        None => 2 * (x.shape()[last] as i64 - 1),
    };
    if n_last < 1 {
        return Err(Error::runtime(format!("{op}: Invalid number of data points ({n_last}) specified")));
    }
    asked[at] = Some(n_last as usize / 2 + 1);
    let mut n = lengths(op, &x, &dims, &asked)?;
    let x = fit(&x, &dims, &n)?;
    n[at] = n_last as usize;
    let scale = scale(op, norm, product(&n), hermitian)?;
    let x = if others.is_empty() {
        x
    } else {
        bind1(&Fft { kind: FftKind::Complex, dims: List::from_slice(others), forward: hermitian, scale: 1.0, n: 0, keep: false }, &[&x])?
    };
    let x = if hermitian { x.conj()? } else { x };
    bind1(&Fft { kind: FftKind::ToReal, dims: smallvec![last], forward: false, scale, n: n_last as usize, keep: false }, &[&x])
}

type Family = fn(&str, &Tensor, Option<&[i64]>, Option<&[i64]>, Option<&str>, bool) -> Result<Tensor>;

/// `(self, n, dim, norm)`.
fn one(a: &Args, f: Family, flag: bool) -> Result<Out> {
    let (n, norm) = (a.opt_int(1)?, a.opt_str(3)?);
    if n.is_some_and(|n| n < 1) {
        return Err(Error::runtime(format!("{}: Invalid number of data points ({}) specified", a.name, n.unwrap_or(0))));
    }
    Ok(f(a.name, a.tensor(0)?, n.as_ref().map(std::slice::from_ref), Some(&[a.int(2)?]), norm.as_deref(), flag)?.into())
}

/// `(self, s, dim, norm)`.
fn several(a: &Args, f: Family, flag: bool) -> Result<Out> {
    let (s, dim, norm) = (a.opt_ints(1)?, a.opt_ints(2)?, a.opt_str(3)?);
    Ok(f(a.name, a.tensor(0)?, s.as_deref(), dim.as_deref(), norm.as_deref(), flag)?.into())
}

impl Tensor {
    /// The discrete Fourier transform along a dimension, `sum x_j exp(-2 pi i j k / n)`; see `torch.fft.fft` for `norm`.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example() -> Result<()> {
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 0.0], &[4])?;
    /// assert_eq!(x.fft(None, -1, None)?.real()?.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fft(&self, n: Option<i64>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
        complex("fft", self, n.as_ref().map(std::slice::from_ref), Some(&[dim]), norm, true)
    }

    /// The inverse of [`Tensor::fft`].
    pub fn ifft(&self, n: Option<i64>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
        complex("ifft", self, n.as_ref().map(std::slice::from_ref), Some(&[dim]), norm, false)
    }

    /// The first half, `n / 2 + 1`, of the transform of real numbers.
    pub fn rfft(&self, n: Option<i64>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
        from_real("rfft", self, n.as_ref().map(std::slice::from_ref), Some(&[dim]), norm, false)
    }

    /// The inverse of [`Tensor::rfft`]: `n` real numbers (`2 * (size - 1)` unless given).
    pub fn irfft(&self, n: Option<i64>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
        to_real("irfft", self, n.as_ref().map(std::slice::from_ref), Some(&[dim]), norm, false)
    }
}

fn shifted(a: &Args, inverse: bool) -> Result<Out> {
    let x = a.tensor(0)?;
    let dims: SmallVec<[i64; 6]> = a.opt_ints(1)?.unwrap_or_else(|| (0..x.ndim() as i64).collect());
    let mut shifts: SmallVec<[i64; 6]> = SmallVec::new();
    for &d in &dims {
        let n = x.shape()[wrap_dim(a.name, d, x.ndim())?] as i64;
        shifts.push(if inverse { (n + 1) / 2 } else { n / 2 });
    }
    if dims.is_empty() {
        return Ok(x.copy()?.into());
    }
    Ok(x.roll(&shifts, &dims)?.into())
}

fn frequencies(a: &Args, half: bool) -> Result<Out> {
    let (n, d, o) = (a.int(0)?, a.float(1)?, Options::of(a, 2)?);
    if n < 0 {
        return Err(Error::runtime(format!("{}: n must not be negative, got {n}", a.name)));
    }
    let values: Vec<f64> = if half {
        (0..=n / 2).map(|i| i as f64).collect()
    } else {
        (0..n).map(|i| if i < (n + 1) / 2 { i } else { i - n } as f64).collect()
    };
    let dtype = o.float();
    let wide = Tensor::from_slice(&values, &[values.len()])?;
    let step = 1.0 / (n as f64 * d);
    let made = if dtype == DType::F64 { wide.mul(step)? } else { wide.to_dtype(dtype)?.mul(step)? };
    o.finish(made)
}

const PRIVATE: u8 = place::PRIVATE;

pub(super) static OPS: &[Op] = &[
    function("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| one(a, complex, true))
        .autocast_full()
        .places(PRIVATE)
        .doc("Discrete Fourier transform along `dim`, of length `n` (cut, or filled up with zeros): `sum x_j exp(-2 pi i j k / n)`. `norm` says where it is divided by n: `forward`, `backward` (the inverse) or `ortho` (both, by the root).")
        .samples(&["C(3,4)", "C(3,4), 6, 0, 'ortho'", "T(5), 3, norm='forward'"]),
    function("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| one(a, complex, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.fft`.")
        .samples(&["C(3,4)", "C(3,4), 3, 0, 'ortho'"]),
    function("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| one(a, from_real, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("The first half, `n / 2 + 1`, of the transform of real numbers; the rest is its mirror image, conjugated.")
        .samples(&["T(3,4)", "T(3,5), 4, 1, 'ortho'", "T(3,2), dim=0"]),
    function("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| one(a, to_real, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.rfft`: `n` real numbers, `2 * (size - 1)` unless given.")
        .samples(&["C(2,3)", "C(2,3), 5, norm='ortho'", "C(3,2), dim=0"]),
    function("fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| one(a, to_real, true))
        .autocast_full()
        .places(PRIVATE)
        .doc("Transform of a signal that is the mirror image of itself, conjugated, of which the first half is given: `n` real numbers.")
        .samples(&["C(2,3)", "C(2,3), 5"]),
    function("fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |a| one(a, from_real, true))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.hfft`.")
        .samples(&["T(3,4)", "T(5), 4"]),
    function("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", |a| several(a, complex, true))
        .autocast_full()
        .places(PRIVATE)
        .doc("`fft.fftn` along two dimensions.")
        .samples(&["C(2,3,4)"]),
    function("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", |a| several(a, complex, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.fft2`.")
        .samples(&["C(2,3,4)"]),
    function("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", |a| several(a, from_real, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("`fft.rfftn` along two dimensions.")
        .samples(&["T(2,3,4)"]),
    function("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", |a| several(a, to_real, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.rfft2`.")
        .samples(&["C(2,3,4)"]),
    function("fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", |a| several(a, to_real, true))
        .places(PRIVATE)
        .doc("`fft.hfftn` along two dimensions.")
        .samples(&["C(2,3,4)"]),
    function("fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", |a| several(a, from_real, true))
        .places(PRIVATE)
        .doc("Inverse of `fft.hfft2`.")
        .samples(&["T(2,3,4)"]),
    function("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", |a| several(a, complex, true))
        .autocast_full()
        .places(PRIVATE)
        .doc("`fft.fft` along several dimensions, of lengths `s`; along all, or the last as many as lengths, unless `dim` is given.")
        .samples(&["C(2,3,4)", "C(2,3,4), [2, 2], [0, 2], 'ortho'"]),
    function("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", |a| several(a, complex, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.fftn`.")
        .samples(&["C(2,3,4)"]),
    function("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", |a| several(a, from_real, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("`fft.fftn` of real numbers: half a spectrum along the last dimension.")
        .samples(&["T(2,3,4)", "T(2,3,4), [2, 2], [0, 2], 'ortho'"]),
    function("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", |a| several(a, to_real, false))
        .autocast_full()
        .places(PRIVATE)
        .doc("Inverse of `fft.rfftn`.")
        .samples(&["C(2,3,4)", "C(2,3,4), [2, 3], [0, 2]"]),
    function("fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", |a| several(a, to_real, true))
        .places(PRIVATE)
        .doc("`fft.hfft` along several dimensions: half the signal is given along the last.")
        .samples(&["C(2,3,4)"]),
    function("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", |a| several(a, from_real, true))
        .places(PRIVATE)
        .doc("Inverse of `fft.hfftn`.")
        .samples(&["T(2,3,4)"]),
    function("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", |a| shifted(a, false))
        .places(PRIVATE)
        .without_out()
        .doc("The halves of dimensions exchanged, so that frequency 0 is in the middle.")
        .samples(&["T(2,5)", "T(2,5), [1]"]),
    function("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", |a| shifted(a, true))
        .places(PRIVATE)
        .without_out()
        .doc("Inverse of `fft.fftshift`.")
        .samples(&["T(2,5)", "T(2,5), [1]"]),
    function("fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| frequencies(a, false))
        .places(PRIVATE)
        .doc("The frequencies of `fft.fft` for `n` samples that are `d` apart.")
        .samples(&["5", "4, 0.5"]),
    function("fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| frequencies(a, true))
        .places(PRIVATE)
        .doc("The frequencies of `fft.rfft` for `n` samples that are `d` apart.")
        .samples(&["5", "4, 0.5"]),
];
