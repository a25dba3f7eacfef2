//! Steps of optimizers, as `flambeau.optim` calls them.

use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::ops::optim::{Adam, Sgd, adam_step, sgd_step};
use pyo3::prelude::*;
use pyo3::types::PyList;

type Objects<'py> = Vec<Bound<'py, PyAny>>;

fn tensors<'a>(objects: &'a Objects<'_>) -> Ret<Vec<&'a Tensor>> {
    objects.iter().map(expect_tensor).collect()
}

/// One step of Adam for all parameters, in place.
#[pyfunction]
fn _adam_step(
    params: Objects<'_>,
    grads: Objects<'_>,
    means: Objects<'_>,
    squares: Objects<'_>,
    largest: Objects<'_>,
    steps: Objects<'_>,
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
        let options = Adam { lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled };
        adam_step(
            &tensors(&params)?,
            &tensors(&grads)?,
            &tensors(&means)?,
            &tensors(&squares)?,
            &tensors(&largest)?,
            &tensors(&steps)?,
            &options,
        )?;
        Ok(())
    })
}

/// One step of gradient descent for all parameters, in place. A buffer that is None is made, and put into the list.
#[pyfunction]
fn _sgd_step(
    py: Python<'_>,
    params: Objects<'_>,
    grads: Objects<'_>,
    buffers: &Bound<'_, PyList>,
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
    maximize: bool,
) -> PyResult<()> {
    shielded(|| {
        let mut held = Vec::with_capacity(buffers.len());
        for buffer in buffers.iter() {
            held.push(if buffer.is_none() { None } else { Some(expect_tensor(&buffer)?.clone()) });
        }
        let missing: Vec<bool> = held.iter().map(|b| b.is_none()).collect();
        let options = Sgd { lr, momentum, dampening, weight_decay, nesterov, maximize };
        sgd_step(&tensors(&params)?, &tensors(&grads)?, &mut held, &options)?;
        for (i, buffer) in held.into_iter().enumerate().filter(|(i, _)| missing[*i]) {
            if let Some(buffer) = buffer {
                buffers.set_item(i, wrap_bound(py, buffer)?)?;
            }
        }
        Ok(())
    })
}

/// Puts the functions into the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_adam_step, m)?)?;
    m.add_function(wrap_pyfunction!(_sgd_step, m)?)
}
