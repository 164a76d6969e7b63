//! Passes: from the steps that were recorded to those that run.
//!
//! Each keeps what a caller sees: bits, versions, gradients and their identity, aliasing, exceptions, and what was written
//! before them. Any of them can be left out, so that tests run each alone.

pub(super) mod common;
pub(super) mod dead_code;
pub(super) mod effects;
mod epilogue;
pub(super) mod fuse;
pub(super) mod prepare;

use super::fused::Fused;
use super::joined::Joined;
use super::look::Look;
use super::prepared::Prepared;
use super::step::{Source, Step};

/// Which passes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Steps that nobody sees are left out.
    pub dead_code: bool,
    /// Steps that compute what an earlier one has computed.
    pub common: bool,
    /// Elementwise steps become one.
    pub fuse: bool,
    /// Elementwise steps over what a kernel computes run block by block within it.
    pub epilogue: bool,
    /// What a call works out of the layouts of its arguments is worked out once.
    pub prepare: bool,
}

impl Passes {
    pub const NAMES: [&str; 5] = ["dead_code", "common", "fuse", "epilogue", "prepare"];
    pub const ALL: Passes = Passes { dead_code: true, common: true, fuse: true, epilogue: true, prepare: true };
    pub const NONE: Passes = Passes { dead_code: false, common: false, fuse: false, epilogue: false, prepare: false };

    /// Turns the pass of this name on; false where there is none.
    pub fn add(&mut self, name: &str) -> bool {
        match name {
            "dead_code" => self.dead_code = true,
            "common" => self.common = true,
            "fuse" => self.fuse = true,
            "epilogue" => self.epilogue = true,
            "prepare" => self.prepare = true,
            _ => return false,
        }
        true
    }
}

/// The parts of a plan that passes read and replace.
pub struct Parts<'a> {
    pub sources: &'a [Source],
    pub looks: &'a [Look],
    pub results: &'a [usize],
    /// Each step with its place in the recording.
    pub steps: Vec<(usize, Step)>,
}

/// What runs: a step with its place in the recording, or several as one.
pub enum Stage {
    Step(usize, Step),
    Fused(Box<Fused>),
    Joined(Box<Joined>),
    Prepared(Box<Prepared>),
}

impl Stage {
    /// The steps that it stands for, with their places in the recording.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &Step)> {
        let (one, many) = match self {
            Stage::Step(i, step) => (Some((*i, step)), &[][..]),
            Stage::Fused(f) => (None, &f.steps[..]),
            Stage::Joined(j) => (None, &j.steps[..]),
            Stage::Prepared(p) => (None, &p.steps[..]),
        };
        one.into_iter().chain(many.iter().map(|(i, step)| (*i, step)))
    }
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.numbered().map(|(_, step)| step)
    }
}

/// The steps as they were recorded.
pub fn as_recorded(steps: &[Step]) -> Vec<Stage> {
    steps.iter().enumerate().map(|(i, s)| Stage::Step(i, s.clone())).collect()
}

/// What runs in place of the steps.
pub fn run(mut parts: Parts, passes: Passes) -> Vec<Stage> {
    if passes.common {
        parts = common::run(parts);
    }
    if passes.dead_code {
        parts = dead_code::run(parts);
    }
    let mut stages = match passes.fuse {
        true => fuse::run(&parts),
        false => parts.steps.iter().map(|(i, s)| Stage::Step(*i, s.clone())).collect(),
    };
    if passes.epilogue {
        stages = epilogue::run(&parts, stages);
    }
    if passes.prepare { prepare::run(&parts, stages) } else { stages }
}
