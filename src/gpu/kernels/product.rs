//! The tiles of matrix products, and the launch of one whose operands lie by strides.

use super::element::compute_of;
use super::kernel::Kernel;
use super::params::ITERATIONS;
use super::view::View;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::layout::Dims;
use std::fmt::Write;
use std::sync::LazyLock;

pub(super) const TEMPLATE: &str = include_str!("../../../shaders/matmul.wgsl");

/// Rows, columns and depth of a workgroup's tile, and the rows and columns of one invocation.
pub(super) struct Tile {
    name: &'static str,
    rows: usize,
    cols: usize,
    depth: usize,
    per_row: usize,
    per_col: usize,
    code: LazyLock<Code>,
}
/// What the WGSL says for each of an invocation's elements, written out once for a tile: a compiler need not unroll loops to keep
/// them in registers.
struct Code {
    places: String,
    sums: String,
    fetch: String,
    fetch_next: String,
    store: String,
    multiply: String,
    results: String,
}

macro_rules! tile {
    ($id:ident: $name:literal, $rows:literal x $cols:literal x $depth:literal, $per_row:literal x $per_col:literal) => {
        static $id: Tile = Tile {
            name: $name,
            rows: $rows,
            cols: $cols,
            depth: $depth,
            per_row: $per_row,
            per_col: $per_col,
            code: LazyLock::new(|| $id.code()),
        };
    };
}
tile!(LARGE: "128x128", 128 x 128 x 8, 8 x 8);
tile!(MEDIUM: "64x64", 64 x 64 x 16, 4 x 4);
tile!(SMALL: "32x32", 32 x 32 x 16, 2 x 2);
tile!(SHORT: "16x64", 16 x 64 x 16, 4 x 4);
tile!(NARROW: "64x16", 64 x 16 x 16, 4 x 4);
tile!(FLAT: "4x64", 4 x 64 x 16, 1 x 1);
tile!(TALL: "64x4", 64 x 4 x 16, 1 x 1);

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
    pub(super) fn groups(&self, m: usize, n: usize, batch: usize) -> usize {
        batch * m.div_ceil(self.rows) * n.div_ceil(self.cols)
    }
    /// Into how many pieces the inner dimension of `[batch, m, n, k]` is cut: as many as a kernel's loops, or a busy device, need.
    pub(super) fn pieces(&self, [batch, m, n, k]: [usize; 4]) -> usize {
        let busy = if k >= DEEP { (BUSY / self.groups(m, n, batch).max(1)).min(k / (DEEP / 2)) } else { 1 };
        k.div_ceil(DEEPEST).max(busy)
    }
    /// Launches a product whose operands and their places are in the kernel. Whether neighbouring invocations read
    /// neighbours along the inner dimension of `a`, and along the columns of `b`, is `a_first` and `b_first`.
    pub(super) fn launch(
        &'static self,
        kernel: Kernel,
        [batch, m, n, k]: [usize; 4],
        a_first: bool,
        b_first: bool,
    ) -> Result<()> {
        let mut kernel = kernel
            .number("batch", batch)?
            .number("m", m)?
            .number("n", n)?
            .number("k", k)?
            .number("tiles_m", m.div_ceil(self.rows))?
            .number("tiles_n", n.div_ceil(self.cols))?;
        for (name, value) in [
            ("TM", self.rows),
            ("TN", self.cols),
            ("TK", self.depth),
            ("RM", self.per_row),
            ("RN", self.per_col),
            ("W", self.width()),
            ("lanes", self.lanes()),
            ("ACROSS", self.across()),
            ("DOWN", (self.rows / self.per_row).min(32 / self.across())),
        ] {
            kernel = kernel.constant(name, value);
        }
        let code = &*self.code;
        kernel
            .text("a_first", if a_first { "true" } else { "false" })
            .text("b_first", if b_first { "true" } else { "false" })
            .part(self.name, "V", ["T", "vec2<T>", "", "vec4<T>"][self.width() - 1])
            .part(self.name, "places", code.places.as_str())
            .part(self.name, "sums", code.sums.as_str())
            .part(self.name, "fetch", code.fetch.as_str())
            .part(self.name, "fetch_next", code.fetch_next.as_str())
            .part(self.name, "store", code.store.as_str())
            .part(self.name, "multiply", code.multiply.as_str())
            .part(self.name, "results", code.results.as_str())
            .launch_groups(self.groups(m, n, batch))
    }
    fn code(&self) -> Code {
        Code {
            places: self.places(),
            sums: self.sums(),
            fetch: self.fetch(true),
            fetch_next: self.fetch(false),
            store: self.store(),
            multiply: self.multiply(),
            results: self.results(),
        }
    }
    fn across(&self) -> usize {
        (self.cols / self.per_col).min(8)
    }
    fn lanes(&self) -> usize {
        self.rows * self.cols / (self.per_row * self.per_col)
    }
    /// Elements of shared memory that an invocation reads at once.
    fn width(&self) -> usize {
        self.per_row.min(self.per_col).min(4)
    }
    fn sums(&self) -> String {
        let mut text = String::new();
        for i in 0..self.per_row {
            for j in 0..self.per_col / self.width() {
                let _ = writeln!(text, "    var s{i}_{j} = V();");
            }
        }
        text
    }
    /// The parts of both tiles that an invocation brings: the number of each, and whether all invocations have one.
    fn shares(&self) -> [(&'static str, usize, bool); 2] {
        [("a", self.rows), ("b", self.cols)].map(|(name, extent)| {
            let count = extent * self.depth / self.width();
            (name, count.div_ceil(self.lanes()), !count.is_multiple_of(self.lanes()))
        })
    }
    /// Where an invocation's parts lie: in the tile, and, as far as rows and columns say, in memory. What lies beyond the
    /// matrices is read at their edge, and its products are never written.
    fn places(&self) -> String {
        let mut text = String::new();
        for (name, count, _) in self.shares() {
            let (extent, first, edge, swapped) = match name {
                "a" => ("TM", "row0", "{{m}}", "{{a_first}}"),
                _ => ("TN", "col0", "{{n}}", "!{{b_first}}"),
            };
            for s in 0..count {
                let _ = writeln!(
                    text,
                    "    let {name}_i{s} = lane + {s}u * LANES;
    let {name}_r{s} = select({name}_i{s} % ({extent} / W), {name}_i{s} / TK, {swapped});
    let {name}_d{s} = select({name}_i{s} / ({extent} / W), {name}_i{s} % TK, {swapped});"
                );
                for j in 0..self.width() {
                    let _ = writeln!(
                        text,
                        "    let {name}_at{s}_{j} = from_{name} + of_{name}(min({first} + W * {name}_r{s} + {j}u, {edge} - 1u));"
                    );
                }
            }
        }
        text
    }
    /// Reads an invocation's parts at `depth` into registers; zeros beyond the inner dimension.
    fn fetch(&self, declare: bool) -> String {
        let mut text = String::new();
        for (name, count, _) in self.shares() {
            for s in 0..count {
                let var = if declare { "var " } else { "" };
                let _ = writeln!(text, "    {var}next_{name}{s} = V();\n    if (depth + {name}_d{s} < {{{{k}}}}) {{");
                let _ = writeln!(text, "        let d = {name}_d{s};\n        let inner = {{{{inner_{name}}}}};");
                for j in 0..self.width() {
                    let part = self.component(j);
                    let _ = writeln!(text, "        next_{name}{s}{part} = read_{name}({name}_at{s}_{j} + inner);");
                }
                text += "    }\n";
            }
        }
        text
    }
    /// Writes them to shared memory.
    fn store(&self) -> String {
        let mut text = String::new();
        for (name, count, partial) in self.shares() {
            let (line, extent) = if name == "a" { ("LINE_A", "TM") } else { ("LINE_B", "TN") };
            for s in 0..count {
                let guard = if partial { format!("if ({name}_i{s} < TK * {extent} / W) ") } else { String::new() };
                let _ = writeln!(
                    text,
                    "        {guard}{{ tile_{name}[{name}_d{s} * {line} + {name}_r{s}] = next_{name}{s}; }}"
                );
            }
        }
        text
    }
    /// How the WGSL names one of the elements that are read at once.
    fn component(&self, i: usize) -> &'static str {
        if self.width() == 1 { "" } else { [".x", ".y", ".z", ".w"][i] }
    }
    /// One of the inner dimension: what is read of shared memory, and its products.
    fn multiply(&self) -> String {
        let (w, mut text) = (self.width(), String::new());
        for i in 0..self.per_row / w {
            let _ = writeln!(text, "            let a{i} = tile_a[d * LINE_A + row + {i}u * (TM / RM)];");
        }
        for j in 0..self.per_col / w {
            let _ = writeln!(text, "            let b{j} = tile_b[d * LINE_B + col + {j}u * (TN / RN)];");
        }
        for i in 0..self.per_row {
            let part = self.component(i % w);
            for j in 0..self.per_col / w {
                let _ = writeln!(text, "            s{i}_{j} += a{}{part} * b{j};", i / w);
            }
        }
        text
    }
    fn results(&self) -> String {
        let (w, mut text) = (self.width(), String::new());
        for (name, from, lane, step, count) in
            [("r", "row0", "row", "(TM / RM)", self.per_row), ("c", "col0", "col", "(TN / RN)", self.per_col)]
        {
            let hole = if name == "r" { "row" } else { "col" };
            for i in 0..count {
                let _ = writeln!(
                    text,
                    "    let {name}{i} = {from} + W * ({lane} + {}u * {step}) + {}u;\n    let {name}_at{i} = out_{hole}_at({name}{i});",
                    i / w,
                    i % w
                );
            }
        }
        for i in 0..self.per_row {
            for j in 0..self.per_col {
                let part = self.component(j % w);
                let _ = writeln!(
                    text,
                    "    finish(batch, r{i}, c{j}, from_out + r_at{i} + c_at{j}, s{i}_{}{part});",
                    j / w
                );
            }
        }
        text
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
    let mut kernel = Kernel::new("matmul", TEMPLATE, compute_of(out.dtype)?)
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
