//! Source locations from the interpreter: which line writes to a tensor, and where nodes were created.
//!
//! A location is stored as an index into a list of (code object, instruction), so recording it costs a table lookup and
//! no text. The list is bounded; writes from further locations are not recorded.

use super::error::PyResult;
use super::graph::{metadata, node_object};
use super::warnings::warn_user;
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustgrad::autograd::Node;
use rustgrad::autograd::diagnostics::{Witness, install};
use rustgrad::autograd::engine::PointerHasher;
use rustgrad::op::{Forms, Op};
use std::collections::HashMap;
use std::ffi::{CString, c_int};
use std::sync::{Arc, Mutex};

/// Maximum number of locations stored.
const MOST: usize = 1 << 16;

/// Marks an instruction of the package itself: look at the caller's frame instead.
const OURS: u32 = u32::MAX;

/// An instruction of a code object, which is kept alive so that its address stays unique.
struct Place {
    code: Py<PyAny>,
    instruction: i32,
    op: &'static Op,
}

#[derive(Default)]
struct Places {
    /// By code object, instruction and op.
    known: HashMap<(usize, i32, usize), u32, PointerHasher>,
    list: Vec<Place>,
}

struct Interpreter {
    places: Mutex<Places>,
    /// The folder of the package, whose frames are skipped.
    package: String,
}

unsafe extern "C" {
    // Part of CPython's API that PyO3 does not declare.
    fn PyCode_Addr2Line(code: *mut PyObject, instruction: c_int) -> c_int;
}

impl Interpreter {
    /// The index of the running instruction in the innermost frame outside the package.
    fn running(&self, py: Python, op: &'static Op) -> Option<u32> {
        // SAFETY: the interpreter lock is held; the frame is borrowed from the running thread, or null.
        let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }?;
        loop {
            // SAFETY: a live frame; its code object is returned as a new reference.
            let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) };
            let instruction: i32 = frame.getattr(intern!(py, "f_lasti")).ok()?.extract().ok()?;
            match self.number(&code, instruction, op)? {
                OURS => frame = frame.getattr(intern!(py, "f_back")).ok().filter(|f| !f.is_none())?,
                number => return Some(number),
            }
        }
    }

    fn number(&self, code: &Bound<PyAny>, instruction: i32, op: &'static Op) -> Option<u32> {
        let key = (code.as_ptr() as usize, instruction, std::ptr::from_ref(op) as usize);
        let mut guard = self.places.lock().unwrap_or_else(|e| e.into_inner());
        let places = &mut *guard;
        if let Some(&known) = places.known.get(&key) {
            return Some(known);
        }
        if places.list.len() >= MOST {
            return None;
        }
        places.list.push(Place { code: code.clone().unbind(), instruction, op });
        let ours = file_of(code)?.starts_with(&self.package);
        let number = if ours { OURS } else { places.list.len() as u32 };
        places.known.insert(key, number);
        Some(number)
    }
}

fn file_of(code: &Bound<PyAny>) -> Option<String> {
    code.getattr("co_filename").ok()?.extract().ok()
}

impl Witness for Interpreter {
    fn mark(&self, op: &'static Op) -> u32 {
        Python::attach(|py| self.running(py, op)).unwrap_or(0)
    }
    fn place(&self, mark: u32) -> Option<String> {
        Python::attach(|py| {
            let guard = self.places.lock().unwrap_or_else(|e| e.into_inner());
            let Place { code, instruction, op } = guard.list.get(mark as usize - 1)?;
            let underscore = if op.forms.has(Forms::ONLY_INPLACE) { "" } else { "_" };
            // SAFETY: a live code object and an offset into it.
            let line = unsafe { PyCode_Addr2Line(code.as_ptr(), *instruction) };
            Some(format!("{}{underscore} at {}, line {line}", op.base(), file_of(code.bind(py))?))
        })
    }
    fn made(&self, node: &Node, parent: Option<&Arc<Node>>) {
        let keep = |py: Python| -> PyResult<()> {
            let dict = metadata(py, node);
            let stack = py.import("traceback")?.getattr("format_stack")?.call0()?.extract::<Vec<String>>()?;
            // Without the frames of `python -m rustgrad`.
            let runner = format!("\"{}__main__.py\"", self.package);
            let first = stack.iter().rposition(|frame| frame.contains(&runner)).map_or(0, |i| i + 1);
            dict.set_item("traceback_", &stack[first..])?;
            if let Some(p) = parent {
                dict.set_item("parent_", node_object(py, p.clone())?)?;
            }
            Ok(())
        };
        // A failure to get the traceback must not fail the op being recorded.
        Python::attach(|py| keep(py).unwrap_or_else(|e| e.0.write_unraisable(py, None)));
    }
    fn report(&self, node: &Arc<Node>) {
        Python::attach(|py| warn(py, node).unwrap_or_else(|e| e.0.write_unraisable(py, None)));
    }
    fn warn(&self, text: &str) -> rustgrad::error::Result<()> {
        Python::attach(|py| warning(py, text.into()).map_err(super::error::carry))
    }
}

/// Warns where a failing node was created, then where the node whose backward created it was, and so on.
fn warn(py: Python, node: &Arc<Node>) -> PyResult<()> {
    let mut dict = metadata(py, node);
    let Some(trace) = trace(&dict)? else {
        return warning(
            py,
            format!(
                "Error detected in {}. No forward pass information available. Enable detect anomaly during forward pass \
                 for more information.",
                node.name()
            ),
        );
    };
    warning(
        py,
        format!("Error detected in {}. Traceback of forward call that caused the error:\n{trace}", node.name()),
    )?;
    while let Some(parent) = dict.get_item("parent_")? {
        let name: String = parent.call_method0("name")?.extract()?;
        dict = parent.getattr("metadata")?.cast_into::<PyDict>()?;
        let how = match self::trace(&dict)? {
            Some(t) => format!("Traceback of forward call that induced the previous calculation:\n{t}"),
            None => "No forward pass information available.".into(),
        };
        warning(py, format!("\n\nPrevious calculation was induced by {name}. {how}"))?;
    }
    Ok(())
}

fn trace(dict: &Bound<PyDict>) -> PyResult<Option<String>> {
    let Some(lines) = dict.get_item("traceback_")? else { return Ok(None) };
    Ok(Some(lines.extract::<Vec<String>>()?.concat()))
}

fn warning(py: Python, text: String) -> PyResult<()> {
    warn_user(py, &CString::new(text).unwrap_or_default(), 1)
}

/// Registers the interpreter's implementation.
pub fn start(py: Python) -> PyResult<()> {
    let spec = py.import("rustgrad")?.getattr("__file__")?.extract::<String>()?;
    let package = spec.trim_end_matches("__init__.py").to_string();
    install(Box::new(Interpreter { places: Mutex::default(), package }));
    Ok(())
}
