//! Steps are left out whose results nobody reads, unless they may fail, draw random numbers, or write to what others see.

use super::Parts;
use super::effects::{Effects, Memories, Memory};

pub fn run(mut parts: Parts) -> Parts {
    let memories = Memories::of(parts.sources, parts.looks);
    let mut numbers = vec![false; parts.sources.len()];
    let mut read: Vec<Memory> = Vec::new();
    let note = |n: usize, numbers: &mut Vec<bool>, read: &mut Vec<Memory>| {
        numbers[n] = true;
        if !read.contains(&memories.at(n)) {
            read.push(memories.at(n));
        }
    };
    parts.results.iter().for_each(|&n| note(n, &mut numbers, &mut read));
    let mut kept = Vec::with_capacity(parts.steps.len());
    for (i, step) in parts.steps.into_iter().rev() {
        let e = Effects::of(&step, &memories);
        let wanted = e.makes.iter().any(|&n| numbers[n]) || e.writes.iter().any(|m| read.contains(m));
        if wanted || e.visible || e.fallible {
            e.takes.iter().for_each(|&n| note(n, &mut numbers, &mut read));
            kept.push((i, step));
        }
    }
    kept.reverse();
    parts.steps = kept;
    parts
}
