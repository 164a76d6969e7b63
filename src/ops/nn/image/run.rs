//! Runs the kernel of interpolation on tensors: memory formats, tables, devices.

use super::taps::{Axis, Method};
use crate::cpu::resample::{self as cpu, Taps};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::gpu::{self, TapsAt};
use crate::layout::{Dims, Format, Layout};
use crate::op::Term;
use crate::op::Value;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::rt::reserve::{list, room};
use crate::tensor::Tensor;
use smallvec::SmallVec;

pub type Axes = SmallVec<[Axis; 3]>;

/// The resampled `x`, or with `back` the gradient of its input, written to `out`: both `[batch, channels, ..]`.
pub fn resample(x: &Tensor, axes: &[Axis], method: Method, back: bool, out: &Tensor) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let format = out.layout().channels_format();
    let mut tables = room(axes.len())?;
    for &axis in axes {
        let taps = method.taps(axis, x.dtype())?;
        tables.push(if back { taps.transposed()? } else { taps });
    }
    let x = Term::from(&x.detach());
    let x = match format {
        Format::Contiguous => x.contiguous().ok()?,
        _ => CONTIGUOUS.call((x, Value::Format(format))).ok()?,
    };
    let (x, out) = (in_format(&x, format), in_format(out, format));
    if !x.device().is_gpu() {
        return cpu::resample(x.cpu_view()?, &tables, out.cpu_view()?);
    }
    if tables.iter().all(|t| t.bits == 0) {
        return on_gpu(&x, &tables, None, &out);
    }
    one_by_one(x, &tables, &out)
}

/// A tensor that is dense in a format as `[outer, dimensions.., inner]`.
fn in_format(t: &Tensor, format: Format) -> Tensor {
    let shape = t.shape();
    let (outer, inner) = match format {
        Format::Contiguous => (shape[0] * shape[1], 1),
        _ => (shape[0], shape[1]),
    };
    let shape: Dims = [outer].into_iter().chain(shape[2..].iter().copied()).chain([inner]).collect();
    t.with_layout(Layout { offset: t.layout().offset, ..Layout::contiguous(&shape) })
}

/// Pixels are rounded after each dimension, the last one first.
fn one_by_one(mut x: Tensor, tables: &[Taps], out: &Tensor) -> Result<()> {
    for (d, taps) in tables.iter().enumerate().rev() {
        let mut shape: Dims = x.shape().into();
        shape[d + 1] = taps.outputs();
        let next = if d == 0 { out.clone() } else { Tensor::empty(&shape, x.dtype(), x.device())? };
        let flat = |t: &Tensor| {
            let s = t.shape();
            let shape = [s[..d + 1].iter().product(), s[d + 1], s[d + 2..].iter().product()];
            t.with_layout(Layout { offset: t.layout().offset, ..Layout::contiguous(&shape) })
        };
        on_gpu(&flat(&x), std::slice::from_ref(taps), Some(taps.bits), &flat(&next))?;
        x = next;
    }
    Ok(())
}

/// The tables of all dimensions, one after the other; dimensions that are missing have one element.
fn on_gpu(x: &Tensor, tables: &[Taps], bits: Option<u32>, out: &Tensor) -> Result<()> {
    let one = Taps { size: 1, starts: list([0, 1])?, index: list([0])?, weights: list([1.0])?, bits: 0 };
    let missing = 3 - tables.len();
    let (mut entries, mut weights, mut at) = (Vec::new(), Vec::new(), [TapsAt::default(); 3]);
    for (at, taps) in at.iter_mut().zip(std::iter::repeat_n(&one, missing).chain(tables)) {
        *at = TapsAt {
            starts: entries.len(),
            index: entries.len() + taps.starts.len(),
            weights: weights.len(),
            most: taps.most(),
        };
        append(&mut entries, taps.starts.iter().map(|&i| i as i32))?;
        append(&mut entries, taps.index.iter().map(|&i| i as i32))?;
        append(&mut weights, taps.weights.iter().copied())?;
    }
    let table = Term(Tensor::from_slice(&entries, &[entries.len()])).to_device(x.device()).ok()?;
    let weights = match x.dtype() {
        DType::F64 => uploaded(&weights, |w| w, x)?,
        DType::U8 => uploaded(&weights, |w| w as i32, x)?,
        _ => uploaded(&weights, |w| w as f32, x)?,
    };
    let three = |t: &Tensor| {
        let s = t.shape();
        let inner = std::iter::repeat_n(1, missing).chain(s[1..].iter().copied());
        let shape: Dims = [s[0]].into_iter().chain(inner).collect();
        t.with_layout(Layout { offset: t.layout().offset, ..Layout::contiguous(&shape) })
    };
    let (x, out) = (three(x), three(out));
    gpu::resample(&x.gpu_view()?, &table.gpu_view()?, &weights.gpu_view()?, at, bits, &out.gpu_view()?)
}

fn append<T>(list: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) -> Result<()> {
    list.try_reserve(items.len())
        .map_err(|_| Error::runtime("not enough memory for the tables of an interpolation"))?;
    list.extend(items);
    Ok(())
}

fn uploaded<T: Element>(weights: &[f64], to: impl Fn(f64) -> T, like: &Tensor) -> Result<Tensor> {
    let values = list(weights.iter().map(|&w| to(w)))?;
    Term(Tensor::from_slice(&values, &[values.len()])).to_device(like.device()).ok()
}
