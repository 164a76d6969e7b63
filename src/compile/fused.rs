//! Elementwise steps that run as one: each element goes through all of them before the next is read.
//!
//! What lies between them has no memory. Results that others read, and tensors that are written in place, are stored. It runs
//! on operands of the layouts that were recorded; for any others the steps run as they are.

use super::look::Look;
use super::step::{Arg, Step, Tensors};
use crate::autograd::{diagnostics, history, mode};
use crate::cpu::epilogue::Epilogue;
use crate::cpu::loops::Loops;
use crate::cpu::program::{Applied, Machine, Memory};
use crate::cpu::view::View;
use crate::device::Device;
use crate::dispatch::{Prepared, number_of, prepare};
use crate::dtype::{DType, Element, Scalar};
use crate::error::Result;
use crate::gpu::{self, Program, ProgramRule};
use crate::kinds::RuleInput;
use crate::layout::{Dims, Layout};
use crate::op::number::{Number, Numbers};
use crate::op::tracer::Form;
use crate::op::{Body, Kernel, Op, Promote, Rule, Spec, Value};
use crate::tensor::{INFERENCE, Tensor};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A result that is stored in new memory.
struct Kept {
    number: usize,
    look: Look,
    /// The ops that wrote to it in place after it was made.
    written: Vec<&'static Op>,
    /// The operand whose memory it takes over.
    onto: Option<usize>,
}

/// Where an operand of the machine comes from.
#[derive(Clone, Copy)]
enum Operand {
    Tensor(usize),
    Kept(usize),
    /// A number that differs from run to run, read as the one element of a tensor.
    Number(usize),
}

impl Operand {
    fn tensor<'a>(self, now: &'a [Option<Tensor>], made: &'a [Tensor]) -> Option<&'a Tensor> {
        match self {
            Operand::Tensor(n) => now.get(n)?.as_ref(),
            Operand::Kept(i) => made.get(i),
            Operand::Number(_) => None,
        }
    }
}

pub struct Fused {
    /// With their places in the recording.
    pub steps: Vec<(usize, Step)>,
    machine: Runner,
    operands: Vec<Operand>,
    kept: Vec<Kept>,
    /// Tensors that are written in place, each once for every op that does.
    written: Vec<(usize, &'static Op)>,
    /// With the dtypes in which they are read.
    numbers: Vec<(Number, DType)>,
    /// Steps whose rule depends on such numbers.
    chosen: Vec<Arc<Chosen>>,
}

/// The operands of a machine while it is put together.
struct Operands<'a> {
    looks: &'a [Look],
    numbers: Vec<(Number, DType)>,
    point: &'a Layout,
    list: Vec<Operand>,
    memory: Vec<(DType, &'a Layout)>,
    of: HashMap<usize, usize>,
}

impl Operands<'_> {
    fn add(&mut self, operand: Operand, n: usize) -> usize {
        let Look { layout, dtype, .. } = &self.looks[n];
        self.list.push(operand);
        self.memory.push((*dtype, layout));
        self.list.len() - 1
    }
    fn tensor(&mut self, n: usize) -> usize {
        if let Some(&known) = self.of.get(&n) {
            return known;
        }
        let new = self.add(Operand::Tensor(n), n);
        self.of.insert(n, new);
        new
    }
    fn number(&mut self, n: &Number, dtype: DType) -> usize {
        let known = self
            .list
            .iter()
            .position(|o| matches!(o, Operand::Number(i) if self.numbers[*i].0 == *n && self.numbers[*i].1 == dtype));
        known.unwrap_or_else(|| {
            self.numbers.push((n.clone(), dtype));
            self.list.push(Operand::Number(self.numbers.len() - 1));
            self.memory.push((dtype, self.point));
            self.list.len() - 1
        })
    }
}

/// Numbers as elements of memory, each in its dtype.
type Elements = SmallVec<[u64; 4]>;

/// What runs the steps.
enum Runner {
    Cpu(Box<Machine>),
    Gpu(Box<Program>),
}

/// An elementwise step, as far as it is known before it runs.
pub struct Candidate {
    pub op: &'static Op,
    pub shape: Dims,
    pub device: Device,
    /// What it writes to in place.
    pub target: Option<usize>,
    pub result: usize,
    prepared: Prepared,
    inputs: SmallVec<[Input; 4]>,
    chosen: Option<Arc<Chosen>>,
    /// It only casts.
    pub casts: bool,
}

/// What stands for the rule of a cast.
static CAST: Rule = Rule { operands: &[0], loops: Loops::NONE, wgsl: "" };

#[derive(Clone)]
pub enum Input {
    Number(Scalar),
    Tensor(usize),
    /// A number that differs from run to run.
    Passed(Number),
}

/// A call with numbers that differ from run to run: the rule may be chosen by them.
struct Chosen {
    op: &'static Op,
    /// With tensors that have no memory.
    args: Vec<Value<'static>>,
    numbers: Vec<(usize, Number)>,
    in_place: bool,
    rule: &'static Rule,
    compute: DType,
    result: Spec,
}

impl Chosen {
    /// Whether a call with the numbers of a run is computed as the recorded one was.
    fn holds(&self, numbers: Numbers) -> bool {
        let mut args = self.args.clone();
        for (at, n) in &self.numbers {
            let Some(now) = n.now(numbers) else { return false };
            args[*at] = Value::Scalar(now);
        }
        let target = args.first().and_then(Value::as_tensor).filter(|_| self.in_place);
        prepare(self.op, &args, target)
            .is_some_and(|p| std::ptr::eq(p.rule, self.rule) && p.compute == self.compute && p.result == self.result)
    }
}

/// Whether the rule that was chosen for some numbers is that of all: all of the op's read them as operands.
fn reads_all(op: &Op, mut numbers: impl Iterator<Item = usize>) -> bool {
    let Body::Elementwise(e) = &op.body else { return false };
    let by_kind = !matches!(op.promote, Promote::By(_) | Promote::Checked(..));
    by_kind && numbers.all(|at| e.rules().iter().all(|r| r.operands.contains(&at)))
}

/// Whether the loops read a number as it is read of memory: they compute in the dtype in which it is given to them.
fn reads_plainly(prepared: &Prepared, device: Device) -> bool {
    let own = prepared.rule.loops.flat(prepared.compute).map(|flat| flat.class.dtype());
    let plain = matches!(prepared.compute, DType::F32 | DType::F64) && own == Some(prepared.compute);
    plain && device == Device::Cpu
}

/// A number as a tensor without dimensions; its first bytes are an element of the dtype, which has at most eight.
fn number_view(element: &mut u64, dtype: DType) -> View<'_> {
    let ptr = std::ptr::from_mut(element).cast::<u8>();
    // A float is in the low half.
    let ptr = if cfg!(target_endian = "big") { ptr.wrapping_add(8 - dtype.size()) } else { ptr };
    // SAFETY: one aligned, initialised element, which is borrowed for as long as the view.
    unsafe { View::new(ptr, dtype, &[], &[]) }
}

/// A tensor without memory that looks like one of a plan.
fn hollow(look: &Look) -> Option<Tensor> {
    let layout = Layout { offset: 0, ..look.layout.clone() };
    Tensor::of_layout(layout, look.dtype, Device::Meta).ok()
}

impl Candidate {
    /// None for a step that is not elementwise, or of which something depends on values.
    pub fn of(step: &Step, looks: &[Look]) -> Option<Candidate> {
        let Step::Call { op, form, args, results, draws: false, .. } = step else { return None };
        let (&[result], true) = (&results[..], *form != Form::Out) else {
            return None;
        };
        let target = match (form, args.first()) {
            (Form::InPlace, Some(Arg::Tensor(n))) => Some(*n),
            (Form::InPlace, _) => return None,
            _ => None,
        };
        if let Body::Kernel(Kernel { copies: true, .. }) = &op.body {
            return Candidate::cast(op, args, result, looks);
        }
        let mut values = crate::op::Args::new();
        for arg in args {
            values.push(match arg {
                Arg::Value(v) => v.reborrow(),
                Arg::Tensor(n) => Value::Owned(hollow(&looks[*n])?),
                Arg::Number(_, recorded) => Value::Scalar(*recorded),
                Arg::Tensors(_) => return None,
            });
        }
        let prepared = prepare(op, &values, values.first().and_then(Value::as_tensor).filter(|_| target.is_some()))?;
        let (look, spec) = (&looks[result], &prepared.result);
        let same = look.layout.shape == spec.layout.shape
            && look.layout.strides == spec.layout.strides
            && look.dtype == spec.dtype
            && (target.is_some() || look.layout.offset == 0);
        if !same || target.is_some() && (target != Some(result) || look.layout.has_internal_overlap()) {
            return None;
        }
        let mut inputs = SmallVec::new();
        for &i in prepared.rule.operands {
            inputs.push(match &args[i] {
                Arg::Value(Value::Scalar(s)) => Input::Number(number_of(op, *s, prepared.compute)),
                Arg::Tensor(n) if looks[*n].device == look.device => Input::Tensor(*n),
                Arg::Number(n, _) => Input::Passed(n.clone()),
                _ => return None,
            });
        }
        let passed = |(i, a): (usize, &Arg)| if let Arg::Number(n, _) = a { Some((i, n.clone())) } else { None };
        let numbers: Vec<(usize, Number)> = args.iter().enumerate().filter_map(passed).collect();
        if !numbers.is_empty() && !reads_plainly(&prepared, look.device) {
            return None;
        }
        let open = !numbers.is_empty() && !reads_all(op, numbers.iter().map(|n| n.0));
        let chosen = open.then(|| {
            let (rule, compute, result) = (prepared.rule, prepared.compute, prepared.result.clone());
            let args = values.iter().map(|v| v.clone().into_owned()).collect();
            Arc::new(Chosen { op, args, numbers, in_place: target.is_some(), rule, compute, result })
        });
        let (shape, device) = (spec.layout.shape.clone(), look.device);
        Some(Candidate { op, shape, device, target, result, prepared, inputs, chosen, casts: false })
    }
    /// A copy in another dtype, on the CPU.
    fn cast(op: &'static Op, args: &[Arg], result: usize, looks: &[Look]) -> Option<Candidate> {
        let &Arg::Tensor(n) = args.first()? else { return None };
        let (from, to) = (&looks[n], &looks[result]);
        let on_cpu = (from.device, to.device) == (Device::Cpu, Device::Cpu);
        if !on_cpu || from.dtype == to.dtype || from.layout.shape != to.layout.shape || to.layout.offset != 0 {
            return None;
        }
        let result_of = Spec { layout: to.layout.clone(), dtype: to.dtype, device: to.device };
        let prepared = Prepared { rule: &CAST, compute: from.dtype, result: result_of };
        let (shape, inputs) = (to.layout.shape.clone(), SmallVec::from_elem(Input::Tensor(n), 1));
        Some(Candidate {
            op,
            shape,
            device: Device::Cpu,
            target: None,
            result,
            prepared,
            inputs,
            chosen: None,
            casts: true,
        })
    }
    /// Whether one machine may run both.
    pub fn goes_with(&self, other: &Candidate) -> bool {
        let compute = |c: &Candidate| gpu::computes_as(c.prepared.compute);
        let same = self.shape == other.shape && self.device == other.device;
        same && (self.device == Device::Cpu || compute(self) == compute(other))
    }
    /// The tensors that it reads.
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().filter_map(|i| if let Input::Tensor(n) = i { Some(*n) } else { None })
    }
}

impl Fused {
    /// Of steps in their order; `read_later` says whether a tensor is read after them. None where no machine runs them.
    pub fn new(
        steps: Vec<(usize, Step)>,
        candidates: &[Candidate],
        looks: &[Look],
        read_later: impl Fn(usize) -> bool,
    ) -> Option<Fused> {
        Fused::onto(steps, candidates, looks, read_later, None)
    }
    /// A result may take over the memory of `spent`, a row-major tensor that nobody reads afterwards.
    pub fn onto(
        steps: Vec<(usize, Step)>,
        candidates: &[Candidate],
        looks: &[Look],
        read_later: impl Fn(usize) -> bool,
        mut spent: Option<usize>,
    ) -> Option<Fused> {
        let point = Layout::contiguous(&[]);
        let mut operands = Operands {
            looks,
            numbers: Vec::new(),
            point: &point,
            list: Vec::new(),
            memory: Vec::new(),
            of: HashMap::new(),
        };
        let mut rules = Vec::new();
        // What each tensor is now, where a rule has computed it.
        let mut now: HashMap<usize, usize> = HashMap::new();
        let (mut kept, mut written): (Vec<Kept>, Vec<(usize, &'static Op)>) = (Vec::new(), Vec::new());
        for (rule, c) in candidates.iter().enumerate() {
            let read = |input: &Input| match input {
                Input::Number(s) => RuleInput::Number(*s),
                Input::Passed(n) => RuleInput::Operand(operands.number(n, c.prepared.compute)),
                Input::Tensor(n) => {
                    now.get(n).map_or_else(|| RuleInput::Operand(operands.tensor(*n)), |&r| RuleInput::Rule(r))
                }
            };
            let inputs: SmallVec<[RuleInput; 4]> = c.inputs.iter().map(read).collect();
            rules.push(inputs);
            match (c.target, kept.iter_mut().find(|k| Some(k.number) == c.target)) {
                (None, _) => {
                    let look = looks[c.result].clone();
                    kept.push(Kept { number: c.result, look, written: Vec::new(), onto: None })
                }
                (_, Some(made)) => made.written.push(c.op),
                (Some(n), None) => written.push((n, c.op)),
            }
            now.insert(c.result, rule);
        }
        kept.retain(|k| read_later(k.number));
        let mut stores = Vec::new();
        for (i, k) in kept.iter_mut().enumerate() {
            let rule = *now.get(&k.number)?;
            // What was there is overwritten, so no later rule may read it.
            let free = |n: &usize| {
                let (own, from) = (&k.look.layout, &looks[*n].layout);
                let alike = k.look.dtype == looks[*n].dtype && own.shape == from.shape && own.strides == from.strides;
                let at = operands.of.get(n).copied().map(RuleInput::Operand);
                alike && at.is_some_and(|at| !rules[rule + 1..].iter().any(|inputs| inputs.contains(&at)))
            };
            k.onto = spent.filter(free);
            let operand = match k.onto {
                Some(n) => operands.tensor(n),
                None => operands.add(Operand::Kept(i), k.number),
            };
            spent = spent.filter(|_| k.onto.is_none());
            stores.push((rule, operand));
        }
        for (i, (n, _)) in written.iter().enumerate() {
            if !written[..i].iter().any(|(m, _)| m == n) {
                stores.push((*now.get(n)?, operands.tensor(*n)));
            }
        }
        let Operands { list: operands, memory, numbers, .. } = operands;
        let first = candidates.first()?;
        let machine = match first.device {
            Device::Cpu => {
                let applied = |(c, inputs): (&Candidate, _)| {
                    let Prepared { rule, compute, result } = &c.prepared;
                    let loops = (!c.casts).then_some(&rule.loops);
                    Applied { loops, compute: *compute, inputs, dtype: result.dtype }
                };
                let rules: Vec<Applied> = candidates.iter().zip(rules).map(applied).collect();
                let memory = memory.into_iter().map(|(dtype, layout)| Memory {
                    dtype,
                    shape: layout.shape.clone(),
                    strides: layout.strides.clone(),
                });
                Runner::Cpu(Box::new(Machine::new(&first.shape, memory.collect(), &rules, &stores)?))
            }
            device => {
                let applied = |(c, inputs): (&Candidate, _)| {
                    let Prepared { rule, compute, result } = &c.prepared;
                    ProgramRule { wgsl: rule.wgsl, compute: *compute, inputs, dtype: result.dtype }
                };
                let rules: Vec<ProgramRule> = candidates.iter().zip(rules).map(applied).collect();
                Runner::Gpu(Box::new(Program::new(
                    |d| gpu::supports(device, d),
                    &first.shape,
                    &memory,
                    &rules,
                    &stores,
                )?))
            }
        };
        let chosen = candidates.iter().filter_map(|c| c.chosen.clone()).collect();
        Some(Fused { steps, machine, operands, kept, written, numbers, chosen })
    }

    /// Runs as one. False, with nothing done, where its tensors do not look as they did or may not be written: then the
    /// steps are to be run, which say what is wrong.
    pub fn run(&self, now: &mut [Option<Tensor>], numbers: Numbers) -> bool {
        let Some((made, mut elements)) = self.make(now, numbers) else { return false };
        let ran = match &self.machine {
            Runner::Cpu(machine) => self.cpu_views(now, &made, &mut elements).is_some_and(|views| machine.run(&views)),
            Runner::Gpu(program) => {
                let tensor = |operand: &Operand| operand.tensor(now, &made)?.gpu_view().ok();
                let views: Option<SmallVec<[gpu::View; 8]>> = self.operands.iter().map(tensor).collect();
                views.is_some_and(|views| program.run(&views).unwrap_or(false))
            }
        };
        if ran {
            self.finish(now, made);
        }
        ran
    }
    /// Runs as the epilogue of `kernel`, which computes one of its operands. False as `run`, before the kernel.
    pub fn run_after(
        &self,
        now: &mut [Option<Tensor>],
        numbers: Numbers,
        kernel: impl FnOnce(&[Option<Tensor>], Epilogue) -> Result<()>,
    ) -> Result<bool> {
        let Some((made, mut elements)) = self.make(now, numbers) else { return Ok(false) };
        {
            let Runner::Cpu(machine) = &self.machine else { return Ok(false) };
            let Some(views) = self.cpu_views(now, &made, &mut elements) else { return Ok(false) };
            let Some(epilogue) = Epilogue::new(machine, &views) else { return Ok(false) };
            kernel(now, epilogue)?;
        }
        self.finish(now, made);
        Ok(true)
    }
    /// Memory for its results, and its numbers as elements. None where it may not write, or where a rule depends on a number and is
    /// not the one that was chosen.
    fn make(&self, now: &[Option<Tensor>], numbers: Numbers) -> Option<(Tensors, Elements)> {
        let at = |n: usize| now.get(n).and_then(|t| t.as_ref());
        let writable = |t: &Tensor| history::check_inplace(t, false).and_then(|()| history::check_writable(t)).is_ok();
        let as_chosen = self.chosen.iter().all(|c| c.holds(numbers));
        if !as_chosen || !self.written.iter().all(|(n, _)| at(*n).is_some_and(writable)) {
            return None;
        }
        let element = |(number, dtype): &(Number, DType)| {
            let s = number.now(numbers)?;
            Some(if *dtype == DType::F32 {
                f32::from_scalar(s).to_bits().into()
            } else {
                f64::from_scalar(s).to_bits()
            })
        };
        let elements = self.numbers.iter().map(element).collect::<Option<_>>()?;
        let one = |k: &Kept| match k.onto {
            Some(n) => Some(Tensor::from_meta(at(n)?.meta().clone())),
            None => Tensor::of_layout(k.look.layout.clone(), k.look.dtype, k.look.device).ok(),
        };
        Some((self.kept.iter().map(one).collect::<Option<_>>()?, elements))
    }
    fn cpu_views<'a>(
        &self,
        now: &'a [Option<Tensor>],
        made: &'a [Tensor],
        elements: &'a mut [u64],
    ) -> Option<SmallVec<[View<'a>; 8]>> {
        let numbers: SmallVec<[View; 4]> =
            elements.iter_mut().zip(&self.numbers).map(|(e, (_, dtype))| number_view(e, *dtype)).collect();
        let view = |operand: &Operand| match *operand {
            Operand::Number(i) => numbers.get(i).copied(),
            _ => operand.tensor(now, made)?.cpu_view().ok(),
        };
        self.operands.iter().map(view).collect()
    }
    /// What others see of the writes, and the results.
    fn finish(&self, now: &mut [Option<Tensor>], made: Tensors) {
        let written = self.written.iter().filter_map(|(n, op)| Some((now.get(*n)?.as_ref()?, op)));
        written.for_each(|(t, op)| diagnostics::written(t, op));
        let inference = mode::inference_enabled();
        for (k, t) in self.kept.iter().zip(made) {
            t.set_flag(INFERENCE, inference);
            k.written.iter().for_each(|op| diagnostics::written(&t, op));
            now[k.number] = Some(t);
        }
    }
    /// The tensors that it stores.
    pub fn made(&self) -> Vec<usize> {
        let mut made: Vec<usize> = self.written.iter().map(|w| w.0).chain(self.kept.iter().map(|k| k.number)).collect();
        made.sort_unstable();
        made.dedup();
        made
    }
    /// `fused(add, mul, tanh)`, or the name of the only op.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.steps.iter().filter_map(|(_, s)| s.op()).map(Op::name).collect();
        if names.len() == 1 { names[0].into() } else { format!("fused({})", names.join(", ")) }
    }
}
