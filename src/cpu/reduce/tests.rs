//! Reductions against plain loops in f64 over random shapes, strides, dtypes and dimensions; NaN as in PyTorch, empty
//! inputs, and bitwise equality at any number of threads. Tolerances follow the dtype of the accumulator.
use super::{Reduce, reduce};
use crate::cpu::parallel::{num_threads, set_num_threads};
use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};
use crate::dtype::DType;

fn naive(kind: Reduce, a: &Array, dims: &[usize]) -> Vec<f64> {
    let out: Vec<usize> = a.shape.iter().enumerate().map(|(i, &n)| if dims.contains(&i) { 1 } else { n }).collect();
    let mut groups = vec![Vec::new(); out.iter().product()];
    for (i, &v) in a.values().iter().enumerate() {
        let mut index = unravel(&a.shape, i);
        dims.iter().for_each(|&d| index[d] = 0);
        groups[ravel(&out, &index)].push(v);
    }
    let fold = |g: &Vec<crate::dtype::c128>| {
        let mut re = g.iter().map(|v| v.re);
        match kind {
            Reduce::Sum => re.sum(),
            Reduce::Mean => re.sum::<f64>() / g.len() as f64,
            Reduce::Prod => g.iter().product::<crate::dtype::c128>().re,
            Reduce::Max => re.fold(f64::NEG_INFINITY, f64::max),
            Reduce::Min => re.fold(f64::INFINITY, f64::min),
            Reduce::Any => re.any(|x| x != 0.0) as u8 as f64,
            Reduce::All => re.all(|x| x != 0.0) as u8 as f64,
            Reduce::Norm(0.0) => g.iter().filter(|v| v.norm() != 0.0).count() as f64,
            Reduce::Norm(f64::INFINITY) => g.iter().map(|v| v.norm()).fold(0.0, f64::max),
            Reduce::Norm(p) => g.iter().map(|v| v.norm().powf(p)).sum::<f64>().powf(1.0 / p),
            Reduce::LogSumExp => re.map(f64::exp).sum::<f64>().ln(),
        }
    };
    groups.iter().map(fold).collect()
}

fn check(rng: &mut Rng, kind: Reduce, input: DType, out: DType, tolerance: f64, shape: &[usize]) {
    let a = Array::random(rng, input, shape);
    let dims: Vec<usize> = (0..shape.len()).filter(|_| rng.below(2) == 0).collect();
    let kept: Vec<usize> = shape.iter().enumerate().map(|(i, &n)| if dims.contains(&i) { 1 } else { n }).collect();
    let b = Array::scattered(rng, out, &kept);
    reduce(kind, a.view(), &dims, b.view()).unwrap();
    close(&b.reals(), &naive(kind, &a, &dims), tolerance);
}

#[test]
fn agrees_with_plain_loops() {
    use DType::*;
    let mut rng = Rng(7);
    for _ in 0..40 {
        let s = shape(&mut rng, 4, 9);
        for kind in [Reduce::Sum, Reduce::Mean, Reduce::Norm(2.0), Reduce::Norm(3.0), Reduce::LogSumExp] {
            check(&mut rng, kind, F32, F32, 1e-5, &s);
            check(&mut rng, kind, F64, F64, 1e-12, &s);
            check(&mut rng, kind, BF16, F32, 1e-5, &s);
            check(&mut rng, kind, F16, F16, 1e-3, &s);
        }
        for kind in [Reduce::Norm(0.0), Reduce::Norm(1.0), Reduce::Norm(f64::INFINITY), Reduce::Norm(2.0)] {
            check(&mut rng, kind, C64, F32, 1e-5, &s);
            check(&mut rng, kind, C128, F64, 1e-12, &s);
        }
        for input in [Bool, U8, I8, I16, I32, I64] {
            check(&mut rng, Reduce::Sum, input, I64, 0.0, &s);
            check(&mut rng, Reduce::Sum, input, F32, 1e-5, &s);
            check(&mut rng, Reduce::Max, input, input, 0.0, &s);
            check(&mut rng, Reduce::Min, input, input, 0.0, &s);
        }
        for input in [Bool, U8, I32, F16, F32, F64, C64] {
            check(&mut rng, Reduce::Any, input, Bool, 0.0, &s);
            check(&mut rng, Reduce::All, input, Bool, 0.0, &s);
        }
        for input in [F16, BF16, F32, F64] {
            check(&mut rng, Reduce::Max, input, input, 0.0, &s);
            check(&mut rng, Reduce::Min, input, input, 0.0, &s);
        }
        check(&mut rng, Reduce::Sum, C64, C64, 1e-5, &s);
        check(&mut rng, Reduce::Sum, C128, C128, 1e-12, &s);
    }
    for _ in 0..20 {
        check(&mut rng, Reduce::Prod, F64, F64, 1e-9, &[2, 5, 3]);
        check(&mut rng, Reduce::Prod, C128, C128, 1e-9, &[2, 5, 3]);
    }
}

#[test]
fn long_reductions_are_cut_and_stay_exact() {
    let mut rng = Rng(3);
    for s in [&[3, 300_000][..], &[300_000, 3], &[1_000_003], &[2, 90_000, 4], &[700, 700], &[4000, 5]] {
        for _ in 0..3 {
            check(&mut rng, Reduce::Sum, DType::F32, DType::F32, 1e-5, s);
            check(&mut rng, Reduce::Max, DType::F32, DType::F32, 0.0, s);
            check(&mut rng, Reduce::Sum, DType::U8, DType::I64, 0.0, s);
            check(&mut rng, Reduce::LogSumExp, DType::F32, DType::F32, 1e-5, s);
        }
    }
}

#[test]
fn nothing_reduces_to_the_identity() {
    for (kind, want) in [(Reduce::Sum, 0.0), (Reduce::Prod, 1.0), (Reduce::LogSumExp, f64::NEG_INFINITY)] {
        let (a, b) = (Array::zeros(DType::F32, &[2, 0, 3]), Array::zeros(DType::F32, &[2, 1, 3]));
        reduce(kind, a.view(), &[1], b.view()).unwrap();
        assert_eq!(b.reals(), [want; 6]);
    }
    let (a, b) = (Array::zeros(DType::F32, &[0]), Array::zeros(DType::Bool, &[1]));
    reduce(Reduce::All, a.view(), &[0], b.view()).unwrap();
    assert_eq!(b.reals(), [1.0]);
    reduce(Reduce::Any, a.view(), &[0], b.view()).unwrap();
    assert_eq!(b.reals(), [0.0]);
}

#[test]
fn nan_and_infinity() {
    let nan = f64::NAN;
    let a = Array::of(DType::F32, &[3, 3], &[1.0, nan, 3.0, f64::INFINITY, 2.0, f64::INFINITY, -1.0, -2.0, -0.5]);
    let b = Array::zeros(DType::F32, &[3, 1]);
    reduce(Reduce::Max, a.view(), &[1], b.view()).unwrap();
    close(&b.reals(), &[nan, f64::INFINITY, -0.5], 0.0);
    reduce(Reduce::LogSumExp, a.view(), &[1], b.view()).unwrap();
    close(&b.reals()[..2], &[nan, f64::INFINITY], 0.0);
}

/// As rows, as columns, and as rows that are folded as columns.
#[test]
fn the_log_of_a_sum_of_any_exponentials() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let lines = [
        ([1.0, 2.0, 3.0, -inf], 3.4076059644443806),
        ([-inf; 4], -inf),
        ([5.0, inf, 1000.0, -inf], inf),
        ([inf; 4], inf),
        ([nan, inf, 0.0, 1.0], nan),
        ([-1000.0, -1100.0, -inf, -1001.0], -999.6867383124818),
        ([88.0, 87.0, 1e-3, -1e3], 88.31326168751822),
        ([-100.0; 4], -98.613_705_638_880_1),
    ];
    for count in [8, 64, 21, 300] {
        let line = |i: usize| lines[i % lines.len()];
        let want: Vec<f64> = (0..count).map(|i| line(i).1).collect();
        for dtype in [DType::F32, DType::F64] {
            let rows: Vec<f64> = (0..count).flat_map(|i| line(i).0).collect();
            let (a, b) = (Array::of(dtype, &[count, 4], &rows), Array::zeros(dtype, &[count, 1]));
            reduce(Reduce::LogSumExp, a.view(), &[1], b.view()).unwrap();
            close(&b.reals(), &want, 1e-6);
            for repeats in [1, 40] {
                let columns: Vec<f64> =
                    (0..4 * repeats).flat_map(|r| (0..count).map(move |i| line(i).0[r % 4])).collect();
                let (a, b) = (Array::of(dtype, &[4 * repeats, count], &columns), Array::zeros(dtype, &[1, count]));
                reduce(Reduce::LogSumExp, a.view(), &[0], b.view()).unwrap();
                let want: Vec<f64> = want.iter().map(|w| w + (repeats as f64).ln()).collect();
                close(&b.reals(), &want, 1e-6);
            }
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_threads() {
    let mut rng = Rng(77);
    let cases: [(&[usize], &[usize]); 6] = [
        (&[1_000_003], &[0]),
        (&[700, 900], &[0]),
        (&[700, 900], &[1]),
        (&[300_000, 3], &[0]),
        (&[40, 8, 900], &[0, 2]),
        (&[5, 9000, 6], &[1]),
    ];
    for (s, dims) in cases {
        let a = Array::random(&mut rng, DType::F32, s);
        let kept: Vec<usize> = s.iter().enumerate().map(|(i, &n)| if dims.contains(&i) { 1 } else { n }).collect();
        for kind in [Reduce::Sum, Reduce::Norm(2.0), Reduce::LogSumExp] {
            let mut seen = Vec::new();
            let before = num_threads();
            for threads in [1, 2, 3, 7] {
                let b = Array::zeros(DType::F32, &kept);
                set_num_threads(threads);
                reduce(kind, a.view(), dims, b.view()).unwrap();
                seen.push(b.reals());
            }
            set_num_threads(before);
            assert!(seen.windows(2).all(|w| w[0] == w[1]), "{kind:?} {s:?} {dims:?}");
        }
    }
}

#[test]
fn channels_between_reduced_dimensions() {
    let mut rng = Rng(79);
    let a = Array::of(DType::F32, &[6, 3, 5, 40], &(0..3600).map(|_| rng.value()).collect::<Vec<_>>());
    let b = Array::zeros(DType::F32, &[1, 3, 1, 1]);
    reduce(Reduce::Sum, a.view(), &[0, 2, 3], b.view()).unwrap();
    close(&b.reals(), &naive(Reduce::Sum, &a, &[0, 2, 3]), 1e-5);
}
