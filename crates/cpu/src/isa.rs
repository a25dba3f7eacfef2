//! Which vector instructions this processor has, asked once.
//!
//! Kernels are compiled several times, for each [`Isa`], and choose by [`level`] when they are called.
//! The feature sets are fixed here, so that every `#[target_feature]` in the crate names the same list:
//!
//! | level | features |
//! |---|---|
//! | [`Isa::Avx512`] | [`Isa::Avx2`]'s and `avx512f`, `avx512bw`, `avx512cd`, `avx512dq`, `avx512vl` |
//! | [`Isa::Avx2`] | `avx2`, `fma`, `f16c`, `bmi1`, `bmi2`, `lzcnt`, `popcnt` |
//! | [`Isa::Neon`] | `neon` (every 64-bit ARM processor) |
//! | [`Isa::Portable`] | what the target has by itself |

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of vector instructions for which kernels are compiled.
///
/// The levels of one processor family are ordered: a processor of a level has all that the lower ones need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Isa {
    /// Only what the compilation target guarantees (SSE2 on x86-64).
    Portable = 1,
    /// 128-bit vectors of 64-bit ARM.
    Neon = 2,
    /// 256-bit vectors with fused multiply-add and half-precision conversion (x86-64-v3).
    Avx2 = 3,
    /// 512-bit vectors (x86-64-v4).
    Avx512 = 4,
}

impl Isa {
    /// The level's name, as `FLAMBEAU_ISA` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// The level of that name, in any case of letters.
    pub fn from_name(name: &str) -> Option<Isa> {
        [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512].into_iter().find(|isa| isa.name().eq_ignore_ascii_case(name))
    }

    /// Whether this processor can run kernels compiled for the level.
    pub fn is_supported(self) -> bool {
        match self {
            Isa::Portable => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            Isa::Avx2 | Isa::Avx512 => x86_has(self),
        }
    }

    /// Every level that this processor can run, the plainest first: what a test of kernels goes through.
    pub fn supported() -> impl Iterator<Item = Isa> {
        [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.is_supported())
    }
}

/// The level at which kernels run in this process: the best that the processor has, or the one that the
/// environment variable `FLAMBEAU_ISA` names (`portable`, `neon`, `avx2`, `avx512`).
///
/// A name that is unknown, or that the processor cannot run, leaves the best one in force, since running it
/// would end the process. The answer never changes while the process lives.
///
/// ```
/// use flambeau_cpu::isa;
/// assert!(isa::level().is_supported());
/// ```
#[inline]
pub fn level() -> Isa {
    static LEVEL: AtomicU8 = AtomicU8::new(0);
    match LEVEL.load(Ordering::Relaxed) {
        1 => Isa::Portable,
        2 => Isa::Neon,
        3 => Isa::Avx2,
        4 => Isa::Avx512,
        _ => {
            let level = detect(std::env::var("FLAMBEAU_ISA").ok().as_deref());
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

#[cold]
fn detect(wanted: Option<&str>) -> Isa {
    let best = Isa::supported().last().unwrap_or(Isa::Portable);
    wanted.and_then(Isa::from_name).filter(|isa| isa.is_supported()).unwrap_or(best)
}

#[cfg(target_arch = "x86_64")]
fn x86_has(isa: Isa) -> bool {
    use std::arch::is_x86_feature_detected as has;
    let v3 = has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
    let v4 = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
    v3 && (isa == Isa::Avx2 || v4)
}

#[cfg(not(target_arch = "x86_64"))]
fn x86_has(_: Isa) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for isa in [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512] {
            assert_eq!(Isa::from_name(&isa.name().to_uppercase()), Some(isa));
        }
        assert_eq!(Isa::from_name("sse9"), None);
    }

    #[test]
    fn a_wish_is_granted_only_where_it_runs() {
        let best = detect(None);
        assert!(best.is_supported());
        assert_eq!(detect(Some("portable")), Isa::Portable);
        assert_eq!(detect(Some("nonsense")), best);
        let foreign = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
        assert_eq!(detect(Some(foreign)), best);
    }
}
