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

    /// How many sums a number of the state has.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            _ => 1,
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

/// The state after a step; `gates` are the products of the input.
pub(super) fn step(cell: Cell, gates: &Tensor, state: &State, w: &Weights) -> Result<State> {
    let own = state.hidden.linear(w.hidden, w.hidden_bias)?;
    match (cell, &state.memory) {
        (Cell::Lstm, Some(memory)) => {
            let found = super::recurrent_gates::gates(cell, gates, &own, memory)?;
            let hidden = match w.projection {
                Some(p) => found[0].linear(p, None)?,
                None => found[0].clone(),
            };
            Ok(State { hidden, memory: Some(found[1].clone()) })
        }
        (Cell::Gru, _) => {
            let hidden = super::recurrent_gates::gates(cell, gates, &own, &state.hidden)?.swap_remove(0);
            Ok(State { hidden, memory: None })
        }
        (Cell::Relu, _) => Ok(State { hidden: gates.add(&own)?.relu()?, memory: None }),
        _ => Ok(State { hidden: gates.add(&own)?.tanh()?, memory: None }),
    }
}
