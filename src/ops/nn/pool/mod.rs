//! Pooling over one, two or three dimensions: the largest or the mean of each window.
//!
//! Kernels take `[n, c, d, h, w]` and a window for each of the last three dimensions (`layout/window.rs`); pooling of fewer
//! dimensions has leading ones of size one. One-dimensional ops are views around the two-dimensional ones, as in PyTorch.
//! Gradients are ops of their own, whose gradients are poolings again, so gradients of any order follow.

use crate::error::{Error, Result, Show};
use crate::layout::window::{Axis, LIMIT, Windows};
use crate::layout::{Dims, Format, Layout};
use crate::op::*;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub mod adaptive;
pub mod fractional;
pub mod max;
pub mod mean;
pub mod unpool;

/// How windows move over `D` dimensions, before the sizes are known.
struct Steps<const D: usize> {
    kernel: [i64; D],
    stride: [i64; D],
    padding: [i64; D],
    dilation: [i64; D],
    ceil_mode: bool,
}

/// The names of the last dimensions in PyTorch's messages.
fn letters<const D: usize>() -> [&'static str; D] {
    std::array::from_fn(|i| ["T", "H", "W"][3 - D + i])
}

/// One number for each dimension, or one for all of them.
fn each<const D: usize>(list: &[i64], what: &str) -> Result<[i64; D]> {
    let all: [i64; D] = match list {
        [one] => [*one; D],
        _ => list.try_into().map_err(|_| {
            let count = ["one int", "two ints", "three ints"][D - 1];
            Error::runtime(format!("{what} be a single int, or a tuple of {count}"))
        })?,
    };
    if all.iter().any(|&n| n.unsigned_abs() as usize > LIMIT) {
        return Err(Error::runtime("integer out of range"));
    }
    Ok(all)
}

impl<const D: usize> Steps<D> {
    /// From the arguments `kernel_size`, `stride` and `padding`.
    fn of(c: &impl Arguments, dilation: &[i64], ceil_mode: bool) -> Result<Steps<D>> {
        let kernel = each(c.ints("kernel_size")?, "kernel_size must either")?;
        let stride = match c.opt_ints("stride") {
            None | Some([]) => kernel,
            Some(list) => each(list, "stride must either be omitted, or")?,
        };
        let padding = each(c.ints("padding")?, "padding must either")?;
        Ok(Steps { kernel, stride, padding, dilation: each(dilation, "dilation must either")?, ceil_mode })
    }

    /// The windows over the last dimensions of an input of these sizes. Errors: RuntimeError, in PyTorch's words.
    fn axes(&self, shape: &[usize]) -> Result<[Axis; 3]> {
        let inner: [usize; D] = std::array::from_fn(|i| shape[shape.len() - D + i]);
        let mut out = [0; D];
        for i in 0..D {
            out[i] = self.places(i, inner[i])?;
        }
        let letters = letters::<D>();
        let show = |name: &str, list: &[i64; D]| -> String {
            letters.iter().zip(list).map(|(l, n)| format!("{name}{l}: {n}")).collect::<Vec<_>>().join(" ")
        };
        for (what, name, list) in [
            ("kernel size", "k", &self.kernel),
            ("stride", "d", &self.stride),
            ("dilation", "dilation", &self.dilation),
        ] {
            if list.iter().any(|&n| n <= 0) {
                return Err(Error::runtime(format!(
                    "{what} should be greater than zero, but got {}",
                    show(name, list)
                )));
            }
        }
        if let Some(i) = (0..D).find(|&i| self.padding[i] > self.kernel[i] / 2) {
            return Err(Error::runtime(format!(
                "pad should be smaller than or equal to half of kernel size, but got pad = {}, kernel_size = {}",
                self.padding[i], self.kernel[i]
            )));
        }
        if out.iter().any(|&n| n < 1) {
            let by = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
            let channels = shape[shape.len() - D - 1] as i64;
            let before: Ints = [channels].into_iter().chain(inner.iter().map(|&n| n as i64)).collect();
            let after: Ints = [channels].into_iter().chain(out).collect();
            return Err(Error::runtime(format!(
                "Given input size: ({}). Calculated output size: ({}). Output size is too small",
                by(&before),
                by(&after)
            )));
        }
        let mut axes = [Axis::whole(); 3];
        for i in 0..D {
            let [kernel, stride, padding, dilation] =
                [self.kernel[i], self.stride[i], self.padding[i], self.dilation[i]].map(|n| n as usize);
            let windows = Windows::Steps { kernel, stride, padding, dilation };
            axes[3 - D + i] = Axis { size: inner[i], out: out[i] as usize, windows };
        }
        Ok(axes)
    }

    /// How many windows there are along dimension `i`, of `n` elements.
    fn places(&self, i: usize, n: usize) -> Result<i64> {
        let [kernel, stride, pad, dilation] = [self.kernel[i], self.stride[i], self.padding[i], self.dilation[i]];
        if stride == 0 {
            return Err(Error::runtime("stride should not be zero"));
        }
        if pad < 0 {
            return Err(Error::runtime(format!("pad must be non-negative, but got pad: {pad}")));
        }
        // None of the numbers exceeds `LIMIT`, so that no product overflows.
        let reach = (kernel - 1) * dilation + 1;
        if pad > reach / 2 {
            return Err(Error::runtime(format!(
                "pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={kernel} and dilation={dilation}"
            )));
        }
        let n = n as i64;
        let more = if self.ceil_mode { stride - 1 } else { 0 };
        let out = (n + 2 * pad - reach + more).div_euclid(stride) + 1;
        // The last window starts inside the input or the padding before it.
        Ok(if self.ceil_mode && (out - 1) * stride >= n + pad { out - 1 } else { out })
    }
}

/// Refuses another rank than that of `D` dimensions with channels and perhaps a batch, and dimensions without elements.
fn check_input<const D: usize>(x: &Tensor) -> Result<()> {
    let (n, shape) = (x.ndim(), x.shape());
    if !(D + 1..=D + 2).contains(&n) {
        return Err(Error::runtime(format!(
            "non-empty {}D or {}D (batch mode) tensor expected for input, but got: {}",
            D + 1,
            D + 2,
            Show(shape)
        )));
    }
    if shape[n - D - 1..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got:{}",
            D + 1,
            D + 2,
            Show(shape)
        )));
    }
    Ok(())
}

/// The sizes of the result: those of the input, with the last ones pooled.
fn pooled_shape<const D: usize>(x: &[usize], axes: &[Axis; 3]) -> Dims {
    x[..x.len() - D].iter().copied().chain(axes[3 - D..].iter().map(|a| a.out)).collect()
}

/// The memory format over the last `dims` dimensions. Of images without a batch only volumes have one, as in PyTorch.
fn format_of(x: &Tensor, dims: usize) -> Format {
    match (dims, x.ndim() - dims) {
        (3, 1) => batched(x.layout()).channels_format(),
        (_, 2) => x.layout().channels_format(),
        _ => Format::Contiguous,
    }
}

/// The format of a mean, or of adaptive maxima: in three dimensions PyTorch's are row-major.
fn planar_format(x: &Tensor, dims: usize) -> Format {
    if dims == 2 { format_of(x, dims) } else { Format::Contiguous }
}

/// A batch of one.
fn batched(layout: &Layout) -> Layout {
    let (one, all) = ([1].into_iter(), [layout.shape.iter().product()].into_iter());
    Layout {
        shape: one.chain(layout.shape.iter().copied()).collect(),
        strides: all.chain(layout.strides.iter().copied()).collect(),
        offset: layout.offset,
    }
}

/// A result of these sizes in a format, on the device of the input.
fn result(x: &Tensor, shape: &[usize], dtype: crate::dtype::DType, format: Format) -> Result<Spec> {
    crate::layout::checked_numel(shape)?;
    let plain = Layout::contiguous(shape);
    let layout = if format == Format::ChannelsLast3d && shape.len() == 4 {
        let whole = batched(&plain).formed(format)?;
        Layout { strides: whole.strides[1..].into(), ..plain }
    } else {
        plain.formed(format)?
    };
    Ok(Spec { layout, dtype, device: x.device() })
}

/// A tensor, made dense in a format, viewed as `[n, c, d, h, w]`; a result that lies in it, over its own memory.
fn in_format(t: &Tensor, dims: usize, format: Format) -> Result<Tensor> {
    let t = if t.ndim() == dims + 1 { t.with_layout(batched(t.layout())) } else { t.clone() };
    let t = CONTIGUOUS.call((&t, Value::Format(format))).ok()?;
    let (shape, strides) = (t.shape(), t.strides());
    // Strides of dimensions of size one do not matter.
    let ones = || std::iter::repeat_n(1, 3 - dims);
    let whole =
        |list: &[usize]| -> Dims { list[..2].iter().copied().chain(ones()).chain(list[2..].iter().copied()).collect() };
    let layout = Layout { shape: whole(shape), strides: whole(strides), offset: t.layout().offset };
    Ok(t.with_layout(layout))
}

/// Runs a pooling with one dimension more: the op of `D + 1` dimensions on `[.., 1, l]`, and that dimension dropped.
fn lifted(c: &Call, name: &str, run: impl FnOnce(Term) -> Result<Outputs>) -> Result<Outputs> {
    let x = c.tensor(0)?;
    if !(2..=3).contains(&x.ndim()) {
        return Err(Error::runtime(format!(
            "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
            x.ndim()
        )));
    }
    let found = run(Term::from(x).unsqueeze(-2))?;
    found.iter().map(|t| crate::ops::view::reshape::SQUEEZE_DIM.call((t, -2)).ok()).collect()
}

/// One number of a one-dimensional op, behind a one for the dimension that was put before it.
fn with_one(c: &Call, one: i64, name: &str) -> Result<Ints> {
    match c.opt_ints(name) {
        None | Some([]) if name == "stride" => Ok(Ints::new()),
        Some([n]) => Ok(smallvec![one, *n]),
        other => Err(Error::runtime(format!(
            "argument '{name}' should contain one int (got {})",
            other.map_or(0, <[i64]>::len)
        ))),
    }
}
