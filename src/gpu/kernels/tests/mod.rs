//! Kernels on a real adapter (a software one will do). Without any, each test prints why it did nothing.

mod attention;
mod conformance;
mod conv;
mod elementwise;
mod factor;
mod image;
mod index;
mod kernels;
mod limits;
mod linear;
mod math;
mod norm;
mod order;
mod pooling;
mod random;
mod reduce;

use crate::device::Device;
use crate::dtype::{DType, Element};
use crate::gpu::{GpuBuffer, Input, View, download, is_available, upload};
use crate::layout::Layout;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The device of these tests.
const GPU: Device = Device::Gpu(0);

/// Faults belong to whoever reads next: a test that provokes them runs alone.
static TURN: RwLock<()> = RwLock::new(());

/// Whether there is an adapter; prints the reason for skipping where there is none.
fn exists(test: &str) -> bool {
    if !is_available() {
        println!("{test}: skipped, no GPU adapter (install mesa-vulkan-drivers to run it)");
    }
    is_available()
}

/// A turn beside other tests; `None` without an adapter.
fn ready(test: &str) -> Option<RwLockReadGuard<'static, ()>> {
    exists(test).then(|| TURN.read().unwrap_or_else(|e| e.into_inner()))
}

/// A turn of one's own.
fn alone(test: &str) -> Option<RwLockWriteGuard<'static, ()>> {
    exists(test).then(|| TURN.write().unwrap_or_else(|e| e.into_inner()))
}

/// A tensor on the GPU, for tests.
struct Dev {
    buffer: GpuBuffer,
    dtype: DType,
    layout: Layout,
}

fn bytes_of<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: elements are plain data without padding, and the slice covers exactly them.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

impl Dev {
    fn new<T: Element>(shape: &[usize], data: &[T]) -> Dev {
        assert_eq!(shape.iter().product::<usize>(), data.len());
        let buffer = GpuBuffer::alloc(0, size_of_val(data)).unwrap();
        upload(bytes_of(data), &buffer, 0).unwrap();
        Dev { buffer, dtype: T::DTYPE, layout: Layout::contiguous(shape) }
    }
    fn zeros(shape: &[usize], dtype: DType) -> Dev {
        let layout = Layout::contiguous(shape);
        Dev { buffer: GpuBuffer::zeroed(0, layout.numel() * dtype.size()).unwrap(), dtype, layout }
    }
    fn view(&self) -> View<'_> {
        self.view_of(&self.layout)
    }
    fn view_of<'a>(&'a self, layout: &'a Layout) -> View<'a> {
        let Layout { shape, strides, offset } = layout;
        View { buffer: &self.buffer, dtype: self.dtype, shape, strides, offset: *offset }
    }
    fn input(&self) -> Input<'_> {
        Input::View(self.view())
    }
    /// Every element of the buffer, whatever the layout.
    fn get<T: Element>(&self) -> Vec<T> {
        assert_eq!(T::DTYPE, self.dtype);
        let mut out = vec![T::default(); self.buffer.bytes() / size_of::<T>()];
        // SAFETY: `out` holds exactly the buffer's bytes.
        unsafe { download(&self.buffer, 0, out.as_mut_ptr().cast(), size_of_val(&out[..])).unwrap() };
        out
    }
}
