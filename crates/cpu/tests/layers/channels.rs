//! Norms over channels, recurrent cells.

use crate::support::*;
use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::base::DType;
use flambeau_engine::ops::nn::{Cell, ChannelNorm, Recurrent, channel_norm_composite};

fn norm(groups: usize) -> ChannelNorm {
    ChannelNorm { groups, eps: 1e-5, weight: true, bias: true, given: false }
}

fn batch_norm(x: &Tensor, w: &Tensor, b: &Tensor) -> Tensor {
    x.batch_norm(Some(w), Some(b), None, None, true, 0.1, 1e-5).unwrap()
}

#[test]
fn norms_agree_with_their_composite_form() {
    for shape in [&[4usize, 6][..], &[300, 33], &[3, 6, 7], &[2, 6, 7, 7], &[2, 6, 3, 40], &[2, 6, 50, 60], &[2, 2, 2, 2, 3]] {
        let c = shape[1];
        let all = [random(shape, 1), random(&[c], 2), random(&[c], 3)];
        assert_close(&batch_norm(&all[0], &all[1], &all[2]), &channel_norm_composite(&norm(0), &all, None).unwrap(), 1e-12);
        let groups = if c % 3 == 0 { 3 } else { 2 };
        let found = all[0].group_norm(groups as i64, Some(&all[1]), Some(&all[2]), 1e-5).unwrap();
        assert_close(&found, &channel_norm_composite(&norm(groups), &all, None).unwrap(), 1e-12);
        for (dtype, tolerance) in [(DType::F32, 2e-6), (DType::BF16, 2e-2), (DType::F16, 3e-3)] {
            let narrow = all[0].to_dtype(dtype).unwrap();
            let parameters = [&all[1], &all[2]].map(|t| t.to_dtype(DType::F32).unwrap());
            let wide = [narrow.to_dtype(DType::F64).unwrap(), all[1].clone(), all[2].clone()];
            let wanted = channel_norm_composite(&norm(0), &wide, None).unwrap();
            assert_close(&batch_norm(&narrow, &parameters[0], &parameters[1]), &wanted, tolerance);
        }
    }
}

#[test]
fn channels_that_lie_innermost_give_the_same() {
    let x = random(&[3, 35, 5, 4], 7);
    let last = x.permute(&[0, 2, 3, 1]).unwrap().contiguous().unwrap().permute(&[0, 3, 1, 2]).unwrap();
    let (w, b) = (random(&[35], 8), random(&[35], 9));
    let found = batch_norm(&last, &w, &b);
    assert_eq!(found.strides(), last.strides());
    assert_close(&found, &batch_norm(&x, &w, &b), 1e-13);
    let grads = [x, last].map(|x| {
        let x = x.detach().unwrap();
        x.set_requires_grad(true).unwrap();
        let y = batch_norm(&x, &w, &b);
        y.mul(&y).unwrap().mul(&y).unwrap().sum().unwrap().backward().unwrap();
        x.grad().unwrap()
    });
    assert_close(&grads[0], &grads[1], 1e-11);
}

#[test]
fn norms_have_two_derivatives() {
    for shape in [&[3usize, 4][..], &[2, 4, 3]] {
        let inputs = [leaf(shape, 1), leaf(&[4], 2), leaf(&[4], 3)];
        check_twice(|t| Ok(vec![t[0].batch_norm(Some(&t[1]), Some(&t[2]), None, None, true, 0.1, 1e-3)?]), &inputs);
        check_twice(|t| Ok(vec![t[0].group_norm(2, Some(&t[1]), Some(&t[2]), 1e-3)?]), &inputs);
        let (mean, var) = (random(&[4], 4), random(&[4], 5).square().unwrap());
        check_twice(|t| Ok(vec![t[0].batch_norm(Some(&t[1]), Some(&t[2]), Some(&mean), Some(&var), false, 0.1, 1e-3)?]), &inputs);
    }
    check_twice(|t| Ok(vec![t[0].local_response_norm(3, 0.5, 0.75, 1.0)?]), &[leaf(&[2, 4, 3], 6)]);
}

#[test]
fn squares_that_leave_the_range_of_numbers() {
    let x = Tensor::from_slice(&[1e30f32, -1e30, 3e30, -3e30], &[4, 1]).unwrap();
    let rows = x.reshape(&[1, 1, 4]).unwrap();
    let y = rows.batch_norm(None, None, None, None, true, 0.1, 1e-5).unwrap();
    assert_close(&y, &rows.to_dtype(DType::F64).unwrap().batch_norm(None, None, None, None, true, 0.1, 1e-5).unwrap(), 1e-5);
}

#[test]
fn statistics_do_not_depend_on_the_number_of_threads() {
    let threads = pool::num_threads();
    let run = || {
        let mut found = Vec::new();
        for shape in [&[700usize, 96][..], &[8, 24, 30, 30]] {
            let (x, w, b) = (leaf(shape, 1), leaf(&shape[1..2], 2), leaf(&shape[1..2], 3));
            let y = batch_norm(&x, &w, &b);
            y.mul(&y).unwrap().mul(&y).unwrap().sum().unwrap().backward().unwrap();
            found.push([values(&y), values(&x.grad().unwrap()), values(&w.grad().unwrap()), values(&b.grad().unwrap())]);
        }
        found
    };
    pool::set_num_threads(1);
    let one = run();
    pool::set_num_threads(4);
    let four = run();
    pool::set_num_threads(threads);
    assert_eq!(one, four);
}

#[test]
fn recurrent_cells_have_two_derivatives() {
    let options =
        |cell| Recurrent { cell, biases: true, layers: 1, dropout: 0.0, training: true, bidirectional: false, batch_first: false };
    for (cell, gates) in [(Cell::Lstm, 4), (Cell::Gru, 3)] {
        let mut inputs = vec![leaf(&[2, 2, 3], 1), leaf(&[2 * gates, 3], 2), leaf(&[2 * gates, 2], 3), leaf(&[2 * gates], 4)];
        inputs.push(leaf(&[1, 2, 2], 5));
        let memory = random(&[1, 2, 2], 6);
        let run = |t: &[Tensor]| {
            let states: Vec<&Tensor> = [&t[4], &memory].into_iter().take(cell.states()).collect();
            let mut out = t[0].recurrent(&states, &[&t[1], &t[2], &t[3], &t[3]], &options(cell))?;
            out.truncate(1);
            Ok(out)
        };
        check_twice(run, &inputs);
    }
}
