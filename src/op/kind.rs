//! The types of parameters.

use super::scan::{Span, cut, find, same_at};
use std::borrow::Cow;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    Tensors,
    /// A list of tensors, or the rest of the positional arguments.
    TensorArgs,
    /// A list of tensors in which `None` may stand.
    OptTensors,
    /// A tensor or a number; a number keeps its low rank in promotion.
    Operand,
    Scalar,
    Int,
    Float,
    Bool,
    /// A literal `True` or `False`, which selects between overloads that return different things.
    Is(bool),
    /// `int[]` takes a list; `int[1]` also one number.
    Ints,
    IntOrInts,
    /// `float[]` takes a list; `float[1]` also one number.
    Floats,
    FloatOrFloats,
    /// A shape: a list, or the rest of the positional arguments.
    Size,
    DType,
    Device,
    Format,
    Str,
    /// One of several strings: `str{none|mean|sum}`.
    Choice,
    Generator,
}

/// What a dimension is one of. It is range-checked by dispatch, before the body runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimOf {
    /// The name in `Dim(name)`; empty for the first tensor.
    pub(super) named: Span,
    /// The position of that tensor. For a list of tensors, its first item counts.
    pub tensor: u8,
    /// How many dimensions more there are than the tensor has: one for `Dim+` (`unsqueeze`, `stack`).
    pub extra: u8,
}

/// The values of an enumerated string, as they stand in the declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices(Span);

impl Choices {
    pub const NONE: Choices = Choices(Span::EMPTY);

    pub(super) fn names(self, text: &'static str) -> impl Iterator<Item = &'static str> + use<> {
        self.0.of(text).split('|').filter(|s| !s.is_empty())
    }
    pub(super) const fn index_of(self, b: &[u8], wanted: &[u8]) -> Option<u8> {
        let (mut at, mut index) = (self.0.start(), 0);
        while at <= self.0.end() {
            let end = match find(b, Span::new(at, self.0.end()), b'|') {
                Some(i) => i,
                None => self.0.end(),
            };
            if same_at(b, Span::new(at, end), wanted) {
                return Some(index);
            }
            index += 1;
            at = end + 1;
        }
        None
    }
}

/// A parsed type with the facts that it states.
pub(super) struct Type {
    pub kind: Kind,
    pub choices: Choices,
    pub optional: bool,
    pub written: bool,
    pub fixed: bool,
    pub dim_of: Option<DimOf>,
}

pub(super) const fn parse_type(b: &[u8], s: Span) -> Type {
    // Patterns, because cutting parts out of a text takes long in a constant.
    let (text, optional) = match cut(b, s) {
        [text @ .., b'?'] => (text, true),
        text => (text, false),
    };
    let (text, fixed) = match text {
        [text @ .., b'~'] => (text, true),
        text => (text, false),
    };
    let s = Span::new(s.start(), s.start() + text.len());
    let (mut choices, mut dim_of) = (Choices::NONE, None);
    let kind = match text {
        [b'D', b'i', b'm', ..] => {
            let (of, list) = parse_dim(b, Span::new(s.start() + 3, s.end()));
            dim_of = Some(of);
            match cut(b, list) {
                b"" => Kind::Int,
                b"[]" => Kind::Ints,
                b"[1]" => Kind::IntOrInts,
                b"[*]" => Kind::Size,
                _ => panic!("signature: unknown list of dimensions"),
            }
        }
        [b's', b't', b'r', b'{', .., b'}'] => {
            choices = Choices(Span::new(s.start() + 4, s.end() - 1));
            Kind::Choice
        }
        name => match simple(name) {
            Some(kind) => kind,
            None => panic!("signature: unknown type"),
        },
    };
    let written = matches!(text, b"Tensor!" | b"Tensor![]" | b"Tensor!?[]");
    Type { kind, choices, optional, written, fixed, dim_of }
}

/// `+(name)[]`, each part of which may be missing: what the dimension is one of, and the list suffix.
const fn parse_dim(b: &[u8], s: Span) -> (DimOf, Span) {
    let mut of = DimOf { named: Span::EMPTY, tensor: 0, extra: 0 };
    let mut rest = s;
    if let [b'+', ..] = cut(b, rest) {
        of.extra = 1;
        rest = Span::new(rest.start() + 1, rest.end());
    }
    if let [b'(', ..] = cut(b, rest) {
        let Some(close) = find(b, rest, b')') else { panic!("signature: no ')' after the tensor of a dimension") };
        of.named = Span::new(rest.start() + 1, close);
        rest = Span::new(close + 1, rest.end());
    }
    (of, rest)
}

const fn simple(name: &[u8]) -> Option<Kind> {
    Some(match name {
        b"Tensor" | b"Tensor!" => Kind::Tensor,
        b"Tensor[]" | b"Tensor![]" => Kind::Tensors,
        b"Tensors" => Kind::TensorArgs,
        b"Tensor?[]" | b"Tensor!?[]" => Kind::OptTensors,
        b"True" => Kind::Is(true),
        b"False" => Kind::Is(false),
        b"Operand" => Kind::Operand,
        b"Scalar" => Kind::Scalar,
        b"int" => Kind::Int,
        b"float" => Kind::Float,
        b"bool" => Kind::Bool,
        b"int[]" => Kind::Ints,
        b"int[1]" => Kind::IntOrInts,
        b"float[]" => Kind::Floats,
        b"float[1]" => Kind::FloatOrFloats,
        b"Size" => Kind::Size,
        b"DType" => Kind::DType,
        b"Device" => Kind::Device,
        b"MemoryFormat" => Kind::Format,
        b"str" => Kind::Str,
        b"Generator" => Kind::Generator,
        _ => return None,
    })
}

impl Kind {
    /// Where overloads differ in the kind of a parameter, the lower rank is tried first: it takes less of what the others
    /// take too. A tensor of one element is a number as well, and several ints are a list.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Kind::Is(false) => 0,
            Kind::Is(true) => 1,
            Kind::Tensor => 2,
            Kind::Operand => 3,
            Kind::TensorArgs => 4,
            Kind::Bool => 5,
            Kind::Choice => 6,
            Kind::Str => 7,
            Kind::DType => 8,
            Kind::Device => 9,
            Kind::Format => 10,
            Kind::Generator => 11,
            Kind::Ints => 12,
            Kind::IntOrInts => 13,
            Kind::Size => 14,
            Kind::Int => 15,
            Kind::Float => 16,
            Kind::Scalar => 17,
            Kind::Floats => 18,
            Kind::FloatOrFloats => 19,
            Kind::Tensors => 20,
            Kind::OptTensors => 21,
        }
    }
    /// Whether arguments of the kind are tensors, or may be.
    pub const fn holds_tensors(self) -> bool {
        matches!(self, Kind::Tensor | Kind::Tensors | Kind::TensorArgs | Kind::OptTensors | Kind::Operand)
    }
    /// How the type reads in a Python stub.
    pub fn python(self, choices: impl Iterator<Item = &'static str>) -> Cow<'static, str> {
        match self {
            Kind::Tensor => "Tensor",
            Kind::Tensors | Kind::TensorArgs => "Sequence[Tensor]",
            Kind::Is(true) => "Literal[True]",
            Kind::Is(false) => "Literal[False]",
            Kind::OptTensors => "Sequence[Tensor | None]",
            Kind::Operand => "Tensor | Number",
            Kind::Scalar => "Number",
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Ints => "Sequence[int]",
            Kind::IntOrInts => "int | Sequence[int]",
            Kind::Floats => "Sequence[float]",
            Kind::FloatOrFloats => "float | Sequence[float]",
            Kind::Size => "int | Sequence[int]",
            Kind::DType => "dtype",
            Kind::Device => "device | str",
            Kind::Format => "memory_format",
            Kind::Str => "str",
            Kind::Choice => {
                let quoted: Vec<String> = choices.map(|s| format!("\"{s}\"")).collect();
                return format!("Literal[{}]", quoted.join(", ")).into();
            }
            Kind::Generator => "Generator",
        }
        .into()
    }
}
