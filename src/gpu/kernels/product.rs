//! The tiles of matrix products, and the launch of one whose operands lie by strides.

use super::element::compute_of;
use super::kernel::Kernel;
use super::params::ITERATIONS;
use super::product_code::Shape;
use super::view::View;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::layout::Dims;
use std::sync::LazyLock;

/// A workgroup's part of a product.
pub(super) struct Tile {
    name: &'static str,
    shape: Shape,
    template: LazyLock<String>,
}

static LARGE: Tile = Tile::of("128x128", [128, 128, 8], [8, 8], || LARGE.shape.template());
static MEDIUM: Tile = Tile::of("64x64", [64, 64, 16], [4, 4], || MEDIUM.shape.template());
static SMALL: Tile = Tile::of("32x32", [32, 32, 16], [2, 2], || SMALL.shape.template());
static SHORT: Tile = Tile::of("16x64", [16, 64, 16], [4, 4], || SHORT.shape.template());
static NARROW: Tile = Tile::of("64x16", [64, 16, 16], [4, 4], || NARROW.shape.template());
static FLAT: Tile = Tile::of("4x64", [4, 64, 16], [1, 1], || FLAT.shape.template());
static TALL: Tile = Tile::of("64x4", [64, 4, 16], [1, 1], || TALL.shape.template());

/// Workgroups that keep a device busy, and the shortest inner dimension worth cutting.
const BUSY: usize = 256;
const DEEP: usize = 512;
/// The longest inner dimension of one kernel, whose loops turn several times for each of its elements.
const DEEPEST: usize = ITERATIONS;

/// The tile for `[m, k] x [k, n]`.
pub(super) fn tile_for(m: usize, n: usize, batch: usize, dtype: DType) -> &'static Tile {
    match (m, n) {
        (0..=4, _) => &FLAT,
        (_, 0..=4) => &TALL,
        (0..=16, _) => &SHORT,
        (_, 0..=16) => &NARROW,
        _ if dtype.size() == 8 || m.min(n) <= 32 => &SMALL,
        _ if m.min(n) >= 512 && batch * m.div_ceil(128) * n.div_ceil(128) >= BUSY / 2 => &LARGE,
        _ => &MEDIUM,
    }
}

impl Tile {
    const fn of(
        name: &'static str,
        [rows, cols, depth]: [usize; 3],
        [per_row, per_col]: [usize; 2],
        template: fn() -> String,
    ) -> Tile {
        Tile { name, shape: Shape { rows, cols, depth, per_row, per_col }, template: LazyLock::new(template) }
    }
    /// The WGSL of a product in this tile, which a kernel is to be made of.
    pub(super) fn template(&'static self) -> &'static str {
        &self.template
    }
    pub(super) fn groups(&self, m: usize, n: usize, batch: usize) -> usize {
        batch * m.div_ceil(self.shape.rows) * n.div_ceil(self.shape.cols)
    }
    /// Into how many pieces the inner dimension of `[batch, m, n, k]` is cut: as many as a kernel's loops, or a busy device, need.
    pub(super) fn pieces(&self, [batch, m, n, k]: [usize; 4]) -> usize {
        let busy = if k >= DEEP { (BUSY / self.groups(m, n, batch).max(1)).min(k / (DEEP / 2)) } else { 1 };
        k.div_ceil(DEEPEST).max(busy)
    }
    /// Launches a product whose operands and their places are in the kernel, which is made of this tile's template. Whether neighbouring invocations read
    /// neighbours along the inner dimension of `a`, and along the columns of `b`, is `a_first` and `b_first`.
    pub(super) fn launch(
        &self,
        kernel: Kernel,
        [batch, m, n, k]: [usize; 4],
        a_first: bool,
        b_first: bool,
    ) -> Result<()> {
        kernel
            .number("batch", batch)?
            .number("m", m)?
            .number("n", n)?
            .number("k", k)?
            .number("tiles_m", m.div_ceil(self.shape.rows))?
            .number("tiles_n", n.div_ceil(self.shape.cols))?
            .text("a_first", if a_first { "true" } else { "false" })
            .text("b_first", if b_first { "true" } else { "false" })
            .variant(self.name)
            .launch_groups(self.groups(m, n, batch))
    }
}

/// `out = beta * out + alpha * a @ b` by one kernel, as `matmul` describes it.
pub(super) fn run(tile: &'static Tile, a: &View, b: &View, out: &View, alpha: f64, beta: f64) -> Result<()> {
    let rank = out.shape.len();
    let (m, n, k) = (out.shape[rank - 2], out.shape[rank - 1], a.shape[rank - 1]);
    let batch: usize = out.shape[..rank - 2].iter().product();
    let lead = |v: &[usize]| Dims::from(&v[..rank - 2]);
    let shape = lead(out.shape);
    // Neighbouring invocations read neighbouring elements: along k where that is the unit stride of `a`.
    let (a_first, b_first) = (a.strides[rank - 1] <= a.strides[rank - 2], b.strides[rank - 1] <= b.strides[rank - 2]);
    let mut kernel = Kernel::new("matmul", tile.template(), compute_of(out.dtype)?)
        .read("a", *a)
        .read("b", *b)
        .write("out", *out)
        .walk("a", &shape, &lead(a.strides))
        .walk("b", &shape, &lead(b.strides))
        .walk("out", &shape, &lead(out.strides))
        .text("of_a", "r * {{a_row}}")
        .text("of_b", "c * {{b_col}}")
        .text("inner_a", "(depth + d) * {{a_col}}")
        .text("inner_b", "(depth + d) * {{b_row}}")
        .text("out_row_at", "r * {{out_row}}")
        .text("out_col_at", "c * {{out_col}}");
    for (name, stride) in [
        ("a_row", a.strides[rank - 2]),
        ("a_col", a.strides[rank - 1]),
        ("b_row", b.strides[rank - 2]),
        ("b_col", b.strides[rank - 1]),
        ("out_row", out.strides[rank - 2]),
        ("out_col", out.strides[rank - 1]),
    ] {
        kernel = kernel.number(name, stride)?;
    }
    if alpha != 1.0 {
        kernel = kernel.scalar("alpha", Scalar::Float(alpha)).text("scale", "v = {{alpha}} * v;");
    }
    if beta != 0.0 {
        kernel = kernel.scalar("beta", Scalar::Float(beta)).text("old", "v += {{beta}} * read_out(at);");
    }
    tile.launch(kernel, [batch, m, n, k], a_first, b_first)
}
