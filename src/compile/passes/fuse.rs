//! Elementwise steps over one shape become one stage, so that what lies between them needs no memory.
//!
//! A step joins an earlier group if it may run right after it, or if the group may wait for it. A group has no more members
//! than a machine has room for.

use super::super::fused::{Candidate, Fused};
use super::super::look::Look;
use super::super::step::Step;
use super::effects::{Effects, Memories, Memory};
use super::{Parts, Stage};

/// Steps in a group, and how many stages back a group may lie.
const MEMBERS: usize = 32;
const REACH: usize = 48;

/// A step, or several that may become one.
struct Item {
    members: Vec<Member>,
    effects: Effects,
}

struct Member {
    origin: usize,
    step: Step,
    candidate: Option<Candidate>,
}

pub fn run(parts: &Parts) -> Vec<Stage> {
    let memories = Memories::of(parts.sources, parts.looks);
    let mut items: Vec<Item> = Vec::new();
    for (origin, step) in parts.steps.iter().cloned() {
        let effects = Effects::of(&step, &memories);
        let candidate = Candidate::of(&step, parts.looks);
        let item = Item { members: vec![Member { origin, step, candidate }], effects };
        place(&mut items, item, &memories);
    }
    // Which item reads each tensor last.
    let mut last = vec![0; parts.sources.len()];
    for (i, item) in items.iter().enumerate() {
        item.effects.takes.iter().for_each(|&n| last[n] = i);
    }
    parts.results.iter().for_each(|&n| last[n] = usize::MAX);
    let mut stages = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        finish(item.members, parts.looks, &|n| last[n] > i, &mut stages);
    }
    stages
}

/// Adds a step to a group, or as a new item at the end.
fn place(items: &mut Vec<Item>, item: Item, memories: &Memories) {
    let from = items.len().saturating_sub(REACH);
    for at in (from..items.len()).rev() {
        if !joins(&items[at], &item, memories) {
            continue;
        }
        let after = &items[at + 1..];
        if after.iter().all(|between| between.effects.commutes(&item.effects)) {
            items[at].absorb(item);
            return;
        }
        if after.iter().all(|between| items[at].effects.commutes(&between.effects)) {
            let mut group = items.remove(at);
            group.absorb(item);
            items.push(group);
            return;
        }
    }
    items.push(item);
}

/// Whether one machine can run both: over one shape, and no two of their tensors share memory that one of them writes.
fn joins(group: &Item, item: &Item, memories: &Memories) -> bool {
    let first = group.members.first().and_then(|m| m.candidate.as_ref());
    let (Some(first), Some(new)) = (first, item.members.first().and_then(|m| m.candidate.as_ref())) else {
        return false;
    };
    if !first.goes_with(new) || group.members.len() >= MEMBERS {
        return false;
    }
    let all = || group.members.iter().filter_map(|m| m.candidate.as_ref()).chain([new]);
    let touched = || all().flat_map(|c| c.reads().chain([c.result]));
    let written: Vec<usize> = all().filter_map(|c| c.target).collect();
    let clash = |&t: &usize| touched().any(|n| n != t && meets(memories, n, t));
    !written.iter().any(clash)
}

fn meets(memories: &Memories, a: usize, b: usize) -> bool {
    let (a, b): (Memory, Memory) = (memories.at(a), memories.at(b));
    a.meets(b)
}

impl Item {
    fn absorb(&mut self, item: Item) {
        self.effects.absorb(item.effects);
        self.members.extend(item.members);
    }
}

/// The stages of an item: one where a machine runs all of it, else those of its halves.
fn finish(mut members: Vec<Member>, looks: &[Look], read_later: &dyn Fn(usize) -> bool, stages: &mut Vec<Stage>) {
    // A cast alone is a copy, which has a kernel of its own.
    let alone = members.len() == 1 && members[0].candidate.as_ref().is_some_and(|c| c.casts);
    if alone || members.iter().any(|m| m.candidate.is_none()) {
        return stages.extend(members.into_iter().map(|m| Stage::Step(m.origin, m.step)));
    }
    let (mut steps, mut candidates) = (Vec::new(), Vec::new());
    for m in &mut members {
        steps.push((m.origin, m.step.clone()));
        candidates.extend(m.candidate.take());
    }
    match Fused::new(steps, &candidates, looks, read_later) {
        Some(fused) => stages.push(Stage::Fused(Box::new(fused))),
        None if members.len() == 1 => stages.extend(members.into_iter().map(|m| Stage::Step(m.origin, m.step))),
        None => {
            members.iter_mut().zip(candidates).for_each(|(m, c)| m.candidate = Some(c));
            let second = members.split_off(members.len() / 2);
            let taken: Vec<usize> = second.iter().flat_map(|m| takes(&m.step)).collect();
            finish(members, looks, &|n| read_later(n) || taken.contains(&n), stages);
            finish(second, looks, read_later, stages);
        }
    }
}

fn takes(step: &Step) -> Vec<usize> {
    let mut list = Vec::new();
    step.reads(|n| list.push(n));
    list
}
