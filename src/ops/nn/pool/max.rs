//! Max pooling, with the places of the maxima.

use super::{Steps, check_input, format_of, in_format, lifted, pooled_shape, result, with_one};
use crate::cpu::pooling::max;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::window::Axis;
use crate::op::*;
use crate::ops::indexing::gather_scatter::{GATHER, SCATTER_REDUCE_SRC};
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &MAX_POOL1D,
    &MAX_POOL2D,
    &MAX_POOL3D,
    &MAX_POOL1D_WITH_INDICES,
    &MAX_POOL2D_WITH_INDICES,
    &MAX_POOL3D_WITH_INDICES,
    &MAX_POOL2D_VALUES,
    &MAX_POOL3D_VALUES,
    &MAX_POOL_BACKWARD,
];

/// The arguments from `input` on, up to `ceil_mode`.
const ARGUMENTS: usize = 6;

fn axes<const D: usize>(c: &Call) -> Result<[Axis; 3]> {
    let x = c.tensor(0)?;
    check_input::<D>(x)?;
    if x.dtype() == DType::Bool || x.dtype().is_complex() {
        return Err(no_kernel(if D == 2 { "max_pool2d" } else { "max_pool3d" }, x.dtype()));
    }
    Steps::<D>::of(c, c.ints("dilation")?, c.flag("ceil_mode"))?.axes(x.shape())
}

fn infer<const D: usize>(c: &Call) -> Result<Specs> {
    let (x, axes) = (c.tensor(0)?, axes::<D>(c)?);
    let shape = pooled_shape::<D>(x.shape(), &axes);
    let format = format_of(x, D);
    Ok(smallvec![result(x, &shape, x.dtype(), format)?, result(x, &shape, DType::I64, format)?])
}

/// The maxima, and their places if there is a result for them.
pub(crate) fn run(x: &Tensor, dims: usize, axes: &[Axis; 3], out: &[Tensor]) -> Result<()> {
    let format = format_of(&out[0], dims);
    let (x, y) = (in_format(x, dims, format)?, in_format(&out[0], dims, format)?);
    let places = out.get(1).map(|t| in_format(t, dims, format)).transpose()?;
    if x.device().is_gpu() {
        let places = places.as_ref().map(|t| t.gpu_view()).transpose()?;
        return gpu::max_pool(&x.gpu_view()?, axes, &y.gpu_view()?, places);
    }
    let places = places.as_ref().map(|t| t.cpu_view()).transpose()?;
    max::max_pool(x.cpu_view()?, axes, y.cpu_view()?, places)
}

fn forward<const D: usize>(c: &Call, out: &[Tensor]) -> Result<()> {
    run(c.tensor(0)?, D, &axes::<D>(c)?, out)
}

/// The gradient of a pooling with places, of which `indices` is the second result.
pub(crate) fn by_places<const D: usize>(c: &VjpCtx) -> Term {
    MAX_POOL_BACKWARD.call((c.g(), c.out(1), c.sizes(0), D))
}

/// The values alone where no gradient is wanted, else with the places that it needs.
fn values(c: &Call, with_places: &'static Op, alone: &'static Op) -> Result<Outputs> {
    let args: Args = c.args[..ARGUMENTS].iter().map(|v| v.reborrow()).collect();
    if crate::autograd::forward::is_differentiated(c.tensor(0)?) {
        return Ok(smallvec![with_places.calls(args)?.swap_remove(0)]);
    }
    alone.calls(args)
}

/// The call of the two-dimensional op for one dimension.
fn of_one(c: &Call, run: &'static Op) -> Result<Outputs> {
    lifted(c, "max_pool1d", |x| {
        let args: Args = smallvec![
            x.into_arg()?,
            Value::Ints(with_one(c, 1, "kernel_size")?),
            Value::Ints(with_one(c, 1, "stride")?),
            Value::Ints(with_one(c, 0, "padding")?),
            Value::Ints(with_one(c, 1, "dilation")?),
            c.argument("ceil_mode").reborrow(),
        ];
        run.calls(args)
    })
}

const MAX_POOL: Op = Op {
    doc: "The largest element of each window of the last dimensions of an input [batch, channels, ..], or one without the batch. Padding counts as minus infinity; with `ceil_mode`, a window may reach beyond the end. The size of a result is `(n + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`; `stride` is by default the kernel's size.",
    forms: F,
    ..OP
};
const WITH_INDICES: Op = Op {
    doc: "Max pooling with the place of each maximum among the elements of its channel.",
    constant: &[1],
    keeps: Some("ceil_mode dilation kernel_size padding result1 stride"),
    ..MAX_POOL
};

pub static MAX_POOL1D: Op = Op {
    sig: sig(
        "max_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    ),
    body: decompose(|c| of_one(c, &MAX_POOL2D)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6], 2", "f32[3,7], 3, 2, 1", "f32[1,2,9], (3,), (2,), 1, 2, True"],
    errors: &[
        ("f32[6], 2", "RuntimeError", "Expected 2 to 3 dimensions"),
        ("f32[1,1,6], 2, padding=2", "RuntimeError", "pad should be at most half"),
        ("f32[1,1,6], (2, 2)", "RuntimeError", "should contain one int (got 2)"),
    ],
    ..MAX_POOL
};
pub static MAX_POOL1D_WITH_INDICES: Op = Op {
    sig: sig(
        "max_pool1d_with_indices(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor[]",
    ),
    body: decompose(|c| of_one(c, &MAX_POOL2D_WITH_INDICES)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6], 2", "f32[3,7], 3, 2, 1"],
    errors: &[("f32[6], 2", "RuntimeError", "Expected 2 to 3 dimensions")],
    keeps: None,
    constant: &[],
    ..WITH_INDICES
};
pub static MAX_POOL2D: Op = Op {
    sig: sig(
        "max_pool2d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    ),
    body: decompose(|c| values(c, &MAX_POOL2D_WITH_INDICES, &MAX_POOL2D_VALUES)),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3,6,6], 2",
        "f32[2,5,7], (3, 2), (2, 1), (1, 0)",
        "f32[1,2,9,8], 3, 2, 1, (2, 1), True",
        "i64[1,2,4,4](nograd), 2",
    ],
    errors: &[
        ("f32[1,3,2,2], 3", "RuntimeError", "Output size is too small"),
        ("f32[1,3,4,4], 2, padding=2", "RuntimeError", "pad should be at most half of effective kernel size"),
        ("f32[1,3,4,4], 2, padding=-1", "RuntimeError", "pad must be non-negative"),
        ("f32[1,3,4,4], 2, 0", "RuntimeError", "stride should not be zero"),
        ("f32[1,3,4,4], 2, -1", "RuntimeError", "stride should be greater than zero"),
        ("f32[1,3,4,4], 0, 1", "RuntimeError", "kernel size should be greater than zero"),
        ("f32[1,3,4,4], 2, dilation=0", "RuntimeError", "dilation should be greater than zero"),
        ("f32[1,3,4,4], (2, 2, 2)", "RuntimeError", "a tuple of two ints"),
        ("f32[1,3,4,4], 9999999999", "RuntimeError", "integer out of range"),
        ("f32[4,4], 2", "RuntimeError", "non-empty 3D or 4D (batch mode) tensor expected"),
        ("f32[1,0,4,4], 2", "RuntimeError", "Expected 3D or 4D (batch mode) tensor"),
        ("b8[1,3,4,4], 2", "NotImplementedError", "not implemented for 'Bool'"),
    ],
    ..MAX_POOL
};
pub static MAX_POOL3D: Op = Op {
    sig: sig(
        "max_pool3d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    ),
    body: decompose(|c| values(c, &MAX_POOL3D_WITH_INDICES, &MAX_POOL3D_VALUES)),
    vjp: Vjp::Composite,
    samples: &["f32[1,2,4,4,4], 2", "f32[2,4,5,6], (2, 3, 2), (1, 2, 2), (1, 1, 0)"],
    errors: &[("f32[1,3,2,2,2], 3", "RuntimeError", "Output size is too small")],
    ..MAX_POOL
};
pub static MAX_POOL2D_WITH_INDICES: Op = Op {
    sig: sig(
        "nn.functional.max_pool2d_with_indices(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor[]",
    ),
    body: kernel(infer::<2>, forward::<2>, Some(forward::<2>)),
    vjp: Vjp::Each(&[d(0, OUT1, by_places::<2>)]),
    node: "MaxPool2DWithIndicesBackward0",
    samples: &[
        "f32[2,3,6,6], 2",
        "f32[2,5,7], (3, 2), (2, 1), (1, 0)",
        "f32[1,2,9,8], 3, 2, 1, (2, 1), True",
        "f32[2,2,6,6](ties), 3, 1, 1",
        "bf16[1,2,4,4], 2",
    ],
    errors: &[("f32[1,3,2,2], 3", "RuntimeError", "Output size is too small")],
    batch: Batching::Fold(4, &[0]),
    ..WITH_INDICES
};
pub static MAX_POOL3D_WITH_INDICES: Op = Op {
    sig: sig(
        "nn.functional.max_pool3d_with_indices(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor[]",
    ),
    body: kernel(infer::<3>, forward::<3>, Some(forward::<3>)),
    vjp: Vjp::Each(&[d(0, OUT1, by_places::<3>)]),
    node: "MaxPool3DWithIndicesBackward0",
    samples: &["f32[1,2,4,4,4], 2", "f32[2,4,5,6], (2, 3, 2), (1, 2, 2), (1, 1, 0), (1, 1, 2)"],
    errors: &[("f32[1,3,2,2,2], 3", "RuntimeError", "Output size is too small")],
    batch: Batching::Fold(5, &[0]),
    ..WITH_INDICES
};
const VALUES: Op = Op {
    doc: "Max pooling without the places of the maxima: what is left to do where no gradient is recorded.",
    forms: HIDDEN,
    vjp: Vjp::None("`max_pool2d` and `max_pool3d` record the op with indices instead"),
    ..OP
};
fn infer_values<const D: usize>(c: &Call) -> Result<Specs> {
    let mut both = infer::<D>(c)?;
    both.truncate(1);
    Ok(both)
}
pub static MAX_POOL2D_VALUES: Op = Op {
    sig: sig(
        "_max_pool2d_values(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    ),
    body: kernel(infer_values::<2>, forward::<2>, Some(forward::<2>)),
    samples: &["f32[2,3,6,6], 2", "f32[1,2,9,8], 3, 2, 1, (2, 1), True"],
    errors: &[("f32[1,3,2,2], 3", "RuntimeError", "Output size is too small")],
    batch: Batching::Fold(4, &[0]),
    ..VALUES
};
pub static MAX_POOL3D_VALUES: Op = Op {
    sig: sig(
        "_max_pool3d_values(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    ),
    body: kernel(infer_values::<3>, forward::<3>, Some(forward::<3>)),
    samples: &["f32[1,2,4,4,4], 2"],
    errors: &[("f32[1,3,2,2,2], 3", "RuntimeError", "Output size is too small")],
    batch: Batching::Fold(5, &[0]),
    ..VALUES
};

/// Axes of the sizes before and after pooling; how the windows lay does not matter any more.
fn sizes_alone(from: &[i64], to: &[usize], dims: usize) -> [Axis; 3] {
    let mut axes = [Axis::whole(); 3];
    for i in 0..dims {
        let at = from.len() - dims + i;
        axes[3 - dims + i] = Axis { size: from[at] as usize, out: to[at], ..Axis::whole() };
    }
    axes
}

/// `[planes, elements of a plane]` of these sizes, of which the last `dims` are a plane's.
pub(crate) fn flat(sizes: &[i64], dims: usize) -> Ints {
    // The sizes of a failed term are none.
    let (planes, plane) = sizes.split_at(sizes.len().saturating_sub(dims));
    smallvec![planes.iter().product(), plane.iter().product()]
}

/// The elements of `x` at the places, which have the sizes of the result.
pub(crate) fn picked(x: Term, places: Term, dims: usize) -> Term {
    let (from, to) = (x.sizes(), places.sizes());
    let index = places.reshape(&flat(&to, dims));
    GATHER.call((x.reshape(&flat(&from, dims)), 1, index)).reshape(&to)
}

pub static MAX_POOL_BACKWARD: Op = Op {
    sig: sig("_max_pool_backward(Tensor grad, Tensor indices, int[] size, int dims) -> Tensor"),
    doc: "The gradient of max pooling over the last `dims` dimensions by an input of sizes `size`: each element of `grad` is added at its place.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (g, places, size, dims) = (c.tensor("grad")?, c.tensor("indices")?, c.ints("size")?, c.int("dims")?);
            let fits =
                (1..=3).contains(&dims) && size.len() == g.ndim() && (dims + 1..=dims + 2).contains(&(g.ndim() as i64));
            let lead = (g.ndim() as i64).saturating_sub(dims).max(0) as usize;
            let same = fits && size[..lead].iter().zip(g.shape()).all(|(&a, &b)| a == b as i64);
            if !same || places.shape() != g.shape() || places.dtype() != DType::I64 || !g.dtype().is_float() {
                return Err(Error::runtime("a gradient and int64 indices of the shape of the result are needed"));
            }
            let format = format_of(g, dims as usize);
            Ok(smallvec![result(g, &crate::layout::to_shape(size)?, g.dtype(), format)?])
        },
        |c, out| {
            let (g, dims) = (c.tensor("grad")?, c.int("dims")? as usize);
            let format = format_of(&out[0], dims);
            let axes = sizes_alone(c.ints("size")?, g.shape(), dims);
            let (g, places, dx) = (
                in_format(g, dims, format)?,
                in_format(c.tensor("indices")?, dims, format)?,
                in_format(&out[0], dims, format)?,
            );
            max::max_pool_backward(g.cpu_view()?, places.cpu_view()?, &axes, dx.cpu_view()?)
        },
        Some(|c, out| {
            let (g, places, size, dims) =
                (c.tensor("grad")?, c.tensor("indices")?, c.ints("size")?, c.int("dims")? as usize);
            let (before, after) = (flat(size, dims), flat(&Term::from(g).sizes(), dims));
            let zeros = Tensor::zeros(&crate::layout::to_shape(&before)?, g.dtype(), g.device())?;
            let (places, g) = (Term::from(places).reshape(&after), Term::from(g).reshape(&after));
            let dx = SCATTER_REDUCE_SRC.call(scatter_args(zeros, places, g)?).reshape(size).ok()?;
            out[0].copy_raw(&dx)
        }),
    ),
    vjp: Vjp::Each(&[d(0, A1, |c| picked(c.g(), c.arg(1), c.int("dims") as usize))]),
    samples: &[
        "f32[2,2,2,2], i64[2,2,2,2](0..16), (2, 2, 4, 4), 2",
        "f32[3,2], i64[3,2](0..5), (3, 5), 1",
        "f32[1,2,1,2,2], i64[1,2,1,2,2](0..12), (1, 2, 2, 2, 3), 3",
    ],
    errors: &[
        ("f32[1,1,2,2], i64[1,1,2,2](9..10), (1, 1, 2, 2), 2", "RuntimeError", "invalid max index"),
        ("f32[1,1,2,2], i64[1,1,2,1](0..1), (1, 1, 2, 2), 2", "RuntimeError", "of the shape of the result"),
    ],
    batch: Batching::Rule(crate::ops::support::batch_layers::sized::<2>),
    ..OP
};

fn scatter_args(zeros: Tensor, places: Term, g: Term) -> Result<Args<'static>> {
    Ok(smallvec![Value::Owned(zeros), 1.into(), places.into_arg()?, g.into_arg()?, "add".into()])
}
