//! Kernels of layers and losses: softmax, normalisation, cross entropy, attention.
//!
//! Rows are shared among the threads; what one row gives depends on that row alone.

pub mod attention;
pub mod columns;
pub mod conv;
pub mod ctc;
pub mod loss;
pub mod norm;
pub mod norm_channels;
mod norm_channels_last;
pub mod pool;
pub mod real;
pub mod recurrent;
pub mod resample;
pub mod softmax;
