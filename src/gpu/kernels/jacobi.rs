//! Jacobi's method for singular values and for eigenvalues of symmetric matrices.
//!
//! Each sweep turns every pair of rows once, in rounds of pairs that have no row in common: a workgroup has a pair (Brent and
//! Luk 1985).

use super::element::compute_of;
use super::kernel::Kernel;
use super::view::View;
use crate::dtype::Scalar;
use crate::error::Result;

const ROWS: &str = include_str!("../../../shaders/jacobi.wgsl");
const COLUMNS: &str = include_str!("../../../shaders/jacobi_columns.wgsl");

/// Pair `k` of a round in which the last of an even number of rows stays and the others move on by one.
const PAIRS: &str = "fn pair_of(k: u32) -> vec2<u32> {
    let others = {{even}} - 1u;
    let x = select(({{round}} + k) % others, others, k == 0u);
    let y = ({{round}} + others - k) % others;
    return vec2<u32>(min(x, y), max(x, y));
}";
const GRAM: &str = "if (live) {
        for (var i = lane; i < {{length}}; i += LANES) {
            let x = read_rows(one + i);
            let y = read_rows(two + i);
            a += x * x;
            b += y * y;
            c += x * y;
        }
    }
    parts[lane] = a;
    parts[LANES + lane] = b;
    parts[2u * LANES + lane] = c;
    for (var n = LANES / 2u; n > 0u; n = n >> 1u) {
        workgroupBarrier();
        if (lane < n) {
            parts[lane] += parts[lane + n];
            parts[LANES + lane] += parts[LANES + lane + n];
            parts[2u * LANES + lane] += parts[2u * LANES + lane + n];
        }
    }
    workgroupBarrier();
    a = parts[0];
    b = parts[LANES];
    c = parts[2u * LANES];";
const ENTRIES: &str = "if (live) {
        a = read_rows(one + pair.x);
        b = read_rows(two + pair.y);
        c = read_rows(one + pair.y);
    }";

const KEEP: &str = "write_rotations({{rotations}} + 2u * at, half);
        write_rotations({{rotations}} + 2u * at + 1u, select(T(0), sine, turns));";

/// Rows `[.., n, width]` (dense) whose first elements are turned until they are orthogonal, or, for a symmetric matrix, until it
/// is diagonal; the largest number in them is about one.
#[derive(Clone, Copy, PartialEq)]
pub enum Jacobi {
    Orthogonal(usize),
    Symmetric,
}

/// One sweep; `flags` (int32, dense, `[.., pairs]`) receives ones for pairs that were turned. `rotations` is room for two numbers
/// for each pair.
pub fn sweep(kind: Jacobi, rows: &View, flags: &View, rotations: &View) -> Result<()> {
    rows.require_own()?;
    let rank = rows.shape.len();
    let ([order, width], units) = ([rows.shape[rank - 2], rows.shape[rank - 1]], flags.numel());
    let even = order.next_multiple_of(2);
    if units == 0 {
        return Ok(());
    }
    let epsilon = if rows.dtype.size() == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    // Products of long rows are rounded more often; those of rows that are zero but for rounding do not count.
    let least = match kind {
        Jacobi::Orthogonal(length) => epsilon * (length as f64).sqrt(),
        Jacobi::Symmetric => epsilon / 2.0,
    };
    for round in 0..even - 1 {
        let kernel =
            Kernel::new("jacobi", ROWS, compute_of(rows.dtype)?).write("rows", *rows).write_index("flags", *flags);
        let kernel = match kind {
            Jacobi::Orthogonal(length) => kernel
                .part("orthogonal", "products", GRAM)
                .text("least", "max({{eps}} * sqrt_(a) * sqrt_(b), {{eps}} * {{eps}})")
                .text("keep", "")
                .number("length", length)?
                .iterations(2 * width.div_ceil(64) + 8)?,
            Jacobi::Symmetric => kernel
                .part("symmetric", "products", ENTRIES)
                .text("least", "{{eps}}")
                .text("keep", KEEP)
                .write("rotations", *rotations)
                .iterations(width.div_ceil(64))?,
        };
        numbers(kernel, [order, width, even, round])?
            .scalar("eps", Scalar::Float(least))
            .number("units", units)?
            .launch_groups(units)?;
        if kind == Jacobi::Symmetric {
            let units = rows.shape[..rank - 1].iter().product::<usize>() * (even / 2);
            let kernel = Kernel::new("jacobi_columns", COLUMNS, compute_of(rows.dtype)?).read("rotations", *rotations);
            numbers(kernel.write("rows", *rows), [order, width, even, round])?.number("units", units)?.launch(units)?;
        }
    }
    Ok(())
}

fn numbers<'a>(kernel: Kernel<'a>, [order, width, even, round]: [usize; 4]) -> Result<Kernel<'a>> {
    kernel
        .text("pairs", PAIRS)
        .number("order", order)?
        .number("width", width)?
        .number("pairs_of_each", even / 2)?
        .number("even", even)?
        .number("round", round)
}
