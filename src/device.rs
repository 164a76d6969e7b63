//! Where a tensor lives: a name and an index, plain data. `cpu` and `gpu` bring the capabilities.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// A device. A process drives one GPU, `Gpu(0)`; allocating on another index is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    Gpu(u8),
}

/// Where tensors are made when no device is given: 0 is the CPU, i + 1 the i-th GPU.
static DEFAULT: AtomicU16 = AtomicU16::new(0);

/// The device that `set_default_device` chose; the CPU until then.
impl Default for Device {
    fn default() -> Device {
        match DEFAULT.load(Ordering::Relaxed) {
            0 => Device::Cpu,
            i => Device::Gpu((i - 1) as u8),
        }
    }
}

pub fn set_default_device(d: Device) {
    DEFAULT.store(d.index().map_or(0, |i| u16::from(i) + 1), Ordering::Relaxed);
}

static CUDA_ALIAS: AtomicBool = AtomicBool::new(false);

/// Lets `cuda` stand for the GPU, for programs that are run unmodified.
pub fn set_cuda_alias(on: bool) {
    CUDA_ALIAS.store(on, Ordering::Relaxed);
}

impl Device {
    /// Parses `cpu`, `gpu`, `gpu:0`; `cuda` too while it stands for the GPU.
    pub fn parse(s: &str) -> Result<Device> {
        let (kind, index) = s.split_once(':').map_or((s, None), |(k, i)| (k, Some(i)));
        let index = match index {
            None => None,
            Some(i) => Some(i.parse::<u8>().map_err(|_| Error::runtime(format!("Invalid device string: '{s}'")))?),
        };
        match (kind, index) {
            ("cpu", None | Some(0)) => Ok(Device::Cpu),
            ("gpu", i) => Ok(Device::Gpu(i.unwrap_or(0))),
            ("cuda", i) if CUDA_ALIAS.load(Ordering::Relaxed) => Ok(Device::Gpu(i.unwrap_or(0))),
            ("cuda" | "mps" | "xpu" | "vulkan" | "wgpu", _) => Err(Error::runtime(format!(
                "device '{s}' is not known here; expected 'cpu' or 'gpu'. Use device=\"gpu\": it drives any vendor's GPU."
            ))),
            _ => Err(Error::runtime(format!("Expected one of cpu, gpu device type at start of device string: {s}"))),
        }
    }
    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Gpu(_) => "gpu",
        }
    }
    pub fn index(self) -> Option<u8> {
        match self {
            Device::Cpu => None,
            Device::Gpu(i) => Some(i),
        }
    }
    pub fn is_gpu(self) -> bool {
        matches!(self, Device::Gpu(_))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(i) => write!(f, "gpu:{i}"),
        }
    }
}
