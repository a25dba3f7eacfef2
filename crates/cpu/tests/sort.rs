//! Sorting, selecting, what is there but once; and tensors as text. Values "as PyTorch" were measured from PyTorch 2.15.

use flambeau_cpu as _;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::gradcheck;
use flambeau_engine::base::{Complex32, DType, Device, ErrorKind};
use flambeau_engine::ops::index::searchsorted;
use flambeau_engine::ops::sort::{unique, unique_consecutive};
use proptest::prelude::*;
use std::cmp::Ordering;

fn total(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Places in order by a stable sort of the standard library.
fn places(values: &[f32], descending: bool) -> Vec<i64> {
    let mut places: Vec<i64> = (0..values.len() as i64).collect();
    places.sort_by(|&i, &j| {
        let order = total(values[i as usize], values[j as usize]);
        if descending { order.reverse() } else { order }
    });
    places
}

fn special() -> impl Strategy<Value = f32> {
    prop_oneof![4 => -3.0f32..3.0, 2 => (-2i32..3).prop_map(|i| i as f32), 1 => Just(-0.0f32), 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)]
}

proptest! {
    #[test]
    fn short_rows_are_sorted_stably(values in proptest::collection::vec(special(), 1..80), descending: bool, k in 0usize..80) {
        let x = Tensor::from_slice(&values, &[values.len()]).unwrap();
        let want = places(&values, descending);
        let (sorted, found) = x.sort(0, descending).unwrap();
        prop_assert_eq!(found.to_vec::<i64>().unwrap(), want.clone());
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let moved: Vec<f32> = want.iter().map(|&i| values[i as usize]).collect();
        prop_assert_eq!(bits(&sorted.to_vec::<f32>().unwrap()), bits(&moved));
        // The first k do not depend on k.
        let k = k.min(values.len());
        let (_, first) = x.topk(k as i64, 0, descending).unwrap();
        prop_assert_eq!(first.to_vec::<i64>().unwrap(), want[..k].to_vec());
    }
}

#[test]
fn long_rows_are_sorted_by_digits() {
    let n = 5000;
    let values: Vec<f32> = (0..n).map(|i| ((i * 7919) % 613) as f32 - 300.0).collect();
    let x = Tensor::from_slice(&values, &[n]).unwrap();
    for descending in [false, true] {
        let want = places(&values, descending);
        assert_eq!(x.sort(0, descending).unwrap().1.to_vec::<i64>().unwrap(), want);
        assert_eq!(x.topk(50, 0, descending).unwrap().1.to_vec::<i64>().unwrap(), want[..50]);
        assert_eq!(x.topk(3000, 0, descending).unwrap().1.to_vec::<i64>().unwrap(), want[..3000]);
        for dtype in [DType::F64, DType::I64, DType::I16, DType::F16] {
            assert_eq!(x.to_dtype(dtype).unwrap().sort(0, descending).unwrap().1.to_vec::<i64>().unwrap(), want, "{dtype}");
        }
    }
    let wide: Vec<i64> = (0..n as i64).map(|i| ((i * 7919 % 5003 - 2500) << 40) | (i % 3)).collect();
    let mut want = wide.clone();
    want.sort_unstable();
    assert_eq!(Tensor::from_slice(&wide, &[n]).unwrap().sort(0, false).unwrap().0.to_vec::<i64>().unwrap(), want);
}

#[test]
fn other_dimensions_and_layouts() {
    let x = Tensor::from_slice(&(0..24).map(|i| ((i * 7) % 24) as f64).collect::<Vec<_>>(), &[2, 3, 4]).unwrap();
    for dim in 0..3 {
        let (values, at) = x.sort(dim, true).unwrap();
        assert_eq!(x.gather(dim, &at).unwrap().to_vec::<f64>().unwrap(), values.to_vec::<f64>().unwrap());
        let turned = x.permute(&[2, 0, 1]).unwrap();
        let (values, at) = turned.sort(dim, false).unwrap();
        assert_eq!(values.strides(), turned.strides());
        assert_eq!(turned.gather(dim, &at).unwrap().to_vec::<f64>().unwrap(), values.to_vec::<f64>().unwrap());
        let (kth, _) = x.kthvalue(1, dim, true).unwrap();
        assert_eq!(kth.to_vec::<f64>().unwrap(), x.sort(dim, false).unwrap().0.narrow(dim, 0, 1).unwrap().to_vec::<f64>().unwrap());
    }
    let x = x.requiring_grad().unwrap();
    gradcheck(
        |t| Ok(vec![t[0].sort(1, true)?.0, t[0].topk(2, 2, true)?.0, t[0].kthvalue(2, 0, false)?.0]),
        std::slice::from_ref(&x),
        1e-6,
        1e-6,
        1e-6,
    )
    .unwrap();
    assert_eq!(x.topk(9, 0, true).unwrap_err().kind(), ErrorKind::Runtime);
}

#[test]
fn distinct_elements() {
    let x = Tensor::from_slice(&[3i64, 1, 3, 2, 1, 1], &[2, 3]).unwrap();
    let u = unique(&x).unwrap();
    assert_eq!(u.values.to_vec::<i64>().unwrap(), [1, 2, 3]);
    assert_eq!((u.inverse.shape(), u.inverse.to_vec::<i64>().unwrap()), (&[2, 3][..], vec![2, 0, 2, 1, 0, 0]));
    assert_eq!(u.counts.to_vec::<i64>().unwrap(), [3, 1, 2]);
    let nan = f32::NAN;
    // Each NaN counts for itself, as PyTorch.
    assert_eq!(
        unique(&Tensor::from_slice(&[nan, 1.0, nan, -0.0, 0.0], &[5]).unwrap()).unwrap().counts.to_vec::<i64>().unwrap(),
        [2, 1, 1, 1]
    );
    let rows = Tensor::from_slice(&[1i64, 2, 1, 2, 0, 1, 1, 2], &[4, 2]).unwrap();
    let u = unique_consecutive(&rows, Some(0)).unwrap();
    assert_eq!(u.values.to_vec::<i64>().unwrap(), [1, 2, 0, 1, 1, 2]);
    assert_eq!(u.counts.to_vec::<i64>().unwrap(), [2, 1, 1]);
}

#[test]
fn places_in_sorted_rows() {
    let rows = Tensor::from_slice(&[1.0f32, 2.0, 2.0, 5.0], &[4]).unwrap();
    let values = Tensor::from_slice(&[0.0f32, 2.0, 5.0, 9.0], &[2, 2]).unwrap();
    assert_eq!(searchsorted(&rows, &values, false, false, None).unwrap().to_vec::<i64>().unwrap(), [0, 1, 3, 4]);
    assert_eq!(searchsorted(&rows, &values, true, true, None).unwrap().to_vec::<i32>().unwrap(), [0, 3, 4, 4]);
}

#[test]
fn text_as_pytorch_prints_it() {
    let inf = f32::INFINITY;
    let f = |v: &[f32]| Tensor::from_slice(v, &[v.len()]).unwrap();
    let cases: Vec<(Tensor, &str)> = vec![
        (f(&[1.0, 2.5, inf]), "tensor([1.0000, 2.5000,    inf])"),
        (f(&[1.0, 2.0, f32::NAN]), "tensor([1., 2., nan])"),
        (f(&[1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (f(&[0.03125, 1.0]), "tensor([0.0312, 1.0000])"),
        (Tensor::from_slice(&[1i64, 20, 300, 4], &[2, 2]).unwrap(), "tensor([[  1,  20],\n        [300,   4]])"),
        (Tensor::from_slice(&[true, false], &[2]).unwrap(), "tensor([ True, False])"),
        (Tensor::from_slice(&[2.5f32], &[]).unwrap(), "tensor(2.5000)"),
        (Tensor::from_slice::<f32>(&[], &[0, 3]).unwrap(), "tensor([], size=(0, 3))"),
        (Tensor::from_slice(&[1.5f64], &[1]).unwrap(), "tensor([1.5000], dtype=torch.float64)"),
        (
            Tensor::from_slice(&[Complex32::new(1.0, 2.0), Complex32::new(-3.5, -1e-3)], &[2]).unwrap(),
            "tensor([ 1.0000+2.0000e+00j, -3.5000-1.0000e-03j])",
        ),
        (Tensor::from_slice(&(0..2000i64).collect::<Vec<_>>(), &[2000]).unwrap(), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
        (Tensor::zeros(&[2, 3], DType::F32, Device::META).unwrap(), "tensor(..., device='meta', size=(2, 3))"),
        (f(&[1.0]).requiring_grad().unwrap(), "tensor([1.], requires_grad=True)"),
        (f(&[1.0]).requiring_grad().unwrap().view(&[1, 1]).unwrap().flatten(0, -1).unwrap(), "tensor([1.], grad_fn=<ViewBackward0>)"),
    ];
    for (t, want) in cases {
        assert_eq!(t.to_string(), want);
    }
    let grid = Tensor::from_slice(&(0..1200).map(|i| i as f32).collect::<Vec<_>>(), &[30, 40]).unwrap();
    let text = grid.to_string();
    assert!(
        text.starts_with("tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,\n         3.9000e+01],\n"),
        "{text}"
    );
    assert!(text.contains("1.1900e+02],\n        ...,\n        [1.0800e+03"), "{text}");
}
