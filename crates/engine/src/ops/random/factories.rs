//! New random tensors.

use super::{draw, generator, with_drawable, with_real};
use crate::Tensor;
use crate::ops::create::{Options, sizes};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::random::Generator;
use flambeau_base::{DType, Device, Error, Layout, MemoryFormat, Result};

impl Tensor {
    /// Draws from the uniform distribution over `[0, 1)`, by the default generator.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::{DType, Device, Result}};
    /// # fn example() -> Result<()> {
    /// let x = Tensor::rand(&[2, 3], DType::F32, Device::CPU)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn rand(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        let t = Tensor::empty(shape, dtype, device)?;
        t.uniform_(0.0, 1.0, None)?;
        Ok(t)
    }

    /// Draws from the normal distribution of mean 0 and variance 1, by the default generator.
    pub fn randn(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        let t = Tensor::empty(shape, dtype, device)?;
        t.normal_(0.0, 1.0, None)?;
        Ok(t)
    }

    /// Integers from `[low, high)`, by the default generator.
    pub fn randint(low: i64, high: i64, shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        integers(low, high, Tensor::empty(shape, dtype, device)?, None)
    }

    /// The integers from 0 to `n - 1` in random order, by the default generator.
    pub fn randperm(n: usize, dtype: DType, device: Device) -> Result<Tensor> {
        permutation(n, dtype, device, None)
    }
}

fn integers(low: i64, high: i64, t: Tensor, g: Option<Generator>) -> Result<Tensor> {
    if low >= high {
        return Err(Error::runtime(format!("randint: random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")));
    }
    t.random_(low, Some(high), g)?;
    Ok(t)
}

fn permutation(n: usize, dtype: DType, device: Device, g: Option<Generator>) -> Result<Tensor> {
    if matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64) {
        return Err(Error::not_implemented(format!("randperm: not implemented for {dtype}")));
    }
    let (t, g) = (Tensor::empty(&[n], dtype, device)?, generator(g));
    with_drawable!("randperm", dtype, T => draw::<T>(&t, &g, |s, out| s.permutation(out)))?;
    Ok(t)
}

/// `size`, then the generator, then dtype and the rest.
fn drawn(a: &Args, fill: fn(&Tensor, Option<Generator>) -> Result<()>) -> Result<Out> {
    let o = Options::of(a, 2)?;
    let t = Tensor::empty(&sizes(a.name, &a.ints(0)?)?, o.float(), o.device)?;
    fill(&t, a.opt_generator(1)?)?;
    o.finish(t)
}

fn like(a: &Args, i: usize) -> Result<(Options, Tensor)> {
    let (t, o) = (a.tensor(0)?, Options::of(a, i)?);
    let format = a.opt_memory_format(i + 5)?.unwrap_or(MemoryFormat::Preserve);
    let layout = Layout::in_format(a.name, t.shape(), format, Some(t.layout()))?;
    let device = a.opt_device(i + 2)?.unwrap_or(t.device());
    let made = Tensor::empty_layout(layout, o.dtype.unwrap_or(t.dtype()), device)?;
    Ok((o, made))
}

fn uniform(t: &Tensor, g: Option<Generator>) -> Result<()> {
    t.uniform_(0.0, 1.0, g).map(|_| ())
}

fn normal(t: &Tensor, g: Option<Generator>) -> Result<()> {
    t.normal_(0.0, 1.0, g).map(|_| ())
}

fn randint(a: &Args, low: i64, high: i64, size: usize) -> Result<Out> {
    let o = Options::of(a, size + 2)?;
    let t = Tensor::empty(&sizes("randint", &a.ints(size)?)?, o.dtype.unwrap_or(DType::I64), o.device)?;
    o.finish(integers(low, high, t, a.opt_generator(size + 1)?)?)
}

fn randperm(a: &Args) -> Result<Out> {
    let o = Options::of(a, 2)?;
    let n = sizes("randperm", &[a.int(0)?])?[0];
    o.finish(permutation(n, o.dtype.unwrap_or(DType::I64), o.device, a.opt_generator(1)?)?)
}

/// `normal` with a tensor for the mean, the deviation or both.
fn normal_of(a: &Args) -> Result<Out> {
    use crate::ops::table::Value;
    let g = a.opt_generator(2)?;
    let number = |i: usize| a.float(i).or_else(|_| a.scalar(i).map(|s| s.to_f64()));
    let check = |std: &Tensor| -> Result<()> {
        if std.dtype().is_complex() {
            return Err(Error::runtime("normal: normal expects standard deviation to be non-complex"));
        }
        if std.numel() > 0 && std.alias().min()?.item()?.to_f64() < 0.0 {
            return Err(Error::runtime("normal: normal expects all elements of std >= 0.0"));
        }
        Ok(())
    };
    let out = match (&a.values[0], &a.values[1]) {
        (Value::Tensor(mean), Value::Tensor(std)) => {
            check(std)?;
            let shape = flambeau_base::broadcast("normal", mean.shape(), std.shape())?;
            let z = Tensor::empty(&shape, mean.dtype(), mean.device())?;
            normal(&z, g)?;
            super::drawn_from(&z.mul(&std.alias())?.add(&mean.alias())?, &[mean, std])?
        }
        (Value::Tensor(mean), _) => {
            let std = number(1)?;
            if std < 0.0 {
                return Err(Error::runtime(format!("normal: normal expects std >= 0.0, but found std {std}")));
            }
            let z = Tensor::empty(mean.shape(), mean.dtype(), mean.device())?;
            z.normal_(0.0, std, g)?;
            super::drawn_from(&z.add(&mean.alias())?, &[mean])?
        }
        (_, Value::Tensor(std)) => {
            check(std)?;
            let z = Tensor::empty(std.shape(), std.dtype(), std.device())?;
            normal(&z, g)?;
            super::drawn_from(&z.mul(&std.alias())?.add(number(0)?)?, &[std])?
        }
        _ => return Err(Error::type_error("normal: with two numbers a size is needed: normal(mean, std, size)")),
    };
    Ok(out.into())
}

fn normal_sized(a: &Args) -> Result<Out> {
    let o = Options::of(a, 4)?;
    let t = Tensor::empty(&sizes("normal", &a.ints(2)?)?, o.float(), o.device)?;
    t.normal_(a.float(0)?, a.float(1)?, a.opt_generator(3)?)?;
    o.finish(t)
}

fn dropout_mask(x: &Tensor, p: f64) -> Result<Tensor> {
    // Complex numbers are dropped whole.
    let dtype = crate::ops::fft::real_of(x.dtype());
    let (mask, g) = (Tensor::empty_layout(x.empty_like()?.layout().clone(), dtype, x.device())?, generator(None));
    with_real!("dropout", dtype, T => draw::<T>(&mask, &g, |s, out| s.dropout_mask(out, p)))?;
    Ok(mask)
}

impl Tensor {
    /// Each element zero with probability `p`, the others divided by `1 - p` (Srivastava et al., 2014).
    pub fn dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value(format!("dropout: dropout probability has to be between 0 and 1, but got {p}")));
        }
        if !training || p == 0.0 {
            return Ok(self.clone());
        }
        if p == 1.0 {
            return self.mul(&self.zeros_like()?);
        }
        self.mul(&dropout_mask(self, p)?)
    }
}

const TORCH: u8 = place::TORCH;

pub(super) static OPS: &[Op] = &[
    function("rand(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| drawn(a, uniform))
        .doc("Draws from the uniform distribution over `[0, 1)`.")
        .places(TORCH),
    function("randn(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| drawn(a, normal))
        .doc("Draws from the normal distribution of mean 0 and variance 1.")
        .places(TORCH),
    function("randint(int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| randint(a, 0, a.int(0)?, 1))
        .doc("Integers from `[0, high)`.")
        .places(TORCH),
    function("randint.low(int low, int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", |a| randint(a, a.int(0)?, a.int(1)?, 2))
        .doc("Integers from `[low, high)`.")
        .places(TORCH),
    function("randperm(int n, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", randperm)
        .doc("The integers from 0 to `n - 1` in random order.")
        .places(TORCH),
    function("rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| {
        let (o, t) = like(a, 1)?;
        uniform(&t, None)?;
        o.finish(t)
    })
    .doc("Draws from the uniform distribution over `[0, 1)` in the shape and dtype of `self`.")
    .places(TORCH)
    .without_out(),
    function("randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| {
        let (o, t) = like(a, 1)?;
        normal(&t, None)?;
        o.finish(t)
    })
    .doc("Draws from the normal distribution in the shape and dtype of `self`.")
    .places(TORCH)
    .without_out(),
    function("randint_like(Tensor self, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| {
        let (o, t) = like(a, 2)?;
        o.finish(integers(0, a.int(1)?, t, None)?)
    })
    .doc("Integers from `[0, high)` in the shape and dtype of `self`.")
    .places(TORCH)
    .without_out(),
    function("randint_like.low(Tensor self, int low, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", |a| {
        let (o, t) = like(a, 3)?;
        o.finish(integers(a.int(1)?, a.int(2)?, t, None)?)
    })
    .doc("Integers from `[low, high)` in the shape and dtype of `self`.")
    .places(TORCH)
    .without_out(),
    function("normal.size(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) -> Tensor", normal_sized)
        .doc("Draws from a normal distribution.")
        .places(TORCH),
    function("normal.Tensor_float(Tensor mean, float std=1.0, *, Generator? generator=None) -> Tensor", normal_of)
        .doc("Draws from normal distributions of these means and deviations, tensors or numbers.")
        .places(TORCH),
    function("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", normal_of)
        .doc("As the other forms.")
        .places(TORCH),
    function("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", normal_of)
        .doc("As the other forms.")
        .places(TORCH),
    function("dropout(Tensor input, float p, bool train) -> Tensor", |a| Ok(a.tensor(0)?.dropout(a.float(1)?, a.bool(2)?)?.into()))
        .doc("Each element zero with probability `p`, the others divided by `1 - p`; nothing is changed unless `train`.")
        .places(TORCH)
        .with_inplace()
        .without_out(),
];
