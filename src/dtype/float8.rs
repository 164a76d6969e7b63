//! Floats of eight bits: stored, moved, cast and printed; what computes with them does so in float32, as for halves.
//!
//! The formats are those of the Open Compute Project ("OCP 8-bit Floating Point Specification" and "OCP Microscaling Formats") and,
//! with `fnuz` in their names, of Noune et al., "8-bit Numerical Formats for Deep Neural Networks" (2022).

/// What the codes beyond the largest number mean.
#[derive(Clone, Copy, PartialEq)]
enum Top {
    /// The last exponent holds infinity and NaN, as in IEEE 754.
    Infinity,
    /// One NaN of each sign and no infinity: what is too large becomes the largest number.
    Saturated,
    /// No infinity; the code of minus zero is the only NaN.
    OneNan,
}

/// A sign, an exponent and `fraction` bits.
#[derive(Clone, Copy)]
struct Format {
    fraction: u32,
    bias: i32,
    top: Top,
}

const FORMATS: [Format; 4] = [
    Format { fraction: 3, bias: 7, top: Top::Saturated },
    Format { fraction: 3, bias: 8, top: Top::OneNan },
    Format { fraction: 2, bias: 15, top: Top::Infinity },
    Format { fraction: 2, bias: 16, top: Top::OneNan },
];
/// The kind that has neither sign nor fraction: a power of two.
const EXPONENT_ONLY: usize = FORMATS.len();

/// An eight-bit float; `KIND` says of which format.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Float8<const KIND: usize>(u8);

#[allow(non_camel_case_types)]
pub type f8e4m3fn = Float8<0>;
#[allow(non_camel_case_types)]
pub type f8e4m3fnuz = Float8<1>;
#[allow(non_camel_case_types)]
pub type f8e5m2 = Float8<2>;
#[allow(non_camel_case_types)]
pub type f8e5m2fnuz = Float8<3>;
#[allow(non_camel_case_types)]
pub type f8e8m0fnu = Float8<EXPONENT_ONLY>;

/// Two to a power that float32 holds without a fraction.
const fn power_of_two(e: i32) -> f32 {
    match e {
        -126..=127 => f32::from_bits(((e + 127) as u32) << 23),
        _ => f32::from_bits(1 << (e + 149)),
    }
}

impl Format {
    const fn decode(self, code: u8) -> f32 {
        let (magnitude, sign) = ((code & 0x7f) as u32, if code >> 7 == 1 { -1.0 } else { 1.0 });
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        match self.top {
            Top::Infinity if magnitude >> self.fraction == 31 => {
                return if fraction == 0 { sign * f32::INFINITY } else { f32::NAN };
            }
            Top::Saturated if magnitude == 0x7f => return f32::NAN,
            Top::OneNan if code == 0x80 => return f32::NAN,
            _ => {}
        }
        let (whole, e) = if exponent == 0 { (fraction, 1) } else { (fraction | 1 << self.fraction, exponent as i32) };
        sign * whole as f32 * power_of_two(e - self.bias - self.fraction as i32)
    }
    /// The nearest code, ties to even.
    #[inline(always)]
    fn encode(self, x: f32) -> u8 {
        let (sign, magnitude) = ((x.to_bits() >> 24) as u8 & 0x80, x.to_bits() & 0x7fff_ffff);
        let nan = magnitude > f32::INFINITY.to_bits();
        let code = if magnitude < power_of_two(1 - self.bias).to_bits() {
            // Below the normal numbers a sum rounds: its last bit is worth as much as the code's.
            let unit = power_of_two(1 - self.bias - self.fraction as i32 + 23);
            (f32::from_bits(magnitude) + unit).to_bits() - unit.to_bits()
        } else {
            let cut = 23 - self.fraction;
            let rounded = magnitude + (1 << (cut - 1)) - 1 + (magnitude >> cut & 1);
            (rounded >> cut) - ((127 - self.bias as u32) << self.fraction)
        };
        match self.top {
            Top::Infinity => sign | if nan { 0x7f } else { code.min(0x7c) as u8 },
            Top::Saturated => sign | if nan { 0x7f } else { code.min(0x7e) as u8 },
            Top::OneNan if code > 0x7f => 0x80,
            Top::OneNan if code == 0 => 0,
            Top::OneNan => sign | code as u8,
        }
    }
}

/// The number of each code of each kind.
static VALUES: [[f32; 256]; EXPONENT_ONLY + 1] = {
    let mut values = [[0.0; 256]; EXPONENT_ONLY + 1];
    let mut code = 0;
    while code < 256 {
        let mut kind = 0;
        while kind < EXPONENT_ONLY {
            values[kind][code] = FORMATS[kind].decode(code as u8);
            kind += 1;
        }
        values[EXPONENT_ONLY][code] = if code == 255 { f32::NAN } else { power_of_two(code as i32 - 127) };
        code += 1;
    }
    values
};

/// The exponent of the nearest power of two, halves of one away from zero; the sign is dropped.
#[inline(always)]
fn exponent_of(x: f32) -> u8 {
    let (exponent, fraction) = (x.to_bits() >> 23 & 0xff, x.to_bits() & 0x007f_ffff);
    // A number without exponent is below the smallest power, so a tie goes down.
    let up = fraction > 1 << 22 || (fraction == 1 << 22 && exponent > 0);
    if exponent == 255 { 255 } else { (exponent + u32::from(up)) as u8 }
}

impl<const KIND: usize> Float8<KIND> {
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        VALUES[KIND][self.0 as usize]
    }
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        Float8(if KIND == EXPONENT_ONLY { exponent_of(x) } else { FORMATS[KIND.min(EXPONENT_ONLY - 1)].encode(x) })
    }
}

impl<const KIND: usize> PartialEq for Float8<KIND> {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_code_comes_back<const KIND: usize>() {
        for code in 0..=255 {
            let x = Float8::<KIND>(code).to_f32();
            let back = Float8::<KIND>::from_f32(x);
            assert!(if x.is_nan() { back.to_f32().is_nan() } else { back.0 == code }, "{KIND} {code} {x}");
        }
    }
    #[test]
    fn codes_and_numbers() {
        every_code_comes_back::<0>();
        every_code_comes_back::<1>();
        every_code_comes_back::<2>();
        every_code_comes_back::<3>();
        every_code_comes_back::<4>();
    }
    /// Between two neighbours the nearer one, in the middle the even one.
    fn rounds<const KIND: usize>() {
        for code in 0..0x7b {
            let (low, high) = (Float8::<KIND>(code).to_f32(), Float8::<KIND>(code + 1).to_f32());
            let middle = (low + high) / 2.0;
            let even = code + (code & 1);
            for sign in [1.0, -1.0] {
                let of = |x: f32| Float8::<KIND>::from_f32(sign * x).0 & 0x7f;
                assert_eq!(of(middle), even, "{KIND} {middle}");
                assert_eq!(of(middle.next_down()), code, "{KIND} {middle}");
                assert_eq!(of(middle.next_up()), code + 1, "{KIND} {middle}");
            }
        }
    }
    #[test]
    fn rounding() {
        rounds::<0>();
        rounds::<1>();
        rounds::<2>();
        rounds::<3>();
    }
    /// Figures of PyTorch 2.15.
    #[test]
    fn ends_of_the_range() {
        assert_eq!(
            [448.0, 464.0, 1e6, f32::INFINITY, f32::NEG_INFINITY].map(|x| f8e4m3fn::from_f32(x).0),
            [126, 126, 126, 126, 254]
        );
        assert_eq!([240.0, 248.0, f32::INFINITY, -0.0].map(|x| f8e4m3fnuz::from_f32(x).0), [127, 128, 128, 0]);
        assert_eq!([57344.0, 61440.0, f32::NEG_INFINITY, -0.0].map(|x| f8e5m2::from_f32(x).0), [123, 124, 252, 128]);
        assert_eq!([57344.0, 61440.0, f32::INFINITY].map(|x| f8e5m2fnuz::from_f32(x).0), [127, 128, 128]);
        assert_eq!(
            [3.0, 0.0, -7.0, f32::INFINITY, f32::NAN].map(|x| f8e8m0fnu::from_f32(x).0),
            [129, 0, 130, 255, 255]
        );
    }
}
