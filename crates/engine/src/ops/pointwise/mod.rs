//! Element by element: a scalar body, and everything that follows from it.
//!
//! A pointwise operation is a [`Spec`]: its dtype rule, its body in the kernel language, what its
//! derivative reads and the derivative itself. Broadcasting, every dtype, every backend, in-place and
//! `out=` forms and fusion follow.

mod activation;
mod arithmetic;
mod bessel;
mod bitwise;
mod compare;
mod complex;
mod copy;
mod division;
mod exponential;
mod gamma;
mod gelu;
mod logarithmic;
mod normal;
mod number;
mod polynomial;
mod power;
mod program;
mod rounding;
mod select;
mod shrink;
mod trigonometric;

pub(crate) use complex::CONJ_PHYSICAL;
pub(crate) use copy::{RESOLVE, fill_with};
pub use copy::{copy_into, expandable};
pub(crate) use division::DIV_TRUNC;
pub(crate) use power::power_of;
pub use program::{FusedOp, Link, fuse};
pub(crate) use select::MASKED_FILL;

use super::{OutSpec, Outputs, Primitive, Reads};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{Operand as Memory, backend};
use crate::transform::vectorize::Batch;
use crate::transform::{bind_inplace, bind_out, bind1};
use flambeau_base::{DType, Device, Error, Layout, Promotion, Result, Scalar, Strides, broadcast_all, default_dtype};
use flambeau_ir::{Body, Program, Val};
use smallvec::SmallVec;
use std::any::Any;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[super::Op]] = &[
    arithmetic::OPS,
    division::OPS,
    power::OPS,
    exponential::OPS,
    trigonometric::OPS,
    rounding::OPS,
    compare::OPS,
    bitwise::OPS,
    activation::OPS,
    gelu::OPS,
    complex::OPS,
    copy::OPS,
    shrink::OPS,
    number::OPS,
    logarithmic::OPS,
    gamma::OPS,
    normal::OPS,
    bessel::OPS,
    polynomial::OPS,
    select::OPS,
];

/// In which dtype a pointwise operation computes and what it gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The operands' common dtype.
    Common,
    /// The operands' common dtype; integers and bool become the default float.
    Float,
    /// Compared in the operands' common dtype; gives bool.
    Compare,
    /// Looks at each operand's truth; gives bool.
    Logical,
    /// The first operand is a bool that chooses; the others' common dtype.
    Select,
    /// The first operand's dtype, to which the others are converted: for in-place copies and derivatives.
    First,
    /// Common dtype; floats are refused.
    Integral,
    /// As [`Rule::Common`]; complex numbers give one of their parts' dtype.
    Real,
    /// As [`Rule::Float`]; complex numbers give one of their parts' dtype.
    RealFloat,
    /// Common dtype, a real float; gives the complex dtype of such parts.
    Complex,
}

/// A pointwise operation.
pub struct Spec {
    /// The name that errors and graphs show.
    pub name: &'static str,
    /// Its dtypes.
    pub rule: Rule,
    /// How many of the last operands are parameters: numbers that take no part in type promotion.
    pub params: usize,
    /// What it computes, on values of one dtype.
    pub body: fn(&mut Body, &[Val]) -> Val,
    /// Which operands and outputs the derivative reads.
    pub reads: Reads,
    /// Gradients of the operands for a gradient of the result; those of broadcast operands are summed afterwards.
    pub vjp: Option<fn(&OpCx, &Tensor) -> Result<Grads>>,
    /// Dtypes that it refuses, beyond those that its steps lack.
    pub refuses: fn(DType) -> bool,
    /// The derivative rule is written for complex numbers as it stands; see [`Spec::by_parts`].
    pub by_parts: bool,
}

impl Spec {
    /// An operation that has no derivative.
    pub const fn new(name: &'static str, rule: Rule, body: fn(&mut Body, &[Val]) -> Val) -> Spec {
        Spec { name, rule, params: 0, body, reads: Reads::NONE, vjp: None, refuses: |_| false, by_parts: false }
    }

    /// Its derivative and what that reads.
    pub const fn vjp(mut self, reads: Reads, vjp: fn(&OpCx, &Tensor) -> Result<Grads>) -> Spec {
        self.reads = reads;
        self.vjp = Some(vjp);
        self
    }

    /// It is not holomorphic: its rule gives the gradients of complex numbers by itself.
    ///
    /// Other rules are those of real numbers: of a complex gradient they are given the conjugate, and what they make of
    /// it is conjugated again, which is `g * conj(f')`.
    pub const fn by_parts(mut self) -> Spec {
        self.by_parts = true;
        self
    }

    /// So many of the last operands are parameters.
    pub const fn params(mut self, n: usize) -> Spec {
        self.params = n;
        self
    }

    /// Refuses dtypes.
    pub const fn refuses(mut self, which: fn(DType) -> bool) -> Spec {
        self.refuses = which;
        self
    }
}

/// An operand of a call: a tensor or a number.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(t: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(t)
    }
}

impl<'a, T: Into<Scalar>> From<T> for Operand<'a> {
    fn from(x: T) -> Operand<'a> {
        Operand::Scalar(x.into())
    }
}

/// An operand as a derivative sees it again.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Scalar(Scalar),
}

impl<'a> From<&'a Arg> for Operand<'a> {
    fn from(a: &'a Arg) -> Operand<'a> {
        match a {
            Arg::Tensor(t) => Operand::Tensor(t),
            Arg::Scalar(s) => Operand::Scalar(*s),
        }
    }
}

/// A pointwise operation with the numbers among its operands.
#[derive(Clone)]
pub struct Pointwise {
    pub(crate) spec: &'static Spec,
    /// One for each operand; `None` where it is a tensor.
    pub(crate) scalars: SmallVec<[Option<Scalar>; 3]>,
}

impl std::fmt::Debug for Pointwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.spec.name, self.scalars)
    }
}

/// What the derivative of a pointwise operation may ask for.
pub struct OpCx<'a> {
    cx: &'a Cx<'a>,
    op: &'a Pointwise,
}

impl OpCx<'_> {
    /// Operand `i`, as it was.
    pub fn operand(&self, i: usize) -> Result<Arg> {
        match self.op.scalars[i] {
            Some(s) => Ok(Arg::Scalar(s)),
            None => self.cx.input(self.op.input_of(i)).map(Arg::Tensor),
        }
    }

    /// Operand `i`, which is a tensor.
    pub fn tensor(&self, i: usize) -> Result<Tensor> {
        match self.operand(i)? {
            Arg::Tensor(t) => Ok(t),
            Arg::Scalar(_) => Err(Error::runtime(format!("{}: operand {i} is a number", self.op.spec.name))),
        }
    }

    /// The result.
    pub fn output(&self) -> Result<Tensor> {
        self.cx.output(0)
    }

    /// Whether operand `i` wants a gradient.
    pub fn needs(&self, i: usize) -> bool {
        self.op.scalars[i].is_none() && self.cx.needs(self.op.input_of(i))
    }

    /// The gradient of operand `i`, if it is wanted.
    pub fn when(&self, i: usize, grad: impl FnOnce() -> Result<Tensor>) -> Result<Option<Tensor>> {
        if self.needs(i) { grad().map(Some) } else { Ok(None) }
    }
}

impl Pointwise {
    #[inline]
    pub(crate) fn new(spec: &'static Spec, operands: &[Operand]) -> Pointwise {
        let mut scalars = SmallVec::new();
        for o in operands {
            scalars.push(match o {
                Operand::Tensor(_) => None,
                Operand::Scalar(s) => Some(*s),
            });
        }
        Pointwise { spec, scalars }
    }

    /// Which input operand `i`, a tensor, is.
    fn input_of(&self, i: usize) -> usize {
        self.scalars[..i].iter().filter(|s| s.is_none()).count()
    }

    /// The dtype in which the operation computes and that of the result.
    pub(crate) fn dtypes(&self, inputs: &[&Tensor]) -> Result<(DType, DType)> {
        let rule = self.spec.rule;
        let promoted = self.scalars.len() - self.spec.params;
        let mut promotion = Promotion::default();
        let mut next = inputs.iter();
        for (i, s) in self.scalars.iter().enumerate() {
            match s {
                None => {
                    let t = next.next().ok_or_else(|| Error::runtime("a pointwise operation lacks an operand"))?;
                    if rule == Rule::First && i == 0 {
                        return Ok((t.dtype(), t.dtype()));
                    }
                    let skip = (rule == Rule::Select && i == 0) || i >= promoted;
                    if !skip && t.has(crate::tensor::flag::NUMBER) {
                        promotion.scalar(t.item()?);
                    } else if !skip {
                        promotion.tensor(t.dtype(), t.ndim())?;
                    }
                }
                Some(s) if i < promoted => promotion.scalar(*s),
                Some(_) => {}
            }
        }
        let mut compute = promotion.result()?;
        if matches!(rule, Rule::Float | Rule::RealFloat) && compute.is_integral() {
            compute = default_dtype();
        }
        if (self.spec.refuses)(compute) || (rule == Rule::Integral && !compute.is_integral()) {
            return Err(Error::not_implemented(format!("{}: not implemented for {compute}", self.spec.name)));
        }
        let result = match rule {
            Rule::Compare | Rule::Logical => DType::Bool,
            Rule::Real | Rule::RealFloat => compute.to_real(),
            Rule::Complex => compute.to_complex(),
            _ => compute,
        };
        Ok((compute, result))
    }

    /// The numbers as the program's parameters. Those that are compared are rounded like the tensors they are compared with.
    fn params(&self, compute: DType) -> SmallVec<[Scalar; 3]> {
        let exact = !(self.spec.rule == Rule::Compare && compute.is_reduced_float());
        let round = |s: Scalar| {
            if exact { s } else { crate::with_element!(compute, T => <T as crate::tensor::Element>::from_scalar(s).to_scalar()) }
        };
        use crate::tensor::Element;
        self.scalars.iter().flatten().map(|&s| round(s)).collect()
    }

    fn result_layout(&self, inputs: &[&Tensor]) -> Result<Layout> {
        if let Some(layout) = Layout::of_alike(inputs.iter().map(|t| t.layout())) {
            return Ok(layout);
        }
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|t| t.layout()).collect();
        if inputs.iter().all(|t| t.shape() == inputs[0].shape()) {
            return Layout::of_result(inputs[0].shape(), &layouts);
        }
        let sizes = broadcast_all(self.spec.name, inputs.iter().map(|t| t.shape()))?;
        Layout::of_result(&sizes, &layouts)
    }

    /// Applies a derivative rule, see [`Spec::by_parts`].
    fn apply(&self, rule: fn(&OpCx, &Tensor) -> Result<Grads>, cx: &Cx, grad: &Tensor) -> Result<Grads> {
        let cx = OpCx { cx, op: self };
        let plain = self.spec.reads == Reads::NONE && !self.scalars.iter().flatten().any(|s| s.dtype().is_complex());
        if self.spec.by_parts || plain || !grad.dtype().is_complex() {
            return rule(&cx, grad);
        }
        let grads = rule(&cx, &grad.conj()?)?;
        grads.into_iter().map(|g| g.map(|g| g.conj()).transpose()).collect()
    }

    fn compute_with(&self, resolved: &program::Resolved, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        run_program(&resolved.program, &self.params(resolved.compute), inputs, outputs)
    }
}

impl Primitive for Pointwise {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let dtype = program::resolve(self, inputs)?.result;
        Ok(smallvec::smallvec![OutSpec { layout: self.result_layout(inputs)?, dtype }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        self.compute_with(&program::resolve(self, inputs)?, inputs, outputs)
    }

    /// As by default, with dtypes and program looked up once: this is the path of the smallest operations.
    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let resolved = program::resolve(self, inputs)?;
        let device = self.device(inputs)?;
        let out = Tensor::empty_layout(self.result_layout(inputs)?, resolved.result, device)?;
        if !device.is_meta() {
            self.compute_with(&resolved, inputs, std::slice::from_ref(&out))?;
        }
        Ok(smallvec::smallvec![out])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec::smallvec![None; cx.inputs()]) };
        let rule = self.spec.vjp.ok_or_else(|| Error::not_implemented(format!("derivative for {} is not implemented", self.spec.name)))?;
        let of_operands = self.apply(rule, cx, &grad)?;
        // Broadcast operands are summed to their shape by the engine, see `backward::fit`.
        Ok(of_operands.into_iter().zip(&self.scalars).filter(|(_, s)| s.is_none()).map(|(g, _)| g).collect())
    }

    fn reads(&self) -> Reads {
        let reads = self.spec.reads;
        let mut inputs = 0;
        for (i, _) in self.scalars.iter().enumerate().filter(|(i, s)| s.is_none() && reads.inputs >> i & 1 != 0) {
            inputs |= 1 << self.input_of(i);
        }
        Reads { inputs, ..reads }
    }

    fn differentiable(&self, _: usize) -> bool {
        self.spec.vjp.is_some()
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let ndim = batch.examples.iter().map(|t| t.ndim()).max().unwrap_or(0);
        let mut inputs: SmallVec<[Tensor; 3]> = (0..batch.inputs.len()).map(|i| batch.aligned(i, ndim)).collect::<Result<_>>()?;
        // A number for each example takes part in promotion as a number does, not as the vector of them would.
        let (compute, _) = self.dtypes(batch.examples)?;
        let below = self.dtypes(&inputs.iter().collect::<SmallVec<[&Tensor; 3]>>())?.0;
        if self.spec.rule != Rule::First && below != compute {
            for (i, t) in inputs.iter_mut().enumerate() {
                if batch.has_batch[i] && batch.examples[i].ndim() == 0 && t.dtype() != DType::Bool {
                    *t = t.to_dtype(compute)?;
                }
            }
        }
        crate::transform::bind(self, &inputs.iter().collect::<SmallVec<[&Tensor; 3]>>()).map(Some)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Runs a program over tensors broadcast to the first output's shape.
pub(crate) fn run_program(program: &Program, params: &[Scalar], inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
    let sizes: &[usize] = outputs[0].shape();
    if outputs[0].numel() == 0 {
        return Ok(());
    }
    let first = outputs[0].layout();
    if first.is_contiguous() && outputs[1..].iter().all(|t| t.layout().is_alike(first)) && inputs.iter().all(|t| t.layout().is_alike(first))
    {
        return run_flat(program, params, inputs, outputs);
    }
    let mut stretched = SmallVec::new();
    let ins = broadcast_operands(inputs, sizes, &mut stretched)?;
    let mut outs: SmallVec<[Memory; 1]> = SmallVec::new();
    for t in outputs {
        outs.push(Memory { ptr: t.data_ptr_mut()?, dtype: t.dtype(), strides: t.strides() });
    }
    // SAFETY: tensors' layouts stay inside their storages; `bind` hands on outputs that do not overlap themselves or, but for the very same elements, an input.
    unsafe { backend(outputs[0].device())?.pointwise(program, params, sizes, &outs, &ins) }
}

/// [`run_program`] where all elements lie one after the other: whatever the shape, it is one dimension.
fn run_flat(program: &Program, params: &[Scalar], inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
    let mut ins: SmallVec<[Memory; 4]> = SmallVec::new();
    for t in inputs {
        ins.push(Memory { ptr: t.data_ptr()?, dtype: t.dtype(), strides: &[1] });
    }
    let mut outs: SmallVec<[Memory; 1]> = SmallVec::new();
    for t in outputs {
        outs.push(Memory { ptr: t.data_ptr_mut()?, dtype: t.dtype(), strides: &[1] });
    }
    // SAFETY: as in `run_program`.
    unsafe { backend(outputs[0].device())?.pointwise(program, params, &[outputs[0].numel()], &outs, &ins) }
}

/// Tensors as operands broadcast to `sizes`; those of another shape get strides of their own, kept in `stretched`.
pub(crate) fn broadcast_operands<'a>(
    tensors: &[&'a Tensor],
    sizes: &[usize],
    stretched: &'a mut SmallVec<[Strides; 2]>,
) -> Result<SmallVec<[Memory<'a>; 4]>> {
    for t in tensors.iter().filter(|t| t.shape() != sizes) {
        stretched.push(Strides::from_slice(t.layout().broadcast_to(sizes).strides()));
    }
    let mut stretched = stretched.iter();
    let mut operands = SmallVec::new();
    for &t in tensors {
        let own = t.shape() == sizes;
        let strides = if own { t.strides() } else { stretched.next().map_or(&[][..], |s| s) };
        operands.push(Memory { ptr: t.data_ptr()?, dtype: t.dtype(), strides });
    }
    Ok(operands)
}

/// Calls a pointwise operation.
pub fn call(spec: &'static Spec, operands: &[Operand]) -> Result<Tensor> {
    let inputs: SmallVec<[&Tensor; 3]> = operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None }).collect();
    if inputs.is_empty() {
        return on_numbers(spec, operands);
    }
    bind1(&Pointwise::new(spec, operands), &inputs)
}

/// All operands are numbers: the first becomes a 0-dimensional tensor that counts as a number.
fn on_numbers(spec: &'static Spec, operands: &[Operand]) -> Result<Tensor> {
    let Some(Operand::Scalar(first)) = operands.first() else {
        return Err(Error::type_error(format!("{}: no operands", spec.name)));
    };
    let t = Tensor::number(*first)?;
    let mut all: SmallVec<[Operand; 3]> = SmallVec::from_slice(operands);
    all[0] = Operand::Tensor(&t);
    bind1(&Pointwise::new(spec, &all), &[&t])
}

/// Calls a pointwise operation in place on its first operand, which is a tensor.
pub fn call_inplace(spec: &'static Spec, operands: &[Operand]) -> Result<()> {
    let inputs: SmallVec<[&Tensor; 3]> = operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None }).collect();
    if !matches!(operands.first(), Some(Operand::Tensor(_))) {
        return Err(Error::type_error(format!("{}_: the first argument must be a Tensor", spec.name)));
    }
    if matches!(spec.rule, Rule::Real | Rule::RealFloat) && inputs[0].dtype().is_complex() {
        return Err(Error::runtime(format!("{0}_: In-place {0} is not supported for complex tensors.", spec.name)));
    }
    bind_inplace(&Pointwise::new(spec, operands), &inputs)
}

/// Calls a pointwise operation with `out=`.
///
/// # Safety
/// No other thread uses `out` during the call.
pub unsafe fn call_out(spec: &'static Spec, operands: &[Operand], out: &Tensor) -> Result<()> {
    let inputs: SmallVec<[&Tensor; 3]> = operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None }).collect();
    if inputs.is_empty() {
        let result = on_numbers(spec, operands)?;
        // SAFETY: the caller's.
        return unsafe { crate::transform::put_out(spec.name, out, &result) };
    }
    // SAFETY: the caller's.
    unsafe { bind_out(&Pointwise::new(spec, operands), &inputs, &[out]) }
}

/// The number that an operand is; 0 for a tensor.
pub(crate) fn scalar_of(a: &Arg) -> Scalar {
    match a {
        Arg::Scalar(s) => *s,
        Arg::Tensor(_) => Scalar::Int(0),
    }
}

/// The gradients of an operation with one operand.
pub(crate) fn one(grad: Result<Tensor>) -> Result<Grads> {
    Ok(smallvec::smallvec![Some(grad?)])
}

/// No gradient flows: the operation is constant almost everywhere.
pub(crate) fn flat(g: &Tensor) -> Result<Grads> {
    one(Tensor::zeros(g.shape(), g.dtype(), g.device()))
}

impl Tensor {
    /// A 0-dimensional tensor for a number; it takes part in type promotion as the number does.
    pub fn number(s: Scalar) -> Result<Tensor> {
        let t = Tensor::full(&[], s, s.dtype(), Device::CPU)?;
        t.set_flag(crate::tensor::flag::NUMBER, true);
        Ok(t)
    }
}
