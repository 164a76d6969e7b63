//! Gamma and Dirichlet samples, one after the other from one sequence: their number of words depends on chance. They are
//! PyTorch's for a seed.
//!
//! Source: G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000). A shape
//! below one is raised by one and the sample multiplied by `u^(1 / shape)`, in logarithms: Dirichlet samples of small
//! concentrations would all underflow otherwise.

use super::mersenne::Mersenne;

/// Gamma samples of these shapes and unit rate.
pub fn gamma(shapes: &[f64], out: &mut [f64], source: &mut Mersenne) {
    out.iter_mut().zip(shapes).for_each(|(o, shape)| *o = log_gamma_one(*shape, source).exp());
}

/// Samples of the Dirichlet distributions whose concentrations are the rows of length `n`.
pub fn dirichlet(concentrations: &[f64], n: usize, out: &mut [f64], source: &mut Mersenne) {
    out.iter_mut().zip(concentrations).for_each(|(o, shape)| *o = log_gamma_one(*shape, source));
    for row in out.chunks_mut(n.max(1)) {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|x| *x = (*x - most).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
}

/// The logarithm of a sample; NaN for a shape that is negative or NaN.
fn log_gamma_one(shape: f64, s: &mut Mersenne) -> f64 {
    if shape.is_nan() || shape < 0.0 {
        return f64::NAN;
    }
    if shape == 0.0 || shape.is_infinite() {
        return shape.ln();
    }
    if shape < 1.0 {
        // One minus the uniform number is not zero.
        let boost = (1.0 - s.unit()).ln() / shape;
        return boost + log_gamma_one(shape + 1.0, s);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = s.normal();
        let root = 1.0 + c * normal;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let log_v = 3.0 * root.ln();
        if (1.0 - s.unit()).ln() < 0.5 * normal * normal + d * (1.0 - v + log_v) {
            return d.ln() + log_v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_samples_have_their_moments() {
        for shape in [0.05, 0.5, 1.0, 2.5, 30.0, 1e4] {
            let n = 100_000;
            let (shapes, mut out) = (vec![shape; n], vec![0.0; n]);
            gamma(&shapes, &mut out, &mut Mersenne::new(7));
            let mean = out.iter().sum::<f64>() / n as f64;
            let variance = out.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
            // Five standard errors of the mean, and of the variance with excess kurtosis `6 / shape`.
            let (of_mean, of_variance) = ((shape / n as f64).sqrt(), shape * ((2.0 + 6.0 / shape) / n as f64).sqrt());
            assert!((mean - shape).abs() < 5.0 * of_mean, "{shape}: {mean}");
            assert!((variance - shape).abs() < 5.0 * of_variance, "{shape}: {variance}");
        }
    }

    #[test]
    fn edges_and_rows() {
        let mut out = [1.0; 4];
        gamma(&[0.0, f64::INFINITY, -1.0, f64::NAN], &mut out, &mut Mersenne::new(7));
        assert!(out[0] == 0.0 && out[1] == f64::INFINITY && out[2].is_nan() && out[3].is_nan());
        let mut rows = vec![0.0; 3 * 1000];
        dirichlet(&vec![1e-3; 3 * 1000], 3, &mut rows, &mut Mersenne::new(7));
        assert!(rows.chunks(3).all(|r| (r.iter().sum::<f64>() - 1.0).abs() < 1e-12));
    }
}
