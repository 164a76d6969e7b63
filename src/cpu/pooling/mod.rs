//! Pooling over windows of images: maxima, means, and their gradients.

pub(crate) mod frame;
pub mod max;
pub mod mean;
#[cfg(test)]
mod tests;
