//! Tensors as text, in PyTorch's form.
//!
//! All elements have one format, chosen from what is shown: integers with a dot, fixed point, or powers of ten.
//! Large tensors show the ends of each dimension.

use super::Tensor;
use super::access::Element;
use crate::with_element;
use flambeau_base::{Complex64, DType, Result, Scalar, default_dtype};
use std::fmt::Write;
use std::sync::{PoisonError, RwLock};

/// How tensors are printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// From more elements than this on, only the ends of each dimension are shown.
    pub threshold: usize,
    /// How many elements at each end.
    pub edgeitems: usize,
    /// Characters to a line.
    pub linewidth: usize,
    /// Powers of ten: always, never, or where they read better.
    pub sci_mode: Option<bool>,
}

impl PrintOptions {
    /// What is in force unless something was set.
    pub const DEFAULT: PrintOptions = PrintOptions { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None };
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// The options in force.
pub fn print_options() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the options for all threads.
pub fn set_print_options(options: PrintOptions) {
    *OPTIONS.write().unwrap_or_else(PoisonError::into_inner) = options;
}

impl std::fmt::Display for Tensor {
    /// As Python's `repr`: `tensor([1., 2.])`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match tensor_text(self, "tensor(", None) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "tensor(<{}>)", error.message()),
        }
    }
}

/// A tensor as text: `prefix`, the values (or `contents` in their place), what is not as usual (device, dtype, the
/// record for differentiation), a parenthesis.
pub fn tensor_text(tensor: &Tensor, prefix: &str, contents: Option<&str>) -> Result<String> {
    let options = print_options();
    let indent = prefix.chars().count();
    let body = match contents {
        Some(text) => text.to_owned(),
        None if tensor.device().is_meta() => "...".into(),
        None if tensor.numel() == 0 => "[]".into(),
        None => values_text(tensor, indent, &options)?,
    };
    let mut text = format!("{prefix}{body}");
    let last = text.rfind('\n').map_or(0, |at| at + 1);
    // Two characters more than there are: where PyTorch breaks lines.
    let mut width = text[last..].chars().count() + 2;
    for note in notes(tensor) {
        if width + note.len() + 2 > options.linewidth {
            let _ = write!(text, ",\n{:indent$}{note}", "");
            width = indent + note.len();
        } else {
            let _ = write!(text, ", {note}");
            width += note.len() + 2;
        }
    }
    text.push(')');
    Ok(text)
}

/// What the values do not show.
fn notes(tensor: &Tensor) -> Vec<String> {
    let mut out = Vec::new();
    let (dtype, default) = (tensor.dtype(), default_dtype());
    if !tensor.device().same(flambeau_base::Device::CPU) {
        out.push(format!("device='{}'", tensor.device()));
    }
    let bare = tensor.device().is_meta() || tensor.numel() == 0;
    if tensor.device().is_meta() || (bare && tensor.ndim() != 1) {
        let sizes: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        out.push(format!("size=({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" }));
    }
    let told_by_values = !bare && (matches!(dtype, DType::I64 | DType::Bool) || dtype == default.to_complex());
    if dtype != default && !told_by_values {
        out.push(format!("dtype=torch.{dtype}"));
    }
    match tensor.grad_fn() {
        Some(node) => out.push(format!("grad_fn=<{}>", node.name())),
        None if tensor.requires_grad() => out.push("requires_grad=True".into()),
        None => {}
    }
    out
}

/// What is shown of a tensor: its values, dimension by dimension.
struct Shown {
    values: Vec<Scalar>,
    /// How many elements of each dimension are shown.
    sizes: Vec<usize>,
    /// After how many of them some are left out.
    gaps: Vec<Option<usize>>,
}

fn shown(tensor: &Tensor, options: &PrintOptions) -> Result<Shown> {
    let edge = options.edgeitems;
    let summary = tensor.numel() > options.threshold;
    let cut = |&n: &usize| summary && n > 2 * edge;
    let gaps: Vec<Option<usize>> = tensor.shape().iter().map(|n| cut(n).then_some(edge)).collect();
    let sizes: Vec<usize> = tensor.shape().iter().map(|n| if cut(n) { 2 * edge } else { *n }).collect();
    if !gaps.iter().any(Option::is_some) {
        return Ok(Shown { values: tensor.to_scalars()?, sizes, gaps });
    }
    let tensor = &tensor.alias().resolved()?;
    let (base, strides) = (tensor.data_ptr()?, tensor.layout().strides());
    let mut values = Vec::with_capacity(sizes.iter().product());
    let mut index = vec![0usize; sizes.len()];
    for _ in 0..sizes.iter().product::<usize>() {
        let mut at = 0;
        for (d, &i) in index.iter().enumerate() {
            let i = if i < edge || gaps[d].is_none() { i } else { tensor.shape()[d] - (sizes[d] - i) };
            at += i as isize * strides[d];
        }
        // SAFETY: the index lies inside the shape, and the layout was checked to stay inside the storage.
        values.push(with_element!(tensor.dtype(), T => unsafe { T::read(base.cast::<T>().offset(at)) }.to_scalar()));
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            if index[d] < sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Ok(Shown { values, sizes, gaps })
}

fn values_text(tensor: &Tensor, indent: usize, options: &PrintOptions) -> Result<String> {
    let shown = shown(tensor, options)?;
    let format = Format::of(&shown.values, tensor.dtype(), options);
    let mut out = String::new();
    let page = Page { shown: &shown, format: &format, linewidth: options.linewidth };
    page.write(&mut out, 0, 0, indent);
    Ok(out)
}

struct Page<'a> {
    shown: &'a Shown,
    format: &'a Format,
    linewidth: usize,
}

impl Page<'_> {
    /// Writes dimension `d` and those below it, from the value at `first`. As deep as there are dimensions.
    fn write(&self, out: &mut String, d: usize, first: usize, indent: usize) {
        let below = self.shown.sizes.len() - d;
        if below == 0 {
            out.push_str(&self.format.text(self.shown.values[first]));
        } else if below == 1 {
            self.write_row(out, d, first, indent);
        } else {
            let step: usize = self.shown.sizes[d + 1..].iter().product();
            let between = format!(",{}{:width$}", "\n".repeat(below - 1), "", width = indent + 1);
            out.push('[');
            for i in 0..self.shown.sizes[d] {
                if self.shown.gaps[d] == Some(i) {
                    out.push_str(&between);
                    out.push_str("...");
                }
                if i > 0 || self.shown.gaps[d] == Some(0) {
                    out.push_str(&between);
                }
                self.write(out, d + 1, first + i * step, indent + 1);
            }
            out.push(']');
        }
    }

    fn write_row(&self, out: &mut String, d: usize, first: usize, indent: usize) {
        let per_line = (self.linewidth.saturating_sub(indent) / (self.format.width() + 2)).max(1);
        let mut items: Vec<String> = self.shown.values[first..first + self.shown.sizes[d]].iter().map(|&v| self.format.text(v)).collect();
        if let Some(at) = self.shown.gaps[d] {
            items.insert(at, " ...".into());
        }
        let lines: Vec<String> = items.chunks(per_line).map(|line| line.join(", ")).collect();
        let _ = write!(out, "[{}]", lines.join(&format!(",\n{:width$}", "", width = indent + 1)));
    }
}

/// The one format of all elements.
enum Format {
    /// Truth values and integers, set to the right.
    Plain(usize),
    Real(RealFormat),
    /// Real and imaginary parts.
    Complex(RealFormat, RealFormat),
}

impl Format {
    fn of(values: &[Scalar], dtype: DType, options: &PrintOptions) -> Format {
        if dtype.is_complex() {
            let parts: Vec<Complex64> = values.iter().map(|v| v.to_complex()).collect();
            let part = |f: fn(&Complex64) -> f64| RealFormat::of(parts.iter().map(f), options);
            Format::Complex(part(|z| z.re), part(|z| z.im))
        } else if dtype.is_float() {
            Format::Real(RealFormat::of(values.iter().map(|v| v.to_f64()), options))
        } else {
            Format::Plain(values.iter().map(|&v| plain(v).len()).max().unwrap_or(0))
        }
    }

    fn width(&self) -> usize {
        match self {
            Format::Plain(width) => *width,
            Format::Real(format) => format.width,
            Format::Complex(re, im) => re.width + im.width + 1,
        }
    }

    fn text(&self, value: Scalar) -> String {
        match self {
            Format::Plain(width) => format!("{:>width$}", plain(value)),
            Format::Real(format) => format.text(value.to_f64()),
            Format::Complex(re, im) => {
                let z = value.to_complex();
                let imaginary = im.text(z.im);
                let imaginary = imaginary.trim_start();
                let sign = if imaginary.starts_with(['+', '-']) { "" } else { "+" };
                format!("{}{sign}{imaginary}j", re.text(z.re))
            }
        }
    }
}

fn plain(value: Scalar) -> String {
    match value {
        Scalar::Bool(true) => "True".into(),
        Scalar::Bool(false) => "False".into(),
        Scalar::UInt(n) => n.to_string(),
        other => other.to_i64().to_string(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// Whole numbers, with a dot that tells them from integers.
    Whole,
    Fixed,
    PowersOfTen,
}

struct RealFormat {
    style: Style,
    width: usize,
    precision: usize,
}

impl RealFormat {
    /// Chosen from the finite numbers other than zero.
    fn of(values: impl Iterator<Item = f64> + Clone, options: &PrintOptions) -> RealFormat {
        let mut format = RealFormat { style: Style::Whole, width: 1, precision: options.precision };
        let telling = values.filter(|x| x.is_finite() && *x != 0.0);
        if telling.clone().next().is_none() {
            return format;
        }
        let (least, most) = telling.clone().fold((f64::INFINITY, 0f64), |(least, most), x| (least.min(x.abs()), most.max(x.abs())));
        let whole = telling.clone().all(|x| x == x.ceil());
        format.style = if most / least > 1000.0 || most > 1e8 || (!whole && least < 1e-4) {
            Style::PowersOfTen
        } else if whole {
            Style::Whole
        } else {
            Style::Fixed
        };
        match options.sci_mode {
            Some(true) => format.style = Style::PowersOfTen,
            Some(false) => format.style = if whole { Style::Whole } else { Style::Fixed },
            None => {}
        }
        format.width = telling.map(|x| format.bare(x).len()).max().unwrap_or(1);
        format
    }

    fn bare(&self, x: f64) -> String {
        match self.style {
            _ if x.is_nan() => "nan".into(),
            _ if x.is_infinite() => if x > 0.0 { "inf" } else { "-inf" }.into(),
            Style::Whole => format!("{x:.0}."),
            Style::Fixed => format!("{x:.*}", self.precision),
            Style::PowersOfTen => powers_of_ten(x, self.precision),
        }
    }

    fn text(&self, x: f64) -> String {
        format!("{:>width$}", self.bare(x), width = self.width)
    }
}

/// As C's `%e`: the exponent has a sign and at least two digits.
fn powers_of_ten(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}
