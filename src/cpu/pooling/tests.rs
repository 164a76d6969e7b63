//! Max and average pooling and their gradients against plain loops, in both forms of memory.

use super::max::{max_pool, max_pool_backward, max_unpool};
use super::mean::{Divisor, mean_pool, mean_pool_backward};
use crate::cpu::testing::{Array, Rng, close};
use crate::dtype::DType;
use crate::layout::window::{Axis, Windows};

fn steps(size: usize, kernel: usize, stride: usize, padding: usize, dilation: usize) -> Axis {
    let reach = (kernel - 1) * dilation + 1;
    let out = (size + 2 * padding - reach) / stride + 1;
    Axis { size, out, windows: Windows::Steps { kernel, stride, padding, dilation } }
}

/// The dimensions of some poolings; the last with windows beyond the end, as `ceil_mode` makes them.
fn cases() -> Vec<[Axis; 3]> {
    let one = Axis::whole();
    let mut beyond = steps(7, 2, 2, 0, 1);
    beyond.out += 1;
    vec![
        [one, steps(6, 2, 2, 0, 1), steps(8, 2, 2, 0, 1)],
        [one, steps(9, 3, 2, 1, 1), steps(40, 3, 2, 1, 1)],
        [one, steps(5, 3, 1, 1, 1), steps(37, 5, 1, 2, 1)],
        [steps(4, 2, 1, 1, 1), steps(5, 3, 3, 1, 1), steps(11, 3, 3, 1, 1)],
        [steps(3, 2, 1, 0, 1), one, steps(30, 4, 5, 2, 1)],
        [one, Axis::adaptive(7, 3), Axis::adaptive(10, 4)],
        [Axis::adaptive(3, 5), Axis::adaptive(4, 4), Axis::adaptive(6, 1)],
        [one, beyond, beyond],
    ]
}

fn dilated() -> Vec<[Axis; 3]> {
    let one = Axis::whole();
    vec![
        [one, steps(9, 2, 1, 1, 3), steps(20, 3, 2, 1, 2)],
        [steps(6, 2, 2, 1, 2), one, steps(20, 3, 1, 1, 4)],
        [one, one, steps(25, 3, 7, 1, 2)],
    ]
}

const BATCH: [usize; 2] = [2, 3];

fn shape(axes: &[Axis; 3], size: fn(&Axis) -> usize) -> Vec<usize> {
    BATCH.into_iter().chain(axes.iter().map(size)).collect()
}

/// An array `[n, c, d, h, w]`, row-major or with the channels last.
fn array(dtype: DType, shape: &[usize], values: &[f64], last: bool) -> Array {
    let mut a = Array::of(dtype, shape, values);
    if last {
        let [_, c, d, h, w] = shape else { unreachable!() };
        a.strides = [c * d * h * w, 1, h * w * c, w * c, *c].as_slice().into();
        a.fill(&values.iter().map(|&v| crate::dtype::c128::new(v, 0.0)).collect::<Vec<_>>());
    }
    a
}

fn random(rng: &mut Rng, shape: &[usize]) -> Vec<f64> {
    (0..shape.iter().product()).map(|_| (rng.value() * 8.0).round() / 4.0).collect()
}

/// For each result, the elements of its window as places within the plane, by definition.
fn covered(axes: &[Axis; 3]) -> Vec<Vec<usize>> {
    let along = |a: &Axis, o: usize| {
        let w = a.window(o);
        (0..w.count).map(|k| w.start + k * a.step()).collect::<Vec<_>>()
    };
    let [d, h, w] = axes;
    let mut all = Vec::new();
    for o in 0..d.out * h.out * w.out {
        let (i, j, k) = (o / (h.out * w.out), o / w.out % h.out, o % w.out);
        let mut window = Vec::new();
        for z in along(d, i) {
            for y in along(h, j) {
                window.extend(along(w, k).into_iter().map(|x| (z * h.size + y) * w.size + x));
            }
        }
        all.push(window);
    }
    all
}

#[test]
fn maxima_and_their_gradient() {
    let mut rng = Rng(5);
    for axes in cases().into_iter().chain(dilated()) {
        let (from, to) = (shape(&axes, |a| a.size), shape(&axes, |a| a.out));
        let (inner, windows) = (from[2..].iter().product::<usize>(), covered(&axes));
        for (dtype, last) in [DType::F32, DType::F64, DType::BF16].into_iter().flat_map(|d| [(d, false), (d, true)]) {
            let mut values = random(&mut rng, &from);
            values[inner / 2] = f64::NAN;
            values[inner - 1] = f64::NAN;
            let x = array(dtype, &from, &values, last);
            let [y, alone] = [(); 2].map(|()| array(dtype, &to, &vec![7.0; windows.len() * 6], last));
            let places = array(DType::I64, &to, &vec![0.0; windows.len() * 6], last);
            max_pool(x.view(), &axes, y.view(), Some(places.view())).unwrap();
            max_pool(x.view(), &axes, alone.view(), None).unwrap();
            let (mut want, mut at) = (Vec::new(), Vec::new());
            for plane in values.chunks(inner) {
                for window in &windows {
                    let (mut best, mut place) = (f64::NEG_INFINITY, window.first().copied());
                    for &i in window {
                        if plane[i] > best || plane[i].is_nan() {
                            (best, place) = (plane[i], Some(i));
                        }
                    }
                    want.push(best);
                    at.push(place);
                }
            }
            close(&y.reals(), &want, 0.0);
            close(&alone.reals(), &want, 0.0);
            for (got, want) in places.reals().iter().zip(&at) {
                assert!(want.is_none_or(|w| w as f64 == *got), "{axes:?}: {got} is not {want:?}");
            }
            let g = random(&mut rng, &to);
            let (grad, dx) = (array(dtype, &to, &g, last), array(dtype, &from, &vec![3.0; values.len()], last));
            max_pool_backward(grad.view(), places.view(), &axes, dx.view()).unwrap();
            let mut want = vec![0.0; values.len()];
            for (i, place) in places.reals().iter().enumerate() {
                want[i / windows.len() * inner + *place as usize] += g[i];
            }
            close(&dx.reals(), &want, 1e-12);
        }
    }
}

#[test]
fn means_and_their_gradient() {
    let mut rng = Rng(6);
    for axes in cases() {
        let (from, to) = (shape(&axes, |a| a.size), shape(&axes, |a| a.out));
        let (inner, windows) = (from[2..].iter().product::<usize>(), covered(&axes));
        let extents: Vec<usize> = (0..windows.len())
            .map(|o| {
                let [_, h, w] = &axes;
                let at = [o / (h.out * w.out), o / w.out % h.out, o % w.out];
                axes.iter().zip(at).map(|(a, o)| a.window(o).extent).product()
            })
            .collect();
        for divisor in [Divisor::Extent, Divisor::Count, Divisor::Given(-3)] {
            let by = |o: usize| match divisor {
                Divisor::Extent => extents[o] as f64,
                Divisor::Count => windows[o].len() as f64,
                Divisor::Given(n) => n as f64,
            };
            for (dtype, last) in [(DType::F32, false), (DType::F32, true), (DType::F64, false), (DType::F64, true)] {
                let tolerance = if dtype == DType::F64 { 1e-12 } else { 2e-6 };
                let values = random(&mut rng, &from);
                let x = array(dtype, &from, &values, last);
                let y = array(dtype, &to, &vec![7.0; windows.len() * 6], last);
                mean_pool(x.view(), &axes, divisor, y.view()).unwrap();
                let of = |plane: &[f64], o: usize| windows[o].iter().map(|&i| plane[i]).sum::<f64>() / by(o);
                let want: Vec<f64> = values
                    .chunks(inner)
                    .flat_map(|p| (0..windows.len()).map(move |o| (p, o)))
                    .map(|(p, o)| of(p, o))
                    .collect();
                close(&y.reals(), &want, tolerance);
                let g = random(&mut rng, &to);
                let (grad, dx) = (array(dtype, &to, &g, last), array(dtype, &from, &vec![3.0; values.len()], last));
                mean_pool_backward(grad.view(), &axes, divisor, dx.view()).unwrap();
                let mut want = vec![0.0; values.len()];
                for (i, g) in g.iter().enumerate() {
                    let (plane, o) = (i / windows.len(), i % windows.len());
                    windows[o].iter().for_each(|&at| want[plane * inner + at] += g / by(o));
                }
                close(&dx.reals(), &want, tolerance);
            }
        }
    }
}

#[test]
fn a_place_outside_is_an_error() {
    let x = Array::of(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let out = Array::zeros(DType::F32, &[2, 3]);
    let places = Array::of(DType::I64, &[2, 2], &[2.0, 0.0, 1.0, 2.0]);
    max_unpool(x.view(), places.view(), out.view(), &[3]).unwrap();
    assert_eq!(out.reals(), [2.0, 0.0, 1.0, 0.0, 3.0, 4.0]);
    for wrong in [-1.0, 3.0] {
        let places = Array::of(DType::I64, &[2, 2], &[0.0, 1.0, wrong, 2.0]);
        assert!(max_unpool(x.view(), places.view(), out.view(), &[3]).is_err());
        let axes = [Axis::whole(), Axis::whole(), Axis { size: 3, out: 2, ..Axis::whole() }];
        let shape = |a: &Array, n: usize| Array::of(a.dtype, &[1, 2, 1, 1, n], &a.reals());
        let (g, at, dx) = (shape(&x, 2), shape(&places, 2), shape(&out, 3));
        assert!(max_pool_backward(g.view(), at.view(), &axes, dx.view()).is_err());
    }
}
