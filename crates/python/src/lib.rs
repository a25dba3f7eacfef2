//! The native half of the Python package: `flambeau._C`.
//!
//! A client of the engine's public interface. [`tensor_type`] makes the tensor type, [`table`] puts the
//! operations on it and into the modules, [`parse`] reads their arguments after the operations' signatures.

#![allow(non_snake_case, reason = "the module has the name that PyTorch gives it")]

mod anomaly;
mod attributes;
mod autocast;
mod autograd;
mod conversion;
mod convert;
mod data;
mod dlpack;
mod dtype;
mod error;
mod files;
mod front;
mod function;
mod hooks;
mod index;
mod methods;
mod misc;
mod node;
mod numpy;
mod objects;
mod op_function;
mod operators;
mod optim;
mod parse;
mod printing;
mod profile;
mod return_types;
mod saved;
mod size;
mod storage;
mod table;
mod tensor_type;
mod transform;
mod unlocked;

use error::Ret;
use flambeau_engine::ops::table::place;
use pyo3::ffi;
use pyo3::prelude::*;

// Names the backend, so that it is linked and registers itself.
use flambeau_cpu as _;

/// The tensor type with its operators, attributes and methods.
fn make_tensor_type(py: Python<'_>) -> Ret<()> {
    let mut slots = operators::slots();
    slots.push(ffi::PyType_Slot { slot: ffi::Py_mp_subscript, pfunc: index::get as *mut _ });
    slots.push(ffi::PyType_Slot { slot: ffi::Py_mp_ass_subscript, pfunc: index::set as *mut _ });
    slots.push(ffi::PyType_Slot { slot: ffi::Py_tp_getset, pfunc: attributes::getset() });
    slots.push(ffi::PyType_Slot { slot: ffi::Py_tp_methods, pfunc: methods::methods() });
    tensor_type::make_type(py, slots)
}

/// A module inside this one, for the operations of a place.
fn submodule<'py>(m: &Bound<'py, PyModule>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    let py = m.py();
    let full = format!("flambeau._C.{name}");
    let sub = PyModule::new(py, &full)?;
    m.add(name, &sub)?;
    py.import("sys")?.getattr("modules")?.set_item(full, &sub)?;
    Ok(sub)
}

fn fill(m: &Bound<'_, PyModule>) -> Ret<()> {
    let py = m.py();
    front::install();
    make_tensor_type(py)?;
    op_function::make_type(py)?;
    // SAFETY: the type was just made, and is never destroyed.
    let base = unsafe { Bound::from_borrowed_ptr(py, tensor_type::base_type().cast()) };
    m.add("TensorBase", &base)?;
    m.add("OutOfMemoryError", error::out_of_memory_class(py)?)?;
    m.add("_LinAlgError", error::linalg_class(py)?)?;
    let places =
        [(place::NN, submodule(m, "_nn")?), (place::SPECIAL, submodule(m, "_special")?), (place::LINALG, submodule(m, "_linalg")?)];
    table::install(m, &places, &base)?;
    dtype::register(m)?;
    objects::register(m)?;
    size::register(m)?;
    autocast::register(m)?;
    autograd::register(m)?;
    m.add_class::<storage::StorageObject>()?;
    m.add_function(wrap_pyfunction!(tensor_type::set_tensor_class, m)?)?;
    m.add_function(wrap_pyfunction!(data::tensor, m)?)?;
    m.add_function(wrap_pyfunction!(data::as_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(data::tensor_from_storage, m)?)?;
    m.add_function(wrap_pyfunction!(numpy::from_numpy, m)?)?;
    m.add_function(wrap_pyfunction!(dlpack::to_dlpack, m)?)?;
    m.add_function(wrap_pyfunction!(dlpack::from_dlpack, m)?)?;
    files::register(m)?;
    misc::register(m)?;
    optim::register(m)?;
    printing::register(m)?;
    profile::register(m)?;
    transform::register(m)?;
    Ok(())
}

/// `flambeau._C`.
#[pymodule]
#[pyo3(name = "_C")]
fn native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    error::shielded(|| fill(m))
}
