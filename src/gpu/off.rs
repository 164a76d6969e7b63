//! The GPU room of a build without the `gpu` feature: the same functions, each of which says so.

use super::{Input, NormGrad, Random, Reduce, Refusal, Scan, ScatterMode, Step, View};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};

/// A buffer that cannot exist.
#[derive(Debug)]
pub enum GpuBuffer {}

#[cold]
fn absent<T>() -> Result<T> {
    Err(Error::runtime("no GPU support in this build. Install a build with the `gpu` feature, or use device='cpu'."))
}

impl GpuBuffer {
    pub fn alloc(_bytes: usize) -> Result<GpuBuffer> {
        absent()
    }
    pub fn zeroed(_bytes: usize) -> Result<GpuBuffer> {
        absent()
    }
    pub fn bytes(&self) -> usize {
        match *self {}
    }
}
pub fn is_available() -> bool {
    false
}
pub fn unasked_software() -> Option<&'static str> {
    None
}
pub fn device_name(_index: usize) -> Result<String> {
    absent()
}
pub fn supports(_dtype: DType) -> bool {
    false
}
pub fn synchronize() -> Result<()> {
    Ok(())
}
pub fn memory_allocated() -> usize {
    0
}
pub fn max_memory_allocated() -> usize {
    0
}
pub fn reset_peak_memory() {}
pub fn properties() -> Result<Vec<(&'static str, String)>> {
    absent()
}
pub fn memory_reserved() -> usize {
    0
}
pub fn empty_cache() {}
pub fn stats() -> Vec<(&'static str, u64)> {
    Vec::new()
}
pub fn upload(_src: &[u8], _dst: &GpuBuffer, _byte_offset: usize) -> Result<()> {
    absent()
}
/// # Safety
/// None here: it touches nothing.
pub unsafe fn download(_src: &GpuBuffer, _byte_offset: usize, _dst: *mut u8, _bytes: usize) -> Result<()> {
    absent()
}
pub fn map(_shape: &[usize], _inputs: &[Input], _out: &View, _compute: DType, _expr: &'static str) -> Result<()> {
    absent()
}
pub fn ramp(_start: Scalar, _step: Scalar, _out: &View) -> Result<()> {
    absent()
}
pub fn line(_start: f64, _end: f64, _out: &View) -> Result<()> {
    absent()
}
pub fn copy(_src: &Input, _out: &View) -> Result<()> {
    absent()
}
pub fn reduce(_kind: Reduce, _input: &View, _dims: &[usize], _out: &View) -> Result<()> {
    absent()
}
pub fn var(
    _input: &View,
    _dims: &[usize],
    _correction: f64,
    _root: bool,
    _out: &View,
    _mean: Option<&View>,
) -> Result<()> {
    absent()
}
pub fn arg_reduce(
    _is_max: bool,
    _input: &View,
    _dim: Option<usize>,
    _values: Option<&View>,
    _indices: &View,
) -> Result<()> {
    absent()
}
pub fn matmul(_a: &View, _b: &View, _out: &View, _alpha: f64, _beta: f64) -> Result<()> {
    absent()
}
pub fn softmax(_input: &View, _dim: usize, _out: &View, _log: bool) -> Result<()> {
    absent()
}
pub fn softmax_backward(_grad: &View, _output: &View, _dim: usize, _out: &View, _log: bool) -> Result<()> {
    absent()
}
pub fn cumulative(_kind: Scan, _input: &View, _dim: usize, _out: &View, _indices: Option<&View>) -> Result<()> {
    absent()
}
pub fn recurrence(_a: &View, _b: &View, _dim: usize, _reverse: bool, _out: &View) -> Result<()> {
    absent()
}
pub fn sort(
    _input: &View,
    _dim: usize,
    _descending: bool,
    _first: usize,
    _values: &View,
    _indices: &View,
) -> Result<()> {
    absent()
}
pub fn sort_rows(_input: &View, _positions: &View) -> Result<()> {
    absent()
}
pub fn layer_norm(
    _input: &View,
    _weight: Option<View>,
    _bias: Option<View>,
    _eps: f64,
    _out: [&View; 3],
) -> Result<()> {
    absent()
}
pub fn layer_norm_backward(_from: &NormGrad, _dx: &View, _dw: &View, _db: &View) -> Result<()> {
    absent()
}
pub fn search(_sorted: &View, _values: &View, _right: bool, _compute: DType, _out: &View) -> Result<()> {
    absent()
}
pub fn update(
    _step: Step,
    _changed: &[(&'static str, View)],
    _read: (&'static str, View),
    _numbers: &[(&'static str, f64)],
) -> Result<()> {
    absent()
}
pub fn pick_class(_input: &View, _dim: usize, _class: &View, _out: &View) -> Result<()> {
    absent()
}
pub fn put_class(_out: &View, _dim: usize, _class: &View, _source: &View) -> Result<()> {
    absent()
}
pub fn refuse_where(_mask: &View, _what: Refusal) -> Result<()> {
    absent()
}
pub fn gather(_input: &View, _dim: usize, _index: &View, _out: &View) -> Result<()> {
    absent()
}
pub fn index_select(_input: &View, _dim: usize, _index: &View, _out: &View) -> Result<()> {
    absent()
}
pub fn index_get(_input: &View, _indices: &[Option<View>], _out: &View) -> Result<()> {
    absent()
}
pub fn index_put(_out: &View, _indices: &[Option<View>], _values: &View, _accumulate: bool) -> Result<()> {
    absent()
}
pub fn scatter(_out: &View, _dim: usize, _index: &View, _source: &Input, _mode: ScatterMode) -> Result<()> {
    absent()
}
pub fn index_add(_out: &View, _dim: usize, _index: &View, _source: &View, _alpha: f64) -> Result<()> {
    absent()
}
pub fn index_copy(_out: &View, _dim: usize, _index: &View, _source: &View) -> Result<()> {
    absent()
}
pub fn index_fill(_out: &View, _dim: usize, _index: &View, _value: Scalar) -> Result<()> {
    absent()
}
/// The true elements of a mask; cannot exist.
pub struct Places {
    pub count: usize,
}
impl Places {
    pub fn find(_mask: &View) -> Result<Places> {
        absent()
    }
}
pub fn nonzero(_places: &Places, _shape: &[usize], _out: &View) -> Result<()> {
    absent()
}
pub fn masked_select(_input: &View, _places: &Places, _out: &View) -> Result<()> {
    absent()
}
pub fn masked_scatter(_out: &View, _places: &Places, _source: &View) -> Result<()> {
    absent()
}
pub fn random(_kind: Random, _seed: u64, _offset: u64, _out: &View) -> Result<()> {
    absent()
}
/// Without shaders there is nothing to be wrong.
pub fn validate_all(_exprs: &[(&str, DType)]) -> Result<()> {
    Ok(())
}
