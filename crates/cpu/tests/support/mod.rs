//! What the accuracy test and the accuracy report share: errors in units in the last place, and loops over the vector
//! functions compiled for the machine's instruction set.

#![allow(dead_code)]

use flambeau_cpu::math;

/// Elements in one inner loop.
pub const CHUNK: usize = 32;

/// A loop that applies a function to a slice whose length is a multiple of [`CHUNK`].
pub type Loop<T> = fn(&[T], &mut [T]);

/// One function in both types and on each instruction set that this machine has, the plainest first.
pub struct Entry {
    pub name: &'static str,
    pub single: Vec<(&'static str, Loop<f32>)>,
    pub double: Vec<(&'static str, Loop<f64>)>,
}

impl Entry {
    /// The loop for the widest instruction set.
    pub fn best_single(&self) -> Loop<f32> {
        self.single.last().expect("the plain loop is always there").1
    }

    /// The loop for the widest instruction set.
    pub fn best_double(&self) -> Loop<f64> {
        self.double.last().expect("the plain loop is always there").1
    }
}

/// The loops of one function for one type.
macro_rules! loops {
    ($t:ty, $x:ident, $out:ident, $body:expr) => {{
        #[inline(always)]
        fn chunks(x: &[$t], out: &mut [$t]) {
            let (x, rest) = x.as_chunks::<CHUNK>();
            assert!(rest.is_empty(), "whole chunks only");
            for ($x, result) in x.iter().zip(out.as_chunks_mut::<CHUNK>().0) {
                let mut $out = [0.0; CHUNK];
                $body;
                *result = $out;
            }
        }
        let mut list: Vec<(&'static str, Loop<$t>)> = vec![("baseline", |x, out| chunks(x, out))];
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn avx2(x: &[$t], out: &mut [$t]) {
                chunks(x, out)
            }
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
            fn avx512(x: &[$t], out: &mut [$t]) {
                chunks(x, out)
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the instructions were found present just above.
                list.push(("avx2", |x, out| unsafe { avx2(x, out) }));
            }
            if has_avx512() {
                // SAFETY: as above.
                list.push(("avx512", |x, out| unsafe { avx512(x, out) }));
            }
        }
        list
    }};
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma")
}

macro_rules! entry {
    ($name:ident) => {
        Entry {
            name: stringify!($name),
            single: loops!(
                f32,
                x,
                out,
                for i in 0..CHUNK {
                    out[i] = math::f32::$name(x[i])
                }
            ),
            double: loops!(
                f64,
                x,
                out,
                for i in 0..CHUNK {
                    out[i] = math::f64::$name(x[i])
                }
            ),
        }
    };
    ($name:ident, $rare:ident) => {
        Entry {
            name: stringify!($name),
            single: loops!(f32, x, out, math::map_rare(x, &mut out, math::f32::$name, math::f32::trig_is_rare, math::f32::$rare)),
            double: loops!(f64, x, out, math::map_rare(x, &mut out, math::f64::$name, math::f64::trig_is_rare, math::f64::$rare)),
        }
    };
}

/// Every function of one argument.
pub fn unary() -> Vec<Entry> {
    vec![
        entry!(exp),
        entry!(exp2),
        entry!(expm1),
        entry!(log),
        entry!(log2),
        entry!(log10),
        entry!(log1p),
        entry!(sigmoid),
        entry!(silu),
        entry!(silu_derivative),
        entry!(softplus),
        entry!(logsigmoid),
        entry!(sin, sin_rare),
        entry!(cos, cos_rare),
        entry!(tan, tan_rare),
        entry!(asin),
        entry!(acos),
        entry!(atan),
        entry!(sinh),
        entry!(cosh),
        entry!(tanh),
        entry!(asinh),
        entry!(acosh),
        entry!(atanh),
        entry!(erf),
        entry!(erfc),
        entry!(erfinv),
        entry!(gelu),
        entry!(gelu_derivative),
        entry!(gelu_tanh),
        entry!(gelu_tanh_derivative),
        entry!(rsqrt),
    ]
}

/// Distance of `got` from the exact value in units in the last place of the `f32` grid around the exact value; infinite
/// where one is NaN, or infinite beyond rounding, and the other is not.
pub fn ulp_error_f32(got: f32, exact: f64) -> f64 {
    const OVERFLOW: f64 = 3.402_823_567_797_336_6e38;
    if exact.is_nan() || got.is_nan() {
        return if exact.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact.abs() >= OVERFLOW {
        return if got == f32::INFINITY.copysign(exact as f32) { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() {
        // Allowed where the next number beyond the largest would be as near.
        return if exact.abs() > f32::MAX as f64 * (1.0 - 1e-7) { 1.0 } else { f64::INFINITY };
    }
    let exponent = ((exact.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    let unit = f64::from_bits(((exponent - 23 + 1023) as u64) << 52);
    (got as f64 - exact).abs() / unit
}

/// Distance of `got` from y + residue, in units in the last place of y; `residue` is in the same unit.
pub fn ulp_error_f64(got: f64, y: f64, residue: f64) -> f64 {
    if y.is_nan() || got.is_nan() || y.is_infinite() || got.is_infinite() {
        return if got == y || (y.is_nan() && got.is_nan()) { 0.0 } else { f64::INFINITY };
    }
    let exponent = ((y.abs().to_bits() >> 52) as i32 - 1023).max(-1022);
    // In two steps, since the unit itself may be below the least number.
    let scale = |v: f64| v * 2.0_f64.powi(-exponent / 2) * 2.0_f64.powi(52 - exponent + exponent / 2);
    (scale(got - y) - residue).abs()
}
