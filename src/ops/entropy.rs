//! Special functions of probability: xlog1py, entr, the normal distribution function, and the gated linear unit.

use super::join::joined;
use super::needs::quiet;
use super::rules::{BINARY, FLOAT_UNARY, real, real2, refused};
use super::special::ERFC;
use super::split::SPLIT_WITH_SIZES;
use crate::cpu::num::{MapReal, Real};
use crate::error::{Error, Result};
use crate::layout::wrap_dim;
use crate::op::*;
use crate::tensor::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub static OPS: &[&Op] = &[&XLOG1PY, &XLOG1PY_SCALAR_SELF, &XLOG1PY_SCALAR_OTHER, &ENTR, &NDTR, &NDTRI, &GLU];

struct XLog1pY;
impl MapReal<2> for XLog1pY {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let product = x * y.log1p();
        if x == T::zero() && !y.is_nan() { T::zero() } else { product }
    }
}
static X_LOG1P_Y: Rule = real2::<XLog1pY>("where_(flag(!truth(x) && !is_nan(y)), T(0), x * log1p_(y))");
fn slope_x(c: &Back) -> Term {
    let settled = c.arg(0).equals(0).both(c.arg(1).at_most(-1));
    c.g() * c.arg(1).log1p().zero_where(settled)
}
fn slope_y(c: &Back) -> Term {
    c.g() * c.arg(0) / (c.arg(1) + 1)
}
pub static XLOG1PY: Op = Op {
    sig: "special.xlog1py(Tensor input, Tensor other) -> Tensor",
    doc: "`input * log1p(other)`, and zero where `input` is zero.",
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG1P_Y),
    vjp: Vjp::Each(&[d(0, A0 | A1, slope_x), d(1, A0 | A1, slope_y)]),
    node: "SpecialXlog1PyBackward0",
    samples: &["f32[2,3], f32[2,3](pos)", "f32[2,3](ties), f32[3](pos)", "i64[4], i64[4](1..5)"],
    reference: "scipy.special.xlog1py(x0, x1)",
    ..BINARY
};
pub static XLOG1PY_SCALAR_SELF: Op = Op {
    sig: "special.xlog1py.self_scalar(Scalar input, Tensor other) -> Tensor",
    doc: "A number times `log1p(other)`.",
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG1P_Y),
    vjp: Vjp::Each(&[d(1, A1, slope_y)]),
    node: "SpecialXlog1PyBackward1",
    samples: &["2, f32[2,3](pos)", "0, f32[3](pos)"],
    errors: &[("2, c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "scipy.special.xlog1py(x0, x1)",
    ..OP
};
pub static XLOG1PY_SCALAR_OTHER: Op = Op {
    sig: "special.xlog1py.other_scalar(Tensor input, Scalar other) -> Tensor",
    doc: "`input` times `log1p` of a number.",
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG1P_Y),
    vjp: Vjp::Each(&[d(0, A0, slope_x)]),
    node: "SpecialXlog1PyBackward2",
    samples: &["f32[2,3], 2.5", "f32[3](ties), 2"],
    errors: &[("c64[2], 2", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "scipy.special.xlog1py(x0, x1)",
    ..BINARY
};

struct Entr;
impl MapReal<1> for Entr {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        let positive = -x * x.ln();
        let rest = if x == T::zero() { T::zero() } else { -T::infinity() };
        if x > T::zero() || x.is_nan() { positive } else { rest }
    }
}
pub static ENTR: Op = Op {
    sig: "special.entr(Tensor input) -> Tensor",
    doc: "The entropy `-x log(x)`: zero at zero, minus infinity below.",
    forms: FO,
    body: elementwise(&real::<Entr>(
        "where_(isnan_(x), x, where_(gt_(x, T(0)), -x * ln_(x), where_(eq_(x, T(0)), T(0), -inf_())))",
    )),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * (-c.arg(0).log() - 1))]),
    node: "SpecialEntrBackward0",
    samples: &["f32[2,3](pos)", "f64[3](pos)", "i64[4](0..5)"],
    reference: "scipy.special.entr(x0)",
    ..FLOAT_UNARY
};

pub static NDTR: Op = Op {
    sig: "special.ndtr(Tensor input) -> Tensor",
    doc: "The normal distribution function.",
    forms: FO,
    body: composite(|c| (ERFC.call((Term::from(c.tensor(0)?) * -FRAC_1_SQRT_2,)) * 0.5).outputs()),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f64[3]", "i64[4]"],
    reference: "scipy.special.ndtr(x0)",
    ..FLOAT_UNARY
};
struct Ndtri;
impl MapReal<1> for Ndtri {
    fn eval<T: Real>([x]: [T; 1]) -> T {
        T::from_f64(normal_quantile(x.to_f64()))
    }
}

/// The quantile of the normal distribution: M. Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
fn normal_quantile(p: f64) -> f64 {
    let ratio = |of: &[[f64; 8]; 2], x: f64| {
        let [above, below] = of.map(|k| k.iter().rev().fold(0.0, |sum, k| sum * x + k));
        above / below
    };
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&MIDDLE, 0.180_625 - q * q);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let size = match r {
        _ if r.is_infinite() => r,
        _ if r <= 5.0 => ratio(&TAIL, r - 1.6),
        _ => ratio(&FAR, r - 5.0),
    };
    if p.is_nan() { p } else { size.copysign(q) }
}
/// Its ratios of polynomials: around the middle, in the tails, and far out in them.
#[rustfmt::skip]
const MIDDLE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_5, 133.141_667_891_784_38, 1_971.590_950_306_551_3, 13_731.693_765_509_46,
        45_921.953_931_549_87, 67_265.770_927_008_7, 33_430.575_583_588_13, 2_509.080_928_730_122_7,
    ],
    [
        1.0, 42.313_330_701_600_91, 687.187_007_492_057_9, 5_394.196_021_424_751,
        21_213.794_301_586_597, 39_307.895_800_092_71, 28_729.085_735_721_943, 5_226.495_278_852_854,
    ],
];
#[rustfmt::skip]
const TAIL: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_5, 4.630_337_846_156_546, 5.769_497_221_460_691, 3.647_848_324_763_204_5,
        1.270_458_252_452_368_4, 0.241_780_725_177_450_6, 0.022_723_844_989_269_184, 7.745_450_142_783_414e-4,
    ],
    [
        1.0, 2.053_191_626_637_759, 1.676_384_830_183_803_8, 0.689_767_334_985_1,
        0.148_103_976_427_480_08, 0.015_198_666_563_616_457, 5.475_938_084_995_345e-4, 1.050_750_071_644_416_9e-9,
    ],
];
#[rustfmt::skip]
const FAR: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103, 5.463_784_911_164_114, 1.784_826_539_917_291_3, 0.296_560_571_828_504_87,
        0.026_532_189_526_576_124, 1.242_660_947_388_078_4e-3, 2.711_555_568_743_487_6e-5, 2.010_334_399_292_288_1e-7,
    ],
    [
        1.0, 0.599_832_206_555_888, 0.136_929_880_922_735_8, 0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4, 1.846_318_317_510_054_8e-5, 1.421_511_758_316_446e-7, 2.044_263_103_389_939_8e-15,
    ],
];

pub static NDTRI: Op = Op {
    sig: "special.ndtri(Tensor input) -> Tensor",
    doc: "The inverse of the normal distribution function.",
    forms: FO,
    body: elementwise(&real::<Ndtri>("erfinv_(x * T(2) - T(1)) * T(1.41421356237309505)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * ((c.out(0).square() * 0.5).exp() * (2.0 * PI).sqrt()))]),
    node: "SpecialNdtriBackward0",
    samples: &["f32[2,3](unit)", "f64[3](unit)", "f32[3](= 0.03, 0.5, 0.98)"],
    reference: "scipy.special.ndtri(x0)",
    ..FLOAT_UNARY
};

pub static GLU: Op = Op {
    sig: "nn.functional.glu(Tensor input, int dim=-1) -> Tensor",
    doc: "The first half of a dimension times the sigmoid of the second. arXiv:1612.08083.",
    forms: F,
    body: composite(glu),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0, formula: glu_backward }),
    samples: &["f32[2,4]", "f32[4,3], 0", "f64[2,2,6]"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "Halving dimension must be even, but dimension 1 is size 3"),
        ("f32[]", "RuntimeError", "glu does not support 0-dimensional tensors"),
    ],
    reference: "np.split(x0, 2, dim)[0] * scipy.special.expit(np.split(x0, 2, dim)[1])",
    ..OP
};
fn glu(c: &Call) -> Result<Outputs> {
    let x = c.tensor(0)?;
    if !x.dtype().is_float() {
        return Err(refused(c, x.dtype()));
    }
    if x.ndim() == 0 {
        return Err(Error::runtime("glu does not support 0-dimensional tensors"));
    }
    let dim = wrap_dim(c.int(1)?, x.ndim())?;
    if x.size(dim) % 2 != 0 {
        let n = x.size(dim);
        return Err(Error::runtime(format!("Halving dimension must be even, but dimension {dim} is size {n}")));
    }
    quiet(|| {
        let [a, b] = halves(x.into(), dim)?;
        (a * b.sigmoid()).outputs()
    })
}

fn halves(x: Term, dim: usize) -> Result<[Term; 2]> {
    let x = x.ok()?;
    let parts = SPLIT_WITH_SIZES.calls((&x, [x.size(dim) as i64 / 2; 2], dim))?;
    Ok([Term::from(&parts[0]), Term::from(&parts[1])])
}

fn glu_backward(c: &Back) -> Result<Vec<Option<Tensor>>> {
    let dim = wrap_dim(c.int(1)?, c.ndim(0))?;
    let [a, b] = halves(c.arg(0), dim)?;
    let (g, s) = (c.g(), b.sigmoid());
    let right = g.clone() * a * s.clone() * (1.0 - s.clone());
    Ok(vec![Some(joined([g * s, right], dim as i64).ok()?)])
}
