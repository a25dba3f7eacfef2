//! Values of images and volumes at places that a tensor names.
//!
//! Source: Jaderberg and others, "Spatial transformer networks", 2015.

use super::check_float;
use super::spatial::tied;
use crate::Tensor;
use crate::autograd::{Cx, Grads, no_grad};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Outputs, Primitive, Reads, copy_into};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// How values between elements are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Linear,
    Nearest,
    Cubic,
}

/// What lies outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Copy, Debug)]
struct Sampler {
    mode: Mode,
    outside: Outside,
    align_corners: bool,
}

impl Sampler {
    fn new(op: &str, mode: i64, outside: i64, align_corners: bool) -> Result<Sampler> {
        let mode = match mode {
            0 => Mode::Linear,
            1 => Mode::Nearest,
            2 => Mode::Cubic,
            _ => return Err(Error::runtime(format!("{op}: interpolation_mode must be 0, 1 or 2, got {mode}"))),
        };
        let outside = match outside {
            0 => Outside::Zeros,
            1 => Outside::Border,
            2 => Outside::Reflection,
            _ => return Err(Error::runtime(format!("{op}: padding_mode must be 0, 1 or 2, got {outside}"))),
        };
        Ok(Sampler { mode, outside, align_corners })
    }

    /// From -1 to 1 over a dimension of `n` elements, to places counted in elements.
    fn unnormalised(&self, x: &Tensor, n: usize) -> Result<Tensor> {
        match self.align_corners {
            true => x.add(1.0)?.mul((n as f64 - 1.0) / 2.0),
            false => x.add(1.0)?.mul(n as f64)?.sub(1.0)?.mul(0.5),
        }
    }

    /// Places brought inside, but for zeros outside.
    fn inside(&self, x: &Tensor, n: usize) -> Result<Tensor> {
        match self.outside {
            Outside::Zeros => Ok(x.clone()),
            Outside::Border => clipped(x, n),
            Outside::Reflection => clipped(&self.reflected(x, n)?, n),
        }
    }

    fn reflected(&self, x: &Tensor, n: usize) -> Result<Tensor> {
        let (low, span) = if self.align_corners { (0.0, n as f64 - 1.0) } else { (-0.5, n as f64) };
        if span == 0.0 {
            return x.mul(0.0);
        }
        let far = x.sub(low)?.abs()?;
        let (flips, rest) = (far.div(span)?.floor()?, far.remainder(span)?);
        let even = flips.remainder(2.0)?.eq(0.0)?;
        Tensor::where_(&even, &rest.add(low)?, &rest.neg()?.add(span + low)?)
    }
}

/// Places between the first and the last element; without a gradient at the ends.
fn clipped(x: &Tensor, n: usize) -> Result<Tensor> {
    let last = n as f64 - 1.0;
    Tensor::where_(&x.le(0.0)?, 0.0, &Tensor::where_(&x.ge(last)?, last, x)?)
}

/// Elements of one dimension that a value is made of: where they are, and their weights.
type Along = Vec<(Tensor, Option<Tensor>)>;

/// Keys' cubic for the four elements around a place that is `t` behind the second.
fn cubic_weights(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    let inner = |x: &Tensor| x.mul(A + 2.0)?.sub(A + 3.0)?.mul(x)?.mul(x)?.add(1.0);
    let outer = |x: &Tensor| x.mul(A)?.sub(5.0 * A)?.mul(x)?.add(8.0 * A)?.mul(x)?.sub(4.0 * A);
    let back = t.neg()?.add(1.0)?;
    Ok([outer(&t.add(1.0)?)?, inner(t)?, inner(&back)?, outer(&back.add(1.0)?)?])
}

impl Sampler {
    fn along(&self, x: &Tensor, n: usize) -> Result<Along> {
        let place = self.unnormalised(x, n)?;
        if self.mode == Mode::Cubic {
            let first = place.alias().floor()?;
            let weights = cubic_weights(&place.sub(&first)?)?;
            let element = |k: usize| self.inside(&first.add(k as f64 - 1.0)?, n);
            return weights.into_iter().enumerate().map(|(k, w)| Ok((element(k)?, Some(w)))).collect();
        }
        let place = self.inside(&place, n)?;
        if self.mode == Mode::Nearest {
            return Ok(vec![(place.alias().round()?, None)]);
        }
        let first = place.alias().floor()?;
        let second = first.add(1.0)?;
        let (before, behind) = (second.sub(&place)?, place.sub(&first)?);
        Ok(vec![(first, Some(before)), (second, Some(behind))])
    }

    /// Values at the places of `grid`, whose last dimension names the last dimension first.
    fn sample(&self, x: &Tensor, grid: &Tensor) -> Result<Tensor> {
        let n = grid.ndim() - 2;
        let sizes = &x.shape()[2..];
        let (batch, channels) = (x.shape()[0], x.shape()[1]);
        let results: SmallVec<[usize; 3]> = grid.shape()[1..=n].iter().copied().collect();
        let count = results.iter().product::<usize>() as i64;
        let flat = x.reshape(&[batch as i64, channels as i64, sizes.iter().product::<usize>() as i64])?;
        let mut shape: SmallVec<[usize; 6]> = smallvec![batch, channels];
        shape.extend(results);
        if count == 0 || batch == 0 {
            return tied(flat.sum()?.mul(0.0)?.expand_to(&shape)?, grid);
        }
        let places = grid.reshape(&[batch as i64, count, n as i64])?;
        let axes = (0..n).map(|d| self.along(&places.select(-1, (n - 1 - d) as i64)?, sizes[d])).collect::<Result<Vec<Along>>>()?;
        let mut sum: Option<Tensor> = None;
        for corner in 0..axes.iter().map(Vec::len).product::<usize>() {
            let term = self.term(&flat, &axes, sizes, corner)?;
            sum = Some(match sum {
                Some(s) => s.add(&term)?,
                None => term,
            });
        }
        let out = sum.unwrap_or(flat).reshape_to(&shape)?;
        Ok(out)
    }

    /// Carries it out. Nearest elements have a node of their own, whose gradients depend on both inputs as PyTorch's do.
    fn apply(self, x: &Tensor, grid: &Tensor) -> Result<Tensor> {
        if self.mode == Mode::Nearest { bind1(&NearestSample(self), &[x, grid]) } else { self.sample(x, grid) }
    }

    /// The elements of one combination of the axes' elements, times their weights; zeros for those outside.
    fn term(&self, flat: &Tensor, axes: &[Along], sizes: &[usize], corner: usize) -> Result<Tensor> {
        let (mut rest, mut number, mut weight, mut there) = (corner, None::<Tensor>, None::<Tensor>, None::<Tensor>);
        for (axis, &size) in axes.iter().zip(sizes) {
            let (place, of_axis) = &axis[rest % axis.len()];
            rest /= axis.len();
            let last = size as f64 - 1.0;
            let inside = place.ge(0.0)?.logical_and(&place.le(last)?)?;
            let element = Tensor::where_(&inside, place, 0.0)?.to_dtype(DType::I64)?;
            number = Some(match number {
                Some(n) => n.mul(size as i64)?.add(&element)?,
                None => element,
            });
            there = Some(match there {
                Some(t) => t.logical_and(&inside)?,
                None => inside,
            });
            weight = match (weight, of_axis) {
                (Some(w), Some(more)) => Some(w.mul(more)?),
                (w, more) => w.or_else(|| more.clone()),
            };
        }
        let (Some(number), Some(there)) = (number, there) else { return Ok(flat.clone()) };
        let spread = |t: &Tensor| t.unsqueeze(1)?.expand(&[-1, flat.shape()[1] as i64, -1]);
        let mut values = flat.gather(-1, &spread(&number)?)?;
        if let Some(w) = weight {
            values = values.mul(&w.unsqueeze(1)?)?;
        }
        Tensor::where_(&there.unsqueeze(1)?, &values, 0.0)
    }
}

/// The nearest elements; the places have a gradient of zero.
#[derive(Clone, Copy, Debug)]
struct NearestSample(Sampler);

impl Primitive for NearestSample {
    fn name(&self) -> &'static str {
        "grid_sampler"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (x, grid) = (inputs[0], inputs[1]);
        let mut shape: SmallVec<[usize; 6]> = x.shape()[..2].iter().copied().collect();
        shape.extend_from_slice(&grid.shape()[1..grid.ndim() - 1]);
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&shape)?, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        copy_into(&outputs[0], &self.run(inputs)?[0])
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let _guard = no_grad();
        Ok(smallvec![self.0.sample(&inputs[0].alias(), &inputs[1].alias())?])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None, None]) };
        let (x, grid) = (cx.input(0)?, cx.input(1)?);
        let both = |g: Tensor| tied(tied(g, &x)?, &grid);
        let of_x = if cx.needs(0) {
            let f = |all: &[Tensor]| Ok(vec![self.0.sample(&all[0], &grid.alias())?]);
            let found = super::vjp_of(&f, std::slice::from_ref(&x), &[true], &[Some(grad)])?.remove(0);
            Some(both(found.map_or_else(|| x.zeros_like(), Ok)?)?)
        } else {
            None
        };
        let of_grid = if cx.needs(1) { Some(both(grid.zeros_like()?)?) } else { None };
        Ok(smallvec![of_x, of_grid])
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b11)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn check(op: &str, x: &Tensor, grid: &Tensor, dims: Option<usize>) -> Result<()> {
    let wrong = |what: String| {
        Err(Error::runtime(format!("{op}: {what}, got input of shape {} and grid of shape {}", show(x.shape()), show(grid.shape()))))
    };
    check_float(op, x.dtype())?;
    if x.dtype() != grid.dtype() {
        return wrong(format!("expected input and grid to have same dtype, but input has {} and grid has {}", x.dtype(), grid.dtype()));
    }
    if !matches!(x.ndim(), 4 | 5) || x.ndim() != grid.ndim() || dims.is_some_and(|d| x.ndim() != d + 2) {
        let want = dims.map_or("4D or 5D".to_owned(), |d| format!("{}D", d + 2));
        return wrong(format!("expected {want} input and grid with same number of dimensions"));
    }
    if x.shape()[0] != grid.shape()[0] {
        return wrong("expected grid and input to have same batch size".into());
    }
    if grid.shape()[grid.ndim() - 1] != x.ndim() - 2 {
        return wrong(format!("expected grid to have size {} in last dimension", x.ndim() - 2));
    }
    if x.shape()[2..].contains(&0) {
        return wrong("expected input to have non-empty spatial dimensions".into());
    }
    Ok(())
}

fn sampled(a: &Args, dims: Option<usize>) -> Result<Out> {
    let (x, grid) = (a.tensor(0)?, a.tensor(1)?);
    check(a.name, x, grid, dims)?;
    let sampler = Sampler::new(a.name, a.int(2)?, a.int(3)?, a.bool(4)?)?;
    let dtype = x.dtype();
    if dtype.is_reduced_float() {
        // Places need more digits than half precision has.
        return Ok(sampler.apply(&x.to_dtype(DType::F32)?, &grid.to_dtype(DType::F32)?)?.to_dtype(dtype)?.into());
    }
    Ok(sampler.apply(x, grid)?.into())
}

/// Places from -1 to 1 along a dimension: the middles of elements, or with `align_corners` from the first to the last.
fn steps(n: usize, align_corners: bool, dtype: DType, theta: &Tensor) -> Result<Tensor> {
    if n <= 1 {
        return Tensor::zeros(&[n], dtype, theta.device());
    }
    let even = Tensor::linspace(-1.0, 1.0, n, dtype, theta.device())?;
    if align_corners { Ok(even) } else { even.mul((n as f64 - 1.0) / n as f64) }
}

/// For each affine map of `theta`, (batch, d, d + 1), the places that it gives for the elements of a tensor of `size`.
fn affine_grid(theta: &Tensor, size: &[i64], align_corners: bool) -> Result<Tensor> {
    let op = "affine_grid_generator";
    let wrong = |what: &str| Err(Error::runtime(format!("{op}: {what}, got theta of shape {} and size {size:?}", show(theta.shape()))));
    let n = size.len().wrapping_sub(2);
    if !matches!(n, 2 | 3) {
        return wrong("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs");
    }
    if size.iter().any(|&s| s < 0) || theta.shape() != [size[0] as usize, n, n + 1] {
        return wrong("Expected a batch of affine matrices of shape Nx2x3 for 4D sizes and Nx3x4 for 5D sizes");
    }
    check_float(op, theta.dtype())?;
    let mut sizes: SmallVec<[usize; 6]> = size[2..].iter().map(|&s| s as usize).collect();
    let mut axes = Vec::new();
    for (d, &count) in sizes.iter().enumerate().rev() {
        let mut shape: SmallVec<[i64; 6]> = smallvec![1; n];
        shape[d] = count as i64;
        axes.push(steps(count, align_corners, theta.dtype(), theta)?.reshape(&shape)?.expand_to(&sizes)?);
    }
    axes.push(Tensor::ones(&sizes, theta.dtype(), theta.device())?);
    let base = crate::ops::join::stack(&axes.iter().collect::<Vec<_>>(), -1)?;
    let count: usize = sizes.iter().product();
    let flat = base.reshape(&[1, count as i64, n as i64 + 1])?.expand(&[size[0], -1, -1])?;
    sizes.insert(0, size[0] as usize);
    sizes.push(n);
    flat.matmul(&theta.transpose(1, 2)?)?.reshape_to(&sizes)
}

const fn row(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::TORCH).without_out()
}

const DOC: &str = "Values of `input` (batch, channels, two or three dimensions) at the places of `grid`, which names the last dimension first and runs from -1 to 1. `interpolation_mode`: 0 linear, 1 nearest, 2 cubic; `padding_mode`: 0 zeros, 1 border, 2 reflection; with `align_corners` -1 and 1 are the middles of the first and last elements, else their outer edges.";

pub(super) static OPS: &[Op] = &[
    row("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", |a| sampled(a, None))
        .autocast_full()
        .doc(DOC)
        .samples(&["T(1,2,4,5), T(1,3,2,2; -0.83..0.83), 0, 0, False", "T(1,2,2,4,3), T(1,2,1,3,3; -0.77..0.77), 0, 1, True"]),
    row("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", |a| sampled(a, Some(2)))
        .autocast_full()
        .doc(DOC)
        .samples(&["T(1,2,4,5), T(1,3,2,2; -0.83..0.83), 2, 0, False", "T(1,2,4,5), T(1,3,2,2; -0.83..0.83), 1, 1, True", "T(1,2,4,5), T(1,3,2,2; -1.83..1.83), 0, 2, False"]),
    row("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", |a| sampled(a, Some(3)))
        .autocast_full()
        .doc(DOC)
        .samples(&["T(1,2,2,4,3), T(1,2,1,3,3; -0.77..0.77), 0, 0, False"]),
    row("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", |a| Ok(affine_grid(a.tensor(0)?, &a.ints(1)?, a.bool(2)?)?.into()))
        .doc("For each affine map of `theta`, (batch, d, d + 1), the places from -1 to 1 that it gives for the elements of a tensor of `size`: a grid for `grid_sampler`.")
        .samples(&["T(2,2,3), [2, 1, 3, 4], False", "T(1,3,4), [1, 1, 2, 3, 2], True"]),
];
