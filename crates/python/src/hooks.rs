//! Python functions as the engine's hooks.

use crate::error::*;
use crate::front::Held;
use crate::tensor_type::*;
use flambeau_base::Result as EngineResult;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{Grads, HookId, Node, NodeHook, TensorHook};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyWeakrefReference};
use std::any::Any;
use std::sync::{Arc, Weak};

/// A Python function that sees a gradient.
pub struct GradientHook {
    function: Held,
    /// Whether it is given the tensor itself and answers nothing.
    observer: bool,
}

impl TensorHook for GradientHook {
    fn call(&self, grad: &Tensor) -> EngineResult<Option<Tensor>> {
        Python::attach(|py| self.run(py, grad)).map_err(|r| to_error(r.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl GradientHook {
    fn run(&self, py: Python<'_>, grad: &Tensor) -> Ret<Option<Tensor>> {
        let arg = wrap_bound(py, grad.clone())?;
        let answer = self.function.bind(py).call1((arg,))?;
        if answer.is_none() || self.observer {
            return Ok(None);
        }
        let new = expect_tensor(&answer)
            .map_err(|_| type_error(format!("expected Variable (a Tensor or None), but hook returned '{}'", type_name(answer.as_ptr()))))?;
        if new.shape() != grad.shape() {
            let (name, old, new) = (name_of(&self.function.bind(py)), grad.shape(), new.shape());
            return Err(runtime_error(format!("hook '{name}' has changed the size of value (was {old:?} got {new:?})")));
        }
        if new.dtype() != grad.dtype() {
            let (name, old, new) = (name_of(&self.function.bind(py)), grad.dtype(), new.dtype());
            return Err(runtime_error(format!("hook '{name}' has changed the type of value (was {old} got {new})")));
        }
        Ok(Some(new.clone()))
    }
}

/// A Python function that sees what goes into or comes out of a node.
pub struct GraphHook {
    function: Held,
    before: bool,
}

impl NodeHook for GraphHook {
    fn call(&self, inputs: &Grads, outputs: &Grads) -> EngineResult<Option<Grads>> {
        Python::attach(|py| self.run(py, inputs, outputs)).map_err(|r| to_error(r.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A function's name, for messages.
fn name_of(function: &Bound<'_, PyAny>) -> String {
    let name = function.getattr("__name__").or_else(|_| function.get_type().name().map(|n| n.into_any()));
    name.map_or_else(|_| "?".into(), |n| n.to_string())
}

/// Gradients as a tuple, None where there is none.
pub fn grads_tuple<'py>(py: Python<'py>, grads: &Grads) -> Ret<Bound<'py, PyTuple>> {
    let items: Vec<Bound<'py, PyAny>> =
        grads.iter().map(|g| g.as_ref().map_or_else(|| Ok(py.None().into_bound(py)), |g| wrap_bound(py, g.clone()))).collect::<Ret<_>>()?;
    Ok(PyTuple::new(py, items)?)
}

/// Gradients of a Python answer: a tensor, None, or a tuple of them.
pub fn grads_of(answer: &Bound<'_, PyAny>) -> Ret<Grads> {
    // SAFETY: a `Bound` is an object.
    let one = |x: &Bound<'_, PyAny>| if x.is_none() { Ok(None) } else { expect_tensor(x).map(|t| Some(t.clone())) };
    // SAFETY: as above.
    if answer.is_none() || unsafe { is_tensor(answer.as_ptr()) } {
        return Ok(Grads::from_iter([one(answer)?]));
    }
    answer.try_iter()?.map(|x| one(&x?)).collect()
}

impl GraphHook {
    fn run(&self, py: Python<'_>, inputs: &Grads, outputs: &Grads) -> Ret<Option<Grads>> {
        let function = &self.function.bind(py);
        let answer = if self.before {
            function.call1((grads_tuple(py, inputs)?,))?
        } else {
            // PyTorch's order: what the node made, then what it was given.
            function.call1((grads_tuple(py, outputs)?, grads_tuple(py, inputs)?))?
        };
        if answer.is_none() {
            return Ok(None);
        }
        if !answer.is_instance_of::<PyTuple>() {
            return Err(type_error(format!("expected tuple, but hook returned '{}'", type_name(answer.as_ptr()))));
        }
        let new = grads_of(&answer)?;
        let old = if self.before { inputs } else { outputs };
        if new.len() != old.len() {
            return Err(runtime_error(format!(
                "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
                name_of(function),
                new.len(),
                old.len()
            )));
        }
        Ok(Some(new))
    }
}

/// The Python object in a hook or a custom derivative of ours, for the collector.
pub fn python_object(any: &dyn Any) -> Option<Ptr> {
    if let Some(h) = any.downcast_ref::<GradientHook>() {
        return Some(h.function.as_ptr());
    }
    if let Some(h) = any.downcast_ref::<GraphHook>() {
        return Some(h.function.as_ptr());
    }
    if let Some(p) = any.downcast_ref::<crate::saved::PythonPacked>() {
        return Some(p.as_ptr());
    }
    if let Some(n) = any.downcast_ref::<crate::node::Metadata>() {
        return Some(n.as_ptr());
    }
    any.downcast_ref::<crate::function::PythonBackward>().map(|b| b.context_ptr())
}

enum Place {
    Tensor(Py<PyWeakrefReference>),
    Node(Weak<Node>),
}

/// Takes a hook away again.
#[pyclass(name = "_HookHandle", module = "flambeau._C", frozen, weakref)]
pub struct HookHandle {
    place: Place,
    id: HookId,
}

#[pymethods]
impl HookHandle {
    /// A number that no other hook has.
    #[getter]
    fn id(&self) -> u64 {
        self.id.number()
    }

    /// Takes the hook away; a second call does nothing.
    fn remove(&self, py: Python<'_>) {
        match &self.place {
            Place::Tensor(weak) => {
                if let Some(object) = pyo3::types::PyWeakrefMethods::upgrade(weak.bind(py))
                    && let Ok(t) = expect_tensor(&object)
                {
                    t.remove_hook(self.id);
                }
            }
            Place::Node(weak) => {
                if let Some(node) = weak.upgrade() {
                    node.remove_hook(self.id);
                }
            }
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.remove(py);
    }
}

fn check_callable(hook: &Bound<'_, PyAny>) -> Ret<()> {
    if hook.is_callable() { Ok(()) } else { Err(type_error(format!("a hook must be callable, got {}", type_name(hook.as_ptr())))) }
}

/// Registers a Python function on a tensor's gradient, or (`after`) for when a leaf's gradient has been accumulated.
pub fn register<'py>(object: &Bound<'py, PyAny>, hook: &Bound<'py, PyAny>, after: bool) -> Ret<Ptr> {
    check_callable(hook)?;
    let t = expect_tensor(object)?;
    let function = GradientHook { function: Held::new(hook), observer: after };
    let history = if after { None } else { t.grad_fn() };
    let id = if after { t.add_accumulated_hook(Arc::new(function))? } else { t.add_hook(Arc::new(function))? };
    let place = match history {
        Some(node) => Place::Node(Arc::downgrade(&node)),
        None => Place::Tensor(PyWeakrefReference::new(object)?.unbind()),
    };
    Ok(Py::new(object.py(), HookHandle { place, id })?.into_ptr())
}

/// Registers a Python function on a node.
pub fn register_on_node(py: Python<'_>, node: &Arc<Node>, hook: &Bound<'_, PyAny>, before: bool) -> Ret<Py<HookHandle>> {
    check_callable(hook)?;
    let function = Arc::new(GraphHook { function: Held::new(hook), before });
    let id = if before { node.add_pre_hook(function) } else { node.add_post_hook(function) };
    Ok(Py::new(py, HookHandle { place: Place::Node(Arc::downgrade(node)), id })?)
}
