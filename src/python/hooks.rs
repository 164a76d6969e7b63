//! Hooks as Python registers them: on the gradient of a tensor or on a node, each with a handle that removes it.

use super::object::Handle;
use crate::autograd::{Node, callbacks, hooks};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use std::sync::Arc;

/// A handle that removes a node's hook.
pub fn removable<'py>(py: Python<'py>, node: Arc<Node>, id: u64) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, HookHandle { owner: Owner::Node(Arc::downgrade(&node)), id })?.into_any())
}

enum Owner {
    Node(std::sync::Weak<Node>),
    Tensor(std::sync::Weak<crate::tensor::TensorImpl>),
}

/// What registering a hook returns: `remove()` takes the hook away; also a context manager.
#[pyclass(name = "RemovableHandle", module = "rustgrad.utils.hooks")]
pub struct HookHandle {
    owner: Owner,
    #[pyo3(get)]
    id: u64,
}

#[pymethods]
impl HookHandle {
    /// Takes the hook away; a second call does nothing.
    fn remove(&self) {
        match &self.owner {
            Owner::Node(n) => {
                if let Some(n) = n.upgrade() {
                    let mut h = n.hooks();
                    h.pre.retain(|x| x.0 != self.id);
                    h.post.retain(|x| x.0 != self.id);
                }
            }
            Owner::Tensor(t) => {
                if let Some(t) = t.upgrade() {
                    hooks::remove_tensor_hook(&Tensor(t), self.id);
                }
            }
        }
    }
    fn __enter__(slf: Py<HookHandle>) -> Py<HookHandle> {
        slf
    }
    fn __exit__(&self, _t: Py<PyAny>, _v: Py<PyAny>, _b: Py<PyAny>) {
        self.remove();
    }
}

/// `t.register_hook(hook)`: the hook sees the gradient and may return another.
#[pyfunction]
pub fn _register_hook(t: Handle, hook: Py<PyAny>) -> PyResult<HookHandle> {
    let id = hooks::register_tensor_hook(&t.0, super::function::tensor_hook(hook))?;
    super::held::track(&t.0);
    Ok(HookHandle { owner: Owner::Tensor(Arc::downgrade(&t.0.0)), id })
}
#[pyfunction]
pub fn _register_post_accumulate_grad_hook(t: Handle, hook: Py<PyAny>) -> PyResult<HookHandle> {
    let id = hooks::register_post_accumulate(&t.0, super::function::tensor_hook(hook))?;
    super::held::track(&t.0);
    Ok(HookHandle { owner: Owner::Tensor(Arc::downgrade(&t.0.0)), id })
}
/// Calls a function of no arguments when the backward pass that runs has ended.
#[pyfunction]
pub fn _queue_callback(callback: Py<PyAny>) -> PyResult<()> {
    let call = move || super::graph::with_python(|py| callback.call0(py).map(drop));
    Ok(callbacks::queue(Box::new(call))?)
}
/// The number of the backward pass that runs in this thread; -1 if there is none.
#[pyfunction]
pub fn _current_pass() -> i64 {
    callbacks::current().map_or(-1, |id| id as i64)
}
#[pyfunction]
pub fn _retain_grad(t: Handle) -> PyResult<()> {
    Ok(hooks::retain_grad(&t.0)?)
}
