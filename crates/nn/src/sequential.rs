//! Layers one after the other.

use crate::module::{Module, Path, Slot};
use flambeau_engine::Tensor;
use flambeau_engine::base::Result;

/// A module from one tensor to one tensor.
pub trait Layer: Module {
    /// The result for an input.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}

/// A function without parameters as a layer, such as `Activation(Tensor::relu)`.
#[derive(Clone, Copy, Debug)]
pub struct Activation(pub fn(&Tensor) -> Result<Tensor>);

impl Module for Activation {
    fn walk(&self, _: &mut Path, _: &mut dyn FnMut(&str, Slot<'_>)) {}
}

impl Layer for Activation {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (self.0)(x)
    }
}

/// Layers one after the other; parameters are named by place: `0.weight`.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::Tensor;
/// use flambeau_nn::{Activation, Linear, Module, Sequential};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let net = Sequential::new().with(Linear::new(4, 8)?).with(Activation(Tensor::relu)).with(Linear::new(8, 2)?);
/// assert_eq!(net.named_parameters()[2].0, "2.weight");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Layer>>);

impl Sequential {
    /// No layers yet.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// One layer more at the end.
    pub fn with(mut self, layer: impl Layer + 'static) -> Sequential {
        self.0.push(Box::new(layer));
        self
    }
}

impl Module for Sequential {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        self.0.walk(path, visit);
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.0 {
            x = layer.forward(&x)?;
        }
        Ok(x)
    }
}
