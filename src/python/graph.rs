//! The backward graph in Python: nodes, edges, running backward, requires_grad.

use super::error::carry;
use super::held::{self, Held};
use super::hooks::removable;
use super::object::{Handle, borrow, wrap_bound};
use crate::autograd::node::Work;
use crate::autograd::{self, Node, Request, history, hooks};
use crate::retire::Frame;
use crate::tensor::{Edge, Foreign, HAS_FN, INFERENCE, LEAF_GRAD, Tensor};
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A node of the backward graph: `y.grad_fn`. Two objects of one node are equal. Its objects are of classes made in
/// Python, which give them attributes that the collector sees.
#[pyclass(name = "Node", module = "rustgrad.autograd.graph", subclass)]
pub struct PyNode {
    node: Option<Arc<Node>>,
}

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Live node objects by the address of their node, so that a node is one object for as long as Python holds it.
static OBJECTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The object of a node, of a class named after it (`AddBackward0`).
pub fn node_object<'py>(py: Python<'py>, node: Arc<Node>) -> PyResult<Bound<'py, PyAny>> {
    let new = || Ok::<_, PyErr>(py.import("weakref")?.getattr("WeakValueDictionary")?.call0()?.unbind());
    let objects = OBJECTS.get_or_try_init(py, new)?.bind(py);
    let key = Arc::as_ptr(&node) as usize;
    let known = objects.call_method1("get", (key,))?;
    if !known.is_none() {
        return Ok(known);
    }
    let object = new_node_object(py, node)?;
    objects.set_item(key, &object)?;
    Ok(object)
}

fn new_node_object<'py>(py: Python<'py>, node: Arc<Node>) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    let class = match classes.get_item(&*node.name)? {
        Some(c) => c,
        None => {
            let kwargs = PyDict::new(py);
            kwargs.set_item("__module__", "rustgrad.autograd.graph")?;
            let base = PyTuple::new(py, [py.get_type::<PyNode>()])?;
            let c = py.get_type::<PyType>().call1((&*node.name, base, kwargs))?;
            classes.set_item(&*node.name, &c)?;
            c
        }
    };
    let object = class.call0()?;
    object.cast::<PyNode>()?.borrow_mut().node = Some(node);
    Ok(object)
}

pub fn edge_object(py: Python, edge: Option<Edge>) -> PyResult<*mut PyObject> {
    match edge {
        Some(e) => Ok(node_object(py, history::target(&e).0)?.into_ptr()),
        None => Ok(py.None().into_ptr()),
    }
}

/// A node's dict, made when first asked for.
pub fn metadata<'py>(py: Python<'py>, node: &Node) -> Bound<'py, PyDict> {
    let kept: &dyn Foreign = &**node.python().get_or_init(|| Box::new(Held::in_graph(PyDict::new(py).unbind())));
    let kept: &dyn Any = kept;
    kept.downcast_ref::<Held<PyDict>>().expect("nothing else is kept there").bind(py).clone()
}

impl PyNode {
    pub fn get(&self) -> PyResult<&Arc<Node>> {
        self.node
            .as_ref()
            .ok_or_else(|| PyTypeError::new_err("a Node is made by recording an op, not by calling its class"))
    }
}

#[pymethods]
impl PyNode {
    #[new]
    fn new() -> PyNode {
        PyNode { node: None }
    }
    /// PyTorch's name of the node: nodes that are no op's have the namespace in it.
    fn name(&self) -> PyResult<String> {
        let node = self.get()?;
        let own = matches!(node.work, Work::Custom(_)) || node.name.contains("Backward") && !node.name.ends_with('s');
        Ok(format!("{}{}", if own { "" } else { "torch::autograd::" }, node.name))
    }
    /// The nodes that come next in backward, each with the number of its input: one for each differentiable argument.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let one = |e: &Option<Edge>| -> PyResult<Bound<'py, PyTuple>> {
            match e {
                Some(e) => {
                    let (node, input) = history::target(e);
                    PyTuple::new(py, [node_object(py, node)?, input.into_pyobject(py)?.into_any()])
                }
                None => PyTuple::new(py, [py.None().into_bound(py), 0u32.into_pyobject(py)?.into_any()]),
            }
        };
        PyTuple::new(py, self.get()?.edges.iter().map(one).collect::<PyResult<Vec<_>>>()?)
    }
    /// The leaf that an AccumulateGrad node adds to.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.get()?.work {
            Work::Accumulate(t) => wrap_bound(py, t.clone()),
            _ => Err(PyAttributeError::new_err(format!("'{}' object has no attribute 'variable'", self.get()?.name))),
        }
    }
    /// A dict of the user's own.
    #[getter]
    fn metadata<'py>(slf: &Bound<'py, PyNode>) -> PyResult<Bound<'py, PyDict>> {
        Ok(metadata(slf.py(), slf.borrow().get()?))
    }
    /// Rises from node to node: the engine visits nodes by falling number.
    fn _sequence_nr(&self) -> PyResult<u64> {
        Ok(self.get()?.seq)
    }
    /// Shape, dtype and device of each output of the forward op.
    #[getter]
    fn _input_metadata(&self, py: Python) -> PyResult<Vec<InputMetadata>> {
        let one = |f: &crate::op::gradient::Facts| {
            let size = super::kinds::size_object(py, &f.shape)?;
            Ok(InputMetadata {
                // SAFETY: `size_object` returns a new reference.
                shape: unsafe { Bound::from_owned_ptr(py, size) }.unbind(),
                dtype: super::kinds::dtype_object(py, f.dtype)?,
                device: Py::new(py, super::kinds::PyDevice(f.device))?.into_any(),
            })
        };
        self.get()?.outputs.iter().map(one).collect()
    }
    /// `_saved_self`, `_raw_saved_self`: what the node keeps. Of a custom function: what its context has.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let node = self.get()?;
        if let Some(found) = super::saved::attribute(py, node, name)? {
            return Ok(found);
        }
        if let Work::Custom(c) = &node.work
            && let Some(f) = c.as_any().downcast_ref::<super::function::PyFunction>()
        {
            return f.context().bind(py).getattr(name);
        }
        Err(PyAttributeError::new_err(format!("'{}' object has no attribute '{name}'", node.name)))
    }
    fn __dir__<'py>(slf: &Bound<'py, PyNode>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let names = py.get_type::<PyAny>().call_method1("__dir__", (slf,))?.cast_into::<PyList>()?;
        let slf = slf.borrow();
        let node = slf.get()?;
        for name in node.kept_names() {
            names.append(format!("_saved_{name}"))?;
            if node.keeps_tensor(&name) {
                names.append(format!("_raw_saved_{name}"))?;
            }
        }
        Ok(names)
    }
    fn __repr__(&self) -> PyResult<String> {
        let node = self.get()?;
        let module = if matches!(node.work, Work::Custom(_)) { "torch.autograd.function." } else { "" };
        Ok(format!("<{module}{} object at {:#x}>", node.name, Arc::as_ptr(node) as usize))
    }
    fn __hash__(&self) -> PyResult<usize> {
        Ok(Arc::as_ptr(self.get()?) as usize >> 4)
    }
    fn __eq__(&self, other: &Bound<PyAny>) -> bool {
        let Ok(o) = other.cast::<PyNode>() else { return false };
        matches!((&self.node, &o.borrow().node), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
    }
    /// Runs `hook(grad_inputs, grad_outputs)` after the node; it may return other gradients for its inputs.
    fn register_hook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let id = hooks::next_id();
        self.get()?.hooks().post.push((id, super::function::post_hook(hook)));
        removable(py, self.get()?.clone(), id)
    }
    /// Runs `hook(grad_outputs)` before the node; it may return other gradients.
    fn register_prehook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let id = hooks::next_id();
        self.get()?.hooks().pre.push((id, super::function::pre_hook(hook)));
        removable(py, self.get()?.clone(), id)
    }
    fn __traverse__(&self, visit: PyVisit) -> Result<(), PyTraverseError> {
        self.node.iter().try_for_each(|n| held::show_to(&visit, |visit| autograd::owned::of_node(n, visit)))
    }
    fn __clear__(&mut self) {
        let node = self.node.take();
        drop(node);
    }
}

/// What a node expects of one incoming gradient.
#[pyclass(frozen, module = "rustgrad.autograd.graph")]
pub struct InputMetadata {
    #[pyo3(get)]
    shape: Py<PyAny>,
    #[pyo3(get)]
    dtype: Py<PyAny>,
    #[pyo3(get)]
    device: Py<PyAny>,
}

/// Marks a fresh tensor; integers are refused.
pub fn set_requires_grad(t: &Tensor, on: bool) -> PyResult<()> {
    if on && !t.dtype().is_differentiable() {
        return Err(PyRuntimeError::new_err("Only Tensors of floating point and complex dtype can require gradients"));
    }
    if on && t.flag(INFERENCE) && !autograd::mode::inference_enabled() {
        return Err(PyRuntimeError::new_err(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
        ));
    }
    t.set_flag(LEAF_GRAD, on);
    Ok(())
}

/// `t.requires_grad = on` by the user: non-leaves cannot be switched off.
pub fn change_requires_grad(t: &Tensor, on: bool) -> PyResult<()> {
    if t.flag(HAS_FN) {
        if on {
            return Ok(());
        }
        return Err(PyRuntimeError::new_err(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't \
             require differentiation use var_no_grad = var.detach().",
        ));
    }
    if on && !t.dtype().is_differentiable() {
        return Err(PyRuntimeError::new_err("only Tensors of floating point dtype can require gradients"));
    }
    set_requires_grad(t, on)
}

#[pyfunction]
pub fn _requires_grad_(t: &Bound<PyAny>, on: bool) -> PyResult<()> {
    change_requires_grad(
        borrow(t.as_ptr()).ok_or_else(|| PyTypeError::new_err("requires_grad_(): expected a Tensor"))?,
        on,
    )
}

/// Whether a tensor was made in inference mode.
#[pyfunction]
pub fn _is_inference(t: Handle) -> bool {
    t.0.flag(INFERENCE)
}

/// A tensor without history on the same memory.
#[pyfunction]
pub fn _detach(py: Python, t: Handle) -> PyResult<Bound<PyAny>> {
    let p = super::overrides::wrap_like(py, t.0.detach(), &t.0)?;
    // SAFETY: `wrap_like` returns a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, p) })
}

/// Cuts a tensor off from the node that made it.
#[pyfunction]
pub fn _detach_(t: Handle) -> PyResult<()> {
    if t.0.view_info().is_some_and(|v| v.base.requires_grad()) {
        return Err(PyRuntimeError::new_err(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.",
        ));
    }
    let old = t.0.slot().grad_fn.take();
    t.0.set_flag(HAS_FN | LEAF_GRAD, false);
    drop(old);
    Ok(())
}

/// The edge of a tensor that requires grad, or of a node object with an output number.
fn edge_of(t: &Tensor) -> PyResult<Option<Edge>> {
    Ok(history::grad_edge(t)?)
}

/// Once in a program, as in PyTorch.
fn warn_of_cycle(py: Python) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let text = c"Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.";
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)
}

/// A tensor, or an object with `node` and `output_nr`, as an edge.
fn edge_like(o: &Bound<PyAny>) -> PyResult<Option<Edge>> {
    if let Some(t) = borrow(o.as_ptr()) {
        return edge_of(t);
    }
    let node = o.getattr("node")?;
    let node = node.cast::<PyNode>()?.borrow().get()?.clone();
    match &node.work {
        Work::Accumulate(leaf) => edge_of(leaf),
        _ => Ok(Some(Edge::Node(node, o.getattr("output_nr")?.extract()?))),
    }
}

/// Backward from `outputs` with their gradients. With `accumulate` gradients go to `.grad` (of `inputs` alone where given),
/// else they are returned.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // one call from Python, all of them needed
pub fn _run_backward<'py>(
    py: Python<'py>,
    outputs: Vec<Bound<'py, PyAny>>,
    grads: Vec<Option<Handle>>,
    keep_graph: bool,
    create_graph: bool,
    inputs: Vec<Bound<'py, PyAny>>,
    allow_unused: bool,
    accumulate: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut roots = Vec::new();
    for (i, (out, grad)) in outputs.iter().zip(grads).enumerate() {
        let edge = edge_like(out)?;
        match (edge, grad) {
            (Some(e), Some(g)) => roots.push((e, g.0)),
            (Some(_), None) => {}
            (None, _) => {
                return Err(PyRuntimeError::new_err(format!(
                    "element {i} of tensors does not require grad and does not have a grad_fn"
                )));
            }
        }
    }
    let mut edges = Vec::new();
    for i in &inputs {
        edges.push(
            edge_like(i)?
                .ok_or_else(|| PyRuntimeError::new_err("One of the differentiated Tensors does not require grad"))?,
        );
    }
    if accumulate && create_graph {
        warn_of_cycle(py)?;
    }
    let chosen = (!accumulate || !inputs.is_empty()).then_some(edges.as_slice());
    let request = Request { roots, keep_graph, create_graph, inputs: chosen };
    // SAFETY: the interpreter lock is held here and where the frame ends; the engine reads within it.
    let _frame = unsafe { Frame::enter() };
    let captured = py.detach(|| autograd::run(request))?;
    if accumulate {
        let _mode = autograd::GradGuard::new(create_graph);
        for (t, g) in inputs.iter().zip(captured) {
            if let (Some(g), Some(t)) = (g, borrow(t.as_ptr())) {
                autograd::engine::accumulate(t, g)?;
                autograd::engine::after_accumulation(t)?;
            }
        }
        return Ok(py.None().into_bound(py));
    }
    let one = |(i, g): (usize, Option<Tensor>)| match g {
        Some(g) => wrap_bound(py, g),
        None if allow_unused => Ok(py.None().into_bound(py)),
        None => Err(PyRuntimeError::new_err(format!(
            "The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
        ))),
    };
    Ok(PyTuple::new(py, captured.into_iter().enumerate().map(one).collect::<PyResult<Vec<_>>>()?)?.into_any())
}

/// Calls a Python function from the engine, under the interpreter lock.
pub fn with_python<T>(f: impl FnOnce(Python) -> PyResult<T>) -> crate::error::Result<T> {
    Python::attach(|py| f(py).map_err(carry))
}
