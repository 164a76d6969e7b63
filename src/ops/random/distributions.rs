//! Random numbers: the distributions, in place and as new tensors.
//!
//! Every draw goes through `draw`: by the CPU's generator in the order of memory, for PyTorch's values (Note [Random
//! numbers on the CPU]); on a GPU by element index (Note [Random numbers on the GPU]).

use super::bounds::{doubt, doubt_of, integers, last_whole, permutation, reals};
use crate::cpu::mersenne::Mersenne;
use crate::cpu::random;
use crate::cpu::view::View;
use crate::device::Device;
use crate::dtype::{DType, default_dtype};
use crate::error::{Error, Result};
use crate::gpu;
pub(crate) use crate::kinds::Draw;
use crate::layout::Dims;
use crate::op::generator::{Generator, default_generator, wrong_device};
use crate::op::*;
use crate::ops::create::like::like;
use crate::ops::support::batch_views;
use crate::tensor::{Meta, Tensor};

pub static OPS: &[&Op] = &[
    &RAND,
    &RANDN,
    &RANDINT,
    &RANDINT_LOW,
    &RANDPERM,
    &RAND_LIKE,
    &RANDN_LIKE,
    &RANDINT_LIKE,
    &RANDINT_LIKE_LOW,
    &UNIFORM_,
    &NORMAL_,
    &NORMAL_PAIRS_,
    &EXPONENTIAL_,
    &RANDOM_,
    &RANDOM_TO_,
    &RANDOM_FROM_,
];

/// The generator among the arguments, or the default one of `device`.
pub(crate) fn source(c: &impl Arguments, device: Device) -> Result<&Generator> {
    let Some(g) = c.generator("generator") else { return Ok(default_generator(device)) };
    match g.device.kind() == device.kind() || device == Device::Meta {
        true => Ok(g),
        false => Err(wrong_device(device.kind(), g.device.kind())),
    }
}

/// Fills `out` with draws.
pub(crate) fn draw(out: &Tensor, rule: Draw, source: &Generator) -> Result<()> {
    if out.dtype().is_complex() {
        return draw_complex(out, rule, source);
    }
    let float_only = !matches!(rule, Draw::Bernoulli { .. } | Draw::Int { .. });
    if float_only && !out.dtype().is_float() {
        let kernel = match rule {
            Draw::Uniform { .. } => "check_uniform_bounds",
            Draw::Exponential { .. } => "exponential_cpu",
            _ => "normal_kernel_cpu",
        };
        return Err(Error::not_implemented(format!(
            "\"{kernel}\" not implemented for '{}'",
            out.dtype().scalar_type_name()
        )));
    }
    if gpu::supports(out.device(), out.dtype()) {
        let key = source.counters(out.numel())?;
        return gpu::random(rule, key.seed, key.offset, &out.gpu_view()?);
    }
    let row_major = out.is_contiguous();
    on_host(out, source, |v, m| match rule {
        Draw::Uniform { from, to } => random::uniform(v, from, to, m),
        Draw::Normal { mean, std } if row_major => random::normal(v, mean, std, m),
        Draw::Normal { mean, std } | Draw::NormalPairs { mean, std } => random::normal_pairs(v, mean, std, m),
        Draw::Exponential { rate } => random::exponential(v, rate, m),
        Draw::Bernoulli { p } => random::bernoulli(v, p, m),
        Draw::Mask { keep, value } => random::dropout_mask(v, keep, value, m),
        Draw::Int { low, high, long } => random::random_int(v, low, high, long, m),
    })
}

/// Has `fill` write to contiguous memory, whose elements become those of `out` in the order in which they lie.
fn on_host(out: &Tensor, source: &Generator, fill: impl FnOnce(View, &mut Mersenne) -> Result<()>) -> Result<()> {
    let ordered = by_memory(out);
    if ordered.device() == Device::Cpu && ordered.is_contiguous() {
        let v = ordered.cpu_view()?;
        return source.draw(|m| fill(v, m));
    }
    let dense = Tensor::empty(ordered.shape(), out.dtype(), Device::Cpu)?;
    let v = dense.cpu_view()?;
    source.draw(|m| fill(v, m))?;
    ordered.copy_raw(&dense)
}

/// The same elements, with the dimension of the largest stride first.
fn by_memory(out: &Tensor) -> Tensor {
    if out.is_contiguous() {
        return out.clone();
    }
    let mut layout = out.layout().clone();
    let mut order: Dims = (0..out.ndim()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(layout.strides[d]));
    layout.shape = order.iter().map(|&d| out.size(d)).collect();
    layout.strides = order.iter().map(|&d| out.layout().strides[d]).collect();
    out.with_layout(layout)
}

/// Real and imaginary components are drawn consecutively; the total variance of a normal number is one.
fn draw_complex(out: &Tensor, rule: Draw, source: &Generator) -> Result<()> {
    let rule = match rule {
        Draw::Normal { mean, std } => Draw::Normal { mean, std: std / std::f64::consts::SQRT_2 },
        other => other,
    };
    let m = out.meta();
    let mut layout = m.layout.clone();
    layout.strides.iter_mut().for_each(|s| *s *= 2);
    layout.offset *= 2;
    layout.shape.push(2);
    layout.strides.push(1);
    draw(&Tensor::from_meta(Meta { storage: m.storage.clone(), layout, dtype: m.dtype.to_real() }), rule, source)
}

/// A new tensor of draws.
fn created(c: &Call, otherwise: DType) -> Result<Specs> {
    crate::ops::create::full::created(c, c.dtype("dtype").unwrap_or(otherwise))
}

pub(crate) const UNIT: Draw = Draw::Uniform { from: 0.0, to: 1.0 };
const STANDARD: Draw = Draw::Normal { mean: 0.0, std: 1.0 };

const CREATION: Op = Op {
    forms: FO,
    vjp: Vjp::None("random numbers"),
    errors: &[("(-1,)", "RuntimeError", "negative dimension")],
    out_dtype: Some(OutDType::Every),
    ..OP
};

pub static RAND: Op = Op {
    sig: sig(
        "rand(Size size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Random numbers, uniform in [0, 1).",
    body: factory(|c| created(c, default_dtype()), |c, out| redraw(c, out, UNIT)),
    samples: &["(0, 3)"],
    batch: Batching::Rule(batch_views::sized),
    ..CREATION
};

pub static RANDN: Op = Op {
    sig: sig(
        "randn(Size size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Random numbers of the normal distribution with mean 0 and variance 1.",
    body: factory(|c| created(c, default_dtype()), |c, out| redraw(c, out, STANDARD)),
    samples: &["(0, 3)"],
    batch: Batching::Rule(batch_views::sized),
    ..CREATION
};

/// Random integers in `[low, high)`.
fn redraw_integers(c: &Call, out: &[Tensor], low: i64, high: i64) -> Result<()> {
    redraw(c, out, integers(low, high, out[0].dtype())?)
}

pub static RANDINT: Op = Op {
    sig: sig(
        "randint(int high, int[] size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Random integers of [0, high); int64 by default.",
    body: factory(|c| created(c, DType::I64), |c, out| redraw_integers(c, out, 0, c.int("high")?)),
    warns: Some(|c| doubt_of(c, &[0], c.dtype("dtype")?)),
    samples: &["1, (2, 3)", "5, (0,)"],
    errors: &[
        ("0, (2,)", "RuntimeError", "expects 'from' to be less than 'to'"),
        ("2, (-1,)", "RuntimeError", "negative dimension"),
    ],
    reference: "np.zeros(size, 'int64')",
    batch: Batching::Rule(batch_views::sized),
    ..CREATION
};

pub static RANDINT_LOW: Op = Op {
    sig: sig(
        "randint.low(int low, int high, int[] size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Random integers of [low, high); int64 by default.",
    body: factory(|c| created(c, DType::I64), |c, out| redraw_integers(c, out, c.int("low")?, c.int("high")?)),
    warns: Some(|c| doubt_of(c, &[0, 1], c.dtype("dtype")?)),
    samples: &["3, 4, (2, 3)"],
    errors: &[("3, 3, (2,)", "RuntimeError", "expects 'from' to be less than 'to'")],
    reference: "np.full(size, low, 'int64')",
    batch: Batching::Rule(batch_views::sized),
    ..CREATION
};

pub static RANDPERM: Op = Op {
    sig: sig(
        "randperm(int n, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "The integers 0 .. n - 1 in random order; int64 by default.",
    body: factory(
        |c| {
            let (n, dtype) = (c.int("n")?, c.dtype("dtype").unwrap_or(DType::I64));
            if n < 0 {
                return Err(Error::runtime(format!("n must be non-negative, got{n}")));
            }
            permutation(n, dtype)?;
            Ok(Spec::one(&[n as usize], dtype, c.device("device").unwrap_or_default()))
        },
        |c, out| {
            let n = out[0].numel();
            let t = Tensor::empty(&[n], DType::I64, Device::Cpu)?;
            let v = t.cpu_view()?;
            source(c, out[0].device())?.draw(|m| random::randperm(v, m))?;
            out[0].copy_raw(&t)
        },
    ),
    samples: &["1", "0"],
    errors: &[
        ("-1", "RuntimeError", "n must be non-negative"),
        ("300, dtype=uint8", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
        ("2050, dtype=float16", "RuntimeError", "n cannot be greater than 2049 for Half type."),
    ],
    reference: "np.arange(n)",
    ..CREATION
};

/// The result dtype, possibly given.
fn like_dtype(c: &Call) -> Result<DType> {
    c.dtype("dtype").map_or_else(|| Ok(c.tensor(0)?.dtype()), Ok)
}

const LIKE: Op =
    Op { forms: F, vjp: Vjp::None("random numbers"), errors: &[("'a'", "TypeError", "must be Tensor")], ..OP };

pub static RAND_LIKE: Op = Op {
    sig: sig(
        "rand_like(Tensor self, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "Random numbers, uniform in [0, 1), in the shape of another tensor.",
    body: factory(like, |c, out| redraw(c, out, UNIT)),
    samples: &["f32[0,3]"],
    batch: Batching::Leading,
    ..LIKE
};
pub static RANDN_LIKE: Op = Op {
    sig: sig(
        "randn_like(Tensor self, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "Normal random numbers in the shape of another tensor.",
    body: factory(like, |c, out| redraw(c, out, STANDARD)),
    samples: &["f32[0,3]"],
    batch: Batching::Leading,
    ..LIKE
};
pub static RANDINT_LIKE: Op = Op {
    sig: sig(
        "randint_like(Tensor self, int high, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "Random integers of [0, high) in the shape and dtype of another tensor.",
    body: factory(like, |c, out| redraw_integers(c, out, 0, c.int("high")?)),
    warns: Some(|c| doubt_of(c, &[1], like_dtype(c).ok()?)),
    samples: &["f32[2,3], 1", "i64[2], 1"],
    errors: &[("f32[2], 0", "RuntimeError", "expects 'from' to be less than 'to'")],
    reference: "np.zeros_like(x0)",
    batch: Batching::Leading,
    ..LIKE
};
pub static RANDINT_LIKE_LOW: Op = Op {
    sig: sig(
        "randint_like.low(Tensor self, int low, int high, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "Random integers of [low, high) in the shape and dtype of another tensor.",
    body: factory(like, |c, out| redraw_integers(c, out, c.int("low")?, c.int("high")?)),
    warns: Some(|c| doubt_of(c, &[1, 2], like_dtype(c).ok()?)),
    samples: &["i64[2], 3, 4"],
    errors: &[("f32[2], 3, 3", "RuntimeError", "expects 'from' to be less than 'to'")],
    reference: "np.full_like(x0, low)",
    batch: Batching::Leading,
    ..LIKE
};

/// An in-place draw.
fn redraw(c: &Call, out: &[Tensor], rule: Draw) -> Result<()> {
    draw(&out[0], rule, source(c, out[0].device())?)
}

const INPLACE: Op = Op { forms: ONLY_INPLACE, vjp: OVERWRITTEN, keeps: Some(""), samples: &["f32[0,3]"], ..OP };
const OVERWRITTEN: Vjp = Vjp::Zero(&[0]);

/// A body that writes draws into self.
const fn drawing(run: Run) -> Body {
    kernel_into(run, Some(run))
}
type Run = fn(&Call, &[Tensor]) -> Result<()>;

pub static UNIFORM_: Op = Op {
    sig: sig("uniform_(Tensor! self, float from=0.0, float to=1.0, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with random numbers, uniform in [from, to).",
    body: drawing(|c, out| {
        let dtype = out[0].dtype();
        // Other dtypes have no kernel; `draw` raises the error.
        let rule = match dtype.is_differentiable() {
            true => reals(c.float("from")?, c.float("to")?, dtype)?,
            false => UNIT,
        };
        redraw(c, out, rule)
    }),
    errors: &[
        ("f32[2], 2, 1", "RuntimeError", "expects to return a [from, to) range, but found from=2 > to=1"),
        ("f16[2], 0, 70000", "RuntimeError", "to is out of bounds for c10::Half"),
        (
            "f32[2], -3e38, 3e38",
            "RuntimeError",
            "uniform_ expects to-from <= std::numeric_limits<Float>::max(), but found to=3e+38",
        ),
        ("i64[2]", "NotImplementedError", "not implemented for 'Long'"),
    ],
    batch: Batching::Leading,
    ..INPLACE
};

pub static NORMAL_: Op = Op {
    sig: sig("normal_(Tensor! self, float mean=0.0, float std=1.0, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with random numbers of the normal distribution.",
    body: drawing(|c, out| {
        let (mean, std) = (c.float("mean")?, c.float("std")?);
        if std < 0.0 || std.is_nan() {
            return Err(Error::runtime(format!("normal expects std >= 0.0, but found std {std}")));
        }
        redraw(c, out, Draw::Normal { mean, std })
    }),
    errors: &[
        ("f32[2], 0, -1", "RuntimeError", "normal expects std >= 0.0"),
        ("i64[2]", "NotImplementedError", "not implemented for 'Long'"),
    ],
    batch: Batching::Leading,
    ..INPLACE
};

pub static NORMAL_PAIRS_: Op = Op {
    sig: sig("_normal_pairs_(Tensor! self, float mean=0.0, float std=1.0, *, Generator? generator=None) -> Tensor"),
    doc: "`normal_` by the sequence of draws that the CPU uses for few numbers, whatever their count.",
    forms: Forms(Forms::HIDDEN | Forms::ONLY_INPLACE),
    body: drawing(|c, out| redraw(c, out, Draw::NormalPairs { mean: c.float("mean")?, std: c.float("std")? })),
    errors: &[("i64[2]", "NotImplementedError", "not implemented for 'Long'")],
    batch: Batching::Leading,
    ..INPLACE
};

pub static EXPONENTIAL_: Op = Op {
    sig: sig("exponential_(Tensor! self, float lambd=1.0, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with random numbers of the exponential distribution of rate `lambd`.",
    body: drawing(|c, out| {
        let rate = c.float("lambd")?;
        if rate <= 0.0 || rate.is_nan() {
            return Err(Error::runtime(format!("exponential_ expects lambda > 0.0, but found lambda={rate}")));
        }
        redraw(c, out, Draw::Exponential { rate })
    }),
    errors: &[
        ("f32[2], 0", "RuntimeError", "expects lambda > 0.0"),
        ("i64[2]", "NotImplementedError", "not implemented for 'Long'"),
    ],
    batch: Batching::Leading,
    ..INPLACE
};

pub static RANDOM_: Op = Op {
    sig: sig("random_(Tensor! self, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with random integers from 0 to the largest that its dtype holds exactly.",
    body: drawing(|c, out| {
        let (dtype, high) = (out[0].dtype(), last_whole(out[0].dtype()));
        let long = matches!(dtype, DType::F64 | DType::I64 | DType::U64 | DType::C128);
        redraw(c, out, Draw::Int { low: 0, high: high.wrapping_add(1), long })
    }),
    node: "RandomBackward2",
    errors: &[("'a'", "TypeError", "doesn't apply to a 'str' object")],
    batch: Batching::Leading,
    ..INPLACE
};

pub static RANDOM_TO_: Op = Op {
    sig: sig("random_.to(Tensor! self, int to, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with random integers of [0, to).",
    body: drawing(|c, out| redraw(c, out, integers(0, c.int("to")?, out[0].dtype())?)),
    warns: Some(|c| doubt_of(c, &[1], c.tensor(0).ok()?.dtype())),
    node: "RandomBackward1",
    samples: &["f32[2,3], 1", "i64[2], 1"],
    errors: &[
        ("f32[2], 0", "RuntimeError", "expects 'from' to be less than 'to'"),
        ("i8[2], 1000", "RuntimeError", "to - 1 is out of bounds for signed char"),
        ("c64[2], 2", "RuntimeError", "check_random_bounds handles only integral, floating-point and boolean types"),
    ],
    reference: "np.zeros_like(x0)",
    batch: Batching::Leading,
    ..INPLACE
};

/// The exclusive upper bound of `random_.from`: argument 2, or one above the dtype's last integer.
fn end(c: &Call, dtype: DType) -> i64 {
    c.opt_int("to").unwrap_or_else(|| last_whole(dtype).saturating_add(1))
}

/// The draws of `random_.from`.
fn from_on(c: &Call, dtype: DType) -> Result<Draw> {
    match (c.int("from")?, c.opt_int("to")) {
        // All integers are the words as they are; one above the last wraps around.
        (i64::MIN, None) if dtype == DType::I64 => Ok(Draw::Int { low: 0, high: 0, long: true }),
        (low, None) if dtype == DType::I64 => Ok(Draw::Int { low, high: i64::MIN, long: true }),
        (low, _) => integers(low, end(c, dtype), dtype),
    }
}

pub static RANDOM_FROM_: Op = Op {
    sig: sig("random_.from(Tensor! self, int from, int? to, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with random integers of [from, to).",
    body: drawing(|c, out| redraw(c, out, from_on(c, out[0].dtype())?)),
    warns: Some(|c| {
        let dtype = c.tensor(0).ok()?.dtype();
        doubt(c.int("from").ok()?, end(c, dtype), dtype)
    }),
    samples: &["f32[2,3], 3, 4"],
    errors: &[
        ("f32[2], 3, 3", "RuntimeError", "expects 'from' to be less than 'to'"),
        ("u8[2], -5, 10", "RuntimeError", "from is out of bounds for unsigned char"),
    ],
    reference: "np.full_like(x0, 3)",
    batch: Batching::Leading,
    ..INPLACE
};
