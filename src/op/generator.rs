//! Sources of random numbers: a seed and how many Philox counters have been used.
//!
//! Element `i` of a draw uses a counter of its own, so values do not depend on device, thread count or memory layout.

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
    /// Takes `n` element counters and answers with the seed and the first of them.
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

/// The generator that ops use when none is given; one for all devices, so that results do not depend on the device.
pub fn default_generator() -> &'static Arc<Generator> {
    &DEFAULT
}

/// A seed that differs from run to run, from the hasher keys that the standard library draws from the system.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
