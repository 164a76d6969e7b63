//! Saved tensors: the tensors that a node's formula reads, with the version at which they were saved.
//!
//! Note [Saved versions]: `dispatch` bumps a storage's version at each in-place op; only this file compares versions.
//! An input is saved as its handle (inputs precede the node, so no cycle arises). An output is saved without its
//! `grad_fn`, which would be the node itself, and gets it back when it is unpacked.

use super::node::Node;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::gradient::TensorMeta;
use crate::rt::thread_state::{ThreadState, thread_state};
use crate::storage::Storage;
use crate::tensor::{Edge, INFERENCE, Meta, Tensor, Visit};
use std::cell::RefCell;
use std::sync::Arc;

/// A tensor packed by hooks; returns it when unpacked.
pub trait Unpacks: Send + Sync {
    fn unpack(&self) -> Result<Tensor>;
    /// Reports the objects of another runtime that it owns.
    fn owned(&self, _visit: &mut Visit) {}
}
pub type Unpack = Arc<dyn Unpacks>;
/// Packs a tensor that is about to be saved; returns how to unpack it.
pub type SavedHooks = Arc<dyn Fn(&Tensor) -> Result<Unpack> + Send + Sync>;

thread_local! {
    static HOOKS: RefCell<Vec<SavedHooks>> = const { RefCell::new(Vec::new()) };
    static DISABLED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs hooks; an error where they are disabled.
pub fn push_hooks(hooks: SavedHooks) -> Result<()> {
    allowed()?;
    change_hooks(|list| list.push(hooks));
    Ok(())
}
fn change_hooks(change: impl FnOnce(&mut Vec<SavedHooks>)) {
    HOOKS.with_borrow_mut(|list| {
        change(list);
        thread_state(|thread| thread.hooked.set(!list.is_empty()));
    });
}
/// From now on, hooks are rejected with this message in this thread; returns the previous message.
pub fn disable_hooks(message: Option<String>) -> Option<String> {
    DISABLED.replace(message)
}
fn allowed() -> Result<()> {
    DISABLED.with_borrow(|d| d.as_ref().map_or(Ok(()), |m| Err(Error::runtime(m.clone()))))
}
/// Removes, when dropped, the hooks installed since: a hook that backward calls may leave others behind.
pub(super) struct Installed(usize);

impl Installed {
    pub fn so_far() -> Installed {
        Installed(HOOKS.with_borrow(Vec::len))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let mut left = Vec::new();
        if HOOKS.with_borrow(Vec::len) > self.0 {
            change_hooks(|list| left = list.split_off(self.0));
        }
        drop(left); // outside the list: it may run Python
    }
}

/// A thread's saved-tensor hooks, to be installed in another thread.
pub(super) struct Modes(Vec<SavedHooks>, Option<String>);

impl Modes {
    pub fn here() -> Modes {
        Modes(HOOKS.with_borrow(Clone::clone), DISABLED.with_borrow(Clone::clone))
    }
    pub fn set(self) {
        change_hooks(|list| *list = self.0);
        DISABLED.set(self.1);
    }
}

/// Whether hooks currently pack saved tensors.
#[inline]
pub fn hooked(thread: &ThreadState) -> bool {
    thread.hooked.get()
}
pub fn pop_hooks() {
    let mut last = None;
    change_hooks(|list| last = list.pop());
    drop(last); // outside the list: it may run Python
}

/// Small, since every node has space for two inline.
#[derive(Clone)]
pub enum Saved {
    Input {
        tensor: Tensor,
        version: u32,
        leaf: bool,
    },
    Output {
        storage: Storage,
        /// `None` if row-major from the start of its storage.
        layout: Option<Box<Layout>>,
        version: u32,
        output: u32,
    },
    Packed(Box<Packed>),
    PackedOutput(Box<(Unpack, u32)>),
}

/// Packed by hooks, with its edge.
#[derive(Clone)]
pub struct Packed {
    pub(super) unpack: Unpack,
    pub(super) edge: Option<Edge>,
}

impl Saved {
    pub fn input(t: &Tensor) -> Result<Saved> {
        if t.flag(INFERENCE) {
            return Err(Error::runtime(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in \
                 computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it \
                 in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
            ));
        }
        match packed(t)? {
            Some(unpack) => Ok(Saved::Packed(Box::new(Packed { unpack, edge: super::history::grad_edge(t)? }))),
            None => {
                t.storage().set_saved();
                Ok(Saved::Input { tensor: t.clone(), version: t.version(), leaf: t.is_leaf() })
            }
        }
    }
    pub fn output(t: &Tensor, output: usize) -> Result<Saved> {
        match packed(t)? {
            // The output's edge is the node itself, which must not own itself; `unpack` restores it from the output
            // number.
            Some(unpack) => Ok(Saved::PackedOutput(Box::new((unpack, output as u32)))),
            None => {
                let m = t.meta();
                m.storage.set_saved();
                let plain = m.layout.offset == 0 && m.layout.is_row_major();
                let layout = (!plain).then(|| Box::new(m.layout.clone()));
                let version = m.storage.version();
                Ok(Saved::Output { storage: m.storage.clone(), layout, version, output: output as u32 })
            }
        }
    }
    /// The tensor as it was saved; an error if it has been modified since. `made` is the metadata of its node's
    /// outputs.
    pub fn unpack(self, owner: &Arc<Node>, made: &[TensorMeta]) -> Result<Tensor> {
        match self {
            Saved::Input { tensor, version, leaf } => {
                check(&tensor, version)?;
                if tensor.is_leaf() && !leaf {
                    return Err(detached());
                }
                Ok(tensor)
            }
            Saved::Output { version, output, .. } => {
                let t = self.output_tensor(made)?;
                t.set_grad_fn(Edge::Node(owner.clone(), output));
                check(&t, version)?;
                Ok(t)
            }
            Saved::Packed(p) => Ok(with_edge(p.unpack.unpack()?, p.edge)),
            Saved::PackedOutput(p) => Ok(with_edge(p.0.unpack()?, Some(Edge::Node(owner.clone(), p.1)))),
        }
    }

    /// A saved output without its history.
    fn output_tensor(&self, made: &[TensorMeta]) -> Result<Tensor> {
        let Saved::Output { storage, layout, output, .. } = self else {
            return Err(Error::internal("no saved output"));
        };
        let meta = &made[*output as usize];
        let layout = layout.as_ref().map_or_else(|| Layout::contiguous(&meta.shape), |l| Layout::clone(l));
        if layout.numel() > 0 && layout.end() * meta.dtype.size() > storage.bytes() {
            return Err(Error::runtime("a result was given other data while it was saved for backward"));
        }
        Ok(Tensor::from_meta(Meta { storage: storage.clone(), layout, dtype: meta.dtype }))
    }

    /// Packs, by hooks, a tensor that was saved without.
    pub fn repack(&mut self, hooks: &SavedHooks, made: &[TensorMeta]) -> Result<()> {
        allowed()?;
        *self = match self {
            Saved::Input { tensor, version, .. } => {
                check(tensor, *version)?;
                let edge = super::history::grad_edge(tensor)?;
                Saved::Packed(Box::new(Packed { unpack: pack(hooks, &tensor.detach())?, edge }))
            }
            Saved::Output { output, .. } => {
                let output = *output;
                Saved::PackedOutput(Box::new((pack(hooks, &self.output_tensor(made)?)?, output)))
            }
            _ => {
                return Err(Error::runtime(
                    "Calling register_hooks on a saved tensor whose hooks have already been set. \
                     Hint: only one pair of hooks is allowed at a time.",
                ));
            }
        };
        Ok(())
    }
}

#[cold]
pub fn freed_hooks() -> Error {
    Error::runtime(
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed \
         when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph \
         a second time or if you need to access saved variables after calling backward.",
    )
}

/// Packs a tensor by the innermost hooks, if any; what they compute is not recorded.
fn packed(t: &Tensor) -> Result<Option<Unpack>> {
    let last = || HOOKS.with_borrow(|list| list.last().cloned());
    let Some(hooks) = thread_state(hooked).then(last).flatten() else { return Ok(None) };
    pack(&hooks, t).map(Some)
}

/// Packs a tensor, which the hook must not modify.
fn pack(hooks: &SavedHooks, t: &Tensor) -> Result<Unpack> {
    let _unrecorded = super::GradGuard::new(false);
    let before = t.version();
    let unpack = hooks(t)?;
    if t.version() != before {
        return Err(Error::runtime(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be \
             modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need \
             to perform in-place operations on the input to a pack hook.",
        ));
    }
    Ok(unpack)
}

/// What a hook unpacked, as the tensor that was saved: itself where neither needs a gradient.
fn with_edge(t: Tensor, edge: Option<Edge>) -> Tensor {
    if edge.is_none() && !t.requires_grad() {
        return t;
    }
    let t = t.detach();
    if let Some(e) = edge {
        t.set_grad_fn(e);
    }
    t
}

fn check(t: &Tensor, saved: u32) -> Result<()> {
    let now = t.version();
    if now == saved {
        return Ok(());
    }
    let made_by = match &t.slot().grad_fn {
        Some(e) => format!(", which is output {} of {},", e.output(), super::history::short_name(&e.name())),
        None => String::new(),
    };
    let hint = match super::mode::anomaly() {
        0 => {
            "enable anomaly detection to find the operation that failed to compute its gradient, with \
             torch.autograd.set_detect_anomaly(True, check_nan=False)."
        }
        _ => {
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in \
             question was changed in there or anywhere later. Good luck!"
        }
    };
    let place = super::diagnostics::last_write(t).map_or(String::new(), |p| format!(" It was changed last by {p}."));
    Err(Error::runtime(format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [torch.{}Tensor {}]{made_by} is at version {now}; expected version {saved} instead. Hint: {hint}{place}",
        t.dtype().scalar_type_name(),
        crate::error::Show(t.shape()),
    )))
}

#[cold]
fn detached() -> Error {
    Error::runtime(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please \
         use out-of-place `.detach()` instead",
    )
}
