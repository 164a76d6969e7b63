//! The words of a parameter block, and the WGSL that reads them.
//!
//! A shader sees them as `p[i / 4][i % 4]`; the first four are the element count, two words of the family's own, and a
//! zero that the prelude needs. Index arithmetic is 32-bit.

use super::template::Compute;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::gpu::driver::too_large;

/// Iterations of one invocation's loop where a dispatch can be followed by another that goes on: drivers stop kernels
/// that take seconds, and lavapipe silently ends all loops of an invocation after 65,535 iterations.
pub(super) const ITERATIONS: usize = 1 << 14;

/// Invocations of a workgroup, unless a family says otherwise.
pub(super) const GROUP: usize = 256;

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
#[inline]
pub(super) fn u32_param(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| too_large())
}

/// How many invocations share something, a power of two up to 256, as WGSL.
pub(super) fn lanes_text(lanes: usize) -> &'static str {
    ["1u", "2u", "4u", "8u", "16u", "32u", "64u", "128u", "256u"][lanes.ilog2() as usize]
}
