//! Attention.

use crate::support::*;
use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::base::DType;
use flambeau_engine::ops::nn::{AttentionOptions, attention_composite};

fn plain() -> AttentionOptions<'static> {
    AttentionOptions::default()
}

#[test]
fn tiles_agree_with_all_scores_at_once() {
    // More queries and keys than a tile holds, and fewer; heads that share keys.
    for [b, h, hk, l, s, e, v] in [[2, 4, 2, 5, 7, 4, 6], [1, 2, 2, 70, 300, 8, 8], [1, 3, 1, 130, 130, 16, 3], [1, 1, 1, 64, 256, 5, 5]] {
        let (q, k, w) = (random(&[b, h, l, e], 1), random(&[b, hk, s, e], 2), random(&[b, hk, s, v], 3));
        let seen = random(&[l, s], 4).gt(-1.0).unwrap();
        let added = random(&[b, 1, l, s], 5);
        let forms = [
            AttentionOptions { grouped: true, ..plain() },
            AttentionOptions { grouped: true, causal: true, scale: Some(0.3), ..plain() },
            AttentionOptions { grouped: true, mask: Some(&seen), ..plain() },
            AttentionOptions { grouped: true, mask: Some(&added), ..plain() },
        ];
        for options in forms {
            let scale = options.scale.unwrap_or(1.0 / (e as f64).sqrt());
            let wanted = attention_composite(&q, &k, &w, options.mask, options.causal, scale, 0.0).unwrap();
            assert_close(&q.attention(&k, &w, &options).unwrap(), &wanted, 1e-13);
            if let Some(mask) = options.mask
                && mask.dtype() != DType::Bool
            {
                continue;
            }
            let narrow = |t: &Tensor| t.to_dtype(DType::BF16).unwrap();
            let found = narrow(&q).attention(&narrow(&k), &narrow(&w), &options).unwrap();
            assert_close(&found, &wanted, 5e-2);
        }
    }
}

#[test]
fn tiles_have_the_gradients_of_all_scores_at_once() {
    let run = |tiled: bool| {
        let (q, k, v) = (leaf(&[1, 2, 70, 5], 1), leaf(&[1, 1, 300, 5], 2), leaf(&[1, 1, 300, 3], 3));
        let options = AttentionOptions { causal: true, grouped: true, scale: Some(0.4), ..plain() };
        let y = if tiled { q.attention(&k, &v, &options).unwrap() } else { attention_composite(&q, &k, &v, None, true, 0.4, 0.0).unwrap() };
        y.mul(&random(&[1, 2, 70, 3], 4)).unwrap().sum().unwrap().backward().unwrap();
        [q, k, v].map(|t| t.grad().unwrap())
    };
    for (found, wanted) in run(true).iter().zip(&run(false)) {
        assert_close(found, wanted, 1e-12);
    }
}

#[test]
fn attention_has_two_derivatives() {
    let all = [leaf(&[1, 2, 3, 2], 1), leaf(&[1, 2, 4, 2], 2), leaf(&[1, 2, 4, 3], 3)];
    check_twice(|x| Ok(vec![x[0].attention(&x[1], &x[2], &plain())?]), &all);
    check_twice(|x| Ok(vec![x[0].attention(&x[1], &x[2], &AttentionOptions { causal: true, ..plain() })?]), &all);
    let mask = leaf(&[3, 4], 4);
    let with_mask = [all[0].clone(), all[1].clone(), all[2].clone(), mask];
    check_twice(|x| Ok(vec![x[0].attention(&x[1], &x[2], &AttentionOptions { mask: Some(&x[3]), ..plain() })?]), &with_mask);
}

#[test]
fn a_row_that_sees_nothing_is_zero_and_nan_stays() {
    let (q, v) = (leaf(&[1, 2, 4], 1), random(&[1, 2, 4], 2));
    let seen = Tensor::from_slice(&[true, true, false, false], &[2, 2]).unwrap();
    let y = q.attention(&q, &v, &AttentionOptions { mask: Some(&seen), ..plain() }).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(values(&y)[4..], [0.0; 4]);
    assert!(values(&q.grad().unwrap()).iter().all(|g| g.is_finite()));
    let broken = Tensor::full(&[1, 2, 4], f64::NAN, DType::F64, flambeau_engine::base::Device::CPU).unwrap();
    let y = broken.attention(&random(&[1, 2, 4], 3), &v, &plain()).unwrap();
    assert!(values(&y).iter().all(|x| x.is_nan()));
}

#[test]
fn split_heads_come_back_without_a_copy() {
    let heads = random(&[2, 5, 3, 4], 1).transpose(1, 2).unwrap();
    let y = heads.attention(&heads, &heads, &plain()).unwrap();
    assert_eq!(y.strides(), heads.strides());
}

#[test]
fn no_result_depends_on_the_number_of_threads() {
    let threads = pool::num_threads();
    let run = || {
        let q = leaf(&[2, 2, 150, 8], 1);
        let y = q.attention(&q, &q, &AttentionOptions { causal: true, ..plain() }).unwrap();
        y.mul(&y).unwrap().sum().unwrap().backward().unwrap();
        [values(&y), values(&q.grad().unwrap())]
    };
    pool::set_num_threads(1);
    let one = run();
    pool::set_num_threads(3);
    let three = run();
    pool::set_num_threads(threads);
    assert_eq!(one, three);
}

#[test]
fn operands_that_do_not_fit() {
    let (q, k) = (random(&[2, 3, 5, 4], 1), random(&[2, 3, 7, 4], 2));
    let fails = |q: &Tensor, k: &Tensor, o: &AttentionOptions| q.attention(k, k, o).unwrap_err().to_string();
    assert!(fails(&q, &k.narrow(3, 0, 3).unwrap(), &plain()).contains("[2, 3, 7, 3]"));
    assert!(fails(&q, &k.to_dtype(DType::F32).unwrap(), &plain()).contains("same dtype"));
    let mask = random(&[5, 6], 3);
    assert!(fails(&q, &k, &AttentionOptions { mask: Some(&mask), ..plain() }).contains("must match the size of tensor b (6)"));
    assert!(fails(&q, &k, &AttentionOptions { mask: Some(&mask), causal: true, ..plain() }).contains("is_causal=True"));
    assert!(fails(&q, &k.narrow(1, 0, 2).unwrap(), &AttentionOptions { grouped: true, ..plain() }).contains("divide"));
}
