//! `map` and `copy`: values, strides, dtypes, in place, words shared between elements.

use super::*;
use crate::dtype::{Scalar, bf16, f16};
use crate::gpu::{copy, map, supports};

#[test]
fn adds_with_broadcast_and_numbers() {
    let Some(_shared) = ready("adds") else { return };
    let a = Dev::new(&[2, 3], &[1f32, 2., 3., 4., 5., 6.]);
    let row = Dev::new(&[3], &[10f32, 20., 30.]);
    let out = Dev::zeros(&[2, 3], DType::F32);
    let wide = Layout { shape: [2, 3].as_slice().into(), strides: [0, 1].as_slice().into(), offset: 0 };
    let inputs = [a.input(), Input::View(row.view_of(&wide)), Input::Scalar(Scalar::Float(0.5))];
    map(&[2, 3], &inputs, &out.view(), DType::F32, "x + y * z").unwrap();
    assert_eq!(out.get::<f32>(), [6., 12., 18., 9., 15., 21.]);
}

#[test]
fn transposes_and_writes_strided() {
    let Some(_shared) = ready("transposes") else { return };
    let a = Dev::new(&[2, 3], &[1i64, -2, 3, 4, 5, 1 << 40]);
    let t = a.layout.transpose(0, 1);
    let out = Dev::zeros(&[3, 2], DType::I64);
    copy(&Input::View(a.view_of(&t)), &out.view()).unwrap();
    assert_eq!(out.get::<i64>(), [1, 4, -2, 5, 3, 1 << 40]);
    let back = Dev::zeros(&[2, 3], DType::I64);
    copy(&out.input(), &back.view_of(&back.layout.transpose(0, 1))).unwrap();
    assert_eq!(back.get::<i64>(), a.get::<i64>());
}

/// Every other byte of a buffer is written: the neighbours in the same words stay.
#[test]
fn narrow_writes_keep_their_neighbours() {
    let Some(_shared) = ready("narrow writes") else { return };
    for n in [1usize, 2, 3, 4, 5, 9, 1000] {
        let data: Vec<u8> = (0..2 * n).map(|i| i as u8).collect();
        let a = Dev::new(&[2 * n], &data);
        let odd = a.layout.slice(0, (1, n, 2));
        let view = a.view_of(&odd);
        map(&[n], &[Input::View(view), Input::Scalar(Scalar::Int(100))], &view, DType::I32, "x + y").unwrap();
        let want: Vec<u8> =
            data.iter().enumerate().map(|(i, v)| if i % 2 == 1 { v.wrapping_add(100) } else { *v }).collect();
        assert_eq!(a.get::<u8>(), want);
        for start in 0..n.min(4) {
            let part = a.layout.slice(0, (start, n, 1));
            let before = a.get::<u8>();
            copy(&Input::Scalar(Scalar::Int(7)), &a.view_of(&part)).unwrap();
            let after = a.get::<u8>();
            for i in 0..2 * n {
                assert_eq!(after[i], if i >= start && i < start + n { 7 } else { before[i] }, "{n} {start} {i}");
            }
        }
    }
}

/// An input that overlaps the output with other strides is read before anything is written.
#[test]
fn overlapping_copies_read_first() {
    let Some(_shared) = ready("overlap") else { return };
    let n = 700;
    let data: Vec<f32> = (0..n * n).map(|i| i as f32).collect();
    let a = Dev::new(&[n, n], &data);
    copy(&Input::View(a.view_of(&a.layout.transpose(0, 1))), &a.view()).unwrap();
    let got = a.get::<f32>();
    assert!((0..n * n).all(|i| got[i] == data[i % n * n + i / n]));
}

#[test]
fn casts_between_all_dtypes() {
    let Some(_shared) = ready("casts") else { return };
    let data: Vec<f32> =
        vec![0., -0., 1., -1., 2.5, 100.7, -100.7, 3.4e38, f32::NAN, f32::INFINITY, 6e-8, 65519., 65520.];
    let n = data.len();
    let a = Dev::new(&[n], &data);
    let half = Dev::zeros(&[n], DType::F16);
    copy(&a.input(), &half.view()).unwrap();
    for (h, v) in half.get::<f16>().iter().zip(&data) {
        assert!(h.to_bits() == f16::from_f32(*v).to_bits() || (h.is_nan() && v.is_nan()), "{h} {v}");
    }
    let brain = Dev::zeros(&[n], DType::BF16);
    copy(&a.input(), &brain.view()).unwrap();
    for (h, v) in brain.get::<bf16>().iter().zip(&data) {
        assert!(h.to_bits() == bf16::from_f32(*v).to_bits() || (h.is_nan() && v.is_nan()), "{h} {v}");
    }
    let truth = Dev::zeros(&[n], DType::Bool);
    copy(&a.input(), &truth.view()).unwrap();
    assert_eq!(truth.get::<bool>(), data.iter().map(|v| *v != 0.0).collect::<Vec<_>>());
    let long = Dev::zeros(&[n], DType::I64);
    copy(&a.input(), &long.view()).unwrap();
    let want: Vec<i64> = data.iter().map(|v| Scalar::Float(*v as f64).to_i64()).collect();
    assert_eq!(long.get::<i64>(), want);
    for dtype in DType::ALL.into_iter().filter(|d| supports(GPU, *d)) {
        let small = Dev::new(&[6], &[0f32, 1., 2., 3., 100., 1.]);
        let there = Dev::zeros(&[6], dtype);
        let back = Dev::zeros(&[6], DType::F32);
        copy(&small.input(), &there.view()).unwrap();
        copy(&there.input(), &back.view()).unwrap();
        let want = if dtype == DType::Bool { vec![0f32, 1., 1., 1., 1., 1.] } else { small.get() };
        assert_eq!(back.get::<f32>(), want, "{dtype}");
    }
}

/// All 65,536 patterns of float16 survive the way to float32 and back.
#[test]
fn every_half_survives() {
    let Some(_shared) = ready("halves") else { return };
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let a = Dev::new(&[65536], &all);
    let wide = Dev::zeros(&[65536], DType::F32);
    copy(&a.input(), &wide.view()).unwrap();
    for (v, h) in wide.get::<f32>().iter().zip(&all) {
        assert!(v.to_bits() == h.to_f32().to_bits() || (v.is_nan() && h.is_nan()), "{h} {v}");
    }
    let back = Dev::zeros(&[65536], DType::F16);
    copy(&wide.input(), &back.view()).unwrap();
    for (b, h) in back.get::<f16>().iter().zip(&all) {
        assert!(b.to_bits() == h.to_bits() || (b.is_nan() && h.is_nan()));
    }
}

#[test]
fn fills_numbers_exactly() {
    let Some(_shared) = ready("fills") else { return };
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.1] {
        let out = Dev::zeros(&[5], DType::F32);
        copy(&Input::Scalar(Scalar::Float(value as f64)), &out.view()).unwrap();
        assert!(out.get::<f32>().iter().all(|v| v.to_bits() == value.to_bits() || (v.is_nan() && value.is_nan())));
    }
    if supports(GPU, DType::F64) {
        let out = Dev::zeros(&[5], DType::F64);
        copy(&Input::Scalar(Scalar::Float(0.1)), &out.view()).unwrap();
        assert_eq!(out.get::<f64>(), [0.1; 5]);
    }
    let out = Dev::zeros(&[3], DType::I64);
    copy(&Input::Scalar(Scalar::Int(i64::MIN + 5)), &out.view()).unwrap();
    assert_eq!(out.get::<i64>(), [i64::MIN + 5; 3]);
}

#[test]
fn unaligned_transfers_keep_neighbours() {
    let Some(_shared) = ready("transfers") else { return };
    let a = Dev::new(&[11], &[0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    upload(&[77, 78, 79], &a.buffer, 2).unwrap();
    assert_eq!(a.get::<u8>(), [0, 1, 77, 78, 79, 5, 6, 7, 8, 9, 10]);
    let mut piece = [0u8; 5];
    // SAFETY: `piece` is five bytes.
    unsafe { download(&a.buffer, 3, piece.as_mut_ptr(), 5).unwrap() };
    assert_eq!(piece, [78, 79, 5, 6, 7]);
    assert!(upload(&[0; 12], &a.buffer, 0).is_err());
}

/// Uploads, kernels and reads happen in program order although they travel by different roads.
#[test]
fn program_order_is_the_semantics() {
    let Some(_shared) = ready("order") else { return };
    let a = Dev::new(&[4], &[1f32; 4]);
    let out = Dev::zeros(&[4], DType::F32);
    for i in 0..600 {
        copy(&a.input(), &out.view()).unwrap();
        upload(bytes_of(&[i as f32; 4]), &a.buffer, 0).unwrap();
        map(&[4], &[out.input(), a.input()], &out.view(), DType::F32, "x - y").unwrap();
    }
    assert_eq!(out.get::<f32>(), [-1f32; 4]);
}

/// Integer arithmetic of both widths and both signs: quotients, remainders, powers, shifts, divisors.
#[test]
fn integers_of_both_widths() {
    let Some(_shared) = ready("integers") else { return };
    let xs = [7i64, -7, 7, -7, 0, -6, 12, 1 << 30];
    let ys = [2i64, 2, -2, -2, 3, 0, -8, 3];
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.abs()
    };
    let floor = |a: i64, b: i64| (a as f64 / b as f64).floor() as i64;
    let safe = |f: &dyn Fn(i64, i64) -> i64, a, b| if b == 0 { None } else { Some(f(a, b)) };
    type Case<'a> = (&'static str, &'a dyn Fn(i64, i64) -> Option<i64>);
    let cases: [Case<'_>; 9] = [
        ("abs_(x)", &|a, _| Some(a.abs())),
        ("sign_(x)", &|a, _| Some(a.signum())),
        ("trunc_div_(x, y)", &|a, b| safe(&|a, b| a / b, a, b)),
        ("floor_div_(x, y)", &|a, b| safe(&floor, a, b)),
        ("fmod_(x, y)", &|a, b| safe(&|a, b| a % b, a, b)),
        ("remainder_(x, y)", &|a, b| safe(&|a, b| a - floor(a, b) * b, a, b)),
        ("gcd_(x, y)", &|a, b| Some(gcd(a, b))),
        ("max_(x, y)", &|a, b| Some(a.max(b))),
        ("lt_(x, y)", &|a, b| Some((a < b) as i64)),
    ];
    for dtype in [DType::I32, DType::I64] {
        if !supports(GPU, dtype) {
            continue;
        }
        let (x, y) = (Dev::new(&[8], &xs), Dev::new(&[8], &ys));
        for (expr, f) in cases {
            let (out, wide) = (Dev::zeros(&[8], dtype), Dev::zeros(&[8], DType::I64));
            map(&[8], &[x.input(), y.input()], &out.view(), dtype, expr).unwrap();
            copy(&out.input(), &wide.view()).unwrap();
            let got = wide.get::<i64>();
            for i in 0..8 {
                if let Some(want) = f(xs[i], ys[i]) {
                    assert_eq!(got[i], want, "{expr} in {dtype} of {} and {}", xs[i], ys[i]);
                }
            }
        }
    }
}
