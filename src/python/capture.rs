//! A recording of the primitives that a Python function calls, for the tests of the op table.

use super::convert::type_name;
use super::error::{PyResult, raised};
use super::object::{borrow, wrap_bound};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustgrad::dispatch::Capture;
use rustgrad::op::tracer::{self, Tracer, install};
use rustgrad::tensor::Tensor;
use std::rc::Rc;

#[pyclass(name = "_Capture", module = "rustgrad._C", unsendable)]
pub struct PyCapture(Rc<Capture>);

/// Removes the tracer of this thread, or puts the one before back.
struct Installed(Option<Rc<dyn Tracer>>);

impl Drop for Installed {
    fn drop(&mut self) {
        install(self.0.take());
    }
}

/// Calls `function` without arguments; returns what it returns, and the recording of the primitives that it called.
#[pyfunction]
pub fn _capture<'py>(py: Python<'py>, function: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Py<PyCapture>)> {
    let capture = Rc::new(Capture::default());
    let result = {
        let _installed = Installed(install(Some(capture.clone())));
        function.call0()?
    };
    Ok((result, Py::new(py, PyCapture(capture))?))
}

/// Whether anything may observe calls, so that the name of a range is worth making.
#[pyfunction]
pub fn _is_traced() -> bool {
    tracer::enabled()
}

/// Calls `function` with the other arguments, in a range that tracers see under `name`.
#[pyfunction]
#[pyo3(signature = (name, function, *args, **kwargs))]
pub fn _in_range<'py>(
    name: &str,
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _range = tracer::RangeGuard::new(name);
    Ok(function.call(args, kwargs)?)
}

fn tensors(list: &[Bound<PyAny>]) -> PyResult<Vec<Tensor>> {
    let one = |o: &Bound<PyAny>| {
        let t = borrow(o.as_ptr()).cloned();
        t.ok_or_else(|| raised::<PyTypeError>(format!("expected a tensor, got {}", type_name(o))))
    };
    list.iter().map(one).collect()
}

#[pymethods]
impl PyCapture {
    /// The names of the primitives in the order of their calls.
    fn steps(&self) -> Vec<&'static str> {
        self.0.steps()
    }
    /// (name, number of the first step, number of the first step after it) of each named range, as they began.
    fn ranges(&self) -> Vec<(String, usize, usize)> {
        self.0.ranges().into_iter().map(|r| (r.name, r.start, r.end)).collect()
    }
    /// What was not as a recording needs it: raw memory outside primitives, results other than what was inferred.
    fn problems(&self) -> Vec<String> {
        self.0.problems()
    }
    /// Calls the primitives again with `new` in the place of `old`; returns what then stands for `wanted`.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        old: Vec<Bound<'py, PyAny>>,
        new: Vec<Bound<'py, PyAny>>,
        wanted: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if old.len() != new.len() {
            return Err(raised::<PyValueError>(format!("{} tensors for {} tensors", new.len(), old.len())));
        }
        let given: Vec<(Tensor, Tensor)> = tensors(&old)?.into_iter().zip(tensors(&new)?).collect();
        let results = self.0.replay(&given, &tensors(&wanted)?)?;
        results.into_iter().map(|t| wrap_bound(py, t)).collect()
    }
}
