//! Sums over slices in independent lanes: one chain of additions would wait for each, and is no vector code.

use super::arith::Arith;

/// The sums of the numbers that `f` makes of the elements at each place of `x`, slices of one length.
#[inline(always)]
pub fn sums<T: Arith, const I: usize, const N: usize>(x: [&[T]; I], f: impl Fn([T; I]) -> [T; N]) -> [T; N] {
    const WIDE: usize = 32;
    const NARROW: usize = 8;
    let n = x.iter().map(|x| x.len()).min().unwrap_or(0);
    let (wide, narrow) = (n / WIDE * WIDE, n / NARROW * NARROW);
    let at = |from: usize| x.map(|x| x[from..n].as_ptr());
    let mut total = [T::ZERO; N];
    for i in narrow..n {
        let values = f(x.map(|x| x[i]));
        (0..N).for_each(|j| total[j] = total[j].plus(values[j]));
    }
    // SAFETY: each slice has as many elements from there on.
    unsafe {
        if narrow > wide {
            let more = of_lanes::<T, I, N, NARROW>(at(wide), narrow - wide, &f);
            (0..N).for_each(|j| total[j] = more[j].plus(total[j]));
        }
        if wide > 0 {
            let more = of_lanes::<T, I, N, WIDE>(at(0), wide, &f);
            (0..N).for_each(|j| total[j] = more[j].plus(total[j]));
        }
    }
    total
}

/// The sums over `n` places, a multiple of the lanes.
///
/// # Safety
/// So many elements can be read.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // one index for several arrays
unsafe fn of_lanes<T: Arith, const I: usize, const N: usize, const L: usize>(
    x: [*const T; I],
    n: usize,
    f: &impl Fn([T; I]) -> [T; N],
) -> [T; N] {
    let mut all = [[T::ZERO; L]; N];
    for at in (0..n).step_by(L) {
        for l in 0..L {
            // SAFETY: the caller's promise.
            let values = f(x.map(|x| unsafe { *x.add(at + l) }));
            for j in 0..N {
                all[j][l] = all[j][l].plus(values[j]);
            }
        }
    }
    all.map(|lanes| merged(lanes, T::plus))
}

/// All lanes, a power of two, merged pairwise.
#[inline(always)]
pub fn merged<T: Copy, const L: usize>(lanes: [T; L], f: impl Fn(T, T) -> T) -> T {
    // Without `black_box` LLVM would merge the loop that made the lanes with this one and compile scalar lanes.
    let mut lanes = std::hint::black_box(lanes);
    let mut width = L;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_summed_once() {
        for n in [0, 1, 7, 8, 9, 31, 32, 33, 41, 200] {
            let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let y: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
            let [sum, dot] = sums([&x, &y], |[x, y]| [x, x * y]);
            assert_eq!(sum, x.iter().sum::<f64>(), "{n}");
            assert_eq!(dot, x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>(), "{n}");
        }
    }
}
