//! Reductions, losses, matrix products and optimiser steps without Python: cases that samples cannot express.

use rustgrad::autograd::{self, GradGuard, Request, history};
use rustgrad::device::Device;
use rustgrad::dtype::Scalar;
use rustgrad::error::Result;
use rustgrad::op::{Args, Term, Value};
use rustgrad::ops::linalg::einsum::EINSUM;
use rustgrad::ops::nn::layer_norm;
use rustgrad::ops::nn::loss::cross_entropy::*;
use rustgrad::ops::nn::softmax::*;
use rustgrad::ops::optim::adam::*;
use rustgrad::ops::reduce::sum_prod::*;
use rustgrad::tensor::Tensor;

fn tensor(data: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_slice(data, shape).unwrap()
}
fn leaf(data: &[f32], shape: &[usize]) -> Tensor {
    let t = tensor(data, shape);
    t.set_flag(1, true);
    t
}
fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}
fn values(t: &Tensor) -> Vec<f64> {
    let d = t.dense_copy(t.dtype()).unwrap();
    (0..d.numel()).map(|i| d.element(d.layout().offset + i).unwrap().to_f64()).collect()
}
fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).for_each(|(x, y)| assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{a:?} is not {b:?}"));
}
fn grad(y: &Tensor, x: &[&Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let one = Tensor::empty(y.shape(), y.dtype(), Device::Cpu)?;
    one.fill_raw(Scalar::Int(1))?;
    let inputs: Vec<_> = x.iter().map(|t| history::grad_edge(t).unwrap().unwrap()).collect();
    let roots = vec![(history::grad_edge(y)?.unwrap(), one)];
    let out =
        autograd::run(Request { roots, keep_graph: true, create_graph, inputs: Some(&inputs), accumulate: false })?;
    Ok(out.into_iter().map(|g| g.expect("a gradient")).collect())
}

#[test]
fn products_with_zeros_have_gradients_of_any_order() {
    let x = leaf(&[2.0, 0.0, 3.0, 0.0, 5.0], &[5]);
    let y = PROD.call((&x,)).ok().unwrap();
    let g = grad(&y, &[&x], true).unwrap();
    assert_eq!(values(&g[0]), vec![0.0; 5]);
    // The mixed derivative with respect to the two zeros is the product of the others.
    let at = rustgrad::ops::view::reshape::SELECT.call((&g[0], 0, 1)).ok().unwrap();
    assert_eq!(values(&grad(&at, &[&x], false).unwrap()[0]), vec![0.0, 0.0, 0.0, 30.0, 0.0]);
}

#[test]
fn fused_softmax_is_the_composite() {
    let x = tensor(&wave(60, 1.3), &[3, 4, 5]);
    for dim in 0..3 {
        let args: Args = smallvec::smallvec![Value::Tensor(&x), Value::from(dim), Value::None];
        for op in [&SOFTMAX, &LOG_SOFTMAX] {
            let composite = rustgrad::dispatch::call_composite(op, &args).unwrap();
            close(&values(&op.call((&x, dim)).ok().unwrap()), &values(&composite[0]), 1e-6);
        }
    }
}

#[test]
fn layer_norm_has_the_same_gradient_in_one_pass_and_recorded() {
    let (x, w, b) = (leaf(&wave(700, 0.7), &[20, 35]), leaf(&wave(35, 0.3), &[35]), leaf(&wave(35, 0.2), &[35]));
    let y = layer_norm::LAYER_NORM.call((&x, [35], &w, &b)).ok().unwrap();
    let z = (Term::from(&y) * &y * &y).sum_all().ok().unwrap();
    let (fused, recorded) = (grad(&z, &[&x, &w, &b], false).unwrap(), grad(&z, &[&x, &w, &b], true).unwrap());
    fused.iter().zip(&recorded).for_each(|(a, b)| close(&values(a), &values(b), 1e-4));
}

#[test]
fn cross_entropy_names_and_gradients() {
    let x = leaf(&wave(12, 0.9), &[3, 4]);
    let t = Tensor::from_slice(&[0i64, 3, -100], &[3]).unwrap();
    let y = CROSS_ENTROPY.call((&x, &t)).ok().unwrap();
    assert_eq!(history::grad_fn(&y).unwrap().unwrap().name(), "NllLossBackward0");
    let g = values(&grad(&y, &[&x], false).unwrap()[0]);
    let p = values(&SOFTMAX.call((&x, 1)).ok().unwrap());
    let want: Vec<f64> = (0..12)
        .map(|i| match i / 4 {
            2 => 0.0,
            row => (p[i] - f64::from(u8::from(i % 4 == [0, 3][row]))) / 2.0,
        })
        .collect();
    close(&g, &want, 1e-6);
}

#[test]
fn einsum_orders_and_broadcasts() {
    let (a, b) = (tensor(&wave(24, 0.4), &[2, 3, 4]), tensor(&wave(20, 0.8), &[4, 5]));
    let parts = |t: &[&Tensor]| t.iter().map(|t| (*t).clone()).collect::<Vec<_>>();
    let y = EINSUM.call(("...j,jk->k...", parts(&[&a, &b]))).ok().unwrap();
    assert_eq!(y.shape(), [5, 2, 3]);
    let (va, vb) = (values(&a), values(&b));
    let want: Vec<f64> = (0..30).map(|i| (0..4).map(|j| va[i % 6 * 4 + j] * vb[j * 5 + i / 6]).sum()).collect();
    close(&values(&y), &want, 1e-6);
    let square = tensor(&wave(9, 0.5), &[3, 3]);
    let trace = EINSUM.call(("ii", parts(&[&square]))).ok().unwrap();
    let v = values(&square);
    close(&values(&trace), &[v[0] + v[4] + v[8]], 1e-6);
}

#[test]
fn adam_steps_of_a_list_are_the_formula() {
    let _guard = GradGuard::new(false);
    let sizes = [1, 5, 5000, 0, 70_000];
    let list = |phase: f32| sizes.map(|n| tensor(&wave(n, phase), &[n])).to_vec();
    let (p, g, m) = (list(0.1), list(0.2), list(0.3));
    let v = sizes.map(|n| tensor(&vec![0.5; n], &[n])).to_vec();
    let before = [&p, &g, &m, &v].map(|l| l.iter().map(values).collect::<Vec<_>>());
    let counts = sizes.map(|_| tensor(&[3.0], &[])).to_vec();
    let lists = [p.clone(), g, m.clone(), v, Vec::new(), counts].map(Value::from);
    let numbers = [0.01, 0.9, 0.99, 0.1, 1e-8].map(Value::from);
    let args: Args = lists.into_iter().chain(numbers).chain([false.into(), false.into()]).collect();
    let version = m[0].version();
    assert!(FUSED_ADAMW_.calls(args).unwrap().is_empty());
    assert!(m[0].version() > version, "the state was changed without notice");
    for (k, n) in sizes.into_iter().enumerate() {
        let want = |i: usize| {
            let m = 0.9 * before[2][k][i] + 0.1 * before[1][k][i];
            let v = 0.99 * before[3][k][i] + 0.01 * before[1][k][i].powi(2);
            let step = 0.01 / (1.0 - 0.9f64.powi(3)) * m / ((v / (1.0 - 0.99f64.powi(3))).sqrt() + 1e-8);
            before[0][k][i] * (1.0 - 0.01 * 0.1) - step
        };
        close(&values(&p[k]), &(0..n).map(want).collect::<Vec<_>>(), 1e-5);
    }
}
