//! Tensors of Python's data, and Python's data of tensors.

use crate::convert::{numpy_generic, plain_number};
use crate::dtype::dtype_of;
use crate::error::*;
use crate::objects::device_of;
use crate::tensor_type::*;
use flambeau_base::{DType, Device, Layout, Scalar, default_dtype};
use flambeau_engine::Tensor;
use flambeau_engine::tensor::Element;
use flambeau_engine::with_element;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySequence, PyString, PyTuple};

/// NumPy's limit, and deep enough.
const MAX_DIMS: usize = 64;

/// Numbers gathered from nested sequences, and the dtype that they ask for.
#[derive(Default)]
struct Gathered {
    numbers: Vec<Scalar>,
    dtype: Option<DType>,
}

impl Gathered {
    fn add(&mut self, s: Scalar, dtype: DType) -> Ret<()> {
        self.numbers.push(s);
        self.dtype = Some(match self.dtype {
            Some(d) if d == dtype => d,
            Some(d) => d.promote(dtype)?,
            None => dtype,
        });
        Ok(())
    }
}

/// Whether an object is a sequence of further data.
fn is_nested(obj: &Bound<'_, PyAny>) -> bool {
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return true;
    }
    // SAFETY: an object.
    let tensor = unsafe { tensor_of(obj.as_ptr()) };
    match tensor {
        // A tensor of one element stands for its number, whatever its shape.
        Some(t) => t.ndim() > 0 && t.numel() != 1,
        None => {
            !obj.is_instance_of::<PyString>() && !obj.is_instance_of::<PyBytes>() && obj.cast::<PySequence>().is_ok()
                || (obj.hasattr("__len__").unwrap_or(false) && obj.hasattr("__getitem__").unwrap_or(false) && ndim_of(obj) != Some(0))
                    && !obj.is_instance_of::<PyString>()
                    && !obj.is_instance_of::<PyBytes>()
                    && !obj.is_instance_of::<PyDict>()
        }
    }
}

fn ndim_of(obj: &Bound<'_, PyAny>) -> Option<usize> {
    obj.getattr("ndim").ok()?.extract().ok()
}

/// The shape that the first elements have.
fn shape_of(data: &Bound<'_, PyAny>) -> Ret<Vec<usize>> {
    let mut shape = Vec::new();
    let mut at = data.clone();
    while is_nested(&at) {
        let n = at.len()?;
        shape.push(n);
        if shape.len() > MAX_DIMS {
            return Err(value_error(format!("too many dimensions ('{}' nested deeper than {MAX_DIMS})", type_name(data.as_ptr()))));
        }
        if n == 0 {
            break;
        }
        at = at.get_item(0)?;
    }
    Ok(shape)
}

/// Gathers the numbers of nested sequences of this shape. Recursion goes as deep as the shape is long.
fn gather(data: &Bound<'_, PyAny>, shape: &[usize], dim: usize, out: &mut Gathered) -> Ret<()> {
    let py = data.py();
    if dim == shape.len() {
        return number(py, data, out);
    }
    let wrong = || value_error(format!("expected sequence of length {} at dim {dim} (got {})", shape[dim], data.len().map_or(0, |n| n)));
    if !is_nested(data) {
        return Err(type_error(format!("not a sequence: at dim {dim} there is a '{}' beside sequences", type_name(data.as_ptr()))));
    }
    if data.len()? != shape[dim] {
        return Err(wrong());
    }
    if let Ok(list) = data.cast::<PyList>() {
        for item in list.iter() {
            gather(&item, shape, dim + 1, out)?;
        }
    } else if let Ok(tuple) = data.cast::<PyTuple>() {
        for item in tuple.iter() {
            gather(&item, shape, dim + 1, out)?;
        }
    } else {
        for i in 0..shape[dim] {
            gather(&data.get_item(i)?, shape, dim + 1, out)?;
        }
    }
    Ok(())
}

fn number(py: Python<'_>, data: &Bound<'_, PyAny>, out: &mut Gathered) -> Ret<()> {
    let ptr = data.as_ptr();
    // NumPy's numbers have a dtype of their own, also where they are Python's numbers too.
    // SAFETY: an object.
    let exact = unsafe {
        let ty = ffi::Py_TYPE(ptr);
        ty == &raw mut ffi::PyFloat_Type || ty == &raw mut ffi::PyLong_Type || ty == &raw mut ffi::PyBool_Type
    };
    if !exact {
        // SAFETY: an object.
        if let Some(t) = unsafe { tensor_of(ptr) } {
            if t.numel() != 1 {
                return Err(value_error("only one element tensors can be converted to Python scalars"));
            }
            return out.add(t.item()?, t.dtype());
        }
        if let Some(generic) = numpy_generic(py)
            && data.is_instance(generic)?
        {
            let array = crate::numpy::from_array(&data.call_method1("reshape", (PyTuple::empty(py),))?, true)?;
            return out.add(array.item()?, array.dtype());
        }
    }
    let too_big = |e: Raised| {
        if e.0.is_instance_of::<PyOverflowError>(py) {
            value_error("Overflow when unpacking long long: a number has at most 64 bits")
        } else {
            e
        }
    };
    match plain_number(py, ptr).map_err(too_big)? {
        Some(s) => out.add(s, s.dtype()),
        None if data.hasattr("__float__").unwrap_or(false) => out.add(Scalar::Float(data.extract()?), default_dtype()),
        None if data.is_instance_of::<PyString>() || data.is_instance_of::<PyBytes>() => {
            Err(type_error(format!("new(): invalid data type '{}'", type_name(ptr))))
        }
        None => Err(runtime_error(format!("Could not infer dtype of {}: a tensor is made of numbers", type_name(ptr)))),
    }
}

/// A tensor of numbers.
fn fill(op: &str, numbers: &[Scalar], shape: &[usize], dtype: DType) -> Ret<Tensor> {
    let layout = Layout::contiguous(shape)?;
    if layout.numel() != numbers.len() {
        return Err(value_error(format!("{op}: {} numbers do not fill shape {shape:?}", numbers.len())));
    }
    with_element!(dtype, T => {
        let mut values: Vec<T> = Vec::with_capacity(numbers.len());
        for &s in numbers {
            if matches!(s, Scalar::Complex(_)) && !dtype.is_complex() {
                return Err(type_error(format!("{op}: a complex number cannot be converted to {dtype}")));
            }
            values.push(<T as Element>::from_scalar(s.checked_for(op, dtype)?));
        }
        Ok(Tensor::from_slice(&values, shape)?)
    })
}

/// What `tensor()` and its kin make of data. A tensor or array is copied if `copy`.
pub fn from_data(data: &Bound<'_, PyAny>, dtype: Option<DType>, device: Option<Device>, copy: bool) -> Ret<Tensor> {
    let py = data.py();
    // SAFETY: an object.
    let mut made = if let Some(t) = unsafe { tensor_of(data.as_ptr()) } {
        let t = t.clone();
        if copy {
            let wanted = dtype.unwrap_or(t.dtype());
            let t = t.detach()?;
            if wanted == t.dtype() { t.copy()? } else { t.to_dtype(wanted)? }
        } else {
            t
        }
    } else if crate::numpy::is_array(data) {
        crate::numpy::from_array(data, copy)?
    } else {
        let shape = shape_of(data)?;
        let mut gathered = Gathered::default();
        if !shape.contains(&0) {
            gather(data, &shape, 0, &mut gathered)?;
        }
        let dtype = dtype.or(gathered.dtype).unwrap_or_else(default_dtype);
        fill("tensor", &gathered.numbers, &shape, dtype)?
    };
    if let Some(dtype) = dtype
        && made.dtype() != dtype
    {
        made = made.to_dtype(dtype)?;
    }
    match device {
        Some(d) if !d.same(made.device()) => {
            let args = PyTuple::new(py, [wrap_bound(py, made)?])?;
            let device = crate::convert::device_ptr(py, d)?;
            // SAFETY: an owned reference.
            let device = unsafe { Bound::from_owned_ptr(py, device) };
            let moved = args.get_item(0)?.call_method1("to", (device,))?;
            Ok(expect_tensor(&moved)?.clone())
        }
        _ => Ok(made),
    }
}

fn options(py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>, device: Option<&Bound<'_, PyAny>>) -> Ret<(Option<DType>, Option<Device>)> {
    let dtype = match dtype {
        Some(d) if !d.is_none() => Some(
            dtype_of(py, d.as_ptr())
                .ok_or_else(|| type_error(format!("tensor(): argument 'dtype' must be torch.dtype, not {}", type_name(d.as_ptr()))))?,
        ),
        _ => None,
    };
    let device = match device {
        Some(d) if !d.is_none() => Some(
            device_of(d)?
                .ok_or_else(|| type_error(format!("tensor(): argument 'device' must be torch.device, not {}", type_name(d.as_ptr()))))?,
        ),
        _ => None,
    };
    Ok((dtype, device))
}

/// A tensor with the values of numbers, nested sequences, an array or a tensor; always a copy.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false, pin_memory=false))]
pub fn tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    requires_grad: bool,
    pin_memory: bool,
) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let _ = pin_memory;
        let (dtype, device) = options(py, dtype, device)?;
        let made = from_data(data, dtype, device, true)?;
        if requires_grad {
            made.set_requires_grad(true)?;
        }
        wrap_bound(py, made)
    })
}

/// A tensor with the values of data, which share memory with it where they can.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None))]
pub fn as_tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let (dtype, device) = options(py, dtype, device)?;
        wrap_bound(py, from_data(data, dtype, device, false)?)
    })
}

/// What `Tensor(...)` makes: of sizes a tensor whose values are not set, of data a tensor with these values.
pub fn legacy_new(py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> Ret<Tensor> {
    if let Some(kwargs) = kwargs {
        for key in kwargs.keys() {
            if key.to_string() != "device" {
                return Err(type_error(format!("Tensor() got an unexpected keyword argument '{key}'")));
            }
        }
    }
    let dtype = default_dtype();
    // SAFETY: an object.
    let of_tensor = args.len() == 1 && unsafe { tensor_of(args.get_item(0)?.as_ptr()).is_some() };
    let sizes = if of_tensor { None } else { crate::convert::ints_of(py, args.as_ptr())? };
    if let Some(sizes) = sizes {
        let sizes: Vec<i64> = if args.is_empty() { vec![0] } else { sizes.to_vec() };
        let layout = crate::methods::layout_of("Tensor", &sizes, None, 0)?;
        return Ok(Tensor::empty(layout.sizes(), dtype, Device::CPU)?);
    }
    if args.len() != 1 {
        return Err(type_error("Tensor() takes sizes, one sequence of data, or one tensor"));
    }
    let data = args.get_item(0)?;
    // SAFETY: an object.
    if let Some(t) = unsafe { tensor_of(data.as_ptr()) } {
        return Ok(t.alias());
    }
    if data.get_type().name()? == "Size" {
        let sizes: Vec<usize> = data.extract()?;
        return Ok(Tensor::empty(&sizes, dtype, Device::CPU)?);
    }
    from_data(&data, Some(dtype), None, true)
}

/// The values as nested lists; a number for a tensor without dimensions.
pub fn to_list(py: Python<'_>, t: &Tensor) -> Ret<Ptr> {
    if t.ndim() == 0 {
        return crate::convert::scalar_ptr(py, t.item()?);
    }
    let numbers = t.to_scalars()?;
    nest(py, t.shape(), &numbers)
}

/// Lists of lists. Recursion goes as deep as the shape is long.
fn nest(py: Python<'_>, shape: &[usize], numbers: &[Scalar]) -> Ret<Ptr> {
    let Some((&n, rest)) = shape.split_first() else { return crate::convert::scalar_ptr(py, numbers[0]) };
    // SAFETY: a fresh list, whose items are set before anybody sees it.
    unsafe {
        let list = Bound::from_owned_ptr(py, checked(py, ffi::PyList_New(n as isize))?);
        let step = numbers.len().checked_div(n).unwrap_or(0);
        for i in 0..n {
            let item = nest(py, rest, &numbers[i * step..(i + 1) * step])?;
            ffi::PyList_SetItem(list.as_ptr(), i as isize, item);
        }
        Ok(list.into_ptr())
    }
}

/// A tensor over a storage: offset, sizes and strides in elements.
#[pyfunction]
#[pyo3(name = "_tensor_from_storage", signature = (storage, storage_offset, size, stride, dtype=None))]
pub fn tensor_from_storage<'py>(
    py: Python<'py>,
    storage: &Bound<'py, PyAny>,
    storage_offset: i64,
    size: Vec<i64>,
    stride: Vec<i64>,
    dtype: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let dtype = match dtype {
            Some(d) => dtype_of(py, d.as_ptr()).ok_or_else(|| type_error("_tensor_from_storage: dtype must be a torch.dtype"))?,
            None => dtype_of(py, storage.getattr("dtype")?.as_ptr()).ok_or_else(|| type_error("the storage has no dtype"))?,
        };
        let layout = crate::methods::layout_of("_tensor_from_storage", &size, Some(&stride), storage_offset)?;
        wrap_bound(py, Tensor::from_storage(crate::storage::storage_of(storage)?, layout, dtype)?)
    })
}
