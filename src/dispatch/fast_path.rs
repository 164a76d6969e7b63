//! The fast path of elementwise calls, taken by most small ones: row-major CPU tensors of one dtype and shape.
//!
//! No promotion, broadcasting, conversion or copy is needed: one pass over the operands checks that, and the loop runs
//! on them directly. All other calls, errors included, are left to `elementwise`, which computes the same.

use super::elementwise::promoted;
use crate::cpu::contiguous::NO_POINTERS;
use crate::device::Device;
use crate::error::Result;
use crate::layout::{Layout, same};
use crate::op::{Call, Rule};
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};

/// The result; `None` if the call is not eligible.
#[inline]
pub(crate) fn run(call: &Call, rule: &'static Rule) -> Result<Option<Tensor>> {
    let mut pointers = NO_POINTERS;
    let mut first: Option<&Meta> = None;
    for (p, &i) in pointers.iter_mut().zip(rule.operands) {
        let Some(m) = call.args[i].as_tensor().map(Tensor::meta) else { return Ok(None) };
        let fits = m.storage.device() == Device::Cpu
            && match first {
                None => m.layout.is_row_major(),
                Some(f) => {
                    m.dtype == f.dtype
                        && same(&m.layout.shape, &f.layout.shape)
                        && same(&m.layout.strides, &f.layout.strides)
                }
            };
        if !fits {
            return Ok(None);
        }
        first.get_or_insert(m);
        *p = m.storage.cpu_ptr()?.wrapping_add(m.layout.offset * m.dtype.size());
    }
    let Some(Meta { layout, dtype, .. }) = first else { return Ok(None) };
    let (compute, result) = promoted(call, *dtype)?;
    let Some(flat) = rule.loops.flat(compute).filter(|f| compute == *dtype && f.reads(compute) && f.result() == result)
    else {
        return Ok(None);
    };
    let n = layout.numel();
    let storage = Storage::alloc(n * result.size(), Device::Cpu)?;
    // SAFETY: every operand has `n` contiguous elements of `compute` from its pointer on, and the block is as large.
    unsafe { flat.run(&pointers, rule.operands.len(), storage.cpu_ptr()?, n) };
    let layout = || Layout { offset: 0, ..layout.clone() };
    Ok(Some(Tensor::build(|| Meta { storage, layout: layout(), dtype: result }, || None)))
}
