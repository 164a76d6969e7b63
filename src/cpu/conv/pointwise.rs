//! Convolutions that are products of the weights with the images as they lie: those whose kernel is one element, without a
//! stride or padding, and those whose kernel covers the whole image.

use super::geometry::Steps;
use super::{Motion, Sizes};
use crate::cpu::copy::copy;
use crate::cpu::epilogue::Epilogue;
use crate::cpu::gemm::{matmul, matmul_then};
use crate::cpu::map::{Input, Output};
use crate::cpu::scratch::Temp;
use crate::cpu::view::View;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::coalesce;

/// Fewest places of an image whose gradient is a product of its own.
const PLACES: usize = 32;

/// Products, and the columns of each: the places of an image, or images of one place.
fn columns(s: &Sizes) -> (usize, usize) {
    match s.large.iter().product() {
        1 => (1, s.batch),
        places => (s.batch, places),
    }
}
/// The distance of columns, if it is the same for all.
fn step(image: &View) -> Option<usize> {
    let (shape, [strides]) = coalesce(&image.shape[2..], [&image.strides[2..]]);
    (shape.len() <= 1).then(|| strides.first().copied().unwrap_or(image.strides[0]))
}

/// Whether the product takes these operands as they are.
fn plain(operands: [View; 3]) -> bool {
    let dtype = operands[2].dtype;
    matches!(dtype, DType::F32 | DType::F64) && operands.iter().all(|v| v.dtype == dtype)
}

/// `convolution` of x and w into out; whether it could.
pub fn convolution(
    [x, w, out]: [View; 3],
    bias: Option<View>,
    motion: &Motion,
    s: &Sizes,
    then: Option<&Epilogue>,
) -> Result<bool> {
    let (Some(from_step), Some(to_step)) = (step(&x), step(&out)) else { return Ok(false) };
    if !plain([x, w, out]) {
        return Ok(false);
    }
    let (batch, columns) = columns(s);
    // `[batch, groups, channels, ..]`
    let weight = if motion.transposed {
        [0, s.from * w.strides[0], w.strides[1], w.strides[0]]
    } else {
        [0, s.to * w.strides[0], w.strides[0], w.strides[1]]
    };
    let image = |v: &View, channels: usize, step: usize| [v.strides[0], channels * v.strides[1], v.strides[1], step];
    let (from, to) = (image(&x, s.from, from_step), image(&out, s.to, to_step));
    let shapes = [[s.to, s.from], [s.from, columns], [s.to, columns]].map(|[a, b]| [batch, s.groups, a, b]);
    // SAFETY: these are the elements of the operands, whose sizes have been compared.
    let [a, b, product] =
        unsafe { [w.seen_as(&shapes[0], &weight), x.seen_as(&shapes[1], &from), out.seen_as(&shapes[2], &to)] };
    let beta = if let Some(bias) = bias {
        let strides = [0, s.to * bias.strides[0], bias.strides[0], 0];
        let from = Input::Strided { ptr: bias.ptr, dtype: bias.dtype, strides: &strides };
        let to = Output { ptr: product.ptr, dtype: product.dtype, strides: product.strides };
        // SAFETY: as above; the bias lies apart from the output.
        unsafe { copy(&shapes[2], &from, &to) };
        1.0
    } else {
        0.0
    };
    match then.filter(|_| product.is_contiguous()) {
        Some(then) => matmul_then(a, b, product, 1.0, beta, then)?,
        None => matmul(a, b, product, 1.0, beta)?,
    }
    Ok(true)
}

/// `weight_gradient` of grad and x into out; whether it could.
pub fn weight_gradient([grad, x, out]: [View; 3], motion: &Motion, s: &Sizes) -> Result<bool> {
    let (met, over, from, to) = if motion.transposed { (x, grad, s.to, s.from) } else { (grad, x, s.from, s.to) };
    let (Some(met_step), Some(over_step)) = (step(&met), step(&over)) else { return Ok(false) };
    if !plain([met, over, out]) || s.batch == 0 || (2..PLACES).contains(&s.large.iter().product()) {
        return Ok(false);
    }
    // The terms are the columns of the forward product.
    let (batch, terms) = columns(s);
    let shapes = [[to, terms], [terms, from], [to, from]].map(|[a, b]| [s.groups, a, b]);
    let a = [to * met.strides[1], met.strides[1], met_step];
    let b = [from * over.strides[1], over_step, over.strides[1]];
    let weight = [to * out.strides[0], out.strides[0], out.strides[1]];
    for n in 0..batch {
        // SAFETY: these are the elements of the operands, whose sizes have been compared.
        unsafe {
            let a = View::new(met.at(n * met.strides[0]), met.dtype, &shapes[0], &a);
            let b = View::new(over.at(n * over.strides[0]), over.dtype, &shapes[1], &b);
            let product = out.seen_as(&shapes[2], &weight);
            matmul(a, b, product, 1.0, if n > 0 { 1.0 } else { 0.0 })?;
        }
    }
    Ok(true)
}

/// An operand seen with images of one place: batch and the elements of an image, which lie at equal distances.
struct Flat<'a> {
    of: View<'a>,
    shape: [usize; 3],
    strides: [usize; 3],
}
impl<'a> Flat<'a> {
    /// None where the elements lie otherwise.
    fn new(of: View<'a>) -> Option<Flat<'a>> {
        let (shape, [strides]) = coalesce(&of.shape[1..], [&of.strides[1..]]);
        let step = match strides[..] {
            [] => 1,
            [step] => step,
            _ => return None,
        };
        Some(Flat { of, shape: [of.shape[0], shape.iter().product(), 1], strides: [of.strides[0], step, 1] })
    }
    fn view(&self) -> View<'_> {
        // SAFETY: the same elements.
        unsafe { self.of.seen_as(&self.shape, &self.strides) }
    }
}

/// The sizes of a call whose kernel covers the whole image, of which each element is then a channel.
fn covered(motion: &Motion, s: &Sizes) -> Sizes {
    let volume = s.large.iter().product::<usize>();
    let (from, to) = if motion.transposed { (s.from, s.to * volume) } else { (s.from * volume, s.to) };
    let steps = [Steps { kernel: 1, stride: 1, padding: 0, dilation: 1 }; 3];
    Sizes { batch: s.batch, groups: s.groups, from, to, large: [1; 3], small: [1; 3], steps }
}

/// `convolution` where the kernel covers the whole image.
pub fn covering(operands: [View; 3], bias: Option<View>, motion: &Motion, s: &Sizes) -> Result<bool> {
    let [Some(x), Some(w), Some(out)] = operands.map(Flat::new) else { return Ok(false) };
    let operands = [x.view(), w.view(), out.view()];
    let volume = s.large.iter().product::<usize>();
    let Some(bias) = bias.filter(|_| motion.transposed && volume > 1) else {
        return convolution(operands, bias, motion, &covered(motion, s), None);
    };
    // A number for each element of an image. It fits f64, whatever its dtype.
    let (shape, numbers) = ([bias.shape[0], volume], Temp::<f64>::new(bias.shape[0] * volume)?);
    let from = Input::Strided { ptr: bias.ptr, dtype: bias.dtype, strides: &[bias.strides[0], 0] };
    let to = Output { ptr: numbers.ptr() as *mut u8, dtype: bias.dtype, strides: &[volume, 1] };
    let all = [shape[0] * volume];
    // SAFETY: the copy has room for them.
    let repeated = unsafe {
        copy(&shape, &from, &to);
        View::new(to.ptr, bias.dtype, &all, &[1])
    };
    convolution(operands, Some(repeated), motion, &covered(motion, s), None)
}

/// `weight_gradient` where the kernel covers the whole image.
pub fn covering_gradient(operands: [View; 3], motion: &Motion, s: &Sizes) -> Result<bool> {
    let [Some(grad), Some(x), Some(out)] = operands.map(Flat::new) else { return Ok(false) };
    weight_gradient([grad.view(), x.view(), out.view()], motion, &covered(motion, s))
}
