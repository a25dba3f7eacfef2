//! The regularised incomplete gamma functions.
//!
//! The series where x is below a, Legendre's continued fraction above (DLMF 8.11 and 8.9), Temme's uniform expansion
//! for large a near x = a (N. M. Temme, *The asymptotic expansion of the incomplete gamma functions*, 1979).

use super::gamma::{lgamma1p, stirling_rest};
use super::{erfc, exp, expm1, lgamma, log, log1p};
use std::f64::consts::PI;

/// x - log(1 + x), without cancellation.
fn less_log1p(x: f64) -> f64 {
    if x.abs() > 0.4 {
        return x - log1p(x);
    }
    let (mut power, mut sum, mut k) = (x, 0.0, 2.0);
    loop {
        power *= -x;
        let term = -power / k;
        sum += term;
        k += 1.0;
        if term.abs() <= f64::EPSILON * 0.25 * f64::abs(sum) {
            return sum;
        }
    }
}

/// x^a e^-x / Γ(a + 1).
fn prefactor(a: f64, x: f64) -> f64 {
    if a < 10.0 {
        return exp(a * log(x) - x - lgamma(a + 1.0));
    }
    exp(-a * less_log1p((x - a) / a) - stirling_rest(a)) / (2.0 * PI * a).sqrt()
}

/// The lower function by its series.
fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, a);
    for _ in 0..20_000 {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term <= sum * (f64::EPSILON * 0.25) {
            break;
        }
    }
    prefactor(a, x) * sum
}

/// The upper function by its continued fraction, after Lentz.
fn fraction(a: f64, x: f64) -> f64 {
    let tiny = f64::MIN_POSITIVE / f64::EPSILON;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
    let mut h = d;
    for i in 1..20_000 {
        let n = -(i as f64) * (i as f64 - a);
        b += 2.0;
        let denominator = n * d + b;
        d = 1.0 / if denominator.abs() < tiny { tiny } else { denominator };
        c = b + n / c;
        if c.abs() < tiny {
            c = tiny;
        }
        let change = c * d;
        h *= change;
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    prefactor(a, x) * a * h
}

/// The upper function of small x, where it is not near 1.
fn upper_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 0.0, 0.0);
    loop {
        n += 1.0;
        term *= -x / n;
        let part = term / (a + n);
        sum += part;
        if part.abs() <= f64::EPSILON * 0.25 * f64::abs(sum) || n > 1000.0 {
            break;
        }
    }
    let lx = log(x);
    let whole = if a.abs() <= 0.5 { lgamma1p(a) } else { lgamma(a + 1.0) };
    -expm1(a * lx - whole) - exp(a * lx - lgamma(a)) * sum
}

/// Temme's expansion: the lower or the upper function.
fn uniform(a: f64, x: f64, upper: bool) -> f64 {
    const C: [[f64; 7]; 3] = [
        [-1.0 / 3.0, 1.0 / 12.0, -2.0 / 135.0, 1.0 / 864.0, 1.0 / 2835.0, -139.0 / 777_600.0, 1.0 / 25_515.0],
        [-1.0 / 540.0, -1.0 / 288.0, 1.0 / 378.0, -77.0 / 77_760.0, 0.0, 0.0, 0.0],
        [25.0 / 6048.0, -139.0 / 51_840.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ];
    let mu = (x - a) / a;
    let eta = (2.0 * less_log1p(mu)).sqrt().copysign(mu);
    let coefficient = |c: &[f64; 7]| c.iter().rev().fold(0.0, |sum, c| sum * eta + c);
    let sum = C.iter().rev().fold(0.0, |sum, c| sum / a + coefficient(c));
    let rest = exp(-0.5 * a * eta * eta) / (2.0 * PI * a).sqrt() * sum;
    let sign = if upper { 1.0 } else { -1.0 };
    0.5 * erfc(sign * eta * (0.5 * a).sqrt()) + sign * rest
}

/// The value at the ends of the domain: NaN for negative arguments; at infinite or zero ones what the limits are.
fn at_the_ends(a: f64, x: f64) -> Option<f64> {
    if x < 0.0 || a < 0.0 || x.is_nan() || a.is_nan() {
        return Some(f64::NAN);
    }
    if a == 0.0 {
        return Some(if x > 0.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 {
        return Some(0.0);
    }
    if a == f64::INFINITY {
        return Some(if x == f64::INFINITY { f64::NAN } else { 0.0 });
    }
    (x == f64::INFINITY).then_some(1.0)
}

fn is_uniform(a: f64, x: f64) -> bool {
    a > 1e4 && ((x - a) / a).abs() < 0.3
}

/// Regularised lower incomplete gamma function.
pub fn igamma(a: f64, x: f64) -> f64 {
    if let Some(end) = at_the_ends(a, x) {
        return end;
    }
    if is_uniform(a, x) {
        return uniform(a, x, false);
    }
    if x > 1.0 && x > a { 1.0 - igammac(a, x) } else { series(a, x) }
}

/// Regularised upper incomplete gamma function.
pub fn igammac(a: f64, x: f64) -> f64 {
    if let Some(end) = at_the_ends(a, x) {
        return 1.0 - end;
    }
    if is_uniform(a, x) {
        return uniform(a, x, true);
    }
    if x > 1.1 {
        return if x < a { 1.0 - series(a, x) } else { fraction(a, x) };
    }
    let small = if x <= 0.5 { -0.4 / log(x) < a } else { x * 1.1 < a };
    if small { 1.0 - series(a, x) } else { upper_series(a, x) }
}
