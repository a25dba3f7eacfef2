//! [`Object`]s as `.pt` files.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use flambeau_base::{DType, Device, Error};
use flambeau_engine::{Storage, Tensor};

use super::build::{DictKind, MAX_DEPTH};
use super::names::storage_class;
use super::writer::PtWriter;
use crate::error::{Result, unsupported};
use crate::object::Object;
use crate::pickle::{self, Node, Pickle, Value};

/// Saves an object as a file that PyTorch's `load` (with `weights_only`) and [`load`](super::load) read. Storages are
/// written once, however many tensors look at them, and in full, even where a tensor looks at a part.
///
/// # Errors
/// `OSError` where the system refuses; `RuntimeError` for one storage seen in two dtypes and for containers nested
/// more deeply than [`MAX_DEPTH`]; `NotImplementedError` for tensors on other devices.
///
/// ```
/// use flambeau_io::{Object, pt};
/// # use flambeau_cpu as _;
/// let weights = flambeau_engine::Tensor::from_slice(&[0.5f32; 6], &[2, 3])?;
/// let mut file = Vec::new();
/// pt::write(&mut file, &Object::state_dict([("weight", weights)]))?;
/// let back = pt::read(std::io::Cursor::new(file))?;
/// assert_eq!(back.to_string(), "{'weight': tensor(float32, [2, 3])}");
/// # Ok::<(), flambeau_io::Error>(())
/// ```
pub fn save(path: impl AsRef<Path>, object: &Object) -> Result<()> {
    let path = path.as_ref();
    // What cannot be saved is found before the file is opened, so that the one that is there stays.
    let encoded = encode(object)?;
    PtWriter::create(path).and_then(|writer| encoded.put(writer)).map(drop).map_err(|e| e.context(path.display()))
}

/// Writes what [`save`] writes, to anything.
///
/// # Errors
/// As [`save`].
pub fn write<W: Write>(out: W, object: &Object) -> Result<()> {
    encode(object)?.put(PtWriter::new(out, "archive")).map(drop)
}

/// Saves tensors by name, as a module's `state_dict()` gives them.
///
/// # Errors
/// As [`save`].
pub fn save_state_dict<K: AsRef<str>>(path: impl AsRef<Path>, tensors: impl IntoIterator<Item = (K, Tensor)>) -> Result<()> {
    save(path, &Object::state_dict(tensors))
}

/// A pickle and the storages that it refers to.
struct Encoded {
    pickle: Vec<u8>,
    /// Storages in the order of their keys, with the bytes that count.
    storages: Vec<(Storage, usize)>,
}

impl Encoded {
    fn put<W: Write>(&self, mut writer: PtWriter<W>) -> Result<W> {
        writer.pickle(&self.pickle)?;
        for (key, (storage, nbytes)) in self.storages.iter().enumerate() {
            writer.tensor_storage(&key.to_string(), storage, *nbytes)?;
        }
        writer.finish()
    }
}

impl<W: Write> PtWriter<W> {
    /// Writes the first `nbytes` bytes of tensors' memory as a storage. Nobody may write to those tensors meanwhile.
    ///
    /// # Errors
    /// As [`record`](Self::record); `NotImplementedError` for memory of other devices; `RuntimeError` where the storage
    /// is smaller.
    pub fn tensor_storage(&mut self, key: &str, storage: &Storage, nbytes: usize) -> Result<()> {
        if !storage.device().same(Device::CPU) {
            return Err(unsupported(format_args!("save: a tensor on {}; move it to the CPU first", storage.device())));
        }
        if nbytes > storage.nbytes() {
            return Err(Error::runtime(format!("save: {nbytes} bytes of a storage that has {}", storage.nbytes())));
        }
        if nbytes == 0 {
            return self.storage(key, &[]);
        }
        // SAFETY: the storage is on the CPU and has at least so many bytes, and is borrowed until they are written. That
        // nobody writes to a tensor while an operation reads it is asked of the callers of every operation.
        self.storage(key, unsafe { std::slice::from_raw_parts(storage.ptr(), nbytes) })
    }
}

fn encode(object: &Object) -> Result<Encoded> {
    let mut encoder = Encoder::default();
    encoder.tasks.push(Task::Visit(object));
    while let Some(task) = encoder.tasks.pop() {
        match task {
            Task::Visit(object) => encoder.visit(object)?,
            Task::Finish(object) => encoder.finish(object),
        }
    }
    let root = encoder.done.pop().unwrap_or(Value::None);
    encoder.pickle.set_root(root);
    let storages = encoder.storages.into_iter().map(|(storage, nbytes, _)| (storage, nbytes)).collect();
    Ok(Encoded { pickle: pickle::write(&encoder.pickle)?, storages })
}

enum Task<'a> {
    Visit(&'a Object),
    Finish(&'a Object),
}

#[derive(Default)]
struct Encoder<'a> {
    pickle: Pickle,
    tasks: Vec<Task<'a>>,
    done: Vec<Value>,
    depth: usize,
    /// Containers and tensors by identity; both are addresses of live objects, and so differ.
    seen: HashMap<usize, Value>,
    texts: HashMap<&'a str, Value>,
    globals: HashMap<(&'static str, &'static str), Value>,
    storages: Vec<(Storage, usize, DType)>,
    keys: HashMap<usize, (usize, Value)>,
}

impl<'a> Encoder<'a> {
    fn visit(&mut self, object: &'a Object) -> Result<()> {
        if let Some(items) = object.items() {
            if let Some(&value) = self.seen.get(&items.id()) {
                self.done.push(value);
                return Ok(());
            }
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(Error::runtime(format!("save: containers lie within each other more than {MAX_DEPTH} deep")));
            }
            self.tasks.push(Task::Finish(object));
            self.tasks.extend(items.iter().rev().map(Task::Visit));
            return Ok(());
        }
        let value = match object {
            Object::Bool(value) => Value::Bool(*value),
            Object::Int(value) => Value::Int(*value),
            Object::Float(value) => Value::Float(*value),
            Object::BigInt(digits) => self.pickle.add(Node::BigInt(digits.as_ref().into())),
            Object::Complex(z) => self.call("builtins", "complex", [Value::Float(z.re), Value::Float(z.im)]),
            Object::Str(text) => self.text(text),
            Object::Bytes(bytes) => self.pickle.add(Node::Bytes(bytes.as_ref().into())),
            Object::Size(sizes) => {
                let sizes = self.ints(sizes.iter().copied());
                self.call("torch", "Size", [sizes])
            }
            Object::DType(dtype) => self.global("torch", dtype.name()),
            Object::Device(name) => {
                let name = self.text(name);
                self.call("torch", "device", [name])
            }
            Object::Tensor(tensor) => self.tensor(tensor)?,
            Object::Parameter(tensor) => self.parameter(tensor)?,
            _ => Value::None,
        };
        self.done.push(value);
        Ok(())
    }

    fn finish(&mut self, object: &Object) {
        let Some(items) = object.items() else { return };
        self.depth -= 1;
        let mut parts = self.done.split_off(self.done.len() - items.len());
        let value = match object {
            Object::List(_) => self.pickle.add(Node::List(parts)),
            Object::Tuple(_) => self.pickle.tuple(parts),
            Object::Set(_) => self.pickle.add(Node::Set(parts)),
            Object::Dict(dict) => {
                let attributes = if dict.attributes().is_some() { parts.pop() } else { None };
                let pairs = parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                self.dict(dict.kind(), pairs, attributes)
            }
            _ => Value::None,
        };
        self.seen.insert(items.id(), value);
        self.done.push(value);
    }

    fn dict(&mut self, kind: DictKind, pairs: Vec<(Value, Value)>, attributes: Option<Value>) -> Value {
        match kind {
            DictKind::Plain => self.pickle.add(Node::Dict(pairs)),
            DictKind::Counter => {
                let dict = self.pickle.add(Node::Dict(pairs));
                self.call("collections", "Counter", [dict])
            }
            DictKind::Ordered => {
                let value = self.call("collections", "OrderedDict", []);
                if let Value::Node(id) = value
                    && let Node::Made(made) = self.pickle.node_mut(id)
                {
                    made.items = pairs;
                    made.state = attributes;
                }
                value
            }
        }
    }

    // ---- tensors

    fn tensor(&mut self, tensor: &Tensor) -> Result<Value> {
        if let Some(&value) = self.seen.get(&tensor.id()) {
            return Ok(value);
        }
        if tensor.is_conj() || tensor.is_neg() {
            // A file holds values, not what they still have to go through.
            let plain = tensor.alias().resolved()?;
            let value = self.tensor(&plain)?;
            self.seen.remove(&plain.id());
            self.seen.insert(tensor.id(), value);
            return Ok(value);
        }
        let sizes = self.ints(tensor.shape().iter().map(|&n| n as i64));
        let strides = self.ints(tensor.strides().iter().map(|&n| n as i64));
        let grad = Value::Bool(tensor.requires_grad());
        let dtype = tensor.dtype();
        let value = if tensor.device().is_meta() {
            let dtype = self.global("torch", dtype.name());
            self.call("torch._utils", "_rebuild_meta_tensor_no_storage", [dtype, sizes, strides, grad])
        } else {
            let storage = self.storage(tensor)?;
            let offset = Value::Int(tensor.layout().offset() as i64);
            let hooks = self.call("collections", "OrderedDict", []);
            if storage_class(dtype).is_some() {
                self.call("torch._utils", "_rebuild_tensor_v2", [storage, offset, sizes, strides, grad, hooks])
            } else {
                let dtype = self.global("torch", dtype.name());
                self.call("torch._utils", "_rebuild_tensor_v3", [storage, offset, sizes, strides, grad, hooks, dtype])
            }
        };
        self.seen.insert(tensor.id(), value);
        Ok(value)
    }

    /// A parameter is made of a tensor without gradients.
    fn parameter(&mut self, tensor: &Tensor) -> Result<Value> {
        if let Some(&value) = self.seen.get(&tensor.id()) {
            return Ok(value);
        }
        let data = tensor.alias();
        let inner = self.tensor(&data)?;
        // The alias is gone after this, and its address may be another tensor's.
        self.seen.remove(&data.id());
        let hooks = self.call("collections", "OrderedDict", []);
        let value = self.call("torch._utils", "_rebuild_parameter", [inner, Value::Bool(tensor.requires_grad()), hooks]);
        self.seen.insert(tensor.id(), value);
        Ok(value)
    }

    /// A reference to a tensor's storage.
    fn storage(&mut self, tensor: &Tensor) -> Result<Value> {
        let (storage, dtype) = (tensor.storage(), tensor.dtype());
        if !tensor.device().same(Device::CPU) {
            return Err(unsupported(format_args!("save: a tensor on {}; move it to the CPU first", tensor.device())));
        }
        if let Some(&(key, value)) = self.keys.get(&storage.id()) {
            let (_, _, first) = &self.storages[key];
            if storage_class(*first) != storage_class(dtype) {
                return Err(Error::runtime(format!(
                    "save: two tensors look at the same storage as {first} and as {dtype}; save a clone of one of them"
                )));
            }
            return Ok(value);
        }
        let key = self.storages.len();
        let tag = self.text("storage");
        let (class, numel) = match storage_class(dtype) {
            Some(class) => (self.global("torch", class), storage.nbytes() / dtype.size()),
            None => (self.global("torch.storage", "UntypedStorage"), storage.nbytes()),
        };
        let nbytes = if storage_class(dtype).is_some() { numel * dtype.size() } else { numel };
        let name = self.pickle.str(&key.to_string());
        let cpu = self.text("cpu");
        let id = self.pickle.tuple([tag, class, name, cpu, Value::Int(numel as i64)]);
        let value = self.pickle.add(Node::Persistent(id));
        self.storages.push((storage.clone(), nbytes, dtype));
        self.keys.insert(storage.id(), (key, value));
        Ok(value)
    }

    // ---- pieces

    fn text(&mut self, text: &'a str) -> Value {
        let pickle = &mut self.pickle;
        *self.texts.entry(text).or_insert_with(|| pickle.str(text))
    }

    fn global(&mut self, module: &'static str, name: &'static str) -> Value {
        let pickle = &mut self.pickle;
        *self.globals.entry((module, name)).or_insert_with(|| pickle.global(module, name))
    }

    fn call<const N: usize>(&mut self, module: &'static str, name: &'static str, args: [Value; N]) -> Value {
        let callable = self.global(module, name);
        self.pickle.reduce(callable, args)
    }

    fn ints(&mut self, values: impl Iterator<Item = i64>) -> Value {
        self.pickle.tuple(values.map(Value::Int).collect::<Vec<_>>())
    }
}
