//! Running backward from Python: its roots, its inputs, and the warning about reference cycles.

use super::error::{PyResult, raised};
use super::graph::PyNode;
use super::object::{Handle, borrow, wrap_bound};
use super::warnings::warn_once;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustgrad::autograd::node::Work;
use rustgrad::autograd::{self, Request, history, hooks};
use rustgrad::rt::retire::Frame;
use rustgrad::tensor::{Edge, Tensor};

/// The edge of a tensor that requires grad, or of a node object with an output number.
fn edge_of(t: &Tensor) -> PyResult<Option<Edge>> {
    Ok(history::grad_edge(t)?)
}

/// Warns once per process, as in PyTorch.
fn warn_of_cycle(py: Python) -> PyResult<()> {
    let text = "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.";
    warn_once(py, text, 1)
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

/// Backward from `outputs` with the given gradients. With `accumulate`, gradients are added to `.grad` (only of
/// `inputs`, if given); otherwise they are returned.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the parameters of the Python function
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
    if accumulate && rustgrad::transform::depth() > 0 {
        return Err(raised::<PyRuntimeError>(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or \
             functorch.vjp instead or call backward() outside of functorch transforms.",
        ));
    }
    let mut roots = Vec::new();
    for (i, (out, grad)) in outputs.iter().zip(grads).enumerate() {
        let edge = edge_like(out)?;
        match (edge, grad) {
            (Some(e), Some(g)) => roots.push((e, g.0)),
            (Some(_), None) => {}
            (None, _) => {
                return Err(raised::<PyRuntimeError>(format!(
                    "element {i} of tensors does not require grad and does not have a grad_fn"
                )));
            }
        }
    }
    let wanted = Inputs::of(&inputs, accumulate)?;
    if accumulate && create_graph {
        warn_of_cycle(py)?;
    }
    let chosen = (!accumulate || !inputs.is_empty()).then_some(wanted.edges.as_slice());
    let request = Request { roots, keep_graph, create_graph, inputs: chosen, accumulate };
    // SAFETY: the interpreter lock is held here and where the frame is dropped; the engine reads within the frame.
    let _frame = unsafe { Frame::enter() };
    let captured = py.detach(|| autograd::run(request))?;
    if accumulate {
        return Ok(py.None().into_bound(py));
    }
    let one = |(i, place): (usize, Option<usize>)| match place.and_then(|p| captured[p].clone()) {
        Some(g) => wrap_bound(py, g),
        None if allow_unused => Ok(py.None().into_bound(py)),
        None => Err(raised::<PyRuntimeError>(format!(
            "The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
        ))),
    };
    let results = wanted.places.into_iter().enumerate().map(one).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, results)?.into_any())
}

/// The `inputs=` of a backward call.
struct Inputs {
    edges: Vec<Edge>,
    /// The index of each input's edge; `None` for a view created without recording, which no graph leads to.
    places: Vec<Option<usize>>,
}

impl Inputs {
    fn of(inputs: &[Bound<PyAny>], accumulate: bool) -> PyResult<Inputs> {
        let (mut edges, mut places) = (Vec::new(), Vec::new());
        for input in inputs {
            let edge = edge_like(input)?;
            let tensor = borrow(input.as_ptr());
            if edge.is_none() && !tensor.is_some_and(Tensor::requires_grad) {
                return Err(raised::<PyRuntimeError>("One of the differentiated Tensors does not require grad"));
            }
            if let Some(t) = tensor.filter(|_| accumulate) {
                hooks::retain_grad(t)?;
            }
            places.push(edge.is_some().then_some(edges.len()));
            edges.extend(edge);
        }
        Ok(Inputs { edges, places })
    }
}
