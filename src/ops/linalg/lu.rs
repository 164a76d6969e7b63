//! LU with its permutation, and systems solved with it.

use super::checks::*;
use super::on_gpu;
use super::solve::{compatible, triangular};
use crate::cpu::linalg::{At, Batch, Field, Mat, factor};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::Dims;
use crate::op::*;
use crate::ops::reduce::extrema::{MAX, MIN};
use crate::ops::support::host_read::{int_list, item};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] =
    &[&LU_FACTOR_EX, &LU_FACTOR, &LU_WITH_INFO, &PERMUTATION, &LU_UNPACK, &LU, &LU_SOLVE, &TORCH_LU_SOLVE];

struct Lu;
impl Batch for Lu {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let (pivots, singular) = factor::lu(&mut a)?;
        at.store(1, &a);
        at.store_vector(2, &pivots.iter().map(|&p| p as i32 + 1).collect::<Vec<_>>());
        at.store_number(3, singular as i32);
        Ok(())
    }
}

fn has_pivots(info: &Tensor, name: &'static str) -> Result<()> {
    succeeded(
        info,
        name,
        Failure::Runtime,
        "U[{i},{i}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    )
}

pub static LU_FACTOR_EX: Op = Op {
    sig: sig(
        "linalg.lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    ),
    doc: "L and U of `A = P L U` in one matrix, the row (from one) that each step exchanged its own with, and the number of the first zero pivot.",
    body: kernel(
        |c| {
            let a = c.tensor("A")?;
            matrices(a, "linalg.lu_factor")?;
            if !c.flag("pivot") {
                let text = "LU without pivoting is not implemented on the CPU";
                return Err(Error::runtime(text).in_op("linalg.lu_factor"));
            }
            let (m, n) = sizes(a);
            Ok(smallvec![columns_like(a), part(a, &[m.min(n)], DType::I32), infos(a)])
        },
        |c, out| {
            let a = c.tensor("A")?;
            run(&[a, &out[0], &out[1], &out[2]], a.ndim() - 2, &Lu)?;
            if c.flag("check_errors") { has_pivots(&out[2], "torch.linalg.lu_factor_ex") } else { Ok(()) }
        },
        Some(|c, out| {
            out[0].copy_raw(c.tensor("A")?)?;
            gpu::lu(&out[0].gpu_view()?, &out[1].gpu_view()?, &out[2].gpu_view()?)?;
            if c.flag("check_errors") { has_pivots(&out[2], "torch.linalg.lu_factor_ex") } else { Ok(()) }
        }),
    ),
    vjp: Vjp::Each(&[d(0, OUT0 | OUT1, lu_backward)]),
    samples: &["f32[3,3]", "f32[2,2,3]", "f32[3,2]", "f32[2,2](zeros)", "c64[2,2]", "f32[0,3]", "f32[40,36]"],
    errors: &[
        ("f32[3]", "RuntimeError", "2"),
        ("f32[2,2], pivot=False", "RuntimeError", "LU without pivoting is not implemented on the CPU"),
        ("f32[2,2](zeros), check_errors=True", "RuntimeError", "torch.linalg.lu_factor_ex: U[1,1] is zero"),
    ],
    keeps: Some("LU pivots pivot"),
    batch: Batching::Leading,
    ..MATRIX
};

/// Source: PyTorch's derivation for `A = P L U`: the lower part of `L^H gL` and the upper part of `gU U^H` are
/// independent; rows or columns beyond the square part add to it.
fn lu_backward(c: &VjpCtx) -> Term {
    let (lu, g) = (c.out(0), c.g());
    let shape = c.shape(0);
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let k = m.min(n);
    let p = PERMUTATION.call((c.out(1), m)).to_dtype(c.meta_of(0).dtype);
    // The square part, and the rows below or the columns beside it.
    let corner = |t: Term| t.cut_out(-2, 0, k).cut_out(-1, 0, k);
    let beside = |t: Term| if m > n { t.cut_out(-2, k, m - k) } else { t.cut_out(-1, k, n - k) };
    let (square, g_square) = (corner(lu.clone()), corner(g.clone()));
    let l = square.clone().lower(-1) + square.eye();
    let (gl, gu) = (g_square.clone().lower(-1), g_square.upper(0));
    let (mut low, mut high) = (l.mh().at(gl), gu.at(square.clone().upper(0).mh()));
    let rest = (m != n).then(|| (beside(lu), beside(g)));
    if let Some((x, gx)) = &rest {
        if m > n {
            high = high - x.clone().mh().at(gx);
        } else {
            low = low - gx.clone().at(x.clone().mh());
        }
    }
    let inner = low.lower(-1) + high.upper(0);
    let by_l = |t: Term| triangular(square.clone().mh(), t, true, true, true);
    let by_u = |t: Term| triangular(square.clone().mh(), t, false, false, false);
    let whole = match rest {
        None => by_l(by_u(inner)),
        Some((_, gx)) if m > n => joined([by_l(by_u(inner)), by_u(gx)], -2),
        Some((_, gx)) => joined([by_l(by_u(inner)), by_l(gx)], -1),
    };
    p.at(whole)
}

pub static LU_FACTOR: Op = Op {
    sig: sig("linalg.lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"),
    doc: "L and U of `A = P L U` in one matrix and the rows (from one) that were exchanged; an error if U has a zero pivot.",
    body: decompose(|c| {
        let out = LU_FACTOR_EX.calls((c.tensor("A")?, c.flag("pivot")))?;
        without_info(out, |info| has_pivots(info, "torch.linalg.lu_factor"))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]", "f32[2,3,2]"],
    errors: &[("f32[2,2](zeros)", "RuntimeError", "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve")],
    ..SOLVER
};

/// The op behind `torch.lu`.
pub static LU_WITH_INFO: Op = Op {
    sig: sig(
        "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    ),
    doc: "LU, pivots and info as `linalg.lu_factor_ex` gives them.",
    body: decompose(|c| LU_FACTOR_EX.calls((c.tensor(0)?, c.flag("pivot"), c.flag("check_errors")))),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]"],
    errors: &[("f32[3]", "RuntimeError", "at least 2 dimensions")],
    on_host: false,
    ..STEP
};

struct Permutation;
impl Batch for Permutation {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let pivots = at.vector::<i32>(1);
        let order = at.cols(0);
        let mut rows: Vec<usize> = (0..order).collect();
        for (i, &p) in pivots.iter().enumerate() {
            match usize::try_from(i64::from(p) - 1) {
                Ok(p) if p < order && i < order => rows.swap(i, p),
                _ => return Err(no_row(order, p.into())),
            }
        }
        // Bounded by what `over` has probed for.
        let mut place = vec![0; order];
        rows.iter().enumerate().for_each(|(to, &from)| place[from] = to);
        at.store(0, &Mat::<T>::from_fn(order, order, |i, j| if place[i] == j { T::one() } else { T::default() }));
        Ok(())
    }
}

fn no_row(order: usize, pivot: i64) -> Error {
    Error::runtime(format!("pivots passed to lu_unpack must be between 1 and {order}, got {pivot}"))
}

/// An error unless every pivot names one of the rows; two numbers decide, so that no list is read back where they do.
fn rows_exist(pivots: &Tensor, order: usize) -> Result<()> {
    let steps = pivots.size(pivots.ndim() - 1);
    let is_row = |p: i64| p >= 1 && p <= order as i64;
    let number = |op: &'static Op| Ok::<i64, Error>(item(&op.call((pivots,)).ok()?)?.to_i64());
    if pivots.numel() == 0 || steps <= order && is_row(number(&MIN)?) && is_row(number(&MAX)?) {
        return Ok(());
    }
    let given = int_list(pivots)?;
    let first = given.iter().enumerate().find(|&(i, &p)| i % steps >= order || !is_row(p));
    first.map_or(Ok(()), |(_, &p)| Err(no_row(order, p)))
}

pub static PERMUTATION: Op = Op {
    sig: sig("_permutation(Tensor pivots, int n) -> Tensor"),
    doc: "The permutation P of `A = P L U` from the rows that were exchanged.",
    body: kernel(
        |c| {
            let (p, n) = (c.tensor("pivots")?, c.int("n")?.max(0) as usize);
            if p.ndim() == 0 {
                return Err(Error::runtime("expected pivots of at least one dimension, got a number"));
            }
            let shape: Vec<usize> = p.shape()[..p.ndim() - 1].iter().copied().chain([n, n]).collect();
            Ok(Spec::one(&shape, DType::F32, p.device()))
        },
        |c, out| run(&[&out[0], c.tensor("pivots")?], out[0].ndim() - 2, &Permutation),
        Some(|c, out| {
            rows_exist(c.tensor("pivots")?, sizes(&out[0]).0)?;
            on_gpu::permutation(c.tensor("pivots")?, &out[0])
        }),
    ),
    vjp: Vjp::None("pivots are integers"),
    samples: &["i32[3](= 2, 3, 3), 3"],
    errors: &[("i32[1](= 9), 3", "RuntimeError", "between 1 and 3")],
    ..STEP
};

/// The shape of the pivots of LU: one for each row or column, whichever are fewer.
fn pivots_shape(lu: &Tensor) -> Dims {
    let (m, n) = sizes(lu);
    lead(lu).iter().copied().chain([m.min(n)]).collect()
}

/// P, L and U from the output of `lu_factor`.
fn unpacked(lu: &Tensor, pivots: &Tensor) -> Result<[Term; 3]> {
    let (m, n) = sizes(lu);
    let k = m.min(n);
    let low = Term::from(lu).cut_out(-1, 0, k).lower(-1);
    let one = crate::ops::create::range::EYE_M.call((m, k, lu.dtype(), lu.device()));
    Ok([PERMUTATION.call((pivots, m)).to_dtype(lu.dtype()), low + one, Term::from(lu).cut_out(-2, 0, k).upper(0)])
}

/// The same; parts that are not requested are empty.
fn wanted_parts(c: &Call) -> Result<Outputs> {
    let (lu, data, order) = (c.tensor("LU_data")?, c.flag("unpack_data"), c.flag("unpack_pivots"));
    let [p, l, u] = unpacked(lu, c.tensor("LU_pivots")?)?;
    let none = || crate::ops::create::like::EMPTY.call(([0], lu.dtype(), lu.device()));
    all([if order { p } else { none() }, if data { l } else { none() }, if data { u } else { none() }])
}

pub static LU_UNPACK: Op = Op {
    sig: sig(
        "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    ),
    doc: "P, L and U of `A = P L U` from what `linalg.lu_factor` gives; parts that are not wanted are empty.",
    body: decompose(|c| {
        let (lu, pivots) = (c.tensor("LU_data")?, c.tensor("LU_pivots")?);
        ranked(lu, "lu_unpack")?;
        let (want, got) = (pivots_shape(lu), pivots.shape());
        if want.as_slice() != got {
            let text = format!("Expected LU_pivots to have shape {} but got {} instead.", Show(&want), Show(got));
            return Err(Error::value(text));
        }
        if pivots.dtype() != DType::I32 {
            let text = "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be used with the output produced by torch.linalg.lu_factor";
            return Err(Error::runtime(text));
        }
        wanted_parts(c)
    }),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0 | A1, formula: |c| c.through(wanted_parts) }),
    keeps: Some("LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2"),
    constant: &[0],
    samples: &[
        "f32[3,3], i32[3](= 2, 3, 3)",
        "f32[2,3], i32[2](= 2, 2), False",
        "f32[3,2], i32[2](= 2, 2), True, False",
    ],
    errors: &[
        ("f32[2,2], i64[2]", "RuntimeError", "torch.int32"),
        ("f32[2,2], i32[]", "ValueError", "Expected LU_pivots to have shape [2] but got [] instead."),
    ],
    batch: Batching::Leading,
    ..SOLVER
};

fn all_factors(c: &Call) -> Result<Outputs> {
    let out = LU_FACTOR_EX.calls((c.tensor("A")?, c.flag("pivot")))?;
    all(unpacked(&out[0], &out[1])?)
}

pub static LU: Op = Op {
    sig: sig("linalg.lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"),
    doc: "A permutation P, a unit lower triangle L and an upper triangle U with `A = P L U`.",
    body: decompose(all_factors),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0, formula: |c| c.through(all_factors) }),
    constant: &[0],
    samples: &["f32[3,3]", "f32[2,2,3]", "f32[3,2]", "c64[2,2]", "f32[2,2](zeros)", "f32[0,2]"],
    errors: &[("f32[3]", "RuntimeError", "2")],
    batch: Batching::Leading,
    ..SOLVER
};

fn check_factored(c: &Call) -> Result<()> {
    let (lu, pivots, b, left, name) =
        (c.tensor("LU")?, c.tensor("pivots")?, c.tensor("B")?, c.flag("left"), "linalg.lu_solve");
    square(lu, name)?;
    if pivots.dtype() != DType::I32 {
        return Err(Error::runtime("pivots should be a Tensor of scalar type torch.int32").in_op(name));
    }
    if pivots_shape(lu).as_slice() != pivots.shape() {
        let text = "Number of pivots per batch should be same as the dimension of the matrix";
        return Err(Error::runtime(text).in_op(name));
    }
    compatible(lu, b, left, name)?;
    if lu.dtype() != b.dtype() {
        let (x, y) = (lu.dtype().scalar_type_name(), b.dtype().scalar_type_name());
        let text = format!("LU and B must have the same dtype, but got {x} and {y}");
        return Err(Error::runtime(text).in_op(name));
    }
    Ok(())
}

/// X of `A X = B` (or `X A = B`), where A, or its adjoint, was factored.
fn lu_solved(c: &Call) -> Result<Outputs> {
    let (lu, pivots, b, left, adjoint) =
        (c.tensor("LU")?, c.tensor("pivots")?, c.tensor("B")?, c.flag("left"), c.flag("adjoint"));
    let p = PERMUTATION.call((pivots, lu.size(lu.ndim() - 1))).to_dtype(lu.dtype());
    let (lu, b) = (Term::from(lu), Term::from(b));
    // X A = B is conj(A)^H X^T = B^T.
    let (lu, b, adjoint) = if left { (lu, b, adjoint) } else { (lu.conj(), b.mt(), !adjoint) };
    let solve = |b: Term, upper: bool| match adjoint {
        false => triangular(lu.clone(), b, upper, true, !upper),
        true => triangular(lu.clone().mh(), b, !upper, true, !upper),
    };
    let x = match adjoint {
        false => solve(solve(p.mt().at(b), false), true),
        true => p.at_by_columns(solve(solve(b, true), false)),
    };
    if left { x } else { x.mt() }.outputs()
}

pub static LU_SOLVE: Op = Op {
    sig: sig("linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor"),
    doc: "The solutions of `A X = B`, `X A = B` or, with `adjoint`, of `A^H X = B`, from what `linalg.lu_factor` gave for A.",
    body: decompose(|c| {
        check_factored(c)?;
        lu_solved(c)
    }),
    vjp: Vjp::Joint(Joint { args: &[0, 2], saves: A0 | A1 | A2, formula: |c| c.through(lu_solved) }),
    samples: &[
        "f32[3,3](spd), i32[3](= 2, 3, 3), f32[3,2]",
        "f32[3,3](spd), i32[3](= 2, 3, 3), f32[3,2], adjoint=True",
        "f32[3,3](spd), i32[3](= 2, 3, 3), f32[2,3], left=False",
        "c64[2,2](spd), i32[2](= 2, 2), c64[2,2], left=False, adjoint=True",
    ],
    errors: &[
        ("f32[2,2], i64[2], f32[2,1]", "RuntimeError", "pivots should be a Tensor of scalar type torch.int32"),
        ("f32[2,2], i32[3], f32[2,1]", "RuntimeError", "Number of pivots per batch should be same as the dimension"),
        ("f32[2,3], i32[2], f32[2,1]", "RuntimeError", "square"),
    ],
    batch: Batching::Leading,
    ..SOLVER
};

pub static TORCH_LU_SOLVE: Op = Op {
    sig: sig("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor"),
    doc: "The solutions of `A X = self` from what `linalg.lu_factor` gave for A.",
    forms: FMO,
    body: decompose(|c| LU_SOLVE.calls((c.tensor("LU_data")?, c.tensor("LU_pivots")?, c.tensor(0)?))),
    vjp: Vjp::Composite,
    warns_once: true,
    warns: Some(|_| {
        Some(
            "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\n\
             Note that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced \
             with\nX = torch.linalg.lu_solve(LU, pivots, B)"
                .into(),
        )
    }),
    samples: &["f32[3,2], f32[3,3](spd), i32[3](= 2, 3, 3)"],
    errors: &[("f32[2,1], f32[2,3], i32[2]", "RuntimeError", "square")],
    ..SOLVER
};
