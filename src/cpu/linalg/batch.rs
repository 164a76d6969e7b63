//! Iteration over batches of matrices: every operand has the same leading dimensions and a core of two, one or no
//! dimensions.

use super::lanes::{Block, LANES, Lane, MOST};
use super::mat::{Field, Mat, Real};
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::{num_threads, try_par_for};
use crate::cpu::simd::{self, Kernel};
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
    /// Whether `lanes` does the same for `LANES` real matrices of up to `MOST` rows and columns at once.
    const IN_LANES: bool = false;
    /// Mark it `#[inline(always)]`.
    fn lanes<T: Real>(&self, _: &Group<T>) {}
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
    /// Operand `k` of each.
    #[inline(always)]
    pub fn matrices(&self, k: usize) -> Block<T> {
        let shape = &self.views[k].shape[self.lead..];
        let mut block = Block::zeros(shape[0], shape[1]);
        for lane in 0..LANES {
            self.at(lane).each_element(k, |i, j, from| block[(i, j)][lane] = from.read());
        }
        block
    }
    #[inline(always)]
    pub fn store(&self, k: usize, block: &Block<T>) {
        for lane in 0..LANES {
            self.at(lane).each_element(k, |i, j, to| to.write(block[(i, j)][lane]));
        }
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
        for (i, n) in runs([m.rows, m.cols], strides) {
            // SAFETY: the rows lie within the operand, and follow one another in the matrix.
            unsafe {
                let from = ptr.wrapping_add(i * strides[0] * dtype.size());
                load(dtype, from, strides[1], n, m.data.as_mut_ptr().add(i * m.cols));
            }
        }
        m
    }
    /// Calls `f` with the row, the column and the address of each element of operand `k`, which has the dtype of `T`.
    #[inline(always)]
    fn each_element(&self, k: usize, mut f: impl FnMut(usize, usize, Place<T>)) {
        let (ptr, shape, strides) = self.core(k);
        assert_eq!(self.views[k].dtype, T::DTYPE);
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                f(i, j, Place(ptr.cast::<T>().wrapping_add(i * strides[0] + j * strides[1])));
            }
        }
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

/// An element of an operand.
struct Place<T>(*mut T);
impl<T: Copy> Place<T> {
    #[inline(always)]
    fn read(&self) -> T {
        // SAFETY: it lies within the operand.
        unsafe { *self.0 }
    }
    #[inline(always)]
    fn write(&self, x: T) {
        // SAFETY: it lies within the output, which only this matrix of the batch writes.
        unsafe { *self.0 = x }
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

/// `walk` with as many matrices at once as there are lanes; the last ones are done one by one.
fn walk_lanes<T: Real, W: Batch>(views: &[View], lead: usize, work: &W) -> Result<()> {
    let count: usize = views[0].shape[..lead].iter().product();
    let small = order(views, lead) <= MOST && views.iter().all(|v| v.shape[lead..].iter().all(|&n| n > 0));
    let whole = views.iter().all(|v| v.ndim() != lead + 2 || v.dtype == T::DTYPE);
    if !(W::IN_LANES && small && whole) || count < LANES {
        return walk::<T, W>(views, lead, work);
    }
    let grain = (TASK / order(views, lead).pow(3)).max(1).div_ceil(LANES);
    try_par_for(count.div_ceil(LANES), grain, |range| {
        for group in range {
            let first = group * LANES;
            if first + LANES <= count {
                simd::run(InLanes { work, group: Group::<T> { views, lead, first, mark: PhantomData } });
                continue;
            }
            (first..count).try_for_each(|index| work.one::<T>(&At { views, lead, index, mark: PhantomData }))?;
        }
        Ok(())
    })
}

struct InLanes<'a, W, T> {
    work: &'a W,
    group: Group<'a, T>,
}
impl<W: Batch, T: Real> Kernel for InLanes<'_, W, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        self.work.lanes(&self.group);
    }
}

/// Calls `work` for each matrix of the batch, in the element type of the first operand, but no less than single precision.
/// All operands have the same `lead` first sizes. Matrices are copied in and out, so operands may overlap.
pub fn over<W: Batch>(views: &[View], lead: usize, work: &W) -> Result<()> {
    let first = views.first().and_then(|v| v.shape.get(..lead));
    let same = first.is_some() && views.iter().all(|v| v.shape.get(..lead) == first);
    ensure(same, "batch of matrices")?;
    match views[0].dtype {
        DType::F32 | DType::F16 | DType::BF16 => walk_lanes::<f32, W>(views, lead, work),
        DType::F64 => walk_lanes::<f64, W>(views, lead, work),
        DType::C64 => walk::<c64, W>(views, lead, work),
        DType::C128 => walk::<c128, W>(views, lead, work),
        d => Err(Error::not_implemented(format!("not implemented for '{}'", d.scalar_type_name()))),
    }
}
