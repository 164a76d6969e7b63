//! LDL factors of symmetric and Hermitian indefinite matrices, and systems solved with them.

use super::checks::*;
use crate::cpu::linalg::{At, Batch, Field, ldl};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&LDL_FACTOR_EX, &LDL_FACTOR, &LDL_STEP, &LDL_SOLVE];

struct Factor {
    hermitian: bool,
}
impl Batch for Factor {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let (pivots, singular) = ldl::factor(&mut a, self.hermitian);
        at.store(1, &a);
        at.store_vector(2, &pivots);
        at.store_number(3, singular as i32);
        Ok(())
    }
}

fn is_regular(info: &Tensor, name: &'static str) -> Result<()> {
    succeeded(
        info,
        name,
        Failure::Runtime,
        "D[{i},{i}] is zero and using it on ldl_solve would result in a division by zero.",
    )
}

pub static LDL_FACTOR_EX: Op = Op {
    sig: sig(
        "linalg.ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
    ),
    doc: "L and D of `A = L D L^T` (or `L D L^H`) in one lower triangle, which rows were exchanged (negative for blocks of two), and the number of the first block of D that is zero.",
    body: kernel(
        |c| {
            let a = c.tensor(0)?;
            square(a, "torch.linalg.ldl_factor_ex")?;
            Ok(smallvec![columns_like(a), part(a, &[sizes(a).0], DType::I32), infos(a)])
        },
        |c, out| {
            let a = c.tensor(0)?;
            run(&[a, &out[0], &out[1], &out[2]], a.ndim() - 2, &Factor { hermitian: c.flag("hermitian") })?;
            if c.flag("check_errors") { is_regular(&out[2], "torch.linalg.ldl_factor_ex") } else { Ok(()) }
        },
        None,
    ),
    vjp: Vjp::Missing,
    samples: &[
        "f32[3,3](spd)",
        "f64[4,4]",
        "f32[2,3,3]",
        "f32[3,3](= 0, 1, 0, 1, 0, 2, 0, 2, 1)",
        "f32[3,3](= 0, 0, 1, 0, 1, 0, 1, 0, 0)",
        "f32[2,2](zeros)",
        "c64[3,3]",
        "c64[3,3], hermitian=True",
        "f32[0,0]",
        "f64[12,12]",
    ],
    errors: &[
        ("f32[2,3]", "RuntimeError", "torch.linalg.ldl_factor_ex: A must be batches of square matrices"),
        ("f32[3]", "RuntimeError", "torch.linalg.ldl_factor_ex: The input tensor A must have at least 2 dimensions."),
        ("i64[2,2]", "NotImplementedError", "Expected a floating point or complex tensor as input. Got Long"),
    ],
    batch: Batching::Leading,
    ..MATRIX
};

pub static LDL_FACTOR: Op = Op {
    sig: sig("linalg.ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)"),
    doc: "L and D of `A = L D L^T` (or `L D L^H`) in one lower triangle and which rows were exchanged; an error if D is singular.",
    body: decompose(|c| {
        let out = LDL_FACTOR_EX.calls((c.tensor(0)?, c.flag("hermitian")))?;
        without_info(out, |info| is_regular(info, "torch.linalg.ldl_factor"))
    }),
    vjp: Vjp::Missing,
    samples: &["f32[3,3](spd)", "c64[2,2,2], hermitian=True"],
    errors: &[("f32[2,3]", "RuntimeError", "A must be batches of square matrices")],
    ..MATRIX
};

struct Solve {
    hermitian: bool,
}
impl Batch for Solve {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut b = at.matrix(2);
        ldl::solve(&at.matrix(0), &at.vector(1), self.hermitian, &mut b)?;
        at.store(3, &b);
        Ok(())
    }
}

fn check(ld: &Tensor, pivots: &Tensor, b: &Tensor) -> Result<()> {
    let name = "torch.linalg.ldl_solve";
    square(ld, name)?;
    let refuse = |text: String| Err(Error::runtime(text));
    let ((n, _), (x, y)) = (sizes(ld), (ld.dtype().scalar_type_name(), b.dtype().scalar_type_name()));
    if b.ndim() < 2 {
        return refuse(format!("{name}: The input tensor B must have at least 2 dimensions."));
    }
    let (rows, cols) = sizes(b);
    if rows != n {
        return refuse(format!(
            "Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by {cols}"
        ));
    }
    if x != y {
        return refuse(format!(
            "Expected b and A to have the same dtype, but found b of type {y} and A of type {x} instead."
        ));
    }
    if ld.shape()[..ld.ndim() - 1] != *pivots.shape() {
        return refuse(format!(
            "{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} instead",
            Show(pivots.shape())
        ));
    }
    if pivots.dtype().is_differentiable() || pivots.dtype() == DType::Bool {
        return refuse(format!("{name}: Expected pivots to be integers. Got {}", pivots.dtype().scalar_type_name()));
    }
    Ok(())
}

pub static LDL_STEP: Op = Op {
    sig: sig("_linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian) -> Tensor"),
    doc: "The solutions of `A X = B` where both have the same leading dimensions.",
    body: kernel(
        |c| {
            let (ld, pivots, b) = (c.tensor("LD")?, c.tensor("pivots")?, c.tensor("B")?);
            check(ld, pivots, b)?;
            match lead(ld) == lead(b) {
                true => Ok(smallvec![columns_like(b)]),
                false => Err(Error::runtime("expected the same leading dimensions of LD and B")),
            }
        },
        |c, out| {
            let work = Solve { hermitian: c.flag("hermitian") };
            run(&[c.tensor("LD")?, c.tensor("pivots")?, c.tensor("B")?, &out[0]], out[0].ndim() - 2, &work)
        },
        None,
    ),
    vjp: Vjp::None("not implemented, as in PyTorch"),
    samples: &["f32[3,3](spd), i32[3](= 1, 3, 3), f32[3,2], False"],
    errors: &[("f32[3,3], i32[3](= -2, -2, -3), f32[3,2], False", "RuntimeError", "must all satisfy |pivot|")],
    ..STEP
};

pub static LDL_SOLVE: Op = Op {
    sig: sig("linalg.ldl_solve(Tensor~ LD, Tensor pivots, Tensor~ B, *, bool hermitian=False) -> Tensor"),
    doc: "The solutions of `A X = B` from what `linalg.ldl_factor` gave for A; leading dimensions broadcast.",
    body: decompose(|c| {
        let (ld, pivots, b) = (c.tensor("LD")?, c.tensor("pivots")?, c.tensor("B")?);
        check(ld, pivots, b)?;
        let (wide, b) = together(ld.into(), b.into())?;
        let sizes: Ints = wide.sizes()[..wide.ndim() - 1].into();
        LDL_STEP.calls((wide, Term::from(pivots).expand(&sizes), b, c.flag("hermitian")))
    }),
    vjp: Vjp::None("not implemented, as in PyTorch"),
    samples: &[
        "f32[3,3](spd), i32[3](= 1, 2, 3), f32[3,2]",
        "f32[3,3](spd), i32[3](= -3, -3, 3), f32[3,2]",
        "f32[3,3](spd), i64[3](= 1, -3, -3), f32[2,3,2]",
        "c64[2,2](spd), i32[2](= 2, 2), c64[2,1], hermitian=True",
        "c64[2,2](spd), i32[2](= -2, -2), c64[2,1]",
    ],
    errors: &[
        ("f32[2,3], i32[2], f32[2,1]", "RuntimeError", "torch.linalg.ldl_solve: A must be batches of square matrices"),
        ("f32[2,2], i32[3], f32[2,1]", "RuntimeError", "Expected LD.shape[:-1] and pivots.shape to be the same"),
        ("f32[2,2], i32[2], f32[3,1]", "RuntimeError", "each A matrix is 2 by 2 but each b matrix is 3 by 1"),
        ("f32[2,2], f32[2], f32[2,1]", "RuntimeError", "Expected pivots to be integers. Got Float"),
        ("f32[2,2], i32[2], f64[2,1]", "RuntimeError", "Expected b and A to have the same dtype"),
        ("f32[2,2], i32[2](= 9, 9), f32[2,1]", "RuntimeError", "Pivots given to ldl_solve must all satisfy |pivot|"),
    ],
    ..MATRIX
};
