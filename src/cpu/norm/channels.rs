//! Batch and group normalisation of `[n, c, l]`, and their gradients, by two passes each: one over planes for sums, one
//! that maps elements with coefficients made of those sums.
//!
//! A statistic covers one channel over the batch, or one group of the channels of a sample. With `h = (x - mean) rstd`,
//! `w` the weight and means over what a statistic covers: `dx = rstd (g w - mean(g w) - h mean(g w h))`, `dw = sum(g h)`,
//! `db = sum(g)`. Where the statistics are given, as in evaluation, `dx = rstd g w`.

use super::planes::{Affine, Planes, map_gradient, map_planes, plane_moments, plane_sums};
use crate::cpu::arith::Float;
use crate::cpu::parallel::{num_threads, try_par_for};
use crate::cpu::view::{SendPtr, View, ensure, load, store};
use crate::dtype::DType;
use crate::error::Result;
use crate::rt::reserve::{filled, list, room};
use std::ops::Range;

/// Bytes of samples that are normalised at a time.
const NEAR: usize = 1 << 17;

/// What is normalised: `input` is `[n, c, l]`, row-major or with the channels last; `weight` and `bias` are `[c]`.
#[derive(Clone, Copy)]
pub struct Channels<'a> {
    pub input: View<'a>,
    pub weight: Option<View<'a>>,
    pub bias: Option<View<'a>>,
    /// Groups of channels of a sample; `None` for statistics of each channel over the batch.
    pub groups: Option<usize>,
    pub eps: f64,
}

/// Running statistics `[c]`, which move towards those of a batch by `momentum`.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    pub mean: View<'a>,
    pub var: View<'a>,
    pub momentum: f64,
}

/// The results of a gradient: `dx` is as the input, `dw` and `db` are `[c]`.
#[derive(Clone, Copy)]
pub struct Gradients<'a> {
    pub dx: View<'a>,
    pub dw: View<'a>,
    pub db: View<'a>,
}

impl Channels<'_> {
    fn planes(&self) -> Planes {
        let &[n, c, l] = self.input.shape else { unreachable!("`check` has seen three dimensions") };
        let rows = self.input.is_contiguous() && l > 1;
        // Over the batch, channels side by side are columns of one matrix.
        let (n, l) = if rows || self.groups.is_some() { (n, l) } else { (1, n * l) };
        Planes { n, c, l, rows }
    }
    /// Whether the operands fit together: shapes, and one dense form of `like`.
    fn check(&self, like: &[&View], vectors: &[Option<View>]) -> Result<()> {
        let &[_, c, l] = self.input.shape else { return ensure(false, "normalise") };
        let dense = |v: &View| {
            let step = |d: usize, s: usize| v.shape[d] <= 1 || v.strides[d] == s;
            v.is_contiguous() || (step(0, c * l) && step(1, 1) && step(2, c))
        };
        let same = |v: &&View| v.shape == self.input.shape && v.is_contiguous() == self.input.is_contiguous();
        let vector = |v: &Option<View>| v.is_none_or(|v| v.shape == [c]);
        let groups = self.groups.is_none_or(|g| g > 0 && c % g == 0);
        let right = dense(&self.input) && like.iter().all(|v| same(v) && dense(v));
        ensure(right && groups && vectors.iter().chain([&self.weight, &self.bias]).all(vector), "normalise")
    }
    fn statistics(&self, s: &Planes) -> usize {
        self.groups.map_or(s.c, |g| s.n * g)
    }
    /// The channel and the statistic of every plane, in order.
    fn places(&self, s: &Planes) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (c, groups) = (s.c, self.groups);
        let each = groups.map_or(1, |g| (c / g).max(1));
        (0..s.n).flat_map(move |sample| {
            let first = groups.map_or(0, |g| sample * g);
            let (mut within, mut at) = (0, first);
            (0..c).map(move |channel| {
                let place = (channel, at);
                within += 1;
                if within == each {
                    (within, at) = (0, at + 1);
                }
                place
            })
        })
    }
    /// The statistic that comes first in a part of the samples.
    fn first(&self, samples: &Range<usize>) -> usize {
        self.groups.map_or(0, |g| samples.start * g)
    }
    /// Reciprocal standard deviations.
    fn reciprocals(&self, vars: &[f64]) -> Result<Vec<f64>> {
        list(vars.iter().map(|v| 1.0 / (v + self.eps).sqrt()))
    }
    /// Calls `f` with all samples or, where their statistics are their own, with a few at a time: what one pass has read, the next
    /// one finds in the cache.
    fn in_parts(&self, f: impl Fn(&Channels, Range<usize>) -> Result<()> + Sync) -> Result<()> {
        let &[n, c, l] = self.input.shape else { unreachable!("`check` has seen three dimensions") };
        let parts = match self.groups {
            Some(_) => n.div_ceil((NEAR / (c * l * self.input.dtype.size()).max(1)).max(1)),
            None => 1,
        };
        if parts < 2 * num_threads() {
            return f(self, 0..n);
        }
        try_par_for(parts, 1, |range| {
            for i in range {
                let samples = i * n / parts..(i + 1) * n / parts;
                let shape = [samples.len(), c, l];
                f(&Channels { input: samples_of(&self.input, &samples, &shape), ..*self }, samples)?;
            }
            Ok(())
        })
    }
    /// How many elements a statistic covers.
    fn covered(&self, s: &Planes) -> usize {
        self.groups.map_or(s.n * s.l, |g| s.c / g * s.l)
    }
}

/// Some samples of an operand, which have this shape.
fn samples_of<'a>(v: &View<'a>, samples: &Range<usize>, shape: &'a [usize]) -> View<'a> {
    // SAFETY: the view's elements.
    unsafe { View::new(v.at(samples.start * v.strides[0]), v.dtype, shape, v.strides) }
}

/// A vector of any float dtype as f64.
fn vector(v: View) -> Result<Vec<f64>> {
    let (n, step) = v.dim(0);
    let mut out = filled(0.0, n)?;
    // SAFETY: the vector has `n` elements.
    unsafe { load(v.dtype, v.ptr, step, n, out.as_mut_ptr()) };
    Ok(out)
}

fn write(v: View, values: &[f64]) -> Result<()> {
    ensure(v.numel() == values.len() && v.ndim() <= 1, "normalise")?;
    // SAFETY: the view has as many elements as there are values.
    unsafe { store(v.dtype, v.ptr, v.dim(0).1, values.len(), values.as_ptr()) };
    Ok(())
}

/// A coefficient for each plane, in the compute type.
fn narrow<T: Float>(s: &Planes, values: impl Iterator<Item = f64>) -> Result<Vec<T>> {
    let mut all = room(s.count())?;
    all.extend(values.map(T::from_f64));
    Ok(all)
}

/// `out = (input - mean) * rstd * weight + bias` with the statistics of the input, which `mean` and `rstd` receive; the
/// variance is divided by the number of elements. `running` moves towards mean and unbiased variance.
pub fn normalise(o: &Channels, running: Option<Running>, out: View, mean: View, rstd: View) -> Result<()> {
    let sides = running.map_or([None; 2], |r| [Some(r.mean), Some(r.var)]);
    o.check(&[&out], &sides)?;
    ensure(out.is_apart(&o.input), "normalise")?;
    let s = o.planes();
    let (mut means, mut vars) = (filled(0.0, o.statistics(&s))?, filled(0.0, o.statistics(&s))?);
    let slots = [&mut means, &mut vars].map(|v| SendPtr(v.as_mut_ptr()));
    o.in_parts(|part, samples| {
        let s = part.planes();
        let (mean, var) = match part.input.dtype {
            DType::F64 => of_batch::<f64>(part, &s)?,
            _ => of_batch::<f32>(part, &s)?,
        };
        let shape = part.input.shape;
        apply(part, &s, &mean, &part.reciprocals(&var)?, samples_of(&out, &samples, shape))?;
        for (slots, values) in slots.iter().zip([mean, var]) {
            // SAFETY: a part has its own statistics.
            unsafe { slots.at(o.first(&samples)).copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        }
        Ok(())
    })?;
    if let Some(r) = running {
        let n = o.covered(&s) as f64;
        let moved = |old: View, new: &dyn Fn(usize) -> f64| -> Result<()> {
            let mut all = vector(old)?;
            all.iter_mut().enumerate().for_each(|(i, v)| *v = *v * (1.0 - r.momentum) + new(i) * r.momentum);
            write(old, &all)
        };
        moved(r.mean, &|i| means[i])?;
        moved(r.var, &|i| vars[i] * n / (n - 1.0))?;
    }
    write(mean, &means)?;
    write(rstd, &o.reciprocals(&vars)?)
}

/// The same with given statistics `[c]`: mean and variance.
pub fn normalise_by(o: &Channels, mean: View, var: View, out: View) -> Result<()> {
    o.check(&[&out], &[Some(mean), Some(var)])?;
    ensure(out.is_apart(&o.input) && o.groups.is_none(), "normalise")?;
    apply(o, &o.planes(), &vector(mean)?, &o.reciprocals(&vector(var)?)?, out)
}

/// Mean and variance of what each statistic covers.
fn of_batch<T: Float>(o: &Channels, s: &Planes) -> Result<(Vec<f64>, Vec<f64>)> {
    // SAFETY: the input has been checked to be dense in the form of the shape.
    let planes = unsafe { plane_moments::<T>(&o.input, s)? };
    let (mut mean, mut var) = (filled(0.0, o.statistics(s))?, filled(0.0, o.statistics(s))?);
    let of_each = (o.covered(s) / s.l.max(1)) as f64;
    planes.iter().zip(o.places(s)).for_each(|(m, (_, i))| mean[i] += m[0] / of_each);
    for (m, (_, i)) in planes.iter().zip(o.places(s)) {
        var[i] += (m[1] + s.l as f64 * (m[0] - mean[i]).powi(2)) / o.covered(s) as f64;
    }
    if o.covered(s) == 0 {
        [&mut mean, &mut var].into_iter().for_each(|v| v.fill(f64::NAN));
    }
    Ok((mean, var))
}

fn apply(o: &Channels, s: &Planes, mean: &[f64], rstd: &[f64], out: View) -> Result<()> {
    match o.input.dtype {
        DType::F64 => apply_in::<f64>(o, s, mean, rstd, out),
        _ => apply_in::<f32>(o, s, mean, rstd, out),
    }
}

fn apply_in<T: Float>(o: &Channels, s: &Planes, mean: &[f64], rstd: &[f64], out: View) -> Result<()> {
    let (weight, bias) = (o.weight.map(vector).transpose()?, o.bias.map(vector).transpose()?);
    let of = |v: &Option<Vec<f64>>, channel: usize, other: f64| v.as_ref().map_or(other, |v| v[channel]);
    let planes = || o.places(s);
    let mean = narrow::<T>(s, planes().map(|(_, i)| mean[i]))?;
    let scale = narrow::<T>(s, planes().map(|(c, i)| rstd[i] * of(&weight, c, 1.0)))?;
    let shift = narrow::<T>(s, planes().map(|(c, _)| of(&bias, c, 0.0)))?;
    let by = Affine { mean: &mean, scale: &scale, shift: &shift, slope: &[] };
    // SAFETY: `check` has seen the shapes and forms, and that the operands lie apart.
    unsafe { map_planes(&o.input, s, &by, &out) }
}

/// The gradients for `grad`, from the statistics of `normalise`: a mean and a reciprocal deviation for each. With
/// `given`, they do not depend on the input.
pub fn normalise_backward(o: &Channels, grad: View, mean: View, rstd: View, given: bool, to: &Gradients) -> Result<()> {
    o.check(&[&grad, &to.dx], &[Some(to.dw), Some(to.db)])?;
    let s = o.planes();
    let fits = |v: &View| v.ndim() == 1 && v.numel() == o.statistics(&s);
    let apart = to.dx.is_apart(&o.input) && to.dx.is_apart(&grad);
    ensure(apart && fits(&mean) && fits(&rstd), "normalise_backward")?;
    let (mean, rstd) = (vector(mean)?, vector(rstd)?);
    match o.input.dtype {
        DType::F64 => backward::<f64>(o, &s, grad, &mean, &rstd, given, to),
        _ => backward::<f32>(o, &s, grad, &mean, &rstd, given, to),
    }
}

fn backward<T: Float>(
    o: &Channels,
    s: &Planes,
    grad: View,
    mean: &[f64],
    rstd: &[f64],
    given: bool,
    to: &Gradients,
) -> Result<()> {
    let mut sums = filled([0.0; 2], s.count())?;
    let slots = SendPtr(sums.as_mut_ptr());
    o.in_parts(|part, samples| {
        let statistics = o.first(&samples)..o.first(&samples) + part.statistics(&part.planes());
        let [grad, dx] = [grad, to.dx].map(|v| samples_of(&v, &samples, part.input.shape));
        let own = by_input::<T>(part, grad, &mean[statistics.clone()], &rstd[statistics], given, dx)?;
        // SAFETY: a part has its own planes.
        unsafe { slots.at(samples.start * s.c).copy_from_nonoverlapping(own.as_ptr(), own.len()) };
        Ok(())
    })?;
    let (mut dw, mut db) = (filled(0.0, s.c)?, filled(0.0, s.c)?);
    for ([sum, dot], (c, i)) in sums.iter().zip(o.places(s)) {
        dw[c] += dot * rstd[i];
        db[c] += sum;
    }
    write(to.dw, &dw)?;
    write(to.db, &db)
}

/// The gradient of the input, and for each plane the sums of `grad` and of its products with deviations from the mean.
fn by_input<T: Float>(
    o: &Channels,
    grad: View,
    mean: &[f64],
    rstd: &[f64],
    given: bool,
    dx: View,
) -> Result<Vec<[f64; 2]>> {
    let s = &o.planes();
    let means = narrow::<T>(s, o.places(s).map(|(_, i)| mean[i]))?;
    // SAFETY: `check` has seen shapes and forms.
    let sums = unsafe { plane_sums::<T>(&grad, &o.input, s, &means)? };
    let weight = o.weight.map(vector).transpose()?;
    let weight = |channel: usize| weight.as_ref().map_or(1.0, |w| w[channel]);
    let slope = narrow::<T>(s, o.places(s).map(|(c, i)| rstd[i] * weight(c)))?;
    if given {
        let zeros = filled(T::ZERO, s.count())?;
        let by = Affine { mean: &zeros, scale: &slope, shift: &zeros, slope: &[] };
        // SAFETY: as above, and the result lies apart from what is read.
        unsafe { map_planes(&grad, s, &by, &dx)? };
        return Ok(sums);
    }
    // The sums of what each statistic covers, times the weight; then its coefficients.
    let mut of_all = filled([0.0; 2], o.statistics(s))?;
    for ([sum, dot], (c, i)) in sums.iter().zip(o.places(s)) {
        of_all[i][0] += sum * weight(c);
        of_all[i][1] += dot * weight(c);
    }
    let n = o.covered(s) as f64;
    for ([sum, dot], rstd) in of_all.iter_mut().zip(rstd) {
        (*sum, *dot) = (-rstd * *sum / n, -rstd.powi(3) * *dot / n);
    }
    let scale = narrow::<T>(s, o.places(s).map(|(_, i)| of_all[i][1]))?;
    let shift = narrow::<T>(s, o.places(s).map(|(_, i)| of_all[i][0]))?;
    let by = Affine { mean: &means, scale: &scale, shift: &shift, slope: &slope };
    // SAFETY: as above, and the result lies apart from what is read.
    unsafe { map_gradient(&grad, &o.input, s, &by, &dx)? };
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close};

    /// In both forms of memory: the statistics, the result and the three gradients against their formulas.
    #[test]
    fn agrees_with_the_formulas() {
        let mut rng = Rng(11);
        for (dtype, tolerance) in [(DType::F32, 2e-4), (DType::F64, 1e-11), (DType::BF16, 6e-2)] {
            for [n, c, l] in [[3, 4, 5], [2, 6, 700], [7, 2, 1], [1, 40, 900], [1, 1, 9000], [9, 4, 9000]] {
                for groups in [None, Some(1), Some(c / 2).filter(|&g| g > 0)] {
                    for last in [false, true] {
                        compare(&mut rng, dtype, tolerance, [n, c, l], groups, last);
                    }
                }
            }
        }
    }

    fn compare(rng: &mut Rng, dtype: DType, tolerance: f64, s: [usize; 3], groups: Option<usize>, last: bool) {
        let [n, c, l] = s;
        let mut array = |shape: &[usize]| {
            let values: Vec<f64> = (0..shape.iter().product()).map(|_| rng.value()).collect();
            Array::of(dtype, shape, &values)
        };
        let [mut x, mut g, mut y, mut dx] = [(); 4].map(|()| array(&s));
        let [w, b, dw, db] = [(); 4].map(|()| array(&[c]));
        if last {
            [&mut x, &mut g, &mut y, &mut dx].into_iter().for_each(|a| a.strides = [c * l, 1, c].as_slice().into());
        }
        let count = groups.map_or(c, |g| n * g);
        let [mean, rstd] = [(); 2].map(|()| Array::zeros(DType::F64, &[count]));
        let o = Channels { input: x.view(), weight: Some(w.view()), bias: Some(b.view()), groups, eps: 1e-3 };
        normalise(&o, None, y.view(), mean.view(), rstd.view()).unwrap();
        let to = Gradients { dx: dx.view(), dw: dw.view(), db: db.view() };
        normalise_backward(&o, g.view(), mean.view(), rstd.view(), false, &to).unwrap();
        let (xs, gs, w, b) = (x.reals(), g.reals(), w.reals(), b.reals());
        let of = |i: usize| {
            let (sample, channel) = (i / (c * l), i / l % c);
            (channel, groups.map_or(channel, |g| sample * g + channel / (c / g)))
        };
        let m = (n * c * l / count) as f64;
        let sums = |f: &dyn Fn(usize) -> f64| {
            (0..n * c * l).fold(vec![0.0; count], |mut all, i| {
                all[of(i).1] += f(i) / m;
                all
            })
        };
        let means = sums(&|i| xs[i]);
        let rstds: Vec<f64> =
            sums(&|i| (xs[i] - means[of(i).1]).powi(2)).iter().map(|v| 1.0 / (v + 1e-3).sqrt()).collect();
        let h = |i: usize| (xs[i] - means[of(i).1]) * rstds[of(i).1];
        let all = |f: &dyn Fn(usize) -> f64| (0..n * c * l).map(f).collect::<Vec<_>>();
        close(&mean.reals(), &means, tolerance);
        close(&rstd.reals(), &rstds, tolerance);
        close(&y.reals(), &all(&|i| h(i) * w[of(i).0] + b[of(i).0]), tolerance);
        let (first, second) = (sums(&|i| gs[i] * w[of(i).0]), sums(&|i| gs[i] * w[of(i).0] * h(i)));
        let slope = |i: usize| rstds[of(i).1] * (gs[i] * w[of(i).0] - first[of(i).1] - h(i) * second[of(i).1]);
        close(&dx.reals(), &all(&slope), tolerance * 30.0);
        let (mut want_w, mut want_b) = (vec![0.0; c], vec![0.0; c]);
        (0..n * c * l).for_each(|i| want_w[of(i).0] += gs[i] * h(i));
        (0..n * c * l).for_each(|i| want_b[of(i).0] += gs[i]);
        close(&dw.reals(), &want_w, tolerance * 30.0);
        close(&db.reals(), &want_b, tolerance * 30.0);
    }
}
