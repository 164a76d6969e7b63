//! Attention by one kernel, in memory linear in the number of keys, and its gradient.
//!
//! Where the gradient is itself recorded, it goes through the composition in `attention`.

use super::{Options, composed, fits};
use crate::cpu::attention::{Heads, backward, forward};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Layout;
use crate::op::*;
use crate::ops::indexing::mask::broadcast_view as broadcast_to;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FLASH, &FLASH_BACKWARD];

const SIG: Signature = sig(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
);
const MASK: usize = SIG.arg("attn_mask");

/// Whether the kernel serves these operands, of three dimensions or four.
pub(super) fn serves([query, key, value]: [&Tensor; 3], o: &Options) -> bool {
    let n = query.ndim();
    if !(n == 3 || n == 4) || key.ndim() != n || value.ndim() != n || o.dropout > 0.0 {
        return false;
    }
    let (heads, groups) = (query.size(n - 3), key.size(n - 3));
    let grouped = heads == groups || (o.gqa && groups > 0 && heads.is_multiple_of(groups));
    let scores = [&query.shape()[..n - 1], &[key.size(n - 2)]].concat();
    let mask = o.mask.is_none_or(|m| fits(m.shape(), &scores) && !crate::autograd::forward::is_differentiated(m));
    grouped
        && mask
        && has_kernel(query.device(), [query.size(n - 1), value.size(n - 1)])
        && query.dtype().is_float()
        && query.shape()[..n - 3] == key.shape()[..n - 3]
        && key.shape()[..n - 1] == value.shape()[..n - 1]
        && query.size(n - 1) == key.size(n - 1)
        && [query, key, value].iter().all(|t| t.numel() > 0)
}

/// Whether a device has a kernel for heads of these sizes.
fn has_kernel(device: Device, sizes: [usize; 2]) -> bool {
    match device {
        Device::Gpu(_) => sizes.iter().all(|&n| n <= gpu::HEAD),
        Device::Cpu | Device::Meta => true,
    }
}

/// Attention of operands that the kernel serves.
pub(super) fn run([query, key, value]: [&Tensor; 3], o: &Options) -> Result<Term> {
    let three = query.ndim() == 3;
    let four = |t: &Tensor| if three { Term::from(t).unsqueeze(0) } else { Term::from(t) };
    let mask = match o.mask {
        Some(mask) => super::added(mask, query.dtype()).into_arg()?,
        None => Value::None,
    };
    let args: Args = smallvec![
        four(query).into_arg()?,
        four(key).into_arg()?,
        four(value).into_arg()?,
        0.0.into(),
        o.causal.into(),
        mask,
        o.scale.into(),
    ];
    let output = Term::from(FLASH.calls(args)?.swap_remove(0));
    Ok(if three { output.squeeze(0) } else { output })
}

/// The float type that the kernel computes in.
fn wide(t: &Tensor) -> DType {
    if t.dtype() == DType::F64 { DType::F64 } else { DType::F32 }
}

/// A tensor of the dtype whose last dimension is dense.
fn dense(t: &Tensor, dtype: DType) -> Result<Tensor> {
    let last = t.ndim().saturating_sub(1);
    let plain = t.dtype() == dtype && (t.layout().strides.get(last) == Some(&1) || t.shape().get(last) == Some(&1));
    if plain { Ok(t.clone()) } else { t.dense_copy(dtype) }
}

fn refused() -> Error {
    Error::runtime(
        "query, key and value must be float tensors of four dimensions that fit together, on a GPU of heads up to 256",
    )
}

/// Refuses operands that do not fit; otherwise batch, heads, queries and the size of a value.
fn checked(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>) -> Result<[usize; 4]> {
    let (&[batch, heads, rows, width], &[b, groups, cols, w]) = (query.shape(), key.shape()) else {
        return Err(refused());
    };
    let &[v_batch, v_groups, v_cols, depth] = value.shape() else { return Err(refused()) };
    let right = [batch, width] == [b, w]
        && [batch, groups, cols] == [v_batch, v_groups, v_cols]
        && groups > 0
        && heads.is_multiple_of(groups)
        && query.dtype().is_float()
        && (!query.device().is_gpu() || has_kernel(query.device(), [width, depth]))
        && [key, value].iter().all(|t| t.dtype() == query.dtype())
        && mask.is_none_or(|m| m.dtype().is_float() && fits(m.shape(), &[batch, heads, rows, cols]));
    if right { Ok([batch, heads, rows, depth]) } else { Err(refused()) }
}

fn infer(c: &Call) -> Result<Specs> {
    let (query, mask) = (c.tensor("query")?, c.opt_tensor("attn_mask"));
    let [batch, heads, rows, depth] = checked(query, c.tensor("key")?, c.tensor("value")?, mask)?;
    if c.float("dropout_p")? > 0.0 {
        return Err(Error::runtime("the fused attention has no dropout"));
    }
    let output = ordered(query, depth);
    Ok(smallvec![output, Spec::new(&[batch, heads, rows], wide(query), query.device())])
}

/// A result of the shape of a tensor but for the last dimension, in its order of dimensions where the last one is innermost: what joins the
/// heads of a projection is then a view.
fn ordered(t: &Tensor, depth: usize) -> Spec {
    let mut layout = t.layout().clone();
    if let Some(last) = layout.shape.last_mut() {
        *last = depth;
    }
    let found = layout.fresh();
    let fits = !t.device().is_gpu() && found.strides.last() == Some(&1);
    let layout = if fits { found } else { Layout::contiguous(&layout.shape) };
    Spec { layout, dtype: t.dtype(), device: t.device() }
}

/// Operands of the kernel, kept alive for its views.
struct Operands {
    tensors: [Tensor; 3],
    mask: Option<Tensor>,
    causal: bool,
    scale: f64,
}
impl Operands {
    fn of(tensors: [&Tensor; 3], mask: Option<&Tensor>, causal: bool, scale: Option<f64>) -> Result<Operands> {
        let [query, key, _] = tensors;
        let dtype = wide(query);
        let scores = [query.size(0), query.size(1), query.size(2), key.size(2)];
        let mask = match mask {
            Some(m) => Some(broadcast_to(&m.dense_copy(dtype)?, &scores)),
            None => None,
        };
        let [q, k, v] = tensors.map(|t| dense(t, dtype));
        let scale = scale.unwrap_or_else(|| 1.0 / (query.size(3) as f64).sqrt());
        Ok(Operands { tensors: [q?, k?, v?], mask, causal, scale })
    }
    fn heads(&self) -> Result<Heads<'_>> {
        let [q, k, v] = &self.tensors;
        Ok(Heads {
            query: q.cpu_view()?,
            key: k.cpu_view()?,
            value: v.cpu_view()?,
            mask: self.mask.as_ref().map(|m| m.cpu_view()).transpose()?,
            causal: self.causal,
            scale: self.scale,
        })
    }
}

/// Calls `f` with the operands as they lie on the GPU.
fn on_gpu(c: &Call, f: &dyn Fn(&gpu::Attention) -> Result<()>) -> Result<()> {
    let [query, key, value] = [c.tensor("query")?, c.tensor("key")?, c.tensor("value")?];
    let scores = [query.size(0), query.size(1), query.size(2), key.size(2)];
    let mask = c.opt_tensor("attn_mask").map(|m| broadcast_to(m, &scores));
    f(&gpu::Attention {
        query: query.gpu_view()?,
        key: key.gpu_view()?,
        value: value.gpu_view()?,
        mask: mask.as_ref().map(|m| m.gpu_view()).transpose()?,
        causal: c.flag("is_causal"),
        scale: c.opt_float("scale").unwrap_or_else(|| 1.0 / (query.size(3) as f64).sqrt()),
    })
}

fn forward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    if out[0].numel() == 0 || c.tensor("key")?.numel() == 0 {
        out[0].fill_raw(0.0.into())?;
        return out[1].fill_raw(f64::NEG_INFINITY.into());
    }
    on_gpu(c, &|o| gpu::attention(o, &out[0].gpu_view()?, &out[1].gpu_view()?))
}

fn backward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    if c.tensor("grad_out")?.numel() == 0 || c.tensor("query")?.numel() == 0 || c.tensor("key")?.numel() == 0 {
        return out.iter().try_for_each(|t| t.fill_raw(0.0.into()));
    }
    let sums = Term::from(c.tensor("logsumexp")?).contiguous().ok()?;
    let results = [&out[0].gpu_view()?, &out[1].gpu_view()?, &out[2].gpu_view()?];
    on_gpu(c, &|o| {
        gpu::attention_backward(
            o,
            &c.tensor("grad_out")?.gpu_view()?,
            &c.tensor("out")?.gpu_view()?,
            &sums.gpu_view()?,
            results,
        )
    })
}

/// A result in the dtype that the kernel computes in: the tensor itself, or memory whose elements are copied to it.
fn staged(t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype { Ok(t.clone()) } else { Tensor::empty(t.shape(), dtype, t.device()) }
}

fn run_forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let given = [c.tensor("query")?, c.tensor("key")?, c.tensor("value")?];
    let operands = Operands::of(given, c.opt_tensor("attn_mask"), c.flag("is_causal"), c.opt_float("scale"))?;
    let result = staged(&out[0], wide(given[0]))?;
    if result.numel() > 0 {
        forward(&operands.heads()?, result.cpu_view()?, out[1].cpu_view()?)?;
    }
    if result.dtype() == out[0].dtype() { Ok(()) } else { out[0].copy_raw(&result) }
}

pub static FLASH: Op = Op {
    sig: SIG,
    doc: "`scaled_dot_product_attention` of four dimensions in blocks, and the logarithm of each query's sum of exponentials.",
    forms: HIDDEN,
    body: kernel(infer, run_forward, Some(forward_gpu)),
    vjp: Vjp::Joint(Joint { args: &[0, 1, 2], saves: A0 | A1 | A2 | (1 << MASK) | OUT0 | OUT1, formula: gradients }),
    constant: &[1],
    samples: &[
        "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,6]",
        "f32[1,4,3,4], f32[1,2,5,4], f32[1,2,5,4], 0.0, True, scale=0.7",
        "f32[2,1,70,3], f32[2,1,67,3], f32[2,1,67,5], attn_mask=f32[70,67](nograd)",
        "f?[1,2,3,4], f?[1,2,5,4], f?[1,2,5,4]",
    ],
    errors: &[("f32[1,2,3,4], f32[1,2,5,3], f32[1,2,5,4]", "RuntimeError", "fit together")],
    batch: Batching::Fold(4, &[0, 1, 2]),
    ..OP
};

/// One kernel; if the gradient is recorded, through the composition.
fn gradients(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    if crate::autograd::forward::differentiating() {
        return c.through(|call| {
            let options = Options {
                mask: call.opt_tensor("attn_mask"),
                dropout: 0.0,
                causal: call.flag("is_causal"),
                scale: call.opt_float("scale"),
                gqa: true,
            };
            let [output, _] = composed([call.tensor("query")?, call.tensor("key")?, call.tensor("value")?], &options)?;
            output.outputs()
        });
    }
    let args: Args = smallvec![
        c.g().into_arg()?,
        c.arg(0).into_arg()?,
        c.arg(1).into_arg()?,
        c.arg(2).into_arg()?,
        c.out(0).into_arg()?,
        c.out(1).into_arg()?,
        0.0.into(),
        c.flag("is_causal").into(),
        c.opt_tensor("attn_mask").into(),
        c.opt_float("scale").into(),
    ];
    let parts = FLASH_BACKWARD.calls(args)?;
    Ok(parts.into_iter().enumerate().map(|(i, t)| c.wants(i).then_some(t)).collect())
}

const BACKWARD: Signature = sig(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
);

pub static FLASH_BACKWARD: Op = Op {
    sig: BACKWARD,
    doc: "The gradients of the fused attention by query, key and value, in blocks.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let [query, key, value] = [c.tensor("query")?, c.tensor("key")?, c.tensor("value")?];
            let sizes = checked(query, key, value, c.opt_tensor("attn_mask"))?;
            let like = |i: usize| -> Result<bool> {
                Ok(c.tensor(i)?.shape() == sizes && c.tensor(i)?.dtype() == query.dtype())
            };
            let sums = c.tensor("logsumexp")?;
            if !like(0)? || !like(4)? || sums.shape() != &sizes[..3] || sums.dtype() != wide(query) {
                return Err(refused());
            }
            Ok([query, key, value].into_iter().map(|t| ordered(t, t.size(3))).collect())
        },
        run_backward,
        Some(backward_gpu),
    ),
    vjp: Vjp::None("the composition is differentiated instead"),
    samples: &[
        "f32[1,2,3,4], f32[1,2,3,4], f32[1,2,5,4], f32[1,2,5,4], f32[1,2,3,4], f32[1,2,3](pos), 0.0, False",
        "f32[1,1,70,3], f32[1,1,70,3], f32[1,1,70,3], f32[1,1,70,3], f32[1,1,70,3], f32[1,1,70](gt1), 0.0, True",
    ],
    errors: &[(
        "f32[1,2,3,4], f32[1,2,3,4], f32[1,2,5,4], f32[1,2,5,4], f32[1,2,3,4], f32[1,2,4], 0.0, False",
        "RuntimeError",
        "fit together",
    )],
    batch: Batching::Fold(3, &[0, 1, 2, 3, 4, 5]),
    ..OP
};

fn run_backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let given = [c.tensor("query")?, c.tensor("key")?, c.tensor("value")?];
    let dtype = wide(given[0]);
    let operands = Operands::of(given, c.opt_tensor("attn_mask"), c.flag("is_causal"), c.opt_float("scale"))?;
    let (grad, output, sums) = (
        dense(c.tensor("grad_out")?, dtype)?,
        dense(c.tensor("out")?, dtype)?,
        c.tensor("logsumexp")?.dense_copy(dtype)?,
    );
    let results: Vec<Tensor> = out.iter().map(|t| staged(t, dtype)).collect::<Result<_>>()?;
    let views = [results[0].cpu_view()?, results[1].cpu_view()?, results[2].cpu_view()?];
    backward(&operands.heads()?, grad.cpu_view()?, output.cpu_view()?, sums.cpu_view()?, views)?;
    for (to, from) in out.iter().zip(&results).filter(|(to, from)| to.dtype() != from.dtype()) {
        to.copy_raw(from)?;
    }
    Ok(())
}
