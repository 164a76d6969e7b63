//! A step is left out that computes what an earlier one has computed: an elementwise call or a view of the same arguments.
//!
//! The tensor of the earlier step then stands for its result, which nobody else may see and nothing may write to.

use super::super::step::{Arg, Step};
use super::Parts;
use super::effects::{Effects, Memories, Memory};
use crate::op::tracer::Form;
use crate::op::{Body, Op};
use std::collections::HashMap;

/// A computed result.
struct Known {
    number: usize,
    /// The step that made it.
    at: usize,
}

pub fn run(mut parts: Parts) -> Parts {
    let memories = Memories::of(parts.sources, parts.looks);
    let effects: Vec<Effects> = parts.steps.iter().map(|(_, s)| Effects::of(s, &memories)).collect();
    let written: Vec<Memory> = effects.iter().flat_map(|e| e.writes.iter().copied()).collect();
    let mut shown = vec![false; parts.sources.len()];
    parts.results.iter().for_each(|&n| shown[n] = true);
    for (_, step) in &parts.steps {
        if let Step::SetGrad { grad: Some(n), .. } | Step::Alias { of: n, .. } = step {
            shown[*n] = true;
        }
    }
    let all = shown.iter().enumerate().filter(|(_, s)| **s);
    let shown_memory: Vec<Memory> = all.map(|(n, _)| memories.at(n)).collect();
    let mut instead: Vec<usize> = (0..parts.sources.len()).collect();
    let mut known: HashMap<(usize, bool, String), Known> = HashMap::new();
    let mut kept = Vec::with_capacity(parts.steps.len());
    for (at, (i, mut step)) in parts.steps.into_iter().enumerate() {
        rename(&mut step, &instead);
        let Some((key, result)) = key(&step, &effects[at]) else {
            kept.push((i, step));
            continue;
        };
        // A view is another handle on the memory of its base, whatever happens to that.
        let view = !matches!(&step, Step::Call { op, .. } if matches!(op.body, Body::Elementwise(_)));
        let is_written = |n: usize| !view && written.iter().any(|m| m.meets(memories.at(n)));
        let kept_apart = |n: usize| view || !is_written(n) && !shown_memory.contains(&memories.at(n));
        let unchanged = |k: &Known| {
            let between = effects[k.at..at].iter().flat_map(|e| &e.writes);
            !between.into_iter().any(|w| effects[at].reads.iter().any(|r| r.meets(*w)))
        };
        match known.get(&key) {
            Some(k) if !shown[result] && kept_apart(result) && !is_written(k.number) && unchanged(k) => {
                instead[result] = k.number;
            }
            _ => {
                known.insert(key, Known { number: result, at });
                kept.push((i, step));
            }
        }
    }
    parts.steps = kept;
    parts
}

/// What a step computes, and the number of its result; none for steps that are never left out.
fn key(step: &Step, effects: &Effects) -> Option<((usize, bool, String), usize)> {
    let Step::Call { op, form: Form::Functional, args, results, grad, .. } = step else { return None };
    let plain = matches!(op.body, Body::Elementwise(_) | Body::View(_) | Body::ViewAs(_));
    if !plain || effects.visible || effects.fallible || results.len() != 1 {
        return None;
    }
    let text: Vec<String> = args.iter().map(Arg::text).collect();
    // The text of a number is exact but for NaN, whose bits it does not show.
    let text = text.join(", ");
    let exact = !text.contains("NaN");
    exact.then_some(((std::ptr::from_ref::<Op>(op) as usize, *grad, text), results[0]))
}

fn rename(step: &mut Step, instead: &[usize]) {
    let swap = |n: &mut usize| *n = instead[*n];
    match step {
        Step::Call { args, outs, .. } => {
            outs.iter_mut().for_each(swap);
            for arg in args {
                match arg {
                    Arg::Tensor(n) => swap(n),
                    Arg::Tensors(list) => list.iter_mut().flatten().for_each(swap),
                    Arg::Value(_) | Arg::Number(..) => {}
                }
            }
        }
        Step::Alias { of, .. } | Step::Read { of, .. } => swap(of),
        Step::SetGrad { leaf, grad } => {
            swap(leaf);
            grad.iter_mut().for_each(swap);
        }
    }
}
