//! Forward-mode tangents of a tensor, one for each level of forward AD that it takes part in.
//!
//! A tensor shares its cell with the node that saved it as a result. Levels have unique numbers, and the end of a level
//! empties the cells that it filled (`autograd::forward`), so no tangent outlives its level.

use super::Tensor;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard};

/// A level and its tangent. `None`: the tensor has no tangent at that level, although the base of the view may have one.
type Entry = (u64, Option<Tensor>);

/// The tangents by level.
#[derive(Default)]
pub struct Tangents(Mutex<SmallVec<[Entry; 1]>>);

impl Tangents {
    fn lock(&self) -> MutexGuard<'_, SmallVec<[Entry; 1]>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The entry of a level, if there is one.
    pub fn get(&self, level: u64) -> Option<Option<Tensor>> {
        self.lock().iter().find(|(l, _)| *l == level).map(|(_, t)| t.clone())
    }
    /// Sets the entry of a level. Returns whether the level had none before.
    pub fn set(&self, level: u64, tangent: Option<Tensor>) -> bool {
        let mut list = self.lock();
        let old = match list.iter_mut().find(|(l, _)| *l == level) {
            Some((_, entry)) => Some(std::mem::replace(entry, tangent)),
            None => {
                list.push((level, tangent));
                None
            }
        };
        drop(list);
        old.is_none() // the old tangent is dropped outside the lock: it may own a graph
    }
    /// Removes the entry of a level, to be dropped by the caller.
    pub fn remove(&self, level: u64) -> Option<Tensor> {
        let mut list = self.lock();
        let at = list.iter().position(|(l, _)| *l == level)?;
        list.swap_remove(at).1
    }
}

impl Tensor {
    /// The cell of the tangents, if the tensor has one.
    pub fn tangents(&self) -> Option<Arc<Tangents>> {
        self.slot().rare.as_ref()?.tangents.clone()
    }
    /// The cell of the tangents, created on first use.
    pub fn tangents_or_new(&self) -> Arc<Tangents> {
        self.slot().rare().tangents.get_or_insert_default().clone()
    }
    /// Takes over the tangents of another tensor with the same elements; from then on both have one cell.
    pub fn share_tangents(&self, cell: Arc<Tangents>) {
        let old = self.slot().rare().tangents.replace(cell);
        drop(old); // outside the lock: it may own a graph
    }
    /// Makes the tensor constant for forward mode.
    pub fn drop_tangents(&self) {
        let old = self.slot().rare.as_mut().and_then(|r| r.tangents.take());
        drop(old); // outside the lock, as above
    }
}
