//! Python code in the graph: custom functions and saved-tensor hooks. Each acquires the interpreter lock when called.

use super::error::{PyResult, raised};
use super::graph::with_python;
use super::hooks::objects;
use super::object::{Handle, borrow, wrap_bound};
use super::owned_objects;
use super::owned_objects::Held;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use rustgrad::autograd::foreign_refs;
use rustgrad::autograd::foreign_refs::Owned;
use rustgrad::autograd::forward;
use rustgrad::autograd::node::{self, Edges, Work};
use rustgrad::autograd::saved::{Saved, SavedHooks, Unpacks};
use rustgrad::autograd::{self, Custom, Node, history};
use rustgrad::error::Result;
use rustgrad::op::gradient::TensorMeta;
use rustgrad::op::tracer;
use rustgrad::ops::create::full::ZEROS;
use rustgrad::rt::counters;
use rustgrad::rt::counters::Count;
use rustgrad::rt::thread_state::thread_state;
use rustgrad::tensor::slot::Creation;
use rustgrad::tensor::{Foreign, LEAF_GRAD, Tensor, Visit};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The result of `pack_hook`.
struct Packed {
    object: Held<PyAny>,
    unpack: Arc<Held<PyAny>>,
}

impl Unpacks for Packed {
    fn unpack(&self) -> Result<Tensor> {
        with_python(|py| {
            let r = self.unpack.bind(py).call1((self.object.bind(py),))?;
            borrow(r.as_ptr()).cloned().ok_or_else(|| {
                raised::<PyTypeError>(format!(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                    super::convert::type_name(&r)
                ))
            })
        })
    }
    fn owned(&self, visit: &mut Visit) {
        self.object.owned(visit);
    }
}

/// Saved-tensor hooks, which store a saved tensor as any Python object.
pub fn saved_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) -> SavedHooks {
    let (pack, unpack) = (Held::in_graph(pack), Arc::new(Held::in_graph(unpack)));
    Arc::new(move |t| {
        let object = with_python(|py| Ok(pack.bind(py).call1((wrap_bound(py, t.clone())?,))?.unbind()))?;
        Ok(Arc::new(Packed { object: Held::in_graph(object), unpack: unpack.clone() }))
    })
}

/// The node's part of a custom function: its context and saved tensors.
pub struct PyFunction {
    context: Held<PyAny>,
    saved: Arc<SavedList>,
    /// The argument position of each edge, since backward returns a gradient for every argument.
    arguments: SmallVec<[usize; 4]>,
    /// How many arguments there were.
    given: usize,
    outputs: SmallVec<[Output; 1]>,
}

/// What an output of a custom function is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    NoTensor,
    Constant,
    Differentiable,
}

impl PyFunction {
    pub fn context(&self) -> &Py<PyAny> {
        &self.context
    }
    /// The gradients of the outputs, of which those that are undefined become zeros, unless the context has that turned off.
    fn materialised<'g>(
        &self,
        py: Python,
        node: &Node,
        grads: &'g [Option<Tensor>],
    ) -> PyResult<Cow<'g, [Option<Tensor>]>> {
        let undefined = |i: usize| grads[i].is_none() && self.outputs[i] != Output::NoTensor;
        if !(0..grads.len()).any(undefined) {
            return Ok(grads.into());
        }
        let mut all = grads.to_vec();
        let is_set = |name| self.context.bind(py).getattr(name)?.is_truthy();
        let (wanted, constants) = (is_set("materialize_grads")?, is_set("_materialize_non_diff_grads")?);
        for i in (0..grads.len()).filter(|&i| undefined(i)) {
            if wanted && (constants || self.outputs[i] != Output::Constant) {
                let m = &node.outputs[i];
                all[i] = Some(ZEROS.call((m.shape.as_slice(), m.dtype, m.device)).ok()?);
            }
        }
        Ok(all.into())
    }
    /// The gradient of each edge among what backward returned for the arguments.
    fn gradients(&self, node: &Node, returned: &Bound<PyAny>) -> PyResult<Vec<Option<Tensor>>> {
        let all: SmallVec<[Bound<PyAny>; 4]> =
            match returned.is_instance_of::<PyTuple>() || returned.is_instance_of::<PyList>() {
                true => returned.try_iter()?.collect::<pyo3::PyResult<_>>()?,
                false => smallvec![returned.clone()],
            };
        let (count, name) = (self.given, node.name());
        if all.len() < count || all[count..].iter().any(|extra| !extra.is_none()) {
            let text = format!(
                "function {name} returned an incorrect number of gradients (expected {count}, got {})",
                all.len()
            );
            return Err(raised::<PyRuntimeError>(text));
        }
        let mut places = self.arguments.iter().peekable();
        let mut found = Vec::with_capacity(self.arguments.len());
        for (i, o) in all[..count].iter().enumerate() {
            let grad = borrow(o.as_ptr()).cloned();
            if grad.is_none() && !o.is_none() {
                let text = format!("expected Variable or None (got {})", super::convert::type_name(o));
                return Err(raised::<PyRuntimeError>(text));
            }
            match (places.next_if_eq(&&i), &grad) {
                (Some(_), _) => found.push(grad),
                (None, None) => {}
                (None, Some(_)) => {
                    return Err(raised::<PyRuntimeError>(format!(
                        "function {name} returned a gradient different than None at position {}, but the corresponding \
                         forward input was not a Variable",
                        i + 1
                    )));
                }
            }
        }
        Ok(found)
    }
}

/// The saved tensors of a context, freed with the graph.
pub struct SavedList {
    items: Mutex<Option<Vec<Option<Saved>>>>,
    node: Mutex<Weak<Node>>,
}

impl SavedList {
    fn node(&self) -> Result<Arc<Node>> {
        self.node.lock().unwrap_or_else(|e| e.into_inner()).upgrade().ok_or_else(node::freed)
    }
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Option<Saved>>>> {
        self.items.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Unlocked, since unpacking may run Python.
    pub fn unpack(&self) -> Result<Vec<Option<Tensor>>> {
        let node = self.node()?;
        let items = self.lock().clone().ok_or_else(node::freed)?;
        let unpacked = |s: Saved| {
            let output = if let Saved::Output { output, .. } = &s { Some(*output) } else { None };
            let t = s.unpack(&node, &node.outputs)?;
            output.into_iter().for_each(|i| node.restore_tangents(i, &t));
            Ok(t)
        };
        items.into_iter().map(|s| s.map(unpacked).transpose()).collect()
    }
    /// Packs an item by hooks. `None`: it is not a tensor.
    pub fn repack(&self, i: usize, hooks: &SavedHooks) -> Result<Option<()>> {
        let node = self.node()?;
        let item = self.lock().as_ref().ok_or_else(autograd::saved::freed_hooks)?[i].clone();
        let Some(mut item) = item else { return Ok(None) };
        item.repack(hooks, &node.outputs)?;
        let old = self.lock().as_mut().and_then(|items| items[i].replace(item));
        drop(old);
        Ok(Some(()))
    }
}

impl Custom for PyFunction {
    fn apply(&self, node: &Arc<Node>, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        with_python(|py| {
            let grads = objects(py, &self.materialised(py, node, grads)?)?;
            let returned = self.context.bind(py).call_method1(intern!(py, "_run_backward"), (grads,))?;
            self.gradients(node, &returned)
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

/// The value behind `ctx.saved_tensors`: the saved tensors, checked against their versions.
#[pyclass(frozen)]
pub struct SavedTensors(Arc<SavedList>);

#[pymethods]
impl SavedTensors {
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        objects(py, &self.0.unpack()?)
    }
    /// The saved tensors before unpacking.
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = self.0.lock().as_ref().map(Vec::len);
        let all = (0..count.ok_or_else(node::freed)?).map(|i| super::saved::SavedTensor::listed(&self.0, i));
        Ok(PyTuple::new(py, all.map(|s| Bound::new(py, s)).collect::<pyo3::PyResult<Vec<_>>>()?)?)
    }
    /// While the node lives, it owns the list and reports it.
    fn __traverse__(&self, visit: PyVisit) -> std::result::Result<(), PyTraverseError> {
        let items = self.0.items.try_lock().ok().filter(|_| Arc::strong_count(&self.0) == 1);
        let Some(items) = items else { return Ok(()) };
        owned_objects::show_to(&visit, |visit| foreign_refs::of_saved(items.iter().flatten().flatten(), visit))
    }
    fn __clear__(&self) {
        if Arc::strong_count(&self.0) == 1 {
            let old = self.0.lock().take();
            drop(old);
        }
    }
}

/// The tensors attached to a node whose differentiation raises this message.
#[pyfunction]
pub fn _delayed_error(message: String, tensors: Vec<Option<Handle>>) -> PyResult<Vec<Option<Handle>>> {
    let mut edges = Edges::new();
    for t in &tensors {
        let leaf = t.as_ref().map(|t| t.0.detach()).filter(|t| t.dtype().is_differentiable());
        if let Some(leaf) = &leaf {
            leaf.set_flag(LEAF_GRAD, true);
        }
        edges.push(leaf.map(|leaf| history::grad_edge(&leaf)).transpose()?.flatten());
    }
    let metas = tensors.iter().map(|t| t.as_ref().map_or_else(none_facts, |t| TensorMeta::of(&t.0))).collect();
    let node = Node::new("Error", Work::Fails(message), edges, metas);
    let tied = |(i, t): (usize, Option<Handle>)| {
        let out = t?.0.detach();
        if node.edges[i].is_some() {
            history::set_history(&out, &node, i);
        }
        Some(Handle(out))
    };
    Ok(tensors.into_iter().enumerate().map(tied).collect())
}

/// The declarations that a custom function made in its call.
struct Applied<'a, 'py> {
    args: &'a Bound<'py, PyTuple>,
    outputs: &'a Bound<'py, PyTuple>,
    dirty: &'a Bound<'py, PyTuple>,
    non_differentiable: &'a Bound<'py, PyTuple>,
}

fn among<'py>(list: &Bound<'py, PyTuple>, o: &Bound<'py, PyAny>) -> bool {
    list.iter().any(|x| x.is(o))
}

impl<'py> Applied<'_, 'py> {
    fn is_dirty(&self, o: &Bound<'py, PyAny>) -> bool {
        among(self.dirty, o)
    }
    fn is_differentiable(&self, o: &Bound<'py, PyAny>, t: &Tensor) -> bool {
        !among(self.non_differentiable, o) && t.dtype().is_differentiable()
    }
    /// Checks that the function may have written to a tensor it marked dirty, and marked no others.
    fn check_dirty(&self, t: &Tensor, o: &Bound<'py, PyAny>) -> PyResult<()> {
        history::check_writable(t)?;
        if t.is_leaf() && t.requires_grad() {
            return Err(raised::<PyRuntimeError>(
                "a leaf Variable that requires grad has been used in an in-place operation.",
            ));
        }
        if !among(self.args, o) {
            rustgrad::autograd::diagnostics::warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should \
                 be passed to ctx.mark_dirty().",
            )?;
        }
        if t.view_info().is_some() && self.outputs.len() > 1 {
            return Err(raised::<PyRuntimeError>(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return \
                 more than one Tensor. This is not supported by the current autograd engine. You should either make sure the \
                 input is not a view (using .clone() for example) or make your Function only return one Tensor (potentially \
                 splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that \
                 does the other operations).",
            ));
        }
        let _recording = autograd::GradGuard::new(true);
        Ok(history::check_inplace(t, true)?)
    }
    /// The output returned to the caller, whose history is still to be set; an input that is returned unchanged becomes
    /// another view of the same memory.
    fn given(&self, py: Python<'py>, o: &Bound<'py, PyAny>, t: &Tensor, recorded: bool) -> PyResult<Bound<'py, PyAny>> {
        let is_input = among(self.args, o);
        if recorded {
            return if is_input && !self.is_dirty(o) { fresh_view(o) } else { Ok(o.clone()) };
        }
        match (t.requires_grad(), is_input) {
            (false, true) if !self.is_dirty(o) => fresh_view(o),
            (true, true) => wrap_bound(py, t.detach()),
            (true, false) if t.view_info().is_none() => {
                super::graph::cut_off(t);
                Ok(o.clone())
            }
            _ => Ok(o.clone()),
        }
    }
    /// The outputs returned to the caller, each with its tensor if it is to have a history.
    fn results(&self, py: Python<'py>, recorded: bool) -> PyResult<Vec<Given<'py>>> {
        let mut results = Vec::new();
        for o in self.outputs.iter() {
            let Some(t) = borrow(o.as_ptr()) else {
                results.push((o, None));
                continue;
            };
            let (is_dirty, kept) = (self.is_dirty(&o), recorded && self.is_differentiable(&o, t));
            if is_dirty && kept {
                self.check_dirty(t, &o)?;
            }
            if is_dirty {
                // It may have been written without an op.
                t.storage().bump();
            }
            let out = self.given(py, &o, t, kept)?;
            let tensor = borrow(out.as_ptr()).cloned();
            if let Some(v) = tensor.as_ref().and_then(Tensor::view_info).filter(|_| !(is_dirty && among(self.args, &o)))
            {
                v.creation.store(Creation::Custom as u8, Ordering::Release);
            }
            results.push((out, tensor.filter(|_| kept)));
        }
        if results.iter().filter(|(_, kept)| kept.is_some()).count() > 1 {
            let views = results.iter().filter_map(|(o, _)| borrow(o.as_ptr())?.view_info());
            views.for_each(|v| v.creation.store(Creation::MultiOutput as u8, Ordering::Release));
        }
        Ok(results)
    }
}

/// Begins a call of a custom function, which runs without recording and without forward mode: which arguments need a gradient,
/// and the modes that `_function_end` gives back.
#[pyfunction]
pub fn _function_begin<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyTuple>, (bool, bool))> {
    let recorded = autograd::grad_enabled();
    let needs = args.iter().map(|a| recorded && borrow(a.as_ptr()).is_some_and(Tensor::requires_grad));
    let needs = PyTuple::new(py, needs)?;
    Ok((needs, (autograd::set_grad_enabled(false), forward::set_enabled(false))))
}
#[pyfunction]
pub fn _function_end(modes: (bool, bool)) {
    autograd::set_grad_enabled(modes.0);
    forward::set_enabled(modes.1);
}

type Given<'py> = (Bound<'py, PyAny>, Option<Tensor>);

/// Gives the outputs of a custom function one node, if `ctx` requires it. Returns the outputs and the saved tensors.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn _function_apply<'py>(
    py: Python<'py>,
    ctx: Option<Py<PyAny>>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    outputs: &Bound<'py, PyTuple>,
    dirty: &Bound<'py, PyTuple>,
    non_differentiable: &Bound<'py, PyTuple>,
    to_save: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyTuple>, Option<SavedTensors>)> {
    let call = Applied { args, outputs, dirty, non_differentiable };
    tracer::notify(|t| t.function_applied(name, &tensors_in(args), &tensors_in(outputs)));
    let given = |results: Vec<Given<'py>>| PyTuple::new(py, results.into_iter().map(|(o, _)| o));
    let Some(ctx) = ctx else { return Ok((given(call.results(py, false)?)?, None)) };
    let (edges, arguments) = edges(args)?;
    // Before the node is created, so that an error leaves nothing half done.
    let results = call.results(py, true)?;
    let metas = results.iter().map(|(o, _)| borrow(o.as_ptr()).map_or_else(none_facts, TensorMeta::of)).collect();
    let saved = Arc::new(SavedList { items: Mutex::new(None), node: Mutex::new(Weak::new()) });
    let output_of = |(o, kept): &Given| match (kept, borrow(o.as_ptr())) {
        (Some(_), _) => Output::Differentiable,
        (None, Some(_)) => Output::Constant,
        (None, None) => Output::NoTensor,
    };
    let function = PyFunction {
        context: Held::in_graph(ctx),
        saved: saved.clone(),
        arguments,
        given: args.len(),
        outputs: results.iter().map(output_of).collect(),
    };
    let work = Work::Custom(Box::new(function));
    let node = Node::new(name.to_string(), work, edges, metas);
    *saved.node.lock().unwrap_or_else(|e| e.into_inner()) = Arc::downgrade(&node);
    // An input that was returned unchanged is not the output: that is a view of it. An output without a history is saved as it is.
    let output = |s: &Bound<'py, PyAny>| results.iter().position(|(o, kept)| kept.is_some() && o.is(s));
    let input =
        |s: &Bound<'py, PyAny>| borrow(s.as_ptr()).filter(|_| output(s).is_none()).map(Saved::input).transpose();
    let mut items = to_save.iter().map(|s| input(&s)).collect::<Result<Vec<_>>>()?;
    for (i, (o, t)) in results.iter().enumerate() {
        match t {
            Some(t) if call.is_dirty(o) && t.view_info().is_some() => history::rebase(t, &node)?,
            Some(t) => history::set_history(t, &node, i),
            None => {}
        }
    }
    // Outputs are saved with their history, which hooks see.
    for (s, item) in to_save.iter().zip(&mut items) {
        if let (Some(i), Some(t)) = (output(&s), borrow(s.as_ptr())) {
            *item = Some(Saved::output(t, i)?);
        }
    }
    *saved.lock() = Some(items);
    results.iter().for_each(|(o, _)| owned_objects::track_object(o)); // the context may own them
    Ok((given(results)?, Some(SavedTensors(saved))))
}

fn tensors_in(list: &Bound<PyTuple>) -> Vec<Tensor> {
    list.iter().filter_map(|o| borrow(o.as_ptr()).cloned()).collect()
}

/// One edge for each tensor argument, and the positions of those arguments.
fn edges(args: &Bound<PyTuple>) -> PyResult<(Edges, SmallVec<[usize; 4]>)> {
    let (mut edges, mut positions) = (Edges::new(), SmallVec::new());
    for (i, a) in args.iter().enumerate() {
        if let Some(t) = borrow(a.as_ptr()) {
            thread_state(|thread| history::push_edge(thread, t, &mut edges))?;
            positions.push(i);
        }
    }
    Ok((edges, positions))
}

/// An input returned unchanged becomes a view of itself, of the same class, with its own history.
fn fresh_view<'py>(input: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let _unrecorded = autograd::GradGuard::new(false);
    Ok(input.call_method1("view_as", (input,))?)
}

fn none_facts() -> TensorMeta {
    TensorMeta {
        shape: Default::default(),
        dtype: rustgrad::dtype::DType::F32,
        device: Default::default(),
        column_major: false,
    }
}

/// Live storages and nodes, for leak tests.
#[pyfunction]
pub fn live_counts() -> (usize, usize) {
    (counters::sum(Count::Storages), counters::sum(Count::Nodes))
}

/// The `AccumulateGrad` of a leaf, or the `grad_fn` of another tensor, with the output number.
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
