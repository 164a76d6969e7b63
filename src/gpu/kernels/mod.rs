//! What the GPU computes: each function turns views into launches, values that the driver of the output's device runs.
//!
//! No file here names wgpu: kernels are built with and without the `gpu` feature, and naga validates every variant
//! without a device. A family is one file and its templates in `shaders/`; it stands once in each list below.

mod element;
mod grid_sample;
mod index;
mod kernel;
mod map;
mod matmul;
mod norm;
mod norm_channels;
mod params;
mod pooling;
mod random;
mod reduce;
mod resample;
mod scan;
mod search;
mod softmax;
mod sort;
mod stage;
mod template;
mod triangle;
mod update;
mod upload;
#[cfg(feature = "gpu")]
mod validate;
mod view;

#[cfg(feature = "gpu")]
pub use validate::validate_all;
pub use {
    grid_sample::*, index::*, map::*, matmul::*, norm::*, norm_channels::*, pooling::*, random::*, reduce::*,
    resample::*, scan::*, search::*, softmax::*, sort::*, triangle::*, update::*, upload::*, view::*,
};
#[cfg(all(test, feature = "gpu"))]
mod tests;
