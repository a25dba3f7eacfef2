//! Dense linear algebra on stacks of matrices, by the crate `flambeau-dense`: a matrix to a thread.

use crate::nn::real::Shared;
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_dense::{Dense, View};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::transforms::{Factor, Factorize, TriangularSolve};
use num_complex::{Complex, Complex32, Complex64};

macro_rules! by_number {
    ($op:expr, $dtype:expr, $f:ident($call:expr)) => {
        // SAFETY: the caller's.
        unsafe {
            match $dtype {
                DType::F32 => $f::<f32>($call),
                DType::F64 => $f::<f64>($call),
                DType::C64 => $f::<Complex32>($call),
                DType::C128 => $f::<Complex64>($call),
                other => return Err(lacking($op, other, DeviceKind::Cpu)),
            }
        }
    };
}

/// See [`Factorize`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn factorize(call: &Factorize) -> Result<()> {
    by_number!("linalg", call.dtype, each(call));
    Ok(())
}

/// Part `i` of an operand that has `len` elements for each matrix.
unsafe fn part<'a, T>(ptr: *mut u8, i: usize, len: usize) -> &'a mut [T] {
    if ptr.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: the caller's: so many elements lie there, and nobody else uses them.
    unsafe { std::slice::from_raw_parts_mut(ptr.cast::<T>().add(i * len), len) }
}

unsafe fn each<T: Dense>(call: &Factorize) {
    let shared = Shared(*call);
    let grain = (32 * 1024 / (call.m * call.n * call.m.min(call.n)).max(1)).max(1);
    parallel_for(call.batch, grain, &|range| {
        let call = &{ &shared }.0;
        for i in range {
            // SAFETY: the caller's; each matrix has its own parts of the operands.
            let info = unsafe { one::<T>(call, i) };
            if !call.info.is_null() {
                // SAFETY: as above.
                unsafe { *call.info.add(i) = info };
            }
        }
    });
}

/// Factorises matrix `i`; gives what went wrong.
unsafe fn one<T: Dense>(call: &Factorize, i: usize) -> i32 {
    let (m, n, k) = (call.m, call.n, call.m.min(call.n));
    let [left, right] = call.columns;
    // SAFETY: the caller's: operands have the sizes that `Factor` says.
    unsafe {
        let a = part::<T>(call.a, i, m * n);
        match call.factor {
            Factor::Cholesky => T::cholesky(a, n),
            Factor::Lu => T::lu(a, m, n, part::<i32>(call.pivots.cast(), i, k)),
            Factor::Qr => {
                T::qr(a, m, n, part::<T>(call.values, i, k));
                0
            }
            Factor::Householder => {
                T::householder(a, m, n, part::<T>(call.values, i, left));
                0
            }
            Factor::Ldl => T::ldl(a, n, part::<i32>(call.pivots.cast(), i, n), left == 1),
            Factor::LdlSolve => {
                T::ldl_solve(a, n, part::<i32>(call.pivots.cast(), i, n), left == 1, part::<T>(call.right, i, n * right));
                0
            }
            Factor::Svd => {
                let values = part::<T::Real>(call.values, i, k);
                T::svd(a, [m, n], [left, right], values, part(call.left, i, m * left), part(call.right, i, n * right))
            }
            Factor::Eigh => T::eigh(a, n, left > 0, part::<T::Real>(call.values, i, n)),
            Factor::Eig => {
                let values = part::<Complex<T::Real>>(call.values, i, n);
                T::eig(a, n, values, part::<Complex<T::Real>>(call.left, i, n * left))
            }
        }
    }
}

/// See [`TriangularSolve`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn solve_triangular(call: &TriangularSolve) -> Result<()> {
    by_number!("solve_triangular", call.dtype, solve_each(call));
    Ok(())
}

unsafe fn solve_each<T: Dense>(call: &TriangularSolve) {
    let shared = Shared(*call);
    let grain = (32 * 1024 / (call.n * call.n * call.columns).max(1)).max(1);
    parallel_for(call.batch, grain, &|range| {
        let call = &{ &shared }.0;
        for i in range {
            let a = View {
                ptr: call.a.cast::<T>().wrapping_offset(i as isize * call.a_strides[0]),
                rows: call.n,
                columns: call.n,
                row_stride: call.a_strides[1],
                column_stride: call.a_strides[2],
            };
            let b = View {
                ptr: call.b.cast::<T>().wrapping_offset(i as isize * call.b_strides[0]),
                rows: call.n,
                columns: call.columns,
                row_stride: call.b_strides[1],
                column_stride: call.b_strides[2],
            };
            // SAFETY: the caller's; right sides do not overlap.
            unsafe { T::solve_triangular(a, b, call.upper, call.unit) };
        }
    });
}
