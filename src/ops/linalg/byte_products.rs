//! Products of bytes, summed in int32: what quantised layers compute.

use super::matmul::product_of;
use crate::cpu::gemm;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&INT_MM, &BYTE_MM];

pub static INT_MM: Op = Op {
    sig: sig("_int_mm(Tensor self, Tensor mat2) -> Tensor"),
    doc: "The matrix product of int8 matrices, summed in int32.",
    forms: Forms(Forms::HIDDEN | Forms::OUT),
    body: decompose(|c| {
        if let Some(t) = c.all_tensors().find(|t| t.dtype() != DType::I8) {
            let name = t.dtype().scalar_type_name();
            return Err(Error::runtime(format!("expected scalar type Char but found {name}")));
        }
        BYTE_MM.calls((c.tensor(0)?, c.tensor("mat2")?))
    }),
    vjp: Vjp::None("integers have no gradient"),
    out_dtype: Some(OutDType::Same),
    samples: &["i8[2,3], i8[3,4]"],
    errors: &[
        ("f32[2,3], i8[3,4]", "RuntimeError", "expected scalar type Char but found Float"),
        ("i8[2,3], i8[2,4]", "RuntimeError", "cannot be multiplied"),
    ],
    reference: "x0.astype('int32') @ x1.astype('int32')",
    ..OP
};

fn infer(c: &Call) -> Result<Specs> {
    let (a, b) = (c.tensor(0)?, c.tensor("mat2")?);
    if a.ndim() != 2 || b.ndim() != 2 || a.size(1) != b.size(0) {
        let shapes = [a, b].map(|t| t.shape().iter().map(usize::to_string).collect::<Vec<_>>().join("x"));
        return Err(Error::runtime(match (a.ndim(), b.ndim()) {
            (2, 2) => format!("mat1 and mat2 shapes cannot be multiplied ({} and {})", shapes[0], shapes[1]),
            _ => format!("self and mat2 must be matrices, got shapes {} and {}", Show(a.shape()), Show(b.shape())),
        }));
    }
    bytes([a, b])?;
    zero_point(c)?;
    Ok(Spec::one(&[a.size(0), b.size(1)], DType::I32, a.device()))
}

pub(crate) fn bytes(tensors: [&Tensor; 2]) -> Result<()> {
    match tensors.into_iter().find(|t| !matches!(t.dtype(), DType::U8 | DType::I8)) {
        Some(t) => Err(Error::runtime(format!("expected uint8 or int8, got {}", t.dtype()))),
        None => Ok(()),
    }
}

pub(crate) fn zero_point(c: &Call) -> Result<i16> {
    let given = c.int("zero_point")?;
    match i16::try_from(given) {
        Ok(z @ -128..=255) => Ok(z),
        _ => Err(Error::runtime(format!("expected the zero point of a byte, -128 to 255, got {given}"))),
    }
}

fn run(c: &Call, out: &[Tensor]) -> Result<()> {
    let (a, b, zero_point) = (c.tensor(0)?, c.tensor("mat2")?, zero_point(c)?);
    if !out[0].device().is_gpu() {
        return gemm::byte_matmul(a.cpu_view()?, b.cpu_view()?, zero_point, out[0].cpu_view()?);
    }
    let wide = |t: &Tensor| Term::from(t).to_dtype(DType::I32);
    product_of(&(wide(a) - i64::from(zero_point)).ok()?, &wide(b).ok()?, &out[0], 1.0, 0.0)
}

pub static BYTE_MM: Op = Op {
    sig: sig("_byte_mm(Tensor self, Tensor mat2, int zero_point=0) -> Tensor"),
    doc: "`(self - zero_point) @ mat2` of uint8 or int8 matrices, summed in int32, which wraps. A layer's weight, transposed, is read as it lies.",
    forms: Forms(Forms::HIDDEN),
    body: kernel(infer, run, Some(run)),
    vjp: Vjp::None("integers have no gradient"),
    samples: &["u8[2,3], i8[3,4], 128", "i8[5,40], i8[40,9], -3", "u8[3,4], u8[4,2]", "i8[2,0], i8[0,3]"],
    errors: &[
        ("u8[2,3], i8[2,4]", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)"),
        ("u8[3], i8[3]", "RuntimeError", "must be matrices"),
        ("i32[2,3], i8[3,4]", "RuntimeError", "expected uint8 or int8, got int32"),
        ("u8[2,3], i8[3,4], 256", "RuntimeError", "expected the zero point of a byte"),
    ],
    reference: "(x0.astype('int32') - zero_point) @ x1.astype('int32')",
    ..OP
};
