//! The cast of one element, for every pair of dtypes.
//!
//! Each element type converts to one of five pivot types and from any of them; the compiler fuses the two steps.
//! Everything is branch-free, so that loops of casts (`convert.rs`) vectorise.

use super::half_float::{f32_to_bf16, f32_to_half, half_to_f32};
use crate::dtype::{Complex, Float8, Truth, bf16, c32, c64, c128, f16};

/// Casts one element.
#[inline(always)]
pub fn cast<S: Cast<Raw = S>, D: Cast>(x: S) -> D {
    D::down(S::up(x))
}

/// The intermediate type of a cast.
pub trait Pivot: Copy {
    fn i32(self) -> i32;
    fn i64(self) -> i64;
    fn u64(self) -> u64;
    fn f32(self) -> f32;
    fn f64(self) -> f64;
    fn truth(self) -> bool;
    #[inline(always)]
    fn im(self) -> f64 {
        0.0
    }
}

/// An element type as source and target of casts.
pub trait Cast: Copy + 'static {
    /// The type to read memory as: bytes for bool, since foreign memory may hold any value.
    type Raw: Copy;
    type Pivot: Pivot;
    /// Whether loops of casts gain by wider instructions.
    const WIDENS: bool = true;
    fn up(x: Self::Raw) -> Self::Pivot;
    fn down<P: Pivot>(p: P) -> Self;
}

/// Truncates; out of range and NaN give the smallest value. `as` would saturate, at three times the cost.
#[inline(always)]
fn truncate_32(x: f32) -> i32 {
    // SAFETY: converted only where it is in range.
    if (-2147483648.0..2147483648.0).contains(&x) { unsafe { x.to_int_unchecked() } } else { i32::MIN }
}
#[inline(always)]
fn truncate_64(x: f64) -> i64 {
    let fits = (-9223372036854775808.0..9223372036854775808.0).contains(&x);
    // SAFETY: converted only where it is in range.
    if fits { unsafe { x.to_int_unchecked() } } else { i64::MIN }
}
#[inline(always)]
fn truncate_f64_32(x: f64) -> i32 {
    // SAFETY: converted only where it is in range.
    if x > -2147483649.0 && x < 2147483648.0 { unsafe { x.to_int_unchecked() } } else { i32::MIN }
}
/// As x86 compilers do: the upper half of the range by subtracting 2^63 first.
#[inline(always)]
fn truncate_u64(x: f64) -> u64 {
    if x >= 9223372036854775808.0 {
        (truncate_64(x - 9223372036854775808.0) as u64) ^ (1 << 63)
    } else {
        truncate_64(x) as u64
    }
}

impl Pivot for i64 {
    #[inline(always)]
    fn i32(self) -> i32 {
        self as i32
    }
    #[inline(always)]
    fn i64(self) -> i64 {
        self
    }
    #[inline(always)]
    fn u64(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn f32(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self != 0
    }
}
impl Pivot for u64 {
    #[inline(always)]
    fn i32(self) -> i32 {
        self as i32
    }
    #[inline(always)]
    fn i64(self) -> i64 {
        self as i64
    }
    #[inline(always)]
    fn u64(self) -> u64 {
        self
    }
    #[inline(always)]
    fn f32(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self != 0
    }
}
impl Pivot for f32 {
    #[inline(always)]
    fn i32(self) -> i32 {
        truncate_32(self)
    }
    #[inline(always)]
    fn i64(self) -> i64 {
        truncate_64(self as f64)
    }
    #[inline(always)]
    fn u64(self) -> u64 {
        truncate_u64(self as f64)
    }
    #[inline(always)]
    fn f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self != 0.0
    }
}
impl Pivot for f64 {
    #[inline(always)]
    fn i32(self) -> i32 {
        truncate_f64_32(self)
    }
    #[inline(always)]
    fn i64(self) -> i64 {
        truncate_64(self)
    }
    #[inline(always)]
    fn u64(self) -> u64 {
        truncate_u64(self)
    }
    #[inline(always)]
    fn f32(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self != 0.0
    }
}
impl Pivot for c128 {
    #[inline(always)]
    fn i32(self) -> i32 {
        self.re.i32()
    }
    #[inline(always)]
    fn i64(self) -> i64 {
        self.re.i64()
    }
    #[inline(always)]
    fn u64(self) -> u64 {
        self.re.u64()
    }
    #[inline(always)]
    fn f32(self) -> f32 {
        self.re as f32
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        self.re
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self.re != 0.0 || self.im != 0.0
    }
    #[inline(always)]
    fn im(self) -> f64 {
        self.im
    }
}

impl Cast for Truth {
    type Raw = Truth;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: Truth) -> i64 {
        x.get() as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> Truth {
        Truth::of(p.truth())
    }
}
impl Cast for u8 {
    type Raw = u8;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: u8) -> i64 {
        x as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> u8 {
        p.i32() as u8
    }
}
impl Cast for i8 {
    type Raw = i8;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: i8) -> i64 {
        x as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> i8 {
        p.i32() as i8
    }
}
impl Cast for i16 {
    type Raw = i16;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: i16) -> i64 {
        x as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> i16 {
        p.i32() as i16
    }
}
impl Cast for i32 {
    type Raw = i32;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: i32) -> i64 {
        x as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> i32 {
        p.i32()
    }
}
impl Cast for i64 {
    type Raw = i64;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: i64) -> i64 {
        x
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> i64 {
        p.i64()
    }
}
impl Cast for u16 {
    type Raw = u16;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: u16) -> i64 {
        x as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> u16 {
        p.i32() as u16
    }
}
impl Cast for u32 {
    type Raw = u32;
    type Pivot = i64;
    #[inline(always)]
    fn up(x: u32) -> i64 {
        x as i64
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> u32 {
        p.i64() as u32
    }
}
impl Cast for u64 {
    type Raw = u64;
    type Pivot = u64;
    #[inline(always)]
    fn up(x: u64) -> u64 {
        x
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> u64 {
        p.u64()
    }
}
impl Cast for f16 {
    type Raw = f16;
    type Pivot = f32;
    #[inline(always)]
    fn up(x: f16) -> f32 {
        half_to_f32(x.to_bits())
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> f16 {
        f16::from_bits(f32_to_half(p.f32()))
    }
}
impl Cast for bf16 {
    type Raw = bf16;
    type Pivot = f32;
    #[inline(always)]
    fn up(x: bf16) -> f32 {
        f32::from_bits((x.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> bf16 {
        bf16::from_bits(f32_to_bf16(p.f32()))
    }
}
impl<const KIND: usize> Cast for Float8<KIND> {
    type Raw = Self;
    type Pivot = f32;
    const WIDENS: bool = false;
    #[inline(always)]
    fn up(x: Self) -> f32 {
        x.to_f32()
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> Self {
        Float8::from_f32(p.f32())
    }
}
impl Cast for f32 {
    type Raw = f32;
    type Pivot = f32;
    #[inline(always)]
    fn up(x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> f32 {
        p.f32()
    }
}
impl Cast for f64 {
    type Raw = f64;
    type Pivot = f64;
    #[inline(always)]
    fn up(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> f64 {
        p.f64()
    }
}
impl Cast for c32 {
    type Raw = c32;
    type Pivot = c128;
    #[inline(always)]
    fn up(x: c32) -> c128 {
        Complex::new(f16::up(x.re) as f64, f16::up(x.im) as f64)
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> c32 {
        Complex::new(f16::down(p.f32()), f16::down(p.im() as f32))
    }
}
impl Cast for c64 {
    type Raw = c64;
    type Pivot = c128;
    #[inline(always)]
    fn up(x: c64) -> c128 {
        Complex::new(x.re as f64, x.im as f64)
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> c64 {
        Complex::new(p.f32(), p.im() as f32)
    }
}
impl Cast for c128 {
    type Raw = c128;
    type Pivot = c128;
    #[inline(always)]
    fn up(x: c128) -> c128 {
        x
    }
    #[inline(always)]
    fn down<P: Pivot>(p: P) -> c128 {
        Complex::new(p.f64(), p.im())
    }
}
