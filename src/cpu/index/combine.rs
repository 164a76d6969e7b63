//! How a scatter combines the existing element with the new one.
//!
//! Numbers are combined in the widest type of their kind: for f32 and narrower floats, one addition or multiplication
//! in f64 rounds to what the narrow type gives, so one rule serves all.

use crate::cpu::arith::{greater, lesser};
use crate::dtype::{DType, Element, Scalar, c64, c128};
use crate::kinds::ScatterMode;

impl ScatterMode {
    /// The value that leaves any other unchanged.
    pub(super) fn identity(self, dtype: DType) -> Scalar {
        let (low, high) = match dtype {
            DType::Bool => (0, 1),
            DType::U8 => (0, u8::MAX as i64),
            DType::I8 => (i8::MIN as i64, i8::MAX as i64),
            DType::I16 => (i16::MIN as i64, i16::MAX as i64),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            _ => (i64::MIN, i64::MAX),
        };
        match self {
            ScatterMode::Mul => Scalar::Int(1),
            ScatterMode::Max if dtype.is_differentiable() => Scalar::Float(f64::NEG_INFINITY),
            ScatterMode::Min if dtype.is_differentiable() => Scalar::Float(f64::INFINITY),
            ScatterMode::Max => Scalar::Int(low),
            ScatterMode::Min => Scalar::Int(high),
            _ => Scalar::Int(0),
        }
    }
}

/// A mode as a type, so that loops are compiled for it.
pub(super) trait Combine: Copy + Sync {
    fn real(self, a: f64, b: f64) -> f64;
    fn int(self, a: i64, b: i64) -> i64;
    fn complex(self, a: c128, b: c128) -> c128;
    /// The same of two complex64, which the elementwise ops round at each step.
    #[inline(always)]
    fn single(self, a: c64, b: c64) -> c64 {
        let z = self.complex(c128::new(a.re.into(), a.im.into()), c128::new(b.re.into(), b.im.into()));
        c64::new(z.re as f32, z.im as f32)
    }
    /// Combines two elements; bools are the integers 0 and 1.
    #[inline(always)]
    fn combine<T: Element>(self, a: T, b: T) -> T {
        T::from_scalar(match (a.to_scalar(), b.to_scalar()) {
            (Scalar::Float(x), Scalar::Float(y)) => Scalar::Float(self.real(x, y)),
            (Scalar::Complex(..), _) => {
                let (a, b) = (a.to_scalar().to_c128(), b.to_scalar().to_c128());
                if T::DTYPE != DType::C128 {
                    let z = self.single(c64::new(a.re as f32, a.im as f32), c64::new(b.re as f32, b.im as f32));
                    Scalar::Complex(z.re.into(), z.im.into())
                } else {
                    let z = self.complex(a, b);
                    Scalar::Complex(z.re, z.im)
                }
            }
            (x, y) => Scalar::Int(self.int(x.to_i64(), y.to_i64())),
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Add;
impl Combine for Add {
    #[inline(always)]
    fn real(self, a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline(always)]
    fn int(self, a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn complex(self, a: c128, b: c128) -> c128 {
        a + b
    }
}

/// Adds a multiple.
#[derive(Clone, Copy)]
pub(super) struct AddScaled(pub Scalar);
impl Combine for AddScaled {
    #[inline(always)]
    fn real(self, a: f64, b: f64) -> f64 {
        a + self.0.to_f64() * b
    }
    #[inline(always)]
    fn int(self, a: i64, b: i64) -> i64 {
        a.wrapping_add(b.wrapping_mul(self.0.to_i64()))
    }
    #[inline(always)]
    fn complex(self, a: c128, b: c128) -> c128 {
        a + self.0.to_c128() * b
    }
}

#[derive(Clone, Copy)]
pub(super) struct Mul;
impl Combine for Mul {
    #[inline(always)]
    fn real(self, a: f64, b: f64) -> f64 {
        a * b
    }
    #[inline(always)]
    fn int(self, a: i64, b: i64) -> i64 {
        a.wrapping_mul(b)
    }
    #[inline(always)]
    fn complex(self, a: c128, b: c128) -> c128 {
        a * b
    }
    #[inline(always)]
    fn single(self, a: c64, b: c64) -> c64 {
        a * b
    }
}

#[derive(Clone, Copy)]
pub(super) struct Max;
impl Combine for Max {
    #[inline(always)]
    fn real(self, a: f64, b: f64) -> f64 {
        greater(a, b)
    }
    #[inline(always)]
    fn int(self, a: i64, b: i64) -> i64 {
        a.max(b)
    }
    fn complex(self, a: c128, _: c128) -> c128 {
        a
    }
}

#[derive(Clone, Copy)]
pub(super) struct Min;
impl Combine for Min {
    #[inline(always)]
    fn real(self, a: f64, b: f64) -> f64 {
        lesser(a, b)
    }
    #[inline(always)]
    fn int(self, a: i64, b: i64) -> i64 {
        a.min(b)
    }
    fn complex(self, a: c128, _: c128) -> c128 {
        a
    }
}

/// The new element replaces the old.
#[derive(Clone, Copy)]
pub(super) struct Set;
impl Combine for Set {
    fn real(self, _: f64, b: f64) -> f64 {
        b
    }
    fn int(self, _: i64, b: i64) -> i64 {
        b
    }
    fn complex(self, _: c128, b: c128) -> c128 {
        b
    }
    #[inline(always)]
    fn combine<T: Element>(self, _: T, b: T) -> T {
        b
    }
}
