//! `map`, `copy` and `fill` against an element-by-element oracle, over layouts, dtypes, sizes and aliasing.

use super::copy::{copy, fill};
use super::loops::Loops;
use super::map::{Input, Output, map};
use super::math::TRIG_LIMIT;
use super::number_class::*;
use crate::dtype::{DType, Element, Scalar, bf16, c64, c128, f16};
use crate::layout::{Odometer, contiguous_strides};
use crate::with_dtype;

struct Add;
impl MapNum<2> for Add {
    fn eval<T: Num>([a, b]: [T; 2]) -> T {
        a + b
    }
}
struct Less;
impl TestOrdered<2> for Less {
    fn eval<T: Ordered>([a, b]: [T; 2]) -> bool {
        a < b
    }
}
struct Tanh;
impl MapReal<1> for Tanh {
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.tanh()
    }
}
struct Sin;
impl MapReal<1> for Sin {
    const CHECKED: bool = true;
    fn ordinary<T: Real>([x]: [T; 1]) -> bool {
        x.abs() < T::from_f64(TRIG_LIMIT)
    }
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.sin()
    }
}
struct Shift;
impl MapInt<2> for Shift {
    fn eval([a, b]: [i64; 2]) -> i64 {
        a << (b & 63)
    }
}
struct Magnitude;
impl RealOfComplex<1> for Magnitude {
    fn eval([x]: [c128; 1]) -> f64 {
        x.re.hypot(x.im)
    }
}
static ADD: Loops = Loops::NONE.num::<2, Add>();
static LESS: Loops = Loops::NONE.test_ordered::<2, Less>();
static TANH: Loops = Loops::NONE.real::<1, Tanh>();
static SIN: Loops = Loops::NONE.real::<1, Sin>();
static SHIFT: Loops = Loops::NONE.int::<2, Shift>();
static MAGNITUDE: Loops = Loops::NONE.real_of_complex::<1, Magnitude>();

/// Memory of one dtype, with small numbers that every dtype can represent.
struct Memory {
    bytes: Vec<u128>,
    dtype: DType,
    len: usize,
}
impl Memory {
    fn new(dtype: DType, len: usize, value: impl Fn(usize) -> i64) -> Memory {
        let mut m = Memory { bytes: vec![0; len + 1], dtype, len };
        (0..len).for_each(|i| m.set(i, Scalar::Int(value(i))));
        m
    }
    fn ptr(&self) -> *mut u8 {
        self.bytes.as_ptr() as *mut u8
    }
    fn set(&mut self, i: usize, s: Scalar) {
        assert!(i < self.len);
        // SAFETY: `bytes` holds `len` elements of any dtype.
        with_dtype!(self.dtype, T => unsafe { (self.bytes.as_mut_ptr() as *mut T).add(i).write(T::from_scalar(s)) })
    }
    fn get(&self, i: usize) -> Scalar {
        assert!(i < self.len);
        // SAFETY: as above.
        with_dtype!(self.dtype, T => unsafe { (self.bytes.as_ptr() as *const T).add(i).read() }.to_scalar())
    }
    fn input<'a>(&self, strides: &'a [usize]) -> Input<'a> {
        Input::Strided { ptr: self.ptr(), dtype: self.dtype, strides }
    }
    fn output<'a>(&self, strides: &'a [usize]) -> Output<'a> {
        Output { ptr: self.ptr(), dtype: self.dtype, strides }
    }
}

/// Elements that a layout spans.
fn span(shape: &[usize], strides: &[usize]) -> usize {
    1 + shape.iter().zip(strides).map(|(&n, &s)| (n.max(1) - 1) * s).sum::<usize>()
}

/// Shapes with strides for two inputs and an output.
fn layouts() -> Vec<(Vec<usize>, [Vec<usize>; 3])> {
    let mut all = Vec::new();
    let contiguous = |shape: &[usize]| contiguous_strides(shape).to_vec();
    for shape in [
        vec![],
        vec![1],
        vec![0],
        vec![5],
        vec![3, 0, 2],
        vec![70, 90],
        vec![4, 3, 5, 2],
        vec![150_000],
        vec![130, 1100],
        vec![3, 20_000],
        vec![5, 6, 100],
    ] {
        let c = contiguous(&shape);
        let mut reversed = contiguous(&shape.iter().rev().copied().collect::<Vec<_>>());
        reversed.reverse();
        let doubled: Vec<usize> = c.iter().map(|s| s * 2).collect();
        let row: Vec<usize> = c.iter().enumerate().map(|(i, &s)| if i + 1 == c.len() { s } else { 0 }).collect();
        let column: Vec<usize> = (0..c.len()).map(|i| if i + 1 == c.len() { 0 } else { i + 1 }).collect();
        all.push((shape.clone(), [c.clone(), c.clone(), c.clone()]));
        all.push((shape.clone(), [reversed.clone(), c.clone(), c.clone()]));
        all.push((shape.clone(), [doubled.clone(), row.clone(), c.clone()]));
        let gapped = c.iter().enumerate().map(|(i, &s)| if i + 1 == c.len() { s } else { 2 * s }).collect();
        all.push((shape.clone(), [c.clone(), column.clone(), reversed.clone()]));
        all.push((shape.clone(), [column.clone(), c.clone(), c.clone()]));
        all.push((shape.clone(), [row.clone(), column.clone(), gapped]));
        all.push((shape.clone(), [vec![0; shape.len()], column, c.clone()]));
        all.push((shape.clone(), [reversed.clone(), reversed.clone(), doubled]));
        all.push((shape.clone(), [vec![0; shape.len()], row, reversed]));
    }
    all
}

fn visit(shape: &[usize], strides: [&[usize]; 3], mut f: impl FnMut([usize; 3])) {
    let n: usize = shape.iter().product();
    if n == 0 {
        return;
    }
    let mut o = Odometer::new(shape, strides, 0);
    for _ in 0..n {
        f(o.offsets);
        o.step();
    }
}

fn check_add(a: DType, b: DType, out: DType, compute: DType) {
    for (shape, [sa, sb, so]) in layouts() {
        if shape.iter().product::<usize>() > 20_000 && (a, out) != (DType::F32, DType::F32) && a != DType::I16 {
            continue;
        }
        let x = Memory::new(a, span(&shape, &sa), |i| (i % 13) as i64);
        let y = Memory::new(b, span(&shape, &sb), |i| (i % 7) as i64);
        let z = Memory::new(out, span(&shape, &so), |_| 99);
        // SAFETY: memories span their layouts.
        unsafe { map(&shape, &[x.input(&sa), y.input(&sb)], &z.output(&so), compute, &ADD) };
        visit(&shape, [&sa, &sb, &so], |[i, j, k]| {
            let want = if compute == DType::Bool {
                (x.get(i).to_bool() | y.get(j).to_bool()) as i64
            } else {
                x.get(i).to_i64() + y.get(j).to_i64()
            };
            // A float of eight bits does not hold every sum.
            let want = with_dtype!(out, T => T::from_scalar(Scalar::Int(want)).to_scalar()).to_i64();
            assert_eq!(z.get(k).to_i64(), want, "{a} {b} {out} {shape:?} {sa:?} {sb:?} {so:?} {i} {j} {k}");
        });
    }
}

#[test]
fn adds_in_every_dtype_and_layout() {
    use DType::*;
    for d in DType::ALL {
        check_add(d, d, d, d);
    }
    for (a, b, out, compute) in
        [(I32, F32, F32, F32), (U8, I64, I64, I64), (F16, F32, F64, F32), (Bool, U8, I16, U8), (F64, C64, C128, C128)]
    {
        check_add(a, b, out, compute);
    }
}

#[test]
fn in_place_equals_out_of_place() {
    for n in [1, 4, 2047, 5000, 200_000] {
        for dtype in [DType::F32, DType::I16, DType::C64] {
            let x = Memory::new(dtype, n, |i| (i % 50) as i64);
            let y = Memory::new(dtype, n, |i| (i % 31) as i64);
            for inputs in [[x.input(&[1]), y.input(&[1])], [y.input(&[1]), x.input(&[1])]] {
                let before: Vec<i64> = (0..n).map(|i| x.get(i).to_i64()).collect();
                // SAFETY: both hold `n` elements; the output is exactly an input.
                unsafe { map(&[n], &inputs, &x.output(&[1]), dtype, &ADD) };
                assert!((0..n).all(|i| x.get(i).to_i64() == before[i] + y.get(i).to_i64()));
            }
        }
    }
}

#[test]
fn numbers_are_repeated_and_wrap_like_the_dtype() {
    let x = Memory::new(DType::U8, 3, |i| 254 + i as i64);
    let z = Memory::new(DType::U8, 3, |_| 0);
    // SAFETY: both hold three elements.
    unsafe { map(&[3], &[x.input(&[1]), Input::Scalar(Scalar::Int(-1))], &z.output(&[1]), DType::U8, &ADD) };
    assert_eq!([z.get(0), z.get(1), z.get(2)].map(|s| s.to_i64()), [253, 254, 255]);
    let t = Memory::new(DType::Bool, 3, |_| 0);
    let inputs = [x.input(&[1]), Input::Scalar(Scalar::Int(-1))];
    // SAFETY: both hold three elements. -1 is 255 in uint8; 254 and 255 are stored, 256 became 0.
    unsafe { map(&[3], &inputs, &t.output(&[1]), DType::U8, &LESS) };
    assert_eq!([t.get(0), t.get(1), t.get(2)], [true, false, true].map(Scalar::Bool));
}

#[test]
fn integer_rules_serve_narrow_types_and_complex_ones_give_reals() {
    for d in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
        let (x, z) = (Memory::new(d, 5, |i| i as i64), Memory::new(d, 5, |_| 0));
        // SAFETY: both hold five elements.
        unsafe { map(&[5], &[x.input(&[1]), Input::Scalar(Scalar::Int(7))], &z.output(&[1]), d, &SHIFT) };
        let want = |i: i64| {
            if d == DType::I8 {
                (i << 7) as i8 as i64
            } else if d == DType::U8 {
                (i << 7) & 255
            } else {
                i << 7
            }
        };
        assert!((0..5).all(|i| z.get(i).to_i64() == want(i as i64)), "{d}");
    }
    for (d, out) in [(DType::C64, DType::F32), (DType::C128, DType::F64)] {
        let (mut x, z) = (Memory::new(d, 2, |_| 0), Memory::new(out, 2, |_| 0));
        x.set(1, Scalar::Complex(3.0, -4.0));
        // SAFETY: both hold two elements.
        unsafe { map(&[2], &[x.input(&[1])], &z.output(&[1]), d, &MAGNITUDE) };
        assert_eq!(z.get(1), Scalar::Float(5.0));
        assert_eq!(MAGNITUDE.result(d), Some(out));
    }
    assert!(!SHIFT.supports(DType::F32) && !TANH.supports(DType::C64) && TANH.supports(DType::BF16));
}

#[test]
fn copies_cast_every_pair_in_every_layout() {
    for (shape, [sa, _, so]) in layouts() {
        for from in DType::ALL {
            for to in DType::ALL {
                if shape.iter().product::<usize>() > 10_000 && (from.size() != 4 || to.size() != 4) {
                    continue;
                }
                let x = Memory::new(from, span(&shape, &sa), |i| (i % 100) as i64);
                let z = Memory::new(to, span(&shape, &so), |_| 99);
                // SAFETY: memories span their layouts.
                unsafe { copy(&shape, &x.input(&sa), &z.output(&so)) };
                visit(&shape, [&sa, &so, &so], |[i, k, _]| {
                    let want = with_dtype!(to, T => T::from_scalar(x.get(i)).to_scalar());
                    assert_eq!(z.get(k), want, "{from} {to} {shape:?} {sa:?} {so:?}");
                });
            }
        }
    }
}

#[test]
fn fills_every_layout() {
    for (shape, [_, _, so]) in layouts() {
        for d in [DType::Bool, DType::BF16, DType::F32, DType::I64, DType::C128] {
            let z = Memory::new(d, span(&shape, &so), |_| 0);
            // SAFETY: the memory spans its layout.
            unsafe { fill(&shape, &z.output(&so), Scalar::Int(3)) };
            visit(&shape, [&so, &so, &so], |[k, ..]| {
                assert_eq!(z.get(k).to_i64(), if d == DType::Bool { 1 } else { 3 })
            });
        }
    }
}

fn cast_all<S: Element, D: Element>(xs: &[S]) -> Vec<D> {
    let mut out = vec![D::default(); xs.len()];
    let src = Input::Strided { ptr: xs.as_ptr().cast(), dtype: S::DTYPE, strides: &[1] };
    // SAFETY: both hold as many elements.
    unsafe { copy(&[xs.len()], &src, &Output { ptr: out.as_mut_ptr().cast(), dtype: D::DTYPE, strides: &[1] }) };
    out
}

#[test]
fn casts_follow_x86_out_of_range() {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, -1.7, 2.9, -0.0, 300.0];
    assert_eq!(cast_all::<f32, i32>(&odd), [i32::MIN, i32::MIN, i32::MIN, i32::MIN, i32::MIN, -1, 2, 0, 300]);
    assert_eq!(
        cast_all::<f32, i64>(&odd),
        [i64::MIN, i64::MIN, i64::MIN, 3_000_000_000, -3_000_000_000, -1, 2, 0, 300]
    );
    assert_eq!(cast_all::<f32, u8>(&odd)[5..], [255, 2, 0, 44]);
    assert_eq!(cast_all::<f32, bool>(&odd), [true, true, true, true, true, true, true, false, true]);
    assert_eq!(cast_all::<f64, i32>(&[2147483647.5, -2147483648.5, 1e300]), [i32::MAX, i32::MIN, i32::MIN]);
    assert_eq!(cast_all::<f64, u64>(&[1e19, 5.0, -1.0]), [10_000_000_000_000_000_000, 5, u64::MAX]);
    assert_eq!(cast_all::<i64, u8>(&[-1, 256, 511]), [255, 0, 255]);
    assert_eq!(cast_all::<i64, f32>(&[16_777_217, i64::MAX]), [16_777_216.0, 9.223372e18]);
    assert_eq!(cast_all::<c64, f32>(&[c64::new(1.5, 9.0)]), [1.5]);
    assert_eq!(cast_all::<c128, bool>(&[c128::new(0.0, 2.0), c128::new(0.0, 0.0)]), [true, false]);
    assert_eq!(cast_all::<f64, f16>(&[65519.0, 65520.0, 1e-8]), [65504.0, f64::INFINITY, 0.0].map(f16::from_f64));
    assert!(cast_all::<f32, bf16>(&[f32::NAN])[0].is_nan());
}

#[test]
fn angles_of_any_size_are_right_anywhere_in_a_tensor() {
    let n = 1000;
    let mut x = Memory::new(DType::F32, n, |i| i as i64);
    x.set(70, Scalar::Float(1e22));
    x.set(999, Scalar::Float(-3e38));
    let z = Memory::new(DType::F32, n, |_| 0);
    // SAFETY: both hold `n` elements.
    unsafe { map(&[n], &[x.input(&[1])], &z.output(&[1]), DType::F32, &SIN) };
    for i in 0..n {
        let want = x.get(i).to_f64().sin();
        assert!((z.get(i).to_f64() - want).abs() < 1e-7, "{i}: {:?} for {want}", z.get(i));
    }
}

#[test]
fn transposes_of_every_element_size_and_odd_shape() {
    for dtype in [DType::U8, DType::F16, DType::F32, DType::F64, DType::C128] {
        for (rows, cols) in [(1, 7), (3, 5), (4, 4), (33, 70), (130, 67), (257, 129)] {
            let x = Memory::new(dtype, rows * cols, |i| (i % 251) as i64 / 2);
            let z = Memory::new(dtype, rows * cols, |_| 99);
            // SAFETY: both hold `rows * cols` elements; first the input is transposed, then the output.
            unsafe { copy(&[rows, cols], &x.input(&[1, rows]), &z.output(&[cols, 1])) };
            let same = (0..rows * cols).all(|k| z.get(k) == x.get((k % cols) * rows + k / cols));
            assert!(same, "{dtype} {rows} {cols}");
            // SAFETY: as above.
            unsafe { copy(&[rows, cols], &x.input(&[cols, 1]), &z.output(&[1, rows])) };
            let same = (0..rows * cols).all(|k| z.get((k % cols) * rows + k / cols) == x.get(k));
            assert!(same, "{dtype} {rows} {cols}");
        }
    }
}
