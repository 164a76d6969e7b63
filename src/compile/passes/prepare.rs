//! Views, kernels and copies become stages that need not work out again what was recorded of their results.
//!
//! A matrix that is only copied, transposed, is computed in the order of its copy, which then takes over the memory: the
//! gradient of a linear layer's weight.

use super::super::look::Look;
use super::super::prepared::Prepared;
use super::super::step::Step;
use super::effects::{Memories, Memory};
use super::{Parts, Stage};
use crate::device::Device;
use crate::op::tracer::Form;
use crate::op::{Body, Kernel};
use crate::ops::create::like::EMPTY_STRIDED;
use crate::ops::movement::copy::COPY_;

pub fn run(parts: &Parts, stages: Vec<Stage>) -> Vec<Stage> {
    let memories = Memories::of(parts.sources, parts.looks);
    let escapes = escapes(parts, &stages);
    // The last stage that takes a tensor with the memory of each.
    let mut last: Vec<(Memory, usize)> = Vec::new();
    for (i, stage) in stages.iter().enumerate() {
        for step in stage.steps() {
            step.reads(|n| match last.iter_mut().find(|(m, _)| *m == memories.at(n)) {
                Some(known) => known.1 = i,
                None => last.push((memories.at(n), i)),
            });
        }
    }
    let set = stages.iter().flat_map(Stage::steps).filter_map(|s| match s {
        Step::SetGrad { grad, .. } => *grad,
        _ => None,
    });
    let held: Vec<Memory> = parts.results.iter().copied().chain(set).map(|n| memories.at(n)).collect();
    let shown = |m: Memory| held.contains(&m) || !matches!(m, Memory::Fresh(_));
    let read_until = |n: usize, i: usize| {
        let m = memories.at(n);
        !shown(m) && last.iter().all(|(known, at)| *known != m || *at <= i)
    };
    let mut looks = parts.looks.to_vec();
    for i in 1..stages.len() {
        let (before, stage) = (&stages[i - 1], &stages[i]);
        let (Stage::Step(_, new), Stage::Step(_, copy)) = (before, stage) else { continue };
        if let Some(n) = source(copy).filter(|&n| is(new, &EMPTY_STRIDED) && is(copy, &COPY_) && read_until(n, i)) {
            turn(&stages, &memories, &mut looks, n, copy);
        }
    }
    let mut made = Vec::with_capacity(stages.len());
    let mut stages = stages.into_iter().enumerate().peekable();
    while let Some((_, stage)) = stages.next() {
        let Stage::Step(origin, step) = &stage else {
            made.push(stage);
            continue;
        };
        let copied = match stages.peek() {
            Some((i, Stage::Step(next, copy))) if is(step, &EMPTY_STRIDED) && is(copy, &COPY_) => {
                let last_read = source(copy).is_some_and(|n| read_until(n, *i));
                Prepared::copy((*origin, step), (*next, copy), &looks, last_read)
            }
            _ => None,
        };
        if let Some(copy) = copied {
            stages.next();
            made.push(Stage::Prepared(Box::new(copy)));
            continue;
        }
        let mut results = 0;
        step.makes(|n| results += escapes[n] as usize);
        let view = if results == 0 { Prepared::view(*origin, step, &looks) } else { None };
        made.push(match view.or_else(|| Prepared::kernel(*origin, step, &looks)) {
            Some(prepared) => Stage::Prepared(Box::new(prepared)),
            None => stage,
        });
    }
    made
}

/// Lets the kernel that computes what `copy` reads, through the view `seen`, lay it out as the copy will be.
fn turn(stages: &[Stage], memories: &Memories, looks: &mut [Look], seen: usize, copy: &Step) {
    let mut target = None;
    copy.makes(|n| target = Some(n));
    let memory = memories.at(seen);
    let mut touching = stages.iter().filter(|stage| {
        let mut touches = false;
        stage.steps().for_each(|s| {
            s.reads(|n| touches |= memories.at(n) == memory);
            s.makes(|n| touches |= memories.at(n) == memory);
        });
        touches
    });
    let mut next = || touching.next().and_then(|s| if let Stage::Step(_, step) = s { Some(step) } else { None });
    let (Some(target), Some(kernel), Some(view), Some(_)) = (target, next(), next(), next()) else { return };
    let (Step::Call { op, form: Form::Functional, results, .. }, None) = (kernel, touching.next()) else { return };
    let (&[result], Body::Kernel(Kernel { any_order: true, .. })) = (&results[..], &op.body) else { return };
    let Look { layout, device: Device::Cpu, .. } = &looks[result] else { return };
    let n = layout.shape.len();
    if n < 2 || layout.offset != 0 || !layout.is_contiguous() || looks[target].dtype != looks[result].dtype {
        return;
    }
    let mut turned = layout.clone();
    (turned.strides[n - 2], turned.strides[n - 1]) = (1, layout.shape[n - 2]);
    let (mut from, mut to) = (None, None);
    view.reads(|n| from = Some(n));
    view.makes(|n| to = Some(n));
    let shown =
        Prepared::view_of(view, &turned, looks[result].dtype).filter(|_| (from, to) == (Some(result), Some(seen)));
    let wanted = looks[target].layout.clone();
    if shown.as_ref().is_some_and(|l| l.offset == 0 && l.shape == wanted.shape && l.strides == wanted.strides) {
        looks[result].layout = turned;
        looks[seen].layout.strides = wanted.strides;
    }
}

fn is(step: &Step, op: &'static crate::op::Op) -> bool {
    step.op().is_some_and(|o| std::ptr::eq(o, op))
}

/// What a copy reads.
fn source(step: &Step) -> Option<usize> {
    let Step::Call { args, form: Form::InPlace, .. } = step else { return None };
    args.get(1)?.tensors().next()
}

/// The tensors that others may hold after a run, or that are the base of one: those must be views as calls make them.
fn escapes(parts: &Parts, stages: &[Stage]) -> Vec<bool> {
    let looks: &[Look] = parts.looks;
    let mut escapes = vec![false; looks.len()];
    parts.results.iter().for_each(|&n| escapes[n] = true);
    let steps: Vec<&Step> = stages.iter().flat_map(Stage::steps).collect();
    for step in steps.into_iter().rev() {
        if let Step::SetGrad { grad: Some(n), .. } | Step::Alias { of: n, .. } = step {
            escapes[*n] = true;
        }
        let mut from = Vec::new();
        step.makes(|r| {
            if escapes[r] || Prepared::view(0, step, looks).is_none() {
                from.push(looks[r].memory);
            }
        });
        step.reads(|n| escapes[n] |= from.contains(&looks[n].memory));
    }
    escapes
}
