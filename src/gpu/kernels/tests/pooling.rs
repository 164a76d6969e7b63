//! Pooling, batch and group normalisation through naga, in every dtype and form, and pooling against plain loops.

use super::kernels::checked;
use super::kernels::{Hollow, known};
use super::linear::numbers;
use super::*;
use crate::gpu::*;
use crate::layout::window::{Axis, Windows};

fn axes() -> Vec<[Axis; 3]> {
    let steps = |size, out, kernel, stride, padding, dilation| Axis {
        size,
        out,
        windows: Windows::Steps { kernel, stride, padding, dilation },
    };
    vec![
        [Axis::whole(), steps(6, 3, 2, 2, 0, 1), steps(7, 4, 3, 2, 1, 1)],
        [steps(4, 2, 2, 2, 0, 1), steps(5, 2, 2, 2, 1, 2), steps(5, 5, 3, 1, 1, 1)],
        [Axis::whole(), Axis::adaptive(7, 3), Axis::adaptive(3, 5)],
    ]
}

#[test]
fn pooling_validates() {
    checked(|| {
        for dtype in known().filter(|d| d.is_float()) {
            for axes in axes() {
                let inner = [2, 3, axes[0].size, axes[1].size, axes[2].size];
                let outer = [2, 3, axes[0].out, axes[1].out, axes[2].out];
                let [x, dx] = [(); 2].map(|()| Hollow::new(&inner, dtype, false));
                let [y, g] = [(); 2].map(|()| Hollow::new(&outer, dtype, false));
                let places = Hollow::new(&outer, crate::dtype::DType::I64, false);
                max_pool(&x.view(), &axes, &y.view(), Some(places.view()))?;
                max_pool(&x.view(), &axes, &y.view(), None)?;
                for by in [PoolDivisor::Extent, PoolDivisor::Count, PoolDivisor::Given(-3)] {
                    mean_pool(&x.view(), &axes, by, &y.view())?;
                    mean_pool_backward(&g.view(), &axes, by, &dx.view())?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn normalisation_of_channels_validates() {
    checked(|| {
        for dtype in known().filter(|d| d.is_float()) {
            for (shape, groups) in [
                ([2, 4, 3], None),
                ([2, 4, 900], Some(2)),
                ([1, 6, 1], Some(6)),
                ([300, 2, 1], None),
                ([5, 2, 4000], None),
                ([2, 4, 9000], Some(2)),
            ] {
                let [x, y, g, dx] = [(); 4].map(|()| Hollow::new(&shape, dtype, false));
                let [w, b, dw, db] = [(); 4].map(|()| Hollow::new(&[shape[1]], dtype, false));
                let count = groups.map_or(shape[1], |g| shape[0] * g);
                let [mean, rstd, var] = [(); 3].map(|()| Hollow::new(&[count], dtype, false));
                for (weight, bias) in [(None, None), (Some(w.view()), Some(b.view()))] {
                    let of = Channels { input: x.view(), weight, bias, groups, eps: 1e-5 };
                    normalise(&of, &y.view(), &mean.view(), &rstd.view(), &var.view())?;
                    for given in [false, true] {
                        let from = ChannelGrad {
                            grad: g.view(),
                            input: x.view(),
                            mean: mean.view(),
                            rstd: rstd.view(),
                            weight,
                            groups,
                            given,
                        };
                        normalise_backward(&from, &dx.view(), &dw.view(), &db.view())?;
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn windows_agree_with_the_layout() {
    let Some(_shared) = ready("pooling") else { return };
    for axes in axes() {
        let inner = [2, 3, axes[0].size, axes[1].size, axes[2].size];
        let outer = [2, 3, axes[0].out, axes[1].out, axes[2].out];
        let (count, plane) = (outer.iter().product::<usize>(), inner[2..].iter().product::<usize>());
        let x = numbers(inner.iter().product(), 9);
        let along = |a: &Axis, o: usize| {
            let w = a.window(o);
            (0..w.count).map(|k| w.start + k * a.step()).collect::<Vec<_>>()
        };
        let dev = Dev::new(&inner, &x);
        let (y, mean) = (Dev::zeros(&outer, DType::F32), Dev::zeros(&outer, DType::F32));
        max_pool(&dev.view(), &axes, &y.view(), None).unwrap();
        let plain = axes.iter().all(|a| a.step() == 1);
        if plain {
            mean_pool(&dev.view(), &axes, PoolDivisor::Count, &mean.view()).unwrap();
        }
        let (y, mean) = (y.get::<f32>(), mean.get::<f32>());
        let [d, h, w] = axes;
        for e in 0..count {
            let at = [e / (w.out * h.out) % d.out, e / w.out % h.out, e % w.out];
            let mut all = Vec::new();
            for z in along(&d, at[0]) {
                for r in along(&h, at[1]) {
                    let row = (e / (d.out * h.out * w.out)) * plane + (z * h.size + r) * w.size;
                    all.extend(along(&w, at[2]).into_iter().map(|c| x[row + c]));
                }
            }
            assert_eq!(y[e], all.iter().copied().fold(f32::NEG_INFINITY, f32::max), "{axes:?} {e}");
            if plain {
                let want = all.iter().sum::<f32>() / all.len() as f32;
                assert!((mean[e] - want).abs() < 1e-5, "{axes:?} {e}: {} {want}", mean[e]);
            }
        }
    }
}
