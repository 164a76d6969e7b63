//! The extension module `rustgrad._C`: converts values between Python and Rust, and computes nothing.

pub(crate) mod bound_method;
pub(crate) mod conversions;
mod convert;
pub(crate) mod diagnostics;
pub(crate) mod number_protocol;
mod numpy_arrays;
pub(crate) mod op_callable;
pub(crate) mod owned_objects;
pub(crate) mod properties;
mod readings;
pub(crate) mod py_types;
pub(crate) mod sequence_data;
mod arguments;
mod autocast;
mod backward;
mod buffer;
mod capture;
mod compile;
mod result_tree;
mod construct;
mod describe;
mod device;
mod dict_changes;
mod dlpack;
mod error;
mod export;
mod forward;
mod function;
mod graph;
mod guards;
mod heap_type;
mod hooks;
mod index;
pub(crate) mod lent;
mod mode;
mod memory;
mod metadata;
mod method_call;
mod object;
mod opaque;
mod oplog;
mod overridable;
mod overrides;
mod parse;
mod profile;
mod saved;
mod saved_plan;
mod shared;
mod sparse_layout;
mod swap;
mod table;
mod transform;
mod values;
mod warnings;

use self::error::PyResult;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

#[global_allocator]
static HEAP: rustgrad::rt::alloc::Heap = rustgrad::rt::alloc::Heap;

/// Statics belong to one interpreter and much relies on its lock, so a free-threaded interpreter must enable the lock.
#[pymodule(name = "_C", gil_used = true)]
fn extension(m: &Bound<PyModule>) -> pyo3::PyResult<()> {
    Ok(fill(m)?)
}

fn fill(m: &Bound<PyModule>) -> PyResult<()> {
    let py = m.py();
    owned_objects::refuse_subinterpreters()?;
    owned_objects::listen_to_collector(m)?;
    // SAFETY: everything that Python calls opens a frame before it looks at a tensor (`error.rs`), and what it returns
    // owns what it refers to. Threads of our own work for a call that waits for them.
    unsafe { rustgrad::rt::retire::use_frames() };
    rustgrad::rt::retire::set_pause(owned_objects::pause);
    let owned = |p: *mut pyo3::ffi::PyObject| {
        // SAFETY: each constructor returns a new reference.
        unsafe { Bound::from_owned_ptr(py, p) }
    };
    let tensor = owned(object::create(py, &number_protocol::table())?);
    let size = owned(py_types::create_size(py)?);
    bound_method::create_type(py)?;
    op_callable::create_type(py)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("default_generator", Py::new(py, py_types::_default_generator())?)?;
    m.add("Tensor", &tensor)?;
    m.add("Size", size)?;
    m.add_class::<py_types::PyDType>()?;
    m.add_class::<py_types::PyDevice>()?;
    m.add_class::<py_types::PyGenerator>()?;
    m.add_class::<graph::PyNode>()?;
    m.add_class::<saved::SavedTensor>()?;
    m.add_class::<capture::PyCapture>()?;
    m.add_class::<compile::PyRecording>()?;
    m.add_class::<compile::PyPlan>()?;
    m.add("InternalError", py.get_type::<error::InternalError>())?;
    m.add("OutOfMemoryError", py.get_type::<error::OutOfMemoryError>())?;
    m.add("_LinAlgError", py.get_type::<error::LinAlgError>())?;
    for d in py_types::dtype_objects(py)? {
        m.add(d.get().0.name(), d)?;
    }
    functions(m)?;
    functions_of_plans(m)?;
    functions_of_settings(m)?;
    autocast::add(m)?;
    mode::add(m)?;
    transform::add(m)?;
    forward::add(m)?;
    overrides::install(m)?;
    overridable::install(m)?;
    m.add("ops", table::install(py, &tensor)?)?;
    m.add("_steps", table::steps(py)?)?;
    m.add_function(wrap_pyfunction!(table::_op, m)?)?;
    m.add_function(wrap_pyfunction!(op_callable::_result_names, m)?)?;
    diagnostics::start(py)?;
    Ok(())
}

pub(crate) fn add_functions<'py>(
    m: &Bound<'py, PyModule>,
    list: impl IntoIterator<Item = Bound<'py, PyCFunction>>,
) -> PyResult<()> {
    Ok(list.into_iter().try_for_each(|f| m.add_function(f))?)
}

fn functions_of_plans(m: &Bound<PyModule>) -> PyResult<()> {
    let list = [
        wrap_pyfunction!(compile::_compile_record, m)?,
        wrap_pyfunction!(compile::_compile_inputs, m)?,
        wrap_pyfunction!(compile::_compile_passes, m)?,
        wrap_pyfunction!(compile::_compile_plan, m)?,
        wrap_pyfunction!(values::_compile_leave_out, m)?,
        wrap_pyfunction!(saved_plan::_compile_recorded, m)?,
        wrap_pyfunction!(saved_plan::_compile_load, m)?,
    ];
    add_functions(m, list)
}

fn functions_of_settings(m: &Bound<PyModule>) -> PyResult<()> {
    let list = [
        wrap_pyfunction!(opaque::_set_opaque_class, m)?,
        wrap_pyfunction!(export::_set_printoptions, m)?,
        wrap_pyfunction!(warnings::_set_warn_always, m)?,
        wrap_pyfunction!(warnings::_is_warn_always_enabled, m)?,
        wrap_pyfunction!(warnings::_warn_once, m)?,
        wrap_pyfunction!(table::get_default_dtype, m)?,
        wrap_pyfunction!(table::set_default_dtype, m)?,
        wrap_pyfunction!(table::get_num_threads, m)?,
        wrap_pyfunction!(table::set_num_threads, m)?,
        wrap_pyfunction!(device::get_default_device, m)?,
        wrap_pyfunction!(device::_set_cuda_alias, m)?,
        wrap_pyfunction!(device::set_default_device, m)?,
    ];
    add_functions(m, list)
}

fn functions(m: &Bound<PyModule>) -> PyResult<()> {
    let list = [
        wrap_pyfunction!(object::_set_legacy_new, m)?,
        wrap_pyfunction!(object::_make_subclass, m)?,
        wrap_pyfunction!(swap::_swap_tensors, m)?,
        wrap_pyfunction!(py_types::_default_generator, m)?,
        wrap_pyfunction!(py_types::_rng_states, m)?,
        wrap_pyfunction!(py_types::_set_rng_states, m)?,
        wrap_pyfunction!(construct::tensor, m)?,
        wrap_pyfunction!(construct::as_tensor, m)?,
        wrap_pyfunction!(construct::from_numpy, m)?,
        wrap_pyfunction!(buffer::frombuffer, m)?,
        wrap_pyfunction!(buffer::_storage_as_bytes, m)?,
        wrap_pyfunction!(buffer::_lend_storage, m)?,
        wrap_pyfunction!(buffer::_crc32, m)?,
        wrap_pyfunction!(buffer::_over_storage, m)?,
        wrap_pyfunction!(buffer::_storage_slice, m)?,
        wrap_pyfunction!(profile::_profile_start, m)?,
        wrap_pyfunction!(profile::_profile_enter, m)?,
        wrap_pyfunction!(profile::_profile_exit, m)?,
        wrap_pyfunction!(profile::_profile_stop, m)?,
        wrap_pyfunction!(shared::_share, m)?,
        wrap_pyfunction!(shared::_shared_empty, m)?,
        wrap_pyfunction!(shared::_shared_open, m)?,
        wrap_pyfunction!(shared::_shared_place, m)?,
        wrap_pyfunction!(export::_item, m)?,
        wrap_pyfunction!(export::_tolist, m)?,
        wrap_pyfunction!(export::_repr, m)?,
        wrap_pyfunction!(numpy_arrays::_array_export, m)?,
        wrap_pyfunction!(hooks::_get_hooks, m)?,
        wrap_pyfunction!(hooks::_set_hooks, m)?,
        wrap_pyfunction!(hooks::_retain_grad, m)?,
        wrap_pyfunction!(hooks::_queue_callback, m)?,
        wrap_pyfunction!(hooks::_current_pass, m)?,
        wrap_pyfunction!(hooks::_is_checkpoint_valid, m)?,
        wrap_pyfunction!(graph::_requires_grad_, m)?,
        wrap_pyfunction!(graph::_is_inference, m)?,
        wrap_pyfunction!(graph::_with_grad, m)?,
        wrap_pyfunction!(dlpack::_to_dlpack, m)?,
        wrap_pyfunction!(dlpack::_from_dlpack, m)?,
        wrap_pyfunction!(object::_as_subclass, m)?,
        wrap_pyfunction!(graph::_detach, m)?,
        wrap_pyfunction!(graph::_detach_, m)?,
        wrap_pyfunction!(backward::_run_backward, m)?,
        wrap_pyfunction!(function::_function_apply, m)?,
        wrap_pyfunction!(function::_function_begin, m)?,
        wrap_pyfunction!(function::_function_end, m)?,
        wrap_pyfunction!(function::_delayed_error, m)?,
        wrap_pyfunction!(function::live_counts, m)?,
        wrap_pyfunction!(function::_gradient_edge, m)?,
        wrap_pyfunction!(table::op_table, m)?,
        wrap_pyfunction!(table::_call_composite, m)?,
        wrap_pyfunction!(capture::_capture, m)?,
        wrap_pyfunction!(capture::_is_traced, m)?,
        wrap_pyfunction!(capture::_in_range, m)?,
        wrap_pyfunction!(table::_result_type, m)?,
        wrap_pyfunction!(table::promote_types, m)?,
        wrap_pyfunction!(table::can_cast, m)?,
        wrap_pyfunction!(table::_empty_cache, m)?,
        wrap_pyfunction!(table::_memory, m)?,
        wrap_pyfunction!(device::_gpu_is_available, m)?,
        wrap_pyfunction!(device::_gpu_device_count, m)?,
        wrap_pyfunction!(device::_gpu_device_name, m)?,
        wrap_pyfunction!(device::_gpu_synchronize, m)?,
        wrap_pyfunction!(device::_gpu_memory, m)?,
        wrap_pyfunction!(device::_gpu_reset_peak_memory, m)?,
        wrap_pyfunction!(device::_gpu_properties, m)?,
        wrap_pyfunction!(device::_gpu_stats, m)?,
        wrap_pyfunction!(conversions::_to_arguments, m)?,
        wrap_pyfunction!(device::_storage_info, m)?,
        wrap_pyfunction!(device::_storage_key, m)?,
        wrap_pyfunction!(device::_storage_bytes, m)?,
        wrap_pyfunction!(device::_from_storage_bytes, m)?,
        wrap_pyfunction!(py_types::manual_seed, m)?,
        wrap_pyfunction!(py_types::seed, m)?,
        wrap_pyfunction!(py_types::initial_seed, m)?,
        wrap_pyfunction!(py_types::get_rng_state, m)?,
        wrap_pyfunction!(py_types::set_rng_state, m)?,
        wrap_pyfunction!(device::_resize, m)?,
        wrap_pyfunction!(device::_fill_uninitialized, m)?,
        wrap_pyfunction!(device::_storage_resizable, m)?,
        wrap_pyfunction!(device::_increment_version, m)?,
        wrap_pyfunction!(device::_set_, m)?,
        wrap_pyfunction!(oplog::_start_op_log, m)?,
        wrap_pyfunction!(oplog::_stop_op_log, m)?,
    ];
    for f in list {
        m.add_function(f)?;
    }
    rustgrad::op::tracer::print_if_asked();
    opaque::declare();
    Ok(())
}
