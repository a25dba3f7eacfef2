//! The gates of a recurrent cell as one primitive, and its derivative.

use super::recurrent_cell::Cell;
use super::{packed, vjp_of};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::join::cat;
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind;
use flambeau_base::{Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// From the products of input and hidden state, `[batch, 4 or 3 widths]`, and the memory or hidden state before, `[batch, width]`.
/// Outputs for LSTM: hidden state, memory, gates after their functions `[batch, 4 widths]`; for GRU: hidden state and `[batch,
/// 4 widths]`, gates and the hidden state's part of the new one.
#[derive(Clone, Copy, Debug)]
struct Gates {
    cell: Cell,
}

impl Gates {
    fn lstm(self) -> bool {
        self.cell == Cell::Lstm
    }

    /// Which output holds what the gates gave.
    fn active(self) -> usize {
        if self.lstm() { 2 } else { 1 }
    }
}

/// The hidden state and, for LSTM, the memory after a step.
pub(super) fn gates(cell: Cell, input: &Tensor, own: &Tensor, state: &Tensor) -> Result<SmallVec<[Tensor; 2]>> {
    let op = Gates { cell };
    let wanted = match *state.shape() {
        [rows, width] => [rows, cell.gates() * width],
        _ => [0, 0],
    };
    if state.ndim() != 2 || input.shape() != wanted || own.shape() != wanted {
        return Err(Error::runtime(format!(
            "{}: expected input and states of one batch size and 2 dimensions; products have shapes {} and {}, the state {}",
            cell.name(),
            show(input.shape()),
            show(own.shape()),
            show(state.shape())
        )));
    }
    Ok(bind(&op, &[input, own, state])?.into_iter().take(op.active()).collect())
}

impl Primitive for Gates {
    fn name(&self) -> &'static str {
        if self.lstm() { "lstm_gates" } else { "gru_gates" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let state = inputs[2];
        super::check_float(self.cell.name(), state.dtype())?;
        let spec = |width: usize| -> Result<OutSpec> {
            Ok(OutSpec { layout: Layout::contiguous(&[state.shape()[0], width])?, dtype: state.dtype() })
        };
        let width = state.shape()[1];
        let mut out = smallvec![spec(width)?];
        if self.lstm() {
            out.push(spec(width)?);
        }
        out.push(spec(4 * width)?);
        Ok(out)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let all = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        let call = layers::Gates {
            dtype: all[2].dtype(),
            lstm: self.lstm(),
            rows: all[2].shape()[0],
            width: all[2].shape()[1],
            input: all[0].data_ptr()?,
            own: all[1].data_ptr()?,
            state: all[2].data_ptr()?,
            hidden: outputs[0].data_ptr_mut()?,
            memory: if self.lstm() { outputs[1].data_ptr_mut()? } else { std::ptr::null_mut() },
            active: outputs[self.active()].data_ptr_mut()?,
        };
        // SAFETY: all are dense (outputs are made by `run`), of the shapes that `step` checked.
        unsafe { backend(all[2].device())?.gates(&call) }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (state, active) = (cx.input(2)?, cx.output(self.active())?);
        let or_zeros = |g: Option<Tensor>| g.map_or_else(|| state.zeros_like(), Ok);
        let gh = or_zeros(grads[0].take())?;
        let mut found: SmallVec<[Tensor; 3]> = match self.lstm() {
            true => {
                let (gc, memory) = (or_zeros(grads[1].take())?, cx.output(1)?);
                bind(&GatesBackward(*self), &[&gh, &gc, &active, &state, &memory])?.into_iter().collect()
            }
            false => bind(&GatesBackward(*self), &[&gh, &active, &state])?.into_iter().collect(),
        };
        if let Some(more) = grads[self.active()].take() {
            for (sum, part) in found.iter_mut().zip(through_active(self.cell, &active, &more)?) {
                *sum = sum.add(&part)?;
            }
        }
        Ok(match self.lstm() {
            true => smallvec![Some(found[0].clone()), Some(found[0].clone()), Some(found[1].clone())],
            false => found.into_iter().map(Some).collect(),
        })
    }

    fn reads(&self) -> Reads {
        Reads::both(0b100, if self.lstm() { 0b110 } else { 0b10 })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The slope of a sigmoid, or of `tanh`, of which `y` is the value.
fn slope(y: &Tensor, sigmoid: bool) -> Result<Tensor> {
    if sigmoid { y.sub(&y.square()?) } else { y.square()?.neg()?.add(1.0) }
}

/// What a gradient of the gates' values gives to the gates.
fn through_active(cell: Cell, active: &Tensor, g: &Tensor) -> Result<Vec<Tensor>> {
    let (y, g) = (active.chunk(4, -1)?, g.chunk(4, -1)?);
    if cell == Cell::Lstm {
        let parts = (0..4).map(|k| g[k].mul(&slope(&y[k], k != 2)?)).collect::<Result<Vec<_>>>()?;
        return Ok(vec![cat(&parts.iter().collect::<Vec<_>>(), -1)?]);
    }
    let new = g[2].mul(&slope(&y[2], false)?)?;
    let reset = g[0].add(&new.mul(&y[3])?)?.mul(&slope(&y[0], true)?)?;
    let keep = g[1].mul(&slope(&y[1], true)?)?;
    let own = new.mul(&y[0])?.add(&g[3])?;
    Ok(vec![cat(&[&reset, &keep, &new], -1)?, cat(&[&reset, &keep, &own], -1)?])
}

/// The derivative of [`Gates`]. For LSTM from the gradients of hidden state and memory, the gates' values, and the memories before
/// and after to the gradients of gates and memory; for GRU from the gradient of the hidden state, the gates' values and the hidden
/// state before to the gradients of both products and the hidden state.
#[derive(Clone, Copy, Debug)]
struct GatesBackward(Gates);

impl GatesBackward {
    fn state(self) -> usize {
        if self.0.lstm() { 3 } else { 2 }
    }
}

/// [`GatesBackward`] in tensor operations.
fn backward_composite(cell: Cell, all: &[Tensor]) -> Result<Vec<Tensor>> {
    if cell == Cell::Lstm {
        let [gh, gc, active, before, memory] = [0, 1, 2, 3, 4].map(|i| &all[i]);
        let y = active.chunk(4, -1)?;
        let t = memory.tanh()?;
        let gc = gc.add(&gh.mul(&y[3])?.mul(&slope(&t, false)?)?)?;
        let parts = [
            gc.mul(&y[2])?.mul(&slope(&y[0], true)?)?,
            gc.mul(before)?.mul(&slope(&y[1], true)?)?,
            gc.mul(&y[0])?.mul(&slope(&y[2], false)?)?,
            gh.mul(&t)?.mul(&slope(&y[3], true)?)?,
        ];
        return Ok(vec![cat(&parts.iter().collect::<Vec<_>>(), -1)?, gc.mul(&y[1])?]);
    }
    let (g, h) = (&all[0], &all[2]);
    let y = all[1].chunk(4, -1)?;
    let new = g.mul(&y[1].neg()?.add(1.0)?)?.mul(&slope(&y[2], false)?)?;
    let keep = g.mul(&h.sub(&y[2])?)?.mul(&slope(&y[1], true)?)?;
    let reset = new.mul(&y[3])?.mul(&slope(&y[0], true)?)?;
    let own = new.mul(&y[0])?;
    Ok(vec![cat(&[&reset, &keep, &new], -1)?, cat(&[&reset, &keep, &own], -1)?, g.mul(&y[1])?])
}

impl Primitive for GatesBackward {
    fn name(&self) -> &'static str {
        if self.0.lstm() { "lstm_gates_backward" } else { "gru_gates_backward" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let state = inputs[self.state()];
        let spec = |width: usize| -> Result<OutSpec> {
            Ok(OutSpec { layout: Layout::contiguous(&[state.shape()[0], width])?, dtype: state.dtype() })
        };
        let width = state.shape()[1];
        Ok(match self.0.lstm() {
            true => smallvec![spec(4 * width)?, spec(width)?],
            false => smallvec![spec(3 * width)?, spec(3 * width)?, spec(width)?],
        })
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let all = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 5]>>>()?;
        let lstm = self.0.lstm();
        let state = &all[self.state()];
        let none = std::ptr::null_mut();
        let call = layers::GatesBackward {
            dtype: state.dtype(),
            lstm,
            rows: state.shape()[0],
            width: state.shape()[1],
            grad: all[0].data_ptr()?,
            grad_memory: if lstm { all[1].data_ptr()? } else { none },
            active: all[self.state() - 1].data_ptr()?,
            state: state.data_ptr()?,
            memory: if lstm { all[4].data_ptr()? } else { none },
            input: outputs[0].data_ptr_mut()?,
            own: if lstm { none } else { outputs[1].data_ptr_mut()? },
            state_grad: outputs[outputs.len() - 1].data_ptr_mut()?,
        };
        // SAFETY: all are dense (outputs are made by `run`), of the shapes of the forward pass.
        unsafe { backend(state.device())?.gates_backward(&call) }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let inputs = (0..cx.inputs()).map(|i| cx.input(i)).collect::<Result<Vec<_>>>()?;
        let wanted: Vec<bool> = (0..cx.inputs()).map(|i| cx.needs(i)).collect();
        let cell = self.0.cell;
        Ok(vjp_of(&|all| backward_composite(cell, all), &inputs, &wanted, grads)?.into_iter().collect())
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b11111)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
