//! Memory of a device, from a size-classed pool.
//!
//! Memory that was given back can be handed out at once, even if commands that use it have not run: all work goes
//! through one ordered stream, so whoever gets it next comes later. Only the host's own writes and reads look at
//! `last_use` (see `transfer`). Four classes per power of two bound the waste to a quarter.

use super::context::Context;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A wgpu buffer and its identity in caches.
pub(in crate::gpu) struct Memory {
    /// `None` where kernels are only checked: there is nothing behind it.
    buffer: Option<wgpu::Buffer>,
    pub id: u64,
    pub size: u64,
    /// The batch of the stream that used it last.
    last_use: AtomicU64,
}

#[derive(Default)]
pub(super) struct Pool {
    /// By size and identity: the oldest goes first, so that what is handed out depends on what is free and not on the order in
    /// which it came back. Steps that repeat get the same memory again, and with it the bind groups that they had.
    free: BTreeMap<(u64, u64), Memory>,
    live_bytes: u64,
    peak_bytes: u64,
    free_bytes: u64,
    peak_reserved: u64,
    created: u64,
    reused: u64,
}

/// The size class of a request: 256, then four steps per power of two.
pub(super) fn class(bytes: u64, max: u64) -> u64 {
    let bytes = bytes.max(1);
    let step = (bytes.next_power_of_two() / 8).max(256);
    let size = bytes.div_ceil(step) * step;
    if size > max { bytes.div_ceil(256) * 256 } else { size }
}

pub(super) fn create(context: &Context, size: u64) -> Option<wgpu::Buffer> {
    let memory = context.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let invalid = context.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let label = format!("tensor storage {size}");
    let desc = wgpu::BufferDescriptor { label: Some(&label), size, usage, mapped_at_creation: false };
    let buffer = context.device.create_buffer(&desc);
    let bad = pollster::block_on(invalid.pop()).is_some();
    (pollster::block_on(memory.pop()).is_none() && !bad).then_some(buffer)
}

impl Pool {
    pub fn take(&mut self, size: u64) -> Option<Memory> {
        let key = *self.free.range((size, 0)..=(size, u64::MAX)).next()?.0;
        let memory = self.free.remove(&key)?;
        self.free_bytes -= size;
        self.reused += 1;
        self.lend(size);
        Some(memory)
    }
    pub fn adopt(&mut self, buffer: wgpu::Buffer) -> Memory {
        let size = buffer.size();
        self.created += 1;
        self.lend(size);
        Memory::new(Some(buffer), size)
    }
    fn lend(&mut self, size: u64) {
        self.live_bytes += size;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        self.peak_reserved = self.peak_reserved.max(self.live_bytes + self.free_bytes);
    }
    pub fn give(&mut self, memory: Memory) {
        let size = memory.size;
        self.live_bytes -= size;
        self.free_bytes += size;
        self.free.insert((size, memory.id), memory);
    }
    pub fn clear(&mut self) {
        self.free.clear();
        self.free_bytes = 0;
    }
    /// Bytes in use and the most of them, bytes held in all and the most of them.
    pub fn bytes(&self) -> [usize; 4] {
        let reserved = self.live_bytes + self.free_bytes;
        [self.live_bytes, self.peak_bytes, reserved, self.peak_reserved].map(|b| b as usize)
    }
    pub fn reset_peak(&mut self) {
        self.peak_bytes = self.live_bytes;
        self.peak_reserved = self.live_bytes + self.free_bytes;
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

impl Memory {
    fn new(buffer: Option<wgpu::Buffer>, size: u64) -> Memory {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Memory { buffer, id: NEXT.fetch_add(1, Ordering::Relaxed), size, last_use: AtomicU64::new(0) }
    }
    /// Memory that is only named.
    #[cfg(test)]
    pub fn hollow(size: u64) -> Memory {
        Memory::new(None, size)
    }
    pub fn buffer(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("hollow memory belongs to a driver that runs nothing")
    }
    pub fn mark(&self, batch: u64) {
        self.last_use.store(batch, Ordering::Relaxed);
    }
    pub fn used_in(&self, batch: u64) -> bool {
        self.last_use.load(Ordering::Relaxed) == batch
    }
}
