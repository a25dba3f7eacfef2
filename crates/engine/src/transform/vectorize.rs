//! `vmap`: an operation on one example carried out on a batch of them. See NOTE [levels] in `level`.
//!
//! A primitive says how it takes inputs with a batch dimension in front ([`Primitive::batched`]); one that does not is
//! carried out example by example. Views need no rule: an example's view, moved along the batch, is a view of the batch.

use super::{Interpreter, bind, bind_inplace, level};
use crate::Tensor;
use crate::autograd::OutputInfo;
use crate::ops::table::{Args, Op, Out, Value};
use crate::ops::view::{View, view};
use crate::ops::{Outputs, Primitive};
use crate::random::{Generator, default_generator};
use crate::transform::level::Batches;
use flambeau_base::{DType, Dims, Error, Layout, Result};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// What random draws do in a level of `vmap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    /// They are refused.
    Error,
    /// Every example gets the same.
    Same,
    /// Every example gets draws of its own.
    Different,
}

/// A level of `vmap`.
pub struct Vectorize {
    level: u32,
    size: usize,
    randomness: Randomness,
}

impl Vectorize {
    /// A level with this number, over so many examples.
    pub(crate) fn new(level: u32, size: usize, randomness: Randomness) -> Vectorize {
        Vectorize { level, size, randomness }
    }
}

/// The inputs of an operation under `vmap`.
pub struct Batch<'a> {
    /// How many examples there are.
    pub size: usize,
    /// The inputs as the operation on one example sees them.
    pub examples: &'a [&'a Tensor],
    /// The inputs below: with the batch in front, or as they are for all examples.
    pub inputs: SmallVec<[&'a Tensor; 3]>,
    /// Which inputs have the batch in front.
    pub has_batch: SmallVec<[bool; 3]>,
}

impl Batch<'_> {
    /// Input `i` with the batch in front, repeated (a view) where it is the same for all examples.
    pub fn front(&self, i: usize) -> Result<Tensor> {
        if self.has_batch[i] { Ok(self.inputs[i].clone()) } else { repeated(self.inputs[i], self.size) }
    }

    /// All inputs with the batch in front.
    pub fn all_front(&self) -> Result<SmallVec<[Tensor; 3]>> {
        (0..self.inputs.len()).map(|i| self.front(i)).collect()
    }

    /// Input `i` with sizes of 1 between the batch and its dimensions, so that an example has `ndim` of them.
    pub fn aligned(&self, i: usize, ndim: usize) -> Result<Tensor> {
        let t = self.inputs[i];
        let missing = ndim.saturating_sub(self.examples[i].ndim());
        if !self.has_batch[i] || missing == 0 {
            return Ok(t.clone());
        }
        let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(&t.shape()[..1]);
        sizes.extend(std::iter::repeat_n(1, missing));
        sizes.extend_from_slice(&t.shape()[1..]);
        t.reshape_to(&sizes)
    }

    /// Carries out an operation on all inputs with the batch in front.
    pub fn on_all(&self, op: &dyn Primitive) -> Result<Option<Outputs>> {
        let inputs = self.all_front()?;
        bind(op, &inputs.iter().collect::<SmallVec<[&Tensor; 3]>>()).map(Some)
    }

    /// Carries out an operation whose inputs `0..folded`, and results, have examples of their own along dimension 0: the
    /// batch is folded into that dimension. The other inputs must be the same for all examples.
    pub fn on_folded(&self, op: &dyn Primitive, folded: usize) -> Result<Option<Outputs>> {
        let first = self.examples[0].shape().first().copied();
        let fits = |(i, t): (usize, &&Tensor)| if i < folded { t.shape().first().copied() == first } else { !self.has_batch[i] };
        if first.is_none() || !self.examples.iter().enumerate().all(fits) {
            return Ok(None);
        }
        let mut inputs: SmallVec<[Tensor; 3]> = SmallVec::new();
        for i in 0..self.inputs.len() {
            inputs.push(if i < folded { self.front(i)?.flatten(0, 1)? } else { self.inputs[i].clone() });
        }
        let outputs = bind(op, &inputs.iter().collect::<SmallVec<[&Tensor; 3]>>())?;
        let unfolded = |t: &Tensor| {
            let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(&[self.size, t.shape()[0] / self.size]);
            sizes.extend_from_slice(&t.shape()[1..]);
            t.reshape_to(&sizes)
        };
        outputs.iter().map(unfolded).collect::<Result<_>>().map(Some)
    }

    /// [`Batch::on_all`] for an operation along a dimension, given for the batch: a scalar, which counts as a vector of one
    /// element, has none behind the batch.
    pub fn along(&self, op: &dyn Primitive) -> Result<Option<Outputs>> {
        if self.examples[0].ndim() == 0 { Ok(None) } else { self.on_all(op) }
    }

    /// Carries out an operation on the inputs as they are.
    pub fn on_inputs(&self, op: &dyn Primitive) -> Result<Option<Outputs>> {
        bind(op, &self.inputs).map(Some)
    }
}

impl Vectorize {
    fn batch<'a>(&self, inputs: &'a [&'a Tensor]) -> Batch<'a> {
        let below: SmallVec<[Option<&Tensor>; 3]> = inputs.iter().map(|t| t.at_level(self.level)).collect();
        Batch {
            size: self.size,
            examples: inputs,
            has_batch: below.iter().map(|t| t.is_some()).collect(),
            inputs: below.iter().zip(inputs).map(|(b, t)| b.unwrap_or(t)).collect(),
        }
    }

    /// Example by example.
    fn one_by_one(&self, op: &dyn Primitive, batch: &Batch) -> Result<Outputs> {
        warn_of_loop(op.name());
        let mut made: SmallVec<[Vec<Tensor>; 1]> = SmallVec::new();
        for b in 0..self.size {
            let mut inputs: SmallVec<[Tensor; 3]> = SmallVec::new();
            for (t, has) in batch.inputs.iter().zip(&batch.has_batch) {
                inputs.push(if *has { t.select(0, b as i64)? } else { (*t).clone() });
            }
            let outputs = bind(op, &inputs.iter().collect::<SmallVec<[&Tensor; 3]>>())?;
            made.resize_with(outputs.len(), Vec::new);
            for (all, out) in made.iter_mut().zip(outputs) {
                all.push(out);
            }
        }
        made.iter().map(|all| stacked(op.name(), all)).collect()
    }
}

fn stacked(op: &str, all: &[Tensor]) -> Result<Tensor> {
    if all.iter().any(|t| t.shape() != all[0].shape()) {
        return Err(Error::runtime(format!("vmap: {op}: the shape of the result depends on the values, and examples differ in it")));
    }
    crate::ops::join::stack(&all.iter().collect::<Vec<_>>(), 0)
}

impl Interpreter for Vectorize {
    fn level(&self) -> u32 {
        self.level
    }

    fn bind(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<Outputs> {
        let batch = self.batch(inputs);
        let _below = level::below();
        if !batch.has_batch.contains(&true) {
            return bind(op, inputs);
        }
        let made = match op.batched(&batch)? {
            Some(made) => made,
            None => self.one_by_one(op, &batch)?,
        };
        Ok(made.iter().map(|t| t.wrap_batch(self.level)).collect())
    }

    fn bind_inplace(&self, op: &dyn Primitive, inputs: &[&Tensor]) -> Result<()> {
        let batch = self.batch(inputs);
        let spec = op.infer(inputs)?.swap_remove(0);
        super::check_target(op.name(), inputs[0], &spec)?;
        let _below = level::below();
        if !batch.has_batch.contains(&true) {
            return bind_inplace(op, inputs);
        }
        if !batch.has_batch[0] {
            return Err(Error::runtime(format!(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in {}_. Use out-of-place operators instead, or make `self` with new_zeros / zeros_like of a tensor that is vmapped over.",
                op.name()
            )));
        }
        let made = match op.batched(&batch)? {
            Some(made) => made,
            None => self.one_by_one(op, &batch)?,
        };
        batch.inputs[0].copy_(&made[0]).map(|_| ())
    }

    fn randomness(&self) -> Option<(u32, usize, Randomness)> {
        Some((self.level, self.size, self.randomness))
    }
}

thread_local! {
    static LOOPS: RefCell<HashSet<String>> = RefCell::default();
    static WARNED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes that an operation goes through a batch example by example: said once for each name.
fn warn_of_loop(op: &str) {
    if LOOPS.with(|l| l.borrow_mut().insert(op.to_string())) {
        WARNED.with(|w| w.borrow_mut().push(op.to_string()));
    }
}

/// Names of operations that were carried out example by example for the first time since this was last asked.
pub fn take_loop_warnings() -> Vec<String> {
    WARNED.with(|w| std::mem::take(&mut *w.borrow_mut()))
}

/// A [`View`] whose type is not known: `Lifted` would be a type of its own for each, and for each level on top of it.
trait AnyView: std::fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn layout(&self, input: &Tensor) -> Result<Layout>;
    fn dtype(&self, input: &Tensor) -> DType;
    fn lazy(&self, input: &Tensor) -> u8;
    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor>;
}

impl<V: View> AnyView for V {
    fn name(&self) -> &'static str {
        View::name(self)
    }
    fn layout(&self, input: &Tensor) -> Result<Layout> {
        View::layout(self, input)
    }
    fn dtype(&self, input: &Tensor) -> DType {
        View::dtype(self, input)
    }
    fn lazy(&self, input: &Tensor) -> u8 {
        View::lazy(self, input)
    }
    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        View::transpose(self, grad, input)
    }
}

/// A view of an example, at every example of a batch.
#[derive(Clone, Debug)]
pub struct Lifted(Arc<dyn AnyView>);

impl Lifted {
    /// A view of an example at every example.
    pub(crate) fn new<V: View>(view: &V) -> Lifted {
        Lifted(Arc::new(view.clone()))
    }

    /// The first example of a batch.
    fn example(batch: &Tensor) -> Tensor {
        batch.alias_with(batch.layout().example(), batch.dtype())
    }
}

impl View for Lifted {
    const NAME: &'static str = "view";

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let example = Self::example(input);
        let dtype = self.0.dtype(&example);
        // Strides count elements, which are of another size after a view of another dtype.
        let apart = input.strides()[0] * input.dtype().size() as isize / dtype.size() as isize;
        let layout = self.0.layout(&example)?.in_batch(input.shape()[0], apart)?;
        Tensor::check_bounds(self.0.name(), input.storage(), &layout, dtype)?;
        Ok(layout)
    }

    fn dtype(&self, input: &Tensor) -> DType {
        self.0.dtype(&Self::example(input))
    }

    fn lazy(&self, input: &Tensor) -> u8 {
        self.0.lazy(&Self::example(input))
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        let of_example = OutputInfo { sizes: Dims::from_slice(&input.sizes[1..]), ..input.clone() };
        over_batch(grad, |grad| self.0.transpose(grad, &of_example))
    }
}

/// What a function of an example gives for a batch of them.
fn over_batch(batch: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let level = level::fresh();
    let size = batch.shape()[0];
    let made = {
        let _inside = level::enter(std::rc::Rc::new(Vectorize::new(level, size, Randomness::Error)));
        f(&batch.wrap_batch(level))?
    };
    unwrap_batch(&made, level, size)
}

/// The tensor below, with the batch in front also where all examples are the same.
pub(crate) fn unwrap_batch(t: &Tensor, level: u32, size: usize) -> Result<Tensor> {
    match t.at_level(level) {
        Some(value) => Ok(value.clone()),
        None => repeated(t, size),
    }
}

/// The same for each example of a batch: a view with the batch in front.
fn repeated(t: &Tensor, size: usize) -> Result<Tensor> {
    t.unsqueeze(0)?.expand_to(&of_batch(size, t.shape()))
}

/// The sizes of a batch of examples of these sizes.
fn of_batch(size: usize, example: &[usize]) -> Dims {
    let mut sizes = Dims::from_slice(&[size]);
    sizes.extend_from_slice(example);
    sizes
}

/// Carries out a view of an example on a batch.
pub(crate) fn batched_view<V: View>(v: &V, batch: &Batch) -> Result<Option<Outputs>> {
    Ok(Some(smallvec::smallvec![view(Lifted::new(v), batch.inputs[0])?]))
}

/// A batch that random numbers are to be drawn for.
pub(crate) struct ToDraw {
    /// The level of `vmap`.
    pub level: u32,
    /// The tensor below, with the batch in front.
    pub whole: Tensor,
}

/// The batch of fresh tensors that `t`, to be filled with draws, stands for: where each example gets draws of its own.
///
/// `RuntimeError` where draws are refused, and for a tensor in place that is the same for all examples.
pub(crate) fn batch_to_draw(t: &Tensor) -> Result<Option<ToDraw>> {
    for interpreter in level::seen() {
        match interpreter.randomness() {
            Some((_, _, Randomness::Error)) => return Err(refuse_draws()),
            Some((level, size, Randomness::Different)) => {
                if t.born() != level::current() {
                    return Err(Error::runtime(
                        "vmap: Cannot ask for different inplace randomness on an unbatched tensor: all examples share its memory",
                    ));
                }
                let _beneath = level::beneath(level);
                return Ok(Some(ToDraw { level, whole: Tensor::empty(&of_batch(size, t.shape()), t.dtype(), t.device())? }));
            }
            _ => {}
        }
    }
    Ok(None)
}

#[cold]
fn refuse_draws() -> Error {
    Error::runtime(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap",
    )
}

/// Carries out a row of the table example by example, where it would have read a batch.
pub(crate) fn row_by_row(op: &Op, args: &Args, run: impl Fn(&Args) -> Result<Out>) -> Option<Result<Out>> {
    let top = level::top()?;
    let (level, size, randomness) = top.randomness()?;
    let random = op.schema.contains("Generator");
    if random && randomness == Randomness::Error {
        return Some(Err(refuse_draws()));
    }
    let has = |t: &Tensor| t.is_at_level(level);
    let any = args.values.iter().any(|v| match v {
        Value::Tensor(t) => has(t),
        Value::Tensors(ts) => ts.iter().flatten().any(has),
        _ => false,
    });
    let drawn_apart = random && randomness == Randomness::Different;
    if !any && !drawn_apart {
        return None;
    }
    warn_of_loop(op.name());
    let generator = args.values.iter().find_map(|v| if let Value::Generator(g) = v { Some(g.clone()) } else { None });
    // The same draws for all examples: each starts where the first did.
    let rewind = (random && randomness == Randomness::Same).then(|| generator.unwrap_or_else(|| default_generator().clone()));
    Some(loop_of_rows(args, level, size, rewind, run))
}

fn loop_of_rows(args: &Args, level: u32, size: usize, rewind: Option<Generator>, run: impl Fn(&Args) -> Result<Out>) -> Result<Out> {
    let _below = level::below();
    let start = rewind.as_ref().map(|g| g.get_state());
    let mut all: Vec<Out> = Vec::with_capacity(size);
    for b in 0..size {
        let at = |t: &Tensor| match t.at_level(level) {
            Some(value) => value.select(0, b as i64),
            None => Ok(t.clone()),
        };
        let mut one = args.clone();
        for v in &mut one.values {
            match v {
                Value::Tensor(t) => *t = at(t)?,
                Value::Tensors(ts) => {
                    for t in ts.iter_mut().flatten() {
                        *t = at(t)?;
                    }
                }
                _ => {}
            }
        }
        if let (Some(g), Some(state)) = (&rewind, &start) {
            g.set_state(state)?;
        }
        all.push(run(&one)?);
    }
    let Some(first) = all.first() else { return Err(Error::runtime("vmap: there are no examples")) };
    let n = first.tensors().len();
    let mut made = Vec::with_capacity(n);
    for i in 0..n {
        let outs: Vec<Tensor> = all.iter().filter_map(|o| o.tensors().get(i).cloned()).collect();
        made.push(stacked("the operation", &outs)?.wrap_batch(level));
    }
    Ok(match first {
        Out::Tensor(_) => Out::Tensor(made.swap_remove(0)),
        Out::List(_) => Out::List(made),
        Out::Tuple(_) => Out::Tuple(made.into()),
        other => other.clone(),
    })
}
