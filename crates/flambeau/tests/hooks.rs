//! Hooks on what is saved and on writes, places in the graph, anomaly mode.

use flambeau::autograd::{self, BackwardOptions, Context, Function, Packed, SavedHooks, WriteHook};
use flambeau::prelude::*;
use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn leaf(values: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len()])?.requiring_grad()
}

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

/// Keeps saved tensors as numbers; counts what it packs and unpacks.
struct AsNumbers(Arc<[AtomicUsize; 2]>);

struct Numbers(Vec<f32>, Vec<usize>, Arc<[AtomicUsize; 2]>);

impl SavedHooks for AsNumbers {
    fn pack(&self, t: &Tensor) -> Result<Box<dyn Packed>> {
        self.0[0].fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Numbers(t.to_vec()?, t.shape().to_vec(), self.0.clone())))
    }
}

impl Packed for Numbers {
    fn unpack(&self) -> Result<Tensor> {
        self.2[1].fetch_add(1, Ordering::Relaxed);
        Tensor::from_slice(&self.0, &self.1)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// x squared, by hand.
struct Square;

impl Function for Square {
    fn forward(&self, cx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        cx.save(inputs);
        Ok(vec![inputs[0].mul(inputs[0])?])
    }

    fn backward(&self, cx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        grads.iter().map(|g| g.as_ref().map(|g| g.mul(&cx.saved()[0])?.mul(2.0)).transpose()).collect()
    }
}

#[test]
fn saved_tensors_go_through_hooks() -> Result<()> {
    let x = leaf(&[0.5, 1.0])?;
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    autograd::push_saved_hooks(Arc::new(AsNumbers(counts.clone())))?;
    let y = x.exp()?.mul(&x)?;
    let z = autograd::apply(Square, &[&y])?.remove(0);
    autograd::pop_saved_hooks();
    // exp saves its result, the product both factors, the square its argument.
    assert_eq!(counts[0].load(Ordering::Relaxed), 4);
    let options = BackwardOptions { retain_graph: true, create_graph: true };
    let first = autograd::grad(&[&z.sum()?], &[&x], &[], options)?.remove(0).unwrap();
    assert_eq!(counts[1].load(Ordering::Relaxed), 4);
    let second = autograd::grad(&[&first.sum()?], &[&x], &[], BackwardOptions::default())?.remove(0).unwrap();
    // (x e^x)^2: slope 2 x (1 + x) e^2x, curvature (2 + 8x + 4x^2) e^2x
    for (i, v) in [0.5f32, 1.0].into_iter().enumerate() {
        let e = (2.0 * v).exp();
        assert!((values(&first)[i] - 2.0 * v * (1.0 + v) * e).abs() < 1e-3);
        assert!((values(&second)[i] - (2.0 + 8.0 * v + 4.0 * v * v) * e).abs() < 1e-2);
    }
    Ok(())
}

#[test]
fn hooks_can_be_forbidden() -> Result<()> {
    assert_eq!(autograd::forbid_saved_hooks(Some("not here".into()))?, None);
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let error = autograd::push_saved_hooks(Arc::new(AsNumbers(counts))).unwrap_err();
    assert_eq!(error.to_string(), "not here");
    autograd::forbid_saved_hooks(None)?;
    Ok(())
}

#[test]
fn backward_goes_from_places_to_places() -> Result<()> {
    let x = leaf(&[1.0, 2.0])?;
    let y = x.mul(3.0)?;
    let z = y.mul(&y)?.sum()?;
    let (from, to) = (z.gradient_edge().unwrap(), y.gradient_edge().unwrap());
    let keep = BackwardOptions { retain_graph: true, create_graph: false };
    let found = autograd::grad_from(std::slice::from_ref(&from), &[to], &[], keep)?;
    assert_eq!(values(found[0].as_ref().unwrap()), [6.0, 12.0]);
    autograd::backward_from(&[from], &[], None, BackwardOptions::default())?;
    assert_eq!(values(&x.grad().unwrap()), [18.0, 36.0]);
    Ok(())
}

struct Collect(Mutex<Vec<Vec<f32>>>);

impl WriteHook for Collect {
    fn before(&self, t: &Tensor) -> Result<()> {
        self.0.lock().unwrap().push(t.to_vec()?);
        Ok(())
    }
}

#[test]
fn writes_are_announced() -> Result<()> {
    let seen = Arc::new(Collect(Mutex::default()));
    let t = Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
    autograd::push_write_hook(seen.clone());
    t.add_(1.0)?;
    t.zero_()?;
    autograd::pop_write_hook();
    t.add_(5.0)?;
    assert_eq!(*seen.0.lock().unwrap(), [[1.0, 2.0], [2.0, 3.0]]);
    Ok(())
}

#[test]
fn anomaly_mode_finds_nan_and_names_the_write() -> Result<()> {
    let x = leaf(&[0.0, 1.0])?;
    autograd::set_anomaly(true, true);
    let error = x.sqrt()?.mul(0.0)?.sum()?.backward().unwrap_err();
    assert!(error.to_string().contains("Function 'SqrtBackward0' returned nan values in its 0th output."), "{error}");
    let y = x.mul(2.0)?;
    let z = y.mul(&y)?.sum()?;
    y.add_(1.0)?;
    let error = z.backward().unwrap_err();
    autograd::set_anomaly(false, true);
    assert!(error.to_string().contains("saved for MulBackward0, is at version 1; expected version 0"), "{error}");
    assert!(error.to_string().contains("It was changed by add_"), "{error}");
    Ok(())
}
