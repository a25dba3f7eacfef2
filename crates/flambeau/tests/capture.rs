//! The proof that `compile` can be built on `bind`: `gelu(x * w + b)`, forward and backward, captured, replayed with
//! pointwise chains fused over tiles (into reductions too), gives the bits of eager execution.

use flambeau::autograd::{self, BackwardOptions};
use flambeau::ops::Primitive;
use flambeau::ops::pointwise::{FusedOp, Link, Pointwise, fuse};
use flambeau::ops::reduce::{FusedReduce, Reduction};
use flambeau::prelude::*;
use flambeau::transform::bind;
use flambeau::transform::capture::{Graph, capture};
use std::collections::HashMap;

/// Runs a graph again: pointwise operations wait until something that is not pointwise needs them, then run as one program.
struct Replay<'a> {
    graph: &'a Graph,
    /// Which operation makes a value.
    maker: HashMap<usize, usize>,
    done: HashMap<usize, Tensor>,
    fused: usize,
    fused_into_reductions: usize,
}

impl<'a> Replay<'a> {
    fn new(graph: &'a Graph) -> Replay<'a> {
        let maker = graph.ops.iter().enumerate().flat_map(|(i, op)| op.outputs.iter().map(move |&o| (o, i))).collect();
        let done = graph.inputs.iter().map(|&i| (i, graph.values[i].clone())).collect();
        Replay { graph, maker, done, fused: 0, fused_into_reductions: 0 }
    }

    fn pointwise(&self, value: usize) -> Option<&'a Pointwise> {
        self.graph.ops[*self.maker.get(&value)?].op.as_any().downcast_ref()
    }

    /// The pointwise operations behind some values that have not run, in order, and the values that these start from.
    fn chain(&self, values: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let (mut ops, mut leaves, mut stack) = (Vec::new(), Vec::new(), values.to_vec());
        while let Some(v) = stack.pop() {
            if self.done.contains_key(&v) || self.pointwise(v).is_none() {
                if !leaves.contains(&v) {
                    leaves.push(v);
                }
            } else if !ops.contains(&self.maker[&v]) {
                ops.push(self.maker[&v]);
                stack.extend(&self.graph.ops[self.maker[&v]].inputs);
            }
        }
        ops.sort_unstable();
        leaves.sort_unstable();
        (ops, leaves)
    }

    fn program(&self, values: &[usize], ops: &[usize], leaves: &[usize]) -> Result<FusedOp> {
        let mut place: HashMap<usize, usize> = leaves.iter().enumerate().map(|(i, &v)| (v, i)).collect();
        for (i, &op) in ops.iter().enumerate() {
            place.insert(self.graph.ops[op].outputs[0], leaves.len() + i);
        }
        let links: Vec<Link> = ops
            .iter()
            .map(|&op| {
                let captured = &self.graph.ops[op];
                Link {
                    op: captured.op.as_any().downcast_ref().unwrap(),
                    inputs: captured.inputs.iter().map(|v| (place[v], &self.graph.values[*v])).collect(),
                }
            })
            .collect();
        let dtypes: Vec<DType> = leaves.iter().map(|&v| self.graph.values[v].dtype()).collect();
        let outputs: Vec<usize> = values.iter().map(|v| place[v]).collect();
        fuse(&dtypes, &links, &outputs)
    }

    fn value(&mut self, v: usize) -> Result<Tensor> {
        if let Some(t) = self.done.get(&v) {
            return Ok(t.clone());
        }
        if self.pointwise(v).is_some() {
            let (ops, leaves) = self.chain(&[v]);
            let program = self.program(&[v], &ops, &leaves)?;
            self.fused = self.fused.max(ops.len());
            let inputs = leaves.iter().map(|&l| self.value(l)).collect::<Result<Vec<_>>>()?;
            let made = bind(&program, &inputs.iter().collect::<Vec<_>>())?;
            self.done.insert(v, made[0].clone());
            return Ok(made[0].clone());
        }
        let op = &self.graph.ops[self.maker[&v]];
        let made = match op.op.as_any().downcast_ref::<Reduction>() {
            Some(reduction) if self.pointwise(op.inputs[0]).is_some() && !self.done.contains_key(&op.inputs[0]) => {
                let (ops, leaves) = self.chain(&op.inputs);
                let chain = self.program(&op.inputs, &ops, &leaves)?;
                self.fused_into_reductions += 1;
                let inputs = leaves.iter().map(|&l| self.value(l)).collect::<Result<Vec<_>>>()?;
                bind(&FusedReduce { chain, reduction: reduction.clone() }, &inputs.iter().collect::<Vec<_>>())?
            }
            _ => {
                let inputs = op.inputs.iter().map(|&i| self.value(i)).collect::<Result<Vec<_>>>()?;
                bind(&*op.op, &inputs.iter().collect::<Vec<_>>())?
            }
        };
        for (&id, t) in op.outputs.iter().zip(&made) {
            self.done.insert(id, t.clone());
        }
        Ok(self.done[&v].clone())
    }
}

fn bits(t: &Tensor) -> Vec<u64> {
    t.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap().iter().map(|x| x.to_bits() as u64).collect()
}

fn check(dtype: DType, rows: usize, columns: usize) -> Result<()> {
    manual_seed(1);
    let draw = |shape: &[usize]| -> Result<Tensor> { Tensor::randn(shape, DType::F32, Device::CPU)?.to_dtype(dtype)?.requiring_grad() };
    let (x, w, b) = (draw(&[rows, columns])?, draw(&[columns])?, draw(&[columns])?);
    let seed = Tensor::randn(&[rows, columns], DType::F32, Device::CPU)?.to_dtype(dtype)?;
    let (eager, graph) = capture(|| {
        let y = x.mul(&w)?.add(&b)?.gelu()?;
        let grads = autograd::grad(&[&y], &[&x, &w, &b], &[Some(seed.clone())], BackwardOptions::default())?;
        Ok(std::iter::once(Some(y)).chain(grads).flatten().collect::<Vec<Tensor>>())
    })?;
    assert_eq!(eager.len(), 4);
    let _guard = no_grad();
    let mut replay = Replay::new(&graph);
    for (i, want) in eager.iter().enumerate() {
        let id = graph.id_of(want).expect("a result of a captured operation");
        let got = replay.value(id)?;
        assert_eq!(got.dtype(), want.dtype());
        assert_eq!(bits(&got), bits(want), "result {i} of {dtype} {rows}x{columns}");
    }
    assert!(replay.fused >= 3, "the forward pass is one program");
    assert!(replay.fused_into_reductions >= 2, "the gradients of w and b are summed as they are made");
    Ok(())
}

#[test]
fn fused_replay_gives_the_bits_of_eager_in_f32() -> Result<()> {
    check(DType::F32, 7, 5)?;
    check(DType::F32, 1000, 64)?;
    check(DType::F32, 300, 1037)
}

#[test]
fn fused_replay_gives_the_bits_of_eager_in_bf16() -> Result<()> {
    check(DType::BF16, 7, 5)?;
    check(DType::BF16, 300, 1037)
}

#[test]
fn a_captured_operation_is_itself_a_primitive() -> Result<()> {
    let x = Tensor::arange(0, 6, 1, Some(DType::F32), Device::CPU)?;
    let (_, graph) = capture(|| x.mul(2.0)?.exp())?;
    let names: Vec<&str> = graph.ops.iter().map(|o| Primitive::name(&*o.op)).collect();
    assert_eq!(names, ["mul", "exp"]);
    Ok(())
}
