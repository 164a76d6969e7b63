//! Discrete Fourier transforms: the three steps of which the functions of `torch.fft` are made.
//!
//! Each step transforms several dimensions and scales once. Its gradient is its adjoint: the transform in the other
//! direction, with the same scale. They run on the CPU; there is no shader.

pub mod freq;
pub mod many;
pub mod one;

use super::indexing::gather_scatter::unalias;
use super::movement::pad::CONSTANT_PAD_ND;
use super::view::alias::REAL;
use super::view::slice::NARROW;
use crate::cpu::fft;
use crate::dtype::{DType, default_dtype};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, laid_out_numel};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&[&Op]] = &[&[&C2C, &R2C, &C2R], freq::OPS, many::OPS, one::OPS];

/// A transform of any number of dimensions, for `torch.fft`.
const TRANSFORM: Op = Op { forms: FO, on_host: true, vjp: Vjp::Composite, out_dtype: Some(OutDType::Castable), ..OP };
const STEP: Op = Op { forms: HIDDEN, ..OP };

/// The numbers by which PyTorch's steps say how they scale: nothing, one over the root of the number of points, one over it.
const UNSCALED: i64 = 0;
const ORTHONORMAL: i64 = 1;
const MEAN: i64 = 2;

/// The mode of the argument `norm`, for a transform in this direction.
fn norm_of(c: &Call, forward: bool) -> Result<i64> {
    let scaled = match c.str("norm") {
        None | Some("backward") => !forward,
        Some("forward") => forward,
        Some("ortho") => return Ok(ORTHONORMAL),
        Some(other) => return Err(Error::runtime(format!("Invalid normalization mode: \"{other}\""))),
    };
    Ok(if scaled { MEAN } else { UNSCALED })
}

/// The factor of a transform of so many points.
fn factor(mode: i64, points: usize) -> f64 {
    match mode {
        ORTHONORMAL => 1.0 / (points as f64).sqrt(),
        MEAN => 1.0 / points as f64,
        _ => 1.0,
    }
}

/// The number of points in these dimensions.
fn points(t: &Tensor, dims: &[usize]) -> usize {
    dims.iter().map(|&d| t.size(d)).fold(1, usize::saturating_mul)
}

/// Transforms a row-major complex tensor in place along its dimensions from `start` to `end`; the first one scales.
fn along(out: &Tensor, dims: std::ops::Range<usize>, forward: bool, scale: f64) -> Result<()> {
    let first = dims.start;
    dims.into_iter().try_for_each(|d| fft::complex(out.cpu_view()?, d, forward, if d == first { scale } else { 1.0 }))
}

/// The order in which the dimensions of a result lie in memory: those of the batch by falling strides of the input, then
/// the transformed ones, as in PyTorch with MKL.
struct Order {
    dims: Dims,
    /// How many of them are of the batch.
    lead: usize,
}

impl Order {
    /// With `fixed_last` the last of `dims` stays last.
    fn of(input: &Layout, dims: &[usize], fixed_last: bool) -> Order {
        let mut order: Dims = (0..input.ndim()).filter(|d| !dims.contains(d)).collect();
        let lead = order.len();
        order.extend_from_slice(dims);
        let end = order.len() - usize::from(fixed_last && !dims.is_empty());
        for part in [0..lead, lead..end] {
            order[part].sort_by_key(|&d| std::cmp::Reverse(input.strides[d]));
        }
        Order { dims: order, lead }
    }
    /// Memory without gaps in this order.
    fn layout(&self, shape: &[usize]) -> Layout {
        let mut layout = Layout::contiguous(shape);
        let mut step = 1;
        for &d in self.dims.iter().rev() {
            layout.strides[d] = step;
            // Saturating: an empty tensor may have sizes whose product overflows.
            step = usize::saturating_mul(step, shape[d].max(1));
        }
        layout
    }
    /// The same tensor with its dimensions in this order.
    fn view(&self, t: &Tensor) -> Tensor {
        t.with_layout(t.layout().permute(&self.dims))
    }
    /// `f` of the output in this order, or, where that is not row-major, of new memory that is then copied to it.
    fn write(&self, out: &Tensor, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
        let out = self.view(out);
        if out.is_contiguous() {
            return f(&out);
        }
        let fresh = Tensor::empty(out.shape(), out.dtype(), out.device())?;
        f(&fresh)?;
        out.copy_raw(&fresh)
    }
}

/// A result in memory of this order.
fn spec(order: &Order, shape: &[usize], dtype: DType, like: &Tensor) -> Result<Specs> {
    laid_out_numel(shape)?;
    Ok(smallvec![Spec { layout: order.layout(shape), dtype, device: like.device() }])
}

/// Requires float or double precision; integers are promoted before.
fn precise(d: DType) -> Result<()> {
    match d {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => Ok(()),
        d => Err(Error::runtime(format!("Unsupported dtype {}", d.scalar_type_name()))),
    }
}

fn dims_of(c: &Call) -> Result<Dims> {
    let t = c.tensor(0)?;
    precise(t.dtype())?;
    let dims = c.distinct_dims("dim")?;
    if t.ndim() == 0 && !dims.is_empty() {
        return Err(Error::index("Dimension specified as -1 but tensor has no dimensions"));
    }
    Ok(dims)
}

fn complex_input(c: &Call) -> Result<()> {
    let d = c.tensor(0)?.dtype();
    if d.is_complex() {
        Ok(())
    } else {
        Err(Error::runtime(format!("expects a complex input, got {}", d.scalar_type_name())))
    }
}

pub static C2C: Op = Op {
    sig: sig("_fft_c2c(Tensor self, Dim[] dim, int normalization, bool forward) -> Tensor"),
    doc: "The discrete Fourier transform of complex numbers, forward or backward.",
    body: kernel(
        |c| {
            let (t, dims) = (c.tensor(0)?, dims_of(c)?);
            complex_input(c)?;
            spec(&Order::of(t.layout(), &dims, false), t.shape(), t.dtype(), t)
        },
        |c, out| {
            let (t, dims) = (c.tensor(0)?, dims_of(c)?);
            let (order, scale) =
                (Order::of(t.layout(), &dims, false), factor(c.int("normalization")?, points(t, &dims)));
            let t = order.view(&unalias(t, &out[0])?);
            order.write(&out[0], |out| {
                out.copy_raw(&t)?;
                along(out, order.lead..t.ndim(), c.flag("forward"), scale)
            })
        },
        None,
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| C2C.call((c.g(), c.ints("dim"), c.int("normalization"), !c.flag("forward"))))]),
    samples: &[
        "c64[4], (0,), 0, True",
        "c128[2,3,5], (1, 2), 1, False",
        "c64[3,2], (0,), 2, True",
        "c64[3], (), 0, True",
    ],
    errors: &[
        ("f32[2], (0,), 0, True", "RuntimeError", "expects a complex input"),
        ("c64[2], (1,), 0, True", "IndexError", "Dimension out of range"),
    ],
    ..STEP
};

/// The gradient of `_fft_r2c`: the numbers that were left out have none.
fn real_gradient(c: &VjpCtx) -> Term {
    let (dims, mut g) = (c.ints("dim"), c.g());
    if let (Some(&last), true) = (dims.last(), c.flag("onesided")) {
        let n = c.shape(0)[from_front(last, c.ndim(0))];
        g = resized(g, last, n as i64);
    }
    REAL.call((C2C.call((g, dims, c.int("normalization"), false)),))
}

pub static R2C: Op = Op {
    sig: sig("_fft_r2c(Tensor self, Dim[] dim, int normalization, bool onesided) -> Tensor"),
    doc: "The discrete Fourier transform of real numbers; `onesided`, only the first half along the last of `dim`.",
    body: kernel(
        |c| {
            let (t, dims) = (c.tensor(0)?, dims_of(c)?);
            if t.dtype().is_complex() {
                return Err(Error::runtime(format!("expects a real input, got {}", t.dtype().scalar_type_name())));
            }
            let Some(&last) = dims.last() else { return Err(Error::runtime("must transform at least one axis")) };
            let mut shape: Dims = t.shape().into();
            if c.flag("onesided") {
                enough(shape[last] as i64)?;
                shape[last] = shape[last] / 2 + 1;
            }
            spec(&Order::of(t.layout(), &dims, true), &shape, t.dtype().to_complex(), t)
        },
        |c, out| {
            let (t, dims) = (c.tensor(0)?, dims_of(c)?);
            let (order, scale) =
                (Order::of(t.layout(), &dims, true), factor(c.int("normalization")?, points(t, &dims)));
            let (dense, last) = (order.view(&unalias(t, &out[0])?).dense_copy(t.dtype())?, t.ndim().saturating_sub(1));
            order.write(&out[0], |out| {
                if c.flag("onesided") {
                    fft::real_to_complex(dense.cpu_view()?, out.cpu_view()?, last, scale)?;
                    return along(out, order.lead..last, true, 1.0);
                }
                out.copy_raw(&dense)?;
                along(out, order.lead..t.ndim(), true, scale)
            })
        },
        None,
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A0, real_gradient)]),
    keeps: Some("self dim normalization onesided"),
    samples: &["f32[4], (0,), 0, True", "f64[2,3,5], (1, 2), 1, True", "f32[3,2], (0,), 2, False"],
    errors: &[
        ("c64[2], (0,), 0, True", "RuntimeError", "expects a real input"),
        ("f16[2], (0,), 0, True", "RuntimeError", "Unsupported dtype Half"),
    ],
    ..STEP
};

/// The gradient of `_fft_c2r`: numbers of the half that stand for two count twice.
fn half_gradient(c: &VjpCtx) -> Term {
    let (dims, n) = (c.ints("dim"), c.int("last_dim_size"));
    let g = R2C.call((c.g(), dims, c.int("normalization"), true));
    let Some(t) = g.get() else { return g };
    let last = from_front(*dims.last().expect("the call was checked"), t.ndim());
    let weights = match crate::rt::reserve::list((0..n / 2 + 1).map(|i| if i == 0 || 2 * i == n { 1.0 } else { 2.0 })) {
        Ok(weights) => weights,
        Err(e) => return e.into(),
    };
    let mut shape: Ints = smallvec![1; t.ndim()];
    shape[last] = weights.len() as i64;
    let weights = Term(Tensor::from_slice(&weights, &[weights.len()])).reshape(&shape);
    let weights = weights.to_dtype(t.dtype().to_real()).to_device(t.device());
    g * weights
}

/// The layout that the transform backward along all but the last of `dims` has.
fn halfway(t: &Tensor, rest: &[usize]) -> Layout {
    if rest.is_empty() { t.layout().clone() } else { Order::of(t.layout(), rest, false).layout(t.shape()) }
}

/// The dimensions of `_fft_c2r`, the last of them apart.
fn split_dims(dims: &[usize]) -> Result<(usize, &[usize])> {
    let (&last, rest) = dims.split_last().ok_or_else(|| Error::runtime("must transform at least one axis"))?;
    Ok((last, rest))
}

pub static C2R: Op = Op {
    sig: sig("_fft_c2r(Tensor self, Dim[] dim, int normalization, int last_dim_size) -> Tensor"),
    doc: "The backward transform of the first half of numbers whose transform is real, of `last_dim_size` along the last of `dim`.",
    body: kernel(
        |c| {
            let (t, dims, n) = (c.tensor(0)?, dims_of(c)?, c.int("last_dim_size")?);
            complex_input(c)?;
            let (last, rest) = split_dims(&dims)?;
            if n < 1 || t.size(last) as i64 != n / 2 + 1 {
                return Err(Error::runtime(format!("Invalid number of data points ({n}) specified")));
            }
            let mut shape: Dims = t.shape().into();
            shape[last] = n as usize;
            spec(&Order::of(&halfway(t, rest), &[last], true), &shape, t.dtype().to_real(), t)
        },
        |c, out| {
            let (t, dims) = (c.tensor(0)?, dims_of(c)?);
            let (last, rest) = split_dims(&dims)?;
            let scale = factor(c.int("normalization")?, points(&out[0], &dims));
            let half = Tensor::of_layout(Order::of(t.layout(), rest, false).layout(t.shape()), t.dtype(), t.device())?;
            half.copy_raw(t)?;
            let first = Order::of(t.layout(), rest, false);
            first.write(&half, |half| along(half, first.lead..t.ndim(), false, 1.0))?;
            let order = Order::of(&halfway(t, rest), &[last], true);
            let half = order.view(&half).dense_copy(t.dtype())?;
            order.write(&out[0], |out| fft::complex_to_real(half.cpu_view()?, out.cpu_view()?, t.ndim() - 1, scale))
        },
        None,
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, half_gradient)]),
    keeps: Some("dim normalization"),
    samples: &["c64[3], (0,), 2, 4", "c128[2,3,3], (1, 2), 1, 5", "c64[1,2], (0,), 0, 1"],
    errors: &[
        ("f32[2], (0,), 0, 2", "RuntimeError", "expects a complex input"),
        ("c64[2], (0,), 0, 9", "RuntimeError", "Invalid number of data points (9) specified"),
    ],
    ..STEP
};

/// A dimension of a checked call counted from the front.
fn from_front(dim: i64, ndim: usize) -> usize {
    (if dim < 0 { dim + ndim as i64 } else { dim }) as usize
}

/// `t` with `n` elements along a dimension: cut off, or with zeros behind.
fn resized(t: Term, dim: i64, n: i64) -> Term {
    let sizes = t.sizes();
    let at = from_front(dim, sizes.len());
    let Some(&size) = sizes.get(at) else { return t };
    if size == n {
        return t;
    }
    if size > n {
        return NARROW.call((t, dim, 0, n));
    }
    let mut pad: Ints = smallvec![0; 2 * (sizes.len() - at)];
    *pad.last_mut().expect("a dimension") = n - size;
    CONSTANT_PAD_ND.call((t, pad))
}

/// The input of a transform: integers become the default float dtype, and with `complex` real numbers complex ones.
fn promoted(t: &Tensor, complex: bool) -> Result<Term> {
    let d = t.dtype();
    let d = if d.is_complex() || d.is_float() { d } else { default_dtype() };
    precise(d)?;
    Ok(Term::from(t).to_dtype(if complex { d.to_complex() } else { d }))
}

/// Checks a number of points.
fn enough(n: i64) -> Result<i64> {
    if n >= 1 { Ok(n) } else { Err(Error::runtime(format!("Invalid number of data points ({n}) specified"))) }
}
