//! The kinds of op bodies, and the call that a body receives.
//!
//! An op is *primitive* (elementwise, kernel, view, opaque) or it *decomposes* into calls of other ops. Primitives infer
//! the shape, dtype, strides and device of their results without running, unless those depend on values; a body that
//! decomposes touches no memory and reads no values, so a recording of primitives is all that a call did.

use super::Op;
use super::value::{Arguments, Outputs, Value};
use crate::cpu::epilogue::Epilogue;
use crate::cpu::loops::Loops;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// A call after its arguments have been parsed and checked.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub op: &'static Op,
    pub args: &'a [Value<'a>],
}

impl Arguments for Call<'_> {
    fn arguments(&self) -> &[Value<'_>] {
        self.args
    }
    fn op(&self) -> &'static Op {
        self.op
    }
}

impl<'a> Call<'a> {
    /// Every tensor among the arguments.
    pub fn all_tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.args.iter().flat_map(|v| v.tensors())
    }
    /// The device of the first tensor, else the device argument, else the CPU.
    pub fn device_of_args(&self) -> Device {
        let given = self.args.iter().find_map(|v| if let Value::Device(d) = v { Some(*d) } else { None });
        self.all_tensors().next().map(|t| t.device()).or(given).unwrap_or_default()
    }
}

/// Layout, dtype and device of a result to be allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub layout: Layout,
    pub dtype: DType,
    pub device: Device,
}
pub type Specs = SmallVec<[Spec; 1]>;

impl Spec {
    pub fn new(shape: &[usize], dtype: DType, device: Device) -> Spec {
        Spec { layout: Layout::contiguous(shape), dtype, device }
    }
    /// With the tensor's shape, row-major.
    pub fn like(t: &Tensor) -> Spec {
        Spec::new(t.shape(), t.dtype(), t.device())
    }
    /// With the tensor's shape and stride order.
    pub fn following(t: &Tensor) -> Spec {
        Spec { layout: t.layout().fresh(), dtype: t.dtype(), device: t.device() }
    }
    pub fn one(shape: &[usize], dtype: DType, device: Device) -> Specs {
        smallvec![Spec::new(shape, dtype, device)]
    }
}

/// The compute dtype of elementwise operands and the result dtype.
#[derive(Clone, Copy)]
pub enum Promote {
    /// Compute and return the promoted dtype.
    Arith,
    /// As `Arith`, but integers and bools become the default float dtype.
    Float,
    /// Compute in the promoted dtype; the result is bool.
    Test,
    /// (computed in, result), and a check that reads values: a divisor that is zero.
    Checked(fn(&Call, DType) -> Result<(DType, DType)>, fn(&Call, DType) -> Result<()>),
    /// As `Arith`, but a complex input gives a real result (`abs`).
    RealOfComplex,
    /// Compute in the dtype of the first operand.
    First,
    /// (compute dtype, result dtype) from the call and the promoted dtype.
    By(fn(&Call, DType) -> Result<(DType, DType)>),
}

/// A scalar rule: a loop per number class in Rust and a WGSL expression over `x, y, z, w`.
pub struct Rule {
    pub operands: &'static [usize],
    pub loops: Loops,
    /// Empty: no shader.
    pub wgsl: &'static str,
}

pub enum Elementwise {
    One(&'static Rule),
    /// Selects by the arguments (`alpha`, `rounding_mode`); the second part lists every choice, for tests and docs.
    By(fn(&Call) -> Result<&'static Rule>, &'static [&'static Rule]),
}

impl Elementwise {
    pub fn rule(&self, call: &Call) -> Result<&'static Rule> {
        match self {
            Elementwise::One(r) => Ok(r),
            Elementwise::By(f, _) => f(call),
        }
    }
    pub fn rules(&self) -> Vec<&'static Rule> {
        match self {
            Elementwise::One(r) => vec![r],
            Elementwise::By(_, all) => all.to_vec(),
        }
    }
    pub fn wgsl_known(&self) -> bool {
        self.rules().iter().all(|r| !r.wgsl.is_empty())
    }
}

pub type Run = fn(&Call, &[Tensor]) -> Result<()>;
/// `Run` on the CPU that also reports to an epilogue which elements of its one, row-major result are final.
pub type RunThen = fn(&Call, &[Tensor], &Epilogue) -> Result<()>;

/// A CPU function and a GPU function that fill outputs allocated by dispatch.
pub struct Kernel {
    pub infer: fn(&Call) -> Result<Specs>,
    pub cpu: Run,
    pub gpu: Option<Run>,
    /// The CPU function of a kernel that takes an epilogue: elementwise rules over what it has just computed.
    pub then: Option<RunThen>,
    /// The output starts as a copy of the first argument and is modified in place (`scatter`, `masked_fill`).
    pub updates_self: bool,
    /// In place, the output is the first argument itself, and the kernel may overwrite it while reading it.
    pub onto_self: bool,
    /// Tensors may be on different devices (`copy_`, `to`).
    pub any_device: bool,
    /// Its results may lie in memory in any order, with the same bits.
    pub any_order: bool,
    /// Its result is a copy of its first argument, cast to the dtype that is inferred.
    pub copies: bool,
    /// It reads its arguments once, so that its results are cheap to compute again (`native_layer_norm`).
    pub one_pass: bool,
    /// `infer` reads values: how many elements there are depends on them (`masked_select`).
    pub reads_host: bool,
    /// The GPU need not compute in the dtypes of its tensors: `rand` draws on the host what no shader can.
    pub any_dtype: bool,
}

impl Kernel {
    pub const fn of(infer: fn(&Call) -> Result<Specs>, cpu: Run, gpu: Option<Run>) -> Kernel {
        Kernel {
            infer,
            cpu,
            gpu,
            then: None,
            updates_self: false,
            onto_self: false,
            any_device: false,
            any_order: false,
            copies: false,
            one_pass: false,
            reads_host: false,
            any_dtype: false,
        }
    }
}

pub enum Body {
    Elementwise(Elementwise),
    Kernel(Kernel),
    /// Layout arithmetic only: a view of the first argument with this layout.
    View(fn(&Call) -> Result<Layout>),
    /// A view with another dtype over the same bytes.
    ViewAs(fn(&Call) -> Result<(Layout, DType)>),
    /// Any number of views.
    Views(fn(&Call) -> Result<Vec<Layout>>),
    Opaque(Opaque),
    Decompose(Decompose),
    Unset,
}

/// An algorithm that makes its results itself: it may allocate, read values on the host and call ops. Those are recorded
/// where the gradient is that of its steps (`Vjp::Composite`).
pub struct Opaque {
    /// `None`: what the results look like depends on values, which the host reads.
    pub infer: Option<fn(&Call) -> Result<Specs>>,
    pub run: fn(&Call) -> Result<Outputs>,
}

/// Written with other ops alone. Unless the gradient is that of its steps (`Vjp::Composite`) they run unrecorded.
pub struct Decompose {
    pub run: fn(&Call) -> Result<Outputs>,
    /// Runs instead whenever `when` holds; the steps are its oracle.
    pub fused: Option<&'static Op>,
    pub when: fn(&Call) -> bool,
}

impl Body {
    /// Whether dispatch allocates every output; a decomposing op may return an argument.
    pub fn makes_outputs(&self) -> bool {
        !matches!(self, Body::Decompose(_) | Body::Opaque(_) | Body::Unset)
    }
}

pub const fn elementwise(rule: &'static Rule) -> Body {
    Body::Elementwise(Elementwise::One(rule))
}
pub const fn elementwise_by(pick: fn(&Call) -> Result<&'static Rule>, all: &'static [&'static Rule]) -> Body {
    Body::Elementwise(Elementwise::By(pick, all))
}
pub const fn kernel(infer: fn(&Call) -> Result<Specs>, cpu: Run, gpu: Option<Run>) -> Body {
    Body::Kernel(Kernel::of(infer, cpu, gpu))
}
/// A kernel that takes an epilogue, and whose result may lie in memory in any order.
pub const fn product(infer: fn(&Call) -> Result<Specs>, cpu: Run, gpu: Option<Run>, then: RunThen) -> Body {
    Body::Kernel(Kernel { then: Some(then), any_order: true, ..Kernel::of(infer, cpu, gpu) })
}
/// A kernel that, in place, may overwrite its first argument while reading it.
pub const fn kernel_onto(infer: fn(&Call) -> Result<Specs>, cpu: Run, gpu: Option<Run>) -> Body {
    Body::Kernel(Kernel { onto_self: true, ..Kernel::of(infer, cpu, gpu) })
}
/// A kernel that modifies a row-major copy of its first argument, or, in place, the argument itself.
pub const fn kernel_into(cpu: Run, gpu: Option<Run>) -> Body {
    Body::Kernel(Kernel { updates_self: true, ..Kernel::of(like_self, cpu, gpu) })
}
/// A kernel that fills new tensors, on the GPU of any dtype that can be stored there: `full`, `rand`.
pub const fn factory(infer: fn(&Call) -> Result<Specs>, fill: Run) -> Body {
    Body::Kernel(Kernel { any_dtype: true, ..Kernel::of(infer, fill, Some(fill)) })
}
/// A primitive that makes its results itself, as `infer` describes them.
pub const fn opaque(infer: fn(&Call) -> Result<Specs>, run: fn(&Call) -> Result<Outputs>) -> Body {
    Body::Opaque(Opaque { infer: Some(infer), run })
}
/// A primitive whose results depend in shape or dtype on values that the host reads.
pub const fn reads_host(run: fn(&Call) -> Result<Outputs>) -> Body {
    Body::Opaque(Opaque { infer: None, run })
}
pub const fn decompose(run: fn(&Call) -> Result<Outputs>) -> Body {
    Body::Decompose(Decompose { run, fused: None, when: |_| false })
}
/// Decomposes, or runs as the `fused` op wherever `when` holds.
pub const fn decompose_or(run: fn(&Call) -> Result<Outputs>, fused: &'static Op, when: fn(&Call) -> bool) -> Body {
    Body::Decompose(Decompose { run, fused: Some(fused), when })
}

/// `kernel_into` with a copy that preserves the first argument's strides.
pub const fn kernel_into_clone(cpu: Run, gpu: Option<Run>) -> Body {
    let infer = |c: &Call| Ok(SmallVec::from_elem(Spec::following(c.tensor(0)?), 1));
    Body::Kernel(Kernel { updates_self: true, ..Kernel::of(infer, cpu, gpu) })
}

fn like_self(c: &Call) -> Result<Specs> {
    Ok(SmallVec::from_elem(Spec::like(c.tensor(0)?), 1))
}
