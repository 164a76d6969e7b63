//! Combinations of vector elements: cartesian_prod, combinations, and powers as columns (vander).

use super::full::{ONES, ZEROS};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::indexing::advanced::INDEX;
use crate::ops::movement::cat::{STACK, joined};
use crate::ops::movement::copy::COPY_;
use crate::ops::movement::flip_roll::FLIP;
use crate::ops::reduce::scan::CUMPROD;
use crate::ops::view::reshape::SLICE;
use crate::ops::view::shape::MESHGRID;
use crate::rt::reserve::{list, room};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&CARTESIAN_PROD, &CHOICES, &COMBINATIONS, &LINALG_VANDER, &VANDER];

fn vector(t: &Tensor) -> Result<()> {
    match t.ndim() {
        1 => Ok(()),
        _ => Err(Error::runtime(format!("Expect a 1D vector, but got shape {}", Show(t.shape())))),
    }
}

pub static CARTESIAN_PROD: Op = Op {
    sig: sig("cartesian_prod(Tensors tensors=[]) -> Tensor"),
    doc: "All rows with one element of each vector, the last one changing fastest.",
    forms: F,
    body: decompose(|c| {
        let tensors = c.tensors("tensors");
        tensors.iter().try_for_each(vector)?;
        if tensors.len() == 1 {
            return Ok(tensors.into_iter().collect());
        }
        let grids = MESHGRID.calls((tensors, "ij"))?;
        let columns = grids.iter().map(|t| Term::from(t).reshape(&[-1]).ok()).collect::<Result<Vec<_>>>()?;
        STACK.calls((columns, 1))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[2], f32[3]]", "[i64[2], i64[2], i64[2]]", "[f32[3]]", "[f32[2], f32[0]]"],
    errors: &[("[f32[2,3]]", "RuntimeError", "Expect a 1D vector, but got shape [2, 3]")],
    ..OP
};

/// The binomial coefficient, if it fits.
fn binomial(n: usize, k: usize) -> Option<usize> {
    // After each step the product is a binomial coefficient itself, so that the division is exact.
    let step = |all: u128, i: usize| all.checked_mul((n - i) as u128).map(|all| all / (i as u128 + 1));
    let all = (0..k.min(n.checked_sub(k)?)).try_fold(1u128, |all, i| step(all, i).filter(|&n| n < 1 << 64))?;
    usize::try_from(all).ok()
}

/// Ways to choose `r` of `n` in rising order, one after another. They are counted before there is room for them.
fn choices(n: usize, r: usize, repeat: bool) -> Result<Vec<i64>> {
    let first = |i: usize| if repeat { 0 } else { i };
    if n == 0 || (!repeat && r > n) {
        return Ok(Vec::new());
    }
    let ways = if repeat { n.checked_add(r - 1).and_then(|n| binomial(n, r)) } else { binomial(n, r) };
    let mut all = room(ways.and_then(|ways| ways.checked_mul(r)).unwrap_or(usize::MAX))?;
    let mut now: Vec<usize> = list((0..r).map(first))?;
    loop {
        all.extend(now.iter().map(|&i| i as i64));
        let most = |at: usize| if repeat { n - 1 } else { n - r + at };
        let Some(at) = (0..r).rev().find(|&at| now[at] < most(at)) else { return Ok(all) };
        let next = now[at] + 1;
        now[at..].iter_mut().enumerate().for_each(|(i, x)| *x = next + if repeat { 0 } else { i });
    }
}

/// How many choices of `r` of `n` there are.
fn count(n: i128, r: i128, repeat: bool) -> usize {
    // With replacement as many as without it of n + r - 1.
    let of = if repeat { n + r - 1 } else { n };
    if n == 0 || of < r {
        return 0;
    }
    // Each factor is at least one, so that what is too large stays so, and the loop ends early.
    let step = |found: i128, i: i128| Some(found * (of - i) / (i + 1)).filter(|&f| f <= i64::MAX.into());
    (0..r.min(of - r)).try_fold(1, step).map_or(usize::MAX, |rows| rows as usize)
}

pub static CHOICES: Op = Op {
    sig: sig("_combinations(int n, int r, bool with_replacement=False, Device? device=None) -> Tensor"),
    doc: "The choices of `r` of the numbers below `n` in their order, as rows; with replacement a number may repeat.",
    forms: HIDDEN,
    body: opaque(
        |c| {
            let (n, r) = (c.int("n")?.max(0), c.int("r")?.max(1));
            let rows = count(n.into(), r.into(), c.flag("with_replacement"));
            crate::layout::checked_numel(&[rows, r as usize])?;
            Ok(Spec::one(&[rows, r as usize], DType::I64, c.device("device").unwrap_or_default()))
        },
        |c| {
            let (n, r) = (c.int("n")?.max(0), c.int("r")?.max(1));
            // Each row is made of `r` numbers of its own.
            crate::rt::reserve::probe(
                count(n.into(), r.into(), c.flag("with_replacement")).saturating_mul(r as usize).saturating_mul(8),
            )?;
            let index = choices(n as usize, r as usize, c.flag("with_replacement"))?;
            let index = Term(Tensor::from_slice(&index, &[index.len() / r as usize, r as usize]));
            index.to_device(c.device("device").unwrap_or_default()).outputs()
        },
    ),
    vjp: Vjp::None("indices"),
    samples: &["4, 2", "3, 2, True", "2, 3"],
    errors: &[("'a', 2", "TypeError", "must be int")],
    ..OP
};

pub static COMBINATIONS: Op = Op {
    sig: sig("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor"),
    doc: "All choices of `r` elements of a vector in their order, as rows; with replacement an element may repeat.",
    forms: F,
    body: decompose(|c| {
        let (t, r) = (c.tensor(0)?, c.int("r")?);
        vector(t)?;
        if r < 0 {
            return Err(Error::runtime(format!("Expect a non-negative number, but got {r}")));
        }
        if r == 0 {
            return ZEROS.calls(([0], t.dtype(), t.device()));
        }
        let index = CHOICES.call((t.numel() as i64, r, c.flag("with_replacement"), t.device())).ok()?;
        INDEX.calls((t, vec![index]))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[4]", "f32[3], 2, True", "i64[4], 3", "f32[3], 5", "f32[3], 0", "f32[3], 1"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "Expect a 1D vector, but got shape [2, 3]"),
        ("f32[3], -1", "RuntimeError", "Expect a non-negative number, but got -1"),
    ],
    ..OP
};

/// `n` powers of each element, from zero on.
fn powers(x: Term, n: i64) -> Term {
    let sizes: Ints = x.sizes();
    let with = |last: i64| -> Ints { sizes.iter().copied().chain([last]).collect() };
    let Some(t) = x.get() else { return x };
    let shape: Vec<usize> = sizes.iter().map(|&d| d as usize).chain([1]).collect();
    let one = ONES.call((shape.as_slice(), t.dtype(), t.device()));
    joined([one, CUMPROD.call((x.unsqueeze(-1).expand(&with(n - 1)), -1))], -1)
}

pub static LINALG_VANDER: Op = Op {
    sig: sig("linalg.vander(Tensor x, *, int? N=None) -> Tensor"),
    doc: "The Vandermonde matrix: the powers 0 to `N - 1` of each element in a new last dimension.",
    forms: F,
    body: decompose(|c| {
        let x = c.tensor("x")?;
        let n = c.opt_int("N").unwrap_or(x.shape().last().copied().unwrap_or(1) as i64);
        if n <= 1 {
            return Err(Error::runtime("N must be greater than 1."));
        }
        let x = if x.dtype() == DType::Bool { Term::from(x).to_dtype(DType::I64) } else { x.into() };
        powers(if x.ndim() == 0 { x.unsqueeze(0) } else { x }, n).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3]", "f32[2,3], N=4", "i64[3], N=2"],
    errors: &[("f32[3], N=1", "RuntimeError", "N must be greater than 1.")],
    ..OP
};

pub static VANDER: Op = Op {
    sig: sig("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor"),
    doc: "The powers of each element of a vector as columns, falling (or increasing) from left to right.",
    forms: F,
    body: decompose(|c| {
        let x = c.tensor("x")?;
        if x.ndim() != 1 {
            return Err(Error::runtime("x must be a one-dimensional tensor."));
        }
        let n = c.opt_int("N").unwrap_or(x.size(0) as i64);
        if n < 0 {
            return Err(Error::runtime(format!("N must be non-negative, but got {n}")));
        }
        if n == 0 {
            return ZEROS.calls(([x.size(0), 0].as_slice(), x.dtype(), x.device()));
        }
        let dtype = if x.dtype().is_differentiable() { x.dtype() } else { DType::I64 };
        let rising = ONES.call(([x.size(0), n as usize].as_slice(), dtype, x.device())).ok()?;
        if n > 1 {
            let products = CUMPROD.call((Term::from(x).unsqueeze(-1).expand(&[x.size(0) as i64, n - 1]), -1));
            COPY_.call_inplace((SLICE.call((&rising, 1, 1, n)), products))?;
        }
        if c.flag("increasing") { Ok(smallvec![rising]) } else { FLIP.calls((rising, [1])) }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3]", "f32[3], 2, True", "i64[3], 4", "f32[2], 0"],
    errors: &[("f32[2,3]", "RuntimeError", "x must be a one-dimensional tensor.")],
    ..OP
};
