//! How a graph is taken down.
//!
//! A node owns the nodes before it, by its edges, by what it saved, and by what a custom function or a write to a view
//! holds. Where drops of nodes nest too deep, a node hands all of that to a list of the thread that the outermost drop
//! empties, so that a chain of a million nodes neither overflows the stack nor takes more than linear time.

use super::node::{Node, Work};
use crate::tally::{self, Count};
use crate::tensor::Edge;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// How deep drops may nest before they wait for their turn.
const NESTED: u32 = 32;

/// What a node that is dropped leaves behind.
type Parts = (SmallVec<[Option<Edge>; 2]>, Work);

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static WAITING: Cell<bool> = const { Cell::new(false) };
    /// What dropped nodes left to be dropped in turn.
    static PENDING: RefCell<Vec<Parts>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Node {
    fn drop(&mut self) {
        tally::add(Count::Nodes, -1);
        let depth = DEPTH.get();
        if depth >= NESTED {
            let remains = (std::mem::take(&mut self.edges), self.take_work());
            // During thread teardown the list is gone; what is left then drops in place.
            if PENDING.try_with(|p| p.borrow_mut().push(remains)).is_ok() {
                WAITING.set(true);
            }
            return;
        }
        DEPTH.set(depth + 1);
        self.edges.clear();
        match &mut self.work {
            Work::Op { state, .. } => *state.get_mut().unwrap_or_else(|e| e.into_inner()) = None,
            Work::Accumulate(_) => {}
            // What it holds may lead to the nodes before, too.
            _ => drop(self.take_work()),
        }
        while depth == 0 && WAITING.get() {
            match PENDING.try_with(|p| p.borrow_mut().pop()) {
                Ok(Some(item)) => drop(item),
                _ => WAITING.set(false),
            }
        }
        DEPTH.set(depth);
    }
}

impl Node {
    fn take_work(&mut self) -> Work {
        std::mem::replace(&mut self.work, Work::Fails(String::new()))
    }
}
