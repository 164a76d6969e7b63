//! The small Python types: dtype, device, Size, Generator.

use super::error::{PyResult, raised};
use super::heap_type::HeapType;
use super::overrides::native;
use super::warnings::warn_user;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyTuple, PyType};
use rustgrad::device::{Device, Name};
use rustgrad::dtype::{self, Category, DType};
use rustgrad::op::Generator;
use rustgrad::op::generator::{State, default_generator, fresh_seed, seed_all};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The type of an element, such as `rustgrad.float32`. PyTorch's other dtypes can be named and compared.
#[pyclass(name = "dtype", module = "rustgrad", frozen)]
pub struct PyDType(pub dtype::Name);

static DTYPES: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The unique object of a dtype.
pub fn dtype_object(py: Python, d: DType) -> PyResult<Py<PyAny>> {
    Ok(dtype_objects(py)?[d as usize].clone_ref(py).into_any())
}

/// The objects of all dtypes, those that are here first.
pub fn dtype_objects(py: Python<'_>) -> PyResult<&Vec<Py<PyDType>>> {
    let make = || dtype::Name::all().map(|name| Py::new(py, PyDType(name))).collect();
    Ok(DTYPES.get_or_try_init(py, make)?)
}

fn named_dtype(py: Python, name: dtype::Name) -> PyResult<Py<PyAny>> {
    let found = dtype_objects(py)?.iter().find(|o| o.get().0 == name);
    Ok(found.ok_or_else(|| raised::<PyRuntimeError>("a dtype without an object"))?.clone_ref(py).into_any())
}

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.name())
    }
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.category() == Category::Float
    }
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.category() == Category::Complex
    }
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }
    /// Bytes per element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }
    /// The component dtype of a complex dtype; any other dtype unchanged.
    fn to_real(&self, py: Python) -> PyResult<Py<PyAny>> {
        named_dtype(py, self.0.to_real())
    }
    /// The complex dtype whose components have this dtype. Errors: RuntimeError for dtypes that are not floating point.
    fn to_complex(&self, py: Python) -> PyResult<Py<PyAny>> {
        named_dtype(py, self.0.to_complex()?)
    }
    /// The name without the module: `float32`.
    #[getter]
    fn _name(&self) -> &'static str {
        self.0.name()
    }
    /// The name in legacy type strings: `Float`.
    #[getter]
    fn _scalar_type_name(&self) -> &'static str {
        self.0.scalar_type_name()
    }
}

/// A dtype from what users pass: a dtype object or a Python number type. Errors: NotImplementedError for one that is not here.
pub fn to_dtype(o: &Bound<PyAny>) -> PyResult<Option<DType>> {
    if let Ok(d) = o.cast::<PyDType>() {
        return Ok(Some(d.get().0.dtype()?));
    }
    // Only addresses are compared.
    let is = |class: *mut ffi::PyTypeObject| o.as_ptr() == class.cast();
    Ok(if is(&raw mut ffi::PyFloat_Type) {
        Some(DType::F64)
    } else if is(&raw mut ffi::PyLong_Type) {
        Some(DType::I64)
    } else if is(&raw mut ffi::PyBool_Type) {
        Some(DType::Bool)
    } else if is(&raw mut ffi::PyComplex_Type) {
        Some(DType::C128)
    } else {
        None
    })
}

/// The device of a tensor: `device('cpu')`, `device('gpu', 0)`. Any device type of PyTorch can be named and compared.
#[pyclass(name = "device", module = "rustgrad", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub struct PyDevice(pub Name);

fn device_index(i: i64) -> PyResult<u8> {
    if i < 0 {
        return Err(raised::<PyRuntimeError>("Device index must not be negative"));
    }
    u8::try_from(i).map_err(|_| raised::<PyRuntimeError>(format!("Device index must be below 256, got {i}")))
}

/// A device object, a string, or the index of a GPU.
fn named(o: &Bound<PyAny>) -> PyResult<Option<Name>> {
    if let Ok(d) = o.cast::<PyDevice>() {
        return Ok(Some(d.get().0));
    }
    if let Ok(s) = o.extract::<&str>() {
        return Ok(Some(Name::parse(s)?));
    }
    // A bare index means an accelerator, as in PyTorch.
    let is_number = o.is_instance_of::<PyInt>() && !o.is_instance_of::<PyBool>();
    Ok(if is_number { Some(Device::Gpu(device_index(o.extract()?)?).into()) } else { None })
}

impl PyDevice {
    fn named(r#type: Option<&Bound<PyAny>>, index: Option<i64>, device: Option<&Bound<PyAny>>) -> PyResult<PyDevice> {
        let given = r#type.xor(device);
        let Some(name) = given.map(named).transpose()?.flatten() else {
            let got = given.map_or(String::new(), super::convert::type_name);
            return Err(raised::<PyTypeError>(format!(
                "device() received an invalid combination of arguments - got ({got}), but expected one of:\n * (torch.device device)\n \
                 * (str type, int index = -1)\n"
            )));
        };
        let Some(i) = index else { return Ok(PyDevice(name)) };
        let given = given.and_then(|o| o.extract::<&str>().ok());
        let text = given.ok_or_else(|| {
            raised::<PyTypeError>("device(): argument 'type' (position 1) must be str where an index is given")
        })?;
        if text.contains(':') {
            return Err(raised::<PyRuntimeError>(format!(
                "type (string) must not include an index because index was passed explicitly: {text}"
            )));
        }
        Ok(PyDevice(Name { index: Some(device_index(i)?), ..name }.resolved()))
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type=None, index=None, *, device=None))]
    #[allow(clippy::new_ret_no_self)] // A mode may return any object.
    fn new<'py>(
        py: Python<'py>,
        r#type: Option<&Bound<'py, PyAny>>,
        index: Option<i64>,
        device: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let positional: SmallVec<[_; 1]> = r#type.into_iter().collect();
        let number = index.map(|i| i.into_pyobject(py)).transpose()?.map(Bound::into_any);
        match native(py, "device", &positional, &[("index", number.as_ref()), ("device", device)])? {
            Some(answer) => Ok(answer),
            None => Ok(Bound::new(py, PyDevice::named(r#type, index, device)?)?.into_any()),
        }
    }
    /// The device type: `"cpu"`, `"gpu"`.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.kind
    }
    /// The index of the device; None for the CPU, or if none was given.
    #[getter]
    fn index(&self) -> Option<u8> {
        self.0.index
    }
    fn __repr__(&self) -> String {
        match self.0.index {
            None => format!("device(type='{}')", self.0.kind),
            Some(i) => format!("device(type='{}', index={i})", self.0.kind),
        }
    }
    fn __str__(&self) -> String {
        self.0.to_string()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let arguments = match self.0.index {
            None => (self.0.kind,).into_pyobject(py)?,
            Some(i) => (self.0.kind, i).into_pyobject(py)?,
        };
        Ok((py.get_type::<PyDevice>(), arguments))
    }
    /// Within the block, tensors of this thread are created on this device by default. Errors: as for creating a tensor
    /// on it.
    fn __enter__(slf: PyRef<Self>) -> PyResult<PyRef<Self>> {
        rustgrad::device::enter_default_device(slf.0.device()?);
        Ok(slf)
    }
    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<PyTuple>) {
        rustgrad::device::leave_default_device();
    }
}

/// A device from a device object, a string or an index. Errors: RuntimeError for a device that is not available.
pub fn to_device(o: &Bound<PyAny>) -> PyResult<Option<Device>> {
    let device = named(o)?.map(Name::device).transpose()?;
    if device.is_some_and(|d| d.is_gpu()) {
        warn_of_software(o.py())?;
    }
    Ok(device)
}

/// Warns once if the requested GPU is a software adapter that was not selected explicitly.
fn warn_of_software(py: Python) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let Some(name) = rustgrad::gpu::unasked_software() else { return Ok(()) };
    let text = format!(
        "device 'gpu' is {name}, a software adapter: it runs the shaders on the CPU, slower than device 'cpu'. Install the \
         driver of a GPU, or set RUSTGRAD_GPU to pick an adapter without this warning."
    );
    warn_user(py, &std::ffi::CString::new(text)?, 1)
}

/// A source of random numbers with its own seed and position.
#[pyclass(name = "Generator", module = "rustgrad", frozen)]
pub struct PyGenerator(pub Arc<Generator>);

impl PyGenerator {
    fn restore(&self, new_state: super::object::Handle) -> PyResult<()> {
        let t = new_state.0;
        if t.dtype() != DType::U8 || t.device() != Device::Cpu {
            return Err(raised::<PyTypeError>("RNG state must be a torch.ByteTensor"));
        }
        let host = t.dense_copy(DType::U8)?;
        let first = host.layout().offset;
        let bytes =
            rustgrad::rt::reserve::try_list((0..host.numel()).map(|i| Ok(host.element(first + i)?.to_i64() as u8)))?;
        self.0.set_state(State::from_bytes(&bytes, self.0.device)?);
        Ok(())
    }
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<&Bound<PyAny>>) -> PyResult<PyGenerator> {
        let device = device.map(to_device).transpose()?.flatten().unwrap_or(Device::Cpu);
        if device == Device::Meta {
            return Err(raised::<PyRuntimeError>("META device type not an accelerator."));
        }
        Ok(PyGenerator(Arc::new(Generator::new(67280421310721, device))))
    }
    /// Sets the seed and restarts the sequence.
    fn manual_seed<'py>(slf: Bound<'py, PyGenerator>, seed: i128) -> PyResult<Bound<'py, PyGenerator>> {
        slf.get().0.set_seed(to_seed(seed)?);
        Ok(slf)
    }
    /// The last seed set.
    fn initial_seed(&self) -> u64 {
        self.0.seed()
    }
    /// Sets the seed to a random number from the system, and returns it.
    fn seed(&self) -> u64 {
        let s = fresh_seed();
        self.0.set_seed(s);
        s
    }
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device.into())
    }
    fn __reduce__<'py>(slf: &Bound<'py, PyGenerator>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, generator) = (slf.py(), slf.get());
        let state = generator.get_state()?.into_pyobject(py)?;
        Ok((slf.get_type(), (generator.0.device.to_string(),), state).into_pyobject(py)?)
    }
    fn __setstate__(&self, state: super::object::Handle) -> PyResult<()> {
        self.restore(state)
    }
    /// A generator that goes on from the same state.
    fn clone_state(&self) -> PyGenerator {
        let clone = Generator::new(0, self.0.device);
        clone.set_state(self.0.state());
        PyGenerator(Arc::new(clone))
    }
    /// The state as a byte tensor: of the CPU as PyTorch saves it, of a GPU the seed and the position.
    fn get_state(&self) -> PyResult<super::object::Handle> {
        let bytes = self.0.state().to_bytes();
        Ok(super::object::Handle(rustgrad::tensor::Tensor::from_slice(&bytes, &[bytes.len()])?))
    }
    /// Restores a state from `get_state`. Errors: TypeError for another dtype; RuntimeError for what is no state.
    fn set_state<'py>(
        slf: Bound<'py, PyGenerator>,
        new_state: super::object::Handle,
    ) -> PyResult<Bound<'py, PyGenerator>> {
        slf.get().restore(new_state)?;
        Ok(slf)
    }
}

fn to_seed(seed: i128) -> PyResult<u64> {
    if !(-(1 << 63)..1 << 64).contains(&seed) {
        return Err(raised::<PyRuntimeError>("Overflow when unpacking long: the seed must fit in 64 bits"));
    }
    Ok(seed as u64)
}

/// The default generator of the CPU.
#[pyfunction]
pub fn _default_generator() -> PyGenerator {
    of_cpu()
}
fn of_cpu() -> PyGenerator {
    PyGenerator(default_generator(Device::Cpu).clone())
}
fn of_gpu() -> PyGenerator {
    PyGenerator(default_generator(Device::Gpu(0)).clone())
}

/// Seeds the default generators, of every device, and restarts their sequences. Returns that of the CPU.
#[pyfunction]
pub fn manual_seed(seed: &Bound<PyAny>) -> PyResult<PyGenerator> {
    // As PyTorch: whatever `int` takes.
    let seed = seed.py().get_type::<PyInt>().call1((seed,))?;
    seed_all(to_seed(seed.extract().unwrap_or(i128::MAX))?);
    Ok(of_cpu())
}
/// Seeds the default generators with a random number from the system, and returns the seed.
#[pyfunction]
pub fn seed() -> u64 {
    let s = fresh_seed();
    seed_all(s);
    s
}
/// The state of the CPU's default generator as a byte tensor.
#[pyfunction]
pub fn get_rng_state() -> PyResult<super::object::Handle> {
    of_cpu().get_state()
}
/// Restores a state of the CPU's default generator from `get_rng_state`.
#[pyfunction]
pub fn set_rng_state(new_state: super::object::Handle) -> PyResult<()> {
    of_cpu().restore(new_state)
}
/// The states of the default generators: of the CPU, and of GPUs.
#[pyfunction]
pub fn _rng_states() -> PyResult<[super::object::Handle; 2]> {
    Ok([of_cpu().get_state()?, of_gpu().get_state()?])
}
/// Restores those of the states that are given.
#[pyfunction]
pub fn _set_rng_states(cpu: Option<super::object::Handle>, gpu: Option<super::object::Handle>) -> PyResult<()> {
    cpu.map_or(Ok(()), |state| of_cpu().restore(state))?;
    gpu.map_or(Ok(()), |state| of_gpu().restore(state))
}
/// The seed of the CPU's default generator.
#[pyfunction]
pub fn initial_seed() -> u64 {
    default_generator(Device::Cpu).seed()
}

static SIZE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// Creates `Size`, a subclass of tuple; Python adds its methods.
pub fn create_size(py: Python) -> PyResult<*mut ffi::PyObject> {
    // Sizes are inherited from tuple.
    let class =
        HeapType { base: &raw mut ffi::PyTuple_Type, ..HeapType::new(c"rustgrad.Size", 0, ffi::Py_TPFLAGS_BASETYPE) };
    let t = class.create(py)?;
    SIZE.store(t, Ordering::Release);
    Ok(t.cast())
}

/// A `Size` of these numbers. A new reference.
pub fn size_object(py: Python, dims: &[usize]) -> PyResult<*mut ffi::PyObject> {
    let class = SIZE.load(Ordering::Relaxed);
    // SAFETY: a tuple subclass is allocated with `dims.len()` items, each of which is set.
    unsafe {
        let o = ffi::PyType_GenericAlloc(class, dims.len() as ffi::Py_ssize_t);
        if o.is_null() {
            return Err(PyErr::fetch(py).into());
        }
        for (i, &d) in dims.iter().enumerate() {
            ffi::PyTuple_SET_ITEM(o, i as ffi::Py_ssize_t, ffi::PyLong_FromSize_t(d));
        }
        Ok(o)
    }
}
