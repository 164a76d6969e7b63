//! A plan: the primitives of a call in their order, with the tensors that they read and make by number, and what runs in
//! their place once the passes have seen them.

use super::joined::Joined;
use super::look::Look;
use super::passes::{self, Parts, Passes, Stage};
use super::prepared::Prepared;
pub use super::step::{Arg, Slot, Source, Step, Tensors, Variant};
use super::step::{missing, numbers};
use crate::autograd::{self, GradGuard};
use crate::device::Device;
use crate::dispatch::{call_inplace, call_into, call_out};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::number::{Number, Numbers};
use crate::op::tracer::Form;
use crate::op::{Args, Body, Outputs, Value};
use crate::rt::thread_state::thread_state;
use crate::storage::WeakStorage;
use crate::tensor::{Edge, INFERENCE, Meta, Tensor};
use smallvec::SmallVec;
use std::fmt::Write;

/// What a run has made: its results, and the numbers that it has read.
pub struct Ran {
    pub tensors: Tensors,
    pub reads: SmallVec<[Scalar; 4]>,
}

/// Why a run has failed.
pub enum Failure {
    /// Nothing that others see has happened: the function can be called instead.
    Before(Error),
    After(Error),
}

/// Tensors that a stage reads for the last time, and whether others see what it does.
#[derive(Default)]
struct Liveness {
    last: SmallVec<[usize; 4]>,
    effect: bool,
}

/// What the tensors of a run look like. Their memory is held, so that no two that follow each other have one address.
struct Seen {
    looks: Vec<Option<Look>>,
    held: Vec<WeakStorage>,
}

impl Seen {
    fn note(&mut self, n: usize, now: &[Option<Tensor>]) {
        if let Some(t) = &now[n] {
            self.looks[n] = Some(Look::of(t));
            self.held.push(t.storage().downgrade());
        }
    }
}

pub struct Plan {
    sources: Vec<Source>,
    /// As they were recorded.
    steps: Vec<Step>,
    /// What runs in their place.
    stages: Vec<Stage>,
    liveness: Vec<Liveness>,
    results: Vec<usize>,
    /// The released graph that each result refers to.
    graphs: Vec<Option<Edge>>,
    /// The tensors whose gradient is read before it is set.
    read_grads: Vec<usize>,
    variant: Variant,
}

impl Plan {
    pub(super) fn new(
        sources: Vec<Source>,
        steps: Vec<Step>,
        results: Vec<usize>,
        graphs: Vec<Option<Edge>>,
        read_grads: Vec<usize>,
        variant: Variant,
    ) -> Plan {
        let stages = passes::as_recorded(&steps);
        let mut plan = Plan { sources, steps, stages, liveness: Vec::new(), results, graphs, read_grads, variant };
        plan.liveness = plan.liveness();
        plan
    }
    /// Runs passes; `looks` are what the tensors look like in every run, by number. Steps that are recorded in a graph stay
    /// as they are.
    pub fn optimize(&mut self, looks: &[Look], chosen: Passes) {
        if self.variant == Variant::Recorded || looks.len() != self.sources.len() {
            return;
        }
        let steps = self.steps.iter().cloned().enumerate().collect();
        let parts = Parts { sources: &self.sources, looks, results: &self.results, steps };
        self.stages = passes::run(parts, chosen);
        self.liveness = self.liveness();
    }
    pub fn len(&self) -> usize {
        self.steps.len()
    }
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
    pub fn variant(&self) -> Variant {
        self.variant
    }
    /// The tensors from outside that the plan holds.
    pub fn outside(&self) -> impl Iterator<Item = &Tensor> {
        self.sources.iter().filter_map(|s| if let Source::Outside(t) = s { Some(t) } else { None })
    }
    /// Numbers of arguments and tensors from outside whose gradient is read.
    pub fn read_grads(&self) -> impl Iterator<Item = &Source> {
        self.read_grads.iter().map(|&n| &self.sources[n])
    }
    /// The numbers called `name` that steps of optimizers take, each with the first parameter of its op.
    pub fn slots(&self, name: &str) -> Vec<(Slot, f64, Tensor)> {
        let of = |(i, s): (usize, &Step)| match s {
            Step::Call { op, args, in_step: true, .. } => {
                let arg = op.sig.index_of(name)?;
                let Some(Arg::Value(Value::Scalar(number))) = args.get(arg) else { return None };
                let Source::Outside(first) = &self.sources[args.first()?.tensors().next()?] else { return None };
                Some((Slot { step: i, arg }, number.to_f64(), first.clone()))
            }
            _ => None,
        };
        self.steps.iter().enumerate().filter_map(of).collect()
    }

    /// The numbers that steps take and that differ from run to run.
    pub fn numbers(&self) -> Vec<Number> {
        let args = self.steps.iter().flat_map(|s| if let Step::Call { args, .. } = s { &args[..] } else { &[] });
        args.filter_map(|a| if let Arg::Number(n, _) = a { Some(n.clone()) } else { None }).collect()
    }

    fn liveness(&self) -> Vec<Liveness> {
        let mut liveness: Vec<Liveness> = self.stages.iter().map(|_| Liveness::default()).collect();
        // The tensor whose memory each one shows, as far as it is known.
        let mut shown: Vec<usize> = (0..self.sources.len()).collect();
        let mut inside: Vec<bool> = self.sources.iter().map(|s| matches!(s, Source::Made)).collect();
        let mut last = vec![None; self.sources.len()];
        let mut given_up = Vec::new();
        for (i, (stage, live)) in self.stages.iter().zip(&mut liveness).enumerate() {
            for step in stage.steps() {
                live.effect |= is_visible(step, &mut shown, &mut inside);
                step.reads(|n| last[n] = Some(i));
                // A tensor that is made again is not there in between.
                step.makes(|n| match last[n].replace(i) {
                    Some(before) if before < i => given_up.push((before, n)),
                    _ => {}
                });
            }
        }
        given_up.into_iter().for_each(|(at, n): (usize, usize)| liveness[at].last.push(n));
        for (n, at) in last.iter().enumerate() {
            if let Some(at) = at.filter(|_| !self.results.contains(&n)) {
                liveness[at].last.push(n);
            }
        }
        liveness
    }

    /// Runs the steps; returns what then stands for the results. `slots` are the numbers that replace those recorded, in the order
    /// of their steps; `arguments` those that are passed.
    pub fn run(
        &self,
        inputs: &[Tensor],
        slots: &[(Slot, f64)],
        arguments: &[Scalar],
    ) -> std::result::Result<Ran, Failure> {
        let mut effect = false;
        let run = self.run_steps(inputs, (slots, arguments), &mut effect, None);
        run.map_err(|e| if effect { Failure::After(e) } else { Failure::Before(e) })
    }
    /// Runs the steps, and makes the plan that passes make of them, now that it is known what the tensors look like.
    pub fn run_and_optimize(&self, inputs: &[Tensor], passes: Passes) -> Result<(Tensors, Option<Plan>)> {
        let mut seen = Seen { looks: vec![None; self.sources.len()], held: Vec::new() };
        let results = self.run_steps(inputs, (&[], &[]), &mut false, Some(&mut seen))?.tensors;
        let Some(looks) = seen.looks.into_iter().collect::<Option<Vec<Look>>>() else { return Ok((results, None)) };
        let (sources, steps) = (self.sources.clone(), self.steps.clone());
        let (graphs, read_grads) = (self.graphs.clone(), self.read_grads.clone());
        let mut plan = Plan::new(sources, steps, self.results.clone(), graphs, read_grads, self.variant);
        plan.optimize(&looks, passes);
        Ok((results, Some(plan)))
    }

    fn run_steps(
        &self,
        inputs: &[Tensor],
        (slots, arguments): (&[(Slot, f64)], &[Scalar]),
        effect: &mut bool,
        mut seen: Option<&mut Seen>,
    ) -> Result<Ran> {
        let mut now: SmallVec<[Option<Tensor>; 24]> = SmallVec::with_capacity(self.sources.len());
        for source in &self.sources {
            now.push(match source {
                Source::Input(i) => Some(inputs.get(*i).ok_or_else(missing)?.clone()),
                Source::Outside(t) => Some(t.clone()),
                Source::GradOf(leaf) => now[*leaf].as_ref().and_then(Tensor::grad),
                Source::Made => None,
            });
        }
        if let Some(seen) = &mut seen {
            (0..now.len()).for_each(|n| seen.note(n, &now));
        }
        let mode = autograd::grad_enabled();
        let _mode = GradGuard::new(mode);
        // A level of forward mode sees each step.
        let as_one = thread_state(|thread| thread.forward.get() == 0);
        let anew =
            |stage: &Stage| stage.numbered().any(|(i, _)| slots.binary_search_by_key(&i, |(s, _)| s.step).is_ok());
        let mut reads: SmallVec<[Scalar; 4]> = SmallVec::new();
        for (stage, liveness) in self.stages.iter().zip(&self.liveness) {
            *effect |= liveness.effect;
            let numbers = Numbers { arguments, reads: &reads };
            let as_one = as_one && (slots.is_empty() || !anew(stage));
            match stage {
                Stage::Fused(fused) if as_one && fused.run(&mut now, numbers) => {}
                Stage::Joined(joined) if as_one && self.joined(joined, &mut now, numbers)? => {}
                Stage::Prepared(prepared) if as_one && self.prepared(prepared, &mut now, numbers)? => {}
                Stage::Step(_, Step::Read { of, .. }) => read(now[*of].as_ref().ok_or_else(missing)?, &mut reads)?,
                _ => {
                    for (origin, step) in stage.numbered() {
                        let from = slots.partition_point(|(s, _)| s.step < origin);
                        let count = slots[from..].iter().take_while(|(s, _)| s.step == origin).count();
                        self.run_step(step, &slots[from..from + count], numbers, &mut now)?;
                    }
                }
            }
            if let Some(seen) = &mut seen {
                stage.steps().for_each(|step| step.makes(|n| seen.note(n, &now)));
            }
            for &n in &liveness.last {
                now[n] = None;
            }
        }
        let mut results = Tensors::new();
        for (&n, graph) in self.results.iter().zip(&self.graphs) {
            let t = now[n].clone().ok_or_else(missing)?;
            if let Some(edge) = graph {
                t.set_grad_fn(edge.clone());
            }
            results.push(t);
        }
        Ok(Ran { tensors: results, reads })
    }

    fn prepared(&self, prepared: &Prepared, now: &mut [Option<Tensor>], numbers: Numbers) -> Result<bool> {
        autograd::set_grad_enabled(false);
        prepared.run(now, numbers)
    }
    fn joined(&self, joined: &Joined, now: &mut [Option<Tensor>], numbers: Numbers) -> Result<bool> {
        autograd::set_grad_enabled(false);
        joined.run(now, numbers, |step, now| self.run_step(step, &[], numbers, now))
    }
    fn run_step(
        &self,
        step: &Step,
        changed: &[(Slot, f64)],
        numbers: Numbers,
        now: &mut [Option<Tensor>],
    ) -> Result<()> {
        match step {
            Step::Call { op, form, args, outs, results, grad, .. } => {
                autograd::set_grad_enabled(*grad && self.variant != Variant::Unrecorded);
                let mut made = Outputs::new();
                {
                    let mut values = Args::new();
                    for (i, arg) in args.iter().enumerate() {
                        values.push(match changed.iter().find(|(slot, _)| slot.arg == i) {
                            Some((_, number)) => Value::Scalar(Scalar::Float(*number)),
                            None => arg.value(now, numbers)?,
                        });
                    }
                    match form {
                        Form::Functional => call_into(op, &values, &mut made)?,
                        Form::InPlace => made.push(call_inplace(op, &values)?),
                        Form::Out => {
                            let outs: Vec<Tensor> =
                                outs.iter().map(|&n| now[n].clone().ok_or_else(missing)).collect::<Result<_>>()?;
                            call_out(op, &values, &outs)?;
                        }
                    }
                }
                if *form != Form::Out {
                    for (&n, t) in results.iter().zip(made) {
                        now[n] = Some(t);
                    }
                }
            }
            Step::Alias { of, layout, shift, dtype, counted, result } => {
                let whole = now[*of].as_ref().ok_or_else(missing)?;
                let storage = whole.storage();
                let layout = placed(whole, layout, *shift, *dtype).ok_or_else(beyond)?;
                let storage = if *counted { storage.clone() } else { storage.unversioned() };
                let alias = Tensor::from_meta(Meta { storage, layout, dtype: *dtype });
                alias.set_flag(INFERENCE, whole.flag(INFERENCE));
                now[*result] = Some(alias);
            }
            Step::SetGrad { leaf, grad } => {
                let grad = grad.map(|n| now[n].clone().ok_or_else(missing)).transpose()?;
                now[*leaf].as_ref().ok_or_else(missing)?.set_grad(grad);
            }
            Step::Read { .. } => return Err(Error::internal("a read of a plan is no call")),
        }
        Ok(())
    }

    /// The steps as they were recorded, a line for each; equal for plans that do the same.
    pub fn recorded(&self, slots: &[Slot]) -> String {
        listing(&self.sources, &self.steps, &self.results, slots)
    }
    /// What runs, a line for each stage; the steps of one that is fused are indented.
    pub fn listing(&self, slots: &[Slot]) -> String {
        let mut out = givens(&self.sources);
        for stage in &self.stages {
            let text = |(i, step): (usize, &Step)| step.text(|arg| slots.contains(&Slot { step: i, arg }));
            let lines: Vec<String> = stage.numbered().map(text).collect();
            let _ = match (stage, &lines[..]) {
                (Stage::Fused(fused), [_, _, ..]) => {
                    writeln!(out, "{} = {}:\n    {}", numbers(&fused.made()), fused.name(), lines.join("\n    "))
                }
                (Stage::Joined(joined), _) => {
                    let made = numbers(&joined.fused.made());
                    writeln!(out, "{made} = {}:\n    {}", joined.name(), lines.join("\n    "))
                }
                _ => writeln!(out, "{}", lines.join("\n")),
            };
        }
        let _ = write!(out, "return {}", numbers(&self.results));
        out
    }
    /// The name of each stage: an op, or several as `fused(add, mul)`.
    pub fn ops(&self) -> Vec<String> {
        let name = |s: &Stage| match s {
            Stage::Fused(fused) => fused.name(),
            Stage::Joined(joined) => joined.name(),
            other => other.steps().map(Step::name).collect::<Vec<_>>().join("+"),
        };
        self.stages.iter().map(name).collect()
    }
}

fn givens(sources: &[Source]) -> String {
    let mut out = String::new();
    for (n, source) in sources.iter().enumerate() {
        let _ = match source {
            Source::Input(i) => writeln!(out, "%{n} = input {i}"),
            Source::Outside(t) => writeln!(out, "%{n} = outside {t:?}"),
            Source::GradOf(leaf) => writeln!(out, "%{n} = %{leaf}.grad"),
            Source::Made => Ok(()),
        };
    }
    out
}

/// Steps as text, a line for each.
pub(super) fn listing(sources: &[Source], steps: &[Step], results: &[usize], slots: &[Slot]) -> String {
    let mut out = givens(sources);
    for (i, step) in steps.iter().enumerate() {
        let _ = writeln!(out, "{}", step.text(|arg| slots.contains(&Slot { step: i, arg })));
    }
    let _ = write!(out, "return {}", numbers(results));
    out
}

/// Adds the elements of a tensor.
fn read(t: &Tensor, reads: &mut SmallVec<[Scalar; 4]>) -> Result<()> {
    if t.numel() == 1 && t.device() == Device::Cpu {
        reads.push(t.element(t.layout().offset)?);
        return Ok(());
    }
    let host = t.dense_copy(t.dtype())?;
    let start = host.layout().offset;
    (0..host.numel()).try_for_each(|i| host.element(start + i).map(|s| reads.push(s)))
}

/// The layout at `shift` bytes from the first element of a tensor; `None` where it does not lie within the storage.
fn placed(whole: &Tensor, layout: &Layout, shift: isize, dtype: DType) -> Option<Layout> {
    let (m, size) = (whole.meta(), dtype.size());
    let at = (m.layout.offset * m.dtype.size()).checked_add_signed(shift).filter(|at| at.is_multiple_of(size))?;
    let foreign = m.dtype != dtype && m.storage.cpu_ptr().is_ok_and(|p| !(p as usize).is_multiple_of(size.min(8)));
    let placed = Layout { offset: at / size, ..layout.clone() };
    (!foreign && placed.fits(m.storage.bytes() / size)).then_some(placed)
}

#[cold]
fn beyond() -> Error {
    Error::runtime("a step of a plan shows memory beyond that of its tensor")
}

/// Whether others see what the step does. `shown` is the tensor whose memory each one shows, `inside` whether the plan has
/// made that memory.
fn is_visible(step: &Step, shown: &mut [usize], inside: &mut [bool]) -> bool {
    match step {
        Step::SetGrad { .. } => true,
        Step::Read { .. } => false,
        Step::Alias { of, result, .. } => {
            shown[*result] = shown[*of];
            inside[*result] = inside[shown[*of]];
            false
        }
        Step::Call { op, form, args, results, draws, .. } => {
            let first = args.iter().find_map(|a| if let Arg::Tensor(n) = a { Some(*n) } else { None });
            if *form == Form::Functional && !matches!(op.body, Body::Elementwise(_) | Body::Kernel(_)) {
                // A view, or an op that may return its argument.
                let from = args.iter().flat_map(Arg::tensors).any(|n| !inside[n]);
                for &r in results {
                    shown[r] = first.map_or(r, |f| shown[f]);
                    inside[r] &= !from;
                }
            }
            let mut visible = *draws;
            step.writes(|n| visible |= !inside[n]);
            visible
        }
    }
}
