//! The table of operations: one row for each signature, from which everything else is made.
//!
//! A front end finds rows by name, parses a call's arguments after the row's schema, and calls the
//! row. In-place and `out=` forms follow from the functional row. Tests, reference pages and stubs
//! are made from the same rows.

use super::pointwise::{self, Operand, Spec};
use super::primitive::Primitive;
use super::schema::{Param, Schema};
use crate::Tensor;
use crate::random::Generator;
use crate::transform::autocast::{self, Autocast};
use crate::transform::{bind, bind_inplace, level, vectorize};
use flambeau_base::{DType, Device, Error, MemoryFormat, Result, Scalar};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::OnceLock;

/// An argument, parsed after a parameter's type. Parameters that were not given hold their default.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// None, for an optional parameter.
    #[default]
    None,
    /// A tensor.
    Tensor(Tensor),
    /// Several tensors; None where an element may be missing.
    Tensors(Vec<Option<Tensor>>),
    /// A number.
    Scalar(Scalar),
    /// Several numbers.
    Scalars(Vec<Scalar>),
    /// An integer.
    Int(i64),
    /// Several integers.
    Ints(SmallVec<[i64; 6]>),
    /// A float.
    Float(f64),
    /// Several floats.
    Floats(Vec<f64>),
    /// A truth value.
    Bool(bool),
    /// A string.
    Str(String),
    /// A dtype.
    DType(DType),
    /// A device.
    Device(Device),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A random number generator.
    Generator(Generator),
}

/// What a row gives.
#[derive(Clone, Debug)]
pub enum Out {
    /// A tensor.
    Tensor(Tensor),
    /// A tuple of tensors (named where the schema names the results).
    Tuple(SmallVec<[Tensor; 3]>),
    /// A list (or tuple) of as many tensors as there happen to be.
    List(Vec<Tensor>),
    /// A number.
    Scalar(Scalar),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A dtype.
    DType(DType),
    /// Nothing.
    None,
}

impl From<Tensor> for Out {
    fn from(t: Tensor) -> Out {
        Out::Tensor(t)
    }
}

impl Out {
    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        match self {
            Out::Tensor(t) => std::slice::from_ref(t),
            Out::Tuple(ts) => ts,
            Out::List(ts) => ts,
            _ => &[],
        }
    }
}

/// The arguments of a call, one for each parameter of the row's schema.
#[derive(Clone, Debug)]
pub struct Args {
    /// The row's name, for messages.
    pub name: &'static str,
    /// The values.
    pub values: SmallVec<[Value; 6]>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident, $opt:ident: $variant:ident => $t:ty, $word:expr;)*) => {
        impl Args {$(
            $(#[$doc])*
            pub fn $name(&self, i: usize) -> Result<$t> {
                match &self.values[i] {
                    Value::$variant(v) => Ok(v.clone()),
                    other => Err(self.wrong(i, $word, other)),
                }
            }

            #[doc = concat!("Argument `i`, ", $word, ", where it was given.")]
            pub fn $opt(&self, i: usize) -> Result<Option<$t>> {
                match &self.values[i] {
                    Value::None => Ok(None),
                    _ => self.$name(i).map(Some),
                }
            }
        )*}
    };
}

getters! {
    /// Argument `i`, a number.
    scalar, opt_scalar: Scalar => Scalar, "a number";
    /// Argument `i`, an integer.
    int, opt_int: Int => i64, "an integer";
    /// Argument `i`, integers.
    ints, opt_ints: Ints => SmallVec<[i64; 6]>, "integers";
    /// Argument `i`, a float.
    float, opt_float: Float => f64, "a float";
    /// Argument `i`, floats.
    floats, opt_floats: Floats => Vec<f64>, "floats";
    /// Argument `i`, a truth value.
    bool, opt_bool: Bool => bool, "a truth value";
    /// Argument `i`, a string.
    str, opt_str: Str => String, "a string";
    /// Argument `i`, a dtype.
    dtype, opt_dtype: DType => DType, "a dtype";
    /// Argument `i`, a device.
    device, opt_device: Device => Device, "a device";
    /// Argument `i`, a memory format.
    memory_format, opt_memory_format: MemoryFormat => MemoryFormat, "a memory format";
    /// Argument `i`, a generator.
    generator, opt_generator: Generator => Generator, "a generator";
    /// Argument `i`, numbers.
    scalars, opt_scalars: Scalars => Vec<Scalar>, "numbers";
}

impl Args {
    /// Argument `i`, a tensor.
    pub fn tensor(&self, i: usize) -> Result<&Tensor> {
        match &self.values[i] {
            Value::Tensor(t) => Ok(t),
            other => Err(self.wrong(i, "a Tensor", other)),
        }
    }

    /// Argument `i`, a tensor, where it was given.
    pub fn opt_tensor(&self, i: usize) -> Result<Option<&Tensor>> {
        match &self.values[i] {
            Value::None => Ok(None),
            _ => self.tensor(i).map(Some),
        }
    }

    /// Argument `i`, tensors, none of them missing.
    pub fn tensors(&self, i: usize) -> Result<Vec<&Tensor>> {
        match &self.values[i] {
            Value::Tensors(ts) => ts.iter().map(|t| t.as_ref().ok_or_else(|| self.wrong(i, "tensors", &Value::None))).collect(),
            other => Err(self.wrong(i, "tensors", other)),
        }
    }

    /// Argument `i`, tensors, some of which may be missing.
    pub fn opt_tensors(&self, i: usize) -> Result<&[Option<Tensor>]> {
        match &self.values[i] {
            Value::Tensors(ts) => Ok(ts),
            other => Err(self.wrong(i, "tensors", other)),
        }
    }

    /// Argument `i`, a tensor or a number.
    pub fn operand(&self, i: usize) -> Result<Operand<'_>> {
        match &self.values[i] {
            Value::Tensor(t) => Ok(Operand::Tensor(t)),
            Value::Scalar(s) => Ok(Operand::Scalar(*s)),
            Value::Int(n) => Ok(Operand::Scalar(Scalar::Int(*n))),
            Value::Float(x) => Ok(Operand::Scalar(Scalar::Float(*x))),
            Value::Bool(b) => Ok(Operand::Scalar(Scalar::Bool(*b))),
            other => Err(self.wrong(i, "a Tensor or a number", other)),
        }
    }

    #[cold]
    fn wrong(&self, i: usize, want: &str, got: &Value) -> Error {
        Error::type_error(format!("{}: argument {i} must be {want}, got {got:?}", self.name))
    }
}

/// From arguments to a pointwise operation and its operands.
pub type Chooser = for<'a> fn(&'a Args) -> Result<(&'static Spec, SmallVec<[Operand<'a>; 3]>)>;

/// How a row is carried out.
#[derive(Clone, Copy)]
pub enum Call {
    /// A pointwise operation on the parameters in order.
    Pointwise(&'static Spec),
    /// A pointwise operation that the arguments choose, with its operands.
    Choose(Chooser),
    /// A function of the arguments.
    Function(fn(&Args) -> Result<Out>),
    /// A view whose results are copied.
    Copied(fn(&Args) -> Result<Out>),
    /// A primitive that the arguments choose, with its inputs.
    Bind(Binder),
}

/// From arguments to a primitive and its inputs, of which the first is the row's first argument.
pub type Binder = fn(&Args) -> Result<(Box<dyn Primitive>, SmallVec<[Tensor; 4]>)>;

/// Where a row's name is found: a set of bits.
pub mod place {
    /// `torch.name`.
    pub const TORCH: u8 = 1;
    /// `Tensor.name`.
    pub const METHOD: u8 = 2;
    /// `torch.nn.functional.name`.
    pub const NN: u8 = 4;
    /// `torch.special.name`.
    pub const SPECIAL: u8 = 8;
    /// `torch.linalg.name`.
    pub const LINALG: u8 = 16;
    /// `torch._C.name` only: for the package's own use.
    pub const PRIVATE: u8 = 32;
}

/// What a row asks of the tensors given as `out=`: a set of bits. Without any, they take whatever a result can be cast to.
pub mod out_rule {
    /// Their memory is apart from that of the inputs and of each other.
    pub const APART: u8 = 1;
    /// They have the result's very dtype.
    pub const EXACT: u8 = 2;
}

/// A row as it is written down: plain data.
#[derive(Clone, Copy)]
pub struct Op {
    /// The signature, in PyTorch's syntax.
    pub schema: &'static str,
    /// How it is carried out.
    pub call: Call,
    /// What it computes, for the reference.
    pub doc: &'static str,
    /// Where its name is found, see [`place`].
    pub places: u8,
    /// Whether `name_` changes the first argument in place.
    pub inplace: bool,
    /// Whether `out=` is taken.
    pub out: bool,
    /// What `out=` must be like, a set of bits; see [`out_rule`].
    pub out_rule: u8,
    /// Which `Tensor` parameters take a number too, a set of bits; see [`Op::numbers`].
    pub numbers: u8,
    /// Calls that tests try, in the syntax of `tests/samples`: `T(2,3), 1, keepdim=True`.
    pub samples: &'static [&'static str],
    /// Range of the values that tests give to float arguments.
    pub domain: (f64, f64),
    /// Whether the result depends on how the input lies in memory (`view`, `as_strided`), so that strided inputs give others.
    pub by_layout: bool,
    /// The operation on numbers, for tests: given the operands, the result.
    pub reference: Option<fn(&[f64]) -> f64>,
    /// The precision in which it computes under autocast.
    pub autocast: Autocast,
}

const fn row(schema: &'static str, call: Call) -> Op {
    Op {
        schema,
        call,
        doc: "",
        places: place::TORCH | place::METHOD,
        inplace: true,
        out: true,
        out_rule: 0,
        numbers: 0,
        samples: &[],
        domain: (-2.0, 2.0),
        by_layout: false,
        reference: None,
        autocast: Autocast::Keep,
    }
}

/// A row for a pointwise operation: function, method, in-place and `out=` forms.
pub const fn pointwise(schema: &'static str, spec: &'static Spec) -> Op {
    Op { numbers: 0x7f, ..row(schema, Call::Pointwise(spec)) }
}

/// A row for a pointwise operation that the arguments choose.
pub const fn choose(schema: &'static str, f: Chooser) -> Op {
    Op { numbers: 0x7f, ..row(schema, Call::Choose(f)) }
}

/// A row for a function of the arguments: function, method and `out=`; not in place unless [`Op::with_inplace`].
pub const fn function(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    Op { inplace: false, ..row(schema, Call::Function(f)) }
}

/// A row for a primitive that the arguments choose: function, method, in-place and `out=` forms.
pub const fn primitive(schema: &'static str, f: Binder) -> Op {
    row(schema, Call::Bind(f))
}

/// A row for a view: neither in place nor with `out=`.
pub const fn view_row(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    Op { inplace: false, out: false, ..row(schema, Call::Function(f)) }
}

impl Op {
    /// Its text in the reference.
    pub const fn doc(mut self, text: &'static str) -> Op {
        self.doc = text;
        self
    }

    /// Where its name is found.
    pub const fn places(mut self, places: u8) -> Op {
        self.places = places;
        self
    }

    /// It has an in-place form.
    pub const fn with_inplace(mut self) -> Op {
        self.inplace = true;
        self
    }

    /// It has no in-place form.
    pub const fn without_inplace(mut self) -> Op {
        self.inplace = false;
        self
    }

    /// It takes `out=`.
    pub const fn with_out(mut self) -> Op {
        self.out = true;
        self
    }

    /// What `out=` must be like: bits of [`out_rule`].
    pub const fn out_rule(mut self, bits: u8) -> Op {
        self.out_rule = bits;
        self
    }

    /// It takes no `out=`.
    pub const fn without_out(mut self) -> Op {
        self.out = false;
        self
    }

    /// Which `Tensor` parameters take a number too, a set of bits: of a pointwise row all of them unless told otherwise, of
    /// others none. One has to be a tensor unless bit 7 is set.
    pub const fn numbers(mut self, bits: u8) -> Op {
        self.numbers = bits;
        self
    }

    /// Calls that tests try.
    pub const fn samples(mut self, calls: &'static [&'static str]) -> Op {
        self.samples = calls;
        self
    }

    /// Range of the values that tests give to float arguments.
    pub const fn domain(mut self, low: f64, high: f64) -> Op {
        self.domain = (low, high);
        self
    }

    /// Its result depends on how the input lies in memory.
    pub const fn by_layout(mut self) -> Op {
        self.by_layout = true;
        self
    }

    /// The operation on numbers.
    pub const fn reference(mut self, f: fn(&[f64]) -> f64) -> Op {
        self.reference = Some(f);
        self
    }

    /// Under autocast it computes in the lower precision.
    pub const fn autocast_lower(mut self) -> Op {
        self.autocast = Autocast::Lower;
        self
    }

    /// Under autocast it computes in single precision.
    pub const fn autocast_full(mut self) -> Op {
        self.autocast = Autocast::Full;
        self
    }

    /// Under autocast it computes in the widest dtype among its operands.
    pub const fn autocast_widest(mut self) -> Op {
        self.autocast = Autocast::Widest;
        self
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        let end = self.schema.find(['.', '(']).unwrap_or(self.schema.len());
        &self.schema[..end]
    }

    /// Carries the row out.
    #[inline]
    pub fn run(&self, args: &Args) -> Result<Out> {
        if self.autocast != Autocast::Keep && autocast::is_active() {
            return autocast::run(self.autocast, args, |args| self.carry_out(args));
        }
        self.carry_out(args)
    }

    fn carry_out(&self, args: &Args) -> Result<Out> {
        if level::depth() > 0 {
            return self.carry_out_inside(args);
        }
        self.carry_out_here(args)
    }

    /// Inside a transform: a row that would read a batch as if it were one example goes through it example by example.
    #[cold]
    fn carry_out_inside(&self, args: &Args) -> Result<Out> {
        level::took_refused_read();
        match self.carry_out_here(args) {
            Err(e) if level::took_refused_read() => vectorize::row_by_row(self, args, |args| self.carry_out_here(args)).unwrap_or(Err(e)),
            result => result,
        }
    }

    fn carry_out_here(&self, args: &Args) -> Result<Out> {
        match self.call {
            Call::Function(f) => f(args),
            Call::Copied(f) => super::view::copies::run(f, args),
            Call::Bind(f) => {
                let (op, inputs) = f(args)?;
                let mut outputs = bind(&*op, &inputs.iter().collect::<SmallVec<[&Tensor; 4]>>())?;
                Ok(if outputs.len() == 1 { Out::Tensor(outputs.swap_remove(0)) } else { Out::Tuple(outputs.into_iter().collect()) })
            }
            _ => {
                let (spec, operands) = self.pointwise(args)?;
                pointwise::call(spec, &operands).map(Out::Tensor)
            }
        }
    }

    /// The pointwise operation that the row stands for, with its operands.
    fn pointwise<'a>(&self, args: &'a Args) -> Result<(&'static Spec, SmallVec<[Operand<'a>; 3]>)> {
        if self.numbers & 0x80 == 0 && !args.values.iter().any(|v| matches!(v, Value::Tensor(_))) {
            return Err(Error::type_error(format!("{}(): one of the arguments must be a Tensor, all are numbers", self.name())));
        }
        match self.call {
            Call::Pointwise(spec) => Ok((spec, (0..args.values.len()).map(|i| args.operand(i)).collect::<Result<_>>()?)),
            Call::Choose(f) => f(args),
            Call::Function(_) | Call::Copied(_) | Call::Bind(_) => {
                Err(Error::runtime(format!("{}: not a pointwise operation", self.name())))
            }
        }
    }

    /// Carries the row out and leaves the result in the first argument.
    pub fn run_inplace(&self, args: &mut Args) -> Result<Tensor> {
        let target = args.tensor(0)?.clone();
        match self.call {
            Call::Pointwise(_) | Call::Choose(_) => {
                let (spec, operands) = self.pointwise(args)?;
                pointwise::call_inplace(spec, &operands)?;
            }
            Call::Bind(f) => {
                let (op, inputs) = f(args)?;
                bind_inplace(&*op, &inputs.iter().collect::<SmallVec<[&Tensor; 4]>>())?;
            }
            Call::Function(_) | Call::Copied(_) => {
                crate::autograd::inplace::check(self.name(), &target, target.requires_grad())?;
                target.check_writable(self.name())?;
                // What the operation saves of its input must outlive the write.
                if target.is_followed() {
                    args.values[0] = Value::Tensor(target.copy()?);
                }
                let given = args.tensor(0)?.clone();
                let result = self.run(args)?;
                if matches!((result.tensors(), args.tensor(0)), ([result], Ok(given)) if result.is(given)) {
                    // Nothing was done, so nothing is written; what gives a view by its schema counts as written all the same.
                    if self.schema.contains("(a)") {
                        target.bump_version();
                    }
                    return Ok(target);
                }
                let [result] = result.tensors() else {
                    return Err(Error::runtime(format!("{}_: there is no one result to leave in place", self.name())));
                };
                if result.is(&given) {
                    // It left its argument as it was (dropout outside of training).
                    return Ok(target);
                }
                if result.shape() != target.shape() {
                    return Err(Error::runtime(format!(
                        "{}_: output with shape {:?} doesn't match the broadcast shape {:?}",
                        self.name(),
                        target.shape(),
                        result.shape()
                    )));
                }
                if !result.dtype().can_cast(target.dtype()) {
                    return Err(Error::runtime(format!(
                        "{}_: result type {} can't be cast to the desired output type {}",
                        self.name(),
                        result.dtype(),
                        target.dtype()
                    )));
                }
                target.copy_(result)?;
            }
        }
        Ok(target)
    }

    /// Carries the row out and leaves the results in `outs`, which take their shapes.
    ///
    /// # Safety
    /// No other thread uses `outs` during the call: see NOTE [metadata] in `tensor`.
    pub unsafe fn run_out(&self, args: &Args, outs: &[&Tensor]) -> Result<()> {
        if let (Call::Pointwise(_) | Call::Choose(_), [out], 0) = (self.call, outs, self.out_rule) {
            let (spec, operands) = self.pointwise(args)?;
            // SAFETY: the caller's.
            return unsafe { pointwise::call_out(spec, &operands, out) };
        }
        let inputs: Vec<&Tensor> = args
            .values
            .iter()
            .flat_map(|v| match v {
                Value::Tensor(t) => vec![t],
                Value::Tensors(ts) => ts.iter().flatten().collect(),
                _ => Vec::new(),
            })
            .collect();
        crate::transform::check_out(self.name(), &inputs, outs)?;
        let apart = self.out_rule & out_rule::APART != 0;
        if apart {
            check_apart(self.name(), &inputs, outs)?;
        }
        let result = {
            let _guard = crate::autograd::no_grad();
            self.run(args)?
        };
        if result.tensors().len() != outs.len() {
            return Err(Error::type_error(format!("{}: out= takes {} tensors, got {}", self.name(), result.tensors().len(), outs.len())));
        }
        for (out, result) in outs.iter().zip(result.tensors()) {
            if apart && out.shape() != result.shape() && inputs.iter().any(|t| t.shares_storage(out)) {
                return Err(together(self.name()));
            }
            if self.out_rule & out_rule::EXACT != 0 && out.dtype() != result.dtype() {
                return Err(Error::runtime(format!(
                    "{}: Expected out tensor to have dtype {}, but got {} instead",
                    self.name(),
                    result.dtype(),
                    out.dtype()
                )));
            }
            // SAFETY: the caller's.
            unsafe { crate::transform::put_out(self.name(), out, result)? };
        }
        Ok(())
    }
}

fn together(op: &str) -> Error {
    Error::runtime(format!(
        "{op}: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
    ))
}

/// Refuses results that would be written over what is read, or over each other.
fn check_apart(op: &str, inputs: &[&Tensor], outs: &[&Tensor]) -> Result<()> {
    use crate::tensor::{Overlap, overlap};
    for (i, out) in outs.iter().enumerate() {
        if out.layout().has_overlap() || inputs.iter().any(|t| overlap(t, out) != Overlap::None) {
            return Err(together(op));
        }
        if outs[..i].iter().any(|other| overlap(other, out) != Overlap::None) {
            return Err(Error::value(format!("{op}: the out= tensors must not overlap")));
        }
    }
    Ok(())
}

/// The families: each a list of files, each file a list of rows. **A new operation is a line in its file's `OPS`.**
static FAMILIES: &[&[&[Op]]] = &[
    super::pointwise::FAMILIES,
    super::view::FAMILIES,
    super::join::FAMILIES,
    super::index::FAMILIES,
    super::sort::FAMILIES,
    super::matmul::FAMILIES,
    super::create::FAMILIES,
    super::random::FAMILIES,
    super::reduce::FAMILIES,
    super::scan::FAMILIES,
    super::nn::FAMILIES,
    super::fft::FAMILIES,
    super::linalg::FAMILIES,
];

/// A row with its signature, which is parsed when it is first asked for.
pub struct Row {
    op: &'static Op,
    schema: OnceLock<Schema>,
}

impl std::ops::Deref for Row {
    type Target = Op;

    fn deref(&self) -> &Op {
        self.op
    }
}

impl Row {
    /// The signature.
    pub fn parsed(&self) -> &Schema {
        self.schema.get_or_init(|| match Schema::parse(self.op.schema) {
            Ok(schema) => schema,
            // A test parses every row; here a broken one takes no arguments.
            Err(_) => Schema { name: self.name(), overload: "", params: Vec::new(), returns: Vec::new(), return_names: Vec::new() },
        })
    }

    /// The parameters.
    pub fn params(&self) -> &[Param] {
        &self.parsed().params
    }
}

/// Every row, family by family. Rows of one name are tried in this order.
pub fn ops() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let families = FAMILIES.iter().flat_map(|files| files.iter());
        let mut rows: Vec<&'static Op> = families.flat_map(|rows| rows.iter()).collect();
        let copies: Vec<&'static Op> =
            rows.iter().filter_map(|op| super::view::copies::copied(op)).map(|op| &*Box::leak(Box::new(op))).collect();
        rows.extend(copies);
        rows.into_iter().map(|op| Row { op, schema: OnceLock::new() }).collect()
    })
}

/// The rows of a name, in the order in which they are tried.
pub fn named(name: &str) -> &'static [&'static Row] {
    static BY_NAME: OnceLock<HashMap<&'static str, Vec<&'static Row>>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let mut map: HashMap<&'static str, Vec<&'static Row>> = HashMap::new();
        for op in ops() {
            map.entry(op.name()).or_default().push(op);
        }
        map
    });
    by_name.get(name).map_or(&[], |v| v)
}
