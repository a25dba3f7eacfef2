//! Capture: operations written down as they run. The seam from which `compile` grows.

use super::Executor;
use crate::Tensor;
use crate::ops::{Outputs, Primitive};
use flambeau_base::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The number of a value in a captured graph.
pub type ValueId = usize;

/// One captured operation.
pub struct Captured {
    /// What was done.
    pub op: Box<dyn Primitive>,
    /// On which values.
    pub inputs: Vec<ValueId>,
    /// What came of it.
    pub outputs: Vec<ValueId>,
}

/// Operations in the order in which they ran, and the tensors that came from outside.
#[derive(Default)]
pub struct Graph {
    /// The operations.
    pub ops: Vec<Captured>,
    /// Every value, by number, with the tensor that eager execution had for it.
    pub values: Vec<Tensor>,
    /// Which values came from outside.
    pub inputs: Vec<ValueId>,
    ids: HashMap<usize, ValueId>,
}

impl Graph {
    /// The number of a tensor that the graph knows.
    pub fn id_of(&self, t: &Tensor) -> Option<ValueId> {
        self.ids.get(&t.id()).copied()
    }

    fn add(&mut self, t: &Tensor) -> ValueId {
        // The graph keeps the tensor, so its address is not given to another one.
        self.values.push(t.clone());
        self.ids.insert(t.id(), self.values.len() - 1);
        self.values.len() - 1
    }

    fn input(&mut self, t: &Tensor) -> ValueId {
        self.id_of(t).unwrap_or_else(|| {
            let id = self.add(t);
            self.inputs.push(id);
            id
        })
    }
}

/// Runs operations and writes them down.
#[derive(Default)]
pub struct Capture {
    graph: RefCell<Graph>,
}

impl Executor for Capture {
    fn execute(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
        let outputs = super::execute(op, inputs)?;
        let mut graph = self.graph.borrow_mut();
        let inputs = inputs.iter().map(|t| graph.input(t)).collect();
        let outputs_ids = outputs.iter().map(|t| graph.add(t)).collect();
        graph.ops.push(Captured { op: op.boxed(), inputs, outputs: outputs_ids });
        Ok(outputs)
    }
}

/// Runs `f` and gives what it returned with the operations that it executed, backward's included.
pub fn capture<R>(f: impl FnOnce() -> Result<R>) -> Result<(R, Graph)> {
    let capture = Rc::new(Capture::default());
    let result = super::with_executor(capture.clone(), f)?;
    Ok((result, capture.graph.take()))
}
