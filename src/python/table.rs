//! The op table in Python: callables by name, and the rows from which tests, stubs and docs are generated.

use super::convert::type_name;
use super::describe::python_signature;
use super::error::{PyResult, raised};
use super::op_callable;
use super::op_callable::Home;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustgrad::device::{Device, Name};
use rustgrad::dispatch;
use rustgrad::op::{Batching, Body, Decompose, Forms, Op, Param, Returns, Vjp};
use rustgrad::ops;

/// Splits `nn.functional.relu` into the submodule and the name in it.
fn split_name(name: &'static str) -> (Home, &'static str) {
    let (space, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    (Home::Module(space), leaf)
}

/// The dict of public functions, and the methods set on `Tensor`.
pub fn install<'py>(py: Python<'py>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, ops) in ops::overloads(ops::all()) {
        let has = |bit: u8| ops.iter().copied().filter(|o| o.forms.has(bit)).collect::<Vec<_>>();
        let functions: Vec<&'static Op> =
            ops.iter().copied().filter(|o| o.forms.has(Forms::FUNCTION) || o.forms.has(Forms::HIDDEN)).collect();
        if !functions.is_empty() {
            let (home, leaf) = split_name(name);
            dict.set_item(name, op_callable::make(py, leaf, home, functions, false)?)?;
        }
        if name.contains('.') {
            if !has(Forms::INPLACE).is_empty() {
                let inplace: &'static str = Box::leak(format!("{name}_").into_boxed_str());
                let (home, leaf) = split_name(inplace);
                dict.set_item(inplace, op_callable::make(py, leaf, home, has(Forms::INPLACE), true)?)?;
            }
            continue;
        }
        let methods = has(Forms::METHOD);
        if !methods.is_empty() {
            tensor.setattr(name, op_callable::make(py, name, Home::Tensor, methods, false)?)?;
        }
        let inplace = has(Forms::INPLACE);
        if !inplace.is_empty() {
            let name: &'static str = Box::leak(format!("{name}_").into_boxed_str());
            if !dict.contains(name)? {
                dict.set_item(name, op_callable::make(py, name, Home::Module(""), inplace.clone(), true)?)?;
            }
            tensor.setattr(name, op_callable::make(py, name, Home::Tensor, inplace, true)?)?;
        }
    }
    Ok(dict)
}

/// The op of a name in the table; what an op is pickled as that its module does not show.
#[pyfunction]
pub fn _op<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    Ok(py.import("rustgrad._C")?.getattr("ops")?.get_item(name)?)
}

/// Names of ops that only other ops use: available in `ops`, not in the package.
pub fn steps(py: Python) -> PyResult<Bound<PyTuple>> {
    let hidden =
        ops::overloads(ops::all()).into_iter().filter(|(_, ops)| ops.iter().all(|o| o.forms.has(Forms::HIDDEN)));
    Ok(PyTuple::new(py, hidden.map(|(name, _)| name).collect::<Vec<_>>())?)
}

fn kind(op: &Op) -> &'static str {
    match op.body {
        _ if op.reads_host() => "reads host",
        Body::Elementwise(_) => "elementwise",
        Body::Kernel(_) => "kernel",
        Body::View(_) | Body::ViewAs(_) | Body::Views(_) => "view",
        Body::Opaque(_) => "opaque",
        Body::Decompose(_) => "composite",
        Body::Unset => "unset",
    }
}

/// How `vmap` runs a call: by a rule, by the op's steps, or example by example.
fn batch(op: &Op) -> &'static str {
    match (op.batch_rule(), &op.body) {
        (Batching::Loop, Body::Decompose(_)) => "steps",
        (Batching::Loop, Body::Opaque(_)) if matches!(op.vjp, Vjp::Composite) => "steps",
        (Batching::Loop, _) => "loop",
        _ => "rule",
    }
}

/// One dict per op, from which tests, stubs and docs are derived.
#[pyfunction]
pub fn op_table(py: Python) -> PyResult<Bound<PyList>> {
    let list = PyList::empty(py);
    for op in ops::all() {
        let d = PyDict::new(py);
        let has = |bit: u8| op.forms.has(bit);
        d.set_item("name", op.name())?;
        d.set_item("public", op.public())?;
        d.set_item("aliases", PyTuple::new(py, op.aliases)?)?;
        d.set_item("signature", without_other_names(op.sig.text))?;
        d.set_item("python_signature", python_signature(op, op.base()))?;
        d.set_item("kind", kind(op))?;
        d.set_item("doc", op.doc)?;
        d.set_item("function", has(Forms::FUNCTION))?;
        d.set_item("method", has(Forms::METHOD))?;
        d.set_item("inplace", has(Forms::INPLACE) || has(Forms::ONLY_INPLACE))?;
        d.set_item("only_inplace", has(Forms::ONLY_INPLACE))?;
        d.set_item("out", has(Forms::OUT))?;
        d.set_item("hidden", has(Forms::HIDDEN))?;
        d.set_item("differentiable", op.is_differentiable())?;
        d.set_item(
            "no_grad_reason",
            match op.vjp {
                Vjp::None(reason) => Some(reason),
                Vjp::Missing => Some("backward raises, as in PyTorch"),
                _ => None,
            },
        )?;
        d.set_item("batch", batch(op))?;
        d.set_item("node", op.node_name())?;
        d.set_item("gpu", op.runs_on_gpu())?;
        let fused = if let Body::Decompose(Decompose { fused, .. }) = op.body { fused } else { None };
        d.set_item("fused", fused.map(|f| f.name()))?;
        d.set_item("samples", PyList::new(py, op.samples)?)?;
        d.set_item("errors", PyList::new(py, op.errors)?)?;
        d.set_item("reference", (!op.reference.is_empty()).then_some(op.reference))?;
        d.set_item("params", params(py, op)?)?;
        d.set_item(
            "returns",
            match op.sig.returns {
                Returns::One => "Tensor".to_string(),
                Returns::Many => "Tensor[]".to_string(),
                Returns::Named => format!("({})", op.sig.result_names().collect::<Vec<_>>().join(", ")),
            },
        )?;
        d.set_item("dtypes", PyList::new(py, dtypes(op))?)?;
        list.append(d)?;
    }
    Ok(list)
}

/// A signature with one name per parameter: `split(Tensor self|tensor, ..)` as `split(Tensor self, ..)`.
fn without_other_names(sig: &str) -> String {
    let (mut out, mut values, mut other) = (String::with_capacity(sig.len()), false, false);
    for c in sig.chars() {
        // The values of `str{a|b}` are no names.
        values = c == '{' || (values && c != '}');
        other = !values && (c == '|' || (other && (c.is_alphanumeric() || c == '_')));
        if !other {
            out.push(c);
        }
    }
    out
}

fn params<'py>(py: Python<'py>, op: &'static Op) -> PyResult<Bound<'py, PyList>> {
    let one = |p: &Param| -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        d.set_item("name", p.name(&op.sig))?;
        d.set_item("also", p.also(&op.sig))?;
        d.set_item("takes_none", p.for_none().is_some())?;
        d.set_item("type", p.kind.python(p.choices(&op.sig)))?;
        d.set_item("optional", p.optional)?;
        d.set_item("default", p.default_text(&op.sig))?;
        d.set_item("keyword_only", p.keyword_only)?;
        Ok(d)
    };
    Ok(PyList::new(py, op.sig.params().iter().map(one).collect::<PyResult<Vec<_>>>()?)?)
}

/// The dtypes that an elementwise op computes in; empty for other ops.
fn dtypes(op: &Op) -> Vec<&'static str> {
    let Body::Elementwise(e) = &op.body else { return Vec::new() };
    let rules = e.rules();
    let all = rustgrad::dtype::DType::ALL.into_iter().filter(|d| !d.is_storage_only());
    all.filter(|&d| rules.iter().any(|r| r.loops.supports(d))).map(|d| d.short()).collect()
}

/// Calls the composite body of an op that also has a fused one: `_call_composite("softmax", x, 0)`.
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub fn _call_composite<'py>(py: Python<'py>, name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let op = ops::all().find(|o| o.name() == name).ok_or_else(|| raised::<PyKeyError>(name.to_string()))?;
    let items: Vec<_> = args.iter().map(|a| a.as_ptr()).collect();
    // SAFETY: `items` are the live arguments of this call; there are no keywords.
    let given = unsafe { super::parse::Given::new(items.as_ptr(), items.len(), std::ptr::null_mut()) };
    let mut parsed = rustgrad::op::Args::new();
    super::parse::parse(py, &op.sig, &given, "", &mut parsed).map_err(|_| {
        raised::<PyTypeError>(format!(
            "{name}: the arguments do not fit (got {})",
            args.iter().map(|a| type_name(&a)).collect::<Vec<_>>().join(", ")
        ))
    })?;
    let mut out = dispatch::call_composite(op, &parsed)?;
    super::object::wrap_bound(py, out.swap_remove(0))
}

/// The dtype that two or more operands (tensors or numbers) promote to.
#[pyfunction]
pub fn _result_type(py: Python, operands: &Bound<PyTuple>) -> PyResult<Py<PyAny>> {
    let mut ops = rustgrad::dtype::Operands::default();
    for o in operands.iter() {
        match super::object::borrow(o.as_ptr()) {
            Some(t) => ops.tensor(t.dtype(), t.ndim())?,
            None => match super::convert::to_scalar(&o)? {
                Some(s) => ops.scalar(s),
                None => {
                    return Err(raised::<PyTypeError>(format!(
                        "result_type(): argument must be Tensor or Number, not {}",
                        type_name(&o)
                    )));
                }
            },
        }
    }
    let d = ops.result().ok_or_else(|| raised::<PyTypeError>("result_type(): expected at least one operand"))?;
    super::py_types::dtype_object(py, d)
}

/// The dtype that two dtypes promote to. Errors: RuntimeError if they do not promote.
#[pyfunction]
pub fn promote_types(
    py: Python,
    type1: PyRef<super::py_types::PyDType>,
    type2: PyRef<super::py_types::PyDType>,
) -> PyResult<Py<PyAny>> {
    super::py_types::dtype_object(py, rustgrad::dtype::promote(type1.0.dtype()?, type2.0.dtype()?)?)
}

/// Whether a value of one dtype may be written into another: the category must not fall.
#[pyfunction]
pub fn can_cast<'py>(
    from_: &Bound<'py, super::py_types::PyDType>,
    to: &Bound<'py, super::py_types::PyDType>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = from_.py();
    match super::overrides::native(py, "can_cast", &[from_, to], &[])? {
        Some(answer) => Ok(answer),
        None => {
            Ok(pyo3::types::PyBool::new(py, from_.get().0.category() <= to.get().0.category()).to_owned().into_any())
        }
    }
}

/// The dtype of Python floats in new tensors.
#[pyfunction]
pub fn get_default_dtype(py: Python) -> PyResult<Py<PyAny>> {
    super::py_types::dtype_object(py, rustgrad::dtype::default_dtype())
}
/// Sets the dtype of Python floats in new tensors. Errors: TypeError for a dtype that is not floating point.
#[pyfunction]
pub fn set_default_dtype(d: &Bound<PyAny>) -> PyResult<()> {
    match super::py_types::to_dtype(d)? {
        Some(d) if d.is_float() && !d.is_float8() => {
            rustgrad::dtype::set_default_dtype(d);
            Ok(())
        }
        _ => Err(raised::<PyTypeError>(
            "only floating-point types are supported as the default type, of 16 bits or more",
        )),
    }
}
/// The number of threads that one operation may use.
#[pyfunction]
pub fn get_num_threads() -> usize {
    rustgrad::cpu::parallel::num_threads()
}
/// Sets the number of threads that one operation may use; results do not depend on it.
#[pyfunction]
pub fn set_num_threads(n: isize) -> PyResult<()> {
    if n <= 0 {
        return Err(raised::<pyo3::exceptions::PyRuntimeError>("set_num_threads expects a positive integer"));
    }
    rustgrad::cpu::parallel::set_num_threads(n as usize);
    Ok(())
}
#[pyfunction]
pub fn _empty_cache() {
    rustgrad::cpu::pool::empty_cache();
    rustgrad::gpu::empty_cache();
}
#[pyfunction]
pub fn _memory(device: &str) -> PyResult<(usize, usize)> {
    Ok(match Name::parse(device)?.device()? {
        Device::Cpu => (rustgrad::cpu::pool::memory_allocated(), rustgrad::cpu::pool::memory_reserved()),
        Device::Gpu(i) => {
            let [allocated, _, reserved, _] = rustgrad::gpu::memory(i as usize);
            (allocated, reserved)
        }
        Device::Meta => (0, 0),
    })
}
