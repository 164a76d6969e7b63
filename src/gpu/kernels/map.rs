//! The elementwise family: one WGSL expression over up to four operands, any strides, any dtypes.
//!
//! Operands are called `x`, `y`, `z`, `w`, converted to the compute type; the result is converted to the output's
//! dtype. In place is allowed: an operand that is the output's own buffer is read through the output's binding, and
//! one that overlaps it differently is copied first. Tensors beyond a binding's limit are split.

use super::element::{self, Access, lanes};
use super::params::{GROUP, declare_params, scalar_from, scalar_words, u32_param, word};
use super::template::{Compute, render};
use super::view::{Input, View, halves, resized};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::driver::{GpuBuffer, Key, Launch, Params, Shader, too_large};
use crate::layout::{Dims, coalesce, contiguous_strides, memory_order};
use smallvec::SmallVec;
use std::fmt::Write;

const NAMES: [&str; 4] = ["x", "y", "z", "w"];
/// Units of an invocation where there are at least `LARGE`: what starting it costs is as much as what it does.
const EACH: usize = 4;
const LARGE: usize = 1 << 19;
const TEMPLATE: &str = include_str!("../../../shaders/map.wgsl");

/// What an operand is to the generated code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Scalar,
    Buffer(DType),
    /// The output's own buffer.
    Output(DType),
}

/// A variant of the kernel: everything that the WGSL depends on.
pub(super) struct Variant<'a> {
    pub expr: &'static str,
    pub compute: Compute,
    pub operands: &'a [Operand],
    pub out: DType,
    /// Dimensions to decompose an index into; 0 where every operand is walked with stride one.
    pub rank: usize,
    pub out_contiguous: bool,
    /// Units of an invocation.
    pub each: usize,
}

/// `out[i] = expr(inputs[i]...)` over `shape`; input strides are over `shape`, zero where broadcast.
pub fn map(shape: &[usize], inputs: &[Input], out: &View, compute: DType, expr: &'static str) -> Result<()> {
    out.require(compute)?;
    out.require_own()?;
    for input in inputs {
        if let Input::View(v) = input {
            out.require(v.dtype)?;
        }
    }
    let compute = match compute {
        DType::Bool => Compute::Bool,
        d => Compute::of(d).ok_or_else(|| Error::internal("no compute type"))?,
    };
    run(shape, inputs, out, compute, expr)
}

/// `start + i * step` for element `i` of a contiguous `out`.
pub fn ramp(start: Scalar, step: Scalar, out: &View) -> Result<()> {
    tabulate(&[start, step], RAMP, out)
}

/// The numbers from `start` to `end` at equal distances, each computed from the nearer end.
pub fn line(start: f64, end: f64, out: &View) -> Result<()> {
    let last = out.numel().max(2) - 1;
    let numbers = [start, (end - start) / last as f64, end, last as f64].map(Scalar::Float);
    tabulate(&numbers, LINE, out)
}
pub(super) const RAMP: &str = "x + y * T(e + p[0].z)";
pub(super) const LINE: &str = "select(x + y * T(e + p[0].z), z - y * (w - T(e + p[0].z)), T(2 * (e + p[0].z)) > w)";

/// An expression of the position in a contiguous output.
fn tabulate(numbers: &[Scalar], expr: &'static str, out: &View) -> Result<()> {
    out.require_own()?;
    let compute = match Compute::of(out.dtype) {
        Some(Compute::I32) if out.driver().caps().int64 => Compute::I64,
        compute => compute.ok_or_else(|| Error::internal("no compute type"))?,
    };
    let inputs: SmallVec<[Input; 4]> = numbers.iter().map(|s| Input::Scalar(*s)).collect();
    run(out.shape, &inputs, out, compute, expr)
}

/// Copies with a cast, strided on both sides; a scalar fills. Equal dtypes are copied as bits, whatever they are.
pub fn copy(src: &Input, out: &View) -> Result<()> {
    match src {
        Input::View(v) if v.dtype == out.dtype => {
            let (shape, strides, kind, scale) = as_u32_elements(v);
            let (_, out_strides, ..) = as_u32_elements(out);
            let src = View { dtype: kind, shape: &shape, strides: &strides, offset: v.offset * scale, ..*v };
            let dst = View { dtype: kind, shape: &shape, strides: &out_strides, offset: out.offset * scale, ..*out };
            run(&shape, &[Input::View(src)], &dst, Compute::I32, "x")
        }
        Input::View(v) => {
            out.require(v.dtype)?;
            out.require_own()?;
            let compute = Compute::of(v.dtype).ok_or_else(|| Error::internal("no compute type"))?;
            run(out.shape, &[*src], out, compute, "x")
        }
        Input::Scalar(_) => {
            out.require_own()?;
            let compute = Compute::of(out.dtype).ok_or_else(|| Error::internal("no compute type"))?;
            run(out.shape, &[*src], out, compute, "x")
        }
    }
}

/// A view as integers of its element size; 8 and 16 bytes become a last dimension of words.
pub(super) fn as_u32_elements(v: &View) -> (Dims, Dims, DType, usize) {
    let (mut shape, mut strides) = (Dims::from(v.shape), Dims::from(v.strides));
    let kind = match v.dtype.size() {
        1 => DType::U8,
        2 => DType::I16,
        _ => DType::I32,
    };
    let scale = (v.dtype.size() / 4).max(1);
    if scale > 1 {
        strides.iter_mut().for_each(|s| *s *= scale);
        shape.push(scale);
        strides.push(1);
    }
    (shape, strides, kind, scale)
}

fn run(shape: &[usize], inputs: &[Input], out: &View, compute: Compute, expr: &'static str) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    if inputs.len() > NAMES.len() {
        return Err(Error::internal("an elementwise kernel takes at most four operands"));
    }
    let zeros: Dims = SmallVec::from_elem(0, shape.len());
    let of = |i: usize| match inputs.get(i) {
        Some(Input::View(v)) => v.strides,
        _ => &zeros[..],
    };
    // Invocations follow each other in the memory of the output.
    let order = memory_order(shape, out.strides);
    let pick = |list: &[usize]| order.iter().map(|&d| list[d]).collect::<Dims>();
    let all = [of(0), of(1), of(2), of(3), out.strides].map(pick);
    let (shape, strides) = coalesce::<5>(&pick(shape), std::array::from_fn(|k| &all[k][..]));
    let offset = |i: &Input| if let Input::View(v) = i { v.offset } else { 0 };
    let mut offsets = [0; 5];
    inputs.iter().enumerate().for_each(|(i, input)| offsets[i] = offset(input));
    offsets[4] = out.offset;
    piece(&Job { inputs, out: *out, compute, expr }, &shape, &strides, offsets)
}

struct Job<'a> {
    inputs: &'a [Input<'a>],
    out: View<'a>,
    compute: Compute,
    expr: &'static str,
}

/// Runs a part of the job, halving it while an operand reaches further than a binding may.
fn piece(job: &Job, shape: &[usize], strides: &[Dims; 5], offsets: [usize; 5]) -> Result<()> {
    let out = View { shape, strides: &strides[4], offset: offsets[4], ..job.out };
    let mut views: [Option<View>; 4] = [None; 4];
    for (i, input) in job.inputs.iter().enumerate() {
        if let Input::View(v) = input {
            views[i] = Some(View { shape, strides: &strides[i], offset: offsets[i], ..*v });
        }
    }
    if out.numel() < 1 << 31 && out.fits() && views.iter().flatten().all(View::fits) {
        return one(job, &out, &views);
    }
    let Some(d) = shape.iter().position(|&n| n > 1) else { return Err(too_large()) };
    for (start, len) in halves(shape[d]) {
        let part = resized(shape, d, len);
        piece(job, &part, strides, std::array::from_fn(|i| offsets[i] + start * strides[i].get(d).unwrap_or(&0)))?;
    }
    Ok(())
}

/// How an input that lies in the output's buffer may be read.
fn clashes(input: &View, out: &View, whole: bool) -> bool {
    let same = input.dtype == out.dtype && input.offset == out.offset && input.strides == out.strides;
    let ((a0, a1), (b0, b1)) = (input.span(), out.span());
    let apart = input.dtype == out.dtype && (a1 <= b0 || b1 <= a0);
    !(whole && (same || apart))
}

fn one(job: &Job, out: &View, views: &[Option<View>; 4]) -> Result<()> {
    let n = out.numel();
    let fresh = contiguous_strides(out.shape);
    let mut operands: SmallVec<[Operand; 4]> = SmallVec::from_elem(Operand::Scalar, job.inputs.len());
    let mut copies: [Option<GpuBuffer>; 4] = [const { None }; 4];
    let mut views = *views;
    for ((operand, view), stage) in operands.iter_mut().zip(&mut views).zip(&mut copies) {
        let Some(view) = view else { continue };
        if !std::ptr::eq(view.driver(), out.driver()) {
            return Err(Error::internal("an elementwise kernel over two devices"));
        }
        *operand = Operand::Buffer(view.dtype);
        if view.buffer.id() == out.buffer.id() {
            if clashes(view, out, out.is_whole()) {
                let buffer = stage.insert(out.scratch(n * view.dtype.size())?);
                let copied = View { buffer, strides: &fresh, offset: 0, ..*view };
                copy(&Input::View(*view), &copied)?;
                *view = copied;
            } else {
                *operand = Operand::Output(view.dtype);
            }
        }
    }
    let unit = |s: &[usize]| s.len() <= 1 && s.first().is_none_or(|&s| s == 1);
    let flat = unit(out.strides) && views.iter().flatten().all(|v| unit(v.strides));
    let rank = if flat { 0 } else { out.shape.len() };
    let out_contiguous = out.strides == &fresh[..];
    let mut variant = Variant {
        expr: job.expr,
        compute: job.compute,
        operands: &operands,
        out: out.dtype,
        rank,
        out_contiguous,
        each: 1,
    };
    let units = variant.units(out)?;
    if units >= LARGE {
        variant.each = EACH;
    }
    let launch = prepare(job, &variant, out, &views, units)?;
    out.driver().launch(&launch)
}

/// The dispatch as a value. An operand in the output's own buffer is not bound again.
fn prepare<'a>(
    job: &Job,
    variant: &'a Variant,
    out: &View<'a>,
    views: &[Option<View<'a>>; 4],
    units: usize,
) -> Result<Launch<'a>> {
    let n = out.numel();
    let (out_bind, out_offset) = out.bind().ok_or_else(too_large)?;
    let before = u32_param(out.offset - job.out.offset)?;
    let mut params = Params::from_slice(&[u32_param(n)?, u32_param(out_offset)?, before, 0]);
    let mut binds = SmallVec::new();
    for ((input, operand), view) in job.inputs.iter().zip(variant.operands).zip(views) {
        match (input, operand, view) {
            (Input::Scalar(s), ..) => params.extend(scalar_words(*s, job.compute)),
            (_, Operand::Buffer(_), Some(view)) => {
                let (bind, offset) = view.bind().ok_or_else(too_large)?;
                binds.push(bind);
                params.extend([u32_param(offset)?, 0]);
            }
            // Only a buffer that is bound as a whole is read through the output's binding.
            (.., view) => params.extend([u32_param(view.map_or(0, |v| v.offset))?, 0]),
        }
    }
    let rank = variant.rank;
    if rank > 0 {
        let zeros: Dims = SmallVec::from_elem(0, rank);
        push_all(&mut params, out.shape)?;
        for view in &views[..job.inputs.len()] {
            push_all(&mut params, view.as_ref().map_or(&zeros[..], |v| v.strides))?;
        }
        push_all(&mut params, out.strides)?;
    }
    let reads = binds.len();
    binds.push(out_bind);
    Ok(Launch {
        key: variant.key(),
        shader: variant,
        binds,
        reads,
        params,
        groups: units.div_ceil(GROUP * variant.each),
        may_fault: false,
    })
}

fn push_all(params: &mut Params, list: &[usize]) -> Result<()> {
    for &n in list {
        params.push(u32_param(n)?);
    }
    Ok(())
}

impl Variant<'_> {
    /// Whether an invocation owns whole words of the output.
    fn words(&self) -> bool {
        self.out_contiguous && lanes(self.out) > 1
    }
    /// Words or elements of the output.
    fn units(&self, out: &View) -> Result<usize> {
        let offset = out.bind().ok_or_else(too_large)?.1;
        Ok(if self.words() { element::words(out.dtype, offset, out.numel()) } else { out.numel() })
    }
    fn key(&self) -> Key {
        let mut key = Key::default();
        key.fixed("map");
        key.fixed(self.expr);
        let operands = self.operands.iter().fold(0, |word, operand| {
            let (kind, dtype) = match operand {
                Operand::Scalar => (0, 0),
                Operand::Buffer(d) => (1, *d as u64),
                Operand::Output(d) => (2, *d as u64),
            };
            word << 16 | kind << 8 | dtype
        });
        key.word(operands);
        let shape = self.each << 1 | self.out_contiguous as usize;
        let counts = [self.operands.len(), self.compute as usize, self.out as usize, shape];
        key.word(counts.iter().fold(self.rank as u64, |word, &n| word << 8 | n as u64));
        key
    }
    /// Takes the element number `e` apart into one coordinate per dimension.
    fn coordinates(&self) -> String {
        let shape_at = |d: usize| word(4 + 2 * self.operands.len() + d);
        let mut text = String::new();
        let mut rest = "e".to_string();
        for d in (1..self.rank).rev() {
            let _ = writeln!(text, "    let q{d} = {rest} / {0};\n    let c{d} = {rest} - q{d} * {0};", shape_at(d));
            rest = format!("q{d}");
        }
        if self.rank > 0 {
            let _ = writeln!(text, "    let c0 = {rest};");
        }
        text
    }
    /// What an invocation does from its first unit on.
    fn body(&self, units: &str) -> String {
        let mut text = "    let v0 = make(unit);\n".to_string();
        for i in 1..self.each {
            let _ = writeln!(text, "    let v{i} = make(min(unit + {}u, {units} - 1u));", GROUP * i);
        }
        text += "    put(unit, v0);\n";
        for i in 1..self.each {
            let at = GROUP * i;
            let _ = writeln!(text, "    if (unit + {at}u < {units}) {{ put(unit + {at}u, v{i}); }}");
        }
        text
    }
    /// The index of operand `i` at the coordinates.
    fn index(&self, offset: &str, i: usize) -> String {
        if self.rank == 0 || (i == self.operands.len() && self.out_contiguous) {
            return format!("{offset} + e");
        }
        let base = 4 + 2 * self.operands.len() + self.rank * (i + 1);
        let terms: String = (0..self.rank).map(|d| format!(" + c{d} * {}", word(base + d))).collect();
        format!("{offset}{terms}")
    }
}

impl Shader for Variant<'_> {
    fn name(&self) -> String {
        let mut name = format!("map {} in {:?}:", self.expr, self.compute);
        for operand in self.operands {
            let _ = match operand {
                Operand::Scalar => write!(name, " number"),
                Operand::Buffer(d) => write!(name, " {}", d.short()),
                Operand::Output(_) => write!(name, " out"),
            };
        }
        let packing = if self.out_contiguous { "" } else { " strided" };
        let _ = write!(name, " -> {}{packing} rank {}", self.out.short(), self.rank);
        name
    }

    fn source(&self) -> String {
        let access = if lanes(self.out) > 1 && !self.out_contiguous { Access::Atomic } else { Access::Write };
        let base = 4 + 2 * self.operands.len();
        let words = base + self.rank * (self.operands.len() + 2);
        let (mut declared, mut values) = (declare_params(words), String::new());
        let mut binding = 0;
        for (i, operand) in self.operands.iter().enumerate() {
            let name = NAMES[i];
            let value = match *operand {
                Operand::Scalar => scalar_from(4 + 2 * i, self.compute),
                Operand::Buffer(dtype) => {
                    binding += 1;
                    let var = format!("buffer_{name}");
                    declared += &element::declare(binding, &var, dtype, Access::Read);
                    declared += &element::reader(name, &var, dtype, Access::Read, self.compute);
                    format!("read_{name}({})", self.index(&word(4 + 2 * i), i))
                }
                Operand::Output(dtype) => {
                    declared += &element::reader(name, "buffer_out", dtype, access, self.compute);
                    format!("read_{name}({})", self.index(&word(4 + 2 * i), i))
                }
            };
            let _ = writeln!(values, "    let {name} = {value};");
        }
        declared += &element::declare(binding + 1, "buffer_out", self.out, access);
        let (ty, make, put) = if self.words() {
            declared += &element::word_writer("out", "buffer_out", self.out, self.compute);
            let [n, first] = [word(0), word(1)];
            ("u32", format!("return pack_out(e, {n}, {first});"), format!("write_words_out(e, {n}, {first}, v);"))
        } else {
            declared += &element::writer("out", "buffer_out", self.out, self.compute);
            let at = self.index(&word(1), self.operands.len());
            ("T", "return value(e);".to_string(), format!("{}    write_out({at}, v);", self.coordinates()))
        };
        let unit = format!("fn make(e: u32) -> {ty} {{\n    {make}\n}}\nfn put(e: u32, v: {ty}) {{\n    {put}\n}}");
        let units = if self.words() {
            format!("({0} % {1}u + {2} + {1}u - 1u) / {1}u", word(1), lanes(self.out), word(0))
        } else {
            word(0)
        };
        let holes = [
            ("declarations", declared.as_str()),
            ("coordinates", &self.coordinates()),
            ("values", &values),
            ("expr", self.expr),
            ("units", &units),
            ("unit", &unit),
            ("body", &self.body(&units)),
            ("span", &(GROUP * self.each).to_string()),
        ];
        render(TEMPLATE, self.compute, &holes)
    }
}
