//! Whether ops are recorded: grad mode and inference mode, per thread.

use std::cell::Cell;

/// In one place: a call reads several of them, and finding a thread's own is a call itself.
struct Modes {
    grad: Cell<bool>,
    inference: Cell<bool>,
    anomaly: Cell<u8>,
}

thread_local! {
    static MODES: Modes =
        const { Modes { grad: Cell::new(true), inference: Cell::new(false), anomaly: Cell::new(0) } };
}

#[inline]
pub fn grad_enabled() -> bool {
    MODES.with(|m| m.grad.get())
}
/// Sets grad mode and answers with the mode before.
pub fn set_grad_enabled(on: bool) -> bool {
    MODES.with(|m| m.grad.replace(on))
}
#[inline]
pub fn inference_enabled() -> bool {
    MODES.with(|m| m.inference.get())
}
pub fn set_inference_enabled(on: bool) -> bool {
    MODES.with(|m| m.inference.replace(on))
}
/// Anomaly mode: 0 off, 1 records where nodes were made, 2 also checks gradients for NaN.
#[inline]
pub fn anomaly() -> u8 {
    MODES.with(|m| m.anomaly.get())
}
pub fn set_anomaly(level: u8) -> u8 {
    MODES.with(|m| m.anomaly.replace(level))
}

/// Sets grad mode until it is dropped.
pub struct GradGuard(bool);

impl GradGuard {
    pub fn new(on: bool) -> GradGuard {
        GradGuard(set_grad_enabled(on))
    }
}
impl Drop for GradGuard {
    fn drop(&mut self) {
        set_grad_enabled(self.0);
    }
}
