//! A plan: the primitives of a call in their order, with the tensors that they read and make by number.

use crate::autograd::{self, GradGuard};
use crate::dispatch::{call_inplace, call_into, call_out};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::tracer::{Form, show};
use crate::op::{Args, Body, Op, Outputs, Value};
use crate::tensor::{Edge, INFERENCE, Meta, Tensor};
use smallvec::SmallVec;
use std::fmt::Write;

/// Where a tensor comes from.
pub enum Source {
    /// An argument of the function.
    Input(usize),
    /// It was there before the call.
    Outside(Tensor),
    /// The gradient that a tensor has when the call begins.
    GradOf(usize),
    /// A step makes it.
    Made,
}

/// An argument of a step.
pub enum Arg {
    Value(Value<'static>),
    Tensor(usize),
    Tensors(Vec<Option<usize>>),
}

pub enum Step {
    Call {
        op: &'static Op,
        form: Form,
        args: Vec<Arg>,
        outs: Vec<usize>,
        results: SmallVec<[usize; 1]>,
        /// Grad mode at the call.
        grad: bool,
        /// It advances a generator.
        draws: bool,
        /// Part of an optimizer's step.
        in_step: bool,
    },
    /// Another handle on the memory of a tensor, without history; `counted` if it shares the version counter.
    Alias {
        of: usize,
        /// Its offset is replaced: the first element lies `shift` bytes after that of `of`.
        layout: Layout,
        shift: isize,
        dtype: DType,
        counted: bool,
        result: usize,
    },
    SetGrad {
        leaf: usize,
        grad: Option<usize>,
    },
}

/// Whether the steps run under the grad mode in which they were called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// No step was recorded in a graph, so none will be.
    AsCalled,
    /// The gradients are steps themselves, so nothing is recorded.
    Unrecorded,
    /// The steps are the calls as they were made, and are recorded as they were.
    Recorded,
}

/// A number of a step that is read anew in each call: a learning rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    pub step: usize,
    pub arg: usize,
}

/// Why a run has failed.
pub enum Failure {
    /// Nothing that others see has happened: the function can be called instead.
    Before(Error),
    After(Error),
}

/// Tensors that a step reads for the last time, and whether others see what it does.
#[derive(Default)]
struct Facts {
    last: SmallVec<[usize; 4]>,
    effect: bool,
}

pub struct Plan {
    sources: Vec<Source>,
    steps: Vec<Step>,
    facts: Vec<Facts>,
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
        let mut plan = Plan { sources, steps, facts: Vec::new(), results, graphs, read_grads, variant };
        plan.facts = plan.liveness();
        plan
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

    fn liveness(&self) -> Vec<Facts> {
        let mut facts: Vec<Facts> = self.steps.iter().map(|_| Facts::default()).collect();
        // The tensor whose memory each one shows, as far as it is known.
        let mut shown: Vec<usize> = (0..self.sources.len()).collect();
        let mut inside: Vec<bool> = self.sources.iter().map(|s| matches!(s, Source::Made)).collect();
        for (step, fact) in self.steps.iter().zip(&mut facts) {
            match step {
                Step::SetGrad { .. } => fact.effect = true,
                Step::Alias { of, result, .. } => {
                    shown[*result] = shown[*of];
                    inside[*result] = inside[shown[*of]];
                }
                Step::Call { op, form, args, outs, results, draws, .. } => {
                    let first = args.iter().find_map(|a| if let Arg::Tensor(n) = a { Some(*n) } else { None });
                    if *form == Form::Functional && !matches!(op.body, Body::Elementwise(_) | Body::Kernel(_)) {
                        // A view, or an op that may return its argument.
                        let from = args.iter().flat_map(Arg::tensors).any(|n| !inside[n]);
                        for &r in results {
                            shown[r] = first.map_or(r, |f| shown[f]);
                            inside[r] &= !from;
                        }
                    }
                    let written = args.iter().enumerate().filter(|(i, _)| op.sig.written & (1 << i) != 0);
                    let mut targets = written.flat_map(|(_, a)| a.tensors()).chain(outs.iter().copied());
                    fact.effect = targets.any(|n| !inside[n])
                        || *form == Form::InPlace && first.is_some_and(|n| !inside[n])
                        || *draws;
                }
            }
        }
        let mut last = vec![None; self.sources.len()];
        for (i, step) in self.steps.iter().enumerate() {
            step.reads(|n| last[n] = Some(i));
            step.makes(|n| last[n] = last[n].max(Some(i)));
        }
        for (n, at) in last.iter().enumerate() {
            if let Some(at) = at.filter(|_| !self.results.contains(&n)) {
                facts[at].last.push(n);
            }
        }
        facts
    }

    /// Runs the steps; returns what then stands for the results. `slots` are the numbers that replace those recorded, in the order
    /// of their steps.
    pub fn run(&self, inputs: &[Tensor], slots: &[(Slot, f64)]) -> std::result::Result<Vec<Tensor>, Failure> {
        let mut effect = false;
        let run = self.run_steps(inputs, slots, &mut effect);
        run.map_err(|e| if effect { Failure::After(e) } else { Failure::Before(e) })
    }

    fn run_steps(&self, inputs: &[Tensor], mut slots: &[(Slot, f64)], effect: &mut bool) -> Result<Vec<Tensor>> {
        let mut now: Vec<Option<Tensor>> = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            now.push(match source {
                Source::Input(i) => Some(inputs.get(*i).ok_or_else(missing)?.clone()),
                Source::Outside(t) => Some(t.clone()),
                Source::GradOf(leaf) => now[*leaf].as_ref().and_then(Tensor::grad),
                Source::Made => None,
            });
        }
        let mode = autograd::grad_enabled();
        let _mode = GradGuard::new(mode);
        for (i, (step, facts)) in self.steps.iter().zip(&self.facts).enumerate() {
            let (changed, after) = slots.split_at(slots.iter().take_while(|(s, _)| s.step == i).count());
            slots = after;
            *effect |= facts.effect;
            self.run_step(step, changed, &mut now)?;
            for &n in &facts.last {
                now[n] = None;
            }
        }
        let mut results = Vec::with_capacity(self.results.len());
        for (&n, graph) in self.results.iter().zip(&self.graphs) {
            let t = now[n].clone().ok_or_else(missing)?;
            if let Some(edge) = graph {
                t.set_grad_fn(edge.clone());
            }
            results.push(t);
        }
        Ok(results)
    }

    fn run_step(&self, step: &Step, changed: &[(Slot, f64)], now: &mut [Option<Tensor>]) -> Result<()> {
        match step {
            Step::Call { op, form, args, outs, results, grad, .. } => {
                autograd::set_grad_enabled(*grad && self.variant != Variant::Unrecorded);
                let mut made = Outputs::new();
                {
                    let mut values = Args::new();
                    for (i, arg) in args.iter().enumerate() {
                        values.push(match changed.iter().find(|(slot, _)| slot.arg == i) {
                            Some((_, number)) => Value::Scalar(Scalar::Float(*number)),
                            None => arg.value(now)?,
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
        }
        Ok(())
    }

    /// The plan as text, a line for each step; equal for plans that do the same.
    pub fn listing(&self, slots: &[Slot]) -> String {
        listing(&self.sources, &self.steps, &self.results, slots)
    }
    /// The name of each step's op.
    pub fn ops(&self) -> Vec<&'static str> {
        let name = |s: &Step| match s {
            Step::Call { op, .. } => op.name(),
            Step::Alias { .. } => "alias",
            Step::SetGrad { .. } => "set_grad",
        };
        self.steps.iter().map(name).collect()
    }
}

/// Steps as text, a line for each.
pub(super) fn listing(sources: &[Source], steps: &[Step], results: &[usize], slots: &[Slot]) -> String {
    let mut out = String::new();
    for (n, source) in sources.iter().enumerate() {
        let _ = match source {
            Source::Input(i) => writeln!(out, "%{n} = input {i}"),
            Source::Outside(t) => writeln!(out, "%{n} = outside {t:?}"),
            Source::GradOf(leaf) => writeln!(out, "%{n} = %{leaf}.grad"),
            Source::Made => Ok(()),
        };
    }
    for (i, step) in steps.iter().enumerate() {
        let open = |arg: usize| slots.contains(&Slot { step: i, arg });
        let _ = writeln!(out, "{}", step.text(open));
    }
    let _ = write!(out, "return {}", numbers(results));
    out
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

#[cold]
fn missing() -> Error {
    Error::internal("a step of a plan reads a tensor that is not there")
}

fn numbers(list: &[usize]) -> String {
    list.iter().map(|n| format!("%{n}")).collect::<Vec<_>>().join(", ")
}

impl Arg {
    pub(super) fn tensors(&self) -> impl Iterator<Item = usize> + '_ {
        let (one, many): (Option<usize>, &[Option<usize>]) = match self {
            Arg::Tensor(n) => (Some(*n), &[]),
            Arg::Tensors(list) => (None, list),
            Arg::Value(_) => (None, &[]),
        };
        one.into_iter().chain(many.iter().flatten().copied())
    }
    #[inline]
    fn value<'a>(&'a self, now: &'a [Option<Tensor>]) -> Result<Value<'a>> {
        Ok(match self {
            Arg::Value(v) => v.reborrow(),
            Arg::Tensor(n) => Value::Tensor(now[*n].as_ref().ok_or_else(missing)?),
            Arg::Tensors(list) => {
                let one = |n: &Option<usize>| n.map(|n| now[n].clone().ok_or_else(missing)).transpose();
                Value::Tensors(list.iter().map(one).collect::<Result<_>>()?)
            }
        })
    }
    fn text(&self) -> String {
        match self {
            Arg::Tensor(n) => format!("%{n}"),
            Arg::Tensors(list) => {
                let each: Vec<String> = list.iter().map(|n| n.map_or("None".into(), |n| format!("%{n}"))).collect();
                format!("[{}]", each.join(", "))
            }
            Arg::Value(Value::Scalar(s)) => format!("{s:?}"),
            Arg::Value(v) => show(v),
        }
    }
}

impl Step {
    pub(super) fn reads(&self, mut each: impl FnMut(usize)) {
        match self {
            Step::Call { args, outs, .. } => {
                args.iter().flat_map(Arg::tensors).chain(outs.iter().copied()).for_each(each);
            }
            Step::Alias { of, .. } => each(*of),
            Step::SetGrad { leaf, grad } => {
                each(*leaf);
                grad.iter().copied().for_each(each);
            }
        }
    }
    pub(super) fn makes(&self, mut each: impl FnMut(usize)) {
        match self {
            Step::Call { results, .. } => results.iter().copied().for_each(each),
            Step::Alias { result, .. } => each(*result),
            Step::SetGrad { .. } => {}
        }
    }
    fn text(&self, open: impl Fn(usize) -> bool) -> String {
        match self {
            Step::Call { op, form, args, outs, results, grad, .. } => {
                let one = |(i, arg): (usize, &Arg)| if open(i) { "slot".into() } else { arg.text() };
                let args: Vec<String> = args.iter().enumerate().map(one).collect();
                let (mark, out) = match form {
                    Form::Functional => ("", String::new()),
                    Form::InPlace => ("_", String::new()),
                    Form::Out => ("", format!(", out=({})", numbers(outs))),
                };
                let mode = if *grad { "" } else { "  # no_grad" };
                format!("{} = {}{mark}({}{out}){mode}", numbers(results), op.name(), args.join(", "))
            }
            Step::Alias { of, layout, shift, dtype, counted, result } => {
                let (shape, strides) = (layout.shape.as_slice(), layout.strides.as_slice());
                let form = if *counted { "detach" } else { "data" };
                format!("%{result} = %{of}.{form} as {dtype} {shape:?} {strides:?}, {shift} bytes on")
            }
            Step::SetGrad { leaf, grad } => match grad {
                Some(n) => format!("%{leaf}.grad = %{n}"),
                None => format!("%{leaf}.grad = None"),
            },
        }
    }
}
