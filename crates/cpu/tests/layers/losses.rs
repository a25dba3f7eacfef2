//! Cross entropy and other losses.

use crate::support::*;
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, ErrorKind};
use flambeau_engine::ops::nn::Reduction;

const REDUCTIONS: [Reduction; 3] = [Reduction::None, Reduction::Mean, Reduction::Sum];

/// Cross entropy by its definition, in plain Rust.
fn reference(x: &[f64], target: &[i64], weight: Option<&[f64]>, ignore: i64, smoothing: f64) -> (Vec<f64>, f64) {
    let classes = x.len() / target.len();
    let mut total = 0.0;
    let losses = target
        .iter()
        .zip(x.chunks(classes))
        .map(|(&t, row)| {
            if t == ignore {
                return 0.0;
            }
            let most = row.iter().fold(f64::NEG_INFINITY, |m, &v| m.max(v));
            let lse = most + row.iter().map(|v| (v - most).exp()).sum::<f64>().ln();
            let w = |i: usize| weight.map_or(1.0, |w| w[i]);
            total += w(t as usize);
            let spread: f64 = (0..classes).map(|i| w(i) * (lse - row[i])).sum::<f64>() / classes as f64;
            (1.0 - smoothing) * w(t as usize) * (lse - row[t as usize]) + smoothing * spread
        })
        .collect();
    (losses, total)
}

#[test]
fn cross_entropy_is_what_its_definition_says() {
    for (rows, count) in [(4, 5), (70, 65), (3, 1000)] {
        let (x, target) = (random(&[rows, count], 1), classes(rows, count as i64, 2));
        let w = random(&[count], 3).abs().unwrap().add(0.1).unwrap();
        let targets = target.to_vec::<i64>().unwrap();
        let ignore = targets[0];
        for (weight, smoothing) in [(None, 0.0), (Some(&w), 0.0), (None, 0.2), (Some(&w), 0.2)] {
            let weights = weight.map(values);
            let (losses, total) = reference(&values(&x), &targets, weights.as_deref(), ignore, smoothing);
            let sum: f64 = losses.iter().sum();
            let wanted = [losses.clone(), vec![sum / total], vec![sum]];
            for (reduction, wanted) in REDUCTIONS.into_iter().zip(wanted) {
                let found = x.cross_entropy(&target, weight, reduction, ignore, smoothing).unwrap();
                let shape = found.shape().to_vec();
                assert_close(&found, &Tensor::from_slice(&wanted, &shape).unwrap(), 1e-13);
            }
        }
    }
}

#[test]
fn cross_entropy_has_two_derivatives() {
    let target = classes(4, 3, 5);
    let w = random(&[3], 6).abs().unwrap().add(0.1).unwrap();
    for reduction in REDUCTIONS {
        for smoothing in [0.0, 0.3] {
            check_twice(|x| Ok(vec![x[0].cross_entropy(&target, Some(&w), reduction, 1, smoothing)?]), &[leaf(&[4, 3], 7)]);
        }
        check_twice(|x| Ok(vec![x[0].nll_loss(&target, Some(&w), reduction, 1)?]), &[leaf(&[4, 3], 8)]);
        check_twice(|x| Ok(vec![x[0].cross_entropy(&x[1], Some(&w), reduction, -100, 0.1)?]), &[leaf(&[4, 3], 9), leaf(&[4, 3], 10)]);
    }
}

#[test]
fn classes_stand_in_the_second_dimension() {
    let x = random(&[2, 3, 4], 1);
    let target = classes(8, 3, 2).reshape(&[2, 4]).unwrap();
    let found = x.cross_entropy(&target, None, Reduction::None, -100, 0.0).unwrap();
    let rows = x.transpose(1, 2).unwrap().reshape(&[8, 3]).unwrap();
    let wanted = rows.cross_entropy(&target.reshape(&[8]).unwrap(), None, Reduction::None, -100, 0.0).unwrap();
    assert_close(&found, &wanted.reshape(&[2, 4]).unwrap(), 0.0);
}

#[test]
fn a_batch_that_is_ignored_has_no_mean_and_no_gradient() {
    let x = leaf(&[2, 3], 1);
    let target = Tensor::from_slice(&[-100i64, -100], &[2]).unwrap();
    let loss = x.cross_entropy(&target, None, Reduction::Mean, -100, 0.0).unwrap();
    loss.backward().unwrap();
    assert!(values(&loss)[0].is_nan());
    assert_eq!(values(&x.grad().unwrap()), [0.0; 6]);
}

#[test]
fn targets_that_do_not_fit() {
    let x = random(&[2, 3], 1);
    let loss = |target: &[i64]| x.cross_entropy(&Tensor::from_slice(target, &[target.len()]).unwrap(), None, Reduction::Mean, -100, 0.0);
    let error = loss(&[0, 3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.message().contains("Target 3 is out of bounds"), "{error}");
    assert_eq!(loss(&[0, 1, 2]).unwrap_err().kind(), ErrorKind::Value);
    let narrow = classes(2, 3, 1).to_dtype(DType::I32).unwrap();
    assert!(x.cross_entropy(&narrow, None, Reduction::Mean, -100, 0.0).is_err());
    assert!(x.cross_entropy(&classes(2, 3, 1), None, Reduction::Mean, -100, 1.5).is_err());
}

#[test]
fn elementwise_losses_have_derivatives() {
    let (x, y) = (leaf(&[3, 4], 1), leaf(&[3, 4], 2));
    let probability = |t: &Tensor| t.mul(0.2)?.add(0.5);
    for r in REDUCTIONS {
        check_twice(|x| Ok(vec![x[0].mse_loss(&x[1], r)?]), &[x.clone(), y.clone()]);
        check_twice(|x| Ok(vec![x[0].huber_loss(&x[1], r, 0.7)?]), &[x.clone(), y.clone()]);
        check_twice(|x| Ok(vec![x[0].smooth_l1_loss(&x[1], r, 0.7)?]), &[x.clone(), y.clone()]);
        check_twice(|x| Ok(vec![probability(&x[0])?.binary_cross_entropy(&probability(&x[1])?, None, r)?]), &[x.clone(), y.clone()]);
        check_twice(
            |x| Ok(vec![x[0].binary_cross_entropy_with_logits(&probability(&x[1])?, None, Some(&probability(&x[1])?), r)?]),
            &[x.clone(), y.clone()],
        );
        check_twice(|x| Ok(vec![x[0].kl_div(&x[1], r, true)?]), &[x.clone(), y.clone()]);
    }
}

#[test]
fn certain_probabilities_have_a_finite_loss() {
    let (p, y) = (Tensor::from_slice(&[0.0, 1.0, 0.0, 1.0], &[4]).unwrap(), Tensor::from_slice(&[0.0, 1.0, 1.0, 0.0], &[4]).unwrap());
    let loss = p.binary_cross_entropy(&y, None, Reduction::None).unwrap();
    assert_eq!(values(&loss), [0.0, 0.0, 100.0, 100.0]);
    let outside = Tensor::from_slice(&[1.5], &[1]).unwrap();
    assert!(outside.binary_cross_entropy(&Tensor::from_slice(&[1.0], &[1]).unwrap(), None, Reduction::Mean).is_err());
    let scores = Tensor::from_slice(&[-800.0, 800.0], &[2]).unwrap();
    let wrong = Tensor::from_slice(&[1.0, 0.0], &[2]).unwrap();
    assert_eq!(values(&scores.binary_cross_entropy_with_logits(&wrong, None, None, Reduction::None).unwrap()), [800.0, 800.0]);
}
