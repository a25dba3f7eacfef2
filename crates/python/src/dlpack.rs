//! DLPack: memory shared with other libraries. Source: the DLPack specification 1.1 (dmlc.github.io/dlpack).

use crate::error::*;
use crate::tensor_type::*;
use flambeau_base::{DType, Device, Layout};
use flambeau_engine::{Storage, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    index: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const CPU: i32 = 1;
const READ_ONLY: u64 = 1;
const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const USED: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// Type codes and bits of the dtypes.
const TYPES: [(DType, u8, u8); 17] = [
    (DType::Bool, 6, 8),
    (DType::U8, 1, 8),
    (DType::I8, 0, 8),
    (DType::I16, 0, 16),
    (DType::I32, 0, 32),
    (DType::I64, 0, 64),
    (DType::U16, 1, 16),
    (DType::U32, 1, 32),
    (DType::U64, 1, 64),
    (DType::F8E4M3, 10, 8),
    (DType::F8E5M2, 12, 8),
    (DType::F16, 2, 16),
    (DType::BF16, 4, 16),
    (DType::F32, 2, 32),
    (DType::F64, 2, 64),
    (DType::C64, 5, 64),
    (DType::C128, 5, 128),
];

fn buffer_error(text: impl Into<String>) -> Raised {
    Raised(PyBufferError::new_err(text.into()))
}

/// What an exported tensor keeps alive.
struct Exported {
    #[allow(dead_code, reason = "kept for its drop")]
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn describe(context: &mut Exported, t: &Tensor) -> Ret<DlTensor> {
    let (_, code, bits) = TYPES.into_iter().find(|(d, ..)| *d == t.dtype()).ok_or_else(|| buffer_error("DLPack has no such type"))?;
    if t.is_conj() || t.is_neg() {
        return Err(buffer_error(if t.is_conj() {
            "Can't export tensors with the conjugate bit set"
        } else {
            "Can't export tensors with the negative bit set"
        }));
    }
    let data = if t.storage().is_read_only() { t.data_ptr()? } else { t.data_ptr_mut()? };
    Ok(DlTensor {
        data: data.cast(),
        device: DlDevice { kind: CPU, index: 0 },
        ndim: t.ndim() as i32,
        dtype: DlType { code, bits, lanes: 1 },
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    })
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: called once, with what `to_dlpack` made.
    unsafe {
        drop(Box::from_raw((*managed).context.cast::<Exported>()));
        drop(Box::from_raw(managed));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: called once, with what `to_dlpack` made.
    unsafe {
        drop(Box::from_raw((*managed).context.cast::<Exported>()));
        drop(Box::from_raw(managed));
    }
}

/// Frees what a capsule holds, unless somebody took it, which renames the capsule.
unsafe extern "C" fn destroy(capsule: Ptr) {
    // SAFETY: called by the interpreter with a capsule of ours; the pointer's type follows from the name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}

/// A capsule by which another library sees a tensor's memory; of the versioned kind where it knows that.
#[pyfunction]
#[pyo3(name = "_to_dlpack", signature = (tensor, max_version=None))]
pub fn to_dlpack<'py>(py: Python<'py>, tensor: &Bound<'py, PyAny>, max_version: Option<(u32, u32)>) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let t = expect_tensor(tensor)?.alias();
        let mut context = Box::new(Exported {
            shape: t.shape().iter().map(|&n| n as i64).collect(),
            strides: t.strides().iter().map(|&n| n as i64).collect(),
            tensor: t.clone(),
        });
        let described = describe(&mut context, &t)?;
        let read_only = t.storage().is_read_only();
        let context: *mut c_void = Box::into_raw(context).cast();
        let (pointer, name): (*mut c_void, &CStr) = if max_version.is_some_and(|(major, _)| major >= 1) {
            let flags = if read_only { READ_ONLY } else { 0 };
            let managed = Versioned { major: 1, minor: 1, context, deleter: Some(delete_versioned), flags, tensor: described };
            (Box::into_raw(Box::new(managed)).cast(), NAME_VERSIONED)
        } else {
            if read_only {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(context.cast::<Exported>()) });
                return Err(buffer_error("read-only memory can only be exported by DLPack 1.0 or later: clone() the tensor first"));
            }
            (Box::into_raw(Box::new(Managed { tensor: described, context, deleter: Some(delete) })).cast(), NAME)
        };
        // SAFETY: the pointer is not null, the name is static, and the destructor fits both.
        unsafe {
            let capsule = checked(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy)))?;
            Ok(Bound::from_owned_ptr(py, capsule))
        }
    })
}

/// Another library's memory; given back when it is dropped.
enum Foreign {
    Plain(*mut Managed),
    Versioned(*mut Versioned),
}

// SAFETY: the protocol lets any thread call the deleter.
unsafe impl Send for Foreign {}
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the capsule was taken, so this is the one call of its deleter.
        unsafe {
            match self {
                Foreign::Plain(m) => {
                    if let Some(f) = (**m).deleter {
                        f(*m);
                    }
                }
                Foreign::Versioned(m) => {
                    if let Some(f) = (**m).deleter {
                        f(*m);
                    }
                }
            }
        }
    }
}

/// A tensor on what another library describes.
fn from_described(d: &DlTensor, read_only: bool, owner: Foreign) -> Ret<Tensor> {
    if d.device.kind != CPU {
        return Err(buffer_error(format!(
            "from_dlpack: memory on DLPack device type {} is not available: move it to the CPU first",
            d.device.kind
        )));
    }
    let found = TYPES.into_iter().find(|(_, code, bits)| *code == d.dtype.code && *bits == d.dtype.bits && d.dtype.lanes == 1);
    let (dtype, ..) = found.ok_or_else(|| {
        buffer_error(format!("from_dlpack: no dtype for DLPack type code {}, {} bits, {} lanes", d.dtype.code, d.dtype.bits, d.dtype.lanes))
    })?;
    let n = usize::try_from(d.ndim).map_err(|_| buffer_error("from_dlpack: a negative number of dimensions"))?;
    // SAFETY: the protocol gives `ndim` sizes, and as many strides unless the pointer is null.
    let numbers = |p: *mut i64| if n == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(p, n) }.to_vec() };
    let sizes = numbers(d.shape);
    let strides = if d.strides.is_null() { None } else { Some(numbers(d.strides)) };
    if strides.as_ref().is_some_and(|s| s.iter().any(|&x| x < 0)) {
        return Err(buffer_error("from_dlpack: negative strides are not supported: copy the array first"));
    }
    let layout: Layout = crate::methods::layout_of("from_dlpack", &sizes, strides.as_deref(), 0)?;
    let address = (d.data as *mut u8).wrapping_add(d.byte_offset as usize);
    if layout.numel() > 0 && !(address as usize).is_multiple_of(dtype.size().min(8)) {
        return Err(buffer_error("from_dlpack: the memory is not aligned for its type: copy the array first"));
    }
    let nbytes = if layout.numel() == 0 { 0 } else { layout.end() * dtype.size() };
    // SAFETY: the protocol says that the memory reaches as far as sizes and strides say, and stays until the deleter is called.
    let storage = unsafe { Storage::borrow(Device::CPU, address, nbytes, read_only, Box::new(owner)).of_fixed_size() };
    Ok(Tensor::from_storage(storage, layout, dtype)?)
}

fn from_capsule(capsule: &Bound<'_, PyCapsule>) -> Ret<Tensor> {
    let ptr = capsule.as_ptr();
    // SAFETY: the capsule's name says what it points to; renaming it takes the contents over.
    unsafe {
        if ffi::PyCapsule_IsValid(ptr, NAME_VERSIONED.as_ptr()) != 0 {
            let managed: *mut Versioned = ffi::PyCapsule_GetPointer(ptr, NAME_VERSIONED.as_ptr()).cast();
            if (*managed).major > 1 {
                return Err(buffer_error(format!("from_dlpack: DLPack version {} is not supported", (*managed).major)));
            }
            ffi::PyCapsule_SetName(ptr, USED_VERSIONED.as_ptr());
            return from_described(&(*managed).tensor, (*managed).flags & READ_ONLY != 0, Foreign::Versioned(managed));
        }
        if ffi::PyCapsule_IsValid(ptr, NAME.as_ptr()) != 0 {
            let managed: *mut Managed = ffi::PyCapsule_GetPointer(ptr, NAME.as_ptr()).cast();
            ffi::PyCapsule_SetName(ptr, USED.as_ptr());
            return from_described(&(*managed).tensor, false, Foreign::Plain(managed));
        }
    }
    Err(runtime_error("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once"))
}

/// A tensor on the memory of an object that speaks DLPack, or of its capsule.
#[pyfunction]
#[pyo3(signature = (ext_tensor, *, device=None, copy=None))]
pub fn from_dlpack<'py>(
    py: Python<'py>,
    ext_tensor: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        if let Some(d) = device.map(crate::objects::device_of).transpose()?.flatten()
            && !d.same(Device::CPU)
        {
            return Err(buffer_error(format!("from_dlpack: device '{d}' is not available")));
        }
        let capsule = if ext_tensor.is_instance_of::<PyCapsule>() {
            ext_tensor.clone()
        } else {
            let export = ext_tensor.getattr("__dlpack__")?;
            let kwargs = PyDict::new(py);
            kwargs.set_item("max_version", (1, 1))?;
            match export.call((), Some(&kwargs)) {
                // An older library, which does not know the argument.
                Err(e) if e.is_instance_of::<PyTypeError>(py) => export.call0()?,
                other => other?,
            }
        };
        let t = from_capsule(capsule.cast::<PyCapsule>()?)?;
        wrap_bound(py, if copy == Some(true) { t.copy()? } else { t })
    })
}
