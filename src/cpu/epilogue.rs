//! What is computed from the results of a kernel, block by block, while a block is still in the cache.
//!
//! The kernel reports elements of its row-major result as they become final; an elementwise program then runs over just
//! those. A kernel that reports nothing has its program run at the end, over everything.

use super::program::Machine;
use super::view::View;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Epilogue<'a> {
    machine: &'a Machine,
    operands: &'a [View<'a>],
    begun: AtomicBool,
}

impl<'a> Epilogue<'a> {
    /// None where the operands are not those that the machine was made for.
    pub fn new(machine: &'a Machine, operands: &'a [View<'a>]) -> Option<Epilogue<'a>> {
        machine.fits(operands).then_some(Epilogue { machine, operands, begun: AtomicBool::new(false) })
    }
    /// Whether blocks may be reported.
    pub fn takes_blocks(&self) -> bool {
        self.machine.runs_in_parts()
    }
    /// These elements are final. The reports of a kernel, from any threads, are disjoint and together all of its result.
    pub fn finished(&self, elements: Range<usize>) {
        self.begun.store(true, Ordering::Relaxed);
        self.machine.run_part(self.operands, elements);
    }
    /// Runs over everything, unless the kernel has reported blocks.
    pub fn complete(self) {
        if !self.begun.load(Ordering::Relaxed) {
            self.machine.run_all(self.operands);
        }
    }
}
