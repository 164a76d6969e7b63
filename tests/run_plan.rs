//! Plans run without Python, as `examples/run_plan.rs` does: `tests/golden/plan.rgx` is a classifier of 8 x 8 digits that
//! `tests/test_compile_saved.py` writes and keeps up to date (`RUSTGRAD_WRITE=1`).

#[path = "../examples/run_plan.rs"]
#[allow(dead_code)]
mod run_plan;

use rustgrad::compile::{self, Program};
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::error::Class;
use rustgrad::gpu;
use rustgrad::tensor::Tensor;
use std::path::PathBuf;

fn golden(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name).to_string_lossy().into_owned()
}

fn floats(t: &Tensor) -> Vec<f64> {
    let dense = t.dense_copy(DType::F64).unwrap();
    (0..dense.numel()).map(|i| dense.element(i).unwrap().to_f64()).collect()
}

fn expected() -> Vec<f64> {
    let file = std::fs::read(golden("plan_output.npy")).unwrap();
    let (shape, dtype, data) = run_plan::npy(&file).unwrap();
    assert_eq!((shape.as_slice(), dtype), ([2, 10].as_slice(), DType::F32));
    data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
}

fn probabilities(program: &Program) -> Vec<f64> {
    let inputs = run_plan::inputs(program, &[golden("plan_input.npy")]).unwrap();
    let results = program.run(&inputs).unwrap();
    assert_eq!((results.len(), results[0].shape()), (1, [2, 10].as_slice()));
    assert!(run_plan::shown(&results[0]).unwrap().starts_with("tensor([[0."));
    floats(&results[0])
}

fn is_near(a: &[f64], b: &[f64], allowed: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= allowed)
}

#[test]
fn a_classifier_runs_without_python() {
    let program = compile::load(golden("plan.rgx")).unwrap();
    assert_eq!(program.inputs()[0].layout.shape.as_slice(), [2, 1, 8, 8]);
    let names: Vec<&str> = program.tensors().iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["0.weight", "0.bias", "4.weight", "4.bias"]);
    // Another instruction set may round a sum otherwise.
    let first = probabilities(&program);
    assert!(is_near(&first, &expected(), 1e-6), "{first:?}");
    assert_eq!(first, probabilities(&program));
}

#[test]
fn several_threads_run_one_program() {
    let program = compile::load(golden("plan.rgx")).unwrap();
    let alone = probabilities(&program);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..50).map(|_| probabilities(&program)).collect::<Vec<_>>())).collect();
        for t in threads {
            assert!(t.join().unwrap().iter().all(|p| *p == alone));
        }
    });
}

#[test]
fn it_runs_on_the_gpu() {
    if !gpu::is_available() {
        println!("no GPU here");
        return;
    }
    let program = compile::load_on(golden("plan.rgx"), Device::Gpu(0)).unwrap();
    assert!(program.tensors().iter().all(|(_, t)| t.device() == Device::Gpu(0)));
    assert!(is_near(&probabilities(&program), &expected(), 1e-5));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let program = compile::load(golden("plan.rgx")).unwrap();
    let class = |inputs: &[Tensor]| program.run(inputs).map(drop).map_err(|e| e.class());
    let zeros = |shape: &[usize], dtype| Tensor::zeros(shape, dtype, Device::Cpu).unwrap();
    assert_eq!(class(&[]), Err(Class::Type));
    assert_eq!(class(&[zeros(&[2, 1, 8, 8], DType::F64)]), Err(Class::Type));
    assert_eq!(class(&[zeros(&[1, 1, 8, 8], DType::F32)]), Err(Class::Value));
    assert_eq!(class(&[zeros(&[2, 1, 8, 8], DType::F32)]), Ok(()));
    let wrong = |given: &[&str]| {
        let given: Vec<String> = given.iter().map(|s| s.to_string()).collect();
        run_plan::inputs(&program, &given).err().unwrap().class()
    };
    assert_eq!(wrong(&["1", "2"]), Class::Value);
    assert_eq!(wrong(&["absent.npy"]), Class::Runtime);
    assert_eq!(wrong(&[&golden("plan.rgx")]), Class::Value);
    assert_eq!(wrong(&[&golden("plan_output.npy")]), Class::Value);
    assert_eq!(compile::load(golden("plan_input.npy")).err().unwrap().class(), Class::Value);
    assert_eq!(compile::load(golden("absent.rgx")).err().unwrap().class(), Class::Runtime);
}
