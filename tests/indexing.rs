//! Views, indexing and in-place writes without Python: their first and second derivatives.

use rustgrad::autograd::{self, Request, history};
use rustgrad::device::Device;
use rustgrad::dtype::Scalar;
use rustgrad::error::Result;
use rustgrad::op::Term;
use rustgrad::ops::elementwise::arith::*;
use rustgrad::ops::indexing::advanced::*;
use rustgrad::ops::movement::cat::*;
use rustgrad::ops::movement::copy::*;
use rustgrad::ops::view::as_strided::*;
use rustgrad::ops::view::reshape::*;
use rustgrad::ops::view::slice::*;
use rustgrad::ops::view::split::*;
use rustgrad::tensor::Tensor;

fn leaf(data: &[f64], shape: &[usize]) -> Tensor {
    let t = Tensor::from_slice(data, shape).unwrap();
    t.set_flag(1, true);
    t
}
fn values(t: &Tensor) -> Vec<f64> {
    let d = t.dense_copy(t.dtype()).unwrap();
    (0..d.numel()).map(|i| d.element(d.layout().offset + i).unwrap().to_f64()).collect()
}
fn grad(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let one = Tensor::empty(y.shape(), y.dtype(), Device::Cpu)?;
    one.fill_raw(Scalar::Int(1))?;
    let inputs = [history::grad_edge(x)?.unwrap()];
    let roots = vec![(history::grad_edge(y)?.unwrap(), one)];
    let out = autograd::run(Request {
        roots,
        keep_graph: true,
        create_graph: true,
        inputs: Some(&inputs),
        accumulate: false,
    })?;
    Ok(out.into_iter().next().flatten().expect("a gradient"))
}

#[test]
fn overlapping_views_add_their_gradients() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0], &[4]);
    let windows = AS_STRIDED.call((&x, [3, 2], [1, 1])).ok().unwrap();
    assert_eq!(values(&windows), [1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
    let y = Term::from(&windows).sum_all().ok().unwrap();
    assert_eq!(values(&grad(&y, &x).unwrap()), [1.0, 2.0, 2.0, 1.0]);
    // Through a view with an offset: positions count from the storage's start.
    let tail = SLICE.call((&x, 0, 1)).ok().unwrap();
    let y = AS_STRIDED.call((&tail, [2], [1], 2)).sum_all().ok().unwrap();
    assert_eq!(values(&grad(&y, &x).unwrap()), [0.0, 0.0, 1.0, 1.0]);
    let y = UNFOLD.call((&x, 0, 2, 1)).sum_all().ok().unwrap();
    assert_eq!(values(&grad(&y, &x).unwrap()), [1.0, 2.0, 2.0, 1.0]);
}

#[test]
fn second_derivatives_through_views_of_views() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let one = SELECT.call((SELECT.call((&x, 0, 1)), 0, 2));
    let cube = (one.clone() * &one * &one).ok().unwrap();
    let g = grad(&cube, &x).unwrap();
    assert_eq!(values(&g), [0.0, 0.0, 0.0, 0.0, 0.0, 108.0]);
    let g2 = grad(&Term::from(&g).sum_all().ok().unwrap(), &x).unwrap();
    assert_eq!(values(&g2), [0.0, 0.0, 0.0, 0.0, 0.0, 36.0]);
    let parts = SPLIT.calls((&x, 2, 1)).unwrap();
    let y = (Term::from(&parts[1]) * &parts[1]).sum_all().ok().unwrap();
    let g = grad(&y, &x).unwrap();
    let g2 = grad(&Term::from(&g).sum_all().ok().unwrap(), &x).unwrap();
    assert_eq!(values(&g2), [0.0, 0.0, 2.0, 0.0, 0.0, 2.0]);
}

#[test]
fn second_derivatives_through_writes_in_place() {
    let x = leaf(&[2.0, 3.0], &[2]);
    let y = CLONE.call((&x,)).ok().unwrap();
    MUL.call_inplace((&y, &x)).unwrap();
    let cube = (Term::from(&y) * &x).sum_all().ok().unwrap();
    let g = grad(&cube, &x).unwrap();
    assert_eq!(values(&g), [12.0, 27.0]);
    let g2 = grad(&Term::from(&g).sum_all().ok().unwrap(), &x).unwrap();
    assert_eq!(values(&g2), [12.0, 18.0]);
    // The same on a part of a tensor.
    let y = CLONE.call((&x,)).ok().unwrap();
    let first = SELECT.call((&y, 0, 0)).ok().unwrap();
    MUL.call_inplace((&first, &SELECT.call((&x, 0, 0)).ok().unwrap())).unwrap();
    let g = grad(&Term::from(&y).sum_all().ok().unwrap(), &x).unwrap();
    assert_eq!(values(&g), [4.0, 1.0]);
    let g2 = grad(&Term::from(&g).sum_all().ok().unwrap(), &x).unwrap();
    assert_eq!(values(&g2), [2.0, 0.0]);
}

#[test]
fn indices_with_holes_are_saved_in_their_places() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let index = Tensor::from_slice(&[2i64, 0, 2], &[3]).unwrap();
    let picked = INDEX.call((&x, vec![None, Some(index.clone())])).ok().unwrap();
    assert_eq!(values(&picked), [3.0, 1.0, 3.0, 6.0, 4.0, 6.0]);
    let y = Term::from(&picked).sum_all().ok().unwrap();
    assert_eq!(values(&grad(&y, &x).unwrap()), [1.0, 0.0, 2.0, 1.0, 0.0, 2.0]);
    let e = INDEX.call((&x, vec![Some(Tensor::from_slice(&[5i64], &[1]).unwrap())])).ok().unwrap_err();
    assert!(e.to_string().contains("index 5 is out of bounds for dimension 0 with size 2"), "{e}");
    let joined = CAT.call((vec![x.clone(), x.clone()], 1)).ok().unwrap();
    assert_eq!(joined.shape(), [2, 6]);
}
