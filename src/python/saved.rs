//! Saved values of a node in Python: `_saved_*` attributes, and `_raw_saved_*` objects, which accept hooks.

use super::error::{PyResult, raised};
use super::function::SavedList;
use super::object::wrap_bound;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use rustgrad::autograd::Node;
use rustgrad::op::Value;
use std::sync::Arc;

/// The owner of a saved tensor: a node, under a name, or the list of a custom function.
enum Kept {
    Named(Arc<Node>, String),
    Listed(Arc<SavedList>, usize),
}

/// A saved tensor before unpacking: `y.grad_fn._raw_saved_self`.
#[pyclass(frozen, module = "rustgrad.autograd")]
pub struct SavedTensor(Kept);

impl SavedTensor {
    pub fn listed(list: &Arc<SavedList>, i: usize) -> SavedTensor {
        SavedTensor(Kept::Listed(list.clone(), i))
    }
}

#[pymethods]
impl SavedTensor {
    #[new]
    #[pyo3(signature = (*_args))]
    fn new(_args: &Bound<PyTuple>) -> PyResult<SavedTensor> {
        Err(raised::<PyRuntimeError>("Trying to create a SavedTensor object from Python is forbidden."))
    }
    /// `register_hooks(pack_hook, unpack_hook)`: packs the tensor now; backward unpacks it.
    #[pyo3(signature = (*hooks))]
    fn register_hooks(&self, hooks: &Bound<PyTuple>) -> PyResult<()> {
        if hooks.len() != 2 || hooks.iter().any(|h| !h.is_callable()) {
            return Err(raised::<PyTypeError>(
                "register_hooks(): incompatible function arguments; expected two callables, pack_hook and unpack_hook",
            ));
        }
        let hooks = super::function::saved_hooks(hooks.get_item(0)?.unbind(), hooks.get_item(1)?.unbind());
        let packed = match &self.0 {
            Kept::Named(node, name) => node.repack(name, &hooks)?,
            Kept::Listed(list, i) => list.repack(*i, &hooks)?,
        };
        packed.ok_or_else(|| {
            raised::<PyRuntimeError>("Calling register_hooks on a saved tensor with value None is forbidden")
        })
    }
    fn __traverse__(&self, visit: PyVisit) -> Result<(), PyTraverseError> {
        match &self.0 {
            Kept::Named(node, _) => {
                super::owned_objects::show_to(&visit, |visit| rustgrad::autograd::foreign_refs::of_node(node, visit))
            }
            // The list belongs to a context, which reports it.
            Kept::Listed(..) => Ok(()),
        }
    }
    /// The saved tensor, unpacked.
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            Kept::Named(node, name) => object(py, node.kept(name)?.unwrap_or_default()),
            Kept::Listed(list, i) => object(py, list.unpack()?[*i].clone().map_or(Value::None, Value::Owned)),
        }
    }
}

/// The attribute `_saved_<name>` or `_raw_saved_<name>` of a node.
pub fn attribute<'py>(py: Python<'py>, node: &Arc<Node>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(what) = name.strip_prefix("_raw_saved_") {
        let raw = SavedTensor(Kept::Named(node.clone(), what.into()));
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
        Value::DType(d) => super::py_types::dtype_object(py, d)?.into_bound(py),
        Value::Device(d) => Bound::new(py, super::py_types::PyDevice(d.into()))?.into_any(),
        Value::Str(s) => s.into_pyobject(py)?.into_any(),
        Value::Choice(c) => c.name.into_pyobject(py)?.into_any(),
        Value::None | Value::Format(_) | Value::Generator(_) => py.None().into_bound(py),
    })
}
