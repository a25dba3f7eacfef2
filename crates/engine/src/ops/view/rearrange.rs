//! Elements in another order: reversed, shifted around, turned.

use super::dims::distinct;
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{IndexMode, Indexing, Operand as Memory, backend};
use crate::ops::Outputs;
use crate::ops::table::{Args, Op, Out, function};
use crate::ops::{OutSpec, Primitive, copy_into};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{Error, Layout, MemoryFormat, Result, Strides, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// Dimensions reversed, in memory of its own: strides are never negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flip(pub SmallVec<[usize; 6]>);

impl Primitive for Flip {
    fn name(&self) -> &'static str {
        "flip"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let t = inputs[0];
        let layout = Layout::in_format("flip", t.shape(), MemoryFormat::Preserve, Some(t.layout()))?;
        Ok(smallvec![OutSpec { layout, dtype: t.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (x, out) = (inputs[0], &outputs[0]);
        if x.numel() == 0 {
            return Ok(());
        }
        // Walked in the order in which the result lies in memory.
        let order = out.layout().stride_order();
        let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
        let (mut from, mut to) = (Strides::new(), Strides::new());
        let mut start = 0;
        for &d in &order {
            let (n, step) = (x.shape()[d], x.strides()[d]);
            let reversed = self.0.contains(&d);
            if reversed {
                start += step * (n as isize - 1);
            }
            sizes.push(n);
            from.push(if reversed { -step } else { step });
            to.push(out.strides()[d]);
        }
        let first = x.data_ptr()?.wrapping_offset(start * x.dtype().size() as isize);
        let call = Indexing {
            op: "flip",
            mode: IndexMode::Get,
            wraps: false,
            sizes: &sizes,
            tensor: Memory { ptr: first, dtype: x.dtype(), strides: &from },
            values: Memory { ptr: out.data_ptr_mut()?, dtype: out.dtype(), strides: &to },
            indices: &[],
        };
        // SAFETY: from its last element backwards each dimension stays inside the input's layout.
        unsafe { backend(x.device())?.index(&call) }
    }

    fn vjp(&self, _: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind1(self, &[&grad])?)])
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(&Flip(self.0.iter().map(|d| d + 1).collect()))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A dimension shifted around: what leaves at the end comes in at the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Roll {
    /// By how much, less than the dimension's size.
    pub shift: usize,
    /// Which dimension.
    pub dim: usize,
}

impl Primitive for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![OutSpec { layout: Layout::contiguous(inputs[0].shape())?, dtype: inputs[0].dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (x, out) = (inputs[0], &outputs[0]);
        let n = x.shape()[self.dim];
        let part = |t: &Tensor, start: usize, length: usize| t.alias_with(t.layout().slice(self.dim, start, length, 1), t.dtype());
        copy_into(&part(out, self.shift, n - self.shift), &part(x, 0, n - self.shift))?;
        copy_into(&part(out, 0, self.shift), &part(x, n - self.shift, self.shift))
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        let n = cx.output_info(0).sizes[self.dim];
        let back = Roll { shift: (n - self.shift) % n.max(1), dim: self.dim };
        Ok(smallvec![Some(bind1(&back, &[&grad])?)])
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(&Roll { dim: self.dim + 1, ..self.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// These dimensions reversed, in memory of its own.
    pub fn flip(&self, dims: &[i64]) -> Result<Tensor> {
        let dims = distinct("flip", dims, self.ndim())?;
        bind1(&Flip(if self.ndim() == 0 { SmallVec::new() } else { dims }), &[self])
    }

    /// Dimensions shifted around by as much each; without dimensions, all elements in row-major order.
    pub fn roll(&self, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
        if shifts.is_empty() {
            return Err(Error::runtime("roll: `shifts` required"));
        }
        if dims.is_empty() && shifts.len() == 1 {
            let flat = self.contiguous()?.reshape(&[-1])?;
            return if self.numel() == 0 { self.copy() } else { flat.roll(shifts, &[0])?.reshape_to(self.shape()) };
        }
        if shifts.len() != dims.len() {
            return Err(Error::runtime(format!("roll: shifts and dimensions must align. shifts: {}, dims:{}", shifts.len(), dims.len())));
        }
        if self.ndim() == 0 {
            return Err(Error::index(format!("roll: Dimension specified as {} but tensor has no dimensions", dims[0])));
        }
        let mut out = self.clone();
        for (&shift, &dim) in shifts.iter().zip(dims) {
            let d = wrap_dim("roll", dim, self.ndim())?;
            let n = self.shape()[d] as i64;
            out = bind1(&Roll { shift: if n == 0 { 0 } else { shift.rem_euclid(n) as usize }, dim: d }, &[&out])?;
        }
        Ok(out)
    }

    /// The plane of two dimensions turned by `k` quarters, from the first towards the second.
    pub fn rot90(&self, k: i64, dims: &[i64]) -> Result<Tensor> {
        let &[a, b] = dims else {
            return Err(Error::runtime(format!("rot90: expected total rotation dims == 2, but got dims = {}", dims.len())));
        };
        if self.ndim() < 2 {
            return Err(Error::runtime(format!(
                "rot90: expected total dims >= 2, but got total dims = {} (shape {})",
                self.ndim(),
                show(self.shape())
            )));
        }
        if wrap_dim("rot90", a, self.ndim())? == wrap_dim("rot90", b, self.ndim())? {
            return Err(Error::runtime(format!("rot90: expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")));
        }
        match k.rem_euclid(4) {
            1 => self.flip(&[b])?.transpose(a, b),
            2 => self.flip(&[a, b]),
            3 => self.flip(&[a])?.transpose(a, b),
            _ => self.copy_in(MemoryFormat::Contiguous),
        }
    }
}

/// `fliplr`, `flipud`: one dimension reversed.
fn flipped(a: &Args, dim: i64) -> Result<Out> {
    let t = a.tensor(0)?;
    if t.ndim() as i64 <= dim {
        return Err(Error::runtime(format!("{}: Input must be >= {}-d, got shape {}", a.name, dim + 1, show(t.shape()))));
    }
    Ok(t.flip(&[dim])?.into())
}

pub(super) static OPS: &[Op] = &[
    function("flip(Tensor self, int[] dims) -> Tensor", |a| Ok(a.tensor(0)?.flip(&a.ints(1)?)?.into()))
        .without_out()
        .doc("The elements with the dimensions `dims` reversed, in memory of its own.")
        .samples(&["T(2,3), [1]", "T(2,3,2), [0, -1]"]),
    function("fliplr(Tensor self) -> Tensor", |a| flipped(a, 1)).without_out().doc("Dimension 1 reversed.").samples(&["T(2,3)"]),
    function("flipud(Tensor self) -> Tensor", |a| flipped(a, 0)).without_out().doc("Dimension 0 reversed.").samples(&["T(2,3)"]),
    function("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", |a| Ok(a.tensor(0)?.roll(&a.ints(1)?, &a.ints(2)?)?.into()))
        .without_out()
        .doc("The dimensions `dims` shifted around by `shifts`: what leaves at the end comes in at the beginning. Without `dims`, all elements in row-major order.")
        .samples(&["T(2,3), [1]", "T(2,3), [1, -1], [0, 1]", "T(4), [6], [0]"]),
    function("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", |a| Ok(a.tensor(0)?.rot90(a.int(1)?, &a.ints(2)?)?.into()))
        .without_out()
        .doc("The plane of the two dimensions `dims` turned by `k` quarters, from the first towards the second.")
        .samples(&["T(2,3)", "T(2,3), 2", "T(2,3,2), -1, [1, 2]"]),
];
