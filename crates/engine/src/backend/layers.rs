//! Kernels of layers, losses, scans and optimizers: what the engine hands to a backend.
//!
//! Memory is dense and in row-major order unless stated otherwise. Where a dtype is not stated, an operand has the
//! call's dtype; `accumulator` means `DType::accumulator` of it. NOTE [kernel contract] holds for all pointers.

use flambeau_base::DType;

/// Softmax, or its logarithm, along the middle one of three dimensions.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    /// The dtype.
    pub dtype: DType,
    /// Sizes: before, along and behind the dimension.
    pub sizes: [usize; 3],
    /// Whether the logarithm is meant.
    pub log: bool,
    /// The scores.
    pub input: *const u8,
    /// The result.
    pub out: *mut u8,
}

/// The derivative of [`Softmax`].
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxBackward {
    /// The dtype.
    pub dtype: DType,
    /// Sizes: before, along and behind the dimension.
    pub sizes: [usize; 3],
    /// Whether the logarithm was meant.
    pub log: bool,
    /// What the forward pass gave.
    pub output: *const u8,
    /// The gradient of that.
    pub grad: *const u8,
    /// The gradient of the scores.
    pub out: *mut u8,
}

/// Normalisation of rows: `(x - mean) * rstd * weight + bias`, or without the mean.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    /// The dtype.
    pub dtype: DType,
    /// Number of rows and their length.
    pub sizes: [usize; 2],
    /// Whether the mean is subtracted.
    pub centred: bool,
    /// What is added to the variance (or the mean square).
    pub eps: f64,
    /// The rows.
    pub input: *const u8,
    /// A factor for each place of a row, or null.
    pub weight: *const u8,
    /// A term for each place of a row, or null.
    pub bias: *const u8,
    /// The result.
    pub out: *mut u8,
    /// The mean of each row, in the accumulator's dtype; not written where it is not subtracted.
    pub mean: *mut u8,
    /// `1 / sqrt(variance + eps)` of each row, in the accumulator's dtype.
    pub rstd: *mut u8,
}

/// The derivative of [`Norm`].
#[derive(Clone, Copy, Debug)]
pub struct NormBackward {
    /// The dtype.
    pub dtype: DType,
    /// Number of rows and their length.
    pub sizes: [usize; 2],
    /// Whether the mean was subtracted.
    pub centred: bool,
    /// The gradient of the result.
    pub grad: *const u8,
    /// The rows.
    pub input: *const u8,
    /// The factors, or null.
    pub weight: *const u8,
    /// The means, where they were subtracted.
    pub mean: *const u8,
    /// The inverse standard deviations.
    pub rstd: *const u8,
    /// The gradient of the rows, or null.
    pub input_grad: *mut u8,
    /// The gradient of the factors, or null.
    pub weight_grad: *mut u8,
    /// The gradient of the terms, or null.
    pub bias_grad: *mut u8,
}

/// Which tensor of a convolution `y = x * w` is computed from the other two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConvKind {
    /// `y`.
    Output,
    /// The gradient of `x`, given that of `y`: the transposed convolution.
    Input,
    /// The gradient of `w`, given that of `y`.
    Weight,
}

/// An operand of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct ConvOperand {
    /// The first element.
    pub ptr: *mut u8,
    /// Steps of batch (for the weight: output channel), channel and three dimensions, in elements.
    pub strides: [isize; 5],
}

/// A convolution over three dimensions, of which some may have size 1:
/// `y[n, o, q] = sum over i, k of x[n, i, q * stride - padding + k * dilation] * w[o, i, k]`, for each group by itself.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    /// What is computed.
    pub kind: ConvKind,
    /// The dtype of all operands.
    pub dtype: DType,
    /// Number of inputs.
    pub batch: usize,
    /// Number of groups.
    pub groups: usize,
    /// Channels of a group: of the input, of the output.
    pub channels: [usize; 2],
    /// Sizes of the input.
    pub input: [usize; 3],
    /// Sizes of the weight.
    pub kernel: [usize; 3],
    /// Sizes of the output.
    pub output: [usize; 3],
    /// Steps from window to window.
    pub stride: [usize; 3],
    /// How far the first window begins before the input.
    pub padding: [usize; 3],
    /// Steps from element to element of a window.
    pub dilation: [usize; 3],
    /// The input, or where its gradient goes.
    pub x: ConvOperand,
    /// The weight, or where its gradient goes.
    pub w: ConvOperand,
    /// Where the output goes, or its gradient.
    pub y: ConvOperand,
    /// A number for each channel that is added to the output or to the gradient of the input; may be null.
    pub bias: *const u8,
}

/// Normalisation of `[batch, channels, behind]`: `(x - mean) * rstd * weight + bias`, weight and bias one for each channel.
///
/// Statistics are those of a channel over the batch, or of a group of channels in one member of the batch. They, weight
/// and bias are in the accumulator's dtype.
#[derive(Clone, Copy, Debug)]
pub struct ChannelNorm {
    /// The dtype.
    pub dtype: DType,
    /// Sizes of batch, channels and what is behind them.
    pub sizes: [usize; 3],
    /// Whether channels lie innermost in memory, as `[batch, behind, channels]`; with statistics over the batch only.
    pub last: bool,
    /// The number of groups of channels; 0 for statistics over the batch.
    pub groups: usize,
    /// What is added to the variance.
    pub eps: f64,
    /// Whether `mean` and `rstd` are read instead of written.
    pub given: bool,
    /// What is normalised.
    pub input: *const u8,
    /// A factor for each channel, or null.
    pub weight: *const u8,
    /// A term for each channel, or null.
    pub bias: *const u8,
    /// The result.
    pub out: *mut u8,
    /// The means.
    pub mean: *mut u8,
    /// `1 / sqrt(variance + eps)`.
    pub rstd: *mut u8,
    /// The variances, divided by the number of elements, or null; not written where statistics are given.
    pub variance: *mut u8,
}

/// The derivative of [`ChannelNorm`].
#[derive(Clone, Copy, Debug)]
pub struct ChannelNormBackward {
    /// The dtype.
    pub dtype: DType,
    /// As in [`ChannelNorm`].
    pub sizes: [usize; 3],
    /// As in [`ChannelNorm`].
    pub last: bool,
    /// As in [`ChannelNorm`].
    pub groups: usize,
    /// Whether the statistics did not depend on the input.
    pub given: bool,
    /// The gradient of the result.
    pub grad: *const u8,
    /// What was normalised.
    pub input: *const u8,
    /// The factors, or null.
    pub weight: *const u8,
    /// The means.
    pub mean: *const u8,
    /// The inverse standard deviations.
    pub rstd: *const u8,
    /// The gradient of the input, or null.
    pub input_grad: *mut u8,
    /// The gradient of the factors, in the accumulator's dtype, or null.
    pub weight_grad: *mut u8,
    /// The gradient of the terms, in the accumulator's dtype, or null.
    pub bias_grad: *mut u8,
}

/// Windows of images as columns, or columns added up to images.
///
/// Columns are `[planes, kernel, count]`, images `[planes, image]`; elements of windows outside of the image are zeros.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Whether columns are added up, instead of made.
    pub back: bool,
    /// The dtype.
    pub dtype: DType,
    /// Number of images and channels.
    pub planes: usize,
    /// Height and width.
    pub image: [usize; 2],
    /// Windows down and across.
    pub count: [usize; 2],
    /// Size of a window.
    pub kernel: [usize; 2],
    /// Steps from element to element of a window.
    pub dilation: [usize; 2],
    /// Zeros around the image.
    pub padding: [usize; 2],
    /// Steps from window to window.
    pub stride: [usize; 2],
    /// The images.
    pub pixels: *mut u8,
    /// The columns.
    pub columns: *mut u8,
}

/// Cross entropy between rows of scores and the number of a class for each.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy {
    /// The dtype.
    pub dtype: DType,
    /// Number of rows and of classes.
    pub sizes: [usize; 2],
    /// The scores.
    pub input: *const u8,
    /// The classes, `int64`.
    pub target: *const i64,
    /// A factor for each class, or null.
    pub weight: *const u8,
    /// A class that counts for nothing.
    pub ignore_index: i64,
    /// How much of the target is spread over all classes.
    pub smoothing: f64,
}

/// What [`CrossEntropy`] writes in the forward pass.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyOut {
    /// 0: a loss for each row; 1: their weighted mean; 2: their sum.
    pub reduction: i64,
    /// The loss.
    pub loss: *mut u8,
    /// `log(sum(exp(scores)))` of each row, in the accumulator's dtype.
    pub lse: *mut u8,
    /// By what a mean was divided, in the accumulator's dtype, a single number.
    pub total: *mut u8,
}

/// What the derivative of [`CrossEntropy`] reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyGrad {
    /// As in [`CrossEntropyOut`].
    pub reduction: i64,
    /// The gradient of the loss.
    pub grad: *const u8,
    /// From the forward pass.
    pub lse: *const u8,
    /// From the forward pass.
    pub total: *const u8,
    /// The gradient of the scores.
    pub out: *mut u8,
}

/// Connectionist temporal classification; the labels and lengths are in range.
#[derive(Clone, Copy, Debug)]
pub struct Ctc {
    /// The dtype.
    pub dtype: DType,
    /// Sizes: time, batch and classes.
    pub sizes: [usize; 3],
    /// How many labels a row of them has room for.
    pub longest: usize,
    /// The class that stands between labels.
    pub blank: i64,
    /// Whether infinite losses have no gradient.
    pub zero_infinity: bool,
    /// Log-probabilities.
    pub input: *const u8,
    /// Labels, `[batch, longest]`.
    pub labels: *const i64,
    /// Lengths of inputs, then of labels: `[2, batch]`.
    pub lengths: *const i64,
    /// The loss of each member of the batch.
    pub loss: *mut u8,
    /// Logarithms of forward probabilities, `[batch, time, 2 longest + 1]`.
    pub alpha: *mut u8,
}

/// A step of a recurrent cell, LSTM or GRU, from its sums.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    /// The dtype.
    pub dtype: DType,
    /// Whether it is LSTM.
    pub lstm: bool,
    /// Size of the batch.
    pub rows: usize,
    /// Width of the state.
    pub width: usize,
    /// Products of the input: 4 gates to a row for LSTM, 3 for GRU.
    pub input: *const u8,
    /// Products of the hidden state.
    pub own: *const u8,
    /// The memory before; for GRU the hidden state.
    pub state: *const u8,
    /// The hidden state after.
    pub hidden: *mut u8,
    /// The memory after, or null.
    pub memory: *mut u8,
    /// For LSTM the gates after their functions; for GRU the three gates and the hidden state's part of the third.
    pub active: *mut u8,
}

/// The derivative of [`Gates`].
#[derive(Clone, Copy, Debug)]
pub struct GatesBackward {
    /// The dtype.
    pub dtype: DType,
    /// Whether it is LSTM.
    pub lstm: bool,
    /// Size of the batch.
    pub rows: usize,
    /// Width of the state.
    pub width: usize,
    /// The gradient of the hidden state.
    pub grad: *const u8,
    /// The gradient of the memory, or null.
    pub grad_memory: *const u8,
    /// From the forward pass.
    pub active: *const u8,
    /// As in [`Gates`].
    pub state: *const u8,
    /// The memory after, or null.
    pub memory: *const u8,
    /// The gradient of the products of the input; for LSTM also that of the hidden state's.
    pub input: *mut u8,
    /// The gradient of the products of the hidden state, for GRU.
    pub own: *mut u8,
    /// The gradient of the state before.
    pub state_grad: *mut u8,
}

/// A stack of matrices with strides of batch, head, row and column, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// The first element.
    pub ptr: *mut u8,
    /// The strides.
    pub strides: [isize; 4],
}

/// Attention: `softmax(scale * q @ k.T + mask) @ v` for each batch and head, never holding all scores.
///
/// Rows that are masked wholly give zeros.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// The dtype.
    pub dtype: DType,
    /// Number of batches.
    pub batch: usize,
    /// Number of heads of the queries.
    pub heads: usize,
    /// So many heads of the queries share one of the keys.
    pub group: usize,
    /// Number of queries.
    pub queries: usize,
    /// Number of keys.
    pub keys: usize,
    /// Length of queries and keys.
    pub width: usize,
    /// Length of values.
    pub value_width: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Query `i` sees keys up to `i` only.
    pub causal: bool,
    /// Queries.
    pub q: Heads,
    /// Keys.
    pub k: Heads,
    /// Values.
    pub v: Heads,
    /// Added to the scores, in the call's dtype; or, where `mask_is_bool`, whether a key is seen. Strides may be 0.
    pub mask: Option<Heads>,
    /// Whether the mask is of bool.
    pub mask_is_bool: bool,
    /// The result.
    pub out: Heads,
    /// `log(sum(exp(scores)))` of each row, dense, in the accumulator's dtype; infinite where all is masked.
    pub lse: *mut u8,
}

/// The derivative of [`Attention`]; `forward.out` and `forward.lse` are read.
#[derive(Clone, Copy, Debug)]
pub struct AttentionBackward {
    /// What was computed.
    pub forward: Attention,
    /// The gradient of the result.
    pub grad: Heads,
    /// The gradients of queries, keys and values.
    pub grads: [Heads; 3],
}

/// How a scan puts elements together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanKind {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Largest so far (NaN if there was one) and its last place.
    Max,
    /// Smallest so far and its last place.
    Min,
    /// Logarithm of the sum of exponentials.
    LogSumExp,
}

/// A scan along the middle one of three dimensions.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    /// How elements are put together.
    pub kind: ScanKind,
    /// The dtype.
    pub dtype: DType,
    /// Sizes: before, along and behind the dimension.
    pub sizes: [usize; 3],
    /// The elements.
    pub input: *const u8,
    /// The result.
    pub out: *mut u8,
    /// Places, `int64`, for those that have some; else null.
    pub indices: *mut i64,
}

/// The lower median of each row and where it is: the element of rank `(n - 1) / 2`, or the first NaN.
#[derive(Clone, Copy, Debug)]
pub struct Kth {
    /// The dtype.
    pub dtype: DType,
    /// Number of rows and their length, which is not 0.
    pub sizes: [usize; 2],
    /// Whether NaN are left out of account, unless there is nothing else.
    pub skip_nan: bool,
    /// The rows.
    pub input: *const u8,
    /// An element for each row.
    pub out: *mut u8,
    /// Its place in the row.
    pub indices: *mut i64,
}

/// `log(sum(exp(x)))` of each row.
#[derive(Clone, Copy, Debug)]
pub struct LogSumExp {
    /// The dtype.
    pub dtype: DType,
    /// Number of rows and their length.
    pub sizes: [usize; 2],
    /// The rows.
    pub input: *const u8,
    /// A number for each row.
    pub out: *mut u8,
}
