//! What a tracer sees: calls begin and end as they nest, failing ones too, and a recording of the primitives replays.

use rustgrad::device::Device;
use rustgrad::dispatch::{Capture, call_out};
use rustgrad::dtype::DType;
use rustgrad::error::Error;
use rustgrad::observe::Raw;
use rustgrad::op::tracer::{Form, Traced, Tracer, install};
use rustgrad::op::{Args, Term, Value};
use rustgrad::ops::elementwise::arith::*;
use rustgrad::ops::linalg::matmul::*;
use rustgrad::ops::random::distributions::*;
use rustgrad::ops::view::reshape::*;
use rustgrad::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;

fn tensor(data: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_slice(data, shape).unwrap()
}
fn values(t: &Tensor) -> Vec<f64> {
    let d = t.dense_copy(t.dtype()).unwrap();
    (0..d.numel()).map(|i| d.element(d.layout().offset + i).unwrap().to_f64()).collect()
}
/// What `run` returns, with the tracer installed meanwhile.
fn observed<R>(tracer: Rc<dyn Tracer>, run: impl FnOnce() -> R) -> R {
    let before = install(Some(tracer));
    let result = run();
    install(before);
    result
}

/// Every report as a line.
#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Tracer for Log {
    fn enter(&self, call: &Traced) {
        let form = match call.form {
            Form::Functional => "",
            Form::InPlace => "_",
            Form::Out => " out",
        };
        self.0.borrow_mut().push(format!("> {}{form}", call.op.name()));
    }
    fn exit(&self, call: &Traced, result: Result<&[Tensor], &Error>) {
        let end = result.map_or("failed".to_string(), |r| r.len().to_string());
        self.0.borrow_mut().push(format!("< {} {end}", call.op.name()));
    }
    fn draws(&self) {
        self.0.borrow_mut().push("draws".into());
    }
    fn raw(&self, raw: Raw) {
        if raw == Raw::Allocation {
            self.0.borrow_mut().push("allocation".to_string());
        }
    }
}

fn log(run: impl FnOnce()) -> Vec<String> {
    let log = Rc::new(Log::default());
    observed(log.clone(), run);
    log.0.take()
}

#[test]
fn calls_nest_and_are_closed() {
    let (a, b) = (tensor(&[1.0, 2.0], &[1, 2]), tensor(&[3.0, 4.0], &[2, 1]));
    let product = log(|| drop(MATMUL.call((&a, &b)).ok().unwrap()));
    assert_eq!(product, ["> matmul", "> mm", "allocation", "< mm 1", "< matmul 1"]);
    let failed = log(|| assert!(MATMUL.call((&a, &a)).ok().is_err()));
    assert_eq!(failed, ["> matmul", "> mm", "< mm failed", "< matmul failed"]);
}

#[test]
fn forms_are_told_apart() {
    let (a, b, out) = (tensor(&[1.0, 2.0], &[2]), tensor(&[3.0, 4.0], &[2]), tensor(&[0.0, 0.0], &[2]));
    assert_eq!(log(|| drop(MUL.call_inplace((&a, &b)).unwrap())), ["> mul_", "< mul 1"]);
    let args: Args = [Value::Tensor(&a), Value::Tensor(&b)].into_iter().collect();
    assert_eq!(log(|| call_out(&MUL, &args, std::slice::from_ref(&out)).unwrap()), ["> mul out", "< mul 1"]);
    // What decomposes is written to `out` by an op that observers see.
    let (m, n) = (Term::from(&a).unsqueeze(0).ok().unwrap(), Term::from(&b).unsqueeze(1).ok().unwrap());
    let out = tensor(&[0.0], &[1, 1]);
    let args: Args = [Value::Tensor(&m), Value::Tensor(&n)].into_iter().collect();
    let product = log(|| call_out(&MATMUL, &args, std::slice::from_ref(&out)).unwrap());
    let last: Vec<&str> = product.iter().rev().take(3).map(|s| s.as_str()).collect();
    assert_eq!(last, ["< matmul 1", "< copy_ 1", "> copy__"]);
}

#[test]
fn random_ops_report_their_draws() {
    let generator = std::sync::Arc::new(rustgrad::op::Generator::new(7, Device::Cpu));
    let draw = || RAND.call(([5], Value::Generator(generator.clone()))).ok().unwrap();
    assert!(log(|| drop(draw())).contains(&"draws".to_string()));
}

#[test]
fn a_recording_replays_on_other_inputs() {
    let (x, w) = (tensor(&[1.0, 2.0, 3.0, 4.0], &[1, 2, 2]), tensor(&[1.0, 0.0, 2.0, 1.0], &[2, 2]));
    let steps = |x: &Tensor, w: &Tensor| {
        let y = MATMUL.call((x, w)).ok().unwrap();
        // A view of it is written in place.
        MUL.call_inplace((SELECT.call((&y, 1, 0)), 10.0)).unwrap();
        RESHAPE.call((&y, [4])).ok().unwrap()
    };
    let capture = Rc::new(Capture::default());
    let y = observed(capture.clone(), || steps(&x, &w));
    assert_eq!(capture.problems(), Vec::<String>::new());
    assert!(capture.steps().iter().all(|s| *s != "matmul" && *s != "reshape"), "{:?}", capture.steps());
    let other = [tensor(&[5.0, 1.0, 0.0, 2.0], &[1, 2, 2]), tensor(&[2.0, 1.0, 0.0, 3.0], &[2, 2])];
    let given = [(x.clone(), other[0].clone()), (w.clone(), other[1].clone())];
    let again = capture.replay(&given, std::slice::from_ref(&y)).unwrap();
    assert_eq!(values(&again[0]), values(&steps(&other[0], &other[1])));
    let unknown = capture.replay(&given[..1], &[y]).unwrap_err().to_string();
    assert!(unknown.contains("reads a tensor that no step made"), "{unknown}");
}

#[test]
fn a_capture_finds_what_a_decomposing_op_may_not_do() {
    use rustgrad::op::{OP, Op, Vjp, decompose, opaque, sig};
    static SECRET: Op = Op {
        sig: sig("_secret(Tensor self) -> Tensor"),
        body: decompose(|c| {
            let t = Tensor::zeros(&[1], DType::F32, Device::Cpu)?;
            ADD.call((rustgrad::op::Arguments::tensor(c, 0)?, &t)).outputs()
        }),
        vjp: Vjp::None("a test"),
        ..OP
    };
    static LIAR: Op = Op {
        sig: sig("_liar(Tensor self) -> Tensor"),
        body: opaque(
            |c| Ok(rustgrad::op::Spec::one(&[9], DType::F32, rustgrad::op::Arguments::tensor(c, 0)?.device())),
            |c| NEG.call((rustgrad::op::Arguments::tensor(c, 0)?,)).outputs(),
        ),
        vjp: Vjp::None("a test"),
        ..OP
    };
    let x = tensor(&[1.0], &[1]);
    let problems = |op: &'static Op| {
        let capture = Rc::new(Capture::default());
        observed(capture.clone(), || op.call((&x,)).ok().unwrap());
        capture.problems()
    };
    assert_eq!(problems(&SECRET), ["_secret decomposes, but touches memory: Allocation"]);
    let wrong = problems(&LIAR);
    assert!(wrong.len() == 1 && wrong[0].starts_with("_liar infers f32[9]"), "{wrong:?}");
}
