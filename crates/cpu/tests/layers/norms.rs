//! Softmax and normalisation.

use crate::support::*;
use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, ErrorKind};
use flambeau_engine::ops::nn::{norm_composite, softmax_composite};

#[test]
fn softmax_agrees_with_its_composite_form() {
    for shape in [&[3usize, 5][..], &[2, 3, 4], &[4, 70], &[2, 5, 40], &[1, 1]] {
        for dim in 0..shape.len() as i64 {
            let x = random(shape, 1).mul(10.0).unwrap();
            assert_close(&x.softmax(dim, None).unwrap(), &softmax_composite(&x, dim, false).unwrap(), 1e-14);
            assert_close(&x.log_softmax(dim, None).unwrap(), &softmax_composite(&x, dim, true).unwrap(), 1e-14);
            for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::BF16, 1e-2), (DType::F16, 2e-3)] {
                let narrow = x.to_dtype(dtype).unwrap();
                let wide = narrow.to_dtype(DType::F64).unwrap();
                assert_close(&narrow.softmax(dim, None).unwrap(), &softmax_composite(&wide, dim, false).unwrap(), tolerance);
            }
        }
    }
}

#[test]
fn softmax_has_two_derivatives() {
    for dim in 0..2 {
        check_twice(|x| Ok(vec![x[0].softmax(dim, None)?]), &[leaf(&[2, 3], 2)]);
        check_twice(|x| Ok(vec![x[0].log_softmax(dim, None)?]), &[leaf(&[2, 3], 3)]);
    }
}

#[test]
fn softmax_of_infinities() {
    let inf = f64::INFINITY;
    let x = Tensor::from_slice(&[-inf, 0.0, 0.0, -inf, -inf, -inf], &[2, 3]).unwrap();
    let y = values(&x.softmax(1, None).unwrap());
    assert_eq!(y[..3], [0.0, 0.5, 0.5]);
    assert!(y[3..].iter().all(|v| v.is_nan()), "a row of nothing but -inf has no softmax: {y:?}");
}

#[test]
fn softmax_takes_floats_only() {
    let error = classes(4, 3, 1).softmax(0, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert!(classes(4, 3, 1).softmax(0, Some(DType::F32)).is_ok());
    assert_eq!(random(&[2, 3], 1).softmax(2, None).unwrap_err().kind(), ErrorKind::Index);
}

#[test]
fn layer_norm_agrees_with_its_composite_form() {
    for (shape, axes) in [(&[3usize, 5][..], 1), (&[2, 3, 40], 2), (&[33, 64], 1)] {
        let sizes: Vec<i64> = shape[shape.len() - axes..].iter().map(|&n| n as i64).collect();
        let dims: Vec<usize> = sizes.iter().map(|&n| n as usize).collect();
        let (x, w, b) = (random(shape, 4), random(&dims, 5), random(&dims, 6));
        let wanted = norm_composite(&[x.clone(), w.clone(), b.clone()], axes, 1e-5, true, true, true).unwrap();
        assert_close(&x.layer_norm(&sizes, Some(&w), Some(&b), 1e-5).unwrap(), &wanted, 1e-13);
        let wanted = norm_composite(&[x.clone(), w.clone()], axes, 1e-5, false, true, false).unwrap();
        assert_close(&x.rms_norm(&sizes, Some(&w), Some(1e-5)).unwrap(), &wanted, 1e-13);
    }
}

#[test]
fn norms_have_two_derivatives() {
    let all = [leaf(&[3, 4], 7), leaf(&[4], 8), leaf(&[4], 9)];
    check_twice(|x| Ok(vec![x[0].layer_norm(&[4], Some(&x[1]), Some(&x[2]), 1e-3)?]), &all);
    check_twice(|x| Ok(vec![x[0].layer_norm(&[4], None, Some(&x[1]), 1e-3)?]), &all[..2]);
    check_twice(|x| Ok(vec![x[0].layer_norm(&[4], None, None, 1e-3)?]), &all[..1]);
    check_twice(|x| Ok(vec![x[0].rms_norm(&[4], Some(&x[1]), Some(1e-3))?]), &all[..2]);
    check_twice(|x| Ok(vec![x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-3)?]), &all);
}

#[test]
fn a_weights_gradient_alone() {
    let (x, w) = (random(&[3, 4], 7), leaf(&[4], 8));
    check_twice(|all| Ok(vec![all[0].layer_norm(&[4], Some(&all[1]), None, 1e-3)?]), &[x, w]);
}

#[test]
fn large_and_small_numbers_are_normalised() {
    let x = Tensor::from_slice(&[1e30f32, -1e30, 0.0], &[1, 3]).unwrap();
    let y = values(&x.layer_norm(&[3], None, None, 1e-5).unwrap());
    assert!((y[0] - 1.5f64.sqrt()).abs() < 1e-6 && (y[1] + 1.5f64.sqrt()).abs() < 1e-6 && y[2] == 0.0, "{y:?}");
    let x = Tensor::from_slice(&[3e-30f32, 4e-30], &[1, 2]).unwrap();
    let y = values(&x.rms_norm(&[2], None, Some(0.0)).unwrap());
    assert!((y[0] - 0.848_528_14).abs() < 1e-6 && (y[1] - 1.131_370_9).abs() < 1e-6, "{y:?}");
}

#[test]
fn shapes_that_do_not_fit() {
    let x = random(&[2, 3], 1);
    let error = x.layer_norm(&[5], None, None, 1e-5).unwrap_err();
    assert!(error.message().contains("Given normalized_shape=[5], expected input with shape [*, 5]"), "{error}");
    assert!(x.layer_norm(&[], None, None, 1e-5).is_err());
    assert!(x.layer_norm(&[3], Some(&random(&[2], 1)), None, 1e-5).is_err());
    assert!(x.layer_norm(&[3], Some(&random(&[3], 1).to_dtype(DType::F32).unwrap()), None, 1e-5).is_err());
}

#[test]
fn no_result_depends_on_the_number_of_threads() {
    let threads = pool::num_threads();
    let run = || {
        let (x, w, b) = (leaf(&[200, 300], 1), leaf(&[300], 2), leaf(&[300], 3));
        let y = x.layer_norm(&[300], Some(&w), Some(&b), 1e-5).unwrap();
        let loss = y.softmax(1, None).unwrap().mul(&y).unwrap().sum().unwrap();
        loss.backward().unwrap();
        [values(&loss), values(&x.grad().unwrap()), values(&w.grad().unwrap()), values(&b.grad().unwrap())]
    };
    pool::set_num_threads(1);
    let one = run();
    pool::set_num_threads(4);
    let four = run();
    pool::set_num_threads(threads);
    assert_eq!(one, four);
}
