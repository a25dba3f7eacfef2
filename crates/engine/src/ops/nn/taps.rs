//! The taps of interpolation along one dimension, in the arithmetic that PyTorch uses for a dtype.

use crate::backend::spatial::Taps;

/// How values between elements are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The element at or before the place.
    Nearest,
    /// The element whose middle is nearest.
    NearestExact,
    /// A straight line between two elements.
    Linear,
    /// A cubic through four elements. Source: Keys, "Cubic convolution interpolation", 1981.
    Cubic,
    /// A windowed sinc over six elements, for antialiasing only. Source: Duchon, "Lanczos filtering", 1979.
    Lanczos,
}

/// Where the elements of a result lie among those of the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub input: usize,
    pub output: usize,
    pub align_corners: bool,
    /// By how much the dimension grows, where it is not the quotient of the sizes.
    pub factor: Option<f64>,
    /// Whether numbers are rounded to single precision at each step.
    pub single: bool,
}

impl Grid {
    fn round(&self, x: f64) -> f64 {
        if self.single { x as f32 as f64 } else { x }
    }

    /// The distance of two results, in elements of the input.
    fn scale(&self) -> f64 {
        let quotient = |a: f64, b: f64| self.round(self.round(a) / self.round(b));
        if self.align_corners {
            return if self.output > 1 { quotient((self.input - 1) as f64, (self.output - 1) as f64) } else { 0.0 };
        }
        match self.factor {
            Some(factor) if factor > 0.0 => self.round(1.0 / factor),
            _ => quotient(self.input as f64, self.output as f64),
        }
    }

    /// Where result `i` lies.
    fn place(&self, i: usize) -> f64 {
        let scale = self.scale();
        if self.align_corners {
            return self.round(scale * i as f64);
        }
        self.round(self.round(scale * (i as f64 + 0.5)) - 0.5)
    }

    /// The taps of each result; sums of weights are 1.
    pub fn taps(&self, filter: Filter) -> Taps {
        let mut taps = Taps { input: self.input, starts: vec![0], ..Taps::default() };
        for i in 0..self.output {
            match filter {
                Filter::Nearest | Filter::NearestExact => taps.index.push(self.nearest(i, filter)),
                Filter::Linear => self.linear(i, &mut taps),
                Filter::Cubic | Filter::Lanczos => self.cubic(i, &mut taps),
            }
            taps.starts.push(taps.index.len() as u32);
        }
        taps
    }

    fn nearest(&self, i: usize, filter: Filter) -> i32 {
        let at = i as f64 + if filter == Filter::NearestExact { 0.5 } else { 0.0 };
        (self.round(at * self.scale()).floor() as i64).clamp(0, self.input as i64 - 1) as i32
    }

    /// The element before a place, and how far behind it the place is.
    fn before(&self, place: f64) -> (i64, f64) {
        let first = (place.floor() as i64).min(self.input as i64 - 1);
        (first, self.round(place - first as f64).clamp(0.0, 1.0))
    }

    fn linear(&self, i: usize, taps: &mut Taps) {
        let (first, behind) = if self.input == self.output { (i as i64, 0.0) } else { self.before(self.place(i).max(0.0)) };
        let second = (first + 1).min(self.input as i64 - 1);
        taps.index.extend([first as i32, second as i32]);
        taps.weight.extend([self.round(1.0 - behind), behind]);
    }

    fn cubic(&self, i: usize, taps: &mut Taps) {
        let (first, t) = self.before(self.place(i));
        let r = |x: f64| self.round(x);
        for k in -1..3i64 {
            taps.index.push((first + k).clamp(0, self.input as i64 - 1) as i32);
            let distance = r(k as f64 - t).abs();
            taps.weight.push(r(keys(distance, -0.75)));
        }
    }

    /// The taps of a filter as wide as what a result stands for, so that no element is left out.
    pub fn antialiased(&self, filter: Filter) -> Taps {
        let scale = self.scale();
        let half = match filter {
            Filter::Cubic => 2.0,
            Filter::Lanczos => 3.0,
            _ => 1.0,
        };
        let (support, narrower) = if scale >= 1.0 { (self.round(half * scale), self.round(1.0 / scale)) } else { (half, 1.0) };
        let mut taps = Taps { input: self.input, starts: vec![0], ..Taps::default() };
        for i in 0..self.output {
            let centre = self.round(scale * (i as f64 + 0.5));
            let first = (self.round(self.round(centre - support) + 0.5) as i64).clamp(0, self.input as i64 - 1);
            let end = (self.round(self.round(centre + support) + 0.5) as i64).clamp(first + 1, (self.input as i64).max(first + 1));
            let weight = |j: i64| {
                let x = self.round(self.round(self.round((j as f64) - centre) + 0.5) * narrower);
                self.round(match filter {
                    Filter::Cubic => keys(x.abs(), -0.5),
                    Filter::Lanczos => lanczos(x),
                    _ => (1.0 - x.abs()).max(0.0),
                })
            };
            let weights: Vec<f64> = (first..end).map(weight).collect();
            let sum = weights.iter().fold(0.0, |sum, w| self.round(sum + w));
            taps.index.extend((first..end).map(|j| j as i32));
            taps.weight.extend(weights.iter().map(|w| if sum != 0.0 { self.round(w / sum) } else { *w }));
            taps.starts.push(taps.index.len() as u32);
        }
        taps
    }
}

/// Keys' cubic at a distance, with its free parameter.
fn keys(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
    if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

/// Whole numbers in the place of weights: `weight * 2^bits`, with as many bits as fit 16-bit numbers. Taps of one
/// element are one tap.
pub(super) fn fixed_point(taps: &Taps) -> (Taps, u32) {
    let mut merged = Taps { input: taps.input, starts: vec![0], ..Taps::default() };
    for i in 0..taps.output() {
        let begin = merged.index.len();
        for t in taps.of(i) {
            match merged.index[begin..].iter().position(|&j| j == taps.index[t]) {
                Some(at) => merged.weight[begin + at] += taps.weight[t],
                None => {
                    merged.index.push(taps.index[t]);
                    merged.weight.push(taps.weight[t]);
                }
            }
        }
        merged.starts.push(merged.index.len() as u32);
    }
    let most = merged.weight.iter().fold(0.0, |m: f64, &w| m.max(w));
    let mut bits = 0;
    while bits < 22 && (0.5 + most * (1u64 << (bits + 1)) as f64) < (1 << 15) as f64 {
        bits += 1;
    }
    for w in &mut merged.weight {
        *w = (*w * (1u64 << bits) as f64).round();
    }
    (merged, bits)
}
