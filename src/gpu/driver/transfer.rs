//! Between host memory and buffers. A write is ordered like a command without waiting; a download waits.

use super::context::{Context, forked, is_forked};
use super::device::{Driver, GpuBuffer};
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::gpu::fault;

/// The most that is staged at once, so that a large transfer does not need its size twice; what is written is staged in pieces
/// small enough for the driver to use their memory again.
const PIECE: usize = 64 << 20;
const WRITTEN: usize = 8 << 20;

fn check(buffer: &GpuBuffer, offset: usize, bytes: usize) -> Result<()> {
    if offset.checked_add(bytes).is_none_or(|end| end > buffer.bytes()) {
        let size = buffer.bytes();
        return Err(Error::internal(format!("transfer of {bytes} bytes at {offset} in a buffer of {size}")));
    }
    Ok(())
}

impl GpuBuffer {
    /// Whether the host can write these bytes by themselves: it writes whole words, the last one also where the buffer
    /// ends within it (nobody reads its padding).
    pub(in crate::gpu) fn takes_words(&self, byte_offset: usize, bytes: usize) -> bool {
        let end = byte_offset + bytes;
        byte_offset.is_multiple_of(4) && (end.is_multiple_of(4) || end == self.bytes())
    }
    /// Writes `src` at `byte_offset`, where `takes_words` allows it.
    pub(in crate::gpu) fn write(&self, src: &[u8], byte_offset: usize) -> Result<()> {
        check(self, byte_offset, src.len())?;
        if is_forked() {
            return Err(forked());
        }
        let connection = self.driver().connection()?;
        let (context, raw) = (&connection.context, self.memory().buffer());
        context.check()?;
        let mut stream = connection.stream();
        if stream.is_pending(self.memory()) {
            stream.submit(context)?;
        }
        let whole = src.len() / 4 * 4;
        for (i, piece) in src[..whole].chunks(WRITTEN).enumerate() {
            context.queue.write_buffer(raw, (byte_offset + i * WRITTEN) as u64, piece);
            if piece.len() == WRITTEN {
                context.queue.submit([]);
            }
        }
        if whole < src.len() {
            let mut last = [0; 4];
            last[..src.len() - whole].copy_from_slice(&src[whole..]);
            context.queue.write_buffer(raw, (byte_offset + whole) as u64, &last);
        }
        stream.staged(context, src.len())?;
        context.check()
    }
    /// Reads `bytes` bytes at `byte_offset` into `dst`, after everything recorded before has run. A device that only
    /// checks kernels reads the number one, of any width.
    ///
    /// # Safety
    /// `dst` must be valid for writes of `bytes` bytes.
    pub(in crate::gpu) unsafe fn read(&self, byte_offset: usize, dst: *mut u8, bytes: usize) -> Result<()> {
        check(self, byte_offset, bytes)?;
        #[cfg(test)]
        if std::ptr::eq(self.driver(), Driver::checking()) {
            // SAFETY: the caller vouches for `bytes` bytes.
            unsafe { std::slice::from_raw_parts_mut(dst, bytes) }.iter_mut().take(1).for_each(|b| *b = 1);
            return Ok(());
        }
        if is_forked() {
            return Err(forked());
        }
        let connection = self.driver().connection()?;
        connection.context.check()?;
        connection.stream().count_read(bytes);
        let mut done = 0;
        while done < bytes {
            let n = (bytes - done).min(PIECE);
            // SAFETY: `done + n <= bytes`, and the caller vouches for `bytes` bytes at `dst`.
            unsafe { self.read_piece(byte_offset + done, dst.add(done), n)? };
            done += n;
        }
        Ok(())
    }
    /// # Safety
    /// `dst` must be valid for writes of `bytes` bytes.
    unsafe fn read_piece(&self, byte_offset: usize, dst: *mut u8, bytes: usize) -> Result<()> {
        let connection = self.driver().connection()?;
        let context = &connection.context;
        let start = byte_offset / 4 * 4;
        let size = ((byte_offset + bytes).next_multiple_of(4) - start) as u64;
        let mut stream = connection.stream();
        let faults = self.driver().existing_fault_block().filter(|_| stream.watching);
        let total = size + 16;
        let stage = stream.staging(context, total)?;
        stream.submit_with(context, |e| {
            e.copy_buffer_to_buffer(self.memory().buffer(), start as u64, &stage, 0, size);
            if let Some(block) = faults {
                e.copy_buffer_to_buffer(block.memory().buffer(), 0, &stage, size, 16);
            }
        })?;
        let view = mapped(context, &mut stream, &stage, total)?;
        let data = &view[byte_offset - start..][..bytes];
        // SAFETY: `data` holds `bytes` bytes of the mapping, the caller vouches for `dst`, and the two are distinct.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), dst, bytes) };
        let words = faults.map(|_| bytemuck::pod_read_unaligned::<[u32; 4]>(&view[size as usize..][..16]));
        drop(view);
        stage.unmap();
        stream.keep_staging(stage);
        stream.watching = false;
        if let (Some(error), Some(block)) = (words.and_then(fault::error_of), faults) {
            context.queue.write_buffer(block.memory().buffer(), 0, &[0; 16]);
            return Err(error);
        }
        context.check()
    }
}

/// Waits for the device and maps the first `total` bytes of `stage`.
fn mapped(context: &Context, stream: &mut Stream, stage: &wgpu::Buffer, total: u64) -> Result<wgpu::BufferView> {
    let (send, receive) = std::sync::mpsc::channel();
    stage.map_async(wgpu::MapMode::Read, ..total, move |r| {
        let _ = send.send(r);
    });
    stream.finish(context)?;
    let failed = |why: String| Error::runtime(format!("reading from the GPU failed: {why}"));
    match receive.try_recv() {
        Ok(Ok(())) => {}
        Ok(Err(e)) => return Err(failed(e.to_string())),
        Err(_) => return Err(failed("the buffer was not mapped".to_string())),
    }
    stage.get_mapped_range(..total).map_err(|e| failed(format!("{e:?}")))
}

impl Driver {
    /// Looks for a bad value that an earlier kernel met, if one may have.
    pub(super) fn read_faults(&'static self) -> Result<()> {
        let watching = self.connection()?.stream().watching;
        let Some(block) = self.existing_fault_block().filter(|_| watching) else { return Ok(()) };
        let mut words = [0u8; 16];
        // SAFETY: `words` is sixteen bytes; reading any buffer looks at the fault block.
        unsafe { block.read_piece(0, words.as_mut_ptr(), 16) }
    }
    /// Waits until everything recorded so far has run.
    pub fn synchronize(&'static self) -> Result<()> {
        self.read_faults()?;
        let connection = self.connection()?;
        connection.stream().finish(&connection.context)?;
        connection.context.check()
    }
}
