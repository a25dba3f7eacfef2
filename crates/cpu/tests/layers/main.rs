//! Layers, losses, reductions, scans and optimizer steps on the CPU: kernels against their composite forms,
//! gradients against finite differences, and cases that are easily wrong.

mod attention;
mod channels;
mod convolution_fuzz;
mod convolutions;
mod losses;
mod norms;
mod optimizers;
mod reductions;
mod support;
