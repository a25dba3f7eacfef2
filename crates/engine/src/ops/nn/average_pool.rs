//! Means of windows.

use super::pool::{Given, Window, adaptive_range, adaptive_sizes};
use super::resampled::Resampled;
use super::spatial::{channels_last, spatial_format, with_last};
use crate::Tensor;
use crate::backend::spatial::Taps;
use crate::ops::pointwise::{DIV_TRUNC, call};
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// What an average pool divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// The number of elements of the window, those of the padding included.
    Window,
    /// The number of elements that are there.
    Inside,
    /// This number.
    Fixed(i64),
}

/// The taps of windows, which have no dilation.
fn taps(window: Window, n: usize, results: usize, divisor: Divisor) -> Taps {
    let mut taps = Taps { input: n, starts: vec![0], ..Taps::default() };
    for i in 0..results {
        let (first, there) = window.inside(i, n);
        taps.index.extend(first as i32..(first + there) as i32);
        taps.starts.push(taps.index.len() as u32);
        match divisor {
            Divisor::Inside => taps.divisor.push(there as f64),
            Divisor::Window => {
                let start = window.start(i);
                taps.divisor.push(((start + window.kernel as i64).min((n + window.padding) as i64) - start) as f64);
            }
            Divisor::Fixed(_) => {}
        }
    }
    taps
}

fn check_divisor(op: &str, divisor: Divisor) -> Result<()> {
    if divisor == Divisor::Fixed(0) {
        return Err(Error::runtime(format!("{op}: divisor must be not zero")));
    }
    Ok(())
}

/// Means of windows over the last `n` dimensions.
fn average(op: &'static str, x: &Tensor, n: usize, given: &Given, divisor: Divisor) -> Result<Tensor> {
    check_divisor(op, divisor)?;
    let shape = given.over(op, x, n)?;
    let sizes = &x.shape()[x.ndim() - n..];
    let mut axes: SmallVec<[Taps; 3]> = (0..n).map(|i| taps(shape.windows[i], sizes[i], shape.results[i], divisor)).collect();
    if let Divisor::Fixed(by) = divisor {
        axes[0].divisor = vec![by as f64; shape.results[0]];
    }
    if x.dtype() == DType::I64 {
        return average_integers(x, &axes);
    }
    Resampled { name: op, axes: axes.into_iter().map(Arc::new).collect(), ties: true, bits: 0 }.apply(x)
}

/// The same for integers: exact sums, one tap after the other, and a quotient rounded towards zero.
fn average_integers(x: &Tensor, axes: &[Taps]) -> Result<Tensor> {
    if x.device().is_meta() {
        let last: SmallVec<[usize; 3]> = axes.iter().map(Taps::output).collect();
        return Tensor::empty(&with_last(x.shape(), &last), x.dtype(), x.device());
    }
    let (mut sum, mut divisor) = (x.clone(), None::<Tensor>);
    for (i, taps) in axes.iter().enumerate() {
        let dim = (x.ndim() - axes.len() + i) as i64;
        let (index, owner): (Vec<i64>, Vec<i64>) =
            (0..taps.output()).flat_map(|o| taps.of(o).map(move |t| (taps.index[t] as i64, o as i64))).unzip();
        let vector = |v: &[i64]| Tensor::from_slice(v, &[v.len()]);
        let mut sizes: SmallVec<[usize; 6]> = sum.shape().iter().copied().collect();
        sizes[dim as usize] = taps.output();
        let picked = sum.index_select(dim, &vector(&index)?)?;
        sum = Tensor::zeros(&sizes, x.dtype(), x.device())?.index_add(dim, &vector(&owner)?, &picked)?;
        if !taps.divisor.is_empty() {
            let mut shape: SmallVec<[i64; 6]> = smallvec::smallvec![1; x.ndim()];
            shape[dim as usize] = -1;
            let by = vector(&taps.divisor.iter().map(|&d| d as i64).collect::<Vec<_>>())?.reshape(&shape)?;
            divisor = Some(match divisor {
                Some(d) => d.mul(&by)?,
                None => by,
            });
        }
    }
    match divisor {
        Some(d) => call(&DIV_TRUNC, &[(&sum).into(), (&d).into()]),
        None => Ok(sum),
    }
}

/// Means of the parts into which the last dimensions are cut.
fn adaptive(op: &'static str, x: &Tensor, results: &[usize]) -> Result<Tensor> {
    if results.iter().all(|&n| n == 1) && !channels_last(spatial_format(x, results.len())) {
        super::check_float(op, x.dtype())?;
        let dims: SmallVec<[i64; 3]> = (1..=results.len() as i64).map(|d| -d).collect();
        return x.mean_dims(Some(&dims), true, None);
    }
    let sizes = &x.shape()[x.ndim() - results.len()..];
    let axis = |(&n, &results): (&usize, &usize)| {
        let mut taps = Taps { input: n, starts: vec![0], ..Taps::default() };
        for i in 0..results {
            let (first, there) = adaptive_range(i, n, results);
            taps.index.extend(first as i32..(first + there) as i32);
            taps.starts.push(taps.index.len() as u32);
            taps.divisor.push(there as f64);
        }
        Arc::new(taps)
    };
    Resampled { name: op, axes: sizes.iter().zip(results).map(axis).collect(), ties: results.iter().any(|&n| n != 1), bits: 0 }.apply(x)
}

impl Tensor {
    /// Means of windows over the last two dimensions of (channels, height, width), with a batch dimension in front or not.
    ///
    /// An empty `stride` is the kernel size. `RuntimeError` for windows that do not fit.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, ops::nn::Divisor};
    /// # let _ = || -> flambeau_base::Result<()> {
    /// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[1, 2, 2])?;
    /// assert_eq!(x.avg_pool2d(&[2], &[], &[0], false, Divisor::Window)?.to_vec::<f32>()?, [2.5]);
    /// # Ok(()) };
    /// ```
    pub fn avg_pool2d(&self, kernel: &[i64], stride: &[i64], padding: &[i64], ceil: bool, divisor: Divisor) -> Result<Tensor> {
        average("avg_pool2d", self, 2, &Given { kernel, stride, padding, dilation: &[1], ceil }, divisor)
    }

    /// Means of the parts into which height and width are cut, so that the result has `size` of them.
    ///
    /// ```
    /// # use flambeau_engine::Tensor;
    /// # let _ = || -> flambeau_base::Result<()> {
    /// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[1, 2, 2])?;
    /// assert_eq!(x.adaptive_avg_pool2d([1, 2])?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) };
    /// ```
    pub fn adaptive_avg_pool2d(&self, size: [usize; 2]) -> Result<Tensor> {
        super::pool::check_input("adaptive_avg_pool2d", self, 2)?;
        adaptive("adaptive_avg_pool2d", self, &size)
    }
}

fn average_row(a: &Args, op: &'static str, n: usize) -> Result<Out> {
    let given = Given { kernel: &a.ints(1)?, stride: &a.ints(2)?, padding: &a.ints(3)?, dilation: &[1], ceil: a.bool(4)? };
    let fixed = if n > 1 { a.opt_int(6)? } else { None };
    let divisor = match fixed {
        Some(by) => Divisor::Fixed(by),
        None if a.bool(5)? => Divisor::Window,
        None => Divisor::Inside,
    };
    Ok(average(op, a.tensor(0)?, n, &given, divisor)?.into())
}

fn adaptive_row(a: &Args, op: &'static str, n: usize) -> Result<Out> {
    let x = a.tensor(0)?;
    Ok(adaptive(op, x, &adaptive_sizes(a, x, n)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function(
        "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        |a| average_row(a, "avg_pool1d", 1),
    )
    .doc("Means of windows over the last dimension of (channels, length), with or without a batch dimension in front. `stride` is `kernel_size` unless given; `ceil_mode` allows a last window that is not whole; with `count_include_pad` the padding's zeros count.")
    .places(place::TORCH | place::NN)
    .without_out()
    .samples(&["T(2,3,7), 3", "T(3,7), [2], [3], 1", "T(2,7), 3, 2, 1, True, False"]),
    function(
        "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        |a| average_row(a, "avg_pool2d", 2),
    )
    .doc("Means of windows over the last two dimensions of (channels, height, width), with or without a batch dimension in front. `stride` is `kernel_size` unless given; `ceil_mode` allows last windows that are not whole; with `count_include_pad` the padding's zeros count; `divisor_override` divides instead of the number of elements.")
    .places(place::NN)
    .samples(&["T(2,3,4,6), 2", "T(2,5,20), [3, 2], [2, 1], [1, 0]", "T(1,1,6,7), 3, 2, 1, True, False", "T(1,2,4,5), 2, 1, divisor_override=3"]),
    function(
        "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        |a| average_row(a, "avg_pool3d", 3),
    )
    .autocast_full()
    .doc("Means of windows over the last three dimensions; see `avg_pool2d`.")
    .places(place::NN)
    .samples(&["T(1,2,4,4,4), 2", "T(1,4,5,6), [2, 3, 2], 2, [1, 1, 0], True, False", "T(1,1,3,4,4), 2, 1, divisor_override=-3"]),
    function("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", |a| adaptive_row(a, "adaptive_avg_pool1d", 1))
        .doc("Means of the parts into which the last dimension is cut, so that there are `output_size` of them.")
        .places(place::TORCH | place::NN)
        .without_out()
        .samples(&["T(2,3,7), 3", "T(2,5), [8]"]),
    function("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", |a| adaptive_row(a, "adaptive_avg_pool2d", 2))
        .doc("Means of the parts into which the last two dimensions are cut, so that there are `output_size` of them.")
        .places(place::NN)
        .samples(&["T(2,3,5,7), [2, 3]", "T(2,4,4), 1", "T(1,1,3,2), [4, 4]"]),
    function("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", |a| adaptive_row(a, "adaptive_avg_pool3d", 3))
        .autocast_full()
        .doc("Means of the parts into which the last three dimensions are cut, so that there are `output_size` of them.")
        .places(place::NN)
        .samples(&["T(1,2,3,4,5), [2, 3, 2]", "T(1,3,3,3), 1"]),
    function("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", |a| adaptive_row(a, "adaptive_avg_pool2d", 2))
        .doc("Alias of `adaptive_avg_pool2d`.")
        .places(place::PRIVATE)
        .without_out()
        .samples(&["T(2,3,5,7), [2, 3]"]),
    function("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", |a| adaptive_row(a, "adaptive_avg_pool3d", 3))
        .doc("Alias of `adaptive_avg_pool3d`.")
        .places(place::PRIVATE)
        .without_out()
        .samples(&["T(1,2,3,4,5), [2, 3, 2]"]),
];
