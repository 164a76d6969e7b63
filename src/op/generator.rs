//! Random number generators: a seed and the number of Philox counters used.
//!
//! Every element of a draw uses a separate counter, so values do not depend on device, thread count or memory layout.

use super::tracer;
use crate::device::Device;
use std::sync::{Arc, LazyLock, Mutex};

#[derive(Debug)]
pub struct Generator {
    pub device: Device,
    state: Mutex<(u64, u64)>,
}

impl Generator {
    pub fn new(seed: u64, device: Device) -> Generator {
        Generator { device, state: Mutex::new((seed, 0)) }
    }
    pub fn state(&self) -> (u64, u64) {
        *self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn set_state(&self, seed: u64, offset: u64) {
        *self.state.lock().unwrap_or_else(|e| e.into_inner()) = (seed, offset);
    }
    /// Reserves `n` element counters; returns the seed and the first counter.
    pub fn take(&self, n: usize) -> (u64, u64) {
        let mut s = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let (start, counters) = (*s, (n as u64).div_ceil(4));
        s.1 = s.1.wrapping_add(counters);
        drop(s);
        tracer::notify(|t| t.drew(start.0, start.1, counters));
        start
    }
}

static DEFAULT: LazyLock<Arc<Generator>> = LazyLock::new(|| Arc::new(Generator::new(fresh_seed(), Device::Cpu)));

/// The default generator; one for all devices, so that results do not depend on the device.
pub fn default_generator() -> &'static Arc<Generator> {
    &DEFAULT
}

/// A seed that differs between runs, from the hasher keys that the standard library obtains from the system.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
