//! Every row under the transforms: forward mode against reverse mode, second derivatives by finite differences, `vmap` against a loop.

use super::sample::{Style, build};
use super::{differ, each, leaves, replaced, run, settled, words};
use flambeau::autograd::{BackwardOptions, enable_grad, grad, gradcheck};
use flambeau::base::ErrorKind;
use flambeau::ops::join::stack;
use flambeau::ops::{Args, Out, Row, Value};
use flambeau::prelude::*;
use flambeau::transform::functional::Level;
use flambeau::transform::vectorize::Randomness;

/// Complex results by their parts.
fn real(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { t.resolved()?.view_as_real() } else { Ok(t.clone()) }
}

/// Numbers that differ from each other, in the shape of a tensor.
fn weights(t: &Tensor, phase: f64) -> Result<Tensor> {
    let n = t.numel() as i64;
    Tensor::arange(0, n, 1, Some(DType::F64), t.device())?
        .mul(0.7)?
        .add(phase)?
        .sin()?
        .reshape(&t.shape().iter().map(|&n| n as i64).collect::<Vec<_>>())
}

fn dot(a: &Tensor, b: &Tensor) -> Result<f64> {
    Ok(real(a)?.mul(&real(b)?)?.sum()?.item()?.to_f64())
}

/// What differentiates of a call's results, each weighted.
fn weighted(row: &Row, args: &Args) -> Result<Vec<(Tensor, Tensor)>> {
    let out = settled(row, args)?;
    let floats = out.tensors().iter().filter(|t| t.dtype().is_differentiable());
    floats.map(real).map(|t| t.and_then(|t| Ok((t.clone(), weights(&t, 1.0)?.to_dtype(t.dtype())?)))).collect()
}

#[test]
fn forward_mode_is_the_transpose_of_reverse_mode() {
    each("tangents", |row, call| {
        if row.schema.contains("(a!)") {
            return Ok(());
        }
        let args = build(row, call, Style { grad: true, ..Style::plain(DType::F64) }).map_err(words)?;
        let inputs = leaves(&args);
        if inputs.is_empty() {
            return Ok(());
        }
        let check = || -> Result<Option<String>> {
            let tangents = inputs.iter().map(|x| weights(x, 2.0)?.to_dtype(x.dtype())).collect::<Result<Vec<_>>>()?;
            let made = weighted(row, &args)?;
            let roots: Vec<&(Tensor, Tensor)> = made.iter().filter(|(t, _)| t.requires_grad()).collect();
            let mut backward = 0.0;
            if !roots.is_empty() {
                let ys: Vec<&Tensor> = roots.iter().map(|(t, _)| t).collect();
                let seeds: Vec<Option<Tensor>> = roots.iter().map(|(_, w)| Some(w.clone())).collect();
                let found = grad(&ys, &inputs.iter().collect::<Vec<_>>(), &seeds, BackwardOptions::default())?;
                for (g, t) in found.iter().zip(&tangents) {
                    backward += g.as_ref().map_or(Ok(0.0), |g| dot(g, t))?;
                }
            }
            let level = Level::differentiate();
            let mut inside = Vec::new();
            for (x, t) in inputs.iter().zip(&tangents) {
                let x = level.wrap(&x.alias());
                x.set_tangent(Some(t.clone()))?;
                inside.push(x);
            }
            let mut forward = 0.0;
            for (y, w) in weighted(row, &replaced(&args, &inside))? {
                forward += y.tangent().map_or(Ok(0.0), |t| dot(&t, &level.unwrap(&w)))?;
            }
            let same = forward == backward || (forward - backward).abs() <= 1e-8 * backward.abs().max(1.0);
            Ok((!same).then(|| format!("forward {forward}, reverse {backward}")))
        };
        check().map_err(words)?.map_or(Ok(()), Err)
    });
}

#[test]
fn second_derivatives_are_those_of_finite_differences() {
    each("second derivatives", |row, call| {
        if row.schema.contains("(a!)") {
            return Ok(());
        }
        let args = build(row, call, Style { grad: true, ..Style::plain(DType::F64) }).map_err(words)?;
        let inputs = leaves(&args);
        // Each element costs two evaluations: larger calls say nothing more.
        if inputs.is_empty() || inputs.iter().map(|t| t.numel()).sum::<usize>() > 40 {
            return Ok(());
        }
        let gradients = |xs: &[Tensor]| -> Result<Vec<Tensor>> {
            let _mode = enable_grad();
            // Finite differences give leaves of their own.
            let leaf = |x: &Tensor| if x.requires_grad() { Ok(x.clone()) } else { x.alias().requiring_grad() };
            let xs = &xs.iter().map(leaf).collect::<Result<Vec<_>>>()?[..];
            let made = weighted(row, &replaced(&args, xs))?;
            let roots: Vec<&(Tensor, Tensor)> = made.iter().filter(|(t, _)| t.requires_grad()).collect();
            if roots.is_empty() {
                return Ok(Vec::new());
            }
            let ys: Vec<&Tensor> = roots.iter().map(|(t, _)| t).collect();
            let seeds: Vec<Option<Tensor>> = roots.iter().map(|(_, w)| Some(w.clone())).collect();
            let options = BackwardOptions { retain_graph: true, create_graph: true };
            let found = grad(&ys, &xs.iter().collect::<Vec<_>>(), &seeds, options)?;
            found.into_iter().zip(xs).map(|(g, x)| real(&g.map_or_else(|| x.zeros_like(), Ok)?)).collect()
        };
        match gradcheck(gradients, &inputs, 1e-6, 1e-5, 1e-3) {
            // PyTorch has none either.
            Err(e) if e.kind() == ErrorKind::NotImplemented && row.name().ends_with("ctc_loss") => Ok(()),
            found => found.map_err(words),
        }
    });
}

/// A call for each of three examples: floating point arguments differ a little from one to the next.
fn examples(args: &Args) -> Result<Vec<Args>> {
    let vary = |t: &Tensor, b: i64| if t.dtype().is_float() && b > 0 { t.mul(1.0 - 0.03 * b as f64) } else { Ok(t.clone()) };
    (0..3).map(|b| with_tensors(args, &mut |t| vary(t, b))).collect()
}

/// The call with what `f` makes of each tensor.
fn with_tensors(args: &Args, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Args> {
    let mut made = args.clone();
    for value in &mut made.values {
        match value {
            Value::Tensor(t) => *t = f(t)?,
            Value::Tensors(ts) => {
                for t in ts.iter_mut().flatten() {
                    *t = f(t)?;
                }
            }
            _ => {}
        }
    }
    Ok(made)
}

/// Rows whose results depend on all values, or have a shape that does, or draw random numbers: `vmap` refuses them in words.
fn may_refuse(e: &str) -> bool {
    ["vmap: It looks like", "the shape of the result depends on the values", "randomness"].iter().any(|w| e.contains(w))
}

#[test]
fn vmap_gives_what_a_loop_gives() {
    let (mut refused, mut compared) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    each("vmap", |row, call| {
        let args = build(row, call, Style::plain(DType::F64)).map_err(words)?;
        let has_tensors = args.values.iter().any(|v| matches!(v, Value::Tensor(_) | Value::Tensors(_)));
        if row.schema.contains("(a!)") || !has_tensors {
            return Ok(());
        }
        let check = || -> Result<Option<String>> {
            let all = examples(&args)?;
            let Ok(singles) = all.iter().map(|a| run(row, a)).collect::<Result<Vec<Out>>>() else { return Ok(None) };
            let level = Level::vectorize(3, Randomness::Same);
            let mut at = 0;
            let inside = with_tensors(&args, &mut |_| {
                // The same tensor of each example, one after the other.
                let column = all.iter().map(|a| nth(a, at)).collect::<Vec<Tensor>>();
                at += 1;
                level.example(&stack(&column.iter().collect::<Vec<_>>(), 0)?, 0)
            })?;
            let got = match run(row, &inside) {
                Err(e) if may_refuse(e.message()) => {
                    refused.set(refused.get() + 1);
                    return Ok(None);
                }
                got => got?,
            };
            let got = got.tensors().iter().map(|t| level.batch(t, 0)).collect::<Result<Vec<_>>>()?;
            drop(level);
            for (b, want) in singles.iter().enumerate() {
                let one = Out::List(got.iter().map(|t| t.select(0, b as i64)).collect::<Result<_>>()?);
                if let Some(line) = differ(&one, want, 1e-9) {
                    return Ok(Some(format!("example {b}: {line}")));
                }
            }
            compared.set(compared.get() + 1);
            Ok(None)
        };
        check().map_err(words)?.map_or(Ok(()), Err)
    });
    let (refused, compared) = (*refused.get_mut(), *compared.get_mut());
    assert!(compared > 20 * refused, "{compared} calls agree, {refused} are refused");
}

fn nth(args: &Args, n: usize) -> Tensor {
    let tensors = |v: &Value| match v {
        Value::Tensor(t) => vec![t.clone()],
        Value::Tensors(ts) => ts.iter().flatten().cloned().collect(),
        _ => Vec::new(),
    };
    args.values.iter().flat_map(tensors).nth(n).unwrap()
}
