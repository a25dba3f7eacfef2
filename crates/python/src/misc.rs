//! Small things: threads, what the processor can, questions about dtypes.

use crate::dtype::{DTypeObject, dtype_object};
use crate::error::*;
use crate::tensor_type::*;
use flambeau_cpu::pool;
use pyo3::prelude::*;

/// How many threads an operation may use.
#[pyfunction]
fn get_num_threads() -> usize {
    pool::num_threads()
}

/// Sets how many threads an operation may use.
#[pyfunction]
fn set_num_threads(int: i64) -> PyResult<()> {
    if int < 1 {
        return Err(pyo3::exceptions::PyRuntimeError::new_err(format!("expected a positive number of threads, got {int}")));
    }
    pool::set_num_threads(int as usize);
    Ok(())
}

/// The instruction set that kernels use.
#[pyfunction]
fn _cpu_capability() -> String {
    flambeau_cpu::isa::level().name().to_uppercase()
}

/// Whether a tensor's dtype is a real floating point type.
#[pyfunction]
fn is_floating_point(input: &Bound<'_, PyAny>) -> PyResult<bool> {
    shielded(|| Ok(expect_tensor(input)?.dtype().is_float()))
}

/// Whether a tensor's dtype is complex.
#[pyfunction]
fn is_complex(input: &Bound<'_, PyAny>) -> PyResult<bool> {
    shielded(|| Ok(expect_tensor(input)?.dtype().is_complex()))
}

/// The number of elements of a tensor.
#[pyfunction]
fn numel(input: &Bound<'_, PyAny>) -> PyResult<usize> {
    shielded(|| Ok(expect_tensor(input)?.numel()))
}

/// The dtype that holds the values of both.
#[pyfunction]
fn promote_types<'py>(
    py: Python<'py>,
    type1: &Bound<'py, DTypeObject>,
    type2: &Bound<'py, DTypeObject>,
) -> PyResult<Bound<'py, DTypeObject>> {
    shielded(|| Ok(dtype_object(py, type1.get().0.promote(type2.get().0)?)?))
}

/// Whether values of a dtype are converted implicitly to another.
#[pyfunction]
fn can_cast(from_: &Bound<'_, DTypeObject>, to: &Bound<'_, DTypeObject>) -> bool {
    from_.get().0.can_cast(to.get().0)
}

/// A storage that holds these bytes.
#[pyfunction]
fn _storage_from_bytes(data: &[u8]) -> PyResult<crate::storage::StorageObject> {
    shielded(|| Ok(crate::storage::StorageObject(flambeau_engine::Tensor::from_slice(data, &[data.len()])?.storage().clone())))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(_cpu_capability, m)?)?;
    m.add_function(wrap_pyfunction!(is_floating_point, m)?)?;
    m.add_function(wrap_pyfunction!(is_complex, m)?)?;
    m.add_function(wrap_pyfunction!(numel, m)?)?;
    m.add_function(wrap_pyfunction!(promote_types, m)?)?;
    m.add_function(wrap_pyfunction!(can_cast, m)?)?;
    m.add_function(wrap_pyfunction!(_storage_from_bytes, m)?)
}
