//! `affine_grid`: grids for `grid_sample` from affine maps.

use super::grid::DEFAULT;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, checked_numel};
use crate::op::*;
use crate::ops::linalg::matmul::BMM;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::reshape::EXPAND;
use crate::rt::reserve::room;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&AFFINE_GRID, &AFFINE_GRID_GENERATOR];

/// The points of a grid without a map, `[points, dimensions + 1]`: x, y, z and 1.
fn base(size: &[i64], align_corners: bool, like: (DType, crate::device::Device)) -> Result<Tensor> {
    let sizes = crate::layout::to_shape(size.get(2..).unwrap_or_default())?;
    let (points, dims) = (checked_numel(&sizes)?, sizes.len());
    checked_numel(&[points, dims + 1])?;
    let at = |i: usize, n: usize| {
        if n < 2 {
            return 0.0;
        }
        let x = 2.0 * i as f64 / (n - 1) as f64 - 1.0;
        if align_corners { x } else { x * (n - 1) as f64 / n as f64 }
    };
    let mut values = room(points * (dims + 1))?;
    for p in 0..points {
        let mut rest = p;
        for &n in sizes.iter().rev() {
            values.push(at(rest % n, n));
            rest /= n;
        }
        values.push(1.0);
    }
    let t = Tensor::from_slice::<f64>(&values, &[points, dims + 1])?;
    Term::from(t).to_dtype(like.0).to_device(like.1).ok()
}

/// The base for each of the batch.
fn bases(size: &[i64], align_corners: bool, like: (DType, crate::device::Device)) -> Result<Term> {
    let base = base(size, align_corners, like)?;
    let shape = [size[0], base.size(0) as i64, base.size(1) as i64];
    Ok(EXPAND.call((base, shape)))
}

fn grid_specs(c: &Call) -> Result<Specs> {
    let (theta, size) = (c.tensor("theta")?, c.ints("size")?);
    if !matches!(size.len(), 4 | 5) {
        return Err(Error::runtime("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs."));
    }
    if theta.dtype() == DType::Bool {
        return Err(no_kernel("linspace_cpu", theta.dtype()));
    }
    if theta.ndim() < 3 {
        return Err(Error::dim_range(theta.ndim().max(1) as i64, theta.ndim()));
    }
    let (batch, dims) = (size[0], size.len() - 2);
    let sizes = crate::layout::to_shape(size)?;
    if theta.ndim() != 3 {
        return Err(Error::runtime(format!("batch2 must be a 3D tensor, got sizes {}", Show(theta.shape()))));
    }
    if theta.shape() != [sizes[0], dims, dims + 1] {
        return Err(Error::runtime(format!(
            "expected affine maps of shape {}, got {}",
            Show([batch, dims as i64, dims as i64 + 1].as_slice()),
            Show(theta.shape())
        )));
    }
    let shape: Dims = [sizes[0]].into_iter().chain(sizes[2..].iter().copied()).chain([dims]).collect();
    checked_numel(&shape)?;
    Ok(Spec::one(&shape, theta.dtype(), theta.device()))
}

pub static AFFINE_GRID_GENERATOR: Op = Op {
    sig: sig("affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor"),
    doc: "The grid `[N, H, W, 2]` or `[N, D, H, W, 3]` of the points that affine maps `[N, 2, 3]` or `[N, 3, 4]` send the points of a result of `size` to.",
    forms: F,
    body: opaque(grid_specs, |c| {
        grid_specs(c)?;
        let (theta, size) = (c.tensor("theta")?, c.ints("size")?);
        let base = bases(size, c.flag("align_corners"), (theta.dtype(), theta.device()))?;
        let dims = size.len() as i64 - 2;
        let shape: Ints = [size[0]].into_iter().chain(size[2..].iter().copied()).chain([dims]).collect();
        BMM.call((base, Term::from(theta).transpose(1, 2))).reshape(&shape).outputs()
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let f = c.meta_of(0);
        let base = match bases(c.ints("size"), c.flag("align_corners"), (f.dtype, f.device)) {
            Ok(base) => base,
            Err(e) => return e.into(),
        };
        let shape = base.sizes();
        let g = c.g().reshape(&[shape[0], shape[1], shape[2] - 1]);
        BMM.call((g.transpose(1, 2), base))
    })]),
    samples: &[
        "f32[2,2,3], (2, 3, 4, 5), False",
        "f32[2,2,3], (2, 1, 3, 4), True",
        "f32[1,3,4], (1, 2, 2, 3, 4), False",
        "f64[1,2,3], (1, 2, 1, 3), True",
    ],
    errors: &[
        ("f32[2,2,3], (2, 3, 4), False", "RuntimeError", "needs 4d (spatial) or 5d (volumetric)"),
        ("f32[2,3], (2, 1, 3, 4), False", "IndexError", "Dimension out of range"),
        ("f32[2,3,3], (2, 1, 3, 4), False", "RuntimeError", "expected affine maps of shape [2, 2, 3]"),
        ("b8[2,2,3], (2, 1, 3, 4), False", "NotImplementedError", "not implemented for 'Bool'"),
        ("f32[2,2,3], (2, 1, -3, 4), False", "RuntimeError", "negative dimension"),
    ],
    batch: Batching::Rule(crate::ops::support::batch_layers::sized::<1>),
    ..OP
};

pub static AFFINE_GRID: Op = Op {
    sig: sig("nn.functional.affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor"),
    doc: "The grid `[N, H, W, 2]` or `[N, D, H, W, 3]` for `grid_sample` of a result of `size`, from affine maps `[N, 2, 3]` or `[N, 3, 4]`.",
    forms: F,
    body: decompose(|c| {
        let (theta, size) = (c.tensor("theta")?, c.ints("size")?);
        if !theta.dtype().is_float() {
            return Err(Error::value(format!("Expected theta to have floating point type, but got {}", theta.dtype())));
        }
        let dims = match size.len() {
            4 => 2,
            5 => 3,
            _ => {
                return Err(Error::not_implemented(format!(
                    "only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {}.",
                    Show(size)
                )));
            }
        };
        if theta.ndim() != 3 || theta.shape()[1..] != [dims, dims + 1] {
            return Err(Error::value(format!(
                "Expected a batch of {dims}D affine matrices of shape Nx{dims}x{} for size {}. Got {}.",
                dims + 1,
                Show(size),
                Show(theta.shape())
            )));
        }
        if !unit(c) && size.iter().any(|&n| n <= 0) {
            return Err(Error::value(format!("Expected non-zero, positive output size. Got {}", Show(size))));
        }
        AFFINE_GRID_GENERATOR.calls((theta, size, c.flag("align_corners")))
    }),
    vjp: Vjp::Composite,
    warns: Some(|c| {
        if c.argument("align_corners").is_none() {
            return Some(DEFAULT.into());
        }
        unit(c).then(|| "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended use case of affine_grid. See the documentation of affine_grid for details.".into())
    }),
    samples: &[
        "f32[2,2,3], (2, 3, 4, 5), align_corners=False",
        "f32[2,2,3], (2, 1, 3, 4), align_corners=True",
        "f32[1,3,4], (1, 2, 2, 3, 4), align_corners=False",
    ],
    errors: &[
        ("i64[2,2,3], (2, 1, 3, 4), True", "ValueError", "Expected theta to have floating point type"),
        ("f32[2,3,3], (2, 1, 3, 4), True", "ValueError", "Expected a batch of 2D affine matrices of shape Nx2x3"),
        ("f32[2,2,3], (2, 1, 3), True", "NotImplementedError", "only supports 4D and 5D sizes"),
        ("f32[2,2,3], (2, 1, 0, 4), False", "ValueError", "non-zero, positive output size"),
    ],
    ..OP
};

/// Whether a spatial dimension of one element is to have its corners aligned.
fn unit(c: &Call) -> bool {
    c.flag("align_corners") && c.opt_ints("size").is_some_and(|size| size.iter().skip(2).min() == Some(&1))
}
