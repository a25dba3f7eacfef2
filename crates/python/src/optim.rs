//! Steps of optimizers: one native call for all parameters of a group.

use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::ops::optim::{Adam, Sgd, adam_step, sgd_step};
use pyo3::prelude::*;
use pyo3::types::PyList;

fn tensors_of(list: &Bound<'_, PyList>) -> Ret<Vec<Tensor>> {
    list.iter().map(|x| expect_tensor(&x).cloned()).collect()
}

fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

/// One step of SGD. `buffers` is a list with a tensor or None for each parameter; what is made is put there.
#[pyfunction]
#[pyo3(name = "_sgd_step")]
pub fn native_sgd_step(
    py: Python<'_>,
    params: &Bound<'_, PyList>,
    grads: &Bound<'_, PyList>,
    buffers: &Bound<'_, PyList>,
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
    maximize: bool,
) -> PyResult<()> {
    shielded(|| {
        let (params, grads) = (tensors_of(params)?, tensors_of(grads)?);
        let mut kept: Vec<Option<Tensor>> =
            buffers.iter().map(|b| if b.is_none() { Ok(None) } else { expect_tensor(&b).map(|t| Some(t.clone())) }).collect::<Ret<_>>()?;
        let options = Sgd { lr, momentum, dampening, weight_decay, nesterov, maximize };
        sgd_step(&refs(&params), &refs(&grads), &mut kept, &options)?;
        for (i, buffer) in kept.into_iter().enumerate() {
            if let Some(buffer) = buffer {
                buffers.set_item(i, wrap_bound(py, buffer)?)?;
            }
        }
        Ok(())
    })
}

/// One step of Adam (decoupled: AdamW).
#[pyfunction]
#[pyo3(name = "_adam_step")]
pub fn native_adam_step(
    params: &Bound<'_, PyList>,
    grads: &Bound<'_, PyList>,
    means: &Bound<'_, PyList>,
    squares: &Bound<'_, PyList>,
    largest: &Bound<'_, PyList>,
    steps: &Bound<'_, PyList>,
    lr: f64,
    beta1: f64,
    beta2: f64,
    weight_decay: f64,
    eps: f64,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> PyResult<()> {
    shielded(|| {
        let (params, grads, means) = (tensors_of(params)?, tensors_of(grads)?, tensors_of(means)?);
        let (squares, largest, steps) = (tensors_of(squares)?, tensors_of(largest)?, tensors_of(steps)?);
        let options = Adam { lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled };
        adam_step(&refs(&params), &refs(&grads), &refs(&means), &refs(&squares), &refs(&largest), &refs(&steps), &options)?;
        Ok(())
    })
}
