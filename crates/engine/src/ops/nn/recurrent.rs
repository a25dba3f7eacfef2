//! Recurrent networks: long short-term memory, gated recurrent units and plain ones, over padded and packed sequences.
//!
//! Sources: Hochreiter and Schmidhuber, "Long short-term memory", 1997; Cho and others, "Learning phrase representations
//! using RNN encoder-decoder for statistical machine translation", 2014. The products of all inputs of a layer are one
//! matrix product; each step then multiplies the hidden state alone.

use super::recurrent_cell::{Cell, State, Weights, step};
use crate::Tensor;
use crate::ops::join::{cat, stack};
use crate::ops::table::{Args, Op, Out, function, place};
use flambeau_base::{DType, Error, Result, show};
use smallvec::smallvec;

/// How the layers of a recurrent network are put together.
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    /// What a step computes.
    pub cell: Cell,
    /// Whether products have a bias.
    pub biases: bool,
    /// The number of layers.
    pub layers: usize,
    /// Probability with which outputs between layers are dropped.
    pub dropout: f64,
    /// Whether they are.
    pub training: bool,
    /// Whether a second network runs backwards in time.
    pub bidirectional: bool,
    /// Whether the batch is the first dimension.
    pub batch_first: bool,
}

impl Recurrent {
    fn directions(&self) -> usize {
        1 + self.bidirectional as usize
    }

    /// The weights of each layer and direction.
    fn weights<'a>(&self, params: &[&'a Tensor], projected: bool) -> Result<Vec<Weights<'a>>> {
        let op = self.cell.name();
        let each = 2 + if self.biases { 2 } else { 0 } + projected as usize;
        let cells = self.layers * self.directions();
        if params.len() != each * cells {
            return Err(Error::runtime(format!(
                "{op}: got an incorrect number of RNN parameters: {} layers with {} direction(s) have {} tensors, but got {}",
                self.layers,
                self.directions(),
                each * cells,
                params.len()
            )));
        }
        let one = |p: &[&'a Tensor]| Weights {
            input: p[0],
            hidden: p[1],
            input_bias: self.biases.then(|| p[2]),
            hidden_bias: self.biases.then(|| p[3]),
            projection: projected.then(|| p[each - 1]),
        };
        Ok(params.chunks_exact(each).map(one).collect())
    }

    /// The states before the first step of each layer and direction.
    fn states(&self, hx: &[&Tensor], batch: usize) -> Result<Vec<State>> {
        let op = self.cell.name();
        let cells = self.layers * self.directions();
        if hx.len() != self.cell.states() {
            return Err(Error::runtime(format!("{op}: expects {} hidden states, got {}", self.cell.states(), hx.len())));
        }
        for t in hx {
            if t.ndim() != 3 || t.shape()[0] != cells || t.shape()[1] != batch {
                return Err(Error::runtime(format!("{op}: Expected hidden size ({cells}, {batch}, width), got {}", show(t.shape()))));
            }
        }
        let at = |t: &Tensor, i: usize| t.select(0, i as i64);
        (0..cells).map(|i| Ok(State { hidden: at(hx[0], i)?, memory: hx.get(1).map(|t| at(t, i)).transpose()? })).collect()
    }

    /// Runs all layers over a sequence.
    fn run(&self, x: &Sequence, hx: &[&Tensor], params: &[&Tensor]) -> Result<(Tensor, Vec<State>)> {
        let projected = self.cell == Cell::Lstm && hx.len() == 2 && hx[0].ndim() == 3 && hx[0].shape().last() != hx[1].shape().last();
        let weights = self.weights(params, projected)?;
        let states = self.states(hx, x.batch())?;
        check(self.cell, &x.data, &weights[0], &states[0])?;
        let mut data = x.data.clone();
        let mut last = Vec::new();
        for layer in 0..self.layers {
            let mut outputs = Vec::new();
            for direction in 0..self.directions() {
                let i = layer * self.directions() + direction;
                let gates = data.linear(weights[i].input, weights[i].input_bias)?;
                let (out, state) = x.scan(self.cell, &gates, states[i].clone(), &weights[i], direction == 1)?;
                outputs.push(out);
                last.push(state);
            }
            data = match &outputs[..] {
                [one] => one.clone(),
                both => cat(&both.iter().collect::<Vec<_>>(), -1)?,
            };
            if self.dropout != 0.0 && self.training && layer + 1 < self.layers {
                data = data.dropout(self.dropout, true)?;
            }
        }
        Ok((data, last))
    }

    /// The results as PyTorch gives them: outputs, then the last hidden states, then the last memories.
    fn finish(&self, x: &Sequence, hx: &[&Tensor], params: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (mut out, last) = self.run(x, hx, params)?;
        if self.batch_first && x.sizes.is_none() {
            out = out.transpose(0, 1)?;
        }
        let mut found = vec![out, stack(&last.iter().map(|s| &s.hidden).collect::<Vec<_>>(), 0)?];
        if self.cell == Cell::Lstm {
            found.push(stack(&last.iter().filter_map(|s| s.memory.as_ref()).collect::<Vec<_>>(), 0)?);
        }
        Ok(found)
    }
}

fn check(cell: Cell, x: &Tensor, weights: &Weights, state: &State) -> Result<()> {
    let op = cell.name();
    let features = weights.input.shape().get(1).copied().unwrap_or(0);
    if x.shape().last() != Some(&features) {
        return Err(Error::runtime(format!(
            "{op}: input.size(-1) must be equal to input_size. Expected {features}, got {}",
            show(x.shape())
        )));
    }
    let width = weights.hidden.shape().get(1).copied().unwrap_or(0);
    if state.hidden.shape().last() != Some(&width) {
        return Err(Error::runtime(format!("{op}: Expected hidden states of width {width}, got {}", show(state.hidden.shape()))));
    }
    let sums = cell.gates() * weights.projection.map_or(width, |p| p.shape().get(1).copied().unwrap_or(0));
    let fits = |t: &Tensor| t.shape().first() == Some(&sums);
    let biases = weights.input_bias.iter().chain(&weights.hidden_bias).all(|b| fits(b));
    let memory = state.memory.as_ref().is_none_or(|m| m.shape().last().map(|n| cell.gates() * n) == Some(sums));
    if !(fits(weights.input) && fits(weights.hidden) && biases && memory) {
        return Err(Error::runtime(format!(
            "{op}: expected weights and biases of {sums} rows, {} for each number of the state, but got weights {} and {}",
            cell.gates(),
            show(weights.input.shape()),
            show(weights.hidden.shape())
        )));
    }
    if state.hidden.dtype() != x.dtype() {
        return Err(Error::runtime(format!(
            "{op}: input and hidden states must have one dtype, got {} and {}",
            x.dtype(),
            state.hidden.dtype()
        )));
    }
    Ok(())
}

/// A sequence: `[time, batch, features]`, or packed `[all, features]` with the size of the batch at each time, which never grows.
struct Sequence {
    data: Tensor,
    sizes: Option<Vec<usize>>,
}

impl Sequence {
    fn padded(op: &str, x: &Tensor, batch_first: bool) -> Result<Sequence> {
        if x.ndim() != 3 {
            return Err(Error::runtime(format!("{op}: input must have 3 dimensions, got {} in shape {}", x.ndim(), show(x.shape()))));
        }
        let data = if batch_first { x.transpose(0, 1)? } else { x.clone() };
        if data.shape()[0] == 0 {
            return Err(Error::runtime(format!(
                "{op}: Expected sequence length to be larger than 0 in RNN, got input of shape {}",
                show(x.shape())
            )));
        }
        Ok(Sequence { data, sizes: None })
    }

    fn packed(op: &str, x: &Tensor, sizes: &Tensor) -> Result<Sequence> {
        let wrong = |why: &str| {
            Error::runtime(format!("{op}: {why}, for data of shape {} and batch_sizes of shape {}", show(x.shape()), show(sizes.shape())))
        };
        if x.ndim() != 2 || sizes.ndim() != 1 || sizes.dtype() != DType::I64 {
            return Err(wrong("expected packed data of 2 dimensions and int64 batch_sizes of one"));
        }
        let all: Vec<usize> = sizes.to_vec::<i64>()?.into_iter().map(|n| n.max(0) as usize).collect();
        if all.is_empty() || all.iter().sum::<usize>() != x.shape()[0] || all.windows(2).any(|w| w[1] > w[0]) || all[all.len() - 1] == 0 {
            return Err(wrong("batch_sizes must fall, be positive and add up to the rows of data"));
        }
        Ok(Sequence { data: x.clone(), sizes: Some(all) })
    }

    fn batch(&self) -> usize {
        match &self.sizes {
            Some(sizes) => sizes[0],
            None => self.data.shape()[1],
        }
    }

    /// Runs a cell over time: its outputs in the order of the input, and the state after the last step of each sequence.
    fn scan(&self, cell: Cell, gates: &Tensor, first: State, w: &Weights, backwards: bool) -> Result<(Tensor, State)> {
        match &self.sizes {
            None => {
                let mut steps = gates.unbind(0)?;
                if backwards {
                    steps.reverse();
                }
                let mut state = first;
                let mut outputs = Vec::with_capacity(steps.len());
                for gates in &steps {
                    state = step(cell, gates, &state, w)?;
                    outputs.push(state.hidden.clone());
                }
                if backwards {
                    outputs.reverse();
                }
                Ok((stack(&outputs.iter().collect::<Vec<_>>(), 0)?, state))
            }
            Some(sizes) if backwards => scan_packed_backwards(cell, gates, first, w, sizes),
            Some(sizes) => scan_packed(cell, gates, first, w, sizes),
        }
    }
}

fn split(gates: &Tensor, sizes: &[usize]) -> Result<Vec<Tensor>> {
    gates.split_with_sizes(&sizes.iter().map(|&n| n as i64).collect::<Vec<_>>(), 0)
}

/// Sequences leave the batch as they end.
fn scan_packed(cell: Cell, gates: &Tensor, first: State, w: &Weights, sizes: &[usize]) -> Result<(Tensor, State)> {
    let (mut state, mut now) = (first, sizes[0]);
    let (mut outputs, mut ended) = (Vec::new(), Vec::new());
    for (gates, &n) in split(gates, sizes)?.iter().zip(sizes) {
        if n < now {
            ended.push(state.rows(n, now - n)?);
            state = state.rows(0, n)?;
            now = n;
        }
        state = step(cell, gates, &state, w)?;
        outputs.push(state.hidden.clone());
    }
    ended.push(state);
    ended.reverse();
    Ok((cat(&outputs.iter().collect::<Vec<_>>(), 0)?, State::joined(&ended)?))
}

/// Sequences join the batch at their ends.
fn scan_packed_backwards(cell: Cell, gates: &Tensor, first: State, w: &Weights, sizes: &[usize]) -> Result<(Tensor, State)> {
    let mut now = sizes[sizes.len() - 1];
    let mut state = first.rows(0, now)?;
    let mut outputs = Vec::new();
    for (gates, &n) in split(gates, sizes)?.iter().zip(sizes).rev() {
        if n > now {
            state = State::joined(&[state, first.rows(now, n - now)?])?;
            now = n;
        }
        state = step(cell, gates, &state, w)?;
        outputs.push(state.hidden.clone());
    }
    outputs.reverse();
    Ok((cat(&outputs.iter().collect::<Vec<_>>(), 0)?, state))
}

impl Tensor {
    /// A recurrent network over this sequence, `[time, batch, features]` or with the batch first: the outputs, the last hidden state
    /// of each layer and direction and, for LSTM, the last memories. `hx` are the states before, `params` for each layer and
    /// direction the weights of inputs and hidden states and, where there are some, the biases.
    ///
    /// `RuntimeError` where numbers or shapes of parameters and states do not fit.
    pub fn recurrent(&self, hx: &[&Tensor], params: &[&Tensor], options: &Recurrent) -> Result<Vec<Tensor>> {
        options.finish(&Sequence::padded(options.cell.name(), self, options.batch_first)?, hx, params)
    }

    /// [`Tensor::recurrent`] over packed sequences `[all, features]`, of which so many go on at each time.
    pub fn recurrent_packed(&self, sizes: &Tensor, hx: &[&Tensor], params: &[&Tensor], options: &Recurrent) -> Result<Vec<Tensor>> {
        options.finish(&Sequence::packed(options.cell.name(), self, sizes)?, hx, params)
    }
}

/// The options from argument `i` on: biases, layers, dropout, training, both directions and, where `padded`, the batch's place.
fn options(a: &Args, cell: Cell, i: usize, padded: bool) -> Result<Recurrent> {
    let layers = a.int(i + 1)?;
    if layers <= 0 {
        return Err(Error::runtime(format!("{}: num_layers must be positive, got {layers}", a.name)));
    }
    Ok(Recurrent {
        cell,
        biases: a.bool(i)?,
        layers: layers as usize,
        dropout: a.float(i + 2)?,
        training: a.bool(i + 3)?,
        bidirectional: a.bool(i + 4)?,
        batch_first: padded && a.bool(i + 5)?,
    })
}

fn padded(a: &Args, cell: Cell) -> Result<Out> {
    let hx = if cell == Cell::Lstm { a.tensors(1)? } else { vec![a.tensor(1)?] };
    Ok(Out::Tuple(a.tensor(0)?.recurrent(&hx, &a.tensors(2)?, &options(a, cell, 3, true)?)?.into()))
}

fn packed(a: &Args, cell: Cell) -> Result<Out> {
    let hx = if cell == Cell::Lstm { a.tensors(2)? } else { vec![a.tensor(2)?] };
    Ok(Out::Tuple(a.tensor(0)?.recurrent_packed(a.tensor(1)?, &hx, &a.tensors(3)?, &options(a, cell, 4, false)?)?.into()))
}

/// One step of a cell by itself.
fn single(a: &Args, cell: Cell) -> Result<Out> {
    let x = a.tensor(0)?;
    let hx = if cell == Cell::Lstm { a.tensors(1)? } else { vec![a.tensor(1)?] };
    if hx.len() != cell.states() {
        return Err(Error::runtime(format!("{}: expects {} hidden states, got {}", a.name, cell.states(), hx.len())));
    }
    let w = Weights {
        input: a.tensor(2)?,
        hidden: a.tensor(3)?,
        input_bias: a.opt_tensor(4)?,
        hidden_bias: a.opt_tensor(5)?,
        projection: None,
    };
    let state = State { hidden: hx[0].clone(), memory: hx.get(1).map(|&t| t.clone()) };
    check(cell, x, &w, &state)?;
    let state = step(cell, &x.linear(w.input, w.input_bias)?, &state, &w)?;
    Ok(match state.memory {
        Some(memory) => Out::Tuple(smallvec![state.hidden, memory]),
        None => Out::Tensor(state.hidden),
    })
}

const fn row(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::TORCH).without_out()
}

pub(super) static OPS: &[Op] = &[
    row("lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)", |a| padded(a, Cell::Lstm))
        .autocast_lower()
        .doc("Long short-term memory over a sequence: outputs, last hidden states, last memories. `params` are for each layer and direction the weights of inputs and hidden states and, with `has_biases`, the biases; where states and memories differ in width, a projection follows.")
        .samples(&[
            "T(3,2,3), [T(1,2,2), T(1,2,2)], [T(8,3), T(8,2), T(8), T(8)], True, 1, 0.0, False, False, False",
            "T(2,3,2), [T(4,2,1), T(4,2,1)], [T(4,2), T(4,1), T(4,2), T(4,1), T(4,2), T(4,1), T(4,2), T(4,1)], False, 2, 0.0, False, True, True",
            "T(2,1,3), [T(1,1,2), T(1,1,3)], [T(12,3), T(12,2), T(2,3)], False, 1, 0.0, False, False, False",
        ]),
    row("lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)", |a| packed(a, Cell::Lstm))
        .autocast_lower()
        .doc("Long short-term memory over packed sequences, of which `batch_sizes` go on at each time.")
        .samples(&["T(4,3), I(2; 2..3), [T(2,2,2), T(2,2,2)], [T(8,3), T(8,2), T(8), T(8), T(8,3), T(8,2), T(8), T(8)], True, 1, 0.0, False, True"]),
    row("gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", |a| padded(a, Cell::Gru))
        .doc("Gated recurrent units over a sequence: outputs and last hidden states.")
        .samples(&["T(3,2,3), T(1,2,2), [T(6,3), T(6,2), T(6), T(6)], True, 1, 0.0, False, False, False"]),
    row("gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)", |a| packed(a, Cell::Gru))
        .doc("Gated recurrent units over packed sequences, of which `batch_sizes` go on at each time.")
        .samples(&["T(4,3), I(2; 2..3), T(1,2,2), [T(6,3), T(6,2), T(6), T(6)], True, 1, 0.0, False, False"]),
    row("rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", |a| padded(a, Cell::Tanh))
        .autocast_lower()
        .doc("A recurrent network of `tanh` over a sequence: outputs and last hidden states.")
        .samples(&["T(3,2,3), T(2,2,2), [T(2,3), T(2,2), T(2), T(2), T(2,3), T(2,2), T(2), T(2)], True, 1, 0.0, False, True, False"]),
    row("rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)", |a| packed(a, Cell::Tanh))
        .autocast_lower()
        .doc("A recurrent network of `tanh` over packed sequences.")
        .samples(&["T(4,3), I(2; 2..3), T(1,2,2), [T(2,3), T(2,2)], False, 1, 0.0, False, False"]),
    row("rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", |a| padded(a, Cell::Relu))
        .autocast_lower()
        .doc("A recurrent network of `max(0, x)` over a sequence: outputs and last hidden states.")
        .samples(&["T(2,2,3), T(1,2,2), [T(2,3), T(2,2)], False, 1, 0.0, False, False, True"]),
    row("rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)", |a| packed(a, Cell::Relu))
        .autocast_lower()
        .doc("A recurrent network of `max(0, x)` over packed sequences.")
        .samples(&["T(4,3), I(2; 2..3), T(1,2,2), [T(2,3), T(2,2)], False, 1, 0.0, False, False"]),
    row("lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)", |a| single(a, Cell::Lstm))
        .doc("One step of long short-term memory: the hidden state and the memory.")
        .samples(&["T(2,3), [T(2,2), T(2,2)], T(8,3), T(8,2), T(8), T(8)", "T(2,3), [T(2,2), T(2,2)], T(8,3), T(8,2)"]),
    row("gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", |a| single(a, Cell::Gru))
        .doc("One step of a gated recurrent unit.")
        .samples(&["T(2,3), T(2,2), T(6,3), T(6,2), T(6), T(6)"]),
    row("rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", |a| single(a, Cell::Tanh))
        .doc("One step of a recurrent network of `tanh`.")
        .samples(&["T(2,3), T(2,2), T(2,3), T(2,2), T(2), T(2)"]),
    row("rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", |a| single(a, Cell::Relu))
        .doc("One step of a recurrent network of `max(0, x)`.")
        .samples(&["T(2,3), T(2,2), T(2,3), T(2,2)"]),
];
