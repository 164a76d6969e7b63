//! Python values as guards compare them, and the kinds of guards.

use super::error::{PyResult, raised};
use super::py_types::{PyDType, PyDevice};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyString};
use std::sync::atomic::{AtomicU16, Ordering};

/// The kinds of guards, by the names that `_compile_leave_out` knows.
const KINDS: [&str; 12] = [
    "modes",
    "values",
    "numbers",
    "tensors",
    "aliases",
    "outside",
    "gradients",
    "dicts",
    "lists",
    "attributes",
    "classes",
    "slots",
];
static LEFT_OUT: AtomicU16 = AtomicU16::new(0);

/// Takes kinds of guards out, in all threads, until the next call: a test shows that each of them is needed.
#[pyfunction]
pub fn _compile_leave_out(kinds: Vec<String>) -> PyResult<Vec<&'static str>> {
    let bit = |kind: &String| {
        let at = KINDS.iter().position(|k| k == kind);
        at.map(|i| 1 << i).ok_or_else(|| raised::<PyTypeError>(format!("_compile_leave_out: no guard '{kind}'")))
    };
    let bits: Vec<u16> = kinds.iter().map(bit).collect::<PyResult<_>>()?;
    LEFT_OUT.store(bits.iter().fold(0, |all, b| all | b), Ordering::Relaxed);
    Ok(KINDS.to_vec())
}

/// Whether guards of a kind hold without a look.
pub fn is_left_out(kind: &'static str) -> bool {
    let out = LEFT_OUT.load(Ordering::Relaxed);
    out != 0 && KINDS.iter().position(|k| *k == kind).is_some_and(|i| out & (1 << i) != 0)
}

/// Whether an object is a value that cannot change.
pub fn is_value(o: &Bound<PyAny>) -> bool {
    o.is_none()
        || o.is_exact_instance_of::<PyBool>()
        || o.is_exact_instance_of::<PyInt>()
        || o.is_exact_instance_of::<PyFloat>()
        || o.is_exact_instance_of::<PyComplex>()
        || o.is_exact_instance_of::<PyString>()
        || o.is_exact_instance_of::<PyBytes>()
        || o.is_instance_of::<PyDType>()
        || o.is_instance_of::<PyDevice>()
}

/// Equal values of one type; floats by their bits, so that 0.0 is not -0.0.
pub fn same_value(a: &Bound<PyAny>, b: &Bound<PyAny>) -> PyResult<bool> {
    if !a.get_type().is(b.get_type()) {
        return Ok(false);
    }
    if let (Ok(x), Ok(y)) = (a.cast_exact::<PyFloat>(), b.cast_exact::<PyFloat>()) {
        return Ok(x.value().to_bits() == y.value().to_bits());
    }
    if let Ok(c) = a.cast_exact::<PyComplex>() {
        use pyo3::types::PyComplexMethods;
        let d = b.cast_exact::<PyComplex>()?;
        return Ok((c.real().to_bits(), c.imag().to_bits()) == (d.real().to_bits(), d.imag().to_bits()));
    }
    Ok(a.eq(b)?)
}

/// One object, or equal values.
pub fn same_key(a: &Bound<PyAny>, b: &Bound<PyAny>) -> PyResult<bool> {
    Ok(a.is(b) || is_value(a) && same_value(a, b)?)
}
