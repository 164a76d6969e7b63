//! Between host memory and buffers. An upload is ordered like a command without waiting; a download waits.

use super::GpuBuffer;
use super::context::{Gpu, gpu};
use super::map::copy;
use super::types::{Input, View};
use super::validate;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The most that is staged at once, so that a large transfer does not need its size twice.
const PIECE: usize = 64 << 20;

fn check(buffer: &GpuBuffer, offset: usize, bytes: usize) -> Result<()> {
    if offset.checked_add(bytes).is_none_or(|end| end > buffer.bytes()) {
        let size = buffer.bytes();
        return Err(Error::internal(format!("transfer of {bytes} bytes at {offset} in a buffer of {size}")));
    }
    Ok(())
}

/// Writes `src` into the buffer at `byte_offset`.
pub fn upload(src: &[u8], dst: &GpuBuffer, byte_offset: usize) -> Result<()> {
    check(dst, byte_offset, src.len())?;
    if src.is_empty() {
        return Ok(());
    }
    let ends = byte_offset + src.len();
    if byte_offset.is_multiple_of(4) && (ends.is_multiple_of(4) || ends == dst.bytes()) {
        return write(gpu()?, src, dst, byte_offset);
    }
    // The host writes whole words only: unaligned pieces go through a kernel that keeps the neighbours.
    let stage = GpuBuffer::alloc(src.len())?;
    write(gpu()?, src, &stage, 0)?;
    let shape = [src.len()];
    let from = View { buffer: &stage, dtype: DType::U8, shape: &shape, strides: &[1], offset: 0 };
    copy(&Input::View(from), &View { buffer: dst, offset: byte_offset, ..from })
}

/// The rest of a last word beyond the buffer's bytes is padding that nobody reads.
fn write(gpu: &Gpu, src: &[u8], dst: &GpuBuffer, byte_offset: usize) -> Result<()> {
    let mut stream = gpu.stream();
    if stream.is_pending(dst) {
        stream.submit(gpu)?;
    }
    let raw = &dst.raw().buffer;
    let whole = src.len() / 4 * 4;
    for (i, piece) in src[..whole].chunks(PIECE).enumerate() {
        gpu.queue.write_buffer(raw, (byte_offset + i * PIECE) as u64, piece);
        if piece.len() == PIECE {
            gpu.queue.submit([]);
        }
    }
    if whole < src.len() {
        let mut last = [0; 4];
        last[..src.len() - whole].copy_from_slice(&src[whole..]);
        gpu.queue.write_buffer(raw, (byte_offset + whole) as u64, &last);
    }
    stream.staged(gpu, src.len())?;
    gpu.check()
}

/// Reads `bytes` bytes at `byte_offset` into `dst`, after everything recorded before has run.
///
/// # Safety
/// `dst` must be valid for writes of `bytes` bytes.
pub unsafe fn download(src: &GpuBuffer, byte_offset: usize, dst: *mut u8, bytes: usize) -> Result<()> {
    check(src, byte_offset, bytes)?;
    if validate::dry() {
        return Ok(());
    }
    let gpu = gpu()?;
    gpu.stream().count_read(bytes);
    let mut done = 0;
    while done < bytes {
        let n = (bytes - done).min(PIECE);
        // SAFETY: `done + n <= bytes`, and the caller vouches for `bytes` bytes at `dst`.
        unsafe { read(gpu, src, byte_offset + done, dst.add(done), n)? };
        done += n;
    }
    Ok(())
}

/// Looks for a bad index that an earlier kernel met, if one may have.
pub(super) fn read_faults(gpu: &Gpu) -> Result<()> {
    let watching = gpu.stream().watching;
    let Ok(block) = gpu.fault_block() else { return Ok(()) };
    let mut words = [0u8; 16];
    // SAFETY: `words` is sixteen bytes; reading any buffer looks at the fault block.
    if watching { unsafe { read(gpu, block, 0, words.as_mut_ptr(), 16) } } else { Ok(()) }
}

/// # Safety
/// `dst` must be valid for writes of `bytes` bytes.
unsafe fn read(gpu: &Gpu, src: &GpuBuffer, byte_offset: usize, dst: *mut u8, bytes: usize) -> Result<()> {
    let start = byte_offset / 4 * 4;
    let size = ((byte_offset + bytes).next_multiple_of(4) - start) as u64;
    let mut stream = gpu.stream();
    let faults = if stream.watching { gpu.fault_block.get() } else { None };
    let total = size + 16;
    let stage = stream.staging(gpu, total)?;
    stream.submit_with(gpu, |e| {
        e.copy_buffer_to_buffer(&src.raw().buffer, start as u64, &stage, 0, size);
        if let Some(block) = faults {
            e.copy_buffer_to_buffer(&block.raw().buffer, 0, &stage, size, 16);
        }
    })?;
    let (send, receive) = std::sync::mpsc::channel();
    stage.map_async(wgpu::MapMode::Read, ..total, move |r| {
        let _ = send.send(r);
    });
    stream.finish(gpu)?;
    let failed = |why: String| Error::runtime(format!("reading from the GPU failed: {why}"));
    match receive.try_recv() {
        Ok(Ok(())) => {}
        Ok(Err(e)) => return Err(failed(e.to_string())),
        Err(_) => return Err(failed("the buffer was not mapped".to_string())),
    }
    let view = stage.get_mapped_range(..total).map_err(|e| failed(format!("{e:?}")))?;
    let data = &view[byte_offset - start..][..bytes];
    // SAFETY: `data` holds `bytes` bytes of the mapping, the caller vouches for `dst`, and the two are distinct.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), dst, bytes) };
    let block = faults.map(|_| bytemuck::pod_read_unaligned::<[u32; 4]>(&view[size as usize..][..16]));
    drop(view);
    stage.unmap();
    stream.keep_staging(stage);
    stream.watching = false;
    if let (Some(block), Some(buffer)) = (block.and_then(super::index::fault), faults) {
        gpu.queue.write_buffer(&buffer.raw().buffer, 0, &[0; 16]);
        return Err(block);
    }
    gpu.check()
}
