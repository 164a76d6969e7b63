//! Products and functions of matrices: powers, the exponential, chains of products, `tensorinv` and `tensorsolve`.

use super::checks::*;
use super::solve::{INV, SOLVE};
use crate::cpu::linalg::exponential;
use crate::cpu::linalg::{At, Batch, Field};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::movement::copy::COPY_;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MATRIX_POWER, &MATRIX_EXP, &MULTI_DOT, &CHAIN_MATMUL, &TENSORINV, &TENSORSOLVE];

pub static MATRIX_POWER: Op = Op {
    sig: sig("linalg.matrix_power(Tensor self, int n) -> Tensor"),
    doc: "A square matrix times itself, `n` times over; negative powers are those of the inverse.",
    aliases: &["matrix_power"],
    forms: FMO,
    body: decompose(|c| {
        let (a, n) = (c.tensor(0)?, c.int("n")?);
        square_of_any(a, "linalg.matrix_power")?;
        if n == 0 {
            // As in PyTorch, a copy that is overwritten, so that it has a node.
            return COPY_.call_inplace((Term::from(a).packed(), Term::from(a).eye())).map(|t| smallvec![t]);
        }
        if n == 1 {
            return Term::from(a).packed().outputs();
        }
        let mut square = if n < 0 { INV.call((a,)) } else { a.into() };
        let (mut rest, mut result) = (n.unsigned_abs(), None::<Term>);
        loop {
            if rest & 1 == 1 {
                result = Some(result.map_or(square.clone(), |r| r.at(&square)));
            }
            rest >>= 1;
            match (rest, result) {
                (0, Some(r)) => return r.outputs(),
                (_, r) => result = r,
            }
            square = square.clone().at(square);
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3], 2", "f32[2,3,3], 5", "f32[3,3], 0", "f32[3,3](spd), -2", "f32[2,2], 1", "c64[2,2], 3"],
    errors: &[
        ("f32[2,3], 2", "RuntimeError", "linalg.matrix_power: A must be batches of square matrices"),
        ("f32[2,2](zeros), -1", "LinAlgError", "linalg.inv: The diagonal element 1 is zero"),
    ],
    ..SOLVER
};

struct Exponential;
impl Batch for Exponential {
    const SCRATCH: usize = 16;
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        at.store(1, &exponential::exponential(&at.matrix(0).doubled())?);
        Ok(())
    }
}

/// Source: R. Mathias, "A chain rule for matrix functions" (1996): the off-diagonal block of `exp([[A^H, G], [0,
/// A^H]])`.
fn exp_backward(c: &VjpCtx) -> Term {
    let (a, g) = (c.arg(0).mh(), c.g());
    let shape = c.shape(0);
    let n = shape[shape.len() - 1];
    let whole = joined([joined([a.clone(), g], -1), joined([c.zeros(0), a], -1)], -2);
    MATRIX_EXP.call((whole,)).cut_out(-2, 0, n).cut_out(-1, n, n)
}

pub static MATRIX_EXP: Op = Op {
    sig: sig("linalg.matrix_exp(Tensor self) -> Tensor"),
    doc: "The exponential of square matrices, `sum(A^k / k!)`.",
    aliases: &["matrix_exp"],
    forms: FM,
    body: kernel(
        |c| {
            let (a, name) = (c.tensor(0)?, "linalg.matrix_exp");
            let half = a.dtype().is_narrow_float();
            if half {
                square_of_any(a, name)?
            } else {
                square(a, name)?
            }
            Ok(smallvec![Spec::like(a)])
        },
        |c, out| run(&[c.tensor(0)?, &out[0]], out[0].ndim() - 2, &Exponential),
        None,
    ),
    vjp: Vjp::Each(&[d(0, A0, exp_backward)]),
    samples: &["f32[3,3]", "f32[2,2,2]", "f32[3,3](big)", "c64[2,2]", "f32[0,0]", "f32[1,1]"],
    errors: &[("f32[2,3]", "RuntimeError", "linalg.matrix_exp: A must be batches of square matrices")],
    batch: Batching::Leading,
    ..MATRIX
};

/// The cheapest order of a chain of products with dimensions `d[i]` x `d[i + 1]`. Returns the last product of each
/// range.
fn best_splits(d: &[usize]) -> Vec<Vec<usize>> {
    let n = d.len() - 1;
    // Bounded by the number of arguments.
    let (mut cost, mut split) = (vec![vec![0.0; n]; n], vec![vec![0; n]; n]);
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            let price = |k: usize| cost[i][k] + cost[k + 1][j] + d[i] as f64 * d[k + 1] as f64 * d[j + 1] as f64;
            let best = (i..j).min_by(|&a, &b| price(a).total_cmp(&price(b))).unwrap_or(i);
            (cost[i][j], split[i][j]) = (price(best), best);
        }
    }
    split
}

fn chain(tensors: &[Tensor], split: &[Vec<usize>], i: usize, j: usize) -> Term {
    if i == j {
        return Term::from(&tensors[i]);
    }
    let k = split[i][j];
    chain(tensors, split, i, k).mm(chain(tensors, split, k + 1, j))
}

fn multiplied(tensors: Vec<Tensor>) -> Result<Outputs> {
    let n = tensors.len();
    if n < 2 {
        return Err(Error::runtime(format!("multi_dot(): expected at least 2 tensors but got {n}")));
    }
    let (row, column) = (tensors[0].ndim() == 1, tensors[n - 1].ndim() == 1);
    let mut seen = tensors.clone();
    if row {
        seen[0] = Term::from(&tensors[0]).unsqueeze(0).ok()?;
    }
    if column {
        seen[n - 1] = Term::from(&tensors[n - 1]).unsqueeze(-1).ok()?;
    }
    if let Some(i) = seen.iter().position(|t| t.ndim() != 2) {
        let part = if i == 0 || i == n - 1 { "1D or 2D" } else { "2D" };
        return Err(Error::runtime(format!("multi_dot(): tensor {i} must be {part} but got {}D", tensors[i].ndim())));
    }
    for i in 1..n {
        if seen[i - 1].size(1) != seen[i].size(0) {
            return Err(Error::runtime(format!(
                "multi_dot(): tensors {} and {i} with shapes {} and {} cannot be multiplied",
                i - 1,
                Show(tensors[i - 1].shape()),
                Show(tensors[i].shape())
            )));
        }
    }
    let dims: Vec<usize> = seen.iter().map(|t| t.size(0)).chain([seen[n - 1].size(1)]).collect();
    let product = chain(&seen, &best_splits(&dims), 0, n - 1);
    let mut shape: Ints = smallvec![dims[0] as i64, dims[n] as i64];
    if column {
        shape.remove(1);
    }
    if row {
        shape.remove(0);
    }
    crate::ops::view::reshape::VIEW.calls((product, shape))
}

pub static MULTI_DOT: Op = Op {
    sig: sig("linalg.multi_dot(Tensor[] tensors) -> Tensor"),
    doc: "The product of several matrices in the cheapest order; the first and the last may be vectors.",
    forms: FO,
    body: decompose(|c| multiplied(c.tensors("tensors"))),
    vjp: Vjp::Composite,
    out_dtype: Some(OutDType::Same),
    samples: &["[f32[2,3], f32[3,4]]", "[f32[2,3], f32[3,4], f32[4,2]]", "[f32[3], f32[3,4], f32[4,2], f32[2]]"],
    errors: &[
        ("[f32[2,3]]", "RuntimeError", "expected at least 2 tensors but got 1"),
        ("[f32[2,3], f32[2,3]]", "RuntimeError", "cannot be multiplied"),
    ],
    ..OP
};

pub static CHAIN_MATMUL: Op = Op {
    sig: sig("chain_matmul(Tensors matrices=[]) -> Tensor"),
    doc: "The product of several matrices in the cheapest order; see `linalg.multi_dot`.",
    forms: FO,
    out_dtype: Some(OutDType::Same),
    body: decompose(|c| {
        let matrices = c.tensors("matrices");
        if matrices.is_empty() {
            return Err(Error::runtime("chain_matmul(): Expected one or more matrices"));
        }
        if let Some(t) = matrices.iter().find(|t| t.ndim() != 2) {
            return Err(Error::runtime(format!("Tensor dimension is {}, expected 2 instead.", t.ndim())));
        }
        if matrices.len() == 1 {
            crate::ops::movement::copy::CLONE.calls((&matrices[0],))
        } else {
            multiplied(matrices)
        }
    }),
    vjp: Vjp::Composite,
    warns_once: true,
    warns: Some(|_| {
        Some(
            "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, \
             which accepts a list of two or more tensors rather than multiple parameters."
                .into(),
        )
    }),
    samples: &["[f32[2,3], f32[3,4], f32[4,2]]", "[f32[2,3]]"],
    errors: &[
        ("[f32[2,3], f32[2,3]]", "RuntimeError", "cannot be multiplied"),
        ("[f32[2,3], f32[3]]", "RuntimeError", "Tensor dimension is 1, expected 2 instead."),
    ],
    ..OP
};

/// The sizes before and from `at` on, and their products.
fn halves(t: &Tensor, at: usize) -> Result<([Ints; 2], [i64; 2])> {
    let part = |s: &[usize]| s.iter().map(|&d| d as i64).collect::<Ints>();
    if at > t.ndim() {
        return Err(Error::runtime(format!("expected a tensor of at least {at} dimensions, got {}", t.ndim())));
    }
    let (a, b) = (part(&t.shape()[..at]), part(&t.shape()[at..]));
    let counts = [a.iter().product(), b.iter().product()];
    Ok(([a, b], counts))
}

pub static TENSORINV: Op = Op {
    sig: sig("linalg.tensorinv(Tensor self, int ind=2) -> Tensor"),
    doc: "The inverse of a tensor as a map of the dimensions from `ind` on to the first ones.",
    body: decompose(|c| {
        let (t, ind) = (c.tensor(0)?, c.int("ind")?);
        if ind <= 0 {
            return Err(Error::runtime(format!("Expected a strictly positive integer for 'ind', but got {ind}")));
        }
        let ([first, last], [rows, cols]) = halves(t, ind as usize)?;
        if rows != cols {
            return Err(Error::runtime(format!(
                "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {cols} != {rows}"
            )));
        }
        let shape: Ints = last.into_iter().chain(first).collect();
        INV.call((Term::from(t).reshape(&[rows, cols]),)).reshape(&shape).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6]", "f32[6,3,2], 1"],
    errors: &[
        ("f32[2,3,4]", "RuntimeError", "but got 4 != 6"),
        ("f32[2,2], 0", "RuntimeError", "Expected a strictly positive integer for 'ind', but got 0"),
    ],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};

pub static TENSORSOLVE: Op = Op {
    sig: sig("linalg.tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor"),
    doc: "X of `tensordot(self, X, X.ndim) == other`; `dims` of self are moved to its end first.",
    body: decompose(|c| {
        let (mut t, b) = (c.tensor(0)?.clone(), c.tensor("other")?);
        if let Some(dims) = c.opt_ints("dims") {
            let to: Ints = (-(dims.len() as i64)..0).collect();
            t = crate::ops::view::shape::MOVEDIM_LIST.call((&t, dims, to)).ok()?;
        }
        let ([_, last], [rows, cols]) = halves(&t, b.ndim())?;
        if rows != cols {
            return Err(Error::runtime(format!(
                "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {cols} != {rows}"
            )));
        }
        let x = SOLVE.call((Term::from(t).reshape(&[rows, cols]), Term::from(b).reshape(&[-1])));
        x.reshape(&last).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6], f32[2,3]", "f32[2,6,3], f32[2,3], (1,)"],
    errors: &[("f32[2,3,4], f32[2,3]", "RuntimeError", "but got 4 != 6")],
    out_dtype: Some(OutDType::Castable),
    ..SOLVER
};
