//! A plan from a file: loaded, given tensors, run.

use super::container::{self, Contents};
use super::decode::{Decoded, Input, decode};
use super::encode::{Encoded, Naming, encode};
use crate::autograd::GradGuard;
use crate::compile::passes::Passes;
use crate::compile::plan::{Failure, Plan};
use crate::compile::recorded::Recorded;
use crate::device::{self, Device};
use crate::dispatch::autocast;
use crate::dtype::{DType, default_dtype};
use crate::error::{Class, Error, Result, Show};
use crate::tensor::Tensor;
use std::path::Path;
use std::sync::OnceLock;

/// What the file says that it is.
const FORMAT: &str = "rustgrad.plan";
/// The version that is written; it and earlier ones are read.
const VERSION: u32 = 1;

/// What a function computes, without the function: loaded from a file that `compiler.save` wrote.
///
/// ```no_run
/// let program = rustgrad::compile::load("model.rgx")?;
/// # let image = rustgrad::tensor::Tensor::from_slice(&[0f32], &[1])?;
/// let results = program.run(&[image])?;
/// # Ok::<(), rustgrad::error::Error>(())
/// ```
pub struct Program {
    /// As it was saved; the first run makes of it what passes make, for the runs after.
    plan: Plan,
    optimized: OnceLock<Plan>,
    inputs: Vec<Input>,
    tensors: Vec<(String, Tensor)>,
    interface: String,
    results: usize,
    dtype: DType,
    device: Device,
}

/// Loads a program; its tensors go to the devices where they were when it was saved.
///
/// Errors: ValueError for a file that is damaged, or that another version wrote and this one cannot read; RuntimeError for
/// one that cannot be opened, or whose device is not here.
pub fn load(path: impl AsRef<Path>) -> Result<Program> {
    Program::load(path.as_ref(), None)
}

/// `load` with all tensors on one device.
pub fn load_on(path: impl AsRef<Path>, device: Device) -> Result<Program> {
    Program::load(path.as_ref(), Some(device))
}

/// Writes a recorded call to a file; a text says why it cannot be written. `interface` comes back with the program.
pub fn save(recorded: &Recorded, naming: &Naming, interface: &str, path: &Path) -> std::result::Result<(), SaveError> {
    let Encoded { graph, memories } = encode(recorded, naming).map_err(SaveError::Unsupported)?;
    // What is written can be read.
    let read = decode(&graph, memories.iter().cloned().collect(), None);
    read.map_err(|e| SaveError::Unsupported(format!("its plan does not come back from the file: {e}")))?;
    let version = VERSION.to_string();
    let producer = concat!("rustgrad ", env!("CARGO_PKG_VERSION"));
    let texts = [
        ("format", FORMAT),
        ("version", &version),
        ("producer", producer),
        ("graph", &graph),
        ("interface", interface),
    ];
    container::write(path, &texts, &memories).map_err(|e| match e.class() {
        Class::Value => SaveError::Unsupported(e.message().to_string()),
        _ => SaveError::Failed(e),
    })
}

/// Why a file was not written.
pub enum SaveError {
    /// The call does what a file cannot hold.
    Unsupported(String),
    Failed(Error),
}

impl Program {
    fn load(path: &Path, target: Option<Device>) -> Result<Program> {
        let wrong = |e: Error| match e.class() {
            Class::Value => Error::value(format!("{}: {}", path.display(), e.message())),
            _ => e,
        };
        let Contents { mut texts, tensors } = container::read(path).map_err(wrong)?;
        let mut text = |key: &str| {
            let lacks = || wrong(Error::value(format!("no plan: the file has no text '{key}'")));
            texts.remove(key).ok_or_else(lacks)
        };
        if text("format")? != FORMAT {
            return Err(wrong(Error::value("the file is no plan")));
        }
        let (version, producer) = (text("version")?, text("producer")?);
        match version.parse::<u32>() {
            Ok(1..=VERSION) => {}
            Ok(n) if n > VERSION => {
                return Err(wrong(Error::value(format!(
                    "{producer} wrote the file in version {n}; expected {VERSION} or less. Update rustgrad."
                ))));
            }
            _ => return Err(wrong(Error::value(format!("there is no version '{version}' of plans")))),
        }
        let Decoded { recorded, inputs, tensors, dtype, device } = decode(&text("graph")?, tensors, target)
            .map_err(|e| wrong(if e.class() == Class::Value { said_by(&producer, e) } else { e }))?;
        let (interface, results) = (text("interface")?, recorded.results.len());
        let plan = recorded.into_plan(Passes::NONE);
        Ok(Program { plan, optimized: OnceLock::new(), inputs, tensors, interface, results, dtype, device })
    }

    /// What `run` expects, in order.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }
    /// The tensors of the file by name: parameters, buffers, constants. A program that trains writes to them.
    pub fn tensors(&self) -> &[(String, Tensor)] {
        &self.tensors
    }
    /// How many tensors `run` returns.
    pub fn results(&self) -> usize {
        self.results
    }
    /// The text that was saved with the plan.
    pub fn interface(&self) -> &str {
        &self.interface
    }
    /// The steps, one a line.
    pub fn listing(&self) -> String {
        self.plan.listing(&[])
    }

    /// Runs the steps on tensors of the shapes, strides, dtypes and devices of `inputs`; nothing is recorded for gradients.
    ///
    /// Errors: TypeError for another number of tensors or another dtype, ValueError for another shape, strides or shared
    /// memory, RuntimeError for another device or default dtype; those of the ops.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check(inputs)?;
        let _modes = Modes::new(self.device);
        let Some(plan) = self.optimized.get() else {
            let (results, plan) = self.plan.run_and_optimize(inputs, Passes::ALL)?;
            if let Some(plan) = plan {
                // Another thread may have been first.
                let _ = self.optimized.set(plan);
            }
            return Ok(results.into_vec());
        };
        let run = plan.run(inputs, &[], &[]).map_err(|f| match f {
            Failure::Before(e) | Failure::After(e) => e,
        });
        run.map(|ran| ran.tensors.into_vec())
    }
    fn check(&self, inputs: &[Tensor]) -> Result<()> {
        if inputs.len() != self.inputs.len() {
            return Err(Error::type_(format!("run: expected {} tensors, got {}", self.inputs.len(), inputs.len())));
        }
        if default_dtype() != self.dtype {
            return Err(Error::runtime(format!(
                "run: the default dtype is {}; expected {}, as when the plan was saved. Call set_default_dtype.",
                default_dtype(),
                self.dtype
            )));
        }
        for (i, (t, expected)) in inputs.iter().zip(&self.inputs).enumerate() {
            expected.check(t)?;
            let same = inputs[..i].iter().position(|o| o.same(t));
            let near = inputs[..i].iter().position(|o| o.storage().same(t.storage())).filter(|_| same.is_none());
            let near = near.map(|j| (j, t.first_byte() - inputs[j].first_byte()));
            let wrong = |what: &str, j: usize| {
                Error::value(format!(
                    "run: '{}' {what} '{}' when the plan was saved",
                    expected.name, self.inputs[j].name
                ))
            };
            match (expected.same, expected.shares) {
                (found, _) if found != same => match found {
                    Some(j) => return Err(wrong("was the same tensor as", j)),
                    None => return Err(wrong("was another tensor than", same.unwrap_or(0))),
                },
                (None, found) if found != near => match found {
                    Some((j, by)) => return Err(wrong(&format!("began {by} bytes after"), j)),
                    None => return Err(wrong("shared no memory with", near.map_or(0, |(j, _)| j))),
                },
                _ => {}
            }
            if let Some((name, _)) = self.tensors.iter().find(|(_, o)| o.storage().same(t.storage())) {
                return Err(Error::value(format!("run: '{}' shares memory with the plan's '{name}'", expected.name)));
            }
        }
        Ok(())
    }
}

/// With the program that wrote the file, where that is another one.
fn said_by(producer: &str, e: Error) -> Error {
    let ours = concat!("rustgrad ", env!("CARGO_PKG_VERSION"));
    let by = if producer == ours { String::new() } else { format!(" The file was written by {producer}.") };
    Error::value(format!("{}.{by}", e.message()))
}

impl Input {
    fn check(&self, t: &Tensor) -> Result<()> {
        let name = &self.name;
        if t.dtype() != self.dtype {
            let hint = format!("Convert it with .to({}).", self.dtype);
            return Err(Error::type_(format!("run: '{name}' is {}; expected {}. {hint}", t.dtype(), self.dtype)));
        }
        let (shape, strides) = (self.layout.shape.as_slice(), self.layout.strides.as_slice());
        if t.shape() != shape {
            return Err(Error::value(format!("run: '{name}' has shape {}; expected {}", Show(t.shape()), Show(shape))));
        }
        let reached = |d: usize| shape[d] > 1 && t.numel() > 0;
        if (0..shape.len()).any(|d| reached(d) && t.strides()[d] != strides[d]) {
            return Err(Error::value(format!(
                "run: '{name}' has strides {}; expected {}. Copy it into a tensor of these strides.",
                Show(t.strides()),
                Show(strides)
            )));
        }
        match t.device() == self.device {
            true => Ok(()),
            false => Err(Error::runtime(format!(
                "run: '{name}' is on {}; expected {}. Move it with .to(device).",
                t.device(),
                self.device
            ))),
        }
    }
}

/// The modes of a run, until it is dropped.
struct Modes {
    _grad: GradGuard,
    _autocast: Option<autocast::Off>,
}

impl Modes {
    fn new(device: Device) -> Modes {
        device::enter_default_device(device);
        Modes { _grad: GradGuard::new(false), _autocast: autocast::Off::new() }
    }
}
impl Drop for Modes {
    fn drop(&mut self) {
        device::leave_default_device();
    }
}
