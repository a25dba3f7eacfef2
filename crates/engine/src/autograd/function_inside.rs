//! Functions with a derivative of the user's, inside transforms: each level is handled by the rule that the function has for it.

use super::Grads;
use super::function::{Applied, Context, Function, apply_shared, leave, record_call};
use crate::Tensor;
use crate::transform::differentiate::tangents_at;
use crate::transform::functional::Level;
use crate::transform::vectorize::{Randomness, unwrap_batch};
use crate::transform::{Interpreter, carry_below, forward};
use flambeau_base::Result;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// Runs a function inside the transform `top`.
pub(super) fn apply(function: &Arc<dyn Function>, inputs: &[&Tensor], top: &dyn Interpreter) -> Result<Applied> {
    let level = top.level();
    let has: SmallVec<[bool; 3]> = inputs.iter().map(|t| t.is_at_level(level)).collect();
    if !has.contains(&true) {
        return carry_below(|| apply_shared(function, inputs));
    }
    let values: SmallVec<[&Tensor; 3]> = inputs.iter().map(|t| t.at_level(level).unwrap_or(t)).collect();
    match top.randomness() {
        Some((_, size, randomness)) => batched(inputs, &values, OverBatch::new(function.clone(), has, size, randomness), level),
        None => differentiated(function, inputs, &values, level),
    }
}

/// Where a tensor stands among others, by identity.
fn place(t: &Tensor, among: &[impl std::borrow::Borrow<Tensor>]) -> Option<usize> {
    among.iter().position(|other| std::borrow::Borrow::<Tensor>::borrow(other).is(t))
}

/// What the level above keeps for what the one below kept: its own inputs and outputs, and `other` of the rest.
fn lifted(
    below: &Applied,
    values: &[&Tensor],
    inputs: &[&Tensor],
    outputs: &[Tensor],
    other: impl Fn(usize, &Tensor) -> Tensor,
) -> Vec<Tensor> {
    let values: SmallVec<[Tensor; 3]> = values.iter().map(|&t| t.clone()).collect();
    let lift = |(k, t): (usize, &Tensor)| match (place(t, &values), place(t, &below.outputs)) {
        (Some(i), _) => inputs[i].clone(),
        (None, Some(i)) => outputs[i].clone(),
        (None, None) => other(k, t),
    };
    below.saved.iter().enumerate().map(lift).collect()
}

/// At a level that differentiates: the call below, and its derivative here.
fn differentiated(function: &Arc<dyn Function>, inputs: &[&Tensor], values: &[&Tensor], level: u32) -> Result<Applied> {
    let below = carry_below(|| apply_shared(function, values))?;
    let lift = |y: &Tensor| match values.iter().position(|v| v.is(y)) {
        Some(i) => inputs[i].clone(),
        None if y.dtype().is_differentiable() => y.wrap(level),
        None => y.clone(),
    };
    let outputs: Vec<Tensor> = below.outputs.iter().map(lift).collect();
    let saved = lifted(&below, values, inputs, &outputs, |_, t| t.clone());
    let tangents = tangents_at(inputs, level);
    let found = if forward::is_forward_enabled() && tangents.iter().any(|t| t.is_some()) {
        let cx = Context { to_save: Vec::new(), saved: below.saved };
        Some(carry_below(|| function.jvp(&cx, &tangents))?)
    } else {
        None
    };
    let outputs = record_call(function, inputs, outputs, &saved, level)?;
    leave(&outputs, found)?;
    Ok(Applied { outputs, saved })
}

/// At a level of `vmap`: the function of a batch, below.
fn batched(inputs: &[&Tensor], values: &[&Tensor], over: OverBatch, level: u32) -> Result<Applied> {
    let over = Arc::new(over);
    let shared: Arc<dyn Function> = over.clone();
    let below = carry_below(|| apply_shared(&shared, values))?;
    let outputs: Vec<Tensor> = below.outputs.iter().map(|t| t.wrap_batch(level)).collect();
    let whole = over.kept().clone();
    let saved = lifted(&below, values, inputs, &outputs, |k, t| if whole[k] { t.wrap_batch(level) } else { t.clone() });
    Ok(Applied { outputs, saved })
}

/// A function of one example as a function of a batch of them, each of its parts carried out on all examples.
struct OverBatch {
    inner: Arc<dyn Function>,
    /// Which inputs have the batch in front.
    has: SmallVec<[bool; 3]>,
    size: usize,
    randomness: Randomness,
    /// Which of the kept tensors have the batch in front.
    kept: Mutex<Vec<bool>>,
}

impl OverBatch {
    fn new(inner: Arc<dyn Function>, has: SmallVec<[bool; 3]>, size: usize, randomness: Randomness) -> OverBatch {
        OverBatch { inner, has, size, randomness, kept: Mutex::default() }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<bool>> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// An example, where the tensor has the batch in front.
    fn example(level: &Level, t: &Tensor, whole: bool) -> Tensor {
        if whole { t.wrap_batch(level.id()) } else { t.clone() }
    }

    fn inner_context(&self, level: &Level, cx: &Context) -> Context {
        let saved = cx.saved.iter().zip(self.kept().iter()).map(|(t, whole)| Self::example(level, t, *whole)).collect();
        Context { to_save: Vec::new(), saved }
    }

    fn whole(&self, level: &Level, t: Option<Tensor>) -> Result<Option<Tensor>> {
        t.map(|t| unwrap_batch(&t, level.id(), self.size)).transpose()
    }
}

impl Function for OverBatch {
    fn forward(&self, cx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let level = Level::vectorize(self.size, self.randomness);
        let examples: Vec<Tensor> = inputs.iter().zip(&self.has).map(|(t, has)| Self::example(&level, t, *has)).collect();
        let mut inner = Context::default();
        let made = self.inner.forward(&mut inner, &examples.iter().collect::<Vec<_>>())?;
        let outputs = made.iter().map(|t| unwrap_batch(t, level.id(), self.size)).collect::<Result<Vec<_>>>()?;
        let keep = |t: &Tensor| match (place(t, &examples), place(t, &made)) {
            (Some(i), _) => (inputs[i].clone(), self.has[i]),
            (None, Some(i)) => (outputs[i].clone(), true),
            (None, None) => (level.unwrap(t), t.is_at_level(level.id())),
        };
        let (kept, whole): (Vec<Tensor>, Vec<bool>) = inner.to_save.iter().map(keep).unzip();
        *self.kept() = whole;
        cx.to_save = kept;
        Ok(outputs)
    }

    fn backward(&self, cx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let level = Level::vectorize(self.size, self.randomness);
        let inner = self.inner_context(&level, cx);
        let grads: Grads = grads.iter().map(|g| g.as_ref().map(|g| Self::example(&level, g, true))).collect();
        let made = self.inner.backward(&inner, &grads)?;
        let found = made.into_iter().map(|g| self.whole(&level, g)).collect::<Result<Vec<_>>>()?;
        drop(level);
        // What all examples share gets the sum of their gradients.
        let summed = |(g, has): (Option<Tensor>, &bool)| match g {
            Some(g) if !has => g.sum_dims(Some(&[0]), false, None).map(Some),
            g => Ok(g),
        };
        found.into_iter().zip(&self.has).map(summed).collect()
    }

    fn jvp(&self, cx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let level = Level::vectorize(self.size, self.randomness);
        let inner = self.inner_context(&level, cx);
        let example = |(t, has): (&Option<Tensor>, &bool)| t.as_ref().map(|t| Self::example(&level, t, *has));
        let tangents: Grads = tangents.iter().zip(&self.has).map(example).collect();
        let made = self.inner.jvp(&inner, &tangents)?;
        made.into_iter().map(|t| self.whole(&level, t)).collect()
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}
