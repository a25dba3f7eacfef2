//! Python's pickle format, read and written as data.
//!
//! A pickle is a program for a small stack machine; what makes it dangerous is that two of its instructions call
//! functions that the file names. [`parse`] runs every instruction of protocols 0 to 5 *except* the calls: a call
//! stays in the result as a [`Made`] record that says what was to be called with what. Nothing is looked up or
//! executed, whatever the file says.
//!
//! The result is a [`Pickle`]: an arena of [`Node`]s that refer to each other by index. An object that occurs twice
//! is one node, cycles need no special care, and dropping a million nested lists is freeing one vector.
//!
//! Sources: the opcode table of CPython's `pickletools`, PEP 307 (protocol 2), PEP 3154 (4), PEP 574 (5).

mod read;
mod text;
mod write;

pub use read::{parse, parse_prefix};
pub use write::write;

/// The place of a [`Node`] in its [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// A value: a small one in place, anything else by reference to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of 64 bits; wider ones are [`Node::BigInt`].
    Int(i64),
    /// A double.
    Float(f64),
    /// Everything that has an identity or a length.
    Node(NodeId),
}

/// An object of a pickle.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// An integer wider than 64 bits: two's complement, little-endian, without superfluous bytes.
    BigInt(Box<[u8]>),
    /// A `str`.
    Str(Box<str>),
    /// A `bytes`; also a `str` of Python 2 that is no text.
    Bytes(Box<[u8]>),
    /// A `bytearray`.
    ByteArray(Box<[u8]>),
    /// A `list`.
    List(Vec<Value>),
    /// A `tuple`.
    Tuple(Box<[Value]>),
    /// A `dict`: pairs in the order of insertion, a repeated key repeated.
    Dict(Vec<(Value, Value)>),
    /// A `set`.
    Set(Vec<Value>),
    /// A `frozenset`.
    FrozenSet(Box<[Value]>),
    /// A class or function, named and not looked up.
    Global(Box<Global>),
    /// A reference to something kept outside of the pickle, by its identifier.
    Persistent(Value),
    /// What a call would give.
    Made(Box<Made>),
}

/// The name of a class or function. Python 2's `__builtin__` and `copy_reg` are given as `builtins` and `copyreg`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Global {
    /// The module's dotted name.
    pub module: String,
    /// The name within the module, dotted where it is nested.
    pub name: String,
}

impl std::fmt::Display for Global {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.module, self.name)
    }
}

/// How an object comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `callable(*args)`.
    Reduce,
    /// `callable.__new__(callable, *args, **kwargs)`.
    New,
}

/// An object that a call would make, and what is done to it afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Which call.
    pub call: Call,
    /// What would be called; mostly a [`Node::Global`].
    pub callable: Value,
    /// Its positional arguments: a tuple, unless the file lies.
    pub args: Value,
    /// Its keyword arguments, of protocol 4's extended form.
    pub kwargs: Option<Value>,
    /// Values appended to it.
    pub appended: Vec<Value>,
    /// Items set in it.
    pub items: Vec<(Value, Value)>,
    /// Its state, for `__setstate__` or `__dict__`.
    pub state: Option<Value>,
}

/// A parsed pickle: the root and the nodes below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pickle {
    nodes: Vec<Node>,
    root: Value,
}

impl Default for Pickle {
    fn default() -> Self {
        Self::new()
    }
}

impl Pickle {
    /// A pickle of `None`, to be filled with [`add`](Self::add) and [`set_root`](Self::set_root).
    ///
    /// ```
    /// use flambeau_io::pickle::{Node, Pickle, Value, parse, write};
    /// let mut pickle = Pickle::new();
    /// let key = pickle.str("epoch");
    /// let dict = pickle.add(Node::Dict(vec![(key, Value::Int(3))]));
    /// pickle.set_root(dict);
    /// let back = parse(&write(&pickle)?)?;
    /// assert_eq!(back.dict(back.root()).map(<[_]>::len), Some(1));
    /// # Ok::<(), flambeau_io::Error>(())
    /// ```
    pub fn new() -> Self {
        Self { nodes: Vec::new(), root: Value::None }
    }

    /// What the file holds.
    pub fn root(&self) -> Value {
        self.root
    }

    /// Says what the file holds.
    pub fn set_root(&mut self, root: Value) {
        self.root = root;
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How much it holds: nodes, their parts, the bytes of their texts.
    pub(crate) fn weight(&self) -> usize {
        let parts = |node: &Node| match node {
            Node::Str(text) => text.len(),
            Node::BigInt(bytes) | Node::Bytes(bytes) | Node::ByteArray(bytes) => bytes.len(),
            Node::List(items) | Node::Set(items) => items.len(),
            Node::Tuple(items) | Node::FrozenSet(items) => items.len(),
            Node::Dict(pairs) => 2 * pairs.len(),
            Node::Made(made) => made.appended.len() + 2 * made.items.len(),
            Node::Global(_) | Node::Persistent(_) => 0,
        };
        self.nodes.iter().map(|node| 1 + parts(node)).sum()
    }

    /// Adds a node.
    ///
    /// # Panics
    /// At 2^32 nodes, which [`parse`] refuses before.
    pub fn add(&mut self, node: Node) -> Value {
        let id = u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes");
        self.nodes.push(node);
        Value::Node(NodeId(id))
    }

    /// Adds a string.
    pub fn str(&mut self, text: &str) -> Value {
        self.add(Node::Str(text.into()))
    }

    /// Adds a tuple.
    pub fn tuple(&mut self, items: impl Into<Box<[Value]>>) -> Value {
        self.add(Node::Tuple(items.into()))
    }

    /// Adds the name of a class or function.
    pub fn global(&mut self, module: &str, name: &str) -> Value {
        self.add(Node::Global(Box::new(Global { module: module.into(), name: name.into() })))
    }

    /// Adds a call of `callable` with `args`.
    pub fn reduce(&mut self, callable: Value, args: impl Into<Box<[Value]>>) -> Value {
        let args = self.tuple(args);
        self.add(Node::Made(Box::new(Made::new(Call::Reduce, callable, args, None))))
    }

    /// All nodes, in the order in which they came to be.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The node of an id, to change it.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    /// The node of a value, unless it is a small one.
    pub fn get(&self, value: Value) -> Option<&Node> {
        match value {
            Value::Node(id) => Some(self.node(id)),
            _ => None,
        }
    }

    /// The value's text, if it is a string.
    pub fn as_str(&self, value: Value) -> Option<&str> {
        match self.get(value)? {
            Node::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a tuple.
    pub fn as_tuple(&self, value: Value) -> Option<&[Value]> {
        match self.get(value)? {
            Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn list(&self, value: Value) -> Option<&[Value]> {
        match self.get(value)? {
            Node::List(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs of a dictionary.
    pub fn dict(&self, value: Value) -> Option<&[(Value, Value)]> {
        match self.get(value)? {
            Node::Dict(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The name of a class or function.
    pub fn as_global(&self, value: Value) -> Option<&Global> {
        match self.get(value)? {
            Node::Global(global) => Some(global),
            _ => None,
        }
    }

    /// What kind of object a value is, for messages.
    pub fn kind(&self, value: Value) -> &'static str {
        match value {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an int",
            Value::Float(_) => "a float",
            Value::Node(id) => match self.node(id) {
                Node::BigInt(_) => "an int",
                Node::Str(_) => "a str",
                Node::Bytes(_) => "bytes",
                Node::ByteArray(_) => "a bytearray",
                Node::List(_) => "a list",
                Node::Tuple(_) => "a tuple",
                Node::Dict(_) => "a dict",
                Node::Set(_) => "a set",
                Node::FrozenSet(_) => "a frozenset",
                Node::Global(_) => "a class or function",
                Node::Persistent(_) => "a persistent reference",
                Node::Made(_) => "an object",
            },
        }
    }
}

impl Made {
    fn new(call: Call, callable: Value, args: Value, kwargs: Option<Value>) -> Self {
        Self { call, callable, args, kwargs, appended: Vec::new(), items: Vec::new(), state: None }
    }
}

/// The instructions, by the names that `pickletools` gives them.
mod op {
    macro_rules! opcodes {
        ($($name:ident = $code:literal),* $(,)?) => {
            $(pub const $name: u8 = $code;)*
        };
    }
    opcodes! {
        MARK = b'(', STOP = b'.', POP = b'0', POP_MARK = b'1', DUP = b'2', FLOAT = b'F', INT = b'I', BININT = b'J',
        BININT1 = b'K', LONG = b'L', BININT2 = b'M', NONE = b'N', PERSID = b'P', BINPERSID = b'Q', REDUCE = b'R',
        STRING = b'S', BINSTRING = b'T', SHORT_BINSTRING = b'U', UNICODE = b'V', BINUNICODE = b'X', APPEND = b'a',
        BUILD = b'b', GLOBAL = b'c', DICT = b'd', EMPTY_DICT = b'}', APPENDS = b'e', GET = b'g', BINGET = b'h',
        INST = b'i', LONG_BINGET = b'j', LIST = b'l', EMPTY_LIST = b']', OBJ = b'o', PUT = b'p', BINPUT = b'q',
        LONG_BINPUT = b'r', SETITEM = b's', TUPLE = b't', EMPTY_TUPLE = b')', SETITEMS = b'u', BINFLOAT = b'G',
        PROTO = 0x80, NEWOBJ = 0x81, EXT1 = 0x82, EXT2 = 0x83, EXT4 = 0x84, TUPLE1 = 0x85, TUPLE2 = 0x86,
        TUPLE3 = 0x87, NEWTRUE = 0x88, NEWFALSE = 0x89, LONG1 = 0x8a, LONG4 = 0x8b, BINBYTES = b'B',
        SHORT_BINBYTES = b'C', SHORT_BINUNICODE = 0x8c, BINUNICODE8 = 0x8d, BINBYTES8 = 0x8e, EMPTY_SET = 0x8f,
        ADDITEMS = 0x90, FROZENSET = 0x91, NEWOBJ_EX = 0x92, STACK_GLOBAL = 0x93, MEMOIZE = 0x94, FRAME = 0x95,
        BYTEARRAY8 = 0x96, NEXT_BUFFER = 0x97, READONLY_BUFFER = 0x98,
    }
}
