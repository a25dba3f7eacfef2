//! Signatures in PyTorch's syntax.
//!
//! `name.overload(Type[size]? name=default, *, ...) -> Type name, ...`, where `Tensor(a!)` is written to
//! and `Tensor(a)` is a view.

use flambeau_base::{Error, Result};

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// A sequence of tensors.
    Tensors,
    /// A number.
    Scalar,
    /// A sequence of numbers.
    Scalars,
    /// An integer.
    Int,
    /// A sequence of integers; a single one stands for a sequence of the stated size.
    Ints,
    /// A float.
    Float,
    /// A sequence of floats.
    Floats,
    /// A truth value.
    Bool,
    /// A string.
    Str,
    /// A dtype.
    DType,
    /// A device.
    Device,
    /// A memory format.
    MemoryFormat,
    /// A memory layout; only `strided` is there.
    Layout,
    /// A random number generator.
    Generator,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether None may be given.
    pub optional: bool,
    /// For sequences: the size that a single value stands for.
    pub size: Option<usize>,
    /// The default, as written.
    pub default: Option<&'static str>,
    /// Whether it is given by name only.
    pub keyword_only: bool,
    /// Whether it is written to.
    pub written: bool,
}

/// A signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The name.
    pub name: &'static str,
    /// Which of several signatures of that name.
    pub overload: &'static str,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Types of the results, as written.
    pub returns: Vec<&'static str>,
    /// Names of the results, where they have some.
    pub return_names: Vec<&'static str>,
}

impl Schema {
    /// Reads a signature. `ValueError` says what is wrong with it.
    ///
    /// ```
    /// use flambeau_engine::ops::schema::{Kind, Schema};
    /// let s = Schema::parse("sum.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor").unwrap();
    /// assert_eq!((s.name, s.overload), ("sum", "dim"));
    /// assert_eq!(s.params[1].kind, Kind::Ints);
    /// assert_eq!(s.params[2].default, Some("False"));
    /// ```
    pub fn parse(text: &'static str) -> Result<Schema> {
        let wrong = |why: &str| Error::value(format!("schema '{text}': {why}"));
        let (head, rest) = text.split_once('(').ok_or_else(|| wrong("no '('"))?;
        let (inside, results) = rest.rsplit_once(") ->").ok_or_else(|| wrong("no ') ->'"))?;
        let (name, overload) = head.split_once('.').unwrap_or((head, ""));
        let mut params = Vec::new();
        let mut keyword_only = false;
        for piece in split_top(inside) {
            match piece {
                "" => {}
                "*" => keyword_only = true,
                piece => params.push(parse_param(piece, keyword_only).map_err(|e| wrong(&e))?),
            }
        }
        let (mut returns, mut return_names) = (Vec::new(), Vec::new());
        let results = results.trim();
        let results = results.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(results);
        for piece in split_top(results).into_iter().filter(|p| !p.is_empty()) {
            let (kind, name) = piece.rsplit_once(' ').unwrap_or((piece, ""));
            returns.push(kind);
            if !name.is_empty() {
                return_names.push(name);
            }
        }
        Ok(Schema { name, overload, params, returns, return_names })
    }

    /// Whether the result is a view of an argument.
    pub fn is_view(&self) -> bool {
        self.returns.iter().any(|r| r.contains("(a)"))
    }
}

/// Pieces between commas that stand outside brackets.
fn split_top(text: &'static str) -> Vec<&'static str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out
}

fn parse_param(piece: &'static str, keyword_only: bool) -> Result<Param, String> {
    let (left, default) = match piece.split_once('=') {
        Some((left, default)) => (left.trim(), Some(default.trim())),
        None => (piece, None),
    };
    let (ty, name) = left.rsplit_once(' ').ok_or_else(|| format!("parameter '{piece}' has no name"))?;
    let ty = ty.trim();
    let (ty, optional) = match ty.strip_suffix('?') {
        Some(t) => (t, true),
        None => (ty, false),
    };
    let written = ty.contains("!)");
    let bare = match (ty.find('('), ty.find(')')) {
        (Some(a), Some(b)) => format!("{}{}", &ty[..a], &ty[b + 1..]),
        _ => ty.to_string(),
    };
    let (element, size) = match bare.split_once('[') {
        Some((e, n)) => (e.trim_end_matches('?').to_string(), Some(n.trim_end_matches(']').parse::<usize>().ok())),
        None => (bare, None),
    };
    let kind = match (element.as_str(), size.is_some()) {
        ("Tensor", false) => Kind::Tensor,
        ("Tensor", true) => Kind::Tensors,
        ("Scalar", false) => Kind::Scalar,
        ("Scalar", true) => Kind::Scalars,
        ("int" | "SymInt", false) => Kind::Int,
        ("int" | "SymInt", true) => Kind::Ints,
        ("float", false) => Kind::Float,
        ("float", true) => Kind::Floats,
        ("bool", false) => Kind::Bool,
        ("str", false) => Kind::Str,
        ("ScalarType", false) => Kind::DType,
        ("Device", false) => Kind::Device,
        ("MemoryFormat", false) => Kind::MemoryFormat,
        ("Layout", false) => Kind::Layout,
        ("Generator", false) => Kind::Generator,
        (other, _) => return Err(format!("unknown type '{other}' in '{piece}'")),
    };
    Ok(Param { name, kind, optional, size: size.flatten(), default, keyword_only, written })
}
