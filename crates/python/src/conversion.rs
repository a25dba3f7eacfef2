//! `to` and its kin: the same values in another dtype, on another device, in another memory format.

use crate::convert::convert_bool;
use crate::dtype::{DTypeObject, dtype_of};
use crate::error::*;
use crate::methods::Call;
use crate::objects::{MemoryFormatObject, device_of};
use crate::tensor_type::*;
use flambeau_base::{DType, Device, MemoryFormat};
use flambeau_engine::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// What is asked for.
#[derive(Default)]
struct Wanted {
    dtype: Option<DType>,
    device: Option<Device>,
    copy: bool,
    format: Option<MemoryFormat>,
}

/// The values of a tensor as they are wanted; the tensor itself where nothing changes.
fn convert(c: &Call, wanted: &Wanted) -> Ret<Ptr> {
    let t = c.tensor;
    let dtype = wanted.dtype.filter(|&d| d != t.dtype());
    let device = wanted.device.filter(|d| !d.same(t.device()));
    let format = wanted.format.filter(|&f| f != MemoryFormat::Preserve && !t.layout().is_contiguous_in(f));
    if dtype.is_none() && device.is_none() && format.is_none() && !wanted.copy {
        return Ok(c.object.clone().into_ptr());
    }
    if let Some(device) = device {
        return wrap(c.py, moved(t, device, dtype.unwrap_or(t.dtype()))?);
    }
    let mut made = match dtype {
        Some(d) => t.to_dtype(d)?,
        None => t.clone(),
    };
    if format.is_some() || made.is(t) {
        made = made.copy_in(wanted.format.unwrap_or(MemoryFormat::Preserve))?;
    }
    wrap(c.py, made)
}

fn moved(t: &Tensor, device: Device, dtype: DType) -> Ret<Tensor> {
    if t.device().is_meta() {
        let text = "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.";
        return Err(Raised(pyo3::exceptions::PyNotImplementedError::new_err(text)));
    }
    if device.is_meta() {
        return Ok(Tensor::empty_strided(t.shape(), t.strides(), dtype, device)?);
    }
    // Says that there is no such device.
    Ok(Tensor::empty(t.shape(), dtype, device)?)
}

fn format_of(obj: &Bound<'_, PyAny>) -> Ret<Option<MemoryFormat>> {
    if obj.is_none() {
        return Ok(None);
    }
    Ok(Some(
        obj.cast::<MemoryFormatObject>()
            .map_err(|_| type_error(format!("memory_format must be a torch.memory_format, got {}", type_name(obj.as_ptr()))))?
            .get()
            .0,
    ))
}

/// `to(dtype)`, `to(device, dtype)`, `to(other)`, each with `non_blocking`, `copy` and `memory_format`.
pub fn to(c: &Call) -> Ret<Ptr> {
    let mut wanted = Wanted::default();
    let mut flags = 0;
    for (i, obj) in c.positional().enumerate() {
        let wrong = || {
            type_error(format!("to() received an invalid combination of arguments: argument {} is a {}", i + 1, type_name(obj.as_ptr())))
        };
        // SAFETY: an argument, which the interpreter holds during the call.
        if let (0, Some(other)) = (i, unsafe { tensor_of(obj.as_ptr()) }) {
            (wanted.dtype, wanted.device) = (Some(other.dtype()), Some(other.device()));
        } else if let Ok(d) = obj.cast::<DTypeObject>() {
            wanted.dtype = Some(d.get().0);
        } else if obj.is_none() {
        } else if let Some(flag) = convert_bool(c.py, obj.as_ptr())? {
            // The first one is `non_blocking`, which means nothing here.
            if flags == 1 {
                wanted.copy = flag;
            }
            flags += 1;
        } else if let (0, Some(d)) = (i, device_of(&obj)?) {
            wanted.device = Some(d);
        } else if let Some(d) = dtype_of(c.py, obj.as_ptr()) {
            wanted.dtype = Some(d);
        } else {
            return Err(wrong());
        }
    }
    for (name, obj) in c.named()? {
        match name.as_str() {
            "dtype" if obj.is_none() => {}
            "dtype" => {
                wanted.dtype = Some(dtype_of(c.py, obj.as_ptr()).ok_or_else(|| type_error("to(): argument 'dtype' must be torch.dtype"))?)
            }
            "device" if obj.is_none() => {}
            "device" => wanted.device = device_of(&obj)?,
            "other" => {
                let other = expect_tensor(&obj)?;
                (wanted.dtype, wanted.device) = (Some(other.dtype()), Some(other.device()));
            }
            "copy" => wanted.copy = obj.is_truthy()?,
            "non_blocking" => {}
            "memory_format" => wanted.format = format_of(&obj)?,
            other => return Err(type_error(format!("to() got an unexpected keyword argument '{other}'"))),
        }
    }
    convert(c, &wanted)
}

/// A method that converts to one dtype: `float()`.
pub fn to_dtype(c: &Call, dtype: DType) -> Ret<Ptr> {
    let format = c.arg(0, "memory_format")?.map_or(Ok(None), |f| format_of(&f))?;
    convert(c, &Wanted { dtype: Some(dtype), format, ..Wanted::default() })
}

/// `cpu()`, `cuda()`.
pub fn to_device(c: &Call, device: Device) -> Ret<Ptr> {
    let device = match c.arg(0, "device")? {
        Some(d) if device.kind != flambeau_base::DeviceKind::Cpu && !d.is_none() => device_of(&d)?.unwrap_or(device),
        _ => device,
    };
    convert(c, &Wanted { device: Some(device), ..Wanted::default() })
}

/// `type_as(other)`.
pub fn type_as(c: &Call) -> Ret<Ptr> {
    let other = c.need(0, "other", "type_as")?;
    let other = expect_tensor(&other)?;
    convert(c, &Wanted { dtype: Some(other.dtype()), device: Some(other.device()), ..Wanted::default() })
}

/// The names of tensor types from before dtypes, by dtype.
fn legacy_name(dtype: DType) -> String {
    let name = match dtype {
        DType::Bool => "Bool",
        DType::U8 => "Byte",
        DType::I8 => "Char",
        DType::I16 => "Short",
        DType::I32 => "Int",
        DType::I64 => "Long",
        DType::F16 => "Half",
        DType::BF16 => "BFloat16",
        DType::F32 => "Float",
        DType::F64 => "Double",
        DType::C64 => "ComplexFloat",
        DType::C128 => "ComplexDouble",
        DType::U16 => "UInt16",
        DType::U32 => "UInt32",
        DType::U64 => "UInt64",
        DType::F8E4M3 => "Float8_e4m3fn",
        DType::F8E5M2 => "Float8_e5m2",
    };
    format!("torch.{name}Tensor")
}

/// `type()` gives the type's name, `type(dtype)` converts.
pub fn type_(c: &Call) -> Ret<Ptr> {
    let asked = match c.arg(0, "dtype")? {
        Some(d) if !d.is_none() => d,
        _ => return Ok(PyString::new(c.py, &legacy_name(c.tensor.dtype())).into_any().into_ptr()),
    };
    let named =
        |name: &str| DType::ALL.into_iter().find(|&d| legacy_name(d).trim_start_matches("torch.") == name.trim_start_matches("torch."));
    let dtype = match (asked.cast::<PyString>(), asked.cast::<PyType>()) {
        (Ok(name), _) => named(name.to_str()?),
        (_, Ok(class)) => dtype_of(c.py, asked.as_ptr()).or(named(class.name()?.to_str()?)),
        _ => dtype_of(c.py, asked.as_ptr()),
    };
    let dtype = dtype.ok_or_else(|| value_error(format!("invalid type: {asked}")))?;
    convert(c, &Wanted { dtype: Some(dtype), ..Wanted::default() })
}

/// `new_tensor(data)`: of the tensor's dtype and device unless told otherwise.
pub fn new_tensor(c: &Call) -> Ret<Ptr> {
    let data = c.need(0, "data", "new_tensor")?;
    let dtype = c.arg(1, "dtype")?.filter(|d| !d.is_none()).and_then(|d| dtype_of(c.py, d.as_ptr())).unwrap_or(c.tensor.dtype());
    let device = c.arg(2, "device")?.filter(|d| !d.is_none()).map_or(Ok(None), |d| device_of(&d))?.unwrap_or(c.tensor.device());
    let made = crate::data::from_data(&data, Some(dtype), Some(device), true)?;
    if c.arg(3, "requires_grad")?.map_or(Ok(false), |r| r.is_truthy())? {
        made.set_requires_grad(true)?;
    }
    wrap(c.py, made)
}
