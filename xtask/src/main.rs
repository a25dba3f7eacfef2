//! `cargo xtask codegen` and `cargo xtask tidy`.
fn main() {}
