//! The two primitives of this family: elements picked out by index tensors, and values placed there.
//!
//! Which element a value meets is an [`Address`]. [`Pick`] reads elements, [`Place`] writes (or adds to,
//! multiplies, ...) them; each is the other's derivative. Everything from `x[i]` to `scatter_reduce` is one of them.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{IndexMode, IndexOperand, Indexing, Operand, backend};
use crate::ops::Outputs;
use crate::ops::{OutSpec, Primitive, Reads, copy_into, expandable};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, ErrorKind, Layout, MemoryFormat, Result, Strides, broadcast_all, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// Which dimensions of a tensor the indices stand for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Index tensors, broadcast together, in the place of these dimensions: NumPy's rule. Their common shape stands where
    /// the dimensions stood if these are adjacent, else in front.
    Dims(SmallVec<[usize; 4]>),
    /// One index tensor of as many dimensions as the tensor: it names the place in this dimension, and its own places are
    /// those in the others (`gather`, `scatter`).
    Along(usize),
}

/// How the values of a call meet the elements of the tensor.
struct Walk {
    sizes: Dims,
    tensor: Strides,
    indices: SmallVec<[Index; 2]>,
}

struct Index {
    strides: Strides,
    dim: usize,
    size: usize,
    step: isize,
}

impl Walk {
    /// Values ordered in memory as the tensor's elements that they meet, and the indices, are.
    fn layout(&self) -> Result<Layout> {
        let strided = |strides: &Strides| Layout::strided("index", &self.sizes, strides, 0);
        let mut layouts: SmallVec<[Layout; 4]> = smallvec![strided(&self.tensor)?];
        for i in &self.indices {
            layouts.push(strided(&i.strides)?);
        }
        Layout::of_result(&self.sizes, &layouts.iter().collect::<SmallVec<[&Layout; 4]>>())
    }
}

impl Address {
    /// How index tensors address a layout.
    fn walk(&self, op: &str, layout: &Layout, indices: &[&Tensor]) -> Result<Walk> {
        match self {
            Address::Dims(dims) => walk_dims(dims, layout, indices),
            Address::Along(dim) => walk_along(op, *dim, layout, indices[0]),
        }
    }
}

fn walk_dims(dims: &[usize], layout: &Layout, indices: &[&Tensor]) -> Result<Walk> {
    let common = broadcast_all("index", indices.iter().map(|t| t.shape())).map_err(|_| {
        let shapes: Vec<String> = indices.iter().map(|t| show(t.shape())).collect();
        Error::index(format!("index: shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes.join(", ")))
    })?;
    let adjacent = dims.windows(2).all(|w| w[0] + 1 == w[1]);
    let before = if adjacent { dims[0] } else { 0 };
    let kept: SmallVec<[usize; 6]> = (0..layout.ndim()).filter(|d| !dims.contains(d)).collect();
    let picked = common.len();
    let mut sizes: Dims = kept[..before].iter().map(|&d| layout.sizes()[d]).collect();
    let mut tensor: Strides = kept[..before].iter().map(|&d| layout.strides()[d]).collect();
    sizes.extend_from_slice(&common);
    tensor.extend(std::iter::repeat_n(0, picked));
    sizes.extend(kept[before..].iter().map(|&d| layout.sizes()[d]));
    tensor.extend(kept[before..].iter().map(|&d| layout.strides()[d]));
    let of = |(t, &dim): (&&Tensor, &usize)| {
        let mut strides: Strides = SmallVec::from_elem(0, sizes.len());
        strides[before..before + picked].copy_from_slice(t.layout().broadcast_to(&common).strides());
        Index { strides, dim, size: layout.sizes()[dim], step: layout.strides()[dim] }
    };
    let indices = indices.iter().zip(dims).map(of).collect();
    Ok(Walk { sizes, tensor, indices })
}

fn walk_along(op: &str, dim: usize, layout: &Layout, index: &Tensor) -> Result<Walk> {
    if index.ndim().max(1) != layout.ndim().max(1) {
        return Err(Error::runtime(format!(
            "{op}: Index tensor must have the same number of dimensions as input tensor: index {}, input {}",
            show(index.shape()),
            show(layout.sizes())
        )));
    }
    // A scalar counts as a vector of one element.
    let (size, step) = if layout.ndim() == 0 { (1, 0) } else { (layout.sizes()[dim], layout.strides()[dim]) };
    let mut tensor = Strides::new();
    for d in 0..index.ndim() {
        if d != dim && index.shape()[d] > layout.sizes()[d] && index.numel() > 0 {
            return Err(Error::runtime(format!(
                "{op}: Size does not match at dimension {d} expected index {} to be no larger than self {} apart from dimension {dim}",
                show(index.shape()),
                show(layout.sizes())
            )));
        }
        tensor.push(if d == dim { 0 } else { layout.strides()[d] });
    }
    let along = Index { strides: Strides::from_slice(index.strides()), dim, size, step };
    Ok(Walk { sizes: Dims::from_slice(index.shape()), tensor, indices: smallvec![along] })
}

impl Address {
    /// How a batch is addressed: with the batch as one more dimension that the indices name. Index tensors `from` on of the
    /// inputs are those of one example.
    fn in_batch(&self, batch: &Batch, from: usize) -> Result<Option<(Address, SmallVec<[Tensor; 3]>)>> {
        let mut indices: SmallVec<[Tensor; 3]> = SmallVec::new();
        match self {
            Address::Along(_) if batch.examples[0].ndim() == 0 || batch.examples[from].ndim() == 0 => Ok(None),
            Address::Along(dim) => {
                indices.push(batch.front(from)?);
                Ok(Some((Address::Along(dim + 1), indices)))
            }
            Address::Dims(dims) => {
                let adjacent = dims.windows(2).all(|w| w[0] + 1 == w[1]);
                if adjacent && !batch.has_batch[from..].contains(&true) {
                    indices.extend(batch.inputs[from..].iter().map(|t| (*t).clone()));
                    return Ok(Some((Address::Dims(dims.iter().map(|d| d + 1).collect()), indices)));
                }
                // The examples' own indices meet a number for each example: their dimensions come first, so these must too.
                if adjacent && dims[0] != 0 {
                    return Ok(None);
                }
                let ndim = batch.examples[from..].iter().map(|t| t.ndim()).max().unwrap_or(0);
                let mut sizes = Dims::from_slice(&[batch.size]);
                sizes.extend(std::iter::repeat_n(1, ndim));
                let device = batch.inputs[0].device();
                indices.push(Tensor::arange(0, batch.size as i64, 1, Some(DType::I64), device)?.reshape_to(&sizes)?);
                for i in from..batch.inputs.len() {
                    indices.push(batch.aligned(i, ndim)?);
                }
                let mut all: SmallVec<[usize; 4]> = smallvec![0];
                all.extend(dims.iter().map(|d| d + 1));
                Ok(Some((Address::Dims(all), indices)))
            }
        }
    }
}

/// Runs the kernel.
fn run(
    op: &'static str,
    address: &Address,
    mode: IndexMode,
    wraps: bool,
    tensor: &Tensor,
    values: &Tensor,
    indices: &[&Tensor],
) -> Result<()> {
    let walk = address.walk(op, tensor.layout(), indices)?;
    if walk.sizes.contains(&0) {
        return Ok(());
    }
    let read = mode == IndexMode::Get;
    let at = |t: &Tensor, write: bool| if write { t.data_ptr_mut() } else { t.data_ptr() };
    let value_strides = Strides::from_slice(values.layout().broadcast_to(&walk.sizes).strides());
    let mut operands: SmallVec<[IndexOperand; 2]> = SmallVec::new();
    for (t, i) in indices.iter().zip(&walk.indices) {
        operands.push(IndexOperand {
            memory: Operand { ptr: t.data_ptr()?, dtype: t.dtype(), strides: &i.strides },
            dim: i.dim,
            size: i.size,
            step: i.step,
        });
    }
    let call = Indexing {
        op,
        mode,
        wraps,
        sizes: &walk.sizes,
        tensor: Operand { ptr: at(tensor, !read)?, dtype: tensor.dtype(), strides: &walk.tensor },
        values: Operand { ptr: at(values, read)?, dtype: values.dtype(), strides: &value_strides },
        indices: &operands,
    };
    // SAFETY: kept dimensions stay inside the tensor's layout, and so does every index in range; the kernel checks those.
    let done = unsafe { backend(tensor.device())?.index(&call) };
    // PyTorch's class for these.
    let runtime = matches!(address, Address::Along(_)) || op == "index_add";
    done.map_err(|e| if runtime && e.kind() == ErrorKind::Index { Error::runtime(e.message()) } else { e })
}

/// Elements picked out by index tensors. Inputs: the tensor, the index tensors (`int64`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pick {
    /// The name that errors and graphs show.
    pub name: &'static str,
    /// Which elements.
    pub address: Address,
    /// Whether no element is picked twice, as with a mask.
    pub distinct: bool,
    /// Whether negative indices count from the end.
    pub wraps: bool,
}

impl Primitive for Pick {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        check_indices(self.name, &inputs[1..])?;
        let walk = self.address.walk(self.name, x.layout(), &inputs[1..])?;
        if let Some(i) = walk.indices.iter().find(|i| i.size == 0)
            && !walk.sizes.contains(&0)
        {
            return Err(Error::index(format!("{}: index is out of bounds for dimension {} with size 0", self.name, i.dim)));
        }
        let layout = if self.wraps && !x.is_contiguous() { walk.layout()? } else { Layout::contiguous(&walk.sizes)? };
        Ok(smallvec![OutSpec { layout, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        run(self.name, &self.address, IndexMode::Get, self.wraps, inputs[0], &outputs[0], &inputs[1..])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mut out: Grads = smallvec![None; cx.inputs()];
        let (Some(grad), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(out) };
        let indices: SmallVec<[Tensor; 2]> = (1..cx.inputs()).map(|i| cx.input(i)).collect::<Result<_>>()?;
        let zeros = Tensor::zeros(&info.sizes, grad.dtype(), grad.device())?;
        let mode = if self.distinct { IndexMode::Put } else { IndexMode::Add };
        out[0] = Some(place("index_put", &self.address, mode, &zeros, &grad, &indices)?);
        Ok(out)
    }

    fn reads(&self) -> Reads {
        Reads::inputs(!1)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let Some((address, indices)) = self.address.in_batch(batch, 1)? else { return Ok(None) };
        let x = batch.front(0)?;
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![&x];
        inputs.extend(&indices);
        crate::transform::bind(&Pick { address, ..self.clone() }, &inputs).map(Some)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A tensor with values put (added, ...) where index tensors say. Inputs: the tensor, the values, which broadcast, the index tensors (`int64`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The name that errors and graphs show.
    pub name: &'static str,
    /// Where.
    pub address: Address,
    /// How.
    pub mode: IndexMode,
    /// Whether negative indices count from the end, and the result lies in memory as the tensor does.
    pub wraps: bool,
}

impl Primitive for Place {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (x, values) = (inputs[0], inputs[1]);
        check_indices(self.name, &inputs[2..])?;
        let walk = self.address.walk(self.name, x.layout(), &inputs[2..])?;
        if x.dtype() != values.dtype() {
            return Err(Error::runtime(format!(
                "{}: Expected self.dtype to be equal to src.dtype: the tensor is {}, the values are {}",
                self.name,
                x.dtype(),
                values.dtype()
            )));
        }
        if !expandable(values.shape(), &walk.sizes) {
            return Err(Error::runtime(format!(
                "{}: shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
                self.name,
                show(values.shape()),
                show(&walk.sizes)
            )));
        }
        let format = if self.wraps { MemoryFormat::Preserve } else { MemoryFormat::Contiguous };
        let layout = Layout::in_format(self.name, x.shape(), format, Some(x.layout()))?;
        Ok(smallvec![OutSpec { layout, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (x, values, out) = (inputs[0], inputs[1], &outputs[0]);
        // Sums of small numbers would stop growing in half precision.
        if x.dtype().is_reduced_float() && matches!(self.mode, IndexMode::Add | IndexMode::Mul) {
            let wide = |t: &Tensor| -> Result<Tensor> {
                let w = Tensor::empty(t.shape(), DType::F32, t.device())?;
                copy_into(&w, t)?;
                Ok(w)
            };
            let (sum, values) = (wide(x)?, wide(values)?);
            run(self.name, &self.address, self.mode, self.wraps, &sum, &values, &inputs[2..])?;
            return copy_into(out, &sum);
        }
        if crate::tensor::overlap(x, out) != crate::tensor::Overlap::Same {
            copy_into(out, x)?;
        }
        run(self.name, &self.address, self.mode, self.wraps, out, values, &inputs[2..])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mut out: Grads = smallvec![None; cx.inputs()];
        let Some(grad) = grads[0].take() else { return Ok(out) };
        let indices: SmallVec<[Tensor; 2]> = (2..cx.inputs()).map(|i| cx.input(i)).collect::<Result<_>>()?;
        match self.mode {
            IndexMode::Put | IndexMode::Get => {
                if cx.needs(0) {
                    let zero = Tensor::zeros(&[], grad.dtype(), grad.device())?;
                    out[0] = Some(place("index_put", &self.address, IndexMode::Put, &grad, &zero, &indices)?);
                }
                if cx.needs(1) {
                    out[1] = Some(self.of_put_values(cx, &grad, &indices)?);
                }
            }
            IndexMode::Add => {
                if cx.needs(1) {
                    out[1] = Some(pick("index", &self.address, &grad, &indices)?);
                }
                out[0] = cx.needs(0).then_some(grad);
            }
            IndexMode::Mul | IndexMode::Max | IndexMode::Min => super::reduce::vjp(self, cx, &grad, &indices, &mut out)?,
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        match self.mode {
            IndexMode::Put | IndexMode::Add | IndexMode::Get => Reads::inputs(!3),
            IndexMode::Mul | IndexMode::Max | IndexMode::Min => Reads::both(u32::MAX, 1),
        }
    }

    fn updates(&self) -> bool {
        true
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let Some((address, indices)) = self.address.in_batch(batch, 2)? else { return Ok(None) };
        let x = batch.front(0)?;
        // The values of an example broadcast against what its indices name.
        let example = self.address.walk(self.name, batch.examples[0].layout(), &batch.examples[2..])?;
        let values = batch.aligned(1, example.sizes.len())?;
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![&x, &values];
        inputs.extend(&indices);
        crate::transform::bind(&Place { address, ..self.clone() }, &inputs).map(Some)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Place {
    /// The gradient of values that were put. One number for all places counts each place once, however often it is named.
    fn of_put_values(&self, cx: &Cx, grad: &Tensor, indices: &[Tensor]) -> Result<Tensor> {
        let Some(info) = cx.input_info(1) else { return Ok(grad.clone()) };
        if info.sizes.iter().any(|&n| n != 1) {
            return pick("index", &self.address, grad, indices);
        }
        let one = Tensor::full(&[], 1, grad.dtype(), grad.device())?;
        let touched = place("index_put", &self.address, IndexMode::Put, &grad.zeros_like()?, &one, indices)?;
        grad.mul(&touched)?.sum()?.reshape_to(&info.sizes)
    }
}

fn check_indices(op: &str, indices: &[&Tensor]) -> Result<()> {
    match indices.iter().find(|t| t.dtype() != DType::I64) {
        Some(t) => Err(Error::runtime(format!("{op}: expected int64 for index, got {}", t.dtype()))),
        None => Ok(()),
    }
}

/// Carries out [`Pick`].
pub(crate) fn pick(name: &'static str, address: &Address, tensor: &Tensor, indices: &[Tensor]) -> Result<Tensor> {
    let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![tensor];
    inputs.extend(indices);
    bind1(&Pick { name, address: address.clone(), distinct: false, wraps: true }, &inputs)
}

/// Carries out [`Place`].
pub(crate) fn place(
    name: &'static str,
    address: &Address,
    mode: IndexMode,
    tensor: &Tensor,
    values: &Tensor,
    indices: &[Tensor],
) -> Result<Tensor> {
    let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![tensor, values];
    inputs.extend(indices);
    bind1(&Place { name, address: address.clone(), mode, wraps: true }, &inputs)
}
