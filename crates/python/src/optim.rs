//! Steps of optimizers, each one call for all parameters of a group.

use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::ops::optim::{Adam, Sgd, adam_step, sgd_step, total_norm};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The tensors of a list. The list holds their objects while the step runs.
fn tensors<'a>(items: &'a [Bound<'_, PyAny>]) -> Ret<Vec<&'a Tensor>> {
    items.iter().map(expect_tensor).collect()
}

fn items<'py>(list: &Bound<'py, PyList>) -> Vec<Bound<'py, PyAny>> {
    list.iter().collect()
}

/// A step of gradient descent. Where there is momentum, a None among the buffers is replaced by the new buffer.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the settings of PyTorch's optimizer
fn _sgd_step(
    py: Python<'_>,
    params: &Bound<'_, PyList>,
    grads: &Bound<'_, PyList>,
    momentum_buffers: &Bound<'_, PyList>,
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
    maximize: bool,
) -> PyResult<()> {
    shielded(|| {
        let (params, grads) = (items(params), items(grads));
        let given = items(momentum_buffers);
        let mut buffers: Vec<Option<Tensor>> =
            given.iter().map(|b| if b.is_none() { Ok(None) } else { expect_tensor(b).map(|t| Some(t.clone())) }).collect::<Ret<_>>()?;
        sgd_step(&tensors(&params)?, &tensors(&grads)?, &mut buffers, &Sgd { lr, momentum, dampening, weight_decay, nesterov, maximize })?;
        for (i, (before, after)) in given.iter().zip(buffers).enumerate() {
            if before.is_none()
                && let Some(made) = after
            {
                momentum_buffers.set_item(i, wrap_bound(py, made)?)?;
            }
        }
        Ok(())
    })
}

/// A step of Adam, or of AdamW where `decoupled`. The steps made, one number a parameter, are counted up.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the settings of PyTorch's optimizer
fn _adam_step(
    params: &Bound<'_, PyList>,
    grads: &Bound<'_, PyList>,
    exp_avgs: &Bound<'_, PyList>,
    exp_avg_sqs: &Bound<'_, PyList>,
    max_exp_avg_sqs: &Bound<'_, PyList>,
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
        let lists = [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps].map(items);
        let [params, grads, means, squares, largest, steps] = &lists;
        let options = Adam { lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled };
        Ok(adam_step(
            &tensors(params)?,
            &tensors(grads)?,
            &tensors(means)?,
            &tensors(squares)?,
            &tensors(largest)?,
            &tensors(steps)?,
            &options,
        )?)
    })
}

/// The norm of all elements of all tensors together.
#[pyfunction]
fn _total_norm<'py>(py: Python<'py>, list: &Bound<'py, PyList>, order: f64) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| wrap_bound(py, total_norm(&tensors(&items(list))?, order)?))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_sgd_step, m)?)?;
    m.add_function(wrap_pyfunction!(_adam_step, m)?)?;
    m.add_function(wrap_pyfunction!(_total_norm, m)?)
}
