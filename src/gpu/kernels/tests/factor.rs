//! Factorizations through naga; their values are compared with the CPU's in the op table and in `tests/test_gpu_linalg.py`.

use super::kernels::{Hollow, checked};
use crate::dtype::DType;
use crate::gpu::*;

#[test]
fn factorizations_validate() {
    checked(|| {
        for dtype in [DType::F32, DType::F64] {
            for (n, strided) in [(3, false), (3, true), (70, false), (130, true)] {
                let (a, b) = (Hollow::new(&[2, n, n], dtype, strided), Hollow::new(&[2, n, 5], dtype, strided));
                let (pivots, info) = (Hollow::new(&[2, n], DType::I32, false), Hollow::new(&[2], DType::I32, false));
                let [sign, log] = [(); 2].map(|()| Hollow::new(&[2], dtype, false));
                lu(&a.view(), &pivots.view(), &info.view())?;
                cholesky(&a.view(), &info.view())?;
                exchange_rows(&b.view(), &pivots.view())?;
                for (upper, unit) in [(false, true), (true, false)] {
                    solve_triangular(&a.view(), &b.view(), upper, unit)?;
                }
                sign_and_log(&a.view(), &pivots.view(), [sign.view(), log.view()])?;
            }
            for (m, n, strided) in [(5, 3, false), (40, 70, true), (5000, 20, false)] {
                let matrix = || Hollow::new(&[2, m, n], dtype, strided);
                let (a, q, taus) = (matrix(), matrix(), Hollow::new(&[2, m.min(n)], dtype, false));
                qr(&a.view(), &taus.view())?;
                reflections(&a.view(), &taus.view(), &q.view())?;
            }
        }
        Ok(())
    });
}
