//! The most frequent element along a dimension.

use super::{keepdim_form, one_dim, reduced_shape};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::*;
use crate::ops::needs::quiet;
use crate::ops::reduce::extreme::at_position;
use crate::ops::sort::SORT_STABLE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MODE];

fn infer(c: &Call) -> Result<Specs> {
    let (t, dims) = (c.tensor(0)?, one_dim(c, 1)?);
    if t.dtype().is_complex() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"mode\" not implemented for '{name}'")));
    }
    if let Some(d) = dims.iter().find(|&&d| t.size(d) == 0) {
        return Err(Error::index(format!("mode(): Expected reduction dim {d} to have non-zero size.")));
    }
    let shape = reduced_shape(t.shape(), &dims, c.flag(2));
    Ok(smallvec![Spec::new(&shape, t.dtype(), t.device()), Spec::new(&shape, DType::I64, t.device())])
}

/// Sorted, equal elements lie together: the longest run wins, the first of equals, and the last position in it.
fn mode(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, one_dim(c, 1)?);
    if out[0].numel() == 0 {
        return Ok(());
    }
    let Some(&dim) = dims.first() else {
        out[1].fill_raw(Scalar::Int(0))?;
        return out[0].copy_raw(t);
    };
    let lines = Term::from(t).transpose(dim as i64, -1).ok()?;
    let [values, places] = quiet(|| -> Result<[Tensor; 2]> {
        let sorted = SORT_STABLE.calls((&lines, true, -1, false))?;
        Ok([sorted[0].dense_copy(t.dtype())?, sorted[1].dense_copy(DType::I64)?])
    })?;
    let at = |t: &Tensor, i: usize| t.element(t.layout().offset + i);
    let n = t.size(dim);
    let (mut picked, mut index) = (Vec::new(), Vec::new());
    for line in 0..values.numel() / n {
        let (mut run, mut longest, mut end) = (0, 0, 0);
        for k in 0..n {
            let i = line * n + k;
            run = if k > 0 && at(&values, i)? == at(&values, i - 1)? { run + 1 } else { 1 };
            if run > longest {
                (longest, end) = (run, i);
            }
        }
        picked.push(end as i64);
        index.push(at(&places, end)?.to_i64());
    }
    let mut shape = lines.shape().to_vec();
    shape[lines.ndim() - 1] = 1;
    let values = values.with_layout(Layout { offset: values.layout().offset, ..Layout::contiguous(&[values.numel()]) });
    let values =
        crate::ops::select::INDEX_SELECT.call((&values, 0, Term(Tensor::from_slice(&picked, &[picked.len()]))));
    let sizes: Ints = shape.iter().map(|&d| d as i64).collect();
    let index = Term(Tensor::from_slice(&index, &[index.len()]));
    for (o, r) in out.iter().zip([values, index]) {
        keepdim_form(t, &dims, o).copy_raw(&r.reshape(&sizes).transpose(dim as i64, -1).ok()?)?;
    }
    Ok(())
}

pub static MODE: Op = Op {
    sig: "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc: "The most frequent element along a dimension, the least of several, and the position of its last occurrence.",
    forms: FMO,
    body: kernel(infer, |c, out| quiet(|| mode(c, out)), None),
    vjp: Vjp::Each(&[d(0, OUT1, at_position)]),
    samples: &["f32[2,5](ties)", "i64[3,4](0..3), 0", "f32[2,5](ties), 1, True", "b8[5]", "f32[]"],
    errors: &[
        ("f32[2,0]", "IndexError", "to have non-zero size"),
        ("c64[2]", "NotImplementedError", "not implemented for"),
    ],
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};
