//! The calls that rows name as samples: `T(2,3; 0..1), [1, 2], keepdim=True`.

use flambeau::base::{DType, Device, Layout, Scalar};
use flambeau::ops::schema::{Kind, Param};
use flambeau::ops::{Args, Row, Value};
use flambeau::prelude::{Result, Tensor};

/// An argument as it is written.
#[derive(Clone, Debug)]
pub enum Word {
    /// `T(2,3; low..high)`.
    Float(Vec<usize>, Option<(f64, f64)>),
    /// `I(2,3; low..high)`.
    Int(Vec<usize>, (f64, f64)),
    /// `B(2,3)`.
    Bool(Vec<usize>),
    /// `C(2,3)`.
    Complex(Vec<usize>),
    /// `[...]`.
    List(Vec<Word>),
    /// `1`, `2.5`, `True`.
    Number(Scalar),
    /// `'text'`.
    Text(String),
    /// `None`.
    None,
    /// `float64`.
    Name(String),
}

/// A call: arguments by place and by name.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub places: Vec<Word>,
    pub names: Vec<(String, Word)>,
}

fn split(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut start, mut quoted) = (Vec::new(), 0, 0, false);
    for (i, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out.retain(|s| !s.is_empty());
    out
}

fn tensor(text: &str) -> (Vec<usize>, Option<(f64, f64)>) {
    let inside = &text[2..text.len() - 1];
    let (shape, range) = inside.split_once(';').map_or((inside, None), |(s, r)| (s, Some(r)));
    let shape = shape.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().unwrap()).collect();
    let range = range.map(|r| r.trim().split_once("..").map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap());
    (shape, range)
}

fn word(text: &str) -> Word {
    match text {
        "True" => Word::Number(Scalar::Bool(true)),
        "False" => Word::Number(Scalar::Bool(false)),
        "None" => Word::None,
        t if t.starts_with("T(") => {
            let (shape, range) = tensor(t);
            Word::Float(shape, range)
        }
        t if t.starts_with("I(") => {
            let (shape, range) = tensor(t);
            Word::Int(shape, range.unwrap_or((0.0, 3.0)))
        }
        t if t.starts_with("C(") => Word::Complex(tensor(t).0),
        t if t.starts_with("B(") => Word::Bool(tensor(t).0),
        t if t.starts_with(['[', '(']) => Word::List(split(&t[1..t.len() - 1]).into_iter().map(word).collect()),
        t if t.starts_with('\'') => Word::Text(t.trim_matches('\'').into()),
        t => match (t.parse::<i64>(), t.parse::<f64>()) {
            (Ok(i), _) => Word::Number(Scalar::Int(i)),
            (_, Ok(x)) => Word::Number(Scalar::Float(x)),
            _ => Word::Name(t.into()),
        },
    }
}

pub fn parse(text: &str) -> Call {
    let mut call = Call::default();
    for piece in split(text) {
        match piece.split_once('=') {
            Some((name, value)) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                call.names.push((name.into(), word(value.trim())))
            }
            _ => call.places.push(word(piece)),
        }
    }
    call
}

/// How tensors of a call are made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Style {
    /// The dtype of `T(...)`.
    pub dtype: DType,
    /// Whether they lie in memory with gaps and in another order of dimensions.
    pub strided: bool,
    /// Whether float tensors ask for a gradient.
    pub grad: bool,
    pub device: Device,
}

impl Style {
    pub fn plain(dtype: DType) -> Style {
        Style { dtype, strided: false, grad: false, device: Device::CPU }
    }
}

/// Numbers between 0 and 1 that are spread out and repeat for the same seed.
fn fractions(seed: usize, n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| ((seed * 7919 + i * 2 + 1) as f64 * 0.618_033_988_749_894_9).fract())
}

fn place(values: &[f64], shape: &[usize], dtype: DType, style: Style) -> Result<Tensor> {
    let flat = Tensor::from_slice(values, shape)?;
    let t = flat.to_dtype(dtype)?;
    if style.device != Device::CPU {
        return Tensor::empty(shape, dtype, style.device);
    }
    if !style.strided || shape.is_empty() {
        return t.copy();
    }
    // Every second element of a larger storage, dimensions from the fastest to the slowest.
    let sizes: Vec<usize> = shape.to_vec();
    let mut strides = vec![0isize; shape.len()];
    let mut step = 2;
    for (s, &n) in strides.iter_mut().zip(&sizes) {
        *s = step;
        step *= n.max(1) as isize + 1;
    }
    let wide = Tensor::zeros(&[step as usize + 2], dtype, Device::CPU)?;
    let view = Tensor::from_storage(wide.storage().clone(), Layout::strided("sample", &sizes, &strides, 1)?, dtype)?;
    view.copy_(&t)?;
    Ok(view)
}

fn value(word: &Word, p: &Param, seed: usize, row: &Row, style: Style) -> Result<Value> {
    let dtype_of = |name: &str| name.parse::<DType>().ok();
    Ok(match (word, p.kind) {
        (Word::None, _) => Value::None,
        (Word::Float(shape, range), _) => {
            let (low, high) = range.unwrap_or(row.domain);
            let n = shape.iter().product();
            let values: Vec<f64> = if style.dtype.is_integral() {
                let (low, high) = (if style.dtype.is_signed() { low.ceil() } else { low.ceil().max(0.0) }, high.floor());
                fractions(seed, n).map(|f| low + (f * (high - low + 1.0).max(1.0)).floor()).collect()
            } else {
                fractions(seed, n).map(|f| low + f * (high - low)).collect()
            };
            let t = place(&values, shape, style.dtype, style)?;
            if style.grad && t.dtype().is_float() {
                t.set_requires_grad(true)?;
            }
            Value::Tensor(t)
        }
        (Word::Int(shape, (low, high)), _) => {
            let values: Vec<f64> = fractions(seed, shape.iter().product()).map(|f| low + (f * (high - low)).floor()).collect();
            Value::Tensor(place(&values, shape, DType::I64, style)?)
        }
        (Word::Bool(shape), _) => {
            let values: Vec<f64> = fractions(seed, shape.iter().product()).map(|f| (f > 0.5) as u8 as f64).collect();
            Value::Tensor(place(&values, shape, DType::Bool, style)?)
        }
        (Word::Complex(shape), _) => {
            let values: Vec<f64> = fractions(seed, shape.iter().product()).map(|f| 4.0 * f - 2.0).collect();
            let dtype = if style.dtype == DType::F64 { DType::C128 } else { DType::C64 };
            Value::Tensor(place(&values, shape, dtype, style)?)
        }
        (Word::List(words), Kind::Tensors) => {
            let mut list = Vec::new();
            for (i, w) in words.iter().enumerate() {
                match value(w, p, seed + 31 * i, row, style)? {
                    Value::Tensor(t) => list.push(Some(t)),
                    _ => list.push(None),
                }
            }
            Value::Tensors(list)
        }
        (Word::List(words), Kind::Ints) => Value::Ints(words.iter().map(|w| number(w).to_i64()).collect()),
        (Word::List(words), Kind::Floats) => Value::Floats(words.iter().map(|w| number(w).to_f64()).collect()),
        (Word::List(words), _) => Value::Scalars(words.iter().map(number).collect()),
        (Word::Number(s), Kind::Ints) => Value::Ints(std::iter::repeat_n(s.to_i64(), p.size.unwrap_or(1)).collect()),
        (Word::Number(s), Kind::Int) => Value::Int(s.to_i64()),
        (Word::Number(s), Kind::Float) => Value::Float(s.to_f64()),
        (Word::Number(s), Kind::Bool) => Value::Bool(s.to_bool()),
        (Word::Number(s), _) => Value::Scalar(*s),
        (Word::Text(t), _) => Value::Str(t.clone()),
        (Word::Name(n), Kind::DType) => Value::DType(dtype_of(n).unwrap_or_else(|| panic!("{}: '{n}' is no dtype", row.schema))),
        (Word::Name(n), _) => panic!("{}: what is '{n}'?", row.schema),
    })
}

fn number(w: &Word) -> Scalar {
    match w {
        Word::Number(s) => *s,
        other => panic!("{other:?} is not a number"),
    }
}

/// The arguments of a sample for a row.
pub fn build(row: &Row, call: &Call, style: Style) -> Result<Args> {
    let params = row.params();
    assert!(call.places.len() <= params.len(), "{}: a sample has too many arguments", row.schema);
    let mut values = Vec::new();
    for (i, p) in params.iter().enumerate() {
        let given = call.places.get(i).or_else(|| call.names.iter().find(|(n, _)| n == p.name).map(|(_, w)| w));
        values.push(match given {
            Some(w) => value(w, p, i + 1, row, style)?,
            None => p.default_value().unwrap_or_else(|| panic!("{}: a sample lacks '{}'", row.schema, p.name)),
        });
    }
    for (name, _) in &call.names {
        assert!(params.iter().any(|p| p.name == name), "{}: a sample names '{name}'", row.schema);
    }
    Ok(Args { name: row.name(), values: values.into_iter().collect() })
}
