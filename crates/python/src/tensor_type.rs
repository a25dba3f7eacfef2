//! `TensorBase`: the heap type whose objects own one handle on a tensor.
//!
//! `Tensor` and `Parameter` are Python subclasses of it, which gives them `__dict__`, weak references
//! and `__class__` assignment. See NOTE [front-end objects] in the engine for who keeps whom alive.

use crate::error::*;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{Owned, visit_owned};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An object of `TensorBase` or of a subclass.
#[repr(C)]
pub struct TensorObject {
    ob_base: ffi::PyObject,
    /// All zeros in a fresh object, which is `None`.
    tensor: Option<Tensor>,
}

static BASE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static PARAMETER: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// The type `TensorBase`.
#[inline]
pub fn base_type() -> *mut ffi::PyTypeObject {
    BASE.load(Ordering::Relaxed)
}

/// The class of the objects that are made for results.
#[inline]
pub fn tensor_class() -> *mut ffi::PyTypeObject {
    CLASS.load(Ordering::Relaxed)
}

/// Names the Python classes: results are objects of the first; the second is only recognised faster.
#[pyfunction]
#[pyo3(name = "_set_tensor_class", signature = (tensor, parameter=None))]
pub fn set_tensor_class(tensor: &Bound<'_, PyAny>, parameter: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    shielded(|| {
        let keep = |class: &Bound<'_, PyAny>, place: &AtomicPtr<ffi::PyTypeObject>| {
            // SAFETY: both are objects; whether the first is a type is asked before it is taken for one.
            let fits = unsafe { ffi::PyType_Check(class.as_ptr()) != 0 && ffi::PyType_IsSubtype(class.as_ptr().cast(), base_type()) != 0 };
            if !fits {
                return Err(type_error("_set_tensor_class: the class must be derived from TensorBase"));
            }
            place.store(class.clone().into_ptr().cast(), Ordering::Relaxed);
            Ok(())
        };
        keep(tensor, &CLASS)?;
        parameter.map_or(Ok(()), |p| keep(p, &PARAMETER))
    })
}

/// Whether an object is a tensor.
///
/// # Safety
/// `obj` is an object, and the thread is attached.
#[inline]
pub unsafe fn is_tensor(obj: Ptr) -> bool {
    // SAFETY: the caller's.
    let ty = unsafe { ffi::Py_TYPE(obj) };
    // SAFETY: both are types.
    ty == tensor_class() || ty == PARAMETER.load(Ordering::Relaxed) || unsafe { ffi::PyType_IsSubtype(ty, base_type()) != 0 }
}

/// Whether an object's class is `Tensor` or `Parameter` itself, not one derived from them.
pub fn is_plain(obj: Ptr) -> bool {
    // SAFETY: callers hold an object.
    let ty = unsafe { ffi::Py_TYPE(obj) };
    ty == tensor_class() || ty == PARAMETER.load(Ordering::Relaxed)
}

/// The tensor of an object, if it is one.
///
/// # Safety
/// `obj` is an object that stays alive as long as the reference, and the thread is attached.
#[inline]
pub unsafe fn tensor_of<'a>(obj: Ptr) -> Option<&'a Tensor> {
    // SAFETY: the caller's; objects of this type have this layout.
    unsafe { if is_tensor(obj) { (*obj.cast::<TensorObject>()).tensor.as_ref() } else { None } }
}

/// The tensor of `self` in a method.
///
/// # Safety
/// `obj` is an object of `TensorBase`, alive as long as the reference, and the thread is attached.
#[inline]
pub unsafe fn own_tensor<'a>(obj: Ptr) -> Ret<&'a Tensor> {
    // SAFETY: the caller's.
    unsafe { (*obj.cast::<TensorObject>()).tensor.as_ref() }.ok_or_else(|| runtime_error("this Tensor was never initialised"))
}

/// The tensor of an object, or a `TypeError`.
pub fn expect_tensor<'a>(obj: &'a Bound<'_, PyAny>) -> Ret<&'a Tensor> {
    // SAFETY: a `Bound` is an object, and keeps it alive.
    unsafe { tensor_of(obj.as_ptr()) }.ok_or_else(|| type_error(format!("expected a Tensor, got {}", type_name(obj.as_ptr()))))
}

/// The name of an object's type, for messages.
pub fn type_name(obj: Ptr) -> String {
    // SAFETY: callers hold an object and the GIL.
    unsafe {
        let py = Python::assume_attached();
        Bound::from_borrowed_ptr(py, obj).get_type().name().map_or_else(|_| "object".into(), |n| n.to_string())
    }
}

/// The object of a tensor: the one that it has, or a new one. Gives an owned reference.
#[inline]
pub fn wrap(py: Python<'_>, tensor: Tensor) -> Ret<Ptr> {
    if let Some(object) = tensor.object() {
        let object: Ptr = object.as_ptr().cast();
        // SAFETY: the object lives as long as its tensor has one. The reference comes before the handle
        // goes, which may be what keeps the object.
        unsafe { ffi::Py_INCREF(object) };
        drop(tensor);
        return Ok(object);
    }
    wrap_as(py, tensor, tensor_class())
}

/// A new object of a class for a tensor that has none.
pub fn wrap_as(py: Python<'_>, tensor: Tensor, class: *mut ffi::PyTypeObject) -> Ret<Ptr> {
    // SAFETY: the class is derived from `TensorBase`, so its objects have that layout; the tensor has no
    // object yet, and the new one forgets it when it is destroyed.
    unsafe {
        let object = checked(py, ffi::PyType_GenericAlloc(class, 0))?;
        let place = &mut (*object.cast::<TensorObject>()).tensor;
        let tensor = place.insert(tensor);
        tensor.set_object(NonNull::new_unchecked(object.cast()));
        Ok(object)
    }
}

/// [`wrap`] as PyO3 wants it.
pub fn wrap_bound(py: Python<'_>, tensor: Tensor) -> Ret<Bound<'_, PyAny>> {
    let ptr = wrap(py, tensor)?;
    // SAFETY: an owned reference.
    Ok(unsafe { Bound::from_owned_ptr(py, ptr) })
}

/// None, as an owned reference.
#[inline]
pub fn none() -> Ptr {
    // SAFETY: None is always there; callers hold the GIL.
    unsafe { ffi::Py_NewRef(ffi::Py_None()) }
}

/// [`wrap`], or None.
pub fn wrap_opt(py: Python<'_>, tensor: Option<Tensor>) -> Ret<Ptr> {
    tensor.map_or_else(|| Ok(none()), |t| wrap(py, t))
}

unsafe extern "C" fn dealloc(obj: Ptr) {
    // SAFETY: called once, with the GIL, for an object of this type that nobody else refers to.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        let ty = ffi::Py_TYPE(obj);
        let _inside = crate::front::Inside::enter();
        if let Some(tensor) = (*obj.cast::<TensorObject>()).tensor.take() {
            tensor.forget_object();
            drop(tensor);
        }
        // What a type with a collector frees its objects by.
        ffi::PyObject_GC_Del(obj.cast());
        ffi::Py_DECREF(ty.cast());
    }
}

/// Shows the collector what a walk from a tensor finds.
///
/// # Safety
/// Called by the collector.
pub unsafe fn show(owned: Owned<'_>, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: what is shown is alive, and each reference to it is shown once.
    unsafe {
        match owned {
            Owned::Object(object) => visit(object.as_ptr().cast(), arg),
            Owned::Foreign(any) => match crate::hooks::python_object(any) {
                Some(object) => visit(object, arg),
                None => 0,
            },
        }
    }
}

unsafe extern "C" fn traverse(obj: Ptr, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: called by the collector with an object of this type.
    unsafe {
        let result = visit(ffi::Py_TYPE(obj).cast(), arg);
        if result != 0 {
            return result;
        }
        let Some(tensor) = &(*obj.cast::<TensorObject>()).tensor else { return 0 };
        let mut result = 0;
        visit_owned(tensor, &mut |owned| {
            if result == 0 {
                result = show(owned, visit, arg);
            }
        });
        result
    }
}

unsafe extern "C" fn clear(obj: Ptr) -> c_int {
    // SAFETY: called by the collector with an object of this type.
    if let Some(tensor) = unsafe { &(*obj.cast::<TensorObject>()).tensor } {
        tensor.forget_owned();
    }
    0
}

unsafe extern "C" fn new(class: *mut ffi::PyTypeObject, args: Ptr, kwargs: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the interpreter gives a tuple, and a dictionary or null.
        let (args, kwargs) = unsafe {
            (
                Bound::from_borrowed_ptr(py, args).cast_into_unchecked(),
                Bound::from_borrowed_ptr_or_opt(py, kwargs).map(|k| k.cast_into_unchecked()),
            )
        };
        let tensor = crate::data::legacy_new(py, &args, kwargs.as_ref())?;
        // A tensor given to the constructor is aliased there, so this one has no object yet.
        wrap_as(py, tensor, class)
    })
}

/// Makes the type, with the operators, attributes and methods that are given.
pub fn make_type(py: Python<'_>, mut slots: Vec<ffi::PyType_Slot>) -> Ret<()> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    slots.extend([
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_clear, clear as *mut c_void),
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_doc, c"A multi-dimensional array of one dtype on one device.".as_ptr() as *mut c_void),
        slot(0, null_mut()),
    ]);
    let mut spec = ffi::PyType_Spec {
        name: c"flambeau._C.TensorBase".as_ptr(),
        basicsize: size_of::<TensorObject>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC) as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec describes the layout above; its slots end with a zero. What slots point to is never freed.
    let ty = checked(py, unsafe { ffi::PyType_FromSpec(&mut spec) })?;
    BASE.store(ty.cast(), Ordering::Relaxed);
    CLASS.store(ty.cast(), Ordering::Relaxed);
    Ok(())
}
