//! f32 constants, polynomials and bit manipulation for the formulas of `math.rs`.
//!
//! Coefficients are minimax fits of the tails named in `Float`, lowest power first.

use super::math::{self, Float, horner};
use super::number_class::Fuse;

/// exp of a number of at most some hundred in size, to 1e-10.
#[inline(always)]
fn short_exp<F: Fuse>(t: f64) -> f64 {
    let n = math::fma::<f64, F>(t, f64::LOG2_E, f64::MAGIC) - f64::MAGIC;
    let r = math::fma::<f64, F>(-n, std::f64::consts::LN_2, t);
    let tail = horner::<_, F, _>(
        r,
        [
            0.5000000081286696,
            0.1666666675694132,
            0.04166623900423404,
            0.008333285836560074,
            0.0013948700486338056,
            0.00019907704448974411,
        ],
    );
    (1.0 + math::fma::<f64, F>(r * r, tail, r)) * n.pow2()
}

impl Float for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const TWO: f32 = 2.0;
    const HALF: f32 = 0.5;
    const INFINITY: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const MAGIC: f32 = 12582912.0;
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN2: (f32, f32) = (0.6933594, -0.00021219444);
    const HALF_PI: (f32, f32) = (std::f32::consts::FRAC_PI_2, -4.371139e-08);
    const EXP_RANGE: (f32, f32) = (-105.0, 88.8);
    const MILD_EXP: f32 = 87.0;
    const LAST_POWER: f32 = 127.0;
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
    fn subnormal(self, n: Self) -> (Self, bool) {
        // In units of the smallest subnormal: the sum rounds to an integer, whose low bits are the result's.
        const UNITS: f32 = 8388608.0;
        let n = if n > -125.0 { -125.0 } else { n };
        let count = self * (n + 149.0).pow2();
        (f32::from_bits((count + UNITS).to_bits().wrapping_sub(UNITS.to_bits())), count < UNITS)
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        const POWER: f32 = 8388608.0;
        const ROOT: u32 = 0x3f35_04f3;
        // Biased to stay positive: the top bits of the distance to sqrt(1/2) count octaves.
        let distance = self.to_bits().wrapping_sub(ROOT).wrapping_add(127 << 23);
        let m = f32::from_bits((distance & ((1 << 23) - 1)).wrapping_add(ROOT));
        (m, f32::from_bits((distance >> 23) | POWER.to_bits()) - (POWER + 127.0))
    }
    #[inline(always)]
    fn split_any(self) -> (Self, Self) {
        let small = self < f32::MIN_POSITIVE;
        let (x, lowered) = if small { (self * 8388608.0, 23.0) } else { (self, 0.0) };
        let (m, e) = x.split();
        (m, e - lowered)
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
        horner::<_, F, _>(r, [0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814471])
    }
    #[inline(always)]
    fn exp2_tail<F: Fuse>(f: Self) -> Self {
        horner::<_, F, _>(
            f,
            [std::f32::consts::LN_2, 0.24022653, 0.055503106, 0.009617693, 0.0013406644, 0.00015594678],
        )
    }
    #[inline(always)]
    fn ln_tail<F: Fuse>(z: Self) -> Self {
        z * horner::<_, F, _>(z, [0.6666667, 0.39987972, 0.2964203])
    }
    #[inline(always)]
    fn sin_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(z, [-0.16666667, 0.008332711, -0.00019573368])
    }
    #[inline(always)]
    fn cos_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(z, [0.041666668, -0.0013888162, 2.4514762e-5])
    }
    #[inline(always)]
    fn atan_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(z, [-0.33333334, 0.19999331, -0.14256573, 0.10673374, -0.062478956])
    }
    #[inline(always)]
    fn asin_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(z, [0.16666667, 0.07500182, 0.044568434, 0.031443242, 0.0156231215, 0.036071707])
    }
    #[inline(always)]
    fn erf_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [0.12837917, -0.37612626, 0.112836, -0.026854444, 0.0051895357, -0.0008020845, 7.8891324e-5],
        )
    }
    #[inline(always)]
    fn erfc_large<F: Fuse>(a: Self) -> Self {
        // exp of a fit of -ln(erfc) about 2.4; beyond 4, erfc is negligible next to 1.
        let t = (if a > 4.0 { 4.0 } else { a }) - 2.4;
        math::exp_mild::<f32, F>(-horner::<_, F, _>(
            t,
            [
                7.280975,
                5.1642365,
                0.9405011,
                0.011763781,
                -0.0023922229,
                0.00047394307,
                -7.496706e-5,
                2.2806535e-5,
                2.2414555e-7,
            ],
        ))
    }
    #[inline(always)]
    fn normal<F: Fuse>(self) -> (Self, Self) {
        // The tail below -a is exp(-a^2 / 2) times a smooth ratio; beyond 13.2 it is treated as zero (it is 1e-39). Two
        // short polynomials in parallel have less latency than one long one.
        const END: f32 = 13.2;
        let a = if self.abs() > END { END } else { self.abs() };
        let bell = math::exp_mild::<f32, F>(-0.5 * a * a);
        let bell = if self.abs() > END { 0.0 } else { bell };
        let p = horner::<_, F, _>(a, [0.5, 0.4392794, 0.18396598, 0.040880013, 0.0041530496]);
        let q = horner::<_, F, _>(a, [1.0, 1.6764438, 1.2055355, 0.47140032, 0.10247711, 0.01041004]);
        let tail = bell * (p / q);
        (if self > 0.0 { 1.0 - tail } else { tail }, bell)
    }
    /// In f64: the scaled function `exp(a^2) erfc(a)`, a polynomial in `(a - 3) / (a + 3)` to 2e-9 up to 10.2, from where on erfc is
    /// zero.
    #[inline(always)]
    fn erfc<F: Fuse>(self) -> Self {
        let a = self.abs() as f64;
        let a = if a > 10.2 { 10.2 } else { a };
        let scaled = horner::<_, F, _>(
            (a - 3.0) / (a + 3.0),
            [
                0.17900115126479338,
                -0.3262335638279156,
                0.2456037975596704,
                -0.15011578180519747,
                0.07166586423466154,
                -0.024394231564905278,
                0.00426887596774872,
                0.0007157307480314401,
                -0.0005945694598850082,
                2.8880796200780878e-05,
                5.591616735500793e-05,
            ],
        );
        let y = scaled * short_exp::<F>(-a * a);
        (if self < 0.0 { 2.0 - y } else { y }) as f32
    }
    /// In f64, to 1e-10: no f32 input overflows there, and the final conversion rounds once.
    #[inline(always)]
    fn pow<F: Fuse>(self, e: Self) -> Self {
        let a = self.abs() as f64;
        let (m, k) = a.split();
        let s = (m - 1.0) / (m + 1.0);
        let z = s * s;
        let tail =
            horner::<_, F, _>(z, [0.6666666666666666, 0.40000158332854174, 0.2854633902213186, 0.23439793784220436]);
        let ln = math::fma::<f64, F>(k, std::f64::consts::LN_2, s * math::fma::<f64, F>(z, tail, 2.0));
        let ln = if a < f64::INFINITY { ln } else { a };
        let t = e as f64 * if a == 0.0 { f64::NEG_INFINITY } else { ln };
        let t = if t > 150.0 { 150.0 } else { t };
        let t = if t < -150.0 { -150.0 } else { t };
        let y = short_exp::<F>(t) as f32;
        let whole = e.trunc() == e;
        let half = e * 0.5;
        let odd = whole && half.trunc() != half;
        let y = if odd { y.copysign(self) } else { y };
        // Negative numbers have only integer powers (infinities count as even).
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
    /// In f64, to 1e-14: Stirling's series from 8 on; below, that of z + 8 without the logarithm of the factors between. Below 1/2 by
    /// reflection.
    #[inline(always)]
    fn lgamma<F: Fuse>(self) -> Self {
        const HALF_LN_2_PI: f64 = 0.9189385332046728;
        const LN_PI: f64 = 1.1447298858494002;
        let x = self as f64;
        let mirrored = x < 0.5;
        let z = if mirrored { 1.0 - x } else { x };
        let factors = ((z * (z + 7.0)) * ((z + 1.0) * (z + 6.0))) * (((z + 2.0) * (z + 5.0)) * ((z + 3.0) * (z + 4.0)));
        let (s, factors) = if z < 8.0 { (z + 8.0, factors) } else { (z, 1.0) };
        let w = 1.0 / s;
        let series = w * horner::<_, F, _>(
            w * w,
            [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0],
        );
        let y = (s - 0.5) * math::ln::<f64, F>(s) - s + (HALF_LN_2_PI + series) - math::ln::<f64, F>(factors);
        let y = if z == 1.0 || z == 2.0 { 0.0 } else { y };
        let sine = math::sin::<f64, F>(std::f64::consts::PI * (x - x.round_ties_even())).abs();
        let y = if mirrored { LN_PI - math::ln::<f64, F>(sine) - y } else { y };
        (if x.abs() == f64::INFINITY { f64::INFINITY } else { y }) as f32
    }
    /// In f64, to 2e-9: x times a function of w = -ln(1 - x^2), after Giles ("Approximating the erfinv function", 2011), with
    /// polynomials of our own up to w = 16.8, beyond the last f32 below one.
    #[inline(always)]
    fn erfinv<F: Fuse>(self) -> Self {
        let x = self as f64;
        let w = -math::ln::<f64, F>((1.0 - x) * (1.0 + x));
        let near = horner::<_, F, _>(
            w - 2.5,
            [
                1.5014093511307296,
                0.24664027673112085,
                -0.004177318038629195,
                -0.0012527078285750255,
                0.00021825107431056642,
                -4.996219579082339e-06,
                -3.417404481378257e-06,
                4.788352024086522e-07,
                1.378055169781747e-08,
                -1.0906193506588463e-08,
                8.200569732533019e-10,
                1.2976544644903763e-10,
                -2.0530252936694423e-11,
                -3.3598268288063424e-13,
            ],
        );
        let far = horner::<_, F, _>(
            (if w > 5.0 { w } else { 5.0 }).sqrt() - 3.1680339887498947,
            [
                3.001526809444553,
                1.0042969794286134,
                0.0064038980091655736,
                -0.004692007605867983,
                0.00328406079728268,
                -0.002210503818134833,
                0.0011688584094661197,
                -0.0003453526150720298,
                -6.584684910976983e-05,
                0.00011027166788610025,
                -3.248795354410839e-05,
            ],
        );
        let y = x * if w < 5.0 { near } else { far };
        let y = if x.abs() > 1.0 { f64::NAN } else { y };
        (if x.abs() == 1.0 { f64::INFINITY.copysign(x) } else { y }) as f32
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
