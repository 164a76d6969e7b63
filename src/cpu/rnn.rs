//! A direction of a recurrent layer over packed steps, forward and backward, a few sequences at a time.
//!
//! Sequences do not depend on each other: a task takes a few of them through all steps, its states stay in cache, and the
//! packed weight is read by every task. The layout of packed steps is that of `ops/rnn/layer.rs`.

mod backward;

pub use self::backward::{Gradients, backward};

use super::gemm::tiles::{Vectors, tile_size};
use super::math::Float;
use super::number_class::{Fp, Fuse, Num, Ordered, Real};
use super::panel::Panels;
use super::parallel::{num_threads, try_par_for};
use super::scratch::Temp;
use super::simd::{self, Kernel};
use super::view::{View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::kinds::Recurrence;
use crate::rt::reserve::list;

/// Elements of a state computed together.
const LANES: usize = 128;

/// Sequences of a task: at most the rows of a tile, about as many for every thread.
fn together<T: Vectors>(batch: usize) -> usize {
    let tasks = batch.div_ceil(tile_size::<T>()[0]).next_multiple_of(num_threads());
    batch.div_ceil(tasks.max(1)).max(1)
}

/// A layer: all operands are row-major and of one float type. `saved` is what `backward` needs of the gates: their
/// values, for a GRU also the product of the hidden state with the third part of the weight.
pub struct Layer<'a> {
    /// Rows at every step.
    pub sizes: &'a [i64],
    pub mode: Recurrence,
    pub reverse: bool,
    pub hx: View<'a>,
    pub cx: Option<View<'a>>,
    pub weight: View<'a>,
    pub bias: Option<View<'a>>,
    pub output: View<'a>,
    pub saved: View<'a>,
    pub cells: View<'a>,
}

/// Columns of `saved` for a mode, in hidden sizes.
pub fn saved_blocks(mode: Recurrence) -> usize {
    match mode {
        Recurrence::Lstm | Recurrence::Gru => 4,
        Recurrence::Tanh | Recurrence::Relu => 0,
    }
}

impl Layer<'_> {
    fn hidden(&self) -> usize {
        self.hx.dim(1).0
    }
    fn wide(&self) -> usize {
        self.hidden() * self.mode.gates()
    }
    fn is_lstm(&self) -> bool {
        self.mode == Recurrence::Lstm
    }
    /// Whether the operands fit together and every one is row-major and of type `T`.
    fn fits(&self, rows: usize, more: &[(View, [usize; 2])]) -> bool {
        let (batch, hidden) = (self.hx.dim(0).0, self.hidden());
        let total: i64 = self.sizes.iter().sum();
        let lstm = if self.is_lstm() { rows } else { 0 };
        let falling = self.sizes.windows(2).all(|w| w[0] >= w[1]) && self.sizes.iter().all(|&n| n >= 0);
        let plain = |v: &View, shape: [usize; 2]| v.shape == shape && v.is_contiguous() && v.dtype == self.hx.dtype;
        falling
            && total == rows as i64
            && self.sizes.first().is_none_or(|&n| n as usize <= batch)
            && self.cx.is_some() == self.is_lstm()
            && plain(&self.hx, [batch, hidden])
            && self.cx.is_none_or(|v| plain(&v, [batch, hidden]))
            && plain(&self.weight, [self.wide(), hidden])
            && self.bias.is_none_or(|v| v.shape == [self.wide()] && v.is_contiguous() && v.dtype == self.hx.dtype)
            && plain(&self.output, [rows, hidden])
            && plain(&self.saved, [rows, hidden * saved_blocks(self.mode)])
            && plain(&self.cells, [lstm, hidden])
            && more.iter().all(|(v, shape)| plain(v, *shape))
    }
    /// The steps in the order of the sequences' time: first row and number of rows.
    fn steps(&self) -> Result<Vec<(usize, usize)>> {
        let mut start = 0;
        let mut all = list(self.sizes.iter().map(|&n| {
            start += n as usize;
            (start - n as usize, n as usize)
        }))?;
        if self.reverse {
            all.reverse();
        }
        Ok(all)
    }
}

/// Computes `output`, `saved` and `cells` from the input's gates `[N, G * H]`, and the last states `[B, H]`.
pub fn forward(o: &Layer, gates: View, last: View, last_cell: Option<View>) -> Result<()> {
    let (rows, batch, hidden) = (gates.dim(0).0, o.hx.dim(0).0, o.hidden());
    let states = [last, last_cell.unwrap_or(last)].map(|v| (v, [batch, hidden]));
    let apart = [o.output, o.saved, o.cells, last].iter().all(|v| v.is_apart(&gates) && v.is_apart(&o.hx));
    let right = o.fits(rows, &[(gates, [rows, o.wide()]), states[0], states[1]]) && apart;
    ensure(right && last_cell.is_some() == o.is_lstm(), "recurrent layer")?;
    // SAFETY: the operands fit together, and results lie apart from what is read.
    unsafe {
        match o.hx.dtype {
            DType::F32 => run_forward::<f32>(o, gates, last, last_cell),
            DType::F64 => run_forward::<f64>(o, gates, last, last_cell),
            _ => ensure(false, "recurrent layer"),
        }
    }
}

unsafe fn run_forward<T: Float + Vectors>(o: &Layer, gates: View, last: View, last_cell: Option<View>) -> Result<()> {
    let (batch, hidden, wide) = (o.hx.dim(0).0, o.hidden(), o.wide());
    let mut panels = Panels::<T>::room(hidden, wide)?;
    // SAFETY: the weight has `wide` rows of `hidden` elements.
    unsafe { panels.pack(o.weight.ptr as *const T, [1, hidden], hidden, wide) };
    let none = Temp::filled(wide, <T as Float>::ZERO)?;
    let at = |v: Option<View>| v.map_or(std::ptr::null_mut(), |v| v.ptr as *mut T);
    let job = Forward {
        steps: &o.steps()?,
        mode: o.mode,
        sizes: [batch, hidden, wide],
        panels: &panels,
        bias: o.bias.map_or(none.ptr(), |v| v.ptr as *mut T),
        gates: gates.ptr as *const T,
        starts: [o.hx.ptr as *const T, at(o.cx)],
        results: [o.output, o.saved, o.cells, last].map(|v| v.ptr as *mut T),
        last_cell: at(last_cell),
        first: 0,
        most: together::<T>(batch),
        scratch: std::ptr::null_mut(),
    };
    let (most, shared) = (job.most, SharedJob(job));
    try_par_for(batch.div_ceil(most), 1, |range| {
        let shared = &shared;
        let scratch: Temp<T> = Temp::new(most * (wide + 2 * hidden))?;
        for tile in range {
            simd::run_wide(Forward { first: tile * most, scratch: scratch.ptr(), ..shared.0 });
        }
        Ok(())
    })
}

/// A job whose copies work on different sequences.
struct SharedJob<J>(J);
// SAFETY: the tasks read the same operands and write the rows of different sequences.
unsafe impl<J> Sync for SharedJob<J> {}

/// `most` sequences from `first` on, through all steps. Pointers are to the operands that `forward` has checked.
struct Forward<'a, T> {
    steps: &'a [(usize, usize)],
    mode: Recurrence,
    /// Batch, hidden size and number of gate columns.
    sizes: [usize; 3],
    panels: &'a Panels<T>,
    bias: *const T,
    gates: *const T,
    starts: [*const T; 2],
    /// Output, saved, cells, last state.
    results: [*mut T; 4],
    last_cell: *mut T,
    first: usize,
    most: usize,
    /// So many rows each of products, states and cells.
    scratch: *mut T,
}

impl<T: Float + Vectors> Kernel for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let [batch, hidden, wide] = self.sizes;
        let count = self.most.min(batch - self.first);
        let lstm = self.mode == Recurrence::Lstm;
        let own = self.scratch;
        let (state, cell) = (own.wrapping_add(self.most * wide), own.wrapping_add(self.most * (wide + hidden)));
        let [output, saved, cells, last] = self.results;
        let (place, blocks) = (self.first * hidden, saved_blocks(self.mode));
        // SAFETY: the scratch holds a tile; rows of these sequences lie inside the operands, and no other task writes them.
        unsafe {
            state.copy_from_nonoverlapping(self.starts[0].add(place), count * hidden);
            if lstm {
                cell.copy_from_nonoverlapping(self.starts[1].add(place), count * hidden);
            }
            for &(start, n) in self.steps {
                let alive = count.min(n.saturating_sub(self.first));
                self.panels.multiply(self.panels.whole(), state, own, [hidden, 1, wide], alive, false);
                for r in 0..alive {
                    let row = start + self.first + r;
                    let (x, own, h) = (self.gates.add(row * wide), own.add(r * wide), state.add(r * hidden));
                    let kept = saved.wrapping_add(row * blocks * hidden);
                    for j in (0..hidden).step_by(LANES) {
                        let lane = Lane { from: j, n: hidden, width: LANES.min(hidden - j) };
                        match self.mode {
                            Recurrence::Lstm => {
                                let c = cell.add(r * hidden);
                                lstm_step::<T, F>(lane, [x, own, self.bias], [c, h], kept);
                                let to = cells.add(row * hidden + j);
                                to.copy_from_nonoverlapping(c.add(j), lane.width);
                            }
                            Recurrence::Gru => gru_step::<T, F>(lane, [x, own, self.bias], h, kept),
                            mode => plain_step::<T, F>(lane, [x, own, self.bias], h, mode == Recurrence::Relu),
                        }
                    }
                    output.add(row * hidden).copy_from_nonoverlapping(h, hidden);
                }
            }
            last.add(place).copy_from_nonoverlapping(state, count * hidden);
            if lstm {
                self.last_cell.add(place).copy_from_nonoverlapping(cell, count * hidden);
            }
        }
    }
}

type Values<T, F> = [Fp<T, F>; LANES];

/// Elements `from..from + width` of each block of `n`.
#[derive(Clone, Copy)]
struct Lane {
    from: usize,
    n: usize,
    width: usize,
}
impl Lane {
    /// The elements of block `block` at `p`.
    #[inline(always)]
    fn at<T: Float, F: Fuse>(self, p: *const T, block: usize) -> *const Fp<T, F> {
        p.wrapping_add(block * self.n + self.from) as *const Fp<T, F> // `Fp` is the float itself
    }
    /// # Safety
    /// Block `block` at `p` must be writable.
    #[inline(always)]
    unsafe fn put<T: Float, F: Fuse>(self, p: *mut T, block: usize, values: &Values<T, F>) {
        let to = self.at::<T, F>(p, block).cast_mut();
        // SAFETY: the caller's promise.
        unsafe {
            if self.width == LANES {
                to.copy_from_nonoverlapping(values.as_ptr(), LANES);
            } else {
                to.copy_from_nonoverlapping(values.as_ptr(), self.width);
            }
        }
    }
    /// `f` of each element of the operands.
    ///
    /// # Safety
    /// Each must be readable.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // see below
    unsafe fn map<T: Float, F: Fuse, const N: usize>(
        self,
        x: [*const Fp<T, F>; N],
        f: impl Fn([Fp<T, F>; N]) -> Fp<T, F>,
    ) -> Values<T, F> {
        let mut values = [Fp::zero(); LANES];
        // A loop of unknown length: one of a constant length would be unrolled, and not become vector code.
        for l in 0..self.width.min(LANES) {
            // SAFETY: the caller's promise.
            values[l] = f(x.map(|x| unsafe { *x.add(l) }));
        }
        values
    }
    /// `f` of the sum of a block of the input's gates, the state's products and their bias.
    ///
    /// # Safety
    /// As for `map`, of the block.
    #[inline(always)]
    unsafe fn gate<T: Float, F: Fuse>(
        self,
        gates: [*const T; 3],
        block: usize,
        f: impl Fn(Fp<T, F>) -> Fp<T, F>,
    ) -> Values<T, F> {
        // SAFETY: the caller's promise.
        unsafe { self.map(gates.map(|p| self.at(p, block)), |[x, own, bias]| f(x + (own + bias))) }
    }
}

/// # Safety
/// The blocks of gates, states and saved values are readable, and the last two writable.
#[inline(always)]
unsafe fn lstm_step<T: Float, F: Fuse>(lane: Lane, gates: [*const T; 3], [c, h]: [*mut T; 2], saved: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        let i = lane.gate::<T, F>(gates, 0, |x| x.sigmoid());
        let f = lane.gate::<T, F>(gates, 1, |x| x.sigmoid());
        let g = lane.gate::<T, F>(gates, 2, |x| x.tanh());
        let o = lane.gate::<T, F>(gates, 3, |x| x.sigmoid());
        let before = lane.at(c, 0);
        let cell = lane.map([f.as_ptr(), before, i.as_ptr(), g.as_ptr()], |[f, c, i, g]| f * c + i * g);
        lane.put(c, 0, &cell);
        lane.put(h, 0, &lane.map([o.as_ptr(), cell.as_ptr()], |[o, c]| o * c.tanh()));
        for (block, gate) in [&i, &f, &g, &o].into_iter().enumerate() {
            lane.put(saved, block, gate);
        }
    }
}

/// # Safety
/// As for `lstm_step`.
#[inline(always)]
unsafe fn gru_step<T: Float, F: Fuse>(lane: Lane, gates: [*const T; 3], h: *mut T, saved: *mut T) {
    let [x, own, bias] = gates;
    // SAFETY: the caller's promise.
    unsafe {
        let r = lane.gate::<T, F>(gates, 0, |x| x.sigmoid());
        let z = lane.gate::<T, F>(gates, 1, |x| x.sigmoid());
        let own = lane.map::<T, F, 2>([lane.at(own, 2), lane.at(bias, 2)], |[own, bias]| own + bias);
        let n = lane.map([lane.at(x, 2), r.as_ptr(), own.as_ptr()], |[x, r, own]| (x + r * own).tanh());
        lane.put(h, 0, &lane.map([n.as_ptr(), z.as_ptr(), lane.at(h, 0)], |[n, z, h]| n + z * (h - n)));
        for (block, value) in [&r, &z, &n, &own].into_iter().enumerate() {
            lane.put(saved, block, value);
        }
    }
}

/// # Safety
/// As for `lstm_step`.
#[inline(always)]
unsafe fn plain_step<T: Float, F: Fuse>(lane: Lane, gates: [*const T; 3], h: *mut T, relu: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let y = if relu {
            lane.gate::<T, F>(gates, 0, |x| x.maximum(Fp::zero()))
        } else {
            lane.gate::<T, F>(gates, 0, |x| x.tanh())
        };
        lane.put(h, 0, &y);
    }
}
