//! The ordered command stream: one encoder, one open compute pass, parameters in a uniform ring.
//!
//! A dispatch costs a lookup of its pipeline and bind group and a few recorded commands. Parameters of a batch
//! gather in host memory and reach the ring with one write at submit, which the queue orders after the batch
//! before. A batch is submitted when it is long, when it touched much memory, or when somebody waits.

use super::adapter::Caps;
use super::context::{Gpu, debug};
use super::pipeline::{Pipeline, Pipelines};
use super::pool::GpuBuffer;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of the parameter ring, and what one dispatch sees of it.
const RING: u64 = 1 << 20;
pub(super) const PARAM_BYTES: u64 = 1024;
/// A batch is submitted at this many dispatches or bytes bound.
const BATCH_DISPATCHES: u32 = 256;
const BATCH_BYTES: u64 = 1 << 30;
/// Submissions that may be in flight before the host waits for the oldest.
const IN_FLIGHT: usize = 16;
/// The mappable buffer that is kept.
const SMALL_STAGE: u64 = 64 << 10;
/// A wait longer than this counts as a hung device.
const PATIENCE: Duration = Duration::from_secs(600);

/// A buffer bound to a kernel: a window of `size` bytes at `offset`, or the whole buffer if `size` is zero.
#[derive(Clone, Copy)]
pub(super) struct Bind<'a> {
    pub buffer: &'a GpuBuffer,
    pub offset: u64,
    pub size: u64,
}

pub(super) struct Stream {
    pub pipelines: Pipelines,
    ring: wgpu::Buffer,
    align: usize,
    open: Option<(wgpu::ComputePass<'static>, wgpu::CommandEncoder)>,
    params: Vec<u8>,
    batch: u64,
    batch_dispatches: u32,
    batch_bytes: u64,
    flying: VecDeque<wgpu::SubmissionIndex>,
    /// A small mappable buffer kept for the next read.
    stage: Option<wgpu::Buffer>,
    /// A kernel that may set the fault block was recorded since the host last looked at it.
    pub watching: bool,
    dispatches: u64,
    submits: u64,
    /// Waits for the device; downloads of one number, and of more than one.
    waits: u64,
    numbers_read: u64,
    tensors_read: u64,
}

impl Stream {
    pub fn new(device: &wgpu::Device, caps: Caps) -> Stream {
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let size = RING + PARAM_BYTES;
        let desc = wgpu::BufferDescriptor { label: Some("parameter ring"), size, usage, mapped_at_creation: false };
        Stream {
            pipelines: Pipelines::default(),
            ring: device.create_buffer(&desc),
            align: caps.uniform_align.max(16) as usize,
            open: None,
            params: Vec::with_capacity(RING as usize),
            batch: 1,
            batch_dispatches: 0,
            batch_bytes: 0,
            flying: VecDeque::new(),
            stage: None,
            watching: false,
            dispatches: 0,
            submits: 0,
            waits: 0,
            numbers_read: 0,
            tensors_read: 0,
        }
    }

    /// Records one kernel. `params` are what the shader sees as `p`.
    pub fn dispatch(
        &mut self,
        gpu: &Gpu,
        pipeline: &Pipeline,
        binds: &[Bind],
        params: &[u32],
        groups: [u32; 3],
    ) -> Result<()> {
        if params.len() as u64 * 4 > PARAM_BYTES {
            return Err(Error::runtime("too many dimensions for a GPU kernel; reshape the tensor to fewer dimensions"));
        }
        let start = (debug() >= 4).then(|| self.finish(gpu).map(|()| Instant::now())).transpose()?;
        if self.params.len() as u64 + PARAM_BYTES > RING {
            self.submit(gpu)?;
        }
        let offset = self.params.len() as u32;
        self.params.extend_from_slice(bytemuck::cast_slice(params));
        self.params.resize(self.params.len().next_multiple_of(self.align), 0);
        let group = self.pipelines.bind_group(gpu, pipeline, &self.ring, binds);
        let (pass, _) = self.open.get_or_insert_with(|| open(gpu));
        pass.set_pipeline(&pipeline.raw);
        pass.set_bind_group(0, group, &[offset]);
        pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
        for bind in binds {
            bind.buffer.raw().mark(self.batch);
            self.batch_bytes += bind.buffer.bytes() as u64;
        }
        self.dispatches += 1;
        self.batch_dispatches += 1;
        if debug() >= 2 {
            eprintln!("gpu: {} groups {groups:?}", pipeline.name);
        }
        if let Some(start) = start {
            self.finish(gpu)?;
            eprintln!("gpu:   {:.1} us (with its own submit)", start.elapsed().as_secs_f64() * 1e6);
        }
        if self.batch_dispatches >= BATCH_DISPATCHES || self.batch_bytes >= BATCH_BYTES {
            self.submit(gpu)?;
        }
        Ok(())
    }

    /// Submits what is recorded, with `last` added to it outside the compute pass.
    pub fn submit_with(&mut self, gpu: &Gpu, last: impl FnOnce(&mut wgpu::CommandEncoder)) -> Result<()> {
        let mut encoder = match self.open.take() {
            Some((pass, encoder)) => {
                drop(pass);
                encoder
            }
            None => encoder(gpu),
        };
        last(&mut encoder);
        if !self.params.is_empty() {
            gpu.queue.write_buffer(&self.ring, 0, &self.params);
            self.params.clear();
        }
        let index = gpu.queue.submit([encoder.finish()]);
        self.flying.push_back(index);
        self.batch += 1;
        self.batch_dispatches = 0;
        self.batch_bytes = 0;
        self.submits += 1;
        if self.flying.len() > IN_FLIGHT
            && let Some(oldest) = self.flying.pop_front()
        {
            wait(gpu, Some(oldest))?;
        }
        gpu.check()
    }
    /// Submits what is recorded, if anything is.
    pub fn submit(&mut self, gpu: &Gpu) -> Result<()> {
        if self.open.is_none() { Ok(()) } else { self.submit_with(gpu, |_| ()) }
    }
    /// Submits and waits for everything.
    pub fn finish(&mut self, gpu: &Gpu) -> Result<()> {
        self.submit(gpu)?;
        self.flying.clear();
        self.waits += 1;
        wait(gpu, None)
    }
    /// Whether a recorded command that was not submitted yet uses the buffer.
    pub fn is_pending(&self, buffer: &GpuBuffer) -> bool {
        self.open.is_some() && buffer.raw().used_in(self.batch)
    }
    pub fn watch_faults(&mut self) {
        self.watching = true;
    }
    /// Counts bytes that an upload staged; many of them are handed over without waiting for kernels.
    pub fn staged(&mut self, gpu: &Gpu, bytes: usize) -> Result<()> {
        self.batch_bytes += bytes as u64;
        if self.batch_bytes < BATCH_BYTES {
            return Ok(());
        }
        self.submit_with(gpu, |_| ())
    }
    /// A mappable buffer of at least `size` bytes.
    pub fn staging(&mut self, gpu: &Gpu, size: u64) -> Result<wgpu::Buffer> {
        if let Some(stage) = self.stage.take_if(|s| s.size() >= size) {
            return Ok(stage);
        }
        let memory = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = size.max(SMALL_STAGE);
        let desc = wgpu::BufferDescriptor { label: Some("read staging"), size, usage, mapped_at_creation: false };
        let stage = gpu.device.create_buffer(&desc);
        match pollster::block_on(memory.pop()) {
            Some(_) => Err(Error::out_of_memory(size as usize, "gpu")),
            None => Ok(stage),
        }
    }
    pub fn keep_staging(&mut self, stage: wgpu::Buffer) {
        if stage.size() == SMALL_STAGE {
            self.stage = Some(stage);
        }
    }
    /// Counts a download by what it brings: up to eight bytes are a number.
    pub fn count_read(&mut self, bytes: usize) {
        *(if bytes <= 8 { &mut self.numbers_read } else { &mut self.tensors_read }) += 1;
    }
    pub fn counters(&self) -> [(&'static str, u64); 5] {
        [
            ("dispatches", self.dispatches),
            ("submits", self.submits),
            ("waits", self.waits),
            ("numbers read", self.numbers_read),
            ("tensors read", self.tensors_read),
        ]
    }
}

fn encoder(gpu: &Gpu) -> wgpu::CommandEncoder {
    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("rustgrad batch") })
}

fn open(gpu: &Gpu) -> (wgpu::ComputePass<'static>, wgpu::CommandEncoder) {
    let mut encoder = encoder(gpu);
    let desc = wgpu::ComputePassDescriptor { label: Some("rustgrad kernels"), timestamp_writes: None };
    let pass = encoder.begin_compute_pass(&desc).forget_lifetime();
    (pass, encoder)
}

fn wait(gpu: &Gpu, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
    match gpu.device.poll(wgpu::PollType::Wait { submission_index, timeout: Some(PATIENCE) }) {
        Ok(_) => Ok(()),
        Err(e) => {
            gpu.check()?;
            Err(Error::runtime(format!("waiting for the GPU failed: {e}")))
        }
    }
}
