//! A number outside any tensor: a Python `bool`, `int`, `float` or `complex` in a call.

use super::{Category, Complex, DType, c128};
use crate::error::{Error, Result};

/// A number outside any tensor. Integers have 64 bits; `UInt` holds those that only uint64 can.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Complex(f64, f64),
}

impl Scalar {
    pub fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) | Scalar::UInt(_) => Category::Int,
            Scalar::Float(_) => Category::Float,
            Scalar::Complex(..) => Category::Complex,
        }
    }
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::UInt(u) => u as f64,
            Scalar::Float(f) => f,
            Scalar::Complex(re, _) => re,
        }
    }
    /// Truncates towards zero; NaN and out-of-range floats become `i64::MIN`, as x86 conversion does in PyTorch.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::UInt(u) => u as i64,
            Scalar::Float(f) | Scalar::Complex(f, _) => {
                if (i64::MIN as f64..-(i64::MIN as f64)).contains(&f) {
                    f as i64
                } else {
                    i64::MIN
                }
            }
        }
    }
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::UInt(u) => u != 0,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }
    pub fn to_c128(self) -> c128 {
        match self {
            Scalar::Complex(re, im) => Complex::new(re, im),
            s => Complex::new(s.to_f64(), 0.0),
        }
    }
    /// Whether the dtype can hold the number. As in PyTorch, infinities fit floats, fractions are truncated, and
    /// negative integers wrap in an unsigned dtype if their magnitude fits.
    pub fn fits(self, d: DType) -> bool {
        match self {
            Scalar::Complex(..) if d == DType::Bool => true,
            Scalar::Complex(re, im) if d.is_complex() => Scalar::Float(re).fits(d) && Scalar::Float(im).fits(d),
            Scalar::Complex(re, im) => im == 0.0 && Scalar::Float(re).fits(d),
            _ if d == DType::Bool => true,
            Scalar::Float(f) if d.is_int() => {
                let (low, high) = d.int_range();
                (low as f64..(high + 1) as f64).contains(&f)
            }
            _ if d.is_int() => {
                let (low, high) = d.int_range();
                let low = if d.is_signed() { low } else { -high };
                (low..=high).contains(&if let Scalar::UInt(u) = self {
                    i128::from(u)
                } else {
                    i128::from(self.to_i64())
                })
            }
            _ => {
                let size = self.to_f64().abs();
                !size.is_finite() || size <= d.greatest_float()
            }
        }
    }
    /// An error if the dtype cannot hold the number.
    pub fn check_fits(self, d: DType) -> Result<()> {
        if self.fits(d) {
            return Ok(());
        }
        Err(Error::runtime(format!("value cannot be converted to type {} without overflow", d.c10_name())))
    }
    /// Whether the number equals one, in any kind: `alpha=1` then takes the simple path.
    pub fn is_one(self) -> bool {
        self.to_c128() == Complex::new(1.0, 0.0)
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Scalar::Bool(b) => f.write_str(if b { "True" } else { "False" }),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::UInt(u) => write!(f, "{u}"),
            Scalar::Float(x) => write!(f, "{x}"),
            Scalar::Complex(re, im) => write!(f, "({re}{im:+}j)"),
        }
    }
}

impl From<bool> for Scalar {
    fn from(b: bool) -> Scalar {
        Scalar::Bool(b)
    }
}
impl From<i64> for Scalar {
    fn from(i: i64) -> Scalar {
        Scalar::Int(i)
    }
}
impl From<f64> for Scalar {
    fn from(f: f64) -> Scalar {
        Scalar::Float(f)
    }
}
