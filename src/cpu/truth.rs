//! Bools as numbers of the classes `Num`, `Ordered` and `Bits`: results are 0 or 1, for any input bytes.

use super::number_class::{Bits, Num, Ordered};
use crate::dtype::Truth;
use std::ops::{Add, Mul, Neg, Sub};

impl Add for Truth {
    type Output = Truth;
    #[inline(always)]
    fn add(self, o: Truth) -> Truth {
        self.or(o)
    }
}
impl Sub for Truth {
    type Output = Truth;
    #[inline(always)]
    fn sub(self, o: Truth) -> Truth {
        self.xor(o)
    }
}
impl Mul for Truth {
    type Output = Truth;
    #[inline(always)]
    fn mul(self, o: Truth) -> Truth {
        self.and(o)
    }
}
impl Neg for Truth {
    type Output = Truth;
    #[inline(always)]
    fn neg(self) -> Truth {
        Truth::of(self.get())
    }
}
impl Num for Truth {
    #[inline(always)]
    fn from_f64(x: f64) -> Truth {
        Truth::of(x as i64 != 0)
    }
}
impl Ordered for Truth {
    #[inline(always)]
    fn abs(self) -> Truth {
        Truth::of(self.get())
    }
}
impl Bits for Truth {
    #[inline(always)]
    fn and(self, o: Truth) -> Truth {
        Truth::of(self.get() & o.get())
    }
    #[inline(always)]
    fn or(self, o: Truth) -> Truth {
        Truth::of(self.get() | o.get())
    }
    #[inline(always)]
    fn xor(self, o: Truth) -> Truth {
        Truth::of(self.get() ^ o.get())
    }
    #[inline(always)]
    fn not(self) -> Truth {
        Truth::of(!self.get())
    }
}
