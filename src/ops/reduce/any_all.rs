//! Truth values and counts: any, all, count_nonzero. The result is bool, but uint8 stays uint8, as in PyTorch.

use super::sum_prod::{Kind, over_all, reduced_dims, reduced_shape, run_cpu, run_gpu};
use crate::cpu::reduce::Reduce;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Dims;
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&ANY, &ANY_DIM, &ALL, &ALL_DIM, &COUNT_NONZERO];

struct Any;
impl Kind for Any {
    const REDUCE: Reduce = Reduce::Any;
}
struct All;
impl Kind for All {
    const REDUCE: Reduce = Reduce::All;
}

fn truth_dtype(t: &Tensor) -> DType {
    if t.dtype() == DType::U8 { DType::U8 } else { DType::Bool }
}
fn infer_all(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    Ok(Spec::one(&[], truth_dtype(t), t.device()))
}
fn infer_dims(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    Ok(Spec::one(&reduced_shape(t.shape(), &given_dims(c)?, c.flag("keepdim")), truth_dtype(t), t.device()))
}
/// Unlike for sums, as in PyTorch: an empty list of dimensions reduces nothing; None means every dimension.
fn given_dims(c: &Call) -> Result<Dims> {
    if c.opt_ints("dim").is_some_and(|d| d.is_empty()) { Ok(Dims::new()) } else { reduced_dims(c) }
}
const fn over_given<K: Kind>() -> Body {
    kernel(
        infer_dims,
        |c, out| run_cpu::<K>(c, out, &given_dims(c)?),
        Some(|c, out| run_gpu::<K>(c, out, &given_dims(c)?)),
    )
}
const NO_GRADIENT: Vjp = Vjp::None("the result is a truth value");

pub static ANY: Op = Op {
    sig: sig("any(Tensor self) -> Tensor"),
    doc: "Whether any element is true (not zero). Bool, or uint8 for uint8; false of nothing.",
    forms: FMO,
    body: over_all::<Any>(infer_all),
    vjp: NO_GRADIENT,
    samples: &["b8[2,3]", "f32[4](zeros)", "u8[3]", "i64[0]", "c64[2]"],
    errors: &[("'a'", "TypeError", "invalid combination of arguments")],
    reference: "np.any(x0)",
    batch: Batching::Whole(&ANY_DIM),
    ..OP
};

pub static ANY_DIM: Op = Op {
    sig: sig("any.dim(Tensor self, Dim[1]? dim=None, bool keepdim=False) -> Tensor"),
    doc: "Whether any element over the given dimensions is true.",
    forms: FMO,
    body: over_given::<Any>(),
    vjp: NO_GRADIENT,
    samples: &["b8[2,3], 0", "f32[2,3](ties), 1, True", "u8[2,3], -1", "b8[2,3,2], (0, 2)", "f32[2,3](ties), ()"],
    errors: &[("b8[2,3], 2", "IndexError", "Dimension out of range")],
    reference: "np.any(x0, axis=dim, keepdims=keepdim)",
    ..OP
};

pub static ALL: Op = Op {
    sig: sig("all(Tensor self) -> Tensor"),
    doc: "Whether all elements are true (not zero). Bool, or uint8 for uint8; true of nothing.",
    forms: FMO,
    body: over_all::<All>(infer_all),
    vjp: NO_GRADIENT,
    samples: &["b8[2,3]", "f32[4](ones)", "u8[3]", "i64[0]", "c64[2]"],
    errors: &[("'a'", "TypeError", "invalid combination of arguments")],
    reference: "np.all(x0)",
    batch: Batching::Whole(&ALL_DIM),
    ..OP
};

pub static ALL_DIM: Op = Op {
    sig: sig("all.dim(Tensor self, Dim[1]? dim=None, bool keepdim=False) -> Tensor"),
    doc: "Whether all elements over the given dimensions are true.",
    forms: FMO,
    body: over_given::<All>(),
    vjp: NO_GRADIENT,
    samples: &["b8[2,3], 0", "f32[2,3](ties), 1, True", "u8[2,3], -1", "b8[2,3,2], (0, 2)", "f32[2,3](ties), ()"],
    errors: &[("b8[2,3], 2", "IndexError", "Dimension out of range")],
    reference: "np.all(x0, axis=dim, keepdims=keepdim)",
    ..OP
};

pub static COUNT_NONZERO: Op = Op {
    sig: sig("count_nonzero(Tensor self, Dim[1]? dim=None) -> Tensor"),
    doc: "The number of elements that are not zero, of all or over the given dimensions; int64.",
    body: decompose(|c| {
        let marks = Term::from(c.tensor(0)?).ne_(0);
        match c.opt_ints("dim") {
            Some(dims) if !dims.is_empty() => super::sum_prod::SUM_DIM.call((marks, dims)).outputs(),
            _ => super::sum_prod::SUM.call((marks,)).outputs(),
        }
    }),
    vjp: Vjp::None("a count"),
    samples: &["i64[2,3]", "f32[2,3](ties), 0", "b8[2,3,2], (0, 2)", "f32[0]"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    reference: "np.count_nonzero(x0, axis=dim)",
    ..OP
};
