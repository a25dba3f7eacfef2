//! Tensors as text, as PyTorch prints them.

use flambeau::base::Complex64;
use flambeau::prelude::*;

fn text(values: &[f32], shape: &[usize]) -> String {
    Tensor::from_slice(values, shape).unwrap().to_string()
}

#[test]
fn styles() {
    assert_eq!(text(&[1.0, -2.0, 0.0], &[3]), "tensor([ 1., -2.,  0.])");
    assert_eq!(text(&[0.5, 10.25], &[2]), "tensor([ 0.5000, 10.2500])");
    assert_eq!(text(&[1e-5, 1.5], &[2]), "tensor([1.0000e-05, 1.5000e+00])");
    assert_eq!(text(&[1.0, f32::NAN, f32::INFINITY], &[3]), "tensor([1., nan, inf])");
    assert_eq!(text(&[0.0, 0.0], &[2]), "tensor([0., 0.])");
    assert_eq!(text(&[3.0], &[]), "tensor(3.)");
}

#[test]
fn other_dtypes() {
    assert_eq!(Tensor::from_slice(&[1i64, -20], &[2]).unwrap().to_string(), "tensor([  1, -20])");
    assert_eq!(Tensor::from_slice(&[true, false], &[2]).unwrap().to_string(), "tensor([ True, False])");
    assert_eq!(Tensor::from_slice(&[1u8], &[1]).unwrap().to_string(), "tensor([1], dtype=torch.uint8)");
    assert_eq!(Tensor::from_slice(&[Complex64::new(1.0, -2.0)], &[1]).unwrap().to_string(), "tensor([1.-2.j], dtype=torch.complex128)");
}

#[test]
fn shapes() {
    assert_eq!(text(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), "tensor([[1., 2.],\n        [3., 4.]])");
    assert_eq!(text(&[1.0, 2.0], &[2, 1, 1]), "tensor([[[1.]],\n\n        [[2.]]])");
    assert_eq!(text(&[], &[0, 3]), "tensor([], size=(0, 3))");
    let long: Vec<i64> = (0..2000).collect();
    let long = Tensor::from_slice(&long, &[2000]).unwrap();
    assert_eq!(long.to_string(), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
}
