//! Matrix products through the backend: batches, and biases of every shape.

use flambeau_cpu as _;
use flambeau_engine::Tensor;
use flambeau_engine::backend::{Matmul, Operand, backend};
use flambeau_engine::base::{DType, Device};

fn ramp(n: usize) -> Tensor {
    Tensor::from_slice(&(0..n).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<_>>(), &[n]).unwrap()
}

#[test]
fn a_bias_of_any_strides() {
    let (batch, m, n, k) = (2, 3, 5, 4);
    let (a, b) = (ramp(batch * m * k), ramp(batch * k * n));
    let bias = ramp(batch * m * n);
    let (av, bv, cv) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap(), bias.to_vec::<f32>().unwrap());
    for strides in [[0isize, 0, 1], [0, 1, 0], [0, 0, 2], [0, 0, 0], [15, 5, 1], [0, 2, 1]] {
        for accumulate in [false, true] {
            let out = Tensor::full(&[batch * m * n], 0.5, DType::F32, Device::CPU).unwrap();
            let at = |t: &Tensor, strides: &'static [isize]| Operand { ptr: t.data_ptr().unwrap(), dtype: DType::F32, strides };
            let call = Matmul {
                batch,
                m,
                n,
                k,
                a: at(&a, &[12, 4, 1]),
                b: at(&b, &[20, 5, 1]),
                out: at(&out, &[15, 5, 1]),
                bias: Some(Operand { ptr: bias.data_ptr().unwrap(), dtype: DType::F32, strides: &strides }),
                accumulate,
            };
            // SAFETY: sizes and strides stay inside the tensors.
            unsafe { backend(Device::CPU).unwrap().matmul(&call).unwrap() };
            let got = out.to_vec::<f32>().unwrap();
            for (i, x) in got.iter().enumerate() {
                let (s, r, c) = (i / 15, i / 5 % 3, i % 5);
                let product: f32 = (0..k).map(|p| av[s * 12 + r * 4 + p] * bv[s * 20 + p * 5 + c]).sum();
                let added = cv[(s as isize * strides[0] + r as isize * strides[1] + c as isize * strides[2]) as usize];
                assert_eq!(*x, product + added + if accumulate { 0.5 } else { 0.0 }, "{strides:?} {accumulate}");
            }
        }
    }
}
