//! Storages as Python sees them: bytes on a device.

use crate::error::*;
use flambeau_base::{Device, Layout};
use flambeau_engine::{Storage, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes on a device, shared by tensors that are views of one another.
#[pyclass(name = "UntypedStorage", module = "flambeau", frozen, weakref)]
pub struct StorageObject(pub Storage);

/// A storage as a Python object.
pub fn storage_ptr(py: Python<'_>, storage: Storage) -> Ret<Ptr> {
    Ok(Py::new(py, StorageObject(storage))?.into_ptr())
}

/// The storage of an object: itself, or its `_untyped_storage`.
pub fn storage_of(obj: &Bound<'_, PyAny>) -> Ret<Storage> {
    if let Ok(s) = obj.cast::<StorageObject>() {
        return Ok(s.get().0.clone());
    }
    if let Ok(t) = crate::tensor_type::expect_tensor(obj) {
        return Ok(t.storage().clone());
    }
    let inner = obj
        .getattr("_untyped_storage")
        .map_err(|_| type_error(format!("expected a storage, got {}", crate::tensor_type::type_name(obj.as_ptr()))))?;
    Ok(inner.cast::<StorageObject>()?.get().0.clone())
}

impl StorageObject {
    /// All bytes as a tensor.
    fn bytes(&self) -> Ret<Tensor> {
        let layout = Layout::contiguous(&[self.0.nbytes()])?;
        Ok(Tensor::from_storage(self.0.clone(), layout, flambeau_base::DType::U8)?)
    }
}

#[pymethods]
impl StorageObject {
    #[new]
    #[pyo3(signature = (size=None, *, device=None))]
    fn new(size: Option<&Bound<'_, PyAny>>, device: Option<&Bound<'_, PyAny>>) -> PyResult<StorageObject> {
        shielded(|| {
            let device = device.map(crate::objects::device_of).transpose()?.flatten().unwrap_or(Device::CPU);
            let Some(size) = size else { return Ok(StorageObject(Storage::allocate(device, 0, false)?)) };
            if let Ok(n) = size.extract::<usize>() {
                return Ok(StorageObject(Storage::allocate(device, n, false)?));
            }
            let bytes: Vec<u8> = size.extract()?;
            Ok(StorageObject(Tensor::from_slice(&bytes, &[bytes.len()])?.storage().clone()))
        })
    }

    /// The address of the first byte.
    fn data_ptr(&self) -> PyResult<usize> {
        shielded(|| if self.0.device().is_meta() { Ok(0) } else { Ok(self.0.writable_ptr()? as usize) })
    }

    /// Size in bytes.
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    /// Size in bytes.
    fn size(&self) -> usize {
        self.0.nbytes()
    }

    fn __len__(&self) -> usize {
        self.0.nbytes()
    }

    /// A number that tells storages apart while they live.
    #[getter]
    fn _cdata(&self) -> usize {
        self.0.id()
    }

    /// Where the bytes are.
    #[getter]
    fn device(&self) -> crate::objects::DeviceObject {
        crate::objects::DeviceObject(self.0.device())
    }

    /// Itself: for callers that have a typed storage or this one.
    #[getter]
    fn _untyped_storage(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Makes it at least so large; bytes that are there keep their values.
    fn resize_(slf: Py<Self>, size: usize) -> PyResult<Py<Self>> {
        shielded(|| {
            slf.get().0.grow(size)?;
            Ok(slf)
        })
    }

    /// The bytes as a list of integers.
    fn tolist(&self) -> PyResult<Vec<u16>> {
        shielded(|| Ok(self.bytes()?.to_vec::<u8>()?.into_iter().map(u16::from).collect()))
    }

    /// A copy of the bytes.
    fn _to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shielded(|| Ok(PyBytes::new(py, &self.bytes()?.to_vec::<u8>()?)))
    }

    /// The same bytes in memory of their own.
    fn clone(&self) -> PyResult<StorageObject> {
        shielded(|| Ok(StorageObject(self.bytes()?.copy()?.storage().clone())))
    }

    /// Sets every byte.
    fn fill_(slf: Py<Self>, value: u8) -> PyResult<Py<Self>> {
        shielded(|| {
            slf.get().bytes()?.fill_(value)?;
            Ok(slf)
        })
    }

    /// Copies the bytes of another storage of the same size.
    fn copy_<'py>(slf: Bound<'py, Self>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        shielded(|| {
            slf.get().bytes()?.copy_(&StorageObject(storage_of(source)?).bytes()?)?;
            Ok(slf)
        })
    }

    fn __getitem__(&self, index: isize) -> PyResult<u8> {
        shielded(|| {
            let n = self.0.nbytes() as isize;
            let at = if index < 0 { index + n } else { index };
            if at < 0 || at >= n {
                return Err(Raised(pyo3::exceptions::PyIndexError::new_err(format!("index {index} out of range for storage of size {n}"))));
            }
            Ok(self.bytes()?.to_vec::<u8>()?[at as usize])
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<StorageObject>().is_ok_and(|o| o.get().0.same(&self.0))
    }

    fn __hash__(&self) -> usize {
        self.0.id()
    }

    fn __repr__(&self) -> String {
        format!("<flambeau.UntypedStorage of {} bytes on {}>", self.0.nbytes(), self.0.device())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().into_any(), (slf.get()._to_bytes(slf.py())?,)))
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let key = slf.get().0.id();
        if let Ok(found) = memo.get_item(("flambeau.storage", key)) {
            return Ok(found);
        }
        let copy = Bound::new(slf.py(), slf.get().clone()?)?.into_any();
        memo.set_item(("flambeau.storage", key), &copy)?;
        Ok(copy)
    }
}
