//! Reductions and scans.

use crate::support::*;
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, ErrorKind};

fn tensor(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

fn gradient(x: &Tensor, f: impl Fn(&Tensor) -> Tensor) -> Vec<f64> {
    let x = x.copy().unwrap().detach().unwrap();
    x.set_requires_grad(true).unwrap();
    f(&x).sum().unwrap().backward().unwrap();
    values(&x.grad().unwrap())
}

#[test]
fn reductions_have_two_derivatives() {
    let x = [leaf(&[2, 3, 2], 1)];
    let d = Some(&[0i64, 2][..]);
    check_twice(|x| Ok(vec![x[0].sum_dims(d, false, None)?.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].mean_dims(d, true, None)?.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].nansum_dims(d, false, None)?.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].prod_dims(d, false, None)?]), &x);
    check_twice(|x| Ok(vec![x[0].prod_dims(Some(&[1]), true, None)?]), &x);
    check_twice(|x| Ok(vec![x[0].amax(d, false)?.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].max_dim(1, false)?.0.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].median_dim(1, true)?.0.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].median()?.square()?]), &x);
    check_twice(|x| Ok(vec![x[0].var(d, 1.0, false)?]), &x);
    check_twice(|x| Ok(vec![x[0].std(d, 0.5, true)?]), &x);
    check_twice(|x| x[0].var_mean(d, 0.0, false).map(|(v, m)| vec![v, m]), &x);
    check_twice(|x| Ok(vec![x[0].logsumexp(&[0, 2], false)?]), &x);
    for order in [0.5, 1.0, 1.5, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        check_twice(|x| Ok(vec![x[0].vector_norm(order, d, false, None)?]), &x);
    }
}

#[test]
fn scans_have_two_derivatives() {
    let x = [leaf(&[2, 4], 1)];
    for dim in [0, 1] {
        check_twice(|x| Ok(vec![x[0].cumsum(dim, None)?.square()?]), &x);
        check_twice(|x| Ok(vec![x[0].cumprod(dim, None)?]), &x);
        check_twice(|x| Ok(vec![x[0].cummax(dim)?.0.square()?]), &x);
        check_twice(|x| Ok(vec![x[0].logcumsumexp(dim)?]), &x);
        check_twice(|x| Ok(vec![x[0].diff(1, dim)?.square()?]), &x);
    }
}

#[test]
fn products_with_zeros_have_derivatives() {
    let x = tensor(&[2.0, 3.0, 0.0, 0.0]);
    assert_eq!(gradient(&x, |x| x.prod().unwrap()), [0.0; 4]);
    assert_eq!(gradient(&tensor(&[2.0, 0.0, 5.0]), |x| x.prod().unwrap()), [0.0, 10.0, 0.0]);
    assert_eq!(gradient(&tensor(&[2.0, 0.0, 5.0]), |x| x.cumprod(0, None).unwrap()), [1.0, 12.0, 0.0]);
    x.set_requires_grad(true).unwrap();
    let options = flambeau_engine::autograd::BackwardOptions { retain_graph: true, create_graph: true };
    let first = flambeau_engine::autograd::grad(&[&x.prod().unwrap()], &[&x], &[None], options).unwrap().remove(0).unwrap();
    first.narrow(0, 2, 1).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [0.0, 0.0, 0.0, 6.0]);
}

#[test]
fn gradients_at_ties() {
    let x = tensor(&[2.0, 2.0, 1.0]);
    assert_eq!(gradient(&x, |x| x.amax(None, false).unwrap()), [0.5, 0.5, 0.0]);
    assert_eq!(gradient(&x, |x| x.max().unwrap()), [0.5, 0.5, 0.0]);
    assert_eq!(gradient(&x, |x| x.max_dim(0, false).unwrap().0), [1.0, 0.0, 0.0]);
    assert_eq!(gradient(&tensor(&[0.0, 0.0]), |x| x.norm().unwrap()), [0.0, 0.0]);
}

#[test]
fn norms_neither_overflow_nor_vanish() {
    for (scale, dtype) in [(1e19, DType::F32), (1e-30, DType::F32), (1e200, DType::F64), (1e-200, DType::F64)] {
        let x = tensor(&[3.0 * scale, 4.0 * scale]).to_dtype(dtype).unwrap();
        let tolerance = if dtype == DType::F32 { 1e-6 } else { 1e-14 };
        let norm = values(&x.norm().unwrap())[0];
        assert!((norm / (5.0 * scale) - 1.0).abs() < tolerance, "{norm} at {scale}");
        let g = gradient(&x, |x| x.norm().unwrap());
        assert!((g[0] - 0.6).abs() < tolerance && (g[1] - 0.8).abs() < tolerance, "{g:?} at {scale}");
        let cubic = values(&x.vector_norm(3.0, None, false, None).unwrap())[0];
        assert!((cubic / (91f64.cbrt() * scale) - 1.0).abs() < tolerance, "{cubic} at {scale}");
    }
    let x = tensor(&[3.0, 0.0, -4.0]);
    for (order, wanted) in [(0.0, 2.0), (1.0, 7.0), (2.0, 5.0), (f64::INFINITY, 4.0), (f64::NEG_INFINITY, 0.0), (-1.0, 0.0)] {
        assert_eq!(values(&x.vector_norm(order, None, false, None).unwrap()), [wanted], "order {order}");
    }
}

#[test]
fn logsumexp_at_infinities() {
    let inf = f64::INFINITY;
    let x = Tensor::from_slice(&[-inf, -inf, 1.0, -inf, 2.0, inf], &[3, 2]).unwrap();
    assert_eq!(values(&x.logsumexp(&[1], false).unwrap()), [-inf, 1.0, inf]);
    assert_eq!(gradient(&x, |x| x.logsumexp(&[1], false).unwrap()), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let empty = Tensor::zeros(&[2, 0], DType::F32, Device::CPU).unwrap();
    assert_eq!(values(&empty.logsumexp(&[1], false).unwrap()), [-inf, -inf]);
    assert_eq!(values(&tensor(&[-inf, 0.0, 0.0]).logcumsumexp(0).unwrap()), [-inf, 0.0, 2f64.ln()]);
    assert_eq!(gradient(&tensor(&[-inf, 0.0, 0.0]), |x| x.logcumsumexp(0).unwrap()), [0.0, 1.5, 0.5]);
}

#[test]
fn reductions_of_nothing() {
    let z = Tensor::zeros(&[0, 3], DType::F32, Device::CPU).unwrap();
    assert_eq!(values(&z.sum().unwrap()), [0.0]);
    assert_eq!(values(&z.prod_dims(Some(&[0]), false, None).unwrap()), [1.0; 3]);
    assert!(values(&z.mean_dims(Some(&[0]), false, None).unwrap()).iter().all(|x| x.is_nan()));
    assert!(values(&z.all().unwrap()) == [1.0] && values(&z.any().unwrap()) == [0.0]);
    assert_eq!(z.amax(None, false).unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!(z.amax(Some(&[0]), false).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(z.max_dim(1, false).unwrap().0.shape(), [0]);
    assert_eq!(z.argmax(None, false).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(z.median_dim(0, false).unwrap_err().kind(), ErrorKind::Index);
    assert!(z.vector_norm(f64::INFINITY, None, false, None).unwrap_err().message().contains("does not have an identity"));
}

#[test]
fn dtypes_of_results() {
    let (i, b) = (classes(4, 3, 1), Tensor::from_slice(&[true, false], &[2]).unwrap());
    assert_eq!(i.to_dtype(DType::I32).unwrap().sum().unwrap().dtype(), DType::I64);
    assert_eq!((b.sum().unwrap().dtype(), values(&b.sum().unwrap())), (DType::I64, vec![1.0]));
    assert_eq!(b.max().unwrap().dtype(), DType::Bool);
    assert_eq!(i.to_dtype(DType::U8).unwrap().any().unwrap().dtype(), DType::U8);
    for error in [i.mean().unwrap_err(), i.var(None, 1.0, false).unwrap_err(), b.argmax(None, false).unwrap_err(), i.norm().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NotImplemented, "{error}");
    }
    assert_eq!(i.sum_dims(Some(&[0, 0]), false, None).unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!(i.sum_dims(Some(&[5]), false, None).unwrap_err().kind(), ErrorKind::Index);
}

#[test]
fn places_of_ties_and_nan() {
    let nan = f64::NAN;
    let place = |x: &[f64]| tensor(x).argmax(None, false).unwrap().to_vec::<i64>().unwrap()[0];
    assert_eq!((place(&[1.0, 5.0, 5.0]), place(&[1.0, nan, 3.0, nan])), (1, 1));
    let (value, at) = tensor(&[3.0, 1.0, 2.0, 2.0]).median_dim(0, false).unwrap();
    assert_eq!((values(&value), at.to_vec::<i64>().unwrap()), (vec![2.0], vec![2]));
    let (value, at) = tensor(&[3.0, nan, 1.0]).median_dim(0, false).unwrap();
    assert!(values(&value)[0].is_nan() && at.to_vec::<i64>().unwrap() == [1]);
    let (largest, at) = tensor(&[1.0, 1.0, nan, 2.0]).cummax(0).unwrap();
    assert!(values(&largest)[3].is_nan());
    assert_eq!(at.to_vec::<i64>().unwrap(), [0, 1, 2, 2]);
}

#[test]
fn closeness() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let (a, b) = (tensor(&[inf, nan, 1.0, inf, 1.0]), tensor(&[inf, nan, 1.000_001, -inf, inf]));
    let close = |nan| a.isclose(&b, 1e-5, 1e-8, nan).unwrap().to_vec::<bool>().unwrap();
    assert_eq!(close(false), [true, false, true, false, false]);
    assert_eq!(close(true), [true, true, true, false, false]);
    assert!(a.isclose(&b, -1.0, 0.0, false).is_err() && a.isclose(&b.to_dtype(DType::F32).unwrap(), 0.0, 0.0, false).is_err());
    assert!(b.equal(&b).is_ok_and(|same| !same) && tensor(&[1.0]).equal(&tensor(&[1.0])).unwrap());
}

#[test]
fn differences() {
    let x = Tensor::from_slice(&[1i64, 3, 2], &[3]).unwrap();
    assert_eq!(x.diff(1, -1).unwrap().to_vec::<i64>().unwrap(), [2, -1]);
    assert_eq!(x.diff(2, 0).unwrap().to_vec::<i64>().unwrap(), [-3]);
    assert_eq!(x.diff(5, 0).unwrap().numel(), 0);
    assert!(x.diff(-1, 0).is_err());
}
