//! The steps of a plan: calls of primitives on tensors by number, as they were recorded.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::number::{Number, Numbers};
use crate::op::tracer::{Form, show};
use crate::op::{Body, Op, Value};
use crate::tensor::Tensor;
use smallvec::SmallVec;

pub type Tensors = SmallVec<[Tensor; 4]>;

/// Where a tensor comes from.
#[derive(Clone)]
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
#[derive(Clone)]
pub enum Arg {
    Value(Value<'static>),
    Tensor(usize),
    Tensors(Vec<Option<usize>>),
    /// A number that differs from run to run, and what it was.
    Number(Number, Scalar),
}

#[derive(Clone)]
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
    /// The host reads the elements of a tensor as numbers; `first` is the place of the first one among all that are read.
    Read {
        of: usize,
        first: usize,
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

#[cold]
pub(super) fn missing() -> Error {
    Error::internal("a step of a plan reads a tensor that is not there")
}

pub(super) fn numbers(list: &[usize]) -> String {
    list.iter().map(|n| format!("%{n}")).collect::<Vec<_>>().join(", ")
}

impl Arg {
    pub(super) fn tensors(&self) -> impl Iterator<Item = usize> + '_ {
        let (one, many): (Option<usize>, &[Option<usize>]) = match self {
            Arg::Tensor(n) => (Some(*n), &[]),
            Arg::Tensors(list) => (None, list),
            Arg::Value(_) | Arg::Number(..) => (None, &[]),
        };
        one.into_iter().chain(many.iter().flatten().copied())
    }
    #[inline]
    pub(super) fn value<'a>(&'a self, now: &'a [Option<Tensor>], numbers: Numbers) -> Result<Value<'a>> {
        Ok(match self {
            Arg::Value(v) => v.reborrow(),
            Arg::Number(n, _) => Value::Scalar(n.now(numbers).ok_or_else(missing)?),
            Arg::Tensor(n) => Value::Tensor(now[*n].as_ref().ok_or_else(missing)?),
            Arg::Tensors(list) => {
                let one = |n: &Option<usize>| n.map(|n| now[n].clone().ok_or_else(missing)).transpose();
                Value::Tensors(list.iter().map(one).collect::<Result<_>>()?)
            }
        })
    }
    pub(super) fn text(&self) -> String {
        match self {
            Arg::Tensor(n) => format!("%{n}"),
            Arg::Tensors(list) => {
                let each: Vec<String> = list.iter().map(|n| n.map_or("None".into(), |n| format!("%{n}"))).collect();
                format!("[{}]", each.join(", "))
            }
            Arg::Value(Value::Scalar(s)) => format!("{s:?}"),
            Arg::Number(n, _) => format!("{{{n}}}"),
            Arg::Value(v) => show(v),
        }
    }
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Call { op, .. } => op.name(),
            Step::Alias { .. } => "alias",
            Step::SetGrad { .. } => "set_grad",
            Step::Read { .. } => "read",
        }
    }
    pub(super) fn op(&self) -> Option<&'static Op> {
        if let Step::Call { op, .. } = self { Some(op) } else { None }
    }
    /// Whether it only shows memory otherwise.
    pub(super) fn is_view(&self) -> bool {
        let Step::Call { op, form: Form::Functional, .. } = self else { return false };
        matches!(op.body, Body::View(_) | Body::ViewAs(_) | Body::Views(_))
    }
    pub(super) fn reads(&self, mut each: impl FnMut(usize)) {
        match self {
            Step::Call { args, outs, .. } => {
                args.iter().flat_map(Arg::tensors).chain(outs.iter().copied()).for_each(each);
            }
            Step::Alias { of, .. } | Step::Read { of, .. } => each(*of),
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
            Step::SetGrad { .. } | Step::Read { .. } => {}
        }
    }
    /// The tensors whose memory a call writes to, other than new results.
    pub(super) fn writes(&self, each: impl FnMut(usize)) {
        let Step::Call { op, form, args, outs, .. } = self else { return };
        let written = args.iter().enumerate().filter(|(i, _)| op.sig.written & (1 << i) != 0);
        let target = args.iter().find_map(|a| if let Arg::Tensor(n) = a { Some(*n) } else { None });
        let target = target.filter(|_| *form == Form::InPlace);
        written.flat_map(|(_, a)| a.tensors()).chain(outs.iter().copied()).chain(target).for_each(each);
    }
    pub(super) fn text(&self, open: impl Fn(usize) -> bool) -> String {
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
            Step::Read { of, first } => format!("read {first} = %{of}.item()"),
        }
    }
}
