//! Kernels on any vendor's GPU through wgpu and WGSL.
//!
//! One device, created on first use. Every function appends to one ordered command stream and returns; program
//! order is the semantics, so views and in-place writes need no care. `download` and `synchronize` wait.
//! Element strides and offsets travel as parameters, so any view of a buffer is an operand without a copy.
//! Without the `gpu` feature the same functions exist and answer that this build has no GPU support.

mod types;
pub use types::{Input, NormGrad, Random, Reduce, Refusal, Scan, ScatterMode, Step, View};

#[cfg(feature = "gpu")]
mod adapter;
#[cfg(feature = "gpu")]
mod context;
#[cfg(feature = "gpu")]
mod element;
#[cfg(feature = "gpu")]
mod index;
#[cfg(feature = "gpu")]
mod kernel;
#[cfg(feature = "gpu")]
mod launch;
#[cfg(feature = "gpu")]
mod map;
#[cfg(feature = "gpu")]
mod matmul;
#[cfg(feature = "gpu")]
mod norm;
#[cfg(feature = "gpu")]
mod pipeline;
#[cfg(feature = "gpu")]
mod pool;
#[cfg(feature = "gpu")]
mod random;
#[cfg(feature = "gpu")]
mod reduce;
#[cfg(feature = "gpu")]
mod scan;
#[cfg(feature = "gpu")]
mod search;
#[cfg(feature = "gpu")]
mod softmax;
#[cfg(feature = "gpu")]
mod sort;
#[cfg(feature = "gpu")]
mod stream;
#[cfg(feature = "gpu")]
mod template;
#[cfg(feature = "gpu")]
mod transfer;
#[cfg(feature = "gpu")]
mod update;
#[cfg(feature = "gpu")]
mod validate;

#[cfg(feature = "gpu")]
pub use {
    adapter::{device_name, is_available, properties, supports, unasked_software},
    context::{
        empty_cache, max_memory_allocated, memory_allocated, memory_reserved, reset_peak_memory, stats, synchronize,
    },
    index::{
        Places, gather, index_add, index_copy, index_fill, index_get, index_put, index_select, masked_scatter,
        masked_select, nonzero, pick_class, put_class, refuse_where, scatter,
    },
    map::{copy, line, map, ramp},
    matmul::matmul,
    norm::{layer_norm, layer_norm_backward},
    pool::GpuBuffer,
    random::random,
    reduce::{arg_reduce, reduce, var},
    scan::{cumulative, recurrence},
    search::search,
    softmax::{softmax, softmax_backward},
    sort::{sort, sort_rows},
    transfer::{download, upload},
    update::update,
    validate::validate_all,
};

#[cfg(not(feature = "gpu"))]
mod off;
#[cfg(not(feature = "gpu"))]
pub use off::*;

#[cfg(all(test, feature = "gpu"))]
mod tests;
