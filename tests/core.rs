//! The core without Python: calls through the op table, higher-order gradients, views, in-place history.

use rustgrad::autograd::{self, Request, history};
use rustgrad::device::Device;
use rustgrad::dtype::Scalar;
use rustgrad::error::Result;
use rustgrad::op::Arguments;
use rustgrad::op::{Term, Value};
use rustgrad::ops::{arith::*, copy::*, linalg::*, reduce::*, view::*};
use rustgrad::tensor::Tensor;

fn leaf(data: &[f32], shape: &[usize]) -> Tensor {
    let t = Tensor::from_slice(data, shape).unwrap();
    t.set_flag(1, true);
    t
}
fn values(t: &Tensor) -> Vec<f64> {
    let d = t.dense_copy(t.dtype()).unwrap();
    (0..d.numel()).map(|i| d.element(d.layout().offset + i).unwrap().to_f64()).collect()
}
fn grad(y: &Tensor, x: &[&Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let one = Tensor::empty(y.shape(), y.dtype(), Device::Cpu)?;
    one.fill_raw(Scalar::Int(1))?;
    let inputs: Vec<_> = x.iter().map(|t| history::grad_edge(t).unwrap().unwrap()).collect();
    let roots = vec![(history::grad_edge(y)?.unwrap(), one)];
    let out = autograd::run(Request {
        roots,
        keep_graph: create_graph,
        create_graph,
        inputs: Some(&inputs),
        accumulate: false,
    })?;
    Ok(out.into_iter().map(|g| g.expect("a gradient")).collect())
}

#[test]
fn seed_graph() {
    let (w, x) = (leaf(&[1.0], &[1]), leaf(&[2.0], &[1]));
    let a = ADD.call((&w, &x)).ok().unwrap();
    let b = ADD.call((&w, 1)).ok().unwrap();
    let y = MUL.call((&a, &b)).ok().unwrap();
    assert_eq!(history::grad_fn(&y).unwrap().unwrap().name(), "MulBackward0");
    let g = grad(&y, &[&w, &x], false).unwrap();
    assert_eq!((values(&g[0]), values(&g[1])), (vec![5.0], vec![2.0]));
}

#[test]
fn third_derivative_and_broadcast() {
    let x = leaf(&[2.0, 3.0], &[2]);
    let y = (Term::from(&x) * &x * &x * &x).sum_all().ok().unwrap();
    let g1 = grad(&y, &[&x], true).unwrap();
    assert_eq!(values(&g1[0]), vec![32.0, 108.0]);
    let g2 = grad(&g1[0], &[&x], true).unwrap();
    let g3 = grad(&g2[0], &[&x], false).unwrap();
    assert_eq!(values(&g3[0]), vec![48.0, 72.0]);
    let s = leaf(&[1.0], &[1, 1]);
    let z = MUL.call((&x, &s)).sum_all().ok().unwrap();
    assert_eq!(values(&grad(&z, &[&s], false).unwrap()[0]), vec![5.0]);
}

#[test]
fn matmul_views_and_inplace_history() {
    let a = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let b = leaf(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2]);
    let y = MATMUL.call((&a, &b)).sum_all().ok().unwrap();
    assert_eq!(values(&grad(&y, &[&a], false).unwrap()[0]), vec![1.0, 1.0, 2.0, 1.0, 1.0, 2.0]);
    // base = a * 1; base[0] *= 10: the gradient of the first row is tenfold.
    let base = MUL.call((&a, 1)).ok().unwrap();
    let row = SELECT.call((&base, 0, 0)).ok().unwrap();
    MUL.call_inplace((&row, 10)).unwrap();
    assert_eq!(history::grad_fn(&base).unwrap().unwrap().name(), "CopySlices");
    assert_eq!(history::grad_fn(&row).unwrap().unwrap().name(), "AsStridedBackward0");
    let total = SUM.call((&base,)).ok().unwrap();
    assert_eq!(values(&total), vec![75.0]);
    assert_eq!(values(&grad(&total, &[&a], false).unwrap()[0]), vec![10.0, 10.0, 10.0, 1.0, 1.0, 1.0]);
}

#[test]
fn errors_name_the_op() {
    let (a, b) = (leaf(&[1.0, 2.0], &[2]), leaf(&[1.0, 2.0, 3.0], &[3]));
    let e = ADD.call((&a, &b)).ok().unwrap_err();
    assert!(e.to_string().starts_with("add: The size of tensor a (2) must match"), "{e}");
    let e = ADD.call_inplace((&a, 1)).unwrap_err();
    assert!(e.to_string().contains("a leaf Variable that requires grad"), "{e}");
    // Using a modified saved tensor is an error.
    let x = CLONE.call((&a,)).ok().unwrap();
    let y = MUL.call((&x, &x)).ok().unwrap();
    ADD.call_inplace((&x, 1)).unwrap();
    let e = grad(&y, &[&a], false).unwrap_err();
    assert!(e.to_string().contains("is at version 1; expected version 0"), "{e}");
}

#[test]
fn deep_graphs_neither_overflow_nor_leak() {
    let before = rustgrad::tally::sum(rustgrad::tally::Count::Nodes);
    let x = leaf(&[1.0], &[1]);
    let mut y = x.clone();
    for _ in 0..300_000 {
        y = ADD.call((&y, Value::Scalar(Scalar::Int(1)))).ok().unwrap();
    }
    assert_eq!(values(&grad(&y, &[&x], false).unwrap()[0]), vec![1.0]);
    drop((x, y));
    assert!(rustgrad::tally::sum(rustgrad::tally::Count::Nodes) <= before + 1000, "nodes leak");
    let _ = [Value::None].tensors(0);
}
