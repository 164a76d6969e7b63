//! One op is one value: `pub static TANH: Op = Op { .. }` plus one line in `ops::OPS`.
//!
//! The literal is the complete declaration of an op; the Python function, the method, the in-place form, `out=`, the
//! stub, the docs row and the tests are derived from it. Adding an op edits no `match`.

pub mod batch;
pub mod body;
mod choice;
mod dims;
pub mod generator;
pub mod gradient;
pub mod kind;
pub mod number;
mod scan;
pub mod signature;
pub mod term;
pub mod tracer;
pub mod value;

pub use self::batch::{BatchedCall, Batching};
pub use self::body::{
    Body, Call, Decompose, Kernel, Opaque, Promote, Rule, Spec, Specs, decompose, decompose_or, elementwise,
    elementwise_by, factory, kernel, kernel_into, kernel_into_clone, kernel_onto, opaque, product, reads_host,
};
pub use self::choice::{Choice, Enumerated, unknown_choice};
pub use self::dims::Dimensions;
pub use self::generator::Generator;
pub use self::gradient::{A0, A1, A2, A3, A4, Grad, Joint, Jvp, OUT0, OUT1, OUT2, Vjp, VjpCtx, d};
pub use self::kind::Kind;
pub use self::signature::{Param, Returns, Signature, sig};
pub use self::term::{IntoArg, IntoArgs, Term};
pub use self::value::{Args, Arguments, Ints, Key, Outputs, Value, push_default};

use crate::error::{Error, Result};
use std::borrow::Cow;

/// The Python forms of an op.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Forms(pub u8);

impl Forms {
    pub const FUNCTION: u8 = 1;
    pub const METHOD: u8 = 2;
    pub const INPLACE: u8 = 4;
    pub const OUT: u8 = 8;
    /// The op exists only in place (`normal_`): its name ends in `_`.
    pub const ONLY_INPLACE: u8 = 16;
    /// A helper of other ops, available to tests but not public.
    pub const HIDDEN: u8 = 32;

    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// Function and method.
pub const FM: Forms = Forms(Forms::FUNCTION | Forms::METHOD);
/// Function, method, in-place method, `out=`.
pub const FMIO: Forms = Forms(Forms::FUNCTION | Forms::METHOD | Forms::INPLACE | Forms::OUT);
/// Function, method, `out=`.
pub const FMO: Forms = Forms(Forms::FUNCTION | Forms::METHOD | Forms::OUT);
/// Function and `out=`.
pub const FO: Forms = Forms(Forms::FUNCTION | Forms::OUT);
pub const F: Forms = Forms(Forms::FUNCTION);
pub const M: Forms = Forms(Forms::METHOD);
/// Function, method, in-place method.
pub const FMI: Forms = Forms(Forms::FUNCTION | Forms::METHOD | Forms::INPLACE);
/// A method that writes to self; the name ends in `_`.
pub const ONLY_INPLACE: Forms = Forms(Forms::METHOD | Forms::ONLY_INPLACE);
/// The same, also as a function.
pub const INPLACE_FUNCTION: Forms = Forms(Forms::FUNCTION | Forms::METHOD | Forms::ONLY_INPLACE);
pub const HIDDEN: Forms = Forms(Forms::HIDDEN);

/// The aliasing allowed between a written tensor (in place, or `out=`) and the other operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AliasPolicy {
    /// Any: all operands are read before the first element is written.
    MayAlias,
    /// An operand may be the same tensor, but not overlap it partially.
    SameOnly,
    NoAlias,
    /// Any, also between its own elements: every element gets the same value.
    UniformWrite,
}

/// In-place writes to a tensor whose elements alias (an expanded one).
#[derive(Clone, Copy)]
pub struct Expanded {
    /// PyTorch's deprecation warning, if any.
    pub warning: Option<&'static str>,
    /// The arguments of an equivalent call that writes each location once; `None` if the call may write a location
    /// repeatedly.
    pub once: fn(&Call) -> Result<Option<Args<'static>>>,
}

/// The dtypes accepted for `out=`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutDType {
    /// Dtypes to which the result can be cast.
    Castable,
    /// The result's dtype only.
    Same,
    /// Any: it determines the compute dtype.
    Every,
}

/// The declaration of an op. A literal takes what it does not say from `OP`, or from a constant of its family.
pub struct Op {
    // What it computes.
    /// Name, parameters, result: `sig("abs(Tensor self) -> Tensor")`, see `signature`.
    pub sig: Signature,
    /// First line: what it computes. Then formula, shapes, errors, source.
    pub doc: &'static str,
    /// Promotion of the operands and dtype of the result (elementwise ops).
    pub promote: Promote,
    pub body: Body,
    /// Steps of its body (one that decomposes, or is opaque) have no shader; the table proves it of those that decompose.
    pub on_host: bool,

    // How it is differentiated and batched.
    pub vjp: Vjp,
    /// The rule of forward mode, which the table verifies.
    pub jvp: Jvp,
    /// Outputs without a gradient although their dtype could have one.
    pub constant: &'static [usize],
    /// How a call on every example of a batch runs: see `batch`.
    pub batch: Batching,
    /// The arguments, one bit each, that a call writes to without a new version: running statistics.
    pub moves: fn(&Call) -> u32,

    // How Python calls it.
    pub forms: Forms,
    /// Aliases of the op: `absolute` for `abs`, `nn.functional.tanh` for `tanh`.
    pub aliases: &'static [&'static str],
    /// Signatures with the parameters in another order, which PyTorch still takes with a warning.
    pub deprecated: &'static [Signature],
    /// The error for a string that is none of those that the signature lists.
    pub unknown_choice: fn(&Op, &str) -> Error,
    /// What a call from Python warns of: that the op is deprecated, or its result not what one may expect.
    pub warns: Option<fn(&Call) -> Option<String>>,
    /// It warns only the first time in a process.
    pub warns_once: bool,

    // What its results, `out=` and the target of an in-place call may be, and share.
    /// By default as the body's kind has it: see `dispatch::overlap`.
    pub alias_policy: Option<AliasPolicy>,
    /// By default, in-place calls on a tensor whose elements alias are an error.
    pub expanded: Option<Expanded>,
    /// By default `Same` for kernels, `Castable` for the rest.
    pub out_dtype: Option<OutDType>,
    /// A one-dimensional result is written to an `out=` of any shape with as many elements: `arange`.
    pub fills_out: bool,
    /// The view op whose result this op copies to new memory.
    pub copies: Option<&'static Op>,
    /// The result of an elementwise op is row-major for any operand layout.
    pub row_major: bool,
    /// Numbers are rounded to the half float that an elementwise op computes in, as tensors are: `x == 0.1` holds of 0.1 in half
    /// precision. The other ops compute with their numbers in float32.
    pub rounds_numbers: bool,

    // How its node looks in the graph.
    /// PyTorch's node name if it is not `<Name>Backward0`.
    pub node: &'static str,
    /// PyTorch's node name of the in-place form, if different (`t_`: `TBackward1`).
    pub inplace_node: &'static str,
    /// The node's `_saved_*` attributes, if they are not what formulas read plus the other arguments: arguments,
    /// results, `x_sym_sizes`, `x_sym_numel`, `x_sym_argsize_0` and `x_sym_argsize_minus_1` of a tensor `x`; `a=b`
    /// exposes `b` as `a`, and `a=None` a name without a value.
    pub keeps: Option<&'static str>,

    // How the table tests it.
    /// Calls in the sample language of `tests/support/samples.py`.
    pub samples: &'static [&'static str],
    /// A call, the exception class it raises, a part of the message.
    pub errors: &'static [(&'static str, &'static str, &'static str)],
    /// A NumPy or SciPy expression over `x0, x1, ..` and the keyword names; empty: recorded results are the oracle.
    pub reference: &'static str,
}

/// The parts of an `Op` that literals take over with `..OP`.
pub const OP: Op = Op {
    sig: Signature::UNSET,
    doc: "",
    promote: Promote::Arith,
    body: Body::Unset,
    on_host: false,
    vjp: Vjp::Unset,
    jvp: Jvp::Derived,
    constant: &[],
    batch: Batching::ByBody,
    moves: |_| 0,
    forms: FM,
    aliases: &[],
    deprecated: &[],
    unknown_choice,
    warns: None,
    warns_once: false,
    alias_policy: None,
    expanded: None,
    out_dtype: None,
    fills_out: false,
    copies: None,
    row_major: false,
    rounds_numbers: false,
    node: "",
    inplace_node: "",
    keeps: None,
    samples: &[],
    errors: &[],
    reference: "",
};

impl Op {
    /// The arguments, one bit each, that a call writes to besides its result, which in place is the first.
    pub fn also_writes(&self) -> u32 {
        self.sig.written & !u32::from(self.forms.has(Forms::ONLY_INPLACE))
    }
    /// With the overload: `sum.dim`.
    pub fn name(&self) -> &'static str {
        self.sig.name()
    }
    /// The dotted name in Python, without the overload: `nn.functional.relu`.
    pub fn public(&self) -> &'static str {
        public_name(self.name())
    }
    /// `sum` of `sum.dim`, without the namespace.
    pub fn base(&self) -> &'static str {
        let public = self.public();
        public.rfind('.').map_or(public, |i| &public[i + 1..])
    }
    /// The name in its errors: the base, in `linalg` with the namespace, as in PyTorch's. `_linalg_inv` is a step of one.
    pub fn title(&self) -> Cow<'static, str> {
        let base = self.base();
        match base.strip_prefix("_linalg_") {
            Some(step) => format!("linalg.{step}").into(),
            None if self.name().starts_with("linalg.") => self.public().into(),
            None => base.into(),
        }
    }
    /// The name of its node in the graph.
    pub fn node_name(&self) -> Cow<'static, str> {
        match self.node {
            "" => derived_node_name(self.name(), &self.title()).into(),
            name => name.into(),
        }
    }
    /// The same for the in-place form.
    pub fn inplace_node_name(&self) -> Cow<'static, str> {
        match self.inplace_node {
            "" => self.node_name(),
            name => name.into(),
        }
    }
    pub fn is_differentiable(&self) -> bool {
        !matches!(self.vjp, Vjp::None(_) | Vjp::Missing | Vjp::Unset)
    }
    /// Whether the op is a leaf of what a tracer sees; the others decompose into calls of such ops.
    pub const fn is_primitive(&self) -> bool {
        !matches!(self.body, Body::Decompose(_) | Body::Unset)
    }
    /// Whether what the results look like depends on values, so that it cannot be inferred.
    pub const fn reads_host(&self) -> bool {
        match &self.body {
            Body::Opaque(o) => o.infer.is_none(),
            Body::Kernel(k) => k.reads_host,
            _ => false,
        }
    }
    pub fn runs_on_gpu(&self) -> bool {
        match &self.body {
            Body::Elementwise(e) => e.wgsl_known(),
            Body::Kernel(k) => k.gpu.is_some(),
            Body::View(_) | Body::ViewAs(_) | Body::Views(_) => true,
            Body::Opaque(_) | Body::Decompose(_) => !self.on_host,
            Body::Unset => false,
        }
    }
}

/// Namespaces that Python spells with dots; what follows another dot is an overload.
const NAMESPACES: [&str; 8] =
    ["nn.functional.", "linalg.", "special.", "fft.", "nn.init.", "nn.utils.rnn.", "masked.", "signal.windows."];

/// Splits off the overload: `sum.dim` -> `sum`.
pub fn public_name(name: &'static str) -> &'static str {
    let skip = NAMESPACES.iter().find(|n| name.starts_with(**n)).map_or(0, |n| n.len());
    name[skip..].find('.').map_or(name, |i| &name[..skip + i])
}

/// `log_softmax` -> `LogSoftmaxBackward0`, `special.i0e` -> `SpecialI0EBackward0`: capitals at starts and after digits.
fn derived_node_name(name: &str, title: &str) -> String {
    let mut out = if name.starts_with("special.") { "Special".to_string() } else { String::new() };
    let mut last = '_';
    for c in title.trim_matches('_').chars() {
        if last.is_ascii_digit() || "_.".contains(last) {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        last = c;
    }
    out.retain(|c| !"_.".contains(c));
    out + "Backward0"
}
