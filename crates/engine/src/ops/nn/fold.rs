//! The windows of images as columns (`unfold`, im2col), and their sums back in place (`fold`, col2im).

use super::{into_packed, packed};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind1;
use flambeau_base::{Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// How windows lie in an image: numbers for height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Size of a window.
    pub kernel: [usize; 2],
    /// Steps from element to element of a window.
    pub dilation: [usize; 2],
    /// Zeros around the image.
    pub padding: [usize; 2],
    /// Steps from window to window.
    pub stride: [usize; 2],
}

/// From images `[batch, channels, height, width]` to columns `[batch, channels * kernel, windows]`, or back, where windows
/// that overlap add up. Each is the other's derivative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Columns {
    back: bool,
    blocks: Blocks,
    /// Height and width of the images.
    image: [usize; 2],
    /// How many windows fit, down and across.
    count: [usize; 2],
}

impl Primitive for Columns {
    fn name(&self) -> &'static str {
        if self.back { "col2im" } else { "im2col" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (x, [kh, kw]) = (inputs[0], self.blocks.kernel);
        let (batch, channels) = (x.shape()[0], x.shape()[1]);
        let layout = if self.back {
            Layout::contiguous(&[batch, channels / (kh * kw), self.image[0], self.image[1]])?
        } else {
            let tall = channels.checked_mul(kh).and_then(|n| n.checked_mul(kw));
            let tall = tall.ok_or_else(|| Error::runtime(format!("im2col: too many rows for a kernel of {kh} by {kw}")))?;
            Layout::contiguous(&[batch, tall, self.count[0] * self.count[1]])?
        };
        Ok(smallvec![OutSpec { layout, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let from = packed(inputs[0])?;
        into_packed(&outputs[0], |out| {
            let (image, columns) = if self.back { (out, &from) } else { (&from, out) };
            let call = layers::Columns {
                back: self.back,
                dtype: out.dtype(),
                planes: image.shape()[0] * image.shape()[1],
                image: self.image,
                count: self.count,
                kernel: self.blocks.kernel,
                dilation: self.blocks.dilation,
                padding: self.blocks.padding,
                stride: self.blocks.stride,
                pixels: image.data_ptr_mut()?,
                columns: columns.data_ptr_mut()?,
            };
            // SAFETY: both are contiguous and of the sizes that the call states; the one read from is not written.
            unsafe { backend(out.device())?.columns(&call) }
        })
    }

    fn vjp(&self, _: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind1(&Columns { back: !self.back, ..self.clone() }, &[&g])?)])
    }

    fn reads(&self) -> Reads {
        Reads::NONE
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Two numbers from a list of one or two, none below `least`.
fn pair(op: &str, what: &str, given: &[i64], least: i64) -> Result<[usize; 2]> {
    let both = match given {
        [one] => [*one; 2],
        [a, b] => [*a, *b],
        _ => return Err(Error::runtime(format!("{op}: It is expected {what} equals to 2, but got size {}", given.len()))),
    };
    if both.iter().any(|&n| n < least) {
        let wanted = if least > 0 { "greater than zero" } else { "non-negative" };
        return Err(Error::runtime(format!("{op}: {what} should be {wanted}, but got {given:?}")));
    }
    Ok(both.map(|n| n as usize))
}

impl Blocks {
    /// From lists of one or two numbers each. `RuntimeError` where they are none of a window.
    fn new(op: &str, kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Blocks> {
        Ok(Blocks {
            kernel: pair(op, "kernel_size", kernel, 1)?,
            dilation: pair(op, "dilation", dilation, 1)?,
            padding: pair(op, "padding", padding, 0)?,
            stride: pair(op, "stride", stride, 1)?,
        })
    }

    /// How many windows fit into an image, down and across; may be negative.
    fn count(&self, image: [usize; 2]) -> [i64; 2] {
        std::array::from_fn(|d| {
            let span = self.dilation[d] as i64 * (self.kernel[d] as i64 - 1) + 1;
            (image[d] as i64 + 2 * self.padding[d] as i64 - span).div_euclid(self.stride[d] as i64) + 1
        })
    }
}

impl Tensor {
    /// The windows of images `[batch, channels, height, width]` (or without the batch) as columns
    /// `[batch, channels * kernel height * kernel width, windows]`. Lists of one number stand for both dimensions.
    ///
    /// `RuntimeError` where the shape does not fit, or no window.
    pub fn im2col(&self, kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Tensor> {
        let blocks = Blocks::new("unfold", kernel, dilation, padding, stride)?;
        let image = match self.shape() {
            [rest @ .., c, h, w] if rest.len() <= 1 && *c > 0 && *h > 0 && *w > 0 => [*h, *w],
            shape => {
                return Err(Error::runtime(format!(
                    "unfold: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
                    show(shape)
                )));
            }
        };
        let count = blocks.count(image);
        if count.iter().any(|&n| n < 1) {
            return Err(Error::runtime(format!(
                "unfold: Given input with spatial size {image:?}, kernel_size={kernel:?}, dilation={dilation:?}, padding={padding:?}, calculated shape of the array of sliding blocks as {count:?}, but its components must be at least one."
            )));
        }
        let op = Columns { back: false, blocks, image, count: count.map(|n| n as usize) };
        if self.ndim() == 4 {
            return bind1(&op, &[self]);
        }
        bind1(&op, &[&self.unsqueeze(0)?])?.squeeze(Some(&[0]))
    }

    /// Columns `[batch, channels * kernel height * kernel width, windows]` (or without the batch) added up to images of
    /// a size: the transpose of [`Tensor::im2col`]. Lists of one number stand for both dimensions.
    ///
    /// `RuntimeError` where shapes do not fit.
    pub fn col2im(&self, size: &[i64], kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Tensor> {
        let op = "fold";
        let blocks = Blocks::new(op, kernel, dilation, padding, stride)?;
        let [_, _] = size else {
            return Err(Error::runtime(format!("{op}: It is expected output_size equals to 2, but got size {}", size.len())));
        };
        let image = pair(op, "output_size", size, 1)?;
        let (rows, windows) = match self.shape() {
            [rest @ .., rows, windows] if rest.len() <= 1 && *rows > 0 && *windows > 0 => (*rows, *windows),
            shape => {
                return Err(Error::runtime(format!(
                    "{op}: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}",
                    show(shape)
                )));
            }
        };
        if rows % (blocks.kernel[0] * blocks.kernel[1]) != 0 {
            return Err(Error::runtime(format!(
                "{op}: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} and kernel_size={kernel:?}."
            )));
        }
        let count = blocks.count(image);
        if count.iter().any(|&n| n < 1) || count[0] * count[1] != windows as i64 {
            return Err(Error::runtime(format!(
                "{op}: Given output_size={size:?}, kernel_size={kernel:?}, dilation={dilation:?}, padding={padding:?}, stride={stride:?}, expected size of input's dimension 2 to match the calculated number of sliding blocks {} * {} = {}, but got input.size(2)={windows}.",
                count[0],
                count[1],
                count[0] * count[1]
            )));
        }
        let columns = Columns { back: true, blocks, image, count: count.map(|n| n as usize) };
        if self.ndim() == 3 {
            return bind1(&columns, &[self]);
        }
        bind1(&columns, &[&self.unsqueeze(0)?])?.squeeze(Some(&[0]))
    }
}

fn im2col(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.im2col(&a.ints(1)?, &a.ints(2)?, &a.ints(3)?, &a.ints(4)?)?.into())
}

fn col2im(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.col2im(&a.ints(1)?, &a.ints(2)?, &a.ints(3)?, &a.ints(4)?, &a.ints(5)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor", im2col)
        .doc("The windows of images `[batch, channels, height, width]` as columns `[batch, channels * kernel, windows]`.")
        .places(place::NN)
        .samples(&[
            "T(2,3,5,6), [2, 3], [1, 1], [0, 0], [1, 1]",
            "T(1,2,6,5), [3, 2], [2, 1], [1, 2], [2, 3]",
            "T(2,4,4), [2, 2], [1, 1], [1, 0], [2, 2]",
        ]),
    function(
        "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        col2im,
    )
    .doc("Columns `[batch, channels * kernel, windows]` added up to images: the transpose of `im2col`.")
    .places(place::NN)
    .samples(&[
        "T(2,18,16), [5, 6], [2, 3], [1, 1], [0, 0], [1, 1]",
        "T(1,12,6), [6, 5], [3, 2], [2, 1], [1, 2], [2, 3]",
        "T(4,6), [4, 4], [2, 2], [1, 1], [1, 0], [2, 2]",
    ]),
];
