//! Values that a kernel refuses: indices out of range, and masks that say where something is wrong.

use super::words::TABLE;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::fault::{self, Check, Refusal};
use crate::gpu::kernels::element::compute_of;
use crate::gpu::kernels::kernel::Kernel;
use crate::gpu::kernels::view::View;

/// Raises an error, when the host next waits, if any element of `mask` is true.
pub fn refuse_where(mask: &View, what: Refusal) -> Result<()> {
    let kernel = Kernel::new("refuse", TABLE, compute_of(mask.dtype)?).read("mask", *mask).walk(
        "mask",
        mask.shape,
        mask.strides,
    );
    let kernel = kernel.number("units", mask.numel())?.bits("code", what.code());
    let body =
        "if (truth(read_mask({{mask}} + walk_mask(unit))) == {{wanted}}) { atomicMax(&buffer_fault[0], {{code}}); }";
    kernel
        .text("combine", "v")
        .text("wanted", if what == Refusal::DivisionByZero { "false" } else { "true" })
        .part("", "body", body)
        .faulting()?
        .launch(mask.numel())
}

/// Every index into nothing is bad: no kernel is needed to say so.
pub(super) fn refuse_empty(index: &View, check: Check, dim: usize, size: usize) -> Result<()> {
    if size > 0 || index.numel() == 0 {
        return Ok(());
    }
    let mut bytes = [0u8; 8];
    let width = index.dtype.size().min(8);
    // SAFETY: `bytes` holds eight bytes, and no more are read.
    unsafe { index.buffer.read(index.offset * index.dtype.size(), bytes.as_mut_ptr(), width)? };
    let value = match index.dtype {
        DType::I64 => i64::from_le_bytes(bytes) as i32,
        DType::I32 => i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        DType::I16 => i16::from_le_bytes([bytes[0], bytes[1]]) as i32,
        DType::I8 => bytes[0] as i8 as i32,
        _ => bytes[0] as i32,
    };
    Err(fault::error_of([check as u32, value as u32, 0, dim as u32])
        .unwrap_or_else(|| Error::internal("a check without a code")))
}

impl<'a> Kernel<'a> {
    /// The numbers that `checked` compares with, and the fault block.
    pub(super) fn check(self, check: Check, dim: usize, size: usize) -> Result<Self> {
        let low = if check == Check::Bounds { -(size as i64) as i32 } else { 0 };
        self.number("size", size)?
            .number("dim", dim)?
            .bits("low", low as u32)
            .text("code", format!("{}u", check as u32))
            .faulting()
    }
}
