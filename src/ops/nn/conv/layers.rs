//! `conv1d` to `conv3d` and their transposes: the rank of the input, batched or not, and padding by name. What is left is
//! the one `convolution`.

use super::CONVOLUTION;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::movement::pad::CONSTANT_PAD_ND;
use crate::ops::view::reshape::SQUEEZE_DIM;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &CONV1D,
    &CONV1D_PADDING,
    &CONV2D,
    &CONV2D_PADDING,
    &CONV3D,
    &CONV3D_PADDING,
    &CONV_TRANSPOSE1D,
    &CONV_TRANSPOSE2D,
    &CONV_TRANSPOSE3D,
];

/// The arguments of `convolution` beside the tensors, one number for each of `dims` dimensions where they are lists.
struct Settings {
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    output_padding: Ints,
    transposed: bool,
    groups: i64,
}

/// One number stands for all dimensions; other lengths are for `convolution` to refuse.
fn each(list: &[i64], dims: usize) -> Ints {
    if list.len() == 1 { smallvec![list[0]; dims] } else { list.into() }
}

/// `convolution` of a batch, or of one input without the dimension of the batch.
fn run(c: &Call, dims: usize, input: Term, s: Settings) -> Result<Outputs> {
    let shape = c.tensor(0)?.shape();
    if shape.len() != dims + 1 && shape.len() != dims + 2 {
        return Err(Error::runtime(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}",
            dims + 1,
            dims + 2,
            c.op.base(),
            Show(shape)
        )));
    }
    let single = shape.len() == dims + 1;
    let args: Args = smallvec![
        Value::Owned(if single { input.unsqueeze(0) } else { input }.ok()?),
        c.argument("weight").reborrow(),
        c.argument("bias").reborrow(),
        Value::Ints(each(&s.stride, dims)),
        Value::Ints(each(&s.padding, dims)),
        Value::Ints(each(&s.dilation, dims)),
        s.transposed.into(),
        Value::Ints(each(&s.output_padding, dims)),
        s.groups.into(),
    ];
    let y = CONVOLUTION.call(args);
    if single { SQUEEZE_DIM.calls((y, 0)) } else { y.outputs() }
}

fn plain<const N: usize>(c: &Call) -> Result<Outputs> {
    let settings = Settings {
        stride: c.ints("stride")?.into(),
        padding: c.ints("padding")?.into(),
        dilation: c.ints("dilation")?.into(),
        output_padding: smallvec![0],
        transposed: false,
        groups: c.int("groups")?,
    };
    run(c, N, c.tensor(0)?.into(), settings)
}

fn transposed<const N: usize>(c: &Call) -> Result<Outputs> {
    let settings = Settings {
        stride: c.ints("stride")?.into(),
        padding: c.ints("padding")?.into(),
        dilation: c.ints("dilation")?.into(),
        output_padding: c.ints("output_padding")?.into(),
        transposed: true,
        groups: c.int("groups")?,
    };
    run(c, N, c.tensor(0)?.into(), settings)
}

/// Zeros before and after each dimension for a result of the input's size; one more after, where their sum is odd.
fn same(c: &Call, dims: usize) -> Result<(Ints, Ints)> {
    let (w, dilation) = (c.tensor("weight")?, each(c.ints("dilation")?, dims));
    if c.ints("stride")?.iter().any(|&s| s != 1) {
        return Err(Error::runtime("padding='same' is not supported for strided convolutions"));
    }
    if w.ndim() != dims + 2 || dilation.len() != dims {
        // `convolution` says what is wrong with them.
        return Ok((smallvec![0; dims], smallvec![0; dims]));
    }
    let total = |i: usize| dilation[i].max(0).saturating_mul(w.size(2 + i) as i64 - 1).max(0);
    Ok(((0..dims).map(|i| total(i) / 2).collect(), (0..dims).map(|i| total(i) % 2).collect()))
}

fn by_name<const N: usize>(c: &Call) -> Result<Outputs> {
    let input = c.tensor(0)?;
    let (padding, more) = match c.str("padding").unwrap_or("valid") {
        "valid" => (smallvec![0; N], smallvec![0; N]),
        "same" => same(c, N)?,
        name => return Err(Error::runtime(format!("Invalid padding string: '{name}'"))),
    };
    let uneven = more.iter().any(|&m| m != 0) && input.ndim() > N;
    let after: Ints = more.iter().rev().flat_map(|&m| [0, m]).collect();
    let input = if uneven { CONSTANT_PAD_ND.call((input, after, 0)) } else { Term::from(input) };
    let settings = Settings {
        stride: c.ints("stride")?.into(),
        padding,
        dilation: c.ints("dilation")?.into(),
        output_padding: smallvec![0],
        transposed: false,
        groups: c.int("groups")?,
    };
    run(c, N, input, settings)
}

fn uneven<const N: usize>(c: &Call) -> Option<String> {
    let odd = c.str("padding") == Some("same") && same(c, N).is_ok_and(|(_, more)| more.contains(&1));
    odd.then(|| {
        "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created"
            .into()
    })
}

const CONV: Op = Op {
    doc: "Cross-correlation of an input [batch, channels, ..], or one without the batch, with a weight [filters, channels / groups, ..]: the sums of products with the kernel at each place. Zeros are padded to both ends of the inner dimensions. The size of a result is `(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1`.",
    forms: F,
    vjp: Vjp::Composite,
    ..OP
};
const CONV_BY_NAME: Op = Op {
    doc: "The same with the padding by its name: 'valid' is none, 'same' gives a result of the input's size.",
    ..CONV
};
const CONV_TRANSPOSE: Op = Op {
    doc: "The transpose of a convolution, as its gradient by the input is: of an input [batch, channels, ..], or one without the batch, with a weight [channels, filters / groups, ..]. The size of a result is `(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1`.",
    ..CONV
};

pub static CONV1D: Op = Op {
    sig: sig(
        "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv1d"],
    body: decompose(plain::<1>),
    samples: &[
        "f32[2,2,5], f32[3,2,3], f32[3]",
        "f32[2,5], f32[3,2,3]",
        "f32[2,4,7], f32[4,2,2], f32[4], 2, (1,), 3, 2",
        "c64[1,2,4], c64[1,2,2]",
    ],
    errors: &[
        ("f32[4], f32[3,2,2]", "RuntimeError", "Expected 2D (unbatched) or 3D (batched) input to conv1d"),
        ("f32[2,4], f32[3,3,2]", "RuntimeError", "to have 3 channels, but got 2 channels instead"),
        ("b8[1,2,4], b8[3,2,2]", "NotImplementedError", "not implemented for 'Bool'"),
    ],
    ..CONV
};
pub static CONV1D_PADDING: Op = Op {
    sig: sig(
        "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding='valid', int[1] dilation=1, int groups=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv1d"],
    body: decompose(by_name::<1>),
    warns_once: true,
    warns: Some(uneven::<1>),
    samples: &[
        "f32[2,2,5], f32[3,2,3], f32[3], padding='same'",
        "f32[2,5], f32[3,2,2], padding='same'",
        "f32[2,5], f32[3,2,2], padding='valid'",
    ],
    errors: &[
        ("f32[2,5], f32[3,2,3], padding='same', stride=2", "RuntimeError", "not supported for strided"),
        ("f32[2,5], f32[3,2,3], padding='odd'", "RuntimeError", "Invalid padding string"),
    ],
    ..CONV_BY_NAME
};
pub static CONV2D: Op = Op {
    sig: sig(
        "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv2d"],
    body: decompose(plain::<2>),
    samples: &[
        "f32[2,2,4,4], f32[3,2,2,3], f32[3]",
        "f32[2,4,4], f32[3,2,1,1]",
        "f32[1,4,6,5], f32[6,2,3,2], f32[6], stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2",
        "f32[2,3,4,4], f32[3,1,3,3], None, 1, 1, groups=3",
    ],
    errors: &[
        ("f32[2,2], f32[3,2,2,2]", "RuntimeError", "Expected 3D (unbatched) or 4D (batched) input to conv2d"),
        (
            "f32[1,2,2,2], f32[2,2,3,3]",
            "RuntimeError",
            "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3)",
        ),
    ],
    ..CONV
};
pub static CONV2D_PADDING: Op = Op {
    sig: sig(
        "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding='valid', int[1] dilation=1, int groups=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv2d"],
    body: decompose(by_name::<2>),
    warns_once: true,
    warns: Some(uneven::<2>),
    samples: &["f32[1,2,4,4], f32[3,2,3,1], padding='same', dilation=2", "f32[1,2,4,4], f32[3,2,2,2], padding='same'"],
    errors: &[("f32[2,5,5], f32[3,2,3,3], padding='odd'", "RuntimeError", "Invalid padding string")],
    ..CONV_BY_NAME
};
pub static CONV3D: Op = Op {
    sig: sig(
        "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv3d"],
    body: decompose(plain::<3>),
    samples: &["f32[1,2,3,3,3], f32[2,2,2,1,2], f32[2]", "f32[2,3,3,4], f32[2,1,2,2,2], stride=2, padding=1, groups=2"],
    errors: &[("f32[2,2], f32[3,2,2,2,2]", "RuntimeError", "Expected 4D (unbatched) or 5D (batched) input to conv3d")],
    ..CONV
};
pub static CONV3D_PADDING: Op = Op {
    sig: sig(
        "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding='valid', int[1] dilation=1, int groups=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv3d"],
    body: decompose(by_name::<3>),
    warns_once: true,
    warns: Some(uneven::<3>),
    samples: &["f32[1,2,3,3,3], f32[2,2,3,1,3], padding='same'"],
    errors: &[("f32[2,5,5,5], f32[3,2,3,3,3], padding='odd'", "RuntimeError", "Invalid padding string")],
    ..CONV_BY_NAME
};
pub static CONV_TRANSPOSE1D: Op = Op {
    sig: sig(
        "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv_transpose1d"],
    body: decompose(transposed::<1>),
    samples: &["f32[2,2,3], f32[2,3,3], f32[3]", "f32[4,3], f32[4,2,2], None, 2, 1, 1, 2, 3", "c64[1,2,4], c64[2,1,2]"],
    errors: &[(
        "f32[4], f32[3,2,2]",
        "RuntimeError",
        "Expected 2D (unbatched) or 3D (batched) input to conv_transpose1d",
    )],
    ..CONV_TRANSPOSE
};
pub static CONV_TRANSPOSE2D: Op = Op {
    sig: sig(
        "conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv_transpose2d"],
    body: decompose(transposed::<2>),
    samples: &[
        "f32[2,2,3,3], f32[2,3,2,3], f32[3]",
        "f32[1,2,3,2], f32[2,1,2,3], None, (2, 3), (1, 2), (1, 2), 2, (1, 2)",
    ],
    errors: &[(
        "f32[2,2], f32[3,2,2,2]",
        "RuntimeError",
        "Expected 3D (unbatched) or 4D (batched) input to conv_transpose2d",
    )],
    ..CONV_TRANSPOSE
};
pub static CONV_TRANSPOSE3D: Op = Op {
    sig: sig(
        "conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    ),
    aliases: &["nn.functional.conv_transpose3d"],
    body: decompose(transposed::<3>),
    samples: &["f32[1,2,2,2,3], f32[2,1,2,1,2], f32[1], stride=2, padding=(1, 0, 1)"],
    errors: &[(
        "f32[2,2], f32[3,2,2,2,2]",
        "RuntimeError",
        "Expected 4D (unbatched) or 5D (batched) input to conv_transpose3d",
    )],
    ..CONV_TRANSPOSE
};
