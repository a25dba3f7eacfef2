//! Windows of images as columns, and columns added up to images.

use super::real::{Real, Shared};
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Result, bf16, f16};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::Columns;
use std::ops::Range;

/// What adds up, and in what.
trait Pixel: Copy + Send + Sync + 'static {
    type Sum: Copy;
    const ZERO: Self::Sum;
    const NOTHING: Self;
    fn add(self, to: Self::Sum) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! pixel {
    ($($t:ty, $sum:ty, $zero:expr, $nothing:expr, |$x:ident, $s:ident| $add:expr, |$y:ident| $narrow:expr;)*) => {$(
        impl Pixel for $t {
            type Sum = $sum;
            const ZERO: $sum = $zero;
            const NOTHING: $t = $nothing;
            #[inline(always)]
            fn add(self, $s: $sum) -> $sum {
                let $x = self;
                $add
            }
            #[inline(always)]
            fn narrow($y: $sum) -> $t {
                $narrow
            }
        }
    )*};
}

pixel! {
    f32, f32, 0.0, 0.0, |x, s| s + x, |y| y;
    f64, f64, 0.0, 0.0, |x, s| s + x, |y| y;
    f16, f32, 0.0, f16::ZERO, |x, s| s + Real::widen(x), |y| Real::narrow(y);
    bf16, f32, 0.0, bf16::ZERO, |x, s| s + Real::widen(x), |y| Real::narrow(y);
    [f32; 2], [f32; 2], [0.0; 2], [0.0; 2], |x, s| [s[0] + x[0], s[1] + x[1]], |y| y;
    [f64; 2], [f64; 2], [0.0; 2], [0.0; 2], |x, s| [s[0] + x[0], s[1] + x[1]], |y| y;
    bool, bool, false, false, |x, s| s | x, |y| y;
    u8, u8, 0, 0, |x, s| s.wrapping_add(x), |y| y;
    i8, i8, 0, 0, |x, s| s.wrapping_add(x), |y| y;
    i16, i16, 0, 0, |x, s| s.wrapping_add(x), |y| y;
    i32, i32, 0, 0, |x, s| s.wrapping_add(x), |y| y;
    i64, i64, 0, 0, |x, s| s.wrapping_add(x), |y| y;
}

/// See [`Columns`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn run(call: &Columns) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::F32 => planes::<f32>(call),
            DType::F64 => planes::<f64>(call),
            DType::F16 => planes::<f16>(call),
            DType::BF16 => planes::<bf16>(call),
            DType::C64 => planes::<[f32; 2]>(call),
            DType::C128 => planes::<[f64; 2]>(call),
            DType::Bool => planes::<bool>(call),
            DType::U8 => planes::<u8>(call),
            DType::I8 => planes::<i8>(call),
            DType::I16 => planes::<i16>(call),
            DType::I32 => planes::<i32>(call),
            DType::I64 => planes::<i64>(call),
            other => return Err(lacking(if call.back { "col2im" } else { "im2col" }, other, DeviceKind::Cpu)),
        }
    }
    Ok(())
}

unsafe fn planes<P: Pixel>(call: &Columns) {
    let area = call.image[0] * call.image[1];
    let column = call.kernel[0] * call.kernel[1] * call.count[0] * call.count[1];
    let shared = Shared(*call);
    parallel_for(call.planes, ((32 << 10) / column.max(1)).max(1), &|range| {
        let call = &{ &shared }.0;
        let mut sums = vec![P::ZERO; if call.back { area } else { 0 }];
        for plane in range {
            // SAFETY: the planes are the call's, and each is one index.
            unsafe {
                let pixels = call.pixels.cast::<P>().add(plane * area);
                let columns = call.columns.cast::<P>().add(plane * column);
                if call.back {
                    sums.fill(P::ZERO);
                    each_row(call, |row, image, there, step| {
                        let from = columns.add(row);
                        for i in there {
                            let at = (image + (i * step) as isize) as usize;
                            sums[at] = (*from.add(i)).add(sums[at]);
                        }
                    });
                    for (i, &sum) in sums.iter().enumerate() {
                        *pixels.add(i) = P::narrow(sum);
                    }
                } else {
                    each_row(call, |row, image, there, step| gather_row(pixels, columns.add(row), call.count[1], image, there, step));
                }
            }
        }
    });
}

/// A row of windows' elements: those outside of the image are zeros.
unsafe fn gather_row<P: Pixel>(pixels: *const P, to: *mut P, width: usize, image: isize, there: Range<usize>, step: usize) {
    // SAFETY: the caller's.
    unsafe {
        for i in (0..there.start).chain(there.end..width) {
            *to.add(i) = P::NOTHING;
        }
        let from = pixels.wrapping_offset(image);
        if step == 1 {
            return std::ptr::copy_nonoverlapping(from.wrapping_add(there.start), to.add(there.start), there.len());
        }
        for i in there {
            *to.add(i) = *from.wrapping_add(i * step);
        }
    }
}

/// Calls `f` for each row of a plane's columns: its first number, the image's element for the first window (which may lie
/// outside), the windows for which it lies inside, and the elements from window to window.
fn each_row(call: &Columns, mut f: impl FnMut(usize, isize, Range<usize>, usize)) {
    let ([kh, kw], [rows, width]) = (call.kernel, call.count);
    let inside = |d: usize, k: usize| -> (isize, Range<usize>) {
        let first = (k * call.dilation[d]) as isize - call.padding[d] as isize;
        let stride = call.stride[d] as isize;
        let start = if first < 0 { (-first + stride - 1) / stride } else { 0 };
        let end = if first >= call.image[d] as isize { 0 } else { (call.image[d] as isize - 1 - first) / stride + 1 };
        let end = end.clamp(0, call.count[d] as isize);
        (first, start.min(end) as usize..end as usize)
    };
    for i in 0..kh {
        let (top, down) = inside(0, i);
        for j in 0..kw {
            let (left, across) = inside(1, j);
            for y in 0..rows {
                let row = ((i * kw + j) * rows + y) * width;
                let there = if down.contains(&y) { across.clone() } else { 0..0 };
                let image = (top + (y * call.stride[0]) as isize) * call.image[1] as isize + left;
                f(row, image, there, call.stride[1]);
            }
        }
    }
}
