//! Transforms of functions of tensors: `vjp`, `grad`, `jvp`, `vmap`, and what derivatives of more are made of.
//!
//! They nest in any order. Each is a level, see NOTE [levels] in `level`.
//!
//! ```
//! use flambeau_engine::transform::functional::{grad, jvp, vmap};
//! # use flambeau_engine::{Tensor, base::Result};
//! # fn example(x: &Tensor) -> Result<()> {
//! // The second derivative of sin at each element of a vector: grad of grad, once for each example.
//! let second = vmap(|x| grad(|x| grad(|x| x.sin(), x), x), x)?;
//! // The derivative of sin along ones.
//! let (value, slope) = jvp(|x| x.sin(), x, &x.ones_like()?)?;
//! # Ok(())
//! # }
//! ```

use super::differentiate::Differentiate;
use super::level::{self, Entered};
use super::vectorize::{Randomness, Vectorize, unwrap_batch};
use crate::Tensor;
use crate::autograd::{self, BackwardOptions, mode};
use flambeau_base::{Error, Result, wrap_dim};
use std::rc::Rc;

/// A transform that is being carried out on this thread, until it is dropped.
pub struct Level {
    id: u32,
    /// Of `vmap`: how many examples.
    size: Option<usize>,
    _entered: Entered,
}

impl Level {
    /// Enters a level that differentiates: its tensors have histories and tangents of their own.
    pub fn differentiate() -> Level {
        let id = level::fresh();
        let entered = level::enter(Rc::new(Differentiate::new(id)));
        Level { id, size: None, _entered: entered }
    }

    /// Enters a level that carries operations on one example out on a batch of `size` of them.
    pub fn vectorize(size: usize, randomness: Randomness) -> Level {
        let id = level::fresh();
        let entered = level::enter(Rc::new(Vectorize::new(id, size, randomness)));
        Level { id, size: Some(size), _entered: entered }
    }

    /// Its number, which no other level of this process has.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// A tensor of this level that stands for `t`.
    pub fn wrap(&self, t: &Tensor) -> Tensor {
        t.wrap(self.id)
    }

    /// An example of the batch that lies along dimension `dim` of `t`. `RuntimeError` where that has another size than the batch.
    pub fn example(&self, t: &Tensor, dim: i64) -> Result<Tensor> {
        let d = wrap_dim("vmap", dim, t.ndim())?;
        let size = self.size.unwrap_or(0);
        if t.shape()[d] != size || size == 0 {
            return Err(Error::runtime(format!(
                "vmap: expected {size} examples along dimension {dim}, got a tensor of shape {:?}",
                t.shape()
            )));
        }
        example_at(self.id, t, d as i64)
    }

    /// The tensor below: what `t` stands for, or `t` itself where it does not belong to this level.
    pub fn unwrap(&self, t: &Tensor) -> Tensor {
        t.at_level(self.id).cloned().unwrap_or_else(|| t.clone())
    }

    /// The batch of which `t` is an example, along dimension `dim`; repeated where all examples are the same.
    pub fn batch(&self, t: &Tensor, dim: i64) -> Result<Tensor> {
        let _below = level::below();
        let front = unwrap_batch(t, self.id, self.size.unwrap_or(0))?;
        let d = wrap_dim("vmap", dim, front.ndim())?;
        if d == 0 { Ok(front) } else { front.movedim(&[0], &[d as i64]) }
    }
}

/// A tensor of a level that is being carried out, which stands for `t`.
pub fn wrap_at(level: u32, t: &Tensor) -> Tensor {
    t.wrap(level)
}

/// An example, of a level of `vmap` that is being carried out, of the batch along dimension `dim` of `t`.
pub fn example_at(level: u32, t: &Tensor, dim: i64) -> Result<Tensor> {
    let _beneath = level::beneath(level);
    let d = wrap_dim("vmap", dim, t.ndim())?;
    let front = if d == 0 { t.clone() } else { t.movedim(&[d as i64], &[0])? };
    Ok(front.wrap_batch(level))
}

/// The value of a function, and the function from a gradient of it to that of its argument.
///
/// ```
/// # use flambeau_engine::{Tensor, base::Result, transform::functional::vjp};
/// # fn example(x: &Tensor) -> Result<()> {
/// let (y, gradient) = vjp(|x| x.exp(), x, |y| y.ones_like())?;
/// # Ok(())
/// # }
/// ```
pub fn vjp(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    seed: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<(Tensor, Tensor)> {
    let level = Level::differentiate();
    let _mode = mode::enable_grad();
    let inside = level.wrap(x).requiring_grad()?;
    let y = f(&inside)?;
    let below = level.unwrap(&y);
    if !y.requires_grad() {
        return Ok((below, x.zeros_like()?));
    }
    let seed = seed(&below)?;
    let found = autograd::grad(&[&y], &[&inside], &[Some(seed)], BackwardOptions::default())?.swap_remove(0);
    let gradient = match found {
        Some(g) => level.unwrap(&g),
        None => x.zeros_like()?,
    };
    Ok((below, gradient))
}

/// The gradient of a function whose value has one element.
pub fn grad(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    Ok(grad_and_value(f, x)?.0)
}

/// The gradient of a function whose value has one element, and the value. `RuntimeError` where it has more.
pub fn grad_and_value(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let (value, gradient) = vjp(f, x, |y| {
        if y.numel() != 1 {
            return Err(Error::runtime(format!("grad: the function must return a tensor of one element, got shape {:?}", y.shape())));
        }
        y.ones_like()
    })?;
    Ok((gradient, value))
}

/// The value of a function, and its derivative along a tangent of the argument.
///
/// `RuntimeError` for a tangent of another shape or dtype than the argument's.
pub fn jvp(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor, tangent: &Tensor) -> Result<(Tensor, Tensor)> {
    let level = Level::differentiate();
    let inside = level.wrap(x);
    inside.set_tangent(Some(tangent.clone()))?;
    let y = f(&inside)?;
    let below = level.unwrap(&y);
    let slope = match y.tangent() {
        Some(t) if y.is_at_level(level.id) => t,
        _ => below.zeros_like()?,
    };
    Ok((below, slope))
}

/// A function of one example, carried out on all those along dimension 0 of `xs`; the results lie along dimension 0.
///
/// `RuntimeError` for a scalar, and for no examples.
pub fn vmap(f: impl FnOnce(&Tensor) -> Result<Tensor>, xs: &Tensor) -> Result<Tensor> {
    if xs.ndim() == 0 {
        return Err(Error::runtime("vmap: a tensor without dimensions has no examples"));
    }
    let level = Level::vectorize(xs.shape()[0], Randomness::Error);
    let y = f(&level.example(xs, 0)?)?;
    level.batch(&y, 0)
}

/// The matrix of derivatives of a function: of shape (shape of the value, shape of the argument). In reverse mode, all rows at once.
pub fn jacobian(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let level = Level::differentiate();
    let _mode = mode::enable_grad();
    let inside = level.wrap(x).requiring_grad()?;
    let y = f(&inside)?;
    let below = level.unwrap(&y);
    let n = y.numel();
    let shape: Vec<i64> = std::iter::once(n).chain(y.shape().iter().copied()).map(|n| n as i64).collect();
    let full: Vec<i64> = y.shape().iter().chain(x.shape()).map(|&n| n as i64).collect();
    if !y.requires_grad() || n == 0 {
        return Tensor::zeros(&full.iter().map(|&n| n as usize).collect::<Vec<_>>(), x.dtype(), x.device());
    }
    let basis = Tensor::eye(n, n, below.dtype(), below.device())?.reshape(&shape)?;
    let rows = vmap(
        |seed| {
            let options = BackwardOptions { retain_graph: true, create_graph: false };
            match autograd::grad(&[&y], &[&inside], &[Some(seed.clone())], options)?.swap_remove(0) {
                Some(g) => Ok(g),
                None => x.zeros_like(),
            }
        },
        &basis,
    )?;
    level.unwrap(&rows).reshape(&full)
}
