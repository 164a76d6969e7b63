//! The gradients of a layer: back through all steps, then the weight's as one product.

use super::{LANES, Lane, Layer, SharedJob, Values, saved_blocks, together};
use crate::cpu::gemm::matmul;
use crate::cpu::gemm::tiles::Vectors;
use crate::cpu::math::Float;
use crate::cpu::number_class::{Fp, Fuse, Num, Real};
use crate::cpu::panel::Panels;
use crate::cpu::parallel::try_par_for;
use crate::cpu::reduce::{Reduce, reduce};
use crate::cpu::scratch::Temp;
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::{View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::kinds::Recurrence;

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

unsafe fn run_backward<T: Float + Vectors>(o: &Layer, g: &Gradients) -> Result<()> {
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
        most: together::<T>(batch),
        scratch: std::ptr::null_mut(),
    };
    let (most, shared) = (job.most, SharedJob(job));
    try_par_for(batch.div_ceil(most), 1, |range| {
        let shared = &shared;
        let scratch: Temp<T> = Temp::new(most * 2 * hidden)?;
        for tile in range {
            simd::run_wide(Backward { first: tile * most, scratch: scratch.ptr(), ..shared.0 });
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
        // SAFETY: the products are a full matrix now; the bias has an element for each of their columns.
        unsafe {
            let own = View::new(own as *mut u8, T::DTYPE, &left.0, &left.1);
            reduce(Reduce::Sum, own, &[1], bias.seen_as(&[wide, 1], &[1, 1]))?;
        }
    }
    Ok(())
}

/// `most` sequences from `first` on, back through all steps.
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
    most: usize,
    /// So many rows each of gradients of states and cells.
    scratch: *mut T,
}

impl<T: Float + Vectors> Kernel for Backward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let [batch, hidden, wide] = self.sizes;
        let count = self.most.min(batch - self.first);
        let (dh, dc) = (self.scratch, self.scratch.wrapping_add(self.most * hidden));
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
                    self.panels.multiply(self.panels.whole(), products, dh, [wide, 1, hidden], alive, add);
                }
            }
            self.results[3].add(place).copy_from_nonoverlapping(dh, count * hidden);
            if self.mode == Recurrence::Lstm {
                self.cx.add(place).copy_from_nonoverlapping(dc, count * hidden);
            }
        }
    }
}

impl<T: Float + Vectors> Backward<'_, T> {
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
                let grad = if self.incoming[0].is_null() {
                    lane.map::<T, F, 1>([lane.at(dh, 0)], |[a]| a)
                } else {
                    let above = self.incoming[0].add(row * hidden);
                    lane.map::<T, F, 2>([lane.at(dh, 0), lane.at(above, 0)], |[a, b]| a + b)
                };
                match self.mode {
                    Recurrence::Lstm => {
                        let cells = [self.kept[2].add(row * hidden), self.before(t, r, 1)];
                        lstm_back::<T, F>(lane, &grad, saved, cells, dc, gates);
                    }
                    Recurrence::Gru => gru_back::<T, F>(lane, &grad, saved, h, dh, [gates, own]),
                    mode => {
                        let y = [grad.as_ptr(), lane.at(self.kept[0].add(row * hidden), 0)];
                        let back = match mode {
                            Recurrence::Relu => lane.map(y, |[g, y]| if y > Fp::zero() { g } else { Fp::zero() }),
                            _ => lane.map(y, |[g, y]| g * (Fp::one() - y * y)),
                        };
                        lane.put(gates, 0, &back);
                    }
                }
            }
        }
    }
}

/// # Safety
/// As for `lstm_step`; gradients are writable. `cells` are the cell of the step and the one before.
#[inline(always)]
unsafe fn lstm_back<T: Float, F: Fuse>(
    lane: Lane,
    grad: &Values<T, F>,
    saved: *const T,
    cells: [*const T; 2],
    dc: *mut T,
    gates: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let [i, f, g, o] = [0, 1, 2, 3].map(|block| lane.at::<T, F>(saved, block));
        let [c, before] = cells.map(|p| lane.at::<T, F>(p, 0));
        let (grad, one) = (grad.as_ptr(), Fp::one());
        let t = lane.map([c], |[c]| c.tanh());
        let d = lane.map([lane.at(dc, 0), grad, o, t.as_ptr()], |[dc, dh, o, t]| dc + dh * o * (one - t * t));
        let (d, t) = (d.as_ptr(), t.as_ptr());
        lane.put(gates, 0, &lane.map([d, g, i], |[d, g, i]| d * g * i * (one - i)));
        lane.put(gates, 1, &lane.map([d, before, f], |[d, c, f]| d * c * f * (one - f)));
        lane.put(gates, 2, &lane.map([d, i, g], |[d, i, g]| d * i * (one - g * g)));
        lane.put(gates, 3, &lane.map([grad, t, o], |[dh, t, o]| dh * t * o * (one - o)));
        lane.put(dc, 0, &lane.map([d, f], |[d, f]| d * f));
    }
}

/// # Safety
/// As for `lstm_back`; `h` is the state before the step. `dh` becomes the part of its gradient that skips the products.
#[inline(always)]
unsafe fn gru_back<T: Float, F: Fuse>(
    lane: Lane,
    grad: &Values<T, F>,
    saved: *const T,
    h: *const T,
    dh: *mut T,
    [gates, products]: [*mut T; 2],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let [r, z, n, own] = [0, 1, 2, 3].map(|block| lane.at::<T, F>(saved, block));
        let (grad, h, one) = (grad.as_ptr(), lane.at::<T, F>(h, 0), Fp::one());
        let dn = lane.map([grad, z, n], |[g, z, n]| g * (one - z) * (one - n * n));
        let dz = lane.map([grad, h, n, z], |[g, h, n, z]| g * (h - n) * z * (one - z));
        let dr = lane.map([dn.as_ptr(), own, r], |[dn, own, r]| dn * own * r * (one - r));
        let third = lane.map([dn.as_ptr(), r], |[dn, r]| dn * r);
        for (to, third) in [(gates, &dn), (products, &third)] {
            lane.put(to, 0, &dr);
            lane.put(to, 1, &dz);
            lane.put(to, 2, third);
        }
        lane.put(dh, 0, &lane.map([grad, z], |[g, z]| g * z));
    }
}
