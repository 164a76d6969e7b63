//! `interpolate`: sizes from factors, and the op of a mode and a number of dimensions.

use super::upsample::*;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::nn::pool::adaptive::{ADAPTIVE_AVG_POOL1D, ADAPTIVE_AVG_POOL2D, ADAPTIVE_AVG_POOL3D};
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&INTERPOLATE];

const SIG: Signature = sig(
    "nn.functional.interpolate(Tensor input, int[1]? size=None, float[1]? scale_factor=None, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
);

/// The numbers of spatial dimensions, the mode, whether it smooths, and the op.
const TABLE: &[(&str, usize, bool, &Op)] = &[
    ("nearest", 1, false, &NEAREST1D),
    ("nearest", 2, false, &NEAREST2D),
    ("nearest", 3, false, &NEAREST3D),
    ("nearest-exact", 1, false, &NEAREST_EXACT1D),
    ("nearest-exact", 2, false, &NEAREST_EXACT2D),
    ("nearest-exact", 3, false, &NEAREST_EXACT3D),
    ("linear", 1, false, &LINEAR1D),
    ("bilinear", 2, false, &BILINEAR2D),
    ("trilinear", 3, false, &TRILINEAR3D),
    ("bicubic", 2, false, &BICUBIC2D),
    ("bilinear", 2, true, &BILINEAR2D_AA),
    ("bicubic", 2, true, &BICUBIC2D_AA),
    ("lanczos", 2, true, &LANCZOS2D_AA),
];

/// A list of one number for all dimensions, or one for each.
fn each<T: Copy + std::fmt::Debug>(
    list: &[T],
    dims: usize,
    single: bool,
    what: impl Fn() -> Error,
) -> Result<smallvec::SmallVec<[T; 3]>> {
    match list {
        &[one] if single => Ok(smallvec![one; dims]),
        list if list.len() == dims => Ok(list.into()),
        _ => Err(what()),
    }
}

/// The size of a dimension that grows by a factor.
fn grown(n: usize, factor: f64) -> Result<i64> {
    let size = n as f64 * factor;
    // Beyond 2^63, or no number at all.
    if size.is_nan() || size.abs() >= 9_223_372_036_854_775_808.0 {
        return Err(Error::runtime("value cannot be converted to type int64_t without overflow"));
    }
    Ok(size as i64)
}

/// What `size` and `scale_factor` ask for: a size for each spatial dimension, and the factors where they are to be used as given.
struct Wanted {
    sizes: Ints,
    factors: Option<smallvec::SmallVec<[f64; 3]>>,
}

fn wanted(c: &Call, area: bool) -> Result<Wanted> {
    let shape = c.tensor(0)?.shape();
    let inner = shape.get(2..).unwrap_or_default();
    let dims = inner.len();
    let wrong = |what: &str, given: String| {
        Error::value(format!(
            "Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of {} and {what} of {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and {what} in (o1, o2, ...,oK) format.",
            Show(inner)
        ))
    };
    let recompute = c.flag("recompute_scale_factor");
    match (c.opt_ints("size"), c.argument("scale_factor")) {
        (Some(_), Value::Scalars(_)) => Err(Error::value("only one of size or scale_factor should be defined")),
        (Some(size), _) => {
            let sizes = each(size, dims, true, || wrong("output size", Show(size).to_string()))?;
            if recompute {
                return Err(Error::value("recompute_scale_factor is not meaningful with an explicit size."));
            }
            Ok(Wanted { sizes: sizes.into_iter().collect(), factors: None })
        }
        (None, Value::Scalars(given)) => {
            let given = crate::rt::reserve::list(given.iter().map(|s| s.to_f64()))?;
            let factors = each(&given, dims, true, || wrong("scale_factor", format!("{given:?}")))?;
            let sizes: Result<Ints> = inner.iter().zip(&factors).map(|(&n, &f)| grown(n, f)).collect();
            Ok(Wanted { sizes: sizes?, factors: (!recompute && !area).then_some(factors) })
        }
        _ => Err(Error::value("either size or scale_factor should be defined")),
    }
}

/// No op for the mode and the rank.
fn unsupported(mode: &str, ndim: usize) -> Error {
    let needs = match mode {
        "linear" => Some(3),
        "bilinear" => Some(4),
        "trilinear" => Some(5),
        _ => None,
    };
    Error::not_implemented(match needs {
        Some(rank) if (3..=5).contains(&ndim) => format!("Got {ndim}D input, but {mode} mode needs {rank}D input"),
        _ => format!(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        ),
    })
}

fn interpolate(c: &Call) -> Result<Outputs> {
    let (t, mode, antialias) = (c.tensor(0)?, c.str("mode").unwrap_or_default(), c.flag("antialias"));
    let aligns = !matches!(mode, "nearest" | "area" | "nearest-exact");
    if !aligns && !c.argument("align_corners").is_none() {
        return Err(Error::value(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear",
        ));
    }
    let wanted = wanted(c, mode == "area")?;
    if antialias && (t.ndim() != 4 || !matches!(mode, "bilinear" | "bicubic" | "lanczos")) {
        return Err(Error::value(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input",
        ));
    }
    if mode == "area" && (3..=5).contains(&t.ndim()) {
        let op = [&ADAPTIVE_AVG_POOL1D, &ADAPTIVE_AVG_POOL2D, &ADAPTIVE_AVG_POOL3D][t.ndim() - 3];
        return op.calls((t, wanted.sizes));
    }
    if mode == "lanczos" && t.ndim() == 4 && (c.flag("align_corners") || !antialias) {
        return Err(Error::value(match c.flag("align_corners") {
            true => "Lanczos mode does not support align_corners=True",
            false => "Lanczos mode requires antialias=True",
        }));
    }
    let dims = t.ndim().saturating_sub(2);
    let found = TABLE.iter().find(|row| row.0 == mode && row.1 == dims && row.2 == antialias);
    let Some((_, _, _, op)) = found else { return Err(unsupported(mode, t.ndim())) };
    let mut args: Args = smallvec![t.into(), Value::Ints(wanted.sizes)];
    if aligns {
        args.push(c.flag("align_corners").into());
    }
    args.extend(wanted.factors.iter().flatten().map(|&f| f.into()));
    op.calls(args)
}

pub static INTERPOLATE: Op = Op {
    sig: SIG,
    doc: "Resizes the inner dimensions of `[batch, channels, ..]` to `size`, or by `scale_factor` to `floor(n * factor)`. Modes: 'nearest' and 'nearest-exact' for one to three dimensions, 'linear' for one, 'bilinear' and 'bicubic' for two, 'trilinear' for three, 'area' (the mean over what an output covers) for one to three, and 'lanczos' with `antialias`. With `align_corners` the centres of the corner elements stay where they are, else their outer edges. `antialias` widens the filter when shrinking, as Pillow does. `recompute_scale_factor` takes the ratio of the two sizes for the factor.",
    forms: F,
    body: decompose(interpolate),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3,4], 7",
        "f32[2,3,5], scale_factor=1.7",
        "f32[1,2,4,5], (6, 3), mode='nearest'",
        "f32[1,2,4,5], (8, 10)",
        "f32[1,2,4,5], scale_factor=(1.4, 0.6), mode='nearest-exact'",
        "f32[1,2,2,3,4], (3, 5, 2)",
        "f32[1,2,2,3,4], scale_factor=1.5, mode='nearest-exact'",
        "f32[2,3,4], 7, mode='linear'",
        "f32[2,3,4], 7, mode='linear', align_corners=True",
        "f64[1,2,4,5], (7, 3), mode='bilinear'",
        "f32[1,2,4,5], (7, 3), mode='bilinear', align_corners=True",
        "f32[1,2,4,5], scale_factor=(1.6, 0.7), mode='bilinear'",
        "f32[1,2,4,5], scale_factor=(1.6, 0.7), mode='bilinear', recompute_scale_factor=True",
        "f32[1,2,4,5], (4, 5), mode='bilinear'",
        "f32[1,2,4,5], (7, 3), mode='bicubic'",
        "f32[1,2,4,5], (7, 3), mode='bicubic', align_corners=True",
        "f32[1,2,6,5], scale_factor=0.6, mode='bicubic'",
        "f32[1,2,2,3,4], (3, 5, 2), mode='trilinear'",
        "f32[1,2,2,3,4], (3, 5, 2), mode='trilinear', align_corners=True",
        "f32[2,3,7], 3, mode='area'",
        "f32[1,2,5,7], (3, 9), mode='area'",
        "f32[1,2,3,4,5], scale_factor=0.7, mode='area'",
        "f32[1,2,9,7], (4, 3), mode='bilinear', antialias=True",
        "f32[1,2,9,7], (4, 12), mode='bicubic', antialias=True",
        "f32[1,2,9,7], (4, 3), mode='bilinear', antialias=True, align_corners=True",
        "f32[1,2,9,7], (4, 3), mode='lanczos', antialias=True",
        "bf16[1,2,4,5], (7, 3), mode='bilinear'",
        "u8[1,2,4,5], (7, 3)",
        "u8[1,2,4,5], (7, 3), mode='bilinear'",
        "u8[1,2,4,5], (7, 3), mode='bicubic'",
        "u8[1,2,9,7], (4, 3), mode='bicubic', antialias=True",
    ],
    errors: &[
        ("f32[1,2,4]", "ValueError", "either size or scale_factor should be defined"),
        ("f32[1,2,4], 3, 2.0", "ValueError", "only one of size or scale_factor"),
        ("f32[1,2,4], (3, 3)", "ValueError", "same number of spatial dimensions"),
        ("f32[1,2,4], scale_factor=(3.0, 2.0)", "ValueError", "same number of spatial dimensions"),
        ("f32[1,2,4], 3, align_corners=True", "ValueError", "align_corners option can only be set"),
        ("f32[1,2,4], 3, recompute_scale_factor=True", "ValueError", "not meaningful with an explicit size"),
        ("f32[1,2,4], 3, mode='linear', antialias=True", "ValueError", "Anti-alias option is restricted"),
        ("f32[1,2,4], 3, mode='bilinear'", "NotImplementedError", "Got 3D input, but bilinear mode needs 4D input"),
        ("f32[1,2,4], 3, mode='bicubic'", "NotImplementedError", "Only 3D, 4D and 5D input Tensors supported (got 3D)"),
        ("f32[1,2,4], 3, mode='odd'", "NotImplementedError", "(got odd)"),
        ("f32[4], 3", "NotImplementedError", "(got 1D)"),
        ("f32[1,2,4,4], 3, mode='lanczos'", "ValueError", "requires antialias=True"),
        ("f32[1,2,4], 0", "RuntimeError", "but got input (W: 4) and output (W: 0)"),
        ("f32[1,2,4,5], (-1, 3)", "RuntimeError", "but got input (H: 4, W: 5) output (H: -1, W: 3)"),
        ("f32[1,2,4], scale_factor=1e30", "RuntimeError", "cannot be converted to type int64_t without overflow"),
        ("f32[1,2,4], 4611686018427387904", "RuntimeError", "overflowed"),
        ("u8[1,2,4], 3, mode='linear'", "NotImplementedError", "not implemented for 'Byte'"),
        ("f32[1,2,4], 3.5", "TypeError", "tuple of ints"),
    ],
    ..OP
};
