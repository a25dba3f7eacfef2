//! Strided, transposed and broadcast operands, in place, and results that do not depend on threads.

use super::common::{program, run};
use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::backend::{Operand, backend};
use flambeau_engine::base::{DType, Device, MemoryFormat, Scalar};
use flambeau_engine::ir::Body;

fn iota(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>(), shape).unwrap()
}

fn view(t: &Tensor, sizes: &[usize], strides: &[isize], offset: usize) -> Tensor {
    let layout = flambeau_engine::base::Layout::strided("view", sizes, strides, offset).unwrap();
    Tensor::from_storage(t.storage().clone(), layout, t.dtype()).unwrap()
}

#[test]
fn transposed_and_strided_operands() {
    for (m, n) in [(3, 5), (70, 130), (300, 37), (1, 9), (513, 257)] {
        let a = iota(&[m, n]);
        let b = view(&iota(&[n, m]), &[m, n], &[1, m as isize], 0);
        let wide = iota(&[m, 2 * n + 3]);
        let c = view(&wide, &[m, n], &[2 * n as isize + 3, 2], 1);
        let sum = a.add(&b).unwrap().add(&c).unwrap();
        let (av, bv, cv) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap(), c.to_vec::<f32>().unwrap());
        let want: Vec<f32> = (0..m * n).map(|i| av[i] + bv[i] + cv[i]).collect();
        assert_eq!(sum.to_vec::<f32>().unwrap(), want);
        assert_eq!(b.copy_in(MemoryFormat::Contiguous).unwrap().to_vec::<f32>().unwrap(), bv);
        assert_eq!(b.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap(), bv.iter().map(|&x| x as f64).collect::<Vec<_>>());
    }
}

#[test]
fn copies_of_every_element_size() {
    for dtype in [DType::U8, DType::BF16, DType::I32, DType::F64, DType::C128] {
        for shape in [[67, 35], [8, 300], [129, 128]] {
            let a = iota(&shape).to_dtype(dtype).unwrap();
            let t = view(&a, &[shape[1], shape[0]], &[1, shape[1] as isize], 0);
            let copy = t.copy_in(MemoryFormat::Contiguous).unwrap();
            assert!(copy.is_contiguous() && copy.to_scalars().unwrap() == t.to_scalars().unwrap(), "{dtype} {shape:?}");
        }
    }
}

#[test]
fn three_dimensions_in_every_order() {
    let base = iota(&[7, 11, 13]);
    let steps = [143isize, 13, 1];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let sizes: Vec<usize> = order.iter().map(|&d| [7, 11, 13][d]).collect();
        let strides: Vec<isize> = order.iter().map(|&d| steps[d]).collect();
        let t = view(&base, &sizes, &strides, 0);
        assert_eq!(t.copy_in(MemoryFormat::Contiguous).unwrap().to_vec::<f32>().unwrap(), t.to_vec::<f32>().unwrap());
        let other = iota(&sizes);
        let want: Vec<f32> = t.to_vec::<f32>().unwrap().iter().zip(other.to_vec::<f32>().unwrap()).map(|(a, b)| a - b).collect();
        assert_eq!(t.sub(&other).unwrap().to_vec::<f32>().unwrap(), want);
    }
}

#[test]
fn broadcast_rows_columns_and_numbers() {
    for (m, n) in [(4, 6), (50, 700), (700, 3)] {
        let a = iota(&[m, n]);
        let (row, column, one) = (iota(&[n]), iota(&[m, 1]), Tensor::from_slice(&[2.5f32], &[]).unwrap());
        let out = a.mul(&row).unwrap().add(&column).unwrap().sub(&one).unwrap().add(0.5).unwrap().to_vec::<f32>().unwrap();
        for i in 0..m {
            for j in 0..n {
                let want = (i * n + j) as f32 * j as f32 + i as f32 - 2.5 + 0.5;
                assert_eq!(out[i * n + j], want);
            }
        }
    }
}

#[test]
fn writes_strided_results_in_place() {
    let base = Tensor::zeros(&[40, 90], DType::I32, Device::CPU).unwrap();
    let odd = view(&base, &[40, 45], &[90, 2], 1);
    odd.fill_(3.0).unwrap();
    odd.add_(&odd).unwrap();
    odd.mul_(7).unwrap();
    let sum: i64 = base.to_vec::<i32>().unwrap().iter().map(|&x| x as i64).sum();
    assert_eq!(sum, 40 * 45 * 42);
    assert!(base.to_vec::<i32>().unwrap().chunks(2).all(|p| p == [0, 42]));
}

/// Two outputs, the first over the first input: the second still sees what was there.
#[test]
fn outputs_over_inputs() {
    for dtype in [DType::F32, DType::F16] {
        let mut k = Body::new(&[dtype, dtype]);
        let (x, y) = (k.input(0), k.input(1));
        let sum = k.add(x, y);
        let product = k.mul(sum, x);
        for (outputs, want) in
            [([sum, x], [3.0, 1.0]), ([y, x], [2.0, 1.0]), ([sum, product], [3.0, 3.0]), ([product, product], [3.0, 3.0])]
        {
            let mut body = Body::new(&[dtype, dtype]);
            let (a, b) = (body.input(0), body.input(1));
            let s = body.add(a, b);
            let p = body.mul(s, a);
            let of = |v| {
                if v == x {
                    a
                } else if v == y {
                    b
                } else if v == sum {
                    s
                } else {
                    p
                }
            };
            let program = body.finish(&outputs.map(of)).unwrap();
            let make = |v: f64| Tensor::full(&[200], v, dtype, Device::CPU).unwrap();
            let (t, u) = (make(1.0), make(2.0));
            let at = |t: &Tensor| Operand { ptr: t.data_ptr().unwrap(), dtype, strides: &[1] };
            // SAFETY: tensors of 200 elements; each output is an input.
            unsafe { backend(Device::CPU).unwrap().pointwise(&program, &[], &[200], &[at(&t), at(&u)], &[at(&t), at(&u)]).unwrap() };
            assert_eq!(t.to_scalars().unwrap()[199], Scalar::Float(want[0]), "{program}");
            assert_eq!(u.to_scalars().unwrap()[0], Scalar::Float(want[1]), "{program}");
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let n = 300_001;
    let xs: Vec<f32> = (0..n).map(|i| ((i * 7919) % 10007) as f32 / 971.0 - 5.0).collect();
    let x = Tensor::from_slice(&xs, &[n]).unwrap();
    let p = program(&[DType::F32], |k, v| {
        let g = k.gelu(v[0]);
        let s = k.sin(g);
        k.add(s, v[0])
    });
    let before = pool::num_threads();
    let bits = |threads: usize| {
        pool::set_num_threads(threads);
        let y = run(&p, &[], &[&x]).unwrap();
        let sum = y.sum().unwrap().to_vec::<f32>().unwrap();
        (y.to_vec::<f32>().unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>(), sum[0].to_bits())
    };
    let (one, two, four) = (bits(1), bits(2), bits(4));
    pool::set_num_threads(before);
    assert!(one == two && one == four);
}
