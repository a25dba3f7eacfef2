//! `Node`: a step of the recorded graph as Python sees it (`y.grad_fn`).

use crate::error::*;
use crate::function::PythonBackward;
use crate::hooks::{HookHandle, register_on_node};
use crate::tensor_type::wrap_bound;
use flambeau_engine::autograd::Node;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A recorded operation.
#[pyclass(name = "Node", module = "flambeau._C", frozen, weakref)]
pub struct NodeObject {
    node: Arc<Node>,
    metadata: Py<PyDict>,
}

/// Objects of nodes by the nodes' addresses, so that the same node is the same object while that lives.
static OBJECTS: Mutex<Option<HashMap<usize, Py<PyWeakrefReference>>>> = Mutex::new(None);

/// The object of a node: the context for a custom function.
pub fn node_object(py: Python<'_>, node: Arc<Node>) -> Ret<Ptr> {
    if let Some(custom) = node.custom_op().and_then(|c| c.as_any().downcast_ref::<PythonBackward>()) {
        // SAFETY: the node holds its context.
        return Ok(unsafe { ffi::Py_NewRef(custom.context_ptr()) });
    }
    let key = Arc::as_ptr(&node) as usize;
    let known = || OBJECTS.lock().unwrap_or_else(|e| e.into_inner());
    let found = known().get_or_insert_default().get(&key).and_then(|w| w.bind(py).upgrade());
    if let Some(found) = found {
        return Ok(found.into_ptr());
    }
    let object = Bound::new(py, NodeObject { node, metadata: PyDict::new(py).unbind() })?;
    let weak = PyWeakrefReference::new(object.as_any())?.unbind();
    let old = known().get_or_insert_default().insert(key, weak);
    drop(old);
    Ok(object.into_ptr())
}

impl Drop for NodeObject {
    fn drop(&mut self) {
        let key = Arc::as_ptr(&self.node) as usize;
        // The entry may be a newer object's, which then is alive.
        let old = {
            let mut known = OBJECTS.lock().unwrap_or_else(|e| e.into_inner());
            let dead = Python::attach(|py| known.as_ref().and_then(|k| k.get(&key)).is_some_and(|w| w.bind(py).upgrade().is_none()));
            if dead { known.as_mut().and_then(|k| k.remove(&key)) } else { None }
        };
        drop(old);
    }
}

/// Where the gradients of a node's inputs go: pairs of node (or None) and number of its output.
pub fn next_functions<'py>(py: Python<'py>, node: &Arc<Node>) -> Ret<Bound<'py, PyTuple>> {
    let mut items = Vec::new();
    for edge in node.next_edges() {
        let (object, output) = match edge {
            // SAFETY: an owned reference.
            Some(e) => (unsafe { Bound::from_owned_ptr(py, node_object(py, e.node.clone())?) }, e.output),
            None => (py.None().into_bound(py), 0),
        };
        items.push((object, output));
    }
    Ok(PyTuple::new(py, items)?)
}

#[pymethods]
impl NodeObject {
    /// The operation's name: `AddBackward0`.
    fn name(&self) -> String {
        self.node.name()
    }

    /// Where the gradients of its inputs go.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shielded(|| next_functions(py, &self.node))
    }

    /// A dictionary for the user's own notes.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.metadata.bind(py).clone()
    }

    /// The leaf whose gradient it adds to.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| match self.node.variable() {
            Some(leaf) => wrap_bound(py, leaf.clone()),
            None => Err(Raised(pyo3::exceptions::PyAttributeError::new_err(format!(
                "'{}' object has no attribute 'variable'",
                self.node.name()
            )))),
        })
    }

    /// Registers a function on the gradients that it makes (and was given).
    fn register_hook(&self, py: Python<'_>, fn_: &Bound<'_, PyAny>) -> PyResult<Py<HookHandle>> {
        shielded(|| register_on_node(py, &self.node, fn_, false))
    }

    /// Registers a function on the gradients that reach it.
    fn register_prehook(&self, py: Python<'_>, fn_: &Bound<'_, PyAny>) -> PyResult<Py<HookHandle>> {
        shielded(|| register_on_node(py, &self.node, fn_, true))
    }

    /// When it was recorded.
    fn _sequence_nr(&self) -> u64 {
        self.node.sequence()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!("<{} object at {:#x}>", slf.get().node.name(), slf.as_ptr() as usize)
    }
}
