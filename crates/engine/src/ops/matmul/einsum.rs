//! Sums of products after Einstein's convention.

use crate::Tensor;
use crate::ops::table::{Op, function, place};
use flambeau_base::{Error, Result, show};
use smallvec::SmallVec;

/// A subscript: a letter, or a dimension that the ellipsis stands for (counted from its end).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
enum Axis {
    Ellipsis(usize),
    Letter(char),
}

/// An operand whose dimensions bear subscripts, each of them once.
struct Term {
    tensor: Tensor,
    axes: Vec<Axis>,
}

/// Einstein's convention: subscripts that the result lacks are summed over.
///
/// `RuntimeError` for an equation that does not fit the operands.
pub fn einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
    let wrong = |why: String| Error::runtime(format!("einsum: {why} (equation '{equation}')"));
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((i, o)) => (i.to_string(), Some(o.to_string())),
        None => (text, None),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != operands.len() {
        let words = if inputs.len() < operands.len() {
            "fewer operands were named than provided"
        } else {
            "more operands were named than provided"
        };
        return Err(wrong(format!("{words}: {} subscripts and {} operands", inputs.len(), operands.len())));
    }
    let mut terms = Vec::new();
    for (i, (subscripts, t)) in inputs.iter().zip(operands).enumerate() {
        let axes = axes_of(subscripts, Some(t.ndim())).map_err(|e| wrong(format!("operand {i} of shape {}: {e}", show(t.shape()))))?;
        terms.push(diagonalised(t, axes).map_err(|e| e.context(format!("einsum: operand {i}")))?);
    }
    let output = match &output {
        Some(o) => {
            let dots = terms
                .iter()
                .flat_map(|t| &t.axes)
                .filter_map(|a| if let Axis::Ellipsis(d) = a { Some(d + 1) } else { None })
                .max()
                .unwrap_or(0);
            expand_output(o, dots).map_err(wrong)?
        }
        None => implied_output(&inputs, &terms),
    };
    check_output(&output, &terms).map_err(wrong)?;
    contract(terms, &output).map_err(|e| e.context(format!("einsum '{equation}'")))
}

/// Subscripts of one operand; the ellipsis takes the dimensions that no letter names.
fn axes_of(subscripts: &str, ndim: Option<usize>) -> Result<Vec<Axis>, String> {
    let letters = subscripts.replace("...", "");
    if let Some(c) = letters.chars().find(|c| !c.is_ascii_alphabetic()) {
        return Err(format!("'{c}' is not a letter: subscripts are in [a-zA-Z]"));
    }
    let (named, n) = (letters.len(), ndim.unwrap_or(letters.len()));
    let has_dots = subscripts.contains("...");
    if named > n || (!has_dots && named != n) {
        return Err(format!("the number of subscripts ({named}) does not match the number of dimensions ({n})"));
    }
    let mut axes = Vec::new();
    let mut rest = subscripts;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            axes.extend((0..n - named).rev().map(Axis::Ellipsis));
            rest = after;
            if rest.contains("...") {
                return Err("more than one ellipsis".into());
            }
        } else {
            axes.push(Axis::Letter(c));
            rest = &rest[1..];
        }
    }
    Ok(axes)
}

fn expand_output(o: &str, dots: usize) -> Result<Vec<Axis>, String> {
    let letters = o.replace("...", "").len();
    axes_of(o, Some(if o.contains("...") { letters + dots } else { letters }))
}

/// Without an arrow: the ellipsis first, then the letters that appear once, in alphabetical order.
fn implied_output(inputs: &[&str], terms: &[Term]) -> Vec<Axis> {
    let all: String = inputs.concat();
    let mut axes: Vec<Axis> = terms.iter().flat_map(|t| t.axes.iter().copied()).collect();
    axes.sort_by_key(|a| match a {
        Axis::Ellipsis(d) => (0, usize::MAX - d, ' '),
        Axis::Letter(c) => (1, 0, *c),
    });
    axes.dedup();
    axes.retain(|a| match a {
        Axis::Ellipsis(_) => true,
        Axis::Letter(c) => all.matches(*c).count() == 1,
    });
    axes
}

fn check_output(output: &[Axis], terms: &[Term]) -> Result<(), String> {
    for (i, axis) in output.iter().enumerate() {
        if output[..i].contains(axis) {
            return Err(format!("output subscript {} appears more than once in the output", name(axis)));
        }
        if !terms.iter().any(|t| t.axes.contains(axis)) {
            return Err(format!("output subscript {} does not appear in the equation for any input operand", name(axis)));
        }
    }
    Ok(())
}

fn name(a: &Axis) -> String {
    match a {
        Axis::Ellipsis(_) => "...".into(),
        Axis::Letter(c) => c.to_string(),
    }
}

/// A repeated subscript takes the diagonal.
fn diagonalised(t: &Tensor, axes: Vec<Axis>) -> Result<Term> {
    let mut term = Term { tensor: t.clone(), axes };
    let mut i = 0;
    while i < term.axes.len() {
        match (i + 1..term.axes.len()).find(|&j| term.axes[j] == term.axes[i]) {
            None => i += 1,
            Some(j) => {
                let shape = term.tensor.shape();
                if shape[i] != shape[j] {
                    return Err(Error::runtime(format!(
                        "subscript {} is repeated for dimensions of sizes {} and {}, which don't match",
                        name(&term.axes[i]),
                        shape[i],
                        shape[j]
                    )));
                }
                // The diagonal goes to the end; its subscript moves along.
                term.tensor = term.tensor.diagonal(0, i as i64, j as i64)?;
                let axis = term.axes.remove(j);
                term.axes.remove(i);
                term.axes.push(axis);
                i = 0;
            }
        }
    }
    Ok(term)
}

/// Contracts the operands from left to right.
fn contract(terms: Vec<Term>, output: &[Axis]) -> Result<Tensor> {
    let mut rest: std::collections::VecDeque<Term> = terms.into();
    let single = rest.len() == 1;
    let Some(mut acc) = rest.pop_front() else { return Err(Error::value("einsum: must provide at least one operand")) };
    while let Some(next) = rest.pop_front() {
        let wanted = |a: &Axis| output.contains(a) || rest.iter().any(|t| t.axes.contains(a));
        acc = pair(acc, next, wanted)?;
    }
    // The sums of one operand are those of `sum`, int64 for integers; a product of integers keeps their dtype.
    let acc = sum_out(acc, |a| output.contains(a), single)?;
    arrange(&acc, output)
}

/// Sums over the dimensions that nobody needs; integers as int64 or, unless that is asked for, in their own dtype.
fn sum_out(term: Term, wanted: impl Fn(&Axis) -> bool, promotes: bool) -> Result<Term> {
    let dims: Vec<i64> = term.axes.iter().enumerate().filter(|(_, a)| !wanted(a)).map(|(i, _)| i as i64).collect();
    if dims.is_empty() {
        return Ok(term);
    }
    let tensor = term.tensor.sum_dims(Some(&dims), false, (!promotes).then(|| term.tensor.dtype()))?;
    Ok(Term { tensor, axes: term.axes.into_iter().filter(|a| wanted(a)).collect() })
}

/// Brings dimensions into an order; missing ones get size 1.
fn arrange(term: &Term, axes: &[Axis]) -> Result<Tensor> {
    let order: Vec<i64> = axes.iter().filter_map(|a| term.axes.iter().position(|b| a == b)).map(|d| d as i64).collect();
    let mut t = term.tensor.permute(&order)?;
    for (d, a) in axes.iter().enumerate() {
        if !term.axes.contains(a) {
            t = t.unsqueeze(d as i64)?;
        }
    }
    Ok(t)
}

/// The product of two operands, summed over what only they have: one stack of matrix products.
fn pair(a: Term, b: Term, wanted: impl Fn(&Axis) -> bool) -> Result<Term> {
    let a = sum_out(a, |x| wanted(x) || b.axes.contains(x), false)?;
    let b = sum_out(b, |x| wanted(x) || a.axes.contains(x), false)?;
    let size = |t: &Term, x: &Axis| t.axes.iter().position(|y| x == y).map_or(1, |d| t.tensor.shape()[d]);
    let mut stack = Vec::new();
    let mut summed = Vec::new();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for x in a.axes.iter().chain(b.axes.iter().filter(|x| !a.axes.contains(x))) {
        let (m, n) = (size(&a, x), size(&b, x));
        if m != n && m != 1 && n != 1 {
            return Err(Error::runtime(format!(
                "subscript {} has size {n}, which does not broadcast with previously seen size {m}",
                name(x)
            )));
        }
        // A size of 1 beside a larger one broadcasts: it is the other operand's own dimension.
        match (a.axes.contains(x) && m != 1 || !b.axes.contains(x), b.axes.contains(x) && n != 1 || !a.axes.contains(x)) {
            (true, true) if wanted(x) => stack.push(*x),
            (true, true) => summed.push(*x),
            (true, false) => left.push(*x),
            (false, true) => right.push(*x),
            (false, false) => stack.push(*x),
        }
    }
    let a = sum_out(drop_ones(a, &right)?, |x| wanted(x) || !left.contains(x), false)?;
    let b = sum_out(drop_ones(b, &left)?, |x| wanted(x) || !right.contains(x), false)?;
    left.retain(|x| wanted(x));
    right.retain(|x| wanted(x));
    let sizes = |axes: &[Axis]| axes.iter().map(|x| size(&a, x).max(size(&b, x))).collect::<SmallVec<[usize; 6]>>();
    let (s, l, k, r) = (sizes(&stack), sizes(&left), sizes(&summed), sizes(&right));
    let product = |v: &[usize]| v.iter().product::<usize>() as i64;
    let (ns, nl, nk, nr) = (product(&s), product(&l), product(&k), product(&r));
    let x = arrange(&a, &[&stack[..], &left, &summed].concat())?.reshape(&[ns, nl, nk])?;
    let y = arrange(&b, &[&stack[..], &summed, &right].concat())?.reshape(&[ns, nk, nr])?;
    let z = x.bmm(&y)?;
    let all: SmallVec<[i64; 6]> = s.iter().chain(&l).chain(&r).map(|&n| n as i64).collect();
    let axes: Vec<Axis> = stack.into_iter().chain(left).chain(right).collect();
    let tensor = z.view(&all)?;
    // Wanted nowhere: axes of size 1 that both had.
    sum_out(Term { tensor, axes }, wanted, false)
}

/// Drops dimensions of size 1 that the other operand has at full size.
fn drop_ones(term: Term, others: &[Axis]) -> Result<Term> {
    sum_out(term, |x| !others.contains(x), false)
}

pub(super) static OPS: &[Op] = &[function("einsum(str equation, Tensor[] tensors) -> Tensor", |a| {
    Ok(einsum(&a.str(0)?, &a.tensors(1)?)?.into())
})
.autocast_lower()
.doc("Sums of products after Einstein's convention: subscripts that the result lacks are summed over. Operands may be given one by one.")
.places(place::TORCH)
.samples(&[
    "'ij,jk->ik', [T(2,3), T(3,4)]",
    "'bij,bjk->bik', [T(5,2,3), T(5,3,4)]",
    "'ii->i', [T(3,3)]",
    "'ij->', [T(2,3)]",
    "'...ij,...jk', [T(5,2,3), T(5,3,4)]",
    "'i,j,k->ijk', [T(2), T(3), T(4)]",
])
.without_out()];
