//! The kernel language: scalar expressions that a backend runs over many elements.
//!
//! A [`Program`] is a list of steps in single-assignment form. Its values are, in order, the inputs
//! (elements of tensors), the constants (numbers that come with a call or stand in the program) and
//! the results of the steps. A step computes in one dtype and **rounds its result to that dtype**,
//! also where a backend computes in a wider one: this is what makes one operation and forty fused
//! ones agree to the bit.
#![forbid(unsafe_code)]

mod body;
mod op;
mod program;
mod special;

pub use body::{Body, Val};
pub use op::ScalarOp;
pub use program::{Constant, Program, Step, Value};
pub use special::Special;
