//! Poisson and binomial samples, one after the other from one sequence: their number of words depends on chance.
//!
//! They are PyTorch's for a seed. Small Poisson means multiply uniform numbers until the product falls below exp(-mean)
//! (D. Knuth, "The Art of Computer Programming", volume 2, 3.4.1); small binomial means add up the geometric waiting times
//! between successes. Large means are sampled by transformed rejection with squeeze, which rejects about one uniform
//! number in seven. Sources: W. Hörmann, "The transformed rejection method for generating Poisson random variables"
//! (1993), algorithm PTRS; the same, "The generation of binomial random variates" (1993), algorithm BTRS.

use super::incomplete::mass;
use super::mersenne::Mersenne;

/// Means from here on are sampled by rejection.
const LARGE: f64 = 10.0;

/// A Poisson sample for each rate; rates must not be negative.
pub fn poisson(rates: &[f64], out: &mut [f64], source: &mut Mersenne) {
    out.iter_mut().zip(rates).for_each(|(o, rate)| *o = poisson_one(*rate, source));
}

/// Number of successes in `counts[i]` trials with probability `chances[i]`.
pub fn binomial(counts: &[f64], chances: &[f64], out: &mut [f64], source: &mut Mersenne) {
    let trials = counts.iter().zip(chances);
    out.iter_mut().zip(trials).for_each(|(o, (count, chance))| *o = binomial_one(*count, *chance, source));
}

/// Parameters of transformed rejection for a distribution.
struct Hat {
    /// Half the width of the hat, its slope, and its centre.
    b: f64,
    a: f64,
    centre: f64,
    /// Below this the squeeze accepts.
    accept: f64,
}

impl Hat {
    /// Draws until `fits(k, height)`: the candidate is possible, and its mass is at least that high.
    fn draw(&self, s: &mut Mersenne, fits: impl Fn(f64, f64) -> bool) -> f64 {
        loop {
            let (u, v) = (s.unit() - 0.5, s.unit());
            let rest = 0.5 - u.abs();
            let k = ((2.0 * self.a / rest + self.b) * u + self.centre).floor();
            if rest >= 0.07 && v <= self.accept {
                return k;
            }
            if k >= 0.0 && fits(k, v / (self.a / (rest * rest) + self.b)) {
                return k;
            }
        }
    }
}

fn poisson_one(rate: f64, s: &mut Mersenne) -> f64 {
    if !rate.is_finite() || rate == 0.0 {
        return rate;
    }
    if rate < LARGE {
        return products_above((-rate).exp(), s);
    }
    let b = 0.931 + 2.53 * rate.sqrt();
    let hat = Hat { b, a: -0.059 + 0.02483 * b, centre: rate + 0.43, accept: 0.9277 - 3.6224 / (b - 2.0) };
    let height = 1.1239 + 1.1328 / (b - 3.4);
    hat.draw(s, |k, v| v * height <= mass(k, rate))
}

/// How many products of uniform numbers in a row are above `least`, which is at most one.
fn products_above(least: f64, s: &mut Mersenne) -> f64 {
    let (mut product, mut count) = (1.0, 0.0);
    loop {
        product *= s.unit();
        if product <= least {
            return count;
        }
        count += 1.0;
    }
}

fn binomial_one(count: f64, chance: f64, s: &mut Mersenne) -> f64 {
    if count.is_nan() || chance.is_nan() {
        return f64::NAN;
    }
    if count <= 0.0 || chance <= 0.0 {
        return 0.0;
    }
    if chance >= 1.0 || count.is_infinite() {
        return count;
    }
    if chance > 0.5 { count - successes(count.floor(), 1.0 - chance, s) } else { successes(count.floor(), chance, s) }
}

/// Successes in `n` trials with probability `p`, which is at most one half.
fn successes(n: f64, p: f64, s: &mut Mersenne) -> f64 {
    let (q, mean) = (1.0 - p, n * p);
    if mean < LARGE {
        // Waiting times of successes, as long as they fit.
        let failure = (-p).ln_1p();
        let (mut waited, mut count) = (0.0, 0.0);
        loop {
            waited += (s.unit().ln() / failure).ceil();
            if waited > n || waited.is_nan() {
                return count;
            }
            count += 1.0;
        }
    }
    let spread = (mean * q).sqrt();
    let b = 1.15 + 2.53 * spread;
    let hat = Hat { b, a: -0.0873 + 0.0248 * b + 0.01 * p, centre: mean + 0.5, accept: 0.92 - 4.2 / b };
    // C(n, k) p^k q^(n-k) is a product of Poisson masses over the mass of n; the maximum is at the mode.
    let mass_of = |k: f64| mass(k, mean) * mass(n - k, n * q);
    let height = (2.83 + 5.1 / b) * spread * mass_of(((n + 1.0) * p).floor());
    hat.draw(s, |k, v| k <= n && v * height <= mass_of(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Mersenne {
        Mersenne::new(99)
    }
    const N: usize = 200_000;

    /// Mean, variance and third central moment.
    fn moments(v: &[f64]) -> [f64; 3] {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        let central = |p| v.iter().map(|x| (x - mean).powi(p)).sum::<f64>() / v.len() as f64;
        [mean, central(2), central(3)]
    }
    fn check(v: &[f64], [mean, variance, third]: [f64; 3], what: &str) {
        let ([m, s, t], sd) = (moments(v), variance.sqrt());
        assert!((m - mean).abs() < 0.02 * sd && (s / variance - 1.0).abs() < 0.03, "{what}: {m} {s}");
        assert!((t - third).abs() < 0.08 * sd.powi(3), "{what}: third moment {t}, not {third}");
        assert!(v.iter().all(|x| *x >= 0.0 && x.fract() == 0.0), "{what}: counts");
    }
    /// Chi-squared test of the frequencies of each k against the masses, within five standard deviations.
    fn fit(v: &[f64], mass: impl Fn(f64) -> f64, what: &str) {
        let expected: Vec<f64> = (0..200).map(|k| mass(k as f64) * v.len() as f64).collect();
        let mut seen = [0.0; 200];
        v.iter().for_each(|&x| seen[x as usize] += 1.0);
        let terms: Vec<f64> =
            expected.iter().zip(seen).filter(|(e, _)| **e > 20.0).map(|(e, o)| (e - o).powi(2) / e).collect();
        let (total, freedom) = (terms.iter().sum::<f64>(), (terms.len() - 1) as f64);
        assert!(total < freedom + 5.0 * (2.0 * freedom).sqrt(), "{what}: {total} of {freedom}");
    }

    #[test]
    fn poisson_numbers_have_their_distribution() {
        for rate in [0.3, 4.0, 9.99, 10.0, 55.5, 1e4, 1e12] {
            let mut v = vec![0.0; N];
            poisson(&vec![rate; N], &mut v, &mut source());
            check(&v, [rate; 3], &format!("poisson {rate}"));
            if rate < 100.0 {
                fit(&v, |k| mass(k, rate), &format!("poisson {rate}"));
            }
        }
    }

    #[test]
    fn binomial_numbers_have_their_distribution() {
        for (n, p) in [(1.0, 0.5), (7.0, 0.2), (30.0, 0.9), (40.0, 0.5), (100.0, 0.15), (1e6, 0.7), (1e15, 1e-14)] {
            let mut v = vec![0.0; N];
            binomial(&vec![n; N], &vec![p; N], &mut v, &mut source());
            let variance = n * p * (1.0 - p);
            check(&v, [n * p, variance, variance * (1.0 - 2.0 * p)], &format!("binomial {n} {p}"));
            assert!(v.iter().all(|&x| x <= n));
            if n <= 100.0 {
                let mass_of = |k: f64| if k > n { 0.0 } else { mass(k, n * p) * mass(n - k, n - n * p) / mass(n, n) };
                fit(&v, mass_of, &format!("binomial {n} {p}"));
            }
        }
    }
}
