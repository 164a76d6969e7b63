//! Reductions against plain loops in float64: every kind, contiguous and strided, short and long, empty, with NaN.

use super::*;
use crate::gpu::{arg_reduce, reduce, var};
use crate::kinds::Reduce;

/// The index of a keepdim output for each element, and the number of outputs.
fn outputs(shape: &[usize], dims: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let kept: Vec<usize> = (0..shape.len()).map(|d| if dims.contains(&d) { 1 } else { shape[d] }).collect();
    let n: usize = shape.iter().product();
    let of = |mut e: usize| {
        let mut index = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            index[d] = e % shape[d];
            e /= shape[d];
        }
        index.iter().zip(&kept).fold(0, |o, (i, k)| o * k + if *k == 1 { 0 } else { *i })
    };
    ((0..n).map(of).collect(), kept)
}

fn fold(kind: Reduce, list: &[f64]) -> f64 {
    let nan = list.iter().any(|v| v.is_nan());
    let n = list.len() as f64;
    match kind {
        Reduce::Sum => list.iter().sum(),
        Reduce::Mean => list.iter().sum::<f64>() / n,
        Reduce::Prod => list.iter().product(),
        Reduce::Max if nan => f64::NAN,
        Reduce::Min if nan => f64::NAN,
        Reduce::Max => list.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduce::Min => list.iter().copied().fold(f64::INFINITY, f64::min),
        Reduce::Any => list.iter().any(|v| *v != 0.0) as i32 as f64,
        Reduce::All => list.iter().all(|v| *v != 0.0) as i32 as f64,
        Reduce::Norm(p) => list.iter().map(|v| v.abs().powf(p)).sum::<f64>().powf(1.0 / p),
        Reduce::LogSumExp => list.iter().map(|v| v.exp()).sum::<f64>().ln(),
    }
}

const KINDS: [Reduce; 9] = [
    Reduce::Sum,
    Reduce::Mean,
    Reduce::Max,
    Reduce::Min,
    Reduce::Any,
    Reduce::All,
    Reduce::Norm(2.0),
    Reduce::Norm(3.0),
    Reduce::LogSumExp,
];

fn close(got: f32, want: f64, n: usize) -> bool {
    (got.is_nan() && want.is_nan())
        || got as f64 == want
        || (got as f64 - want).abs() <= 2e-6 * want.abs().max(1.0) * (n as f64).sqrt().max(4.0)
}

#[test]
fn every_kind_over_every_set_of_dimensions() {
    let Some(_shared) = ready("reduce") else { return };
    let cases: [(&[usize], &[usize]); 13] = [
        (&[3, 5, 7], &[0, 1, 2]),
        (&[3, 5, 7], &[1]),
        (&[3, 5, 7], &[0, 2]),
        (&[3, 5, 7], &[2]),
        (&[4, 300], &[1]),
        (&[300, 4], &[0]),
        (&[2, 40000], &[1]),
        (&[40000, 3], &[0]),
        (&[20000, 5], &[1]),
        (&[300, 40], &[0]),
        (&[5000, 33], &[0]),
        (&[70, 6, 64], &[0, 1]),
        (&[17000, 300], &[1]),
    ];
    for (shape, dims) in cases {
        let n: usize = shape.iter().product();
        let data: Vec<f32> = (0..n).map(|i| ((i * 7919 % 1013) as f32 - 500.0) / 300.0).collect();
        for poison in [None, Some(n / 2)] {
            let mut data = data.clone();
            if let Some(i) = poison {
                data[i] = f32::NAN;
            }
            let a = Dev::new(shape, &data);
            let (places, kept) = outputs(shape, dims);
            let count: usize = kept.iter().product();
            let mut lists = vec![Vec::new(); count];
            (0..n).for_each(|e| lists[places[e]].push(data[e] as f64));
            for kind in KINDS {
                let out = Dev::zeros(&kept, DType::F32);
                reduce(kind, &a.view(), dims, &out.view()).unwrap();
                let got = out.get::<f32>();
                for (o, list) in lists.iter().enumerate() {
                    let want = fold(kind, list);
                    assert!(close(got[o], want, list.len()), "{kind:?} {shape:?} {dims:?} {o}: {} {want}", got[o]);
                }
            }
        }
    }
}

#[test]
fn strided_inputs_and_other_dtypes() {
    let Some(_shared) = ready("strided reduce") else { return };
    let a = Dev::new(&[4, 6], &(0..24).map(|i| i as i64 - 7).collect::<Vec<_>>());
    let t = a.layout.transpose(0, 1).slice(0, (1, 3, 2));
    let out = Dev::zeros(&[3, 1], DType::I64);
    reduce(Reduce::Sum, &a.view_of(&t), &[1], &out.view()).unwrap();
    assert_eq!(out.get::<i64>(), [12, 20, 28]);
    reduce(Reduce::Prod, &a.view_of(&t), &[1], &out.view()).unwrap();
    assert_eq!(out.get::<i64>(), [0, -896, -1280]);
    let bytes = Dev::new(&[7], &[200u8, 100, 255, 1, 2, 3, 4]);
    let total = Dev::zeros(&[1], DType::I64);
    reduce(Reduce::Sum, &bytes.view(), &[0], &total.view()).unwrap();
    assert_eq!(total.get::<i64>(), [565]);
    let top = Dev::zeros(&[1], DType::U8);
    reduce(Reduce::Max, &bytes.view(), &[0], &top.view()).unwrap();
    assert_eq!(top.get::<u8>(), [255]);
    let empty = Dev::zeros(&[0, 2], DType::F32);
    let out = Dev::new(&[1, 2], &[5f32, 5.]);
    reduce(Reduce::Sum, &empty.view(), &[0], &out.view()).unwrap();
    assert_eq!(out.get::<f32>(), [0., 0.]);
    assert!(reduce(Reduce::Max, &empty.view(), &[0], &out.view()).is_err());
    let inf = Dev::new(&[3], &[f32::NEG_INFINITY; 3]);
    let one = Dev::zeros(&[1], DType::F32);
    reduce(Reduce::LogSumExp, &inf.view(), &[0], &one.view()).unwrap();
    assert_eq!(one.get::<f32>(), [f32::NEG_INFINITY]);
}

#[test]
fn variances() {
    let Some(_shared) = ready("variances") else { return };
    for (shape, dims) in [([5, 600], 1), ([600, 5], 0), ([2, 50000], 1)] {
        let n = shape[0] * shape[1];
        let data: Vec<f32> = (0..n).map(|i| (i * 31 % 97) as f32 + 1000.0).collect();
        let a = Dev::new(&shape, &data);
        let (places, kept) = outputs(&shape, &[dims]);
        let (out, mean) = (Dev::zeros(&kept, DType::F32), Dev::zeros(&kept, DType::F32));
        var(&a.view(), &[dims], 1.0, false, &out.view(), Some(&mean.view())).unwrap();
        for o in 0..kept[0] * kept[1] {
            let list: Vec<f64> = (0..n).filter(|&e| places[e] == o).map(|e| data[e] as f64).collect();
            let m = list.iter().sum::<f64>() / list.len() as f64;
            let v = list.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / (list.len() - 1) as f64;
            assert!((out.get::<f32>()[o] as f64 - v).abs() < 1e-3 * v, "{} {v}", out.get::<f32>()[o]);
            assert!((mean.get::<f32>()[o] as f64 - m).abs() < 1e-3);
        }
    }
}

#[test]
fn positions_of_extremes() {
    let Some(_shared) = ready("arg_reduce") else { return };
    for shape in [[3usize, 5], [2, 3000], [2000, 3], [3, 100]] {
        let n = shape[0] * shape[1];
        let mut data: Vec<f32> = (0..n).map(|i| (i * 7919 % 101) as f32).collect();
        if n > 1000 {
            data[n - 2] = f32::NAN;
            data[n - 1] = f32::NAN;
        }
        let a = Dev::new(&shape, &data);
        for is_max in [true, false] {
            let index = Dev::zeros(&[shape[0], 1], DType::I64);
            let value = Dev::zeros(&[shape[0], 1], DType::F32);
            arg_reduce(is_max, &a.view(), Some(1), Some(&value.view()), &index.view()).unwrap();
            let (index, value) = (index.get::<i64>(), value.get::<f32>());
            for row in 0..shape[0] {
                let line = &data[row * shape[1]..][..shape[1]];
                let better = |a: f32, b: f32| if is_max { a > b } else { a < b };
                let mut at = 0;
                for (i, v) in line.iter().enumerate() {
                    if !line[at].is_nan() && (better(*v, line[at]) || v.is_nan()) {
                        at = i;
                    }
                }
                assert_eq!(index[row], at as i64, "{shape:?} {is_max} {row}");
                assert!(value[row] == line[at] || line[at].is_nan());
            }
        }
        let all = Dev::zeros(&[1, 1], DType::I64);
        arg_reduce(true, &a.view(), None, None, &all.view()).unwrap();
        let first =
            data.iter().position(|v| v.is_nan()).unwrap_or_else(|| data.iter().position(|v| *v == 100.0).unwrap_or(0));
        let want = if data.iter().any(|v| v.is_nan() || *v == 100.0) { first } else { continue };
        assert_eq!(all.get::<i64>(), [want as i64]);
    }
}
