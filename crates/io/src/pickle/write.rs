//! Protocol 2, in the forms that PyTorch's own files have.

use std::collections::HashMap;

use super::{Call, Made, Node, NodeId, Pickle, Value, op, text};
use crate::error::{Result, unsupported};

/// Pickles of Python hold this many elements between two marks at most.
const BATCH: usize = 1000;

/// Writes a pickle of protocol 2 that needs only the instructions that PyTorch's `weights_only` loader knows, save
/// for integers above 2,040 bits and named arguments. A node that occurs again is written once.
///
/// # Errors
/// For keyword arguments, which protocol 2 cannot express, and for an object that is needed to make itself.
pub fn write(pickle: &Pickle) -> Result<Vec<u8>> {
    let mut writer = Writer { pickle, out: vec![op::PROTO, 2], memo: HashMap::new(), open: HashMap::new(), tasks: Vec::new() };
    writer.tasks.push(Task::Value(pickle.root()));
    while let Some(task) = writer.tasks.pop() {
        writer.run(task)?;
    }
    writer.out.push(op::STOP);
    Ok(writer.out)
}

/// What is memoised: a node, or a thing that the format needs and no node stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Node(NodeId),
    Global(&'static str, &'static str),
    Latin1,
}

enum Task {
    Value(Value),
    Op(u8),
    /// The parts of a node are on the stack, in so many places: turn them into it.
    Close(NodeId, usize, u8),
    /// The node is on the stack: fill it.
    Fill(NodeId),
}

struct Writer<'a> {
    pickle: &'a Pickle,
    out: Vec<u8>,
    memo: HashMap<Key, u32>,
    /// How often a node is being written right now, below itself.
    open: HashMap<NodeId, u32>,
    /// Last in, first out.
    tasks: Vec<Task>,
}

impl Writer<'_> {
    fn run(&mut self, task: Task) -> Result<()> {
        match task {
            Task::Op(op) => self.out.push(op),
            Task::Value(Value::Node(id)) => return self.node(id),
            Task::Value(small) => self.small(small),
            Task::Close(id, parts, op) => self.close(id, parts, op),
            Task::Fill(id) => self.fill(id),
        }
        Ok(())
    }

    fn small(&mut self, value: Value) {
        match value {
            Value::None => self.out.push(op::NONE),
            Value::Bool(true) => self.out.push(op::NEWTRUE),
            Value::Bool(false) => self.out.push(op::NEWFALSE),
            Value::Float(x) => {
                self.out.push(op::BINFLOAT);
                self.out.extend(x.to_be_bytes());
            }
            Value::Int(n) => self.int(n),
            Value::Node(_) => {}
        }
    }

    fn int(&mut self, n: i64) {
        if let Ok(n) = u8::try_from(n) {
            self.out.extend([op::BININT1, n]);
        } else if let Ok(n) = u16::try_from(n) {
            self.out.push(op::BININT2);
            self.out.extend(n.to_le_bytes());
        } else if let Ok(n) = i32::try_from(n) {
            self.out.push(op::BININT);
            self.out.extend(n.to_le_bytes());
        } else {
            self.long(&n.to_le_bytes());
        }
    }

    fn long(&mut self, digits: &[u8]) {
        let digits = text::shorten(digits);
        if let Ok(n) = u8::try_from(digits.len()) {
            self.out.extend([op::LONG1, n]);
        } else {
            self.out.push(op::LONG4);
            self.out.extend((digits.len() as u32).to_le_bytes());
        }
        self.out.extend(digits);
    }

    // ---- memo

    fn recall(&mut self, key: Key) -> bool {
        let Some(&index) = self.memo.get(&key) else {
            return false;
        };
        self.indexed(op::BINGET, op::LONG_BINGET, index);
        true
    }

    fn memoise(&mut self, key: Key) {
        let index = self.memo.len() as u32;
        self.memo.insert(key, index);
        self.indexed(op::BINPUT, op::LONG_BINPUT, index);
    }

    fn indexed(&mut self, short: u8, long: u8, index: u32) {
        if let Ok(index) = u8::try_from(index) {
            self.out.extend([short, index]);
        } else {
            self.out.push(long);
            self.out.extend(index.to_le_bytes());
        }
    }

    // ---- pieces

    fn text(&mut self, text: &str) -> Result<()> {
        let length = u32::try_from(text.len()).map_err(|_| unsupported("pickle: a string of more than 4 GiB"))?;
        self.out.push(op::BINUNICODE);
        self.out.extend(length.to_le_bytes());
        self.out.extend(text.as_bytes());
        Ok(())
    }

    fn named(&mut self, module: &str, name: &str) -> Result<()> {
        if module.contains('\n') || name.contains('\n') {
            return Err(unsupported("pickle: a name with a line break"));
        }
        self.out.push(op::GLOBAL);
        let module = match module {
            "builtins" => "__builtin__",
            "copyreg" => "copy_reg",
            _ => module,
        };
        self.out.extend([module.as_bytes(), b"\n", name.as_bytes(), b"\n"].concat());
        Ok(())
    }

    fn helper(&mut self, module: &'static str, name: &'static str) -> Result<()> {
        let key = Key::Global(module, name);
        if !self.recall(key) {
            self.named(module, name)?;
            self.memoise(key);
        }
        Ok(())
    }

    /// Protocol 2 has no bytes: they are the Latin-1 encoding of a string.
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.helper("_codecs", "encode")?;
        self.text(&bytes.iter().map(|&b| char::from(b)).collect::<String>())?;
        if !self.recall(Key::Latin1) {
            self.text("latin1")?;
            self.memoise(Key::Latin1);
        }
        self.out.extend([op::TUPLE2, op::REDUCE]);
        Ok(())
    }

    // ---- nodes

    fn node(&mut self, id: NodeId) -> Result<()> {
        if self.recall(Key::Node(id)) {
            return Ok(());
        }
        let pickle = self.pickle;
        match pickle.node(id) {
            Node::BigInt(digits) => self.long(digits),
            Node::Str(text) => {
                self.text(text)?;
                self.memoise(Key::Node(id));
            }
            Node::Bytes(bytes) => {
                self.bytes(bytes)?;
                self.memoise(Key::Node(id));
            }
            Node::ByteArray(bytes) => {
                self.helper("builtins", "bytearray")?;
                self.bytes(bytes)?;
                self.out.extend([op::TUPLE1, op::REDUCE]);
                self.memoise(Key::Node(id));
            }
            Node::Global(global) => {
                self.named(&global.module, &global.name)?;
                self.memoise(Key::Node(id));
            }
            Node::List(_) => self.begin(id, op::EMPTY_LIST),
            Node::Dict(_) => self.begin(id, op::EMPTY_DICT),
            Node::Tuple(items) if items.is_empty() => self.out.push(op::EMPTY_TUPLE),
            Node::Tuple(items) => self.tuple(id, items)?,
            Node::Set(items) => self.set(id, "set", items)?,
            Node::FrozenSet(items) => self.set(id, "frozenset", items)?,
            Node::Persistent(key) => self.tasks.extend([Task::Op(op::BINPERSID), Task::Value(*key)]),
            Node::Made(made) => self.made(id, made)?,
        }
        Ok(())
    }

    fn begin(&mut self, id: NodeId, empty: u8) {
        self.out.push(empty);
        self.memoise(Key::Node(id));
        self.tasks.push(Task::Fill(id));
    }

    /// A node whose parts come first may turn up below itself, through a list; there it is finished, and up here
    /// it is taken from the memo. If it turns up a third time, no list lies between.
    fn enter(&mut self, id: NodeId) -> Result<()> {
        let times = self.open.entry(id).or_default();
        *times += 1;
        if *times > 2 {
            return Err(unsupported("pickle: an object is needed to make itself"));
        }
        Ok(())
    }

    fn close(&mut self, id: NodeId, parts: usize, op: u8) {
        if let Some(times) = self.open.get_mut(&id) {
            *times -= 1;
            if *times == 0 {
                self.open.remove(&id);
            }
        }
        if self.memo.contains_key(&Key::Node(id)) {
            if op == op::TUPLE {
                self.out.push(op::POP_MARK);
            } else {
                self.out.extend(std::iter::repeat_n(op::POP, parts));
            }
            self.recall(Key::Node(id));
        } else {
            self.out.push(op);
            self.memoise(Key::Node(id));
        }
    }

    fn tuple(&mut self, id: NodeId, items: &[Value]) -> Result<()> {
        self.enter(id)?;
        let op = match items.len() {
            1 => op::TUPLE1,
            2 => op::TUPLE2,
            3 => op::TUPLE3,
            _ => {
                self.out.push(op::MARK);
                op::TUPLE
            }
        };
        self.tasks.push(Task::Close(id, items.len(), op));
        self.tasks.extend(items.iter().rev().map(|&item| Task::Value(item)));
        Ok(())
    }

    fn set(&mut self, id: NodeId, class: &'static str, items: &[Value]) -> Result<()> {
        self.enter(id)?;
        self.helper("builtins", class)?;
        self.out.push(op::EMPTY_LIST);
        self.tasks.extend([Task::Close(id, 2, op::REDUCE), Task::Op(op::TUPLE1)]);
        self.batches(items, op::APPEND, op::APPENDS, |&item| [Some(item), None]);
        Ok(())
    }

    fn made(&mut self, id: NodeId, made: &Made) -> Result<()> {
        if made.kwargs.is_some() {
            return Err(unsupported("pickle: protocol 2 has no keyword arguments"));
        }
        self.enter(id)?;
        let op = match made.call {
            Call::Reduce => op::REDUCE,
            Call::New => op::NEWOBJ,
        };
        self.tasks.extend([Task::Fill(id), Task::Close(id, 2, op), Task::Value(made.args), Task::Value(made.callable)]);
        Ok(())
    }

    fn fill(&mut self, id: NodeId) {
        let pickle = self.pickle;
        match pickle.node(id) {
            Node::List(items) => self.batches(items, op::APPEND, op::APPENDS, |&item| [Some(item), None]),
            Node::Dict(pairs) => self.batches(pairs, op::SETITEM, op::SETITEMS, |&(k, v)| [Some(k), Some(v)]),
            Node::Made(made) => {
                if let Some(state) = made.state {
                    self.tasks.extend([Task::Op(op::BUILD), Task::Value(state)]);
                }
                self.batches(&made.items, op::SETITEM, op::SETITEMS, |&(k, v)| [Some(k), Some(v)]);
                self.batches(&made.appended, op::APPEND, op::APPENDS, |&item| [Some(item), None]);
            }
            _ => {}
        }
    }

    fn batches<T>(&mut self, items: &[T], one: u8, many: u8, parts: impl Fn(&T) -> [Option<Value>; 2]) {
        for batch in items.chunks(BATCH).rev() {
            self.tasks.push(Task::Op(if batch.len() == 1 { one } else { many }));
            for item in batch.iter().rev() {
                self.tasks.extend(parts(item).into_iter().rev().flatten().map(Task::Value));
            }
            if batch.len() > 1 {
                self.tasks.push(Task::Op(op::MARK));
            }
        }
    }
}
