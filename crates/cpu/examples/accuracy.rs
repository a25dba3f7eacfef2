//! Measures the vector mathematics: the worst error of each f32 function over all 2^32 inputs against the f64 function,
//! of each f64 function against exact values from mpmath, and the time an element takes.
//!
//! ```text
//! cargo run --profile fast -p flambeau-cpu --example accuracy -- [--stride N] [--values FILE] [function ...]
//! ```
//!
//! All functions with stride 1 (the default) take about half an hour on two cores. The file is what
//! `tests/data/make_reference.py` writes; without it, the committed one is read.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};
use support::{Entry, Loop, ulp_error_f32, ulp_error_f64, unary};

const BLOCK: usize = 4096;

#[derive(Clone, Copy)]
struct Worst {
    error: f64,
    at: f64,
}

impl Worst {
    fn none() -> Self {
        Self { error: 0.0, at: 0.0 }
    }

    fn note(&mut self, error: f64, at: f64) {
        if error > self.error {
            *self = Self { error, at };
        }
    }
}

/// The worst error over every `stride`-th bit pattern, by two threads.
fn sweep(entry: &Entry, stride: u64) -> Worst {
    let (single, double) = (entry.best_single(), entry.best_double());
    let part = |thread: u64| {
        let mut worst = Worst::none();
        let (mut x, mut wide) = (vec![0.0_f32; BLOCK], vec![0.0_f64; BLOCK]);
        let (mut y, mut exact) = (x.clone(), wide.clone());
        let span = BLOCK as u64 * stride;
        let blocks = (1_u64 << 32).div_ceil(span);
        for block in (thread..blocks).step_by(2) {
            for i in 0..BLOCK {
                // Past the end it begins again.
                x[i] = f32::from_bits((block * span + i as u64 * stride) as u32);
                wide[i] = x[i] as f64;
            }
            single(&x, &mut y);
            double(&wide, &mut exact);
            for i in 0..BLOCK {
                worst.note(ulp_error_f32(y[i], exact[i]), wide[i]);
            }
        }
        worst
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| part(1));
        let mut worst = part(0);
        let other = other.join().expect("the other thread measures too");
        worst.note(other.error, other.at);
        worst
    })
}

/// The worst error over the lines of the reference that name this function.
fn against_reference(entry: &Entry, reference: &str) -> (Worst, usize) {
    let mut worst = Worst::none();
    let mut points = 0;
    let number = |hex: &str| f64::from_bits(u64::from_str_radix(hex, 16).expect("sixteen hexadecimal digits"));
    for line in reference.lines() {
        let field: Vec<&str> = line.split(' ').collect();
        if field[0] != entry.name {
            continue;
        }
        let x = number(field[1]);
        let mut y = [0.0; support::CHUNK];
        entry.best_double()(&[x; support::CHUNK], &mut y);
        let residue = field[3].parse().expect("a decimal number");
        worst.note(ulp_error_f64(y[0], number(field[2]), residue), x);
        points += 1;
    }
    (worst, points)
}

/// Nanoseconds an element, the best of many runs over a block that stays in the first-level cache.
fn time<T: Copy + Default>(run: Loop<T>, x: &[T]) -> f64 {
    let mut out = vec![T::default(); x.len()];
    let mut best = Duration::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..16 {
            run(std::hint::black_box(x), std::hint::black_box(&mut out));
        }
        best = best.min(start.elapsed());
    }
    best.as_secs_f64() * 1e9 / (16 * x.len()) as f64
}

fn main() {
    let (mut stride, mut reference, mut names) = (1, include_str!("../tests/data/f64.txt").to_owned(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("--stride and --values take a value");
        match argument.as_str() {
            "--stride" => stride = value().parse().expect("the stride is a whole number"),
            "--values" => reference = std::fs::read_to_string(value()).expect("the file of exact values can be read"),
            _ => names.push(argument),
        }
    }
    println!(
        "{:<22} {:>7} {:>15} {:>7} {:>24} {:>7}   ns f32, f64 by instruction set",
        "function", "f32 ulp", "at", "f64 ulp", "at", "points"
    );
    // Arguments that are ordinary for every function: in (0, 1), but for acosh.
    for entry in unary().into_iter().filter(|e| names.is_empty() || names.iter().any(|n| n == e.name)) {
        let shift = if entry.name == "acosh" { 1.0 } else { 0.0 };
        let x: Vec<f64> = (0..BLOCK / 2).map(|i| (i as f64 + 0.5) / (BLOCK / 2) as f64 + shift).collect();
        let narrow: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let worst = sweep(&entry, stride);
        let (worst_double, points) = against_reference(&entry, &reference);
        print!(
            "{:<22} {:7.3} {:15.8e} {:7.3} {:24.16e} {points:7}  ",
            entry.name, worst.error, worst.at, worst_double.error, worst_double.at
        );
        for ((isa, single), (_, double)) in entry.single.iter().zip(&entry.double) {
            if *isa != "baseline" {
                print!(" {isa} {:.2}, {:.2}", time(*single, &narrow), time(*double, &x));
            }
        }
        println!();
    }
}
