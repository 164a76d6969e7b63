//! From handles to the raw operands of `cpu` and `gpu`: the only place where a tensor becomes a pointer.

use super::{Meta, Tensor};
use crate::cpu::copy;
use crate::cpu::map::{Input, Output};
use crate::cpu::view::{View, ensure};
use crate::device::Device;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Dims;
use crate::observe::{self, Raw};
use crate::storage::Buffer;

impl Tensor {
    /// The tensor's elements on the CPU; an error where the layout does not lie within the storage.
    pub fn cpu_view(&self) -> Result<View<'_>> {
        view_of(self.meta())
    }
    /// Buffer, dtype, shape, strides and offset; GPU only.
    pub fn gpu_view(&self) -> Result<gpu::View<'_>> {
        observe::report(Raw::Access);
        let m = self.meta();
        Ok(gpu::View {
            buffer: m.storage.gpu_buffer()?,
            dtype: m.dtype,
            shape: &m.layout.shape,
            strides: &m.layout.strides,
            offset: m.layout.offset,
        })
    }
    /// Fills with one number, without history or version bump.
    pub fn fill_raw(&self, value: Scalar) -> Result<()> {
        match self.device() {
            Device::Cpu => {
                let v = self.cpu_view()?;
                let out = Output { ptr: v.ptr, dtype: v.dtype, strides: v.strides };
                // SAFETY: the view's own shape and strides.
                unsafe { copy::fill(v.shape, &out, value) };
                Ok(())
            }
            Device::Gpu(_) => gpu::copy(&gpu::Input::Scalar(value), &self.gpu_view()?),
            Device::Meta => Ok(()),
        }
    }
    /// Copies `src`, broadcast and converted, into this tensor's memory, without history or version bump. `src`
    /// broadcasts to the shape of `self`; the caller has handled overlapping memory.
    pub fn copy_raw(&self, src: &Tensor) -> Result<()> {
        if self.numel() == 0 {
            return Ok(());
        }
        match (src.device(), self.device()) {
            (Device::Cpu, Device::Cpu) => {
                let m = src.meta();
                let (from, to) = (view_of(m)?, self.cpu_view()?);
                let lead = to.ndim().checked_sub(from.ndim());
                let fits = |lead: usize| from.shape.iter().zip(&to.shape[lead..]).all(|(&a, &b)| a == b || a == 1);
                ensure(lead.is_some_and(fits), "copy")?;
                let strides = m.layout.broadcast_strides(to.shape);
                let input = Input::Strided { ptr: from.ptr, dtype: from.dtype, strides: &strides };
                let out = Output { ptr: to.ptr, dtype: to.dtype, strides: to.strides };
                // SAFETY: both are views, and the strides reach elements of the source alone, which broadcasts to the shape.
                unsafe { copy::copy(to.shape, &input, &out) };
                Ok(())
            }
            // There are no copies between two GPUs: the bytes go through the host.
            (Device::Gpu(from), Device::Gpu(to)) if from != to => self.copy_raw(&src.dense_copy(src.dtype())?),
            (Device::Gpu(_), Device::Gpu(_)) => {
                let strides: Dims = src.layout().broadcast_strides(self.shape());
                let view = gpu::View { shape: self.shape(), strides: &strides, ..src.gpu_view()? };
                gpu::copy(&gpu::Input::View(view), &self.gpu_view()?)
            }
            (Device::Cpu, Device::Gpu(_)) => self.upload(src),
            (Device::Gpu(_), Device::Cpu) => self.download(src),
            (_, Device::Meta) => Ok(()),
            // Says that there is nothing to copy.
            (Device::Meta, _) => src.ptr().map(drop),
        }
    }
    /// CPU to GPU: transferred in the source's dtype if the GPU supports it, else in the target's.
    fn upload(&self, src: &Tensor) -> Result<()> {
        let dtype = if gpu::supports(self.device(), src.dtype()) { src.dtype() } else { self.dtype() };
        let packed = src.dense_copy(dtype)?;
        let staging = Tensor::empty(src.shape(), dtype, self.device())?;
        // SAFETY: `packed` is contiguous and fully written.
        let bytes = unsafe { std::slice::from_raw_parts(packed.ptr()?, packed.numel() * dtype.size()) };
        let whole = self.is_contiguous() && self.dtype() == dtype && self.shape() == src.shape();
        if whole && (self.layout().offset * dtype.size()).is_multiple_of(4) && bytes.len().is_multiple_of(4) {
            return gpu::upload(bytes, self.storage().gpu_buffer()?, self.layout().offset * dtype.size());
        }
        gpu::upload(bytes, staging.storage().gpu_buffer()?, 0)?;
        self.copy_raw(&staging)
    }
    /// GPU to CPU: packed on the GPU, transferred as bytes, converted and scattered here.
    fn download(&self, src: &Tensor) -> Result<()> {
        let packed = if src.is_contiguous() && src.layout().offset == 0 {
            src.clone()
        } else {
            let t = Tensor::empty(src.shape(), src.dtype(), src.device())?;
            t.copy_raw(src)?;
            t
        };
        let host = Tensor::empty(src.shape(), src.dtype(), Device::Cpu)?;
        let bytes = host.numel() * host.dtype().size();
        // SAFETY: `host` was allocated with exactly these bytes.
        unsafe { gpu::download(packed.storage().gpu_buffer()?, 0, host.ptr()?, bytes)? };
        self.copy_raw(&host)
    }
    /// A contiguous CPU copy in `dtype`, or this tensor if it is one already.
    pub fn dense_copy(&self, dtype: crate::dtype::DType) -> Result<Tensor> {
        if self.device() == Device::Cpu && self.dtype() == dtype && self.is_contiguous() {
            return Ok(self.clone());
        }
        let t = Tensor::empty(self.shape(), dtype, Device::Cpu)?;
        t.copy_raw(self)?;
        Ok(t)
    }
}

/// The elements that metadata shows, which own the storage.
fn view_of(m: &Meta) -> Result<View<'_>> {
    let Buffer::Cpu(block) = m.storage.buffer() else { return m.storage.cpu_ptr().and(Err(outside())) };
    // SAFETY: the borrowed metadata owns the storage, and neither it nor the block just read is freed while it may be
    // used: Note [Retired values].
    unsafe { View::within(block.ptr(), block.bytes(), m.dtype, &m.layout) }.ok_or_else(outside)
}

#[cold]
fn outside() -> Error {
    Error::internal("the layout of a tensor reaches beyond its storage")
}
