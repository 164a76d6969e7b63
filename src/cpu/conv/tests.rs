//! Convolutions, their transposes and gradients against plain loops in f64: random sizes, layouts, motions and dtypes, with
//! blocks smaller and larger than a row.

use super::*;
use crate::cpu::parallel::set_num_threads;
use crate::cpu::testing::{Array, Rng, close};

struct Case {
    x: Vec<usize>,
    w: Vec<usize>,
    y: Vec<usize>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: usize,
}
impl Case {
    fn motion(&self, transposed: bool) -> Motion<'_> {
        let (stride, padding, dilation) = (&self.stride, &self.padding, &self.dilation);
        Motion { stride, padding, dilation, groups: self.groups, transposed }
    }
    fn random(rng: &mut Rng, dims: usize, most: usize, channels: usize) -> Case {
        let list =
            |rng: &mut Rng, low: i64, n: usize| -> Vec<i64> { (0..dims).map(|_| low + rng.below(n) as i64).collect() };
        let (stride, padding, dilation) = (list(rng, 1, 3), list(rng, 0, 3), list(rng, 1, 2));
        let kernel: Vec<usize> = (0..dims).map(|_| 1 + rng.below(4)).collect();
        let groups = 1 + rng.below(3);
        let (from, to) = (1 + rng.below(channels), 1 + rng.below(channels));
        let input: Vec<usize> = (0..dims)
            .map(|i| {
                ((kernel[i] - 1) * dilation[i] as usize + 1 + rng.below(most))
                    .saturating_sub(2 * padding[i] as usize)
                    .max(1)
            })
            .collect();
        let places = (0..dims).map(|i| {
            let room = input[i] + 2 * padding[i] as usize - (kernel[i] - 1) * dilation[i] as usize;
            (room - 1) / stride[i] as usize + 1
        });
        let batch = 1 + rng.below(3);
        let y = [batch, to * groups].into_iter().chain(places).collect();
        let x = [&[batch, from * groups], &input[..]].concat();
        let w = [&[to * groups, from], &kernel[..]].concat();
        Case { x, w, y, stride, padding, dilation, groups }
    }
    /// With as many inputs and outputs for each group, and the same motion in all dimensions.
    fn new(
        [batch, groups]: [usize; 2],
        [from, to]: [usize; 2],
        size: &[usize],
        [kernel, stride, padding, dilation]: [usize; 4],
    ) -> Case {
        let reach = (kernel - 1) * dilation + 1;
        let places: Vec<usize> = size.iter().map(|n| (n + 2 * padding - reach) / stride + 1).collect();
        let all = |n: usize| vec![n as i64; size.len()];
        Case {
            x: [&[batch, from * groups], size].concat(),
            w: [&[to * groups, from], &vec![kernel; size.len()][..]].concat(),
            y: [&[batch, to * groups], &places[..]].concat(),
            stride: all(stride),
            padding: all(padding),
            dilation: all(dilation),
            groups,
        }
    }
    /// Calls `f` with the indices of what meets: in x, w and y.
    fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let dims = self.stride.len();
        let index = |shape: &[usize], at: &[usize]| at.iter().zip(shape).fold(0, |i, (&a, &n)| i * n + a);
        let (to, from) = (self.w[0] / self.groups, self.w[1]);
        let all: Vec<usize> = [&self.y[..], &self.w[1..]].concat();
        let total: usize = all.iter().product();
        for mut rest in 0..total {
            let mut at = vec![0; all.len()];
            for (a, &n) in at.iter_mut().zip(&all).rev() {
                *a = rest % n;
                rest /= n;
            }
            let (y, c) = (&at[..dims + 2], at[dims + 2]);
            let kernel = &at[dims + 3..];
            let place = |i: usize| {
                (y[2 + i] as i64 * self.stride[i] + kernel[i] as i64 * self.dilation[i] - self.padding[i]) as usize
            };
            let x: Vec<usize> = [y[0], y[1] / to * from + c].into_iter().chain((0..dims).map(place)).collect();
            if x.iter().zip(&self.x).all(|(a, n)| a < n) {
                let w: Vec<usize> = [y[1], c].into_iter().chain(kernel.iter().copied()).collect();
                f(index(&self.x, &x), index(&self.w, &w), index(&self.y, y));
            }
        }
    }
}

fn check(rng: &mut Rng, dtype: DType, case: &Case, tolerance: f64) {
    let [x, w, y] = [&case.x, &case.w, &case.y].map(|s| Array::random(rng, dtype, s));
    let (to, back) = (Array::random(rng, dtype, &case.y[1..2]), Array::random(rng, dtype, &case.x[1..2]));
    let (xs, ws, ys) = (x.reals(), w.reals(), y.reals());
    let fresh = |rng: &mut Rng, s: &[usize]| Array::scattered(rng, dtype, s);

    let inner: usize = case.y[2..].iter().product();
    let mut want: Vec<f64> = (0..ys.len()).map(|i| to.reals()[i / inner % case.y[1]]).collect();
    case.each(|i, j, k| want[k] += xs[i] * ws[j]);
    let out = fresh(rng, &case.y);
    convolution(x.view(), w.view(), Some(to.view()), out.view(), &case.motion(false)).unwrap();
    close(&out.reals(), &want, tolerance);

    let inner: usize = case.x[2..].iter().product();
    let mut want: Vec<f64> = (0..xs.len()).map(|i| back.reals()[i / inner % case.x[1]]).collect();
    case.each(|i, j, k| want[i] += ys[k] * ws[j]);
    let out = fresh(rng, &case.x);
    convolution(y.view(), w.view(), Some(back.view()), out.view(), &case.motion(true)).unwrap();
    close(&out.reals(), &want, tolerance);

    let mut want = vec![0.0; ws.len()];
    case.each(|i, j, k| want[j] += xs[i] * ys[k]);
    let (one, other) = (fresh(rng, &case.w), fresh(rng, &case.w));
    weight_gradient(y.view(), x.view(), one.view(), &case.motion(false)).unwrap();
    close(&one.reals(), &want, tolerance);
    weight_gradient(x.view(), y.view(), other.view(), &case.motion(true)).unwrap();
    close(&other.reals(), &want, tolerance);
}

#[test]
fn agrees_with_plain_loops() {
    let mut rng = Rng(53);
    for round in 0..60 {
        let case = Case::random(&mut rng, 1 + round % 3, [40, 9, 5][round % 3], 5);
        for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-11), (DType::F16, 3e-2), (DType::BF16, 2e-1)] {
            check(&mut rng, dtype, &case, tolerance);
        }
    }
    // Blocks of terms, parts of a row, many panels of channels.
    for (dims, most, channels) in [(1, 900, 3), (2, 40, 3), (2, 8, 40), (3, 9, 4), (1, 20, 90)] {
        let case = Case::random(&mut rng, dims, most, channels);
        check(&mut rng, DType::F32, &case, 1e-3);
        check(&mut rng, DType::F64, &case, 1e-10);
    }
}

#[test]
fn the_bits_do_not_depend_on_the_threads() {
    let mut rng = Rng(59);
    let case = Case::random(&mut rng, 2, 30, 24);
    same_bits(&mut rng, &case);
    for channels in [[12, 40], [40, 12]] {
        same_bits(&mut rng, &Case::new([5, 1], channels, &[14, 30], [4, 2, 1, 1]));
    }
}

fn same_bits(rng: &mut Rng, case: &Case) {
    let (x, w, y) = (
        Array::random(rng, DType::F32, &case.x),
        Array::random(rng, DType::F32, &case.w),
        Array::random(rng, DType::F32, &case.y),
    );
    let run = |threads: usize| {
        set_num_threads(threads);
        let outs = [&case.y, &case.x, &case.w].map(|s| Array::zeros(DType::F32, s));
        convolution(x.view(), w.view(), None, outs[0].view(), &case.motion(false)).unwrap();
        convolution(y.view(), w.view(), None, outs[1].view(), &case.motion(true)).unwrap();
        weight_gradient(y.view(), x.view(), outs[2].view(), &case.motion(false)).unwrap();
        outs.map(|o| o.reals())
    };
    let alone = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == alone, "{threads} threads");
    }
    set_num_threads(2);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rng = Rng(61);
    let case = Case::random(&mut rng, 2, 5, 3);
    let [x, w, y] = [&case.x, &case.w, &case.y].map(|s| Array::random(&mut rng, DType::F32, s));
    let motion = case.motion(false);
    assert!(convolution(x.view(), w.view(), None, x.view(), &motion).is_err());
    assert!(convolution(x.view(), w.view(), Some(x.view()), y.view(), &motion).is_err());
    assert!(convolution(x.view(), w.view(), None, y.view(), &Motion { groups: 7, ..motion }).is_err());
    assert!(convolution(x.view(), w.view(), None, y.view(), &Motion { stride: &[0, 1], ..motion }).is_err());
    assert!(weight_gradient(x.view(), x.view(), w.view(), &motion).is_err());
}

/// Dense results, into which blocks write at once: few filters and enough to fill vectors, several small images in a block,
/// rows that end within a vector, beyond several and with one, kernels of one element.
#[test]
fn dense_results_agree_with_plain_loops() {
    let mut rng = Rng(71);
    for (batch, groups, from, to, size) in [
        (5, 1, 3, 30, [6, 7]),
        (2, 2, 2, 33, [9, 28]),
        (3, 1, 2, 5, [3, 4]),
        (2, 4, 1, 1, [7, 28]),
        (1, 2, 2, 3, [3, 141]),
        (3, 1, 5, 20, [4, 16]),
        (2, 1, 3, 17, [3, 32]),
        (2, 2, 4, 6, [6, 8]),
    ] {
        for (kernel, stride, padding) in [(3, 1, 1), (3, 2, 0), (1, 1, 0), (1, 2, 0)] {
            let case = Case::new([batch, groups], [from, to], &size, [kernel, stride, padding, 1]);
            for (dtype, tolerance) in [(DType::F32, 2e-4), (DType::F64, 1e-11)] {
                dense(&mut rng, dtype, &case, tolerance);
            }
        }
    }
}

fn dense(rng: &mut Rng, dtype: DType, case: &Case, tolerance: f64) {
    let [x, w, y] = [&case.x, &case.w, &case.y].map(|s| {
        let n = s.iter().product();
        Array::of(dtype, s, &(0..n).map(|_| rng.value()).collect::<Vec<_>>())
    });
    let (xs, ws, ys) = (x.reals(), w.reals(), y.reals());
    let [out, back, grad] = [&case.y, &case.x, &case.w].map(|s| Array::zeros(dtype, s));
    convolution(x.view(), w.view(), None, out.view(), &case.motion(false)).unwrap();
    convolution(y.view(), w.view(), None, back.view(), &case.motion(true)).unwrap();
    weight_gradient(y.view(), x.view(), grad.view(), &case.motion(false)).unwrap();
    let mut want = [vec![0.0; ys.len()], vec![0.0; xs.len()], vec![0.0; ws.len()]];
    case.each(|i, j, k| {
        want[0][k] += xs[i] * ws[j];
        want[1][i] += ys[k] * ws[j];
        want[2][j] += xs[i] * ys[k];
    });
    [out, back, grad].iter().zip(&want).for_each(|(found, want)| close(&found.reals(), want, tolerance));
}

/// Large batches of small images, of one dimension and two, and kernels that cover the image.
#[test]
fn small_images_agree_with_plain_loops() {
    let mut rng = Rng(73);
    for (batch, groups, from, to, size, kernel) in [
        (16, 1, 3, 30, &[4, 4][..], 3),
        (35, 2, 2, 5, &[5, 3], 2),
        (20, 1, 6, 17, &[2, 7], 2),
        (17, 1, 4, 9, &[6], 4),
        (18, 1, 5, 6, &[3, 3], 3),
        (3, 2, 5, 7, &[4, 4], 4),
        (1, 1, 70, 3, &[5], 5),
        (33, 1, 4, 1, &[2, 2], 2),
    ] {
        for (stride, padding) in [(1, 1), (2, 1), (1, 0), (2, 0)] {
            let case = Case::new([batch, groups], [from, to], size, [kernel, stride, padding, 1]);
            for (dtype, tolerance) in [(DType::F32, 2e-4), (DType::F64, 1e-11), (DType::BF16, 3e-1)] {
                if dtype != DType::BF16 {
                    dense(&mut rng, dtype, &case, tolerance);
                }
                check(&mut rng, dtype, &case, tolerance);
            }
        }
    }
}

/// Transposes with a stride and enough channels that a product is added: rows of several vectors, kernels longer and shorter
/// than the stride and with gaps, images of a few elements, all numbers of dimensions.
#[test]
fn strided_transposes_agree_with_plain_loops() {
    let mut rng = Rng(79);
    for (sizes, channels, size, motion) in [
        ([3, 1], [5, 12], &[9, 21][..], [4, 2, 1, 1]),
        ([2, 2], [3, 9], &[70], [3, 2, 1, 1]),
        ([5, 1], [4, 16], &[3, 37], [2, 2, 0, 1]),
        ([1, 1], [2, 8], &[5, 6, 7], [3, 2, 1, 1]),
        ([2, 1], [3, 10], &[8, 9], [2, 3, 0, 1]),
        ([4, 1], [1, 20], &[7, 35], [5, 2, 3, 2]),
        ([40, 1], [3, 9], &[2, 2], [2, 2, 0, 1]),
        ([1, 3], [6, 11], &[40, 18], [3, 3, 1, 1]),
        ([2, 1], [17, 8], &[6, 6], [5, 4, 4, 1]),
    ] {
        let case = Case::new(sizes, channels, size, motion);
        for (dtype, tolerance) in [(DType::F32, 2e-4), (DType::F64, 1e-11), (DType::F16, 6e-2)] {
            if dtype != DType::F16 {
                dense(&mut rng, dtype, &case, tolerance);
            }
            check(&mut rng, dtype, &case, tolerance);
        }
    }
}

/// An infinite element reaches the weights that meet it, and no others: in vectors it lies beside the ends of rows.
#[test]
fn what_is_infinite_stays_with_its_windows() {
    let shape = [1, 2, 4, 5];
    let mut values = vec![1.0; 40];
    values[5] = f64::INFINITY; // the first of the second row: the last column of windows does not meet it
    let (x, y) = (Array::of(DType::F32, &shape, &values), Array::of(DType::F32, &shape, &[1.0; 40]));
    let grad = Array::zeros(DType::F32, &[2, 1, 3, 3]);
    let motion = Motion { stride: &[1, 1], padding: &[1, 1], dilation: &[1, 1], groups: 2, transposed: false };
    weight_gradient(y.view(), x.view(), grad.view(), &motion).unwrap();
    let found = grad.reals();
    assert!(found.iter().enumerate().all(|(i, v)| v.is_infinite() == (i < 9 && i % 3 < 2) && !v.is_nan()), "{found:?}");
}
