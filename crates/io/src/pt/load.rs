//! `.pt` files as [`Object`]s.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

use flambeau_base::{Complex64, DType, Device, Layout, Scalar};
use flambeau_engine::tensor::Element;
use flambeau_engine::{Storage, Tensor, with_element};

use super::build::{Build, DictKind};
use super::file::{PtFile, Storages};
use super::tensor::{StorageInfo, TensorInfo};
use crate::error::{Result, unpickling, unsupported};
use crate::map::Map;
use crate::object::{Dict, Object};

/// Loads what PyTorch's or our `save` wrote. No code runs, whatever the file says; tensors come to the CPU.
///
/// # Errors
/// `OSError` where the system refuses, `UnpicklingError` for a file that names a class or function that is not allowed
/// or puts tensors outside of their storages, `RuntimeError` for one that is cut short or damaged,
/// `NotImplementedError` for tensors of kinds that are not there.
///
/// ```
/// use flambeau_io::{Object, pt};
/// # use flambeau_cpu as _;
/// # let path = std::env::temp_dir().join(format!("flambeau-load-{}.pt", std::process::id()));
/// let w = flambeau_engine::Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
/// pt::save(&path, &Object::dict([("w", w.into()), ("step", 3.into())]))?;
/// let checkpoint = pt::load(&path)?;
/// assert_eq!(checkpoint.get("step").and_then(Object::as_int), Some(3));
/// let w = checkpoint.get("w").and_then(Object::as_tensor).expect("it was saved");
/// assert_eq!(w.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), flambeau_io::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Object> {
    let path = path.as_ref();
    PtFile::open(path)?.build(|storages| Loader::new(storages, None)).map_err(|e| e.context(path.display()))
}

/// Loads a file whose tensors are read from it when they are used: it is mapped, and must not be changed meanwhile.
/// Writing to a tensor changes memory, not the file. Tensors that cannot be used as they are in the file (compressed,
/// of the other byte order, not aligned) are read at once.
///
/// # Errors
/// As [`load`].
pub fn load_mapped(path: impl AsRef<Path>) -> Result<Object> {
    let path = path.as_ref();
    let map = Map::open(path)?;
    PtFile::open(path)?.build(|storages| Loader::new(storages, Some(map))).map_err(|e| e.context(path.display()))
}

/// Loads from an opened file, a buffer, or anything that can be read from any place.
///
/// # Errors
/// As [`load`].
pub fn read<R: Read + Seek>(reader: R) -> Result<Object> {
    PtFile::new(reader)?.build(|storages| Loader::new(storages, None))
}

/// Loads tensors by name, as a module's `state_dict()` gives them.
///
/// # Errors
/// As [`load`], and `RuntimeError` where the file holds something else.
pub fn load_state_dict(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    load(path)?.to_state_dict().map_err(|e| e.context(path.display()))
}

/// Reads storages into memory, each once, and makes tensors on them: what every [`Build`] of tensors needs.
pub struct TensorLoader<R> {
    storages: Storages<R>,
    loaded: HashMap<String, Storage>,
    map: Option<Arc<Map>>,
}

impl<R: Read + Seek> TensorLoader<R> {
    /// A loader from a file's storages.
    pub fn new(storages: Storages<R>) -> Self {
        Self { storages, loaded: HashMap::new(), map: None }
    }

    /// A loader that maps the file at this path, which is the one that the storages are of.
    ///
    /// # Errors
    /// `OSError` where the system refuses.
    pub fn mapped(storages: Storages<R>, path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { map: Some(Map::open(path.as_ref())?), ..Self::new(storages) })
    }

    /// A storage. `element` is the dtype where the storage itself has none.
    ///
    /// # Errors
    /// Where the file does not hold it in full, or there is no memory for it.
    pub fn storage(&mut self, info: &StorageInfo, element: DType) -> Result<Storage> {
        if let Some(storage) = self.loaded.get(&info.key) {
            return Ok(storage.clone());
        }
        let storage = match (self.storages.position(info)?, &self.map) {
            (Some(place), Some(map)) if Map::is_aligned(place.start, info.dtype.unwrap_or(element).size()) => map.storage(place)?,
            (Some(_), _) => self.copied(info, element)?,
            // Compressed: memory follows what comes out, not what is announced.
            (None, _) => stored(&self.storages.read(info, element)?)?,
        };
        self.loaded.insert(info.key.clone(), storage.clone());
        Ok(storage)
    }

    /// A tensor.
    ///
    /// # Errors
    /// As [`storage`](Self::storage); `UnpicklingError` where it reaches outside of its storage.
    pub fn tensor(&mut self, info: &TensorInfo) -> Result<Tensor> {
        info.check()?;
        let sizes: Vec<usize> = info.sizes.iter().map(|&n| n as usize).collect();
        let strides: Vec<isize> = info.strides.iter().map(|&n| n as isize).collect();
        let tensor = match &info.storage {
            None => Tensor::empty_strided(&sizes, &strides, info.dtype, Device::META)?,
            Some(storage) => {
                let layout = Layout::strided("load", &sizes, &strides, info.offset as usize)?;
                let bytes = layout.numel().saturating_mul(info.dtype.size()) as u64;
                let tensor = Tensor::from_storage(self.storage(storage, info.dtype)?, layout, info.dtype)?;
                match info.conj || info.neg {
                    // A few bytes expanded to many are a view, and are not written out.
                    true if bytes > storage.nbytes => {
                        return Err(unpickling("load: an expanded tensor that is conjugated"));
                    }
                    true => turned(&tensor, info)?,
                    false => tensor,
                }
            }
        };
        if info.requires_grad {
            tensor.set_requires_grad(true)?;
        }
        Ok(tensor)
    }

    fn copied(&mut self, info: &StorageInfo, element: DType) -> Result<Storage> {
        let nbytes = usize::try_from(info.nbytes).unwrap_or(usize::MAX);
        let storage = Storage::allocate(Device::CPU, nbytes, false)?;
        let (start, mut at) = (storage.ptr(), 0);
        self.storages.read_chunks(info, element, |chunk| {
            debug_assert!(at + chunk.len() <= nbytes);
            // SAFETY: the chunks have `nbytes` bytes in all, as many as the fresh storage, which nobody else has seen.
            unsafe { std::ptr::copy_nonoverlapping(chunk.as_ptr(), start.add(at), chunk.len()) };
            at += chunk.len();
        })?;
        Ok(storage)
    }
}

fn stored(bytes: &[u8]) -> Result<Storage> {
    let storage = Storage::allocate(Device::CPU, bytes.len(), false)?;
    // SAFETY: the fresh storage has as many bytes, and nobody else has seen it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.ptr(), bytes.len()) };
    Ok(storage)
}

/// The values that a tensor stands for whose storage holds their conjugates or negatives.
fn turned(tensor: &Tensor, info: &TensorInfo) -> Result<Tensor> {
    let turn = |value: Scalar| {
        let sign = if info.neg { -1.0 } else { 1.0 };
        match value {
            Scalar::Complex(z) => Scalar::Complex(Complex64::new(sign * z.re, if info.conj { -sign } else { sign } * z.im)),
            Scalar::Float(x) => Scalar::Float(sign * x),
            other => other,
        }
    };
    if !info.dtype.is_float() && !info.dtype.is_complex() {
        return Err(unsupported(format_args!("load: the negative of a {} tensor", info.dtype)));
    }
    with_element!(info.dtype, T => {
        let values: Vec<T> = tensor.to_vec::<T>()?.into_iter().map(|x| T::from_scalar(turn(x.to_scalar()))).collect();
        Tensor::from_slice(&values, tensor.shape())
    })
}

struct Loader<R> {
    tensors: TensorLoader<R>,
}

impl<R: Read + Seek> Loader<R> {
    fn new(storages: Storages<R>, map: Option<Arc<Map>>) -> Self {
        Self { tensors: TensorLoader { map, ..TensorLoader::new(storages) } }
    }
}

impl<R: Read + Seek> Build for Loader<R> {
    type Out = Object;

    fn none(&mut self) -> Result<Object> {
        Ok(Object::None)
    }

    fn bool(&mut self, value: bool) -> Result<Object> {
        Ok(Object::Bool(value))
    }

    fn int(&mut self, value: i64) -> Result<Object> {
        Ok(Object::Int(value))
    }

    fn big_int(&mut self, digits: &[u8]) -> Result<Object> {
        Ok(Object::BigInt(digits.into()))
    }

    fn float(&mut self, value: f64) -> Result<Object> {
        Ok(Object::Float(value))
    }

    fn complex(&mut self, re: f64, im: f64) -> Result<Object> {
        Ok(Object::Complex(Complex64::new(re, im)))
    }

    fn str(&mut self, value: &str) -> Result<Object> {
        Ok(Object::Str(value.into()))
    }

    fn bytes(&mut self, value: &[u8], _mutable: bool) -> Result<Object> {
        Ok(Object::Bytes(value.into()))
    }

    fn tuple(&mut self, items: Vec<Object>) -> Result<Object> {
        Ok(Object::tuple(items))
    }

    fn set(&mut self, items: Vec<Object>, _mutable: bool) -> Result<Object> {
        Ok(Object::Set(items.into_iter().collect()))
    }

    fn empty_list(&mut self) -> Result<Option<Object>> {
        Ok(None)
    }

    fn fill_list(&mut self, _empty: Option<Object>, items: Vec<Object>) -> Result<Object> {
        Ok(Object::list(items))
    }

    fn empty_dict(&mut self, _kind: DictKind) -> Result<Option<Object>> {
        Ok(None)
    }

    fn fill_dict(
        &mut self,
        kind: DictKind,
        _empty: Option<Object>,
        pairs: Vec<(Object, Object)>,
        attributes: Option<Object>,
    ) -> Result<Object> {
        Ok(Object::Dict(Dict::new(kind, pairs, attributes)))
    }

    fn size(&mut self, sizes: Vec<i64>) -> Result<Object> {
        Ok(Object::Size(sizes.into()))
    }

    fn dtype(&mut self, dtype: DType) -> Result<Object> {
        Ok(Object::DType(dtype))
    }

    fn device(&mut self, name: &str) -> Result<Object> {
        Ok(Object::Device(name.into()))
    }

    fn layout(&mut self, name: &str) -> Result<Object> {
        Err(unsupported(format_args!("load: the file holds a layout ({name}), for which there is no object")))
    }

    fn tensor(&mut self, info: &TensorInfo) -> Result<Object> {
        self.tensors.tensor(info).map(Object::Tensor)
    }

    fn parameter(&mut self, tensor: Object, requires_grad: bool) -> Result<Object> {
        let Object::Tensor(tensor) = tensor else {
            return Err(unpickling(format_args!("load: a parameter made of {}", tensor.kind())));
        };
        tensor.set_requires_grad(requires_grad)?;
        Ok(Object::Parameter(tensor))
    }

    /// Attributes of tensors belong to Python, and are left there.
    fn attributes(&mut self, tensor: Object, _attributes: Object) -> Result<Object> {
        Ok(tensor)
    }

    fn storage(&mut self, info: &Arc<StorageInfo>) -> Result<Object> {
        let dtype = info.dtype.unwrap_or(DType::U8);
        let storage = self.tensors.storage(info, dtype)?;
        let layout = Layout::contiguous(&[storage.nbytes() / dtype.size()])?;
        Tensor::from_storage(storage, layout, dtype).map(Object::Tensor)
    }
}
