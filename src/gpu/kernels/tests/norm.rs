//! Layer normalisation both ways: against plain loops for rows of every length, with NaN and infinity, and through naga.

use super::kernels::checked;
use super::kernels::{Hollow, known};
use super::linear::numbers;
use super::*;
use crate::gpu::*;

const EPS: f64 = 1e-5;

/// (y, mean, rstd) of rows, then (dx, dw, db) for the gradient `g`.
fn normalised(x: &Dev, w: &Dev, b: &Dev, g: &Dev) -> [Vec<f32>; 6] {
    let [rows, cols] = [x.layout.shape[0], x.layout.shape[1]];
    let [y, dx] = [(); 2].map(|()| Dev::zeros(&[rows, cols], DType::F32));
    let [mean, rstd] = [(); 2].map(|()| Dev::zeros(&[rows], DType::F32));
    let [dw, db] = [(); 2].map(|()| Dev::zeros(&[cols], DType::F32));
    let out = [&y.view(), &mean.view(), &rstd.view()];
    layer_norm(&x.view(), Some(w.view()), Some(b.view()), EPS, out).unwrap();
    let from =
        NormGrad { grad: g.view(), input: x.view(), mean: mean.view(), rstd: rstd.view(), weight: Some(w.view()) };
    layer_norm_backward(&from, &dx.view(), &dw.view(), &db.view()).unwrap();
    [&y, &mean, &rstd, &dx, &dw, &db].map(|t| t.get::<f32>())
}

#[test]
fn rows_of_every_length() {
    let Some(_shared) = ready("layer norm") else { return };
    for (rows, cols) in [(1usize, 1usize), (5, 3), (300, 7), (64, 33), (65, 100), (3, 5000)] {
        let (x, g) = (numbers(rows * cols, 1), numbers(rows * cols, 2));
        let (w, b) = (numbers(cols, 3), numbers(cols, 4));
        let [y, mean, rstd, dx, dw, db] = normalised(
            &Dev::new(&[rows, cols], &x),
            &Dev::new(&[cols], &w),
            &Dev::new(&[cols], &b),
            &Dev::new(&[rows, cols], &g),
        );
        let close = |got: f32, want: f64, scale: f64| {
            assert!((got as f64 - want).abs() < 3e-5 * (1.0 + scale), "[{rows}, {cols}]: {got} {want}");
        };
        let n = cols as f64;
        let (mut want_w, mut want_b) = (vec![0f64; cols], vec![0f64; cols]);
        for r in 0..rows {
            let (x, g) = (&x[r * cols..][..cols], &g[r * cols..][..cols]);
            let m = x.iter().map(|&v| v as f64).sum::<f64>() / n;
            let s = 1.0 / (x.iter().map(|&v| (v as f64 - m).powi(2)).sum::<f64>() / n + EPS).sqrt();
            close(mean[r], m, 0.0);
            close(rstd[r], s, s);
            let h: Vec<f64> = x.iter().map(|&v| (v as f64 - m) * s).collect();
            let gw: Vec<f64> = g.iter().zip(&w).map(|(&g, &w)| g as f64 * w as f64).collect();
            let middle = gw.iter().sum::<f64>() / n;
            let tilt = gw.iter().zip(&h).map(|(g, h)| g * h).sum::<f64>() / n;
            for i in 0..cols {
                close(y[r * cols + i], h[i] * w[i] as f64 + b[i] as f64, 10.0);
                close(dx[r * cols + i], s * (gw[i] - middle - h[i] * tilt), 10.0 * s);
                want_w[i] += g[i] as f64 * h[i];
                want_b[i] += g[i] as f64;
            }
        }
        (0..cols).for_each(|i| close(dw[i], want_w[i], 10.0 * rows as f64));
        (0..cols).for_each(|i| close(db[i], want_b[i], 10.0 * rows as f64));
    }
}

#[test]
fn specials_stay_in_their_row_and_column() {
    let Some(_shared) = ready("layer norm of specials") else { return };
    for cols in [4usize, 300] {
        let ones = Dev::new(&[cols], &vec![1f32; cols]);
        for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = numbers(3 * cols, 5);
            x[cols] = special;
            let (x, g) = (Dev::new(&[3, cols], &x), Dev::new(&[3, cols], &numbers(3 * cols, 6)));
            let [y, mean, rstd, dx, dw, db] = normalised(&x, &ones, &ones, &g);
            for (i, v) in y.iter().chain(&dx).enumerate() {
                assert_eq!(v.is_nan(), i % (3 * cols) / cols == 1, "{special} {cols} at {i}: {v}");
            }
            assert!(!mean[1].is_finite() && rstd[1].is_nan() && mean[0].is_finite() && rstd[2].is_finite());
            assert!(dw.iter().all(|v| v.is_nan()) && db.iter().all(|v| v.is_finite()));
        }
    }
}

#[test]
fn layer_norm_validates() {
    checked(|| {
        for dtype in known().filter(|d| d.is_float()) {
            for (rows, cols) in [(3, 2), (200, 40), (2, 9000)] {
                let [x, y] = [(); 2].map(|()| Hollow::new(&[rows, cols], dtype, false));
                let [mean, rstd] = [(); 2].map(|()| Hollow::new(&[rows], dtype, false));
                let [w, b] = [(); 2].map(|()| Hollow::new(&[cols], dtype, false));
                let out = || [mean.view(), rstd.view()];
                for (weight, bias) in [(None, None), (Some(w.view()), None), (Some(w.view()), Some(b.view()))] {
                    let [mean, rstd] = out();
                    layer_norm(&x.view(), weight, bias, EPS, [&y.view(), &mean, &rstd])?;
                    let from = NormGrad { grad: x.view(), input: x.view(), mean, rstd, weight };
                    layer_norm_backward(&from, &y.view(), &w.view(), &b.view())?;
                }
            }
        }
        Ok(())
    });
}
