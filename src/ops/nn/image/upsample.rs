//! The interpolations of one to three dimensions as ops, two for each: the forward one and its gradient, whose own gradient is
//! the forward op again. They are one kernel, with the tables of `taps.rs` or their transposes.

use super::run::{Axes, resample};
use super::taps::{Axis, Method};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, Layout, checked_numel};
use crate::op::*;
use crate::ops::support::batch_layers::sized;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &NEAREST1D,
    &NEAREST1D_BACKWARD,
    &NEAREST2D,
    &NEAREST2D_BACKWARD,
    &NEAREST3D,
    &NEAREST3D_BACKWARD,
    &NEAREST_EXACT1D,
    &NEAREST_EXACT1D_BACKWARD,
    &NEAREST_EXACT2D,
    &NEAREST_EXACT2D_BACKWARD,
    &NEAREST_EXACT3D,
    &NEAREST_EXACT3D_BACKWARD,
    &LINEAR1D,
    &LINEAR1D_BACKWARD,
    &BILINEAR2D,
    &BILINEAR2D_BACKWARD,
    &TRILINEAR3D,
    &TRILINEAR3D_BACKWARD,
    &BICUBIC2D,
    &BICUBIC2D_BACKWARD,
    &BILINEAR2D_AA,
    &BILINEAR2D_AA_BACKWARD,
    &BICUBIC2D_AA,
    &BICUBIC2D_AA_BACKWARD,
    &LANCZOS2D_AA,
    &LANCZOS2D_AA_BACKWARD,
];

/// One interpolation: its method and its two ops. Their arguments are the tensor, the size of the result, for the gradient that of
/// the input, `align_corners` where the method has a choice, and a factor for each dimension.
trait Upsample {
    const METHOD: Method;
    /// The name in PyTorch's message about a dtype without a kernel.
    const KERNEL: &'static str;
    const DIMS: usize;
    fn forward() -> &'static Op;
    fn backward() -> &'static Op;

    const ALIGNS: bool = !matches!(Self::METHOD, Method::Nearest | Method::NearestExact);
    const GRADIENT: [Grad; 1] = [d(0, 0, gradient::<Self>)];
    const SECOND: [Grad; 1] = [d(0, 0, second::<Self>)];
}

/// `(W: 4)` or `(H: 3, W: 4)`: spatial sizes as PyTorch's messages have them.
fn named(sizes: &[i64]) -> String {
    let names = &["D", "H", "W"][3 - sizes.len().min(3)..];
    let each: Vec<String> = names.iter().zip(sizes).map(|(name, n)| format!("{name}: {n}")).collect();
    format!("({})", each.join(", "))
}

/// The sizes of input and result, checked as PyTorch checks them.
fn checked(dims: usize, input: &[i64], output: &[i64]) -> Result<()> {
    if output.len() != dims {
        let n = output.len();
        return Err(Error::runtime(format!("It is expected output_size equals to {dims}, but got size {n}")));
    }
    if input.len() != dims + 2 {
        let (rank, n) = (dims + 2, input.len());
        return Err(Error::runtime(format!("It is expected input_size equals to {rank}, but got size {n}")));
    }
    if input[2..].iter().chain(output).any(|&n| n <= 0) {
        let and = if dims == 1 { " and" } else { "" };
        return Err(Error::runtime(format!(
            "Input and output sizes should be greater than 0, but got input {}{and} output {}",
            named(&input[2..]),
            named(output)
        )));
    }
    if input[1] == 0 {
        return Err(Error::runtime(format!(
            "Non-empty {}D data tensor expected but got a tensor with sizes {}",
            dims + 2,
            Show(input)
        )));
    }
    Ok(())
}

fn check_dtype<M: Upsample>(dtype: DType) -> Result<()> {
    let pixels = dtype == DType::U8 && (!M::ALIGNS || M::DIMS == 2);
    if dtype.is_float() || pixels { Ok(()) } else { Err(no_kernel(M::KERNEL, dtype)) }
}

/// A result in the memory format of `t`.
fn formed(t: &Tensor, shape: Dims) -> Result<Specs> {
    checked_numel(&shape)?;
    let layout = Layout::of(shape).formed(t.layout().channels_format())?;
    Ok(smallvec![Spec { layout, dtype: t.dtype(), device: t.device() }])
}

fn sizes(t: &Tensor) -> Ints {
    t.shape().iter().map(|&n| n as i64).collect()
}

fn resized<M: Upsample>(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let output = c.ints("output_size")?;
    checked(M::DIMS, &sizes(t), output)?;
    check_dtype::<M>(t.dtype())?;
    formed(t, t.shape()[..2].iter().copied().chain(output.iter().map(|&n| n as usize)).collect())
}

fn restored<M: Upsample>(c: &Call) -> Result<Specs> {
    let (g, output, input) = (c.tensor("grad_output")?, c.ints("output_size")?, c.ints("input_size")?);
    checked(M::DIMS, input, output)?;
    check_dtype::<M>(g.dtype())?;
    let full: Ints = input[..2].iter().chain(output).copied().collect();
    if sizes(g) != full {
        return Err(Error::runtime(format!(
            "Expected grad_output to have the same shape as output; output.size() = {} but got grad_output.size() = {}",
            Show(&full),
            Show(g.shape())
        )));
    }
    formed(g, crate::layout::to_shape(input)?)
}

/// The dimensions from their sizes and from the arguments at `at`.
fn axes<M: Upsample>(c: &Call, from: &[usize], to: &[usize], at: usize) -> Axes {
    let align_corners = M::ALIGNS && c.flag(at);
    let factor = |d: usize| c.opt_float(at + usize::from(M::ALIGNS) + d);
    // PyTorch's kernel for small images.
    let snaps = M::DIMS == 2 && to[0].saturating_add(to[1]) <= 128;
    let axis = |d: usize| Axis { from: from[d], to: to[d], align_corners, factor: factor(d), snaps };
    (0..M::DIMS).map(axis).collect()
}

fn resize<M: Upsample>(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    resample(t, &axes::<M>(c, &t.shape()[2..], &out[0].shape()[2..], 2), M::METHOD, false, &out[0])
}

fn restore<M: Upsample>(c: &Call, out: &[Tensor]) -> Result<()> {
    let g = c.tensor("grad_output")?;
    resample(g, &axes::<M>(c, &out[0].shape()[2..], &g.shape()[2..], 3), M::METHOD, true, &out[0])
}

fn gradient<M: Upsample + ?Sized>(c: &VjpCtx) -> Term {
    let g = match c.g().into_arg() {
        Ok(g) => g,
        Err(e) => return e.into(),
    };
    let mut args: Args = smallvec![g, Value::Ints(c.ints(1).into()), Value::Ints(c.sizes(0))];
    args.extend(c.call.args[2..].iter().map(|v| v.reborrow()));
    M::backward().call(args)
}

fn second<M: Upsample + ?Sized>(c: &VjpCtx) -> Term {
    let g = match c.g().into_arg() {
        Ok(g) => g,
        Err(e) => return e.into(),
    };
    let mut args: Args = smallvec![g, Value::Ints(c.ints(1).into())];
    args.extend(c.call.args[3..].iter().map(|v| v.reborrow()));
    M::forward().call(args)
}

const UPSAMPLE: Op = Op { doc: "Resizes the inner dimensions.", forms: HIDDEN, ..OP };

const fn forward<M: Upsample>() -> Op {
    Op {
        body: kernel(resized::<M>, resize::<M>, Some(resize::<M>)),
        vjp: Vjp::Each(&M::GRADIENT),
        batch: Batching::Fold(M::DIMS + 2, &[0]),
        keeps: Some(match (M::ALIGNS, M::DIMS) {
            (false, 1) => "output_size scales self_sym_sizes",
            (false, 2) => "output_size scales_h scales_w self_sym_sizes",
            (false, _) => "output_size scales_d scales_h scales_w self_sym_sizes",
            (true, 1) => "align_corners output_size scales self_sym_sizes",
            (true, 2) => "align_corners output_size scales_h scales_w self_sym_sizes",
            (true, _) => "align_corners output_size scales_d scales_h scales_w self_sym_sizes",
        }),
        ..UPSAMPLE
    }
}

const fn backward<M: Upsample>() -> Op {
    Op {
        doc: "The gradient of an interpolation: each element is added to those that it was made of.",
        body: kernel(restored::<M>, restore::<M>, Some(restore::<M>)),
        vjp: Vjp::Each(&M::SECOND),
        batch: Batching::Rule(sized::<2>),
        ..UPSAMPLE
    }
}

struct Nearest1d;
impl Upsample for Nearest1d {
    const METHOD: Method = Method::Nearest;
    const KERNEL: &'static str = "compute_indices_weights_nearest";
    const DIMS: usize = 1;
    fn forward() -> &'static Op {
        &NEAREST1D
    }
    fn backward() -> &'static Op {
        &NEAREST1D_BACKWARD
    }
}
pub static NEAREST1D: Op = Op {
    sig: sig("_upsample_nearest1d(Tensor self, int[] output_size, float? scales=None) -> Tensor"),
    samples: &["f32[2,3,4], (7,)", "f32[2,3,4], (7,), 1.8"],
    errors: &[
        ("f32[2,3,4], (3, 3)", "RuntimeError", "It is expected output_size equals to 1"),
        ("f32[2,3,4], (0,)", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4], (7,)", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Nearest1d>()
};
pub static NEAREST1D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_nearest1d_backward(Tensor grad_output, int[] output_size, int[] input_size, float? scales=None) -> Tensor",
    ),
    samples: &["f32[2,3,7], (7,), (2, 3, 4)"],
    errors: &[("f32[2,3,4], (7,), (2, 3, 4)", "RuntimeError", "Expected grad_output to have the same shape")],
    ..backward::<Nearest1d>()
};

struct Nearest2d;
impl Upsample for Nearest2d {
    const METHOD: Method = Method::Nearest;
    const KERNEL: &'static str = "compute_indices_weights_nearest";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &NEAREST2D
    }
    fn backward() -> &'static Op {
        &NEAREST2D_BACKWARD
    }
}
pub static NEAREST2D: Op = Op {
    sig: sig(
        "_upsample_nearest2d(Tensor self, int[] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3)", "f32[2,3,4,5], (6, 3), 1.6, 0.7"],
    errors: &[
        ("f32[2,3,4,5], (3,)", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0)", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3)", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Nearest2d>()
};
pub static NEAREST2D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_nearest2d_backward(Tensor grad_output, int[] output_size, int[] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5)"],
    errors: &[("f32[2,3,4,5], (6, 3), (2, 3, 4, 5)", "RuntimeError", "Expected grad_output to have the same shape")],
    ..backward::<Nearest2d>()
};

struct Nearest3d;
impl Upsample for Nearest3d {
    const METHOD: Method = Method::Nearest;
    const KERNEL: &'static str = "compute_indices_weights_nearest";
    const DIMS: usize = 3;
    fn forward() -> &'static Op {
        &NEAREST3D
    }
    fn backward() -> &'static Op {
        &NEAREST3D_BACKWARD
    }
}
pub static NEAREST3D: Op = Op {
    sig: sig(
        "_upsample_nearest3d(Tensor self, int[] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[1,2,3,4,2], (4, 3, 5)", "f32[1,2,3,4,2], (4, 3, 5), 1.4, 0.8, 2.5"],
    errors: &[
        ("f32[1,2,3,4,2], (3,)", "RuntimeError", "It is expected output_size equals to 3"),
        ("f32[1,2,3,4,2], (0, 0, 0)", "RuntimeError", "should be greater than 0"),
        ("i64[1,2,3,4,2], (4, 3, 5)", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Nearest3d>()
};
pub static NEAREST3D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_nearest3d_backward(Tensor grad_output, int[] output_size, int[] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[1,2,4,3,5], (4, 3, 5), (1, 2, 3, 4, 2)"],
    errors: &[(
        "f32[1,2,3,4,2], (4, 3, 5), (1, 2, 3, 4, 2)",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Nearest3d>()
};

struct NearestExact1d;
impl Upsample for NearestExact1d {
    const METHOD: Method = Method::NearestExact;
    const KERNEL: &'static str = "compute_indices_weights_nearest";
    const DIMS: usize = 1;
    fn forward() -> &'static Op {
        &NEAREST_EXACT1D
    }
    fn backward() -> &'static Op {
        &NEAREST_EXACT1D_BACKWARD
    }
}
pub static NEAREST_EXACT1D: Op = Op {
    sig: sig("_upsample_nearest_exact1d(Tensor self, int[] output_size, float? scales=None) -> Tensor"),
    samples: &["f32[2,3,4], (7,)", "f32[2,3,4], (7,), 1.8"],
    errors: &[
        ("f32[2,3,4], (3, 3)", "RuntimeError", "It is expected output_size equals to 1"),
        ("f32[2,3,4], (0,)", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4], (7,)", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<NearestExact1d>()
};
pub static NEAREST_EXACT1D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_nearest_exact1d_backward(Tensor grad_output, int[] output_size, int[] input_size, float? scales=None) -> Tensor",
    ),
    samples: &["f32[2,3,7], (7,), (2, 3, 4)"],
    errors: &[("f32[2,3,4], (7,), (2, 3, 4)", "RuntimeError", "Expected grad_output to have the same shape")],
    ..backward::<NearestExact1d>()
};

struct NearestExact2d;
impl Upsample for NearestExact2d {
    const METHOD: Method = Method::NearestExact;
    const KERNEL: &'static str = "compute_indices_weights_nearest";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &NEAREST_EXACT2D
    }
    fn backward() -> &'static Op {
        &NEAREST_EXACT2D_BACKWARD
    }
}
pub static NEAREST_EXACT2D: Op = Op {
    sig: sig(
        "_upsample_nearest_exact2d(Tensor self, int[] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3)", "f32[2,3,4,5], (6, 3), 1.6, 0.7"],
    errors: &[
        ("f32[2,3,4,5], (3,)", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0)", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3)", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<NearestExact2d>()
};
pub static NEAREST_EXACT2D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_nearest_exact2d_backward(Tensor grad_output, int[] output_size, int[] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5)"],
    errors: &[("f32[2,3,4,5], (6, 3), (2, 3, 4, 5)", "RuntimeError", "Expected grad_output to have the same shape")],
    ..backward::<NearestExact2d>()
};

struct NearestExact3d;
impl Upsample for NearestExact3d {
    const METHOD: Method = Method::NearestExact;
    const KERNEL: &'static str = "compute_indices_weights_nearest";
    const DIMS: usize = 3;
    fn forward() -> &'static Op {
        &NEAREST_EXACT3D
    }
    fn backward() -> &'static Op {
        &NEAREST_EXACT3D_BACKWARD
    }
}
pub static NEAREST_EXACT3D: Op = Op {
    sig: sig(
        "_upsample_nearest_exact3d(Tensor self, int[] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[1,2,3,4,2], (4, 3, 5)", "f32[1,2,3,4,2], (4, 3, 5), 1.4, 0.8, 2.5"],
    errors: &[
        ("f32[1,2,3,4,2], (3,)", "RuntimeError", "It is expected output_size equals to 3"),
        ("f32[1,2,3,4,2], (0, 0, 0)", "RuntimeError", "should be greater than 0"),
        ("i64[1,2,3,4,2], (4, 3, 5)", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<NearestExact3d>()
};
pub static NEAREST_EXACT3D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_nearest_exact3d_backward(Tensor grad_output, int[] output_size, int[] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[1,2,4,3,5], (4, 3, 5), (1, 2, 3, 4, 2)"],
    errors: &[(
        "f32[1,2,3,4,2], (4, 3, 5), (1, 2, 3, 4, 2)",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<NearestExact3d>()
};

struct Linear1d;
impl Upsample for Linear1d {
    const METHOD: Method = Method::Linear;
    const KERNEL: &'static str = "compute_indices_weights_linear";
    const DIMS: usize = 1;
    fn forward() -> &'static Op {
        &LINEAR1D
    }
    fn backward() -> &'static Op {
        &LINEAR1D_BACKWARD
    }
}
pub static LINEAR1D: Op = Op {
    sig: sig("_upsample_linear1d(Tensor self, int[] output_size, bool align_corners, float? scales=None) -> Tensor"),
    samples: &["f32[2,3,4], (7,), False", "f32[2,3,4], (7,), False, 1.8", "f32[2,3,4], (7,), True"],
    errors: &[
        ("f32[2,3,4], (3, 3), False", "RuntimeError", "It is expected output_size equals to 1"),
        ("f32[2,3,4], (0,), False", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4], (7,), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Linear1d>()
};
pub static LINEAR1D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_linear1d_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales=None) -> Tensor",
    ),
    samples: &["f32[2,3,7], (7,), (2, 3, 4), False"],
    errors: &[("f32[2,3,4], (7,), (2, 3, 4), False", "RuntimeError", "Expected grad_output to have the same shape")],
    ..backward::<Linear1d>()
};

struct Bilinear2d;
impl Upsample for Bilinear2d {
    const METHOD: Method = Method::Linear;
    const KERNEL: &'static str = "compute_indices_weights_linear";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &BILINEAR2D
    }
    fn backward() -> &'static Op {
        &BILINEAR2D_BACKWARD
    }
}
pub static BILINEAR2D: Op = Op {
    sig: sig(
        "_upsample_bilinear2d(Tensor self, int[] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3), False", "f32[2,3,4,5], (6, 3), False, 1.6, 0.7", "f32[2,3,4,5], (6, 3), True"],
    errors: &[
        ("f32[2,3,4,5], (3,), False", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0), False", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Bilinear2d>()
};
pub static BILINEAR2D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_bilinear2d_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5), False"],
    errors: &[(
        "f32[2,3,4,5], (6, 3), (2, 3, 4, 5), False",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Bilinear2d>()
};

struct Trilinear3d;
impl Upsample for Trilinear3d {
    const METHOD: Method = Method::Linear;
    const KERNEL: &'static str = "compute_indices_weights_linear";
    const DIMS: usize = 3;
    fn forward() -> &'static Op {
        &TRILINEAR3D
    }
    fn backward() -> &'static Op {
        &TRILINEAR3D_BACKWARD
    }
}
pub static TRILINEAR3D: Op = Op {
    sig: sig(
        "_upsample_trilinear3d(Tensor self, int[] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &[
        "f32[1,2,3,4,2], (4, 3, 5), False",
        "f32[1,2,3,4,2], (4, 3, 5), False, 1.4, 0.8, 2.5",
        "f32[1,2,3,4,2], (4, 3, 5), True",
    ],
    errors: &[
        ("f32[1,2,3,4,2], (3,), False", "RuntimeError", "It is expected output_size equals to 3"),
        ("f32[1,2,3,4,2], (0, 0, 0), False", "RuntimeError", "should be greater than 0"),
        ("i64[1,2,3,4,2], (4, 3, 5), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Trilinear3d>()
};
pub static TRILINEAR3D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_trilinear3d_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[1,2,4,3,5], (4, 3, 5), (1, 2, 3, 4, 2), False"],
    errors: &[(
        "f32[1,2,3,4,2], (4, 3, 5), (1, 2, 3, 4, 2), False",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Trilinear3d>()
};

struct Bicubic2d;
impl Upsample for Bicubic2d {
    const METHOD: Method = Method::Cubic;
    const KERNEL: &'static str = "compute_indices_weights_cubic";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &BICUBIC2D
    }
    fn backward() -> &'static Op {
        &BICUBIC2D_BACKWARD
    }
}
pub static BICUBIC2D: Op = Op {
    sig: sig(
        "_upsample_bicubic2d(Tensor self, int[] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3), False", "f32[2,3,4,5], (6, 3), False, 1.6, 0.7", "f32[2,3,4,5], (6, 3), True"],
    errors: &[
        ("f32[2,3,4,5], (3,), False", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0), False", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Bicubic2d>()
};
pub static BICUBIC2D_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_bicubic2d_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5), False"],
    errors: &[(
        "f32[2,3,4,5], (6, 3), (2, 3, 4, 5), False",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Bicubic2d>()
};

struct Bilinear2dAa;
impl Upsample for Bilinear2dAa {
    const METHOD: Method = Method::LinearSmooth;
    const KERNEL: &'static str = "compute_index_ranges_weights";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &BILINEAR2D_AA
    }
    fn backward() -> &'static Op {
        &BILINEAR2D_AA_BACKWARD
    }
}
pub static BILINEAR2D_AA: Op = Op {
    sig: sig(
        "_upsample_bilinear2d_aa(Tensor self, int[] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3), False", "f32[2,3,4,5], (6, 3), False, 1.6, 0.7", "f32[2,3,4,5], (6, 3), True"],
    errors: &[
        ("f32[2,3,4,5], (3,), False", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0), False", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Bilinear2dAa>()
};
pub static BILINEAR2D_AA_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_bilinear2d_aa_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5), False"],
    errors: &[(
        "f32[2,3,4,5], (6, 3), (2, 3, 4, 5), False",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Bilinear2dAa>()
};

struct Bicubic2dAa;
impl Upsample for Bicubic2dAa {
    const METHOD: Method = Method::CubicSmooth;
    const KERNEL: &'static str = "compute_index_ranges_weights";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &BICUBIC2D_AA
    }
    fn backward() -> &'static Op {
        &BICUBIC2D_AA_BACKWARD
    }
}
pub static BICUBIC2D_AA: Op = Op {
    sig: sig(
        "_upsample_bicubic2d_aa(Tensor self, int[] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3), False", "f32[2,3,4,5], (6, 3), False, 1.6, 0.7", "f32[2,3,4,5], (6, 3), True"],
    errors: &[
        ("f32[2,3,4,5], (3,), False", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0), False", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Bicubic2dAa>()
};
pub static BICUBIC2D_AA_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_bicubic2d_aa_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5), False"],
    errors: &[(
        "f32[2,3,4,5], (6, 3), (2, 3, 4, 5), False",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Bicubic2dAa>()
};

struct Lanczos2dAa;
impl Upsample for Lanczos2dAa {
    const METHOD: Method = Method::LanczosSmooth;
    const KERNEL: &'static str = "compute_index_ranges_weights";
    const DIMS: usize = 2;
    fn forward() -> &'static Op {
        &LANCZOS2D_AA
    }
    fn backward() -> &'static Op {
        &LANCZOS2D_AA_BACKWARD
    }
}
pub static LANCZOS2D_AA: Op = Op {
    sig: sig(
        "_upsample_lanczos2d_aa(Tensor self, int[] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,4,5], (6, 3), False", "f32[2,3,4,5], (6, 3), False, 1.6, 0.7", "f32[2,3,4,5], (6, 3), True"],
    errors: &[
        ("f32[2,3,4,5], (3,), False", "RuntimeError", "It is expected output_size equals to 2"),
        ("f32[2,3,4,5], (0, 0), False", "RuntimeError", "should be greater than 0"),
        ("i64[2,3,4,5], (6, 3), False", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..forward::<Lanczos2dAa>()
};
pub static LANCZOS2D_AA_BACKWARD: Op = Op {
    sig: sig(
        "_upsample_lanczos2d_aa_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    ),
    samples: &["f32[2,3,6,3], (6, 3), (2, 3, 4, 5), False"],
    errors: &[(
        "f32[2,3,4,5], (6, 3), (2, 3, 4, 5), False",
        "RuntimeError",
        "Expected grad_output to have the same shape",
    )],
    ..backward::<Lanczos2dAa>()
};
