//! Layers, losses, initialisers and optimizers.
//!
//! A [`Module`] is anything that holds parameters; `#[derive(Module)]` (from the crate `flambeau`)
//! makes one of a struct. A [`Layer`] is a module from one tensor to one tensor.

mod conv;
mod dropout;
mod embedding;
pub mod init;
mod linear;
mod module;
mod norm;
pub mod optim;
mod sequential;
mod spatial;

pub use conv::{Conv, Conv1d, Conv2d, Conv3d, ConvTranspose, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use module::{Buffer, LoadReport, Mode, Module, Parameter, Path, Slot, StateDict, clip_grad_norm};
pub use norm::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm, LayerNorm, RmsNorm};
pub use sequential::{Activation, Layer, Sequential};
pub use spatial::{AdaptiveAvgPool2d, AvgPool2d, MaxPool2d, Upsample};
