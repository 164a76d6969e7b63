//! One op is one value: `pub static TANH: Op = Op { .. }` plus one line in `ops::OPS`.
//!
//! The literal says everything about an op; the Python function, the method, the in-place form, `out=`, the stub, the
//! docs row and the tests are derived from it. Adding an op edits no `match`.

pub mod body;
pub mod generator;
pub mod gradient;
pub mod signature;
pub mod term;
pub mod tracer;
pub mod value;

pub use body::{
    Body, Call, Decompose, Kernel, Opaque, Promote, Rule, Spec, Specs, decompose, decompose_or, elementwise,
    elementwise_by, factory, kernel, kernel_into, kernel_into_clone, kernel_onto, opaque, reads_host,
};
pub use generator::Generator;
pub use gradient::{A0, A1, A2, A3, Back, Grad, Joint, OUT0, OUT1, OUT2, Vjp, d};
pub use signature::{Kind, Param, Returns, Signature};
pub use term::{IntoArg, IntoArgs, Term};
pub use value::{Args, Arguments, Ints, Outputs, Value, push_default};

use crate::error::Result;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The forms in which an op is offered to Python.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Forms(pub u8);

impl Forms {
    pub const FUNCTION: u8 = 1;
    pub const METHOD: u8 = 2;
    pub const INPLACE: u8 = 4;
    pub const OUT: u8 = 8;
    /// The op exists only in place (`normal_`): its name ends in `_`.
    pub const ONLY_INPLACE: u8 = 16;
    /// A step of another op, reachable for tests but not public.
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

/// What memory a tensor that is written to (in place, or by `out=`) may share with the other operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Any: operands are read to the end before the first element is written.
    Any,
    /// An operand may be that tensor itself, not overlap it in part.
    Exact,
    Nothing,
    /// Anything, and its own elements may share places: the same number goes everywhere.
    Uniform,
}

/// How an op writes in place to a tensor whose elements share places (an expanded one).
#[derive(Clone, Copy)]
pub struct Expanded {
    /// Where PyTorch deprecates it.
    pub warning: Option<&'static str>,
    /// The arguments of a call that writes each place once; `None` where the call itself may write a place again.
    pub once: fn(&Call) -> Result<Option<Args<'static>>>,
}

/// The dtypes that `out=` takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutDType {
    /// Those to which the result can be cast.
    Castable,
    /// The result's own.
    Same,
    /// All: it decides what is computed.
    Every,
}

pub struct Op {
    /// Name, parameters, result: see `signature`.
    pub sig: &'static str,
    /// First line: what it computes. Then formula, shapes, errors, source.
    pub doc: &'static str,
    /// Other names of the same op: `absolute` for `abs`, `nn.functional.tanh` for `tanh`.
    pub aliases: &'static [&'static str],
    pub forms: Forms,
    /// What the operands promote to and what the result is (elementwise ops).
    pub promote: Promote,
    pub body: Body,
    pub vjp: Vjp,
    /// Signatures with the parameters in another order, which PyTorch still takes with a warning.
    pub deprecated: &'static [&'static str],
    /// By default as the body's kind has it: see `dispatch::overlap`.
    pub sharing: Option<Sharing>,
    /// By default a tensor whose elements share places is refused in place.
    pub expanded: Option<Expanded>,
    /// By default `Same` for kernels, `Castable` for the rest.
    pub out_dtype: Option<OutDType>,
    /// Its line of numbers keeps the shape of an `out=` with as many elements: `arange`.
    pub fills_out: bool,
    /// Outputs without a gradient, though their dtype could have one: by-products.
    pub constant: &'static [usize],
    /// The view op whose result it gives in new memory.
    pub copies: Option<&'static Op>,
    /// What a call from Python warns of: that the op is deprecated, or its result not what one may expect.
    pub warns: Option<fn(&Call) -> Option<String>>,
    /// The result of an elementwise op is row-major, however its operands lie.
    pub row_major: bool,
    /// An op that decomposes, or is opaque, and whose steps have no shader.
    pub on_host: bool,
    /// PyTorch's node name where it is not `<Name>Backward0`.
    pub node: &'static str,
    /// The same for the in-place form, where that has another one (`t_`: `TBackward1`).
    pub inplace_node: &'static str,
    /// What the node shows as `_saved_*`, where that is not what formulas read and the other arguments are: arguments,
    /// results, `x_sym_sizes`, `x_sym_numel`, `x_sym_argsize_0` and `x_sym_argsize_minus_1` of a tensor `x`; `a=b` shows `b`
    /// as `a`, and `a=None` a name without a value.
    pub keeps: Option<&'static str>,
    /// Calls in the sample language of `tests/support/samples.py`.
    pub samples: &'static [&'static str],
    /// A call, the class it raises, a part of the message.
    pub errors: &'static [(&'static str, &'static str, &'static str)],
    /// The same in NumPy or SciPy, over `x0, x1, ..` and the keyword names; empty: recorded figures are the oracle.
    pub reference: &'static str,
    pub cache: Cache,
}

/// The parts of an `Op` that literals take over with `..OP`.
#[allow(clippy::declare_interior_mutable_const)] // see `Cache::NEW`
pub const OP: Op = Op {
    sig: "",
    doc: "",
    aliases: &[],
    forms: FM,
    promote: Promote::Arith,
    body: Body::Unset,
    vjp: Vjp::Unset,
    constant: &[],
    copies: None,
    warns: None,
    deprecated: &[],
    row_major: false,
    on_host: false,
    sharing: None,
    expanded: None,
    out_dtype: None,
    fills_out: false,
    node: "",
    inplace_node: "",
    keeps: None,
    samples: &[],
    errors: &[],
    reference: "",
    cache: Cache::NEW,
};

/// What is derived from the literal once, at first use. A plain pointer: a static literal may not have a destructor.
pub struct Cache(AtomicPtr<Parsed>);

pub struct Parsed {
    pub signature: Signature,
    /// Those of `Op::deprecated`, for the function and for the method.
    pub deprecated: Vec<Signature>,
    pub node: &'static str,
    pub inplace_node: &'static str,
    /// `sum` of `sum.dim`, without the namespace.
    pub base: &'static str,
    /// What its errors go by: the base, in `linalg` with the namespace, as PyTorch's do.
    pub title: &'static str,
}

impl Cache {
    // A fresh cell for every literal is what `..OP` must give, so an interior-mutable const is right here.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NEW: Cache = Cache(AtomicPtr::new(std::ptr::null_mut()));

    #[inline]
    fn get(&self) -> Option<&'static Parsed> {
        // SAFETY: null, or set once, below, to a leaked box.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
    #[cold]
    fn init(&self, make: impl FnOnce() -> Parsed) -> &'static Parsed {
        let new = Box::into_raw(Box::new(make()));
        match self.0.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `new` was just leaked and is never freed.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: another thread was first; `new` is still ours alone, `first` is leaked.
                unsafe {
                    drop(Box::from_raw(new));
                    &*first
                }
            }
        }
    }
}

impl Op {
    #[inline]
    pub fn parsed(&'static self) -> &'static Parsed {
        self.cache.get().unwrap_or_else(|| {
            self.cache.init(|| {
                let parse = |s| Signature::parse(s).unwrap_or_else(|e| panic!("signature of {s}: {e}"));
                let signature = parse(self.sig);
                let old = self.deprecated.iter().map(|s| parse(s));
                let deprecated = old.flat_map(|s| s.method_first().into_iter().chain([s])).collect();
                let base = base_name(signature.name);
                let title = title(signature.name, base);
                let node = if self.node.is_empty() { leak(node_name(signature.name, title)) } else { self.node };
                let inplace_node = if self.inplace_node.is_empty() { node } else { self.inplace_node };
                Parsed { signature, deprecated, node, inplace_node, base, title }
            })
        })
    }
    pub fn signature(&'static self) -> &'static Signature {
        &self.parsed().signature
    }
    /// With the overload: `sum.dim`.
    pub fn name(&'static self) -> &'static str {
        self.signature().name
    }
    /// The dotted name in Python, without the overload: `nn.functional.relu`.
    pub fn public(&'static self) -> &'static str {
        public_name(self.name())
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

fn leak(s: String) -> &'static str {
    Box::leak(s.into_boxed_str())
}

/// Namespaces that Python spells with dots; what follows another dot is an overload.
const NAMESPACES: [&str; 8] =
    ["nn.functional.", "linalg.", "special.", "fft.", "nn.init.", "nn.utils.rnn.", "masked.", "signal.windows."];

/// Splits off the overload: `sum.dim` -> `sum`.
pub fn public_name(name: &'static str) -> &'static str {
    let skip = NAMESPACES.iter().find(|n| name.starts_with(**n)).map_or(0, |n| n.len());
    name[skip..].find('.').map_or(name, |i| &name[..skip + i])
}

fn base_name(name: &'static str) -> &'static str {
    let public = public_name(name);
    public.rfind('.').map_or(public, |i| &public[i + 1..])
}

/// `linalg.inv` of `linalg.inv` and of a step `_linalg_inv`; elsewhere the base.
fn title(name: &'static str, base: &'static str) -> &'static str {
    match base.strip_prefix("_linalg_") {
        Some(step) => leak(format!("linalg.{step}")),
        None if name.starts_with("linalg.") => public_name(name),
        None => base,
    }
}

/// `log_softmax` -> `LogSoftmaxBackward0`, `special.i0e` -> `SpecialI0EBackward0`: capitals at starts and after digits.
fn node_name(name: &str, title: &str) -> String {
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
