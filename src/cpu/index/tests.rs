//! Indexing against loops over unravelled indices: gather, scatter in every mode, selection, advanced indexing, masks;
//! and that an index out of bounds is an error before anything is written. Shapes and strides are random.
use super::*;
use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};
use crate::dtype::{DType, Scalar, c128};

fn indices(rng: &mut Rng, shape: &[usize], low: i64, size: usize) -> Array {
    let a = Array::scattered(rng, DType::I64, shape);
    let n: usize = shape.iter().product();
    let span = (size as i64 - low) as usize;
    a.fill(&(0..n).map(|_| c128::new((rng.below(span) as i64 + low) as f64, 0.0)).collect::<Vec<_>>());
    a
}

const TYPES: [DType; 6] = [DType::Bool, DType::U8, DType::BF16, DType::F32, DType::I64, DType::C128];

#[test]
fn gather_and_scatter_set() {
    let mut rng = Rng(5);
    for round in 0..60 {
        let s = shape(&mut rng, 4, 7);
        let dim = rng.below(s.len());
        let a = Array::random(&mut rng, TYPES[round % 6], &s);
        let mut smaller = s.clone();
        smaller[dim] = 1 + rng.below(9);
        let index = indices(&mut rng, &smaller, 0, s[dim]);
        let out = Array::scattered(&mut rng, a.dtype, &smaller);
        gather(a.view(), dim, index.view(), out.view()).unwrap();
        let (from, picked, ix) = (a.values(), out.values(), index.reals());
        let mut want = from.clone();
        for i in 0..picked.len() {
            let mut at = unravel(&smaller, i);
            at[dim] = ix[i] as usize;
            assert_eq!(picked[i], from[ravel(&s, &at)]);
        }
        let src = Array::random(&mut rng, a.dtype, &smaller);
        // Along `dim` the last of several writes wins, and row-major order visits those in order.
        for (i, v) in src.values().into_iter().enumerate() {
            let mut at = unravel(&smaller, i);
            at[dim] = ix[i] as usize;
            want[ravel(&s, &at)] = v;
        }
        scatter(a.view(), dim, index.view(), Source::View(src.view()), Mode::Set, true).unwrap();
        assert_eq!(a.values(), want);
    }
}

fn reduced(mode: Mode, old: f64, new: &[f64], include_self: bool) -> f64 {
    let mut all = new.to_vec();
    if include_self || new.is_empty() {
        all.insert(0, old);
    }
    match mode {
        Mode::Set => *all.last().unwrap(),
        Mode::Add => all.iter().sum(),
        Mode::Mul => all.iter().product(),
        Mode::Max => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Mode::Min => all.iter().copied().fold(f64::INFINITY, f64::min),
        Mode::Mean => all.iter().sum::<f64>() / all.len() as f64,
    }
}

#[test]
fn scatter_modes() {
    let mut rng = Rng(9);
    for round in 0..80 {
        let s = shape(&mut rng, 3, 6);
        let dim = rng.below(s.len());
        let mode = [Mode::Add, Mode::Mul, Mode::Max, Mode::Min, Mode::Mean][round % 5];
        let include_self = rng.below(2) == 0;
        let dtype = if mode != Mode::Mean && rng.below(2) == 0 { DType::I32 } else { DType::F32 };
        let a = Array::random(&mut rng, dtype, &s);
        let mut longer = s.clone();
        longer[dim] = 1 + rng.below(12);
        let index = indices(&mut rng, &longer, 0, s[dim]);
        let src = Array::random(&mut rng, dtype, &longer);
        let mut groups = vec![Vec::new(); a.view().numel()];
        for (i, (&ix, &v)) in index.reals().iter().zip(&src.reals()).enumerate() {
            let mut at = unravel(&longer, i);
            at[dim] = ix as usize;
            groups[ravel(&s, &at)].push(v);
        }
        let want: Vec<f64> =
            a.reals().iter().zip(&groups).map(|(&old, g)| reduced(mode, old, g, include_self)).collect();
        scatter(a.view(), dim, index.view(), Source::View(src.view()), mode, include_self).unwrap();
        close(&a.reals(), &want, 1e-5);
    }
}

#[test]
fn slices() {
    let mut rng = Rng(11);
    for _ in 0..40 {
        let s = shape(&mut rng, 3, 6);
        let dim = rng.below(s.len());
        let a = Array::random(&mut rng, DType::F32, &s);
        let mut t = s.clone();
        t[dim] = rng.below(10);
        let index = indices(&mut rng, &[t[dim]], 0, s[dim]);
        let out = Array::scattered(&mut rng, DType::F32, &t);
        let (old, ix) = (a.reals(), index.reals());
        index_select(a.view(), dim, index.view(), out.view()).unwrap();
        let mut want = old.clone();
        for (i, v) in out.reals().into_iter().enumerate() {
            let mut at = unravel(&t, i);
            at[dim] = ix[at[dim]] as usize;
            assert_eq!(v, old[ravel(&s, &at)]);
            want[ravel(&s, &at)] += 2.0 * v;
        }
        index_add(a.view(), dim, index.view(), out.view(), Scalar::Float(2.0)).unwrap();
        close(&a.reals(), &want, 1e-5);
        let negative = Array::of(DType::I64, &[1], &[-1.0]);
        index_fill(a.view(), dim, negative.view(), Scalar::Int(7)).unwrap();
        for (i, v) in a.reals().into_iter().enumerate() {
            assert!(unravel(&s, i)[dim] != s[dim] - 1 || v == 7.0);
        }
    }
}

#[test]
fn advanced_indexing() {
    let mut rng = Rng(13);
    let s = [4, 5, 3, 6];
    for round in 0..30 {
        let which: Vec<bool> = (0..4).map(|d| (round + 1) >> d & 1 == 1).collect();
        if !which.contains(&true) {
            continue;
        }
        let shape = [2, 3];
        let arrays: Vec<Option<Array>> =
            (0..4).map(|d| which[d].then(|| indices(&mut rng, &shape, -(s[d] as i64), s[d]))).collect();
        let views: Vec<Option<View>> = arrays.iter().map(|a| a.as_ref().map(|a| a.view())).collect();
        let a = Array::random(&mut rng, DType::F32, &s);
        let result = index_shape(&s, &which, &shape);
        let out = Array::scattered(&mut rng, DType::F32, &result);
        index_get(a.view(), &views, out.view()).unwrap();
        let first = which.iter().position(|&b| b).unwrap();
        let last = which.iter().rposition(|&b| b).unwrap();
        let place = if which[first..=last].iter().all(|&b| b) { first } else { 0 };
        let old = a.reals();
        let mut sums = old.clone();
        for (i, v) in out.reals().into_iter().enumerate() {
            let mut at = unravel(&result, i);
            let pair: Vec<usize> = at.drain(place..place + 2).collect();
            let mut rest = at.into_iter();
            let full: Vec<usize> = (0..4)
                .map(|d| match &arrays[d] {
                    Some(ix) => (ix.reals()[ravel(&shape, &pair)] as i64).rem_euclid(s[d] as i64) as usize,
                    None => rest.next().unwrap(),
                })
                .collect();
            assert_eq!(v, old[ravel(&s, &full)]);
            sums[ravel(&s, &full)] += v;
        }
        index_put(a.view(), &views, out.view(), true).unwrap();
        close(&a.reals(), &sums, 1e-6);
        let sevens = Array::of(DType::F32, &result, &vec![7.0; out.view().numel()]);
        index_put(a.view(), &views, sevens.view(), false).unwrap();
        index_get(a.view(), &views, out.view()).unwrap();
        assert!(out.reals().iter().all(|&v| v == 7.0));
    }
}

#[test]
fn masks() {
    let mut rng = Rng(17);
    for n in [1, 5, 40_000] {
        for _ in 0..3 {
            let s = [1 + rng.below(3), n, 1 + rng.below(3)];
            let (a, mask) = (Array::random(&mut rng, DType::F32, &s), Array::random(&mut rng, DType::Bool, &s));
            let (values, truths) = (a.reals(), mask.reals());
            let want: Vec<usize> = (0..truths.len()).filter(|&i| truths[i] != 0.0).collect();
            let counted = Counted::of(mask.view()).unwrap();
            assert_eq!(counted.total(), want.len());
            let positions = Array::scattered(&mut rng, DType::I64, &[want.len(), 3]);
            nonzero(mask.view(), &counted, positions.view()).unwrap();
            let flat: Vec<f64> = want.iter().flat_map(|&i| unravel(&s, i)).map(|i| i as f64).collect();
            assert_eq!(positions.reals(), flat);
            let picked = Array::zeros(DType::F32, &[want.len()]);
            masked_select(a.view(), mask.view(), &counted, picked.view()).unwrap();
            assert_eq!(picked.reals(), want.iter().map(|&i| values[i]).collect::<Vec<_>>());
            let b = Array::zeros(DType::F32, &s);
            masked_scatter(b.view(), mask.view(), &counted, picked.view()).unwrap();
            for (i, v) in b.reals().into_iter().enumerate() {
                assert_eq!(v, values[i] * truths[i]);
            }
        }
    }
}

#[test]
fn any_byte_but_zero_is_true() {
    let mut bytes = [0, 1, 2, 128, 255, 0, 3, 0, 7, 129, 0];
    // SAFETY: there are so many bytes.
    let mask = unsafe { View::new(bytes.as_mut_ptr(), DType::Bool, &[11], &[1]) };
    let places = Array::zeros(DType::I64, &[7, 1]);
    let counted = Counted::of(mask).unwrap();
    assert_eq!(counted.total(), 7);
    nonzero(mask, &counted, places.view()).unwrap();
    assert_eq!(places.reals(), [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 9.0]);
}

/// A mask that has more or fewer true elements when it is used than when it was counted, as another thread may cause.
#[test]
fn a_mask_that_changes_after_its_count_is_an_error() {
    let n = 3 * 8192 + 5;
    let full = Array::of(DType::F32, &[n], &vec![1.0; n]);
    for (before, after) in [(0, 1), (1, 0)] {
        let truths = |odd: usize| (0..n).map(|i| (i % 2 * odd + i % 3 / 2) as f64).collect::<Vec<_>>();
        let (old, new) = (truths(before), truths(after));
        let mask = Array::of(DType::I64, &[n], &old);
        // What lies behind the output's end is looked at afterwards.
        let counted = Counted::of(mask.view()).unwrap();
        let room = Array::of(DType::F32, &[counted.total() + 1000], &vec![7.0; counted.total() + 1000]);
        let shape = [counted.total()];
        // SAFETY: part of the room.
        let out = unsafe { room.view().seen_as(&shape, &[1]) };
        mask.fill(&new.iter().map(|&v| c128::new(v, 0.0)).collect::<Vec<_>>());
        assert!(masked_select(full.view(), mask.view(), &counted, out).is_err());
        assert!(masked_scatter(full.view(), mask.view(), &counted, out).is_err());
        assert!(room.reals()[counted.total()..].iter().all(|&v| v == 7.0));
        let places = Array::zeros(DType::I64, &[counted.total() + 1000, 1]);
        assert!(nonzero(mask.view(), &counted, places.view()).is_err());
        assert!(places.reals()[counted.total()..].iter().all(|&v| v == 0.0));
    }
}

#[test]
fn bad_indices_change_nothing() {
    let a = Array::of(DType::F32, &[3], &[1.0, 2.0, 3.0]);
    let out = Array::zeros(DType::F32, &[2]);
    for bad in [5.0, -1.0] {
        let index = Array::of(DType::I64, &[2], &[0.0, bad]);
        let text = format!("index {bad} is out of bounds for dimension 0 with size 3");
        let error = gather(a.view(), 0, index.view(), out.view()).unwrap_err();
        assert_eq!(error.message(), text);
        let one = Source::Scalar(Scalar::Int(1));
        assert_eq!(scatter(a.view(), 0, index.view(), one, Mode::Add, true).unwrap_err().message(), text);
        let error = index_select(a.view(), 0, index.view(), out.view()).unwrap_err();
        assert_eq!(error.message(), "index out of range in self");
        assert!(index_add(a.view(), 0, index.view(), out.view(), Scalar::Int(1)).is_err());
        assert_eq!(index_put(a.view(), &[Some(index.view())], out.view(), false).is_ok(), bad < 0.0);
        a.fill(&[c128::new(1.0, 0.0), c128::new(2.0, 0.0), c128::new(3.0, 0.0)]);
    }
    assert_eq!(a.reals(), [1.0, 2.0, 3.0]);
}

#[test]
fn rows_by_pairs_of_indices() {
    let mut rng = Rng(11);
    for round in 0..40 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let (n, m, count) = (1 + rng.below(6), 1 + rng.below(6), rng.below(40));
        let width = [0, 1, 5, 16, 40, 70][round % 6];
        let (row, column) = (indices(&mut rng, &[count], 0, n), indices(&mut rng, &[count], 0, m));
        let [values, mat, out, dots] = [&[count][..], &[m, width], &[n, width], &[count]].map(|s| {
            let numbers: Vec<f64> = (0..s.iter().product()).map(|_| rng.value()).collect();
            Array::of(dtype, s, &numbers)
        });
        let (v, d, before) = (values.reals(), mat.reals(), out.reals());
        let (r, c) = (row.reals(), column.reals());
        let pairs = Pairs { row: row.view(), column: column.view() };
        dots_of_rows(dots.view(), pairs, out.view(), mat.view()).unwrap();
        add_scaled_rows(out.view(), pairs, values.view(), mat.view()).unwrap();
        let mut sums = before.clone();
        for i in 0..count {
            let (to, from) = (r[i] as usize * width, c[i] as usize * width);
            let dot: f64 = (0..width).map(|j| before[to + j] * d[from + j]).sum();
            assert!((dots.reals()[i] - dot).abs() < 1e-3 * (1.0 + dot.abs()));
            (0..width).for_each(|j| sums[to + j] += v[i] * d[from + j]);
        }
        out.reals().iter().zip(&sums).for_each(|(x, y)| assert!((x - y).abs() < 1e-3 * (1.0 + y.abs())));
        if count > 0 {
            row.fill(&vec![c128::new(n as f64, 0.0); count]);
            assert!(add_scaled_rows(out.view(), pairs, values.view(), mat.view()).is_err());
            assert!(dots_of_rows(dots.view(), pairs, out.view(), mat.view()).is_err());
        }
    }
}
