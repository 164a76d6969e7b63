//! f64 constants, polynomials and bit manipulation for the formulas of `math.rs`.
//!
//! Coefficients are minimax fits of the tails named in `Float`, lowest power first. `pow`, `hypot` and `rem` call libm
//! element by element: a correct f64 power needs a logarithm with 64 bits.

use super::math::{self, Float, horner};
use super::number_class::Fuse;
use super::special;

impl Float for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const TWO: f64 = 2.0;
    const HALF: f64 = 0.5;
    const INFINITY: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const MAGIC: f64 = 6755399441055744.0;
    const LOG2_E: f64 = std::f64::consts::LOG2_E;
    const LN2: (f64, f64) = (0.6931471804855391, 7.440617110012397e-11);
    const HALF_PI: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123233995736766e-17);
    const EXP_RANGE: (f64, f64) = (-746.0, 710.0);
    const MILD_EXP: f64 = 708.0;
    const LAST_POWER: f64 = 1023.0;
    const BIG: f64 = 19.5;
    const SQUARE_LIMIT: f64 = 1e150;

    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        self.mul_add(a, b)
    }
    #[inline(always)]
    fn pow2(self) -> Self {
        // The sum's low bits are the biased exponent; the shift drops the others.
        f64::from_bits((self + (Self::MAGIC + 1023.0)).to_bits() << 52)
    }
    #[inline(always)]
    fn subnormal(self, n: Self) -> (Self, bool) {
        // In units of the smallest subnormal: the sum rounds to an integer, whose low bits are the result's.
        const UNITS: f64 = 4503599627370496.0;
        let n = if n > -1021.0 { -1021.0 } else { n };
        let count = self * (n + 1074.0).pow2();
        (f64::from_bits((count + UNITS).to_bits().wrapping_sub(UNITS.to_bits())), count < UNITS)
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        const POWER: f64 = 4503599627370496.0;
        const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
        // Biased to stay positive: the top bits of the distance to sqrt(1/2) count octaves.
        let distance = self.to_bits().wrapping_sub(ROOT).wrapping_add(1023 << 52);
        let m = f64::from_bits((distance & ((1 << 52) - 1)).wrapping_add(ROOT));
        (m, f64::from_bits((distance >> 52) | POWER.to_bits()) - (POWER + 1023.0))
    }
    #[inline(always)]
    fn split_any(self) -> (Self, Self) {
        let small = self < f64::MIN_POSITIVE;
        let (x, lowered) = if small { (self * 4503599627370496.0, 52.0) } else { (self, 0.0) };
        let (m, e) = x.split();
        (m, e - lowered)
    }
    #[inline(always)]
    fn reduce<F: Fuse>(self, shift: u32) -> (Self, bool, Self) {
        // A quotient of up to 20 bits times the first or the second part (33 bits each) is exact.
        const PARTS: (f64, f64, f64) = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21);
        let z = self * std::f64::consts::FRAC_2_PI + Self::MAGIC;
        let n = z - Self::MAGIC;
        let a = self - n * PARTS.0;
        let b = n * PARTS.1;
        let r = a - b;
        // The rounding error of that difference.
        let lost = (a - r) - b;
        let q = z.to_bits().wrapping_add(shift as u64);
        (r + (lost - n * PARTS.2), q & 1 != 0, f64::from_bits((q & 2) << 62))
    }
    #[inline(always)]
    fn exp_tail<F: Fuse>(r: Self) -> Self {
        horner::<_, F, _>(
            r,
            [
                0.5,
                0.16666666666666682,
                0.04166666666666609,
                0.008333333333316916,
                0.0013888888889117303,
                0.00019841269896682574,
                2.480158692453661e-05,
                2.7557234557322123e-06,
                2.7557582849046537e-07,
                2.5112144958402358e-08,
                2.0826521076946097e-09,
            ],
        )
    }
    #[inline(always)]
    fn exp2_tail<F: Fuse>(f: Self) -> Self {
        horner::<_, F, _>(
            f,
            [
                0.6931471805599457,
                0.24022650695910098,
                0.05550410866479039,
                0.009618129107607002,
                0.001333355815344014,
                0.0001540353044157236,
                1.5252727385038237e-5,
                1.3215442675182758e-6,
                1.0180647722118852e-7,
                7.072570442467681e-9,
                4.078062699466225e-10,
            ],
        )
    }
    #[inline(always)]
    fn ln_tail<F: Fuse>(z: Self) -> Self {
        z * horner::<_, F, _>(
            z,
            [
                0.6666666666666666,
                0.3999999999978699,
                0.2857142867322259,
                0.22222204535447893,
                0.1818330303818333,
                0.1531969844974265,
                0.14748203050798203,
            ],
        )
    }
    #[inline(always)]
    fn sin_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                -0.16666666666666666,
                0.00833333333332902,
                -0.00019841269833988798,
                2.755731486274824e-06,
                -2.5050908371844163e-08,
                1.5904015133777932e-10,
            ],
        )
    }
    #[inline(always)]
    fn cos_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                0.041666666666666664,
                -0.0013888888888885281,
                2.4801587295994987e-05,
                -2.755731608718464e-07,
                2.0875939143885344e-09,
                -1.1369840572373737e-11,
            ],
        )
    }
    #[inline(always)]
    fn atan_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                -0.3333333333333333,
                0.19999999999986265,
                -0.14285714282935194,
                0.11111110897342794,
                -0.09090900476916927,
                0.07692100245786357,
                -0.06663478622103947,
                0.05850114803824988,
                -0.05047397488361716,
                0.03822772344579311,
                -0.01804554530676238,
            ],
        )
    }
    #[inline(always)]
    fn asin_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                0.16666666666666666,
                0.07499999999993565,
                0.04464285715525012,
                0.030381943535715324,
                0.022372194214731477,
                0.017351943949087765,
                0.013977285265685707,
                0.011424571705743663,
                0.010652916275527485,
                0.004131231672361496,
                0.020797332553635594,
                -0.019869529779691465,
                0.03201227984724785,
            ],
        )
    }
    #[inline(always)]
    fn erf_tail<F: Fuse>(z: Self) -> Self {
        horner::<_, F, _>(
            z,
            [
                0.1283791670955126,
                -0.3761263890318375,
                0.11283791670954885,
                -0.026866170645077875,
                0.0052239776248284315,
                -0.0008548326981425884,
                0.00012055331132976754,
                -1.4925595772854553e-05,
                1.6461008490952578e-06,
                -1.6350396383911513e-07,
                1.4660329934243189e-08,
                -1.1374960859212245e-09,
                5.960694668779614e-11,
            ],
        )
    }
    #[inline(always)]
    fn erfc_large<F: Fuse>(a: Self) -> Self {
        let a = if a > 28.0 { 28.0 } else { a };
        // a exp(a^2) erfc(a) is smooth in t; the square is split in two parts, the first exact.
        let p = horner::<_, F, _>(
            (a - 4.0) / (a + 4.0),
            [
                0.5479978305002455,
                0.05972346595980489,
                -0.10167001340781992,
                0.11617743547595376,
                -0.10500112171778879,
                0.07842032532106388,
                -0.04881471116065164,
                0.025005730744496527,
                -0.010128998901707511,
                0.0029155488296618557,
                -0.0003680053693996687,
                -0.0001391227570535651,
                8.658733835268757e-05,
                -1.1236678936814628e-05,
                -7.080784652231214e-06,
                3.0312719852874622e-06,
                2.8949934243377477e-07,
                -4.2049714630524813e-07,
                1.7045448874209373e-08,
                3.294609797155987e-08,
            ],
        );
        let head = f64::from_bits(a.to_bits() & !0x7ff_ffff);
        let rest = -(a - head) * (a + head);
        p / a * (1.0 + rest * (1.0 + rest * (0.5 + rest / 6.0))) * math::exp::<f64, F>(-head * head)
    }
    #[inline(always)]
    fn normal<F: Fuse>(self) -> (Self, Self) {
        let below = 0.5 + 0.5 * math::erf::<f64, F>(self * std::f64::consts::FRAC_1_SQRT_2);
        (below, math::exp::<f64, F>(-0.5 * self * self))
    }
    #[inline(always)]
    fn erfc<F: Fuse>(self) -> Self {
        let a = self.abs();
        let large = Self::erfc_large::<F>(if a < 1.0 { 1.0 } else { a });
        let small = 1.0 - math::erf::<f64, F>(self);
        let mirrored = if self < 0.0 { 2.0 - large } else { large };
        if a > 1.0 { mirrored } else { small }
    }
    #[inline(always)]
    fn pow<F: Fuse>(self, e: Self) -> Self {
        self.powf(e)
    }
    #[inline(always)]
    fn log10_of_parts(ln_m: Self, e: Self) -> Self {
        // The factors' first parts are short, so that products with an exponent are exact.
        const TWO: (f64, f64) = (0.3010299950838089, 5.801722962879576e-10);
        const E: (f64, f64) = (0.4342944771051407, 4.798111141615973e-09);
        e * TWO.0 + (ln_m * E.0 + (ln_m * E.1 + e * TWO.1))
    }
    #[inline(always)]
    fn hypot(self, o: Self) -> Self {
        f64::hypot(self, o)
    }
    #[inline(always)]
    fn lgamma<F: Fuse>(self) -> Self {
        special::lgamma(self)
    }
    #[inline(always)]
    fn erfinv<F: Fuse>(self) -> Self {
        special::erfinv(self)
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
        f64::from_bits(self.to_bits() ^ s.to_bits())
    }
}
