//! Distances and their gradients against plain loops, for every order, with equal rows and components.

use super::*;
use crate::cpu::testing::{Array, Rng, close};

const ORDERS: [f64; 6] = [0.0, 0.5, 1.0, 2.0, 3.0, f64::INFINITY];

fn norm(gaps: &[f64], p: f64) -> f64 {
    match p {
        0.0 => gaps.iter().filter(|g| **g != 0.0).count() as f64,
        f64::INFINITY => gaps.iter().fold(0.0, |most, g| most.max(g.abs())),
        p => gaps.iter().map(|g| g.abs().powf(p)).sum::<f64>().powf(1.0 / p),
    }
}
/// The derivative of the norm in a gap.
fn slope(gap: f64, norm: f64, p: f64) -> f64 {
    match p {
        _ if norm == 0.0 || gap == 0.0 || p == 0.0 => 0.0,
        f64::INFINITY => {
            if gap.abs() == norm {
                gap.signum()
            } else {
                0.0
            }
        }
        p => gap.signum() * (gap.abs() / norm).powf(p - 1.0),
    }
}

/// Rows as vectors, some of them and some of their components equal.
fn vectors(rng: &mut Rng, dtype: DType, shape: &[usize]) -> (Array, Vec<Vec<f64>>) {
    let array = Array::random(rng, dtype, shape);
    let coarse: Vec<_> = array.values().iter().map(|v| (v * 4.0).re.round().into()).collect();
    array.fill(&coarse);
    let rows = array.reals().chunks(shape[shape.len() - 1]).map(<[f64]>::to_vec).collect();
    (array, rows)
}

fn check(rng: &mut Rng, dtype: DType, [batches, p, r, m]: [usize; 4], order: f64, tolerance: f64) {
    let (a, x) = vectors(rng, dtype, &[batches, p, m]);
    let (b, y) = vectors(rng, dtype, &[batches, r, m]);
    let grad = Array::random(rng, dtype, &[batches, p, r]);
    let (out, by_a) = (Array::scattered(rng, dtype, &[batches, p, r]), Array::scattered(rng, dtype, &[batches, p, m]));
    distances(a.view(), b.view(), order, out.view()).unwrap();
    distances_backward(grad.view(), [a.view(), b.view()], order, out.view(), by_a.view()).unwrap();
    let (g, mut want, mut gradient) = (grad.reals(), Vec::new(), vec![0.0; batches * p * m]);
    for (i, k, j) in (0..batches).flat_map(|i| (0..p).flat_map(move |k| (0..r).map(move |j| (i, k, j)))) {
        let gaps: Vec<f64> = x[i * p + k].iter().zip(&y[i * r + j]).map(|(x, y)| x - y).collect();
        let distance = norm(&gaps, order);
        for (c, gap) in gaps.iter().enumerate() {
            gradient[(i * p + k) * m + c] += g[(i * p + k) * r + j] * slope(*gap, distance, order);
        }
        want.push(distance);
    }
    close(&out.reals(), &want, tolerance);
    close(&by_a.reals(), &gradient, 10.0 * tolerance);
}

fn check_pairs(rng: &mut Rng, dtype: DType, [n, m]: [usize; 2], order: f64, tolerance: f64) {
    let (a, x) = vectors(rng, dtype, &[n, m]);
    let pairs = n * (n - 1) / 2;
    let (grad, out, by_a) = (
        Array::random(rng, dtype, &[pairs]),
        Array::scattered(rng, dtype, &[pairs]),
        Array::scattered(rng, dtype, &[n, m]),
    );
    pair_distances(a.view(), order, out.view()).unwrap();
    pair_distances_backward(grad.view(), a.view(), order, out.view(), by_a.view()).unwrap();
    let (g, mut want, mut gradient) = (grad.reals(), Vec::new(), vec![0.0; n * m]);
    for (i, j) in (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))) {
        let gaps: Vec<f64> = x[i].iter().zip(&x[j]).map(|(x, y)| x - y).collect();
        let distance = norm(&gaps, order);
        for (c, gap) in gaps.iter().enumerate() {
            let part = g[want.len()] * slope(*gap, distance, order);
            gradient[i * m + c] += part;
            gradient[j * m + c] -= part;
        }
        want.push(distance);
    }
    close(&out.reals(), &want, tolerance);
    close(&by_a.reals(), &gradient, 10.0 * tolerance);
}

#[test]
fn agrees_with_plain_loops() {
    let mut rng = Rng(31);
    for order in ORDERS {
        for sizes in [
            [1, 1, 1, 1],
            [2, 3, 5, 7],
            [1, 70, 130, 3],
            [3, 65, 2, 131],
            [1, 2, 33, 300],
            [2, 0, 3, 4],
            [1, 64, 64, 2],
        ] {
            check(&mut rng, DType::F32, sizes, order, 2e-5);
            check(&mut rng, DType::F64, sizes, order, 1e-12);
        }
        for sizes in [[2, 3], [5, 1], [67, 4], [130, 2], [33, 140]] {
            check_pairs(&mut rng, DType::F32, sizes, order, 2e-5);
            check_pairs(&mut rng, DType::F64, sizes, order, 1e-12);
        }
    }
}

#[test]
fn no_number_is_passed_over() {
    let rows = Array::of(DType::F32, &[3, 2], &[0.0, 1.0, f64::NAN, 1.0, f64::INFINITY, 1.0]);
    for order in [1.0, 2.0, 3.0, f64::INFINITY] {
        let out = Array::zeros(DType::F32, &[3]);
        pair_distances(rows.view(), order, out.view()).unwrap();
        let [a, b, c] = out.reals()[..] else { unreachable!() };
        assert!(a.is_nan() && b == f64::INFINITY && c.is_nan(), "{order}: {a} {b} {c}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = |shape: &[usize]| Array::zeros(DType::F32, shape);
    let (a, b, out) = (of(&[3, 2]), of(&[4, 3]), of(&[3, 4]));
    assert!(distances(a.view(), b.view(), 1.0, out.view()).is_err());
    assert!(distances(a.view(), a.view(), 1.0, out.view()).is_err());
    assert!(pair_distances(a.view(), 1.0, out.view()).is_err());
    let half = Array::zeros(DType::F16, &[3, 2]);
    assert!(distances(half.view(), half.view(), 1.0, of(&[3, 3]).view()).is_err());
}
