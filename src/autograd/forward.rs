//! Forward mode: its levels, and the tangents that tensors have at them.
//!
//! Each level of forward AD belongs to a thread; levels nest. A call propagates the tangents of the levels that it sees
//! (`dispatch::jvp`); while the tangents of one level are computed only outer levels are seen, so that a tangent of an inner
//! level may have tangents of outer ones and no other combination exists. No mode but its own turns forward mode off.
//!
//! Invariants of a tangent: it has the shape, dtype, device and, where that matters to views, the strides of its
//! primal; and two tangents share memory where their primals do, and nowhere else. So writes in place to a primal are
//! repeated on its tangent, and every view sees both.

use super::{engine_ops, history};
use crate::error::{Error, Result, Show};
use crate::layout::{Layout, same, same_dims};
use crate::rt::thread_state::thread_state;
use crate::storage::Storage;
use crate::tensor::{HAS_FN, Meta, Tangents, Tensor};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Levels of a thread at once: one bit each.
const LIMIT: usize = 32;
/// Cells of a level from which dead ones are looked for.
const CELLS: usize = 64;

/// A level, with the cells that hold its tangents.
struct Level {
    id: u64,
    cells: Vec<Weak<Tangents>>,
    /// The number of cells at which the dead ones are removed.
    full: usize,
}

impl Drop for Level {
    fn drop(&mut self) {
        for cell in self.cells.drain(..).filter_map(|c| c.upgrade()) {
            drop(cell.remove(self.id));
        }
    }
}

thread_local! {
    static LEVELS: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
    /// What calls will see when forward mode is on again; `None` while it is on.
    static HIDDEN: Cell<Option<u32>> = const { Cell::new(None) };
}
static LAST: AtomicU64 = AtomicU64::new(0);

/// The levels that calls of this thread see, one bit for each.
#[inline]
pub fn visible() -> u32 {
    thread_state(|thread| thread.forward.get())
}
/// The numbers of the levels in a mask, outer levels first.
pub fn levels(mask: u32) -> impl Iterator<Item = usize> {
    (0..LIMIT).filter(move |i| mask & (1 << i) != 0)
}
/// All levels of this thread, whether calls see them now or not.
pub fn open() -> u32 {
    LEVELS.with_borrow(|levels| ((1u64 << levels.len()) - 1) as u32)
}
/// Whether derivatives of what runs now may be wanted, so that it must consist of differentiable calls.
#[inline]
pub fn differentiating() -> bool {
    thread_state(|thread| thread.grad.get() || thread.forward.get() != 0)
}
/// Whether derivatives with respect to `t` are taken: it requires grad and is recorded, or has a tangent.
pub fn is_differentiated(t: &Tensor) -> bool {
    (super::grad_enabled() && t.requires_grad()) || levels(visible()).any(|level| is_dual(t, level))
}

fn set_visible(change: impl FnOnce(u32) -> u32) {
    match HIDDEN.get() {
        Some(mask) => HIDDEN.set(Some(change(mask))),
        None => thread_state(|thread| thread.forward.set(change(thread.forward.get()))),
    }
}

/// Enters a level and returns its number, by which it is known until it ends.
pub fn enter() -> Result<usize> {
    LEVELS.with_borrow_mut(|levels| {
        let level = levels.len();
        if level == LIMIT {
            return Err(Error::runtime(format!(
                "forward mode: {LIMIT} levels are open; expected fewer. Is a level entered and never left?"
            )));
        }
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        levels.push(Level { id, cells: Vec::new(), full: CELLS });
        set_visible(|mask| mask | 1 << level);
        Ok(level)
    })
}
/// Leaves the innermost level, whose tangents are dropped.
pub fn exit(level: usize) -> Result<()> {
    let ended = LEVELS.with_borrow_mut(|levels| match levels.len() == level + 1 {
        true => Ok(levels.pop()),
        false => Err(Error::runtime(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported.",
        )),
    })?;
    set_visible(|mask| mask & !(1 << level));
    drop(ended); // outside the list: dropping a tangent may run Python
    Ok(())
}

pub fn enabled() -> bool {
    HIDDEN.get().is_none()
}
/// Turns forward mode on or off in this thread; levels stay. Returns whether it was on.
pub fn set_enabled(on: bool) -> bool {
    let before = enabled();
    if before != on {
        match on {
            true => thread_state(|thread| thread.forward.set(HIDDEN.take().unwrap_or(0))),
            false => HIDDEN.set(Some(thread_state(|thread| thread.forward.replace(0)))),
        }
    }
    before
}

/// Until it is dropped, calls see only the levels of a mask.
pub struct Visible(u32);

impl Visible {
    pub fn only(mask: u32) -> Visible {
        Visible(thread_state(|thread| thread.forward.replace(mask)))
    }
    /// The levels outside `level`, of those seen now.
    pub fn outside(level: usize) -> Visible {
        Visible::only(visible() & ((1 << level) - 1))
    }
}
impl Drop for Visible {
    fn drop(&mut self) {
        thread_state(|thread| thread.forward.set(self.0));
    }
}

/// The levels of a thread, to be moved to another that works for it meanwhile.
pub(super) struct Moved {
    levels: Vec<Level>,
    hidden: Option<u32>,
    visible: u32,
}

impl Moved {
    pub fn away() -> Moved {
        Moved {
            levels: LEVELS.take(),
            hidden: HIDDEN.take(),
            visible: thread_state(|thread| thread.forward.replace(0)),
        }
    }
    pub fn here(self) {
        LEVELS.set(self.levels);
        HIDDEN.set(self.hidden);
        thread_state(|thread| thread.forward.set(self.visible));
    }
}

fn id(level: usize) -> Result<u64> {
    let found = LEVELS.with_borrow(|levels| levels.get(level).map(|l| l.id));
    found.ok_or_else(|| {
        Error::runtime(
            "Trying to access a forward AD level with an invalid index. This index was either not created or is already \
             deleted.",
        )
    })
}

fn entry(t: &Tensor, id: u64) -> Option<Option<Tensor>> {
    t.tangents().and_then(|cell| cell.get(id))
}

/// Whether `t` has a tangent at a level, of its own or as a view of a tensor that has.
pub fn is_dual(t: &Tensor, level: usize) -> bool {
    let Ok(id) = id(level) else { return false };
    match entry(t, id) {
        Some(own) => own.is_some(),
        None => t.view_info().is_some_and(|v| entry(&v.base, id).flatten().is_some()),
    }
}
/// Whether `t` was declared to have no tangent at a level.
pub fn is_constant(t: &Tensor, level: usize) -> bool {
    id(level).is_ok_and(|id| entry(t, id).is_some_and(|own| own.is_none()))
}

/// The tangent at a level; that of a view whose base has one is a view of the base's.
pub fn tangent(t: &Tensor, level: usize) -> Result<Option<Tensor>> {
    let id = id(level)?;
    if let Some(own) = entry(t, id) {
        return Ok(own);
    }
    let Some(view) = t.view_info() else { return Ok(None) };
    let Some(of_base) = entry(&view.base, id).flatten() else { return Ok(None) };
    let _outer = Visible::outside(level);
    let part = history::same_view(t, view, &of_base)?;
    put(t, level, Some(part.clone()))?;
    Ok(Some(part))
}

/// Sets a tangent that keeps the invariants, or declares that there is none.
pub fn put(t: &Tensor, level: usize, tangent: Option<Tensor>) -> Result<()> {
    let id = id(level)?;
    let cell = t.tangents_or_new();
    if cell.set(id, tangent) {
        LEVELS.with_borrow_mut(|levels| {
            let Some(own) = levels.get_mut(level) else { return };
            if own.cells.len() >= own.full {
                own.cells.retain(|c| c.strong_count() > 0);
                own.full = CELLS.max(own.cells.len() * 2);
            }
            own.cells.push(Arc::downgrade(&cell));
        });
    }
    if t.flag(HAS_FN)
        && let Some(edge) = t.slot().grad_fn.clone()
        && let Some(node) = edge.node()
    {
        super::Node::of_ref(node).keep_tangents(edge.output(), &cell);
    }
    Ok(())
}

/// Sets the tangent of `t` at a level: `tangent` itself if it lies in memory as `t` does, else a copy that does.
pub fn set(t: &Tensor, level: usize, tangent: &Tensor) -> Result<()> {
    if t.shape() != tangent.shape() {
        return Err(Error::runtime(format!(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not \
             supported. Tensor is of size {} while the given forward gradient is of size {}.",
            Show(t.shape()),
            Show(tangent.shape())
        )));
    }
    let _outer = Visible::outside(level);
    let fitting = if lies_alike(t, tangent) { tangent.clone() } else { copied(t, tangent)? };
    put(t, level, Some(fitting))
}

/// Gives `t`, which has no tangent, one of zeros to write to; a view gets a part of its base's.
pub fn start(t: &Tensor, level: usize) -> Result<Tensor> {
    let _outer = Visible::outside(level);
    match t.view_info().filter(|_| !is_constant(t, level)) {
        None => {
            let zeros = like(t)?;
            (engine_ops().zero_)(&zeros)?;
            put(t, level, Some(zeros.clone()))?;
            Ok(zeros)
        }
        Some(view) => {
            let zeros = like(&view.base)?;
            (engine_ops().zero_)(&zeros)?;
            put(&view.base, level, Some(zeros.clone()))?;
            let part = history::same_view(t, view, &zeros)?;
            put(t, level, Some(part.clone()))?;
            Ok(part)
        }
    }
}

fn lies_alike(t: &Tensor, tangent: &Tensor) -> bool {
    let (a, b) = (t.meta(), tangent.meta());
    let strides = || a.layout.shape.iter().zip(a.layout.strides.iter().zip(&b.layout.strides));
    let placed =
        !a.storage.same(&b.storage) && a.layout.offset == b.layout.offset && a.storage.bytes() == b.storage.bytes();
    a.dtype == b.dtype
        && a.storage.device() == b.storage.device()
        && (a.layout.numel() == 0 || placed && strides().all(|(&d, (x, y))| d == 1 || x == y))
        && (!b.layout.has_internal_overlap())
}

/// New memory in which a tangent of `t` lies as `t` does, as far as views of `t` can tell.
fn like(t: &Tensor) -> Result<Tensor> {
    let own = t.layout();
    if own.is_dense() || t.view_info().is_some() || own.has_internal_overlap() {
        return (engine_ops().empty)(&own.fresh(), t);
    }
    // A base with gaps, which views of it may cover.
    let layout = Layout { offset: 0, shape: same_dims(&own.shape), strides: same_dims(&own.strides) };
    let storage = Storage::zeroed(layout.end() * t.dtype().size(), t.device())?;
    Ok(Tensor::from_meta(Meta { storage, layout, dtype: t.dtype() }))
}

fn copied(t: &Tensor, tangent: &Tensor) -> Result<Tensor> {
    if tangent.dtype().is_complex() && !t.dtype().is_complex() {
        return Err(Error::runtime(format!(
            "forward mode: the tangent of a {} tensor is {}; expected a real one. Take its real part.",
            t.dtype().name(),
            tangent.dtype().name()
        )));
    }
    let copy = like(t)?;
    debug_assert!(same(&t.layout().shape, &copy.layout().shape));
    (engine_ops().copy_)(&copy, tangent)?;
    Ok(copy)
}
