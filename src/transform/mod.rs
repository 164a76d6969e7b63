//! `vmap`: a function is run once on the first example while its calls are recorded; then the calls that its results need
//! run on the whole batch, each by the batch rule of its op. See `docs/decisions/vmap.md`.

mod recorded;
mod recorder;
mod replay;

pub use self::recorder::{Randomness, Recorder};
pub use self::replay::warn_of_loops;

use self::recorded::Recorded;
use crate::error::{Error, Result};
use crate::op::Ints;
use crate::op::generator::DefaultStates;
use crate::op::tracer::{self, Tracer};
use crate::ops::create::full::ONES;
use crate::ops::movement::copy::{CLONE, COPY_};
use crate::ops::movement::triangular::TRIU;
use crate::ops::view::reshape::{PERMUTE, SELECT};
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// The recordings that run in this thread, the innermost last.
    static RUNNING: RefCell<Vec<Rc<Recorder>>> = const { RefCell::new(Vec::new()) };
}

/// How many recordings run in this thread, one inside another.
pub fn depth() -> usize {
    RUNNING.with_borrow(Vec::len)
}

/// The innermost recording of this thread for which one of the tensors depends on the example.
pub fn batching(tensors: &[Tensor]) -> Option<Rc<Recorder>> {
    let batches = |r: &&Rc<Recorder>| tensors.iter().any(|t| r.is_batched(t));
    RUNNING.with_borrow(|all| all.iter().rev().find(batches).cloned())
}

/// A tensor with the dimension of the batch.
pub struct Input {
    pub tensor: Tensor,
    pub dim: usize,
}

/// A result: with the batch first, or the same for every example.
pub enum Output {
    Batched(Tensor),
    Same(Tensor),
}

/// Puts the tracer before back.
struct Installed(Option<Rc<dyn Tracer>>);

impl Drop for Installed {
    fn drop(&mut self) {
        tracer::install(self.0.take());
        let ended = RUNNING.with_borrow_mut(Vec::pop);
        drop(ended);
    }
}

/// An example for a batch without any: ones, which are zero below the diagonal, so that matrices have inverses and factors.
fn made_up(input: &Input) -> Result<Tensor> {
    let t = &input.tensor;
    let mut shape: Ints = t.shape().iter().map(|&d| d as i64).collect();
    shape.remove(input.dim);
    let ones = ONES.call((shape.clone(), t.dtype(), t.device()));
    if t.dtype().is_differentiable() && shape.len() > 1 { TRIU.call((ones,)).ok() } else { ones.ok() }
}

/// The first example of each input: in memory of its own, since what is written to it is written again in the batch.
fn examples(inputs: &[Input]) -> Result<Vec<Tensor>> {
    let mut made: Vec<Tensor> = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        let same = inputs[..i].iter().position(|b| b.tensor.same(&input.tensor) && b.dim == input.dim);
        made.push(match same {
            Some(at) => made[at].clone(),
            None if input.tensor.shape()[input.dim] == 0 => made_up(input)?,
            None => CLONE.call((SELECT.call((&input.tensor, input.dim, 0)),)).ok()?,
        });
    }
    Ok(made)
}

impl Input {
    /// The tensor with the batch as its first dimension.
    fn moved(&self) -> Result<Tensor> {
        if self.dim == 0 {
            return Ok(self.tensor.clone());
        }
        let n = self.tensor.ndim();
        let dims: Ints = std::iter::once(self.dim).chain((0..n).filter(|d| *d != self.dim)).map(|d| d as i64).collect();
        PERMUTE.call((&self.tensor, dims)).ok()
    }
    /// The same; where views go by strides, lying in memory as the example does, unless elements share memory: then what is a
    /// view of the example is a view of the batch.
    fn batch_first(&self, example: &Tensor, by_strides: bool) -> Result<Tensor> {
        let moved = self.moved()?;
        let l = moved.layout();
        let shares = l.shape.iter().zip(&l.strides).any(|(&size, &stride)| size > 1 && stride == 0);
        if shares || !by_strides { Ok(moved) } else { replay::placed(example, moved) }
    }
    /// Writes what a call has written to a copy that `batch_first` made.
    fn write_back(&self, batch: &Tensor) -> Result<()> {
        if batch.version() > 0 && !batch.storage().same(self.tensor.storage()) {
            COPY_.call_inplace((self.moved()?, batch))?;
        }
        Ok(())
    }
}

/// Runs `function` on every example of the inputs, whose batches have `size` examples.
///
/// Errors: those of `function`, which may be of another type; what the recording refuses (PyTorch's messages).
pub fn vmap<E: From<Error>>(
    inputs: &[Input],
    size: usize,
    randomness: Randomness,
    function: impl FnOnce(&[Tensor]) -> std::result::Result<Vec<Tensor>, E>,
) -> std::result::Result<Vec<Output>, E> {
    let examples = examples(inputs)?;
    let before = DefaultStates::now();
    let recorder = Rc::new(Recorder::new(&examples, randomness));
    let results = {
        let before = tracer::install(None);
        recorder.forward_to(before.clone());
        tracer::install(Some(recorder.clone()));
        RUNNING.with_borrow_mut(|all| all.push(recorder.clone()));
        let _installed = Installed(before);
        function(&examples)
    };
    let late = recorder.late_refusal();
    // The replay draws again what differs between examples; what was refused counts as not drawn.
    if late.is_some() || (results.is_ok() && randomness == Randomness::Different) {
        before.restore();
        recorder.restore_generators();
    }
    let results = results?;
    if let Some(e) = late {
        return Err(e.into());
    }
    let steps = recorder.into_steps(&results);
    let mut replay = replay::Replay::new(size, recorder.origins());
    let by_strides = steps.iter().any(Recorded::views_by_strides);
    let pairs = inputs.iter().zip(&examples);
    let batches = pairs.map(|(input, e)| input.batch_first(e, by_strides)).collect::<Result<Vec<_>>>()?;
    for (example, batch) in examples.iter().zip(&batches) {
        replay.insert(&recorder.first_form(example), batch.clone());
    }
    replay.run(&steps)?;
    inputs.iter().zip(&batches).try_for_each(|(input, batch)| input.write_back(batch))?;
    let output = |t: &Tensor| {
        Ok(match recorder.is_batched(t) {
            true => Output::Batched(replay.batch_of(t)?),
            false => Output::Same(t.clone()),
        })
    };
    Ok(results.iter().map(output).collect::<Result<_>>()?)
}
