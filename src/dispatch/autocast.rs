//! Autocast: in a region, calls of some ops cast their tensors first, as PyTorch's operator lists say.
//!
//! The casts are recorded, so the op saves what it computed with and its backward runs in that dtype. A call that casts runs
//! with autocast off inside, as does every op that is one node of the graph: the ops of its body are how it is implemented. Only
//! composites that are several nodes are looked into. In-place and `out=` calls never cast.

mod lists;

use super::call_as_given;
use crate::autograd;
use crate::device::{Device, Name};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Args, Call, Op, Outputs, Value, Vjp};
use crate::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a call does with its tensors; only floating-point ones on the region's device, except float64, take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Casts them to the region's dtype.
    Lower,
    /// Casts them to float32.
    Float32,
    /// Asks for a float32 result, unless the call names a dtype.
    Float32Result,
    /// Casts them to the widest among them and the region's dtype.
    Widest,
    /// Casts nothing: a composite here, but a kernel of PyTorch's.
    AsGiven,
    /// Raises this.
    Refused(&'static str),
}

/// The kinds of device that have a region of their own, with the dtype it starts with. Tensors live on the first two; the rest
/// keep a state for programs that set it.
const KINDS: [(&str, DType); 10] = [
    ("cpu", DType::BF16),
    ("gpu", DType::F16),
    ("cuda", DType::F16),
    ("xpu", DType::F16),
    ("mps", DType::F16),
    ("hpu", DType::BF16),
    ("mtia", DType::F16),
    ("maia", DType::BF16),
    ("ipu", DType::F16),
    ("xla", DType::BF16),
];

struct State {
    /// One bit per kind.
    enabled: Cell<u16>,
    dtypes: [Cell<DType>; KINDS.len()],
    nesting: Cell<i64>,
    caching: Cell<bool>,
    /// Leaves and their copies in the region's dtype, by the address of the leaf, which the entry keeps alive.
    casts: RefCell<HashMap<usize, (Tensor, Tensor)>>,
}

thread_local! {
    static STATE: State = State {
        enabled: Cell::new(0),
        dtypes: KINDS.map(|(_, dtype)| Cell::new(dtype)),
        nesting: Cell::new(0),
        caching: Cell::new(true),
        casts: RefCell::new(HashMap::new()),
    };
}

/// Threads in which autocast is on for a device: zero keeps the hot path at one relaxed load.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// The place of a kind in the state; `None` where autocast knows no such device.
pub fn kind(name: &str) -> Result<Option<usize>> {
    let found = |kind: &str| KINDS.iter().position(|(k, _)| *k == kind);
    match Name::parse(name) {
        Ok(name) => Ok(found(name.kind)),
        Err(e) => Err(e),
    }
}

pub fn enabled(kind: usize) -> bool {
    STATE.with(|s| s.enabled.get() & (1 << kind) != 0)
}
pub fn set_enabled(kind: usize, on: bool) {
    STATE.with(|s| set_bits(s, if on { s.enabled.get() | 1 << kind } else { s.enabled.get() & !(1 << kind) }));
}
pub fn dtype(kind: usize) -> DType {
    STATE.with(|s| s.dtypes[kind].get())
}
pub fn set_dtype(kind: usize, dtype: DType) {
    STATE.with(|s| s.dtypes[kind].set(dtype));
}
pub fn caching() -> bool {
    STATE.with(|s| s.caching.get())
}
pub fn set_caching(on: bool) {
    STATE.with(|s| s.caching.set(on));
}
/// Changes how many regions enclose this place, and returns the new number.
pub fn nest(by: i64) -> i64 {
    STATE.with(|s| {
        s.nesting.set(s.nesting.get().saturating_add(by));
        s.nesting.get()
    })
}
/// Forgets the casts of leaves.
pub fn clear_cache() {
    // Dropped outside the borrow: dropping a tensor may run other code.
    drop(STATE.with(|s| s.casts.take()));
}

fn set_bits(s: &State, bits: u16) {
    match (s.enabled.replace(bits) != 0, bits != 0) {
        (false, true) => ACTIVE.fetch_add(1, Ordering::Relaxed),
        (true, false) => ACTIVE.fetch_sub(1, Ordering::Relaxed),
        _ => 0,
    };
}

/// Autocast off in this thread until it is dropped.
pub struct Off(u16);

impl Off {
    /// `None` where it is off already.
    pub fn new() -> Option<Off> {
        let before = if active() { STATE.with(|s| s.enabled.get()) } else { 0 };
        (before != 0).then(|| {
            STATE.with(|s| set_bits(s, 0));
            Off(before)
        })
    }
}
impl Drop for Off {
    fn drop(&mut self) {
        STATE.with(|s| set_bits(s, self.0));
    }
}

/// A region that is on for the device of a call.
struct Region {
    device: Device,
    lower: DType,
}

impl Region {
    fn of(call: &Call) -> Option<Region> {
        let device = call.all_tensors().next()?.device();
        let kind = usize::from(device.is_gpu());
        (device != Device::Meta && enabled(kind)).then(|| Region { device, lower: dtype(kind) })
    }
    fn takes(&self, t: &Tensor) -> bool {
        t.dtype().is_float() && t.dtype() != DType::F64 && t.device().kind() == self.device.kind()
    }
    /// The widest dtype among the tensors and the region's.
    fn widest(&self, call: &Call) -> Result<DType> {
        let mut widest = self.lower;
        for t in call.all_tensors().filter(|t| self.takes(t)) {
            match t.dtype() {
                DType::F32 => widest = DType::F32,
                d if d == widest || widest == DType::F32 => {}
                d => {
                    let (lower, name) = (self.lower.name(), d.name());
                    return Err(Error::runtime(format!(
                        "Unexpected floating ScalarType in at::autocast::prioritize: expected float32 or the region's \
                         {lower}, got {name}"
                    )));
                }
            }
        }
        Ok(widest)
    }
    fn cast(&self, t: &Tensor, to: DType) -> Result<Tensor> {
        let leaf = t.dtype() == DType::F32 && t.requires_grad() && t.is_leaf() && t.view_info().is_none();
        if to != self.lower || !leaf || !caching() {
            return (autograd::engine_ops().cast)(t, to);
        }
        // A copy made without recording has no history, and is of no use where gradients are recorded.
        let fits = |made: &Tensor| made.dtype() == to && made.requires_grad() == autograd::grad_enabled();
        let kept = STATE.with(|s| s.casts.borrow().get(&t.id()).map(|(_, made)| made.clone()));
        if let Some(made) = kept.filter(fits) {
            return Ok(made);
        }
        let made = (autograd::engine_ops().cast)(t, to)?;
        let replaced = STATE.with(|s| s.casts.borrow_mut().insert(t.id(), (t.clone(), made.clone())));
        drop(replaced);
        Ok(made)
    }
    fn value<'a>(&self, v: &'a Value, to: DType) -> Result<Value<'a>> {
        let turned = |t: &Tensor| (self.takes(t) && t.dtype() != to).then(|| self.cast(t, to));
        Ok(match v {
            Value::Tensors(list) => {
                let one = |t: &Option<Tensor>| match t {
                    Some(t) => turned(t).unwrap_or_else(|| Ok(t.clone())).map(Some),
                    None => Ok(None),
                };
                Value::Tensors(list.iter().map(one).collect::<Result<_>>()?)
            }
            v => match v.as_tensor().and_then(turned) {
                Some(made) => Value::Owned(made?),
                None => v.reborrow(),
            },
        })
    }
    fn values<'a>(&self, args: &'a [Value], to: DType) -> Result<Args<'a>> {
        args.iter().map(|v| self.value(v, to)).collect()
    }
    /// The arguments with which the call runs.
    fn arguments<'a>(&self, call: &'a Call, policy: Policy) -> Result<Args<'a>> {
        let args = call.args;
        match policy {
            Policy::Lower => self.values(args, self.lower),
            Policy::Float32 => self.values(args, DType::F32),
            Policy::Widest => self.values(args, self.widest(call)?),
            Policy::AsGiven => Ok(args.iter().map(|v| v.reborrow()).collect()),
            Policy::Refused(why) => Err(Error::runtime(why)),
            Policy::Float32Result => {
                let first = call.all_tensors().next().is_some_and(|t| self.takes(t));
                let named = call.op.sig.index_of("dtype");
                match named {
                    Some(at) if first && args[at].is_none() => {
                        let mut own: Args = args.iter().map(|v| v.reborrow()).collect();
                        own[at] = Value::DType(DType::F32);
                        Ok(own)
                    }
                    // Without a dtype to set, float32 operands give the same result.
                    None if first => self.values(args, DType::F32),
                    _ => Ok(args.iter().map(|v| v.reborrow()).collect()),
                }
            }
        }
    }
}

/// A call while autocast is on in some thread.
#[cold]
pub(super) fn call_into(op: &'static Op, args: &[Value], outputs: &mut Outputs) -> Result<()> {
    let call = Call { op, args };
    let Some(region) = Region::of(&call) else { return call_as_given(op, args, outputs) };
    match lists::policy(op, region.device.is_gpu()) {
        Some(policy) => {
            let own = region.arguments(&call, policy).map_err(|e| e.in_call(op.title()))?;
            let _off = Off::new();
            call_as_given(op, &own, outputs)
        }
        None if matches!(op.vjp, Vjp::Composite) => call_as_given(op, args, outputs),
        None => {
            let _off = Off::new();
            call_as_given(op, args, outputs)
        }
    }
}
