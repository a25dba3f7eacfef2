//! Python objects as the engine's values, and its results as Python objects.

use crate::dtype::dtype_of;
use crate::error::*;
use crate::objects::{DeviceObject, GeneratorObject, LayoutObject, MemoryFormatObject, device_of};
use crate::tensor_type::*;
use flambeau_base::{Complex64, Scalar};
use flambeau_engine::Tensor;
use flambeau_engine::ops::schema::{Kind, Param};
use flambeau_engine::ops::{Out, Value};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use smallvec::SmallVec;

/// A value made of an argument; whether a tensor in it is the object's own handle, not a counted one.
pub struct Converted {
    /// The value.
    pub value: Value,
    /// NOTE [borrowed handles]: a tensor given as an argument is passed on as a bitwise copy of its object's
    /// handle, which saves taking and giving back a count on each call. Such a value is forgotten, never
    /// dropped. The object outlives the call: the interpreter holds a reference to each argument.
    pub borrowed: bool,
}

fn own(value: Value) -> Ret<Option<Converted>> {
    Ok(Some(Converted { value, borrowed: false }))
}

/// Whether an object is an int, and not a bool.
///
/// # Safety
/// `obj` is an object, and the thread is attached.
#[inline]
pub unsafe fn is_int(obj: Ptr) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        ty == &raw mut ffi::PyLong_Type || (ffi::PyLong_Check(obj) != 0 && ty != &raw mut ffi::PyBool_Type)
    }
}

/// The value of an int object.
fn int_value(py: Python<'_>, obj: Ptr) -> Ret<i64> {
    // SAFETY: callers hold an int object.
    let n = unsafe { ffi::PyLong_AsLongLong(obj) };
    if n == -1 && PyErr::occurred(py) {
        clear_error(py);
        return Err(runtime_error("Overflow when unpacking long: the integer does not fit 64 bits"));
    }
    Ok(n)
}

/// `numpy.generic`, where NumPy has been imported.
pub fn numpy_generic(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if let Some(found) = GENERIC.get(py) {
        return Some(found.bind(py));
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?;
    let numpy = modules.get_item("numpy").ok()?;
    let class = numpy.getattr("generic").ok()?.cast_into::<PyType>().ok()?;
    Some(GENERIC.get_or_init(py, || class.unbind()).bind(py))
}

/// The number that an object is: Python's, NumPy's, or a 0-dimensional tensor without history.
pub fn scalar_of(py: Python<'_>, obj: Ptr) -> Ret<Option<Scalar>> {
    if let Some(s) = plain_number(py, obj)? {
        return Ok(Some(s));
    }
    // SAFETY: callers hold an object.
    unsafe {
        if let Some(t) = tensor_of(obj) {
            return if t.ndim() == 0 && !t.requires_grad() && !t.device().is_meta() { Ok(Some(t.item()?)) } else { Ok(None) };
        }
        let obj = Bound::ref_from_ptr(py, &obj);
        if let Some(generic) = numpy_generic(py)
            && obj.is_instance(generic)?
        {
            let item = obj.call_method0("item")?;
            return plain_number(py, item.as_ptr());
        }
    }
    Ok(None)
}

/// The number that one of Python's number objects is.
#[inline]
pub fn plain_number(py: Python<'_>, obj: Ptr) -> Ret<Option<Scalar>> {
    // SAFETY: callers hold an object.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if ty == &raw mut ffi::PyFloat_Type || ffi::PyFloat_Check(obj) != 0 {
            return Ok(Some(Scalar::Float(ffi::PyFloat_AsDouble(obj))));
        }
        if ty == &raw mut ffi::PyBool_Type {
            return Ok(Some(Scalar::Bool(obj == ffi::Py_True())));
        }
        if ffi::PyLong_Check(obj) != 0 {
            let n = ffi::PyLong_AsLongLong(obj);
            if n == -1 && PyErr::occurred(py) {
                clear_error(py);
                let u = ffi::PyLong_AsUnsignedLongLong(obj);
                if u == u64::MAX && PyErr::occurred(py) {
                    clear_error(py);
                    return Err(Raised(pyo3::exceptions::PyOverflowError::new_err("int too big to convert: a number has at most 64 bits")));
                }
                return Ok(Some(Scalar::UInt(u)));
            }
            return Ok(Some(Scalar::Int(n)));
        }
        if ty == &raw mut ffi::PyComplex_Type || ffi::PyType_IsSubtype(ty, &raw mut ffi::PyComplex_Type) != 0 {
            return Ok(Some(Scalar::Complex(Complex64::new(ffi::PyComplex_RealAsDouble(obj), ffi::PyComplex_ImagAsDouble(obj)))));
        }
    }
    Ok(None)
}

/// An integer: Python's (not a bool), NumPy's, or a 0-dimensional integer tensor.
pub fn int_of(py: Python<'_>, obj: Ptr) -> Ret<Option<i64>> {
    // SAFETY: callers hold an object.
    if unsafe { is_int(obj) } {
        return int_value(py, obj).map(Some);
    }
    // SAFETY: as above.
    if unsafe { ffi::Py_TYPE(obj) == &raw mut ffi::PyBool_Type || ffi::PyFloat_Check(obj) != 0 } {
        return Ok(None);
    }
    Ok(match scalar_of(py, obj)? {
        Some(Scalar::Int(n)) => Some(n),
        _ => None,
    })
}

/// The items of a list or tuple, with a reference to each.
fn items(py: Python<'_>, obj: Ptr) -> Ret<Option<SmallVec<[Bound<'_, PyAny>; 6]>>> {
    // SAFETY: callers hold an object; items are borrowed from it and referred to at once.
    unsafe {
        let (tuple, list) = (ffi::PyTuple_Check(obj) != 0, ffi::PyList_Check(obj) != 0);
        if !tuple && !list {
            return Ok(None);
        }
        let n = if tuple { ffi::PyTuple_Size(obj) } else { ffi::PyList_Size(obj) };
        let mut out = SmallVec::new();
        for i in 0..n {
            let item = if tuple { ffi::PyTuple_GetItem(obj, i) } else { ffi::PyList_GetItem(obj, i) };
            out.push(Bound::from_borrowed_ptr_or_err(py, item)?);
        }
        Ok(Some(out))
    }
}

/// Integers of a list or tuple.
pub fn ints_of(py: Python<'_>, obj: Ptr) -> Ret<Option<SmallVec<[i64; 6]>>> {
    // SAFETY: callers hold an object; a tuple does not change, and its items are ints, so no code runs meanwhile.
    unsafe {
        if ffi::PyTuple_Check(obj) != 0 {
            let n = ffi::PyTuple_Size(obj);
            let mut out = SmallVec::new();
            for i in 0..n {
                match int_of(py, ffi::PyTuple_GetItem(obj, i))? {
                    Some(n) => out.push(n),
                    None => return Ok(None),
                }
            }
            return Ok(Some(out));
        }
    }
    let Some(items) = items(py, obj)? else { return Ok(None) };
    let mut out = SmallVec::new();
    for item in &items {
        match int_of(py, item.as_ptr())? {
            Some(n) => out.push(n),
            None => return Ok(None),
        }
    }
    Ok(Some(out))
}

/// An argument as a parameter's value; `None` where it does not fit.
///
/// `numbers`: whether a number may stand for a tensor.
pub fn convert(py: Python<'_>, p: &Param, numbers: bool, obj: Ptr) -> Ret<Option<Converted>> {
    // SAFETY: callers hold an object.
    if obj == unsafe { ffi::Py_None() } {
        let takes =
            p.optional || p.default == Some("None") || matches!(p.kind, Kind::DType | Kind::Device | Kind::Layout | Kind::Generator);
        return if takes { own(Value::None) } else { Ok(None) };
    }
    match p.kind {
        Kind::Tensor => {
            // SAFETY: callers hold an object that outlives the value, see NOTE [borrowed handles].
            if let Some(t) = unsafe { tensor_of(obj) } {
                // SAFETY: the copy is forgotten, see NOTE [borrowed handles].
                let copy = unsafe { std::ptr::read(t) };
                return Ok(Some(Converted { value: Value::Tensor(copy), borrowed: true }));
            }
            if numbers && let Some(s) = scalar_of(py, obj)? {
                return own(Value::Scalar(s));
            }
            Ok(None)
        }
        Kind::Int => int_of(py, obj)?.map_or(Ok(None), |n| own(Value::Int(n))),
        Kind::Ints => ints(py, p, obj),
        Kind::Scalar => scalar_of(py, obj)?.map_or(Ok(None), |s| own(Value::Scalar(s))),
        Kind::Float => match scalar_of(py, obj)? {
            // SAFETY: an object.
            Some(Scalar::Bool(_)) if unsafe { tensor_of(obj) }.is_none() => Ok(None),
            Some(Scalar::Complex(_)) | None => Ok(None),
            Some(s) => own(Value::Float(s.to_f64())),
        },
        Kind::Bool => boolean(py, obj),
        _ => convert_rare(py, p, obj),
    }
}

fn ints(py: Python<'_>, p: &Param, obj: Ptr) -> Ret<Option<Converted>> {
    if let Some(v) = ints_of(py, obj)? {
        return own(Value::Ints(v));
    }
    if let Some(size) = p.size
        && let Some(n) = int_of(py, obj)?
    {
        return own(Value::Ints(SmallVec::from_elem(n, size)));
    }
    Ok(None)
}

/// A truth value: Python's or NumPy's bool; an int is none.
pub fn convert_bool(py: Python<'_>, obj: Ptr) -> Ret<Option<bool>> {
    Ok(match boolean(py, obj)? {
        Some(Converted { value: Value::Bool(b), .. }) => Some(b),
        _ => None,
    })
}

fn boolean(py: Python<'_>, obj: Ptr) -> Ret<Option<Converted>> {
    // SAFETY: callers hold an object.
    unsafe {
        if ffi::Py_TYPE(obj) == &raw mut ffi::PyBool_Type {
            return own(Value::Bool(obj == ffi::Py_True()));
        }
        // NumPy's bool; an int is no truth value.
        if let Some(generic) = numpy_generic(py) {
            let obj = Bound::ref_from_ptr(py, &obj);
            if obj.is_instance(generic)?
                && let Some(Scalar::Bool(b)) = scalar_of(py, obj.as_ptr())?
            {
                return own(Value::Bool(b));
            }
        }
    }
    Ok(None)
}

fn convert_rare(py: Python<'_>, p: &Param, ptr: Ptr) -> Ret<Option<Converted>> {
    // SAFETY: callers hold an object.
    let obj = unsafe { Bound::ref_from_ptr(py, &ptr) };
    match p.kind {
        Kind::Tensors => {
            let Some(items) = items(py, ptr)? else { return Ok(None) };
            let mut out = Vec::with_capacity(items.len());
            for item in &items {
                // SAFETY: `items` holds it.
                match unsafe { tensor_of(item.as_ptr()) } {
                    Some(t) => out.push(Some(t.clone())),
                    None if item.is_none() => out.push(None),
                    None => return Ok(None),
                }
            }
            own(Value::Tensors(out))
        }
        Kind::Scalars => numbers_of(py, ptr, Some)?.map_or(Ok(None), |v| own(Value::Scalars(v))),
        Kind::Floats => {
            let real = |s| if matches!(s, Scalar::Complex(_) | Scalar::Bool(_)) { None } else { Some(s.to_f64()) };
            numbers_of(py, ptr, real)?.map_or(Ok(None), |v| own(Value::Floats(v)))
        }
        Kind::Str => obj.cast::<PyString>().map_or(Ok(None), |s| own(Value::Str(s.to_str()?.to_owned()))),
        Kind::DType => dtype_of(py, ptr).map_or(Ok(None), |d| own(Value::DType(d))),
        Kind::Device => device_of(obj)?.map_or(Ok(None), |d| own(Value::Device(d))),
        Kind::MemoryFormat => obj.cast::<MemoryFormatObject>().map_or(Ok(None), |f| own(Value::MemoryFormat(f.get().0))),
        Kind::Layout => match obj.cast::<LayoutObject>() {
            Ok(l) if l.get().is_strided() => own(Value::None),
            _ => Ok(None),
        },
        Kind::Generator => obj.cast::<GeneratorObject>().map_or(Ok(None), |g| own(Value::Generator(g.get().0.clone()))),
        _ => Ok(None),
    }
}

fn numbers_of<T>(py: Python<'_>, obj: Ptr, f: impl Fn(Scalar) -> Option<T>) -> Ret<Option<Vec<T>>> {
    let Some(items) = items(py, obj)? else { return Ok(None) };
    let mut out = Vec::with_capacity(items.len());
    for item in &items {
        match scalar_of(py, item.as_ptr())?.and_then(&f) {
            Some(x) => out.push(x),
            None => return Ok(None),
        }
    }
    Ok(Some(out))
}

/// A number as a Python object.
pub fn scalar_ptr(py: Python<'_>, s: Scalar) -> Ret<Ptr> {
    // SAFETY: plain constructors.
    checked(py, unsafe {
        match s {
            Scalar::Bool(b) => ffi::PyBool_FromLong(b.into()),
            Scalar::Int(n) => ffi::PyLong_FromLongLong(n),
            Scalar::UInt(n) => ffi::PyLong_FromUnsignedLongLong(n),
            Scalar::Float(x) => ffi::PyFloat_FromDouble(x),
            Scalar::Complex(z) => ffi::PyComplex_FromDoubles(z.re, z.im),
        }
    })
}

/// Tensors as a tuple.
pub fn tuple_ptr(py: Python<'_>, tensors: impl ExactSizeIterator<Item = Tensor>) -> Ret<Ptr> {
    // SAFETY: a fresh tuple, whose items are set before anybody sees it.
    unsafe {
        let tuple = checked(py, ffi::PyTuple_New(tensors.len() as isize))?;
        let tuple = Bound::from_owned_ptr(py, tuple);
        for (i, t) in tensors.enumerate() {
            ffi::PyTuple_SetItem(tuple.as_ptr(), i as isize, wrap(py, t)?);
        }
        Ok(tuple.into_ptr())
    }
}

/// A row's result as a Python object; `names` are those of a tuple's fields.
pub fn out_ptr(py: Python<'_>, name: &str, names: &[&str], out: Out) -> Ret<Ptr> {
    match out {
        Out::Tensor(t) => wrap(py, t),
        Out::Tuple(ts) if names.len() == ts.len() && names.len() > 1 => crate::return_types::named(py, name, names, ts.into_iter()),
        Out::Tuple(ts) => tuple_ptr(py, ts.into_iter()),
        Out::List(ts) => tuple_ptr(py, ts.into_iter()),
        Out::Scalar(s) => scalar_ptr(py, s),
        Out::Bool(b) => scalar_ptr(py, Scalar::Bool(b)),
        Out::Int(n) => scalar_ptr(py, Scalar::Int(n)),
        Out::DType(d) => crate::dtype::dtype_ptr(py, d),
        Out::None => Ok(none()),
    }
}

/// A device as a Python object.
pub fn device_ptr(py: Python<'_>, device: flambeau_base::Device) -> Ret<Ptr> {
    static CPU: PyOnceLock<Py<DeviceObject>> = PyOnceLock::new();
    if device == flambeau_base::Device::CPU {
        let cpu = CPU.get_or_try_init(py, || Py::new(py, DeviceObject(device)))?;
        return Ok(cpu.clone_ref(py).into_ptr());
    }
    Ok(Py::new(py, DeviceObject(device))?.into_ptr())
}
