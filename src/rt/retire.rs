//! Replaced values, kept until nobody can read them.
//!
//! Note [Retired values]: `&Meta` and `&Buffer` are handed out through shared handles, so a value that is replaced
//! (`.data = x`, `resize_`) may still be in use: by a thread that runs without the interpreter lock, or by a function
//! further up the stack that called Python. So it is retired, not freed; its owner frees it when dropped, at the
//! latest. Calls from Python free it earlier: each opens a `Frame` and reads only within it, and what was retired in an
//! epoch is freed once every frame of that epoch and of earlier ones has ended. Frames are opened and closed under the
//! interpreter lock, so plain loads and stores suffice. Without frames (Rust alone) owners keep retired values.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

static EPOCH: AtomicU64 = AtomicU64::new(2);
/// Open frames, by the lowest bit of the epoch in which they were opened: at most two epochs have any.
static OPEN: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
static WAITING: AtomicBool = AtomicBool::new(false);
/// Everything retired up to this epoch has been freed.
static FREED: AtomicU64 = AtomicU64::new(0);
static FRAMES: AtomicBool = AtomicBool::new(false);
static OWNERS: Mutex<Vec<Sweep>> = Mutex::new(Vec::new());
static YIELD: OnceLock<fn()> = OnceLock::new();

/// Frees what an owner retired in this epoch or before; returns true when nothing is left, and is called again until
/// then.
pub type Sweep = Box<dyn FnMut(u64) -> bool + Send>;

/// A running call from Python.
pub struct Frame(usize);

impl Frame {
    /// # Safety
    /// The caller holds the interpreter lock, here and where the frame is dropped.
    #[inline(always)]
    pub unsafe fn enter() -> Frame {
        let slot = (EPOCH.load(Relaxed) & 1) as usize;
        OPEN[slot].store(OPEN[slot].load(Relaxed).wrapping_add(1), Relaxed);
        Frame(slot)
    }
}

impl Drop for Frame {
    #[inline(always)]
    fn drop(&mut self) {
        OPEN[self.0].store(OPEN[self.0].load(Relaxed).wrapping_sub(1), Relaxed);
        if WAITING.load(Relaxed) {
            sweep();
        }
    }
}

/// The current epoch, with which retired values are tagged.
pub fn epoch() -> u64 {
    EPOCH.load(Relaxed)
}

/// Says that every call opens a frame from now on: what was retired may then be freed before its owner.
///
/// # Safety
/// From now on whoever reads metadata or memory through a shared handle does so within a frame, and keeps no reference
/// beyond the frame's end.
pub unsafe fn use_frames() {
    FRAMES.store(true, Relaxed);
}

/// Registers `sweep`, called when frames show that what its owner has just retired can be freed.
pub fn later(sweep: Sweep) {
    if FRAMES.load(Relaxed) {
        owners().push(sweep);
        WAITING.store(true, Relaxed);
    }
}

fn owners() -> MutexGuard<'static, Vec<Sweep>> {
    OWNERS.lock().unwrap_or_else(|e| e.into_inner())
}

#[cold]
fn sweep() {
    // The epoch advances if no frame of the previous one is open: twice, if no frame is open at all.
    for _ in 0..2 {
        let now = EPOCH.load(Relaxed);
        if OPEN[((now + 1) & 1) as usize].load(Relaxed) == 0 {
            EPOCH.store(now + 1, Relaxed);
        }
    }
    // Open frames belong to the current epoch or the previous one.
    let free = EPOCH.load(Relaxed) - 2;
    if FREED.swap(free, Relaxed) == free {
        return;
    }
    // Freeing may run Python and so re-enter this function: the list must not be locked meanwhile.
    let mut asked = std::mem::take(&mut *owners());
    WAITING.store(false, Relaxed);
    asked.retain_mut(|sweep| !sweep(free));
    if !asked.is_empty() {
        owners().append(&mut asked);
        WAITING.store(true, Relaxed);
    }
}

/// Called by a thread between polls for something that another thread is to finish.
pub fn pause() {
    match YIELD.get() {
        Some(f) => f(),
        None => nap(),
    }
}
pub fn nap() {
    std::thread::sleep(Duration::from_micros(20));
}
/// Sets what `pause` does: release the interpreter lock for a moment.
pub fn set_pause(f: fn()) {
    let _ = YIELD.set(f);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A single test, since the counters are global to the process.
    #[test]
    fn what_was_retired_goes_when_the_frames_that_may_read_it_have_ended() {
        // SAFETY: the test retires values of its own alone; see `enter`.
        unsafe { use_frames() };
        let retire = || {
            let freed = Arc::new(AtomicBool::new(false));
            let (told, at) = (freed.clone(), epoch());
            later(Box::new(move |safe| {
                told.fetch_or(at <= safe, Relaxed);
                at <= safe
            }));
            freed
        };
        // SAFETY: no interpreter runs and no other test opens frames.
        let enter = || unsafe { Frame::enter() };
        let outer = enter();
        let inner = enter();
        let first = retire();
        drop(inner);
        assert!(!first.load(Relaxed), "the outer frame may read it");
        // An endless sequence of overlapping frames holds back only what those frames may have seen.
        let mut open = enter();
        drop(outer);
        for _ in 0..4 {
            let next = enter();
            drop(std::mem::replace(&mut open, next));
        }
        assert!(first.load(Relaxed));
        let second = retire();
        drop(open);
        assert!(second.load(Relaxed));
        FRAMES.store(false, Relaxed);
    }
}
