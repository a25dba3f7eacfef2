//! Draws whose distribution is given by a tensor.

use super::{generator, with_drawable, with_real};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, out_rule, place};
use crate::random::{Generator, dirichlet_grad, gamma_grad};
use flambeau_base::{DType, Error, Result, show};

/// Ones with the probabilities in `p`, else zeros; drawn in logical order.
pub(super) fn bernoulli_each(p: &Tensor, dtype: DType, g: &Generator) -> Result<Tensor> {
    let out = Tensor::empty(p.shape(), dtype, p.device())?;
    with_real!("bernoulli", p.dtype(), P => {
        let p = p.to_vec::<P>()?;
        with_drawable!("bernoulli", dtype, T => super::draw_by::<T>(&out, g, |s, out| s.bernoulli_each(out, &p)))
    })?;
    Ok(out)
}

fn bernoulli(a: &Args) -> Result<Out> {
    let p = a.tensor(0)?;
    let drawn = bernoulli_each(p, p.dtype(), &generator(a.opt_generator(1)?))?;
    let out = if p.is_contiguous() || !p.layout().is_non_overlapping_and_dense() { drawn } else { drawn.laid_out_as(p.layout())? };
    Ok(super::drawn_from(&out, &[p])?.into())
}

fn bernoulli_p(a: &Args) -> Result<Out> {
    let out = a.tensor(0)?.empty_like()?;
    out.bernoulli_(a.float(1)?, a.opt_generator(2)?)?;
    Ok(super::drawn_from(&out, &[a.tensor(0)?])?.into())
}

impl Tensor {
    /// Draws `samples` categories for each row of weights (one row or a matrix), with or without replacement.
    pub fn multinomial(&self, samples: usize, replacement: bool, g: Option<Generator>) -> Result<Tensor> {
        let (rows, categories) = match *self.shape() {
            [n] => (1, n),
            [m, n] => (m, n),
            _ => {
                return Err(Error::runtime(format!("multinomial: prob_dist must be 1 or 2 dim, got shape {}", show(self.shape()))));
            }
        };
        let shape = if self.ndim() == 1 { vec![samples] } else { vec![rows, samples] };
        let out = Tensor::empty(&shape, DType::I64, self.device())?;
        let g = generator(g);
        with_real!("multinomial", self.dtype(), T => {
            let weights = self.to_vec::<T>()?;
            super::draw_by::<i64>(&out, &g, |s, out| s.multinomial(&weights, categories, out, samples, replacement))
        })?;
        Ok(out)
    }
}

fn multinomial(a: &Args) -> Result<Out> {
    let samples = a.int(1)?;
    let samples =
        usize::try_from(samples).map_err(|_| Error::runtime(format!("multinomial: cannot sample n_sample <= 0 samples, got {samples}")))?;
    Ok(a.tensor(0)?.multinomial(samples, a.bool(2)?, a.opt_generator(3)?)?.into())
}

fn poisson(a: &Args) -> Result<Out> {
    let (rates, g) = (a.tensor(0)?, generator(a.opt_generator(1)?));
    let out = Tensor::empty(rates.shape(), rates.dtype(), rates.device())?;
    with_real!("poisson", rates.dtype(), T => {
        let rates = rates.to_vec::<T>()?;
        super::draw_by::<T>(&out, &g, |s, out| s.poisson(out, &rates))
    })?;
    Ok(super::drawn_from(&out, &[a.tensor(0)?])?.into())
}

fn standard_gamma(a: &Args) -> Result<Out> {
    let (shapes, g) = (a.tensor(0)?, generator(a.opt_generator(1)?));
    let out = Tensor::empty(shapes.shape(), shapes.dtype(), shapes.device())?;
    with_real!("_standard_gamma", shapes.dtype(), T => {
        let shapes = shapes.to_vec::<T>()?;
        super::draw_by::<T>(&out, &g, |s, out| s.gamma(out, &shapes))
    })?;
    Ok(out.into())
}

fn sample_dirichlet(a: &Args) -> Result<Out> {
    let (shapes, g) = (a.tensor(0)?, generator(a.opt_generator(1)?));
    let out = Tensor::empty(shapes.shape(), shapes.dtype(), shapes.device())?;
    let width = shapes.shape().last().copied().unwrap_or(1);
    with_real!("_sample_dirichlet", shapes.dtype(), T => {
        let shapes = shapes.to_vec::<T>()?;
        super::draw_by::<T>(&out, &g, |s, out| s.dirichlet(out, &shapes, width))
    })?;
    Ok(out.into())
}

fn binomial(a: &Args) -> Result<Out> {
    let (counts, p, g) = (a.tensor(0)?, a.tensor(1)?, generator(a.opt_generator(2)?));
    if counts.dtype() != p.dtype() {
        return Err(Error::runtime(format!(
            "binomial: Found dtype {} but expected {}: counts and probabilities must have one dtype",
            p.dtype(),
            counts.dtype()
        )));
    }
    let both = crate::ops::view::dims::broadcast_tensors(&[counts, p])?;
    let out = Tensor::empty(both[0].shape(), counts.dtype(), counts.device())?;
    with_real!("binomial", counts.dtype(), T => {
        let (counts, p) = (both[0].to_vec::<T>()?, both[1].to_vec::<T>()?);
        super::draw_by::<T>(&out, &g, |s, out| s.binomial(out, &counts, &p))
    })?;
    Ok(out.into())
}

/// A function of doubles applied to elements of tensors of one shape.
fn elementwise(op: &str, inputs: &[&Tensor], f: impl Fn(&[f64]) -> f64) -> Result<Tensor> {
    let dtype = inputs[0].dtype();
    if !dtype.is_float() || inputs.iter().any(|t| t.shape() != inputs[0].shape() || t.dtype() != dtype) {
        return Err(Error::runtime(format!("{op}: takes floating point tensors of one shape and dtype")));
    }
    if inputs[0].device().is_meta() {
        return Tensor::empty(inputs[0].shape(), dtype, inputs[0].device());
    }
    let columns = inputs.iter().map(|t| t.to_dtype(DType::F64)?.to_vec::<f64>()).collect::<Result<Vec<_>>>()?;
    let values: Vec<f64> = (0..inputs[0].numel()).map(|i| f(&columns.iter().map(|c| c[i]).collect::<Vec<_>>())).collect();
    Tensor::from_slice(&values, inputs[0].shape())?.to_dtype(dtype)
}

pub(super) static OPS: &[Op] = &[
    function("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", bernoulli)
        .doc("Ones with the probabilities in `self`, else zeros.")
        .samples(&["T(2,3; 0..1)"]),
    function("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", bernoulli_p)
        .doc("Ones with probability `p`, else zeros, in the shape of `self`.")
        .without_out(),
    function("multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", multinomial)
        .out_rule(out_rule::EXACT)
        .doc("Draws categories by the weights in `self`, a row or a matrix of rows; int64.")
        .samples(&["T(4; 0.1..1), 2", "T(2,4; 0.1..1), 3, True"]),
    function("poisson(Tensor self, Generator? generator=None) -> Tensor", poisson)
        .doc("Draws from the Poisson distributions of the rates in `self`.")
        .samples(&["T(2,3; 0.1..3)"])
        .without_out(),
    function("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", binomial)
        .doc("Draws how many of `count` trials succeed, each with probability `prob`.")
        .places(place::TORCH)
        .without_out(),
    function("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", standard_gamma)
        .doc("Draws from the gamma distributions of the shapes in `self` and scale 1; without a derivative.")
        .places(place::PRIVATE)
        .without_out(),
    function("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", sample_dirichlet)
        .doc("Draws rows from the Dirichlet distributions of the shapes in the rows of `self`; without a derivative.")
        .places(place::PRIVATE)
        .without_out(),
    function("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", |a| {
        Ok(elementwise("_standard_gamma_grad", &[a.tensor(0)?, a.tensor(1)?], |v| gamma_grad(v[0], v[1]))?.into())
    })
    .doc("The derivative of gamma draws `output` by their shapes, the place in the distribution held fixed.")
    .places(place::PRIVATE)
    .samples(&["T(2,3; 0.5..9), T(2,3; 0.5..9)"])
    .without_out(),
    function("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", |a| {
        Ok(elementwise("_dirichlet_grad", &[a.tensor(0)?, a.tensor(1)?, a.tensor(2)?], |v| dirichlet_grad(v[0], v[1], v[2]))?.into())
    })
    .doc("The derivative of components `x` of Dirichlet draws by their shapes `alpha`, over `1 - x`.")
    .places(place::PRIVATE)
    .samples(&["T(2,3; 0.1..0.9), T(2,3; 0.5..4), T(2,3; 5..9)"])
    .without_out(),
];
