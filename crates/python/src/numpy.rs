//! Arrays on the memory of tensors and tensors on the memory of arrays, by NumPy's array interface.

use crate::error::*;
use crate::front::Held;
use crate::tensor_type::*;
use flambeau_base::{DType, Device, Layout};
use flambeau_engine::{Storage, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The interface's name of a dtype. `TypeError` for dtypes that NumPy does not have.
fn typestr(dtype: DType) -> Ret<&'static str> {
    Ok(match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        other => {
            return Err(type_error(format!("Got unsupported ScalarType {other}: NumPy has no such type; convert with .float() first")));
        }
    })
}

/// The dtype of an array, where flambeau has it.
fn dtype_of_array(array: &Bound<'_, PyAny>) -> Ret<DType> {
    let dtype = array.getattr("dtype")?;
    let name: String = dtype.getattr("name")?.extract()?;
    let ours = match name.as_str() {
        "float" => "float64",
        other => other,
    };
    DType::ALL.into_iter().find(|d| d.name() == ours).ok_or_else(|| {
        type_error(format!(
            "can't convert np.ndarray of type numpy.{name}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        ))
    })
}

/// Whether an object is a NumPy array (or NumPy's number of no dimensions).
pub fn is_array(obj: &Bound<'_, PyAny>) -> bool {
    let Some(generic) = crate::convert::numpy_generic(obj.py()) else { return false };
    let of = |name: &str| generic.getattr("__module__").and_then(|_| obj.py().import("numpy")?.getattr(name));
    of("ndarray").is_ok_and(|class| obj.is_instance(&class).unwrap_or(false))
}

/// What keeps an array alive for a storage.
struct Owner(#[allow(dead_code, reason = "kept for its drop")] Held);

/// A tensor on the memory of an array, or with a copy of its values.
///
/// A copy is made also where the tensor could not look at the memory: of foreign byte order, unaligned,
/// with negative strides or strides that are no multiple of an element's size.
pub fn from_array(array: &Bound<'_, PyAny>, copy: bool) -> Ret<Tensor> {
    let py = array.py();
    let dtype = dtype_of_array(array)?;
    if let Some(why) = obstacle(array, dtype)? {
        let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
        let _ = why;
        let kwargs = PyDict::new(py);
        kwargs.set_item("order", "C")?;
        let fresh = array.call_method("astype", (native,), Some(&kwargs))?;
        return on_memory(&fresh, dtype);
    }
    let t = on_memory(array, dtype)?;
    if copy { Ok(t.copy()?) } else { Ok(t) }
}

/// Why a tensor cannot look at an array's memory.
fn obstacle(array: &Bound<'_, PyAny>, dtype: DType) -> Ret<Option<&'static str>> {
    if !array.getattr("dtype")?.getattr("isnative")?.extract::<bool>()? {
        return Ok(Some(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported.",
        ));
    }
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    if strides.iter().any(|&s| s < 0) {
        return Ok(Some(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. (You can probably work around this by making a copy of your array with array.copy().)",
        ));
    }
    if strides.iter().any(|&s| s % dtype.size() as isize != 0) {
        return Ok(Some(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
        ));
    }
    let aligned: bool = array.getattr("flags")?.getattr("aligned")?.extract()?;
    Ok((!aligned).then_some("given numpy array is not aligned for its type. Copy the numpy array to reallocate the memory."))
}

fn on_memory(array: &Bound<'_, PyAny>, dtype: DType) -> Ret<Tensor> {
    let interface = array.getattr("__array_interface__")?;
    let (address, read_only): (usize, bool) = interface.get_item("data")?.extract()?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    let steps: Vec<isize> = strides.iter().map(|s| s / dtype.size() as isize).collect();
    let layout = Layout::strided("from_numpy", &shape, &steps, 0)?;
    let nbytes = if layout.numel() == 0 { 0 } else { layout.end() * dtype.size() };
    let owner = Box::new(Owner(Held::new(array)));
    // SAFETY: the array's memory reaches as far as its shape and strides say, stays as long as the array,
    // and read-only memory is said to be so.
    let storage = unsafe { Storage::borrow(Device::CPU, address as *mut u8, nbytes, read_only, owner).of_fixed_size() };
    Ok(Tensor::from_storage(storage, layout, dtype)?)
}

/// A tensor on the memory of a NumPy array. `ValueError` where it cannot look at that memory.
#[pyfunction]
pub fn from_numpy<'py>(py: Python<'py>, ndarray: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        if !is_array(ndarray) {
            return Err(type_error(format!("expected np.ndarray (got {})", type_name(ndarray.as_ptr()))));
        }
        let dtype = dtype_of_array(ndarray)?;
        if let Some(why) = obstacle(ndarray, dtype)? {
            // A reversed array has no tensor on its memory; its values are copied.
            let reversed = ndarray.getattr("strides")?.extract::<Vec<isize>>()?.iter().any(|&s| s < 0);
            if reversed && ndarray.getattr("dtype")?.getattr("isnative")?.extract::<bool>()? {
                return wrap_bound(py, from_array(ndarray, true)?);
            }
            return Err(value_error(why));
        }
        wrap_bound(py, on_memory(ndarray, dtype)?)
    })
}

/// The memory of a tensor under NumPy's array interface; keeps the memory alive.
#[pyclass(name = "_Memory", module = "flambeau._C", frozen)]
pub struct Memory {
    tensor: Tensor,
    writable: bool,
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        shielded(|| {
            let t = &self.tensor;
            let size = t.dtype().size() as isize;
            let dict = PyDict::new(py);
            dict.set_item("typestr", typestr(t.dtype())?)?;
            dict.set_item("shape", PyTuple::new(py, t.shape())?)?;
            dict.set_item("strides", PyTuple::new(py, t.strides().iter().map(|s| s * size))?)?;
            dict.set_item("data", (t.data_ptr()? as usize, !self.writable))?;
            dict.set_item("version", 3)?;
            Ok(dict)
        })
    }
}

/// `tensor.numpy(force)`: an array on the same memory; with `force`, on a copy where that cannot be.
pub fn numpy(py: Python<'_>, t: &Tensor, object: &Bound<'_, PyAny>, force: bool) -> Ret<Ptr> {
    if t.requires_grad() && !force {
        return Err(runtime_error("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."));
    }
    let _ = object;
    let resolved = t.alias().resolved()?;
    if t.is_conj() && !force {
        return Err(runtime_error("Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead."));
    }
    if t.is_neg() && !force {
        return Err(runtime_error("Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead."));
    }
    let t = &resolved;
    if t.device().is_meta() || t.device().kind != flambeau_base::DeviceKind::Cpu {
        return Err(type_error(format!(
            "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
            t.device()
        )));
    }
    typestr(t.dtype())?;
    let writable = !t.storage().is_read_only();
    let memory = Bound::new(py, Memory { tensor: t.alias(), writable })?;
    Ok(py.import("numpy")?.call_method1("asarray", (memory,))?.into_ptr())
}

/// `tensor.__array__(dtype)`.
pub fn array(py: Python<'_>, t: &Tensor, object: &Bound<'_, PyAny>, dtype: Option<Bound<'_, PyAny>>) -> Ret<Ptr> {
    let made = numpy(py, t, object, false)?;
    match dtype {
        Some(d) if !d.is_none() => {
            // SAFETY: an owned reference.
            let made = unsafe { Bound::from_owned_ptr(py, made) };
            let kwargs = PyDict::new(py);
            kwargs.set_item("copy", false)?;
            Ok(made.call_method("astype", (d,), Some(&kwargs))?.into_ptr())
        }
        _ => Ok(made),
    }
}
