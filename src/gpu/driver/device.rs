//! A device: its context, its stream and its pool behind locks, and the buffers that live on it.
//!
//! Lock order: `stream` before `pool`; the pool's lock is a leaf, so a buffer may be dropped anywhere.

use super::adapter::{Adapter, adapters, unavailable};
use super::caps::Caps;
use super::context::{Context, blocking, forked, is_forked};
use super::launch::{Bind, Launch};
use super::pool::{self, Memory, Pool};
use super::stream::Stream;
use crate::error::{Error, Result};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// One of the devices `gpu:0`, `gpu:1` .. It lives as long as the process.
pub(in crate::gpu) struct Driver {
    name: String,
    caps: Caps,
    /// `None` in the driver of tests that validate what is launched instead of running it.
    connection: Option<Connection>,
    /// Four words in which kernels leave the first bad value.
    fault_block: OnceLock<GpuBuffer>,
}

pub(super) struct Connection {
    pub context: Context,
    stream: Mutex<Stream>,
    pool: Mutex<Pool>,
}

/// A piece of a device's memory; dropping it returns it to the pool.
pub struct GpuBuffer {
    driver: &'static Driver,
    /// `None` only while it is dropped.
    memory: Option<Memory>,
    bytes: usize,
}

type Slot = OnceLock<std::result::Result<Driver, String>>;

/// A place for each admitted adapter, filled on first use.
static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();

fn slots() -> std::result::Result<&'static [Slot], &'static str> {
    let adapters = adapters()?;
    Ok(SLOTS.get_or_init(|| adapters.iter().map(|_| Slot::new()).collect()))
}

/// The device of this number, opened on first use. In a child made by `fork`: an error, not a hang.
pub(in crate::gpu) fn driver(index: usize) -> Result<&'static Driver> {
    if is_forked() {
        return Err(forked());
    }
    let slots = slots().map_err(unavailable)?;
    let slot = slots.get(index).ok_or_else(|| no_such_device(index, slots.len()))?;
    match slot.get_or_init(|| Driver::open(&adapters()?[index])) {
        Ok(driver) => driver.connection()?.context.check().map(|()| driver),
        Err(why) => Err(unavailable(why)),
    }
}

#[cold]
pub(super) fn no_such_device(index: usize, count: usize) -> Error {
    let (gpus, them) = if count == 1 { ("GPU", "it") } else { ("GPUs", "them") };
    Error::runtime(format!(
        "invalid device index {index}; this process drives {count} {gpus} (RUSTGRAD_GPU picks {them})"
    ))
}

/// The devices that are open already: no adapter is looked for. In a forked child there is none.
pub(super) fn open_drivers() -> impl Iterator<Item = (usize, &'static Driver)> {
    let slots = SLOTS.get().filter(|_| !is_forked()).map_or(&[][..], Vec::as_slice);
    slots.iter().enumerate().filter_map(|(i, slot)| Some((i, slot.get()?.as_ref().ok()?)))
}

impl Driver {
    fn open(adapter: &Adapter) -> std::result::Result<Driver, String> {
        let context = Context::open(adapter)?;
        let stream = Mutex::new(Stream::new(&context));
        let connection = Some(Connection { context, stream, pool: Mutex::default() });
        Ok(Driver { name: adapter.name.clone(), caps: adapter.caps, connection, fault_block: OnceLock::new() })
    }
    /// The device that validates the source of every launch and runs nothing.
    #[cfg(test)]
    pub fn checking() -> &'static Driver {
        static CHECKING: Driver = Driver {
            name: String::new(),
            caps: Caps {
                int64: true,
                float64: true,
                max_binding: u64::MAX,
                max_buffer: u64::MAX,
                max_groups: u32::MAX,
                storage_align: 16,
                uniform_align: 16,
                max_iterations: usize::MAX,
            },
            connection: None,
            fault_block: OnceLock::new(),
        };
        &CHECKING
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn caps(&self) -> &Caps {
        &self.caps
    }
    pub(super) fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().ok_or_else(|| Error::internal("this device only checks kernels"))
    }
    /// Uninitialised memory for `bytes` bytes.
    pub fn alloc(&'static self, bytes: usize) -> Result<GpuBuffer> {
        #[cfg(test)]
        if self.connection.is_none() {
            return Ok(GpuBuffer { driver: self, memory: Some(Memory::hollow(bytes as u64)), bytes });
        }
        let connection = self.connection()?;
        let out_of_memory = || Error::out_of_memory(bytes, "gpu");
        let size = pool::class(bytes as u64, self.caps.max_buffer);
        if size > self.caps.max_buffer {
            return Err(out_of_memory());
        }
        let pooled = connection.pool().take(size);
        let memory = match pooled {
            Some(memory) => memory,
            None => {
                let buffer = pool::create(&connection.context, size).or_else(|| {
                    connection.empty_cache();
                    pool::create(&connection.context, size)
                });
                connection.pool().adopt(buffer.ok_or_else(out_of_memory)?)
            }
        };
        Ok(GpuBuffer { driver: self, memory: Some(memory), bytes })
    }
    /// Memory filled with zeros.
    pub fn zeroed(&'static self, bytes: usize) -> Result<GpuBuffer> {
        let buffer = self.alloc(bytes)?;
        if let Some(connection) = &self.connection {
            connection.stream().clear(&connection.context, buffer.memory())?;
        }
        Ok(buffer)
    }
    /// Records a kernel.
    pub fn launch(&'static self, launch: &Launch) -> Result<()> {
        #[cfg(test)]
        if self.connection.is_none() {
            return super::validate::check(&launch.shader.name(), &launch.shader.source());
        }
        if is_forked() {
            return Err(forked());
        }
        let connection = self.connection()?;
        connection.context.check()?;
        connection.stream().launch(&connection.context, launch)?;
        if launch.may_fault && blocking() { self.read_faults() } else { Ok(()) }
    }
    pub fn fault_block(&'static self) -> Result<&'static GpuBuffer> {
        if self.fault_block.get().is_none() {
            let _ = self.fault_block.set(self.zeroed(16)?);
        }
        self.fault_block.get().ok_or_else(|| Error::internal("no fault block"))
    }
    pub(super) fn existing_fault_block(&'static self) -> Option<&'static GpuBuffer> {
        self.fault_block.get()
    }
    /// Bytes held by live buffers and the most that they held, bytes held with the pool and the most of these.
    pub fn memory(&self) -> [usize; 4] {
        self.connection.as_ref().map_or([0; 4], |m| m.pool().bytes())
    }
    pub fn reset_peak_memory(&self) {
        if let Some(connection) = &self.connection {
            connection.pool().reset_peak();
        }
    }
    /// Frees the pooled memory and the bind groups that keep buffers alive.
    pub fn empty_cache(&self) {
        if let Some(connection) = &self.connection {
            connection.empty_cache();
        }
    }
    /// Counters since the start.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let Some(connection) = &self.connection else { return Vec::new() };
        let stream = connection.stream();
        let mut list = stream.counters().to_vec();
        list.extend(stream.pipelines.counters());
        drop(stream);
        list.extend(connection.pool().counters());
        list
    }
}

impl Connection {
    pub fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn empty_cache(&self) {
        let mut stream = self.stream();
        // An error here is kept by the context and comes back from the next call.
        let _ = stream.finish(&self.context);
        stream.pipelines.forget_bind_groups();
        self.pool().clear();
    }
}

impl GpuBuffer {
    /// Uninitialised memory on the device of this number.
    pub fn alloc(index: usize, bytes: usize) -> Result<GpuBuffer> {
        driver(index)?.alloc(bytes)
    }
    /// Memory filled with zeros.
    pub fn zeroed(index: usize, bytes: usize) -> Result<GpuBuffer> {
        driver(index)?.zeroed(bytes)
    }
    /// The bytes asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub(in crate::gpu) fn driver(&self) -> &'static Driver {
        self.driver
    }
    pub(super) fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("a buffer keeps its memory until it is dropped")
    }
    pub(in crate::gpu) fn id(&self) -> u64 {
        self.memory().id
    }
    /// The size of the memory behind it, a multiple of 256.
    pub(in crate::gpu) fn capacity(&self) -> u64 {
        self.memory().size
    }
    /// A window of `size` bytes at `offset`, or all of it where `size` is zero.
    pub(in crate::gpu) fn bind(&self, offset: u64, size: u64) -> Bind<'_> {
        Bind { memory: self.memory(), offset, size }
    }
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        if let (Some(memory), Some(connection), false) = (self.memory.take(), &self.driver.connection, is_forked()) {
            connection.pool().give(memory);
        }
    }
}

impl std::fmt::Debug for GpuBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuBuffer(#{}, {} bytes)", self.id(), self.bytes)
    }
}
