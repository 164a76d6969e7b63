//! `vmap` as Python calls it: tensors with their batch dimensions in, results with the batch first out.

use super::convert::type_name;
use super::error::{PyResult, raised};
use super::graph::with_python;
use super::object::{borrow, wrap_bound};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustgrad::autograd::{self, history};
use rustgrad::tensor::{Edge, Tensor};
use rustgrad::transform::{self, Input, Output, Randomness};
use std::rc::Rc;

fn tensor(o: &Bound<PyAny>) -> PyResult<Tensor> {
    borrow(o.as_ptr()).cloned().ok_or_else(|| raised::<PyTypeError>(format!("expected a Tensor, got {}", type_name(o))))
}

/// Calls `function` with the first example of each tensor, as a list; returns (result, whether it has the batch first) for
/// each tensor of the list that it returns.
#[pyfunction]
pub fn _vmap<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    tensors: Vec<Bound<'py, PyAny>>,
    dims: Vec<usize>,
    size: usize,
    randomness: &str,
) -> PyResult<Vec<(Bound<'py, PyAny>, bool)>> {
    let randomness = match randomness {
        "error" => Randomness::Error,
        "same" => Randomness::Same,
        "different" => Randomness::Different,
        other => return Err(raised::<PyValueError>(format!("_vmap: unknown randomness '{other}'"))),
    };
    let input = |(o, dim): (&Bound<PyAny>, usize)| {
        let t = tensor(o)?;
        match t.shape().get(dim) {
            Some(n) if *n == size => Ok(Input { tensor: t, dim }),
            _ => Err(raised::<PyValueError>(format!("_vmap: expected {size} examples in dimension {dim}"))),
        }
    };
    let inputs = tensors.iter().zip(dims).map(input).collect::<PyResult<Vec<_>>>()?;
    let run = |examples: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let examples = examples.iter().map(|t| wrap_bound(py, t.clone())).collect::<PyResult<Vec<_>>>()?;
        let results = function.call1((PyList::new(py, examples)?,))?;
        results.try_iter()?.map(|o| tensor(&o?)).collect()
    };
    let outputs = transform::vmap(&inputs, size, randomness, run)?;
    let object = |o: Output| match o {
        Output::Batched(t) => Ok((wrap_bound(py, t)?, true)),
        Output::Same(t) => Ok((wrap_bound(py, t)?, false)),
    };
    outputs.into_iter().map(object).collect()
}

/// Whether a tensor's graph leads to a leaf that is none of `inputs`, on a path around them.
#[pyfunction]
pub fn _depends_on_others(outputs: Vec<Bound<PyAny>>, inputs: Vec<Bound<PyAny>>) -> PyResult<bool> {
    let edges = |list: &[Bound<PyAny>]| -> PyResult<Vec<Edge>> {
        let all = list.iter().map(|o| Ok(history::grad_edge(&tensor(o)?)?)).collect::<PyResult<Vec<_>>>()?;
        Ok(all.into_iter().flatten().collect())
    };
    Ok(autograd::engine::reaches_others(&edges(&outputs)?, &edges(&inputs)?))
}

/// Whether any of the tensors depends on the example of a `vmap` that is running.
#[pyfunction]
pub fn _vmap_is_batched(tensors: Vec<Bound<PyAny>>) -> PyResult<bool> {
    let tensors = tensors.iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
    Ok(transform::batching(&tensors).is_some())
}

/// Calls `run`, which returns two lists of tensors, the results and what is saved for backward: on the whole batch `rule` runs
/// instead, with `tensors`, which of them are batched, and the number of examples.
#[pyfunction]
pub fn _vmap_custom<'py>(run: &Bound<'py, PyAny>, rule: Py<PyAny>, tensors: Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    let args = tensors.iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
    let recorder = transform::batching(&args)
        .ok_or_else(|| raised::<PyValueError>("_vmap_custom: none of the tensors is batched"))?;
    let on_batch = move |args: &[Tensor], batched: &[bool], size: usize| {
        with_python(|py| {
            let args = args.iter().map(|t| wrap_bound(py, t.clone())).collect::<PyResult<Vec<_>>>()?;
            let results = rule.bind(py).call1((PyList::new(py, args)?, batched.to_vec(), size))?;
            results.try_iter()?.map(|o| tensor(&o?)).collect()
        })
    };
    recorder.custom(Rc::new(on_batch), args, || {
        let (results, saved): (Vec<Bound<PyAny>>, Vec<Bound<PyAny>>) = run.call0()?.extract()?;
        let all = |list: &[Bound<PyAny>]| list.iter().map(tensor).collect::<PyResult<Vec<_>>>();
        PyResult::Ok((all(&results)?, all(&saved)?))
    })
}

/// How many functions are being run by `vmap` in this thread, one inside another.
#[pyfunction]
pub fn _vmap_depth() -> usize {
    transform::depth()
}

/// Whether `vmap` warns, once for each op, that it loops over the examples; returns what it was.
#[pyfunction]
pub fn _set_vmap_warnings(on: bool) -> bool {
    transform::warn_of_loops(on)
}

/// Adds the functions of this file to the module.
pub fn add(m: &Bound<PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_vmap, m)?)?;
    m.add_function(wrap_pyfunction!(_vmap_depth, m)?)?;
    m.add_function(wrap_pyfunction!(_vmap_is_batched, m)?)?;
    m.add_function(wrap_pyfunction!(_vmap_custom, m)?)?;
    m.add_function(wrap_pyfunction!(_depends_on_others, m)?)?;
    Ok(m.add_function(wrap_pyfunction!(_set_vmap_warnings, m)?)?)
}
