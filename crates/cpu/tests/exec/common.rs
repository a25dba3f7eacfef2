//! Running programs on tensors.

use flambeau_cpu as _;
use flambeau_engine::Tensor;
use flambeau_engine::backend::{Operand, backend};
use flambeau_engine::base::{DType, Device, Result, Scalar};
use flambeau_engine::ir::{Body, Program, Val};

/// A program of one output.
pub fn program(inputs: &[DType], body: impl FnOnce(&mut Body, &[Val]) -> Val) -> Program {
    let mut k = Body::new(inputs);
    let values: Vec<Val> = (0..inputs.len()).map(|i| k.input(i)).collect();
    let out = body(&mut k, &values);
    k.finish(&[out]).unwrap()
}

/// Runs a program on tensors of one shape.
pub fn run(program: &Program, params: &[Scalar], inputs: &[&Tensor]) -> Result<Tensor> {
    let out = Tensor::empty(inputs[0].shape(), program.output_dtypes()[0], Device::CPU)?;
    let operand = |t: &Tensor| (t.data_ptr().unwrap(), t.dtype(), t.strides().to_vec());
    let ins: Vec<_> = inputs.iter().map(|t| operand(t)).collect();
    let ins: Vec<Operand> = ins.iter().map(|(ptr, dtype, strides)| Operand { ptr: *ptr, dtype: *dtype, strides }).collect();
    let (ptr, dtype, strides) = operand(&out);
    // SAFETY: the tensors have the shape, and the result is fresh.
    unsafe { backend(Device::CPU)?.pointwise(program, params, out.shape(), &[Operand { ptr, dtype, strides: &strides }], &ins)? };
    Ok(out)
}

/// Equal, or both NaN.
pub fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}
