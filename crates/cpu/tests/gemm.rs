//! Matrix products against a triple loop, over sizes, strides and types.

use flambeau_cpu::gemm::{BatchAxis, Bias, Gemm, GemmElement, Matrix, MatrixMut, gemm, gemm_batched};
use flambeau_cpu::pool;
use half::{bf16, f16};
use proptest::prelude::*;

/// Elements with their exact value, and how far a result may be from the exact product.
trait Number: GemmElement + PartialEq + std::fmt::Debug {
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn alpha(value: f64) -> Self::Alpha;
    /// Half a unit in the last place of 1.0: of the sum and of what is stored.
    const ROUNDING: (f64, f64);
    /// Half the distance of numbers next to zero, as stored.
    const SMALLEST: f64;
}

macro_rules! impl_number {
    ($($float:ty, $alpha:ty, $from:expr, $to:expr, $sum:expr, $stored:expr, $smallest:expr;)*) => {$(
        impl Number for $float {
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            fn to_f64(self) -> f64 {
                $to(self)
            }
            fn alpha(value: f64) -> $alpha {
                value as $alpha
            }
            const ROUNDING: (f64, f64) = ($sum, $stored);
            const SMALLEST: f64 = $smallest;
        }
    )*};
}

const SINGLE: f64 = 1.0 / (1 << 24) as f64;
const DOUBLE: f64 = f64::EPSILON / 2.0;

impl_number! {
    f32, f32, |x| x as f32, f64::from, SINGLE, SINGLE, 0.0;
    f64, f64, |x| x, |x| x, DOUBLE, DOUBLE, 0.0;
    bf16, f32, bf16::from_f64, f64::from, SINGLE, 1.0 / 256.0, 0.0;
    f16, f32, f16::from_f64, f64::from, SINGLE, 1.0 / 2048.0, 1.0 / (1 << 25) as f64;
}

/// The shape of a test: how the operands lie in memory, and what is done beside the product.
#[derive(Clone, Debug)]
struct Case {
    m: usize,
    n: usize,
    k: usize,
    /// For each operand: whether columns are adjacent rather than rows, and the gap between elements and lines.
    layouts: [(bool, usize, usize); 3],
    /// Operands of which all rows (of a) or all columns (of b) are the same memory.
    expanded: (bool, bool),
    alpha: f64,
    accumulate: bool,
    bias: u8,
    seed: u64,
}

fn strides(rows: usize, columns: usize, (transposed, gap, line_gap): (bool, usize, usize)) -> (usize, usize) {
    let (lines, inner) = (1 + gap, if transposed { rows } else { columns });
    let line = inner.max(1) * lines + line_gap;
    if transposed { (lines, line) } else { (line, lines) }
}

struct Random(u64);

impl Random {
    /// A number between -1 and 1 with few digits.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f64 / (1 << 23) as f64) - 1.0
    }

    fn fill<T: Number>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::from_f64(self.next())).collect()
    }
}

struct Operands<T> {
    a: (Vec<T>, usize, usize),
    b: (Vec<T>, usize, usize),
    c: (Vec<T>, usize, usize),
    bias: Vec<T>,
}

fn operands<T: Number>(case: &Case) -> Operands<T> {
    let &Case { m, n, k, layouts, expanded, .. } = case;
    let mut random = Random(case.seed);
    let mut make = |rows: usize, columns: usize, layout, no_rows: bool, no_columns: bool| {
        let (mut row, mut column) = strides(rows, columns, layout);
        row *= usize::from(!no_rows);
        column *= usize::from(!no_columns);
        (random.fill(rows * row + columns * column + 1), row, column)
    };
    let a = make(m, k, layouts[0], expanded.0, false);
    let b = make(k, n, layouts[1], false, expanded.1);
    let c = make(m, n, layouts[2], false, false);
    let bias = random.fill(m.max(n));
    Operands { a, b, c, bias }
}

fn product<T: Number>(case: &Case, operands: &mut Operands<T>) -> Gemm<T> {
    let Operands { a, b, c, bias } = operands;
    let matrix = |x: &(Vec<T>, usize, usize)| Matrix { ptr: x.0.as_ptr(), row: x.1 as isize, column: x.2 as isize };
    Gemm {
        m: case.m,
        n: case.n,
        k: case.k,
        a: matrix(a),
        b: matrix(b),
        c: MatrixMut { ptr: c.0.as_mut_ptr(), row: c.1 as isize, column: c.2 as isize },
        alpha: T::alpha(case.alpha),
        accumulate: case.accumulate,
        bias: match case.bias {
            0 => Bias::None,
            1 => Bias::Columns(bias.as_ptr()),
            _ => Bias::Rows(bias.as_ptr()),
        },
    }
}

/// Computes the case and compares every element of the result with the exact value.
fn check<T: Number>(case: &Case) -> Result<Vec<T>, TestCaseError> {
    let mut operands = operands::<T>(case);
    let before = operands.c.0.clone();
    let product = product(case, &mut operands);
    // SAFETY: the vectors hold all that sizes and strides name.
    unsafe { gemm(&product) };
    let Operands { a, b, c, bias } = &operands;
    let mut touched = vec![false; before.len()];
    for i in 0..case.m {
        for j in 0..case.n {
            let terms = (0..case.k).map(|p| a.0[i * a.1 + p * a.2].to_f64() * b.0[p * b.1 + j * b.2].to_f64());
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            let start = if case.accumulate { before[i * c.1 + j * c.2].to_f64() } else { 0.0 };
            let added = [0.0, bias[j].to_f64(), bias[i].to_f64()][usize::from(case.bias)];
            let exact = start + case.alpha * sum + added;
            let size = start.abs() + (case.alpha * size).abs() + added.abs();
            let (sum_rounding, stored_rounding) = T::ROUNDING;
            let tolerance = (case.k + 4) as f64 * sum_rounding * size + (stored_rounding * exact.abs()).max(T::SMALLEST);
            let got = c.0[i * c.1 + j * c.2].to_f64();
            prop_assert!((got - exact).abs() <= tolerance, "[{i}, {j}]: {got} for {exact}, {case:?}");
            touched[i * c.1 + j * c.2] = true;
        }
    }
    for (index, touched) in touched.into_iter().enumerate() {
        prop_assert!(touched || c.0[index] == before[index], "wrote between the elements: {case:?}");
    }
    Ok(operands.c.0)
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0..5usize, 1..40usize, 1..150usize, Just(1), Just(16), Just(32), Just(64)]
}

prop_compose! {
    fn cases()(
        m in size(),
        n in size(),
        k in prop_oneof![size(), 250..600usize],
        layouts in prop::array::uniform3((any::<bool>(), prop_oneof![Just(0usize), Just(0), 1..3usize], 0..3usize)),
        expanded in (prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        alpha in prop_oneof![Just(1.0), Just(1.0), Just(-0.75)],
        accumulate: bool,
        bias in 0..3u8,
        seed: u64,
    ) -> Case {
        Case { m, n, k, layouts, expanded, alpha, accumulate, bias, seed }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn single_precision(case in cases()) {
        check::<f32>(&case)?;
    }

    #[test]
    fn double_precision(case in cases()) {
        check::<f64>(&case)?;
    }

    #[test]
    fn bfloat16_is_rounded_once(case in cases()) {
        check::<bf16>(&case)?;
    }

    #[test]
    fn float16_is_rounded_once(case in cases()) {
        check::<f16>(&case)?;
    }
}

fn plain(m: usize, n: usize, k: usize) -> Case {
    Case { m, n, k, layouts: [(false, 0, 0); 3], expanded: (false, false), alpha: 1.0, accumulate: false, bias: 0, seed: 1 }
}

#[test]
fn every_tile_shape() {
    for m in 1..30 {
        for n in (1..70).step_by(3) {
            for (a_transposed, b_transposed) in [(false, false), (true, false), (false, true)] {
                let mut case = plain(m, n, 19);
                case.layouts[0].0 = a_transposed;
                case.layouts[1].0 = b_transposed;
                check::<f32>(&case).unwrap();
                check::<f64>(&case).unwrap();
            }
        }
    }
}

#[test]
fn large_products_in_several_blocks() {
    let _turn = threads(2);
    let mut case = plain(700, 530, 1100);
    case.bias = 1;
    check::<f32>(&case).unwrap();
    case.layouts[0].0 = true;
    case.layouts[1].0 = true;
    case.accumulate = true;
    check::<f32>(&case).unwrap();
    check::<bf16>(&case).unwrap();
    case.layouts[2].0 = true;
    check::<f64>(&case).unwrap();
}

/// The number of threads is that of the process: one test at a time.
fn threads(count: usize) -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    pool::set_num_threads(count);
    guard
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let _turn = threads(1);
    let shapes = [(512, 384, 128), (300, 65, 700), (64, 1024, 900), (1, 3000, 500), (3000, 1, 500), (700, 700, 300)];
    for (m, n, k) in shapes {
        for transposed in [(false, false), (true, false), (false, true)] {
            let mut case = plain(m, n, k);
            case.layouts[0].0 = transposed.0;
            case.layouts[1].0 = transposed.1;
            let mut results = [1, 2, 3, 7].map(|count| {
                pool::set_num_threads(count);
                let mut operands = operands::<f32>(&case);
                let product = product(&case, &mut operands);
                // SAFETY: as in `check`.
                unsafe { gemm(&product) };
                operands.c.0.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            });
            let first = std::mem::take(&mut results[0]);
            assert!(results[1..].iter().all(|result| *result == first), "{case:?}");
        }
    }
}

#[test]
fn a_row_of_a_product_is_the_same_bits_in_a_larger_one() {
    // Tiles of other heights and widths, packed or not, sum up in the same order.
    let case = plain(130, 100, 600);
    let whole = check::<f32>(&case).unwrap();
    for (rows, columns) in [(2, 100), (37, 100), (130, 3), (129, 64)] {
        let mut operands = operands::<f32>(&case);
        let mut part = product(&case, &mut operands);
        (part.m, part.n) = (rows, columns);
        // SAFETY: a part of what the vectors hold.
        unsafe { gemm(&part) };
        for i in 0..rows {
            assert_eq!(operands.c.0[i * 100..i * 100 + columns], whole[i * 100..i * 100 + columns]);
        }
    }
}

#[test]
fn batches_equal_their_products() {
    let _turn = threads(2);
    for (m, n, k, outer, inner) in [(64, 64, 32, 4, 8), (200, 130, 300, 1, 3), (5, 7, 3, 3, 1), (1, 90, 40, 2, 3)] {
        let mut random = Random(5);
        let (a, b) = (random.fill::<f32>(outer * inner * m * k), random.fill::<f32>(outer * k * n));
        let (mut c, mut expected) = (vec![0f32; outer * inner * m * n], vec![0f32; outer * inner * m * n]);
        // The right operand is expanded along the inner axis.
        let axes = [
            BatchAxis { len: outer, a: (inner * m * k) as isize, b: (k * n) as isize, c: (inner * m * n) as isize },
            BatchAxis { len: inner, a: (m * k) as isize, b: 0, c: (m * n) as isize },
        ];
        let product = Gemm::contiguous(m, n, k, a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        // SAFETY: the vectors hold all matrices of the batch.
        unsafe {
            gemm_batched(&product, &axes);
            for index in 0..outer * inner {
                let b = b[index / inner * k * n..].as_ptr();
                let (a, c) = (a[index * m * k..].as_ptr(), expected[index * m * n..].as_mut_ptr());
                gemm(&Gemm::contiguous(m, n, k, a, b, c));
            }
        }
        let error = c.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        assert!(error <= 1e-5 * k as f32, "{error}");
    }
}

#[test]
fn integers_wrap_around() {
    fn check_integers<T: GemmElement + PartialEq + std::fmt::Debug>(from: fn(i64) -> T, alpha: T::Alpha, alpha_value: i64) {
        let (m, n, k) = (37, 150, 23);
        let value = |index: usize| (index as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        let a: Vec<T> = (0..m * k).map(|index| from(value(index))).collect();
        let b: Vec<T> = (0..k * n).map(|index| from(value(index + 7))).collect();
        for (transposed, accumulate) in [(false, false), (true, true)] {
            let mut c: Vec<T> = (0..m * n).map(|index| from(index as i64)).collect();
            let mut product = Gemm::contiguous(m, n, k, a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            (product.accumulate, product.alpha, product.bias) = (accumulate, alpha, Bias::Columns(a.as_ptr()));
            if transposed {
                product.b = Matrix { ptr: b.as_ptr(), row: 1, column: k as isize };
            }
            // SAFETY: as large as the vectors; the bias is a part of `a`.
            unsafe { gemm(&product) };
            for i in 0..m {
                for j in 0..n {
                    let sum = (0..k).fold(0i64, |sum, p| {
                        let at = if transposed { j * k + p } else { p * n + j };
                        sum.wrapping_add(value(i * k + p).wrapping_mul(value(at + 7)))
                    });
                    let start = if accumulate { (i * n + j) as i64 } else { 0 };
                    let exact = start.wrapping_add(sum.wrapping_mul(alpha_value)).wrapping_add(value(j));
                    assert_eq!(c[i * n + j], from(exact), "[{i}, {j}]");
                }
            }
        }
    }
    // Wrapping at 64 bits and cutting off afterwards is wrapping at fewer bits.
    check_integers::<i64>(|x| x, 3, 3);
    check_integers::<i32>(|x| x as i32, 3, 3);
    check_integers::<i16>(|x| x as i16, -2, -2);
    check_integers::<i8>(|x| x as i8, 1, 1);
    check_integers::<u8>(|x| x as u8, 5, 5);
}

#[test]
fn nothing_to_sum_gives_zeros_or_the_bias() {
    let bias = [1.5f32, 2.5, 3.5];
    let nothing = [f32::NAN; 4];
    for (m, n) in [(2, 3), (1, 3), (2, 1)] {
        let mut c = [f32::NAN; 6];
        let mut product = Gemm::contiguous(m, n, 0, nothing.as_ptr(), nothing.as_ptr(), c.as_mut_ptr());
        // SAFETY: the result has room, and there is nothing else to read.
        unsafe { gemm(&product) };
        assert_eq!(c[..m * n], [0.0; 6][..m * n]);
        product.c.ptr = c.as_mut_ptr();
        product.bias = Bias::Columns(bias.as_ptr());
        // SAFETY: as above, and the bias has `n` numbers.
        unsafe { gemm(&product) };
        assert_eq!(c[..n], bias[..n]);
    }
    let (i, mut j) = ([7i64; 4], [7i64; 4]);
    // SAFETY: as above.
    unsafe { gemm(&Gemm::contiguous(2, 2, 0, i.as_ptr(), i.as_ptr(), j.as_mut_ptr())) };
    assert_eq!(j, [0; 4]);
}

#[test]
fn infinities_and_nans_go_where_they_belong() {
    // Padding of panels must not leak into the result, nor hide what is in it.
    for n in [1, 3, 17, 33] {
        let (m, k) = (5, 9);
        let (mut a, b) = (vec![1.0f32; m * k], vec![1.0f32; k * n]);
        a[2 * k] = f32::INFINITY;
        a[3 * k + 8] = f32::NAN;
        let mut c = vec![0.0f32; m * n];
        // SAFETY: the vectors have these sizes.
        unsafe { gemm(&Gemm::contiguous(m, n, k, a.as_ptr(), b.as_ptr(), c.as_mut_ptr())) };
        for (index, &value) in c.iter().enumerate() {
            match index / n {
                2 => assert_eq!(value, f32::INFINITY),
                3 => assert!(value.is_nan()),
                _ => assert_eq!(value, 9.0),
            }
        }
    }
}
