//! Plans as files, for `rustgrad.compiler`: recorded calls that are written, and programs that were read.

use super::compile::PyRecording;
use super::error::{PyResult, raised};
use super::object::{Handle, wrap_bound};
use super::py_types::PyDevice;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustgrad::compile::{self, Naming, Program, Recorded, SaveError, Variant};
use rustgrad::rt::retire::Frame;
use rustgrad::tensor::Tensor;
use std::collections::HashMap;
use std::path::PathBuf;

/// What a call computed.
#[pyclass(name = "_Recorded", module = "rustgrad._C", unsendable)]
pub struct PyRecorded(Recorded);

/// What a recorded call computed, or a text that says why it cannot be run again.
#[pyfunction]
pub fn _compile_recorded<'py>(
    py: Python<'py>,
    recording: &Bound<'py, PyRecording>,
    outputs: Vec<Handle>,
) -> PyResult<Bound<'py, PyAny>> {
    let outputs: Vec<Tensor> = outputs.into_iter().map(|h| h.0).collect();
    let recorder = recording.borrow().take();
    let (recorder, _) = recorder.ok_or_else(|| raised::<PyRuntimeError>("compile: the recording has been used"))?;
    match recorder.finish(&outputs) {
        Ok(recorded) => Ok(Bound::new(py, PyRecorded(recorded))?.into_any()),
        Err(problem) => Ok(PyString::new(py, &problem).into_any()),
    }
}

#[pymethods]
impl PyRecorded {
    /// Whether the results have a graph that can still run, so that the steps are calls as they were made.
    fn has_graph(&self) -> bool {
        self.0.variant == Variant::Recorded
    }
    /// The steps, one a line; equal for calls that computed the same.
    fn listing(&self) -> String {
        self.0.listing()
    }
    /// Writes a file: the tensors of the arguments with their names, other tensors with names, and a text to keep with
    /// them. A text says why this cannot be written.
    fn save(
        &self,
        path: PathBuf,
        inputs: Vec<Handle>,
        input_names: Vec<String>,
        named: Vec<(Handle, String)>,
        interface: &str,
    ) -> PyResult<Option<String>> {
        let inputs: Vec<Tensor> = inputs.into_iter().map(|h| h.0).collect();
        let names: HashMap<usize, String> = named.iter().map(|(t, name)| (t.0.id(), name.clone())).collect();
        let naming = Naming { inputs: &inputs, input_names: &input_names, names: &names };
        match compile::save(&self.0, &naming, interface, &path) {
            Ok(()) => Ok(None),
            Err(SaveError::Unsupported(problem)) => Ok(Some(problem)),
            Err(SaveError::Failed(e)) => Err(e.into()),
        }
    }
}

/// A plan from a file.
#[pyclass(name = "_Program", module = "rustgrad._C", frozen)]
pub struct PyProgram(Program);

#[pyfunction]
#[pyo3(signature = (path, device=None))]
pub fn _compile_load(path: PathBuf, device: Option<PyRef<PyDevice>>) -> PyResult<PyProgram> {
    Ok(PyProgram(match device {
        None => compile::load(path)?,
        Some(d) => compile::load_on(path, d.0.device()?)?,
    }))
}

#[pymethods]
impl PyProgram {
    fn run<'py>(&self, py: Python<'py>, inputs: Vec<Handle>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        // SAFETY: the interpreter lock is held here and where the frame is dropped.
        let _frame = unsafe { Frame::enter() };
        let inputs: Vec<Tensor> = inputs.into_iter().map(|h| h.0).collect();
        // Other threads may run meanwhile: what the steps read keeps its form until they are done.
        let pinned: Vec<_> = inputs.iter().chain(self.0.tensors().iter().map(|(_, t)| t)).map(Tensor::pin).collect();
        let results = py.detach(|| {
            let run = self.0.run(&inputs);
            drop(pinned);
            run
        })?;
        results.into_iter().map(|t| wrap_bound(py, t)).collect()
    }
    /// The name, dtype, shape, strides and device of each input.
    #[allow(clippy::type_complexity)] // a row for Python
    fn inputs(&self) -> Vec<(String, String, Vec<usize>, Vec<usize>, String)> {
        let one = |i: &compile::Input| {
            let (shape, strides) = (i.layout.shape.to_vec(), i.layout.strides.to_vec());
            (i.name.clone(), i.dtype.to_string(), shape, strides, i.device.to_string())
        };
        self.0.inputs().iter().map(one).collect()
    }
    /// How many tensors a run returns.
    fn results(&self) -> usize {
        self.0.results()
    }
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        self.0.tensors().iter().map(|(name, t)| Ok((name.clone(), wrap_bound(py, t.clone())?))).collect()
    }
    fn interface(&self) -> &str {
        self.0.interface()
    }
    fn listing(&self) -> String {
        self.0.listing()
    }
}
