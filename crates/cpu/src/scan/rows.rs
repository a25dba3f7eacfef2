//! What a scan keeps on its way, and the loops over a row and over columns.

use super::COLUMNS;
use crate::nn::real::{Real, Sum};
use flambeau_engine::backend::layers::Scan;
use half::{bf16, f16};
use num_complex::{Complex, Complex32, Complex64};
use std::marker::PhantomData;

/// A way of putting elements together one after the other.
pub trait Fold {
    /// The element type.
    type Element: Copy + Send + Sync + 'static;
    /// What is kept.
    type Kept: Copy;
    /// Before the first element.
    const START: Self::Kept;
    /// With an element more, which is at place `at`.
    fn push(kept: Self::Kept, x: Self::Element, at: i64) -> Self::Kept;
    /// The result so far and, for extremes, its place.
    fn result(kept: Self::Kept) -> (Self::Element, i64);
}

/// Numbers that sums and products are made of.
pub trait Number: Copy + Send + Sync + 'static {
    /// In what they are summed up.
    type Wide: Copy;
    /// 0 and 1.
    const BOUNDS: (Self::Wide, Self::Wide);
    /// The sum.
    fn add(a: Self::Wide, x: Self) -> Self::Wide;
    /// The product.
    fn mul(a: Self::Wide, x: Self) -> Self::Wide;
    /// As an element.
    fn narrowed(a: Self::Wide) -> Self;
}

impl Number for i64 {
    type Wide = i64;
    const BOUNDS: (i64, i64) = (0, 1);
    fn add(a: i64, x: i64) -> i64 {
        a.wrapping_add(x)
    }
    fn mul(a: i64, x: i64) -> i64 {
        a.wrapping_mul(x)
    }
    fn narrowed(a: i64) -> i64 {
        a
    }
}

macro_rules! number {
    ($($t:ty, $wide:ty;)*) => {$(
        impl Number for $t {
            type Wide = $wide;
            const BOUNDS: ($wide, $wide) = (0.0, 1.0);
            #[inline(always)]
            fn add(a: $wide, x: $t) -> $wide {
                a + <$wide>::from(x)
            }
            #[inline(always)]
            fn mul(a: $wide, x: $t) -> $wide {
                a * <$wide>::from(x)
            }
            #[inline(always)]
            fn narrowed(a: $wide) -> $t {
                <$t as FromWide<$wide>>::from_wide(a)
            }
        }
    )*};
}
// As PyTorch's CPU scans, `float32` is summed up in `float64`.
number! { f32, f64; f64, f64; f16, f32; bf16, f32; }

macro_rules! complex_number {
    ($($t:ty, $part:ty;)*) => {$(
        impl Number for $t {
            type Wide = Complex64;
            const BOUNDS: (Complex64, Complex64) = (Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0));
            #[inline(always)]
            fn add(a: Complex64, x: $t) -> Complex64 {
                a + widened(x)
            }
            #[inline(always)]
            fn mul(a: Complex64, x: $t) -> Complex64 {
                a * widened(x)
            }
            #[inline(always)]
            fn narrowed(a: Complex64) -> $t {
                Complex::new(a.re as $part, a.im as $part)
            }
        }
    )*};
}
complex_number! { Complex32, f32; Complex64, f64; }

/// The same complex number in double precision.
#[inline(always)]
fn widened<T: Copy + Into<f64>>(z: Complex<T>) -> Complex64 {
    Complex::new(z.re.into(), z.im.into())
}

trait FromWide<W> {
    fn from_wide(w: W) -> Self;
}
impl FromWide<f64> for f32 {
    fn from_wide(w: f64) -> f32 {
        w as f32
    }
}
impl FromWide<f64> for f64 {
    fn from_wide(w: f64) -> f64 {
        w
    }
}
impl FromWide<f32> for f16 {
    fn from_wide(w: f32) -> f16 {
        f16::narrow(w)
    }
}
impl FromWide<f32> for bf16 {
    fn from_wide(w: f32) -> bf16 {
        bf16::narrow(w)
    }
}

/// Sums.
pub struct Sums<T>(PhantomData<T>);

impl<T: Number> Fold for Sums<T> {
    type Element = T;
    type Kept = T::Wide;
    const START: T::Wide = T::BOUNDS.0;
    #[inline(always)]
    fn push(kept: T::Wide, x: T, _: i64) -> T::Wide {
        T::add(kept, x)
    }
    #[inline(always)]
    fn result(kept: T::Wide) -> (T, i64) {
        (T::narrowed(kept), 0)
    }
}

/// Products.
pub struct Product<T>(PhantomData<T>);

impl<T: Number> Fold for Product<T> {
    type Element = T;
    type Kept = T::Wide;
    const START: T::Wide = T::BOUNDS.1;
    #[inline(always)]
    fn push(kept: T::Wide, x: T, _: i64) -> T::Wide {
        T::mul(kept, x)
    }
    #[inline(always)]
    fn result(kept: T::Wide) -> (T, i64) {
        (T::narrowed(kept), 0)
    }
}

/// Logarithms of sums of exponentials: the largest so far, and the sum of exponentials less it.
pub struct LogSumExp<T>(PhantomData<T>);

impl<T: Real> Fold for LogSumExp<T> {
    type Element = T;
    type Kept = (T::Sum, T::Sum);
    const START: (T::Sum, T::Sum) = (T::Sum::LOWEST, T::Sum::ZERO);
    #[inline(always)]
    fn push((most, sum): Self::Kept, x: T, _: i64) -> Self::Kept {
        let x = x.widen();
        #[allow(clippy::eq_op)] // NaN is unequal to itself.
        let still = x == -T::Sum::INFINITY || most == T::Sum::INFINITY && x == x;
        if still {
            (most, sum)
        } else if x > most {
            (x, sum * (most - x).exp() + T::Sum::ONE)
        } else {
            (most, sum + (x - most).exp())
        }
    }
    #[inline(always)]
    fn result((most, sum): Self::Kept) -> (T, i64) {
        (T::narrow(if sum == T::Sum::ZERO { -T::Sum::INFINITY } else { most + sum.ln() }), 0)
    }
}

/// [`LogSumExp`] of complex numbers, of which the real parts are compared.
pub struct ComplexLogSumExp<T>(PhantomData<T>);

impl<T: Number<Wide = Complex64>> Fold for ComplexLogSumExp<T> {
    type Element = T;
    type Kept = Complex64;
    const START: Complex64 = Complex64::new(f64::NEG_INFINITY, 0.0);
    #[inline(always)]
    fn push(kept: Complex64, x: T, _: i64) -> Complex64 {
        let x = T::add(T::BOUNDS.0, x);
        if x.is_nan() || kept.is_nan() {
            return Complex64::new(f64::NAN, f64::NAN);
        }
        let (least, most) = if x.re < kept.re { (x, kept) } else { (kept, x) };
        if least.re == most.re && !least.re.is_finite() {
            // Of minus infinity the angle does not matter; of infinity the sum has one.
            return if least.re < 0.0 { least } else { (least.exp() + most.exp()).ln() };
        }
        if most.re == f64::INFINITY || least.re == f64::NEG_INFINITY {
            return most;
        }
        let small = (least - most).exp();
        // log1p: the modulus of 1 + z from |z|^2 + 2 re z, which keeps small z.
        let log = 0.5 * (small.norm_sqr() + 2.0 * small.re).ln_1p();
        most + Complex64::new(log, small.im.atan2(1.0 + small.re))
    }
    #[inline(always)]
    fn result(kept: Complex64) -> (T, i64) {
        (T::narrowed(kept), 0)
    }
}

/// Elements that are compared.
pub trait Ordered: Copy + Send + Sync + 'static {
    /// Any value.
    const ANY: Self;
    /// Whether it is NaN.
    fn missing(self) -> bool;
    /// Whether it is at least as large.
    fn reaches(self, other: Self) -> bool;
}

macro_rules! ordered {
    ($($t:ty, $any:expr, |$x:ident| $missing:expr;)*) => {$(
        impl Ordered for $t {
            const ANY: $t = $any;
            #[inline(always)]
            fn missing(self) -> bool {
                let $x = self;
                $missing
            }
            #[inline(always)]
            fn reaches(self, other: $t) -> bool {
                self >= other
            }
        }
    )*};
}
ordered! {
    f32, 0.0, |x| x.is_nan();
    f64, 0.0, |x| x.is_nan();
    f16, f16::ZERO, |x| x.is_nan();
    bf16, bf16::ZERO, |x| x.is_nan();
    i64, 0, |_x| false;
    i32, 0, |_x| false;
    i16, 0, |_x| false;
    i8, 0, |_x| false;
    u8, 0, |_x| false;
}

/// Largest (`MOST`) or smallest so far and its last place; NaN once there was one.
pub struct Extreme<T, const MOST: bool>(PhantomData<T>);

impl<T: Ordered, const MOST: bool> Fold for Extreme<T, MOST> {
    type Element = T;
    type Kept = (T, i64);
    const START: (T, i64) = (T::ANY, -1);
    #[inline(always)]
    fn push((most, place): Self::Kept, x: T, at: i64) -> Self::Kept {
        let better = if MOST { x.reaches(most) } else { most.reaches(x) };
        if place < 0 || x.missing() || (!most.missing() && better) { (x, at) } else { (most, place) }
    }
    #[inline(always)]
    fn result(kept: Self::Kept) -> (T, i64) {
        kept
    }
}

/// Adjacent elements of the operands.
pub struct Row<F: Fold> {
    input: *const F::Element,
    out: *mut F::Element,
    indices: *mut i64,
}

impl<F: Fold> Row<F> {
    /// From element `at` on.
    pub fn of(call: &Scan, at: usize) -> Row<F> {
        let indices = if call.indices.is_null() { call.indices } else { call.indices.wrapping_add(at) };
        Row { input: call.input.cast::<F::Element>().wrapping_add(at), out: call.out.cast::<F::Element>().wrapping_add(at), indices }
    }

    /// Scans `n` elements.
    ///
    /// # Safety
    /// They lie inside the operands.
    pub unsafe fn scan(&self, n: usize) {
        let mut kept = F::START;
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe {
                kept = F::push(kept, *self.input.add(i), i as i64);
                let (value, place) = F::result(kept);
                *self.out.add(i) = value;
                if !self.indices.is_null() {
                    *self.indices.add(i) = place;
                }
            }
        }
    }
}

/// Neighbouring columns of a matrix.
pub struct Columns<'a, F: Fold> {
    call: &'a Scan,
    at: usize,
    inner: usize,
    len: usize,
    fold: PhantomData<F>,
}

impl<'a, F: Fold> Columns<'a, F> {
    /// `len` columns whose first element is at `at`, in rows of `inner`.
    pub fn new(call: &'a Scan, at: usize, inner: usize, len: usize) -> Self {
        Columns { call, at, inner, len, fold: PhantomData }
    }

    /// Scans `n` rows.
    ///
    /// # Safety
    /// They lie inside the operands; there are at most [`COLUMNS`] columns.
    pub unsafe fn scan(&self, n: usize) {
        let mut kept = [F::START; COLUMNS];
        for row in 0..n {
            let place = Row::<F>::of(self.call, self.at + row * self.inner);
            for (i, kept) in kept.iter_mut().enumerate().take(self.len) {
                // SAFETY: the caller's.
                unsafe {
                    *kept = F::push(*kept, *place.input.add(i), row as i64);
                    let (value, at) = F::result(*kept);
                    *place.out.add(i) = value;
                    if !place.indices.is_null() {
                        *place.indices.add(i) = at;
                    }
                }
            }
        }
    }
}
