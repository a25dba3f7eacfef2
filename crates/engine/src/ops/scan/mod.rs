//! Scans: each result is what the elements up to its place give.

mod rows;

use super::nn::{around, into_packed, packed, vjp_of};
use super::{Op, OutSpec, Outputs, Primitive, Reads};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::layers::Scan as Call;
pub use crate::backend::layers::ScanKind;
use crate::ops::join::cat;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[rows::OPS];

/// A scan along a dimension. Extremes give their places too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    kind: ScanKind,
    dim: usize,
}

impl Scan {
    fn has_places(&self) -> bool {
        matches!(self.kind, ScanKind::Max | ScanKind::Min)
    }

    /// The sum from each place to the end.
    fn backwards(&self, kind: ScanKind, x: &Tensor) -> Result<Tensor> {
        let dim = [self.dim as i64];
        let turned = x.flip(&dim)?;
        crate::transform::bind1(&Scan { kind, dim: self.dim }, &[&turned])?.flip(&dim)
    }
}

impl Primitive for Scan {
    fn name(&self) -> &'static str {
        match self.kind {
            ScanKind::Sum => "cumsum",
            ScanKind::Prod => "cumprod",
            ScanKind::Max => "cummax",
            ScanKind::Min => "cummin",
            ScanKind::LogSumExp => "logcumsumexp",
        }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        if self.kind == ScanKind::LogSumExp && !x.dtype().is_complex() {
            super::nn::check_float("logcumsumexp", x.dtype())?;
        }
        let values = super::nn::like(x)?;
        let places = OutSpec { layout: Layout::contiguous(x.shape())?, dtype: DType::I64 };
        Ok(if self.has_places() { smallvec![values, places] } else { smallvec![values] })
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let x = packed(inputs[0])?;
        into_packed(&outputs[0], |out| {
            let call = Call {
                kind: self.kind,
                dtype: x.dtype(),
                sizes: around(x.shape(), self.dim),
                input: x.data_ptr()?,
                out: out.data_ptr_mut()?,
                indices: match outputs.get(1) {
                    Some(places) => places.data_ptr_mut()?.cast(),
                    None => std::ptr::null_mut(),
                },
            };
            // SAFETY: all are contiguous and of one shape; places are made by `run`.
            unsafe { backend(x.device())?.scan(&call) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        let grad = match self.kind {
            ScanKind::Sum => self.backwards(ScanKind::Sum, &g)?,
            ScanKind::Prod => {
                let x = cx.input(0)?;
                let f = |all: &[Tensor]| Ok(vec![by_doubling(&all[0], self.dim)?]);
                vjp_of(&f, std::slice::from_ref(&x), &[true], &[Some(g)])?.remove(0).map_or_else(|| x.zeros_like(), Ok)?
            }
            ScanKind::Max | ScanKind::Min => {
                let places = cx.output(1)?;
                if g.ndim() == 0 { g } else { g.zeros_like()?.scatter_add(self.dim as i64, &places, &g)? }
            }
            ScanKind::LogSumExp => self.of_logs(&g, &cx.input(0)?, &cx.output(0)?)?,
        };
        Ok(smallvec![Some(grad)])
    }

    fn reads(&self) -> Reads {
        match self.kind {
            ScanKind::Sum => Reads::NONE,
            ScanKind::Prod => Reads::INPUT,
            ScanKind::Max | ScanKind::Min => Reads::both(0, 0b10),
            ScanKind::LogSumExp => Reads::both(1, 1),
        }
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.along(&Scan { dim: self.dim + 1, ..*self })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Scan {
    /// `exp(x_i) * sum over j from i of g_j exp(-y_j)`, positive and negative parts by their logarithms.
    fn of_logs(&self, g: &Tensor, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        // Before the first element above minus infinity there is nothing to weigh.
        if x.dtype().is_complex() {
            let nothing = y.alias().real()?.eq(f64::NEG_INFINITY)?;
            let terms = g.conj()?.log()?.sub(y)?.masked_fill(&nothing, f64::NEG_INFINITY)?;
            return self.backwards(ScanKind::LogSumExp, &terms)?.add(x)?.exp()?.conj();
        }
        let nothing = y.alias().eq(f64::NEG_INFINITY)?;
        let part = |g: &Tensor| -> Result<Tensor> {
            let up = g.alias().gt(0)?;
            let logs = Tensor::where_(&up, &Tensor::where_(&up, g, 1.0)?.log()?, f64::NEG_INFINITY)?;
            let terms = logs.sub(y)?.masked_fill(&nothing, f64::NEG_INFINITY)?;
            self.backwards(ScanKind::LogSumExp, &terms)?.add(x)?.exp()
        };
        part(g)?.sub(&part(&g.neg()?)?)
    }
}

/// The running product in steps that double their reach, so that zeros leave the others' products in derivatives.
fn by_doubling(x: &Tensor, dim: usize) -> Result<Tensor> {
    if x.ndim() == 0 {
        return Ok(x.clone());
    }
    let (d, n) = (dim as i64, x.shape()[dim] as i64);
    let mut y = x.clone();
    let mut reach = 1;
    while reach < n {
        let later = y.narrow(d, reach, n - reach)?.mul(&y.narrow(d, 0, n - reach)?)?;
        y = cat(&[&y.narrow(d, 0, reach)?, &later], d)?;
        reach *= 2;
    }
    Ok(y)
}

/// Runs a scan and gives its outputs.
fn scanned(kind: ScanKind, x: &Tensor, dim: i64) -> Result<Outputs> {
    let mut op = Scan { kind, dim: 0 };
    op.dim = flambeau_base::wrap_dim(op.name(), dim, x.ndim())?;
    crate::transform::bind(&op, &[x])
}
