//! Max and average pooling of `[n, c, d, h, w]` in any strides, and the gradient of the average: an invocation for each
//! element of the result, which visits its window or the windows that cover it.

use super::element::compute_of;
use super::kernel::Kernel;
use super::template::Compute;
use super::view::View;
use crate::error::{Error, Result};
use crate::layout::window::{Axis, Windows};

const MAX: &str = include_str!("../../../shaders/pool_max.wgsl");
const MEAN: &str = include_str!("../../../shaders/pool_mean.wgsl");
const MEAN_GRAD: &str = include_str!("../../../shaders/pool_mean_grad.wgsl");
const WINDOWS: &str = include_str!("../../../shaders/pool_windows.wgsl");

/// What sums are divided by: the elements of the window with the padding that it covers, those within the input, or a
/// number.
#[derive(Clone, Copy, PartialEq)]
pub enum PoolDivisor {
    Extent,
    Count,
    Given(i64),
}

/// Names of the parameters of each dimension.
const NAMES: [[&str; 7]; 3] = [
    ["d_size", "d_out", "d_kernel", "d_stride_of", "d_padding", "d_step", "d_stride"],
    ["h_size", "h_out", "h_kernel", "h_stride_of", "h_padding", "h_step", "h_stride"],
    ["w_size", "w_out", "w_kernel", "w_stride_of", "w_padding", "w_step", "w_stride"],
];

/// The functions of the windows along all dimensions, and the place of a linear index.
fn windows() -> String {
    let of_each: String = ["d", "h", "w"].iter().map(|name| WINDOWS.replace('@', name)).collect();
    let place = |name: &str, size: &str| {
        format!(
            "fn place_{name}(e: u32) -> vec4<u32> {{\n    let h = e / {{{{w_{size}}}}};\n    let d = h / {{{{h_{size}}}}};\n    \
             return vec4<u32>(d / {{{{d_{size}}}}}, d % {{{{d_{size}}}}}, h % {{{{h_{size}}}}}, e % {{{{w_{size}}}}});\n}}\n"
        )
    };
    format!("{of_each}{}{}", place("out", "out"), place("in", "size"))
}

/// Bounds of the elements of a window, and of the windows that cover an element, over all dimensions.
fn iterations(axes: &[Axis; 3]) -> [usize; 2] {
    let bounds = axes.map(|a| match a.windows {
        Windows::Steps { kernel, stride, .. } => [kernel.min(a.size), (kernel / stride + 1).min(a.out)],
        Windows::Adaptive => [a.size / a.out.max(1) + 2, a.out / a.size.max(1) + 2],
    });
    [0, 1].map(|i| bounds.iter().map(|b| b[i]).fold(1, usize::saturating_mul))
}

/// A kernel with the windows, that reads `x` and writes `y`, an element per invocation.
fn pooling<'a>(
    family: &'static str,
    template: &'static str,
    x: &View<'a>,
    axes: &[Axis; 3],
    y: &View<'a>,
) -> Result<Kernel<'a>> {
    y.require_own()?;
    let sizes = axes.iter().map(|a| [a.size, a.out]);
    // Adaptive windows multiply an index with a size.
    let products =
        axes.iter().all(|a| a.windows != Windows::Adaptive || (a.size + 1) * (a.out + 1) <= u32::MAX as usize);
    if !products {
        return Err(Error::runtime(format!(
            "pooling: sizes {:?} are too large for the gpu. Use device='cpu'.",
            sizes.collect::<Vec<_>>()
        )));
    }
    let units: usize = y.shape.iter().product();
    let mut kernel = Kernel::new(family, template, compute_of(y.dtype)?)
        .read("x", *x)
        .walk("plane", &x.shape[..2], &x.strides[..2])
        .write("y", *y)
        .walk("to", y.shape, y.strides)
        .number("units", units)?;
    for (i, (axis, names)) in axes.iter().zip(NAMES).enumerate() {
        let [kernel_size, stride, padding, step] = match axis.windows {
            Windows::Steps { kernel, stride, padding, dilation } => [kernel, stride, padding, dilation],
            Windows::Adaptive => [0, 1, 0, 1],
        };
        let numbers = [axis.size, axis.out, kernel_size, stride, padding, step, x.strides[2 + i]];
        for (name, number) in names.into_iter().zip(numbers) {
            kernel = kernel.number(name, number)?;
        }
    }
    Ok(kernel)
}

/// The maxima of windows, and their places within `[d, h, w]` into `indices` (int64).
pub fn max_pool(x: &View, axes: &[Axis; 3], y: &View, indices: Option<View>) -> Result<()> {
    let units: usize = y.shape.iter().product();
    if units == 0 {
        return Ok(());
    }
    let kernel = pooling("pool_max", MAX, x, axes, y)?;
    let lowest = match compute_of(y.dtype)? {
        Compute::F32 | Compute::F64 => "-inf_()",
        _ => "T(0)",
    };
    let mut kernel = kernel.text("lowest", lowest);
    let variant = if indices.is_some() { "with places" } else { "alone" };
    if let Some(places) = indices {
        let keep = "write_index({{index}} + to, i32(place));";
        kernel = kernel.write_index("index", places).text("keep", keep);
    }
    kernel.iterations(iterations(axes)[0])?.made(variant, "windows", &windows).launch(units)
}

fn divisor(divisor: PoolDivisor) -> (&'static str, i64) {
    match divisor {
        PoolDivisor::Extent => ("T(wd.z) * T(wh.z) * T(ww.z)", 1),
        PoolDivisor::Count => ("T(wd.y) * T(wh.y) * T(ww.y)", 1),
        PoolDivisor::Given(n) => ("{{given}}", n),
    }
}

fn averages<'a>(kernel: Kernel<'a>, by: PoolDivisor, units: usize) -> Result<()> {
    let (text, given) = divisor(by);
    let kernel = kernel.text("divisor", text).scalar("given", crate::dtype::Scalar::Int(given));
    kernel.made("", "windows", &windows).launch(units)
}

/// The means of windows.
pub fn mean_pool(x: &View, axes: &[Axis; 3], by: PoolDivisor, y: &View) -> Result<()> {
    let units: usize = y.shape.iter().product();
    if units == 0 {
        return Ok(());
    }
    averages(pooling("pool_mean", MEAN, x, axes, y)?.iterations(iterations(axes)[0])?, by, units)
}

/// The gradient of `mean_pool` for `grad`.
pub fn mean_pool_backward(grad: &View, axes: &[Axis; 3], by: PoolDivisor, dx: &View) -> Result<()> {
    let units: usize = dx.shape.iter().product();
    if units == 0 {
        return Ok(());
    }
    averages(pooling("pool_mean_grad", MEAN_GRAD, grad, axes, dx)?.iterations(iterations(axes)[1])?, by, units)
}
