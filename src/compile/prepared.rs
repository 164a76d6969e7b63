//! Steps of which all but the values is known before they run: views, kernels, copies into new memory.
//!
//! What a call works out of its arguments (shapes, dtypes, strides of the results, whether they fit together) was worked out
//! when it was recorded, and holds for tensors that look as they did then. For others the step runs as a call.

use super::look::Look;
use super::step::{Arg, Step, missing};
use crate::autograd::{diagnostics, mode};
use crate::device::Device;
use crate::dispatch::run_kernel_as;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::number::Numbers;
use crate::op::tracer::Form;
use crate::op::{Args, Body, Call, Op, Value};
use crate::tensor::{INFERENCE, Meta, Tensor};
use smallvec::SmallVec;

pub struct Prepared {
    /// With their places in the recording.
    pub steps: Vec<(usize, Step)>,
    /// What the tensors that it takes look like.
    takes: Vec<(usize, Look)>,
    work: Work,
}

enum Work {
    /// A view of memory that nobody else sees as a view; `ahead` elements further than its base begins.
    View {
        of: usize,
        ahead: usize,
        result: usize,
        look: Look,
    },
    Kernel {
        op: &'static Op,
        args: Vec<Arg>,
        results: SmallVec<[usize; 1]>,
        looks: Vec<Look>,
    },
    /// A copy in new memory; or, where nobody reads the source afterwards, its own memory.
    Copy {
        from: usize,
        result: usize,
        look: Look,
        by: &'static Op,
        takes_over: bool,
    },
}

impl Look {
    /// Whether the tensor is one like this, wherever it begins.
    pub(super) fn is(&self, t: &Tensor) -> bool {
        let m = t.meta();
        m.dtype == self.dtype
            && crate::layout::same(&m.layout.shape, &self.layout.shape)
            && crate::layout::same(&m.layout.strides, &self.layout.strides)
            && m.storage.device() == self.device
    }
}

impl Prepared {
    /// A view whose result is seen by steps alone. None where its layout depends on where its base begins.
    pub fn view(origin: usize, step: &Step, looks: &[Look]) -> Option<Prepared> {
        let Step::Call { form: Form::Functional, args, results, .. } = step else { return None };
        let (Some(Arg::Tensor(of)), &[result]) = (args.first(), &results[..]) else { return None };
        let (base, look) = (&looks[*of], &looks[result]);
        let seen_at = |offset: usize| Prepared::view_of(step, &Layout { offset, ..base.layout.clone() }, base.dtype);
        let ahead = look.layout.offset.checked_sub(base.layout.offset)?;
        for offset in [0, 64] {
            let seen = seen_at(offset)?;
            if seen.shape != look.layout.shape || seen.strides != look.layout.strides || seen.offset != offset + ahead {
                return None;
            }
        }
        let work = Work::View { of: *of, ahead, result, look: look.clone() };
        Some(Prepared { steps: vec![(origin, step.clone())], takes: vec![(*of, base.clone())], work })
    }
    /// The layout of a view of a tensor of this layout.
    pub fn view_of(step: &Step, base: &Layout, dtype: DType) -> Option<Layout> {
        let Step::Call { op, form: Form::Functional, args, .. } = step else { return None };
        let Body::View(layout) = &op.body else { return None };
        let hollow = Tensor::of_layout(base.clone(), dtype, Device::Meta).ok()?;
        let mut values = Args::new();
        for (i, arg) in args.iter().enumerate() {
            values.push(match arg {
                Arg::Value(v) => v.reborrow(),
                Arg::Tensor(_) if i == 0 => Value::Tensor(&hollow),
                _ => return None,
            });
        }
        layout(&Call { op, args: &values }).ok()
    }
    /// A kernel that makes its results.
    pub fn kernel(origin: usize, step: &Step, looks: &[Look]) -> Option<Prepared> {
        let Step::Call { op, form: Form::Functional, args, results, .. } = step else { return None };
        let Body::Kernel(kernel) = &op.body else { return None };
        let looks_of = |list: &[usize]| list.iter().map(|&n| looks[n].clone()).collect::<Vec<_>>();
        let made = looks_of(results);
        if kernel.reads_host || op.sig.written != 0 || results.is_empty() || made.iter().any(|l| l.layout.offset != 0) {
            return None;
        }
        let mut takes = Vec::new();
        step.reads(|n| takes.push((n, looks[n].clone())));
        let work = Work::Kernel { op, args: args.clone(), results: results.clone(), looks: made };
        Some(Prepared { steps: vec![(origin, step.clone())], takes, work })
    }
    /// New memory and the first write to it, a copy of a whole tensor. `last_read` where nobody reads the source's memory
    /// afterwards, which then becomes the copy's.
    pub fn copy(made: (usize, &Step), copied: (usize, &Step), looks: &[Look], last_read: bool) -> Option<Prepared> {
        let Step::Call { results, .. } = made.1 else { return None };
        let Step::Call { op, form: Form::InPlace, args, .. } = copied.1 else { return None };
        let (&[result], [Arg::Tensor(to), Arg::Tensor(from), ..]) = (&results[..], &args[..]) else { return None };
        let (look, source) = (&looks[result], &looks[*from]);
        if result != *to || look.device != source.device || look.layout.shape != source.layout.shape {
            return None;
        }
        let alike = look.dtype == source.dtype && look.layout.strides == source.layout.strides;
        let takes_over = last_read && alike && source.layout.offset == 0 && look.layout.offset == 0;
        let work = Work::Copy { from: *from, result, look: look.clone(), by: op, takes_over };
        let steps = vec![(made.0, made.1.clone()), (copied.0, copied.1.clone())];
        Some(Prepared { steps, takes: vec![(*from, source.clone())], work })
    }

    /// Runs the steps; false, with nothing done, where they are to be run as calls.
    pub fn run(&self, now: &mut [Option<Tensor>], numbers: Numbers) -> Result<bool> {
        let at = |n: usize| now.get(n).and_then(|t| t.as_ref());
        if !self.takes.iter().all(|(n, look)| at(*n).is_some_and(|t| look.is(t))) {
            return Ok(false);
        }
        match &self.work {
            Work::View { of, ahead, result, look } => {
                let whole = at(*of).ok_or_else(missing)?;
                let m = whole.meta();
                let layout = || Layout { offset: m.layout.offset + ahead, ..look.layout.clone() };
                let meta = || Meta { storage: m.storage.clone(), layout: layout(), dtype: look.dtype };
                let part = Tensor::build(meta, || None);
                part.set_flag(INFERENCE, whole.flag(INFERENCE));
                now[*result] = Some(part);
            }
            Work::Kernel { op, args, results, looks } => {
                let mut made: SmallVec<[Tensor; 2]> = SmallVec::new();
                for look in looks {
                    made.push(Tensor::of_layout(look.layout.clone(), look.dtype, look.device)?);
                }
                let mut values = Args::new();
                for arg in args {
                    values.push(arg.value(now, numbers)?);
                }
                run_kernel_as(&Call { op, args: &values }, &made)?;
                drop(values);
                let inference = mode::inference_enabled();
                for (&n, t) in results.iter().zip(made) {
                    t.set_flag(INFERENCE, inference);
                    now[n] = Some(t);
                }
            }
            Work::Copy { from, result, look, by, takes_over } => {
                let source = at(*from).ok_or_else(missing)?;
                let m = source.meta();
                let whole = look.layout.end() * look.dtype.size() == m.storage.bytes();
                let copy = if *takes_over && whole && m.layout.offset == 0 && m.storage.version() == 0 {
                    Tensor::from_meta(m.clone())
                } else {
                    let new = Tensor::of_layout(look.layout.clone(), look.dtype, look.device)?;
                    new.copy_raw(source)?;
                    new
                };
                diagnostics::written(&copy, by);
                copy.set_flag(INFERENCE, mode::inference_enabled());
                now[*result] = Some(copy);
            }
        }
        Ok(true)
    }
}
