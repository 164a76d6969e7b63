//! Sampling at the points of a grid, and its gradients by input and grid.
//!
//! One invocation makes one element of the result, or the gradient of one point. The gradient of the input is added up by one
//! invocation a channel where there are many channels or few points, in order; otherwise by atomic updates, in no fixed order.

use super::element::compute_of;
use super::kernel::Kernel;
use super::template::Compute;
use super::view::{View, fits};
use crate::error::Result;
use crate::gpu::driver::too_large;
use crate::kinds::{Outside, Sampling};

const TEMPLATE: &str = include_str!("../../../shaders/grid_sample.wgsl");

/// A channel with up to this many points is summed in order even if there are few channels.
const IN_ORDER: usize = 2048;
/// This many channels keep a device busy.
const CHANNELS: usize = 8192;

const FORWARD: &str = "let channel = unit / {{points}};
    let point = channel / {{channels}} * {{points}} + unit % {{points}};
    let base = {{x}} + channel * {{volume}};
    var sum = T(0);
    for (var i = 0u; i < count_of(0u); i++) {
        let a = near(point, 0u, i);
        for (var j = 0u; j < COUNT; j++) {
            let b = near(point, 1u, j);
            for (var k = 0u; k < COUNT; k++) {
                let c = near(point, 2u, k);
                let at = place(a, b, c);
                var v = T(0);
                if (at >= 0) {
                    v = read_x(base + u32(at));
                } else if (DIMS == 3u) {
                    continue;
                }
                sum += a.weight * b.weight * c.weight * v;
            }
        }
    }
    write_out({{out}} + unit, sum);";

const BY_GRID: &str = "var sum = array<T, 3>(T(0), T(0), T(0));
    let first = unit / {{points}} * {{channels}};
    for (var i = 0u; i < count_of(0u); i++) {
        let a = near(unit, 0u, i);
        for (var j = 0u; j < COUNT; j++) {
            let b = near(unit, 1u, j);
            for (var k = 0u; k < COUNT; k++) {
                let c = near(unit, 2u, k);
                let at = place(a, b, c);
                if (at >= 0) {
                    var v = T(0);
                    for (var n = 0u; n < {{channels}}; n++) {
                        let g = read_g({{g}} + (first + n) * {{points}} + unit % {{points}});
                        v += g * read_x({{x}} + (first + n) * {{volume}} + u32(at));
                    }
                    sum[0] += a.slope * b.weight * c.weight * v;
                    sum[1] += a.weight * b.slope * c.weight * v;
                    sum[2] += a.weight * b.weight * c.slope * v;
                }
            }
        }
    }
    for (var d = 0u; d < DIMS; d++) {
        write_out({{out}} + unit * DIMS + d, sum[2u - d]);
    }";

/// Adds the gradient of one element of the result to the neighbours of its point.
const ADDED: &str = "for (var i = 0u; i < count_of(0u); i++) {
        let a = near(point, 0u, i);
        for (var j = 0u; j < COUNT; j++) {
            let b = near(point, 1u, j);
            for (var k = 0u; k < COUNT; k++) {
                let c = near(point, 2u, k);
                let at = place(a, b, c);
                if (at >= 0) {
                    let to = {{out}} + channel * {{volume}} + u32(at);
                    let v = a.weight * b.weight * c.weight * g;
                    {{store}}
                }
            }
        }
    }";

const IN_CHANNELS: &str = "let channel = unit;
    for (var n = 0u; n < {{points}}; n++) {
        let point = channel / {{channels}} * {{points}} + n;
        let g = read_g({{g}} + channel * {{points}} + n);
        {{added}}
    }";

const BY_POINTS: &str = "let channel = unit / {{points}};
    let point = channel / {{channels}} * {{points}} + unit % {{points}};
    let g = read_g({{g}} + unit);
    {{added}}";

/// What one call has: dense `[batch, channels, sizes..]` elements, a dense grid `[batch, points, dimensions]`, and how they meet.
#[derive(Clone, Copy)]
pub struct Sampled<'a> {
    pub grid: View<'a>,
    pub shape: &'a [usize],
    pub sampling: Sampling,
    pub outside: Outside,
    pub align_corners: bool,
}

impl<'a> Sampled<'a> {
    fn points(&self) -> usize {
        self.grid.shape[1]
    }
    fn channels(&self) -> usize {
        self.shape[0] * self.shape[1]
    }
    /// The iterations of the loops over neighbours.
    fn iterations(&self) -> usize {
        (self.sampling.count() + 1).pow(self.shape.len() as u32 - 2)
    }
    fn kernel(
        &self,
        variant: &'static str,
        body: String,
        with: &[(&'static str, View<'a>)],
        out: View<'a>,
    ) -> Result<Kernel<'a>> {
        let views: Vec<&View> = with.iter().map(|(_, v)| v).chain([&self.grid, &out]).collect();
        if !fits(&views) {
            return Err(too_large());
        }
        let mut kernel = Kernel::new("grid_sample", TEMPLATE, compute_of(out.dtype)?).read("grid", self.grid);
        for (name, view) in with {
            kernel = kernel.read(name, *view);
        }
        let sizes = &self.shape[2..];
        let depth = if sizes.len() == 3 { sizes[0] } else { 1 };
        let [height, width] = [sizes[sizes.len() - 2], sizes[sizes.len() - 1]];
        kernel
            .part(variant, "body", body)
            .text("sampling", (self.sampling as u32).to_string())
            .text("outside", (self.outside as u32).to_string())
            .text("align", self.align_corners.to_string())
            .text("dims", sizes.len().to_string())
            .text("count", self.sampling.count().to_string())
            .number("n0", depth)?
            .number("n1", height)?
            .number("n2", width)?
            .number("volume", depth * height * width)?
            .number("channels", self.shape[1])?
            .number("points", self.points())
    }
}

/// `out[n, c, p]` is `x[n, c]` at the point `grid[n, p]`.
pub fn grid_sample(x: &View, from: &Sampled, out: &View) -> Result<()> {
    out.require_own()?;
    let units = from.channels() * from.points();
    let kernel = from.kernel("forward", FORWARD.into(), &[("x", *x)], *out)?.write("out", *out);
    kernel.iterations(from.iterations())?.number("units", units)?.launch(units)
}

/// The gradient by the grid.
pub fn grid_sample_by_grid(g: &View, x: &View, from: &Sampled, out: &View) -> Result<()> {
    out.require_own()?;
    let units = from.shape[0] * from.points();
    let kernel = from.kernel("by grid", BY_GRID.into(), &[("g", *g), ("x", *x)], *out)?.write("out", *out);
    kernel.iterations(from.iterations() * (from.shape[1] + 1))?.number("units", units)?.launch(units)
}

/// The gradient by the input, added to `out`.
pub fn grid_sample_by_input(g: &View, from: &Sampled, out: &View) -> Result<()> {
    out.require_own()?;
    let (channels, points) = (from.channels(), from.points());
    let in_order = compute_of(out.dtype)? == Compute::F64 || points <= IN_ORDER || channels >= CHANNELS;
    if in_order {
        let added = ADDED.replace("{{store}}", "write_out(to, read_out(to) + v);");
        let body = IN_CHANNELS.replace("{{added}}", &added);
        let kernel = from.kernel("by input in order", body, &[("g", *g)], *out)?.write("out", *out);
        return kernel.iterations(from.iterations() * points)?.number("units", channels)?.launch(channels);
    }
    let body = BY_POINTS.replace("{{added}}", &ADDED.replace("{{store}}", "update_out(to, v);"));
    let kernel = from.kernel("by input", body, &[("g", *g)], *out)?.update("out", *out);
    kernel.iterations(from.iterations())?.number("units", channels * points)?.launch(channels * points)
}
