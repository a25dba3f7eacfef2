//! The core through the crate's public face: arithmetic, views, gradients, versions, draws.

use flambeau::autograd::{self, BackwardOptions};
use flambeau::prelude::*;

fn t(values: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

fn leaf(values: &[f32], shape: &[usize]) -> Tensor {
    t(values, shape).requiring_grad().unwrap()
}

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

#[test]
fn arithmetic_broadcasts_and_promotes() -> Result<()> {
    let a = t(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let b = t(&[10.0, 20.0, 30.0], &[3]);
    assert_eq!(values(&(&a + &b)?), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    assert_eq!(values(&(&a * 2)?), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let i = Tensor::arange(0, 3, 1, None, Device::CPU)?;
    assert_eq!((&i + 0.5)?.dtype(), DType::F32);
    assert_eq!((&i / 2)?.dtype(), DType::F32);
    let error = a.add(&t(&[1.0, 2.0], &[2])).unwrap_err();
    assert!(error.to_string().contains("dimension 1"), "{error}");
    Ok(())
}

#[test]
fn gradients_flow_through_broadcasting() -> Result<()> {
    let w = leaf(&[1.0, 2.0, 3.0], &[3]);
    let x = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let y = (&(&x * &w)? + &w)?.sum()?;
    y.backward()?;
    assert_eq!(values(&w.grad().unwrap()), [7.0, 9.0, 11.0]);
    assert_eq!(values(&x.grad().unwrap()), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    let again = y.backward().unwrap_err();
    assert!(again.to_string().contains("a second time"), "{again}");
    Ok(())
}

#[test]
fn second_derivatives() -> Result<()> {
    let x = leaf(&[2.0, 3.0], &[2]);
    let y = x.pow(3.0)?.sum()?;
    let options = BackwardOptions { create_graph: true, retain_graph: true };
    let g = autograd::grad(&[&y], &[&x], &[], options)?[0].clone().unwrap();
    assert_eq!(values(&g), [12.0, 27.0]);
    let h = autograd::grad(&[&g.sum()?], &[&x], &[], BackwardOptions::default())?[0].clone().unwrap();
    assert_eq!(values(&h), [12.0, 18.0]);
    Ok(())
}

#[test]
fn a_changed_tensor_is_noticed() -> Result<()> {
    let x = leaf(&[1.0, 2.0], &[2]);
    let y = (&x * 1.0)?;
    let z = (&y * &y)?;
    y.add_(1.0)?;
    let error = z.sum()?.backward().unwrap_err();
    assert!(error.to_string().contains("modified by an inplace operation"), "{error}");
    Ok(())
}

#[test]
fn in_place_through_a_view_reaches_the_base() -> Result<()> {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0], &[4]);
    let y = (&x * 1.0)?;
    let v = y.view(&[2, 2])?.transpose(0, 1)?;
    v.mul_(&t(&[1.0, 10.0, 100.0, 1000.0], &[2, 2]))?;
    assert_eq!(values(&y), [1.0, 200.0, 30.0, 4000.0]);
    (&y * &t(&[1.0, 2.0, 3.0, 4.0], &[4]))?.sum()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), [1.0, 200.0, 30.0, 4000.0]);
    let z = (&x * 1.0)?;
    let w = z.view(&[4])?;
    z.mul_(3.0)?;
    w.sum()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), [4.0, 203.0, 33.0, 4003.0]);
    Ok(())
}

#[test]
fn in_place_saves_what_its_derivative_reads() -> Result<()> {
    let x = leaf(&[1.0, 2.0], &[2]);
    let w = leaf(&[3.0, 4.0], &[2]);
    let y = (&x * 1.0)?;
    y.mul_(&w)?;
    y.sum()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), [3.0, 4.0]);
    assert_eq!(values(&w.grad().unwrap()), [1.0, 2.0]);
    let refused = x.add_(1.0).unwrap_err();
    assert!(refused.to_string().contains("a leaf Variable that requires grad"), "{refused}");
    Ok(())
}

#[test]
fn overlapping_writes_never_smear() -> Result<()> {
    let x = t(&[1.0], &[1]).expand(&[3])?;
    assert!(x.add_(1.0).unwrap_err().to_string().contains("more than one element"));
    let a = Tensor::arange(1, 6, 1, Some(DType::F32), Device::CPU)?;
    let storage = a.storage().clone();
    let tail = Tensor::from_storage(storage.clone(), flambeau::base::Layout::strided("t", &[4], &[1], 1)?, DType::F32)?;
    let head = Tensor::from_storage(storage, flambeau::base::Layout::strided("t", &[4], &[1], 0)?, DType::F32)?;
    tail.mul_(&head)?;
    assert_eq!(values(&a), [1.0, 2.0, 6.0, 12.0, 20.0]);
    Ok(())
}

#[test]
fn a_million_operations_run_backward_and_are_freed() -> Result<()> {
    let x = leaf(&[1.0], &[1]);
    let mut y = (&x * 1.0)?;
    for _ in 0..1_000_000 {
        y = (&y + 1e-9)?;
    }
    y.sum()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), [1.0]);
    let mut y = (&x * 1.0)?;
    for _ in 0..300_000 {
        y = (&y * &y)?;
    }
    drop(y);
    Ok(())
}

#[test]
fn draws_are_pytorchs() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn(&[3], DType::F32, Device::CPU)?;
    // torch.manual_seed(0); torch.randn(3), PyTorch 2.15
    let want = [1.5409960746765137, -0.293428897857666, -2.1787893772125244];
    for (a, b) in values(&x).into_iter().zip(want) {
        assert!((a as f64 - b).abs() < 1e-6, "{a} {b}");
    }
    Ok(())
}

#[test]
fn products_and_their_gradients() -> Result<()> {
    let a = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let b = leaf(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2]);
    let y = a.matmul(&b)?;
    assert_eq!(values(&y), [4.0, 5.0, 10.0, 11.0]);
    y.sum()?.backward()?;
    assert_eq!(values(&a.grad().unwrap()), [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]);
    assert_eq!(values(&b.grad().unwrap()), [5.0, 5.0, 7.0, 7.0, 9.0, 9.0]);
    let error = a.matmul(&a).unwrap_err();
    assert!(error.to_string().contains("cannot be multiplied (2x3 and 2x3)"), "{error}");
    Ok(())
}
