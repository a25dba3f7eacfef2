//! Devices, memory formats, layouts and generators.

use crate::error::*;
use flambeau_base::{DType, Device, DeviceKind, MemoryFormat};
use flambeau_engine::Tensor;
use flambeau_engine::random::{Generator, default_generator};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

/// Where memory is: `device('cpu')`, `device('cuda', 0)`.
#[pyclass(name = "device", module = "flambeau", frozen)]
pub struct DeviceObject(pub Device);

/// The device that an object names: a device, a string or an index.
pub fn device_of(obj: &Bound<'_, PyAny>) -> Ret<Option<Device>> {
    if let Ok(d) = obj.cast::<DeviceObject>() {
        return Ok(Some(d.get().0));
    }
    if let Ok(s) = obj.cast::<pyo3::types::PyString>() {
        return Ok(Some(s.to_str()?.parse()?));
    }
    if obj.is_instance_of::<pyo3::types::PyInt>() && !obj.is_instance_of::<pyo3::types::PyBool>() {
        return Ok(Some(Device { kind: DeviceKind::Cuda, index: Some(obj.extract()?) }));
    }
    Ok(None)
}

#[pymethods]
impl DeviceObject {
    #[new]
    #[pyo3(signature = (r#type, index=None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<i64>) -> PyResult<DeviceObject> {
        shielded(|| {
            let index = match index {
                Some(i) => Some(
                    u16::try_from(i).map_err(|_| runtime_error(format!("Device index must not be negative, or above 65535, got {i}")))?,
                ),
                None => None,
            };
            let Some(mut device) = device_of(r#type)? else {
                return Err(type_error(format!(
                    "device(): argument 'type' (position 1) must be str, not {}",
                    crate::tensor_type::type_name(r#type.as_ptr())
                )));
            };
            if index.is_some() && device.index.is_some() {
                return Err(runtime_error(format!(
                    "type (string) must not include an index because index was passed explicitly: {device}"
                )));
            }
            device.index = index.or(device.index);
            Ok(DeviceObject(device))
        })
    }

    /// The kind of device.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.kind.name()
    }

    /// Which one, or None.
    #[getter]
    fn index(&self) -> Option<u16> {
        self.0.index
    }

    fn __repr__(&self) -> String {
        match self.0.index {
            Some(i) => format!("device(type='{}', index={i})", self.0.kind.name()),
            None => format!("device(type='{}')", self.0.kind.name()),
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<DeviceObject>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0.kind as u64 * 1000 + self.0.index.map_or(999, u64::from)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let d = slf.get();
        let args = match d.0.index {
            Some(i) => (d.r#type(), i).into_pyobject(py)?,
            None => (d.r#type(),).into_pyobject(py)?,
        };
        Ok((slf.get_type().into_any(), args))
    }
}

/// How a new tensor orders its dimensions in memory.
#[pyclass(name = "memory_format", module = "flambeau", frozen)]
pub struct MemoryFormatObject(pub MemoryFormat);

#[pymethods]
impl MemoryFormatObject {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.__reduce__())
    }

    fn __reduce__(&self) -> &'static str {
        match self.0 {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        }
    }
}

/// How elements are stored; `strided` is the one there is, the others are names to be refused.
#[pyclass(name = "layout", module = "flambeau", frozen)]
pub struct LayoutObject(&'static str);

static STRIDED: PyOnceLock<Py<LayoutObject>> = PyOnceLock::new();

/// `strided`.
pub fn strided(py: Python<'_>) -> PyResult<&Py<LayoutObject>> {
    STRIDED.get_or_try_init(py, || Py::new(py, LayoutObject("strided")))
}

impl LayoutObject {
    /// Whether it is the layout that flambeau has.
    pub fn is_strided(&self) -> bool {
        self.0 == "strided"
    }
}

#[pymethods]
impl LayoutObject {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0)
    }

    fn __reduce__(&self) -> &'static str {
        self.0
    }
}

/// A source of random numbers.
#[pyclass(name = "Generator", module = "flambeau", frozen, subclass, weakref)]
pub struct GeneratorObject(pub Generator);

#[pymethods]
impl GeneratorObject {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<&Bound<'_, PyAny>>) -> PyResult<GeneratorObject> {
        shielded(|| {
            let device = device.map(device_of).transpose()?.flatten().unwrap_or(Device::CPU);
            if device.kind != DeviceKind::Cpu {
                return Err(runtime_error(format!("Generator: device type {device} is not available: flambeau draws on 'cpu'")));
            }
            Ok(GeneratorObject(Generator::new()))
        })
    }

    /// Starts the stream of a seed; gives the generator itself.
    fn manual_seed<'py>(slf: Bound<'py, Self>, seed: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        shielded(|| {
            slf.get().0.manual_seed(seed_of(seed)?);
            Ok(slf)
        })
    }

    /// Starts a stream that cannot be foreseen and gives its seed.
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// The seed that the present stream was started with.
    fn initial_seed(&self) -> u64 {
        self.0.initial_seed()
    }

    /// The state, as a tensor of 5,056 bytes.
    fn get_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let bytes = self.0.get_state();
            crate::tensor_type::wrap_bound(py, Tensor::from_slice(&bytes, &[bytes.len()])?)
        })
    }

    /// Continues from a state that `get_state` gave.
    fn set_state<'py>(slf: Bound<'py, Self>, new_state: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        shielded(|| {
            let state = crate::tensor_type::expect_tensor(new_state)?;
            if state.dtype() != DType::U8 {
                return Err(type_error(format!("RNG state must be a torch.ByteTensor, got {}", state.dtype())));
            }
            slf.get().0.set_state(&state.to_vec::<u8>()?)?;
            Ok(slf)
        })
    }

    /// A generator of its own that goes on from where this one is.
    fn clone_state(&self) -> GeneratorObject {
        GeneratorObject(self.0.clone_state())
    }

    /// The device that it draws on.
    #[getter]
    fn device(&self) -> DeviceObject {
        DeviceObject(Device::CPU)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (), Bound<'py, PyAny>)> {
        let state = slf.get().get_state(slf.py())?;
        Ok((slf.get_type().into_any(), (), state))
    }

    fn __setstate__(slf: Bound<'_, Self>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        GeneratorObject::set_state(slf, state).map(drop)
    }
}

/// A seed: any 64 bits, signed or not.
fn seed_of(seed: &Bound<'_, PyAny>) -> Ret<u64> {
    let index = seed.call_method0("__index__").map_err(|_| type_error("manual_seed expected a long"))?;
    if let Ok(n) = index.extract::<i64>() {
        return Ok(n as u64);
    }
    index.extract::<u64>().map_err(|_| value_error("Overflow when unpacking long long: a seed has 64 bits"))
}

/// Adds the types and their constants.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add_class::<DeviceObject>()?;
    m.add_class::<MemoryFormatObject>()?;
    m.add_class::<LayoutObject>()?;
    m.add_class::<GeneratorObject>()?;
    for format in [MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d] {
        let object = MemoryFormatObject(format);
        m.add(object.__reduce__(), object)?;
    }
    m.add("strided", strided(py)?)?;
    for name in ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"] {
        m.add(name, Py::new(py, LayoutObject(name))?)?;
    }
    m.add("default_generator", GeneratorObject(default_generator().clone()))
}
