//! The core without Python: calls through the op table, higher-order gradients, views, in-place history.

use rustgrad::autograd::{self, Request, history};
use rustgrad::device::Device;
use rustgrad::dtype::Scalar;
use rustgrad::error::Result;
use rustgrad::op::{Term, Value};
use rustgrad::ops::elementwise::arith::*;
use rustgrad::ops::linalg::matmul::*;
use rustgrad::ops::movement::copy::*;
use rustgrad::ops::reduce::sum_prod::*;
use rustgrad::ops::view::reshape::*;
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
    let before = rustgrad::rt::counters::sum(rustgrad::rt::counters::Count::Nodes);
    let x = leaf(&[1.0], &[1]);
    let mut y = x.clone();
    for _ in 0..300_000 {
        y = ADD.call((&y, Value::Scalar(Scalar::Int(1)))).ok().unwrap();
    }
    assert_eq!(values(&grad(&y, &[&x], false).unwrap()[0]), vec![1.0]);
    drop((x, y));
    assert!(rustgrad::rt::counters::sum(rustgrad::rt::counters::Count::Nodes) <= before + 1000, "nodes leak");
}

/// What was read through a shared handle stays readable in safe code, whatever replaces it (`make sanitize` runs this too).
#[test]
fn borrowed_metadata_and_memory_outlive_their_replacement() {
    let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let (shape, strides, layout, view) = (t.shape(), t.strides(), t.layout(), t.cpu_view().unwrap());
    rustgrad::dispatch::resize(&t, &[9], None).unwrap();
    UNSQUEEZE.call_inplace((&t, 0)).unwrap();
    TRANSPOSE.call_inplace((&t, 0, 1)).unwrap();
    t.set_meta(Tensor::from_slice(&[7i64; 4], &[4]).unwrap().meta().clone()).unwrap();
    let later = t.shape();
    // What was freed would be used again by these.
    for n in 10..200 {
        rustgrad::dispatch::resize(&t, &[n, 1, n, 1, 1, 1, 1], None).unwrap();
    }
    assert_eq!((shape, strides, later), (&[2, 3][..], &[3, 1][..], &[4][..]));
    assert_eq!((layout.numel(), view.numel(), t.numel()), (6, 6, 199 * 199));
    let copy = Tensor::empty(&[2, 3], view.dtype, Device::Cpu).unwrap();
    rustgrad::cpu::flip::flip(view, &[], copy.cpu_view().unwrap()).unwrap();
    assert_eq!(values(&copy), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

/// A handle can be given any layout; what reaches beyond the storage never becomes a view, and kernels refuse what does not fit.
#[test]
fn kernels_are_safe_to_call_with_anything() {
    use rustgrad::layout::Layout;
    let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    let wild = |shape: &[usize], strides: &[usize], offset: usize| {
        t.with_layout(Layout { shape: shape.into(), strides: strides.into(), offset })
    };
    assert!(wild(&[5], &[1], 0).cpu_view().is_err() && wild(&[2], &[4], 0).cpu_view().is_err());
    assert!(wild(&[1], &[1], 4).cpu_view().is_err() && wild(&[3], &[usize::MAX], 0).cpu_view().is_err());
    assert!(ADD.call((&wild(&[5], &[1], 0), 1)).ok().is_err() && wild(&[2], &[4], 0).fill_raw(Scalar::Int(0)).is_err());
    assert!(Tensor::empty(&[5], t.dtype(), Device::Cpu).unwrap().copy_raw(&t).is_err(), "four elements are not five");
    assert!(wild(&[2, 2], &[1, 2], 0).cpu_view().is_ok() && wild(&[0, 9], &[9, 9], 100).cpu_view().is_ok());
    let (a, b) = (t.cpu_view().unwrap(), wild(&[3], &[1], 0));
    let small = b.cpu_view().unwrap();
    assert!(rustgrad::cpu::flip::flip(a, &[0], small).is_err(), "another shape");
    assert!(rustgrad::cpu::flip::flip(a, &[0], a).is_err(), "written while it is read");
    assert!(rustgrad::cpu::index::index_select(a, 0, a, small).is_err(), "an index of another dtype");
    assert!(rustgrad::cpu::gemm::matmul(a, a, small, 1.0, 0.0).is_err(), "no matrices");
    assert!(rustgrad::cpu::softmax::softmax(a, 0, small, false).is_err(), "another shape");
}
