//! The arguments of a call, as a plan expects them: their containers, tensors, values, and numbers that it reads anew.

use super::convert::exact_int;
use super::error::{PyResult, raised};
use super::object::borrow;
use super::values::{is_left_out, is_value, same_key, same_value};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple, PyType};
use rustgrad::compile::{Number, Numbers, Question};
use rustgrad::dtype::Scalar;
use rustgrad::tensor::Tensor;
use smallvec::SmallVec;

/// One argument, or a part of one.
enum Argument {
    Tensor(Py<PyType>),
    Tuple(Vec<Argument>),
    List(Vec<Argument>),
    Dict(Vec<(Py<PyAny>, Argument)>),
    Equal(Py<PyAny>),
    Is(Py<PyAny>),
    /// Any float, or any int of 64 bits: the number at this place of a call's numbers.
    Number {
        at: usize,
        whole: bool,
    },
}

/// The tensors and the numbers of a call's arguments.
#[derive(Default)]
pub struct Found {
    pub tensors: Vec<Tensor>,
    pub numbers: SmallVec<[Scalar; 4]>,
}

/// The place of an argument.
#[derive(FromPyObject)]
pub enum Key {
    Position(usize),
    Name(String),
}

impl Key {
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Key::Position(i) => i.into_pyobject(py)?.into_any(),
            Key::Name(name) => name.into_pyobject(py)?.into_any(),
        })
    }
}

/// The arguments that may be other numbers in each call.
#[derive(Default)]
pub struct Given<'a> {
    pub keys: &'a [Key],
    /// Numbers on which the steps depend.
    pub fixed: &'a [Number],
    pub questions: Vec<(Question, bool)>,
    /// All that is computed of the arguments.
    pub computed: Vec<Number>,
}

/// The number in an object of Python's own types; none for an int beyond 64 bits.
fn number(o: &Bound<PyAny>, whole: bool) -> Option<Scalar> {
    if whole {
        return exact_int(o).map(Scalar::Int);
    }
    o.cast_exact::<PyFloat>().ok().map(|f| Scalar::Float(f.value()))
}

impl Argument {
    fn of(o: &Bound<PyAny>, found: &mut Vec<Tensor>) -> PyResult<Argument> {
        if let Some(t) = borrow(o.as_ptr()) {
            found.push(t.clone());
            return Ok(Argument::Tensor(o.get_type().unbind()));
        }
        if let Ok(items) = o.cast_exact::<PyTuple>() {
            return Ok(Argument::Tuple(items.iter().map(|i| Argument::of(&i, found)).collect::<PyResult<_>>()?));
        }
        if let Ok(items) = o.cast_exact::<PyList>() {
            return Ok(Argument::List(items.iter().map(|i| Argument::of(&i, found)).collect::<PyResult<_>>()?));
        }
        if let Ok(items) = o.cast_exact::<PyDict>() {
            let one = |(k, v): (Bound<PyAny>, Bound<PyAny>)| Ok((k.unbind(), Argument::of(&v, found)?));
            return Ok(Argument::Dict(items.iter().map(one).collect::<PyResult<_>>()?));
        }
        Ok(if is_value(o) { Argument::Equal(o.clone().unbind()) } else { Argument::Is(o.clone().unbind()) })
    }
    fn holds(&self, o: &Bound<PyAny>, found: &mut Found) -> PyResult<bool> {
        let py = o.py();
        Ok(match self {
            Argument::Tensor(class) => match borrow(o.as_ptr()) {
                Some(t) if o.get_type().is(class) => {
                    found.tensors.push(t.clone());
                    true
                }
                _ => false,
            },
            Argument::Tuple(items) => match o.cast_exact::<PyTuple>() {
                Ok(given) if given.len() == items.len() => all(items.iter().zip(given), found)?,
                _ => false,
            },
            Argument::List(items) => match o.cast_exact::<PyList>() {
                Ok(given) if given.len() == items.len() => all(items.iter().zip(given), found)?,
                _ => false,
            },
            Argument::Dict(items) => match o.cast_exact::<PyDict>() {
                // The order of a dict is what a loop over it sees.
                Ok(given) if given.len() == items.len() => {
                    for ((key, item), (k, v)) in items.iter().zip(given.iter()) {
                        if !same_key(key.bind(py), &k)? || !item.holds(&v, found)? {
                            return Ok(false);
                        }
                    }
                    true
                }
                _ => false,
            },
            Argument::Equal(v) => o.is(v) || same_value(v.bind(py), o)? || is_left_out("values"),
            Argument::Is(v) => o.is(v) || is_left_out("values"),
            Argument::Number { at, whole } => match number(o, *whole) {
                Some(n) => {
                    found.numbers[*at] = n;
                    true
                }
                None => false,
            },
        })
    }
    fn visit(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        match self {
            Argument::Tensor(class) => visit.call(class),
            Argument::Tuple(items) | Argument::List(items) => items.iter().try_for_each(|i| i.visit(visit)),
            Argument::Dict(items) => items.iter().try_for_each(|(k, v)| visit.call(k).and_then(|()| v.visit(visit))),
            Argument::Equal(o) | Argument::Is(o) => visit.call(o),
            Argument::Number { .. } => Ok(()),
        }
    }
}

fn all<'a, 'py>(pairs: impl Iterator<Item = (&'a Argument, Bound<'py, PyAny>)>, found: &mut Found) -> PyResult<bool> {
    for (item, o) in pairs {
        if !item.holds(&o, found)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn told((question, answer): &(Question, bool)) -> String {
    format!("{question} is {}", if *answer { "True" } else { "False" })
}

/// The form of the arguments of a call.
pub struct Arguments {
    args: Argument,
    kwargs: Argument,
    /// What the numbers were, by their places; those that are not open stay so.
    recorded: Vec<Scalar>,
    open: Vec<bool>,
    questions: Vec<(Question, bool)>,
    computed: Vec<Number>,
}

impl Arguments {
    /// With the tensors, in order.
    pub fn of(args: &Bound<PyTuple>, kwargs: &Bound<PyDict>, given: Given) -> PyResult<(Arguments, Vec<Tensor>)> {
        let py = args.py();
        let mut found = Vec::new();
        let (mut positional, mut named) =
            (Argument::of(args.as_any(), &mut found)?, Argument::of(kwargs.as_any(), &mut found)?);
        let (mut recorded, mut open) = (Vec::new(), vec![true; given.keys.len()]);
        for n in given.fixed {
            n.leaves(&mut |leaf| {
                if let Number::Argument(i) = leaf {
                    open[*i] = false;
                }
            });
        }
        for (at, key) in given.keys.iter().enumerate() {
            let (place, value) = match (key, &mut positional, &mut named) {
                (Key::Position(i), Argument::Tuple(items), _) => (items.get_mut(*i), args.get_item(*i).ok()),
                (Key::Name(name), _, Argument::Dict(items)) => {
                    let is = |k: &Py<PyAny>| k.bind(py).eq(name).unwrap_or(false);
                    (items.iter_mut().find(|(k, _)| is(k)).map(|(_, v)| v), kwargs.get_item(name)?)
                }
                _ => (None, None),
            };
            let (Some(place), Some(value)) = (place, value) else {
                return Err(raised::<PyTypeError>("_compile_plan: no argument is at the place of a number"));
            };
            let whole = value.is_exact_instance_of::<PyInt>();
            let now = number(&value, whole);
            recorded.push(now.ok_or_else(|| raised::<PyTypeError>("_compile_plan: expected a float or an int"))?);
            if open[at] {
                *place = Argument::Number { at, whole };
            }
        }
        let Given { questions, computed, .. } = given;
        Ok((Arguments { args: positional, kwargs: named, recorded, open, questions, computed }, found))
    }
    /// Whether the arguments have the form that they had; `found` then holds their tensors and numbers.
    pub fn hold(&self, args: &Bound<PyTuple>, kwargs: &Bound<PyDict>, found: &mut Found) -> PyResult<bool> {
        found.numbers.extend(self.recorded.iter().copied());
        Ok(self.args.holds(args.as_any(), found)? && self.kwargs.holds(kwargs.as_any(), found)?)
    }
    pub fn visit(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        self.args.visit(visit)?;
        self.kwargs.visit(visit)
    }
    /// The places of numbers that have to stay what they were.
    pub fn fixed(&self) -> impl Iterator<Item = usize> + '_ {
        self.open.iter().enumerate().filter(|(_, open)| !**open).map(|(i, _)| i)
    }
    /// What the function asked of its numbers and was told, and which of them are fixed.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.questions.iter().map(told);
        asked.chain(self.fixed().map(|i| format!("number {i} is fixed"))).collect()
    }
    /// The guards of numbers as lines of text.
    pub fn describe(&self) -> Vec<String> {
        let one = |(i, (open, was)): (usize, (&bool, &Scalar))| {
            let kind = if matches!(was, Scalar::Int(_)) { "int" } else { "float" };
            match open {
                true => format!("number {i} of the arguments: any {kind}, read in each call"),
                false => format!("number {i} of the arguments == {}", Number::Constant(*was)),
            }
        };
        let numbers = self.open.iter().zip(&self.recorded).enumerate().map(one);
        numbers.chain(self.questions.iter().map(told)).collect()
    }
    /// Whether the numbers of a call have the answers that were recorded, and all that is computed of them exists.
    pub fn numbers_fit(&self, numbers: &[Scalar]) -> bool {
        let all = Numbers { arguments: numbers, reads: &[] };
        self.questions.iter().all(|(q, answer)| q.answer(all) == Some(*answer))
            && self.computed.iter().all(|n| n.is_possible(numbers))
    }
}
