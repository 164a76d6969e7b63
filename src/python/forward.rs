//! Forward mode in Python: levels, and the tangents of tensors. Levels are known by their number in the thread.

use super::add_functions;
use super::error::PyResult;
use super::object::{Handle, wrap_bound};
use pyo3::prelude::*;
use rustgrad::autograd::forward::{self, Visible};
use rustgrad::error::Error;
use rustgrad::ops::view::reshape::ALIAS;
use rustgrad::rt::thread_state::thread_state;
use rustgrad::tensor::Tensor;

/// Enters a level and returns its number.
#[pyfunction]
pub fn _forward_enter() -> PyResult<usize> {
    Ok(forward::enter()?)
}
/// Leaves the innermost level, whose tangents are dropped.
#[pyfunction]
pub fn _forward_exit(level: usize) -> PyResult<()> {
    Ok(forward::exit(level)?)
}
/// The levels that calls see, the outer ones first.
#[pyfunction]
pub fn _forward_levels() -> Vec<usize> {
    forward::levels(forward::visible()).collect()
}
/// Makes calls see only the levels outside `level` of those that they see; returns what `_forward_restore` takes.
#[pyfunction]
pub fn _forward_outside(level: usize) -> u32 {
    let seen = forward::visible();
    thread_state(|thread| thread.forward.set(seen & 1u32.checked_shl(level as u32).unwrap_or(0).wrapping_sub(1)));
    seen
}
#[pyfunction]
pub fn _forward_restore(seen: u32) {
    thread_state(|thread| thread.forward.set(seen));
}
#[pyfunction]
pub fn _is_fwd_grad_enabled() -> bool {
    forward::enabled()
}
#[pyfunction]
pub fn _set_fwd_grad_enabled(on: bool) {
    forward::set_enabled(on);
}

/// The tangent of a tensor at a level.
#[pyfunction]
pub fn _tangent<'py>(py: Python<'py>, t: Handle, level: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    forward::tangent(&t.0, level)?.map(|tangent| wrap_bound(py, tangent)).transpose()
}
/// Sets the tangent of a tensor at a level; `as_is`: also where it does not lie in memory as the tensor does.
#[pyfunction]
pub fn _set_tangent(t: Handle, level: usize, tangent: Handle, as_is: bool) -> PyResult<()> {
    let (a, b) = (t.0.meta(), tangent.0.meta());
    if as_is && a.layout.shape == b.layout.shape && a.dtype == b.dtype {
        return Ok(forward::put(&t.0, level, Some(tangent.0))?);
    }
    Ok(forward::set(&t.0, level, &tangent.0)?)
}
/// Gives a tensor, which was changed in place, its first tangent at a level; the base of a view gets one too.
#[pyfunction]
pub fn _write_tangent(t: Handle, level: usize, tangent: Handle) -> PyResult<()> {
    let place = forward::start(&t.0, level)?;
    let _outer = Visible::outside(level);
    Ok((rustgrad::autograd::engine_ops().copy_)(&place, &tangent.0)?)
}

fn alias(t: &Tensor) -> PyResult<Tensor> {
    Ok(ALIAS.call((t,)).ok()?)
}

/// A view of a tensor that has the tangent at the level.
#[pyfunction]
pub fn _make_dual<'py>(py: Python<'py>, t: Handle, tangent: Handle, level: usize) -> PyResult<Bound<'py, PyAny>> {
    if forward::tangent(&t.0, level)?.is_some() {
        return Err(Error::runtime(format!(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level} is not \
             supported."
        ))
        .into());
    }
    if forward::tangent(&tangent.0, level)?.is_some() {
        return Err(Error::runtime(format!(
            "Setting a forward grad that itself has a forward gradient at the same level {level} is not supported."
        ))
        .into());
    }
    let dual = alias(&t.0)?;
    forward::set(&dual, level, &tangent.0)?;
    wrap_bound(py, dual)
}

/// A view of a tensor without its tangent at the level, and the tangent.
#[pyfunction]
pub fn _unpack_dual<'py>(
    py: Python<'py>,
    t: Handle,
    level: usize,
) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
    let tangent = forward::tangent(&t.0, level)?;
    let primal = {
        let _outer = Visible::only(forward::visible() & !1u32.checked_shl(level as u32).unwrap_or(0));
        alias(&t.0)?
    };
    if tangent.is_some() {
        forward::put(&primal, level, None)?;
    }
    Ok((wrap_bound(py, primal)?, tangent.map(|t| wrap_bound(py, t)).transpose()?))
}

/// Adds the functions of this file to the module.
pub fn add(m: &Bound<PyModule>) -> PyResult<()> {
    let list = [
        wrap_pyfunction!(_forward_enter, m)?,
        wrap_pyfunction!(_forward_exit, m)?,
        wrap_pyfunction!(_forward_levels, m)?,
        wrap_pyfunction!(_forward_outside, m)?,
        wrap_pyfunction!(_forward_restore, m)?,
        wrap_pyfunction!(_is_fwd_grad_enabled, m)?,
        wrap_pyfunction!(_set_fwd_grad_enabled, m)?,
        wrap_pyfunction!(_tangent, m)?,
        wrap_pyfunction!(_set_tangent, m)?,
        wrap_pyfunction!(_write_tangent, m)?,
        wrap_pyfunction!(_make_dual, m)?,
        wrap_pyfunction!(_unpack_dual, m)?,
    ];
    add_functions(m, list)
}
