//! What a call computed, as it was recorded: what a plan is made of, and what a file of a plan holds.

use super::look::Look;
use super::passes::Passes;
use super::plan::{Plan, listing};
use super::step::{Source, Step, Variant};
use crate::op::number::{Number, Question};
use crate::tensor::Edge;

pub struct Recorded {
    pub sources: Vec<Source>,
    pub steps: Vec<Step>,
    /// What each tensor looks like in every run; empty where that is not known, as of a file: then passes wait for a run.
    pub looks: Vec<Look>,
    /// The numbers of what the call returned.
    pub results: Vec<usize>,
    /// The released graph that each result refers to.
    pub graphs: Vec<Option<Edge>>,
    /// The tensors whose gradient is read before it is set.
    pub read_grads: Vec<usize>,
    pub variant: Variant,
    /// Numbers among the arguments of the function that have to stay what they were, for the steps to be these.
    pub fixed: Vec<Number>,
    /// What was asked of them, with the answers.
    pub questions: Vec<(Question, bool)>,
}

impl Recorded {
    /// The steps, one a line.
    pub fn listing(&self) -> String {
        listing(&self.sources, &self.steps, &self.results, &[])
    }
    pub fn into_plan(self, passes: Passes) -> Plan {
        let Recorded { sources, steps, looks, results, graphs, read_grads, variant, .. } = self;
        let mut plan = Plan::new(sources, steps, results, graphs, read_grads, variant);
        plan.optimize(&looks, passes);
        plan
    }
}
