//! What the WGSL of a tile of a matrix product says for each of an invocation's elements: written out, so that no compiler has to
//! unroll loops to keep them in registers.

use std::fmt::Write;

const TEMPLATE: &str = include_str!("../../../shaders/matmul.wgsl");

/// Rows, columns and depth of a workgroup's tile, and the rows and columns of one invocation.
pub(super) struct Shape {
    pub rows: usize,
    pub cols: usize,
    pub depth: usize,
    pub per_row: usize,
    pub per_col: usize,
}

impl Shape {
    /// `matmul.wgsl` for this tile; other holes stay.
    pub fn template(&self) -> String {
        let sizes = [
            ("TM", self.rows),
            ("TN", self.cols),
            ("TK", self.depth),
            ("RM", self.per_row),
            ("RN", self.per_col),
            ("W", self.width()),
            ("lanes", self.lanes()),
            ("ACROSS", self.across()),
            ("DOWN", self.down()),
        ];
        let parts = [
            ("V", self.vector().to_string()),
            ("places", self.places()),
            ("sums", self.sums()),
            ("fetch", self.fetch(true)),
            ("fetch_next", self.fetch(false)),
            ("store", self.store()),
            ("multiply", self.multiply()),
            ("results", self.results()),
        ];
        let holes = sizes.map(|(name, size)| (name, size.to_string())).into_iter().chain(parts);
        holes.fold(TEMPLATE.to_string(), |text, (name, code)| text.replace(&format!("{{{{{name}}}}}"), &code))
    }
    /// Columns and rows of neighbours, which read shared memory together.
    fn across(&self) -> usize {
        (self.cols / self.per_col).min(8)
    }
    fn down(&self) -> usize {
        (self.rows / self.per_row).min(32 / self.across())
    }
    fn lanes(&self) -> usize {
        self.rows * self.cols / (self.per_row * self.per_col)
    }
    /// Elements of shared memory that an invocation reads at once.
    fn width(&self) -> usize {
        self.per_row.min(self.per_col).min(4)
    }
    /// What is read at once, as WGSL.
    fn vector(&self) -> &'static str {
        match self.width() {
            1 => "T",
            2 => "vec2<T>",
            _ => "vec4<T>",
        }
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
