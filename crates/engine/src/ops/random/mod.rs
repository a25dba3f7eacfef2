//! Random tensors: the draws of [`crate::random`] put where tensors lie.

mod dropout;
mod factories;
mod inplace;
mod sample;

use super::table::Op;
use crate::Tensor;
use crate::random::{Generator, Stream, default_generator};
use crate::tensor::Element;
use crate::transform::{level, vectorize};
use flambeau_base::{DType, Layout, Result};

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[factories::OPS, inplace::OPS, sample::OPS, dropout::OPS];

pub(crate) fn generator(given: Option<Generator>) -> Generator {
    given.unwrap_or_else(|| default_generator().clone())
}

/// Hands the elements of a tensor, in the order in which they lie in memory, to a function that draws them.
///
/// A tensor with gaps gets its draws by way of a dense one. The version counter and gradients are the caller's.
pub(crate) fn draw<T: Element>(t: &Tensor, generator: &Generator, f: impl FnOnce(&mut Stream, &mut [T]) -> Result<()>) -> Result<()> {
    if level::depth() > 0
        && let Some(batch) = vectorize::batch_to_draw(t)?
    {
        let _beneath = level::beneath(batch.level);
        draw(&batch.whole, generator, f)?;
        t.promote_to_batch(batch.level, batch.whole);
        return Ok(());
    }
    if t.numel() == 0 || t.device().is_meta() {
        return f(&mut generator.lock(), &mut []);
    }
    if !t.layout().is_non_overlapping_and_dense() {
        let dense = Tensor::empty_layout(Layout::in_order(t.shape(), &t.layout().stride_order())?, t.dtype(), t.device())?;
        draw(&dense, generator, f)?;
        return crate::ops::copy_into(t, &dense);
    }
    let ptr = t.data_ptr_mut()?.cast::<T>();
    // SAFETY: a dense tensor's elements fill `numel` places from its first on, of this element type: the caller dispatches on the dtype.
    let elements = unsafe { std::slice::from_raw_parts_mut(ptr, t.numel()) };
    f(&mut generator.lock(), elements)
}

/// [`draw`] by parameters of each element, which are those of one example: a batch is drawn example by example.
pub(crate) fn draw_by<T: Element>(t: &Tensor, generator: &Generator, f: impl FnOnce(&mut Stream, &mut [T]) -> Result<()>) -> Result<()> {
    if level::depth() > 0 && vectorize::batch_to_draw(t)?.is_some() {
        return Err(level::refuse_read());
    }
    draw(t, generator, f)
}

/// Fills a tensor in place: directly where nothing is recorded, else through a copy that autograd sees.
pub(crate) fn fill_inplace(op: &str, t: &Tensor, fill: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let recording = t.is_followed();
    crate::autograd::inplace::check(op, t, recording)?;
    t.check_writable(op)?;
    if recording || t.is_batched() {
        let fresh = t.empty_like()?;
        fill(&fresh)?;
        t.copy_(&fresh)?;
        return Ok(());
    }
    fill(t)?;
    t.bump_version();
    Ok(())
}

/// Runs an expression with `$t` standing for the Rust type of a floating point dtype.
macro_rules! with_real {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {{
        use flambeau_base::{DType, Error, bf16, f16};
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
                type $t = f16;
                $body
            }
            DType::BF16 => {
                type $t = bf16;
                $body
            }
            other => Err(Error::not_implemented(format!("{}: not implemented for {other}; a floating point dtype is needed", $op))),
        }
    }};
}
pub(crate) use with_real;

/// Runs an expression with `$t` standing for the Rust type of a real dtype.
macro_rules! with_drawable {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {{
        use flambeau_base::DType as D;
        match $dtype {
            D::Bool => {
                type $t = bool;
                $body
            }
            D::U8 => {
                type $t = u8;
                $body
            }
            D::I8 => {
                type $t = i8;
                $body
            }
            D::I16 => {
                type $t = i16;
                $body
            }
            D::I32 => {
                type $t = i32;
                $body
            }
            D::I64 => {
                type $t = i64;
                $body
            }
            D::U16 => {
                type $t = u16;
                $body
            }
            D::U32 => {
                type $t = u32;
                $body
            }
            D::U64 => {
                type $t = u64;
                $body
            }
            other => with_real!($op, other, $t => $body),
        }
    }};
}
pub(crate) use with_drawable;

/// A draw that depends on tensors which may require gradients: these are zeros.
pub(super) fn drawn_from(drawn: &Tensor, parameters: &[&Tensor]) -> Result<Tensor> {
    if !parameters.iter().any(|t| t.is_followed()) {
        return Ok(drawn.clone());
    }
    let always = Tensor::ones(&[], DType::Bool, drawn.device())?;
    parameters.iter().try_fold(drawn.clone(), |drawn, p| Tensor::where_(&always, &drawn, *p))
}
