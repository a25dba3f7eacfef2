//! The layer `x @ weight.T + bias`.

use super::product::{check_dtypes, multiply};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::Outputs;
use crate::ops::table::{Op, function, place};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{Dims, Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `[..., in] @ [out, in].T (+ [out]) -> [..., out]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Linear;

impl Primitive for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (x, w) = (inputs[0], inputs[1]);
        check_dtypes("linear", x, w)?;
        let wrong = |what: String| Error::runtime(format!("linear: {what}: input {}, weight {}", show(x.shape()), show(w.shape())));
        let ([.., k], [n, k2]) = (x.shape(), w.shape()) else {
            return Err(wrong("the input needs at least one dimension and the weight two (out_features, in_features)".into()));
        };
        if k != k2 {
            let rows: usize = x.shape()[..x.ndim() - 1].iter().product();
            return Err(wrong(format!(
                "mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {k2}x{n}), the input's last dimension ({k}) must equal the weight's ({k2})"
            )));
        }
        if let Some(bias) = inputs.get(2) {
            check_dtypes("linear", x, bias)?;
            if bias.shape() != [*n] {
                return Err(wrong(format!("the bias has shape {}, [{n}] fits", show(bias.shape()))));
            }
        }
        let mut sizes = Dims::from_slice(&x.shape()[..x.ndim() - 1]);
        sizes.push(*n);
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&sizes)?, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (x, out) = (inputs[0], &outputs[0]);
        let w = inputs[1].alias_with(inputs[1].layout().transpose(0, 1), inputs[1].dtype());
        let rows: usize = x.shape()[..x.ndim() - 1].iter().product();
        let flat = |t: &Tensor| t.layout().view(&[rows, *t.shape().last().unwrap_or(&1)]).map(|l| t.alias_with(l, t.dtype()));
        let x2 = match flat(x) {
            Some(x2) => x2,
            None => packed_copy(x)?.alias_with(Layout::contiguous(&[rows, x.shape()[x.ndim() - 1]])?, x.dtype()),
        };
        let bias = inputs.get(2).map(|b| if b.is_contiguous() { Ok(b.alias()) } else { packed_copy(b) }).transpose()?;
        match flat(out) {
            Some(out2) => multiply(&x2, &w, bias.as_ref(), &out2),
            None => {
                let packed = Tensor::empty(&[rows, w.shape()[1]], out.dtype(), out.device())?;
                multiply(&x2, &w, bias.as_ref(), &packed)?;
                crate::ops::copy_into(out, &packed.alias_with(Layout::contiguous(out.shape())?, out.dtype()))
            }
        }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None; cx.inputs()]) };
        let x = if cx.needs(0) { Some(g.matmul(&cx.input(1)?.conj()?)?) } else { None };
        let w = if cx.needs(1) { Some(weight_gradient(&g, &cx.input(0)?)?) } else { None };
        let mut out: Grads = smallvec![x, w];
        if cx.inputs() == 3 {
            // The engine sums over the rows.
            out.push(if cx.needs(2) { Some(g) } else { None });
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        // The bias is read by no gradient.
        Reads { inputs: 0b11, outputs: 0, others_only: true }
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        if batch.has_batch[1..].contains(&true) {
            let x = batch.front(0)?;
            let w = batch.front(1)?.transpose(-1, -2)?;
            // A vector is a row; the weights of an example stand against all its rows.
            let rows = if batch.examples[0].ndim() == 1 { x.unsqueeze(1)? } else { x };
            let mut sizes: SmallVec<[usize; 6]> = smallvec![batch.size];
            sizes.extend(std::iter::repeat_n(1, rows.ndim().saturating_sub(3)));
            sizes.extend_from_slice(&w.shape()[1..]);
            let mut y = rows.matmul(&w.reshape_to(&sizes)?)?;
            if batch.examples.len() == 3 {
                let b = batch.front(2)?;
                let mut sizes: SmallVec<[usize; 6]> = smallvec![batch.size];
                sizes.extend(std::iter::repeat_n(1, y.ndim() - 2));
                sizes.push(b.shape()[1]);
                y = y.add(&b.reshape_to(&sizes)?)?;
            }
            return Ok(Some(smallvec![if batch.examples[0].ndim() == 1 { y.squeeze(Some(&[1]))? } else { y }]));
        }
        batch.on_inputs(self)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A contiguous copy, without history.
fn packed_copy(t: &Tensor) -> Result<Tensor> {
    let packed = Tensor::empty(t.shape(), t.dtype(), t.device())?;
    crate::ops::copy_into(&packed, t)?;
    Ok(packed)
}

fn weight_gradient(g: &Tensor, x: &Tensor) -> Result<Tensor> {
    let rows = |t: &Tensor| t.reshape(&[t.shape()[..t.ndim() - 1].iter().product::<usize>() as i64, t.shape()[t.ndim() - 1] as i64]);
    rows(g)?.transpose(0, 1)?.matmul(&rows(x)?.conj()?)
}

impl Tensor {
    /// `self @ weight.T + bias` over the last dimension; the weight is `[out, in]`, the bias `[out]`.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        if weight.ndim() == 1 {
            let y = self.matmul(weight)?;
            return bias.map_or(Ok(y.clone()), |b| y.add(b));
        }
        match bias {
            Some(bias) => bind1(&Linear, &[self, weight, bias]),
            None => bind1(&Linear, &[self, weight]),
        }
    }
}

pub(super) static OPS: &[Op] = &[function("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", |a| {
    Ok(a.tensor(0)?.linear(a.tensor(1)?, a.opt_tensor(2)?)?.into())
})
.autocast_lower()
.doc("`input @ weight.T + bias` over the last dimension: input `[..., in]`, weight `[out, in]`, bias `[out]`.")
.places(place::NN)
.samples(&["T(2,3), T(4,3)", "T(2,3), T(4,3), T(4)", "T(5,2,3), T(4,3), T(4)", "T(3), T(4,3)"])];
