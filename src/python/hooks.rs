//! Hooks as registered from Python: a dict for each tensor and for each side of a node; handles remove entries from it.

use super::convert::type_name;
use super::error::{PyResult, raised};
use super::graph::with_python;
use super::object::{Handle, borrow, wrap_bound};
use super::owned_objects;
use super::owned_objects::Held;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustgrad::autograd::opaque::is_opaque;
use rustgrad::autograd::{final_callbacks, hooks};
use rustgrad::error::Result;
use rustgrad::tensor::slot::{Gradients, Hook};
use rustgrad::tensor::{Foreign, Tensor, Visit};
use std::any::Any;
use std::sync::Arc;

/// Checks that the result (second) of a hook (third) may replace its argument (first).
type Check<'py> = fn(&Bound<'py, PyAny>, &Bound<'py, PyAny>, &Bound<'py, PyAny>) -> PyResult<()>;

/// Hooks by the ids of their handles, in the order in which they run.
pub struct HookDict(Held<PyDict>);

impl HookDict {
    pub fn shared(dict: &Bound<PyDict>) -> Arc<dyn Hook> {
        Arc::new(HookDict(Held::in_graph(dict.clone().unbind())))
    }
    pub fn of<'py>(py: Python<'py>, hook: &Arc<dyn Hook>) -> Option<Bound<'py, PyDict>> {
        let any: &dyn Any = &**hook;
        any.downcast_ref::<HookDict>().map(|h| h.0.bind(py).clone())
    }
    /// Calls each currently registered hook with `first` and `rest`; a hook's result replaces `first`.
    fn call<'py>(
        &self,
        first: Bound<'py, PyAny>,
        rest: Option<Bound<'py, PyAny>>,
        check: Check<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (mut current, mut changed) = (first, false);
        for hook in self.0.bind(current.py()).values() {
            let answer = match &rest {
                Some(more) => hook.call1((&current, more))?,
                None => hook.call1((&current,))?,
            };
            if answer.is_none() || answer.is(&current) {
                continue;
            }
            check(&current, &answer, &hook)?;
            (current, changed) = (answer, true);
        }
        Ok(changed.then_some(current))
    }
}

impl Foreign for HookDict {
    fn owned(&self, visit: &mut Visit) {
        self.0.owned(visit);
    }
}

impl Hook for HookDict {
    fn gradient(&self, grad: Option<&Tensor>) -> Result<Option<Tensor>> {
        with_python(|py| {
            let new = self.call(object(py, grad)?, None, check_one)?;
            Ok(new.and_then(|n| borrow(n.as_ptr()).cloned()))
        })
    }
    fn accumulated(&self, leaf: &Tensor) -> Result<()> {
        with_python(|py| match self.call(object(py, Some(leaf))?, None, check_one)? {
            None => Ok(()),
            Some(_) => Err(raised::<PyRuntimeError>("Tensor post accumulate grad hooks should return None.")),
        })
    }
    fn before(&self, grads: &[Option<Tensor>]) -> Result<Option<Gradients>> {
        with_python(|py| {
            let new = self.call(objects(py, grads)?.into_any(), None, check_all)?;
            new.map(|n| tensors(&n)).transpose()
        })
    }
    fn after(&self, results: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<Option<Gradients>> {
        with_python(|py| {
            let received = objects(py, grads)?.into_any();
            let new = self.call(objects(py, results)?.into_any(), Some(received), check_all)?;
            new.map(|n| tensors(&n)).transpose()
        })
    }
}

/// A result must have the shape, dtype and device of what it replaces.
fn check_one(old: &Bound<PyAny>, new: &Bound<PyAny>, hook: &Bound<PyAny>) -> PyResult<()> {
    if new.is_none() {
        return Ok(());
    }
    let Some(n) = borrow(new.as_ptr()) else {
        return Err(raised::<PyTypeError>(format!("expected Variable, but hook returned '{}'", type_name(new))));
    };
    let Some(o) = borrow(old.as_ptr()) else {
        return Err(raised::<PyRuntimeError>("can't replace a None gradient with a non-None value"));
    };
    let refuse = |what: String| Err(raised::<PyRuntimeError>(format!("hook '{}' has {what}", name(hook))));
    let apart = o.device() != n.device() && !is_opaque(o) && !is_opaque(n);
    if o.dtype() != n.dtype() || apart {
        let kind = |t: &Tensor| format!("torch.{}Tensor", t.dtype().scalar_type_name());
        return refuse(match o.dtype() == n.dtype() {
            false => format!("changed the type of value (was {} got {})", kind(o), kind(n)),
            true => format!("changed the device of value (was {} got {})", o.device(), n.device()),
        });
    }
    if o.shape() != n.shape() { refuse("changed the size of value".into()) } else { Ok(()) }
}

/// The result must be a tuple of the same length, with matching items.
fn check_all(old: &Bound<PyAny>, new: &Bound<PyAny>, hook: &Bound<PyAny>) -> PyResult<()> {
    let (Ok(old), Ok(new)) = (old.cast::<PyTuple>(), new.cast::<PyTuple>()) else {
        return Err(raised::<PyTypeError>(format!("expected tuple, but hook returned '{}'", type_name(new))));
    };
    if old.len() != new.len() {
        return Err(raised::<PyRuntimeError>(format!(
            "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
            name(hook),
            new.len(),
            old.len()
        )));
    }
    old.iter().zip(new.iter()).try_for_each(|(o, n)| check_one(&o, &n, hook))
}

fn name(hook: &Bound<PyAny>) -> String {
    hook.getattr("__name__").map_or("<unknown>".into(), |n| n.to_string())
}

fn object<'py>(py: Python<'py>, t: Option<&Tensor>) -> PyResult<Bound<'py, PyAny>> {
    t.map_or_else(|| Ok(py.None().into_bound(py)), |t| wrap_bound(py, t.clone()))
}

/// Gradients as Python sees them: tensors and None.
pub fn objects<'py>(py: Python<'py>, grads: &[Option<Tensor>]) -> PyResult<Bound<'py, PyTuple>> {
    Ok(PyTuple::new(py, grads.iter().map(|g| object(py, g.as_ref())).collect::<PyResult<Vec<_>>>()?)?)
}

/// Gradients returned by Python: tensors and None, or one tensor.
pub fn tensors(o: &Bound<PyAny>) -> PyResult<Vec<Option<Tensor>>> {
    if let Some(t) = borrow(o.as_ptr()) {
        return Ok(vec![Some(t.clone())]);
    }
    let one = |i: pyo3::PyResult<Bound<PyAny>>| -> PyResult<Option<Tensor>> {
        let i = i?;
        match borrow(i.as_ptr()) {
            Some(t) => Ok(Some(t.clone())),
            None if i.is_none() => Ok(None),
            None => Err(raised::<PyTypeError>(format!("expected Tensor or None, got {}", type_name(&i)))),
        }
    };
    o.try_iter()?.map(one).collect()
}

/// Registers a hook in the dict at `place`, which is created on first use; returns its handle.
pub fn register<'py>(
    place: &mut Option<Arc<dyn Hook>>,
    py: Python<'py>,
    hook: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let known = place.as_ref().and_then(|h| HookDict::of(py, h));
    let dict = match known {
        Some(d) => d,
        None => {
            let d = py.import("collections")?.getattr("OrderedDict")?.call0()?.cast_into::<PyDict>()?;
            *place = Some(HookDict::shared(&d));
            d
        }
    };
    let handle = py.import("rustgrad.utils.hooks")?.getattr("RemovableHandle")?.call1((&dict,))?;
    // Through `OrderedDict.__setitem__`: `PyDict_SetItem` would bypass its order.
    dict.as_any().set_item(handle.getattr("id")?, hook)?;
    Ok(handle)
}

/// The dictionary of the hooks on the gradient of a tensor, or (`accumulated`) after accumulation; None before the first.
#[pyfunction]
pub fn _get_hooks<'py>(py: Python<'py>, t: Handle, accumulated: bool) -> PyResult<Option<Bound<'py, PyDict>>> {
    // Hooks belong to a history: hooks from before a write to the base do not apply to the current value.
    rustgrad::autograd::history::grad_fn(&t.0)?;
    let kept = hooks::own_hook(&t.0, accumulated);
    Ok(kept.and_then(|hook| HookDict::of(py, &hook)))
}

/// Replaces the dict of hooks.
#[pyfunction]
pub fn _set_hooks(t: Handle, dict: Option<Bound<PyDict>>, accumulated: bool) -> PyResult<()> {
    let new = dict.map(|d| HookDict::shared(&d));
    owned_objects::track(&t.0);
    if accumulated {
        let old = std::mem::replace(&mut t.0.slot().rare().post_accumulate, new);
        drop(old); // outside the lock: it may run Python
        return Ok(());
    }
    Ok(hooks::set_tensor_hook(&t.0, new)?)
}

/// Calls a function without arguments at the end of the running backward pass.
#[pyfunction]
pub fn _queue_callback(callback: Py<PyAny>) -> PyResult<()> {
    let call = move || with_python(|py| Ok(callback.call0(py).map(drop)?));
    Ok(final_callbacks::queue(Box::new(call))?)
}
/// The id of the backward pass running in this thread; -1 if none.
#[pyfunction]
pub fn _current_pass() -> i64 {
    final_callbacks::current().map_or(-1, |id| id as i64)
}
/// Whether a reentrant checkpoint may run in the pass of this thread: it computes all gradients.
#[pyfunction]
pub fn _is_checkpoint_valid() -> bool {
    !final_callbacks::current_is_partial()
}
#[pyfunction]
pub fn _retain_grad(t: Handle) -> PyResult<()> {
    Ok(hooks::retain_grad(&t.0)?)
}
