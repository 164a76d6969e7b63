//! The matrix exponential by scaling, a Padé approximant of degree 13, and squaring.
//!
//! Source: N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

use super::factor::solve_square;
use super::mat::{Double, Mat};
use crate::error::Result;

/// Coefficients of the approximant, and the norm up to which it is accurate in double precision.
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];
const LARGEST: f64 = 5.371920351148152;

pub fn exponential<T: Double>(a: &Mat<T>) -> Result<Mat<T>> {
    let n = a.rows;
    let norm =
        (0..n).map(|j| (0..n).map(|i| num_complex::ComplexFloat::abs(a[(i, j)])).sum::<f64>()).fold(0.0, f64::max);
    if !a.is_finite() {
        return Ok(a.map(|_| T::of(f64::NAN)));
    }
    let squarings = if norm > LARGEST { (norm / LARGEST).log2().ceil() as i32 } else { 0 };
    let a = a.map(|x| x * T::of(0.5f64.powi(squarings)));
    let a2 = a.product(&a)?;
    let (a4, one) = (a2.product(&a2)?, Mat::<T>::identity(n, n));
    let a6 = a4.product(&a2)?;
    // The even powers of half of the approximant, from coefficient `at` on.
    let even = |at: usize| -> Result<Mat<T>> {
        let c = |k: usize| T::of(PADE[at + k]);
        let high = Mat::from_fn(n, n, |i, j| c(12) * a6[(i, j)] + c(10) * a4[(i, j)] + c(8) * a2[(i, j)]);
        let high = a6.product(&high)?;
        Ok(Mat::from_fn(n, n, |i, j| {
            high[(i, j)] + c(6) * a6[(i, j)] + c(4) * a4[(i, j)] + c(2) * a2[(i, j)] + c(0) * one[(i, j)]
        }))
    };
    let (u, v) = (a.product(&even(1)?)?, even(0)?);
    let mut below = Mat::from_fn(n, n, |i, j| v[(i, j)] - u[(i, j)]);
    let mut result = Mat::from_fn(n, n, |i, j| v[(i, j)] + u[(i, j)]);
    solve_square(&mut below, &mut result)?;
    for _ in 0..squarings {
        result = result.product(&result)?;
    }
    Ok(result)
}
