//! Copies of what a kernel may not read where it lies: in the buffer that it writes.

use super::map::copy;
use super::view::{Input, View};
use crate::error::Result;
use crate::gpu::driver::GpuBuffer;
use crate::layout::{Dims, contiguous_strides};
use smallvec::SmallVec;

/// A contiguous copy of an operand.
struct Stage {
    buffer: GpuBuffer,
    strides: Dims,
}

/// Calls `f` with views of which none is read from the buffer of an output: those that are, are copied first.
pub(super) fn stage_aliased(
    inputs: &mut [View],
    outputs: &[View],
    f: &mut dyn FnMut(&[View]) -> Result<()>,
) -> Result<()> {
    let clashes = |v: &View| outputs.iter().any(|o| o.buffer.id() == v.buffer.id());
    if !inputs.iter().any(clashes) {
        return f(inputs);
    }
    let mut stages: SmallVec<[Option<Stage>; 4]> = SmallVec::new();
    for view in inputs.iter() {
        stages.push(if clashes(view) { Some(staged(view)?) } else { None });
    }
    let views: SmallVec<[View; 4]> = inputs
        .iter()
        .zip(&stages)
        .map(|(view, stage)| match stage {
            Some(s) => View { buffer: &s.buffer, strides: &s.strides, offset: 0, ..*view },
            None => *view,
        })
        .collect();
    f(&views)
}

fn staged(view: &View) -> Result<Stage> {
    let strides = contiguous_strides(view.shape);
    let buffer = view.scratch(view.numel() * view.dtype.size())?;
    copy(&Input::View(*view), &View { buffer: &buffer, strides: &strides, offset: 0, ..*view })?;
    Ok(Stage { buffer, strides })
}
