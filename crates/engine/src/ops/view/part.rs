//! Parts of complex numbers, and conjugates and negatives that are computed when they are read.

use super::complex::AsReal;
use super::window::embed;
use super::{AsComplex, Step, View, Window, view};
use crate::Tensor;
use crate::autograd::OutputInfo;
use crate::ops::table::{Args, Op, Out, place, view_row};
use crate::tensor::lazy;
use flambeau_base::{DType, Error, Layout, Result};
use smallvec::smallvec;

/// The layout of every second number.
fn part_layout(input: &Tensor, index: usize) -> Result<Layout> {
    let pairs = AsReal::pairs(input)?;
    Ok(pairs.select(pairs.ndim() - 1, index))
}

/// The complex gradient whose part is `grad`, the other one being zero.
fn part_transpose(grad: &Tensor, input: &OutputInfo, index: usize) -> Result<Tensor> {
    let mut pairs = input.sizes.clone();
    pairs.push(2);
    let window = Window(smallvec![Step::Select { dim: input.sizes.len(), index }]);
    view(AsComplex, &embed(window, grad, &pairs)?)
}

/// Real parts of complex numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Real;

impl View for Real {
    const NAME: &'static str = "real";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        part_layout(input, 0)
    }

    fn dtype(&self, input: &Tensor) -> DType {
        input.dtype().to_real()
    }

    fn lazy(&self, input: &Tensor) -> u8 {
        input.lazy() & !lazy::CONJ
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        part_transpose(grad, input, 0)
    }
}

/// Imaginary parts of complex numbers; those of conjugates are negatives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Imag;

impl View for Imag {
    const NAME: &'static str = "imag";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        part_layout(input, 1)
    }

    fn dtype(&self, input: &Tensor) -> DType {
        input.dtype().to_real()
    }

    fn lazy(&self, input: &Tensor) -> u8 {
        if input.is_conj() { input.lazy() & !lazy::CONJ ^ lazy::NEG } else { input.lazy() }
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        part_transpose(grad, input, 1)
    }
}

/// Conjugates, see NOTE [lazy values] in `tensor`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conj;

impl View for Conj {
    const NAME: &'static str = "conj";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().clone())
    }

    fn lazy(&self, input: &Tensor) -> u8 {
        input.lazy() ^ lazy::CONJ
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        grad.conj()
    }
}

/// Negatives, see NOTE [lazy values] in `tensor`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Neg;

impl View for Neg {
    const NAME: &'static str = "_neg_view";

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        Ok(input.layout().clone())
    }

    fn lazy(&self, input: &Tensor) -> u8 {
        input.lazy() ^ lazy::NEG
    }

    fn transpose(&self, grad: &Tensor, _: &OutputInfo) -> Result<Tensor> {
        grad.neg()
    }
}

impl Tensor {
    /// Real parts, as a view; real numbers are their own.
    pub fn real(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { view(Real, self) } else { Ok(self.clone()) }
    }

    /// Imaginary parts, as a view. `TypeError` for real numbers.
    pub fn imag(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Err(Error::type_error(format!(
                "imag: imag is not implemented for tensors with non-complex dtypes, got {}.",
                self.dtype()
            )));
        }
        view(Imag, self)
    }

    /// Complex conjugates, as a view on the same memory; real numbers are their own.
    pub fn conj(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { view(Conj, self) } else { Ok(self.clone()) }
    }
}

fn resolve_conj(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    Ok(if t.is_conj() { t.copy()? } else { t.clone() }.into())
}

fn resolve_neg(a: &Args) -> Result<Out> {
    let t = a.tensor(0)?;
    Ok(if t.is_neg() { t.copy()? } else { t.clone() }.into())
}

pub(super) static OPS: &[Op] = &[
    view_row("real(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.real()?.into()))
        .places(place::TORCH)
        .doc("Real parts: a view of complex numbers, and real numbers themselves.")
        .samples(&["T(2,3)", "C(2,3)"]),
    view_row("imag(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.imag()?.into()))
        .places(place::TORCH)
        .doc("Imaginary parts of complex numbers: a view. A RuntimeError for real numbers.")
        .samples(&["C(2,3)"]),
    view_row("conj(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.conj()?.into()))
        .doc("Complex conjugates: a view on the same memory, computed where it is read. Real numbers themselves.")
        .samples(&["T(2,3)", "C(2,3)"]),
    view_row("_conj(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.conj()?.into())).doc("As `conj`.").samples(&["C(2,3)"]),
    view_row("_neg_view(Tensor(a) self) -> Tensor(a)", |a| Ok(view(Neg, a.tensor(0)?)?.into()))
        .doc("Negatives: a view on the same memory, computed where it is read.")
        .samples(&["T(2,3)", "C(2,3)"]),
    view_row("resolve_conj(Tensor(a) self) -> Tensor(a)", resolve_conj)
        .doc("A copy of a conjugated view, the tensor itself otherwise.")
        .samples(&["T(2,3)", "C(2,3)"]),
    view_row("resolve_neg(Tensor(a) self) -> Tensor(a)", resolve_neg)
        .doc("A copy of a negated view, the tensor itself otherwise.")
        .samples(&["T(2,3)", "C(2,3)"]),
    view_row("is_conj(Tensor self) -> bool", |a| Ok(Out::Bool(a.tensor(0)?.is_conj())))
        .places(place::TORCH | place::METHOD)
        .doc("Whether the tensor is a conjugated view.")
        .samples(&["C(2,3)"]),
    view_row("is_neg(Tensor self) -> bool", |a| Ok(Out::Bool(a.tensor(0)?.is_neg())))
        .places(place::TORCH | place::METHOD)
        .doc("Whether the tensor is a negated view.")
        .samples(&["C(2,3)"]),
];
