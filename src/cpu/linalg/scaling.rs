//! Powers of two that bring a matrix of huge or tiny numbers into the middle of its type's range.
//!
//! Squares of such numbers overflow or vanish. A factor that is a power of two changes no digit, so what is computed
//! of the scaled matrix is what would have come out, given back by the same power.

use super::mat::{Field, Mat};
use crate::cpu::special::exponent;
use crate::dtype::{DType, Element, Scalar};
use num_complex::ComplexFloat;

/// `x 2^e`, in two steps, since the power alone may not fit.
pub fn shifted<T: Field>(x: T, e: i32) -> T {
    let power = |e: i32| T::of(T::Real::from_scalar(Scalar::Float(2f64.powi(e))));
    x * power(e / 2) * power(e - e / 2)
}

/// The exponent of the largest part, if cubes of such numbers do not fit in the type; zero otherwise.
fn excess<T: Field>(a: &Mat<T>) -> i32 {
    let most = a.data.iter().fold(0.0, |most: f64, x| {
        let x = x.double();
        most.max(x.re().abs()).max(x.im().abs())
    });
    let (e, limit) = (exponent(most) as i32, if T::Real::DTYPE == DType::F64 { 330 } else { 40 });
    if most > 0.0 && most.is_finite() && e.abs() > limit { e } else { 0 }
}

/// Scales a matrix whose numbers are huge or tiny; gives the exponent of the power of two that undoes it.
pub fn balance<T: Field>(a: &mut Mat<T>) -> i32 {
    let e = excess(a);
    if e != 0 {
        a.data.iter_mut().for_each(|x| *x = shifted(*x, -e));
    }
    e
}
