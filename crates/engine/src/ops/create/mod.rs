//! New tensors: constants, ranges and identities.

mod fill;
mod range;

use super::table::{Args, Op};
use crate::Tensor;
use flambeau_base::{DType, Device, Dims, Error, Result, default_dtype};

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[fill::OPS, range::OPS];

/// Sizes as they come with a call. `RuntimeError` for a negative one.
pub(crate) fn sizes(op: &str, given: &[i64]) -> Result<Dims> {
    given
        .iter()
        .map(|&n| {
            usize::try_from(n).map_err(|_| Error::runtime(format!("{op}: Trying to create tensor with negative dimension {n}: {given:?}")))
        })
        .collect()
}

/// Where and how a factory makes its result: parameters dtype, layout, device, pin_memory (and requires_grad) from number `i` on.
pub(crate) struct Options {
    pub dtype: Option<DType>,
    pub device: Device,
    pub requires_grad: bool,
}

impl Options {
    pub fn of(a: &Args, i: usize) -> Result<Options> {
        if a.opt_bool(i + 3)? == Some(true) {
            return Err(Error::runtime(format!(
                "{}: Cannot access accelerator device when none is available: pin_memory needs one",
                a.name
            )));
        }
        let requires_grad = if i + 4 < a.values.len() { a.opt_bool(i + 4)?.unwrap_or(false) } else { false };
        Ok(Options { dtype: a.opt_dtype(i)?, device: a.opt_device(i + 2)?.unwrap_or(Device::CPU), requires_grad })
    }

    /// The dtype asked for, or the default float.
    pub fn float(&self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    /// The result as it is handed out.
    pub fn finish(&self, t: Tensor) -> Result<super::Out> {
        if self.requires_grad {
            t.set_requires_grad(true)?;
        }
        Ok(t.into())
    }
}
