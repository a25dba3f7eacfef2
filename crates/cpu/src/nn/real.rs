//! Element types of layers, the type in which they are summed up, and loops over rows of them.
//!
//! Every function here is inlined into a [`Kernel`], which is compiled for each instruction set. Sums run in
//! [`LANES`] chains that are folded in a fixed order, so that a result depends on the row alone.

use crate::exec::kernels::narrow::{Brain, Half, Narrow};
use crate::isa::{self, Isa};
use crate::math;
use half::{bf16, f16};
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// Elements to a block of a row.
pub const LANES: usize = 32;

/// Blocks after which the chains of a sum are folded into a second level.
const FOLD: usize = 32;

/// In what layers compute.
pub trait Sum:
    Copy
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + crate::gemm::GemmElement<Alpha = Self>
    + Real<Sum = Self>
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Infinity.
    const INFINITY: Self;
    /// The least finite number.
    const LOWEST: Self;
    /// The least normal number.
    const TINY: Self;
    /// The nearest number.
    fn of(x: f64) -> Self;
    /// The number.
    fn to_f64(self) -> f64;
    /// `self * a + b` with one rounding.
    fn fma(self, a: Self, b: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Magnitude.
    fn abs(self) -> Self;
    /// e^x.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// `1 / (1 + e^-x)`.
    fn sigmoid(self) -> Self;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The power of two at or below the magnitude; 1 for zero, infinities and NaN.
    fn power_of_two(self) -> Self;
}

macro_rules! sum {
    ($t:ident, $bits:ident, $exponent:expr) => {
        impl Sum for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const INFINITY: $t = $t::INFINITY;
            const LOWEST: $t = $t::MIN;
            const TINY: $t = $t::MIN_POSITIVE;
            #[inline(always)]
            fn of(x: f64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn fma(self, a: $t, b: $t) -> $t {
                self.mul_add(a, b)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                self.sqrt()
            }
            #[inline(always)]
            fn abs(self) -> $t {
                self.abs()
            }
            #[inline(always)]
            fn exp(self) -> $t {
                math::$t::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> $t {
                math::$t::log(self)
            }
            #[inline(always)]
            fn tanh(self) -> $t {
                math::$t::tanh(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> $t {
                math::$t::sigmoid(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn power_of_two(self) -> $t {
                let p = $t::from_bits(self.to_bits() & $exponent);
                if p == 0.0 || !p.is_finite() { 1.0 } else { p }
            }
        }
    };
}
sum!(f32, u32, 0x7f80_0000);
sum!(f64, u64, 0x7ff0_0000_0000_0000);

/// An element type of layers.
pub trait Real: Copy + Send + Sync + 'static {
    /// In what it is computed with.
    type Sum: Sum;
    /// Whether that is the type itself.
    const WIDE: bool;
    /// The value.
    fn widen(self) -> Self::Sum;
    /// The nearest value.
    fn narrow(x: Self::Sum) -> Self;
}

macro_rules! real {
    ($t:ty, $sum:ty, $wide:expr, |$x:ident| $widen:expr, |$y:ident| $narrow:expr) => {
        impl Real for $t {
            type Sum = $sum;
            const WIDE: bool = $wide;
            #[inline(always)]
            fn widen(self) -> $sum {
                let $x = self;
                $widen
            }
            #[inline(always)]
            fn narrow($y: $sum) -> $t {
                $narrow
            }
        }
    };
}
real!(f32, f32, true, |x| x, |x| x);
real!(f64, f64, true, |x| x, |x| x);
real!(f16, f32, false, |x| Half::widen(x.to_bits()), |x| f16::from_bits(Half::narrow(x)));
real!(bf16, f32, false, |x| Brain::widen(x.to_bits()), |x| bf16::from_bits(Brain::narrow(x)));

/// Work that is compiled for each instruction set.
///
/// The compiled forms are methods of the kernel, so that they are compiled with its module, apart from the others.
pub trait Kernel: Sized {
    /// Does it. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// As the kernel says.
    unsafe fn run(&self);

    /// [`Kernel::run`] as compiled for [`Isa::Avx2`].
    ///
    /// # Safety
    /// As there, and the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn run_avx2(&self) {
        // SAFETY: the caller's.
        unsafe { self.run() }
    }

    /// [`Kernel::run`] as compiled for [`Isa::Avx512`].
    ///
    /// # Safety
    /// As there, and the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn run_avx512(&self) {
        // SAFETY: the caller's.
        unsafe { self.run() }
    }

    /// [`Kernel::run`] with the best instructions that the processor has.
    ///
    /// # Safety
    /// As there.
    unsafe fn run_best(&self) {
        // SAFETY: the processor has the instructions; the rest is the caller's.
        unsafe {
            match isa::level() {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => self.run_avx512(),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => self.run_avx2(),
                _ => self.run(),
            }
        }
    }
}

/// Does a kernel's work with the best instructions that the processor has.
///
/// # Safety
/// As the kernel says.
#[inline]
pub unsafe fn run(kernel: &impl Kernel) {
    // SAFETY: the caller's.
    unsafe { kernel.run_best() }
}

/// The larger number; a NaN in `x` gives way.
#[inline(always)]
pub fn larger<A: Sum>(most: A, x: A) -> A {
    if x > most { x } else { most }
}

/// Folds lanes by halves, so that the order is the same whatever the vectors' width.
#[inline(always)]
pub fn fold<A: Copy>(mut lanes: [A; LANES], f: impl Fn(A, A) -> A) -> A {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = f(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Loads a block.
///
/// # Safety
/// `LANES` elements are readable.
#[inline(always)]
pub unsafe fn load<R: Real>(at: *const R) -> [R::Sum; LANES] {
    // SAFETY: the caller's.
    let raw = unsafe { at.cast::<[R; LANES]>().read_unaligned() };
    let mut out = [R::Sum::ZERO; LANES];
    for i in 0..LANES {
        out[i] = raw[i].widen();
    }
    out
}

/// Loads the first `n` elements of a block; the others are `rest`.
///
/// # Safety
/// `n` elements are readable, `n < LANES`.
#[inline(always)]
pub unsafe fn load_part<R: Real>(at: *const R, n: usize, rest: R::Sum) -> [R::Sum; LANES] {
    let mut raw = [R::narrow(R::Sum::ZERO); LANES];
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(at, raw.as_mut_ptr(), n) };
    let mut out = [rest; LANES];
    for i in 0..LANES {
        out[i] = if i < n { raw[i].widen() } else { rest };
    }
    out
}

/// Stores a block.
///
/// # Safety
/// `LANES` elements are writable.
#[inline(always)]
pub unsafe fn store<R: Real>(at: *mut R, block: &[R::Sum; LANES]) {
    let mut raw = [R::narrow(R::Sum::ZERO); LANES];
    for i in 0..LANES {
        raw[i] = R::narrow(block[i]);
    }
    // SAFETY: the caller's.
    unsafe { at.cast::<[R; LANES]>().write_unaligned(raw) }
}

/// Stores the first `n` elements of a block.
///
/// # Safety
/// `n` elements are writable, `n <= LANES`.
#[inline(always)]
pub unsafe fn store_part<R: Real>(at: *mut R, n: usize, block: &[R::Sum; LANES]) {
    let mut raw = [R::narrow(R::Sum::ZERO); LANES];
    for i in 0..LANES {
        raw[i] = R::narrow(block[i]);
    }
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(raw.as_ptr(), at, n) };
}

/// Loads a block of `len` elements; those past it are `rest`.
///
/// # Safety
/// `len` elements are readable.
#[inline(always)]
pub unsafe fn load_some<R: Real>(at: *const R, len: usize, rest: R::Sum) -> [R::Sum; LANES] {
    // SAFETY: the caller's.
    unsafe { if len == LANES { load(at) } else { load_part(at, len, rest) } }
}

/// Stores `len` elements of a block.
///
/// # Safety
/// `len` elements are writable.
#[inline(always)]
pub unsafe fn store_some<R: Real>(at: *mut R, len: usize, block: &[R::Sum; LANES]) {
    // SAFETY: the caller's.
    unsafe { if len == LANES { store(at, block) } else { store_part(at, len, block) } }
}

/// [`load_some`] of numbers that are summed up; those past `len` are 0.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn load_sums<A: Sum>(at: *const A, len: usize) -> [A; LANES] {
    // SAFETY: the caller's.
    unsafe { load_some::<A>(at, len, A::ZERO) }
}

/// [`store_some`] of numbers that are summed up.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn store_sums<A: Sum>(at: *mut A, len: usize, block: &[A; LANES]) {
    // SAFETY: the caller's.
    unsafe { store_some::<A>(at, len, block) }
}

/// Chains of sums over a row, in two levels.
pub struct Chains<A> {
    now: [A; LANES],
    before: [A; LANES],
    blocks: usize,
}

impl<A: Sum> Chains<A> {
    /// No terms yet.
    #[inline(always)]
    pub fn new() -> Chains<A> {
        Chains { now: [A::ZERO; LANES], before: [A::ZERO; LANES], blocks: 0 }
    }

    /// Adds a block.
    #[inline(always)]
    pub fn add(&mut self, x: &[A; LANES]) {
        for i in 0..LANES {
            self.now[i] += x[i];
        }
        self.step();
    }

    /// Adds the products of two blocks.
    #[inline(always)]
    pub fn add_product(&mut self, x: &[A; LANES], y: &[A; LANES]) {
        for i in 0..LANES {
            self.now[i] = x[i].fma(y[i], self.now[i]);
        }
        self.step();
    }

    #[inline(always)]
    fn step(&mut self) {
        self.blocks += 1;
        if self.blocks == FOLD {
            for i in 0..LANES {
                self.before[i] += self.now[i];
                self.now[i] = A::ZERO;
            }
            self.blocks = 0;
        }
    }

    /// The sum.
    #[inline(always)]
    pub fn total(mut self) -> A {
        for i in 0..LANES {
            self.now[i] += self.before[i];
        }
        fold(self.now, |a, b| a + b)
    }
}

/// A pointer that is shared with the workers.
pub struct Shared<T>(pub T);

// SAFETY: kernels give each part of what they write to one thread; what they read is only read.
unsafe impl<T> Sync for Shared<T> {}

/// Rows that are worth handing to another thread, for rows of `n` elements that cost `work` simple operations each.
pub fn grain(n: usize, work: usize) -> usize {
    (32 * 1024 / (n.max(1) * work)).max(1)
}

/// Runs an expression with `$t` standing for the Rust type of a floating point dtype.
macro_rules! with_real {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {{
        use flambeau_base::DType;
        match $dtype {
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::F16 => {
                type $t = half::f16;
                $body
            }
            DType::BF16 => {
                type $t = half::bf16;
                $body
            }
            other => Err(flambeau_engine::backend::lacking($op, other, flambeau_base::DeviceKind::Cpu)),
        }
    }};
}
pub(crate) use with_real;
