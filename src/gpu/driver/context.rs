//! An opened adapter: device, queue, and how trouble comes back as an error.
//!
//! Errors that wgpu reports outside a call (validation at submit, a lost device) are kept and returned by the next call.

use super::adapter::Adapter;
use super::caps::Caps;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub(super) struct Context {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub caps: Caps,
    fault: Arc<Fault>,
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

static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn after_fork_in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process was forked from one that had opened a device: the driver's threads are gone.
#[inline]
pub(super) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

#[cold]
pub(super) fn forked() -> Error {
    Error::runtime(
        "the GPU cannot be used in a process forked after its first use. Start workers with the 'spawn' method, \
         or use the GPU only in the parent.",
    )
}

impl Context {
    pub fn open(adapter: &Adapter) -> std::result::Result<Context, String> {
        let caps = adapter.caps;
        let mut features = wgpu::Features::empty();
        if caps.int64 {
            features |= wgpu::Features::SHADER_INT64;
        }
        if caps.float64 {
            features |= wgpu::Features::SHADER_F64;
        }
        let (device, queue) = pollster::block_on(adapter.raw.request_device(&wgpu::DeviceDescriptor {
            label: Some("rustgrad"),
            required_features: features,
            required_limits: adapter.raw.limits(),
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
        {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| {
                // SAFETY: the handler only stores to a static atomic, which is async-signal-safe.
                unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
            });
        }
        Ok(Context { device, queue, caps, fault })
    }
    /// Turns an error raised by wgpu since the last check into a `Result`.
    #[inline]
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
