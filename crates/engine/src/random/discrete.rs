//! Poisson and binomial draws.

use flambeau_base::{Error, Result};

use super::element::Real;
use super::generator::Stream;

impl Stream {
    /// Fills `out` with Poisson numbers of the rates `rates`.
    ///
    /// Below a rate of 10, uniform numbers are multiplied until the product falls to `exp(-rate)` (Knuth): two words
    /// a factor. From 10 on, Hörmann's transformed rejection (PTRS, 1993): four words a trial.
    ///
    /// # Errors
    /// When the lengths differ, or a rate is negative or not a number.
    ///
    /// ```
    /// use flambeau_engine::random::Generator;
    /// let mut x = [0f32; 3];
    /// Generator::with_seed(0).lock().poisson(&mut x, &[0.0, 2.0, 1e6])?;
    /// assert!(x[0] == 0.0 && x[1] < 30.0 && (x[2] - 1e6).abs() < 1e4);
    /// # Ok::<(), flambeau_base::Error>(())
    /// ```
    pub fn poisson<T: Real>(&mut self, out: &mut [T], rates: &[T]) -> Result<()> {
        if out.len() != rates.len() {
            return Err(Error::runtime(format!("poisson: {} rates for {} numbers", rates.len(), out.len())));
        }
        if let Some(bad) = rates.iter().map(|r| r.to_f64()).find(|r| r.is_nan() || *r < 0.0) {
            return Err(Error::runtime(format!("poisson: rates must not be negative, but one is {bad}")));
        }
        for (o, rate) in out.iter_mut().zip(rates) {
            let rate = rate.to_f64();
            let count = if rate >= 10.0 { self.poisson_by_rejection(rate) } else { self.poisson_by_product(rate) };
            *o = T::from_i64(count);
        }
        Ok(())
    }

    fn poisson_by_product(&mut self, rate: f64) -> i64 {
        if rate == 0.0 {
            return 0;
        }
        let bound = (-rate).exp();
        let mut product = self.unit_f64();
        let mut count = 0;
        while product > bound {
            count += 1;
            product *= self.unit_f64();
        }
        count
    }

    fn poisson_by_rejection(&mut self, rate: f64) -> i64 {
        let log_rate = rate.ln();
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let squeeze = 0.9277 - 3.6224 / (b - 2.0);
        loop {
            let u = self.unit_f64() - 0.5;
            let v = self.unit_f64();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + rate + 0.43).floor() as i64;
            if us >= 0.07 && v <= squeeze {
                return k;
            }
            if k < 0 || (us < 0.013 && v > us) {
                continue;
            }
            let proposal = v.ln() + inverse_alpha.ln() - (a / (us * us) + b).ln();
            if proposal <= -rate + k as f64 * log_rate - ln_factorial(k as f64) {
                return k;
            }
        }
    }

    /// Fills `out` with binomial numbers: successes of `counts` trials of the probabilities `probabilities`.
    ///
    /// The rarer outcome is drawn. Where fewer than 10 of it are expected, the gaps between them are drawn as
    /// geometric numbers: two words each. Else Hörmann's transformed rejection (BTRS, 1993): four words a trial.
    /// A count or probability of 0 or less gives 0, a probability of 1 or more the count, without words.
    ///
    /// # Errors
    /// When the lengths differ.
    pub fn binomial<T: Real>(&mut self, out: &mut [T], counts: &[T], probabilities: &[T]) -> Result<()> {
        if out.len() != counts.len() || out.len() != probabilities.len() {
            return Err(Error::runtime(format!(
                "binomial: {} counts and {} probabilities for {} numbers",
                counts.len(),
                probabilities.len(),
                out.len()
            )));
        }
        for ((o, count), p) in out.iter_mut().zip(counts).zip(probabilities) {
            let (n, p) = (count.to_f64(), p.to_f64());
            let q = T::from_f64(1.0 - p).to_f64();
            *o = T::from_f64(if n.is_nan() || p.is_nan() {
                f64::NAN
            } else if n <= 0.0 || p <= 0.0 {
                0.0
            } else if p >= 1.0 {
                n
            } else if p <= 0.5 {
                self.rare_successes::<T>(n, p)
            } else {
                n - self.rare_successes::<T>(n, q)
            });
        }
        Ok(())
    }

    fn rare_successes<T: Real>(&mut self, n: f64, p: f64) -> f64 {
        let expected = T::from_f64(n * p).to_f64();
        if expected >= 10.0 { self.binomial_by_rejection::<T>(n, p) } else { self.binomial_by_gaps::<T>(n, p) }
    }

    fn binomial_by_gaps<T: Real>(&mut self, n: f64, p: f64) -> f64 {
        // The logarithm is taken in the type of the probability.
        let log_failure = if T::DIGITS == 53 { (-p).ln_1p() } else { f64::from((-p as f32).ln_1p()) };
        let (mut trials, mut successes) = (0.0, 0.0);
        loop {
            trials += (self.unit_f64().ln() / log_failure).ceil();
            if trials > n {
                return successes;
            }
            successes += 1.0;
        }
    }

    fn binomial_by_rejection<T: Real>(&mut self, n: f64, p: f64) -> f64 {
        let round = |x: f64| T::from_f64(x).to_f64();
        let mean = round(n * p);
        let deviation = round(round(mean * round(1.0 - p)).sqrt());
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let c = mean + 0.5;
        let squeeze = 0.92 - 4.2 / b;
        let odds = round(p / round(1.0 - p));
        let alpha = (2.83 + 5.1 / b) * deviation;
        let mode = round(round(n + 1.0) * p).floor();
        loop {
            let u = self.unit_f64() - 0.5;
            let v = self.unit_f64();
            let us = 0.5 - u.abs();
            let k = round(((2.0 * a / us + b) * u + c).floor());
            if k < 0.0 || k > n {
                continue;
            }
            if us >= 0.07 && v <= squeeze {
                return k;
            }
            let v = (v * alpha / (a / (us * us) + b)).ln();
            let bound = (mode + 0.5) * ((mode + 1.0) / (odds * (n - mode + 1.0))).ln()
                + (n + 1.0) * ((n - mode + 1.0) / (n - k + 1.0)).ln()
                + (k + 0.5) * (odds * (n - k + 1.0) / (k + 1.0)).ln()
                + stirling_tail(mode)
                + stirling_tail(n - mode)
                - stirling_tail(k)
                - stirling_tail(n - k);
            if v <= bound {
                return k;
            }
        }
    }
}

/// What Stirling's formula for ln k! leaves over: about 1 / (12 (k + 1)).
fn stirling_tail(k: f64) -> f64 {
    const TAIL: [f64; 10] = [
        0.0810614667953272,
        0.0413406959554092,
        0.0276779256849983,
        0.02079067210376509,
        0.0166446911898211,
        0.0138761288230707,
        0.0118967099458917,
        0.0104112652619720,
        0.00925546218271273,
        0.00833056343336287,
    ];
    if let Some(&tail) = TAIL.get(k as usize) {
        return tail;
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

/// ln k! of a whole number: the logarithm of the product, which is exact so far, then Stirling's series.
fn ln_factorial(k: f64) -> f64 {
    if k < 20.0 {
        return (2..=k as u64).map(|i| i as f64).product::<f64>().ln();
    }
    let inverse = 1.0 / k;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (k + 0.5) * k.ln() - k + 0.5 * std::f64::consts::TAU.ln() + series
}
