//! What a step of an optimizer does to one element, as a program of the kernel language.

use flambeau_base::{DType, Error, Result};
use flambeau_ir::{Body, Program, Val};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// A step of an optimizer, stated once: kernels run it over all parameters, and tensor operations can stand for it where
/// it is to be differentiated.
///
/// Its body is written in operations that round as the tensor operations of their names do, one after the other, so that a model
/// trained here and one trained under PyTorch take the same path to the last bit.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What is kept of each parameter, in its shape, and the switch with which it is kept ("" for always).
    pub state: &'static [(&'static str, &'static str)],
    /// The numbers that come with each step of each parameter.
    pub numbers: &'static [&'static str],
    /// The choices between variants of the rule.
    pub switches: &'static [&'static str],
    /// Writes the new parameter and state.
    pub(super) body: fn(&mut Writer),
}

/// What picks one program of a rule: its switches, and which of its numbers are at least one half.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    rule: usize,
    switches: u32,
    halves: u32,
    dtype: DType,
}

impl Rule {
    /// The switches of these names, as bits. `ValueError` for a name that the rule lacks.
    pub fn switches<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<u32> {
        names.into_iter().try_fold(0, |bits, name| match self.switches.iter().position(|s| *s == name) {
            Some(i) => Ok(bits | 1 << i),
            None => Err(Error::value(format!("{}: there is no switch {name:?}, there are {:?}", self.name, self.switches))),
        })
    }

    fn has(&self, switches: u32, name: &str) -> bool {
        self.switches.iter().position(|s| *s == name).is_some_and(|i| switches >> i & 1 == 1)
    }

    /// The names of what is kept of a parameter under these switches.
    pub fn kept(&self, switches: u32) -> impl Iterator<Item = &'static str> {
        self.state.iter().filter(move |(_, when)| when.is_empty() || self.has(switches, when)).map(|(name, _)| *name)
    }

    /// The program for parameters of a dtype: from parameter, gradient and state to parameter and state.
    ///
    /// `numbers` are those of the step, whose magnitude chooses between forms of a blend.
    pub fn program(&'static self, switches: u32, dtype: DType, numbers: &[f64]) -> Result<Arc<Program>> {
        thread_local! {
            static MADE: RefCell<HashMap<Key, Arc<Program>>> = RefCell::new(HashMap::new());
        }
        let halves = numbers.iter().enumerate().fold(0, |bits, (i, x)| bits | u32::from(*x >= 0.5) << i);
        let key = Key { rule: std::ptr::from_ref(self).addr(), switches, halves, dtype };
        if let Some(program) = MADE.with_borrow(|made| made.get(&key).cloned()) {
            return Ok(program);
        }
        let program = Arc::new(self.write(switches, halves, dtype)?);
        MADE.with_borrow_mut(|made| {
            // Numbers that change from step to step make few forms, but no user should find out how many.
            if made.len() >= 256 {
                made.clear();
            }
            made.insert(key, program.clone());
        });
        Ok(program)
    }

    fn write(&'static self, switches: u32, halves: u32, dtype: DType) -> Result<Program> {
        let kept = self.kept(switches).count();
        let k = Body::new(&vec![dtype; 2 + kept]);
        let values: Vec<Val> = (0..2 + kept).map(|i| k.input(i)).collect();
        let wide = if dtype.is_reduced_float() { DType::F32 } else { dtype };
        let mut writer = Writer { rule: self, switches, halves, dtype, wide, k, values };
        (self.body)(&mut writer);
        let Writer { mut values, k, .. } = writer;
        values.remove(1);
        k.finish(&values)
    }
}

/// The program of a rule while it is written. Each operation gives a value that is rounded to the parameter's dtype.
pub(super) struct Writer {
    rule: &'static Rule,
    switches: u32,
    halves: u32,
    dtype: DType,
    wide: DType,
    k: Body,
    /// Parameter, gradient, and what is kept, as they are by now.
    values: Vec<Val>,
}

macro_rules! by_name {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*);)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, $($arg: Val),*) -> Val {
            $(let $arg = self.k.widen($arg);)*
            let x = self.k.$name($($arg),*);
            self.k.convert(x, self.dtype)
        }
    )*};
}

impl Writer {
    /// Whether a switch is on.
    pub fn on(&self, switch: &str) -> bool {
        debug_assert!(self.rule.switches.contains(&switch), "{switch}");
        self.rule.has(self.switches, switch)
    }

    fn index(&self, name: &str) -> usize {
        match name {
            "param" => 0,
            "grad" => 1,
            _ => self.rule.kept(self.switches).position(|kept| kept == name).map_or(0, |i| 2 + i),
        }
    }

    /// A value by its name: "param", "grad", or one of the state.
    pub fn get(&self, name: &str) -> Val {
        self.values[self.index(name)]
    }

    /// Sets what [`Writer::get`] gives and, of parameter and state, what is written at the end.
    pub fn set(&mut self, name: &str, value: Val) {
        let at = self.index(name);
        self.values[at] = value;
    }

    /// A number of the step, not rounded to the parameter's dtype.
    pub fn number(&mut self, name: &str) -> Val {
        let at = self.rule.numbers.iter().position(|n| *n == name).unwrap_or_default();
        debug_assert_eq!(self.rule.numbers[at], name);
        self.k.param(self.wide, at)
    }

    /// A number that stands in the rule.
    pub fn literal(&mut self, x: f64) -> Val {
        self.k.literal(self.wide, x)
    }

    /// A number rounded to the parameter's dtype, as a factor of an addition is.
    fn rounded(&mut self, x: Val) -> Val {
        if self.dtype == self.wide {
            return x;
        }
        let x = self.k.convert(x, self.dtype);
        self.k.convert(x, self.wide)
    }

    by_name! {
        /// `a + b`.
        add(a, b);
        /// `a - b`.
        sub(a, b);
        /// `a * b`.
        mul(a, b);
        /// `a / b`.
        div(a, b);
        /// The larger one; NaN if either is.
        maximum(a, b);
        /// The smaller one; NaN if either is.
        minimum(a, b);
        /// `-a`.
        neg(a);
        /// Magnitude.
        abs(a);
        /// -1, 0 or 1.
        sign(a);
        /// Square root.
        sqrt(a);
        /// `1 / a`.
        reciprocal(a);
    }

    /// `a` where `x > 0`, `b` where `x < 0`, else `c`; NaN where `x` is.
    pub fn by_sign(&mut self, x: Val, a: Val, b: Val, c: Val) -> Val {
        let x = self.k.widen(x);
        let zero = self.literal(0.0);
        let [a, b, c] = [a, b, c].map(|v| self.k.widen(v));
        let [above, below, equal] = [self.k.gt(x, zero), self.k.lt(x, zero), self.k.eq(x, zero)];
        let out = self.k.select(equal, c, x);
        let out = self.k.select(below, b, out);
        let out = self.k.select(above, a, out);
        self.k.convert(out, self.dtype)
    }

    /// `a`, but `b` where `x < 0`.
    pub fn unless_negative(&mut self, x: Val, a: Val, b: Val) -> Val {
        let [x, a, b] = [x, a, b].map(|v| self.k.widen(v));
        let zero = self.literal(0.0);
        let below = self.k.lt(x, zero);
        let out = self.k.select(below, b, a);
        self.k.convert(out, self.dtype)
    }

    /// `a + alpha * b`.
    pub fn add_scaled(&mut self, a: Val, b: Val, alpha: Val) -> Val {
        let (a, b, alpha) = (self.k.widen(a), self.k.widen(b), self.rounded(alpha));
        let x = self.k.fma(b, alpha, a);
        self.k.convert(x, self.dtype)
    }

    /// `a + value * x * y`.
    pub fn addcmul(&mut self, a: Val, x: Val, y: Val, value: Val) -> Val {
        let [a, x, y] = [a, x, y].map(|v| self.k.widen(v));
        let scaled = self.k.mul(value, x);
        let sum = self.k.fma(scaled, y, a);
        self.k.convert(sum, self.dtype)
    }

    /// `a + value * x / y`.
    pub fn addcdiv(&mut self, a: Val, x: Val, y: Val, value: Val) -> Val {
        let [a, x, y] = [a, x, y].map(|v| self.k.widen(v));
        let scaled = self.k.mul(value, x);
        let quotient = self.k.div(scaled, y);
        let sum = self.k.add(a, quotient);
        self.k.convert(sum, self.dtype)
    }

    /// `a + weight * (b - a)`, taken from the nearer end, where `weight` is the number of that name.
    pub fn lerp(&mut self, a: Val, b: Val, weight: &str) -> Val {
        let from_end = self.rule.numbers.iter().position(|n| *n == weight).is_some_and(|i| self.halves >> i & 1 == 1);
        let mut weight = self.number(weight);
        let (a, b) = (self.k.widen(a), self.k.widen(b));
        if from_end {
            let one = self.literal(1.0);
            weight = self.k.sub(weight, one);
        }
        let between = self.k.sub(b, a);
        let x = self.k.fma(weight, between, if from_end { b } else { a });
        self.k.convert(x, self.dtype)
    }
}
