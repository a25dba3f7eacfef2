//! The rows of convolutions.

use super::{ConvOptions, Padding, convolve};
use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{Error, Result};
use smallvec::smallvec;

fn forward(a: &Args, n: usize) -> Result<Out> {
    let padding = match a.ints(4) {
        Ok(zeros) => Padding::By(zeros),
        Err(_) => named_padding(a.name, &a.str(4)?)?,
    };
    let options = ConvOptions { stride: a.ints(3)?, padding, dilation: a.ints(5)?, groups: a.int(6)?, output_padding: smallvec![0] };
    Ok(convolve(a.name, n, false, a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?, &options)?.into())
}

fn named_padding(op: &str, name: &str) -> Result<Padding> {
    match name {
        "same" => Ok(Padding::Same),
        "valid" => Ok(Padding::Valid),
        other => Err(Error::runtime(format!("{op}: Invalid padding string: '{other}'; 'same' and 'valid' are known"))),
    }
}

fn transposed(a: &Args, n: usize) -> Result<Out> {
    let options = ConvOptions {
        stride: a.ints(3)?,
        padding: Padding::By(a.ints(4)?),
        output_padding: a.ints(5)?,
        groups: a.int(6)?,
        dilation: a.ints(7)?,
    };
    Ok(convolve(a.name, n, true, a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?, &options)?.into())
}

/// The arguments of `torch.convolution`, which has one name for all dimensions and directions.
fn general(a: &Args) -> Result<Out> {
    let (x, w) = (a.tensor(0)?, a.tensor(1)?);
    let n = w.ndim().saturating_sub(2);
    if !(1..=3).contains(&n) {
        return Err(Error::runtime(format!("{}: weight should have at least three dimensions and at most five, got {}", a.name, w.ndim())));
    }
    let options = ConvOptions {
        stride: a.ints(3)?,
        padding: Padding::By(a.ints(4)?),
        dilation: a.ints(5)?,
        output_padding: a.ints(7)?,
        groups: a.int(8)?,
    };
    Ok(convolve(a.name, n, a.bool(6)?, x, w, a.opt_tensor(2)?, &options)?.into())
}

/// `[time, batch, channels]` instead of `[batch, channels, time]`.
fn tbc(a: &Args) -> Result<Out> {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    if x.ndim() != 3 || w.ndim() != 3 || bias.ndim() != 1 {
        return Err(Error::runtime(format!(
            "conv_tbc: Input must have 3 dims: time, batch, in_channel; weight 3: kernel, in_channel, out_channel; bias 1; got {}, {} and {}",
            x.ndim(),
            w.ndim(),
            bias.ndim()
        )));
    }
    let options = ConvOptions::new().padding(&[a.int(3)?]);
    let (x, w): (Tensor, Tensor) = (x.permute(&[1, 2, 0])?, w.permute(&[2, 1, 0])?);
    Ok(x.conv1d(&w, Some(bias), &options)?.permute(&[2, 0, 1])?.contiguous()?.into())
}

const HERE: u8 = place::TORCH | place::NN;

macro_rules! doc {
    ($dims:literal) => {
        concat!("Convolution (in fact correlation) over ", $dims, ": each output element is the sum of a window of the input times the weight, plus the bias. Input `[batch, in, ...]` or `[in, ...]`, weight `[out, in / groups, kernel...]`, bias `[out]`.")
    };
    (transposed $dims:literal) => {
        concat!("Transposed convolution over ", $dims, ", the gradient of the convolution with regard to its input. Input `[batch, in, ...]` or `[in, ...]`, weight `[in, out / groups, kernel...]`, bias `[out]`.")
    };
}

pub(in super::super) static OPS: &[Op] = &[
    function("conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor", |a| forward(a, 1))
        .autocast_lower()
        .doc(doc!("one dimension"))
        .places(HERE)
        .samples(&["T(2,3,7), T(4,3,3)", "T(2,4,9), T(6,2,3), T(6), 2, 1, 2, 2", "T(3,7), T(2,3,2), T(2), padding=3", "T(2,4,5), T(8,1,3), None, 1, 1, 1, 4"])
        .without_out(),
    function("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str padding=\"valid\", SymInt[1] dilation=1, SymInt groups=1) -> Tensor", |a| forward(a, 1))
        .doc("Convolution over one dimension with padding by name: `'valid'` for none, `'same'` for an output as large as the input.")
        .places(HERE)
        .samples(&["T(2,3,7), T(4,3,4), T(4), padding='same', dilation=2", "T(2,3,7), T(4,3,4), padding='valid'"])
        .without_out(),
    function("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor", |a| forward(a, 2))
        .autocast_lower()
        .doc(doc!("two dimensions"))
        .places(HERE)
        .samples(&[
            "T(2,3,5,6), T(4,3,3,2)",
            "T(2,4,7,6), T(6,2,3,2), T(6), [2, 1], [1, 2], [1, 2], 2",
            "T(2,3,5,4), T(4,3,1,1), T(4)",
            "T(2,3,5,4), T(4,3,1,1), None, 2",
            "T(3,5,6), T(2,3,3,3), T(2), padding=1",
            "T(2,3,6,7), T(3,1,3,3), T(3), 1, 1, 1, 3",
            "T(2,3,6,7), T(6,1,3,3), None, 2, 1, 1, 3",
            "T(1,2,3,3), T(2,2,3,3), T(2), 1, 4, 2",
        ])
        .without_out(),
    function("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding=\"valid\", SymInt[2] dilation=1, SymInt groups=1) -> Tensor", |a| forward(a, 2))
        .doc("Convolution over two dimensions with padding by name: `'valid'` for none, `'same'` for an output as large as the input.")
        .places(HERE)
        .samples(&["T(2,3,5,6), T(4,3,2,3), T(4), padding='same'", "T(2,3,5,6), T(4,3,2,3), padding='valid'"])
        .without_out(),
    function("conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor", |a| forward(a, 3))
        .autocast_lower()
        .doc(doc!("three dimensions"))
        .places(HERE)
        .samples(&["T(2,2,3,4,3), T(3,2,2,2,2), T(3)", "T(1,4,3,4,5), T(2,2,2,3,2), None, [1, 2, 1], [1, 0, 1], [2, 1, 1], 2", "T(2,3,3,4), T(2,2,2,2,2)"])
        .without_out(),
    function("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str padding=\"valid\", SymInt[3] dilation=1, SymInt groups=1) -> Tensor", |a| forward(a, 3))
        .doc("Convolution over three dimensions with padding by name: `'valid'` for none, `'same'` for an output as large as the input.")
        .places(HERE)
        .samples(&["T(1,2,3,4,3), T(2,2,2,3,2), padding='same'"])
        .without_out(),
    function("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor", |a| transposed(a, 1))
        .autocast_lower()
        .doc(doc!(transposed "one dimension"))
        .places(HERE)
        .samples(&["T(2,3,5), T(3,4,3)", "T(2,4,5), T(4,3,3), T(6), 3, 1, 2, 2, 2", "T(3,5), T(3,2,3), T(2), 2"])
        .without_out(),
    function("conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor", |a| transposed(a, 2))
        .autocast_lower()
        .doc(doc!(transposed "two dimensions"))
        .places(HERE)
        .samples(&["T(2,3,4,3), T(3,2,3,2)", "T(2,4,3,4), T(4,1,2,3), T(2), [2, 3], [1, 0], [1, 2], 2, [1, 2]", "T(2,3,3), T(2,2,2,2), None, 2", "T(2,3,4,3), T(3,1,3,3), T(3), 2, 1, 1, 3"])
        .without_out(),
    function("conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor", |a| transposed(a, 3))
        .autocast_lower()
        .doc(doc!(transposed "three dimensions"))
        .places(HERE)
        .samples(&["T(2,2,2,3,2), T(2,3,2,2,2), T(3)", "T(1,4,2,2,3), T(4,1,2,1,3), None, [2, 1, 2], [1, 0, 1], [1, 0, 0], 2"])
        .without_out(),
    function("convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor", general)
        .autocast_lower()
        .doc("Convolution or transposed convolution over as many dimensions as the weight has beyond two.")
        .places(place::TORCH)
        .samples(&["T(2,3,5,6), T(4,3,3,2), None, [1], [1], [1], False, [0], 1", "T(2,3,5), T(3,2,3), T(2), [2], [1], [1], True, [1], 1"])
        .without_out(),
    function("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", tbc)
        .autocast_lower()
        .doc("Convolution over time of `[time, batch, in]` with a weight `[kernel, in, out]` and a bias `[out]`.")
        .places(HERE)
        .samples(&["T(5,2,3), T(3,3,4), T(4), 1"])
        .without_out(),
];
