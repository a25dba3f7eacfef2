//! Comparisons, logic and tests of values.

use super::{Operand, Rule, Spec, call};
use crate::Tensor;
use crate::ops::table::{Op, place, pointwise};
use flambeau_base::{DType, Result};
use flambeau_ir::{Body, Val};

static EQ: Spec = Spec::new("eq", Rule::Compare, |k, x| k.eq(x[0], x[1]));
static NE: Spec = Spec::new("ne", Rule::Compare, |k, x| k.ne(x[0], x[1]));
static LT: Spec = Spec::new("lt", Rule::Compare, |k, x| k.lt(x[0], x[1]));
static LE: Spec = Spec::new("le", Rule::Compare, |k, x| k.le(x[0], x[1]));
static GT: Spec = Spec::new("gt", Rule::Compare, |k, x| k.gt(x[0], x[1]));
static GE: Spec = Spec::new("ge", Rule::Compare, |k, x| k.ge(x[0], x[1]));

static LOGICAL_AND: Spec = Spec::new("logical_and", Rule::Logical, |k, x| k.and(x[0], x[1]));
static LOGICAL_OR: Spec = Spec::new("logical_or", Rule::Logical, |k, x| k.or(x[0], x[1]));
static LOGICAL_XOR: Spec = Spec::new("logical_xor", Rule::Logical, |k, x| k.xor(x[0], x[1]));
static LOGICAL_NOT: Spec = Spec::new("logical_not", Rule::Logical, |k, x| k.not(x[0]));

/// Integers are finite numbers.
fn test(k: &mut Body, x: Val, of_float: fn(&mut Body, Val) -> Val, of_integer: bool) -> Val {
    match k.dtype(x) {
        d if d.is_integral() => k.literal(DType::Bool, of_integer),
        d if d.is_complex() => {
            // Finite if both parts are, NaN or infinite if one is.
            let (re, im) = (k.real_part(x), k.imag_part(x));
            let (re, im) = (of_float(k, re), of_float(k, im));
            if of_integer { k.and(re, im) } else { k.or(re, im) }
        }
        _ => of_float(k, x),
    }
}

/// Whether it is the infinity of one sign.
fn infinite(k: &mut Body, x: Val, end: f64) -> Val {
    if k.dtype(x).is_integral() {
        return k.literal(DType::Bool, false);
    }
    let end = k.like(x, end);
    k.eq(x, end)
}

static ISNEGINF: Spec = Spec::new("isneginf", Rule::Compare, |k, x| infinite(k, x[0], f64::NEG_INFINITY)).refuses(DType::is_complex);
static ISPOSINF: Spec = Spec::new("isposinf", Rule::Compare, |k, x| infinite(k, x[0], f64::INFINITY)).refuses(DType::is_complex);

static ISNAN: Spec = Spec::new("isnan", Rule::Compare, |k, x| test(k, x[0], Body::is_nan, false));
static ISINF: Spec = Spec::new("isinf", Rule::Compare, |k, x| test(k, x[0], Body::is_inf, false));
static ISFINITE: Spec = Spec::new("isfinite", Rule::Compare, |k, x| test(k, x[0], Body::is_finite, true));
static SIGNBIT: Spec = Spec::new("signbit", Rule::Compare, |k, x| {
    let zero = k.like(x[0], 0);
    match k.dtype(x[0]) {
        DType::Bool => k.literal(DType::Bool, false),
        d if d.is_integral() => k.lt(x[0], zero),
        _ => k.signbit(x[0]),
    }
});

pub(super) static OPS: &[Op] = &[
    pointwise("eq(Tensor self, Tensor other) -> Tensor", &EQ)
        .doc("Whether `self == other`, element by element; bool.")
        .samples(&["T(2,3), T(3)", "T(2,3), 1"])
        .reference(|x| (x[0] == x[1]) as u8 as f64),
    pointwise("ne(Tensor self, Tensor other) -> Tensor", &NE)
        .doc("Whether `self != other`, element by element; bool.")
        .samples(&["T(2,3), T(3)", "T(2,3), 1"])
        .reference(|x| (x[0] != x[1]) as u8 as f64),
    pointwise("not_equal(Tensor self, Tensor other) -> Tensor", &NE).doc("Alias of `ne`.").samples(&["T(2,3), T(3)"]),
    pointwise("lt(Tensor self, Tensor other) -> Tensor", &LT)
        .doc("Whether `self < other`, element by element; bool.")
        .samples(&["T(2,3), T(3)", "T(2,3), 1"])
        .reference(|x| (x[0] < x[1]) as u8 as f64),
    pointwise("less(Tensor self, Tensor other) -> Tensor", &LT).doc("Alias of `lt`.").samples(&["T(2,3), T(3)"]),
    pointwise("le(Tensor self, Tensor other) -> Tensor", &LE)
        .doc("Whether `self <= other`, element by element; bool.")
        .samples(&["T(2,3), T(3)", "T(2,3), 1"])
        .reference(|x| (x[0] <= x[1]) as u8 as f64),
    pointwise("less_equal(Tensor self, Tensor other) -> Tensor", &LE).doc("Alias of `le`.").samples(&["T(2,3), T(3)"]),
    pointwise("gt(Tensor self, Tensor other) -> Tensor", &GT)
        .doc("Whether `self > other`, element by element; bool.")
        .samples(&["T(2,3), T(3)", "T(2,3), 1"])
        .reference(|x| (x[0] > x[1]) as u8 as f64),
    pointwise("greater(Tensor self, Tensor other) -> Tensor", &GT).doc("Alias of `gt`.").samples(&["T(2,3), T(3)"]),
    pointwise("ge(Tensor self, Tensor other) -> Tensor", &GE)
        .doc("Whether `self >= other`, element by element; bool.")
        .samples(&["T(2,3), T(3)", "T(2,3), 1"])
        .reference(|x| (x[0] >= x[1]) as u8 as f64),
    pointwise("greater_equal(Tensor self, Tensor other) -> Tensor", &GE).doc("Alias of `ge`.").samples(&["T(2,3), T(3)"]),
    pointwise("logical_and(Tensor self, Tensor other) -> Tensor", &LOGICAL_AND)
        .doc("Whether both are not zero, element by element; bool.")
        .samples(&["T(2,3), T(3)", "B(2,3), B(3)"]),
    pointwise("logical_or(Tensor self, Tensor other) -> Tensor", &LOGICAL_OR)
        .doc("Whether one is not zero, element by element; bool.")
        .samples(&["T(2,3), T(3)", "B(2,3), B(3)"]),
    pointwise("logical_xor(Tensor self, Tensor other) -> Tensor", &LOGICAL_XOR)
        .doc("Whether just one is not zero, element by element; bool.")
        .samples(&["T(2,3), T(3)", "B(2,3), B(3)"]),
    pointwise("logical_not(Tensor self) -> Tensor", &LOGICAL_NOT)
        .doc("Whether it is zero, element by element; bool.")
        .samples(&["T(2,3)", "B(2,3)"]),
    pointwise("isnan(Tensor self) -> Tensor", &ISNAN)
        .doc("Whether it is NaN, element by element; bool.")
        .samples(&["T(2,3)"])
        .without_inplace()
        .without_out(),
    pointwise("isinf(Tensor self) -> Tensor", &ISINF)
        .doc("Whether it is infinite, element by element; bool.")
        .samples(&["T(2,3)"])
        .without_inplace()
        .without_out(),
    pointwise("isfinite(Tensor self) -> Tensor", &ISFINITE)
        .doc("Whether it is neither infinite nor NaN, element by element; bool.")
        .samples(&["T(2,3)"])
        .without_inplace()
        .without_out(),
    pointwise("isneginf(Tensor self) -> Tensor", &ISNEGINF)
        .doc("Whether it is minus infinity, element by element; bool.")
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("isposinf(Tensor self) -> Tensor", &ISPOSINF)
        .doc("Whether it is plus infinity, element by element; bool.")
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("signbit(Tensor self) -> Tensor", &SIGNBIT)
        .doc("Whether the sign is minus (also of -0.0), element by element; bool.")
        .places(place::TORCH | place::METHOD)
        .samples(&["T(2,3)"])
        .without_inplace(),
];

macro_rules! method {
    ($($(#[$doc:meta])* $name:ident, $spec:ident;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                call(&$spec, &[self.into(), other.into()])
            }
        )*}
    };
}

method! {
    /// Whether equal, element by element.
    eq, EQ;
    /// Whether unequal, element by element.
    ne, NE;
    /// Whether less, element by element.
    lt, LT;
    /// Whether less or equal, element by element.
    le, LE;
    /// Whether greater, element by element.
    gt, GT;
    /// Whether greater or equal, element by element.
    ge, GE;
    /// Whether both are not zero, element by element.
    logical_and, LOGICAL_AND;
    /// Whether one is not zero, element by element.
    logical_or, LOGICAL_OR;
}

impl Tensor {
    /// Whether each element is zero.
    pub fn logical_not(&self) -> Result<Tensor> {
        call(&LOGICAL_NOT, &[self.into()])
    }

    /// Whether each element is NaN.
    pub fn isnan(&self) -> Result<Tensor> {
        call(&ISNAN, &[self.into()])
    }

    /// Whether each element is infinite.
    pub fn isinf(&self) -> Result<Tensor> {
        call(&ISINF, &[self.into()])
    }

    /// Whether each element is neither infinite nor NaN.
    pub fn isfinite(&self) -> Result<Tensor> {
        call(&ISFINITE, &[self.into()])
    }
}
