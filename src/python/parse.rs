//! Python arguments -> `Value`s by signature: one pass over the parameters; strings are compared only for keyword
//! arguments.

use super::convert::{
    exact_int, int_list, is_int, is_list_like, scalar_list, tensor_list, to_bool, to_int, to_scalar, to_scalar_or_item,
    type_name,
};
use super::error::{Raised, raised};
use super::lent;
use super::object::borrow;
use super::py_types::{PyGenerator, to_device, to_dtype};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rustgrad::compile::{Number, pass, passed};
use rustgrad::dtype::Scalar;
use rustgrad::op::tracer;
use rustgrad::op::{Args, Ints, Kind, Param, Signature, Value, push_default};
use rustgrad::rt::emplace;

/// The arguments of a vectorcall.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub positional: &'a [*mut PyObject],
    /// Keyword names (a tuple, or null) and their values.
    pub names: *mut PyObject,
    pub values: &'a [*mut PyObject],
}

/// Why a signature does not fit: formatted only if no overload fits.
pub enum Misfit {
    TooMany,
    Missing(usize),
    Unknown(String),
    Twice(usize),
    Kind {
        param: usize,
        position: Option<usize>,
        /// An argument of the call; its type is named only if no overload fits.
        got: *mut PyObject,
    },
    /// The value itself is wrong (too large an int, a bad device string): raised at once.
    Raise(Raised),
}

impl From<PyErr> for Misfit {
    fn from(e: PyErr) -> Misfit {
        Misfit::Raise(e.into())
    }
}
impl From<Raised> for Misfit {
    fn from(e: Raised) -> Misfit {
        Misfit::Raise(e)
    }
}

impl<'a> Given<'a> {
    /// # Safety
    /// The pointers are those of a vectorcall in progress.
    pub unsafe fn new(args: *const *mut PyObject, nargsf: usize, names: *mut PyObject) -> Given<'a> {
        // SAFETY: `args` holds `n` positional values followed by one for each keyword name.
        unsafe {
            let n = ffi::PyVectorcall_NARGS(nargsf) as usize;
            let k = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) as usize };
            let all: &[*mut PyObject] = if n + k == 0 { &[] } else { std::slice::from_raw_parts(args, n + k) };
            Given { positional: &all[..n], names, values: &all[n..] }
        }
    }
    pub fn keyword_count(&self) -> usize {
        self.values.len()
    }
    /// The name of keyword `i`.
    pub fn keyword(&self, py: Python<'a>, i: usize) -> &'a str {
        // SAFETY: `i` is below the tuple's length and keyword names are str.
        let name = unsafe { Borrowed::from_ptr(py, ffi::PyTuple_GET_ITEM(self.names, i as ffi::Py_ssize_t)) };
        let mut n = 0;
        // SAFETY: the UTF-8 form is cached in the str, which the caller's tuple keeps alive.
        unsafe {
            let p = ffi::PyUnicode_AsUTF8AndSize(name.as_ptr(), &raw mut n);
            if p.is_null() {
                ffi::PyErr_Clear();
                return "";
            }
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(p.cast::<u8>(), n as usize))
        }
    }
    /// The value of a keyword, if given.
    pub fn find(&self, py: Python<'a>, name: &str) -> Option<*mut PyObject> {
        (0..self.keyword_count()).find(|&i| self.keyword(py, i) == name).map(|i| self.values[i])
    }
}

/// Parses arguments by a signature into `args`, in place. `skip` names a keyword that the caller handles (`out`).
pub fn parse<'a>(
    py: Python<'a>,
    sig: &Signature,
    given: &Given<'a>,
    skip: &str,
    args: &mut Args<'a>,
) -> Result<(), Misfit> {
    let params = sig.params();
    let mut used = 0;
    args.clear();
    if tracer::enabled() {
        passed();
    }
    for (i, p) in params.iter().enumerate() {
        if i < sig.positional && used < given.positional.len() {
            let rest = &given.positional[used..];
            if let (Kind::Tensor | Kind::Operand, Some(t)) = (p.kind, borrow(rest[0])) {
                emplace::push(args, || Value::Tensor(t));
                used += 1;
                continue;
            }
            used += positional(py, (sig, p), rest, i + 1 == sig.positional, args).map_err(|m| {
                if let Misfit::Kind { got, .. } = m { Misfit::Kind { param: i, position: Some(used), got } } else { m }
            })?;
            continue;
        }
        match keyword(py, (sig, p), i, given, args.len())? {
            Some(v) => args.push(v),
            None if push_default(args, sig, p) => {}
            None => return Err(Misfit::Missing(i)),
        }
    }
    if used < given.positional.len() {
        return Err(Misfit::TooMany);
    }
    if given.keyword_count() > 0 {
        check_keywords(py, sig, given, used, skip)?;
    }
    Ok(())
}

fn check_keywords(py: Python, sig: &Signature, given: &Given, used: usize, skip: &str) -> Result<(), Misfit> {
    for k in 0..given.keyword_count() {
        let name = given.keyword(py, k);
        match sig.params().iter().position(|p| p.is_called(sig, name)) {
            Some(i) if i < used.min(sig.positional) => return Err(Misfit::Twice(i)),
            Some(_) => {}
            None if name == skip => {}
            None if super::memory::accepts(py, sig, name, given.values[k])? => {}
            None => return Err(Misfit::Unknown(name.to_string())),
        }
    }
    Ok(())
}

fn keyword<'a>(
    py: Python<'a>,
    (sig, p): (&Signature, &Param),
    index: usize,
    given: &Given<'a>,
    at: usize,
) -> Result<Option<Value<'a>>, Misfit> {
    for k in 0..given.keyword_count() {
        if p.is_called(sig, given.keyword(py, k)) {
            // SAFETY: the value is a live argument of the call.
            let o = unsafe { Borrowed::from_ptr(py, given.values[k]) };
            return match convert((sig, p), o, at)? {
                Some(v) => Ok(Some(v)),
                None => Err(Misfit::Kind { param: index, position: None, got: o.as_ptr() }),
            };
        }
    }
    Ok(None)
}

/// One parameter from positional values: most take one; a shape or a list of tensors may take all the rest. Returns how
/// many it took.
fn positional<'a>(
    py: Python<'a>,
    (sig, p): (&Signature, &Param),
    rest: &[*mut PyObject],
    last: bool,
    args: &mut Args<'a>,
) -> Result<usize, Misfit> {
    // SAFETY: the values are live arguments of the call.
    let first: Borrowed<'a, 'a, PyAny> = unsafe { Borrowed::from_ptr(py, rest[0]) };
    let varargs = match p.kind {
        Kind::Size => is_int(&first) && (rest.len() > 1 || last),
        Kind::Ints | Kind::IntOrInts => last && rest.len() > 1 && is_int(&first),
        Kind::TensorArgs => borrow(rest[0]).is_some(),
        _ => false,
    };
    if varargs && p.kind == Kind::TensorArgs {
        let list: Option<Vec<_>> = rest.iter().map(|&o| borrow(o).map(|t| Some(t.clone()))).collect();
        args.push(Value::Tensors(list.ok_or(Misfit::TooMany)?));
        return Ok(rest.len());
    }
    if varargs {
        emplace::push(args, || Value::Ints(Ints::new()));
        let Some(Value::Ints(ints)) = args.last_mut() else { return Err(Misfit::TooMany) };
        for &o in rest {
            // SAFETY: as above.
            let o = unsafe { Borrowed::from_ptr(py, o) };
            ints.push(to_int(&o)?.ok_or(Misfit::Kind { param: 0, position: None, got: o.as_ptr() })?);
        }
        return Ok(rest.len());
    }
    match (p.kind, exact_int(&first)) {
        (Kind::Int, Some(n)) => emplace::push(args, || Value::Scalar(Scalar::Int(n))),
        _ => match convert((sig, p), first, args.len())? {
            Some(v) => args.push(v),
            None => return sizes_of_tensors(py, p.kind, rest, last, args),
        },
    }
    Ok(1)
}

/// Sizes or dimensions whose first item is a one-element integer tensor: `ones(t, 3)`. Tried last, so that ints stay
/// fast.
#[cold]
fn sizes_of_tensors<'a>(
    py: Python<'a>,
    kind: Kind,
    rest: &[*mut PyObject],
    last: bool,
    args: &mut Args<'a>,
) -> Result<usize, Misfit> {
    let misfit = |o: &Bound<PyAny>| Misfit::Kind { param: 0, position: None, got: o.as_ptr() };
    let many = match kind {
        Kind::Size => rest.len() > 1 || last,
        Kind::Ints | Kind::IntOrInts => rest.len() > 1 && last,
        _ => false,
    };
    let mut sizes = Ints::new();
    for &o in rest {
        // SAFETY: the values are live arguments of the call.
        let o = unsafe { Borrowed::from_ptr(py, o) };
        if !many || (sizes.is_empty() && borrow(o.as_ptr()).is_none()) {
            return Err(misfit(&o));
        }
        sizes.push(to_int(&o)?.ok_or_else(|| misfit(&o))?);
    }
    args.push(Value::Ints(sizes));
    Ok(rest.len())
}

/// A number of a recorded function, as the argument at this position.
fn number<'a>(kind: Kind, o: &Bound<PyAny>, at: usize) -> Option<Value<'a>> {
    if !matches!(kind, Kind::Operand | Kind::Scalar | Kind::Float) {
        return None;
    }
    let (number, value) = lent::number(o)?;
    let (number, value) = match (kind, value) {
        (Kind::Float, Scalar::Int(i)) => (Number::Float(Box::new(number)), Scalar::Float(i as f64)),
        plain => (number, plain.1),
    };
    pass(at, number, value);
    Some(Value::Scalar(value))
}

/// One value of the parameter's kind; `None` where the type does not fit. `at` is its position among the arguments.
fn convert<'a>(
    (sig, p): (&Signature, &Param),
    o: Borrowed<'a, 'a, PyAny>,
    at: usize,
) -> Result<Option<Value<'a>>, Misfit> {
    let raw = o.as_ptr();
    if let Some(v) = number(p.kind, &o, at) {
        return Ok(Some(v));
    }
    match p.kind {
        Kind::Tensor => {
            if let Some(t) = borrow(raw) {
                return Ok(Some(Value::Tensor(t)));
            }
        }
        Kind::Operand => {
            if let Some(t) = borrow(raw) {
                return Ok(Some(Value::Tensor(t)));
            }
            if let Some(s) = to_scalar(&o)? {
                return Ok(Some(Value::Scalar(s)));
            }
        }
        _ => {
            if o.is_none() {
                return Ok(p.for_none());
            }
            return match p.kind {
                // What is none of the values is refused by dispatch, in the op's words.
                Kind::Choice => Ok(o.extract::<&str>().ok().map(|s| p.choose(sig, s).unwrap_or_else(|| s.into()))),
                kind => convert_plain(kind, &o),
            };
        }
    }
    Ok(if o.is_none() { p.for_none() } else { None })
}

fn convert_plain<'a>(kind: Kind, o: &Borrowed<'a, 'a, PyAny>) -> Result<Option<Value<'a>>, Misfit> {
    Ok(match kind {
        Kind::Scalar => to_scalar_or_item(o)?.map(Value::Scalar),
        Kind::Int if is_list_like(o) => None,
        Kind::Int => to_int(o)?.map(|i| Value::Scalar(Scalar::Int(i))),
        Kind::Float => match to_scalar_or_item(o)? {
            Some(Scalar::Complex(..)) | None => None,
            Some(s) => Some(Value::Scalar(Scalar::Float(s.to_f64()))),
        },
        Kind::Bool => to_bool(o).map(|b| Value::Scalar(Scalar::Bool(b))),
        Kind::Is(wanted) => to_bool(o).filter(|&b| b == wanted).map(|b| Value::Scalar(Scalar::Bool(b))),
        Kind::Ints | Kind::Size => int_list(o)?.map(Value::Ints),
        Kind::IntOrInts => match to_int(o)? {
            Some(i) => Some(Value::Ints([i].as_slice().into())),
            None => int_list(o)?.map(Value::Ints),
        },
        Kind::Floats => scalar_list(o)?.map(Value::Scalars),
        Kind::FloatOrFloats => match to_scalar_or_item(o)? {
            Some(Scalar::Complex(..)) => None,
            Some(s) => Some(Value::Scalars(vec![s])),
            None => scalar_list(o)?.map(Value::Scalars),
        },
        Kind::DType => to_dtype(o)?.map(Value::DType),
        Kind::Device => to_device(o)?.map(Value::Device),
        Kind::Format => super::memory::format_of(o)?.map(Value::Format),
        Kind::Str | Kind::Choice => o.extract::<&str>().ok().map(Value::from),
        Kind::Generator => o.cast::<PyGenerator>().ok().map(|g| Value::Generator(g.get().0.clone())),
        Kind::Tensors | Kind::TensorArgs | Kind::OptTensors => {
            tensor_list(o, kind == Kind::OptTensors)?.map(Value::Tensors)
        }
        Kind::Tensor | Kind::Operand => unreachable!("handled by the caller"),
    })
}

/// A number of positional arguments, in words.
pub fn positional_arguments(n: usize) -> String {
    format!("{n} positional argument{}", if n == 1 { "" } else { "s" })
}

/// The error for arguments that fit no overload, in PyTorch's words if there is one signature. The tensor of a method is not
/// counted.
pub fn explain(
    name: &str,
    sigs: &[&'static Signature],
    misfit: Misfit,
    call: &Given,
    method: bool,
    py: Python,
) -> Raised {
    if let Misfit::Raise(e) = misfit {
        return e;
    }
    let own = usize::from(method);
    if let Some(text) = method.then(|| without_tensor(name, call, py)).flatten() {
        return raised::<PyTypeError>(text);
    }
    if sigs.len() > 1 {
        return raised::<PyTypeError>(invalid_combination(name, sigs, call, own, py));
    }
    let sig = sigs[0];
    raised::<PyTypeError>(match misfit {
        Misfit::TooMany => {
            let (least, most) = (sig.params().iter().filter(|p| p.default.is_none()).count(), sig.positional);
            let (least, most, given) = (least.saturating_sub(own), most - own, call.positional.len() - own);
            format!(
                "{name}() takes {}{} but {given} {} given. Signature: {}",
                if least < most { format!("from {least} to ") } else { String::new() },
                positional_arguments(most),
                if given == 1 { "was" } else { "were" },
                show(sig, own)
            )
        }
        Misfit::Missing(i) => {
            let missing: Vec<_> = sig.params()[i..]
                .iter()
                .filter(|p| p.default.is_none())
                .map(|p| format!("\"{}\"", public(sig, p)))
                .collect();
            format!(
                "{name}() missing {} required {}: {}. Signature: {}",
                missing.len(),
                if missing.len() == 1 { "positional argument" } else { "positional arguments" },
                missing.join(", "),
                show(sig, own)
            )
        }
        Misfit::Unknown(k) => {
            format!("{name}() got an unexpected keyword argument '{k}'. Signature: {}", show(sig, own))
        }
        Misfit::Twice(i) => format!("{name}() got multiple values for argument '{}'", public(sig, &sig.params()[i])),
        Misfit::Kind { param, position, got } => {
            let p = &sig.params()[param];
            let list =
                position.filter(|_| kind_words(p.kind) == "tuple of Tensors").and_then(|i| call.positional.get(i));
            if let Some(text) = list.and_then(|&o| wrong_item(py, o, param)) {
                return raised::<PyTypeError>(text);
            }
            let place = position.map_or(String::new(), |i| format!(" (position {})", i + 1 - own));
            let (expected, got) = (kind_words(p.kind), type_of(got, py));
            format!("{name}(): argument '{}'{place} must be {expected}, not {got}", public(sig, p))
        }
        Misfit::Raise(_) => unreachable!("returned above"),
    })
}

/// The name of the type of an argument of a call in progress.
fn type_of(o: *mut PyObject, py: Python) -> String {
    // SAFETY: a live argument of the call.
    type_name(&unsafe { Borrowed::from_ptr(py, o) }.to_owned())
}

/// The words for a method that is called on no tensor.
fn without_tensor(name: &str, call: &Given, py: Python) -> Option<String> {
    match call.positional.first() {
        None => Some(format!("unbound method Tensor.{name}() needs an argument")),
        Some(&o) if borrow(o).is_none() => {
            let kind = type_of(o, py);
            Some(format!("descriptor '{name}' for 'torch.Tensor' objects doesn't apply to a '{kind}' object"))
        }
        Some(_) => None,
    }
}

fn invalid_combination(name: &str, sigs: &[&'static Signature], call: &Given, own: usize, py: Python) -> String {
    let positional = call.positional[own..].iter().map(|&o| type_of(o, py));
    let keywords =
        (0..call.keyword_count()).map(|k| format!("{}={}", call.keyword(py, k), type_of(call.values[k], py)));
    let got: Vec<String> = positional.chain(keywords).collect();
    let expected: Vec<String> = sigs.iter().map(|s| format!("\n * {}", show(s, own))).collect();
    format!(
        "{name}() received an invalid combination of arguments - got ({}), but expected one of:{}",
        got.join(", "),
        expected.concat()
    )
}

/// PyTorch's message for a list of tensors with another object in it.
fn wrong_item(py: Python, list: *mut PyObject, argument: usize) -> Option<String> {
    // SAFETY: a live argument of the call.
    let list = unsafe { Borrowed::from_ptr(py, list) };
    let items =
        (list.is_instance_of::<PyList>() || list.is_instance_of::<PyTuple>()).then(|| list.try_iter().ok())??;
    let (i, wrong) = items.flatten().enumerate().find(|(_, item)| borrow(item.as_ptr()).is_none())?;
    Some(format!("expected Tensor as element {i} in argument {argument}, but got {}", type_name(&wrong)))
}

fn public(sig: &Signature, p: &Param) -> &'static str {
    match p.name(sig) {
        "self" => "input",
        name => name,
    }
}

fn kind_words(k: Kind) -> &'static str {
    match k {
        Kind::Tensor => "Tensor",
        Kind::Tensors | Kind::TensorArgs | Kind::OptTensors => "tuple of Tensors",
        Kind::Operand => "Tensor or Number",
        Kind::Scalar => "Number",
        Kind::Int => "int",
        Kind::Float => "float",
        Kind::Bool | Kind::Is(_) => "bool",
        Kind::Ints | Kind::Size | Kind::IntOrInts => "tuple of ints",
        Kind::Floats | Kind::FloatOrFloats => "tuple of floats",
        Kind::DType => "torch.dtype",
        Kind::Device => "torch.device",
        Kind::Format => "torch.memory_format",
        Kind::Str | Kind::Choice => "str",
        Kind::Generator => "Generator",
    }
}

/// `(Tensor input, int dim, *, dtype dtype)`: a signature in an error message, without the first `own` parameters.
pub fn show(sig: &Signature, own: usize) -> String {
    let mut parts = Vec::new();
    for (i, p) in sig.params().iter().enumerate().skip(own) {
        if i == sig.positional && p.keyword_only {
            parts.push("*".to_string());
        }
        let default = p.default_text(sig).map_or(String::new(), |d| format!(" = {d}"));
        parts.push(format!("{} {}{default}", kind_words(p.kind), public(sig, p)));
    }
    format!("({})", parts.join(", "))
}
