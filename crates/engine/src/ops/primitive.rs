//! What a primitive is.

use crate::Tensor;
use crate::autograd::{Cx, Edge, Grads, ViewStep};
use crate::transform::forward::Tangents;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Device, Error, Layout, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// Results of a primitive.
pub type Outputs = SmallVec<[Tensor; 1]>;

/// What a result will be, before it is computed.
#[derive(Clone, Debug)]
pub struct OutSpec {
    /// Its layout (dense, offset 0).
    pub layout: Layout,
    /// Its dtype.
    pub dtype: DType,
}

/// Which inputs and outputs a derivative reads; nothing else is kept for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reads {
    /// Bit `i`: input `i`.
    pub inputs: u32,
    /// Bit `i`: output `i`.
    pub outputs: u32,
    /// The gradient of an input reads only the *other* inputs: an input is kept only if another one's gradient is wanted.
    pub others_only: bool,
}

impl Reads {
    /// Nothing.
    pub const NONE: Reads = Reads { inputs: 0, outputs: 0, others_only: false };
    /// The output.
    pub const OUTPUT: Reads = Reads { inputs: 0, outputs: 1, others_only: false };
    /// The first input.
    pub const INPUT: Reads = Reads::inputs(1);
    /// For each input's gradient the other inputs, as in a product.
    pub const OTHERS: Reads = Reads { inputs: u32::MAX, outputs: 0, others_only: true };

    /// These inputs.
    pub const fn inputs(bits: u32) -> Reads {
        Reads { inputs: bits, outputs: 0, others_only: false }
    }

    /// These inputs and outputs.
    pub const fn both(inputs: u32, outputs: u32) -> Reads {
        Reads { inputs, outputs, others_only: false }
    }

    pub(crate) fn input(self, i: usize, edges: &[Option<Edge>]) -> bool {
        self.inputs >> i & 1 != 0 && (!self.others_only || edges.iter().enumerate().any(|(j, e)| j != i && e.is_some()))
    }

    pub(crate) fn output(self, i: usize) -> bool {
        self.outputs >> i & 1 != 0
    }
}

/// An operation that is not made of others: a plain value with its parameters and its rules.
pub trait Primitive: Any + Debug + Send + Sync {
    /// The name that errors and graphs show.
    fn name(&self) -> &'static str;

    /// What the results will be. Everything that can be wrong with shapes, dtypes and devices is found here.
    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>>;

    /// Computes into tensors of the inferred shapes and dtypes, on the inputs' device. Strides of `outputs` may differ from the inferred ones.
    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()>;

    /// Allocates and computes. Views, and operations whose result's shape depends on values, have their own.
    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let specs = self.infer(inputs)?;
        let device = self.device(inputs)?;
        let mut outputs = Outputs::new();
        for spec in specs {
            outputs.push(Tensor::empty_layout(spec.layout, spec.dtype, device)?);
        }
        if !device.is_meta() {
            self.compute(inputs, &outputs)?;
        }
        Ok(outputs)
    }

    /// Where the results go: the inputs' common device. `RuntimeError` where they differ.
    fn device(&self, inputs: &[&Tensor]) -> Result<Device> {
        common_device(self.name(), inputs)
    }

    /// Gradients of the inputs, given those of the outputs (`None` stands for zeros). In tensor operations, so that it can be differentiated.
    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let _ = (cx, grads);
        Err(Error::not_implemented(format!("derivative for {} is not implemented", self.name())))
    }

    /// Tangents of the results for those of the inputs (`None` stands for zeros), by a shorter way than transposing `vjp`,
    /// which is taken where this gives `None`.
    fn jvp(&self, inputs: &[&Tensor], tangents: &Tangents) -> Result<Option<Tangents>> {
        let _ = (inputs, tangents);
        Ok(None)
    }

    /// The results for a batch of examples, with the batch in front; `None` to go through it example by example.
    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let _ = batch;
        Ok(None)
    }

    /// What `vjp` reads.
    fn reads(&self) -> Reads {
        Reads::NONE
    }

    /// Whether output `i` has a gradient.
    fn differentiable(&self, i: usize) -> bool {
        let _ = i;
        true
    }

    /// Whether it knows what to do with inputs that are conjugated or negated views, see NOTE [lazy values] in `tensor`.
    fn takes_lazy(&self) -> bool {
        self.is_view()
    }

    /// Whether the results look at the first input's memory.
    fn is_view(&self) -> bool {
        false
    }

    /// For a view: the view that output `i` alone is, behind those `before` it.
    fn view_step(&self, i: usize, before: Option<Arc<ViewStep>>) -> Option<Arc<ViewStep>> {
        let _ = (i, before);
        None
    }

    /// Whether the result is the first input with some elements changed, so that it may be computed where that input
    /// lies as long as no other input lies there.
    fn updates(&self) -> bool {
        false
    }

    /// Whether element `i` of the result depends on elements `i` of the inputs alone, so that it may be computed where an input lies.
    fn elementwise(&self) -> bool {
        false
    }

    /// A copy behind a pointer, for nodes and graphs.
    fn boxed(&self) -> Box<dyn Primitive>;

    /// For passes that know a family.
    fn as_any(&self) -> &dyn Any;
}

/// The device of all inputs; 0-dimensional CPU tensors fit everywhere.
pub(crate) fn common_device(op: &str, inputs: &[&Tensor]) -> Result<Device> {
    let mut device = None;
    for t in inputs {
        match device {
            None => device = Some((t.device(), t.ndim())),
            Some((d, _)) if d == t.device() => {}
            Some((d, 0)) if d == Device::CPU => device = Some((t.device(), t.ndim())),
            Some(_) if t.ndim() == 0 && t.device() == Device::CPU => {}
            Some((d, _)) => {
                return Err(Error::runtime(format!(
                    "{op}: Expected all tensors to be on the same device, but found at least two devices, {d} and {}! Move one with .to()",
                    t.device()
                )));
            }
        }
    }
    Ok(device.map_or(Device::CPU, |d| d.0))
}
