//! Average pooling.

use super::adaptive::ADAPTIVE;
use super::{Steps, check_input, format_of, in_format, lifted, planar_format, pooled_shape, result, with_one};
use crate::cpu::pooling::mean;
use crate::cpu::pooling::mean::Divisor;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::window::Axis;
use crate::op::*;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&AVG_POOL1D, &AVG_POOL2D, &AVG_POOL3D, &MEAN_POOL_BACKWARD];

/// How windows move and what their sums are divided by. The arguments are at the same positions in the ops and in their
/// gradient: kernel, stride, padding, ceil_mode, count_include_pad, divisor_override.
fn steps<const D: usize>(c: &impl Arguments) -> Result<(Steps<D>, Divisor)> {
    let divisor = match c.opt_int("divisor_override") {
        Some(0) => return Err(Error::runtime("divisor must be not zero")),
        Some(n) => Divisor::Given(n),
        None if c.flag("count_include_pad") => Divisor::Extent,
        None => Divisor::Count,
    };
    Ok((Steps::of(c, &[1], c.flag("ceil_mode"))?, divisor))
}

fn axes<const D: usize>(c: &Call) -> Result<([Axis; 3], Divisor)> {
    let x = c.tensor(0)?;
    check_input::<D>(x)?;
    let (steps, divisor) = steps::<D>(c)?;
    if !x.dtype().is_float() && x.dtype() != DType::I64 {
        return Err(no_kernel(if D == 2 { "avg_pool2d" } else { "avg_pool3d_out_frame" }, x.dtype()));
    }
    Ok((steps.axes(x.shape())?, divisor))
}

fn infer<const D: usize>(c: &Call) -> Result<Specs> {
    let (x, (axes, _)) = (c.tensor(0)?, axes::<D>(c)?);
    Ok(smallvec![result(x, &pooled_shape::<D>(x.shape(), &axes), x.dtype(), planar_format(x, D))?])
}

pub(crate) fn run(x: &Tensor, dims: usize, axes: &[Axis; 3], divisor: Divisor, out: &Tensor) -> Result<()> {
    let format = format_of(out, dims);
    let (x, y) = (in_format(x, dims, format)?, in_format(out, dims, format)?);
    if x.device().is_gpu() {
        return gpu::mean_pool(&x.gpu_view()?, axes, for_gpu(divisor), &y.gpu_view()?);
    }
    mean::mean_pool(x.cpu_view()?, axes, divisor, y.cpu_view()?)
}

fn for_gpu(divisor: Divisor) -> gpu::PoolDivisor {
    match divisor {
        Divisor::Extent => gpu::PoolDivisor::Extent,
        Divisor::Count => gpu::PoolDivisor::Count,
        Divisor::Given(n) => gpu::PoolDivisor::Given(n),
    }
}

fn forward<const D: usize>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (axes, divisor) = axes::<D>(c)?;
    run(c.tensor(0)?, D, &axes, divisor, &out[0])
}

fn gradient<const D: usize>(c: &VjpCtx) -> Term {
    let Ok((steps, _)) = steps::<D>(c) else { return Error::internal("the call was checked").into() };
    let args = || -> Result<Args> {
        Ok(smallvec![
            c.g().into_arg()?,
            Value::Ints(steps.kernel.as_slice().into()),
            Value::Ints(steps.stride.as_slice().into()),
            Value::Ints(steps.padding.as_slice().into()),
            c.argument("ceil_mode").reborrow(),
            c.argument("count_include_pad").reborrow(),
            c.argument("divisor_override").reborrow(),
            Value::Ints(c.sizes(0)),
        ])
    };
    args().map_or_else(Term::from, |args| MEAN_POOL_BACKWARD.call(args))
}

const AVG_POOL: Op = Op {
    doc: "The mean of each window of the last dimensions of an input [batch, channels, ..], or one without the batch. Zeros are padded to both ends; they count as elements with `count_include_pad`, and with `divisor_override` sums are divided by that number. With `ceil_mode`, a window may reach beyond the end. The size of a result is `(n + 2 * padding - kernel_size) // stride + 1`; `stride` is by default the kernel's size.",
    forms: F,
    ..OP
};

pub static AVG_POOL1D: Op = Op {
    sig: sig(
        "avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    ),
    aliases: &["nn.functional.avg_pool1d"],
    body: decompose(|c| {
        lifted(c, "avg_pool1d", |x| {
            let args: Args = smallvec![
                x.into_arg()?,
                Value::Ints(with_one(c, 1, "kernel_size")?),
                Value::Ints(with_one(c, 1, "stride")?),
                Value::Ints(with_one(c, 0, "padding")?),
                c.argument("ceil_mode").reborrow(),
                c.argument("count_include_pad").reborrow(),
            ];
            AVG_POOL2D.calls(args)
        })
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,6], 2", "f32[3,7], 3, 2, 1, True, False"],
    errors: &[
        ("f32[6], 2", "RuntimeError", "Expected 2 to 3 dimensions"),
        ("f32[1,1,6], (2, 2)", "RuntimeError", "should contain one int (got 2)"),
    ],
    ..AVG_POOL
};
pub static AVG_POOL2D: Op = Op {
    sig: sig(
        "nn.functional.avg_pool2d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    ),
    body: kernel(infer::<2>, forward::<2>, Some(forward::<2>)),
    vjp: Vjp::Each(&[d(0, 0, gradient::<2>)]),
    keeps: Some("ceil_mode count_include_pad divisor_override kernel_size padding stride"),
    samples: &[
        "f32[2,3,6,6], 2",
        "f32[2,5,7], (3, 2), (2, 1), (1, 0), True",
        "f32[1,2,6,8], 3, 2, 1, True, False",
        "f32[1,2,6,8], (3, 4), 4, 1, divisor_override=-5",
        "i64[1,2,4,4], 2",
        "bf16[1,2,4,4], 3, 1, 1",
    ],
    errors: &[
        ("f32[1,3,2,2], 3", "RuntimeError", "Output size is too small"),
        ("f32[1,3,4,4], 2, padding=2", "RuntimeError", "pad should be at most half of effective kernel size"),
        ("f32[1,3,4,4], 2, 0", "RuntimeError", "stride should not be zero"),
        ("f32[1,3,4,4], 2, divisor_override=0", "RuntimeError", "divisor must be not zero"),
        ("f32[1,3,4,4], (2, 2, 2)", "RuntimeError", "a tuple of two ints"),
        ("f32[4,4], 2", "RuntimeError", "non-empty 3D or 4D (batch mode) tensor expected"),
        ("i32[1,3,4,4], 2", "NotImplementedError", "not implemented for 'Int'"),
    ],
    batch: Batching::Fold(4, &[0]),
    ..AVG_POOL
};
pub static AVG_POOL3D: Op = Op {
    sig: sig(
        "nn.functional.avg_pool3d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    ),
    body: kernel(infer::<3>, forward::<3>, Some(forward::<3>)),
    vjp: Vjp::Each(&[d(0, 0, gradient::<3>)]),
    keeps: Some("ceil_mode count_include_pad divisor_override kernel_size padding stride"),
    samples: &["f32[1,2,4,4,4], 2", "f32[2,4,5,6], (2, 3, 2), (1, 2, 2), (1, 1, 0), True, False"],
    errors: &[("f32[1,3,2,2,2], 3", "RuntimeError", "Output size is too small")],
    batch: Batching::Fold(5, &[0]),
    ..AVG_POOL
};

/// The windows of the gradient's op: of an input of sizes `size`.
fn windows(c: &Call) -> Result<(usize, [Axis; 3], Divisor)> {
    let (g, size) = (c.tensor("grad")?, c.ints("size")?);
    let shape = crate::layout::to_shape(size)?;
    let kernel = c.ints("kernel_size")?;
    let dims = if kernel.is_empty() { c.ints("padding")?.len() } else { kernel.len() };
    if !(2..=3).contains(&dims) || !(dims + 1..=dims + 2).contains(&shape.len()) || g.ndim() != shape.len() {
        return Err(Error::runtime("a gradient of the rank of the input is needed, and two or three windows"));
    }
    let (axes, divisor) = match (kernel.is_empty(), dims) {
        (true, _) => {
            let mut axes = [Axis::whole(); 3];
            (0..dims).for_each(|i| {
                let at = shape.len() - dims + i;
                axes[3 - dims + i] = Axis::adaptive(shape[at], g.size(at));
            });
            (axes, Divisor::Count)
        }
        (_, 2) => steps::<2>(c).and_then(|(s, d)| Ok((s.axes(&shape)?, d)))?,
        _ => steps::<3>(c).and_then(|(s, d)| Ok((s.axes(&shape)?, d)))?,
    };
    let lead = shape.len() - dims;
    let after = g.shape()[lead..].iter().zip(&axes[3 - dims..]).all(|(&n, a)| n == a.out);
    if g.shape()[..lead] != shape[..lead] || !after || !g.dtype().is_float() {
        return Err(Error::runtime("a gradient of the shape of the result is needed"));
    }
    Ok((dims, axes, divisor))
}

pub static MEAN_POOL_BACKWARD: Op = Op {
    sig: sig(
        "_mean_pool_backward(Tensor grad, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, int[] size) -> Tensor",
    ),
    doc: "The gradient of average pooling by an input of sizes `size`: each element of `grad` is divided among those of its window. Without a kernel, windows are adaptive, one dimension for each number of `padding`.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let ((dims, ..), g) = (windows(c)?, c.tensor("grad")?);
            let format = planar_format(g, dims);
            Ok(smallvec![result(g, &crate::layout::to_shape(c.ints("size")?)?, g.dtype(), format)?])
        },
        |c, out| {
            let (dims, axes, divisor) = windows(c)?;
            let format = format_of(&out[0], dims);
            let (g, dx) = (in_format(c.tensor("grad")?, dims, format)?, in_format(&out[0], dims, format)?);
            mean::mean_pool_backward(g.cpu_view()?, &axes, divisor, dx.cpu_view()?)
        },
        Some(|c, out| {
            let (dims, axes, divisor) = windows(c)?;
            let format = format_of(&out[0], dims);
            let (g, dx) = (in_format(c.tensor("grad")?, dims, format)?, in_format(&out[0], dims, format)?);
            gpu::mean_pool_backward(&g.gpu_view()?, &axes, for_gpu(divisor), &dx.gpu_view()?)
        }),
    ),
    vjp: Vjp::Each(&[d(0, 0, again)]),
    samples: &[
        "f32[2,3,3,3], (2, 2), (2, 2), (0, 0), False, True, None, (2, 3, 6, 6)",
        "f32[2,3,4], (3, 2), (2, 2), (1, 1), False, False, None, (2, 5, 7)",
        "f32[1,2,3,2], (), (), (0, 0), False, True, None, (1, 2, 5, 4)",
    ],
    errors: &[(
        "f32[2,3,3,3], (2, 2), (2, 2), (0, 0), False, True, None, (2, 3, 6, 9)",
        "RuntimeError",
        "of the shape of the result",
    )],
    batch: Batching::Rule(crate::ops::support::batch_layers::sized::<7>),
    ..OP
};

/// The gradient of the gradient: the pooling itself.
fn again(c: &VjpCtx) -> Term {
    let dims = c.ints("padding").len();
    if c.ints("kernel_size").is_empty() {
        let sizes = c.sizes(0);
        return ADAPTIVE[dims - 2].call((c.g(), &sizes[sizes.len() - dims..]));
    }
    let args = c.g().into_arg().map(|g| {
        let rest = c.call.args[1..7].iter().map(|v| v.reborrow());
        std::iter::once(g).chain(rest).collect::<Args>()
    });
    let op = if dims == 2 { &AVG_POOL2D } else { &AVG_POOL3D };
    args.map_or_else(Term::from, |args| op.call(args))
}
