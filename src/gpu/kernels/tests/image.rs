//! Interpolation by tables of taps and sampling on grids: every variant through naga.

use super::kernels::{Hollow, checked, known};
use crate::dtype::DType;
use crate::gpu::*;
use crate::kinds::{Outside, Sampling};

#[test]
fn resampling_validates() {
    let (table, at) = (Hollow::new(&[30], DType::I32, false), [TapsAt { most: 2, ..TapsAt::default() }; 3]);
    checked(|| {
        for dtype in known().filter(|d| d.is_float() || *d == DType::U8) {
            let [x, y] = [[2, 1, 3, 4, 1], [2, 1, 5, 2, 1]].map(|shape| Hollow::new(&shape, dtype, false));
            let weights = match dtype {
                DType::F64 => DType::F64,
                DType::U8 => DType::I32,
                _ => DType::F32,
            };
            let weights = Hollow::new(&[30], weights, false);
            for bits in [None, (dtype == DType::U8).then_some(14)] {
                resample(&x.view(), &table.view(), &weights.view(), at, bits, &y.view())?;
            }
        }
        Ok(())
    });
}

#[test]
fn sampling_on_grids_validates() {
    checked(|| {
        for dtype in [DType::F32, DType::F64] {
            for (shape, points) in [(&[2, 3, 4, 5][..], 6), (&[2, 3, 4, 5], 5000), (&[2, 3, 2, 4, 5], 6)] {
                let dims = shape.len() - 2;
                let [x, dx] = [(); 2].map(|()| Hollow::new(shape, dtype, false));
                let [grid, dgrid] = [(); 2].map(|()| Hollow::new(&[2, points, dims], dtype, false));
                let [y, g] = [(); 2].map(|()| Hollow::new(&[2, 3, points], dtype, false));
                for sampling in [Sampling::Bilinear, Sampling::Nearest, Sampling::Bicubic] {
                    for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
                        let align_corners = outside == Outside::Border;
                        let from = Sampled { grid: grid.view(), shape, sampling, outside, align_corners };
                        grid_sample(&x.view(), &from, &y.view())?;
                        grid_sample_by_grid(&g.view(), &x.view(), &from, &dgrid.view())?;
                        grid_sample_by_input(&g.view(), &from, &dx.view())?;
                    }
                }
            }
        }
        Ok(())
    });
}
