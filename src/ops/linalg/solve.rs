//! Inverses and linear systems: inv, solve, triangular systems.

use super::checks::*;
use super::on_gpu;
use crate::cpu::linalg::factor::solve_square;
use crate::cpu::linalg::lanes;
use crate::cpu::linalg::triangular::{Triangle, solve};
use crate::cpu::linalg::{At, Batch, Field, Group, Mat, Real};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::support::batch_linalg;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] =
    &[&INV_EX, &INV, &INVERSE, &SOLVE_STEP, &SOLVE_EX, &SOLVE, &TRIANGULAR_STEP, &SOLVE_TRIANGULAR, &TRIANGULAR_SOLVE];

struct Inverse;
impl Batch for Inverse {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let mut x = Mat::identity(a.rows, a.rows);
        let singular = solve_square(&mut a, &mut x)?;
        at.store(1, &x);
        at.store_number(2, singular as i32);
        Ok(())
    }
    const IN_LANES: bool = true;
    #[inline(always)]
    fn lanes<T: Real, const N: usize>(&self, group: &Group<T>) {
        let (mut a, mut x) = (group.matrices::<N, N>(0), lanes::identity());
        let singular = lanes::lu(&mut a, &mut x).singular;
        lanes::solve_factored(&a, &mut x);
        group.store(1, &x);
        group.store_numbers(2, &singular);
    }
}

pub(super) fn not_invertible(info: &Tensor, name: &'static str) -> Result<()> {
    succeeded(
        info,
        name,
        Failure::Linalg,
        "The diagonal element {i} is zero, the inversion could not be completed because the input matrix is singular.",
    )
}

pub static INV_EX: Op = Op {
    sig: sig("linalg.inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"),
    doc: "The inverses of square matrices, and for each zero, or the number of the first pivot that is zero.",
    body: kernel(
        |c| {
            let a = c.tensor("A")?;
            square(a, "linalg.inv")?;
            Ok(smallvec![columns_like(a), infos(a)])
        },
        |c, out| {
            let a = c.tensor("A")?;
            run(&[a, &out[0], &out[1]], a.ndim() - 2, &Inverse)?;
            if c.flag("check_errors") { not_invertible(&out[1], "linalg.inv_ex") } else { Ok(()) }
        },
        Some(|c, out| {
            on_gpu::inverse(c.tensor("A")?, out)?;
            if c.flag("check_errors") { not_invertible(&out[1], "linalg.inv_ex") } else { Ok(()) }
        }),
    ),
    vjp: Vjp::Each(&[d(0, OUT0, |c| -c.out(0).mh().at(c.g()).at(c.out(0).mh()))]),
    samples: &["f32[3,3]", "f32[2,3,3]", "f32[2,2](zeros)", "c64[2,2]", "f32[0,0]"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "linalg.inv: A must be batches of square matrices"),
        ("f32[2,2](zeros), check_errors=True", "RuntimeError", "linalg.inv_ex: The diagonal element 1 is zero"),
    ],
    keeps: Some("inverse"),
    batch: Batching::Leading,
    ..MATRIX
};

fn inverse(c: &Call) -> Result<Outputs> {
    without_info(INV_EX.calls((c.tensor(0)?,))?, |info| not_invertible(info, "linalg.inv"))
}

const INVERTED: Op = Op {
    doc: "The inverses of square matrices; a `LinAlgError` if one is singular.",
    body: decompose(inverse),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]", "f32[2,3,3]", "f64[2,2]", "c64[2,2]", "f32[2,0,0]", "f32[40,40](spd)"],
    errors: &[
        ("f32[2,2](zeros)", "LinAlgError", "linalg.inv: The diagonal element 1 is zero, the inversion could not"),
        ("f32[2,2](= 1, 2, 2, 4)", "LinAlgError", "The diagonal element 2 is zero"),
        ("f32[3,2,2](zeros)", "LinAlgError", "linalg.inv: (Batch element 0): The diagonal"),
        ("f32[2,3]", "RuntimeError", "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"),
        ("f32[3]", "RuntimeError", "linalg.inv: The input tensor A must have at least 2 dimensions."),
        (
            "i64[2,2]",
            "NotImplementedError",
            "linalg.inv: Expected a floating point or complex tensor as input. Got Long",
        ),
        ("f16[2,2]", "NotImplementedError", "linalg.inv: Low precision dtypes not supported. Got Half"),
    ],
    reference: "np.linalg.inv(x0)",
    ..SOLVER
};
pub static INV: Op = Op { sig: sig("linalg.inv(Tensor A) -> Tensor"), ..INVERTED };
pub static INVERSE: Op = Op { sig: sig("inverse(Tensor self) -> Tensor"), forms: FMO, ..INVERTED };

struct Solve;
impl Batch for Solve {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let (mut a, mut b) = (at.matrix(0), at.matrix(1));
        let singular = solve_square(&mut a, &mut b)?;
        at.store(2, &b);
        at.store_number(3, singular as i32);
        Ok(())
    }
    const IN_LANES: bool = true;
    #[inline(always)]
    fn lanes<T: Real, const N: usize>(&self, group: &Group<T>) {
        match group.cols(1) {
            1 => solve_lanes::<T, N, 1>(group),
            _ => solve_lanes::<T, N, N>(group),
        }
    }
}

#[inline(always)]
fn solve_lanes<T: Real, const N: usize, const C: usize>(group: &Group<T>) {
    let (mut a, mut b) = (group.matrices::<N, N>(0), group.matrices::<N, C>(1));
    let singular = lanes::lu(&mut a, &mut b).singular;
    lanes::solve_factored(&a, &mut b);
    group.store(2, &b);
    group.store_numbers(3, &singular);
}

/// Arguments A and B of a step make systems: of one dtype, of the same leading dimensions.
fn fits(c: &Call, left: bool, name: &'static str) -> Result<()> {
    let (a, b) = (c.tensor("A")?, c.tensor("B")?);
    square(a, name)?;
    same_dtype(a, b, name)?;
    compatible(a, b, left, name)?;
    if lead(a) == lead(b) {
        return Ok(());
    }
    let text = format!("expected the same leading dimensions, got {} and {}", Show(a.shape()), Show(b.shape()));
    Err(Error::runtime(text).in_op(name))
}

fn same_dtype(a: &Tensor, b: &Tensor, name: &'static str) -> Result<()> {
    let (x, y) = (a.dtype().scalar_type_name(), b.dtype().scalar_type_name());
    if x == y {
        return Ok(());
    }
    let text = format!("Expected A and B to have the same dtype, but found A of type {x} and B of type {y} instead");
    Err(Error::runtime(text).in_op(name))
}

pub static SOLVE_STEP: Op = Op {
    sig: sig("_linalg_solve_ex(Tensor A, Tensor B) -> (Tensor result, Tensor info)"),
    doc: "The solutions of `A X = B` where both have the same leading dimensions.",
    body: kernel(
        |c| {
            fits(c, true, "linalg.solve_ex")?;
            Ok(smallvec![columns_like(c.tensor("B")?), infos(c.tensor("A")?)])
        },
        |c, out| run(&[c.tensor("A")?, c.tensor("B")?, &out[0], &out[1]], out[1].ndim(), &Solve),
        Some(on_gpu::solve),
    ),
    vjp: Vjp::None("`linalg.solve_ex` has the gradient"),
    samples: &["f32[3,3](nograd), f32[3,2](nograd)", "c64[2,2,2](nograd), c64[2,2,1](nograd)"],
    errors: &[("f32[2,2], 1", "TypeError", "must be Tensor")],
    batch: Batching::Leading,
    ..STEP
};

/// Whether the right-hand side is a vector, or a batch of them.
fn is_vector(a: &[usize], b: &[usize]) -> bool {
    b.len() == 1 || (b.len() == a.len() - 1 && *b == a[..b.len()])
}

/// X of `A X = B`, or `X A = B`; B may be a vector or a batch of them.
fn solved(a: &Tensor, b: &Tensor, left: bool) -> Result<Outputs> {
    let name = "linalg.solve";
    square(a, name)?;
    same_dtype(a, b, name)?;
    let vector = is_vector(a.shape(), b.shape());
    if vector && !left {
        let text = "Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)";
        return Err(Error::runtime(text).in_op(name));
    }
    let b = if vector { Term::from(b).unsqueeze(-1).ok()? } else { b.clone() };
    compatible(a, &b, left, name)?;
    let a_ndim = a.ndim();
    let (a, b) = together(a.into(), Term::from(b))?;
    let turn = |t: Term| if left { t } else { t.mt() };
    let mut out = SOLVE_STEP.calls((turn(a), turn(b)))?;
    let x = turn(Term::from(&out[0]));
    out[0] = match vector {
        // The result for a batch of vectors is laid out as a matrix.
        true if a_ndim > 2 => x.squeeze(-1).mt().packed().mt(),
        true => x.squeeze(-1),
        false => x,
    }
    .ok()?;
    Ok(out)
}

/// Checks that B has as many rows (or columns) as A.
pub(super) fn compatible(a: &Tensor, b: &Tensor, left: bool, name: &'static str) -> Result<()> {
    if b.ndim() < 2 {
        return Err(Error::runtime("The input tensor B must have at least 2 dimensions.").in_op(name));
    }
    let ((n, m), (rows, cols)) = (sizes(a), sizes(b));
    if n != if left { rows } else { cols } {
        let equation = if left { "AX = B" } else { "XA = B" };
        let text = format!("Incompatible shapes of A and B for the equation {equation} ({n}x{m} and {rows}x{cols})");
        return Err(Error::runtime(text).in_op(name));
    }
    Ok(())
}

fn solve_backward(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let (left, vector) = (c.flag("left"), is_vector(&c.shape(0), &c.shape(1)));
    let column = |t: Term| if vector { t.unsqueeze(-1) } else { t };
    let b = first(&SOLVE_EX, (c.arg(0).mh(), column(c.g()), left)).ok()?;
    let (x, g) = (column(c.out(0)), -Term::from(&b));
    let a = if left { g.at(x.mh()) } else { x.mh().at(g) };
    Ok(vec![Some(a.ok()?), Some(if vector { Term::from(b).squeeze(-1).ok()? } else { b })])
}

fn not_solvable(info: &Tensor, name: &'static str) -> Result<()> {
    succeeded(info, name, Failure::Linalg, "The solver failed because the input matrix is singular.")
}

pub static SOLVE_EX: Op = Op {
    sig: sig(
        "linalg.solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    ),
    doc: "The solutions of `A X = B`, and for each zero, or the number of the first pivot that is zero.",
    body: decompose(|c| {
        let out = solved(c.tensor("A")?, c.tensor("B")?, c.flag("left"))?;
        if c.flag("check_errors") {
            not_solvable(&out[1], "torch.linalg.solve_ex")?;
        }
        Ok(out)
    }),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | OUT0, formula: solve_backward }),
    samples: &["f32[3,3], f32[3,2]", "f32[3,3], f32[3]", "f32[2,3,3], f32[2,3]", "c64[2,2], c64[2,2], left=False"],
    keeps: Some("A left result"),
    errors: &[(
        "f32[2,2](zeros), f32[2], check_errors=True",
        "LinAlgError",
        "torch.linalg.solve_ex: The solver failed",
    )],
    batch: Batching::Rule(batch_linalg::solve),
    ..SOLVER
};

pub static SOLVE: Op = Op {
    sig: sig("linalg.solve(Tensor A, Tensor B, *, bool left=True) -> Tensor"),
    doc: "The solutions of `A X = B`, or with `left=False` of `X A = B`. `B` may be vectors; leading dimensions broadcast.",
    body: decompose(|c| {
        let out = SOLVE_EX.calls((c.tensor("A")?, c.tensor("B")?, c.flag("left")))?;
        without_info(out, |info| not_solvable(info, "torch.linalg.solve"))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,3], f32[3,2]",
        "f32[3,3], f32[3]",
        "f32[2,3,3], f32[3,2]",
        "f32[3,3], f32[2,3], left=False",
        "c64[2,2], c64[2,1]",
        "f32[0,0], f32[0,2]",
    ],
    errors: &[
        (
            "f32[2,2](zeros), f32[2]",
            "LinAlgError",
            "torch.linalg.solve: The solver failed because the input matrix is singular.",
        ),
        ("f32[2,3], f32[2]", "RuntimeError", "linalg.solve: A must be batches of square matrices"),
        ("f32[2,2], f32[3,1]", "RuntimeError", "Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)"),
        ("f32[2,2], f64[2]", "RuntimeError", "Expected A and B to have the same dtype"),
    ],
    ..SOLVER
};

struct Triangular(Triangle);
impl Batch for Triangular {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut b = at.matrix(1);
        solve(&at.matrix(0), &mut b, self.0)?;
        at.store(2, &b);
        Ok(())
    }
}

pub static TRIANGULAR_STEP: Op = Op {
    sig: sig("_linalg_solve_triangular(Tensor A, Tensor B, bool upper, bool left, bool unitriangular) -> Tensor"),
    doc: "The solutions of triangular systems where both have the same leading dimensions.",
    body: kernel(
        |c| {
            fits(c, c.flag("left"), "linalg.solve_triangular")?;
            Ok(smallvec![columns_like(c.tensor("B")?)])
        },
        |c, out| {
            let (a, b, upper, left) = (c.tensor("A")?, c.tensor("B")?, c.flag("upper"), c.flag("left"));
            let work = Triangular(Triangle { upper: upper == left, unit: c.flag("unitriangular") });
            match left {
                true => run(&[a, b, &out[0]], a.ndim() - 2, &work),
                // X A = B is A^T X^T = B^T.
                false => run(&[&mt_view(a), &mt_view(b), &mt_view(&out[0])], a.ndim() - 2, &work),
            }
        },
        Some(|c, out| {
            let (a, b, upper, left) = (c.tensor("A")?, c.tensor("B")?, c.flag("upper"), c.flag("left"));
            match left {
                true => on_gpu::triangular(a, b, upper, c.flag("unitriangular"), &out[0]),
                false => {
                    on_gpu::triangular(&mt_view(a), &mt_view(b), !upper, c.flag("unitriangular"), &mt_view(&out[0]))
                }
            }
        }),
    ),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | OUT0, formula: triangular_backward }),
    samples: &["f32[3,3](spd), f32[3,2], True, True, False", "f32[3,3](spd), f32[2,3], False, False, True"],
    errors: &[("f32[2,2], 1, True, True, True", "TypeError", "must be Tensor")],
    keeps: Some("self=A result left upper unitriangular"),
    batch: Batching::Leading,
    ..STEP
};

fn triangular_backward(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let (upper, left, unit) = (c.flag("upper"), c.flag("left"), c.flag("unitriangular"));
    let b = TRIANGULAR_STEP.call((c.arg(0).mh(), c.g(), !upper, left, unit)).ok()?;
    let g = || Term::from(&b);
    let whole = if left { -g().at(c.out(0).mh()) } else { -c.out(0).mh().at(g()) };
    let a = if upper { whole.upper(unit as i64) } else { whole.lower(-(unit as i64)) };
    Ok(vec![Some(a.ok()?), Some(b)])
}

/// X of a triangular system; leading dimensions broadcast.
pub(super) fn triangular(a: Term, b: Term, upper: bool, left: bool, unit: bool) -> Term {
    match together(a, b) {
        Ok((a, b)) => TRIANGULAR_STEP.call((a, b, upper, left, unit)),
        Err(e) => e.into(),
    }
}

pub static SOLVE_TRIANGULAR: Op = Op {
    sig: sig(
        "linalg.solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    ),
    doc: "The solutions of `A X = B`, or with `left=False` of `X A = B`, for triangular A, in its dtype; the other triangle is not read.",
    body: decompose(|c| {
        let (a, b, name) = (c.tensor(0)?, c.tensor("B")?, "linalg.solve_triangular");
        square(a, name)?;
        compatible(a, b, c.flag("left"), name)?;
        let b = Term::from(b).to_dtype(a.dtype());
        triangular(a.into(), b, c.flag("upper"), c.flag("left"), c.flag("unitriangular")).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,3](spd), f32[3,2], upper=True",
        "f32[3,3](spd), f32[3,2], upper=False",
        "f32[3,3](spd), f32[2,3], upper=True, left=False",
        "f32[2,3,3](spd), f32[3,2], upper=False, unitriangular=True",
        "c64[2,2](spd), c64[2,2], upper=True",
        "f32[2,2](spd), f64[2,1], upper=True",
        "f64[2,2](spd), f32[2,1], upper=False",
    ],
    errors: &[
        ("f32[2,3], f32[2,2], upper=True", "RuntimeError", "linalg.solve_triangular: A must be batches of square"),
        ("f32[2,2], f32[3,2], upper=True", "RuntimeError", "Incompatible shapes of A and B for the equation AX = B"),
        ("f32[2,2], f32[2], upper=True", "RuntimeError", "The input tensor B must have at least 2 dimensions."),
    ],
    ..SOLVER
};

fn solved_and_copied(c: &Call) -> Result<Outputs> {
    let (a, b) = together(c.tensor("A")?.into(), c.tensor(0)?.into())?;
    let (copy, upper) = (a.clone().mt().packed().mt(), c.flag("upper"));
    let x = match c.flag("transpose") {
        true => triangular(a.mt(), b, !upper, true, c.flag("unitriangular")),
        false => triangular(a, b, upper, true, c.flag("unitriangular")),
    };
    all([x, copy])
}

pub static TRIANGULAR_SOLVE: Op = Op {
    sig: sig(
        "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    ),
    doc: "The solution X of `A X = self` for triangular A, and a copy of A; see `linalg.solve_triangular`.",
    forms: FMO,
    body: decompose(|c| {
        let (b, a) = (c.tensor(0)?, c.tensor("A")?);
        square(a, "triangular_solve")?;
        compatible(a, b, true, "triangular_solve")?;
        solved_and_copied(c)
    }),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1, formula: |c| c.through(solved_and_copied) }),
    warns_once: true,
    warns: Some(|_| {
        Some(
            "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future PyTorch \
             release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the \
             inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B)."
                .into(),
        )
    }),
    samples: &["f32[3,2], f32[3,3](spd)", "f32[3,2], f32[2,3,3](spd), False, True"],
    errors: &[("f32[2,2], f32[2,3]", "RuntimeError", "square")],
    ..SOLVER
};
