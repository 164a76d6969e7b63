//! Eight small real matrices at once, one in each lane of the vectors.
//!
//! The loops over one small matrix are too short for vectors, and cost more than its numbers. Here every number is a vector of eight, and a
//! branch is a choice in each lane. A lane does what `factor` and `triangular` do with one matrix, in the same order: the
//! results are the same to the bit.

use super::mat::Real;
use std::ops::{Index, IndexMut};

/// Matrices at once.
pub const LANES: usize = 8;
/// The largest number of rows or columns.
pub const MOST: usize = 8;

/// One number of each matrix.
pub type Lane<T> = [T; LANES];

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

/// A matrix in each lane.
pub struct Block<T> {
    pub rows: usize,
    pub cols: usize,
    data: [Lane<T>; MOST * MOST],
}

impl<T> Index<(usize, usize)> for Block<T> {
    type Output = Lane<T>;
    #[inline(always)]
    fn index(&self, (i, j): (usize, usize)) -> &Lane<T> {
        &self.data[i * MOST + j]
    }
}
impl<T> IndexMut<(usize, usize)> for Block<T> {
    #[inline(always)]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut Lane<T> {
        &mut self.data[i * MOST + j]
    }
}

impl<T: Real> Block<T> {
    #[inline(always)]
    pub fn zeros(rows: usize, cols: usize) -> Block<T> {
        Block { rows, cols, data: [[T::default(); LANES]; MOST * MOST] }
    }
    #[inline(always)]
    pub fn identity(n: usize) -> Block<T> {
        let mut x = Block::zeros(n, n);
        (0..n).for_each(|i| x[(i, i)] = [T::one(); LANES]);
        x
    }
    /// Swaps rows `i` and `j` where the condition holds.
    #[inline(always)]
    fn swap_rows(&mut self, i: usize, j: usize, condition: &Lane<bool>) {
        for c in 0..self.cols {
            let (x, y) = (self[(i, c)], self[(j, c)]);
            self[(i, c)] = choose(condition, &y, &x);
            self[(j, c)] = choose(condition, &x, &y);
        }
    }
    /// Row `i` minus `factor` times row `j`.
    #[inline(always)]
    fn minus_row(&mut self, i: usize, factor: &Lane<T>, j: usize) {
        for c in 0..self.cols {
            let product = pairs(factor, &self[(j, c)], |f, y| f * y);
            self[(i, c)] = pairs(&self[(i, c)], &product, |x, p| x - p);
        }
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
pub fn lu<T: Real>(a: &mut Block<T>, b: &mut Block<T>) -> Factored {
    let n = a.rows;
    let mut found = Factored { odd: [false; LANES], singular: [0; LANES] };
    for j in 0..n {
        let (mut best, mut size) = ([j as u32; LANES], each(&a[(j, j)], |x| x.abs()));
        for i in j + 1..n {
            let other = each(&a[(i, j)], |x| x.abs());
            let larger = pairs(&other, &size, |o, s| o > s);
            size = choose(&larger, &other, &size);
            best = choose(&larger, &[i as u32; LANES], &best);
        }
        for i in j + 1..n {
            let chosen = each(&best, |p| p == i as u32);
            a.swap_rows(j, i, &chosen);
            b.swap_rows(j, i, &chosen);
            found.odd = pairs(&found.odd, &chosen, |odd, swapped| odd != swapped);
        }
        let pivot = a[(j, j)];
        let zero = each(&pivot, |p| p == T::default());
        found.singular = pairs(&found.singular, &zero, |s, zero| if s == 0 && zero { j as i32 + 1 } else { s });
        for i in j + 1..n {
            let factor = choose(&zero, &a[(i, j)], &pairs(&a[(i, j)], &pivot, |x, p| x / p));
            a[(i, j)] = factor;
            for c in j + 1..n {
                let less = pairs(&a[(i, c)], &pairs(&factor, &a[(j, c)], |f, y| f * y), |x, p| x - p);
                a[(i, c)] = choose(&zero, &a[(i, c)], &less);
            }
        }
    }
    found
}

/// Overwrites `b`, whose rows were swapped, with the solution of `A X = B`, from the factors of A.
#[inline(always)]
pub fn solve_factored<T: Real>(a: &Block<T>, b: &mut Block<T>) {
    let n = a.rows;
    for i in 0..n {
        (0..i).for_each(|r| b.minus_row(i, &a[(i, r)], r));
    }
    for i in (0..n).rev() {
        (i + 1..n).for_each(|r| b.minus_row(i, &a[(i, r)], r));
        for c in 0..b.cols {
            b[(i, c)] = pairs(&b[(i, c)], &a[(i, i)], |x, p| x / p);
        }
    }
}

/// The determinants; `a` is overwritten with its factors.
#[inline(always)]
pub fn determinants<T: Real>(a: &mut Block<T>) -> Lane<T> {
    let odd = lu(a, &mut Block::zeros(0, 0)).odd;
    let signs = each(&odd, |odd| if odd { T::default() - T::one() } else { T::one() });
    (0..a.rows).fold(signs, |product, i| pairs(&product, &a[(i, i)], |x, f| x * f))
}

/// The lower triangle becomes L, the rest zero, as by `factor::cholesky`: the order of the first minor that is not positive, or zero.
#[inline(always)]
pub fn cholesky<T: Real>(a: &mut Block<T>) -> Lane<i32> {
    let n = a.rows;
    let mut failed = [0; LANES];
    for j in 0..n {
        (0..j).for_each(|i| a[(i, j)] = [T::default(); LANES]);
        let square = (0..j).fold(a[(j, j)], |sum, r| pairs(&sum, &a[(j, r)], |s, x| s - x * x));
        let running = each(&failed, |f| f == 0);
        let positive = pairs(&square, &running, |s, running| running && s > T::default());
        let root = each(&square, |s| s.sqrt());
        a[(j, j)] = choose(&positive, &root, &choose(&running, &square, &a[(j, j)]));
        failed = std::array::from_fn(|l| if running[l] && !positive[l] { j as i32 + 1 } else { failed[l] });
        for i in j + 1..n {
            let dot = (0..j).fold(a[(i, j)], |sum, r| {
                pairs(&sum, &pairs(&a[(i, r)], &a[(j, r)], |x, y| x * y), |s, p| s - p)
            });
            a[(i, j)] = choose(&positive, &pairs(&dot, &root, |d, root| d / root), &a[(i, j)]);
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

    fn block(lanes: &[Mat<f32>]) -> Block<f32> {
        let mut b = Block::zeros(lanes[0].rows, lanes[0].cols);
        for i in 0..b.rows {
            (0..b.cols).for_each(|j| b[(i, j)] = std::array::from_fn(|l| lanes[l][(i, j)]));
        }
        b
    }
    /// Which NaN it is does not matter.
    fn exact(x: f32) -> u32 {
        if x.is_nan() { u32::MAX } else { x.to_bits() }
    }
    fn bits(b: &Block<f32>, lane: usize) -> Vec<u32> {
        let at = |i| (0..b.cols).map(move |j| exact(b[(i, j)][lane]));
        (0..b.rows).flat_map(at).collect()
    }
    fn of(m: &Mat<f32>) -> Vec<u32> {
        m.data.iter().map(|&x| exact(x)).collect()
    }

    struct All<'a>(&'a mut Block<f32>, &'a mut Block<f32>, &'a mut Block<f32>);
    impl Kernel for All<'_> {
        type Output = (Lane<i32>, Lane<f32>, Lane<i32>);
        #[inline(always)]
        fn run<F: Fuse>(self) -> Self::Output {
            let mut again = Block::zeros(self.0.rows, self.0.cols);
            (0..again.rows).for_each(|i| (0..again.cols).for_each(|j| again[(i, j)] = self.0[(i, j)]));
            let singular = lu(self.0, self.1).singular;
            solve_factored(self.0, self.1);
            (singular, determinants(&mut again), cholesky(self.2))
        }
    }

    #[test]
    fn a_lane_does_what_is_done_with_one_matrix() {
        let mut random = Rng(7);
        for n in 1..=MOST {
            let mut make = |rows, cols| {
                let mut m: Mat<f32> = Mat::zeros(rows, cols);
                m.data.iter_mut().for_each(|x| *x = random.value() as f32);
                m
            };
            let mut a: Vec<Mat<f32>> = (0..LANES).map(|_| make(n, n)).collect();
            let b: Vec<Mat<f32>> = (0..LANES).map(|_| make(n, 3)).collect();
            a[1].data.fill(0.0);
            a[2].data[n * n - 1] = f32::NAN;
            a[3].data[..n].fill(0.0);
            a[4].data[0] = f32::INFINITY;
            let squares: Vec<Mat<f32>> = (0..LANES)
                .map(|l| if l % 2 == 0 { a[l].product(&a[l].adjoint()).unwrap() } else { a[l].clone() })
                .collect();
            let (mut in_a, mut in_b, mut in_c) = (block(&a), block(&b), block(&squares));
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
}
