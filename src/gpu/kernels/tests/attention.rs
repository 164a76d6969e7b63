//! Attention and recurrent layers through naga; their values are compared with the CPU's in the op table and in
//! `tests/test_gpu_layers.py`.

use super::kernels::{Hollow, checked};
use crate::dtype::DType;
use crate::gpu::*;
use crate::kinds::Recurrence;

#[test]
fn attention_validates() {
    checked(|| {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64] {
            for (rows, cols, head) in
                [(3, 5, 7), (20, 40, 64), (100, 4000, 20), (70, 9000, 128), (65, 33, 256), (2, 30, 200), (20, 20, 256)]
            {
                for (masked, causal, strided) in [(false, false, false), (true, false, true), (false, true, false)] {
                    let queries = || Hollow::new(&[2, 4, rows, head], dtype, strided);
                    let keys = || Hollow::new(&[2, 2, cols, head], dtype, strided);
                    let sums = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
                    let (q, k, v, out, logs) = (queries(), keys(), keys(), queries(), [2, 4, rows]);
                    let logs = Hollow::new(&logs, sums, false);
                    let mask = masked.then(|| Hollow::new(&[2, 4, rows, cols], dtype, strided));
                    let mask = mask.as_ref().map(|m| m.view());
                    let o = Attention { query: q.view(), key: k.view(), value: v.view(), mask, causal, scale: 0.5 };
                    attention(&o, &out.view(), &logs.view())?;
                    let (g, dq, dk, dv) = (queries(), queries(), keys(), keys());
                    let results = [&dq.view(), &dk.view(), &dv.view()];
                    attention_backward(&o, &g.view(), &out.view(), &logs.view(), results)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn heads_beyond_the_largest_are_refused() {
    let x = || Hollow::new(&[1, 1, 4, HEAD + 1], DType::F32, false);
    let (q, k, v, out, logs) = (x(), x(), x(), x(), Hollow::new(&[1, 1, 4], DType::F32, false));
    let o = Attention { query: q.view(), key: k.view(), value: v.view(), mask: None, causal: false, scale: 1.0 };
    assert!(attention(&o, &out.view(), &logs.view()).is_err());
}

#[test]
fn recurrent_layers_validate() {
    use Recurrence::*;
    checked(|| {
        for dtype in [DType::F32, DType::F64] {
            for (mode, sizes) in [Lstm, Gru, Tanh, Relu].into_iter().flat_map(|m| [(m, [3i64, 3]), (m, [3, 2])]) {
                for reverse in [false, true] {
                    let (rows, hidden) = (sizes.iter().sum::<i64>() as usize, 5);
                    let wide = hidden * mode.gates();
                    let new = |m: usize, n: usize| Hollow::new(&[m, n], dtype, false);
                    let [gates, output, saved, cells] =
                        [new(rows, wide), new(rows, hidden), new(rows, 4 * hidden), new(rows, hidden)];
                    let states: Vec<Hollow> = (0..6).map(|_| new(3, hidden)).collect();
                    let bias = [(); 2].map(|()| Hollow::new(&[wide], dtype, false));
                    let [weight, dw, dx] = [new(wide, hidden), new(wide, hidden), new(rows, wide)];
                    let lstm = |i: usize| (mode == Lstm).then(|| states[i].view());
                    for with_bias in [false, true] {
                        let layer = Recurrent {
                            sizes: &sizes,
                            mode,
                            reverse,
                            hx: states[0].view(),
                            cx: lstm(1),
                            weight: weight.view(),
                            bias: with_bias.then(|| bias[0].view()),
                            output: output.view(),
                            saved: saved.view(),
                            cells: cells.view(),
                        };
                        recurrent(&layer, &gates.view(), &states[2].view(), lstm(3).as_ref())?;
                        let above = new(rows, hidden);
                        let gradients = RecurrentGradients {
                            output: with_bias.then(|| above.view()),
                            last: None,
                            last_cell: None,
                            gates: dx.view(),
                            hx: states[4].view(),
                            cx: lstm(5),
                            weight: dw.view(),
                            bias: with_bias.then(|| bias[1].view()),
                        };
                        recurrent_backward(&layer, &gradients)?;
                    }
                }
            }
        }
        Ok(())
    });
}
