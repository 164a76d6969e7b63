//! Elementary functions against libm: errors in ulp over their ranges, and the special values of C99.

mod functions;

use self::functions::*;
use super::number_class::*;

type F32 = Fp<f32, Plain>;
type V32 = Fp<f32, Fused>;
type F64 = Fp<f64, Plain>;
type V64 = Fp<f64, Fused>;

/// A function under test: name, itself in f32 and f64 (unfused and fused), libm's, and the arguments.
struct Case {
    name: &'static str,
    f32: [fn(f32) -> f32; 2],
    f64: [fn(f64) -> f64; 2],
    want: fn(f64) -> f64,
    range: (f64, f64),
    /// Allowed errors in ulp, f32 and f64, including libm's own half ulp or more.
    ulp: (f64, f64),
}

fn case<U: Unary>(range: (f64, f64), ulp: (f64, f64)) -> Case {
    Case {
        name: U::NAME,
        f32: [|x| U::f(F32::new(x)).0, |x| U::f(V32::new(x)).0],
        f64: [|x| U::f(F64::new(x)).0, |x| U::f(V64::new(x)).0],
        want: U::want,
        range,
        ulp,
    }
}

fn ulp_32(got: f32, want: f64) -> f64 {
    let w = want as f32;
    if got == w || (got.is_nan() && w.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !w.is_finite() {
        return f64::INFINITY;
    }
    let unit = (w.abs().next_up() - w.abs()) as f64;
    ((got as f64 - want) / unit.max(f32::from_bits(1) as f64)).abs()
}
fn ulp_64(got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !want.is_finite() {
        return f64::INFINITY;
    }
    ((got - want) / (want.abs().next_up() - want.abs())).abs()
}

/// Numbers over a range, dense and logarithmic towards zero, of either sign if the range has both.
fn arguments((lo, hi): (f64, f64), count: usize) -> impl Iterator<Item = f64> {
    let spread = (0..count).map(move |i| lo + (hi - lo) * (i as f64 + 0.37) / count as f64);
    let near = (0..count / 4).map(move |i| (2.0f64).powf(-40.0 + 50.0 * i as f64 / (count / 4) as f64));
    let near = near.flat_map(|x| [x, -x, 1.0 + x, 1.0 - x]).filter(move |&x| x >= lo && x <= hi);
    spread.chain(near)
}

fn check(case: Case) {
    let mut worst = [(0.0f64, 0.0f64); 4];
    for x in arguments(case.range, 60_000) {
        let narrow = x as f32;
        for k in 0..2 {
            let e = ulp_32((case.f32[k])(narrow), (case.want)(narrow as f64));
            if e > worst[k].0 {
                worst[k] = (e, narrow as f64);
            }
            let e = ulp_64((case.f64[k])(x), (case.want)(x));
            if e > worst[2 + k].0 {
                worst[2 + k] = (e, x);
            }
        }
    }
    println!("{:8} {:?}", case.name, worst.map(|w| format!("{:.2} at {:e}", w.0, w.1)));
    for (k, w) in worst.iter().enumerate() {
        let allowed = if k < 2 { case.ulp.0 } else { case.ulp.1 };
        assert!(w.0 <= allowed, "{} ({k}): {:.2} ulp at {:e}", case.name, w.0, w.1);
    }
}

#[test]
fn the_short_exp_is_exp() {
    fn same<T: Real>(x: T) {
        let (full, short) = (x.exp().to_f64(), x.exp_mild().to_f64());
        assert!(!x.has_mild_exp() || full.to_bits() == short.to_bits(), "{full:e} {short:e} at {:e}", x.to_f64());
    }
    for x in arguments((-800.0, 800.0), 60_000).chain([87.0, -87.0, 708.0, -708.0, -0.0]) {
        same(F32::new((x / 8.0) as f32));
        same(V32::new((x / 8.0) as f32));
        same(F64::new(x));
        same(V64::new(x));
    }
    assert!(!F32::new(f32::NAN).has_mild_exp() && !F64::new(-f64::INFINITY).has_mild_exp());
}

#[test]
fn errors_are_within_ulps() {
    check(case::<Exp>((-110.0, 92.0), (1.6, 2.0)));
    check(case::<Exp2>((-155.0, 130.0), (1.6, 2.0)));
    check(case::<Expm1>((-40.0, 90.0), (2.0, 3.0)));
    check(case::<Sigmoid>((-110.0, 40.0), (2.5, 3.5)));
    check(case::<Ln>((0.0, 1000000.0), (1.5, 2.0)));
    check(case::<Log2>((0.0, 1000000.0), (2.0, 3.0)));
    check(case::<Log10>((0.0, 1000000.0), (2.0, 3.5)));
    check(case::<Log1p>((-1.0, 1000.0), (1.6, 2.5)));
    check(case::<Sin>((-1000.0, 1000.0), (2.0, 2.5)));
    check(case::<Cos>((-1000000.0, 1000000.0), (2.0, 2.5)));
    check(case::<Tan>((-1000.0, 1000.0), (3.5, 4.0)));
    check(case::<Asin>((-1.0, 1.0), (2.5, 2.5)));
    check(case::<Acos>((-1.0, 1.0), (2.0, 2.5)));
    check(case::<Atan>((-50.0, 50.0), (2.0, 2.5)));
    check(case::<Sinh>((-89.3, 89.3), (2.5, 3.0)));
    check(case::<Cosh>((-89.3, 89.3), (2.0, 2.5)));
    check(case::<Tanh>((-22.0, 22.0), (2.5, 3.0)));
    check(case::<Asinh>((-1000000.0, 1000000.0), (2.5, 4.0)));
    check(case::<Acosh>((1.0, 1000000.0), (2.5, 3.0)));
    check(case::<Atanh>((-1.0, 1.0), (2.5, 3.0)));
    check(case::<Erf>((-6.0, 6.0), (2.5, 2.5)));
    check(case::<Erfc>((-6.0, 27.0), (1.5, 8.0)));
    check(case::<Below>((-1.0, 6.0), (6.0, 8.0)));
}

/// Both instances of a function, in f32: (argument, value), distinguishing -0 from 0.
fn special<U: Unary>(table: &[(f32, f32)]) {
    for &(x, want) in table {
        for got in [U::f(F32::new(x)).0, U::f(V32::new(x)).0, U::f(F64::new(x as f64)).0 as f32] {
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{}({x}) is {got}, not {want}", U::NAME);
        }
    }
}

#[test]
fn special_values_follow_c99() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let odd = |limit: f32| [(0.0, 0.0), (-0.0, -0.0), (INF, limit), (-INF, -limit), (NAN, NAN)];
    special::<Exp>(&[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN)]);
    special::<Exp2>(&[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (10.0, 1024.0), (-3.0, 0.125)]);
    special::<Expm1>(&[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN)]);
    let logs = [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)];
    special::<Ln>(&logs);
    special::<Log2>(&logs);
    special::<Log2>(&[(8.0, 3.0), (0.25, -2.0)]);
    special::<Log10>(&logs);
    special::<Log10>(&[(1000.0, 3.0), (100.0, 2.0), (10.0, 1.0)]);
    special::<Log1p>(&[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)]);
    special::<Sin>(&[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]);
    special::<Cos>(&[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]);
    special::<Tan>(&[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]);
    special::<Asin>(&[(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (NAN, NAN)]);
    special::<Acos>(&[(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (-INF, NAN), (NAN, NAN)]);
    special::<Atan>(&odd(std::f32::consts::FRAC_PI_2));
    special::<Sinh>(&odd(INF));
    special::<Cosh>(&[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)]);
    special::<Tanh>(&odd(1.0));
    special::<Asinh>(&odd(INF));
    special::<Acosh>(&[(1.0, 0.0), (0.5, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)]);
    special::<Atanh>(&[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)]);
    special::<Erf>(&odd(1.0));
    special::<Erfc>(&[(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN)]);
}

#[test]
fn functions_of_two_agree_with_libm() {
    let interesting = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        -2.5,
        1e-30,
        -1e-30,
        1e30,
        -1e30,
        3e38,
        -3e38,
        1e-44,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        0.7,
        1.1,
        -7.3,
        88.0,
        16777215.0,
        -16777215.0,
    ];
    let close = |got: f32, want: f64, limit: f64, what: &str, x: f32, y: f32| {
        let signs = got.is_nan() || got.is_sign_negative() == want.is_sign_negative();
        assert!(ulp_32(got, want) <= limit && signs, "{what}({x:e}, {y:e}) is {got:e}, not {want:e}");
    };
    for x in interesting {
        for y in interesting {
            let (a, b, v) = (F32::new(x), F32::new(y), V32::new(x));
            let power = (x as f64).powf(y as f64);
            close(a.pow(b).0, power, 1.0, "pow", x, y);
            close(v.pow(V32::new(y)).0, power, 1.0, "pow", x, y);
            close(a.atan2(b).0, (x as f64).atan2(y as f64), 3.0, "atan2", x, y);
            close(a.hypot(b).0, (x as f64).hypot(y as f64), 1.0, "hypot", x, y);
            let wide = F64::new(x as f64).atan2(F64::new(y as f64)).0;
            assert!(ulp_64(wide, (x as f64).atan2(y as f64)) <= 3.0, "atan2({x:e}, {y:e})");
        }
    }
    // The result is exactly pi/2.
    for y in [1.0, f32::INFINITY] {
        assert_eq!(F32::new(y).atan2(F32::new(-0.0)).0, std::f32::consts::FRAC_PI_2);
        assert_eq!(F64::new(y as f64).atan2(F64::new(-0.0)).0, std::f64::consts::FRAC_PI_2);
    }
}

#[test]
fn exact_numbers_take_any_angle() {
    for x in [1e7f32, 1e22, 3e38, -5e9] {
        assert_eq!(F32::new(x).exact().sin().0, (x as f64).sin() as f32);
        assert_eq!(F32::new(x).exact().cos().0, (x as f64).cos() as f32);
    }
}

#[test]
fn weights_are_powers_of_two_or_zero() {
    use super::math::exp2_weight;
    for x in arguments((-150.0, 0.0), 60_000) {
        let (narrow, want) = (x as f32, (x as f32 as f64).exp2());
        for got in [exp2_weight::<f32, Plain>(narrow), exp2_weight::<f32, Fused>(narrow)] {
            assert!(
                if narrow < -125.0 { got as f64 <= want * 1.01 } else { ulp_32(got, want) <= 1.6 },
                "{narrow}: {got}"
            );
        }
        for got in [exp2_weight::<f64, Plain>(x), exp2_weight::<f64, Fused>(x)] {
            assert!(ulp_64(got, x.exp2()) <= 2.0, "{x}: {got}");
        }
    }
    assert_eq!([0.0, -f32::INFINITY, -1e30].map(exp2_weight::<f32, Fused>), [1.0, 0.0, 0.0]);
    assert_eq!([0.0, -f64::INFINITY, -1e30].map(exp2_weight::<f64, Plain>), [1.0, 0.0, 0.0]);
    assert!(exp2_weight::<f32, Plain>(f32::NAN).is_nan() && exp2_weight::<f64, Fused>(f64::NAN).is_nan());
}
