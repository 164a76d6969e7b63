//! Captures and plans as Python objects: `rustgrad.compiler` records a call, describes what the function read, and gets
//! an object that runs in the function's place as long as all of that is as it was.

use super::arguments::{Arguments, Found, Given, Key};
use super::convert::type_name;
use super::error::{PyResult, raised};
use super::guards::{Guards, Reach};
use super::lent::{self, Lender, Returned};
use super::object::{borrow, wrap_bound};
use super::result_tree::Tree;
use super::values::is_left_out;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, intern};
use rustgrad::compile::{Failure, Number, Numbers, Passes, Plan, Ran, Recorder, Slot, Variant};
use rustgrad::op::tracer::{self, Tracer, install};
use rustgrad::rt::retire::Frame;
use rustgrad::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Runs that took longer than this, in nanoseconds, release the interpreter lock the next time.
const RELEASE_LOCK_FROM: u64 = 200_000;

/// A call that was watched, until `_plan` makes a plan of it.
#[pyclass(name = "_Recording", module = "rustgrad._C", unsendable)]
pub struct PyRecording(RefCell<Option<(Recorder, Returned)>>);

/// Puts the tracer of this thread back.
struct Installed(Option<Rc<dyn Tracer>>);

impl PyRecording {
    /// The recorder, once, with the numbers that were lent.
    pub fn take(&self) -> Option<(Recorder, Returned)> {
        self.0.take()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        install(self.0.take());
    }
}

fn tensors(list: &[Bound<PyAny>]) -> PyResult<Vec<Tensor>> {
    let one = |o: &Bound<PyAny>| {
        let t = borrow(o.as_ptr()).cloned();
        t.ok_or_else(|| raised::<PyTypeError>(format!("expected a tensor, got {}", type_name(o))))
    };
    list.iter().map(one).collect()
}

/// Calls `function` under a recorder. `inputs` are the tensors of the arguments, `outside` the others that it can reach,
/// `numbers` the places of arguments that may be other numbers in each call. Without them none is, and nothing may be read.
#[pyfunction]
pub fn _compile_record<'py>(
    py: Python<'py>,
    inputs: Vec<Bound<'py, PyAny>>,
    outside: Vec<Bound<'py, PyAny>>,
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    numbers: Option<Vec<Key>>,
) -> PyResult<(Bound<'py, PyAny>, Py<PyRecording>)> {
    let recorder = Rc::new(Recorder::new(&tensors(&inputs)?, &tensors(&outside)?));
    let (result, returned) = {
        let lender = numbers.is_some().then(|| Lender::new(&recorder));
        let (args, kwargs) = with_lent(args, kwargs, &numbers.unwrap_or_default())?;
        let result = {
            let _installed = Installed(install(Some(recorder.clone())));
            function.call(&args, Some(&kwargs))?
        };
        (result, lender.map_or_else(Returned::default, |l| l.end(py)))
    };
    let recorder =
        Rc::try_unwrap(recorder).map_err(|_| raised::<PyRuntimeError>("compile: the call is still traced"))?;
    Ok((result, Py::new(py, PyRecording(RefCell::new(Some((recorder, returned)))))?))
}

/// The arguments of a call with the numbers at these places lent.
fn with_lent<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    keys: &[Key],
) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let (mut given, named) = (args.iter().collect::<Vec<_>>(), kwargs.copy()?);
    for (i, key) in keys.iter().enumerate() {
        match key {
            Key::Position(at) => given[*at] = lent::lend(&args.get_item(*at)?, Number::Argument(i))?,
            Key::Name(name) => {
                let value =
                    kwargs.get_item(name)?.ok_or_else(|| raised::<PyTypeError>("expected the name of an argument"))?;
                named.set_item(name, lent::lend(&value, Number::Argument(i))?)?;
            }
        }
    }
    Ok((PyTuple::new(args.py(), given)?, named))
}

/// The tensors of arguments, in the order in which plans number them.
#[pyfunction]
pub fn _compile_inputs<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (_, tensors) = Arguments::of(args, kwargs, Given::default())?;
    tensors.into_iter().map(|t| wrap_bound(args.py(), t)).collect()
}

/// A number that a plan reads anew in each call: an entry of a dict, or a part of it.
struct Entry {
    slot: Slot,
    dict: Py<PyDict>,
    key: Py<PyAny>,
    /// Its position, where the entry is a tuple.
    index: Option<usize>,
    recorded: f64,
}

struct Parts {
    plan: Plan,
    guards: Guards,
    result: Tree,
    entries: Vec<Entry>,
    /// The places of arguments whose numbers may be others.
    keys: Vec<Key>,
}

/// A plan with its guards. Called, it returns the result, or itself where a guard misses.
#[pyclass(name = "_Plan", module = "rustgrad._C", frozen)]
pub struct PyPlan {
    parts: Mutex<Option<std::sync::Arc<Parts>>>,
    hits: AtomicU64,
    /// How long the last run took, in nanoseconds.
    took: AtomicU64,
}

/// The plan of a recording, or a text that says why there is none.
///
/// `result` is what the call returned; `reach` is what the function read, as guards; `groups` are the param groups of
/// optimizers with the entries that may change, and `without` the guards that leave those open; `passes` are all, or those
/// of these names; `keys` are the places of the numbers that were lent.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // what a call is, and what was found about it
pub fn _compile_plan<'py>(
    py: Python<'py>,
    recording: &Bound<'py, PyRecording>,
    result: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    reach: &Bound<'py, PyList>,
    without: &Bound<'py, PyList>,
    groups: Vec<Group<'py>>,
    passes: Option<Vec<String>>,
    keys: Vec<Key>,
) -> PyResult<Bound<'py, PyAny>> {
    let passes = chosen(passes)?;
    let text = |s: String| Ok(PyString::new(py, &s).into_any());
    let Some((recorder, lent)) = recording.borrow().take() else {
        return Err(raised::<PyRuntimeError>("compile: the recording has been used"));
    };
    let mut outputs = Vec::new();
    let tree = match Tree::of(result, &lent, &mut outputs) {
        Ok(tree) => tree,
        Err(problem) => return text(problem),
    };
    if lent.is_lost() {
        return text("it reads the values of a tensor".into());
    }
    let mut recorded = match recorder.finish(&outputs) {
        Ok(recorded) => recorded,
        Err(problem) => return text(problem),
    };
    drop(outputs);
    let fixed = recorded.fixed.drain(..).chain(lent.learned.fixed).collect::<Vec<_>>();
    if fixed.iter().any(|n| !n.is_given()) {
        return text("it reads the values of a tensor".into());
    }
    let mut questions = lent.learned.questions;
    for asked in recorded.questions.drain(..) {
        if !questions.contains(&asked) {
            questions.push(asked);
        }
    }
    let plan = recorded.into_plan(passes);
    let mut computed = plan.numbers();
    tree.numbers(&mut |n| computed.push(n.clone()));
    let given = Given { keys: &keys, fixed: &fixed, questions, computed };
    let (arguments, inputs) = Arguments::of(args, kwargs, given)?;
    let entries = entries(&plan, &groups)?;
    let reach = match Reach::of(if entries.is_some() { without } else { reach })? {
        Ok(reach) => reach,
        Err(problem) => return text(problem),
    };
    let guards = match Guards::new(arguments, &inputs, reach, &plan) {
        Ok(guards) => guards,
        Err(problem) => return text(problem),
    };
    let parts = Parts { plan, guards, result: tree, entries: entries.unwrap_or_default(), keys };
    let made = PyPlan {
        parts: Mutex::new(Some(std::sync::Arc::new(parts))),
        hits: AtomicU64::new(0),
        took: AtomicU64::new(0),
    };
    Ok(Bound::new(py, made)?.into_any())
}

/// The passes of these names; all where none are given.
fn chosen(names: Option<Vec<String>>) -> PyResult<Passes> {
    let Some(names) = names else { return Ok(Passes::ALL) };
    let mut passes = Passes::NONE;
    match names.iter().find(|name| !passes.add(name)) {
        None => Ok(passes),
        Some(name) => {
            let known = Passes::NAMES.join(", ");
            Err(raised::<PyValueError>(format!("compile: unknown pass '{name}'; expected some of {known}")))
        }
    }
}

/// The names of the passes.
#[pyfunction]
pub fn _compile_passes() -> Vec<&'static str> {
    Passes::NAMES.to_vec()
}

/// A param group with the arguments of ops that its entries become: the argument, the key, and the position in a tuple.
type Group<'py> = (Bound<'py, PyDict>, Vec<(String, Bound<'py, PyAny>, Option<usize>)>);

/// The entries of param groups that the steps of optimizers take as numbers; `None` unless each entry has such a step, and
/// each learning rate a group.
fn entries(plan: &Plan, groups: &[Group]) -> PyResult<Option<Vec<Entry>>> {
    let mut numbers = Vec::new();
    let mut rates = 0;
    for (group, entries) in groups {
        let Some(params) = group.get_item(intern!(group.py(), "params"))? else { return Ok(None) };
        let params: Vec<_> = params.try_iter()?.collect::<pyo3::PyResult<_>>()?;
        for (argument, key, index) in entries {
            let of_group = |first: &Tensor| params.iter().any(|o| borrow(o.as_ptr()).is_some_and(|t| t.same(first)));
            let before = numbers.len();
            for (slot, recorded, _) in plan.slots(argument).into_iter().filter(|(.., first)| of_group(first)) {
                let number =
                    Entry { slot, dict: group.clone().unbind(), key: key.clone().unbind(), index: *index, recorded };
                if number.now(group.py())?.map(f64::to_bits) != Some(recorded.to_bits()) {
                    return Ok(None);
                }
                numbers.push(number);
            }
            if numbers.len() == before {
                return Ok(None);
            }
            rates += if argument == "lr" { numbers.len() - before } else { 0 };
        }
    }
    numbers.sort_by_key(|n| n.slot.step);
    Ok((rates == plan.slots("lr").len() && !numbers.is_empty()).then_some(numbers))
}

impl Entry {
    /// The number in the dict; `None` where it is no float, or is zero where it was not: Python code may ask for that.
    fn now(&self, py: Python) -> PyResult<Option<f64>> {
        let Some(mut value) = self.dict.bind(py).get_item(&self.key)? else { return Ok(None) };
        if let Some(i) = self.index {
            let Ok(items) = value.cast_exact::<PyTuple>() else { return Ok(None) };
            let Ok(item) = items.get_item(i) else { return Ok(None) };
            value = item;
        }
        let number = value.cast_exact::<PyFloat>().ok().map(|v| v.value());
        Ok(number.filter(|n| (*n == 0.0) == (self.recorded == 0.0) || is_left_out("slots")))
    }
}

impl PyPlan {
    fn parts(&self) -> Option<std::sync::Arc<Parts>> {
        self.parts.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Parts {
    fn open(&self) -> Vec<Slot> {
        self.entries.iter().map(|n| n.slot).collect()
    }
    /// What the slots are now; `None` where one does not fit.
    fn slots(&self, py: Python) -> PyResult<Option<Vec<(Slot, f64)>>> {
        let mut now = Vec::with_capacity(self.entries.len());
        for n in &self.entries {
            match n.now(py)? {
                Some(number) => now.push((n.slot, number)),
                None => return Ok(None),
            }
        }
        Ok(Some(now))
    }
}

#[pymethods]
impl PyPlan {
    fn __call__<'py>(
        slf: &Bound<'py, PyPlan>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let miss = || Ok(slf.clone().into_any());
        if tracer::enabled() {
            return miss();
        }
        let Some(parts) = this.parts() else { return miss() };
        let mut found = Found::default();
        if !parts.guards.hold(args, kwargs, &mut found)? {
            return miss();
        }
        let Found { tensors: inputs, numbers } = found;
        let Some(slots) = parts.slots(py)? else { return miss() };
        // SAFETY: the interpreter lock is held here and where the frame is dropped.
        let _frame = unsafe { Frame::enter() };
        // Looking at the clock takes longer than a short step: one run in eight is timed.
        let timed = this.hits.load(Ordering::Relaxed).is_multiple_of(8);
        let start = timed.then(Instant::now);
        let run = match this.took.load(Ordering::Relaxed) > RELEASE_LOCK_FROM {
            true => {
                // Other threads may run meanwhile: what the steps read keeps its form until they are done. It is let go
                // before the lock is taken again, which a thread that waits for a tensor may hold.
                let pinned: Vec<_> = inputs.iter().chain(parts.plan.outside()).map(Tensor::pin).collect();
                py.detach(|| {
                    let run = parts.plan.run(&inputs, &slots, &numbers);
                    drop(pinned);
                    run
                })
            }
            false => parts.plan.run(&inputs, &slots, &numbers),
        };
        if let Some(start) = start {
            this.took.store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        match run {
            Ok(Ran { tensors, reads }) => {
                this.hits.fetch_add(1, Ordering::Relaxed);
                parts.result.build(py, &tensors, Numbers { arguments: &numbers, reads: &reads })
            }
            Err(Failure::Before(_)) => miss(),
            Err(Failure::After(e)) => Err(e.into()),
        }
    }
    /// Which guard misses for these arguments, as text; None where the plan would run.
    fn missed(&self, args: &Bound<PyTuple>, kwargs: &Bound<PyDict>) -> PyResult<Option<String>> {
        self.parts().map_or(Ok(Some("the plan was dropped".into())), |p| p.guards.missed(args, kwargs))
    }
    /// How often the plan has run.
    #[getter]
    fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
    /// What runs, as text, without the numbers that are read anew.
    fn listing(&self) -> String {
        self.parts().map_or(String::new(), |p| p.plan.listing(&p.open()))
    }
    /// The steps as they were recorded, as text, without the numbers that are read anew.
    fn recorded(&self) -> String {
        self.parts().map_or(String::new(), |p| p.plan.recorded(&p.open()))
    }
    /// What the function asked of its numbers and was told, as text: equal for calls that went the same way.
    fn asked(&self) -> Vec<String> {
        self.parts().map_or(Vec::new(), |p| p.guards.asked())
    }
    /// The places of arguments whose numbers have to stay what they were.
    fn fixed<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(parts) = self.parts() else { return Ok(Vec::new()) };
        parts.guards.fixed().map(|i| parts.keys[i].object(py)).collect()
    }
    /// The names of the ops of the steps; of those that run as one, `fused(add, mul)`.
    fn steps(&self) -> Vec<String> {
        self.parts().map_or(Vec::new(), |p| p.plan.ops())
    }
    /// The guards as lines of text.
    fn guards(&self, py: Python) -> Vec<String> {
        self.parts().map_or(Vec::new(), |p| p.guards.describe(py))
    }
    /// Whether the steps compute gradients themselves, so that nothing is recorded.
    fn is_closed(&self) -> bool {
        self.parts().is_some_and(|p| p.plan.variant() == Variant::Unrecorded)
    }
    /// The tensors from outside.
    fn outside<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(parts) = self.parts() else { return Ok(Vec::new()) };
        parts.plan.outside().map(|t| wrap_bound(py, t.clone())).collect()
    }
    fn __traverse__(&self, visit: PyVisit) -> Result<(), PyTraverseError> {
        let Some(parts) = self.parts.try_lock().ok().and_then(|p| p.clone()) else { return Ok(()) };
        // While a call runs, it owns the parts too, and they are not garbage.
        if std::sync::Arc::strong_count(&parts) > 2 {
            return Ok(());
        }
        parts.result.visit(&visit)?;
        parts.entries.iter().try_for_each(|n| visit.call(&n.dict).and_then(|()| visit.call(&n.key)))?;
        parts.guards.visit(&visit)
    }
    fn __clear__(&self) {
        let old = self.parts.lock().unwrap_or_else(|e| e.into_inner()).take();
        drop(old);
    }
}
