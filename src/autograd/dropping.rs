//! How a graph is taken down.
//!
//! A node owns the nodes before it, by its edges, by what it saved, and by what a custom function or a write to a view
//! holds. Where drops of nodes nest too deep, a node hands all of that to a list of the thread that the outermost drop
//! empties, so that a chain of a million nodes neither overflows the stack nor takes more than linear time.

use super::node::{Edges, Node, Work};
use crate::tally::{self, Count};
use std::cell::{Cell, RefCell};

/// How deep drops may nest before they wait for their turn.
const NESTED: u32 = 32;

/// What a dropped node leaves to be dropped in turn.
type Remains = (Edges, Work);

struct Nest {
    depth: Cell<u32>,
    waiting: Cell<bool>,
}

thread_local! {
    static NEST: Nest = const { Nest { depth: Cell::new(0), waiting: Cell::new(false) } };
    static PENDING: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Node {
    fn drop(&mut self) {
        tally::add(Count::Nodes, -1);
        NEST.with(|nest| self.drop_in(nest));
    }
}

impl Node {
    fn drop_in(&mut self, nest: &Nest) {
        let depth = nest.depth.get();
        if depth >= NESTED {
            let remains = (std::mem::take(&mut self.edges), self.take_work());
            // During thread teardown the list is gone; what is left then drops in place.
            if PENDING.try_with(|p| p.borrow_mut().push(remains)).is_ok() {
                nest.waiting.set(true);
            }
            return;
        }
        nest.depth.set(depth + 1);
        self.edges.clear();
        match &mut self.work {
            Work::Op { state, .. } => *state.get_mut().unwrap_or_else(|e| e.into_inner()) = None,
            Work::Accumulate(_) => {}
            // What it holds may lead to the nodes before, too.
            _ => drop(self.take_work()),
        }
        while depth == 0 && nest.waiting.get() {
            match PENDING.try_with(|p| p.borrow_mut().pop()) {
                Ok(Some(item)) => drop(item),
                _ => nest.waiting.set(false),
            }
        }
        nest.depth.set(depth);
    }

    fn take_work(&mut self) -> Work {
        std::mem::replace(&mut self.work, Work::Fails(String::new()))
    }
}
