//! From a pickle to objects: the only calls that are honoured are those that tensors and plain containers need.
//!
//! The set of names is that of PyTorch's `weights_only` loader, without what flambeau has no tensors for (sparse,
//! quantised, distributed), and with a few builtins that cannot do harm (`bytes`, `frozenset`).

use std::collections::HashMap;
use std::sync::Arc;

use flambeau_base::DType;

use super::tensor::{self, StorageInfo, TensorInfo};
use crate::error::{Error, Result, unpickling, unsupported};
use crate::pickle::{Global, Made, Node, NodeId, Pickle, Value};

/// How deeply containers may lie within each other: as deep as Python itself would have written them.
pub const MAX_DEPTH: usize = 1000;

/// A kind of dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DictKind {
    /// `dict`.
    Plain,
    /// `collections.OrderedDict`, which can have attributes.
    Ordered,
    /// `collections.Counter`.
    Counter,
}

/// Makes objects of some world (Rust's, Python's) from what a file holds. [`build`] decides what is made.
///
/// An object that occurs twice in the file is made once, and its handle is cloned.
pub trait Build {
    /// A handle on an object.
    type Out: Clone;

    /// `None`.
    fn none(&mut self) -> Result<Self::Out>;
    /// A truth value.
    fn bool(&mut self, value: bool) -> Result<Self::Out>;
    /// An integer.
    fn int(&mut self, value: i64) -> Result<Self::Out>;
    /// An integer that is wider: two's complement, little-endian.
    fn big_int(&mut self, digits: &[u8]) -> Result<Self::Out>;
    /// A float.
    fn float(&mut self, value: f64) -> Result<Self::Out>;
    /// A complex number.
    fn complex(&mut self, re: f64, im: f64) -> Result<Self::Out>;
    /// A text.
    fn str(&mut self, value: &str) -> Result<Self::Out>;
    /// Bytes, which can be changed where they are a `bytearray`.
    fn bytes(&mut self, value: &[u8], mutable: bool) -> Result<Self::Out>;
    /// A tuple.
    fn tuple(&mut self, items: Vec<Self::Out>) -> Result<Self::Out>;
    /// A set, which can be changed unless it is a `frozenset`.
    fn set(&mut self, items: Vec<Self::Out>, mutable: bool) -> Result<Self::Out>;

    /// An empty list, filled by [`fill_list`](Self::fill_list) when its items are made. `None` where that cannot be;
    /// then a list that contains itself is an error.
    fn empty_list(&mut self) -> Result<Option<Self::Out>>;
    /// A list of these items: the one that [`empty_list`](Self::empty_list) gave, or a new one.
    fn fill_list(&mut self, empty: Option<Self::Out>, items: Vec<Self::Out>) -> Result<Self::Out>;
    /// As [`empty_list`](Self::empty_list).
    fn empty_dict(&mut self, kind: DictKind) -> Result<Option<Self::Out>>;
    /// As [`fill_list`](Self::fill_list). Attributes (as the `_metadata` of a state dict) come as one dictionary.
    fn fill_dict(
        &mut self,
        kind: DictKind,
        empty: Option<Self::Out>,
        pairs: Vec<(Self::Out, Self::Out)>,
        attributes: Option<Self::Out>,
    ) -> Result<Self::Out>;

    /// A `torch.Size`.
    fn size(&mut self, sizes: Vec<i64>) -> Result<Self::Out>;
    /// A dtype.
    fn dtype(&mut self, dtype: DType) -> Result<Self::Out>;
    /// A device, by its name, which may be one that is not there.
    fn device(&mut self, name: &str) -> Result<Self::Out>;
    /// A layout, such as `torch.strided`.
    fn layout(&mut self, name: &str) -> Result<Self::Out>;
    /// A tensor whose bounds have been checked against its storage's announced length.
    fn tensor(&mut self, info: &TensorInfo) -> Result<Self::Out>;
    /// A tensor as an `nn.Parameter`.
    fn parameter(&mut self, tensor: Self::Out, requires_grad: bool) -> Result<Self::Out>;
    /// A tensor with attributes that a program has given it, as one dictionary.
    fn attributes(&mut self, tensor: Self::Out, attributes: Self::Out) -> Result<Self::Out>;
    /// A storage by itself.
    fn storage(&mut self, info: &Arc<StorageInfo>) -> Result<Self::Out>;
}

/// Makes what a `.pt` file's pickle holds.
///
/// # Errors
/// `UnpicklingError` for a class or function that is not allowed (nothing has been run then), tensors outside of
/// their storages, calls with other arguments than PyTorch writes, containers deeper than [`MAX_DEPTH`].
pub fn build<B: Build>(pickle: &Pickle, builder: &mut B) -> Result<B::Out> {
    let mut walk = Walk {
        pickle,
        builder,
        states: HashMap::new(),
        storages: HashMap::new(),
        tasks: Vec::new(),
        made: Vec::new(),
        depth: 0,
        budget: 64 + 4 * pickle.weight(),
    };
    walk.tasks.push(Task::Visit(pickle.root()));
    while let Some(task) = walk.tasks.pop() {
        match task {
            Task::Visit(value) => walk.visit(value)?,
            Task::Finish(id, parts, what) => walk.finish(id, parts, what)?,
        }
    }
    walk.made.pop().ok_or_else(|| unpickling("the file holds nothing"))
}

/// The error for a class or function that a file may not name.
#[cold]
pub(super) fn forbidden(global: &Global) -> Error {
    unpickling(format_args!(
        "load: the file names '{global}', which is not among the classes and functions that loading with weights_only \
         allows; nothing of the file was run. Save plain containers of tensors (a state_dict) instead"
    ))
}

/// What to make of parts that have been made.
enum What<T> {
    List,
    Tuple,
    Set {
        mutable: bool,
    },
    /// So many parts are keys and values; one more may be attributes.
    Dict {
        kind: DictKind,
        pairs: usize,
        attributes: bool,
    },
    Parameter {
        requires_grad: bool,
        attributes: bool,
    },
    /// The tensor is made; the part is its attributes.
    Attributes(T),
}

enum State<T> {
    /// Its parts are being made; there is something to refer to if it could be made empty.
    Open(Option<T>),
    Made(T),
}

enum Task<T> {
    Visit(Value),
    Finish(NodeId, usize, What<T>),
}

struct Walk<'a, B: Build> {
    pickle: &'a Pickle,
    builder: &'a mut B,
    states: HashMap<NodeId, State<B::Out>>,
    storages: HashMap<String, Arc<StorageInfo>>,
    /// Last in, first out.
    tasks: Vec<Task<B::Out>>,
    /// What has been made and not yet used.
    made: Vec<B::Out>,
    depth: usize,
    budget: usize,
}

impl<B: Build> Walk<'_, B> {
    fn visit(&mut self, value: Value) -> Result<()> {
        let out = match value {
            Value::None => self.builder.none()?,
            Value::Bool(b) => self.builder.bool(b)?,
            Value::Int(n) => self.builder.int(n)?,
            Value::Float(x) => self.builder.float(x)?,
            Value::Node(id) => match self.states.get(&id) {
                Some(State::Made(out) | State::Open(Some(out))) => out.clone(),
                Some(State::Open(None)) => {
                    return Err(unsupported(format_args!("load: {} that contains itself", self.pickle.kind(value))));
                }
                None => return self.node(id),
            },
        };
        self.made.push(out);
        Ok(())
    }

    fn node(&mut self, id: NodeId) -> Result<()> {
        let pickle = self.pickle;
        let out = match pickle.node(id) {
            Node::BigInt(digits) => self.builder.big_int(digits)?,
            Node::Str(text) => self.builder.str(text)?,
            Node::Bytes(bytes) => self.builder.bytes(bytes, false)?,
            Node::ByteArray(bytes) => self.builder.bytes(bytes, true)?,
            Node::Global(global) => match tensor::dtype(pickle, Value::Node(id)) {
                Some(dtype) => self.builder.dtype(dtype)?,
                None => return Err(forbidden(global)),
            },
            Node::Persistent(reference) => {
                let info = self.storage(*reference)?;
                self.builder.storage(&info)?
            }
            Node::List(items) => {
                let empty = self.builder.empty_list()?;
                return self.open(id, empty, items.clone(), What::List);
            }
            Node::Tuple(items) => return self.open(id, None, items.to_vec(), What::Tuple),
            Node::Set(items) => {
                return self.open(id, None, items.clone(), What::Set { mutable: true });
            }
            Node::FrozenSet(items) => {
                return self.open(id, None, items.to_vec(), What::Set { mutable: false });
            }
            Node::Dict(pairs) => return self.dict(id, DictKind::Plain, pairs, None),
            Node::Made(made) => return self.call(id, made),
        };
        self.finished(id, out);
        Ok(())
    }

    fn finished(&mut self, id: NodeId, out: B::Out) {
        self.states.insert(id, State::Made(out.clone()));
        self.made.push(out);
    }

    /// Has the parts of a node made, in order, and then the node.
    fn open(&mut self, id: NodeId, empty: Option<B::Out>, parts: Vec<Value>, what: What<B::Out>) -> Result<()> {
        self.charge(parts.len())?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(unpickling(format_args!("load: containers lie within each other more than {MAX_DEPTH} deep")));
        }
        self.states.insert(id, State::Open(empty));
        self.tasks.push(Task::Finish(id, parts.len(), what));
        self.tasks.extend(parts.into_iter().rev().map(Task::Visit));
        Ok(())
    }

    fn dict(&mut self, id: NodeId, kind: DictKind, pairs: &[(Value, Value)], attributes: Option<Value>) -> Result<()> {
        let empty = self.builder.empty_dict(kind)?;
        let mut parts: Vec<Value> = pairs.iter().flat_map(|&(key, value)| [key, value]).collect();
        parts.extend(attributes);
        self.open(id, empty, parts, What::Dict { kind, pairs: pairs.len(), attributes: attributes.is_some() })
    }

    fn finish(&mut self, id: NodeId, parts: usize, what: What<B::Out>) -> Result<()> {
        self.depth -= 1;
        let mut parts = self.made.split_off(self.made.len() - parts);
        let empty = match self.states.remove(&id) {
            Some(State::Open(empty)) => empty,
            _ => None,
        };
        let out = match what {
            What::List => self.builder.fill_list(empty, parts)?,
            What::Tuple => self.builder.tuple(parts)?,
            What::Set { mutable } => self.builder.set(parts, mutable)?,
            What::Dict { kind, pairs, attributes } => {
                let attributes = if attributes { parts.pop() } else { None };
                let mut parts = parts.into_iter();
                let pairs = (0..pairs).filter_map(|_| Some((parts.next()?, parts.next()?))).collect();
                self.builder.fill_dict(kind, empty, pairs, attributes)?
            }
            What::Parameter { requires_grad, attributes } => {
                let attributes = if attributes { parts.pop() } else { None };
                let tensor = self.builder.parameter(parts.swap_remove(0), requires_grad)?;
                match attributes {
                    Some(attributes) => self.builder.attributes(tensor, attributes)?,
                    None => tensor,
                }
            }
            What::Attributes(tensor) => self.builder.attributes(tensor, parts.swap_remove(0))?,
        };
        self.finished(id, out);
        Ok(())
    }

    // ---- calls

    fn call(&mut self, id: NodeId, made: &Made) -> Result<()> {
        let pickle = self.pickle;
        let Some(global) = pickle.as_global(made.callable) else {
            return Err(unpickling(format_args!("load: the file calls {}", pickle.kind(made.callable))));
        };
        let Some(args) = pickle.as_tuple(made.args) else {
            return Err(unpickling(format_args!("load: '{global}' is called with {}", pickle.kind(made.args))));
        };
        let name = global.to_string();
        let wrong = || unpickling(format_args!("load: '{name}' is called with {} arguments of the wrong kinds", args.len()));
        let is_dict = matches!(name.as_str(), "collections.OrderedDict" | "collections.Counter");
        if made.kwargs.is_some() || !made.appended.is_empty() || (!is_dict && !made.items.is_empty()) {
            return Err(if is_allowed(&name) { wrong() } else { forbidden(global) });
        }
        if is_dict {
            return self.dict_call(id, &name, args, made);
        }
        if made.state.is_some() {
            return Err(if is_allowed(&name) { wrong() } else { forbidden(global) });
        }
        if let Some(out) = self.plain_call(&name, args)? {
            self.finished(id, out);
            return Ok(());
        }
        match (name.as_str(), args) {
            ("builtins.set", []) => self.open(id, None, Vec::new(), What::Set { mutable: true }),
            ("builtins.set", [items]) => {
                let items = sequence(pickle, *items).ok_or_else(wrong)?;
                self.open(id, None, items.to_vec(), What::Set { mutable: true })
            }
            ("builtins.frozenset", [items]) => {
                let items = sequence(pickle, *items).ok_or_else(wrong)?;
                self.open(id, None, items.to_vec(), What::Set { mutable: false })
            }
            ("torch._utils._rebuild_parameter", [tensor, Value::Bool(requires_grad), _hooks]) => {
                self.open(id, None, vec![*tensor], What::Parameter { requires_grad: *requires_grad, attributes: false })
            }
            ("torch._utils._rebuild_parameter_with_state", [tensor, Value::Bool(requires_grad), _hooks, state]) => {
                let what = What::Parameter { requires_grad: *requires_grad, attributes: true };
                self.open(id, None, vec![*tensor, attributes(pickle, *state).ok_or_else(wrong)?], what)
            }
            ("torch._tensor._rebuild_from_type_v2", [function, class, inner, state]) => {
                self.subclass(id, [*function, *class, *inner, *state]).unwrap_or_else(|| Err(wrong()))
            }
            _ if is_allowed(&name) => Err(wrong()),
            _ if global.module == "torch._utils" && global.name.starts_with("_rebuild_") => {
                Err(unsupported(format_args!("load: a tensor that only '{name}' can make again")))
            }
            _ => Err(forbidden(global)),
        }
    }

    /// `OrderedDict()`, `OrderedDict([(k, v), ...])`, `Counter({k: n, ...})`.
    fn dict_call(&mut self, id: NodeId, name: &str, args: &[Value], made: &Made) -> Result<()> {
        let pickle = self.pickle;
        let kind = if name == "collections.Counter" { DictKind::Counter } else { DictKind::Ordered };
        let wrong = || unpickling(format_args!("load: '{name}' is called with {} arguments of the wrong kinds", args.len()));
        let mut pairs = match args {
            [] => Vec::new(),
            [one] => match pickle.dict(*one) {
                Some(pairs) => pairs.to_vec(),
                None => {
                    let pair = |&item: &Value| match sequence(pickle, item)? {
                        [key, value] => Some((*key, *value)),
                        _ => None,
                    };
                    let items = sequence(pickle, *one).ok_or_else(wrong)?;
                    items.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(wrong)?
                }
            },
            _ => return Err(wrong()),
        };
        pairs.extend(&made.items);
        let attributes = match made.state {
            None => None,
            Some(state) => Some(attributes(pickle, state).ok_or_else(wrong)?),
        };
        self.dict(id, kind, &pairs, attributes)
    }

    /// Calls whose arguments are read here, not made. `None` where the call is not one of them, or is one and its
    /// arguments are not what they should be.
    fn plain_call(&mut self, name: &str, args: &[Value]) -> Result<Option<B::Out>> {
        let pickle = self.pickle;
        if let Some(info) = self.tensor(name, args)? {
            self.charge(2 * info.sizes.len())?;
            info.check()?;
            return self.builder.tensor(&info).map(Some);
        }
        let made = match (name, args) {
            ("torch.Size", [sizes]) => match tensor::ints(pickle, *sizes) {
                Some(sizes) => {
                    self.charge(sizes.len())?;
                    self.builder.size(sizes)?
                }
                None => return Ok(None),
            },
            ("torch.device", [kind]) => match pickle.as_str(*kind) {
                Some(kind) => self.builder.device(kind)?,
                None => return Ok(None),
            },
            ("torch.device", [kind, Value::Int(index)]) => match pickle.as_str(*kind) {
                Some(kind) => self.builder.device(&format!("{kind}:{index}"))?,
                None => return Ok(None),
            },
            ("torch.serialization._get_layout", [layout]) => match pickle.as_str(*layout) {
                Some(layout) => self.builder.layout(layout)?,
                None => return Ok(None),
            },
            ("builtins.complex", [re, im]) => match (number(*re), number(*im)) {
                (Some(re), Some(im)) => self.builder.complex(re, im)?,
                _ => return Ok(None),
            },
            ("builtins.bytes" | "builtins.bytearray", []) => self.builder.bytes(&[], name == "builtins.bytearray")?,
            ("_codecs.encode", [..]) => match latin1(pickle, args) {
                Some(bytes) => {
                    self.charge(bytes.len())?;
                    self.builder.bytes(&bytes, false)?
                }
                None => return Ok(None),
            },
            ("builtins.bytearray", [content, ..]) => match byte_array(pickle, *content, args) {
                Some(bytes) => {
                    self.charge(bytes.len())?;
                    self.builder.bytes(&bytes, true)?
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    fn tensor(&mut self, name: &str, args: &[Value]) -> Result<Option<TensorInfo>> {
        let pickle = self.pickle;
        let (info, metadata) = match (name, args) {
            ("torch._utils._rebuild_tensor", [storage, offset, sizes, strides]) => {
                (self.view(*storage, None, [*offset, *sizes, *strides, Value::Bool(false)])?, None)
            }
            ("torch._utils._rebuild_tensor_v2", [storage, offset, sizes, strides, requires_grad, _hooks, metadata @ ..]) => {
                (self.view(*storage, None, [*offset, *sizes, *strides, *requires_grad])?, metadata.first())
            }
            ("torch._utils._rebuild_tensor_v3", [storage, offset, sizes, strides, requires_grad, _hooks, dtype, metadata @ ..]) => {
                let Some(dtype) = tensor::dtype(pickle, *dtype) else {
                    return Err(match pickle.as_global(*dtype) {
                        Some(global) => unsupported(format_args!("load: a tensor of dtype {global}")),
                        None => unpickling("load: a tensor's dtype is not named"),
                    });
                };
                (self.view(*storage, Some(dtype), [*offset, *sizes, *strides, *requires_grad])?, metadata.first())
            }
            ("torch._utils._rebuild_meta_tensor_no_storage", [dtype, sizes, strides, Value::Bool(requires_grad)]) => {
                let parts = (tensor::dtype(pickle, *dtype), tensor::ints(pickle, *sizes), tensor::ints(pickle, *strides));
                let (Some(dtype), Some(sizes), Some(strides)) = parts else {
                    return Ok(None);
                };
                let requires_grad = *requires_grad;
                let info = TensorInfo { storage: None, dtype, offset: 0, sizes, strides, requires_grad, conj: false, neg: false };
                (Some(info), None)
            }
            _ => return Ok(None),
        };
        let Some(mut info) = info else {
            return Ok(None);
        };
        if let Some(metadata) = metadata {
            (info.conj, info.neg) = tensor::flags(pickle, *metadata)?;
        }
        Ok(Some(info))
    }

    fn view(&mut self, storage: Value, dtype: Option<DType>, [offset, sizes, strides, grad]: [Value; 4]) -> Result<Option<TensorInfo>> {
        let pickle = self.pickle;
        let Some(Node::Persistent(reference)) = pickle.get(storage) else {
            return Ok(None);
        };
        let storage = self.storage(*reference)?;
        let Some(dtype) = dtype.or(storage.dtype) else {
            return Err(unpickling("load: a tensor on an untyped storage does not say its dtype"));
        };
        let (Value::Int(offset), Some(sizes), Some(strides), Value::Bool(requires_grad)) =
            (offset, tensor::ints(pickle, sizes), tensor::ints(pickle, strides), grad)
        else {
            return Ok(None);
        };
        let storage = Some(storage);
        Ok(Some(TensorInfo { storage, dtype, offset, sizes, strides, requires_grad, conj: false, neg: false }))
    }

    fn storage(&mut self, reference: Value) -> Result<Arc<StorageInfo>> {
        let info = tensor::storage(self.pickle, reference)?;
        self.charge(info.key.len() + info.location.len())?;
        let known = self.storages.entry(info.key.clone()).or_insert_with(|| Arc::new(info.clone()));
        if known.nbytes != info.nbytes || known.dtype != info.dtype {
            return Err(unpickling(format_args!("load: the file describes storage '{}' in two ways", info.key)));
        }
        Ok(known.clone())
    }

    /// A tensor with attributes: the function and its arguments make the tensor, the state is a dictionary.
    fn subclass(&mut self, id: NodeId, [function, class, inner, state]: [Value; 4]) -> Option<Result<()>> {
        let pickle = self.pickle;
        let class = pickle.as_global(class)?;
        if class.to_string() != "torch.Tensor" {
            return Some(Err(forbidden(class)));
        }
        let function = pickle.as_global(function)?.to_string();
        let state = attributes(pickle, state)?;
        match self.plain_call(&function, pickle.as_tuple(inner)?) {
            Ok(tensor) => Some(self.open(id, None, vec![state], What::Attributes(tensor?))),
            Err(error) => Some(Err(error)),
        }
    }

    /// An argument may be shared by many calls, each of which copies it. No honest file does that often; what calls
    /// may read in all is bounded by a multiple of what the file holds.
    fn charge(&mut self, amount: usize) -> Result<()> {
        self.budget =
            self.budget.checked_sub(amount).ok_or_else(|| unpickling("load: the file uses the same large arguments over and over"))?;
        Ok(())
    }
}

/// The names that [`Walk::call`] knows, for telling a wrong call from a forbidden one.
fn is_allowed(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "_codecs.encode",
        "builtins.bytearray",
        "builtins.bytes",
        "builtins.complex",
        "builtins.frozenset",
        "builtins.set",
        "collections.Counter",
        "collections.OrderedDict",
        "torch.Size",
        "torch._tensor._rebuild_from_type_v2",
        "torch._utils._rebuild_meta_tensor_no_storage",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state",
        "torch._utils._rebuild_tensor",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_tensor_v3",
        "torch.device",
        "torch.serialization._get_layout",
    ];
    NAMES.contains(&name)
}

fn sequence(pickle: &Pickle, value: Value) -> Option<&[Value]> {
    pickle.list(value).or_else(|| pickle.as_tuple(value))
}

fn number(value: Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(x),
        Value::Int(n) => Some(n as f64),
        _ => None,
    }
}

/// A state is a dictionary, or a pair of one and what `__slots__` hold (which tensors have none of).
fn attributes(pickle: &Pickle, state: Value) -> Option<Value> {
    let state = match pickle.as_tuple(state) {
        Some([state, Value::None]) => *state,
        Some(_) => return None,
        None => state,
    };
    pickle.dict(state).is_some().then_some(state)
}

/// Protocol 2's way to write bytes.
fn latin1(pickle: &Pickle, args: &[Value]) -> Option<Vec<u8>> {
    let [text, encoding] = args else { return None };
    if !matches!(pickle.as_str(*encoding)?, "latin1" | "latin-1") {
        return None;
    }
    pickle.as_str(*text)?.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn byte_array(pickle: &Pickle, content: Value, args: &[Value]) -> Option<Vec<u8>> {
    match pickle.get(content)? {
        Node::Str(_) => latin1(pickle, args),
        Node::Bytes(bytes) if args.len() == 1 => Some(bytes.to_vec()),
        Node::Made(made) if args.len() == 1 && pickle.as_global(made.callable)?.to_string() == "_codecs.encode" => {
            latin1(pickle, pickle.as_tuple(made.args)?)
        }
        Node::Made(made) if args.len() == 1 && pickle.as_global(made.callable)?.to_string() == "builtins.bytes" => {
            pickle.as_tuple(made.args)?.is_empty().then(Vec::new)
        }
        _ => None,
    }
}
