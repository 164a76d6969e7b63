//! The one GPU context: device, queue, locks, and how trouble comes back as an error.
//!
//! Lock order: `stream` before `pool`; the pool's lock is a leaf, so a buffer may be dropped anywhere. Errors that
//! wgpu reports outside a call (validation at submit, a lost device) are kept and returned by the next call.

use super::adapter::{Caps, found, unavailable};
use super::pool::{GpuBuffer, Pool};
use super::stream::Stream;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub(super) struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub caps: Caps,
    fault: Arc<Fault>,
    stream: Mutex<Stream>,
    pool: Mutex<Pool>,
    pub fault_block: OnceLock<GpuBuffer>,
}

/// The first error that came outside a call. A lost device stays lost.
#[derive(Default)]
struct Fault {
    raised: AtomicBool,
    lost: AtomicBool,
    message: Mutex<String>,
}

impl Fault {
    fn raise(&self, message: String, lost: bool) {
        let mut slot = self.message.lock().unwrap_or_else(|e| e.into_inner());
        if slot.is_empty() || lost {
            *slot = message;
        }
        self.lost.fetch_or(lost, Ordering::Relaxed);
        self.raised.store(true, Ordering::Release);
    }
    #[cold]
    fn take(&self) -> Error {
        let mut slot = self.message.lock().unwrap_or_else(|e| e.into_inner());
        if self.lost.load(Ordering::Relaxed) {
            return Error::runtime(format!("the GPU was lost: {slot}. Restart the process to use it again."));
        }
        self.raised.store(false, Ordering::Release);
        Error::runtime(format!("the GPU reported an error: {}", std::mem::take(&mut *slot)))
    }
}

static GPU: OnceLock<std::result::Result<Gpu, String>> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);

/// The context, created on first use. In a child made by `fork` the driver's threads are gone: an error, not a hang.
#[inline]
pub(super) fn gpu() -> Result<&'static Gpu> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(forked());
    }
    match GPU.get_or_init(create) {
        Ok(gpu) if gpu.fault.raised.load(Ordering::Acquire) => Err(gpu.fault.take()),
        Ok(gpu) => Ok(gpu),
        Err(why) => Err(unavailable(why)),
    }
}

/// The context if it exists already; no error is raised and nothing is created.
pub(super) fn existing() -> Option<&'static Gpu> {
    if FORKED.load(Ordering::Relaxed) {
        return None;
    }
    GPU.get().and_then(|g| g.as_ref().ok())
}

#[cold]
fn forked() -> Error {
    Error::runtime(
        "the GPU cannot be used in a process forked after its first use. Start workers with the 'spawn' method, \
         or use the GPU only in the parent.",
    )
}

extern "C" fn after_fork_in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

fn create() -> std::result::Result<Gpu, String> {
    let found = found().map_err(str::to_string)?;
    let mut features = wgpu::Features::empty();
    if found.caps.int64 {
        features |= wgpu::Features::SHADER_INT64;
    }
    if found.caps.float64 {
        features |= wgpu::Features::SHADER_F64;
    }
    let (device, queue) = pollster::block_on(found.adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("rustgrad"),
        required_features: features,
        required_limits: found.adapter.limits(),
        experimental_features: Default::default(),
        memory_hints: wgpu::MemoryHints::Performance,
        trace: wgpu::Trace::Off,
    }))
    .map_err(|e| e.to_string())?;
    let fault = Arc::new(Fault::default());
    let sink = fault.clone();
    device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| sink.raise(e.to_string(), false)));
    let sink = fault.clone();
    device.set_device_lost_callback(move |reason, message| sink.raise(format!("{reason:?}: {message}"), true));
    #[cfg(unix)]
    // SAFETY: the handler only stores to a static atomic, which is async-signal-safe.
    unsafe {
        libc::pthread_atfork(None, None, Some(after_fork_in_child));
    }
    let stream = Mutex::new(Stream::new(&device, found.caps));
    Ok(Gpu {
        device,
        queue,
        caps: found.caps,
        fault,
        stream,
        pool: Mutex::new(Pool::default()),
        fault_block: OnceLock::new(),
    })
}

impl Gpu {
    pub fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Four words in which kernels leave the first bad index.
    pub fn fault_block(&self) -> Result<&GpuBuffer> {
        if self.fault_block.get().is_none() {
            let _ = self.fault_block.set(GpuBuffer::zeroed(16)?);
        }
        self.fault_block.get().ok_or_else(|| Error::internal("no fault block"))
    }
    /// Turns an error raised by wgpu since the last check into a `Result`.
    pub fn check(&self) -> Result<()> {
        if self.fault.raised.load(Ordering::Acquire) { Err(self.fault.take()) } else { Ok(()) }
    }
}

/// Level of `RUSTGRAD_DEBUG`: 2 prints kernels, 3 their WGSL, 4 times each (and waits after each).
pub(super) fn debug() -> u8 {
    static LEVEL: OnceLock<u8> = OnceLock::new();
    *LEVEL.get_or_init(|| std::env::var("RUSTGRAD_DEBUG").ok().and_then(|v| v.parse().ok()).unwrap_or(0))
}

/// `RUSTGRAD_GPU_BLOCKING=1`: a call waits for a kernel that may meet a bad index, so that the error names its op.
pub(super) fn blocking() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var("RUSTGRAD_GPU_BLOCKING").is_ok_and(|v| !v.is_empty() && v != "0"))
}

/// Waits until everything recorded so far has run. Nothing to wait for where no GPU was used yet.
pub fn synchronize() -> Result<()> {
    if GPU.get().is_none() {
        return Ok(());
    }
    let gpu = gpu()?;
    super::transfer::read_faults(gpu)?;
    gpu.stream().finish(gpu)?;
    gpu.check()
}

/// Bytes held by live buffers.
pub fn memory_allocated() -> usize {
    existing().map_or(0, |g| g.pool().allocated())
}

/// The most that `memory_allocated` was since the start, or since it was reset.
pub fn max_memory_allocated() -> usize {
    existing().map_or(0, |g| g.pool().peak())
}

/// Starts `max_memory_allocated` again from what is held now.
pub fn reset_peak_memory() {
    if let Some(gpu) = existing() {
        gpu.pool().reset_peak();
    }
}

/// Bytes held by live buffers and by the pool.
pub fn memory_reserved() -> usize {
    existing().map_or(0, |g| g.pool().reserved())
}

/// Frees the pooled buffers and the bind groups that keep buffers alive.
pub fn empty_cache() {
    if let Some(gpu) = existing() {
        let mut stream = gpu.stream();
        // An error here is kept by the fault and comes back from the next call.
        let _ = stream.finish(gpu);
        stream.pipelines.forget_bind_groups();
        gpu.pool().clear();
    }
}

/// Counters since the start, for tests and for looking.
pub fn stats() -> Vec<(&'static str, u64)> {
    let Some(gpu) = existing() else { return Vec::new() };
    let stream = gpu.stream();
    let mut list = stream.counters().to_vec();
    list.extend(stream.pipelines.counters());
    drop(stream);
    list.extend(gpu.pool().counters());
    list
}
