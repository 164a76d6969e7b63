//! The ordered command stream: one encoder, one open compute pass, parameters in a uniform ring.
//!
//! A dispatch costs a lookup of its pipeline and bind group and a few recorded commands. Parameters of a batch
//! gather in host memory and reach the ring with one write at submit, which the queue orders after the batch
//! before. A batch is submitted when it is long, when it touched much memory, or when somebody waits.

use super::context::{Context, debug};
use super::launch::{Launch, PARAM_BYTES, too_large};
use super::pipelines::{Pipeline, Pipelines};
use super::pool::Memory;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of the parameter ring.
const RING: usize = 1 << 20;
/// A batch is submitted at this many dispatches or bytes bound.
const BATCH_DISPATCHES: u32 = 256;
const BATCH_BYTES: u64 = 1 << 30;
/// Submissions that may be in flight before the host waits for the oldest.
const IN_FLIGHT: usize = 16;
/// The mappable buffer that is kept.
const SMALL_STAGE: u64 = 64 << 10;
/// A wait longer than this counts as a hung device.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) struct Stream {
    pub pipelines: Pipelines,
    ring: wgpu::Buffer,
    align: usize,
    /// What is recorded and not submitted yet; the pass ends before anything else is recorded.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
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
    pub fn new(context: &Context) -> Stream {
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let size = (RING + PARAM_BYTES) as u64;
        let desc = wgpu::BufferDescriptor { label: Some("parameter ring"), size, usage, mapped_at_creation: false };
        Stream {
            pipelines: Pipelines::default(),
            ring: context.device.create_buffer(&desc),
            align: context.caps.uniform_align.max(16) as usize,
            pass: None,
            encoder: None,
            params: Vec::with_capacity(RING),
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

    /// Records one kernel.
    pub fn launch(&mut self, context: &Context, launch: &Launch) -> Result<()> {
        if launch.params.len() * 4 > PARAM_BYTES {
            return Err(Error::runtime("too many dimensions for a GPU kernel; reshape the tensor to fewer dimensions"));
        }
        let groups = grid(launch.groups, context.caps.max_groups)?;
        let pipeline = self.pipelines.get(context, launch)?;
        let start = (debug() >= 4).then(|| self.finish(context).map(|()| Instant::now())).transpose()?;
        if self.params.len() + PARAM_BYTES > RING {
            self.submit(context)?;
        }
        self.record(context, &pipeline, launch, groups);
        if debug() >= 2 {
            eprintln!("gpu: {} groups {groups:?}", pipeline.name);
        }
        if let Some(start) = start {
            self.finish(context)?;
            eprintln!("gpu:   {:.1} us (with its own submit)", start.elapsed().as_secs_f64() * 1e6);
        }
        self.submit_if_long(context)
    }

    fn record(&mut self, context: &Context, pipeline: &Pipeline, launch: &Launch, groups: [u32; 3]) {
        let offset = self.params.len() as u32;
        self.params.extend_from_slice(bytemuck::cast_slice(&launch.params));
        self.params.resize(self.params.len().next_multiple_of(self.align), 0);
        let group = self.pipelines.bind_group(context, pipeline, &self.ring, &launch.binds);
        let pass = self.pass.get_or_insert_with(|| {
            let encoder = self.encoder.get_or_insert_with(|| new_encoder(context));
            let desc = wgpu::ComputePassDescriptor { label: Some("rustgrad kernels"), timestamp_writes: None };
            encoder.begin_compute_pass(&desc).forget_lifetime()
        });
        pass.set_pipeline(&pipeline.raw);
        pass.set_bind_group(0, group, &[offset]);
        pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
        for bind in &launch.binds {
            bind.memory.mark(self.batch);
            self.batch_bytes += bind.memory.size;
        }
        self.watching |= launch.may_fault;
        self.dispatches += 1;
        self.batch_dispatches += 1;
    }

    /// Records the zeroing of memory.
    pub fn clear(&mut self, context: &Context, memory: &Memory) -> Result<()> {
        self.pass = None;
        self.encoder.get_or_insert_with(|| new_encoder(context)).clear_buffer(memory.buffer(), 0, None);
        memory.mark(self.batch);
        self.batch_bytes += memory.size;
        self.batch_dispatches += 1;
        self.submit_if_long(context)
    }

    fn submit_if_long(&mut self, context: &Context) -> Result<()> {
        let long = self.batch_dispatches >= BATCH_DISPATCHES || self.batch_bytes >= BATCH_BYTES;
        if long { self.submit(context) } else { Ok(()) }
    }

    /// Submits what is recorded, with `last` added to it outside the compute pass.
    pub fn submit_with(&mut self, context: &Context, last: impl FnOnce(&mut wgpu::CommandEncoder)) -> Result<()> {
        self.pass = None;
        let mut encoder = self.encoder.take().unwrap_or_else(|| new_encoder(context));
        last(&mut encoder);
        if !self.params.is_empty() {
            context.queue.write_buffer(&self.ring, 0, &self.params);
            self.params.clear();
        }
        let index = context.queue.submit([encoder.finish()]);
        self.flying.push_back(index);
        self.batch += 1;
        self.batch_dispatches = 0;
        self.batch_bytes = 0;
        self.submits += 1;
        if self.flying.len() > IN_FLIGHT
            && let Some(oldest) = self.flying.pop_front()
        {
            wait(context, Some(oldest))?;
        }
        context.check()
    }
    /// Submits what is recorded, if anything is.
    pub fn submit(&mut self, context: &Context) -> Result<()> {
        if self.encoder.is_none() { Ok(()) } else { self.submit_with(context, |_| ()) }
    }
    /// Submits and waits for everything.
    pub fn finish(&mut self, context: &Context) -> Result<()> {
        self.submit(context)?;
        self.flying.clear();
        self.waits += 1;
        wait(context, None)
    }
    /// Whether a recorded command that was not submitted yet uses the buffer.
    pub fn is_pending(&self, memory: &Memory) -> bool {
        self.encoder.is_some() && memory.used_in(self.batch)
    }
    /// Counts bytes that an upload staged; many of them are handed over without waiting for kernels.
    pub fn staged(&mut self, context: &Context, bytes: usize) -> Result<()> {
        self.batch_bytes += bytes as u64;
        if self.batch_bytes < BATCH_BYTES {
            return Ok(());
        }
        self.submit_with(context, |_| ())
    }
    /// A mappable buffer of at least `size` bytes.
    pub fn staging(&mut self, context: &Context, size: u64) -> Result<wgpu::Buffer> {
        if let Some(stage) = self.stage.take_if(|s| s.size() >= size) {
            return Ok(stage);
        }
        let memory = context.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = size.max(SMALL_STAGE);
        let desc = wgpu::BufferDescriptor { label: Some("read staging"), size, usage, mapped_at_creation: false };
        let stage = context.device.create_buffer(&desc);
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

fn new_encoder(context: &Context) -> wgpu::CommandEncoder {
    context.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("rustgrad batch") })
}

/// A grid of at least `groups` workgroups, folded into two dimensions.
fn grid(groups: usize, max: u32) -> Result<[u32; 3]> {
    let groups = u32::try_from(groups).map_err(|_| too_large())?.max(1);
    let x = groups.min(max);
    let y = groups.div_ceil(x);
    if y > max { Err(too_large()) } else { Ok([x, y, 1]) }
}

fn wait(context: &Context, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
    match context.device.poll(wgpu::PollType::Wait { submission_index, timeout: Some(PATIENCE) }) {
        Ok(_) => Ok(()),
        Err(e) => {
            context.check()?;
            Err(Error::runtime(format!("waiting for the GPU failed: {e}")))
        }
    }
}
