//! Kernels of the CPU: raw pointers, dtypes, shapes and strides in, numbers out. They know no tensor.
pub mod arith;
pub mod gemm;
pub mod index;
pub mod parallel;
pub mod reduce;
pub mod scan;
pub mod softmax;
#[cfg(test)]
pub mod testing;
pub mod view;
pub mod walk;
