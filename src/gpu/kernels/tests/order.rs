//! Sorting, searching, recurrences, sequences, optimiser steps and refusals: against plain loops, NaN and infinity
//! included, and through naga.

use super::kernels::checked;
use super::kernels::{Hollow, known};
use super::*;
use crate::dtype::Scalar;
use crate::gpu::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// Ascending, NaN last, equal elements in their order.
fn order(x: &[f32], descending: bool) -> Vec<usize> {
    let mut at: Vec<usize> = (0..x.len()).collect();
    let rank = |v: f32| if v.is_nan() { INF as f64 * 2.0 } else { v as f64 };
    let key = |i: usize| (x[i].is_nan(), rank(if x[i].is_nan() { 0.0 } else { x[i] }));
    at.sort_by(|&a, &b| {
        let o = key(a).partial_cmp(&key(b)).unwrap();
        if descending { o.reverse() } else { o }
    });
    at
}

#[test]
fn sorts_lines_of_every_length() {
    let Some(_shared) = ready("sort") else { return };
    for (lines, n) in [(1usize, 1usize), (3, 2), (2, 64), (2, 65), (3, 129), (1, 5000)] {
        let mut data: Vec<f32> = (0..lines * n).map(|i| ((i * 7919 % 1009) / 3) as f32 - 100.0).collect();
        let specials = [NAN, INF, -INF, -0.0, 0.0];
        (0..data.len()).step_by(7).for_each(|i| data[i] = specials[i / 7 % 5]);
        let x = Dev::new(&[lines, n], &data);
        for descending in [false, true] {
            let (values, indices) = (Dev::zeros(&[lines, n], DType::F32), Dev::zeros(&[lines, n], DType::I64));
            sort(&x.view(), 1, descending, 0, &values.view(), &indices.view()).unwrap();
            let (values, indices) = (values.get::<f32>(), indices.get::<i64>());
            for line in 0..lines {
                let row = &data[line * n..][..n];
                for (i, at) in order(row, descending).into_iter().enumerate() {
                    assert_eq!(indices[line * n + i], at as i64, "{lines} {n} {descending} at {i}");
                    assert_eq!(values[line * n + i].to_bits(), row[at].to_bits());
                }
            }
        }
        // Along the first dimension, from a place on, strided outputs.
        let (values, indices) = (Dev::zeros(&[2, n], DType::F32), Dev::zeros(&[2, n], DType::I64));
        let (k, first) = (n.min(2), n / 2 - n / 3 * (n > 4) as usize);
        let (v, at) = (values.layout.slice(1, (0, n, 1)).slice(0, (0, 1, 1)), indices.layout.slice(0, (0, 1, 1)));
        let part = |l: &Layout| l.transpose(0, 1).slice(0, (0, k, 1));
        let column = x.layout.slice(0, (0, 1, 1)).transpose(0, 1);
        let k_fits = first + k <= n;
        if k_fits {
            sort(&x.view_of(&column), 0, false, first, &values.view_of(&part(&v)), &indices.view_of(&part(&at)))
                .unwrap();
            let want = order(&data[..n], false);
            assert_eq!(&indices.get::<i64>()[..k], want[first..][..k].iter().map(|&i| i as i64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn sorts_rows() {
    let Some(_shared) = ready("rows") else { return };
    for (rows, cols) in [(1usize, 3usize), (50, 2), (300, 3), (1000, 1)] {
        let specials = [NAN, INF, -INF, -0.0, 0.0, 1.0];
        let data: Vec<f32> = (0..rows * cols).map(|i| specials[i * 7919 % 1009 % 6]).collect();
        let at = Dev::zeros(&[rows], DType::I64);
        sort_rows(&Dev::new(&[rows, cols], &data).view(), &at.view()).unwrap();
        let key = |i: usize| {
            let digit =
                |v: &f32| if v.is_nan() { 5 } else { [-INF, 0.0, 1.0, INF].iter().position(|w| w == v).unwrap() };
            data[i * cols..][..cols].iter().map(digit).collect::<Vec<_>>()
        };
        let mut want: Vec<usize> = (0..rows).collect();
        want.sort_by_key(|&i| key(i));
        assert_eq!(at.get::<i64>(), want.iter().map(|&i| i as i64).collect::<Vec<_>>(), "{rows} {cols}");
    }
}

#[test]
fn searches_lines() {
    let Some(_shared) = ready("search") else { return };
    let sorted = Dev::new(&[2, 4], &[-INF, 1f32, 1., INF, 0., 2., 4., NAN]);
    let values = Dev::new(&[2, 4], &[-INF, 1f32, NAN, INF, -0.0, 3., INF, NAN]);
    for (right, want) in [(false, [0i64, 1, 4, 3, 0, 2, 4, 4]), (true, [1, 3, 4, 4, 1, 2, 4, 4])] {
        let out = Dev::zeros(&[2, 4], DType::I64);
        search(&sorted.view(), &values.view(), right, DType::F32, &out.view()).unwrap();
        assert_eq!(out.get::<i64>(), want, "right: {right}");
    }
}

#[test]
fn recurrences_carry_specials() {
    let Some(_shared) = ready("recurrence") else { return };
    let a = Dev::new(&[2, 3], &[2f32, 2., 2., 1., 1., 1.]);
    let b = Dev::new(&[2, 3], &[1f32, 1., 1., 1., NAN, INF]);
    let out = Dev::zeros(&[2, 3], DType::F32);
    recurrence(&a.view(), &b.view(), 1, false, &out.view()).unwrap();
    let got = out.get::<f32>();
    assert_eq!(&got[..4], [1., 3., 7., 1.]);
    assert!(got[4].is_nan() && got[5].is_nan());
    recurrence(&a.view(), &b.view(), 1, true, &out.view()).unwrap();
    let got = out.get::<f32>();
    assert_eq!(&got[..3], [7., 3., 1.]);
    assert!(got[5] == INF && got[4].is_nan() && got[3].is_nan());
}

#[test]
fn sequences_follow_their_rule() {
    let Some(_shared) = ready("sequences") else { return };
    let whole = Dev::zeros(&[1000], DType::I64);
    ramp(Scalar::Int(-5), Scalar::Int(3), &whole.view()).unwrap();
    assert!(whole.get::<i64>().iter().enumerate().all(|(i, v)| *v == 3 * i as i64 - 5));
    let bytes = Dev::zeros(&[9], DType::U8);
    ramp(Scalar::Int(1), Scalar::Int(2), &bytes.view_of(&bytes.layout.slice(0, (1, 7, 1)))).unwrap();
    assert_eq!(bytes.get::<u8>(), [0, 1, 3, 5, 7, 9, 11, 13, 0]);
    let out = Dev::zeros(&[5], DType::F32);
    line(0.0, 1.0, &out.view()).unwrap();
    assert_eq!(out.get::<f32>(), [0.0, 0.25, 0.5, 0.75, 1.0]);
}

#[test]
fn steps_of_optimisers() {
    let Some(_shared) = ready("steps") else { return };
    let new = |v: [f32; 3]| Dev::new(&[3], &v);
    let (x, g, b) = (new([1., 2., NAN]), new([1., INF, 1.]), new([2., 0., 0.]));
    let numbers =
        [("lr", -0.5), ("sign", 1.0), ("decay", 0.0), ("keep", 1.0), ("ahead", 0.0), ("momentum", 0.5), ("kept", 1.0)];
    let rule = "if ({{decay}} != 0.0) { g += x * {{decay}}; }
    if ({{keep}} != 0.0) { b = b * {{momentum}} + {{kept}} * g; } else { b = g; }
    if ({{ahead}} != 0.0) { g += {{momentum}} * b; } else { g = b; }
    x += {{lr}} * g * {{sign}};";
    update(("descent", rule), &[("x", x.view()), ("b", b.view())], ("g", g.view()), &numbers).unwrap();
    // No decay, so that what the parameter is does not reach the momentum.
    assert_eq!(b.get::<f32>(), [2., INF, 1.]);
    let got = x.get::<f32>();
    assert!(got[0] == 0.0 && got[1] == -INF && got[2].is_nan(), "{got:?}");
}

#[test]
fn refusals_come_back_when_the_host_waits() {
    const ALL: [Refusal; 4] = [Refusal::NoProbability, Refusal::NoChance, Refusal::NoWeights, Refusal::DivisionByZero];
    let Some(_alone) = alone("refusals") else { return };
    for (what, text) in ALL.into_iter().zip(Refusal::TEXTS) {
        let good = what == Refusal::DivisionByZero;
        refuse_where(&Dev::new(&[3], &[good; 3]).view(), what).unwrap();
        synchronize().unwrap();
        refuse_where(&Dev::new(&[3], &[good, !good, good]).view(), what).unwrap();
        assert_eq!(synchronize().unwrap_err().message(), text);
        synchronize().unwrap();
    }
}

#[test]
fn order_and_steps_validate() {
    checked(|| {
        for dtype in known() {
            for (n, strided) in [(3, false), (200, true)] {
                let x = Hollow::new(&[4, n], dtype, strided);
                let index = Hollow::new(&[4, n], DType::I64, strided);
                sort(&x.view(), 1, strided, 0, &Hollow::new(&[4, n], dtype, false).view(), &index.view())?;
                sort_rows(&x.view(), &Hollow::new(&[4], DType::I64, strided).view())?;
                for (out, right) in [(DType::I64, false), (DType::I32, true)] {
                    search(&x.view(), &x.view(), right, dtype, &Hollow::new(&[4, n], out, strided).view())?;
                }
                let [a, b] = [(); 2].map(|()| Hollow::new(&[4, n], dtype, strided));
                recurrence(&a.view(), &b.view(), 1, strided, &x.view())?;
                triangle(&a.view(), 1, strided, &b.view())?;
                triangle(&a.view(), 1, strided, &a.view())?;
                refuse_where(&x.view(), Refusal::NoProbability)?;
                refuse_where(&x.view(), Refusal::DivisionByZero)?;
                pick_class(&x.view(), 1, &index.view(), &b.view())?;
                put_class(&x.view(), 1, &index.view(), &b.view())?;
                if dtype.is_float() {
                    steps([&x, &a, &b, &Hollow::new(&[4, n], DType::F32, strided)])?;
                }
            }
        }
        Ok(())
    });
    for dtype in known().filter(|d| *d != DType::Bool) {
        validate_all(&[(crate::gpu::kernels::map::RAMP, dtype), (crate::gpu::kernels::map::LINE, dtype)]).unwrap();
    }
}

/// The rules themselves run as samples of their ops.
fn steps([x, m, v, g]: [&Hollow; 4]) -> crate::error::Result<()> {
    let numbers = [("lr", 0.5), ("decay", 0.5)];
    let rule = "if ({{decay}} != 0.0) { g += x * {{decay}}; }\n    m = max_(m, abs_(g));\n    v += sqrt_(m);\n    x += {{lr}} * v;";
    update(("a rule", rule), &[("x", x.view()), ("m", m.view()), ("v", v.view())], ("g", g.view()), &numbers)
}
