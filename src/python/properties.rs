//! The properties of `Tensor` implemented in Rust: a table of names, getters and setters behind two entry points.

use super::convert::type_name;
use super::error::{PyResult, guard, guard_object, raised};
use super::object::{borrow, wrap};
use super::overrides;
use super::parse::Given;
use super::py_types::{PyDType, PyDevice, dtype_object, size_object};
use super::warnings::warn_user;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use rustgrad::autograd::history;
use rustgrad::autograd::opaque::is_opaque;
use rustgrad::device::{self, Device};
use rustgrad::op::tracer::{self, Change};
use rustgrad::tensor::{HAS_FN, INFERENCE, Meta, RETAINS, Tensor};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

type Get = fn(Python, &Tensor) -> PyResult<*mut PyObject>;
type Set = fn(&Tensor, Option<&Bound<PyAny>>) -> PyResult<()>;

struct Property {
    name: &'static CStr,
    doc: &'static CStr,
    get: Get,
    set: Option<Set>,
}

fn number(py: Python, n: usize) -> PyResult<*mut PyObject> {
    Ok(n.into_pyobject(py)?.into_any().into_ptr())
}

fn optional(py: Python, t: Option<Tensor>) -> PyResult<*mut PyObject> {
    match t {
        Some(t) => wrap(py, t),
        None => Ok(py.None().into_ptr()),
    }
}

fn boolean(py: Python, b: bool) -> PyResult<*mut PyObject> {
    Ok(pyo3::types::PyBool::new(py, b).to_owned().into_any().into_ptr())
}

const fn read(name: &'static CStr, doc: &'static CStr, get: Get) -> Property {
    Property { name, doc, get, set: None }
}
const fn write(name: &'static CStr, doc: &'static CStr, get: Get, set: Set) -> Property {
    Property { name, doc, get, set: Some(set) }
}

static PROPERTIES: &[Property] = &[
    read(c"shape", c"The sizes of the dimensions.", |py, t| size_object(py, t.shape())),
    read(c"dtype", c"The type of the elements.", |py, t| Ok(dtype_object(py, t.dtype())?.into_ptr())),
    read(c"device", c"Where the tensor lives.", |py, t| Ok(Py::new(py, PyDevice(t.device().into()))?.into_ptr())),
    read(c"ndim", c"The number of dimensions.", |py, t| number(py, t.ndim())),
    read(c"itemsize", c"Bytes per element.", |py, t| number(py, t.dtype().size())),
    read(c"nbytes", c"Bytes of all elements.", |py, t| number(py, t.numel() * t.dtype().size())),
    read(c"_version", c"How often the storage has been written in place.", |py, t| {
        if t.flag(INFERENCE) {
            return Err(raised::<PyRuntimeError>("Inference tensors do not track version counter."));
        }
        number(py, t.version() as usize)
    }),
    read(c"_cdata", c"A number that no other living tensor has: it stays while `.data` is replaced.", |py, t| number(py, t.id())),
    read(c"is_leaf", c"True for tensors that no recorded op made.", |py, t| {
        boolean(py, history::grad_fn(t)?.is_none())
    }),
    read(c"is_cpu", c"Whether the tensor is on the CPU.", |py, t| boolean(py, t.device() == Device::Cpu)),
    read(c"is_meta", c"Whether the tensor has no memory, only a shape, strides and a dtype.", |py, t| {
        boolean(py, t.device() == Device::Meta)
    }),
    read(c"is_cuda", c"Whether the tensor is on the GPU, where the name `cuda` stands for it.", |py, t| {
        boolean(py, t.device().is_gpu() && device::is_cuda_alias())
    }),
    read(c"is_gpu", c"Whether the tensor is on a GPU.", |py, t| boolean(py, t.device().is_gpu())),
    read(c"retains_grad", c"Whether a non-leaf keeps its gradient.", |py, t| boolean(py, t.flag(RETAINS))),
    read(c"grad_fn", c"The node of the backward graph that made the tensor; None for leaves.", |py, t| {
        super::graph::edge_object(py, history::grad_fn(t)?)
    }),
    write(
        c"_grad_fn",
        c"The same; None can be assigned, which detaches the tensor.",
        |py, t| super::graph::edge_object(py, history::grad_fn(t)?),
        |t, v| match v {
            Some(v) if v.is_none() => super::graph::detach_in_place(t),
            Some(_) => Err(raised::<PyRuntimeError>("_grad_fn can be only set to None")),
            None => Err(raised::<PyRuntimeError>("Deletion of _grad_fn not allowed. Detach tensor instead!")),
        },
    ),
    read(c"output_nr", c"Which output of its grad_fn the tensor is.", |py, t| {
        number(py, history::grad_fn(t)?.map_or(0, |e| e.output() as usize))
    }),
    read(c"_base", c"The tensor whose storage this is a view of; None if it is none.", |py, t| {
        optional(py, t.view_info().map(|v| v.base.clone()))
    }),
    write(
        c"requires_grad",
        c"Whether gradients are computed for the tensor.",
        |py, t| boolean(py, t.requires_grad()),
        set_requires_grad,
    ),
    write(c"grad", c"The accumulated gradient, or None.", get_grad, set_grad),
    write(c"_grad", c"The same, without the warning that non-leaves have none.", |py, t| optional(py, t.grad()), set_grad),
    write(
        c"grad_dtype",
        c"The dtype that gradients are cast to: by default the tensor's; None for any. Only leaves can be given another.",
        get_grad_dtype,
        set_grad_dtype,
    ),
    write(
        c"data",
        c"The same memory without history; assigning gives the tensor other memory.",
        |py, t| overrides::wrap_like(py, data(t), t),
        set_data,
    ),
];

fn get_grad(py: Python, t: &Tensor) -> PyResult<*mut PyObject> {
    let grad = t.grad();
    if grad.is_none() && t.flag(HAS_FN) && !t.flag(RETAINS) {
        warn_of_non_leaf(py)?;
    }
    optional(py, grad)
}

#[cold]
fn warn_of_non_leaf(py: Python) -> PyResult<()> {
    let text = c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.";
    warn_user(py, text, 1)
}

fn data(t: &Tensor) -> Tensor {
    // As in PyTorch, `.data` has a separate version counter: autograd does not notice writes through it.
    let meta = t.meta().clone();
    let data = Tensor::from_meta(Meta { storage: meta.storage.unversioned(), ..meta });
    data.set_flag(INFERENCE, t.flag(INFERENCE));
    data
}

fn set_requires_grad(t: &Tensor, v: Option<&Bound<PyAny>>) -> PyResult<()> {
    let on = v.and_then(|v| v.extract::<bool>().ok());
    let on = on.ok_or_else(|| raised::<PyRuntimeError>("requires_grad must be a bool"))?;
    super::graph::change_requires_grad(t, on, true)
}

fn set_grad(t: &Tensor, v: Option<&Bound<PyAny>>) -> PyResult<()> {
    let Some(v) = v.filter(|v| !v.is_none()) else {
        t.set_grad(None);
        tracer::notify(|tracer| tracer.changed(t, Change::Grad));
        return Ok(());
    };
    let g = borrow(v.as_ptr()).ok_or_else(|| {
        raised::<PyTypeError>(format!(
            "assigned grad expected to be a Tensor or None but got grad of type {}",
            type_name(v)
        ))
    })?;
    if g.same(t) {
        return Err(raised::<PyRuntimeError>("can't assign Variable as its own grad"));
    }
    if let Some(wanted) = t.grad_dtype().filter(|&d| d != g.dtype()) {
        return Err(raised::<PyRuntimeError>(format!(
            "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the \
             tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a \
             specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and \
             its gradient may break downstream systems that assume they match.",
            g.dtype().cpp_name(),
            wanted.scalar_type_name()
        )));
    }
    if g.device() != t.device() && !is_opaque(g) {
        return Err(raised::<PyRuntimeError>(format!(
            "attempting to assign a gradient located on device with index '{}' to a tensor located on device with index '{}'. Please ensure the gradient and the tensor are on the same device",
            g.device(),
            t.device()
        )));
    }
    if g.shape() != t.shape() {
        return Err(raised::<PyRuntimeError>(format!(
            "attempting to assign a gradient of size '{}' to a tensor of size '{}'. Please ensure that the gradient and the tensor are the same size",
            rustgrad::error::Show(g.shape()),
            rustgrad::error::Show(t.shape())
        )));
    }
    t.set_grad(Some(g.clone()));
    tracer::notify(|tracer| tracer.changed(t, Change::Grad));
    Ok(())
}

fn get_grad_dtype(py: Python, t: &Tensor) -> PyResult<*mut PyObject> {
    match t.grad_dtype() {
        Some(d) => Ok(dtype_object(py, d)?.into_ptr()),
        None => Ok(py.None().into_ptr()),
    }
}

fn set_grad_dtype(t: &Tensor, v: Option<&Bound<PyAny>>) -> PyResult<()> {
    let refuse = |text: String| Err(raised::<PyRuntimeError>(text));
    let Some(v) = v else { return refuse("grad_dtype cannot be deleted".into()) };
    let dtype = v.cast::<PyDType>().ok().map(|d| d.get().0.dtype()).transpose()?;
    if dtype.is_none() && !v.is_none() {
        return refuse(format!("grad_dtype must be a torch.dtype or None, but got {}", type_name(v)));
    }
    if !t.is_leaf() {
        warn_of_non_leaf(v.py())?;
        return refuse("grad_dtype can only be set on leaf tensors.".into());
    }
    if let Some(d) = dtype.filter(|&d| !d.is_differentiable() && d != t.dtype()) {
        return refuse(format!("grad_dtype must be a floating point or complex dtype, but got {d}"));
    }
    if let (Some(d), Some(g)) = (dtype, t.grad())
        && g.dtype() != d
    {
        return refuse(format!(
            "Cannot set grad_dtype to '{}' because there is already a gradient with dtype '{}'. Please clear the gradient \
             (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype.",
            d.scalar_type_name(),
            g.dtype().cpp_name()
        ));
    }
    t.set_grad_dtype(dtype);
    Ok(())
}

fn set_data(t: &Tensor, v: Option<&Bound<PyAny>>) -> PyResult<()> {
    let v = v.ok_or_else(|| raised::<PyRuntimeError>("Deleting tensor data is not allowed. Delete tensor instead!"))?;
    let v = borrow(v.as_ptr()).ok_or_else(|| raised::<PyTypeError>("Variable data has to be a tensor"))?;
    if t.requires_grad() && !v.dtype().is_differentiable() {
        return Err(raised::<PyRuntimeError>(
            "data set to a tensor that requires gradients must be floating point or complex dtype",
        ));
    }
    if v.same(t) {
        return Ok(());
    }
    if is_opaque(v) {
        return Err(raised::<PyRuntimeError>(
            "data: expected a tensor of layout Strided, got a sparse one; the layout of a tensor does not change",
        ));
    }
    let meta = v.meta().clone();
    let meta = Meta { storage: meta.storage.counted_by(t.storage()), ..meta };
    let same = t.device() == meta.storage.device() && t.shape() == meta.layout.shape.as_slice();
    if !same || t.dtype() != meta.dtype {
        t.set_accumulator(None);
    }
    t.set_meta(meta)?;
    tracer::notify(|tracer| tracer.changed(t, Change::Data));
    Ok(())
}

/// The answer of a class or mode that overrides the access; the function it is handed is `Tensor.<name>.__get__` or `__set__`.
fn offered(
    py: Python,
    p: &Property,
    access: &CStr,
    o: *mut PyObject,
    values: &[*mut PyObject],
) -> PyResult<Option<*mut PyObject>> {
    let function = || Ok(overrides::of_class(py, &p.name.to_string_lossy())?.getattr(&*access.to_string_lossy())?);
    overrides::method(py, function, Some(o), &Given { positional: values, names: null_mut(), values: &[] })
}

unsafe extern "C" fn get(o: *mut PyObject, property: *mut c_void) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the closure is an entry of the static table.
        let p = unsafe { &*property.cast::<Property>() };
        if overrides::active()
            && let Some(answer) = offered(py, p, c"__get__", o, &[])?
        {
            return Ok(answer);
        }
        (p.get)(py, borrow(o).ok_or_else(|| raised::<PyTypeError>("expected a Tensor"))?)
    })
}

unsafe extern "C" fn set(o: *mut PyObject, value: *mut PyObject, property: *mut c_void) -> c_int {
    guard(-1, |py| {
        // SAFETY: the closure is an entry of the static table; `value` is null on deletion, else live.
        let (p, value) = unsafe { (&*property.cast::<Property>(), Bound::from_borrowed_ptr_or_opt(py, value)) };
        if overrides::active()
            && let Some(value) = &value
            && let Some(answer) = offered(py, p, c"__set__", o, &[value.as_ptr()])?
        {
            // SAFETY: a new reference, which nobody wants.
            unsafe { ffi::Py_DECREF(answer) };
            return Ok(0);
        }
        let setter = p.set.ok_or_else(|| raised::<PyTypeError>("the attribute is read-only"))?;
        setter(borrow(o).ok_or_else(|| raised::<PyTypeError>("expected a Tensor"))?, value.as_ref())?;
        Ok(0)
    })
}

/// The table for the type, without its terminator.
pub fn table() -> Vec<ffi::PyGetSetDef> {
    let def = |p: &'static Property| ffi::PyGetSetDef {
        name: p.name.as_ptr(),
        get: Some(get),
        set: p.set.map(|_| set as ffi::setter),
        doc: p.doc.as_ptr(),
        closure: std::ptr::from_ref(p).cast_mut().cast(),
    };
    PROPERTIES.iter().map(def).collect()
}
