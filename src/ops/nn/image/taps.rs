//! Where an interpolated element lies between the elements that are there, and what weight each of them has.
//!
//! Positions are computed as PyTorch computes them, in f32 for the narrower floats, so that the same elements are read. The
//! filters with antialiasing widen with the scale and are those of Pillow.

use crate::cpu::resample::Taps;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::rt::reserve::{list, room};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    LinearSmooth,
    CubicSmooth,
    LanczosSmooth,
}

/// A dimension: its sizes before and after, whether the corner elements stay where they are, and the factor by which it grows
/// where that is not the ratio of the sizes.
#[derive(Clone, Copy)]
pub struct Axis {
    pub from: usize,
    pub to: usize,
    pub align_corners: bool,
    pub factor: Option<f64>,
    /// Whether the nearest element is that of the ratio of the sizes where it is one or two, whatever the factor.
    pub snaps: bool,
}

/// The arithmetic of a dtype: f32 for all floats but f64.
type Round = fn(f64) -> f64;

impl Method {
    /// Half the width of the filter, in elements of the wider grid.
    fn support(self) -> f64 {
        match self {
            Method::CubicSmooth => 2.0,
            Method::LanczosSmooth => 3.0,
            _ => 1.0,
        }
    }
    pub fn taps(self, axis: Axis, dtype: DType) -> Result<Taps> {
        if u32::try_from(axis.from.max(axis.to)).is_err() {
            return Err(Error::runtime("dimensions of more than 4294967295 elements cannot be interpolated"));
        }
        let round: Round = if dtype == DType::F64 || dtype == DType::U8 { |x| x } else { |x| f64::from(x as f32) };
        let mut taps = Table::of(axis)?;
        let smooth = matches!(self, Method::LinearSmooth | Method::CubicSmooth | Method::LanczosSmooth);
        let pixels = dtype == DType::U8 && (smooth || matches!(self, Method::Linear | Method::Cubic));
        if axis.from == axis.to && (smooth || pixels) {
            (0..axis.to).try_for_each(|o| taps.push([(o as i64, 1.0)]))?;
            return Ok(taps.0);
        }
        let scale = axis.scale(round);
        let nearest = if matches!(self, Method::Nearest | Method::NearestExact) {
            axis.scale(|x| f64::from(x as f32))
        } else {
            0.0
        };
        for o in 0..axis.to {
            match self {
                Method::Nearest => taps.push([(axis.nearest(o, nearest), 1.0)])?,
                Method::NearestExact => taps.push([(axis.nearest_exact(o, nearest), 1.0)])?,
                Method::Linear => taps.push(axis.linear(o, scale, round))?,
                Method::Cubic => taps.push(axis.cubic(o, scale, round))?,
                _ => taps.smooth(self, o, scale, round)?,
            }
        }
        if pixels { taps.quantized() } else { Ok(taps.0) }
    }
}

impl Axis {
    /// The elements of the input for one of the output.
    fn scale(&self, round: Round) -> f64 {
        if self.align_corners {
            let (n, m) = (self.from.saturating_sub(1) as f64, self.to.saturating_sub(1) as f64);
            return if self.to > 1 { round(n / m) } else { 0.0 };
        }
        match self.factor.filter(|&f| f > 0.0) {
            Some(f) => round(1.0 / f),
            None => round(self.from as f64 / self.to as f64),
        }
    }
    fn last(&self) -> i64 {
        self.from as i64 - 1
    }
    /// The position in the input, counted in elements; before the first it is negative.
    fn position(&self, o: usize, scale: f64, round: Round) -> f64 {
        if self.align_corners {
            return round(scale * o as f64);
        }
        round(round(scale * round(o as f64 + 0.5)) - 0.5)
    }
    fn nearest(&self, o: usize, scale: f64) -> i64 {
        if self.snaps && self.from == self.to {
            o as i64
        } else if self.snaps && self.from.checked_mul(2) == Some(self.to) {
            (o / 2) as i64
        } else {
            (f64::from((o as f64 * scale) as f32).floor() as i64).min(self.last())
        }
    }
    fn nearest_exact(&self, o: usize, scale: f64) -> i64 {
        (f64::from(((o as f64 + 0.5) * scale) as f32).floor() as i64).min(self.last())
    }
    /// The element at or before a position, and how far beyond it lies.
    fn split(&self, at: f64, round: Round) -> (i64, f64) {
        let i = (f64::from(at as f32).floor() as i64).min(self.last());
        (i, round(at - i as f64).clamp(0.0, 1.0))
    }
    fn linear(&self, o: usize, scale: f64, round: Round) -> [(i64, f64); 2] {
        if self.from == self.to {
            return [(o as i64, 1.0), (o as i64, 0.0)];
        }
        let (i, part) = self.split(self.position(o, scale, round).max(0.0), round);
        [(i, round(1.0 - part)), ((i + 1).min(self.last()), part)]
    }
    /// Cubic convolution with a = -3/4 (Keys 1981).
    fn cubic(&self, o: usize, scale: f64, round: Round) -> [(i64, f64); 4] {
        let (i, part) = self.split(self.position(o, scale, round), round);
        let at = |k: i64| (i + k).clamp(0, self.last());
        let w = |x: f64| round(keys(x, -0.75));
        [(at(-1), w(part + 1.0)), (at(0), w(part)), (at(1), w(1.0 - part)), (at(2), w(2.0 - part))]
    }
}

/// The kernel of cubic convolution.
fn keys(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

fn filter(method: Method, x: f64) -> f64 {
    match method {
        Method::CubicSmooth => keys(x, -0.5),
        Method::LanczosSmooth if x.abs() < 3.0 => sinc(x) * sinc(x / 3.0),
        Method::LanczosSmooth => 0.0,
        _ => (1.0 - x.abs()).max(0.0),
    }
}

/// A table that is being filled.
struct Table(Taps);

impl Table {
    fn of(axis: Axis) -> Result<Table> {
        let mut starts = room(axis.to + 1)?;
        starts.push(0);
        Ok(Table(Taps { size: axis.from, starts, index: room(axis.to)?, weights: room(axis.to)?, bits: 0 }))
    }
    /// The taps of the next output.
    fn push(&mut self, taps: impl IntoIterator<Item = (i64, f64)>) -> Result<()> {
        let t = &mut self.0;
        for (i, w) in taps {
            if t.index.len() == t.index.capacity() {
                let more = t.index.len() + 1;
                let failed = t.index.try_reserve(more).is_err() || t.weights.try_reserve(more).is_err();
                if failed {
                    return Err(Error::runtime("not enough memory for the table of an interpolation"));
                }
            }
            t.index.push(i.clamp(0, t.size as i64 - 1) as u32);
            t.weights.push(w);
        }
        let end = u32::try_from(t.index.len());
        t.starts.push(end.map_err(|_| Error::runtime("an interpolation reads too many elements of one dimension"))?);
        Ok(())
    }
    /// A filter as wide as the grid with fewer elements, whose weights sum to one.
    fn smooth(&mut self, method: Method, o: usize, scale: f64, round: Round) -> Result<()> {
        let size = self.0.size as i64;
        let wide = scale.max(1.0);
        let support = round(method.support() * wide);
        let center = round(scale * (o as f64 + 0.5));
        let start = ((round(center - support) + 0.5) as i64).clamp(0, size);
        let end = ((round(center + support) + 0.5) as i64).min(size);
        let count = (end - start).clamp(0, (support.ceil() as i64).saturating_mul(2).saturating_add(1));
        let shrink = round(1.0 / wide);
        let weights = list((0..count).map(|j| {
            let x = round(round((j + start) as f64 - center) + 0.5);
            round(filter(method, round(x * shrink)))
        }))?;
        let total = weights.iter().fold(0.0, |sum, w| round(sum + w));
        let each = |w: &f64| if total == 0.0 { *w } else { round(w / total) };
        self.push((start..).zip(weights.iter().map(each)))
    }
    /// Weights as whole numbers of 16 bits; those of the same element are one. As in Pillow, the widest precision is taken
    /// that the largest weight has.
    fn quantized(self) -> Result<Taps> {
        let all = self.0;
        let axis = Axis { from: all.size, to: all.outputs(), align_corners: false, factor: None, snaps: false };
        let mut merged = Table::of(axis)?;
        for bounds in all.starts.windows(2) {
            let mut own = room::<(i64, f64)>((bounds[1] - bounds[0]) as usize)?;
            for t in bounds[0] as usize..bounds[1] as usize {
                match own.last_mut() {
                    Some(last) if last.0 == i64::from(all.index[t]) => last.1 += all.weights[t],
                    _ => own.push((i64::from(all.index[t]), all.weights[t])),
                }
            }
            merged.push(own)?;
        }
        let mut taps = merged.0;
        let largest = taps.weights.iter().fold(0.0, |a: f64, &w| a.max(w));
        let fits = |bits: &u32| ((0.5 + largest * f64::from(1u32 << (bits + 1))) as i64) < 1 << 15;
        taps.bits = (0..22).take_while(fits).count() as u32;
        let unit = f64::from(1u32 << taps.bits);
        taps.weights.iter_mut().for_each(|w| *w = (*w * unit + 0.5f64.copysign(*w)).trunc());
        Ok(taps)
    }
}
