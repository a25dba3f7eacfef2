//! What the engine asks of Python: the GIL, and holds on objects. See NOTE [front-end objects] in the engine.

use flambeau_engine::tensor::{FrontEnd, set_front_end};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::NonNull;

unsafe extern "C" {
    // In every CPython since 3.4, though not in the stable ABI's headers.
    fn PyGILState_Check() -> c_int;
}

thread_local! {
    /// Whether this thread is inside an entry that Python called, and so has the GIL.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks an entry that Python calls; see [`Inside::enter`].
pub struct Inside(bool);

impl Inside {
    /// This thread has the GIL until the mark is dropped: asking for it is then one look.
    #[inline]
    pub fn enter() -> Inside {
        Inside(INSIDE.replace(true))
    }

    /// This thread does without the GIL until the mark is dropped.
    pub fn leave() -> Inside {
        Inside(INSIDE.replace(false))
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

struct Interpreter;

impl FrontEnd for Interpreter {
    fn locked(&self, f: &mut dyn FnMut()) -> bool {
        if INSIDE.get() {
            f();
            return true;
        }
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

/// A reference to a Python object in what the engine owns, which may be dropped anywhere.
///
/// PyO3's `Py` waits with its release until PyO3 itself is entered again, if it is dropped in a slot that
/// PyO3 did not call; what the object keeps alive would stay until then.
#[repr(transparent)]
pub struct Held(NonNull<ffi::PyObject>);

// SAFETY: the pointer is used with the GIL only.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Held {
    /// Holds an object.
    pub fn new(object: &Bound<'_, PyAny>) -> Held {
        // SAFETY: an object is not null; the reference is taken here and given back on drop.
        unsafe { Held(NonNull::new_unchecked(object.clone().into_ptr())) }
    }

    /// The object.
    pub fn as_ptr(&self) -> *mut ffi::PyObject {
        self.0.as_ptr()
    }

    /// The object.
    pub fn bind<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        // SAFETY: this holds it.
        unsafe { Bound::from_borrowed_ptr(py, self.0.as_ptr()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Where the interpreter has ended there is nothing to give back.
        Interpreter.locked(&mut || Interpreter.release(self.0.cast()));
    }
}

/// Makes Python the engine's front end.
pub fn install() {
    static PYTHON: Interpreter = Interpreter;
    set_front_end(&PYTHON);
}
