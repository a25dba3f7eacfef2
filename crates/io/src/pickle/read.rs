//! The stack machine.

use super::{Call, Global, Made, Node, NodeId, Pickle, Value, op, text};
use crate::error::{Error, Result, corrupt_pickle, unsupported};

/// Reads a pickle that fills `bytes`. What follows its end is ignored, as Python ignores it.
///
/// # Errors
/// Where the bytes are no pickle, are cut short, or announce more than they have: memory is bounded by a small
/// multiple of the input. Extension codes, out-of-band buffers and lone surrogates are refused by name.
///
/// ```
/// use flambeau_io::pickle::{Value, parse};
/// let pickle = parse(b"\x80\x02]q\x00(K\x01K\x02e.")?;
/// assert_eq!(pickle.list(pickle.root()), Some(&[Value::Int(1), Value::Int(2)][..]));
/// # Ok::<(), flambeau_io::Error>(())
/// ```
pub fn parse(bytes: &[u8]) -> Result<Pickle> {
    Ok(parse_prefix(bytes)?.0)
}

/// Reads the pickle at the start of `bytes`, and says how long it is.
///
/// # Errors
/// As [`parse`].
pub fn parse_prefix(bytes: &[u8]) -> Result<(Pickle, usize)> {
    let mut machine =
        Machine { input: bytes, at: 0, stack: Vec::new(), marks: Vec::new(), memo: Vec::new(), memoised: 0, pickle: Pickle::new() };
    loop {
        let op = machine.byte()?;
        if op == op::STOP {
            break;
        }
        machine.step(op)?;
    }
    let root = machine.pop()?;
    machine.pickle.set_root(root);
    Ok((machine.pickle, machine.at))
}

struct Machine<'a> {
    input: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    /// The heights of the stack at the marks that are open.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
    memoised: usize,
    pickle: Pickle,
}

impl<'a> Machine<'a> {
    fn step(&mut self, op: u8) -> Result<()> {
        let value = match op {
            op::MARK => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            op::POP => return self.pop_or_mark(),
            op::POP_MARK => return self.since_mark().map(drop),
            op::DUP => self.top()?,
            op::PROTO => return self.protocol(),
            op::FRAME => return self.take(8).map(drop),
            op::NONE => Value::None,
            op::NEWTRUE => Value::Bool(true),
            op::NEWFALSE => Value::Bool(false),
            op::BININT | op::BININT1 | op::BININT2 | op::BINFLOAT => self.number(op)?,
            op::LONG1 | op::LONG4 => self.long(op)?,
            op::INT | op::LONG | op::FLOAT | op::STRING | op::UNICODE => self.literal(op)?,
            op::BINUNICODE | op::SHORT_BINUNICODE | op::BINUNICODE8 => self.unicode(op)?,
            op::BINSTRING | op::SHORT_BINSTRING => self.string(op)?,
            op::BINBYTES | op::SHORT_BINBYTES | op::BINBYTES8 | op::BYTEARRAY8 => self.bytes(op)?,
            op::EMPTY_LIST => self.pickle.add(Node::List(Vec::new())),
            op::EMPTY_DICT => self.pickle.add(Node::Dict(Vec::new())),
            op::EMPTY_SET => self.pickle.add(Node::Set(Vec::new())),
            op::EMPTY_TUPLE | op::TUPLE1 | op::TUPLE2 | op::TUPLE3 | op::TUPLE => self.tuple(op)?,
            op::LIST | op::DICT | op::FROZENSET => self.collection(op)?,
            op::APPEND | op::APPENDS | op::ADDITEMS => return self.append(op),
            op::SETITEM | op::SETITEMS => return self.set_items(op),
            op::GLOBAL | op::STACK_GLOBAL => self.global(op)?,
            op::REDUCE | op::NEWOBJ | op::NEWOBJ_EX | op::INST | op::OBJ => self.call(op)?,
            op::BUILD => return self.build(),
            op::PERSID => {
                let line = self.line()?;
                let id = self.pickle.str(line);
                self.pickle.add(Node::Persistent(id))
            }
            op::BINPERSID => {
                let id = self.pop()?;
                self.pickle.add(Node::Persistent(id))
            }
            op::GET | op::BINGET | op::LONG_BINGET => self.recall(op)?,
            op::PUT | op::BINPUT | op::LONG_BINPUT | op::MEMOIZE => return self.memoise(op),
            op::EXT1 | op::EXT2 | op::EXT4 => {
                return Err(unsupported("pickle: extension codes stand for a registry that only their writer has"));
            }
            op::NEXT_BUFFER | op::READONLY_BUFFER => {
                return Err(unsupported("pickle: the data is in buffers outside of the file"));
            }
            _ => return Err(self.corrupt(format_args!("0x{op:02x} is no instruction"))),
        };
        self.stack.push(value);
        Ok(())
    }

    #[cold]
    fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        corrupt_pickle(self.at, what)
    }

    // ---- input

    fn byte(&mut self) -> Result<u8> {
        self.take(1).map(|b| b[0])
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let rest = &self.input[self.at..];
        if n > rest.len() {
            return Err(self.corrupt(format_args!("{n} bytes are announced, {} are left: the file is cut short", rest.len())));
        }
        self.at += n;
        Ok(&rest[..n])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// A length of `width` bytes, then as many bytes.
    fn counted(&mut self, width: usize) -> Result<&'a [u8]> {
        let mut length = [0; 8];
        length[..width].copy_from_slice(self.take(width)?);
        let length = u64::from_le_bytes(length);
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn raw_line(&mut self) -> Result<&'a [u8]> {
        let rest = &self.input[self.at..];
        let Some(end) = rest.iter().position(|&b| b == b'\n') else {
            return Err(self.corrupt("a line has no end: the file is cut short"));
        };
        self.at += end + 1;
        Ok(rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))
    }

    fn line(&mut self) -> Result<&'a str> {
        let line = self.raw_line()?;
        std::str::from_utf8(line).map_err(|_| self.corrupt("a line is not UTF-8"))
    }

    // ---- stack

    fn pop(&mut self) -> Result<Value> {
        if self.marks.last().is_some_and(|&mark| mark == self.stack.len()) {
            return Err(self.corrupt("an operand is missing above a mark"));
        }
        match self.stack.pop() {
            Some(value) => Ok(value),
            None => Err(self.corrupt("an operand is missing: the stack is empty")),
        }
    }

    fn top(&self) -> Result<Value> {
        if self.marks.last().is_some_and(|&mark| mark == self.stack.len()) {
            return Err(self.corrupt("an operand is missing above a mark"));
        }
        self.stack.last().copied().ok_or_else(|| self.corrupt("an operand is missing: the stack is empty"))
    }

    fn pop_or_mark(&mut self) -> Result<()> {
        if self.marks.last().is_some_and(|&mark| mark == self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(drop)
    }

    /// What lies above the last mark, which is closed.
    fn since_mark(&mut self) -> Result<Vec<Value>> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(self.corrupt("there is no mark")),
        }
    }

    fn pairs_since_mark(&mut self) -> Result<Vec<(Value, Value)>> {
        let flat = self.since_mark()?;
        if flat.len() % 2 != 0 {
            return Err(self.corrupt("a dictionary has a key without a value"));
        }
        Ok(flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    fn top_node(&mut self) -> Result<NodeId> {
        match self.top()? {
            Value::Node(id) => Ok(id),
            other => Err(self.corrupt(format_args!("{} cannot be filled", self.pickle.kind(other)))),
        }
    }

    // ---- values

    fn protocol(&mut self) -> Result<()> {
        match self.byte()? {
            0..=5 => Ok(()),
            version => Err(unsupported(format_args!("pickle: protocol {version} is unknown; 0 to 5 can be read"))),
        }
    }

    fn number(&mut self, op: u8) -> Result<Value> {
        Ok(match op {
            op::BININT => Value::Int(i32::from_le_bytes(self.array()?).into()),
            op::BININT1 => Value::Int(self.byte()?.into()),
            op::BININT2 => Value::Int(u16::from_le_bytes(self.array()?).into()),
            _ => Value::Float(f64::from_be_bytes(self.array()?)),
        })
    }

    fn long(&mut self, op: u8) -> Result<Value> {
        let digits = self.counted(if op == op::LONG1 { 1 } else { 4 })?;
        Ok(text::integer(&mut self.pickle, digits))
    }

    fn literal(&mut self, op: u8) -> Result<Value> {
        let line = self.raw_line()?;
        let value = match op {
            op::INT => text::int(line),
            op::LONG => text::long(&mut self.pickle, line),
            op::FLOAT => text::float(line),
            op::STRING => text::string(line).map(|bytes| text::str_or_bytes(&mut self.pickle, bytes)),
            _ => text::unicode(line).map(|text| self.pickle.str(&text)),
        };
        value.ok_or_else(|| self.corrupt("a literal cannot be read"))
    }

    fn unicode(&mut self, op: u8) -> Result<Value> {
        let width = match op {
            op::SHORT_BINUNICODE => 1,
            op::BINUNICODE => 4,
            _ => 8,
        };
        let bytes = self.counted(width)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(self.pickle.str(text)),
            Err(_) => Err(self.corrupt("a string is not UTF-8 (lone surrogates cannot be held)")),
        }
    }

    fn string(&mut self, op: u8) -> Result<Value> {
        let bytes = self.counted(if op == op::SHORT_BINSTRING { 1 } else { 4 })?;
        Ok(text::str_or_bytes(&mut self.pickle, bytes.to_vec()))
    }

    fn bytes(&mut self, op: u8) -> Result<Value> {
        let width = match op {
            op::SHORT_BINBYTES => 1,
            op::BINBYTES => 4,
            _ => 8,
        };
        let bytes = self.counted(width)?.into();
        Ok(self.pickle.add(if op == op::BYTEARRAY8 { Node::ByteArray(bytes) } else { Node::Bytes(bytes) }))
    }

    fn tuple(&mut self, op: u8) -> Result<Value> {
        let items = match op {
            op::TUPLE => self.since_mark()?,
            op::EMPTY_TUPLE => Vec::new(),
            _ => {
                let mut items = Vec::with_capacity(3);
                for _ in op::TUPLE1..=op {
                    items.push(self.pop()?);
                }
                items.reverse();
                items
            }
        };
        Ok(self.pickle.tuple(items))
    }

    fn collection(&mut self, op: u8) -> Result<Value> {
        let node = match op {
            op::LIST => Node::List(self.since_mark()?),
            op::DICT => Node::Dict(self.pairs_since_mark()?),
            _ => Node::FrozenSet(self.since_mark()?.into()),
        };
        Ok(self.pickle.add(node))
    }

    fn append(&mut self, op: u8) -> Result<()> {
        let values = if op == op::APPEND { vec![self.pop()?] } else { self.since_mark()? };
        let target = self.top_node()?;
        match self.pickle.node_mut(target) {
            Node::List(items) if op != op::ADDITEMS => items.extend(values),
            Node::Set(items) if op == op::ADDITEMS => items.extend(values),
            Node::Made(made) => made.appended.extend(values),
            _ => {
                return Err(self.corrupt(format_args!("{} cannot be appended to", self.pickle.kind(Value::Node(target)))));
            }
        }
        Ok(())
    }

    fn set_items(&mut self, op: u8) -> Result<()> {
        let new = if op == op::SETITEM {
            let value = self.pop()?;
            vec![(self.pop()?, value)]
        } else {
            self.pairs_since_mark()?
        };
        let target = self.top_node()?;
        match self.pickle.node_mut(target) {
            Node::Dict(pairs) => pairs.extend(new),
            Node::Made(made) => made.items.extend(new),
            _ => {
                return Err(self.corrupt(format_args!("{} has no items to set", self.pickle.kind(Value::Node(target)))));
            }
        }
        Ok(())
    }

    // ---- names and calls

    fn global(&mut self, op: u8) -> Result<Value> {
        let (module, name) = if op == op::GLOBAL {
            (self.line()?.to_owned(), self.line()?.to_owned())
        } else {
            let (name, module) = (self.pop()?, self.pop()?);
            match (self.pickle.as_str(module), self.pickle.as_str(name)) {
                (Some(module), Some(name)) => (module.to_owned(), name.to_owned()),
                _ => {
                    return Err(self.corrupt("a class or function is named by something other than two strings"));
                }
            }
        };
        let module = match module.as_str() {
            "__builtin__" => "builtins".into(),
            "copy_reg" => "copyreg".into(),
            _ => module,
        };
        Ok(self.pickle.add(Node::Global(Box::new(Global { module, name }))))
    }

    fn call(&mut self, op: u8) -> Result<Value> {
        let (call, callable, args, kwargs) = match op {
            op::REDUCE | op::NEWOBJ => {
                let args = self.pop()?;
                (if op == op::REDUCE { Call::Reduce } else { Call::New }, self.pop()?, args, None)
            }
            op::NEWOBJ_EX => {
                let (kwargs, args) = (self.pop()?, self.pop()?);
                (Call::New, self.pop()?, args, Some(kwargs))
            }
            op::INST => {
                let class = self.global(op::GLOBAL)?;
                let args = self.since_mark()?;
                (Call::Reduce, class, self.pickle.tuple(args), None)
            }
            _ => {
                let mut all = self.since_mark()?;
                if all.is_empty() {
                    return Err(self.corrupt("an object has no class"));
                }
                let class = all.remove(0);
                (Call::Reduce, class, self.pickle.tuple(all), None)
            }
        };
        Ok(self.pickle.add(Node::Made(Box::new(Made::new(call, callable, args, kwargs)))))
    }

    fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let target = self.top_node()?;
        match self.pickle.node_mut(target) {
            Node::Made(made) if made.state.is_none() => made.state = Some(state),
            Node::Made(_) => return Err(self.corrupt("an object is given its state twice")),
            _ => {
                return Err(self.corrupt(format_args!("{} takes no state", self.pickle.kind(Value::Node(target)))));
            }
        }
        Ok(())
    }

    // ---- memo

    fn memo_index(&mut self, op: u8) -> Result<usize> {
        match op {
            op::BINGET | op::BINPUT => Ok(self.byte()?.into()),
            op::LONG_BINGET | op::LONG_BINPUT => Ok(u32::from_le_bytes(self.array()?) as usize),
            op::MEMOIZE => Ok(self.memoised),
            _ => self.line()?.parse().map_err(|_| self.corrupt("the memo's index is no number")),
        }
    }

    fn recall(&mut self, op: u8) -> Result<Value> {
        let index = self.memo_index(op)?;
        match self.memo.get(index) {
            Some(&Some(value)) => Ok(value),
            _ => Err(self.corrupt(format_args!("nothing was memoised as {index}"))),
        }
    }

    fn memoise(&mut self, op: u8) -> Result<()> {
        let index = self.memo_index(op)?;
        // Writers number what they memoise from 0, and each object takes a byte at least.
        if index > self.at {
            return Err(self.corrupt(format_args!("memo index {index} is beyond what a file of this length can hold")));
        }
        let value = self.top()?;
        if index >= self.memo.len() {
            self.memo.resize(index + 1, None);
        }
        self.memoised += usize::from(self.memo[index].is_none());
        self.memo[index] = Some(value);
        Ok(())
    }
}
