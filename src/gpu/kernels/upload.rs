//! Host memory to any bytes of a buffer, and back.

use super::map::copy;
use super::view::{Input, View};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::driver::GpuBuffer;

/// Writes `src` into the buffer at `byte_offset`; ordered like a command, without waiting.
pub fn upload(src: &[u8], dst: &GpuBuffer, byte_offset: usize) -> Result<()> {
    if src.is_empty() || dst.takes_words(byte_offset, src.len()) {
        return dst.write(src, byte_offset);
    }
    // The host writes whole words only: unaligned pieces go through a kernel that keeps the neighbours.
    let stage = dst.driver().alloc(src.len())?;
    stage.write(src, 0)?;
    let shape = [src.len()];
    let from = View { buffer: &stage, dtype: DType::U8, shape: &shape, strides: &[1], offset: 0 };
    copy(&Input::View(from), &View { buffer: dst, offset: byte_offset, ..from })
}

/// Reads `bytes` bytes at `byte_offset` into `dst`, after everything recorded before has run.
///
/// # Safety
/// `dst` must be valid for writes of `bytes` bytes.
pub unsafe fn download(src: &GpuBuffer, byte_offset: usize, dst: *mut u8, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { src.read(byte_offset, dst, bytes) }
}
