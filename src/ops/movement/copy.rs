//! Copies and casts: clone, contiguous, to, copy_, fill_.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapNum, Num, RealOfComplex};
use crate::device::Device;
use crate::dtype::{DType, Scalar, c128};
use crate::error::{Error, Result};
use crate::layout::Format;
use crate::op::*;
use crate::ops::create::like::SCALAR_TENSOR;
use crate::ops::view::reshape::EXPAND;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &CLONE,
    &CONTIGUOUS,
    &TO_COPY,
    &COPY_,
    &COPY_NUMBER_,
    &FILL_TENSOR_,
    &FILLED,
    &FILLED_TENSOR,
    &FILL_,
    &CONJ,
    &CONJ_PHYSICAL,
    &CONJUGATED_VIEW,
    &CONJUGATED,
    &REAL,
];

fn copy_first(c: &Call, out: &[Tensor]) -> Result<()> {
    out[0].copy_raw(c.tensor(0)?)
}

impl Term {
    pub fn contiguous(self) -> Term {
        CONTIGUOUS.call((self,))
    }
    /// A row-major copy.
    pub fn packed(self) -> Term {
        CLONE.call((self, Value::Format(Format::Contiguous)))
    }
}

/// A kernel that copies its first argument into an output of the given spec, on any device.
const fn copying(infer: fn(&Call) -> Result<Specs>) -> Body {
    Body::Kernel(Kernel {
        copies: true,
        one_pass: true,
        any_device: true,
        ..Kernel::of(infer, copy_first, Some(copy_first))
    })
}

pub static CLONE: Op = Op {
    sig: sig("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"),
    doc: "A copy with its own memory, with the dimensions in the order that they have there. Differentiable.",
    body: copying(|c| {
        let (t, format) = (c.tensor(0)?, c.format("memory_format").unwrap_or(Format::Preserve));
        Ok(smallvec![Spec { layout: t.layout().formed(format)?, ..Spec::following(t) }])
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    samples: &["f32[2,3]", "i64[4]", "b8[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "x0.copy()",
    batch: Batching::Leading,
    ..OP
};

pub static CONTIGUOUS: Op = Op {
    sig: sig("contiguous(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"),
    doc: "The tensor itself if its memory is row-major (or in the given format) without gaps, else a copy that is.",
    forms: M,
    body: decompose(|c| {
        let (t, format) = (c.tensor(0)?, c.format("memory_format").unwrap_or(Format::Contiguous));
        if format == Format::Preserve {
            return Err(Error::runtime("preserve memory format is unsupported by the contiguous operator"));
        }
        let lies_so = match format {
            Format::Contiguous => t.is_contiguous(),
            _ => t.layout().lies_as(&format.strides(t.shape())?),
        };
        if lies_so { Ok(smallvec![t.clone()]) } else { CLONE.calls((t, Value::Format(format))) }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]"],
    errors: &[("'a'", "TypeError", "doesn't apply to a 'str' object")],
    reference: "x0.copy()",
    ..OP
};

fn imaginary_lost(from: DType, to: DType) -> Option<String> {
    let lost = from.is_complex() && !to.is_complex() && to != DType::Bool;
    lost.then(|| "Casting complex values to real discards the imaginary part".into())
}

pub static TO_COPY: Op = Op {
    sig: sig(
        "_to_copy(Tensor self, DType? dtype=None, Device? device=None, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "A copy in another dtype or on another device: what `to`, `float()`, `cpu()` call when there is something to do.",
    forms: HIDDEN,
    body: copying(|c| {
        let t = c.tensor(0)?;
        let layout = t.layout().formed(c.format("memory_format").unwrap_or(Format::Preserve))?;
        Ok(smallvec![Spec {
            layout,
            dtype: c.dtype("dtype").unwrap_or(t.dtype()),
            device: c.device("device").unwrap_or(t.device())
        }])
    }),
    warns_once: true,
    warns: Some(|c| imaginary_lost(c.opt_tensor(0)?.dtype(), c.dtype("dtype")?)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let f = c.meta_of(0);
        TO_COPY.call((c.g(), f.dtype, f.device))
    })]),
    samples: &["f32[2,3], dtype=float64", "f32[4], dtype=int64", "i64[4], dtype=float32"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    batch: Batching::Leading,
    ..OP
};

fn copy_into(c: &Call, out: &[Tensor]) -> Result<()> {
    let (src, dst) = (c.tensor("other")?, &out[0]);
    let fits = crate::layout::broadcast(dst.shape(), src.shape()).is_ok_and(|s| s.as_slice() == dst.shape());
    if !fits {
        // The message is that of `expand`, as in PyTorch.
        let sizes: Ints = dst.shape().iter().map(|&d| d as i64).collect();
        src.layout().expand(&sizes)?;
        return Err(Error::runtime("the source does not broadcast to the target"));
    }
    if dst.storage().same(src.storage()) && dst.layout() != src.layout() {
        let apart = Tensor::empty(src.shape(), src.dtype(), src.device())?;
        apart.copy_raw(src)?;
        return dst.copy_raw(&apart);
    }
    dst.copy_raw(src)
}

pub static COPY_: Op = Op {
    warns_once: true,
    warns: Some(|c| imaginary_lost(c.opt_tensor("other")?.dtype(), c.opt_tensor(0)?.dtype())),
    sig: sig("copy_(Tensor! self, Tensor other|src, bool non_blocking=False) -> Tensor"),
    doc: "Writes `src`, broadcast and converted, into `self`. Devices may differ.",
    forms: ONLY_INPLACE,
    body: Body::Kernel(Kernel {
        updates_self: true,
        any_device: true,
        ..Kernel::of(|c| Ok(smallvec![Spec::following(c.tensor(0)?)]), copy_into, Some(copy_into))
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.zeros(0)), d(1, 0, |c| c.g().to_device(c.meta_of(1).device))]),
    node: "CopyBackwards",
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "i64[3], f32[3]"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match")],
    reference: "np.broadcast_to(x1, x0.shape).astype(x0.dtype)",
    alias_policy: Some(AliasPolicy::SameOnly),
    keeps: Some(""),
    batch: Batching::Align,
    ..OP
};

pub static COPY_NUMBER_: Op = Op {
    sig: sig("copy_.number(Tensor! self, Scalar other|src, bool non_blocking=False) -> Tensor"),
    doc: "Writes a number, converted, into every element.",
    forms: ONLY_INPLACE,
    body: decompose(|c| {
        let (t, number) = (c.tensor(0)?, c.scalar("other")?);
        let own = match number {
            Scalar::Complex(..) => DType::C128,
            Scalar::Float(_) => DType::F64,
            _ => DType::I64,
        };
        let number = SCALAR_TENSOR.call((number, own, Device::Cpu)).ok()?;
        EXPAND.calls((TO_COPY.call((number, t.dtype(), t.device())), t.shape()))
    }),
    vjp: Vjp::Zero(&[0]),
    node: "CopyBackwards",
    samples: &["f32[2,3], 1.5", "i64[2], 2.5", "b8[2], 3"],
    errors: &[("f32[2], 'a'", "TypeError", "must be Tensor")],
    reference: "np.full_like(x0, other)",
    keeps: Some(""),
    ..OP
};

fn fill(c: &Call, out: &[Tensor]) -> Result<()> {
    match &c.args[1] {
        Value::Scalar(s) => crate::ops::create::full::fill_with(&out[0], *s),
        _ => {
            let v = c.tensor("value")?;
            if v.ndim() != 0 {
                return Err(Error::runtime(format!(
                    "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                    v.ndim()
                )));
            }
            out[0].copy_raw(v)
        }
    }
}

pub static FILL_: Op = Op {
    sig: sig("fill_.Scalar(Tensor! self, Scalar value) -> Tensor"),
    doc: "Writes one number everywhere in `self`.",
    vjp: Vjp::Zero(&[0]),
    node: "FillBackward2",
    samples: &["f32[2,3], 2.5", "i64[4], 3", "f32[2], inf"],
    errors: &[
        ("f32[2], 'a'", "TypeError", "fill_"),
        ("u8[2], 256", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
        ("u8[2], -1.0", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
        ("i32[2], nan", "RuntimeError", "value cannot be converted to type int without overflow"),
        ("f32[2], 1e40", "RuntimeError", "value cannot be converted to type float without overflow"),
        ("f32[2], 1+1j", "RuntimeError", "value cannot be converted to type float without overflow"),
    ],
    keeps: Some(""),
    batch: Batching::Leading,
    ..FILL
};

/// The number of each example in every element of that example.
fn filled_examples(c: &BatchedCall) -> Result<Outputs> {
    let rank = c.ndim(0);
    let numbers = TO_COPY.call((c.aligned(1, rank)?, c.results[0].dtype(), c.results[0].device()));
    let wide = EXPAND.call((numbers, c.with_batch(c.shape(0))));
    CLONE.calls((wide, Value::Format(Format::Contiguous)))
}

pub static FILL_TENSOR_: Op = Op {
    sig: sig("fill_.Tensor(Tensor! self, Tensor value) -> Tensor"),
    doc: "Writes the number in a 0-d tensor everywhere in `self`.",
    vjp: Vjp::Each(&[d(0, 0, |c| c.zeros(0)), d(1, 0, |c| c.g().sum_all())]),
    node: "FillBackward3",
    samples: &["f32[2,3], f32[]", "i64[4], i64[]"],
    errors: &[("f32[2], f32[2]", "RuntimeError", "0-dimension")],
    alias_policy: Some(AliasPolicy::MayAlias),
    batch: Batching::Rule(filled_examples),
    ..FILL
};

pub static FILLED: Op = Op {
    sig: sig("fill.Scalar(Tensor self, Scalar value) -> Tensor"),
    doc: "One number everywhere, in the shape and dtype of `self`.",
    forms: F,
    vjp: Vjp::Zero(&[0]),
    samples: &["f32[2,3], 2.5", "i64[4], 3"],
    errors: &[("f32[2], 'a'", "TypeError", "fill")],
    keeps: Some(""),
    batch: Batching::Leading,
    ..FILL
};

pub static FILLED_TENSOR: Op = Op {
    sig: sig("fill.Tensor(Tensor self, Tensor value) -> Tensor"),
    doc: "The number in a 0-d tensor everywhere, in the shape and dtype of `self`.",
    forms: F,
    vjp: Vjp::Each(&[d(0, 0, |c| c.zeros(0)), d(1, 0, |c| c.g().sum_all())]),
    node: "FillBackward1",
    samples: &["f32[2,3], f32[]", "i64[4], i64[]"],
    errors: &[("f32[2], f32[2]", "RuntimeError", "0-dimension")],
    batch: Batching::Rule(filled_examples),
    ..FILL
};

const FILL: Op = Op {
    forms: INPLACE_FUNCTION,
    body: Body::Kernel(Kernel {
        updates_self: true,
        any_device: true,
        ..Kernel::of(|c| Ok(smallvec![Spec::following(c.tensor(0)?)]), fill, Some(fill))
    }),
    reference: "np.full_like(x0, x1)",
    alias_policy: Some(AliasPolicy::UniformWrite),
    ..OP
};

struct Conjugate;
impl MapComplex<1> for Conjugate {
    fn eval([x]: [c128; 1]) -> c128 {
        x.conj()
    }
}
static CONJUGATE: Rule =
    Rule { operands: &[0], loops: Loops::NONE.num::<1, Identity>().complex::<1, Conjugate>(), wgsl: "x" };

struct Identity;
impl MapNum<1> for Identity {
    fn eval<T: Num>([x]: [T; 1]) -> T {
        x
    }
}

pub static CONJ: Op = Op {
    sig: sig("conj(Tensor self) -> Tensor"),
    doc: "The complex conjugate; a real tensor is returned as it is. (A copy here, not a lazy view.)",
    body: decompose(|c| Term::from(c.tensor(0)?).conj().outputs()),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "c64[3]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.conj(x0)",
    ..OP
};

pub static CONJ_PHYSICAL: Op = Op {
    sig: sig("conj_physical(Tensor self) -> Tensor"),
    doc: "The complex conjugate in new memory; a real tensor is returned as it is.",
    forms: FMIO,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if t.dtype().is_complex() { CONJUGATED.calls((t,)) } else { Ok(smallvec![t.clone()]) }
    }),
    vjp: Vjp::Composite,
    samples: &["c64[3]", "f32[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.conj(x0)",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static CONJUGATED_VIEW: Op = Op {
    sig: sig("_conj(Tensor self) -> Tensor"),
    doc: "The complex conjugate, which PyTorch has as a view: what `conj`, `mH` and `adjoint` record.",
    node: "ConjBackward0",
    batch: Batching::Leading,
    ..CONJUGATED_BASE
};
pub static CONJUGATED: Op = Op {
    sig: sig("_conj_physical(Tensor self) -> Tensor"),
    doc: "The complex conjugate in new memory.",
    ..CONJUGATED_BASE
};
const CONJUGATED_BASE: Op = Op {
    forms: HIDDEN,
    body: elementwise(&CONJUGATE),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().conj())]),
    samples: &["c64[3]", "f32[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.conj(x0)",
    ..OP
};

struct RealPart;
impl RealOfComplex<1> for RealPart {
    fn eval([x]: [c128; 1]) -> f64 {
        x.re
    }
}
static REAL_PART: Rule =
    Rule { operands: &[0], loops: Loops::NONE.num::<1, Identity>().real_of_complex::<1, RealPart>(), wgsl: "x" };

pub static REAL: Op = Op {
    sig: sig("_real_copy(Tensor self) -> Tensor"),
    doc: "The real part in new memory.",
    forms: HIDDEN,
    promote: Promote::RealOfComplex,
    body: elementwise(&REAL_PART),
    vjp: Vjp::Each(&[d(0, 0, |c| TO_COPY.call((c.g(), c.meta_of(0).dtype)))]),
    samples: &["c64[3]", "f32[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.real(x0)",
    ..OP
};

impl Term {
    pub fn conj(self) -> Term {
        if self.is_complex() { CONJUGATED_VIEW.call((self,)) } else { self }
    }
    pub fn real_part(self) -> Term {
        if self.is_complex() { REAL.call((self,)) } else { self }
    }
    pub fn to_dtype(self, dtype: DType) -> Term {
        if self.get().is_some_and(|t| t.dtype() == dtype) { self } else { TO_COPY.call((self, dtype)) }
    }
    pub fn to_device(self, device: crate::device::Device) -> Term {
        if self.get().is_some_and(|t| t.device() == device) { self } else { TO_COPY.call((self, Value::None, device)) }
    }
}
