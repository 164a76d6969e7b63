//! Derived from decompositions: pseudoinverse, least squares, rank, condition number.

use super::checks::*;
use super::eigen::{EIGH, EIGVALSH};
use super::qr::QR_STEP;
use super::solve::{INV_EX, triangular};
use super::svd::{SVD_STEP, SVDVALS};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::create::full::FULL;
use crate::ops::create::range::EYE_M;
use crate::ops::elementwise::ternary::{NAN_TO_NUM, WHERE};
use crate::ops::reduce::any_all::ALL;
use crate::ops::reduce::extrema::AMAX;
use crate::ops::reduce::norm::{MATRIX_NORM, MATRIX_NORM_STR, MatrixNorm};
use crate::ops::reduce::sum_prod::SUM_DIM;
use crate::ops::support::host_read::item;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&PINV, &PINV_RCOND, &PINVERSE, &LSTSQ, &MATRIX_RANK, &MATRIX_RANK_TOL, &COND, &COND_STR];

/// Arguments `atol`, `rtol` (numbers or tensors) as the bound below which a singular value counts as zero;
/// `top` holds the largest ones, with a last dimension of one. By default `rtol` is epsilon times the size.
fn bound(c: &Call, a: &Tensor, top: Term) -> Term {
    let (m, n) = sizes(a);
    let given = |name: &str| match (c.opt_tensor(name), c.opt_scalar(name)) {
        (Some(t), _) if t.dtype().is_complex() => {
            Some(Error::runtime(format!("{}: {name} tensor of complex type is not supported", c.op.sig.name())).into())
        }
        (Some(t), _) => Some(Term::from(t).unsqueeze(-1)),
        (_, Some(s)) => Some(Term::number(s)),
        _ => None,
    };
    let usual = || Term::number(Scalar::Float(epsilon(a.dtype()) * m.max(n) as f64));
    let (absolute, relative) = (given("atol"), given("rtol"));
    let relative = match (&absolute, relative) {
        (_, Some(r)) => r,
        (Some(x), None) => WHERE.call((x.clone().greater(0.0), 0.0, usual())),
        (None, None) => usual(),
    };
    let scaled = top * relative;
    match absolute {
        Some(x) => crate::ops::elementwise::minmax::MAXIMUM.call((scaled, x)),
        None => scaled,
    }
}

/// The largest value, with a last dimension of one; zero if there are none.
fn top(values: Term) -> Term {
    let empty = values.get().is_some_and(|t| t.shape().last() == Some(&0));
    if empty { SUM_DIM.call((values, [-1], true)) } else { AMAX.call((values, [-1], true)) }
}

/// The pseudoinverse with the bound of `atol` and `rtol`.
fn pseudoinverse(c: &Call, a: &Tensor, hermitian: bool) -> Term {
    let inverted = |values: Term| {
        let small = values.clone().abs().at_most(bound(c, a, top(values.clone().abs())));
        values.recip().zero_where(small).unsqueeze(-2)
    };
    let parts = if hermitian { EIGH.calls((a,)) } else { SVD_STEP.calls((a,)) };
    match parts {
        Ok(p) if hermitian => (Term::from(&p[1]) * inverted(Term::from(&p[0]))).at(Term::from(&p[1]).mh()),
        Ok(p) => (Term::from(&p[2]).mh() * inverted(Term::from(&p[1]))).at(Term::from(&p[0]).mh()),
        Err(e) => e.into(),
    }
}

/// Source: G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973).
fn pinv_backward(c: &VjpCtx) -> Term {
    let (a, x, g) = (c.arg(0), c.out(0), c.g().mh());
    let shape = c.shape(0);
    let xh = || x.clone().mh();
    if shape[shape.len() - 2] <= shape[shape.len() - 1] {
        let k = g.clone().at(&x);
        let kx = k.clone().at(xh());
        let rest = g - k.clone().at(&a);
        kx.clone() - x.clone().at(k).mh() - a.at(&x).at(kx) + xh().at(&x).at(rest)
    } else {
        let k = x.clone().at(&g);
        let xk = xh().at(&k);
        let rest = g - a.clone().at(&k);
        xk.clone() - k.at(&x).mh() - xk.at(&x).at(a) + rest.at(&x).at(xh())
    }
}

fn pinv_checked(a: &Tensor) -> Result<()> {
    let fits = a.ndim() >= 2 && matches!(a.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128);
    if fits {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "linalg.pinv({}{{{}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
        a.dtype().scalar_type_name(),
        Show(a.shape())
    )))
}

pub static PINV: Op = Op {
    sig: sig("linalg.pinv(Tensor self, *, Operand~? atol=None, Operand~? rtol=None, bool hermitian=False) -> Tensor"),
    doc: "The pseudoinverse (Moore-Penrose); singular values up to `max(atol, rtol * greatest)` count as zero.",
    body: decompose(|c| {
        let a = c.tensor(0)?;
        pinv_checked(a)?;
        pseudoinverse(c, a, c.flag("hermitian")).outputs()
    }),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, pinv_backward)]),
    samples: &[
        "f32[3,3]",
        "f32[2,2,3]",
        "f32[3,2]",
        "f32[3,3](spd), hermitian=True",
        "f32[3,2](nograd), rtol=0.5",
        "f32[2,2](zeros)",
        "c64[2,3]",
        "f32[0,3]",
    ],
    errors: &[
        ("i64[2,2]", "RuntimeError", "expected a tensor with 2 or more dimensions of float, double, cfloat or"),
        ("f32[2,2], atol=c64[]", "RuntimeError", "atol tensor of complex type is not supported"),
    ],
    keeps: Some("result self"),
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

pub static PINV_RCOND: Op = Op {
    sig: sig("linalg.pinv.rcond(Tensor self, Operand rcond, bool hermitian=False) -> Tensor"),
    doc: "The pseudoinverse; singular values up to `rcond * greatest` count as zero.",
    body: decompose(|c| {
        let zero = Value::Scalar(Scalar::Float(0.0));
        let args: Args =
            [c.args[0].reborrow(), zero, c.argument("rcond").reborrow(), c.argument("hermitian").reborrow()]
                .into_iter()
                .collect();
        PINV.calls(args)
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,2](= 1, 2, 3, 5, 0.5, -1), 0.001",
        "f32[2,2,3](nograd), f32[2](= 0.001, 0.1, nograd)",
        "f32[3,3](spd, nograd), 0.001, True",
    ],
    errors: &[("f32[2], 0.1", "RuntimeError", "expected a tensor with 2 or more dimensions")],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

pub static PINVERSE: Op = Op {
    sig: sig("pinverse(Tensor self, float rcond=1e-15) -> Tensor"),
    doc: "The pseudoinverse; see `linalg.pinv`.",
    forms: FM,
    body: decompose(|c| PINV.calls((c.tensor(0)?, 0.0, c.float("rcond")?))),
    vjp: Vjp::Composite,
    samples: &["f32[3,2]", "f32[2,3], 0.001"],
    errors: &[("f32[2]", "RuntimeError", "expected a tensor with 2 or more dimensions")],
    ..SOLVER
};

/// The number of singular values, or absolute eigenvalues, above a bound computed from all of them.
fn rank(a: &Tensor, hermitian: bool, least: impl Fn(Term) -> Term) -> Result<Outputs> {
    let a = &Term::from(a).cut().ok()?;
    if a.ndim() < 2 {
        let text = "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.";
        return Err(Error::runtime(text));
    }
    let values = if hermitian { EIGVALSH.call((a,)).abs() } else { SVDVALS.call((a,)) };
    let least = least(values.clone());
    SUM_DIM.calls((values.greater(least), [-1]))
}

pub static MATRIX_RANK: Op = Op {
    sig: sig(
        "linalg.matrix_rank(Tensor self, *, Operand? atol=None, Operand? rtol=None, bool hermitian=False) -> Tensor",
    ),
    doc: "How many singular values are greater than `max(atol, rtol * greatest)`.",
    body: decompose(|c| {
        let a = c.tensor(0)?;
        rank(a, c.flag("hermitian"), |values| bound(c, a, top(values)))
    }),
    vjp: Vjp::None("a count"),
    samples: &["f32[3,3]", "f32[2,3,2]", "f32[3,3](ones)", "f32[3,3](spd), hermitian=True", "f32[0,2]"],
    errors: &[("f32[2]", "RuntimeError", "must have at least 2 dimensions")],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

pub static MATRIX_RANK_TOL: Op = Op {
    sig: sig("linalg.matrix_rank.tol(Tensor self, Operand tol, bool hermitian=False) -> Tensor"),
    doc: "How many singular values are greater than `tol`.",
    body: decompose(|c| {
        let least = match c.opt_tensor("tol") {
            Some(t) => Term::from(t).unsqueeze(-1),
            None => Term::number(c.scalar("tol")?),
        };
        rank(c.tensor(0)?, c.flag("hermitian"), |_| least.clone())
    }),
    vjp: Vjp::None("a count"),
    samples: &["f32[2,2](nograd), 100.0", "f32[3,3](spd, nograd), 0.01, True"],
    errors: &[("f32[2], 1.0", "RuntimeError", "must have at least 2 dimensions")],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

/// LAPACK's routine whose conventions `lstsq` follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    Gels,
    Gelsy,
    Gelsd,
    Gelss,
}
impl Enumerated for Driver {
    const VALUES: &'static [(&'static str, Driver)] =
        &[("gels", Driver::Gels), ("gelsy", Driver::Gelsy), ("gelsd", Driver::Gelsd), ("gelss", Driver::Gelss)];
}

fn driver(c: &Call) -> Driver {
    c.opt_choice("driver").unwrap_or(Driver::Gelsy)
}
fn unknown_driver(_: &Op, _: &str) -> Error {
    let text = "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)";
    Error::runtime(text).in_op("torch.linalg.lstsq")
}

/// Whether the right-hand side is a vector, or a batch of them.
fn is_vector(a: &Tensor, b: &Tensor) -> bool {
    b.ndim() == a.ndim() - 1 && b.shape() == &a.shape()[..b.ndim()]
}

/// The ratio to the largest singular value below which one counts as zero. As in LAPACK, gelsd uses the machine
/// precision for an `rcond` that is not a proper fraction, gelss for a negative one; the first column of gelsy always
/// counts.
fn cutoff(c: &Call, a: &Tensor) -> Scalar {
    let ((m, n), least) = (sizes(a), epsilon(a.dtype()));
    let Some(given) = c.opt_scalar("rcond").map(Scalar::to_f64) else { return Scalar::Float(least * m.max(n) as f64) };
    Scalar::Float(match driver(c) {
        Driver::Gelsd if given <= 0.0 || given >= 1.0 => least,
        Driver::Gelss if given < 0.0 => least,
        Driver::Gelsy => given.min(1.0 - least),
        _ => given,
    })
}

/// The driver that assumes full rank raises for rank-deficient matrices.
fn full_rank(rank: &Tensor, most: usize) -> Result<()> {
    let info = (Term::from(rank) + 1).zero_where(Term::from(rank).equals(most)).ok()?;
    succeeded(
        &info,
        "torch.linalg.lstsq",
        Failure::Linalg,
        "The least squares solution could not be computed because the input matrix does not have full rank (error code: {i}).",
    )
}

/// Q and R of matrices none of whose singular values counts as zero; of their adjoints where those are the taller.
struct Factors {
    q: Term,
    r: Term,
    adjoint: bool,
}
impl Factors {
    /// None if a singular value of any matrix counts as zero. By Frobenius norms the least is at least `1 / |R^-1|` and the greatest
    /// at most `|R|`; where these leave it open, all of R's are computed.
    fn of(a: &Tensor, cutoff: Scalar) -> Result<Option<Factors>> {
        let ((m, n), cutoff) = (sizes(a), cutoff.to_f64().max(0.0));
        let adjoint = m < n;
        if m.min(n) == 0 {
            return Ok(None);
        }
        let parts = QR_STEP.calls((if adjoint { Term::from(a).mh() } else { a.into() }, "reduced"))?;
        let [q, r] = [0, 1].map(|i| Term::from(&parts[i]));
        let identity = EYE_M.call((m.min(n) as i64, m.min(n) as i64, a.dtype(), a.device()));
        let inverse = triangular(r.clone(), identity, true, true, false);
        let [size, inverse] = [r.clone(), inverse].map(|t| t.abs().square().sum(&[-2, -1], false).sqrt());
        let all = |holds: Term| item(&ALL.call((holds,)).ok()?).map(|all| all.to_bool());
        if !all(size.clone().less(f64::INFINITY))? {
            return Ok(None);
        }
        let counts = |values: Term| all(values.clone().greater(top(values) * cutoff));
        let clear = all((size * inverse * cutoff).less(0.5))? || counts(SVDVALS.call((r.clone(),)))?;
        Ok(clear.then_some(Factors { q, r, adjoint }))
    }
    fn solve(&self, b: Term) -> Term {
        match self.adjoint {
            false => triangular(self.r.clone(), self.q.clone().mh().at(b), true, true, false),
            true => self.q.clone().at_by_columns(triangular(self.r.clone().mh(), b, false, true, false)),
        }
    }
}

/// The solution, by factors if there are any, and, if requested, the sums of squared residuals.
fn fitted(c: &Call, factors: Option<&Factors>, with_residuals: bool) -> Result<Outputs> {
    let (a, b) = (c.tensor(0)?, c.tensor("b")?);
    let vector = is_vector(a, b);
    let b = if vector { Term::from(b).unsqueeze(-1) } else { b.into() };
    let x = match factors {
        Some(factors) => factors.solve(b.clone()),
        None => PINV.call((a, 0.0, cutoff(c, a))).at_by_columns(b.clone()),
    };
    let residuals =
        if with_residuals { Some((Term::from(a).at(&x) - b).abs().square().sum(&[-2], false)) } else { None };
    [Some(if vector { x.squeeze(-1) } else { x }), residuals].into_iter().flatten().map(Term::ok).collect()
}

/// Solution, residuals, rank and singular values; empty if the driver does not compute them.
fn least_squares(c: &Call) -> Result<Outputs> {
    let (a, b, name) = (c.tensor(0)?, c.tensor("b")?, "torch.linalg.lstsq");
    let refuse = |text: &str| Err(Error::runtime(text).in_op(name));
    let driver = driver(c);
    matrices(a, name)?;
    if b.dtype() != a.dtype() {
        return refuse("input.dtype() and other.dtype() should be the same");
    }
    let (m, n) = sizes(a);
    if !is_vector(a, b) {
        if b.ndim() < 2 {
            return refuse("other must have at least 1 dimension");
        }
        if b.size(b.ndim() - 2) != m {
            return refuse("input.size(-2) should match other.size(-2)");
        }
    }
    let none = |d: DType| Tensor::empty(&[0], d, a.device());
    let factors = Factors::of(a, cutoff(c, a))?;
    let rank = match &factors {
        Some(_) => FULL.call((lead(a), m.min(n) as i64, DType::I64, a.device())).ok()?,
        None => MATRIX_RANK.call((a, 0.0, cutoff(c, a))).ok()?,
    };
    if driver == Driver::Gels {
        full_rank(&rank, m.min(n))?;
    }
    let full = item(&ALL.call((Term::from(&rank).equals(n),)).ok()?)?.to_bool();
    let mut out = fitted(c, factors.as_ref(), m > n && driver != Driver::Gelsy && full)?;
    if out.len() < 2 {
        out.push(none(a.dtype().to_real())?);
    }
    out.push(if driver == Driver::Gels { none(DType::I64)? } else { rank });
    let with_values = matches!(driver, Driver::Gelsd | Driver::Gelss);
    out.push(match with_values {
        true => SVDVALS.call((factors.map_or(a.into(), |f| f.r),)).ok()?,
        false => none(a.dtype().to_real())?,
    });
    Ok(out)
}

pub static LSTSQ: Op = Op {
    unknown_choice: unknown_driver,
    sig: sig(
        "linalg.lstsq(Tensor self, Tensor b, float? rcond=None, *, str{gels|gelsy|gelsd|gelss}? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    ),
    doc: "The X of least norm that makes `|A X - B|` least. Any driver solves by QR, or by singular values where some count as zero; what else is given is as the driver has it.",
    body: reads_host(least_squares),
    vjp: Vjp::Joint(Joint {
        args: &[0, 1],
        saves: A0 | A1,
        formula: |c| {
            let with_residuals = *c.output_metas[1].shape != [0];
            c.through(|call| fitted(call, None, with_residuals))
        },
    }),
    constant: &[3],
    samples: &[
        "f32[3,2], f32[3,2]",
        "f32[3,2], f32[3,2], driver='gels'",
        "f32[2,3,2], f32[2,3,1], driver='gelsd'",
        "f32[2,3], f32[2,1], driver='gelss'",
        "f32[3,3], f32[3]",
        "c64[3,2], c64[3,1]",
    ],
    errors: &[
        ("f32[3,2], f32[2,1]", "RuntimeError", "torch.linalg.lstsq: input.size(-2) should match other.size(-2)"),
        ("f32[3,2], f32[3,1], driver='x'", "RuntimeError", "should be one of (gels, gelsy, gelsd, gelss)"),
    ],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

fn condition_dims(a: &Tensor) -> Result<()> {
    match a.ndim() {
        0 | 1 => Err(Error::runtime("The input tensor must have at least 2 dimensions.").in_op("linalg.cond")),
        _ => Ok(()),
    }
}

#[cold]
fn no_such_norm(shown: String) -> Error {
    Error::value(format!("got an invalid norm type: {shown}")).in_op("linalg.cond")
}

/// The condition number of empty matrices.
fn nothing(a: &Tensor) -> Result<Outputs> {
    crate::ops::create::full::ZEROS.calls((lead(a), a.dtype().to_real(), a.device()))
}

/// `norm(A) norm(inv(A))`, infinite if A has no inverse, zero for empty matrices.
fn condition(a: &Tensor, shown: String, norm: impl Fn(Term) -> Term) -> Result<Outputs> {
    condition_dims(a)?;
    let (m, n) = sizes(a);
    if m != n {
        return Err(Error::runtime(format!(
            "linalg.cond(ord={shown}): A must be batches of square matrices, but they are {m} by {n} matrices"
        )));
    }
    if a.numel() == 0 {
        return nothing(a);
    }
    let found = INV_EX.calls((a,))?;
    let inverse = WHERE.call((Term::from(&found[1]).equals(0).whole(), &found[0], f64::INFINITY));
    let infinity = f64::INFINITY;
    NAN_TO_NUM.calls((norm(a.into()) * norm(inverse), infinity, infinity, -infinity))
}

pub static COND: Op = Op {
    sig: sig("linalg.cond(Tensor self, Scalar? p=None) -> Tensor"),
    doc: "The condition number `norm(A) norm(inv(A))`; of order 2 (the default) the greatest over the least singular value.",
    body: decompose(|c| {
        let (a, order) = (c.tensor(0)?, c.opt_float("p").unwrap_or(2.0));
        condition_dims(a)?;
        match c.opt_scalar("p") {
            Some(Scalar::Complex(..)) => {
                let text = "Expected a non-complex scalar as the order of norm.";
                return Err(Error::value(text).in_op("linalg.cond"));
            }
            Some(p) if ![1.0, 2.0, f64::INFINITY].contains(&order.abs()) => return Err(no_such_norm(p.to_string())),
            _ => {}
        }
        if a.numel() == 0 {
            return nothing(a);
        }
        if order.abs() != 2.0 {
            let shown = c.scalar("p")?;
            return condition(a, shown.to_string(), |t| MATRIX_NORM.call((t, order)));
        }
        let values = SVDVALS.call((a,)).ok()?;
        let k = values.shape()[values.ndim() - 1];
        let value = |i: usize| Term::from(&values).cut_out(-1, i, 1);
        let (most, least) = (value(0), value(k - 1));
        if order > 0.0 { most / least } else { least / most }.squeeze(-1).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]", "f32[2,3,2]", "f32[3,3], 1", "f32[2,3,3], inf", "f32[3,3], -2", "f32[2,2](zeros), 1"],
    errors: &[
        ("f32[2,3], 1", "RuntimeError", "linalg.cond(ord=1): A must be batches of square matrices"),
        ("f32[2]", "RuntimeError", "linalg.cond: The input tensor must have at least 2 dimensions."),
        ("f32[2,2], 3", "ValueError", "linalg.cond: got an invalid norm type: 3"),
        ("f32[2,2], 1j", "ValueError", "non-complex scalar"),
    ],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

pub static COND_STR: Op = Op {
    unknown_choice: |_, given| no_such_norm(given.to_string()),
    sig: sig("linalg.cond.str(Tensor self, str{fro|nuc} p) -> Tensor"),
    doc: "The condition number in the Frobenius ('fro') or nuclear ('nuc') norm.",
    body: decompose(|c| {
        let (a, order) = (c.tensor(0)?, c.str("p").unwrap_or_default());
        let squares = a.ndim() >= 2 && sizes(a).0 == sizes(a).1;
        if c.choice::<MatrixNorm>("p") == MatrixNorm::Nuc && squares && a.numel() > 0 {
            let values = SVDVALS.call((a,));
            return (values.clone().sum(&[-1], false) * values.recip().sum(&[-1], false)).outputs();
        }
        condition(c.tensor(0)?, order.to_string(), |t| MATRIX_NORM_STR.call((t, order)))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3], 'fro'", "f32[2,2,2], 'nuc'"],
    errors: &[
        ("f32[2,3], 'nuc'", "RuntimeError", "linalg.cond(ord=nuc): A must be batches of square matrices"),
        ("f32[2,2], 'wrong'", "ValueError", "linalg.cond: got an invalid norm type: wrong"),
    ],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};
