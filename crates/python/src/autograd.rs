//! Backward and the gradient modes.

use crate::error::*;
use crate::node::{gradient_edge, node_of};
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{self as engine, BackwardOptions, Edge};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;

/// The place in the graph of a tensor, or of a `GradientEdge`: a tuple of node, number of its output and its keeper.
fn edge_of(x: &Bound<'_, PyAny>, missing: impl FnOnce() -> String) -> Ret<Edge> {
    if let Ok(tuple) = x.cast::<PyTuple>()
        && tuple.len() >= 2
    {
        return Ok(Edge { node: node_of(&tuple.get_item(0)?)?, output: tuple.get_item(1)?.extract()? });
    }
    expect_tensor(x)?.gradient_edge().ok_or_else(|| runtime_error(missing()))
}

thread_local! {
    /// For each backward that runs in this thread, what is to be called at its end.
    static CALLBACKS: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct Frame {
    callbacks: Vec<Py<PyAny>>,
    /// Whether it stops at given inputs.
    partial: bool,
    run: Option<Py<BackwardRun>>,
}

/// Stands for a backward that runs, and lives as long.
#[pyclass(name = "_BackwardRun", module = "flambeau._C", frozen, weakref)]
pub struct BackwardRun;

/// The backward that runs in this thread.
#[pyfunction]
fn _backward_run(py: Python<'_>) -> PyResult<Option<Py<BackwardRun>>> {
    let fresh = Py::new(py, BackwardRun)?;
    Ok(CALLBACKS.with_borrow_mut(|running| running.last_mut().map(|f| f.run.get_or_insert(fresh).clone_ref(py))))
}

/// Whether backwards that run in this thread add to all leaves: those that stop at given inputs do not see a backward inside.
#[pyfunction]
fn _is_checkpoint_valid() -> bool {
    CALLBACKS.with_borrow(|running| running.iter().all(|f| !f.partial))
}

/// Whether the backward that runs in this thread passes a node.
#[pyfunction]
fn _will_engine_execute_node(node: &Bound<'_, PyAny>) -> PyResult<bool> {
    shielded(|| Ok(engine::will_run(&node_of(node)?)))
}

/// Calls a function at the end of the backward that runs in this thread.
#[pyfunction]
fn _queue_callback(callback: Py<PyAny>) -> PyResult<()> {
    shielded(|| {
        CALLBACKS.with_borrow_mut(|running| match running.last_mut() {
            Some(frame) => {
                frame.callbacks.push(callback);
                Ok(())
            }
            None => Err(runtime_error("Final callbacks can only be installed during backward pass.")),
        })
    })
}

/// Runs a backward, then what was queued meanwhile.
fn with_callbacks<R>(py: Python<'_>, partial: bool, f: impl FnOnce() -> Ret<R>) -> Ret<R> {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            let old = CALLBACKS.with_borrow_mut(|c| c.pop());
            drop(old);
        }
    }
    CALLBACKS.with_borrow_mut(|c| c.push(Frame { partial, ..Frame::default() }));
    let _end = End;
    let result = f()?;
    let next = |at: usize| CALLBACKS.with_borrow(|c| c.last().and_then(|c| c.callbacks.get(at).map(|f| f.clone_ref(py))));
    let mut at = 0;
    while let Some(callback) = next(at) {
        callback.call0(py)?;
        at += 1;
    }
    Ok(result)
}

/// Runs backward from `roots` with their gradients (None: ones, for a tensor of one element).
///
/// With `accumulate` the gradients are added to the leaves' `grad` (those of `inputs` alone, if there are
/// some); without, the gradients of `inputs` are returned, None for those that were not reached. Roots and inputs are
/// tensors or places in the graph.
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
        let rootless = |i: usize| format!("element {i} of tensors does not require grad and does not have a grad_fn");
        let roots: Vec<Edge> = roots.iter().enumerate().map(|(i, x)| edge_of(&x, || rootless(i))).collect::<Ret<_>>()?;
        let unwatched = |i: usize| format!("One of the differentiated Tensors does not require grad (input {i})");
        let wanted: Vec<Edge> = inputs.iter().enumerate().map(|(i, x)| edge_of(&x, || unwatched(i))).collect::<Ret<_>>()?;
        let grads: Vec<Option<Tensor>> =
            grads.iter().map(|g| if g.is_none() { Ok(None) } else { expect_tensor(&g).map(|t| Some(t.clone())) }).collect::<Ret<_>>()?;
        let options = BackwardOptions { retain_graph, create_graph };
        if accumulate {
            let into = inputs.iter().map(|x| expect_tensor(&x).ok().cloned());
            let pairs: Vec<(Edge, Option<Tensor>)> = wanted.into_iter().zip(into).collect();
            with_callbacks(py, !pairs.is_empty(), || {
                Ok(engine::backward_from(&roots, &grads, (!pairs.is_empty()).then_some(&pairs[..]), options)?)
            })?;
            return Ok(py.None().into_bound(py));
        }
        let found = with_callbacks(py, true, || Ok(engine::grad_from(&roots, &wanted, &grads, options)?))?;
        if !allow_unused && let Some(i) = found.iter().position(Option::is_none) {
            return Err(runtime_error(format!(
                "One of the differentiated Tensors appears to not have been used in the graph (input {i}). Set allow_unused=True if this is the desired behavior."
            )));
        }
        let items = found.into_iter().map(|g| g.map_or_else(|| Ok(py.None().into_bound(py)), |g| wrap_bound(py, g)));
        Ok(PyTuple::new(py, items.collect::<Ret<Vec<_>>>()?)?.into_any())
    })
}

/// Counts a write to a tensor that happened behind autograd's back.
#[pyfunction]
fn _increment_version(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    shielded(|| {
        expect_tensor(tensor)?.bump_version();
        Ok(())
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
    crate::anomaly::register(m)?;
    crate::saved::register(m)?;
    m.add_function(wrap_pyfunction!(autograd_backward, m)?)?;
    m.add_function(wrap_pyfunction!(_queue_callback, m)?)?;
    m.add_function(wrap_pyfunction!(_backward_run, m)?)?;
    m.add_function(wrap_pyfunction!(_is_checkpoint_valid, m)?)?;
    m.add_function(wrap_pyfunction!(_will_engine_execute_node, m)?)?;
    m.add_function(wrap_pyfunction!(_increment_version, m)?)?;
    m.add_function(wrap_pyfunction!(gradient_edge, m)?)?;
    m.add_function(wrap_pyfunction!(is_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_inference_mode, m)?)?;
    m.add_function(wrap_pyfunction!(crate::function::function_attach, m)?)?;
    m.add_class::<crate::function::FunctionNode>()?;
    m.add_class::<crate::node::NodeObject>()?;
    m.add_class::<crate::node::NodeOwner>()?;
    m.add_class::<crate::hooks::HookHandle>()
}
