//! Products of vectors and ops built from them: mv, dot, vdot, outer, trace, inner, kron, tensordot.

use super::matmul::{MM, product_of, same_dtype};
use crate::cpu::reduce::{Reduce, reduce};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::Layout;
use crate::op::*;
use crate::ops::movement::copy::COPY_;
use crate::ops::reduce::sum_prod::{SUM, SUM_DIM};
use crate::ops::support::batch_linalg;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::as_strided::AS_STRIDED;
use crate::ops::view::reshape::{PERMUTE, UNSAFE_VIEW};
use crate::ops::view::slice::DIAGONAL;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&MV, &DOT, &VDOT, &OUTER, &TRACE, &INNER, &KRON, &TENSORDOT, &TENSORDOT_DIMS, &VECDOT];

fn column(t: &Tensor) -> Tensor {
    t.with_layout(t.layout().unsqueeze(t.ndim()))
}
fn row(t: &Tensor) -> Tensor {
    t.with_layout(t.layout().unsqueeze(0))
}

fn mv(c: &Call, out: &[Tensor]) -> Result<()> {
    product_of(c.tensor(0)?, &column(c.tensor("vec")?), &column(&out[0]), 1.0, 0.0)
}

pub static MV: Op = Op {
    sig: sig("mv(Tensor self, Tensor vec) -> Tensor"),
    doc: "The product of a matrix [n, k] and a vector [k]: [n].",
    forms: FMO,
    body: kernel(
        |c| {
            let (a, v) = (c.tensor(0)?, c.tensor("vec")?);
            if a.ndim() != 2 || v.ndim() != 1 {
                return Err(Error::runtime(format!(
                    "vector + matrix @ vector expected, got 1, {}, {}",
                    a.ndim(),
                    v.ndim()
                )));
            }
            if a.size(1) != v.size(0) {
                return Err(Error::runtime(format!(
                    "size mismatch, got input ({}), mat ({}x{}), vec ({})",
                    a.size(0),
                    a.size(0),
                    a.size(1),
                    v.size(0)
                )));
            }
            same_dtype(a, v)?;
            Ok(Spec::one(&[a.size(0)], a.dtype(), a.device()))
        },
        mv,
        Some(mv),
    ),
    jvp: Jvp::Multilinear(&[]),
    vjp: Vjp::Each(&[
        d(0, A1, |c| c.g().unsqueeze(1) * c.arg(1).conj()),
        d(1, A0, |c| MV.call((c.arg(0).t().conj(), c.g()))),
    ]),
    samples: &["f32[2,3], f32[3]", "i64[2,3], i64[3]", "c64[2,2], c64[2]"],
    errors: &[("f32[2,3], f32[2]", "RuntimeError", "size mismatch")],
    reference: "x0 @ x1",
    batch: Batching::Rule(batch_linalg::matmul),
    ..OP
};

fn infer_dot(c: &Call) -> Result<Specs> {
    let (a, b) = (c.tensor(0)?, c.tensor(1)?);
    if a.ndim() != 1 || b.ndim() != 1 {
        return Err(Error::runtime(format!("1D tensors expected, but got {}D and {}D tensors", a.ndim(), b.ndim())));
    }
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            a.dtype().scalar_type_name(),
            b.dtype().scalar_type_name()
        )));
    }
    if a.size(0) != b.size(0) {
        return Err(Error::runtime(format!(
            "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} and {m} elements respectively",
            n = a.size(0),
            m = b.size(0)
        )));
    }
    Ok(Spec::one(&[], a.dtype(), a.device()))
}

/// Elements of a part of a long dot product.
const PART: usize = 1 << 15;

/// A long one in parts, whose number does not depend on that of the threads: neither do the bits.
fn dot(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    let (n, narrow) = (a.numel(), matches!(a.dtype(), DType::F16 | DType::BF16 | DType::C32));
    if n < 2 * PART || narrow || !a.dtype().is_differentiable() || a.device().is_gpu() {
        return short_dot(a, b, out);
    }
    let (parts, size) = (n / PART, PART as i64);
    let split = |t: &Tensor, matrix: [i64; 2]| -> Result<Tensor> {
        let whole = t.layout().slice(0, (0, parts * PART, 1));
        Ok(t.with_layout(whole.view(&[parts as i64, matrix[0], matrix[1]])?))
    };
    let rest = |t: &Tensor| t.with_layout(t.layout().slice(0, (parts * PART, n - parts * PART, 1)));
    let sums = Tensor::empty(&[parts + 1], a.dtype(), a.device())?;
    let [firsts, last] = [(0, parts, 1), (parts, 1, 1)].map(|range| sums.layout().slice(0, range));
    let firsts = sums.with_layout(firsts.view(&[parts as i64, 1, 1])?);
    product_of(&split(a, [1, size])?, &split(b, [size, 1])?, &firsts, 1.0, 0.0)?;
    short_dot(&rest(a), &rest(b), &sums.with_layout(last))?;
    reduce(Reduce::Sum, sums.cpu_view()?, &[0], column(out).cpu_view()?)
}

fn short_dot(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    let seen = out.with_layout(Layout { offset: out.layout().offset, ..Layout::contiguous(&[1, 1]) });
    product_of(&row(a), &column(b), &seen, 1.0, 0.0)
}

fn run_dot(c: &Call, out: &[Tensor]) -> Result<()> {
    dot(c.tensor(0)?, c.tensor("tensor")?, &out[0])
}
fn run_vdot(c: &Call, out: &[Tensor]) -> Result<()> {
    let a = Term::from(c.tensor(0)?).conj().ok()?;
    dot(&a, c.tensor("other")?, &out[0])
}

pub static DOT: Op = Op {
    sig: sig("dot(Tensor self, Tensor tensor) -> Tensor"),
    doc: "The dot product of two vectors: `sum(self * tensor)`, no conjugation.",
    forms: FMO,
    body: kernel(infer_dot, run_dot, Some(run_dot)),
    jvp: Jvp::Multilinear(&[]),
    vjp: Vjp::Each(&[d(0, A1, |c| c.g() * c.arg(1).conj()), d(1, A0, |c| c.g() * c.arg(0).conj())]),
    samples: &["f32[3], f32[3]", "i64[3], i64[3]", "c64[3], c64[3]", "f32[0], f32[0]"],
    errors: &[
        ("f32[3], f32[2]", "RuntimeError", "inconsistent tensor size"),
        ("f32[2,2], f32[2]", "RuntimeError", "1D tensors expected"),
    ],
    reference: "np.dot(x0, x1)",
    batch: Batching::Rule(batch_linalg::matmul),
    ..OP
};

pub static VDOT: Op = Op {
    sig: sig("vdot(Tensor self, Tensor other) -> Tensor"),
    doc: "The dot product of two vectors, the first one conjugated.",
    forms: FMO,
    body: kernel(infer_dot, run_vdot, Some(run_vdot)),
    jvp: Jvp::Multilinear(&[]),
    vjp: Vjp::Each(&[d(0, A1, |c| c.g().conj() * c.arg(1)), d(1, A0, |c| c.g() * c.arg(0))]),
    samples: &["f32[3], f32[3]", "c64[3], c64[3]"],
    errors: &[("f32[3], f32[2]", "RuntimeError", "inconsistent tensor size")],
    reference: "np.vdot(x0, x1)",
    batch: Batching::Rule(batch_linalg::vdot),
    ..OP
};

pub static OUTER: Op = Op {
    sig: sig("outer(Tensor self, Tensor vec2) -> Tensor"),
    doc: "The products of each element of one vector with each of another: [n] and [m] give [n, m].",
    aliases: &["ger"],
    forms: FMO,
    body: decompose(|c| {
        for (i, name) in [(0, "self"), (1, "vec2")] {
            let n = c.tensor(i)?.ndim();
            if n != 1 {
                return Err(Error::runtime(format!("Expected 1-D argument {name}, but got {n}-D")));
            }
        }
        (Term::from(c.tensor(0)?).reshape(&[-1, 1]) * c.tensor("vec2")?).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2], f32[3]", "i64[2], f32[3]", "c64[2], c64[2]"],
    errors: &[("f32[2,2], f32[3]", "RuntimeError", "Expected 1-D argument self")],
    reference: "np.outer(x0, x1)",
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

pub static TRACE: Op = Op {
    sig: sig("trace(Tensor self) -> Tensor"),
    doc: "The sum of the diagonal of a matrix.",
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if t.ndim() != 2 {
            return Err(Error::runtime(format!("expected a matrix, but got tensor with dim {}", t.ndim())));
        }
        if t.dtype() == DType::Bool {
            return Err(no_kernel("trace", DType::Bool));
        }
        SUM.calls((DIAGONAL.call((t,)),))
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let shape = c.shape(0);
        let (n, step) = (shape[0].min(shape[1]) as i64, shape[1] as i64 + 1);
        let written = c.g().0.and_then(|g| {
            let whole = crate::ops::create::full::ZEROS.call((shape.as_slice(), g.dtype(), g.device())).ok()?;
            COPY_.call_inplace((AS_STRIDED.call((&whole, [n], [step])), &g)).map(|_| whole)
        });
        Term(written)
    })]),
    samples: &["f32[3,3]", "f32[2,4]", "i64[3,3]"],
    errors: &[("f32[3]", "RuntimeError", "expected a matrix")],
    reference: "np.trace(x0)",
    keeps: Some("self_sym_sizes"),
    ..OP
};

pub static INNER: Op = Op {
    sig: sig("inner(Tensor self, Tensor other) -> Tensor"),
    doc: "The dot products over the last dimensions: [.., k] and [.., k]; a number multiplies.",
    forms: FMO,
    body: decompose(|c| {
        let (a, b) = (c.tensor(0)?, c.tensor("other")?);
        if a.ndim() == 0 || b.ndim() == 0 {
            return (Term::from(a) * b).outputs();
        }
        if a.shape().last() != b.shape().last() {
            return Err(Error::runtime(format!(
                "inner() the last dimension must match on both input tensors but got shapes {} and {}",
                Show(a.shape()),
                Show(b.shape())
            )));
        }
        tensordot(a, b, &[-1], &[-1])?.outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3], f32[3]", "f32[2,3], f32[4,3]", "f32[], f32[2]"],
    errors: &[("f32[3], f32[2]", "RuntimeError", "the last dimension must match")],
    reference: "np.inner(x0, x1)",
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static VECDOT: Op = Op {
    sig: sig("linalg.vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor"),
    doc: "The dot products of vectors along a dimension, the first conjugated; other dimensions broadcast.",
    forms: FO,
    body: decompose(|c| {
        let (x, y) = (c.tensor("x")?, c.tensor("y")?);
        if x.dtype().is_complex() && x.ndim() == 1 && x.shape() == y.shape() && x.dtype() == y.dtype() {
            crate::layout::wrap_dim(c.int("dim")?, 1)?;
            return VDOT.calls((x, y));
        }
        SUM_DIM.call((Term::from(x).conj() * y, [c.int("dim")?])).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[2,3], dim=0", "c64[3], c64[3]"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match the size")],
    reference: "np.sum(np.conj(x0) * x1, axis=dim)",
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static KRON: Op = Op {
    sig: sig("kron(Tensor self, Tensor other) -> Tensor"),
    doc: "The Kronecker product: each element of `self` times all of `other`, as blocks.",
    forms: FMO,
    body: decompose(|c| {
        let (a, b) = (c.tensor(0)?, c.tensor("other")?);
        let n = a.ndim().max(b.ndim());
        let padded = |t: &Tensor| -> Vec<i64> {
            std::iter::repeat_n(1, n - t.ndim()).chain(t.shape().iter().map(|&d| d as i64)).collect()
        };
        let (sa, sb) = (padded(a), padded(b));
        let apart =
            |s: &[i64], first: bool| -> Ints { s.iter().flat_map(|&d| if first { [d, 1] } else { [1, d] }).collect() };
        let product = Term::from(a).reshape(&apart(&sa, true)) * Term::from(b).reshape(&apart(&sb, false));
        let sizes: Ints = sa.iter().zip(&sb).map(|(x, y)| x.saturating_mul(*y)).collect();
        let merges = product
            .get()
            .is_none_or(|t| t.layout().view_strides(&sizes.iter().map(|&d| d as usize).collect::<Vec<_>>()).is_some());
        UNSAFE_VIEW.call((if merges { product } else { product.packed() }, sizes)).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,2], f32[2,3]", "f32[3], f32[2,2]"],
    errors: &[("'a', f32[2]", "TypeError", "must be Tensor")],
    reference: "np.kron(x0, x1)",
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

pub static TENSORDOT: Op = Op {
    sig: sig("tensordot(Tensor a, Tensor b, int dims=2) -> Tensor"),
    doc: "Sums products over the last `dims` dimensions of `a` and the first of `b`.",
    forms: FO,
    body: decompose(|c| {
        let (a, b, n) = (c.tensor("a")?, c.tensor("b")?, c.int("dims")?);
        if n < 0 {
            return Err(Error::runtime(format!("tensordot expects dims >= 0, but got dims={n}")));
        }
        if n as usize > a.ndim().min(b.ndim()) {
            return Err(Error::runtime(format!("tensordot expects dims < ndim_a or ndim_b, but got dims={n}")));
        }
        // Bounded by the number of dimensions, both.
        let (last, first): (Vec<i64>, Vec<i64>) = ((-n..0).collect(), (0..n).collect());
        tensordot(a, b, &last, &first)?.outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[3,4], 1", "f32[2,3,4], f32[3,4,2]", "f32[2], f32[3], 0"],
    errors: &[
        ("f32[2,3], f32[2,3], -1", "RuntimeError", "dims >= 0"),
        ("f32[2,3], f32[2,3], 1", "RuntimeError", "contracted dimensions need to match"),
    ],
    reference: "np.tensordot(x0, x1, dims)",
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static TENSORDOT_DIMS: Op = Op {
    sig: sig("_tensordot(Tensor a, Tensor b, int[] dims_self, int[] dims_other) -> Tensor"),
    doc: "Sums products over pairs of dimensions: what `tensordot` with two lists calls.",
    forms: Forms(Forms::HIDDEN | Forms::OUT),
    body: decompose(|c| {
        tensordot(c.tensor("a")?, c.tensor("b")?, c.ints("dims_self")?, c.ints("dims_other")?)?.outputs()
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3,4], f32[4,2], (0, 2), (1, 0)",
        "f32[1,2], f32[3,2], (0, 1), (0, 1)",
        "u8[1,1,1], u8[2,1,2], (0, 1), (2, 0)",
    ],
    errors: &[("f32[2,3], f32[2,3], (0,), (1,)", "RuntimeError", "contracted dimensions need to match")],
    out_dtype: Some(OutDType::Same),
    ..OP
};

/// `t` summed over those of its contracted dimensions that are contracted with a dimension of size one.
fn single(t: &Tensor, dims: &[usize], other: &Tensor, others: &[usize]) -> Result<Tensor> {
    let alone: Ints = dims.iter().zip(others).filter(|(_, o)| other.size(**o) == 1).map(|(&d, _)| d as i64).collect();
    if alone.iter().all(|&d| t.size(d as usize) == 1) {
        return Ok(t.clone());
    }
    SUM_DIM.call((t, alone, true, t.dtype())).ok()
}

/// Permutes so that the contracted dimensions are adjacent, multiplies as matrices, and restores the shape of the rest.
fn tensordot(a: &Tensor, b: &Tensor, dims_a: &[i64], dims_b: &[i64]) -> Result<Term> {
    if dims_a.len() != dims_b.len() {
        return Err(Error::runtime("both dimension lists should have same length"));
    }
    let da = crate::layout::wrap_dims(dims_a, a.ndim())?;
    let db = crate::layout::wrap_dims(dims_b, b.ndim())?;
    let (a, b) = (&single(a, &da, b, &db)?, &single(b, &db, a, &da)?);
    for (&x, &y) in da.iter().zip(&db) {
        if a.size(x) != b.size(y) {
            return Err(Error::runtime(format!(
                "contracted dimensions need to match, but first has size {} in dim {x} and second has size {} in dim {y}",
                a.size(x),
                b.size(y)
            )));
        }
    }
    let rest = |t: &Tensor, used: &[usize]| -> Vec<usize> { (0..t.ndim()).filter(|d| !used.contains(d)).collect() };
    let (ra, rb) = (rest(a, &da), rest(b, &db));
    let count = |t: &Tensor, dims: &[usize]| dims.iter().map(|&d| t.size(d) as i64).product::<i64>();
    let order = |x: &[usize], y: &[usize]| -> Ints { x.iter().chain(y).map(|&d| d as i64).collect() };
    let k = count(a, &da);
    let left = PERMUTE.call((a, order(&ra, &da))).reshape(&[count(a, &ra), k]);
    let right = PERMUTE.call((b, order(&db, &rb))).reshape(&[k, count(b, &rb)]);
    let sizes: Ints = ra.iter().map(|&d| a.size(d) as i64).chain(rb.iter().map(|&d| b.size(d) as i64)).collect();
    Ok(MM.call((left, right)).reshape(&sizes))
}
