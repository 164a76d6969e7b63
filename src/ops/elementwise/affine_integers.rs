//! Integers of eight bits that stand for floats, and back: quantised tensors in one pass.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapReal, Real};
use crate::dtype::DType;
use crate::error::Error;
use crate::op::*;

pub static OPS: &[&Op] = &[&QUANTIZE, &DEQUANTIZE, &SCALED_SHIFT];

/// To the nearest even integer, moved, between the least and the greatest, which a NaN becomes.
struct ToInteger<const LEAST: i16, const GREATEST: i16>;
impl<const LEAST: i16, const GREATEST: i16> MapReal<3> for ToInteger<LEAST, GREATEST> {
    #[inline(always)]
    fn eval<T: Real>([x, inverse, zero_point]: [T; 3]) -> T {
        let (least, greatest) = (T::from_f64(LEAST.into()), T::from_f64(GREATEST.into()));
        let moved = (x * inverse).round() + zero_point;
        let below = if moved < greatest { moved } else { greatest };
        if below > least { below } else { least }
    }
}
static TO_U8: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.real::<3, ToInteger<0, 255>>(),
    wgsl: "max_(fmin_(round_(x * y) + z, T(255.0)), T(0.0))",
};
static TO_I8: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.real::<3, ToInteger<-128, 127>>(),
    wgsl: "max_(fmin_(round_(x * y) + z, T(127.0)), T(-128.0))",
};

struct FromInteger;
impl MapReal<3> for FromInteger {
    #[inline(always)]
    fn eval<T: Real>([x, scale, zero_point]: [T; 3]) -> T {
        (x - zero_point) * scale
    }
}
static FROM_INTEGER: Rule =
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.real::<3, FromInteger>(), wgsl: "(x - z) * y" };

struct ScaledShift;
impl MapReal<3> for ScaledShift {
    #[inline(always)]
    fn eval<T: Real>([x, scale, shift]: [T; 3]) -> T {
        x.mul_add(scale, shift)
    }
}
static FUSED: Rule = Rule { loops: Loops::NONE.real::<3, ScaledShift>(), wgsl: "fma(x, y, z)", ..FROM_INTEGER };

const STEP: Op = Op {
    forms: HIDDEN,
    promote: Promote::By(|_, _| Ok((DType::F32, DType::F32))),
    vjp: Vjp::None("a step of quantised tensors"),
    errors: &[("'a', 1.0, 0", "TypeError", "must be Tensor")],
    ..OP
};

pub static QUANTIZE: Op = Op {
    sig: sig("_quantize_affine(Tensor self, Operand inverse, Operand zero_point, DType dtype) -> Tensor"),
    doc: "`clamp(round(self * inverse) + zero_point)` in float32, as uint8 or int8.",
    promote: Promote::By(|c, _| match c.dtype("dtype") {
        Some(to @ (DType::U8 | DType::I8)) => Ok((DType::F32, to)),
        to => Err(Error::runtime(format!("expected uint8 or int8, got {}", to.map_or("None", DType::name)))),
    }),
    body: elementwise_by(|c| Ok(if c.dtype("dtype") == Some(DType::U8) { &TO_U8 } else { &TO_I8 }), &[&TO_U8, &TO_I8]),
    samples: &[
        "f32[2,3], 40.0, 128, uint8",
        "f32[4], 90.0, 0, uint8",
        "f32[10](special), 2.0, 3, int8",
        "f32[4], 500.0, -7, int8",
        "f32[2,3], f32[3](pos), f32[3], int8",
    ],
    errors: &[("f32[2], 1.0, 0, int32", "RuntimeError", "expected uint8 or int8, got int32")],
    reference: "(lambda f, t: np.fmax(np.fmin(np.rint(f(x0) * f(inverse)) + f(zero_point), np.iinfo(t).max), np.iinfo(t).min).astype(t))\
                (lambda x: np.asarray(x, 'float32'), str(dtype).split('.')[-1])",
    ..STEP
};

pub static DEQUANTIZE: Op = Op {
    sig: sig("_dequantize_affine(Tensor self, Operand scale, Operand zero_point) -> Tensor"),
    doc: "`(self - zero_point) * scale` in float32.",
    body: elementwise(&FROM_INTEGER),
    samples: &["u8[2,3], 0.25, 128", "i8[4], 0.1, -3", "i8[2,3], f32[3], f32[3]"],
    reference: "((x0.astype('float32') - np.float32(zero_point)) * np.float32(scale))",
    ..STEP
};

pub static SCALED_SHIFT: Op = Op {
    sig: sig("_scaled_shift(Tensor self, Operand scale, Operand shift) -> Tensor"),
    doc: "`self * scale + shift` in float32, rounded once where the CPU can: how PyTorch's vectorised kernels dequantise.",
    body: elementwise(&FUSED),
    samples: &["u8[2,3], 0.25, -3.5", "i8[4], 0.1, 0.7", "i8[2,3], f32[3], f32[3]"],
    reference: "(x0.astype('float64') * scale + shift).astype('float32')",
    ..STEP
};
