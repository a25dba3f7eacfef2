//! Steps on `f32` and `f64`: one list for both.

use super::level::Level;
use super::loops::{BLOCK, Binary, Ternary, Unary};
use crate::exec::step::StepFn;
use crate::math;
use flambeau_ir::ScalarOp;

macro_rules! float_steps {
    ($t:ident;
     unary { $($u:ident($ux:ident) => $ue:expr;)* }
     rare { $($r:ident: $quick:ident, $rare:ident;)* }
     test { $($p:ident($px:ident) => $pe:expr;)* }
     binary { $($b:ident($bx:ident, $by:ident) => $be:expr;)* }
     divide { $($d:ident: $fast:ident, $slow:ident;)* }
     compare { $($c:ident $cop:tt;)* }) => {
        /// Steps on numbers of this type.
        pub mod $t {
            use super::*;
            use math::$t as m;

            $(struct $u; impl Unary for $u {
                type A = $t; type R = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    for i in 0..BLOCK { let $ux = a[i]; out[i] = $ue; }
                }
            })*
            $(struct $r; impl Unary for $r {
                type A = $t; type R = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    math::map_rare(a, out, m::$quick, m::trig_is_rare, m::$rare);
                }
            })*
            $(struct $p; impl Unary for $p {
                type A = $t; type R = u8;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], out: &mut [u8; BLOCK]) {
                    for i in 0..BLOCK { let $px = a[i]; out[i] = ($pe) as u8; }
                }
            })*
            $(struct $b; impl Binary for $b {
                type A = $t; type R = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], b: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    for i in 0..BLOCK { let ($bx, $by) = (a[i], b[i]); out[i] = $be; }
                }
            })*
            $(struct $d; impl Binary for $d {
                type A = $t; type R = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], b: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    math::zip_rare(a, b, out, m::$fast, m::division_is_rare, m::$slow);
                }
            })*
            $(struct $c; impl Binary for $c {
                type A = $t; type R = u8;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], b: &[$t; BLOCK], out: &mut [u8; BLOCK]) {
                    for i in 0..BLOCK { out[i] = (a[i] $cop b[i]) as u8; }
                }
            })*

            struct Fma;
            impl Ternary for Fma {
                type A = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], b: &[$t; BLOCK], c: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    for i in 0..BLOCK { out[i] = a[i].mul_add(b[i], c[i]); }
                }
            }

            /// The step of an operation, if there is one on floats.
            pub fn step<L: Level>(op: ScalarOp) -> Option<StepFn> {
                Some(match op {
                    $(ScalarOp::$u => L::unary::<$u>(),)*
                    $(ScalarOp::$r => L::unary::<$r>(),)*
                    $(ScalarOp::$p => L::unary::<$p>(),)*
                    $(ScalarOp::$b => L::binary::<$b>(),)*
                    $(ScalarOp::$d => L::binary::<$d>(),)*
                    $(ScalarOp::$c => L::binary::<$c>(),)*
                    ScalarOp::Fma => L::ternary::<Fma>(),
                    ScalarOp::Select => L::select::<$t>,
                    _ => return None,
                })
            }
        }
    };
}

macro_rules! float_list {
    ($($t:ident)*) => {$(
        float_steps! { $t;
            unary {
                Neg(x) => -x;
                Abs(x) => x.abs();
                Sign(x) => if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 };
                Reciprocal(x) => m::reciprocal(x);
                Sqrt(x) => m::sqrt(x);
                Rsqrt(x) => m::rsqrt(x);
                Floor(x) => m::floor(x);
                Ceil(x) => m::ceil(x);
                Trunc(x) => m::trunc(x);
                Round(x) => m::round(x);
                Exp(x) => m::exp(x);
                Exp2(x) => m::exp2(x);
                Expm1(x) => m::expm1(x);
                Log(x) => m::log(x);
                Log2(x) => m::log2(x);
                Log10(x) => m::log10(x);
                Log1p(x) => m::log1p(x);
                Asin(x) => m::asin(x);
                Acos(x) => m::acos(x);
                Atan(x) => m::atan(x);
                Sinh(x) => m::sinh(x);
                Cosh(x) => m::cosh(x);
                Tanh(x) => m::tanh(x);
                Asinh(x) => m::asinh(x);
                Acosh(x) => m::acosh(x);
                Atanh(x) => m::atanh(x);
                Erf(x) => m::erf(x);
                Erfc(x) => m::erfc(x);
                Erfinv(x) => m::erfinv(x);
                Sigmoid(x) => m::sigmoid(x);
                LogSigmoid(x) => m::logsigmoid(x);
                Silu(x) => m::silu(x);
                SiluGrad(x) => m::silu_derivative(x);
                Gelu(x) => m::gelu(x);
                GeluGrad(x) => m::gelu_derivative(x);
                GeluTanh(x) => m::gelu_tanh(x);
                GeluTanhGrad(x) => m::gelu_tanh_derivative(x);
            }
            rare {
                Sin: sin, sin_rare;
                Cos: cos, cos_rare;
                Tan: tan, tan_rare;
            }
            test {
                IsNan(x) => x.is_nan();
                IsInf(x) => x.abs() == <$t>::INFINITY;
                IsFinite(x) => x.abs() < <$t>::INFINITY;
                Signbit(x) => x.is_sign_negative();
            }
            binary {
                Add(x, y) => x + y;
                Sub(x, y) => x - y;
                Mul(x, y) => x * y;
                Div(x, y) => x / y;
                TruncDiv(x, y) => m::trunc(x / y);
                Pow(x, y) => m::pow(x, y);
                Maximum(x, y) => if (x > y) | x.is_nan() { x } else { y };
                Minimum(x, y) => if (x < y) | x.is_nan() { x } else { y };
                Fmax(x, y) => if (x >= y) | y.is_nan() { x } else { y };
                Fmin(x, y) => if (x <= y) | y.is_nan() { x } else { y };
                Hypot(x, y) => m::hypot(x, y);
                Atan2(x, y) => m::atan2(x, y);
                Copysign(x, y) => x.copysign(y);
            }
            divide {
                FloorDiv: floor_divide, floor_divide_rare;
                Rem: remainder, remainder_rare;
                Fmod: fmod, fmod_rare;
            }
            compare { Eq ==; Ne !=; Lt <; Le <=; Gt >; Ge >=; }
        }
    )*};
}

float_list! { f32 f64 }

/// See [`math::f32::gelu_short`].
struct GeluShort;

impl Unary for GeluShort {
    type A = f32;
    type R = f32;
    #[inline(always)]
    fn block(a: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = math::f32::gelu_short(a[i]);
        }
    }
}

/// The step of an operation of which 11 bits are enough, where that is less work.
pub fn short_step<L: Level>(op: ScalarOp) -> Option<StepFn> {
    (op == ScalarOp::Gelu).then_some(L::unary::<GeluShort>())
}
