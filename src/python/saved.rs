//! What a node keeps, as Python sees it: the values of `_saved_*`, and `_raw_saved_*` objects that take hooks.

use super::object::wrap_bound;
use crate::autograd::Node;
use crate::op::Value;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// A saved tensor before it is unpacked: `y.grad_fn._raw_saved_self`.
#[pyclass(frozen, module = "rustgrad.autograd")]
pub struct SavedTensor {
    node: Arc<Node>,
    name: String,
}

#[pymethods]
impl SavedTensor {
    /// Packs the tensor now by one function, and unpacks it by the other when backward asks for it.
    fn register_hooks(&self, pack_hook: Py<PyAny>, unpack_hook: Py<PyAny>) -> PyResult<()> {
        let hooks = super::function::saved_hooks(pack_hook, unpack_hook);
        self.node.repack(&self.name, &hooks)?.ok_or_else(|| {
            PyRuntimeError::new_err("Calling register_hooks on a saved tensor with value None is forbidden")
        })
    }
    fn __traverse__(&self, visit: PyVisit) -> Result<(), PyTraverseError> {
        super::held::show_to(&visit, |visit| crate::autograd::owned::of_node(&self.node, visit))
    }
    /// The tensor itself.
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.node.kept(&self.name)?.unwrap_or_default())
    }
}

/// The attribute `_saved_<name>` or `_raw_saved_<name>` of a node.
pub fn attribute<'py>(py: Python<'py>, node: &Arc<Node>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(what) = name.strip_prefix("_raw_saved_") {
        let raw = SavedTensor { node: node.clone(), name: what.into() };
        return node.keeps_tensor(what).then(|| Ok(Bound::new(py, raw)?.into_any())).transpose();
    }
    let Some(what) = name.strip_prefix("_saved_") else { return Ok(None) };
    node.kept(what)?.map(|v| object(py, v)).transpose()
}

fn object<'py>(py: Python<'py>, value: Value<'static>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Owned(t) => wrap_bound(py, t)?,
        Value::Tensor(t) => wrap_bound(py, t.clone())?,
        Value::Tensors(list) => {
            let one = |t: Option<_>| t.map_or(Ok(py.None().into_bound(py)), |t| wrap_bound(py, t));
            PyTuple::new(py, list.into_iter().map(one).collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Scalar(s) => super::export::scalar_object(py, s)?,
        Value::Ints(v) => PyTuple::new(py, v.iter())?.into_any(),
        Value::Scalars(v) => {
            let all = v.into_iter().map(|s| super::export::scalar_object(py, s)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, all)?.into_any()
        }
        Value::DType(d) => super::kinds::dtype_object(py, d)?.into_bound(py),
        Value::Device(d) => Bound::new(py, super::kinds::PyDevice(d))?.into_any(),
        Value::Str(s) => s.into_pyobject(py)?.into_any(),
        Value::None | Value::Format(_) | Value::Generator(_) => py.None().into_bound(py),
    })
}
