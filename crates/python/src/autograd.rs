//! Backward and the gradient modes.

use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{self as engine, BackwardOptions};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

fn tensors_of(tuple: &Bound<'_, PyTuple>) -> Ret<Vec<Tensor>> {
    tuple.iter().map(|x| expect_tensor(&x).cloned()).collect()
}

/// Runs backward from `roots` with their gradients (None: ones, for a tensor of one element).
///
/// With `accumulate` the gradients are added to the leaves' `grad` (those of `inputs` alone, if there are
/// some); without, the gradients of `inputs` are returned, None for those that were not reached.
#[pyfunction]
#[pyo3(name = "_autograd_backward")]
#[allow(clippy::fn_params_excessive_bools)]
pub fn autograd_backward<'py>(
    py: Python<'py>,
    roots: &Bound<'py, PyTuple>,
    grads: &Bound<'py, PyTuple>,
    retain_graph: bool,
    create_graph: bool,
    inputs: &Bound<'py, PyTuple>,
    allow_unused: bool,
    accumulate: bool,
) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let (roots, inputs) = (tensors_of(roots)?, tensors_of(inputs)?);
        let grads: Vec<Option<Tensor>> =
            grads.iter().map(|g| if g.is_none() { Ok(None) } else { expect_tensor(&g).map(|t| Some(t.clone())) }).collect::<Ret<_>>()?;
        let options = BackwardOptions { retain_graph, create_graph };
        let roots: Vec<&Tensor> = roots.iter().collect();
        let wanted: Vec<&Tensor> = inputs.iter().collect();
        if accumulate {
            engine::backward(&roots, &grads, (!wanted.is_empty()).then_some(&wanted[..]), options)?;
            return Ok(py.None().into_bound(py));
        }
        let found = engine::grad(&roots, &wanted, &grads, options)?;
        if !allow_unused && let Some(i) = found.iter().position(Option::is_none) {
            return Err(runtime_error(format!(
                "One of the differentiated Tensors appears to not have been used in the graph (input {i}). Set allow_unused=True if this is the desired behavior."
            )));
        }
        let items = found.into_iter().map(|g| g.map_or_else(|| Ok(py.None().into_bound(py)), |g| wrap_bound(py, g)));
        Ok(PyTuple::new(py, items.collect::<Ret<Vec<_>>>()?)?.into_any())
    })
}

/// Whether operations are recorded in this thread.
#[pyfunction]
fn is_grad_enabled() -> bool {
    engine::is_grad_enabled()
}

/// Switches recording in this thread.
#[pyfunction]
fn _set_grad_enabled(mode: bool) {
    engine::set_grad_enabled(mode);
}

/// Whether new tensors are inference tensors in this thread.
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    engine::is_inference()
}

/// Switches inference mode in this thread.
#[pyfunction]
fn _set_inference_mode(mode: bool) {
    engine::set_inference(mode);
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(autograd_backward, m)?)?;
    m.add_function(wrap_pyfunction!(is_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_inference_mode, m)?)?;
    m.add_function(wrap_pyfunction!(crate::function::function_attach, m)?)?;
    m.add_class::<crate::function::FunctionNode>()?;
    m.add_class::<crate::node::NodeObject>()?;
    m.add_class::<crate::hooks::HookHandle>()
}
