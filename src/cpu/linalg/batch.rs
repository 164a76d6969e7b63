//! Iteration over batches of matrices: every operand has the same leading dimensions and a core of two, one or no
//! dimensions.

use super::lanes::{Block, LANES, Lane};
use super::mat::{Field, Mat, Real};
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::{num_threads, try_par_for};
use crate::cpu::simd::{self, Kernel};
use crate::cpu::strided::gather;
use crate::cpu::view::{View, ensure, load, store};
use crate::dtype::{DType, Element, c64, c128};
use crate::error::{Error, Result};
use crate::rt::reserve::probe;
use std::marker::PhantomData;

/// The work on one matrix of a batch, for each element type.
pub trait Batch: Sync {
    /// The maximum memory used for one matrix, in double-precision operands, all of them together. `over` probes for it
    /// beforehand: the work itself, and `faer`, allocates infallibly.
    const SCRATCH: usize = 4;
    /// Reads its inputs through `at` and stores every output.
    fn one<T: Field>(&self, at: &At<T>) -> Result<()>;
    /// Whether `lanes` does the same for `LANES` real matrices of `N` rows, two to four, with as many columns or one. Mark it
    /// `#[inline(always)]`.
    const IN_LANES: bool = false;
    fn lanes<T: Real, const N: usize>(&self, _: &Group<T>) {}
}

/// The operands of one matrix of the batch.
pub struct At<'a, T> {
    views: &'a [View<'a>],
    /// Leading dimensions of the operands, and the index of this matrix.
    lead: usize,
    index: usize,
    mark: PhantomData<T>,
}

/// The operands of `LANES` matrices of the batch, one after another.
pub struct Group<'a, T> {
    views: &'a [View<'a>],
    lead: usize,
    first: usize,
    mark: PhantomData<T>,
}

impl<T: Real> Group<'_, T> {
    fn at(&self, lane: usize) -> At<'_, T> {
        At { views: self.views, lead: self.lead, index: self.first + lane, mark: PhantomData }
    }
    /// Operand `k` of each, of `N` rows and `C` columns.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // one index for memory and lanes
    pub fn matrices<const N: usize, const C: usize>(&self, k: usize) -> Block<T, N, C> {
        let mut block = [[[T::default(); LANES]; C]; N];
        for lane in 0..LANES {
            let at = self.at(lane).elements::<N, C>(k);
            for i in 0..N {
                for j in 0..C {
                    // SAFETY: it lies within the operand.
                    block[i][j][lane] = unsafe { *at.0.wrapping_add(i * at.1[0] + j * at.1[1]) };
                }
            }
        }
        block
    }
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // one index for memory and lanes
    pub fn store<const N: usize, const C: usize>(&self, k: usize, block: &Block<T, N, C>) {
        for lane in 0..LANES {
            let at = self.at(lane).elements::<N, C>(k);
            for i in 0..N {
                for j in 0..C {
                    // SAFETY: it lies within the output, which only this matrix of the batch writes.
                    unsafe { *at.0.wrapping_add(i * at.1[0] + j * at.1[1]) = block[i][j][lane] };
                }
            }
        }
    }
    /// Number of columns of operand `k`.
    pub fn cols(&self, k: usize) -> usize {
        self.views[k].shape[self.lead + 1]
    }
    #[inline(always)]
    pub fn store_numbers<E: Element>(&self, k: usize, numbers: &Lane<E>) {
        (0..LANES).for_each(|lane| self.at(lane).store_number(k, numbers[lane]));
    }
}

/// The rows where runs of elements begin, and their lengths: all of it is one where an operand is dense.
fn runs([rows, cols]: [usize; 2], strides: &[usize]) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (rows, n) = match strides == [cols, 1] {
        _ if rows == 0 || cols == 0 => (0, 0),
        true => (1, rows * cols),
        false => (rows, cols),
    };
    (0..rows).map(move |i| (i, n))
}

impl<T: Field> At<'_, T> {
    /// The address of the core of an operand, its sizes and strides.
    fn core(&self, k: usize) -> (*mut u8, &[usize], &[usize]) {
        let v = &self.views[k];
        let (mut rest, mut offset) = (self.index, 0);
        for d in (1..self.lead).rev() {
            offset += rest % v.shape[d] * v.strides[d];
            rest /= v.shape[d];
        }
        if self.lead > 0 {
            offset += rest * v.strides[0];
        }
        (v.at(offset), &v.shape[self.lead..], &v.strides[self.lead..])
    }
    /// Operand `k` as a matrix.
    pub fn matrix(&self, k: usize) -> Mat<T> {
        let (ptr, shape, strides) = self.core(k);
        let mut m: Mat<T> = Mat::zeros(shape[0], shape[1]);
        let dtype = self.views[k].dtype;
        if dtype == T::DTYPE && !m.data.is_empty() {
            let dims = [(m.rows, strides[0]), (m.cols, strides[1])];
            // SAFETY: the block lies within the operand, and the matrix has its size.
            unsafe { gather(size_of::<T>(), ptr, &dims, m.data.as_mut_ptr().cast()) };
            return m;
        }
        for (i, n) in runs([m.rows, m.cols], strides) {
            // SAFETY: the rows lie within the operand, and follow one another in the matrix.
            unsafe {
                let from = ptr.wrapping_add(i * strides[0] * dtype.size());
                load(dtype, from, strides[1], n, m.data.as_mut_ptr().add(i * m.cols));
            }
        }
        m
    }
    /// The address and the strides of operand `k`, which has the dtype of `T` and this size.
    #[inline(always)]
    fn elements<const N: usize, const C: usize>(&self, k: usize) -> (*mut T, [usize; 2]) {
        let (ptr, shape, strides) = self.core(k);
        assert!(self.views[k].dtype == T::DTYPE && *shape == [N, C]);
        (ptr.cast(), [strides[0], strides[1]])
    }
    /// Number of columns of operand `k`.
    pub fn cols(&self, k: usize) -> usize {
        self.core(k).1[1]
    }
    /// Operand `k` as a vector.
    pub fn vector<E: Element>(&self, k: usize) -> Vec<E> {
        let (ptr, shape, strides) = self.core(k);
        let mut v = vec![E::default(); shape[0]];
        if v.is_empty() {
            return v;
        }
        // SAFETY: as in `matrix`.
        unsafe { load(self.views[k].dtype, ptr, strides[0], v.len(), v.as_mut_ptr()) };
        v
    }
    pub fn store<E: Field>(&self, k: usize, m: &Mat<E>) {
        let (ptr, shape, strides) = self.core(k);
        assert_eq!(shape, [m.rows, m.cols]);
        let dtype = self.views[k].dtype;
        if dtype == E::DTYPE && *strides == [1, m.rows] && !m.data.is_empty() {
            let dims = [(m.cols, 1), (m.rows, m.cols)];
            // SAFETY: as below; its columns lie one after another.
            return unsafe { gather(size_of::<E>(), m.data.as_ptr().cast(), &dims, ptr) };
        }
        for (i, n) in runs([m.rows, m.cols], strides) {
            // SAFETY: the rows lie within the output, which only this matrix of the batch writes.
            unsafe {
                let to = ptr.wrapping_add(i * strides[0] * dtype.size());
                store(dtype, to, strides[1], n, m.data.as_ptr().add(i * m.cols));
            }
        }
    }
    pub fn store_vector<E: Element>(&self, k: usize, v: &[E]) {
        let (ptr, shape, strides) = self.core(k);
        assert_eq!(shape, [v.len()]);
        if v.is_empty() {
            return;
        }
        // SAFETY: as in `store`.
        unsafe { store(self.views[k].dtype, ptr, strides[0], v.len(), v.as_ptr()) };
    }
    pub fn store_number<E: Element>(&self, k: usize, x: E) {
        let (ptr, shape, _) = self.core(k);
        assert!(shape.is_empty());
        // SAFETY: as in `store`; the core is one element.
        unsafe { store(self.views[k].dtype, ptr, 1, 1, &x) };
    }
}

/// Numbers that are allocated without probing.
const FEW: usize = 1 << 12;
/// Minimum multiplications per task.
const TASK: usize = 1 << 16;

fn walk<T: Field, W: Batch>(views: &[View], lead: usize, work: &W) -> Result<()> {
    let count: usize = views[0].shape[..lead].iter().product();
    let numbers: usize = views.iter().map(|v| v.shape[lead..].iter().product::<usize>()).sum();
    if numbers == 0 {
        return Ok(()); // nothing to read or write, for any number of matrices
    }
    if count > 0 && numbers > FEW {
        let one = numbers.saturating_mul(size_of::<T::Double>() * W::SCRATCH);
        probe(one.saturating_mul(count.min(num_threads())))?;
    }
    try_par_for(count, (TASK / order(views, lead).saturating_pow(3)).max(1), |mut range| {
        range.try_for_each(|index| work.one::<T>(&At { views, lead, index, mark: PhantomData }))
    })
}

/// The largest number of rows or columns.
fn order(views: &[View], lead: usize) -> usize {
    views.iter().flat_map(|v| &v.shape[lead..]).copied().max().unwrap_or(1).max(1)
}

/// `walk` with as many matrices at once as there are lanes, if they are tiny; the last ones are done one by one.
fn walk_lanes<T: Real, W: Batch>(views: &[View], lead: usize, work: &W) -> Result<()> {
    let count: usize = views[0].shape[..lead].iter().product();
    let n = order(views, lead);
    let fits = |v: &View| match v.shape[lead..] {
        [rows, cols] => v.dtype == T::DTYPE && rows == n && (cols == n || cols == 1),
        [] => true,
        _ => false,
    };
    if !W::IN_LANES || count < LANES || !(2..=4).contains(&n) || !views.iter().all(fits) {
        return walk::<T, W>(views, lead, work);
    }
    try_par_for(count.div_ceil(LANES), TASK / (n.pow(3) * LANES), |range| {
        for index in range {
            let first = index * LANES;
            let group = Group::<T> { views, lead, first, mark: PhantomData };
            match n {
                _ if first + LANES > count => {
                    (first..count).try_for_each(|i| work.one::<T>(&group.at(i - first)))?;
                }
                2 => simd::run(InLanes::<_, _, 2> { work, group }),
                3 => simd::run(InLanes::<_, _, 3> { work, group }),
                _ => simd::run(InLanes::<_, _, 4> { work, group }),
            }
        }
        Ok(())
    })
}

struct InLanes<'a, W, T, const N: usize> {
    work: &'a W,
    group: Group<'a, T>,
}
impl<W: Batch, T: Real, const N: usize> Kernel for InLanes<'_, W, T, N> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        self.work.lanes::<T, N>(&self.group);
    }
}

/// Calls `work` for each matrix of the batch, in the element type of the first operand, but no less than single precision.
/// All operands have the same `lead` first sizes. Matrices are copied in and out, so operands may overlap.
pub fn over<W: Batch>(views: &[View], lead: usize, work: &W) -> Result<()> {
    let first = views.first().and_then(|v| v.shape.get(..lead));
    let same = first.is_some() && views.iter().all(|v| v.shape.get(..lead) == first);
    ensure(same, "batch of matrices")?;
    match views[0].dtype {
        DType::F64 => walk_lanes::<f64, W>(views, lead, work),
        d if d.is_float() => walk_lanes::<f32, W>(views, lead, work),
        DType::C64 => walk::<c64, W>(views, lead, work),
        DType::C128 => walk::<c128, W>(views, lead, work),
        d => Err(Error::not_implemented(format!("not implemented for '{}'", d.scalar_type_name()))),
    }
}
