//! What is to run when the backward pass of this thread ends. Passes nest: a hook or a custom function may run another.

use crate::error::{Error, Result};
use std::cell::RefCell;

pub type Callback = Box<dyn FnOnce() -> Result<()>>;

/// A pass that runs: its number and what waits for its end.
struct Running(u64, Vec<Callback>);

thread_local! {
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// The number of the innermost pass of this thread, if one runs.
pub fn current() -> Option<u64> {
    RUNNING.with_borrow(|all| all.last().map(|r| r.0))
}

/// How deep passes nest in this thread.
pub(super) fn depth() -> usize {
    RUNNING.with_borrow(Vec::len)
}

/// Runs `callback` when the innermost pass of this thread has ended well.
pub fn queue(callback: Callback) -> Result<()> {
    RUNNING.with_borrow_mut(|all| match all.last_mut() {
        Some(r) => {
            r.1.push(callback);
            Ok(())
        }
        None => Err(Error::runtime("Final callbacks can only be installed during backward pass.")),
    })
}

/// Marks a pass as running until it is dropped.
pub(super) struct Pass(());

impl Pass {
    pub fn enter() -> Pass {
        RUNNING.with_borrow_mut(|all| all.push(Running(super::hooks::next_id(), Vec::new())));
        Pass(())
    }
    /// Runs what waits, also what it adds itself.
    pub fn finish(self) -> Result<()> {
        let waiting = || RUNNING.with_borrow_mut(|all| all.last_mut().map(|r| std::mem::take(&mut r.1)));
        while let Some(callbacks) = waiting().filter(|c| !c.is_empty()) {
            callbacks.into_iter().try_for_each(|callback| callback())?;
        }
        Ok(())
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // What is dropped may hold Python objects, so it goes after the borrow has ended.
        let ended = RUNNING.with_borrow_mut(|all| all.pop());
        drop(ended);
    }
}
