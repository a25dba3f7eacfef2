//! Convolutions element by element: for integers, of which nobody trains large networks.

use crate::nn::real::Shared;
use crate::pool::parallel_for;
use flambeau_engine::backend::layers::{Conv, ConvKind};
use std::ops::Range;

/// What sums of products need; integers wrap around.
pub trait Plain: Copy + Send + Sync + 'static {
    /// 0.
    const ZERO: Self;
    /// `self + a * b`
    fn add_product(self, a: Self, b: Self) -> Self;
    /// `self + a`
    fn plus(self, a: Self) -> Self;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Plain for $t {
            const ZERO: $t = 0;
            #[inline(always)]
            fn add_product(self, a: $t, b: $t) -> $t {
                self.wrapping_add(a.wrapping_mul(b))
            }
            #[inline(always)]
            fn plus(self, a: $t) -> $t {
                self.wrapping_add(a)
            }
        }
    )*};
}
plain!(u8, i8, i16, i32, i64);

macro_rules! plain_float {
    ($($t:ty),*) => {$(
        impl Plain for $t {
            const ZERO: $t = 0.0;
            #[inline(always)]
            fn add_product(self, a: $t, b: $t) -> $t {
                self + a * b
            }
            #[inline(always)]
            fn plus(self, a: $t) -> $t {
                self + a
            }
        }
    )*};
}
plain_float!(f32, f64);

/// Positions of one dimension in the three tensors: `x = y * stride - padding + k * dilation`.
#[derive(Clone, Copy)]
struct Axis {
    input: usize,
    output: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
}

impl Axis {
    /// Where in the input an output and a kernel position meet, if that is not in the padding.
    fn input_at(&self, y: usize, k: usize) -> Option<usize> {
        (y * self.stride + k * self.dilation).checked_sub(self.padding).filter(|&x| x < self.input)
    }

    /// The output position whose window has the input position at a kernel position.
    fn output_at(&self, x: usize, k: usize) -> Option<usize> {
        let from = (x + self.padding).checked_sub(k * self.dilation)?;
        (from % self.stride == 0).then_some(from / self.stride).filter(|&y| y < self.output)
    }
}

/// See [`Conv`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn run<T: Plain>(call: &Conv) {
    let [inner, outer] = call.channels;
    let (rows, work) = match call.kind {
        ConvKind::Output => (call.batch * call.groups * outer, inner * volume(call.kernel) * volume(call.output)),
        ConvKind::Input => (call.batch * call.groups * inner, outer * volume(call.kernel) * volume(call.input)),
        ConvKind::Weight => (call.groups * outer, inner * volume(call.kernel) * volume(call.output) * call.batch),
    };
    let shared = Shared(*call);
    parallel_for(rows, ((32 << 10) / work.max(1)).max(1), &|range: Range<usize>| {
        let call = &{ &shared }.0;
        for row in range {
            // SAFETY: the caller's; each row of the result is one index.
            unsafe {
                match call.kind {
                    ConvKind::Output | ConvKind::Input => plane::<T>(call, row),
                    ConvKind::Weight => weight_row::<T>(call, row),
                }
            }
        }
    });
}

fn volume(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

/// All positions of three dimensions, in row-major order.
fn positions(sizes: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [a, b, c] = sizes;
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])))
}

fn offset(strides: &[isize; 5], n: usize, c: usize, at: [usize; 3]) -> isize {
    let index = [n, c, at[0], at[1], at[2]];
    index.iter().zip(strides).map(|(&i, &s)| i as isize * s).sum()
}

fn axes(call: &Conv) -> [Axis; 3] {
    std::array::from_fn(|d| Axis {
        input: call.input[d],
        output: call.output[d],
        stride: call.stride[d],
        padding: call.padding[d],
        dilation: call.dilation[d],
    })
}

fn all(axes: &[Axis; 3], at: [usize; 3], k: [usize; 3], f: impl Fn(&Axis, usize, usize) -> Option<usize>) -> Option<[usize; 3]> {
    Some([f(&axes[0], at[0], k[0])?, f(&axes[1], at[1], k[1])?, f(&axes[2], at[2], k[2])?])
}

/// One channel of one output, or of the gradient of one input.
unsafe fn plane<T: Plain>(call: &Conv, row: usize) {
    let forward = call.kind == ConvKind::Output;
    let [inner, outer] = call.channels;
    let (own, others) = if forward { (outer, inner) } else { (inner, outer) };
    let channels = call.groups * own;
    let (n, channel) = (row / channels, row % channels);
    let (group, c) = (channel / own, channel % own);
    let axes = axes(call);
    let (sizes, from, to) = if forward { (call.output, &call.x, &call.y) } else { (call.input, &call.y, &call.x) };
    for at in positions(sizes) {
        let mut sum = T::ZERO;
        for k in positions(call.kernel) {
            let source = if forward { all(&axes, at, k, Axis::input_at) } else { all(&axes, at, k, Axis::output_at) };
            let Some(source) = source else { continue };
            for other in 0..others {
                let (o, i) = if forward { (c, other) } else { (other, c) };
                // SAFETY: positions and channels are in the operands.
                unsafe {
                    let a = *from.ptr.cast::<T>().offset(offset(&from.strides, n, group * others + other, source));
                    let b = *call.w.ptr.cast::<T>().offset(offset(&call.w.strides, group * outer + o, i, k));
                    sum = sum.add_product(a, b);
                }
            }
        }
        // SAFETY: as above.
        unsafe {
            if !call.bias.is_null() {
                sum = sum.plus(*call.bias.cast::<T>().add(channel));
            }
            *to.ptr.cast::<T>().offset(offset(&to.strides, n, channel, at)) = sum;
        }
    }
}

/// The gradient of the weights of one output channel.
unsafe fn weight_row<T: Plain>(call: &Conv, row: usize) {
    let [inner, outer] = call.channels;
    let group = row / outer;
    let axes = axes(call);
    for i in 0..inner {
        for k in positions(call.kernel) {
            let mut sum = T::ZERO;
            for n in 0..call.batch {
                for at in positions(call.output) {
                    let Some(source) = all(&axes, at, k, Axis::input_at) else { continue };
                    // SAFETY: positions and channels are in the operands.
                    unsafe {
                        let a = *call.x.ptr.cast::<T>().offset(offset(&call.x.strides, n, group * inner + i, source));
                        let b = *call.y.ptr.cast::<T>().offset(offset(&call.y.strides, n, row, at));
                        sum = sum.add_product(a, b);
                    }
                }
            }
            // SAFETY: as above.
            unsafe { *call.w.ptr.cast::<T>().offset(offset(&call.w.strides, row, i, k)) = sum };
        }
    }
}
