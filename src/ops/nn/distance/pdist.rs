//! Distances of each pair of rows of one matrix.

use super::{has_kernel, norms, of_shape, positive, typed};
use crate::autograd::forward::differentiating;
use crate::cpu::distance;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::create::combinatorics::CHOICES;
use crate::ops::indexing::index_select::INDEX_SELECT;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&PAIRS, &PAIR_DISTANCES, &PAIRS_BACKWARD, &PDIST];

/// The distances of each pair of rows.
fn pairs(c: &Call) -> Result<Outputs> {
    let (t, p) = (c.tensor(0)?, c.float("p")?);
    let n = t.size(0) as i64;
    let both = CHOICES.call((n, 2, false, t.device()));
    let rows = |which: i64| INDEX_SELECT.call((t, 0, both.clone().select(1, which)));
    let gaps = rows(0) - rows(1);
    if t.size(1) == 0 || n < 2 { gaps.sum(&[-1], false).outputs() } else { norms(gaps, p).outputs() }
}

/// Argument `self` of `pdist`, and its number of pairs.
fn single<'a>(c: &'a Call) -> Result<(&'a Tensor, usize)> {
    let t = c.tensor("self")?;
    if t.ndim() != 2 {
        return Err(Error::runtime(format!("pdist only supports 2D tensors, got: {}D", t.ndim())));
    }
    if !t.dtype().is_float() {
        return Err(Error::runtime("pdist only supports floating-point dtypes"));
    }
    positive(c.float("p")?, "pdist")?;
    let n = t.size(0);
    Ok((t, n.saturating_mul(n.saturating_sub(1)) / 2))
}
fn single_typed<'a>(c: &'a Call) -> Result<(&'a Tensor, usize)> {
    let (t, pairs) = single(c)?;
    if typed(&[t]) {
        Ok((t, pairs))
    } else {
        Err(Error::runtime(format!("expected float32 or float64 rows, got {}", t.dtype())))
    }
}

fn pairs_backward(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let t = c.arg(0).ok()?;
    if differentiating() || !has_kernel(&[&t]) {
        return c.through(pairs);
    }
    let gradient = PAIRS_BACKWARD.call((c.g(), &t, c.float("p"), c.out(0)));
    Ok(vec![Some(gradient.ok()?)])
}

pub static PAIRS: Op = Op {
    sig: sig("_pdist_forward(Tensor self, float p=2) -> Tensor"),
    doc: "`pdist`, by a kernel or by the differences of all pairs.",
    forms: HIDDEN,
    body: decompose_or(
        |c| single(c).and_then(|_| pairs(c)),
        &PAIR_DISTANCES,
        |c| c.tensor(0).is_ok_and(|t| has_kernel(&[t])),
    ),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0 | OUT0, formula: pairs_backward }),
    node: "PdistBackward0",
    samples: &["f32[4,2]", "f32[3,3], 1.0", "f32[3,4](ties), 3.0", "f32[40,3], 4.0", "f16[3,2], 1.0"],
    errors: &[("f32[3]", "RuntimeError", "pdist only supports 2D tensors, got: 1D")],
    ..OP
};

pub static PAIR_DISTANCES: Op = Op {
    sig: sig("_pair_distances(Tensor self, float p=2) -> Tensor"),
    doc: "`_pdist_forward` without the differences in memory.",
    forms: HIDDEN,
    body: kernel(
        |c| single_typed(c).map(|(t, pairs)| Spec::one(&[pairs], t.dtype(), t.device())),
        |c, out| distance::pair_distances(c.tensor(0)?.cpu_view()?, c.float("p")?, out[0].cpu_view()?),
        None,
    ),
    vjp: Vjp::None("`_pdist_forward` has the gradient"),
    samples: &["f32[4,2], 1.0", "f64[3,3], 3.0"],
    errors: &[("f16[3,2]", "RuntimeError", "expected float32 or float64 rows, got float16")],
    ..OP
};

pub static PAIRS_BACKWARD: Op = Op {
    sig: sig("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor"),
    doc: "The gradient of `pdist`, from the distances and their gradient.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (t, pairs) = single_typed(c)?;
            of_shape(c, "grad", "pdist", &[pairs], t)?;
            Ok(Spec::one(t.shape(), t.dtype(), t.device()))
        },
        |c, out| {
            let (grad, norms) = (c.tensor("grad")?.cpu_view()?, c.tensor("pdist")?.cpu_view()?);
            let rows = c.tensor("self")?.cpu_view()?;
            distance::pair_distances_backward(grad, rows, c.float("p")?, norms, out[0].cpu_view()?)
        },
        None,
    ),
    vjp: Vjp::None("the gradient of a gradient is that of the steps"),
    samples: &["f32[6], f32[4,2], 1.0, f32[6]"],
    errors: &[("f32[5], f32[4,2], 1.0, f32[6]", "RuntimeError", "grad must have the shape")],
    ..OP
};

pub static PDIST: Op = Op {
    sig: sig("pdist(Tensor self, float p=2) -> Tensor"),
    doc: "The `p`-norm distances of each pair of the N rows of a matrix, N (N - 1) / 2 of them, row by row.",
    aliases: &["nn.functional.pdist"],
    forms: F,
    body: decompose(|c| PAIRS.calls((single(c)?.0, c.float("p")?))),
    vjp: Vjp::Composite,
    samples: &["f32[4,2]", "f32[3,3], 1.0", "f32[3,2], inf", "f32[3,4](ties), inf", "f32[1,3]"],
    errors: &[
        ("f32[3]", "RuntimeError", "pdist only supports 2D tensors, got: 1D"),
        ("f32[2,3], -1.0", "RuntimeError", "pdist only supports non-negative p values"),
        ("i64[2,3]", "RuntimeError", "pdist only supports floating-point dtypes"),
    ],
    ..OP
};
