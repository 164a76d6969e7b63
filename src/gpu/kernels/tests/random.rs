//! Random numbers: the words of Philox bit by bit, the formulas of Note [Random numbers] in float64.

use super::*;
use crate::gpu::{random, supports};
use crate::kinds::Draw;

const SEED: u64 = 0x299f31d0_a4093822;
const OFFSET: u64 = 0x03707344_13198a2e;

/// Philox4x32-10, written down once more so that the shader is not compared with itself.
fn block(index: u64) -> [u32; 4] {
    let mut c = [index as u32, (index >> 32) as u32, OFFSET as u32, (OFFSET >> 32) as u32];
    let mut key = [SEED as u32, (SEED >> 32) as u32];
    for _ in 0..10 {
        let (p, q) = (0xd2511f53u64 * c[0] as u64, 0xcd9e8d57u64 * c[2] as u64);
        c = [(q >> 32) as u32 ^ c[1] ^ key[0], q as u32, (p >> 32) as u32 ^ c[3] ^ key[1], p as u32];
        key = [key[0].wrapping_add(0x9e3779b9), key[1].wrapping_add(0xbb67ae85)];
    }
    c
}
fn word(i: usize) -> u32 {
    block(i as u64 / 4)[i % 4]
}

fn draw<T: Element>(n: usize, kind: Draw) -> Vec<T> {
    let out = Dev::zeros(&[n], T::DTYPE);
    random(kind, SEED, OFFSET, &out.view()).unwrap();
    out.get()
}

#[test]
fn elements_are_those_of_the_note() {
    let Some(_shared) = ready("random") else { return };
    let n = 3001;
    let u = draw::<f32>(n, Draw::Uniform { from: 0.0, to: 1.0 });
    let b = draw::<bool>(n, Draw::Bernoulli { p: 0.3 });
    let k = draw::<i32>(n, Draw::Int { low: -5, high: 5, long: false });
    let x = draw::<f32>(n, Draw::Normal { mean: 0.0, std: 1.0 });
    let e = draw::<f32>(n, Draw::Exponential { rate: 2.0 });
    let m = draw::<f32>(n, Draw::Mask { keep: 0.3, value: 1.0 / 0.3 });
    for i in 0..n {
        let w = word(i);
        assert_eq!(u[i], (w >> 8) as f32 / 16777216.0);
        assert_eq!(b[i], (w as u64) < (0.3f64 * 4294967296.0).ceil() as u64);
        assert_eq!(m[i], if b[i] { 1.0 / 0.3 } else { 0.0 });
        assert_eq!(k[i], ((w as u64 * 10) >> 32) as i32 - 5);
        let (p, q) = (word(i / 2 * 2) >> 8, word(i / 2 * 2 + 1) >> 8);
        let r = (-2.0 * ((p as f64 + 1.0) / 16777216.0).ln()).sqrt();
        let t = std::f64::consts::TAU * q as f64 / 16777216.0;
        let want = r * if i % 2 == 0 { t.cos() } else { t.sin() };
        assert!((x[i] as f64 - want).abs() < 1e-6, "{i}: {} {want}", x[i]);
        let want = -(((w >> 8) as f64 + 1.0) / 16777216.0).ln() / 2.0;
        assert!((e[i] as f64 - want).abs() < 1e-6);
    }
    assert!(draw::<bool>(100, Draw::Bernoulli { p: 1.0 }).iter().all(|b| *b));
    assert!(!draw::<bool>(100, Draw::Bernoulli { p: 0.0 }).iter().any(|b| *b));
}

#[test]
fn wide_elements_take_two_words() {
    let Some(_shared) = ready("wide random") else { return };
    let pair = |i: usize| {
        let b = block(i as u64 / 2);
        (b[2 * (i % 2) + 1] as u64) << 32 | b[2 * (i % 2)] as u64
    };
    if supports(GPU, DType::I64) {
        let (low, high) = (-(1i64 << 62), (1 << 62) + 12345);
        let k = draw::<i64>(1001, Draw::Int { low, high, long: true });
        let all = draw::<i64>(1001, Draw::Int { low: 0, high: 0, long: true });
        for i in 0..1001 {
            let scaled = (pair(i) as u128 * (high.wrapping_sub(low) as u64) as u128) >> 64;
            assert_eq!(k[i], low.wrapping_add(scaled as i64));
            assert_eq!(all[i], pair(i) as i64);
        }
    }
    if supports(GPU, DType::F64) {
        let u = draw::<f64>(1001, Draw::Uniform { from: 0.0, to: 1.0 });
        let x = draw::<f64>(1001, Draw::Normal { mean: 0.0, std: 1.0 });
        for i in 0..1001 {
            assert_eq!(u[i], (pair(i) >> 11) as f64 / 9007199254740992.0);
            let (p, q) = (pair(i / 2 * 2) >> 11, pair(i / 2 * 2 + 1) >> 11);
            let r = (-2.0 * ((p as f64 + 1.0) / 9007199254740992.0).ln()).sqrt();
            let t = std::f64::consts::TAU * q as f64 / 9007199254740992.0;
            assert!((x[i] - r * if i % 2 == 0 { t.cos() } else { t.sin() }).abs() < 1e-14);
        }
    }
}
