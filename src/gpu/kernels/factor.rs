//! LU and Cholesky of batches of matrices, triangular systems and determinants.
//!
//! A panel of `BLOCK` columns is factored by one workgroup for each matrix, in its memory; what lies right of it is updated by
//! a matrix product. So are the unknowns after a block of a triangular system.

use super::element::compute_of;
use super::kernel::Kernel;
use super::map::copy;
use super::matmul::matmul;
use super::view::{Input, View};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::layout::{Dims, contiguous_strides};

const LU: &str = include_str!("../../../shaders/lu.wgsl");
const CHOLESKY: &str = include_str!("../../../shaders/cholesky.wgsl");
const COLUMNS: &str = include_str!("../../../shaders/matrix_columns.wgsl");
const DETERMINANT: &str = include_str!("../../../shaders/determinant.wgsl");

/// Columns factored, or unknowns solved, in one dispatch.
pub(super) const BLOCK: usize = 32;

/// What a workgroup needs that factors a matrix in its memory.
const GROUP: &str = "const LANES = {{lanes}}u;
var<private> origin: u32;
fn at(i: u32, j: u32) -> u32 {
    return origin + i * {{row}} + j * {{col}};
}
fn sync() {
    storageBarrier();
    workgroupBarrier();
}";
/// The rows of a block that starts at `first` and has `count` of them, in the order in which they become known.
const SOLVE: &str = "for (var step = 0u; step < {{count}}; step++) {
        let i = select({{first}} + step, {{first}} + {{count}} - 1u - step, {{upper}});
        var v = read_b(column + i * {{b_row}});
        for (var k = 0u; k < step; k++) {
            let r = select({{first}} + k, {{first}} + {{count}} - 1u - k, {{upper}});
            v -= read_a({{a}} + walk_a(matrix) + i * {{row}} + r * {{col}}) * read_b(column + r * {{b_row}});
        }
        if (!{{unit}}) {
            v /= read_a({{a}} + walk_a(matrix) + i * ({{row}} + {{col}}));
        }
        write_b(column + i * {{b_row}}, v);
    }";
const EXCHANGE: &str = "for (var i = 0u; i < {{steps}}; i++) {
        let to = u32(read_pivots({{pivots}} + matrix * {{steps}} + i) - 1);
        let v = read_b(column + i * {{b_row}});
        write_b(column + i * {{b_row}}, read_b(column + to * {{b_row}}));
        write_b(column + to * {{b_row}}, v);
    }";

/// The last two dimensions of a view, from a row and a column on.
pub(super) struct Block<'a> {
    view: View<'a>,
    shape: Dims,
}
impl<'a> Block<'a> {
    pub(super) fn of(v: &View<'a>, rows: [usize; 2], cols: [usize; 2]) -> Block<'a> {
        let (mut shape, r) = (Dims::from(v.shape), v.shape.len() - 2);
        (shape[r], shape[r + 1]) = (rows[1] - rows[0], cols[1] - cols[0]);
        let offset = v.offset + rows[0] * v.strides[r] + cols[0] * v.strides[r + 1];
        Block { view: View { offset, ..*v }, shape }
    }
    pub(super) fn view(&self) -> View<'_> {
        View { shape: &self.shape, ..self.view }
    }
}

/// Rows and columns.
pub(super) fn sizes(v: &View) -> [usize; 2] {
    [v.shape[v.shape.len() - 2], v.shape[v.shape.len() - 1]]
}
/// How many matrices.
pub(super) fn count(v: &View) -> usize {
    v.shape[..v.shape.len() - 2].iter().product()
}
/// The strides of rows and columns, and a walk over the matrices.
pub(super) fn matrices<'a>(
    kernel: Kernel<'a>,
    name: &'static str,
    strides: [&'static str; 2],
    v: &View,
) -> Result<Kernel<'a>> {
    let rank = v.shape.len();
    let kernel = kernel.walk(name, &v.shape[..rank - 2], &v.strides[..rank - 2]);
    kernel.number(strides[0], v.strides[rank - 2])?.number(strides[1], v.strides[rank - 1])
}
/// Shape and strides with the last two dimensions exchanged.
pub(super) fn transposed(v: &View) -> (Dims, Dims) {
    let (mut shape, mut strides, rank) = (Dims::from(v.shape), Dims::from(v.strides), v.shape.len());
    shape.swap(rank - 2, rank - 1);
    strides.swap(rank - 2, rank - 1);
    (shape, strides)
}
/// A kernel that factors the columns `start` to `end` of the matrices `a` in place, a workgroup for each.
pub(super) fn panel<'a>(
    name: &'static str,
    code: &'static str,
    a: &View<'a>,
    [start, end]: [usize; 2],
) -> Result<Kernel<'a>> {
    let kernel = Kernel::new(name, code, compute_of(a.dtype)?).text("group", GROUP).write("a", *a);
    matrices(kernel, "a", ["row", "col"], a)?
        .number("rows", sizes(a)[0])?
        .number("start", start)?
        .number("end", end)?
        .number("matrices", count(a))
}
/// As many invocations in a workgroup as matrices of so many rows are worth.
fn lanes(kernel: Kernel<'_>, rows: usize, columns: usize) -> Result<Kernel<'_>> {
    let (name, lanes) = if rows <= 64 { ("64 lanes", 64) } else { ("256 lanes", 256) };
    // Each column is scaled and subtracted from the others of the panel.
    let iterations = rows.div_ceil(lanes) * columns * (columns / 2 + 4);
    kernel.variant(name).constant("lanes", lanes).iterations(iterations)
}

/// `out -= a b`
fn minus(out: &View, a: &View, b: &View) -> Result<()> {
    if out.numel() == 0 || a.numel() == 0 { Ok(()) } else { matmul(a, b, out, -1.0, 1.0) }
}

/// Overwrites matrices with L (below the diagonal) and U; `pivots` (int32) receives the row, from one, that each step
/// exchanged its own with, `info` (int32) the number of the first zero pivot, or zero. Both are dense.
pub fn lu(a: &View, pivots: &View, info: &View) -> Result<()> {
    a.require_own()?;
    copy(&Input::Scalar(Scalar::Int(0)), info)?;
    let ([rows, cols], batch) = (sizes(a), count(a));
    let steps = rows.min(cols);
    for start in (0..if batch == 0 { 0 } else { steps }).step_by(BLOCK) {
        let end = steps.min(start + BLOCK);
        let kernel = panel("lu", LU, a, [start, end])?
            .write_index("pivots", *pivots)
            .write_index("info", *info)
            .number("cols", cols)?
            .number("steps", steps)?;
        lanes(kernel, rows.max(cols), end - start)?.launch_groups(batch)?;
        let right = Block::of(a, [start, end], [end, cols]);
        let left = Block::of(a, [start, end], [start, end]);
        solve_triangular(&left.view(), &right.view(), false, true)?;
        let below = Block::of(a, [end, rows], [start, end]);
        minus(&Block::of(a, [end, rows], [end, cols]).view(), &below.view(), &right.view())?;
    }
    Ok(())
}

/// Overwrites the lower triangles of positive-definite matrices with their Cholesky factors; what lies above them becomes
/// arbitrary. `info` (int32, dense) receives the order of the first minor that is not positive, or zero.
pub fn cholesky(a: &View, info: &View) -> Result<()> {
    a.require_own()?;
    copy(&Input::Scalar(Scalar::Int(0)), info)?;
    let ([rows, _], batch) = (sizes(a), count(a));
    for start in (0..if batch == 0 { 0 } else { rows }).step_by(BLOCK) {
        let end = rows.min(start + BLOCK);
        let kernel = panel("cholesky", CHOLESKY, a, [start, end])?.write_index("info", *info);
        lanes(kernel, rows, end - start)?.launch_groups(batch)?;
        let below = Block::of(a, [end, rows], [start, end]);
        let below = below.view();
        let (shape, strides) = transposed(&below);
        let across = View { shape: &shape, strides: &strides, ..below };
        minus(&Block::of(a, [end, rows], [end, rows]).view(), &below, &across)?;
    }
    Ok(())
}

/// Overwrites `b` with the solutions of `a x = b`, where only one triangle of `a` is read, its diagonal as ones if `unit`.
pub fn solve_triangular(a: &View, b: &View, upper: bool, unit: bool) -> Result<()> {
    b.require_own()?;
    let [rows, cols] = sizes(b);
    let units = count(b) * cols;
    if units == 0 || rows == 0 {
        return Ok(());
    }
    if a.buffer.id() == b.buffer.id() {
        let strides = contiguous_strides(a.shape);
        let buffer = a.scratch(a.numel() * a.dtype.size())?;
        let apart = View { buffer: &buffer, strides: &strides, offset: 0, ..*a };
        copy(&Input::View(*a), &apart)?;
        return solve_triangular(&apart, b, upper, unit);
    }
    let blocks: Vec<usize> = (0..rows).step_by(BLOCK).collect();
    let order: Box<dyn Iterator<Item = usize>> =
        if upper { Box::new(blocks.into_iter().rev()) } else { Box::new(blocks.into_iter()) };
    for first in order {
        let end = rows.min(first + BLOCK);
        let kernel = Kernel::new("triangular", COLUMNS, compute_of(b.dtype)?).read("a", *a).write("b", *b);
        let kernel = matrices(kernel, "a", ["row", "col"], a)?;
        matrices(kernel, "b", ["b_row", "b_col"], b)?
            .part("solve", "columns", SOLVE)
            .text("upper", if upper { "true" } else { "false" })
            .text("unit", if unit { "true" } else { "false" })
            .number("first", first)?
            .number("count", end - first)?
            .number("cols", cols)?
            .number("units", units)?
            .launch(units)?;
        let rest = if upper { [0, first] } else { [end, rows] };
        let known = Block::of(b, [first, end], [0, cols]);
        minus(&Block::of(b, rest, [0, cols]).view(), &Block::of(a, rest, [first, end]).view(), &known.view())?;
    }
    Ok(())
}

/// Exchanges the rows of `b` as `lu` did: row `i` with `pivots[i] - 1`, in turn.
pub fn exchange_rows(b: &View, pivots: &View) -> Result<()> {
    let ([_, cols], units) = (sizes(b), count(b) * sizes(b)[1]);
    if units == 0 || pivots.numel() == 0 {
        return Ok(());
    }
    let steps = pivots.numel() / count(b);
    let kernel = Kernel::new("exchange", COLUMNS, compute_of(b.dtype)?).index("pivots", *pivots).write("b", *b);
    matrices(kernel, "b", ["b_row", "b_col"], b)?
        .part("exchange", "columns", EXCHANGE)
        .number("steps", steps)?
        .number("cols", cols)?
        .number("units", units)?
        .iterations(steps)?
        .launch(units)
}

/// Determinants from matrices and pivots as `lu` leaves them, a number for each matrix (dense); or their signs, and the
/// logarithms of their sizes.
pub fn determinant(a: &View, pivots: &View, out: &View, log: Option<&View>) -> Result<()> {
    let ([rows, _], units) = (sizes(a), count(a));
    if units == 0 {
        return Ok(());
    }
    if rows == 0 {
        copy(&Input::Scalar(Scalar::Int(1)), out)?;
        return log.map_or(Ok(()), |log| copy(&Input::Scalar(Scalar::Int(0)), log));
    }
    let kernel = Kernel::new("determinant", DETERMINANT, compute_of(a.dtype)?).read("a", *a).index("pivots", *pivots);
    let kernel = matrices(kernel, "a", ["row", "col"], a)?.write("out", *out);
    let kernel = match log {
        None => kernel.text("factor", "product *= f;").text("store", "write_out({{out}} + unit, product);"),
        Some(log) => kernel
            .write("log", *log)
            .text("factor", "product *= sign_(f);\n        log += ln_(abs(f));")
            .text("store", "write_out({{out}} + unit, product);\n    write_log({{log}} + unit, log);"),
    };
    kernel.number("rows", rows)?.number("units", units)?.iterations(rows)?.launch(units)
}
