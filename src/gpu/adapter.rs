//! Which adapter drives the `gpu` device, and what it can do.
//!
//! `RUSTGRAD_GPU` picks one by index or by a part of its name; otherwise the best kind wins: discrete, integrated,
//! virtual, software. Software adapters (lavapipe, WARP) run the same shaders, slower than the CPU device: they count as
//! available only where `RUSTGRAD_GPU` picks one, and are used where a program names the device.

use super::context::gpu;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::sync::OnceLock;

/// What was asked of the adapter once and never assumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    pub int64: bool,
    pub float64: bool,
    /// Bytes that one storage binding may cover.
    pub max_binding: u64,
    pub max_buffer: u64,
    /// Workgroups per dimension of a dispatch.
    pub max_groups: u32,
    pub storage_align: u64,
    pub uniform_align: u32,
    /// How often the loops of an invocation may turn in all: lavapipe ends them then, as if they were done.
    pub max_turns: usize,
}

pub(super) struct Found {
    pub adapter: wgpu::Adapter,
    pub name: String,
    pub caps: Caps,
    /// It is a CPU, and nobody picked it.
    pub unasked: bool,
}

static FOUND: OnceLock<std::result::Result<Found, String>> = OnceLock::new();

/// The chosen adapter. Finding it loads the drivers (some 20 to 70 ms), so it happens on the first question.
pub(super) fn found() -> std::result::Result<&'static Found, &'static str> {
    FOUND.get_or_init(find).as_ref().map_err(String::as_str)
}

fn find() -> std::result::Result<Found, String> {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = wgpu::Backends::PRIMARY;
    // Validation layers cost time and may print; the shaders are validated by the tests instead.
    desc.flags = wgpu::InstanceFlags::empty();
    let mut list = silently(|| {
        let instance = wgpu::Instance::new(desc);
        pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY))
    });
    list.retain(|a| a.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS));
    list.sort_by_key(|a| rank(a.get_info().device_type));
    if list.is_empty() {
        return Err("no adapter was found through Vulkan, Metal or DX12".to_string());
    }
    let picked = std::env::var("RUSTGRAD_GPU").ok().filter(|want| !want.is_empty());
    let index = picked.as_ref().map_or(Ok(0), |want| pick(&list, want))?;
    let adapter = list.swap_remove(index);
    let (name, caps) = (describe(&adapter), caps_of(&adapter));
    let unasked = picked.is_none() && adapter.get_info().device_type == wgpu::DeviceType::Cpu;
    Ok(Found { adapter, name, caps, unasked })
}

/// Mesa's layer that sorts devices for a desktop prints errors where there is none; the order here is our own.
#[cfg(target_os = "linux")]
fn silently<T>(look: impl FnOnce() -> T) -> T {
    const OFF: &std::ffi::CStr = c"NODEVICE_SELECT";
    // SAFETY: names and values are C strings; as with `os.environ`, no other thread may change the environment meanwhile.
    let set = unsafe { libc::getenv(OFF.as_ptr()).is_null() && libc::setenv(OFF.as_ptr(), c"1".as_ptr(), 0) == 0 };
    let found = look();
    if set {
        // SAFETY: as above.
        unsafe { libc::unsetenv(OFF.as_ptr()) };
    }
    found
}
#[cfg(not(target_os = "linux"))]
fn silently<T>(look: impl FnOnce() -> T) -> T {
    look()
}

fn rank(kind: wgpu::DeviceType) -> u8 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn pick(list: &[wgpu::Adapter], want: &str) -> std::result::Result<usize, String> {
    let names: Vec<String> = list.iter().map(describe).collect();
    if let Some(i) = want.parse::<usize>().ok().filter(|&i| i < list.len()) {
        return Ok(i);
    }
    let lower = want.to_lowercase();
    names
        .iter()
        .position(|n| n.to_lowercase().contains(&lower))
        .ok_or_else(|| format!("RUSTGRAD_GPU={want} names none of the adapters: {}", names.join(", ")))
}

fn describe(adapter: &wgpu::Adapter) -> String {
    let info = adapter.get_info();
    format!("{} ({:?})", info.name, info.backend)
}

fn caps_of(adapter: &wgpu::Adapter) -> Caps {
    let (features, limits) = (adapter.features(), adapter.limits());
    let int64 = features.contains(wgpu::Features::SHADER_INT64);
    Caps {
        int64,
        // The f64 kernels take numbers apart by their 64 bits.
        float64: int64 && features.contains(wgpu::Features::SHADER_F64),
        max_binding: limits.max_storage_buffer_binding_size,
        max_buffer: limits.max_buffer_size,
        max_groups: limits.max_compute_workgroups_per_dimension,
        storage_align: limits.min_storage_buffer_offset_alignment.max(16) as u64,
        uniform_align: limits.min_uniform_buffer_offset_alignment,
        max_turns: if adapter.get_info().device_type == wgpu::DeviceType::Cpu { 65_000 } else { usize::MAX },
    }
}

/// Whether a GPU (or a software adapter) can be used.
pub fn is_available() -> bool {
    found().is_ok()
}

/// The name of the adapter where it is a CPU that nobody picked: slower than the device `cpu`.
pub fn unasked_software() -> Option<&'static str> {
    found().ok().filter(|f| f.unasked).map(|f| f.name.as_str())
}

pub fn device_name(index: usize) -> Result<String> {
    match (index, found()) {
        (0, Ok(found)) => Ok(found.name.clone()),
        (_, Err(why)) => Err(unavailable(why)),
        (i, Ok(_)) => {
            Err(Error::runtime(format!("invalid device index {i}; this process drives 1 GPU (RUSTGRAD_GPU picks it)")))
        }
    }
}

/// What the driver and the adapter say of themselves, as (name, value); the limits are in bytes.
pub fn properties() -> Result<Vec<(&'static str, String)>> {
    let found = found().map_err(unavailable)?;
    let (info, caps) = (found.adapter.get_info(), &found.caps);
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

/// Whether the device computes in this dtype. Copies of equal dtype work for every dtype.
pub fn supports(dtype: DType) -> bool {
    let Ok(found) = found() else { return false };
    match dtype {
        DType::I64 => found.caps.int64,
        DType::F64 => found.caps.float64,
        d => !d.is_complex() && !d.is_storage_only(),
    }
}

/// `supports` as an error with the remedy.
pub(super) fn require(dtype: DType) -> Result<()> {
    if supports(dtype) || super::validate::dry() {
        return Ok(());
    }
    gpu()?;
    let name = &found().map_err(unavailable)?.name;
    Err(Error::not_implemented(format!(
        "{dtype} is not supported by the GPU '{name}'; expected float32, float16, bfloat16, bool or an integer type it has. \
         Convert with .to(dtype) or move the tensor with .cpu()."
    )))
}

#[cold]
pub(super) fn unavailable(why: &str) -> Error {
    Error::runtime(format!("no GPU is available: {why}. Install a Vulkan, Metal or DX12 driver, or use device='cpu'."))
}
