//! What the tensors of a plan look like, which its guards keep the same.

use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::tensor::Tensor;

/// What a tensor looks like in every run of a plan.
#[derive(Clone, Debug)]
pub struct Look {
    pub layout: Layout,
    pub dtype: DType,
    pub device: Device,
    /// Equal for tensors that share memory.
    pub memory: usize,
    /// The memory belongs to another library, so it may be that of other tensors too.
    pub foreign: bool,
}

impl Look {
    pub fn of(t: &Tensor) -> Look {
        let m = t.meta();
        let (memory, foreign) = (m.storage.id(), m.storage.is_foreign());
        Look { layout: m.layout.clone(), dtype: m.dtype, device: m.storage.device(), memory, foreign }
    }
}
