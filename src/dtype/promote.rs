//! Type promotion: one table of pairs, and the rule for operands of different rank.
//!
//! Source: PyTorch's "Type Promotion Documentation". Tensors with dimensions rank above 0-d tensors, which rank above
//! numbers; a lower rank counts only if its category is higher.

use super::DType::{self, *};
use super::Scalar;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Bool,
    Int,
    Float,
    Complex,
}

static DEFAULT: AtomicU8 = AtomicU8::new(F32 as u8);

/// The dtype of a Python float: `float32` unless `set_default_dtype` says otherwise.
pub fn default_dtype() -> DType {
    DType::ALL[DEFAULT.load(Ordering::Relaxed) as usize]
}
/// Sets the default floating dtype; the caller has checked that it is one.
pub fn set_default_dtype(d: DType) {
    DEFAULT.store(d as u8, Ordering::Relaxed);
}

/// The dtype that two tensors of equal rank promote to. The storage-only unsigned dtypes promote only with floats, floats of
/// eight bits with nothing.
pub fn promote(a: DType, b: DType) -> Result<DType> {
    let (ca, cb) = (a.category(), b.category());
    if a != b && (a.is_float8() || b.is_float8()) {
        return Err(Error::runtime(format!(
            "Promotion for Float8 Types is not supported, attempted to promote {} and {}",
            a.scalar_type_name(),
            b.scalar_type_name()
        )));
    }
    if a != b && (a.is_storage_only() || b.is_storage_only()) && ca.max(cb) != Category::Float {
        return Err(Error::runtime(format!(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {} and {}",
            a.scalar_type_name(),
            b.scalar_type_name()
        )));
    }
    Ok(promoted(a, b))
}

fn promoted(a: DType, b: DType) -> DType {
    let (ca, cb) = (a.category(), b.category());
    if a == b {
        return a;
    }
    if ca != cb {
        let (low, high) = if ca < cb { (a, b) } else { (b, a) };
        // The result has the wider component type: f64 with c64 gives c128.
        return match (low, high) {
            (F64, C32 | C64) => C128,
            (BF16 | F32, C32) => C64,
            _ => high,
        };
    }
    match (a, b) {
        _ if ca == Category::Complex => {
            if a.size() > b.size() {
                a
            } else {
                b
            }
        }
        (F16, BF16) | (BF16, F16) => F32,
        _ if ca == Category::Float => {
            if rank(a) > rank(b) {
                a
            } else {
                b
            }
        }
        _ => promote_ints(a, b),
    }
}

fn rank(d: DType) -> u8 {
    match d {
        F16 | BF16 => 0,
        F32 => 1,
        _ => 2,
    }
}

fn promote_ints(a: DType, b: DType) -> DType {
    match (a.is_signed(), b.is_signed()) {
        (true, true) | (false, false) => {
            if a.size() > b.size() {
                a
            } else {
                b
            }
        }
        _ => {
            let (u, s) = if a.is_signed() { (b, a) } else { (a, b) };
            if s.size() > u.size() { s } else { I16 }
        }
    }
}

/// Collects the operands of a call and computes their promoted dtype.
#[derive(Clone, Copy, Default)]
pub struct Operands {
    dims: Option<DType>,
    zero: Option<DType>,
    number: Option<Category>,
}

impl Operands {
    pub fn tensor(&mut self, d: DType, ndim: usize) -> Result<()> {
        let slot = if ndim > 0 { &mut self.dims } else { &mut self.zero };
        *slot = Some(slot.map_or(Ok(d), |p| promote(p, d))?);
        Ok(())
    }
    pub fn scalar(&mut self, s: Scalar) {
        let c = s.category();
        self.number = Some(self.number.map_or(c, |p| p.max(c)));
    }
    /// The promoted dtype; `None` without operands.
    pub fn result(&self) -> Option<DType> {
        let number = self.number.map(category_default);
        let low = combine(self.zero, number);
        combine(self.dims, low)
    }
}

/// `high` wins unless `low` is of a higher category.
fn combine(high: Option<DType>, low: Option<DType>) -> Option<DType> {
    match (high, low) {
        (Some(h), Some(l)) if l.category() > h.category() => Some(result_category(h, l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    }
}

/// `low` decides the category, `high` the width if it has one (f64 tensor * complex number).
pub fn result_category(high: DType, low: DType) -> DType {
    if low.is_complex() && high.is_float() {
        return high.to_complex();
    }
    low
}

fn category_default(c: Category) -> DType {
    match c {
        Category::Bool => Bool,
        Category::Int => I64,
        Category::Float => default_dtype(),
        Category::Complex => default_dtype().to_complex(),
    }
}
