//! Forms in place that change how a tensor looks at its memory.
//!
//! The tensor keeps its memory and its history grows by the view: what used it before is not touched.
//! NOTE [metadata] in `tensor` says why these are the front end's to call: it holds its lock meanwhile.

use super::{AsStrided, Squeeze, T, Transpose, Unsqueeze, View, Viewed};
use crate::Tensor;
use crate::autograd::{Edge, is_grad_enabled};
use crate::ops::Primitive;
use crate::ops::table::{Args, Op, Out, place, view_row};
use flambeau_base::{Error, Layout, MemoryFormat, Result, Strides, wrap_dim};

/// Makes a tensor the view of itself.
fn become_view<V: View>(t: &Tensor, v: V) -> Result<Out> {
    let layout = v.layout(t)?;
    crate::autograd::inplace::check(v.name(), t, t.requires_grad())?;
    let history = t.requires_grad() && is_grad_enabled();
    // The view of the tensor as it was has the history that the tensor is to have. It is taken before anything changes:
    // a view looks for its history again once its base has another version.
    let after = if history { crate::transform::bind1(&Viewed(v.clone()), &[t])?.history() } else { None };
    let before = t.layout().clone();
    // SAFETY: rows are called by a front end that holds its lock, see NOTE [metadata].
    unsafe { t.relayout(layout)? };
    continue_history(t, &Viewed(v), before, after);
    Ok(t.clone().into())
}

/// Gives a tensor that became `after` its history. A view of another takes the step, a base notes the layout that its views know.
fn continue_history(t: &Tensor, op: &dyn Primitive, layout: Layout, after: Option<Edge>) {
    // What was saved of the tensor would be read with the new layout: a new version says so.
    t.bump_version();
    let seen = t.version();
    t.with_autograd(|m| match &mut m.view {
        Some(view) => {
            if let Some(steps) = op.view_step(0, Some(view.steps.clone())) {
                view.steps = steps;
            }
            view.seen = seen;
        }
        None => m.relayouts.push((seen, layout)),
    });
    t.set_flag(crate::tensor::flag::RELAID, true);
    if after.is_some() {
        t.set_history(after);
    }
}

fn resize(op: &str, t: &Tensor, sizes: &[usize], format: Option<MemoryFormat>) -> Result<Out> {
    if t.requires_grad() {
        return Err(Error::runtime(format!("{op}: cannot resize variables that require grad")));
    }
    let layout = match format {
        None | Some(MemoryFormat::Preserve) if t.shape() == sizes => return Ok(t.clone().into()),
        None | Some(MemoryFormat::Preserve) => Layout::contiguous(sizes)?,
        Some(format) => Layout::in_format(op, sizes, format, None)?,
    };
    // SAFETY: rows are called by a front end that holds its lock, see NOTE [metadata].
    unsafe { t.resize(layout)? };
    t.bump_version();
    Ok(t.clone().into())
}

/// Points a tensor at the memory of another.
fn set(t: &Tensor, of: &Tensor, layout: Layout) -> Result<Out> {
    if t.dtype() != of.dtype() {
        return Err(Error::runtime(format!("set_: Could not set tensor of type {} to a tensor of type {}", of.dtype(), t.dtype())));
    }
    crate::autograd::inplace::check("set_", t, t.requires_grad())?;
    // SAFETY: rows are called by a front end that holds its lock, see NOTE [metadata].
    unsafe { t.replace(of.storage().clone(), layout, of.dtype())? };
    t.bump_version();
    Ok(t.clone().into())
}

fn set_strided(a: &Args) -> Result<Out> {
    let (t, of) = (a.tensor(0)?, a.tensor(1)?);
    let (sizes, strides, offset) = super::strided::geometry("set_", &a.ints(3)?, &a.ints(4)?, Some(a.int(2)?))?;
    let strides = if strides.is_empty() { Strides::from_slice(Layout::contiguous(&sizes)?.strides()) } else { strides };
    set(t, of, Layout::strided("set_", &sizes, &strides, offset.unwrap_or(0))?)
}

fn squeezed(a: &Args, dims: Option<&[i64]>) -> Result<Out> {
    let t = a.tensor(0)?;
    become_view(t, Squeeze(crate::ops::reduce::dims_mask("squeeze_", dims, t.ndim(), false)?))
}

fn transposed(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    let (x, y) = (wrap_dim("transpose_", a.int(1)?, t.ndim())?, wrap_dim("transpose_", a.int(2)?, t.ndim())?);
    become_view(t, Transpose(x, y))
}

fn strided(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    let (sizes, strides, offset) = super::strided::geometry("as_strided_", &a.ints(1)?, &a.ints(2)?, a.opt_int(3)?)?;
    let offset = offset.unwrap_or(t.layout().offset());
    Layout::strided("as_strided_", &sizes, &strides, offset)?;
    become_view(t, AsStrided { sizes, strides, offset, origin: t.layout().clone() })
}

fn detached(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    if t.base().is_some() {
        return Err(Error::runtime("detach_: Can't detach views in-place. Use detach() instead."));
    }
    t.set_history(None);
    if t.is_leaf() {
        t.set_requires_grad(false)?;
    }
    Ok(t.clone().into())
}

/// A form in place, written down by its own name: no further forms follow from it.
const fn inplace_row(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    view_row(schema, f).places(place::METHOD)
}

pub(super) static OPS: &[Op] = &[
    inplace_row("t_(Tensor(a!) self) -> Tensor(a!)", |a| {
        super::dims::check_t("t_", a.tensor(0)?)?;
        become_view(a.tensor(0)?, T)
    })
    .doc("`t` in place: the tensor looks at its memory as its transpose does.")
    .samples(&["T(2,3)"]),
    inplace_row("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transposed).doc("`transpose` in place.").samples(&["T(2,3), 0, 1"]),
    inplace_row("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", transposed).doc("Alias of `transpose_`.").samples(&["T(2,3), 0, 1"]),
    inplace_row("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transposed).doc("Alias of `transpose_`.").samples(&["T(2,3), 0, 1"]),
    inplace_row("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", |a| {
        let t = a.tensor(0)?;
        become_view(t, Unsqueeze(wrap_dim("unsqueeze_", a.int(1)?, t.ndim() + 1)?))
    })
    .doc("`unsqueeze` in place.")
    .samples(&["T(2,3), 0"]),
    inplace_row("squeeze_(Tensor(a!) self) -> Tensor(a!)", |a| squeezed(a, None)).doc("`squeeze` in place.").samples(&["T(1,3)"]),
    inplace_row("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", |a| squeezed(a, Some(&[a.int(1)?]))).doc("`squeeze` in place.").samples(&["T(1,3), 0"]),
    inplace_row("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", |a| squeezed(a, Some(&a.ints(1)?))).doc("`squeeze` in place.").samples(&["T(1,3), [0]"]),
    inplace_row("as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)", strided)
        .doc("`as_strided` in place.")
        .by_layout().samples(&["T(3,4), [2, 2], [4, 1]"]),
    inplace_row("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", |a| {
        resize("resize_", a.tensor(0)?, &crate::ops::create::sizes("resize_", &a.ints(1)?)?, a.opt_memory_format(2)?)
    })
    .doc("Gives the tensor other sizes, contiguous, and more memory where it needs more; new elements are not set. A RuntimeError for a tensor that requires a gradient.")
    .samples(&[]),
    inplace_row("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)", |a| {
        resize("resize_as_", a.tensor(0)?, a.tensor(1)?.shape(), a.opt_memory_format(2)?)
    })
    .places(place::TORCH | place::METHOD)
    .doc("`resize_` to the sizes of another tensor.")
    .samples(&[]),
    inplace_row("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", |a| set(a.tensor(0)?, a.tensor(1)?, a.tensor(1)?.layout().clone()))
        .doc("Points the tensor at the memory of `source`, with its sizes and strides.")
        .by_layout().samples(&["T(2,3), T(3)"]),
    inplace_row("set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)", set_strided)
        .doc("Points the tensor at the memory of `source`, with these sizes, strides and offset.")
        .by_layout().samples(&["T(2,3), T(4), 1, [2], [1]"]),
    inplace_row("set_(Tensor(a!) self) -> Tensor(a!)", |a| {
        let t = a.tensor(0)?;
        set(t, &Tensor::empty(&[0], t.dtype(), t.device())?, Layout::contiguous(&[0])?)
    })
    .doc("Points the tensor at memory of no bytes.")
    .by_layout().samples(&["T(2,3)"]),
    inplace_row("detach_(Tensor(a!) self) -> Tensor(a!)", detached)
        .doc("Forgets the history of the tensor, which becomes a leaf that requires no gradient. Views are refused.")
        .samples(&["T(2,3)"]),
];
