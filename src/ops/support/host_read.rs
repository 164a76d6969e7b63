//! Reading tensors on the host: numbers, lists, dense copies. Waits for the device.

use crate::cpu::view::ensure;
use crate::dtype::{Element, Scalar};
use crate::error::Result;
use crate::op::tracer;
use crate::tensor::Tensor;

/// The value of a one-element tensor.
pub(crate) fn item(t: &Tensor) -> Result<Scalar> {
    tracer::notify(|to| to.host_reads(t));
    let host = t.dense_copy(t.dtype())?;
    host.element(host.layout().offset)
}

/// The numbers of an integer tensor in row-major order.
pub(crate) fn int_list(t: &Tensor) -> Result<Vec<i64>> {
    crate::rt::reserve::copied(Dense::<i64>::of(t)?.elements()?)
}

/// A contiguous CPU tensor of the dtype of `T`, and its elements in row-major order.
pub(crate) struct Dense<T> {
    tensor: Tensor,
    mark: std::marker::PhantomData<T>,
}

impl<T: Element> Dense<T> {
    /// `t` itself if it is dense already, else a converted copy.
    pub(crate) fn of(t: &Tensor) -> Result<Dense<T>> {
        tracer::notify(|to| to.host_reads(t));
        Ok(Dense { tensor: t.dense_copy(T::DTYPE)?, mark: std::marker::PhantomData })
    }
    /// A copy of `t` that nobody else can write: for code that must read the same elements again.
    pub(crate) fn copy_of(t: &Tensor) -> Result<Dense<T>> {
        tracer::notify(|to| to.host_reads(t));
        let tensor = Tensor::empty(t.shape(), T::DTYPE, crate::device::Device::Cpu)?;
        tensor.copy_raw(t)?;
        Ok(Dense { tensor, mark: std::marker::PhantomData })
    }
    pub(crate) fn elements(&self) -> Result<&[T]> {
        let v = self.tensor.cpu_view()?;
        ensure(v.is_contiguous() && v.dtype == T::DTYPE, "dense elements")?;
        // SAFETY: contiguous elements of the type, in memory that the tensor owns as long as the slice lives.
        Ok(unsafe { std::slice::from_raw_parts(v.ptr.cast::<T>(), v.numel()) })
    }
}
