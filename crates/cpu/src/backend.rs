//! The CPU as a backend of the engine.

use crate::gemm::{BatchAxis, Bias, Gemm, GemmElement, Matrix, MatrixMut, gemm_batched};
use crate::{alloc, exec, fft, index, linalg, nn, reduce, scan, sort};
use flambeau_base::{DType, DeviceKind, Error, Result, Scalar, bf16, f16};
use flambeau_engine::backend::layers::*;
use flambeau_engine::backend::spatial::{MaxPool, MaxPoolBackward, Resample};
use flambeau_engine::backend::transforms::{Factorize, Fft, TriangularSolve};
use flambeau_engine::backend::{Backend, Foreach, Indexing, Matmul, Operand, Reduce, Registered, Search, Sort, lacking};
use flambeau_ir::{Body, Program};
use std::ptr::NonNull;

/// The CPU.
pub struct Cpu;

static CPU: Cpu = Cpu;

inventory::submit! { Registered(&CPU) }

impl Backend for Cpu {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn allocate(&self, nbytes: usize, zeroed: bool) -> Result<NonNull<u8>> {
        let memory = if zeroed { alloc::allocate_zeroed(nbytes) } else { alloc::allocate(nbytes) };
        memory.map_err(|e| Error::runtime(e.to_string()))
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, nbytes: usize) {
        // SAFETY: the caller's.
        unsafe { alloc::deallocate(ptr, nbytes) }
    }

    unsafe fn pointwise(
        &self,
        program: &Program,
        params: &[Scalar],
        sizes: &[usize],
        outputs: &[Operand],
        inputs: &[Operand],
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { exec::pointwise(program, params, sizes, outputs, inputs) }
    }

    unsafe fn reduce(&self, reduce: &Reduce) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { reduce::reduce(reduce) }
    }

    unsafe fn search(&self, call: &Search) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { sort::search(call) }
    }

    unsafe fn sort(&self, call: &Sort) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { sort::sort(call) }
    }

    unsafe fn index(&self, call: &Indexing) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { index::index(call) }
    }

    unsafe fn nonzero(
        &self,
        sizes: &[usize],
        tensor: Operand,
        linear: bool,
        make: &mut dyn FnMut(usize) -> Result<*mut i64>,
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { index::nonzero(sizes, tensor, linear, make) }
    }

    unsafe fn matmul(&self, call: &Matmul) -> Result<()> {
        // SAFETY: the caller's.
        unsafe {
            match call.out.dtype {
                DType::F32 => product::<f32>(call),
                DType::F64 => product::<f64>(call),
                DType::F16 => product::<f16>(call),
                DType::BF16 => product::<bf16>(call),
                DType::U8 => product::<u8>(call),
                DType::I8 => product::<i8>(call),
                DType::I16 => product::<i16>(call),
                DType::I32 => product::<i32>(call),
                DType::I64 => product::<i64>(call),
                DType::C64 => complex_product::<num_complex::Complex32>(call),
                DType::C128 => complex_product::<num_complex::Complex64>(call),
                other => Err(lacking("matmul", other, DeviceKind::Cpu)),
            }
        }
    }

    unsafe fn softmax(&self, call: &Softmax) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::softmax::forward(call) }
    }

    unsafe fn softmax_backward(&self, call: &SoftmaxBackward) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::softmax::backward(call) }
    }

    unsafe fn norm(&self, call: &Norm) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::norm::forward(call) }
    }

    unsafe fn norm_backward(&self, call: &NormBackward) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::norm::backward(call) }
    }

    unsafe fn channel_norm(&self, call: &ChannelNorm) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::norm_channels::forward(call) }
    }

    unsafe fn channel_norm_backward(&self, call: &ChannelNormBackward) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::norm_channels::backward(call) }
    }

    unsafe fn cross_entropy(&self, call: &CrossEntropy, out: &CrossEntropyOut) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::loss::forward(call, out) }
    }

    unsafe fn cross_entropy_backward(&self, call: &CrossEntropy, grad: &CrossEntropyGrad) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::loss::backward(call, grad) }
    }

    unsafe fn ctc(&self, call: &Ctc) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::ctc::forward(call) }
    }

    unsafe fn ctc_backward(&self, call: &Ctc, grad: *const u8, out: *mut u8) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::ctc::backward(call, grad, out) }
    }

    unsafe fn gates(&self, call: &Gates) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::recurrent::forward(call) }
    }

    unsafe fn gates_backward(&self, call: &GatesBackward) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::recurrent::backward(call) }
    }

    unsafe fn attention(&self, call: &Attention) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::attention::forward(call) }
    }

    unsafe fn attention_backward(&self, call: &AttentionBackward) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::attention::backward(call) }
    }

    unsafe fn resample(&self, call: &Resample) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::resample::resample(call) }
    }

    unsafe fn max_pool(&self, call: &MaxPool) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::pool::forward(call) }
    }

    unsafe fn max_pool_backward(&self, call: &MaxPoolBackward) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::pool::backward(call) }
    }

    unsafe fn conv(&self, call: &Conv) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::conv::run(call) }
    }

    unsafe fn columns(&self, call: &Columns) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::columns::run(call) }
    }

    unsafe fn foreach(&self, calls: &[Foreach]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { exec::foreach(calls) }
    }

    unsafe fn scan(&self, call: &Scan) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { scan::scan(call) }
    }

    unsafe fn kth(&self, call: &Kth) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { scan::kth(call) }
    }

    unsafe fn logsumexp(&self, call: &LogSumExp) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { nn::softmax::logsumexp(call) }
    }

    unsafe fn fft(&self, call: &Fft) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { fft::fft(call) }
    }

    unsafe fn factorize(&self, call: &Factorize) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { linalg::factorize(call) }
    }

    unsafe fn solve_triangular(&self, call: &TriangularSolve) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { linalg::solve_triangular(call) }
    }
}

unsafe fn product<T: GemmElement>(call: &Matmul) -> Result<()> {
    let (a, b, out) = (call.a, call.b, call.out);
    let mut bias = Bias::None;
    let mut accumulate = call.accumulate;
    if let Some(added) = call.bias {
        // Of a dimension of one element the stride does not matter.
        let sizes = [call.batch, call.m, call.n];
        let has = |steps: [isize; 3]| sizes.iter().zip(added.strides).zip(steps).all(|((&n, &s), step)| n == 1 || s == step);
        let first = added.ptr.cast::<T>().cast_const();
        if has([0, 0, 1]) {
            bias = Bias::Columns(first);
        } else if has([0, 1, 0]) {
            bias = Bias::Rows(first);
        } else {
            // SAFETY: the caller's: the bias has the result's dimensions.
            unsafe { begin_with_bias(&sizes, &out, &added, accumulate)? };
            accumulate = true;
        }
    }
    let gemm = Gemm {
        m: call.m,
        n: call.n,
        k: call.k,
        a: Matrix { ptr: a.ptr.cast::<T>().cast_const(), row: a.strides[1], column: a.strides[2] },
        b: Matrix { ptr: b.ptr.cast::<T>().cast_const(), row: b.strides[1], column: b.strides[2] },
        c: MatrixMut { ptr: out.ptr.cast::<T>(), row: out.strides[1], column: out.strides[2] },
        alpha: T::ONE,
        accumulate,
        bias,
    };
    let batch = [BatchAxis { len: call.batch, a: a.strides[0], b: b.strides[0], c: out.strides[0] }];
    // SAFETY: the caller's.
    unsafe { gemm_batched(&gemm, if call.batch == 1 { &[] } else { &batch }) };
    Ok(())
}

/// A product of complex matrices, stack by stack.
unsafe fn complex_product<T: flambeau_dense::Dense>(call: &Matmul) -> Result<()> {
    use flambeau_dense::View;
    let mut accumulate = call.accumulate;
    if let Some(added) = call.bias {
        // SAFETY: the caller's: the bias has the result's dimensions.
        unsafe { begin_with_bias(&[call.batch, call.m, call.n], &call.out, &added, accumulate)? };
        accumulate = true;
    }
    for i in 0..call.batch {
        let view = |o: &Operand, rows: usize, columns: usize| View {
            ptr: o.ptr.cast::<T>().wrapping_offset(o.strides[0] * i as isize),
            rows,
            columns,
            row_stride: o.strides[1],
            column_stride: o.strides[2],
        };
        let fixed = |v: View<*mut T>| View {
            ptr: v.ptr.cast_const(),
            rows: v.rows,
            columns: v.columns,
            row_stride: v.row_stride,
            column_stride: v.column_stride,
        };
        let (a, b) = (fixed(view(&call.a, call.m, call.k)), fixed(view(&call.b, call.k, call.n)));
        // SAFETY: the caller's: matrices of these sizes and strides; the result overlaps no operand.
        unsafe { T::product(a, b, view(&call.out, call.m, call.n), accumulate) };
    }
    Ok(())
}

/// Puts a bias of any strides into the result, to which the product is then added.
unsafe fn begin_with_bias(sizes: &[usize; 3], out: &Operand, bias: &Operand, add: bool) -> Result<()> {
    let mut body = Body::new(&[bias.dtype, out.dtype]);
    let (bias_value, before) = (body.input(0), body.input(1));
    let value = if add { body.add(before, bias_value) } else { bias_value };
    let program = body.finish(&[value])?;
    // SAFETY: the caller's; the result is read where it is written.
    unsafe { exec::pointwise(&program, &[], sizes, &[*out], &[*bias, *out]) }
}
