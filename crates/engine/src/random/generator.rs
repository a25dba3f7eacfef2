//! The handle on a stream, its seeding, and its state in PyTorch's layout.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use flambeau_base::{Error, Result};

use super::twister::{N, Twister};
use super::uniform::fraction_f64;

/// Bytes of a saved state.
pub const STATE_BYTES: usize = 5056;

/// The seed of [`Generator::new`], as in PyTorch.
pub const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// A stream of random words and what has been drawn ahead from it.
///
/// The draws are methods of this type; [`Generator::lock`] gives access to it.
#[derive(Clone)]
pub struct Stream {
    pub(super) twister: Twister,
    /// The second value of the last normal pair, when it is still to be given.
    pub(super) next_normal: Option<f64>,
    /// PyTorch's state has room for a pending normal in `f32`. No draw makes or takes it; it is only carried.
    next_normal_f32: Option<f32>,
}

/// A handle on a [`Stream`]: copies of it draw from the same one.
///
/// ```
/// use flambeau_engine::random::Generator;
/// let generator = Generator::new();
/// generator.manual_seed(42);
/// let saved = generator.get_state();
/// let (mut a, mut b) = ([0f32; 5], [0f32; 5]);
/// generator.lock().normal(&mut a, 0.0, 1.0)?;
/// generator.set_state(&saved)?;
/// generator.lock().normal(&mut b, 0.0, 1.0)?;
/// assert_eq!(a, b);
/// # Ok::<(), flambeau_base::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator(Arc<Mutex<Stream>>);

/// The generator that draws use when they are given none. Its seed differs from one process to the next.
pub fn default_generator() -> &'static Generator {
    static DEFAULT: LazyLock<Generator> = LazyLock::new(|| Generator::with_seed(unforeseen_seed()));
    &DEFAULT
}

impl Default for Generator {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Generator(initial_seed={})", self.initial_seed())
    }
}

impl Generator {
    /// A generator seeded with [`DEFAULT_SEED`].
    pub fn new() -> Self {
        Self::with_seed(DEFAULT_SEED)
    }

    /// A generator seeded with `seed`.
    pub fn with_seed(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Stream::new(seed))))
    }

    /// Access to the stream, for one draw or for several that belong together.
    pub fn lock(&self) -> MutexGuard<'_, Stream> {
        // A draw that panicked leaves a stream that is further on, but whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the stream of `seed`. Only its low 32 bits choose the stream; a negative seed of a 64-bit caller is
    /// its two's complement.
    pub fn manual_seed(&self, seed: u64) {
        *self.lock() = Stream::new(seed);
    }

    /// Starts a stream that cannot be foreseen and gives its seed.
    pub fn seed(&self) -> u64 {
        let seed = unforeseen_seed();
        self.manual_seed(seed);
        seed
    }

    /// The seed that the present stream was started with.
    pub fn initial_seed(&self) -> u64 {
        self.lock().twister.seed
    }

    /// The state, in the 5,056 bytes of PyTorch's `get_rng_state`; [`Generator::set_state`] and PyTorch's
    /// `set_rng_state` continue the same stream from it.
    pub fn get_state(&self) -> Vec<u8> {
        self.lock().to_bytes()
    }

    /// Continues from a state that [`Generator::get_state`] or PyTorch gave.
    ///
    /// # Errors
    /// When it hasn't 5,056 bytes, or its fields cannot be those of a twister. The generator is then as before.
    pub fn set_state(&self, state: &[u8]) -> Result<()> {
        let stream = Stream::from_bytes(state)?;
        *self.lock() = stream;
        Ok(())
    }

    /// A generator of its own that goes on from where this one is.
    pub fn clone_state(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// Whether both handles draw from the same stream.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

// The layout of a saved state: little-endian fields at these offsets, all others zero.
const SEED: usize = 0;
const LEFT: usize = 8;
const SEEDED: usize = 12;
const NEXT: usize = 16;
const WORDS: usize = 24;
const NORMAL: usize = WORDS + 8 * N + 8;
const NORMAL_VALID: usize = NORMAL + 16;
const NORMAL_F32: usize = NORMAL_VALID + 8;
const NORMAL_F32_VALID: usize = NORMAL_F32 + 4;

impl Stream {
    fn new(seed: u64) -> Self {
        Self { twister: Twister::new(seed), next_normal: None, next_normal_f32: None }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; STATE_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let twister = &self.twister;
        put(SEED, &twister.seed.to_le_bytes());
        put(LEFT, &twister.left.to_le_bytes());
        put(SEEDED, &1u32.to_le_bytes());
        put(NEXT, &u64::from(twister.next).to_le_bytes());
        for (i, &word) in twister.state.iter().enumerate() {
            put(WORDS + 8 * i, &u64::from(word).to_le_bytes());
        }
        if let Some(value) = self.next_normal {
            put(NORMAL, &value.to_le_bytes());
            put(NORMAL_VALID, &[1]);
        }
        if let Some(value) = self.next_normal_f32 {
            put(NORMAL_F32, &value.to_le_bytes());
            put(NORMAL_F32_VALID, &[1]);
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != STATE_BYTES {
            return Err(Error::runtime(format!(
                "set_state: a state of the CPU generator has {STATE_BYTES} bytes, but this one has {}",
                bytes.len()
            )));
        }
        let field = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let (left, next) = (field(LEFT) as u32, field(NEXT) as u32);
        let seeded = field(SEEDED) as u32 != 0;
        // The words that are left must lie inside the block.
        let inside = (1..=N as u32).contains(&left) && u64::from(next) + u64::from(left) - 1 <= N as u64;
        if !seeded || !inside {
            return Err(Error::runtime(format!(
                "set_state: invalid Mersenne twister state (seeded {seeded}, {left} left, next {next} of {N})"
            )));
        }
        let state = std::array::from_fn(|i| field(WORDS + 8 * i) as u32);
        let normal = f64::from_bits(field(NORMAL));
        let normal_f32 = f32::from_bits(field(NORMAL_F32) as u32);
        Ok(Self {
            twister: Twister { seed: field(SEED), left, next, state },
            next_normal: (field(NORMAL_VALID) as u32 != 0).then_some(normal),
            next_normal_f32: (bytes[NORMAL_F32_VALID] != 0).then_some(normal_f32),
        })
    }

    /// The next 32-bit word.
    pub fn word(&mut self) -> u32 {
        self.twister.word()
    }

    /// The next two words, the first one in the high half.
    pub fn word64(&mut self) -> u64 {
        self.twister.word64()
    }

    /// The low 53 bits of two words, as a number of [0, 1).
    #[inline]
    pub(super) fn unit_f64(&mut self) -> f64 {
        fraction_f64(self.twister.word(), self.twister.word())
    }
}

/// A seed from the randomness that the system gave this process, the time and the process id.
fn unforeseen_seed() -> u64 {
    RandomState::new().hash_one((SystemTime::now(), std::process::id()))
}

/// Seeds the generator that draws use when they are given none.
///
/// ```
/// flambeau_engine::random::manual_seed(42);
/// ```
pub fn manual_seed(seed: u64) {
    default_generator().manual_seed(seed);
}
