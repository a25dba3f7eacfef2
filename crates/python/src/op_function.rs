//! `OpFunction`: one callable type for every operation of the table, in its three forms.
//!
//! An object holds the rows of a name. As an attribute of the tensor type it is a method (the
//! interpreter passes `self` as first argument), in a module it is a function.

use crate::convert::out_ptr;
use crate::error::*;
use crate::parse::*;
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::ops::Out;
use flambeau_engine::ops::table::Call;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::{c_int, c_ulong, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a function does with the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Shape {
    /// A new tensor, or one given as `out=`.
    Functional,
    /// Left in the first argument: `add_`.
    InPlace,
}

/// An operation under one name.
pub struct Function {
    /// Its name: `add`, `add_`.
    pub name: String,
    /// The module that it is shown to belong to.
    pub module: &'static str,
    /// Its rows, in the order in which they are tried.
    pub forms: Vec<Form>,
    /// What it does with the result.
    pub shape: Shape,
}

#[repr(C)]
struct OpObject {
    ob_base: ffi::PyObject,
    vectorcall: ffi::vectorcallfunc,
    function: &'static Function,
}

static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// In every CPython since 3.8; the stable ABI's headers have them since 3.12.
const HAVE_VECTORCALL: c_ulong = 1 << 11;
unsafe extern "C" {
    fn PyVectorcall_Call(callable: Ptr, tuple: Ptr, dict: Ptr) -> Ptr;
    fn PyMethod_New(function: Ptr, instance: Ptr) -> Ptr;
}

impl Function {
    /// Calls it.
    pub fn call(&self, py: Python<'_>, given: Given<'_>) -> Ret<Ptr> {
        let mut parsed = Parsed::new();
        for form in &self.forms {
            if form.parse(py, given, &mut parsed)?.is_ok() {
                return self.run(py, form, &mut parsed, given);
            }
            parsed.clear();
        }
        // None fits: once more, for the reasons.
        let mut misfits = Vec::new();
        for form in &self.forms {
            if let Err(misfit) = form.parse(py, given, &mut parsed)? {
                misfits.push(misfit);
            }
            parsed.clear();
        }
        Err(no_fit(py, &self.name, &self.forms, &misfits, given))
    }

    /// Calls it on positional arguments; `None` where no row fits them.
    pub fn try_call(&self, py: Python<'_>, args: &[Ptr]) -> Ret<Option<Ptr>> {
        let given = Given { all: args, positional: args.len(), names: null_mut() };
        let mut parsed = Parsed::new();
        for form in &self.forms {
            if form.parse(py, given, &mut parsed)?.is_ok() {
                return self.run(py, form, &mut parsed, given).map(Some);
            }
            parsed.clear();
        }
        Ok(None)
    }

    #[inline]
    fn run(&self, py: Python<'_>, form: &Form, parsed: &mut Parsed, given: Given<'_>) -> Ret<Ptr> {
        if crate::profile::listens() {
            return crate::profile::timed(&self.name, || self.carry_out(py, form, parsed, given));
        }
        self.carry_out(py, form, parsed, given)
    }

    fn carry_out(&self, py: Python<'_>, form: &Form, parsed: &mut Parsed, given: Given<'_>) -> Ret<Ptr> {
        if self.shape == Shape::InPlace {
            return run_inplace(py, form, parsed, given);
        }
        if let Some(out) = parsed.out {
            return run_out(py, form, parsed, out);
        }
        let result = crate::unlocked::run(py, form, parsed)?;
        if let (Some(at), Out::Tensor(t)) = (form.requires_grad, &result)
            && parsed.args().bool(at)?
        {
            t.set_requires_grad(true)?;
        }
        if let Out::Tensor(t) = result {
            return wrap(py, t);
        }
        out_ptr(py, form.name, &form.row.parsed().return_names, result)
    }

    /// Its documentation: what the rows say, and their signatures.
    fn doc(&self) -> String {
        let mut text = String::new();
        for form in &self.forms {
            text.push_str(&format!("{}{}\n", self.name, form.signature()));
        }
        for doc in self.forms.iter().map(|f| f.row.doc).filter(|d| !d.is_empty()) {
            text.push_str(&format!("\n{doc}\n"));
        }
        text
    }
}

fn run_inplace(py: Python<'_>, form: &Form, parsed: &mut Parsed, given: Given<'_>) -> Ret<Ptr> {
    // A function may put a copy in the place of its first argument.
    let args = if matches!(form.row.call, Call::Function(_)) { parsed.owned() } else { parsed.args_mut() };
    let target = form.row.run_inplace(args)?;
    // SAFETY: an argument, which the interpreter holds during the call.
    if let Some(&first) = given.all.first()
        && unsafe { tensor_of(first) }.is_some_and(|x| x.is(&target))
    {
        // SAFETY: as above.
        return Ok(unsafe { ffi::Py_NewRef(first) });
    }
    wrap(py, target)
}

fn run_out(py: Python<'_>, form: &Form, parsed: &Parsed, out: Ptr) -> Ret<Ptr> {
    let Some(objects) = outs_of(py, out)? else { return Err(type_error(form.explain(&Misfit::Out(out)))) };
    let outs: Vec<&Tensor> = objects.iter().map(expect_tensor).collect::<Ret<_>>()?;
    // SAFETY: the GIL is held, and work done without it has aliases: see NOTE [metadata] in the engine.
    unsafe { form.row.run_out(parsed.args(), &outs)? };
    // SAFETY: an argument.
    Ok(unsafe { ffi::Py_NewRef(out) })
}

unsafe extern "C" fn vectorcall(callable: Ptr, args: *const Ptr, nargsf: usize, names: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: the interpreter calls an object of this type with as many arguments as it says.
        unsafe {
            let positional = nargsf & !(1 << (usize::BITS - 1));
            let named = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) as usize };
            let total = positional + named;
            let all = if total == 0 { &[][..] } else { std::slice::from_raw_parts(args, total) };
            (*callable.cast::<OpObject>()).function.call(py, Given { all, positional, names })
        }
    })
}

unsafe extern "C" fn descr_get(callable: Ptr, instance: Ptr, _: Ptr) -> Ptr {
    // SAFETY: called by the interpreter with an object of this type and an instance or null (or None for the class).
    unsafe { if instance.is_null() || instance == ffi::Py_None() { ffi::Py_NewRef(callable) } else { PyMethod_New(callable, instance) } }
}

unsafe extern "C" fn dealloc(obj: Ptr) {
    // SAFETY: called once for an object that nobody refers to.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        let free: ffi::freefunc = std::mem::transmute(ffi::PyType_GetSlot(ty, ffi::Py_tp_free));
        free(obj.cast());
        ffi::Py_DECREF(ty.cast());
    }
}

unsafe extern "C" fn repr(obj: Ptr) -> Ptr {
    guard(|py| {
        // SAFETY: an object of this type.
        let function = unsafe { (*obj.cast::<OpObject>()).function };
        Ok(format!("<built-in function {}>", function.name).into_pyobject(py).map_err(PyErr::from)?.into_any().into_ptr())
    })
}

/// Which attribute a getter gives.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Attribute {
    Name,
    Doc,
    Module,
}

unsafe extern "C" fn get(obj: Ptr, which: *mut c_void) -> Ptr {
    guard(|py| {
        // SAFETY: an object of this type.
        let function = unsafe { (*obj.cast::<OpObject>()).function };
        let text = match which as usize {
            x if x == Attribute::Name as usize => function.name.clone(),
            x if x == Attribute::Doc as usize => function.doc(),
            _ => function.module.to_owned(),
        };
        Ok(text.into_pyobject(py).map_err(PyErr::from)?.into_any().into_ptr())
    })
}

unsafe extern "C" fn reduce(obj: Ptr, _: Ptr) -> Ptr {
    // Pickled by name.
    // SAFETY: an object of this type.
    unsafe { get(obj, Attribute::Name as usize as *mut c_void) }
}

/// Makes the type.
pub fn make_type(py: Python<'_>) -> Ret<()> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let getter = |name: &'static std::ffi::CStr, which: Attribute| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: std::ptr::null(),
        closure: which as usize as *mut c_void,
    };
    let getset = Box::leak(Box::new([
        getter(c"__name__", Attribute::Name),
        getter(c"__qualname__", Attribute::Name),
        getter(c"__doc__", Attribute::Doc),
        getter(c"__module__", Attribute::Module),
        ffi::PyGetSetDef::default(),
    ]));
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: c"For pickle.".as_ptr(),
        },
        ffi::PyMethodDef::zeroed(),
    ]));
    let members = Box::leak(Box::new([
        ffi::PyMemberDef {
            name: c"__vectorcalloffset__".as_ptr(),
            type_code: ffi::Py_T_PYSSIZET,
            offset: offset_of!(OpObject, vectorcall) as ffi::Py_ssize_t,
            flags: ffi::Py_READONLY,
            doc: std::ptr::null(),
        },
        ffi::PyMemberDef::default(),
    ]));
    let mut slots = [
        slot(ffi::Py_tp_call, PyVectorcall_Call as *mut c_void),
        slot(ffi::Py_tp_descr_get, descr_get as *mut c_void),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_getset, getset.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"flambeau._C.OpFunction".as_ptr(),
        basicsize: size_of::<OpObject>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | HAVE_VECTORCALL | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION)
            as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec describes `OpObject`; what slots point to is never freed.
    let ty = checked(py, unsafe { ffi::PyType_FromSpec(&mut spec) })?;
    TYPE.store(ty.cast(), Ordering::Relaxed);
    Ok(())
}

/// The object of a function.
pub fn object<'py>(py: Python<'py>, function: &'static Function) -> Ret<Bound<'py, PyAny>> {
    // SAFETY: a fresh object of this type's layout, filled before anybody sees it.
    unsafe {
        let obj = checked(py, ffi::PyType_GenericAlloc(TYPE.load(Ordering::Relaxed), 0))?;
        let op = obj.cast::<OpObject>();
        (&raw mut (*op).vectorcall).write(vectorcall);
        (&raw mut (*op).function).write(function);
        Ok(Bound::from_owned_ptr(py, obj))
    }
}

/// Arguments of a plain Python call, for what is not called by vectorcall.
pub fn given_of<'a>(args: &'a [Ptr]) -> Given<'a> {
    Given { all: args, positional: args.len(), names: null_mut() }
}

/// Calls an operation by name on positional arguments.
pub fn call_named<'py>(py: Python<'py>, name: &str, args: &Bound<'py, PyTuple>) -> Ret<Bound<'py, PyAny>> {
    let function = crate::table::function(name)?;
    let ptrs: Vec<Ptr> = args.iter_borrowed().map(|a| a.as_ptr()).collect();
    let out = function.call(py, given_of(&ptrs))?;
    // SAFETY: an owned reference.
    Ok(unsafe { Bound::from_owned_ptr(py, out) })
}
