//! `vmap`: a function is run once on the first example while its calls are recorded; then the calls that its results need
//! run on the whole batch, each by the batch rule of its op. See `docs/decisions/vmap.md`.

mod recorder;
mod replay;

pub use self::recorder::{CustomRule, Randomness, Recorder};
pub use self::replay::warn_of_loops;

use crate::error::{Error, Result};
use crate::op::Ints;
use crate::op::generator::default_generator;
use crate::op::tracer::{self, Tracer};
use crate::ops::movement::copy::CLONE;
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

/// The innermost recording of this thread.
pub fn innermost() -> Option<Rc<Recorder>> {
    RUNNING.with_borrow(|all| all.last().cloned())
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

/// The first example of each input: in memory of its own, since what is written to it is written again in the batch.
fn examples(inputs: &[Input]) -> Result<Vec<Tensor>> {
    let mut made: Vec<Tensor> = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        let same = inputs[..i].iter().position(|b| b.tensor.same(&input.tensor) && b.dim == input.dim);
        made.push(match same {
            Some(at) => made[at].clone(),
            None => CLONE.call((SELECT.call((&input.tensor, input.dim, 0)),)).ok()?,
        });
    }
    Ok(made)
}

/// The input with the batch as its first dimension.
fn batch_first(input: &Input) -> Result<Tensor> {
    if input.dim == 0 {
        return Ok(input.tensor.clone());
    }
    let n = input.tensor.ndim();
    let dims: Ints = std::iter::once(input.dim).chain((0..n).filter(|d| *d != input.dim)).map(|d| d as i64).collect();
    PERMUTE.call((&input.tensor, dims)).ok()
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
    let generator = default_generator();
    let drawn = generator.state();
    let recorder = Rc::new(Recorder::new(&examples, randomness));
    let results = {
        let before = tracer::install(None);
        recorder.forward_to(before.clone());
        tracer::install(Some(recorder.clone()));
        RUNNING.with_borrow_mut(|all| all.push(recorder.clone()));
        let _installed = Installed(before);
        function(&examples)?
    };
    if let Some(e) = recorder.late_refusal() {
        return Err(e.into());
    }
    if randomness == Randomness::Different {
        generator.set_state(drawn.0, drawn.1);
        recorder.restore_generators();
    }
    let mut replay = replay::Replay::new(size);
    for (input, example) in inputs.iter().zip(&examples) {
        replay.insert(example, batch_first(input)?);
    }
    let steps = recorder.into_steps(&results);
    replay.run(&steps)?;
    let output = |t: &Tensor| {
        Ok(match recorder.is_batched(t) {
            true => Output::Batched(replay.batch_of(t)?),
            false => Output::Same(t.clone()),
        })
    };
    Ok(results.iter().map(output).collect::<Result<_>>()?)
}
