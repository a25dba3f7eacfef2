//! Reductions: identity, combination and finish.

mod extremes;
mod fused;
mod logsumexp;
mod moments;
mod norm;
mod order;
mod product;
mod statistics;
mod sum;
mod truth;

pub use fused::FusedReduce;

use super::pointwise::broadcast_operands;
use super::{OutSpec, Primitive, Reads};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{Combine, Operand as Memory, Reduce, backend};
use crate::hash::QuickHasher;
use crate::ops::Outputs;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, Result, Scalar, Strides};
use flambeau_ir::{Body, Program, Val};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[super::Op]] =
    &[sum::OPS, product::OPS, extremes::OPS, truth::OPS, moments::OPS, norm::OPS, logsumexp::OPS, order::OPS, statistics::OPS];

/// A reduction: what an element goes through, how elements combine, what the accumulators go through.
pub struct ReduceSpec {
    /// The name that errors and graphs show.
    pub name: &'static str,
    /// How elements combine.
    pub combine: Combine,
    /// What each element goes through first, in the accumulator's dtype.
    pub map: fn(&mut Body, Val) -> Val,
    /// Results from the accumulators; the last value is the number of elements reduced, in the accumulator's dtype, followed by the call's numbers.
    pub finish: fn(&mut Body, &[Val]) -> SmallVec<[Val; 1]>,
    /// Dtypes of the results for an input's (or asked-for) dtype.
    pub results: fn(DType) -> SmallVec<[DType; 1]>,
    /// What the derivative reads.
    pub reads: Reads,
    /// The gradient of the input, for those of the results.
    pub vjp: Option<fn(&ReduceCx, &mut Grads) -> Result<Option<Tensor>>>,
}

/// A reduction over some dimensions.
#[derive(Clone)]
pub struct Reduction {
    pub(crate) spec: &'static ReduceSpec,
    /// Bit `d`: dimension `d` is reduced.
    pub(crate) dims: u64,
    pub(crate) keepdim: bool,
    /// The dtype to which the input is converted first.
    pub(crate) dtype: Option<DType>,
    pub(crate) params: SmallVec<[Scalar; 1]>,
}

impl std::fmt::Debug for Reduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}(dims={:b}, keepdim={}, {:?}, {:?})", self.spec.name, self.dims, self.keepdim, self.dtype, self.params)
    }
}

/// What a reduction's derivative may ask for.
pub struct ReduceCx<'a> {
    pub(crate) cx: &'a Cx<'a>,
    pub(crate) op: &'a Reduction,
}

impl ReduceCx<'_> {
    /// A result's gradient with the reduced dimensions put back as size 1, so that it broadcasts against the input.
    pub fn spread(&self, grad: &Tensor) -> Result<Tensor> {
        if self.op.keepdim {
            return Ok(grad.clone());
        }
        let Some(info) = self.cx.input_info(0) else { return Ok(grad.clone()) };
        let sizes: SmallVec<[i64; 6]> =
            info.sizes.iter().enumerate().map(|(d, &n)| if self.op.reduces(d) { 1 } else { n as i64 }).collect();
        grad.reshape(&sizes)
    }

    /// The input's shape, as `expand` takes it.
    pub fn input_sizes(&self) -> SmallVec<[i64; 6]> {
        self.cx.input_info(0).map(|i| i.sizes.iter().map(|&n| n as i64).collect()).unwrap_or_default()
    }

    /// How many elements go into a result.
    pub fn count(&self) -> usize {
        let Some(info) = self.cx.input_info(0) else { return 1 };
        info.sizes.iter().enumerate().filter(|(d, _)| self.op.reduces(*d)).map(|(_, n)| n).product()
    }
}

impl Reduction {
    pub(crate) fn reduces(&self, d: usize) -> bool {
        self.dims >> d & 1 != 0
    }

    /// The reduced dimensions of an input.
    pub(crate) fn dims_list(&self, ndim: usize) -> SmallVec<[i64; 6]> {
        (0..ndim).filter(|&d| self.reduces(d)).map(|d| d as i64).collect()
    }

    fn kept_sizes(&self, sizes: &[usize]) -> Dims {
        sizes
            .iter()
            .enumerate()
            .filter(|(d, _)| self.keepdim || !self.reduces(*d))
            .map(|(d, &n)| if self.reduces(d) { 1 } else { n })
            .collect()
    }

    fn map_program(&self, from: DType, dtype: DType) -> Result<Program> {
        let mut body = Body::new(&[from]);
        let x = body.input(0);
        let x = body.convert(x, dtype);
        let x = body.convert(x, dtype.accumulator_of(self.spec.combine_keeps_dtype()));
        let x = (self.spec.map)(&mut body, x);
        body.finish(&[x])
    }

    fn finish_program(&self, accumulators: &[DType], results: &[DType]) -> Result<Program> {
        let mut body = Body::new(accumulators);
        let mut values: SmallVec<[Val; 4]> = (0..accumulators.len()).map(|i| body.input(i)).collect();
        for p in 0..=self.params.len() {
            values.push(body.param(accumulators[0], p));
        }
        let outs = (self.spec.finish)(&mut body, &values);
        let outs: SmallVec<[Val; 1]> = outs.into_iter().zip(results).map(|(v, &d)| body.convert(v, d)).collect();
        body.finish(&outs)
    }
}

impl ReduceSpec {
    /// Maxima, truths and their kin need no wider accumulator.
    fn combine_keeps_dtype(&self) -> bool {
        !matches!(self.combine, Combine::Sum | Combine::Prod | Combine::Moments)
    }
}

trait AccumulatorOf {
    fn accumulator_of(self, same: bool) -> DType;
}

impl AccumulatorOf for DType {
    fn accumulator_of(self, same: bool) -> DType {
        if same { self } else { self.accumulator() }
    }
}

/// Dtypes of the accumulators for elements of a dtype.
fn accumulators(combine: Combine, element: DType) -> SmallVec<[DType; 2]> {
    match combine {
        Combine::ArgMax | Combine::ArgMin => smallvec![element, DType::I64],
        Combine::Moments => smallvec![element, element],
        Combine::Any | Combine::All => smallvec![DType::Bool],
        _ => smallvec![element],
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    spec: usize,
    from: DType,
    dtype: DType,
    params: usize,
}

type Programs = Arc<(Program, Program)>;

thread_local! {
    static CACHE: RefCell<HashMap<Key, Programs, BuildHasherDefault<QuickHasher>>> = RefCell::default();
}

impl Primitive for Reduction {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        self.results_for(inputs[0].shape(), inputs[0].dtype())
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let programs = self.programs(inputs[0].dtype())?;
        self.run_on(inputs[0].shape(), &programs.0, &[], inputs, &programs.1, outputs)
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let rule = self.spec.vjp.ok_or_else(|| Error::not_implemented(format!("derivative for {} is not implemented", self.spec.name)))?;
        Ok(smallvec![rule(&ReduceCx { cx, op: self }, grads)?])
    }

    fn reads(&self) -> Reads {
        self.spec.reads
    }

    fn differentiable(&self, _: usize) -> bool {
        self.spec.vjp.is_some()
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(&Reduction { dims: self.dims << 1, ..self.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Reduction {
    /// What the results are for elements of a dtype over these sizes.
    fn results_for(&self, sizes: &[usize], element: DType) -> Result<SmallVec<[OutSpec; 1]>> {
        let layout = Layout::contiguous(&self.kept_sizes(sizes))?;
        let results = (self.spec.results)(self.dtype.unwrap_or(element));
        Ok(results.into_iter().map(|dtype| OutSpec { layout: layout.clone(), dtype }).collect())
    }

    /// Reduces what a program makes of inputs broadcast to `sizes`.
    fn run_on(
        &self,
        sizes: &[usize],
        program: &Program,
        params: &[Scalar],
        inputs: &[&Tensor],
        finish: &Program,
        outputs: &[Tensor],
    ) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let reduced: SmallVec<[bool; 6]> = (0..sizes.len()).map(|d| self.reduces(d)).collect();
        let count: usize = sizes.iter().zip(&reduced).filter(|(_, r)| **r).map(|(n, _)| n).product();
        let mut finish_params: SmallVec<[Scalar; 2]> = smallvec![Scalar::Int(count as i64)];
        self.params.iter().for_each(|&p| finish_params.push(p));
        let mut stretched = SmallVec::new();
        let ins = broadcast_operands(inputs, sizes, &mut stretched)?;
        let out_strides: SmallVec<[Strides; 1]> = outputs.iter().map(|o| self.output_strides(o, sizes.len())).collect();
        let mut outs: SmallVec<[Memory; 1]> = SmallVec::new();
        for (o, strides) in outputs.iter().zip(&out_strides) {
            outs.push(Memory { ptr: o.data_ptr_mut()?, dtype: o.dtype(), strides });
        }
        let call = Reduce {
            combine: self.spec.combine,
            sizes,
            reduced: &reduced,
            program,
            params,
            inputs: &ins,
            finish,
            finish_params: &finish_params,
            outputs: &outs,
        };
        // SAFETY: tensors' layouts stay inside their storages; the outputs are fresh or checked by `bind`.
        unsafe { backend(outputs[0].device())?.reduce(&call) }
    }

    fn programs(&self, from: DType) -> Result<Programs> {
        let dtype = self.dtype.unwrap_or(from);
        let key = Key { spec: self.spec as *const _ as usize, from, dtype, params: self.params.len() };
        if let Some(found) = CACHE.with(|c| c.borrow().get(&key).cloned()) {
            return Ok(found);
        }
        let map = self.map_program(from, dtype).map_err(|e| e.context(self.spec.name))?;
        let accumulators = accumulators(self.spec.combine, map.output_dtypes()[0]);
        let finish = self.finish_program(&accumulators, &(self.spec.results)(dtype)).map_err(|e| e.context(self.spec.name))?;
        let programs = Arc::new((map, finish));
        CACHE.with(|c| c.borrow_mut().insert(key, programs.clone()));
        Ok(programs)
    }

    /// Strides of a result over all dimensions, reduced ones standing still.
    fn output_strides(&self, out: &Tensor, ndim: usize) -> Strides {
        let mut kept = out.strides().iter();
        (0..ndim)
            .map(|d| match (self.reduces(d), self.keepdim) {
                (true, true) => {
                    kept.next();
                    0
                }
                (true, false) => 0,
                (false, _) => kept.next().copied().unwrap_or(0),
            })
            .collect()
    }
}

/// Dimensions as bits. None, or an empty list where `empty_is_all`, stands for all of them.
pub(crate) fn dims_mask(op: &str, dims: Option<&[i64]>, ndim: usize, empty_is_all: bool) -> Result<u64> {
    let all = if ndim >= 64 { u64::MAX } else { (1u64 << ndim) - 1 };
    let dims = match dims {
        None => return Ok(all),
        Some([]) if empty_is_all => return Ok(all),
        Some(dims) => dims,
    };
    let mut mask = 0;
    for &d in dims {
        let bit = 1u64 << flambeau_base::wrap_dim(op, d, ndim)?;
        if mask & bit != 0 {
            return Err(Error::runtime(format!("{op}: dim {d} appears multiple times in the list of dims {dims:?}")));
        }
        mask |= bit;
    }
    Ok(mask & all)
}

/// Refuses to choose from nothing.
fn check_not_empty(op: &str, x: &Tensor, dims: u64, named: bool) -> Result<()> {
    if x.numel() > 0 {
        return Ok(());
    }
    if !named {
        return Err(Error::runtime(format!(
            "{op}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )));
    }
    match (0..x.ndim()).find(|&d| dims >> d & 1 != 0 && x.shape()[d] == 0) {
        Some(d) => Err(Error::index(format!("{op}(): Expected reduction dim {d} to have non-zero size."))),
        None => Ok(()),
    }
}
