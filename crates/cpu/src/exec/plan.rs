//! From a program to what is executed: loads, steps, roundings and stores on numbered registers.

use super::kernels;
use super::step::{Class, StepFn, is_native};
use flambeau_base::{DType, Error, Result};
use flambeau_ir::{Constant, Program, ScalarOp, Value};
use smallvec::SmallVec;

/// A program as it is executed. Slots are, in order, the inputs, the outputs, registers of constants, other registers.
pub struct Plan {
    /// The constants, each with a register.
    pub constants: Vec<Constant>,
    /// What is done on each tile.
    pub code: Vec<Inst>,
    /// Where the results are after a tile, in plans whose results stay in registers.
    pub results: SmallVec<[u16; 1]>,
    /// How many registers there are, those of constants included.
    pub registers: usize,
    /// Bytes an element of a register.
    pub width: usize,
    /// Work an element, in simple steps.
    pub cost: usize,
    /// The program hands its one input on as it is, so that elements are moved without being looked at.
    pub moves: bool,
}

/// One instruction.
#[derive(Clone, Copy)]
pub struct Inst {
    /// The step.
    pub f: StepFn,
    /// The slot of the result.
    pub out: u16,
    /// Slots of the arguments.
    pub args: [u16; 3],
    /// The result, a byte an element, says where a divisor is zero: an error unless all are 0.
    pub check: bool,
}

/// Where a value is, before registers are given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Input(u16),
    Output(u16),
    Constant(u16),
    Temp(u16),
}

struct Draft {
    f: StepFn,
    out: Place,
    args: [Place; 3],
    arity: usize,
    check: bool,
}

struct Builder<'a> {
    program: &'a Program,
    /// Where each value is, once it is in a register.
    places: Vec<Option<Place>>,
    /// Whether a step reads the value, so that it must be rounded before it is stored.
    read: Vec<bool>,
    drafts: Vec<Draft>,
    /// Element sizes of the temporaries.
    temps: Vec<usize>,
}

/// What becomes of a program's outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// They are written to memory.
    Memory,
    /// They stay where they are.
    Registers,
    /// They stay, as truth values.
    Truths,
}

impl Plan {
    /// Prepares a program that writes its outputs to memory. `NotImplementedError` where a dtype lacks a step.
    pub fn new(program: &Program) -> Result<Plan> {
        Plan::build(program, Ending::Memory)
    }

    /// Prepares a program whose results stay where they are, as their classes hold them, for a reduction to read.
    pub fn for_results(program: &Program) -> Result<Plan> {
        Plan::build(program, Ending::Registers)
    }

    /// As [`Plan::for_results`], with results made truth values.
    pub fn for_truths(program: &Program) -> Result<Plan> {
        Plan::build(program, Ending::Truths)
    }

    fn build(program: &Program, ending: Ending) -> Result<Plan> {
        let values = program.inputs.len() + program.constants.len() + program.steps.len();
        let mut read = vec![false; values];
        for step in &program.steps {
            step.args[..step.op.arity()].iter().for_each(|&a| read[a as usize] = true);
        }
        if ending != Ending::Memory {
            program.outputs.iter().for_each(|&v| read[v as usize] = true);
        }
        let mut builder = Builder { program, places: vec![None; values], read, drafts: Vec::new(), temps: Vec::new() };
        let first = program.inputs.len() + program.constants.len();
        for i in 0..program.steps.len() {
            let place = builder.step(i)?;
            builder.places[first + i] = Some(place);
        }
        if ending == Ending::Memory {
            builder.outputs();
            return Ok(builder.finish(SmallVec::new()));
        }
        let mut results: SmallVec<[Place; 1]> = program.outputs.iter().map(|&v| builder.value(v)).collect();
        if ending == Ending::Truths {
            for (place, dtype) in results.iter_mut().zip(program.output_dtypes()) {
                *place = builder.in_class(*place, dtype, DType::Bool);
            }
        }
        Ok(builder.finish(results))
    }
}

/// Whether a step on numbers of a narrow dtype gives such numbers without rounding.
fn is_exact(op: ScalarOp, float: bool) -> bool {
    use ScalarOp::*;
    match op {
        Maximum | Minimum | Fmax | Fmin | Select | Sign | RealPart | ImagPart | Compose => true,
        Neg | Abs | Floor | Ceil | Trunc | Round | Copysign => float,
        And | Or | Xor | Rem | Fmod => !float,
        _ => false,
    }
}

/// Whether a step is some ten times the work of a sum.
fn is_long(op: ScalarOp) -> bool {
    use ScalarOp::*;
    op.float_only() && !matches!(op, Div | Fma | Copysign | Reciprocal | Sqrt | Rsqrt | RealPart | ImagPart | Compose)
        || matches!(op, Pow | FloorDiv | TruncDiv | Rem | Fmod)
}

impl Builder<'_> {
    fn temp(&mut self, size: usize) -> Place {
        self.temps.push(size);
        Place::Temp(self.temps.len() as u16 - 1)
    }

    fn emit(&mut self, f: StepFn, out: Place, args: &[Place]) {
        let first = args[0];
        let args3 = [first, *args.get(1).unwrap_or(&first), *args.get(2).unwrap_or(&first)];
        self.drafts.push(Draft { f, out, args: args3, arity: args.len(), check: false });
    }

    fn compute(&mut self, f: StepFn, class: Class, args: &[Place]) -> Place {
        let out = self.temp(class.size());
        self.emit(f, out, args);
        out
    }

    /// Where a value is as its class holds it; loads an input at its first use.
    fn value(&mut self, v: Value) -> Place {
        if let Some(place) = self.places[v as usize] {
            return place;
        }
        let inputs = self.program.inputs.len();
        let place = match self.program.inputs.get(v as usize) {
            Some(&dtype) if is_native(dtype) => Place::Input(v),
            Some(&dtype) => self.compute(kernels::load(dtype), Class::of(dtype), &[Place::Input(v)]),
            None => Place::Constant(v - inputs as u16),
        };
        self.places[v as usize] = Some(place);
        place
    }

    fn is_constant(&self, v: Value) -> bool {
        let inputs = self.program.inputs.len();
        (inputs..inputs + self.program.constants.len()).contains(&(v as usize))
    }

    fn step(&mut self, i: usize) -> Result<Place> {
        let step = &self.program.steps[i];
        let this = self.program.inputs.len() + self.program.constants.len() + i;
        let (op, dtype) = (step.op, step.dtype);
        if op == ScalarOp::Convert {
            return Ok(self.convert(step.args[0], dtype, this));
        }
        let arity = op.arity();
        let args: SmallVec<[Place; 3]> = step.args[..arity].iter().map(|&a| self.value(a)).collect();
        let class = Class::of(dtype);
        let f = kernels::step(op, class)
            .ok_or_else(|| Error::not_implemented(format!("{} is not implemented for {dtype} on cpu", format!("{op:?}").to_lowercase())))?;
        if dtype.is_integral() && matches!(op, ScalarOp::FloorDiv | ScalarOp::TruncDiv | ScalarOp::Rem | ScalarOp::Fmod) {
            self.compute(kernels::is_zero(class), Class::Bool, &args[1..2]);
            if let Some(last) = self.drafts.last_mut() {
                last.check = true;
            }
        }
        let out = self.compute(f, Class::of(op.result(dtype)), &args);
        // Constants of narrow floats are not rounded, so what they are part of is.
        let exact = op.gives_bool()
            || is_exact(op, dtype.is_float()) && !step.args[..arity].iter().any(|&a| dtype.is_float() && self.is_constant(a));
        Ok(if exact || !self.read[this] { out } else { self.rounded(out, dtype) })
    }

    fn rounded(&mut self, place: Place, dtype: DType) -> Place {
        match kernels::round(dtype) {
            Some(round) => self.compute(round, Class::of(dtype), &[place]),
            None => place,
        }
    }

    fn convert(&mut self, arg: Value, to: DType, this: usize) -> Place {
        let mut from = self.program.dtype(arg);
        let mut place = self.value(arg);
        if let Some(middle) = kernels::between(Class::of(from), to) {
            place = self.in_class(place, from, middle);
            from = middle;
        }
        let place = self.in_class(place, from, to);
        let exact = from == to && !self.is_constant(arg) || is_widening(from, to);
        if exact || !self.read[this] { place } else { self.rounded(place, to) }
    }

    fn in_class(&mut self, place: Place, from: DType, to: DType) -> Place {
        match kernels::convert(Class::of(from), to) {
            Some(f) => self.compute(f, Class::of(to), &[place]),
            None => place,
        }
    }

    fn outputs(&mut self) {
        let outputs = self.program.outputs.clone();
        let mut places: SmallVec<[Place; 2]> = outputs.iter().map(|&v| self.value(v)).collect();
        if outputs.len() > 1 {
            // An output may lie where an input lies: inputs are read before anything is written.
            for (place, &v) in places.iter_mut().zip(&outputs) {
                if let Place::Input(_) = place {
                    let class = Class::of(self.program.dtype(v));
                    *place = self.compute(kernels::copy(class), class, &[*place]);
                }
            }
        }
        for (j, &v) in outputs.iter().enumerate() {
            let (place, out) = (places[j], Place::Output(j as u16));
            let dtype = self.program.dtype(v);
            let as_it_is = is_native(dtype) || dtype == DType::Bool;
            if as_it_is && self.write_directly(place, out) {
                places.iter_mut().filter(|p| **p == place).for_each(|p| *p = out);
            } else {
                self.emit(kernels::store(dtype), out, &[place]);
            }
        }
    }

    /// Lets the step that makes a value write it to the output, unless an input is read afterwards: the output may lie there.
    fn write_directly(&mut self, place: Place, out: Place) -> bool {
        let Place::Temp(_) = place else { return false };
        let Some(at) = self.drafts.iter().position(|d| d.out == place) else { return false };
        let later = &self.drafts[at + 1..];
        if later.iter().any(|d| d.args[..d.arity].iter().any(|a| matches!(a, Place::Input(_)))) {
            return false;
        }
        self.drafts[at].out = out;
        for draft in &mut self.drafts[at + 1..] {
            draft.args.iter_mut().filter(|a| **a == place).for_each(|a| *a = out);
        }
        true
    }

    /// Gives out registers: a temporary keeps its own until it is read for the last time.
    fn finish(self, results: SmallVec<[Place; 1]>) -> Plan {
        let Builder { program, drafts, temps, .. } = self;
        let (inputs, constants) = (program.inputs.len(), program.constants.len());
        let outputs = if results.is_empty() { program.outputs.len() } else { 0 };
        let mut last = vec![0usize; temps.len()];
        for (i, draft) in drafts.iter().enumerate() {
            for place in draft.args[..draft.arity].iter().chain([&draft.out]) {
                if let Place::Temp(t) = place {
                    last[*t as usize] = i;
                }
            }
        }
        for place in &results {
            if let Place::Temp(t) = place {
                last[*t as usize] = drafts.len();
            }
        }
        let base = (inputs + outputs) as u16;
        let mut assigned = vec![u16::MAX; temps.len()];
        let mut free: Vec<u16> = Vec::new();
        let mut registers = constants as u16;
        let mut code = Vec::with_capacity(drafts.len());
        let slot = |place: Place, assigned: &[u16]| match place {
            Place::Input(k) => k,
            Place::Output(k) => inputs as u16 + k,
            Place::Constant(k) => base + k,
            Place::Temp(t) => assigned[t as usize],
        };
        for (i, draft) in drafts.iter().enumerate() {
            let args = draft.args.map(|a| slot(a, &assigned));
            let mut dying: SmallVec<[u16; 3]> = SmallVec::new();
            for a in &draft.args[..draft.arity] {
                if let Place::Temp(t) = *a
                    && last[t as usize] == i
                    && !dying.contains(&t)
                {
                    dying.push(t);
                }
            }
            if let Place::Temp(t) = draft.out {
                // In place of an argument of the same size that nobody needs any more.
                let heir = dying.iter().position(|&d| temps[d as usize] == temps[t as usize]);
                assigned[t as usize] = match heir {
                    Some(k) => assigned[dying.remove(k) as usize],
                    None => free.pop().unwrap_or_else(|| {
                        registers += 1;
                        base + registers - 1
                    }),
                };
                if last[t as usize] == i {
                    dying.push(t);
                }
            }
            free.extend(dying.iter().map(|&d| assigned[d as usize]));
            code.push(Inst { f: draft.f, out: slot(draft.out, &assigned), args, check: draft.check });
        }
        let sizes = temps.iter().copied().chain(program.constants.iter().map(|c| Class::of(c.dtype()).size()));
        Plan {
            constants: program.constants.clone(),
            code,
            results: results.iter().map(|&r| slot(r, &assigned)).collect(),
            registers: registers as usize,
            width: sizes.max().unwrap_or(1),
            cost: drafts.len() + program.steps.iter().filter(|s| is_long(s.op)).count() * 7,
            moves: program.is_identity() && outputs == 1,
        }
    }
}

/// Whether every value of the one dtype is one of the other.
fn is_widening(from: DType, to: DType) -> bool {
    match (from.integer_range(), to.integer_range()) {
        (Some(a), Some(b)) => b.0 <= a.0 && a.1 <= b.1,
        _ => from == DType::Bool,
    }
}
