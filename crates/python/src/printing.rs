//! Tensors as text, and the options of it.

use crate::error::*;
use crate::tensor_type::*;
use flambeau_engine::tensor::{PrintOptions, print_options, set_print_options, tensor_text};
use pyo3::prelude::*;

/// A tensor as text. Objects of a class of the user's bear its name.
#[pyfunction]
#[pyo3(signature = (tensor, tensor_contents=None))]
fn _tensor_str(tensor: &Bound<'_, PyAny>, tensor_contents: Option<&str>) -> PyResult<String> {
    shielded(|| {
        let name = if is_plain(tensor.as_ptr()) { "tensor".into() } else { tensor.get_type().name()?.to_string() };
        Ok(tensor_text(expect_tensor(tensor)?, &format!("{name}("), tensor_contents)?)
    })
}

/// The options in force: precision, threshold, edgeitems, linewidth, sci_mode.
#[pyfunction]
fn _print_options() -> (usize, usize, usize, usize, Option<bool>) {
    let PrintOptions { precision, threshold, edgeitems, linewidth, sci_mode } = print_options();
    (precision, threshold, edgeitems, linewidth, sci_mode)
}

/// Sets all options.
#[pyfunction]
fn _set_print_options(precision: usize, threshold: usize, edgeitems: usize, linewidth: usize, sci_mode: Option<bool>) {
    set_print_options(PrintOptions { precision, threshold, edgeitems, linewidth, sci_mode });
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_tensor_str, m)?)?;
    m.add_function(wrap_pyfunction!(_print_options, m)?)?;
    m.add_function(wrap_pyfunction!(_set_print_options, m)?)
}
