//! Matrix products: mm, bmm, matmul here; products added to a tensor, products of vectors and einsum in their own
//! files.

use super::vector_products::{DOT, MV};
use crate::cpu::epilogue::Epilogue;
use crate::cpu::gemm;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::broadcast;
use crate::op::*;
use crate::ops::support::batch_linalg;
use crate::ops::view::reshape::{EXPAND, T, TRANSPOSE, UNSAFE_VIEW};
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&MM, &BMM, &MATMUL, &DROP_DIM];

/// `product_of` on the CPU into a new result, with an epilogue.
pub(super) fn product_then(a: &Tensor, b: &Tensor, out: &Tensor, factors: [f64; 2], then: &Epilogue) -> Result<()> {
    gemm::matmul_then(a.cpu_view()?, b.cpu_view()?, out.cpu_view()?, factors[0], factors[1], then)
}

/// out = alpha * a @ b + beta * out on batched matrices.
pub(super) fn product_of(a: &Tensor, b: &Tensor, out: &Tensor, alpha: f64, beta: f64) -> Result<()> {
    if out.device().is_gpu() {
        return gpu::matmul(&a.gpu_view()?, &b.gpu_view()?, &out.gpu_view()?, alpha, beta);
    }
    let (x, y, target) = (a.cpu_view()?, b.cpu_view()?, out.cpu_view()?);
    if target.is_apart(&x) && target.is_apart(&y) {
        return gemm::matmul(x, y, target, alpha, beta);
    }
    // In place an operand may lie between the rows of the result.
    let (a, b) = (
        crate::ops::indexing::gather_scatter::unalias(a, out)?,
        crate::ops::indexing::gather_scatter::unalias(b, out)?,
    );
    gemm::matmul(a.cpu_view()?, b.cpu_view()?, target, alpha, beta)
}

pub(crate) fn same_dtype(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "expected m1 and m2 to have the same dtype, but got: {} != {}. Convert one of them with .to(dtype).",
            a.dtype().cpp_name(),
            b.dtype().cpp_name()
        )));
    }
    Ok(())
}

fn run(c: &Call, out: &[Tensor]) -> Result<()> {
    product_of(c.tensor(0)?, c.tensor("mat2")?, &out[0], 1.0, 0.0)
}
fn run_then(c: &Call, out: &[Tensor], then: &Epilogue) -> Result<()> {
    product_then(c.tensor(0)?, c.tensor("mat2")?, &out[0], [1.0, 0.0], then)
}

/// The gradient of the left matrix, argument `i`, of a product with the next: laid out as that matrix was.
pub(super) fn left_gradient(c: &VjpCtx, g: Term, i: usize) -> Term {
    let right = c.arg(i + 1).conj();
    if c.is_column_major(i) { MM.call((right, g.t())).t() } else { MM.call((g, right.t())) }
}

/// The gradient of the right matrix, argument `i`: that of a weight, which is used transposed, then needs no copy to be
/// row-major as the weight is.
pub(super) fn right_gradient(c: &VjpCtx, g: Term, i: usize) -> Term {
    let left = c.arg(i - 1).conj();
    if c.is_column_major(i) { MM.call((g.t(), left)).t() } else { MM.call((left.t(), g)) }
}

pub static MM: Op = Op {
    sig: sig("mm(Tensor self, Tensor mat2) -> Tensor"),
    doc: "The matrix product of [n, k] and [k, m]: [n, m].",
    forms: FMO,
    body: product(
        |c| {
            let (a, b) = (c.tensor(0)?, c.tensor("mat2")?);
            if a.ndim() != 2 || b.ndim() != 2 {
                return Err(Error::runtime(format!(
                    "self and mat2 must be matrices, got shapes {} and {}",
                    Show(a.shape()),
                    Show(b.shape())
                )));
            }
            if a.size(1) != b.size(0) {
                return Err(Error::runtime(format!(
                    "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
                    a.size(0),
                    a.size(1),
                    b.size(0),
                    b.size(1)
                )));
            }
            same_dtype(a, b)?;
            Ok(Spec::one(&[a.size(0), b.size(1)], a.dtype(), a.device()))
        },
        run,
        Some(run),
        run_then,
    ),
    jvp: Jvp::Multilinear(&[]),
    vjp: Vjp::Each(&[d(0, A1, |c| left_gradient(c, c.g(), 0)), d(1, A0, |c| right_gradient(c, c.g(), 1))]),
    samples: &["f32[2,3], f32[3,4]", "i64[2,3], i64[3,2]", "c64[2,2], c64[2,2]"],
    errors: &[
        ("f32[2,3], f32[2,3]", "RuntimeError", "cannot be multiplied"),
        ("f32[2], f32[2]", "RuntimeError", "must be matrices"),
    ],
    reference: "x0 @ x1",
    keeps: Some("mat2 mat2_sym_sizes self self_sym_sizes"),
    batch: Batching::Rule(batch_linalg::matmul),
    ..OP
};

pub static BMM: Op = Op {
    sig: sig("bmm(Tensor self, Tensor mat2) -> Tensor"),
    doc: "The matrix products of a batch: [b, n, k] and [b, k, m] give [b, n, m].",
    forms: FMO,
    body: product(
        |c| {
            let (a, b) = (c.tensor(0)?, c.tensor("mat2")?);
            if a.ndim() != 3 || b.ndim() != 3 {
                return Err(Error::runtime(format!(
                    "batch1 must be a 3D tensor, got shapes {} and {}",
                    Show(a.shape()),
                    Show(b.shape())
                )));
            }
            if a.size(0) != b.size(0) || a.size(2) != b.size(1) {
                return Err(Error::runtime(format!(
                    "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
                    a.size(0),
                    a.size(2),
                    b.size(0),
                    b.size(1)
                )));
            }
            same_dtype(a, b)?;
            Ok(Spec::one(&[a.size(0), a.size(1), b.size(2)], a.dtype(), a.device()))
        },
        run,
        Some(run),
        run_then,
    ),
    jvp: Jvp::Multilinear(&[]),
    vjp: Vjp::Each(&[
        d(0, A1, |c| BMM.call((c.g(), c.arg(1).transpose(1, 2).conj()))),
        d(1, A0, |c| BMM.call((c.arg(0).transpose(1, 2).conj(), c.g()))),
    ]),
    samples: &["f32[2,3,4], f32[2,4,2]"],
    errors: &[
        ("f32[2,3,4], f32[3,4,2]", "RuntimeError", "Expected size for first two"),
        ("f32[2,2], f32[2,2]", "RuntimeError", "3D tensor"),
    ],
    reference: "x0 @ x1",
    batch: Batching::Rule(batch_linalg::bmm),
    ..OP
};

pub static MATMUL: Op = Op {
    sig: sig("matmul(Tensor self, Tensor other) -> Tensor"),
    doc: "The matrix product in every rank: vectors are rows or columns, leading dimensions broadcast as batches.",
    aliases: &["linalg.matmul"],
    forms: FMO,
    body: decompose(|c| matmul(c.tensor(0)?, c.tensor("other")?).outputs()),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3], f32[3]",
        "f32[2,3], f32[3]",
        "f32[3], f32[3,2]",
        "f32[2,3], f32[3,4]",
        "f32[2,1,3,4], f32[5,4,2]",
        "f32[2,3,4], f32[4]",
    ],
    errors: &[
        ("f32[2,3], f32[2,3]", "RuntimeError", "cannot be multiplied"),
        ("f32[], f32[2]", "RuntimeError", "both arguments to matmul need to be at least 1D"),
    ],
    reference: "x0 @ x1",
    out_dtype: Some(OutDType::Same),
    ..OP
};

fn matmul(a: &Tensor, b: &Tensor) -> Term {
    match (a.ndim(), b.ndim()) {
        (0, _) | (_, 0) => Error::runtime(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            a.ndim(),
            b.ndim()
        ))
        .into(),
        (1, 1) => DOT.call((a, b)),
        (2, 1) => MV.call((a, b)),
        (1, 2) => DROP_DIM.call((MM.call((Term::from(a).unsqueeze(0), b)), 0)),
        (2, 2) => MM.call((a, b)),
        (_, 1) if a.is_contiguous() && a.shape().last() == b.shape().last() => {
            let lead = &a.shape()[..a.ndim() - 1];
            let flat = Term::from(a).reshape(&[lead.iter().product::<usize>() as i64, b.numel() as i64]);
            UNSAFE_VIEW.call((MV.call((flat, b)), lead))
        }
        (1, _) => matmul_batched(Term::from(a).unsqueeze(0), b.into()).squeeze(-2),
        (_, 1) => matmul_batched(a.into(), Term::from(b).unsqueeze(1)).squeeze(-1),
        // A batch of rows against one matrix is one large product.
        (_, 2) if a.is_contiguous() => {
            let (k, mut sizes) = (a.size(a.ndim() - 1) as i64, Term::from(a).sizes());
            let flat = Term::from(a).reshape(&[-1, k.max(1)]);
            *sizes.last_mut().expect("at least one dimension") = b.size(1) as i64;
            if a.numel() == 0 || k != b.size(0) as i64 {
                matmul_batched(a.into(), b.into())
            } else {
                UNSAFE_VIEW.call((MM.call((flat, b)), sizes))
            }
        }
        _ => matmul_batched(a.into(), b.into()),
    }
}

/// Both are at least matrices: batches broadcast and are flattened to one dimension for `bmm`.
fn matmul_batched(a: Term, b: Term) -> Term {
    let (sa, sb) = (a.sizes(), b.sizes());
    if sa.len() < 2 || sb.len() < 2 {
        return if a.0.is_err() { a } else { b };
    }
    let (n, k, m) = (sa[sa.len() - 2], sa[sa.len() - 1], sb[sb.len() - 1]);
    if k != sb[sb.len() - 2] {
        return Error::runtime(format!(
            "mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {}x{m})",
            sb[sb.len() - 2]
        ))
        .into();
    }
    let lead = |s: &Ints| s[..s.len() - 2].iter().map(|&d| d as usize).collect::<crate::layout::Dims>();
    let batch = match broadcast(&lead(&sa), &lead(&sb)) {
        Ok(b) => b,
        Err(e) => return e.into(),
    };
    let sizes = |r: i64, c: i64| -> Ints { batch.iter().map(|&d| d as i64).chain([r, c]).collect() };
    let count: usize = batch.iter().product();
    let flat = |t: Term, r: i64, c: i64| EXPAND.call((t, sizes(r, c))).reshape(&[count as i64, r, c]);
    UNSAFE_VIEW.call((BMM.call((flat(a, n, k), flat(b, k, m))), sizes(n, m)))
}

impl Term {
    pub fn t(self) -> Term {
        T.call((self,))
    }
    pub fn mt(self) -> Term {
        TRANSPOSE.call((self, -2, -1))
    }
    pub fn mm(self, b: Term) -> Term {
        MM.call((self, b))
    }
    pub fn squeeze(self, dim: i64) -> Term {
        crate::ops::view::reshape::SQUEEZE_DIM.call((self, dim))
    }
}

/// Drops a dimension of size one from a new result; a separate op, so that `grad_fn` has PyTorch's name.
pub static DROP_DIM: Op = Op {
    sig: sig("_squeeze(Tensor self, Dim dim) -> Tensor"),
    doc: "Drops a dimension of size one.",
    forms: HIDDEN,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        let dim = c.dim("dim");
        Ok(t.layout().squeeze(|d| d == dim))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    node: "SqueezeBackward4",
    keeps: Some("dim self_sym_sizes"),
    samples: &["f32[1,3], 0"],
    errors: &[("f32[2], 1", "IndexError", "Dimension out of range")],
    ..OP
};
