//! The methods of `Tensor` that read its shape, strides, dtype and address: a table behind one border function.

use super::convert::{to_int, type_name};
use super::error::{PyResult, guard_object, raised};
use super::heap_type::keyword_method;
use super::memory::format_of;
use super::method_call::Given;
use super::object::borrow;
use super::overrides;
use super::parse::{self, positional_arguments};
use super::py_types::size_object;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use rustgrad::device::Device;
use rustgrad::layout::Format;
use rustgrad::tensor::Tensor;
use std::ffi::CStr;

type Read = fn(Python, &Tensor, Option<&Bound<PyAny>>) -> PyResult<*mut PyObject>;

struct Method {
    name: &'static CStr,
    /// The one parameter, which may be left out or None; `""` where there is none.
    parameter: &'static str,
    doc: &'static str,
    read: Read,
}

const METHODS: [Method; 13] = [
    with(c"size", "dim", "The sizes of the dimensions, or of one of them.", |py, t, dim| match dim {
        None => size_object(py, t.shape()),
        Some(dim) => number(py, t.shape()[dimension(t, dim, "size")?]),
    }),
    with(
        c"stride",
        "dim",
        "The step in elements from one index of a dimension to the next; all of them without `dim`.",
        |py, t, dim| match dim {
            None => Ok(PyTuple::new(py, t.strides())?.into_any().into_ptr()),
            Some(dim) => number(py, t.strides()[dimension(t, dim, "stride")?]),
        },
    ),
    with(
        c"is_contiguous",
        "memory_format",
        "Whether the memory is row-major without gaps; with `channels_last`, whether channels lie together.",
        is_contiguous,
    ),
    plain(c"dim", "The number of dimensions.", |py, t, _| number(py, t.ndim())),
    plain(c"ndimension", "The number of dimensions.", |py, t, _| number(py, t.ndim())),
    plain(c"numel", "The number of elements.", |py, t, _| number(py, t.numel())),
    plain(c"nelement", "The number of elements.", |py, t, _| number(py, t.numel())),
    plain(c"storage_offset", "The position of the first element in the storage, in elements.", |py, t, _| {
        number(py, t.layout().offset)
    }),
    plain(c"data_ptr", "The address of the first element; 0 on a GPU.", |py, t, _| {
        let known = t.device() == Device::Cpu && t.numel() > 0;
        number(py, if known { t.ptr().map_or(0, |p| p as usize) } else { 0 })
    }),
    plain(c"element_size", "Bytes per element.", |py, t, _| number(py, t.dtype().size())),
    plain(c"is_floating_point", "Whether the dtype is a floating point one.", |py, t, _| {
        boolean(py, t.dtype().is_float())
    }),
    plain(c"is_complex", "Whether the dtype is a complex one.", |py, t, _| boolean(py, t.dtype().is_complex())),
    plain(c"is_signed", "Whether the dtype has negative numbers.", |py, t, _| boolean(py, t.dtype().is_signed())),
];

const fn with(name: &'static CStr, parameter: &'static str, doc: &'static str, read: Read) -> Method {
    Method { name, parameter, doc, read }
}
const fn plain(name: &'static CStr, doc: &'static str, read: Read) -> Method {
    with(name, "", doc, read)
}

fn number(py: Python, n: usize) -> PyResult<*mut PyObject> {
    Ok(n.into_pyobject(py)?.into_any().into_ptr())
}
fn boolean(py: Python, b: bool) -> PyResult<*mut PyObject> {
    Ok(PyBool::new(py, b).to_owned().into_any().into_ptr())
}

/// The dimension that `dim` names, counted from the end where it is negative.
fn dimension(t: &Tensor, dim: &Bound<PyAny>, method: &str) -> PyResult<usize> {
    let n = t.ndim() as i64;
    let Some(d) = to_int(dim)? else {
        let got = type_name(dim);
        return Err(raised::<PyTypeError>(format!("{method}(): argument 'dim' (position 1) must be int, not {got}")));
    };
    match d {
        _ if n == 0 => Err(raised::<PyIndexError>(format!("Dimension specified as {d} but tensor has no dimensions"))),
        d if (-n..n).contains(&d) => Ok(d.rem_euclid(n) as usize),
        d => Err(raised::<PyIndexError>(format!(
            "Dimension out of range (expected to be in range of [{}, {}], but got {d})",
            -n,
            n - 1
        ))),
    }
}

fn is_contiguous(py: Python, t: &Tensor, format: Option<&Bound<PyAny>>) -> PyResult<*mut PyObject> {
    boolean(py, lies_in(t, given_format("is_contiguous", format)?))
}

fn given_format(method: &str, format: Option<&Bound<PyAny>>) -> PyResult<Format> {
    let Some(o) = format else { return Ok(Format::Contiguous) };
    format_of(o)?.ok_or_else(|| {
        let got = type_name(o);
        raised::<PyTypeError>(format!(
            "{method}(): argument 'memory_format' (position 1) must be torch.memory_format, not {got}"
        ))
    })
}

/// Whether new tensors that keep this one's order of dimensions in memory have the given format.
pub fn follows(t: &Tensor, format: Format) -> bool {
    format == Format::Preserve || lies_in(t, format) && t.layout().channels_format() == format
}

fn lies_in(t: &Tensor, format: Format) -> bool {
    match format {
        Format::Contiguous | Format::Preserve => t.numel() == 0 || t.is_contiguous(),
        // Another rank has no such strides.
        _ => format.strides(t.shape()).is_ok_and(|s| t.numel() == 0 || t.layout().lies_as(&s)),
    }
}

/// SAFETY: called by the interpreter with the parts of a vectorcall.
unsafe extern "C" fn call<const I: usize>(
    o: *mut PyObject,
    args: *const *mut PyObject,
    n: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    guard_object(|py| {
        let (m, n) = (&METHODS[I], n as usize);
        if overrides::active() {
            // SAFETY: the interpreter's promise.
            let given = unsafe { parse::Given::new(args, n, names) };
            if let Some(answer) = overrides::method_of(py, m.name, o, &given)? {
                return Ok(answer);
            }
        }
        let t = borrow(o).ok_or_else(|| raised::<PyTypeError>("expected a Tensor"))?;
        if n == 0 && names.is_null() {
            return (m.read)(py, t, None);
        }
        // SAFETY: the interpreter's promise.
        let given = unsafe { Given::new(py, args, n, names) };
        let most = || positional_arguments(usize::from(!m.parameter.is_empty()));
        let argument = given.only(&m.name.to_string_lossy(), m.parameter, most)?;
        (m.read)(py, t, argument.filter(|v| !v.is_none()))
    })
}

fn def<const I: usize>() -> ffi::PyMethodDef {
    let Method { name, parameter, doc, .. } = &METHODS[I];
    let parameters = if parameter.is_empty() { "$self".into() } else { format!("$self, {parameter}=None") };
    keyword_method(name, &parameters, doc, call::<I>)
}

/// The table as the type wants it, without its end mark.
pub fn table() -> Vec<ffi::PyMethodDef> {
    vec![
        def::<0>(),
        def::<1>(),
        def::<2>(),
        def::<3>(),
        def::<4>(),
        def::<5>(),
        def::<6>(),
        def::<7>(),
        def::<8>(),
        def::<9>(),
        def::<10>(),
        def::<11>(),
        def::<12>(),
    ]
}
