//! Indexing: values, order of repeated writes, every width of element, and bad indices.

use super::*;
use crate::dtype::{Element, Scalar, c128, f16};
use crate::error::Class;
use crate::gpu::*;
use crate::kinds::ScatterMode;

#[test]
fn gather_and_select_move_every_dtype() {
    let Some(_shared) = ready("gather") else { return };
    fn check<T: Element + std::fmt::Debug>(make: impl Fn(usize) -> T) {
        let data: Vec<T> = (0..12).map(make).collect();
        let a = Dev::new(&[3, 4], &data);
        let index = Dev::new(&[2, 4], &[0i64, 2, 1, 0, 2, 2, 0, 1]);
        let out = Dev::zeros(&[2, 4], T::DTYPE);
        gather(&a.view(), 0, &index.view(), &out.view()).unwrap();
        let want: Vec<T> = [0, 9, 6, 3, 8, 9, 2, 7].iter().map(|&i| data[i]).collect();
        assert_eq!(out.get::<T>(), want);
        let picks = Dev::new(&[3], &[3i32, 0, 3]);
        let out = Dev::zeros(&[3, 3], T::DTYPE);
        index_select(&a.view(), 1, &picks.view(), &out.view()).unwrap();
        let want: Vec<T> = [3, 0, 3, 7, 4, 7, 11, 8, 11].iter().map(|&i| data[i]).collect();
        assert_eq!(out.get::<T>(), want);
        let (rows, cols) = (Dev::new(&[2, 2], &[0i64, -1, 1, 1]), Dev::new(&[2, 2], &[3i64, 2, -4, 1]));
        let out = Dev::zeros(&[2, 2], T::DTYPE);
        index_get(&a.view(), &[Some(rows.view()), Some(cols.view())], &out.view()).unwrap();
        let want: Vec<T> = [3, 10, 4, 5].iter().map(|&i| data[i]).collect();
        assert_eq!(out.get::<T>(), want);
        let out = Dev::zeros(&[3, 2, 2], T::DTYPE);
        index_get(&a.view(), &[None, Some(cols.view())], &out.view()).unwrap();
        let want: Vec<T> = [3, 2, 0, 1, 7, 6, 4, 5, 11, 10, 8, 9].iter().map(|&i| data[i]).collect();
        assert_eq!(out.get::<T>(), want);
        let put = Dev::zeros(&[3, 4], T::DTYPE);
        index_put(&put.view(), &[Some(rows.view()), Some(cols.view())], &Dev::new(&[2, 2], &data[5..9]).view(), false)
            .unwrap();
        let mut want = vec![T::default(); 12];
        [3, 10, 4, 5].iter().zip(&data[5..9]).for_each(|(&i, v)| want[i] = *v);
        assert_eq!(put.get::<T>(), want);
        let to = Dev::zeros(&[3, 4], T::DTYPE);
        scatter(&to.view(), 0, &index.view(), &Dev::new(&[2, 4], &data[4..]).input(), ScatterMode::Set).unwrap();
        let mut want = vec![T::default(); 12];
        [0, 9, 6, 3, 8, 9, 2, 7].iter().zip(&data[4..]).for_each(|(&i, v)| want[i] = *v);
        assert_eq!(to.get::<T>(), want);
        let mask = Dev::new(&[3, 4], &[true, false, true, true, false, false, false, true, false, false, false, true]);
        let places = Places::find(&mask.view()).unwrap();
        assert_eq!(places.count, 5);
        let out = Dev::zeros(&[5], T::DTYPE);
        masked_select(&a.view(), &places, &out.view()).unwrap();
        let want: Vec<T> = [0, 2, 3, 7, 11].iter().map(|&i| data[i]).collect();
        assert_eq!(out.get::<T>(), want);
    }
    check(|i| i as u8 + 200);
    check(|i| i % 3 == 0);
    check(|i| i as i16 - 5);
    check(|i| f16::from_f32(i as f32 / 3.0));
    check(|i| i as f32 / 7.0);
    check(|i| i as i64 * (1 << 40) - 3);
    check(|i| i as f64 / 7.0);
    check(|i| c128::new(i as f64, -(i as f64) / 3.0));
}

#[test]
fn scatter_modes_and_repeats() {
    let Some(_shared) = ready("scatter") else { return };
    let index = Dev::new(&[6], &[0i64, 1, 0, 2, 0, 1]);
    let source = Dev::new(&[6], &[1f32, 2., 3., 4., 5., 6.]);
    for (mode, want) in [
        (ScatterMode::Set, [5f32, 6., 4.]),
        (ScatterMode::Add, [19., 18., 14.]),
        (ScatterMode::Mul, [150., 120., 40.]),
        (ScatterMode::Max, [10., 10., 10.]),
        (ScatterMode::Min, [1., 2., 4.]),
    ] {
        let out = Dev::new(&[3], &[10f32; 3]);
        scatter(&out.view(), 0, &index.view(), &source.input(), mode).unwrap();
        assert_eq!(out.get::<f32>(), want, "{mode:?}");
    }
    let out = Dev::zeros(&[3], DType::F32);
    scatter(&out.view(), 0, &index.view(), &Input::Scalar(Scalar::Float(2.0)), ScatterMode::Add).unwrap();
    assert_eq!(out.get::<f32>(), [6., 4., 2.]);
}

/// Long columns take the road of atomic updates, short ones that in order; narrow dtypes share words.
#[test]
fn many_additions_to_few_places() {
    let Some(_shared) = ready("additions") else { return };
    for n in [100usize, 5000] {
        let places: Vec<i64> = (0..n).map(|i| (i * 7 % 5) as i64).collect();
        let index = Dev::new(&[n], &places);
        let count = |p: i64| places.iter().filter(|&&q| q == p).count();
        let out = Dev::zeros(&[5], DType::F32);
        scatter(&out.view(), 0, &index.view(), &Dev::new(&[n], &vec![1f32; n]).input(), ScatterMode::Add).unwrap();
        assert_eq!(out.get::<f32>(), (0..5).map(|p| count(p) as f32).collect::<Vec<_>>());
        let out = Dev::zeros(&[5], DType::I32);
        scatter(&out.view(), 0, &index.view(), &Dev::new(&[n], &vec![3i32; n]).input(), ScatterMode::Add).unwrap();
        assert_eq!(out.get::<i32>(), (0..5).map(|p| 3 * count(p) as i32).collect::<Vec<_>>());
        let out = Dev::zeros(&[5], DType::I16);
        index_put(&out.view(), &[Some(index.view())], &Dev::new(&[n], &vec![1i16; n]).view(), true).unwrap();
        assert_eq!(out.get::<i16>(), (0..5).map(|p| count(p) as i16).collect::<Vec<_>>());
        let out = Dev::zeros(&[5], DType::I64);
        index_put(&out.view(), &[Some(index.view())], &Dev::new(&[n], &vec![1i64; n]).view(), true).unwrap();
        assert_eq!(out.get::<i64>(), (0..5).map(|p| count(p) as i64).collect::<Vec<_>>());
        let rows = Dev::zeros(&[5, 3], DType::F32);
        let source = Dev::new(&[n, 3], &(0..3 * n).map(|i| (i % 3) as f32).collect::<Vec<_>>());
        index_add(&rows.view(), 0, &index.view(), &source.view(), 0.5).unwrap();
        let want: Vec<f32> = (0..15).map(|e| 0.5 * (e % 3) as f32 * count(e as i64 / 3) as f32).collect();
        assert_eq!(rows.get::<f32>(), want);
        let rows = Dev::zeros(&[5, 3], DType::F32);
        index_put(&rows.view(), &[Some(index.view())], &source.view(), true).unwrap();
        let want: Vec<f32> = (0..15).map(|e| (e % 3) as f32 * count(e as i64 / 3) as f32).collect();
        assert_eq!(rows.get::<f32>(), want);
    }
}

#[test]
fn slices_and_masks() {
    let Some(_shared) = ready("slices") else { return };
    let a = Dev::new(&[2, 4], &[1f32, 2., 3., 4., 5., 6., 7., 8.]);
    index_fill(&a.view(), 1, &Dev::new(&[2], &[-1i64, 0]).view(), Scalar::Float(0.0)).unwrap();
    assert_eq!(a.get::<f32>(), [0., 2., 3., 0., 0., 6., 7., 0.]);
    index_copy(&a.view(), 0, &Dev::new(&[1], &[1i64]).view(), &Dev::new(&[1, 4], &[9f32; 4]).view()).unwrap();
    assert_eq!(a.get::<f32>(), [0., 2., 3., 0., 9., 9., 9., 9.]);
    let places = Places::find(&a.view()).unwrap();
    let out = Dev::zeros(&[6, 2], DType::I64);
    nonzero(&places, &[2, 4], &out.view()).unwrap();
    assert_eq!(out.get::<i64>(), [0, 1, 0, 2, 1, 0, 1, 1, 1, 2, 1, 3]);
    masked_scatter(&a.view(), &places, &Dev::new(&[6], &[1f32, 2., 3., 4., 5., 6.]).view()).unwrap();
    assert_eq!(a.get::<f32>(), [0., 1., 2., 0., 3., 4., 5., 6.]);
}

/// A bad index is an error at the next read, once, and leaves the rest of the device usable.
#[test]
fn bad_indices_come_back_as_errors() {
    let Some(_alone) = alone("bad indices") else { return };
    let a = Dev::new(&[3], &[1f32, 2., 3.]);
    let out = Dev::zeros(&[1], DType::F32);
    gather(&a.view(), 0, &Dev::new(&[1], &[3i64]).view(), &out.view()).unwrap();
    let _ = synchronize().unwrap_err();
    gather(&a.view(), 0, &Dev::new(&[1], &[1i64 << 40]).view(), &out.view()).unwrap();
    assert!(synchronize().is_err());
    index_get(&a.view(), &[Some(Dev::new(&[1], &[-4i64]).view())], &out.view()).unwrap();
    let error = synchronize().unwrap_err();
    assert_eq!(error.class(), Class::Index);
    assert_eq!(error.message(), "index -4 is out of bounds for dimension 0 with size 3");
    synchronize().unwrap();
    assert_eq!(a.get::<f32>(), [1., 2., 3.]);
}
