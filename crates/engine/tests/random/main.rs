//! The random streams against PyTorch's.

mod expected;

use flambeau_base::{Error, ErrorKind, Result, bf16, f16};
use flambeau_engine::random::{Element, Generator, Real, STATE_BYTES, Stream, default_generator};

fn seeded(seed: u64) -> Generator {
    Generator::with_seed(seed)
}

fn fnv(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// (i mod period) / scale, rounded: what expected.py draws from.
fn ramp<T: Element>(n: usize, period: usize, scale: f64) -> Vec<T> {
    (0..n).map(|i| T::from_f64((i % period) as f64 / scale)).collect()
}

trait Bytes: Real {
    fn bytes(values: &[Self]) -> Vec<u8>;
}

macro_rules! bytes {
    ($($ty:ty)*) => {$(
        impl Bytes for $ty {
            fn bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|v| v.to_le_bytes()).collect()
            }
        }
    )*};
}

bytes!(f32 f64 f16 bf16);

/// The draws of fractions alone; `None` for another kind.
fn draw_real<T: Bytes>(s: &mut Stream, kind: &str, n: usize, a: f64, b: f64) -> Result<Option<Vec<u8>>> {
    let mut out = vec![T::default(); n];
    match kind {
        "normal" => s.normal(&mut out, a, b)?,
        "normal_small" => s.normal_small(&mut out, a, b)?,
        "uniform" => s.uniform(&mut out, a, b)?,
        "exponential" => s.exponential(&mut out, a)?,
        "cauchy" => s.cauchy(&mut out, a, b)?,
        "log_normal" => s.log_normal(&mut out, a, b)?,
        "rrelu" => {
            let input: Vec<T> = ramp::<T>(n, 7, 4.0).iter().map(|v| T::from_f64(v.to_f64() - 1.0)).collect();
            s.rrelu_slopes(&mut out, &input, a, b)?;
            for (o, x) in out.iter_mut().zip(&input) {
                *o = T::from_f64(o.to_f64() * x.to_f64());
            }
        }
        "dropout" => s.dropout_mask(&mut out, a)?,
        "bernoulli_each" => s.bernoulli_each(&mut out, &ramp::<T>(n, 61, 60.0))?,
        "poisson" => s.poisson(&mut out, &ramp(n, 97, 4.0))?,
        "gamma" => s.gamma(&mut out, &ramp(n, 89, 12.0))?,
        "binomial" => s.binomial(&mut out, &vec![T::from_f64(a); n], &ramp(n, 61, 60.0))?,
        "dirichlet" => {
            let shapes: Vec<T> = ramp::<T>(n, 7, 4.0).iter().map(|v| T::from_f64(v.to_f64() + 0.25)).collect();
            s.dirichlet(&mut out, &shapes, a as usize)?;
        }
        "multinomial" | "multinomial_rows" => {
            let rows = if kind == "multinomial" { 1 } else { 3 };
            let mut chosen = vec![0i64; rows * a as usize];
            s.multinomial(&ramp::<T>(n, 13, 4.0), n / rows, &mut chosen, a as usize, b == 1.0)?;
            return Ok(Some(chosen.iter().flat_map(|v| v.to_le_bytes()).collect()));
        }
        _ => return Ok(None),
    }
    Ok(Some(T::bytes(&out)))
}

/// The draws of any type.
fn draw<T: Element>(s: &mut Stream, kind: &str, n: usize, a: f64, b: f64) -> Result<Vec<T>> {
    let mut out = vec![T::default(); n];
    match kind {
        "random" => s.random(&mut out),
        "bernoulli" => s.bernoulli(&mut out, a)?,
        "geometric" => s.geometric(&mut out, a)?,
        "permutation" => s.permutation(&mut out)?,
        "range" => s.random_range(&mut out, a as i64, Some(b as i64))?,
        "from" => s.random_range(&mut out, a as i64, None)?,
        _ => return Err(Error::value(format!("no draw is named {kind}"))),
    }
    Ok(out)
}

fn draw_bytes(s: &mut Stream, kind: &str, dtype: &str, n: usize, a: f64, b: f64) -> Result<Vec<u8>> {
    macro_rules! by_name {
        ($($real:ident)*; $($ty:ident)*) => {
            match dtype {
                $(stringify!($real) => match draw_real::<$real>(s, kind, n, a, b)? {
                    Some(bytes) => bytes,
                    None => $real::bytes(&draw(s, kind, n, a, b)?),
                },)*
                $(stringify!($ty) => draw::<$ty>(s, kind, n, a, b)?.iter().flat_map(|v| v.to_le_bytes()).collect(),)*
                "bool" => draw::<bool>(s, kind, n, a, b)?.iter().map(|&v| u8::from(v)).collect(),
                _ => return Err(Error::value(format!("no type is named {dtype}"))),
            }
        };
    }
    Ok(by_name!(f32 f64 f16 bf16; i8 i16 i32 i64 u8 u16 u32 u64))
}

/// Elsewhere the system's sine or logarithm may differ in the last bit of a double.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[test]
fn every_draw_is_pytorchs_to_the_bit() {
    for &(kind, dtype, n, a, b, hash) in expected::EXPECTED {
        let generator = seeded(42);
        let drawn = draw_bytes(&mut generator.lock(), kind, dtype, n, a, b).unwrap();
        let found = fnv(&generator.get_state(), fnv(&drawn, 0xcbf2_9ce4_8422_2325));
        assert_eq!(found, hash, "{kind} of {n} {dtype} with {a} and {b}");
    }
}

/// Printed by PyTorch 2.15.0 after `torch.manual_seed(0)`.
#[test]
fn well_known_numbers() {
    let mut x = [0f32; 3];
    seeded(0).lock().uniform(&mut x, 0.0, 1.0).unwrap();
    assert_eq!(x, [0.496_256_6, 0.768_221_8, 0.088_477_43]);
    let mut x = [0f32; 4];
    seeded(0).lock().normal(&mut x, 0.0, 1.0).unwrap();
    assert_eq!(x, [1.540_996_1, -0.293_428_9, -2.178_789_4, 0.568_431_26]);
    let mut x = [0f32; 16];
    seeded(0).lock().normal(&mut x, 0.0, 1.0).unwrap();
    assert_eq!(x[..4], [-1.125_839_8, -1.152_360_2, -0.250_578_58, -0.433_878_8]);
    let mut x = [0f64; 2];
    seeded(0).lock().uniform(&mut x, 0.0, 1.0).unwrap();
    assert_eq!(x, [0.970_053_001_806_553_1, 0.707_819_864_399_788]);
    let mut x = [0i64; 8];
    seeded(0).lock().random_range(&mut x, 0, Some(10)).unwrap();
    assert_eq!(x, [4, 9, 3, 0, 3, 9, 7, 3]);
    seeded(0).lock().permutation(&mut x).unwrap();
    assert_eq!(x, [4, 0, 7, 3, 2, 5, 1, 6]);
    let mut x = [false; 8];
    seeded(0).lock().bernoulli(&mut x, 0.5).unwrap();
    assert_eq!(x.map(u8::from), [0, 0, 1, 0, 0, 0, 1, 1]);
}

#[test]
fn seeds() {
    let first = |seed| seeded(seed).lock().word();
    assert_eq!(first(7), first(7 + (1 << 32)), "the low 32 bits choose the stream");
    assert_eq!(seeded(u64::MAX).initial_seed(), u64::MAX);
    assert_eq!(Generator::new().initial_seed(), 67_280_421_310_721);
    let generator = Generator::new();
    let seed = generator.seed();
    assert_eq!(generator.initial_seed(), seed);
    assert_ne!(generator.seed(), seed);
    let mut x = [0f32; 1];
    generator.lock().normal(&mut x, 0.0, 1.0).unwrap();
    generator.manual_seed(3);
    assert_eq!(generator.get_state(), seeded(3).get_state(), "seeding forgets the pending normal");
}

#[test]
fn handles_share_a_stream_and_clones_of_the_state_do_not() {
    let a = seeded(1);
    let (b, c) = (a.clone(), a.clone_state());
    let first = a.lock().word();
    assert!(a.same(&b) && !a.same(&c));
    assert_ne!(b.lock().word(), first);
    assert_eq!(c.lock().word(), first);
    let default = default_generator();
    assert!(default.same(default_generator()));
}

#[test]
fn a_state_goes_on_where_it_was_taken() {
    let generator = seeded(11);
    for words in [0, 1, 2, 3, 400, 623, 624, 1000] {
        for _ in 0..words {
            generator.lock().word();
        }
        // An odd number of small normals leaves one pending.
        generator.lock().normal_small(&mut [0f64], 0.0, 1.0).unwrap();
        let state = generator.get_state();
        let draw = |g: &Generator| {
            let (mut x, mut y) = ([0f64; 3], [0f32; 700]);
            g.lock().normal(&mut x, 0.0, 1.0).unwrap();
            g.lock().uniform(&mut y, 0.0, 1.0).unwrap();
            (x, y.to_vec(), g.get_state())
        };
        let other = Generator::new();
        other.set_state(&state).unwrap();
        assert_eq!(other.get_state(), state);
        assert_eq!(draw(&other), draw(&generator));
    }
}

#[test]
fn a_bad_state_is_refused_and_changes_nothing() {
    let generator = seeded(5);
    let good = generator.get_state();
    assert_eq!(good.len(), STATE_BYTES);
    let mut cases = vec![vec![], vec![0; 10], good[..STATE_BYTES - 1].to_vec(), vec![0; STATE_BYTES]];
    // Offsets of `left`, `seeded`, `next`, and values that they cannot have.
    for (at, value) in [(8, 0u32), (8, 626), (8, 0x8000_0001), (12, 0), (16, 625), (16, u32::MAX)] {
        let mut bad = good.clone();
        bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
        cases.push(bad);
    }
    // 624 words left from the third on would reach beyond the block.
    let mut bad = good.clone();
    bad[8..12].copy_from_slice(&624u32.to_le_bytes());
    bad[16] = 3;
    cases.push(bad);
    for bad in cases {
        let error = generator.set_state(&bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.message().starts_with("set_state: "), "{error}");
        assert_eq!(generator.get_state(), good);
    }
}

#[test]
fn empty_draws_take_nothing() {
    let generator = seeded(9);
    let before = generator.get_state();
    let mut s = generator.lock();
    s.uniform::<f32>(&mut [], 0.0, 1.0).unwrap();
    s.normal::<f16>(&mut [], 0.0, 1.0).unwrap();
    s.random::<i64>(&mut []);
    s.random_range::<u8>(&mut [], 0, Some(3)).unwrap();
    s.permutation::<i64>(&mut []).unwrap();
    s.permutation(&mut [7i64]).unwrap();
    s.bernoulli::<bool>(&mut [], 0.5).unwrap();
    s.multinomial::<f32>(&[], 3, &mut [], 1, true).unwrap();
    s.dirichlet::<f32>(&mut [], &[], 0).unwrap();
    drop(s);
    assert_eq!(generator.get_state(), before);
}

#[test]
fn certain_outcomes() {
    let generator = seeded(9);
    let mut s = generator.lock();
    let mut x = [0.5f32; 100];
    s.bernoulli(&mut x, 0.0).unwrap();
    assert_eq!(x, [0.0; 100]);
    s.bernoulli(&mut x, 1.0).unwrap();
    assert_eq!(x, [1.0; 100]);
    s.uniform(&mut x, 3.0, 3.0).unwrap();
    assert_eq!(x, [3.0; 100]);
    s.normal(&mut x, -2.0, 0.0).unwrap();
    assert_eq!(x, [-2.0; 100]);
    let mut y = [9i64; 10];
    s.random_range(&mut y, 4, Some(5)).unwrap();
    assert_eq!(y, [4; 10]);
    s.multinomial(&[0.0f32, 0.0, 0.25], 3, &mut y, 10, true).unwrap();
    assert_eq!(y, [2; 10]);
}

#[test]
fn halves_stay_below_the_upper_bound() {
    let mut x = vec![bf16::ZERO; 20_000];
    seeded(2).lock().uniform(&mut x, 0.0, 1.0).unwrap();
    assert!(x.iter().all(|&v| v < bf16::ONE));
    let mut x = vec![f16::ZERO; 20_000];
    seeded(2).lock().random_range(&mut x, -3000, Some(60_000)).unwrap();
    assert!(x.iter().all(|v| (-3000.0..60_000.0).contains(&v.to_f32())));
}

#[test]
fn a_permutation_holds_each_number_once() {
    for n in [2, 17, 625, 5000] {
        let mut x = vec![0i32; n];
        seeded(1).lock().permutation(&mut x).unwrap();
        x.sort_unstable();
        assert!(x.iter().enumerate().all(|(i, &v)| v == i as i32));
    }
}

#[test]
fn bad_parameters_are_runtime_errors_that_take_no_words() {
    let generator = seeded(4);
    let before = generator.get_state();
    let mut s = generator.lock();
    let (mut f, mut h, mut i, mut b) = ([0f32; 3], [f16::ZERO; 3], [0i64; 2], [0u8; 3]);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let results = [
        ("uniform_", s.uniform(&mut f, 2.0, 1.0)),
        ("uniform_", s.uniform(&mut f, nan, 1.0)),
        ("uniform_", s.uniform(&mut f, 0.0, 1e39)),
        ("uniform_", s.uniform(&mut f, -3e38, 3e38)),
        ("uniform_", s.uniform(&mut h, 0.0, 70_000.0)),
        ("normal_", s.normal(&mut f, 0.0, -1.0)),
        ("normal_", s.normal(&mut [0f64; 20], 0.0, nan)),
        ("random_", s.random_range(&mut i, 5, Some(5))),
        ("random_", s.random_range(&mut i, 5, Some(4))),
        ("random_", s.random_range(&mut b, 0, Some(257))),
        ("random_", s.random_range(&mut b, -1, Some(5))),
        ("random_", s.random_range(&mut [false; 2], 0, Some(3))),
        ("random_", s.random_range(&mut h, 0, Some(70_000))),
        ("random_", s.random_range(&mut b, i64::MIN, None)),
        ("random_", s.random_range(&mut b, 300, None)),
        ("randperm", s.permutation(&mut [0u8; 257])),
        ("randperm", s.permutation(&mut [f16::ZERO; 2050])),
        ("bernoulli_", s.bernoulli(&mut f, 1.5)),
        ("bernoulli_", s.bernoulli(&mut f, nan)),
        ("bernoulli", s.bernoulli_each(&mut f, &[0.5f32, 0.2, 1.5])),
        ("bernoulli", s.bernoulli_each(&mut f, &[0.5f32])),
        ("dropout", s.dropout_mask(&mut f, -0.1)),
        ("exponential_", s.exponential(&mut f, 0.0)),
        ("geometric_", s.geometric(&mut f, 0.0)),
        ("geometric_", s.geometric(&mut f, 1.0)),
        ("cauchy_", s.cauchy(&mut f, 0.0, 0.0)),
        ("rrelu", s.rrelu_slopes(&mut f, &[1.0, -1.0, 2.0], 0.5, 0.25)),
        ("log_normal_", s.log_normal(&mut f, 0.0, nan)),
        ("poisson", s.poisson(&mut f, &[1.0, -1.0, 2.0])),
        ("_standard_gamma", s.gamma(&mut f, &[1.0, f32::NAN, 2.0])),
        ("_sample_dirichlet", s.dirichlet(&mut f, &[1.0, 2.0, 3.0], 2)),
        ("binomial", s.binomial(&mut f, &[1.0], &[0.5])),
        ("multinomial", s.multinomial(&[0.0f32, 0.0], 2, &mut i, 2, true)),
        ("multinomial", s.multinomial(&[-1.0f32, 3.0], 2, &mut i, 2, true)),
        ("multinomial", s.multinomial(&[inf, 3.0], 2, &mut i, 2, false)),
        ("multinomial", s.multinomial(&[nan, 3.0], 2, &mut i, 2, true)),
        ("multinomial", s.multinomial(&[1.0f32], 1, &mut i, 2, false)),
        ("multinomial", s.multinomial(&[1.0f32], 1, &mut i, 0, true)),
        ("multinomial", s.multinomial(&[1.0f32, 2.0, 3.0], 2, &mut i, 2, true)),
    ];
    for (n, (operation, result)) in results.into_iter().enumerate() {
        let error = result.expect_err(&format!("row {n} ({operation})"));
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.message().starts_with(&format!("{operation}: ")), "{error}");
    }
    drop(s);
    assert_eq!(generator.get_state(), before);
}

/// Moments of a few thousand draws, within five standard errors.
#[test]
fn moments() {
    fn check(name: &str, draw: impl Fn(&mut Stream, &mut [f64]), mean: f64, variance: f64) {
        let mut x = vec![0.0; 40_000];
        draw(&mut seeded(8).lock(), &mut x);
        let found = x.iter().sum::<f64>() / x.len() as f64;
        let error = (variance / x.len() as f64).sqrt();
        assert!((found - mean).abs() < 5.0 * error, "{name}: mean {found}, expected {mean} ± {error}");
    }
    check("uniform", |s, x| s.uniform(x, -1.0, 3.0).unwrap(), 1.0, 16.0 / 12.0);
    check("normal", |s, x| s.normal(x, 2.0, 3.0).unwrap(), 2.0, 9.0);
    check("normal_small", |s, x| s.normal_small(x, 2.0, 3.0).unwrap(), 2.0, 9.0);
    check("exponential", |s, x| s.exponential(x, 2.0).unwrap(), 0.5, 0.25);
    check("geometric", |s, x| s.geometric(x, 0.25).unwrap(), 4.0, 12.0);
    for rate in [0.5, 9.0, 11.0, 250.0] {
        check("poisson", |s, x| s.poisson(x, &vec![rate; 40_000]).unwrap(), rate, rate);
    }
    for shape in [0.1, 0.9, 1.0, 30.0] {
        check("gamma", |s, x| s.gamma(x, &vec![shape; 40_000]).unwrap(), shape, shape);
    }
    for (n, p) in [(10.0, 0.3), (10.0, 0.9), (1000.0, 0.3), (1000.0, 0.8)] {
        let draw = |s: &mut Stream, x: &mut [f64]| s.binomial(x, &vec![n; 40_000], &vec![p; 40_000]).unwrap();
        check("binomial", draw, n * p, n * p * (1.0 - p));
    }
}
