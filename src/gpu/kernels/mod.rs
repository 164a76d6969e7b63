//! What the GPU computes: each function turns views into launches, values that the driver of the output's device runs.
//!
//! No file here names wgpu: kernels are built with and without the `gpu` feature, and naga validates every variant
//! without a device. A family is one file and its templates in `shaders/`; it stands once in each list below.

mod attention;
mod contract;
mod conv;
mod element;
mod factor;
mod grid_sample;
mod index;
mod jacobi;
mod kernel;
mod map;
mod matmul;
mod norm;
mod norm_channels;
mod params;
mod pooling;
mod product;
mod product_code;
mod program;
mod random;
mod recurrent;
mod reduce;
mod reflect;
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

pub use self::attention::*;
pub use self::conv::*;
pub use self::factor::*;
pub use self::grid_sample::*;
pub use self::index::*;
pub use self::jacobi::*;
pub use self::map::*;
pub use self::matmul::*;
pub use self::norm::*;
pub use self::norm_channels::*;
pub use self::pooling::*;
pub use self::program::*;
pub use self::random::*;
pub use self::recurrent::*;
pub use self::reduce::*;
pub use self::reflect::*;
pub use self::resample::*;
pub use self::scan::*;
pub use self::search::*;
pub use self::softmax::*;
pub use self::sort::*;
pub use self::triangle::*;
pub use self::update::*;
pub use self::upload::*;
#[cfg(feature = "gpu")]
pub use self::validate::validate_all;
pub use self::view::*;
#[cfg(all(test, feature = "gpu"))]
mod tests;
