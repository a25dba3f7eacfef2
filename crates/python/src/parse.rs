//! Calls parsed after the rows of the operation table.
//!
//! One parser serves every operation: a call's arguments are put in the places of a row's parameters
//! (by position, by name or by one of NumPy's names), converted to the parameters' types, and missing
//! ones filled with defaults, which were parsed when the package was imported.

use crate::convert::{Converted, convert, int_of};
use crate::error::*;
use crate::tensor_type::type_name;
use flambeau_engine::ops::schema::{Kind, Param};
use flambeau_engine::ops::{Args, Row, Value};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::mem::{ManuallyDrop, forget};

/// A row made ready for calls.
pub struct Form {
    /// The row.
    pub row: &'static Row,
    /// The row's name.
    pub name: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    defaults: Vec<Option<Value>>,
    required: usize,
    max_positional: usize,
    /// The parameter that takes all further positional integers: `x.view(2, 3)`.
    spread: Option<usize>,
    /// By parameter: whether a number may stand for a tensor.
    numbers: SmallVec<[bool; 8]>,
    /// Whether it makes tensors of nothing, and so takes `layout` and `pin_memory`.
    factory: bool,
    fresh: bool,
    /// The parameter `requires_grad`.
    pub requires_grad: Option<usize>,
}

/// A call's positional and named arguments, as the vectorcall protocol gives them.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Positional ones, then named ones.
    pub all: &'a [Ptr],
    /// How many are positional.
    pub positional: usize,
    /// A tuple of the others' names, or null.
    pub names: Ptr,
}

impl Given<'_> {
    /// How many are named.
    fn named(&self) -> usize {
        self.all.len() - self.positional
    }
}

/// Arguments of a row, some of which may be borrowed: see NOTE [borrowed handles].
pub struct Parsed {
    args: ManuallyDrop<Args>,
    borrowed: u64,
    /// The argument `out=`.
    pub out: Option<Ptr>,
}

impl Parsed {
    /// No arguments.
    #[inline]
    pub fn new() -> Parsed {
        Parsed { args: ManuallyDrop::new(Args { name: "", values: SmallVec::new() }), borrowed: 0, out: None }
    }

    /// Forgets the arguments.
    #[inline]
    pub fn clear(&mut self) {
        let borrowed = std::mem::take(&mut self.borrowed);
        for (i, value) in self.args.values.drain(..).enumerate() {
            if borrowed >> i & 1 != 0 {
                forget(value);
            }
        }
        self.out = None;
    }

    /// The arguments.
    #[inline]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// The arguments, none of which may be replaced: see NOTE [borrowed handles].
    pub fn args_mut(&mut self) -> &mut Args {
        &mut self.args
    }

    /// The arguments, all of them with handles of their own, so that they may be replaced.
    pub fn owned(&mut self) -> &mut Args {
        for (i, value) in self.args.values.iter_mut().enumerate() {
            if self.borrowed >> i & 1 != 0 {
                let copy = value.clone();
                forget(std::mem::replace(value, copy));
            }
        }
        self.borrowed = 0;
        &mut self.args
    }
}

impl Drop for Parsed {
    fn drop(&mut self) {
        self.clear();
        // SAFETY: not used again; no value is left in it.
        unsafe { ManuallyDrop::drop(&mut self.args) };
    }
}

/// Why a row does not fit a call.
pub enum Misfit {
    /// More positional arguments than there are places.
    TooMany,
    /// A required parameter that nothing was given for.
    Missing(usize),
    /// A name that the row does not have.
    Unknown(String),
    /// A parameter that got two arguments.
    Twice(usize),
    /// An argument of another type than the parameter's, and where it stood.
    Type(usize, Option<usize>, Ptr),
    /// `out=` that is not a tensor or a tuple of tensors.
    Out(Ptr),
}

/// Other names of a parameter: PyTorch's in functions, and NumPy's.
fn is_alias(param: &str, given: &str) -> bool {
    match param {
        "self" => matches!(given, "input" | "x" | "a" | "x1"),
        "input" => matches!(given, "x" | "a" | "x1"),
        "other" => given == "x2",
        "dim" => given == "axis",
        "dims" => given == "axes",
        "keepdim" => given == "keepdims",
        _ => false,
    }
}

impl Form {
    /// Makes a row ready.
    pub fn new(row: &'static Row) -> Form {
        let params = row.params();
        let positional: Vec<usize> = (0..params.len()).filter(|&i| !params[i].keyword_only).collect();
        let defaults: Vec<Option<Value>> = params.iter().map(Param::default_value).collect();
        let tensors = params.iter().filter(|p| p.kind == Kind::Tensor).count();
        let is_self = |p: &Param| p.name == "self" && p.kind == Kind::Tensor;
        let after_self: Vec<usize> = positional.iter().copied().filter(|&i| !(i == 0 && is_self(&params[0]))).collect();
        let spread = match after_self[..] {
            [only] if params[only].kind == Kind::Ints => Some(only),
            _ => None,
        };
        let has = |k: Kind| params.iter().any(|p| p.kind == k);
        Form {
            row,
            name: row.name(),
            params,
            required: defaults.iter().zip(params).take_while(|(d, p)| d.is_none() && !p.keyword_only).count(),
            defaults,
            max_positional: positional.len(),
            spread,
            numbers: params
                .iter()
                .enumerate()
                .map(|(i, p)| matches!(p.name, "value" | "p") || (tensors > 1 && row.numbers >> i.min(6) & 1 != 0))
                .collect(),
            factory: has(Kind::DType) && has(Kind::Device),
            fresh: !row.parsed().is_view()
                && !params.iter().any(|p| p.written)
                && row.parsed().returns.iter().all(|r| r.starts_with("Tensor")),
            requires_grad: params.iter().position(|p| p.name == "requires_grad" && p.kind == Kind::Bool),
        }
    }

    /// Whether its results are new tensors, never views of an argument.
    #[inline]
    pub fn fresh(&self) -> bool {
        self.fresh
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        let exact = self.params.iter().position(|p| p.name == name);
        exact.or_else(|| self.params.iter().position(|p| is_alias(p.name, name)))
    }

    /// Puts a call's arguments in the parameters' places and converts them into `parsed`, which holds none yet.
    pub fn parse(&self, py: Python<'_>, given: Given<'_>, parsed: &mut Parsed) -> Ret<Result<(), Misfit>> {
        parsed.args.name = self.name;
        let n = self.params.len();
        let mut spread_count = 0;
        let mut positional = given.positional;
        if positional > self.max_positional || self.spread.is_some_and(|at| at < positional && self.spreads(py, given, at)) {
            match self.spread {
                Some(at) if positional >= at => {
                    spread_count = positional - at;
                    positional = at;
                }
                _ => return Ok(Err(Misfit::TooMany)),
            }
        }
        if positional + spread_count + given.named() < self.required {
            return Ok(Err(Misfit::Missing(positional + spread_count)));
        }
        if given.named() == 0 {
            return self.parse_positional(py, given, positional, spread_count, parsed);
        }
        let mut places: SmallVec<[Ptr; 8]> = SmallVec::from_elem(std::ptr::null_mut(), n);
        places[..positional].copy_from_slice(&given.all[..positional]);
        if let Err(misfit) = self.place_named(py, given, &mut places, parsed, spread_count)? {
            return Ok(Err(misfit));
        }
        for i in 0..n {
            if spread_count > 0 && Some(i) == self.spread {
                match self.spread_ints(py, given, i)? {
                    Ok(v) => parsed.args.values.push(v),
                    Err(misfit) => return Ok(Err(misfit)),
                }
                continue;
            }
            if places[i].is_null() {
                match &self.defaults[i] {
                    Some(d) => parsed.args.values.push(d.clone()),
                    None => return Ok(Err(Misfit::Missing(i))),
                }
                continue;
            }
            match convert(py, &self.params[i], self.numbers[i], places[i])? {
                Some(c) => parsed.push(i, c),
                None => return Ok(Err(Misfit::Type(i, (i < positional).then_some(i), places[i]))),
            }
        }
        Ok(Ok(()))
    }

    /// The common form: what was given by position, then defaults.
    fn parse_positional(
        &self,
        py: Python<'_>,
        given: Given<'_>,
        positional: usize,
        spread_count: usize,
        parsed: &mut Parsed,
    ) -> Ret<Result<(), Misfit>> {
        for (i, &obj) in given.all[..positional].iter().enumerate() {
            match convert(py, &self.params[i], self.numbers[i], obj)? {
                Some(c) => parsed.push(i, c),
                None => return Ok(Err(Misfit::Type(i, Some(i), obj))),
            }
        }
        if spread_count > 0 {
            match self.spread_ints(py, given, positional)? {
                Ok(v) => parsed.args.values.push(v),
                Err(misfit) => return Ok(Err(misfit)),
            }
        }
        for i in parsed.args.values.len()..self.params.len() {
            match &self.defaults[i] {
                Some(d) => parsed.args.values.push(d.clone()),
                None => return Ok(Err(Misfit::Missing(i))),
            }
        }
        Ok(Ok(()))
    }

    /// Whether a lone integer stands where integers are spread: `x.view(6)`.
    fn spreads(&self, py: Python<'_>, given: Given<'_>, at: usize) -> bool {
        given.positional == at + 1 && self.params[at].size.is_none() && matches!(int_of(py, given.all[at]), Ok(Some(_)))
    }

    fn spread_ints(&self, py: Python<'_>, given: Given<'_>, at: usize) -> Ret<Result<Value, Misfit>> {
        let mut out: SmallVec<[i64; 6]> = SmallVec::new();
        for (i, &obj) in given.all[at..given.positional].iter().enumerate() {
            match int_of(py, obj)? {
                Some(n) => out.push(n),
                None => return Ok(Err(Misfit::Type(at, Some(at + i), obj))),
            }
        }
        Ok(Ok(Value::Ints(out)))
    }

    fn place_named(
        &self,
        py: Python<'_>,
        given: Given<'_>,
        places: &mut [Ptr],
        parsed: &mut Parsed,
        spread: usize,
    ) -> Ret<Result<(), Misfit>> {
        for k in 0..given.named() {
            let value = given.all[given.positional + k];
            // SAFETY: the interpreter gives a tuple of as many strings as there are named arguments.
            let name = unsafe { Bound::from_borrowed_ptr_or_err(py, ffi::PyTuple_GetItem(given.names, k as isize))? };
            let name = name.cast::<pyo3::types::PyString>()?.to_str()?;
            match self.place_of(name) {
                Some(i) if !places[i].is_null() || (spread > 0 && Some(i) == self.spread) => return Ok(Err(Misfit::Twice(i))),
                Some(i) => places[i] = value,
                None if name == "out" && self.row.out => {
                    // SAFETY: an argument.
                    if value != unsafe { ffi::Py_None() } {
                        parsed.out = Some(value);
                    }
                }
                None if self.factory && matches!(name, "layout" | "pin_memory" | "names") => self.check_factory(py, name, value)?,
                None => return Ok(Err(Misfit::Unknown(name.to_owned()))),
            }
        }
        Ok(Ok(()))
    }

    /// What every function that makes tensors takes, though there is only one choice.
    fn check_factory(&self, py: Python<'_>, name: &str, value: Ptr) -> Ret<()> {
        // SAFETY: an argument.
        let value = unsafe { Bound::ref_from_ptr(py, &value) };
        let fine = match name {
            "pin_memory" => true,
            "layout" => value.is_none() || value.cast::<crate::objects::LayoutObject>().is_ok_and(|l| l.get().is_strided()),
            _ => value.is_none(),
        };
        if fine { Ok(()) } else { Err(runtime_error(format!("{}: {name}={} is not supported", self.row.name(), value.repr()?))) }
    }

    /// The signature, as messages show it.
    pub fn signature(&self) -> String {
        let mut out = String::from("(");
        let mut star = false;
        for (i, p) in self.params.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            if p.keyword_only && !star {
                out.push_str("*, ");
                star = true;
            }
            let name = if p.name == "self" { "input" } else { p.name };
            out.push_str(&format!("{} {name}", kind_name(p)));
            if let Some(d) = p.default {
                out.push_str(&format!("={d}"));
            }
        }
        if self.row.out {
            out.push_str(if star { ", Tensor out=None" } else { ", *, Tensor out=None" });
        }
        out.push(')');
        out
    }

    /// A misfit in words.
    pub fn explain(&self, misfit: &Misfit) -> String {
        let name = |i: usize| self.params.get(i).map_or("?", |p| if p.name == "self" { "input" } else { p.name });
        let function = self.row.name();
        match misfit {
            Misfit::TooMany => format!("{function}() takes {} positional arguments but more were given", self.max_positional),
            Misfit::Missing(i) => format!("{function}() missing 1 required positional arguments: \"{}\"", name(*i)),
            Misfit::Unknown(k) => format!("{function}() got an unexpected keyword argument '{k}'"),
            Misfit::Twice(i) => format!("{function}() got multiple values for argument '{}'", name(*i)),
            Misfit::Type(i, at, obj) => {
                let place = at.map_or(String::new(), |at| format!(" (position {})", at + 1));
                let want = kind_name(&self.params[*i]);
                format!("{function}(): argument '{}'{place} must be {want}, not {}", name(*i), type_name(*obj))
            }
            Misfit::Out(obj) => format!("{function}(): argument 'out' must be Tensor or tuple of Tensors, not {}", type_name(*obj)),
        }
    }
}

impl Parsed {
    fn push(&mut self, i: usize, c: Converted) {
        if c.borrowed && i < 64 {
            self.borrowed |= 1 << i;
            self.args.values.push(c.value);
        } else if c.borrowed {
            // No bit is left to remember it: take a handle of its own.
            self.args.values.push(c.value.clone());
            forget(c.value);
        } else {
            self.args.values.push(c.value);
        }
    }
}

fn kind_name(p: &Param) -> &'static str {
    match p.kind {
        Kind::Tensor => "Tensor",
        Kind::Tensors => "tuple of Tensors",
        Kind::Scalar => "Number",
        Kind::Scalars => "tuple of Scalars",
        Kind::Int => "int",
        Kind::Ints => "tuple of ints",
        Kind::Float => "float",
        Kind::Floats => "tuple of floats",
        Kind::Bool => "bool",
        Kind::Str => "str",
        Kind::DType => "torch.dtype",
        Kind::Device => "torch.device",
        Kind::MemoryFormat => "torch.memory_format",
        Kind::Layout => "torch.layout",
        Kind::Generator => "torch.Generator",
    }
}

/// What no row of a function fits, in words.
#[cold]
pub fn no_fit(py: Python<'_>, name: &str, forms: &[Form], misfits: &[Misfit], given: Given<'_>) -> Raised {
    if let ([form], [misfit]) = (forms, misfits) {
        return type_error(form.explain(misfit).replacen(form.row.name(), name, 1));
    }
    let mut got: Vec<String> = given.all[..given.positional].iter().map(|&o| type_name(o)).collect();
    for k in 0..given.named() {
        // SAFETY: the interpreter gives a tuple of strings.
        let key = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyTuple_GetItem(given.names, k as isize)) };
        got.push(format!("{}={}", key.map_or(String::new(), |k| k.to_string()), type_name(given.all[given.positional + k])));
    }
    let mut text = format!("{name}() received an invalid combination of arguments - got ({}), but expected one of:", got.join(", "));
    for (form, misfit) in forms.iter().zip(misfits) {
        text.push_str(&format!("\n * {}\n      {}", form.signature(), form.explain(misfit)));
    }
    type_error(text)
}

/// The tensors of `out=`.
pub fn outs_of(py: Python<'_>, out: Ptr) -> Ret<Option<Vec<Bound<'_, PyAny>>>> {
    // SAFETY: an argument.
    let out = unsafe { Bound::from_borrowed_ptr(py, out) };
    // SAFETY: as above.
    let is_one = |o: &Bound<'_, PyAny>| unsafe { crate::tensor_type::is_tensor(o.as_ptr()) };
    if is_one(&out) {
        return Ok(Some(vec![out]));
    }
    // SAFETY: as above.
    if unsafe { ffi::PyTuple_Check(out.as_ptr()) == 0 && ffi::PyList_Check(out.as_ptr()) == 0 } {
        return Ok(None);
    }
    let items: Vec<_> = out.try_iter()?.collect::<PyResult<_>>()?;
    Ok(items.iter().all(is_one).then_some(items))
}
