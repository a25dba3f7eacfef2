//! Folding a tile of values into one partial result, and partial results into each other.
//!
//! A tile is folded into [`LANES`] lanes, element `i` into lane `i % LANES`, and the lanes by a fixed tree. So what
//! a tile gives depends on its values and length alone.

use crate::exec::step::Class;
use crate::isa::{self, Isa};
use flambeau_engine::backend::Combine;
use num_complex::Complex;

/// Lanes of partial results in a tile.
pub const LANES: usize = 64;

/// A partial result: values, and what else belongs to them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Partial {
    /// The value (or a mean), as its class holds it.
    pub value: [u64; 2],
    /// The place of an extremum, or the sum of squared deviations of moments, as their class holds it.
    pub second: u64,
    /// The number of elements.
    pub count: u64,
}

impl Partial {
    /// A partial result of a value alone.
    pub fn of<T: Copy>(value: T) -> Partial {
        const { assert!(size_of::<T>() <= 16 && align_of::<T>() <= 16) };
        let mut partial = Partial { value: [0; 2], second: 0, count: 0 };
        // SAFETY: the value fits.
        unsafe { partial.value.as_mut_ptr().cast::<T>().write(value) };
        partial
    }

    /// The result as one column.
    pub fn columns(&mut self) -> Columns {
        Columns { value: self.value.as_mut_ptr().cast(), second: (&raw mut self.second).cast(), count: self.count as usize }
    }

    /// The value.
    pub fn get<T: Copy>(&self) -> T {
        const { assert!(size_of::<T>() <= 16 && align_of::<T>() <= 16) };
        // SAFETY: any bits are a number, as `T` is one wherever this is called.
        unsafe { self.value.as_ptr().cast::<T>().read() }
    }
}

/// Folds `n` values (at least one).
pub type FoldFn = unsafe fn(*const u8, usize) -> Partial;
/// Folds rows of `n` values (at least one), so many bytes apart, each into a column's result: places count from the row's start.
pub type EachFn = unsafe fn(*const u8, isize, usize, usize, &Columns);
/// Puts an earlier and a later partial result together.
pub type MergeFn = fn(&Partial, &Partial) -> Partial;

/// Partial results of adjacent columns.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Values (or means), as their class holds them.
    pub value: *mut u8,
    /// Places of extrema (`i64`), or sums of squared deviations (like the values).
    pub second: *mut u8,
    /// How many elements went into each.
    pub count: usize,
}

/// Folds rows of `n` values, column by column: where results go, the rows (at least one), their numbers.
pub type RowsFn = unsafe fn(&Columns, &[*const u8], &[i64], usize);
/// Puts earlier and later results of `n` columns together, where the earlier ones are.
pub type MergeColumnsFn = unsafe fn(&Columns, &Columns, usize);

/// How values of a class are folded.
#[derive(Clone, Copy)]
pub struct Folder {
    /// Rows into results of their columns.
    pub rows: RowsFn,
    /// Columns' results into others.
    pub merge_columns: MergeColumnsFn,
    /// A tile into a partial result; places count from its start.
    pub fold: FoldFn,
    /// Many short tiles, each into a partial result.
    pub each: EachFn,
    /// Two partial results into one.
    pub merge: MergeFn,
    /// What an empty reduction gives.
    pub identity: Partial,
}

/// An associative combination with an identity.
pub trait Monoid {
    /// The type of values.
    type T: Copy;
    /// Changes nothing.
    const IDENTITY: Self::T;
    /// Puts two values together.
    fn combine(a: Self::T, b: Self::T) -> Self::T;
}

/// Largest or smallest, with its place.
pub trait Extremum {
    /// The type of values.
    type T: Copy;
    /// Whether `a` takes the place of `b`, which was found before.
    fn beats(a: Self::T, b: Self::T) -> bool;
    /// Whether they count as the same.
    fn ties(a: Self::T, b: Self::T) -> bool;
    /// The one that is kept.
    #[inline(always)]
    fn better(a: Self::T, b: Self::T) -> Self::T {
        if Self::beats(b, a) { b } else { a }
    }
}

/// Few values need fewer lanes for the same result.
#[inline(always)]
unsafe fn lanes<M: Monoid>(values: *const M::T, n: usize) -> M::T {
    // SAFETY: the caller's.
    unsafe { if n <= 16 { lanes_of::<M, 16>(values, n) } else { lanes_of::<M, LANES>(values, n) } }
}

#[inline(always)]
unsafe fn lanes_of<M: Monoid, const LANES: usize>(values: *const M::T, n: usize) -> M::T {
    let mut lanes = [M::IDENTITY; LANES];
    let mut at = 0;
    // SAFETY: `n` values are readable, as the caller promises.
    unsafe {
        while at + LANES <= n {
            let block = values.add(at).cast::<[M::T; LANES]>().read_unaligned();
            for i in 0..LANES {
                lanes[i] = M::combine(lanes[i], block[i]);
            }
            at += LANES;
        }
        for (i, lane) in lanes.iter_mut().enumerate().take(n - at) {
            *lane = M::combine(*lane, *values.add(at + i));
        }
    }
    let mut width = LANES / 2;
    // Lanes that nothing went into.
    while width >= n && width > 0 {
        width /= 2;
    }
    while width > 0 {
        for i in 0..width {
            lanes[i] = M::combine(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
unsafe fn fold_monoid<M: Monoid>(values: *const u8, n: usize) -> Partial {
    // SAFETY: the caller's.
    Partial::of(unsafe { lanes::<M>(values.cast(), n) })
}

/// Folds each of many rows: values of type `T`, and beside them what `second` makes of a partial result.
#[inline(always)]
unsafe fn fold_each<T: Copy, S: Copy>(
    values: *const u8,
    step: isize,
    rows: usize,
    out: &Columns,
    fold: impl Fn(*const u8) -> Partial,
    second: Option<impl Fn(&Partial) -> S>,
) {
    for i in 0..rows {
        let partial = fold(values.wrapping_offset(i as isize * step));
        // SAFETY: the columns have room for as many, as the caller promises.
        unsafe {
            out.value.cast::<T>().add(i).write(partial.get());
            if let Some(second) = &second {
                out.second.cast::<S>().add(i).write(second(&partial));
            }
        }
    }
}

fn merge_monoid<M: Monoid>(a: &Partial, b: &Partial) -> Partial {
    Partial::of(M::combine(a.get(), b.get()))
}

#[inline(always)]
unsafe fn fold_extremum<E: Extremum>(values: *const u8, n: usize) -> Partial {
    // SAFETY: the caller's: at least one value.
    let values = unsafe { std::slice::from_raw_parts(values.cast::<E::T>(), n) };
    let mut lanes = [values[0]; LANES];
    let mut blocks = values.chunks_exact(LANES);
    for block in blocks.by_ref() {
        for i in 0..LANES {
            lanes[i] = E::better(lanes[i], block[i]);
        }
    }
    let rest = blocks.remainder();
    let best = lanes.iter().chain(rest).fold(values[0], |a, &b| E::better(a, b));
    let mut partial = Partial::of(best);
    partial.second = values.iter().position(|&x| E::ties(x, best)).unwrap_or(0) as u64;
    partial
}

fn merge_extremum<E: Extremum>(a: &Partial, b: &Partial) -> Partial {
    let (x, y) = (a.get::<E::T>(), b.get::<E::T>());
    // Places tell ties apart, so that the order of the walk does not.
    if E::beats(y, x) || E::ties(x, y) && (b.second as i64) < a.second as i64 { *b } else { *a }
}

/// Columns from `at` on, in blocks of `N` as long as there are; gives the first column that is left.
#[inline(always)]
unsafe fn row_blocks<M: Monoid, const N: usize>(out: *mut M::T, rows: &[*const u8], mut at: usize, n: usize) -> usize {
    // SAFETY: rows and results hold `n` values, as the caller promises; a block of each row is read before the result's is written.
    unsafe {
        while at + N <= n {
            let mut lanes = rows[0].cast::<M::T>().add(at).cast::<[M::T; N]>().read_unaligned();
            for row in &rows[1..] {
                let block = row.cast::<M::T>().add(at).cast::<[M::T; N]>().read_unaligned();
                for i in 0..N {
                    lanes[i] = M::combine(lanes[i], block[i]);
                }
            }
            out.add(at).cast::<[M::T; N]>().write_unaligned(lanes);
            at += N;
        }
    }
    at
}

#[inline(always)]
unsafe fn rows_monoid<M: Monoid>(out: &Columns, rows: &[*const u8], n: usize) {
    let out = out.value.cast::<M::T>();
    // SAFETY: the caller's.
    unsafe {
        let at = row_blocks::<M, LANES>(out, rows, 0, n);
        let at = row_blocks::<M, 8>(out, rows, at, n);
        row_blocks::<M, 1>(out, rows, at, n);
    }
}

#[inline(always)]
unsafe fn rows_extremum<E: Extremum>(out: &Columns, rows: &[*const u8], numbers: &[i64], n: usize) {
    // SAFETY: the caller's: results and rows hold `n` values, apart from each other.
    unsafe {
        let values = std::slice::from_raw_parts_mut(out.value.cast::<E::T>(), n);
        let places = std::slice::from_raw_parts_mut(out.second.cast::<i64>(), n);
        values.copy_from_slice(std::slice::from_raw_parts(rows[0].cast(), n));
        places.fill(numbers[0]);
        for (row, &number) in rows.iter().zip(numbers).skip(1) {
            let row = std::slice::from_raw_parts(row.cast::<E::T>(), n);
            for i in 0..n {
                let wins = E::beats(row[i], values[i]) | (E::ties(row[i], values[i]) & (number < places[i]));
                values[i] = if wins { row[i] } else { values[i] };
                places[i] = if wins { number } else { places[i] };
            }
        }
    }
}

#[inline(always)]
unsafe fn merge_columns_extremum<E: Extremum>(a: &Columns, b: &Columns, n: usize) {
    // SAFETY: the caller's: all hold `n` values, apart from each other.
    unsafe {
        let values = std::slice::from_raw_parts_mut(a.value.cast::<E::T>(), n);
        let places = std::slice::from_raw_parts_mut(a.second.cast::<i64>(), n);
        let others = std::slice::from_raw_parts(b.value.cast::<E::T>(), n);
        let numbers = std::slice::from_raw_parts(b.second.cast::<i64>(), n);
        for i in 0..n {
            let wins = E::beats(others[i], values[i]) | (E::ties(others[i], values[i]) & (numbers[i] < places[i]));
            values[i] = if wins { others[i] } else { values[i] };
            places[i] = if wins { numbers[i] } else { places[i] };
        }
    }
}

macro_rules! monoids {
    ($($name:ident<$t:ty>: $identity:expr, |$a:ident, $b:ident| $e:expr;)*) => {$(
        struct $name;
        impl Monoid for $name {
            type T = $t;
            const IDENTITY: $t = $identity;
            #[inline(always)]
            fn combine($a: $t, $b: $t) -> $t {
                $e
            }
        }
    )*};
}

type C32 = Complex<f32>;
type C64 = Complex<f64>;

monoids! {
    SumF32<f32>: 0.0, |a, b| a + b;
    SumF64<f64>: 0.0, |a, b| a + b;
    SumI64<i64>: 0, |a, b| a.wrapping_add(b);
    SumC32<C32>: Complex::new(0.0, 0.0), |a, b| Complex::new(a.re + b.re, a.im + b.im);
    SumC64<C64>: Complex::new(0.0, 0.0), |a, b| Complex::new(a.re + b.re, a.im + b.im);
    ProdF32<f32>: 1.0, |a, b| a * b;
    ProdF64<f64>: 1.0, |a, b| a * b;
    ProdI64<i64>: 1, |a, b| a.wrapping_mul(b);
    ProdC32<C32>: Complex::new(1.0, 0.0), |a, b| Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    ProdC64<C64>: Complex::new(1.0, 0.0), |a, b| Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    MaxF32<f32>: f32::NEG_INFINITY, |a, b| if (a > b) | a.is_nan() { a } else { b };
    MaxF64<f64>: f64::NEG_INFINITY, |a, b| if (a > b) | a.is_nan() { a } else { b };
    MaxI64<i64>: i64::MIN, |a, b| if a > b { a } else { b };
    MaxI32<i32>: i32::MIN, |a, b| if a > b { a } else { b };
    MinI32<i32>: i32::MAX, |a, b| if a < b { a } else { b };
    MaxU64<u64>: 0, |a, b| if a > b { a } else { b };
    MinF32<f32>: f32::INFINITY, |a, b| if (a < b) | a.is_nan() { a } else { b };
    MinF64<f64>: f64::INFINITY, |a, b| if (a < b) | a.is_nan() { a } else { b };
    MinI64<i64>: i64::MAX, |a, b| if a < b { a } else { b };
    MinU64<u64>: u64::MAX, |a, b| if a < b { a } else { b };
    Or<u8>: 0, |a, b| a | b;
    And<u8>: 1, |a, b| a & b;
}

macro_rules! extrema {
    ($($name:ident<$t:ty>: |$a:ident, $b:ident| $beats:expr, $ties:expr;)*) => {$(
        struct $name;
        impl Extremum for $name {
            type T = $t;
            #[inline(always)]
            fn beats($a: $t, $b: $t) -> bool {
                $beats
            }
            #[inline(always)]
            fn ties($a: $t, $b: $t) -> bool {
                $ties
            }
        }
    )*};
}

extrema! {
    ArgMaxF32<f32>: |a, b| (a > b) | (a.is_nan() & !b.is_nan()), (a == b) | (a.is_nan() & b.is_nan());
    ArgMaxF64<f64>: |a, b| (a > b) | (a.is_nan() & !b.is_nan()), (a == b) | (a.is_nan() & b.is_nan());
    ArgMaxI64<i64>: |a, b| a > b, a == b;
    ArgMaxI32<i32>: |a, b| a > b, a == b;
    ArgMinI32<i32>: |a, b| a < b, a == b;
    ArgMaxU64<u64>: |a, b| a > b, a == b;
    ArgMaxU8<u8>: |a, b| a > b, a == b;
    ArgMinF32<f32>: |a, b| (a < b) | (a.is_nan() & !b.is_nan()), (a == b) | (a.is_nan() & b.is_nan());
    ArgMinF64<f64>: |a, b| (a < b) | (a.is_nan() & !b.is_nan()), (a == b) | (a.is_nan() & b.is_nan());
    ArgMinI64<i64>: |a, b| a < b, a == b;
    ArgMinU64<u64>: |a, b| a < b, a == b;
    ArgMinU8<u8>: |a, b| a < b, a == b;
}

macro_rules! moments {
    ($fold:ident, $merge:ident, $t:ident, $sum:ident, $deviation:ident, $rows:ident, $merge_columns:ident) => {
        /// Mean and squared deviations of a tile in two passes.
        #[inline(always)]
        unsafe fn $fold(values: *const u8, n: usize) -> Partial {
            // SAFETY: the caller's.
            let mean = unsafe { lanes::<$sum>(values.cast(), n) } / n as $t;
            let mut lanes = [0.0; LANES];
            // SAFETY: the caller's.
            let values = unsafe { std::slice::from_raw_parts(values.cast::<$t>(), n) };
            let mut blocks = values.chunks_exact(LANES);
            for block in blocks.by_ref() {
                for i in 0..LANES {
                    let d = block[i] - mean;
                    lanes[i] += d * d;
                }
            }
            for (lane, &x) in lanes.iter_mut().zip(blocks.remainder()) {
                let d = x - mean;
                *lane += d * d;
            }
            let mut width = LANES / 2;
            while width > 0 {
                for i in 0..width {
                    lanes[i] += lanes[i + width];
                }
                width /= 2;
            }
            Partial { second: lanes[0].to_bits() as u64, count: n as u64, ..Partial::of(mean) }
        }

        /// Chan, Golub and LeVeque (1979): moments of two parts put together.
        fn $merge(a: &Partial, b: &Partial) -> Partial {
            let (x, y) = (a.get::<$t>(), b.get::<$t>());
            let (n, m) = (a.count as $t, b.count as $t);
            let share = m / (n + m);
            let delta = y - x;
            let spread = $deviation(a) + $deviation(b) + delta * delta * n * share;
            Partial { second: spread.to_bits() as u64, count: a.count + b.count, ..Partial::of(x + delta * share) }
        }

        /// Mean and squared deviations of each column in two passes over a few rows.
        #[inline(always)]
        unsafe fn $rows(out: &Columns, rows: &[*const u8], n: usize) {
            // SAFETY: the caller's: results and rows hold `n` values, apart from each other.
            unsafe {
                rows_monoid::<$sum>(out, rows, n);
                let means = std::slice::from_raw_parts_mut(out.value.cast::<$t>(), n);
                let spreads = std::slice::from_raw_parts_mut(out.second.cast::<$t>(), n);
                means.iter_mut().for_each(|x| *x /= rows.len() as $t);
                spreads.fill(0.0);
                for row in rows {
                    let row = std::slice::from_raw_parts(row.cast::<$t>(), n);
                    for i in 0..n {
                        let d = row[i] - means[i];
                        spreads[i] += d * d;
                    }
                }
            }
        }

        /// As for single results, column by column.
        #[inline(always)]
        unsafe fn $merge_columns(a: &Columns, b: &Columns, n: usize) {
            let (count, other) = (a.count as $t, b.count as $t);
            let share = other / (count + other);
            // SAFETY: the caller's: all hold `n` values, apart from each other.
            unsafe {
                let means = std::slice::from_raw_parts_mut(a.value.cast::<$t>(), n);
                let spreads = std::slice::from_raw_parts_mut(a.second.cast::<$t>(), n);
                let means_b = std::slice::from_raw_parts(b.value.cast::<$t>(), n);
                let spreads_b = std::slice::from_raw_parts(b.second.cast::<$t>(), n);
                for i in 0..n {
                    let delta = means_b[i] - means[i];
                    spreads[i] = spreads[i] + spreads_b[i] + delta * delta * count * share;
                    means[i] += delta * share;
                }
            }
        }

        /// The sum of squared deviations in a partial result.
        fn $deviation(p: &Partial) -> $t {
            $t::from_bits(p.second as _)
        }
    };
}
moments!(moments_f32, merge_moments_f32, f32, SumF32, spread_f32, rows_moments_f32, merge_columns_f32);
moments!(moments_f64, merge_moments_f64, f64, SumF64, spread_f64, rows_moments_f64, merge_columns_f64);

/// The folds as compiled for one instruction set.
///
/// # Safety
/// All as for the function that it is compiled from; the processor has the instructions.
trait Level {
    unsafe fn monoid<M: Monoid>(values: *const u8, n: usize) -> Partial;
    unsafe fn extremum<E: Extremum>(values: *const u8, n: usize) -> Partial;
    unsafe fn moments_32(values: *const u8, n: usize) -> Partial;
    unsafe fn moments_64(values: *const u8, n: usize) -> Partial;
    unsafe fn monoid_each<M: Monoid>(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns);
    unsafe fn monoid_rows<M: Monoid>(out: &Columns, rows: &[*const u8], _: &[i64], n: usize);
    unsafe fn monoid_columns<M: Monoid>(a: &Columns, b: &Columns, n: usize);
    unsafe fn extremum_each<E: Extremum>(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns);
    unsafe fn extremum_rows<E: Extremum>(out: &Columns, rows: &[*const u8], numbers: &[i64], n: usize);
    unsafe fn extremum_columns<E: Extremum>(a: &Columns, b: &Columns, n: usize);
    unsafe fn moments_32_each(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns);
    unsafe fn moments_32_rows(out: &Columns, rows: &[*const u8], _: &[i64], n: usize);
    unsafe fn moments_32_columns(a: &Columns, b: &Columns, n: usize);
    unsafe fn moments_64_each(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns);
    unsafe fn moments_64_rows(out: &Columns, rows: &[*const u8], _: &[i64], n: usize);
    unsafe fn moments_64_columns(a: &Columns, b: &Columns, n: usize);
}

macro_rules! levels {
    ($($name:ident $(, $feature:literal)?;)*) => {$(
        struct $name;
        // SAFETY (of all blocks below): the caller's.
        impl Level for $name {
            $(#[target_feature(enable = $feature)])?
            unsafe fn monoid<M: Monoid>(values: *const u8, n: usize) -> Partial {
                unsafe { fold_monoid::<M>(values, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn extremum<E: Extremum>(values: *const u8, n: usize) -> Partial {
                unsafe { fold_extremum::<E>(values, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_32(values: *const u8, n: usize) -> Partial {
                unsafe { moments_f32(values, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_64(values: *const u8, n: usize) -> Partial {
                unsafe { moments_f64(values, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn monoid_each<M: Monoid>(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns) {
                unsafe { fold_each::<M::T, u64>(values, step, rows, out, |v| fold_monoid::<M>(v, n), None::<fn(&Partial) -> u64>) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn monoid_rows<M: Monoid>(out: &Columns, rows: &[*const u8], _: &[i64], n: usize) {
                unsafe { rows_monoid::<M>(out, rows, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn monoid_columns<M: Monoid>(a: &Columns, b: &Columns, n: usize) {
                unsafe { rows_monoid::<M>(a, &[a.value.cast_const(), b.value.cast_const()], n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn extremum_each<E: Extremum>(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns) {
                unsafe { fold_each::<E::T, u64>(values, step, rows, out, |v| fold_extremum::<E>(v, n), Some(|p: &Partial| p.second)) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn extremum_rows<E: Extremum>(out: &Columns, rows: &[*const u8], numbers: &[i64], n: usize) {
                unsafe { rows_extremum::<E>(out, rows, numbers, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn extremum_columns<E: Extremum>(a: &Columns, b: &Columns, n: usize) {
                unsafe { merge_columns_extremum::<E>(a, b, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_32_each(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns) {
                unsafe { fold_each::<f32, u32>(values, step, rows, out, |v| moments_f32(v, n), Some(|p: &Partial| p.second as u32)) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_32_rows(out: &Columns, rows: &[*const u8], _: &[i64], n: usize) {
                unsafe { rows_moments_f32(out, rows, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_32_columns(a: &Columns, b: &Columns, n: usize) {
                unsafe { merge_columns_f32(a, b, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_64_each(values: *const u8, step: isize, rows: usize, n: usize, out: &Columns) {
                unsafe { fold_each::<f64, u64>(values, step, rows, out, |v| moments_f64(v, n), Some(|p: &Partial| p.second)) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_64_rows(out: &Columns, rows: &[*const u8], _: &[i64], n: usize) {
                unsafe { rows_moments_f64(out, rows, n) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn moments_64_columns(a: &Columns, b: &Columns, n: usize) {
                unsafe { merge_columns_f64(a, b, n) }
            }
        }
    )*};
}

levels! { Portable; }
#[cfg(target_arch = "x86_64")]
levels! {
    Avx2, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt";
    Avx512, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl";
}

fn monoid<L: Level, M: Monoid>() -> Folder {
    Folder {
        rows: L::monoid_rows::<M>,
        merge_columns: L::monoid_columns::<M>,
        fold: L::monoid::<M>,
        each: L::monoid_each::<M>,
        merge: merge_monoid::<M>,
        identity: Partial::of(M::IDENTITY),
    }
}

fn extremum<L: Level, E: Extremum>() -> Folder {
    // Extrema of nothing are refused by the engine.
    Folder {
        rows: L::extremum_rows::<E>,
        merge_columns: L::extremum_columns::<E>,
        fold: L::extremum::<E>,
        each: L::extremum_each::<E>,
        merge: merge_extremum::<E>,
        identity: Partial::of(0u64),
    }
}

fn folder_for<L: Level>(combine: Combine, class: Class) -> Option<Folder> {
    use Class as K;
    use Combine::*;
    Some(match (combine, class) {
        (Sum, K::F32) => monoid::<L, SumF32>(),
        (Sum, K::F64) => monoid::<L, SumF64>(),
        (Sum, K::I64 | K::U64) => monoid::<L, SumI64>(),
        (Sum, K::C64) => monoid::<L, SumC32>(),
        (Sum, K::C128) => monoid::<L, SumC64>(),
        (Prod, K::F32) => monoid::<L, ProdF32>(),
        (Prod, K::F64) => monoid::<L, ProdF64>(),
        (Prod, K::I64 | K::U64) => monoid::<L, ProdI64>(),
        (Prod, K::C64) => monoid::<L, ProdC32>(),
        (Prod, K::C128) => monoid::<L, ProdC64>(),
        (Max, K::F32) => monoid::<L, MaxF32>(),
        (Max, K::F64) => monoid::<L, MaxF64>(),
        (Max, K::I64) => monoid::<L, MaxI64>(),
        (Max, K::I32) => monoid::<L, MaxI32>(),
        (Min, K::I32) => monoid::<L, MinI32>(),
        (Max, K::U64) => monoid::<L, MaxU64>(),
        (Min, K::F32) => monoid::<L, MinF32>(),
        (Min, K::F64) => monoid::<L, MinF64>(),
        (Min, K::I64) => monoid::<L, MinI64>(),
        (Min, K::U64) => monoid::<L, MinU64>(),
        (Any, K::Bool) | (Max, K::Bool) | (Sum, K::Bool) => monoid::<L, Or>(),
        (All, K::Bool) | (Min, K::Bool) | (Prod, K::Bool) => monoid::<L, And>(),
        (ArgMax, K::F32) => extremum::<L, ArgMaxF32>(),
        (ArgMax, K::F64) => extremum::<L, ArgMaxF64>(),
        (ArgMax, K::I64) => extremum::<L, ArgMaxI64>(),
        (ArgMax, K::I32) => extremum::<L, ArgMaxI32>(),
        (ArgMin, K::I32) => extremum::<L, ArgMinI32>(),
        (ArgMax, K::U64) => extremum::<L, ArgMaxU64>(),
        (ArgMax, K::Bool) => extremum::<L, ArgMaxU8>(),
        (ArgMin, K::F32) => extremum::<L, ArgMinF32>(),
        (ArgMin, K::F64) => extremum::<L, ArgMinF64>(),
        (ArgMin, K::I64) => extremum::<L, ArgMinI64>(),
        (ArgMin, K::U64) => extremum::<L, ArgMinU64>(),
        (ArgMin, K::Bool) => extremum::<L, ArgMinU8>(),
        (Moments, K::F32) => Folder {
            rows: L::moments_32_rows,
            merge_columns: L::moments_32_columns,
            fold: L::moments_32,
            each: L::moments_32_each,
            merge: merge_moments_f32,
            identity: Partial::of(0.0f32),
        },
        (Moments, K::F64) => Folder {
            rows: L::moments_64_rows,
            merge_columns: L::moments_64_columns,
            fold: L::moments_64,
            each: L::moments_64_each,
            merge: merge_moments_f64,
            identity: Partial::of(0.0f64),
        },
        _ => return None,
    })
}

/// How values of a class are combined; none where that has no meaning.
pub fn folder(combine: Combine, class: Class) -> Option<Folder> {
    match isa::level() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => folder_for::<Avx512>(combine, class),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => folder_for::<Avx2>(combine, class),
        _ => folder_for::<Portable>(combine, class),
    }
}
