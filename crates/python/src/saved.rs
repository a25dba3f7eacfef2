//! Hooks on tensors that are saved for backward, as Python functions; and what a node has saved.

use crate::error::*;
use crate::front::Held;
use crate::function::FunctionNode;
use crate::tensor_type::*;
use flambeau_base::Result as EngineResult;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{self as engine, Node, Packed, SavedHooks, WriteHook};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::any::Any;
use std::sync::Arc;

/// A pair of Python functions.
struct PythonHooks {
    pack: Held,
    unpack: Held,
}

impl PythonHooks {
    fn new(pack: &Bound<'_, PyAny>, unpack: &Bound<'_, PyAny>) -> Ret<PythonHooks> {
        for (what, f) in [("pack", pack), ("unpack", unpack)] {
            if !f.is_callable() {
                return Err(type_error(format!("the {what} hook of saved tensors must be callable, got {}", type_name(f.as_ptr()))));
            }
        }
        Ok(PythonHooks { pack: Held::new(pack), unpack: Held::new(unpack) })
    }

    fn run(&self, py: Python<'_>, t: &Tensor) -> Ret<Held> {
        let value = self.pack.bind(py).call1((wrap_bound(py, t.clone())?,))?;
        Ok(Held::new(PyTuple::new(py, [value, self.unpack.bind(py)])?.as_any()))
    }
}

impl SavedHooks for PythonHooks {
    fn pack(&self, t: &Tensor) -> EngineResult<Box<dyn Packed>> {
        let pair = Python::attach(|py| self.run(py, t)).map_err(|r| to_error(r.0))?;
        Ok(Box::new(PythonPacked(pair)))
    }
}

/// What a pack hook gave, and the unpack hook: a tuple, so that the collector has one object to see.
pub struct PythonPacked(Held);

impl PythonPacked {
    /// The tuple.
    pub fn as_ptr(&self) -> Ptr {
        self.0.as_ptr()
    }

    fn run(&self, py: Python<'_>) -> Ret<Tensor> {
        let pair = self.0.bind(py);
        let answer = pair.get_item(1)?.call1((pair.get_item(0)?,))?;
        Ok(expect_tensor(&answer)
            .map_err(|_| {
                let got = type_name(answer.as_ptr());
                type_error(format!("Output of saved tensor unpack_hook expected to be a Tensor but got result of type {got}"))
            })?
            .clone())
    }
}

impl Packed for PythonPacked {
    fn unpack(&self) -> EngineResult<Tensor> {
        Python::attach(|py| self.run(py)).map_err(|r| to_error(r.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Where a saved tensor is.
enum Place {
    Node(Arc<Node>, usize),
    Context(Py<FunctionNode>, usize),
}

/// A tensor that a node keeps for backward.
#[pyclass(name = "SavedTensor", module = "flambeau._C", frozen)]
pub struct SavedTensor(Place);

impl SavedTensor {
    /// The one at a place of a node.
    pub fn of_node(node: Arc<Node>, place: usize) -> SavedTensor {
        SavedTensor(Place::Node(node, place))
    }

    /// The `i`th of a custom function.
    pub fn of_context(context: Py<FunctionNode>, i: usize) -> SavedTensor {
        SavedTensor(Place::Context(context, i))
    }
}

#[pymethods]
impl SavedTensor {
    /// Puts a pair of hooks on it: what `pack_hook` returns is kept, `unpack_hook` makes a tensor of that.
    ///
    /// RuntimeError where the tensor was freed, is None, or has hooks.
    fn register_hooks(&self, pack_hook: &Bound<'_, PyAny>, unpack_hook: &Bound<'_, PyAny>) -> PyResult<()> {
        shielded(|| {
            let hooks = PythonHooks::new(pack_hook, unpack_hook)?;
            match &self.0 {
                Place::Node(node, place) => Ok(node.hook_saved(*place, &hooks)?),
                Place::Context(context, i) => context.get().hook_saved(*i, &hooks),
            }
        })
    }

    /// The tensor. RuntimeError where it was freed, or changed in place since.
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let found = match &self.0 {
                Place::Node(node, place) => node.saved_tensor(*place)?,
                Place::Context(context, i) => context.get().saved_tensor(*i)?,
            };
            found.map_or_else(|| Ok(py.None().into_bound(py)), |t| wrap_bound(py, t))
        })
    }
}

/// From now on tensors saved in this thread go through these functions.
#[pyfunction]
fn _push_saved_tensors_default_hooks(pack_hook: &Bound<'_, PyAny>, unpack_hook: &Bound<'_, PyAny>) -> PyResult<()> {
    shielded(|| Ok(engine::push_saved_hooks(Arc::new(PythonHooks::new(pack_hook, unpack_hook)?))?))
}

/// Takes back the pair that was pushed last.
#[pyfunction]
fn _pop_saved_tensors_default_hooks() {
    engine::pop_saved_hooks();
}

/// Forbids hooks in this thread, with the text of the error.
#[pyfunction]
fn _saved_tensors_hooks_disable(message: String) -> PyResult<()> {
    shielded(|| engine::forbid_saved_hooks(Some(message)).map(|_| ()).map_err(Raised::from))
}

/// Allows them again.
#[pyfunction]
fn _saved_tensors_hooks_enable() -> PyResult<()> {
    shielded(|| engine::forbid_saved_hooks(None).map(|_| ()).map_err(Raised::from))
}

/// Whether hooks are allowed in this thread.
#[pyfunction]
fn _saved_tensors_hooks_is_enabled() -> bool {
    engine::saved_hooks_forbidden().is_none()
}

/// The text with which they are forbidden.
#[pyfunction]
fn _saved_tensors_hooks_get_disabled_error_message() -> Option<String> {
    engine::saved_hooks_forbidden()
}

/// A Python function that is called before tensors are written to.
struct PythonWriteHook(Held);

impl WriteHook for PythonWriteHook {
    fn before(&self, t: &Tensor) -> EngineResult<()> {
        let run = |py: Python<'_>| -> Ret<()> {
            self.0.bind(py).call1((wrap_bound(py, t.clone())?,))?;
            Ok(())
        };
        Python::attach(run).map_err(|r| to_error(r.0))
    }
}

/// From now on `hook` is called with each tensor that this thread is about to write to in place.
#[pyfunction]
fn _push_write_hook(hook: &Bound<'_, PyAny>) {
    engine::push_write_hook(Arc::new(PythonWriteHook(Held::new(hook))));
}

/// Takes back the hook that was pushed last.
#[pyfunction]
fn _pop_write_hook() {
    engine::pop_write_hook();
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_push_saved_tensors_default_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_saved_tensors_default_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_tensors_hooks_disable, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_tensors_hooks_enable, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_tensors_hooks_is_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_tensors_hooks_get_disabled_error_message, m)?)?;
    m.add_function(wrap_pyfunction!(_push_write_hook, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_write_hook, m)?)?;
    m.add_class::<SavedTensor>()
}
