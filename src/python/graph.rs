//! The backward graph in Python: nodes and their hooks, requires_grad, detaching.

use super::error::{PyResult, carry, raised};
use super::object::{Handle, borrow, wrap_bound};
use super::owned_objects;
use super::owned_objects::Held;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use rustgrad::autograd::node::Work;
use rustgrad::autograd::{self, Node, history};
use rustgrad::tensor::{Edge, Foreign, HAS_FN, INFERENCE, LEAF_GRAD, Tensor};
use std::any::Any;
use std::sync::Arc;

/// A node of the backward graph: `y.grad_fn`. Two objects of one node are equal. The objects have Python-defined
/// classes, which give them attributes that the collector tracks.
#[pyclass(name = "Node", module = "rustgrad.autograd.graph", subclass)]
pub struct PyNode {
    node: Option<Arc<Node>>,
}

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Live node objects by the node's address, so that a node has one object for as long as Python holds it.
static OBJECTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The object of a node; its class has the node's name (`AddBackward0`).
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
    let class = match classes.get_item(&*node.name())? {
        Some(c) => c,
        None => {
            let kwargs = PyDict::new(py);
            kwargs.set_item("__module__", "rustgrad.autograd.graph")?;
            let base = PyTuple::new(py, [py.get_type::<PyNode>()])?;
            let c = py.get_type::<PyType>().call1((&*node.name(), base, kwargs))?;
            classes.set_item(&*node.name(), &c)?;
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

/// A node's dict, created on first use.
pub fn metadata<'py>(py: Python<'py>, node: &Node) -> Bound<'py, PyDict> {
    let kept: &dyn Foreign = &**node.python().get_or_init(|| Box::new(Held::in_graph(PyDict::new(py).unbind())));
    let kept: &dyn Any = kept;
    kept.downcast_ref::<Held<PyDict>>().expect("nothing else is kept there").bind(py).clone()
}

impl PyNode {
    pub fn get(&self) -> PyResult<&Arc<Node>> {
        self.node
            .as_ref()
            .ok_or_else(|| raised::<PyTypeError>("a Node is made by recording an op, not by calling its class"))
    }
}

#[pymethods]
impl PyNode {
    #[new]
    fn new() -> PyNode {
        PyNode { node: None }
    }
    /// PyTorch's name of the node; for nodes that are not an op's it includes the namespace.
    fn name(&self) -> PyResult<String> {
        let node = self.get()?;
        let own =
            matches!(node.work, Work::Custom(_)) || node.name().contains("Backward") && !node.name().ends_with('s');
        Ok(format!("{}{}", if own { "" } else { "torch::autograd::" }, node.name()))
    }
    /// The nodes that backward visits next, each with its input number: one entry per differentiable argument.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let one = |e: &Option<Edge>| -> PyResult<Bound<'py, PyTuple>> {
            match e {
                Some(e) => {
                    let (node, input) = history::target(e);
                    Ok(PyTuple::new(py, [node_object(py, node)?, input.into_pyobject(py)?.into_any()])?)
                }
                None => Ok(PyTuple::new(py, [py.None().into_bound(py), 0u32.into_pyobject(py)?.into_any()])?),
            }
        };
        Ok(PyTuple::new(py, self.get()?.edges.iter().map(one).collect::<PyResult<Vec<_>>>()?)?)
    }
    /// The leaf that an AccumulateGrad node adds to.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.get()?.work {
            Work::Accumulate(t) => wrap_bound(py, t.clone()),
            _ => {
                Err(raised::<PyAttributeError>(format!("'{}' object has no attribute 'variable'", self.get()?.name())))
            }
        }
    }
    /// A dict for user data.
    #[getter]
    fn metadata<'py>(slf: &Bound<'py, PyNode>) -> PyResult<Bound<'py, PyDict>> {
        Ok(metadata(slf.py(), slf.borrow().get()?))
    }
    /// Increases with creation: the engine visits nodes in decreasing order.
    fn _sequence_nr(&self) -> PyResult<u64> {
        Ok(self.get()?.seq)
    }
    /// Shape, dtype and device of each output of the forward op.
    #[getter]
    fn _input_metadata(&self, py: Python) -> PyResult<Vec<InputMetadata>> {
        let one = |f: &rustgrad::op::gradient::TensorMeta| {
            let size = super::py_types::size_object(py, &f.shape)?;
            Ok(InputMetadata {
                // SAFETY: `size_object` returns a new reference.
                shape: unsafe { Bound::from_owned_ptr(py, size) }.unbind(),
                dtype: super::py_types::dtype_object(py, f.dtype)?,
                device: Py::new(py, super::py_types::PyDevice(f.device.into()))?.into_any(),
            })
        };
        self.get()?.outputs.iter().map(one).collect()
    }
    /// `_saved_self`, `_raw_saved_self`: saved values of the node. For a custom function: attributes of its context.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let node = self.get()?;
        if let Some(found) = super::saved::attribute(py, node, name)? {
            return Ok(found);
        }
        if let Work::Custom(c) = &node.work
            && let Some(f) = c.as_any().downcast_ref::<super::function::PyFunction>()
        {
            return Ok(f.context().bind(py).getattr(name)?);
        }
        Err(raised::<PyAttributeError>(format!("'{}' object has no attribute '{name}'", node.name())))
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
        Ok(format!("<{module}{} object at {:#x}>", node.name(), Arc::as_ptr(node) as usize))
    }
    fn __hash__(&self) -> PyResult<usize> {
        Ok(Arc::as_ptr(self.get()?) as usize >> 4)
    }
    fn __eq__(&self, other: &Bound<PyAny>) -> bool {
        let Ok(o) = other.cast::<PyNode>() else { return false };
        matches!((&self.node, &o.borrow().node), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
    }
    /// Runs `hook(grad_inputs, grad_outputs)` after the node; it may return other gradients for its inputs.
    fn register_hook<'py>(&self, py: Python<'py>, hook: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let node = self.get()?;
        let mut place = node.hooks().post.clone();
        let handle = super::hooks::register(&mut place, py, &hook)?;
        node.hooks().post = place;
        Ok(handle)
    }
    /// Runs `hook(grad_outputs)` before the node; it may return other gradients.
    fn register_prehook<'py>(&self, py: Python<'py>, hook: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let node = self.get()?;
        let mut place = node.hooks().pre.clone();
        let handle = super::hooks::register(&mut place, py, &hook)?;
        node.hooks().pre = place;
        Ok(handle)
    }
    /// Runs the node on gradients of its outputs and returns the gradients of its inputs, one or a tuple. No hook is
    /// called and nothing is freed.
    #[pyo3(signature = (*grads, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        grads: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let node = self.get()?;
        if kwargs.is_some_and(|k| !k.is_empty()) {
            return Err(raised::<PyTypeError>("keyword arguments are not supported"));
        }
        let expected = node.outputs.len();
        if grads.len() != expected {
            let text = format!("expected {expected} arguments, got {} instead", grads.len());
            return Err(raised::<PyTypeError>(text));
        }
        let one = |(i, g): (usize, Bound<PyAny>)| match borrow(g.as_ptr()) {
            None if !g.is_none() => Err(raised::<PyTypeError>(format!("argument {i} is not a Variable"))),
            found => Ok(found.cloned()),
        };
        let grads = grads.iter().enumerate().map(one).collect::<PyResult<Vec<_>>>()?;
        // SAFETY: the interpreter lock is held here and where the frame is dropped; the node reads within the frame.
        let _frame = unsafe { rustgrad::rt::retire::Frame::enter() };
        let results = py.detach(|| autograd::engine::run_node(node, grads))?;
        let results = super::hooks::objects(py, &results)?;
        if results.len() == 1 { Ok(results.get_item(0)?) } else { Ok(results.into_any()) }
    }
    fn __traverse__(&self, visit: PyVisit) -> Result<(), PyTraverseError> {
        self.node.iter().try_for_each(|n| {
            owned_objects::show_to(&visit, |visit| rustgrad::autograd::foreign_refs::of_node(n, visit))
        })
    }
    fn __clear__(&mut self) {
        let node = self.node.take();
        drop(node);
    }
}

/// Shape, dtype and device that a node expects of an incoming gradient.
#[pyclass(frozen, module = "rustgrad.autograd.graph")]
pub struct InputMetadata {
    #[pyo3(get)]
    shape: Py<PyAny>,
    #[pyo3(get)]
    dtype: Py<PyAny>,
    #[pyo3(get)]
    device: Py<PyAny>,
}

/// Sets `requires_grad` of a new tensor; integer dtypes are rejected.
pub fn set_requires_grad(t: &Tensor, on: bool) -> PyResult<()> {
    if on && !t.dtype().is_differentiable() {
        return Err(raised::<PyRuntimeError>("Only Tensors of floating point and complex dtype can require gradients"));
    }
    if on && t.flag(INFERENCE) && !autograd::mode::inference_enabled() {
        return Err(raised::<PyRuntimeError>(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
        ));
    }
    t.set_flag(LEAF_GRAD, on);
    Ok(())
}

/// `t.requires_grad = on` by the user: only leaves can change it; `requires_grad_()` of a non-leaf has no effect.
pub fn change_requires_grad(t: &Tensor, on: bool, assigned: bool) -> PyResult<()> {
    if t.flag(HAS_FN) {
        let hint = match on {
            true if !assigned => return Ok(()),
            true => "",
            false => {
                " If you want to use a computed variable in a subgraph that doesn't require differentiation use \
                 var_no_grad = var.detach()."
            }
        };
        let text = format!("you can only change requires_grad flags of leaf variables.{hint}");
        return Err(raised::<PyRuntimeError>(text));
    }
    if on && !t.dtype().is_differentiable() {
        let kinds = if assigned { "floating point and complex" } else { "floating point" };
        return Err(raised::<PyRuntimeError>(format!("only Tensors of {kinds} dtype can require gradients")));
    }
    set_requires_grad(t, on)
}

#[pyfunction]
pub fn _requires_grad_(t: &Bound<PyAny>, on: bool) -> PyResult<()> {
    change_requires_grad(
        borrow(t.as_ptr()).ok_or_else(|| raised::<PyTypeError>("requires_grad_(): expected a Tensor"))?,
        on,
        false,
    )
}

/// The parameters that have a gradient, and their gradients.
#[pyfunction]
pub fn _with_grad<'py>(params: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let (py, name) = (params.py(), intern!(params.py(), "grad"));
    let (having, grads) = (PyList::empty(py), PyList::empty(py));
    for param in params.try_iter()? {
        let param = param?;
        let grad = param.getattr(name)?;
        if !grad.is_none() {
            having.append(param)?;
            grads.append(grad)?;
        }
    }
    Ok((having, grads))
}

/// Whether a tensor was created in inference mode.
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

/// Detaches a tensor from its node.
#[pyfunction]
pub fn _detach_(t: Handle) -> PyResult<()> {
    detach_in_place(&t.0)
}

pub fn detach_in_place(t: &Tensor) -> PyResult<()> {
    if t.view_info().is_some() {
        return Err(raised::<PyRuntimeError>(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.",
        ));
    }
    cut_off(t);
    t.drop_tangents();
    Ok(())
}

/// Turns a non-view tensor into a leaf that does not require grad.
pub fn cut_off(t: &Tensor) {
    let old = t.slot().grad_fn.take();
    t.set_flag(HAS_FN | LEAF_GRAD, false);
    drop(old); // outside the lock: dropping may walk a graph
}

/// Calls a Python function from the engine, under the interpreter lock.
pub fn with_python<T>(f: impl FnOnce(Python) -> PyResult<T>) -> rustgrad::error::Result<T> {
    Python::attach(|py| f(py).map_err(carry))
}
