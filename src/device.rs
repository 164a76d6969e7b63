//! Devices as plain data: a name and an index. `cpu` and `gpu` implement what they can do.
//!
//! A tensor on `meta` has a shape, strides and a dtype, but no memory: ops infer their results and compute nothing.
//! A name may be one of a device that is not here (`cuda`, `mps`): programs make and compare such names. Only when a
//! tensor is to live there does it become an error, in `Name::device`.

use crate::error::{Error, Result};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A device. The GPUs of a process are numbered from `Gpu(0)` on; allocating on one that is not there is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    Gpu(u8),
    Meta,
}

thread_local! {
    /// This thread's default devices: the one chosen by `set_default_device`, then one per enclosing device block,
    /// innermost last. Empty means the CPU.
    static DEFAULTS: RefCell<SmallVec<[Device; 4]>> = const { RefCell::new(SmallVec::new_const()) };
}

/// The device of the innermost block, else the one set by `set_default_device`, else the CPU.
impl Default for Device {
    fn default() -> Device {
        DEFAULTS.try_with(|d| d.borrow().last().copied()).ok().flatten().unwrap_or(Device::Cpu)
    }
}

impl Device {
    /// The default device where one was chosen: that of the innermost block, or one that is not the CPU.
    pub fn chosen_default() -> Option<Device> {
        let chosen = |d: &SmallVec<[Device; 4]>| d.last().copied().filter(|&last| d.len() > 1 || last != Device::Cpu);
        DEFAULTS.try_with(|d| chosen(&d.borrow())).ok().flatten()
    }
}

/// Sets the default device of this thread; enclosing blocks keep theirs.
pub fn set_default_device(d: Device) {
    DEFAULTS.with_borrow_mut(|all| match all.first_mut() {
        Some(first) => *first = d,
        None => all.push(d),
    });
}

/// Enters a block in which tensors are created on `d` by default.
pub fn enter_default_device(d: Device) {
    DEFAULTS.with_borrow_mut(|all| match all.is_empty() {
        true => *all = smallvec![Device::Cpu, d],
        false => all.push(d),
    });
}

/// Leaves the innermost block of this thread, if any.
pub fn leave_default_device() {
    DEFAULTS.with_borrow_mut(|all| {
        if all.len() > 1 {
            all.pop();
        }
    });
}

static CUDA_ALIAS: AtomicBool = AtomicBool::new(false);

/// Makes `cuda` an alias of the GPU, for programs that run unmodified.
pub fn set_cuda_alias(on: bool) {
    CUDA_ALIAS.store(on, Ordering::Relaxed);
}

/// Whether `cuda` is an alias of the GPU.
pub fn is_cuda_alias() -> bool {
    CUDA_ALIAS.load(Ordering::Relaxed)
}

/// All device types with a name: PyTorch's, and ours.
const KINDS: [&str; 21] = [
    "cpu",
    "gpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "privateuseone",
];

/// The name of a device, usable or not: `cuda:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub kind: &'static str,
    pub index: Option<u8>,
}

impl From<Device> for Name {
    fn from(d: Device) -> Name {
        Name { kind: d.kind(), index: d.index() }
    }
}

impl Name {
    /// Parses `cpu`, `gpu:0`, `cuda:1`. The index of the GPU defaults to 0; `cuda` is the GPU while the alias is on.
    pub fn parse(s: &str) -> Result<Name> {
        if s == "cpu" {
            return Ok(Name { kind: "cpu", index: None });
        }
        if s.is_empty() {
            return Err(Error::runtime("Device string must not be empty"));
        }
        let (kind, index) = s.split_once(':').map_or((s, None), |(k, i)| (k, Some(i)));
        let known = KINDS.into_iter().find(|&k| k == kind);
        let kind = known.ok_or_else(|| {
            Error::runtime(format!(
                "Expected one of {} device type at start of device string: {kind}",
                KINDS.join(", ")
            ))
        })?;
        let digits = |i: &&str| i.bytes().all(|b| b.is_ascii_digit()) && (*i == "0" || !i.starts_with('0'));
        let index = match index {
            None => None,
            Some(i) => {
                let number = Some(i).filter(digits).and_then(|i| i.parse::<u8>().ok());
                Some(number.ok_or_else(|| Error::runtime(format!("Invalid device string: '{s}'")))?)
            }
        };
        Ok(Name { kind, index }.resolved())
    }
    /// The name reported by tensors on the device.
    pub fn resolved(self) -> Name {
        match self.kind {
            "cuda" if is_cuda_alias() => Name { kind: "gpu", ..self }.resolved(),
            "gpu" => Name { index: self.index.or(Some(0)), ..self },
            _ => self,
        }
    }
    /// The device to allocate tensors on; an error if this build has none.
    pub fn device(self) -> Result<Device> {
        match (self.kind, self.index) {
            // There is one CPU; the index is ignored.
            ("cpu", _) => Ok(Device::Cpu),
            ("gpu", i) => Ok(Device::Gpu(i.unwrap_or(0))),
            ("cuda", _) => Err(Error::runtime(self.absent("Use device=\"gpu\": it drives any vendor's GPU."))),
            ("hip" | "mps" | "opencl" | "opengl" | "vulkan" | "xpu", _) => {
                Err(Error::not_implemented(self.absent("Use device=\"gpu\": it drives any vendor's GPU.")))
            }
            ("meta", _) => Ok(Device::Meta),
            _ => Err(Error::not_implemented(self.absent("No tensor can be made there."))),
        }
    }
    fn absent(self, hint: &str) -> String {
        format!("device '{self}' is not known here; expected 'cpu' or 'gpu'. {hint}")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            None => f.write_str(self.kind),
            Some(i) => write!(f, "{}:{i}", self.kind),
        }
    }
}

impl Device {
    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Gpu(_) => "gpu",
            Device::Meta => "meta",
        }
    }
    pub fn index(self) -> Option<u8> {
        match self {
            Device::Cpu | Device::Meta => None,
            Device::Gpu(i) => Some(i),
        }
    }
    pub fn is_gpu(self) -> bool {
        matches!(self, Device::Gpu(_))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Name::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        let name = |s: &str| Name::parse(s).map(|n| n.to_string()).unwrap_or_default();
        assert_eq!(["cpu", "cpu:0", "gpu", "cuda:1", "meta"].map(name), ["cpu", "cpu:0", "gpu:0", "cuda:1", "meta"]);
        assert_eq!(["", "tpu", "cuda:", "cuda:01", "cuda:-1", "cuda:+1", "cuda:256"].map(name), [""; 7]);
        assert_eq!(Name::parse("cpu:0").and_then(Name::device).ok(), Some(Device::Cpu));
        assert!(Name::parse("cuda").and_then(Name::device).is_err());
    }

    #[test]
    fn blocks_nest_and_keep_their_device() {
        let all = [Device::Gpu(0), Device::Gpu(1)];
        all.into_iter().for_each(enter_default_device);
        set_default_device(Device::Gpu(2));
        let mut seen = vec![Device::default()];
        for _ in 0..3 {
            leave_default_device();
            seen.push(Device::default());
        }
        assert_eq!(seen, [Device::Gpu(1), Device::Gpu(0), Device::Gpu(2), Device::Gpu(2)]);
        assert_eq!(std::thread::spawn(Device::default).join().ok(), Some(Device::Cpu));
    }
}
