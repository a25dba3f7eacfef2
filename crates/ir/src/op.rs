//! The scalar operations of the kernel language.

use crate::Special;
use flambeau_base::DType;

/// One scalar operation. Arguments and result have the step's dtype, unless stated otherwise.
///
/// NaN, infinities and signed zeros follow IEEE 754; integers wrap. Where Python, NumPy and PyTorch
/// agree on a meaning (`Rem`, `FloorDiv`, `Maximum`), it is theirs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScalarOp {
    /// The argument, converted from its own dtype.
    Convert,
    /// `a + b`; on bool: or.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`; on bool: and.
    Mul,
    /// `a * b + c` of floats, rounded once.
    Fma,
    /// `a / b` of floats and complex numbers.
    Div,
    /// Quotient rounded towards minus infinity.
    FloorDiv,
    /// Quotient rounded towards zero.
    TruncDiv,
    /// Remainder with the sign of the divisor.
    Rem,
    /// Remainder with the sign of the dividend.
    Fmod,
    /// `a` to the power of `b`.
    Pow,
    /// The larger one; NaN if either is.
    Maximum,
    /// The smaller one; NaN if either is.
    Minimum,
    /// The larger one; a NaN gives way to a number.
    Fmax,
    /// The smaller one; a NaN gives way to a number.
    Fmin,
    /// `sqrt(a*a + b*b)` without overflow on the way.
    Hypot,
    /// The angle of the point `(b, a)`.
    Atan2,
    /// Magnitude of `a`, sign of `b`.
    Copysign,
    /// `-a`.
    Neg,
    /// Magnitude.
    Abs,
    /// -1, 0 or 1; 0 for NaN.
    Sign,
    /// `1 / a`.
    Reciprocal,
    /// Square root.
    Sqrt,
    /// `1 / sqrt(a)`.
    Rsqrt,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceil,
    /// Towards zero.
    Trunc,
    /// To the nearest integer, ties to even.
    Round,
    /// Base-e exponential.
    Exp,
    /// Base-2 exponential.
    Exp2,
    /// `exp(a) - 1`.
    Expm1,
    /// Natural logarithm.
    Log,
    /// Base-2 logarithm.
    Log2,
    /// Base-10 logarithm.
    Log10,
    /// `log(1 + a)`.
    Log1p,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// Error function.
    Erf,
    /// `1 - erf(a)`.
    Erfc,
    /// Inverse error function.
    Erfinv,
    /// `1 / (1 + exp(-a))`.
    Sigmoid,
    /// `log(sigmoid(a))`.
    LogSigmoid,
    /// `a * sigmoid(a)`.
    Silu,
    /// Derivative of [`ScalarOp::Silu`].
    SiluGrad,
    /// `a * Φ(a)`, by the error function.
    Gelu,
    /// Derivative of [`ScalarOp::Gelu`].
    GeluGrad,
    /// The tanh approximation of [`ScalarOp::Gelu`].
    GeluTanh,
    /// Derivative of [`ScalarOp::GeluTanh`].
    GeluTanhGrad,
    /// Bitwise (on bool: logical) and.
    And,
    /// Bitwise (on bool: logical) or.
    Or,
    /// Bitwise (on bool: logical) exclusive or.
    Xor,
    /// Bitwise (on bool: logical) complement.
    Not,
    /// Shift to the left.
    Shl,
    /// Arithmetic shift to the right.
    Shr,
    /// `a == b`, a bool.
    Eq,
    /// `a != b`, a bool.
    Ne,
    /// `a < b`, a bool.
    Lt,
    /// `a <= b`, a bool.
    Le,
    /// `a > b`, a bool.
    Gt,
    /// `a >= b`, a bool.
    Ge,
    /// Whether `a` is NaN, a bool.
    IsNan,
    /// Whether `a` is infinite, a bool.
    IsInf,
    /// Whether `a` is finite, a bool.
    IsFinite,
    /// Whether the sign bit is set, a bool.
    Signbit,
    /// Greatest common divisor.
    Gcd,
    /// Least common multiple.
    Lcm,
    /// The real part of a complex number: a number of the part's dtype.
    RealPart,
    /// The imaginary part of a complex number: a number of the part's dtype.
    ImagPart,
    /// The complex number of real part `a` and imaginary part `b`, which have the step's dtype.
    Compose,
    /// A special function.
    Special(Special),
    /// `b` where the first argument (a bool) holds, else `c`.
    Select,
}

impl ScalarOp {
    /// How many arguments it takes.
    pub const fn arity(self) -> usize {
        use ScalarOp::*;
        match self {
            Select | Fma => 3,
            Special(f) => f.arity(),
            Add | Sub | Mul | Div | FloorDiv | TruncDiv | Rem | Fmod | Pow | Maximum | Minimum | Fmax | Fmin | Hypot | Atan2 | Copysign
            | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge | Gcd | Lcm | Compose => 2,
            _ => 1,
        }
    }

    /// Whether the result is a bool, whatever the step's dtype.
    pub const fn gives_bool(self) -> bool {
        use ScalarOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | IsNan | IsInf | IsFinite | Signbit)
    }

    /// The dtype of the result of a step in a dtype.
    pub fn result(self, dtype: DType) -> DType {
        match self {
            ScalarOp::RealPart | ScalarOp::ImagPart => dtype.to_real(),
            ScalarOp::Compose => dtype.to_complex(),
            op if op.gives_bool() => DType::Bool,
            _ => dtype,
        }
    }

    /// Whether it is defined on real floats only.
    pub const fn real_only(self) -> bool {
        matches!(self, ScalarOp::Fma | ScalarOp::Compose | ScalarOp::Special(_))
    }

    /// Whether it is defined on floats and complex numbers only.
    pub const fn float_only(self) -> bool {
        use ScalarOp::*;
        matches!(
            self,
            Fma | Compose
                | RealPart
                | ImagPart
                | Special(_)
                | Div
                | Hypot
                | Atan2
                | Copysign
                | Reciprocal
                | Sqrt
                | Rsqrt
                | Exp
                | Exp2
                | Expm1
                | Log
                | Log2
                | Log10
                | Log1p
                | Sin
                | Cos
                | Tan
                | Asin
                | Acos
                | Atan
                | Sinh
                | Cosh
                | Tanh
                | Asinh
                | Acosh
                | Atanh
                | Erf
                | Erfc
                | Erfinv
                | Sigmoid
                | LogSigmoid
                | Silu
                | SiluGrad
                | Gelu
                | GeluGrad
                | GeluTanh
                | GeluTanhGrad
        )
    }

    /// Whether it is defined on integers and bool only.
    pub const fn integer_only(self) -> bool {
        use ScalarOp::*;
        matches!(self, And | Or | Xor | Not | Shl | Shr | Gcd | Lcm)
    }
}
