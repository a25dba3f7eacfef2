//! Scans along a dimension.

use flambeau_base::{DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::Scan;

/// See [`Scan`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn scan(call: &Scan) -> Result<()> {
    Err(lacking("scan", call.dtype, DeviceKind::Cpu))
}
