//! Levels of `grad`, `jvp` and `vmap`, and tangents: what `flambeau.func` and `autograd.forward_ad` are made of.

use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::transform::functional::{Level, example_at, wrap_at};
use flambeau_engine::transform::vectorize::{Randomness, take_loop_warnings};
use flambeau_engine::transform::{self, forward};
use pyo3::prelude::*;

/// A level, until `exit` is called.
#[pyclass(name = "_Level", module = "flambeau._C", unsendable)]
pub struct LevelObject(Option<Level>);

impl LevelObject {
    fn level(&self) -> Ret<&Level> {
        self.0.as_ref().ok_or_else(|| runtime_error("the transform has ended"))
    }
}

#[pymethods]
impl LevelObject {
    /// A level that differentiates; with `batch_size`, one of `vmap`.
    #[new]
    #[pyo3(signature = (batch_size=None, randomness="error"))]
    fn new(batch_size: Option<usize>, randomness: &str) -> PyResult<LevelObject> {
        shielded(|| {
            let how = match randomness {
                "error" => Randomness::Error,
                "same" => Randomness::Same,
                "different" => Randomness::Different,
                other => {
                    return Err(runtime_error(format!(
                        "Only allowed values for randomness are 'error', 'different', or 'same'. Got {other}"
                    )));
                }
            };
            Ok(LevelObject(Some(match batch_size {
                Some(size) => Level::vectorize(size, how),
                None => Level::differentiate(),
            })))
        })
    }

    /// Leaves the level: those entered since must have been left before.
    fn exit(&mut self) {
        self.0 = None;
    }

    /// A tensor of this level that stands for `tensor`.
    fn wrap<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| wrap_bound(tensor.py(), self.level()?.wrap(expect_tensor(tensor)?)))
    }

    /// The tensor below.
    fn unwrap<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let t = expect_tensor(tensor)?;
            let below = self.level()?.unwrap(t);
            if below.is(t) { Ok(tensor.clone()) } else { wrap_bound(tensor.py(), below) }
        })
    }

    /// An example of the batch along dimension `dim`.
    fn example<'py>(&self, tensor: &Bound<'py, PyAny>, dim: i64) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| wrap_bound(tensor.py(), self.level()?.example(expect_tensor(tensor)?, dim)?))
    }

    /// The batch of which `tensor` is an example, along dimension `dim`.
    fn batch<'py>(&self, tensor: &Bound<'py, PyAny>, dim: i64) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| wrap_bound(tensor.py(), self.level()?.batch(expect_tensor(tensor)?, dim)?))
    }

    /// Whether `tensor` belongs to this level.
    fn owns(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        shielded(|| Ok(expect_tensor(tensor)?.wrapped().is_some_and(|(id, ..)| self.0.as_ref().is_some_and(|l| l.id() == id))))
    }
}

/// What a tensor stands for inside a transform: the level's number, the tensor below, whether that has a batch in front.
#[pyfunction]
fn _wrapped<'py>(py: Python<'py>, tensor: &Bound<'py, PyAny>) -> PyResult<Option<(u32, Bound<'py, PyAny>, bool)>> {
    shielded(|| match expect_tensor(tensor)?.wrapped() {
        Some((level, below, batched)) => Ok(Some((level, wrap_bound(py, below)?, batched))),
        None => Ok(None),
    })
}

/// The tangent that forward mode has left with a tensor.
#[pyfunction]
fn _tangent<'py>(py: Python<'py>, tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    shielded(|| expect_tensor(tensor)?.tangent().map(|t| wrap_bound(py, t)).transpose())
}

/// Puts a tangent there, or takes it away.
#[pyfunction]
#[pyo3(signature = (tensor, tangent=None))]
fn _set_tangent(tensor: &Bound<'_, PyAny>, tangent: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    shielded(|| {
        let tangent = tangent.map(expect_tensor).transpose()?.cloned();
        Ok(expect_tensor(tensor)?.set_tangent(tangent)?)
    })
}

/// The same tensor, of the same history, without a tangent.
#[pyfunction]
fn _primal<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| wrap_bound(tensor.py(), expect_tensor(tensor)?.primal()))
}

/// Enters a level of tangents.
#[pyfunction]
fn _enter_dual_level() -> PyResult<u32> {
    shielded(|| Ok(forward::enter_dual_level()?))
}

/// Leaves it.
#[pyfunction]
fn _exit_dual_level(level: u32) -> PyResult<()> {
    shielded(|| Ok(forward::exit_dual_level(level)?))
}

/// The level of tangents that this thread is in; 0 for none.
#[pyfunction]
fn _dual_level() -> u32 {
    forward::dual_level()
}

/// Whether operations hand on tangents in this thread.
#[pyfunction]
fn _is_fwd_grad_enabled() -> bool {
    forward::is_forward_enabled()
}

/// Switches tangents in this thread; gives what it was.
#[pyfunction]
fn _set_fwd_grad_enabled(enabled: bool) -> bool {
    forward::set_forward_enabled(enabled)
}

/// How many transforms this thread is inside of.
#[pyfunction]
fn _transform_depth() -> usize {
    transform::depth()
}

/// Names of operations that `vmap` went through example by example, for the first time since this was last asked.
#[pyfunction]
fn _take_loop_warnings() -> Vec<String> {
    take_loop_warnings()
}

/// Calls a function with the topmost transform left out, with the mode that holds below it.
#[pyfunction]
fn _below<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    transform::carry_below(|| function.call0())
}

/// The topmost transform: its number, and of `vmap` how many examples there are and what random draws do.
#[pyfunction]
fn _top_level() -> Option<(u32, Option<usize>, &'static str)> {
    let top = transform::top()?;
    let Some((level, size, randomness)) = top.randomness() else { return Some((top.level(), None, "")) };
    let how = match randomness {
        Randomness::Error => "error",
        Randomness::Same => "same",
        Randomness::Different => "different",
    };
    Some((level, Some(size), how))
}

/// A tensor of a level that stands for `tensor`.
#[pyfunction]
fn _wrap_at<'py>(level: u32, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| wrap_bound(tensor.py(), wrap_at(level, expect_tensor(tensor)?)))
}

/// An example, of a level of `vmap`, of the batch along dimension `dim`.
#[pyfunction]
fn _example_at<'py>(level: u32, tensor: &Bound<'py, PyAny>, dim: i64) -> PyResult<Bound<'py, PyAny>> {
    shielded(|| wrap_bound(tensor.py(), example_at(level, expect_tensor(tensor)?, dim)?))
}

/// Adds the classes and functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<LevelObject>()?;
    m.add_function(wrap_pyfunction!(_wrapped, m)?)?;
    m.add_function(wrap_pyfunction!(_tangent, m)?)?;
    m.add_function(wrap_pyfunction!(_set_tangent, m)?)?;
    m.add_function(wrap_pyfunction!(_primal, m)?)?;
    m.add_function(wrap_pyfunction!(_enter_dual_level, m)?)?;
    m.add_function(wrap_pyfunction!(_exit_dual_level, m)?)?;
    m.add_function(wrap_pyfunction!(_dual_level, m)?)?;
    m.add_function(wrap_pyfunction!(_is_fwd_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_fwd_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_transform_depth, m)?)?;
    m.add_function(wrap_pyfunction!(_take_loop_warnings, m)?)?;
    m.add_function(wrap_pyfunction!(_top_level, m)?)?;
    m.add_function(wrap_pyfunction!(_wrap_at, m)?)?;
    m.add_function(wrap_pyfunction!(_example_at, m)?)?;
    m.add_function(wrap_pyfunction!(_below, m)?)
}
