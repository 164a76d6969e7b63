//! The elementwise families without Python: integer edge cases, ties, and that every rule's WGSL is valid.

use rustgrad::dtype::DType;
use rustgrad::op::{Term, Value};
use rustgrad::ops::elementwise::division::*;
use rustgrad::ops::elementwise::hyperbolic::*;
use rustgrad::ops::elementwise::logical::*;
use rustgrad::ops::elementwise::minmax::*;
use rustgrad::ops::elementwise::power::*;
use rustgrad::tensor::Tensor;

fn ints(data: &[i64]) -> Tensor {
    Tensor::from_slice(data, &[data.len()]).unwrap()
}
fn values(t: Term) -> Vec<f64> {
    let t = t.ok().unwrap();
    (0..t.numel()).map(|i| t.element(t.layout().offset + i).unwrap().to_f64()).collect()
}

#[test]
fn integer_division_never_crashes() {
    let least = ints(&[i64::MIN, 7, -7]);
    assert_eq!(values(FLOOR_DIVIDE.call((&least, -1))), vec![i64::MIN as f64, -7.0, 7.0]);
    assert_eq!(values(REMAINDER.call((&least, &ints(&[-1, 4, 4])))), vec![0.0, 3.0, 1.0]);
    assert_eq!(values(FMOD.call((&least, &ints(&[-1, 4, 4])))), vec![0.0, 3.0, -3.0]);
    for op in [&FLOOR_DIVIDE, &REMAINDER, &FMOD] {
        let e = op.call((&least, &ints(&[1, 0, 1]))).ok().unwrap_err();
        assert_eq!(e.message(), "ZeroDivisionError");
    }
}

#[test]
fn shifts_and_powers_beyond_the_width() {
    let x = ints(&[1, -1]);
    assert_eq!(values(LEFT_SHIFT.call((&x, 64))), vec![0.0, 0.0]);
    assert_eq!(values(RIGHT_SHIFT.call((&x, -1))), vec![0.0, -1.0]);
    assert_eq!(values(POW_TENSOR.call((&ints(&[-1, 2, 3]), &ints(&[-3, -1, 2])))), vec![-1.0, 0.0, 9.0]);
    let e = POW.call((&x, -1)).ok().unwrap_err();
    assert_eq!(e.message(), "Integers to negative integer powers are not allowed.");
}

#[test]
fn not_of_bool_is_logical() {
    let b = TANH.call((&Tensor::from_slice(&[true, false], &[2]).unwrap(),)).ok().unwrap();
    assert_eq!(b.dtype(), DType::F32);
    let b = Tensor::from_slice(&[true, false], &[2]).unwrap();
    assert_eq!(values(BITWISE_NOT.call((&b,))), vec![0.0, 1.0]);
}

#[test]
fn nan_wins_or_loses() {
    let x = Tensor::from_slice(&[f32::NAN, 1.0, 2.0], &[3]).unwrap();
    let y = Tensor::from_slice(&[1.0, f32::NAN, 3.0], &[3]).unwrap();
    let bits = |v: Vec<f64>| v.iter().map(|x| x.is_nan()).collect::<Vec<_>>();
    assert_eq!(bits(values(MAXIMUM.call((&x, &y)))), vec![true, true, false]);
    assert_eq!(values(FMIN.call((&x, &y))), vec![1.0, 1.0, 2.0]);
    assert!(values(CLAMP.call((&x, Value::Scalar(0.0.into()), Value::Scalar(1.0.into()))))[0].is_nan());
}

/// Every expression, for every type that its rule computes in, is a valid shader.
#[cfg(feature = "gpu")]
#[test]
fn every_rule_has_a_valid_shader() {
    let mut missing = Vec::new();
    for op in rustgrad::ops::all() {
        let rustgrad::op::Body::Elementwise(e) = &op.body else { continue };
        for rule in e.rules() {
            if rule.wgsl.is_empty() {
                missing.push(op.name());
                continue;
            }
            for d in [DType::F32, DType::F64, DType::I32, DType::I64] {
                if rule.loops.supports(d) {
                    rustgrad::gpu::validate_all(&[(rule.wgsl, d)])
                        .unwrap_or_else(|e| panic!("{} in {d}: {e}", op.name()));
                }
            }
        }
    }
    assert_eq!(missing, ["complex", "polar", "_standard_gamma_grad", "_dirichlet_grad"], "ops without a shader");
}
