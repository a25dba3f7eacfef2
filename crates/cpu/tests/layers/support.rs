//! Tensors and comparisons.

use flambeau_cpu as _;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::gradcheck;
use flambeau_engine::base::{DType, Result};

/// Numbers that look random and are the same on every run.
pub fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 * 4.0 - 2.0
    };
    (0..n).map(|_| next()).collect()
}

/// A `float64` tensor of such numbers.
pub fn random(shape: &[usize], seed: u64) -> Tensor {
    Tensor::from_slice(&noise(shape.iter().product(), seed), shape).unwrap()
}

/// The same, wanting a gradient.
pub fn leaf(shape: &[usize], seed: u64) -> Tensor {
    let t = random(shape, seed);
    t.set_requires_grad(true).unwrap();
    t
}

/// `int64` numbers below `high`.
pub fn classes(n: usize, high: i64, seed: u64) -> Tensor {
    let values: Vec<i64> = noise(n, seed).iter().map(|x| ((x + 2.0) / 4.0 * high as f64) as i64).collect();
    Tensor::from_slice(&values, &[n]).unwrap()
}

/// The values as `f64`.
pub fn values(t: &Tensor) -> Vec<f64> {
    t.detach().unwrap().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Panics where two tensors differ by more than `tolerance` in units of the larger of 1 and the value.
#[track_caller]
pub fn assert_close(found: &Tensor, wanted: &Tensor, tolerance: f64) {
    assert_eq!(found.shape(), wanted.shape());
    for (i, (a, b)) in values(found).iter().zip(values(wanted)).enumerate() {
        let same = (a - b).abs() <= tolerance * b.abs().max(1.0) || (a.is_nan() && b.is_nan()) || *a == b;
        assert!(same, "element {i}: found {a}, wanted {b}");
    }
}

/// Gradients against finite differences, and those of the gradients too.
#[track_caller]
pub fn check_twice(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) {
    gradcheck(&f, inputs, 1e-6, 1e-6, 1e-5).unwrap();
    let wanted: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].requires_grad()).collect();
    let first = |all: &[Tensor]| -> Result<Vec<Tensor>> {
        let _guard = flambeau_engine::autograd::enable_grad();
        let all: Vec<Tensor> = all
            .iter()
            .enumerate()
            .map(|(i, t)| {
                let t = if t.requires_grad() { t.clone() } else { t.alias() };
                if wanted.contains(&i) && !t.requires_grad() {
                    t.set_requires_grad(true)?;
                }
                Ok(t)
            })
            .collect::<Result<_>>()?;
        let out = f(&all)?.remove(0);
        // A sum of squares, so that the gradient depends on all inputs.
        let objective = out.mul(&out)?.sum()?;
        let asked: Vec<&Tensor> = wanted.iter().map(|&i| &all[i]).collect();
        let options = flambeau_engine::autograd::BackwardOptions { retain_graph: true, create_graph: true };
        let found = flambeau_engine::autograd::grad(&[&objective], &asked, &[None], options)?;
        found.into_iter().zip(asked).map(|(g, t)| g.map_or_else(|| t.zeros_like(), Ok)).collect()
    };
    assert!(first(inputs).unwrap().iter().any(|g| g.requires_grad()), "gradients have no history");
    gradcheck(first, inputs, 1e-5, 1e-5, 1e-4).unwrap();
}
