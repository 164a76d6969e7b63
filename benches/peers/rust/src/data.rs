//! `data.py` in Rust.

pub const MLP: &[&[usize]] = &[&[32, 64], &[32], &[10, 32], &[10]];
pub const LENET: &[&[usize]] =
    &[&[6, 1, 5, 5], &[6], &[16, 6, 5, 5], &[16], &[120, 400], &[120], &[84, 120], &[84], &[10, 84], &[10]];
pub const BATCH: usize = 32;
pub const STEPS: usize = 5;

pub fn labels() -> Vec<i64> {
    (0..BATCH as i64).map(|i| 3 * i % 10).collect()
}

/// Numbers in [-scale, scale) for the tensor of this number.
pub fn numbers(shape: &[usize], which: usize, scale: f64) -> Vec<f32> {
    let one = |i: usize| (((7919 * i + 104729 * which) % 2003) as f64 / 2003.0 * 2.0 - 1.0) * scale;
    (0..shape.iter().product()).map(|i| one(i) as f32).collect()
}

/// The initial parameters, each scaled by the root of the layer's number of inputs.
pub fn parameters(shapes: &[&[usize]]) -> Vec<Vec<f32>> {
    let one = |which: usize| {
        let inputs: usize = shapes[which - which % 2][1..].iter().product();
        numbers(shapes[which], which + 1, (inputs as f64).powf(-0.5))
    };
    (0..shapes.len()).map(one).collect()
}

/// Seconds per call, the median of several stretches: `timing.py` in Rust.
pub fn timed(mut call: impl FnMut()) -> f64 {
    let stretch = |count: usize, call: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed().as_secs_f64()
    };
    call();
    let (mut count, mut spent) = (1, 0.0);
    while count < 10_000_000 {
        spent = stretch(count, &mut call);
        if spent > 0.0125 {
            break;
        }
        count *= 4;
    }
    let count = ((count as f64 * 0.05 / spent.max(1e-9)) as usize).max(1);
    let mut found: Vec<f64> = (0..7).map(|_| stretch(count, &mut call) / count as f64).collect();
    found.sort_by(f64::total_cmp);
    found[3]
}
