//! Products, softmax and scans against plain loops.

use super::*;
use crate::dtype::f16;
use crate::gpu::{cumulative, matmul, softmax, softmax_backward, supports};
use crate::kinds::Scan;

pub(super) fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| (((i + seed) * 7919 % 1009) as f32 - 500.0) / 250.0).collect()
}

#[test]
fn products_of_every_tile() {
    let Some(_shared) = ready("matmul") else { return };
    for (batch, m, k, n) in [
        (1, 1, 1, 1),
        (2, 3, 5, 4),
        (1, 1, 300, 70),
        (3, 70, 33, 2),
        (2, 20, 17, 33),
        (1, 65, 40, 100),
        (1, 130, 9, 129),
        (1, 40, 5000, 40),
        (2, 10, 5003, 40),
        (1, 5, 20011, 7),
        (1, 12, 100, 150),
        (1, 150, 40, 9),
        (1, 600, 30, 1500),
    ] {
        let (a, b) = (numbers(batch * m * k, 1), numbers(batch * k * n, 2));
        let old = numbers(batch * m * n, 3);
        let want: Vec<f64> = (0..batch * m * n)
            .map(|e| {
                let (z, i, j) = (e / (m * n), e / n % m, e % n);
                (0..k).map(|d| a[z * m * k + i * k + d] as f64 * b[z * k * n + d * n + j] as f64).sum::<f64>()
            })
            .collect();
        let (ga, gb) = (Dev::new(&[batch, m, k], &a), Dev::new(&[batch, k, n], &b));
        for (alpha, beta) in [(1.0, 0.0), (0.5, 2.0)] {
            let out = Dev::new(&[batch, m, n], &old);
            matmul(&ga.view(), &gb.view(), &out.view(), alpha, beta).unwrap();
            for (e, got) in out.get::<f32>().into_iter().enumerate() {
                let want = alpha * want[e] + beta * old[e] as f64;
                let limit = 1e-6 * (k as f64).sqrt() * 16.0 + 1e-6;
                assert!((got as f64 - want).abs() < limit, "{batch} {m} {k} {n} at {e}: {got} {want}");
            }
        }
        // The transposed product from transposed views, written through a transposed view.
        let out = Dev::zeros(&[batch, m, n], DType::F32);
        let (ta, tb) = (ga.layout.transpose(1, 2), gb.layout.transpose(1, 2));
        let to = out.layout.transpose(1, 2);
        matmul(&gb.view_of(&tb), &ga.view_of(&ta), &out.view_of(&to), 1.0, 0.0).unwrap();
        for (got, want) in out.get::<f32>().into_iter().zip(&want) {
            assert!((got as f64 - want).abs() < 1e-6 * (k as f64).sqrt() * 16.0 + 1e-6);
        }
    }
}

#[test]
fn products_of_other_dtypes() {
    let Some(_shared) = ready("matmul dtypes") else { return };
    let (a, b) = ([1i64, 2, 3, 4, 5, 1 << 33], [1i64, -1, 2, 0, 3, 5]);
    if supports(GPU, DType::I64) {
        let out = Dev::zeros(&[2, 2], DType::I64);
        matmul(&Dev::new(&[2, 3], &a).view(), &Dev::new(&[3, 2], &b).view(), &out.view(), 1.0, 0.0).unwrap();
        assert_eq!(out.get::<i64>(), [14, 14, 14 + 3 * (1 << 33), -4 + 5 * (1 << 33)]);
    }
    let half = |v: &[i64]| v.iter().map(|x| f16::from_f32((*x % 7) as f32)).collect::<Vec<_>>();
    let out = Dev::zeros(&[2, 2], DType::F16);
    matmul(&Dev::new(&[2, 3], &half(&a)).view(), &Dev::new(&[3, 2], &half(&b)).view(), &out.view(), 1.0, 0.0).unwrap();
    let got: Vec<f32> = out.get::<f16>().iter().map(|v| v.to_f32()).collect();
    let last = ((1i64 << 33) % 7) as f32;
    assert_eq!(got, [14., 14., 14. + 3. * last, -4. + 5. * last]);
    if supports(GPU, DType::F64) {
        let out = Dev::zeros(&[1, 1], DType::F64);
        let a = Dev::new(&[1, 2], &[1.0 + 1e-12, 1.0]);
        matmul(&a.view(), &Dev::new(&[2, 1], &[1.0, -1.0]).view(), &out.view(), 1.0, 0.0).unwrap();
        assert_eq!(out.get::<f64>(), [1.0 + 1e-12 - 1.0]);
    }
}

#[test]
fn long_sums_of_halves_are_rounded_once() {
    let Some(_shared) = ready("matmul of halves") else { return };
    let k = 32_785; // halves of it round down, the whole rounds up
    let ones = vec![f16::from_f32(1.0); 2 * k];
    let (a, b) = (Dev::new(&[2, 1, k], &ones), Dev::new(&[2, k, 1], &ones));
    for (beta, want) in [(0.0, 32_800.0), (16.0, 32_832.0)] {
        let out = Dev::new(&[2, 1, 1], &[f16::from_f32(2.0); 2]);
        matmul(&a.view(), &b.view(), &out.view(), 1.0, beta).unwrap();
        let got: Vec<f32> = out.get::<f16>().iter().map(|v| v.to_f32()).collect();
        assert_eq!(got, [want; 2]);
    }
}

#[test]
fn softmax_both_ways() {
    let Some(_shared) = ready("softmax") else { return };
    for (shape, dim) in [([4usize, 10], 1), ([10, 4], 0), ([3, 1000], 1), ([70, 5], 0), ([2, 33], 1)] {
        let n = shape[0] * shape[1];
        let (x, g) = (numbers(n, 5), numbers(n, 6));
        let (a, grad) = (Dev::new(&shape, &x), Dev::new(&shape, &g));
        for log in [false, true] {
            let (out, back) = (Dev::zeros(&shape, DType::F32), Dev::zeros(&shape, DType::F32));
            softmax(&a.view(), dim, &out.view(), log).unwrap();
            softmax_backward(&grad.view(), &out.view(), dim, &back.view(), log).unwrap();
            let (got, back) = (out.get::<f32>(), back.get::<f32>());
            for r in 0..n / shape[dim] {
                let at = |i: usize| if dim == 1 { r * shape[1] + i } else { i * shape[1] + r };
                let total: f64 = (0..shape[dim]).map(|i| (x[at(i)] as f64).exp()).sum();
                let p = |i: usize| (x[at(i)] as f64).exp() / total;
                let dot: f64 = (0..shape[dim]).map(|i| g[at(i)] as f64 * if log { 1.0 } else { p(i) }).sum();
                for i in 0..shape[dim] {
                    let want = if log { p(i).ln() } else { p(i) };
                    assert!((got[at(i)] as f64 - want).abs() < 3e-6, "{shape:?} {log}");
                    let g = g[at(i)] as f64;
                    let want = if log { g - p(i) * dot } else { (g - dot) * p(i) };
                    assert!((back[at(i)] as f64 - want).abs() < 2e-5, "{shape:?} {log} {} {want}", back[at(i)]);
                }
            }
        }
    }
    let a = Dev::new(&[1, 3], &[f32::NEG_INFINITY, 0.0, 1000.0]);
    softmax(&a.view(), 1, &a.view(), false).unwrap();
    assert_eq!(a.get::<f32>(), [0., 0., 1.]);
}

#[test]
fn scans_of_every_kind() {
    let Some(_shared) = ready("cumulative") else { return };
    for (shape, dim) in [
        ([3usize, 7], 1),
        ([7, 3], 0),
        ([2, 1000], 1),
        ([1, 5000], 1),
        ([300, 3], 0),
        ([2, 257], 1),
        ([1, 20001], 1),
        ([9000, 2], 0),
    ] {
        let n = shape[0] * shape[1];
        for kind in [Scan::Sum, Scan::Prod, Scan::Max, Scan::Min, Scan::LogSumExp] {
            let mut x = numbers(n, 3);
            if kind == Scan::Prod {
                x.iter_mut().for_each(|v| *v = 1.0 + *v / 1000.0);
            } else {
                x[n / 2] = if kind == Scan::Max { f32::NAN } else { x[n / 2] };
            }
            let a = Dev::new(&shape, &x);
            let (out, index) = (Dev::zeros(&shape, DType::F32), Dev::zeros(&shape, DType::I64));
            let with_index = matches!(kind, Scan::Max | Scan::Min).then_some(index.view());
            cumulative(kind, &a.view(), dim, &out.view(), with_index.as_ref()).unwrap();
            let (got, index) = (out.get::<f32>(), index.get::<i64>());
            for r in 0..n / shape[dim] {
                let at = |i: usize| if dim == 1 { r * shape[1] + i } else { i * shape[1] + r };
                let (mut acc, mut place) = (x[at(0)] as f64, 0);
                for i in 0..shape[dim] {
                    let v = x[at(i)] as f64;
                    let takes = v.is_nan() || (!acc.is_nan() && if kind == Scan::Max { v >= acc } else { v <= acc });
                    acc = match kind {
                        _ if i == 0 => v,
                        Scan::Sum => acc + v,
                        Scan::Prod => acc * v,
                        Scan::LogSumExp => acc.max(v) + (-(acc - v).abs()).exp().ln_1p(),
                        _ if takes => v,
                        _ => acc,
                    };
                    place = if takes { i } else { place };
                    let g = got[at(i)] as f64;
                    assert!(
                        (g - acc).abs() < 1e-4 * acc.abs().max(1.0) || (g.is_nan() && acc.is_nan()),
                        "{kind:?} {shape:?} {i}: {g} {acc}"
                    );
                    if with_index.is_some() {
                        assert_eq!(index[at(i)], place as i64, "{kind:?} {shape:?} {r} {i}");
                    }
                }
            }
        }
    }
    let a = Dev::new(&[5], &[true, true, false, true, true]);
    let out = Dev::zeros(&[5], DType::I64);
    cumulative(Scan::Sum, &a.view(), 0, &out.view(), None).unwrap();
    assert_eq!(out.get::<i64>(), [1, 2, 2, 3, 4]);
}
