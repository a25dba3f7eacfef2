//! Evenly spaced values.

use super::Options;
use crate::Tensor;
use crate::ops::pointwise::run_program;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use crate::tensor::Element;
use crate::with_element;
use flambeau_base::{DType, Device, Error, Layout, Result, Scalar, default_dtype};
use flambeau_ir::Body;

impl Tensor {
    /// `start, start + step, ...` up to but without `end`.
    ///
    /// `RuntimeError` where the step is zero or leads away from `end`.
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: Option<DType>,
        device: Device,
    ) -> Result<Tensor> {
        let (start, end, step) = (start.into(), end.into(), step.into());
        let whole = start.is_integral() && end.is_integral() && step.is_integral();
        let dtype = dtype.unwrap_or(if whole { DType::I64 } else { default_dtype() });
        let n = count(start, end, step, whole)?;
        let out = Tensor::empty(&[n], dtype, device)?;
        if device.is_meta() {
            return Ok(out);
        }
        if dtype.is_integral() {
            // Integer dtypes count in integers, whatever the ends were.
            let (a, d) = (start.to_i64(), step.to_i64());
            let value = |i: usize| Scalar::Int(a.wrapping_add((i as i64).wrapping_mul(d)));
            if dtype == DType::I64 && n > 2 * ROW { by_rows(&out, d, value)? } else { write(&out, value)? }
        } else {
            let (a, d) = (start.to_f64(), step.to_f64());
            write(&out, |i| Scalar::Float(a + i as f64 * d))?;
        }
        Ok(out)
    }

    /// `steps` values from `start` to `end`, both included.
    pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType, device: Device) -> Result<Tensor> {
        let out = Tensor::empty(&[steps], dtype, device)?;
        if device.is_meta() {
            return Ok(out);
        }
        // Counted from the nearer end, in the dtype's own arithmetic: both ends are exact.
        if dtype == DType::F64 || dtype.is_integral() {
            let d = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
            write(&out, |i| {
                Scalar::Float(if i < steps / 2 || steps == 1 { start + d * i as f64 } else { end - d * (steps - 1 - i) as f64 })
            })?;
        } else {
            let (start, end) = (start as f32, end as f32);
            let d = if steps > 1 { (end - start) / (steps - 1) as f32 } else { 0.0 };
            write(&out, |i| {
                Scalar::Float(if i < steps / 2 || steps == 1 {
                    d.mul_add(i as f32, start)
                } else {
                    (-d).mul_add((steps - 1 - i) as f32, end)
                } as f64)
            })?;
        }
        Ok(out)
    }
}

fn count(start: Scalar, end: Scalar, step: Scalar, whole: bool) -> Result<usize> {
    let wrong = |why: &str| Error::runtime(format!("arange: {why} (start {start}, end {end}, step {step})"));
    let (a, b, d) = (start.to_f64(), end.to_f64(), step.to_f64());
    if d == 0.0 || d.is_nan() {
        return Err(wrong("step must be nonzero"));
    }
    if !a.is_finite() || !b.is_finite() {
        return Err(wrong("unsupported range"));
    }
    if (d > 0.0 && a > b) || (d < 0.0 && a < b) {
        return Err(wrong("upper bound and lower bound inconsistent with step sign"));
    }
    if whole {
        let (a, b, d) = (start.to_i64() as i128, end.to_i64() as i128, step.to_i64() as i128);
        return usize::try_from((b - a + d - d.signum()) / d).map_err(|_| wrong("too many elements"));
    }
    let n = ((b - a) / d).ceil();
    if n > isize::MAX as f64 { Err(wrong("too many elements")) } else { Ok(n as usize) }
}

/// Fills a fresh contiguous tensor from a function of the index.
/// Elements of a row of [`by_rows`].
const ROW: usize = 32 << 10;

/// Many integers as a table: the first row and a first column of multiples of its length make the rest, on all threads.
fn by_rows(out: &Tensor, step: i64, value: impl Fn(usize) -> Scalar) -> Result<()> {
    let rows = out.numel() / ROW;
    let first = Tensor::empty(&[1, ROW], DType::I64, out.device())?;
    write(&first, &value)?;
    let starts = Tensor::empty(&[rows, 1], DType::I64, out.device())?;
    write(&starts, |r| Scalar::Int(((r * ROW) as i64).wrapping_mul(step)))?;
    let mut body = Body::new(&[DType::I64, DType::I64]);
    let sum = body.add(body.input(0), body.input(1));
    let table = out.alias_with(Layout::contiguous(&[rows, ROW])?, DType::I64);
    run_program(&body.finish(&[sum])?, &[], &[&first, &starts], &[table])?;
    let done = rows * ROW;
    let rest = out.alias_with(Layout::contiguous(&[out.numel() - done])?.with_offset(done), DType::I64);
    write(&rest, |i| value(done + i))
}

fn write(out: &Tensor, f: impl Fn(usize) -> Scalar) -> Result<()> {
    let (ptr, n) = (out.data_ptr_mut()?, out.numel());
    with_element!(out.dtype(), T => {
        let ptr = ptr.cast::<T>();
        for i in 0..n {
            // SAFETY: the tensor is fresh, contiguous and has `n` elements of this type.
            unsafe { *ptr.add(i) = T::from_scalar(f(i)) };
        }
    });
    Ok(())
}

fn arange(a: &Args, start: Scalar, end: Scalar, step: Scalar, at: usize) -> Result<Out> {
    let o = Options::of(a, at)?;
    o.finish(Tensor::arange(start, end, step, o.dtype, o.device)?)
}

/// `range`, whose end is among the values.
fn closed(a: &Args) -> Result<Out> {
    let (start, end, step) = (a.scalar(0)?, a.scalar(1)?, a.scalar(2)?);
    let (from, to, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    if by == 0.0 {
        return Err(Error::runtime("range: step must be nonzero"));
    }
    if !from.is_finite() || !to.is_finite() {
        return Err(Error::runtime(format!("range: unsupported range: {from} -> {to}")));
    }
    if (by > 0.0) != (to >= from) && to != from {
        return Err(Error::runtime(format!("range: upper bound and lower bound inconsistent with step sign: {from} to {to} by {by}")));
    }
    let o = Options::of(a, 3)?;
    let count = ((to - from) / by).floor() as i64 + 1;
    let dtype = o.float();
    let steps = Tensor::arange(Scalar::Int(0), Scalar::Int(count), Scalar::Int(1), Some(DType::F64), o.device)?;
    o.finish(steps.mul(by)?.add(from)?.to_dtype(dtype)?)
}

/// The same call with numbers in the place of its two tensors of one number.
fn numbered(a: &Args) -> Result<Args> {
    let mut values = a.values.clone();
    for (i, word) in ["start", "end"].into_iter().enumerate() {
        let Value::Tensor(t) = &a.values[i] else { continue };
        if t.ndim() != 0 {
            return Err(Error::runtime(format!(
                "{} only supports 0-dimensional start and end tensors, but got {word} with {} dimension(s).",
                a.name,
                t.ndim()
            )));
        }
        values[i] = Value::Scalar(t.item()?);
    }
    Ok(Args { name: a.name, values })
}

fn steps(a: &Args) -> Result<usize> {
    let n = a.int(2)?;
    usize::try_from(n).map_err(|_| Error::runtime(format!("{}: number of steps must be non-negative, got {n}", a.name)))
}

fn linspace(a: &Args) -> Result<Out> {
    let o = Options::of(a, 3)?;
    o.finish(Tensor::linspace(a.scalar(0)?.to_f64(), a.scalar(1)?.to_f64(), steps(a)?, o.float(), o.device)?)
}

fn logspace(a: &Args) -> Result<Out> {
    let o = Options::of(a, 4)?;
    let exponents = Tensor::linspace(a.scalar(0)?.to_f64(), a.scalar(1)?.to_f64(), steps(a)?, DType::F64, o.device)?;
    let values = crate::ops::pointwise::power_of(a.float(3)?, &exponents)?;
    o.finish(values.to_dtype(o.float())?)
}

pub(super) static OPS: &[Op] = &[
    function("arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| {
        arange(a, Scalar::Int(0), a.scalar(0)?, Scalar::Int(1), 1)
    })
    .doc("Whole steps from 0 up to but without `end`; int64 for integers, else the default float.")
    .places(place::TORCH)
    .samples(&["5", "4.5", "0"]),
    function("arange.start(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| {
        arange(a, a.scalar(0)?, a.scalar(1)?, a.scalar(2)?, 3)
    })
    .doc("Values from `start` up to but without `end`, `step` apart.")
    .places(place::TORCH)
    .samples(&["1, 5", "0, 1, 0.25", "5, 0, -2", "1, 6, 2, dtype=float64"]),
    function("range(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", closed)
        .doc("Values from `start` up to and with `end`, `step` apart, of the default float. Deprecated: `arange` ends before `end`.")
        .places(place::TORCH)
        .samples(&["1, 4", "1, 2, 0.5", "4, 1, -1"]),
    function("linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", linspace)
        .doc("`steps` evenly spaced values from `start` to `end`, both included.")
        .places(place::TORCH)
        .samples(&["0, 1, 5", "-1, 1, 4", "3, 3, 1"]),
    function("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| linspace(&numbered(a)?))
        .numbers(0b11)
        .doc("`linspace` between tensors of one number.")
        .places(place::TORCH)
        .samples(&["T(), T(), 3", "0, T(), 3"]),
    function("logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", logspace)
        .doc("`base` to the power of `steps` evenly spaced values from `start` to `end`.")
        .places(place::TORCH)
        .samples(&["0, 2, 3", "0, 3, 4, 2.0"]),
    function("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| logspace(&numbered(a)?))
        .numbers(0b11)
        .doc("`logspace` between tensors of one number.")
        .places(place::TORCH)
        .samples(&["T(), T(), 3", "0, T(), 3"]),
];
