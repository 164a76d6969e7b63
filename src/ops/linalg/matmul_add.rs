//! Products added to a tensor: addmm, addmv, addbmm, baddbmm, addr: `beta * self + alpha * product`.
//!
//! The matrix product adds to self, or accumulates into a copy of it, so the sum needs no separate pass. If `beta` is zero, self is
//! not read: its NaNs are ignored.

use super::matmul::{BMM, left_gradient, product_of, product_then, right_gradient};
use crate::cpu::epilogue::Epilogue;
use crate::cpu::gemm;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::layout::Dims;
use crate::op::*;
use crate::ops::support::batch_linalg;
use crate::ops::view::reshape::PERMUTE;
use crate::rt::reserve::list;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&ADDMM, &ADDMV, &ADDBMM, &BADDBMM, &ADDR];

/// self must broadcast to the product's shape and have its dtype.
fn spec(c: &Call, shape: &[usize]) -> Result<Specs> {
    let (s, a, b) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    for (name, t) in [("mat1", a), ("self", s)] {
        if t.dtype() != b.dtype() {
            return Err(Error::runtime(format!(
                "{name} and mat2 must have the same dtype, but got {} and {}",
                t.dtype().scalar_type_name(),
                b.dtype().scalar_type_name()
            )));
        }
    }
    let sizes: Ints = shape.iter().map(|&d| d as i64).collect();
    s.layout().expand(&sizes)?;
    Ok(Spec::one(shape, a.dtype(), a.device()))
}

/// `beta * self + alpha * a @ b`, with the operands viewed as matrices or batches of them.
fn added(c: &Call, [out, a, b, seen]: [&Tensor; 4], then: Option<&Epilogue>) -> Result<()> {
    let (beta, alpha) = (c.scalar("beta")?, c.scalar("alpha")?);
    if !out.dtype().is_complex() {
        for complex in [beta, alpha].iter().filter(|s| matches!(s, Scalar::Complex(..))) {
            complex.check_fits(out.dtype())?;
        }
    }
    if [beta, alpha].iter().any(|s| s.to_c128().im != 0.0) {
        return scaled_apart(c, out, a, b, seen);
    }
    let (beta, alpha) = (beta.to_f64(), alpha.to_f64());
    if beta != 0.0 {
        if out.shape() == seen.shape()
            && let Some(old) = addend(c.tensor(0)?, seen)?
        {
            let views = [a.cpu_view()?, b.cpu_view()?, old.cpu_view()?, seen.cpu_view()?];
            return gemm::matmul_onto(views, [alpha, beta], then);
        }
        out.copy_raw(c.tensor(0)?)?;
    }
    if a.size(a.ndim() - 1) == 0 && beta == 0.0 {
        return out.fill_raw(crate::dtype::Scalar::Int(0));
    }
    match then {
        Some(then) => product_then(a, b, seen, [alpha, beta], then),
        None => product_of(a, b, seen, alpha, beta),
    }
}

/// What a product is added to, of the result's shape, where it is read as it is; else it is copied to the result.
fn addend(t: &Tensor, out: &Tensor) -> Result<Option<Tensor>> {
    if t.device() != Device::Cpu || t.dtype() != out.dtype() || t.ndim() > out.ndim() {
        return Ok(None);
    }
    let sizes: Ints = out.shape().iter().map(|&d| d as i64).collect();
    let old = t.with_layout(t.layout().expand(&sizes)?);
    let fits = gemm::adds(&old.cpu_view()?, &out.cpu_view()?);
    Ok(fits.then_some(old))
}

/// The factors of the matrix product are real, so complex ones are applied afterwards.
fn scaled_apart(c: &Call, out: &Tensor, a: &Tensor, b: &Tensor, seen: &Tensor) -> Result<()> {
    if a.size(a.ndim() - 1) == 0 {
        out.fill_raw(Scalar::Int(0))?;
    } else {
        product_of(a, b, seen, 1.0, 0.0)?;
    }
    let (beta, product) = (c.scalar("beta")?, Term::from(out) * c.scalar("alpha")?);
    let unread = beta.to_c128() == num_complex::Complex::ZERO;
    out.copy_raw(&(if unread { product } else { product + Term::from(c.tensor(0)?) * beta }).ok()?)
}

fn added_matrices(c: &Call, out: &[Tensor]) -> Result<()> {
    added(c, [&out[0], c.tensor(1)?, c.tensor(2)?, &out[0]], None)
}
fn added_matrices_then(c: &Call, out: &[Tensor], then: &Epilogue) -> Result<()> {
    added(c, [&out[0], c.tensor(1)?, c.tensor(2)?, &out[0]], Some(then))
}
fn added_vector(c: &Call, out: &[Tensor]) -> Result<()> {
    let column = |t: &Tensor| t.with_layout(t.layout().unsqueeze(1));
    added(c, [&out[0], c.tensor("mat")?, &column(c.tensor("vec")?), &column(&out[0])], None)
}

pub(crate) fn check_mm(a: &Tensor, b: &Tensor) -> Result<()> {
    for (t, name) in [(a, "self"), (b, "mat2")] {
        if t.ndim() != 2 {
            return Err(Error::runtime(format!("{name} must be a matrix, got {}-D tensor", t.ndim())));
        }
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
    Ok(())
}

/// Elements that alias one location accumulate sequentially, `p = beta * p + x`, as in PyTorch. Equivalent: sum the
/// factors over the aliased dimensions, weighted by powers of beta.
const ONE_AFTER_ANOTHER: Option<Expanded> = Some(Expanded { warning: None, once: |c| summed(c).map(Some) });

fn summed(c: &Call) -> Result<Args<'static>> {
    if let Body::Kernel(k) = &c.op.body {
        (k.infer)(c)?;
    }
    let (t, beta) = (c.tensor(0)?, c.scalar("beta")?.to_f64());
    let (mut a, mut b) = (Term::from(c.tensor(1)?), Term::from(c.tensor(2)?));
    let rows = t.ndim().saturating_sub(2);
    let mut steps = 1usize;
    for d in (0..t.ndim()).rev().filter(|&d| t.strides()[d] == 0 && t.size(d) > 1) {
        let n = t.size(d);
        let power = |i: usize| beta.powi(i32::try_from(steps.saturating_mul(n - 1 - i)).unwrap_or(i32::MAX));
        let weights = list((0..n).map(power))?;
        let weights = Term(Tensor::from_slice(&weights, &[n])).to_device(t.device()).to_dtype(t.dtype());
        steps = steps.saturating_mul(n);
        if d == rows {
            a = (a * weights.unsqueeze(-1)).sum(&[-2], true).to_dtype(t.dtype());
        } else if d > rows {
            b = (b * weights).sum(&[-1], true).to_dtype(t.dtype());
        } else {
            // The sum over a batch is one product with longer rows and columns.
            let (from, to) = (a.sizes(), b.sizes());
            let inner = n as i64 * from[2];
            let weighted = a * weights.unsqueeze(-1).unsqueeze(-1);
            a = PERMUTE.call((weighted, [1, 0, 2])).reshape(&[1, from[1], inner]);
            b = b.reshape(&[1, inner, to[2]]);
        }
    }
    let whole = t.with_layout(t.layout().unexpanded());
    let beta = Scalar::Float(beta.powi(steps as i32));
    Ok(smallvec![
        Value::Owned(whole),
        Value::Owned(a.ok()?),
        Value::Owned(b.ok()?),
        beta.into(),
        c.argument("alpha").clone().into_owned()
    ])
}

/// The gradient times the real or complex number in argument `i`.
fn scaled(c: &VjpCtx, i: usize) -> Term {
    c.g_times(i)
}

pub static ADDMM: Op = Op {
    sig: sig("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    deprecated: &[
        sig("addmm(Scalar beta, Tensor self, Scalar alpha, Tensor mat1, Tensor mat2) -> Tensor"),
        sig("addmm(Scalar beta, Tensor self, Tensor mat1, Tensor mat2) -> Tensor"),
    ],
    doc: "`beta * self + alpha * mat1 @ mat2` for matrices [n, k] and [k, m]; `self` broadcasts to [n, m].",
    forms: FMIO,
    body: product(
        |c| {
            let (a, b) = (c.tensor("mat1")?, c.tensor("mat2")?);
            check_mm(a, b)?;
            spec(c, &[a.size(0), b.size(1)])
        },
        added_matrices,
        Some(added_matrices),
        added_matrices_then,
    ),
    vjp: Vjp::Each(&[
        d(0, 0, |c| scaled(c, 3)),
        d(1, A2, |c| left_gradient(c, scaled(c, 4), 1)),
        d(2, A1, |c| right_gradient(c, scaled(c, 4), 2)),
    ]),
    samples: &[
        "f32[2,4], f32[2,3], f32[3,4]",
        "f32[4], f32[2,3], f32[3,4], beta=0.5, alpha=2",
        "i64[2,2], i64[2,3], i64[3,2]",
        "c64[2,2], c64[2,2], c64[2,2]",
        "c64[2,2], c64[2,2], c64[2,2], beta=1+2j, alpha=0.5j",
    ],
    errors: &[
        ("f32[4], f32[2,3], f32[2,4]", "RuntimeError", "cannot be multiplied"),
        ("f32[5], f32[2,3], f32[3,4]", "RuntimeError", "must match the existing size"),
        ("f32[4], f32[3], f32[3,4]", "RuntimeError", "must be a matrix"),
    ],
    reference: "beta * x0 + alpha * (x1 @ x2)",
    keeps: Some("alpha beta mat1 mat1_sym_sizes mat2 mat2_sym_sizes"),
    batch: Batching::Rule(batch_linalg::product_added),
    ..OP
};

pub static ADDMV: Op = Op {
    sig: sig("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    deprecated: &[
        sig("addmv(Scalar beta, Tensor self, Scalar alpha, Tensor mat, Tensor vec) -> Tensor"),
        sig("addmv(Scalar beta, Tensor self, Tensor mat, Tensor vec) -> Tensor"),
    ],
    doc: "`beta * self + alpha * mat @ vec` for a matrix [n, k] and a vector [k]; `self` broadcasts to [n].",
    forms: FMIO,
    body: kernel(
        |c| {
            let (s, a, v) = (c.tensor(0)?, c.tensor("mat")?, c.tensor("vec")?);
            if a.ndim() != 2 || v.ndim() != 1 || s.ndim() > 1 {
                return Err(Error::runtime(format!(
                    "vector + matrix @ vector expected, got {}, {}, {}",
                    s.ndim(),
                    a.ndim(),
                    v.ndim()
                )));
            }
            if a.size(1) != v.size(0) {
                let n = s.shape().first().copied().unwrap_or(1);
                return Err(Error::runtime(format!(
                    "size mismatch, got input ({n}), mat ({}x{}), vec ({})",
                    a.size(0),
                    a.size(1),
                    v.size(0)
                )));
            }
            spec(c, &[a.size(0)])
        },
        added_vector,
        Some(added_vector),
    ),
    vjp: Vjp::Each(&[
        d(0, 0, |c| scaled(c, 3)),
        d(1, A2, |c| scaled(c, 4).unsqueeze(1) * c.arg(2).conj()),
        d(2, A1, |c| super::vector_products::MV.call((c.arg(1).t().conj(), scaled(c, 4)))),
    ]),
    samples: &["f32[2], f32[2,3], f32[3]", "f32[2], f32[2,3], f32[3], beta=0.5, alpha=2"],
    errors: &[("f32[2], f32[2,3], f32[2]", "RuntimeError", "size mismatch")],
    expanded: ONE_AFTER_ANOTHER,
    reference: "beta * x0 + alpha * (x1 @ x2)",
    batch: Batching::Rule(batch_linalg::product_added),
    ..OP
};

fn check_batches(a: &Tensor, b: &Tensor) -> Result<()> {
    for (t, name) in [(a, "batch1"), (b, "batch2")] {
        if t.ndim() != 3 {
            return Err(Error::runtime(format!("{name} must be a 3D tensor, got shape {}", Show(t.shape()))));
        }
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
    Ok(())
}

pub static BADDBMM: Op = Op {
    sig: sig("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    deprecated: &[
        sig("baddbmm(Scalar beta, Tensor self, Scalar alpha, Tensor batch1, Tensor batch2) -> Tensor"),
        sig("baddbmm(Scalar beta, Tensor self, Tensor batch1, Tensor batch2) -> Tensor"),
    ],
    doc: "`beta * self + alpha * batch1 @ batch2` for batches [b, n, k] and [b, k, m]; `self` broadcasts to [b, n, m].",
    forms: FMIO,
    body: product(
        |c| {
            let (a, b) = (c.tensor("batch1")?, c.tensor("batch2")?);
            check_batches(a, b)?;
            spec(c, &[a.size(0), a.size(1), b.size(2)])
        },
        added_matrices,
        Some(added_matrices),
        added_matrices_then,
    ),
    vjp: Vjp::Each(&[
        d(0, 0, |c| scaled(c, 3)),
        d(1, A2, |c| BMM.call((scaled(c, 4), c.arg(2).mt().conj()))),
        d(2, A1, |c| BMM.call((c.arg(1).mt().conj(), scaled(c, 4)))),
    ]),
    samples: &["f32[2,3,2], f32[2,3,4], f32[2,4,2]", "f32[3,2], f32[2,3,4], f32[2,4,2], beta=0.5, alpha=2"],
    errors: &[("f32[3,2], f32[2,3,4], f32[2,3,2]", "RuntimeError", "Expected size for first two dimensions")],
    reference: "beta * x0 + alpha * (x1 @ x2)",
    expanded: ONE_AFTER_ANOTHER,
    batch: Batching::Rule(batch_linalg::product_added),
    ..OP
};

pub static ADDBMM: Op = Op {
    sig: sig("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    deprecated: &[
        sig("addbmm(Scalar beta, Tensor self, Scalar alpha, Tensor batch1, Tensor batch2) -> Tensor"),
        sig("addbmm(Scalar beta, Tensor self, Tensor batch1, Tensor batch2) -> Tensor"),
    ],
    doc: "`beta * self + alpha * sum(batch1 @ batch2)` over the batch: [b, n, k] and [b, k, m] give [n, m].",
    forms: FMIO,
    body: decompose(|c| {
        let (a, b) = (c.tensor("batch1")?, c.tensor("batch2")?);
        check_batches(a, b)?;
        let [batch, n, k, m] = [a.size(0), a.size(1), a.size(2), b.size(2)].map(|d| d as i64);
        let rows = PERMUTE.call((a, [1, 0, 2])).reshape(&[n, batch * k]);
        let columns = Term::from(b).reshape(&[batch * k, m]);
        ADDMM.calls((c.tensor(0)?, rows, columns, c.scalar("beta")?, c.scalar("alpha")?))
    }),
    vjp: Vjp::Each(&[
        d(0, 0, |c| scaled(c, 3)),
        d(1, A2, |c| BMM.call((over_batch(c), c.arg(2).mt().conj()))),
        d(2, A1, |c| BMM.call((c.arg(1).mt().conj(), over_batch(c)))),
    ]),
    samples: &["f32[3,2], f32[2,3,4], f32[2,4,2]", "f32[2], f32[2,3,4], f32[2,4,2], beta=0.5, alpha=2"],
    errors: &[("f32[3,2], f32[2,3,4], f32[2,3,2]", "RuntimeError", "Expected size for first two dimensions")],
    reference: "beta * x0 + alpha * (x1 @ x2).sum(0)",
    keeps: Some("alpha batch1 batch1_sym_argsize_0 batch1_sym_argsize_1 batch2 batch2_sym_argsize_2 beta"),
    ..OP
};

/// The scaled gradient, expanded over the products of the batch.
fn over_batch(c: &VjpCtx) -> Term {
    let g = scaled(c, 4);
    let sizes: Ints = [c.shape(1)[0] as i64].into_iter().chain(g.sizes()).collect();
    g.expand(&sizes)
}

/// The factors of `addr` do not promote its operands; bool factors are an error for numeric operands.
fn check_factor(name: &str, factor: Scalar, common: DType) -> Result<()> {
    match factor {
        Scalar::Bool(_) if common != DType::Bool => {
            Err(Error::runtime(format!("Boolean {name} only supported for Boolean results.")))
        }
        Scalar::Float(_) | Scalar::Complex(..) if !common.is_differentiable() => Err(Error::runtime(format!(
            "For integral input tensors, argument {name} must not be a floating point number."
        ))),
        Scalar::Complex(..) => factor.check_fits(common),
        _ => Ok(()),
    }
}

/// For bools, a product is "and", a sum "or", and a factor keeps or drops its operand.
fn addr_of_bools(c: &Call) -> Result<Outputs> {
    let (beta, alpha) = (c.scalar("beta")?.to_bool(), c.scalar("alpha")?.to_bool());
    let product =
        Term::from(c.tensor("vec1")?).unsqueeze(1).both(Term::from(c.tensor("vec2")?)).both(Term::number(alpha.into()));
    let product = product.to_dtype(DType::Bool);
    if beta { Term::from(c.tensor(0)?).either(product).outputs() } else { product.outputs() }
}

pub static ADDR: Op = Op {
    sig: sig("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    deprecated: &[
        sig("addr(Scalar beta, Tensor self, Scalar alpha, Tensor vec1, Tensor vec2) -> Tensor"),
        sig("addr(Scalar beta, Tensor self, Tensor vec1, Tensor vec2) -> Tensor"),
    ],
    doc: "`beta * self + alpha * outer(vec1, vec2)`; `self` broadcasts to [n, m].",
    forms: FMIO,
    body: decompose(|c| {
        let (v, w) = (c.tensor("vec1")?, c.tensor("vec2")?);
        if v.ndim() != 1 || w.ndim() != 1 {
            return Err(Error::runtime(format!(
                "addr: Expected 1-D argument vec1 and vec2, but got {}-D and {}-D",
                v.ndim(),
                w.ndim()
            )));
        }
        let shape: Dims = [v.size(0), w.size(0)].as_slice().into();
        let sizes: Ints = shape.iter().map(|&d| d as i64).collect();
        c.tensor(0)?.layout().expand(&sizes)?;
        let mut operands = crate::dtype::Operands::default();
        c.all_tensors().try_for_each(|t| operands.tensor(t.dtype(), t.ndim()))?;
        let common = operands.result().unwrap_or(v.dtype());
        check_factor("beta", c.scalar("beta")?, common)?;
        check_factor("alpha", c.scalar("alpha")?, common)?;
        if common == DType::Bool {
            return addr_of_bools(c);
        }
        let product = Term::from(v).to_dtype(common).unsqueeze(1) * w * c.scalar("alpha")?;
        let beta = c.scalar("beta")?;
        if beta.to_c128() == num_complex::Complex::ZERO {
            product.outputs()
        } else {
            (Term::from(c.tensor(0)?).to_dtype(common) * beta + product).outputs()
        }
    }),
    vjp: Vjp::Each(&[
        d(0, 0, |c| scaled(c, 3)),
        d(1, A2, |c| super::vector_products::MV.call((scaled(c, 4), c.arg(2).conj()))),
        d(2, A1, |c| super::vector_products::MV.call((scaled(c, 4).t(), c.arg(1).conj()))),
    ]),
    samples: &[
        "f32[2,3], f32[2], f32[3]",
        "f32[3], f32[2], f32[3], beta=0.5, alpha=2",
        "b8[2,3], b8[2], b8[3]",
        "b8[3], b8[2], b8[3], beta=0",
        "u8[2,3], b8[2], b8[3]",
        "i64[3], f32[2](nograd), u8[3]",
    ],
    errors: &[
        ("f32[2,3], f32[2,1], f32[3]", "RuntimeError", "Expected 1-D argument"),
        ("i64[2,3], i64[2], i64[3], beta=0.5", "RuntimeError", "must not be a floating point number"),
        ("f32[2,3], f32[2], f32[3], beta=True", "RuntimeError", "Boolean beta only supported for Boolean results."),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};
