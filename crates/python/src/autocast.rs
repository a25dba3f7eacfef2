//! The thread's autocast state.

use crate::dtype::{DTypeObject, dtype_object};
use crate::error::*;
use flambeau_engine::transform::autocast as engine;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Devices of which flambeau knows; autocast has an effect on the CPU.
const DEVICES: [&str; 10] = ["cpu", "cuda", "mps", "xpu", "hpu", "meta", "mtia", "xla", "ipu", "privateuseone"];

fn on_cpu(device_type: &str) -> PyResult<bool> {
    if !DEVICES.contains(&device_type) {
        return Err(PyRuntimeError::new_err(format!(
            "Expected one of {} device type at start of device string: {device_type}",
            DEVICES.join(", ")
        )));
    }
    Ok(device_type == "cpu")
}

/// Whether autocast is on for a type of device.
#[pyfunction]
#[pyo3(signature = (device_type = "cuda"))]
fn is_autocast_enabled(device_type: &str) -> PyResult<bool> {
    Ok(on_cpu(device_type)? && engine::is_active())
}

/// Switches autocast for a type of device.
#[pyfunction]
fn set_autocast_enabled(device_type: &str, enabled: bool) -> PyResult<()> {
    if on_cpu(device_type)? {
        engine::set_active(enabled);
    }
    Ok(())
}

/// The lower precision of a type of device.
#[pyfunction]
fn get_autocast_dtype<'py>(py: Python<'py>, device_type: &str) -> PyResult<Bound<'py, DTypeObject>> {
    let dtype = if on_cpu(device_type)? { engine::dtype() } else { flambeau_engine::base::DType::F16 };
    shielded(|| Ok(dtype_object(py, dtype)?))
}

/// Sets the lower precision of a type of device.
#[pyfunction]
fn set_autocast_dtype(device_type: &str, dtype: &Bound<'_, DTypeObject>) -> PyResult<()> {
    if on_cpu(device_type)? {
        engine::set_dtype(dtype.get().0);
    }
    Ok(())
}

/// Whether casts of weights are kept within a region.
#[pyfunction]
fn is_autocast_cache_enabled() -> bool {
    engine::keeps_casts()
}

/// Says whether casts of weights are kept within a region.
#[pyfunction]
fn set_autocast_cache_enabled(enabled: bool) {
    engine::set_keeps_casts(enabled);
}

/// Forgets the casts of weights that were kept.
#[pyfunction]
fn clear_autocast_cache() {
    engine::forget_casts();
}

/// Goes into a region; in how many one is now.
#[pyfunction]
fn autocast_increment_nesting() -> u32 {
    engine::enter()
}

/// Leaves a region; in how many one still is.
#[pyfunction]
fn autocast_decrement_nesting() -> u32 {
    engine::leave()
}

/// Whether a type of device has autocast.
#[pyfunction]
fn _is_autocast_available(device_type: &str) -> bool {
    on_cpu(device_type).is_ok() && device_type != "meta"
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(is_autocast_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(set_autocast_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(get_autocast_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(set_autocast_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(is_autocast_cache_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(set_autocast_cache_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(clear_autocast_cache, m)?)?;
    m.add_function(wrap_pyfunction!(autocast_increment_nesting, m)?)?;
    m.add_function(wrap_pyfunction!(autocast_decrement_nesting, m)?)?;
    m.add_function(wrap_pyfunction!(_is_autocast_available, m)?)
}
