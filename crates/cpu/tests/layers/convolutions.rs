//! Convolutions: vectors against plain integer loops, layouts against one another, derivatives against the identity
//! that defines them.

use crate::support::*;
use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{BackwardOptions, grad};
use flambeau_engine::base::{DType, ErrorKind, MemoryFormat};
use flambeau_engine::ops::nn::ConvOptions;

/// Shapes of input and weight, and how the windows lie.
struct Case {
    x: &'static [usize],
    w: &'static [usize],
    options: ConvOptions,
    transposed: bool,
}

fn case(x: &'static [usize], w: &'static [usize], options: ConvOptions) -> Case {
    Case { x, w, options, transposed: false }
}

fn cases() -> Vec<Case> {
    let o = ConvOptions::new;
    let mut all = vec![
        case(&[2, 20, 13, 11], &[18, 20, 3, 3], o().padding(&[1])),
        case(&[2, 20, 13, 11], &[18, 20, 3, 3], o().padding(&[1]).stride(&[2])),
        case(&[1, 16, 40, 37], &[5, 16, 3, 2], o().padding(&[2, 0]).dilation(&[2, 3]).stride(&[1, 3])),
        case(&[2, 20, 9, 33], &[12, 5, 3, 3], o().groups(4).padding(&[1])),
        case(&[3, 70, 5, 5], &[3, 70, 3, 3], o().padding(&[1])),
        case(&[2, 33, 6, 7], &[40, 33, 1, 1], o()),
        case(&[2, 33, 6, 7], &[40, 33, 1, 1], o().stride(&[2])),
        case(&[2, 3, 29, 31], &[20, 3, 7, 7], o().padding(&[3]).stride(&[2])),
        case(&[9, 17, 3, 3], &[17, 17, 3, 3], o().padding(&[1])),
        case(&[2, 40, 1, 1], &[6, 40, 1, 1], o()),
        case(&[2, 40, 9, 1], &[6, 40, 3, 1], o().padding(&[1, 0])),
        case(&[2, 1, 20, 70], &[6, 1, 5, 5], o()),
        case(&[1, 2, 4, 3], &[3, 2, 4, 3], o().padding(&[9, 8])),
        // Groups of one channel.
        case(&[2, 24, 12, 70], &[24, 1, 3, 3], o().groups(24).padding(&[1])),
        case(&[2, 70, 12, 9], &[70, 1, 3, 5], o().groups(70).padding(&[1, 4]).stride(&[2, 1])),
        case(&[2, 5, 12, 41], &[10, 1, 3, 3], o().groups(5).stride(&[1, 2]).dilation(&[2])),
        case(&[3, 18, 7, 1], &[18, 1, 3, 1], o().groups(18)),
        // Other numbers of dimensions.
        case(&[2, 19, 75], &[21, 19, 5], o().padding(&[2])),
        case(&[2, 18, 75], &[18, 1, 4], o().groups(18).stride(&[3])),
        case(&[1, 17, 5, 6, 19], &[18, 17, 3, 2, 3], o().padding(&[1, 0, 1]).stride(&[1, 2, 1])),
    ];
    let transposed = [
        (&[2usize, 20, 7, 9][..], &[20usize, 18, 4, 4][..], o().stride(&[2]).padding(&[1])),
        (&[2, 12, 5, 6], &[12, 7, 3, 2], o().stride(&[3, 1]).output_padding(&[1, 0]).groups(3)),
        (&[1, 6, 3, 4], &[6, 4, 2, 2], o().stride(&[4, 3])),
        (&[2, 17, 21], &[17, 3, 5], o().dilation(&[2]).padding(&[3])),
        (&[2, 6, 3, 4, 5], &[6, 4, 2, 3, 2], o().stride(&[1, 2, 2])),
    ];
    all.extend(transposed.map(|(x, w, options)| Case { x, w, options, transposed: true }));
    all
}

impl Case {
    fn run(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let f = match (self.transposed, x.ndim()) {
            (false, 3) => Tensor::conv1d,
            (false, 4) => Tensor::conv2d,
            (false, _) => Tensor::conv3d,
            (true, 3) => Tensor::conv_transpose1d,
            (true, 4) => Tensor::conv_transpose2d,
            (true, _) => Tensor::conv_transpose3d,
        };
        f(x, w, bias, &self.options).unwrap()
    }

    fn bias(&self) -> usize {
        if self.transposed { self.w[1] * self.options.groups as usize } else { self.w[0] }
    }

    /// Memory formats that the input can have.
    fn formats(&self) -> Vec<MemoryFormat> {
        match self.x.len() {
            4 => vec![MemoryFormat::Contiguous, MemoryFormat::ChannelsLast],
            5 => vec![MemoryFormat::Contiguous, MemoryFormat::ChannelsLast3d],
            _ => vec![MemoryFormat::Contiguous],
        }
    }
}

/// Small integers, as numbers of a dtype.
fn integers(shape: &[usize], seed: u64, dtype: DType) -> Tensor {
    let values: Vec<i64> = noise(shape.iter().product(), seed).iter().map(|x| (x * 2.0).round() as i64).collect();
    Tensor::from_slice(&values, shape).unwrap().to_dtype(dtype).unwrap()
}

#[test]
fn integers_and_floats_give_the_same_numbers() {
    for (i, case) in cases().iter().enumerate() {
        let make = |dtype| (integers(case.x, 1, dtype), integers(case.w, 2, dtype), integers(&[case.bias()], 3, dtype));
        let (x, w, b) = make(DType::I64);
        let wanted = case.run(&x, &w, Some(&b));
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let (x, w, b) = make(dtype);
            for format in case.formats() {
                let found = case.run(&x.copy_in(format).unwrap(), &w, Some(&b));
                // Sums of a few hundred small integers are exact in single precision, but not in bfloat16.
                let wanted = wanted.to_dtype(dtype).unwrap();
                assert_eq!(values(&found), values(&wanted), "case {i}, {dtype}, {format:?}");
            }
        }
    }
}

#[test]
fn gradients_are_the_transposes() {
    let dot = |a: &Tensor, b: &Tensor| a.mul(b).unwrap().sum().unwrap().item().unwrap().to_f64();
    for (i, case) in cases().iter().enumerate() {
        for format in case.formats() {
            for dtype in [DType::F64, DType::F32] {
                let x = integers(case.x, 1, dtype).copy_in(format).unwrap().requiring_grad().unwrap();
                let w = integers(case.w, 2, dtype).requiring_grad().unwrap();
                let b = integers(&[case.bias()], 3, dtype).requiring_grad().unwrap();
                let y = case.run(&x, &w, Some(&b));
                let g = integers(y.shape(), 4, dtype).copy_in(format).unwrap();
                let options = BackwardOptions { retain_graph: false, create_graph: false };
                let found = grad(&[&y], &[&x, &w, &b], &[Some(g.clone())], options).unwrap();
                let [gx, gw, gb] = [0, 1, 2].map(|i| found[i].clone().unwrap().to_dtype(DType::F64).unwrap());
                let g = g.to_dtype(DType::F64).unwrap();
                for seed in 10..13 {
                    let (u, v) = (integers(case.x, seed, DType::F64), integers(case.w, seed + 10, DType::F64));
                    let (x, w) = (x.alias().to_dtype(DType::F64).unwrap(), w.alias().to_dtype(DType::F64).unwrap());
                    assert_eq!(dot(&gx, &u), dot(&g, &case.run(&u, &w, None)), "input, case {i}, {dtype}, {format:?}");
                    assert_eq!(dot(&gw, &v), dot(&g, &case.run(&x, &v, None)), "weight, case {i}, {dtype}, {format:?}");
                }
                assert_eq!(gb.sum().unwrap().item().unwrap().to_f64(), g.sum().unwrap().item().unwrap().to_f64());
            }
        }
    }
}

#[test]
fn two_derivatives() {
    let all = [leaf(&[2, 2, 4, 3], 1), leaf(&[2, 2, 2, 3], 2), leaf(&[2], 3)];
    let options = ConvOptions::new().padding(&[1]).stride(&[2, 1]);
    check_twice(|x| Ok(vec![x[0].conv2d(&x[1], Some(&x[2]), &options)?]), &all);
    let all = [leaf(&[1, 2, 3], 1), leaf(&[2, 1, 3], 2), leaf(&[2], 3)];
    let options = ConvOptions::new().groups(2).stride(&[2]);
    check_twice(|x| Ok(vec![x[0].conv_transpose1d(&x[1], Some(&x[2]), &options)?]), &all);
}

#[test]
fn threads_change_nothing() {
    let bits = |t: &Tensor| t.to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let before = pool::num_threads();
    for case in cases() {
        let of = |threads| {
            pool::set_num_threads(threads);
            let x = random(case.x, 1).to_dtype(DType::F32).unwrap().requiring_grad().unwrap();
            let w = random(case.w, 2).to_dtype(DType::F32).unwrap().requiring_grad().unwrap();
            let y = case.run(&x, &w, None);
            y.mul(&y).unwrap().sum().unwrap().backward().unwrap();
            [bits(&y.alias()), bits(&x.grad().unwrap()), bits(&w.grad().unwrap())]
        };
        assert!(of(1) == of(5), "{:?} {:?}", case.x, case.w);
    }
    pool::set_num_threads(before);
}

#[test]
fn formats_follow_input_or_weight() {
    let options = ConvOptions::new();
    let (x, w) = (random(&[2, 3, 5, 6], 1), random(&[4, 3, 2, 2], 2));
    let last = |t: &Tensor| t.copy_in(MemoryFormat::ChannelsLast).unwrap();
    assert_eq!(x.conv2d(&w, None, &options).unwrap().strides(), [80, 20, 5, 1]);
    for (x, w) in [(last(&x), w.clone()), (x.clone(), last(&w)), (last(&x), last(&w))] {
        let y = x.requiring_grad().unwrap().conv2d(&w, None, &options).unwrap();
        assert_eq!(y.strides(), [80, 1, 20, 4]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (x, w) = (random(&[2, 4, 5, 6], 1), random(&[6, 4, 3, 3], 2));
    let refused = |x: &Tensor, w: &Tensor, b: Option<&Tensor>, o: ConvOptions, words: &str| {
        let e = x.conv2d(w, b, &o).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Runtime);
        assert!(e.message().contains(words), "{}", e.message());
    };
    let o = ConvOptions::new;
    refused(&x, &w, None, o().groups(3), "weight of size [6, 4, 3, 3], expected input[2, 4, 5, 6] to have 12 channels");
    refused(&x, &w, None, o().stride(&[0]), "non-positive stride");
    refused(&x, &w, None, o().padding(&[-1]), "negative padding");
    refused(&x, &w, None, o().stride(&[1, 1, 1]), "list of 2 values");
    refused(&x, &w, None, o().dilation(&[3]), "Kernel size can't be greater than actual input size");
    refused(&x, &w, None, o().same().stride(&[2]), "padding='same' is not supported for strided convolutions");
    refused(&x, &w, Some(&random(&[5], 3)), o(), "expected bias to be 1-dimensional with 6 elements");
    refused(&random(&[2, 4], 1), &w, None, o(), "Expected 3D (unbatched) or 4D (batched) input");
    refused(&x.to_dtype(DType::F32).unwrap(), &w, None, o(), "should be the same");
    let e = x.conv_transpose2d(&random(&[4, 2, 3, 3], 2), None, &o().output_padding(&[1])).unwrap_err();
    assert!(e.message().contains("output padding must be smaller"), "{}", e.message());
}

#[test]
fn nothing_gives_nothing_or_the_bias() {
    let w = random(&[6, 4, 3, 3], 2);
    assert_eq!(random(&[0, 4, 5, 6], 1).conv2d(&w, None, &ConvOptions::new()).unwrap().shape(), [0, 6, 3, 4]);
    let b = random(&[6], 3);
    let y = random(&[1, 0, 5, 6], 1).conv2d(&random(&[6, 0, 3, 3], 2), Some(&b), &ConvOptions::new()).unwrap();
    assert_close(&y, &b.reshape(&[1, 6, 1, 1]).unwrap().expand_as(&y).unwrap(), 0.0);
    let x = random(&[0, 4, 5, 6], 1).requiring_grad().unwrap();
    let w = w.requiring_grad().unwrap();
    x.conv2d(&w, None, &ConvOptions::new()).unwrap().sum().unwrap().backward().unwrap();
    assert!(values(&w.grad().unwrap()).iter().all(|&v| v == 0.0));
}
