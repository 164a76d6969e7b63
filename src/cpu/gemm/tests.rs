//! Matrix products against a plain triple loop in f64: every dtype, random shapes, transposes, broadcast batches, alpha
//! and beta, and bitwise equality at any number of threads. Shapes are small and odd, so that every edge of the tiles
//! is covered.
use super::*;
use crate::cpu::isa::{Isa, isa};
use crate::cpu::parallel::set_num_threads;
use crate::cpu::testing::{Array, Rng, close};

fn check(rng: &mut Rng, dtype: DType, batch: &[usize], [m, n, k]: [usize; 3], tolerance: f64) {
    let with = |r: usize, c: usize| [batch, &[r, c]].concat();
    let (a, mut b) = (Array::random(rng, dtype, &with(m, k)), Array::random(rng, dtype, &with(k, n)));
    let out = Array::random(rng, dtype, &with(m, n));
    if rng.below(3) == 0 {
        b.strides[..batch.len()].fill(0);
    }
    let beta = rng.below(2) as f64;
    let (x, y, mut want) = (a.values(), b.values(), out.values());
    for (at, w) in want.iter_mut().enumerate() {
        let (p, i, j) = (at / (m * n), at / n % m, at % n);
        *w = *w * beta + (0..k).map(|q| x[(p * m + i) * k + q] * y[(p * k + q) * n + j]).sum::<c128>() * 2.0;
    }
    matmul(a.view(), b.view(), out.view(), 2.0, beta).unwrap();
    if dtype.is_int() {
        let narrow = Array::zeros(dtype, &with(m, n));
        narrow.fill(&want);
        want = narrow.values();
    }
    let got = out.values();
    close(&got.iter().map(|v| v.re).collect::<Vec<_>>(), &want.iter().map(|v| v.re).collect::<Vec<_>>(), tolerance);
    close(&got.iter().map(|v| v.im).collect::<Vec<_>>(), &want.iter().map(|v| v.im).collect::<Vec<_>>(), tolerance);
}

#[test]
fn agrees_with_plain_loops() {
    use DType::*;
    let mut rng = Rng(31);
    for round in 0..40 {
        let size = [1 + rng.below(20), 1 + rng.below(20), rng.below(20)];
        let batch = &[2, 3][..round % 3];
        for (dtype, tolerance) in [(F32, 1e-4), (F64, 1e-12), (C64, 1e-4), (C128, 1e-12), (F16, 1e-2), (BF16, 5e-2)] {
            check(&mut rng, dtype, batch, size, tolerance);
        }
        for dtype in [U8, I8, I16, I32, I64] {
            check(&mut rng, dtype, batch, size, 0.0);
        }
    }
    check(&mut rng, F32, &[], [300, 170, 130], 1e-3);
    check(&mut rng, F32, &[2], [70, 600, 150], 1e-3);
    check(&mut rng, I32, &[], [70, 600, 50], 0.0);
}

/// The loop for large products, on small ones with every kind of edge, against the `gemm` crate.
#[cfg(target_arch = "x86_64")]
#[test]
fn blocks_agree_with_the_library() {
    if isa() < Isa::Avx2 {
        return; // the loop is never chosen there
    }
    fn check<T: blocked::Lanes + tiles::Vectors>(rng: &mut Rng, dtype: DType, alpha: T, beta: T, tolerance: f64) {
        let size = [1 + rng.below(220), 1 + rng.below(1200), 1 + rng.below(1100)];
        let [m, n, k] = size;
        let [a, b] = [[m, k], [k, n]].map(|shape| Array::random(rng, dtype, &shape));
        let out = Array::random(rng, dtype, &[m, n]);
        let want = Array::zeros(dtype, &[m, n]);
        want.fill(&out.values());
        let matrix = |x: &Array| {
            let v = x.view();
            Matrix { ptr: v.ptr as *mut T, rows: v.strides[0], cols: v.strides[1] }
        };
        // SAFETY: the arrays own their layouts, and the processor has AVX2.
        unsafe {
            blocked::multiply(size, matrix(&a), matrix(&b), matrix(&out), alpha, beta).unwrap();
            library(size, matrix(&a), matrix(&b), matrix(&want), alpha, beta).unwrap();
        }
        close(&out.reals(), &want.reals(), tolerance);
    }
    let mut rng = Rng(41);
    for round in 0..12 {
        let beta = (round % 3) as f32 / 2.0;
        check::<f32>(&mut rng, DType::F32, 0.5, beta, 1e-3);
        check::<f64>(&mut rng, DType::F64, 2.0, beta.into(), 1e-11);
    }
}

/// The loop for transposed weights, with every kind of edge and layout, against the `gemm` crate.
#[cfg(target_arch = "x86_64")]
#[test]
fn rows_agree_with_the_library() {
    fn check<T: Blas + tiles::Vectors>(rng: &mut Rng, dtype: DType, size: [usize; 3], factors: [T; 2], tolerance: f64) {
        let [m, n, k] = size;
        let [a, b] = [[m, k], [n, k]].map(|shape| Array::random(rng, dtype, &shape));
        let (dense, out) = (Array::zeros(dtype, &[n, k]), Array::random(rng, dtype, &[m, n]));
        dense.fill(&b.values()); // row-major: the second factor is its transpose
        let want = Array::zeros(dtype, &[m, n]);
        want.fill(&out.values());
        let matrix = |x: &Array| {
            let v = x.view();
            Matrix { ptr: v.ptr as *mut T, rows: v.strides[0], cols: v.strides[1] }
        };
        let [alpha, beta] = factors;
        // SAFETY: the arrays own their layouts.
        unsafe {
            let (a, b) = (matrix(&a), matrix(&dense).t());
            let few = m.min(n) <= dots::FEW && a.cols == 1;
            let run = if few { dots::multiply } else { rows::multiply };
            run(size, a, b, matrix(&out), alpha, beta).unwrap();
            library(size, a, b, matrix(&want), alpha, beta).unwrap();
        }
        close(&out.reals(), &want.reals(), tolerance);
    }
    let mut rng = Rng(43);
    for (round, size) in
        [[2, 256, 300], [300, 5, 40], [33, 15, 257], [1, 1, 1], [40, 700, 20], [600, 530, 30], [16, 31, 512]]
            .into_iter()
            .chain((0..12).map(|i| [1 + i * 5, 60 - i * 4, 1 + i * 61]))
            .chain((1..9).map(|i| [i, 50 - i, 20 * i - 3]))
            .chain((1..9).map(|i| [31 + i, i, 16 * i]))
            .enumerate()
    {
        let (alpha, beta) = ([1.0f32, 0.5][round % 2], (round % 3) as f32 / 2.0);
        check::<f32>(&mut rng, DType::F32, size, [alpha, beta], 1e-3);
        check::<f64>(&mut rng, DType::F64, size, [alpha.into(), beta.into()], 1e-11);
    }
}

#[test]
fn the_bits_do_not_depend_on_the_panels() {
    let mut rng = Rng(37);
    let wide = [(DType::F32, [700, 300, 1300]), (DType::F64, [300, 520, 600]), (DType::C64, [390, 300, 90])];
    let blocked = [(DType::F32, [700, 640, 620]), (DType::F64, [513, 1031, 530])];
    let small = [(DType::F32, [128, 128, 512]), (DType::F64, [257, 3, 500]), (DType::F32, [40, 193, 300])];
    let transposed = [(DType::F32, [32, 600, 700]), (DType::F64, [300, 128, 600]), (DType::F32, [5, 600, 300])];
    let plain = wide.into_iter().chain(small).chain(blocked).map(|x| (x, false));
    for ((dtype, size), transposed) in plain.chain(transposed.map(|x| (x, true))) {
        let [m, n, k] = size;
        let (a, mut b) = (Array::random(&mut rng, dtype, &[m, k]), Array::random(&mut rng, dtype, &[k, n]));
        if transposed {
            b = Array::zeros(dtype, &[n, k]);
            b.fill(&Array::random(&mut rng, dtype, &[n, k]).values());
            b.shape.reverse();
            b.strides.reverse();
        }
        let mut seen = Vec::new();
        for threads in [1, 2, 3, 4, 8] {
            let out = Array::zeros(dtype, &[m, n]);
            let before = num_threads();
            set_num_threads(threads);
            matmul(a.view(), b.view(), out.view(), 1.0, 0.0).unwrap();
            set_num_threads(before);
            seen.push(out.values());
        }
        assert!(seen.windows(2).all(|w| w[0] == w[1]));
    }
}

#[test]
fn an_unread_result_may_hold_anything() {
    let a = Array::of(DType::F32, &[2, 0], &[]);
    let b = Array::of(DType::F32, &[0, 3], &[]);
    let out = Array::of(DType::F32, &[2, 3], &[f64::NAN; 6]);
    matmul(a.view(), b.view(), out.view(), 1.0, 0.0).unwrap();
    assert_eq!(out.reals(), [0.0; 6]);
}
