//! Derivatives of gamma and beta samples in their parameters, at a fixed quantile.
//!
//! A sample x is a differentiable function of a parameter a where its cumulative probability F(x; a) stays fixed:
//! `dx/da = -(dF/da) / (dF/dx)`. F is a prefactor, whose logarithm is differentiated by hand and which the density
//! cancels, times a series or a continued fraction (DLMF 8.11.4, 8.9.2, 8.17.22), which is differentiated term by term.
//! For large parameters their asymptotic quantiles are differentiated instead. Sources: M. Figurnov, S. Mohamed and
//! A. Mnih, "Implicit reparameterization gradients" (2018); M. Jankowiak and F. Obermeyer, "Pathwise derivatives beyond
//! the reparameterization trick" (2018).

use super::special::digamma;

/// Gamma shapes from here on use the expansion of the quantile, accurate to `1 / shape^2`.
const LARGE: f64 = 1e4;
/// Beta parameters that both exceed this use the normal approximation.
const NORMAL: f64 = 1e7;
/// Upper bound on the number of terms.
const TERMS: usize = 50_000;

/// A number and its derivative in the parameter.
#[derive(Clone, Copy)]
struct Dual(f64, f64);

impl Dual {
    fn mul(self, o: Dual) -> Dual {
        Dual(self.0 * o.0, self.1 * o.0 + self.0 * o.1)
    }
    fn add(self, o: Dual) -> Dual {
        Dual(self.0 + o.0, self.1 + o.1)
    }
    fn reciprocal(self) -> Dual {
        let r = 1.0 / self.0;
        Dual(r, -self.1 * r * r)
    }
}

/// The continued fraction `1 / (b0 + a1 / (b1 + a2 / (b2 + ..)))`: Lentz's algorithm. `steps` gives a and b from a1, b1 on.
fn fraction(b0: Dual, steps: impl Fn(usize) -> (Dual, Dual)) -> Dual {
    let mut d = b0.reciprocal();
    let (mut c, mut h) = (Dual(1e300, 0.0), d);
    for k in 1..TERMS {
        let (a, b) = steps(k);
        d = a.mul(d).add(b).reciprocal();
        c = a.mul(c.reciprocal()).add(b);
        let factor = c.mul(d);
        h = h.mul(factor);
        if (factor.0 - 1.0).abs() < 1e-15 && factor.1.abs() <= 1e-15 * (1.0 + (h.1 / h.0).abs()) {
            break;
        }
    }
    h
}

/// The derivative of a gamma sample `x` of unit rate in its shape.
pub fn gamma_slope(shape: f64, x: f64) -> f64 {
    if shape.is_nan() || x.is_nan() || shape <= 0.0 || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 || x.is_infinite() {
        return x;
    }
    if shape > LARGE {
        return large_gamma_slope(shape, x);
    }
    if x < shape + 1.0 {
        // The lower function is `x^a exp(-x) / gamma(a + 1)` times a sum.
        let (mut term, mut sum, mut slope, mut harmonic) = (1.0, 1.0, 0.0, 0.0);
        for k in 1..TERMS {
            let at = shape + k as f64;
            term *= x / at;
            harmonic += 1.0 / at;
            sum += term;
            slope += term * harmonic;
            if term * harmonic < slope * 1e-17 {
                break;
            }
        }
        return x / shape * (slope + sum * (digamma(shape + 1.0) - x.ln()));
    }
    // The upper function is `x^a exp(-x) / gamma(a)` times a continued fraction.
    let h = fraction(Dual(x + 1.0 - shape, -1.0), |k| {
        let k = k as f64;
        (Dual(k * (shape - k), k), Dual(x + 1.0 - shape + 2.0 * k, -1.0))
    });
    x * (h.1 + h.0 * (x.ln() - digamma(shape)))
}

/// Cornish and Fisher's expansion, `x = a + z sqrt(a) + (z^2 - 1) / 3 + (z^3 - 7 z) / (36 sqrt(a))`, at fixed z.
fn large_gamma_slope(shape: f64, x: f64) -> f64 {
    let root = shape.sqrt();
    let mut z = (x - shape) / root;
    for _ in 0..8 {
        let excess = shape + z * root + (z * z - 1.0) / 3.0 + (z * z * z - 7.0 * z) / (36.0 * root) - x;
        z -= excess / (root + 2.0 * z / 3.0 + (3.0 * z * z - 7.0) / (36.0 * root));
    }
    1.0 + z / (2.0 * root) - (z * z * z - 7.0 * z) / (72.0 * root * shape)
}

/// For a coordinate `x` of a Dirichlet sample: the derivative of a beta sample `x` of `alpha` and `total - alpha` in
/// `alpha`, divided by `1 - x`. A change of the coordinate's concentration moves the others in proportion.
pub fn dirichlet_slope(x: f64, alpha: f64, total: f64) -> f64 {
    let beta = total - alpha;
    if [x, alpha, total].iter().any(|v| v.is_nan()) || alpha <= 0.0 || beta <= 0.0 || !(0.0..=1.0).contains(&x) {
        return f64::NAN;
    }
    if x == 0.0 || total.is_infinite() {
        return 0.0;
    }
    // At one, `y` is the largest number that the sample's rounding may have lost.
    let y = (1.0 - x).max(f64::MIN_POSITIVE);
    if alpha.min(beta) > NORMAL {
        let spread = (alpha * beta / (total + 1.0)).sqrt() / total;
        let z = (x - alpha / total) / spread;
        let slope = beta / (total * total) + z * spread * (0.5 / alpha - 1.0 / total - 0.5 / (total + 1.0));
        return slope / y;
    }
    if x < (alpha + 1.0) / (total + 2.0) {
        // `x^a y^b / (a B(a, b))` times a fraction, differentiated in a.
        let f = beta_fraction(Dual(alpha, 1.0), Dual(beta, 0.0), x);
        return -x * (f.1 + f.0 * (x.ln() - digamma(alpha + 1.0) + digamma(total))) / alpha;
    }
    // The complement, differentiated in its second parameter.
    let f = beta_fraction(Dual(beta, 0.0), Dual(alpha, 1.0), y);
    x * (f.1 + f.0 * ((-y).ln_1p() - digamma(alpha) + digamma(total))) / beta
}

/// The fraction of the incomplete beta function, of `x` below the mean of its distribution.
fn beta_fraction(a: Dual, b: Dual, x: f64) -> Dual {
    let times = |d: Dual, f: f64| Dual(d.0 * f, d.1 * f);
    let over = |n: Dual, p: Dual, q: Dual| n.mul(p.mul(q).reciprocal());
    let plus = |d: Dual, k: f64| Dual(d.0 + k, d.1);
    fraction(Dual(1.0, 0.0), |k| {
        let m = (k / 2) as f64;
        let even = plus(a, 2.0 * m);
        let coefficient = if k % 2 == 0 {
            over(times(plus(times(b, 1.0), -m), m * x), plus(even, -1.0), even)
        } else {
            over(times(plus(a, m).mul(plus(a.add(b), m)), -x), even, plus(even, 1.0))
        };
        (coefficient, Dual(1.0, 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::incomplete::{lower, upper};

    /// By differences of the incomplete gamma function, on the side where it is small.
    #[test]
    fn gamma_slopes_are_those_of_the_quantile() {
        for (a, x) in
            [(0.1, 1e-4), (0.1, 2.0), (1.0, 0.5), (2.0, 9.0), (30.0, 20.0), (30.0, 45.0), (3e3, 3.1e3), (2e4, 2.03e4)]
        {
            let side = if x < a { lower } else { upper };
            let (h, k) = (1e-5 * a, 1e-5 * x);
            let slope = -(side(a + h, x) - side(a - h, x)) / (side(a, x + k) - side(a, x - k)) * k / h;
            let got = gamma_slope(a, x);
            assert!((got / slope - 1.0).abs() < 1e-6, "{a} {x}: {got}, not {slope}");
        }
        assert!(gamma_slope(-1.0, 1.0).is_nan() && gamma_slope(1.0, f64::NAN).is_nan());
        // An exponential number: x = -log(1 - u).
        assert_eq!(gamma_slope(2.0, 0.0), 0.0);
    }

    /// For `beta` one the sample is `u^(1 / alpha)`, for `alpha` one `1 - (1 - u)^(1 / beta)`.
    #[test]
    fn beta_slopes_have_closed_forms() {
        for x in [1e-6, 0.1, 0.5, 0.9, 0.999] {
            for alpha in [0.01, 0.7, 1.0, 5.0, 300.0] {
                let (want, got) = (-x * f64::ln(x) / alpha / (1.0 - x), dirichlet_slope(x, alpha, alpha + 1.0));
                assert!((got / want - 1.0).abs() < 1e-9, "{x} {alpha}: {got}, not {want}");
            }
        }
        // One large concentration is a gamma sample in units of its total.
        let (a, b) = (2.0, 1e7);
        for g in [0.1, 1.5, 4.0, 15.0] {
            let want = gamma_slope(a, g) / b;
            let got = dirichlet_slope(g / b, a, a + b);
            assert!((got / want - 1.0).abs() < 1e-5, "{g}: {got}, not {want}");
        }
        let near = |t: f64| dirichlet_slope(0.4003, 0.4 * t, t) * t;
        assert!((near(2.4e7) / near(2.6e7) - 1.0).abs() < 1e-3);
    }
}
