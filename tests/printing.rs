//! Printing, against PyTorch's output: every case of `tests/golden/printing.json`
//! (recorded by `record_printing.py`) must come out to the character.

use rustgrad::device::Device;
use rustgrad::dtype::{DType, Element, Scalar, set_default_dtype};
use rustgrad::tensor::print::{PrintInput, PrintOptions, format_with};
use rustgrad::with_dtype;
use serde_json::Value;

fn number(v: &Value) -> f64 {
    match v.as_str() {
        Some(text) => text.parse().unwrap(),
        None => v.as_f64().unwrap(),
    }
}

fn scalar(v: &Value, dtype: DType) -> Scalar {
    match v {
        Value::Bool(b) => Scalar::Bool(*b),
        Value::Array(parts) => Scalar::Complex(number(&parts[0]), number(&parts[1])),
        _ if dtype.is_float() => Scalar::Float(number(v)),
        _ => v.as_i64().map(Scalar::Int).unwrap_or_else(|| Scalar::UInt(v.as_u64().unwrap())),
    }
}

/// The number as an element of `dtype` holds it.
fn cast(value: f64, dtype: DType) -> Scalar {
    with_dtype!(dtype, T => T::from_scalar(Scalar::Float(value)).to_scalar())
}

fn options(case: &Value) -> PrintOptions {
    let mut o = PrintOptions::DEFAULT;
    let Some(given) = case["options"].as_object() else { return o };
    for (name, v) in given {
        let size = v.as_u64().map_or(usize::MAX, |n| n as usize);
        match name.as_str() {
            "profile" => o = o.profile(v.as_str().unwrap()).unwrap(),
            "precision" => o.precision = size,
            "threshold" => o.threshold = size,
            "edgeitems" => o.edgeitems = size,
            "linewidth" => o.linewidth = size,
            "sci_mode" => o.sci_mode = v.as_bool(),
            _ => panic!("unknown option {name}"),
        }
    }
    o
}

fn printed(case: &Value) -> String {
    let dtype = DType::from_name(case["dtype"].as_str().unwrap()).unwrap();
    let shape: Vec<usize> = case["shape"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap() as usize).collect();
    let element = |index: &[usize]| {
        let flat = index.iter().zip(&shape).fold(0, |flat, (i, s)| flat * s + i);
        match case["pattern"].as_array() {
            None => scalar(&case["values"][flat], dtype),
            Some(p) => {
                let whole = |k: usize| p[k].as_i64().unwrap();
                cast(((flat as i64 * whole(0)) % whole(1) + whole(2)) as f64 * p[3].as_f64().unwrap(), dtype)
            }
        }
    };
    set_default_dtype(DType::from_name(case["default"].as_str().unwrap_or("float32")).unwrap());
    let input = PrintInput {
        prefix: case["prefix"].as_str().unwrap_or("tensor("),
        shape: &shape,
        dtype,
        get: &element,
        device: Device::Cpu,
        requires_grad: case["requires_grad"].as_bool().unwrap_or(false),
        grad_fn: case["grad_fn"].as_str(),
    };
    format_with(&input, &options(case))
}

/// A single test, because the default dtype is global.
#[test]
fn prints_as_pytorch_does() {
    let golden: Value = serde_json::from_str(include_str!("golden/printing.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 400);
    let mut wrong = 0;
    for (i, case) in cases.iter().enumerate() {
        let (got, want) = (printed(case), case["text"].as_str().unwrap());
        if got != want {
            wrong += 1;
            if wrong <= 10 {
                println!(
                    "case {i}: {}\ngot\n{got}\nwant\n{want}\n",
                    &case.to_string()[..200.min(case.to_string().len())]
                );
            }
        }
    }
    set_default_dtype(DType::F32);
    assert_eq!(wrong, 0, "of {} printed tensors", cases.len());

    let zero = |_: &[usize]| Scalar::Float(0.0);
    let on_gpu = PrintInput {
        prefix: "tensor(",
        shape: &[1],
        dtype: DType::F16,
        get: &zero,
        device: Device::Gpu(0),
        requires_grad: true,
        grad_fn: None,
    };
    let text = format_with(&on_gpu, &PrintOptions::DEFAULT);
    assert_eq!(text, "tensor([0.], device='gpu:0', dtype=torch.float16, requires_grad=True)");
}
