//! What the engine asks of Python: the GIL, and holds on objects. See NOTE [front-end objects] in the engine.

use flambeau_engine::tensor::{FrontEnd, set_front_end};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::ptr::NonNull;

unsafe extern "C" {
    // In every CPython since 3.4, though not in the stable ABI's headers.
    fn PyGILState_Check() -> c_int;
}

struct Interpreter;

impl FrontEnd for Interpreter {
    fn locked(&self, f: &mut dyn FnMut()) -> bool {
        // SAFETY: may be called from any thread and at any time. The check of the GIL answers yes once the
        // interpreter is gone, so that is asked first.
        if unsafe { ffi::Py_IsInitialized() } == 0 {
            return false;
        }
        // SAFETY: as above.
        if unsafe { PyGILState_Check() } != 0 {
            f();
            return true;
        }
        Python::try_attach(|_| f()).is_some()
    }

    fn hold(&self, object: NonNull<()>) {
        // SAFETY: the tensor's object, alive, and the GIL is held.
        unsafe { ffi::Py_INCREF(object.as_ptr().cast()) };
    }

    fn release(&self, object: NonNull<()>) {
        // SAFETY: this reference was taken by `hold`, and the GIL is held.
        unsafe { ffi::Py_DECREF(object.as_ptr().cast()) };
    }
}

/// Makes Python the engine's front end.
pub fn install() {
    static PYTHON: Interpreter = Interpreter;
    set_front_end(&PYTHON);
}
