//! `grid_sample` as a composition, through which gradients of its gradients go.
//!
//! Each neighbour is one `gather`; positions come from the grid by differentiable steps, and whole numbers are detached.

use crate::cpu::grid_sample::Settings;
use crate::dtype::DType;
use crate::error::Result;
use crate::kinds::{Outside, Sampling};
use crate::op::*;
use crate::ops::elementwise::minmax::CLAMP;
use crate::ops::elementwise::rounding::{FLOOR, ROUND};
use crate::ops::indexing::gather_scatter::GATHER;
use crate::ops::view::reshape::{EXPAND, SELECT};
use crate::tensor::Tensor;

/// A neighbour in one dimension: its position, a whole number, and its weight; both `[batch, points]`.
struct Neighbour {
    at: Term,
    weight: Option<Term>,
}

/// Zero or one, as numbers of the same dtype.
fn odd(whole: Term) -> Term {
    let half = FLOOR.call((whole.clone() * 0.5,)).cut();
    whole - half * 2.0
}

fn inside(at: Term, n: f64, s: Settings) -> Term {
    let at = match s.outside {
        Outside::Zeros => return at,
        Outside::Border => at,
        Outside::Reflection => {
            let (low, span) = if s.align_corners { (0.0, n - 1.0) } else { (-0.5, n) };
            if span == 0.0 {
                return at * 0.0;
            }
            let from = (at - low).abs();
            let flips = FLOOR.call((from.clone() / span,)).cut();
            let extra = from - flips.clone() * span;
            let odd = odd(flips);
            extra * (1.0 - odd.clone() * 2.0) + odd * span + low
        }
    };
    CLAMP.call((at, 0.0, n - 1.0))
}

/// Cubic convolution with a = -3/4 at a distance of at most one, or of one to two.
fn cubic(d: Term, far: bool) -> Term {
    let a = -0.75;
    match far {
        false => (d.clone() * (a + 2.0) - (a + 3.0)) * d.clone() * d + 1.0,
        true => ((d.clone() * a - 5.0 * a) * d.clone() + 8.0 * a) * d - 4.0 * a,
    }
}

fn neighbours(x: Term, n: usize, s: Settings) -> Vec<Neighbour> {
    let n = n as f64;
    let at = match s.align_corners {
        true => (x + 1.0) / 2.0 * (n - 1.0),
        false => ((x + 1.0) * n - 1.0) / 2.0,
    };
    if s.sampling == Sampling::Bicubic {
        let low = FLOOR.call((at.clone(),)).cut();
        let part = at - low.clone();
        let distances =
            [(part.clone() + 1.0, true), (part.clone(), false), (1.0 - part.clone(), false), (2.0 - part, true)];
        let each = distances.into_iter().zip(-1i32..);
        return each
            .map(|((d, far), step)| {
                let at = inside(low.clone() + f64::from(step), n, s).cut();
                Neighbour { at, weight: Some(cubic(d, far)) }
            })
            .collect();
    }
    let at = inside(at, n, s);
    if s.sampling == Sampling::Nearest {
        return vec![Neighbour { at: ROUND.call((at,)).cut(), weight: None }];
    }
    let low = FLOOR.call((at.clone(),)).cut();
    let part = at - low.clone();
    let first = Neighbour { at: low.clone(), weight: Some(1.0 - part.clone()) };
    vec![first, Neighbour { at: low + 1.0, weight: Some(part) }]
}

/// The elements at a place for every point, times the weight.
fn term(x: &Term, near: &[&Neighbour], sizes: &[usize]) -> Term {
    let (mut at, mut there, mut weight) = (None::<Term>, None::<Term>, None::<Term>);
    for (d, n) in near.iter().enumerate() {
        let last = sizes[d] as f64 - 1.0;
        let here = n.at.clone().at_least(0.0).both(n.at.clone().at_most(last));
        let within = n.at.clone().zero_where(here.clone().not()).to_dtype(DType::I64);
        at = Some(match at {
            Some(before) => before * sizes[d] as i64 + within,
            None => within,
        });
        there = Some(match there {
            Some(before) => before.both(here),
            None => here,
        });
        weight = match (weight, &n.weight) {
            (Some(before), Some(w)) => Some(before * w.clone()),
            (before, w) => before.or_else(|| w.clone()),
        };
    }
    let (Some(at), Some(there)) = (at, there) else { return Term::number(crate::dtype::Scalar::Int(0)) };
    let shape = x.sizes();
    let points = at.sizes();
    let index = EXPAND.call((at.unsqueeze(1), [shape[0], shape[1], points[1]]));
    let value = GATHER.call((x.clone(), 2, index)).zero_where(there.not().unsqueeze(1));
    match weight {
        Some(w) => value * w.unsqueeze(1),
        None => value,
    }
}

/// The result of `grid_sampler` for an input and a grid of checked shapes.
pub fn sampled(x: &Tensor, grid: &Tensor, s: Settings) -> Result<Outputs> {
    let sizes = &x.shape()[2..];
    let dims = sizes.len();
    let points: Ints = grid.shape()[1..=dims].iter().map(|&n| n as i64).collect();
    let count = points.iter().product::<i64>();
    let (batch, channels) = (x.size(0) as i64, x.size(1) as i64);
    let volume = sizes.iter().product::<usize>() as i64;
    let flat = Term::from(x).reshape(&[batch, channels, volume]);
    let grid = Term::from(grid).reshape(&[batch, count, dims as i64]);
    let near: Vec<Vec<Neighbour>> =
        (0..dims).map(|d| neighbours(SELECT.call((grid.clone(), 2, dims - 1 - d)), sizes[d], s)).collect();
    let each = s.sampling.count();
    let mut sum = None::<Term>;
    for k in 0..each.pow(dims as u32) {
        let chosen: Vec<&Neighbour> = near.iter().enumerate().map(|(d, n)| &n[k / each.pow(d as u32) % each]).collect();
        let next = term(&flat, &chosen, sizes);
        sum = Some(match sum {
            Some(sum) => sum + next,
            None => next,
        });
    }
    let shape: Ints = [batch, channels].into_iter().chain(points).collect();
    sum.unwrap_or(flat).reshape(&shape).outputs()
}
