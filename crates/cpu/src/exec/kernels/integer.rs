//! Steps on integers, in 32 and 64 bits, and on bool. The executor wraps results to narrower dtypes.

use super::level::Level;
use super::loops::{BLOCK, Binary, Unary};
use crate::exec::step::StepFn;
use flambeau_ir::ScalarOp;

macro_rules! steps {
    ($name:ident, $t:ident;
     unary { $($u:ident($ux:ident) => $ue:expr;)* }
     test { $($p:ident($px:ident) => $pe:expr;)* }
     binary { $($b:ident($bx:ident, $by:ident) => $be:expr;)* }
     compare { $($c:ident $cop:tt;)* }) => {
        mod $name {
            use super::*;

            $(pub struct $u; impl Unary for $u {
                type A = $t; type R = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    for i in 0..BLOCK { let $ux = a[i]; out[i] = $ue; }
                }
            })*
            $(pub struct $p; impl Unary for $p {
                type A = $t; type R = u8;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], out: &mut [u8; BLOCK]) {
                    for i in 0..BLOCK { let $px = a[i]; out[i] = ($pe) as u8; }
                }
            })*
            $(pub struct $b; impl Binary for $b {
                type A = $t; type R = $t;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], b: &[$t; BLOCK], out: &mut [$t; BLOCK]) {
                    for i in 0..BLOCK { let ($bx, $by) = (a[i], b[i]); out[i] = $be; }
                }
            })*
            $(pub struct $c; impl Binary for $c {
                type A = $t; type R = u8;
                #[inline(always)]
                fn block(a: &[$t; BLOCK], b: &[$t; BLOCK], out: &mut [u8; BLOCK]) {
                    for i in 0..BLOCK { out[i] = (a[i] $cop b[i]) as u8; }
                }
            })*

            pub fn step<L: Level>(op: ScalarOp) -> Option<StepFn> {
                Some(match op {
                    $(ScalarOp::$u => L::unary::<$u>(),)*
                    $(ScalarOp::$p => L::unary::<$p>(),)*
                    $(ScalarOp::$b => L::binary::<$b>(),)*
                    $(ScalarOp::$c => L::binary::<$c>(),)*
                    _ => return None,
                })
            }
        }
    };
}

/// A divisor that does not trap. Divisions by zero are found before, see `Inst::check`.
#[inline(always)]
fn nonzero<T: Default + PartialEq + From<u8>>(y: T) -> T {
    if y == T::default() { T::from(1) } else { y }
}

/// `x` to the power of `y`, wrapping; of a negative power what is left of the fraction: 0, but for 1 and -1.
#[inline(always)]
fn power(x: i64, y: i64) -> i64 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 => 1 - 2 * (y & 1),
            _ => 0,
        };
    }
    power_unsigned(x, y as u64)
}

#[inline(always)]
fn power_unsigned(x: i64, y: u64) -> i64 {
    let (mut base, mut rest, mut out) = (x, y, 1i64);
    while rest != 0 {
        if rest & 1 != 0 {
            out = out.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        rest >>= 1;
    }
    out
}

macro_rules! signed_steps {
    ($($name:ident $t:ident;)*) => {$(steps! { $name, $t;
    unary {
        Neg(x) => x.wrapping_neg();
        Abs(x) => x.wrapping_abs();
        Sign(x) => (x > 0) as $t - (x < 0) as $t;
        Floor(x) => x;
        Ceil(x) => x;
        Trunc(x) => x;
        Round(x) => x;
        Not(x) => !x;
    }
    test {
        IsNan(_x) => false;
        IsInf(_x) => false;
        IsFinite(_x) => true;
        Signbit(x) => x < 0;
    }
    binary {
        Add(x, y) => x.wrapping_add(y);
        Sub(x, y) => x.wrapping_sub(y);
        Mul(x, y) => x.wrapping_mul(y);
        FloorDiv(x, y) => {
            let y = nonzero(y);
            let (q, r) = (x.wrapping_div(y), x.wrapping_rem(y));
            q.wrapping_sub(((r != 0) & ((r < 0) != (y < 0))) as $t)
        };
        TruncDiv(x, y) => x.wrapping_div(nonzero(y));
        Rem(x, y) => {
            let y = nonzero(y);
            let r = x.wrapping_rem(y);
            if (r != 0) & ((r < 0) != (y < 0)) { r.wrapping_add(y) } else { r }
        };
        Fmod(x, y) => x.wrapping_rem(nonzero(y));
        Pow(x, y) => power(x as i64, y as i64) as $t;
        Maximum(x, y) => if x > y { x } else { y };
        Minimum(x, y) => if x < y { x } else { y };
        Fmax(x, y) => if x > y { x } else { y };
        Fmin(x, y) => if x < y { x } else { y };
        And(x, y) => x & y;
        Or(x, y) => x | y;
        Xor(x, y) => x ^ y;
        Shl(x, y) => if (0..<$t>::BITS as $t).contains(&y) { x.wrapping_shl(y as u32) } else { 0 };
        Shr(x, y) => x.wrapping_shr(if (0..<$t>::BITS as $t).contains(&y) { y as u32 } else { <$t>::BITS - 1 });
    }
    compare { Eq ==; Ne !=; Lt <; Le <=; Gt >; Ge >=; }
})*};
}

signed_steps! { signed i64; signed_32 i32; }

steps! { unsigned, u64;
    unary {
        Abs(x) => x;
        Sign(x) => (x > 0) as u64;
    }
    test {
        Signbit(_x) => false;
    }
    binary {
        FloorDiv(x, y) => x / nonzero(y);
        TruncDiv(x, y) => x / nonzero(y);
        Rem(x, y) => x % nonzero(y);
        Fmod(x, y) => x % nonzero(y);
        Pow(x, y) => power_unsigned(x as i64, y) as u64;
        Maximum(x, y) => if x > y { x } else { y };
        Minimum(x, y) => if x < y { x } else { y };
        Fmax(x, y) => if x > y { x } else { y };
        Fmin(x, y) => if x < y { x } else { y };
        Shl(x, y) => if y < 64 { x << y } else { 0 };
        Shr(x, y) => if y < 64 { x >> y } else { 0 };
    }
    compare { Lt <; Le <=; Gt >; Ge >=; }
}

steps! { boolean, u8;
    unary {
        Abs(x) => x;
        Sign(x) => x;
        Floor(x) => x;
        Ceil(x) => x;
        Trunc(x) => x;
        Round(x) => x;
        Not(x) => x ^ 1;
        Neg(x) => x;
    }
    test {
        IsNan(_x) => false;
        IsInf(_x) => false;
        IsFinite(_x) => true;
        Signbit(_x) => false;
    }
    binary {
        Add(x, y) => x | y;
        Sub(x, y) => x ^ y;
        Mul(x, y) => x & y;
        FloorDiv(x, _y) => x;
        TruncDiv(x, _y) => x;
        Rem(x, y) => x & (y ^ 1);
        Fmod(x, y) => x & (y ^ 1);
        Pow(x, y) => x | (y ^ 1);
        Maximum(x, y) => x | y;
        Minimum(x, y) => x & y;
        Fmax(x, y) => x | y;
        Fmin(x, y) => x & y;
        And(x, y) => x & y;
        Or(x, y) => x | y;
        Xor(x, y) => x ^ y;
        Shl(x, y) => x & (y ^ 1);
        Shr(x, y) => x & (y ^ 1);
    }
    compare { Eq ==; Ne !=; Lt <; Le <=; Gt >; Ge >=; }
}

/// Whether a divisor is zero, as a byte for each element that is or-ed into the flag by the executor.
pub struct IsZero<T>(std::marker::PhantomData<T>);

macro_rules! is_zero {
    ($($t:ident)*) => {$(impl Unary for IsZero<$t> {
        type A = $t;
        type R = u8;
        #[inline(always)]
        fn block(a: &[$t; BLOCK], out: &mut [u8; BLOCK]) {
            for i in 0..BLOCK {
                out[i] = (a[i] == 0) as u8;
            }
        }
    })*};
}
is_zero! { u8 i32 i64 }

/// The step of an operation on signed integers.
pub fn signed_step<L: Level>(op: ScalarOp) -> Option<StepFn> {
    if op == ScalarOp::Select { Some(L::select::<u64>) } else { signed::step::<L>(op) }
}

/// The step of an operation on signed integers of 32 bits.
pub fn signed_32_step<L: Level>(op: ScalarOp) -> Option<StepFn> {
    if op == ScalarOp::Select { Some(L::select::<u32>) } else { signed_32::step::<L>(op) }
}

/// The step of an operation on `uint64`: most are those on signed integers.
pub fn unsigned_step<L: Level>(op: ScalarOp) -> Option<StepFn> {
    unsigned::step::<L>(op).or_else(|| signed_step::<L>(op))
}

/// The step of an operation on bool.
pub fn bool_step<L: Level>(op: ScalarOp) -> Option<StepFn> {
    if op == ScalarOp::Select { Some(L::select::<u8>) } else { boolean::step::<L>(op) }
}
