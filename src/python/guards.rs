//! The guards of a plan: the arguments, the modes, the tensors from outside, and what the function read of Python.
//!
//! They are checked before each run, in this order; the first that misses sends the call on to the next plan, or to the
//! function itself. What a dict holds is compared again only if the dict has changed since.

use super::arguments::{Arguments, Found};
use super::convert::type_name;
use super::dict_changes::Changes;
use super::error::{PyResult, raised};
use super::values::{is_left_out, same_key, same_value};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use rustgrad::autograd::{self, mode};
use rustgrad::compile::{Plan, Source};
use rustgrad::device::Device;
use rustgrad::dispatch::autocast;
use rustgrad::dtype::{DType, default_dtype};
use rustgrad::layout::Layout;
use rustgrad::rt::thread_state::thread_state;
use rustgrad::tensor::{HAS_FN, INFERENCE, LEAF_GRAD, Meta, Tensor};
use std::collections::HashMap;

/// What an entry has to be.
enum Expect {
    /// This object.
    Is(Py<PyAny>),
    /// This object or an equal one of its type.
    Equal(Py<PyAny>),
    /// Anything.
    Present,
    Absent,
}

impl Expect {
    fn of(kind: &str, value: &Bound<PyAny>) -> PyResult<Expect> {
        Ok(match kind {
            "is" => Expect::Is(value.clone().unbind()),
            "equal" => Expect::Equal(value.clone().unbind()),
            "present" => Expect::Present,
            "absent" => Expect::Absent,
            _ => return Err(raised::<PyTypeError>(format!("_compile_plan: unknown guard '{kind}'"))),
        })
    }
    fn holds(&self, py: Python, found: Option<&Bound<PyAny>>) -> PyResult<bool> {
        Ok(match (self, found) {
            (Expect::Absent, found) => found.is_none(),
            (_, None) => false,
            (Expect::Present, _) => true,
            (Expect::Is(o), Some(f)) => f.is(o),
            (Expect::Equal(o), Some(f)) => f.is(o) || same_value(o.bind(py), f)?,
        })
    }
    fn visit(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        match self {
            Expect::Is(o) | Expect::Equal(o) => visit.call(o),
            _ => Ok(()),
        }
    }
    fn text(&self, py: Python) -> String {
        match self {
            Expect::Is(o) => format!("is the same {}", type_name(o.bind(py))),
            Expect::Equal(o) => format!("== {}", o.bind(py).repr().map_or("?".into(), |r| r.to_string())),
            Expect::Present => "is there".into(),
            Expect::Absent => "is not there".into(),
        }
    }
}

/// The number of a class's state, which changes with each of its attributes and those of its bases; 0 if it has none.
fn type_version(class: &Bound<PyType>) -> u32 {
    // From 3.13 on a number that is not zero is valid; before, a flag says so.
    static FLAGGED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let flagged = *FLAGGED.get_or_init(|| class.py().version_info() < (3, 13));
    // SAFETY: a live class; the lock is held.
    unsafe {
        let t = class.as_type_ptr();
        if flagged && ffi::PyType_GetFlags(t) & ffi::Py_TPFLAGS_VALID_VERSION_TAG == 0 {
            0
        } else {
            (*t).tp_version_tag
        }
    }
}

/// `type_version` after a lookup, which numbers the class if it has no number. A name that `type` defines as a data
/// descriptor would not be looked up in the class.
fn new_type_version(class: &Bound<PyType>) -> PyResult<u32> {
    class.getattr_opt(pyo3::intern!(class.py(), "__init__"))?;
    Ok(type_version(class))
}

enum Check {
    Dict { dict: Py<PyDict>, size: Option<usize>, entries: Vec<(Py<PyAny>, Expect)>, changes: Changes },
    List { list: Py<PyList>, items: Vec<Expect> },
    Attribute { object: Py<PyAny>, name: Py<PyAny>, expect: Expect },
    Class { class: Py<PyType>, version: u32 },
}

impl Check {
    fn kind(&self) -> &'static str {
        match self {
            Check::Dict { .. } => "dicts",
            Check::List { .. } => "lists",
            Check::Attribute { .. } => "attributes",
            Check::Class { .. } => "classes",
        }
    }
    fn holds(&self, py: Python) -> PyResult<bool> {
        match self {
            Check::Dict { dict, size, entries, changes } => {
                let dict = dict.bind(py);
                let now = changes.count(dict);
                if changes.is_known(now) {
                    return Ok(true);
                }
                match size {
                    Some(n) if *n != dict.len() => return Ok(false),
                    // In order, which is what a loop sees.
                    Some(_) => {
                        for ((key, expect), (k, v)) in entries.iter().zip(dict.iter()) {
                            if !same_key(key.bind(py), &k)? || !expect.holds(py, Some(&v))? {
                                return Ok(false);
                            }
                        }
                    }
                    None => {
                        for (key, expect) in entries {
                            if !expect.holds(py, dict.get_item(key)?.as_ref())? {
                                return Ok(false);
                            }
                        }
                    }
                }
                changes.note(now);
                Ok(true)
            }
            Check::List { list, items } => {
                let list = list.bind(py);
                if list.len() != items.len() {
                    return Ok(false);
                }
                for (i, expect) in items.iter().enumerate() {
                    if !expect.holds(py, list.get_item(i).ok().as_ref())? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Check::Attribute { object, name, expect } => {
                let name = name.bind(py).cast::<PyString>()?;
                expect.holds(py, object.bind(py).getattr_opt(name)?.as_ref())
            }
            Check::Class { class, version } => Ok(type_version(class.bind(py)) == *version),
        }
    }
    fn visit(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        match self {
            Check::Dict { dict, entries, .. } => {
                visit.call(dict)?;
                entries.iter().try_for_each(|(k, e)| visit.call(k).and_then(|()| e.visit(visit)))
            }
            Check::List { list, items } => {
                visit.call(list)?;
                items.iter().try_for_each(|e| e.visit(visit))
            }
            Check::Attribute { object, name, expect } => {
                visit.call(object)?;
                visit.call(name)?;
                expect.visit(visit)
            }
            Check::Class { class, .. } => visit.call(class),
        }
    }
}

/// What the function read: checks, each with the place that it is about.
pub struct Reach(Vec<(String, Check)>);

impl Reach {
    /// From `(place, "dict", dict, exact, [(key, kind, value)])`, `(place, "list", list, [(kind, value)])`,
    /// `(place, "attribute", object, name, kind, value)`, `(place, "class", class)`. A text where a class has no version.
    pub fn of(list: &Bound<PyList>) -> PyResult<Result<Reach, String>> {
        let mut checks = Vec::new();
        for item in list {
            let item = item.cast::<PyTuple>()?;
            let at = |i: usize| item.get_item(i);
            let place: String = at(0)?.extract()?;
            let check = match at(1)?.extract::<String>()?.as_str() {
                "dict" => {
                    let dict = at(2)?.cast_into::<PyDict>()?;
                    let size = at(3)?.extract::<bool>()?.then(|| dict.len());
                    let mut entries = Vec::new();
                    for e in at(4)?.cast::<PyList>()? {
                        let (key, kind, value): (Bound<PyAny>, String, Bound<PyAny>) = e.extract()?;
                        entries.push((key.unbind(), Expect::of(&kind, &value)?));
                    }
                    let changes = Changes::of(&dict);
                    Check::Dict { dict: dict.unbind(), size, entries, changes }
                }
                "list" => {
                    let mut items = Vec::new();
                    for e in at(3)?.cast::<PyList>()? {
                        let (kind, value): (String, Bound<PyAny>) = e.extract()?;
                        items.push(Expect::of(&kind, &value)?);
                    }
                    Check::List { list: at(2)?.cast_into::<PyList>()?.unbind(), items }
                }
                "attribute" => {
                    let expect = Expect::of(&at(4)?.extract::<String>()?, &at(5)?)?;
                    Check::Attribute { object: at(2)?.unbind(), name: at(3)?.unbind(), expect }
                }
                "class" => {
                    let class = at(2)?.cast_into::<PyType>()?;
                    let version = new_type_version(&class)?;
                    if version == 0 {
                        return Ok(Err(format!("changes of the class of {place} cannot be seen")));
                    }
                    Check::Class { class: class.unbind(), version }
                }
                other => return Err(raised::<PyTypeError>(format!("_compile_plan: unknown guard '{other}'"))),
            };
            checks.push((place, check));
        }
        Ok(Ok(Reach(checks)))
    }
}

/// What a tensor looks like.
struct Look {
    dtype: DType,
    device: Device,
    layout: Layout,
    flags: u8,
    view: bool,
    has_grad: bool,
}

const LOOKS: u8 = LEAF_GRAD | HAS_FN | INFERENCE;

fn flags(t: &Tensor) -> u8 {
    [LEAF_GRAD, HAS_FN, INFERENCE].into_iter().filter(|&f| t.flag(f)).fold(0, |all, f| all | f) & LOOKS
}

/// Whether a tensor has a gradient; `None` if it has hooks or a gradient that requires grad.
fn grad_state(t: &Tensor) -> Option<bool> {
    let slot = t.slot();
    let hooked = slot.rare.as_ref().is_some_and(|r| r.hooks.is_some() || r.post_accumulate.is_some());
    match &slot.grad {
        _ if hooked => None,
        Some(g) if g.requires_grad() => None,
        g => Some(g.is_some()),
    }
}

impl Look {
    fn of(t: &Tensor) -> Result<Look, String> {
        let has_grad = grad_state(t).ok_or("it uses a tensor with hooks, or with a gradient that requires grad")?;
        let Meta { layout, dtype, .. } = t.meta();
        let (layout, view) = (layout.clone(), t.view_info().is_some());
        Ok(Look { dtype: *dtype, device: t.device(), layout, flags: flags(t), view, has_grad })
    }
    fn is(&self, t: &Tensor) -> bool {
        let m = t.meta();
        m.dtype == self.dtype
            && m.layout.shape == self.layout.shape
            && m.layout.strides == self.layout.strides
            && m.storage.device() == self.device
            && flags(t) == self.flags
            && t.view_info().is_some() == self.view
            && grad_state(t) == Some(self.has_grad)
    }
}

/// The modes of a thread on which what ops do depends.
#[derive(PartialEq, Debug)]
struct Modes {
    grad: bool,
    inference: bool,
    dtype: DType,
    device: Device,
    special: bool,
}

impl Modes {
    fn now() -> Modes {
        Modes {
            grad: autograd::grad_enabled(),
            inference: mode::inference_enabled(),
            dtype: default_dtype(),
            device: Device::default(),
            special: mode::anomaly() != 0 || thread_state(autograd::saved::hooked) || autocast::active(),
        }
    }
}

/// A tensor from outside, with the metadata that it had.
struct Outside {
    tensor: Tensor,
    look: Look,
    memory: usize,
    /// Its gradient is read.
    grad: Option<Look>,
}

/// Which earlier tensor an argument is, and which has the same memory: how many bytes before, and whether writes to both
/// count as one.
#[derive(Clone, Copy, PartialEq)]
struct Alias {
    same: usize,
    near: usize,
    distance: isize,
    counted: bool,
}

pub struct Guards {
    arguments: Arguments,
    modes: Modes,
    looks: Vec<Look>,
    aliases: Vec<Alias>,
    /// From a memory to the first tensor from outside that has it.
    memories: HashMap<usize, usize>,
    handles: HashMap<usize, usize>,
    outside: Vec<Outside>,
    reach: Reach,
}

/// "None of the earlier tensors."
const NONE: usize = usize::MAX;

impl Guards {
    pub fn new(arguments: Arguments, inputs: &[Tensor], reach: Reach, plan: &Plan) -> Result<Guards, String> {
        let modes = Modes::now();
        if modes.special {
            return Err("anomaly mode, autocast or hooks of saved tensors are on".into());
        }
        let outside: Vec<Outside> = plan
            .outside()
            .map(|t| {
                let reads = plan.read_grads().any(|s| matches!(s, Source::Outside(o) if o.same(t)));
                let grad = t.grad().filter(|_| reads).map(|g| Look::of(&g)).transpose()?;
                Ok(Outside { tensor: t.clone(), look: Look::of(t)?, memory: t.storage().id(), grad })
            })
            .collect::<Result<_, String>>()?;
        if plan.read_grads().any(|s| matches!(s, Source::Input(_))) {
            return Err("it reads the gradient of an argument".into());
        }
        let looks = inputs.iter().map(Look::of).collect::<Result<_, _>>()?;
        let (mut memories, mut handles) = (HashMap::new(), HashMap::new());
        for (i, o) in outside.iter().enumerate() {
            memories.entry(o.memory).or_insert(i);
            handles.insert(o.tensor.id(), i);
        }
        let mut guards = Guards { arguments, modes, looks, aliases: Vec::new(), memories, handles, outside, reach };
        guards.aliases = guards.pattern(inputs).collect();
        Ok(guards)
    }
    /// Numbers of tensors from outside count from the number of arguments on.
    fn pattern<'a>(&'a self, inputs: &'a [Tensor]) -> impl Iterator<Item = Alias> + 'a {
        let n = inputs.len();
        let one = move |(i, t): (usize, &'a Tensor)| {
            let (id, memory) = (t.id(), t.storage().id());
            let same = inputs[..i].iter().position(|o| o.id() == id);
            let same = same.or_else(|| self.handles.get(&id).map(|o| n + o));
            let near = inputs[..i].iter().position(|o| o.storage().id() == memory);
            let near = near.or_else(|| self.memories.get(&memory).map(|o| n + o));
            let other = near.map(|o| inputs.get(o).unwrap_or_else(|| &self.outside[o - n].tensor));
            let distance = other.map_or(0, |o| t.first_byte() - o.first_byte());
            let counted = other.is_some_and(|o| o.storage().counter_id() == t.storage().counter_id());
            Alias { same: same.unwrap_or(NONE), near: near.unwrap_or(NONE), distance, counted }
        };
        inputs.iter().enumerate().map(one)
    }
    /// Whether the plan may run; `inputs` then holds the tensors of the arguments.
    pub fn hold(&self, args: &Bound<PyTuple>, kwargs: &Bound<PyDict>, found: &mut Found) -> PyResult<bool> {
        Ok(self.first_missed(args, kwargs, found)?.is_none())
    }
    /// What the function asked of its numbers, with the answers.
    pub fn asked(&self) -> Vec<String> {
        self.arguments.asked()
    }
    /// The places of numbers that have to stay what they were.
    pub fn fixed(&self) -> impl Iterator<Item = usize> + '_ {
        self.arguments.fixed()
    }
    fn first_missed(
        &self,
        args: &Bound<PyTuple>,
        kwargs: &Bound<PyDict>,
        found: &mut Found,
    ) -> PyResult<Option<Missed<'_>>> {
        let py = args.py();
        if self.modes != Modes::now() && !is_left_out("modes") {
            return Ok(Some(Missed::Modes));
        }
        if !self.arguments.hold(args, kwargs, found)? {
            return Ok(Some(Missed::Arguments));
        }
        let Found { tensors: inputs, numbers } = found;
        if !self.arguments.numbers_fit(numbers) && !is_left_out("numbers") {
            return Ok(Some(Missed::Numbers));
        }
        let differs = |(t, look): (&Tensor, &Look)| !look.is(t) && !is_left_out("tensors");
        if let Some(i) = inputs.iter().zip(&self.looks).position(differs) {
            return Ok(Some(Missed::Input(i)));
        }
        if !self.pattern(inputs).eq(self.aliases.iter().copied()) && !is_left_out("aliases") {
            return Ok(Some(Missed::Aliases));
        }
        for o in &self.outside {
            let place = || o.tensor.storage().id() == o.memory && o.tensor.layout().offset == o.look.layout.offset;
            let is = || o.look.is(&o.tensor) && place() || is_left_out("outside");
            let grad = || o.grad.as_ref().is_none_or(|look| o.tensor.grad().is_some_and(|g| look.is(&g)));
            if !is() || !(grad() || is_left_out("gradients")) {
                return Ok(Some(Missed::Outside(&o.tensor)));
            }
        }
        for (place, check) in &self.reach.0 {
            if !check.holds(py)? && !is_left_out(check.kind()) {
                return Ok(Some(Missed::Reach(place)));
            }
        }
        Ok(None)
    }
    pub fn missed(&self, args: &Bound<PyTuple>, kwargs: &Bound<PyDict>) -> PyResult<Option<String>> {
        let missed = self.first_missed(args, kwargs, &mut Found::default())?;
        Ok(missed.map(|m| match m {
            Missed::Modes => format!("the modes of the thread were {:?}, are {:?}", self.modes, Modes::now()),
            Missed::Arguments => "the arguments have another form, or a value among them differs".into(),
            Missed::Numbers => format!("a number among the arguments has another answer: {}", self.asked().join(", ")),
            Missed::Input(i) => {
                let l = &self.looks[i];
                format!(
                    "tensor {i} of the arguments was {}{:?}, or differs in its strides, flags or gradient",
                    l.dtype.short(),
                    l.layout.shape.as_slice()
                )
            }
            Missed::Aliases => "other tensors among the arguments share memory".into(),
            Missed::Outside(t) => format!("a tensor from outside has changed: {t:?}"),
            Missed::Reach(place) => format!("{place} has changed"),
        }))
    }
    pub fn describe(&self, py: Python) -> Vec<String> {
        let mut lines = vec![format!("modes: {:?}", self.modes)];
        lines.extend(self.arguments.describe());
        for (i, l) in self.looks.iter().enumerate() {
            let (shape, strides) = (l.layout.shape.as_slice(), l.layout.strides.as_slice());
            lines.push(format!(
                "argument tensor {i}: {}{shape:?} strides {strides:?} on {}",
                l.dtype.short(),
                l.device
            ));
        }
        lines.push(format!("{} tensors from outside keep their form", self.outside.len()));
        for (place, check) in &self.reach.0 {
            match check {
                Check::Dict { entries, .. } => {
                    for (key, expect) in entries.iter().filter(|(_, e)| matches!(e, Expect::Equal(_))) {
                        lines.push(format!("{place}[{}] {}", key.bind(py), expect.text(py)));
                    }
                    lines.push(format!("{place}: {} entries", entries.len()));
                }
                Check::List { items, .. } => lines.push(format!("{place}: a list of {}", items.len())),
                Check::Attribute { name, expect, .. } => {
                    lines.push(format!("{place}.{} {}", name.bind(py), expect.text(py)));
                }
                Check::Class { .. } => lines.push(format!("{place}: the class is unchanged")),
            }
        }
        lines
    }
    pub fn visit(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        self.arguments.visit(visit)?;
        self.reach.0.iter().try_for_each(|(_, check)| check.visit(visit))
    }
}

enum Missed<'a> {
    Modes,
    Arguments,
    Numbers,
    Input(usize),
    Aliases,
    Outside(&'a Tensor),
    Reach(&'a str),
}
