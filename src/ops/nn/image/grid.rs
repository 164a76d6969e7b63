//! `grid_sample`: images and volumes read at the points of a grid, with gradients by both.

use crate::cpu::grid_sample::{self as cpu, Settings};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu::{self, Sampled};
use crate::kinds::{Outside, Sampling};
use crate::layout::{Dims, Layout, checked_numel};
use crate::op::*;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&GRID_SAMPLE, &GRID_SAMPLER, &GRID_SAMPLER_2D, &GRID_SAMPLER_3D, &GRID_SAMPLER_BACKWARD];

pub(crate) const DEFAULT: &str = "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.";

pub static GRID_SAMPLE: Op = Op {
    sig: sig(
        "nn.functional.grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) -> Tensor",
    ),
    doc: "The input `[N, C, (D,) H, W]` at the points `[N, .., 2 or 3]` of a grid, whose coordinates (x, y, z) are -1 at the start and 1 at the end of a dimension: at the outer edges, or with `align_corners` at the centres of the corner elements. Modes: 'bilinear', 'nearest', 'bicubic'. Outside there are 'zeros', the 'border' or a 'reflection'. Jaderberg et al., arXiv:1506.02025.",
    forms: F,
    body: decompose(|c| {
        let mode = match c.str("mode").unwrap_or_default() {
            "bilinear" => 0,
            "nearest" => 1,
            "bicubic" => 2,
            other => {
                return Err(Error::value(format!(
                    "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{other}'"
                )));
            }
        };
        let outside = match c.str("padding_mode").unwrap_or_default() {
            "zeros" => 0,
            "border" => 1,
            "reflection" => 2,
            other => {
                return Err(Error::value(format!(
                    "expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{other}'"
                )));
            }
        };
        GRID_SAMPLER.calls((c.tensor(0)?, c.tensor("grid")?, mode, outside, c.flag("align_corners")))
    }),
    vjp: Vjp::Composite,
    warns: Some(|c| c.argument("align_corners").is_none().then(|| DEFAULT.into())),
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
        ("f32[1,2,3,4,5], f32[1,3,4,2,3], 'bicubic', align_corners=True", "RuntimeError", "only supports 4D input"),
        ("f32[1,2,4,5], f32[1,3,4,2], padding_mode='odd', align_corners=True", "ValueError", "but got: 'odd'"),
        ("f32[1,2,4,5], f32[2,3,4,2], align_corners=True", "RuntimeError", "same batch size"),
        ("f32[1,2,4,5], f32[1,3,4,3], align_corners=True", "RuntimeError", "grid to have size 2 in last dimension"),
        ("f32[1,2,0,5], f32[1,3,4,2], align_corners=True", "RuntimeError", "non-empty spatial dimensions"),
        ("f32[1,2,4,5], f32[1,3,2], align_corners=True", "RuntimeError", "expected 4D input and grid"),
        ("f32[1,2,4], f32[1,3,1], align_corners=True", "RuntimeError", "expected 4D or 5D input"),
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
    body: decompose(|c| {
        let (x, grid) = (c.tensor(0)?, c.tensor("grid")?);
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
        op.calls((x, grid, c.int("interpolation_mode")?, c.int("padding_mode")?, c.flag("align_corners")))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[1,2,4,5], f32[1,3,4,2](-1.3..1.3), 0, 0, False"],
    errors: &[
        ("f32[1,2,4,5], f32[1,3,4,2], 3, 0, False", "ValueError", "interpolation_mode"),
        ("f32[1,2,4,5], f32[1,3,4,2], 0, 3, False", "ValueError", "padding_mode"),
    ],
    ..OP
};

/// The settings among the arguments.
fn settings(c: &impl Arguments) -> Result<Settings> {
    let unknown = |name: &str, i: i64| Err(Error::value(format!("expected {name} to be 0, 1 or 2, got {i}")));
    let sampling = match c.int("interpolation_mode")? {
        0 => Sampling::Bilinear,
        1 => Sampling::Nearest,
        2 => Sampling::Bicubic,
        i => return unknown("interpolation_mode", i),
    };
    let outside = match c.int("padding_mode")? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        i => return unknown("padding_mode", i),
    };
    Ok(Settings { sampling, outside, align_corners: c.flag("align_corners") })
}

/// Ranks, sizes and dtypes, in PyTorch's order.
fn check(dims: usize, x: &Tensor, grid: &Tensor) -> Result<()> {
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
    let (x, grid) = (c.tensor(0)?, c.tensor("grid")?);
    let s = settings(c)?;
    check(D, x, grid)?;
    if D == 3 && matches!(s.sampling, Sampling::Bicubic) {
        return Err(Error::runtime("bicubic interpolation only supports 4D input"));
    }
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
    let (x, grid, s) = (c.tensor(0)?, c.tensor("grid")?, settings(c)?);
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
fn gradients(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    if crate::autograd::forward::differentiating() {
        return c.through(|c| super::grid_steps::sampled(c.tensor(0)?, c.tensor("grid")?, settings(c)?));
    }
    let args: Args = smallvec![
        c.g().into_arg()?,
        c.arg(0).into_arg()?,
        c.arg(1).into_arg()?,
        c.int("interpolation_mode").into(),
        c.int("padding_mode").into(),
        c.flag("align_corners").into(),
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
    batch: Batching::Fold(4, &[0, 1]),
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
    batch: Batching::Fold(5, &[0, 1]),
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
            let (g, x, grid) = (c.tensor("grad_output")?, c.tensor("input")?, c.tensor("grid")?);
            settings(c)?;
            if !matches!(x.ndim(), 4 | 5) {
                return Err(Error::runtime(format!("expected 4D or 5D input, got sizes {}", Show(x.shape()))));
            }
            check(x.ndim() - 2, x, grid)?;
            let points = &grid.shape()[1..grid.ndim() - 1];
            if g.dtype() != x.dtype() || !g.shape().iter().eq(x.shape()[..2].iter().chain(points)) {
                return Err(Error::runtime("the gradient must have the shape and dtype of the result"));
            }
            let spec =
                |t: &Tensor, wanted: bool| if wanted { Spec::like(t) } else { Spec::new(&[0], t.dtype(), t.device()) };
            Ok(smallvec![spec(x, c.flag("of_input")), spec(grid, c.flag("of_grid"))])
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
    batch: Batching::Fold(4, &[0, 1, 2]),
    ..OP
};

fn sample_backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (g, x, grid, s) = (c.tensor("grad_output")?, c.tensor("input")?, c.tensor("grid")?, settings(c)?);
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
