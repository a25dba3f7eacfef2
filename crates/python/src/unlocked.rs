//! Work without the GIL, where it is worth it.

use crate::error::*;
use crate::parse::{Form, Parsed};
use flambeau_engine::Tensor;
use flambeau_engine::autograd::is_grad_enabled;
use flambeau_engine::ops::{Args, Out, Value};
use pyo3::prelude::*;

/// Elements from which letting other threads run costs less than it gives.
const WORTH: usize = 1 << 16;

/// Carries a row out; without the GIL where much is to be done.
///
/// NOTE [metadata] of the engine: other threads may change a tensor's metadata meanwhile (`set_`,
/// `x.data = y`), so work without the GIL gets aliases. Those have no history, so what is recorded keeps
/// the GIL; and so does what gives views or its argument itself.
#[inline]
pub fn run(py: Python<'_>, form: &Form, parsed: &mut Parsed) -> Ret<Out> {
    if heavy(parsed.args()) && form.fresh() {
        return run_without(py, form, parsed.args());
    }
    Ok(form.row.run(parsed.args())?)
}

#[inline]
fn heavy(args: &Args) -> bool {
    args.values.iter().any(|v| match v {
        Value::Tensor(t) => t.numel() >= WORTH,
        _ => false,
    })
}

#[cold]
fn run_without(py: Python<'_>, form: &Form, args: &Args) -> Ret<Out> {
    let tensors = || {
        args.values.iter().flat_map(|v| match v {
            Value::Tensor(t) => std::slice::from_ref(t).iter().collect::<Vec<&Tensor>>(),
            Value::Tensors(ts) => ts.iter().flatten().collect(),
            _ => Vec::new(),
        })
    };
    if (is_grad_enabled() && tensors().any(|t| t.requires_grad())) || tensors().any(|t| t.ndim() == 0 || t.device().is_meta()) {
        return Ok(form.row.run(args)?);
    }
    let mut aliases = Args { name: args.name, values: args.values.clone() };
    for value in &mut aliases.values {
        match value {
            Value::Tensor(t) => *t = t.alias(),
            Value::Tensors(ts) => ts.iter_mut().flatten().for_each(|t| *t = t.alias()),
            _ => {}
        }
    }
    let result = py.detach(|| {
        let _outside = crate::front::Inside::leave();
        form.row.run(&aliases)
    })?;
    // A function that hands on its argument hands on the argument, not the alias.
    if let Out::Tensor(out) = &result {
        for (alias, value) in aliases.values.iter().zip(&args.values) {
            if let (Value::Tensor(a), Value::Tensor(t)) = (alias, value)
                && a.is(out)
            {
                return Ok(Out::Tensor(t.clone()));
            }
        }
    }
    Ok(result)
}
