//! Tensors as text, as PyTorch prints them.

use super::Tensor;
use flambeau_base::{DType, Layout, Result, Scalar, default_dtype};
use std::fmt;

/// How tensors are printed.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// Tensors of more elements are shown in part.
    pub threshold: usize,
    /// How many elements of each dimension are shown at its beginning and its end then.
    pub edgeitems: usize,
    /// Characters in a line.
    pub linewidth: usize,
    /// Whether numbers are written with powers of ten; decided by the values where there is none.
    pub sci_mode: Option<bool>,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None }
    }
}

impl PrintOptions {
    /// The options of a profile: `default`, `short` or `full`.
    pub fn profile(name: &str) -> Option<PrintOptions> {
        let default = PrintOptions::default();
        match name {
            "default" => Some(default),
            "short" => Some(PrintOptions { precision: 2, edgeitems: 2, ..default }),
            "full" => Some(PrintOptions { threshold: usize::MAX, ..default }),
            _ => None,
        }
    }
}

/// The form in which all numbers of a tensor are written.
struct Form {
    float: bool,
    /// All numbers are whole: written with a point and nothing behind.
    whole: bool,
    powers: bool,
    width: usize,
    precision: usize,
}

impl Form {
    fn of(values: &[Scalar], float: bool, o: &PrintOptions) -> Form {
        let mut form = Form { float, whole: true, powers: false, width: 1, precision: o.precision };
        if !float {
            form.width = values.iter().map(|v| v.to_string().len()).max().unwrap_or(0).max(1);
            return form;
        }
        let shown: Vec<f64> = values.iter().map(|v| v.to_f64()).filter(|x| x.is_finite() && *x != 0.0).collect();
        if shown.is_empty() {
            return form;
        }
        form.whole = shown.iter().all(|x| x.fract() == 0.0);
        let (low, high) = shown.iter().fold((f64::INFINITY, 0f64), |(l, h), x| (l.min(x.abs()), h.max(x.abs())));
        form.powers = o.sci_mode.unwrap_or(high / low > 1000.0 || high > 1e8 || low < 1e-4);
        form.width = shown.iter().map(|&x| form.number(x).len()).max().unwrap_or(1);
        form
    }

    fn number(&self, x: f64) -> String {
        if self.powers {
            return with_power(x, self.precision);
        }
        match (x.is_finite(), self.whole) {
            (true, true) => format!("{x:.0}."),
            (true, false) => rounded(x, self.precision),
            (false, _) => not_finite(x),
        }
    }

    /// A value, filled up with spaces from the left.
    fn write(&self, value: Scalar) -> String {
        let text = if self.float { self.number(value.to_f64()) } else { value.to_string() };
        format!("{text:>width$}", width = self.width)
    }
}

fn not_finite(x: f64) -> String {
    if x.is_nan() { "nan".into() } else if x > 0.0 { "inf".into() } else { "-inf".into() }
}

/// So many digits after the point; halves go to the even digit.
fn rounded(x: f64, precision: usize) -> String {
    format!("{x:.precision$}")
}

/// `1.2500e-05`: a power of at least two digits.
fn with_power(x: f64, precision: usize) -> String {
    if !x.is_finite() {
        return not_finite(x);
    }
    let text = format!("{x:.precision$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(p) => ('-', p),
        None => ('+', power),
    };
    format!("{digits}e{sign}{power:0>2}")
}

/// A tensor that is being printed.
struct Page<'a> {
    tensor: &'a Tensor,
    options: &'a PrintOptions,
    /// Only the edges are shown.
    summarised: bool,
    real: Form,
    /// For complex numbers.
    imaginary: Option<Form>,
}

/// Indices of a dimension that are shown; a gap comes after so many of them, if there is one.
fn shown(size: usize, summarised: bool, edge: usize) -> (Vec<usize>, Option<usize>) {
    if summarised && size > 2 * edge {
        ((0..edge).chain(size - edge..size).collect(), Some(edge))
    } else {
        ((0..size).collect(), None)
    }
}

impl Page<'_> {
    fn new<'a>(tensor: &'a Tensor, options: &'a PrintOptions) -> Result<Page<'a>> {
        let summarised = tensor.numel() > options.threshold;
        let mut values = Vec::new();
        if !(summarised && options.edgeitems == 0) {
            collect(tensor, tensor.layout(), summarised, options.edgeitems, &mut values)?;
        }
        let float = tensor.dtype().is_float() || tensor.dtype().is_complex();
        let (real, imaginary) = if tensor.dtype().is_complex() {
            let part = |f: fn(&Scalar) -> f64| -> Vec<Scalar> { values.iter().map(|v| Scalar::Float(f(v))).collect() };
            let imaginary = Form::of(&part(|v| v.to_complex().im), true, options);
            (Form::of(&part(|v| v.to_complex().re), true, options), Some(imaginary))
        } else {
            (Form::of(&values, float, options), None)
        };
        Ok(Page { tensor, options, summarised, real, imaginary })
    }

    fn value(&self, v: Scalar) -> String {
        let Some(imaginary) = &self.imaginary else { return self.real.write(v) };
        let z = v.to_complex();
        let real = self.real.write(Scalar::Float(z.re));
        let part = imaginary.write(Scalar::Float(z.im));
        let part = part.trim_start();
        let plus = if part.starts_with(['-', '+']) { "" } else { "+" };
        format!("{real}{plus}{part}j")
    }

    fn write(&self, layout: &Layout, indent: usize) -> Result<String> {
        match layout.ndim() {
            0 => Ok(self.value(self.tensor.alias_with(layout.clone(), self.tensor.dtype()).item()?)),
            1 => self.row(layout, indent),
            n => {
                let (indices, gap) = shown(layout.sizes()[0], self.summarised, self.options.edgeitems);
                let mut parts = Vec::with_capacity(indices.len() + 1);
                for (i, &index) in indices.iter().enumerate() {
                    if gap == Some(i) {
                        parts.push("...".to_string());
                    }
                    parts.push(self.write(&layout.select(0, index), indent + 1)?);
                }
                if gap == Some(indices.len()) {
                    parts.push("...".to_string());
                }
                let between = format!(",{}{}", "\n".repeat(n - 1), " ".repeat(indent + 1));
                Ok(format!("[{}]", parts.join(&between)))
            }
        }
    }

    fn row(&self, layout: &Layout, indent: usize) -> Result<String> {
        let mut length = self.real.width + 2;
        if let Some(imaginary) = &self.imaginary {
            length += imaginary.width + 1;
        }
        let per_line = (self.options.linewidth.saturating_sub(indent) / length).max(1);
        let edge = self.options.edgeitems;
        let (indices, gap) = shown(layout.sizes()[0], self.summarised, edge);
        let mut texts = Vec::with_capacity(indices.len() + 1);
        if self.summarised && edge == 0 {
            texts.push("...".to_string());
        } else {
            for (i, v) in values_at(self.tensor, layout, &indices)?.into_iter().enumerate() {
                if gap == Some(i) {
                    texts.push(" ...".to_string());
                }
                texts.push(self.value(v));
            }
        }
        let lines: Vec<String> = texts.chunks(per_line).map(|line| line.join(", ")).collect();
        Ok(format!("[{}]", lines.join(&format!(",\n{}", " ".repeat(indent + 1)))))
    }
}

/// Elements of a one-dimensional layout.
fn values_at(t: &Tensor, layout: &Layout, indices: &[usize]) -> Result<Vec<Scalar>> {
    let all = |l: Layout| t.alias_with(l, t.dtype()).to_scalars();
    if indices.len() == layout.numel() {
        return all(layout.clone());
    }
    indices.iter().map(|&i| t.alias_with(layout.select(0, i), t.dtype()).item()).collect()
}

/// The elements that are shown.
fn collect(t: &Tensor, layout: &Layout, summarised: bool, edge: usize, out: &mut Vec<Scalar>) -> Result<()> {
    if layout.ndim() == 0 {
        out.push(t.alias_with(layout.clone(), t.dtype()).item()?);
        return Ok(());
    }
    let (indices, _) = shown(layout.sizes()[0], summarised, edge);
    if layout.ndim() == 1 {
        out.extend(values_at(t, layout, &indices)?);
        return Ok(());
    }
    for i in indices {
        collect(t, &layout.select(0, i), summarised, edge, out)?;
    }
    Ok(())
}

/// A shape as a tuple of Python.
fn tuple(sizes: &[usize]) -> String {
    match sizes {
        [one] => format!("({one},)"),
        _ => format!("({})", sizes.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", ")),
    }
}

/// Whether the dtype goes without saying.
fn is_usual(dtype: DType) -> bool {
    let float = default_dtype();
    dtype == float || dtype == float.to_complex() || matches!(dtype, DType::I64 | DType::Bool)
}

/// A tensor as text: `tensor([1., 2.], grad_fn=<AddBackward0>)`.
///
/// The values in PyTorch's form (one form for all of them, chosen by the values), then what does not go without saying:
/// device, size of tensors without values, dtype, history.
pub fn to_text(t: &Tensor, options: &PrintOptions) -> Result<String> {
    const HEAD: &str = "tensor(";
    let mut notes = Vec::new();
    let dtype = format!("dtype=torch.{}", t.dtype());
    let body = if t.device().is_meta() {
        notes.push(format!("device='{}'", t.device()));
        notes.push(format!("size={}", tuple(t.shape())));
        if t.dtype() != default_dtype() {
            notes.push(dtype);
        }
        "...".to_string()
    } else if t.numel() == 0 {
        if t.ndim() != 1 {
            notes.push(format!("size={}", tuple(t.shape())));
        }
        if t.dtype() != default_dtype() {
            notes.push(dtype);
        }
        "[]".to_string()
    } else {
        if !is_usual(t.dtype()) {
            notes.push(dtype);
        }
        Page::new(t, options)?.write(t.layout(), HEAD.len())?
    };
    match t.grad_fn() {
        Some(node) => notes.push(format!("grad_fn=<{}>", node.name())),
        None if t.requires_grad() => notes.push("requires_grad=True".to_string()),
        None => {}
    }
    let mut text = format!("{HEAD}{body}");
    let mut column = text.len() - text.rfind('\n').map_or(0, |at| at + 1) + 2;
    for note in notes {
        if column + note.len() + 2 > options.linewidth {
            text += &format!(",\n{}{note}", " ".repeat(HEAD.len()));
            column = HEAD.len() + note.len();
        } else {
            text += &format!(", {note}");
            column += note.len() + 2;
        }
    }
    text.push(')');
    Ok(text)
}

impl fmt::Display for Tensor {
    /// The tensor as PyTorch prints it; an alternate form (`{:#}`) shows all elements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = PrintOptions { threshold: usize::MAX, ..PrintOptions::default() };
        let options = if f.alternate() { all } else { PrintOptions { precision: f.precision().unwrap_or(4), ..PrintOptions::default() } };
        match to_text(self, &options) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "tensor(<{error}>)"),
        }
    }
}
