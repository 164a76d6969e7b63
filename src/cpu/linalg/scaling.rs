//! Scaling of matrices with huge or tiny numbers to the middle of their type's range, by powers of two.
//!
//! Squares of such numbers overflow or underflow. A factor that is a power of two changes no digit, so the result for
//! the scaled matrix, scaled back by the same power, is exact.

use super::mat::{Field, Mat};
use crate::cpu::lanes::merged;
use crate::cpu::special::exponent;
use crate::dtype::{DType, Element, Scalar};
use num_complex::ComplexFloat;

/// Numbers compared at once.
const LANES: usize = 16;

/// `x 2^e`, in two steps, since the power alone may overflow.
pub fn shifted<T: Field>(x: T, e: i32) -> T {
    let power = |e: i32| T::of(T::Real::from_scalar(Scalar::Float(2f64.powi(e))));
    x * power(e / 2) * power(e - e / 2)
}

/// The exponent of the largest component, if cubes of such numbers overflow or underflow; zero otherwise.
fn excess<T: Field>(a: &Mat<T>) -> i32 {
    let zero = T::Real::default();
    let mut most = [zero; LANES];
    for chunk in a.data.chunks(LANES) {
        for (most, x) in most.iter_mut().zip(chunk) {
            for part in [x.re(), x.im(), zero - x.re(), zero - x.im()] {
                *most = if part > *most { part } else { *most };
            }
        }
    }
    let most = merged(most, |a, b| if b > a { b } else { a });
    let most = T::of(most).double().re();
    let (e, limit) = (exponent(most) as i32, if T::Real::DTYPE == DType::F64 { 330 } else { 40 });
    if most > 0.0 && most.is_finite() && e.abs() > limit { e } else { 0 }
}

/// Scales a matrix of huge or tiny numbers; returns the exponent of the power of two that undoes it.
pub fn balance<T: Field>(a: &mut Mat<T>) -> i32 {
    let e = excess(a);
    if e != 0 {
        a.data.iter_mut().for_each(|x| *x = shifted(*x, -e));
    }
    e
}
