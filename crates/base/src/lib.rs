//! Element types, shapes, layouts, devices and errors. No tensors, no unsafe.
//!
//! Everything that the other crates say about a tensor without touching its memory is said in the
//! words of this crate.
#![forbid(unsafe_code)]

mod device;
mod dtype;
mod error;
mod float8;
mod layout;
mod promote;
mod scalar;
mod shape;

pub use device::{Device, DeviceKind};
pub use dtype::{Category, DType};
pub use error::{Error, ErrorKind, Result};
pub use float8::{F8E4M3, F8E5M2};
pub use half::{bf16, f16};
pub use layout::{Layout, MemoryFormat};
pub use num_complex::{Complex32, Complex64};
pub use promote::{Promotion, default_dtype, set_default_dtype};
pub use scalar::Scalar;
pub use shape::{Dims, Strides, broadcast, broadcast_all, numel, show, wrap_dim};
