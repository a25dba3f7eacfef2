//! Steps of optimizers, each one call for many parameters.

use crate::dtype::{dtype_object, dtype_of};
use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::Tensor;
use flambeau_engine::base::Error;
use flambeau_engine::ir::Constant;
use flambeau_engine::ops::optim::rules::RULES;
use flambeau_engine::ops::optim::{Rule, count_up, step, total_norm};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The tensors of a list. The list holds their objects while the step runs.
fn tensors<'a>(items: &'a [Bound<'_, PyAny>]) -> Ret<Vec<&'a Tensor>> {
    items.iter().map(expect_tensor).collect()
}

fn items<'py>(list: &Bound<'py, PyList>) -> Vec<Bound<'py, PyAny>> {
    list.iter().collect()
}

fn rule(name: &str) -> Ret<&'static Rule> {
    let found = RULES.iter().find(|rule| rule.name == name);
    found.copied().ok_or_else(|| Error::value(format!("there is no rule {name:?} for a step of an optimizer")).into())
}

/// What an optimizer's rule asks for: names of its state with the switch of each, of its numbers, and of its switches.
#[pyfunction]
#[allow(clippy::type_complexity)] // one tuple for Python
fn _step_rule(name: &str) -> PyResult<(Vec<(&'static str, &'static str)>, Vec<&'static str>, Vec<&'static str>)> {
    shielded(|| {
        let rule = rule(name)?;
        Ok((rule.state.to_vec(), rule.numbers.to_vec(), rule.switches.to_vec()))
    })
}

/// A step of an optimizer for all parameters, by its rule.
#[pyfunction]
fn _step_by_rule(
    name: &str,
    switches: Vec<String>,
    params: &Bound<'_, PyList>,
    grads: &Bound<'_, PyList>,
    state: Vec<Bound<'_, PyList>>,
    numbers: Vec<Vec<f64>>,
) -> PyResult<()> {
    shielded(|| {
        let rule = rule(name)?;
        let on = rule.switches(switches.iter().map(String::as_str))?;
        let (params, grads) = (items(params), items(grads));
        let state: Vec<Vec<Bound<'_, PyAny>>> = state.iter().map(items).collect();
        let state = state.iter().map(|list| tensors(list)).collect::<Ret<Vec<_>>>()?;
        Ok(step(rule, on, &tensors(&params)?, &tensors(&grads)?, &state, &numbers)?)
    })
}

/// The rule's program for one parameter: its constants (the place among the numbers, or a literal), its steps (name,
/// dtype, numbers of the arguments) and its outputs.
#[pyfunction]
#[allow(clippy::type_complexity)] // one tuple for Python
fn _step_program<'py>(
    py: Python<'py>,
    name: &str,
    switches: Vec<String>,
    dtype: &Bound<'py, PyAny>,
    numbers: Vec<f64>,
) -> PyResult<(Vec<(Option<u16>, f64)>, Vec<(String, Bound<'py, PyAny>, Vec<u16>)>, Vec<u16>)> {
    shielded(|| {
        let rule = rule(name)?;
        let on = rule.switches(switches.iter().map(String::as_str))?;
        let given = dtype_of(py, dtype.as_ptr()).ok_or_else(|| type_error("_step_program(): dtype must be a torch.dtype"))?;
        let program = rule.program(on, given, &numbers)?;
        let constants = program.constants.iter().map(|c| match c {
            Constant::Param(_, i) => (Some(*i), 0.0),
            Constant::Literal(_, x) => (None, x.to_f64()),
        });
        let steps = program.steps.iter().map(|s| {
            let args = s.args[..s.op.arity()].to_vec();
            Ok((format!("{:?}", s.op).to_lowercase(), dtype_object(py, s.dtype)?.into_any(), args))
        });
        Ok((constants.collect(), steps.collect::<Ret<Vec<_>>>()?, program.outputs.to_vec()))
    })
}

/// Counts up the steps made of each parameter, and gives the numbers.
#[pyfunction]
fn _count_up(steps: &Bound<'_, PyList>) -> PyResult<Vec<f64>> {
    shielded(|| Ok(count_up(&tensors(&items(steps))?)?))
}

/// The norm of all elements of all tensors together.
#[pyfunction]
fn _total_norm<'py>(py: Python<'py>, list: &Bound<'py, PyList>, order: f64) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| wrap_bound(py, total_norm(&tensors(&items(list))?, order)?))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_step_rule, m)?)?;
    m.add_function(wrap_pyfunction!(_step_by_rule, m)?)?;
    m.add_function(wrap_pyfunction!(_step_program, m)?)?;
    m.add_function(wrap_pyfunction!(_count_up, m)?)?;
    m.add_function(wrap_pyfunction!(_total_norm, m)?)
}
