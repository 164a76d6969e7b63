//! The printed form of a tensor, identical to PyTorch's.
//!
//! A pure function of shape, dtype and an element getter, independent of tensors, devices and graphs. Only the elements
//! shown are read, each once and in print order; from them `number` determines the width and notation that all of them
//! share. Source of the rules: the documentation of `torch.set_printoptions`; the golden file
//! `tests/golden/printing.json` holds PyTorch's output.

mod number;

use self::number::{Column, Notation};
use crate::device::Device;
use crate::dtype::{DType, Scalar, default_dtype};
use std::sync::Mutex;

/// The options of `set_printoptions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Digits after the decimal point.
    pub precision: usize,
    /// Tensors with more elements are summarised; `usize::MAX` means infinity.
    pub threshold: usize,
    /// Elements shown at each end of a summarised dimension.
    pub edgeitems: usize,
    /// Characters per line.
    pub linewidth: usize,
    /// Scientific notation: always, never, or depending on the values.
    pub sci_mode: Option<bool>,
}

impl PrintOptions {
    pub const DEFAULT: PrintOptions =
        PrintOptions { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None };
    /// The named profiles; as in PyTorch they leave `sci_mode` unchanged.
    pub fn profile(self, name: &str) -> Option<PrintOptions> {
        let base = PrintOptions { sci_mode: self.sci_mode, ..PrintOptions::DEFAULT };
        match name {
            "default" => Some(base),
            "short" => Some(PrintOptions { precision: 2, edgeitems: 2, ..base }),
            "full" => Some(PrintOptions { threshold: usize::MAX, ..base }),
            _ => None,
        }
    }
}

static OPTIONS: Mutex<PrintOptions> = Mutex::new(PrintOptions::DEFAULT);

/// The global print options.
pub fn options() -> PrintOptions {
    *OPTIONS.lock().unwrap_or_else(|e| e.into_inner())
}
pub fn set_options(o: PrintOptions) {
    *OPTIONS.lock().unwrap_or_else(|e| e.into_inner()) = o;
}

/// The tensor to print.
pub struct PrintInput<'a> {
    /// The class name and its bracket: `tensor(`, or `MyTensor(` for a subclass.
    pub prefix: &'a str,
    pub shape: &'a [usize],
    pub dtype: DType,
    /// The element at an index of `shape.len()` numbers.
    pub get: &'a dyn Fn(&[usize]) -> Scalar,
    pub device: Device,
    pub requires_grad: bool,
    /// The name of the tensor's node: `AddBackward0`.
    pub grad_fn: Option<&'a str>,
}

/// The `repr` of a tensor under the global options.
pub fn format(input: &PrintInput) -> String {
    format_with(input, &options())
}

/// The `repr` of a tensor under given options.
pub fn format_with(input: &PrintInput, options: &PrintOptions) -> String {
    let indent = input.prefix.chars().count();
    let numel = input.shape.iter().fold(1usize, |n, &s| n.saturating_mul(s));
    let mut text = String::from(input.prefix);
    if input.device == Device::Meta {
        text.push_str("...");
    } else if numel == 0 {
        text.push_str("[]");
    } else {
        let edge = if numel > options.threshold { options.edgeitems } else { usize::MAX };
        let mut body = Body::new(input, edge, options, text);
        body.write(0, indent);
        text = body.text;
    }
    add_suffixes(text, &suffixes(input, numel, options), indent, options.linewidth)
}

/// The nested brackets: iterates over the shown indices, consuming the collected numbers in order.
struct Body<'a> {
    shape: &'a [usize],
    edge: usize,
    linewidth: usize,
    notation: Notation,
    values: std::vec::IntoIter<Scalar>,
    text: String,
}

impl<'a> Body<'a> {
    fn new(input: &PrintInput<'a>, edge: usize, options: &PrintOptions, text: String) -> Body<'a> {
        let mut values = Vec::new();
        // Bounded by the number of dimensions.
        let mut index = vec![0; input.shape.len()];
        collect(input, edge, 0, &mut index, &mut values);
        let column = |part: fn(&Scalar) -> Scalar| {
            Column::new(input.dtype.to_real(), values.iter().map(part), options.precision, options.sci_mode)
        };
        let notation = if input.dtype.is_complex() {
            Notation::Complex(column(real), column(imaginary))
        } else {
            Notation::Real(column(|v| *v))
        };
        // Without edge items only `...` is shown; the numbers just determine the width.
        let values = values.into_iter();
        Body { shape: input.shape, edge, linewidth: options.linewidth, notation, values, text }
    }

    fn write(&mut self, dim: usize, indent: usize) {
        let left = self.shape.len() - dim;
        match left {
            0 => self.element(),
            1 => self.vector(dim, indent),
            _ => {
                let (head, gap, tail) = shown(self.shape[dim], self.edge);
                self.text.push('[');
                let mut first = true;
                for part in 0..head + gap as usize + tail {
                    if !first {
                        self.text.push(',');
                        self.text.extend(std::iter::repeat_n('\n', left - 1));
                        self.spaces(indent + 1);
                    }
                    first = false;
                    if gap && part == head {
                        self.text.push_str("...");
                    } else {
                        self.write(dim + 1, indent + 1);
                    }
                }
                self.text.push(']');
            }
        }
    }

    /// The innermost dimension, broken into lines of whole elements.
    fn vector(&mut self, dim: usize, indent: usize) {
        let (head, gap, tail) = shown(self.shape[dim], self.edge);
        let per_line = (self.linewidth.saturating_sub(indent) / (self.notation.width() + 2)).max(1);
        self.text.push('[');
        for part in 0..head + gap as usize + tail {
            if part > 0 && part % per_line == 0 {
                self.text.push_str(",\n");
                self.spaces(indent + 1);
            } else if part > 0 {
                self.text.push_str(", ");
            }
            if gap && part == head {
                self.text.push_str(if self.edge == 0 { "..." } else { " ..." });
            } else {
                self.element();
            }
        }
        self.text.push(']');
    }

    fn element(&mut self) {
        if let Some(v) = self.values.next() {
            self.notation.push(v, &mut self.text);
        }
    }

    fn spaces(&mut self, n: usize) {
        self.text.extend(std::iter::repeat_n(' ', n));
    }
}

/// (leading elements, whether any are omitted, trailing elements).
fn shown(size: usize, edge: usize) -> (usize, bool, usize) {
    if edge <= size / 2 && size > 2 * edge { (edge, true, edge) } else { (size, false, 0) }
}

/// The shown elements in print order. A vector without edge items contributes all of its elements: PyTorch determines
/// the width from `self[:0]` and `self[-0:]`, and the latter is the whole vector.
fn collect(input: &PrintInput, edge: usize, dim: usize, index: &mut [usize], out: &mut Vec<Scalar>) {
    if dim == index.len() {
        out.push((input.get)(index));
        return;
    }
    let size = input.shape[dim];
    let whole_vector = edge == 0 && index.len() == 1;
    let (head, gap, tail) = if whole_vector { (size, false, 0) } else { shown(size, edge) };
    let last = if gap { size - tail..size } else { 0..0 };
    for i in (0..head).chain(last) {
        index[dim] = i;
        collect(input, edge, dim + 1, index, out);
    }
}

fn real(v: &Scalar) -> Scalar {
    Scalar::Float(v.to_c128().re)
}
fn imaginary(v: &Scalar) -> Scalar {
    Scalar::Float(v.to_c128().im)
}

fn suffixes(input: &PrintInput, numel: usize, options: &PrintOptions) -> Vec<String> {
    let mut list = Vec::new();
    if input.device != Device::Cpu {
        list.push(format!("device='{}'", input.device));
    }
    let default = default_dtype();
    let (show_size, show_dtype) = if input.device == Device::Meta {
        (true, input.dtype != default)
    } else if numel == 0 {
        (input.shape.len() != 1, input.dtype != default)
    } else {
        // As PyTorch has it, whose default complex dtype is `complex32` where that of floats is `float16`, but not in print.
        let complex = if default == DType::F64 { DType::C128 } else { DType::C64 };
        let known = [default, complex, DType::I64, DType::Bool];
        (options.edgeitems == 0, !known.contains(&input.dtype))
    };
    if show_size {
        list.push(format!("size={}", tuple(input.shape)));
    }
    if show_dtype {
        list.push(format!("dtype=torch.{}", input.dtype));
    }
    match input.grad_fn {
        Some(name) => list.push(format!("grad_fn=<{name}>")),
        None if input.requires_grad => list.push("requires_grad=True".to_string()),
        None => {}
    }
    list
}

/// A shape as Python prints a tuple.
fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(", ")),
    }
}

/// Appends the suffixes, each on a new line if it would exceed the line width.
fn add_suffixes(mut text: String, suffixes: &[String], indent: usize, linewidth: usize) -> String {
    let last_line = text.rsplit('\n').next().unwrap_or("");
    let mut used = last_line.chars().count() + 2;
    for suffix in suffixes {
        if used + suffix.len() + 2 > linewidth {
            text.push_str(",\n");
            text.extend(std::iter::repeat_n(' ', indent));
            used = indent + suffix.len();
        } else {
            text.push_str(", ");
            used += suffix.len() + 2;
        }
        text.push_str(suffix);
    }
    text.push(')');
    text
}
