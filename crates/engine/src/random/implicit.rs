//! Derivatives of gamma and Dirichlet draws by their parameters, the place in the distribution held fixed.
//!
//! A draw `x` of the distribution function `F(x; a)` moves with `a` so that `F` stays: `dx/da = -(dF/da) / (dF/dx)`
//! (Figurnov, Mohamed and Mnih, 2018). The distribution functions and their derivatives by `a` are summed together,
//! by series and continued fractions (Abramowitz and Stegun 6.5.29, 6.5.31 and 26.5.8).

/// A value with its derivative by a parameter.
#[derive(Clone, Copy)]
struct Dual(f64, f64);

impl Dual {
    fn add(self, o: Dual) -> Dual {
        Dual(self.0 + o.0, self.1 + o.1)
    }

    fn mul(self, o: Dual) -> Dual {
        Dual(self.0 * o.0, self.1 * o.0 + self.0 * o.1)
    }

    fn recip(self) -> Dual {
        // Lentz's method: a denominator of 0 becomes a tiny one.
        let v = if self.0.abs() < 1e-290 { 1e-290 } else { self.0 };
        Dual(1.0 / v, -self.1 / (v * v))
    }
}

/// The logarithmic derivative of the gamma function, for positive arguments.
fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let tail =
        y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32760.0 - y / 12.0))))));
    sum + x.ln() - 0.5 / x - tail
}

/// Derivative of a gamma draw `x` by its shape `a`.
pub fn gamma_grad(a: f64, x: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 || !x.is_finite() || !a.is_finite() {
        return 0.0;
    }
    if a > 1e7 {
        // Wilson and Hilferty's normal approximation of the cube root, differentiated at a fixed deviate.
        let root = (x / a).cbrt();
        let z = (root - 1.0 + 1.0 / (9.0 * a)) * 3.0 * a.sqrt();
        return root.powi(3) + 3.0 * a * root * root * (1.0 / (9.0 * a * a) - z / (6.0 * a * a.sqrt()));
    }
    let log = x.ln() - digamma(a);
    if x < a + 1.0 {
        // P = pdf * x / a * (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)
        let (mut term, mut sum) = (Dual(1.0 / a, -1.0 / (a * a)), Dual(1.0 / a, -1.0 / (a * a)));
        let mut n = a;
        for _ in 0..200_000 {
            n += 1.0;
            term = term.mul(Dual(x / n, -x / (n * n)));
            sum = sum.add(term);
            if term.0.abs() < 1e-17 * sum.0.abs() && term.1.abs() <= 1e-17 * sum.1.abs() {
                break;
            }
        }
        return -x * (sum.0 * log + sum.1);
    }
    // Q = pdf * x / (x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...)))
    let mut b = Dual(x + 1.0 - a, -1.0);
    let mut c = Dual(1e290, 0.0);
    let mut d = b.recip();
    let mut h = d;
    for i in 1..200_000 {
        let i = f64::from(i);
        let an = Dual(-i * (i - a), i);
        b = b.add(Dual(2.0, 0.0));
        d = an.mul(d).add(b).recip();
        c = b.add(an.mul(c.recip()));
        let step = c.mul(d);
        h = h.mul(step);
        if (step.0 - 1.0).abs() < 1e-16 && step.1.abs() < 1e-16 {
            break;
        }
    }
    x * (h.0 * log + h.1)
}

/// The continued fraction of the incomplete beta function, with its derivative by the direction (`da`, `db`).
fn beta_fraction(a: Dual, b: Dual, x: f64) -> Dual {
    let one = Dual(1.0, 0.0);
    let x = Dual(x, 0.0);
    let neg = |v: Dual| Dual(-v.0, -v.1);
    let (sum, up, down) = (a.add(b), a.add(one), a.add(neg(one)));
    let mut c = one;
    let mut d = one.add(neg(sum.mul(x).mul(up.recip()))).recip();
    let mut h = d;
    for m in 1..100_000 {
        let m = Dual(f64::from(m), 0.0);
        let twice = m.add(m);
        let even = m.mul(b.add(neg(m))).mul(x).mul(down.add(twice).mul(a.add(twice)).recip());
        d = one.add(even.mul(d)).recip();
        c = one.add(even.mul(c.recip()));
        h = h.mul(c).mul(d);
        let odd = neg(a.add(m)).mul(sum.add(m)).mul(x).mul(a.add(twice).mul(up.add(twice)).recip());
        d = one.add(odd.mul(d)).recip();
        c = one.add(odd.mul(c.recip()));
        let step = c.mul(d);
        h = h.mul(step);
        if (step.0 - 1.0).abs() < 1e-16 && step.1.abs() < 1e-16 {
            break;
        }
    }
    h
}

/// Derivative of a component `x` of a Dirichlet draw by its own shape `a`, over `1 - x`; `total` is the sum of all shapes.
pub fn dirichlet_grad(x: f64, a: f64, total: f64) -> f64 {
    let b = total - a;
    if !(x > 0.0 && x < 1.0 && a > 0.0 && b > 0.0) {
        return 0.0;
    }
    let psi = digamma(total);
    let derivative = if x < (a + 1.0) / (a + b + 2.0) {
        // I_x(a, b) = pdf * x(1-x) / a * fraction
        let a = Dual(a, 1.0);
        let h = beta_fraction(a, Dual(b, 0.0), x).mul(a.recip());
        -x * (1.0 - x) * (h.0 * (x.ln() - digamma(a.0) + psi) + h.1)
    } else {
        // 1 - I_{1-x}(b, a), whose derivative by a is that of its second parameter.
        let h = beta_fraction(Dual(b, 0.0), Dual(a, 1.0), 1.0 - x).mul(Dual(1.0 / b, 0.0));
        x * (1.0 - x) * (h.0 * (x.ln() - digamma(a) + psi) + h.1)
    };
    derivative / (1.0 - x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gamma_draw_moves_as_the_quantile_does() {
        // -(dP/da) / pdf with mpmath at 40 digits.
        for (a, x, want) in GAMMA {
            let got = gamma_grad(a, x);
            assert!((got - want).abs() < 1e-9 * want.abs().max(1e-3), "a={a} x={x}: {got}, exactly {want}");
        }
    }

    #[test]
    fn a_uniform_component_moves_as_the_quantile_does() {
        // x is uniform for a = 1 and total = 2: F = x^a, so dx/da = -x ln x.
        for x in [0.01f64, 0.3, 0.9, 0.999] {
            let want = -x * x.ln() / (1.0 - x);
            assert!((dirichlet_grad(x, 1.0, 2.0) - want).abs() < 1e-12 * want.abs());
        }
    }

    const GAMMA: [(f64, f64, f64); 10] = [
        (0.1, 0.001, 0.06490724738374097),
        (0.5, 0.2, 0.7940505663308434),
        (1.0, 1.0, 1.1735630272247268),
        (1.0, 5.0, 2.3570757536203653),
        (2.5, 0.3, 0.30557287974671365),
        (2.5, 9.0, 1.891711800090848),
        (30.0, 25.0, 0.9166815997356572),
        (30.0, 55.0, 1.3408481463610888),
        (1000.0, 990.0, 0.9951490959698875),
        (1000.0, 1100.0, 1.048586678561617),
    ];
}
