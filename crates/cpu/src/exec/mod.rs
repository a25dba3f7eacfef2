//! The tile executor: programs of the kernel language over strided memory.
//!
//! A program is prepared once ([`plan`]): its steps become functions compiled for the machine's instruction set,
//! on registers that hold a tile of values each. A call merges and orders its dimensions ([`iterate`]), cuts
//! them into tiles that stay in the first-level cache, and runs the steps on each tile ([`run`]). Operands that
//! lie in memory as registers hold them are read and written in place.

pub mod blocks;
mod foreach;
pub mod gather;
pub mod iterate;
pub mod kernels;
pub mod plan;
pub mod run;
mod small;
pub mod step;

use flambeau_base::{Error, Result, Scalar};
use flambeau_engine::backend::Operand;
use flambeau_ir::Program;
pub use foreach::foreach;
use plan::Plan;
use run::Call;
use std::sync::{Arc, OnceLock};

/// What was made of a program: each form when it is first asked for.
#[derive(Default)]
struct Prepared {
    stores: OnceLock<Plan>,
    results: OnceLock<Plan>,
    truths: OnceLock<Plan>,
}

impl Prepared {
    fn of(program: &Program) -> Result<&Prepared> {
        let kept = program.prepared.get_or_init(|| Arc::new(Prepared::default()));
        kept.downcast_ref::<Prepared>().ok_or_else(|| Error::runtime("a program is run by one backend only"))
    }
}

fn made(place: &OnceLock<Plan>, make: impl FnOnce() -> Result<Plan>) -> Result<&Plan> {
    if let Some(plan) = place.get() {
        return Ok(plan);
    }
    let plan = make()?;
    Ok(place.get_or_init(|| plan))
}

/// The plan of a program that writes its outputs to memory, made once.
pub fn prepared(program: &Program) -> Result<&Plan> {
    made(&Prepared::of(program)?.stores, || Plan::new(program))
}

/// The plan of a program whose results a reduction reads, made once.
pub fn prepared_for_results(program: &Program) -> Result<&Plan> {
    made(&Prepared::of(program)?.results, || Plan::for_results(program))
}

/// The plan of a program of whose results a reduction reads the truth, made once.
pub fn prepared_for_truths(program: &Program) -> Result<&Plan> {
    made(&Prepared::of(program)?.truths, || Plan::for_truths(program))
}

/// Runs a program element by element; see `Backend::pointwise`.
///
/// # Safety
/// NOTE [kernel contract] of the engine.
pub unsafe fn pointwise(program: &Program, params: &[Scalar], sizes: &[usize], outputs: &[Operand], inputs: &[Operand]) -> Result<()> {
    let plan = prepared(program)?;
    if sizes.contains(&0) {
        return Ok(());
    }
    // SAFETY: the caller's.
    if let Some(failed) = unsafe { small::run(plan, params, sizes, outputs, inputs) } {
        return run::outcome(failed);
    }
    // SAFETY: the caller's.
    unsafe { Call::new(plan, params, sizes, outputs, inputs).run() }
}
