//! The gradients of `scatter_reduce` and `index_reduce`, in differentiable calls. Source of the formulas: PyTorch's definition of the
//! gradient at ties (equal shares) and at zeros of a product.

use super::gather_scatter::{GATHER, Reduce, SCATTER_ADD, SCATTER_REDUCE, SCATTER_VALUE};
use crate::cpu::index::Mode;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapNum, Num};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&SAME];

struct Equal;
impl MapNum<2> for Equal {
    #[inline(always)]
    fn eval<T: Num>([x, y]: [T; 2]) -> T {
        if x == y { T::one() } else { T::zero() }
    }
}
static EQUAL: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.num::<2, Equal>(), wgsl: "eq_(x, y)" };

pub static SAME: Op = Op {
    sig: sig("_same(Tensor self, Tensor other) -> Tensor"),
    doc: "One where two tensors are equal, else zero, in their own dtype.",
    forms: HIDDEN,
    body: elementwise(&EQUAL),
    vjp: Vjp::None("constant almost everywhere"),
    samples: &["f32[4](ties), f32[4](ties)"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match the size")],
    reference: "(x0 == x1).astype(x0.dtype)",
    ..OP
};

/// A tensor filled with one number.
fn full(c: &VjpCtx, arg: usize, value: i64) -> Term {
    let f = c.meta_of(arg);
    let t = Tensor::empty(&f.shape, f.dtype, f.device).and_then(|t| t.fill_raw(Scalar::Int(value)).map(|()| t));
    Term(t)
}

/// An index for each element of the source: `index_reduce` has one for each slice.
fn index(c: &VjpCtx) -> Term {
    if c.call.op.base() == "scatter_reduce" {
        return c.arg(2);
    }
    if c.ndim(3) == 0 {
        return c.arg(2).to_dtype(DType::I64).reshape(&[]);
    }
    let dim = c.dim("dim");
    let mut sizes = Ints::from_elem(1, c.ndim(3));
    sizes[dim] = c.shape(3)[dim] as i64;
    c.arg(2).to_dtype(DType::I64).reshape(&sizes).expand(&c.sizes(3))
}

fn gathered(c: &VjpCtx, t: &Term) -> Term {
    GATHER.call((t, c.int("dim"), index(c)))
}

/// The gradients of arguments 0 (self) and 3 (the source).
pub(crate) fn reduced(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let (dim, include_self) = (c.int("dim"), c.flag("include_self"));
    if index(c).sizes() != c.sizes(3) {
        return Err(Error::runtime("scatter_reduce(): the gradient needs an index of the source's shape"));
    }
    let (whole, part) = match c.choice::<Reduce>("reduce").0 {
        Mode::Add => (c.g(), gathered(c, &c.g())),
        Mode::Mean => {
            let ones = SCATTER_ADD.call((full(c, 0, include_self as i64), dim, index(c), full(c, 3, 1)));
            let count = ones.clone() + is_zero(&ones);
            let g = c.g() / count;
            (g.clone(), gathered(c, &g))
        }
        Mode::Mul => product(c)?,
        _ => extreme(c)?,
    };
    let whole = if include_self { whole } else { SCATTER_VALUE.call((whole, dim, index(c), 0)) };
    Ok(vec![Some(whole.ok()?), Some(part.ok()?)])
}

/// One where an element is zero, else zero, in the dtype of `t`.
fn is_zero(t: &Term) -> Term {
    equal(t, &(t.clone() * 0.0))
}

fn equal(a: &Term, b: &Term) -> Term {
    SAME.call((a, b))
}

/// The product without zeros divided by the factor; for a single zero the product of the others.
fn product(c: &VjpCtx) -> Result<(Term, Term)> {
    let (dim, include_self) = (c.int("dim"), c.flag("include_self"));
    let self_zero = is_zero(&c.arg(0));
    let src_zero = is_zero(&c.arg(3));
    let masked_self = c.arg(0) + self_zero.clone();
    let masked_src = c.arg(3) + src_zero.clone();
    let reduce = |a: &Term, b: &Term| -> Result<Term> {
        let args: Args = smallvec::smallvec![
            a.into_arg()?,
            dim.into(),
            index(c).into_arg()?,
            b.into_arg()?,
            "prod".into(),
            include_self.into()
        ];
        Ok(SCATTER_REDUCE.call(args))
    };
    // With the zeros of self replaced by ones: the derivative with respect to self is its cofactor.
    let others = reduce(&masked_self, &c.arg(3))?;
    let whole = c.g() * (others / masked_self.clone());
    let zeros = SCATTER_ADD.call((full(c, 0, 0), dim, index(c), src_zero.clone()));
    let count = gathered(c, &zeros);
    let without = reduce(&c.arg(0), &masked_src)?;
    let single = gathered(c, &(c.g() * without)) / masked_src.clone();
    let usual = gathered(c, &(c.g() * c.out(0))) / masked_src;
    let full_zero = equal(&count, &full(c, 3, 1)) * src_zero.clone();
    let none = 1.0 - src_zero;
    Ok((whole, single * full_zero + usual * none))
}

/// All elements equal to the extreme share equally.
fn extreme(c: &VjpCtx) -> Result<(Term, Term)> {
    let dim = c.int("dim");
    let self_hit = equal(&c.arg(0), &c.out(0));
    let src_hit = equal(&c.arg(3), &gathered(c, &c.out(0)));
    let count = SCATTER_ADD.call((self_hit.clone(), dim, index(c), src_hit.clone()));
    let share = c.g() / (count.clone() + is_zero(&count));
    Ok((self_hit * share.clone(), src_hit * gathered(c, &share)))
}
