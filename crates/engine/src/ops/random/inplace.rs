//! Draws in place.

use super::{draw, fill_inplace, generator, with_drawable, with_real};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, Value, function, place};
use crate::random::Generator;
use flambeau_base::{DType, Error, Result};

impl Tensor {
    /// Fills with draws from the normal distribution.
    pub fn normal_(&self, mean: f64, std: f64, g: Option<Generator>) -> Result<&Tensor> {
        if self.dtype().is_complex() {
            // Half of the variance to each part.
            let std = std / std::f64::consts::SQRT_2;
            fill_inplace("normal_", self, |t| t.alias().view_as_real()?.normal_(mean, std, g).map(|_| ()))?;
            return Ok(self);
        }
        let g = generator(g);
        // Only memory that is contiguous is drawn in the large form.
        let small = !self.is_contiguous();
        fill_inplace(
            "normal_",
            self,
            |t| with_real!("normal_", t.dtype(), T => draw::<T>(t, &g, |s, out| if small { s.normal_small(out, mean, std) } else { s.normal(out, mean, std) })),
        )?;
        Ok(self)
    }

    /// Fills with draws from the uniform distribution over `[from, to)`.
    pub fn uniform_(&self, from: f64, to: f64, g: Option<Generator>) -> Result<&Tensor> {
        if self.dtype().is_complex() {
            fill_inplace("uniform_", self, |t| t.alias().view_as_real()?.uniform_(from, to, g).map(|_| ()))?;
            return Ok(self);
        }
        let g = generator(g);
        fill_inplace("uniform_", self, |t| with_real!("uniform_", t.dtype(), T => draw::<T>(t, &g, |s, out| s.uniform(out, from, to))))?;
        Ok(self)
    }

    /// Fills with ones with probability `p`, else zeros.
    pub fn bernoulli_(&self, p: f64, g: Option<Generator>) -> Result<&Tensor> {
        let g = generator(g);
        fill_inplace("bernoulli_", self, |t| with_drawable!("bernoulli_", t.dtype(), T => draw::<T>(t, &g, |s, out| s.bernoulli(out, p))))?;
        Ok(self)
    }

    /// Fills with integers from `[from, to)`.
    pub fn random_(&self, from: i64, to: Option<i64>, g: Option<Generator>) -> Result<&Tensor> {
        let g = generator(g);
        fill_inplace(
            "random_",
            self,
            |t| with_drawable!("random_", t.dtype(), T => draw::<T>(t, &g, |s, out| s.random_range(out, from, to))),
        )?;
        Ok(self)
    }
}

/// A draw in place by two numbers, for floating point tensors.
macro_rules! by_two {
    ($a:expr, $method:ident, $name:literal) => {{
        let (t, x, y, g) = ($a.tensor(0)?, $a.float(1)?, $a.float(2)?, generator($a.opt_generator(3)?));
        fill_inplace($name, t, |t| with_real!($name, t.dtype(), T => draw::<T>(t, &g, |s, out| s.$method(out, x, y))))?;
        Ok(t.clone().into())
    }};
}

fn normal_(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.normal_(a.float(1)?, a.float(2)?, a.opt_generator(3)?)?.clone().into())
}

fn uniform_(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.uniform_(a.float(1)?, a.float(2)?, a.opt_generator(3)?)?.clone().into())
}

fn bernoulli_(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    if let Value::Tensor(p) = &a.values[1] {
        let g = generator(a.opt_generator(2)?);
        let p = p.expand_as(t)?;
        let drawn = super::sample::bernoulli_each(&p, t.dtype(), &g)?;
        fill_inplace("bernoulli_", t, |t| crate::ops::copy_into(t, &drawn))?;
    } else {
        t.bernoulli_(a.scalar(1)?.to_f64(), a.opt_generator(2)?)?;
    }
    Ok(t.clone().into())
}

fn exponential_(a: &Args) -> Result<Out> {
    let (t, rate, g) = (a.tensor(0)?, a.float(1)?, generator(a.opt_generator(2)?));
    fill_inplace("exponential_", t, |t| with_real!("exponential_", t.dtype(), T => draw::<T>(t, &g, |s, out| s.exponential(out, rate))))?;
    Ok(t.clone().into())
}

fn geometric_(a: &Args) -> Result<Out> {
    let (t, p, g) = (a.tensor(0)?, a.float(1)?, generator(a.opt_generator(2)?));
    if t.dtype() == DType::Bool {
        return Err(Error::not_implemented("geometric_: not implemented for bool"));
    }
    fill_inplace("geometric_", t, |t| with_drawable!("geometric_", t.dtype(), T => draw::<T>(t, &g, |s, out| s.geometric(out, p))))?;
    Ok(t.clone().into())
}

fn random_all(a: &Args) -> Result<Out> {
    let (t, g) = (a.tensor(0)?, generator(a.opt_generator(1)?));
    if matches!(t.dtype(), DType::U16 | DType::U32 | DType::U64) {
        return Err(Error::not_implemented(format!("random_: not implemented for {}", t.dtype())));
    }
    fill_inplace("random_", t, |t| {
        with_drawable!("random_", t.dtype(), T => draw::<T>(t, &g, |s, out| {
            s.random(out);
            Ok(())
        }))
    })?;
    Ok(t.clone().into())
}

const METHOD: u8 = place::METHOD;

pub(super) static OPS: &[Op] = &[
    function("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)", normal_)
        .doc("Fills with draws from the normal distribution.")
        .places(METHOD)
        .without_out(),
    function("uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)", uniform_)
        .doc("Fills with draws from the uniform distribution over `[from, to)`.")
        .places(METHOD)
        .without_out(),
    function("bernoulli_(Tensor(a!) self, Tensor p=0.5, *, Generator? generator=None) -> Tensor(a!)", bernoulli_)
        .doc("Fills with ones with probability `p` (a number, or a tensor of one for each element), else zeros.")
        .places(METHOD)
        .without_out(),
    function("exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)", exponential_)
        .doc("Fills with draws from the exponential distribution of rate `lambd`.")
        .places(METHOD)
        .without_out(),
    function("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)", geometric_)
        .doc("Fills with the number of trials up to the first success.")
        .places(METHOD)
        .without_out(),
    function("cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)", |a| {
        by_two!(a, cauchy, "cauchy_")
    })
    .doc("Fills with draws from the Cauchy distribution.")
    .places(METHOD)
    .without_out(),
    function("log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)", |a| {
        by_two!(a, log_normal, "log_normal_")
    })
    .doc("Fills with the exponential of draws from the normal distribution.")
    .places(METHOD)
    .without_out(),
    function("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", random_all)
        .doc("Fills with integers from 0 up to the largest that the dtype counts exactly.")
        .places(METHOD)
        .without_out(),
    function("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)", |a| {
        Ok(a.tensor(0)?.random_(0, Some(a.int(1)?), a.opt_generator(2)?)?.clone().into())
    })
    .doc("Fills with integers from `[0, to)`.")
    .places(METHOD)
    .without_out(),
    function("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)", |a| {
        Ok(a.tensor(0)?.random_(a.int(1)?, a.opt_int(2)?, a.opt_generator(3)?)?.clone().into())
    })
    .doc("Fills with integers from `[from, to)`.")
    .places(METHOD)
    .without_out(),
];
