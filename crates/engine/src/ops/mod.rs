//! Operations: primitives by family, composites, and the table that names all of them.

pub(crate) mod create;
mod defaults;
pub mod fft;
pub mod index;
pub mod join;
pub mod linalg;
pub mod matmul;
pub mod nn;
pub mod optim;
pub mod pointwise;
mod primitive;
pub(crate) mod random;
pub mod reduce;
pub mod scan;
pub mod schema;
pub mod sort;
pub mod table;
pub mod view;

pub(crate) use pointwise::RESOLVE;
pub use pointwise::{Arg, Operand, copy_into, expandable};
pub use primitive::{OutSpec, Outputs, Primitive, Reads};
pub use table::{Args, Call, Op, Out, Row, Value, ops};
