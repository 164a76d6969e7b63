//! Which adapters are the devices `gpu:0`, `gpu:1` .. of this process.
//!
//! Adapters are ordered by kind: discrete, integrated, virtual, software. `RUSTGRAD_GPU` admits some by index in that
//! order or by a part of their name, several with commas between them; otherwise all hardware is admitted. Software
//! adapters (lavapipe, WARP) run the same shaders, slower than the CPU device: they count as available only where
//! `RUSTGRAD_GPU` admits one, and one is used where a program names the device and there is no hardware.

use super::caps::Caps;
use crate::error::Error;
use std::sync::OnceLock;

pub(super) struct Adapter {
    pub raw: wgpu::Adapter,
    pub name: String,
    pub caps: Caps,
    /// It is a CPU, and nobody asked for it.
    pub unasked: bool,
}

/// The admitted adapters, at least one. Finding them loads the drivers (some 20 to 70 ms): done on the first question.
pub(super) fn adapters() -> Result<&'static [Adapter], &'static str> {
    static FOUND: OnceLock<Result<Vec<Adapter>, String>> = OnceLock::new();
    FOUND.get_or_init(find).as_deref().map_err(String::as_str)
}

#[cold]
pub(super) fn unavailable(why: &str) -> Error {
    Error::runtime(format!("no GPU is available: {why}. Install a Vulkan, Metal or DX12 driver, or use device='cpu'."))
}

fn find() -> Result<Vec<Adapter>, String> {
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
    let asked = std::env::var("RUSTGRAD_GPU").ok().filter(|want| !want.is_empty());
    let names: Vec<String> = list.iter().map(describe).collect();
    let chosen = match &asked {
        Some(want) => admitted(&names, want)?,
        None => hardware(&list),
    };
    let adapter = |i: usize| {
        let unasked = asked.is_none() && is_software(&list[i]);
        Adapter { raw: list[i].clone(), name: names[i].clone(), caps: caps_of(&list[i]), unasked }
    };
    Ok(chosen.into_iter().map(adapter).collect())
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

fn is_software(adapter: &wgpu::Adapter) -> bool {
    adapter.get_info().device_type == wgpu::DeviceType::Cpu
}

/// All hardware behind the interface of the best adapter (Vulkan and DX12 show the same GPU twice), else the first
/// software adapter.
fn hardware(list: &[wgpu::Adapter]) -> Vec<usize> {
    if is_software(&list[0]) {
        return vec![0];
    }
    let backend = list[0].get_info().backend;
    (0..list.len()).filter(|&i| !is_software(&list[i]) && list[i].get_info().backend == backend).collect()
}

/// The adapters that `want` names, in its order. The whole text goes first: a name may hold a comma.
fn admitted(names: &[String], want: &str) -> Result<Vec<usize>, String> {
    let matches = |item: &str| match item.trim().parse::<usize>() {
        Ok(i) if i < names.len() => vec![i],
        _ => {
            let lower = item.trim().to_lowercase();
            (0..names.len()).filter(|&i| names[i].to_lowercase().contains(&lower)).collect()
        }
    };
    let whole = matches(want);
    let groups = if whole.is_empty() { want.split(',').map(matches).collect() } else { vec![whole] };
    if groups.iter().any(Vec::is_empty) {
        return Err(format!("RUSTGRAD_GPU={want} names none of the adapters: {}", names.join(", ")));
    }
    let mut chosen: Vec<usize> = Vec::new();
    for i in groups.into_iter().flatten() {
        if !chosen.contains(&i) {
            chosen.push(i);
        }
    }
    // A device's number is a u8.
    chosen.truncate(256);
    Ok(chosen)
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
        max_iterations: if is_software(adapter) { 65_000 } else { usize::MAX },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_admitted_by_index_and_by_name() {
        let names =
            ["NVIDIA A (Vulkan)", "NVIDIA B (Vulkan)", "llvmpipe (LLVM 19, 256 bits) (Vulkan)"].map(String::from);
        let chosen = |want| admitted(&names, want).unwrap_or_default();
        assert_eq!(chosen("1"), [1]);
        assert_eq!(chosen("nvidia"), [0, 1]);
        assert_eq!(chosen("llvmpipe (LLVM 19, 256 bits)"), [2]);
        assert_eq!(chosen("2, nvidia b,1"), [2, 1]);
        assert!(admitted(&names, "0,amd").unwrap_err().contains("names none of the adapters: NVIDIA A"));
        assert!(admitted(&names, "3").is_err());
    }
}
