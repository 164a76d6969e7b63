//! Matrix products against a plain triple loop in f64: every dtype, random shapes, transposes, broadcast batches, alpha
//! and beta, and bitwise equality at any number of threads. Shapes are small and odd, so that every edge of the tiles
//! is covered.
use super::*;
use crate::cpu::parallel::set_num_threads;
use crate::cpu::testing::{Array, Rng, close};
use crate::dtype::Scalar;

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

/// Products of real floats of every layout, with every kind of edge, whole and in parts: what they agree with is a plain loop,
/// and parts have the bits of the whole.
#[test]
fn layouts_and_parts_agree_with_plain_loops() {
    fn one<T>(first: [Matrix<T>; 4]) -> Series<T> {
        Series { first, steps: [0; 4], count: 1 }
    }
    fn check<T: tiles::Vectors>(rng: &mut Rng, dtype: DType, [m, n, k]: [usize; 3], tolerance: f64) {
        let (a, b, out) = (
            Array::random(rng, dtype, &[m, k]),
            Array::random(rng, dtype, &[k, n]),
            Array::random(rng, dtype, &[m, n]),
        );
        let [alpha, beta] = [[1.0, 0.5][rng.below(2)], [0.0, 0.0, 1.0, 2.0][rng.below(4)]];
        let (x, y, mut want) = (a.reals(), b.reals(), out.reals());
        for (at, w) in want.iter_mut().enumerate() {
            let sum: f64 = (0..k).map(|p| x[at / n * k + p] * y[p * n + at % n]).sum();
            *w = alpha * sum + if beta == 0.0 { 0.0 } else { beta * *w };
        }
        let matrix = |x: &Array| {
            let v = x.view();
            Matrix { ptr: v.ptr as *mut T, rows: v.strides[0], cols: v.strides[1] }
        };
        let [ma, mb, mo] = [matrix(&a), matrix(&b), matrix(&out)];
        let plan: Plan = Multiply::<T>::plan([m, n, k], [ma, mb, mo].map(|x| [x.rows, x.cols]));
        let factors = [alpha, beta].map(|x| T::from_scalar(Scalar::Float(x)));
        // SAFETY: the arrays own their layouts.
        unsafe { plan.multiply([m, n, k], one([ma, mb, mo, mo]), factors).unwrap() };
        let whole = out.values();
        close(&out.reals(), &want, tolerance);
        if beta == 0.0 {
            let [i, j] = [rng.below(m), rng.below(n)];
            for (from, to) in [(0, i), (i, m)] {
                for (left, right) in [(0, j), (j, n)].into_iter().filter(|(left, right)| to > from && right > left) {
                    let part = [ma.from(from, 0), mb.from(0, left), mo.from(from, left), mo.from(from, left)];
                    // SAFETY: the part lies inside.
                    unsafe { plan.multiply([to - from, right - left, k], one(part), factors).unwrap() };
                }
            }
            assert!(whole == out.values(), "{m} {n} {k}");
        }
    }
    let mut rng = Rng(43);
    let edges =
        [[1, 1, 0], [1, 300, 40], [300, 1, 40], [2, 270, 9], [90, 70, 2], [30, 240, 530], [260, 20, 33], [3, 5, 1100]];
    let small = (0..60).map(|_| [1 + rng.below(40), 1 + rng.below(40), rng.below(60)]).collect::<Vec<_>>();
    for size in edges.into_iter().chain(edges).chain(edges).chain(small) {
        check::<f32>(&mut rng, DType::F32, size, 1e-3);
        check::<f64>(&mut rng, DType::F64, size, 1e-11);
    }
    // Rows a page apart, and blocks of columns.
    check::<f32>(&mut rng, DType::F32, [70, 1024, 520], 1e-3);
    check::<f64>(&mut rng, DType::F64, [60, 512, 300], 1e-11);
}

/// A product added to another matrix, or to a row, has the bits of one that accumulates into a copy of it.
/// Series of products end where a dimension of the batch does, and where a task does.
#[test]
fn batches_that_cannot_be_merged_agree_with_each_product() {
    let mut rng = Rng(51);
    for [m, n, k] in [[1, 1, 16], [1, 1, 3], [2, 2, 40], [4, 4, 4], [3, 20, 2], [1, 9, 30], [17, 19, 23]] {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::I32] {
            let mut a = Array::random(&mut rng, dtype, &[13, 9, m, k]);
            let (b, out) = (Array::random(&mut rng, dtype, &[9, 13, k, n]), Array::zeros(dtype, &[9, 13, m, n]));
            a.shape.swap(0, 1);
            a.strides.swap(0, 1);
            matmul(a.view(), b.view(), out.view(), 1.0, 0.0).unwrap();
            let (x, y, z) = (a.values(), b.values(), out.values());
            for (at, got) in z.iter().enumerate() {
                let (p, i, j) = (at / (m * n), at / n % m, at % n);
                let want: c128 = (0..k).map(|q| x[(p * m + i) * k + q] * y[(p * k + q) * n + j]).sum();
                assert!((got - want).norm() <= 1e-4 * k as f64, "{m} {n} {k} {dtype:?}: {got} {want}");
            }
        }
    }
}

#[test]
fn an_addend_is_read_where_it_lies() {
    let mut rng = Rng(47);
    let sizes = [
        [1, 300, 40],
        [300, 1, 40],
        [90, 70, 2],
        [30, 240, 530],
        [260, 20, 33],
        [64, 128, 1100],
        [4, 3, 0],
        [9, 6, 64],
    ];
    let more = (0..60).map(|_| [1 + rng.below(40), 1 + rng.below(40), rng.below(60)]).collect::<Vec<_>>();
    for (at, [m, n, k]) in sizes.into_iter().chain(more).enumerate() {
        let dtype = [DType::F32, DType::F64][at % 2];
        let batch: &[usize] = if at % 3 == 0 { &[3] } else { &[] };
        let shape = |tail: [usize; 2]| [batch, &tail[..]].concat();
        let (a, b) = (Array::random(&mut rng, dtype, &shape([m, k])), Array::random(&mut rng, dtype, &shape([k, n])));
        let one_row = rng.below(2) == 0;
        let row = Array::zeros(dtype, &shape([if one_row { 1 } else { m }, n]));
        let values: Vec<c128> = (0..row.view().numel()).map(|_| c128::new(rng.value(), 0.0)).collect();
        row.fill(&values);
        let (full, mut strides) = (shape([m, n]), row.strides.clone());
        if one_row {
            strides[batch.len()] = 0;
        }
        // SAFETY: rows that are one row lie where it lies.
        let old = unsafe { View::new(row.view().ptr, dtype, &full, &strides) };
        let (copied, out) = (Array::zeros(dtype, &full), Array::zeros(dtype, &full));
        let place = |at: usize| if one_row { at / (m * n) * n + at % n } else { at };
        copied.fill(&(0..copied.view().numel()).map(|at| values[place(at)]).collect::<Vec<_>>());
        let factors = [[1.0, 0.5][rng.below(2)], [1.0, 2.0][rng.below(2)]];
        matmul(a.view(), b.view(), copied.view(), factors[0], factors[1]).unwrap();
        assert_eq!(adds(&old, &out.view()), n > 1);
        if n > 1 {
            matmul_onto([a.view(), b.view(), old, out.view()], factors, None).unwrap();
            assert!(out.values() == copied.values(), "{m} {n} {k}");
        }
    }
}

/// A result of negative zeros is one of positive zeros, as PyTorch's is: sums start from zero.
#[test]
fn sums_start_from_zero() {
    for (dtype, [m, n, k]) in [
        (DType::F32, [1, 1, 1]),
        (DType::F32, [3, 40, 2]),
        (DType::F64, [2, 300, 5]),
        (DType::F32, [4, 4, 64]),
        (DType::C64, [3, 3, 2]),
    ] {
        let (a, b) = (Array::zeros(dtype, &[m, k]), Array::zeros(dtype, &[k, n]));
        a.fill(&vec![c128::new(-0.0, 0.0); m * k]);
        b.fill(&vec![c128::new(1.0, 0.0); k * n]);
        let out = Array::zeros(dtype, &[m, n]);
        matmul(a.view(), b.view(), out.view(), 1.0, 0.0).unwrap();
        assert!(out.reals().iter().all(|x| x.is_sign_positive()), "{m} {n} {k}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_parts() {
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
    let (a, b) = (Array::of(DType::F32, &[2, 1], &[1.0; 2]), Array::of(DType::F32, &[1, 3], &[2.0; 3]));
    matmul(a.view(), b.view(), out.view(), 1.0, 0.0).unwrap();
    assert_eq!(out.reals(), [2.0; 6]);
}
