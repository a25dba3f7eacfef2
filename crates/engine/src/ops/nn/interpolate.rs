//! Interpolation: tensors with more, or fewer, elements in their last dimensions.

use super::resampled::Resampled;
use super::spatial::{Spatial, format_of, with_last};
use super::taps::{Filter, Grid, fixed_point};
use crate::Tensor;
use crate::backend::spatial::Taps;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use flambeau_base::{DType, Error, Result, show};
use smallvec::SmallVec;
use std::sync::Arc;

/// How a tensor is interpolated.
#[derive(Clone, Copy, Debug)]
pub struct Interpolation {
    /// How values between elements are made.
    pub filter: Filter,
    /// Whether the middles of the first and last elements keep their places, instead of their outer edges.
    pub align_corners: bool,
    /// Whether the filter widens where the tensor shrinks.
    pub antialias: bool,
}

/// A size to interpolate to, with the factor that says where elements lie, where that is not the quotient of the sizes.
type Target = SmallVec<[(usize, Option<f64>); 3]>;

fn check(op: &'static str, x: &Tensor, target: &Target) -> Result<()> {
    let n = target.len();
    if x.ndim() != n + 2 {
        return Err(Error::runtime(format!(
            "{op}: It is expected input_size equals to {}, but got size {}: shape {}",
            n + 2,
            x.ndim(),
            show(x.shape())
        )));
    }
    let sizes = &x.shape()[2..];
    if sizes.contains(&0) || target.iter().any(|t| t.0 == 0) {
        let results: Spatial = target.iter().map(|t| t.0).collect();
        return Err(Error::runtime(format!(
            "{op}: Input and output sizes should be greater than 0, but got input {} output {}",
            show(sizes),
            show(&results)
        )));
    }
    let all: Spatial = target.iter().map(|t| t.0).collect();
    // Tables as long as the result are made first: a result that memory cannot hold is refused before.
    Tensor::empty(&with_last(x.shape(), &all), x.dtype(), x.device())?;
    if x.shape()[1] == 0 {
        return Err(Error::runtime(format!(
            "{op}: Non-empty {}D data tensor expected but got a tensor with sizes {}",
            n + 2,
            show(x.shape())
        )));
    }
    Ok(())
}

fn interpolate(op: &'static str, x: &Tensor, target: &Target, how: Interpolation) -> Result<Tensor> {
    check(op, x, target)?;
    let bytes = x.dtype() == DType::U8 && !matches!(how.filter, Filter::Linear if target.len() != 2);
    if !bytes {
        super::check_float(op, x.dtype())?;
    }
    let axis = |(i, &(output, factor)): (usize, &(usize, Option<f64>))| {
        let single = x.dtype() != DType::F64 && !(bytes && how.filter != Filter::Nearest && how.filter != Filter::NearestExact);
        let grid = Grid { input: x.shape()[2 + i], output, align_corners: how.align_corners, factor, single };
        Arc::new(if how.antialias { grid.antialiased(how.filter) } else { grid.taps(how.filter) })
    };
    let axes: SmallVec<[Arc<Taps>; 3]> = target.iter().enumerate().map(axis).collect();
    if bytes {
        return if axes[0].weight.is_empty() { picked(x, &axes) } else { of_bytes(op, x, &axes) };
    }
    Resampled { name: op, axes, ties: false, bits: 0 }.apply(x)
}

/// Elements picked along each dimension, of any dtype.
fn picked(x: &Tensor, axes: &[Arc<Taps>]) -> Result<Tensor> {
    if x.device().is_meta() {
        return empty(x, axes);
    }
    let mut out = x.clone();
    for (i, taps) in axes.iter().enumerate() {
        let index: Vec<i64> = taps.index.iter().map(|&i| i as i64).collect();
        out = out.index_select(2 + i as i64, &Tensor::from_slice(&index, &[index.len()])?)?;
    }
    out.copy_in(format_of(x))
}

fn empty(x: &Tensor, axes: &[Arc<Taps>]) -> Result<Tensor> {
    let last: Spatial = axes.iter().map(|a| a.output()).collect();
    Tensor::empty(&with_last(x.shape(), &last), x.dtype(), x.device())
}

/// Bytes, one dimension after the other from the last on, with weights in fixed point; each pass rounds to bytes.
fn of_bytes(op: &'static str, x: &Tensor, axes: &[Arc<Taps>]) -> Result<Tensor> {
    if x.device().is_meta() {
        return empty(x, axes);
    }
    let mut out = x.clone();
    for (i, taps) in axes.iter().enumerate().rev() {
        if taps.input == taps.output() {
            continue;
        }
        let (whole, bits) = fixed_point(taps);
        let each: SmallVec<[Arc<Taps>; 3]> =
            (0..axes.len()).map(|d| Arc::new(if d == i { whole.clone() } else { Taps::identity(out.shape()[2 + d]) })).collect();
        out = Resampled { name: op, axes: each, ties: false, bits }.apply(&out)?;
    }
    if out.is(x) { x.copy() } else { Ok(out) }
}

impl Tensor {
    /// The tensor (batch, channels, and one to three dimensions) with other sizes of its last dimensions.
    ///
    /// `RuntimeError` for other numbers of dimensions, for sizes of 0.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, ops::nn::{Filter, Interpolation}};
    /// # let _ = || -> flambeau_base::Result<()> {
    /// let x = Tensor::from_slice(&[0f32, 1.0], &[1, 1, 2])?;
    /// let how = Interpolation { filter: Filter::Linear, align_corners: true, antialias: false };
    /// assert_eq!(x.interpolate(&[3], how)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) };
    /// ```
    pub fn interpolate(&self, sizes: &[usize], how: Interpolation) -> Result<Tensor> {
        if !(1..=3).contains(&sizes.len()) {
            return Err(Error::runtime(format!("interpolate: sizes of one to three dimensions are expected, got {}", show(sizes))));
        }
        interpolate("interpolate", self, &sizes.iter().map(|&n| (n, None)).collect(), how)
    }
}

/// The sizes that a call asks for: as they stand, or the input's times factors.
fn target(a: &Args, op: &str, n: usize, size_at: usize, factors_at: usize) -> Result<Target> {
    let x = a.tensor(0)?;
    let factors: Option<Vec<f64>> = match a.values.get(factors_at) {
        None | Some(Value::None) => None,
        Some(Value::Floats(f)) if f.is_empty() => None,
        _ => Some(a.floats(factors_at)?),
    };
    let sizes = match &a.values[size_at] {
        Value::None => None,
        _ => Some(a.ints(size_at)?),
    };
    match (sizes, factors) {
        (Some(_), Some(_)) => Err(Error::runtime(format!("{op}: Must specify exactly one of output_size and scale_factors"))),
        (Some(sizes), None) if sizes.len() == n => sizes
            .iter()
            .map(|&s| {
                let size = usize::try_from(s);
                Ok((size.map_err(|_| Error::runtime(format!("{op}: output_size must be greater than 0, got {sizes:?}")))?, None))
            })
            .collect(),
        (Some(sizes), None) => Err(Error::runtime(format!("{op}: It is expected output_size equals to {n}, but got size {}", sizes.len()))),
        (None, Some(factors)) if factors.len() == n && x.ndim() == n + 2 => {
            if let Some(f) = factors.iter().find(|f| !f.is_finite()) {
                return Err(Error::runtime(format!("{op}: a scale factor is a finite number, got {f}")));
            }
            Ok(factors.iter().zip(&x.shape()[2..]).map(|(&f, &size)| ((size as f64 * f).max(0.0) as usize, Some(f))).collect())
        }
        (None, Some(factors)) => Err(Error::runtime(format!(
            "{op}: {n} scale factors and an input of {} dimensions are expected, got {factors:?} and shape {}",
            n + 2,
            show(x.shape())
        ))),
        (None, None) => Err(Error::runtime(format!("{op}: Must specify exactly one of output_size and scale_factors"))),
    }
}

/// Rows `(input, output_size?, scale_factors?)`.
fn nearest(a: &Args, op: &'static str, n: usize, filter: Filter) -> Result<Out> {
    let how = Interpolation { filter, align_corners: false, antialias: false };
    Ok(interpolate(op, a.tensor(0)?, &target(a, op, n, 1, 2)?, how)?.into())
}

/// Rows `(input, output_size?, align_corners, scale_factors?)`.
fn smooth(a: &Args, op: &'static str, n: usize, filter: Filter, antialias: bool) -> Result<Out> {
    let how = Interpolation { filter, align_corners: a.bool(2)?, antialias };
    Ok(interpolate(op, a.tensor(0)?, &target(a, op, n, 1, 3)?, how)?.into())
}

/// Rows `(self, output_size, align_corners, scales_h?, scales_w?)`: the scales say where elements lie only.
fn scaled(a: &Args, op: &'static str, filter: Filter) -> Result<Out> {
    let mut target = target(a, op, 2, 1, usize::MAX)?;
    for (i, (_, factor)) in target.iter_mut().enumerate() {
        *factor = a.opt_float(3 + i)?;
    }
    let how = Interpolation { filter, align_corners: a.bool(2)?, antialias: true };
    Ok(interpolate(op, a.tensor(0)?, &target, how)?.into())
}

const DOC_NEAREST: &str =
    "The nearest elements at `output_size` places, or at the input's sizes times `scale_factors`, along the last dimensions.";
const DOC_SMOOTH: &str = "Values between elements at `output_size` places, or at the input's sizes times `scale_factors`, along the last dimensions. With `align_corners` the middles of first and last elements keep their places, else their outer edges.";
const DOC_WIDE: &str = "Interpolation with a filter that widens where the tensor shrinks, so that no element is left out.";

const fn nn(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::NN).without_out()
}

pub(super) static OPS: &[Op] = &[
    nn("upsample_nearest1d(Tensor input, SymInt[]? output_size, float[]? scale_factors=None) -> Tensor", |a| nearest(a, "upsample_nearest1d", 1, Filter::Nearest))
        .doc(DOC_NEAREST)
        .samples(&["T(2,3,4), [7]", "T(2,3,5), None, [0.6]"]),
    nn("upsample_nearest2d(Tensor input, SymInt[]? output_size, float[]? scale_factors=None) -> Tensor", |a| nearest(a, "upsample_nearest2d", 2, Filter::Nearest))
        .doc(DOC_NEAREST)
        .samples(&["T(1,3,4,5), [7, 4]", "T(1,3,5,20), None, [2, 2]"]),
    nn("upsample_nearest3d(Tensor input, SymInt[]? output_size, float[]? scale_factors=None) -> Tensor", |a| nearest(a, "upsample_nearest3d", 3, Filter::Nearest))
        .doc(DOC_NEAREST)
        .samples(&["T(1,2,3,2,4), [2, 4, 5]"]),
    nn("_upsample_nearest_exact1d(Tensor input, SymInt[]? output_size, float[]? scale_factors=None) -> Tensor", |a| nearest(a, "_upsample_nearest_exact1d", 1, Filter::NearestExact))
        .doc(DOC_NEAREST)
        .samples(&["T(2,3,4), [7]"]),
    nn("_upsample_nearest_exact2d(Tensor input, SymInt[]? output_size, float[]? scale_factors=None) -> Tensor", |a| nearest(a, "_upsample_nearest_exact2d", 2, Filter::NearestExact))
        .doc(DOC_NEAREST)
        .samples(&["T(1,3,4,5), [7, 3]"]),
    nn("_upsample_nearest_exact3d(Tensor input, SymInt[]? output_size, float[]? scale_factors=None) -> Tensor", |a| nearest(a, "_upsample_nearest_exact3d", 3, Filter::NearestExact))
        .doc(DOC_NEAREST)
        .samples(&["T(1,2,3,2,4), [2, 4, 5]"]),
    nn("upsample_linear1d(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "upsample_linear1d", 1, Filter::Linear, false))
        .doc(DOC_SMOOTH)
        .samples(&["T(2,3,4), [7], False", "T(2,3,20), [33], True", "T(2,3,5), None, False, [0.6]"]),
    nn("upsample_bilinear2d(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "upsample_bilinear2d", 2, Filter::Linear, false))
        .doc(DOC_SMOOTH)
        .samples(&["T(1,2,4,5), [7, 3], False", "T(1,2,4,5), [7, 3], True", "T(1,2,3,20), None, False, [2, 1.5]"]),
    nn("upsample_trilinear3d(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "upsample_trilinear3d", 3, Filter::Linear, false))
        .doc(DOC_SMOOTH)
        .samples(&["T(1,2,3,2,4), [2, 4, 5], False", "T(1,1,3,2,4), [2, 4, 5], True"]),
    nn("upsample_bicubic2d(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "upsample_bicubic2d", 2, Filter::Cubic, false))
        .doc(DOC_SMOOTH)
        .samples(&["T(1,2,4,5), [7, 3], False", "T(1,2,4,5), [7, 3], True"]),
    nn("_upsample_bilinear2d_aa(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "_upsample_bilinear2d_aa", 2, Filter::Linear, true))
        .doc(DOC_WIDE)
        .samples(&["T(1,2,6,7), [3, 9], False"]),
    nn("_upsample_bilinear2d_aa.scales(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", |a| scaled(a, "_upsample_bilinear2d_aa", Filter::Linear))
        .doc(DOC_WIDE)
        .samples(&["T(1,2,6,7), [3, 9], False, 0.5, 1.2"]),
    nn("_upsample_bicubic2d_aa(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "_upsample_bicubic2d_aa", 2, Filter::Cubic, true))
        .doc(DOC_WIDE)
        .samples(&["T(1,2,6,7), [3, 9], False"]),
    nn("_upsample_bicubic2d_aa.scales(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", |a| scaled(a, "_upsample_bicubic2d_aa", Filter::Cubic))
        .doc(DOC_WIDE)
        .samples(&["T(1,2,6,7), [3, 9], False, 0.5, 1.2"]),
    nn("_upsample_lanczos2d_aa(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors=None) -> Tensor", |a| smooth(a, "_upsample_lanczos2d_aa", 2, Filter::Lanczos, true))
        .doc(DOC_WIDE)
        .samples(&["T(1,2,8,9), [3, 12], False"]),
];
