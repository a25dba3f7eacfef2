//! Rows of a table by number.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Outputs, Primitive, Reads};
use crate::transform::bind1;
use flambeau_base::{Dims, Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `[count, width]` and integers `[...]` to `[..., width]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Embedding {
    /// A row that gets no gradient.
    pub padding: Option<usize>,
    /// Whether a row's gradient is divided by how often it was looked up.
    pub by_frequency: bool,
}

impl Primitive for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (weight, index) = (inputs[0], inputs[1]);
        let [_, width] = *weight.shape() else {
            return Err(Error::runtime(format!("embedding: 'weight' must be 2-D, got shape {}", show(weight.shape()))));
        };
        let mut sizes = Dims::from_slice(index.shape());
        sizes.push(width);
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&sizes)?, dtype: weight.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        crate::ops::copy_into(&outputs[0], &self.run(inputs)?[0])
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let spec = self.infer(inputs)?.swap_remove(0);
        let rows = inputs[0].alias().index_select(0, &flat(inputs[1])?)?;
        Ok(smallvec![rows.alias_with(spec.layout, spec.dtype)])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (Some(grad), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(smallvec![None, None]) };
        let index = flat(&cx.input(1)?)?;
        let (count, width) = (info.sizes[0], info.sizes[1]);
        let mut rows = grad.reshape(&[index.numel() as i64, width as i64])?;
        if let Some(padding) = self.padding {
            rows = rows.masked_fill(&index.eq(padding)?.reshape(&[-1, 1])?, 0)?;
        }
        if self.by_frequency {
            let ones = Tensor::ones(index.shape(), grad.dtype(), grad.device())?;
            let times = Tensor::zeros(&[count], grad.dtype(), grad.device())?.index_add(0, &index, &ones)?;
            rows = rows.div(&times.index_select(0, &index)?.reshape(&[-1, 1])?)?;
        }
        let table = Tensor::zeros(&info.sizes, grad.dtype(), grad.device())?;
        Ok(smallvec![Some(table.index_add(0, &index, &rows)?), None])
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b10)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn flat(index: &Tensor) -> Result<Tensor> {
    index.alias().reshape_to(&[index.numel()])
}

impl Tensor {
    /// Rows of this table `[count, width]` by the integers in `index`: `[..., width]`. `IndexError` for a number that is not there.
    pub fn embedding(&self, index: &Tensor) -> Result<Tensor> {
        bind1(&Embedding { padding: None, by_frequency: false }, &[self, index])
    }
}

fn embedding(a: &Args) -> Result<Out> {
    let padding = usize::try_from(a.int(2)?).ok();
    Ok(bind1(&Embedding { padding, by_frequency: a.bool(3)? }, &[a.tensor(0)?, a.tensor(1)?])?.into())
}

pub(super) static OPS: &[Op] =
    &[function("embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", embedding)
        .doc("Rows of `weight` `[count, width]` by the integers in `indices`: `[..., width]`. The row `padding_idx` gets no gradient. An IndexError for a number that is not there.")
        .places(place::TORCH)
        .samples(&["T(5,3), I(2,4; 0..5)", "T(5,3), I(4; 0..5), 2", "T(5,3), I(6; 0..5), -1, True"])
        .without_out()];
