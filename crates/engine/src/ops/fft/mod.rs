//! Fourier transforms: the primitive, and the functions of `torch.fft`.

mod rows;

use super::nn::{around, packed};
use super::{Op, OutSpec, Primitive, copy_into};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::transforms::Fft as Call;
pub use crate::backend::transforms::FftKind;
use crate::ops::Outputs;
use crate::ops::join::cat;
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[rows::OPS];

/// A Fourier transform along some dimensions, one after the other, with results multiplied by `scale`.
///
/// From real numbers to half a spectrum, or back, it is along one dimension.
#[derive(Clone, Debug)]
pub struct Fft {
    /// What goes in and out.
    pub kind: FftKind,
    /// The dimensions.
    pub dims: SmallVec<[usize; 4]>,
    /// Whether exponents are negative.
    pub forward: bool,
    /// The factor.
    pub scale: f64,
    /// Length of the real signal, where half a spectrum goes in.
    pub n: usize,
    /// Whether the result lies in memory as the input does; else its transformed dimensions come last.
    pub keep: bool,
}

/// The complex dtype whose parts are of a dtype.
pub(crate) fn complex_of(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::C128 => DType::C128,
        _ => DType::C64,
    }
}

/// The dtype of a complex dtype's parts.
pub(crate) fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::C128 => DType::F64,
        DType::C64 => DType::F32,
        other => other,
    }
}

impl Fft {
    /// The dimensions of the result as they lie in memory, from slowest to fastest: as MKL leaves them, so that programs find
    /// PyTorch's strides.
    fn order(&self, x: &Tensor) -> SmallVec<[usize; 6]> {
        if self.keep {
            return x.layout().stride_order();
        }
        let mut all: SmallVec<[usize; 6]> = (0..x.ndim()).collect();
        // The others come to the front by exchanges with the last of them, which matters where strides are equal.
        let (mut first, mut last) = (0, all.len());
        loop {
            while first < last && !self.dims.contains(&all[first]) {
                first += 1;
            }
            while first < last && self.dims.contains(&all[last - 1]) {
                last -= 1;
            }
            if first >= last {
                break;
            }
            all.swap(first, last - 1);
            (first, last) = (first + 1, last - 1);
        }
        all[first..].copy_from_slice(&self.dims);
        let slow = |d: &usize| std::cmp::Reverse(x.strides()[*d]);
        all[..first].sort_by_key(slow);
        all[first..].sort_by_key(slow);
        all
    }

    /// One pass along a dimension.
    fn pass(&self, dim: usize, scale: f64, input: &Tensor, out: &Tensor, dtype: DType) -> Result<()> {
        let shape = if self.kind == FftKind::ToReal { out.shape() } else { input.shape() };
        let [outer, n, inner] = around(shape, dim);
        let call = Call {
            kind: self.kind,
            dtype,
            outer,
            n,
            inner,
            forward: self.forward,
            scale,
            input: input.data_ptr()?,
            out: out.data_ptr_mut()?,
        };
        // SAFETY: both are contiguous, of sizes that differ only as the kind says.
        unsafe { backend(out.device())?.fft(&call) }
    }
}

impl Primitive for Fft {
    fn name(&self) -> &'static str {
        match self.kind {
            FftKind::Complex => "fft_c2c",
            FftKind::FromReal => "fft_r2c",
            FftKind::ToReal => "fft_c2r",
        }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        let mut sizes = Dims::from_slice(x.shape());
        let dtype = match self.kind {
            FftKind::Complex => x.dtype(),
            FftKind::FromReal => {
                sizes[self.dims[0]] = self.n / 2 + 1;
                complex_of(x.dtype())
            }
            FftKind::ToReal => {
                sizes[self.dims[0]] = self.n;
                real_of(x.dtype())
            }
        };
        Ok(smallvec![OutSpec { layout: Layout::in_order(&sizes, &self.order(x))?, dtype }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let out = &outputs[0];
        if out.numel() == 0 {
            return Ok(());
        }
        let dtype = if out.dtype().is_complex() { out.dtype() } else { inputs[0].dtype() };
        let order = self.order(inputs[0]);
        let turned = |t: &Tensor| t.alias_with(t.layout().permute(&order), t.dtype());
        let (input, out) = (packed(&turned(inputs[0]))?, &turned(out));
        let dense = if out.is_contiguous() { out.clone() } else { Tensor::empty(out.shape(), out.dtype(), out.device())? };
        let mut from = &input;
        for (i, d) in self.dims.iter().rev().enumerate() {
            let d = order.iter().position(|o| o == d).unwrap_or(*d);
            self.pass(d, if i == 0 { self.scale } else { 1.0 }, from, &dense, dtype)?;
            from = &dense;
        }
        if self.dims.is_empty() {
            copy_into(&dense, &input)?;
        }
        if dense.is(out) { Ok(()) } else { copy_into(out, &dense) }
    }

    /// The transposed map: a transform the other way with the same factor.
    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (Some(g), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(smallvec![None]) };
        let back = |kind, n| Fft { kind, dims: self.dims.clone(), forward: !self.forward, scale: self.scale, n, keep: false };
        let grad = match self.kind {
            FftKind::Complex => bind1(&back(FftKind::Complex, 0), &[&g])?,
            FftKind::FromReal => {
                let d = self.dims[0];
                let mut rest: SmallVec<[usize; 6]> = SmallVec::from_slice(&info.sizes);
                rest[d] = self.n - (self.n / 2 + 1);
                let whole = cat(&[&g, &Tensor::zeros(&rest, g.dtype(), g.device())?], d as i64)?;
                bind1(&back(FftKind::Complex, 0), &[&whole])?.real()?
            }
            FftKind::ToReal => {
                let d = self.dims[0] as i64;
                let half = bind1(&back(FftKind::FromReal, self.n), &[&g])?;
                let twice = self.n as i64 - (self.n as i64 / 2 + 1);
                let (first, last) = (half.narrow(d, 0, 1)?, half.narrow(d, 1 + twice, (self.n as i64 / 2) - twice)?);
                cat(&[&first, &half.narrow(d, 1, twice)?.mul(2)?, &last], d)?
            }
        };
        Ok(smallvec![Some(grad)])
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(&Fft { dims: self.dims.iter().map(|d| d + 1).collect(), ..self.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
