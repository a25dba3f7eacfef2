//! Indexing, views by part, gather and scatter on the CPU. Values "as PyTorch" were measured from PyTorch 2.15.

use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::autograd::{BackwardOptions, grad, gradcheck, no_grad};
use flambeau_engine::base::{DType, Device, ErrorKind, Result};
use flambeau_engine::ops::index::{IndexItem, embedding};
use flambeau_engine::ops::join::{cat, stack};
use flambeau_engine::ops::{Args, Value, table};
use proptest::prelude::*;

fn floats(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 17.0 - 2.7).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn range(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>(), shape).unwrap()
}

fn ints(values: &[i64], shape: &[usize]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

fn at(values: &[i64]) -> IndexItem {
    IndexItem::Tensor(ints(values, &[values.len()]))
}

fn all() -> IndexItem {
    IndexItem::Slice { start: None, stop: None, step: None }
}

fn leaf(shape: &[usize]) -> Tensor {
    floats(shape).requiring_grad().unwrap()
}

/// Derivatives in all inputs against finite differences.
fn check(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) {
    gradcheck(f, inputs, 1e-6, 1e-6, 1e-6).unwrap();
}

fn kind(result: Result<impl Sized>) -> (ErrorKind, String) {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(e) => (e.kind(), e.to_string()),
    }
}

#[test]
fn results_stand_where_numpy_puts_them() {
    let x = range(&[2, 3, 4, 5]);
    let (i, j) = (at(&[0, 1]), IndexItem::Tensor(ints(&[2, 0], &[2, 1])));
    let plane = x.index_items(&[IndexItem::Int(0), all(), all(), IndexItem::Int(0)]).unwrap();
    let mask = IndexItem::Tensor(plane.gt(50.0).unwrap());
    let tall = x.select(3, 0).unwrap().sum_dims(Some(&[-1]), false, None).unwrap().gt(300.0).unwrap();
    // Shape, sum, first and last element as PyTorch.
    let cases: Vec<(Vec<IndexItem>, &[usize], f64, f32, f32)> = vec![
        (vec![all(), i.clone(), j], &[2, 2, 2, 5], 1880.0, 10.0, 84.0),
        (vec![i.clone(), all(), all(), at(&[1, 4])], &[2, 3, 4], 1440.0, 1.0, 119.0),
        (vec![i.clone(), IndexItem::NewAxis, i.clone()], &[2, 1, 4, 5], 1980.0, 0.0, 99.0),
        (vec![IndexItem::Int(0), all(), i], &[3, 2, 5], 735.0, 0.0, 49.0),
        (vec![all(), mask], &[2, 1, 5], 870.0, 55.0, 119.0),
        (vec![IndexItem::Int(-1), at(&[-1, 0]), IndexItem::Ellipsis, IndexItem::Int(-2)], &[2, 4], 724.0, 103.0, 78.0),
        (vec![IndexItem::Bool(true)], &[1, 2, 3, 4, 5], 7140.0, 0.0, 119.0),
    ];
    for (items, shape, sum, first, last) in cases {
        let y = x.index_items(&items).unwrap();
        let values = y.to_vec::<f32>().unwrap();
        assert_eq!(y.shape(), shape, "{items:?}");
        assert_eq!(values.iter().map(|&v| v as f64).sum::<f64>(), sum, "{items:?}");
        assert_eq!((values[0], values[values.len() - 1]), (first, last), "{items:?}");
    }
    let none = x.index_items(&[IndexItem::Tensor(tall), IndexItem::Ellipsis, IndexItem::Int(1)]).unwrap();
    assert_eq!(none.ndim(), 2);
}

#[test]
fn views_share_memory_and_copies_do_not() {
    let x = range(&[4, 5]);
    let step = IndexItem::Slice { start: Some(1), stop: None, step: Some(2) };
    let view = x.index_items(&[step.clone(), IndexItem::NewAxis, IndexItem::Int(-1)]).unwrap();
    assert!(view.shares_storage(&x));
    assert_eq!((view.shape(), view.to_vec::<f32>().unwrap()), (&[2, 1][..], vec![9.0, 19.0]));
    x.set_items(&[step, IndexItem::Int(4)], -1.0).unwrap();
    assert_eq!(view.to_vec::<f32>().unwrap(), [-1.0, -1.0]);
    assert!(!x.index_items(&[at(&[0])]).unwrap().shares_storage(&x));
}

#[test]
fn wrong_indices_are_named() {
    let x = range(&[2, 3]);
    let cases: Vec<(Vec<IndexItem>, ErrorKind, &str)> = vec![
        (vec![IndexItem::Int(5)], ErrorKind::Index, "index 5 is out of bounds for dimension 0 with size 2"),
        (vec![all(), IndexItem::Int(-4)], ErrorKind::Index, "index -4 is out of bounds for dimension 1 with size 3"),
        (vec![all(), at(&[0, 7])], ErrorKind::Index, "index 7 is out of bounds for dimension 1 with size 3"),
        (vec![all(), all(), all()], ErrorKind::Index, "too many indices for tensor of dimension 2"),
        (vec![IndexItem::Tensor(ints(&[0; 3], &[3]).eq(0).unwrap())], ErrorKind::Index, "The shape of the mask [3] at index 0"),
        (vec![at(&[0, 1]), at(&[0, 1, 2])], ErrorKind::Index, "could not be broadcast together with shapes [2], [3]"),
        (vec![IndexItem::Tensor(range(&[2]))], ErrorKind::Index, "must be long, int, byte or bool"),
        (vec![IndexItem::Slice { start: None, stop: None, step: Some(-1) }], ErrorKind::Value, "step must be greater than zero"),
    ];
    for (items, want, text) in cases {
        let (found, message) = kind(x.index_items(&items));
        assert_eq!(found, want, "{message}");
        assert!(message.contains(text), "{message}");
    }
    let scalar = Tensor::from_slice(&[1.0f32], &[]).unwrap();
    assert!(kind(scalar.index_items(&[IndexItem::Int(0)])).1.contains("invalid index of a 0-dim tensor"));
    // Nothing is written where one of the indices is wrong.
    assert_eq!(kind(x.set_items(&[at(&[0, 9])], 5.0)).0, ErrorKind::Index);
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(kind(x.gather(0, &ints(&[-1], &[1, 1]))).0, ErrorKind::Runtime);
    assert_eq!(kind(x.index_select(0, &ints(&[-1], &[1]))).0, ErrorKind::Index);
    assert_eq!(kind(scalar.index_select(0, &ints(&[], &[0]))).0, ErrorKind::Runtime);
}

#[test]
fn assignment_broadcasts_and_converts_and_the_last_stays() {
    let x = Tensor::zeros(&[3, 2], DType::I64, Device::CPU).unwrap();
    x.set_items(&[at(&[2, 0])], &range(&[1, 1, 2]).add(1.5).unwrap()).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [1, 2, 0, 0, 1, 2]);
    x.set_items(&[at(&[1, 1, 1]), IndexItem::Int(0)], &ints(&[7, 8, 9], &[3])).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [1, 2, 9, 0, 1, 2]);
    let mask = x.eq(2).unwrap();
    x.set_items(&[IndexItem::Tensor(mask)], -2).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [1, -2, 9, 0, 1, -2]);
    let (found, message) = kind(x.set_items(&[IndexItem::Int(0)], &range(&[7])));
    assert!(found == ErrorKind::Runtime && message.contains("[7]") && message.contains("[2]"), "{message}");
    let before = x.version();
    x.set_items(&[IndexItem::Ellipsis], 0).unwrap();
    assert!(x.version() > before);
}

#[test]
fn gradients_of_parts_and_of_writes_to_them() {
    let x = leaf(&[3, 4]);
    let rows = at(&[0, 2, 2]);
    check(
        |t| Ok(vec![t[0].index_items(&[rows.clone(), IndexItem::Slice { start: Some(1), stop: None, step: Some(2) }])?]),
        std::slice::from_ref(&x),
    );
    check(|t| Ok(vec![t[0].index_items(&[at(&[0, 2]), at(&[-1, 1])])?]), std::slice::from_ref(&x));
    let mask = floats(&[3, 4]).gt(0.0).unwrap();
    check(|t| Ok(vec![t[0].index_items(&[IndexItem::Tensor(mask.clone())])?]), std::slice::from_ref(&x));
    let write = |items: Vec<IndexItem>| {
        move |t: &[Tensor]| {
            let y = t[0].mul(2.0)?;
            y.set_items(&items, &t[1].mul(3.0)?)?;
            Ok(vec![y.mul(&y)?])
        }
    };
    check(write(vec![all(), IndexItem::Int(1)]), &[x.clone(), leaf(&[3])]);
    check(write(vec![at(&[2, 0])]), &[x.clone(), leaf(&[4])]);
    check(write(vec![IndexItem::Tensor(mask.clone())]), &[x, leaf(&[])]);
}

#[test]
fn gradients_of_views() {
    let x = leaf(&[4, 6]);
    check(|t| Ok(vec![t[0].unfold(1, 3, 1)?.mul(&t[0].unfold(1, 3, 1)?)?]), std::slice::from_ref(&x));
    check(|t| Ok(vec![t[0].diagonal(1, 0, 1)?, t[0].diag_embed(-1, 0, 2)?]), std::slice::from_ref(&x));
    check(|t| t[0].split(4, 1), std::slice::from_ref(&x));
    check(|t| t[0].unbind(0), std::slice::from_ref(&x));
    check(|t| Ok(vec![t[0].as_strided(&[3, 3], &[1, 1], Some(2))?.mul(2.0)?]), std::slice::from_ref(&x));
    check(|t| Ok(vec![t[0].flip(&[1])?, t[0].roll(&[5, 1], &[1, 0])?, t[0].rot90(1, &[0, 1])?]), std::slice::from_ref(&x));
    check(|t| Ok(vec![t[0].tril(1)?, t[0].triu(-1)?, t[0].repeat(&[2, 1, 3])?, t[0].repeat_each(2, Some(1))?]), std::slice::from_ref(&x));
    check(|t| Ok(vec![cat(&[&t[0], &t[1]], 0)?, stack(&[&t[0], &t[0]], 1)?]), &[x, leaf(&[1, 6])]);
    // Elements that an expanded tensor repeats share their gradient and sum it up again: [6, 9] as PyTorch.
    let x = Tensor::zeros(&[2], DType::F32, Device::CPU).unwrap().requiring_grad().unwrap();
    let e = x.expand(&[3, 2]).unwrap();
    let y = e.as_strided(&[3, 2], &[0, 1], None).unwrap().mul(&range(&[3, 2])).unwrap().sum().unwrap();
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [6.0, 9.0]);
}

#[test]
fn several_views_of_one_base_follow_writes() {
    let x = leaf(&[2, 3]);
    let base = x.mul(1.0).unwrap();
    let rows = base.unbind(0).unwrap();
    base.set_items(&[IndexItem::Int(1)], 0.0).unwrap();
    let sum = rows[0].sum().unwrap().add(&rows[1].mul(5.0).unwrap().sum().unwrap()).unwrap();
    let options = BackwardOptions { retain_graph: false, create_graph: false };
    let g = grad(&[&sum], &[&x], &[], options).unwrap().remove(0).unwrap();
    assert_eq!(g.to_vec::<f64>().unwrap(), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn gradients_of_gather_and_scatter() {
    let (x, s) = (leaf(&[3, 4]), leaf(&[5, 4]));
    let i = ints(&[0, 2, 1, 0, 2, 2, 2, 1, 0, 0, 1, 1, 1, 0, 2, 2, 0, 1, 0, 2], &[5, 4]);
    check(|t| Ok(vec![t[0].gather(0, &i)?, t[0].scatter_add(0, &i, &t[1])?]), &[x.clone(), s.clone()]);
    for reduce in ["sum", "prod", "mean", "amax", "amin"] {
        for include in [true, false] {
            check(|t| Ok(vec![t[0].scatter_reduce(0, &i, &t[1], reduce, include)?]), &[x.clone(), s.clone()]);
        }
    }
    let rows = ints(&[2, 0, 2], &[3]);
    check(|t| Ok(vec![t[0].index_select(0, &rows)?, t[0].index_add(0, &rows, &t[1].narrow(0, 0, 3)?)?]), &[x.clone(), s.clone()]);
    check(|t| Ok(vec![embedding(&t[0], &rows, None, false)?, t[0].take(&i)?]), std::slice::from_ref(&x));
    let mask = floats(&[3, 4]).gt(0.0).unwrap();
    check(|t| Ok(vec![t[0].masked_select(&mask)?, t[0].masked_scatter(&mask, &t[1])?]), &[x, s]);
    // A row of padding gets nothing, rows looked up twice half of it each time.
    let w = leaf(&[3, 2]);
    embedding(&w, &ints(&[1, 2, 2], &[3]), Some(1), true).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn zeros_among_factors_have_right_derivatives() {
    // d(a * b) / da = b also where a is 0; two zeros leave nothing.
    let x = Tensor::from_slice(&[2.0f64, 0.0, 1.0], &[3]).unwrap().requiring_grad().unwrap();
    let s = Tensor::from_slice(&[0.0f64, 3.0, 0.0, 0.0], &[4]).unwrap().requiring_grad().unwrap();
    let y = x.scatter_reduce(0, &ints(&[0, 1, 2, 2], &[4]), &s, "prod", true).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.0, 3.0, 0.0]);
    assert_eq!(s.grad().unwrap().to_vec::<f64>().unwrap(), [2.0, 0.0, 0.0, 0.0]);
}

#[test]
fn sums_do_not_depend_on_threads_and_are_wide() {
    let n = 300_000;
    let index: Vec<i64> = (0..n).map(|i| (i * 7919 % 5003) as i64).collect();
    let values: Vec<f32> = (0..n).map(|i| ((i * 31) % 1009) as f32 * 1e-3 + 1e-6).collect();
    let (index, values) = (ints(&index, &[n]), Tensor::from_slice(&values, &[n]).unwrap());
    let zeros = Tensor::zeros(&[5003], DType::F32, Device::CPU).unwrap();
    let threads = pool::num_threads();
    let one = {
        pool::set_num_threads(1);
        zeros.scatter_add(0, &index, &values).unwrap().to_vec::<f32>().unwrap()
    };
    pool::set_num_threads(4);
    let four = zeros.scatter_add(0, &index, &values).unwrap().to_vec::<f32>().unwrap();
    pool::set_num_threads(threads);
    assert_eq!(one, four);
    // 0.01 in half precision, 4096 times: steps of 0.03 near 41 would have stopped it at 32.
    let small = Tensor::full(&[4096], 0.01, DType::F16, Device::CPU).unwrap();
    let sum = Tensor::zeros(&[1], DType::F16, Device::CPU).unwrap().index_add(0, &ints(&[0; 4096], &[4096]), &small).unwrap();
    let sum = sum.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()[0];
    assert!((sum - 40.97).abs() < 0.05, "{sum}");
}

#[test]
fn forms_in_place_that_change_the_look_keep_history() {
    let x = leaf(&[2, 3]);
    let y = x.mul(2.0).unwrap();
    let row = table::named("t_")[0];
    let args = Args { name: "t_", values: [Value::Tensor(y.clone())].into_iter().collect() };
    row.run(&args).unwrap();
    assert_eq!((y.shape(), y.strides()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(y.grad_fn().unwrap().name(), "TBackward0");
    let weights = floats(&[3, 2]);
    y.mul(&weights).unwrap().sum().unwrap().backward().unwrap();
    let want = weights.t().unwrap().mul(2.0).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), want);
    let leaf_args = Args { name: "t_", values: [Value::Tensor(x)].into_iter().collect() };
    assert_eq!(kind(row.run(&leaf_args)).0, ErrorKind::Runtime);
}

#[test]
fn meta_tensors_have_shapes() {
    let x = Tensor::empty(&[4, 5], DType::F32, Device::META).unwrap();
    let i = Tensor::empty(&[3], DType::I64, Device::META).unwrap();
    assert_eq!(x.index_items(&[IndexItem::Tensor(i.clone())]).unwrap().shape(), [3, 5]);
    assert_eq!(x.sort(0, false).unwrap().1.shape(), [4, 5]);
    assert_eq!(x.flip(&[0]).unwrap().tril(0).unwrap().repeat(&[2, 1]).unwrap().shape(), [8, 5]);
    assert_eq!(kind(x.nonzero()).0, ErrorKind::NotImplemented);
}

proptest! {
    /// Any index of ranges, integers and new dimensions gives what a walk over the elements gives.
    #[test]
    fn ranges_follow_python(size in 0usize..9, start in -12i64..12, stop in -12i64..12, step in 1i64..5) {
        let x = range(&[size]);
        let item = IndexItem::Slice { start: Some(start), stop: Some(stop), step: Some(step) };
        let found = x.index_items(&[item]).unwrap().to_vec::<f32>().unwrap();
        let n = size as i64;
        let clamp = |i: i64| if i < 0 { (i + n).max(0) } else { i.min(n) };
        let want: Vec<f32> = (clamp(start)..clamp(stop)).step_by(step as usize).map(|i| i as f32).collect();
        prop_assert_eq!(found, want);
    }

    #[test]
    fn nonzero_finds_what_is_there(values in proptest::collection::vec(-1i64..2, 0..400), width in 1usize..7) {
        let rows = values.len() / width;
        let x = ints(&values[..rows * width], &[rows, width]).t().unwrap();
        let found = x.nonzero().unwrap().to_vec::<i64>().unwrap();
        let want: Vec<i64> = (0..width)
            .flat_map(|c| (0..rows).map(move |r| (c, r)))
            .filter(|&(c, r)| values[r * width + c] != 0)
            .flat_map(|(c, r)| [c as i64, r as i64])
            .collect();
        prop_assert_eq!(found, want);
        let mask = x.ne(0).unwrap();
        let picked = x.masked_select(&mask).unwrap().to_vec::<i64>().unwrap();
        let _guard = no_grad();
        prop_assert_eq!(picked.len() * 2, x.nonzero().unwrap().numel());
        prop_assert!(picked.iter().all(|&v| v != 0));
    }
}
