//! Tensors as Python data: `item`, `tolist`, `repr`.

use super::error::{PyResult, raised};
use super::lent;
use super::object::{Handle, borrow};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustgrad::device::Device;
use rustgrad::dtype::{Element, Scalar};
use rustgrad::error::{Error, Result};
use rustgrad::op::tracer::{self, Read};
use rustgrad::tensor::Tensor;
use rustgrad::tensor::print;
use rustgrad::with_dtype;

/// The one element of a tensor as a number.
pub fn item(t: &Tensor) -> Result<Scalar> {
    let n = t.numel();
    if n != 1 {
        return Err(Error::runtime(format!("a Tensor with {n} elements cannot be converted to Scalar")));
    }
    tracer::may_read(t, Read::Values)?;
    if t.device() == Device::Cpu { t.element(t.layout().offset) } else { t.dense_copy(t.dtype())?.element(0) }
}

pub fn scalar_object<'py>(py: Python<'py>, s: Scalar) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: each constructor returns a new reference, or null with an exception set.
    unsafe {
        Ok(Bound::from_owned_ptr_or_err(
            py,
            match s {
                Scalar::Bool(b) => ffi::PyBool_FromLong(b.into()),
                Scalar::Int(i) => ffi::PyLong_FromLongLong(i),
                Scalar::UInt(u) => ffi::PyLong_FromUnsignedLongLong(u),
                Scalar::Float(f) => ffi::PyFloat_FromDouble(f),
                Scalar::Complex(re, im) => ffi::PyComplex_FromDoubles(re, im),
            },
        )?)
    }
}

/// The value of a one-element tensor as a Python number; `truth`: for a branch.
#[pyfunction]
#[pyo3(signature = (t, truth=false))]
pub fn _item<'py>(py: Python<'py>, t: &Bound<'py, PyAny>, truth: bool) -> PyResult<Bound<'py, PyAny>> {
    let t = borrow(t.as_ptr()).ok_or_else(|| raised::<PyTypeError>("item(): expected a Tensor"))?;
    if truth {
        tracer::may_read(t, Read::Truth)?;
    } else if t.numel() == 1
        && let Some(lent) = lent::read(py, t, || Ok(vec![item(t)?]))?
    {
        return Ok(lent[0].clone());
    }
    scalar_object(py, item(t)?)
}

/// The elements as nested lists (a number for 0-d).
#[pyfunction]
pub fn _tolist<'py>(py: Python<'py>, t: Handle) -> PyResult<Bound<'py, PyAny>> {
    tracer::may_read(&t.0, Read::Values)?;
    if tracer::enabled()
        && let Some(list) = lent_list(py, &t.0)?
    {
        return Ok(list);
    }
    // A separate handle: creating lists may run the garbage collector, which may run arbitrary code.
    let host = t.0.detach().dense_copy(t.0.dtype())?;
    if host.ndim() == 0 {
        return scalar_object(py, item(&host)?);
    }
    with_dtype!(host.dtype(), T => {
        // SAFETY: a dense copy holds as many elements of its dtype, in order.
        let elements = unsafe { std::slice::from_raw_parts(host.ptr()? as *const T, host.numel()) };
        nested(py, host.shape(), elements)
    })
}

/// The elements of a small tensor as numbers that a recorded function may return.
#[cold]
fn lent_list<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    let elements = || {
        let host = t.detach().dense_copy(t.dtype())?;
        let start = host.layout().offset;
        (0..host.numel()).map(|i| Ok(host.element(start + i)?)).collect()
    };
    let small = (1..=LENT).contains(&t.numel());
    if !small {
        return Ok(None);
    }
    let Some(items) = lent::read(py, t, elements)? else { return Ok(None) };
    fn nested<'py>(py: Python<'py>, shape: &[usize], items: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
        let &[_, ref inner @ ..] = shape else { return Ok(items[0].clone()) };
        let step = inner.iter().product::<usize>();
        let rows = items.chunks(step).map(|row| nested(py, inner, row)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, rows)?.into_any())
    }
    nested(py, t.shape(), &items).map(Some)
}

/// Elements up to which `tolist` gives numbers of their own while a call is recorded.
const LENT: usize = 256;

/// The elements of a dense array with at least one dimension, as nested lists. Errors: MemoryError.
fn nested<'py, T: Element>(py: Python<'py>, shape: &[usize], elements: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let &[n, ref inner @ ..] = shape else { return Err(Error::internal("tolist: 0-d tensors are numbers").into()) };
    let step = inner.iter().product::<usize>();
    // SAFETY: a list of `n` slots, each of which is set once to a new reference.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(n as ffi::Py_ssize_t))?;
        for i in 0..n {
            let item = match inner {
                [] => scalar_object(py, elements[i].to_scalar())?,
                _ => nested(py, inner, &elements[i * step..(i + 1) * step])?,
            };
            ffi::PyList_SET_ITEM(list.as_ptr(), i as ffi::Py_ssize_t, item.into_ptr());
        }
        Ok(list)
    }
}

/// The printed form of a tensor, identical to PyTorch's. `prefix` is the text before the bracket.
#[pyfunction]
#[pyo3(signature = (t, prefix=None))]
pub fn _repr(t: Handle, prefix: Option<&str>) -> PyResult<String> {
    Ok(text(&t.0, prefix.unwrap_or("tensor("))?)
}

fn text(t: &Tensor, prefix: &str) -> Result<String> {
    // A view whose history became invalid can still be printed; other attributes raise the error.
    let made_by = rustgrad::autograd::history::grad_fn(t);
    // A tensor on the GPU is brought over once, not element by element; of one on meta no element is asked for.
    let host = if t.device().is_gpu() { t.dense_copy(t.dtype())? } else { t.clone() };
    let layout = host.layout();
    let get = |index: &[usize]| {
        let at = layout.offset + index.iter().zip(&layout.strides).map(|(i, s)| i * s).sum::<usize>();
        host.element(at).unwrap_or(Scalar::Float(f64::NAN))
    };
    let node = made_by.as_ref().map_or(Some("Invalid".into()), |e| e.as_ref().map(rustgrad::tensor::Edge::name));
    Ok(print::format(&print::PrintInput {
        prefix,
        shape: t.shape(),
        dtype: t.dtype(),
        get: &get,
        device: t.device(),
        requires_grad: t.requires_grad(),
        grad_fn: node.as_deref(),
    }))
}

#[pyfunction]
#[pyo3(signature = (precision=None, threshold=None, edgeitems=None, linewidth=None, sci_mode=None))]
pub fn _set_printoptions(
    precision: Option<usize>,
    threshold: Option<f64>,
    edgeitems: Option<usize>,
    linewidth: Option<usize>,
    sci_mode: Option<bool>,
) {
    let mut o = print::options();
    o.precision = precision.unwrap_or(o.precision);
    o.threshold = threshold.map_or(o.threshold, |t| if t.is_finite() && t >= 0.0 { t as usize } else { usize::MAX });
    o.edgeitems = edgeitems.unwrap_or(o.edgeitems);
    o.linewidth = linewidth.unwrap_or(o.linewidth);
    o.sci_mode = sci_mode;
    print::set_options(o);
}
