//! What holds parameters.

use flambeau_engine::autograd::no_grad;
use flambeau_engine::base::{Error, Result, show};
use flambeau_engine::ops::optim::total_norm;
use flambeau_engine::{Tensor, autograd};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names and tensors, in order: what a checkpoint holds.
pub type StateDict = Vec<(String, Tensor)>;

/// A tensor that is trained.
#[derive(Clone, Debug)]
pub struct Parameter(Tensor);

impl Parameter {
    /// Makes a parameter of a tensor, which from now on asks for a gradient.
    pub fn new(t: Tensor) -> Result<Parameter> {
        t.set_requires_grad(true)?;
        Ok(Parameter(t))
    }

    /// The tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.0
    }
}

impl Deref for Parameter {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

/// A tensor that belongs to a module and is not trained.
#[derive(Clone, Debug)]
pub struct Buffer(pub Tensor);

impl Deref for Buffer {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

/// Whether a module is being trained; clones of it are the same switch.
#[derive(Clone, Debug)]
pub struct Mode(Arc<AtomicBool>);

impl Default for Mode {
    fn default() -> Mode {
        Mode(Arc::new(AtomicBool::new(true)))
    }
}

impl Mode {
    /// Whether it is on.
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a walk over a module meets.
pub enum Slot<'a> {
    /// A parameter.
    Parameter(&'a Tensor),
    /// A tensor that is not trained.
    Buffer(&'a Tensor),
    /// The training switch of a layer.
    Mode(&'a Mode),
}

/// Where in the tree of modules a walk is.
#[derive(Default)]
pub struct Path(String);

impl Path {
    /// Runs `f` one level further down.
    pub fn enter(&mut self, name: &str, f: impl FnOnce(&mut Path)) {
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        f(self);
        self.0.truncate(length);
    }

    /// The names so far, between points.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What did not fit when a state was loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Names that the module has and the state lacks.
    pub missing: Vec<String>,
    /// Names that the state has and the module lacks.
    pub unexpected: Vec<String>,
    /// Tensors of another shape.
    pub mismatched: Vec<String>,
}

/// Anything that holds parameters. Made by `#[derive(Module)]`.
pub trait Module {
    /// Visits parameters, buffers and switches with their names, in order.
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>));

    /// The parameters with their names.
    fn named_parameters(&self) -> StateDict {
        let mut out = Vec::new();
        self.walk(&mut Path::default(), &mut |name, slot| {
            if let Slot::Parameter(t) = slot {
                out.push((name.to_string(), t.clone()));
            }
        });
        out
    }

    /// The parameters, each once.
    fn parameters(&self) -> Vec<Tensor> {
        let mut out: Vec<Tensor> = Vec::new();
        for (_, t) in self.named_parameters() {
            if !out.iter().any(|o| o.is(&t)) {
                out.push(t);
            }
        }
        out
    }

    /// How many numbers are trained.
    fn parameter_count(&self) -> usize {
        self.parameters().iter().map(|t| t.numel()).sum()
    }

    /// Parameters and buffers with their names, without history: what a checkpoint holds.
    fn state_dict(&self) -> StateDict {
        let mut out = Vec::new();
        self.walk(&mut Path::default(), &mut |name, slot| match slot {
            Slot::Parameter(t) | Slot::Buffer(t) => out.push((name.to_string(), t.alias())),
            Slot::Mode(_) => {}
        });
        out
    }

    /// Copies a state into the parameters and buffers. `RuntimeError` with one complete report where names or shapes do not fit; nothing is copied then.
    fn load_state_dict(&self, state: &[(String, Tensor)]) -> Result<()> {
        let own = self.state_dict();
        let mut report = LoadReport::default();
        let mut pairs = Vec::new();
        for (name, t) in &own {
            match state.iter().find(|(n, _)| n == name) {
                None => report.missing.push(name.clone()),
                Some((_, s)) if s.shape() != t.shape() => {
                    report.mismatched.push(format!("{name}: {} in the state, {} here", show(s.shape()), show(t.shape())));
                }
                Some((_, s)) => pairs.push((t, s)),
            }
        }
        report.unexpected = state.iter().filter(|(n, _)| !own.iter().any(|(o, _)| o == n)).map(|(n, _)| n.clone()).collect();
        if report != LoadReport::default() {
            return Err(Error::runtime(format!(
                "load_state_dict: the state does not fit: missing {:?}, unexpected {:?}, size mismatch {:?}",
                report.missing, report.unexpected, report.mismatched
            )));
        }
        let _guard = no_grad();
        for (t, s) in pairs {
            t.copy_(s)?;
        }
        Ok(())
    }

    /// Switches all layers to training, or to evaluation.
    fn train(&self, on: bool) {
        self.walk(&mut Path::default(), &mut |_, slot| {
            if let Slot::Mode(mode) = slot {
                mode.0.store(on, Ordering::Relaxed);
            }
        });
    }

    /// Forgets the parameters' gradients.
    fn zero_grad(&self) {
        for t in self.parameters() {
            t.set_grad(None);
        }
    }
}

impl Module for Parameter {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        visit(path.as_str(), Slot::Parameter(&self.0));
    }
}

impl Module for Buffer {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        visit(path.as_str(), Slot::Buffer(&self.0));
    }
}

impl Module for Mode {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        visit(path.as_str(), Slot::Mode(self));
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        (**self).walk(path, visit);
    }
}

impl<M: Module> Module for Option<M> {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        if let Some(m) = self {
            m.walk(path, visit);
        }
    }
}

impl<M: Module> Module for Vec<M> {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        for (i, m) in self.iter().enumerate() {
            path.enter(&i.to_string(), |path| m.walk(path, visit));
        }
    }
}

/// Plain settings hold no parameters.
macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Module for $t {
            fn walk(&self, _: &mut Path, _: &mut dyn FnMut(&str, Slot<'_>)) {}
        }
    )*};
}
plain!(bool, u8, u32, u64, usize, i32, i64, f32, f64, String);

/// Scales gradients down together so that their common norm is at most `max_norm`; gives the norm that they had.
///
/// ```no_run
/// # use flambeau_nn::{Linear, Module, clip_grad_norm};
/// # fn example(model: &Linear) -> flambeau_engine::base::Result<()> {
/// let norm = clip_grad_norm(&model.parameters(), 1.0)?;
/// # Ok(())
/// # }
/// ```
pub fn clip_grad_norm(parameters: &[Tensor], max_norm: f64) -> Result<f64> {
    let _guard = autograd::no_grad();
    let grads: Vec<Tensor> = parameters.iter().filter_map(|p| p.grad()).collect();
    if grads.is_empty() {
        return Ok(0.0);
    }
    let total = total_norm(&grads.iter().collect::<Vec<_>>(), 2.0)?;
    // One multiplication by a factor that is 1 where nothing is to be done, as PyTorch does it.
    let factor = Tensor::full(&[], max_norm, total.dtype(), total.device())?.div(&total.add(1e-6)?)?.clamp(f64::NEG_INFINITY, 1.0)?;
    for g in &grads {
        g.mul_(&factor)?;
    }
    Ok(total.item()?.to_f64())
}
