//! Between memory and registers, and between register classes.

use super::level::Level;
use super::loops::{BLOCK, Binary, Unary};
use super::narrow::{Brain, E4M3, E5M2, Narrow};
use super::rare;
use crate::exec::step::{Class, StepFn};
use flambeau_base::DType;
use flambeau_ir::ScalarOp;
use num_complex::Complex;
use std::marker::PhantomData;
use std::ops::{Add, Mul, Neg, Sub};

/// The integer that `x86` gives for a float: cut off towards zero, the least integer where it does not fit (NaN too).
trait Cut {
    fn to_i64(self) -> i64;
    fn to_i32(self) -> i32;
    fn to_u64(self) -> i64;
}

macro_rules! cut {
    ($($t:ident)*) => {$(impl Cut for $t {
        #[inline(always)]
        fn to_i64(self) -> i64 {
            let fits = (self >= i64::MIN as $t) & (self < -(i64::MIN as $t));
            // SAFETY: the number is inside the range, or 0.
            let cut = unsafe { (if fits { self } else { 0.0 }).to_int_unchecked::<i64>() };
            if fits { cut } else { i64::MIN }
        }
        #[inline(always)]
        fn to_i32(self) -> i32 {
            let cut = self.trunc();
            let fits = (cut >= i32::MIN as $t) & (cut < -(i32::MIN as $t));
            // SAFETY: the number is inside the range, or 0.
            let cut = unsafe { (if fits { cut } else { 0.0 }).to_int_unchecked::<i32>() };
            if fits { cut } else { i32::MIN }
        }
        #[inline(always)]
        fn to_u64(self) -> i64 {
            let half = -(i64::MIN as $t);
            let large = self >= half;
            (if large { self - half } else { self }).to_i64() ^ if large { i64::MIN } else { 0 }
        }
    })*};
}
cut! { f32 f64 }

macro_rules! maps {
    ($($name:ident: $a:ty => $r:ty, |$x:ident| $e:expr;)*) => {$(
        struct $name;
        impl Unary for $name {
            type A = $a;
            type R = $r;
            #[inline(always)]
            fn block(a: &[$a; BLOCK], out: &mut [$r; BLOCK]) {
                for i in 0..BLOCK {
                    let $x = a[i];
                    out[i] = $e;
                }
            }
        }
    )*};
}

type C32 = Complex<f32>;
type C64 = Complex<f64>;

maps! {
    ReadBool: u8 => u8, |x| (x != 0) as u8;
    ReadU8: u8 => i32, |x| x as i32;
    ReadI8: i8 => i32, |x| x as i32;
    ReadU16: u16 => i32, |x| x as i32;
    ReadI16: i16 => i32, |x| x as i32;
    ReadU32: u32 => i64, |x| x as i64;
    Write8: i32 => u8, |x| x as u8;
    Write16: i32 => u16, |x| x as u16;
    Write32: i64 => u32, |x| x as u32;
    WrapU8: i32 => i32, |x| x as u8 as i32;
    WrapI8: i32 => i32, |x| x as i8 as i32;
    WrapU16: i32 => i32, |x| x as u16 as i32;
    WrapI16: i32 => i32, |x| x as i16 as i32;
    WrapU32: i64 => i64, |x| x as u32 as i64;

    F32ToBool: f32 => u8, |x| (x != 0.0) as u8;
    F64ToBool: f64 => u8, |x| (x != 0.0) as u8;
    I64ToBool: i64 => u8, |x| (x != 0) as u8;
    C32ToBool: C32 => u8, |x| ((x.re != 0.0) | (x.im != 0.0)) as u8;
    C64ToBool: C64 => u8, |x| ((x.re != 0.0) | (x.im != 0.0)) as u8;

    I32ToBool: i32 => u8, |x| (x != 0) as u8;
    I32ToI64: i32 => i64, |x| x as i64;
    I64ToI32: i64 => i32, |x| x as i32;
    BoolToI32: u8 => i32, |x| x as i32;
    I32ToF32: i32 => f32, |x| x as f32;
    I32ToF64: i32 => f64, |x| x as f64;
    F32ToI32: f32 => i32, |x| x.to_i32();
    F64ToI32: f64 => i32, |x| x.to_i32();
    F32ToI64: f32 => i64, |x| x.to_i64();
    F64ToI64: f64 => i64, |x| x.to_i64();
    F32ToU64: f32 => i64, |x| x.to_u64();
    F64ToU64: f64 => i64, |x| x.to_u64();
    BoolToI64: u8 => i64, |x| x as i64;

    BoolToF32: u8 => f32, |x| x as f32;
    I64ToF32: i64 => f32, |x| x as f32;
    U64ToF32: u64 => f32, |x| x as f32;
    F64ToF32: f64 => f32, |x| x as f32;
    C32ToF32: C32 => f32, |x| x.re;
    BoolToF64: u8 => f64, |x| x as f64;
    I64ToF64: i64 => f64, |x| x as f64;
    U64ToF64: u64 => f64, |x| x as f64;
    F32ToF64: f32 => f64, |x| x as f64;
    C64ToF64: C64 => f64, |x| x.re;

    F32ToC32: f32 => C32, |x| Complex::new(x, 0.0);
    F64ToC64: f64 => C64, |x| Complex::new(x, 0.0);
    C32ToC64: C32 => C64, |x| Complex::new(x.re as f64, x.im as f64);
    C64ToC32: C64 => C32, |x| Complex::new(x.re as f32, x.im as f32);
}

/// A narrow float to `float32`.
pub struct Widen<N>(PhantomData<N>);
/// `float32` to the nearest that a narrow float holds.
pub struct Round<N>(PhantomData<N>);
/// `float32` to a narrow float.
pub struct Write<N>(PhantomData<N>);

impl<N: Narrow> Unary for Widen<N> {
    type A = N::Bits;
    type R = f32;
    #[inline(always)]
    fn block(a: &[N::Bits; BLOCK], out: &mut [f32; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = N::widen(a[i]);
        }
    }
}

impl<N: Narrow> Unary for Round<N> {
    type A = f32;
    type R = f32;
    #[inline(always)]
    fn block(a: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = N::widen(N::narrow(a[i]));
        }
    }
}

impl<N: Narrow> Unary for Write<N> {
    type A = f32;
    type R = N::Bits;
    #[inline(always)]
    fn block(a: &[f32; BLOCK], out: &mut [N::Bits; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = N::narrow(a[i]);
        }
    }
}

/// The identity on elements of some size.
struct Copied<T>(PhantomData<T>);

impl<T: Copy> Unary for Copied<T> {
    type A = T;
    type R = T;
    #[inline(always)]
    fn block(a: &[T; BLOCK], out: &mut [T; BLOCK]) {
        *out = *a;
    }
}

/// Memory of a dtype into its register class.
pub fn load<L: Level>(dtype: DType) -> StepFn {
    match dtype {
        DType::Bool => L::unary::<ReadBool>,
        DType::U8 => L::unary::<ReadU8>,
        DType::I8 => L::unary::<ReadI8>,
        DType::U16 => L::unary::<ReadU16>,
        DType::I16 => L::unary::<ReadI16>,
        DType::U32 => L::unary::<ReadU32>,
        DType::F16 => L::unary::<L::WidenHalf>,
        DType::BF16 => L::unary::<Widen<Brain>>,
        DType::F8E4M3 => L::unary::<Widen<E4M3>>,
        DType::F8E5M2 => L::unary::<Widen<E5M2>>,
        DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::U64 | DType::C64 | DType::C128 => copy::<L>(Class::of(dtype)),
    }
}

/// A register into memory of a dtype of its class, rounded to that dtype.
pub fn store<L: Level>(dtype: DType) -> StepFn {
    match dtype {
        DType::U8 | DType::I8 => L::unary::<Write8>,
        DType::U16 | DType::I16 => L::unary::<Write16>,
        DType::U32 => L::unary::<Write32>,
        DType::F16 => L::unary::<L::WriteHalf>,
        DType::BF16 => L::unary::<Write<Brain>>,
        DType::F8E4M3 => L::unary::<Write<E4M3>>,
        DType::F8E5M2 => L::unary::<Write<E5M2>>,
        DType::Bool | DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::U64 | DType::C64 | DType::C128 => {
            copy::<L>(Class::of(dtype))
        }
    }
}

/// A register into another one.
pub fn copy<L: Level>(class: Class) -> StepFn {
    match class.size() {
        1 => L::unary::<Copied<u8>>,
        4 => L::unary::<Copied<u32>>,
        8 => L::unary::<Copied<u64>>,
        _ => L::unary::<Copied<[u64; 2]>>,
    }
}

/// Rounds (or wraps) a register's values to a dtype narrower than its class; none where there is nothing to do.
pub fn round<L: Level>(dtype: DType) -> Option<StepFn> {
    Some(match dtype {
        DType::U8 => L::unary::<WrapU8>,
        DType::I8 => L::unary::<WrapI8>,
        DType::U16 => L::unary::<WrapU16>,
        DType::I16 => L::unary::<WrapI16>,
        DType::U32 => L::unary::<WrapU32>,
        DType::F16 => L::unary::<L::RoundHalf>,
        DType::BF16 => L::unary::<Round<Brain>>,
        DType::F8E4M3 => L::unary::<Round<E4M3>>,
        DType::F8E5M2 => L::unary::<Round<E5M2>>,
        _ => return None,
    })
}

/// From one class to that of a dtype, as PyTorch on x86-64 converts; `None` where the registers are alike.
///
/// Floats become integers of up to 16 bits by way of `int32`, `uint32` by way of `int64`. The result still has
/// to be rounded to the dtype. Some conversions take two steps, see [`between`].
pub fn convert<L: Level>(from: Class, to: DType) -> Option<StepFn> {
    use Class as C;
    Some(match (from, Class::of(to)) {
        (C::I64, C::I64 | C::U64) | (C::U64, C::I64 | C::U64) => return None,
        (a, b) if a == b => return None,
        (C::F32, C::Bool) => L::unary::<F32ToBool>,
        (C::F64, C::Bool) => L::unary::<F64ToBool>,
        (C::I64 | C::U64, C::Bool) => L::unary::<I64ToBool>,
        (C::C64, C::Bool) => L::unary::<C32ToBool>,
        (C::C128, C::Bool) => L::unary::<C64ToBool>,
        (C::I32, C::Bool) => L::unary::<I32ToBool>,
        (C::I32, C::I64 | C::U64) => L::unary::<I32ToI64>,
        (C::I64 | C::U64, C::I32) => L::unary::<I64ToI32>,
        (C::Bool, C::I32) => L::unary::<BoolToI32>,
        (C::I32, C::F32) => L::unary::<I32ToF32>,
        (C::I32, C::F64) => L::unary::<I32ToF64>,
        (C::F32, C::I32) => L::unary::<F32ToI32>,
        (C::F64, C::I32) => L::unary::<F64ToI32>,
        (C::F32, C::I64) => L::unary::<F32ToI64>,
        (C::F64, C::I64) => L::unary::<F64ToI64>,
        (C::F32, C::U64) => L::unary::<F32ToU64>,
        (C::F64, C::U64) => L::unary::<F64ToU64>,
        (C::Bool, C::I64 | C::U64) => L::unary::<BoolToI64>,
        (C::Bool, C::F32) => L::unary::<BoolToF32>,
        (C::I64, C::F32) => L::unary::<I64ToF32>,
        (C::U64, C::F32) => L::unary::<U64ToF32>,
        (C::F64, C::F32) => L::unary::<F64ToF32>,
        (C::C64, C::F32) => L::unary::<C32ToF32>,
        (C::Bool, C::F64) => L::unary::<BoolToF64>,
        (C::I64, C::F64) => L::unary::<I64ToF64>,
        (C::U64, C::F64) => L::unary::<U64ToF64>,
        (C::F32, C::F64) => L::unary::<F32ToF64>,
        (C::C128, C::F64) => L::unary::<C64ToF64>,
        (C::F32, C::C64) => L::unary::<F32ToC32>,
        (C::F64, C::C128) => L::unary::<F64ToC64>,
        (C::C64, C::C128) => L::unary::<C32ToC64>,
        (C::C128, C::C64) => L::unary::<C64ToC32>,
        _ => unreachable!("conversions by way of another dtype are split before"),
    })
}

/// The dtype through which a conversion goes, where it takes two steps: complex numbers become or come from
/// their own part's type.
pub fn between(from: Class, to: DType) -> Option<DType> {
    use Class as C;
    match (from, Class::of(to)) {
        (C::C64, C::I32 | C::I64 | C::U64 | C::F64) => Some(DType::F32),
        (C::C128, C::I32 | C::I64 | C::U64 | C::F32) => Some(DType::F64),
        (C::Bool | C::I32 | C::I64 | C::U64 | C::F64, C::C64) => Some(DType::F32),
        (C::Bool | C::I32 | C::I64 | C::U64 | C::F32, C::C128) => Some(DType::F64),
        _ => None,
    }
}

macro_rules! complex {
    ($($name:ident |$x:ident, $y:ident| $e:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Part> Binary for $name<T> {
            type A = Complex<T>;
            type R = Complex<T>;
            #[inline(always)]
            fn block(a: &[Complex<T>; BLOCK], b: &[Complex<T>; BLOCK], out: &mut [Complex<T>; BLOCK]) {
                for i in 0..BLOCK {
                    let ($x, $y) = (a[i], b[i]);
                    out[i] = $e;
                }
            }
        }
    )*};
}

/// A complex number's part.
trait Part: Copy + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {}
impl Part for f32 {}
impl Part for f64 {}

complex! {
    ComplexAdd |x, y| Complex::new(x.re + y.re, x.im + y.im);
    ComplexSub |x, y| Complex::new(x.re - y.re, x.im - y.im);
    ComplexMul |x, y| Complex::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

struct ComplexNeg<T>(PhantomData<T>);
impl<T: Part> Unary for ComplexNeg<T> {
    type A = Complex<T>;
    type R = Complex<T>;
    #[inline(always)]
    fn block(a: &[Complex<T>; BLOCK], out: &mut [Complex<T>; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = Complex::new(-a[i].re, -a[i].im);
        }
    }
}

/// Equality, or with `NE` its opposite.
struct ComplexEq<T, const NE: bool>(PhantomData<T>);
impl<T: Part, const NE: bool> Binary for ComplexEq<T, NE> {
    type A = Complex<T>;
    type R = u8;
    #[inline(always)]
    fn block(a: &[Complex<T>; BLOCK], b: &[Complex<T>; BLOCK], out: &mut [u8; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = (((a[i].re == b[i].re) & (a[i].im == b[i].im)) ^ NE) as u8;
        }
    }
}

fn complex_of<L: Level, T: Part>(op: ScalarOp) -> Option<StepFn> {
    Some(match op {
        ScalarOp::Add => L::binary::<ComplexAdd<T>>,
        ScalarOp::Sub => L::binary::<ComplexSub<T>>,
        ScalarOp::Mul => L::binary::<ComplexMul<T>>,
        ScalarOp::Neg => L::unary::<ComplexNeg<T>>,
        ScalarOp::Eq => L::binary::<ComplexEq<T, false>>,
        ScalarOp::Ne => L::binary::<ComplexEq<T, true>>,
        ScalarOp::Select => L::select::<Complex<T>>,
        _ => return None,
    })
}

/// The step of an operation on complex numbers.
pub fn complex_step<L: Level>(op: ScalarOp, class: Class) -> Option<StepFn> {
    let step = if class == Class::C64 { complex_of::<L, f32>(op) } else { complex_of::<L, f64>(op) };
    step.or_else(|| rare::complex_step(op, class))
}
