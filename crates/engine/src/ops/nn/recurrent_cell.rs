//! One step of a recurrent network.

use crate::Tensor;
use crate::ops::join::cat;
use flambeau_base::Result;

/// What a step computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cell {
    /// Long short-term memory.
    Lstm,
    /// A gated recurrent unit.
    Gru,
    /// `tanh` of the sum.
    Tanh,
    /// `max(0, x)` of the sum.
    Relu,
}

impl Cell {
    /// PyTorch's name for a network of such cells.
    pub fn name(self) -> &'static str {
        match self {
            Cell::Lstm => "lstm",
            Cell::Gru => "gru",
            Cell::Tanh => "rnn_tanh",
            Cell::Relu => "rnn_relu",
        }
    }

    /// How many tensors a state has.
    pub fn states(self) -> usize {
        if self == Cell::Lstm { 2 } else { 1 }
    }
}

/// The state of a cell: `[batch, width]`.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub hidden: Tensor,
    /// The memory of an LSTM.
    pub memory: Option<Tensor>,
}

impl State {
    /// Of some members of the batch.
    pub fn rows(&self, first: usize, n: usize) -> Result<State> {
        let of = |t: &Tensor| t.narrow(0, first as i64, n as i64);
        Ok(State { hidden: of(&self.hidden)?, memory: self.memory.as_ref().map(of).transpose()? })
    }

    /// Of several parts of a batch.
    pub fn joined(parts: &[State]) -> Result<State> {
        let hidden = cat(&parts.iter().map(|s| &s.hidden).collect::<Vec<_>>(), 0)?;
        let memories: Vec<&Tensor> = parts.iter().filter_map(|s| s.memory.as_ref()).collect();
        Ok(State { hidden, memory: if memories.is_empty() { None } else { Some(cat(&memories, 0)?) } })
    }
}

/// The weights of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights<'a> {
    pub input: &'a Tensor,
    pub hidden: &'a Tensor,
    pub input_bias: Option<&'a Tensor>,
    pub hidden_bias: Option<&'a Tensor>,
    /// From memories to narrower hidden states.
    pub projection: Option<&'a Tensor>,
}

/// The state after a step. `gates` are the products of the input, `hidden` is the transposed weight of hidden states.
pub(super) fn step(cell: Cell, gates: &Tensor, state: &State, hidden: &Tensor, w: &Weights) -> Result<State> {
    let mut own = state.hidden.matmul(hidden)?;
    if let Some(bias) = w.hidden_bias {
        own = own.add(bias)?;
    }
    match (cell, &state.memory) {
        (Cell::Lstm, Some(memory)) => {
            let all = gates.add(&own)?.chunk(4, -1)?;
            let kept = all[1].sigmoid()?.mul(memory)?;
            let memory = kept.add(&all[0].sigmoid()?.mul(&all[2].tanh()?)?)?;
            let mut hidden = all[3].sigmoid()?.mul(&memory.tanh()?)?;
            if let Some(p) = w.projection {
                hidden = hidden.linear(p, None)?;
            }
            Ok(State { hidden, memory: Some(memory) })
        }
        (Cell::Gru, _) => {
            let (of_input, own) = (gates.chunk(3, -1)?, own.chunk(3, -1)?);
            let reset = of_input[0].add(&own[0])?.sigmoid()?;
            let keep = of_input[1].add(&own[1])?.sigmoid()?;
            let new = of_input[2].add(&reset.mul(&own[2])?)?.tanh()?;
            Ok(State { hidden: state.hidden.sub(&new)?.mul(&keep)?.add(&new)?, memory: None })
        }
        (Cell::Relu, _) => Ok(State { hidden: gates.add(&own)?.relu()?, memory: None }),
        _ => Ok(State { hidden: gates.add(&own)?.tanh()?, memory: None }),
    }
}
