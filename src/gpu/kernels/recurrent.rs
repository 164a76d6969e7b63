//! A direction of a recurrent layer over packed steps, forward and backward: for each step a product and one pass over the
//! states. The layout of packed steps is that of `ops/nn/rnn/layer.rs`.
//!
//! The last states are the states all along: a step replaces those of the sequences that are alive in it. So are the
//! gradients of the first states on the way back.

use super::element::compute_of;
use super::kernel::Kernel;
use super::map::copy;
use super::matmul::matmul;
use super::reduce::reduce;
use super::view::{Input, View};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::kinds::{Recurrence, Reduce};
use crate::rt::reserve::list;

const STEP: &str = include_str!("../../../shaders/recurrent.wgsl");
const BACK: &str = include_str!("../../../shaders/recurrent_grad.wgsl");

/// A layer: all operands are row-major and of one float type. `saved` `[N, 4 * H]` is what `recurrent_backward` needs of
/// the gates: their values, for a GRU also the product of the hidden state with the third part of the weight.
pub struct Recurrent<'a> {
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

/// What comes in: gradients of output `[N, H]`, last states and last cells `[B, H]`; and what goes out: of the input's
/// gates `[N, G * H]`, first states and cells `[B, H]`, weight, and bias `[G * H]` where there is one.
pub struct RecurrentGradients<'a> {
    pub output: Option<View<'a>>,
    pub last: Option<View<'a>>,
    pub last_cell: Option<View<'a>>,
    pub gates: View<'a>,
    pub hx: View<'a>,
    pub cx: Option<View<'a>>,
    pub weight: View<'a>,
    pub bias: Option<View<'a>>,
}

const KEEP: &str = "fn keep(row: u32, part: u32, j: u32, v: T) {
    write_saved({{saved}} + (row * 4u + part) * {{hidden}} + j, v);
}";
const LSTM: &str = "let i = sigmoid_(gate(row, 0u, j));
    let f = sigmoid_(gate(row, 1u, j));
    let n = tanh_(gate(row, 2u, j));
    let o = sigmoid_(gate(row, 3u, j));
    let c = f * read_c({{c}} + e) + i * n;
    keep(row, 0u, j, i);
    keep(row, 1u, j, f);
    keep(row, 2u, j, n);
    keep(row, 3u, j, o);
    write_c({{c}} + e, c);
    write_cells({{cells}} + e, c);
    let state = o * tanh_(c);";
const GRU: &str = "let r = sigmoid_(gate(row, 0u, j));
    let z = sigmoid_(gate(row, 1u, j));
    let product = own(row, 2u, j);
    let n = tanh_(read_x({{x}} + row * {{wide}} + 2u * {{hidden}} + j) + r * product);
    keep(row, 0u, j, r);
    keep(row, 1u, j, z);
    keep(row, 2u, j, n);
    keep(row, 3u, j, product);
    let state = n + z * (read_h({{h}} + e) - n);";

const SAVED: &str = "fn kept(row: u32, part: u32, j: u32) -> T {
    return read_saved({{saved}} + (row * 4u + part) * {{hidden}} + j);
}
// State or cell before the step: of the step before, or the first one of a sequence that begins here.
fn before(row: u32, e: u32) -> T {
    if (row < {{alive}}) {
        return read_all({{all}} + {{previous}} * {{hidden}} + e);
    }
    return read_start({{start}} + e);
}";
const LSTM_BACK: &str = "let i = kept(row, 0u, j);
    let f = kept(row, 1u, j);
    let n = kept(row, 2u, j);
    let o = kept(row, 3u, j);
    let t = tanh_(read_all({{all}} + {{current}} * {{hidden}} + e));
    let d = read_dc({{dc}} + e) + grad * o * (T(1) - t * t);
    write_dx({{dx}} + gates, d * n * i * (T(1) - i));
    write_dx({{dx}} + gates + {{hidden}}, d * before(row, e) * f * (T(1) - f));
    write_dx({{dx}} + gates + 2u * {{hidden}}, d * i * (T(1) - n * n));
    write_dx({{dx}} + gates + 3u * {{hidden}}, grad * t * o * (T(1) - o));
    write_dc({{dc}} + e, d * f);";
const GRU_BACK: &str = "let r = kept(row, 0u, j);
    let z = kept(row, 1u, j);
    let n = kept(row, 2u, j);
    let dn = grad * (T(1) - z) * (T(1) - n * n);
    let dz = grad * (before(row, e) - n) * z * (T(1) - z);
    let dr = dn * kept(row, 3u, j) * r * (T(1) - r);
    write_dx({{dx}} + gates, dr);
    write_dx({{dx}} + gates + {{hidden}}, dz);
    write_dx({{dx}} + gates + 2u * {{hidden}}, dn);
    write_own({{own}} + gates, dr);
    write_own({{own}} + gates + {{hidden}}, dz);
    write_own({{own}} + gates + 2u * {{hidden}}, dn * r);
    write_dh({{dh}} + e, grad * z);";
const TANH_BACK: &str = "let y = read_y({{y}} + e);
    write_dx({{dx}} + gates, grad * (T(1) - y * y));";
const RELU_BACK: &str = "write_dx({{dx}} + gates, select(T(0), grad, less(T(0), read_y({{y}} + e))));";

/// Rows of a step in the order of the sequences' time: the first, and how many.
#[derive(Clone, Copy)]
struct Step {
    first: usize,
    rows: usize,
}

impl<'a> Recurrent<'a> {
    fn hidden(&self) -> usize {
        self.hx.dim(1).0
    }
    fn wide(&self) -> usize {
        self.hidden() * self.mode.gates()
    }
    fn steps(&self) -> Result<Vec<Step>> {
        let mut next = 0;
        let mut all = list(self.sizes.iter().map(|&n| {
            next += n as usize;
            Step { first: next - n as usize, rows: n as usize }
        }))?;
        if self.reverse {
            all.reverse();
        }
        Ok(all)
    }
    /// Refuses operands that do not fit together or are not row-major.
    fn check(&self, rows: usize, matrices: &[(&View, usize, usize)]) -> Result<()> {
        let (batch, hidden, wide) = (self.hx.dim(0).0, self.hidden(), self.wide());
        let dense = |v: &View, m: usize, n: usize| v.shape == [m, n] && v.strides == [n, 1] && v.dtype == self.hx.dtype;
        let right = self.sizes.iter().sum::<i64>() == rows as i64
            && self.sizes.windows(2).all(|w| w[0] >= w[1])
            && self.sizes.iter().all(|&n| n >= 0 && n as usize <= batch)
            && self.cx.is_some() == (self.mode == Recurrence::Lstm)
            && dense(&self.hx, batch, hidden)
            && self.cx.is_none_or(|v| dense(&v, batch, hidden))
            && dense(&self.weight, wide, hidden)
            && dense(&self.output, rows, hidden)
            && matrices.iter().all(|(v, m, n)| dense(v, *m, *n));
        if right { Ok(()) } else { Err(Error::internal("recurrent layer: operands do not fit")) }
    }
}

/// Rows of a row-major matrix.
fn rows<'a>(v: &View<'a>, first: usize, shape: &'a [usize; 2]) -> View<'a> {
    View { shape, offset: v.offset + first * v.strides[0], ..*v }
}

/// Computes `output`, `saved` and `cells` from the input's gates `[N, G * H]`, and the last states `[B, H]`.
pub fn recurrent(o: &Recurrent, gates: &View, last: &View, last_cell: Option<&View>) -> Result<()> {
    last.require_own()?;
    let (hidden, wide, batch) = (o.hidden(), o.wide(), o.hx.dim(0).0);
    o.check(gates.dim(0).0, &[(gates, gates.dim(0).0, wide), (last, batch, hidden)])?;
    copy(&Input::View(o.hx), last)?;
    if let (Some(from), Some(to)) = (o.cx, last_cell) {
        copy(&Input::View(from), to)?;
    }
    let (shape, strides) = ([hidden, wide], [1, hidden]);
    let weight = View { shape: &shape, strides: &strides, ..o.weight };
    let buffer = last.scratch(batch * wide * last.dtype.size())?;
    for step in o.steps()? {
        let (narrow, broad, kept) = ([step.rows, hidden], [step.rows, wide], [step.rows, 4 * hidden]);
        let own = View { buffer: &buffer, shape: &broad, strides: &[wide, 1], offset: 0, ..*last };
        let h = rows(last, 0, &narrow);
        matmul(&h, &weight, &own, 1.0, 0.0)?;
        let mut kernel = Kernel::new("recurrent", STEP, compute_of(last.dtype)?)
            .read("x", rows(gates, step.first, &broad))
            .read("own", own)
            .write("h", h)
            .write("out", rows(&o.output, step.first, &narrow))
            .number("hidden", hidden)?
            .number("wide", wide)?
            .number("units", step.rows * hidden)?;
        if let Some(b) = o.bias {
            kernel = kernel.read("bias", b).text("plus_bias", " + read_bias({{bias}} + part * {{hidden}} + j)");
        }
        kernel = match o.mode {
            Recurrence::Tanh => kernel.text("cell", "let state = tanh_(gate(row, 0u, j));"),
            Recurrence::Relu => kernel.text("cell", "let state = relu_(gate(row, 0u, j));"),
            mode => {
                let kernel = kernel.write("saved", rows(&o.saved, step.first, &kept)).text("keep", KEEP);
                match last_cell.filter(|_| mode == Recurrence::Lstm) {
                    Some(c) => kernel
                        .write("c", rows(c, 0, &narrow))
                        .write("cells", rows(&o.cells, step.first, &narrow))
                        .text("cell", LSTM),
                    None => kernel.text("cell", GRU),
                }
            }
        };
        kernel.launch(step.rows * hidden)?;
    }
    Ok(())
}

/// Computes the gradients.
pub fn recurrent_backward(o: &Recurrent, g: &RecurrentGradients) -> Result<()> {
    g.hx.require_own()?;
    let (hidden, wide, batch, total) = (o.hidden(), o.wide(), o.hx.dim(0).0, g.gates.dim(0).0);
    o.check(total, &[(&g.gates, total, wide), (&g.hx, batch, hidden), (&g.weight, wide, hidden)])?;
    let zero = Input::Scalar(Scalar::Int(0));
    copy(&g.last.map_or(zero, Input::View), &g.hx)?;
    if let Some(cx) = g.cx {
        copy(&g.last_cell.map_or(zero, Input::View), &cx)?;
    }
    if total * hidden == 0 {
        g.bias.iter().try_for_each(|b| copy(&zero, b))?;
        return copy(&zero, &g.weight);
    }
    // The gradients of the state's products differ from those of the input's in the third part of a GRU alone.
    let gru = o.mode == Recurrence::Gru;
    let buffer = if gru { Some(g.gates.scratch(total * wide * g.gates.dtype.size())?) } else { None };
    let products = buffer.as_ref().map_or(g.gates, |buffer| View { buffer, offset: 0, ..g.gates });
    let steps = o.steps()?;
    for (t, &step) in steps.iter().enumerate().rev() {
        let previous = t.checked_sub(1).map(|t| steps[t]);
        step_back(o, g, &products, step, previous)?;
        let (narrow, broad) = ([step.rows, hidden], [step.rows, wide]);
        // What a GRU passes on directly is there already.
        let beta = if gru { 1.0 } else { 0.0 };
        matmul(&rows(&products, step.first, &broad), &o.weight, &rows(&g.hx, 0, &narrow), 1.0, beta)?;
    }
    if let Some(bias) = g.bias {
        reduce(Reduce::Sum, &products, &[0], &View { shape: &[1, wide], strides: &[wide, 1], ..bias })?;
    }
    weight_gradient(o, &steps, &products, &g.weight)
}

/// The gradients of the gates of a step, and what of them passes to the state before without the product.
fn step_back(o: &Recurrent, g: &RecurrentGradients, products: &View, step: Step, previous: Option<Step>) -> Result<()> {
    let (hidden, wide) = (o.hidden(), o.wide());
    let (narrow, broad, kept) = ([step.rows, hidden], [step.rows, wide], [step.rows, 4 * hidden]);
    let dh = rows(&g.hx, 0, &narrow);
    let mut kernel = Kernel::new("recurrent_grad", BACK, compute_of(dh.dtype)?)
        .write("dx", rows(&g.gates, step.first, &broad))
        .number("hidden", hidden)?
        .number("wide", wide)?
        .number("units", step.rows * hidden)?;
    if let Some(above) = g.output {
        kernel =
            kernel.read("above", rows(&above, step.first, &narrow)).text("plus_above", " + read_above({{above}} + e)");
    }
    let (lstm, gru) = (o.mode == Recurrence::Lstm, o.mode == Recurrence::Gru);
    if lstm || gru {
        let (all, start) = if lstm { (o.cells, o.cx.unwrap_or(o.hx)) } else { (o.output, o.hx) };
        kernel = kernel
            .read("saved", rows(&o.saved, step.first, &kept))
            .read("all", all)
            .read("start", start)
            .number("alive", previous.map_or(0, |p| p.rows))?
            .number("previous", previous.map_or(0, |p| p.first))?
            .text("functions", SAVED);
    }
    kernel = match (o.mode, g.cx) {
        (Recurrence::Lstm, Some(dc)) => kernel
            .read("dh", dh)
            .write("dc", rows(&dc, 0, &narrow))
            .number("current", step.first)?
            .text("cell", LSTM_BACK),
        (Recurrence::Lstm, None) => return Err(Error::internal("recurrent layer: no cells")),
        (Recurrence::Gru, _) => {
            kernel.write("dh", dh).write("own", rows(products, step.first, &broad)).text("cell", GRU_BACK)
        }
        (mode, _) => kernel
            .read("dh", dh)
            .read("y", rows(&o.output, step.first, &narrow))
            .text("cell", if mode == Recurrence::Relu { RELU_BACK } else { TANH_BACK }),
    };
    kernel.launch(step.rows * hidden)
}

/// `out` = the gradients of the products, transposed, times the states before them.
fn weight_gradient(o: &Recurrent, steps: &[Step], products: &View, out: &View) -> Result<()> {
    let (hidden, wide, total, batch) = (o.hidden(), o.wide(), products.dim(0).0, o.hx.dim(0).0);
    // Products of the rows from `first` on with as many states.
    let add = |first: usize, states: &View, beta: f64| {
        let (shape, strides) = ([wide, states.shape[0]], [1, wide]);
        let left = View { shape: &shape, strides: &strides, offset: products.offset + first * wide, ..*products };
        matmul(&left, states, out, 1.0, beta)
    };
    if steps.iter().all(|s| s.rows == batch) {
        // The states before all steps but the first are the outputs, a step apart.
        let (from, to, first) = if o.reverse { (batch, 0, total - batch) } else { (0, batch, 0) };
        let later = [total - batch, hidden];
        if later[0] > 0 {
            add(to, &rows(&o.output, from, &later), 0.0)?;
        }
        return add(first, &o.hx, if later[0] > 0 { 1.0 } else { 0.0 });
    }
    let buffer = out.scratch(total * hidden * out.dtype.size())?;
    let shape = [total, hidden];
    let states = View { buffer: &buffer, shape: &shape, strides: &[hidden, 1], offset: 0, ..*out };
    let mut alive = Step { first: 0, rows: 0 };
    for &step in steps {
        let old = alive.rows.min(step.rows);
        for (from, n, to) in [
            (rows(&o.output, alive.first, &[old, hidden]), old, step.first),
            (rows(&o.hx, old, &[step.rows - old, hidden]), step.rows - old, step.first + old),
        ] {
            let shape = [n, hidden];
            if n > 0 {
                copy(&Input::View(View { shape: &shape, ..from }), &rows(&states, to, &shape))?;
            }
        }
        alive = step;
    }
    add(0, &states, 0.0)
}
