//! NaN, infinity and -0 through every kernel family: WGSL arithmetic is fast-math, so each must be seen to be right.

use super::*;
use crate::dtype::{Scalar, bf16, f16};
use crate::gpu::*;
use crate::kinds::{Reduce, Scan, ScatterMode};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;
const SPECIAL: [f32; 7] = [NAN, INF, -INF, -0.0, 0.0, 1.0, -1.0];

fn same(got: &[f32], want: &[f32]) -> bool {
    got.len() == want.len()
        && got.iter().zip(want).all(|(g, w)| g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan()))
}

fn unary(expr: &'static str, want: impl Fn(f32) -> f32) {
    let a = Dev::new(&[7], &SPECIAL);
    for strided in [false, true] {
        let out = Dev::zeros(&[14], DType::F32);
        let layout = out.layout.slice(0, (0, 7, if strided { 2 } else { 1 }));
        map(&[7], &[a.input()], &out.view_of(&layout), DType::F32, expr).unwrap();
        let got: Vec<f32> = out.get::<f32>().into_iter().step_by(if strided { 2 } else { 1 }).take(7).collect();
        let want: Vec<f32> = SPECIAL.iter().map(|v| want(*v)).collect();
        assert!(same(&got, &want), "{expr}: {got:?}, expected {want:?}");
    }
}

#[test]
fn elementwise_specials() {
    let Some(_shared) = ready("elementwise specials") else { return };
    unary("x", |v| v);
    unary("neg_(x)", |v| -v);
    unary("-x", |v| -v);
    unary("x + T(1)", |v| v + 1.0);
    // Not here: `x * T(0)` and `x - x`, which WGSL lets a driver fold to zero. No rule has a literal like that.
    unary("ne_(x, x)", |v| (v != v) as i32 as f32);
    // Of equals the first stays, so -0 does.
    unary("max_(x, T(0))", |v| if v < 0.0 { 0.0 } else { v });
    unary("clamp_(x, T(-1), T(1))", |v| v.clamp(-1.0, 1.0));
    unary("relu_(x)", |v| if v < 0.0 { 0.0 } else { v });
    unary("where_(isfinite_(x), T(0), sigmoid_(x))", |v| if v.is_finite() { 0.0 } else { 1.0 / (1.0 + (-v).exp()) });
    unary("div_(T(1), x)", |v| 1.0 / v);
    unary("where_(x, T(2), T(3))", |v| if v != 0.0 { 2.0 } else { 3.0 });
    unary("logical_and_(x, T(1))", |v| (v != 0.0) as i32 as f32);
    unary("sqrt_(x)", f32::sqrt);
    unary("pow_(x, T(2))", |v| v.powi(2));
    unary("copysign_(T(3), x)", |v| f32::copysign(3.0, v));
    unary("floor_div_(x, T(2))", |v| if v.is_infinite() { NAN } else { (v / 2.0).floor() });
}

#[test]
fn copies_and_casts_of_specials() {
    let Some(_shared) = ready("casts of specials") else { return };
    // Payloads too: a copy moves bits.
    let odd = f32::from_bits(0x7fc12345);
    let a = Dev::new(&[3], &[odd, -odd, f32::from_bits(1)]);
    let out = Dev::zeros(&[3], DType::F32);
    copy(&a.input(), &out.view()).unwrap();
    let bits = |v: Vec<f32>| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(out.get()), bits(a.get()));
    let a = Dev::new(&[7], &SPECIAL);
    let (half, brain) = (Dev::zeros(&[7], DType::F16), Dev::zeros(&[7], DType::BF16));
    copy(&a.input(), &half.view()).unwrap();
    copy(&a.input(), &brain.view()).unwrap();
    assert!(same(&half.get::<f16>().iter().map(|v| v.to_f32()).collect::<Vec<_>>(), &SPECIAL));
    assert!(same(&brain.get::<bf16>().iter().map(|v| v.to_f32()).collect::<Vec<_>>(), &SPECIAL));
    for (narrow, name) in [(&half, "f16"), (&brain, "bf16")] {
        let back = Dev::zeros(&[7], DType::F32);
        map(&[7], &[narrow.input()], &back.view(), DType::F32, "x + T(0)").unwrap();
        let want: Vec<f32> = SPECIAL.iter().map(|v| v + 0.0).collect();
        let got = back.get::<f32>();
        // A compiler may drop the addition of zero, which keeps the sign of -0.
        assert!(same(&got, &want) || same(&got, &SPECIAL), "{name} {got:?}");
    }
    if supports(GPU, DType::F64) {
        let wide = Dev::zeros(&[7], DType::F64);
        copy(&a.input(), &wide.view()).unwrap();
        assert!(same(&wide.get::<f64>().iter().map(|v| *v as f32).collect::<Vec<_>>(), &SPECIAL));
    }
    let truth = Dev::zeros(&[7], DType::Bool);
    copy(&a.input(), &truth.view()).unwrap();
    assert_eq!(truth.get::<bool>(), [true, true, true, false, false, true, true]);
}

#[test]
fn reductions_of_specials() {
    let Some(_shared) = ready("reductions of specials") else { return };
    let run = |kind, data: &[f32]| {
        let a = Dev::new(&[data.len()], data);
        let out = Dev::zeros(&[1], DType::F32);
        reduce(kind, &a.view(), &[0], &out.view()).unwrap();
        out.get::<f32>()[0]
    };
    for n in [3usize, 1000, 40000] {
        let with = |v: &[f32]| [vec![1.0; n], v.to_vec()].concat();
        for kind in
            [Reduce::Sum, Reduce::Mean, Reduce::Prod, Reduce::Max, Reduce::Min, Reduce::Norm(2.0), Reduce::LogSumExp]
        {
            assert!(run(kind, &with(&[NAN])).is_nan(), "{kind:?} {n}");
        }
        assert_eq!(run(Reduce::Any, &[vec![0.0; n], vec![NAN]].concat()), 1.0);
        assert_eq!(run(Reduce::All, &with(&[NAN])), 1.0);
        assert_eq!(run(Reduce::All, &with(&[-0.0])), 0.0);
        assert!(run(Reduce::Sum, &with(&[INF, -INF])).is_nan());
        assert_eq!(run(Reduce::Sum, &with(&[INF])), INF);
        assert_eq!(run(Reduce::Max, &with(&[-INF])), 1.0);
        assert_eq!(run(Reduce::Min, &with(&[-INF])), -INF);
        assert_eq!(run(Reduce::LogSumExp, &with(&[INF])), INF);
        assert!(run(Reduce::Prod, &with(&[INF, 0.0])).is_nan());
        let a = Dev::new(&[n + 2], &[vec![1.0; n], vec![NAN, INF]].concat());
        let at = Dev::zeros(&[1], DType::I64);
        for is_max in [true, false] {
            arg_reduce(is_max, &a.view(), None, None, &at.view()).unwrap();
            assert_eq!(at.get::<i64>(), [n as i64]);
        }
    }
    assert_eq!(run(Reduce::Sum, &[-0.0, -0.0]).to_bits() & 0x7fffffff, 0);
}

#[test]
fn products_softmax_and_scans_of_specials() {
    let Some(_shared) = ready("products of specials") else { return };
    for n in [2usize, 40, 100] {
        // One infinity and one zero meet in every row: NaN, and the other rows stay clean.
        let mut a = vec![1f32; n * n];
        a[0] = INF;
        let mut b = vec![1f32; n * n];
        b[..n].fill(0.0);
        let out = Dev::zeros(&[n, n], DType::F32);
        matmul(&Dev::new(&[n, n], &a).view(), &Dev::new(&[n, n], &b).view(), &out.view(), 1.0, 0.0).unwrap();
        let got = out.get::<f32>();
        assert!(got[..n].iter().all(|v| v.is_nan()) && got[n..].iter().all(|v| *v == (n - 1) as f32), "{n}");
        // Old values are not read where beta is zero.
        let out = Dev::new(&[n, n], &vec![NAN; n * n]);
        matmul(&Dev::new(&[n, n], &b).view(), &Dev::new(&[n, n], &b).view(), &out.view(), 1.0, 0.0).unwrap();
        assert!(out.get::<f32>().iter().all(|v| !v.is_nan()));
    }
    for n in [4usize, 300] {
        let mut x = vec![0f32; 3 * n];
        x[..n].fill(-INF);
        x[n] = NAN;
        x[2 * n] = -INF;
        let (a, out) = (Dev::new(&[3, n], &x), Dev::zeros(&[3, n], DType::F32));
        for log in [false, true] {
            softmax(&a.view(), 1, &out.view(), log).unwrap();
            let got = out.get::<f32>();
            assert!(got[..2 * n].iter().all(|v| v.is_nan()), "{n} {log} {:?}", &got[..2]);
            assert_eq!(got[2 * n], if log { -INF } else { 0.0 });
            assert!(got[2 * n + 1..].iter().all(|v| v.is_finite()));
        }
        let mut x = vec![1f32; n];
        x[n / 2] = NAN;
        let (a, out) = (Dev::new(&[n], &x), Dev::zeros(&[n], DType::F32));
        for kind in [Scan::Sum, Scan::Prod, Scan::Max, Scan::Min, Scan::LogSumExp] {
            cumulative(kind, &a.view(), 0, &out.view(), None).unwrap();
            let got = out.get::<f32>();
            assert!((0..n).all(|i| got[i].is_nan() == (i >= n / 2)), "{kind:?} {n}");
        }
    }
}

#[test]
fn indexing_keeps_bits_and_modes_propagate() {
    let Some(_shared) = ready("indexing of specials") else { return };
    let data = [f32::from_bits(0x7fc12345), -0.0, INF, f32::from_bits(1)];
    let (a, index) = (Dev::new(&[4], &data), Dev::new(&[4], &[3i64, 2, 1, 0]));
    let out = Dev::zeros(&[4], DType::F32);
    gather(&a.view(), 0, &index.view(), &out.view()).unwrap();
    let got: Vec<u32> = out.get::<f32>().iter().map(|v| v.to_bits()).collect();
    assert_eq!(got, data.iter().rev().map(|v| v.to_bits()).collect::<Vec<_>>());
    for mode in [ScatterMode::Add, ScatterMode::Mul, ScatterMode::Max, ScatterMode::Min] {
        let out = Dev::new(&[4], &[1f32; 4]);
        scatter(&out.view(), 0, &index.view(), &Input::Scalar(Scalar::Float(f64::NAN)), mode).unwrap();
        assert!(out.get::<f32>().iter().all(|v| v.is_nan()), "{mode:?}");
    }
    let mask = Dev::new(&[4], &[NAN, -0.0, 0.0, 2.0]);
    assert_eq!(Places::find(&mask.view()).unwrap().count, 2);
}
