//! The gradients of `convolution`, which are convolutions again: that of the input is the transpose, that of the weight a
//! product with the windows that the kernel met.

use super::fused::{WEIGHT_GRADIENT, weights_fit};
use super::{CONVOLUTION, Steps, columns, exchanged, format_of, padded, volume};
use crate::error::Result;
use crate::layout::Format;
use crate::op::*;
use crate::ops::linalg::matmul::BMM;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::ops::view::reshape::{PERMUTE, SLICE};
use crate::tensor::Tensor;
use smallvec::smallvec;

/// A call of `CONVOLUTION` without a bias.
fn convolved(x: &Tensor, w: Term, steps: &Steps) -> Result<Term> {
    let args: Args = smallvec![
        x.into(),
        Value::Owned(w.ok()?),
        Value::None,
        Value::Ints(steps.stride.clone()),
        Value::Ints(steps.padding.clone()),
        Value::Ints(steps.dilation.clone()),
        steps.transposed.into(),
        Value::Ints(steps.output_padding.clone()),
        steps.groups.into(),
    ];
    Ok(CONVOLUTION.call(args))
}

/// The gradient of the input: the transpose for a convolution, a convolution for the transpose.
fn of_input(c: &VjpCtx, steps: &Steps) -> Result<Term> {
    let (from, weight) = (c.sizes(0), c.sizes(1));
    let format = format_of(&c.arg(0).ok()?, &c.arg(1).ok()?);
    let g = if format == Format::Contiguous { c.g() } else { CONTIGUOUS.call((c.g(), Value::Format(format))) }.ok()?;
    let mut back = Steps { transposed: !steps.transposed, ..steps.clone() };
    for (i, rest) in back.output_padding.iter_mut().enumerate() {
        // The elements at the end that no window covered.
        let covered = |n: i64| {
            (n - 1).saturating_mul(steps.stride[i]).saturating_add(steps.reach(i, &weight[2..])).saturating_add(1)
        };
        let room = || steps.padding[i].saturating_mul(2).saturating_add(from[2 + i]);
        *rest = if steps.transposed { 0 } else { room().saturating_sub(covered(g.size(2 + i) as i64)) };
    }
    let whole = convolved(&g, c.arg(1).conj(), &back)?;
    // An output padding as long as a stride makes room for windows that the input has no element for.
    let cut = |g: Term, d: usize| match g.sizes().get(d) {
        Some(&n) if n != from[d] => SLICE.call((g, d, 0, from[d])),
        _ => g,
    };
    Ok((2..from.len()).fold(whole, cut))
}

/// The gradient of the weight: for each group the elements of the smaller side times the windows of the larger one.
fn of_weight(c: &VjpCtx, steps: &Steps) -> Result<Term> {
    let shape = c.sizes(1);
    let x = c.arg(0).ok()?;
    if weights_fit(&x) {
        let args: Args = smallvec![
            c.g().into_arg()?,
            (&x).into(),
            Value::Ints(shape),
            Value::Ints(steps.stride.clone()),
            Value::Ints(steps.padding.clone()),
            Value::Ints(steps.dilation.clone()),
            steps.transposed.into(),
            Value::Ints(steps.output_padding.clone()),
            steps.groups.into(),
        ];
        return Ok(WEIGHT_GRADIENT.call(args));
    }
    let (small, large) = if steps.transposed { (c.arg(0).conj(), c.g()) } else { (c.g(), c.arg(0).conj()) };
    let small = small.ok()?;
    let size = Term::from(&small).sizes();
    let cols = columns(padded(large, &steps.padding), &shape[2..], &size[2..], steps);
    let total = size[0].saturating_mul(volume(&size[2..]));
    let order = exchanged(size.len() - 2);
    let rows = PERMUTE.call((small, order)).reshape(&[steps.groups, shape[0] / steps.groups, total]);
    Ok(BMM.call((rows, cols.mt())).reshape(&shape))
}

pub(crate) fn gradients(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let steps = Steps::of(c, c.ndim(1) - 2)?;
    let tied = |g: Term| c.tie_requires_grad(g, &[0, 1]).ok().map(Some);
    let rest: Ints = (0..c.ndim(1) as i64).filter(|&d| d != 1).collect();
    Ok(vec![
        if c.wants(0) { tied(of_input(c, &steps)?)? } else { None },
        if c.wants(1) { tied(of_weight(c, &steps)?)? } else { None },
        if c.wants(2) { tied(c.g().sum(&rest, false))? } else { None },
    ])
}
