//! The convolution and its two derivatives: three linear maps in two operands, each the derivative of the others.
//!
//! With an input `x`, a weight `w` and an output `y`, tied by `y = x * w`, each of the three can be computed from the
//! other two: the output, the gradient of the input (which is the transposed convolution) and that of the weight.
//! The derivative of one is made of the other two, so derivatives of any order stay within the family.

use super::backward::Backward;
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::Outputs;
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::vectorize::Batch;
use crate::transform::{bind, bind1};
use flambeau_base::{DType, Dims, Error, Layout, MemoryFormat, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

pub use crate::backend::layers::ConvKind as Kind;

/// A convolution over one to three dimensions, or one of its derivatives. Inputs, batched and of fitting shapes:
/// `x, w` for [`Kind::Output`], `y, w` for [`Kind::Input`], `x, y` for [`Kind::Weight`]; the first two take a bias.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// What is computed.
    pub kind: Kind,
    /// Steps from one output element to the next, in the input.
    pub stride: Dims,
    /// How far the first window begins before the input.
    pub padding: Dims,
    /// Steps from one weight element to the next, in the input.
    pub dilation: Dims,
    /// Into how many parts the channels are cut.
    pub groups: usize,
    /// Sizes of the result.
    pub sizes: Dims,
    /// The result's order of dimensions in memory.
    pub format: MemoryFormat,
}

impl Convolution {
    /// Another of the three maps between tensors of the same shapes.
    pub(super) fn other(&self, kind: Kind, sizes: &[usize]) -> Convolution {
        Convolution { kind, sizes: Dims::from_slice(sizes), ..self.clone() }
    }

    /// The gradients of an output's or an input's operands.
    fn through_backward(&self, cx: &Cx, g: &Tensor) -> Result<Grads> {
        let (x, w) = (cx.input(0)?, cx.input(1)?);
        let needs = [cx.needs(0), cx.needs(1), cx.needs(2)];
        let sizes = [Dims::from_slice(x.shape()), Dims::from_slice(w.shape())];
        let mut found = bind(&Backward { of: self.clone(), needs, sizes }, &[g, &x, &w])?.into_iter();
        Ok((0..cx.inputs()).map(|i| if needs[i] { found.next() } else { None }).collect())
    }

    /// The shapes of input, weight and output.
    fn shapes<'a>(&'a self, inputs: &[&'a Tensor]) -> [&'a [usize]; 3] {
        let (a, b, result) = (inputs[0].shape(), inputs[1].shape(), &self.sizes[..]);
        match self.kind {
            Kind::Output => [a, b, result],
            Kind::Input => [result, b, a],
            Kind::Weight => [a, result, b],
        }
    }

    /// What the backend is asked for, with operands in the order of [`Convolution::shapes`].
    fn call(&self, shapes: [&[usize]; 3], operands: [&Tensor; 3], bias: Option<&Tensor>) -> Result<layers::Conv> {
        let [x, w, y] = shapes;
        // Fewer dimensions than three are preceded by ones.
        let spatial = |sizes: &[usize], fill: usize| -> [usize; 3] {
            let lead = 3 - sizes.len();
            std::array::from_fn(|d| if d < lead { fill } else { sizes[d - lead] })
        };
        let strides = |t: &Tensor| -> [isize; 5] {
            let (s, lead) = (t.strides(), 5 - t.ndim());
            std::array::from_fn(|d| match d {
                0 | 1 => s[d],
                d if d < 2 + lead => 0,
                d => s[d - lead],
            })
        };
        Ok(layers::Conv {
            kind: self.kind,
            dtype: operands[0].dtype(),
            batch: x[0],
            groups: self.groups,
            channels: [w[1], w[0] / self.groups],
            input: spatial(&x[2..], 1),
            kernel: spatial(&w[2..], 1),
            output: spatial(&y[2..], 1),
            stride: spatial(&self.stride, 1),
            padding: spatial(&self.padding, 0),
            dilation: spatial(&self.dilation, 1),
            x: layers::ConvOperand { ptr: operands[0].data_ptr_mut()?, strides: strides(operands[0]) },
            w: layers::ConvOperand { ptr: operands[1].data_ptr_mut()?, strides: strides(operands[1]) },
            y: layers::ConvOperand { ptr: operands[2].data_ptr_mut()?, strides: strides(operands[2]) },
            bias: bias.map_or(Ok(std::ptr::null()), |b| b.data_ptr().map(|p| p.cast_const()))?,
        })
    }

    /// Computes into `out`, all operands of the dtype in which sums are kept.
    fn compute_wide(&self, a: &Tensor, b: &Tensor, bias: Option<&Tensor>, out: &Tensor) -> Result<()> {
        let shapes = self.shapes(&[a, b]);
        let operands = match self.kind {
            Kind::Output => [a, b, out],
            Kind::Input => [out, b, a],
            Kind::Weight => [a, out, b],
        };
        let call = self.call(shapes, operands, bias)?;
        // SAFETY: layouts stay inside their storages, `infer` checked the shapes, and `out` overlaps nothing.
        unsafe { backend(out.device())?.conv(&call) }
    }
}

/// The dtype in which a convolution is computed: half precision is summed up in single.
fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// The values in another dtype and memory format, without history; the tensor itself where it is so already.
fn brought(t: &Tensor, dtype: DType, format: MemoryFormat) -> Result<Tensor> {
    if t.dtype() == dtype && t.layout().is_contiguous_in(format) {
        return Ok(t.clone());
    }
    let fresh = Tensor::empty_layout(Layout::in_format("convolution", t.shape(), format, None)?, dtype, t.device())?;
    crate::ops::copy_into(&fresh, t)?;
    Ok(fresh)
}

impl Primitive for Convolution {
    fn name(&self) -> &'static str {
        if self.kind == Kind::Weight { "convolution_backward" } else { "convolution" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let dtype = inputs[0].dtype();
        if dtype == DType::Bool || dtype.is_complex() || dtype.size() == 1 && dtype.is_differentiable() {
            return Err(Error::not_implemented(format!("{}: not implemented for {dtype}", self.name())));
        }
        let layout = Layout::in_format("convolution", &self.sizes, self.format, None)?;
        Ok(smallvec![OutSpec { layout, dtype }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let out = &outputs[0];
        if out.numel() == 0 {
            return Ok(());
        }
        let dtype = wide(out.dtype());
        let a = brought(inputs[0], dtype, self.format)?;
        let b = if self.kind == Kind::Weight { brought(inputs[1], dtype, self.format)? } else { in_dtype(inputs[1], dtype)? };
        let bias = inputs.get(2).map(|b| brought(b, dtype, MemoryFormat::Contiguous)).transpose()?;
        if out.dtype() == dtype && out.layout().is_contiguous_in(self.format) {
            return self.compute_wide(&a, &b, bias.as_ref(), out);
        }
        let layout = Layout::in_format("convolution", &self.sizes, self.format, None)?;
        let result = Tensor::empty_layout(layout, dtype, out.device())?;
        self.compute_wide(&a, &b, bias.as_ref(), &result)?;
        crate::ops::copy_into(out, &result)
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None; cx.inputs()]) };
        if self.kind != Kind::Weight {
            return self.through_backward(cx, &g);
        }
        let mut out: Grads = smallvec![None, None];
        if let (true, Some(info)) = (cx.needs(0), cx.input_info(0)) {
            out[0] = Some(bind1(&self.other(Kind::Input, &info.sizes), &[&cx.input(1)?, &g])?);
        }
        if let (true, Some(info)) = (cx.needs(1), cx.input_info(1)) {
            out[1] = Some(bind1(&self.other(Kind::Output, &info.sizes), &[&cx.input(0)?, &g])?);
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        // The derivative is one operation of both, which says nothing of values that it need not have.
        Reads::inputs(0b11)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        if self.kind == Kind::Weight {
            return Ok(None);
        }
        let mut sizes = self.sizes.clone();
        sizes[0] *= batch.size;
        batch.on_folded(&self.other(self.kind, &sizes), 1)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Carries out a convolution.
pub(super) fn apply(op: &Convolution, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    match bias {
        Some(bias) => bind1(op, &[x, w, bias]),
        None => bind1(op, &[x, w]),
    }
}

/// The values in another dtype, with any strides.
fn in_dtype(t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype { Ok(t.clone()) } else { brought(t, dtype, MemoryFormat::Contiguous) }
}
