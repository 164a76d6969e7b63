//! A stand-in for the thread pool, until the real one is merged.
use rayon::prelude::*;
use std::ops::Range;

/// Runs `f` over `0..n` in pieces of at least `grain`.
pub fn par_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    if n <= grain {
        if n > 0 {
            f(0..n);
        }
        return;
    }
    (0..n.div_ceil(grain)).into_par_iter().for_each(|i| f(i * grain..((i + 1) * grain).min(n)));
}
