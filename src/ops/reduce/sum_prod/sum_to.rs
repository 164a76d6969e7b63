//! The sum over dimensions that were broadcast: `sum_to_size`.

use super::{SUM, SUM_DIM};
use crate::error::{Error, Result, Show};
use crate::layout::broadcast;
use crate::op::*;
use crate::ops::view::reshape::RESHAPE;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SUM_TO_SIZE];

pub static SUM_TO_SIZE: Op = Op {
    sig: sig("sum_to_size(Tensor self, Size size) -> Tensor"),
    doc: "The sum over the dimensions that broadcasting from `size` created or stretched; the tensor itself where there are none.",
    forms: M,
    body: decompose(sum_to_size),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], (1, 3)", "f32[4,2,3], (2, 1)", "f32[2,3], ()", "f32[2,3], (2, 3)", "i8[2,3], (3,)"],
    errors: &[
        ("f32[2,3], (2,)", "RuntimeError", "is not expandable to size"),
        ("f32[3], (2, 3)", "RuntimeError", "is not expandable to size"),
    ],
    ..OP
};

fn sum_to_size(c: &Call) -> Result<Outputs> {
    let (t, size) = (c.tensor(0)?, c.ints("size")?);
    if size.is_empty() {
        return SUM.calls((t,));
    }
    let shape: Option<crate::layout::Dims> = size.iter().map(|&n| usize::try_from(n).ok()).collect();
    let fits = shape.as_ref().is_some_and(|s| broadcast(s, t.shape()).is_ok_and(|whole| whole[..] == *t.shape()));
    if !fits {
        let (size, own) = (Show(size), Show(t.shape()));
        return Err(Error::runtime(format!("size {{{size}}} is not expandable to size {{{own}}}.")));
    }
    let lead = t.ndim() - size.len();
    let summed = |d: usize| d < lead || (size[d - lead] == 1 && t.size(d) != 1);
    let dims: Ints = (0..t.ndim()).filter(|&d| summed(d)).map(|d| d as i64).collect();
    if dims.is_empty() {
        return Ok(smallvec![t.clone()]);
    }
    let sum = SUM_DIM.call((t, dims, true));
    if lead == 0 { sum.outputs() } else { RESHAPE.calls((sum, size)) }
}
