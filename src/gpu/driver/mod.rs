//! Everything that touches wgpu: adapters, memory, the ordered command stream, pipelines, transfers.
//!
//! It knows no tensor and no kernel. A kernel reaches it as a `Launch`: a key, a source, memory to bind and words of
//! parameters. Without the `gpu` feature `off` stands for all of it, and the kernels are built all the same.

mod caps;
mod launch;
pub(super) use self::launch::{Bind, Key, Launch, Params, Shader, too_large};

#[cfg(feature = "gpu")]
mod adapter;
#[cfg(feature = "gpu")]
mod context;
#[cfg(feature = "gpu")]
mod device;
#[cfg(feature = "gpu")]
mod pipelines;
#[cfg(feature = "gpu")]
mod pool;
#[cfg(feature = "gpu")]
mod queries;
#[cfg(feature = "gpu")]
mod stream;
#[cfg(feature = "gpu")]
mod transfer;
#[cfg(feature = "gpu")]
mod validate;
#[cfg(feature = "gpu")]
pub(super) use self::device::Driver;
#[cfg(feature = "gpu")]
pub use self::device::GpuBuffer;
#[cfg(all(test, feature = "gpu"))]
pub(super) use self::device::driver;
#[cfg(feature = "gpu")]
pub use self::queries::{
    device_count, device_name, empty_cache, is_available, memory, properties, reset_peak_memory, stats, supports,
    synchronize, unasked_software,
};
#[cfg(feature = "gpu")]
pub(super) use self::validate::check;

#[cfg(not(feature = "gpu"))]
mod off;
#[cfg(not(feature = "gpu"))]
pub(super) use self::off::Driver;
#[cfg(not(feature = "gpu"))]
pub use self::off::{
    GpuBuffer, device_count, device_name, empty_cache, is_available, memory, properties, reset_peak_memory, stats,
    supports, synchronize, unasked_software,
};
