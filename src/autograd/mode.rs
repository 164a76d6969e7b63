//! Whether ops are recorded: grad mode and inference mode, per thread.

use crate::rt::thread_state::thread_state;

#[inline]
pub fn grad_enabled() -> bool {
    thread_state(|thread| thread.grad.get())
}
/// Sets grad mode and returns the previous mode.
pub fn set_grad_enabled(on: bool) -> bool {
    thread_state(|thread| thread.grad.replace(on))
}
#[inline]
pub fn inference_enabled() -> bool {
    thread_state(|thread| thread.inference.get())
}
pub fn set_inference_enabled(on: bool) -> bool {
    thread_state(|thread| thread.inference.replace(on))
}
/// Anomaly mode: 0 off, 1 records where nodes were created, 2 also checks gradients for NaN.
#[inline]
pub fn anomaly() -> u8 {
    thread_state(|thread| thread.anomaly.get())
}
pub fn set_anomaly(level: u8) -> u8 {
    thread_state(|thread| thread.anomaly.replace(level))
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
