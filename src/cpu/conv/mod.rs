//! Convolutions of real floats: blocks of outputs are products of packed weights with packed windows of the input.
//!
//! Half types are computed in f32. An element is summed in an order that depends on the sizes alone.

mod batch_last;
mod col2im;
mod geometry;
mod pointwise;
mod progress;
mod scratch;
mod slide;
#[cfg(test)]
mod tests;
mod weights;

use self::batch_last::BatchLast;
use self::col2im::Col2im;
use self::geometry::{Axis, Steps};
use self::progress::Progress;
use self::scratch::Image;
use self::slide::{FEW, Slide, Weights};
use self::weights::WeightGradient;
use super::epilogue::Epilogue;
use super::gemm::tiles::Vectors;
use super::lines::for_lines;
use super::scratch::Temp;
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::contiguous_strides;

pub use crate::layout::window::Motion;

/// Bytes of a result from which an epilogue runs image by image.
const IN_CACHE: usize = 1 << 20;

/// The dimensions of a call, of three where a missing one has one element.
struct Sizes {
    batch: usize,
    groups: usize,
    /// Channels of a group: of what the window slides over, and of what comes out.
    from: usize,
    to: usize,
    /// Of the convolution, whichever direction is computed: its inputs, its outputs, its kernel.
    large: [usize; 3],
    small: [usize; 3],
    steps: [Steps; 3],
}

impl Sizes {
    /// Whether every output meets one input, that of its own place.
    fn is_pointwise(&self) -> bool {
        self.steps.iter().all(|s| s.kernel == 1 && s.stride == 1 && s.padding == 0)
    }
    /// Whether there is one place, whose window is the whole image.
    fn is_covering(&self) -> bool {
        let whole =
            |(s, &large): (&Steps, &usize)| s.kernel == large && s.padding == 0 && (s.dilation == 1 || s.kernel == 1);
        self.small == [1; 3] && self.steps.iter().zip(&self.large).all(whole)
    }
}

/// The last dimensions as three.
fn three<T: Copy>(list: &[T], missing: T) -> [T; 3] {
    [0, 1, 2].map(|i| if i + list.len() < 3 { missing } else { list[i + list.len() - 3] })
}

/// The sizes if input, weight, output and motion fit together.
fn sizes(x: &View, w: &View, out: &View, motion: &Motion) -> Result<Sizes> {
    let dims = x.ndim().wrapping_sub(2);
    let lists = [motion.stride, motion.padding, motion.dilation];
    ensure((1..=3).contains(&dims) && lists.iter().all(|l| l.len() == dims), "convolution")?;
    let positive = [motion.stride, motion.dilation].iter().all(|l| l.iter().all(|&n| n > 0));
    let ranks = w.ndim() == dims + 2 && out.ndim() == dims + 2 && motion.groups > 0;
    ensure(ranks && positive && motion.padding.iter().all(|&n| n >= 0), "convolution")?;
    let groups = motion.groups;
    let (from, to) =
        if motion.transposed { (w.shape[0] / groups, w.shape[1]) } else { (w.shape[1], w.shape[0] / groups) };
    let whole = if motion.transposed { from } else { to };
    let channels = whole * groups == w.shape[0] && x.shape[1] == from * groups && out.shape[1] == to * groups;
    ensure(channels && x.shape[0] == out.shape[0], "convolution")?;
    let [stride, padding, dilation] =
        [(lists[0], 1), (lists[1], 0), (lists[2], 1)].map(|(l, missing)| three(l, missing).map(|n| n as usize));
    let (kernel, input, output) = (three(&w.shape[2..], 1), three(&x.shape[2..], 1), three(&out.shape[2..], 1));
    let (large, small) = if motion.transposed { (output, input) } else { (input, output) };
    let steps =
        [0, 1, 2].map(|i| Steps { kernel: kernel[i], stride: stride[i], padding: padding[i], dilation: dilation[i] });
    // The window of the last place begins before the padded input ends, and numbers stay far from overflow.
    let bounded = steps.iter().zip(large.iter().zip(&small)).all(|(s, (&large, &small))| {
        let most = 1 << 40;
        let all = [s.kernel, s.stride, s.padding, s.dilation, large, small].iter().all(|&n| n < most);
        all && s.kernel > 0
            && large > 0
            && small > 0
            && s.kernel as u128 * s.dilation as u128 <= 2 * most as u128
            && small as u128 * s.stride as u128 <= 4 * most as u128
    });
    ensure(bounded, "convolution")?;
    Ok(Sizes { batch: x.shape[0], groups, from, to, large, small, steps })
}

fn compute_type(dtype: DType) -> Result<DType> {
    match dtype {
        DType::F64 => Ok(DType::F64),
        d if d.is_float() => Ok(DType::F32),
        d => Err(Error::not_implemented(format!("\"slow_conv2d_cpu\" not implemented for '{}'", d.scalar_type_name()))),
    }
}

/// A row-major copy in the compute type.
fn dense<T: Vectors>(v: &View) -> Result<Temp<T>> {
    let (data, strides): (Temp<T>, _) = (Temp::new(v.numel())?, contiguous_strides(v.shape));
    let slots = SendPtr(data.ptr());
    for_lines(v.shape, [v.strides, &strides], |[i, o], n, [step, _]| {
        // SAFETY: the run lies inside the operand and the copy; a row-major copy has runs of step one.
        unsafe { load(v.dtype, v.at(i), step, n, slots.at(o)) }
    });
    Ok(data)
}

/// `out = convolution(x, w) + bias`, or with `motion.transposed` the transpose: `x` is `[batch, channels, ..]`, `w`
/// `[filters, channels / groups, kernel ..]`, transposed `[channels, filters / groups, kernel ..]`. The shape of `out`
/// says how many windows there are, and how many elements the transpose has.
pub fn convolution(x: View, w: View, bias: Option<View>, out: View, motion: &Motion) -> Result<()> {
    convolution_then(x, w, bias, out, motion, None)
}

/// `convolution`, with an epilogue for the images of a row-major result that are done.
pub fn convolution_then(
    x: View,
    w: View,
    bias: Option<View>,
    out: View,
    motion: &Motion,
    then: Option<&Epilogue>,
) -> Result<()> {
    let s = sizes(&x, &w, &out, motion)?;
    let vector = bias.is_none_or(|b| b.shape == [out.shape[1]] && b.is_apart(&out));
    ensure(vector && out.is_apart(&x) && out.is_apart(&w), "convolution")?;
    let kind = compute_type(out.dtype)?;
    if s.is_pointwise() && pointwise::convolution([x, w, out], bias, motion, &s, then)? {
        return Ok(());
    }
    if s.is_covering() && pointwise::covering([x, w, out], bias, motion, &s)? {
        return Ok(());
    }
    match kind {
        DType::F64 => slide::<f64>(x, w, bias, out, motion, &s, then),
        _ => slide::<f32>(x, w, bias, out, motion, &s, then),
    }
}

fn slide<T: Vectors>(
    x: View,
    w: View,
    bias: Option<View>,
    out: View,
    motion: &Motion,
    s: &Sizes,
    then: Option<&Epilogue>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let plain = w.is_contiguous() && w.dtype == T::DTYPE;
    let copied = if plain { None } else { Some(dense::<T>(&w)?) };
    let dense_bias = bias.map(|b| dense::<T>(&b)).transpose()?;
    // SAFETY: `dense` has written all of it.
    let bias = dense_bias.as_ref().map(|b| unsafe { b.slice() });
    let kernel = s.steps.map(|s| s.kernel);
    let volume = kernel.iter().product::<usize>();
    let (to, from) = if motion.transposed { (volume, s.to * volume) } else { (s.from * volume, volume) };
    let at = SendPtr(copied.as_ref().map_or(w.ptr as *mut T, |c| c.ptr()));
    let weights = Weights { at, group: s.from * s.to * volume, to, from, taps: [kernel[1] * kernel[2], kernel[2], 1] };
    let phases = [0, 1, 2].map(|i| {
        if motion.transposed {
            Axis::transposed(s.small[i], s.large[i], s.steps[i])
        } else {
            vec![Axis::forward(s.large[i], s.small[i], s.steps[i])] // Bounded: one.
        }
    });
    if col2im::is_better::<T>(s, &phases) {
        let job = Col2im { x, weights, bias, out, s, phases: &phases };
        // SAFETY: `sizes` has compared all shapes, `convolution` that the output lies apart.
        return unsafe { job.run() };
    }
    let stacked = phases[0].iter().all(Axis::is_single) && s.to > FEW;
    let last = if stacked && batch_last::is_better::<T>(s, &phases[2]) {
        Some((BatchLast::<T>::of(&x)?, BatchLast::<T>::new(&out)?))
    } else {
        None
    };
    // An image is done with its only phase; results that fit the cache are best walked once, at the end.
    let whole = phases.iter().all(|p| p.len() == 1) && out.is_contiguous() && last.is_none();
    let large = out.numel() * out.dtype.size() > IN_CACHE;
    let then = then.filter(|t| whole && large && t.takes_blocks());
    let progress = then.map(|then| Progress::new(then, &out)).transpose()?;
    for d in &phases[0] {
        for h in &phases[1] {
            for w in &phases[2] {
                let mut axes = [d.clone(), h.clone(), w.clone()];
                let (mut input, mut result) = (Image::new(x), Image::new(out));
                let (mut batch, groups, mut weights) = (s.batch, s.groups, weights);
                if let Some((from, to)) = &last {
                    (input, result) = (from.image(), to.image());
                    (axes, batch) = ([h.clone(), w.clone(), Axis::batch(s.batch)], 1);
                    weights.taps.rotate_left(1);
                } else if stacked {
                    // Blocks may then extend over several small images.
                    (input.steps[0], result.steps[0]) = (input.batch, result.batch);
                    (axes[0], batch) = (Axis::batch(s.batch), 1);
                }
                let slide =
                    Slide { input, out: result, weights, bias, batch, groups, from: s.from, to: s.to, axes, stacked };
                // SAFETY: `sizes` has compared all shapes, `convolution` that the output lies apart.
                unsafe { slide.run(progress.as_ref())? };
            }
        }
    }
    if let Some((_, result)) = last {
        result.store(&out);
    }
    Ok(())
}

/// The gradient of the weights of `convolution(x, w)` whose result has the gradient `grad`; of `grad`'s and `x`'s dtype.
pub fn weight_gradient(grad: View, x: View, out: View, motion: &Motion) -> Result<()> {
    let s = sizes(&x, &out, &grad, motion)?;
    ensure(out.is_apart(&x) && out.is_apart(&grad), "convolution_backward")?;
    let kind = compute_type(out.dtype)?;
    if s.is_pointwise() && pointwise::weight_gradient([grad, x, out], motion, &s)? {
        return Ok(());
    }
    if s.is_covering() && pointwise::covering_gradient([grad, x, out], motion, &s)? {
        return Ok(());
    }
    match kind {
        DType::F64 => gradient::<f64>(grad, x, out, motion, &s),
        _ => gradient::<f32>(grad, x, out, motion, &s),
    }
}

fn gradient<T: Vectors>(grad: View, x: View, out: View, motion: &Motion, s: &Sizes) -> Result<()> {
    // The window slides over the larger side, whichever of the two is the input.
    let (over, met, from, to) = if motion.transposed { (grad, x, s.to, s.from) } else { (x, grad, s.from, s.to) };
    let sum: Temp<T> = Temp::new(out.numel())?;
    let axes = [0, 1, 2].map(|i| Axis::forward(s.large[i], s.small[i], s.steps[i]));
    let (input, grad) = (Image::new(over), Image::new(met));
    let job = WeightGradient { input, grad, out: SendPtr(sum.ptr()), batch: s.batch, groups: s.groups, from, to, axes };
    // SAFETY: `sizes` has compared all shapes; the sum has room for all weights.
    unsafe { job.run()? };
    let slots = SendPtr(sum.ptr());
    let strides = contiguous_strides(out.shape);
    for_lines(out.shape, [out.strides, &strides], |[o, i], n, [step, _]| {
        // SAFETY: the run lies inside the result; a row-major sum has runs of step one.
        unsafe { store(out.dtype, out.at(o), step, n, slots.at(i)) }
    });
    Ok(())
}
