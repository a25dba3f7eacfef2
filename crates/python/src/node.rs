//! `Node`: a step of the recorded graph as Python sees it (`y.grad_fn`).

use crate::error::*;
use crate::front::Held;
use crate::function::{FunctionNode, PythonBackward};
use crate::hooks::{HookHandle, register_on_node};
use crate::saved::SavedTensor;
use crate::tensor_type::{expect_tensor, wrap_bound};
use flambeau_engine::autograd::Node;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType, PyWeakrefMethods, PyWeakrefReference};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A recorded operation.
#[pyclass(name = "Node", module = "flambeau._C", frozen, weakref, subclass)]
pub struct NodeObject {
    node: Arc<Node>,
}

/// A dictionary of notes, kept by the engine's node.
pub struct Metadata(Held);

impl Metadata {
    /// The dictionary.
    pub fn as_ptr(&self) -> Ptr {
        self.0.as_ptr()
    }
}

/// The dictionary of a node's notes.
pub fn metadata<'py>(py: Python<'py>, node: &Arc<Node>) -> Bound<'py, PyAny> {
    if let Some(custom) = node.custom_op().and_then(|c| c.as_any().downcast_ref::<PythonBackward>()) {
        return custom.node().notes(py).into_any();
    }
    let notes = node.notes(|| Arc::new(Metadata(Held::new(PyDict::new(py).as_any()))));
    match notes.downcast_ref::<Metadata>() {
        Some(found) => found.0.bind(py),
        None => PyDict::new(py).into_any(),
    }
}

/// Keeps a node: the object of a custom function's node does not.
#[pyclass(name = "_NodeOwner", module = "flambeau._C", frozen)]
pub struct NodeOwner(#[allow(dead_code, reason = "held, never read")] Arc<Node>);

/// The node of an object that shows one.
pub fn node_of(object: &Bound<'_, PyAny>) -> Ret<Arc<Node>> {
    if let Ok(node) = object.cast::<NodeObject>() {
        return Ok(node.get().node.clone());
    }
    match object.cast::<FunctionNode>() {
        Ok(context) => context.get().live(),
        Err(_) => Err(type_error(format!("expected a node of the graph, got {}", crate::tensor_type::type_name(object.as_ptr())))),
    }
}

/// [`node_object`], counted.
pub fn node_bound(py: Python<'_>, node: Arc<Node>) -> Ret<Bound<'_, PyAny>> {
    // SAFETY: an owned reference.
    Ok(unsafe { Bound::from_owned_ptr(py, node_object(py, node)?) })
}

/// The node that a tensor's gradient goes to, the number of the node's output, and what keeps the node.
#[pyfunction]
#[pyo3(name = "_gradient_edge")]
pub fn gradient_edge<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, u32, Option<NodeOwner>)> {
    shielded(|| {
        let Some(edge) = expect_tensor(tensor)?.gradient_edge() else {
            return Err(runtime_error("It is not possible to get the gradient edge for a Tensor that does not require gradients"));
        };
        let object = node_bound(tensor.py(), edge.node.clone())?;
        let owner = object.cast::<FunctionNode>().is_ok().then(|| NodeOwner(edge.node.clone()));
        Ok((object, edge.output, owner))
    })
}

thread_local! {
    /// The node of the object that is being made.
    static COMING: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

/// Classes of nodes by name: `MulBackward0`, `AccumulateGrad`.
static CLASSES: Mutex<Option<HashMap<String, Py<PyAny>>>> = Mutex::new(None);

fn class_of<'py>(py: Python<'py>, name: &str) -> Ret<Bound<'py, PyAny>> {
    let known = CLASSES.lock().unwrap_or_else(|e| e.into_inner()).as_ref().and_then(|c| c.get(name).map(|c| c.clone_ref(py)));
    if let Some(class) = known {
        return Ok(class.into_bound(py));
    }
    let body = PyDict::new(py);
    body.set_item("__module__", "flambeau._C")?;
    body.set_item("__slots__", ())?;
    let bases = PyTuple::new(py, [py.get_type::<NodeObject>()])?;
    let class = py.get_type::<PyType>().call1((name, bases, body))?;
    CLASSES.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_default().insert(name.into(), class.clone().unbind());
    Ok(class)
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
    let class = class_of(py, &node.name())?;
    COMING.set(Some(node));
    let object = class.call0()?;
    let weak = PyWeakrefReference::new(&object)?.unbind();
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
            Some(e) => (node_bound(py, e.node.clone())?, e.output),
            None => (py.None().into_bound(py), 0),
        };
        items.push((object, output));
    }
    Ok(PyTuple::new(py, items)?)
}

/// Where a node keeps what PyTorch calls so: inputs come first, outputs last.
fn saved_place(node: &Node, which: &str) -> Option<usize> {
    let inputs = node.next_edges().len();
    let place = match which {
        "self" | "input" => 0,
        "other" | "weight" | "mat2" | "exponent" | "target" | "index" | "tensor1" => 1,
        "tensor2" => 2,
        _ => match which.strip_prefix("result") {
            Some("") => inputs,
            Some(digits) => inputs + digits.parse::<usize>().ok()?,
            None => return None,
        },
    };
    (place < inputs + node.output_infos().len()).then_some(place)
}

#[pymethods]
impl NodeObject {
    #[new]
    fn new() -> PyResult<NodeObject> {
        match COMING.take() {
            Some(node) => Ok(NodeObject { node }),
            None => Err(pyo3::exceptions::PyTypeError::new_err("cannot create 'Node' instances: they are recorded")),
        }
    }

    /// The operation's name: `AddBackward0`.
    fn name(&self) -> String {
        if self.node.variable().is_some() { "torch::autograd::AccumulateGrad".into() } else { self.node.name() }
    }

    /// `_saved_self`, `_saved_other`, `_saved_result` and the like: what it keeps for backward; with `_raw_saved_`, as an
    /// object that hooks can be put on.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let (py, node) = (slf.py(), &slf.get().node);
            let (raw, place) = match (name.strip_prefix("_saved_"), name.strip_prefix("_raw_saved_")) {
                (Some(which), _) => (false, saved_place(node, which)),
                (_, Some(which)) => (true, saved_place(node, which)),
                _ => (false, None),
            };
            match place {
                Some(place) if raw => Ok(Bound::new(py, SavedTensor::of_node(node.clone(), place))?.into_any()),
                Some(place) => node.saved_tensor(place)?.map_or_else(|| Ok(py.None().into_bound(py)), |t| wrap_bound(py, t)),
                None => {
                    let text = format!("'{}' object has no attribute '{name}'", node.name());
                    Err(Raised(pyo3::exceptions::PyAttributeError::new_err(text)))
                }
            }
        })
    }

    /// For each tensor saved for backward: the address of its memory, and how many bytes of it the tensor is.
    fn _saved_memory(&self) -> Vec<(usize, usize)> {
        self.node.saved_memory()
    }

    /// The shapes of its outputs.
    fn _output_shapes(&self) -> Vec<Vec<usize>> {
        self.node.output_infos().iter().map(|o| o.sizes.to_vec()).collect()
    }

    /// Where the gradients of its inputs go.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shielded(|| next_functions(py, &self.node))
    }

    /// A dictionary for the user's own notes.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        metadata(py, &self.node)
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
