//! Batch and group normalisation of `[n, c, l]` in any strides, and their gradients: a kernel for the statistics and the
//! result, one for the gradient of the input, one for those of weight and bias.
//!
//! A statistic is a row, and what it covers are the columns: the batch and the elements of a channel, or the channels of a
//! group and their elements. As many invocations share a row as its length is worth. Few and long rows, which would leave most
//! of a device idle, are cut into pieces, a workgroup each: what these find is joined, and a last kernel writes the result.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::params::lanes_text;
use super::reduce::reduce;
use super::view::View;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::kinds::Reduce;

const FORWARD: &str = include_str!("../../../shaders/norm_channels.wgsl");
const GRADIENT: &str = include_str!("../../../shaders/norm_channels_grad.wgsl");
const SUMS: &str = include_str!("../../../shaders/norm_channels_sums.wgsl");
const PARTS: &str = include_str!("../../../shaders/norm_channels_parts.wgsl");
const JOIN: &str = include_str!("../../../shaders/norm_channels_join.wgsl");
const APPLY: &str = include_str!("../../../shaders/norm_channels_apply.wgsl");
/// Workgroups that fill a device, and the fewest elements of a piece.
const BUSY: usize = 1024;
const PIECE: usize = 2048;

/// What is normalised: `input` is `[n, c, l]`, `weight` and `bias` are dense `[c]`.
#[derive(Clone, Copy)]
pub struct Channels<'a> {
    pub input: View<'a>,
    pub weight: Option<View<'a>>,
    pub bias: Option<View<'a>>,
    /// Groups of channels of a sample; `None` for statistics of each channel over the batch.
    pub groups: Option<usize>,
    pub eps: f64,
}

/// What the gradients are computed from; the statistics are dense.
#[derive(Clone, Copy)]
pub struct ChannelGrad<'a> {
    pub grad: View<'a>,
    pub input: View<'a>,
    pub mean: View<'a>,
    pub rstd: View<'a>,
    pub weight: Option<View<'a>>,
    pub groups: Option<usize>,
    /// Whether the statistics were given, and do not depend on the input.
    pub given: bool,
}

/// Sizes of rows and columns: two dimensions each.
struct Split {
    rows: [usize; 2],
    cols: [usize; 2],
    groups: Option<usize>,
}

impl Split {
    fn new(input: &View, groups: Option<usize>) -> Split {
        let [n, c, l] = [input.shape[0], input.shape[1], input.shape[2]];
        match groups {
            None => Split { rows: [1, c], cols: [n, l], groups },
            Some(g) => Split { rows: [n, g], cols: [c / g, l], groups },
        }
    }
    fn count(&self) -> [usize; 2] {
        [self.rows.iter().product(), self.cols.iter().product()]
    }
    /// Walks `first` over the rows and `second` over the columns of an operand with these strides of `[n, c, l]`.
    fn walk<'a>(&self, kernel: Kernel<'a>, [first, second]: [&'static str; 2], [n, c, l]: [usize; 3]) -> Kernel<'a> {
        let (rows, cols) = match self.groups {
            None => ([0, c], [n, l]),
            Some(_) => ([n, self.cols[0] * c], [c, l]),
        };
        kernel.walk(first, &self.rows, &rows).walk(second, &self.cols, &cols)
    }
    /// Walks the elements of what is written, and the channels.
    fn goals<'a>(&self, kernel: Kernel<'a>, out: &View) -> Kernel<'a> {
        self.walk(self.walk(kernel, ["to", "goal"], strides(out)), ["channel", "channels"], [0, 1, 0])
    }
}

fn strides(v: &View) -> [usize; 3] {
    [v.strides[0], v.strides[1], v.strides[2]]
}

/// How many invocations share a row: a power of two that leaves each about eight elements.
fn lanes(cols: usize) -> usize {
    (cols / 8).next_power_of_two().min(256)
}

/// Into how many pieces each row is cut.
fn pieces([rows, cols]: [usize; 2]) -> usize {
    (BUSY / rows.max(1)).min(cols / PIECE).max(1)
}

/// A kernel of which a workgroup serves a piece of a row.
fn in_pieces<'a>(kernel: Kernel<'a>, [rows, cols]: [usize; 2], pieces: usize) -> Result<Kernel<'a>> {
    let chunk = cols.div_ceil(pieces);
    let kernel = kernel.number("rows", rows)?.number("cols", cols)?.number("pieces", pieces)?.number("chunk", chunk)?;
    kernel.iterations(chunk.div_ceil(256) * 3)
}

fn launch(kernel: Kernel, [rows, cols]: [usize; 2]) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let lanes = lanes(cols);
    let kernel = kernel.number("rows", rows)?.number("cols", cols)?.iterations(cols.div_ceil(lanes) * 3)?;
    kernel.text("lanes", lanes_text(lanes)).launch(rows * lanes)
}

/// `out = (input - mean) * rstd * weight + bias`; `mean`, `rstd` and `variance` receive the statistics.
pub fn normalise(o: &Channels, out: &View, mean: &View, rstd: &View, variance: &View) -> Result<()> {
    o.input.require_own()?;
    let split = Split::new(&o.input, o.groups);
    let pieces = pieces(split.count());
    if pieces > 1 {
        statistics(o, &split, pieces, mean, rstd, variance)?;
        let mut kernel = Kernel::new("norm_channels_apply", APPLY, compute_of(o.input.dtype)?)
            .read("x", o.input)
            .read("mean", *mean)
            .read("rstd", *rstd)
            .write("y", *out);
        kernel =
            o.scaled(split.walk(kernel, ["from", "step"], strides(&o.input))).text("result", "h{{scale}}{{shift}}");
        return apply(kernel, &split, pieces, out);
    }
    let kernel = Kernel::new("norm_channels", FORWARD, compute_of(o.input.dtype)?)
        .read("x", o.input)
        .write("y", *out)
        .write("mean", *mean)
        .write("rstd", *rstd)
        .write("variance", *variance)
        .scalar("eps", Scalar::Float(o.eps));
    let kernel = o.scaled(split.walk(kernel, ["from", "step"], strides(&o.input)));
    launch(split.goals(kernel, out), split.count())
}

/// The statistics of rows that are cut into pieces.
fn statistics(o: &Channels, split: &Split, pieces: usize, mean: &View, rstd: &View, variance: &View) -> Result<()> {
    let ([rows, cols], compute) = (split.count(), compute_of(o.input.dtype)?);
    let dtype = dtype_of(compute);
    let (shape, size) = ([rows * pieces], rows * pieces * dtype.size());
    let buffers = [o.input.scratch(size)?, o.input.scratch(size)?];
    let [means, squares] = [0, 1].map(|i| View { buffer: &buffers[i], dtype, shape: &shape, strides: &[1], offset: 0 });
    let kernel = Kernel::new("norm_channels_parts", PARTS, compute)
        .read("x", o.input)
        .write("means", means)
        .write("squares", squares);
    let kernel = in_pieces(split.walk(kernel, ["from", "step"], strides(&o.input)), [rows, cols], pieces)?;
    kernel.launch_groups(rows * pieces)?;
    let kernel = Kernel::new("norm_channels_join", JOIN, compute)
        .read("means", means)
        .read("squares", squares)
        .write("mean", *mean)
        .write("rstd", *rstd)
        .write("variance", *variance)
        .scalar("eps", Scalar::Float(o.eps));
    let lanes = pieces.next_power_of_two().min(256);
    in_pieces(kernel, [rows, cols], pieces)?.text("lanes", lanes_text(lanes)).launch(rows * lanes)
}

/// The last pass over rows that are cut into pieces.
fn apply(kernel: Kernel, split: &Split, pieces: usize, out: &View) -> Result<()> {
    let [rows, cols] = split.count();
    in_pieces(split.goals(kernel, out), [rows, cols], pieces)?.launch_groups(rows * pieces)
}

/// The gradients by input, weight and bias; `dw` and `db` are dense.
pub fn normalise_backward(from: &ChannelGrad, dx: &View, dw: &View, db: &View) -> Result<()> {
    from.input.require_own()?;
    by_parameters(from, dw, db)?;
    let split = Split::new(&from.input, from.groups);
    let pieces = pieces(split.count());
    // The sums over a channel are those that the gradients of its weight and bias are.
    let known = from.given || from.groups.is_none();
    if pieces > 1 && known && dw.dtype == dtype_of(compute_of(from.input.dtype)?) {
        let kernel = weighted(from.kernel("norm_channels_apply", APPLY, &split)?.write("y", *dx), from.weight);
        let mut kernel =
            kernel.text("result", "rstd * (read_g({{g}} + walk_gfrom(row) + walk_gstep(i)){{scale}}{{less}})");
        if !from.given {
            kernel = kernel.read("dw", *dw).read("db", *db).text("less", LESS).text("known", KNOWN);
            if from.weight.is_some() {
                kernel = kernel.text("of_channel", "read_weight({{weight}} + row) * ");
            }
        }
        return apply(kernel, &split, pieces, dx);
    }
    let mut kernel = weighted(from.kernel("norm_channels_grad", GRADIENT, &split)?.write("dx", *dx), from.weight);
    if !from.given {
        kernel = kernel.text("less", LESS);
    }
    launch(split.goals(kernel, dx), split.count())
}

/// What the statistics' own dependence on the input takes from a slope, and the two means in it where the sums are known.
const LESS: &str = " - middle - h * tilt";
const KNOWN: &str = "let middle = {{of_channel}}read_db({{db}} + row) / T({{cols}});
    let tilt = {{of_channel}}read_dw({{dw}} + row) / T({{cols}});";

fn by_parameters(from: &ChannelGrad, dw: &View, db: &View) -> Result<()> {
    let each = Split::new(&from.input, None);
    let ([rows, cols], groups) = (each.count(), from.groups.unwrap_or(1));
    let pieces = pieces([rows, cols]);
    let launch = |dw: &View, db: &View| {
        let kernel = from.kernel("norm_channels_sums", SUMS, &each)?.write("dw", *dw).write("db", *db);
        let kernel = match from.groups {
            None => kernel.walk("statistic", &[rows], &[1]).walk("statistics", &each.cols, &[0, 0]),
            Some(g) => kernel.walk("statistic", &[g, rows / groups], &[1, 0]).walk("statistics", &each.cols, &[g, 0]),
        };
        let lanes = if pieces > 1 { 256 } else { lanes(cols) };
        in_pieces(kernel, [rows, cols], pieces)?.text("lanes", lanes_text(lanes)).launch(rows * pieces * lanes)
    };
    if rows == 0 {
        return Ok(());
    }
    if pieces == 1 {
        return launch(dw, db);
    }
    let dtype = dtype_of(compute_of(from.input.dtype)?);
    let (shape, strides) = ([rows, pieces], [pieces, 1]);
    let size = rows * pieces * dtype.size();
    let buffers = [dw.scratch(size)?, dw.scratch(size)?];
    let [pw, pb] = [0, 1].map(|i| View { buffer: &buffers[i], dtype, shape: &shape, strides: &strides, offset: 0 });
    launch(&pw, &pb)?;
    for (sums, to) in [(pw, dw), (pb, db)] {
        reduce(Reduce::Sum, &sums, &[1], &View { shape: &[rows, 1], strides: &[1, 1], ..*to })?;
    }
    Ok(())
}

/// Reads the weight of each element's channel, if there is one.
fn weighted<'a>(kernel: Kernel<'a>, weight: Option<View<'a>>) -> Kernel<'a> {
    match weight {
        Some(w) => kernel.read("weight", w).text("scale", " * read_weight({{weight}} + channel)"),
        None => kernel,
    }
}

impl<'a> Channels<'a> {
    /// Weight and bias of a kernel that knows the channel of each element.
    fn scaled(&self, kernel: Kernel<'a>) -> Kernel<'a> {
        let kernel = weighted(kernel, self.weight);
        match self.bias {
            Some(b) => kernel.read("bias", b).text("shift", " + read_bias({{bias}} + channel)"),
            None => kernel,
        }
    }
}

impl<'a> ChannelGrad<'a> {
    fn kernel(&self, family: &'static str, template: &'static str, split: &Split) -> Result<Kernel<'a>> {
        let kernel = Kernel::new(family, template, compute_of(self.input.dtype)?)
            .read("g", self.grad)
            .read("x", self.input)
            .read("mean", self.mean)
            .read("rstd", self.rstd);
        let kernel = split.walk(kernel, ["from", "step"], strides(&self.input));
        Ok(split.walk(kernel, ["gfrom", "gstep"], strides(&self.grad)))
    }
}
