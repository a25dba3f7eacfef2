//! Tensors of one value, or of none in particular.

use super::{Options, sizes};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use flambeau_base::{DType, Device, Error, Layout, MemoryFormat, Result, Scalar};

impl Tensor {
    /// A contiguous tensor of ones.
    pub fn ones(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::full(shape, Scalar::Int(1), dtype, device)
    }

    /// Zeros laid out like this tensor.
    pub fn zeros_like(&self) -> Result<Tensor> {
        Tensor::zeros_layout(
            Layout::in_format("zeros_like", self.shape(), MemoryFormat::Preserve, Some(self.layout()))?,
            self.dtype(),
            self.device(),
        )
    }

    /// Ones laid out like this tensor.
    pub fn ones_like(&self) -> Result<Tensor> {
        let out = self.empty_like()?;
        out.fill_(1)?;
        Ok(out)
    }

    /// A tensor laid out like this one, its values not set.
    pub fn empty_like(&self) -> Result<Tensor> {
        Tensor::empty_layout(
            Layout::in_format("empty_like", self.shape(), MemoryFormat::Preserve, Some(self.layout()))?,
            self.dtype(),
            self.device(),
        )
    }

    /// The identity matrix of `n` rows and `m` columns.
    pub fn eye(n: usize, m: usize, dtype: DType, device: Device) -> Result<Tensor> {
        let out = Tensor::zeros(&[n, m], dtype, device)?;
        if !device.is_meta() {
            let diagonal = Layout::strided("eye", &[n.min(m)], &[m as isize + 1], 0)?;
            crate::ops::pointwise::fill_with(&out.alias_with(diagonal, dtype), Scalar::Int(1))?;
        }
        Ok(out)
    }
}

fn filled(t: Tensor, value: Scalar) -> Result<Tensor> {
    value.checked_for("full", t.dtype())?;
    if !t.device().is_meta() {
        crate::ops::pointwise::fill_with(&t, value)?;
    }
    Ok(t)
}

fn zeros(a: &Args) -> Result<Out> {
    let o = Options::of(a, 1)?;
    o.finish(Tensor::zeros(&sizes("zeros", &a.ints(0)?)?, o.float(), o.device)?)
}

fn ones(a: &Args) -> Result<Out> {
    let o = Options::of(a, 1)?;
    o.finish(Tensor::ones(&sizes("ones", &a.ints(0)?)?, o.float(), o.device)?)
}

fn empty(a: &Args) -> Result<Out> {
    let o = Options::of(a, 1)?;
    let layout = Layout::in_format("empty", &sizes("empty", &a.ints(0)?)?, a.opt_memory_format(6)?.unwrap_or_default(), None)?;
    o.finish(Tensor::empty_layout(layout, o.float(), o.device)?)
}

fn empty_strided(a: &Args) -> Result<Out> {
    let o = Options::of(a, 2)?;
    let strides: Vec<isize> = a.ints(1)?.iter().map(|&s| s as isize).collect();
    o.finish(Tensor::empty_strided(&sizes("empty_strided", &a.ints(0)?)?, &strides, o.float(), o.device)?)
}

/// `empty_permuted`: dense, with the dimensions in memory in the order given.
fn empty_permuted(a: &Args) -> Result<Out> {
    let (o, size, order) = (Options::of(a, 2)?, sizes("empty_permuted", &a.ints(0)?)?, a.ints(1)?);
    let order: Vec<usize> = order.iter().filter_map(|&d| usize::try_from(d).ok()).collect();
    let distinct = (0..size.len()).all(|d| order.contains(&d));
    if order.len() != size.len() || !distinct {
        return Err(Error::runtime(format!(
            "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {} is not equal to len(physical_layout) = {}, or a dimension is there twice",
            size.len(),
            order.len()
        )));
    }
    o.finish(Tensor::empty_layout(Layout::in_order(&size, &order)?, o.float(), o.device)?)
}

fn new_empty_strided(a: &Args) -> Result<Out> {
    let (t, o) = (a.tensor(0)?, Options::of(a, 3)?);
    let strides: Vec<isize> = a.ints(2)?.iter().map(|&s| s as isize).collect();
    let device = a.opt_device(5)?.unwrap_or(t.device());
    o.finish(Tensor::empty_strided(&sizes("new_empty_strided", &a.ints(1)?)?, &strides, o.dtype.unwrap_or(t.dtype()), device)?)
}

/// `fill`: the value everywhere, with gradients for it and zeros for what it replaces.
fn fill(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    if let Value::Tensor(v) = &a.values[1]
        && v.ndim() > 0
    {
        return Err(Error::runtime(format!(
            "fill: fill only supports 0-dimension value tensor but got tensor with {} dimensions.",
            v.ndim()
        )));
    }
    let everywhere = Tensor::ones(&[], DType::Bool, t.device())?.expand_to(t.shape())?;
    Ok(t.masked_fill(&everywhere, a.operand(1)?)?.into())
}

fn full(a: &Args) -> Result<Out> {
    let (o, value) = (Options::of(a, 2)?, a.scalar(1)?);
    o.finish(filled(Tensor::empty(&sizes("full", &a.ints(0)?)?, o.dtype.unwrap_or(value.dtype()), o.device)?, value)?)
}

fn eye(a: &Args) -> Result<Out> {
    let (n, at) = (a.int(0)?, if matches!(a.values[1], Value::Int(_)) { 2 } else { 1 });
    let m = if at == 2 { a.int(1)? } else { n };
    let o = Options::of(a, at)?;
    let size = sizes("eye", &[n, m])?;
    o.finish(Tensor::eye(size[0], size[1], o.float(), o.device)?)
}

/// A tensor like another: parameters dtype, layout, device, pin_memory, requires_grad from `i` on, then the memory format.
fn like(a: &Args, i: usize) -> Result<(Options, Tensor)> {
    let (t, mut o) = (a.tensor(0)?, Options::of(a, i)?);
    o.device = a.opt_device(i + 2)?.unwrap_or(t.device());
    let format = a.opt_memory_format(i + 5)?.unwrap_or(MemoryFormat::Preserve);
    let layout = Layout::in_format(a.name, t.shape(), format, Some(t.layout()))?;
    let made = Tensor::empty_layout(layout, o.dtype.unwrap_or(t.dtype()), o.device)?;
    Ok((o, made))
}

fn filled_like(a: &Args, value: Scalar) -> Result<Out> {
    let (o, t) = like(a, 1)?;
    o.finish(filled(t, value)?)
}

/// `new_*` methods: the dtype and device of `self` unless given.
fn new(a: &Args, i: usize) -> Result<(Options, Tensor)> {
    let (t, mut o) = (a.tensor(0)?, Options::of(a, i)?);
    o.device = a.opt_device(i + 2)?.unwrap_or(t.device());
    let made = Tensor::empty(&sizes(a.name, &a.ints(1)?)?, o.dtype.unwrap_or(t.dtype()), o.device)?;
    Ok((o, made))
}

fn scalar_tensor(a: &Args) -> Result<Out> {
    let o = Options::of(a, 1)?;
    o.finish(filled(Tensor::empty(&[], o.float(), o.device)?, a.scalar(0)?)?)
}

fn zero_(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.zero_()?.clone().into())
}

fn fill_(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    if let Value::Tensor(v) = &a.values[1]
        && v.ndim() > 0
    {
        return Err(Error::runtime(format!(
            "fill_: fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
            v.ndim()
        )));
    }
    t.fill_(a.operand(1)?)?;
    Ok(t.clone().into())
}

fn copy_(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.copy_(a.tensor(1)?)?.clone().into())
}

const METHOD: u8 = place::METHOD;
const TORCH: u8 = place::TORCH;

pub(super) static OPS: &[Op] = &[
    function("zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", zeros)
        .doc("A tensor of zeros.")
        .places(TORCH)
        .samples(&["[2, 3]", "[2, 0], dtype=int64"]),
    function("ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", ones)
        .doc("A tensor of ones.")
        .places(TORCH)
        .samples(&["[2, 3]", "[3], dtype=bool"]),
    function("empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", empty)
        .doc("A tensor whose values are not set.")
        .places(TORCH),
    function("empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", empty_strided)
        .doc("A tensor of these sizes and strides whose values are not set.")
        .places(TORCH)
        .without_out(),
    function("empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", empty_permuted)
        .doc("A tensor without gaps whose values are not set; its dimensions lie in memory in the order `physical_layout`, the last one fastest.")
        .places(TORCH)
        .without_out(),
    function("new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", new_empty_strided)
        .doc("A tensor of these sizes and strides in the dtype and on the device of `self` whose values are not set.")
        .places(METHOD)
        .without_out(),
    function("fill(Tensor self, Tensor value) -> Tensor", fill)
        .doc("`value`, a number or a 0-dimensional tensor, in the shape and dtype of `self`.")
        .places(TORCH)
        .samples(&["T(2,3), 1.5", "T(2,3), T()"])
        .without_out(),
    function("full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", full)
        .doc("A tensor of one value, in the value's own dtype unless one is given.")
        .places(TORCH)
        .samples(&["[2, 3], 1.5", "[2], 7", "[2], True"]),
    function("eye.m(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", eye)
        .doc("A matrix of `n` rows and `m` columns with ones on the diagonal.")
        .places(TORCH)
        .samples(&["2, 3"]),
    function("eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", eye)
        .doc("The identity matrix of `n` rows.")
        .places(TORCH)
        .samples(&["3"]),
    function("scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", scalar_tensor)
        .doc("A 0-dimensional tensor for a number.")
        .places(TORCH)
        .samples(&["1.5"])
        .without_out(),
    function("zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| filled_like(a, Scalar::Int(0)))
        .doc("Zeros in the shape, dtype and order of dimensions of `self`.")
        .places(TORCH)
        .samples(&["T(2,3)"])
        .without_out(),
    function("ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| filled_like(a, Scalar::Int(1)))
        .doc("Ones in the shape, dtype and order of dimensions of `self`.")
        .places(TORCH)
        .samples(&["T(2,3)"])
        .without_out(),
    function("empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| {
        let (o, t) = like(a, 1)?;
        o.finish(t)
    })
    .doc("A tensor in the shape, dtype and order of dimensions of `self` whose values are not set.")
    .places(TORCH)
    .without_out(),
    function("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| {
        let (o, t) = like(a, 2)?;
        o.finish(filled(t, a.scalar(1)?)?)
    })
    .doc("One value in the shape, dtype and order of dimensions of `self`.")
    .places(TORCH)
    .samples(&["T(2,3), 1.5"])
    .without_out(),
    function("new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| {
        let (o, t) = new(a, 2)?;
        o.finish(filled(t, Scalar::Int(0))?)
    })
    .doc("Zeros in the dtype and on the device of `self`.")
    .places(METHOD)
    .samples(&["T(2), [2, 3]"])
    .without_out(),
    function("new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| {
        let (o, t) = new(a, 2)?;
        o.finish(filled(t, Scalar::Int(1))?)
    })
    .doc("Ones in the dtype and on the device of `self`.")
    .places(METHOD)
    .samples(&["T(2), [2, 3]"])
    .without_out(),
    function("new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| {
        let (o, t) = new(a, 2)?;
        o.finish(t)
    })
    .doc("A tensor in the dtype and on the device of `self` whose values are not set.")
    .places(METHOD)
    .without_out(),
    function("new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| {
        let (o, t) = new(a, 3)?;
        o.finish(filled(t, a.scalar(2)?)?)
    })
    .doc("One value in the dtype and on the device of `self`.")
    .places(METHOD)
    .samples(&["T(2), [2, 3], 1.5"])
    .without_out(),
    function("zero_(Tensor(a!) self) -> Tensor(a!)", zero_).doc("Sets every element to zero.").samples(&["T(2,3)"]).without_out(),
    function("fill_(Tensor(a!) self, Tensor value) -> Tensor(a!)", fill_)
        .doc("Sets every element to `value`, a number or a 0-dimensional tensor.")
        .samples(&["T(2,3), 1.5"])
        .without_out(),
    function("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", copy_)
        .doc("Copies values, broadcast and converted, from `src`.")
        .places(METHOD)
        .samples(&["T(2,3), T(3)"])
        .without_out(),
];
