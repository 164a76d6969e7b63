//! The constants, the polynomials and the bits of f32 for the formulas of `math.rs`.
//!
//! Coefficients are minimax fits of the tails that `Float` names, lowest power first.

use super::math::{self, Float, horner};
use super::num::Fuse;

impl Float for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const TWO: f32 = 2.0;
    const HALF: f32 = 0.5;
    const INFINITY: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const MAGIC: f32 = 12582912.0;
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN2: (f32, f32) = (0.693359375, -0.00021219444);
    const HALF_PI: (f32, f32) = (std::f32::consts::FRAC_PI_2, -4.371139e-08);
    const EXP_RANGE: (f32, f32) = (-105.0, 90.0);
    const BIG: f32 = 9.02;
    const SQUARE_LIMIT: f32 = 1e18;

    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        self.mul_add(a, b)
    }
    #[inline(always)]
    fn pow2(self) -> Self {
        // The sum's low bits are the biased exponent; the shift drops the others.
        f32::from_bits((self + (Self::MAGIC + 127.0)).to_bits() << 23)
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        const POWER: f32 = 8388608.0;
        const ROOT: u32 = 0x3f35_04f3;
        let small = self < f32::MIN_POSITIVE;
        let x = if small { self * POWER } else { self };
        // Biased so that it stays positive: the top bits of the distance to sqrt(1/2) count octaves.
        let distance = x.to_bits().wrapping_sub(ROOT).wrapping_add(127 << 23);
        let m = f32::from_bits((distance & ((1 << 23) - 1)).wrapping_add(ROOT));
        let e = f32::from_bits((distance >> 23) | POWER.to_bits()) - (POWER + 127.0);
        (m, if small { e - 23.0 } else { e })
    }
    #[inline(always)]
    fn reduce<F: Fuse>(self, shift: u32) -> (Self, bool, Self) {
        // In f64: a quotient of up to 20 bits times the first part (32 bits) is exact.
        const PARTS: (f64, f64) = (1.5707963267341256, 6.077100506506192e-11);
        let x = self as f64;
        let z = x * std::f64::consts::FRAC_2_PI + <f64 as Float>::MAGIC;
        let n = z - <f64 as Float>::MAGIC;
        let r = ((x - n * PARTS.0) - n * PARTS.1) as f32;
        let q = (z.to_bits() as u32).wrapping_add(shift);
        (r, q & 1 != 0, f32::from_bits((q & 2) << 30))
    }
    #[inline(always)]
    fn exp_tail<F: Fuse>(r: Self) -> Self {
        horner::<_, F, _>(
            r,
            [0.4999999403953552, 0.1666651964187622, 0.04166839271783829, 0.008368780836462975, 0.001381447073072195],
        )
    }
    #[inline(always)]
    fn ln_tail<F: Fuse>(z: Self) -> Self {
        z * horner::<_, F, _>(z, [0.6666666865348816, 0.39987972378730774, 0.29642030596733093])
    }
    #[inline(always)]
    fn sin_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(z, [-0.1666666716337204, 0.008332710713148117, -0.00019573367899283767])
    }
    #[inline(always)]
    fn cos_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(z, [0.0416666679084301, -0.00138881616294384, 2.451476211717818e-05])
    }
    #[inline(always)]
    fn atan_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [-0.3333333432674408, 0.1999933123588562, -0.14256572723388672, 0.10673373937606812, -0.06247895583510399],
        )
    }
    #[inline(always)]
    fn asin_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                0.1666666716337204,
                0.07500182092189789,
                0.04456843435764313,
                0.031443241983652115,
                0.015623121522367,
                0.03607170656323433,
            ],
        )
    }
    #[inline(always)]
    fn erf_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                0.12837916612625122,
                -0.3761262595653534,
                0.11283600330352783,
                -0.026854444295167923,
                0.005189535673707724,
                -0.0008020845125429332,
                7.889132393756881e-05,
            ],
        )
    }
    #[inline(always)]
    fn erfc_large<F: Fuse>(a: Self) -> Self {
        // exp of a fit of -ln(erfc) about 2.4; beyond 4 nothing is left of it beside 1.
        let t = (if a > 4.0 { 4.0 } else { a }) - 2.4;
        math::exp::<f32, F>(-horner::<_, F, _>(
            t,
            [
                7.280974864959717,
                5.164236545562744,
                0.9405010938644409,
                0.011763781309127808,
                -0.002392222872003913,
                0.0004739430733025074,
                -7.496705802623183e-05,
                2.2806534616393037e-05,
                2.241455518969815e-07,
            ],
        ))
    }
    #[inline(always)]
    fn erfc<F: Fuse>(self) -> Self {
        <f64 as Float>::erfc::<F>(self as f64) as f32
    }
    /// In f64, where a logarithm times 150 has bits to spare.
    #[inline(always)]
    fn pow<F: Fuse>(self, e: Self) -> Self {
        let y = math::exp::<f64, F>(e as f64 * math::ln::<f64, F>(self.abs() as f64)) as f32;
        let whole = e.trunc() == e;
        let half = e * 0.5;
        let odd = whole && half.trunc() != half;
        let y = if odd { y.copysign(self) } else { y };
        // A negative number has whole powers only (infinities count as even).
        let y = if self < 0.0 && !whole && self != f32::NEG_INFINITY { f32::NAN } else { y };
        // 1 to any power, -1 to an infinite one, anything to the power of 0.
        let one = self == 1.0 || e == 0.0 || (self == -1.0 && e.abs() == f32::INFINITY);
        if one { 1.0 } else { y }
    }
    #[inline(always)]
    fn log10_of_parts(ln_m: Self, e: Self) -> Self {
        (e as f64 * std::f64::consts::LOG10_2 + ln_m as f64 * std::f64::consts::LOG10_E) as f32
    }
    #[inline(always)]
    fn hypot(self, o: Self) -> Self {
        let (x, y) = (self as f64, o as f64);
        let r = (x * x + y * y).sqrt() as f32;
        if self.abs() == f32::INFINITY || o.abs() == f32::INFINITY { f32::INFINITY } else { r }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self.floor()
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        self.ceil()
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        self.trunc()
    }
    #[inline(always)]
    fn round(self) -> Self {
        self.round_ties_even()
    }
    #[inline(always)]
    fn rem(self, o: Self) -> Self {
        self % o
    }
    #[inline(always)]
    fn next_up(self) -> Self {
        self.next_up()
    }
    #[inline(always)]
    fn next_down(self) -> Self {
        self.next_down()
    }
    #[inline(always)]
    fn copysign(self, s: Self) -> Self {
        self.copysign(s)
    }
    #[inline(always)]
    fn is_sign_negative(self) -> bool {
        self.is_sign_negative()
    }
    #[inline(always)]
    fn flip(self, s: Self) -> Self {
        f32::from_bits(self.to_bits() ^ s.to_bits())
    }
}
