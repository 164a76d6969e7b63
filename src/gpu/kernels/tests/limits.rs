//! The edges of a device: bindings that reach no further, memory that runs out, a forked child, many submissions.

use super::*;
use crate::dtype::Scalar;
use crate::gpu::driver::driver;
use crate::gpu::*;
use crate::kinds::Reduce;

/// More than one binding reaches on lavapipe (128 MiB); elsewhere limits are larger than a test should fill.
#[test]
fn tensors_beyond_one_binding_are_split() {
    let Some(_alone) = alone("splitting") else { return };
    let limit = driver(0).unwrap().caps().max_binding as usize;
    if limit > 256 << 20 {
        println!("splitting: skipped, a binding of this adapter reaches {limit} bytes");
        return;
    }
    let (rows, cols) = (9000, limit / 4 / 8000);
    let n = rows * cols;
    let a = Dev::zeros(&[rows, cols], DType::F32);
    copy(&Input::Scalar(Scalar::Float(0.5)), &a.view()).unwrap();
    map(&[rows, cols], &[a.input(), Input::Scalar(Scalar::Float(2.0))], &a.view(), DType::F32, "x * y").unwrap();
    let out = |shape: &[usize]| Dev::zeros(shape, DType::F32);
    let all = out(&[1, 1]);
    reduce(Reduce::Sum, &a.view(), &[0, 1], &all.view()).unwrap();
    assert!((all.get::<f32>()[0] as f64 / n as f64 - 1.0).abs() < 1e-6);
    let (by_row, by_col) = (out(&[rows, 1]), out(&[1, cols]));
    reduce(Reduce::Mean, &a.view(), &[1], &by_row.view()).unwrap();
    reduce(Reduce::Sum, &a.view(), &[0], &by_col.view()).unwrap();
    assert!(by_row.get::<f32>().iter().all(|v| *v == 1.0));
    assert!(by_col.get::<f32>().iter().all(|v| *v == rows as f32));
    let spread = out(&[1, 1]);
    var(&a.view(), &[0, 1], 0.0, false, &spread.view(), None).unwrap();
    assert_eq!(spread.get::<f32>(), [0.0]);
    let (x, y) = (Dev::new(&[cols, 1], &vec![1f32; cols]), out(&[rows, 1]));
    matmul(&a.view(), &x.view(), &y.view(), 1.0, 0.0).unwrap();
    assert!(y.get::<f32>().iter().all(|v| *v == cols as f32));
    softmax(&a.view(), 1, &a.view(), false).unwrap();
    reduce(Reduce::Sum, &a.view(), &[1], &by_row.view()).unwrap();
    assert!(by_row.get::<f32>().iter().all(|v| (v - 1.0).abs() < 1e-4));
    let [mean, rstd] = [(); 2].map(|()| Dev::zeros(&[rows], DType::F32));
    copy(&Input::Scalar(Scalar::Float(0.5)), &a.view()).unwrap();
    let y = Dev::zeros(&[rows, cols], DType::F32);
    triangle(&a.view(), -3, false, &y.view()).unwrap();
    reduce(Reduce::Sum, &y.view(), &[1], &by_row.view()).unwrap();
    let kept = |row: usize| (row as i64 - 2).clamp(0, cols as i64) as f32 / 2.0;
    assert!(by_row.get::<f32>().iter().enumerate().all(|(row, v)| *v == kept(row)));
    layer_norm(&a.view(), None, None, 1e-5, [&y.view(), &mean.view(), &rstd.view()]).unwrap();
    assert!(mean.get::<f32>().iter().all(|v| *v == 0.5));
    let [dw, db] = [(); 2].map(|()| Dev::zeros(&[cols], DType::F32));
    let from = NormGrad { grad: a.view(), input: a.view(), mean: mean.view(), rstd: rstd.view(), weight: None };
    layer_norm_backward(&from, &y.view(), &dw.view(), &db.view()).unwrap();
    assert!(db.get::<f32>().iter().all(|v| *v == rows as f32 / 2.0));
    drop((a, y));
    empty_cache();
}

#[test]
fn too_much_memory_is_an_error() {
    let Some(_shared) = ready("memory") else { return };
    let error = GpuBuffer::alloc(0, 1 << 50).unwrap_err();
    assert!(error.message().contains("not enough memory"), "{error}");
    let kept = GpuBuffer::alloc(0, 1 << 20).unwrap();
    let [allocated, peak, reserved, peak_reserved] = memory(0);
    assert!(peak_reserved >= reserved && reserved >= allocated);
    assert!(peak >= allocated && allocated >= kept.bytes() && kept.bytes() == 1 << 20);
    drop(kept);
    assert!(stats(0).iter().any(|(name, _)| *name == "dispatches"));
}

/// The driver's threads do not live on in a child: it gets an error, not a hang.
#[cfg(unix)]
#[test]
fn a_forked_child_gets_an_error() {
    let Some(_alone) = alone("fork") else { return };
    let a = Dev::new(&[2], &[1f32, 2.]);
    synchronize().unwrap();
    // SAFETY: the child calls nothing but functions that return at once, then leaves without unwinding.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let failed = GpuBuffer::alloc(0, 16).is_err() && synchronize().is_err() && memory(0) == [0; 4];
            libc::_exit(if failed { 0 } else { 1 });
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
    }
    assert_eq!(a.get::<f32>(), [1., 2.]);
}

/// Thousands of dispatches without a read: parameters wrap around their ring, submissions are bounded.
#[test]
fn long_streams_stay_in_order() {
    let Some(_shared) = ready("long streams") else { return };
    let a = Dev::zeros(&[1000], DType::F32);
    for _ in 0..20_000 {
        map(&[1000], &[a.input(), Input::Scalar(Scalar::Int(1))], &a.view(), DType::F32, "x + y").unwrap();
    }
    assert_eq!(a.get::<f32>(), [20_000f32; 1000]);
}

/// Buffers that are dropped while commands wait are handed out again without harm.
#[test]
fn dropped_buffers_are_reused_in_order() {
    let Some(_shared) = ready("reuse") else { return };
    let total = Dev::zeros(&[64], DType::F32);
    for i in 0..500 {
        let part = Dev::new(&[64], &[i as f32; 64]);
        map(&[64], &[total.input(), part.input()], &total.view(), DType::F32, "x + y").unwrap();
    }
    assert_eq!(total.get::<f32>(), [124_750f32; 64]);
}
