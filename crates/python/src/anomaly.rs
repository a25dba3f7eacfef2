//! Anomaly mode: nodes remember the Python lines that recorded them.

use crate::node::{metadata, node_bound};
use flambeau_engine::autograd::{self as engine, Node, Watch};
use pyo3::prelude::*;
use std::sync::Arc;

struct PythonWatch;

fn stack(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("flambeau.autograd.anomaly_mode")?.call_method0("_stack")
}

impl Watch for PythonWatch {
    fn place(&self) -> String {
        Python::try_attach(|py| stack(py).and_then(|s| s.extract::<Vec<String>>())).and_then(Result::ok).unwrap_or_default().concat()
    }

    fn recorded(&self, node: &Arc<Node>, during: Option<&Arc<Node>>) {
        let note = |py: Python<'_>| -> PyResult<()> {
            let notes = metadata(py, node);
            notes.set_item("traceback_", stack(py)?)?;
            if let Some(parent) = during {
                notes.set_item("parent_", node_bound(py, parent.clone()).map_err(|r| r.0)?)?;
            }
            Ok(())
        };
        // A note that cannot be made is missing from the report, no more.
        let _ = Python::try_attach(note);
    }

    fn failed(&self, node: &Arc<Node>) {
        let report = |py: Python<'_>| -> PyResult<()> {
            let module = py.import("flambeau.autograd.anomaly_mode")?;
            module.call_method1("_report", (node.name(), metadata(py, node)))?;
            Ok(())
        };
        // The derivative's own error goes on; a warning that was made an error is shown here.
        Python::try_attach(|py| {
            if let Err(e) = report(py) {
                e.write_unraisable(py, None);
            }
        });
    }
}

/// Switches anomaly mode.
#[pyfunction]
#[pyo3(name = "_set_anomaly_enabled", signature = (enabled, check_nan=true))]
fn set_anomaly_enabled(enabled: bool, check_nan: bool) {
    static WATCH: PythonWatch = PythonWatch;
    engine::set_watch(&WATCH);
    engine::set_anomaly(enabled, check_nan);
}

/// Whether anomaly mode is on.
#[pyfunction]
fn is_anomaly_enabled() -> bool {
    engine::is_anomaly()
}

/// Whether anomaly mode, where it is on, searches gradients for NaN.
#[pyfunction]
fn is_anomaly_check_nan_enabled() -> bool {
    engine::is_anomaly_check_nan()
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_anomaly_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_anomaly_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_anomaly_check_nan_enabled, m)?)
}
