//! Batch and group normalisation of `[n, c, l]` in any strides, and their gradients: a kernel for the statistics and the
//! result, one for the gradient of the input, one for those of weight and bias.
//!
//! A statistic is a row, and what it covers are the columns: the batch and the elements of a channel, or the channels of a
//! group and their elements. As many invocations share a row as its length is worth.

use super::element::compute_of;
use super::kernel::Kernel;
use super::view::View;
use crate::dtype::Scalar;
use crate::error::Result;

const FORWARD: &str = include_str!("../../../shaders/norm_channels.wgsl");
const GRADIENT: &str = include_str!("../../../shaders/norm_channels_grad.wgsl");
const SUMS: &str = include_str!("../../../shaders/norm_channels_sums.wgsl");

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
}

fn strides(v: &View) -> [usize; 3] {
    [v.strides[0], v.strides[1], v.strides[2]]
}

/// How many invocations share a row: a power of two that leaves each about eight elements.
fn lanes(cols: usize) -> usize {
    (cols / 8).next_power_of_two().min(256)
}

fn launch(kernel: Kernel, [rows, cols]: [usize; 2]) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let lanes = lanes(cols);
    let kernel = kernel.number("rows", rows)?.number("cols", cols)?.iterations(cols.div_ceil(lanes) * 3)?;
    kernel.text("lanes", format!("{lanes}u")).launch(rows * lanes)
}

/// `out = (input - mean) * rstd * weight + bias`; `mean`, `rstd` and `variance` receive the statistics.
pub fn normalise(o: &Channels, out: &View, mean: &View, rstd: &View, variance: &View) -> Result<()> {
    o.input.require_own()?;
    let split = Split::new(&o.input, o.groups);
    let mut kernel = Kernel::new("norm_channels", FORWARD, compute_of(o.input.dtype)?)
        .read("x", o.input)
        .write("y", *out)
        .write("mean", *mean)
        .write("rstd", *rstd)
        .write("variance", *variance)
        .scalar("eps", Scalar::Float(o.eps));
    kernel = split.walk(kernel, ["from", "step"], strides(&o.input));
    kernel = split.walk(kernel, ["to", "goal"], strides(out));
    kernel = split.walk(kernel, ["channel", "channels"], [0, 1, 0]);
    if let Some(w) = o.weight {
        kernel = kernel.read("weight", w).text("scale", " * read_weight({{weight}} + channel)");
    }
    if let Some(b) = o.bias {
        kernel = kernel.read("bias", b).text("shift", " + read_bias({{bias}} + channel)");
    }
    launch(kernel, split.count())
}

/// The gradients by input, weight and bias; `dw` and `db` are dense.
pub fn normalise_backward(from: &ChannelGrad, dx: &View, dw: &View, db: &View) -> Result<()> {
    from.input.require_own()?;
    let split = Split::new(&from.input, from.groups);
    let kernel = from.kernel("norm_channels_grad", GRADIENT, &split)?.write("dx", *dx);
    let mut kernel = split.walk(kernel, ["to", "goal"], strides(dx));
    kernel = split.walk(kernel, ["channel", "channels"], [0, 1, 0]);
    if let Some(w) = from.weight {
        kernel = kernel.read("weight", w).text("scale", " * read_weight({{weight}} + channel)");
    }
    if !from.given {
        kernel = kernel.text("less", " - middle - h * tilt");
    }
    launch(kernel, split.count())?;
    by_parameters(from, dw, db)
}

fn by_parameters(from: &ChannelGrad, dw: &View, db: &View) -> Result<()> {
    let each = Split::new(&from.input, None);
    let (groups, channels) = (from.groups.unwrap_or(1), from.input.shape[1]);
    let kernel = from.kernel("norm_channels_sums", SUMS, &each)?.write("dw", *dw).write("db", *db);
    let kernel = match from.groups {
        None => kernel.walk("statistic", &[channels], &[1]).walk("statistics", &each.cols, &[0, 0]),
        Some(g) => kernel.walk("statistic", &[g, channels / groups], &[1, 0]).walk("statistics", &each.cols, &[g, 0]),
    };
    launch(kernel, each.count())
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
