//! From a kernel's variant and its operands to a dispatch: parameters, bindings, grids.
//!
//! Parameters are 32-bit words that the shader reads as `p[i / 4][i % 4]`; the first four are the element count,
//! two words of the family's own, and a zero that the prelude needs. Index arithmetic is 32-bit.

use super::context::{Gpu, gpu};
use super::stream::Bind;
use super::template::Compute;
use super::types::View;
use super::validate;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::layout::Dims;
use smallvec::SmallVec;

/// Turns that one invocation's loop takes where a dispatch can be followed by another that goes on: drivers stop
/// kernels that take seconds, and lavapipe ends all loops of an invocation after 65,535 turns without a word.
pub(super) const TURNS: usize = 1 << 14;

/// Invocations of a workgroup, unless a family says otherwise.
pub(super) const GROUP: u32 = 256;

pub(super) type Params = SmallVec<[u32; 64]>;

/// The WGSL of parameter word `i`.
pub(super) fn word(i: usize) -> String {
    format!("p[{}].{}", i / 4, ["x", "y", "z", "w"][i % 4])
}

/// The declaration of the parameter block of `words` words.
pub(super) fn declare_params(words: usize) -> String {
    format!("@group(0) @binding(0) var<uniform> p: array<vec4<u32>, {}>;\n", words.div_ceil(4).max(1))
}

/// The two words of a number in the compute type.
pub(super) fn scalar_words(s: Scalar, compute: Compute) -> [u32; 2] {
    let wide = match compute {
        Compute::F32 => (s.to_f64() as f32).to_bits() as u64,
        Compute::F64 => s.to_f64().to_bits(),
        Compute::I32 | Compute::I64 => s.to_i64() as u64,
        Compute::Bool => s.to_bool() as u64,
    };
    [wide as u32, (wide >> 32) as u32]
}

/// The WGSL that reads a number from words `i` and `i + 1`.
pub(super) fn scalar_from(i: usize, compute: Compute) -> String {
    let (low, high) = (word(i), word(i + 1));
    match compute {
        Compute::F32 | Compute::I32 | Compute::Bool => format!("bitcast<{}>({low})", compute.name()),
        _ => format!("bitcast<{}>((u64({high}) << 32u) | u64({low}))", compute.name()),
    }
}

/// A number as a parameter word; shapes, strides and offsets must fit 32 bits.
pub(super) fn narrow(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| too_large())
}

#[cold]
pub(super) fn too_large() -> Error {
    Error::runtime(
        "the tensor is too large for one GPU kernel (an index or a binding exceeds the adapter's limit). \
         Work on slices of it, or use device='cpu'.",
    )
}

/// A workgroup grid for `units` invocations, folded into two dimensions.
pub(super) fn grid(gpu: &Gpu, units: usize, group: u32) -> Result<[u32; 3]> {
    grid_of_groups(gpu, units.div_ceil(group as usize))
}

/// A grid of at least `groups` workgroups; the kernel numbers them `w.x * group.y + group.x`.
pub(super) fn grid_of_groups(gpu: &Gpu, groups: usize) -> Result<[u32; 3]> {
    let groups = narrow(groups)?.max(1);
    let x = groups.min(gpu.caps.max_groups);
    let y = groups.div_ceil(x);
    if y > gpu.caps.max_groups { Err(too_large()) } else { Ok([x, y, 1]) }
}

/// Binds what a view reaches: the whole buffer where the limit allows it, else an aligned window. Returns the
/// element offset within the binding; `None` where the view reaches too far for one binding.
pub(super) fn bind<'a>(gpu: &Gpu, view: &View<'a>) -> Option<(Bind<'a>, usize)> {
    let size = view.dtype.size();
    if view.buffer.capacity() <= gpu.caps.max_binding {
        return Some((Bind { buffer: view.buffer, offset: 0, size: 0 }, view.offset));
    }
    let (start, end) = view.span();
    let from = (start * size) as u64 / gpu.caps.storage_align * gpu.caps.storage_align;
    let to = ((end * size) as u64).next_multiple_of(256).min(view.buffer.capacity());
    if to - from > gpu.caps.max_binding {
        return None;
    }
    Some((Bind { buffer: view.buffer, offset: from, size: (to - from).max(16) }, view.offset - from as usize / size))
}

/// Whether one binding reaches all that each view reaches; what does not fit is split.
pub(super) fn fits(views: &[&View]) -> Result<bool> {
    if validate::dry() {
        return Ok(true);
    }
    let gpu = gpu()?;
    Ok(views.iter().all(|v| bind(gpu, v).is_some()))
}

/// The part of `view` that starts at `start` along `d`; `shape` is the view's with the part's length.
pub(super) fn part<'a>(view: &View<'a>, d: usize, start: usize, shape: &'a [usize]) -> View<'a> {
    View { shape, offset: view.offset + start * view.strides[d], ..*view }
}

/// A dimension's two halves: where each starts and how long it is.
pub(super) fn halves(n: usize) -> [(usize, usize); 2] {
    [(0, n / 2), (n / 2, n - n / 2)]
}

/// `shape` with dimension `d` of length `n`.
pub(super) fn resized(shape: &[usize], d: usize, n: usize) -> Dims {
    let mut shape = Dims::from(shape);
    shape[d] = n;
    shape
}

/// Runs a kernel: finds or builds its pipeline, then records it.
pub(super) fn launch(
    gpu: &Gpu,
    key: &str,
    source: impl FnOnce() -> String,
    (reads, writes): (usize, usize),
    binds: &[Bind],
    params: &[u32],
    groups: [u32; 3],
) -> Result<()> {
    let mut stream = gpu.stream();
    let pipeline = stream.pipelines.get(gpu, key, reads, writes, source)?;
    stream.dispatch(gpu, &pipeline, binds, params, groups)
}
