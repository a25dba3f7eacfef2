//! The sizes of pools: windows over the last one to three dimensions, and the checks that all pools share.

use super::spatial::{Spatial, sizes_of};
use crate::Tensor;
use crate::ops::table::Args;
use flambeau_base::{Error, Result, show};
use smallvec::SmallVec;

/// Windows of one dimension: their size, how far apart they and their elements are, how far they reach past the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window {
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
    pub dilation: usize,
}

impl Window {
    /// How many windows there are over `n` elements; with `ceil` also one that is not whole.
    fn count(self, n: usize, ceil: bool) -> i64 {
        let (n, stride) = ((n + 2 * self.padding) as i64, self.stride as i64);
        let room = n - (self.dilation * (self.kernel - 1)) as i64 - 1;
        let count = (room + if ceil { stride - 1 } else { 0 }).div_euclid(stride) + 1;
        // The last one begins inside the elements or in front of them.
        if ceil && (count - 1) * stride >= n - self.padding as i64 { count - 1 } else { count }
    }

    /// Where a window begins, counted from the first element.
    pub fn start(self, i: usize) -> i64 {
        (i * self.stride) as i64 - self.padding as i64
    }

    /// The first element of a window that is there, and how many are.
    pub fn inside(self, i: usize, n: usize) -> (usize, usize) {
        let (start, step) = (self.start(i), self.dilation as i64);
        let skipped = if start < 0 { (-start + step - 1) / step } else { 0 };
        let first = start + skipped * step;
        let there = ((n as i64 - first + step - 1) / step).min(self.kernel as i64 - skipped).max(0);
        (first as usize, there as usize)
    }
}

/// A pool's windows over each of its dimensions, and the sizes of its result.
pub(super) struct Shape {
    pub windows: SmallVec<[Window; 3]>,
    pub results: Spatial,
}

/// How a call says its windows.
pub(super) struct Given<'a> {
    pub kernel: &'a [i64],
    pub stride: &'a [i64],
    pub padding: &'a [i64],
    pub dilation: &'a [i64],
    pub ceil: bool,
}

/// A size for each dimension, from one or from as many.
fn spread(op: &str, what: &str, given: &[i64], n: usize) -> Result<SmallVec<[i64; 3]>> {
    match given.len() {
        1 => Ok(SmallVec::from_elem(given[0], n)),
        len if len == n => Ok(given.iter().copied().collect()),
        _ => Err(Error::runtime(format!("{op}: {what} must either be a single int, or a tuple of {n} ints, got {given:?}"))),
    }
}

/// Refuses inputs that are not channels, and perhaps a batch, before `n` dimensions.
pub(super) fn check_input(op: &str, x: &Tensor, n: usize) -> Result<()> {
    let batched = x.ndim() == n + 2;
    let empty = x.shape().iter().enumerate().any(|(d, &size)| size == 0 && !(batched && d == 0));
    if (x.ndim() != n + 1 && !batched) || empty {
        return Err(Error::runtime(format!(
            "{op}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got: {}",
            n + 1,
            n + 2,
            show(x.shape())
        )));
    }
    Ok(())
}

impl Given<'_> {
    /// Checks the windows against the last `n` dimensions of an input.
    pub fn over(&self, op: &str, x: &Tensor, n: usize) -> Result<Shape> {
        let kernel = spread(op, "kernel_size", self.kernel, n)?;
        let stride = if self.stride.is_empty() { kernel.clone() } else { spread(op, "stride", self.stride, n)? };
        let padding = spread(op, "padding", self.padding, n)?;
        let dilation = spread(op, "dilation", self.dilation, n)?;
        let wrong = |what: &str, given: &[i64]| Err(Error::runtime(format!("{op}: {what}, but got {given:?}")));
        if kernel.iter().any(|&k| k <= 0) {
            return wrong("kernel_size should be greater than zero", &kernel);
        }
        if stride.iter().any(|&s| s <= 0) {
            return wrong("stride should be greater than zero", &stride);
        }
        if dilation.iter().any(|&d| d <= 0) {
            return wrong("dilation should be greater than zero", &dilation);
        }
        if padding.iter().any(|&p| p < 0) {
            return wrong("pad must be non-negative", &padding);
        }
        let wide = |i: usize| padding[i] > ((kernel[i] - 1).saturating_mul(dilation[i]).saturating_add(1)) / 2;
        if (0..n).any(wide) {
            return Err(Error::runtime(format!(
                "{op}: pad should be at most half of effective kernel size, but got pad={padding:?}, kernel_size={kernel:?} and dilation={dilation:?}"
            )));
        }
        check_input(op, x, n)?;
        let sizes = &x.shape()[x.ndim() - n..];
        let (mut windows, mut results) = (SmallVec::new(), Spatial::new());
        for i in 0..n {
            let [kernel, stride, padding, dilation] = [kernel[i], stride[i], padding[i], dilation[i]].map(|v| v as usize);
            let window = Window { kernel, stride, padding, dilation };
            let count = if dilation.checked_mul(kernel).is_some_and(|e| e < 1 << 40) { window.count(sizes[i], self.ceil) } else { 0 };
            if count < 1 {
                return Err(Error::runtime(format!(
                    "{op}: Given input of shape {}, the calculated output size is {count} in dimension {}. Output size is too small: a window of {kernel} elements does not fit",
                    show(x.shape()),
                    x.ndim() - n + i
                )));
            }
            windows.push(window);
            results.push(count as usize);
        }
        Ok(Shape { windows, results })
    }
}

/// The sizes of an adaptive pool's result: one for all dimensions, or one each.
pub(super) fn adaptive_sizes(a: &Args, x: &Tensor, n: usize) -> Result<Spatial> {
    let given = a.ints(1)?;
    if given.len() != n && given.len() != 1 {
        return Err(Error::runtime(format!("{}: output_size must be one int or {n} of them, got {given:?}", a.name)));
    }
    check_input(a.name, x, n)?;
    let given = sizes_of(a, 1, n, "output_size")?.unwrap_or_default();
    given
        .iter()
        .map(|&size| {
            usize::try_from(size).map_err(|_| {
                Error::runtime(format!("{}: elements of output_size must be greater than or equal to 0 but received {given:?}", a.name))
            })
        })
        .collect()
}

/// The elements that result `i` of `results` takes of `n` elements: first and number.
pub(super) fn adaptive_range(i: usize, n: usize, results: usize) -> (usize, usize) {
    let start = i * n / results;
    (start, ((i + 1) * n).div_ceil(results) - start)
}
