//! The Cholesky factor of positive-definite matrices, and systems solved with it.
//!
//! As in PyTorch, the gradients of `cholesky_solve` and `cholesky_inverse` treat the factor as a full matrix, not as a
//! triangle.

use super::checks::*;
use super::on_gpu;
use super::solve::{compatible, triangular};
use crate::cpu::linalg::{At, Batch, Field, Group, Real, factor, lanes};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::host_read::int_list;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&CHOLESKY_EX, &CHOLESKY, &CHOLESKY_SOLVE, &CHOLESKY_INVERSE];

struct Cholesky;
impl Batch for Cholesky {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let failed = factor::cholesky(&mut a)?;
        at.store(1, &a);
        at.store_number(2, failed as i32);
        Ok(())
    }
    const IN_LANES: bool = true;
    #[inline(always)]
    fn lanes<T: Real, const N: usize>(&self, group: &Group<T>) {
        let mut a = group.matrices::<N, N>(0);
        let failed = lanes::cholesky(&mut a);
        group.store(1, &a);
        group.store_numbers(2, &failed);
    }
}

fn is_positive(info: &Tensor, name: &'static str) -> Result<()> {
    succeeded(
        info,
        name,
        Failure::Linalg,
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order {i} is not positive-definite).",
    )
}

pub static CHOLESKY_EX: Op = Op {
    sig: sig(
        "linalg.cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    ),
    doc: "L of `A = L L^H` (or its adjoint) for positive-definite A, and the order of the first minor that is not positive. One triangle is read.",
    body: kernel(
        |c| {
            let a = c.tensor(0)?;
            square(a, "linalg.cholesky")?;
            Ok(smallvec![columns_like(a), infos(a)])
        },
        |c, out| {
            let a = c.tensor(0)?;
            match c.flag("upper") {
                false => run(&[a, &out[0], &out[1]], a.ndim() - 2, &Cholesky)?,
                true => run(&[&mt_view(a), &mt_view(&out[0]), &out[1]], a.ndim() - 2, &Cholesky)?,
            }
            if c.flag("check_errors") { is_positive(&out[1], "linalg.cholesky_ex") } else { Ok(()) }
        },
        Some(|c, out| {
            on_gpu::cholesky(c.tensor(0)?, c.flag("upper"), out)?;
            if c.flag("check_errors") { is_positive(&out[1], "linalg.cholesky_ex") } else { Ok(()) }
        }),
    ),
    vjp: Vjp::Each(&[d(0, OUT0, |c| {
        let turn = |t: Term| if c.flag("upper") { t.mh() } else { t };
        let (l, g) = (turn(c.out(0)), turn(c.g()));
        // Half of the Hermitian matrix given by the lower triangle of L^H gL.
        let phi = l.clone().mh().at(g);
        let inner = (phi.clone().lower(0) + phi.lower(-1).mh()) * 0.5;
        triangular(l.clone(), triangular(l.mh(), inner, true, true, false), false, false, false)
    })]),
    samples: &[
        "f32[3,3](spd)",
        "f32[2,3,3](spd), upper=True",
        "c64[2,2](spd, nograd)",
        "f32[2,2](= -1, 0, 0, 1)",
        "f32[0,0]",
    ],
    errors: &[
        ("f32[2,3]", "RuntimeError", "linalg.cholesky: A must be batches of square"),
        ("f32[2,2](zeros), check_errors=True", "LinAlgError", "linalg.cholesky_ex: The factorization could not be"),
    ],
    keeps: Some("L upper"),
    batch: Batching::Leading,
    ..MATRIX
};

pub static CHOLESKY: Op = Op {
    sig: sig("linalg.cholesky(Tensor self, *, bool upper=False) -> Tensor"),
    doc: "The lower triangle L of `A = L L^H`, or its adjoint, for positive-definite matrices; a `LinAlgError` if one is not.",
    body: decompose(|c| {
        let out = CHOLESKY_EX.calls((c.tensor(0)?, c.flag("upper")))?;
        without_info(out, |info| is_positive(info, "linalg.cholesky"))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,3](spd)",
        "f32[2,3,3](spd)",
        "f32[3,3](spd), upper=True",
        "c64[3,3](spd, nograd)",
        "f32[2,0,0]",
        "f32[50,50](spd, nograd)",
    ],
    errors: &[
        ("f32[2,2](zeros)", "LinAlgError", "(the leading minor of order 1 is not positive-definite)"),
        ("f32[2,2,2](zeros)", "LinAlgError", "linalg.cholesky: (Batch element 0): The factorization"),
        ("f32[2,3]", "RuntimeError", "linalg.cholesky: A must be batches of square matrices"),
    ],
    ..SOLVER
};

/// X of `A X = B` for the Cholesky factor of A.
fn cholesky_solved(b: Term, factor: &Tensor, upper: bool) -> Term {
    let adjoint = Term::from(factor).mh();
    match upper {
        false => triangular(adjoint, triangular(factor.into(), b, false, true, false), true, true, false),
        true => triangular(factor.into(), triangular(adjoint, b, false, true, false), true, true, false),
    }
}

pub static CHOLESKY_SOLVE: Op = Op {
    sig: sig("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"),
    doc: "The solutions of `A X = self`, where `input2` is the Cholesky factor of A.",
    forms: FMO,
    body: decompose(|c| {
        square(c.tensor("input2")?, "cholesky_solve")?;
        compatible(c.tensor("input2")?, c.tensor(0)?, true, "cholesky_solve")?;
        cholesky_solved(c.tensor(0)?.into(), c.tensor("input2")?, c.flag("upper")).outputs()
    }),
    vjp: Vjp::Joint(Joint {
        args: &[0, 1],
        saves: A1 | OUT0,
        formula: |c| {
            let g = CHOLESKY_SOLVE.call((c.g(), c.arg(1), c.flag("upper"))).ok()?;
            let half = Term::from(&g).at(c.out(0).mh());
            let both = half.clone() + half.mh();
            let factor = if c.flag("upper") { -c.arg(1).at(both) } else { -both.at(c.arg(1)) };
            Ok(vec![Some(g), Some(factor.ok()?)])
        },
    }),
    samples: &[
        "f32[3,2], f32[3,3](spd, nograd)",
        "f32[3,2], f32[3,3](spd, nograd), True",
        "c64[2,2,1], c64[2,2](spd, nograd)",
    ],
    errors: &[
        ("f32[2,1], f32[2,3]", "RuntimeError", "square"),
        ("f32[3], f32[2,2]", "RuntimeError", "at least 2 dimensions"),
    ],
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Leading,
    ..SOLVER
};

/// A factor with a zero on its diagonal has no inverse.
fn has_inverse(l: &Tensor) -> Result<()> {
    let zeros = Term::from(l).diagonals().equals(0).to_dtype(DType::I64).ok()?;
    if all_zero(&zeros)? {
        return Ok(());
    }
    let (zeros, n) = (int_list(&zeros)?, l.size(l.ndim() - 1));
    let Some(at) = zeros.iter().position(|&z| z != 0) else { return Ok(()) };
    let which = if l.ndim() > 2 { format!("(Batch element {}): ", at / n) } else { String::new() };
    let text = format!(
        "{which}The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
        at % n + 1
    );
    Err(Error::linalg(text).in_op("cholesky_inverse"))
}

pub static CHOLESKY_INVERSE: Op = Op {
    sig: sig("cholesky_inverse(Tensor self, bool upper=False) -> Tensor"),
    doc: "The inverse of A from its Cholesky factor.",
    forms: FMO,
    body: reads_host(|c| {
        let l = c.tensor(0)?;
        square(l, "cholesky_inverse")?;
        has_inverse(l)?;
        cholesky_solved(Term::from(l).eye(), l, c.flag("upper")).outputs()
    }),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        let both = c.out(0).at(c.g() + c.g().mh()).at(c.out(0));
        if c.flag("upper") { -c.arg(0).at(both) } else { -both.at(c.arg(0)) }
    })]),
    samples: &["f32[3,3](spd, nograd)", "f32[2,2,2](spd, nograd), True", "c64[2,2](spd, nograd)"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "cholesky_inverse: A must be batches of square matrices"),
        ("f32[2,2](zeros)", "LinAlgError", "cholesky_inverse: The diagonal element 1 is zero"),
    ],
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Leading,
    ..SOLVER
};
