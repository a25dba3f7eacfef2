//! From a call to a program of the kernel language, and from several calls to one program.

use super::{Pointwise, Rule};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::{OutSpec, Primitive};
use flambeau_base::{DType, Error, Layout, Result, Scalar, broadcast_all};
use flambeau_ir::{Body, Program, Val};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What a program depends on: the operation, which operands are tensors of which dtype, and the dtypes of the computation.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    spec: usize,
    operands: SmallVec<[Option<DType>; 4]>,
    compute: DType,
    result: DType,
}

thread_local! {
    /// Bounded by the number of operations times the combinations of dtypes in use.
    static CACHE: RefCell<HashMap<Key, Arc<Program>>> = RefCell::new(HashMap::new());
}

/// The program of an operation on inputs of these dtypes.
pub(super) fn cached(op: &Pointwise, inputs: &[&Tensor], compute: DType, result: DType) -> Result<Arc<Program>> {
    let mut tensors = inputs.iter();
    let operands = op.scalars.iter().map(|s| if s.is_none() { tensors.next().map(|t| t.dtype()) } else { None }).collect();
    let key = Key { spec: op.spec as *const _ as usize, operands, compute, result };
    if let Some(found) = CACHE.with(|c| c.borrow().get(&key).cloned()) {
        return Ok(found);
    }
    let program = build(op, &key.operands, compute, result).map_err(|e| e.context(op.spec.name))?;
    let program = Arc::new(program);
    CACHE.with(|c| c.borrow_mut().insert(key, program.clone()));
    Ok(program)
}

fn build(op: &Pointwise, operands: &[Option<DType>], compute: DType, result: DType) -> Result<Program> {
    let inputs: SmallVec<[DType; 4]> = operands.iter().copied().flatten().collect();
    let mut body = Body::new(&inputs);
    let (mut input, mut param) = (0, 0);
    let mut values: SmallVec<[Val; 4]> = SmallVec::new();
    for (i, dtype) in operands.iter().enumerate() {
        let value = match dtype {
            Some(_) => {
                input += 1;
                body.input(input - 1)
            }
            None => {
                param += 1;
                body.param(compute, param - 1)
            }
        };
        let want = match op.spec.rule {
            Rule::Select if i == 0 => DType::Bool,
            Rule::Logical => DType::Bool,
            _ => compute,
        };
        values.push(body.convert(value, want));
    }
    let out = (op.spec.body)(&mut body, &values);
    let out = body.convert(out, result);
    body.finish(&[out])
}

/// Several pointwise operations run as one program.
///
/// Made by [`fuse`]; each step rounds as the operation did alone, so the results are the same to the bit.
#[derive(Clone)]
pub struct FusedOp {
    program: Arc<Program>,
    params: Vec<Scalar>,
}

impl std::fmt::Debug for FusedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fused({:?}, {:?})", self.program, self.params)
    }
}

/// One operation of a chain that is to be fused: its values are numbers into the chain's own list, inputs first.
pub struct Link<'a> {
    /// The operation.
    pub op: &'a Pointwise,
    /// Which values it reads, with a tensor of each value's dtype and rank to infer from.
    pub inputs: Vec<(usize, &'a Tensor)>,
}

/// Puts a chain of pointwise operations into one program.
///
/// `inputs` are the dtypes of the chain's inputs; link `i` makes value `inputs.len() + i`. Gives the values named by `outputs`.
pub fn fuse(inputs: &[DType], links: &[Link], outputs: &[usize]) -> Result<FusedOp> {
    let mut body = Body::new(inputs);
    let mut values: Vec<Val> = (0..inputs.len()).map(|i| body.input(i)).collect();
    let mut params = Vec::new();
    for link in links {
        let tensors: Vec<&Tensor> = link.inputs.iter().map(|(_, t)| *t).collect();
        let (compute, result) = link.op.dtypes(&tensors)?;
        let program = cached(link.op, &tensors, compute, result)?;
        let args: Vec<Val> = link.inputs.iter().map(|(v, _)| values[*v]).collect();
        let made = body.inline(&program, &args, params.len());
        params.extend(link.op.params(compute));
        values.push(made[0]);
    }
    let outputs: Vec<Val> = outputs.iter().map(|&v| values[v]).collect();
    Ok(FusedOp { program: Arc::new(body.finish(&outputs)?), params })
}

impl FusedOp {
    /// The program that runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The numbers that go with it.
    pub fn params(&self) -> &[Scalar] {
        &self.params
    }
}

impl Primitive for FusedOp {
    fn name(&self) -> &'static str {
        "fused"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let sizes = broadcast_all("fused", inputs.iter().map(|t| t.shape()))?;
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|t| t.layout()).collect();
        let layout = Layout::of_result(&sizes, &layouts)?;
        Ok(self.program.output_dtypes().into_iter().map(|dtype| OutSpec { layout: layout.clone(), dtype }).collect())
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        super::run_program(&self.program, &self.params, inputs, outputs)
    }

    fn vjp(&self, _: &Cx, _: &mut Grads) -> Result<Grads> {
        Err(Error::runtime("fused: a fused group is made after differentiation"))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
