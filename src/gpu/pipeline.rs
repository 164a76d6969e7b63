//! Pipelines by a readable key, bind groups by the buffers they bind.
//!
//! Binding 0 is the parameter block (a uniform with a dynamic offset), then come the storage buffers: those that a
//! kernel reads and, last, those that it writes. One layout serves all kernels of equal counts, so a bind group
//! fits every kernel over the same buffers.

use super::context::{Gpu, debug};
use super::stream::{Bind, PARAM_BYTES};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Bind groups kept before all are dropped: they keep their buffers alive.
const MAX_GROUPS: usize = 4096;

pub(super) struct Pipeline {
    pub raw: wgpu::ComputePipeline,
    pub name: String,
    /// How many storage buffers are read only, and how many are written.
    reads: u8,
    writes: u8,
}

type GroupKey = SmallVec<[u64; 8]>;

#[derive(Default)]
pub(super) struct Pipelines {
    by_key: HashMap<String, Arc<Pipeline>>,
    layouts: HashMap<(u8, u8), (wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
    groups: HashMap<GroupKey, wgpu::BindGroup>,
    groups_created: u64,
}

impl Pipelines {
    /// The pipeline of a key, built from `source` the first time.
    pub fn get(
        &mut self,
        gpu: &Gpu,
        key: &str,
        reads: usize,
        writes: usize,
        source: impl FnOnce() -> String,
    ) -> Result<Arc<Pipeline>> {
        if let Some(p) = self.by_key.get(key) {
            return Ok(p.clone());
        }
        let source = source();
        if debug() >= 3 {
            eprintln!("gpu: WGSL of {key}\n{source}");
        }
        let (reads, writes) = (reads as u8, writes as u8);
        let layout = &self.layouts.entry((reads, writes)).or_insert_with(|| layouts(gpu, reads, writes)).1;
        let raw = compile(gpu, key, &source, layout)?;
        let pipeline = Arc::new(Pipeline { raw, name: key.to_string(), reads, writes });
        self.by_key.insert(key.to_string(), pipeline.clone());
        Ok(pipeline)
    }

    pub fn bind_group(
        &mut self,
        gpu: &Gpu,
        pipeline: &Pipeline,
        ring: &wgpu::Buffer,
        binds: &[Bind],
    ) -> &wgpu::BindGroup {
        let mut key: GroupKey = SmallVec::new();
        key.push((pipeline.reads as u64) << 8 | pipeline.writes as u64);
        for bind in binds {
            key.push(bind.buffer.id());
            key.push(bind.offset);
            key.push(bind.size);
        }
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(key.as_slice()) {
            self.groups.clear();
        }
        let (layouts, created) = (&self.layouts, &mut self.groups_created);
        self.groups.entry(key).or_insert_with(|| {
            *created += 1;
            let layout = &layouts[&(pipeline.reads, pipeline.writes)].0;
            let entries: SmallVec<[wgpu::BindGroupEntry; 8]> = std::iter::once(entry(0, ring, 0, PARAM_BYTES))
                .chain(
                    binds
                        .iter()
                        .enumerate()
                        .map(|(i, b)| entry(i as u32 + 1, &b.buffer.raw().buffer, b.offset, b.size)),
                )
                .collect();
            let label = Some(pipeline.name.as_str());
            gpu.device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries })
        })
    }
    /// Lets go of every cached bind group and with them of the buffers that nobody else holds.
    pub fn forget_bind_groups(&mut self) {
        self.groups.clear();
    }
    pub fn counters(&self) -> [(&'static str, u64); 2] {
        [("pipelines", self.by_key.len() as u64), ("bind groups", self.groups_created)]
    }
}

fn entry(binding: u32, buffer: &wgpu::Buffer, offset: u64, size: u64) -> wgpu::BindGroupEntry<'_> {
    let binding_of = wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(size) };
    wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(binding_of) }
}

fn layouts(gpu: &Gpu, reads: u8, writes: u8) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let entry = |binding: u32, ty, dynamic| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: dynamic, min_binding_size: None },
        count: None,
    };
    let storage = |i| entry(i as u32 + 1, wgpu::BufferBindingType::Storage { read_only: i < reads }, false);
    let entries: Vec<_> = std::iter::once(entry(0, wgpu::BufferBindingType::Uniform, true))
        .chain((0..reads + writes).map(storage))
        .collect();
    let label = format!("{reads} read, {writes} written");
    let desc = wgpu::BindGroupLayoutDescriptor { label: Some(&label), entries: &entries };
    let group = gpu.device.create_bind_group_layout(&desc);
    let pipeline = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(&label),
        bind_group_layouts: &[Some(&group)],
        immediate_size: 0,
    });
    (group, pipeline)
}

fn compile(gpu: &Gpu, key: &str, source: &str, layout: &wgpu::PipelineLayout) -> Result<wgpu::ComputePipeline> {
    let invalid = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
    let desc = wgpu::ShaderModuleDescriptor { label: Some(key), source: wgpu::ShaderSource::Wgsl(source.into()) };
    let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
    // SAFETY: bounds checks stay on; every loop of our kernels counts up to a bound taken from the parameters.
    let module = unsafe { gpu.device.create_shader_module_trusted(desc, checks) };
    let options = wgpu::PipelineCompilationOptions { zero_initialize_workgroup_memory: false, ..Default::default() };
    let raw = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(key),
        layout: Some(layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: options,
        cache: None,
    });
    let errors = [pollster::block_on(internal.pop()), pollster::block_on(invalid.pop())];
    match errors.into_iter().flatten().next() {
        Some(e) => Err(Error::internal(format!("GPU kernel '{key}' did not compile: {e}"))),
        None => Ok(raw),
    }
}
