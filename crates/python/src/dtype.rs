//! `dtype` objects: one for each element type.

use crate::error::*;
use flambeau_base::DType;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

/// An element type.
#[pyclass(name = "dtype", module = "flambeau", frozen)]
pub struct DTypeObject(pub DType);

static OBJECTS: PyOnceLock<Vec<Py<DTypeObject>>> = PyOnceLock::new();

fn objects(py: Python<'_>) -> PyResult<&Vec<Py<DTypeObject>>> {
    OBJECTS.get_or_try_init(py, || DType::ALL.iter().map(|&d| Py::new(py, DTypeObject(d))).collect())
}

/// The object of a dtype.
pub fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, DTypeObject>> {
    Ok(objects(py)?[dtype as usize].bind(py).clone())
}

/// The dtype that an object names: a dtype, or one of Python's number types.
pub fn dtype_of(py: Python<'_>, obj: Ptr) -> Option<DType> {
    // SAFETY: callers hold an object.
    let obj = unsafe { Bound::ref_from_ptr(py, &obj) };
    if let Ok(d) = obj.cast::<DTypeObject>() {
        return Some(d.get().0);
    }
    if obj.is(py.get_type::<PyFloat>()) {
        return Some(flambeau_base::default_dtype());
    }
    if obj.is(py.get_type::<PyBool>()) {
        return Some(DType::Bool);
    }
    if obj.is(py.get_type::<PyInt>()) {
        return Some(DType::I64);
    }
    obj.is(py.get_type::<PyComplex>()).then(|| flambeau_base::default_dtype().to_complex())
}

/// The names of a dtype in the package, the first one being its own.
pub fn names(dtype: DType) -> &'static [&'static str] {
    match dtype {
        DType::Bool => &["bool"],
        DType::U8 => &["uint8"],
        DType::I8 => &["int8"],
        DType::I16 => &["int16", "short"],
        DType::I32 => &["int32", "int"],
        DType::I64 => &["int64", "long"],
        DType::U16 => &["uint16"],
        DType::U32 => &["uint32"],
        DType::U64 => &["uint64"],
        DType::F8E4M3 => &["float8_e4m3fn"],
        DType::F8E5M2 => &["float8_e5m2"],
        DType::F16 => &["float16", "half"],
        DType::BF16 => &["bfloat16"],
        DType::F32 => &["float32", "float"],
        DType::F64 => &["float64", "double"],
        DType::C64 => &["complex64", "cfloat"],
        DType::C128 => &["complex128", "cdouble"],
    }
}

#[pymethods]
impl DTypeObject {
    /// Whether it is a real floating point type.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// Whether it is a complex type.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    /// Whether it can hold negative numbers.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }

    /// Bytes an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// The type of a complex type's parts; itself for the others.
    fn to_real<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, DTypeObject>> {
        dtype_object(py, self.0.to_real())
    }

    /// The complex type with parts of this type.
    fn to_complex<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, DTypeObject>> {
        dtype_object(py, self.0.to_complex())
    }

    fn __repr__(&self) -> String {
        format!("torch.{}", self.0)
    }

    /// Pickled by name, so that it is the same object again.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }
}

/// Largest and smallest numbers of a floating point type.
#[pyclass(name = "finfo", module = "flambeau", frozen)]
pub struct FInfo(DType);

/// Sizes of the parts of a float format: mantissa bits, largest and smallest exponents, largest value.
fn float_format(d: DType) -> (i32, i32, f64) {
    match d {
        DType::F8E4M3 => (3, -6, 448.0),
        DType::F8E5M2 => (2, -14, 57344.0),
        DType::F16 => (10, -14, 65504.0),
        DType::BF16 => (7, -126, f64::from(f32::from_bits(0x7f7f_0000))),
        DType::F64 => (52, -1022, f64::MAX),
        _ => (23, -126, f64::from(f32::MAX)),
    }
}

#[pymethods]
impl FInfo {
    #[new]
    #[pyo3(signature = (r#type=None))]
    fn new(py: Python<'_>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<FInfo> {
        shielded(|| {
            let dtype = match r#type {
                None => flambeau_base::default_dtype(),
                Some(t) => dtype_of(py, t.as_ptr()).ok_or_else(|| type_error("torch.finfo() requires a dtype"))?.to_real(),
            };
            if !dtype.is_float() {
                return Err(type_error(format!(
                    "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.{dtype}'"
                )));
            }
            Ok(FInfo(dtype))
        })
    }

    #[getter]
    fn bits(&self) -> usize {
        self.0.size() * 8
    }

    #[getter]
    fn eps(&self) -> f64 {
        f64::from(-float_format(self.0).0).exp2()
    }

    #[getter]
    fn max(&self) -> f64 {
        float_format(self.0).2
    }

    #[getter]
    fn min(&self) -> f64 {
        -float_format(self.0).2
    }

    #[getter]
    fn tiny(&self) -> f64 {
        f64::from(float_format(self.0).1).exp2()
    }

    #[getter]
    fn smallest_normal(&self) -> f64 {
        self.tiny()
    }

    #[getter]
    fn resolution(&self) -> f64 {
        // Decimal digits that survive.
        let digits = (f64::from(float_format(self.0).0) * std::f64::consts::LOG10_2).floor();
        format!("1e-{digits}").parse().unwrap_or(1.0)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let show = |x: f64| -> PyResult<String> { Ok(PyFloat::new(py, x).repr()?.to_string()) };
        Ok(format!(
            "finfo(resolution={}, min={}, max={}, eps={}, smallest_normal={}, tiny={}, dtype={})",
            show(self.resolution())?,
            show(self.min())?,
            show(self.max())?,
            show(self.eps())?,
            show(self.tiny())?,
            show(self.tiny())?,
            self.0
        ))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<FInfo>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0 as u64
    }
}

/// Largest and smallest numbers of an integer type.
#[pyclass(name = "iinfo", module = "flambeau", frozen)]
pub struct IInfo(DType, i128, i128);

#[pymethods]
impl IInfo {
    #[new]
    fn new(py: Python<'_>, r#type: &Bound<'_, PyAny>) -> PyResult<IInfo> {
        shielded(|| {
            let dtype = dtype_of(py, r#type.as_ptr()).ok_or_else(|| type_error("torch.iinfo() requires a dtype"))?;
            match dtype.integer_range() {
                Some((low, high)) => Ok(IInfo(dtype, low, high)),
                None => Err(type_error(format!("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.{dtype}'"))),
            }
        })
    }

    #[getter]
    fn bits(&self) -> usize {
        self.0.size() * 8
    }

    #[getter]
    fn max(&self) -> i128 {
        self.2
    }

    #[getter]
    fn min(&self) -> i128 {
        self.1
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("iinfo(min={}, max={}, dtype={})", self.1, self.2, self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<IInfo>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0 as u64
    }
}

/// The dtype of floating point results that nothing else decides.
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Bound<'_, DTypeObject>> {
    dtype_object(py, flambeau_base::default_dtype())
}

/// Sets the dtype of floating point results that nothing else decides.
#[pyfunction]
fn set_default_dtype(py: Python<'_>, d: &Bound<'_, PyAny>) -> PyResult<()> {
    shielded(|| {
        let dtype = dtype_of(py, d.as_ptr()).ok_or_else(|| type_error("set_default_dtype: expected a dtype"))?;
        Ok(flambeau_base::set_default_dtype(dtype)?)
    })
}

/// Adds the types, the dtypes and the functions on them.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add_class::<DTypeObject>()?;
    m.add_class::<FInfo>()?;
    m.add_class::<IInfo>()?;
    m.add_function(wrap_pyfunction!(get_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_dtype, m)?)?;
    for dtype in DType::ALL {
        for name in names(dtype) {
            m.add(*name, dtype_object(py, dtype)?)?;
        }
    }
    Ok(())
}

/// The object of a dtype as an owned pointer.
pub fn dtype_ptr(py: Python<'_>, dtype: DType) -> Ret<Ptr> {
    let object = objects(py)?[dtype as usize].as_ptr();
    // SAFETY: the object is never destroyed.
    Ok(unsafe { ffi::Py_NewRef(object) })
}
