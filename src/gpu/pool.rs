//! Buffers from a size-classed pool.
//!
//! A dropped buffer can be handed out at once, even if commands that use it have not run: all work goes through
//! one ordered stream, so whoever gets it next comes later. Only the host's own writes and reads look at
//! `last_use` (see `transfer`). Four classes per power of two bound the waste to a quarter.

use super::context::{Gpu, existing, gpu};
use super::validate;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A piece of GPU memory; dropping it returns it to the pool.
pub struct GpuBuffer {
    raw: Option<Raw>,
    bytes: usize,
}

/// A wgpu buffer and its identity in caches.
pub(super) struct Raw {
    pub buffer: wgpu::Buffer,
    pub id: u64,
    /// The batch of the stream that used it last.
    pub last_use: AtomicU64,
}

#[derive(Default)]
pub(super) struct Pool {
    free: BTreeMap<u64, Vec<Raw>>,
    live_bytes: u64,
    peak_bytes: u64,
    free_bytes: u64,
    next_id: u64,
    created: u64,
    reused: u64,
}

impl GpuBuffer {
    /// Uninitialised memory for `bytes` bytes.
    pub fn alloc(bytes: usize) -> Result<GpuBuffer> {
        if validate::dry() {
            return Ok(GpuBuffer::hollow(bytes));
        }
        let gpu = gpu()?;
        let size = class(bytes as u64, gpu.caps.max_buffer);
        if size > gpu.caps.max_buffer {
            return Err(Error::out_of_memory(bytes, "gpu"));
        }
        if let Some(raw) = gpu.pool().take(size) {
            return Ok(GpuBuffer { raw: Some(raw), bytes });
        }
        let buffer = match create(gpu, size) {
            Some(buffer) => buffer,
            None => {
                super::empty_cache();
                create(gpu, size).ok_or_else(|| Error::out_of_memory(bytes, "gpu"))?
            }
        };
        let raw = gpu.pool().adopt(buffer, size);
        Ok(GpuBuffer { raw: Some(raw), bytes })
    }
    /// A buffer without memory, for checking kernels without a device.
    pub(super) const fn hollow(bytes: usize) -> GpuBuffer {
        GpuBuffer { raw: None, bytes }
    }
    /// Memory filled with zeros.
    pub fn zeroed(bytes: usize) -> Result<GpuBuffer> {
        let buffer = GpuBuffer::alloc(bytes)?;
        super::map::zero(&buffer)?;
        Ok(buffer)
    }
    /// The bytes asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub(super) fn raw(&self) -> &Raw {
        self.raw.as_ref().expect("a buffer keeps its memory until it is dropped")
    }
    pub(super) fn id(&self) -> u64 {
        // Hollow buffers are told apart by their place in memory.
        self.raw.as_ref().map_or(self as *const GpuBuffer as u64, |r| r.id)
    }
    /// The size of the memory behind it, a multiple of 256.
    pub(super) fn capacity(&self) -> u64 {
        self.raw().buffer.size()
    }
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        if let (Some(raw), Some(gpu)) = (self.raw.take(), existing()) {
            gpu.pool().give(raw);
        }
    }
}

impl std::fmt::Debug for GpuBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuBuffer(#{}, {} bytes)", self.id(), self.bytes)
    }
}

/// The size class of a request: 256, then four steps per power of two.
fn class(bytes: u64, max: u64) -> u64 {
    let bytes = bytes.max(1);
    let step = (bytes.next_power_of_two() / 8).max(256);
    let size = bytes.div_ceil(step) * step;
    if size > max { bytes.div_ceil(256) * 256 } else { size }
}

fn create(gpu: &Gpu, size: u64) -> Option<wgpu::Buffer> {
    let memory = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let invalid = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let label = format!("tensor storage {size}");
    let desc = wgpu::BufferDescriptor { label: Some(&label), size, usage, mapped_at_creation: false };
    let buffer = gpu.device.create_buffer(&desc);
    let bad = pollster::block_on(invalid.pop()).is_some();
    (pollster::block_on(memory.pop()).is_none() && !bad).then_some(buffer)
}

impl Pool {
    fn take(&mut self, size: u64) -> Option<Raw> {
        let raw = self.free.get_mut(&size)?.pop()?;
        self.free_bytes -= size;
        self.reused += 1;
        self.lend(size);
        Some(raw)
    }
    fn adopt(&mut self, buffer: wgpu::Buffer, size: u64) -> Raw {
        self.next_id += 1;
        self.created += 1;
        self.lend(size);
        Raw { buffer, id: self.next_id, last_use: AtomicU64::new(0) }
    }
    fn lend(&mut self, size: u64) {
        self.live_bytes += size;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
    }
    fn give(&mut self, raw: Raw) {
        let size = raw.buffer.size();
        self.live_bytes -= size;
        self.free_bytes += size;
        self.free.entry(size).or_default().push(raw);
    }
    pub fn clear(&mut self) {
        self.free.clear();
        self.free_bytes = 0;
    }
    pub fn allocated(&self) -> usize {
        self.live_bytes as usize
    }
    pub fn peak(&self) -> usize {
        self.peak_bytes as usize
    }
    pub fn reset_peak(&mut self) {
        self.peak_bytes = self.live_bytes;
    }
    pub fn reserved(&self) -> usize {
        (self.live_bytes + self.free_bytes) as usize
    }
    pub fn counters(&self) -> [(&'static str, u64); 4] {
        [
            ("buffers created", self.created),
            ("buffers reused", self.reused),
            ("bytes allocated", self.live_bytes),
            ("bytes pooled", self.free_bytes),
        ]
    }
}

impl Raw {
    pub fn mark(&self, batch: u64) {
        self.last_use.store(batch, Ordering::Relaxed);
    }
    pub fn used_in(&self, batch: u64) -> bool {
        self.last_use.load(Ordering::Relaxed) == batch
    }
}
