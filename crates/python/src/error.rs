//! Errors and panics as Python exceptions, and exceptions as errors.

use flambeau_base::{Error, ErrorKind};
use pyo3::exceptions::*;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A pointer to a Python object; owned or borrowed as the place says.
pub type Ptr = *mut ffi::PyObject;

/// An exception to be raised. Made of errors of the engine as well as of Python's.
pub struct Raised(pub PyErr);

/// A result whose error is an exception to be raised.
pub type Ret<T> = Result<T, Raised>;

impl From<PyErr> for Raised {
    fn from(e: PyErr) -> Raised {
        Raised(e)
    }
}

impl From<Error> for Raised {
    #[cold]
    fn from(e: Error) -> Raised {
        Raised(to_exception(e))
    }
}

impl<'a, 'py> From<pyo3::CastError<'a, 'py>> for Raised {
    fn from(e: pyo3::CastError<'a, 'py>) -> Raised {
        Raised(e.into())
    }
}

impl From<Raised> for PyErr {
    fn from(r: Raised) -> PyErr {
        r.0
    }
}

static OUT_OF_MEMORY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The class `OutOfMemoryError`, a `RuntimeError`.
pub fn out_of_memory_class(py: Python<'_>) -> PyResult<&Py<PyType>> {
    OUT_OF_MEMORY.get_or_try_init(py, || {
        let base = py.get_type::<PyRuntimeError>();
        PyErr::new_type(py, c"flambeau.OutOfMemoryError", Some(c"The memory that was asked for is not there."), Some(&base), None)
    })
}

static LINALG: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The class `linalg.LinAlgError`, a `RuntimeError`.
pub fn linalg_class(py: Python<'_>) -> PyResult<&Py<PyType>> {
    LINALG.get_or_try_init(py, || {
        let base = py.get_type::<PyRuntimeError>();
        let text = c"A matrix that has no such factorisation, or an algorithm that does not converge.";
        PyErr::new_type(py, c"flambeau.linalg.LinAlgError", Some(text), Some(&base), None)
    })
}

/// The exception of an error. One that came from Python is raised again as it was.
#[cold]
pub fn to_exception(e: Error) -> PyErr {
    // Attached by PyO3's count, so that what the error carries (a traceback, and all that it holds) is dropped at once.
    Python::attach(|py| {
        let raised = exception(py, &e);
        for line in e.notes() {
            // A note that cannot be added leaves the error as it is.
            let _ = raised.value(py).call_method1("add_note", (line,));
        }
        drop(e);
        raised
    })
}

fn exception(py: Python<'_>, e: &Error) -> PyErr {
    if let Some(carried) = e.payload().and_then(|p| p.downcast_ref::<PyErr>()) {
        return carried.clone_ref(py);
    }
    let text = e.message().to_owned();
    let of = |class: PyResult<Bound<'_, PyType>>, text: String| class.map_or_else(|e| e, |class| PyErr::from_type(class, text));
    match e.kind() {
        ErrorKind::Runtime => PyRuntimeError::new_err(text),
        ErrorKind::Index => PyIndexError::new_err(text),
        ErrorKind::Type => PyTypeError::new_err(text),
        ErrorKind::Value => PyValueError::new_err(text),
        ErrorKind::NotImplemented => PyNotImplementedError::new_err(text),
        ErrorKind::Io => PyOSError::new_err(text),
        ErrorKind::Attribute => PyAttributeError::new_err(text),
        ErrorKind::LinAlg => of(linalg_class(py).map(|c| c.bind(py).clone()), text),
        ErrorKind::OutOfMemory => of(out_of_memory_class(py).map(|c| c.bind(py).clone()), text),
        ErrorKind::Unpickling => {
            let class = py.import("pickle").and_then(|m| m.getattr("UnpicklingError")).and_then(|c| Ok(c.cast_into::<PyType>()?));
            of(class, text)
        }
    }
}

/// An exception as an error that the engine carries untouched.
#[cold]
pub fn to_error(e: PyErr) -> Error {
    Error::foreign(e.to_string(), Arc::new(e))
}

#[cold]
fn from_panic(panic: Box<dyn Any + Send>) -> PyErr {
    let what = panic.downcast_ref::<String>().map(|s| s.as_str()).or_else(|| panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!("internal error in flambeau ({}): please report it", what.unwrap_or("a panic without words")))
}

/// Runs `f` and raises its error; a panic becomes a `RuntimeError`. Null where something was raised.
#[inline]
pub fn guard(f: impl FnOnce(Python<'_>) -> Ret<Ptr>) -> Ptr {
    guarded(std::ptr::null_mut(), f)
}

/// [`guard`] for slots that answer with a number; -1 where something was raised.
#[inline]
pub fn guard_int(f: impl FnOnce(Python<'_>) -> Ret<c_int>) -> c_int {
    guarded(-1, f)
}

/// [`guard`] with the answer that stands for "something was raised".
#[inline]
pub fn guarded<R>(failed: R, f: impl FnOnce(Python<'_>) -> Ret<R>) -> R {
    // SAFETY: only the interpreter calls slots and methods, with this thread attached.
    let py = unsafe { Python::assume_attached() };
    let _inside = crate::front::Inside::enter();
    match catch_unwind(AssertUnwindSafe(|| f(py))) {
        Ok(Ok(value)) => value,
        Ok(Err(Raised(e))) => {
            e.restore(py);
            failed
        }
        Err(panic) => {
            from_panic(panic).restore(py);
            failed
        }
    }
}

/// Runs the body of a function of PyO3's: a panic becomes a `RuntimeError`.
pub fn shielded<R>(f: impl FnOnce() -> Ret<R>) -> PyResult<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.map_err(|r| r.0),
        Err(panic) => Err(from_panic(panic)),
    }
}

/// A pointer that a C function gave, or what it raised.
#[inline]
pub fn checked(py: Python<'_>, ptr: Ptr) -> Ret<Ptr> {
    if ptr.is_null() { Err(Raised(PyErr::fetch(py))) } else { Ok(ptr) }
}

/// Forgets what was raised.
pub fn clear_error(_: Python<'_>) {
    // SAFETY: the thread is attached.
    unsafe { ffi::PyErr_Clear() };
}

/// A `TypeError`.
#[cold]
pub fn type_error(text: impl Into<String>) -> Raised {
    Raised(PyTypeError::new_err(text.into()))
}

/// A `RuntimeError`.
#[cold]
pub fn runtime_error(text: impl Into<String>) -> Raised {
    Raised(PyRuntimeError::new_err(text.into()))
}

/// A `ValueError`.
#[cold]
pub fn value_error(text: impl Into<String>) -> Raised {
    Raised(PyValueError::new_err(text.into()))
}
