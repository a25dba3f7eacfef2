//! Methods that convert: to another dtype, another device, another order in memory.

use crate::dtype::{DTypeObject, dtype_of};
use crate::error::*;
use crate::methods::{Call, Method};
use crate::objects::{MemoryFormatObject, device_of};
use crate::tensor_type::*;
use flambeau_base::{DType, Device, Error, Layout, MemoryFormat};
use flambeau_engine::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use std::ffi::CStr;

/// What a conversion is asked for; what is not named stays as it is.
#[derive(Default)]
struct Wanted {
    device: Option<Device>,
    dtype: Option<DType>,
    copy: bool,
    format: Option<MemoryFormat>,
}

impl Wanted {
    fn dtype(dtype: DType) -> Wanted {
        Wanted { dtype: Some(dtype), ..Wanted::default() }
    }

    fn device(device: Device) -> Wanted {
        Wanted { device: Some(device), ..Wanted::default() }
    }

    /// The converted tensor; the same one where there is nothing to do.
    fn of(&self, t: &Tensor) -> Ret<Tensor> {
        let dtype = self.dtype.unwrap_or(t.dtype());
        let format = self.format.unwrap_or(MemoryFormat::Preserve);
        let device = self.device.unwrap_or(t.device());
        if !device.same(t.device()) {
            return moved(t, device, dtype);
        }
        let made = t.to_dtype(dtype)?;
        let placed = format == MemoryFormat::Preserve || made.layout().is_contiguous_in(format);
        let copied = dtype != t.dtype();
        Ok(if placed && (copied || !self.copy) { made } else { made.copy_in(format)? })
    }
}

/// On another device. A meta tensor has no values that could come along, and takes none.
fn moved(t: &Tensor, device: Device, dtype: DType) -> Ret<Tensor> {
    if t.device().is_meta() {
        return Err(Error::not_implemented(
            "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.",
        )
        .into());
    }
    let layout = Layout::in_format("to", t.shape(), MemoryFormat::Preserve, Some(t.layout()))?;
    let out = Tensor::empty_strided(layout.sizes(), layout.strides(), dtype, device)?;
    if !device.is_meta() {
        out.copy_(t)?;
    } else if t.requires_grad() {
        out.set_requires_grad(true)?;
    }
    Ok(out)
}

/// Converts, and gives the object itself back where nothing was to do.
fn converted(c: &Call, wanted: &Wanted) -> Ret<Ptr> {
    let made = wanted.of(c.tensor)?;
    wrap(c.py, made)
}

fn flag(c: &Call, i: usize, name: &str) -> Ret<bool> {
    match c.arg(i, name)? {
        Some(x) => x.extract().map_err(|_| type_error(format!("to(): argument '{name}' must be bool, not {}", type_name(x.as_ptr())))),
        None => Ok(false),
    }
}

fn memory_format(c: &Call) -> Ret<Option<MemoryFormat>> {
    match c.arg(usize::MAX, "memory_format")? {
        Some(f) if !f.is_none() => Ok(Some(f.cast::<MemoryFormatObject>()?.get().0)),
        _ => Ok(None),
    }
}

/// `to(device, dtype, non_blocking, copy)`, `to(dtype, non_blocking, copy)`, `to(other, non_blocking, copy)`.
fn to(c: &Call) -> Ret<Ptr> {
    let mut wanted = Wanted { format: memory_format(c)?, ..Wanted::default() };
    let first = c.arg(0, "other")?.or(c.arg(usize::MAX, "device")?).or(c.arg(usize::MAX, "dtype")?);
    let mut flags = 1;
    if let Some(first) = first {
        if let Ok(other) = expect_tensor(&first) {
            wanted.device = Some(other.device());
            wanted.dtype = Some(other.dtype());
        } else if let Ok(dtype) = first.cast::<DTypeObject>() {
            wanted.dtype = Some(dtype.get().0);
        } else {
            if !first.is_none() {
                let device = device_of(&first)?;
                wanted.device = Some(device.ok_or_else(|| wrong_form(&first))?);
            }
            if let Some(dtype) = c.arg(1, "dtype")?
                && !dtype.is_none()
            {
                if let Some(dtype) = dtype_of(c.py, dtype.as_ptr()) {
                    wanted.dtype = Some(dtype);
                    flags = 2;
                } else if c.arg(usize::MAX, "dtype")?.is_some() {
                    return Err(wrong_form(&dtype));
                }
            } else if c.positional() > 1 {
                flags = 2;
            }
        }
    }
    if let Some(dtype) = c.arg(usize::MAX, "dtype")?
        && !dtype.is_none()
    {
        wanted.dtype = Some(dtype_of(c.py, dtype.as_ptr()).ok_or_else(|| wrong_form(&dtype))?);
    }
    flag(c, flags, "non_blocking")?;
    wanted.copy = flag(c, flags + 1, "copy")?;
    converted(c, &wanted)
}

#[cold]
fn wrong_form(given: &Bound<'_, PyAny>) -> Raised {
    type_error(format!(
        "to() received an invalid combination of arguments: it takes (device, dtype, non_blocking, copy), (dtype, non_blocking, copy) or (other, non_blocking, copy), got {}",
        type_name(given.as_ptr())
    ))
}

/// Names of dtypes in the names of tensor types.
const TYPE_NAMES: [(DType, &str); 17] = [
    (DType::Bool, "Bool"),
    (DType::U8, "Byte"),
    (DType::I8, "Char"),
    (DType::I16, "Short"),
    (DType::I32, "Int"),
    (DType::I64, "Long"),
    (DType::U16, "UInt16"),
    (DType::U32, "UInt32"),
    (DType::U64, "UInt64"),
    (DType::F16, "Half"),
    (DType::BF16, "BFloat16"),
    (DType::F32, "Float"),
    (DType::F64, "Double"),
    (DType::C64, "ComplexFloat"),
    (DType::C128, "ComplexDouble"),
    (DType::F8E4M3, "Float8_e4m3fn"),
    (DType::F8E5M2, "Float8_e5m2"),
];

/// `torch.FloatTensor` and so on.
fn type_text(t: &Tensor) -> String {
    let name = TYPE_NAMES.iter().find(|(d, _)| *d == t.dtype()).map_or("", |(_, name)| name);
    let place = if t.device().same(Device::CPU) { String::new() } else { format!("{}.", t.device().kind.name()) };
    format!("torch.{place}{name}Tensor")
}

/// `type()` tells the type's name; `type(dtype)` and `type("torch.DoubleTensor")` convert.
fn r#type(c: &Call) -> Ret<Ptr> {
    let Some(wanted) = c.arg(0, "dtype")?.filter(|x| !x.is_none()) else {
        return Ok(PyString::new(c.py, &type_text(c.tensor)).into_any().into_ptr());
    };
    if let Some(dtype) = dtype_of(c.py, wanted.as_ptr()) {
        return converted(c, &Wanted::dtype(dtype));
    }
    let name = match wanted.cast::<PyType>() {
        Ok(class) => class.name()?.to_string(),
        Err(_) => wanted.extract::<String>().map_err(|_| type_error(format!("type(): a dtype or the name of a type, got {}", type_name(wanted.as_ptr()))))?,
    };
    let bare = name.trim_start_matches("torch.");
    let found = TYPE_NAMES.iter().find(|(_, n)| bare.strip_suffix("Tensor") == Some(n));
    match found {
        Some(&(dtype, _)) => converted(c, &Wanted::dtype(dtype)),
        None => Err(value_error(format!("invalid type: '{name}'"))),
    }
}

/// Converts to one dtype.
fn cast(c: &Call, dtype: DType) -> Ret<Ptr> {
    converted(c, &Wanted { format: memory_format(c)?, ..Wanted::dtype(dtype) })
}

fn to_cuda(c: &Call) -> Ret<Ptr> {
    let device = match c.arg(0, "device")?.filter(|x| !x.is_none()) {
        Some(x) => device_of(&x)?.ok_or_else(|| wrong_form(&x))?,
        None => "cuda".parse()?,
    };
    converted(c, &Wanted::device(device))
}

fn type_as(c: &Call) -> Ret<Ptr> {
    let other = c.need(0, "other", "type_as")?;
    let other = expect_tensor(&other)?;
    converted(c, &Wanted { device: Some(other.device()), ..Wanted::dtype(other.dtype()) })
}

/// Names, functions and what they do.
pub static METHODS: &[(&CStr, Method, &CStr)] = &[
    (c"to", to, c"In another dtype, on another device, or as another tensor is; itself where nothing changes."),
    (c"type", r#type, c"The type's name, or the values in another dtype."),
    (c"type_as", type_as, c"In the dtype and on the device of another tensor."),
    (c"cpu", |c| converted(c, &Wanted::device(Device::CPU)), c"On the CPU."),
    (c"cuda", to_cuda, c"On a CUDA device."),
    (c"float", |c| cast(c, DType::F32), c"In float32."),
    (c"double", |c| cast(c, DType::F64), c"In float64."),
    (c"half", |c| cast(c, DType::F16), c"In float16."),
    (c"bfloat16", |c| cast(c, DType::BF16), c"In bfloat16."),
    (c"long", |c| cast(c, DType::I64), c"In int64."),
    (c"int", |c| cast(c, DType::I32), c"In int32."),
    (c"short", |c| cast(c, DType::I16), c"In int16."),
    (c"char", |c| cast(c, DType::I8), c"In int8."),
    (c"byte", |c| cast(c, DType::U8), c"In uint8."),
    (c"bool", |c| cast(c, DType::Bool), c"Whether each element is other than zero."),
    (c"cfloat", |c| cast(c, DType::C64), c"In complex64."),
    (c"cdouble", |c| cast(c, DType::C128), c"In complex128."),
];
