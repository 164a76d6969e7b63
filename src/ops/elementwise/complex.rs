//! Complex numbers from their components, and the angle.
//!
//! The two components are computed as complex numbers without imaginary part, so one loop over c128 serves both dtypes.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapReal, Real, RealOfComplex};
use crate::dtype::{Category, DType, Scalar, c128, default_dtype};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{BINARY, UNARY};

pub static OPS: &[&Op] = &[&COMPLEX, &POLAR, &ANGLE];

fn parts(c: &Call, common: DType) -> Result<(DType, DType)> {
    let (a, b) = (c.tensor(0)?.dtype(), c.tensor(1)?.dtype());
    let (na, nb) = (a.scalar_type_name(), b.scalar_type_name());
    let fits = |d: DType| matches!(d, DType::F16 | DType::F32 | DType::F64);
    if !fits(a) || !fits(b) {
        return Err(Error::not_implemented(format!(
            "Expected both inputs to be Half, Float or Double tensors but got {na} and {nb}"
        )));
    }
    if a != b {
        return Err(Error::runtime(format!(
            "Expected object of scalar type {na} but got scalar type {nb} for second argument"
        )));
    }
    Ok((common.to_complex(), common.to_complex()))
}

const PARTS: Op = Op {
    forms: FO,
    promote: Promote::By(parts),
    samples: &["f32[2,3], f32[2,3]", "f64[2,3], f64[3]"],
    errors: &[
        ("f32[2], f64[2]", "RuntimeError", "Expected object of scalar type"),
        ("i64[2], i64[2]", "RuntimeError", "Expected both inputs"),
    ],
    ..BINARY
};

struct Join;
impl MapComplex<2> for Join {
    fn eval([re, im]: [c128; 2]) -> c128 {
        c128::new(re.re, im.re)
    }
}
static JOIN: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.complex::<2, Join>(), wgsl: "" };
pub static COMPLEX: Op = Op {
    sig: sig("complex(Tensor real, Tensor imag) -> Tensor"),
    doc: "`real + i * imag`.",
    body: elementwise(&JOIN),
    vjp: Vjp::Each(&[
        d(0, 0, |c| c.g().real_part()),
        d(1, 0, |c| (c.g() * Value::Scalar(Scalar::Complex(0.0, -1.0))).real_part()),
    ]),
    reference: "x0 + 1j * x1",
    out_dtype: Some(OutDType::Same),
    keeps: Some(""),
    ..PARTS
};

struct Polar;
impl MapComplex<2> for Polar {
    fn eval([size, angle]: [c128; 2]) -> c128 {
        c128::new(size.re * angle.re.cos(), size.re * angle.re.sin())
    }
}
static TURN: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.complex::<2, Polar>(), wgsl: "" };
pub static POLAR: Op = Op {
    sig: sig("polar(Tensor abs, Tensor angle) -> Tensor"),
    doc: "`abs * exp(i * angle)`.",
    body: elementwise(&TURN),
    samples: &["f32[2,3](pos), f32[2,3]", "f64[2,3](pos), f64[3]"],
    vjp: Vjp::Each(&[
        d(0, A1, |c| (c.g() * COMPLEX.call((c.arg(1).cos(), c.arg(1).sin())).conj()).real_part()),
        d(1, OUT0, |c| (c.g() * (c.out(0) * Value::Scalar(Scalar::Complex(0.0, 1.0))).conj()).real_part()),
    ]),
    reference: "x0 * np.exp(1j * x1)",
    out_dtype: Some(OutDType::Same),
    keeps: Some("result"),
    ..PARTS
};

struct Angle;
impl MapReal<1> for Angle {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        let turned = if x < T::zero() { T::from_f64(std::f64::consts::PI) } else { T::zero() };
        if x.is_nan() { x } else { turned }
    }
}
impl RealOfComplex<1> for Angle {
    fn eval([x]: [c128; 1]) -> f64 {
        x.arg()
    }
}
static TURNED: Rule = Rule {
    operands: &[0],
    loops: Loops::NONE.real::<1, Angle>().real_of_complex::<1, Angle>(),
    wgsl: "where_(isnan_(x), x, where_(lt_(x, T(0)), T(3.14159265358979324), T(0)))",
};
pub static ANGLE: Op = Op {
    sig: sig("angle(Tensor self) -> Tensor"),
    doc: "The angle of a complex number in radians; of real ones 0 or pi.",
    forms: FMO,
    promote: Promote::By(|_, d| {
        let d = if d.category() < Category::Float { default_dtype() } else { d };
        Ok((d, d.to_real()))
    }),
    body: elementwise(&TURNED),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        if !c.meta_of(0).dtype.is_complex() {
            return c.zeros(0);
        }
        let slope = c.g() * (c.arg(0) / c.arg(0).abs().square()) * Value::Scalar(Scalar::Complex(0.0, 1.0));
        slope.zero_where(c.arg(0).equals(0))
    })]),
    samples: &["f32[2,3]", "c64[3]", "i64[4]"],
    reference: "np.angle(x0)",
    ..UNARY
};
