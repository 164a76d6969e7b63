//! A kernel and the elementwise steps that read its result, as one: the steps run over blocks that are still in the cache.

use super::fused::Fused;
use super::look::Look;
use super::step::{Arg, Step};
use crate::autograd::mode;
use crate::dispatch::run_kernel_then;
use crate::error::Result;
use crate::op::number::Numbers;
use crate::op::{Args, Call, Op};
use crate::tensor::{INFERENCE, Tensor};

pub struct Joined {
    /// Of the kernel, of views of its result, of the elementwise group; with their places in the recording.
    pub steps: Vec<(usize, Step)>,
    op: &'static Op,
    args: Vec<Arg>,
    /// What the tensors that the kernel takes look like.
    takes: Vec<(usize, Look)>,
    result: usize,
    look: Look,
    views: usize,
    pub fused: Fused,
}

impl Joined {
    /// None where the first step is no call of a kernel with one result.
    pub fn new(kernel: (usize, Step), views: Vec<(usize, Step)>, fused: Fused, looks: &[Look]) -> Option<Joined> {
        let Step::Call { op, args, results, .. } = &kernel.1 else { return None };
        let (&[result], op, args) = (&results[..], *op, args.clone()) else { return None };
        let mut takes = Vec::new();
        kernel.1.reads(|n| takes.push((n, looks[n].clone())));
        let (look, views_count) = (looks[result].clone(), views.len());
        let steps = [kernel].into_iter().chain(views).chain(fused.steps.iter().cloned()).collect();
        Some(Joined { steps, op, args, takes, result, look, views: views_count, fused })
    }
    /// Runs as one, views by `step`; false, with nothing that others see done, where the steps are to be run as calls.
    pub fn run(
        &self,
        now: &mut [Option<Tensor>],
        numbers: Numbers,
        mut step: impl FnMut(&Step, &mut [Option<Tensor>]) -> Result<()>,
    ) -> Result<bool> {
        let fits = |(n, look): &(usize, Look)| now.get(*n).and_then(|t| t.as_ref()).is_some_and(|t| look.is(t));
        if !self.takes.iter().all(fits) {
            return Ok(false);
        }
        let made = Tensor::of_layout(self.look.layout.clone(), self.look.dtype, self.look.device)?;
        made.set_flag(INFERENCE, mode::inference_enabled());
        now[self.result] = Some(made);
        for (_, view) in &self.steps[1..=self.views] {
            step(view, now)?;
        }
        self.fused.run_after(now, numbers, |now, epilogue| {
            let mut values = Args::new();
            for arg in &self.args {
                values.push(arg.value(now, numbers)?);
            }
            let out = now[self.result].as_ref().ok_or_else(super::step::missing)?;
            run_kernel_then(&Call { op: self.op, args: &values }, std::slice::from_ref(out), epilogue)
        })
    }
    /// `addmm+fused(relu, mul)`.
    pub fn name(&self) -> String {
        format!("{}+{}", self.op.name(), self.fused.name())
    }
}
