//! Custom functions: the context of a call is the node of the graph.
//!
//! The node owns the context; the context knows its node weakly, and keeps the saved tensors. So a cycle
//! from a tensor through its node to the context and back lies open to Python's collector.

use crate::error::*;
use crate::front::Held;
use crate::hooks::{HookHandle, grads_of, grads_tuple, register_on_node};
use crate::saved::SavedTensor;
use crate::tensor_type::*;
use flambeau_base::{Error, Result as EngineResult};
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{CustomBackward, Grads, Kept, Node, Output, SavedHooks, attach, visit_owned_by};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// What a context keeps for backward.
#[derive(Default)]
struct State {
    kept: Vec<Option<Kept>>,
    released: bool,
    materialize: bool,
}

/// The native half of a context: `_C._FunctionNode`.
#[pyclass(name = "_FunctionNode", module = "flambeau._C", subclass, frozen, weakref)]
pub struct FunctionNode {
    node: OnceLock<Weak<Node>>,
    state: Mutex<State>,
    metadata: Mutex<Option<Py<PyDict>>>,
}

impl FunctionNode {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The tensors kept, out of the lock: hooks may look at the context.
    fn kept(&self) -> Vec<Option<Kept>> {
        self.state().kept.clone()
    }

    /// The dictionary of notes.
    pub fn notes<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        let mut place = self.metadata.lock().unwrap_or_else(|e| e.into_inner());
        place.get_or_insert_with(|| PyDict::new(py).unbind()).bind(py).clone()
    }

    /// The `i`th saved tensor.
    pub fn saved_tensor(&self, i: usize) -> Ret<Option<Tensor>> {
        if self.state().released {
            return Err(freed());
        }
        let node = self.live()?;
        Ok(self.kept().get(i).and_then(|k| k.as_ref()).map(|k| k.unpack(&node)).transpose()?)
    }

    /// Puts hooks on the `i`th saved tensor.
    pub fn hook_saved(&self, i: usize, hooks: &dyn SavedHooks) -> Ret<()> {
        if self.state().released {
            return Err(freed());
        }
        let Some(kept) = self.kept().get(i).cloned().flatten() else {
            return Err(runtime_error("Calling register_hooks on a saved tensor with value None is forbidden"));
        };
        let hooked = kept.hooked(hooks)?;
        let old = self.state().kept.get_mut(i).and_then(|k| k.replace(hooked));
        drop(old);
        Ok(())
    }

    /// The node of a recorded call.
    pub fn live(&self) -> Ret<Arc<Node>> {
        self.node.get().and_then(Weak::upgrade).ok_or_else(|| {
            runtime_error(
                "the graph that this context belongs to is not there (any more): the call was not recorded, or its results are gone",
            )
        })
    }
}

#[pymethods]
impl FunctionNode {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> FunctionNode {
        FunctionNode { node: OnceLock::new(), state: Mutex::default(), metadata: Mutex::new(None) }
    }

    /// The tensors that were saved, in order. `RuntimeError` where one was changed in place since.
    #[getter]
    fn saved_tensors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        shielded(|| {
            let py = slf.py();
            let this = slf.get();
            if this.state().released {
                return Err(freed());
            }
            if this.node.get().is_none() {
                // Before the call is recorded, and where it never is, what was saved is what was given.
                let given = slf.getattr("_to_save")?;
                return Ok(given.cast_into::<PyTuple>().unwrap_or_else(|_| PyTuple::empty(py)));
            }
            let node = this.live()?;
            let tensors: Vec<Option<Tensor>> =
                this.kept().iter().map(|k| k.as_ref().map(|k| k.unpack(&node)).transpose()).collect::<EngineResult<_>>()?;
            let items = tensors.into_iter().map(|t| t.map_or_else(|| Ok(py.None().into_bound(py)), |t| wrap_bound(py, t)));
            Ok(PyTuple::new(py, items.collect::<Ret<Vec<_>>>()?)?)
        })
    }

    /// The node's name.
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.get_type().name()?.to_string())
    }

    /// Where the gradients of its inputs go.
    #[getter]
    fn next_functions<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        shielded(|| crate::node::next_functions(slf.py(), &slf.get().live()?))
    }

    /// A dictionary for the user's own notes.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.notes(py)
    }

    /// What it has saved, as objects that hooks can be put on.
    #[getter]
    fn _raw_saved_tensors(slf: &Bound<'_, Self>) -> PyResult<Vec<SavedTensor>> {
        shielded(|| {
            let this = slf.get();
            if this.state().released {
                return Err(freed());
            }
            let count = this.state().kept.len();
            Ok((0..count).map(|i| SavedTensor::of_context(slf.clone().unbind(), i)).collect())
        })
    }

    /// For each saved tensor: the address of its memory, and how many bytes of it the tensor is.
    fn _saved_memory(&self) -> Vec<(usize, usize)> {
        self.kept().iter().flatten().filter_map(Kept::memory).collect()
    }

    /// The shapes of its outputs.
    fn _output_shapes(&self) -> PyResult<Vec<Vec<usize>>> {
        shielded(|| Ok(self.live()?.output_infos().iter().map(|o| o.sizes.to_vec()).collect()))
    }

    /// When it was recorded.
    fn _sequence_nr(&self) -> PyResult<u64> {
        shielded(|| Ok(self.live()?.sequence()))
    }

    /// Registers a function on the gradients that it makes (and was given).
    fn register_hook(&self, py: Python<'_>, fn_: &Bound<'_, PyAny>) -> PyResult<Py<HookHandle>> {
        shielded(|| register_on_node(py, &self.live()?, fn_, false))
    }

    /// Registers a function on the gradients that reach it.
    fn register_prehook(&self, py: Python<'_>, fn_: &Bound<'_, PyAny>) -> PyResult<Py<HookHandle>> {
        shielded(|| register_on_node(py, &self.live()?, fn_, true))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector stops the world of this lock's users: they hold the GIL.
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        if let Ok(metadata) = self.metadata.try_lock()
            && let Some(dict) = metadata.as_ref()
        {
            visit.call(dict)?;
        }
        let mut result = Ok(());
        visit_owned_by(state.kept.iter().flatten(), &mut |owned| {
            if result.is_ok()
                && let Some(object) = object_of(owned)
            {
                result = visit.call(&*object);
            }
        });
        result
    }

    fn __clear__(&self) {
        let old = std::mem::take(&mut self.state().kept);
        drop(old);
    }
}

#[cold]
fn freed() -> Raised {
    runtime_error(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved tensors are freed by the first backward: specify retain_graph=True if you need them again.",
    )
}

/// A reference that is shown to the collector and not counted.
fn object_of(owned: flambeau_engine::autograd::Owned<'_>) -> Option<ManuallyDrop<Py<PyAny>>> {
    use flambeau_engine::autograd::Owned;
    let ptr: Ptr = match owned {
        Owned::Object(object) => object.as_ptr().cast(),
        Owned::Foreign(any) => crate::hooks::python_object(any)?,
    };
    // SAFETY: `Py` is a plain pointer, this one is alive, and the copy is never dropped.
    Some(ManuallyDrop::new(unsafe { std::mem::transmute::<Ptr, Py<PyAny>>(ptr) }))
}

/// A context as the engine's derivative.
pub struct PythonBackward {
    context: Held,
    name: String,
}

impl PythonBackward {
    /// The context.
    pub fn context_ptr(&self) -> Ptr {
        self.context.as_ptr()
    }
}

impl CustomBackward for PythonBackward {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn backward(&self, node: &Arc<Node>, grads: Grads) -> EngineResult<Grads> {
        Python::attach(|py| self.run(py, node, grads)).map_err(|r| to_error(r.0))
    }

    fn release(&self) {
        let old = {
            let mut state = self.node().state();
            state.released = !state.kept.is_empty();
            std::mem::take(&mut state.kept)
        };
        drop(old);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PythonBackward {
    /// The native half of the context.
    pub fn node(&self) -> &FunctionNode {
        // SAFETY: the held object is a context (see `function_attach`), whose native half is frozen.
        unsafe { std::mem::transmute::<&Held, &Py<FunctionNode>>(&self.context) }.get()
    }

    fn run(&self, py: Python<'_>, node: &Arc<Node>, mut grads: Grads) -> Ret<Grads> {
        let context = self.context.bind(py);
        if self.node().state().materialize {
            for (grad, info) in grads.iter_mut().zip(node.output_infos()) {
                if grad.is_none() {
                    *grad = Some(Tensor::zeros(&info.sizes, info.dtype, info.device)?);
                }
            }
        }
        let answer = context.call_method1("_run_backward", (grads_tuple(py, &grads)?,))?;
        let made = grads_of(&answer)?;
        if made.len() != node.next_edges().len() {
            return Err(Raised(to_exception(Error::runtime(format!(
                "function {} returned an incorrect number of gradients (expected {}, got {})",
                self.name,
                node.next_edges().len(),
                made.len()
            )))));
        }
        Ok(made)
    }
}

/// Records a call: gives the outputs, whose history is the context.
///
/// `outputs`, `dirty` and `non_differentiable` are tensors; `to_save` tensors or None.
#[pyfunction]
#[pyo3(name = "_function_attach")]
pub fn function_attach<'py>(
    py: Python<'py>,
    ctx: &Bound<'py, FunctionNode>,
    args: &Bound<'py, PyTuple>,
    outputs: &Bound<'py, PyTuple>,
    to_save: &Bound<'py, PyTuple>,
    dirty: &Bound<'py, PyTuple>,
    non_differentiable: &Bound<'py, PyTuple>,
    materialize: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    shielded(|| {
        // SAFETY: tuples hold objects, and live during the call.
        let tensor = |x: &Bound<'py, PyAny>| unsafe { tensor_of(x.as_ptr()) }.cloned();
        let inputs: Vec<Option<Tensor>> = args.iter().map(|x| tensor(&x)).collect();
        let is_in = |x: &Bound<'py, PyAny>, tuple: &Bound<'py, PyTuple>| tuple.iter().any(|y| y.is(x));
        let mut given = Vec::new();
        for x in outputs.iter() {
            let t = expect_tensor(&x)?.clone();
            let how = if is_in(&x, dirty) {
                Output::Dirty
            } else if is_in(&x, non_differentiable) {
                Output::NonDifferentiable
            } else if is_in(&x, args) {
                Output::Input
            } else {
                Output::Fresh
            };
            given.push((t, how));
        }
        let name = ctx.get_type().name()?.to_string();
        let op = PythonBackward { context: Held::new(ctx.as_any()), name };
        let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
        let (node, made) = attach(Box::new(op), &refs, &given)?;
        let this = ctx.get();
        if this.node.set(Arc::downgrade(&node)).is_err() {
            return Err(runtime_error(format!("{}: a context belongs to one call", node.name())));
        }
        {
            let mut kept = Vec::new();
            for x in to_save.iter() {
                kept.push(match outputs.iter().position(|o| o.is(&x)) {
                    _ if x.is_none() => None,
                    // An output is kept as the tensor that carries the history.
                    Some(i) if !is_in(&x, non_differentiable) => Some(Kept::output(&made[i], i)?),
                    _ => Some(Kept::input(expect_tensor(&x)?)?),
                });
            }
            let mut state = this.state();
            state.kept = kept;
            state.materialize = materialize;
        }
        let items: Vec<Bound<'py, PyAny>> = made.into_iter().map(|t| wrap_bound(py, t)).collect::<Ret<_>>()?;
        Ok(PyTuple::new(py, items)?)
    })
}
