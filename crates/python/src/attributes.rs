//! Attributes of tensors: `shape`, `dtype`, `grad`, `data` and the rest.

use crate::convert::device_ptr;
use crate::dtype::dtype_ptr;
use crate::error::*;
use crate::operators::Named;
use crate::size::size_object;
use crate::tensor_type::*;
use flambeau_base::DeviceKind;
use flambeau_engine::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};

type Get = fn(Python<'_>, &Tensor, Ptr) -> Ret<Ptr>;
type Set = fn(Python<'_>, &Tensor, &Bound<'_, PyAny>) -> Ret<()>;

/// An attribute: its name, and how it is read and written.
struct Attribute {
    name: &'static CStr,
    get: Get,
    set: Option<Set>,
}

fn bool_ptr(b: bool) -> Ret<Ptr> {
    // SAFETY: a plain constructor; callers hold the GIL.
    Ok(unsafe { ffi::PyBool_FromLong(b.into()) })
}

/// An integer as a Python object.
pub fn int_ptr(py: Python<'_>, n: usize) -> Ret<Ptr> {
    // SAFETY: a plain constructor.
    checked(py, unsafe { ffi::PyLong_FromSize_t(n) })
}

fn call_method(py: Python<'_>, op: &Named, obj: Ptr) -> Ret<Ptr> {
    op.get()?.call(py, crate::op_function::given_of(&[obj]))
}

/// The transpose of a matrix: all dimensions turned around.
fn transposed(py: Python<'_>, t: &Tensor, obj: Ptr) -> Ret<Ptr> {
    static T: Named = Named::new("t");
    static PERMUTE: Named = Named::new("permute");
    if t.ndim() <= 2 {
        return call_method(py, &T, obj);
    }
    let dims: Vec<i64> = (0..t.ndim() as i64).rev().collect();
    let dims = pyo3::types::PyTuple::new(py, dims)?;
    PERMUTE.get()?.call(py, crate::op_function::given_of(&[obj, dims.as_ptr()]))
}

fn matrix_transposed(py: Python<'_>, t: &Tensor, obj: Ptr) -> Ret<Ptr> {
    if t.ndim() < 2 {
        return Err(runtime_error(format!("tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.", t.ndim())));
    }
    let _ = obj;
    wrap(py, t.transpose(-2, -1)?)
}

fn get_grad(py: Python<'_>, t: &Tensor, _: Ptr) -> Ret<Ptr> {
    let grad = t.grad();
    if grad.is_none() && t.requires_grad() && !t.is_leaf() && !t.retains_grad() {
        let text = c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.";
        PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), text, 2)?;
    }
    wrap_opt(py, grad)
}

fn set_grad(_: Python<'_>, t: &Tensor, value: &Bound<'_, PyAny>) -> Ret<()> {
    if value.is_none() {
        t.set_grad(None);
        return Ok(());
    }
    let grad = expect_tensor(value).map_err(|_| {
        type_error(format!("assigned grad expected to be a Tensor or None but got grad of type {}", type_name(value.as_ptr())))
    })?;
    if grad.is(t) {
        return Err(runtime_error("can't assign Variable as its own grad"));
    }
    if grad.dtype() != t.dtype() {
        return Err(runtime_error(format!(
            "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype).",
            grad.dtype(),
            t.dtype()
        )));
    }
    if !grad.device().same(t.device()) {
        return Err(runtime_error(format!(
            "assigned grad has data located on a different device: {} instead of {}",
            grad.device(),
            t.device()
        )));
    }
    if grad.shape() != t.shape() {
        return Err(runtime_error(format!("assigned grad has data of a different size: {:?} instead of {:?}", grad.shape(), t.shape())));
    }
    t.set_grad(Some(grad.clone()));
    Ok(())
}

fn set_data(_: Python<'_>, t: &Tensor, value: &Bound<'_, PyAny>) -> Ret<()> {
    let new =
        expect_tensor(value).map_err(|_| type_error(format!("Variable data has to be a tensor, but got {}", type_name(value.as_ptr()))))?;
    if t.requires_grad() && !new.dtype().is_differentiable() {
        return Err(runtime_error(format!(
            "data set to a tensor that requires gradients must be floating point or complex dtype, got {}",
            new.dtype()
        )));
    }
    let new = new.resolved()?;
    // SAFETY: the GIL is held, and work done without it has aliases.
    unsafe { t.replace(new.storage().clone(), new.layout().clone(), new.dtype())? };
    Ok(())
}

fn set_requires_grad(_: Python<'_>, t: &Tensor, value: &Bound<'_, PyAny>) -> Ret<()> {
    let on = value.extract::<bool>().map_err(|_| type_error("requires_grad must be a bool"))?;
    Ok(t.set_requires_grad(on)?)
}

static ATTRIBUTES: &[Attribute] = &[
    read(c"shape", |py, t, _| size_object(py, t.shape())),
    read(c"dtype", |py, t, _| dtype_ptr(py, t.dtype())),
    read(c"device", |py, t, _| device_ptr(py, t.device())),
    read(c"layout", |py, _, _| Ok(crate::objects::strided(py)?.clone_ref(py).into_ptr())),
    read(c"ndim", |py, t, _| int_ptr(py, t.ndim())),
    read(c"itemsize", |py, t, _| int_ptr(py, t.dtype().size())),
    read(c"nbytes", |py, t, _| int_ptr(py, t.numel() * t.dtype().size())),
    read(c"is_leaf", |_, t, _| bool_ptr(t.is_leaf())),
    read(c"retains_grad", |_, t, _| bool_ptr(t.retains_grad() && !t.is_leaf())),
    read(c"is_cpu", |_, t, _| bool_ptr(t.device().kind == DeviceKind::Cpu)),
    read(c"is_cuda", |_, t, _| bool_ptr(t.device().kind == DeviceKind::Cuda)),
    read(c"is_mps", |_, t, _| bool_ptr(t.device().kind == DeviceKind::Mps)),
    read(c"is_meta", |_, t, _| bool_ptr(t.device().is_meta())),
    read(c"is_sparse", |_, _, _| bool_ptr(false)),
    read(c"is_sparse_csr", |_, _, _| bool_ptr(false)),
    read(c"is_quantized", |_, _, _| bool_ptr(false)),
    read(c"is_nested", |_, _, _| bool_ptr(false)),
    read(c"is_mkldnn", |_, _, _| bool_ptr(false)),
    read(c"is_xpu", |_, _, _| bool_ptr(false)),
    read(c"output_nr", |py, _, _| int_ptr(py, 0)),
    read(c"name", |_, _, _| Ok(none())),
    read(c"_version", |py, t, _| int_ptr(py, t.version() as usize)),
    read(c"_base", |py, t, _| wrap_opt(py, t.base())),
    read(c"_cdata", |py, t, _| int_ptr(py, t.id())),
    read(c"grad_fn", |py, t, _| match t.grad_fn() {
        Some(node) => crate::node::node_object(py, node),
        None => Ok(none()),
    }),
    read(c"T", transposed),
    read(c"mT", matrix_transposed),
    read(c"mH", |py, t, _| {
        if t.ndim() < 2 {
            return Err(runtime_error(format!(
                "tensor.mH is only supported on matrices or batches of matrices. Got {}-D tensor.",
                t.ndim()
            )));
        }
        wrap(py, t.adjoint()?)
    }),
    read(c"H", |py, t, obj| {
        if t.ndim() != 2 && t.ndim() != 0 {
            return Err(runtime_error(format!("tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.", t.ndim())));
        }
        static CONJUGATE: Named = Named::new("conj");
        static ADJOINT: Named = Named::new("adjoint");
        call_method(py, if t.ndim() == 0 { &CONJUGATE } else { &ADJOINT }, obj)
    }),
    read(c"mH", |py, _, obj| {
        static ADJOINT: Named = Named::new("adjoint");
        call_method(py, &ADJOINT, obj)
    }),
    read(c"real", |py, t, obj| {
        static VIEW: Named = Named::new("real");
        if t.dtype().is_complex() {
            call_method(py, &VIEW, obj)
        } else {
            // SAFETY: the attribute's owner.
            Ok(unsafe { ffi::Py_NewRef(obj) })
        }
    }),
    read(c"imag", |py, _, obj| {
        static VIEW: Named = Named::new("imag");
        call_method(py, &VIEW, obj)
    }),
    Attribute { name: c"requires_grad", get: |_, t, _| bool_ptr(t.requires_grad()), set: Some(set_requires_grad) },
    Attribute { name: c"grad", get: get_grad, set: Some(set_grad) },
    Attribute { name: c"data", get: |py, t, _| wrap(py, t.data()), set: Some(set_data) },
];

const fn read(name: &'static CStr, get: Get) -> Attribute {
    Attribute { name, get, set: None }
}

unsafe extern "C" fn getter(obj: Ptr, which: *mut c_void) -> Ptr {
    guard(|py| {
        // SAFETY: the closure is an attribute of the table; the interpreter calls with an object of the type.
        unsafe { ((*which.cast::<Attribute>()).get)(py, own_tensor(obj)?, obj) }
    })
}

unsafe extern "C" fn setter(obj: Ptr, value: Ptr, which: *mut c_void) -> c_int {
    guard_int(|py| {
        // SAFETY: as in `getter`; the value is null where the attribute is deleted.
        let (attribute, t, value) = unsafe { (&*which.cast::<Attribute>(), own_tensor(obj)?, Bound::from_borrowed_ptr_or_opt(py, value)) };
        let name = attribute.name.to_string_lossy();
        let Some(set) = attribute.set else { return Err(type_error(format!("attribute '{name}' cannot be set"))) };
        // Deleting a gradient takes it away; nothing else can be deleted.
        let value = match value {
            Some(v) => v,
            None if name == "grad" => py.None().into_bound(py),
            None => return Err(type_error(format!("attribute '{name}' cannot be deleted"))),
        };
        set(py, t, &value)?;
        Ok(0)
    })
}

/// The table as the type wants it. Never freed.
pub fn getset() -> *mut c_void {
    let mut all: Vec<ffi::PyGetSetDef> = ATTRIBUTES
        .iter()
        .map(|a| ffi::PyGetSetDef {
            name: a.name.as_ptr(),
            get: Some(getter),
            set: a.set.map(|_| setter as ffi::setter),
            doc: std::ptr::null(),
            closure: (a as *const Attribute).cast_mut().cast(),
        })
        .collect();
    all.push(ffi::PyGetSetDef::default());
    Box::leak(all.into_boxed_slice()).as_mut_ptr().cast()
}
