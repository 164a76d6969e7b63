//! Eight tiny real matrices at once, one in each lane of the vectors.
//!
//! The loops over one matrix of up to four rows are too short for vectors, and a branch for each pivot costs more than its numbers. Here
//! every number is a vector of eight, a branch is a choice in each lane, and sizes are constants, so that all of it stays
//! in registers. A lane does what `factor` and `triangular` do with one matrix, in the same order: the results are the same
//! to the bit.

#![allow(clippy::needless_range_loop)] // rows and columns have numbers in the formulas

use super::mat::Real;

/// Matrices at once.
pub const LANES: usize = 8;

/// One number of each matrix.
pub type Lane<T> = [T; LANES];
/// A matrix of `N` rows and `C` columns in each lane.
pub type Block<T, const N: usize, const C: usize> = [[Lane<T>; C]; N];

#[inline(always)]
fn each<T: Copy, R>(x: &Lane<T>, f: impl Fn(T) -> R) -> Lane<R> {
    std::array::from_fn(|l| f(x[l]))
}
#[inline(always)]
fn pairs<T: Copy, U: Copy, R>(x: &Lane<T>, y: &Lane<U>, f: impl Fn(T, U) -> R) -> Lane<R> {
    std::array::from_fn(|l| f(x[l], y[l]))
}
#[inline(always)]
fn choose<T: Copy>(condition: &Lane<bool>, x: &Lane<T>, y: &Lane<T>) -> Lane<T> {
    std::array::from_fn(|l| if condition[l] { x[l] } else { y[l] })
}
/// `x - f * y`
#[inline(always)]
fn minus_product<T: Real>(x: &Lane<T>, f: &Lane<T>, y: &Lane<T>) -> Lane<T> {
    std::array::from_fn(|l| x[l] - f[l] * y[l])
}

#[inline(always)]
pub fn identity<T: Real, const N: usize>() -> Block<T, N, N> {
    std::array::from_fn(|i| std::array::from_fn(|j| [if i == j { T::one() } else { T::default() }; LANES]))
}

/// Swaps rows `i` and `j` where the condition holds.
#[inline(always)]
fn swap_rows<T: Real, const N: usize, const C: usize>(
    a: &mut Block<T, N, C>,
    i: usize,
    j: usize,
    condition: &Lane<bool>,
) {
    for c in 0..C {
        (a[i][c], a[j][c]) = (choose(condition, &a[j][c], &a[i][c]), choose(condition, &a[i][c], &a[j][c]));
    }
}

/// What a factorization tells of each matrix.
pub struct Factored {
    /// Whether the number of swaps was odd.
    pub odd: Lane<bool>,
    /// The number of the first zero pivot, from one; zero if there is none.
    pub singular: Lane<i32>,
}

/// LU with partial pivoting, as `factor::lu`; the rows of `b` are swapped with those of `a`.
#[inline(always)]
pub fn lu<T: Real, const N: usize, const C: usize>(a: &mut Block<T, N, N>, b: &mut Block<T, N, C>) -> Factored {
    let mut found = Factored { odd: [false; LANES], singular: [0; LANES] };
    for j in 0..N {
        let (mut best, mut size) = ([j as u32; LANES], each(&a[j][j], |x| x.abs()));
        for i in j + 1..N {
            let other = each(&a[i][j], |x| x.abs());
            let larger = pairs(&other, &size, |o, s| o > s);
            size = choose(&larger, &other, &size);
            best = choose(&larger, &[i as u32; LANES], &best);
        }
        for i in j + 1..N {
            let chosen = each(&best, |p| p == i as u32);
            swap_rows(a, j, i, &chosen);
            swap_rows(b, j, i, &chosen);
            found.odd = pairs(&found.odd, &chosen, |odd, swapped| odd != swapped);
        }
        let pivot = a[j][j];
        let zero = each(&pivot, |p| p == T::default());
        found.singular = pairs(&found.singular, &zero, |s, zero| if s == 0 && zero { j as i32 + 1 } else { s });
        // Below a zero pivot nothing changes. What is written is no choice between something and what was read there: that would
        // be a masked store (`arith::greater`).
        let divisor = choose(&zero, &[T::one(); LANES], &pivot);
        for i in j + 1..N {
            let factor = pairs(&a[i][j], &divisor, |x, d| x / d);
            a[i][j] = factor;
            for c in j + 1..N {
                let product = pairs(&factor, &a[j][c], |f, y| f * y);
                let product = choose(&zero, &[T::default(); LANES], &product);
                a[i][c] = pairs(&a[i][c], &product, |x, p| x - p);
            }
        }
    }
    found
}

/// Overwrites `b`, whose rows were swapped, with the solution of `A X = B`, from the factors of A.
#[inline(always)]
pub fn solve_factored<T: Real, const N: usize, const C: usize>(a: &Block<T, N, N>, b: &mut Block<T, N, C>) {
    for i in 0..N {
        for r in 0..i {
            for c in 0..C {
                b[i][c] = minus_product(&b[i][c], &a[i][r], &b[r][c]);
            }
        }
    }
    for i in (0..N).rev() {
        for c in 0..C {
            for r in i + 1..N {
                b[i][c] = minus_product(&b[i][c], &a[i][r], &b[r][c]);
            }
            b[i][c] = pairs(&b[i][c], &a[i][i], |x, p| x / p);
        }
    }
}

/// The determinants; `a` is overwritten with its factors.
#[inline(always)]
pub fn determinants<T: Real, const N: usize>(a: &mut Block<T, N, N>) -> Lane<T> {
    let odd = lu(a, &mut [const { [] }; N]).odd;
    let signs = each(&odd, |odd| if odd { T::default() - T::one() } else { T::one() });
    (0..N).fold(signs, |product, i| pairs(&product, &a[i][i], |x, f| x * f))
}

/// The lower triangle becomes L, the rest zero, as by `factor::cholesky`: the order of the first minor that is not positive, or zero.
#[inline(always)]
pub fn cholesky<T: Real, const N: usize>(a: &mut Block<T, N, N>) -> Lane<i32> {
    let mut failed = [0; LANES];
    for j in 0..N {
        for row in a.iter_mut().take(j) {
            row[j] = [T::default(); LANES];
        }
        let mut square = a[j][j];
        for r in 0..j {
            square = minus_product(&square, &a[j][r], &a[j][r]);
        }
        let running = each(&failed, |f| f == 0);
        let positive = pairs(&square, &running, |s, running| running && s > T::default());
        let root = each(&square, |s| s.sqrt());
        a[j][j] = choose(&positive, &root, &choose(&running, &square, &a[j][j]));
        failed = std::array::from_fn(|l| if running[l] && !positive[l] { j as i32 + 1 } else { failed[l] });
        for i in j + 1..N {
            let mut dot = a[i][j];
            for r in 0..j {
                dot = minus_product(&dot, &a[i][r], &a[j][r]);
            }
            a[i][j] = choose(&positive, &pairs(&dot, &root, |d, root| d / root), &a[i][j]);
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::linalg::mat::Mat;
    use crate::cpu::linalg::{factor, triangular};
    use crate::cpu::number_class::Fuse;
    use crate::cpu::simd::{self, Kernel};
    use crate::cpu::testing::Rng;

    fn block<const N: usize, const C: usize>(lanes: &[Mat<f32>]) -> Block<f32, N, C> {
        std::array::from_fn(|i| std::array::from_fn(|j| std::array::from_fn(|l| lanes[l][(i, j)])))
    }
    /// Which NaN it is does not matter.
    fn exact(x: f32) -> u32 {
        if x.is_nan() { u32::MAX } else { x.to_bits() }
    }
    fn bits<const N: usize, const C: usize>(b: &Block<f32, N, C>, lane: usize) -> Vec<u32> {
        b.iter().flatten().map(|x| exact(x[lane])).collect()
    }
    fn of(m: &Mat<f32>) -> Vec<u32> {
        m.data.iter().map(|&x| exact(x)).collect()
    }

    struct All<'a, const N: usize>(&'a mut Block<f32, N, N>, &'a mut Block<f32, N, 1>, &'a mut Block<f32, N, N>);
    impl<const N: usize> Kernel for All<'_, N> {
        type Output = (Lane<i32>, Lane<f32>, Lane<i32>);
        #[inline(always)]
        fn run<F: Fuse>(self) -> Self::Output {
            let mut again = *self.0;
            let singular = lu(self.0, self.1).singular;
            solve_factored(self.0, self.1);
            (singular, determinants(&mut again), cholesky(self.2))
        }
    }

    fn check<const N: usize>() {
        let (mut random, n) = (Rng(7), N);
        for _ in 0..20 {
            let mut make = |rows, cols| {
                let mut m: Mat<f32> = Mat::zeros(rows, cols);
                m.data.iter_mut().for_each(|x| *x = random.value() as f32);
                m
            };
            let mut a: Vec<Mat<f32>> = (0..LANES).map(|_| make(n, n)).collect();
            let b: Vec<Mat<f32>> = (0..LANES).map(|_| make(n, 1)).collect();
            a[1].data.fill(0.0);
            a[2].data[n * n - 1] = f32::NAN;
            a[3].data[..n].fill(0.0);
            a[4].data[0] = f32::INFINITY;
            let squares: Vec<Mat<f32>> = (0..LANES)
                .map(|l| if l % 2 == 0 { a[l].product(&a[l].adjoint()).unwrap() } else { a[l].clone() })
                .collect();
            let (mut in_a, mut in_b, mut in_c) = (block::<N, N>(&a), block::<N, 1>(&b), block::<N, N>(&squares));
            let (singular, det, failed) = simd::run(All(&mut in_a, &mut in_b, &mut in_c));
            for l in 0..LANES {
                let (mut x, mut y, mut z) = (a[l].clone(), b[l].clone(), squares[l].clone());
                let (pivots, first) = factor::lu(&mut x).unwrap();
                triangular::solve_factored(&x, &pivots, &mut y).unwrap();
                let odd = pivots.iter().enumerate().filter(|(i, p)| i != *p).count() % 2 == 1;
                let want = (0..n).fold(if odd { -1.0 } else { 1.0 }, |d, i| d * x[(i, i)]);
                assert_eq!((singular[l], exact(det[l])), (first as i32, exact(want)), "{n} {l}");
                assert_eq!((bits(&in_a, l), bits(&in_b, l)), (of(&x), of(&y)), "{n} {l}");
                assert_eq!(failed[l], factor::cholesky(&mut z).unwrap() as i32, "{n} {l}");
                assert_eq!(bits(&in_c, l), of(&z), "{n} {l}");
            }
        }
    }

    #[test]
    fn a_lane_does_what_is_done_with_one_matrix() {
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
    }
}
