//! Scaled dot product attention: the checks, and the composition of other ops that defines it.
//!
//! `softmax(query key^T scale + mask) value` over the last two dimensions. A row of scores that are all `-inf` (a fully
//! masked query) attends to nothing: its result is zero, and so are its gradients.

pub mod fused;

use super::linear::DROPOUT;
use super::softmax::SOFTMAX;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::create::full::ONES;
use crate::ops::elementwise::compare::EQ;
use crate::ops::indexing::mask::MASKED_FILL;
use crate::ops::linalg::matmul::MATMUL;
use crate::ops::movement::triangular::TRIL;
use crate::ops::reduce::any_all::ALL_DIM;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SCALED_DOT_PRODUCT_ATTENTION, &ATTENTION_MATH];

const SIG: Signature = sig(
    "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
);

pub static SCALED_DOT_PRODUCT_ATTENTION: Op = Op {
    sig: SIG,
    doc: "`softmax(query @ key^T * scale + mask) @ value`: [.., L, E], [.., S, E] and [.., S, Ev] give [.., L, Ev].\n\n\
          `attn_mask` broadcasts to [.., L, S]: a bool mask is true where a key takes part, a float mask is added. `is_causal` \
          lets query i see keys 0 to i. `scale` is `1 / sqrt(E)` unless given. `enable_gqa` repeats the heads of key and value \
          (dimension -3) for those of the query. A query without any key gives zeros.\n\
          Source: Vaswani et al., \"Attention Is All You Need\", arXiv:1706.03762.",
    forms: F,
    body: decompose(attention),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3,4], f32[2,5,4], f32[2,5,6]",
        "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], b8[3,5]",
        "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], f32[2,1,3,5](nograd)",
        "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], f32[5]",
        "f32[1,2,4,3], f32[1,2,4,3], f32[1,2,4,3], None, 0.0, True",
        "f32[1,1,2,3], f32[1,1,3,3], f32[1,1,3,3], b8[2,3](zeros)",
        "f32[4,3], f32[5,3], f32[5,2], scale=-0.3",
        "f32[1,4,3,2], f32[1,2,5,2], f32[1,2,5,2], enable_gqa=True",
        "f?[1,2,3,4], f?[1,2,5,4], f?[1,2,5,4], None, 0.0, True",
        "f32[2,1,2,3,4], f32[2,1,2,5,4], f32[2,1,2,5,4]",
    ],
    errors: &[
        ("f32[2,3,4], f64[2,3,4], f32[2,3,4]", "RuntimeError", "Expected query, key, and value to have the same dtype"),
        ("f32[3], f32[3], f32[3]", "RuntimeError", "to all be  at least 2 dimensional"),
        (
            "f32[1,2,3,4], f32[1,2,3,4], f32[1,2,3,4], i64[3,3]",
            "RuntimeError",
            "Expected attn_mask dtype to be bool or float or to match query dtype",
        ),
        (
            "f32[2,3,4], f32[2,3,4], f32[2,3,4], b8[3,3], 0.0, True",
            "RuntimeError",
            "Explicit attn_mask should not be set when is_causal=True",
        ),
        (
            "f32[1,3,2,4], f32[1,2,2,4], f32[1,2,2,4], enable_gqa=True",
            "RuntimeError",
            "Number of heads in key and value must divide the number of heads in",
        ),
    ],
    ..OP
};

const EXCLUSIVE: &str = "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True";

/// What the composition computes from, besides query, key and value.
struct Options<'a> {
    mask: Option<&'a Tensor>,
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
    gqa: bool,
}
impl<'a> Options<'a> {
    fn of(c: &'a Call) -> Result<Options<'a>> {
        Ok(Options {
            mask: c.opt_tensor("attn_mask"),
            dropout: c.float("dropout_p")?,
            causal: c.flag("is_causal"),
            scale: c.opt_float("scale"),
            gqa: c.flag("enable_gqa"),
        })
    }
}

fn attention(c: &Call) -> Result<Outputs> {
    let [query, key, value] = [c.tensor("query")?, c.tensor("key")?, c.tensor("value")?];
    check(query, key, value, c.opt_tensor("attn_mask"))?;
    let (operands, options) = ([query, key, value], Options::of(c)?);
    if options.causal && options.mask.is_some() {
        return Err(Error::runtime(EXCLUSIVE));
    }
    if fused::serves(operands, &options) {
        return fused::run(operands, &options)?.outputs();
    }
    let [output, _] = composed(operands, &options)?;
    output.outputs()
}

fn check(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>) -> Result<()> {
    let name = |t: &Tensor| t.dtype().c10_name();
    if query.dtype() != key.dtype() || query.dtype() != value.dtype() {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead.",
            name(query),
            name(key),
            name(value)
        )));
    }
    if query.device() != key.device() || query.device() != value.device() {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to have the same device type, but got query.device: {} key.device: {} and value.device: {} instead.",
            query.device(),
            key.device(),
            value.device()
        )));
    }
    if query.ndim() < 2 || key.ndim() < 2 || value.ndim() < 2 {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and value.dim: {} instead.",
            query.ndim(),
            key.ndim(),
            value.ndim()
        )));
    }
    if let Some(mask) = mask
        && ![DType::Bool, DType::F32, query.dtype()].contains(&mask.dtype())
    {
        return Err(Error::runtime(format!(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {} instead.",
            name(mask),
            name(query)
        )));
    }
    Ok(())
}

/// Attention by other ops: (output, weights), both in the dtype of the query. Half types are computed in float32.
fn composed([query, key, value]: [&Tensor; 3], o: &Options) -> Result<[Term; 2]> {
    let dtype = query.dtype();
    let wide = if dtype.is_narrow_float() { DType::F32 } else { dtype };
    let [q, mut k, mut v] = [query, key, value].map(|t| Term::from(t).to_dtype(wide));
    if o.gqa {
        (k, v) = (grouped(query, key, k)?, grouped(query, value, v)?);
    }
    // Query and key are scaled by the root each, so that products of half types stay in range.
    let scale = o.scale.unwrap_or_else(|| 1.0 / (query.size(query.ndim() - 1) as f64).sqrt());
    let root = scale.abs().sqrt();
    let scores = MATMUL.call((q * root.copysign(scale), (k * root).transpose(-2, -1)));
    let scores = masked(scores, o)?;
    let mut weights = safe_softmax(scores);
    if o.dropout > 0.0 {
        weights = DROPOUT.call((weights, o.dropout, true));
    }
    let output = MATMUL.call((&weights, v));
    Ok([output.to_dtype(dtype), weights.to_dtype(dtype)])
}

/// The heads of key or value, each as often as there are heads of the query for it.
fn grouped(query: &Tensor, t: &Tensor, wide: Term) -> Result<Term> {
    let heads = |t: &Tensor| t.ndim().checked_sub(3).map(|i| t.size(i));
    let (Some(asked), Some(given)) = (heads(query), heads(t)) else {
        return Err(Error::index("Dimension out of range (expected to be in range of [-2, 1], but got -3)"));
    };
    if given == asked {
        return Ok(wide);
    }
    if given == 0 || !asked.is_multiple_of(given) {
        return Err(Error::runtime("Number of heads in key and value must divide the number of heads in query"));
    }
    let mut sizes = wide.sizes();
    let at = sizes.len() - 3;
    sizes.insert(at + 1, (asked / given) as i64);
    let repeated = wide.unsqueeze(at as i64 + 1).expand(&sizes);
    sizes.remove(at);
    sizes[at] = asked as i64;
    Ok(repeated.reshape(&sizes))
}

fn masked(scores: Term, o: &Options) -> Result<Term> {
    let lowest = f64::NEG_INFINITY;
    if o.causal {
        let (sizes, device) = (scores.sizes(), scores.get().map(|t| t.device()));
        let square: Ints = sizes.iter().copied().skip(sizes.len().saturating_sub(2)).collect();
        let seen = TRIL.call((ONES.call((square, DType::Bool, device)),));
        return Ok(MASKED_FILL.call((scores, seen.not(), lowest)));
    }
    let Some(mask) = o.mask else { return Ok(scores) };
    if let Some(s) = scores.get()
        && !fits(mask.shape(), s.shape())
    {
        return Err(Error::runtime(format!(
            "attn_mask of shape {} cannot be broadcast to the scores of shape {}",
            Show(mask.shape()),
            Show(s.shape())
        )));
    }
    let dtype = scores.get().map_or(DType::F32, |s| s.dtype());
    Ok(scores + added(mask, dtype))
}

/// A mask as numbers that are added to scores: 0 and `-inf` for a bool mask.
fn added(mask: &Tensor, dtype: DType) -> Term {
    match mask.dtype() {
        DType::Bool => Term::from(mask).choose(0.0, f64::NEG_INFINITY).to_dtype(dtype),
        _ => Term::from(mask).to_dtype(dtype),
    }
}

/// Whether a mask of this shape broadcasts to `scores` without changing its shape.
fn fits(mask: &[usize], scores: &[usize]) -> bool {
    mask.len() <= scores.len() && mask.iter().rev().zip(scores.iter().rev()).all(|(&m, &s)| m == 1 || m == s)
}

/// Softmax along the last dimension; where all scores are `-inf`, zeros with a gradient of zero.
fn safe_softmax(scores: Term) -> Term {
    let nothing = ALL_DIM.call((EQ.call((&scores, f64::NEG_INFINITY)), [-1], true));
    SOFTMAX.call((scores.zero_where(nothing.clone()), -1)).zero_where(nothing)
}

pub static ATTENTION_MATH: Op = Op {
    sig: sig(
        "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor[]",
    ),
    doc: "`scaled_dot_product_attention` by other ops, and its weights [.., L, S].",
    forms: HIDDEN,
    body: decompose(|c| {
        let [query, key, value] = [c.tensor("query")?, c.tensor("key")?, c.tensor("value")?];
        check(query, key, value, c.opt_tensor("attn_mask"))?;
        if c.flag("is_causal") && c.opt_tensor("attn_mask").is_some() {
            return Err(Error::runtime(EXCLUSIVE));
        }
        let [output, weights] = composed([query, key, value], &Options::of(c)?)?;
        Ok(smallvec![output.ok()?, weights.ok()?])
    }),
    vjp: Vjp::Composite,
    samples: &["f32[1,2,3,4], f32[1,2,5,4], f32[1,2,5,4]"],
    errors: &[("f32[3], f32[3], f32[3]", "RuntimeError", "at least 2 dimensional")],
    ..OP
};
