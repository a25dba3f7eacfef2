//! Programs, their printer and their verifier.

use crate::ScalarOp;
use flambeau_base::{DType, Error, Result, Scalar};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The number of a value in a program: inputs first, then constants, then steps.
pub type Value = u16;

/// A constant of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// It stands in the program.
    Literal(DType, Scalar),
    /// It comes with each run, as number so many.
    Param(DType, u16),
}

impl Constant {
    /// Its dtype.
    pub fn dtype(&self) -> DType {
        match *self {
            Constant::Literal(d, _) | Constant::Param(d, _) => d,
        }
    }

    /// Its number, given those that come with a run.
    pub fn value(&self, params: &[Scalar]) -> Scalar {
        match *self {
            Constant::Literal(_, s) => s,
            Constant::Param(_, i) => params[i as usize],
        }
    }
}

/// One step: an operation in a dtype on earlier values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// What is computed.
    pub op: ScalarOp,
    /// The dtype that it computes in and rounds to.
    pub dtype: DType,
    /// The arguments; those past the operation's arity repeat the first.
    pub args: [Value; 3],
}

/// A list of steps from inputs to outputs.
///
/// ```
/// use flambeau_base::DType;
/// use flambeau_ir::Body;
/// let mut body = Body::new(&[DType::F32, DType::F32]);
/// let (x, y) = (body.input(0), body.input(1));
/// let product = body.mul(x, y);
/// let program = body.finish(&[product]).unwrap();
/// assert_eq!(program.to_string(), "v2 = mul.float32 v0 v1\nreturn v2\n");
/// ```
#[derive(Default)]
pub struct Program {
    /// Dtypes of the inputs.
    pub inputs: SmallVec<[DType; 4]>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Which values leave, in order.
    pub outputs: SmallVec<[Value; 1]>,
    /// What a backend made of the program, kept with it.
    pub prepared: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Program {
    /// The dtype of a value.
    pub fn dtype(&self, v: Value) -> DType {
        let v = v as usize;
        if v < self.inputs.len() {
            return self.inputs[v];
        }
        match self.constants.get(v - self.inputs.len()) {
            Some(c) => c.dtype(),
            None => {
                let step = &self.steps[v - self.inputs.len() - self.constants.len()];
                step.op.result(step.dtype)
            }
        }
    }

    /// Dtypes of the outputs.
    pub fn output_dtypes(&self) -> SmallVec<[DType; 1]> {
        self.outputs.iter().map(|&v| self.dtype(v)).collect()
    }

    /// The program that gives its one input back.
    pub fn identity(dtype: DType) -> Program {
        Program { inputs: SmallVec::from_slice(&[dtype]), outputs: SmallVec::from_slice(&[0]), ..Program::default() }
    }

    /// Whether the program only hands its one input on.
    pub fn is_identity(&self) -> bool {
        self.steps.is_empty() && self.inputs.len() == 1 && self.outputs[..] == [0]
    }

    /// Checks that every step reads earlier values of the right dtypes and is defined on its dtype.
    pub fn verify(&self) -> Result<()> {
        let first = self.inputs.len() + self.constants.len();
        for (i, step) in self.steps.iter().enumerate() {
            let wrong = |why: &str| Err(Error::not_implemented(format!("kernel step {:?} in {}: {why}", step.op, step.dtype)));
            for (k, &arg) in step.args[..step.op.arity()].iter().enumerate() {
                if arg as usize >= first + i {
                    return wrong("reads a value that is not there yet");
                }
                let want = match (step.op, k) {
                    (ScalarOp::Convert, _) => continue,
                    (ScalarOp::Select, 0) => DType::Bool,
                    _ => step.dtype,
                };
                if self.dtype(arg) != want {
                    return wrong(&format!("argument {k} is {}", self.dtype(arg)));
                }
            }
            if step.op.float_only() && !(step.dtype.is_float() || step.dtype.is_complex() && !step.op.real_only()) {
                return wrong("it is defined on floating point numbers");
            }
            if step.op.integer_only() && !step.dtype.is_integral() {
                return wrong("it is defined on integers and bool");
            }
        }
        match self.outputs.iter().find(|&&v| v as usize >= first + self.steps.len()) {
            Some(v) => Err(Error::runtime(format!("kernel output v{v} is not there"))),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, c) in self.constants.iter().enumerate() {
            let v = self.inputs.len() + i;
            match c {
                Constant::Literal(d, s) => writeln!(f, "v{v} = {d} {s}")?,
                Constant::Param(d, p) => writeln!(f, "v{v} = {d} param {p}")?,
            }
        }
        for (i, step) in self.steps.iter().enumerate() {
            let v = self.inputs.len() + self.constants.len() + i;
            write!(f, "v{v} = {}.{}", format!("{:?}", step.op).to_lowercase(), step.dtype)?;
            for a in &step.args[..step.op.arity()] {
                write!(f, " v{a}")?;
            }
            writeln!(f)?;
        }
        write!(f, "return")?;
        for v in &self.outputs {
            write!(f, " v{v}")?;
        }
        writeln!(f)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
