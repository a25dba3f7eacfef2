//! Conversions between all dtypes. The rules for numbers that do not fit were measured on PyTorch 2.15 on x86-64
//! with `torch.full((1,), v, dtype=torch.float64).to(src).to(dst)`.

use super::common::same;
use flambeau_cpu as _;
use flambeau_engine::Tensor;
use flambeau_engine::base::{Complex64, DType, F8E4M3, F8E5M2, Scalar, bf16, f16};

/// cvttsd2si: the least integer where the number does not fit.
fn cut(x: f64, bits: u32) -> i64 {
    let half = 2f64.powi(bits as i32 - 1);
    let x = x.trunc();
    if x >= -half && x < half { x as i64 } else { (-half) as i64 }
}

fn wrap(dtype: DType, x: i64) -> Scalar {
    match dtype {
        DType::U8 => Scalar::Int(x as u8 as i64),
        DType::I8 => Scalar::Int(x as i8 as i64),
        DType::U16 => Scalar::Int(x as u16 as i64),
        DType::I16 => Scalar::Int(x as i16 as i64),
        DType::U32 => Scalar::Int(x as u32 as i64),
        DType::I32 => Scalar::Int(x as i32 as i64),
        DType::U64 if x < 0 => Scalar::UInt(x as u64),
        _ => Scalar::Int(x),
    }
}

fn to_integer(dtype: DType, value: Scalar) -> Scalar {
    let x = match value {
        Scalar::Float(x) => x,
        Scalar::Complex(z) => z.re,
        other => return wrap(dtype, other.to_i64()),
    };
    wrap(
        dtype,
        match dtype {
            DType::I64 | DType::U32 => cut(x, 64),
            DType::U64 if x >= 2f64.powi(63) => cut(x - 2f64.powi(63), 64) ^ i64::MIN,
            DType::U64 => cut(x, 64),
            _ => cut(x, 32),
        },
    )
}

fn to_float(dtype: DType, value: Scalar) -> f64 {
    // Integers are rounded once to single precision, doubles by way of it.
    let single = match value {
        Scalar::Int(i) => i as f32,
        Scalar::UInt(u) => u as f32,
        other => other.to_f64() as f32,
    };
    match dtype {
        DType::F64 => value.to_f64(),
        DType::F32 => single as f64,
        DType::F16 => f16::from_f32(single).to_f64(),
        DType::BF16 => bf16::from_f32(single).to_f64(),
        DType::F8E4M3 => F8E4M3::from_f32(single).to_f32() as f64,
        _ => F8E5M2::from_f32(single).to_f32() as f64,
    }
}

fn expected(value: Scalar, to: DType) -> Scalar {
    match to {
        DType::Bool => Scalar::Bool(value.to_bool()),
        DType::C64 => {
            let im = if let Scalar::Complex(z) = value { z.im as f32 as f64 } else { 0.0 };
            Scalar::Complex(Complex64::new(to_float(DType::F32, real(value)), im))
        }
        DType::C128 => Scalar::Complex(value.to_complex()),
        d if d.is_float() => Scalar::Float(to_float(d, real(value))),
        d => to_integer(d, value),
    }
}

fn real(value: Scalar) -> Scalar {
    if let Scalar::Complex(z) = value { Scalar::Float(z.re) } else { value }
}

fn alike(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Float(x), Scalar::Float(y)) => same(x, y),
        (Scalar::Complex(x), Scalar::Complex(y)) => same(x.re, y.re) && same(x.im, y.im),
        _ => a == b,
    }
}

const VALUES: [f64; 40] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1.5,
    2.5,
    -1.5,
    127.0,
    127.7,
    128.0,
    -128.0,
    -129.0,
    200.0,
    255.9,
    256.0,
    300.0,
    32768.0,
    65504.0,
    65535.5,
    65536.0,
    70000.0,
    -40000.0,
    2147483647.0,
    2147483648.0,
    3e9,
    4294967296.0,
    5e9,
    -3e9,
    -5e9,
    9.2e18,
    9.3e18,
    1.9e19,
    1e20,
    -1e19,
    1e-7,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// A tensor of a dtype with values of every kind that it has.
fn source(dtype: DType) -> Tensor {
    let values: Vec<Complex64> = VALUES.iter().map(|&x| Complex64::new(x, if x == 0.5 { 3.25 } else { 0.0 })).collect();
    let wide = Tensor::from_slice(&values, &[values.len()]).unwrap();
    wide.to_dtype(dtype).unwrap()
}

#[test]
fn every_pair_of_dtypes() {
    for from in DType::ALL {
        let x = source(from);
        let before = x.to_scalars().unwrap();
        for to in DType::ALL {
            let after = x.to_dtype(to).unwrap();
            assert_eq!(after.dtype(), to);
            for (&b, a) in before.iter().zip(after.to_scalars().unwrap()) {
                assert!(alike(expected(b, to), a), "{from} {b} to {to}: {a}, expected {}", expected(b, to));
            }
        }
    }
}

#[test]
fn measured_on_pytorch() {
    let x = Tensor::from_slice(&[300.0, -129.0, 70000.0, 3e9, f64::NAN, f64::INFINITY, 5e9], &[7]).unwrap();
    let ints = |d: DType| x.to_dtype(d).unwrap().to_scalars().unwrap().iter().map(|s| s.to_i64()).collect::<Vec<_>>();
    assert_eq!(ints(DType::U8), [44, 127, 112, 0, 0, 0, 0]);
    assert_eq!(ints(DType::I16), [300, -129, 4464, 0, 0, 0, 0]);
    assert_eq!(ints(DType::I32), [300, -129, 70000, -2147483648, -2147483648, -2147483648, -2147483648]);
    assert_eq!(ints(DType::U32), [300, 4294967167, 70000, 3000000000, 0, 0, 705032704]);
    assert_eq!(ints(DType::I64), [300, -129, 70000, 3000000000, i64::MIN, i64::MIN, 5000000000]);
    // Doubles become halves by way of single precision.
    let tie = Tensor::from_slice(&[1.0 + 2f64.powi(-11) + 2f64.powi(-40)], &[1]).unwrap();
    assert_eq!(tie.to_dtype(DType::F16).unwrap().item().unwrap(), Scalar::Float(1.0));
    let large = Tensor::from_slice(&[1e9f32, f32::INFINITY, -480.0, 61440.0], &[4]).unwrap();
    assert_eq!(large.to_dtype(DType::F8E4M3).unwrap().to_vec::<F8E4M3>().unwrap().map_to(), [0x7e, 0x7e, 0xfe, 0x7e]);
    assert_eq!(large.to_dtype(DType::F8E5M2).unwrap().to_vec::<F8E5M2>().unwrap().map_to(), [0x7c, 0x7c, 0xe0, 0x7c]);
}

trait Bits {
    fn map_to(self) -> Vec<u8>;
}
impl Bits for Vec<F8E4M3> {
    fn map_to(self) -> Vec<u8> {
        self.into_iter().map(|x| x.0).collect()
    }
}
impl Bits for Vec<F8E5M2> {
    fn map_to(self) -> Vec<u8> {
        self.into_iter().map(|x| x.0).collect()
    }
}

#[test]
fn any_byte_but_zero_is_true() {
    let bytes = Tensor::from_slice(&[0u8, 1, 2, 255], &[4]).unwrap();
    let raw = Tensor::from_storage(bytes.storage().clone(), bytes.layout().clone(), DType::Bool).unwrap();
    assert_eq!(raw.to_dtype(DType::I32).unwrap().to_vec::<i32>().unwrap(), [0, 1, 1, 1]);
    assert_eq!(raw.sum().unwrap().item().unwrap(), Scalar::Int(3));
}
