//! Callbacks to run at the end of this thread's backward pass. Passes nest: a hook or a custom function may start
//! another.

use crate::error::{Error, Result};
use std::cell::RefCell;

pub type Callback = Box<dyn FnOnce() -> Result<()>>;

/// A running pass: its id, whether it computes gradients of chosen inputs only, and its callbacks.
struct Running(u64, bool, Vec<Callback>);

thread_local! {
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// The id of this thread's innermost pass, if any.
pub fn current() -> Option<u64> {
    RUNNING.with_borrow(|all| all.last().map(|r| r.0))
}

/// Whether this thread's innermost pass computes gradients of chosen inputs only: `grad`, or `backward(inputs=..)`.
pub fn current_is_partial() -> bool {
    RUNNING.with_borrow(|all| all.last().is_some_and(|r| r.1))
}

/// Nesting depth of passes in this thread.
pub(crate) fn depth() -> usize {
    RUNNING.with_borrow(Vec::len)
}

/// Queues `callback` for the successful end of this thread's innermost pass.
pub fn queue(callback: Callback) -> Result<()> {
    RUNNING.with_borrow_mut(|all| match all.last_mut() {
        Some(r) => {
            r.2.push(callback);
            Ok(())
        }
        None => Err(Error::runtime("Final callbacks can only be installed during backward pass.")),
    })
}

/// A pass is running until this is dropped.
pub(crate) struct Pass(());

impl Pass {
    pub fn enter(partial: bool) -> Pass {
        RUNNING.with_borrow_mut(|all| all.push(Running(super::hooks::next_id(), partial, Vec::new())));
        Pass(())
    }
    /// Runs the queued callbacks, including those they queue.
    pub fn finish(self) -> Result<()> {
        let waiting = || RUNNING.with_borrow_mut(|all| all.last_mut().map(|r| std::mem::take(&mut r.2)));
        while let Some(callbacks) = waiting().filter(|c| !c.is_empty()) {
            callbacks.into_iter().try_for_each(|callback| callback())?;
        }
        Ok(())
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // Callbacks may own Python objects, so they are dropped after the borrow has ended.
        let ended = RUNNING.with_borrow_mut(|all| all.pop());
        drop(ended);
    }
}
