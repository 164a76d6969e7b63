//! What a step does to memory and to what others see, and which steps may change places.

use super::super::look::Look;
use super::super::step::{Arg, Source, Step};
use crate::op::tracer::Form;
use crate::op::{Body, Promote};

/// A memory of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// A step has made it.
    Fresh(usize),
    /// It was there before.
    Outside(usize),
    /// It was there before, and which it is differs from run to run: a gradient, memory of another library.
    Unknown,
}

impl Memory {
    /// Whether the two may share bytes.
    pub fn meets(self, other: Memory) -> bool {
        match (self, other) {
            (Memory::Unknown, Memory::Fresh(_)) | (Memory::Fresh(_), Memory::Unknown) => false,
            (Memory::Unknown, _) | (_, Memory::Unknown) => true,
            (a, b) => a == b,
        }
    }
}

/// The memory of each tensor, by its number.
pub struct Memories(Vec<Memory>);

impl Memories {
    pub fn of(sources: &[Source], looks: &[Look]) -> Memories {
        let given = |s: &Source| matches!(s, Source::Input(_) | Source::Outside(_));
        let all = || sources.iter().zip(looks);
        let unknown: Vec<usize> = all()
            .filter(|(s, l)| matches!(s, Source::GradOf(_)) || given(s) && l.foreign)
            .map(|(_, l)| l.memory)
            .collect();
        let outside: Vec<usize> = all().filter(|(s, _)| given(s)).map(|(_, l)| l.memory).collect();
        let one = |l: &Look| match l.memory {
            m if unknown.contains(&m) => Memory::Unknown,
            m if outside.contains(&m) => Memory::Outside(m),
            m => Memory::Fresh(m),
        };
        Memories(looks.iter().map(one).collect())
    }
    pub fn at(&self, number: usize) -> Memory {
        self.0[number]
    }
}

/// What a step does.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Tensors that it takes, by number.
    pub takes: Vec<usize>,
    pub makes: Vec<usize>,
    pub reads: Vec<Memory>,
    pub writes: Vec<Memory>,
    /// Others see it: a write to memory from outside, a gradient that is set, random numbers that are drawn.
    pub visible: bool,
    /// It may fail, by the values that it reads.
    pub fallible: bool,
    /// The host reads values of a tensor as numbers, or it takes such a number.
    pub gives_numbers: bool,
    pub takes_numbers: bool,
}

impl Effects {
    pub fn of(step: &Step, memories: &Memories) -> Effects {
        let mut e = Effects::default();
        step.reads(|n| e.takes.push(n));
        step.makes(|n| e.makes.push(n));
        match step {
            Step::Alias { .. } => {}
            Step::SetGrad { .. } => e.visible = true,
            Step::Read { of, .. } => {
                e.reads.push(memories.at(*of));
                e.fallible = true;
                e.gives_numbers = true;
            }
            Step::Call { op, form, args, draws, .. } => {
                e.takes_numbers = args.iter().any(|a| matches!(a, Arg::Number(n, _) if !n.is_given()));
                let functional = *form == Form::Functional;
                let view = step.is_view();
                let copies = functional && matches!(&op.body, Body::Kernel(k) if k.copies);
                let elementwise = *form != Form::Out
                    && matches!(op.body, Body::Elementwise(_))
                    && !matches!(op.promote, Promote::Checked(..));
                let makes_of_nothing = functional && matches!(op.body, Body::Kernel(_)) && e.takes.is_empty() && !draws;
                e.fallible = !view && !elementwise && !copies && !makes_of_nothing;
                if !view {
                    e.reads = e.takes.iter().map(|&n| memories.at(n)).collect();
                }
                step.writes(|n| e.writes.push(memories.at(n)));
                e.visible = *draws || e.writes.iter().any(|m| !matches!(m, Memory::Fresh(_)));
            }
        }
        e
    }
    /// Adds those of a step that follows.
    pub fn absorb(&mut self, later: Effects) {
        let Effects { takes, makes, reads, writes, visible, fallible, gives_numbers, takes_numbers } = later;
        self.takes.extend(takes);
        self.makes.extend(makes);
        self.reads.extend(reads);
        self.writes.extend(writes);
        self.visible |= visible;
        self.fallible |= fallible;
        self.gives_numbers |= gives_numbers;
        self.takes_numbers |= takes_numbers;
    }
    /// Whether a step may run before this one, which it follows now.
    pub fn commutes(&self, later: &Effects) -> bool {
        let meet = |a: &[Memory], b: &[Memory]| a.iter().any(|m| b.iter().any(|n| m.meets(*n)));
        let follows = later.takes.iter().any(|n| self.makes.contains(n)) || self.gives_numbers && later.takes_numbers;
        let clashes =
            meet(&self.writes, &later.reads) || meet(&self.writes, &later.writes) || meet(&self.reads, &later.writes);
        // What others see stays on its side of a step that may fail.
        let seen = self.visible && later.fallible || self.fallible && later.visible;
        !(follows || clashes || seen)
    }
}
