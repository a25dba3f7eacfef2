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
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&sizes)?, dtype }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let out = &outputs[0];
        if out.numel() == 0 {
            return Ok(());
        }
        let dtype = if out.dtype().is_complex() { out.dtype() } else { inputs[0].dtype() };
        let input = packed(inputs[0])?;
        let dense = if out.is_contiguous() { out.clone() } else { Tensor::empty(out.shape(), out.dtype(), out.device())? };
        let mut from = &input;
        for (i, &d) in self.dims.iter().rev().enumerate() {
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
        let back = |kind, n| Fft { kind, dims: self.dims.clone(), forward: !self.forward, scale: self.scale, n };
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
