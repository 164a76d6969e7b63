//! The driver of a build without the `gpu` feature: there is no device, so nothing below a device can exist either.

use super::caps::Caps;
use super::launch::{Bind, Launch};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};

pub(in crate::gpu) enum Driver {}
/// A buffer that cannot exist.
#[derive(Debug)]
pub enum GpuBuffer {}

#[cold]
fn absent<T>() -> Result<T> {
    Err(Error::runtime("no GPU support in this build. Install a build with the `gpu` feature, or use device='cpu'."))
}

impl Driver {
    pub fn name(&self) -> &str {
        match *self {}
    }
    pub fn caps(&self) -> &Caps {
        match *self {}
    }
    pub fn alloc(&'static self, _bytes: usize) -> Result<GpuBuffer> {
        match *self {}
    }
    pub fn zeroed(&'static self, _bytes: usize) -> Result<GpuBuffer> {
        match *self {}
    }
    pub fn launch(&'static self, _launch: &Launch) -> Result<()> {
        match *self {}
    }
    pub fn fault_block(&'static self) -> Result<&'static GpuBuffer> {
        match *self {}
    }
}

impl GpuBuffer {
    pub fn alloc(_index: usize, _bytes: usize) -> Result<GpuBuffer> {
        absent()
    }
    pub fn zeroed(_index: usize, _bytes: usize) -> Result<GpuBuffer> {
        absent()
    }
    pub fn bytes(&self) -> usize {
        match *self {}
    }
    pub(in crate::gpu) fn driver(&self) -> &'static Driver {
        match *self {}
    }
    pub(in crate::gpu) fn id(&self) -> u64 {
        match *self {}
    }
    pub(in crate::gpu) fn capacity(&self) -> u64 {
        match *self {}
    }
    pub(in crate::gpu) fn bind(&self, _offset: u64, _size: u64) -> Bind<'_> {
        match *self {}
    }
    pub(in crate::gpu) fn takes_words(&self, _byte_offset: usize, _bytes: usize) -> bool {
        match *self {}
    }
    pub(in crate::gpu) fn write(&self, _src: &[u8], _byte_offset: usize) -> Result<()> {
        match *self {}
    }
    /// # Safety
    /// None here: there is no buffer to call it on.
    pub(in crate::gpu) unsafe fn read(&self, _byte_offset: usize, _dst: *mut u8, _bytes: usize) -> Result<()> {
        match *self {}
    }
}

pub fn is_available() -> bool {
    false
}
pub fn unasked_software() -> Option<&'static str> {
    None
}
pub fn device_count() -> usize {
    0
}
pub fn supports(_device: Device, _dtype: DType) -> bool {
    false
}
pub fn device_name(_index: usize) -> Result<String> {
    absent()
}
pub fn properties(_index: usize) -> Result<Vec<(&'static str, String)>> {
    absent()
}
pub fn synchronize() -> Result<()> {
    Ok(())
}
pub fn memory(_index: usize) -> [usize; 4] {
    [0; 4]
}
pub fn reset_peak_memory(_index: usize) {}
pub fn empty_cache() {}
pub fn stats(_index: usize) -> Vec<(&'static str, u64)> {
    Vec::new()
}
