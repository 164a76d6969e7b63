//! Sparse gradients: the engine's questions about them are answered by `rustgrad.sparse`.

use super::error::{PyResult, raised};
use super::graph::with_python;
use super::object::{borrow, wrap_bound};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use rustgrad::autograd::opaque::{Rules, set_rules};
use rustgrad::error::Result;
use rustgrad::tensor::Tensor;
use std::sync::atomic::{AtomicBool, Ordering};

/// The class of sparse tensors, once their module has been imported.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static LOADED: AtomicBool = AtomicBool::new(false);

/// Says which class the tensors have whose elements the core does not see.
#[pyfunction]
pub fn _set_opaque_class(py: Python, class: Bound<PyType>) {
    super::overrides::leave_methods_to(&class);
    let _ = CLASS.set(py, class.unbind());
    LOADED.store(true, Ordering::Relaxed);
}

/// Tells the engine whom to ask. The module is imported when it is first needed.
pub fn declare() {
    set_rules(Box::new(Sparse));
}

struct Sparse;

/// A function of the module that makes sparse gradients.
fn function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    Ok(py.import("rustgrad.sparse._gradients")?.getattr(name)?)
}

fn tensor(o: &Bound<PyAny>) -> PyResult<Tensor> {
    borrow(o.as_ptr()).cloned().ok_or_else(|| raised::<PyTypeError>("expected a tensor"))
}

impl Rules for Sparse {
    fn made(&self, t: &Tensor) -> bool {
        if !LOADED.load(Ordering::Relaxed) {
            return false;
        }
        let made = |py: Python| {
            let Some(class) = CLASS.get(py) else { return Ok(false) };
            Ok(wrap_bound(py, t.clone())?.is_instance(class.bind(py))?)
        };
        with_python(made).unwrap_or(false)
    }
    fn add(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        with_python(|py| tensor(&function(py, "add")?.call1((wrap_bound(py, a.clone())?, wrap_bound(py, b.clone())?))?))
    }
    fn accumulate(&self, leaf: &Tensor, grad: &Tensor) -> Result<()> {
        with_python(|py| {
            let args = (wrap_bound(py, leaf.clone())?, wrap_bound(py, grad.clone())?);
            Ok(function(py, "accumulate")?.call1(args).map(drop)?)
        })
    }
    fn dense(&self, t: &Tensor) -> Result<Tensor> {
        with_python(|py| tensor(&wrap_bound(py, t.clone())?.call_method0("to_dense")?))
    }
    fn of_rows(&self, index: &Tensor, values: &Tensor, rows: i64, padding: i64) -> Result<Tensor> {
        with_python(|py| {
            let args = (wrap_bound(py, index.clone())?, wrap_bound(py, values.clone())?, rows, padding);
            tensor(&function(py, "of_rows")?.call1(args)?)
        })
    }
}
