//! A direction of a recurrent layer over packed steps, forward and backward, a few sequences at a time.
//!
//! Sequences do not depend on each other: a task takes `TILE` of them through all steps, its states stay in cache, and the
//! packed weight is read by every task. The layout of packed steps is that of `ops/rnn/layer.rs`.

use super::gemm::matmul;
use super::math::Float;
use super::num::{Fp, Fuse, Num, Ordered, Real};
use super::panel::Panels;
use super::parallel::try_par_for;
use super::simd::{self, Kernel};
use super::temp::Temp;
use super::view::{Ptr, View, ensure};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kinds::Recurrence;
use crate::reserve::list;

/// Sequences of a task.
const TILE: usize = 8;
/// Elements of a state computed together.
const LANES: usize = 16;

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

unsafe fn run_forward<T: Float + Element>(o: &Layer, gates: View, last: View, last_cell: Option<View>) -> Result<()> {
    let (batch, hidden, wide) = (o.hx.dim(0).0, o.hidden(), o.wide());
    let mut panels = Panels::<T>::room(hidden, wide)?;
    // SAFETY: the weight has `wide` rows of `hidden` elements.
    unsafe { panels.pack(o.weight.ptr as *const T, [1, hidden], hidden, wide) };
    let none = Temp::filled(wide, T::ZERO)?;
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
        scratch: std::ptr::null_mut(),
    };
    let shared = Shared(job);
    try_par_for(batch.div_ceil(TILE), 1, |range| {
        let shared = &shared;
        let scratch: Temp<T> = Temp::new(TILE * (wide + 2 * hidden))?;
        for tile in range {
            simd::run(Forward { first: tile * TILE, scratch: scratch.ptr(), ..shared.0 });
        }
        Ok(())
    })
}

/// A job whose copies work on different sequences.
struct Shared<J>(J);
// SAFETY: the tasks read the same operands and write the rows of different sequences.
unsafe impl<J> Sync for Shared<J> {}

/// The sequences from `first` on, through all steps. Pointers are to the operands that `forward` has checked.
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
    /// `TILE` rows each of products, states and cells.
    scratch: *mut T,
}

impl<T: Float> Kernel for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let [batch, hidden, wide] = self.sizes;
        let count = TILE.min(batch - self.first);
        let lstm = self.mode == Recurrence::Lstm;
        let own = self.scratch;
        let (state, cell) = (own.wrapping_add(TILE * wide), own.wrapping_add(TILE * (wide + hidden)));
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
                self.panels.multiply::<F>(self.panels.whole(), state, own, [hidden, 1, wide], alive, false);
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
                                lane.put(cells.add(row * hidden), 0, lane.get::<T, F>(c, 0));
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
    /// # Safety
    /// Block `block` at `p` must be readable.
    #[inline(always)]
    unsafe fn get<T: Float, F: Fuse>(self, p: *const T, block: usize) -> Values<T, F> {
        let mut values = [Fp::zero(); LANES];
        let (to, from) = (values.as_mut_ptr() as *mut T, p.wrapping_add(block * self.n + self.from));
        // SAFETY: the caller's promise; `Fp` is the float itself.
        unsafe {
            if self.width == LANES {
                to.copy_from_nonoverlapping(from, LANES);
            } else {
                to.copy_from_nonoverlapping(from, self.width);
            }
        }
        values
    }
    /// # Safety
    /// Block `block` at `p` must be writable.
    #[inline(always)]
    unsafe fn put<T: Float, F: Fuse>(self, p: *mut T, block: usize, values: Values<T, F>) {
        let (from, to) = (values.as_ptr() as *const T, p.wrapping_add(block * self.n + self.from));
        // SAFETY: as in `get`.
        unsafe {
            if self.width == LANES {
                to.copy_from_nonoverlapping(from, LANES);
            } else {
                to.copy_from_nonoverlapping(from, self.width);
            }
        }
    }
    /// The sum of a block of the input's gates, the state's products and their bias.
    ///
    /// # Safety
    /// As for `get`.
    #[inline(always)]
    unsafe fn gate<T: Float, F: Fuse>(self, [x, own, bias]: [*const T; 3], block: usize) -> Values<T, F> {
        // SAFETY: the caller's promise.
        let (x, own, bias) = unsafe { (self.get(x, block), self.get(own, block), self.get(bias, block)) };
        map([x, own, bias], |[x, own, bias]| x + (own + bias))
    }
}

#[inline(always)]
fn map<T: Float, F: Fuse, const N: usize>(
    x: [Values<T, F>; N],
    f: impl Fn([Fp<T, F>; N]) -> Fp<T, F>,
) -> Values<T, F> {
    std::array::from_fn(|l| f(std::array::from_fn(|i| x[i][l])))
}

/// # Safety
/// As for `Lane::get`, of all blocks; states and saved values are writable.
#[inline(always)]
unsafe fn lstm_step<T: Float, F: Fuse>(lane: Lane, gates: [*const T; 3], [c, h]: [*mut T; 2], saved: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        let i = map([lane.gate::<T, F>(gates, 0)], |[x]| x.sigmoid());
        let f = map([lane.gate::<T, F>(gates, 1)], |[x]| x.sigmoid());
        let g = map([lane.gate::<T, F>(gates, 2)], |[x]| x.tanh());
        let o = map([lane.gate::<T, F>(gates, 3)], |[x]| x.sigmoid());
        let cell = map([f, lane.get(c, 0), i, g], |[f, c, i, g]| f * c + i * g);
        lane.put(c, 0, cell);
        lane.put(h, 0, map([o, cell], |[o, c]| o * c.tanh()));
        for (block, gate) in [i, f, g, o].into_iter().enumerate() {
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
        let r = map([lane.gate::<T, F>(gates, 0)], |[x]| x.sigmoid());
        let z = map([lane.gate::<T, F>(gates, 1)], |[x]| x.sigmoid());
        let own = map([lane.get::<T, F>(own, 2), lane.get(bias, 2)], |[own, bias]| own + bias);
        let n = map([lane.get(x, 2), r, own], |[x, r, own]| (x + r * own).tanh());
        lane.put(h, 0, map([n, z, lane.get(h, 0)], |[n, z, h]| n + z * (h - n)));
        for (block, value) in [r, z, n, own].into_iter().enumerate() {
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
        let x = [lane.gate::<T, F>(gates, 0)];
        lane.put(h, 0, if relu { map(x, |[x]| x.maximum(Fp::zero())) } else { map(x, |[x]| x.tanh()) });
    }
}

/// What comes in: gradients of output `[N, H]`, last states and last cells `[B, H]`; and what goes out: of the input's
/// gates `[N, G * H]`, first states and cells `[B, H]`, weight, and bias `[G * H]` where there is one.
pub struct Gradients<'a> {
    pub output: Option<View<'a>>,
    pub last: Option<View<'a>>,
    pub last_cell: Option<View<'a>>,
    pub gates: View<'a>,
    pub hx: View<'a>,
    pub cx: Option<View<'a>>,
    pub weight: View<'a>,
    pub bias: Option<View<'a>>,
}

/// Computes the gradients.
pub fn backward(o: &Layer, g: &Gradients) -> Result<()> {
    let (rows, batch, hidden) = (g.gates.dim(0).0, o.hx.dim(0).0, o.hidden());
    let mut more = vec![(g.gates, [rows, o.wide()]), (g.hx, [batch, hidden]), (g.weight, [o.wide(), hidden])];
    more.extend(g.output.map(|v| (v, [rows, hidden])));
    more.extend([g.last, g.last_cell, g.cx].into_iter().flatten().map(|v| (v, [batch, hidden])));
    let bias = g.bias.is_none_or(|v| v.shape == [o.wide()] && v.is_contiguous() && v.dtype == o.hx.dtype);
    let results = [Some(g.gates), Some(g.hx), g.cx, Some(g.weight), g.bias];
    let read = [Some(o.hx), o.cx, Some(o.weight), Some(o.output), Some(o.saved), Some(o.cells), g.output, g.last];
    let apart = results.iter().flatten().all(|r| read.iter().flatten().all(|v| r.is_apart(v)));
    ensure(o.fits(rows, &more) && bias && apart && g.cx.is_some() == o.is_lstm(), "recurrent layer, backward")?;
    // SAFETY: the operands fit together, and results lie apart from what is read.
    unsafe {
        match o.hx.dtype {
            DType::F32 => run_backward::<f32>(o, g),
            DType::F64 => run_backward::<f64>(o, g),
            _ => ensure(false, "recurrent layer, backward"),
        }
    }
}

unsafe fn run_backward<T: Float + Element>(o: &Layer, g: &Gradients) -> Result<()> {
    let (rows, batch, hidden, wide) = (g.gates.dim(0).0, o.hx.dim(0).0, o.hidden(), o.wide());
    let mut panels = Panels::<T>::room(wide, hidden)?;
    // SAFETY: the weight has `wide` rows of `hidden` elements.
    unsafe { panels.pack(o.weight.ptr as *const T, [hidden, 1], wide, hidden) };
    // The gradients of the state's products differ from those of the input's in the third part of a GRU alone.
    let gru = o.mode == Recurrence::Gru;
    let products: Temp<T> = Temp::new(if gru { rows * wide } else { 0 })?;
    let befores: Temp<T> = Temp::new(rows * hidden)?;
    let at = |v: Option<View>| v.map_or(std::ptr::null_mut(), |v| v.ptr as *mut T);
    let own = if gru { products.ptr() } else { g.gates.ptr as *mut T };
    let steps = o.steps()?;
    let job = Backward {
        steps: &steps,
        mode: o.mode,
        sizes: [batch, hidden, wide],
        panels: &panels,
        starts: [o.hx.ptr as *const T, at(o.cx)],
        kept: [o.output, o.saved, o.cells].map(|v| v.ptr as *const T),
        incoming: [at(g.output), at(g.last), at(g.last_cell)],
        results: [g.gates.ptr as *mut T, own, befores.ptr(), g.hx.ptr as *mut T],
        cx: at(g.cx),
        first: 0,
        scratch: std::ptr::null_mut(),
    };
    let shared = Shared(job);
    try_par_for(batch.div_ceil(TILE), 1, |range| {
        let shared = &shared;
        let scratch: Temp<T> = Temp::new(TILE * 2 * hidden)?;
        for tile in range {
            simd::run(Backward { first: tile * TILE, scratch: scratch.ptr(), ..shared.0 });
        }
        Ok(())
    })?;
    let (left, right) = (([wide, rows], [1, wide]), ([rows, hidden], [hidden, 1]));
    // SAFETY: the products and the states before are full matrices now, apart from the results.
    unsafe {
        let own = View::new(own as *mut u8, T::DTYPE, &left.0, &left.1);
        let before = View::new(befores.ptr() as *mut u8, T::DTYPE, &right.0, &right.1);
        // Without a term there is nothing that a product would write.
        (g.weight.ptr as *mut T).write_bytes(0, wide * hidden);
        if rows > 0 {
            matmul(own, before, g.weight, 1.0, 0.0)?;
        }
    }
    if let Some(bias) = g.bias {
        let sums = Ptr(bias.ptr as *mut T);
        for j in 0..wide {
            // SAFETY: `j` is a column of the products and of the bias.
            unsafe { *sums.at(j) = (0..rows).fold(T::ZERO, |s, i| s + *own.add(i * wide + j)) };
        }
    }
    Ok(())
}

/// The sequences from `first` on, back through all steps.
struct Backward<'a, T> {
    steps: &'a [(usize, usize)],
    mode: Recurrence,
    /// Batch, hidden size and number of gate columns.
    sizes: [usize; 3],
    panels: &'a Panels<T>,
    starts: [*const T; 2],
    /// Output, saved, cells.
    kept: [*const T; 3],
    /// Gradients of output, last state and last cell; null for none.
    incoming: [*const T; 3],
    /// Gradients of the input's gates and of the state's products, the states before, the gradient of the first state.
    results: [*mut T; 4],
    cx: *mut T,
    first: usize,
    /// `TILE` rows each of gradients of states and cells.
    scratch: *mut T,
}

impl<T: Float> Kernel for Backward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let [batch, hidden, wide] = self.sizes;
        let count = TILE.min(batch - self.first);
        let (dh, dc) = (self.scratch, self.scratch.wrapping_add(TILE * hidden));
        let place = self.first * hidden;
        // SAFETY: the scratch holds a tile; rows of these sequences lie inside the operands, and no other task writes them.
        unsafe {
            for (to, from) in [(dh, self.incoming[1]), (dc, self.incoming[2])] {
                if from.is_null() {
                    to.write_bytes(0, count * hidden); // zero bits are 0.0
                } else {
                    to.copy_from_nonoverlapping(from.add(place), count * hidden);
                }
            }
            for (t, &(start, n)) in self.steps.iter().enumerate().rev() {
                let alive = count.min(n.saturating_sub(self.first));
                for r in 0..alive {
                    self.row::<F>(t, start + self.first + r, r, [dh, dc]);
                }
                if alive > 0 {
                    let products = self.results[1].add((start + self.first) * wide);
                    // What a GRU passes on directly is there already.
                    let add = self.mode == Recurrence::Gru;
                    self.panels.multiply::<F>(self.panels.whole(), products, dh, [wide, 1, hidden], alive, add);
                }
            }
            self.results[3].add(place).copy_from_nonoverlapping(dh, count * hidden);
            if self.mode == Recurrence::Lstm {
                self.cx.add(place).copy_from_nonoverlapping(dc, count * hidden);
            }
        }
    }
}

impl<T: Float> Backward<'_, T> {
    /// State (0) or cell (1) of sequence `r` before step `t`.
    ///
    /// # Safety
    /// The sequence is alive at the step.
    #[inline(always)]
    unsafe fn before(&self, t: usize, r: usize, which: usize) -> *const T {
        let hidden = self.sizes[1];
        let sequence = self.first + r;
        match t.checked_sub(1).map(|t| self.steps[t]) {
            Some((start, n)) if n > sequence => {
                // SAFETY: the row is one of the step before.
                unsafe { self.kept[2 * which].add((start + sequence) * hidden) }
            }
            // SAFETY: the sequence is one of the batch.
            _ => unsafe { self.starts[which].add(sequence * hidden) },
        }
    }

    /// One step of one sequence: `row` of the packed steps.
    ///
    /// # Safety
    /// The sequence is alive at the step; the states' gradients hold a tile.
    #[inline(always)]
    unsafe fn row<F: Fuse>(&self, t: usize, row: usize, r: usize, [dh, dc]: [*mut T; 2]) {
        let [_, hidden, wide] = self.sizes;
        // SAFETY: the caller's promise.
        unsafe {
            let (dh, dc, h) = (dh.add(r * hidden), dc.add(r * hidden), self.before(t, r, 0));
            self.results[2].add(row * hidden).copy_from_nonoverlapping(h, hidden);
            let [gates, own] = [self.results[0], self.results[1]].map(|p| p.wrapping_add(row * wide));
            let saved = self.kept[1].wrapping_add(row * saved_blocks(self.mode) * hidden);
            for j in (0..hidden).step_by(LANES) {
                let lane = Lane { from: j, n: hidden, width: LANES.min(hidden - j) };
                let mut grad = lane.get::<T, F>(dh, 0);
                if !self.incoming[0].is_null() {
                    grad = map([grad, lane.get(self.incoming[0].add(row * hidden), 0)], |[a, b]| a + b);
                }
                match self.mode {
                    Recurrence::Lstm => {
                        let cells = [self.kept[2].add(row * hidden), self.before(t, r, 1)];
                        lstm_back::<T, F>(lane, grad, saved, cells, dc, gates);
                    }
                    Recurrence::Gru => gru_back::<T, F>(lane, grad, saved, h, dh, [gates, own]),
                    mode => {
                        let y = lane.get::<T, F>(self.kept[0].add(row * hidden), 0);
                        let zero = Fp::zero();
                        lane.put(gates, 0, match mode {
                            Recurrence::Relu => map([grad, y], |[g, y]| if y > zero { g } else { zero }),
                            _ => map([grad, y], |[g, y]| g * (Fp::one() - y * y)),
                        });
                    }
                }
            }
        }
    }
}

/// # Safety
/// As for `Lane::get`, of all blocks; gradients are writable. `cells` are the cell of the step and the one before.
#[inline(always)]
unsafe fn lstm_back<T: Float, F: Fuse>(
    lane: Lane,
    grad: Values<T, F>,
    saved: *const T,
    cells: [*const T; 2],
    dc: *mut T,
    gates: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let [i, f, g, o] = [0, 1, 2, 3].map(|block| lane.get::<T, F>(saved, block));
        let [c, before] = cells.map(|p| lane.get::<T, F>(p, 0));
        let t = map([c], |[c]| c.tanh());
        let d = map([lane.get(dc, 0), grad, o, t], |[dc, dh, o, t]| dc + dh * o * (Fp::one() - t * t));
        lane.put(gates, 0, map([d, g, i], |[d, g, i]| d * g * i * (Fp::one() - i)));
        lane.put(gates, 1, map([d, before, f], |[d, c, f]| d * c * f * (Fp::one() - f)));
        lane.put(gates, 2, map([d, i, g], |[d, i, g]| d * i * (Fp::one() - g * g)));
        lane.put(gates, 3, map([grad, t, o], |[dh, t, o]| dh * t * o * (Fp::one() - o)));
        lane.put(dc, 0, map([d, f], |[d, f]| d * f));
    }
}

/// # Safety
/// As for `lstm_back`; `h` is the state before the step. `dh` becomes the part of its gradient that skips the products.
#[inline(always)]
unsafe fn gru_back<T: Float, F: Fuse>(
    lane: Lane,
    grad: Values<T, F>,
    saved: *const T,
    h: *const T,
    dh: *mut T,
    [gates, products]: [*mut T; 2],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let [r, z, n, own] = [0, 1, 2, 3].map(|block| lane.get::<T, F>(saved, block));
        let h = lane.get::<T, F>(h, 0);
        let dn = map([grad, z, n], |[g, z, n]| g * (Fp::one() - z) * (Fp::one() - n * n));
        let dz = map([grad, h, n, z], |[g, h, n, z]| g * (h - n) * z * (Fp::one() - z));
        let dr = map([dn, own, r], |[dn, own, r]| dn * own * r * (Fp::one() - r));
        for (to, third) in [(gates, dn), (products, map([dn, r], |[dn, r]| dn * r))] {
            lane.put(to, 0, dr);
            lane.put(to, 1, dz);
            lane.put(to, 2, third);
        }
        lane.put(dh, 0, map([grad, z], |[g, z]| g * z));
    }
}
