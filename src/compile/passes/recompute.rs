//! Results of one pass over memory are computed again where backward reads them, if a run then holds less memory at its peak.
//!
//! A result that is read early, and once more long after, takes memory in between. Where what it was computed from is there until
//! then anyway, its step and the views of it that are read late run a second time, and the memory is free meanwhile.

use super::super::step::{Arg, Step};
use super::effects::{Effects, Memories, Memory};
use super::{Parts, Stage};
use crate::op::Body;
use crate::op::tracer::Form;
use std::collections::HashMap;

/// Smaller results stay: a step costs more than their memory is worth.
const LEAST: usize = 128 << 10;
/// The peak has to fall by a twentieth.
const WORTH: usize = 20;

pub fn run(parts: &Parts, stages: Vec<Stage>) -> Vec<Stage> {
    if stages.is_empty() {
        return stages;
    }
    let mut schedule = Schedule::new(parts, stages);
    let order: Vec<Place> = (0..schedule.stages.len()).map(Place::Stage).collect();
    let before = schedule.peak(&schedule.spans(&order), order.len()).0;
    let (best, after) = schedule.improve(order, before);
    if before.saturating_sub(after) <= before / WORTH {
        return schedule.stages;
    }
    let mut stages: Vec<Option<Stage>> = schedule.stages.into_iter().map(Some).collect();
    let at = |place: Place| match place {
        Place::Stage(i) => stages[i].take(),
        Place::Again(i) => Some(Stage::Step(schedule.again[i].0, schedule.again[i].1.clone())),
    };
    best.into_iter().filter_map(at).collect()
}

/// What stands at a place of a run: a stage, or a step that runs again.
#[derive(Clone, Copy)]
enum Place {
    Stage(usize),
    Again(usize),
}

/// The new memories that a stage makes, reads and writes.
#[derive(Default)]
struct Touched {
    makes: Vec<usize>,
    all: Vec<usize>,
    writes: Vec<Memory>,
}

/// A memory from the place where it is made to the last one that reads it.
struct Span {
    memory: usize,
    /// In order; the first is where it is made.
    places: Vec<usize>,
}

impl Span {
    fn made(&self) -> usize {
        self.places[0]
    }
    fn last(&self) -> usize {
        self.places[self.places.len() - 1]
    }
}

struct Schedule {
    memories: Memories,
    stages: Vec<Stage>,
    touched: Vec<Touched>,
    /// Steps that run again, with their places in the recording.
    again: Vec<(usize, Step)>,
    touched_again: Vec<Touched>,
    bytes: HashMap<usize, usize>,
    /// Memories that others see, or that a step writes to.
    fixed: Vec<usize>,
}

impl Schedule {
    fn new(parts: &Parts, stages: Vec<Stage>) -> Schedule {
        let memories = Memories::of(parts.sources, parts.looks);
        let fresh = |n: usize| if let Memory::Fresh(m) = memories.at(n) { Some(m) } else { None };
        let mut bytes: HashMap<usize, usize> = HashMap::new();
        for (n, look) in parts.looks.iter().enumerate() {
            let size = look.layout.numel() * look.dtype.size();
            if let Some(m) = fresh(n) {
                let most = bytes.entry(m).or_default();
                *most = size.max(*most);
            }
        }
        let mut fixed: Vec<usize> = parts.results.iter().filter_map(|&n| fresh(n)).collect();
        for step in stages.iter().flat_map(Stage::steps) {
            match step {
                Step::SetGrad { grad, .. } => fixed.extend(grad.and_then(fresh)),
                Step::Alias { of, .. } => fixed.extend(fresh(*of)),
                _ => step.writes(|n| fixed.extend(fresh(n))),
            }
        }
        let touched = stages.iter().map(|s| Touched::by_stage(s, &memories)).collect();
        Schedule { memories, stages, touched, again: Vec::new(), touched_again: Vec::new(), bytes, fixed }
    }
    fn touched(&self, place: Place) -> &Touched {
        match place {
            Place::Stage(i) => &self.touched[i],
            Place::Again(i) => &self.touched_again[i],
        }
    }
    fn steps(&self, place: Place) -> Vec<(usize, &Step)> {
        match place {
            Place::Stage(i) => self.stages[i].numbered().collect(),
            Place::Again(i) => vec![(self.again[i].0, &self.again[i].1)],
        }
    }
    fn fresh(&self, n: usize) -> Option<usize> {
        if let Memory::Fresh(m) = self.memories.at(n) { Some(m) } else { None }
    }
    fn spans(&self, order: &[Place]) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut current: HashMap<usize, usize> = HashMap::new();
        for (at, &place) in order.iter().enumerate() {
            let Touched { makes, all, .. } = self.touched(place);
            let again = matches!(place, Place::Again(_));
            for &memory in all {
                match current.get(&memory).copied().filter(|_| !(again && makes.contains(&memory))) {
                    Some(i) => spans[i].places.push(at),
                    None => {
                        current.insert(memory, spans.len());
                        spans.push(Span { memory, places: vec![at] });
                    }
                }
            }
        }
        let end = order.len() - 1;
        for &memory in &self.fixed {
            if let Some(&i) = current.get(&memory) {
                spans[i].places.push(end);
            }
        }
        spans
    }
    /// The most bytes that are held, and where.
    fn peak(&self, spans: &[Span], places: usize) -> (usize, usize) {
        let mut change = vec![0isize; places + 1];
        for span in spans {
            let bytes = self.bytes[&span.memory] as isize;
            change[span.made()] += bytes;
            change[span.last() + 1] -= bytes;
        }
        let mut held = 0;
        let totals = change[..places].iter().map(|c| {
            held += c;
            held as usize
        });
        totals.zip(0..).max_by_key(|(total, at)| (*total, usize::MAX - at)).unwrap_or((0, 0))
    }
    /// The best order that is found, and its peak.
    fn improve(&mut self, mut order: Vec<Place>, before: usize) -> (Vec<Place>, usize) {
        let (mut best, mut least) = (order.clone(), before);
        loop {
            let spans = self.spans(&order);
            let (held, peak) = self.peak(&spans, order.len());
            if held < least {
                (best, least) = (order.clone(), held);
            }
            let idle = |s: &&Span| s.made() < peak && s.last() > peak && !s.places.contains(&peak);
            let large = |s: &&Span| self.bytes[&s.memory] >= LEAST && !self.fixed.contains(&s.memory);
            let mut candidates: Vec<&Span> = spans.iter().filter(idle).filter(large).collect();
            candidates.sort_by_key(|s| usize::MAX - self.bytes[&s.memory]);
            let Some((at, steps)) = candidates.into_iter().find_map(|s| self.plan(s, peak, &spans, &order)) else {
                return (best, least);
            };
            let from = self.again.len();
            self.touched_again
                .extend(steps.iter().map(|(_, s)| Touched::by_steps([s].into_iter(), &[], &self.memories)));
            self.again.extend(steps);
            order.splice(at..at, (from..self.again.len()).map(Place::Again));
        }
    }
    /// What is to run again, and where, so that a memory is free at the peak.
    fn plan(&self, span: &Span, peak: usize, spans: &[Span], order: &[Place]) -> Option<(usize, Vec<(usize, Step)>)> {
        let late = *span.places.iter().find(|&&p| p > peak)?;
        let made = self.steps(order[span.made()]);
        let &(origin, step) =
            made.iter().find(|(_, s)| !s.is_view() && makes(s, |n| self.fresh(n) == Some(span.memory)))?;
        let Step::Call { results, .. } = step else { return None };
        if !self.is_cheap(step) || results.iter().any(|&n| self.fresh(n).is_none_or(|m| self.fixed.contains(&m))) {
            return None;
        }
        // It runs before the last step that reads one of its arguments, or where its result is read.
        let (mut at, mut there) = (late, true);
        step.reads(|n| match self.memories.at(n) {
            Memory::Fresh(m) => {
                let holds = |s: &&Span| s.memory == m && s.made() <= span.made() && s.last() > peak;
                match spans.iter().find(holds) {
                    Some(s) => at = at.min(s.last()),
                    None => there = false,
                }
            }
            Memory::Outside(_) => {}
            Memory::Unknown => there = false,
        });
        step.reads(|n| {
            let written = |p: &Place| self.touched(*p).writes.iter().any(|w| w.meets(self.memories.at(n)));
            there &= !order[span.made()..at].iter().any(written);
        });
        // The views that are read later and were made before.
        let mut wanted = Vec::new();
        for &place in span.places.iter().filter(|&&p| p >= late) {
            for (_, s) in self.steps(order[place]) {
                s.reads(|n| wanted.push(n));
            }
        }
        let mut steps = vec![(origin, step.clone())];
        while let Some(n) = wanted.pop() {
            if self.fresh(n) != Some(span.memory)
                || results.contains(&n)
                || steps.iter().any(|(_, s)| makes(s, |m| m == n))
            {
                continue;
            }
            let made_late = order[late..].iter().any(|p| self.steps(*p).iter().any(|(_, s)| makes(s, |m| m == n)));
            if made_late {
                continue;
            }
            let before = order[span.made()..late].iter().flat_map(|p| self.steps(*p));
            let (origin, view) = before.into_iter().find(|(_, s)| makes(s, |m| m == n)).filter(|(_, s)| s.is_view())?;
            view.reads(|m| wanted.push(m));
            steps.push((origin, view.clone()));
        }
        steps[1..].sort_by_key(|(origin, _)| *origin);
        there.then_some((at, steps))
    }
    /// Whether a call is one pass over its arguments, and gives the same each time.
    fn is_cheap(&self, step: &Step) -> bool {
        let Step::Call { op, form: Form::Functional, args, draws: false, in_step: false, .. } = step else {
            return false;
        };
        let numbers = args.iter().any(|a| matches!(a, Arg::Number(..)));
        match &op.body {
            Body::Elementwise(_) => !numbers && !Effects::of(step, &self.memories).fallible,
            Body::Kernel(kernel) => !numbers && kernel.one_pass,
            _ => false,
        }
    }
}

impl Touched {
    fn by_stage(stage: &Stage, memories: &Memories) -> Touched {
        // Tensors within a fused stage have no memory.
        let stored = match stage {
            Stage::Fused(f) => Some(f.made()),
            Stage::Joined(j) => {
                let outer = j.steps.len() - j.fused.steps.len();
                let mut stored = j.fused.made();
                j.steps[..outer].iter().for_each(|(_, s)| s.makes(|n| stored.push(n)));
                Some(stored)
            }
            Stage::Step(..) | Stage::Prepared(_) => None,
        };
        let mut within = Vec::new();
        if let Some(stored) = stored {
            stage.steps().for_each(|s| s.makes(|n| within.push(n)));
            within.retain(|n| !stored.contains(n));
        }
        Touched::by_steps(stage.steps(), &within, memories)
    }
    fn by_steps<'s>(steps: impl Iterator<Item = &'s Step>, within: &[usize], memories: &Memories) -> Touched {
        let mut touched = Touched::default();
        for step in steps {
            let mut note = |n: usize, made: bool| {
                if let (Memory::Fresh(m), false) = (memories.at(n), within.contains(&n)) {
                    touched.all.push(m);
                    touched.makes.extend(made.then_some(m));
                }
            };
            step.reads(|n| note(n, false));
            step.makes(|n| note(n, !step.is_view()));
            step.writes(|n| touched.writes.push(memories.at(n)));
        }
        touched.all.sort_unstable();
        touched.all.dedup();
        touched
    }
}

fn makes(step: &Step, which: impl Fn(usize) -> bool) -> bool {
    let mut found = false;
    step.makes(|n| found |= which(n));
    found
}
