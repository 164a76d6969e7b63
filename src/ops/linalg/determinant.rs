//! Determinants, their signs and logarithms.

use super::checks::*;
use super::on_gpu;
use super::solve::INV_EX;
use super::svd::SVD_STEP;
use crate::cpu::linalg::triangular::solve_factored;
use crate::cpu::linalg::{At, Batch, Field, Group, Mat, Real, factor, lanes};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::*;
use crate::ops::elementwise::compare::ISFINITE;
use crate::ops::elementwise::complex::COMPLEX;
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::movement::triangular::DIAG_EMBED;
use crate::ops::reduce::any_all::ALL;
use crate::ops::reduce::sum_prod::PROD_DIM;
use crate::ops::support::host_read::item;
use crate::ops::view::alias::IMAG;
use num_complex::ComplexFloat;
use smallvec::smallvec;

pub static OPS: &[&Op] =
    &[&DET_STEP, &ADJUGATE, &ADJUGATE_BACKWARD, &LINALG_DET, &DET, &SLOGDET_STEP, &LINALG_SLOGDET, &SLOGDET, &LOGDET];

/// Factors whose product is the determinant: the diagonal of U, and the sign of the permutation.
fn factors<T: Field>(a: &mut Mat<T>) -> Result<Vec<T>> {
    let (pivots, _) = factor::lu(a)?;
    let odd = pivots.iter().enumerate().filter(|(i, p)| i != *p).count() % 2 == 1;
    let sign = if odd { T::default() - T::one() } else { T::one() };
    Ok(std::iter::once(sign).chain((0..a.rows).map(|i| a[(i, i)])).collect())
}

struct Det;
impl Batch for Det {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        at.store_number(1, factors(&mut at.matrix(0))?.into_iter().fold(T::one(), |x, f| x * f));
        Ok(())
    }
    const IN_LANES: bool = true;
    #[inline(always)]
    fn lanes<T: Real, const N: usize>(&self, group: &Group<T>) {
        group.store_numbers(1, &lanes::determinants::<T, N>(&mut group.matrices(0)));
    }
}

pub static DET_STEP: Op = Op {
    sig: sig("_linalg_det(Tensor A) -> Tensor"),
    doc: "The determinants of square matrices.",
    body: kernel(
        |c| {
            let a = c.tensor("A")?;
            square(a, "linalg.det")?;
            Ok(smallvec![part(a, &[], a.dtype())])
        },
        |c, out| run(&[c.tensor("A")?, &out[0]], out[0].ndim(), &Det),
        Some(|c, out| on_gpu::determinant(c.tensor("A")?, &out[0])),
    ),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g().whole() * ADJUGATE.call((c.arg(0),)).mh())]),
    samples: &["f32[3,3]", "c64[2,2]"],
    errors: &[("1", "TypeError", "must be Tensor")],
    batch: Batching::Leading,
    ..STEP
};

/// Replaces a zero pivot by a tiny one, which the product with the determinant cancels.
struct Adjugate;
impl Batch for Adjugate {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let mut a = at.matrix(0);
        let (pivots, _) = factor::lu(&mut a)?;
        let mut x = Mat::identity(a.rows, a.rows);
        let mut det = T::one();
        for (i, &p) in pivots.iter().enumerate() {
            if a[(i, i)] == T::default() {
                a[(i, i)] = T::from_scalar(crate::dtype::Scalar::Float(epsilon(T::DTYPE)));
            }
            det = det * if i == p { a[(i, i)] } else { T::default() - a[(i, i)] };
        }
        solve_factored(&a, &pivots, &mut x)?;
        at.store(1, &x.map(|y| y * det));
        Ok(())
    }
}

pub static ADJUGATE: Op = Op {
    sig: sig("_adjugate(Tensor A) -> Tensor"),
    doc: "`det(A) inv(A)`, which singular matrices have too: the derivative of the determinant.",
    body: kernel(
        |c| {
            square(c.tensor("A")?, "linalg.det")?;
            Ok(smallvec![Spec::like(c.tensor("A")?)])
        },
        |c, out| run(&[c.tensor("A")?, &out[0]], out[0].ndim() - 2, &Adjugate),
        Some(|c, out| on_gpu::adjugate(c.tensor("A")?, &out[0])),
    ),
    vjp: Vjp::Each(&[d(0, A0, |c| ADJUGATE_BACKWARD.call((c.g(), c.arg(0))))]),
    samples: &["f32[3,3]", "f32[2,2](zeros)", "c64[2,2]"],
    errors: &[("1", "TypeError", "must be Tensor")],
    batch: Batching::Leading,
    ..STEP
};

/// The gradient (argument 0) of the adjugate of argument 1, by the inverse.
fn by_inverse(c: &Call) -> Result<Outputs> {
    let (g, a) = (Term::from(c.tensor("grad")?), c.tensor("A")?);
    let (x, det) = (first(&INV_EX, (a,)).mh(), DET_STEP.call((a,)).conj().whole());
    let turned = (g.clone() * x.clone().mt()).sum(&[-2, -1], true);
    (det * (turned * x.clone() - x.clone().at(g).at(x))).outputs()
}

/// The same for any matrix. In the basis of singular vectors it needs the products of all singular values but two.
fn by_values(c: &Call) -> Result<Outputs> {
    let (g, a) = (Term::from(c.tensor("grad")?), c.tensor("A")?);
    if !item(&ALL.call((ISFINITE.call((a,)),)).ok()?)?.to_bool() {
        return by_inverse(c);
    }
    let parts = SVD_STEP.calls((a,))?;
    let [u, s, vh] = [0, 1, 2].map(|i| Term::from(&parts[i]));
    // As above, a zero is replaced by a number so tiny that its square underflows, which cancels.
    let tiny = if parts[1].dtype() == DType::F64 { 1e-100 } else { 1e-15 };
    let s = WHERE.call((s.clone().equals(0), tiny, s));
    let pairs = s.clone().unsqueeze(-1) * s.clone().unsqueeze(-2);
    let others = PROD_DIM.call((s, -1, true)).unsqueeze(-1) / pairs;
    let others = others.clone().zero_where(others.eye().equals(1));
    let h = vh.clone().at(g).at(u.clone());
    let sums = (others.clone() * h.clone().diagonals().unsqueeze(-2)).sum(&[-1], false);
    let phase = (DET_STEP.call((u.clone(),)) * DET_STEP.call((vh.clone(),))).conj().whole();
    (phase * u.at(DIAG_EMBED.call((sums,)) - h * others).at(vh)).outputs()
}

pub static ADJUGATE_BACKWARD: Op = Op {
    sig: sig("_adjugate_backward(Tensor grad, Tensor A) -> Tensor"),
    doc: "The gradient of the adjugate, of singular matrices too.",
    body: reads_host(by_values),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1, formula: |c| c.through(by_inverse) }),
    samples: &["f32[3,3], f32[3,3]", "f64[2,2,2], f64[2,2,2](zeros)", "c64[2,2], c64[2,2]", "f32[1,1], f32[1,1]"],
    errors: &[("1, f32[2,2]", "TypeError", "must be Tensor")],
    on_host: false,
    ..STEP
};

const DETERMINANT: Op = Op {
    doc: "The determinants of square matrices.",
    body: decompose(|c| DET_STEP.calls((c.tensor(0)?,))),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]", "f32[2,3,3]", "f32[2,2](zeros)", "c64[2,2]", "f32[0,0]"],
    errors: &[("f32[2,3]", "RuntimeError", "linalg.det: A must be batches of square matrices, but they are 2 by 3")],
    reference: "np.linalg.det(x0)",
    ..SOLVER
};
pub static LINALG_DET: Op = Op { sig: sig("linalg.det(Tensor A) -> Tensor"), ..DETERMINANT };
pub static DET: Op = Op { sig: sig("det(Tensor self) -> Tensor"), forms: FM, ..DETERMINANT };

struct Slogdet;
impl Batch for Slogdet {
    fn one<T: Field>(&self, at: &At<T>) -> Result<()> {
        let (mut sign, mut log) = (T::one(), T::Real::default());
        for f in factors(&mut at.matrix(0))? {
            let size = f.abs();
            log = log + size.ln().re();
            sign = if f == T::default() { f } else { sign * f / T::of(size) };
        }
        at.store_number(1, sign);
        at.store_number(2, log);
        Ok(())
    }
}

pub static SLOGDET_STEP: Op = Op {
    sig: sig("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"),
    doc: "Signs and logarithms of determinants.",
    body: kernel(
        |c| {
            let (a, d) = (c.tensor("A")?, c.tensor("A")?.dtype());
            square(a, "linalg.slogdet")?;
            Ok(smallvec![part(a, &[], d), part(a, &[], d.to_real())])
        },
        |c, out| run(&[c.tensor("A")?, &out[0], &out[1]], out[0].ndim(), &Slogdet),
        Some(on_gpu::sign_and_log),
    ),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        let inverse = first(&INV_EX, (c.arg(0),)).mh();
        let turn = || -IMAG.call((c.gi(0).conj() * c.out(0),));
        let g = if inverse.is_complex() { COMPLEX.call((c.gi(1), turn())) } else { c.gi(1) };
        g.whole() * inverse
    })]),
    samples: &["f32[3,3]", "c64[2,2]"],
    errors: &[("1", "TypeError", "must be Tensor")],
    batch: Batching::Leading,
    ..STEP
};

const SIGN_AND_LOG: Op = Op {
    doc: "Signs (of absolute value one, or zero) and logarithms of the absolute values of determinants.",
    body: decompose(|c| SLOGDET_STEP.calls((c.tensor(0)?,))),
    vjp: Vjp::Composite,
    samples: &["f32[3,3]", "f32[2,3,3]", "f32[2,2](zeros)", "c64[2,2]", "f32[0,0]"],
    errors: &[("f32[2,3]", "RuntimeError", "linalg.slogdet: A must be batches of square matrices")],
    ..SOLVER
};
pub static LINALG_SLOGDET: Op =
    Op { sig: sig("linalg.slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"), ..SIGN_AND_LOG };
pub static SLOGDET: Op =
    Op { sig: sig("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"), forms: FMO, ..SIGN_AND_LOG };

pub static LOGDET: Op = Op {
    sig: sig("logdet(Tensor self) -> Tensor"),
    doc: "The logarithms of determinants; NaN where one is negative.",
    forms: FM,
    body: decompose(|c| {
        square(c.tensor(0)?, "logdet")?;
        let out = SLOGDET_STEP.calls((c.tensor(0)?,))?;
        let (sign, log) = (Term::from(&out[0]), Term::from(&out[1]));
        match sign.is_complex() {
            true => (sign.log() + log).outputs(),
            false => WHERE.calls((sign.equals(-1.0), f64::NAN, log)),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,3](spd)", "f32[2,3,3](spd)", "c64[2,2]", "f32[0,0]"],
    errors: &[("f32[2,3]", "RuntimeError", "logdet: A must be batches of square matrices")],
    ..SOLVER
};
