//! f16 and bf16 to f32 and back, branch-free, so that loops of casts vectorise on every instruction set.
//!
//! To f32: the bits of the half, shifted into place, read as a float 2^112 too small; one multiplication corrects
//! normal and subnormal numbers alike. From f32: rounding to nearest even, for subnormal results by an addition that
//! makes the hardware round at the right bit, for normal ones in integers.

#[inline(always)]
pub fn half_to_f32(h: u16) -> f32 {
    let magnitude = ((h & 0x7fff) as u32) << 13;
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    // Infinity and NaN: the exponent of all ones.
    let bits = scaled.to_bits() | if magnitude >= 0x7c00 << 13 { 0xff << 23 } else { 0 };
    f32::from_bits(bits | ((h & 0x8000) as u32) << 16)
}

#[inline(always)]
pub fn f32_to_half(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Subnormal results: adding one half aligns the last kept bit with the last bit of the sum.
    let magic = f32::from_bits(0x3f00_0000);
    let small = (f32::from_bits(magnitude) + magic).to_bits().wrapping_sub(0x3f00_0000);
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    // From 65520 on it rounds to infinity; a NaN stays one.
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    (sign | if magnitude >= 0x477f_f000 { special } else { finite }) as u16
}

#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{bf16, f16};

    #[test]
    fn every_half_is_read_as_it_is() {
        for h in 0..=u16::MAX {
            let (mine, theirs) = (half_to_f32(h), f16::from_bits(h).to_f32());
            assert!(mine.to_bits() == theirs.to_bits() || (mine.is_nan() && theirs.is_nan()), "{h:#x}");
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        // Every half, every midpoint between neighbours and the floats next to both, and a sweep over all exponents.
        for i in 0..1u32 << 22 {
            let x = f32::from_bits(i << 10);
            for x in [x, x.next_up(), x.next_down(), -x] {
                let (h, b) = (f32_to_half(x), f32_to_bf16(x));
                if x.is_nan() {
                    assert!(f16::from_bits(h).is_nan() && bf16::from_bits(b).is_nan());
                    continue;
                }
                assert_eq!(h, f16::from_f32_const(x).to_bits(), "{x:e}");
                assert_eq!(b, bf16::from_f32_const(x).to_bits(), "{x:e}");
            }
        }
    }
}
