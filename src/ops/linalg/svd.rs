//! Singular values and vectors.
//!
//! Vectors are unique up to a sign or a phase; a function of them that depends on it has no gradient, and computing one
//! is an error, as in PyTorch. The gradient is PyTorch's derivation (`svd_backward`).

use super::checks::*;
use super::spectra_on_gpu;
use crate::autograd::GradGuard;
use crate::autograd::forward::is_differentiated;
use crate::cpu::linalg::{At, Batch, Field, spectrum};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::reduce::extrema::MAX;
use crate::ops::support::host_read::item;
use crate::ops::view::alias::IMAG;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SVD_STEP, &SVD, &SVDVALS, &TORCH_SVD];

fn finite(is_finite: bool, name: &'static str) -> Result<()> {
    let text = "The algorithm failed to converge because the input matrix contained non-finite values.";
    if is_finite { Ok(()) } else { Err(Error::linalg(text).in_op(name)) }
}

struct Svd {
    full: bool,
    vectors: bool,
}
impl Batch for Svd {
    const SCRATCH: usize = 8;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let a = at.matrix(0).doubled();
        finite(a.is_finite(), "linalg.svd")?;
        if !self.vectors {
            at.store_vector(2, &spectrum::singular_values(&a)?);
            return Ok(());
        }
        let (u, s, vh) = spectrum::svd(&a, self.full)?;
        at.store(1, &u);
        at.store_vector(2, &s);
        at.store(3, &vh);
        Ok(())
    }
}

pub static SVD_STEP: Op = Op {
    sig: sig(
        "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor Vh)",
    ),
    doc: "The singular value decomposition; empty U and Vh where they are not wanted.",
    body: kernel(
        |c| {
            let a = c.tensor("A")?;
            matrices(a, "linalg.svd")?;
            let ((m, n), d) = (sizes(a), a.dtype());
            let k = m.min(n);
            let values = part(a, &[k], d.to_real());
            let none = || Spec::new(&[0], d, a.device());
            Ok(match (c.flag("full_matrices"), c.flag("compute_uv")) {
                (_, false) => smallvec![none(), values, none()],
                (true, _) => smallvec![columns(a, m, m, d), values, columns(a, n, n, d)],
                (false, _) => smallvec![columns(a, m, k, d), values, columns(a, k, n, d)],
            })
        },
        |c, out| {
            let (a, vectors) = (c.tensor("A")?, c.flag("compute_uv"));
            let (u, vh) = if vectors { (&out[0], &out[2]) } else { (a, a) };
            run(&[a, u, &out[1], vh], a.ndim() - 2, &Svd { full: c.flag("full_matrices"), vectors })
        },
        Some(|c, out| spectra_on_gpu::svd(c.tensor("A")?, c.flag("compute_uv").then_some([&out[0], &out[2]]), &out[1])),
    ),
    vjp: Vjp::Each(&[d(0, OUT0 | OUT1 | OUT2, |c| Term(svd_backward(c).and_then(Term::ok)))]),
    samples: &["f32[3,2]", "f32[2,2](nograd), False, False"],
    errors: &[("1", "TypeError", "must be Tensor")],
    keeps: Some("U S S_sym_argsize_minus_1 Vh full_matrices"),
    batch: Batching::Leading,
    ..STEP
};

/// `X - X^H`.
pub(crate) fn skew(x: Term) -> Term {
    x.clone() - x.mh()
}

/// An error if a function of vectors depends on their phase: its derivative with respect to it, in `turned`, is not
/// zero.
pub(crate) fn phase_free(turned: Term, op: &str, what: &str, term: &str) -> Result<()> {
    if !turned.is_complex() || turned.get().is_none_or(|t| t.numel() == 0) {
        return Ok(());
    }
    let _unrecorded = GradGuard::new(false);
    let most = MAX.call((IMAG.call((turned,)).abs(),)).ok()?;
    if item(&most)?.to_f64() > 1e-2 {
        return Err(Error::runtime(format!(
            "{op}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on this {term}, so it is ill-defined."
        )));
    }
    Ok(())
}

/// Differences `b_j - b_i`, with ones on the diagonal, so that they can be divided by.
pub(crate) fn gaps(values: Term) -> Term {
    let gaps = values.clone().unsqueeze(-2) - values.unsqueeze(-1);
    gaps.clone() + gaps.eye()
}

fn svd_backward(c: &VjpCtx) -> Result<Term> {
    let shape = c.shape(0);
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let k = m.min(n);
    // Vectors beyond the singular values have no derivative.
    let (u, s, vh) = (c.out(0).cut_out(-1, 0, k), c.out(1), c.out(2).cut_out(-2, 0, k));
    let gu = c.has_grad(0).then(|| c.gi(0).cut_out(-1, 0, k));
    let gvh = c.has_grad(2).then(|| c.gi(2).cut_out(-2, 0, k));
    if gu.is_none() && gvh.is_none() {
        return Ok((u * c.gi(1).unsqueeze(-2)).at(vh));
    }
    let gap = gaps(s.clone().square());
    let by_u = gu.as_ref().map(|g| skew(u.clone().mh().at(g)));
    let by_v = gvh.as_ref().map(|g| skew(vh.clone().at(g.clone().mh())));
    let turned = match (&by_u, &by_v) {
        (Some(x), Some(y)) => x.clone() + y,
        (x, y) => x.as_ref().or(y.as_ref()).expect("one of them").clone(),
    };
    phase_free(turned.diagonals(), "svd_backward", "singular vectors", "phase term")?;
    let mut inner = c.gi(1).diag_embed(0);
    if let Some(x) = &by_u {
        inner = inner + x.clone() / gap.clone() * s.clone().unsqueeze(-2);
        if by_v.is_some() && x.is_complex() {
            inner = inner + (x.clone().diagonals() / (s.clone() * 2.0)).diag_embed(0);
        }
    }
    if let Some(x) = &by_v {
        inner = inner + s.clone().unsqueeze(-1) * (x.clone() / gap);
    }
    let mut g = u.clone().at(inner).at(vh.clone());
    if let (Some(gu), true) = (gu, m > k) {
        let over = gu / s.clone().unsqueeze(-2);
        g = g + (over.clone() - u.clone().at(u.clone().mh().at(over))).at(vh.clone());
    }
    if let (Some(gvh), true) = (gvh, n > k) {
        let over = gvh / s.unsqueeze(-1);
        g = g + u.at(over.clone() - over.at(vh.clone().mh()).at(vh));
    }
    Ok(g)
}

/// Drivers other than the default exist only in cuSOLVER.
fn no_driver(c: &Call) -> Result<()> {
    if c.str("driver").is_none() {
        return Ok(());
    }
    let text = "keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.";
    Err(Error::runtime(text).in_op("torch.linalg.svd"))
}

pub static SVD: Op = Op {
    sig: sig("linalg.svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)"),
    doc: "`A = U diag(S) Vh` with orthonormal vectors and singular values in falling order.",
    body: decompose(|c| {
        no_driver(c)?;
        SVD_STEP.calls((c.tensor("A")?, c.flag("full_matrices"), true))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,3]",
        "f32[2,4,2], False",
        "f32[2,3], full_matrices=False",
        "f32[3,2](nograd)",
        "c64[2,2](nograd)",
        "f32[0,3](nograd)",
        "f32[40,30](nograd), False",
    ],
    errors: &[
        ("f32[2]", "RuntimeError", "linalg.svd: The input tensor A must have at least 2 dimensions."),
        (
            "i64[2,2]",
            "NotImplementedError",
            "linalg.svd: Expected a floating point or complex tensor as input. Got Long",
        ),
        (
            "f32[1,2](= nan, 1)",
            "LinAlgError",
            "linalg.svd: The algorithm failed to converge because the input matrix contained",
        ),
    ],
    reference: "shape",
    ..SOLVER
};

pub static SVDVALS: Op = Op {
    sig: sig("linalg.svdvals(Tensor A, *, str? driver=None) -> Tensor"),
    doc: "The singular values in falling order.",
    body: decompose(|c| {
        let a = c.tensor("A")?;
        no_driver(c)?;
        Ok(smallvec![SVD_STEP.calls((a, false, is_differentiated(a)))?.swap_remove(1)])
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]", "f32[2,4,2]", "f32[2,3]", "c64[2,2]", "f32[0,3]"],
    errors: &[
        ("f32[2]", "RuntimeError", "linalg.svd: The input tensor A must have at least 2 dimensions."),
        ("f32[2,2], driver='gesvd'", "RuntimeError", "`driver=` is only supported on CUDA"),
    ],
    reference: "np.linalg.svd(x0, compute_uv=False)",
    ..SOLVER
};

pub static TORCH_SVD: Op = Op {
    sig: sig("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)"),
    doc: "`self = U diag(S) V^H`; see `linalg.svd`. Without `compute_uv` zeros stand for the vectors.",
    forms: FMO,
    body: decompose(|c| {
        let a = c.tensor(0)?;
        matrices(a, "linalg.svd")?;
        if c.flag("compute_uv") {
            let out = SVD_STEP.calls((a, !c.flag("some")))?;
            return all([Term::from(&out[0]), Term::from(&out[1]), Term::from(&out[2]).mh()]);
        }
        let side = |n: usize| part(a, &[n, n], a.dtype()).zeros();
        let (m, n) = sizes(a);
        all([side(m), SVDVALS.call((a,)), side(n).mt()])
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,2]", "f32[2,2,2]", "f32[2,3](nograd), False", "f32[2,3], True, False"],
    errors: &[("f32[2]", "RuntimeError", "2 dimensions")],
    reference: "shape",
    ..SOLVER
};

impl Spec {
    /// Zeros of this shape.
    pub(crate) fn zeros(&self) -> Term {
        crate::ops::create::full::ZEROS.call((self.layout.shape.as_slice(), self.dtype, self.device))
    }
}
