//! Random number generators: of the CPU the Mersenne Twister, with PyTorch's values for a seed (Note [Random numbers on
//! the CPU]); of a GPU Philox, whose words are found by element index (Note [Random numbers on the GPU]).

use super::tracer;
use crate::cpu::mersenne::{Mersenne, STATE_BYTES};
use crate::cpu::philox::Philox;
use crate::device::Device;
use crate::error::{Error, Result};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

#[derive(Debug)]
pub struct Generator {
    pub device: Device,
    state: Mutex<State>,
}

/// Where a generator is in its sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Cpu(Box<Mersenne>),
    Gpu(Philox),
}

impl State {
    fn new(seed: u64, device: Device) -> State {
        match device {
            Device::Cpu => State::Cpu(Box::new(Mersenne::new(seed))),
            _ => State::Gpu(Philox { seed, offset: 0 }),
        }
    }
    /// As PyTorch saves it: a CPU's 5056 bytes, a GPU's seed and offset.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            State::Cpu(m) => m.to_bytes().to_vec(),
            State::Gpu(p) => [p.seed.to_le_bytes(), p.offset.to_le_bytes()].concat(),
        }
    }
    /// Errors: RuntimeError for bytes that are not a state of such a device.
    pub fn from_bytes(bytes: &[u8], device: Device) -> Result<State> {
        if device == Device::Cpu {
            return Ok(State::Cpu(Box::new(Mersenne::from_bytes(bytes)?)));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        match (words, rest) {
            (&[seed, offset], []) => {
                Ok(State::Gpu(Philox { seed: u64::from_le_bytes(seed), offset: u64::from_le_bytes(offset) }))
            }
            _ => Err(Error::runtime(format!(
                "RNG state is wrong size: the state of a GPU's generator has 16 bytes, that of a CPU's {STATE_BYTES}; got {}",
                bytes.len()
            ))),
        }
    }
}

impl Generator {
    pub fn new(seed: u64, device: Device) -> Generator {
        Generator { device, state: Mutex::new(State::new(seed, device)) }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The last seed set.
    pub fn seed(&self) -> u64 {
        match &*self.lock() {
            State::Cpu(m) => m.seed(),
            State::Gpu(p) => p.seed,
        }
    }
    /// Sets the seed and restarts the sequence.
    pub fn set_seed(&self, seed: u64) {
        *self.lock() = State::new(seed, self.device);
    }
    pub fn state(&self) -> State {
        self.lock().clone()
    }
    /// Restores a state, which must be of such a device.
    pub fn set_state(&self, state: State) {
        *self.lock() = state;
    }
    /// Lends the sequence to what draws on the host. A GPU's generator lends one of its own, by its next counter.
    pub fn draw<R>(&self, f: impl FnOnce(&mut Mersenne) -> R) -> R {
        tracer::notify(|t| t.draws());
        match &mut *self.lock() {
            State::Cpu(m) => f(m),
            State::Gpu(p) => {
                let [low, high, ..] = p.block(0);
                p.offset = p.offset.wrapping_add(1);
                f(&mut Mersenne::new((high as u64) << 32 | low as u64))
            }
        }
    }
    /// Reserves the counters of `n` elements on a GPU; returns the key of the draw.
    pub fn counters(&self, n: usize) -> Result<Philox> {
        tracer::notify(|t| t.draws());
        match &mut *self.lock() {
            State::Cpu(_) => Err(wrong_device("gpu", "cpu")),
            State::Gpu(p) => {
                let start = *p;
                p.offset = p.offset.wrapping_add((n as u64).div_ceil(4));
                Ok(start)
            }
        }
    }
}

/// The error of a generator that is of another device than what it fills.
pub fn wrong_device(wanted: &str, got: &str) -> Error {
    Error::runtime(format!("Expected a '{wanted}' device type for generator but found '{got}'"))
}

static CPU: LazyLock<Arc<Generator>> = LazyLock::new(|| Arc::new(Generator::new(fresh_seed(), Device::Cpu)));
static GPU: LazyLock<Arc<Generator>> = LazyLock::new(|| Arc::new(Generator::new(fresh_seed(), Device::Gpu(0))));

/// The generator of what is filled on a device where no other is given; one for all GPUs.
pub fn default_generator(device: Device) -> &'static Arc<Generator> {
    if device.is_gpu() { &GPU } else { &CPU }
}

/// Seeds the default generators and restarts their sequences.
pub fn seed_all(seed: u64) {
    [&CPU, &GPU].into_iter().for_each(|g| g.set_seed(seed));
}

/// The states of the default generators.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DefaultStates {
    cpu: State,
    gpu: State,
}

impl DefaultStates {
    pub fn now() -> DefaultStates {
        DefaultStates { cpu: CPU.state(), gpu: GPU.state() }
    }
    pub fn restore(&self) {
        CPU.set_state(self.cpu.clone());
        GPU.set_state(self.gpu.clone());
    }
}

/// A seed that differs between runs, from the hasher keys that the standard library obtains from the system.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
