//! Autocast: operations of the table choose the precision in which they compute.
//!
//! While it is on, a row that says so ([`Op::autocast`](crate::ops::table::Op)) gets its floating point operands in
//! another dtype: products in a lower one, losses in single precision, those that mix dtypes in the widest that is among
//! them. Doubles and tensors of other devices stay as they are. Which row does what is a field of the row.
//!
//! The state belongs to a thread. Casts of leaves that require grad are kept until the outermost region ends, so that a
//! weight that is used twice is converted once, and its gradient arrives in one piece.

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::ops::{Args, Value};
use flambeau_base::{DType, Device, Result};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// What autocast does with an operation's floating point operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Autocast {
    /// They stay as they are.
    #[default]
    Keep,
    /// They become the region's lower precision.
    Lower,
    /// They become single precision.
    Full,
    /// They become the widest dtype among them.
    Widest,
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static DTYPE: Cell<DType> = const { Cell::new(DType::BF16) };
    static KEEPS: Cell<bool> = const { Cell::new(true) };
    static NESTING: Cell<u32> = const { Cell::new(0) };
    static CASTS: RefCell<HashMap<usize, Kept>> = RefCell::new(HashMap::new());
}

/// A leaf with what became of it: its version then, and the cast.
struct Kept {
    leaf: Tensor,
    version: u32,
    cast: Tensor,
}

/// Whether autocast is on in this thread.
#[inline]
pub fn is_active() -> bool {
    ACTIVE.get()
}

/// Switches autocast in this thread; gives what it was.
pub fn set_active(on: bool) -> bool {
    ACTIVE.replace(on)
}

/// The lower precision in this thread: `bfloat16` unless it was set.
pub fn dtype() -> DType {
    DTYPE.get()
}

/// Sets the lower precision in this thread; gives what it was.
pub fn set_dtype(dtype: DType) -> DType {
    DTYPE.replace(dtype)
}

/// Whether casts of leaves are kept.
pub fn keeps_casts() -> bool {
    KEEPS.get()
}

/// Says whether casts of leaves are kept; gives what it was.
pub fn set_keeps_casts(on: bool) -> bool {
    KEEPS.replace(on)
}

/// Forgets the casts that were kept.
pub fn forget_casts() {
    let casts = CASTS.take();
    drop(casts);
}

/// Goes into a region; gives how many there are now, one in another.
pub fn enter() -> u32 {
    NESTING.set(NESTING.get() + 1);
    NESTING.get()
}

/// Leaves a region; gives in how many one still is.
pub fn leave() -> u32 {
    NESTING.set(NESTING.get().saturating_sub(1));
    NESTING.get()
}

/// Runs `f` with products in a lower precision.
///
/// ```
/// # use flambeau_engine::transform::autocast;
/// # use flambeau_base::DType;
/// autocast::with(DType::F16, || assert!(autocast::is_active()));
/// assert!(!autocast::is_active());
/// ```
pub fn with<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    struct Back(bool, DType);
    impl Drop for Back {
        fn drop(&mut self) {
            set_active(self.0);
            set_dtype(self.1);
            if leave() == 0 {
                forget_casts();
            }
        }
    }
    enter();
    let _back = Back(set_active(true), set_dtype(dtype));
    f()
}

/// Runs `f` on the arguments as autocast wants them, with autocast off meanwhile.
#[cold]
pub(crate) fn run<R>(choice: Autocast, args: &Args, f: impl FnOnce(&Args) -> Result<R>) -> Result<R> {
    struct On;
    impl Drop for On {
        fn drop(&mut self) {
            ACTIVE.set(true);
        }
    }
    ACTIVE.set(false);
    let _on = On;
    let dtype = match choice {
        Autocast::Keep => return f(args),
        Autocast::Lower => DTYPE.get(),
        Autocast::Full => DType::F32,
        Autocast::Widest => widest(args),
    };
    let mut values = args.values.clone();
    for value in &mut values {
        match value {
            Value::Tensor(t) => *t = cast(t, dtype)?,
            Value::Tensors(ts) => {
                for t in ts.iter_mut().flatten() {
                    *t = cast(t, dtype)?;
                }
            }
            _ => {}
        }
    }
    f(&Args { name: args.name, values })
}

/// The widest dtype among those that autocast looks at.
fn widest(args: &Args) -> DType {
    let single = |t: &Tensor| concerns(t) && t.dtype() == DType::F32;
    let any = args.values.iter().any(|v| match v {
        Value::Tensor(t) => single(t),
        Value::Tensors(ts) => ts.iter().flatten().any(single),
        _ => false,
    });
    if any { DType::F32 } else { DTYPE.get() }
}

/// Whether autocast looks at a tensor.
fn concerns(t: &Tensor) -> bool {
    t.dtype().is_float() && t.dtype() != DType::F64 && t.device() == Device::CPU
}

fn cast(t: &Tensor, dtype: DType) -> Result<Tensor> {
    if !concerns(t) || t.dtype() == dtype {
        return Ok(t.clone());
    }
    let keep = KEEPS.get() && is_grad_enabled() && t.dtype() == DType::F32 && t.requires_grad() && t.is_leaf() && t.base().is_none();
    if !keep {
        return t.to_dtype(dtype);
    }
    let known = CASTS.with_borrow(|casts| {
        casts.get(&t.id()).filter(|k| k.leaf.is(t) && k.version == t.version() && k.cast.dtype() == dtype).map(|k| k.cast.clone())
    });
    if let Some(cast) = known {
        return Ok(cast);
    }
    let cast = t.to_dtype(dtype)?;
    let old = CASTS.with_borrow_mut(|casts| casts.insert(t.id(), Kept { leaf: t.clone(), version: t.version(), cast: cast.clone() }));
    drop(old);
    Ok(cast)
}
