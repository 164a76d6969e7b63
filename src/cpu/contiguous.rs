//! A rule's loop on contiguous operands of the loop's own dtype.

use super::loops::{BLOCK, Class, Entry, Loops};
use super::parallel::par_for;
use crate::dtype::DType;

/// Maximum number of operands of a rule.
pub const MAX_INPUTS: usize = 8;
pub type Pointers = [*const u8; MAX_INPUTS];
pub const NO_POINTERS: Pointers = [std::ptr::null(); MAX_INPUTS];

/// A pointer shared by tasks, whose accesses are disjoint by construction.
#[derive(Clone, Copy)]
pub(crate) struct TaskShared<T>(pub T);
// SAFETY: each task reads operands and writes only its own part of the output.
unsafe impl<T> Send for TaskShared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for TaskShared<T> {}
impl<T: Copy> TaskShared<T> {
    pub(crate) fn get(&self) -> T {
        self.0
    }
}

/// The loop that computes in a dtype.
#[derive(Clone, Copy)]
pub struct Flat<'a> {
    pub(crate) class: Class,
    pub(crate) entry: &'a Entry,
    pub(crate) grain: usize,
}

impl Loops {
    #[inline]
    pub fn flat(&self, compute: DType) -> Option<Flat<'_>> {
        let (class, entry) = self.select(compute)?;
        Some(Flat { class, entry, grain: self.grain })
    }
}

impl Flat<'_> {
    /// Whether it can read memory of this dtype directly.
    #[inline]
    pub fn reads(&self, dtype: DType) -> bool {
        self.class.dtype() == dtype
    }
    /// The dtype it writes.
    #[inline]
    pub fn result(&self) -> DType {
        self.entry.result
    }
    /// # Safety
    /// The first `count` pointers and the output have `n` contiguous elements of the loop's types each; the output is
    /// one of the inputs or overlaps none.
    #[inline]
    pub unsafe fn run(&self, inputs: &Pointers, count: usize, out: *mut u8, n: usize) {
        let f = self.entry.function();
        if n <= self.grain {
            // SAFETY: the caller's promise.
            return unsafe { f(inputs.as_ptr(), out, n) };
        }
        let (size_in, size_out) = (self.class.dtype().size(), self.entry.result.size());
        let (base, out) = (TaskShared(inputs), TaskShared(out));
        // In whole blocks, so that the result does not depend on the number of threads.
        par_for(n.div_ceil(BLOCK), self.grain.div_ceil(BLOCK), |r| {
            let mut part = NO_POINTERS;
            let (start, end) = (r.start * BLOCK, (r.end * BLOCK).min(n));
            // SAFETY: ranges lie within `0..n` and are disjoint.
            unsafe {
                for (p, b) in part.iter_mut().zip(&base.get()[..count]) {
                    *p = b.add(start * size_in);
                }
                f(part.as_ptr(), out.get().add(start * size_out), end - start);
            }
        });
    }
}
