//! Single steps and short programs.

use super::common::{program, run, same};
use flambeau_engine::Tensor;
use flambeau_engine::base::{Complex32, DType, ErrorKind, Scalar, bf16, f16};
use flambeau_engine::ir::ScalarOp::{self, *};

fn float_reference(op: ScalarOp, x: f64, y: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu = |x: f64| 0.5 * x * erfc(-x / 2f64.sqrt());
    let slope = |f: &dyn Fn(f64) -> f64| (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
    // With 1 + tanh(u) = 2 sigmoid(2 u), which does not cancel.
    let gelu_tanh = |x: f64| x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x));
    match op {
        Add => x + y,
        Sub => x - y,
        Mul => x * y,
        Div => x / y,
        FloorDiv => (x / y).floor(),
        TruncDiv => (x / y).trunc(),
        Rem => x - (x / y).floor() * y,
        Fmod => x % y,
        Pow => x.abs().powf(y),
        Maximum | Fmax => x.max(y),
        Minimum | Fmin => x.min(y),
        Hypot => x.hypot(y),
        Atan2 => x.atan2(y),
        Copysign => x.copysign(y),
        Neg => -x,
        Abs => x.abs(),
        Sign => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        Reciprocal => 1.0 / x,
        Sqrt => x.sqrt(),
        Rsqrt => 1.0 / x.sqrt(),
        Floor => x.floor(),
        Ceil => x.ceil(),
        Trunc => x.trunc(),
        Round => x.round_ties_even(),
        Exp => x.exp(),
        Exp2 => x.exp2(),
        Expm1 => x.exp_m1(),
        Log => x.ln(),
        Log2 => x.log2(),
        Log10 => x.log10(),
        Log1p => x.ln_1p(),
        Sin => x.sin(),
        Cos => x.cos(),
        Tan => x.tan(),
        Asin => x.asin(),
        Acos => x.acos(),
        Atan => x.atan(),
        Sinh => x.sinh(),
        Cosh => x.cosh(),
        Tanh => x.tanh(),
        Asinh => x.asinh(),
        Acosh => x.acosh(),
        Atanh => x.atanh(),
        Erf => 1.0 - erfc(x),
        Erfc => erfc(x),
        Sigmoid => sigmoid(x),
        LogSigmoid => sigmoid(x).ln(),
        Silu => x * sigmoid(x),
        SiluGrad => slope(&|x| x * sigmoid(x)),
        Gelu => gelu(x),
        GeluGrad => slope(&gelu),
        GeluTanh => gelu_tanh(x),
        GeluTanhGrad => slope(&gelu_tanh),
        _ => unreachable!("{op:?}"),
    }
}

/// Complementary error function by its continued fraction or series.
fn erfc(x: f64) -> f64 {
    if x.abs() < 1.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / n as f64;
            sum += term / (2 * n + 1) as f64;
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut fraction = 0.0;
    for n in (1..2000).rev() {
        fraction = n as f64 / 2.0 / (x.abs() + fraction);
    }
    let tail = (-x * x).exp() / std::f64::consts::PI.sqrt() / (x.abs() + fraction);
    if x > 0.0 { tail } else { 2.0 - tail }
}

const FLOAT_OPS: [ScalarOp; 52] = [
    Add, Sub, Mul, Div, FloorDiv, TruncDiv, Rem, Fmod, Maximum, Minimum, Fmax, Fmin, Hypot, Atan2, Copysign, Neg, Abs, Sign, Reciprocal,
    Sqrt, Rsqrt, Floor, Ceil, Trunc, Round, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh,
    Asinh, Acosh, Atanh, Erf, Erfc, Sigmoid, LogSigmoid, Silu, SiluGrad, Gelu, GeluGrad,
];

/// Every operation on floats, in every float dtype, on a length that ends within a block.
#[test]
fn float_steps() {
    let xs: Vec<f64> = (0..77).map(|i| (i as f64 - 37.5) / 8.0).collect();
    let ys: Vec<f64> = (0..77).map(|i| ((i * 29 % 77) as f64 - 38.25) / 16.0).collect();
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16] {
        let x = Tensor::from_slice(&xs, &[77]).unwrap().to_dtype(dtype).unwrap();
        let y = Tensor::from_slice(&ys, &[77]).unwrap().to_dtype(dtype).unwrap();
        let (xv, yv) = (x.to_scalars().unwrap(), y.to_scalars().unwrap());
        for op in FLOAT_OPS.into_iter().chain([GeluTanh, GeluTanhGrad]) {
            let two = op.arity() == 2;
            let p = if two {
                program(&[dtype, dtype], |k, v| k.step(op, dtype, [v[0], v[1], v[0]]))
            } else {
                program(&[dtype], |k, v| k.step(op, dtype, [v[0]; 3]))
            };
            let out = run(&p, &[], [&x, &y].get(..op.arity()).unwrap()).unwrap().to_scalars().unwrap();
            let epsilon: f64 = match dtype {
                DType::F64 => 2e-13,
                DType::F32 => 4e-7,
                DType::BF16 => 4.5e-3,
                _ => 6e-4,
            };
            // Slopes are taken by differences.
            let differences = matches!(op, SiluGrad | GeluGrad | GeluTanhGrad);
            let (epsilon, least) = if differences { (epsilon.max(1e-9), 1e-2) } else { (epsilon, 0.0) };
            // Half of the least float16.
            let subnormal = if dtype == DType::F16 { 2f64.powi(-25) } else { 0.0 };
            for i in 0..77 {
                let want = float_reference(op, xv[i].to_f64(), yv[i].to_f64());
                let got = out[i].to_f64();
                let near = (got - want).abs() <= epsilon * want.abs().max(least) + subnormal;
                assert!(same(got, want) || near, "{op:?} {dtype} of {} {}: {got}, expected {want}", xv[i], yv[i]);
            }
        }
    }
}

#[test]
fn erfinv_inverts() {
    let x: Vec<f64> = [-1.0, -0.999999999, -0.7, -1e-9, 0.0, 0.1, 0.5, 0.51, 0.9, 0.99999, 1.0, 1.5].into();
    let t = Tensor::from_slice(&x, &[x.len()]).unwrap();
    let p = program(&[DType::F64], |k, v| k.erfinv(v[0]));
    let y = run(&p, &[], &[&t]).unwrap().to_vec::<f64>().unwrap();
    assert_eq!((y[0], y[10]), (f64::NEG_INFINITY, f64::INFINITY));
    assert!(y[11].is_nan());
    // torch.erfinv of PyTorch 2.15
    for (i, want) in
        [(1, -4.320005388105362), (2, -0.7328690779592167), (5, 0.08885599049425769), (8, 1.1630871536766743), (9, 3.123413274341571)]
    {
        assert!((y[i] / want - 1.0f64).abs() < 1e-14, "{}: {} {want}", x[i], y[i]);
    }
    let single = run(&program(&[DType::F32], |k, v| k.erfinv(v[0])), &[], &[&t.to_dtype(DType::F32).unwrap()]).unwrap();
    assert!((single.to_vec::<f32>().unwrap()[8] - 1.163_087_2).abs() < 2e-7);
}

fn integer_reference(op: ScalarOp, x: i128, y: i128, bits: u32, signed: bool) -> i128 {
    let wrap = |v: i128| {
        let m = v & ((1i128 << bits) - 1);
        if signed && m >> (bits - 1) != 0 { m - (1i128 << bits) } else { m }
    };
    wrap(match op {
        Add => x + y,
        Sub => x - y,
        Mul => x.wrapping_mul(y),
        FloorDiv => x.div_euclid(y) - ((y < 0 && x.rem_euclid(y) != 0) as i128),
        TruncDiv => x / y,
        Rem => x - y * (x.div_euclid(y) - ((y < 0 && x.rem_euclid(y) != 0) as i128)),
        Fmod => x % y,
        Maximum => x.max(y),
        Minimum => x.min(y),
        And => x & y,
        Or => x | y,
        Xor => x ^ y,
        Shl => {
            if (0..bits as i128).contains(&y) {
                x << y
            } else {
                0
            }
        }
        Shr => x >> if (0..bits as i128).contains(&y) { y } else { bits as i128 - 1 + (!signed) as i128 },
        Neg => -x,
        Abs => x.abs(),
        Sign => x.signum(),
        Not => !x,
        _ => unreachable!(),
    })
}

#[test]
fn integer_steps() {
    let types = [
        (DType::U8, 8, false),
        (DType::I8, 8, true),
        (DType::I16, 16, true),
        (DType::I32, 32, true),
        (DType::I64, 64, true),
        (DType::U16, 16, false),
        (DType::U32, 32, false),
        (DType::U64, 64, false),
    ];
    for (dtype, bits, signed) in types {
        let (low, high) = dtype.integer_range().unwrap();
        let values =
            [low, low + 1, 0, 1, 2, 3, 7, 40, 63, high / 2, high - 1, high, if signed { -1 } else { 5 }, if signed { -7 } else { 6 }];
        let pairs: Vec<(i128, i128)> = values.iter().flat_map(|&x| values.map(|y| (x, y))).collect();
        let tensor = |v: Vec<i128>| {
            Tensor::from_slice(&v.iter().map(|&x| x as i64).collect::<Vec<_>>(), &[v.len()]).unwrap().to_dtype(dtype).unwrap()
        };
        let value = |s: Scalar| match s {
            Scalar::UInt(u) => u as i128,
            other => other.to_i64() as i128,
        };
        for op in [Add, Sub, Mul, FloorDiv, TruncDiv, Rem, Fmod, Maximum, Minimum, And, Or, Xor, Shl, Shr, Neg, Abs, Sign, Not] {
            let divides = matches!(op, FloorDiv | TruncDiv | Rem | Fmod);
            let pairs: Vec<_> = pairs.iter().filter(|(_, y)| !divides || *y != 0).copied().collect();
            let (x, y) = (tensor(pairs.iter().map(|p| p.0).collect()), tensor(pairs.iter().map(|p| p.1).collect()));
            let p = program(&[dtype, dtype], |k, v| k.step(op, dtype, [v[0], v[1], v[0]]));
            let out = run(&p, &[], &[&x, &y]).unwrap().to_scalars().unwrap();
            for (&(a, b), got) in pairs.iter().zip(out) {
                assert_eq!(value(got), integer_reference(op, a, b, bits, signed), "{op:?} {dtype} of {a} {b}");
            }
        }
        for (op, test) in [(Lt, (|a, b| a < b) as fn(i128, i128) -> bool), (Ge, |a, b| a >= b), (Eq, |a, b| a == b)] {
            let (x, y) = (tensor(pairs.iter().map(|p| p.0).collect()), tensor(pairs.iter().map(|p| p.1).collect()));
            let p = program(&[dtype, dtype], |k, v| k.step(op, dtype, [v[0], v[1], v[0]]));
            let out = run(&p, &[], &[&x, &y]).unwrap().to_vec::<bool>().unwrap();
            assert!(pairs.iter().zip(out).all(|(&(a, b), got)| got == test(a, b)), "{op:?} {dtype}");
        }
    }
}

#[test]
fn dividing_integers_by_zero_is_an_error() {
    for (dtype, op) in [(DType::I32, FloorDiv), (DType::I64, Rem), (DType::U8, TruncDiv), (DType::U64, Fmod)] {
        let x = Tensor::full(&[100_000], 7i64, dtype, flambeau_engine::base::Device::CPU).unwrap();
        let mut divisors = vec![3i64; 100_000];
        divisors[99_000] = 0;
        let y = Tensor::from_slice(&divisors, &[100_000]).unwrap().to_dtype(dtype).unwrap();
        let p = program(&[dtype, dtype], |k, v| k.step(op, dtype, [v[0], v[1], v[0]]));
        let error = run(&p, &[], &[&x, &y]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.message().contains("ZeroDivisionError"), "{error}");
    }
}

#[test]
fn bool_steps_and_choice() {
    let a = Tensor::from_slice(&[false, false, true, true], &[4]).unwrap();
    let b = Tensor::from_slice(&[false, true, false, true], &[4]).unwrap();
    let bits = |op: ScalarOp| {
        let p = program(&[DType::Bool, DType::Bool], |k, v| k.step(op, DType::Bool, [v[0], v[1], v[0]]));
        run(&p, &[], &[&a, &b]).unwrap().to_vec::<bool>().unwrap().iter().fold(0, |n, &x| n << 1 | x as u8)
    };
    assert_eq!([Add, Mul, And, Or, Xor, Eq, Lt, Maximum].map(bits), [0b0111, 0b0001, 0b0001, 0b0111, 0b0110, 0b1001, 0b0100, 0b0111]);
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    let p = program(&[DType::Bool, DType::F32], |k, v| {
        let minus = k.neg(v[1]);
        k.select(v[0], v[1], minus)
    });
    assert_eq!(run(&p, &[], &[&b, &x]).unwrap().to_vec::<f32>().unwrap(), [-1.0, 2.0, -3.0, 4.0]);
}

/// `(x * w + b) * w` in narrow floats is that of rounding after each operation, and constants are not rounded.
#[test]
fn narrow_floats_round_after_every_step() {
    let xs: Vec<bf16> = (0..100).map(|i| bf16::from_f32(1.0 + i as f32 / 37.0)).collect();
    let x = Tensor::from_slice(&xs, &[100]).unwrap();
    let p = program(&[DType::BF16], |k, v| {
        let w = k.param(DType::BF16, 0);
        let product = k.mul(v[0], w);
        let sum = k.add(product, v[0]);
        k.mul(sum, product)
    });
    let out = run(&p, &[Scalar::Float(1.001)], &[&x]).unwrap().to_vec::<bf16>().unwrap();
    let round = |x: f32| bf16::from_f32(x).to_f32();
    for (x, got) in xs.iter().zip(out) {
        let x = x.to_f32();
        let product = round(x * 1.001);
        assert_eq!(got.to_f32(), round(round(product + x) * product));
    }
    let h = Tensor::from_slice(&[f16::from_f32(2048.0)], &[1]).unwrap();
    let p = program(&[DType::F16], |k, v| {
        let one = k.like(v[0], 1.0);
        let up = k.add(v[0], one);
        k.sub(up, v[0])
    });
    assert_eq!(run(&p, &[], &[&h]).unwrap().item().unwrap(), Scalar::Float(0.0));
}

#[test]
fn complex_steps() {
    let a = Tensor::from_slice(&[Complex32::new(1.0, 2.0), Complex32::new(-3.0, 0.5)], &[2]).unwrap();
    let b = Tensor::from_slice(&[Complex32::new(0.5, -1.0), Complex32::new(-3.0, 0.5)], &[2]).unwrap();
    assert_eq!(a.mul(&b).unwrap().to_vec::<Complex32>().unwrap()[0], Complex32::new(2.5, 0.0));
    assert_eq!(a.add(&b).unwrap().to_vec::<Complex32>().unwrap()[1], Complex32::new(-6.0, 1.0));
    let p = program(&[DType::C64, DType::C64], |k, v| k.eq(v[0], v[1]));
    assert_eq!(run(&p, &[], &[&a, &b]).unwrap().to_vec::<bool>().unwrap(), [false, true]);
    let p = program(&[DType::C64, DType::C64], |k, v| k.rem(v[0], v[1]));
    let error = run(&p, &[], &[&a, &b]).unwrap_err();
    assert!(error.kind() == ErrorKind::NotImplemented && error.message().contains("rem") && error.message().contains("complex64"));
}
