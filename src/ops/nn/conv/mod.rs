//! Convolution over one, two or three dimensions and its transpose, as a composition.
//!
//! The windows of the padded input are one strided view `[groups, channels, *kernel, batch, *places]`. Copied to
//! matrices (im2col), they meet the weights in one batched product, a matrix a group. The transpose is the convolution
//! of the input, zeros put between its elements, with the kernel turned around. A node keeps input and weight alone,
//! and its gradients are convolutions again, so gradients of any order follow.

use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::Format;
use crate::op::*;
use crate::ops::linalg::matmul::BMM;
use crate::ops::linalg::matmul_add::BADDBMM;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::ops::movement::flip_roll::FLIP;
use crate::ops::movement::pad::CONSTANT_PAD_ND;
use crate::ops::support::batch_nn;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::as_strided::AS_STRIDED;
use crate::ops::view::reshape::PERMUTE;
use crate::ops::view::slice::PLACE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub mod bytes;
pub mod fused;
mod gradient;
pub mod layers;

pub static OPS: &[&Op] = &[&CONVOLUTION];

/// How the kernel moves: one number for each of its dimensions.
#[derive(Clone)]
struct Steps {
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    output_padding: Ints,
    groups: i64,
    transposed: bool,
}

impl Steps {
    /// A list with a number for each dimension, or one for all.
    fn each(c: &impl Arguments, name: &str, dims: usize) -> Result<Ints> {
        let given = c.ints(name)?;
        match given.len() {
            1 => Ok(smallvec![given[0]; dims]),
            n if n == dims => Ok(given.into()),
            _ => Err(Error::runtime(format!(
                "expected {name} to be a single integer value or a list of {dims} values to match the convolution dimensions, but got {name}={}",
                Show(given)
            ))),
        }
    }
    fn of(c: &impl Arguments, dims: usize) -> Result<Steps> {
        let each = |name: &str| Steps::each(c, name, dims);
        Ok(Steps {
            stride: each("stride")?,
            padding: each("padding")?,
            dilation: each("dilation")?,
            output_padding: each("output_padding")?,
            groups: c.int("groups")?,
            transposed: c.flag("transposed"),
        })
    }
    fn check(&self) -> Result<()> {
        let problem = if self.padding.iter().any(|&p| p < 0) {
            "negative padding is not supported".to_string()
        } else if self.output_padding.iter().any(|&p| p < 0) {
            "negative output_padding is not supported".to_string()
        } else if self.stride.iter().any(|&s| s <= 0) {
            "non-positive stride is not supported".to_string()
        } else if self.dilation.iter().any(|&d| d <= 0) {
            format!("dilation should be greater than zero, but got {}", Show(&self.dilation))
        } else if self.groups <= 0 {
            "non-positive groups is not supported".to_string()
        } else {
            return Ok(());
        };
        Err(Error::runtime(problem))
    }
    /// How far the kernel reaches in dimension `i`, from its first element to its last.
    fn reach(&self, i: usize, kernel: &[i64]) -> i64 {
        (kernel[i] - 1).saturating_mul(self.dilation[i])
    }
    /// How many windows a convolution of an input with this shape has.
    fn places(&self, input: &[usize], kernel: &[i64]) -> Result<Ints> {
        let grown = |i: usize| (input[2 + i] as i64).saturating_add(self.padding[i].saturating_mul(2));
        let dims = kernel.len();
        let room: Ints = (0..dims).map(grown).collect();
        let reach: Ints = (0..dims).map(|i| self.reach(i, kernel)).collect();
        if (0..dims).any(|i| reach[i] >= room[i]) {
            let reach: Ints = reach.iter().map(|r| r.saturating_add(1)).collect();
            return Err(Error::runtime(format!(
                "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size",
                by(&room),
                by(&reach)
            )));
        }
        if input[2..].contains(&0) {
            return Err(Error::runtime(format!(
                "Only zero batch or zero channel inputs are supported, but got input shape: {}",
                Show(input)
            )));
        }
        Ok((0..dims).map(|i| (room[i] - reach[i] - 1) / self.stride[i] + 1).collect())
    }
    /// The sizes of the input with zeros between its elements, and those of the transpose.
    fn spread(&self, input: &[usize], kernel: &[i64]) -> Result<(Ints, Ints)> {
        let dims = kernel.len();
        let stuffed: Ints = (0..dims)
            .map(|i| {
                (input[2 + i] as i64 - 1).saturating_mul(self.stride[i]).saturating_add(1 + self.output_padding[i])
            })
            .collect();
        let whole = |i: usize| stuffed[i].saturating_add(self.reach(i, kernel));
        let places: Ints = (0..dims).map(|i| whole(i).saturating_sub(self.padding[i].saturating_mul(2))).collect();
        if input[2..].contains(&0) || places.iter().any(|&n| n < 1) {
            let from: Ints = input[2..].iter().map(|&n| n as i64).collect();
            return Err(Error::runtime(format!(
                "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small",
                by(&from),
                by(&places)
            )));
        }
        Ok((stuffed, places))
    }
    /// The same steps without padding.
    fn unpadded(&self) -> Steps {
        Steps { padding: smallvec![0; self.padding.len()], ..self.clone() }
    }
}

/// `2 x 3` of the sizes of places or kernels, as PyTorch's messages show them.
fn by(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")
}

/// Ranks, groups, channels and dtypes, before anything is computed.
fn check(x: &Tensor, w: &[usize], steps: &Steps) -> Result<()> {
    steps.check()?;
    let (groups, transposed) = (steps.groups, steps.transposed);
    let err = |text: String| Err(Error::runtime(text));
    let given = if transposed { format!("transposed={groups}") } else { format!("groups={groups}") };
    let (rank, shape) = (w.len(), Show(w));
    if x.ndim() != rank {
        let (n, of) = (x.ndim(), Show(x.shape()));
        return err(format!(
            "Expected {rank}-dimensional input for {rank}-dimensional weight {shape}, but got {n}-dimensional input of size {of} instead"
        ));
    }
    let first = w[0] as i64;
    if first < groups {
        return err(format!(
            "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {shape} instead"
        ));
    }
    if first % groups != 0 {
        return err(format!(
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {shape} instead"
        ));
    }
    let channels = if transposed { first } else { (w[1] as i64).saturating_mul(groups) };
    if x.size(1) as i64 != channels {
        return err(format!(
            "Given {given}, weight of size {shape}, expected input{} to have {channels} channels, but got {} channels instead",
            Show(x.shape()),
            x.size(1)
        ));
    }
    if x.dtype() == DType::Bool {
        return Err(no_kernel("convolution", DType::Bool));
    }
    if w[2..].contains(&0) {
        return err(format!("kernel size should be greater than zero, but got weight of size {shape}"));
    }
    Ok(())
}

/// The bias, and the dtypes of weight and bias.
fn check_bias(x: &Tensor, w: &Tensor, bias: Option<&Tensor>, steps: &Steps) -> Result<()> {
    let (first, second) = (w.size(0) as i64, w.size(1) as i64);
    let filters = if steps.transposed { second.saturating_mul(steps.groups) } else { first };
    let err = |text: String| Err(Error::runtime(text));
    if let Some(b) = bias.filter(|b| b.ndim() != 1 || b.size(0) as i64 != filters) {
        return err(format!(
            "Given weight of size {}, expected bias to be 1-dimensional with {filters} elements, but got bias of size {} instead",
            Show(w.shape()),
            Show(b.shape())
        ));
    }
    for (name, t) in [("bias", bias), ("weight", Some(w))] {
        if let Some(t) = t.filter(|t| t.dtype() != x.dtype()) {
            let (given, other) = (x.dtype().cpp_name(), t.dtype().cpp_name());
            return err(format!("Input type ({given}) and {name} type ({other}) should be the same"));
        }
    }
    Ok(())
}

/// The product of sizes, saturating: allocation then refuses what is too large.
fn volume(sizes: &[i64]) -> i64 {
    sizes.iter().fold(1, |n: i64, &d| n.saturating_mul(d))
}

/// The windows of a padded `x` as matrices: `[groups, channels of a group * kernel, batch * places]`.
fn columns(x: Term, kernel: &[i64], places: &[i64], steps: &Steps) -> Term {
    let Ok(t) = x.0 else { return x };
    let l = t.layout();
    let (batch, channels) = (l.shape[0] as i64, l.shape[1] as i64);
    let within = channels / steps.groups;
    let mut shape: Ints = smallvec![steps.groups, within];
    let mut strides: Ints = smallvec![within.saturating_mul(l.strides[1] as i64), l.strides[1] as i64];
    // Where there is one element, the step to the next, which may be beyond any number, is not taken.
    let mut dim = |n: i64, stride: usize, step: i64| {
        shape.push(n);
        strides.push(if n > 1 { (stride as i64).saturating_mul(step) } else { 0 });
    };
    kernel.iter().enumerate().for_each(|(i, &k)| dim(k, l.strides[2 + i], steps.dilation[i]));
    dim(batch, l.strides[0], 1);
    places.iter().enumerate().for_each(|(i, &p)| dim(p, l.strides[2 + i], steps.stride[i]));
    let rows = within.saturating_mul(volume(kernel));
    let cols = batch.saturating_mul(volume(places));
    AS_STRIDED.call((&t, shape, strides)).reshape(&[steps.groups, rows, cols])
}

/// `x` with so many zeros at both ends of each inner dimension; negative amounts crop.
fn padded(x: Term, amounts: &[i64]) -> Term {
    if amounts.iter().all(|&p| p == 0) {
        return x;
    }
    let pad: Ints = amounts.iter().rev().flat_map(|&p| [p, p]).collect();
    CONSTANT_PAD_ND.call((x, pad, 0))
}

/// The convolution proper. The format is that of PyTorch's result.
fn forward(x: Term, w: Term, bias: Option<&Tensor>, steps: &Steps, format: Format) -> Result<Tensor> {
    let (x, w) = (x.ok()?, w.ok()?);
    let (dims, shape) = (w.ndim() - 2, Term::from(&w).sizes());
    let (filters, kernel, groups) = (shape[0], &shape[2..], steps.groups);
    let places = steps.places(x.shape(), kernel)?;
    let inner = padded(Term::from(&x), &steps.padding).ok()?;
    let (batch, within) = (inner.size(0) as i64, filters / groups);
    let cols = columns(inner.into(), kernel, &places, steps).ok()?;
    let w = Term::from(w).reshape(&[groups, within, cols.size(1) as i64]);
    let y = match bias {
        Some(b) => BADDBMM.call((Term::from(b).reshape(&[groups, within, 1]), w, cols)),
        None => BMM.call((w, cols)),
    };
    let sizes = |lead: [i64; 2]| -> Ints { lead.into_iter().chain(places.iter().copied()).collect() };
    if batch == 1 && format == Format::Contiguous {
        return y.reshape(&sizes([1, filters])).ok();
    }
    let y = PERMUTE.call((y.reshape(&sizes([filters, batch])), exchanged(dims)));
    CONTIGUOUS.call((y, Value::Format(format))).ok()
}

/// The order of dimensions with the first two exchanged.
fn exchanged(dims: usize) -> Ints {
    [1, 0].into_iter().chain(2..2 + dims as i64).collect()
}

/// The transpose: each element of the input spreads a kernel, `stride` apart.
fn spread(x: &Tensor, w: &Tensor, bias: Option<&Tensor>, steps: &Steps, format: Format) -> Result<Tensor> {
    let (from, shape) = (Term::from(x).sizes(), Term::from(w).sizes());
    let (kernel, dims) = (&shape[2..], shape.len() - 2);
    let (stuffed, _) = steps.spread(x.shape(), kernel)?;
    let x = if stuffed[..] == from[2..] { Term::from(x) } else { stuff(x.into(), &stuffed, steps) };
    let pads: Ints = (0..dims).map(|i| steps.reach(i, kernel).saturating_sub(steps.padding[i])).collect();
    let (groups, to, within) = (steps.groups, shape[1], from[1] / steps.groups);
    let with = |lead: &[i64]| -> Ints { lead.iter().chain(kernel).copied().collect() };
    let w = Term::from(w).reshape(&with(&[groups, within, to])).transpose(1, 2);
    let inner: Ints = (2..2 + dims as i64).collect();
    let turned = FLIP.call((w.reshape(&with(&[groups * to, within])), inner));
    let plain = Steps { stride: smallvec![1; dims], transposed: false, ..steps.unpadded() };
    forward(padded(x, &pads), turned, bias, &plain, format)
}

/// The elements of `x`, `stride` apart, among zeros.
fn stuff(x: Term, inner: &[i64], steps: &Steps) -> Term {
    let shape: Ints = x.sizes()[..2].iter().chain(inner).copied().collect();
    let mut strides: Ints = smallvec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i].max(1));
    }
    for (i, &s) in steps.stride.iter().enumerate() {
        strides[2 + i] = strides[2 + i].saturating_mul(s);
    }
    PLACE.call((x, shape, strides, 0))
}

/// The motion of a call and the format of its result, after all checks.
fn motion(c: &Call) -> Result<(Steps, Format)> {
    let (x, w, bias) = (c.tensor(0)?, c.tensor("weight")?, c.opt_tensor("bias"));
    if !(3..=5).contains(&w.ndim()) {
        return Err(Error::runtime(format!(
            "weight should have three to five dimensions, of which up to three are the kernel's; got a weight of size {}",
            Show(w.shape())
        )));
    }
    let steps = Steps::of(c, w.ndim() - 2)?;
    check(x, w.shape(), &steps)?;
    check_bias(x, w, bias, &steps)?;
    let late = (0..steps.stride.len()).any(|i| steps.output_padding[i] >= steps.stride[i].max(steps.dilation[i]));
    if steps.transposed && late {
        return Err(Error::runtime(format!(
            "output padding must be smaller than either stride or dilation, but got output_padding: {} stride: {} dilation: {}",
            Show(&steps.output_padding),
            Show(&steps.stride),
            Show(&steps.dilation)
        )));
    }
    Ok((steps, format_of(x, w)))
}

/// The memory format of the result and of the input's gradient: channels last if either operand of floats has it.
fn format_of(x: &Tensor, w: &Tensor) -> Format {
    let formats = [x, w].map(|t| t.layout().channels_format()).into_iter();
    formats.filter(|_| x.dtype().is_float()).find(|&f| f != Format::Contiguous).unwrap_or(Format::Contiguous)
}

fn convolution(c: &Call) -> Result<Outputs> {
    let (steps, format) = motion(c)?;
    let (x, w, bias) = (c.tensor(0)?, c.tensor("weight")?, c.opt_tensor("bias"));
    Ok(smallvec![match steps.transposed {
        false => forward(x.into(), w.into(), bias, &steps, format)?,
        true => spread(x, w, bias, &steps, format)?,
    }])
}

pub static CONVOLUTION: Op = Op {
    sig: sig(
        "convolution(Tensor input, Tensor weight, Tensor? bias, int[1] stride, int[1] padding, int[1] dilation, bool transposed, int[1] output_padding, int groups) -> Tensor",
    ),
    doc: "Convolution, or with `transposed` its transpose, of [batch, channels, ..] over one to three dimensions, as many as the weight has beyond two. The lists hold one number for all of them, or one for each.",
    forms: F,
    body: decompose_or(convolution, &fused::CONVOLUTION_KERNEL, fused::fits),
    jvp: Jvp::Multilinear(&[2]),
    vjp: Vjp::Joint(Joint { args: &[0, 1, 2], saves: A0 | A1, formula: gradient::gradients }),
    keeps: Some(
        "bias_sym_sizes_opt=bias_sym_sizes dilation groups input output_padding padding stride transposed weight",
    ),
    samples: &[
        "f32[2,2,5], f32[3,2,3], f32[3], (2,), (1,), (1,), False, (0,), 1",
        "f32[2,4,4,5], f32[4,2,2,3], f32[4], (1, 2), (1, 0), (2, 1), False, (0, 0), 2",
        "f32[1,2,3,3,3], f32[2,2,2,2,2], None, (1, 1, 1), (0, 0, 0), (1, 1, 1), False, (0, 0, 0), 1",
        "f32[2,2,3,3], f32[2,3,2,3], f32[3], (2, 3), (1, 0), (1, 2), True, (1, 2), 1",
        "f32[2,4,3], f32[4,1,3], f32[2], (2,), (1,), (3,), True, (2,), 2",
        "i64[1,2,4], i64[1,2,2], i64[1], (1,), (1,), (1,), False, (0,), 1",
    ],
    errors: &[
        (
            "f32[1,2,4], f32[2,3,2], None, (1,), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "to have 3 channels, but got 2 channels instead",
        ),
        (
            "f32[2,4], f32[2,3,2], None, (1,), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "3-dimensional input for 3-dimensional weight",
        ),
        ("f32[2,4], f32[2,3], None, (1,), (0,), (1,), False, (0,), 1", "RuntimeError", "weight should have"),
        (
            "f32[1,2,4], f32[2,2,2], None, (1, 1), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "expected stride to be a single integer value or a list of 1 values",
        ),
        (
            "f32[1,2,4], f32[2,2,2], None, (1,), (-1,), (1,), False, (0,), 1",
            "RuntimeError",
            "negative padding is not supported",
        ),
        (
            "f32[1,2,4], f32[2,2,2], None, (0,), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "non-positive stride is not supported",
        ),
        (
            "f32[1,2,4], f32[2,2,2], None, (1,), (0,), (0,), False, (0,), 1",
            "RuntimeError",
            "dilation should be greater than zero",
        ),
        (
            "f32[1,2,4], f32[2,2,2], None, (1,), (0,), (1,), False, (0,), 0",
            "RuntimeError",
            "non-positive groups is not supported",
        ),
        (
            "f32[1,2,4], f32[2,2,2], None, (1,), (0,), (1,), False, (0,), 3",
            "RuntimeError",
            "expected weight to be at least 3 at dimension 0",
        ),
        (
            "f32[1,2,4], f32[3,2,2], None, (1,), (0,), (1,), False, (0,), 2",
            "RuntimeError",
            "expected weight to be divisible by 2",
        ),
        (
            "f32[1,2,4], f32[3,2,2], f32[2], (1,), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "expected bias to be 1-dimensional with 3 elements",
        ),
        (
            "f32[1,2,4], f32[3,2,5], None, (1,), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "Kernel size can't be greater than actual input size",
        ),
        (
            "f32[1,2,4], f32[3,2,2], None, (1,), (0,), (4611686018427387904,), False, (0,), 1",
            "RuntimeError",
            "Kernel size can't be greater than actual input size",
        ),
        ("f32[1,2,4], f32[2,3,2], None, (1,), (9,), (1,), True, (0,), 1", "RuntimeError", "Output size is too small"),
        (
            "f32[1,2,4], f32[2,3,2], None, (1,), (0,), (1,), True, (1,), 1",
            "RuntimeError",
            "output padding must be smaller than either stride or dilation",
        ),
        (
            "f32[1,2,4], f64[2,2,2], None, (1,), (0,), (1,), False, (0,), 1",
            "RuntimeError",
            "Input type (float) and weight type (double) should be the same",
        ),
    ],
    batch: Batching::Rule(batch_nn::convolution),
    ..OP
};
