//! A kernel that takes an epilogue and the elementwise group that reads its result become one stage.
//!
//! The group may read the result through views of all of it in its order, and other tensors of any layout. It comes to the
//! kernel, or the kernel to it, if one may change places with what lies between.

use super::super::fused::{Candidate, Fused};
use super::super::joined::Joined;
use super::super::look::Look;
use super::super::step::Step;
use super::effects::{Effects, Memories};
use super::{Parts, Stage};
use crate::device::Device;
use crate::op::Body;
use crate::op::tracer::Form;

/// How many stages may lie between.
const REACH: usize = 48;

pub fn run(parts: &Parts, mut stages: Vec<Stage>) -> Vec<Stage> {
    let memories = Memories::of(parts.sources, parts.looks);
    let mut i = 0;
    while i < stages.len() {
        match find(parts, &stages, &memories, i) {
            // Another stage has come to this place.
            Some(join) if join.at > i => apply(&mut stages, i, join),
            Some(join) => {
                apply(&mut stages, i, join);
                i += 1;
            }
            None => i += 1,
        }
    }
    stages
}

/// What is to become one with a kernel.
struct Join {
    joined: Joined,
    /// The places of the views and of the group, in their order.
    members: Vec<usize>,
    /// Where the new stage stands.
    at: usize,
}

fn apply(stages: &mut Vec<Stage>, kernel: usize, join: Join) {
    let Join { joined, members, at } = join;
    stages[at] = Stage::Joined(Box::new(joined));
    for gone in members.into_iter().rev().chain([kernel]).filter(|&m| m != at) {
        stages.remove(gone);
    }
}

/// The result of a kernel that takes an epilogue, on the CPU.
fn result(stage: &Stage, looks: &[Look]) -> Option<usize> {
    let Stage::Step(_, Step::Call { op, form: Form::Functional, results, draws: false, .. }) = stage else {
        return None;
    };
    let (&[result], Body::Kernel(kernel)) = (&results[..], &op.body) else { return None };
    let look = &looks[result];
    let fits = look.device == Device::Cpu && look.layout.offset == 0 && look.layout.is_contiguous();
    (fits && kernel.then.is_some() && op.sig.written == 0).then_some(result)
}

fn find(parts: &Parts, stages: &[Stage], memories: &Memories, kernel: usize) -> Option<Join> {
    let looks = parts.looks;
    let result = result(&stages[kernel], looks)?;
    let memory = memories.at(result);
    let shows = |n: usize| memories.at(n) == memory;
    let effects = |stage: &Stage| {
        let mut all = Effects::default();
        stage.steps().for_each(|s| all.absorb(Effects::of(s, memories)));
        all
    };
    // Views of the result, up to the first stage that reads what is in it.
    let mut members = Vec::new();
    let mut group = kernel + 1;
    let candidates = loop {
        let stage = stages.get(group).filter(|_| group <= kernel + REACH)?;
        let takes = effects(stage).takes.into_iter().any(shows);
        if takes && is_view(stage, &shows) {
            members.push(group);
        } else if takes {
            break candidates(stage, looks)?;
        }
        group += 1;
    };
    // All that the group reads of this memory are its elements, each at its place.
    let whole = &looks[result].layout;
    let aligned = |n: usize| {
        let l = &looks[n].layout;
        l.offset == 0 && l.is_contiguous() && l.numel() == whole.numel() && l.shape == candidates[0].shape
    };
    let written = || candidates.iter().filter_map(|c| c.target).filter(|&n| shows(n));
    let mut read: Vec<usize> = candidates.iter().flat_map(Candidate::reads).filter(|&n| shows(n)).collect();
    read.sort_unstable();
    read.dedup();
    let own = effects(&stages[group]);
    if !read.iter().copied().chain(written()).all(aligned) || own.visible || own.fallible {
        return None;
    }
    members.push(group);
    let between = || (kernel + 1..group).filter(|i| !members.contains(i)).map(|i| effects(&stages[i]));
    let at = if between().all(|e| e.commutes(&own)) {
        kernel
    } else if between().all(|e| effects(&stages[kernel]).commutes(&e)) {
        group
    } else {
        return None;
    };
    let later: Vec<usize> =
        stages[group + 1..].iter().flat_map(|s| effects(s).takes).chain(parts.results.to_vec()).collect();
    let others = (kernel + 1..group).filter(|i| !members.contains(i)).flat_map(|i| effects(&stages[i]).takes);
    let all: Vec<usize> = others.chain(later).collect();
    // The memory may be that of a result if nobody looks at it again.
    let free = read.len() == 1 && written().next().is_none() && !all.iter().any(|&n| shows(n));
    let spent = read.first().copied().filter(|_| free);
    let steps = |i: usize| stages[i].numbered().map(|(o, s)| (o, s.clone())).collect::<Vec<_>>();
    let fused = Fused::onto(steps(group), &candidates, looks, |n| all.contains(&n), spent)?;
    let views = members[..members.len() - 1].iter().flat_map(|&i| steps(i)).collect();
    let joined = Joined::new(steps(kernel).pop()?, views, fused, looks)?;
    Some(Join { joined, members, at })
}

/// Whether a stage only shows the memory otherwise.
fn is_view(stage: &Stage, shows: &dyn Fn(usize) -> bool) -> bool {
    let Stage::Step(_, step @ Step::Call { op, form: Form::Functional, results, draws: false, .. }) = stage else {
        return false;
    };
    let mut taken = 0;
    step.reads(|_| taken += 1);
    taken == 1 && op.sig.written == 0 && !op.reads_host() && results.iter().all(|&r| shows(r))
}

/// The steps of an elementwise group.
fn candidates(stage: &Stage, looks: &[Look]) -> Option<Vec<Candidate>> {
    if !matches!(stage, Stage::Step(..) | Stage::Fused(_)) {
        return None;
    }
    stage.steps().map(|s| Candidate::of(s, looks)).collect()
}
