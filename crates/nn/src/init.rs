//! First values of parameters, with PyTorch's draws.

use flambeau_engine::Tensor;
use flambeau_engine::autograd::no_grad;
use flambeau_engine::base::{Error, Result, show};

/// Draws from the normal distribution.
pub fn normal(t: &Tensor, mean: f64, std: f64) -> Result<()> {
    let _guard = no_grad();
    t.normal_(mean, std, None).map(|_| ())
}

/// Draws from the uniform distribution over `[low, high)`.
pub fn uniform(t: &Tensor, low: f64, high: f64) -> Result<()> {
    let _guard = no_grad();
    t.uniform_(low, high, None).map(|_| ())
}

/// Sets every element to one value.
pub fn constant(t: &Tensor, value: f64) -> Result<()> {
    let _guard = no_grad();
    t.fill_(value).map(|_| ())
}

/// How many inputs and outputs a weight `[out, in, ...]` connects.
pub fn fans(t: &Tensor) -> Result<(usize, usize)> {
    match t.shape() {
        [out, inputs, rest @ ..] => {
            let field: usize = rest.iter().product();
            Ok((inputs * field, out * field))
        }
        shape => Err(Error::value(format!(
            "init: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got {}",
            show(shape)
        ))),
    }
}

/// Uniform draws whose variance keeps that of activations behind leaky rectifiers of slope `a` (He et al., 2015).
pub fn kaiming_uniform(t: &Tensor, a: f64) -> Result<()> {
    let (inputs, _) = fans(t)?;
    if inputs == 0 {
        return Ok(());
    }
    let gain = (2.0 / (1.0 + a * a)).sqrt();
    let bound = 3f64.sqrt() * (gain / (inputs as f64).sqrt());
    uniform(t, -bound, bound)
}

/// Uniform draws whose variance balances inputs and outputs (Glorot and Bengio, 2010).
pub fn xavier_uniform(t: &Tensor, gain: f64) -> Result<()> {
    let (inputs, outputs) = fans(t)?;
    let bound = 3f64.sqrt() * (gain * (2.0 / (inputs + outputs) as f64).sqrt());
    uniform(t, -bound, bound)
}
