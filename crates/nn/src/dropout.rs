//! Dropout.

use crate::Layer;
use crate::module::{Mode, Module, Path, Slot};
use flambeau_engine::Tensor;
use flambeau_engine::base::Result;

/// In training, each element zero with probability `p` and the others divided by `1 - p`; nothing otherwise.
#[derive(Clone, Debug)]
pub struct Dropout {
    p: f64,
    mode: Mode,
}

impl Dropout {
    /// With probability `p`.
    pub fn new(p: f64) -> Dropout {
        Dropout { p, mode: Mode::default() }
    }
}

impl Module for Dropout {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        self.mode.walk(path, visit);
    }
}

impl Layer for Dropout {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.dropout(self.p, self.mode.is_training())
    }
}
