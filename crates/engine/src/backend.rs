//! What the engine asks of a device.
//!
//! A backend sees memory (pointers, sizes, strides) and knows nothing of autograd, Python or views.
//! Backends register themselves with `inventory::submit!`; a program that links one has it.
//!
//! NOTE [kernel contract]: every pointer that the engine hands to a kernel is valid for all the
//! elements that sizes and strides reach, of the dtype stated; outputs do not overlap themselves, and
//! overlap an input only where both have the very same pointer and strides. Sizes may hold zeros and
//! inputs may have strides of 0. All operands of one call have as many strides as there are sizes.

use flambeau_base::{DType, Device, DeviceKind, Error, Result, Scalar};
use flambeau_ir::Program;
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

pub mod layers;
pub mod spatial;
pub mod transforms;

use layers::*;
use spatial::{MaxPool, MaxPoolBackward, Resample};
use transforms::*;

/// One operand of a kernel: where its first element is and how far apart the others are, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The first element.
    pub ptr: *mut u8,
    /// Its dtype.
    pub dtype: DType,
    /// Steps of the call's dimensions, in elements.
    pub strides: &'a [isize],
}

/// A program over dense tensors of `n` elements each: one of a list that is run at once.
#[derive(Clone, Debug)]
pub struct Foreach {
    /// The program.
    pub program: Arc<Program>,
    /// Its numbers.
    pub numbers: SmallVec<[Scalar; 12]>,
    /// How many elements.
    pub n: usize,
    /// The first elements of its outputs.
    pub outputs: SmallVec<[*mut u8; 4]>,
    /// The first elements of its inputs.
    pub inputs: SmallVec<[*const u8; 6]>,
}

/// How the elements of a reduction are put together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// Sum, pairwise over blocks of fixed size.
    Sum,
    /// Product.
    Prod,
    /// Largest; NaN if there is one.
    Max,
    /// Smallest; NaN if there is one.
    Min,
    /// Whether one is not zero; gives bool.
    Any,
    /// Whether none is zero; gives bool.
    All,
    /// Largest and the (first) place of it, counted over the reduced dimensions in row-major order: two accumulators, the second `int64`.
    ArgMax,
    /// Smallest and the (first) place of it.
    ArgMin,
    /// Mean and sum of squared deviations from it: two accumulators.
    Moments,
}

/// A reduction: `finish(combine over the reduced dimensions(program(inputs)))`.
///
/// Accumulation is in the accumulator dtype of the program's output (see `DType::accumulator`).
/// The order of a sum depends on sizes, reduced dimensions and input strides alone.
#[derive(Clone, Copy, Debug)]
pub struct Reduce<'a> {
    /// How elements are put together.
    pub combine: Combine,
    /// Sizes of all dimensions, reduced ones included.
    pub sizes: &'a [usize],
    /// Which dimensions are reduced.
    pub reduced: &'a [bool],
    /// What each element goes through first; one output.
    pub program: &'a Program,
    /// Numbers for the program.
    pub params: &'a [Scalar],
    /// The program's inputs.
    pub inputs: &'a [Operand<'a>],
    /// What the accumulators go through at the end, in the accumulator's dtype up to the outputs' dtypes.
    pub finish: &'a Program,
    /// Numbers for `finish`.
    pub finish_params: &'a [Scalar],
    /// Where results go; strides of reduced dimensions are 0.
    pub outputs: &'a [Operand<'a>],
}

/// A product of two stacks of matrices: `out[b] = a[b] @ b[b] (+ bias)`.
#[derive(Clone, Copy, Debug)]
pub struct Matmul<'a> {
    /// Number of products.
    pub batch: usize,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
    /// Left operand; strides of batch, row, column.
    pub a: Operand<'a>,
    /// Right operand; strides of batch, row, column.
    pub b: Operand<'a>,
    /// Result, of the same dtype; strides of batch, row, column.
    pub out: Operand<'a>,
    /// Added to each row: strides of batch, row, column, like the result's.
    pub bias: Option<Operand<'a>>,
    /// Whether the product is added to what is in `out`.
    pub accumulate: bool,
}

/// What happens between a value and the element that its indices name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IndexMode {
    /// The element is read into the value.
    Get,
    /// The value replaces the element; where several values meet, the last in row-major order stays.
    Put,
    /// The value is added to the element, in row-major order of the values.
    Add,
    /// The element is multiplied by the value, in that order.
    Mul,
    /// The larger stays; NaN if one is.
    Max,
    /// The smaller stays; NaN if one is.
    Min,
}

/// An index tensor of an [`Indexing`].
#[derive(Clone, Copy, Debug)]
pub struct IndexOperand<'a> {
    /// The indices, `int64`.
    pub memory: Operand<'a>,
    /// Which dimension of the tensor they name, for messages.
    pub dim: usize,
    /// How large it is.
    pub size: usize,
    /// The tensor's step along it, in elements.
    pub step: isize,
}

/// Elements of a tensor named by index tensors: value `p` meets the element at
/// `sum of tensor.strides * p + sum over index tensors of index[p] * step`.
///
/// In the modes that write, elements of the tensor do not overlap, and nothing is written where an
/// index is out of range, which is an `IndexError`.
#[derive(Clone, Copy, Debug)]
pub struct Indexing<'a> {
    /// The operation, for messages.
    pub op: &'static str,
    /// What happens.
    pub mode: IndexMode,
    /// Whether negative indices count from the end; else they are out of range.
    pub wraps: bool,
    /// Sizes of the values.
    pub sizes: &'a [usize],
    /// The tensor, with the steps that do not come from indices.
    pub tensor: Operand<'a>,
    /// The values, of the same dtype.
    pub values: Operand<'a>,
    /// The index tensors.
    pub indices: &'a [IndexOperand<'a>],
}

/// Values looked up in sorted rows. All operands are contiguous; strides are not looked at.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The sorted rows.
    pub rows: Operand<'a>,
    /// Length of a row.
    pub length: usize,
    /// Whether there is but one row, for all values.
    pub shared: bool,
    /// The values, of the same dtype.
    pub values: Operand<'a>,
    /// How many.
    pub count: usize,
    /// How many belong to a row.
    pub per_row: usize,
    /// For each row the places of its elements in ascending order (`int64`), where it is not sorted.
    pub order: Option<Operand<'a>>,
    /// Behind equal elements instead of before them.
    pub right: bool,
    /// The places, `int32` or `int64`.
    pub out: Operand<'a>,
}

/// A sort of rows: stable, NaN the largest.
#[derive(Clone, Copy, Debug)]
pub struct Sort<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Length of a row.
    pub length: usize,
    /// From the largest on.
    pub descending: bool,
    /// The elements; strides of row, element.
    pub input: Operand<'a>,
    /// Where the sorted elements go; strides of row, element.
    pub values: Operand<'a>,
    /// Where their places in the row go, `int64`; strides of row, element.
    pub places: Operand<'a>,
    /// How many of each row are asked for, the first ones.
    pub count: usize,
}

/// A device: memory and kernels.
///
/// Kernels that a device lacks answer with `NotImplementedError`, by operation and device.
pub trait Backend: Send + Sync + 'static {
    /// Which kind of device it is.
    fn kind(&self) -> DeviceKind;

    /// Memory for so many bytes, aligned for any dtype (64 bytes); zeroed if asked for. Never null, also for 0 bytes.
    fn allocate(&self, nbytes: usize, zeroed: bool) -> Result<NonNull<u8>>;

    /// Gives memory back.
    ///
    /// # Safety
    /// `ptr` came from [`Backend::allocate`] with `nbytes`, and is not used any more.
    unsafe fn deallocate(&self, ptr: NonNull<u8>, nbytes: usize);

    /// Runs a program element by element: `outputs[i] = program(inputs)[i]`.
    ///
    /// # Safety
    /// See NOTE [kernel contract]. Dtypes of operands are those of the program.
    unsafe fn pointwise(
        &self,
        program: &Program,
        params: &[Scalar],
        sizes: &[usize],
        outputs: &[Operand],
        inputs: &[Operand],
    ) -> Result<()>;

    /// Runs programs over lists of dense tensors, all at once: each as [`Backend::pointwise`] does.
    ///
    /// # Safety
    /// See NOTE [kernel contract]. An output lies where an input of the same call lies, or apart from all.
    unsafe fn foreach(&self, calls: &[Foreach]) -> Result<()> {
        let dtype = calls.first().and_then(|call| call.program.inputs.first().copied()).unwrap_or(DType::F32);
        Err(lacking("foreach", dtype, self.kind()))
    }

    /// Runs a reduction.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn reduce(&self, reduce: &Reduce) -> Result<()>;

    /// Multiplies matrices.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn matmul(&self, call: &Matmul) -> Result<()>;

    /// Softmax along a dimension.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn softmax(&self, call: &Softmax) -> Result<()> {
        Err(lacking("softmax", call.dtype, self.kind()))
    }

    /// The derivative of softmax.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn softmax_backward(&self, call: &SoftmaxBackward) -> Result<()> {
        Err(lacking("softmax_backward", call.dtype, self.kind()))
    }

    /// Normalises rows.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn norm(&self, call: &Norm) -> Result<()> {
        Err(lacking("layer_norm", call.dtype, self.kind()))
    }

    /// The derivative of the normalisation.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn norm_backward(&self, call: &NormBackward) -> Result<()> {
        Err(lacking("layer_norm_backward", call.dtype, self.kind()))
    }

    /// Normalises by channels.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn channel_norm(&self, call: &ChannelNorm) -> Result<()> {
        Err(lacking("batch_norm", call.dtype, self.kind()))
    }

    /// The derivative of the normalisation by channels.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn channel_norm_backward(&self, call: &ChannelNormBackward) -> Result<()> {
        Err(lacking("batch_norm_backward", call.dtype, self.kind()))
    }

    /// Cross entropy. `IndexError` for a class that is not there.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn cross_entropy(&self, call: &CrossEntropy, out: &CrossEntropyOut) -> Result<()> {
        let _ = out;
        Err(lacking("cross_entropy", call.dtype, self.kind()))
    }

    /// The derivative of cross entropy; the classes were checked.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn cross_entropy_backward(&self, call: &CrossEntropy, grad: &CrossEntropyGrad) -> Result<()> {
        let _ = grad;
        Err(lacking("cross_entropy_backward", call.dtype, self.kind()))
    }

    /// Connectionist temporal classification.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn ctc(&self, call: &Ctc) -> Result<()> {
        Err(lacking("ctc_loss", call.dtype, self.kind()))
    }

    /// Its derivative: from the gradient of the losses to that of the log-probabilities.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn ctc_backward(&self, call: &Ctc, grad: *const u8, out: *mut u8) -> Result<()> {
        let _ = (grad, out);
        Err(lacking("ctc_loss_backward", call.dtype, self.kind()))
    }

    /// A step of a recurrent cell.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn gates(&self, call: &Gates) -> Result<()> {
        Err(lacking("recurrent cells", call.dtype, self.kind()))
    }

    /// The derivative of a step of a recurrent cell.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn gates_backward(&self, call: &GatesBackward) -> Result<()> {
        Err(lacking("recurrent cells", call.dtype, self.kind()))
    }

    /// Attention.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn attention(&self, call: &Attention) -> Result<()> {
        Err(lacking("scaled_dot_product_attention", call.dtype, self.kind()))
    }

    /// The derivative of attention.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn attention_backward(&self, call: &AttentionBackward) -> Result<()> {
        Err(lacking("scaled_dot_product_attention_backward", call.forward.dtype, self.kind()))
    }

    /// Sums of taps along spatial dimensions.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn resample(&self, call: &Resample) -> Result<()> {
        Err(lacking(call.op, call.dtype, self.kind()))
    }

    /// The largest elements of windows.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn max_pool(&self, call: &MaxPool) -> Result<()> {
        Err(lacking("max_pool", call.dtype, self.kind()))
    }

    /// The derivative of that. `RuntimeError` for a place that is not there.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn max_pool_backward(&self, call: &MaxPoolBackward) -> Result<()> {
        Err(lacking("max_pool_backward", call.dtype, self.kind()))
    }

    /// A convolution, or the gradient of its input or its weight.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn conv(&self, call: &Conv) -> Result<()> {
        Err(lacking("convolution", call.dtype, self.kind()))
    }

    /// Windows of images as columns, or columns added up to images.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn columns(&self, call: &Columns) -> Result<()> {
        Err(lacking(if call.back { "col2im" } else { "im2col" }, call.dtype, self.kind()))
    }

    /// A scan along a dimension.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn scan(&self, call: &Scan) -> Result<()> {
        Err(lacking("scan", call.dtype, self.kind()))
    }

    /// Medians of rows.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn kth(&self, call: &Kth) -> Result<()> {
        Err(lacking("median", call.dtype, self.kind()))
    }

    /// Logarithms of sums of exponentials of rows.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn logsumexp(&self, call: &LogSumExp) -> Result<()> {
        Err(lacking("logsumexp", call.dtype, self.kind()))
    }

    /// Moves values between a tensor and the places that indices name.
    ///
    /// # Safety
    /// See NOTE [kernel contract]: every place that indices in range name lies in the tensor.
    unsafe fn index(&self, call: &Indexing) -> Result<()> {
        Err(lacking(call.op, call.tensor.dtype, self.kind()))
    }

    /// Fourier transforms.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn fft(&self, call: &Fft) -> Result<()> {
        Err(lacking("fft", call.dtype, self.kind()))
    }

    /// Factorises matrices.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn factorize(&self, call: &Factorize) -> Result<()> {
        Err(lacking("linalg", call.dtype, self.kind()))
    }

    /// Solves triangular systems.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn solve_triangular(&self, call: &TriangularSolve) -> Result<()> {
        Err(lacking("solve_triangular", call.dtype, self.kind()))
    }

    /// Finds the places of values in sorted rows.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn search(&self, call: &Search) -> Result<()> {
        Err(lacking("searchsorted", call.values.dtype, self.kind()))
    }

    /// Sorts rows.
    ///
    /// # Safety
    /// See NOTE [kernel contract].
    unsafe fn sort(&self, call: &Sort) -> Result<()> {
        Err(lacking("sort", call.input.dtype, self.kind()))
    }

    /// Finds the elements that are not zero, in row-major order: calls `make` with their number for memory, and writes
    /// there, as `int64`, their numbers in row-major order where `linear`, else their places in the first dimension, then
    /// those in the second, and so on.
    ///
    /// # Safety
    /// See NOTE [kernel contract]; `make` gives memory for so many indices.
    unsafe fn nonzero(
        &self,
        sizes: &[usize],
        tensor: Operand,
        linear: bool,
        make: &mut dyn FnMut(usize) -> Result<*mut i64>,
    ) -> Result<()> {
        let _ = (sizes, linear, make);
        Err(lacking("nonzero", tensor.dtype, self.kind()))
    }
}

/// How a backend makes itself known: `inventory::submit! { Registered(&MyBackend) }`.
pub struct Registered(
    /// The backend.
    pub &'static dyn Backend,
);

inventory::collect!(Registered);

/// The backend of a device. `RuntimeError` where this build or machine has none.
pub fn backend(device: Device) -> Result<&'static dyn Backend> {
    static CPU: OnceLock<Option<&'static dyn Backend>> = OnceLock::new();
    let find = |kind: DeviceKind| inventory::iter::<Registered>().find(|r| r.0.kind() == kind).map(|r| r.0);
    let found = match device.kind {
        DeviceKind::Cpu => *CPU.get_or_init(|| find(DeviceKind::Cpu)),
        kind => find(kind),
    };
    found.ok_or_else(|| unavailable(device))
}

#[cold]
fn unavailable(device: Device) -> Error {
    match device.kind {
        DeviceKind::Meta => Error::not_implemented("tensors on the meta device have no values: create them on 'cpu' to compute with them"),
        _ => Error::runtime(format!("device '{device}' is not available: flambeau finds no such device on this machine; use device='cpu'")),
    }
}

/// An operation that a backend does not have.
#[cold]
pub fn lacking(op: &str, dtype: DType, device: DeviceKind) -> Error {
    Error::not_implemented(format!("{op}: not implemented for {dtype} on {}", device.name()))
}
