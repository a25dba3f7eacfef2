//! Kernels over one to three spatial dimensions: largest elements of windows, weighted sums of taps.
//!
//! Memory is dense: `outer`, the spatial dimensions (those that are not there have size 1 and come first), `inner`.
//! With channels last the channels are the inner dimension; else they belong to the outer one, and `inner` is 1.

use flambeau_base::DType;

/// Which elements of an input make those of a result along one dimension: result `i` is the sum of
/// `weight[t] * input[index[t]]` over the taps `starts[i]..starts[i + 1]`, divided by `divisor[i]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taps {
    /// How many elements the input has.
    pub input: usize,
    /// Where the taps of each element of the result begin; one more at the end.
    pub starts: Vec<u32>,
    /// Elements of the input.
    pub index: Vec<i32>,
    /// Their weights; all are 1 where there are none.
    pub weight: Vec<f64>,
    /// By what elements are divided at the end; by nothing where there are none.
    pub divisor: Vec<f64>,
}

impl Taps {
    /// How many elements the result has.
    pub fn output(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The taps of a result.
    pub fn of(&self, i: usize) -> std::ops::Range<usize> {
        self.starts[i] as usize..self.starts[i + 1] as usize
    }

    /// Every element is itself.
    pub fn identity(n: usize) -> Taps {
        Taps { input: n, starts: (0..=n as u32).collect(), index: (0..n as i32).collect(), weight: Vec::new(), divisor: Vec::new() }
    }

    /// The transposed sums, from gradients of results to gradients of the input.
    pub fn transposed(&self) -> Taps {
        let (n, taps) = (self.output(), self.index.len());
        let mut starts = vec![0u32; self.input + 1];
        for &i in &self.index {
            starts[i as usize + 1] += 1;
        }
        for i in 0..self.input {
            starts[i + 1] += starts[i];
        }
        let plain = self.weight.is_empty() && self.divisor.is_empty();
        let mut out = Taps { input: n, index: vec![0; taps], weight: vec![1.0; if plain { 0 } else { taps }], ..Taps::default() };
        let mut next = starts.clone();
        for i in 0..n {
            let divisor = self.divisor.get(i).copied().unwrap_or(1.0);
            for t in self.of(i) {
                let place = &mut next[self.index[t] as usize];
                out.index[*place as usize] = i as i32;
                if !plain {
                    out.weight[*place as usize] = self.weight.get(t).copied().unwrap_or(1.0) / divisor;
                }
                *place += 1;
            }
        }
        out.starts = starts;
        out
    }
}

/// Sums of taps along each spatial dimension.
#[derive(Clone, Copy, Debug)]
pub struct Resample<'a> {
    /// The operation, for messages.
    pub op: &'static str,
    /// The dtype.
    pub dtype: DType,
    /// Elements before the spatial dimensions.
    pub outer: usize,
    /// Elements behind them.
    pub inner: usize,
    /// The taps of each dimension.
    pub axes: [&'a Taps; 3],
    /// The input.
    pub input: *const u8,
    /// The result.
    pub out: *mut u8,
}

/// The window of each element of a result along one dimension: where it begins and how many elements it has.
pub type Windows<'a> = &'a [(u32, u32)];

/// The largest elements of windows; NaN where there is one, the last of several. Places count through the spatial dimensions of the input.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool<'a> {
    /// The dtype: a floating point one, or `int64`.
    pub dtype: DType,
    /// Elements before the spatial dimensions.
    pub outer: usize,
    /// Elements behind them.
    pub inner: usize,
    /// The input's spatial sizes.
    pub sizes: [usize; 3],
    /// The result's spatial sizes.
    pub results: [usize; 3],
    /// The windows of each dimension, for all of the outer one or for each element of it in turn.
    pub windows: [Windows<'a>; 3],
    /// Whether each element of the outer dimension has windows of its own.
    pub apart: bool,
    /// How far apart the elements of a window are.
    pub dilation: [usize; 3],
    /// In the last dimension: the result from which on, and up to which, windows are whole, and how far apart these are.
    pub whole: (usize, usize, usize),
    /// The input.
    pub input: *const u8,
    /// The result.
    pub out: *mut u8,
    /// The place of each, or null.
    pub places: *mut i64,
}

/// Gradients of results added to the elements that they came from.
#[derive(Clone, Copy, Debug)]
pub struct MaxPoolBackward {
    /// The dtype.
    pub dtype: DType,
    /// Elements before the spatial dimensions.
    pub outer: usize,
    /// Elements behind them.
    pub inner: usize,
    /// How many elements the input's spatial dimensions have together.
    pub input: usize,
    /// How many the result's have.
    pub results: usize,
    /// The gradients of the results.
    pub grad: *const u8,
    /// The place of each.
    pub places: *const i64,
    /// The gradients of the input.
    pub out: *mut u8,
}
