//! The inner loops as compiled for each instruction set, and the choice among them.

use half::{bf16, f16};

use super::direct::{self, Weighed};
use super::kernel::{self, Finish, Left};
use super::patch::{self, Line, Piece};
use super::vecmat;
use super::vector::{Packed, Vector};
use crate::isa::{self, Isa};

/// The most rows and vectors of columns that a tile has under any instruction set.
pub(crate) const MAX_ROWS: usize = 14;
pub(crate) const MAX_VECTORS: usize = 2;
/// The longest block of k under any instruction set.
pub(crate) const MAX_K_BLOCK: usize = 256;

/// Computes one tile; see [`kernel::tile`].
pub(super) type TileFn<E> = unsafe fn(usize, Left<E>, *const E, isize, *mut E, isize, usize, &Finish<E>);

/// The inner loops for elements `S` that are summed up as `E`, under one instruction set.
pub(crate) struct Table<S, E: 'static> {
    /// Numbers to a vector.
    pub(crate) lanes: usize,
    /// By vectors of columns, less one, then rows, less one.
    pub(super) tiles: &'static [&'static [TileFn<E>]; MAX_VECTORS],
    /// See [`kernel::pack`].
    pub(crate) pack: unsafe fn(*const S, isize, isize, usize, usize, *mut E, usize),
    /// See [`patch::merge_rows`].
    pub(crate) merge_rows: unsafe fn(&[Piece<E>], isize, isize, usize, usize, *mut E, usize),
    /// See [`patch::merge_square`].
    pub(crate) merge_square: unsafe fn(&[Line], &[Piece<E>], isize, usize, *mut E, usize),
    /// See [`patch::pack_pointers`].
    pub(crate) pack_pointers: unsafe fn(&[*const E], usize, *mut E, usize),
    /// See [`direct::weigh_row`].
    pub(crate) weigh_row: unsafe fn(&[Weighed<E>], isize, E, usize, *mut E),
    /// See [`direct::weigh_lines`].
    pub(crate) weigh_lines: unsafe fn(&[Weighed<E>], isize, [*const E; 2], usize, usize, *mut E, isize),
    /// See [`direct::dot_row`].
    pub(crate) dot_row: unsafe fn(*const E, usize, &[Weighed<E>], isize, *mut E),
    /// See [`direct::fold_lanes`].
    pub(crate) fold_lanes: unsafe fn(*const E, usize, *mut E),
    /// See [`direct::weigh_channels`].
    pub(crate) weigh_channels: unsafe fn(&[[*const E; 2]], *const E, usize, *mut E),
    /// See [`kernel::store_row`].
    pub(super) store_row: unsafe fn(*const E, *mut S, usize, bool),
    /// See [`vecmat::dot_lines`].
    pub(super) dot_lines: unsafe fn(*const S, isize, *const E, *mut E, usize, usize),
    /// See [`vecmat::sum_steps`].
    pub(super) sum_steps: unsafe fn(*const S, isize, *const E, *mut E, usize, usize),
    /// The longest block of k: long enough that the result is seldom gone through, and short enough that a panel
    /// of the right operand stays in the first-level cache.
    pub(super) k_block: usize,
    /// How many bytes of packed left operand stay in the second-level cache.
    pub(super) block_bytes: usize,
}

impl<S, E> Table<S, E> {
    /// Rows of a full tile.
    pub(crate) fn rows(&self) -> usize {
        self.tiles[0].len()
    }

    /// Columns of a full tile.
    pub(crate) fn columns(&self) -> usize {
        MAX_VECTORS * self.lanes
    }
}

/// Types for which there are inner loops.
pub(crate) trait Kernels: Copy + 'static {
    /// In what the sums are kept.
    type Sum: Copy + Default + PartialEq + 'static;
    /// Whether that is the type itself.
    const SUMS_ITSELF: bool;

    fn table(isa: Isa) -> &'static Table<Self, Self::Sum>;

    fn widened(self) -> Self::Sum;
    fn add(x: Self::Sum, y: Self::Sum) -> Self::Sum;
    fn mul(x: Self::Sum, y: Self::Sum) -> Self::Sum;

    /// The inner loops for this processor.
    fn table_here() -> &'static Table<Self, Self::Sum> {
        Self::table(isa::level())
    }
}

/// A module of the inner loops for an instruction set: functions with its features, and one table a type.
macro_rules! instruction_set {
    ($name:ident, $(#[$feature:meta])?, $v32:ty, $v64:ty, $k_block:expr, $block_bytes:expr, [$($rows:literal)*]) => {
        mod $name {
            use super::*;

            // SAFETY (of all blocks below): the promises of the inner function are those of the outer, and the
            // table of an instruction set is used only where the processor has it.
            $(#[$feature])?
            unsafe fn tile<V: Vector, const MR: usize, const NV: usize>(
                k: usize,
                a: Left<V::Element>,
                b: *const V::Element,
                b_row: isize,
                c: *mut V::Element,
                c_row: isize,
                columns: usize,
                finish: &Finish<V::Element>,
            ) {
                unsafe { kernel::tile::<V, MR, NV>(k, a, b, b_row, c, c_row, columns, finish) }
            }

            $(#[$feature])?
            unsafe fn pack<V: Vector, S: Packed<V>>(
                from: *const S,
                line: isize,
                step: isize,
                width: usize,
                k: usize,
                to: *mut V::Element,
                to_row: usize,
            ) {
                unsafe { kernel::pack::<V, S>(from, line, step, width, k, to, to_row) }
            }

            $(#[$feature])?
            unsafe fn merge_rows<V: Vector>(
                pieces: &[Piece<V::Element>],
                lane_step: isize,
                step: isize,
                count: usize,
                width: usize,
                to: *mut V::Element,
                to_row: usize,
            ) {
                unsafe { patch::merge_rows::<V>(pieces, lane_step, step, count, width, to, to_row) }
            }

            $(#[$feature])?
            unsafe fn merge_square<V: Vector>(
                lines: &[Line],
                pieces: &[Piece<V::Element>],
                lane_step: isize,
                steps: usize,
                to: *mut V::Element,
                to_row: usize,
            ) {
                unsafe { patch::merge_square::<V>(lines, pieces, lane_step, steps, to, to_row) }
            }

            $(#[$feature])?
            unsafe fn pack_pointers<V: Vector>(lines: &[*const V::Element], k: usize, to: *mut V::Element, to_row: usize) {
                unsafe { patch::pack_pointers::<V>(lines, k, to, to_row) }
            }

            $(#[$feature])?
            unsafe fn weigh_row<V: Vector>(rows: &[Weighed<V::Element>], step: isize, start: V::Element, width: usize, to: *mut V::Element) {
                unsafe { direct::weigh_row::<V>(rows, step, start, width, to) }
            }

            $(#[$feature])?
            unsafe fn weigh_lines<V: Vector>(
                rows: &[Weighed<V::Element>],
                step: isize,
                weights: [*const V::Element; 2],
                lines: usize,
                width: usize,
                to: *mut V::Element,
                to_line: isize,
            ) {
                unsafe { direct::weigh_lines::<V>(rows, step, weights, lines, width, to, to_line) }
            }

            $(#[$feature])?
            unsafe fn dot_row<V: Vector>(
                y: *const V::Element,
                width: usize,
                rows: &[Weighed<V::Element>],
                step: isize,
                sums: *mut V::Element,
            ) {
                unsafe { direct::dot_row::<V>(y, width, rows, step, sums) }
            }

            $(#[$feature])?
            unsafe fn fold_lanes<V: Vector>(from: *const V::Element, count: usize, to: *mut V::Element) {
                unsafe { direct::fold_lanes::<V>(from, count, to) }
            }

            $(#[$feature])?
            unsafe fn weigh_channels<V: Vector>(
                rows: &[[*const V::Element; 2]],
                start: *const V::Element,
                count: usize,
                to: *mut V::Element,
            ) {
                unsafe { direct::weigh_channels::<V>(rows, start, count, to) }
            }

            $(#[$feature])?
            unsafe fn store_row<V: Vector, S: Packed<V>>(from: *const V::Element, c: *mut S, count: usize, accumulate: bool) {
                unsafe { kernel::store_row::<V, S>(from, c, count, accumulate) }
            }

            $(#[$feature])?
            unsafe fn dot_lines<V: Vector, S: Packed<V>>(
                a: *const S,
                line: isize,
                x: *const V::Element,
                y: *mut V::Element,
                lines: usize,
                k: usize,
            ) {
                unsafe { vecmat::dot_lines::<V, S>(a, line, x, y, lines, k) }
            }

            $(#[$feature])?
            unsafe fn sum_steps<V: Vector, S: Packed<V>>(
                a: *const S,
                step: isize,
                x: *const V::Element,
                y: *mut V::Element,
                width: usize,
                k: usize,
            ) {
                unsafe { vecmat::sum_steps::<V, S>(a, step, x, y, width, k) }
            }

            static TILES_32: [&[TileFn<f32>]; MAX_VECTORS] =
                [&[$(tile::<$v32, $rows, 1>),*], &[$(tile::<$v32, $rows, 2>),*]];
            static TILES_64: [&[TileFn<f64>]; MAX_VECTORS] =
                [&[$(tile::<$v64, $rows, 1>),*], &[$(tile::<$v64, $rows, 2>),*]];

            const fn table<V: Vector, S: Packed<V>>(
                tiles: &'static [&'static [TileFn<V::Element>]; MAX_VECTORS],
            ) -> Table<S, V::Element> {
                Table {
                    lanes: V::LANES,
                    tiles,
                    pack: pack::<V, S>,
                    merge_rows: merge_rows::<V>,
                    merge_square: merge_square::<V>,
                    pack_pointers: pack_pointers::<V>,
                    weigh_row: weigh_row::<V>,
                    weigh_lines: weigh_lines::<V>,
                    dot_row: dot_row::<V>,
                    fold_lanes: fold_lanes::<V>,
                    weigh_channels: weigh_channels::<V>,
                    store_row: store_row::<V, S>,
                    dot_lines: dot_lines::<V, S>,
                    sum_steps: sum_steps::<V, S>,
                    k_block: $k_block,
                    block_bytes: $block_bytes,
                }
            }

            pub(super) static F32: Table<f32, f32> = table::<$v32, f32>(&TILES_32);
            pub(super) static F64: Table<f64, f64> = table::<$v64, f64>(&TILES_64);
            pub(super) static BF16: Table<bf16, f32> = table::<$v32, bf16>(&TILES_32);
            pub(super) static F16: Table<f16, f32> = table::<$v32, f16>(&TILES_32);
        }
    };
}

instruction_set!(portable, , super::super::vector::Portable32, super::super::vector::Portable64, 256, 128 << 10, [1 2 3 4]);

#[cfg(target_arch = "x86_64")]
instruction_set!(
    avx2,
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")],
    super::super::vector::x86::Avx2F32,
    super::super::vector::x86::Avx2F64,
    256,
    256 << 10,
    [1 2 3 4 5 6]
);

#[cfg(target_arch = "x86_64")]
instruction_set!(
    avx512,
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")],
    super::super::vector::x86::Avx512F32,
    super::super::vector::x86::Avx512F64,
    256,
    512 << 10,
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
);

macro_rules! impl_kernels {
    ($type:ty, $sum:ty, $name:ident, $same:expr, $widen:expr) => {
        impl Kernels for $type {
            type Sum = $sum;
            const SUMS_ITSELF: bool = $same;

            fn widened(self) -> $sum {
                $widen(self)
            }
            fn add(x: $sum, y: $sum) -> $sum {
                x + y
            }
            fn mul(x: $sum, y: $sum) -> $sum {
                x * y
            }

            fn table(isa: Isa) -> &'static Table<Self, Self::Sum> {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => &avx512::$name,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => &avx2::$name,
                    // Where NEON is, it is part of the target, and the arrays become its vectors.
                    _ => &portable::$name,
                }
            }
        }
    };
}

impl_kernels!(f32, f32, F32, true, std::convert::identity);
impl_kernels!(f64, f64, F64, true, std::convert::identity);
impl_kernels!(bf16, f32, BF16, false, bf16::to_f32_const);
impl_kernels!(f16, f32, F16, false, f16::to_f32_const);
