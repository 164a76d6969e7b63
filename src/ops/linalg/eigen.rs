//! Eigenvalues and eigenvectors of Hermitian and of general square matrices.
//!
//! Gradients: PyTorch's derivation (`linalg_eig_backward`); eigenvectors have fixed norm and no defined phase.

use super::checks::*;
use super::spectra_on_gpu;
use super::svd::{gaps, phase_free, skew};
use crate::autograd::forward::is_differentiated;
use crate::cpu::linalg::{At, Batch, Field, spectrum};
use crate::dtype::c128;
use crate::error::{Error, Result};
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&EIGH_STEP, &EIGH, &EIGVALSH, &EIG, &EIGVALS_STEP, &EIGVALS];

struct Eigh {
    upper: bool,
    vectors: bool,
}
impl Batch for Eigh {
    const SCRATCH: usize = 8;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let a = at.matrix(0).doubled();
        // The upper triangle is the lower one of the adjoint.
        let mut a = if self.upper { a.adjoint() } else { a };
        for i in 0..a.rows {
            a[(i, i)] = <T::Double as Field>::of(num_complex::ComplexFloat::re(a[(i, i)]));
            a.row_mut(i)[i + 1..].fill(Default::default());
        }
        if !a.is_finite() {
            // Bounded by what `over` has probed for.
            at.store_vector(1, &vec![f64::NAN; a.rows]);
            if self.vectors {
                at.store(2, &a.map(|_| <T::Double as Field>::of(f64::NAN)));
            }
        } else if self.vectors {
            let (values, vectors) = spectrum::eigh(&a)?;
            at.store_vector(1, &values);
            at.store(2, &vectors);
        } else {
            at.store_vector(1, &spectrum::eigenvalues_h(&a)?);
        }
        Ok(())
    }
}

/// Which triangle of a Hermitian matrix is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Triangle {
    Lower,
    Upper,
}
impl Enumerated for Triangle {
    const VALUES: &'static [(&'static str, Triangle)] =
        &[("L", Triangle::Lower), ("U", Triangle::Upper), ("l", Triangle::Lower), ("u", Triangle::Upper)];
}

/// Argument 1: which triangle is read.
fn upper(c: &impl Arguments) -> bool {
    c.choice::<Triangle>("UPLO") == Triangle::Upper
}
fn unknown_triangle(_: &Op, given: &str) -> Error {
    Error::runtime(format!("Expected UPLO argument to be 'L' or 'U', but got {given}"))
}

pub static EIGH_STEP: Op = Op {
    sig: sig(
        "_linalg_eigh(Tensor A, str{L|U|l|u} UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
    ),
    unknown_choice: unknown_triangle,
    doc: "Eigenvalues and vectors of Hermitian matrices.",
    body: kernel(
        |c| {
            let a = c.tensor("A")?;
            square(a, "linalg.eigh")?;
            let vectors = if c.flag("compute_v") { columns_like(a) } else { Spec::new(&[0], a.dtype(), a.device()) };
            Ok(smallvec![part(a, &[a.size(a.ndim() - 1)], a.dtype().to_real()), vectors])
        },
        |c, out| {
            let (a, vectors) = (c.tensor("A")?, c.flag("compute_v"));
            let into = if vectors { &out[1] } else { a };
            run(&[a, &out[0], into], a.ndim() - 2, &Eigh { upper: upper(c), vectors })
        },
        Some(|c, out| spectra_on_gpu::eigh(c.tensor("A")?, upper(c), &out[0], c.flag("compute_v").then_some(&out[1]))),
    ),
    vjp: Vjp::Each(&[d(0, OUT0 | OUT1, |c| Term(eigh_backward(c).and_then(Term::ok)))]),
    samples: &["f32[3,3]", "f32[3,3], 'U'", "f32[2,2](nograd), 'L', False"],
    errors: &[("f32[2,2], 'X'", "RuntimeError", "Expected UPLO argument to be 'L' or 'U', but got X")],
    keeps: Some("eigenvalues eigenvectors"),
    batch: Batching::Leading,
    ..STEP
};

fn eigh_backward(c: &VjpCtx) -> Result<Term> {
    let (values, v) = (c.out(0), c.out(1));
    let diagonal = c.gi(0);
    if !c.has_grad(1) {
        return Ok((v.clone() * diagonal.unsqueeze(-2)).at(v.mh()));
    }
    let inner = v.clone().mh().at(c.gi(1));
    phase_free(inner.clone().diagonals(), "linalg_eigh_backward", "eigenvectors", "quantity")?;
    let inner = skew(inner) * 0.5 / gaps(values);
    let free = inner.clone() - inner.diagonals().diag_embed(0) + diagonal.diag_embed(0);
    Ok(v.clone().at(free).at(v.mh()))
}

pub static EIGH: Op = Op {
    sig: sig("linalg.eigh(Tensor self, str{L|U|l|u} UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)"),
    unknown_choice: unknown_triangle,
    doc: "Eigenvalues in rising order and orthonormal eigenvectors of symmetric or Hermitian matrices, of which one triangle is read.",
    body: decompose(|c| EIGH_STEP.calls((c.tensor(0)?, c.argument("UPLO").reborrow()))),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,3](spd)",
        "f32[2,3,3](spd), 'U'",
        "c64[2,2](spd, nograd)",
        "f32[0,0](nograd)",
        "f32[40,40](spd, nograd)",
    ],
    errors: &[
        ("f32[2,3]", "RuntimeError", "linalg.eigh: A must be batches of square matrices"),
        ("f32[2,2], 'X'", "RuntimeError", "Expected UPLO argument to be 'L' or 'U', but got X"),
    ],
    reference: "shape",
    ..SOLVER
};

pub static EIGVALSH: Op = Op {
    sig: sig("linalg.eigvalsh(Tensor self, str{L|U|l|u} UPLO='L') -> Tensor"),
    unknown_choice: unknown_triangle,
    doc: "The eigenvalues in rising order of symmetric or Hermitian matrices.",
    body: decompose(|c| {
        let a = c.tensor(0)?;
        first(&EIGH_STEP, (a, c.argument("UPLO").reborrow(), is_differentiated(a))).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3](spd)", "f32[2,3,3](spd), 'U'", "c64[2,2](spd)"],
    errors: &[("f32[2,3]", "RuntimeError", "linalg.eigh: A must be batches of square matrices")],
    ..SOLVER
};

struct Eig {
    vectors: bool,
}
impl Batch for Eig {
    const SCRATCH: usize = 12;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let a = at.matrix(0).doubled();
        if !a.is_finite() {
            return Err(Error::runtime("torch.linalg.eig: input tensor should not contain infs or NaNs."));
        }
        if self.vectors {
            let (values, vectors) = spectrum::eig(&a)?;
            at.store_vector::<c128>(1, &values);
            at.store(2, &vectors);
        } else {
            at.store_vector::<c128>(1, &spectrum::eigenvalues(&a)?);
        }
        Ok(())
    }
}

pub static EIG: Op = Op {
    sig: sig("linalg.eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)"),
    doc: "Complex eigenvalues, in no order, and eigenvectors of length one of square matrices.",
    body: kernel(
        |c| {
            let a = c.tensor(0)?;
            square(a, "linalg.eig")?;
            let d = a.dtype().to_complex();
            let n = a.size(a.ndim() - 1);
            Ok(smallvec![part(a, &[n], d), columns(a, n, n, d)])
        },
        |c, out| run(&[c.tensor(0)?, &out[0], &out[1]], out[0].ndim() - 1, &Eig { vectors: true }),
        None,
    ),
    vjp: Vjp::Each(&[d(0, OUT0 | OUT1, |c| Term(eig_backward(c).and_then(Term::ok)))]),
    samples: &["f32[3,3](nograd)", "f32[2,2,2](nograd)", "c64[2,2](nograd)", "f32[0,0](nograd)"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "linalg.eig: A must be batches of square matrices"),
        ("f32[1,1](= inf)", "RuntimeError", "input tensor should not contain infs or NaNs"),
    ],
    reference: "shape",
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Leading,
    ..MATRIX
};

fn eig_backward(c: &VjpCtx) -> Result<Term> {
    let (values, v, diagonal) = (c.out(0), c.out(1), c.gi(0));
    let back = |inner: Term| super::solve::SOLVE.call((v.clone().mh(), inner.at(v.clone().mh())));
    if !c.has_grad(1) {
        return Ok(back(diagonal.diag_embed(0)));
    }
    let inner = v.clone().mh().at(c.gi(1));
    phase_free(inner.clone().diagonals(), "linalg_eig_backward", "eigenvectors", "quantity")?;
    // Eigenvectors keep their norm: the component along themselves is removed.
    let length = v.clone().mh().at(v.clone() * inner.clone().diagonals().real_part().unsqueeze(-2));
    let inner = (inner - length) / gaps(values).conj();
    Ok(back(inner.clone() - inner.diagonals().diag_embed(0) + diagonal.diag_embed(0)))
}

pub static EIGVALS_STEP: Op = Op {
    sig: sig("_linalg_eigvals(Tensor A) -> Tensor"),
    doc: "Eigenvalues without vectors.",
    body: kernel(
        |c| {
            let a = c.tensor("A")?;
            square(a, "linalg.eigvals")?;
            Ok(smallvec![part(a, &[a.size(a.ndim() - 1)], a.dtype().to_complex())])
        },
        |c, out| run(&[c.tensor("A")?, &out[0]], out[0].ndim() - 1, &Eig { vectors: false }),
        None,
    ),
    vjp: Vjp::None("linalg.eig runs where a gradient is wanted"),
    samples: &["f32[3,3](nograd)"],
    errors: &[("1", "TypeError", "must be Tensor")],
    batch: Batching::Leading,
    ..STEP
};

pub static EIGVALS: Op = Op {
    sig: sig("linalg.eigvals(Tensor self) -> Tensor"),
    doc: "The complex eigenvalues of square matrices, in no order.",
    body: decompose(|c| {
        let a = c.tensor(0)?;
        square(a, "linalg.eigvals")?;
        match is_differentiated(a) {
            true => first(&EIG, (a,)).outputs(),
            false => EIGVALS_STEP.calls((a,)),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,2](= 4, 1, 2, 3)", "c64[2,2](nograd)", "f32[2,2,2](= 4, 1, 2, 3, 5, 1, 2, 2)"],
    errors: &[("f32[2,3]", "RuntimeError", "linalg.eigvals: A must be batches of square matrices")],
    reference: "shape",
    out_dtype: Some(OutDType::Castable),
    ..MATRIX
};
