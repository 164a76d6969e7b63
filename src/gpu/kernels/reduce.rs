//! Reductions over any dimensions, variances, and the positions of extremes.
//!
//! One machine folds `load(x)` with `combine` and ends with `finish`; a later pass reads what earlier ones found
//! (`shift`: the maximum for a log-sum-exp, the mean for a variance; `rest`: what that mean is off by). Many outputs:
//! an invocation each. Few: a workgroup each, or one for neighbouring ones that lie beside each other, and for long
//! reductions several, whose partial results are folded again.
//! The split depends on sizes and strides alone, so results do not depend on the device.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::map::copy;
use super::stage::stage_aliased;
use super::template::Compute;
use super::view::{Input, View, fits, halves, part, resized};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::driver::too_large;
use crate::kinds::Reduce;
use crate::layout::{Dims, contiguous_strides};
use std::borrow::Cow;

const TEMPLATE: &str = include_str!("../../../shaders/reduce.wgsl");
const THREAD: &str = include_str!("../../../shaders/reduce_thread.wgsl");
const GROUPED: &str = include_str!("../../../shaders/reduce_group.wgsl");
const COLUMNS: &str = include_str!("../../../shaders/reduce_columns.wgsl");
const ARG: &str = include_str!("../../../shaders/arg_reduce.wgsl");
const ARG_THREAD: &str = include_str!("../../../shaders/arg_reduce_thread.wgsl");
const ARG_GROUP: &str = include_str!("../../../shaders/arg_reduce_group.wgsl");

/// Elements that one workgroup folds; longer reductions are split. Elements of each of `ACROSS` neighbouring outputs.
const CHUNK: usize = 16384;
const COLUMN: usize = 1024;
const ACROSS: usize = 32;
/// Up to this length an output is an invocation's work whatever else there is.
const SHORT: usize = 64;
/// With this many outputs an invocation each fills the device; but those of rows longer than `ROW` would each read a
/// cache line of its own.
const MANY: usize = 16384;
const ROW: usize = 256;

/// What a fold does, as WGSL over `x` (an element), `shift` and `rest` (numbers per output), `a` and `b` (partial
/// results).
#[derive(Clone)]
pub(super) struct Fold {
    pub init: &'static str,
    pub load: Cow<'static, str>,
    pub combine: &'static str,
    pub finish: Cow<'static, str>,
    /// The result of folding nothing, where there is one.
    pub nothing: Option<f64>,
    /// The number behind `{{alpha}}`: an order, a divisor.
    pub alpha: f64,
}

impl Fold {
    const fn plain(init: &'static str, combine: &'static str, nothing: Option<f64>) -> Fold {
        let (load, finish) = (Cow::Borrowed("x"), Cow::Borrowed("a"));
        Fold { init, load, combine, finish, nothing, alpha: 0.0 }
    }
    fn sum(load: impl Into<Cow<'static, str>>, finish: impl Into<Cow<'static, str>>, nothing: f64) -> Fold {
        Fold { load: load.into(), finish: finish.into(), ..Fold::plain("0", "a + b", Some(nothing)) }
    }
    /// The second run over partial results: they are loaded as they are.
    fn again(&self) -> Fold {
        Fold { load: "x".into(), ..self.clone() }
    }
}

const MAX: Fold = Fold::plain("lowest_()", "max_(a, b)", None);
const MIN: Fold = Fold::plain("highest_()", "min_(a, b)", None);

/// Reduces `input` over `dims` into `out`, whose shape is the input's with the reduced dimensions of size one.
/// Sums, means and products are computed in the compute type of `out`, maxima and minima in the input's.
pub fn reduce(kind: Reduce, input: &View, dims: &[usize], out: &View) -> Result<()> {
    input.require_own()?;
    out.require_own()?;
    let (from, to) = (compute_of(input.dtype)?, compute_of(out.dtype)?);
    let truth = out.dtype == DType::Bool;
    let fold = match kind {
        Reduce::Any => Fold { load: "T(truth(x))".into(), ..Fold::plain("0", "max(a, b)", Some(0.0)) },
        Reduce::All => Fold { load: "T(truth(x))".into(), ..Fold::plain("1", "min(a, b)", Some(1.0)) },
        Reduce::Sum if truth => return reduce(Reduce::Any, input, dims, out),
        Reduce::Prod if truth => return reduce(Reduce::All, input, dims, out),
        Reduce::Sum => Fold::sum("x", "a", 0.0),
        Reduce::Mean => Fold::sum("x", "quotient(a, T({{total}}))", f64::NAN),
        Reduce::Prod => Fold::plain("1", "a * b", Some(1.0)),
        Reduce::Max => MAX,
        Reduce::Min => MIN,
        Reduce::Norm(p) => norm(p),
        Reduce::LogSumExp => return log_sum_exp(input, dims, out),
    };
    let compute = if matches!(kind, Reduce::Any | Reduce::All | Reduce::Max | Reduce::Min) { from } else { to };
    run(&fold, compute, input, &[], dims, out)
}

/// The fold of a vector norm of order `p`.
fn norm(p: f64) -> Fold {
    if p.is_infinite() {
        return Fold { load: "abs_(x)".into(), ..if p > 0.0 { Fold::plain("0", "max_(a, b)", None) } else { MIN } };
    }
    if p == 0.0 {
        return Fold::sum("T(truth(x))", "a", 0.0);
    }
    if p == 1.0 {
        return Fold::sum("abs_(x)", "a", 0.0);
    }
    if p == 2.0 {
        return Fold::sum("x * x", "sqrt_(a)", 0.0);
    }
    Fold { alpha: p, ..Fold::sum("pow_(abs_(x), {{alpha}})", "pow_(a, T(1) / {{alpha}})", 0.0) }
}

/// The unbiased (`correction` 1) or other variance over `dims`; `mean` receives the means if wanted. With
/// `root`, the standard deviation.
pub fn var(input: &View, dims: &[usize], correction: f64, root: bool, out: &View, mean: Option<&View>) -> Result<()> {
    input.require_own()?;
    let compute = compute_of(out.dtype)?;
    let count: usize = dims.iter().map(|&d| input.shape[d]).product();
    let divisor = (count as f64 - correction).max(0.0);
    let strides = contiguous_strides(out.shape);
    let centre = out.scratch(out.numel() * dtype_of(compute).size())?;
    let centre = View { buffer: &centre, dtype: dtype_of(compute), shape: out.shape, strides: &strides, offset: 0 };
    run(&Fold::sum("x", "quotient(a, T({{total}}))", f64::NAN), compute, input, &[], dims, &centre)?;
    // The mean is rounded: what it is off by is the mean of the distances from it.
    let off = out.scratch(out.numel() * dtype_of(compute).size())?;
    let off = View { buffer: &off, ..centre };
    let distances = |finish: &'static str| Fold::sum("where_(isfinite_(x - shift), x - shift, T(0))", finish, f64::NAN);
    run(&distances("quotient(a, T({{total}}))"), compute, input, &[centre], dims, &off)?;
    let finish = if root { "sqrt_(div_(a, {{alpha}}))" } else { "div_(a, {{alpha}})" };
    let square = "((x - shift) - rest) * ((x - shift) - rest)";
    let squares = Fold { alpha: divisor, ..Fold::sum(square, finish, f64::NAN) };
    run(&squares, compute, input, &[centre, off], dims, out)?;
    let Some(mean) = mean else { return Ok(()) };
    run(&distances("quotient(a, T({{total}})) + shift"), compute, input, &[centre], dims, mean)
}

fn log_sum_exp(input: &View, dims: &[usize], out: &View) -> Result<()> {
    let compute = compute_of(out.dtype)?;
    if input.numel() == 0 {
        return copy(&Input::Scalar(Scalar::Float(f64::NEG_INFINITY)), out);
    }
    let strides = contiguous_strides(out.shape);
    let top = out.scratch(out.numel() * dtype_of(compute).size())?;
    let top = View { buffer: &top, dtype: dtype_of(compute), shape: out.shape, strides: &strides, offset: 0 };
    run(&MAX, compute, input, &[], dims, &top)?;
    // An infinite maximum is not subtracted: inf - inf would be NaN.
    let fold = Fold::sum("exp_(x - finite(shift))", "ln_(a) + finite(shift)", f64::NEG_INFINITY);
    run(&fold, compute, input, &[top], dims, out)
}

/// Whether neighbouring outputs lie closer to each other than what each of them folds.
pub(super) fn beside(input: &View, dims: &[usize]) -> bool {
    let strides = |reduced| {
        let (shape, strides) = parts(input, dims, reduced);
        shape.into_iter().zip(strides).filter(|(n, _)| *n > 1).map(|(_, stride)| stride).collect::<Dims>()
    };
    let (kept, reduced) = (strides(false), strides(true));
    kept.last().is_some_and(|inner| reduced.iter().all(|stride| inner < stride))
}

/// Splits a shape's dimensions into kept and reduced ones.
fn parts(view: &View, dims: &[usize], reduced: bool) -> (Dims, Dims) {
    let pick = |list: &[usize]| (0..list.len()).filter(|d| dims.contains(d) == reduced).map(|d| list[d]).collect();
    (pick(view.shape), pick(view.strides))
}

fn run(fold: &Fold, compute: Compute, input: &View, shifts: &[View], dims: &[usize], out: &View) -> Result<()> {
    let total = dims.iter().map(|&d| input.shape[d]).product();
    fold_over(fold, compute, input, shifts, dims, out, total)
}

/// Folds what no binding reaches by halves of its longest dimension.
fn by_halves(job: &Job, out: &View) -> Result<()> {
    let (input, dims) = (job.input, job.dims);
    let reach = |d: &usize| input.strides[*d] * (input.shape[*d] - 1);
    let Some(d) = (0..input.shape.len()).max_by_key(reach).filter(|&d| input.shape[d] > 1) else {
        return Err(too_large());
    };
    if !dims.contains(&d) {
        for (start, n) in halves(input.shape[d]) {
            let (shape, kept) = (resized(input.shape, d, n), resized(out.shape, d, n));
            let shifts: Vec<View> = job.shifts.iter().map(|s| part(s, d, start, &kept)).collect();
            let (piece, to) = (part(input, d, start, &shape), part(out, d, start, &kept));
            fold_over(job.fold, job.compute, &piece, &shifts, dims, &to, job.total)?;
        }
        return Ok(());
    }
    let dtype = dtype_of(job.compute);
    let (one, both) = (Dims::from(out.shape), resized(out.shape, d, 2));
    let strides = contiguous_strides(&both);
    let buffer = out.scratch(both.iter().product::<usize>() * dtype.size())?;
    let partial = View { buffer: &buffer, dtype, shape: &both, strides: &strides, offset: 0 };
    let first = Fold { finish: "a".into(), ..job.fold.clone() };
    for (i, (start, n)) in halves(input.shape[d]).into_iter().enumerate() {
        let shape = resized(input.shape, d, n);
        let (piece, to) = (part(input, d, start, &shape), part(&partial, d, i, &one));
        fold_over(&first, job.compute, &piece, job.shifts, dims, &to, job.total)?;
    }
    fold_over(&job.fold.again(), job.compute, &partial, job.shifts, &[d], out, job.total)
}

fn fold_over(
    fold: &Fold,
    compute: Compute,
    input: &View,
    shifts: &[View],
    dims: &[usize],
    out: &View,
    total: usize,
) -> Result<()> {
    let (kept, _) = parts(input, dims, false);
    let (reduced, _) = parts(input, dims, true);
    let (outputs, count) = (kept.iter().product::<usize>(), reduced.iter().product::<usize>());
    if outputs == 0 {
        return Ok(());
    }
    if count == 0 {
        let Some(value) = fold.nothing else {
            return Err(Error::index("cannot reduce over a dimension of size zero: this reduction has no identity"));
        };
        return copy(&Input::Scalar(Scalar::Float(value)), out);
    }
    if !fits(&[input, out]) {
        return by_halves(&Job { fold, compute, input, shifts, dims, total }, out);
    }
    stage_aliased(&mut [*input], &[*out], &mut |views| {
        let input = &views[0];
        let job = Job { fold, compute, input, shifts, dims, total };
        let columns = beside(input, dims);
        let most = if columns { CHUNK } else { ROW };
        if count <= SHORT || (outputs >= MANY && count <= most) {
            return job.threads(out, outputs, count);
        }
        let columns = columns && outputs >= ACROSS;
        let splits = count.div_ceil(if columns { COLUMN } else { CHUNK });
        let run = |out: &View, fold: &Fold| {
            if columns {
                job.columns(out, outputs, count, splits, fold)
            } else {
                job.groups(out, outputs, count, splits, fold)
            }
        };
        if splits == 1 {
            return run(out, fold);
        }
        let shape = [outputs, splits];
        let buffer = out.scratch(outputs * splits * dtype_of(compute).size())?;
        let strides = contiguous_strides(&shape);
        let partial = View { buffer: &buffer, dtype: dtype_of(compute), shape: &shape, strides: &strides, offset: 0 };
        let first = Fold { finish: "a".into(), ..fold.clone() };
        run(&partial, &first)?;
        let again = fold.again();
        let job = Job { fold: &again, input: &partial, dims: &[1], ..job };
        if splits <= SHORT { job.threads(out, outputs, splits) } else { job.groups(out, outputs, splits, 1, &again) }
    })
}

#[derive(Clone, Copy)]
struct Job<'a> {
    fold: &'a Fold,
    compute: Compute,
    input: &'a View<'a>,
    shifts: &'a [View<'a>],
    dims: &'a [usize],
    /// Elements per output of the whole reduction: what a mean divides by.
    total: usize,
}

impl<'a> Job<'a> {
    fn kernel(&self, out: &View<'a>, outputs: usize, count: usize, fold: &Fold) -> Result<Kernel<'a>> {
        let (kept, kept_strides) = parts(self.input, self.dims, false);
        let (reduced, reduced_strides) = parts(self.input, self.dims, true);
        let mut kernel = Kernel::new("reduce", TEMPLATE, self.compute)
            .read("x", *self.input)
            .write("out", *out)
            .walk("kept", &kept, &kept_strides)
            .walk("reduced", &reduced, &reduced_strides)
            .walk("out", out.shape, out.strides)
            .number("outputs", outputs)?
            .number("count", count)?
            .number("total", self.total)?
            .text("init", fold.init)
            .text("load", fold.load.clone())
            .text("combine", fold.combine)
            .text("finish", fold.finish.clone());
        if fold.load.contains("alpha") || fold.finish.contains("alpha") {
            kernel = kernel.scalar("alpha", Scalar::Float(fold.alpha));
        }
        const ONE: &str = "let shift = read_shift({{shift}} + walk_shift(o));";
        const TWO: &str =
            "let shift = read_shift({{shift}} + walk_shift(o)); let rest = read_rest({{rest}} + walk_rest(o));";
        for (name, shift) in ["shift", "rest"].into_iter().zip(self.shifts) {
            kernel = kernel.read(name, *shift).walk(name, shift.shape, shift.strides);
        }
        if !self.shifts.is_empty() {
            kernel = kernel.text("let_shift", if self.shifts.len() == 1 { ONE } else { TWO });
        }
        Ok(kernel)
    }
    fn threads(&self, out: &View<'a>, outputs: usize, count: usize) -> Result<()> {
        let kernel = self.kernel(out, outputs, count, self.fold)?.part("thread", "body", THREAD);
        kernel.launch(outputs)
    }
    fn groups(&self, out: &View<'a>, outputs: usize, count: usize, splits: usize, fold: &Fold) -> Result<()> {
        self.kernel(out, outputs, count, fold)?
            .number("splits", splits)?
            .number("chunk", count.div_ceil(splits))?
            .part("group", "body", GROUPED)
            .launch_groups(outputs * splits)
    }
    /// `groups` for outputs beside each other.
    fn columns(&self, out: &View<'a>, outputs: usize, count: usize, splits: usize, fold: &Fold) -> Result<()> {
        self.kernel(out, outputs, count, fold)?
            .number("splits", splits)?
            .number("chunk", count.div_ceil(splits))?
            .part("columns", "body", COLUMNS)
            .launch_groups(outputs.div_ceil(ACROSS) * splits)
    }
}

/// The first position of the largest (or smallest) element along `dim`, or in the whole tensor where `dim` is
/// `None`; NaN counts as larger and smaller than everything. Outputs keep `dim` as one element; `values` may
/// receive the extremes.
pub fn arg_reduce(is_max: bool, input: &View, dim: Option<usize>, values: Option<&View>, indices: &View) -> Result<()> {
    input.require_own()?;
    let dims: Dims = dim.map_or_else(|| (0..input.shape.len()).collect(), |d| Dims::from_slice(&[d]));
    let (kept, kept_strides) = parts(input, &dims, false);
    let (reduced, reduced_strides) = parts(input, &dims, true);
    let (outputs, count) = (kept.iter().product::<usize>(), reduced.iter().product::<usize>());
    if outputs == 0 {
        return Ok(());
    }
    if count == 0 {
        return Err(Error::index("Expected reduction dim to be specified for input.numel() == 0."));
    }
    let most = if beside(input, &dims) { CHUNK } else { ROW };
    let few = count > SHORT && (outputs < 1024 || count > most);
    let (variant, body) = if few { ("group", ARG_GROUP) } else { ("thread", ARG_THREAD) };
    let mut kernel = Kernel::new("arg_reduce", ARG, compute_of(input.dtype)?)
        .read("x", *input)
        .write_index("indices", *indices)
        .walk("kept", &kept, &kept_strides)
        .walk("reduced", &reduced, &reduced_strides)
        .walk("indices", indices.shape, indices.strides)
        .number("outputs", outputs)?
        .number("count", count)?
        .text("better", if is_max { "less(b, a)" } else { "less(a, b)" })
        .part(variant, "body", body);
    if let Some(v) = values {
        kernel = kernel
            .write("values", *v)
            .walk("values", v.shape, v.strides)
            .text("store", "write_values({{values}} + walk_values(o), top);");
    }
    if few { kernel.iterations(count.div_ceil(256))?.launch_groups(outputs) } else { kernel.launch(outputs) }
}
