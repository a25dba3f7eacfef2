//! `.pt` files: the native half of `save` and `load`.

use crate::dtype::{dtype_object, dtype_of};
use crate::error::*;
use crate::objects::{DeviceObject, device_of};
use crate::storage::{StorageObject, storage_of};
use crate::tensor_type::*;
use flambeau_base::{DType, Device, Result as EngineResult};
use flambeau_engine::{Storage, Tensor};
use flambeau_io::pt::{Build, DictKind, PtFile, PtWriter, StorageInfo, TensorInfo, TensorLoader};
use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyComplex, PyDict, PyFrozenSet, PyList, PySet, PyTuple};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Error as IoError, Read, Result as IoResult, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard};

/// A file object of Python's.
struct PyFile(Py<PyAny>);

impl PyFile {
    fn call<R>(&self, f: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<R>) -> IoResult<R> {
        Python::attach(|py| f(py, self.0.bind(py))).map_err(IoError::other)
    }
}

impl Read for PyFile {
    fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
        self.call(|_, file| {
            let given = file.call_method1("read", (out.len(),))?;
            let bytes: &[u8] = given.extract()?;
            let n = bytes.len().min(out.len());
            out[..n].copy_from_slice(&bytes[..n]);
            Ok(n)
        })
    }
}

impl Seek for PyFile {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(n) => (n as i64, 0),
            SeekFrom::Current(n) => (n, 1),
            SeekFrom::End(n) => (n, 2),
        };
        self.call(|_, file| {
            file.call_method1("seek", (offset, whence))?;
            file.call_method0("tell")?.extract()
        })
    }
}

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        self.call(|py, file| file.call_method1("write", (PyBytes::new(py, bytes),)).map(|_| bytes.len()))
    }

    fn flush(&mut self) -> IoResult<()> {
        self.call(|_, file| if file.hasattr("flush")? { file.call_method0("flush").map(drop) } else { Ok(()) })
    }
}

trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}
type Reader = Box<dyn Source>;

/// Opens a path or a file object.
fn open(source: &Bound<'_, PyAny>) -> Ret<Reader> {
    if let Ok(path) = source.extract::<String>() {
        let file = File::open(&path).map_err(|e| {
            let class = if e.kind() == std::io::ErrorKind::NotFound { "FileNotFoundError" } else { "OSError" };
            let text = format!("{e}: '{path}'");
            Python::attach(|py| {
                let code = e.raw_os_error().unwrap_or(0);
                let made = py.import("builtins").and_then(|b| b.getattr(class)).and_then(|c| c.call1((code, text.clone())));
                made.map_or_else(|e| e, PyErr::from_value)
            })
        })?;
        return Ok(Box::new(BufReader::new(file)));
    }
    Ok(Box::new(BufReader::new(PyFile(source.clone().unbind()))))
}

/// The device that `move` gives for a saved location.
fn device_for(mover: &Bound<'_, PyAny>, location: &str) -> Ret<Device> {
    let given = mover.call1((location,))?;
    device_of(&given)?.ok_or_else(|| type_error(format!("load: a device is needed for '{location}', got {}", type_name(given.as_ptr()))))
}

/// A handle on a Python object that was made.
type Made = Arc<Py<PyAny>>;

/// Makes Python objects of what a file holds.
struct Builder {
    tensors: TensorLoader<Reader>,
    mover: Py<PyAny>,
    devices: HashMap<String, Device>,
}

fn attached<R>(f: impl FnOnce(Python<'_>) -> Ret<R>) -> EngineResult<R> {
    Python::attach(f).map_err(|r| to_error(r.0))
}

fn made(obj: Bound<'_, PyAny>) -> Ret<Made> {
    Ok(Arc::new(obj.unbind()))
}

fn make<'py, T: IntoPyObject<'py>>(py: Python<'py>, value: T) -> Ret<Made>
where
    PyErr: From<T::Error>,
{
    let bound = value.into_pyobject(py).map_err(PyErr::from)?;
    Ok(Arc::new(bound.into_any().unbind()))
}

impl Builder {
    fn device(&mut self, py: Python<'_>, location: &str) -> Ret<Device> {
        if let Some(&d) = self.devices.get(location) {
            return Ok(d);
        }
        let d = device_for(self.mover.bind(py), location)?;
        self.devices.insert(location.to_owned(), d);
        Ok(d)
    }
}

fn bind<'a, 'py>(py: Python<'py>, items: &'a [Made]) -> impl ExactSizeIterator<Item = Bound<'py, PyAny>> + 'a
where
    'py: 'a,
{
    items.iter().map(move |x| x.bind(py).clone())
}

impl Build for Builder {
    type Out = Made;

    fn none(&mut self) -> EngineResult<Made> {
        attached(|py| made(py.None().into_bound(py)))
    }

    fn bool(&mut self, value: bool) -> EngineResult<Made> {
        attached(|py| make(py, value))
    }

    fn int(&mut self, value: i64) -> EngineResult<Made> {
        attached(|py| make(py, value))
    }

    fn big_int(&mut self, digits: &[u8]) -> EngineResult<Made> {
        attached(|py| {
            let kwargs = PyDict::new(py);
            kwargs.set_item("signed", true)?;
            let int = py.get_type::<pyo3::types::PyInt>();
            made(int.call_method("from_bytes", (PyBytes::new(py, digits), "little"), Some(&kwargs))?)
        })
    }

    fn float(&mut self, value: f64) -> EngineResult<Made> {
        attached(|py| make(py, value))
    }

    fn complex(&mut self, re: f64, im: f64) -> EngineResult<Made> {
        attached(|py| made(PyComplex::from_doubles(py, re, im).into_any()))
    }

    fn str(&mut self, value: &str) -> EngineResult<Made> {
        attached(|py| make(py, value))
    }

    fn bytes(&mut self, value: &[u8], mutable: bool) -> EngineResult<Made> {
        attached(|py| made(if mutable { PyByteArray::new(py, value).into_any() } else { PyBytes::new(py, value).into_any() }))
    }

    fn tuple(&mut self, items: Vec<Made>) -> EngineResult<Made> {
        attached(|py| made(PyTuple::new(py, bind(py, &items))?.into_any()))
    }

    fn set(&mut self, items: Vec<Made>, mutable: bool) -> EngineResult<Made> {
        attached(|py| {
            let all: Vec<_> = bind(py, &items).collect();
            made(if mutable { PySet::new(py, all)?.into_any() } else { PyFrozenSet::new(py, all)?.into_any() })
        })
    }

    fn empty_list(&mut self) -> EngineResult<Option<Made>> {
        attached(|py| made(PyList::empty(py).into_any())).map(Some)
    }

    fn fill_list(&mut self, empty: Option<Made>, items: Vec<Made>) -> EngineResult<Made> {
        attached(|py| {
            let Some(list) = empty else { return made(PyList::new(py, bind(py, &items))?.into_any()) };
            for item in bind(py, &items) {
                list.bind(py).cast::<PyList>()?.append(item)?;
            }
            Ok(list)
        })
    }

    fn empty_dict(&mut self, kind: DictKind) -> EngineResult<Option<Made>> {
        attached(|py| {
            made(match kind {
                DictKind::Plain => PyDict::new(py).into_any(),
                DictKind::Ordered => py.import("collections")?.getattr("OrderedDict")?.call0()?,
                DictKind::Counter => py.import("collections")?.getattr("Counter")?.call0()?,
            })
        })
        .map(Some)
    }

    fn fill_dict(&mut self, kind: DictKind, empty: Option<Made>, pairs: Vec<(Made, Made)>, attributes: Option<Made>) -> EngineResult<Made> {
        let dict = match empty {
            Some(d) => d,
            None => self.empty_dict(kind)?.ok_or_else(|| flambeau_base::Error::runtime("load: no dictionary"))?,
        };
        attached(|py| {
            for (key, value) in &pairs {
                dict.bind(py).set_item(key.bind(py), value.bind(py))?;
            }
            if let Some(attributes) = attributes {
                for (name, value) in attributes.bind(py).cast::<PyDict>()?.iter() {
                    dict.bind(py).setattr(name.cast::<pyo3::types::PyString>()?, value)?;
                }
            }
            Ok(dict)
        })
    }

    fn size(&mut self, sizes: Vec<i64>) -> EngineResult<Made> {
        let sizes: Vec<usize> = sizes.into_iter().map(|n| n.max(0) as usize).collect();
        attached(|py| {
            let ptr = crate::size::size_object(py, &sizes)?;
            // SAFETY: an owned reference.
            made(unsafe { Bound::from_owned_ptr(py, ptr) })
        })
    }

    fn dtype(&mut self, dtype: DType) -> EngineResult<Made> {
        attached(|py| made(dtype_object(py, dtype)?.into_any()))
    }

    fn device(&mut self, name: &str) -> EngineResult<Made> {
        let device: Device = name.parse()?;
        attached(|py| made(Bound::new(py, DeviceObject(device))?.into_any()))
    }

    fn layout(&mut self, name: &str) -> EngineResult<Made> {
        if name != "strided" {
            return Err(flambeau_base::Error::not_implemented(format!("load: the layout '{name}' is not supported")));
        }
        attached(|py| made(crate::objects::strided(py)?.bind(py).clone().into_any()))
    }

    fn tensor(&mut self, info: &TensorInfo) -> EngineResult<Made> {
        let meta = match &info.storage {
            Some(s) => attached(|py| Builder::device(self, py, &s.location))?.is_meta(),
            None => false,
        };
        let tensor = if meta {
            let sizes: Vec<usize> = info.sizes.iter().map(|&n| n as usize).collect();
            let strides: Vec<isize> = info.strides.iter().map(|&n| n as isize).collect();
            Tensor::empty_strided(&sizes, &strides, info.dtype, Device::META)?
        } else {
            self.tensors.tensor(info)?
        };
        attached(|py| made(wrap_bound(py, tensor)?))
    }

    fn parameter(&mut self, tensor: Made, requires_grad: bool) -> EngineResult<Made> {
        attached(|py| {
            let class = py.import("flambeau.nn.parameter")?.getattr("Parameter")?;
            made(class.call1((tensor.bind(py), requires_grad))?)
        })
    }

    fn attributes(&mut self, tensor: Made, attributes: Made) -> EngineResult<Made> {
        attached(|py| {
            for (name, value) in attributes.bind(py).cast::<PyDict>()?.iter() {
                tensor.bind(py).setattr(name.cast::<pyo3::types::PyString>()?, value)?;
            }
            Ok(tensor)
        })
    }

    fn storage(&mut self, info: &Arc<StorageInfo>) -> EngineResult<Made> {
        let device = attached(|py| Builder::device(self, py, &info.location))?;
        let storage = if device.is_meta() {
            Storage::allocate(device, info.nbytes as usize, false)?
        } else {
            self.tensors.storage(info, info.dtype.unwrap_or(DType::U8))?
        };
        attached(|py| made(Bound::new(py, StorageObject(storage))?.into_any()))
    }
}

fn loader(source: &Bound<'_, PyAny>, mmap: bool, storages: flambeau_io::pt::Storages<Reader>) -> Ret<TensorLoader<Reader>> {
    Ok(if mmap { TensorLoader::mapped(storages, source.extract::<String>()?)? } else { TensorLoader::new(storages) })
}

/// Reads a file: tensors and plain containers, nothing else. `move` gives the device for a saved location.
#[pyfunction]
#[pyo3(name = "_pt_load")]
fn pt_load<'py>(py: Python<'py>, source: &Bound<'py, PyAny>, mmap: bool, mover: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let file = PtFile::new(open(source)?)?;
        let pickle = file.pickle().clone();
        let mut builder =
            Builder { tensors: loader(source, mmap, file.into_storages())?, mover: mover.clone().unbind(), devices: HashMap::new() };
        let built = flambeau_io::pt::build(&pickle, &mut builder);
        Ok(built?.bind(py).clone())
    })
}

/// Reads a file for a reader of pickles in Python.
#[pyclass(name = "_PtReader", module = "flambeau._C", frozen)]
struct Archive {
    pickle: Vec<u8>,
    tensors: Mutex<TensorLoader<Reader>>,
}

impl Archive {
    fn tensors(&self) -> MutexGuard<'_, TensorLoader<Reader>> {
        self.tensors.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[pymethods]
impl Archive {
    #[new]
    #[pyo3(signature = (source, mmap=false))]
    fn new(source: &Bound<'_, PyAny>, mmap: bool) -> PyResult<Archive> {
        shielded(|| {
            let mut file = PtFile::new(open(source)?)?;
            let pickle = file.pickle_bytes()?;
            Ok(Archive { pickle, tensors: Mutex::new(loader(source, mmap, file.into_storages())?) })
        })
    }

    /// A record's bytes; `data.pkl` is the one there is.
    fn record<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        if name != "data.pkl" {
            return Err(pyo3::exceptions::PyKeyError::new_err(format!("the record '{name}' is not read as bytes")));
        }
        Ok(PyBytes::new(py, &self.pickle))
    }

    /// A storage, by its key.
    fn storage(&self, py: Python<'_>, key: String, nbytes: u64, dtype: &Bound<'_, PyAny>, device: &str) -> PyResult<StorageObject> {
        shielded(|| {
            let dtype = if dtype.is_none() { None } else { dtype_of(py, dtype.as_ptr()) };
            let device: Device = device.parse()?;
            if device.is_meta() {
                return Ok(StorageObject(Storage::allocate(device, nbytes as usize, false)?));
            }
            let info = StorageInfo { key, dtype, nbytes, location: device.to_string() };
            Ok(StorageObject(self.tensors().storage(&info, dtype.unwrap_or(DType::U8))?))
        })
    }
}

/// Writes a file record by record.
#[pyclass(name = "_PtWriter", module = "flambeau._C", frozen)]
struct Writer(Mutex<Option<PtWriter<Box<dyn Write + Send>>>>);

impl Writer {
    fn with<R>(&self, f: impl FnOnce(&mut PtWriter<Box<dyn Write + Send>>) -> EngineResult<R>) -> PyResult<R> {
        shielded(|| {
            let mut guard = self.0.lock().unwrap_or_else(|e| e.into_inner());
            let writer = guard.as_mut().ok_or_else(|| runtime_error("the file is finished"))?;
            Ok(f(writer)?)
        })
    }
}

#[pymethods]
impl Writer {
    #[new]
    fn new(target: &Bound<'_, PyAny>) -> PyResult<Writer> {
        shielded(|| {
            let (out, stem): (Box<dyn Write + Send>, String) = match target.extract::<String>() {
                Ok(path) => {
                    let file = File::create(&path).map_err(|e| flambeau_base::Error::from(e).context(&path))?;
                    let stem = std::path::Path::new(&path).file_stem().map_or("archive".into(), |s| s.to_string_lossy().into_owned());
                    (Box::new(file), stem)
                }
                Err(_) => (Box::new(PyFile(target.clone().unbind())), "archive".into()),
            };
            Ok(Writer(Mutex::new(Some(PtWriter::new(out, &stem)))))
        })
    }

    /// Writes the pickle, which comes first.
    fn pickle(&self, bytes: &[u8]) -> PyResult<()> {
        self.with(|w| w.pickle(bytes))
    }

    /// Writes the bytes of a storage.
    fn storage(&self, key: &str, storage: &Bound<'_, PyAny>) -> PyResult<()> {
        let storage = storage_of(storage)?;
        if storage.device().is_meta() {
            return Err(pyo3::exceptions::PyRuntimeError::new_err("save: a meta tensor has no values to write"));
        }
        let n = storage.nbytes();
        // SAFETY: the storage holds so many bytes and stays alive; the GIL keeps Python from changing them meanwhile.
        let bytes = if n == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(storage.ptr(), n) } };
        self.with(|w| w.storage(key, bytes))
    }

    /// Writes the table of contents.
    fn finish(&self) -> PyResult<()> {
        shielded(|| {
            let writer = self.0.lock().unwrap_or_else(|e| e.into_inner()).take().ok_or_else(|| runtime_error("the file is finished"))?;
            writer.finish()?.flush().map_err(flambeau_base::Error::from)?;
            Ok(())
        })
    }
}

/// Adds the functions and types.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(pt_load, m)?)?;
    m.add_class::<Archive>()?;
    m.add_class::<Writer>()
}
