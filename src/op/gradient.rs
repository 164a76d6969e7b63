//! How an op is differentiated: a formula per argument, at most three lines of differentiable calls.
//!
//! A formula reads a `VjpCtx`: the gradients of the outputs, saved tensors, and the shapes, dtypes and non-tensor
//! arguments of the call. It neither sums over broadcast dimensions nor casts: the engine does (`autograd::engine`).

use super::body::Call;
use super::term::Term;
use super::value::{Arguments, Key, Value, mismatch};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Dims, same, same_dims};
use crate::tensor::Tensor;

/// The tensors that a formula reads, which are saved: arguments by position, outputs from `OUT0` on.
pub type Saves = u32;
pub const A0: Saves = 1;
pub const A1: Saves = 2;
pub const A2: Saves = 4;
pub const A3: Saves = 8;
pub const A4: Saves = 16;
pub const OUT0: Saves = 1 << 16;
pub const OUT1: Saves = 1 << 17;
pub const OUT2: Saves = 1 << 18;

/// The gradient of one argument.
pub struct Grad {
    pub arg: usize,
    pub saves: Saves,
    pub formula: fn(&VjpCtx) -> Term,
    /// The numbers among the arguments with which the formula does nothing, or nothing but `Back::g_times`: it is the same
    /// for all of them.
    pub any_number: Saves,
}

impl Grad {
    /// States `any_number`.
    pub const fn for_any(self, numbers: Saves) -> Grad {
        Grad { any_number: numbers, ..self }
    }
}

/// The gradients of several arguments at once, if they share work. A list argument has one gradient per item.
pub struct Joint {
    pub args: &'static [usize],
    pub saves: Saves,
    pub formula: fn(&VjpCtx) -> Result<Vec<Option<Tensor>>>,
}

pub enum Vjp {
    Each(&'static [Grad]),
    Joint(Joint),
    /// The results do not depend on these arguments, or nowhere change with them: gradients of zeros.
    Zero(&'static [usize]),
    /// The body is written in differentiable calls.
    Composite,
    /// Not differentiable, and why.
    None(&'static str),
    /// Without a formula, as in PyTorch: the result has a node, and backward through it is an error.
    Missing,
    Unset,
}

/// How tangents of arguments become tangents of results, where that does not follow from the gradient alone as cheaply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Jvp {
    /// From the body and the gradient: `dispatch::jvp_rules`.
    Derived,
    /// The op is linear in its differentiable arguments together: `cat`, `sum`.
    Linear,
    /// The op is linear in each differentiable argument alone, apart from these, which are optional and added: `mm`, and a
    /// convolution with its bias.
    Multilinear(&'static [usize]),
}

impl Vjp {
    /// Calls `f` on the differentiable arguments, in the order of the node's edges, until it fails. Of `Missing` every tensor
    /// counts: none are listed.
    #[inline(always)]
    pub fn each_arg<E>(&self, mut f: impl FnMut(usize) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        match self {
            Vjp::Each(list) => list.iter().try_for_each(|g| f(g.arg)),
            Vjp::Joint(Joint { args, .. }) | Vjp::Zero(args) => args.iter().try_for_each(|&i| f(i)),
            Vjp::Composite | Vjp::None(_) | Vjp::Missing | Vjp::Unset => Ok(()),
        }
    }
    /// Whether `is` holds of a differentiable argument.
    #[inline(always)]
    pub fn any_arg(&self, is: impl Fn(usize) -> bool) -> bool {
        self.each_arg(|i| if is(i) { Err(()) } else { Ok(()) }).is_err()
    }
    /// The numbers among the arguments for any of which the `wanted` formulas are the same.
    pub fn any_number(&self, wanted: impl Fn(usize) -> bool) -> Saves {
        match self {
            Vjp::Each(list) => {
                list.iter().enumerate().filter(|(i, _)| wanted(*i)).fold(Saves::MAX, |all, (_, g)| all & g.any_number)
            }
            Vjp::Zero(_) => Saves::MAX,
            _ => 0,
        }
    }
    /// What the formulas read that are `wanted`, by the number of their edge.
    #[inline]
    pub fn saves(&self, wanted: impl Fn(usize) -> bool) -> Saves {
        match self {
            Vjp::Each(list) => list.iter().enumerate().filter(|(i, _)| wanted(*i)).fold(0, |all, (_, g)| all | g.saves),
            Vjp::Joint(j) => j.saves,
            _ => 0,
        }
    }
}

/// The gradient of argument `arg`, which reads `saves`.
pub const fn d(arg: usize, saves: Saves, formula: fn(&VjpCtx) -> Term) -> Grad {
    Grad { arg, saves, formula, any_number: 0 }
}

/// Metadata kept of an argument or output.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMeta {
    pub shape: Dims,
    pub dtype: DType,
    pub device: Device,
    /// Whether it was a matrix whose columns are contiguous, as a transposed weight is.
    pub column_major: bool,
}

/// Whether these are sizes and strides of a matrix whose columns are contiguous.
#[inline]
fn column_major(shape: &[usize], strides: &[usize]) -> bool {
    matches!((shape, strides), (&[rows, _], &[1, step]) if step == rows)
}

impl TensorMeta {
    pub fn of(t: &Tensor) -> TensorMeta {
        let m = t.meta();
        TensorMeta {
            shape: same_dims(&m.layout.shape),
            dtype: m.dtype,
            device: m.storage.device(),
            column_major: column_major(&m.layout.shape, &m.layout.strides),
        }
    }
    /// Whether it is the metadata of `t`.
    pub fn fit(&self, t: &Tensor) -> bool {
        let m = t.meta();
        self.dtype == m.dtype
            && self.device == m.storage.device()
            && same(&self.shape, &m.layout.shape)
            && self.column_major == column_major(&m.layout.shape, &m.layout.strides)
    }
}

/// What a formula reads. Saved tensors are unpacked, and their versions checked, before it runs. The call itself was checked
/// too, so that plain arguments are read without an error: one of another kind is a mistake in the op, and panics.
pub struct VjpCtx<'a> {
    pub call: Call<'a>,
    /// One for each output; `None` if undefined.
    pub grads: &'a [Option<Tensor>],
    /// Metadata of every tensor argument by position (list items consecutively).
    pub metas: &'a [(usize, TensorMeta)],
    pub outputs: &'a [Option<Tensor>],
    pub output_metas: &'a [TensorMeta],
    /// Arguments whose gradients are needed (a bit per position); for lists: any item.
    pub wanted: u32,
}

impl Arguments for VjpCtx<'_> {
    fn arguments(&self) -> &[Value<'_>] {
        self.call.args
    }
    fn op(&self) -> &'static super::Op {
        self.call.op
    }
}

impl VjpCtx<'_> {
    /// The gradient of the first output.
    pub fn g(&self) -> Term {
        self.gi(0)
    }
    /// The gradient of output `i`; zeros if undefined.
    pub fn gi(&self, i: usize) -> Term {
        match &self.grads[i] {
            Some(g) => Term::from(g),
            None => {
                let f = &self.output_metas[i];
                Term(Tensor::zeros(&f.shape, f.dtype, f.device))
            }
        }
    }
    pub fn has_grad(&self, i: usize) -> bool {
        self.grads[i].is_some()
    }
    pub fn wants(&self, arg: impl Key) -> bool {
        self.wanted >> arg.position(&self.call.op.sig) & 1 != 0
    }
    /// A saved argument, tensor or number.
    pub fn arg(&self, key: impl Key) -> Term {
        match self.argument(key) {
            Value::Scalar(s) => Term::number(*s),
            v => match v.as_tensor() {
                Some(t) => Term::from(t),
                None => Term(Err(Error::internal(format!("gradient: argument {key} was not saved")))),
            },
        }
    }
    /// A number among the arguments.
    pub fn scalar(&self, key: impl Key) -> Scalar {
        self.opt_scalar(key).unwrap_or_else(|| mismatch(self.call.op, key, "a number"))
    }
    pub fn int(&self, key: impl Key) -> i64 {
        self.scalar(key).to_i64()
    }
    pub fn float(&self, key: impl Key) -> f64 {
        self.scalar(key).to_f64()
    }
    pub fn ints(&self, key: impl Key) -> &[i64] {
        self.opt_ints(key).unwrap_or_else(|| mismatch(self.call.op, key, "a list of ints"))
    }
    /// A saved output.
    pub fn out(&self, i: usize) -> Term {
        match &self.outputs[i] {
            Some(t) => Term::from(t),
            None => Term(Err(Error::internal(format!("gradient: output {i} was not saved")))),
        }
    }
    /// Shape, dtype and device of a tensor argument; a number counts as 0-d.
    pub fn meta_of(&self, key: impl Key) -> TensorMeta {
        let i = key.position(&self.call.op.sig);
        match self.metas.iter().find(|(a, _)| *a == i) {
            Some((_, f)) => f.clone(),
            None => {
                let dtype = self.opt_scalar(i).map_or(DType::F32, |s| match s {
                    Scalar::Complex(..) => DType::C64,
                    _ => DType::F32,
                });
                TensorMeta { shape: Dims::new(), dtype, device: self.output_metas[0].device, column_major: false }
            }
        }
    }
    pub fn shape(&self, key: impl Key) -> Dims {
        self.meta_of(key).shape
    }
    /// Whether the argument was a matrix whose columns are contiguous.
    pub fn is_column_major(&self, key: impl Key) -> bool {
        let i = key.position(&self.call.op.sig);
        self.metas.iter().any(|(a, m)| *a == i && m.column_major)
    }
    pub fn ndim(&self, key: impl Key) -> usize {
        self.meta_of(key).shape.len()
    }
    /// The sizes of an argument as op arguments.
    pub fn sizes(&self, key: impl Key) -> super::Ints {
        self.meta_of(key).shape.iter().map(|&d| d as i64).collect()
    }
}
