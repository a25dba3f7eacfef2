//! The primitive behind average pools and interpolation: sums of taps along each spatial dimension.

use super::check_float;
use super::spatial::{channels_last, into_packed_in, packed_in, spatial_format, tied, with_last};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::spatial::{Resample, Taps};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind1;
use flambeau_base::{DType, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::Arc;

/// Sums of taps along the last dimensions, as many as there are `axes`. Its derivative is the same with transposed taps.
#[derive(Clone, Debug)]
pub(super) struct Resampled {
    /// The name that errors and graphs show.
    pub name: &'static str,
    /// The taps of each of the last one to three dimensions.
    pub axes: SmallVec<[Arc<Taps>; 3]>,
    /// Whether the gradient can be differentiated again, as PyTorch's whose backward kernel is handed the input.
    pub ties: bool,
    /// For `uint8`, whose weights are whole numbers: two to this power stands for 1.
    pub bits: u32,
}

impl Resampled {
    /// Carries it out.
    pub fn apply(self, x: &Tensor) -> Result<Tensor> {
        bind1(&self, &[x])
    }

    fn run_kernel(&self, x: &Tensor, out: &Tensor) -> Result<()> {
        let format = spatial_format(x, self.axes.len());
        let x = packed_in(x, format)?;
        let (lead, _) = x.shape().split_at(x.ndim() - self.axes.len());
        let inner = if channels_last(format) { lead[1] } else { 1 };
        let one = Taps::identity(1);
        let mut axes = [&one; 3];
        for (place, axis) in axes[3 - self.axes.len()..].iter_mut().zip(&self.axes) {
            *place = axis;
        }
        into_packed_in(out, format, |out| {
            let call = Resample {
                op: self.name,
                dtype: x.dtype(),
                bits: self.bits,
                outer: lead.iter().product::<usize>() / inner,
                inner,
                axes,
                input: x.data_ptr()?,
                out: out.data_ptr_mut()?,
            };
            // SAFETY: both are dense in that format, of the sizes that `infer` gave; taps lie inside the input.
            unsafe { backend(out.device())?.resample(&call) }
        })
    }
}

impl Primitive for Resampled {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        if x.dtype() != DType::U8 || self.bits == 0 {
            check_float(self.name, x.dtype())?;
        }
        let last: SmallVec<[usize; 3]> = self.axes.iter().map(|a| a.output()).collect();
        let sizes = with_last(x.shape(), &last);
        Ok(smallvec![OutSpec { layout: Layout::in_format(self.name, &sizes, spatial_format(x, self.axes.len()), None)?, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        self.run_kernel(inputs[0], &outputs[0])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        let axes = self.axes.iter().map(|a| Arc::new(a.transposed())).collect();
        let found = Resampled { name: self.name, axes, ties: false, bits: 0 }.apply(&grad)?;
        Ok(smallvec![Some(if self.ties { tied(found, &cx.input(0)?)? } else { found })])
    }

    fn reads(&self) -> Reads {
        if self.ties { Reads::INPUT } else { Reads::NONE }
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
