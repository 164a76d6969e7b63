//! How elements lie in buffers, as WGSL: declarations, readers and writers per dtype.
//!
//! float32, int32, int64 and float64 are arrays of their own type. Narrower dtypes share 32-bit words: a reader
//! shifts its lane out; a writer either owns whole words or, where a strided output shares words between
//! invocations, clears and sets its lane by atomics.

use super::template::Compute;
use crate::dtype::DType;
use crate::error::{Error, Result};

impl Compute {
    /// The type that a dtype is read as; `None` for what shaders do not compute in.
    pub fn of(dtype: DType) -> Option<Compute> {
        Some(match dtype {
            DType::F16 | DType::BF16 | DType::F32 => Compute::F32,
            DType::F64 => Compute::F64,
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 => Compute::I32,
            DType::I64 => Compute::I64,
            _ => return None,
        })
    }
}

pub(super) fn compute_of(dtype: DType) -> Result<Compute> {
    Compute::of(dtype).ok_or_else(|| Error::internal(format!("GPU kernels do not compute in {dtype}")))
}

/// The dtype in which partial results of a compute type are kept.
pub(super) fn dtype_of(compute: Compute) -> DType {
    match compute {
        Compute::F32 => DType::F32,
        Compute::F64 => DType::F64,
        Compute::I32 | Compute::Bool => DType::I32,
        Compute::I64 => DType::I64,
    }
}

/// Elements in a 32-bit word: 1, 2 or 4.
pub(super) const fn lanes(dtype: DType) -> usize {
    match dtype.size() {
        1 => 4,
        2 => 2,
        _ => 1,
    }
}

/// How a kernel touches a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Words shared between invocations.
    Atomic,
    /// Elements shared between invocations.
    Update,
}

fn stored(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::I32 => "i32",
        DType::I64 => "i64",
        _ => "u32",
    }
}

/// `@group(0) @binding(i) var<storage, ...> name: array<...>;`
pub(super) fn declare(binding: usize, name: &str, dtype: DType, access: Access) -> String {
    let (mode, of) = match access {
        Access::Read => ("read", stored(dtype).to_string()),
        Access::Write => ("read_write", stored(dtype).to_string()),
        Access::Atomic => ("read_write", format!("atomic<{}>", stored(dtype))),
        Access::Update => ("read_write", "atomic<u32>".to_string()),
    };
    format!("@group(0) @binding({binding}) var<storage, {mode}> {name}: array<{of}>;\n")
}

/// `fn read_{name}(i: u32) -> compute`: element `i` of the buffer `var`, converted.
pub(super) fn reader(name: &str, var: &str, dtype: DType, access: Access, compute: Compute) -> String {
    let word = |index: &str| match access {
        Access::Atomic => format!("atomicLoad(&{var}[{index}])"),
        _ => format!("{var}[{index}]"),
    };
    let value = decode(dtype, &word(["i", "i >> 1u", "i >> 2u"][lanes(dtype) / 2]));
    let from = Compute::of(dtype).unwrap_or(Compute::I32);
    format!("fn read_{name}(i: u32) -> {} {{ return {}; }}\n", compute.name(), cast(from, compute, &value))
}

/// Element `i` out of its word, in the dtype's own compute type.
fn decode(dtype: DType, word: &str) -> String {
    let byte = "(i & 3u) * 8u";
    let half = "(i & 1u) * 16u";
    match dtype {
        // A byte that came from elsewhere is true whatever it is, if it is not zero.
        DType::Bool => format!("select(0, 1, extractBits({word}, {byte}, 8u) != 0u)"),
        DType::U8 => format!("i32(extractBits({word}, {byte}, 8u))"),
        DType::I8 => format!("extractBits(bitcast<i32>({word}), {byte}, 8u)"),
        DType::I16 => format!("extractBits(bitcast<i32>({word}), {half}, 16u)"),
        DType::F16 => format!("f16_to_f32(extractBits({word}, {half}, 16u))"),
        DType::BF16 => format!("bitcast<f32>(extractBits({word}, {half}, 16u) << 16u)"),
        _ => word.to_string(),
    }
}

/// An expression of one compute type as another, with x86's results where a float does not fit an integer.
pub(super) fn cast(from: Compute, to: Compute, value: &str) -> String {
    use Compute::*;
    match (from, to) {
        (a, Bool) if a != Bool => format!("i32(truth_{}({value}))", a.name()),
        (a, b) if a.name() == b.name() => value.to_string(),
        (F32 | F64, I32 | I64) => format!("{}_to_{}({value})", from.name(), to.name()),
        _ => format!("{}({value})", to.name()),
    }
}

/// `fn encode_{name}(v: compute) -> u32`: the bits of a narrow dtype, in the low end of a word.
fn encoder(name: &str, dtype: DType, compute: Compute) -> String {
    let bits = match dtype {
        DType::Bool => format!("select(0u, 1u, truth_{}(v))", compute.name()),
        DType::F16 => format!("f32_to_f16({})", cast(compute, Compute::F32, "v")),
        DType::BF16 => format!("f32_to_bf16({})", cast(compute, Compute::F32, "v")),
        DType::U8 | DType::I8 => format!("bitcast<u32>({}) & 0xffu", cast(compute, Compute::I32, "v")),
        _ => format!("bitcast<u32>({}) & 0xffffu", cast(compute, Compute::I32, "v")),
    };
    format!("fn encode_{name}(v: {}) -> u32 {{ return {bits}; }}\n", compute.name())
}

/// `fn write_{name}(i: u32, v: compute)`: stores one element. Narrow dtypes need `Access::Atomic`.
pub(super) fn writer(name: &str, var: &str, dtype: DType, compute: Compute) -> String {
    let ty = compute.name();
    if lanes(dtype) == 1 {
        let to = Compute::of(dtype).unwrap_or(Compute::I32);
        return format!("fn write_{name}(i: u32, v: {ty}) {{ {var}[i] = {}; }}\n", cast(compute, to, "v"));
    }
    let (shift, bits) = if lanes(dtype) == 4 { (2, 8) } else { (1, 16) };
    let (low, mask) = (lanes(dtype) - 1, (1u32 << bits) - 1);
    format!(
        "{}fn write_{name}(i: u32, v: {ty}) {{\n    let at = (i & {low}u) * {bits}u;\n    \
         atomicAnd(&{var}[i >> {shift}u], ~({mask}u << at));\n    \
         atomicOr(&{var}[i >> {shift}u], encode_{name}(v) << at);\n}}\n",
        encoder(name, dtype, compute)
    )
}

/// `fn pack_{name}(unit, n, first)`: the elements of one word, by `value(e)` for element `e` of `n`; `first` is the view's
/// offset. `fn write_words_{name}(unit, n, first, bits)` stores them; lanes outside the view keep what they hold.
pub(super) fn word_writer(name: &str, var: &str, dtype: DType, compute: Compute) -> String {
    let (k, bits) = (lanes(dtype), 32 / lanes(dtype));
    let mask = (1u64 << bits) - 1;
    format!(
        "{}fn pack_{name}(unit: u32, n: u32, first: u32) -> u32 {{
    var bits = 0u;
    for (var j = 0u; j < {k}u; j++) {{
        let e = unit * {k}u + j - first % {k}u;
        if (e < n) {{
            bits |= encode_{name}(value(e)) << (j * {bits}u);
        }}
    }}
    return bits;
}}
fn write_words_{name}(unit: u32, n: u32, first: u32, bits: u32) {{
    let word = first / {k}u + unit;
    var keep = 0u;
    for (var j = 0u; j < {k}u; j++) {{
        keep |= select({mask}u << (j * {bits}u), 0u, unit * {k}u + j - first % {k}u < n);
    }}
    if (keep == 0u) {{
        {var}[word] = bits;
    }} else {{
        {var}[word] = bits | ({var}[word] & keep);
    }}
}}\n",
        encoder(name, dtype, compute)
    )
}

/// Words that a contiguous view of `n` elements at `offset` touches.
pub(super) fn words(dtype: DType, offset: usize, n: usize) -> usize {
    let k = lanes(dtype);
    if n == 0 { 0 } else { (offset % k + n).div_ceil(k) }
}

/// `fn update_{name}(i, v)`: replaces element `i` by the template's `combine(old, v)`, by compare and swap.
pub(super) fn updater(binding: usize, name: &str, var: &str, dtype: DType, compute: Compute) -> String {
    let ty = compute.name();
    let k = lanes(dtype);
    let natural = Compute::of(dtype).unwrap_or(Compute::I32);
    let (old, bits, encode) = if k == 1 {
        let new = cast(compute, natural, "combine(old, v)");
        (format!("bitcast<{}>(word)", natural.name()), format!("bitcast<u32>({new})"), String::new())
    } else {
        let mask = (1u64 << (32 / k)) - 1;
        let at = format!("((i & {}u) * {}u)", k - 1, 32 / k);
        let bits = format!("(word & ~({mask}u << {at})) | (encode_{name}(combine(old, v)) << {at})");
        (decode(dtype, "word"), bits, encoder(name, dtype, compute))
    };
    let old = cast(natural, compute, &old);
    format!(
        "{}{encode}fn update_{name}(i: u32, v: {ty}) {{
    let at = i >> {}u;
    var done = false;
    while (!done) {{
        let word = atomicLoad(&{var}[at]);
        let old = {old};
        done = atomicCompareExchangeWeak(&{var}[at], word, {bits}).exchanged;
    }}
}}\n",
        declare(binding, var, dtype, Access::Update),
        k / 2
    )
}

/// An int64 operand of indices as pairs of words, so that it needs no 64-bit arithmetic: `read_{name}(i)` gives i32
/// (the smallest for what does not fit), `write_{name}(i, v)` stores a non-negative i32.
pub(super) fn index_pairs(binding: usize, name: &str, var: &str, read: bool) -> String {
    let mode = if read { "read" } else { "read_write" };
    let body = if read {
        format!(
            "fn read_{name}(i: u32) -> i32 {{
    let pair = {var}[i];
    let low = bitcast<i32>(pair.x);
    return select(-2147483647 - 1, low, bitcast<i32>(pair.y) == (low >> 31u));
}}\n"
        )
    } else {
        format!("fn write_{name}(i: u32, v: i32) {{ {var}[i] = vec2<u32>(u32(v), 0u); }}\n")
    };
    format!("@group(0) @binding({binding}) var<storage, {mode}> {var}: array<vec2<u32>>;\n{body}")
}
