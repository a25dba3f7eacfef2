//! Logarithms of sums of exponentials.

use super::dims_mask;
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::layers::LogSumExp as Call;
use crate::ops::Outputs;
use crate::ops::nn::{check_float, packed};
use crate::ops::table::{Op, function, place};
use crate::ops::{OutSpec, Primitive, Reads, copy_into};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{Dims, Layout, Result, default_dtype};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `log(sum(exp(x)))` over some dimensions, which are kept as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogSumExp {
    dims: u64,
}

impl LogSumExp {
    fn reduces(&self, d: usize) -> bool {
        self.dims >> d & 1 != 0
    }

    fn kept(&self, x: &Tensor) -> Dims {
        x.shape().iter().enumerate().map(|(d, &n)| if self.reduces(d) { 1 } else { n }).collect()
    }
}

impl Primitive for LogSumExp {
    fn name(&self) -> &'static str {
        "logsumexp"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        check_float("logsumexp", inputs[0].dtype())?;
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&self.kept(inputs[0]))?, dtype: inputs[0].dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let x = inputs[0].alias();
        let (kept, reduced): (Vec<i64>, Vec<i64>) = (0..x.ndim() as i64).partition(|&d| !self.reduces(d as usize));
        let order: Vec<i64> = kept.iter().chain(&reduced).copied().collect();
        let rows = packed(&x.permute(&order)?)?;
        let count = outputs[0].numel();
        let found = Tensor::empty(outputs[0].shape(), x.dtype(), x.device())?;
        let call = Call { dtype: x.dtype(), sizes: [count, x.numel() / count], input: rows.data_ptr()?, out: found.data_ptr_mut()? };
        // SAFETY: rows and results are contiguous and as large as stated.
        unsafe { backend(x.device())?.logsumexp(&call)? };
        copy_into(&outputs[0], &found)
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        let (x, y) = (cx.input(0)?, cx.output(0)?);
        let plain = x.sub(&y)?.exp()?;
        // Nothing but minus infinity gives no gradient; what is infinite takes all of it.
        let nothing = y.alias().eq(f64::NEG_INFINITY)?;
        let infinite = y.alias().eq(f64::INFINITY)?;
        let share = plain.masked_fill(&nothing, 0)?;
        let share = if infinite.device().is_meta() || !infinite.any()?.item()?.to_bool() {
            share
        } else {
            let dims: SmallVec<[i64; 6]> = (0..x.ndim() as i64).filter(|&d| self.reduces(d as usize)).collect();
            let own = x.alias().eq(f64::INFINITY)?;
            let even = own.to_dtype(x.dtype())?.div(&own.sum_dims(Some(&dims), true, None)?)?;
            Tensor::where_(&infinite, &even, &share)?
        };
        Ok(smallvec![Some(g.mul(&share)?)])
    }

    fn reads(&self) -> Reads {
        Reads::both(1, 1)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(&LogSumExp { dims: self.dims << 1 })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// `log(sum(exp(x)))` over dimensions, computed without overflow; integers are converted to the default float.
    ///
    /// The gradient is zero where all elements are minus infinity.
    pub fn logsumexp(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        let op = LogSumExp { dims: dims_mask("logsumexp", Some(dims), self.ndim(), true)? };
        let x = if self.dtype().is_integral() { self.to_dtype(default_dtype())? } else { self.clone() };
        let kept = if x.dtype().is_complex() { of_complex(&x, op.dims)? } else { bind1(&op, &[&x])? };
        if keepdim {
            return Ok(kept);
        }
        let sizes: Dims = self.shape().iter().enumerate().filter(|(d, _)| !op.reduces(*d)).map(|(_, &n)| n).collect();
        kept.reshape_to(&sizes)
    }
}

/// The same of complex numbers, less the largest real part; dimensions are kept as 1.
fn of_complex(x: &Tensor, mask: u64) -> Result<Tensor> {
    let dims: SmallVec<[i64; 6]> = (0..x.ndim() as i64).filter(|d| mask >> d & 1 != 0).collect();
    let sum = |x: Tensor| if dims.is_empty() { Ok(x) } else { x.sum_dims(Some(&dims), true, None) };
    if x.numel() == 0 {
        return sum(x.exp()?)?.log();
    }
    let parts = x.detach()?.real()?;
    let most = if dims.is_empty() { parts } else { parts.amax(Some(&dims), true)? };
    let most = most.masked_fill(&most.abs()?.eq(f64::INFINITY)?, 0)?;
    sum(x.sub(&most)?.exp()?)?.log()?.add(&most)
}

pub(super) static OPS: &[Op] = &[function("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", |a| {
    Ok(a.tensor(0)?.logsumexp(&a.ints(1)?, a.bool(2)?)?.into())
})
.doc("`log(sum(exp(x)))` over dimensions, computed without overflow; -inf of nothing. The gradient is zero where all elements are minus infinity.")
.places(place::TORCH | place::METHOD | place::SPECIAL)
.samples(&["T(2,3), 1", "T(2,3,4), [0, 2], True", "I(2,3; 0..3), 0"])];
