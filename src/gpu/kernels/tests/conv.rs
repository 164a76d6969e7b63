//! Convolutions through naga in every dtype, and against plain loops: what `contract` does with windows.

use super::kernels::{Hollow, checked, known};
use super::linear::numbers;
use super::*;
use crate::gpu::{convolution, convolution_weight_gradient};
use crate::layout::window::Motion;

/// The sizes of a convolution over two dimensions; the windows of a transpose slide over its result.
#[derive(Clone, Copy)]
struct Case {
    batch: usize,
    groups: usize,
    /// Channels of a group: of the larger side, and of the smaller one.
    channels: [usize; 2],
    large: [usize; 2],
    kernel: [usize; 2],
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
}

impl Case {
    fn motion(&self, transposed: bool) -> Motion<'_> {
        let Case { stride, padding, dilation, groups, .. } = self;
        Motion { stride, padding, dilation, groups: *groups, transposed }
    }
    fn small(&self, i: usize) -> usize {
        let room = self.large[i] + 2 * self.padding[i] as usize;
        (room - (self.kernel[i] - 1) * self.dilation[i] as usize - 1) / self.stride[i] as usize + 1
    }
    /// The shapes of the larger side, the smaller one and the weight.
    fn shapes(&self) -> [[usize; 4]; 3] {
        let [c, f] = self.channels;
        [
            [self.batch, self.groups * c, self.large[0], self.large[1]],
            [self.batch, self.groups * f, self.small(0), self.small(1)],
            [self.groups * f, c, self.kernel[0], self.kernel[1]],
        ]
    }
    /// Calls `f` with the linear indices of a larger element, the smaller one that its window belongs to, the weight between.
    fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let [large, small, w] = self.shapes();
        let at = |s: [usize; 4], i: [usize; 4]| i.iter().zip(s).fold(0, |e, (i, n)| e * n + i);
        let [c, to] = self.channels;
        for e in 0..small.iter().product() {
            let (n, o, y, x) = (
                e / (small[1] * small[2] * small[3]),
                e / (small[2] * small[3]) % small[1],
                e / small[3] % small[2],
                e % small[3],
            );
            for k in 0..c * w[2] * w[3] {
                let (within, i, j) = (k / (w[2] * w[3]), k / w[3] % w[2], k % w[3]);
                let place = |o: usize, k: usize, d: usize| {
                    (o as i64 * self.stride[d] + k as i64 * self.dilation[d] - self.padding[d]) as usize
                };
                let (row, col) = (place(y, i, 0), place(x, j, 1));
                if row < large[2] && col < large[3] {
                    f(at(large, [n, o / to * c + within, row, col]), e, at(w, [o, within, i, j]));
                }
            }
        }
    }
}

const PLAIN: Case = Case {
    batch: 2,
    groups: 1,
    channels: [3, 5],
    large: [7, 9],
    kernel: [3, 2],
    stride: [1, 1],
    padding: [0, 0],
    dilation: [1, 1],
};
const CASES: [Case; 10] = [
    PLAIN,
    Case { padding: [2, 1], stride: [2, 3], dilation: [1, 2], ..PLAIN },
    // More stride than kernel, and steps of the taps that share a factor with it.
    Case { stride: [4, 3], ..PLAIN },
    Case { stride: [2, 4], dilation: [2, 6], padding: [3, 2], kernel: [3, 3], large: [9, 17], ..PLAIN },
    Case { groups: 3, channels: [1, 1], padding: [1, 1], kernel: [3, 3], ..PLAIN },
    Case { groups: 2, channels: [2, 40], padding: [1, 0], dilation: [2, 1], large: [12, 11], ..PLAIN },
    // Long sums over channels, and over a batch.
    Case { batch: 1, channels: [640, 6], large: [4, 4], padding: [1, 1], ..PLAIN },
    Case { batch: 12, channels: [2, 3], large: [14, 15], ..PLAIN },
    // An invocation for each result, a workgroup for each weight.
    Case { batch: 3, groups: 9, channels: [1, 1], large: [21, 20], padding: [1, 1], kernel: [3, 3], ..PLAIN },
    Case {
        batch: 5,
        groups: 3,
        channels: [2, 3],
        large: [17, 19],
        stride: [1, 2],
        dilation: [2, 1],
        padding: [2, 1],
        ..PLAIN
    },
];

fn close(got: &[f32], want: &[f64], what: &str) {
    for (e, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((*got as f64 - want).abs() < 1e-4 * (1.0 + want.abs()), "{what} at {e}: {got} {want}");
    }
}

#[test]
fn convolutions_against_loops() {
    let Some(_shared) = ready("convolution") else { return };
    for (i, case) in CASES.iter().enumerate() {
        let shapes = case.shapes();
        let [large, small, w] = [0, 1, 2].map(|i| numbers(shapes[i].iter().product(), i + 1));
        let [dl, ds, dw] = [(&large, 0), (&small, 1), (&w, 2)].map(|(data, i)| Dev::new(&shapes[i], data));
        for transposed in [false, true] {
            let motion = case.motion(transposed);
            let (x, from, to) = if transposed { (&ds, &small, 0) } else { (&dl, &large, 1) };
            let bias = numbers(shapes[to][1], 4);
            let plane = shapes[to][2] * shapes[to][3];
            let mut want: Vec<f64> =
                (0..shapes[to].iter().product()).map(|e| bias[e / plane % shapes[to][1]] as f64).collect();
            case.each(|l, s, k| {
                let (read, write) = if transposed { (s, l) } else { (l, s) };
                want[write] += from[read] as f64 * w[k] as f64;
            });
            let y = Dev::zeros(&shapes[to], DType::F32);
            let b = Dev::new(&[bias.len()], &bias);
            convolution(&x.view(), &dw.view(), Some(&b.view()), &y.view(), &motion).unwrap();
            close(&y.get::<f32>(), &want, &format!("case {i}, transposed {transposed}"));
        }
        let mut want = vec![0.0; w.len()];
        case.each(|l, s, k| want[k] += large[l] as f64 * small[s] as f64);
        for transposed in [false, true] {
            let (g, x) = if transposed { (&dl, &ds) } else { (&ds, &dl) };
            let got = Dev::zeros(&shapes[2], DType::F32);
            convolution_weight_gradient(&g.view(), &x.view(), &got.view(), &case.motion(transposed)).unwrap();
            close(&got.get::<f32>(), &want, &format!("weights of case {i}, transposed {transposed}"));
        }
    }
}

#[test]
fn convolutions_validate() {
    checked(|| {
        for dtype in known().filter(|d| d.is_float()) {
            for case in CASES {
                let [large, small, w] = case.shapes();
                let of = |shape: &[usize]| Hollow::new(shape, dtype, false);
                let (l, s, k) = (of(&large), of(&small), of(&w));
                let (few, many) = (of(&small[1..2]), of(&large[1..2]));
                convolution(&l.view(), &k.view(), Some(&few.view()), &s.view(), &case.motion(false))?;
                convolution(&s.view(), &k.view(), Some(&many.view()), &l.view(), &case.motion(true))?;
                convolution(&l.view(), &k.view(), None, &s.view(), &case.motion(false))?;
                convolution_weight_gradient(&s.view(), &l.view(), &k.view(), &case.motion(false))?;
            }
        }
        Ok(())
    });
}
