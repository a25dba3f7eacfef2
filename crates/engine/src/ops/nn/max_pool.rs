//! Largest elements of windows, with the places that they came from.

use super::pool::{Given, Window, adaptive_range, adaptive_sizes};
use super::spatial::{channels_last, into_packed_in, packed_in, spatial_format, with_last};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::spatial as kernel;
use crate::ops::Outputs;
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::vectorize::Batch;
use crate::transform::{bind, bind1};
use flambeau_base::{DType, Error, Layout, MemoryFormat, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::Arc;

/// The windows of a pool, for the last one to three dimensions.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// First element and number of elements of each window.
    pub each: SmallVec<[Vec<(u32, u32)>; 3]>,
    /// The sizes of the result.
    pub results: SmallVec<[usize; 3]>,
    /// Whether each element of the dimensions in front has windows of its own.
    pub apart: bool,
    /// How far apart the elements of a window are.
    pub dilation: SmallVec<[usize; 3]>,
    /// Along the last dimension: from where on, and up to where, windows are whole, and how far apart these are.
    pub whole: (usize, usize, usize),
}

impl Windows {
    fn regular(windows: &[Window], sizes: &[usize], results: &[usize]) -> Windows {
        let of = |(i, window): (usize, &Window)| {
            let at = |j| {
                let (first, there) = window.inside(j, sizes[i]);
                (first as u32, there as u32)
            };
            (0..results[i]).map(at).collect::<Vec<_>>()
        };
        let each: SmallVec<[Vec<(u32, u32)>; 3]> = windows.iter().enumerate().map(of).collect();
        let (mut whole, mut stride) = ((0, 0), 1);
        if let (Some(last), Some(window)) = (each.last(), windows.last()) {
            let there = |w: &&(u32, u32)| w.1 as usize == window.kernel;
            let from = last.iter().position(|w| there(&w)).unwrap_or(0);
            whole = (from, from + last[from..].iter().take_while(there).count());
            stride = window.stride;
        }
        let dilation = windows.iter().map(|w| w.dilation).collect();
        Windows { each, results: results.iter().copied().collect(), apart: false, dilation, whole: (whole.0, whole.1, stride) }
    }

    /// Windows of which each has a first element and a size.
    pub fn ranges(each: SmallVec<[Vec<(u32, u32)>; 3]>, results: &[usize], apart: bool) -> Windows {
        // Parts of one size, as far apart as they are large.
        let even = |w: &[(u32, u32)]| w.windows(2).all(|p| p[0].1 == p[1].1 && p[1].0 == p[0].0 + p[0].1);
        let whole = match each.last() {
            Some(last) if !apart && even(last) => (0, last.len(), last.first().map_or(1, |w| w.1 as usize)),
            _ => (0, 0, 1),
        };
        Windows { dilation: smallvec![1; each.len()], each, results: results.iter().copied().collect(), apart, whole }
    }
}

/// Largest elements of windows; with `places` a second result says where in the pooled dimensions they are.
#[derive(Clone, Debug)]
pub(super) struct MaxPool {
    pub name: &'static str,
    pub windows: Arc<Windows>,
    pub places: bool,
}

impl MaxPool {
    /// Carries it out; the places come second where they are wanted or a gradient will need them.
    fn apply(mut self, x: &Tensor) -> Result<SmallVec<[Tensor; 1]>> {
        self.places |= x.is_followed();
        bind(&self, &[x])
    }

    /// In what order elements are looked at, and results lie.
    fn format(&self, x: &Tensor) -> MemoryFormat {
        if self.windows.apart { MemoryFormat::Contiguous } else { spatial_format(x, self.windows.results.len()) }
    }

    fn run_kernel(&self, x: &Tensor, out: &Tensor, places: Option<&Tensor>) -> Result<()> {
        let w = &*self.windows;
        let n = w.results.len();
        let (lead, last) = x.shape().split_at(x.ndim() - n);
        let inner = if channels_last(self.format(x)) { lead[1] } else { 1 };
        let (mut sizes, mut results, mut dilation) = ([1; 3], [1; 3], [1; 3]);
        sizes[3 - n..].copy_from_slice(last);
        results[3 - n..].copy_from_slice(&w.results);
        dilation[3 - n..].copy_from_slice(&w.dilation);
        let outer = lead.iter().product::<usize>() / inner;
        let all = vec![(0, 1); if w.apart { outer } else { 1 }];
        let mut windows: [&[(u32, u32)]; 3] = [&all; 3];
        for (place, axis) in windows[3 - n..].iter_mut().zip(&w.each) {
            *place = axis;
        }
        let call = kernel::MaxPool {
            dtype: x.dtype(),
            outer,
            inner,
            sizes,
            results,
            windows,
            apart: w.apart,
            dilation,
            whole: w.whole,
            input: x.data_ptr()?,
            out: out.data_ptr_mut()?,
            places: places.map_or(Ok(std::ptr::null_mut()), |p| p.data_ptr_mut())?.cast(),
        };
        // SAFETY: all are dense in one format, of the sizes that `infer` gave; windows lie inside the input.
        unsafe { backend(x.device())?.max_pool(&call) }
    }
}

impl Primitive for MaxPool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        if x.dtype().is_complex() || x.dtype() == DType::Bool {
            return Err(Error::not_implemented(format!("{}: not implemented for {}", self.name, x.dtype())));
        }
        let layout = Layout::in_format(self.name, &with_last(x.shape(), &self.windows.results), self.format(x), None)?;
        let mut specs = smallvec![OutSpec { layout: layout.clone(), dtype: x.dtype() }];
        if self.places {
            specs.push(OutSpec { layout, dtype: DType::I64 });
        }
        Ok(specs)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let format = self.format(inputs[0]);
        let mut x = packed_in(inputs[0], format)?;
        let integral = x.dtype().is_integral() && x.dtype() != DType::I64;
        if integral {
            x = x.alias().to_dtype(DType::I64)?;
        }
        let places = |f: &dyn Fn(Option<&Tensor>) -> Result<()>| match outputs.get(1) {
            Some(places) => into_packed_in(places, format, |places| f(Some(places))),
            None => f(None),
        };
        if integral {
            let out = Tensor::empty_layout(Layout::in_format(self.name, outputs[0].shape(), format, None)?, DType::I64, x.device())?;
            places(&|places| self.run_kernel(&x, &out, places))?;
            return crate::ops::copy_into(&outputs[0], &out);
        }
        into_packed_in(&outputs[0], format, |out| places(&|places| self.run_kernel(&x, out, places)))
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        let back = MaxPoolBackward { name: self.name, n: self.windows.results.len() };
        Ok(smallvec![Some(bind1(&back, &[&grad, &cx.input(0)?, &cx.output(1)?.alias()])?)])
    }

    fn reads(&self) -> Reads {
        Reads::both(0b1, 0b10)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_all(self)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The derivative of [`MaxPool`]: inputs are the gradient, the input of the pool (for its shape), the places.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxPoolBackward {
    pub name: &'static str,
    pub n: usize,
}

impl Primitive for MaxPoolBackward {
    fn name(&self) -> &'static str {
        "max_pool_backward"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let [grad, x, places] = [inputs[0], inputs[1], inputs[2]];
        super::check_float(self.name, grad.dtype())?;
        if grad.shape() != places.shape() || grad.ndim() != x.ndim() || grad.dtype() != x.dtype() || places.dtype() != DType::I64 {
            return Err(Error::runtime(format!(
                "{}: the gradient ({} {}) must have the shape of the indices (int64, got {} {}) and the dtype of the input ({} {})",
                self.name,
                grad.dtype(),
                show(grad.shape()),
                places.dtype(),
                show(places.shape()),
                x.dtype(),
                show(x.shape())
            )));
        }
        Ok(smallvec![OutSpec { layout: Layout::in_format(self.name, x.shape(), spatial_format(x, self.n), None)?, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let x = inputs[1];
        if x.numel() == 0 {
            return Ok(());
        }
        let format = spatial_format(x, self.n);
        let (grad, places) = (packed_in(inputs[0], format)?, packed_in(inputs[2], format)?);
        let (lead, last) = x.shape().split_at(x.ndim() - self.n);
        let inner = if channels_last(format) { lead[1] } else { 1 };
        into_packed_in(&outputs[0], format, |out| {
            let call = kernel::MaxPoolBackward {
                dtype: out.dtype(),
                outer: lead.iter().product::<usize>() / inner,
                inner,
                input: last.iter().product(),
                results: grad.shape()[lead.len()..].iter().product(),
                grad: grad.data_ptr()?,
                places: places.data_ptr()?.cast(),
                out: out.data_ptr_mut()?,
            };
            // SAFETY: all are dense in one format, of the sizes that `infer` checked; the kernel checks the places.
            unsafe { backend(out.device())?.max_pool_backward(&call) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None; 3]) };
        let (x, places) = (cx.input(1)?, cx.input(2)?);
        let found = if cx.needs(0) { Some(taken(&g, &places, self.n)?) } else { None };
        let of_x = if cx.needs(1) { Some(x.zeros_like()?) } else { None };
        Ok(smallvec![found, of_x, None])
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b110)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_all(self)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The elements at places in the last `n` dimensions.
fn taken(x: &Tensor, places: &Tensor, n: usize) -> Result<Tensor> {
    let flat = |t: &Tensor| t.flatten((t.ndim() - n) as i64, -1);
    flat(x)?.gather(-1, &flat(places)?)?.reshape_to(places.shape())
}

/// Carries out a pool whose windows are at hand: the result, and the places where they are wanted.
pub(super) fn pooled(name: &'static str, x: &Tensor, windows: Windows, places: bool) -> Result<(Tensor, Option<Tensor>)> {
    let mut found = MaxPool { name, windows: Arc::new(windows), places }.apply(x)?;
    let places = if found.len() > 1 { found.pop() } else { None };
    let out = found.pop().ok_or_else(|| Error::runtime(format!("{name}: gave no result")))?;
    Ok((out, places))
}

/// Largest elements of windows over the last `n` dimensions.
pub(super) fn largest(name: &'static str, x: &Tensor, n: usize, given: &Given, places: bool) -> Result<(Tensor, Option<Tensor>)> {
    let shape = given.over(name, x, n)?;
    pooled(name, x, Windows::regular(&shape.windows, &x.shape()[x.ndim() - n..], &shape.results), places)
}

/// Largest elements of the parts into which the last dimensions are cut.
pub(super) fn adaptive(name: &'static str, x: &Tensor, results: &[usize]) -> Result<(Tensor, Option<Tensor>)> {
    super::check_float(name, x.dtype())?;
    let sizes = &x.shape()[x.ndim() - results.len()..];
    let range = |i, n, count| {
        let (first, there) = adaptive_range(i, n, count);
        (first as u32, there as u32)
    };
    let each = sizes.iter().zip(results).map(|(&n, &count)| (0..count).map(|i| range(i, n, count)).collect()).collect();
    pooled(name, x, Windows::ranges(each, results, false), true)
}

/// Zeros, but for values at their places in the last dimensions, which have the sizes `last`.
pub(super) fn unpooled(name: &'static str, x: &Tensor, places: &Tensor, last: &[usize]) -> Result<Tensor> {
    if places.dtype() != DType::I64 {
        return Err(Error::runtime(format!("{name}: elements in indices should be type int64 but got: {}", places.dtype())));
    }
    if x.shape() != places.shape() {
        return Err(Error::runtime(format!(
            "{name}: Expected shape of indices to be same as that of the input tensor ({}) but got indices tensor with shape: {}",
            show(x.shape()),
            show(places.shape())
        )));
    }
    let n = last.len();
    let flat = |t: &Tensor| t.flatten((t.ndim() - n) as i64, -1);
    let mut sizes = with_last(x.shape(), last);
    let whole = sizes.clone();
    sizes.truncate(x.ndim() - n);
    sizes.push(last.iter().product());
    let zeros = Tensor::zeros(&sizes, x.dtype(), x.device())?;
    let out = zeros.scatter(-1, &flat(places)?, &flat(x)?)?.reshape_to(&whole)?;
    let format = spatial_format(x, n);
    if channels_last(format) { out.copy_in(format) } else { Ok(out) }
}

impl Tensor {
    /// The largest elements of windows over the last two dimensions of (channels, height, width), with a batch dimension in
    /// front or not; a second result says where they are, counted through height and width.
    ///
    /// An empty `stride` is the kernel size. `RuntimeError` for windows that do not fit.
    ///
    /// ```
    /// # use flambeau_engine::Tensor;
    /// # let _ = || -> flambeau_base::Result<()> {
    /// let x = Tensor::from_slice(&[1f32, 2.0, 4.0, 3.0], &[1, 2, 2])?;
    /// let (most, place) = x.max_pool2d_with_indices(&[2], &[], &[0], &[1], false)?;
    /// assert_eq!((most.to_vec::<f32>()?, place.to_vec::<i64>()?), (vec![4.0], vec![2]));
    /// # Ok(()) };
    /// ```
    pub fn max_pool2d_with_indices(
        &self,
        kernel: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil: bool,
    ) -> Result<(Tensor, Tensor)> {
        let given = Given { kernel, stride, padding, dilation, ceil };
        let (out, places) = largest("max_pool2d", self, 2, &given, true)?;
        Ok((out, places.ok_or_else(|| Error::runtime("max_pool2d: gave no indices"))?))
    }

    /// The largest elements of windows over the last two dimensions of (channels, height, width), with a batch dimension in
    /// front or not.
    ///
    /// An empty `stride` is the kernel size. `RuntimeError` for windows that do not fit.
    ///
    /// ```
    /// # use flambeau_engine::Tensor;
    /// # let _ = || -> flambeau_base::Result<()> {
    /// let x = Tensor::from_slice(&[1f32, 2.0, 4.0, 3.0], &[1, 2, 2])?;
    /// assert_eq!(x.max_pool2d(&[2], &[], &[0], &[1], false)?.to_vec::<f32>()?, [4.0]);
    /// # Ok(()) };
    /// ```
    pub fn max_pool2d(&self, kernel: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64], ceil: bool) -> Result<Tensor> {
        Ok(largest("max_pool2d", self, 2, &Given { kernel, stride, padding, dilation, ceil }, false)?.0)
    }
}

/// See [`adaptive_sizes`].
pub(super) fn adaptive_row(a: &crate::ops::table::Args, name: &'static str, n: usize) -> Result<crate::ops::Out> {
    let x = a.tensor(0)?;
    let (out, places) = adaptive(name, x, &adaptive_sizes(a, x, n)?)?;
    Ok(crate::ops::Out::Tuple(std::iter::once(out).chain(places).collect()))
}

/// The transpose of a pool whose input was `x`.
pub(super) fn backward(name: &'static str, grad: &Tensor, x: &Tensor, places: &Tensor, n: usize) -> Result<Tensor> {
    bind1(&MaxPoolBackward { name, n }, &[grad, x, places])
}
