//! `to`, the methods named after dtypes, `cpu` and `type_as`: which dtype, device and format they ask for, and whether the
//! tensor has them already. What is to be converted goes to the op `_to_copy`.

use super::convert::type_name;
use super::error::{PyResult, Raised, raised};
use super::heap_type::keyword_method;
use super::memory::format_of;
use super::metadata::follows;
use super::method_call::{Call, Given, border};
use super::object::{borrow, is_tensor, wrap_bound};
use super::py_types::{PyDType, PyDevice, dtype_object, to_device, to_dtype};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use rustgrad::autograd::opaque::is_opaque;
use rustgrad::dtype::DType;
use rustgrad::layout::Format;
use rustgrad::tensor::Tensor;
use smallvec::SmallVec;
use std::ffi::CStr;

type Argument<'py> = Option<Bound<'py, PyAny>>;

/// What a conversion asks for, each None where it is not given.
#[derive(Default)]
struct Wanted<'py> {
    device: Argument<'py>,
    dtype: Argument<'py>,
    non_blocking: bool,
    copy: bool,
    format: Argument<'py>,
}

/// The names of the positional arguments of `to`, which has three forms.
fn positional_names(first: Option<&Bound<PyAny>>) -> PyResult<&'static [&'static str]> {
    let Some(first) = first else { return Ok(&["device", "dtype", "non_blocking", "copy"]) };
    if is_tensor(first.as_ptr()) {
        return Ok(&["other", "non_blocking", "copy"]);
    }
    let is_dtype = first.is_instance_of::<PyDType>() || to_dtype(first)?.is_some();
    Ok(if is_dtype { &["dtype", "non_blocking", "copy"] } else { &["device", "dtype", "non_blocking", "copy"] })
}

impl<'py> Wanted<'py> {
    /// Sorts the arguments of `to`. Errors: TypeError for arguments of none of its forms.
    fn of(py: Python<'py>, given: &Given<'py>) -> PyResult<Wanted<'py>> {
        let refused = || no_form(given);
        let names = positional_names(given.positional.first())?;
        if given.positional.len() > names.len() {
            return Err(refused());
        }
        let (mut wanted, mut seen) = (Wanted::default(), SmallVec::<[&str; 6]>::new());
        let positional = names.iter().copied().zip(&given.positional);
        let mut other = None;
        for (name, value) in positional.chain(given.named.iter().map(|(name, value)| (name.as_str(), value))) {
            if seen.contains(&name) {
                return Err(raised::<PyTypeError>(format!("to() got multiple values for argument '{name}'")));
            }
            seen.push(name);
            if value.is_none() && !matches!(name, "non_blocking" | "copy") {
                continue;
            }
            match name {
                "other" | "tensor" => other = Some(borrow(value.as_ptr()).ok_or_else(refused)?),
                "device" => wanted.device = Some(device_argument(value).ok_or_else(refused)?),
                "dtype" if value.is_instance_of::<PyDType>() => wanted.dtype = Some(value.clone()),
                "dtype" => {
                    let dtype = to_dtype(value)?.ok_or_else(refused)?;
                    wanted.dtype = Some(dtype_object(py, dtype)?.into_bound(py));
                }
                "non_blocking" => wanted.non_blocking = value.cast::<PyBool>().map_err(|_| refused())?.is_true(),
                "copy" => wanted.copy = value.cast::<PyBool>().map_err(|_| refused())?.is_true(),
                "memory_format" => wanted.format = Some(value.clone()),
                _ => return Err(refused()),
            }
        }
        if let Some(other) = other {
            wanted.fill_from(py, other)?;
        }
        Ok(wanted)
    }
    /// The device and dtype of a tensor, where none are given.
    fn fill_from(&mut self, py: Python<'py>, other: &Tensor) -> PyResult<()> {
        if self.device.is_none() {
            // A sparse tensor knows where its elements are.
            self.device = Some(match is_opaque(other) {
                true => wrap_bound(py, other.clone())?.getattr("device")?,
                false => Bound::new(py, PyDevice(other.device().into()))?.into_any(),
            });
        }
        if self.dtype.is_none() {
            self.dtype = Some(dtype_object(py, other.dtype())?.into_bound(py));
        }
        Ok(())
    }
    /// The tensor if it is what is asked for, else a copy that is.
    fn apply(self, o: Bound<'py, PyAny>) -> PyResult<*mut PyObject> {
        let t = tensor_of(&o)?;
        let device = self.device.as_ref().map(to_device).transpose()?.flatten();
        let dtype = self.dtype.as_ref().map(to_dtype).transpose()?.flatten();
        let format = self.format.as_ref().map(format_argument).transpose()?;
        let lies_so = format.is_none_or(|format| follows(t, format));
        let same = device.is_none_or(|d| d == t.device()) && dtype.is_none_or(|d| d == t.dtype());
        if same && lies_so && !self.copy {
            return Ok(o.into_ptr());
        }
        let arguments = (o.clone(), self.dtype, self.device, self.format);
        Ok(copying(o.py())?.call1(arguments)?.into_ptr())
    }
}

/// The op object of `_to_copy`.
fn copying(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static OP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let found = OP.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("rustgrad._C")?.getattr("ops")?.get_item("_to_copy")?.unbind())
    })?;
    Ok(found.bind(py))
}

fn tensor_of<'a>(o: &'a Bound<PyAny>) -> PyResult<&'a Tensor> {
    borrow(o.as_ptr()).ok_or_else(|| raised::<PyTypeError>(format!("expected a Tensor, got {}", type_name(o))))
}

/// What may name a device: a device, a text, the index of a GPU. Whether there is such a device is asked later.
fn device_argument<'py>(value: &Bound<'py, PyAny>) -> Argument<'py> {
    let index = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    (index || value.is_instance_of::<PyDevice>() || value.is_instance_of::<PyString>()).then(|| value.clone())
}

fn format_argument(value: &Bound<PyAny>) -> PyResult<Format> {
    format_of(value)?.ok_or_else(|| {
        let got = type_name(value);
        raised::<PyTypeError>(format!("to(): argument 'memory_format' must be torch.memory_format, not {got}"))
    })
}

#[cold]
fn no_form(given: &Given) -> Raised {
    let positional = given.positional.iter().map(type_name);
    let named = given.named.iter().map(|(name, value)| format!("{name}={}", type_name(value)));
    let got = positional.chain(named).collect::<Vec<_>>().join(", ");
    raised::<PyTypeError>(format!(
        "to() received an invalid combination of arguments - got ({got}), but expected one of:\n \
         * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, \
         torch.memory_format memory_format = None)\n \
         * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n \
         * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
    ))
}

/// What may be given to a method of one argument.
fn at_most_one() -> String {
    "at most 1 argument besides self".into()
}

struct To;
impl Call for To {
    fn name() -> &'static CStr {
        c"to"
    }
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject> {
        Wanted::of(o.py(), &given)?.apply(o)
    }
}

/// Whether `memory_format` has no position, as PyTorch has it for `chalf`.
fn is_keyword_only(dtype: Option<DType>) -> bool {
    dtype == Some(DType::C32)
}

/// The methods that are named after what they convert to; the last one is to the CPU.
const NAMED: [(&CStr, Option<DType>); 14] = [
    (c"float", Some(DType::F32)),
    (c"double", Some(DType::F64)),
    (c"half", Some(DType::F16)),
    (c"bfloat16", Some(DType::BF16)),
    (c"int", Some(DType::I32)),
    (c"long", Some(DType::I64)),
    (c"short", Some(DType::I16)),
    (c"char", Some(DType::I8)),
    (c"byte", Some(DType::U8)),
    (c"bool", Some(DType::Bool)),
    (c"chalf", Some(DType::C32)),
    (c"cfloat", Some(DType::C64)),
    (c"cdouble", Some(DType::C128)),
    (c"cpu", None),
];

struct Named<const I: usize>;
impl<const I: usize> Call for Named<I> {
    fn name() -> &'static CStr {
        NAMED[I].0
    }
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject> {
        let (py, (name, dtype)) = (o.py(), NAMED[I]);
        if is_keyword_only(dtype) && !given.positional.is_empty() {
            let n = given.positional.len();
            return Err(raised::<PyTypeError>(format!(
                "chalf() takes 0 positional arguments besides self but {n} were given"
            )));
        }
        let format =
            given.only(&name.to_string_lossy(), "memory_format", at_most_one)?.filter(|v| !v.is_none()).cloned();
        let mut wanted = Wanted { format, ..Wanted::default() };
        match dtype {
            Some(dtype) => wanted.dtype = Some(dtype_object(py, dtype)?.into_bound(py)),
            None => wanted.device = Some(pyo3::intern!(py, "cpu").clone().into_any()),
        }
        wanted.apply(o)
    }
}

struct TypeAs;
impl Call for TypeAs {
    fn name() -> &'static CStr {
        c"type_as"
    }
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject> {
        let other = given.only("type_as", "other", at_most_one)?;
        let other =
            other.ok_or_else(|| raised::<PyTypeError>("type_as() missing 1 required positional argument: 'other'"))?;
        let mut wanted = Wanted::default();
        wanted.fill_from(o.py(), tensor_of(other)?)?;
        wanted.apply(o)
    }
}

/// `(device, dtype, non_blocking, copy, memory_format)` of arguments as `Tensor.to` takes them.
#[pyfunction]
#[pyo3(signature = (args, kwargs))]
pub fn _to_arguments<'py>(args: &Bound<'py, PyTuple>, kwargs: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyTuple>> {
    let py = args.py();
    let named = kwargs.iter().map(|(name, value)| Ok((name.extract()?, value))).collect::<PyResult<_>>()?;
    let Wanted { device, dtype, non_blocking, copy, format } =
        Wanted::of(py, &Given { positional: args.iter().collect(), named })?;
    Ok((device, dtype, non_blocking, copy, format).into_pyobject(py)?)
}

/// The methods as the type wants them.
pub fn table() -> Vec<ffi::PyMethodDef> {
    fn cast<const I: usize>() -> ffi::PyMethodDef {
        let (name, dtype) = NAMED[I];
        let doc = match dtype {
            Some(dtype) => format!("The tensor as {dtype}."),
            None => "The tensor on the CPU.".into(),
        };
        let parameters =
            if is_keyword_only(dtype) { "$self, *, memory_format=None" } else { "$self, memory_format=None" };
        keyword_method(name, parameters, &doc, border::<Named<I>>)
    }
    let to_doc = "The tensor in another dtype or on another device: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`.\n\n\
         Returns the tensor itself if nothing changes, unless `copy=True`. A copy keeps the order of the dimensions in\n\
         memory, or has that of `memory_format`, if given.";
    vec![
        keyword_method(To::name(), "$self, *args, **kwargs", to_doc, border::<To>),
        keyword_method(
            TypeAs::name(),
            "$self, other",
            "The tensor in the dtype and on the device of another.",
            border::<TypeAs>,
        ),
        cast::<0>(),
        cast::<1>(),
        cast::<2>(),
        cast::<3>(),
        cast::<4>(),
        cast::<5>(),
        cast::<6>(),
        cast::<7>(),
        cast::<8>(),
        cast::<9>(),
        cast::<10>(),
        cast::<11>(),
        cast::<12>(),
        cast::<13>(),
    ]
}
