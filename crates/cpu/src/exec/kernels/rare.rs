//! Steps that are not vectorised: special functions, and elementary ones of complex numbers.
//!
//! One loop for each function and number type, on all instruction sets. `f32` is computed in `f64` and rounded.

use crate::exec::step::{Args, Class, StepFn};
use crate::math::{complex, special};
use flambeau_ir::{ScalarOp, Special};
use num_complex::{Complex, Complex64};

/// A real number type.
trait Real: Copy + 'static {
    fn wide(self) -> f64;
    fn narrow(x: f64) -> Self;
}

impl Real for f32 {
    fn wide(self) -> f64 {
        self as f64
    }
    fn narrow(x: f64) -> f32 {
        x as f32
    }
}

impl Real for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn narrow(x: f64) -> f64 {
        x
    }
}

/// The value of a function's own type, which has no size.
fn function<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0) };
    // SAFETY: a value of no size is read from no memory, and the caller had one.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// The step of a function on elements of a type, element by element.
fn unary<A: Copy, R, F: Fn(A) -> R + Copy>(_: F) -> StepFn {
    unsafe fn run<A: Copy, R, F: Fn(A) -> R + Copy>(out: *mut u8, args: Args, n: usize) {
        let f = function::<F>();
        let (out, a) = (out.cast::<R>(), args[0].cast::<A>());
        for i in 0..n {
            // SAFETY: `n` elements are readable and writable, as callers of steps promise.
            unsafe { out.add(i).write_unaligned(f(a.add(i).read_unaligned())) };
        }
    }
    run::<A, R, F>
}

/// As [`unary`], of two arguments.
fn binary<A: Copy, R, F: Fn(A, A) -> R + Copy>(_: F) -> StepFn {
    unsafe fn run<A: Copy, R, F: Fn(A, A) -> R + Copy>(out: *mut u8, args: Args, n: usize) {
        let f = function::<F>();
        let (out, a, b) = (out.cast::<R>(), args[0].cast::<A>(), args[1].cast::<A>());
        for i in 0..n {
            // SAFETY: `n` elements are readable and writable, as callers of steps promise.
            unsafe { out.add(i).write_unaligned(f(a.add(i).read_unaligned(), b.add(i).read_unaligned())) };
        }
    }
    run::<A, R, F>
}

fn real1<T: Real>(f: impl Fn(f64) -> f64 + Copy) -> StepFn {
    unary(move |x: T| T::narrow(f(x.wide())))
}

fn real2<T: Real>(f: impl Fn(f64, f64) -> f64 + Copy) -> StepFn {
    binary(move |x: T, y: T| T::narrow(f(x.wide(), y.wide())))
}

fn special_of<T: Real>(f: Special) -> Option<StepFn> {
    use Special as S;
    Some(match f {
        S::Lgamma => real1::<T>(special::lgamma),
        S::Digamma => real1::<T>(special::digamma),
        S::I0 => real1::<T>(special::i0),
        S::I0e => real1::<T>(special::i0e),
        S::I1 => real1::<T>(special::i1),
        S::I1e => real1::<T>(special::i1e),
        S::K0 => real1::<T>(special::k0),
        S::K0e => real1::<T>(special::k0e),
        S::K1 => real1::<T>(special::k1),
        S::K1e => real1::<T>(special::k1e),
        S::J0 => real1::<T>(special::j0),
        S::J1 => real1::<T>(special::j1),
        S::Y0 => real1::<T>(special::y0),
        S::Y1 => real1::<T>(special::y1),
        S::SphericalJ0 => real1::<T>(special::spherical_j0),
        S::Airy => real1::<T>(special::airy),
        S::Erfcx => real1::<T>(special::erfcx),
        S::LogNdtr => real1::<T>(special::log_ndtr),
        S::Ndtri => real1::<T>(special::ndtri),
        S::Mantissa => real1::<T>(|x| special::parts(x).0),
        S::Exponent => real1::<T>(|x| special::parts(x).1),
        S::Ldexp => real2::<T>(special::ldexp),
        S::Igamma => real2::<T>(special::igamma),
        S::Igammac => real2::<T>(special::igammac),
        S::Zeta => real2::<T>(special::zeta),
        S::Polygamma if size_of::<T>() == 4 => real2::<T>(special::polygamma_single),
        S::Polygamma => real2::<T>(special::polygamma),
        S::ChebyshevT => real2::<T>(special::chebyshev_t),
        S::ChebyshevU => real2::<T>(special::chebyshev_u),
        S::ChebyshevV => real2::<T>(special::chebyshev_v),
        S::ChebyshevW => real2::<T>(special::chebyshev_w),
        S::ShiftedT => real2::<T>(special::shifted_t),
        S::ShiftedU => real2::<T>(special::shifted_u),
        S::ShiftedV => real2::<T>(special::shifted_v),
        S::ShiftedW => real2::<T>(special::shifted_w),
        S::HermiteH => real2::<T>(special::hermite_h),
        S::HermiteHe => real2::<T>(special::hermite_he),
        S::Laguerre => real2::<T>(special::laguerre),
        S::Legendre => real2::<T>(special::legendre),
        S::Nextafter | S::NextafterBrain | S::NextafterHalf => return None,
    })
}

/// The step of a special function.
pub fn special_step(f: Special, class: Class) -> Option<StepFn> {
    match (f, class) {
        (Special::Nextafter, Class::F32) => Some(binary(special::next_f32)),
        (Special::Nextafter, Class::F64) => Some(binary(special::next_f64)),
        (Special::NextafterBrain, Class::F32) => Some(binary(special::next_brain)),
        (Special::NextafterHalf, Class::F32) => Some(binary(special::next_half)),
        (_, Class::F32) => special_of::<f32>(f),
        (_, Class::F64) => special_of::<f64>(f),
        _ => None,
    }
}

fn wide<T: Real>(z: Complex<T>) -> Complex64 {
    Complex64::new(z.re.wide(), z.im.wide())
}

fn narrow<T: Real>(z: Complex64) -> Complex<T> {
    Complex::new(T::narrow(z.re), T::narrow(z.im))
}

fn complex1<T: Real>(f: impl Fn(Complex64) -> Complex64 + Copy) -> StepFn {
    unary(move |z: Complex<T>| narrow::<T>(f(wide(z))))
}

fn complex2<T: Real>(f: impl Fn(Complex64, Complex64) -> Complex64 + Copy) -> StepFn {
    binary(move |z: Complex<T>, w: Complex<T>| narrow::<T>(f(wide(z), wide(w))))
}

/// The step of an elementary function of complex numbers.
fn complex_of<T: Real>(op: ScalarOp) -> Option<StepFn> {
    use ScalarOp as S;
    Some(match op {
        S::Div => complex2::<T>(complex::divide),
        S::Pow => complex2::<T>(complex::pow),
        S::Reciprocal => complex1::<T>(complex::reciprocal),
        S::Sqrt => complex1::<T>(complex::sqrt),
        S::Rsqrt => complex1::<T>(complex::rsqrt),
        S::Exp => complex1::<T>(complex::exponential),
        S::Exp2 => complex1::<T>(complex::exp2),
        S::Expm1 => complex1::<T>(complex::exp_minus_1),
        S::Log => complex1::<T>(complex::ln),
        S::Log2 => complex1::<T>(complex::log2),
        S::Log10 => complex1::<T>(complex::log10),
        S::Log1p => complex1::<T>(complex::ln_1p),
        S::Sin => complex1::<T>(complex::sin_of),
        S::Cos => complex1::<T>(complex::cos_of),
        S::Tan => complex1::<T>(complex::tan_of),
        S::Asin => complex1::<T>(complex::asin),
        S::Acos => complex1::<T>(complex::acos),
        S::Atan => complex1::<T>(complex::atan),
        S::Sinh => complex1::<T>(complex::sinh_of),
        S::Cosh => complex1::<T>(complex::cosh_of),
        S::Tanh => complex1::<T>(complex::tanh_of),
        S::Asinh => complex1::<T>(complex::asinh_of),
        S::Acosh => complex1::<T>(complex::acosh),
        S::Atanh => complex1::<T>(complex::atanh),
        S::Sigmoid => complex1::<T>(complex::sigmoid),
        S::Silu => complex1::<T>(complex::silu),
        S::RealPart => unary(|z: Complex<T>| z.re),
        S::ImagPart => unary(|z: Complex<T>| z.im),
        _ => return None,
    })
}

/// The step of an operation on complex numbers that has no vectorised one.
pub fn complex_step(op: ScalarOp, class: Class) -> Option<StepFn> {
    if class == Class::C64 { complex_of::<f32>(op) } else { complex_of::<f64>(op) }
}

/// The step that makes complex numbers of their parts.
pub fn compose(class: Class) -> Option<StepFn> {
    match class {
        Class::F32 => Some(binary(|x: f32, y: f32| Complex::new(x, y))),
        Class::F64 => Some(binary(|x: f64, y: f64| Complex::new(x, y))),
        _ => None,
    }
}

/// The greatest common divisor, which is not negative.
fn gcd(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x.unsigned_abs(), y.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

/// The least common multiple, which is not negative where it fits; 0 beside 0.
fn lcm(x: i64, y: i64) -> i64 {
    let divisor = gcd(x, y);
    if divisor == 0 { 0 } else { (x / divisor).wrapping_mul(y).wrapping_abs() }
}

/// The step of divisors and multiples of integers.
pub fn divisor_step(op: ScalarOp, class: Class) -> Option<StepFn> {
    Some(match (op, class) {
        (ScalarOp::Gcd, Class::I32) => binary(|x: i32, y: i32| gcd(x as i64, y as i64) as i32),
        (ScalarOp::Gcd, Class::I64) => binary(gcd),
        (ScalarOp::Lcm, Class::I32) => binary(|x: i32, y: i32| lcm(x as i64, y as i64) as i32),
        (ScalarOp::Lcm, Class::I64) => binary(lcm),
        _ => return None,
    })
}
