//! A bool in memory: a byte, true unless it is zero.
//!
//! Rust's bool may only be 0 or 1. Foreign memory (a view of bytes, an array, a file) may hold any byte, so kernels
//! read elements of this type.

use super::{DType, Element, Scalar};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Truth(u8);

impl Truth {
    #[inline(always)]
    pub fn of(x: bool) -> Truth {
        Truth(x as u8)
    }
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl Element for Truth {
    const DTYPE: DType = DType::Bool;
    fn from_scalar(s: Scalar) -> Truth {
        Truth::of(s.to_bool())
    }
    fn to_scalar(self) -> Scalar {
        Scalar::Bool(self.get())
    }
}

impl PartialEq for Truth {
    #[inline(always)]
    fn eq(&self, o: &Truth) -> bool {
        self.get() == o.get()
    }
}
impl PartialOrd for Truth {
    #[inline(always)]
    fn partial_cmp(&self, o: &Truth) -> Option<Ordering> {
        self.get().partial_cmp(&o.get())
    }
    // Direct comparisons vectorise; `partial_cmp` does not.
    #[inline(always)]
    fn lt(&self, o: &Truth) -> bool {
        !self.get() & o.get()
    }
    #[inline(always)]
    fn le(&self, o: &Truth) -> bool {
        !self.get() | o.get()
    }
    #[inline(always)]
    fn gt(&self, o: &Truth) -> bool {
        self.get() & !o.get()
    }
    #[inline(always)]
    fn ge(&self, o: &Truth) -> bool {
        self.get() | !o.get()
    }
}
