//! What files hold, for Rust: plain containers, numbers, texts and tensors.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use flambeau_base::{Complex64, DType, Error, Result};
use flambeau_engine::Tensor;

use crate::pt::DictKind;

/// A value of a `.pt` file.
///
/// Cloning gives another handle on the same object, and sharing is kept: a list that a file holds in two places is one
/// list after [`load`](crate::pt::load), and is written once by [`save`](crate::pt::save).
///
/// ```
/// use flambeau_io::Object;
/// let checkpoint = Object::dict([("step", 100.into()), ("losses", Object::list([2.5.into(), 1.5.into()]))]);
/// assert_eq!(checkpoint.get("step").and_then(Object::as_int), Some(100));
/// assert_eq!(checkpoint.to_string(), "{'step': 100, 'losses': [2.5, 1.5]}");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Object {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is wider: two's complement, little-endian.
    BigInt(Arc<[u8]>),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
    /// A text.
    Str(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list.
    List(Items),
    /// A tuple.
    Tuple(Items),
    /// A set.
    Set(Items),
    /// A dictionary: keys and values in turn, in order.
    Dict(Dict),
    /// A tensor.
    Tensor(Tensor),
    /// A tensor that is a model's parameter.
    Parameter(Tensor),
    /// A `torch.Size`.
    Size(Arc<[i64]>),
    /// A dtype.
    DType(DType),
    /// A device's name; it need not be there.
    Device(Arc<str>),
}

/// The elements of a list, tuple or set. Clones share them.
#[derive(Clone, Default)]
pub struct Items(Arc<Vec<Object>>);

/// The pairs of a dictionary. Clones share them.
#[derive(Clone)]
pub struct Dict {
    /// Keys and values in turn; attributes, where there are some, at the end.
    items: Items,
    kind: DictKind,
    attributes: bool,
}

impl Object {
    /// A list.
    pub fn list(items: impl IntoIterator<Item = Object>) -> Object {
        Object::List(items.into_iter().collect())
    }

    /// A tuple.
    pub fn tuple(items: impl IntoIterator<Item = Object>) -> Object {
        Object::Tuple(items.into_iter().collect())
    }

    /// A dictionary whose keys are texts.
    pub fn dict<K: AsRef<str>>(pairs: impl IntoIterator<Item = (K, Object)>) -> Object {
        let pairs = pairs.into_iter().map(|(key, value)| (Object::from(key.as_ref()), value));
        Object::Dict(Dict::new(DictKind::Plain, pairs, None))
    }

    /// An `OrderedDict` of tensors by name, as a module's `state_dict()` is.
    pub fn state_dict<K: AsRef<str>>(tensors: impl IntoIterator<Item = (K, Tensor)>) -> Object {
        let pairs = tensors.into_iter().map(|(key, tensor)| (Object::from(key.as_ref()), Object::Tensor(tensor)));
        Object::Dict(Dict::new(DictKind::Ordered, pairs, None))
    }

    /// What a dictionary has under a text.
    pub fn get(&self, key: &str) -> Option<&Object> {
        self.as_dict()?.get(key)
    }

    /// The elements of a list, tuple or set.
    pub fn as_items(&self) -> Option<&[Object]> {
        match self {
            Object::List(items) | Object::Tuple(items) | Object::Set(items) => Some(items),
            _ => None,
        }
    }

    /// The dictionary.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Object::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The tensor, be it a parameter or not.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Object::Tensor(tensor) | Object::Parameter(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Object::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Object::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, be it an integer or not.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Object::Float(value) => Some(*value),
            Object::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Object::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The tensors of a dictionary by their names, in order.
    ///
    /// # Errors
    /// `RuntimeError` where it is no dictionary, or one that holds something else, with the name.
    pub fn to_state_dict(&self) -> Result<Vec<(String, Tensor)>> {
        let dict = self.as_dict().ok_or_else(|| Error::runtime(format!("state_dict: a dictionary is expected, not {}", self.kind())))?;
        let pair = |(key, value): (&Object, &Object)| match (key.as_str(), value.as_tensor()) {
            (Some(key), Some(tensor)) => Ok((key.to_owned(), tensor.clone())),
            _ => Err(Error::runtime(format!("state_dict: tensors by name are expected; under {key} is {}", value.kind()))),
        };
        dict.iter().map(pair).collect()
    }

    /// What kind of object it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Object::None => "None",
            Object::Bool(_) => "a bool",
            Object::Int(_) | Object::BigInt(_) => "an int",
            Object::Float(_) => "a float",
            Object::Complex(_) => "a complex",
            Object::Str(_) => "a str",
            Object::Bytes(_) => "bytes",
            Object::List(_) => "a list",
            Object::Tuple(_) => "a tuple",
            Object::Set(_) => "a set",
            Object::Dict(_) => "a dict",
            Object::Tensor(_) => "a tensor",
            Object::Parameter(_) => "a parameter",
            Object::Size(_) => "a size",
            Object::DType(_) => "a dtype",
            Object::Device(_) => "a device",
        }
    }

    /// The objects in it, if it has any.
    pub(crate) fn items(&self) -> Option<&Items> {
        match self {
            Object::List(items) | Object::Tuple(items) | Object::Set(items) | Object::Dict(Dict { items, .. }) => Some(items),
            _ => None,
        }
    }

    fn items_mut(&mut self) -> Option<&mut Items> {
        match self {
            Object::List(items) | Object::Tuple(items) | Object::Set(items) | Object::Dict(Dict { items, .. }) => Some(items),
            _ => None,
        }
    }
}

impl Items {
    /// A number that tells objects apart while they live.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl Deref for Items {
    type Target = [Object];

    fn deref(&self) -> &[Object] {
        &self.0
    }
}

impl FromIterator<Object> for Items {
    fn from_iter<I: IntoIterator<Item = Object>>(items: I) -> Items {
        Items(Arc::new(items.into_iter().collect()))
    }
}

/// Frees what nobody else holds, without a call for each level.
impl Drop for Items {
    fn drop(&mut self) {
        let Some(items) = Arc::get_mut(&mut self.0) else {
            return;
        };
        let mut pending = std::mem::take(items);
        while let Some(mut object) = pending.pop() {
            if let Some(inner) = object.items_mut().and_then(|items| Arc::get_mut(&mut items.0)) {
                pending.append(inner);
            }
        }
    }
}

impl Dict {
    /// A dictionary of a kind. Attributes are what `_metadata` is to a state dict: names and values beside the pairs.
    pub fn new(kind: DictKind, pairs: impl IntoIterator<Item = (Object, Object)>, attributes: Option<Object>) -> Dict {
        let has = attributes.is_some();
        let items = pairs.into_iter().flat_map(|(key, value)| [key, value]).chain(attributes).collect();
        Dict { items, kind, attributes: has }
    }

    /// Its kind.
    pub fn kind(&self) -> DictKind {
        self.kind
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.items.len() / 2
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Object, &Object)> {
        self.items.chunks_exact(2).map(|pair| (&pair[0], &pair[1]))
    }

    /// What is under a text; the last, should a file have several.
    pub fn get(&self, key: &str) -> Option<&Object> {
        self.iter().filter(|(k, _)| k.as_str() == Some(key)).last().map(|(_, value)| value)
    }

    /// Names and values beside the pairs.
    pub fn attributes(&self) -> Option<&Object> {
        self.items.last().filter(|_| self.attributes)
    }
}

macro_rules! from {
    ($($type:ty => $make:expr),* $(,)?) => {
        $(impl From<$type> for Object {
            fn from(value: $type) -> Object {
                $make(value)
            }
        })*
    };
}

from! {
    bool => Object::Bool,
    i64 => Object::Int,
    i32 => |n| Object::Int(i64::from(n)),
    u32 => |n| Object::Int(i64::from(n)),
    f64 => Object::Float,
    f32 => |x| Object::Float(f64::from(x)),
    &str => |text: &str| Object::Str(text.into()),
    String => |text: String| Object::Str(text.into()),
    Tensor => Object::Tensor,
    &Tensor => |tensor: &Tensor| Object::Tensor(tensor.clone()),
    DType => Object::DType,
}

/// As Python would print it, tensors by dtype and shape. Containers within more than a few others are left out.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self, 8)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn show(f: &mut fmt::Formatter<'_>, object: &Object, depth: usize) -> fmt::Result {
    let list = |f: &mut fmt::Formatter<'_>, open: &str, items: &[Object], close: &str| {
        f.write_str(open)?;
        for (i, item) in items.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            show(f, item, depth - 1)?;
        }
        f.write_str(close)
    };
    match object {
        _ if depth == 0 => f.write_str("..."),
        Object::None => f.write_str("None"),
        Object::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
        Object::Int(value) => write!(f, "{value}"),
        Object::BigInt(digits) => write!(f, "<int of {} bytes>", digits.len()),
        Object::Float(value) => write!(f, "{value:?}"),
        Object::Complex(value) => write!(f, "({:?}{:+?}j)", value.re, value.im),
        Object::Str(text) => write!(f, "'{}'", text.escape_debug()),
        Object::Bytes(bytes) => write!(f, "<{} bytes>", bytes.len()),
        Object::List(items) => list(f, "[", items, "]"),
        Object::Tuple(items) => list(f, "(", items, if items.len() == 1 { ",)" } else { ")" }),
        Object::Set(items) => list(f, "{", items, "}"),
        Object::Dict(dict) => {
            f.write_str("{")?;
            for (i, (key, value)) in dict.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                show(f, key, depth - 1)?;
                f.write_str(": ")?;
                show(f, value, depth - 1)?;
            }
            f.write_str("}")
        }
        Object::Tensor(tensor) => write!(f, "tensor({}, {:?})", tensor.dtype(), tensor.shape()),
        Object::Parameter(tensor) => {
            write!(f, "Parameter({}, {:?})", tensor.dtype(), tensor.shape())
        }
        Object::Size(sizes) => write!(f, "torch.Size({sizes:?})"),
        Object::DType(dtype) => write!(f, "torch.{dtype}"),
        Object::Device(name) => write!(f, "device(type='{name}')"),
    }
}
