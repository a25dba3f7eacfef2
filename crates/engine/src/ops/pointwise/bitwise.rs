//! Bits of integers.

use super::{Rule, Spec};
use crate::ops::table::{Op, pointwise};
use flambeau_base::DType;

static AND: Spec = Spec::new("bitwise_and", Rule::Integral, |k, x| k.and(x[0], x[1]));
static OR: Spec = Spec::new("bitwise_or", Rule::Integral, |k, x| k.or(x[0], x[1]));
static XOR: Spec = Spec::new("bitwise_xor", Rule::Integral, |k, x| k.xor(x[0], x[1]));
static NOT: Spec = Spec::new("bitwise_not", Rule::Integral, |k, x| k.not(x[0]));
static SHL: Spec = Spec::new("bitwise_left_shift", Rule::Integral, |k, x| k.shl(x[0], x[1])).refuses(|d| d == DType::Bool);
static SHR: Spec = Spec::new("bitwise_right_shift", Rule::Integral, |k, x| k.shr(x[0], x[1])).refuses(|d| d == DType::Bool);

pub(super) static OPS: &[Op] = &[
    pointwise("bitwise_and(Tensor self, Tensor other) -> Tensor", &AND)
        .doc("Bitwise and of integers, logical and of bool.")
        .samples(&["I(2,3; 0..9), I(3; 0..9)", "B(2,3), B(3)"]),
    pointwise("bitwise_or(Tensor self, Tensor other) -> Tensor", &OR)
        .doc("Bitwise or of integers, logical or of bool.")
        .samples(&["I(2,3; 0..9), I(3; 0..9)", "B(2,3), B(3)"]),
    pointwise("bitwise_xor(Tensor self, Tensor other) -> Tensor", &XOR)
        .doc("Bitwise exclusive or of integers, logical of bool.")
        .samples(&["I(2,3; 0..9), I(3; 0..9)", "B(2,3), B(3)"]),
    pointwise("bitwise_not(Tensor self) -> Tensor", &NOT)
        .doc("Bitwise complement of integers, logical not of bool.")
        .samples(&["I(2,3; 0..9)", "B(2,3)"]),
    pointwise("bitwise_left_shift(Tensor self, Tensor other) -> Tensor", &SHL)
        .doc("`self << other`, element by element.")
        .samples(&["I(2,3; 0..9), I(3; 0..4)"]),
    pointwise("bitwise_right_shift(Tensor self, Tensor other) -> Tensor", &SHR)
        .doc("`self >> other` with the sign kept, element by element.")
        .samples(&["I(2,3; 0..9), I(3; 0..4)"]),
];
