//! Pipelines by their key, bind groups by the buffers they bind.
//!
//! Binding 0 is the parameter block (a uniform with a dynamic offset), then come the storage buffers. One layout serves
//! all kernels that read and write equally many buffers, so a bind group fits every kernel over the same buffers.
//! Both are found by comparing numbers; names and sources are written when a pipeline is built.

use super::context::{Context, debug};
use super::launch::{Bind, Key, Launch, PARAM_BYTES};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
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

/// The counts of the layout, then the id and the window of each buffer.
type GroupKey = SmallVec<[u64; 16]>;

/// Keys are short lists of numbers that the program makes itself: multiplying and rotating spreads them well enough.
#[derive(Default)]
struct Mix(u64);
impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.write_u64(u64::from_ne_bytes(*w)));
        rest.iter().for_each(|b| self.write_u64(*b as u64));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

#[derive(Default)]
pub(super) struct Pipelines {
    by_key: Map<Key, Arc<Pipeline>>,
    layouts: HashMap<(u8, u8), (wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
    groups: Map<GroupKey, wgpu::BindGroup>,
    groups_created: u64,
}

impl Pipelines {
    /// The pipeline of a launch, built the first time.
    #[inline]
    pub fn get(&mut self, context: &Context, launch: &Launch) -> Result<Arc<Pipeline>> {
        match self.by_key.get(&launch.key) {
            Some(p) => Ok(p.clone()),
            None => self.build(context, launch),
        }
    }

    #[cold]
    fn build(&mut self, context: &Context, launch: &Launch) -> Result<Arc<Pipeline>> {
        let (name, source) = (launch.shader.name(), launch.shader.source());
        if debug() >= 3 {
            eprintln!("gpu: WGSL of {name}\n{source}");
        }
        let (reads, writes) = (launch.reads as u8, (launch.binds.len() - launch.reads) as u8);
        let layout = &self.layouts.entry((reads, writes)).or_insert_with(|| layouts(context, reads, writes)).1;
        let raw = compile(context, &name, &source, layout)?;
        let pipeline = Arc::new(Pipeline { raw, name, reads, writes });
        self.by_key.insert(launch.key.clone(), pipeline.clone());
        Ok(pipeline)
    }

    pub fn bind_group(
        &mut self,
        context: &Context,
        pipeline: &Pipeline,
        ring: &wgpu::Buffer,
        binds: &[Bind],
    ) -> &wgpu::BindGroup {
        let mut key: GroupKey = SmallVec::new();
        key.push((pipeline.reads as u64) << 8 | pipeline.writes as u64);
        for bind in binds {
            key.extend([bind.memory.id, bind.offset, bind.size]);
        }
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(key.as_slice()) {
            self.groups.clear();
        }
        let (layouts, created) = (&self.layouts, &mut self.groups_created);
        self.groups.entry(key).or_insert_with(|| {
            *created += 1;
            let layout = &layouts[&(pipeline.reads, pipeline.writes)].0;
            let mut entries: SmallVec<[wgpu::BindGroupEntry; 8]> = SmallVec::new();
            entries.push(entry(0, ring, 0, PARAM_BYTES as u64));
            entries.extend((1..).zip(binds).map(|(i, b)| entry(i, b.memory.buffer(), b.offset, b.size)));
            let label = Some(pipeline.name.as_str());
            context.device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries })
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

fn layouts(context: &Context, reads: u8, writes: u8) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
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
    let group = context.device.create_bind_group_layout(&desc);
    let pipeline = context.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(&label),
        bind_group_layouts: &[Some(&group)],
        immediate_size: 0,
    });
    (group, pipeline)
}

fn compile(
    context: &Context,
    name: &str,
    source: &str,
    layout: &wgpu::PipelineLayout,
) -> Result<wgpu::ComputePipeline> {
    let invalid = context.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let internal = context.device.push_error_scope(wgpu::ErrorFilter::Internal);
    let desc = wgpu::ShaderModuleDescriptor { label: Some(name), source: wgpu::ShaderSource::Wgsl(source.into()) };
    let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
    // SAFETY: bounds checks stay on; every loop of our kernels counts up to a bound taken from the parameters.
    let module = unsafe { context.device.create_shader_module_trusted(desc, checks) };
    let options = wgpu::PipelineCompilationOptions { zero_initialize_workgroup_memory: false, ..Default::default() };
    let raw = context.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(name),
        layout: Some(layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: options,
        cache: None,
    });
    let errors = [pollster::block_on(internal.pop()), pollster::block_on(invalid.pop())];
    match errors.into_iter().flatten().next() {
        Some(e) => Err(Error::internal(format!("GPU kernel '{name}' did not compile: {e}"))),
        None => Ok(raw),
    }
}
