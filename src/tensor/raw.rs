//! From handles to the raw operands of the `cpu` and `gpu` rooms: the one place where a tensor becomes a pointer.

use super::Tensor;
use crate::cpu::copy;
use crate::cpu::map::{Input, Output};
use crate::cpu::view::View;
use crate::device::Device;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::gpu;
use crate::layout::Dims;
use crate::observe::{self, Raw};

impl Tensor {
    /// Address, dtype, shape and strides on the CPU.
    pub fn cpu_view(&self) -> Result<View<'_>> {
        let m = self.meta();
        Ok(View { ptr: self.ptr()?, dtype: m.dtype, shape: &m.layout.shape, strides: &m.layout.strides })
    }
    /// Buffer, dtype, shape, strides and offset on the GPU.
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
    /// Writes one number everywhere, without history or version bump.
    pub fn fill_raw(&self, value: Scalar) -> Result<()> {
        let m = self.meta();
        match self.device() {
            Device::Cpu => {
                let out = Output { ptr: self.ptr()?, dtype: m.dtype, strides: &m.layout.strides };
                // SAFETY: a handle's layout lies within its storage.
                unsafe { copy::fill(&m.layout.shape, &out, value) };
                Ok(())
            }
            Device::Gpu(_) => gpu::copy(&gpu::Input::Scalar(value), &self.gpu_view()?),
        }
    }
    /// Copies `src`, broadcast and converted, into this tensor's memory, without history or version bump.
    /// `src` broadcasts to the shape of `self`; overlapping memory has been dealt with by the caller.
    pub fn copy_raw(&self, src: &Tensor) -> Result<()> {
        if self.numel() == 0 {
            return Ok(());
        }
        match (src.device(), self.device()) {
            (Device::Cpu, Device::Cpu) => {
                let m = self.meta();
                let strides = src.layout().broadcast_strides(self.shape());
                let input = Input::Strided { ptr: src.ptr()?, dtype: src.dtype(), strides: &strides };
                let out = Output { ptr: self.ptr()?, dtype: m.dtype, strides: &m.layout.strides };
                // SAFETY: both layouts lie within their storages, and the strides were broadcast to the output's shape.
                unsafe { copy::copy(&m.layout.shape, &input, &out) };
                Ok(())
            }
            (Device::Gpu(_), Device::Gpu(_)) => {
                let strides: Dims = src.layout().broadcast_strides(self.shape());
                let view = gpu::View { shape: self.shape(), strides: &strides, ..src.gpu_view()? };
                gpu::copy(&gpu::Input::View(view), &self.gpu_view()?)
            }
            (Device::Cpu, Device::Gpu(_)) => self.upload(src),
            (Device::Gpu(_), Device::Cpu) => self.download(src),
        }
    }
    /// CPU to GPU: bytes travel in the source's dtype when the GPU knows it, else in the target's.
    fn upload(&self, src: &Tensor) -> Result<()> {
        let dtype = if gpu::supports(src.dtype()) { src.dtype() } else { self.dtype() };
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
    /// GPU to CPU: packed on the GPU, moved as bytes, converted and scattered here.
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
    /// A contiguous CPU copy in `dtype`, or this tensor where it is that already.
    pub fn dense_copy(&self, dtype: crate::dtype::DType) -> Result<Tensor> {
        if self.device() == Device::Cpu && self.dtype() == dtype && self.is_contiguous() {
            return Ok(self.clone());
        }
        let t = Tensor::empty(self.shape(), dtype, Device::Cpu)?;
        t.copy_raw(self)?;
        Ok(t)
    }
}
