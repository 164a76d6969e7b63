//! QR and products of Householder reflections.

use super::checks::*;
use super::on_gpu;
use super::solve::triangular;
use crate::cpu::linalg::{At, Batch, Field, reflect};
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::op::*;
use crate::ops::create::range::EYE_M;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&QR_STEP, &QR, &GEQRF, &HOUSEHOLDER_PRODUCT, &ORMQR];

/// The QR factorization of a matrix; Q only with `with_q`; the output's columns select the reduced or the complete
/// form.
struct Qr {
    with_q: bool,
}
impl Batch for Qr {
    const SCRATCH: usize = 6;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let taus = reflect::qr(&mut a)?;
        if self.with_q {
            let cols = at.cols(1);
            at.store(1, &reflect::q(&a, &taus, cols)?);
        }
        let rows = if self.with_q { at.cols(1) } else { taus.len() };
        let mut r = a.block(0..rows, 0..a.cols);
        for i in 0..r.rows {
            let end = i.min(r.cols);
            r.row_mut(i)[..end].fill(T::default());
        }
        at.store(2, &r);
        Ok(())
    }
}

/// What is wanted of Q: whether it is complete, and whether there is one.
#[derive(Clone, Copy)]
struct Mode {
    complete: bool,
    with_q: bool,
}
impl Enumerated for Mode {
    const VALUES: &'static [(&'static str, Mode)] = &[
        ("reduced", Mode { complete: false, with_q: true }),
        ("complete", Mode { complete: true, with_q: true }),
        ("r", Mode { complete: false, with_q: false }),
    ];
}

fn unknown_mode(_: &Op, given: &str) -> Error {
    Error::runtime(format!(
        "qr received unrecognized mode '{given}' but expected one of 'reduced' (default), 'r', or 'complete'"
    ))
}

pub static QR_STEP: Op = Op {
    sig: sig("_linalg_qr(Tensor A, str{reduced|complete|r} mode) -> (Tensor Q, Tensor R)"),
    unknown_choice: unknown_mode,
    doc: "Q and R by Householder reflections.",
    body: kernel(
        |c| {
            let (a, Mode { complete, with_q }) = (c.tensor("A")?, c.choice("mode"));
            matrices(a, "linalg.qr")?;
            let (m, n) = sizes(a);
            let k = if complete { m } else { m.min(n) };
            let q = if with_q { columns(a, m, k, a.dtype()) } else { Spec::new(&[0], a.dtype(), a.device()) };
            Ok(smallvec![q, columns(a, k, n, a.dtype())])
        },
        |c, out| {
            let (a, Mode { with_q, .. }) = (c.tensor("A")?, c.choice("mode"));
            let q = if with_q { &out[0] } else { a };
            run(&[a, q, &out[1]], a.ndim() - 2, &Qr { with_q })
        },
        Some(|c, out| on_gpu::qr(c.tensor("A")?, c.choice::<Mode>("mode").with_q.then_some(&out[0]), &out[1])),
    ),
    vjp: Vjp::Each(&[d(0, OUT0 | OUT1, |c| Term(qr_backward(c).and_then(Term::ok)))]),
    samples: &["f32[3,2], 'reduced'", "c64[2,2], 'complete'", "f32[3,2](nograd), 'r'"],
    errors: &[("f32[2,2], 'x'", "RuntimeError", "unrecognized mode 'x'")],
    batch: Batching::Leading,
    ..STEP
};

/// `[gQ + Q sym(triu(gR R^H - Q^H gQ))] R^-H` for A with at least as many rows as columns.
fn qr_backward(c: &VjpCtx) -> Result<Term> {
    let Mode { complete, with_q } = c.choice("mode");
    let shape = c.shape(0);
    if !with_q {
        return Err(Error::runtime(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.",
        ));
    }
    if complete && shape[shape.len() - 2] > shape[shape.len() - 1] {
        return Err(Error::runtime(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.",
        ));
    }
    let (q, r) = (c.out(0), c.out(1));
    let inner = c.gi(1).at(r.clone().mh()) - q.clone().mh().at(c.gi(0));
    let half = (inner.clone().upper(0) + inner.upper(1)) * 0.5;
    let whole = c.gi(0) + q.at(half.clone() + half.mh());
    Ok(triangular(r.mh(), whole, false, false, false))
}

pub static QR: Op = Op {
    sig: sig("linalg.qr(Tensor A, str{reduced|complete|r} mode='reduced') -> (Tensor Q, Tensor R)"),
    unknown_choice: unknown_mode,
    doc: "Q with orthonormal columns and an upper triangle R with `A = Q R`; 'reduced', 'complete' (Q is square), or 'r' (R alone).",
    body: decompose(|c| {
        let (a, Mode { with_q, .. }, mode) = (c.tensor("A")?, c.choice("mode"), || c.argument("mode").reborrow());
        matrices(a, "linalg.qr")?;
        let (m, n) = sizes(a);
        if m >= n || !with_q {
            return QR_STEP.calls((a, mode()));
        }
        // The first columns decide Q, the others are seen in its basis.
        let out = QR_STEP.calls((Term::from(a).cut_out(-1, 0, m), mode()))?;
        let rest = Term::from(&out[0]).mh().at(Term::from(a).cut_out(-1, m, n - m));
        all([Term::from(&out[0]), joined([Term::from(&out[1]).mt(), rest.mt()], -2).mt()])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,3]",
        "f32[2,4,2]",
        "f32[2,4]",
        "f32[4,2](nograd), 'complete'",
        "f32[2,3], 'complete'",
        "f32[3,2](nograd), 'r'",
        "c64[3,2]",
        "f32[0,3]",
        "f32[3,0](nograd), 'complete'",
        "f32[70,40](nograd)",
    ],
    errors: &[
        ("f32[2,2], 'x'", "RuntimeError", "qr received unrecognized mode 'x'"),
        ("f32[2]", "RuntimeError", "linalg.qr: The input tensor A must have at least 2 dimensions."),
    ],
    ..SOLVER
};

struct Raw;
impl Batch for Raw {
    const SCRATCH: usize = 6;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let taus = reflect::qr(&mut a)?;
        at.store(1, &a);
        at.store_vector(2, &taus);
        Ok(())
    }
}

pub static GEQRF: Op = Op {
    sig: sig("geqrf(Tensor self) -> (Tensor a, Tensor tau)"),
    doc: "QR as reflections: R above the diagonal, the vectors below it, and the factors `tau`; see `linalg.householder_product`.",
    forms: FMO,
    body: kernel(
        |c| {
            let a = c.tensor(0)?;
            matrices(a, "geqrf")?;
            let (m, n) = sizes(a);
            Ok(smallvec![columns_like(a), part(a, &[m.min(n)], a.dtype())])
        },
        |c, out| run(&[c.tensor(0)?, &out[0], &out[1]], out[0].ndim() - 2, &Raw),
        Some(|c, out| {
            out[0].copy_raw(c.tensor(0)?)?;
            gpu::qr(&out[0].gpu_view()?, &out[1].gpu_view()?)
        }),
    ),
    vjp: Vjp::Missing,
    samples: &["f32[3,2]", "f32[2,2,3]", "c64[2,2]"],
    errors: &[("f32[2]", "RuntimeError", "must have at least 2 dimensions")],
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Leading,
    ..MATRIX
};

struct Reflections;
impl Batch for Reflections {
    const SCRATCH: usize = 6;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let a = at.matrix(0);
        at.store(2, &reflect::q(&a, &at.vector(1), a.cols)?);
        Ok(())
    }
}

fn check_reflections(c: &Call) -> Result<()> {
    let (a, tau, name) = (c.tensor(0)?, c.tensor("tau")?, "torch.linalg.householder_product");
    matrices(a, name)?;
    let (m, n) = sizes(a);
    let problem = if m < n {
        "input.shape[-2] must be greater than or equal to input.shape[-1]".to_string()
    } else if tau.ndim() + 1 != a.ndim() || tau.shape()[..tau.ndim() - 1] != *lead(a) {
        format!("Expected tau to have one dimension less than input, got {} and {}", tau.ndim(), a.ndim())
    } else if tau.size(tau.ndim() - 1) > n {
        "input.shape[-1] must be greater than or equal to tau.shape[-1]".to_string()
    } else if tau.dtype() != a.dtype() {
        let (x, y) = (tau.dtype().scalar_type_name(), a.dtype().scalar_type_name());
        format!("tau dtype {x} does not match input dtype {y}")
    } else {
        return Ok(());
    };
    Err(Error::runtime(problem).in_op(name))
}

/// Applies the reflections one by one, the last first; the gradient is taken through these steps.
fn reflected(c: &Call) -> Result<Outputs> {
    let (a, tau) = (c.tensor(0)?, c.tensor("tau")?);
    let (m, n) = sizes(a);
    let identity = EYE_M.call((m, n, a.dtype(), a.device()));
    let v = Term::from(a).lower(-1) + identity.clone();
    let q = (0..tau.size(tau.ndim() - 1)).rev().fold(identity, |q, j| {
        let column = v.clone().cut_out(-1, j, 1);
        let factor = Term::from(tau).cut_out(-1, j, 1).unsqueeze(-1);
        q.clone() - factor * column.clone().at(column.mh().at(q))
    });
    q.outputs()
}

pub static HOUSEHOLDER_PRODUCT: Op = Op {
    sig: sig("linalg.householder_product(Tensor input, Tensor tau|input2) -> Tensor"),
    doc: "The first columns of the product of reflections `I - tau v v^H`, whose vectors stand below the diagonal: Q of `geqrf`.",
    aliases: &["orgqr"],
    forms: FMO,
    body: kernel(
        |c| {
            check_reflections(c)?;
            Ok(smallvec![columns_like(c.tensor(0)?)])
        },
        |c, out| run(&[c.tensor(0)?, c.tensor("tau")?, &out[0]], out[0].ndim() - 2, &Reflections),
        Some(|c, out| on_gpu::reflections(c.tensor(0)?, c.tensor("tau")?, &out[0])),
    ),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1, formula: |c| c.through(reflected) }),
    samples: &["f32[3,2], f32[2]", "f32[2,3,3], f32[2,2]", "c64[3,2], c64[2]", "f32[0,0], f32[0]"],
    errors: &[
        ("f32[2,3], f32[2]", "RuntimeError", "input.shape[-2] must be greater than or equal to input.shape[-1]"),
        ("f32[3,2], f32[3]", "RuntimeError", "input.shape[-1] must be greater than or equal to tau.shape[-1]"),
    ],
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Leading,
    ..MATRIX
};

fn check_multiplied(c: &Call) -> Result<()> {
    let (a, tau, other, left) = (c.tensor(0)?, c.tensor("tau")?, c.tensor("other")?, c.flag("left"));
    for (t, name) in [(a, "input"), (other, "other")] {
        if t.ndim() < 2 {
            return Err(Error::runtime(format!("torch.ormqr: {name} must have at least 2 dimensions.")));
        }
    }
    let ((m, n), (rows, cols)) = (sizes(a), sizes(other));
    let (side, at) = if left { (rows, -2) } else { (cols, -1) };
    let shown = |t: &Tensor| t.dtype().scalar_type_name();
    let problem = if side != m {
        format!("other.shape[{at}] must be equal to input.shape[-2]")
    } else if tau.shape().last().is_none_or(|&k| k != side.min(n)) {
        format!("tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])")
    } else if tau.ndim() + 1 != a.ndim() {
        let (x, y) = (tau.ndim(), a.ndim());
        format!(
            "Expected tau to have one dimension less than input, but got tau.ndim equal to {x} and input.ndim is equal to {y}"
        )
    } else if other.ndim() != a.ndim() {
        let (x, y) = (other.ndim(), a.ndim());
        format!(
            "Expected other to have the same number of dimensions as input, but got other.ndim equal to {x} and input.ndim is equal to {y}"
        )
    } else if let Some((name, got)) =
        [("tau", &tau.shape()[..tau.ndim() - 1]), ("other", lead(other))].into_iter().find(|(_, s)| *s != lead(a))
    {
        format!("Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {}", Show(got))
    } else if let Some((name, t)) = [("tau", tau), ("other", other)].into_iter().find(|(_, t)| t.dtype() != a.dtype()) {
        format!(
            "Expected input and {name} to have the same dtype, but input has dtype{} and {name} has dtype {}",
            shown(a),
            shown(t)
        )
    } else {
        return matrices(a, "ormqr");
    };
    Err(Error::runtime(format!("torch.ormqr: {problem}")))
}

/// Q, or its adjoint, times the third argument, from the left or the right.
fn multiplied(c: &Call) -> Result<Outputs> {
    let (a, tau, other) = (c.tensor(0)?, c.tensor("tau")?, c.tensor("other")?);
    let (m, n) = sizes(a);
    let more = part(a, &[m, m.saturating_sub(n)], a.dtype()).zeros();
    let padded = joined([Term::from(a).cut_out(-1, 0, n.min(m)), more], -1);
    let q = HOUSEHOLDER_PRODUCT.call((padded, tau));
    let q = if c.flag("transpose") { q.mh() } else { q };
    if c.flag("left") { q.at_by_columns(other) } else { Term::from(other).at_by_columns(q) }.outputs()
}

pub static ORMQR: Op = Op {
    sig: sig(
        "ormqr(Tensor self, Tensor tau|input2, Tensor other|input3, bool left=True, bool transpose=False) -> Tensor",
    ),
    doc: "The square Q of reflections (see `geqrf`), or its adjoint, times `other`, from the left or the right.",
    forms: FMO,
    body: decompose(|c| {
        check_multiplied(c)?;
        multiplied(c)
    }),
    vjp: Vjp::Joint(Joint { args: &[0, 1, 2], saves: A0 | A1 | A2, formula: |c| c.through(multiplied) }),
    samples: &["f32[3,2], f32[2], f32[3,4]", "f32[3,2], f32[2], f32[4,3], False, True"],
    errors: &[
        ("f32[3], f32[2], f32[3,1]", "RuntimeError", "torch.ormqr: input must have at least 2 dimensions"),
        ("f32[5,3], f32[3], f32[4,5]", "RuntimeError", "other.shape[-2] must be equal to input.shape[-2]"),
        (
            "f32[5,3], f32[4], f32[5,4]",
            "RuntimeError",
            "tau.shape[-1] must be equal to min(other.shape[-2], input.shape",
        ),
        ("f32[2,5,3], f32[3], f32[5,4]", "RuntimeError", "Expected tau to have one dimension less than input"),
        ("f32[5,3], f64[3], f32[5,4]", "RuntimeError", "Expected input and tau to have the same dtype"),
    ],
    ..SOLVER
};
