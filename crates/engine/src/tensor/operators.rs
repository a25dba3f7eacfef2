//! `+`, `-`, `*`, `/` and unary `-` on references, with tensors and numbers on the right.
//!
//! Each gives a `Result`: `(&a + &b)?`.

use super::Tensor;
use crate::ops::Operand;
use flambeau_base::Result;
use std::ops::{Add, Div, Mul, Neg, Sub};

macro_rules! operator {
    ($($trait:ident $name:ident;)*) => {$(
        impl<'a, R: Into<Operand<'a>>> $trait<R> for &'a Tensor {
            type Output = Result<Tensor>;

            fn $name(self, right: R) -> Result<Tensor> {
                Tensor::$name(self, right)
            }
        }
    )*};
}
operator! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;

    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
