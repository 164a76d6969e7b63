//! Adaptive pooling: as many windows of nearly equal size as results are asked for. Window `i` of `out` covers the elements
//! from `floor(i * n / out)` to `ceil((i + 1) * n / out)`.

use super::mean::MEAN_POOL_BACKWARD;
use super::{format_of, lifted, planar_format, pooled_shape, result, with_one};
use crate::cpu::pooling::mean::Divisor;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::Format;
use crate::layout::window::{Axis, LIMIT};
use crate::op::*;
use crate::ops::reduce::sum_prod::MEAN_DIM;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &ADAPTIVE_AVG_POOL1D,
    &ADAPTIVE_AVG_POOL2D,
    &ADAPTIVE_AVG_POOL3D,
    &AVG2D,
    &AVG3D,
    &ADAPTIVE_MAX_POOL1D,
    &ADAPTIVE_MAX_POOL2D,
    &ADAPTIVE_MAX_POOL3D,
];

/// The averages with a node of their own, by dimensions less two.
pub(crate) static ADAPTIVE: [&Op; 2] = [&AVG2D, &AVG3D];

fn axes<const D: usize>(c: &Call) -> Result<[Axis; 3]> {
    let (x, sizes) = (c.tensor(0)?, c.ints("output_size")?);
    let n = x.ndim();
    if n != D + 1 && n != D + 2 {
        return Err(Error::runtime(format!(
            "{}(): Expected {}D or {}D tensor, but got {}",
            c.op.base().trim_start_matches('_'),
            D + 1,
            D + 2,
            Show(x.shape())
        )));
    }
    let out: [i64; D] = match sizes {
        [one] => [*one; D],
        _ => sizes.try_into().map_err(|_| Error::runtime(format!("output_size must be {D}")))?,
    };
    if let Some(i) = (n - D..n).find(|&i| x.size(i) == 0) {
        return Err(Error::runtime(format!(
            "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {i} being empty",
            c.op.base().trim_start_matches('_'),
            Show(x.shape())
        )));
    }
    if out.iter().any(|&n| n < 0) {
        return Err(Error::runtime(format!(
            "elements of output_size must be greater than or equal to 0 but received {}",
            Show(&out)
        )));
    }
    if out.iter().any(|&n| n as usize > LIMIT) {
        return Err(Error::runtime("integer out of range"));
    }
    let mut axes = [Axis::whole(); 3];
    (0..D).for_each(|i| axes[3 - D + i] = Axis::adaptive(x.size(n - D + i), out[i] as usize));
    Ok(axes)
}

fn check_float(x: &Tensor, kernel: &str) -> Result<()> {
    if x.dtype().is_float() { Ok(()) } else { Err(no_kernel(kernel, x.dtype())) }
}

fn infer_mean<const D: usize>(c: &Call) -> Result<Specs> {
    let (x, axes) = (c.tensor(0)?, axes::<D>(c)?);
    check_float(x, if D == 2 { "adaptive_avg_pool2d" } else { "adaptive_avg_pool3d_cpu" })?;
    Ok(smallvec![result(x, &pooled_shape::<D>(x.shape(), &axes), x.dtype(), planar_format(x, D))?])
}

fn means<const D: usize>(c: &Call, out: &[Tensor]) -> Result<()> {
    super::mean::run(c.tensor(0)?, D, &axes::<D>(c)?, Divisor::Count, &out[0])
}

fn gradient<const D: usize>(c: &VjpCtx) -> Term {
    let args = || -> Result<Args> {
        let none = || Value::Ints(Ints::new());
        Ok(smallvec![
            c.g().into_arg()?,
            none(),
            none(),
            Value::Ints(smallvec![0; D]),
            false.into(),
            false.into(),
            Value::None,
            Value::Ints(c.sizes(0)),
        ])
    };
    args().map_or_else(Term::from, |args| MEAN_POOL_BACKWARD.call(args))
}

/// One result for all is a mean, as in PyTorch; pooling keeps channels that are last.
fn mean_or<const D: usize>(c: &Call, op: &'static Op) -> Result<Outputs> {
    let x = c.tensor(0)?;
    let one = c.ints("output_size")?.iter().all(|&n| n == 1) && [1, D].contains(&c.ints("output_size")?.len());
    if one && (D + 1..=D + 2).contains(&x.ndim()) && format_of(x, D) == Format::Contiguous {
        let dims: Ints = (1..=D as i64).map(|d| -d).collect();
        return MEAN_DIM.calls((x, dims, true));
    }
    op.calls((x, c.ints("output_size")?))
}

const ADAPTIVE_AVG: Op = Op {
    doc: "The means of `output_size` windows of nearly equal size of the last dimensions of an input [batch, channels, ..], or one without the batch.",
    forms: F,
    ..OP
};

pub static ADAPTIVE_AVG_POOL1D: Op = Op {
    sig: sig("adaptive_avg_pool1d(Tensor input, int[1] output_size) -> Tensor"),
    aliases: &["nn.functional.adaptive_avg_pool1d"],
    body: decompose(|c| {
        lifted(c, "adaptive_avg_pool1d", |x| ADAPTIVE_AVG_POOL2D.calls((x, with_one(c, 1, "output_size")?)))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6], 2", "f32[3,7], 3", "f32[1,2,3], (5,)"],
    errors: &[
        ("f32[6], 2", "RuntimeError", "Expected 2 to 3 dimensions"),
        ("f32[1,2,6], -1", "RuntimeError", "greater than or equal to 0"),
    ],
    ..ADAPTIVE_AVG
};
pub static ADAPTIVE_AVG_POOL2D: Op = Op {
    sig: sig("nn.functional.adaptive_avg_pool2d(Tensor input, int[1] output_size) -> Tensor"),
    body: decompose(|c| mean_or::<2>(c, &AVG2D)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6,6], 4", "f32[2,5,7], (3, 2)", "f32[2,3,4,5], 1", "f32[1,2,2,3], (4, 6)"],
    errors: &[
        ("f32[6,6], 2", "RuntimeError", "Expected 3D or 4D tensor"),
        ("f32[1,2,6,6], -1", "RuntimeError", "greater than or equal to 0"),
        ("f32[1,2,6,0], 2", "RuntimeError", "non-zero size for non-batch dimensions"),
        ("i64[1,2,6,6], 2", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..ADAPTIVE_AVG
};
pub static ADAPTIVE_AVG_POOL3D: Op = Op {
    sig: sig("nn.functional.adaptive_avg_pool3d(Tensor input, int[1] output_size) -> Tensor"),
    body: decompose(|c| mean_or::<3>(c, &AVG3D)),
    vjp: Vjp::Composite,
    samples: &["f32[1,2,4,5,6], (2, 2, 3)", "f32[2,4,4,5], 3", "f32[1,2,2,3,2], 1"],
    errors: &[("f32[6,6], 2", "RuntimeError", "Expected 4D or 5D tensor")],
    ..ADAPTIVE_AVG
};
pub static AVG2D: Op = Op {
    sig: sig("_adaptive_avg_pool2d(Tensor self, int[1] output_size) -> Tensor"),
    forms: HIDDEN,
    body: kernel(infer_mean::<2>, means::<2>, Some(means::<2>)),
    vjp: Vjp::Each(&[d(0, 0, gradient::<2>)]),
    keeps: Some(""),
    samples: &["f32[2,3,6,6], 4", "f32[2,5,7], (3, 2)"],
    errors: &[("f32[6,6], 2", "RuntimeError", "Expected 3D or 4D tensor")],
    batch: Batching::Fold(4, &[0]),
    ..ADAPTIVE_AVG
};
pub static AVG3D: Op = Op {
    sig: sig("_adaptive_avg_pool3d(Tensor self, int[1] output_size) -> Tensor"),
    forms: HIDDEN,
    body: kernel(infer_mean::<3>, means::<3>, Some(means::<3>)),
    vjp: Vjp::Each(&[d(0, 0, gradient::<3>)]),
    keeps: Some(""),
    samples: &["f32[1,2,4,5,6], (2, 2, 3)", "f32[2,4,4,5], 3"],
    errors: &[("f32[6,6], 2", "RuntimeError", "Expected 4D or 5D tensor")],
    batch: Batching::Fold(5, &[0]),
    ..ADAPTIVE_AVG
};

fn infer_max<const D: usize>(c: &Call) -> Result<Specs> {
    let (x, axes) = (c.tensor(0)?, axes::<D>(c)?);
    if let Some(i) = (1..x.ndim()).find(|&i| x.size(i) == 0) {
        return Err(Error::runtime(format!(
            "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {i} being empty",
            c.op.base().trim_start_matches('_'),
            Show(x.shape())
        )));
    }
    check_float(x, if D == 2 { "adaptive_max_pool2d" } else { "adaptive_max_pool3d_cpu" })?;
    let shape = pooled_shape::<D>(x.shape(), &axes);
    let format = planar_format(x, D);
    Ok(smallvec![result(x, &shape, x.dtype(), format)?, result(x, &shape, DType::I64, format)?])
}

fn maxima<const D: usize>(c: &Call, out: &[Tensor]) -> Result<()> {
    super::max::run(c.tensor(0)?, D, &axes::<D>(c)?, out)
}

const ADAPTIVE_MAX: Op = Op {
    doc: "The largest elements of `output_size` windows of nearly equal size of the last dimensions of an input [batch, channels, ..], or one without the batch, with the place of each among the elements of its channel.",
    forms: HIDDEN,
    constant: &[1],
    ..OP
};
pub static ADAPTIVE_MAX_POOL1D: Op = Op {
    sig: sig("adaptive_max_pool1d(Tensor input, int[1] output_size) -> Tensor[]"),
    forms: F,
    body: decompose(|c| {
        lifted(c, "adaptive_max_pool1d", |x| ADAPTIVE_MAX_POOL2D.calls((x, with_one(c, 1, "output_size")?)))
    }),
    vjp: Vjp::Composite,
    constant: &[],
    samples: &["f32[2,3,6], 2", "f32[3,7], 3"],
    errors: &[("f32[6], 2", "RuntimeError", "Expected 2 to 3 dimensions")],
    ..ADAPTIVE_MAX
};
pub static ADAPTIVE_MAX_POOL2D: Op = Op {
    sig: sig("_adaptive_max_pool2d(Tensor self, int[1] output_size) -> Tensor[]"),
    body: kernel(infer_max::<2>, maxima::<2>, Some(maxima::<2>)),
    vjp: Vjp::Each(&[d(0, OUT1, super::max::by_places::<2>)]),
    keeps: Some("result1"),
    samples: &["f32[2,3,6,6], 4", "f32[2,5,7], (3, 2)"],
    errors: &[
        ("f32[6,6], 2", "RuntimeError", "Expected 3D or 4D tensor"),
        ("f32[1,0,6,6], 2", "RuntimeError", "non-zero size for non-batch dimensions"),
        ("i64[1,2,6,6], 2", "NotImplementedError", "not implemented for 'Long'"),
    ],
    batch: Batching::Fold(4, &[0]),
    ..ADAPTIVE_MAX
};
pub static ADAPTIVE_MAX_POOL3D: Op = Op {
    sig: sig("_adaptive_max_pool3d(Tensor self, int[1] output_size) -> Tensor[]"),
    body: kernel(infer_max::<3>, maxima::<3>, Some(maxima::<3>)),
    vjp: Vjp::Each(&[d(0, OUT1, super::max::by_places::<3>)]),
    keeps: Some("result1"),
    samples: &["f32[1,2,4,5,6], (2, 2, 3)"],
    errors: &[("f32[6,6], 2", "RuntimeError", "Expected 4D or 5D tensor")],
    batch: Batching::Fold(5, &[0]),
    ..ADAPTIVE_MAX
};
