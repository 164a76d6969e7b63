//! `grid_sample` and `affine_grid`: images and volumes read at the points of a grid, and grids from affine maps.

use crate::cpu::grid_sample::{self as cpu, Settings};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu::{self, Sampled};
use crate::kinds::{Outside, Sampling};
use crate::layout::{Dims, Layout, checked_numel};
use crate::op::*;
use crate::ops::linalg::BMM;
use crate::ops::needs::quiet;
use crate::ops::rules::no_kernel;
use crate::ops::view::EXPAND;
use crate::reserve::room;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &GRID_SAMPLE,
    &GRID_SAMPLER,
    &GRID_SAMPLER_2D,
    &GRID_SAMPLER_3D,
    &GRID_SAMPLER_BACKWARD,
    &AFFINE_GRID,
    &AFFINE_GRID_GENERATOR,
];

const DEFAULT: &str = "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.";

pub static GRID_SAMPLE: Op = Op {
    sig: sig(
        "nn.functional.grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) -> Tensor",
    ),
    doc: "The input `[N, C, (D,) H, W]` at the points `[N, .., 2 or 3]` of a grid, whose coordinates (x, y, z) are -1 at the start and 1 at the end of a dimension: at the outer edges, or with `align_corners` at the centres of the corner elements. Modes: 'bilinear', 'nearest', 'bicubic' (images only). Outside there are 'zeros', the 'border' or a 'reflection'. Jaderberg et al., arXiv:1506.02025.",
    forms: F,
    body: composite(|c| {
        let mode = match c.str(2).unwrap_or_default() {
            "bilinear" => 0,
            "nearest" => 1,
            "bicubic" => 2,
            other => {
                return Err(Error::value(format!(
                    "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{other}'"
                )));
            }
        };
        let outside = match c.str(3).unwrap_or_default() {
            "zeros" => 0,
            "border" => 1,
            "reflection" => 2,
            other => {
                return Err(Error::value(format!(
                    "expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{other}'"
                )));
            }
        };
        GRID_SAMPLER.calls((c.tensor(0)?, c.tensor(1)?, mode, outside, c.flag(4)))
    }),
    vjp: Vjp::Composite,
    warns: Some(|c| c.args[4].is_none().then(|| DEFAULT.into())),
    samples: &[
        "f32[2,3,4,5], f32[2,3,2,2](-1.3..1.3), align_corners=False",
        "f32[2,3,4,5], f32[2,3,2,2](-1.3..1.3), align_corners=True",
        "f32[1,2,4,5], f32[1,3,4,2](-1.9..1.9), padding_mode='border', align_corners=False",
        "f32[1,2,4,5], f32[1,3,4,2](-2.9..2.9), padding_mode='reflection', align_corners=False",
        "f32[1,2,4,5], f32[1,3,4,2](-2.9..2.9), padding_mode='reflection', align_corners=True",
        "f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 'nearest', align_corners=False",
        "f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 'nearest', 'border', align_corners=True",
        "f64[1,2,4,5], f64[1,3,4,2](-1.3..1.3), 'bicubic', align_corners=False",
        "f32[1,2,4,5], f32[1,3,4,2](-1.9..1.9), 'bicubic', 'border', align_corners=True",
        "f32[1,2,4,5], f32[1,3,4,2](-1.9..1.9), 'bicubic', 'reflection', align_corners=False",
        "f32[1,2,3,4,2], f32[1,2,3,2,3](-1.3..1.3), align_corners=False",
        "f32[1,2,3,4,2], f32[1,2,3,2,3](-1.9..1.9), 'bilinear', 'reflection', align_corners=True",
        "f32[1,2,3,4,2], f32[1,2,3,2,3](-1.3..1.3), 'nearest', 'border', align_corners=False",
    ],
    errors: &[
        ("f32[1,2,4,5], f32[1,3,4,2], 'odd', align_corners=True", "ValueError", "but got: 'odd'"),
        ("f32[1,2,4,5], f32[1,3,4,2], padding_mode='odd', align_corners=True", "ValueError", "but got: 'odd'"),
        ("f32[1,2,4,5], f32[2,3,4,2], align_corners=True", "RuntimeError", "same batch size"),
        ("f32[1,2,4,5], f32[1,3,4,3], align_corners=True", "RuntimeError", "grid to have size 2 in last dimension"),
        ("f32[1,2,0,5], f32[1,3,4,2], align_corners=True", "RuntimeError", "non-empty spatial dimensions"),
        ("f32[1,2,4,5], f32[1,3,2], align_corners=True", "RuntimeError", "expected 4D input and grid"),
        ("f32[1,2,4], f32[1,3,1], align_corners=True", "RuntimeError", "expected 4D or 5D input"),
        (
            "f32[1,2,2,4,5], f32[1,3,4,2,3], 'bicubic', align_corners=True",
            "RuntimeError",
            "bicubic interpolation only supports 4D input",
        ),
        ("f32[1,2,4,5], f64[1,3,4,2], align_corners=True", "RuntimeError", "same dtype"),
        ("i64[1,2,4,5], i64[1,3,4,2], align_corners=True", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..OP
};

pub static GRID_SAMPLER: Op = Op {
    sig: sig(
        "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    ),
    doc: "`nn.functional.grid_sample` with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection.",
    forms: F,
    body: composite(|c| {
        let (x, grid) = (c.tensor(0)?, c.tensor(1)?);
        let op = match x.ndim() {
            4 => &GRID_SAMPLER_2D,
            5 => &GRID_SAMPLER_3D,
            0 => return Err(Error::index("Dimension specified as 0 but tensor has no dimensions")),
            _ => {
                return Err(Error::runtime(format!(
                    "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {} and grid with sizes {}",
                    Show(x.shape()),
                    Show(grid.shape())
                )));
            }
        };
        op.calls((x, grid, c.int(2)?, c.int(3)?, c.flag(4)))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 0, 0, False"],
    errors: &[
        ("f32[1,2,4,5], f32[1,3,4,2], 3, 0, False", "ValueError", "interpolation_mode"),
        ("f32[1,2,4,5], f32[1,3,4,2], 0, 3, False", "ValueError", "padding_mode"),
    ],
    ..OP
};

/// The three settings from the arguments at `at`.
fn settings(c: &dyn Arguments, at: usize) -> Result<Settings> {
    let unknown = |name: &str, i: i64| Err(Error::value(format!("expected {name} to be 0, 1 or 2, got {i}")));
    let sampling = match c.int(at)? {
        0 => Sampling::Bilinear,
        1 => Sampling::Nearest,
        2 => Sampling::Bicubic,
        i => return unknown("interpolation_mode", i),
    };
    let outside = match c.int(at + 1)? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        i => return unknown("padding_mode", i),
    };
    Ok(Settings { sampling, outside, align_corners: c.flag(at + 2) })
}

/// Ranks, sizes and dtypes, in PyTorch's order.
fn check(dims: usize, x: &Tensor, grid: &Tensor, s: Settings) -> Result<()> {
    let err = |text: String| Err(Error::runtime(text));
    let (of_x, of_grid, rank) = (Show(x.shape()), Show(grid.shape()), dims + 2);
    if x.ndim() != rank || grid.ndim() != rank {
        return err(format!(
            "expected {rank}D input and grid with same number of dimensions, but got input with sizes {of_x} and grid with sizes {of_grid}"
        ));
    }
    if x.size(0) != grid.size(0) {
        return err(format!(
            "expected grid and input to have same batch size, but got input with sizes {of_x} and grid with sizes {of_grid}"
        ));
    }
    if grid.size(rank - 1) != dims {
        return err(format!("expected grid to have size {dims} in last dimension, but got grid with sizes {of_grid}"));
    }
    if let Some(d) = (2..rank).find(|&d| x.size(d) == 0) {
        return err(format!(
            "expected input to have non-empty spatial dimensions, but input has sizes {of_x} with dimension {d} being empty"
        ));
    }
    if dims == 3 && s.sampling == Sampling::Bicubic {
        return err("bicubic interpolation only supports 4D input".into());
    }
    if x.dtype() != grid.dtype() {
        return err(format!(
            "expected input and grid to have the same dtype, but input has {} and grid has {}",
            x.dtype(),
            grid.dtype()
        ));
    }
    if x.dtype().is_float() { Ok(()) } else { Err(no_kernel("grid_sampler_2d_cpu_kernel_impl", x.dtype())) }
}

fn sampled<const D: usize>(c: &Call) -> Result<Specs> {
    let (x, grid) = (c.tensor(0)?, c.tensor(1)?);
    check(D, x, grid, settings(c, 2)?)?;
    let shape: Dims = x.shape()[..2].iter().chain(&grid.shape()[1..D + 1]).copied().collect();
    checked_numel(&shape)?;
    Ok(Spec::one(&shape, x.dtype(), x.device()))
}

/// A tensor as the kernels take it: dense, of float32 or float64, in another shape.
fn dense(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let wide = if t.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let t = Term::from(&t.detach()).to_dtype(wide).contiguous().ok()?;
    Ok(t.with_layout(Layout { offset: t.layout().offset, ..Layout::contiguous(shape) }))
}

/// A result of a kernel: `out` itself, or memory of a wider dtype that is copied to it.
fn written(out: &Tensor, shape: &[usize], zero: bool, run: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let wide = if out.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let own = if out.dtype() == wide { out.clone() } else { Tensor::empty(out.shape(), wide, out.device())? };
    let own = own.with_layout(own.layout().clone());
    if zero {
        own.fill_raw(crate::dtype::Scalar::Int(0))?;
    }
    run(&own.with_layout(Layout { offset: own.layout().offset, ..Layout::contiguous(shape) }))?;
    if out.dtype() == wide { Ok(()) } else { out.copy_raw(&own) }
}

/// The shapes `[batch, channels, points]` and `[batch, points, dimensions]`.
fn flat(x: &Tensor, grid: &Tensor) -> ([usize; 3], [usize; 3]) {
    let dims = x.ndim() - 2;
    let points = grid.shape()[1..=dims].iter().product();
    ([x.size(0), x.size(1), points], [x.size(0), points, dims])
}

fn sample(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, grid, s) = (c.tensor(0)?, c.tensor(1)?, settings(c, 2)?);
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (of_out, of_grid) = flat(x, grid);
    let (x, grid) = (dense(x, x.shape())?, dense(grid, &of_grid)?);
    written(&out[0], &of_out, false, |out| match x.device().is_gpu() {
        true => gpu::grid_sample(&x.gpu_view()?, &described(&x, &grid, s)?, &out.gpu_view()?),
        false => cpu::grid_sample(x.cpu_view()?, grid.cpu_view()?, s, out.cpu_view()?),
    })
}

fn described<'a>(x: &'a Tensor, grid: &'a Tensor, s: Settings) -> Result<Sampled<'a>> {
    let Settings { sampling, outside, align_corners } = s;
    Ok(Sampled { grid: grid.gpu_view()?, shape: x.shape(), sampling, outside, align_corners })
}

/// One kernel a gradient; if the gradient is recorded, the steps of the composition.
fn gradients(c: &Back) -> Result<Vec<Option<Tensor>>> {
    if crate::autograd::grad_enabled() {
        return c.through(|c| super::grid_steps::sampled(c.tensor(0)?, c.tensor(1)?, settings(c, 2)?));
    }
    let args: Args = smallvec![
        c.g().into_arg()?,
        c.arg(0).into_arg()?,
        c.arg(1).into_arg()?,
        c.int(2).into(),
        c.int(3).into(),
        c.flag(4).into(),
        c.wants(0).into(),
        c.wants(1).into(),
    ];
    let parts = GRID_SAMPLER_BACKWARD.calls(args)?;
    Ok(parts.into_iter().enumerate().map(|(i, g)| c.wants(i).then_some(g)).collect())
}

const SAMPLER: Op = Op {
    forms: F,
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1, formula: gradients }),
    keeps: Some("align_corners grid input interpolation_mode padding_mode"),
    ..OP
};

pub static GRID_SAMPLER_2D: Op = Op {
    sig: sig(
        "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    ),
    doc: "`grid_sampler` of images.",
    body: kernel(sampled::<2>, sample, Some(sample)),
    samples: &["f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 0, 0, False"],
    errors: &[("f32[1,2,2,4,5], f32[1,3,4,2,3], 0, 0, False", "RuntimeError", "expected 4D input and grid")],
    ..SAMPLER
};

pub static GRID_SAMPLER_3D: Op = Op {
    sig: sig(
        "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    ),
    doc: "`grid_sampler` of volumes.",
    body: kernel(sampled::<3>, sample, Some(sample)),
    samples: &["f32[1,2,3,4,2], f32[1,2,3,2,3](-1.3..1.3), 0, 0, False"],
    errors: &[("f32[1,2,4,5], f32[1,3,4,2], 0, 0, False", "RuntimeError", "expected 5D input and grid")],
    ..SAMPLER
};

pub static GRID_SAMPLER_BACKWARD: Op = Op {
    sig: sig(
        "_grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool of_input, bool of_grid) -> Tensor[]",
    ),
    doc: "The gradients of `grid_sampler` by input and grid, as far as they are wanted. Gradients of higher order go through a composition.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (g, x, grid, s) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?, settings(c, 3)?);
            if !matches!(x.ndim(), 4 | 5) {
                return Err(Error::runtime(format!("expected 4D or 5D input, got sizes {}", Show(x.shape()))));
            }
            check(x.ndim() - 2, x, grid, s)?;
            let points = &grid.shape()[1..grid.ndim() - 1];
            if g.dtype() != x.dtype() || !g.shape().iter().eq(x.shape()[..2].iter().chain(points)) {
                return Err(Error::runtime("the gradient must have the shape and dtype of the result"));
            }
            let spec =
                |t: &Tensor, wanted: bool| if wanted { Spec::like(t) } else { Spec::new(&[0], t.dtype(), t.device()) };
            Ok(smallvec![spec(x, c.flag(6)), spec(grid, c.flag(7))])
        },
        sample_backward,
        Some(sample_backward),
    ),
    vjp: Vjp::None("the composition is recorded instead"),
    samples: &[
        "f32[1,2,3,4], f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 0, 0, False, True, True",
        "f32[1,2,3,4], f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 2, 1, True, True, False",
    ],
    errors: &[(
        "f32[1,2,3,3], f32[1,2,4,5], f32[1,3,4,2], 0, 0, False, True, True",
        "RuntimeError",
        "shape and dtype of the result",
    )],
    ..OP
};

fn sample_backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (g, x, grid, s) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?, settings(c, 3)?);
    let (of_out, of_grid) = flat(x, grid);
    let (g, x, grid) = (dense(g, &of_out)?, dense(x, x.shape())?, dense(grid, &of_grid)?);
    let of_x: Dims = x.shape().into();
    let on_gpu = x.device().is_gpu();
    if out[0].numel() > 0 {
        written(&out[0], &of_x, true, |dx| match on_gpu {
            _ if g.numel() == 0 => Ok(()),
            true => gpu::grid_sample_by_input(&g.gpu_view()?, &described(&x, &grid, s)?, &dx.gpu_view()?),
            false => {
                let dx = Some(dx.cpu_view()?);
                cpu::grid_sample_backward(g.cpu_view()?, x.cpu_view()?, grid.cpu_view()?, s, dx, None)
            }
        })?;
    }
    if out[1].numel() == 0 {
        return Ok(());
    }
    written(&out[1], &of_grid, true, |dgrid| match on_gpu {
        _ if g.numel() == 0 => Ok(()),
        true => {
            let from = described(&x, &grid, s)?;
            gpu::grid_sample_by_grid(&g.gpu_view()?, &x.gpu_view()?, &from, &dgrid.gpu_view()?)
        }
        false => {
            let dgrid = Some(dgrid.cpu_view()?);
            cpu::grid_sample_backward(g.cpu_view()?, x.cpu_view()?, grid.cpu_view()?, s, None, dgrid)
        }
    })
}

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

pub static AFFINE_GRID_GENERATOR: Op = Op {
    sig: sig("affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor"),
    doc: "The grid `[N, H, W, 2]` or `[N, D, H, W, 3]` of the points that affine maps `[N, 2, 3]` or `[N, 3, 4]` send the points of a result of `size` to.",
    forms: F,
    body: composite(|c| {
        let (theta, size) = (c.tensor(0)?, c.ints(1)?);
        if !matches!(size.len(), 4 | 5) {
            return Err(Error::runtime("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs."));
        }
        if theta.dtype() == DType::Bool {
            return Err(no_kernel("linspace_cpu", theta.dtype()));
        }
        if theta.ndim() < 2 {
            return Err(Error::dim_range(if theta.ndim() == 0 { 1 } else { 2 }, theta.ndim()));
        }
        if theta.ndim() != 3 {
            return Err(Error::runtime(format!("batch2 must be a 3D tensor, got sizes {}", Show(theta.shape()))));
        }
        quiet(|| {
            let base = bases(size, c.flag(2), (theta.dtype(), theta.device()))?;
            let dims = size.len() as i64 - 2;
            let shape: Ints = [size[0]].into_iter().chain(size[2..].iter().copied()).chain([dims]).collect();
            BMM.call((base, Term::from(theta).transpose(1, 2))).reshape(&shape).outputs()
        })
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let f = c.facts(0);
        let base = match bases(c.ints(1), c.flag(2), (f.dtype, f.device)) {
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
        ("f32[2,3], (2, 1, 3, 4), False", "RuntimeError", "must be a 3D tensor"),
        ("b8[2,2,3], (2, 1, 3, 4), False", "NotImplementedError", "not implemented for 'Bool'"),
        ("f32[2,2,3], (2, 1, -3, 4), False", "RuntimeError", "negative dimension"),
    ],
    ..OP
};

pub static AFFINE_GRID: Op = Op {
    sig: sig("nn.functional.affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor"),
    doc: "The grid `[N, H, W, 2]` or `[N, D, H, W, 3]` for `grid_sample` of a result of `size`, from affine maps `[N, 2, 3]` or `[N, 3, 4]`.",
    forms: F,
    body: composite(|c| {
        let (theta, size) = (c.tensor(0)?, c.ints(1)?);
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
        AFFINE_GRID_GENERATOR.calls((theta, size, c.flag(2)))
    }),
    vjp: Vjp::Composite,
    warns: Some(|c| {
        if c.args[2].is_none() {
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
    c.flag(2) && c.opt_ints(1).is_some_and(|size| size.iter().skip(2).min() == Some(&1))
}
