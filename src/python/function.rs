//! Python code in the graph: custom functions and hooks. Each takes the interpreter lock when the engine calls it.

use super::graph::with_python;
use super::held::{self, Held, Hook};
use super::object::{Handle, borrow, wrap_bound};
use crate::autograd::hooks::{PostHook, PreHook, TensorHook};
use crate::autograd::node::{self, Edges, Work};
use crate::autograd::owned::{self, Owned};
use crate::autograd::saved::{Saved, SavedHooks, Unpacks};
use crate::autograd::{self, Custom, Node, history};
use crate::error::Result;
use crate::op::gradient::Facts;
use crate::tally::{self, Count};
use crate::tensor::slot::Creation;
use crate::tensor::{Foreign, Tensor, Visit};
use crate::thread::own;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

fn objects<'py>(py: Python<'py>, grads: &[Option<Tensor>]) -> PyResult<Bound<'py, PyTuple>> {
    let one = |g: &Option<Tensor>| match g {
        Some(t) => wrap_bound(py, t.clone()),
        None => Ok(py.None().into_bound(py)),
    };
    PyTuple::new(py, grads.iter().map(one).collect::<PyResult<Vec<_>>>()?)
}

fn tensors(o: &Bound<PyAny>) -> PyResult<Vec<Option<Tensor>>> {
    if borrow(o.as_ptr()).is_some() {
        return Ok(vec![borrow(o.as_ptr()).cloned()]);
    }
    let one = |i: PyResult<Bound<PyAny>>| -> PyResult<Option<Tensor>> {
        let i = i?;
        match borrow(i.as_ptr()) {
            Some(t) => Ok(Some(t.clone())),
            None if i.is_none() => Ok(None),
            None => Err(PyTypeError::new_err(format!("expected Tensor or None, got {}", super::values::type_name(&i)))),
        }
    };
    o.try_iter()?.map(one).collect()
}

/// A hook on one gradient; None keeps it.
pub fn tensor_hook(hook: Py<PyAny>) -> TensorHook {
    Arc::new(Hook::new(hook))
}
pub fn pre_hook(hook: Py<PyAny>) -> PreHook {
    Arc::new(Hook::new(hook))
}
pub fn post_hook(hook: Py<PyAny>) -> PostHook {
    Arc::new(Hook::new(hook))
}

pub fn on_grad(hook: &Py<PyAny>, g: &Tensor) -> Result<Option<Tensor>> {
    with_python(|py| {
        let r = hook.bind(py).call1((wrap_bound(py, g.clone())?,))?;
        if r.is_none() {
            return Ok(None);
        }
        let new = borrow(r.as_ptr()).ok_or_else(|| {
            let name = super::values::type_name(&r);
            PyTypeError::new_err(format!("expected Variable, but hook returned '{name}'"))
        })?;
        if new.shape() != g.shape() {
            let name = hook.getattr(py, "__name__").map_or("hook".into(), |n| n.to_string());
            return Err(PyRuntimeError::new_err(format!("hook '{name}' has changed the size of value")));
        }
        Ok(Some(new.clone()))
    })
}

pub fn before_node(hook: &Py<PyAny>, grads: &[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>> {
    with_python(|py| {
        let r = hook.bind(py).call1((objects(py, grads)?,))?;
        if r.is_none() { Ok(None) } else { tensors(&r).map(Some) }
    })
}

pub fn after_node(
    hook: &Py<PyAny>,
    results: &[Option<Tensor>],
    grads: &[Option<Tensor>],
) -> Result<Option<Vec<Option<Tensor>>>> {
    with_python(|py| {
        let r = hook.bind(py).call1((objects(py, results)?, objects(py, grads)?))?;
        if r.is_none() { Ok(None) } else { tensors(&r).map(Some) }
    })
}

/// What `pack_hook` made of a tensor.
struct Packed {
    object: Held<PyAny>,
    unpack: Arc<Held<PyAny>>,
}

impl Unpacks for Packed {
    fn unpack(&self) -> Result<Tensor> {
        with_python(|py| {
            let r = self.unpack.bind(py).call1((self.object.bind(py),))?;
            borrow(r.as_ptr()).cloned().ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                    super::values::type_name(&r)
                ))
            })
        })
    }
    fn owned(&self, visit: &mut Visit) {
        self.object.owned(visit);
    }
}

/// Hooks that keep a saved tensor as any Python object.
pub fn saved_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) -> SavedHooks {
    let (pack, unpack) = (Held::in_graph(pack), Arc::new(Held::in_graph(unpack)));
    Arc::new(move |t| {
        let object = with_python(|py| Ok(pack.bind(py).call1((wrap_bound(py, t.clone())?,))?.unbind()))?;
        Ok(Arc::new(Packed { object: Held::in_graph(object), unpack: unpack.clone() }))
    })
}

/// The node's side of a custom function: its context, and what it saved.
pub struct PyFunction {
    context: Held<PyAny>,
    saved: Arc<SavedList>,
    /// For each edge the position of its argument, since backward answers for every argument.
    arguments: Vec<usize>,
}

impl PyFunction {
    pub fn context(&self) -> &Py<PyAny> {
        &self.context
    }
}

struct SavedList {
    items: Mutex<Option<Vec<Option<Saved>>>>,
    node: Mutex<Weak<Node>>,
}

impl Custom for PyFunction {
    fn apply(&self, _node: &Arc<Node>, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        with_python(|py| {
            let r = self.context.bind(py).call_method1("_run_backward", (objects(py, grads)?,))?;
            let all = tensors(&r)?;
            Ok(self.arguments.iter().map(|&i| all.get(i).cloned().flatten()).collect())
        })
    }
    fn release(&self) {
        let old = self.saved.lock().take();
        drop(old);
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn owned(&self, found: &mut Owned) {
        found.object(|visit| self.context.owned(visit));
        if let Ok(items) = self.saved.items.try_lock() {
            items.iter().flatten().flatten().for_each(|s| found.saved(s));
        }
    }
}

impl SavedList {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Option<Saved>>>> {
        self.items.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// What `ctx.saved_tensors` reads: the saved tensors, checked against their versions.
#[pyclass(frozen)]
pub struct SavedTensors(Arc<SavedList>);

#[pymethods]
impl SavedTensors {
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let node = self.0.node.lock().unwrap_or_else(|e| e.into_inner()).upgrade();
        // Not under the lock: unpacking may run Python.
        let items = self.0.lock().clone();
        let (Some(items), Some(node)) = (items, node) else { return Err(node::freed().into()) };
        let unpacked = items
            .into_iter()
            .map(|s| s.map(|s| s.unpack(&node, &node.outputs)).transpose())
            .collect::<Result<Vec<_>>>()?;
        objects(py, &unpacked)
    }
    /// While the node lives the list is the node's, which shows it.
    fn __traverse__(&self, visit: PyVisit) -> std::result::Result<(), PyTraverseError> {
        let items = self.0.items.try_lock().ok().filter(|_| Arc::strong_count(&self.0) == 1);
        let Some(items) = items else { return Ok(()) };
        held::show_to(&visit, |visit| owned::of_saved(items.iter().flatten().flatten(), visit))
    }
    fn __clear__(&self) {
        if Arc::strong_count(&self.0) == 1 {
            let old = self.0.lock().take();
            drop(old);
        }
    }
}

/// Records a custom function: gives its outputs one node. Returns the outputs and the saved tensors.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn _function_apply<'py>(
    py: Python<'py>,
    ctx: Py<PyAny>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    outputs: &Bound<'py, PyTuple>,
    dirty: &Bound<'py, PyTuple>,
    non_differentiable: &Bound<'py, PyTuple>,
    to_save: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyTuple>, SavedTensors)> {
    let (edges, arguments) = edges(args)?;
    let among = |list: &Bound<'py, PyTuple>, o: &Bound<'py, PyAny>| list.iter().any(|x| x.is(o));
    // Made before the node, so that nothing is half done if one is refused.
    let mut results: Vec<(Bound<'py, PyAny>, Option<Tensor>)> = Vec::new();
    for o in outputs.iter() {
        let Some(t) = borrow(o.as_ptr()) else {
            results.push((o, None));
            continue;
        };
        let is_dirty = among(dirty, &o);
        let is_input = args.iter().any(|a| a.is(&o));
        if is_dirty {
            check_dirty(t, name)?;
            // What wrote to it may have been no op.
            t.storage().bump();
        }
        let out = if is_input && !is_dirty { wrap_bound(py, fresh_view(t))? } else { o.clone() };
        let skip = among(non_differentiable, &o) || !t.dtype().is_differentiable();
        let tensor = borrow(out.as_ptr()).cloned();
        if let (Some(t), false) = (&tensor, is_dirty) {
            forbid_writes(t, outputs.len() > 1);
        }
        results.push((out, if skip { None } else { tensor }));
    }
    let facts = results.iter().map(|(o, _)| borrow(o.as_ptr()).map_or_else(none_facts, Facts::of)).collect();
    let saved = Arc::new(SavedList { items: Mutex::new(None), node: Mutex::new(Weak::new()) });
    let work = Work::Custom(Box::new(PyFunction { context: Held::in_graph(ctx), saved: saved.clone(), arguments }));
    let node = Node::new(name.to_string(), work, edges, facts);
    *saved.node.lock().unwrap_or_else(|e| e.into_inner()) = Arc::downgrade(&node);
    let input = |s: &Bound<'py, PyAny>| borrow(s.as_ptr()).filter(|_| !among(outputs, s)).map(Saved::input).transpose();
    let mut items = to_save.iter().map(|s| input(&s)).collect::<Result<Vec<_>>>()?;
    for (i, (_, t)) in results.iter().enumerate() {
        if let Some(t) = t {
            if among(dirty, &results[i].0) && t.view_info().is_some() {
                history::rebase(t, &node)?;
            } else {
                history::set_history(t, &node, i);
            }
        }
    }
    // Outputs are saved with their history: hooks see it.
    for (s, item) in to_save.iter().zip(&mut items) {
        if let (Some(i), Some(t)) = (outputs.iter().position(|o| o.is(&s)), borrow(s.as_ptr())) {
            *item = Some(Saved::output(t, i)?);
        }
    }
    *saved.lock() = Some(items);
    results.iter().for_each(|(o, _)| held::track_object(o)); // the context may own them
    Ok((PyTuple::new(py, results.into_iter().map(|(o, _)| o))?, SavedTensors(saved)))
}

/// May a function have written to `t`?
fn check_dirty(t: &Tensor, name: &str) -> PyResult<()> {
    history::check_writable(t)?;
    if t.is_leaf() && t.requires_grad() {
        return Err(PyRuntimeError::new_err(
            "a leaf Variable that requires grad has been used in an in-place operation.",
        ));
    }
    let _recording = autograd::GradGuard::new(true);
    Ok(history::check_inplace(t, name, true)?)
}

/// A write to a view that a function returned would go round its backward.
fn forbid_writes(t: &Tensor, one_of_many: bool) {
    if let Some(v) = t.view_info() {
        let creation = if one_of_many { Creation::MultiOutput } else { Creation::Custom };
        v.creation.store(creation as u8, Ordering::Release);
    }
}

/// One edge for each tensor argument, with the position of the argument.
fn edges(args: &Bound<PyTuple>) -> PyResult<(Edges, Vec<usize>)> {
    let (mut edges, mut positions) = (Edges::new(), Vec::new());
    for (i, a) in args.iter().enumerate() {
        if let Some(t) = borrow(a.as_ptr()) {
            own(|own| history::push_edge(own, t, &mut edges))?;
            positions.push(i);
        }
    }
    Ok((edges, positions))
}

/// An input returned unchanged becomes a view of itself, with a history of its own.
fn fresh_view(t: &Tensor) -> Tensor {
    t.make_view(t.meta().clone(), Creation::Custom, t.view_info().and_then(|v| v.replay.clone()))
}

fn none_facts() -> Facts {
    Facts { shape: Default::default(), dtype: crate::dtype::DType::F32, device: Default::default() }
}

/// Live storages and nodes, for leak tests.
#[pyfunction]
pub fn live_counts() -> (usize, usize) {
    (tally::sum(Count::Storages), tally::sum(Count::Nodes))
}

/// The node that accumulates into a leaf, or that made a tensor, with the output number.
#[pyfunction]
pub fn _gradient_edge<'py>(py: Python<'py>, t: Handle) -> PyResult<Option<(Bound<'py, PyAny>, u32)>> {
    match history::grad_edge(&t.0)? {
        Some(e) => {
            let (node, input) = history::target(&e);
            Ok(Some((super::graph::node_object(py, node)?, input)))
        }
        None => Ok(None),
    }
}
