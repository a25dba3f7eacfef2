//! Safetensors files: a header in JSON, then the bytes of the tensors.
//!
//! Source: the format's description at <https://huggingface.co/docs/safetensors>; headers are read and written by its
//! authors' crate. Tensors of files are read when asked for.
//!
//! ```
//! use flambeau_engine::Tensor;
//! use flambeau_io::safetensors;
//! # use flambeau_cpu as _;
//! # let path = std::env::temp_dir().join(format!("flambeau-doc-{}.safetensors", std::process::id()));
//! let weight = Tensor::from_slice(&[0.5f32, -1.0], &[2])?;
//! safetensors::save(&path, [("weight", &weight)], [("epoch", "3")])?;
//!
//! let file = safetensors::SafeTensors::open(&path)?;
//! assert_eq!(file.metadata().get("epoch").map(String::as_str), Some("3"));
//! assert_eq!(file.tensor("weight")?.to_vec::<f32>()?, [0.5, -1.0]);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), flambeau_io::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flambeau_base::{DType, Device, Layout};
use flambeau_engine::{Storage, Tensor};
use safetensors::tensor::{Dtype, Metadata, SafeTensorError, TensorInfo, View};

use crate::error::{Error, Result, at_path, corrupt, unsupported};
use crate::map::Map;

/// The headers that the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// A file whose header has been read, or a buffer.
pub struct SafeTensors {
    bytes: Bytes,
    /// Where the tensors' bytes begin.
    start: usize,
    header: Metadata,
    metadata: BTreeMap<String, String>,
}

enum Bytes {
    Mapped(Arc<Map>),
    Owned(Vec<u8>),
}

impl SafeTensors {
    /// Opens a file. Its tensors share the mapped file until they are written to; it must not be changed meanwhile.
    ///
    /// # Errors
    /// `OSError` where the system refuses; `RuntimeError` where it is no safetensors file, or is cut short.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let context = |e: Error| e.context(path.display());
        let mut file = File::open(path).map_err(|e| at_path(path, e))?;
        let length = file.metadata().map_err(|e| at_path(path, e))?.len();
        let (header, start) = read_header(&mut file, length).map_err(context)?;
        drop(file);
        Self::new(Bytes::Mapped(Map::open(path)?), header, start).map_err(context)
    }

    /// Takes a file's bytes. Its tensors are copies.
    ///
    /// # Errors
    /// `RuntimeError` where they are no safetensors file, or are cut short.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let (header, start) = read_header(&mut bytes.as_slice(), bytes.len() as u64)?;
        Self::new(Bytes::Owned(bytes), header, start)
    }

    fn new(bytes: Bytes, header: Metadata, start: usize) -> Result<Self> {
        if cfg!(target_endian = "big") {
            return Err(unsupported("safetensors: the format is little-endian, this machine is not"));
        }
        let metadata = header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Self { bytes, start, header, metadata })
    }

    /// The names of the tensors, in the order of their bytes.
    pub fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }

    /// Texts that the writer has put beside the tensors.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The shape of a tensor.
    ///
    /// # Errors
    /// `RuntimeError` where there is none of this name.
    pub fn shape(&self, name: &str) -> Result<&[usize]> {
        self.info(name).map(|info| info.shape.as_slice())
    }

    /// The dtype of a tensor.
    ///
    /// # Errors
    /// `RuntimeError` where there is none of this name, `NotImplementedError` for a dtype that flambeau lacks.
    pub fn dtype(&self, name: &str) -> Result<DType> {
        to_dtype(name, self.info(name)?.dtype)
    }

    /// A tensor.
    ///
    /// # Errors
    /// As [`dtype`](Self::dtype).
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let info = self.info(name)?;
        let dtype = to_dtype(name, info.dtype)?;
        let (from, to) = (self.start + info.data_offsets.0, self.start + info.data_offsets.1);
        let storage = match &self.bytes {
            Bytes::Mapped(map) => {
                let mapped = map.storage(from as u64..to as u64)?;
                if Map::is_aligned(from as u64, dtype.size()) { mapped } else { copy(mapped.ptr(), to - from)? }
            }
            // The header was found to end where the bytes end.
            Bytes::Owned(bytes) => copy(bytes[from..to].as_ptr(), to - from)?,
        };
        Tensor::from_storage(storage, Layout::contiguous(&info.shape)?, dtype)
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.header.info(name).ok_or_else(|| corrupt(format_args!("safetensors: there is no tensor '{name}' in the file")))
    }
}

/// Reads all tensors of a file, in the order of their bytes.
///
/// # Errors
/// As [`SafeTensors::open`] and [`SafeTensors::tensor`].
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    all(&SafeTensors::open(path)?)
}

/// Reads all tensors of a file's bytes.
///
/// # Errors
/// As [`load`].
pub fn read(bytes: Vec<u8>) -> Result<Vec<(String, Tensor)>> {
    all(&SafeTensors::from_bytes(bytes)?)
}

fn all(file: &SafeTensors) -> Result<Vec<(String, Tensor)>> {
    let tensor = |name: String| file.tensor(&name).map(|tensor| (name, tensor));
    file.names().into_iter().map(tensor).collect()
}

/// Writes tensors by name, and texts beside them. Tensors are written densely: sharing between them is not kept.
/// The file appears when it is complete.
///
/// # Errors
/// `OSError` where the system refuses, `NotImplementedError` for `complex128` (which the format lacks) and for
/// tensors on other devices.
pub fn save<'a, N: AsRef<str>, K: AsRef<str>, V: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    metadata: impl IntoIterator<Item = (K, V)>,
) -> Result<()> {
    let path = path.as_ref();
    let (tensors, metadata) = prepare(tensors, metadata)?;
    safetensors::serialize_to_file(tensors, metadata, path).map_err(|e| wrong(e).context(path.display()))
}

/// Writes what [`save`] writes, into memory.
///
/// # Errors
/// As [`save`].
pub fn write<'a, N: AsRef<str>, K: AsRef<str>, V: AsRef<str>>(
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    metadata: impl IntoIterator<Item = (K, V)>,
) -> Result<Vec<u8>> {
    let (tensors, metadata) = prepare(tensors, metadata)?;
    safetensors::serialize(tensors, metadata).map_err(wrong)
}

fn prepare<'a, N: AsRef<str>, K: AsRef<str>, V: AsRef<str>>(
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    metadata: impl IntoIterator<Item = (K, V)>,
) -> Result<(Vec<(String, Dense)>, Option<HashMap<String, String>>)> {
    if cfg!(target_endian = "big") {
        return Err(unsupported("safetensors: the format is little-endian, this machine is not"));
    }
    let dense = |(name, tensor): (N, &Tensor)| {
        let name = name.as_ref().to_owned();
        Dense::new(&name, tensor).map(|tensor| (name, tensor))
    };
    let tensors = tensors.into_iter().map(dense).collect::<Result<_>>()?;
    let text = |(key, value): (K, V)| (key.as_ref().to_owned(), value.as_ref().to_owned());
    let metadata: HashMap<_, _> = metadata.into_iter().map(text).collect();
    Ok((tensors, Some(metadata).filter(|metadata| !metadata.is_empty())))
}

/// A contiguous tensor on the CPU.
struct Dense {
    tensor: Tensor,
    dtype: Dtype,
}

impl Dense {
    fn new(name: &str, tensor: &Tensor) -> Result<Self> {
        let dtype = from_dtype(tensor.dtype())
            .ok_or_else(|| unsupported(format_args!("safetensors: the format has no {} ('{name}')", tensor.dtype())))?;
        if !tensor.device().same(Device::CPU) {
            return Err(unsupported(format_args!("safetensors: '{name}' is on {}; move it to the CPU first", tensor.device())));
        }
        Ok(Self { tensor: tensor.alias().resolved()?.contiguous()?, dtype })
    }
}

impl View for Dense {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self.tensor.data_ptr() {
            Ok(start) if self.data_len() > 0 => {
                // SAFETY: a contiguous tensor on the CPU has so many bytes there, and `self` keeps them. That nobody
                // writes to a tensor while it is saved is asked of the caller of every operation.
                Cow::Borrowed(unsafe { std::slice::from_raw_parts(start, self.data_len()) })
            }
            _ => Cow::Borrowed(&[]),
        }
    }

    fn data_len(&self) -> usize {
        self.tensor.numel() * self.tensor.dtype().size()
    }
}

/// Reads the header, and says where the tensors' bytes begin. Every tensor lies inside the file then.
fn read_header(file: &mut impl Read, length: u64) -> Result<(Metadata, usize)> {
    let mut size = [0; 8];
    let cut = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => corrupt("safetensors: the file is cut short within its header"),
        _ => Error::from(e),
    };
    file.read_exact(&mut size).map_err(cut)?;
    let size = u64::from_le_bytes(size);
    if size > MAX_HEADER.min(length.saturating_sub(8)) {
        return Err(corrupt(format_args!(
            "safetensors: a header of {size} bytes is announced in a file of {length}: it is cut short, or no safetensors file"
        )));
    }
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header).map_err(cut)?;
    let header: Metadata = parse_header(&header)?;
    let (start, needed) = (8 + size, header.data_len() as u64);
    if start.checked_add(needed) != Some(length) {
        return Err(corrupt(format_args!(
            "safetensors: header and tensors take {start} + {needed} bytes, the file has {length}: it is cut short or damaged"
        )));
    }
    Ok((header, start as usize))
}

fn parse_header(bytes: &[u8]) -> Result<Metadata> {
    // The crate reads a header only together with the data, whose length it compares; there is no data here, so
    // that comparison is made by the caller.
    let text = std::str::from_utf8(bytes).map_err(|_| corrupt("safetensors: the header is not UTF-8"))?;
    serde_json::from_str(text).map_err(|e| corrupt(format_args!("safetensors: the header cannot be read: {e}")))
}

#[cold]
fn wrong(error: SafeTensorError) -> Error {
    match error {
        SafeTensorError::IoError(error) => Error::from(error),
        error => corrupt(format_args!("safetensors: {error}")),
    }
}

const DTYPES: [(DType, Dtype); 16] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::U16, Dtype::U16),
    (DType::U32, Dtype::U32),
    (DType::U64, Dtype::U64),
    (DType::F8E4M3, Dtype::F8_E4M3),
    (DType::F8E5M2, Dtype::F8_E5M2),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::C64, Dtype::C64),
];

fn to_dtype(name: &str, dtype: Dtype) -> Result<DType> {
    let found = DTYPES.iter().find(|(_, theirs)| *theirs == dtype).map(|(ours, _)| *ours);
    found.ok_or_else(|| unsupported(format_args!("safetensors: tensor '{name}' has dtype {dtype}, which flambeau lacks")))
}

fn from_dtype(dtype: DType) -> Option<Dtype> {
    DTYPES.iter().find(|(ours, _)| *ours == dtype).map(|(_, theirs)| *theirs)
}

/// A storage that is a copy of `nbytes` at `start`, which the caller keeps.
fn copy(start: *const u8, nbytes: usize) -> Result<Storage> {
    let storage = Storage::allocate(Device::CPU, nbytes, false)?;
    // SAFETY: both callers give a range inside memory that they hold; the fresh storage has as many bytes.
    unsafe { std::ptr::copy_nonoverlapping(start, storage.ptr(), nbytes) };
    Ok(storage)
}
