//! Every row of the table of operations, tested from the table: every dtype, in place, `out=`, strided inputs, the meta
//! device, gradients by finite differences, a plain reference where the row has one. A new row gets all of it.

mod sample;
mod transforms;

use flambeau::autograd::gradcheck;
use flambeau::base::{Error, ErrorKind};
use flambeau::ops::{Args, Call, Out, Row, Value, ops};
use flambeau::prelude::*;
use sample::{Style, build, parse};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a check on every sample of every row; reports all that fail at once.
fn each(what: &str, check: impl Fn(&Row, &sample::Call) -> Result<(), String>) {
    let (mut failed, mut tried) = (Vec::new(), 0);
    for row in ops() {
        for text in row.samples {
            tried += 1;
            let call = parse(text);
            let line = match catch_unwind(AssertUnwindSafe(|| check(row, &call))) {
                Ok(Ok(())) => continue,
                Ok(Err(line)) => line,
                Err(panic) => format!("panicked: {}", panic.downcast_ref::<String>().map_or("?", |s| s)),
            };
            failed.push(format!("{} [{text}]: {line}", row.schema));
        }
    }
    assert!(tried > 100, "{what}: the table has samples");
    assert!(failed.is_empty(), "{what}: {} of {tried} samples fail:\n{}", failed.len(), failed.join("\n"));
}

fn run(row: &Row, args: &Args) -> Result<Out> {
    // Random rows draw the same numbers each time.
    manual_seed(7);
    row.run(args)
}

/// Results without what is not unique: singular vectors are held to their magnitudes and to the product they make.
fn settled(row: &Row, args: &Args) -> Result<Out> {
    let out = run(row, args)?;
    if !matches!(row.name(), "linalg_svd" | "svd") {
        return Ok(out);
    }
    let [u, s, v] = out.tensors() else { return Ok(out) };
    let k = s.shape()[s.ndim() - 1];
    let rows = if row.name() == "svd" { v.adjoint()? } else { v.clone() };
    let product = u.narrow(-1, 0, k as i64)?.mul(&s.unsqueeze(-2)?)?.matmul(&rows.narrow(-2, 0, k as i64)?)?;
    Ok(Out::List(vec![u.abs()?, s.clone(), v.abs()?, product]))
}

fn words(e: Error) -> String {
    format!("{e:?}")
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_scalars().unwrap().into_iter().map(|s| s.to_f64()).collect()
}

/// The first place where two results differ by more than a tolerance.
fn differ(got: &Out, want: &Out, tolerance: f64) -> Option<String> {
    let (g, w) = (got.tensors(), want.tensors());
    if g.len() != w.len() {
        return Some(format!("{} results, expected {}", g.len(), w.len()));
    }
    for (i, (a, b)) in g.iter().zip(w).enumerate() {
        if a.shape() != b.shape() {
            return Some(format!("result {i} has shape {:?}, expected {:?}", a.shape(), b.shape()));
        }
        for (at, (x, y)) in numbers(a).into_iter().zip(numbers(b)).enumerate() {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * y.abs().max(1.0);
            if !same {
                return Some(format!("result {i}, element {at}: {x}, expected {y}"));
            }
        }
    }
    None
}

fn expect_same(got: &Out, want: &Out, tolerance: f64, what: &str) -> Result<(), String> {
    differ(got, want, tolerance).map_or(Ok(()), |line| Err(format!("{what}: {line}")))
}

#[test]
fn every_signature_parses_and_every_row_is_documented() {
    for row in ops() {
        if let Err(e) = flambeau::ops::schema::Schema::parse(row.schema) {
            panic!("{e}");
        }
        assert!(!row.doc.is_empty(), "{} has no text", row.schema);
        // What has no values to compare needs no samples: tensors that are not set, and plain draws.
        let bare = row.name().starts_with("empty")
            || row.name().starts_with("new_empty")
            || row.schema.contains("Generator?")
            || row.name().starts_with("rand");
        let acts_in_place = row.schema.contains("(a!)");
        assert!(bare || acts_in_place || row.name() == "dropout" || !row.samples.is_empty(), "{} has no samples", row.schema);
    }
}

#[test]
fn references_agree() {
    each("references", |row, call| {
        let Some(reference) = row.reference else { return Ok(()) };
        let args = build(row, call, Style::plain(DType::F64)).map_err(words)?;
        let got = run(row, &args).map_err(words)?;
        let [got] = got.tensors() else { return Err("a reference is for one result".into()) };
        let mut operands = Vec::new();
        for value in &args.values {
            match value {
                Value::Tensor(t) => operands.push(numbers(&t.expand_as(got).map_err(words)?)),
                Value::Scalar(s) => operands.push(vec![s.to_f64(); got.numel()]),
                _ => {}
            }
        }
        for (at, x) in numbers(got).into_iter().enumerate() {
            let point: Vec<f64> = operands.iter().map(|o| o[at]).collect();
            let want = reference(&point);
            if (x - want).abs() > 1e-12 * want.abs().max(1.0) {
                return Err(format!("element {at}: {x}, the reference gives {want} for {point:?}"));
            }
        }
        Ok(())
    });
}

#[test]
fn every_dtype_computes_or_is_refused() {
    each("dtypes", |row, call| {
        let exact = settled(row, &build(row, call, Style::plain(DType::F64)).map_err(words)?).map_err(|e| format!("float64: {e}"));
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8, DType::Bool] {
            let got = settled(row, &build(row, call, Style::plain(dtype)).map_err(words)?);
            match (&exact, got) {
                (_, Err(e)) if matches!(e.kind(), ErrorKind::OutOfMemory | ErrorKind::Io | ErrorKind::Attribute) => {
                    return Err(format!("{dtype}: {e:?}"));
                }
                (Ok(_), Err(e)) if dtype == DType::F32 => return Err(format!("float32: {e}")),
                (Ok(want), Ok(got)) if dtype == DType::F32 && !row.schema.contains("Generator") => {
                    // Orders of equal or nearly equal values may turn over in lower precision; single keeps them.
                    expect_same(&got, want, 2e-4, "float32")?;
                }
                _ => {}
            }
        }
        exact.map(|_| ())
    });
}

#[test]
fn strided_inputs_give_the_same() {
    each("strided", |row, call| {
        if row.by_layout {
            return Ok(());
        }
        for dtype in [DType::F64, DType::F32] {
            let plain = settled(row, &build(row, call, Style::plain(dtype)).map_err(words)?).map_err(words)?;
            let strided = build(row, call, Style { strided: true, ..Style::plain(dtype) }).map_err(words)?;
            let tolerance = if dtype == DType::F64 { 1e-12 } else { 1e-5 };
            expect_same(&settled(row, &strided).map_err(words)?, &plain, tolerance, dtype.name())?;
        }
        Ok(())
    });
}

#[test]
fn in_place_forms_give_the_same() {
    each("in place", |row, call| {
        if !row.inplace {
            return Ok(());
        }
        let args = build(row, call, Style::plain(DType::F32)).map_err(words)?;
        let want = run(row, &args).map_err(words)?;
        let Ok(target) = args.tensor(0) else { return Ok(()) };
        let fits = want.tensors()[0].shape() == target.shape() && want.tensors()[0].dtype().can_cast(target.dtype());
        let (target, before) = (target.clone(), target.version());
        let mut args = args;
        manual_seed(7);
        match row.run_inplace(&mut args) {
            Ok(_) if !fits => return Err("a result that does not fit was taken".into()),
            Err(e) => return if fits { Err(words(e)) } else { Ok(()) },
            Ok(_) => {}
        }
        // What hands its argument on (dropout outside training) writes nothing.
        let same = want.tensors()[0].is(&target) && !row.schema.contains("(a)");
        if target.version() == before && !same {
            return Err("the version did not grow".into());
        }
        let want = want.tensors()[0].to_dtype(target.dtype()).map_err(words)?;
        expect_same(&Out::Tensor(target), &Out::Tensor(want), 0.0, "float32")
    });
}

#[test]
fn out_receives_the_result() {
    each("out=", |row, call| {
        if !row.out || matches!(row.call, Call::Function(_)) && row.schema.contains("[]") && !row.schema.contains("-> Tensor") {
            return Ok(());
        }
        let args = build(row, call, Style::plain(DType::F32)).map_err(words)?;
        let want = run(row, &args).map_err(words)?;
        for empty in [true, false] {
            let outs: Vec<Tensor> = want
                .tensors()
                .iter()
                .map(|w| Tensor::empty(if empty { &[0] } else { w.shape() }, w.dtype(), Device::CPU))
                .collect::<Result<_>>()
                .map_err(words)?;
            manual_seed(7);
            // SAFETY: no other thread knows these tensors.
            unsafe { row.run_out(&args, &outs.iter().collect::<Vec<_>>()) }.map_err(words)?;
            expect_same(&Out::List(outs), &want, 0.0, "float32")?;
        }
        Ok(())
    });
}

#[test]
fn gradients_are_those_of_finite_differences() {
    each("gradients", |row, call| {
        if row.schema.contains("(a!)") {
            return Ok(());
        }
        for strided in [false, true] {
            if strided && row.by_layout {
                return Ok(());
            }
            let args = build(row, call, Style { grad: true, strided, ..Style::plain(DType::F64) }).map_err(words)?;
            let inputs: Vec<Tensor> = leaves(&args);
            if inputs.is_empty() {
                return Ok(());
            }
            // Complex results are compared by their parts.
            let real = |t: &Tensor| if t.dtype().is_complex() { t.resolved()?.view_as_real() } else { Ok(t.clone()) };
            let f = |xs: &[Tensor]| settled(row, &replaced(&args, xs))?.tensors().iter().map(real).collect::<Result<Vec<Tensor>>>();
            gradcheck(f, &inputs, 1e-6, 1e-5, 1e-4).map_err(words)?;
        }
        Ok(())
    });
}

/// The tensors of a call that ask for a gradient.
fn leaves(args: &Args) -> Vec<Tensor> {
    let tensors = |v: &Value| match v {
        Value::Tensor(t) => vec![t.clone()],
        Value::Tensors(ts) => ts.iter().flatten().cloned().collect(),
        _ => Vec::new(),
    };
    args.values.iter().flat_map(tensors).filter(|t| t.requires_grad()).collect()
}

/// The call with other tensors in the places of [`leaves`].
fn replaced(args: &Args, with: &[Tensor]) -> Args {
    let mut next = with.iter().cloned();
    let mut swap = |t: &Tensor| if t.requires_grad() { next.next().unwrap() } else { t.clone() };
    let values = args
        .values
        .iter()
        .map(|v| match v {
            Value::Tensor(t) => Value::Tensor(swap(t)),
            Value::Tensors(ts) => Value::Tensors(ts.iter().map(|t| t.as_ref().map(&mut swap)).collect()),
            other => other.clone(),
        })
        .collect();
    Args { name: args.name, values }
}

#[test]
fn the_meta_device_knows_shapes_and_dtypes() {
    each("meta", |row, call| {
        let want = run(row, &build(row, call, Style::plain(DType::F32)).map_err(words)?).map_err(words)?;
        let args = build(row, call, Style { device: Device::META, ..Style::plain(DType::F32) }).map_err(words)?;
        if leaves_any(&args) {
            match run(row, &args) {
                Ok(got) => {
                    for (g, w) in got.tensors().iter().zip(want.tensors()) {
                        if g.shape() != w.shape() || g.dtype() != w.dtype() || !g.device().is_meta() {
                            return Err(format!("{:?} {} on {}, expected {:?} {}", g.shape(), g.dtype(), g.device(), w.shape(), w.dtype()));
                        }
                    }
                }
                // What depends on values cannot be known; it is said, not crashed.
                Err(e) if e.kind() == ErrorKind::NotImplemented => {}
                Err(e) => return Err(words(e)),
            }
        }
        Ok(())
    });
}

fn leaves_any(args: &Args) -> bool {
    args.values.iter().any(|v| matches!(v, Value::Tensor(_)) || matches!(v, Value::Tensors(t) if !t.is_empty()))
}
