//! Reductions: every combination, over every choice of dimensions.

use super::common::program;
use flambeau_engine::Tensor;
use flambeau_engine::backend::{Combine, Operand, Reduce, backend};
use flambeau_engine::base::{DType, Device, Scalar, bf16, f16};
use flambeau_engine::ir::Program;

/// Reduces a tensor over the dimensions in `mask`; gives all accumulators.
fn reduce(combine: Combine, t: &Tensor, mask: &[bool]) -> Vec<Tensor> {
    let element = t.dtype();
    let (outs, finish) = match combine {
        Combine::ArgMax | Combine::ArgMin => (vec![element, DType::I64], two(element, DType::I64)),
        Combine::Moments => (vec![element, element], two(element, element)),
        Combine::Any | Combine::All => (vec![DType::Bool], Program::identity(DType::Bool)),
        _ => (vec![element], Program::identity(element)),
    };
    let kept: Vec<usize> = t.shape().iter().zip(mask).filter(|(_, r)| !**r).map(|(n, _)| *n).collect();
    let results: Vec<Tensor> = outs.iter().map(|&d| Tensor::empty(&kept, d, Device::CPU).unwrap()).collect();
    let strides: Vec<isize> = {
        let mut dense = results[0].strides().iter();
        mask.iter().map(|&r| if r { 0 } else { *dense.next().unwrap() }).collect()
    };
    let outputs: Vec<Operand> =
        results.iter().map(|r| Operand { ptr: r.data_ptr().unwrap(), dtype: r.dtype(), strides: &strides }).collect();
    let call = Reduce {
        combine,
        sizes: t.shape(),
        reduced: mask,
        program: &Program::identity(element),
        params: &[],
        inputs: &[Operand { ptr: t.data_ptr().unwrap(), dtype: element, strides: t.strides() }],
        finish: &finish,
        finish_params: &[],
        outputs: &outputs,
    };
    // SAFETY: sizes and strides are those of the tensors.
    unsafe { backend(Device::CPU).unwrap().reduce(&call).unwrap() };
    results
}

fn two(a: DType, b: DType) -> Program {
    let k = flambeau_engine::ir::Body::new(&[a, b]);
    let values = [k.input(0), k.input(1)];
    k.finish(&values).unwrap()
}

/// The groups of numbers that each result stands for, in row-major order of kept and of reduced dimensions.
fn groups(t: &Tensor, mask: &[bool]) -> Vec<Vec<f64>> {
    let values: Vec<f64> = t.to_scalars().unwrap().iter().map(|s| s.to_f64()).collect();
    let kept: usize = t.shape().iter().zip(mask).filter(|(_, r)| !**r).map(|(n, _)| *n).product();
    let mut out = vec![Vec::new(); kept];
    for (i, v) in values.iter().enumerate() {
        let (mut rest, mut group, mut step) = (i, 0, 1);
        for d in (0..mask.len()).rev() {
            let index = rest % t.shape()[d];
            rest /= t.shape()[d];
            if !mask[d] {
                group += index * step;
                step *= t.shape()[d];
            }
        }
        out[group].push(*v);
    }
    out
}

fn masks(ndim: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1u32 << ndim).map(move |bits| (0..ndim).map(|d| bits >> d & 1 != 0).collect())
}

/// The same elements again and again, by strides of 0.
fn expanded(t: &Tensor, sizes: &[usize], strides: &[isize]) -> Tensor {
    let layout = flambeau_engine::base::Layout::strided("expand", sizes, strides, 0).unwrap();
    Tensor::from_storage(t.storage().clone(), layout, t.dtype()).unwrap()
}

fn layouts() -> Vec<Tensor> {
    let make = |shape: &[usize]| {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 1009) as f32 / 16.0 - 30.0).collect();
        Tensor::from_slice(&values, shape).unwrap()
    };
    let permuted = |t: Tensor, order: [usize; 3]| {
        let sizes: Vec<usize> = order.iter().map(|&d| t.shape()[d]).collect();
        let strides: Vec<isize> = order.iter().map(|&d| t.strides()[d]).collect();
        let layout = flambeau_engine::base::Layout::strided("permute", &sizes, &strides, 0).unwrap();
        Tensor::from_storage(t.storage().clone(), layout, t.dtype()).unwrap()
    };
    vec![
        make(&[5, 7, 11]),
        make(&[3, 1300, 2]),
        permuted(make(&[6, 40, 33]), [2, 0, 1]),
        permuted(make(&[70, 3, 130]), [1, 2, 0]),
        make(&[2, 2, 40000]),
        make(&[1, 9, 1]),
        permuted(make(&[4, 5, 600]), [0, 2, 1]),
        expanded(&make(&[1]), &[2, 3, 4], &[0, 0, 0]),
        expanded(&make(&[5]), &[3, 5, 1], &[0, 1, 0]),
        expanded(&make(&[6]), &[6, 300, 2], &[1, 0, 0]),
        expanded(&make(&[8]), &[4, 1500, 2], &[2, 0, 1]),
        expanded(&make(&[700]), &[2, 3, 700], &[0, 0, 1]),
    ]
}

#[test]
fn sums_products_and_extrema() {
    for t in layouts() {
        for mask in masks(3) {
            let groups = groups(&t, &mask);
            let wide = t.to_dtype(DType::F64).unwrap();
            let sums = reduce(Combine::Sum, &wide, &mask)[0].to_vec::<f64>().unwrap();
            let (max, min) = (reduce(Combine::Max, &t, &mask), reduce(Combine::Min, &t, &mask));
            let (max, min) = (max[0].to_vec::<f32>().unwrap(), min[0].to_vec::<f32>().unwrap());
            for (i, g) in groups.iter().enumerate() {
                // Sixteenths add up exactly.
                assert_eq!(sums[i], g.iter().sum::<f64>(), "{:?} {mask:?}", t.shape());
                assert_eq!(max[i] as f64, g.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                assert_eq!(min[i] as f64, g.iter().copied().fold(f64::INFINITY, f64::min));
            }
            let single = reduce(Combine::Sum, &t, &mask)[0].to_vec::<f32>().unwrap();
            for (s, g) in single.iter().zip(&groups) {
                let size: f64 = g.iter().map(|x| x.abs()).sum();
                assert!((*s as f64 - g.iter().sum::<f64>()).abs() <= 1e-6 * size);
            }
        }
    }
}

#[test]
fn results_have_the_shape_asked_for() {
    for t in layouts() {
        for mask in masks(3) {
            let dims: Vec<i64> = (0..3).filter(|&d| mask[d as usize]).collect();
            if dims.is_empty() {
                continue;
            }
            let want: Vec<f64> = groups(&t, &mask).iter().map(|g| g.iter().sum()).collect();
            for keepdim in [false, true] {
                let sum = t.sum_dims(Some(&dims), keepdim, Some(DType::F64)).unwrap();
                assert_eq!(sum.ndim(), if keepdim { 3 } else { 3 - dims.len() });
                assert_eq!(sum.to_vec::<f64>().unwrap(), want, "{:?} {mask:?}", t.shape());
            }
        }
    }
}

#[test]
fn places_of_extrema_are_the_first() {
    for t in layouts() {
        // Few values, so that there are ties.
        let coarse = t.to_dtype(DType::I32).unwrap();
        for (t, mask) in masks(3).flat_map(|m| [(t.clone(), m.clone()), (coarse.clone(), m)]) {
            for (combine, sign) in [(Combine::ArgMax, 1.0), (Combine::ArgMin, -1.0)] {
                let out = reduce(combine, &t, &mask);
                let (values, places) = (out[0].to_scalars().unwrap(), out[1].to_vec::<i64>().unwrap());
                for (i, g) in groups(&t, &mask).iter().enumerate() {
                    let best = g.iter().map(|x| x * sign).fold(f64::NEG_INFINITY, f64::max) * sign;
                    assert_eq!(values[i].to_f64(), best);
                    assert_eq!(places[i] as usize, g.iter().position(|&x| x == best).unwrap(), "{:?} {mask:?}", t.shape());
                }
            }
        }
    }
}

#[test]
fn nan_is_the_extremum_and_the_first_one_wins() {
    for n in [5, 70, 3000, 200_000] {
        let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        (x[n / 2], x[n - 1]) = (f32::NAN, f32::NAN);
        let t = Tensor::from_slice(&x, &[n]).unwrap();
        for combine in [Combine::ArgMax, Combine::ArgMin] {
            let out = reduce(combine, &t, &[true]);
            assert!(out[0].to_vec::<f32>().unwrap()[0].is_nan());
            assert_eq!(out[1].to_vec::<i64>().unwrap()[0] as usize, n / 2);
        }
        for combine in [Combine::Max, Combine::Min, Combine::Sum, Combine::Prod] {
            assert!(reduce(combine, &t, &[true])[0].to_vec::<f32>().unwrap()[0].is_nan());
        }
    }
}

#[test]
fn moments_are_stable() {
    for n in [1usize, 2, 1000, 5000, 300_000] {
        // A large mean beside a small deviation.
        let values: Vec<f64> = (0..n).map(|i| 1e6 + (i * 7 % 11) as f64).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let spread: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        for (t, near) in [
            (Tensor::from_slice(&values, &[n]).unwrap(), 1e-10),
            (Tensor::from_slice(&values.iter().map(|&x| x as f32).collect::<Vec<_>>(), &[n]).unwrap(), 1e-2),
        ] {
            let out = reduce(Combine::Moments, &t, &[true]);
            let (m, s) = (out[0].to_scalars().unwrap()[0].to_f64(), out[1].to_scalars().unwrap()[0].to_f64());
            assert!((m - mean).abs() < near * mean * 1e-4, "{m} {mean}");
            assert!((s - spread).abs() <= near * spread + 1e-12, "{n}: {s} {spread}");
        }
    }
    for t in layouts() {
        for mask in masks(3) {
            let out = reduce(Combine::Moments, &t.to_dtype(DType::F64).unwrap(), &mask);
            let (m, s) = (out[0].to_vec::<f64>().unwrap(), out[1].to_vec::<f64>().unwrap());
            for (i, g) in groups(&t, &mask).iter().enumerate() {
                let mean = g.iter().sum::<f64>() / g.len() as f64;
                let spread: f64 = g.iter().map(|x| (x - mean) * (x - mean)).sum();
                assert!((m[i] - mean).abs() < 1e-10 && (s[i] - spread).abs() <= 1e-10 * spread.max(1.0), "{:?} {mask:?}", t.shape());
            }
        }
    }
}

#[test]
fn truths() {
    for t in layouts() {
        let sparse = t.to_dtype(DType::I8).unwrap();
        for mask in masks(3) {
            let any = reduce(Combine::Any, &sparse, &mask)[0].to_vec::<bool>().unwrap();
            let all = reduce(Combine::All, &sparse, &mask)[0].to_vec::<bool>().unwrap();
            for (i, g) in groups(&sparse, &mask).iter().enumerate() {
                assert_eq!(any[i], g.iter().any(|&x| x != 0.0));
                assert_eq!(all[i], g.iter().all(|&x| x != 0.0));
            }
        }
    }
}

#[test]
fn nothing_gives_the_identity() {
    let t = Tensor::empty(&[3, 0], DType::F32, Device::CPU).unwrap();
    let of = |c: Combine| reduce(c, &t, &[false, true])[0].to_scalars().unwrap();
    assert_eq!(of(Combine::Sum), [Scalar::Float(0.0); 3]);
    assert_eq!(of(Combine::Prod), [Scalar::Float(1.0); 3]);
    assert_eq!(of(Combine::Any), [Scalar::Bool(false); 3]);
    assert_eq!(of(Combine::All), [Scalar::Bool(true); 3]);
    assert_eq!(t.sum().unwrap().item().unwrap(), Scalar::Float(0.0));
}

/// Sums of halves are accumulated in single precision and rounded once.
#[test]
fn halves_accumulate_wide() {
    let ones = Tensor::full(&[10_000], 1.0, DType::BF16, Device::CPU).unwrap();
    assert_eq!(ones.sum().unwrap().to_vec::<bf16>().unwrap()[0], bf16::from_f32(10_000.0));
    let tenth = Tensor::full(&[600, 600], 0.1, DType::F16, Device::CPU).unwrap();
    let rows = tenth.sum_dims(Some(&[0]), false, None).unwrap().to_vec::<f16>().unwrap();
    assert!(rows.iter().all(|&x| x == f16::from_f32(600.0 * f16::from_f32(0.1).to_f32())));
}

#[test]
fn integers_and_bool_sum_to_int64() {
    let t = Tensor::from_slice(&[200u8; 1000], &[10, 100]).unwrap();
    assert_eq!(t.sum().unwrap().item().unwrap(), Scalar::Int(200_000));
    assert_eq!(t.sum_dims(Some(&[0]), true, None).unwrap().to_vec::<i64>().unwrap(), vec![2000; 100]);
}

/// A program before, and numbers after: the mean of squares.
#[test]
fn programs_before_and_after() {
    let x = Tensor::from_slice(&(0..600).map(|i| (i % 7) as f32).collect::<Vec<_>>(), &[2, 300]).unwrap();
    let square = program(&[DType::F32], |k, v| k.mul(v[0], v[0]));
    let finish = program(&[DType::F32], |k, v| {
        let count = k.param(DType::F32, 0);
        k.div(v[0], count)
    });
    let out = Tensor::empty(&[2], DType::F32, Device::CPU).unwrap();
    let call = Reduce {
        combine: Combine::Sum,
        sizes: &[2, 300],
        reduced: &[false, true],
        program: &square,
        params: &[],
        inputs: &[Operand { ptr: x.data_ptr().unwrap(), dtype: DType::F32, strides: &[300, 1] }],
        finish: &finish,
        finish_params: &[Scalar::Int(300)],
        outputs: &[Operand { ptr: out.data_ptr().unwrap(), dtype: DType::F32, strides: &[1, 0] }],
    };
    // SAFETY: sizes and strides are those of the tensors.
    unsafe { backend(Device::CPU).unwrap().reduce(&call).unwrap() };
    let want = |row: usize| (0..300).map(|i| ((row * 300 + i) % 7).pow(2) as f32).sum::<f32>() / 300.0;
    assert_eq!(out.to_vec::<f32>().unwrap(), [want(0), want(1)]);
}
