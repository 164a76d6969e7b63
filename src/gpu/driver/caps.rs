//! What an adapter can do: asked once, never assumed. Kernels decide by it; it is the same with and without wgpu.

use crate::dtype::DType;

#[derive(Clone, Copy, Debug)]
pub(in crate::gpu) struct Caps {
    pub int64: bool,
    pub float64: bool,
    /// Bytes that one storage binding may cover.
    pub max_binding: u64,
    pub max_buffer: u64,
    /// Workgroups per dimension of a dispatch.
    pub max_groups: u32,
    pub storage_align: u64,
    pub uniform_align: u32,
    /// Iterations of all loops of an invocation together: lavapipe ends them there as if they were done.
    pub max_iterations: usize,
}

impl Caps {
    /// Whether kernels compute in this dtype. Copies of equal dtype work for every dtype.
    pub fn supports(&self, dtype: DType) -> bool {
        match dtype {
            DType::I64 => self.int64,
            DType::F64 => self.float64,
            d => !d.is_complex() && !d.is_storage_only(),
        }
    }
}
