//! The most frequent element along a dimension.

use super::extrema::{ARGMAX, at_position};
use super::scan::CUMMAX;
use super::sum_prod::{keepdim_form, one_dim, reduced_shape};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::create::range::ARANGE_START;
use crate::ops::indexing::gather_scatter::GATHER;
use crate::ops::movement::pad::CONSTANT_PAD_ND;
use crate::ops::order::sort::SORT_STABLE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MODE];

fn infer(c: &Call) -> Result<Specs> {
    let (t, dims) = (c.tensor(0)?, one_dim(c)?);
    if t.dtype().is_complex() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"mode\" not implemented for '{name}'")));
    }
    if let Some(d) = dims.iter().find(|&&d| t.size(d) == 0) {
        return Err(Error::index(format!("mode(): Expected reduction dim {d} to have non-zero size.")));
    }
    let shape = reduced_shape(t.shape(), &dims, c.flag("keepdim"));
    Ok(smallvec![Spec::new(&shape, t.dtype(), t.device()), Spec::new(&shape, DType::I64, t.device())])
}

/// After sorting, equal elements are adjacent: the longest run wins, then the first of equal length, with its last
/// position.
fn mode(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, one_dim(c)?);
    if out[0].numel() == 0 {
        return Ok(());
    }
    let Some(&dim) = dims.first() else {
        out[1].fill_raw(Scalar::Int(0))?;
        return out[0].copy_raw(t);
    };
    let sorted = SORT_STABLE.calls((t, true, dim, false))?;
    let n = t.size(dim);
    let part = |start| sorted[0].with_layout(sorted[0].layout().slice(dim, (start, n - 1, 1)));
    let places = |from: usize| ARANGE_START.call((from, n, DType::I64, t.device())).reshape(&along(t.ndim(), dim));
    // The start of each element's run: the running maximum of the positions at which a run starts. The first starts at
    // zero.
    let begins = Term(Ok(part(1))).ne_(part(0)) * places(1);
    let mut pad: Ints = smallvec![0; 2 * (t.ndim() - dim)];
    pad[2 * (t.ndim() - dim) - 2] = 1;
    let began = CUMMAX.calls((CONSTANT_PAD_ND.call((begins, pad)), dim))?.swap_remove(0);
    let end = ARGMAX.call((places(0) - &began, dim, true)).ok()?;
    for (o, all) in out.iter().zip(&sorted) {
        keepdim_form(t, &dims, o).copy_raw(&GATHER.call((all, dim, &end)).ok()?)?;
    }
    Ok(())
}

/// The sizes of a vector that lies along one of several dimensions.
fn along(ndim: usize, dim: usize) -> Ints {
    (0..ndim).map(|d| if d == dim { -1 } else { 1 }).collect()
}

pub static MODE: Op = Op {
    sig: sig("mode(Tensor self, Dim dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    doc: "The most frequent element along a dimension, the least of several, and the position of its last occurrence.",
    forms: FMO,
    body: kernel(infer, mode, Some(mode)),
    vjp: Vjp::Each(&[d(0, OUT1, at_position)]),
    samples: &[
        "f32[2,5](ties)",
        "i64[3,4](0..3), 0",
        "f32[2,5](ties), 1, True",
        "i64[3,2,4](0..2), 1",
        "b8[5]",
        "f32[]",
    ],
    errors: &[
        ("f32[2,0]", "IndexError", "to have non-zero size"),
        ("c64[2]", "NotImplementedError", "not implemented for"),
    ],
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};
