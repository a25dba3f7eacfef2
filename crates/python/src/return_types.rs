//! Named tuples for results that have names: `torch.return_types.NAME`.

use crate::error::*;
use crate::tensor_type::wrap;
use flambeau_engine::Tensor;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::collections::HashMap;
use std::sync::Mutex;

static CLASSES: Mutex<Option<HashMap<String, Py<PyAny>>>> = Mutex::new(None);

/// The class of a row's results, made when it is first needed.
fn class<'py>(py: Python<'py>, name: &str, fields: &[&str]) -> Ret<Bound<'py, PyAny>> {
    let known = || CLASSES.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(found) = known().get_or_insert_default().get(name) {
        return Ok(found.bind(py).clone());
    }
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = MAKE.get_or_try_init(py, || py.import("flambeau.return_types").and_then(|m| m.getattr("_make")).map(Bound::unbind))?;
    let made = make.bind(py).call1((name, PyTuple::new(py, fields)?))?;
    known().get_or_insert_default().insert(name.to_owned(), made.clone().unbind());
    Ok(made)
}

/// Tensors as a named tuple.
pub fn named(py: Python<'_>, name: &str, fields: &[&str], tensors: impl Iterator<Item = Tensor>) -> Ret<Ptr> {
    let class = class(py, name, fields)?;
    let mut items = Vec::new();
    for t in tensors {
        // SAFETY: an owned reference.
        items.push(unsafe { Bound::from_owned_ptr(py, wrap(py, t)?) });
    }
    Ok(class.call1((PyTuple::new(py, items)?,))?.into_ptr())
}
