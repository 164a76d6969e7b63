//! The functions of the prelude against the C library's, over ordinary and extreme arguments, in every compute type.

use super::*;
use crate::gpu::{map, supports};

type F1 = fn(f64) -> f64;
type F2 = fn(f64, f64) -> f64;

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
    safe fn nearbyint(x: f64) -> f64;
    safe fn fmod(x: f64, y: f64) -> f64;
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Name, reference, and the units in the last place allowed in float32 and float64.
const UNARY: &[(&str, F1, f64, f64)] = &[
    ("exp_(x)", f64::exp, 2.0, 3.0),
    ("exp2_(x)", f64::exp2, 2.0, 3.0),
    ("expm1_(x)", f64::exp_m1, 3.0, 3.0),
    ("ln_(x)", f64::ln, 2.0, 3.0),
    ("log2_(x)", f64::log2, 3.0, 4.0),
    ("log10_(x)", f64::log10, 3.0, 4.0),
    ("log1p_(x)", f64::ln_1p, 3.0, 4.0),
    ("sin_(x)", f64::sin, 3.0, 4.0),
    ("cos_(x)", f64::cos, 3.0, 4.0),
    ("tan_(x)", f64::tan, 4.0, 4.0),
    ("asin_(x)", f64::asin, 4.0, 4.0),
    ("acos_(x)", f64::acos, 4.0, 4.0),
    ("atan_(x)", f64::atan, 3.0, 4.0),
    ("sinh_(x)", f64::sinh, 4.0, 8.0),
    ("cosh_(x)", f64::cosh, 4.0, 8.0),
    ("tanh_(x)", f64::tanh, 3.0, 4.0),
    ("asinh_(x)", |x| asinh(x), 4.0, 8.0),
    ("acosh_(x)", |x| acosh(x), 4.0, 8.0),
    ("atanh_(x)", |x| atanh(x), 4.0, 8.0),
    ("sqrt_(x)", f64::sqrt, 1.0, 1.0),
    ("rsqrt_(x)", |x| 1.0 / x.sqrt(), 3.0, 3.0),
    ("recip_(x)", |x| 1.0 / x, 1.0, 1.0),
    ("sigmoid_(x)", sigmoid, 4.0, 8.0),
    ("floor_(x)", f64::floor, 0.0, 0.0),
    ("ceil_(x)", f64::ceil, 0.0, 0.0),
    ("trunc_(x)", f64::trunc, 0.0, 0.0),
    ("round_(x)", |x| nearbyint(x), 0.0, 0.0),
    ("abs_(x)", f64::abs, 0.0, 0.0),
    ("neg_(x)", |x| -x, 0.0, 0.0),
    ("sign_(x)", |x| if x.is_nan() { x } else { (x > 0.0) as i32 as f64 - (x < 0.0) as i32 as f64 }, 0.0, 0.0),
    ("erf_(x)", |x| erf(x), 3.0, 4.0),
    ("erfc_(x)", |x| erfc(x), 8.0, 8.0),
    ("lgamma_(x)", |x| lgamma(x), 400.0, 200.0),
    ("relu_(x)", |x| if x < 0.0 { 0.0 } else { x }, 0.0, 0.0),
    ("isnan_(x)", |x| x.is_nan() as i32 as f64, 0.0, 0.0),
    ("isinf_(x)", |x| x.is_infinite() as i32 as f64, 0.0, 0.0),
    ("isfinite_(x)", |x| x.is_finite() as i32 as f64, 0.0, 0.0),
    ("logical_not_(x)", |x| (x == 0.0) as i32 as f64, 0.0, 0.0),
];

fn python_mod(x: f64, y: f64) -> f64 {
    let r = fmod(x, y);
    if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
}
fn nan_max(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }
}

const BINARY: &[(&str, F2, f64, f64)] = &[
    ("div_(x, y)", |x, y| x / y, 1.0, 1.0),
    ("pow_(x, y)", f64::powf, 2.0, 64.0),
    ("atan2_(x, y)", f64::atan2, 4.0, 4.0),
    ("hypot_(x, y)", f64::hypot, 3.0, 3.0),
    ("fmod_(x, y)", |x, y| fmod(x, y), 0.0, 0.0),
    ("remainder_(x, y)", python_mod, 1.0, 1.0),
    ("max_(x, y)", nan_max, 0.0, 0.0),
    ("min_(x, y)", |x, y| -nan_max(-x, -y), 0.0, 0.0),
    ("copysign_(x, y)", f64::copysign, 0.0, 0.0),
    ("eq_(x, y)", |x, y| (x == y) as i32 as f64, 0.0, 0.0),
    ("ne_(x, y)", |x, y| (x != y) as i32 as f64, 0.0, 0.0),
    ("lt_(x, y)", |x, y| (x < y) as i32 as f64, 0.0, 0.0),
    ("le_(x, y)", |x, y| (x <= y) as i32 as f64, 0.0, 0.0),
    ("gt_(x, y)", |x, y| (x > y) as i32 as f64, 0.0, 0.0),
    ("ge_(x, y)", |x, y| (x >= y) as i32 as f64, 0.0, 0.0),
    ("where_(x, y, T(3))", |x, y| if x != 0.0 { y } else { 3.0 }, 0.0, 0.0),
];

/// Ordinary arguments of both signs and many sizes, and the special ones.
fn arguments() -> Vec<f64> {
    let mut list =
        vec![0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, -2.0, 3.0, -3.0, 1e-30, 88.5, -87.0, 100.0, -100.0];
    list.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-3, 12345.678, -98765.4, 1e6, 1e10, -1e10, 3e38, -3e38]);
    let mut state = 12345u64;
    for i in 0..3000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0;
        list.push(unit * [1.0, 4.0, 20.0, 90.0, 1e3][i % 5]);
    }
    list
}

/// The distance in units in the last place of a type with `digits` binary digits.
fn distance(got: f64, want: f64, kind: &Kind) -> f64 {
    if got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if got == want {
        return if want == 0.0 { 1e9 } else { 0.0 };
    }
    if want.is_infinite() || got.is_infinite() {
        return if want.abs() >= kind.huge && got.abs() >= kind.huge { 1.0 } else { f64::INFINITY };
    }
    let significand = f64::from_bits(want.to_bits() & ((1 << 52) - 1) | 1023 << 52);
    (got - want).abs() / want.abs().max(kind.tiny) * significand * 2f64.powi(kind.digits - 1)
}

struct Kind {
    digits: i32,
    tiny: f64,
    huge: f64,
}
const SINGLE: Kind = Kind { digits: 24, tiny: 1.1754943508222875e-38, huge: 3.4028e38 };
const DOUBLE: Kind = Kind { digits: 53, tiny: f64::MIN_POSITIVE, huge: 1.797e308 };

/// The worst distance over all arguments, with the place.
fn worst(
    kind: &Kind,
    args: &[(f64, f64)],
    got: &[f64],
    f: &dyn Fn(f64, f64) -> f64,
    round: &dyn Fn(f64) -> f64,
) -> (f64, String) {
    let mut bad = (0.0, String::new());
    for ((x, y), g) in args.iter().zip(got) {
        let want = f(*x, *y);
        // What underflows may be flushed to zero.
        let want = if want.abs() < kind.tiny && g.abs() <= kind.tiny { *g } else { want };
        let d = distance(*g, if want.abs() > kind.huge { round(want) } else { want }, kind);
        if d > bad.0 {
            bad = (d, format!("at ({x:e}, {y:e}): {g:e}, expected {want:e}"));
        }
    }
    bad
}

/// The expression in float64 or, with everything rounded, in float32.
fn run(dtype: DType, expr: &'static str, args: &[(f64, f64)]) -> Vec<f64> {
    let (x, y): (Vec<f64>, Vec<f64>) = args.iter().copied().unzip();
    let load = |v: Vec<f64>| {
        let single = || v.iter().map(|&v| v as f32).collect::<Vec<_>>();
        if dtype == DType::F64 { Dev::new(&[v.len()], &v) } else { Dev::new(&[v.len()], &single()) }
    };
    let (x, y, out) = (load(x), load(y), Dev::zeros(&[args.len()], dtype));
    map(&[args.len()], &[x.input(), y.input()], &out.view(), dtype, expr).unwrap();
    if dtype == DType::F64 { out.get() } else { out.get::<f32>().into_iter().map(f64::from).collect() }
}

/// Compares one expression in both float types and returns what is worse than allowed.
fn compare(expr: &'static str, f: &dyn Fn(f64, f64) -> f64, limits: [f64; 2], args: &[(f64, f64)]) -> Vec<String> {
    let single: Vec<_> = args.iter().map(|a| (a.0 as f32 as f64, a.1 as f32 as f64)).collect();
    let mut results = vec![("f32", worst(&SINGLE, &single, &run(DType::F32, expr, &single), f, &|v| v as f32 as f64))];
    if supports(GPU, DType::F64) {
        results.push(("f64", worst(&DOUBLE, args, &run(DType::F64, expr, args), f, &|v| v)));
    }
    let mut failures = Vec::new();
    for ((name, (d, place)), limit) in results.into_iter().zip(limits) {
        println!("{expr:22} {name} {d:.2} {place}");
        if d > limit {
            failures.push(format!("{expr} {name}: {d:.2} units {place}"));
        }
    }
    failures
}

#[test]
fn unary_functions() {
    let Some(_shared) = ready("unary functions") else { return };
    let args: Vec<_> = arguments().into_iter().map(|x| (x, 0.0)).collect();
    let check = |&(expr, f, a, b): &(&'static str, F1, f64, f64)| compare(expr, &|x, _| f(x), [a, b], &args);
    let failures: Vec<_> = UNARY.iter().flat_map(check).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn binary_functions() {
    let Some(_shared) = ready("binary functions") else { return };
    let list = arguments();
    let mut args: Vec<_> = list.iter().zip(list.iter().rev()).map(|(&x, &y)| (x, y)).collect();
    for &x in &list[..29] {
        args.extend(list[..29].iter().map(|&y| (x, y)));
    }
    let check = |&(expr, f, a, b): &(&'static str, F2, f64, f64)| compare(expr, &f, [a, b], &args);
    let failures: Vec<_> = BINARY.iter().flat_map(check).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
