//! Dropout of whole channels, dropout for self-normalising networks, and the randomised leaky ReLU.

use super::{draw, draw_by, generator, with_real};
use crate::Tensor;
use crate::ops::fft::real_of;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::random::Generator;
use flambeau_base::{DType, Error, Result, Scalar, show};
use smallvec::smallvec;

/// `-alpha * scale` of SELU: the value that it tends to. Source: Klambauer and others, "Self-normalizing neural networks", 2017.
const SELU_DEPTH: f64 = 1.758_099_340_847_376_6;

/// Which dropout is meant.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// One draw for each channel of each member of the batch.
    features: bool,
    /// Dropped elements take SELU's lowest value, and mean and variance are kept.
    alpha: bool,
}

fn drop(x: &Tensor, p: f64, training: bool, kind: Kind) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("{}: dropout probability has to be between 0 and 1, but got {p}", kind.name)));
    }
    if p == 0.0 || !training || x.numel() == 0 {
        return Ok(x.clone());
    }
    if p == 1.0 {
        return x.mul(0.0);
    }
    let noise = match kind.features {
        false => Tensor::empty_layout(x.empty_like()?.layout().clone(), real_of(x.dtype()), x.device())?,
        true => {
            let [batch, channels] = match *x.shape() {
                [batch, channels, ..] => [batch, channels],
                _ => {
                    return Err(Error::runtime(format!(
                        "{}: Feature dropout requires at least 2 dimensions in the input, got shape {}",
                        kind.name,
                        show(x.shape())
                    )));
                }
            };
            let mut shape = vec![1; x.ndim()];
            shape[..2].copy_from_slice(&[batch, channels]);
            Tensor::empty(&shape, real_of(x.dtype()), x.device())?
        }
    };
    let g = generator(None);
    if !kind.alpha {
        with_real!(kind.name, noise.dtype(), T => draw::<T>(&noise, &g, |s, out| s.dropout_mask(out, p)))?;
        return x.mul(&noise);
    }
    noise.bernoulli_(1.0 - p, None)?;
    let scale = 1.0 / ((SELU_DEPTH * SELU_DEPTH * p + 1.0) * (1.0 - p)).sqrt();
    let shift = noise.add(-1.0)?.mul(SELU_DEPTH * scale)?.add(SELU_DEPTH * scale * p)?;
    x.mul(&noise.mul(scale)?)?.add(&shift)
}

impl Tensor {
    /// Dropout of whole channels: one draw for each member of the batch and channel (Tompson et al., 2015).
    ///
    /// `RuntimeError` for fewer than 2 dimensions or a probability outside [0, 1].
    pub fn feature_dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        drop(self, p, training, Kind { name: "feature_dropout", features: true, alpha: false })
    }

    /// Dropout that sets elements to SELU's lowest value and keeps mean and variance (Klambauer et al., 2017).
    ///
    /// `RuntimeError` for a probability outside [0, 1].
    pub fn alpha_dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        drop(self, p, training, Kind { name: "alpha_dropout", features: false, alpha: true })
    }

    /// [`Tensor::alpha_dropout`] of whole channels.
    pub fn feature_alpha_dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        drop(self, p, training, Kind { name: "feature_alpha_dropout", features: true, alpha: true })
    }

    /// The elements, and in training those that are not above 0 times slopes drawn between `lower` and `upper`; else times their mean.
    ///
    /// `RuntimeError` where `lower` exceeds `upper`.
    pub fn rrelu(&self, lower: f64, upper: f64, training: bool, g: Option<Generator>) -> Result<Tensor> {
        if lower > upper {
            return Err(Error::runtime(format!(
                "rrelu: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
            )));
        }
        if !training {
            return self.leaky_relu((lower + upper) / 2.0);
        }
        let slopes = slopes(self, lower, upper, g)?;
        self.to_dtype(slopes.dtype())?.mul(&slopes)?.to_dtype(self.dtype())
    }
}

/// Slopes of the randomised leaky ReLU, drawn in row-major order; for bf16 in f32.
fn slopes(x: &Tensor, lower: f64, upper: f64, g: Option<Generator>) -> Result<Tensor> {
    let dtype = if x.dtype() == DType::BF16 { DType::F32 } else { x.dtype() };
    let slopes = Tensor::empty(x.shape(), dtype, x.device())?;
    if x.device().is_meta() {
        return Ok(slopes);
    }
    let (x, g) = (x.detach()?.to_dtype(dtype)?, generator(g));
    with_real!("rrelu", dtype, T => {
        let values = x.to_vec::<T>()?;
        draw_by::<T>(&slopes, &g, |s, out| s.rrelu_slopes(out, &values, lower, upper))
    })?;
    Ok(slopes)
}

fn rrelu(a: &Args) -> Result<Out> {
    let bound = |i: usize| a.scalar(i).map(Scalar::to_f64);
    Ok(a.tensor(0)?.rrelu(bound(1)?, bound(2)?, a.bool(3)?, a.opt_generator(4)?)?.into())
}

fn rrelu_with_noise(a: &Args) -> Result<Out> {
    let (x, noise) = (a.tensor(0)?, a.tensor(1)?);
    let (lower, upper) = (a.scalar(2)?.to_f64(), a.scalar(3)?.to_f64());
    if !a.bool(4)? {
        return Ok(x.rrelu(lower, upper, false, None)?.into());
    }
    let drawn = slopes(x, lower, upper, a.opt_generator(5)?)?;
    noise.copy_(&drawn)?;
    Ok(x.to_dtype(drawn.dtype())?.mul(&drawn)?.to_dtype(x.dtype())?.into())
}

fn native_dropout(a: &Args) -> Result<Out> {
    let (x, p) = (a.tensor(0)?, a.float(1)?);
    let mask = Tensor::empty_layout(x.empty_like()?.layout().clone(), DType::Bool, x.device())?;
    if x.numel() == 0 {
        return Ok(Out::Tuple(smallvec![x.clone(), mask]));
    }
    if a.opt_bool(2)? == Some(false) {
        crate::ops::pointwise::fill_with(&mask, Scalar::Bool(true))?;
        return Ok(Out::Tuple(smallvec![x.mul(1.0)?, mask]));
    }
    if x.dtype().is_integral() {
        return Err(Error::runtime(format!("native_dropout: result type Float can't be cast to the desired output type {}", x.dtype())));
    }
    mask.bernoulli_(1.0 - p, None)?;
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    Ok(Out::Tuple(smallvec![x.mul(&mask)?.mul(scale)?, mask]))
}

const fn dropping(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::TORCH).with_inplace().without_out()
}

pub(super) static OPS: &[Op] = &[
    dropping("feature_dropout(Tensor input, float p, bool train) -> Tensor", |a| {
        Ok(a.tensor(0)?.feature_dropout(a.float(1)?, a.bool(2)?)?.into())
    })
    .doc("Dropout of whole channels: one draw for each member of the batch and channel.")
    .samples(&["T(2,3,4), 0.5, False"]),
    dropping("alpha_dropout(Tensor input, float p, bool train) -> Tensor", |a| {
        Ok(a.tensor(0)?.alpha_dropout(a.float(1)?, a.bool(2)?)?.into())
    })
    .doc("Dropout that sets elements to SELU's lowest value and keeps mean and variance.")
    .samples(&["T(2,3), 0.5, False"]),
    dropping("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", |a| {
        Ok(a.tensor(0)?.feature_alpha_dropout(a.float(1)?, a.bool(2)?)?.into())
    })
    .doc("`alpha_dropout` of whole channels.")
    .samples(&["T(2,3,4), 0.5, False"]),
    dropping("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor", rrelu)
        .doc("The elements, and in training those that are not above 0 times slopes drawn between `lower` and `upper`; else times their mean.")
        .samples(&["T(2,3)", "T(2,3), 0.1, 0.3, True"]),
    function(
        "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
        rrelu_with_noise,
    )
    .doc("`rrelu` that leaves the slopes in `noise`.")
    .places(place::NN)
    .without_out(),
    function("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", native_dropout)
        .doc("Dropout and which elements were kept; `train` may be None, which is True.")
        .places(place::TORCH)
        .samples(&["T(2,3), 0.5, False"]),
    function("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", |a| {
        Ok(a.tensor(0)?.mul(&a.tensor(1)?.to_dtype(a.tensor(0)?.dtype())?)?.mul(a.float(2)?)?.into())
    })
    .doc("`grad_output * mask * scale`.")
    .places(place::TORCH)
    .samples(&["T(2,3), B(2,3), 2.0"]),
];
