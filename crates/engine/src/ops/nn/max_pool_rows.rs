//! The rows of pools that take the largest: of windows, of parts, of random parts, and their inverse.

use super::max_pool::{Windows, adaptive_row, backward, largest, pooled, unpooled};
use super::pool::{Given, check_input};
use super::spatial::sizes_of;
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, bf16, f16, show};
use smallvec::SmallVec;

fn max_row(a: &Args, name: &'static str, n: usize, places: bool) -> Result<Out> {
    let given = Given { kernel: &a.ints(1)?, stride: &a.ints(2)?, padding: &a.ints(3)?, dilation: &a.ints(4)?, ceil: a.bool(5)? };
    let (out, found) = largest(name, a.tensor(0)?, n, &given, places)?;
    Ok(if places { Out::Tuple(std::iter::once(out).chain(found).collect()) } else { out.into() })
}

/// Checks the windows again, as they were given in the forward pass.
fn backward_row(a: &Args, name: &'static str, n: usize) -> Result<Out> {
    let x = a.tensor(1)?;
    let given = Given { kernel: &a.ints(2)?, stride: &a.ints(3)?, padding: &a.ints(4)?, dilation: &a.ints(5)?, ceil: a.bool(6)? };
    let shape = given.over(name, x, n)?;
    let grad = a.tensor(0)?;
    if grad.ndim() != x.ndim()
        || grad.shape()[..x.ndim() - n] != x.shape()[..x.ndim() - n]
        || grad.shape()[x.ndim() - n..] != shape.results[..]
    {
        return Err(Error::runtime(format!(
            "{name}: expected a gradient with the last sizes {} for input of shape {}, got {}",
            show(&shape.results),
            show(x.shape()),
            show(grad.shape())
        )));
    }
    Ok(backward(name, grad, x, a.tensor(7)?, n)?.into())
}

fn unpool_row(a: &Args, name: &'static str, n: usize) -> Result<Out> {
    let x = a.tensor(0)?;
    check_input(name, x, n)?;
    let last = a.ints(2)?;
    if last.len() != n {
        return Err(Error::runtime(format!("{name}: There should be exactly {n} elements in output_size, but got {}", last.len())));
    }
    let last: SmallVec<[usize; 3]> = last
        .iter()
        .map(|&s| usize::try_from(s).map_err(|_| Error::runtime(format!("{name}: output_size must not be negative, got {last:?}"))))
        .collect::<Result<_>>()?;
    if n == 3 {
        for (i, what) in [(3, "stride"), (4, "padding")] {
            let given = a.ints(i)?;
            if given.len() != n || (i == 3 && given.iter().any(|&s| s <= 0)) {
                return Err(Error::runtime(format!("{name}: {what} must be {n} positive elements, but got {given:?}")));
            }
        }
    }
    Ok(unpooled(name, x, a.tensor(1)?, &last)?.into())
}

/// The first elements of windows that a random number between 0 and 1 shifts, in the arithmetic of the number's dtype.
///
/// Source: Graham, "Fractional max-pooling", 2014.
fn fractional_starts(sample: f64, dtype: DType, n: usize, results: usize, kernel: usize) -> Vec<(u32, u32)> {
    let round = |x: f64| match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        DType::F32 => x as f32 as f64,
        _ => x,
    };
    let room = n - kernel;
    let apart = if results > 1 { round(round(room as f64) / round((results - 1) as f64)) } else { 0.0 };
    let cut = |x: f64| round(x).trunc() as i64;
    let start = |i: usize| match i + 1 == results {
        true => room as u32,
        false => (cut(round(i as f64 + sample) * apart) - cut(sample * apart)).clamp(0, room as i64) as u32,
    };
    (0..results).map(|i| (start(i), kernel as u32)).collect()
}

/// Windows of each channel after its own random numbers.
fn fractional_windows(samples: &Tensor, sizes: &[usize], results: &[usize], kernel: &[usize]) -> Result<Windows> {
    let n = sizes.len();
    let values: Vec<f64> = samples.to_scalars()?.into_iter().map(|s| s.to_f64()).collect();
    let mut each: SmallVec<[Vec<(u32, u32)>; 3]> = smallvec::smallvec![Vec::new(); n];
    for of_channel in values.chunks_exact(n) {
        for i in 0..n {
            // In two dimensions the numbers are those of width and height.
            let sample = of_channel[if n == 2 { 1 - i } else { i }];
            each[i].extend(fractional_starts(sample, samples.dtype(), sizes[i], results[i], kernel[i]));
        }
    }
    Ok(Windows::ranges(each, results, true))
}

fn fractional_row(a: &Args, name: &'static str, n: usize) -> Result<Out> {
    let (x, samples) = (a.tensor(0)?, a.tensor(3)?);
    super::check_float(name, x.dtype())?;
    check_input(name, x, n)?;
    let positive = |i: usize, what: &str| -> Result<SmallVec<[usize; 3]>> {
        let given = sizes_of(a, i, n, what)?.unwrap_or_default();
        if given.len() != n || given.iter().any(|&s| s <= 0) {
            return Err(Error::runtime(format!("{name}: {what} must be positive and given for {n} dimensions, got {given:?}")));
        }
        Ok(given.iter().map(|&s| s as usize).collect())
    };
    let (kernel, results) = (positive(1, "kernel_size")?, positive(2, "output_size")?);
    let (lead, sizes) = x.shape().split_at(x.ndim() - n);
    for i in 0..n {
        if results[i] + kernel[i] - 1 > sizes[i] {
            return Err(Error::runtime(format!(
                "{name}: pool size {} and output size {} are too large relative to input size {} (dimension {})",
                kernel[i],
                results[i],
                sizes[i],
                lead.len() + i
            )));
        }
    }
    let channels = lead[lead.len() - 1];
    let batch = if lead.len() == 2 { lead[0] } else { 1 };
    if samples.shape() != [batch, channels, n] || samples.dtype() != x.dtype() {
        return Err(Error::runtime(format!(
            "{name}: Expect _random_samples of shape [{batch}, {channels}, {n}] and dtype {}, got {} {}",
            x.dtype(),
            samples.dtype(),
            show(samples.shape())
        )));
    }
    let windows = fractional_windows(samples, sizes, &results, &kernel)?;
    let (out, places) = pooled(name, x, windows, true)?;
    Ok(Out::Tuple(std::iter::once(out).chain(places).collect()))
}

pub(super) static OPS: &[Op] = &[
    function("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor", |a| max_row(a, "max_pool1d", 1, false))
        .doc("The largest elements of windows over the last dimension of (channels, length), with or without a batch dimension in front. `stride` is `kernel_size` unless given; `ceil_mode` allows a last window that is not whole.")
        .places(place::TORCH)
        .without_out()
        .samples(&["T(2,3,7), 3", "T(3,7), [2], [1], 1, 2", "T(2,40), 3, 2, 1, 1, True"]),
    function("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor", |a| max_row(a, "max_pool2d", 2, false))
        .doc("The largest elements of windows over the last two dimensions of (channels, height, width), with or without a batch dimension in front. `stride` is `kernel_size` unless given; `ceil_mode` allows last windows that are not whole.")
        .places(place::TORCH)
        .without_out()
        .samples(&["T(2,3,4,6), 2", "T(2,5,40), [3, 2], [2, 1], [1, 0]", "T(1,1,6,7), 3, 2, 1, 1, True", "T(1,2,6,9), 2, 1, 0, [2, 3]"]),
    function("max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor", |a| max_row(a, "max_pool3d", 3, false))
        .doc("The largest elements of windows over the last three dimensions; see `max_pool2d`.")
        .places(place::TORCH)
        .without_out()
        .samples(&["T(1,2,4,4,4), 2", "T(1,4,5,6), [2, 3, 2], 2, [1, 1, 0], 1, True"]),
    function("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)", |a| max_row(a, "max_pool1d", 1, true))
        .doc("`max_pool1d`, and where the elements are.")
        .places(place::TORCH)
        .without_out()
        .samples(&["T(2,3,7), 3", "T(3,7), [2], [1], 1, 2"]),
    function("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)", |a| max_row(a, "max_pool2d", 2, true))
        .doc("`max_pool2d`, and where the elements are, counted through height and width.")
        .places(place::NN)
        .samples(&["T(2,3,4,6), 2", "T(2,5,40), [3, 2], [2, 1], [1, 0]"]),
    function("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)", |a| max_row(a, "max_pool3d", 3, true))
        .doc("`max_pool3d`, and where the elements are, counted through the three dimensions.")
        .places(place::NN)
        .samples(&["T(1,2,4,4,4), 2"]),
    function("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor", |a| backward_row(a, "max_pool2d_with_indices_backward", 2))
        .doc("The gradient of `max_pool2d`'s input: each gradient added where `indices` says.")
        .places(place::PRIVATE)
        .without_out()
        .samples(&["T(2,3,2,3), T(2,3,4,6), [2], [2], [0], [1], False, I(2,3,2,3; 0..24)"]),
    function("max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor", |a| backward_row(a, "max_pool3d_with_indices_backward", 3))
        .doc("The gradient of `max_pool3d`'s input: each gradient added where `indices` says.")
        .places(place::PRIVATE)
        .without_out()
        .samples(&["T(2,2,2,2), T(2,4,4,4), [2], [2], [0], [1], False, I(2,2,2,2; 0..64)"]),
    function("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", |a| adaptive_row(a, "adaptive_max_pool1d", 1))
        .doc("The largest elements of the parts into which the last dimension is cut, so that there are `output_size` of them, and where they are.")
        .places(place::TORCH)
        .without_out()
        .samples(&["T(2,3,7), 3", "T(2,5), [8]"]),
    function("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", |a| adaptive_row(a, "adaptive_max_pool2d", 2))
        .doc("The largest elements of the parts into which the last two dimensions are cut, so that there are `output_size` of them, and where they are.")
        .places(place::NN)
        .samples(&["T(2,3,5,7), [2, 3]", "T(2,4,4), 1"]),
    function("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", |a| adaptive_row(a, "adaptive_max_pool3d", 3))
        .doc("The largest elements of the parts into which the last three dimensions are cut, so that there are `output_size` of them, and where they are.")
        .places(place::NN)
        .samples(&["T(1,2,3,4,5), [2, 3, 2]"]),
    function("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", |a| unpool_row(a, "max_unpool2d", 2))
        .doc("Zeros of the last sizes `output_size`, with the elements at `indices`, counted through height and width.")
        .places(place::NN)
        .samples(&["T(2,3,1,1), I(2,3,1,1; 0..24), [4, 6]"]),
    function("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor", |a| unpool_row(a, "max_unpool3d", 3))
        .doc("Zeros of the last sizes `output_size`, with the elements at `indices`, counted through the three dimensions.")
        .places(place::NN)
        .samples(&["T(2,3,1,1,1), I(2,3,1,1,1; 0..24), [2, 3, 4], [2, 2, 2], [0, 0, 0]"]),
    function("fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)", |a| fractional_row(a, "fractional_max_pool2d", 2))
        .doc("The largest elements of windows whose places random numbers (between 0 and 1, for each channel those of width and height) shift, and where they are.")
        .places(place::NN)
        .samples(&["T(2,3,5,7), [2, 2], [2, 3], T(2,3,2; 0..1)", "T(3,5,7), 2, 3, T(1,3,2; 0..1)"]),
    function("fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)", |a| fractional_row(a, "fractional_max_pool3d", 3))
        .doc("The largest elements of windows whose places random numbers (between 0 and 1, three for each channel) shift, and where they are.")
        .places(place::NN)
        .samples(&["T(1,2,4,5,6), 2, 2, T(1,2,3; 0..1)"]),
];
