//! Attention in tiles, forward and backward: no matrix of all scores exists.
//!
//! Forward is one pass over the keys with a running maximum and sum, which continue in another dispatch where there are many
//! keys. Backward computes the weights of a tile again from the saved logarithms: one kernel for what it needs of each
//! query, one for the gradient of the queries, one for those of keys and values, so that no two workgroups add to one
//! element. Sources: Milakov and Gimelshein, arXiv:1805.02867; Dao, "FlashAttention-2", arXiv:2307.08691.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::map::copy;
use super::params::{ITERATIONS, lanes_text};
use super::view::{Input, View};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::gpu::driver::GpuBuffer;
use crate::layout::{Dims, contiguous_strides};

const TEMPLATE: &str = include_str!("../../../shaders/attention.wgsl");
const FORWARD: &str = include_str!("../../../shaders/attention_forward.wgsl");
const ROWS: &str = include_str!("../../../shaders/attention_rows.wgsl");
const QUERIES: &str = include_str!("../../../shaders/attention_queries.wgsl");
const KEYS: &str = include_str!("../../../shaders/attention_keys.wgsl");

/// Elements of a row that are multiplied between two barriers.
const DEPTH: usize = 32;
/// Workgroups that keep a device busy, and the fewest keys of a piece.
const BUSY: usize = 128;
const PIECE: usize = 512;
/// The largest head that the kernels serve.
pub const HEAD: usize = 256;

/// The operands, of one float type: query `[B, H, L, E]`, key `[B, G, S, E]`, value `[B, G, S, D]`, E and D at most `HEAD`,
/// and a mask `[B, H, L, S]` that is added to the scores. H is a multiple of G.
#[derive(Clone, Copy)]
pub struct Attention<'a> {
    pub query: View<'a>,
    pub key: View<'a>,
    pub value: View<'a>,
    pub mask: Option<View<'a>>,
    pub causal: bool,
    pub scale: f64,
}

/// Rows and columns of a workgroup's tile, how its invocations share it, and the padded size of a head.
#[derive(Clone, Copy)]
struct Tile {
    name: &'static str,
    rows: usize,
    cols: usize,
    down: usize,
    across: usize,
    width: usize,
}

impl Tile {
    /// The tile for so many rows. Workgroup memory stays within 16 KiB, sums of an invocation within 64.
    fn of(rows: usize, head: usize, wide: bool, sums: usize) -> Tile {
        let size = head.next_power_of_two().clamp(32, HEAD).ilog2() as usize - 5;
        let tile = |names: [&'static str; 4], rows, cols, down| {
            // Sums come in fours of each of the invocations across.
            Tile { name: names[size], rows, cols, down, across: cols / 4, width: (32 << size).max(cols) }
        };
        match (wide, rows, size) {
            (true, _, 3) => tile(["", "", "", "16x32 of 256, wide"], 16, 32, 16),
            (true, ..) => tile(["16x32 of 32, wide", "16x32 of 64, wide", "16x32 of 128, wide", ""], 16, 32, 8),
            (_, 0..=2, _) if sums == 1 => tile(["2x64 of 64", "2x64 of 64", "2x64 of 128", "2x64 of 256"], 2, 64, 2),
            (_, 0..=8, _) => tile(["8x64 of 64", "8x64 of 64", "8x64 of 128", "8x64 of 256"], 8, 64, 4),
            (.., 3) if sums > 1 => tile(["", "", "", "16x32 of 256"], 16, 32, 16),
            (.., 2) if sums > 1 => tile(["", "", "32x32 of 128, twice", ""], 32, 32, 16),
            (.., 3) => tile(["", "", "", "32x32 of 256"], 32, 32, 16),
            (_, 0..=32, _) => tile(["32x32 of 32", "32x32 of 64", "32x32 of 128", ""], 32, 32, 8),
            (.., 2) => tile(["", "", "64x32 of 128", ""], 64, 32, 16),
            _ if sums > 1 => tile(["64x32 of 32, twice", "64x32 of 64, twice", "", ""], 64, 32, 16),
            _ => tile(["64x32 of 32", "64x32 of 64", "", ""], 64, 32, 8),
        }
    }
    fn lanes(&self) -> usize {
        self.down * self.across
    }
    /// Fours of a line of `block`.
    fn line(&self) -> usize {
        DEPTH.max(self.cols) / 4 + 1
    }
    /// Fours of `block` and of `tile`, and the columns whose values fit the latter.
    fn memory(&self) -> [usize; 3] {
        let tile = self.cols * (DEPTH / 4 + 1);
        let part = 1 << (4 * tile / self.width).min(self.cols).ilog2();
        [self.rows * self.line(), tile, part]
    }
    /// Columns of one dispatch, a multiple of the tile's, whose loops turn about `ITERATIONS` times where each column is visited
    /// `times` times with `products` products and sums.
    fn most_columns(&self, head: usize, products: usize, times: usize) -> usize {
        let loads = (self.rows + 2 * self.cols) * head.div_ceil(self.lanes());
        let iterations = (head + self.cols + loads + self.across) * products * times;
        (ITERATIONS / iterations.max(1)).max(1) * self.cols
    }
    fn constants<'a>(&self, mut kernel: Kernel<'a>) -> Kernel<'a> {
        let [block, tile, part] = self.memory();
        for (name, value) in [
            ("ROWS", self.rows),
            ("COLS", self.cols),
            ("ACROSS", self.across),
            ("LANES", self.lanes()),
            ("RM", self.rows / self.down),
            ("DOWN", self.down),
            ("RE", self.width / self.across),
            ("FOURS", self.width / self.across / 4),
            ("LINE", self.line()),
            ("DEPTH", DEPTH),
            ("WIDTH", self.width),
            ("PART", part),
            ("block", block),
            ("tile", tile),
        ] {
            kernel = kernel.constant(name, value);
        }
        kernel
    }
}

/// An operand's name and those of the strides of its rows and columns.
type Names = [&'static str; 3];
const Q: Names = ["q", "q_row", "q_col"];
const K: Names = ["k", "k_row", "k_col"];
const V: Names = ["v", "v_row", "v_col"];
const G: Names = ["g", "g_row", "g_col"];
const MASK: Names = ["mask", "mask_row", "mask_col"];
const OUT: Names = ["out", "out_row", "out_col"];
const DQ: Names = ["dq", "dq_row", "dq_col"];
const DK: Names = ["dk", "dk_row", "dk_col"];
const DV: Names = ["dv", "dv_row", "dv_col"];

/// Reads an operand of four dimensions, whose heads are walked.
fn read<'a>(kernel: Kernel<'a>, names: Names, v: &View<'a>) -> Result<Kernel<'a>> {
    strided(kernel.read(names[0], *v), names, v)
}
fn write<'a>(kernel: Kernel<'a>, names: Names, v: &View<'a>) -> Result<Kernel<'a>> {
    strided(kernel.write(names[0], *v), names, v)
}
fn strided<'a>(kernel: Kernel<'a>, [name, row, col]: Names, v: &View<'a>) -> Result<Kernel<'a>> {
    kernel.walk(name, &v.shape[..2], &v.strides[..2]).number(row, v.strides[2])?.number(col, v.strides[3])
}

impl<'a> Attention<'a> {
    /// Heads of the query in all batches, and how many of them read one head of the key.
    fn heads(&self) -> [usize; 2] {
        [self.query.shape[0] * self.query.shape[1], self.query.shape[1] / self.key.shape[1].max(1)]
    }
    fn head_size(&self) -> usize {
        self.query.shape[3].max(self.value.shape[3])
    }
    /// Refuses operands that do not fit.
    fn check(&self) -> Result<()> {
        let (q, k, v) = (self.query.shape, self.key.shape, self.value.shape);
        let right = [q, k, v].iter().all(|s| s.len() == 4)
            && [q[0], q[3]] == [k[0], k[3]]
            && k[..3] == v[..3]
            && k[1] > 0
            && q[1].is_multiple_of(k[1])
            && self.head_size() <= HEAD
            && self.mask.is_none_or(|m| m.shape == [q[0], q[1], q[2], k[2]]);
        if right { Ok(()) } else { Err(Error::internal("attention: operands do not fit")) }
    }
    fn kernel(&self, family: &'static str, body: &'static str, tile: &Tile) -> Result<Kernel<'a>> {
        let compute = compute_of(self.query.dtype)?;
        let kernel = Kernel::new(family, TEMPLATE, compute);
        let kernel = read(kernel, Q, &self.query)?;
        let kernel = read(kernel, K, &self.key)?;
        let mut kernel = read(kernel, V, &self.value)?;
        if let Some(m) = self.mask {
            kernel = read(kernel, MASK, &m)?.text(
                "mask_term",
                "v += read_mask({{mask}} + walk_mask(head) + query * {{mask_row}} + key * {{mask_col}});",
            );
        }
        let kernel = kernel
            .scalar("scale", Scalar::Float(self.scale))
            .number("queries", self.query.shape[2])?
            .number("keys", self.key.shape[2])?
            .number("width", self.query.shape[3])?
            .number("depth", self.value.shape[3])?
            .number("each", self.heads()[1])?
            .text("causal", if self.causal { "true" } else { "false" });
        Ok(tile.constants(kernel.part(tile.name, "body", body)))
    }
}

/// Results in the type that kernels sum in: the views themselves, or memory that is copied to them in the end, where several
/// dispatches add to one element.
struct Staged<'a> {
    out: View<'a>,
    memory: Option<(GpuBuffer, Dims)>,
}
impl<'a> Staged<'a> {
    fn new(out: &View<'a>, dispatches: usize) -> Result<Staged<'a>> {
        let wide = dtype_of(compute_of(out.dtype)?);
        if dispatches < 2 || out.dtype == wide {
            return Ok(Staged { out: *out, memory: None });
        }
        let buffer = out.scratch(out.numel() * wide.size())?;
        Ok(Staged { out: *out, memory: Some((buffer, contiguous_strides(out.shape))) })
    }
    fn view(&self) -> Result<View<'_>> {
        let dtype = dtype_of(compute_of(self.out.dtype)?);
        Ok(match &self.memory {
            Some((buffer, strides)) => View { buffer, dtype, strides, offset: 0, ..self.out },
            None => self.out,
        })
    }
    fn finish(&self) -> Result<()> {
        if self.memory.is_some() { copy(&Input::View(self.view()?), &self.out) } else { Ok(()) }
    }
}

/// `out` `[B, H, L, D]`, and for each query the logarithm of the sum of its exponentials `[B, H, L]`, both dense.
///
/// Few queries of many keys do not keep a device busy: the keys are cut into pieces, whose results are averaged by the
/// exponentials of their logarithms, which is attention again, of one query to as many keys as there are pieces.
pub fn attention(o: &Attention, out: &View, logs: &View) -> Result<()> {
    out.require_own()?;
    o.check()?;
    let (queries, keys, [heads, _]) = (o.query.shape[2], o.key.shape[2], o.heads());
    if out.numel() == 0 || keys == 0 {
        return Err(Error::internal("attention: an operand without elements"));
    }
    let tile = Tile::of(queries, o.head_size(), out.dtype.size() == 8, 1);
    let wanted = if queries <= tile.rows { (BUSY / heads).min(keys / PIECE).max(1) } else { 1 };
    let length = keys.div_ceil(wanted).next_multiple_of(tile.cols);
    let pieces = keys.div_ceil(length);
    if pieces == 1 {
        return forward(o, &tile, [1, length], out, logs);
    }
    let (dtype, rows, depth) = (dtype_of(compute_of(out.dtype)?), heads * queries, out.shape[3]);
    let memory = |n: usize| out.scratch(n * dtype.size());
    let buffers = [memory(pieces * rows * depth)?, memory(pieces * rows)?, memory(1)?];
    let view = |i: usize| View { buffer: &buffers[i], dtype, shape: &[], strides: &[], offset: 0 };
    let shape = [pieces * o.query.shape[0], o.query.shape[1], queries, depth];
    let strides = contiguous_strides(&shape);
    forward(o, &tile, [pieces, length], &View { shape: &shape, strides: &strides, ..view(0) }, &view(1))?;
    copy(&Input::Scalar(Scalar::Int(1)), &view(2))?;
    let sums = Attention {
        query: View { shape: &[rows, 1, 1, 1], strides: &[0; 4], ..view(2) },
        key: View { shape: &[rows, 1, pieces, 1], strides: &[1, 1, rows, 1], ..view(1) },
        value: View { shape: &[rows, 1, pieces, depth], strides: &[depth, depth, rows * depth, 1], ..view(0) },
        mask: None,
        causal: false,
        scale: 1.0,
    };
    let (tile, out) = (
        Tile::of(1, depth, dtype.size() == 8, 1),
        View { shape: &[rows, 1, 1, depth], strides: &[depth, depth, depth, 1], ..*out },
    );
    forward(&sums, &tile, [1, pieces.next_multiple_of(tile.cols)], &out, logs)
}

/// The results of pieces of so many keys; `out` is `[pieces B, H, L, D]`.
fn forward(o: &Attention, tile: &Tile, [pieces, length]: [usize; 2], out: &View, logs: &View) -> Result<()> {
    let (queries, keys, [heads, _]) = (o.query.shape[2], o.key.shape[2], o.heads());
    let most = tile.most_columns(o.head_size(), 1, 1);
    let staged = Staged::new(out, length.min(keys).div_ceil(most))?;
    let blocks = queries.div_ceil(tile.rows);
    for first in (0..length.min(keys)).step_by(most) {
        let kernel = write(o.kernel("attention", FORWARD, tile)?, OUT, &staged.view()?)?;
        kernel
            .write("logs", *logs)
            .number("first", first)?
            .number("last", (first + most).min(length))?
            .number("blocks", blocks)?
            .number("heads", heads)?
            .number("pieces", pieces)?
            .number("length", length)?
            .launch_groups(blocks * heads * pieces)?;
    }
    staged.finish()
}

/// The gradients of query, key and value from that of the output, which is `out`, with `logs` as from `attention`.
pub fn attention_backward(o: &Attention, grad: &View, out: &View, logs: &View, results: [&View; 3]) -> Result<()> {
    out.require_own()?;
    o.check()?;
    let (queries, keys, [heads, each]) = (o.query.shape[2], o.key.shape[2], o.heads());
    if out.numel() == 0 || keys == 0 || o.query.shape[3] == 0 {
        return Err(Error::internal("attention: an operand without elements"));
    }
    let compute = compute_of(out.dtype)?;
    let dtype = dtype_of(compute);
    let buffer = out.scratch(heads * queries * 2 * dtype.size())?;
    let stats = View { buffer: &buffer, dtype, shape: &[heads, queries, 2], strides: &[2 * queries, 2, 1], offset: 0 };
    let (rows, depth) = (heads * queries, out.shape[3]);
    let lanes = (depth / 8).next_power_of_two().min(256);
    Kernel::new("attention_rows", ROWS, compute)
        .read("g", *grad)
        .walk("g", &grad.shape[..3], &grad.strides[..3])
        .number("g_col", grad.strides[3])?
        .read("y", *out)
        .walk("y", &out.shape[..3], &out.strides[..3])
        .number("y_col", out.strides[3])?
        .read("logs", *logs)
        .write("stats", stats)
        .number("rows", rows)?
        .number("depth", depth)?
        .text("lanes", lanes_text(lanes))
        .launch(rows * lanes)?;

    let (size, wide) = (o.head_size(), out.dtype.size() == 8);
    let tile = Tile::of(queries, size, wide, 1);
    let most = tile.most_columns(size, 2, 1);
    let (blocks, dq) = (queries.div_ceil(tile.rows), Staged::new(results[0], keys.div_ceil(most))?);
    for first in (0..keys).step_by(most) {
        let kernel = read(o.kernel("attention_queries", QUERIES, &tile)?, G, grad)?;
        let kernel = write(kernel, DQ, &dq.view()?)?.read("stats", stats);
        let kernel = kernel.number("first", first)?.number("last", (first + most).min(keys))?;
        kernel.number("blocks", blocks)?.number("heads", heads)?.launch_groups(blocks * heads)?;
    }
    dq.finish()?;

    let tile = Tile::of(keys, size, wide, 2);
    let most = tile.most_columns(size, 2, each);
    let (blocks, groups, passes) = (keys.div_ceil(tile.rows), heads / each, queries.div_ceil(most));
    let (dk, dv) = (Staged::new(results[1], passes)?, Staged::new(results[2], passes)?);
    for first in (0..queries).step_by(most) {
        let kernel = read(o.kernel("attention_keys", KEYS, &tile)?, G, grad)?;
        let kernel = write(kernel, DK, &dk.view()?)?.read("stats", stats);
        let kernel = write(kernel, DV, &dv.view()?)?;
        let kernel = kernel.number("first", first)?.number("last", (first + most).min(queries))?;
        kernel.number("blocks", blocks)?.number("groups", groups)?.launch_groups(blocks * groups)?;
    }
    dk.finish()?;
    dv.finish()
}
