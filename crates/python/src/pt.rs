//! `.pt` files for Python: the reader that makes plain objects, the parts for a reader in Python, the writer.

use crate::dtype::{dtype_object, dtype_of};
use crate::error::*;
use crate::objects::DeviceObject;
use crate::size::size_object;
use crate::storage::{StorageObject, storage_of};
use crate::tensor_type::wrap_bound;
use flambeau_base::{DType, Device, Error, Result as EngineResult};
use flambeau_engine::Storage;
use flambeau_io::pt::{Build, DictKind, PtFile, PtWriter, ReadSeek, StorageInfo, Storages, TensorInfo, TensorLoader, build};
use pyo3::prelude::*;
use pyo3::types::*;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

type Source = Box<dyn ReadSeek + Send>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The file at a path, or what is left to read of a Python file object; and the path, if there is one.
fn open(source: &Bound<'_, PyAny>) -> Ret<(PtFile<Source>, Option<PathBuf>)> {
    if let Ok(path) = source.extract::<PathBuf>() {
        let file = File::open(&path).map_err(|e| Raised(e.into()))?;
        let reader: Source = Box::new(BufReader::new(file));
        return Ok((PtFile::new(reader).map_err(|e| e.context(path.display()))?, Some(path)));
    }
    let read = source.call_method0("read")?;
    let bytes = read.cast::<PyBytes>()?.as_bytes().to_vec();
    let reader: Source = Box::new(Cursor::new(bytes));
    Ok((PtFile::new(reader)?, None))
}

fn loader(storages: Storages<Source>, path: Option<&Path>, mmap: bool) -> EngineResult<TensorLoader<Source>> {
    match path {
        Some(path) if mmap => TensorLoader::mapped(storages, path),
        _ => Ok(TensorLoader::new(storages)),
    }
}

/// Makes Python objects of what a file holds.
struct Maker<'py> {
    py: Python<'py>,
    tensors: TensorLoader<Source>,
    /// From the device that a storage was saved from to the one that it shall be on.
    place: Bound<'py, PyAny>,
    places: HashMap<String, bool>,
}

type Made<'py> = Bound<'py, PyAny>;

impl<'py> Maker<'py> {
    /// Whether a storage is wanted without numbers. Asks once for each device; an answer may be an exception.
    fn on_meta(&mut self, location: &str) -> EngineResult<bool> {
        if let Some(&known) = self.places.get(location) {
            return Ok(known);
        }
        let answer = self.place.call1((location,)).and_then(|device| device.extract::<String>()).map_err(to_error)?;
        let device: Device = answer.parse()?;
        self.places.insert(location.to_owned(), device.is_meta());
        Ok(device.is_meta())
    }

    fn new_dict(&self, kind: DictKind) -> PyResult<Made<'py>> {
        match kind {
            DictKind::Plain => Ok(PyDict::new(self.py).into_any()),
            DictKind::Ordered => self.py.import("collections")?.getattr("OrderedDict")?.call0(),
            DictKind::Counter => self.py.import("collections")?.getattr("Counter")?.call0(),
        }
    }

    fn wrapped(&self, made: Ret<Made<'py>>) -> EngineResult<Made<'py>> {
        made.map_err(|r| to_error(r.0))
    }
}

/// The attributes that a dictionary names.
fn set_attributes(target: &Bound<'_, PyAny>, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
    for (name, value) in attributes.cast::<PyDict>()?.iter() {
        target.setattr(name.cast::<PyString>()?, value)?;
    }
    Ok(())
}

impl<'py> Build for Maker<'py> {
    type Out = Made<'py>;

    fn none(&mut self) -> EngineResult<Made<'py>> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn bool(&mut self, value: bool) -> EngineResult<Made<'py>> {
        Ok(PyBool::new(self.py, value).to_owned().into_any())
    }

    fn int(&mut self, value: i64) -> EngineResult<Made<'py>> {
        Ok(PyInt::new(self.py, value).into_any())
    }

    fn big_int(&mut self, digits: &[u8]) -> EngineResult<Made<'py>> {
        let signed = PyDict::new(self.py);
        signed
            .set_item("signed", true)
            .and_then(|()| {
                let bytes = PyBytes::new(self.py, digits);
                self.py.get_type::<PyInt>().call_method("from_bytes", (bytes, "little"), Some(&signed))
            })
            .map_err(to_error)
    }

    fn float(&mut self, value: f64) -> EngineResult<Made<'py>> {
        Ok(PyFloat::new(self.py, value).into_any())
    }

    fn complex(&mut self, re: f64, im: f64) -> EngineResult<Made<'py>> {
        Ok(PyComplex::from_doubles(self.py, re, im).into_any())
    }

    fn str(&mut self, value: &str) -> EngineResult<Made<'py>> {
        Ok(PyString::new(self.py, value).into_any())
    }

    fn bytes(&mut self, value: &[u8], mutable: bool) -> EngineResult<Made<'py>> {
        Ok(if mutable { PyByteArray::new(self.py, value).into_any() } else { PyBytes::new(self.py, value).into_any() })
    }

    fn tuple(&mut self, items: Vec<Made<'py>>) -> EngineResult<Made<'py>> {
        PyTuple::new(self.py, items).map(Bound::into_any).map_err(to_error)
    }

    fn set(&mut self, items: Vec<Made<'py>>, mutable: bool) -> EngineResult<Made<'py>> {
        if mutable {
            PySet::new(self.py, items).map(Bound::into_any).map_err(to_error)
        } else {
            PyFrozenSet::new(self.py, items).map(Bound::into_any).map_err(to_error)
        }
    }

    fn empty_list(&mut self) -> EngineResult<Option<Made<'py>>> {
        Ok(Some(PyList::empty(self.py).into_any()))
    }

    fn fill_list(&mut self, empty: Option<Made<'py>>, items: Vec<Made<'py>>) -> EngineResult<Made<'py>> {
        let list = empty.unwrap_or_else(|| PyList::empty(self.py).into_any());
        for item in items {
            list.cast::<PyList>().map_err(PyErr::from).and_then(|list| list.append(item)).map_err(to_error)?;
        }
        Ok(list)
    }

    fn empty_dict(&mut self, kind: DictKind) -> EngineResult<Option<Made<'py>>> {
        self.new_dict(kind).map(Some).map_err(to_error)
    }

    fn fill_dict(
        &mut self,
        kind: DictKind,
        empty: Option<Made<'py>>,
        pairs: Vec<(Made<'py>, Made<'py>)>,
        attributes: Option<Made<'py>>,
    ) -> EngineResult<Made<'py>> {
        let dict = match empty {
            Some(dict) => dict,
            None => self.new_dict(kind).map_err(to_error)?,
        };
        for (key, value) in pairs {
            dict.set_item(key, value).map_err(to_error)?;
        }
        if let Some(attributes) = attributes {
            set_attributes(&dict, &attributes).map_err(to_error)?;
        }
        Ok(dict)
    }

    fn size(&mut self, sizes: Vec<i64>) -> EngineResult<Made<'py>> {
        let sizes: Vec<usize> = sizes
            .into_iter()
            .map(|n| usize::try_from(n).map_err(|_| Error::value(format!("load: a Size with the element {n}"))))
            .collect::<EngineResult<_>>()?;
        // SAFETY: an owned reference.
        self.wrapped(size_object(self.py, &sizes).map(|ptr| unsafe { Bound::from_owned_ptr(self.py, ptr) }))
    }

    fn dtype(&mut self, dtype: DType) -> EngineResult<Made<'py>> {
        dtype_object(self.py, dtype).map(Bound::into_any).map_err(to_error)
    }

    fn device(&mut self, name: &str) -> EngineResult<Made<'py>> {
        Bound::new(self.py, DeviceObject(name.parse()?)).map(Bound::into_any).map_err(to_error)
    }

    fn layout(&mut self, name: &str) -> EngineResult<Made<'py>> {
        let module = self.py.import("flambeau._C").map_err(to_error)?;
        module.getattr(name).map_err(|_| Error::not_implemented(format!("load: flambeau has no layout '{name}'")))
    }

    fn tensor(&mut self, info: &TensorInfo) -> EngineResult<Made<'py>> {
        let on_meta = match &info.storage {
            Some(storage) => self.on_meta(&storage.location)?,
            None => true,
        };
        let made = if on_meta && info.storage.is_some() {
            self.tensors.tensor(&TensorInfo { storage: None, ..info.clone() })?
        } else {
            self.tensors.tensor(info)?
        };
        self.wrapped(wrap_bound(self.py, made))
    }

    fn parameter(&mut self, tensor: Made<'py>, requires_grad: bool) -> EngineResult<Made<'py>> {
        let class = self.py.import("flambeau.nn.parameter").and_then(|module| module.getattr("Parameter"));
        class.and_then(|class| class.call1((tensor, requires_grad))).map_err(to_error)
    }

    fn attributes(&mut self, tensor: Made<'py>, attributes: Made<'py>) -> EngineResult<Made<'py>> {
        set_attributes(&tensor, &attributes).map_err(to_error)?;
        Ok(tensor)
    }

    fn storage(&mut self, info: &Arc<StorageInfo>) -> EngineResult<Made<'py>> {
        let storage = if self.on_meta(&info.location)? {
            Storage::allocate(Device::META, info.nbytes as usize, false)?
        } else {
            self.tensors.storage(info, info.dtype.unwrap_or(DType::U8))?
        };
        Bound::new(self.py, StorageObject(storage)).map(Bound::into_any).map_err(to_error)
    }
}

/// Reads a file as plain objects and tensors; nothing that it names is run. `place` is asked, for each device that
/// storages were saved from, where they shall be.
#[pyfunction]
#[pyo3(name = "_pt_load")]
pub fn pt_load<'py>(source: &Bound<'py, PyAny>, mmap: bool, place: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| {
        let py = source.py();
        let (file, path) = open(source)?;
        let pickle = file.pickle().clone();
        let tensors = loader(file.into_storages(), path.as_deref(), mmap)?;
        Ok(build(&pickle, &mut Maker { py, tensors, place, places: HashMap::new() })?)
    })
}

/// The parts of a file, for a reader of pickles in Python.
#[pyclass(name = "_PtReader", module = "flambeau._C", frozen)]
pub struct Reader {
    pickle: Vec<u8>,
    tensors: Mutex<TensorLoader<Source>>,
}

#[pymethods]
impl Reader {
    #[new]
    fn new(source: &Bound<'_, PyAny>, mmap: bool) -> PyResult<Reader> {
        shielded(|| {
            let (mut file, path) = open(source)?;
            let pickle = file.pickle_bytes()?;
            let tensors = Mutex::new(loader(file.into_storages(), path.as_deref(), mmap)?);
            Ok(Reader { pickle, tensors })
        })
    }

    /// The pickle.
    fn pickle<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.pickle)
    }

    /// The storage of this key and size; `dtype` is that of its class, or None where it is only bytes.
    fn storage(&self, key: String, nbytes: u64, dtype: Option<&Bound<'_, PyAny>>, device: &str) -> PyResult<StorageObject> {
        shielded(|| {
            let dtype = dtype.and_then(|d| dtype_of(d.py(), d.as_ptr()));
            if device.parse::<Device>()?.is_meta() {
                return Ok(StorageObject(Storage::allocate(Device::META, nbytes as usize, false)?));
            }
            let info = StorageInfo { key, dtype, nbytes, location: String::new() };
            Ok(StorageObject(locked(&self.tensors).storage(&info, dtype.unwrap_or(DType::U8))?))
        })
    }
}

/// A Python file object as something to write to.
struct PythonFile(Py<PyAny>);

impl Write for PythonFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Python::attach(|py| {
            let written = self.0.bind(py).call_method1("write", (PyBytes::new(py, bytes),))?;
            // Text streams and others answer None; all was taken then.
            Ok(written.extract().unwrap_or(bytes.len()))
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Python::attach(|py| match self.0.bind(py).getattr_opt("flush")? {
            Some(flush) => flush.call0().map(drop).map_err(Into::into),
            None => Ok(()),
        })
    }
}

/// Writes a file: the pickle first, then the storages, then `finish`.
#[pyclass(name = "_PtWriter", module = "flambeau._C", frozen)]
pub struct Writer(Mutex<Option<PtWriter<Box<dyn Write + Send>>>>);

impl Writer {
    fn with<T>(&self, f: impl FnOnce(&mut PtWriter<Box<dyn Write + Send>>) -> EngineResult<T>) -> Ret<T> {
        let mut place = locked(&self.0);
        let writer = place.as_mut().ok_or_else(|| runtime_error("the file is finished"))?;
        Ok(f(writer)?)
    }
}

#[pymethods]
impl Writer {
    #[new]
    fn new(target: &Bound<'_, PyAny>) -> PyResult<Writer> {
        shielded(|| {
            let (out, stem): (Box<dyn Write + Send>, String) = match target.extract::<PathBuf>() {
                Ok(path) => {
                    let file = File::create(&path).map_err(|e| Raised(e.into()))?;
                    let stem = path.file_stem().map_or_else(|| "archive".into(), |stem| stem.to_string_lossy().into_owned());
                    (Box::new(file), stem)
                }
                Err(_) => (Box::new(PythonFile(target.clone().unbind())), "archive".into()),
            };
            Ok(Writer(Mutex::new(Some(PtWriter::new(out, &stem)))))
        })
    }

    /// Writes the pickle of everything but the numbers.
    fn pickle(&self, bytes: &[u8]) -> PyResult<()> {
        shielded(|| self.with(|writer| writer.pickle(bytes)))
    }

    /// Writes the bytes of a storage.
    fn storage(&self, key: &str, storage: &Bound<'_, PyAny>) -> PyResult<()> {
        shielded(|| {
            let storage = storage_of(storage)?;
            self.with(|writer| writer.tensor_storage(key, &storage, storage.nbytes()))
        })
    }

    /// Writes what belongs at the end.
    fn finish(&self) -> PyResult<()> {
        shielded(|| {
            let writer = locked(&self.0).take().ok_or_else(|| runtime_error("the file is finished"))?;
            writer.finish()?.flush().map_err(|e| Raised(e.into()))
        })
    }
}

/// Adds the functions and classes to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(pt_load, m)?)?;
    m.add_class::<Reader>()?;
    m.add_class::<Writer>()
}
