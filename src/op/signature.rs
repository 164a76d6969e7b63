//! Signature strings -> parsed parameters, once, at first use.
//!
//! `"sum.dim(Tensor self, int[]? dim, bool keepdim=False, *, DType? dtype=None) -> Tensor"`: a name with an optional
//! overload after the last dot-free part, typed parameters with defaults, keyword-only ones after `*`, and the result.
//! `int split_size_or_sections|split_size` has two names: PyTorch's function and method differ, or two overloads are one here.

use super::value::Value;
use crate::dtype::Scalar;

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
    /// One bool: overloads that differ in what they return tell themselves apart by it.
    Is(bool),
    /// `int[]` takes a list; `int[1]` also one number.
    Ints,
    IntOrInts,
    Floats,
    /// A shape: a list, or the rest of the positional arguments.
    Size,
    DType,
    Device,
    Format,
    Str,
    Generator,
}

impl Kind {
    fn parse(s: &str) -> Option<Kind> {
        Some(match s {
            "Tensor" => Kind::Tensor,
            "Tensor[]" => Kind::Tensors,
            "Tensors" => Kind::TensorArgs,
            "True" => Kind::Is(true),
            "False" => Kind::Is(false),
            "Tensor?[]" => Kind::OptTensors,
            "Operand" => Kind::Operand,
            "Scalar" => Kind::Scalar,
            "int" => Kind::Int,
            "float" => Kind::Float,
            "bool" => Kind::Bool,
            "int[]" => Kind::Ints,
            "int[1]" => Kind::IntOrInts,
            "float[]" => Kind::Floats,
            "Size" => Kind::Size,
            "DType" => Kind::DType,
            "Device" => Kind::Device,
            "MemoryFormat" => Kind::Format,
            "str" => Kind::Str,
            "Generator" => Kind::Generator,
            _ => return None,
        })
    }
    /// How the type reads in a Python stub.
    pub fn python(self) -> &'static str {
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
            Kind::Size => "int | Sequence[int]",
            Kind::DType => "dtype",
            Kind::Device => "device | str",
            Kind::Format => "memory_format",
            Kind::Str => "str",
            Kind::Generator => "Generator",
        }
    }
}

#[derive(Clone)]
pub struct Param {
    pub name: &'static str,
    /// Another name by which it may be given.
    pub also: Option<&'static str>,
    pub kind: Kind,
    /// `None` is accepted (`Tensor?`).
    pub optional: bool,
    pub default: Option<Value<'static>>,
    /// The default as written, for stubs and docs.
    pub default_text: Option<&'static str>,
    pub keyword_only: bool,
}

/// What an op returns to Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returns {
    One,
    /// A named tuple; without names nothing is returned: `-> ()`.
    Named(Vec<&'static str>),
    /// A tuple whose length depends on the input (`split`, `unbind`).
    Many,
}

pub struct Signature {
    /// With the overload: `sum.dim`, `nn.functional.relu`.
    pub name: &'static str,
    pub params: Vec<Param>,
    pub returns: Returns,
    /// How many parameters may be given by position.
    pub positional: usize,
}

impl Signature {
    /// Parses a declaration; the error says where it is malformed (a test parses every op).
    pub fn parse(sig: &'static str) -> Result<Signature, String> {
        let open = sig.find('(').ok_or("no '('")?;
        let close = sig.rfind(") ->").ok_or("no ') ->'")?;
        let (mut params, mut keyword_only) = (Vec::new(), false);
        for text in split_top(&sig[open + 1..close]) {
            if text == "*" {
                keyword_only = true;
                continue;
            }
            params.push(Param::parse(text, keyword_only)?);
        }
        let positional = params.iter().take_while(|p| !p.keyword_only).count();
        let returns = match sig[close + 4..].trim() {
            "Tensor" => Returns::One,
            "Tensor[]" => Returns::Many,
            r if r.starts_with('(') && r.ends_with(')') => {
                let names = split_top(&r[1..r.len() - 1]);
                Returns::Named(names.iter().map(|n| n.strip_prefix("Tensor ").unwrap_or(n)).collect())
            }
            r => return Err(format!("unknown return type '{r}'")),
        };
        Ok(Signature { name: &sig[..open], params, returns, positional })
    }
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }
    /// The same with `self` first: the order of a method.
    pub fn method_first(&self) -> Option<Signature> {
        let mut params = self.params.clone();
        let me = params.remove(self.index_of("self").filter(|&i| i > 0)?);
        params.insert(0, me);
        Some(Signature { name: self.name, params, returns: self.returns.clone(), positional: self.positional })
    }
}

impl Param {
    fn parse(text: &'static str, keyword_only: bool) -> Result<Param, String> {
        let (decl, default_text) = match text.split_once('=') {
            Some((d, v)) => (d, Some(v)),
            None => (text, None),
        };
        let (ty, name) = decl.split_once(' ').ok_or_else(|| format!("parameter '{text}' has no name"))?;
        let (ty, optional) = ty.strip_suffix('?').map_or((ty, false), |t| (t, true));
        let (name, also) = name.split_once('|').map_or((name, None), |(n, other)| (n, Some(other)));
        let kind = Kind::parse(ty).ok_or_else(|| format!("unknown type '{ty}'"))?;
        let default = match default_text {
            None => None,
            Some(d) => Some(default_value(d, kind).ok_or_else(|| format!("bad default '{d}' of {name}"))?),
        };
        Ok(Param { name, also, kind, optional, default, default_text, keyword_only })
    }
    /// Whether a keyword means this parameter: its own name, or one that NumPy users write for PyTorch's.
    pub fn is_called(&self, given: &str) -> bool {
        self.name == given
            || self.also == Some(given)
            || match self.name {
                "self" => matches!(given, "input" | "x" | "a" | "x1"),
                "input" => matches!(given, "self" | "x" | "a" | "x1"),
                "other" => given == "x2",
                "dim" => given == "axis",
                "keepdim" => given == "keepdims",
                _ => false,
            }
    }
    /// What None stands for; `None` where it is no value. As in PyTorch, an empty list of dimensions may be left out so.
    pub fn for_none(&self) -> Option<Value<'static>> {
        match &self.default {
            Some(v @ Value::Ints(list)) if list.is_empty() => Some(v.clone()),
            Some(Value::None) => Some(Value::None),
            _ => self.optional.then_some(Value::None),
        }
    }
}

fn default_value(text: &str, kind: Kind) -> Option<Value<'static>> {
    Some(match text {
        "None" => Value::None,
        "True" => Value::Scalar(Scalar::Bool(true)),
        "False" => Value::Scalar(Scalar::Bool(false)),
        t if t.starts_with('\'') => Value::Str(t.trim_matches('\'').into()),
        "[]" if kind == Kind::TensorArgs => Value::Tensors(Vec::new()),
        t if t.starts_with('[') => Value::Ints(
            t[1..t.len() - 1]
                .split(',')
                .filter(|s| !s.trim().is_empty())
                .map(|s| s.trim().parse().ok())
                .collect::<Option<_>>()?,
        ),
        t => match (t.parse::<i64>(), kind) {
            (Ok(i), Kind::IntOrInts) => Value::Ints([i].as_slice().into()),
            (Ok(i), _) => Value::Scalar(Scalar::Int(i)),
            _ => Value::Scalar(Scalar::Float(t.parse().ok()?)),
        },
    })
}

/// Splits at commas that stand outside brackets and quotes.
fn split_top(s: &'static str) -> Vec<&'static str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (i, c) in s.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(s[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !s[start..].trim().is_empty() {
        out.push(s[start..].trim());
    }
    out
}
