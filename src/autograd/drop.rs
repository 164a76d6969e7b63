//! Dropping a graph without recursion.
//!
//! A node owns earlier nodes through its edges, its saved tensors, and what a custom function or a write to a view
//! holds. When drops of nodes nest too deeply, a node moves all of that to a per-thread list, which the outermost drop
//! empties. So dropping a chain of a million nodes neither overflows the stack nor takes more than linear time.

use super::node::{Edges, Node, Work};
use crate::rt::counters;
use crate::rt::counters::Count;
use crate::rt::thread_state::{ThreadState, thread_state};
use std::cell::RefCell;

/// Nesting depth from which drops are deferred.
const NESTED: u32 = 32;

/// What a dropped node leaves to be dropped later.
type Remains = (Edges, Work);

thread_local! {
    static PENDING: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Node {
    fn drop(&mut self) {
        thread_state(|thread| self.drop_in(thread));
    }
}

impl Node {
    fn drop_in(&mut self, thread: &ThreadState) {
        counters::add_to(thread, Count::Nodes, -1);
        let depth = thread.drops.get();
        if depth >= NESTED {
            let remains = (std::mem::take(&mut self.edges), self.take_work());
            // During thread teardown the list is gone; then the rest is dropped in place.
            if PENDING.try_with(|p| p.borrow_mut().push(remains)).is_ok() {
                thread.drops_wait.set(true);
            }
            return;
        }
        thread.drops.set(depth + 1);
        self.edges.clear();
        match &mut self.work {
            Work::Op { state, .. } => *state.get_mut().unwrap_or_else(|e| e.into_inner()) = None,
            Work::Accumulate(_) => {}
            // It may also own earlier nodes.
            _ => drop(self.take_work()),
        }
        while depth == 0 && thread.drops_wait.get() {
            match PENDING.try_with(|p| p.borrow_mut().pop()) {
                Ok(Some(item)) => drop(item),
                _ => thread.drops_wait.set(false),
            }
        }
        thread.drops.set(depth);
    }

    fn take_work(&mut self) -> Work {
        std::mem::replace(&mut self.work, Work::Fails(String::new()))
    }
}
