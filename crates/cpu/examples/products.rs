//! The speed of matrix products: `cargo run --profile fast -p flambeau-cpu --example products [name]`.

use std::time::Instant;

use flambeau_cpu::gemm::{BatchAxis, Gemm, GemmElement, Matrix, gemm_batched};
use flambeau_cpu::{alloc, isa, pool};
use half::{bf16, f16};

/// Sizes, and which operands are stored transposed.
struct Case {
    name: &'static str,
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    a_transposed: bool,
    b_transposed: bool,
}

const fn case(name: &'static str, [batch, m, k, n]: [usize; 4], a_transposed: bool, b_transposed: bool) -> Case {
    Case { name, batch, m, n, k, a_transposed, b_transposed }
}

static CASES: &[Case] = &[
    case("peak: one tile", [1, 14, 256, 32], false, false),
    case("4", [1, 4, 4, 4], false, false),
    case("16", [1, 16, 16, 16], false, false),
    case("64", [1, 64, 64, 64], false, false),
    case("256", [1, 256, 256, 256], false, false),
    case("1024", [1, 1024, 1024, 1024], false, false),
    case("2048", [1, 2048, 2048, 2048], false, false),
    case("512x128@128x384", [1, 512, 128, 384], false, false),
    case("512x384@384x128 Bt", [1, 512, 384, 128], false, true),
    case("128x512@512x384 At", [1, 128, 512, 384], true, false),
    case("512x128x384 Bt(linear)", [1, 512, 128, 384], false, true),
    case("head 512x128x65 Bt", [1, 512, 128, 65], false, true),
    case("65x512x128 At", [1, 65, 512, 128], true, false),
    case("512x65x128", [1, 512, 65, 128], false, false),
    case("2048x128x512 Bt", [1, 2048, 128, 512], false, true),
    case("2048x512x128 Bt", [1, 2048, 512, 128], false, true),
    case("64x4096x1024 Bt", [1, 64, 4096, 1024], false, true),
    case("8x4096x4096 Bt", [1, 8, 4096, 4096], false, true),
    case("1x4096x4096 Bt", [1, 1, 4096, 4096], false, true),
    case("1x4096x4096", [1, 1, 4096, 4096], false, false),
    case("4096x4096x1", [1, 4096, 4096, 1], false, false),
    case("b 32x64x32x64", [32, 64, 32, 64], false, false),
    case("b 32x64x32x64 Bt", [32, 64, 32, 64], false, true),
    case("b 32x64x64x32", [32, 64, 64, 32], false, false),
];

fn measure<T: GemmElement>(case: &Case, dtype: &str, number: fn(f32) -> T) {
    let &Case { name, batch, m, n, k, a_transposed, b_transposed } = case;
    let mut seed = 1u32;
    let mut fill = |len: usize| -> &'static mut [T] {
        let mut next = |_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            number((seed >> 8) as f32 / (1 << 23) as f32 - 1.0)
        };
        let ptr = alloc::allocate(len * size_of::<T>()).expect("memory").cast::<T>();
        // SAFETY: the fresh memory holds `len` of them.
        (0..len).for_each(|index| unsafe { ptr.add(index).write(next(index)) });
        // SAFETY: written just now; lives as long as the program.
        unsafe { std::slice::from_raw_parts_mut(ptr.as_ptr(), len) }
    };
    let (a, b, c) = (fill(batch * m * k), fill(batch * k * n), fill(batch * m * n));
    let mut product = Gemm::contiguous(m, n, k, a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    if a_transposed {
        product.a = Matrix { ptr: a.as_ptr(), row: 1, column: m as isize };
    }
    if b_transposed {
        product.b = Matrix { ptr: b.as_ptr(), row: 1, column: k as isize };
    }
    let axis = BatchAxis { len: batch, a: (m * k) as isize, b: (k * n) as isize, c: (m * n) as isize };
    let operations = 2.0 * (batch * m * n * k) as f64;
    // The best of many short measurements: other programs disturb some of them.
    let rounds = (2e8 / operations.max(1e5)).max(1.0) as usize;
    // SAFETY: the vectors have the sizes of the product.
    let run = || unsafe { gemm_batched(&product, &[axis]) };
    (0..3).for_each(|_| run());
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_millis() < 300 {
        let start = Instant::now();
        (0..rounds).for_each(|_| run());
        best = best.min(start.elapsed().as_secs_f64() / rounds as f64);
    }
    let threads = pool::num_threads();
    println!("{threads}t {dtype} {name:28} {:10.2} us {:8.1} GF/s", best * 1e6, operations / best / 1e9);
}

fn main() {
    println!("{}", isa::level().name());
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let most = pool::num_threads();
    for threads in [1, most] {
        pool::set_num_threads(threads);
        for case in CASES.iter().filter(|case| case.name.starts_with(&wanted)) {
            measure::<f32>(case, "f32 ", |x| x);
            if case.name == "1024" || case.name.contains("Bt") {
                measure::<f64>(case, "f64 ", f64::from);
                measure::<bf16>(case, "bf16", bf16::from_f32);
                measure::<f16>(case, "f16 ", f16::from_f32);
            }
        }
    }
}
