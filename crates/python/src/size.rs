//! `Size`: the tuple of a shape.

use crate::error::*;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// A new `Size`.
pub fn size_object(py: Python<'_>, sizes: &[usize]) -> Ret<Ptr> {
    // SAFETY: the type's base is tuple, whose items are set here before anybody sees the object.
    unsafe {
        let object = checked(py, ffi::PyType_GenericAlloc(TYPE.load(Ordering::Relaxed), sizes.len() as isize))?;
        for (i, &size) in sizes.iter().enumerate() {
            let item = checked(py, ffi::PyLong_FromSsize_t(size as isize))?;
            ffi::PyTuple_SetItem(object, i as isize, item);
        }
        Ok(object)
    }
}

/// The same items as a `Size`.
fn retyped(py: Python<'_>, tuple: &Bound<'_, PyTuple>) -> Ret<Ptr> {
    // SAFETY: as in `size_object`.
    unsafe {
        let n = tuple.len();
        let object = checked(py, ffi::PyType_GenericAlloc(TYPE.load(Ordering::Relaxed), n as isize))?;
        for (i, item) in tuple.iter().enumerate() {
            ffi::PyTuple_SetItem(object, i as isize, item.into_ptr());
        }
        Ok(object)
    }
}

/// # Safety
/// `obj` is a tuple, alive as long as the reference.
unsafe fn as_tuple<'a, 'py>(py: Python<'py>, obj: &'a Ptr) -> &'a Bound<'py, PyTuple> {
    // SAFETY: the caller's.
    unsafe { Bound::ref_from_ptr(py, obj).cast_unchecked() }
}

unsafe extern "C" fn repr(obj: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: an object of this type is a tuple.
        let items: Vec<String> = unsafe { as_tuple(py, &obj) }.iter().map(|x| x.repr().map(|r| r.to_string())).collect::<PyResult<_>>()?;
        Ok(format!("torch.Size([{}])", items.join(", ")).into_pyobject(py).map_err(PyErr::from)?.into_any().into_ptr())
    })
}

unsafe extern "C" fn concat(a: Ptr, b: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of this type first.
        let a = unsafe { as_tuple(py, &a) };
        // SAFETY: the slot is called with an object.
        let b = unsafe { Bound::ref_from_ptr(py, &b) };
        let b = b.cast::<PyTuple>().map_err(|_| type_error(format!("can only concatenate tuple (not {}) to torch.Size", type_name(b))))?;
        retyped(py, &PyTuple::new(py, a.iter().chain(b.iter()).collect::<Vec<_>>())?)
    })
}

fn type_name(b: &Bound<'_, PyAny>) -> String {
    crate::tensor_type::type_name(b.as_ptr())
}

unsafe extern "C" fn repeat(a: Ptr, n: ffi::Py_ssize_t) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of this type.
        let items: Vec<_> = unsafe { as_tuple(py, &a) }.iter().collect();
        let n = n.max(0) as usize;
        retyped(py, &PyTuple::new(py, std::iter::repeat_n(items, n).flatten().collect::<Vec<_>>())?)
    })
}

unsafe extern "C" fn add(a: Ptr, b: Ptr) -> Ptr {
    // SAFETY: number slots are called with two objects, one of which is of this type.
    unsafe {
        if ffi::PyTuple_Check(a) != 0 && ffi::PyTuple_Check(b) != 0 { concat(a, b) } else { ffi::Py_NewRef(ffi::Py_NotImplemented()) }
    }
}

unsafe extern "C" fn subscript(a: Ptr, index: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the slot is called with an object of this type and another one.
        let (tuple, index) = unsafe { (as_tuple(py, &a), Bound::ref_from_ptr(py, &index)) };
        if index.cast::<PySlice>().is_ok() {
            let all = PyList::new(py, tuple.iter())?;
            let part = all.as_any().get_item(index)?.cast_into::<PyList>().map_err(PyErr::from)?;
            return retyped(py, &part.to_tuple());
        }
        // SAFETY: an index, or what raises that it is none.
        let i = unsafe { ffi::PyNumber_AsSsize_t(index.as_ptr(), ffi::PyExc_IndexError) };
        if i == -1 && PyErr::occurred(py) {
            return Err(Raised(PyErr::fetch(py)));
        }
        let n = tuple.len() as isize;
        let at = if i < 0 { i + n } else { i };
        if at < 0 || at >= n {
            return Err(Raised(pyo3::exceptions::PyIndexError::new_err(format!(
                "index {i} is out of range for torch.Size of {n} dimensions"
            ))));
        }
        Ok(tuple.get_item(at as usize)?.into_ptr())
    })
}

unsafe extern "C" fn new(class: *mut ffi::PyTypeObject, args: Ptr, _: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the interpreter gives a tuple.
        let args = unsafe { as_tuple(py, &args) };
        let mut sizes = Vec::new();
        if args.len() > 1 {
            return Err(type_error(format!("torch.Size() takes at most 1 argument ({} given)", args.len())));
        }
        if !args.is_empty() {
            for item in args.get_item(0)?.try_iter()? {
                let item = item?;
                // SAFETY: an object.
                let index = unsafe { ffi::PyNumber_Index(item.as_ptr()) };
                if index.is_null() {
                    clear_error(py);
                    return Err(type_error(format!(
                        "torch.Size() takes an iterable of 'int' (item {} is '{}')",
                        sizes.len(),
                        type_name(&item)
                    )));
                }
                // SAFETY: an owned reference.
                sizes.push(unsafe { Bound::from_owned_ptr(py, index) });
            }
        }
        // SAFETY: as in `size_object`; the class is this type or derived from it.
        unsafe {
            let object = checked(py, ffi::PyType_GenericAlloc(class, sizes.len() as isize))?;
            for (i, size) in sizes.into_iter().enumerate() {
                ffi::PyTuple_SetItem(object, i as isize, size.into_ptr());
            }
            Ok(object)
        }
    })
}

unsafe extern "C" fn numel(obj: Ptr, _: Ptr) -> Ptr {
    guard(|py| {
        let mut n = 1i64;
        // SAFETY: an object of this type is a tuple.
        for size in unsafe { as_tuple(py, &obj) }.iter() {
            n = n.wrapping_mul(size.extract::<i64>()?);
        }
        Ok(n.into_pyobject(py).map_err(PyErr::from)?.into_any().into_ptr())
    })
}

unsafe extern "C" fn reduce(obj: Ptr, _: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: an object of this type is a tuple.
        let tuple = unsafe { as_tuple(py, &obj) };
        let plain = PyTuple::new(py, tuple.iter())?;
        let out = PyTuple::new(py, [tuple.get_type().into_any(), PyTuple::new(py, [plain])?.into_any()])?;
        Ok(out.into_any().into_ptr())
    })
}

/// Makes the type and adds it.
pub fn register(m: &Bound<'_, PyModule>) -> Ret<()> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let method = |name: &'static std::ffi::CStr, f: ffi::PyCFunction, doc: &'static std::ffi::CStr| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: f },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: doc.as_ptr(),
    };
    let methods = Box::leak(Box::new([
        method(c"numel", numel, c"The number of elements of a tensor of this shape."),
        method(c"__reduce__", reduce, c"For pickle."),
        ffi::PyMethodDef::zeroed(),
    ]));
    let mut slots = [
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_nb_add, add as *mut c_void),
        slot(ffi::Py_sq_concat, concat as *mut c_void),
        slot(ffi::Py_sq_repeat, repeat as *mut c_void),
        slot(ffi::Py_mp_subscript, subscript as *mut c_void),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_doc, c"The sizes of a tensor's dimensions: a tuple of integers.".as_ptr() as *mut c_void),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"flambeau.Size".as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    let py = m.py();
    // SAFETY: the layout is inherited from tuple; what slots point to is never freed.
    let ty = checked(py, unsafe { ffi::PyType_FromSpecWithBases(&mut spec, (&raw mut ffi::PyTuple_Type).cast()) })?;
    TYPE.store(ty.cast(), Ordering::Relaxed);
    // SAFETY: a new reference of which the static keeps one.
    m.add("Size", unsafe { Bound::from_borrowed_ptr(py, ty) })?;
    Ok(())
}
