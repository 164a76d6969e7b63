//! Whether ops are recorded: grad mode and inference mode, per thread.

use std::cell::Cell;

thread_local! {
    static GRAD: Cell<bool> = const { Cell::new(true) };
    static INFERENCE: Cell<bool> = const { Cell::new(false) };
    static ANOMALY: Cell<u8> = const { Cell::new(0) };
}

#[inline]
pub fn grad_enabled() -> bool {
    GRAD.get()
}
/// Sets grad mode and answers with the mode before.
pub fn set_grad_enabled(on: bool) -> bool {
    GRAD.replace(on)
}
#[inline]
pub fn inference_enabled() -> bool {
    INFERENCE.get()
}
pub fn set_inference_enabled(on: bool) -> bool {
    INFERENCE.replace(on)
}
/// Anomaly mode: 0 off, 1 records where nodes were made, 2 also checks gradients for NaN.
pub fn anomaly() -> u8 {
    ANOMALY.get()
}
pub fn set_anomaly(level: u8) -> u8 {
    ANOMALY.replace(level)
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
