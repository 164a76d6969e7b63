//! Every kernel variant through naga, without an adapter: families run dry over dtypes, ranks and sizes, and the
//! prelude's functions in every compute type that has them.

use crate::dtype::{DType, Scalar};
use crate::gpu::driver::{Driver, Shader, check};
use crate::gpu::kernels::map::{Operand, Variant};
use crate::gpu::kernels::template::Compute;
use crate::gpu::*;
use crate::kinds::{Draw, Reduce, Scan, ScatterMode};
use crate::layout::contiguous_strides;

const COMPUTE: [DType; 4] = [DType::F32, DType::F64, DType::I32, DType::I64];

pub(super) fn known() -> impl Iterator<Item = DType> + Clone {
    DType::ALL.into_iter().filter(|&d| Compute::of(d).is_some())
}

/// A copy between any two dtypes, contiguous and strided.
#[test]
fn every_cast_validates() {
    for input in known() {
        for out in known() {
            for (rank, out_contiguous, each) in [(0, true, 4), (2, true, 1), (2, false, 1)] {
                let compute = Compute::of(input).unwrap();
                let operands = &[Operand::Buffer(input)];
                let variant = Variant { expr: "x", compute, operands, out, rank, out_contiguous, each };
                check(&variant.name(), &variant.source()).unwrap();
            }
        }
    }
}

#[test]
fn a_broken_expression_is_named() {
    let error = validate_all(&[("x +", DType::F32)]).unwrap_err();
    assert!(error.message().contains("map x + in F32"), "{error}");
    for dtype in COMPUTE {
        validate_all(&[("x + y * z - w", dtype)]).unwrap();
    }
    assert!(validate_all(&[("x", DType::C64)]).is_err());
}

/// The functions by their numbers of arguments, and the compute types that have them.
const ALL_TYPES: [&str; 3] = [
    "abs_ ceil_ floor_ isfinite_ isinf_ isnan_ isneginf_ isposinf_ logical_not_ neg_ relu_ round_ sign_ signbit_ square_ trunc_",
    "div_ eq_ floor_div_ fmax_ fmin_ fmod_ ge_ gt_ le_ logical_and_ logical_or_ logical_xor_ lt_ max_ min_ ne_ pow_ remainder_ trunc_div_",
    "clamp_ lerp_ where_",
];
const FLOATS: [&str; 3] = [
    "acos_ acosh_ airy_ asin_ asinh_ atan_ atanh_ cos_ cosh_ digamma_ erf_ erfc_ erfcx_ exp2_ exp_ expm1_ exponent_ frac_ \
     i0_ i0e_ i1_ i1e_ j0_ j1_ k0_ k0e_ k1_ k1e_ lgamma_ ln_ log10_ log1p_ log2_ log_ndtr_ mantissa_ ndtri_ recip_ rsqrt_ \
     sigmoid_ sin_ sinh_ softplus_ spherical_j0_ sqrt_ tan_ tanh_ y0_ y1_",
    "atan2_ copysign_ hypot_ igamma_ igammac_ laguerre_ legendre_ log_add_exp_ nextafter_",
    "chebyshev_ hermite_",
];
const INTEGERS: [&str; 2] = ["not_", "and_ or_ shl_ shr_ xor_"];

#[test]
fn every_function_of_the_prelude_validates() {
    let check = |names: &[&str], types: &[DType]| {
        for (list, arguments) in names.iter().zip(["(x)", "(x, y)", "(x, y, z)"]) {
            for name in list.split_whitespace() {
                let expr: &str = format!("{name}{arguments}").leak();
                types.iter().for_each(|&t| validate_all(&[(expr, t)]).unwrap());
            }
        }
    };
    check(&ALL_TYPES, &COMPUTE);
    check(&FLOATS, &COMPUTE[..2]);
    check(&INTEGERS, &[DType::I32, DType::I64, DType::Bool]);
}

/// Fails where a kernel that `f` launches is no valid shader. Its tensors are hollow, so that launches are only checked.
pub(super) fn checked(f: impl FnOnce() -> crate::error::Result<()>) {
    f().unwrap();
}

/// A tensor without memory, on the device that only checks.
pub(super) struct Hollow {
    buffer: GpuBuffer,
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
}
impl Hollow {
    /// Strided tensors have their dimensions in the reverse order of memory.
    pub(super) fn new(shape: &[usize], dtype: DType, strided: bool) -> Hollow {
        let mut strides = contiguous_strides(shape).to_vec();
        if strided {
            strides = contiguous_strides(&shape.iter().rev().copied().collect::<Vec<_>>()).to_vec();
            strides.reverse();
        }
        let bytes = shape.iter().product::<usize>() * dtype.size();
        Hollow { buffer: Driver::checking().alloc(bytes).unwrap(), dtype, shape: shape.to_vec(), strides }
    }
    pub(super) fn view(&self) -> View<'_> {
        View { buffer: &self.buffer, dtype: self.dtype, shape: &self.shape, strides: &self.strides, offset: 0 }
    }
}

/// Shapes of which some take the road of short rows, some that of long ones and some that of columns.
const SHAPES: [[usize; 3]; 4] = [[2, 3, 4], [2, 3, 5000], [40000, 2, 3], [300, 3, 40]];

#[test]
fn reductions_validate() {
    use Reduce::*;
    let kinds = [Sum, Mean, Prod, Max, Min, Any, All, Norm(2.0), Norm(3.5), Norm(0.0), Norm(f64::INFINITY), LogSumExp];
    checked(|| {
        for dtype in known() {
            for (shape, strided) in SHAPES.iter().zip([false, true, false, false]) {
                let x = Hollow::new(shape, dtype, strided);
                for (dims, kept) in
                    [(&[2usize][..], [shape[0], shape[1], 1]), (&[0, 1, 2], [1, 1, 1]), (&[0], [1, shape[1], shape[2]])]
                {
                    let out = Hollow::new(&kept, dtype, false);
                    for kind in kinds {
                        if dtype.is_float() || !matches!(kind, Mean | Norm(_) | LogSumExp) {
                            reduce(kind, &x.view(), dims, &out.view())?;
                        }
                    }
                    if dtype.is_float() {
                        var(&x.view(), dims, 1.0, true, &out.view(), Some(&out.view()))?;
                    }
                }
                let index = Hollow::new(&[shape[0], shape[1], 1], DType::I64, false);
                let values = Hollow::new(&[shape[0], shape[1], 1], dtype, false);
                arg_reduce(true, &x.view(), Some(2), Some(&values.view()), &index.view())?;
                arg_reduce(false, &x.view(), None, None, &index.view())?;
            }
        }
        Ok(())
    });
}

#[test]
fn products_scans_and_softmax_validate() {
    checked(|| {
        for dtype in known() {
            for (m, k, n) in [(3, 5, 7), (70, 5, 3), (40, 5, 40), (100, 30, 100), (2000, 5, 2000), (64, 9000, 64)] {
                let (a, b) = (Hollow::new(&[2, m, k], dtype, false), Hollow::new(&[2, k, n], dtype, true));
                let out = Hollow::new(&[2, m, n], dtype, false);
                matmul(&a.view(), &b.view(), &out.view(), 1.0, 0.0)?;
                matmul(&a.view(), &b.view(), &out.view(), 2.0, 3.0)?;
            }
            for (shape, strided) in SHAPES.iter().zip([false, true, false, false]) {
                let (x, out) = (Hollow::new(shape, dtype, strided), Hollow::new(shape, dtype, false));
                let index = Hollow::new(shape, DType::I64, false);
                for kind in [Scan::Sum, Scan::Prod, Scan::Max, Scan::Min] {
                    let with = matches!(kind, Scan::Max | Scan::Min).then_some(index.view());
                    cumulative(kind, &x.view(), 2, &out.view(), with.as_ref())?;
                }
                if dtype.is_float() {
                    cumulative(Scan::LogSumExp, &x.view(), 2, &out.view(), None)?;
                    for log in [false, true] {
                        softmax(&x.view(), 2, &out.view(), log)?;
                        softmax_backward(&x.view(), &index_like(&x).view(), 2, &out.view(), log)?;
                    }
                }
            }
        }
        Ok(())
    });
}

fn index_like(x: &Hollow) -> Hollow {
    Hollow::new(&x.shape, x.dtype, false)
}

#[test]
fn indexing_validates() {
    use ScatterMode::*;
    checked(|| {
        for dtype in known() {
            for (rows, kind) in [(4, DType::I64), (9000, DType::I32), (4, DType::U8)] {
                let (x, out) = (Hollow::new(&[4, 3], dtype, false), Hollow::new(&[rows, 3], dtype, true));
                let index = Hollow::new(&[rows, 3], kind, false);
                let line = Hollow::new(&[rows], kind, false);
                gather(&x.view(), 0, &index.view(), &out.view())?;
                index_select(&x.view(), 0, &line.view(), &out.view())?;
                index_get(&x.view(), &[Some(index.view()), Some(index.view())], &out.view())?;
                index_put(&x.view(), &[Some(line.view())], &out.view(), false)?;
                index_put(&x.view(), &[Some(line.view())], &out.view(), true)?;
                for mode in [Set, Add, Mul, Max, Min] {
                    scatter(&x.view(), 0, &index.view(), &Input::View(out.view()), mode)?;
                    scatter(&x.view(), 0, &index.view(), &Input::Scalar(Scalar::Int(1)), mode)?;
                }
                index_add(&x.view(), 0, &line.view(), &out.view(), 2.0)?;
                index_copy(&x.view(), 0, &line.view(), &out.view())?;
                index_fill(&x.view(), 0, &line.view(), Scalar::Int(1))?;
                let places = Places::find(&x.view())?;
                let found = Hollow::new(&[1, 2], DType::I64, false);
                nonzero(&places, &[4, 3], &found.view())?;
                let picked = Hollow::new(&[1], dtype, false);
                masked_select(&x.view(), &places, &picked.view())?;
                masked_scatter(&x.view(), &places, &picked.view())?;
            }
        }
        Ok(())
    });
}

#[test]
fn random_validates() {
    checked(|| {
        for dtype in known() {
            for strided in [false, true] {
                let out = Hollow::new(&[5, 7], dtype, strided);
                random(Draw::Bernoulli { p: 0.5 }, 1, 2, &out.view())?;
                random(Draw::Int { low: 0, high: 10, long: false }, 1, 2, &out.view())?;
                random(Draw::Int { low: 0, high: 1 << 32, long: true }, 1, 2, &out.view())?;
                random(Draw::Int { low: i64::MIN, high: i64::MAX, long: true }, 1, 2, &out.view())?;
                if dtype.is_float() {
                    random(Draw::Uniform { from: -1.0, to: 1.0 }, 1, 2, &out.view())?;
                    random(Draw::Normal { mean: 0.0, std: 1.0 }, 1, 2, &out.view())?;
                    random(Draw::Exponential { rate: 2.0 }, 1, 2, &out.view())?;
                }
            }
        }
        Ok(())
    });
}

/// Programs in every compute type, whose results are rounded to each dtype that it may have, over operands of every layout.
#[test]
fn programs_validate() {
    use crate::kinds::RuleInput::*;
    let results = [
        (DType::F32, &[DType::F32, DType::F16, DType::BF16, DType::Bool][..]),
        (DType::F64, &[DType::F64, DType::Bool]),
        (DType::I32, &[DType::I32, DType::Bool]),
        (DType::I64, &[DType::I64, DType::Bool]),
        (DType::Bool, &[DType::Bool]),
    ];
    let mut made = 0;
    for (compute, dtypes) in results {
        for &dtype in dtypes {
            for (narrow, strided) in [(DType::U8, false), (compute, true)] {
                let rule = |wgsl, inputs: &[_], dtype| ProgramRule { wgsl, compute, inputs: inputs.into(), dtype };
                let out = if compute == DType::Bool { DType::I32 } else { compute };
                let rules = [
                    rule("x + y", &[Operand(0), Operand(1)], dtype),
                    rule("gt_(x, y)", &[Rule(0), Number(Scalar::Int(2))], DType::Bool),
                    rule("where_(ne_(x, T(0)), y, z)", &[Rule(1), Operand(2), Rule(0)], out),
                ];
                let tensors = [
                    Hollow::new(&[5, 7], narrow, strided),
                    Hollow::new(&[7], compute, false),
                    Hollow::new(&[5, 7], out, strided),
                ];
                let layouts = tensors.each_ref().map(|t| crate::layout::Layout {
                    shape: t.shape[..].into(),
                    strides: t.strides[..].into(),
                    offset: 0,
                });
                let memory: Vec<_> = tensors.iter().zip(&layouts).map(|(t, l)| (t.dtype, l)).collect();
                let program = Program::new(|_| true, &[5, 7], &memory, &rules, &[(2, 2)]);
                let Some(program) = program else { continue };
                made += 1;
                checked(|| program.run(&tensors.each_ref().map(Hollow::view)).map(|ran| assert!(ran)));
            }
        }
    }
    // A program of bools does not compute the i32 that it would store.
    assert_eq!(made, 20);
}

/// The files of shaders/ by the test that validates them: a new one without a test fails here.
const VALIDATED: [(&str, &str); 16] = [
    (
        "every_function_of_the_prelude_validates",
        "prelude prelude_bessel prelude_compare prelude_erf prelude_f32 prelude_f64 prelude_gamma prelude_incomplete \
         prelude_special map",
    ),
    (
        "reductions_validate",
        "reduce reduce_group reduce_columns reduce_thread arg_reduce arg_reduce_group arg_reduce_thread",
    ),
    ("products_scans_and_softmax_validate", "matmul scan scan_group scan_thread softmax softmax_group softmax_thread"),
    ("convolutions_validate", "contract_thin contract_dots"),
    ("indexing_validates", "gather scatter table"),
    ("random_validates", "random random_f32 random_f64"),
    ("order_and_steps_validate", "sort sort_block search recurrence update"),
    ("layer_norm_validates", "layer_norm layer_norm_grad layer_norm_sums"),
    (
        "normalisation_of_channels_validates",
        "norm_channels norm_channels_grad norm_channels_sums norm_channels_parts norm_channels_join norm_channels_apply",
    ),
    ("pooling_validates", "pool_max pool_mean pool_mean_grad pool_windows"),
    ("programs_validate", "program"),
    ("resampling_validates", "resample"),
    ("sampling_on_grids_validates", "grid_sample"),
    ("attention_validates", "attention attention_forward attention_keys attention_queries attention_rows"),
    ("factorizations_validate", "lu cholesky matrix_columns determinant qr jacobi jacobi_columns"),
    ("recurrent_layers_validate", "recurrent recurrent_grad"),
];

#[test]
fn every_shader_is_validated_by_some_test() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let mut there: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut named: Vec<&str> = VALIDATED.iter().flat_map(|(_, files)| files.split_whitespace()).collect();
    there.sort();
    named.sort();
    assert_eq!(there, named);
}
