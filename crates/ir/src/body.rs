//! Writing programs: one method for each scalar operation.

use crate::ScalarOp::{self, *};
use crate::Special as Function;
use crate::program::{Constant, Program, Step, Value};
use flambeau_base::{DType, Result, Scalar};
use smallvec::SmallVec;

/// A value in a program that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val(Id);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Id {
    Input(u16),
    Constant(u16),
    Step(u16),
}

/// A program that is being written. Steps take the dtype of their arguments.
///
/// Two arguments of different dtypes, or a step that the dtype lacks, are found by [`Body::finish`].
#[derive(Default)]
pub struct Body {
    inputs: SmallVec<[DType; 4]>,
    constants: Vec<Constant>,
    steps: Vec<(ScalarOp, DType, [Val; 3])>,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {
        impl Body {$(
            $(#[$doc])*
            pub fn $name(&mut self, a: Val) -> Val {
                self.step($op, self.dtype(a), [a; 3])
            }
        )*}
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {
        impl Body {$(
            $(#[$doc])*
            pub fn $name(&mut self, a: Val, b: Val) -> Val {
                self.step($op, self.dtype(a), [a, b, a])
            }
        )*}
    };
}

impl Body {
    /// A body with inputs of these dtypes.
    pub fn new(inputs: &[DType]) -> Body {
        Body { inputs: SmallVec::from_slice(inputs), ..Body::default() }
    }

    /// An input more; gives its value.
    pub fn add_input(&mut self, dtype: DType) -> Val {
        self.inputs.push(dtype);
        Val(Id::Input(self.inputs.len() as u16 - 1))
    }

    /// Input number `i`.
    pub fn input(&self, i: usize) -> Val {
        debug_assert!(i < self.inputs.len());
        Val(Id::Input(i as u16))
    }

    /// A number that stands in the program.
    pub fn literal(&mut self, dtype: DType, value: impl Into<Scalar>) -> Val {
        self.constant(Constant::Literal(dtype, value.into()))
    }

    /// A number of the dtype of another value.
    pub fn like(&mut self, other: Val, value: impl Into<Scalar>) -> Val {
        self.literal(self.dtype(other), value)
    }

    /// Number `i` of those that come with a run.
    pub fn param(&mut self, dtype: DType, i: usize) -> Val {
        self.constant(Constant::Param(dtype, i as u16))
    }

    fn constant(&mut self, c: Constant) -> Val {
        // NaN literals never compare equal, which only costs a second constant.
        let i = self.constants.iter().position(|old| *old == c && !is_zero(&c)).unwrap_or_else(|| {
            self.constants.push(c);
            self.constants.len() - 1
        });
        Val(Id::Constant(i as u16))
    }

    /// The dtype of a value.
    pub fn dtype(&self, v: Val) -> DType {
        match v.0 {
            Id::Input(i) => self.inputs[i as usize],
            Id::Constant(i) => self.constants[i as usize].dtype(),
            Id::Step(i) => {
                let (op, dtype, _) = self.steps[i as usize];
                op.result(dtype)
            }
        }
    }

    /// A step of any operation in a dtype.
    pub fn step(&mut self, op: ScalarOp, dtype: DType, args: [Val; 3]) -> Val {
        self.steps.push((op, dtype, args));
        Val(Id::Step(self.steps.len() as u16 - 1))
    }

    /// The value in another dtype; itself where it has that dtype.
    pub fn convert(&mut self, a: Val, dtype: DType) -> Val {
        if self.dtype(a) == dtype { a } else { self.step(Convert, dtype, [a; 3]) }
    }

    /// The value in the dtype in which its steps are computed: float32 for the floats below it.
    ///
    /// For bodies of several steps that round once, at the end.
    pub fn widen(&mut self, a: Val) -> Val {
        let dtype = self.dtype(a);
        if dtype.is_reduced_float() { self.convert(a, DType::F32) } else { a }
    }

    /// `a` where `condition` (a bool) holds, else `b`.
    pub fn select(&mut self, condition: Val, a: Val, b: Val) -> Val {
        self.step(Select, self.dtype(a), [condition, a, b])
    }

    /// `a * b + c`, rounded once where it is of floats; exact in integers, and in two steps for complex numbers.
    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        if self.dtype(a).is_float() {
            return self.step(Fma, self.dtype(a), [a, b, c]);
        }
        let product = self.mul(a, b);
        self.add(product, c)
    }

    /// A special function of one or two values.
    pub fn special(&mut self, f: Function, args: &[Val]) -> Val {
        let first = args[0];
        self.step(Special(f), self.dtype(first), [first, *args.get(1).unwrap_or(&first), first])
    }

    /// Appends another program with these values as its inputs; gives its outputs.
    ///
    /// Its parameter `i` becomes parameter `first_param + i`.
    pub fn inline(&mut self, program: &Program, inputs: &[Val], first_param: usize) -> SmallVec<[Val; 1]> {
        let mut map: Vec<Val> = inputs.to_vec();
        for c in &program.constants {
            map.push(match *c {
                Constant::Param(d, i) => self.param(d, first_param + i as usize),
                literal => self.constant(literal),
            });
        }
        for step in &program.steps {
            let args = step.args.map(|a| map[a as usize]);
            map.push(self.step(step.op, step.dtype, args));
        }
        program.outputs.iter().map(|&v| map[v as usize]).collect()
    }

    /// The program that gives these values.
    pub fn finish(self, outputs: &[Val]) -> Result<Program> {
        let (inputs, constants) = (self.inputs.len() as u16, self.constants.len() as u16);
        let number = |v: Val| -> Value {
            match v.0 {
                Id::Input(i) => i,
                Id::Constant(i) => inputs + i,
                Id::Step(i) => inputs + constants + i,
            }
        };
        let steps = self.steps.iter().map(|&(op, dtype, args)| Step { op, dtype, args: args.map(number) }).collect();
        let outputs = outputs.iter().map(|&v| number(v)).collect();
        let program = Program { inputs: self.inputs, constants: self.constants, steps, outputs, ..Program::default() };
        program.verify()?;
        Ok(program)
    }
}

/// 0.0 and -0.0 compare equal and are different constants.
fn is_zero(c: &Constant) -> bool {
    matches!(c, Constant::Literal(_, Scalar::Float(x)) if *x == 0.0)
}

unary! {
    /// `-a`.
    neg => Neg,
    /// Magnitude.
    abs => Abs,
    /// -1, 0 or 1; 0 for NaN.
    sign => Sign,
    /// `1 / a`.
    reciprocal => Reciprocal,
    /// Square root.
    sqrt => Sqrt,
    /// `1 / sqrt(a)`.
    rsqrt => Rsqrt,
    /// Towards minus infinity.
    floor => Floor,
    /// Towards plus infinity.
    ceil => Ceil,
    /// Towards zero.
    trunc => Trunc,
    /// To the nearest integer, ties to even.
    round => Round,
    /// Base-e exponential.
    exp => Exp,
    /// Base-2 exponential.
    exp2 => Exp2,
    /// `exp(a) - 1`.
    expm1 => Expm1,
    /// Natural logarithm.
    log => Log,
    /// Base-2 logarithm.
    log2 => Log2,
    /// Base-10 logarithm.
    log10 => Log10,
    /// `log(1 + a)`.
    log1p => Log1p,
    /// Sine.
    sin => Sin,
    /// Cosine.
    cos => Cos,
    /// Tangent.
    tan => Tan,
    /// Inverse sine.
    asin => Asin,
    /// Inverse cosine.
    acos => Acos,
    /// Inverse tangent.
    atan => Atan,
    /// Hyperbolic sine.
    sinh => Sinh,
    /// Hyperbolic cosine.
    cosh => Cosh,
    /// Hyperbolic tangent.
    tanh => Tanh,
    /// Inverse hyperbolic sine.
    asinh => Asinh,
    /// Inverse hyperbolic cosine.
    acosh => Acosh,
    /// Inverse hyperbolic tangent.
    atanh => Atanh,
    /// Error function.
    erf => Erf,
    /// Complementary error function.
    erfc => Erfc,
    /// Inverse error function.
    erfinv => Erfinv,
    /// Logistic function.
    sigmoid => Sigmoid,
    /// Logarithm of the logistic function.
    log_sigmoid => LogSigmoid,
    /// `a * sigmoid(a)`.
    silu => Silu,
    /// Derivative of `silu`.
    silu_grad => SiluGrad,
    /// `a * Φ(a)`.
    gelu => Gelu,
    /// Derivative of `gelu`.
    gelu_grad => GeluGrad,
    /// The tanh approximation of `gelu`.
    gelu_tanh => GeluTanh,
    /// Derivative of `gelu_tanh`.
    gelu_tanh_grad => GeluTanhGrad,
    /// Complement.
    not => Not,
    /// Real part of a complex number.
    real_part => RealPart,
    /// Imaginary part of a complex number.
    imag_part => ImagPart,
    /// Whether it is NaN.
    is_nan => IsNan,
    /// Whether it is infinite.
    is_inf => IsInf,
    /// Whether it is finite.
    is_finite => IsFinite,
    /// Whether the sign bit is set.
    signbit => Signbit,
}

binary! {
    /// `a + b`.
    add => Add,
    /// `a - b`.
    sub => Sub,
    /// `a * b`.
    mul => Mul,
    /// `a / b`.
    div => Div,
    /// Quotient rounded towards minus infinity.
    floor_div => FloorDiv,
    /// Quotient rounded towards zero.
    trunc_div => TruncDiv,
    /// Remainder with the sign of the divisor.
    rem => Rem,
    /// Remainder with the sign of the dividend.
    fmod => Fmod,
    /// Power.
    pow => Pow,
    /// The larger one; NaN if either is.
    maximum => Maximum,
    /// The smaller one; NaN if either is.
    minimum => Minimum,
    /// The larger one; a NaN gives way.
    fmax => Fmax,
    /// The smaller one; a NaN gives way.
    fmin => Fmin,
    /// Length of the hypotenuse.
    hypot => Hypot,
    /// Angle of the point `(b, a)`.
    atan2 => Atan2,
    /// Magnitude of `a`, sign of `b`.
    copysign => Copysign,
    /// Complex number from its parts.
    compose => Compose,
    /// Greatest common divisor.
    gcd => Gcd,
    /// Least common multiple.
    lcm => Lcm,
    /// And.
    and => And,
    /// Or.
    or => Or,
    /// Exclusive or.
    xor => Xor,
    /// Shift to the left.
    shl => Shl,
    /// Shift to the right.
    shr => Shr,
    /// Equal.
    eq => Eq,
    /// Unequal.
    ne => Ne,
    /// Less.
    lt => Lt,
    /// Less or equal.
    le => Le,
    /// Greater.
    gt => Gt,
    /// Greater or equal.
    ge => Ge,
}
