//! Times programs and reductions: `cargo run --profile fast -p flambeau-cpu --example executor -- [threads] [filter]`.
//!
//! One line a case: name, microseconds (the best of several rounds), and gigabytes a second of what is read and written.

use flambeau_cpu::pool;
use flambeau_engine::Tensor;
use flambeau_engine::backend::{Operand, backend};
use flambeau_engine::base::{DType, Device, Layout, MemoryFormat, Result};
use flambeau_engine::ir::{Body, Program, Val};
use std::hint::black_box;
use std::time::Instant;

fn program(inputs: &[DType], body: impl FnOnce(&mut Body, &[Val]) -> Val) -> Result<Program> {
    let mut k = Body::new(inputs);
    let values: Vec<Val> = (0..inputs.len()).map(|i| k.input(i)).collect();
    let out = body(&mut k, &values);
    k.finish(&[out])
}

fn run(program: &Program, out: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    let mut ins = Vec::new();
    for t in inputs {
        ins.push(Operand { ptr: t.data_ptr()?, dtype: t.dtype(), strides: t.strides() });
    }
    let out = Operand { ptr: out.data_ptr_mut()?, dtype: out.dtype(), strides: out.strides() };
    // SAFETY: the tensors have one shape, and the result is apart.
    unsafe { backend(Device::CPU)?.pointwise(program, &[], inputs[0].shape(), &[out], &ins) }
}

struct Bench {
    filter: Option<String>,
}

impl Bench {
    fn time(&self, name: &str, bytes: usize, mut f: impl FnMut() -> Result<()>) -> Result<()> {
        if self.filter.as_ref().is_some_and(|f| !name.contains(f.as_str())) {
            return Ok(());
        }
        f()?;
        let mut best = f64::INFINITY;
        let mut rounds = 1;
        let begin = Instant::now();
        while begin.elapsed().as_secs_f64() < 0.4 {
            let start = Instant::now();
            for _ in 0..rounds {
                f()?;
            }
            let each = start.elapsed().as_secs_f64() / rounds as f64;
            best = best.min(each);
            rounds = ((0.004 / each) as usize).clamp(1, 100_000);
        }
        println!("{name:36} {:12.2} us {:8.1} GB/s", best * 1e6, bytes as f64 / best / 1e9);
        Ok(())
    }
}

fn transposed(t: &Tensor) -> Result<Tensor> {
    let (m, n) = (t.shape()[0], t.shape()[1]);
    Tensor::from_storage(t.storage().clone(), Layout::strided("t", &[n, m], &[t.strides()[1], t.strides()[0]], 0)?, t.dtype())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    if let Some(threads) = args.next().and_then(|a| a.parse().ok()) {
        pool::set_num_threads(threads);
    }
    let bench = Bench { filter: args.next() };
    let ramp = |n: usize| Tensor::from_slice(&(0..n).map(|i| (i % 1013) as f32 / 200.0 - 2.5).collect::<Vec<_>>(), &[n]);
    for n in [4usize, 1 << 10, 64 << 10, 16 << 20] {
        let (a, b) = (ramp(n)?, ramp(n)?);
        let out = Tensor::empty(&[n], DType::F32, Device::CPU)?;
        let f = [DType::F32; 2];
        bench.time(&format!("add f32 {n}"), 12 * n, || {
            run(black_box(program_once(&ADD, || program(&f, |k, v| k.add(v[0], v[1])))), &out, &[&a, &b])
        })?;
        for (name, op) in [("exp", Body::exp as fn(&mut Body, Val) -> Val), ("gelu", Body::gelu), ("tanh", Body::tanh), ("sin", Body::sin)]
        {
            let p = program(&f[..1], |k, v| op(k, v[0]))?;
            bench.time(&format!("{name} f32 {n}"), 8 * n, || run(&p, &out, &[&a]))?;
        }
        let chain = program(&[DType::F32; 3], |k, v| {
            let product = k.mul(v[0], v[1]);
            let sum = k.add(product, v[2]);
            k.gelu(sum)
        })?;
        bench.time(&format!("gelu(x*w+b) f32 {n}"), 16 * n, || run(&chain, &out, &[&a, &b, &b]))?;
        for dtype in [DType::BF16, DType::F16, DType::I32, DType::I64, DType::U8, DType::F64] {
            let (x, y) = (a.to_dtype(dtype)?, b.to_dtype(dtype)?);
            let out = Tensor::empty(&[n], dtype, Device::CPU)?;
            let p = program(&[dtype; 2], |k, v| k.add(v[0], v[1]))?;
            bench.time(&format!("add {dtype} {n}"), 3 * dtype.size() * n, || run(&p, &out, &[&x, &y]))?;
        }
        for (from, to) in [
            (DType::F32, DType::BF16),
            (DType::BF16, DType::F32),
            (DType::F32, DType::F16),
            (DType::F16, DType::F32),
            (DType::U8, DType::F32),
            (DType::F32, DType::I32),
            (DType::I64, DType::F32),
            (DType::F32, DType::F64),
            (DType::F32, DType::F32),
        ] {
            let x = a.to_dtype(from)?;
            let out = Tensor::empty(&[n], to, Device::CPU)?;
            let p = program(&[from], |k, v| k.convert(v[0], to))?;
            bench.time(&format!("{from} to {to} {n}"), (from.size() + to.size()) * n, || run(&p, &out, &[&x]))?;
        }
        bench.time(&format!("sum f32 {n}"), 4 * n, || a.sum().map(|_| ()))?;
        bench.time(&format!("sum bf16 {n}"), 2 * n, || black_box(&a).sum_dims(None, false, None).map(|_| ()))?;
    }
    matrices(&bench, ramp)
}

static ADD: std::sync::OnceLock<Program> = std::sync::OnceLock::new();

fn program_once(place: &'static std::sync::OnceLock<Program>, make: impl FnOnce() -> Result<Program>) -> &'static Program {
    place.get_or_init(|| make().unwrap_or_default())
}

fn matrices(bench: &Bench, ramp: impl Fn(usize) -> Result<Tensor>) -> Result<()> {
    let n = 4096;
    let base = ramp(n * n)?;
    let a = Tensor::from_storage(base.storage().clone(), Layout::contiguous(&[n, n])?, DType::F32)?;
    let t = transposed(&a)?;
    let out = Tensor::empty(&[n, n], DType::F32, Device::CPU)?;
    let f = [DType::F32; 2];
    let add = program(&f, |k, v| k.add(v[0], v[1]))?;
    let copy = program(&f[..1], |_, v| v[0])?;
    bench.time("a + b.t() 4096", 12 * n * n, || run(&add, &out, &[&a, &t]))?;
    bench.time("a.t().contiguous() 4096", 8 * n * n, || run(&copy, &out, &[&t]))?;
    for dtype in [DType::BF16, DType::U8, DType::F64] {
        let x = transposed(&a.to_dtype(dtype)?)?;
        let y = Tensor::empty(&[n, n], dtype, Device::CPU)?;
        let copy = program(&[dtype], |_, v| v[0])?;
        bench.time(&format!("a.t().contiguous() {dtype} 4096"), 2 * dtype.size() * n * n, || run(&copy, &y, &[&x]))?;
    }
    let row = Tensor::from_storage(base.storage().clone(), Layout::strided("row", &[n, n], &[0, 1], 0)?, DType::F32)?;
    let column = Tensor::from_storage(base.storage().clone(), Layout::strided("column", &[n, n], &[1, 0], 0)?, DType::F32)?;
    bench.time("a + row 4096", 8 * n * n, || run(&add, &out, &[&a, &row]))?;
    bench.time("a + column 4096", 8 * n * n, || run(&add, &out, &[&a, &column]))?;
    for dims in [0, 1] {
        bench.time(&format!("sum dim {dims} f32 4096"), 4 * n * n, || a.sum_dims(Some(&[dims]), false, None).map(|_| ()))?;
        let half = a.to_dtype(DType::BF16)?;
        bench.time(&format!("sum dim {dims} bf16 4096"), 2 * n * n, || half.sum_dims(Some(&[dims]), false, None).map(|_| ()))?;
    }
    for (m, k) in [(1 << 20, 16), (1 << 16, 256), (4096, 768)] {
        let x = Tensor::from_storage(base.storage().clone(), Layout::contiguous(&[m, k])?, DType::F32)?;
        bench.time(&format!("sum dim 1 f32 {m}x{k}"), 4 * m * k, || x.sum_dims(Some(&[1]), false, None).map(|_| ()))?;
        bench.time(&format!("sum dim 0 f32 {m}x{k}"), 4 * m * k, || x.sum_dims(Some(&[0]), false, None).map(|_| ()))?;
    }
    let heads = Tensor::from_storage(base.storage().clone(), Layout::contiguous(&[32, 256, 8, 64])?, DType::F32)?;
    let swapped =
        Tensor::from_storage(heads.storage().clone(), Layout::strided("p", &[32, 8, 256, 64], &[131072, 64, 512, 1], 0)?, DType::F32)?;
    bench.time("permute 0213 contiguous 32x256x8x64", 8 * heads.numel(), || swapped.copy_in(MemoryFormat::Contiguous).map(|_| ()))
}
