//! Tensors and storages as a pickle describes them, checked before any byte of them is read.

use std::sync::Arc;

use flambeau_base::DType;

use super::names::storage_dtype;
use crate::error::{Result, unpickling, unsupported};
use crate::pickle::{Node, Pickle, Value};

/// The bytes that one or several tensors look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageInfo {
    /// Its name in the file.
    pub key: String,
    /// The dtype of its class; `None` where it is only bytes.
    pub dtype: Option<DType>,
    /// Its length in bytes.
    pub nbytes: u64,
    /// The device that it was saved from, such as `cuda:0`.
    pub location: String,
}

/// A tensor: a view of a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// What it looks at. Tensors of one storage share this allocation. `None` for a tensor of the `meta` device.
    pub storage: Option<Arc<StorageInfo>>,
    /// The element type.
    pub dtype: DType,
    /// The first element's place in the storage, in elements.
    pub offset: i64,
    /// The sizes; none is negative, and their product fits an `i64`.
    pub sizes: Vec<i64>,
    /// The strides in elements; none is negative, and no element lies outside of the storage.
    pub strides: Vec<i64>,
    /// Whether gradients are wanted.
    pub requires_grad: bool,
    /// Whether its values are the conjugates of what the storage holds.
    pub conj: bool,
    /// Whether its values are the negatives of what the storage holds.
    pub neg: bool,
}

impl TensorInfo {
    /// Checks that each element lies inside the storage. Every constructor here has done so.
    ///
    /// # Errors
    /// `UnpicklingError`, saying what lies outside of what.
    pub fn check(&self) -> Result<()> {
        let shown =
            || format!("a {} tensor of sizes {:?} and strides {:?} at offset {}", self.dtype, self.sizes, self.strides, self.offset);
        let negative = |v: &[i64]| v.iter().any(|&n| n < 0);
        if self.sizes.len() != self.strides.len() || negative(&self.sizes) || negative(&self.strides) || self.offset < 0 {
            return Err(unpickling(format_args!("{} is not possible", shown())));
        }
        let overflow = || unpickling(format_args!("{} is larger than any memory", shown()));
        let numel = self.sizes.iter().try_fold(1i64, |n, &size| n.checked_mul(size)).ok_or_else(overflow)?;
        let last = self
            .sizes
            .iter()
            .zip(&self.strides)
            .try_fold(self.offset, |last, (&size, &stride)| last.checked_add((size - 1).max(0).checked_mul(stride)?));
        let last = last.ok_or_else(overflow)?;
        let needed = if numel == 0 { 0 } else { (last as u64).saturating_add(1).saturating_mul(self.dtype.size() as u64) };
        match &self.storage {
            Some(storage) if needed > storage.nbytes => Err(unpickling(format_args!(
                "{} needs {needed} bytes of a storage that has {}: the file is damaged",
                shown(),
                storage.nbytes
            ))),
            _ => Ok(()),
        }
    }
}

/// Reads the persistent id by which a pickle refers to a storage.
pub(super) fn storage(pickle: &Pickle, id: Value) -> Result<StorageInfo> {
    let wrong = || unpickling("a reference to a storage is not of the form ('storage', class, key, location, size)");
    let parts = pickle.as_tuple(id).ok_or_else(wrong)?;
    let [tag, class, key, location, numel, view @ ..] = parts else {
        return Err(wrong());
    };
    let (Some("storage"), Some(class), Some(key), Value::Int(numel)) =
        (pickle.as_str(*tag), pickle.as_global(*class), pickle.as_str(*key), *numel)
    else {
        return Err(wrong());
    };
    if view.iter().any(|&v| v != Value::None) {
        return Err(unsupported("a view of a storage, as PyTorch before 0.4 saved it"));
    }
    // A device that its writer invented need not have a text for a name.
    let location = pickle.as_str(*location).unwrap_or("cpu").to_owned();
    let dtype = match (class.module.as_str(), class.name.as_str()) {
        ("torch.storage" | "torch", "UntypedStorage") => None,
        ("torch" | "torch.cuda", name) => match storage_dtype(name) {
            Some(dtype) => Some(dtype),
            None => return Err(unsupported(format_args!("storages of class {class}"))),
        },
        _ => return Err(super::build::forbidden(class)),
    };
    let nbytes = u64::try_from(numel).ok().and_then(|n| n.checked_mul(dtype.map_or(1, DType::size) as u64));
    let nbytes = nbytes.filter(|&n| n <= i64::MAX as u64).ok_or_else(wrong)?;
    Ok(StorageInfo { key: key.to_owned(), dtype, nbytes, location })
}

/// The dtype that a name in the module `torch` stands for.
pub(super) fn dtype(pickle: &Pickle, value: Value) -> Option<DType> {
    let global = pickle.as_global(value).filter(|global| global.module == "torch")?;
    DType::ALL.into_iter().find(|dtype| dtype.name() == global.name)
}

/// A tuple (or a `torch.Size`, which is a call with one) of integers.
pub(super) fn ints(pickle: &Pickle, value: Value) -> Option<Vec<i64>> {
    let items = match pickle.get(value)? {
        Node::Tuple(items) => items,
        Node::List(items) => items.as_slice(),
        Node::Made(made) if pickle.as_global(made.callable)?.to_string() == "torch.Size" => {
            return match pickle.as_tuple(made.args)? {
                [items] if !matches!(pickle.get(*items), Some(Node::Made(_))) => ints(pickle, *items),
                _ => None,
            };
        }
        _ => return None,
    };
    items.iter().map(|item| if let Value::Int(n) = item { Some(*n) } else { None }).collect()
}

/// The flags of a tensor's metadata: a dictionary of `conj` and `neg`.
pub(super) fn flags(pickle: &Pickle, value: Value) -> Result<(bool, bool)> {
    let (mut conj, mut neg) = (false, false);
    for &(key, value) in pickle.dict(value).unwrap_or_default() {
        match (pickle.as_str(key), value) {
            (Some("conj"), Value::Bool(b)) => conj = b,
            (Some("neg"), Value::Bool(b)) => neg = b,
            (Some(key), _) => {
                return Err(unsupported(format_args!("a tensor with the metadata '{key}'")));
            }
            _ => return Err(unpickling("a tensor's metadata has a key that is no text")),
        }
    }
    Ok((conj, neg))
}
