//! Optimizers and schedules.

use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, Error, Result};
use flambeau_engine::ops::optim::{Adam, Sgd as SgdStep, adam_step, sgd_step};

/// Parameters that are stepped alike.
#[derive(Clone, Debug)]
pub struct Group {
    /// The parameters.
    pub parameters: Vec<Tensor>,
    /// How strongly they are pulled towards zero.
    pub weight_decay: f64,
}

impl Group {
    /// Parameters without weight decay.
    pub fn new(parameters: Vec<Tensor>) -> Group {
        Group { parameters, weight_decay: 0.0 }
    }

    /// With weight decay.
    pub fn weight_decay(mut self, decay: f64) -> Group {
        self.weight_decay = decay;
        self
    }
}

/// What all optimizers can do.
pub trait Optimizer {
    /// Changes the parameters that have a gradient.
    fn step(&mut self) -> Result<()>;

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Sets the learning rate.
    fn set_lr(&mut self, lr: f64);

    /// The parameters, group by group.
    fn groups(&self) -> &[Group];

    /// Forgets the parameters' gradients.
    fn zero_grad(&self) {
        for p in self.groups().iter().flat_map(|g| &g.parameters) {
            p.set_grad(None);
        }
    }
}

/// Adam with weight decay on the parameters themselves (Loshchilov and Hutter, 2019).
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::{Tensor, base::Result};
/// use flambeau_nn::optim::{AdamW, Group, Optimizer};
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[1.0f32], &[1])?.requiring_grad()?;
/// let mut optimizer = AdamW::new(vec![Group::new(vec![x.clone()])], 0.1);
/// x.square()?.sum()?.backward()?;
/// optimizer.step()?;
/// assert!((x.item()?.to_f64() - 0.9).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AdamW {
    groups: Vec<Group>,
    options: Adam,
    /// One for each parameter, group by group; made at its first step.
    state: Vec<Option<AdamState>>,
}

/// What AdamW keeps of a parameter.
#[derive(Clone, Debug)]
pub struct AdamState {
    /// How many steps it has made: a 0-dimensional float32 tensor, as in PyTorch's files.
    pub step: Tensor,
    /// Running mean of the gradient.
    pub exp_avg: Tensor,
    /// Running mean of its square.
    pub exp_avg_sq: Tensor,
}

impl AdamW {
    /// With PyTorch's other defaults: betas 0.9 and 0.999, epsilon 1e-8.
    pub fn new(groups: Vec<Group>, lr: f64) -> AdamW {
        let count = groups.iter().map(|g| g.parameters.len()).sum();
        AdamW { groups, options: Adam { lr, decoupled: true, ..Adam::default() }, state: vec![None; count] }
    }

    /// Decays of the running means.
    pub fn betas(mut self, beta1: f64, beta2: f64) -> AdamW {
        (self.options.beta1, self.options.beta2) = (beta1, beta2);
        self
    }

    /// What is kept of each parameter, group by group: for checkpoints.
    pub fn state(&self) -> &[Option<AdamState>] {
        &self.state
    }

    /// Puts back what [`AdamW::state`] gave. `ValueError` unless there is one for each parameter.
    pub fn load_state(&mut self, state: Vec<Option<AdamState>>) -> Result<()> {
        if state.len() != self.state.len() {
            return Err(Error::value(format!("AdamW: the state is for {} parameters, there are {}", state.len(), self.state.len())));
        }
        self.state = state;
        Ok(())
    }
}

impl Optimizer for AdamW {
    fn step(&mut self) -> Result<()> {
        let mut state = self.state.iter_mut();
        for group in &self.groups {
            let mut ready = Vec::new();
            for (p, state) in group.parameters.iter().zip(state.by_ref()) {
                let Some(grad) = p.grad() else { continue };
                if state.is_none() {
                    let step = Tensor::zeros(&[], DType::F32, Device::CPU)?;
                    *state = Some(AdamState { step, exp_avg: p.zeros_like()?, exp_avg_sq: p.zeros_like()? });
                }
                if let Some(s) = state {
                    ready.push((p, grad, s));
                }
            }
            let params: Vec<&Tensor> = ready.iter().map(|r| r.0).collect();
            let grads: Vec<&Tensor> = ready.iter().map(|r| &r.1).collect();
            let means: Vec<&Tensor> = ready.iter().map(|r| &r.2.exp_avg).collect();
            let squares: Vec<&Tensor> = ready.iter().map(|r| &r.2.exp_avg_sq).collect();
            let steps: Vec<&Tensor> = ready.iter().map(|r| &r.2.step).collect();
            let options = Adam { weight_decay: group.weight_decay, ..self.options };
            adam_step(&params, &grads, &means, &squares, &[], &steps, &options)?;
        }
        Ok(())
    }

    fn lr(&self) -> f64 {
        self.options.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.options.lr = lr;
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }
}

/// Stochastic gradient descent with momentum.
#[derive(Clone, Debug)]
pub struct Sgd {
    groups: Vec<Group>,
    options: SgdStep,
    buffers: Vec<Vec<Option<Tensor>>>,
}

impl Sgd {
    /// Without momentum.
    pub fn new(groups: Vec<Group>, lr: f64) -> Sgd {
        let buffers = groups.iter().map(|g| vec![None; g.parameters.len()]).collect();
        let options = SgdStep { lr, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false, maximize: false };
        Sgd { groups, options, buffers }
    }

    /// With momentum, Nesterov's if asked for.
    pub fn momentum(mut self, momentum: f64, nesterov: bool) -> Sgd {
        (self.options.momentum, self.options.nesterov) = (momentum, nesterov);
        self
    }
}

impl Optimizer for Sgd {
    fn step(&mut self) -> Result<()> {
        for (group, buffers) in self.groups.iter().zip(&mut self.buffers) {
            let with_grad: Vec<usize> = (0..group.parameters.len()).filter(|&i| group.parameters[i].grad().is_some()).collect();
            let grads: Vec<Tensor> = with_grad.iter().filter_map(|&i| group.parameters[i].grad()).collect();
            let params: Vec<&Tensor> = with_grad.iter().map(|&i| &group.parameters[i]).collect();
            let mut kept: Vec<Option<Tensor>> = with_grad.iter().map(|&i| buffers[i].take()).collect();
            let options = SgdStep { weight_decay: group.weight_decay, ..self.options };
            sgd_step(&params, &grads.iter().collect::<Vec<_>>(), &mut kept, &options)?;
            for (i, buffer) in with_grad.into_iter().zip(kept) {
                buffers[i] = buffer;
            }
        }
        Ok(())
    }

    fn lr(&self) -> f64 {
        self.options.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.options.lr = lr;
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }
}

/// A learning rate that is the first one times a function of the step.
pub struct LambdaLr<F> {
    base: f64,
    factor: F,
    done: usize,
}

impl<F: Fn(usize) -> f64> LambdaLr<F> {
    /// Sets the rate of step 0.
    pub fn new(optimizer: &mut dyn Optimizer, factor: F) -> LambdaLr<F> {
        let base = optimizer.lr();
        optimizer.set_lr(base * factor(0));
        LambdaLr { base, factor, done: 0 }
    }

    /// Sets the rate of the next step.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        self.done += 1;
        optimizer.set_lr(self.base * (self.factor)(self.done));
    }
}
