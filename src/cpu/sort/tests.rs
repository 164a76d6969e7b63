//! Sorting against the standard library: stable order, both directions, NaN last, positions of equal values, the k
//! best, and random shapes and strides. Keys of every dtype are covered.
use super::*;
use crate::cpu::testing::{Array, Rng, shape, unravel};
use std::cmp::Ordering;

/// NaN is the largest, and -0 equals 0.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(a.is_nan().cmp(&b.is_nan()))
}

/// The elements of each line along `dim`, lines in row-major order of the other dimensions.
fn lines_of(s: &[usize], dim: usize, values: &[f64]) -> Vec<Vec<f64>> {
    let mut lines: std::collections::BTreeMap<Vec<usize>, Vec<f64>> = Default::default();
    for (i, &v) in values.iter().enumerate() {
        let mut at = unravel(s, i);
        at[dim] = 0;
        lines.entry(at).or_default().push(v);
    }
    lines.into_values().collect()
}

fn check(rng: &mut Rng, dtype: DType, s: &[usize]) {
    let (dim, flip) = (rng.below(s.len()), rng.below(2) == 0);
    let a = Array::random(rng, dtype, s);
    let k = 1 + rng.below(s[dim]);
    let mut cut = s.to_vec();
    cut[dim] = k;
    let (v, i) = (Array::scattered(rng, dtype, s), Array::scattered(rng, DType::I64, s));
    let (tv, ti) = (Array::scattered(rng, dtype, &cut), Array::scattered(rng, DType::I64, &cut));
    cut[dim] = 1;
    let (kv, ki) = (Array::scattered(rng, dtype, &cut), Array::scattered(rng, DType::I64, &cut));
    sort(a.view(), dim, flip, true, v.view(), i.view()).unwrap();
    topk(a.view(), dim, k, flip, true, tv.view(), ti.view()).unwrap();
    kth(a.view(), dim, k, kv.view(), ki.view()).unwrap();
    let got = |x: &Array| lines_of(&x.shape, dim, &x.reals());
    let (v, i, tv, ti, kv) = (got(&v), got(&i), got(&tv), got(&ti), got(&kv));
    for (n, line) in lines_of(s, dim, &a.reals()).into_iter().enumerate() {
        let mut want: Vec<usize> = (0..line.len()).collect();
        want.sort_by(|&a, &b| if flip { order(line[b], line[a]) } else { order(line[a], line[b]) });
        let places: Vec<f64> = want.iter().map(|&p| p as f64).collect();
        assert_eq!(i[n], places);
        assert_eq!(ti[n], places[..k]);
        let same = |a: &[f64]| a.iter().zip(&want).all(|(x, &p)| x.to_bits() == line[p].to_bits());
        assert!(same(&v[n]) && same(&tv[n]));
        want.sort_by(|&a, &b| order(line[a], line[b]));
        assert_eq!(order(kv[n][0], line[want[k - 1]]), Ordering::Equal);
    }
}

#[test]
fn agrees_with_the_standard_sort() {
    let mut rng = Rng(51);
    for _ in 0..30 {
        let s = shape(&mut rng, 3, 20);
        for dtype in [DType::Bool, DType::U8, DType::I16, DType::I32, DType::I64, DType::F16, DType::F32, DType::F64] {
            check(&mut rng, dtype, &s);
        }
    }
    for dtype in [DType::U8, DType::I64, DType::F32, DType::F64] {
        check(&mut rng, dtype, &[50_000]);
        check(&mut rng, dtype, &[3, 5_000]);
    }
}

#[test]
fn nan_infinity_and_zeros() {
    let x = [f64::NAN, 0.0, -0.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, -0.0, 0.0];
    let a = Array::of(DType::F32, &[8], &x);
    let (v, i) = (Array::zeros(DType::F32, &[8]), Array::zeros(DType::I64, &[8]));
    sort(a.view(), 0, false, true, v.view(), i.view()).unwrap();
    assert_eq!(i.reals(), [5.0, 4.0, 1.0, 2.0, 6.0, 7.0, 3.0, 0.0]);
    sort(a.view(), 0, true, true, v.view(), i.view()).unwrap();
    assert_eq!(i.reals(), [0.0, 3.0, 1.0, 2.0, 6.0, 7.0, 4.0, 5.0]);
    assert!(v.reals()[3].is_sign_negative());
}

#[test]
fn long_keys_that_hardly_differ() {
    let mut rng = Rng(53);
    let n = 300_000;
    // Far apart; close together next to one that is far away; thousands of ties of short keys.
    let spreads: [fn(&mut Rng, usize) -> i64; 3] = [
        |rng, _| (rng.below(1 << 50)) as i64 - (1 << 49),
        |rng, i| if i == 7 { i64::MIN } else { rng.below(1000) as i64 },
        |rng, i| ((i % 3) as i64) << 60 | rng.below(1 << 20) as i64,
    ];
    for make in spreads {
        let values: Vec<i64> = (0..n).map(|i| make(&mut rng, i)).collect();
        for flip in [false, true] {
            let mut want: Vec<usize> = (0..n).collect();
            want.sort_by(|&a, &b| if flip { values[b].cmp(&values[a]) } else { values[a].cmp(&values[b]) });
            let mut sorter = Sorter::new(n).unwrap();
            let got = sorter.line(&values, flip).unwrap();
            assert!(got.iter().zip(want).all(|(&item, place)| item.place() == place));
        }
    }
}

/// Few of many: whole groups that are equal, or nothing but NaN.
#[test]
fn the_best_of_ties_and_nan() {
    let mut rng = Rng(57);
    for round in 0..120 {
        let (n, kinds) = (30 + rng.below(1500), 1 + rng.below(8));
        let few = [0.0, f64::NAN, 1.0, -0.0, f64::INFINITY, -2.0, f64::NEG_INFINITY, 3.0];
        let repeated = 1 + rng.below(40);
        let values: Vec<f64> = (0..n).map(|i| few[(i / repeated * 7 + rng.below(kinds)) % kinds]).collect();
        let a = Array::of([DType::F32, DType::F64][round % 2], &[n], &values);
        let k = 1 + rng.below(n.div_ceil(GROUPS_OF));
        for flip in [false, true] {
            let (v, i) = (Array::zeros(a.dtype, &[k]), Array::zeros(DType::I64, &[k]));
            topk(a.view(), 0, k, flip, true, v.view(), i.view()).unwrap();
            let mut want: Vec<usize> = (0..n).collect();
            want.sort_by(|&x, &y| {
                if flip { order(values[y], values[x]) } else { order(values[x], values[y]) }.then(x.cmp(&y))
            });
            let places: Vec<f64> = want[..k].iter().map(|&p| p as f64).collect();
            assert_eq!(i.reals(), places, "{n} {k} {flip}");
        }
    }
}
/// Elements for each of the best, at least.
const GROUPS_OF: usize = 10;
