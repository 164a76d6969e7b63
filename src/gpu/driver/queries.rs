//! What can be asked of the devices of this process, by their number.

use super::adapter::{adapters, unavailable};
use super::context::{forked, is_forked};
use super::device::{Driver, no_such_device, open_drivers};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;

/// Whether a GPU (or a software adapter) can be used.
pub fn is_available() -> bool {
    adapters().is_ok()
}

/// The name of the adapter where it is a CPU that nobody asked for: slower than the device `cpu`.
pub fn unasked_software() -> Option<&'static str> {
    adapters().ok()?.first().filter(|a| a.unasked).map(|a| a.name.as_str())
}

/// How many devices there are: the adapters that `RUSTGRAD_GPU` admits.
pub fn device_count() -> usize {
    adapters().map_or(0, <[_]>::len)
}

/// Whether a GPU has kernels that compute in this dtype.
pub fn supports(device: Device, dtype: DType) -> bool {
    let Device::Gpu(index) = device else { return false };
    adapters().ok().and_then(|list| list.get(index as usize)).is_some_and(|a| a.caps.supports(dtype))
}

pub fn device_name(index: usize) -> Result<String> {
    Ok(adapter(index)?.name.clone())
}

fn adapter(index: usize) -> Result<&'static super::adapter::Adapter> {
    let list = adapters().map_err(unavailable)?;
    list.get(index).ok_or_else(|| no_such_device(index, list.len()))
}

/// What the driver and the adapter say of themselves, as (name, value); the limits are in bytes.
pub fn properties(index: usize) -> Result<Vec<(&'static str, String)>> {
    let found = adapter(index)?;
    let (info, caps) = (found.raw.get_info(), &found.caps);
    Ok(vec![
        ("name", info.name.clone()),
        ("backend", format!("{:?}", info.backend)),
        ("type", format!("{:?}", info.device_type)),
        ("driver", format!("{} {}", info.driver, info.driver_info).trim().to_string()),
        ("max_buffer_size", caps.max_buffer.to_string()),
        ("max_binding_size", caps.max_binding.to_string()),
        ("has_int64", caps.int64.to_string()),
        ("has_float64", caps.float64.to_string()),
    ])
}

fn open(index: usize) -> Option<&'static Driver> {
    open_drivers().find(|(i, _)| *i == index).map(|(_, driver)| driver)
}

/// Waits until everything recorded so far has run, on every device that was used.
pub fn synchronize() -> Result<()> {
    if is_forked() {
        return Err(forked());
    }
    open_drivers().try_for_each(|(_, driver)| driver.synchronize())
}

/// Bytes held by the live buffers of a device and the most that they held since the peak was reset, bytes held with
/// the pool and the most of these.
pub fn memory(index: usize) -> [usize; 4] {
    open(index).map_or([0; 4], Driver::memory)
}

/// Starts the peaks of `memory` again from what is held now.
pub fn reset_peak_memory(index: usize) {
    if let Some(driver) = open(index) {
        driver.reset_peak_memory();
    }
}

/// Frees the pooled memory of every device.
pub fn empty_cache() {
    open_drivers().for_each(|(_, driver)| driver.empty_cache());
}

/// Counters of a device since the start, for tests and for looking.
pub fn stats(index: usize) -> Vec<(&'static str, u64)> {
    open(index).map_or_else(Vec::new, Driver::stats)
}
