//! Differences and sums along a dimension: diff, the trapezoid rule, numerical gradients.

use super::scan::CUMSUM;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::compare::NE;
use crate::ops::movement::cat::{CAT, joined};
use crate::ops::view::slice::NARROW;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[
    &DIFF,
    &TRAPEZOID,
    &TRAPEZOID_X,
    &CUMULATIVE_TRAPEZOID,
    &CUMULATIVE_TRAPEZOID_X,
    &GRADIENT,
    &GRADIENT_SCALARS,
    &GRADIENT_TENSORS,
];

/// `n` elements of a dimension from `start`.
fn run_of(t: &Term, dim: usize, start: usize, n: usize) -> Term {
    NARROW.call((t, dim, start, n))
}
fn size_of(t: &Term, dim: usize) -> usize {
    t.get().map_or(0, |t| t.size(dim))
}

/// Differences between adjacent elements.
fn steps(t: &Term, dim: usize) -> Term {
    let n = size_of(t, dim).saturating_sub(1);
    let (after, before) = (run_of(t, dim, size_of(t, dim) - n, n), run_of(t, dim, 0, n));
    if t.get().is_some_and(|t| t.dtype() == DType::Bool) { NE.call((after, before)) } else { after - before }
}

pub static DIFF: Op = Op {
    sig: sig("diff(Tensor self, int n=1, Dim dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor"),
    doc: "The differences of neighbours along a dimension, `n` times over; of bools, whether they differ.",
    forms: FMO,
    body: decompose(|c| {
        let (t, n) = (c.tensor(0)?, c.int("n")?);
        if t.ndim() == 0 {
            return Err(Error::runtime("diff expects input to be at least one-dimensional"));
        }
        if n < 0 {
            return Err(Error::runtime(format!("order must be non-negative but got {n}")));
        }
        if n == 0 {
            return crate::ops::movement::copy::CLONE.calls((t,));
        }
        let dim = c.dim("dim");
        let parts: Vec<Tensor> =
            [c.opt_tensor("prepend"), Some(t), c.opt_tensor("append")].into_iter().flatten().cloned().collect();
        if parts.iter().any(|p| p.ndim() != t.ndim()) {
            return Err(Error::runtime("diff expects prepend or append to be the same dimension as input"));
        }
        let mut x = if parts.len() == 1 { Term::from(t) } else { CAT.call((parts, dim)) };
        for _ in 0..n.min(size_of(&x, dim) as i64 + 1) {
            x = steps(&x, dim);
        }
        x.outputs()
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[5]",
        "f32[2,4], 2",
        "f32[3,2], 1, 0",
        "i64[4]",
        "b8[4]",
        "f32[2,3], prepend=f32[2,1], append=f32[2,2]",
        "f32[3], 5",
        "f32[3], 0",
        "f32[2,3], 0, prepend=f32[2,1]",
    ],
    errors: &[
        ("f32[]", "RuntimeError", "diff expects input to be at least one-dimensional"),
        ("f32[3], -1", "RuntimeError", "order must be non-negative but got -1"),
        ("f32[2,3], prepend=f32[1]", "RuntimeError", "the same dimension as input"),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

/// The spacing of samples: uniform, or one per interval.
enum Width {
    Even(Scalar),
    Between(Term),
}

/// The widths of the intervals between sample points `x`, in the shape of `y`; points may be shared by all lines.
fn widths(c: &Call, y: &Tensor, x: &Tensor, dim: usize) -> Result<Width> {
    if x.ndim() != 1 {
        // They are aligned at the last dimensions; those that `x` lacks are of size one.
        let lacks = y.ndim().saturating_sub(x.ndim());
        let shape: Ints = std::iter::repeat_n(1, lacks).chain(x.shape().iter().map(|&d| d as i64)).collect();
        let at = dim + shape.len() - y.ndim();
        return Ok(Width::Between(steps(&Term::from(x).reshape(&shape), at)));
    }
    if x.size(0) != y.size(dim) {
        let op = c.op.base();
        return Err(Error::runtime("There must be one `x` value for each sample point").in_op(op));
    }
    let shape: Ints = (0..y.ndim()).map(|d| if d == dim { -1 } else { 1 }).collect();
    Ok(Width::Between(steps(&x.into(), 0).reshape(&shape)))
}

/// The curve, and the dimension along it.
fn curve<'a>(c: &'a Call) -> Result<(&'a Tensor, usize)> {
    let y = c.tensor("y")?;
    if y.dtype() == DType::Bool {
        return Err(Error::not_implemented("received a bool input for `y`, but bool is not supported"));
    }
    if y.ndim() == 0 {
        let dim = c.int("dim")?;
        return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    Ok((y, c.dim("dim")))
}

fn real_step(c: &Call) -> Result<Scalar> {
    match c.scalar("dx")? {
        Scalar::Complex(..) => {
            let text = "Currently, we only support dx as a real number.";
            Err(Error::runtime(text).in_op(c.op.base()))
        }
        step => Ok(step),
    }
}

/// The sum of the trapezoids' areas, or running sums; zero without samples.
fn integral(y: &Tensor, dim: usize, width: Width, running: bool) -> Result<Outputs> {
    if y.size(dim) == 0 {
        let shape: Vec<usize> = (0..y.ndim()).filter(|&d| running || d != dim).map(|d| y.size(d)).collect();
        return crate::ops::create::full::ZEROS.calls((shape.as_slice(), y.dtype(), y.device()));
    }
    let (y, n) = (Term::from(y), y.size(dim) - 1);
    let pairs = || run_of(&y, dim, 1, n) + run_of(&y, dim, 0, n);
    let end = |at: usize| crate::ops::view::reshape::SELECT.call((&y, dim, at));
    let sum = |t: Term| t.sum(&[dim as i64], false);
    match (width, running) {
        (Width::Even(h), false) => (sum(y.clone()) - (end(0) + end(n)) * 0.5) * h,
        (Width::Even(h), true) => CUMSUM.call((pairs() * h / 2.0, dim)),
        (Width::Between(w), false) => sum(pairs() * w) / 2.0,
        (Width::Between(w), true) => CUMSUM.call((pairs() * w, dim)) / 2.0,
    }
    .outputs()
}

pub static TRAPEZOID: Op = Op {
    sig: sig("trapezoid.dx(Tensor y, *, Scalar dx=1, Dim dim=-1) -> Tensor"),
    doc: "The integral of samples `dx` apart along a dimension by the trapezoid rule.",
    aliases: &["trapz"],
    forms: F,
    body: decompose(|c| {
        let (y, dim) = curve(c)?;
        integral(y, dim, Width::Even(real_step(c)?), false)
    }),
    vjp: Vjp::Composite,
    samples: &["f32[5]", "f32[2,4], dx=0.5", "f32[3,2], dim=0", "i64[4]", "f32[2,1]"],
    errors: &[
        ("b8[3]", "NotImplementedError", "bool is not supported"),
        ("f32[]", "IndexError", "tensor has no dimensions"),
        ("f32[3], dx=1j", "RuntimeError", "only support dx as a real number"),
    ],
    ..OP
};
pub static TRAPEZOID_X: Op = Op {
    sig: sig("trapezoid.x(Tensor y, Tensor x, *, Dim dim=-1) -> Tensor"),
    doc: "The integral of samples at `x` along a dimension by the trapezoid rule.",
    aliases: &["trapz"],
    forms: F,
    body: decompose(|c| {
        let (y, dim) = curve(c)?;
        integral(y, dim, widths(c, y, c.tensor("x")?, dim)?, false)
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[5], f32[5]",
        "f32[2,4], f32[4]",
        "f32[2,3,2], f32[3], dim=1",
        "f32[2,3], f32[2,3]",
        "f32[2,3,2], f32[3,2]",
    ],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "There must be one `x` value for each sample point")],
    ..OP
};
pub static CUMULATIVE_TRAPEZOID: Op = Op {
    sig: sig("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, Dim dim=-1) -> Tensor"),
    doc: "The running integral of samples `dx` apart along a dimension by the trapezoid rule.",
    forms: F,
    body: decompose(|c| {
        let (y, dim) = curve(c)?;
        integral(y, dim, Width::Even(real_step(c)?), true)
    }),
    vjp: Vjp::Composite,
    samples: &["f32[5]", "f32[2,4], dx=0.5", "f32[3,2], dim=0", "i64[4]"],
    errors: &[("b8[3]", "NotImplementedError", "bool is not supported")],
    ..OP
};
pub static CUMULATIVE_TRAPEZOID_X: Op = Op {
    sig: sig("cumulative_trapezoid.x(Tensor y, Tensor x, *, Dim dim=-1) -> Tensor"),
    doc: "The running integral of samples at `x` along a dimension by the trapezoid rule.",
    forms: F,
    body: decompose(|c| {
        let (y, dim) = curve(c)?;
        integral(y, dim, widths(c, y, c.tensor("x")?, dim)?, true)
    }),
    vjp: Vjp::Composite,
    samples: &["f32[5], f32[5]", "f32[2,4], f32[4]", "f32[2,3], f32[2,3], dim=0"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "There must be one `x` value for each sample point")],
    ..OP
};

/// The spacing of samples along one dimension: uniform, or the points themselves.
enum Spacing {
    Even(Scalar),
    Points(Tensor),
}

/// Central differences inside, one-sided ones of order `edge` at both ends.
fn slope(t: &Tensor, dim: usize, spacing: &Spacing, edge: usize) -> Term {
    let y = Term::from(t);
    let n = t.size(dim);
    let f = |start: usize, length: usize| run_of(&y, dim, start, length);
    // Widths reshaped to broadcast along the dimension: one, or one per position.
    let wide = |w: Term| {
        let k = w.get().map_or(1, |w| w.numel());
        let shape: Ints = (0..t.ndim()).map(|d| if d == dim { k as i64 } else { 1 }).collect();
        w.reshape(&shape)
    };
    let (first, second, last, before) = (f(0, 1), f(1, 1), f(n - 1, 1), f(n - 2, 1));
    match spacing {
        Spacing::Even(h) => {
            // The spacing of complex samples may be complex.
            let middle = (f(2, n - 2) - f(0, n - 2)) / *h / 2.0;
            let (left, right) = match edge {
                1 => ((second - first) / *h, (last - before) / *h),
                _ => (
                    (f(1, 1) * 4.0 - first * 3.0 - f(2, 1)) / *h / 2.0,
                    (last * 3.0 - before * 4.0 + f(n - 3, 1)) / *h / 2.0,
                ),
            };
            joined([left, middle, right], dim as i64)
        }
        Spacing::Points(x) => {
            let h = steps(&Term::from(x), 0);
            let w = |start: usize, length: usize| wide(run_of(&h, 0, start, length));
            let (a, b) = (w(0, n - 2), w(1, n - 2));
            // Source: the parabola through three points, as in NumPy's gradient.
            let sum = a.clone() + &b;
            let middle = f(2, n - 2) * (a.clone() / (b.clone() * &sum))
                + f(1, n - 2) * ((b.clone() - &a) / (a.clone() * &b))
                - f(0, n - 2) * (b.clone() / (a.clone() * &sum));
            let (left, right) = match edge {
                1 => ((second - first) / w(0, 1), (last - before) / w(n - 2, 1)),
                _ => (
                    parabola_end([first, second, f(2, 1)], w(0, 1), w(1, 1)),
                    -parabola_end([last, before, f(n - 3, 1)], w(n - 2, 1), w(n - 3, 1)),
                ),
            };
            joined([left, middle, right], dim as i64)
        }
    }
}

/// The slope at the first of three points with distances `a` and `b`.
fn parabola_end([y0, y1, y2]: [Term; 3], a: Term, b: Term) -> Term {
    let sum = a.clone() + &b;
    let far = a.clone() / (b.clone() * &sum);
    y1 * (sum.clone() / (a.clone() * b.clone())) - y0 * ((a.clone() + &sum) / (a * sum)) - y2 * far
}

/// One slope for each dimension, named by argument 2; argument 3 is the order at the ends.
fn slopes(c: &Call, spacing: impl Fn(usize) -> Result<Spacing>, given: Option<usize>) -> Result<Outputs> {
    let (t, edge) = (c.tensor(0)?, c.int("edge_order")?);
    if t.dtype() == DType::U8 {
        return Err(Error::not_implemented("torch.gradient does not support uint8 input."));
    }
    if !(1..=2).contains(&edge) {
        return Err(Error::runtime("torch.gradient only supports edge_order=1 and edge_order=2."));
    }
    let dims: Vec<usize> = match c.opt_distinct_dims("dim")? {
        Some(d) => d.into_iter().collect(),
        None => (0..t.ndim()).collect(),
    };
    if let Some(n) = given.filter(|&n| n != dims.len()) {
        let (what, why) = match c.opt_ints("dim") {
            Some(d) => (format!("len(dim) = {}", d.len()), "dim argument was given"),
            None => (format!("'self.dim() = {}'", t.ndim()), "dim argument was not given"),
        };
        return Err(Error::runtime(format!(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to {what}, since {why}, but got a list of length {n}"
        )));
    }
    if dims.iter().any(|&d| t.size(d) <= edge as usize) {
        return Err(Error::runtime("torch.gradient expected each dimension size to be at least edge_order+1"));
    }
    dims.iter().enumerate().map(|(i, &d)| slope(t, d, &spacing(i)?, edge as usize).ok()).collect()
}

pub static GRADIENT: Op = Op {
    sig: sig(
        "gradient.scalarint(Tensor self, *, Scalar? spacing=None, Dim[1]? dim=None, int edge_order=1) -> Tensor[]",
    ),
    doc: "Slopes along each dimension, or the given ones, of samples `spacing` apart: differences of second order, at the ends of order `edge_order`.",
    forms: F,
    body: decompose(|c| slopes(c, |_| Ok(Spacing::Even(c.opt_scalar("spacing").unwrap_or(Scalar::Float(1.0)))), None)),
    vjp: Vjp::Composite,
    samples: &[
        "f32[5]",
        "f32[3,4], spacing=0.5",
        "c64[3], spacing=1+2j",
        "f32[3,4], dim=1, edge_order=2",
        "i64[4]",
        "f32[2,3,4], dim=(0, 2)",
    ],
    errors: &[
        ("f32[3], edge_order=3", "RuntimeError", "only supports edge_order=1 and edge_order=2"),
        ("f32[1]", "RuntimeError", "each dimension size to be at least edge_order+1"),
        ("u8[3]", "NotImplementedError", "does not support uint8 input"),
    ],
    ..OP
};
pub static GRADIENT_TENSORS: Op = Op {
    sig: sig("gradient.tensorarray(Tensor self, *, Tensor[] spacing, Dim[1]? dim=None, int edge_order=1) -> Tensor[]"),
    doc: "Slopes of samples at the given points of each dimension.",
    forms: F,
    body: decompose(|c| {
        let points = c.tensors("spacing");
        if let Some(t) = points.iter().find(|t| t.ndim() != 1) {
            let n = t.ndim();
            return Err(Error::runtime(format!(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with {n} dimensions"
            )));
        }
        slopes(c, |i| Ok(Spacing::Points(points[i].clone())), Some(points.len()))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[5], spacing=[f32[5](= 0, 1, 3, 4, 7)]",
        "f32[3,4], spacing=[f32[3](= 0, 1, 3), f32[4](= 0, 2, 3, 4)], edge_order=2",
    ],
    errors: &[("f32[3,4], spacing=[f32[3]]", "RuntimeError", "but got a list of length 1")],
    ..OP
};
pub static GRADIENT_SCALARS: Op = Op {
    sig: sig("gradient.scalarray(Tensor self, *, float[] spacing, Dim[1]? dim=None, int edge_order=1) -> Tensor[]"),
    doc: "Slopes of samples that are as far apart as each dimension's spacing says.",
    forms: F,
    body: decompose(|c| {
        let Value::Scalars(spacing) = c.argument("spacing") else {
            return Err(Error::internal("gradient: expected numbers"));
        };
        slopes(c, |i| Ok(Spacing::Even(spacing[i])), Some(spacing.len()))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,4], spacing=(1.0, 2.0)", "f32[3,4], spacing=(0.5,), dim=(1,)", "c64[3,3], spacing=(1j, 2.0)"],
    errors: &[("f32[3,4], spacing=(1.0, 2.0, 3.0)", "RuntimeError", "but got a list of length 3")],
    ..OP
};
