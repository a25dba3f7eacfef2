//! Steps of optimizers against the same steps in tensor operations.

use crate::support::*;
use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, ErrorKind};
use flambeau_engine::ops::optim::{Adam, Sgd, adam_step, sgd_step, total_norm};

fn zeros_like(t: &Tensor) -> Tensor {
    t.zeros_like().unwrap()
}

/// A step of Adam by its definition.
fn adam_reference(p: &mut [f64], g: &[f64], m: &mut [f64], v: &mut [f64], most: &mut [f64], t: i32, o: &Adam) {
    for i in 0..p.len() {
        let mut grad = if o.maximize { -g[i] } else { g[i] };
        if o.decoupled {
            p[i] *= 1.0 - o.lr * o.weight_decay;
        } else {
            grad += o.weight_decay * p[i];
        }
        m[i] += (1.0 - o.beta1) * (grad - m[i]);
        v[i] = o.beta2 * v[i] + (1.0 - o.beta2) * grad * grad;
        most[i] = most[i].max(v[i]);
        let square = if o.amsgrad { most[i] } else { v[i] };
        let denominator = (square / (1.0 - o.beta2.powi(t))).sqrt() + o.eps;
        p[i] -= o.lr / (1.0 - o.beta1.powi(t)) * m[i] / denominator;
    }
}

#[test]
fn adam_is_what_its_definition_says() {
    let base = Adam { lr: 0.1, weight_decay: 0.05, ..Adam::default() };
    for options in [
        Adam { weight_decay: 0.0, ..base },
        base,
        Adam { decoupled: true, ..base },
        Adam { amsgrad: true, maximize: true, beta1: 0.3, ..base },
    ] {
        let p = random(&[3, 50], 1);
        let (m, v, most, step) = (zeros_like(&p), zeros_like(&p), zeros_like(&p), Tensor::zeros(&[], DType::F32, Device::CPU).unwrap());
        let (mut rp, mut rm, mut rv, mut rmost) = (values(&p), vec![0.0; 150], vec![0.0; 150], vec![0.0; 150]);
        for t in 1..=4 {
            let g = random(&[3, 50], 10 + t);
            // A gradient laid out otherwise.
            let turned =
                g.transpose(0, 1).unwrap().copy_in(flambeau_engine::base::MemoryFormat::Contiguous).unwrap().transpose(0, 1).unwrap();
            adam_step(&[&p], &[&turned], &[&m], &[&v], &[&most], &[&step], &options).unwrap();
            adam_reference(&mut rp, &values(&g), &mut rm, &mut rv, &mut rmost, t as i32, &options);
        }
        assert_close(&p, &Tensor::from_slice(&rp, &[3, 50]).unwrap(), 1e-12);
        assert_close(&v, &Tensor::from_slice(&rv, &[3, 50]).unwrap(), 1e-12);
        assert_eq!((values(&step)[0], p.version()), (4.0, 4));
    }
}

#[test]
fn gradient_descent_rounds_as_its_operations_do() {
    // The momentum's product and sum, then the step, each rounded to bfloat16: 1.0 - 0.1 * (0.9 * 2 + 3).
    let one = |x: f64| Tensor::full(&[40], x, DType::BF16, Device::CPU).unwrap();
    let (p, g) = (one(1.0), one(3.0));
    let mut buffers = [Some(one(2.0))];
    let options = Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false, maximize: false };
    sgd_step(&[&p], &[&g], &mut buffers, &options).unwrap();
    // bfloat16(1.8) is 1.796875, so the buffer is bfloat16(4.796875) = 4.8125.
    assert_eq!(values(buffers[0].as_ref().unwrap())[0], 4.8125);
    assert_eq!(values(&p)[0], 0.519_531_25);
}

#[test]
fn gradient_descent_with_momentum() {
    for (nesterov, dampening, decay) in [(false, 0.0, 0.0), (true, 0.0, 0.1), (false, 0.5, 0.1)] {
        let p = random(&[7, 9], 1);
        let options = Sgd { lr: 0.1, momentum: 0.9, dampening, weight_decay: decay, nesterov, maximize: false };
        let (mut buffers, mut rp, mut rb) = ([None], values(&p), None::<Vec<f64>>);
        for t in 0..3 {
            let g = random(&[7, 9], 20 + t);
            sgd_step(&[&p], &[&g], &mut buffers, &options).unwrap();
            let grad: Vec<f64> = values(&g).iter().zip(&rp).map(|(g, p)| g + decay * p).collect();
            let buffer: Vec<f64> = match &rb {
                None => grad.clone(),
                Some(b) => b.iter().zip(&grad).map(|(b, g)| 0.9 * b + (1.0 - dampening) * g).collect(),
            };
            for i in 0..rp.len() {
                rp[i] -= 0.1 * if nesterov { grad[i] + 0.9 * buffer[i] } else { buffer[i] };
            }
            rb = Some(buffer);
        }
        assert_close(&p, &Tensor::from_slice(&rp, &[7, 9]).unwrap(), 1e-13);
    }
}

#[test]
fn a_step_through_a_view_with_gaps() {
    let base = random(&[4, 6], 1);
    let before = values(&base);
    let p = base.narrow(1, 0, 3).unwrap();
    let g = Tensor::full(&[4, 3], 1.0, DType::F64, Device::CPU).unwrap();
    let options = Sgd { lr: 0.5, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false, maximize: true };
    sgd_step(&[&p], &[&g], &mut [None], &options).unwrap();
    let wanted: Vec<f64> = before.iter().enumerate().map(|(i, x)| if i % 6 < 3 { x + 0.5 } else { *x }).collect();
    assert_eq!(values(&base), wanted);
}

#[test]
fn no_step_depends_on_the_number_of_threads() {
    let threads = pool::num_threads();
    let run = |n| {
        pool::set_num_threads(n);
        let params: Vec<Tensor> = (0..5).map(|i| random(&[100, 77 + i], i as u64)).collect();
        let states: Vec<[Tensor; 2]> = params.iter().map(|p| [zeros_like(p), zeros_like(p)]).collect();
        let steps: Vec<Tensor> = params.iter().map(|_| Tensor::zeros(&[], DType::F32, Device::CPU).unwrap()).collect();
        let grads: Vec<Tensor> = params.iter().map(|p| p.mul(0.3).unwrap()).collect();
        let m: Vec<Tensor> = states.iter().map(|s| s[0].clone()).collect();
        let v: Vec<Tensor> = states.iter().map(|s| s[1].clone()).collect();
        let [p, g, m, v, s] = [&params, &grads, &m, &v, &steps].map(|all| all.iter().collect::<Vec<_>>());
        adam_step(&p, &g, &m, &v, &[], &s, &Adam::default()).unwrap();
        params.iter().map(values).collect::<Vec<_>>()
    };
    let (one, four) = (run(1), run(4));
    pool::set_num_threads(threads);
    assert_eq!(one, four);
}

#[test]
fn lists_that_do_not_fit() {
    let (p, g) = (random(&[3], 1), random(&[4], 2));
    let options = Sgd { lr: 0.1, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false, maximize: false };
    assert_eq!(sgd_step(&[&p], &[], &mut [None], &options).unwrap_err().kind(), ErrorKind::Value);
    assert!(sgd_step(&[&p], &[&g], &mut [None], &options).unwrap_err().message().contains("[4]"));
    assert!(sgd_step(&[&classes(3, 3, 1)], &[&classes(3, 3, 1)], &mut [None], &options).is_err());
}

#[test]
fn the_norm_of_all_gradients() {
    let large = |x: f64| Tensor::full(&[1], x, DType::F32, Device::CPU).unwrap();
    let (a, b) = (large(3e19), large(4e19));
    assert!((values(&total_norm(&[&a, &b], 2.0).unwrap())[0] / 5e19 - 1.0).abs() < 1e-6);
    assert_eq!(values(&total_norm(&[&a, &b], f64::INFINITY).unwrap())[0], 4e19f32 as f64);
}
