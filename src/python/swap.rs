//! `utils.swap_tensors`: two Python objects swap their tensors.

use super::error::{PyResult, raised};
use super::object::{borrow, exchange};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

/// Swaps the tensors of two objects, and returns for each whether a graph has an edge to its previous tensor. An error
/// if a tensor has other owners (a graph that saved it, an op in another thread).
#[pyfunction]
pub fn _swap_tensors(t1: &Bound<PyAny>, t2: &Bound<PyAny>) -> PyResult<(bool, bool)> {
    let edges = |o: &Bound<PyAny>, name: &str| {
        let t = borrow(o.as_ptr()).ok_or_else(|| raised::<PyTypeError>("swap_tensors: expected two tensors"))?;
        let (owners, edges) = (t.owners(), t.leaf_edges());
        if owners > 1 + edges {
            return Err(raised::<PyRuntimeError>(format!(
                "Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {owners} make sure you are \
                 not holding references to the tensor in other places."
            )));
        }
        Ok(edges > 0)
    };
    let found = (edges(t1, "t1")?, edges(t2, "t2")?);
    // SAFETY: both hold tensors whose only other owners are edges to leaves; no reference to them is left here, and ops
    // that run without the lock own what they read.
    unsafe { exchange(t1.as_ptr(), t2.as_ptr()) };
    Ok(found)
}
