//! Products over several dimensions at once, where they lie: a convolution is the product of its weights and the
//! overlapping windows of its input, which are never copied to a matrix.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::map::{copy, map};
use super::product::{run, tile_for};
use super::reduce::reduce;
use super::view::{Input, View, fits, halves, part, resized};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::gpu::driver::too_large;
use crate::kinds::Reduce;
use crate::layout::{Dims, contiguous_strides};

/// `out[batch.., rows.., cols..] = addend[batch.., rows..] + alpha * sum over inner of a[batch.., rows.., inner..] *
/// b[batch.., inner.., cols..]`, all of one dtype; half types are summed in float32.
#[derive(Clone, Copy)]
pub(super) struct Contraction<'a> {
    pub a: View<'a>,
    pub b: View<'a>,
    pub out: View<'a>,
    /// One where there is an addend.
    pub alpha: f64,
    pub addend: Option<View<'a>>,
    /// How many dimensions are batch, rows and inner ones.
    pub batch: usize,
    pub rows: usize,
    pub inner: usize,
    /// So many of the last inner dimensions of `b` run from their ends to their starts.
    pub turned: usize,
}

const THIN_ONES: &str = include_str!("../../../shaders/contract_thin.wgsl");
const DOTS: &str = include_str!("../../../shaders/contract_dots.wgsl");
/// Rows that leave most of a tile empty, the longest inner dimension of an invocation, columns that fill workgroups, and the
/// shortest inner dimension that is worth one.
const FEW: usize = 4;
const THIN: usize = 128;
const MANY: usize = 64;
const LONG: usize = 1024;
const TABLES: &str = "var<workgroup> inner_a: array<u32, TK>;
var<workgroup> inner_b: array<u32, TK>;";
const FIRST_TABLES: &str = "for (var i = lane; i < TK; i += LANES) {
        inner_a[i] = walk_a_inner(i);
        inner_b[i] = walk_b_inner(i);
    }
    workgroupBarrier();";
const NEXT_TABLES: &str = "for (var i = lane; i < TK; i += LANES) {
            inner_a[i] = walk_a_inner(depth + TK + i);
            inner_b[i] = walk_b_inner(depth + TK + i);
        }";

impl<'a> Contraction<'a> {
    /// Where the columns of `out`, and those of `b`, begin.
    fn cols(&self) -> [usize; 2] {
        [self.batch + self.rows, self.batch + self.inner]
    }
    /// Elements of the batch, rows, columns, inner elements.
    fn sizes(&self) -> [usize; 4] {
        let product = |sizes: &[usize]| sizes.iter().product();
        let (out, rows) = (self.out.shape, self.batch + self.rows);
        [
            product(&out[..self.batch]),
            product(&out[self.batch..rows]),
            product(&out[rows..]),
            product(&self.a.shape[rows..]),
        ]
    }

    pub fn run(&self) -> Result<()> {
        self.out.require_own()?;
        let (rows, [cols, of_b]) = (self.batch + self.rows, self.cols());
        let agree = self.a.shape[rows..] == self.b.shape[self.batch..of_b]
            && self.a.shape[..rows] == self.out.shape[..rows]
            && self.b.shape[of_b..] == self.out.shape[cols..]
            && self.b.shape[..self.batch] == self.out.shape[..self.batch]
            && self.addend.is_none_or(|c| c.shape == &self.out.shape[..rows]);
        if !agree {
            return Err(Error::internal("contract: operands do not fit"));
        }
        let [batch, m, n, k] = self.sizes();
        if batch * m * n == 0 {
            return Ok(());
        }
        if k == 0 {
            return self.finish(None);
        }
        if !fits(&[&self.a, &self.b, &self.out]) {
            return self.by_halves();
        }
        match self.form() {
            Form::Thin => return self.thin(),
            Form::Dots => return self.dots(),
            Form::Tiles => {}
        }
        let wanted = tile_for(m, n, batch, self.out.dtype).pieces([batch, m, n, k]);
        let straight = self.a.shape[rows..rows + self.inner - self.turned].iter();
        let outer = straight.enumerate().find(|(_, n)| **n > 1);
        match outer.filter(|_| wanted > 1) {
            // Without a rest where that takes at most twice as many.
            Some((d, &size)) => {
                let exact = (wanted..=size.min(2 * wanted)).find(|s| size % s == 0);
                self.by_pieces(d, exact.unwrap_or(wanted.min(size)))
            }
            None => self.launch(),
        }
    }

    /// The columns, or the batch, in two halves, where one binding does not reach an operand.
    fn by_halves(&self) -> Result<()> {
        let [cols, of_b] = self.cols();
        let free = (0..self.batch).chain(cols..self.out.shape.len());
        let d = free.max_by_key(|&d| self.out.shape[d]).filter(|&d| self.out.shape[d] > 1).ok_or_else(too_large)?;
        for (start, n) in halves(self.out.shape[d]) {
            let in_batch = d < self.batch;
            let db = if in_batch { d } else { d - cols + of_b };
            let (sb, so) = (resized(self.b.shape, db, n), resized(self.out.shape, d, n));
            let sa = if in_batch { resized(self.a.shape, d, n) } else { Dims::from(self.a.shape) };
            let a = if in_batch { part(&self.a, d, start, &sa) } else { self.a };
            let sc = self.addend.map(|c| if in_batch { resized(c.shape, d, n) } else { Dims::from(c.shape) });
            let addend = match (&self.addend, &sc) {
                (Some(c), Some(sc)) if in_batch => Some(part(c, d, start, sc)),
                (c, _) => *c,
            };
            let (b, out) = (part(&self.b, db, start, &sb), part(&self.out, d, start, &so));
            Contraction { a, b, out, addend, ..*self }.run()?;
        }
        Ok(())
    }

    /// Sums of pieces of the inner dimension `d`, as a batch more, and of what is left of it; then the sum of those.
    fn by_pieces(&self, d: usize, pieces: usize) -> Result<()> {
        let (da, db) = (self.batch + self.rows + d, self.batch + d);
        let (length, rest) = (self.a.shape[da] / pieces, self.a.shape[da] % pieces);
        let split = |v: &View, at: usize| -> (Dims, Dims) {
            let (mut shape, mut strides) = (Dims::from(v.shape), Dims::from(v.strides));
            shape[at] = length;
            strides.insert(0, strides[at] * length);
            shape.insert(0, pieces);
            (shape, strides)
        };
        let ((sa, ta), (sb, tb)) = (split(&self.a, da), split(&self.b, db));
        let dtype = dtype_of(compute_of(self.out.dtype)?);
        let count = pieces + usize::from(rest > 0);
        let shape: Dims = [count].into_iter().chain(self.out.shape.iter().copied()).collect();
        let strides = contiguous_strides(&shape);
        let buffer = self.out.scratch(shape.iter().product::<usize>() * dtype.size())?;
        let sums = View { buffer: &buffer, dtype, shape: &shape, strides: &strides, offset: 0 };
        let (a, b) = (View { shape: &sa, strides: &ta, ..self.a }, View { shape: &sb, strides: &tb, ..self.b });
        let out_shape = resized(&shape, 0, pieces);
        let out = View { shape: &out_shape, ..sums };
        Contraction { a, b, out, addend: None, batch: self.batch + 1, ..*self }.run()?;
        if rest > 0 {
            let (sa, sb) = (resized(self.a.shape, da, rest), resized(self.b.shape, db, rest));
            let (a, b) = (part(&self.a, da, pieces * length, &sa), part(&self.b, db, pieces * length, &sb));
            let out = View { shape: &shape[1..], strides: &strides[1..], offset: pieces * strides[0], ..sums };
            Contraction { a, b, out, addend: None, ..*self }.run()?;
        }
        self.finish(Some(&sums))
    }

    /// The sum of `sums` along its first dimension, and the addend.
    fn finish(&self, sums: Option<&View>) -> Result<()> {
        let Some(sums) = sums else {
            return match self.addend {
                Some(c) => copy(&Input::View(self.spread(&c, &mut Dims::new())), &self.out),
                None => copy(&Input::Scalar(0i64.into()), &self.out),
            };
        };
        let one: Dims = [1].into_iter().chain(self.out.shape.iter().copied()).collect();
        if self.addend.is_none() && self.out.dtype == sums.dtype {
            let strides: Dims = [0].into_iter().chain(self.out.strides.iter().copied()).collect();
            return reduce(Reduce::Sum, sums, &[0], &View { shape: &one, strides: &strides, ..self.out });
        }
        let strides = contiguous_strides(&one);
        let buffer = self.out.scratch(self.out.numel() * sums.dtype.size())?;
        let sum = View { buffer: &buffer, dtype: sums.dtype, shape: &one, strides: &strides, offset: 0 };
        reduce(Reduce::Sum, sums, &[0], &sum)?;
        let sum = Input::View(View { shape: &one[1..], strides: &strides[1..], ..sum });
        match self.addend {
            Some(c) => {
                let mut strides = Dims::new();
                let addend = Input::View(self.spread(&c, &mut strides));
                map(self.out.shape, &[sum, addend], &self.out, sums.dtype, "x + y")
            }
            None => copy(&sum, &self.out),
        }
    }

    /// The addend of every element of `out`; `strides` is memory for its strides.
    fn spread<'b>(&self, addend: &View<'b>, strides: &'b mut Dims) -> View<'b>
    where
        'a: 'b,
    {
        *strides = Dims::from(addend.strides);
        strides.resize(self.out.shape.len(), 0);
        View { shape: self.out.shape, strides, ..*addend }
    }

    /// Whether an invocation for each result, or a workgroup for each, serves better than tiles, which would be nearly empty.
    fn form(&self) -> Form {
        let [batch, m, n, k] = self.sizes();
        if self.is_plain() {
            return Form::Tiles;
        }
        if m <= FEW && n >= MANY && k <= THIN {
            return Form::Thin;
        }
        if m * n <= MANY && batch * m * n >= MANY && k >= LONG { Form::Dots } else { Form::Tiles }
    }

    /// Whether rows, columns and the inner dimension are one dimension each.
    fn is_plain(&self) -> bool {
        [self.rows, self.inner, self.out.shape.len() - self.cols()[0], self.turned] == [1, 1, 1, 0]
            && self.addend.is_none()
    }

    fn launch(&self) -> Result<()> {
        let [batch, m, n, k] = self.sizes();
        let tile = tile_for(m, n, batch, self.out.dtype);
        if self.is_plain() {
            return run(tile, &self.a, &self.b, &self.out, self.alpha, 0.0);
        }
        let rows = self.batch + self.rows;
        let stride = |strides: &[usize]| strides.last().copied().unwrap_or(0);
        let a_first = stride(self.a.strides) <= stride(&self.a.strides[..rows]);
        let b_first = stride(self.b.strides) <= stride(&self.b.strides[..self.cols()[1]]);
        let kernel = self
            .kernel("contract", tile.template())?
            .text("tables", TABLES)
            .text("first_tables", FIRST_TABLES)
            .text("after_first_fetch", "workgroupBarrier();")
            .text("next_tables", NEXT_TABLES)
            .text("of_a", "walk_a_row(r)")
            .text("of_b", "{{b_last}} + walk_b_col(c)")
            .text("inner_a", "inner_a[d]")
            .text("inner_b", "inner_b[d]")
            .text("out_row_at", "walk_out_row(r)")
            .text("out_col_at", "walk_out_col(c)");
        tile.launch(kernel, [batch, m, n, k], a_first, b_first)
    }

    fn thin(&self) -> Result<()> {
        let [batch, m, n, _] = self.sizes();
        let kernel = self.sized(self.kernel("contract_thin", THIN_ONES)?)?.constant("MOST", THIN);
        kernel.launch_groups(batch * m * n.div_ceil(256))
    }

    fn dots(&self) -> Result<()> {
        let [batch, m, n, k] = self.sizes();
        let kernel = self.sized(self.kernel("contract_dots", DOTS)?)?.iterations(k.div_ceil(256))?;
        kernel.launch_groups(batch * m * n)
    }

    fn sized(&self, kernel: Kernel<'a>) -> Result<Kernel<'a>> {
        let [batch, m, n, k] = self.sizes();
        kernel.number("batch", batch)?.number("m", m)?.number("n", n)?.number("k", k)
    }

    /// A kernel with the operands and where their elements lie.
    fn kernel(&self, family: &'static str, template: &'static str) -> Result<Kernel<'a>> {
        let (rows, [cols, of_b]) = (self.batch + self.rows, self.cols());
        let (a, b, out) = (&self.a, &self.b, &self.out);
        // Indices are numbers of 32 bits, so that adding 2^32 - n goes n back.
        let mut back = Dims::from(&b.strides[self.batch..of_b]);
        let mut last = 0;
        for d in self.inner - self.turned..self.inner {
            last += (b.shape[self.batch + d] - 1) * back[d];
            back[d] = ((1 << 32) - back[d] % (1 << 32)) % (1 << 32);
        }
        let lead = &out.shape[..self.batch];
        let mut kernel = Kernel::new(family, template, compute_of(out.dtype)?)
            .read("a", *a)
            .read("b", *b)
            .write("out", *out)
            .walk("a", lead, &a.strides[..self.batch])
            .walk("b", lead, &b.strides[..self.batch])
            .walk("out", lead, &out.strides[..self.batch])
            .walk("a_row", &a.shape[self.batch..rows], &a.strides[self.batch..rows])
            .walk("a_inner", &a.shape[rows..], &a.strides[rows..])
            .walk("b_inner", &b.shape[self.batch..of_b], &back)
            .walk("b_col", &b.shape[of_b..], &b.strides[of_b..])
            .walk("out_row", &out.shape[self.batch..cols], &out.strides[self.batch..cols])
            .walk("out_col", &out.shape[cols..], &out.strides[cols..])
            .number("b_last", last)?;
        if self.alpha != 1.0 {
            kernel = kernel.scalar("alpha", Scalar::Float(self.alpha)).text("scale", "v = {{alpha}} * v;");
        }
        if let Some(c) = self.addend {
            kernel = kernel
                .read("c", c)
                .walk("c", c.shape, c.strides)
                .text("scale", "v += read_c({{c}} + walk_c(batch * {{m}} + r));");
        }
        Ok(kernel)
    }
}

/// How the results of a contraction are shared out.
enum Form {
    Tiles,
    /// An invocation each.
    Thin,
    /// A workgroup each.
    Dots,
}
