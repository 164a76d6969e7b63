//! What runs in a batch: the calls of one example, with those in their bodies.

use crate::error::Error;
use crate::op::generator::{DefaultStates, State};
use crate::op::tracer::Form;
use crate::op::{Args, Generator, Op, Value, Vjp};
use crate::tensor::Tensor;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// A function from outside the op table on a whole batch: its tensors, which of them are batched, and how many examples there
/// are, to results with the batch first.
pub type CustomRule = Rc<dyn Fn(&[Tensor], &[bool], usize) -> Result<Vec<Tensor>, Error>>;

/// What runs in a batch.
#[derive(Clone)]
pub enum Recorded {
    Call(Rc<Step>),
    Custom(Rc<Custom>),
}

/// A function from outside the op table.
pub struct Custom {
    pub rule: CustomRule,
    pub args: Vec<Tensor>,
    pub results: Vec<Tensor>,
    pub grad: bool,
    /// The calls that it made of one example: its gradient may read what they made.
    pub inner: Vec<Recorded>,
}

impl Recorded {
    pub fn results(&self) -> &[Tensor] {
        match self {
            Recorded::Call(step) => &step.results,
            Recorded::Custom(c) => &c.results,
        }
    }
    /// The tensors that it reads or writes.
    pub fn reads(&self) -> Vec<&Tensor> {
        match self {
            Recorded::Call(s) => s.args.iter().flat_map(|v| v.tensors()).chain(&s.outs).collect(),
            Recorded::Custom(c) => c.args.iter().collect(),
        }
    }
    pub fn writes(&self) -> bool {
        matches!(self, Recorded::Call(s) if s.writes())
    }
    pub fn views_by_strides(&self) -> bool {
        let own = matches!(self, Recorded::Call(s) if s.op.views_by_strides());
        own || self.inner().iter().any(Recorded::views_by_strides)
    }
    /// Whether it writes, or a call in its body.
    pub fn writes_anywhere(&self) -> bool {
        matches!(self, Recorded::Call(s) if s.writes_anywhere())
    }
    pub fn inner(&self) -> &[Recorded] {
        match self {
            Recorded::Call(s) => &s.inner,
            Recorded::Custom(c) => &c.inner,
        }
    }
    /// The tensors that it writes to, or a call in its body.
    pub fn targets(&self) -> impl Iterator<Item = &Tensor> {
        let mut found = Vec::new();
        if let Recorded::Call(s) = self {
            found.extend(targets(s.op, s.form, &s.args, &s.outs));
        }
        found.extend(self.inner().iter().flat_map(|s| s.targets().collect::<Vec<_>>()));
        found.into_iter()
    }
    /// Calls `f` with the results, and with those of the calls in its body.
    pub fn each_result(&self, f: &mut impl FnMut(&Tensor)) {
        self.results().iter().for_each(&mut *f);
        self.inner().iter().for_each(|s| s.each_result(f));
    }
    pub fn into_results(self) -> Vec<Tensor> {
        let mut all = Vec::new();
        self.each_result(&mut |t| all.push(t.clone()));
        all
    }
    /// Calls `f` with each argument, and with those of the calls in its body.
    pub fn each_argument(&mut self, f: &mut impl FnMut(&mut Tensor)) {
        let inner = match self {
            Recorded::Call(step) => {
                let Some(step) = Rc::get_mut(step) else { return };
                each_in(&mut step.args, f);
                &mut step.inner
            }
            Recorded::Custom(custom) => {
                let Some(custom) = Rc::get_mut(custom) else { return };
                custom.args.iter_mut().for_each(&mut *f);
                &mut custom.inner
            }
        };
        inner.iter_mut().for_each(|s| s.each_argument(f));
    }
    /// Calls `f` with what is written and with the results, and with those of the calls in its body.
    pub fn each_made(&mut self, f: &mut impl FnMut(&mut Tensor)) {
        let inner = match self {
            Recorded::Call(step) => {
                let Some(step) = Rc::get_mut(step) else { return };
                step.outs.iter_mut().chain(&mut step.results).for_each(&mut *f);
                &mut step.inner
            }
            Recorded::Custom(custom) => {
                let Some(custom) = Rc::get_mut(custom) else { return };
                custom.results.iter_mut().for_each(&mut *f);
                &mut custom.inner
            }
        };
        inner.iter_mut().for_each(|s| s.each_made(f));
    }
    /// Whether something besides the results is wanted: a gradient reads what a body made, or the batch of a recording inside
    /// this one does, of tensors that only this one batches.
    pub fn is_wanted_inside(&self, ids: &HashSet<usize>, storages: &HashSet<usize>) -> bool {
        let results = self.results();
        let wanted = |t: &Tensor| match results.iter().any(|r| storage(r) == storage(t)) {
            true => ids.contains(&t.id()) && !results.iter().any(|r| r.id() == t.id()),
            false => ids.contains(&t.id()) || storages.contains(&storage(t)),
        };
        let mut found = false;
        self.inner().iter().for_each(|s| s.each_result(&mut |t| found |= wanted(t)));
        found
    }
    /// The results that no call in its body made of the example.
    pub fn shared_results(&self) -> impl Iterator<Item = &Tensor> {
        let mut known: HashSet<usize> = self.reads().into_iter().map(storage).collect();
        self.inner().iter().for_each(|s| s.each_result(&mut |t| _ = known.insert(storage(t))));
        self.results().iter().filter(move |t| !known.contains(&storage(t)))
    }
    /// Whether autograd records the steps in place of the call.
    pub fn is_its_steps(&self) -> bool {
        matches!(self, Recorded::Call(s) if matches!(s.op.vjp, Vjp::Composite) && s.form == Form::Functional)
    }
}

/// What views of the same memory share.
pub fn storage(t: &Tensor) -> usize {
    t.storage().id()
}

/// States of generators: the default ones, and those that were arguments of a call.
#[derive(Clone)]
pub struct States {
    pub defaults: DefaultStates,
    pub given: Vec<Drawn>,
}
pub type Drawn = (Arc<Generator>, State);

/// Generators among arguments, with their states.
pub fn drawn_from(args: &[Value]) -> Vec<Drawn> {
    let one = |v: &Value| if let Value::Generator(g) = v { Some((g.clone(), g.state())) } else { None };
    args.iter().filter_map(one).collect()
}

impl States {
    /// Those that a call with these arguments may draw from.
    pub fn of(args: &[Value]) -> States {
        States { defaults: DefaultStates::now(), given: drawn_from(args) }
    }
    /// Those of the same generators now.
    pub fn now(&self) -> States {
        let given = self.given.iter().map(|(g, _)| (g.clone(), g.state())).collect();
        States { defaults: DefaultStates::now(), given }
    }
    pub fn restore(&self) {
        self.defaults.restore();
        self.given.iter().for_each(|(g, state)| g.set_state(state.clone()));
    }
}

/// One recorded call.
pub struct Step {
    pub op: &'static Op,
    pub args: Args<'static>,
    pub form: Form,
    pub outs: Vec<Tensor>,
    pub results: Vec<Tensor>,
    /// Whether gradients were recorded.
    pub grad: bool,
    /// The generators' states before a draw that must be the same for every example.
    pub drawn: Option<States>,
    /// The generators' states before a draw for each example.
    pub draws_at: Option<DefaultStates>,
    /// The calls in its body, where those can run in its place.
    pub inner: Vec<Recorded>,
    /// Memory that this call is the first to write examples to, as it was before.
    pub lifted: Option<(Tensor, Tensor)>,
}

/// Calls `f` with each tensor among arguments.
pub fn each_in(args: &mut [Value<'static>], f: &mut impl FnMut(&mut Tensor)) {
    for v in args {
        match v {
            Value::Owned(t) => f(t),
            Value::Tensors(list) => list.iter_mut().flatten().for_each(&mut *f),
            _ => {}
        }
    }
}

impl Step {
    pub fn writes(&self) -> bool {
        self.form != Form::Functional || self.op.also_writes() != 0
    }
    fn writes_anywhere(&self) -> bool {
        self.writes() || self.inner.iter().any(Recorded::writes_anywhere)
    }
    /// The same call without its steps.
    pub fn shallow(&self) -> Step {
        Step {
            op: self.op,
            args: self.args.clone(),
            form: self.form,
            outs: self.outs.clone(),
            results: self.results.clone(),
            grad: self.grad,
            drawn: self.drawn.clone(),
            draws_at: self.draws_at.clone(),
            inner: Vec::new(),
            lifted: None,
        }
    }
}

/// The tensors that a call writes to.
pub fn targets<'a>(
    op: &'static Op,
    form: Form,
    args: &'a [Value],
    outs: &'a [Tensor],
) -> impl Iterator<Item = &'a Tensor> {
    let (written, first) = (op.also_writes(), form == Form::InPlace);
    let args = args.iter().enumerate();
    let args = args.filter(move |(i, _)| written & (1 << i) != 0 || (first && *i == 0));
    args.flat_map(|(_, v)| v.tensors()).chain(outs)
}
