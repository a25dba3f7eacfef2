//! Copies, conversions and fills.

use super::{Operand, Rule, Spec, call_inplace, run_program};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::hash::QuickHasher;
use crate::ops::Outputs;
use crate::ops::table::{Args, Op, choose};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::tensor::{Overlap, lazy, overlap};
use crate::transform::bind1;
use crate::transform::forward::Tangents;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Device, Error, Layout, MemoryFormat, Result, Scalar};
use flambeau_ir::{Body, Program, Val};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

/// `self` becomes the second operand.
static COPY: Spec =
    Spec::new("copy_", Rule::First, |_, x| x[1]).vjp(Reads::NONE, |cx, g| Ok(smallvec![None, cx.when(1, || Ok(g.clone()))?]));

/// The same values as another tensor: in another dtype, or laid out differently.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The dtype of the result; that of the input where there is none.
    pub dtype: Option<DType>,
    /// The order of dimensions in memory.
    pub format: MemoryFormat,
}

impl Primitive for Cast {
    fn name(&self) -> &'static str {
        if self.dtype.is_some() { "to" } else { "clone" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let t = inputs[0];
        let layout = Layout::in_format(self.name(), t.shape(), self.format, Some(t.layout()))?;
        Ok(smallvec![OutSpec { layout, dtype: self.dtype.unwrap_or(t.dtype()) }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        copy_into(&outputs[0], inputs[0])
    }

    fn vjp(&self, _: &Cx, grads: &mut Grads) -> Result<Grads> {
        // The engine brings it into the input's dtype.
        Ok(smallvec![grads[0].take()])
    }

    fn takes_lazy(&self) -> bool {
        true
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        if !matches!(self.format, MemoryFormat::Preserve | MemoryFormat::Contiguous) {
            return Ok(None);
        }
        batch.on_inputs(self)
    }

    fn jvp(&self, inputs: &[&Tensor], tangents: &Tangents) -> Result<Option<Tangents>> {
        let Some(t) = &tangents[0] else { return Ok(None) };
        if self.dtype.is_some_and(|d| !d.is_differentiable()) || t.dtype() != inputs[0].dtype() {
            return Ok(None);
        }
        Ok(Some(smallvec![Some(bind1(self, &[t])?)]))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A dtype with the bits of NOTE [lazy values].
type Looks = (DType, u8);

thread_local! {
    static CONVERSIONS: RefCell<HashMap<(Looks, Looks), Arc<Program>, BuildHasherDefault<QuickHasher>>> = RefCell::default();
}

fn conversion(from: Looks, to: Looks) -> Result<Arc<Program>> {
    if let Some(found) = CONVERSIONS.with(|c| c.borrow().get(&(from, to)).cloned()) {
        return Ok(found);
    }
    let mut body = Body::new(&[from.0]);
    let value = body.input(0);
    let value = look(&mut body, value, from.1);
    let value = body.convert(value, to.0);
    let value = look(&mut body, value, to.1);
    let program = Arc::new(body.finish(&[value])?);
    CONVERSIONS.with(|c| c.borrow_mut().insert((from, to), program.clone()));
    Ok(program)
}

/// What a lazy view makes of a value in memory, and of a value on its way there.
fn look(k: &mut Body, x: Val, bits: u8) -> Val {
    let x = if bits & lazy::CONJ == 0 { x } else { (super::CONJ_PHYSICAL.body)(k, &[x]) };
    if bits & lazy::NEG == 0 { x } else { k.neg(x) }
}

fn looks(t: &Tensor) -> Looks {
    (t.dtype(), t.lazy())
}

/// The values of a conjugated or negated view in memory of their own.
pub(crate) const RESOLVE: Cast = Cast { dtype: None, format: MemoryFormat::Preserve };

/// Writes the values of `source`, broadcast and converted, where `target` lies, without looking at gradients or versions.
///
/// Overlapping memory is copied as if from a copy of the source.
pub fn copy_into(target: &Tensor, source: &Tensor) -> Result<()> {
    if overlap(target, source) == Overlap::Partial {
        let apart = Tensor::empty_layout(Layout::contiguous(source.shape())?, source.dtype(), source.device())?;
        run_program(&*conversion(looks(source), looks(&apart))?, &[], &[source], std::slice::from_ref(&apart))?;
        return run_program(&*conversion(looks(&apart), looks(target))?, &[], &[&apart], std::slice::from_ref(target));
    }
    run_program(&*conversion(looks(source), looks(target))?, &[], &[source], std::slice::from_ref(target))
}

/// Whether a shape broadcasts to a larger one.
pub fn expandable(from: &[usize], to: &[usize]) -> bool {
    from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(a, b)| a == b || *a == 1)
}

/// Writes a number everywhere, without looking at gradients or versions.
pub(crate) fn fill_with(target: &Tensor, value: Scalar) -> Result<()> {
    let mut body = Body::new(&[]);
    let v = body.param(target.dtype(), 0);
    let v = look(&mut body, v, target.lazy());
    let program = body.finish(&[v])?;
    run_program(&program, &[value], &[], std::slice::from_ref(target))
}

/// `fill(x, value)`: the value everywhere, in the shape and dtype of `x`.
fn filled(a: &Args) -> Result<(&'static Spec, SmallVec<[Operand<'_>; 3]>)> {
    let x = a.tensor(0)?;
    match a.operand(1)? {
        Operand::Tensor(v) if v.ndim() > 0 => {
            let n = v.ndim();
            return Err(Error::runtime(format!("fill: fill_ only supports 0-dimension value tensor but got tensor with {n} dimensions.")));
        }
        Operand::Scalar(s) => {
            s.checked_for("fill", x.dtype())?;
        }
        Operand::Tensor(_) => {}
    }
    Ok((&COPY, smallvec![a.operand(0)?, a.operand(1)?]))
}

pub(super) static OPS: &[Op] = &[choose("fill(Tensor self, Tensor value) -> Tensor", filled)
    .doc("A number (or a 0-dimensional tensor) everywhere, in the shape and dtype of `self`.")
    .places(crate::ops::table::place::TORCH)
    .samples(&["T(2,3), 1.5", "T(2,3), T()"])
    .without_inplace()];

impl Tensor {
    /// Copies values, broadcast and converted, into this tensor.
    pub fn copy_(&self, source: &Tensor) -> Result<&Tensor> {
        call_inplace(&COPY, &[self.into(), source.into()])?;
        Ok(self)
    }

    /// Sets every element to a number.
    pub fn fill_<'a>(&self, value: impl Into<Operand<'a>>) -> Result<&Tensor> {
        let value = value.into();
        if let Operand::Scalar(s) = value {
            s.checked_for("fill_", self.dtype())?;
        }
        call_inplace(&COPY, &[self.into(), value])?;
        Ok(self)
    }

    /// Sets every element to zero.
    pub fn zero_(&self) -> Result<&Tensor> {
        self.fill_(0.0)
    }

    /// A tensor with every element the same number.
    pub fn full(shape: &[usize], value: impl Into<Scalar>, dtype: DType, device: Device) -> Result<Tensor> {
        let value: Scalar = value.into();
        value.checked_for("full", dtype)?;
        let out = Tensor::empty(shape, dtype, device)?;
        if !device.is_meta() {
            fill_with(&out, value)?;
        }
        Ok(out)
    }

    /// The same values in memory of their own, laid out alike.
    pub fn copy(&self) -> Result<Tensor> {
        bind1(&Cast { dtype: None, format: MemoryFormat::Preserve }, &[self])
    }

    /// The same values in memory of their own, in a memory format.
    pub fn copy_in(&self, format: MemoryFormat) -> Result<Tensor> {
        bind1(&Cast { dtype: None, format }, &[self])
    }

    /// A dense copy whose dimensions lie in memory in this order, from the slowest to the fastest.
    pub(crate) fn copy_in_order(&self, order: &[usize]) -> Result<Tensor> {
        let there: SmallVec<[i64; 6]> = order.iter().map(|&d| d as i64).collect();
        let mut back: SmallVec<[i64; 6]> = SmallVec::from_elem(0, order.len());
        for (to, &from) in order.iter().enumerate() {
            back[from] = to as i64;
        }
        self.permute(&there)?.copy_in(MemoryFormat::Contiguous)?.permute(&back)
    }

    /// A dense copy whose dimensions lie in memory in the order of those of a layout of the same shape.
    pub(crate) fn laid_out_as(&self, layout: &Layout) -> Result<Tensor> {
        self.copy_in_order(&layout.stride_order())
    }

    /// This tensor if it is contiguous, else a contiguous copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copy_in(MemoryFormat::Contiguous) }
    }

    /// The values in another dtype; this tensor if it has that dtype.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        bind1(&Cast { dtype: Some(dtype), format: MemoryFormat::Preserve }, &[self])
    }
}
