//! Derivatives against finite differences.

use super::{BackwardOptions, grad};
use crate::Tensor;
use flambeau_base::{DType, Error, Result, show};

/// Compares the derivative of `f` at `inputs` (float64) with central differences.
///
/// Each output's gradient, weighted by fixed numbers, is held against `(f(x + h) - f(x - h)) / 2h` for
/// each element of each input that requires a gradient. `RuntimeError` names the first that differs by
/// more than `atol + rtol * |difference|`.
pub fn gradcheck(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor], eps: f64, atol: f64, rtol: f64) -> Result<()> {
    let outputs = f(inputs)?;
    for (o, out) in outputs.iter().enumerate() {
        if !out.requires_grad() {
            continue;
        }
        let weights: Vec<f64> = (0..out.numel()).map(|i| 0.5 + ((i * 7 + 3) % 11) as f64 / 11.0).collect();
        let seed = Tensor::from_slice(&weights, out.shape())?;
        let wanted: Vec<&Tensor> = inputs.iter().filter(|t| t.requires_grad()).collect();
        let options = BackwardOptions { retain_graph: true, create_graph: false };
        let found = grad(&[out], &wanted, &[Some(seed)], options)?;
        let mut found = found.into_iter();
        for (i, input) in inputs.iter().enumerate().filter(|(_, t)| t.requires_grad()) {
            if input.dtype() != DType::F64 {
                return Err(Error::value(format!("gradcheck: input {i} is {}, finite differences need float64", input.dtype())));
            }
            let analytic = match found.next().flatten() {
                Some(g) => g.to_vec::<f64>()?,
                None => vec![0.0; input.numel()],
            };
            for (at, &a) in analytic.iter().enumerate() {
                let n = difference(&f, inputs, i, at, eps, o, &weights)?;
                let close = (a - n).abs() <= atol + rtol * n.abs();
                if !close {
                    return Err(Error::runtime(format!(
                        "gradcheck: Jacobian mismatch for output {o} with respect to input {i} (shape {}), element {at}: numerical {n}, analytical {a}",
                        show(input.shape())
                    )));
                }
            }
        }
    }
    Ok(())
}

fn difference(
    f: &impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    i: usize,
    at: usize,
    eps: f64,
    o: usize,
    weights: &[f64],
) -> Result<f64> {
    let _guard = super::no_grad();
    let mut sides = [0.0; 2];
    for (side, sign) in sides.iter_mut().zip([1.0, -1.0]) {
        let mut values = inputs[i].to_vec::<f64>()?;
        values[at] += sign * eps;
        let moved = Tensor::empty_strided(inputs[i].shape(), inputs[i].strides(), DType::F64, inputs[i].device())?;
        moved.copy_(&Tensor::from_slice(&values, inputs[i].shape())?)?;
        let mut all = inputs.to_vec();
        all[i] = moved;
        let found = f(&all)?;
        let found = found.get(o).ok_or_else(|| Error::value(format!("gradcheck: the function gave no output {o} for moved inputs")))?;
        *side = found.to_vec::<f64>()?.iter().zip(weights).map(|(y, w)| y * w).sum();
    }
    Ok((sides[0] - sides[1]) / (2.0 * eps))
}
