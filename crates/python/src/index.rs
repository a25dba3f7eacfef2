//! `x[...]` and `x[...] = y`: Python's indices as the engine's.

use crate::convert::{int_of, plain_number, scalar_of};
use crate::error::*;
use crate::tensor_type::*;
use flambeau_base::{DType, Device, Scalar};
use flambeau_engine::Tensor;
use flambeau_engine::ops::Operand;
use flambeau_engine::ops::index::IndexItem;
use pyo3::exceptions::PyIndexError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use smallvec::SmallVec;
use std::ffi::c_int;

type Items = SmallVec<[IndexItem; 4]>;

fn slice(py: Python<'_>, slice: Ptr) -> Ret<IndexItem> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: callers hold a slice object.
    if unsafe { ffi::PySlice_Unpack(slice, &mut start, &mut stop, &mut step) } < 0 {
        return Err(Raised(PyErr::fetch(py)));
    }
    if step <= 0 {
        return Err(value_error("step must be greater than zero"));
    }
    Ok(IndexItem::Slice { start: Some(start as i64), stop: (stop != isize::MAX).then_some(stop as i64), step: Some(step as i64) })
}

/// A tensor as an index: one integer without dimensions is an integer.
fn tensor_item(t: &Tensor) -> Ret<IndexItem> {
    let integer = t.dtype().is_integral() && !matches!(t.dtype(), DType::Bool | DType::U8);
    if t.ndim() == 0 && integer && !t.device().is_meta() {
        return Ok(IndexItem::Int(t.item()?.to_i64()));
    }
    if !t.dtype().is_integral() {
        return Err(Raised(PyIndexError::new_err(format!(
            "tensors used as indices must be long, int, byte or bool tensors, got {}",
            t.dtype()
        ))));
    }
    Ok(IndexItem::Tensor(t.clone()))
}

/// One item of an index.
#[inline]
fn item(py: Python<'_>, ptr: Ptr) -> Ret<IndexItem> {
    // SAFETY: callers hold an object.
    unsafe {
        if ffi::Py_TYPE(ptr) == &raw mut ffi::PyLong_Type {
            return match int_of(py, ptr)? {
                Some(n) => Ok(IndexItem::Int(n)),
                None => Err(type_error("an integer index")),
            };
        }
        if ffi::Py_TYPE(ptr) == &raw mut ffi::PySlice_Type {
            return slice(py, ptr);
        }
        if ptr == ffi::Py_None() {
            return Ok(IndexItem::NewAxis);
        }
        if ptr == ffi::Py_Ellipsis() {
            return Ok(IndexItem::Ellipsis);
        }
        if let Some(t) = tensor_of(ptr) {
            return tensor_item(t);
        }
    }
    match plain_number(py, ptr)? {
        Some(Scalar::Bool(b)) => return Ok(IndexItem::Bool(b)),
        Some(Scalar::Int(n)) => return Ok(IndexItem::Int(n)),
        Some(_) => return Err(not_an_index(ptr)),
        None => {}
    }
    other(py, ptr)
}

#[cold]
fn not_an_index(ptr: Ptr) -> Raised {
    Raised(PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
        type_name(ptr)
    )))
}

/// NumPy's numbers and arrays, lists, and whatever else is a sequence or has `__index__`.
#[cold]
fn other(py: Python<'_>, ptr: Ptr) -> Ret<IndexItem> {
    // SAFETY: callers hold an object.
    let obj = unsafe { Bound::ref_from_ptr(py, &ptr) };
    match scalar_of(py, ptr)? {
        Some(Scalar::Bool(b)) => return Ok(IndexItem::Bool(b)),
        Some(Scalar::Int(n)) => return Ok(IndexItem::Int(n)),
        Some(_) => return Err(not_an_index(ptr)),
        None => {}
    }
    if crate::numpy::is_array(obj) {
        return tensor_item(&crate::numpy::from_array(obj, true)?);
    }
    if obj.is_instance_of::<pyo3::types::PyString>() {
        return Err(not_an_index(ptr));
    }
    if let Ok(index) = obj.call_method0("__index__") {
        return item(py, index.as_ptr());
    }
    if obj.len().is_err() {
        return Err(not_an_index(ptr));
    }
    if obj.len()? == 0 {
        return Ok(IndexItem::Tensor(Tensor::empty(&[0], DType::I64, Device::CPU)?));
    }
    tensor_item(&crate::data::from_data(obj, None, None, true)?)
}

/// The items of an index: those of a tuple, or the one.
fn items(py: Python<'_>, index: Ptr) -> Ret<Items> {
    let mut out = Items::new();
    // SAFETY: callers hold the index; a tuple does not change.
    unsafe {
        if ffi::PyTuple_Check(index) != 0 {
            for i in 0..ffi::PyTuple_Size(index) {
                out.push(item(py, ffi::PyTuple_GetItem(index, i))?);
            }
        } else if ffi::PyList_Check(index) != 0 && is_tuple_like(py, index) {
            for item_ in Bound::ref_from_ptr(py, &index).cast_unchecked::<PyList>().iter() {
                out.push(item(py, item_.as_ptr())?);
            }
        } else {
            out.push(item(py, index)?);
        }
    }
    Ok(out)
}

/// Whether a list is read as a tuple of indices, as PyTorch reads short lists that hold more than numbers.
///
/// # Safety
/// `list` is a list.
#[cold]
unsafe fn is_tuple_like(py: Python<'_>, list: Ptr) -> bool {
    // SAFETY: as above.
    let list = unsafe { Bound::ref_from_ptr(py, &list).cast_unchecked::<PyList>() };
    let compound = |o: Bound<'_, PyAny>| {
        // SAFETY: an object.
        let tensor = unsafe { tensor_of(o.as_ptr()).is_some() };
        tensor
            || o.is_none()
            || o.is(py.Ellipsis())
            || o.is_instance_of::<PySlice>()
            || o.is_instance_of::<PyList>()
            || o.is_instance_of::<PyTuple>()
            || crate::numpy::is_array(&o)
    };
    list.len() < 32 && list.iter().any(compound)
}

/// `x[index]`.
pub unsafe extern "C" fn get(obj: Ptr, index: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of the type.
        let t = unsafe { own_tensor(obj)? };
        wrap(py, t.index_items(&items(py, index)?)?)
    })
}

/// `x[index] = value`.
pub unsafe extern "C" fn set(obj: Ptr, index: Ptr, value: Ptr) -> c_int {
    guard_int(|py| {
        if value.is_null() {
            return Err(type_error("Tensor does not support deleting items"));
        }
        // SAFETY: the slot is called with an object of the type.
        let t = unsafe { own_tensor(obj)? };
        let items = items(py, index)?;
        // SAFETY: an argument, which the interpreter holds during the call.
        if let Some(v) = unsafe { tensor_of(value) } {
            t.set_items(&items, v)?;
            return Ok(0);
        }
        if let Some(s) = scalar_of(py, value)? {
            t.set_items(&items, Operand::Scalar(s))?;
            return Ok(0);
        }
        // SAFETY: as above.
        let value = unsafe { Bound::ref_from_ptr(py, &value) };
        if crate::numpy::is_array(value) {
            t.set_items(&items, &crate::numpy::from_array(value, false)?)?;
            return Ok(0);
        }
        Err(type_error(format!("can't assign a {} to a {} tensor", type_name(value.as_ptr()), t.dtype())))
    })
}
